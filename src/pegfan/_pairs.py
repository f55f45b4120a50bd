"""Pairs of nodes: sorted, told apart and made the rows of a sparse matrix, without a copy that can be spared.

A pair is one number, its first node in the upper bits and its second in the lower ones: numbers are quickly sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan._arrays import FloatArray, IntArray
from pegfan._loops import Loop

Keys = NDArray[np.uint64]
_FITS = 2**31

_pack = Loop("void pack_pairs(const I first[m], const I second[m], int64 bits, int64 both, uint64 keys[m])")
_drop_repeats = Loop("int64 drop_repeats(uint64 keys[m])")
_count_loops = Loop("int64 count_loops(const uint64 keys[m], int64 bits)")
_fill = Loop(
    "void fill_rows(const uint64 keys[m], int64 bits, int64 both, maybe const float64 weights[m], I indptr[n + 1], "
    "I indices[size], float64 data[size], maybe I following[n])"
)


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
