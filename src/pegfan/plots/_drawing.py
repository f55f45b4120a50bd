"""What all figures share: colours, sizes, a graph with its edges, and checks of what is to be drawn."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_kind, kind_of
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.graph import check_graph as require_graph
from pegfan.layouts import is_flat

# Blue and vermilion of Okabe and Ito, which everybody can tell apart; the rest is grey.
BLUE, VERMILION = "#0072b2", "#d55e00"
INK, GREY, PALE, GROUND = "#363b42", "#7a828c", "#b8bec6", "#f3f4f6"
DIVERGING = LinearSegmentedColormap.from_list(
    "vermilion-blue", ["#8f3d00", VERMILION, "#f2b380", "#f1f1ef", "#86c1e6", BLUE, "#00446b"]
)
SEQUENTIAL = "viridis"
# Green to purple: children must not look like positive and negative values.
CHILDREN = LinearSegmentedColormap.from_list("green-purple", ["#00735a", "#5cb89c", "#b9b3bf", "#c58fbb", "#7d3c7a"])

TITLE, SMALL = 10.5, 7.5  # points
INCH = 72.0
MANY_EDGES = 20_000


class _Picture(Figure):
    """A figure that shows itself in a notebook even if pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    layout = ConstrainedLayoutEngine(h_pad=0.05, w_pad=0.06, hspace=0.02, wspace=0.02)
    return _Picture(figsize=(width, height), layout=layout, facecolor="white")


def size_of(ax: Axes) -> tuple[float, float]:
    """The width and height of an axes in inches, before the layout gives up room for labels."""
    box, figure = check_kind(ax, "ax", Axes).get_position(), ax.figure
    return float(figure.bbox.width * box.width / figure.dpi), float(figure.bbox.height * box.height / figure.dpi)


def draw_lines(ax: Axes, ends: Any, colour: Any, width: float, zorder: int) -> LineCollection:
    lines = LineCollection(ends, colors=colour, linewidths=width, zorder=zorder)
    ax.add_collection(lines, autolim=False)
    return lines


def put_title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=TITLE, color=INK, pad=5, math_fontfamily="stix")


def draw_graph(
    ax: Axes, graph: Graph, xy: FloatArray, node_size: float | None = None, values: FloatArray | None = None
) -> PathCollection:
    """Draw thin edges and the nodes over them; returns the nodes, to be coloured."""
    flat = is_flat(xy)
    width, height = size_of(ax)
    points = INCH * width / graph.n if flat else INCH * min(width, height) / np.sqrt(graph.n)
    usual = np.clip(0.35 * points, 1.0, 6.0) if values is None else np.clip(0.7 * points, 1.0, 9.0)
    diameter = float(usual) if node_size is None else node_size
    edges, _ = graph.edges()
    lines = draw_lines(ax, xy[edges], PALE, float(np.clip(0.13 * diameter, 0.15, 1.0)), 1)
    lines.set_rasterized(len(edges) > MANY_EDGES)  # keeps vector files small
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


def evenly(count: int, most: int) -> IntArray:
    """At most `most` of 0, ..., count − 1, evenly spaced."""
    if most < 1:
        raise ValueError(f"max_panels must be at least 1, got {most}")
    kept = min(count, most)
    return (np.arange(kept) * count // max(kept, 1)).astype(np.int64)


def column_count(panels: int) -> int:
    """At most four columns, the rows filled as evenly as can be."""
    rows = -(-panels // 4)
    return -(-panels // rows)


def panels(figure: Figure | SubFigure, count: int, columns: int) -> list[Axes]:
    """Axes for `count` panels, row by row; the last row may be shorter."""
    if not isinstance(figure, Figure | SubFigure):
        raise TypeError(f"figure must be a matplotlib Figure or SubFigure, got {kind_of(figure)}")
    grid = figure.subplots(-(-count // columns), columns, squeeze=False)
    for ax in grid.flat[count:]:
        ax.remove()
    return list(grid.flat[:count])


def check_graph(graph: Graph, system: FrameletSystem | None = None) -> None:
    require_graph(graph)
    if system is None:
        return
    if not isinstance(system, FrameletSystem):
        raise TypeError(f"the second argument must be a pegfan.FrameletSystem, got {type(system).__name__}")
    if system.n != graph.n:
        raise ValueError(
            f"the framelet system has {system.n} nodes, the graph {graph.n}; build it on this graph's tree"
        )


def check_signal(values: ArrayLike, n: int) -> FloatArray:
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
