"""Figures of trees, signals and framelets, in the manner of the paper's Figures 1 and 2.

Every function returns the matplotlib `Axes` or `Figure` it drew and shows nothing by itself: in a notebook a
figure that ends a cell shows itself, of an axes write ``ax.figure``; in a script call ``figure.savefig(...)``.
Neither pyplot nor any global setting of matplotlib is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import eigsh

from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.trees import Hierarchy

__all__ = ["decomposition", "framelets", "partition_permutation", "signal", "signals", "tree"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Index = tuple[int, ...]

# Blue and vermilion of Okabe and Ito, told apart by everybody; the rest is grey.
BLUE, VERMILION = "#0072b2", "#d55e00"
INK, GREY, PALE, GROUND = "#363b42", "#7a828c", "#b8bec6", "#f3f4f6"
DIVERGING = LinearSegmentedColormap.from_list(
    "vermilion-blue", ["#8f3d00", VERMILION, "#f2b380", "#f1f1ef", "#86c1e6", BLUE, "#00446b"]
)
SEQUENTIAL = "viridis"
# Green to purple: children must not look like positive and negative values.
CHILDREN = LinearSegmentedColormap.from_list("green-purple", ["#00735a", "#5cb89c", "#b9b3bf", "#c58fbb", "#7d3c7a"])

_TITLE, _SMALL = 10.5, 7.5  # points
_INCH = 72.0
_MANY_EDGES = 20_000
_SMALL_LAYOUT = 500  # nodes; beyond, stress layouts take minutes
_SHEAR, _DEPTH = 0.36, 1.6  # of the oblique plane: how far back goes right, and up in units of the tallest stem


class _Picture(Figure):
    """A figure that shows itself in a notebook even if pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


# ------------------------------------------------------------------------- trees


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
    if ax is None:
        width = float(np.clip(1.2 + 0.22 * hierarchy.n, 3.2, 13.0))
        ax = _new_figure(width, _tree_height(hierarchy.K)).subplots()
    paint = _Paint.plain(hierarchy)
    if highlight is not None:
        paint.branch(hierarchy, highlight, VERMILION)
    _draw_tree(ax, hierarchy, _names(hierarchy, labels), paint)
    return ax


@dataclass(frozen=True)
class _Paint:
    """The colours of a tree, level by level: of its clusters, and of the lines from their parents to them."""

    dots: list[FloatArray]
    lines: list[FloatArray]

    @classmethod
    def plain(cls, hierarchy: Hierarchy) -> _Paint:
        dots, lines = ([np.tile(to_rgba(c), (count, 1)) for count in hierarchy.n_clusters] for c in (INK, PALE))
        return cls(dots, lines)

    def branch(self, hierarchy: Hierarchy, index: Index, colour: Any) -> None:
        """Give the subtree of a cluster another colour."""
        for level, start, stop in _slots_below(hierarchy, index):
            self.dots[level - 1][start:stop] = to_rgba(colour)
            if level > len(index):
                self.lines[level - 1][start:stop] = to_rgba(colour)

    def children(self, hierarchy: Hierarchy, colours: FloatArray) -> None:
        """Give the subtree of each child of the root its colour."""
        self.dots[1][:] = colours
        for i in range(2, hierarchy.K):
            self.dots[i][:] = self.lines[i][:] = self.dots[i - 1][hierarchy.parent(i)]


