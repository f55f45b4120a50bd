"""``pegfan tree``."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pegfan.cli._shell import (
    PICTURES,
    Directed,
    Force,
    Head,
    Id,
    Json,
    Label,
    Sources,
    Tail,
    check_choice,
    check_output,
    command,
    console,
    errors,
    grow_tree,
    make_table,
    percent,
    print_json,
    print_table,
    print_warnings,
    read,
    save_picture,
    writing,
)

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from pandas import DataFrame

    from pegfan.datasets import Source
    from pegfan.graph import Graph
    from pegfan.trees import Hierarchy

    FloatArray = NDArray[np.float64]

Method = Annotated[
    str,
    typer.Option(help="ward (the paper's), adjacency, matching (any size); auto is ward up to 20,000 nodes."),
]
Branching = Annotated[int, typer.Option("--h", min=2, help="The most children of a cluster.")]
MaxLevels = Annotated[int | None, typer.Option(min=2, help="The most levels; the root then holds what is left.")]
Direction = Annotated[str, typer.Option(help="How a directed graph is seen: symmetric, out (the authors' way), in.")]


@command("pegfan tree chameleon --h 8 -o tree.npz --picture levels.png")
def tree(
    graph: Sources,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the tree: .npz.")] = None,
    method: Method = "auto",
    h: Branching = 4,
    max_levels: MaxLevels = None,
    direction: Direction = "symmetric",
    label: Label = None,
    id_: Id = None,
    tail: Tail = None,
    head: Head = None,
    directed: Directed = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the levels over the graph: .png, .svg or .pdf.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Cluster a graph into a tree: level by level what it keeps together, and how much of it was chance.

    Labels are never looked at while it is built; where there are some, the table shows how much of their energy lies
    at each level. A tree suits signals whose energy lies at coarse levels.
    """
    check_tree_options(method, direction)
    check_output(output, force, (".npz",), "A tree")
    check_output(picture, force, PICTURES, "A picture")
    source, known, _ = read(graph, label=label, id=id_, source=tail, target=head, directed=directed)
    grown = grow_tree(known, method=method, h=h, max_levels=max_levels, direction=direction)
    with errors.status("measuring"):
        from pegfan.trees import quality

        levels = quality(known, grown).reset_index()
    warnings = _warnings(grown)
    if output is not None:
        with writing(output):
            grown.save(output)
    if picture is not None:
        _draw(known, grown, picture)
    if as_json:
        about = {"source": source.to_dict(), "info": grown.info, "clusters": grown.n_clusters, "levels": grown.K}
        rows = levels.to_dict("records")
        print_json({**about, "quality": rows, "warnings": warnings, "output": output, "picture": picture})
        return
    _print(source, grown, levels)
    print_warnings(warnings)
    for what, path in (("Tree", output), ("Picture", picture)):
        if path is not None:
            console.print(f"{what}: [bold]{escape(str(path))}[/bold]", soft_wrap=True)
    if output is None:
        console.print("Keep it with [bold]-o tree.npz[/bold].")


def check_tree_options(method: str, direction: str) -> None:
    """Refuse a method or a direction that nobody knows."""
    from pegfan.trees.build import BUILDERS, DIRECTIONS

    check_choice(method, ("auto", *BUILDERS), "--method")
    check_choice(direction, DIRECTIONS, "--direction")


_DRAWN = 500
"""The most nodes whose edges are drawn where nobody says where nodes are: layouts of larger graphs are hairballs."""


def stage(graph: Graph, grown: Hierarchy) -> tuple[Graph, FloatArray | None]:
    """What to draw on: the graph, or a mosaic of its nodes in the order of the leaves, on a Hilbert curve.

    Clusters are runs of leaves, so in the mosaic each of them is a patch, at every level.
    """
    import numpy as np
    from scipy.sparse import csr_array

    if graph.positions is not None or graph.n <= _DRAWN:
        return graph, None
    k = int(np.ceil(np.log2(graph.n) / 2))
    positions = np.empty((graph.n, 2))
    positions[grown.order] = _hilbert(((np.arange(graph.n) + 0.5) * 4**k / graph.n).astype(np.int64), k)
    return type(graph)(csr_array((graph.n, graph.n))), positions


def _hilbert(along: Any, k: int) -> FloatArray:
    """Points of the Hilbert curve on a grid of side 2^k, by their places along it."""
    import numpy as np

    x, y = np.zeros_like(along), np.zeros_like(along)
    for level in range(k):
        side, quarter = 2**level, along >> (2 * level)
        right, odd = (quarter >> 1) & 1, quarter & 1
        up = right ^ odd
        turned, flipped = up == 0, (up == 0) & (right == 1)
        x, y = np.where(flipped, side - 1 - x, x), np.where(flipped, side - 1 - y, y)
        x, y = np.where(turned, y, x) + side * right, np.where(turned, x, y) + side * up
    return np.column_stack([x, y]).astype(np.float64)


