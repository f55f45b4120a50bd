"""The door of channels: nodes are put into one order on the way in, and results are numbered back on the way out.

Sums round, and how they round depends on the order of their terms. In an order that does not depend on how nodes are
numbered, the matrices of a renumbered graph are the same arrays, so that all that is computed from them is the same to
the last bit. Inside, nobody knows of any other order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegfan._arrays import IntArray
from pegfan.graph import Graph

__all__ = ["AS_NUMBERED", "NodeOrder", "inverse"]


class NodeOrder:
    """An order of the nodes, and the way into it and out of it.

    Parameters
    ----------
    order
        The nodes in the order; None for that of their numbers.
    classes
        A class number for every node. Nodes of one class look alike: their rows are equal up to rounding, and on the
        way out all of them get the first one's.

    Attributes
    ----------
    order : array or None
        As given; None where it is that of the numbers.
    position : array or None
        The place of every node in the order; None likewise.
    first : array or None
        For every place, the first one whose node looks alike; None where all nodes are told apart.

    Examples
    --------
    >>> nodes = NodeOrder(np.array([2, 0, 1]), classes=np.array([5, 7, 7]))
    >>> nodes.enter(np.array([10, 20, 30])), nodes.position, nodes.first
    (array([30, 10, 20]), array([1, 2, 0]), array([0, 1, 0]))
    >>> nodes.leave(np.array([3, 1, 2])), nodes.leave(np.array([3, 1, 2]), apart=True)
    (array([1, 3, 3]), array([1, 2, 3]))
    """

    def __init__(self, order: IntArray | None = None, classes: IntArray | None = None) -> None:
        if order is not None and np.array_equal(order, np.arange(len(order))):
            order = None
        self.order, self.first = order, None
        self.position = None if order is None else inverse(order)
        if classes is not None:
            inside = self.enter(classes)
            first = np.full(int(inside.max()) + 1, len(inside))
            np.minimum.at(first, inside, np.arange(len(inside)))
            self.first = first[inside]

    def enter(self, rows: Any) -> Any:
        """The rows of the nodes, in the order."""
        if self.order is None:
            return rows
        return np.take(rows, self.order, axis=0) if isinstance(rows, np.ndarray) else rows[self.order]

    def leave(self, rows: Any, apart: bool = False) -> Any:
        """The rows of the nodes as they are numbered; `apart` where those of nodes that look alike may differ."""
        position = self.position
        if self.first is not None and not apart:
            position = self.first if position is None else self.first[position]
        if position is None:
            return rows
        return np.take(rows, position, axis=0) if isinstance(rows, np.ndarray) else rows[position]

    def places_in(self, other: NodeOrder) -> IntArray | None:
        """Where the rows in this order are in another one; None where they stand in the same places."""
        if self.order is None or other.position is None:
            return other.position if self.order is None else self.order
        return other.position[self.order]

    def edges(self, graph: Graph) -> Graph:
        """The edges of a graph in the order, without what belongs to its nodes."""
        if self.order is None:
            return graph
        matrices = graph.edge_matrices
        bare = Graph(graph.adjacency, directed=graph.directed, edge_matrices=matrices, edge_kinds=graph.edge_kinds)
        return bare.permute(self.order)


AS_NUMBERED = NodeOrder()
"""The order of channels that are made by hand: that of the numbers."""


def inverse(order: IntArray) -> IntArray:
    """The place of everything in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
