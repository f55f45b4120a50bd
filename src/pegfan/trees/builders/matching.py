"""Size-capped heavy-edge agglomeration: the best pairs join first, while their cluster has room. Near linear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._matrices import enough
from pegfan.trees._kernels import height_range, join_pairs, settle_clusters, sort_pairs, upper_pairs
from pegfan.trees.builders import builder
from pegfan.trees.embeddings import row_sums
from pegfan.trees.hierarchy import offsets_within
from pegfan.trees.level import LevelGraph


@builder("signals", "seed")
def matching(level: LevelGraph, h: int) -> IntArray:
    """The ends of edges join in the order of their weights over the roots of both degrees; for any size.

    Nodes that stay alone because all their neighbours' clusters are full (the leaves of a star) are gathered with
    those that have the same best neighbour.
    """
    pairs, score, into = _joined(level)
    if level.signals is not None and len(pairs):
        score = score * level.signals.closeness(pairs)
    pairs = _best_first(pairs, score, into)
    parent, first = (np.full(level.n, -1, pairs.dtype) for _ in range(2))
    join_pairs(pairs, h, parent, first)
    return gather_by_neighbour(parent, first, h)


Pairs = NDArray[Any]
"""One pair of nodes per row, the first before the second, in canonical order."""


def _joined(level: LevelGraph) -> tuple[Pairs, FloatArray, Pairs]:
    """The ends of edges, their weights over the roots of both degrees, and room for as many pairs."""
    edges = level.edges
    root = np.sqrt(row_sums(edges))
    count, index = edges.nnz // 2, edges.indices.dtype
    score, pairs, into = np.empty(count), np.empty((count, 2), index), np.empty((count, 2), index)
    upper_pairs(edges.indptr, edges.indices, edges.data, root, 0, pairs, score)
    return pairs, score, into


def _best_first(pairs: Pairs, score: FloatArray, into: Pairs) -> Pairs:
    """Pairs by falling score; of equal ones, those that stand first in the canonical order.

    Scores count as 16-bit numbers on a logarithmic scale: finer than they are meaningful, and sorted in
    linear time.
    """
    if len(score):
        ends = np.empty(2)
        height_range(score, ends)
        enough(sort_pairs(pairs, score, float(ends[0]), float(ends[1]), into))
    return into


def gather_by_neighbour(parent: NDArray[Any], first: NDArray[Any], h: int) -> NDArray[Any]:
    """Labels from what `join_pairs` left; nodes alone join those of the same best neighbour, h at a time."""
    settle_clusters(parent, first)
    nodes = np.flatnonzero(first >= 0)
    nodes = nodes[np.argsort(first[nodes], kind="stable")]
    rank = offsets_within(first[nodes])
    parent[nodes] = nodes[np.arange(len(nodes)) - rank % h]
    return parent
