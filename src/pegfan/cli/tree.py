"""``pegfan tree``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan.cli._options import PICTURES, Force, Growing, Json, Pieces, Reading, Sources, check_output, read
from pegfan.cli._shell import command, console, errors, literal
from pegfan.cli._show import (
    make_table,
    percent,
    print_files,
    print_json,
    print_table,
    print_warnings,
    save,
    save_picture,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from pegfan.datasets import Source
    from pegfan.trees import Hierarchy


@command("pegfan tree chameleon --h 8 -o tree.npz --picture levels.png")
def tree(
    *,
    graph: Sources,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the tree: .npz.")] = None,
    growing: Growing,
    reading: Reading,
    picture: Annotated[Path | None, typer.Option(help="Draw the levels over the graph: .png, .svg or .pdf.")] = None,
    pieces: Pieces,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Cluster a graph into a tree, and show level by level what it keeps together.

    Labels are not used to build it; if there are any, the table shows how much of their energy lies at each level. A
    tree suits signals whose energy lies at coarse levels.
    """
    growing.check()
    check_output(output, force, (".npz",), "A tree")
    if pieces.check(max_bytes=reading.max_bytes, picture=picture):
        _tree_in_pieces(graph, output, growing, reading, pieces, as_json)
        return
    check_output(picture, force, PICTURES, "A picture")
    source, known, _ = read(graph, **vars(reading))
    grown = growing.build(known)
    with errors.status("measuring"):
        from pegfan.framelets import quality

        levels = quality(known, grown).reset_index()
    warnings = _warnings(grown)
    if output is not None:
        save(output, lambda path: grown.save(path, known.ids))
    if picture is not None:
        from pegfan import layouts, plots

        with errors.status("drawing"):
            small = layouts.ground(known, grown)[0] is known
            save_picture((plots.levels if small else plots.tree_blocks)(known, grown), picture)
    if as_json:
        about = {"source": source.to_dict(), "info": grown.info, "clusters": grown.n_clusters, "levels": grown.K}
        rows = levels.to_dict("records")
        print_json({**about, "quality": rows, "warnings": warnings, "output": output, "picture": picture})
        return
    _print(source, grown, levels)
    print_warnings(warnings)
    print_files({"Tree": output, "Picture": picture})
    if output is None:
        console.print("Save it with [bold]-o tree.npz[/bold].")


def _tree_in_pieces(
    where: list[str], output: Path | None, growing: Growing, reading: Reading, pieces: Pieces, as_json: bool
) -> None:
    from pegfan.cli._large import opened, print_kept
    from pegfan.datasets import Source
    from pegfan.framelets.quality import shape

    settings = growing.in_pieces()
    source = Source.of(*where, **vars(reading))
    with opened(pieces, "tree", where, vars(reading), output, as_json) as graph:
        grown, folder = graph.tree(**settings), graph.work.folder
        if output is not None:
            save(output, lambda path: grown.save(path, graph.all_ids()))
    levels, warnings = shape(grown).reset_index(), _warnings(grown)
    if as_json:
        about = {"source": source.to_dict(), "info": grown.info, "clusters": grown.n_clusters, "levels": grown.K}
        print_json({**about, "quality": levels.to_dict("records"), "warnings": warnings, "output": output})
        return
    _print(source, grown, levels)
    print_warnings(warnings)
    print_files({"Tree": output})
    print_kept(folder)


def _warnings(grown: Hierarchy) -> list[str]:
    facts = grown.info
    found = []
    if facts["arbitrary"]:
        found.append(
            f"{facts['arbitrary']:,} nodes stand in an arbitrary order: it would have cost too much to tell them "
            "apart, or to show that they are symmetric. With nodes in another order, the graph may get another tree."
        )
    elif facts["tied"]:
        found.append(
            f"{facts['tied']:,} nodes are tied with another: with nodes in another order, symmetric ones may be "
            "swapped in the tree, and nothing else changes."
        )
    if facts["capped"]:
        found.append("The tree was cut short by --max-levels: its root has more than h children.")
    return found


def _print(source: Source, grown: Hierarchy, levels: DataFrame) -> None:
    facts = grown.info
    about = f"{facts['method']}, at most {facts['h']} children, {grown.K} levels, {facts['tied']:,} nodes tied"
    console.print(f"[bold]Tree of {literal(source.name)}[/bold]  {about}")
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
