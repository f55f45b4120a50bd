"""Hashes of 64 bits, compiled: of numbers, and of the rows of sparse matrices whatever the order of their entries."""

from __future__ import annotations

import numpy as np

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
