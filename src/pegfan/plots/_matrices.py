"""Figures of matrices: similarities between classes, and how dense projections and powers are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.graph import check_graph as require_graph
from pegfan.plots import _drawing as drawing


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

    if isinstance(graphs, list | tuple):
        raise TypeError("several graphs are given by title, as {title: graph, ...}; got a list without titles")
    titled = graphs if isinstance(graphs, Mapping) else {"": require_graph(graphs, "graphs")}
    if not titled:
        raise ValueError("no graphs given; pass at least one, by its title")
    matrices = {title: (similarity(graph), graph) for title, graph in titled.items()}
    columns = min(len(matrices), 3)
    rows = -(-len(matrices) // columns)
    figure = drawing.new_figure(2.6 * columns + 0.7, 2.6 * rows)
    axes = drawing.panels(figure, len(matrices), columns)
    for ax, (title, (matrix, graph)) in zip(axes, matrices.items(), strict=True):
        image = ax.imshow(matrix, vmin=0.0, vmax=1.0, cmap="Blues")
        names = list(map(str, graph.classes.tolist()))
        ticks = range(len(matrix)) if len(matrix) <= 12 else ()
        ax.set_xticks(ticks, names if ticks else ())
        ax.set_yticks(ticks, names if ticks else ())
        ax.tick_params(length=0, labelsize=8)
        ax.spines[:].set_visible(False)
        if ticks:
            for (i, j), value in np.ndenumerate(matrix):
                colour = "white" if value > 0.6 else "black"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
        drawing.put_title(ax, title)
    figure.colorbar(image, ax=axes, shrink=0.8, aspect=30).outline.set_visible(False)
    return figure


def density(graph: Graph, system: FrameletSystem, powers: int = 3, sample: int | None = None) -> Figure:
    """Draw the densities of `pegfan.channels.density` as bars, projections from coarse to fine, then the powers of A.

    Parameters
    ----------
    graph, system, powers, sample
        As for `pegfan.channels.density`.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> [float(bar.get_height()) for bar in plots.density(path, system, powers=1).axes[0].patches]
    [1.0, 1.0, 0.5, 0.375]
    """
    from pegfan.channels._density import density as count

    table = count(graph, system, powers, sample)
    figure = drawing.new_figure(1.2 + 0.45 * len(table), 3.0)
    ax = figure.add_subplot()
    places = np.arange(len(table))
    values = table["density"].to_numpy()
    for first, last, colour, label in (
        (0, system.K, drawing.BLUE, "projections $F_j$"),
        (system.K, len(table), drawing.VERMILION, "powers of $A$"),
    ):
        if first < last:
            ax.bar(places[first:last], values[first:last], color=colour, label=label)
    if (values > 0).any():
        ax.set_yscale("log")
    ax.set_xticks(places, [f"${name.replace('^', '^{') + '}' if '^' in name else name}$" for name in table.index])
    ax.set_ylabel("share of entries that are not zero")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
