"""Hashes of 64 bits, compiled: of numbers, and of the rows of sparse matrices whatever the order of their entries."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from pegfan._loops import Loop

mix_all = Loop("void mix_all(const uint64 values[n], uint64 out[n])")
"""Scramble every entry."""

hash_rows = Loop(
    "void hash_rows(const I rows[n], const I indptr[_rows + 1], const J indices[_m], const uint64 bits[_m],"
    " int64 with_self, uint64 out[n])"
)
"""Hash some rows of a sparse matrix; `with_self`, as if row i also had an entry in column i like its first one."""

hash_dense_rows = Loop("void hash_dense_rows(const T x[n, d], uint64 out[n])")
"""Hash every row of a matrix, as `hash_rows` does with its entries other than zero."""

fold_words = Loop("void fold_words(const uint64 words[n], uint64 lanes[8])")
"""Fold words into eight lanes, one after the other: as fast as memory is read."""


def digest_of(*parts: Any) -> str:
    """32 hex digits that tell arrays, sparse matrices and texts from others; None is one of its own.

    Examples
    --------
    >>> digest_of(np.arange(9.0)) == digest_of(np.arange(9.0)), digest_of(np.zeros(9)) == digest_of(np.ones(9))
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(f"; {type(part).__name__} {getattr(part, 'shape', part)}".encode())
        arrays = [part.indptr, part.indices, part.data] if issparse(part) else [part] * hasattr(part, "dtype")
        for array in arrays:
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            whole = len(content) // 8 * 8
            lanes = np.arange(1, 9, dtype=np.uint64)
            fold_words(content[:whole].view(np.uint64), lanes)
            digest.update(f" {array.dtype.str}".encode() + lanes.tobytes() + content[whole:].tobytes())
    return digest.hexdigest()


def row_hashes(matrix: Any) -> NDArray[np.uint64]:
    """A hash of every row of a matrix, dense or sparse, of its entries other than zero.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    >>> one, other, again = row_hashes(rows)
    >>> bool(one == again != other), bool((row_hashes(csr_array(rows)) == row_hashes(rows)).all())
    (True, True)
    """
    key = np.empty(matrix.shape[0], np.uint64)
    if not issparse(matrix) and matrix.dtype in (np.float32, np.float64):
        hash_dense_rows(np.ascontiguousarray(matrix), key)
        return key
    rows = csr_array(matrix)
    bits = (rows.data.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: no negative zero
    hash_rows(np.arange(len(key), dtype=rows.indptr.dtype), rows.indptr, rows.indices, bits, False, key)
    return key
