"""Lists of edges: checked, repeated ones merged, and made a matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan import _pairs
from pegfan._arrays import FloatArray, IntArray, cast
from pegfan._checks import as_array, check_choice, check_integer, check_numbers

_MERGE_RULES = {"max": np.maximum, "min": np.minimum, "sum": np.add, "mean": np.add, "count": np.add}
_LARGEST_N = 3_037_000_499
"""Nodes that a graph may have: their square fits in an int64."""


class Joined(NamedTuple):
    """A matrix that was made of checked edges, with nothing left to check: sorted, without repeats or zeros."""

    matrix: csr_array
    symmetric: bool
    finite: bool = False  # known to be; a sum may not be


def join_edges(edges: Any, weights: Any, n: int | None, duplicates: str, *, mirror: bool) -> Joined:
    """Merge repeated edges and build the matrix; with `mirror`, (i, j) and (j, i) are one edge."""
    check_choice(duplicates, "duplicates", (*_MERGE_RULES, "error"))
    pairs = _check_edges(edges)
    n = _check_n(n, pairs)
    w = None if weights is None else _check_weights(weights, len(pairs))
    if w is not None and not w.all():
        pairs, w = pairs[w > 0], w[w > 0]
    if duplicates == "count":
        w = None
    keys, w = merge_pairs(_pairs.pack(pairs[:, 0], pairs[:, 1], n, both=mirror), w, n, duplicates)
    return Joined(_pairs.rows_of(keys, w, n, both=mirror), symmetric=mirror, finite=w is None)


def merge_pairs(
    keys: _pairs.Keys, w: FloatArray | None, n: int, duplicates: str
) -> tuple[_pairs.Keys, FloatArray | None]:
    """The numbers of pairs, each once and sorted, and their weights; without weights all weigh 1."""
    if w is None:
        keys.sort()  # all weigh 1, so there is nothing to carry along
    else:
        keys, order = _pairs.in_order(keys, n)
        w = w[order]
    if duplicates == "error" or w is not None or duplicates in ("sum", "count"):
        new = _pairs.are_first(keys)
        if duplicates == "error" and not new.all():
            (i,), (j,) = _pairs.unpack(keys[[int(new.argmin())]], n)
            raise ValueError(
                f"edge ({i}, {j}) is given more than once; choose duplicates='max', 'min', 'sum', 'mean' or 'count'"
            )
        if not new.all():
            w = _merged(w, np.flatnonzero(new), len(keys), duplicates)
    return _pairs.without_repeats(keys), w


def _merged(weights: FloatArray | None, first: IntArray, m: int, duplicates: str) -> FloatArray:
    """The weights of edges whose rows follow each other, from the `first` one on; of m rows in all."""
    times = np.diff(first, append=m).astype(np.float64)
    if weights is None:
        return times
    with np.errstate(over="ignore"):  # an infinite sum is reported by Graph
        merged = _MERGE_RULES[duplicates].reduceat(weights, first)
    return np.asarray(merged / times if duplicates == "mean" else merged)


def _check_edges(edges: Any) -> NDArray[Any]:
    array = as_array(edges, "edges")
    if array.size == 0 and array.shape in ((0,), (0, 2)):
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        fix = "; transpose it: edges.T" if array.ndim == 2 and array.shape[0] == 2 else ""
        raise ValueError(f"edges must have shape (m, 2), one edge per row, got {array.shape}{fix}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"edges must hold integer node ids, got dtype {array.dtype}")
    if array.min() < 0:
        row = int((array < 0).any(axis=1).argmax())
        raise ValueError(f"edges[{row}] = {array[row].tolist()} has a negative node id; ids are 0..n-1")
    return array


def _check_n(n: int | None, pairs: NDArray[Any]) -> int:
    """Return the number of nodes, given or from the largest id; ids that are not positions stop here."""
    largest = int(pairs.max()) if len(pairs) else -1
    if n is None:
        if largest < 0:
            raise ValueError("there are no edges to take the number of nodes from; give n")
        if largest > 10**6 + 1000 * len(pairs):
            raise ValueError(
                f"the largest node id is {largest} with {len(pairs)} edges: ids must be positions 0..n-1; "
                "names, ids = np.unique(edges, return_inverse=True) makes them so, or give n if it is right"
            )
        n = largest + 1
    n = check_integer(n, "n")
    if not 1 <= n <= _LARGEST_N:
        raise ValueError(f"n must be between 1 and {_LARGEST_N}, got {n}")
    if largest >= n:
        row = int((pairs >= n).any(axis=1).argmax())
        raise ValueError(f"edges[{row}] = {pairs[row].tolist()} is outside the nodes 0..{n - 1}")
    return n


def _check_weights(weights: Any, m: int) -> FloatArray:
    array: FloatArray = cast(check_numbers(weights, "weights", None), np.float64)
    if len(array) != m:
        raise ValueError(f"weights has length {len(array)}, but there are {m} edges")
    good = np.isfinite(array) & (array >= 0)
    if not good.all():
        k = int(good.argmin())
        raise ValueError(f"weights[{k}] = {array[k]} must be finite and not negative")
    return array
