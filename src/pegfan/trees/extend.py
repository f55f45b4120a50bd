"""A tree for a graph that has grown: old nodes stay where they are, new ones join the clusters of their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from pegfan._arrays import IntArray
from pegfan._checks import as_array, check_kind
from pegfan.graph import Graph, check_graph
from pegfan.trees.canonical import canonical_order
from pegfan.trees.hierarchy import Hierarchy

__all__ = ["extend_tree"]

_NONE = -1


def extend_tree(tree: Hierarchy, graph: Graph, places: ArrayLike) -> Hierarchy:
    """Extend a tree to a graph that has grown since the tree was built.

    From the root down, a new node joins the cluster to whose nodes it has the largest weight of edges, in either
    direction, among the children of the cluster that it joined above; of equal ones the first. Nodes that are joined
    only to new nodes follow in waves, each by those that were placed before it; nodes without a path to an old one join
    the largest cluster at every level. Nothing depends on how nodes are numbered.

    Parameters
    ----------
    tree
        The tree of the old graph.
    graph
        The graph as it is now.
    places
        For every node of the graph its number in the old one; -1 for a new node. Each old node must be there once.

    Returns
    -------
    Hierarchy
        As many levels and, above the leaves, the same clusters in the same slots. Old nodes are in the clusters that
        they were in, new ones stand behind them.

    Examples
    --------
    >>> tree = Hierarchy.from_nested([[0, 1], [2, 3]])
    >>> graph = Graph.from_edges([[0, 1], [2, 3], [4, 3], [4, 2], [4, 0], [5, 4]])
    >>> extend_tree(tree, graph, [0, 1, 2, 3, -1, -1]).labels(2)
    array([0, 0, 1, 1, 1, 1])
    """
    check_kind(tree, "tree", Hierarchy)
    check_graph(graph)
    at = _check_places(places, tree, graph)
    old, new = np.flatnonzero(at >= 0), np.flatnonzero(at < 0)
    above = tree.parents or (np.zeros(1, np.int64),)  # the tree of a single node is its own root
    slots = np.full(graph.n, _NONE)
    slots[old] = _in_order(tree, above[0])[at[old]]
    _join_neighbours(graph, tree, slots)
    lost = slots < 0
    if lost.any():
        slots[lost] = _largest(tree)
    now = np.empty(tree.n, np.int64)
    now[at[old]] = old
    joined = canonical_order(graph).order if len(new) else new
    order = np.concatenate([now[tree.order], joined[at[joined] < 0]])
    return Hierarchy([slots[order], *above[1:]], order, {**tree.info, "extended": len(new)})


def _check_places(places: ArrayLike, tree: Hierarchy, graph: Graph) -> IntArray:
    at = as_array(places, "places")
    if at.shape != (graph.n,) or at.dtype.kind not in "iu":
        raise ValueError(f"places must hold an integer for each of the {graph.n} nodes, got {at.dtype} {at.shape}")
    if not np.array_equal(np.sort(at[at >= 0]), np.arange(tree.n)):
        raise ValueError(
            f"places must hold each of the {tree.n} nodes of the tree once, and -1 for nodes that are new; "
            "build a new tree where old nodes are gone"
        )
    return at.astype(np.int64)


def _in_order(tree: Hierarchy, leaves: IntArray) -> IntArray:
    """What is given by leaf, by node."""
    values = np.empty(tree.n, np.int64)
    values[tree.order] = leaves
    return values


def _join_neighbours(graph: Graph, tree: Hierarchy, slots: IntArray) -> None:
    """Fill in the slots, above the leaves, of all nodes with a path to one that has a slot; in waves."""
    both: Any = csr_array(graph.adjacency + graph.adjacency.T) if graph.directed else graph.adjacency
    reached = np.flatnonzero(slots >= 0)
    while len(reached):
        wave = np.unique(both[reached].indices)
        wave = wave[slots[wave] < 0]
        if len(wave):
            slots[wave] = _most_joined(both[wave], slots, tree)
        reached = wave


def _most_joined(rows: csr_array, slots: IntArray, tree: Hierarchy) -> IntArray:
    """The cluster above the leaves of each row: the heaviest at every level among those below the one before."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    known = slots[rows.indices] >= 0
    row, weight, slot = row[known], rows.data[known], slots[rows.indices[known]]
    ways = [slot]  # of every edge, the clusters that its end is in, the finest first
    for parents in tree.parents[1:-1]:
        ways.append(parents[ways[-1]])
    for level in range(len(ways) - 1, -1, -1):
        cluster = ways[level]
        order = np.lexsort((weight, cluster, row))  # by weight, so that sums do not depend on how nodes are numbered
        r, c = row[order], cluster[order]
        first = np.flatnonzero(np.diff(r, prepend=-1) | np.diff(c, prepend=-1))
        sums = np.add.reduceat(weight[order], first)
        heaviest = np.lexsort((c[first], -sums, r[first]))
        best = heaviest[np.diff(r[first][heaviest], prepend=-1) != 0]
        chosen = c[first][best]
        kept = cluster == chosen[row]
        row, weight, ways = row[kept], weight[kept], [way[kept] for way in ways]
    return np.asarray(chosen)


def _largest(tree: Hierarchy) -> int:
    """The cluster above the leaves at the end of the way to the child of most nodes; of equal ones to the first."""
    slot = 0
    for level in range(1, tree.K - 1):
        first, sizes = tree.first_child(level), tree.sizes(level + 1)
        slot = int(first[slot]) + int(np.argmax(sizes[first[slot] : first[slot + 1]]))
    return slot
