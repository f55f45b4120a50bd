"""Size-capped heavy-edge agglomeration: the best pairs join first, while their cluster has room. Near linear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from pegfan._arrays import FloatArray, IntArray
from pegfan._matrices import enough
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

    pairs, score, into = _cosines(level) if level.score == "cosine" else _joined(level)
    if level.features is not None and len(pairs):
        alike = np.empty(len(pairs))
        _linear.inner_products(pairs, level.features, alike)
        score = score * (1.0 + level.feature_weight * (1.0 + alike) / 2.0)
    if level.signals is not None and len(pairs):
        score = score * level.signals.closeness(pairs)
    pairs = _best_first(pairs, score, into)
    parent, best, alone = np.empty(level.n, pairs.dtype), np.empty(level.n, pairs.dtype), np.empty(level.n, bool)
    _kernels.join_in_order(pairs, h, parent, alone)
    _kernels.best_neighbours(pairs, parent, alone, best)
    return gather_by_neighbour(parent, best, h)


Pairs = NDArray[Any]
"""One pair of nodes per row, the first before the second, in canonical order."""


def _joined(level: LevelGraph) -> tuple[Pairs, FloatArray, Pairs]:
    """The ends of edges, their scores, and room for as many pairs."""
    from pegfan.trees import _kernels

    edges, normalized = level.edges, level.score == "normalized"
    root = np.sqrt(row_sums(edges)) if normalized else np.empty(0)
    count, index = edges.nnz // 2, edges.indices.dtype
    score, pairs, into = level.arrays((count, np.float64), ((count, 2), index), ((count, 2), index))
    _kernels.upper_pairs(edges.indptr, edges.indices, edges.data, root, 0, pairs, score)
    return pairs, score, into


def _cosines(level: LevelGraph) -> tuple[Pairs, FloatArray, Pairs]:
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
    both = np.column_stack([left, right]).astype(rows.indices.dtype, copy=False)
    norms = np.sqrt(row_sums(rows, squared=True))
    common = np.empty(len(both))
    _kernels.common_weight(rows.indptr, rows.indices, rows.data, both, common)
    size = norms[left] * norms[right]
    # A joined pair with nothing in common still ranks above no pair.
    return both, common / np.where(size > 0, size, 1.0) + 1e-9, np.empty_like(both)


def _best_first(pairs: Pairs, score: FloatArray, into: Pairs) -> Pairs:
    """Pairs by falling score; of equal ones, those that stand first in the canonical order.

    Scores count as 16-bit numbers on a logarithmic scale: finer than they are meaningful, and sorted in
    linear time.
    """
    from pegfan.trees import _kernels

    if len(score):
        ends = np.empty(2)
        _kernels.height_range(score, ends)
        enough(_kernels.sort_pairs(pairs, score, float(ends[0]), float(ends[1]), into))
    return into


def gather_by_neighbour(parent: NDArray[Any], best: NDArray[Any], h: int) -> NDArray[Any]:
    """Put nodes that stayed alone together with those of the same best neighbour, h at a time."""
    nodes = np.flatnonzero(best >= 0)
    nodes = nodes[np.argsort(best[nodes], kind="stable")]
    place = offsets_within(best[nodes])
    parent[nodes] = nodes[np.arange(len(nodes)) - place % h]
    return parent
