"""Sums that do not depend on the order of their terms, bit for bit: of nodes that are numbered in some way."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._arrays import FloatArray
from pegfan._loops import Loop
from pegfan._matrices import csr_of, enough

_product = Loop(
    "int64 order_free_product(const I indptr[n + 1], const I indices[_m], const float64 data[_m], "
    "const float64 x[_columns, width], float64 out[n, width])"
)


def order_free_product(matrix: Any, x: Any) -> FloatArray:
    """A sparse matrix times a vector or a dense matrix; permuted terms give the same sums, to the last bit.

    Every sum is one of integers, in units so small that nothing is lost beside the rounding of ordinary sums.

    Examples
    --------
    >>> terms = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    >>> bool(terms.sum(axis=1)[0] == terms.sum(axis=1)[1])
    False
    >>> first, second = order_free_product(csr_array(terms), np.ones(3))
    >>> bool(first == second)
    True
    """
    rows, values = csr_array(matrix), np.asarray(x, np.float64)
    columns = np.ascontiguousarray(values.reshape(len(values), -1))
    out = np.empty((rows.shape[0], columns.shape[1]))
    index = np.promote_types(rows.indptr.dtype, rows.indices.dtype)
    pointers, indices = (part.astype(index, copy=False) for part in (rows.indptr, rows.indices))
    enough(_product(pointers, indices, rows.data.astype(np.float64, copy=False), columns, out))
    return out.reshape(rows.shape[0], *values.shape[1:])


def order_free_sums(matrix: Any) -> FloatArray:
    """The sums of the rows of a sparse matrix; integers are added exactly."""
    rows = csr_array(matrix)
    parts = (rows.data, np.zeros_like(rows.indices), rows.indptr)
    return order_free_product(csr_of(*parts, (rows.shape[0], 1), canonical=False), np.ones(1))
