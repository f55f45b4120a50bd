"""Hashes of 64 bits, compiled: of numbers, and of the rows of sparse matrices whatever the order of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from pegfan._compiled import compiled

A = np.uint64(0xBF58476D1CE4E5B9)
B = np.uint64(0x94D049BB133111EB)


@compiled(inline="always")
def mix(x):  # type: ignore[no-untyped-def]
    """Scramble 64 bits, one to one (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * A
    x = (x ^ (x >> np.uint64(27))) * B
    return x ^ (x >> np.uint64(31))


@compiled("mix_all")
def mix_all(values, out):  # type: ignore[no-untyped-def]
    """Scramble every entry."""
    for i in range(values.size):
        out[i] = mix(values[i])


@compiled("hash_rows")
def hash_rows(indptr, indices, bits, with_self, out):  # type: ignore[no-untyped-def]
    """Hash every row of a sparse matrix.

    With `with_self`, as if row i also had an entry in column i like its first one.
    """
    for i in range(indptr.size - 1):
        total = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += mix(bits[e] ^ mix(np.uint64(indices[e]) + B))
        if with_self and indptr[i] < indptr[i + 1]:
            total += mix(bits[indptr[i]] ^ mix(np.uint64(i) + B))
        out[i] = mix(total)


@compiled("fold_words")
def fold_words(words, lanes):  # type: ignore[no-untyped-def]
    """Fold words into eight lanes, one after the other: as fast as memory is read."""
    for i in range(words.size):
        lane = (lanes[i & 7] ^ words[i]) * A
        lanes[i & 7] = lane ^ (lane >> np.uint64(32))


def digest_of(array: NDArray[Any]) -> bytes:
    """What tells an array from others of its shape and dtype.

    Examples
    --------
    >>> digest_of(np.arange(9.0)) == digest_of(np.arange(9.0)), digest_of(np.zeros(9)) == digest_of(np.ones(9))
    (True, False)
    """
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(content) // 8 * 8
    lanes = np.arange(1, 9, dtype=np.uint64)
    fold_words(content[:whole].view(np.uint64), lanes)
    return lanes.tobytes() + content[whole:].tobytes()


@compiled("hash_dense_rows")
def hash_dense_rows(x, out):  # type: ignore[no-untyped-def]
    """Hash every row of a matrix, as `hash_rows` does with its entries other than zero."""
    number = np.empty(1)
    for i in range(x.shape[0]):
        total = np.uint64(0)
        for t in range(x.shape[1]):
            number[0] = x[i, t]
            if number[0] != 0.0:
                total += mix(number.view(np.uint64)[0] ^ mix(np.uint64(t) + B))
        out[i] = mix(total)


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
    hash_rows(rows.indptr, rows.indices, bits, False, key)
    return key
