"""Pairs of nodes: sorted, told apart and made the rows of a sparse matrix, without a copy that can be spared.

A pair is one number, its first node in the upper bits and its second in the lower ones: numbers are quickly sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan._arrays import FloatArray, IntArray
from pegfan._compiled import compiled

Keys = NDArray[np.uint64]
_FITS = 2**31


def bits_of(n: int) -> int:
    """How many bits the nodes 0..n-1 take."""
    return max(n - 1, 1).bit_length()


def pack(first: IntArray, second: IntArray, n: int, *, both: bool) -> Keys:
    """The numbers of pairs; with `both`, a pair and the same turned round have one.

    Examples
    --------
    >>> pack(np.array([2, 0]), np.array([1, 3]), 4, both=True).tolist()
    [6, 3]
    """
    keys = np.empty(len(first), np.uint64)
    dtype = np.int32 if first.dtype == second.dtype == np.int32 else np.int64
    one, other = (np.ascontiguousarray(ends, dtype=dtype) for ends in (first, second))
    _pack(one, other, bits_of(n), both, keys)
    return keys


def unpack(keys: Keys, n: int) -> tuple[IntArray, IntArray]:
    """The nodes of pairs."""
    bits = np.uint64(bits_of(n))
    return (keys >> bits).astype(np.int64), (keys & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)


def in_order(keys: Keys, n: int) -> tuple[Keys, IntArray]:
    """The numbers of pairs sorted, and which is where; equal ones stay in their order."""
    room = 64 - 2 * bits_of(n)
    if len(keys) <= 1 << room:  # a number and its place in one: many times as quick as sorting places by numbers
        shift = np.uint64(max(len(keys) - 1, 1).bit_length())
        whole = keys << shift
        whole |= np.arange(len(keys), dtype=np.uint64)
        whole.sort()
        order = (whole & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.int64)
        whole >>= shift
        return whole, order
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def are_first(keys: Keys) -> NDArray[np.bool_]:
    """Which of sorted numbers are not the same as the one before."""
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first


def without_repeats(keys: Keys) -> Keys:
    """Sorted numbers, each once: a part of the same array, which is changed.

    Examples
    --------
    >>> without_repeats(np.array([3, 3, 5], dtype=np.uint64)).tolist()
    [3, 5]
    """
    return keys[: int(_drop_repeats(keys))]


def rows_of(keys: Keys, weights: FloatArray | None, n: int, *, both: bool) -> csr_array:
    """The matrix of sorted, different pairs; with `both`, its other half too. Without weights they are ones."""
    bits = bits_of(n)
    size = 2 * len(keys) - int(_count_loops(keys, bits)) if both else len(keys)
    dtype: Any = np.int32 if max(size, n) < _FITS else np.int64
    indptr, indices, data = np.empty(n + 1, dtype), np.empty(size, dtype), np.empty(size)
    given = np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    _fill(keys, bits, both, given, indptr, indices, data, np.empty(n if both else 0, dtype))
    matrix = csr_array((data, indices, indptr), shape=(n, n))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


@compiled("pack_pairs")
def _pack(first, second, bits, both, keys):  # type: ignore[no-untyped-def]
    for e in range(len(first)):
        a, b = np.uint64(first[e]), np.uint64(second[e])
        if both and a > b:
            a, b = b, a
        keys[e] = (a << np.uint64(bits)) | b


@compiled("drop_repeats")
def _drop_repeats(keys):  # type: ignore[no-untyped-def]
    kept = min(len(keys), 1)
    for e in range(1, len(keys)):
        if keys[e] != keys[kept - 1]:
            keys[kept] = keys[e]
            kept += 1
    return kept


@compiled("count_loops")
def _count_loops(keys, bits):  # type: ignore[no-untyped-def]
    """How many pairs are a node and itself."""
    loops, shift = 0, np.uint64(bits)
    for e in range(len(keys)):
        if keys[e] >> shift == keys[e] & ((np.uint64(1) << shift) - np.uint64(1)):
            loops += 1
    return loops


@compiled("fill_rows")
def _fill(keys, bits, both, weights, indptr, indices, data, following):  # type: ignore[no-untyped-def]
    """Of sorted pairs, count the entries that each row has from pairs turned round, and then fill the rows.

    The former come first, as their columns are smaller; `following` holds where the next of them goes.
    """
    shift = np.uint64(bits)
    low = (np.uint64(1) << shift) - np.uint64(1)
    following[:] = 0
    if both:
        for e in range(len(keys)):
            if keys[e] >> shift != keys[e] & low:
                following[np.int64(keys[e] & low)] += 1
    e, place = 0, 0
    for r in range(len(indptr) - 1):
        indptr[r] = place
        if both:
            turned, following[r] = following[r], place
            place += turned
        while e < len(keys) and np.int64(keys[e] >> shift) == r:
            indices[place] = np.int64(keys[e] & low)
            data[place] = weights[e] if len(weights) else 1.0
            e += 1
            place += 1
    indptr[len(indptr) - 1] = place
    if both:
        for e in range(len(keys)):
            row, column = np.int64(keys[e] & low), np.int64(keys[e] >> shift)
            if row != column:
                indices[following[row]] = column
                data[following[row]] = weights[e] if len(weights) else 1.0
                following[row] += 1
