"""Size-capped heavy-edge agglomeration: the best pairs join first, while their cluster has room. Near linear."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from pegfan._arrays import FloatArray, IntArray
from pegfan.trees.build import LevelGraph
from pegfan.trees.embeddings import row_sums
from pegfan.trees.hierarchy import offsets_within

_HUB = 64
"""A neighbour of more nodes than this says little about them, and comparing all its pairs would take too long."""


def matching(level: LevelGraph, h: int) -> IntArray:
    """Join the ends of edges in the order of their scores, up to h nodes per cluster.

    Nodes that stay alone because all their neighbours' clusters are full (the leaves of a star) are gathered with
    those that have the same best neighbour.
    """
    from pegfan.trees import _kernels, _linear

    left, right, score = _scored_pairs(level)
    if level.features is not None and len(left):
        alike = np.empty(len(left))
        _linear.inner_products(left, right, level.features, alike)
        score = score * (1.0 + level.feature_weight * (1.0 + alike) / 2.0)
    order = _best_first(score)
    parent, size = np.arange(level.n), np.ones(level.n, np.int64)
    _kernels.join_in_order(order, left, right, size, parent, h)
    best = np.full(level.n, -1)
    _kernels.best_neighbours(order, left, right, parent, size, best)
    return _gather_by_neighbour(parent, best, h)


def _scored_pairs(level: LevelGraph) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
    """Pairs i < j in canonical order, and their scores."""
    upper = triu(level.edges, 1, format="coo")
    left, right = upper.coords
    if level.score == "weight":
        return left, right, upper.data
    if level.score == "normalized":
        degree = row_sums(level.edges)
        return left, right, upper.data / (np.sqrt(degree[left]) * np.sqrt(degree[right]))
    return _cosines(level)


def _cosines(level: LevelGraph) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
    """Cosines of neighbourhoods: of joined pairs, and of pairs that share a neighbour that is not a hub."""
    from pegfan.trees import _kernels

    rows = csr_array(level.rows())
    rows.sort_indices()
    popular = np.bincount(rows.indices, minlength=rows.shape[1]) > _HUB
    kept = rows.copy()
    kept.data = np.where(popular[kept.indices], 0.0, 1.0)
    kept.eliminate_zeros()
    pairs = csr_array(triu(kept @ kept.T + level.edges, 1))
    pairs.sort_indices()
    left, right = pairs.tocoo().coords
    norms = np.sqrt(row_sums(rows, squared=True))
    common = np.empty(len(left))
    _kernels.common_weight(rows.indptr, rows.indices, rows.data, left, right, common)
    both = norms[left] * norms[right]
    # A joined pair with nothing in common still ranks above no pair.
    return left, right, common / np.where(both > 0, both, 1.0) + 1e-9


def _best_first(score: FloatArray) -> IntArray:
    """Pairs by falling score; of equal ones, those that stand first in the canonical order.

    Scores count as 16-bit numbers on a logarithmic scale: finer than they are meaningful, and sorted in
    linear time.
    """
    if not len(score):
        return np.empty(0, np.int64)
    # The logarithm to base 2, straight between powers of 2: exact arithmetic, which functions of libraries are not.
    mantissa, exponent = np.frexp(np.maximum(score, 1e-300))
    height = exponent + 2.0 * mantissa
    low, high = height.min(), height.max()
    key = np.rint((high - height) * (65535.0 / max(high - low, 1e-12))).astype(np.uint16)
    return np.argsort(key, kind="stable")


def _gather_by_neighbour(parent: IntArray, best: IntArray, h: int) -> IntArray:
    """Put nodes that stayed alone together with those of the same best neighbour, h at a time."""
    nodes = np.flatnonzero(best >= 0)
    nodes = nodes[np.argsort(best[nodes], kind="stable")]
    place = offsets_within(best[nodes])
    parent = parent.copy()
    parent[nodes] = nodes[np.arange(len(nodes)) - place % h]
    return parent
