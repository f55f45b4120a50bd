"""Figures of trees: their branches, their levels over the graph, and large ones as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from pegfan._arrays import FloatArray
from pegfan._checks import check_kind, shown
from pegfan.graph import Graph
from pegfan.graph import check_graph as require_graph
from pegfan.layouts import coordinates, is_flat
from pegfan.plots import _drawing as drawing
from pegfan.trees import Hierarchy
from pegfan.trees.hierarchy import Index


def tree(
    hierarchy: Hierarchy,
    ax: Axes | None = None,
    labels: bool | Sequence[Any] = True,
    highlight: Index | None = None,
) -> Axes:
    """Draw a tree: one row per level, the root on top, the graph's nodes at the bottom.

    Parameters
    ----------
    hierarchy
        The tree.
    ax
        Where to draw; by default on a new figure of a fitting size.
    labels
        Whether to write the nodes' numbers under the leaves, which is done only where they fit; or a sequence
        with the text of every node.
    highlight
        The index vector Λ of a cluster, whose subtree is drawn in another colour.

    Returns
    -------
    Axes
        Leaf s is at x = s, level j at y = j.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> ax = plots.tree(pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]]), highlight=(1, 2))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['level 1', 'level 2', 'level 3', 'level 4']
    """
    check_kind(hierarchy, "hierarchy", Hierarchy)
    if ax is None:
        width = float(np.clip(1.2 + 0.22 * hierarchy.n, 3.2, 13.0))
        ax = drawing.new_figure(width, float(np.clip(0.35 + 0.5 * hierarchy.K, 1.2, 9.0))).subplots()
    paint = Paint.plain(hierarchy)
    if highlight is not None:
        paint.branch(hierarchy, highlight, drawing.VERMILION)
    draw_tree(ax, hierarchy, _names(hierarchy, labels), paint)
    return ax


@dataclass(frozen=True)
class Paint:
    """The colours of a tree, level by level: of its clusters, and of the lines from their parents to them."""

    dots: list[FloatArray]
    lines: list[FloatArray]

    @classmethod
    def plain(cls, hierarchy: Hierarchy) -> Paint:
        colours = to_rgba(drawing.INK), to_rgba(drawing.PALE)
        return cls(*([np.tile(colour, (count, 1)) for count in hierarchy.n_clusters] for colour in colours))

    def branch(self, hierarchy: Hierarchy, index: Index, colour: Any) -> None:
        """Give the subtree of a cluster another colour."""
        for level, start, stop in slots_below(hierarchy, index):
            self.dots[level - 1][start:stop] = to_rgba(colour)
            if level > len(index):
                self.lines[level - 1][start:stop] = to_rgba(colour)

    def children(self, hierarchy: Hierarchy, colours: FloatArray) -> None:
        """Give the subtree of each child of the root its colour."""
        self.dots[1][:] = colours
        for i in range(2, hierarchy.K):
            self.dots[i][:] = self.lines[i][:] = self.dots[i - 1][hierarchy.parent(i)]


def draw_tree(ax: Axes, hierarchy: Hierarchy, names: Sequence[str] | None, paint: Paint, first_level: int = 1) -> None:
    x = np.arange(hierarchy.n, dtype=np.float64)
    points = drawing.size_of(ax)[0] * drawing.INCH
    for level in range(hierarchy.K, 0, -1):
        i, y, spacing = level - 1, level + first_level - 1, points / len(x)
        diameter = min(0.45 * spacing, 6.5)
        if diameter > 1.0:  # closer dots would run into a bar
            ax.scatter(x, np.full(len(x), y), s=diameter**2, color=paint.dots[i], linewidths=0, zorder=3)
        if level == 1:
            break
        first = hierarchy.first_child(level - 1)
        above = (x[first[:-1]] + x[first[1:] - 1]) / 2
        ends = np.empty((len(x), 2, 2))
        ends[:, 0, 0], ends[:, 0, 1] = above[hierarchy.parent(level - 1)], y - 1
        ends[:, 1, 0], ends[:, 1, 1] = x, y
        width = float(np.clip(0.3 * spacing, 0.02, 1.1))
        drawing.draw_lines(ax, ends, paint.lines[i], width, 1)
        x = above
    margin = 0.6 if hierarchy.n > 1 else 1.0
    ax.set_xlim(-margin, hierarchy.n - 1 + margin)
    ax.set_ylim(hierarchy.K + first_level - 0.65, first_level - 0.35)
    ax.set_xticks([])
    written = names is not None and _write_leaves(ax, names)
    _name_levels(ax, hierarchy, first_level, counts=not written)
    ax.spines[:].set_visible(False)


def _name_levels(ax: Axes, hierarchy: Hierarchy, first_level: int, counts: bool) -> None:
    shown = range(0, hierarchy.K, -(-hierarchy.K // 20))
    sizes = [f"  ({hierarchy.n_clusters[i]:,})" if counts else "" for i in shown]
    texts = [f"level {first_level + i}{size}" for i, size in zip(shown, sizes, strict=True)]
    ax.set_yticks([first_level + i for i in shown], texts)
    ax.tick_params(axis="y", length=0, labelsize=drawing.SMALL, labelcolor=drawing.INK)


def _write_leaves(ax: Axes, names: Sequence[str]) -> bool:
    """Write the names under the leaves, upright or turned, if they fit; otherwise nothing."""
    room = drawing.size_of(ax)[0] * drawing.INCH / len(names)
    longest = max(map(len, names))
    fitting = [
        (size, angle)
        for angle in (0, 90)
        for size in (8.0, 7.0, 6.0, 5.0)
        if room >= (size * (0.62 * longest + 0.5) if angle == 0 else 1.15 * size) and longest <= 24
    ]
    if not fitting:
        return False
    size, angle = fitting[0]
    ax.set_xticks(range(len(names)), names, rotation=angle)
    ax.tick_params(axis="x", length=0, labelsize=size, labelcolor=drawing.INK, pad=1)
    return True


def _names(hierarchy: Hierarchy, labels: bool | Sequence[Any]) -> list[str] | None:
    """The text under every leaf, or None."""
    if isinstance(labels, bool | np.bool_):
        return [str(node) for node in hierarchy.order] if labels and hierarchy.n <= 1000 else None
    texts = [str(label) for label in labels]
    if len(texts) != hierarchy.n:
        raise ValueError(f"{len(texts)} labels given for {hierarchy.n} nodes; pass one per node, or True or False")
    return [texts[node] for node in hierarchy.order]


def slots_below(hierarchy: Hierarchy, index: Index) -> Iterator[tuple[int, int, int]]:
    """(level, start, stop) of the slots of a cluster and, level by level, of its descendants."""
    cluster = hierarchy.cluster(index)
    start, stop = cluster.slot, cluster.slot + 1
    for level in range(cluster.level, hierarchy.K + 1):
        yield level, start, stop
        first = hierarchy.first_child(level)
        start, stop = int(first[start]), int(first[stop])


def levels(
    graph: Graph,
    hierarchy: Hierarchy,
    levels: Sequence[int] | None = None,
    positions: ArrayLike | None = None,
) -> Figure:
    """Draw a tree over its graph: one small picture per level, nodes of one cluster in one colour.

    Colours are nested: they run along the leaves of the tree, so that clusters of one parent have colours near to
    each other's.

    Parameters
    ----------
    graph, hierarchy
        A graph and a tree over its nodes.
    levels
        Which levels; by default all between the root and the single nodes, at most six of them.
    positions
        See `signal`.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges([[i, i + 1] for i in range(7)])
    >>> figure = plots.levels(path, pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]]))
    >>> [ax.get_title() for ax in figure.axes]
    ['level 2: 2 clusters', 'level 3: 4 clusters']
    """
    check_kind(hierarchy, "hierarchy", Hierarchy)
    drawing.check_graph(graph)
    if hierarchy.n != graph.n:
        raise ValueError(f"the tree has {hierarchy.n} nodes and the graph {graph.n}; they must belong together")
    inner = list(range(2, hierarchy.K)) or [hierarchy.K]
    if levels is not None and (isinstance(levels, int) or not len(levels)):
        raise ValueError(f"levels is a list of at least one level, got {shown(levels)}")
    drawn = [inner[i] for i in drawing.evenly(len(inner), 6)] if levels is None else list(levels)
    xy = coordinates(graph, positions)
    flat = is_flat(xy)
    columns = 1 if flat else drawing.column_count(len(drawn))
    rows = -(-len(drawn) // columns)
    figure = drawing.new_figure(*((6.0, 0.62 * rows + 0.2) if flat else (2.6 * columns, 2.8 * rows)))
    for ax, level in zip(drawing.panels(figure, len(drawn), columns), drawn, strict=True):
        nodes = drawing.draw_graph(ax, graph, xy, None, values=_nested(hierarchy, level))
        nodes.set_cmap(colormaps["turbo"])
        nodes.set_clim(0.0, 1.0)
        drawing.put_title(ax, f"level {level}: {hierarchy.n_clusters[level - 1]:,} clusters")
    return figure


def tree_blocks(graph: Graph, hierarchy: Hierarchy) -> Figure:
    """Draw a large tree: where the edges are, and clusters and classes, with nodes in the order of the leaves.

    Parameters
    ----------
    graph, hierarchy
        A graph and a tree over its nodes.

    Returns
    -------
    Figure
        On the left the adjacency matrix, darker where edges are denser, with a box for each cluster of level 2; on
        the right one row per level, nested colours for its clusters, and the classes below where there are labels.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges([[i, i + 1] for i in range(7)], labels=[0, 0, 0, 0, 1, 1, 1, 1])
    >>> figure = plots.tree_blocks(path, pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]]))
    >>> [label.get_text() for label in figure.axes[1].get_yticklabels()]
    ['level 1: 1', 'level 2: 2', 'level 3: 4', 'classes']
    """
    require_graph(graph)
    check_kind(hierarchy, "hierarchy", Hierarchy)
    n, bins = graph.n, min(graph.n, 320)
    place = np.empty(n, np.int64)
    place[hierarchy.order] = np.arange(n) * bins // n
    arcs = graph.adjacency.tocoo()
    counts = np.zeros((bins, bins))
    np.add.at(counts, (place[arcs.coords[0]], place[arcs.coords[1]]), 1.0)
    figure = drawing.new_figure(10.2, 5.2)
    left, right = figure.subplots(1, 2)
    left.imshow(np.log1p(counts), cmap="Blues", extent=(0, n, n, 0), interpolation="nearest")
    for start, end in pairwise(hierarchy.first_leaf(min(2, hierarchy.K)).tolist()):
        x, y = [start, end, end, start, start], [start, start, end, end, start]
        left.plot(x, y, color=drawing.VERMILION, linewidth=0.9)
    drawing.put_title(left, "edges, nodes in the order of the leaves; boxes: level 2")
    _icicle(right, graph, hierarchy, 4 * bins)
    for ax in (left, right):
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize=drawing.SMALL)
    return figure


def _icicle(ax: Axes, graph: Graph, hierarchy: Hierarchy, bins: int) -> None:
    """One row per level, nested colours for its clusters; below, the classes."""
    leaves = ((np.arange(bins) + 0.5) * graph.n / bins).astype(np.int64)
    rows = [colormaps["turbo"](_nested(hierarchy, level)[hierarchy.order[leaves]]) for level in range(1, hierarchy.K)]
    names = [f"level {level}: {hierarchy.n_clusters[level - 1]:,}" for level in range(1, hierarchy.K)]
    if graph.labels is not None:
        colours = np.vstack([colormaps["tab20"](np.arange(max(graph.n_classes, 1)) % 20), [1, 1, 1, 1]])
        rows.append(colours[graph.labels[hierarchy.order[leaves]]])  # no label, -1, is the white at the end
        names.append("classes")
    ax.imshow(np.array(rows), aspect="auto", extent=(0, graph.n, len(rows) - 0.5, -0.5), interpolation="nearest")
    ax.set_yticks(range(len(rows)), names)
    drawing.put_title(ax, "clusters, level by level")


def _nested(hierarchy: Hierarchy, level: int) -> FloatArray:
    """A number in [0, 1] per node, the same in a cluster, near to those of its siblings."""
    first = hierarchy.first_leaf(level)
    return np.asarray(((first[1:] + first[:-1]) / (2 * hierarchy.n))[hierarchy.labels(level)])
