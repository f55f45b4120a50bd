"""The paper's figures, from real objects and from what has run; each as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pegfan._atomic import write_figure
from pegfan._extras import need
from pegfan.channels import make_channels
from pegfan.channels.names import formula, group
from pegfan.datasets import synthetic
from pegfan.experiments.store import Store
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.paper import published
from pegfan.paper.cells import Options, Records, Score, lookup
from pegfan.paper.documents import Document, Picture, write
from pegfan.paper.published import GAMMAS, Model
from pegfan.paper.synthetic import ON_SX, Synthetic
from pegfan.paper.times import Measured, Table4
from pegfan.trees import Hierarchy, build_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pegfan.channels import Channels
    from pegfan.models import ChannelNetwork

__all__ = ["architecture", "save", "synthetic_lines", "training_times", "write_figures"]

_STYLES = {
    "a12": ("#7d3c7a", "o"),
    "a8": ("#b07aad", "s"),
    "a4": ("#d6b4d4", "^"),
    "b4": ("#0072b2", "o"),
    "c4": ("#56b4e9", "s"),
    "r3": ("#d55e00", "o"),
    "r3 all": ("#e69f00", "s"),
    "r8": ("#8c564b", "^"),
    "r8 all": ("#b59a7a", "v"),
}
"""PEGFAN in blue (with hops) and purple (without), FSGNN in orange and brown."""


def write_figures(options: Options, store: str | Path, folder: str | Path, command: str) -> Document:
    """Draw every figure that can be drawn, and a page that shows them: those of tables need their runs in the store.

    Parameters
    ----------
    options
        Those that the tables were made with.
    store
        The folder of runs.
    folder
        Where the pictures go, a PNG and an SVG each.
    command
        The command line that the page shows.
    """
    need("matplotlib", "plots")
    records, timed = (
        lookup(Store(place)) if place.is_dir() else lambda _: () for place in (Path(store), Path(store) / "times")
    )
    drawings: dict[str, tuple[str, Callable[[], Figure | None], str]] = {
        "framelets": (
            "Figure 1",
            _framelets,
            "the path of eight nodes of Example 1, its tree of four levels, and the Haar basis on it.",
        ),
        "partition-permutation": (
            "Figure 2",
            _partition_permutation,
            "the two children of s_(1,1,1) = {1, 2} change places in the tree of Figure 1, and nothing else does. The "
            "framelet of that cluster changes its sign.",
        ),
        "architecture": (
            "Figure 3",
            _architecture,
            "the network, drawn from the model: type c, h = 8, on a generated graph.",
        ),
        "table1": (
            "Figure 4 (a)",
            lambda: _lines(options, 1, records),
            "Table I as lines: accuracy against γ, ours (mean and spread over graphs) and the paper's.",
        ),
        "table2": (
            "Figure 4 (b)",
            lambda: _lines(options, 2, records),
            "Table II as lines: features of closer classes.",
        ),
        "table4": (
            "Figure 5",
            lambda: _times(options, timed),
            "Table IV as a plot, (a) chameleon and (b) squirrel: a dot for every setting, a bar for their mean. The "
            "paper's seconds are of another machine, a graphics card.",
        ),
        "ccns": (
            "Figure 6",
            _ccns,
            "cross-class neighbourhood similarity (Definition 1) of the generated graphs, seed 0.",
        ),
    }
    part = "-quick" if options.quick else ""
    document = Document(f"figures{part}", "The paper's figures", command)
    for name, (number, draw, words) in drawings.items():
        figure, caption = draw(), f"{number}: {words}"
        if figure is None:
            document.blocks.append(f"{caption} Not drawn: its runs are not in the store.")
            continue
        files = save(figure, Path(folder) / f"{name}{part if name.startswith('table') else ''}")
        document.blocks.append(Picture(files[0].name, caption))
        about = {"figure": name, "paper": number, "caption": caption, "files": [file.name for file in files]}
        document.cells.append(about)
    document.summary["pictures"] = sum(len(cell["files"]) for cell in document.cells)
    write(document, folder)
    return document


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(f"{path.name}.{suffix}") for suffix in ("png", "svg")]
    with rc_context({"svg.hashsalt": "pegfan", "svg.fonttype": "path"}):
        for file, metadata in zip(files, ({"Software": None}, {"Date": None, "Creator": None}), strict=True):
            write_figure(figure, file, metadata=metadata)
    return files


def _path() -> tuple[Graph, Hierarchy]:
    """The graph G_1 and the tree P_4 of Example 1: a path of eight nodes, named 1 to 8 as there, and its pairs."""
    path = Graph.from_edges(np.column_stack([np.arange(7), np.arange(1, 8)]), node_names=np.arange(1, 9))
    return path, Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])


def _framelets() -> Figure:
    from pegfan import plots

    graph, tree = _path()
    return plots.framelets(graph, FrameletSystem(tree))


def _partition_permutation() -> Figure:
    """The children of s_(1,1,1) = {1, 2} swapped."""
    from pegfan import plots

    graph, tree = _path()
    return plots.partition_permutation(graph, tree, (1, 1, 1), [1, 0])


def _ccns() -> Figure:
    from pegfan import plots

    return plots.ccns({f"γ = {gamma:g}": synthetic(gamma, n_features=0) for gamma in GAMMAS})


def _architecture() -> Figure:
    """Of type c on a generated graph of the paper's."""
    from pegfan.models import PEGFAN

    graph = synthetic(0.0)
    system = FrameletSystem(build_tree(graph, "ward", h=8))
    channels = make_channels(graph, system, kind="c", regime="heterophily")
    return architecture(channels, PEGFAN(channels.widths, classes=graph.n_classes))


