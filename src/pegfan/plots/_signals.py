"""Figures of signals: their values on the nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure, SubFigure
from numpy.typing import ArrayLike

from pegfan._arrays import FloatArray
from pegfan._checks import check_mapping
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.layouts import coordinates, is_flat
from pegfan.plots import _drawing as drawing


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
    drawing.check_graph(graph)
    f = drawing.check_signal(values, graph.n)
    xy = coordinates(graph, positions)
    low, high = _limits(f) if limits is None else limits
    if ax is None:
        ax = drawing.new_figure(5.2, 1.3 if is_flat(xy) else 4.4).subplots()
    nodes = drawing.draw_graph(ax, graph, xy, node_size, values=f)
    usual = drawing.DIVERGING if low < 0 < high else drawing.SEQUENTIAL
    nodes.set_cmap(usual if cmap is None else cmap)
    nodes.set_clim(low, high)
    if title is not None:
        drawing.put_title(ax, title)
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
    drawing.check_graph(graph)
    check_mapping(values, "values")
    if not values:
        raise ValueError("no signals given; pass at least one, by its title")
    checked = [drawing.check_signal(f, graph.n) for f in values.values()]
    xy = coordinates(graph, positions)
    low, high = _limits(np.concatenate(checked)) if limits is None else limits
    flat = is_flat(xy)
    columns = 1 if flat else drawing.column_count(len(checked))
    rows = -(-len(checked) // columns)
    if figure is None:
        size = (6.0, 0.62 * rows + 0.2) if flat else (2.3 * columns + 0.7, 2.45 * rows)
        figure = drawing.new_figure(*size)
    axes = drawing.panels(figure, len(checked), columns)
    for ax, title, f in zip(axes, values, checked, strict=True):
        signal(graph, f, xy, ax, title=title, limits=(low, high), colorbar=False)
    _colour_bar(axes[0].collections[-1], axes, _extend(np.concatenate(checked), low, high))
    return figure.figure


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
    drawing.check_graph(graph, system)
    values = drawing.check_signal(f, graph.n)
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


def _extend(values: FloatArray, low: float, high: float) -> str:
    """Which ends of the colour bar are pointed, as there are values beyond them."""
    beyond = (bool(values.min() < low), bool(values.max() > high))
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[beyond]


def _colour_bar(nodes: Any, axes: list[Axes], extend: str) -> None:
    figure = axes[0].figure
    bar = figure.colorbar(nodes, ax=axes, fraction=0.05, pad=0.02, aspect=28, shrink=0.85, extend=extend)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, width=0.6, color=drawing.PALE, labelsize=drawing.SMALL, labelcolor=drawing.INK)
