"""From a graph to its tree: cluster, coarsen, repeat; in an order of nodes that the graph itself determines."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan import _defaults as default
from pegfan._arrays import IntArray
from pegfan._checks import check_choice, check_integer, check_number, shown
from pegfan._matrices import by_label, csr_of, drop_loops, enough, merged, moved, transposed
from pegfan.graph import Graph, check_graph
from pegfan.running import Progress, Step
from pegfan.trees._kernels import shake_weights, sum_between
from pegfan.trees.alike import Signals, check_signals, codes_of
from pegfan.trees.canonical import canonical_order
from pegfan.trees.hierarchy import Hierarchy, by_appearance

__all__ = ["LevelGraph", "build_tree", "coarsen"]

_log = logging.getLogger(__name__)


DIRECTIONS = ("out", "in", "symmetric")

AUTO_WARD = 20_000
"""The most nodes for which ``"auto"`` means Ward's method."""

_STRAGGLERS = 0.75
"""A level that leaves more than this share of clusters has its single ones gathered, so that trees stay shallow."""


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


Builder = Callable[[LevelGraph, int], IntArray]


def build_tree(
    graph: Graph,
    method: Literal["auto", "ward", "matching", "adjacency"] | Builder = default.METHOD,
    h: int = default.H,
    *,
    max_levels: int | None = None,
    direction: Literal["symmetric", "out", "in"] = default.DIRECTION,
    signals: Any = None,
    signal_weight: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Hierarchy:
    """Build a K-level hierarchical clustering of a graph that does not depend on how its nodes are numbered.

    Nodes are put into a canonical order (see `canonical_order`), clustered into groups of at most h, the groups
    become the nodes of a coarser graph whose weights are sums over both directions of the edges between two groups,
    and so on until at most h are left; the root holds these.

    Parameters
    ----------
    graph
        The graph. Labels are never looked at.
    method
        ``"ward"``: the paper's, Ward linkage on a ten-dimensional spectral embedding; ``"adjacency"``: Ward linkage
        on a truncated SVD of the adjacency rows; ``"matching"``: size-capped heavy-edge agglomeration, for any
        size; ``"auto"``: ward up to 20,000 nodes, matching above. Or a builder of your own, a function from a
        `pegfan.trees.build.LevelGraph` and h to one label per node.
    h
        The most children of a cluster, at every level and for every graph. Clusters without edges to others are
        gathered h at a time, in canonical order.
    max_levels
        The most levels K; the root then has as many children as are left.
    direction
        How the first level sees a directed graph: both ways, by what nodes point at (``"out"``, what the authors'
        code does) or by what points at them (``"in"``). Coarser levels are symmetric; so is
        every level of ``"matching"``.
    signals
        Signals that clusters should follow, n values or n × d; NaN is no opinion. In ``"matching"`` an edge counts
        less where its ends differ by more than noise explains; with the other methods the values are joined to the
        embedding, noise included. `pegfan.signals.best_tree` finds out whether a noisy signal is worth following.
    signal_weight
        How much they count: 0 not at all; 1 as much as the embedding (for ``"matching"``: an edge counts half where the
        squared difference is twice what noise explains).
    seed
        0 is the tree of the rule itself. With any other, the weight of every edge is first multiplied by a factor from
        1/4 to 4 that is drawn for it, in canonical order: another tree of the same kind, which depends on the
        numbering as little as the first one. `FrameletFrame` averages over such trees.
    progress
        Called with a `pegfan.running.Step` at every level.

    Returns
    -------
    Hierarchy
        ``info`` holds the method and its settings, ``tied`` (nodes that share their colour with another),
        ``symmetric`` (choices between symmetric nodes), ``arbitrary`` (nodes whose order went by their numbers), and
        ``capped`` (whether `max_levels` cut the tree short).

    Notes
    -----
    The tree is the same on every machine. Where ``info["tied"]`` is 0, the tree of a renumbered graph is the renumbered
    tree, bit for bit. Where ``tied`` is not 0 but ``arbitrary`` is, symmetric nodes may be swapped, which averaging
    projections over colour classes undoes for signals constant on them, as `make_channels` does
    (``system.projections(f, classes=...)``). No method can promise more: a star with more than h leaves has no
    symmetric clustering into groups of at most h. Where ``arbitrary`` is not 0, so many nodes could be neither told
    apart nor shown to be symmetric at a reasonable cost.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.2, n=300, n_edges=1500, n_features=0)
    >>> tree = pf.build_tree(graph, "ward", h=4)
    >>> tree.h, tree.n_clusters[0], tree.n_clusters[-1]
    (4, 1, 300)
    >>> import numpy as np
    >>> perm = np.random.default_rng(0).permutation(300)
    >>> pf.build_tree(graph.permute(perm), "ward", h=4) == tree.permute(perm)
    True
    """
    check_graph(graph)
    check_choice(direction, "direction", DIRECTIONS)
    check_integer(h, "h", least=2)
    check_integer(seed, "seed", least=0)
    if max_levels is not None:
        check_integer(max_levels, "max_levels", least=2)
    values = None if signals is None else check_signals(signals, graph.n)
    check_number(signal_weight, "signal_weight")
    name, builder = _find_builder(method, graph.n)

    def report(step: Step) -> None:
        _log.debug("tree: %s", step)
        if progress:
            progress(step)

    _log.info("building a tree over %d nodes: %s, h=%d", graph.n, name, h)
    report(Step(0, 0, f"ordering {graph.n:,} nodes"))
    colouring = canonical_order(graph, labels=None if values is None else codes_of(values))
    signals = None if values is None else Signals.of(values[colouring.order], float(signal_weight))
    # The first level, the largest, has no name here: it goes when the second is made.
    parents, level = grow(
        _first_level(graph, colouring.order, direction, seed, signals), name, builder, h, max_levels, [], report
    )
    settings = settings_of(name, h, max_levels, direction if graph.directed else "symmetric")
    info = settings | told_of(colouring, level.n > h)
    if seed:
        info["seed"] = seed
    if values is not None:
        info |= {"signals": values.shape[1], "signal_weight": float(signal_weight)}
    tree = Hierarchy(parents, colouring.order, info | level.notes)
    _log.info("built a tree of %d levels, %d nodes of it in an arbitrary order", tree.K, colouring.arbitrary)
    return tree


def settings_of(name: str, h: int, max_levels: int | None, direction: str) -> dict[str, Any]:
    """What a tree's ``info`` says of how it was asked for."""
    return {
        "method": name,
        "h": int(h),
        "max_levels": None if max_levels is None else int(max_levels),
        "direction": direction,
    }


def told_of(colouring: Any, capped: bool) -> dict[str, Any]:
    """What it says of how nodes were told apart, and whether the tree was cut short."""
    counts = {name: int(getattr(colouring, name)) for name in ("tied", "symmetric", "arbitrary")}
    return counts | {"capped": bool(capped)}


def grow(
    level: LevelGraph,
    name: str,
    builder: Builder,
    h: int,
    max_levels: int | None,
    parents: list[NDArray[Any]],
    report: Progress,
) -> tuple[list[NDArray[Any]], LevelGraph]:
    """Cluster and coarsen up to the root: the parents of all levels, and the last level below the root.

    `parents` are those of the levels before this one, if there are any.
    """
    most = max_levels if max_levels is not None else level.n + len(parents) + 2
    while level.n > h and len(parents) + 2 < most:
        text = f"level {len(parents) + 1}: {level.n:,} clusters, {level.edges.nnz // 2:,} edges"
        report(Step(len(parents), 0, text))
        lonely = np.diff(level.edges.indptr) == 0
        labels = gather(_labels_of(builder(level, h), level.n, name), lonely, h)
        parents.append(labels)
        level = coarsen(level, labels)
    if level.n > 1 or parents:
        parents.append(np.zeros(level.n, np.int64))
    return parents, level


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


def _first_level(
    graph: Graph, order: IntArray, direction: str, seed: int = 0, signals: Signals | None = None
) -> LevelGraph:
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


def gather(labels: NDArray[Any], lonely: NDArray[np.bool_], h: int) -> NDArray[Any]:
    """Labels by first appearance, with what the builder left alone gathered h at a time where that is needed.

    Nodes that are `lonely` have no edges to others.
    """
    labels, n = by_appearance(labels), len(labels)
    alone = np.bincount(labels)[labels] == 1
    loose = alone & lonely
    if labels.max() + 1 - max(loose.sum() - 1, 0) > _STRAGGLERS * n:
        loose = alone
    nodes = np.flatnonzero(loose)
    if 2 * n > np.iinfo(labels.dtype).max:
        labels = labels.astype(np.int64)
    labels[nodes] = n + np.arange(len(nodes)) // h
    return by_appearance(labels)


BUILDERS = {
    "ward": "pegfan.trees.ward:ward",
    "matching": "pegfan.trees.matching:matching",
    "adjacency": "pegfan.trees.ward:adjacency",
}
"""Where the builders are that have a name: functions from `LevelGraph` and h to labels."""

_ALL_PAIRS = ("ward", "adjacency")
"""Builders of ours that compare all pairs of nodes, and are refused where there are too many."""


def _labels_of(labels: Any, n: int, name: str) -> NDArray[Any]:
    """Check what a builder returned, which may be the user's own."""
    found = np.asarray(labels)
    if found.shape != (n,) or found.dtype.kind not in "iu":
        raise ValueError(
            f"builder {shown(name)} must return {n} integers, one label per node; got {found.dtype} {found.shape}"
        )
    return found.astype(np.int64) if found.dtype != np.int32 else found


def _find_builder(method: str | Builder, n: int) -> tuple[str, Builder]:
    if callable(method):
        return getattr(method, "__name__", type(method).__name__), method
    check_choice(method, "method", ("auto", *BUILDERS))
    if method == "auto":
        method = "ward" if n <= AUTO_WARD else "matching"
    from pegfan.trees.ward import MOST_NODES

    if method in _ALL_PAIRS and n > MOST_NODES:
        raise ValueError(
            f"{shown(method)} compares all pairs of {n:,} nodes ({n**2 / 2:.1e} distances at the first level; a "
            f"matrix of them would take {n**2 * 4 / 1e9:,.0f} GB); above {MOST_NODES:,} use method='matching'"
        )
    module, function = BUILDERS[method].split(":")
    return method, cast(Builder, getattr(importlib.import_module(module), function))