def _draw_tree(
    ax: Axes, hierarchy: Hierarchy, names: Sequence[str] | None, paint: _Paint, first_level: int = 1
) -> None:
    x = np.arange(hierarchy.n, dtype=np.float64)
    points = _size(ax)[0] * _INCH
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
        _draw_lines(ax, ends, paint.lines[i], width, 1)
        x = above
    margin = 0.6 if hierarchy.n > 1 else 1.0
    ax.set_xlim(-margin, hierarchy.n - 1 + margin)
    ax.set_ylim(hierarchy.K + first_level - 0.65, first_level - 0.35)
    ax.set_xticks([])
    written = names is not None and _write_leaves(ax, names)
    _name_levels(ax, hierarchy, first_level, counts=not written)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _name_levels(ax: Axes, hierarchy: Hierarchy, first_level: int, counts: bool) -> None:
    shown = range(0, hierarchy.K, -(-hierarchy.K // 20))
    sizes = [f"  ({hierarchy.n_clusters[i]:,})" if counts else "" for i in shown]
    texts = [f"level {first_level + i}{size}" for i, size in zip(shown, sizes, strict=True)]
    ax.set_yticks([first_level + i for i in shown], texts)
    ax.tick_params(axis="y", length=0, labelsize=_SMALL, labelcolor=INK)


def _write_leaves(ax: Axes, names: Sequence[str]) -> bool:
    """Write the names under the leaves, upright or turned, if they fit; otherwise nothing."""
    room = _size(ax)[0] * _INCH / len(names)
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
    ax.tick_params(axis="x", length=0, labelsize=size, labelcolor=INK, pad=1)
    return True


def _names(hierarchy: Hierarchy, labels: bool | Sequence[Any]) -> list[str] | None:
    """The text under every leaf, or None."""
    if isinstance(labels, bool | np.bool_):
        return [str(node) for node in hierarchy.order] if labels and hierarchy.n <= 1000 else None
    texts = [str(label) for label in labels]
    if len(texts) != hierarchy.n:
        raise ValueError(f"{len(texts)} labels given for {hierarchy.n} nodes; pass one per node, or True or False")
    return [texts[node] for node in hierarchy.order]


def _tree_height(levels: int) -> float:
    return float(np.clip(0.35 + 0.5 * levels, 1.2, 9.0))


# ----------------------------------------------------------------------- signals


def levels(
    graph: Graph,
    hierarchy: Hierarchy,
    levels: Sequence[int] | None = None,
    positions: ArrayLike | None = None,
) -> Figure:
    """Draw a tree over its graph: one small picture a level, nodes of one cluster in one colour.

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
    from matplotlib import colormaps

    _check_graph(graph)
    if hierarchy.n != graph.n:
        raise ValueError(f"the tree has {hierarchy.n} nodes and the graph {graph.n}; they must belong together")
    inner = list(range(2, hierarchy.K)) or [hierarchy.K]
    if levels is not None and (isinstance(levels, int) or not len(levels)):
        raise ValueError(f"levels is a list of at least one level, got {levels!r}")
    shown = [inner[i] for i in _evenly(len(inner), 6)] if levels is None else list(levels)
    xy = _coordinates(graph, positions)
    flat = _is_flat(xy)
    columns = 1 if flat else _columns(len(shown))
    rows = -(-len(shown) // columns)
    figure = _new_figure(*((6.0, 0.62 * rows + 0.2) if flat else (2.6 * columns, 2.8 * rows)))
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax, level in zip(grid.flat, shown, strict=False):
        first = hierarchy.first_leaf(level)
        middle = (first[1:] + first[:-1]) / (2 * hierarchy.n)
        nodes = _draw_graph(ax, graph, xy, None, values=middle[hierarchy.labels(level)])
        nodes.set_cmap(colormaps["turbo"])
        nodes.set_clim(0.0, 1.0)
        _title(ax, f"level {level}: {hierarchy.n_clusters[level - 1]:,} clusters")
    for ax in list(grid.flat)[len(shown) :]:
        ax.remove()
    return figure


def signal(
    graph: Graph,
    values: ArrayLike,
    positions: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str | Colormap | None = None,
    colorbar: bool = True,
    node_size: float | None = None,
) -> Axes:
    """Draw a signal on a graph: every node coloured by its value.

    Parameters
    ----------
    graph
        The graph.
    values
        The signal, one number per node.
    positions
        Where the nodes are, (n, 2); or (n,), on a line. By default ``graph.positions`` (the first two
        coordinates), or else a layout: a path on a straight line, other graphs by their distances or, above
        500 nodes, by the eigenvectors of the Laplacian. It is the same in every call.
    ax
        Where to draw; by default on a new figure.
    title
        A title.
    limits
        The values at both ends of the colour map. By default those of the signal; symmetric about 0 if it has
        both signs.
    cmap
        A colour map; by default a diverging one if the limits have both signs, else a sequential one.
    colorbar
        Whether to draw the colour bar.
    node_size
        The diameter of a node in points.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    >>> ax = plots.signal(path, [1.0, -2.0, 0.0, 0.5])
    >>> ax.collections[-1].get_clim()
    (-2.0, 2.0)
    """
    _check_graph(graph)
    f = _check_signal(values, graph.n)
    xy = _coordinates(graph, positions)
    low, high = _limits(f) if limits is None else limits
    if ax is None:
        ax = _new_figure(5.2, 1.3 if _is_flat(xy) else 4.4).subplots()
    nodes = _draw_graph(ax, graph, xy, node_size, values=f)
    nodes.set_cmap(_colour_map(low, high) if cmap is None else cmap)
    nodes.set_clim(low, high)
    if title is not None:
        _title(ax, title)
    if colorbar:
        _colour_bar(nodes, [ax], _extend(f, low, high))
    return ax


def signals(
    graph: Graph,
    values: Mapping[str, ArrayLike],
    positions: ArrayLike | None = None,
    *,
    limits: tuple[float, float] | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw several signals on one graph side by side, with one colour scale.

    Parameters
    ----------
    graph
        The graph.
    values
        The signals by title.
    positions, limits
        See `signal`; by default the limits of all signals together.
    figure
        A figure (or part of one) to draw in; by default a new one.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2]])
    >>> figure = plots.signals(path, {"before": [0.0, 1.0, 2.0], "after": [0.0, -3.0, 0.0]})
    >>> [ax.collections[-1].get_clim() for ax in figure.axes[:2]]
    [(-3.0, 3.0), (-3.0, 3.0)]
    """
    _check_graph(graph)
    if not values:
        raise ValueError("no signals given; pass at least one, by its title")
    checked = [_check_signal(f, graph.n) for f in values.values()]
    xy = _coordinates(graph, positions)
    low, high = _limits(np.concatenate(checked)) if limits is None else limits
    flat = _is_flat(xy)
    columns = 1 if flat else _columns(len(checked))
    rows = -(-len(checked) // columns)
    if figure is None:
        size = (6.0, 0.62 * rows + 0.2) if flat else (2.3 * columns + 0.7, 2.45 * rows)
        figure = _new_figure(*size)
    grid = figure.subplots(rows, columns, squeeze=False)
    axes = list(grid.flat[: len(checked)])
    for ax, title, f in zip(axes, values, checked, strict=True):
        signal(graph, f, xy, ax, title=title, limits=(low, high), colorbar=False)
    for ax in grid.flat[len(checked) :]:
        ax.remove()
    _colour_bar(axes[0].collections[-1], axes, _extend(np.concatenate(checked), low, high))
    return figure.figure


def ccns(graphs: Graph | Mapping[str, Graph]) -> Figure:
    """Draw the cross-class neighbourhood similarity of one graph or of several as heat maps.

    Parameters
    ----------
    graphs
        A graph with labels, or several by title.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> graphs = {f"γ = {gamma}": pf.datasets.synthetic(gamma, n_features=0) for gamma in (0, 1)}
    >>> figure = plots.ccns(graphs)
    >>> [ax.get_title() for ax in figure.axes[:2]]
    ['γ = 0', 'γ = 1']
    """
    from pegfan.measures import ccns as similarity

    titled = {"": graphs} if isinstance(graphs, Graph) else graphs
    if not isinstance(titled, Mapping):
        raise TypeError(f"ccns takes a Graph, or graphs by title; got {type(graphs).__name__}")
    if not titled:
        raise ValueError("no graphs given; pass at least one, by its title")
    matrices = {title: (similarity(graph), graph) for title, graph in titled.items()}
    columns = min(len(matrices), 3)
    rows = -(-len(matrices) // columns)
    figure = _new_figure(2.6 * columns + 0.7, 2.6 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    axes = list(grid.flat[: len(matrices)])
    for ax, (title, (matrix, graph)) in zip(axes, matrices.items(), strict=True):
        image = ax.imshow(matrix, vmin=0.0, vmax=1.0, cmap="Blues")
        names = range(len(matrix)) if graph.class_names is None else graph.class_names.tolist()
        ticks = range(len(matrix)) if len(matrix) <= 12 else ()
        ax.set_xticks(ticks, names if ticks else ())
        ax.set_yticks(ticks, names if ticks else ())
        ax.tick_params(length=0, labelsize=8)
        ax.spines[:].set_visible(False)
        if ticks:
            for (i, j), value in np.ndenumerate(matrix):
                colour = "white" if value > 0.6 else "black"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
        _title(ax, title)
    for ax in grid.flat[len(matrices) :]:
        ax.remove()
    figure.colorbar(image, ax=axes, shrink=0.8, aspect=30).outline.set_visible(False)
    return figure


def decomposition(graph: Graph, system: FrameletSystem, f: ArrayLike, positions: ArrayLike | None = None) -> Figure:
    r"""Draw a signal and its parts F_0 f, F_1 f, ..., F_(K−1) f, which add up to it.

    Parameters
    ----------
    graph
        The graph.
    system
        A framelet system on its nodes.
    f
        The signal, one number per node.
    positions
        See `signal`.

    Returns
    -------
    Figure
        K + 1 panels with one colour scale; the title of each part has its share of the signal's energy ‖f‖².

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> figure = plots.decomposition(path, system, [3.0, 1.0, 0.0, 0.0])
    >>> [ax.get_title() for ax in figure.axes[:4]]
    ['$f$', '$F_{0}f\\quad40.0\\,\\%$', '$F_{1}f\\quad40.0\\,\\%$', '$F_{2}f\\quad20.0\\,\\%$']
    """
    _check_graph(graph, system)
    values = _check_signal(f, graph.n)
    panels = {"$f$": values}
    energy = float(values @ values) or 1.0
    for j, part in enumerate(system.projections(values)):
        panels[rf"$F_{{{j}}}f\quad{100 * float(part @ part) / energy:.1f}\,\%$"] = part
    return signals(graph, panels, positions)


def _limits(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if low < 0 < high:
        return -max(-low, high), max(-low, high)
    if low == high:  # a constant has no range of its own: the one from 0, or (−1, 1) if it is 0
        return (min(low, 0.0), max(high, 0.0)) if low else (-1.0, 1.0)
    return low, high


def _colour_map(low: float, high: float) -> str | Colormap:
    return DIVERGING if low < 0 < high else SEQUENTIAL


def _extend(values: FloatArray, low: float, high: float) -> str:
    """Which ends of the colour bar are pointed, as there are values beyond them."""
    beyond = (bool(values.min() < low), bool(values.max() > high))
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[beyond]


def _colour_bar(nodes: Any, axes: list[Axes], extend: str) -> None:
    figure = axes[0].figure
    bar = figure.colorbar(nodes, ax=axes, fraction=0.05, pad=0.02, aspect=28, shrink=0.85, extend=extend)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, width=0.6, color=PALE, labelsize=_SMALL, labelcolor=INK)


# --------------------------------------------------------------------- framelets


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
    _check_graph(graph, system)
    total = system.count(j0)
    rows = _spread(system.offsets(j0), max_panels) if vectors is None else _check_rows(vectors, total)
    stage = _Stage.of(graph, _coordinates(graph, positions))
    columns = _columns(len(rows))
    heights = _framelet_heights(stage, system, -(-len(rows) // columns))
    if figure is None:
        figure = _new_figure(2.0 * max(columns, 4 if stage.flat else 3), sum(heights))
    grid = figure.add_gridspec(3, 1, height_ratios=heights)
    ax = figure.add_subplot(grid[0])
    _draw_graph(ax, graph, stage.xy)
    if stage.flat:  # the nodes stand over the leaves of the tree, with the same margins
        _span_leaves(ax, stage.xy, system.n)
    tree(system.hierarchy, figure.add_subplot(grid[1]))
    _draw_panels(figure, grid[2], columns, stage, [_vector(system, j0, row) for row in rows])
    if len(rows) < total:
        figure.supxlabel(f"{len(rows)} of {total:,} vectors", fontsize=_SMALL, color=INK)
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
    _check_graph(graph, before)
    cluster = before.hierarchy.cluster(index)
    moved = before.hierarchy.permute_children({cluster.index: permutation})
    after = FrameletSystem(moved, before.filters, before.weights)
    stage = _Stage.of(graph, _coordinates(graph, positions))
    rows = _rows_of(before, cluster.level, cluster.slot)
    shown = rows[_evenly(len(rows), max_panels)]

    heights = [0.3 + 0.45 * (before.K - cluster.level + 1), max(len(shown), 0.2) * stage.panel_height]
    figure = _new_figure(6.4, sum(heights))
    grid = figure.add_gridspec(2, 1, height_ratios=heights)
    pair = grid[0].subgridspec(1, 2).subplots(squeeze=False)[0]
    places, name = np.asarray(permutation), _tuple(cluster.index)
    _draw_subtree(pair[0], before.hierarchy, cluster.index, np.arange(len(places)), f"$s_{{{name}}}$")
    _draw_subtree(pair[1], moved, cluster.index, places, rf"$\tilde{{s}}_{{{name}}}$")
    panels = [_vector(s, cluster.level, row, mark) for row in shown for s, mark in ((before, ""), (after, r"\tilde"))]
    if panels:
        _draw_panels(figure, grid[1], 2, stage, panels)
    else:
        figure.supxlabel("a cluster with one child has no framelets", fontsize=_SMALL, color=INK)
    if len(shown) < len(rows):
        figure.supxlabel(f"{len(shown)} of {len(rows):,} framelets of the cluster", fontsize=_SMALL, color=INK)
    return figure


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
    """At most so many rows, about as many of every part as the parts have them, evenly spaced in each."""
    counts = [stop - start for start, stop in pairwise(offsets)]
    filled = [part for part, count in enumerate(counts) if count]
    share = dict.fromkeys((filled[i] for i in _evenly(len(filled), most)), 1)
    while sum(share.values()) < most and any(share[part] < counts[part] for part in share):
        share[min((part for part in share if share[part] < counts[part]), key=lambda part: share[part])] += 1
    return np.concatenate([offsets[part] + _evenly(counts[part], k) for part, k in share.items()])


def _evenly(count: int, most: int) -> IntArray:
    """At most so many of 0, ..., count − 1, evenly spaced."""
    if most < 1:
        raise ValueError(f"max_panels must be at least 1, got {most}")
    kept = min(count, most)
    return (np.arange(kept) * count // max(kept, 1)).astype(np.int64)


def _columns(panels: int) -> int:
    """At most four columns, the rows filled as evenly as can be."""
    rows = -(-panels // 4)
    return -(-panels // rows)


def _tuple(index: Index) -> str:
    return "(" + ",".join(map(str, index)) + ")"


# ------------------------------------------------------------- panels with stems


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
        if _is_flat(xy):
            return cls(graph, xy, np.column_stack([unit[:, 0], np.zeros(len(xy))]), True, np.empty((0, 2)))
        plane = np.array([[1.0, 0.0], [_SHEAR, _DEPTH]])
        margin = np.array([[-0.06, -0.06], [1.06, -0.06], [1.06, 1.06], [-0.06, 1.06]])
        return cls(graph, xy, unit @ plane, False, margin @ plane)

    @property
    def panel_height(self) -> float:
        """Inches."""
        return 1.05 if self.flat else 1.7

    def draw(self, ax: Axes, panel: _Panel, peak: float, limits: tuple[float, float]) -> None:
        """Draw one vector; `limits` are the lowest and highest point of all panels in units of the peak."""
        base = self.base * [1.0, peak]
        points = _size(ax)[0] * _INCH
        dot = float(np.clip(0.4 * points / (self.graph.n if self.flat else np.sqrt(self.graph.n) * 2.2), 0.9, 4.0))
        self._draw_ground(ax, base, dot, peak)
        for side, colour in ((1, BLUE), (-1, VERMILION)):
            nodes = np.flatnonzero(panel.values * side > 0)
            nodes = nodes[np.argsort(-base[nodes, 1], kind="stable")]  # far ones first, near ones over them
            tops = base[nodes] + np.column_stack([np.zeros(len(nodes)), panel.values[nodes]])
            width = float(np.clip(0.4 * dot, 0.4, 1.3))
            _draw_lines(ax, np.stack([base[nodes], tops], axis=1), colour, width, 3).set_gid("stems")
            ax.scatter(tops[:, 0], tops[:, 1], s=(1.3 * dot) ** 2, color=colour, linewidths=0, zorder=4)
        margin = 0.1 * (limits[1] - limits[0])
        ax.set_xlim(-0.08, 1.08 + (0.0 if self.flat else _SHEAR))
        ax.set_ylim((limits[0] - margin) * peak, (limits[1] + margin) * peak)
        ax.set_axis_off()
        _title(ax, panel.title)

    def _draw_ground(self, ax: Axes, base: FloatArray, dot: float, peak: float) -> None:
        if not self.flat:
            ax.add_patch(Polygon(self.floor * [1.0, peak], facecolor=GROUND, edgecolor="none", zorder=0))
        edges, _ = self.graph.edges()
        if len(edges) > _MANY_EDGES:
            edges = edges[:0]  # a small panel would be solid grey, after a long wait
        width = float(np.clip(0.3 * dot, 0.25, 0.8))
        _draw_lines(ax, base[edges], PALE, width, 1)
        ax.scatter(base[:, 0], base[:, 1], s=dot**2, color=PALE, linewidths=0, zorder=2)


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
            note = ax.text(1.0, 1.0, f"max {scale:.2g}", fontsize=6.5, color=GREY, transform=ax.transAxes)
            note.set(ha="right", va="bottom")


def _framelet_heights(stage: _Stage, system: FrameletSystem, rows: int) -> list[float]:
    return [
        0.55 if stage.flat else 2.6,
        float(np.clip(0.25 + 0.38 * system.K, 1.0, 4.0)),
        rows * stage.panel_height,
    ]


def _span_leaves(ax: Axes, xy: FloatArray, n: int) -> None:
    low, high = xy[:, 0].min(), xy[:, 0].max()
    margin = 0.6 * (high - low) / (n - 1) if high > low else 1.0
    ax.set_aspect("auto")
    ax.set_xlim(low - margin, high + margin)


def _draw_subtree(ax: Axes, hierarchy: Hierarchy, index: Index, places: IntArray, title: str) -> None:
    """Draw the subtree of a cluster; `places` are the old places of its children, which choose their colours."""
    branch = _branch(hierarchy, index)
    paint = _Paint.plain(branch)
    paint.children(branch, CHILDREN(places / max(len(places) - 1, 1)))
    _draw_tree(ax, branch, [str(node) for node in hierarchy.members(index)], paint, first_level=len(index))
    _title(ax, title)


def _branch(hierarchy: Hierarchy, index: Index) -> Hierarchy:
    """The subtree of a cluster as a tree by itself, its leaves numbered in their order."""
    below = list(_slots_below(hierarchy, index))
    parents = [hierarchy.parent(above)[start:stop] - first for (above, first, _), (_, start, stop) in pairwise(below)]
    return Hierarchy(parents[::-1])


def _slots_below(hierarchy: Hierarchy, index: Index) -> Iterator[tuple[int, int, int]]:
    """(level, start, stop) of the slots of a cluster and, level by level, of its descendants."""
    cluster = hierarchy.cluster(index)
    start, stop = cluster.slot, cluster.slot + 1
    for level in range(cluster.level, hierarchy.K + 1):
        yield level, start, stop
        first = hierarchy.first_child(level)
        start, stop = int(first[start]), int(first[stop])


# ------------------------------------------------------------------------ graphs


def _draw_graph(
    ax: Axes, graph: Graph, xy: FloatArray, node_size: float | None = None, values: FloatArray | None = None
) -> PathCollection:
    """Draw thin edges and the nodes over them; returns the nodes, to be coloured."""
    flat = _is_flat(xy)
    width, height = _size(ax)
    points = _INCH * width / graph.n if flat else _INCH * min(width, height) / np.sqrt(graph.n)
    diameter = (
        float(np.clip(0.7 * points, 1.0, 9.0) if values is not None else np.clip(0.35 * points, 1.0, 6.0))
        if node_size is None
        else node_size
    )
    edges, _ = graph.edges()
    lines = _draw_lines(ax, xy[edges], PALE, float(np.clip(0.13 * diameter, 0.15, 1.0)), 1)
    lines.set_rasterized(len(edges) > _MANY_EDGES)  # keeps vector files small
    nodes = ax.scatter(xy[:, 0], xy[:, 1], s=diameter**2, c=INK if values is None else values, zorder=2)
    # Pale values stay visible on white by a thin rim.
    nodes.set(edgecolor=GREY, linewidth=0.0 if values is None else 0.05 * diameter)
    low, extent = xy.min(axis=0), np.ptp(xy, axis=0)
    margin = 0.04 * max(float(extent.max()), 1e-12) if graph.n > 1 else 1.0
    ax.set_xlim(low[0] - margin, low[0] + extent[0] + margin)
    if flat:
        ax.set_ylim(low[1] - 1, low[1] + 1)
    else:
        ax.set_ylim(low[1] - margin, low[1] + extent[1] + margin)
        ax.set_aspect("equal")
    ax.set_axis_off()
    return nodes


def _coordinates(graph: Graph, positions: ArrayLike | None) -> FloatArray:
    """Where to draw the nodes, (n, 2): as the caller says, as the graph knows, or by a layout."""
    if positions is None:
        if graph.positions is None:
            return _layout(graph)
        positions = graph.positions
    try:
        given = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"positions must be numbers, one row (x, y) per node: {error}") from error
    if given.ndim == 1:
        given = given[:, None]
    if given.ndim != 2 or len(given) != graph.n or given.shape[1] == 0:
        raise ValueError(
            f"positions have shape {np.shape(positions)}; give one row (x, y) per node, shape ({graph.n}, 2)"
        )
    if not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise ValueError(f"positions[{row}] is {given[row].tolist()}; positions must be finite")
    return given[:, :2] if given.shape[1] > 1 else np.column_stack([given[:, 0], np.zeros(graph.n)])


def _is_flat(xy: FloatArray) -> bool:
    """Whether all nodes are on a horizontal line."""
    return bool(np.ptp(xy[:, 1]) <= 1e-9 * np.ptp(xy[:, 0]))


def _layout(graph: Graph) -> FloatArray:
    """Every connected component by itself, the largest first, side by side in rows."""
    links = graph.adjacency + graph.adjacency.T
    links = csr_array(links - diags_array(links.diagonal()))
    links.eliminate_zeros()
    links.data[:] = 1.0
    count, component = connected_components(links, directed=False)
    if count == 1:
        return _component_layout(links)
    sizes = np.bincount(component)
    nodes = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    side = np.sqrt(sizes)
    whole = float(np.sqrt(graph.n))
    row_length = side.max() if side.max() > 0.85 * whole else 1.45 * whole  # crumbs go below the one that dominates
    xy = np.empty((graph.n, 2))
    x = y = row_height = 0.0
    for c in np.argsort(-sizes, kind="stable"):
        if x > 0 and x + side[c] > row_length:
            x, y, row_height = 0.0, y - row_height, 0.0
        part = _component_layout(links[nodes[c]][:, nodes[c]])
        extent = float(np.ptp(part, axis=0).max()) or 1.0
        centred = (part - (part.max(axis=0) + part.min(axis=0)) / 2) / extent
        xy[nodes[c]] = [x + side[c] / 2, y - side[c] / 2] + 0.85 * side[c] * centred
        x, row_height = x + side[c], max(row_height, side[c])
    return xy


def _component_layout(links: csr_array) -> FloatArray:
    """A path on a line in its order; else graph distances as distances; else a spectral layout."""
    n = links.shape[0]
    order = _path_order(links)
    if order is not None:
        xy = np.zeros((n, 2))
        xy[order, 0] = np.arange(n)
        return xy
    spectral = _spectral_layout(links)
    if n > _SMALL_LAYOUT or find_spec("networkx") is None:
        return spectral
    import networkx as nx

    # Nodes with the same neighbours coincide in the spectral layout; a nudge lets the next one part them.
    start = spectral + np.random.default_rng(0).normal(0.0, 1e-3, spectral.shape)
    placed = nx.kamada_kawai_layout(nx.from_scipy_sparse_array(links), pos=dict(enumerate(start)), weight=None)
    return _longest_across(np.array([placed[node] for node in range(n)]))


def _path_order(links: csr_array) -> IntArray | None:
    """The nodes of a path from its end with the smaller number to the other; None for other graphs."""
    n, degree = links.shape[0], np.diff(links.indptr)
    if n == 1:
        return np.zeros(1, np.int64)
    if links.nnz != 2 * (n - 1) or degree.max() > 2:
        return None
    start = int(np.flatnonzero(degree == 1)[0])
    return np.asarray(breadth_first_order(links, start, return_predecessors=False), np.int64)


def _spectral_layout(links: csr_array) -> FloatArray:
    """Eigenvectors 2 and 3 of the normalised Laplacian of a connected graph, scaled to [−1, 1]."""
    n = links.shape[0]
    scale = 1.0 / np.sqrt(np.diff(links.indptr))
    walk = diags_array(scale) @ links @ diags_array(scale)
    if n <= _SMALL_LAYOUT:
        vectors = np.linalg.eigh(walk.toarray())[1][:, -3:-1]
    else:
        start = np.random.default_rng(0).random(n)
        vectors = eigsh(walk, k=3, which="LA", v0=start, tol=1e-3, ncv=60)[1][:, :2]
    xy = vectors[:, ::-1] * scale[:, None]
    return np.asarray(xy / np.abs(xy).max(axis=0))


def _longest_across(xy: FloatArray) -> FloatArray:
    """Turn a layout so that it is wide rather than tall."""
    centred = xy - xy.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    return np.asarray(centred @ axes.T)


# ---------------------------------------------------------------------- figures


def _new_figure(width: float, height: float) -> Figure:
    layout = ConstrainedLayoutEngine(h_pad=0.05, w_pad=0.06, hspace=0.02, wspace=0.02)
    return _Picture(figsize=(width, height), layout=layout, facecolor="white")


def _size(ax: Axes) -> tuple[float, float]:
    """The width and height of an axes in inches, before the layout gives up room for labels."""
    box, figure = ax.get_position(), ax.figure
    return float(figure.bbox.width * box.width / figure.dpi), float(figure.bbox.height * box.height / figure.dpi)


def _draw_lines(ax: Axes, ends: Any, colour: Any, width: float, zorder: int) -> LineCollection:
    lines = LineCollection(ends, colors=colour, linewidths=width, zorder=zorder)
    ax.add_collection(lines, autolim=False)
    return lines


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=_TITLE, color=INK, pad=5, math_fontfamily="stix")


# ------------------------------------------------------------------ the boundary


def _check_graph(graph: Graph, system: FrameletSystem | None = None) -> None:
    if not isinstance(graph, Graph):
        raise TypeError(f"the first argument must be a pegfan.Graph, got {type(graph).__name__}")
    if system is None:
        return
    if not isinstance(system, FrameletSystem):
        raise TypeError(f"the second argument must be a pegfan.FrameletSystem, got {type(system).__name__}")
    if system.n != graph.n:
        raise ValueError(
            f"the framelet system has {system.n} nodes, the graph {graph.n}; build it on this graph's tree"
        )


def _check_signal(values: ArrayLike, n: int) -> FloatArray:
    try:
        f = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a signal is one number per node: {error}") from error
    if f.shape != (n,):
        fix = "choose one column of it" if f.ndim == 2 and len(f) == n else "give one number per node"
        raise ValueError(f"the signal has shape {f.shape}, the graph {n} nodes; {fix}")
    if not np.isfinite(f).all():
        node = int(np.flatnonzero(~np.isfinite(f))[0])
        raise ValueError(f"the signal at node {node} is {f[node]}; fill missing values before drawing")
    return f


def _check_rows(vectors: Sequence[int], total: int) -> IntArray:
    rows = np.asarray(vectors)
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iu":
        raise ValueError(f"vectors must be a list of row numbers of system.matrix(j0), got {vectors!r}")
    if rows.min() < 0 or rows.max() >= total:
        culprit = rows[(rows < 0) | (rows >= total)][0]
        raise ValueError(f"vectors holds {culprit}; system.matrix(j0) has the rows 0 to {total - 1}")
    return rows.astype(np.int64)
