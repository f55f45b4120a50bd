"""Figures of models against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from pegfan._checks import check_kind
from pegfan.metrics import METRICS
from pegfan.plots import _drawing as drawing

if TYPE_CHECKING:
    from pegfan.comparison import Comparison


def comparison(found: Comparison) -> Figure:
    """Draw a comparison of models: their mean test metrics, and how far from the best they may be.

    A line is the 95% interval of the difference to the best, drawn from the best's mean, which is the vertical line:
    where the two meet, the difference means nothing, and the model is grey. Small dots are single splits.

    Parameters
    ----------
    found
        What `pegfan.compare` gave.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import plots
    >>> graph = pf.datasets.synthetic(0.1, n=120, n_edges=900, n_features=6, splits=2)
    >>> found = pf.compare(graph, ["fsgnn"], tries=1, changes={"epochs": 5, "hidden": 4})
    >>> [text.get_text() for text in plots.comparison(found).axes[0].get_yticklabels()]
    ['FSGNN']
    """
    from pegfan.comparison import Comparison as Found

    check_kind(found, "found", Found)
    rows = [row for row in found.rows if row.test is not None]
    if not rows:
        raise ValueError("no model ran, so there is nothing to draw; the rows say why")
    figure = drawing.new_figure(6.4, 0.9 + 0.36 * len(rows))
    ax = figure.add_subplot()
    unit = 100 if METRICS[found.data.metric].percent else 1
    best = unit * (rows[0].test.mean or 0.0)  # type: ignore[union-attr]
    ax.axvline(best, color=drawing.PALE, linewidth=1.0, zorder=0)
    for place, row in enumerate(rows):
        assert row.test is not None
        colour = drawing.VERMILION if place == 0 else drawing.GREY if row.means_nothing else drawing.BLUE
        values = unit * np.array([value for value in row.test.per_split if value is not None])
        ax.scatter(values, np.full(len(values), place), s=7, color=colour, alpha=0.35, linewidth=0, zorder=1)
        if row.interval is not None:
            ax.plot([best + unit * end for end in row.interval], [place, place], color=colour, linewidth=2.0, zorder=2)
        ax.scatter([unit * (row.test.mean or 0.0)], [place], s=42, color=colour, edgecolor="white", zorder=3)
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the best on top
    ax.set_xlabel(f"test {METRICS[found.data.metric].title}", color=drawing.INK)
    ax.tick_params(length=0, labelsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    drawing.put_title(ax, found.title.replace("$", r"\$"))
    return figure
