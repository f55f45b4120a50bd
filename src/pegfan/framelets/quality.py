"""How good a tree is: what its clusters keep together, how even they are, and where signals have their energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from pegfan._checks import check_kind
from pegfan.framelets.system import FrameletSystem
from pegfan.graph import Graph, check_graph
from pegfan.trees.hierarchy import Hierarchy

if TYPE_CHECKING:
    from pandas import DataFrame


def quality(graph: Graph, tree: Hierarchy) -> DataFrame:
    """Describe every level of a tree over a graph.

    Parameters
    ----------
    graph
        The graph; its labels and features, where it has them, are signals to look at.
    tree
        A tree over its nodes.

    Returns
    -------
    DataFrame
        One row per level j, with the number of ``clusters``; ``edges inside``, the share of edge weight that
        joins nodes of one cluster (self loops aside); ``largest``, the size of the largest cluster, and ``balance``,
        the mean size divided by that; the most ``children``; and ``label energy`` and ``feature energy``, the shares
        of the energy of the centred one-hot labels and the centred features that the framelets of level j carry. A tree
        suits a signal whose energy lies at coarse levels. Framelets weigh children by size here, so that constants
        carry nothing.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], labels=[0, 0, 1, 1])
    >>> table = pf.framelets.quality(graph, pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> table["edges inside"].round(2).tolist(), table["label energy"].round(2).tolist()
    ([1.0, 0.67, 0.0], [1.0, 0.0, 0.0])
    """
    check_graph(graph)
    check_kind(tree, "tree", Hierarchy)
    if tree.n != graph.n:
        raise ValueError(f"the tree has {tree.n} nodes and the graph {graph.n}; they must belong together")
    system = FrameletSystem(tree, weights="size")
    arcs = graph.adjacency.tocoo()
    proper = arcs.coords[0] != arcs.coords[1]
    tails, heads, weight = (part[proper] for part in (*arcs.coords, arcs.data))
    total = weight.sum()
    table = shape(tree)
    inside = []
    for j in range(1, tree.K + 1):
        labels = tree.labels(j)
        inside.append(weight[labels[tails] == labels[heads]].sum() / total if total else np.nan)
    table.insert(1, "edges inside", inside)
    if graph.labels is not None:
        known = graph.labels >= 0
        onehot = np.zeros((graph.n, graph.n_classes))
        onehot[known, graph.labels[known]] = 1.0
        table["label energy"] = _energies(system, onehot)
    if graph.features is not None:
        table["feature energy"] = _energies(system, graph.features)
    return table


def shape(tree: Hierarchy) -> DataFrame:
    """Describe every level of a tree, whatever the graph: its ``clusters``, the ``largest``, ``balance``, ``children``.

    Parameters
    ----------
    tree
        A tree.

    Examples
    --------
    >>> import pegfan as pf
    >>> shape(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))["clusters"].tolist()
    [1, 2, 4]
    """
    import pandas as pd

    rows = []
    for j in range(1, tree.K + 1):
        sizes = tree.sizes(j)
        rows.append(
            {
                "level": j,
                "clusters": tree.n_clusters[j - 1],
                "largest": int(sizes.max()),
                "balance": sizes.mean() / sizes.max(),
                "children": int(tree.n_children(j).max()),
            }
        )
    return pd.DataFrame(rows).set_index("level")


def _energies(system: FrameletSystem, signal: Any) -> list[float]:
    """Shares of the energy of a centred signal in the levels 1, ..., K−1, and 0 for level K."""
    total = np.zeros(system.K)
    for start in range(0, signal.shape[1], 64):  # a few columns at a time: all of a sparse matrix may be too large
        block = signal[:, start : start + 64]
        block = block.toarray() if issparse(block) else np.asarray(block)
        centred = block.astype(np.float64) - block.mean(axis=0)
        c = system.decompose(centred)
        total[: system.K - 1] += [float((c.framelets(j) ** 2).sum()) for j in range(1, system.K)]
    return (total / total.sum()).tolist() if total.sum() else [float("nan")] * system.K
