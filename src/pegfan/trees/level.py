"""One level of a tree that is being built, as its builder sees it: a graph of clusters in canonical order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._arrays import IntArray
from pegfan._matrices import by_label, csr_of, drop_loops, enough, merged, moved, transposed
from pegfan.graph import Graph
from pegfan.trees._kernels import shake_weights, sum_between
from pegfan.trees.alike import Signals

__all__ = ["LevelGraph", "coarsen"]


@dataclass
class LevelGraph:
    """What a builder sees of one level: nodes in canonical order, and how to compare them.

    Attributes
    ----------
    arcs
        The weights: of the graph itself at the first level, where they may be directed; symmetric above.
    edges
        The symmetric weights between different nodes.
    direction
        As given to `build_tree`.
    signals
        Signals to follow, or None.
    notes
        What the builder adds to ``tree.info``.
    """

    arcs: csr_array
    edges: csr_array
    direction: str = "symmetric"
    signals: Signals | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of nodes of this level."""
        return int(self.edges.shape[0])

    def rows(self) -> csr_array:
        """The matrix whose rows say what a node is joined to, seen from the chosen side."""
        if self.direction == "symmetric":
            return self.edges
        return self.arcs if self.direction == "out" else transposed(self.arcs)


def first_level(
    graph: Graph, order: IntArray, direction: str, seed: int = 0, signals: Signals | None = None
) -> LevelGraph:
    """The nodes of a graph, in an order."""
    side = direction if graph.directed else "symmetric"
    arcs = moved(graph.adjacency, order)
    largest = float(arcs.data.max(initial=0.0))
    if largest > 0:  # weights of any scale: sums and products below stay far from overflow and underflow
        arcs.data /= largest
    if seed:
        shake_weights(arcs.indptr, arcs.indices, np.uint64(seed), arcs.data)
    edges = merged(arcs, transposed(arcs)) if graph.directed else arcs
    if not edges.data.all() or edges.diagonal().any():
        edges = edges.copy() if edges is arcs else edges
        end = drop_loops(edges.indptr, edges.indices, edges.data)
        edges = csr_of(edges.data[:end], edges.indices[:end], edges.indptr, edges.shape)
    return LevelGraph(arcs, edges, side, signals)


def coarsen(level: LevelGraph, labels: IntArray) -> LevelGraph:
    """The graph of the clusters: weights summed over both directions between different clusters."""
    if labels.shape != (level.n,) or labels.min() < 0:
        raise ValueError(f"coarsen takes a label of 0 or more for each of {level.n} nodes, got shape {labels.shape}")
    count, graph = int(labels.max()) + 1, level.edges
    index = graph.indices.dtype
    labels = labels.astype(index, copy=False)
    pointers = np.empty(count + 1, index)
    weights, columns = np.empty(graph.nnz), np.empty(graph.nnz, index)
    rows = (*by_label(labels, count), labels, 0, count, graph.indptr, graph.indices, graph.data)
    end = enough(sum_between(*rows, pointers, columns, weights))
    weights, columns = weights[:end], columns[:end]
    if 2 * end < graph.nnz:
        weights, columns = weights.copy(), columns.copy()
    edges = csr_of(weights, columns, pointers, (count, count))
    signals = None if level.signals is None else level.signals.coarsen(labels, count)
    return replace(level, arcs=edges, edges=edges, signals=signals, direction="symmetric")
