"""Compiled loops of the tree builders."""

from __future__ import annotations

import numpy as np
from numba import njit

_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)


@njit(cache=True, inline="always")
def _mix(x):  # type: ignore[no-untyped-def]
    """Scramble 64 bits, one to one (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * _A
    x = (x ^ (x >> np.uint64(27))) * _B
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def mix(values, out):  # type: ignore[no-untyped-def]
    """Scramble every entry."""
    for i in range(values.size):
        out[i] = _mix(values[i])


@njit(cache=True, nogil=True)
def gather_colours(indptr, indices, weights, colours, factor, out):  # type: ignore[no-untyped-def]
    """Add to out[i] a sum over the arcs of node i: of integers that wrap around, so that no order matters."""
    for i in range(indptr.size - 1):
        total = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += _mix(colours[indices[e]] ^ weights[e])
        out[i] += factor * total


@njit(cache=True, nogil=True)
def hash_rows(indptr, indices, bits, with_self, out):  # type: ignore[no-untyped-def]
    """A hash of every row of a sparse matrix, whatever the order of its entries.

    With `with_self`, as if row i also had an entry in column i like its first one.
    """
    for i in range(indptr.size - 1):
        total = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += _mix(bits[e] ^ _mix(np.uint64(indices[e]) + _B))
        if with_self and indptr[i] < indptr[i + 1]:
            total += _mix(bits[indptr[i]] ^ _mix(np.uint64(i) + _B))
        out[i] = _mix(total)


@njit(cache=True, inline="always")
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def join_in_order(pairs, left, right, size, parent, most):  # type: ignore[no-untyped-def]
    """Join the ends of each pair, in the order given, where the cluster stays within `most` nodes."""
    for e in pairs:
        a, b = _root(parent, left[e]), _root(parent, right[e])
        if a != b and size[a] + size[b] <= most:
            if a > b:
                a, b = b, a
            parent[b] = a  # the earlier node stands for the cluster
            size[a] += size[b]
    for i in range(parent.size):
        parent[i] = _root(parent, i)


@njit(cache=True, nogil=True)
def best_neighbours(pairs, left, right, parent, size, best):  # type: ignore[no-untyped-def]
    """For every node that is alone, the cluster at the other end of its first pair."""
    for e in pairs:
        i, j = left[e], right[e]
        if size[i] == 1 and parent[i] == i and best[i] < 0:
            best[i] = parent[j]
        if size[j] == 1 and parent[j] == j and best[j] < 0:
            best[j] = parent[i]


@njit(cache=True, nogil=True)
def common_weight(indptr, indices, data, left, right, out):  # type: ignore[no-untyped-def]
    """Inner products of the rows left[e] and right[e]; columns of a row are in order."""
    for e in range(left.size):
        i, j = indptr[left[e]], indptr[right[e]]
        i_end, j_end = indptr[left[e] + 1], indptr[right[e] + 1]
        total = 0.0
        while i < i_end and j < j_end:
            if indices[i] == indices[j]:
                total += data[i] * data[j]
                i += 1
                j += 1
            elif indices[i] < indices[j]:
                i += 1
            else:
                j += 1
        out[e] = total
