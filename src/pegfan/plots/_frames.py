"""Figures of framelets: the paper's Figures 1 and 2, for any graph and any cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import shown
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.layouts import coordinates, is_flat
from pegfan.plots import _drawing as drawing
from pegfan.plots._trees import Paint, draw_tree, slots_below, tree
from pegfan.trees import Hierarchy
from pegfan.trees.hierarchy import Index

SHEAR, _DEPTH = 0.36, 1.6  # of the oblique plane: how far back goes right, and up in units of the tallest stem


def framelets(
    graph: Graph,
    system: FrameletSystem,
    j0: int = 1,
    vectors: Sequence[int] | None = None,
    positions: ArrayLike | None = None,
    max_panels: int = 16,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    r"""Draw a graph, its tree and the vectors of its frame: Figure 1 of the paper, for any graph.

    A vector is drawn over the graph with a stem at every node where it is not zero, upwards if its value is
    positive and downwards if negative, as long as the value says. Graphs whose nodes are not on a line lie in
    a plane seen from above.

    Parameters
    ----------
    graph
        The graph.
    system
        A framelet system on its nodes.
    j0
        The level of the scaling vectors.
    vectors
        Which rows of ``system.matrix(j0)`` to draw. By default all of them or, if there are more than
        `max_panels`, some of every level.
    positions
        See `signal`.
    max_panels
        The most vectors to draw where `vectors` does not say which.
    figure
        A figure (or part of one) to draw in.

    Returns
    -------
    Figure
        Axes: the graph, the tree, and one per vector. The titles give φ_Λ and ψ_Λ by their cluster's index
        vector Λ, and as ψ_(Λ,m) where the cluster has more than one framelet. Heights are on one scale,
        unless that would hide the coarse levels: then every panel states its largest value.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges(np.column_stack([np.arange(7), np.arange(1, 8)]))
    >>> tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    >>> figure = plots.framelets(path, pf.FrameletSystem(tree))
    >>> [ax.get_title() for ax in figure.axes[2:5]]
    ['$\\varphi_{(1)}$', '$\\psi_{(1)}$', '$\\psi_{(1,1)}$']
    """
    drawing.check_graph(graph, system)
    total = system.count(j0)
    rows = _spread(system.offsets(j0), max_panels) if vectors is None else _check_rows(vectors, total)
    stage = _Stage.of(graph, coordinates(graph, positions))
    columns = drawing.column_count(len(rows))
    heights = [0.55 if stage.flat else 2.6, float(np.clip(0.25 + 0.38 * system.K, 1.0, 4.0))]
    heights.append(-(-len(rows) // columns) * stage.panel_height)
    if figure is None:
        figure = drawing.new_figure(2.0 * max(columns, 4 if stage.flat else 3), sum(heights))
    grid = figure.add_gridspec(3, 1, height_ratios=heights)
    ax = figure.add_subplot(grid[0])
    drawing.draw_graph(ax, graph, stage.xy)
    if stage.flat:  # the nodes stand over the leaves of the tree, with the same margins
        _span_leaves(ax, stage.xy, system.n)
    named = graph.node_names is not None and graph.n <= 1000
    tree(system.hierarchy, figure.add_subplot(grid[1]), labels=graph.ids.tolist() if named else True)
    _draw_panels(figure, grid[2], columns, stage, [_vector(system, j0, row) for row in rows])
    if len(rows) < total:
        _note(figure, f"{len(rows)} of {total:,} vectors")
    return figure.figure


def partition_permutation(
    graph: Graph,
    system: FrameletSystem | Hierarchy,
    index: Index,
    permutation: ArrayLike,
    positions: ArrayLike | None = None,
    max_panels: int = 6,
) -> Figure:
    r"""Draw what reordering the children of one cluster does: Figure 2 of the paper, for any cluster.

    Parameters
    ----------
    graph
        The graph.
    system
        A framelet system on its nodes; or a tree, for the binary Haar system.
    index
        The index vector Λ of the cluster.
    permutation
        New child i is old child ``permutation[i]``, counted from 0.
    positions
        See `signal`.
    max_panels
        The most framelets of the cluster to draw.

    Returns
    -------
    Figure
        On the left the subtree of the cluster and its framelets before, on the right after. Each child keeps
        its colour. By Theorem 4 binary Haar framelets only change places and signs.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges(np.column_stack([np.arange(7), np.arange(1, 8)]))
    >>> tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    >>> figure = plots.partition_permutation(path, tree, (1, 1, 1), [1, 0])
    >>> [ax.get_title() for ax in figure.axes]
    ['$s_{(1,1,1)}$', '$\\tilde{s}_{(1,1,1)}$', '$\\psi_{(1,1,1)}$', '$\\tilde{\\psi}_{(1,1,1)}$']
    """
    before = FrameletSystem(system) if isinstance(system, Hierarchy) else system
    drawing.check_graph(graph, before)
    cluster = before.hierarchy.cluster(index)
    moved = before.hierarchy.permute_children({cluster.index: permutation})
    after = FrameletSystem(moved, before.filters, before.weights)
    stage = _Stage.of(graph, coordinates(graph, positions))
    rows = _rows_of(before, cluster.level, cluster.slot)
    shown = rows[drawing.evenly(len(rows), max_panels)]

    heights = [0.3 + 0.45 * (before.K - cluster.level + 1), max(len(shown), 0.2) * stage.panel_height]
    figure = drawing.new_figure(6.4, sum(heights))
    grid = figure.add_gridspec(2, 1, height_ratios=heights)
    pair = grid[0].subgridspec(1, 2).subplots(squeeze=False)[0]
    places, name = np.asarray(permutation), _tuple(cluster.index)
    _draw_subtree(pair[0], before.hierarchy, cluster.index, np.arange(len(places)), graph, f"$s_{{{name}}}$")
    _draw_subtree(pair[1], moved, cluster.index, places, graph, rf"$\tilde{{s}}_{{{name}}}$")
    panels = [_vector(s, cluster.level, row, mark) for row in shown for s, mark in ((before, ""), (after, r"\tilde"))]
    if panels:
        _draw_panels(figure, grid[1], 2, stage, panels)
    else:
        _note(figure, "a cluster with one child has no framelets")
    if len(shown) < len(rows):
        _note(figure, f"{len(shown)} of {len(rows):,} framelets of the cluster")
    return figure


def _note(figure: Figure | SubFigure, text: str) -> None:
    figure.supxlabel(text, fontsize=drawing.SMALL, color=drawing.INK)


@dataclass(frozen=True)
class _Panel:
    title: str
    values: FloatArray


def _vector(system: FrameletSystem, j0: int, row: int, mark: str = "") -> _Panel:
    """A row of ``system.matrix(j0)`` with its name, without forming the matrix."""
    unit = np.zeros(system.count(j0))
    unit[row] = 1.0
    values = system.operator("analysis", j0).T @ unit
    ends = system.offsets(j0)
    part = int(np.searchsorted(ends, row, side="right")) - 1
    if part == 0:
        return _Panel(rf"$\varphi_{{{_tuple(system.hierarchy.cluster_at(j0, row).index)}}}$", values)
    level = j0 + part - 1
    first = np.concatenate([[0], np.cumsum(system.n_framelets(level))])
    slot = int(np.searchsorted(first, row - ends[part], side="right")) - 1
    name = _tuple(system.hierarchy.cluster_at(level, slot).index)
    if first[slot + 1] - first[slot] > 1:
        name = f"({name},{row - ends[part] - first[slot] + 1})"
    symbol = rf"{mark}{{\psi}}" if mark else r"\psi"
    return _Panel(rf"${symbol}_{{{name}}}$", values)


def _rows_of(system: FrameletSystem, level: int, slot: int) -> IntArray:
    """The rows of ``system.matrix(level)`` with the framelets of one cluster."""
    if level == system.K:
        return np.empty(0, np.int64)
    counts = system.n_framelets(level)
    start = system.offsets(level)[1] + int(counts[:slot].sum())
    return np.arange(start, start + int(counts[slot]))


def _spread(offsets: Sequence[int], most: int) -> IntArray:
    """At most `most` rows, shared out among the parts as evenly as their sizes allow, evenly spaced in each."""
    counts = [stop - start for start, stop in pairwise(offsets)]
    filled = [part for part, count in enumerate(counts) if count]
    share = dict.fromkeys((filled[i] for i in drawing.evenly(len(filled), most)), 1)
    while sum(share.values()) < most and any(share[part] < counts[part] for part in share):
        share[min((part for part in share if share[part] < counts[part]), key=lambda part: share[part])] += 1
    return np.concatenate([offsets[part] + drawing.evenly(counts[part], k) for part, k in share.items()])


def _tuple(index: Index) -> str:
    return "(" + ",".join(map(str, index)) + ")"


def _check_rows(vectors: Sequence[int], total: int) -> IntArray:
    rows = np.asarray(vectors)
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iu":
        raise ValueError(f"vectors must be a list of row numbers of system.matrix(j0), got {shown(vectors)}")
    if rows.min() < 0 or rows.max() >= total:
        culprit = rows[(rows < 0) | (rows >= total)][0]
        raise ValueError(f"vectors holds {culprit}; system.matrix(j0) has the rows 0 to {total - 1}")
    return rows.astype(np.int64)


@dataclass(frozen=True)
class _Stage:
    """A graph laid out for stems: on a line, or in a plane seen obliquely from above.

    `base` is where the nodes stand: x in [0, 1] (more with the shear), y in units of the tallest stem.
    """

    graph: Graph
    xy: FloatArray
    base: FloatArray
    flat: bool
    floor: FloatArray  # the corners of the plane

    @classmethod
    def of(cls, graph: Graph, xy: FloatArray) -> _Stage:
        low, extent = xy.min(axis=0), np.ptp(xy, axis=0)
        unit = np.where(extent > 0, (xy - low) / np.where(extent > 0, extent, 1.0), 0.5)
        if is_flat(xy):
            return cls(graph, xy, np.column_stack([unit[:, 0], np.zeros(len(xy))]), True, np.empty((0, 2)))
        plane = np.array([[1.0, 0.0], [SHEAR, _DEPTH]])
        margin = np.array([[-0.06, -0.06], [1.06, -0.06], [1.06, 1.06], [-0.06, 1.06]])
        return cls(graph, xy, unit @ plane, False, margin @ plane)

    @property
    def panel_height(self) -> float:
        """Inches."""
        return 1.05 if self.flat else 1.7

    def draw(self, ax: Axes, panel: _Panel, peak: float, limits: tuple[float, float]) -> None:
        """Draw one vector; `limits` are the lowest and highest point of all panels in units of the peak."""
        base = self.base * [1.0, peak]
        points = drawing.size_of(ax)[0] * drawing.INCH
        dot = float(np.clip(0.4 * points / (self.graph.n if self.flat else np.sqrt(self.graph.n) * 2.2), 0.9, 4.0))
        self._draw_ground(ax, base, dot, peak)
        for side, colour in ((1, drawing.BLUE), (-1, drawing.VERMILION)):
            nodes = np.flatnonzero(panel.values * side > 0)
            nodes = nodes[np.argsort(-base[nodes, 1], kind="stable")]  # far ones first, near ones over them
            tops = base[nodes] + np.column_stack([np.zeros(len(nodes)), panel.values[nodes]])
            width = float(np.clip(0.4 * dot, 0.4, 1.3))
            drawing.draw_lines(ax, np.stack([base[nodes], tops], axis=1), colour, width, 3).set_gid("stems")
            ax.scatter(tops[:, 0], tops[:, 1], s=(1.3 * dot) ** 2, color=colour, linewidths=0, zorder=4)
        margin = 0.1 * (limits[1] - limits[0])
        ax.set_xlim(-0.08, 1.08 + (0.0 if self.flat else SHEAR))
        ax.set_ylim((limits[0] - margin) * peak, (limits[1] + margin) * peak)
        ax.set_axis_off()
        drawing.put_title(ax, panel.title)

    def _draw_ground(self, ax: Axes, base: FloatArray, dot: float, peak: float) -> None:
        if not self.flat:
            ax.add_patch(Polygon(self.floor * [1.0, peak], facecolor=drawing.GROUND, edgecolor="none", zorder=0))
        edges, _ = self.graph.edges()
        if len(edges) <= drawing.MANY_EDGES:  # a small panel would be solid grey, after a long wait
            drawing.draw_lines(ax, base[edges], drawing.PALE, float(np.clip(0.3 * dot, 0.25, 0.8)), 1)
        ax.scatter(base[:, 0], base[:, 1], s=dot**2, color=drawing.PALE, linewidths=0, zorder=2)


def _draw_panels(
    figure: Figure | SubFigure, place: SubplotSpec, columns: int, stage: _Stage, panels: list[_Panel]
) -> None:
    """Draw every panel, all heights on one scale where the smallest of them can still be seen."""
    peaks = np.array([np.abs(panel.values).max() for panel in panels])
    own = bool(peaks.min() < peaks.max() / 4)
    scales = peaks if own else np.full(len(peaks), peaks.max())
    tips = [stage.base[:, 1] + panel.values / scale for panel, scale in zip(panels, scales, strict=True)]
    limits = min(0.0, *(tip.min() for tip in tips)), max(tip.max() for tip in tips)
    grid = place.subgridspec(-(-len(panels) // columns), columns)
    for i, (panel, scale) in enumerate(zip(panels, scales, strict=True)):
        ax = figure.add_subplot(grid[i // columns, i % columns])
        stage.draw(ax, panel, float(scale), limits)
        if own:
            note = ax.text(1.0, 1.0, f"max {scale:.2g}", fontsize=6.5, color=drawing.GREY, transform=ax.transAxes)
            note.set(ha="right", va="bottom")


def _span_leaves(ax: Axes, xy: FloatArray, n: int) -> None:
    low, high = xy[:, 0].min(), xy[:, 0].max()
    margin = 0.6 * (high - low) / (n - 1) if high > low else 1.0
    ax.set_aspect("auto")
    ax.set_xlim(low - margin, high + margin)


def _draw_subtree(ax: Axes, hierarchy: Hierarchy, index: Index, places: IntArray, graph: Graph, title: str) -> None:
    """Draw the subtree of a cluster; `places` are the old places of its children, which choose their colours."""
    branch = _branch(hierarchy, index)
    paint = Paint.plain(branch)
    paint.children(branch, drawing.CHILDREN(places / max(len(places) - 1, 1)))
    names = [str(name) for name in graph.ids[hierarchy.members(index)]]
    draw_tree(ax, branch, names, paint, first_level=len(index))
    drawing.put_title(ax, title)


def _branch(hierarchy: Hierarchy, index: Index) -> Hierarchy:
    """The subtree of a cluster as a tree by itself, its leaves numbered in their order."""
    below = list(slots_below(hierarchy, index))
    parents = [hierarchy.parent(above)[start:stop] - first for (above, first, _), (_, start, stop) in pairwise(below)]
    return Hierarchy(parents[::-1])
