"""Size-capped heavy-edge agglomeration: the best pairs join first, while their cluster has room. Near linear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._matrices import enough
from pegfan.trees.build import LevelGraph
from pegfan.trees.embeddings import row_sums
from pegfan.trees.hierarchy import offsets_within


def matching(level: LevelGraph, h: int) -> IntArray:
    """Join the ends of edges in the order of their scores, up to h nodes per cluster.

    Nodes that stay alone because all their neighbours' clusters are full (the leaves of a star) are gathered with
    those that have the same best neighbour.
    """
    from pegfan.trees import _kernels

    pairs, score, into = _joined(level)
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
    """The ends of edges, their weights over the roots of both degrees, and room for as many pairs."""
    from pegfan.trees import _kernels

    edges = level.edges
    root = np.sqrt(row_sums(edges))
    count, index = edges.nnz // 2, edges.indices.dtype
    score, pairs, into = np.empty(count), np.empty((count, 2), index), np.empty((count, 2), index)
    _kernels.upper_pairs(edges.indptr, edges.indices, edges.data, root, 0, pairs, score)
    return pairs, score, into


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
