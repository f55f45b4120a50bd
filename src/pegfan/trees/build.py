"""From a graph to its tree: cluster, coarsen, repeat; in an order of nodes that the graph itself determines."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pegfan import _defaults as default
from pegfan._checks import check_choice, check_integer, check_number, shown
from pegfan.graph import Graph, check_graph
from pegfan.running import Progress, Step
from pegfan.trees.alike import Signals, check_signals, codes_of
from pegfan.trees.builders import BUILDERS, Builder, Clustering, builder
from pegfan.trees.canonical import canonical_order
from pegfan.trees.hierarchy import Hierarchy, by_appearance
from pegfan.trees.level import LevelGraph, coarsen, first_level

__all__ = ["build_tree"]

_log = logging.getLogger(__name__)


DIRECTIONS = ("out", "in", "symmetric")

AUTO_WARD = 20_000
"""The most nodes for which ``"auto"`` means Ward's method."""

_STRAGGLERS = 0.75
"""A level that leaves more than this share of clusters has its single ones gathered, so that trees stay shallow."""


def build_tree(
    graph: Graph,
    method: str | Clustering = default.METHOD,
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
        ``"auto"``: ward up to 20,000 nodes, matching above; or the name of a builder:

        BUILDERS_AND_WHAT_THEY_DO

        Or one of your own, a function from a `pegfan.trees.LevelGraph` and h to one label per node; see
        `pegfan.trees.builder`.
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
    chosen = _find_builder(method, graph.n)
    chosen.check(graph.n, signals=signals, seed=seed or None)

    def report(step: Step) -> None:
        _log.debug("tree: %s", step)
        if progress:
            progress(step)

    _log.info("building a tree over %d nodes: %s, h=%d", graph.n, chosen.name, h)
    report(Step(0, 0, f"ordering {graph.n:,} nodes"))
    colouring = canonical_order(graph, labels=None if values is None else codes_of(values))
    signals = None if values is None else Signals.of(values[colouring.order], float(signal_weight))
    # The first level, the largest, has no name here: it goes when the second is made.
    parents, level = grow(
        first_level(graph, colouring.order, direction, seed, signals), chosen, h, max_levels, [], report
    )
    settings = settings_of(chosen.name, h, max_levels, direction if graph.directed else "symmetric")
    info = settings | order_facts(colouring, level.n > h)
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


def order_facts(colouring: Any, capped: bool) -> dict[str, Any]:
    """What it says of the nodes that look alike, and whether the tree was cut short."""
    counts = {name: int(getattr(colouring, name)) for name in ("tied", "symmetric", "arbitrary")}
    return counts | {"capped": bool(capped)}


def grow(
    level: LevelGraph,
    cluster: Builder,
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
        labels = gather_loose(_labels_of(cluster(level, h), level.n, cluster.name), lonely, h)
        parents.append(labels)
        level = coarsen(level, labels)
    if level.n > 1 or parents:
        parents.append(np.zeros(level.n, np.int64))
    return parents, level


def gather_loose(labels: NDArray[Any], lonely: NDArray[np.bool_], h: int) -> NDArray[Any]:
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


def _labels_of(labels: Any, n: int, name: str) -> NDArray[Any]:
    """Check what a builder returned, which may be the user's own."""
    array = np.asarray(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"builder {shown(name)} must return {n} integers, one label per node; got {array.dtype} {array.shape}"
        )
    return array.astype(np.int64) if array.dtype != np.int32 else array


def _find_builder(method: str | Clustering, n: int) -> Builder:
    if isinstance(method, Builder):
        return method
    if callable(method):
        return builder()(method)
    check_choice(method, "method", ("auto", *BUILDERS))
    return BUILDERS[("ward" if n <= AUTO_WARD else "matching") if method == "auto" else method]


build_tree.__doc__ = (build_tree.__doc__ or "").replace(
    "BUILDERS_AND_WHAT_THEY_DO", "\n        ".join(f'* ``"{name}"``: {one.summary}' for name, one in BUILDERS.items())
)