def _draw(graph: Graph, grown: Hierarchy, picture: Path) -> None:
    from pegfan import plots

    with errors.status("drawing"):
        small = stage(graph, grown)[1] is None
        save_picture(plots.levels(graph, grown) if small else _blocks(graph, grown), picture)


def _blocks(graph: Graph, grown: Hierarchy) -> Figure:
    """A large tree: where the edges are, and the clusters and classes, with nodes in the order of the leaves."""
    import numpy as np
    from matplotlib.figure import Figure

    n, bins = graph.n, min(graph.n, 320)
    place = np.empty(n, np.int64)
    place[grown.order] = np.arange(n) * bins // n
    arcs = graph.adjacency.tocoo()
    counts = np.zeros((bins, bins))
    np.add.at(counts, (place[arcs.coords[0]], place[arcs.coords[1]]), 1.0)
    figure = Figure(figsize=(10.2, 5.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    left.imshow(np.log1p(counts), cmap="Blues", extent=(0, n, n, 0), interpolation="nearest")
    for start, end in pairwise(grown.first_leaf(min(2, grown.K)).tolist()):
        left.plot([start, end, end, start, start], [start, start, end, end, start], color="#d1640a", linewidth=0.9)
    left.set_title("edges, nodes in the order of the leaves; boxes: level 2", fontsize=10)
    _icicle(right, graph, grown, bins)
    for ax in (left, right):
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize=8)
    return figure


def _icicle(ax: Axes, graph: Graph, grown: Hierarchy, bins: int) -> None:
    """A row a level, a colour a cluster, nested; below, the classes."""
    import numpy as np
    from matplotlib import colormaps

    leaves = ((np.arange(4 * bins) + 0.5) * graph.n / (4 * bins)).astype(np.int64)
    rows, names = [], []
    for level in range(1, grown.K):
        first = grown.first_leaf(level)
        middle = (first[1:] + first[:-1]) / (2 * graph.n)
        rows.append(colormaps["turbo"](middle[np.searchsorted(first, leaves, side="right") - 1]))
        names.append(f"level {level}: {grown.n_clusters[level - 1]:,}")
    if graph.labels is not None:
        colours = np.vstack([colormaps["tab20"](np.arange(max(graph.n_classes, 1)) % 20), [1, 1, 1, 1]])
        rows.append(colours[graph.labels[grown.order[leaves]]])  # no label, -1, is the white at the end
        names.append("classes")
    ax.imshow(np.array(rows), aspect="auto", extent=(0, graph.n, len(rows) - 0.5, -0.5), interpolation="nearest")
    ax.set_yticks(range(len(rows)), names)
    ax.set_title("clusters, level by level", fontsize=10)


def _warnings(grown: Hierarchy) -> list[str]:
    facts = grown.info
    found = []
    if facts["arbitrary"]:
        found.append(
            f"{facts['arbitrary']:,} choices were arbitrary: nodes that could be neither told apart nor shown to be "
            "symmetric at a bearable cost. Numbered otherwise, the graph may get another tree."
        )
    elif facts["tied"]:
        found.append(
            f"{facts['tied']:,} nodes are tied with another: numbered otherwise, symmetric nodes may be swapped in the "
            "tree, and nothing else changes."
        )
    if facts["capped"]:
        found.append("The tree was cut short by --max-levels: its root has more than h children.")
    return found


def _print(source: Source, grown: Hierarchy, levels: DataFrame) -> None:
    facts = grown.info
    about = f"{facts['method']}, at most {facts['h']} children, {grown.K} levels, {facts['tied']:,} nodes tied"
    console.print(f"[bold]Tree of {escape(source.name)}[/bold]  {about}")
    order = ("level", "clusters", "largest", "balance", "children", "edges inside", "label energy", "feature energy")
    shown = [name for name in order if name in levels.columns and levels[name].notna().any()]
    table = make_table("", *(name.replace(" ", "\n") for name in shown))
    table.title = None
    for row in levels[shown].to_dict("records"):
        table.add_row(*(_cell(name, row[name]) for name in shown))
    print_table(table)


def _cell(name: str, value: Any) -> str:
    if name in ("level", "clusters", "largest", "children"):
        return f"{int(value):,}"
    if name == "balance":
        return f"{value:.2f}"
    return percent(value)