def architecture(channels: Channels, network: ChannelNetwork) -> Figure:
    """Draw a network as it is: its channels by name and width, their layers, and how they come together.

    Parameters
    ----------
    channels
        What it is given.
    network
        Made for these channels.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan.models import FSGNN
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3))
    >>> channels = pf.channels.make_fsgnn_channels(graph, hops=1, regime="all")
    >>> figure = architecture(channels, FSGNN(channels.widths, classes=2))
    >>> figure.axes[0].texts[0].get_text()
    '$X$'
    """
    from matplotlib.figure import Figure

    if tuple(channels.widths) != network.widths:
        raise ValueError(f"the network takes channels of widths {network.widths}, these have {tuple(channels.widths)}")
    shown = _some(len(channels))
    rows = len(shown)
    figure = Figure(figsize=(11.0, 0.9 + 0.52 * rows), layout="constrained", facecolor="white")
    ax = figure.add_subplot()
    hidden = int(network.channel_layers[0].out_features)  # type: ignore[arg-type]
    n, classes = _number(channels.n), network.output.out_features
    centre = (rows - 1) / 2
    norm = "N" if network.hop_normalize else None
    for row, i in enumerate(shown):
        y = rows - 1 - row
        if i is None:
            for x in (0.95, 3.25, 5.0, 6.35):
                ax.text(x, y, "⋮", ha="center", va="center", color=_GREY, fontsize=12)
            continue
        channel = channels[i]
        width = _number(channels.widths[i])
        _box(ax, 0.95, y, 1.9, formula(channel), group(channel), f"${n} \\times {{{width}}}$")
        _box(ax, 3.25, y, 1.5, f"$W_{{{i + 1}}},\\ b_{{{i + 1}}}$", "layer", f"${{{width}}} \\to {hidden}$")
        _box(ax, 5.0, y, 0.9, f"${norm}$" if norm else "–", "layer")
        _box(ax, 6.35, y, 0.9, f"$α_{{{i + 1}}}$", "attention")
        for left, right in ((1.9, 2.5), (4.0, 4.55), (5.45, 5.9)):
            _arrow(ax, left, y, right, y)
        _arrow(ax, 6.8, y, 7.6, centre + (y - centre) * 0.82)
    joined = len(channels) * hidden
    _tall(ax, 7.6, centre, rows, f"concatenate:  ${n} \\times {_number(joined)}$")
    steps = {
        8.5: "ReLU",
        9.4: f"dropout {network.dropout:g}",
        10.3: f"$W, b$:  ${_number(joined)} \\to {classes}$",
        11.2: f"log softmax:  ${n} \\times {classes}$",
    }
    for x, text in steps.items():
        _arrow(ax, x - 0.4, centre, x, centre)
        _tall(ax, x, centre, min(rows, 6), text)
    for x, text in ((0.95, "channels"), (3.25, "linear"), (5.0, "row norm"), (6.35, "attention")):
        ax.text(x, rows - 0.25, text, ha="center", va="bottom", color=_GREY, fontsize=9)
    total = sum(parameter.numel() for parameter in network.parameters())
    words = f"{len(channels)} channels, {total:,} parameters"
    ax.text(11.7, -0.75, words, ha="right", va="center", color=_GREY, fontsize=9)
    ax.set_xlim(-0.1, 11.8)
    ax.set_ylim(-1.0, rows + 0.15)
    ax.axis("off")
    return figure


