"""Loops that several parts share: sparse products, and the entries that dropout keeps.

Products take their sums entry by entry and round every step, as SciPy does: the bits are the same on every machine, for
any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pegfan._loops import Loop

__all__ = ["keep_mask", "multipliable", "one_thread", "product", "sparse_product"]

_WORTH = 4_000_000  # multiplications from which on another thread is worth its start


_limits: list[None] = []  # one entry per `one_thread` that somebody is in; appending to a list is atomic


@contextmanager
def one_thread() -> Iterator[None]:
    """Take one thread for products, in all threads of this process."""
    _limits.append(None)
    try:
        yield
    finally:
        _limits.pop()


def _available() -> int:
    if _limits:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def product(matrix: Any, x: Any, threads: int | None = None, out: Any = None) -> Any:
    """A sparse matrix in CSR form times a dense vector or matrix, both of one floating dtype.

    Parameters
    ----------
    matrix
        A CSR array or matrix.
    x
        An array of as many rows as the matrix has columns.
    threads
        The most threads, which share the rows; by default as many as there are cores.
    out
        Where the result goes, C-ordered; by default into a new array.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> product(csr_array(np.array([[0.0, 2.0], [1.0, 0.0]])), np.array([[1.0], [5.0]]))
    array([[10.],
           [ 1.]])
    """
    dtype = matrix.dtype
    rows, width = matrix.shape[0], x.shape[1] if x.ndim == 2 else 1
    columns = np.ascontiguousarray(x, dtype=dtype).reshape(len(x), width)
    made = np.empty((rows, width), dtype) if out is None else out.reshape(rows, width)
    parts = (matrix.indptr, matrix.indices, matrix.data, columns, made)
    count = max(1, min(threads or _available(), matrix.nnz * width // _WORTH))
    if count == 1:
        sparse_product(*parts, 0, rows)
    else:
        # Threads take many small shares by turns, for rows differ in their lengths.
        bounds = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, 8 * count + 1)[1:-1])
        ends = [0, *map(int, bounds), rows]
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda first, last: sparse_product(*parts, first, last), ends[:-1], ends[1:]))
    return made.reshape(rows, *x.shape[1:])


def multipliable(matrix: Any, x: Any) -> bool:
    """Whether `product` can multiply these."""
    return (
        issparse(matrix)
        and matrix.format == "csr"
        and isinstance(x, np.ndarray)
        and x.ndim in (1, 2)
        and matrix.dtype == x.dtype
        and x.dtype in (np.float32, np.float64)
    )


sparse_product = Loop(
    "void sparse_product(const I pointers[_n + 1], const J indices[_m], const T data[_m], const T B[_columns, width], "
    "T out[_n, width], int64 first, int64 last)"
)
"""Compute the rows first, ..., last - 1 of out = M B for a sparse M in CSR form."""

_keep_entries = Loop("void keep_entries(uint64 seed, uint64 threshold, uint8 mask[n])")


def keep_mask(seed: Any, threshold: Any, mask: Any) -> None:
    """Set mask = 1 where 16 random bits are at least the threshold: the entries that dropout keeps."""
    _keep_entries(seed, threshold, mask.reshape(-1))
