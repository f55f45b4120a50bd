"""Size-capped heavy-edge agglomeration: the best pairs join first, while their cluster has room. Near linear."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from pegfan.trees.build import LevelGraph
from pegfan.trees.hierarchy import offsets_within

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_HUB = 64
"""Nodes that more than so many share say little about them, and comparing all of them would take forever."""


def matching(level: LevelGraph, h: int) -> IntArray:
    """Join the ends of edges in the order of their scores, up to h nodes a cluster.

    Nodes that stay alone because all their neighbours' clusters are full (the leaves of a star) are gathered with
    those that have the same best neighbour.
    """
    from pegfan.trees import _kernels

    left, right, score = _scored_pairs(level)
    if level.features is not None and len(left):
        alike = np.einsum("ij,ij->i", level.features[left], level.features[right])
        score = score * (1.0 + level.feature_weight * alike)
    # Pairs stand in canonical order, so that a stable sort breaks ties by it.
    order = np.argsort(-score, kind="stable")
    parent, size = np.arange(level.n), np.ones(level.n, np.int64)
    _kernels.join_in_order(order, left, right, size, parent, h)
    return _gather_by_neighbour(parent, left, right, order, h)


def _scored_pairs(level: LevelGraph) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
    """Pairs i < j in canonical order, and their scores: exact for one machine whatever the numbering was."""
    upper = triu(level.edges, 1, format="coo")
    left, right = upper.coords
    if level.score == "weight":
        return left, right, upper.data
    if level.score == "normalized":
        degree = np.asarray(level.edges.sum(axis=1)).ravel()
        return left, right, upper.data / np.sqrt(degree[left] * degree[right])
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
    pairs = triu(kept @ kept.T + level.edges, 1, format="coo")
    left, right = pairs.coords
    norms = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
    common = np.empty(len(left))
    _kernels.common_weight(rows.indptr, rows.indices, rows.data, left, right, common)
    both = norms[left] * norms[right]
    # A joined pair with nothing in common still comes before none at all.
    return left, right, common / np.where(both > 0, both, 1.0) + 1e-9


def _gather_by_neighbour(
    parent: IntArray, left: NDArray[np.int32], right: NDArray[np.int32], order: IntArray, h: int
) -> IntArray:
    alone = np.bincount(parent, minlength=len(parent))[parent] == 1
    if not len(order) or not alone.any():
        return parent
    # The first pair, in order, of every node that is alone names its best neighbour.
    nodes = np.concatenate([left[order], right[order]])
    others = np.concatenate([right[order], left[order]])
    rank = np.concatenate([np.arange(len(order))] * 2)
    mine = alone[nodes]
    nodes, others, rank = nodes[mine], others[mine], rank[mine]
    if not len(nodes):
        return parent
    by_node = np.lexsort((rank, nodes))
    first = by_node[np.concatenate([[True], np.diff(nodes[by_node]) != 0])]
    nodes, best = nodes[first], parent[others[first]]
    by_best = np.lexsort((nodes, best))
    nodes, best = nodes[by_best], best[by_best]
    group = offsets_within(best) // h
    starts = np.concatenate([[True], (np.diff(best) != 0) | (np.diff(group) != 0)])
    parent = parent.copy()
    parent[nodes] = nodes[np.maximum.accumulate(np.where(starts, np.arange(len(nodes)), 0))]
    return parent