_INK, _GREY = "#363b42", "#7a828c"
_FILLS = {
    **dict.fromkeys(("features", "other"), ("#f3f4f6", "#7a828c")),
    "hops": ("#fdeee3", "#d55e00"),
    "scales": ("#e5f1f9", "#0072b2"),
    "layer": ("#f3f4f6", "#b8bec6"),
    "attention": ("#f4ebf3", "#7d3c7a"),
}


def _some(count: int, most: int = 14) -> list[int | None]:
    """Channel numbers; of many the first and the last, with a gap."""
    return [*range(count)] if count <= most else [*range(most - 5), None, *range(count - 4, count)]


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "{,}")


def _box(ax: Axes, x: float, y: float, width: float, text: str, kind: str, small: str = "") -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, edge = _FILLS[kind]
    shape = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x - width / 2, y - 0.37), width, 0.74, shape, fc=fill, ec=edge, lw=0.9))
    style: dict[str, Any] = {"ha": "center", "va": "center", "math_fontfamily": "stix"}
    ax.text(x, y + (0.13 if small else 0.0), text, color=_INK, fontsize=10.5, **style)
    if small:
        ax.text(x, y - 0.2, small, color=_GREY, fontsize=8, **style)


def _tall(ax: Axes, x: float, centre: float, rows: float, text: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, edge = _FILLS["layer"]
    shape = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x, centre - rows / 2 + 0.12), 0.5, rows - 0.24, shape, fc=fill, ec=edge, lw=0.9))
    style: dict[str, Any] = {"ha": "center", "va": "center", "math_fontfamily": "stix"}
    ax.text(x + 0.25, centre, text, rotation=90, color=_INK, fontsize=9, **style)


def _arrow(ax: Axes, x0: float, y0: float, x1: float, y1: float) -> None:
    style = {"arrowstyle": "-|>", "color": _GREY, "lw": 0.8, "shrinkA": 1, "shrinkB": 0}
    ax.annotate("", (x1, y1), (x0, y0), arrowprops=style)


def _lines(options: Options, number: int, records: Records) -> Figure | None:
    table = Synthetic(options, number)
    scores = {cell: score for cell, score in table.scores(records).items() if score}
    return synthetic_lines(scores, table.printed, f"Table {'I' * number}") if scores else None


