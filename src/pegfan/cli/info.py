"""``pegfan info``."""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from pegfan.cli._options import PICTURES, Force, Json, Pieces, Reading, Sources, check_output, read
from pegfan.cli._shell import Fail, as_options, command, console
from pegfan.cli._show import (
    bar,
    make_table,
    print_facts,
    print_files,
    print_json,
    print_table,
    print_warnings,
    save_picture,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pegfan.datasets import ReadReport, Source
    from pegfan.graph import Graph
    from pegfan.results import TargetFacts

_FEW = 10  # nodes of a class below which its accuracy means little
_MANY_CLASSES = 16
_WIDE = 6  # characters of a cell that holds a number


@command("pegfan info nodes.csv edges.csv --label kind -o ccns.png")
def info(
    *,
    graph: Sources,
    reading: Reading,
    picture: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the CCNS heat map: .png, .svg or .pdf.")
    ] = None,
    pieces: Pieces,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Describe a graph: sizes, components, degrees, classes, homophily, and what the reader guessed.

    CCNS is the cross-class neighbourhood similarity: where the diagonal is darkest, classes have
    different neighbours, and a network can use that to tell them apart.
    """
    if pieces.check(max_bytes=reading.max_bytes, output=picture):
        _info_in_pieces(graph, reading, pieces, as_json)
        return
    check_output(picture, force, PICTURES, "A picture")
    source, known, report = read(graph, **vars(reading))
    if picture is not None and known.labels is None:
        raise Fail("The graph has no classes to compare, so there is no heat map; name their column with --label.")
    facts = _facts(source, known, report)
    if picture is not None:
        from pegfan import plots

        save_picture(plots.ccns(known), picture)
    if as_json:
        print_json({**facts, "picture": picture})
        return
    _print(source, facts, report)
    print_files({"Picture": picture})


def _info_in_pieces(where: list[str], reading: Reading, pieces: Pieces, as_json: bool) -> None:
    from pegfan.cli._large import opened, print_kept
    from pegfan.datasets import Source

    source = Source.of(*where, **vars(reading))
    with opened(pieces, "info", where, vars(reading), None, as_json) as graph:
        found, report, folder = graph.info(), graph.report, graph.work.folder
    facts = {"source": source.to_dict(), "target": None, "splits": [], **found}
    facts |= {"read": {**asdict(report), "schema": report.schema.to_dict()}}
    facts["warnings"] = _warnings(source, facts)
    if as_json:
        print_json(facts)
        return
    _print(source, facts, report, f" --memory {pieces.memory}")
    print_kept(folder)


def _facts(source: Source, graph: Graph, report: ReadReport | None) -> dict[str, Any]:
    from pegfan import measures

    known, parts = graph.labels is not None, measures.component_sizes(graph)
    facts: dict[str, Any] = {
        "source": source.to_dict(),
        "graph": graph.describe().to_dict(),
        "metric": graph.metric,
        "degrees": _degrees(graph),
        "components": {"count": len(parts), "largest": parts[:5]},
        "duplicates": asdict(measures.duplicates(graph)),
        "classes": _classes(graph),
        "target": None if graph.targets is None else asdict(_target(graph)),
        "ccns": _ccns(graph) if known else None,
        "splits": [[len(part) for part in split] for split in graph.splits],
        "read": None if report is None else {**asdict(report), "schema": report.schema.to_dict()},
    }
    return facts | {"warnings": _warnings(source, facts)}


def _degrees(graph: Graph) -> dict[str, Any]:
    from pegfan import measures

    found = asdict(measures.degrees(graph))
    sides = {"out": "outgoing", "in": "incoming"} if graph.directed else {"degree": "outgoing"}
    return {**{name: found[side] for name, side in sides.items()}, "histogram": found["histogram"]}


def _ccns(graph: Graph) -> NDArray[Any]:
    """The similarities of the classes that have nodes."""
    from pegfan import measures

    held = measures.class_sizes(graph) > 0
    return measures.ccns(graph)[held][:, held]


def _classes(graph: Graph) -> list[dict[str, Any]]:
    from pegfan import measures

    if graph.labels is None:
        return []
    counts = measures.class_sizes(graph)
    return [{"name": str(k), "nodes": int(n)} for k, n in zip(graph.classes.tolist(), counts, strict=True) if n]


def _target(graph: Graph) -> TargetFacts:
    from pegfan.results import data

    found = data(graph).target
    assert found is not None
    return found


def _warnings(source: Source, facts: dict[str, Any]) -> list[str]:
    from pegfan.datasets.registry import DATASETS
    from pegfan.measures import Description
    from pegfan.results import data_cautions

    found, size = [], Description(**facts["graph"])
    if source.name in DATASETS and DATASETS[source.name].note and not source.files:
        found.append(DATASETS[source.name].note)
    if not _predicts(facts):
        found.append("No classes: name their column with --label to predict it.")
    small = [entry["name"] for entry in facts["classes"] if entry["nodes"] < _FEW]
    if small:
        found.append(
            f"Classes with fewer than {_FEW} nodes: {', '.join(small[:8])}{', ...' if len(small) > 8 else ''}."
        )
    found += data_cautions(size, facts["duplicates"]["test_in_train"] or 0.0).values()
    if size.components - size.isolated > 1:
        found.append("The graph is in several pieces; a tree joins them near its root.")
    return found


def _predicts(facts: dict[str, Any]) -> bool:
    """Whether there are classes or numbers to predict."""
    return bool(facts["graph"]["classes"]) or facts["target"] is not None


def _print(source: Source, facts: dict[str, Any], report: ReadReport | None, more: str = "") -> None:
    _print_sizes(source, facts)
    _print_degrees(facts["degrees"])
    if facts["classes"]:
        _print_classes(facts)
        if facts["ccns"] is not None:
            console.print(_heat_map(facts["ccns"], [entry["name"] for entry in facts["classes"]]))
    if report is not None:
        console.print("[bold]What was read, and guessed[/bold]")
        for line in as_options(str(report)).splitlines():
            console.print(f"[cyan]{escape(line[:10])}[/cyan]{escape(line[10:])}", soft_wrap=True)
        console.print()
    print_warnings(facts["warnings"])
    console.print(f"Next: [bold]{escape(_next(source, facts) + more)}[/bold]", soft_wrap=True)


def _next(source: Source, facts: dict[str, Any]) -> str:
    """The command that goes on from here: training where there are classes."""
    where = shlex.join(source.where)
    if not _predicts(facts):
        return f"pegfan tree {where}"
    label = source.options.get("label")
    return f"pegfan train {where}{f' --label {shlex.quote(label)}' if isinstance(label, str) else ''} -o out"


def _print_sizes(source: Source, facts: dict[str, Any]) -> None:
    from pegfan.metrics import amount

    size, twins = facts["graph"], facts["duplicates"]
    edges = f"{size['edges']:,} {'directed' if size['directed'] else 'undirected'}"
    kind = "weighted" if size["weighted"] else "unweighted"
    largest = ", ".join(f"{count:,}" for count in facts["components"]["largest"])
    several = f", largest {largest}" if size["components"] > 1 else ""
    shared = f"{twins['neighbours']:,} nodes share all neighbours with another"
    shown = {
        "nodes": f"{size['nodes']:,}"
        + (f"; {size['things']:,} things among them, which are not predicted" if size["things"] else ""),
        "edges": f"{edges}, {kind}, {size['self_loops']:,} self loops; density {size['density']:.2g}",
        "components": f"{size['components']:,}{several}; {size['isolated']:,} nodes without edges",
        "features": f"{size['features']:,}" if size["features"] else "none",
        "classes": f"{size['classes']:,}; {size['labelled']:,} nodes labelled" if size["classes"] else "none",
    }
    if facts["target"] is not None:
        del shown["classes"]
        shown["numbers to predict"] = (
            "{low} to {high}, median {median}, mean {mean}, deviation {std}; ".format(
                **{name: amount(value) for name, value in facts["target"].items()}
            )
            + f"{size['labelled']:,} nodes have one"
        )
    if facts["splits"]:
        shown["splits"] = f"{len(facts['splits'])}; first {' / '.join(f'{k:,}' for k in facts['splits'][0])}"
    shown["duplicates"] = shared + ("" if twins["features"] is None else f", {twins['features']:,} all features")
    if size["edge_homophily"] is None and size["adjusted_homophily"] is not None:
        shown["homophily"] = (
            f"adjusted {size['adjusted_homophily']:.3f}: the correlation of numbers at the ends of edges"
        )
    if size["edge_homophily"] is not None:
        kinds = ", ".join(f"{kind} {size[f'{kind}_homophily']:.3f}" for kind in ("edge", "node", "adjusted"))
        shown |= {"homophily": kinds, "label informativeness": f"{size['label_informativeness']:.3f}"}
    print_facts(escape(source.name), shown)


def _print_degrees(degrees: dict[str, Any]) -> None:
    for key, name in {"degree": "degree", "out": "out-degree", "in": "in-degree"}.items():
        if key in degrees:
            words = "{min:,} to {max:,}, median {median:g}, mean {mean:.1f}".format(**degrees[key])
            console.print(f"[bold]{name}[/bold]  {words}")
    counts = degrees["histogram"]
    most, top = max(counts.values()), (degrees.get("degree") or degrees["out"])["max"]
    for low, count in counts.items():
        high = min(2 * low - 1, top)
        span = f"{low:,}-{high:,}" if high > low else f"{low:,}"
        console.print(f"  {span:>15} {count:>9,} {bar(count / most, 30)}")
    console.print()


def _print_classes(facts: dict[str, Any]) -> None:
    table = make_table("Classes", "class", "nodes", "share", "<")
    total = max(facts["graph"]["labelled"], 1)
    most = max(entry["nodes"] for entry in facts["classes"])
    for entry in facts["classes"][:_MANY_CLASSES]:
        share = entry["nodes"] / total
        table.add_row(escape(entry["name"]), f"{entry['nodes']:,}", f"{share:.1%}", bar(entry["nodes"] / most, 30))
    if len(facts["classes"]) > _MANY_CLASSES:
        table.add_row(f"and {len(facts['classes']) - _MANY_CLASSES} more", "", "", "")
    print_table(table)


def _heat_map(matrix: NDArray[Any], names: list[str]) -> Text:
    """The CCNS matrix in blocks of colour, the numbers in them while they fit."""
    text = Text("Cross-class neighbourhood similarity (CCNS)\n", style="bold")
    shown = matrix[:_MANY_CLASSES, :_MANY_CLASSES]
    width = _WIDE if len(shown) <= 10 else 3
    margin = min(max(map(len, names)), 14)
    heads = [name[: width - 1].rjust(width) for name in names[: len(shown)]]
    text.append(" " * (margin + 1) + "".join(heads) + "\n", style="cyan")
    for name, row in zip(names, shown, strict=False):
        text.append(f"{name[:margin]:<{margin}} ", style="cyan")
        for value in row:
            text.append(_cell(value, width), style=_shade(value))
        text.append("\n")
    if len(matrix) > len(shown):
        text.append(f"the first {len(shown)} of {len(matrix)} classes; --json has them all\n", style="dim")
    return text


def _cell(value: float, width: int) -> str:
    if not math.isfinite(value):
        return "-".rjust(width)
    return f"{value:.2f}".rjust(width) if width == _WIDE else f"{min(round(100 * value), 99):02d}".rjust(width)


def _shade(value: float) -> str:
    """White to blue for 0 to 1, on a text that stays readable."""
    if not math.isfinite(value):
        return "dim"
    red, green, blue = (round(255 + (dark - 255) * min(max(value, 0.0), 1.0)) for dark in (8, 48, 107))
    return f"{'white' if value > 0.5 else 'black'} on rgb({red},{green},{blue})"