def synthetic_lines(
    ours: Mapping[tuple[float, Model], Score], printed: Mapping[Model, Mapping[float, float]], title: str
) -> Figure:
    """Draw accuracy against γ: our means and spreads over graphs on the left, the paper's numbers on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.6), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True)
    # The paper's row of type a, h = 4 looks like the dashed line, which it does not name.
    for model in (*printed, *{of for _, of in ours} & {ON_SX}):
        colour, marker = _STYLES[model.printed.key]
        line: dict[str, Any] = {"color": colour, "marker": marker, "ms": 4.5, "lw": 1.5, "label": model.label}
        line["ls"] = "--" if model == ON_SX else "-"
        gammas = [gamma for gamma in GAMMAS if (gamma, model) in ours]
        means, spreads = (np.array([getattr(ours[g, model], name) for g in gammas]) for name in ("mean", "std"))
        left.plot(gammas, means, **line)
        left.fill_between(gammas, means - spreads, means + spreads, color=colour, alpha=0.13, lw=0)
        if model in printed:
            right.plot(list(printed[model]), list(printed[model].values()), **line)
    for ax, name in ((left, "ours, mean and spread over graphs"), (right, "the paper")):
        _plain_axes(ax, f"{title}: {name}")
        ax.set_xticks(GAMMAS)
        ax.set_xlabel("γ", color=_INK)
    left.set_ylabel("test accuracy, %", color=_INK)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8.5, labelcolor=_INK)
    return figure


_LEGEND = (
    "ours: CPU seconds, one core",
    "ours: elapsed, with all workers",
    "the paper: RTX 3090, another machine (mean, range)",
)


def _times(options: Options, records: Records) -> Figure | None:
    table = Table4(options)
    found = {row: seconds for row in table.rows if (seconds := table.measured(records, *row))}
    if found and len(found) < len(table.rows):
        return None  # half a comparison misleads
    return training_times(found, len(table.splits)) if found else None


def training_times(measured: Mapping[tuple[str, Model], Measured], splits: int) -> Figure:
    """Draw seconds of training: every setting as a dot, its mean as a bar, and the paper's range beside it."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for name, _ in measured))
    figure = Figure(figsize=(max(0.6 + 4.6 * len(names), 8.0), 4.2), layout="constrained", facecolor="white")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        rows = [(model, seconds) for (of, model), seconds in measured.items() if of == name]
        for place, (model, seconds) in enumerate(rows):
            cpu, wall, other = _LEGEND if not place else (None, None, None)
            _dots(ax, place - 0.27, seconds.cpu, "#0072b2", cpu)
            _dots(ax, place, seconds.wall, "#56b4e9", wall)
            theirs = published.TABLE4[name, model]
            if splits == 10:
                ax.vlines(place + 0.27, theirs.shortest, theirs.longest, color="#b8bec6", lw=5, zorder=1)
                ax.plot([place + 0.27], [theirs.mean], "_", color=_INK, ms=13, mew=2, label=other)
        _plain_axes(ax, name.capitalize())
        words = [f"{model.label}\n{seconds.channels} channels" for model, seconds in rows]
        short = [text.replace("PEGFAN type c, ", "PEGFAN c\n").replace("FSGNN ", "FSGNN\n") for text in words]
        ax.set_xticks(range(len(rows)), short)
        ax.set_xlim(-0.6, len(rows) - 0.4)
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel(f"seconds of {'ten' if splits == 10 else splits} splits", color=_INK)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5, labelcolor=_INK)
    return figure


def _dots(ax: Axes, x: float, values: Sequence[float], colour: str, label: str | None) -> None:
    """Every value as a dot, spread sideways in the order of the settings, and the mean as a bar."""
    offsets = np.linspace(-0.07, 0.07, len(values)) * (len(values) > 1)
    ax.plot(x + offsets, values, "o", color=colour, ms=3.6, alpha=0.75, mew=0, label=label)
    ax.hlines(float(np.mean(values)), x - 0.11, x + 0.11, color=_INK, lw=2, zorder=3)


def _plain_axes(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=10.5, color=_INK, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#b8bec6")
    ax.tick_params(colors=_INK, labelsize=8.5, length=3)
    ax.grid(axis="y", color="#e6e8eb", lw=0.7)
    ax.set_axisbelow(True)
