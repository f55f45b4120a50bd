"""``pegfan transform``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan import _defaults as default
from pegfan.cli._options import (
    PICTURES,
    Force,
    Growing,
    Json,
    Pieces,
    Reading,
    Sources,
    check_choice,
    check_output,
    choices,
    read,
)
from pegfan.cli._shell import USAGE, Fail, command, console, errors, literal
from pegfan.cli._show import (
    bar,
    make_table,
    part_words,
    percent,
    print_files,
    print_json,
    print_table,
    save,
    save_picture,
)

if TYPE_CHECKING:
    from pegfan._arrays import FloatArray
    from pegfan.framelets import FrameletSystem
    from pegfan.graph import Graph
    from pegfan.large import LargeGraph
    from pegfan.trees import Hierarchy


@command("pegfan transform chameleon --signal degree --denoise sure -o degree.npz --picture degree.png")
def transform(
    *,
    graph: Sources,
    signal: Annotated[
        str,
        typer.Option(
            help="A column of the node table, the number of a feature from 0, degree, or label:NAME "
            "(1 on the nodes of that class, 0 elsewhere).",
            show_default=False,
        ),
    ],
    tree: Annotated[Path | None, typer.Option(help="A tree that pegfan tree wrote; by default one is built.")] = None,
    denoise: Annotated[
        str | None,
        typer.Option(metavar="RULE", help=f"Denoise: {', '.join(default.RULES)}, or a number as threshold."),
    ] = None,
    weights: Annotated[
        str, typer.Option(help="equal (the paper's): children have equal weights; size: framelets ignore constants.")
    ] = "equal",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write coefficients and parts (.npz), or one row per node (.csv)."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the signal and its parts: .png, .svg or .pdf.")] = None,
    growing: Growing,
    reading: Reading,
    pieces: Pieces,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Split a signal on the nodes by scale: show the energy of every level, denoise it, and put it together again.

    F_0 f is what the root keeps, F_j f what level j adds; together they are the signal.
    """
    in_pieces = pieces.check(max_bytes=reading.max_bytes, picture=picture)
    check_output(output, force, (".npz",) if in_pieces else (".npz", ".csv"), "The result")
    check_output(picture, force, PICTURES, "A picture")
    rule = _rule(denoise)
    check_choice(weights, ("size", "equal"), "--weights")
    growing.check()
    if in_pieces:
        _transform_in_pieces(graph, signal, tree, rule, weights, output, growing, reading, pieces, as_json)
        return
    source, known, _ = read(graph, **vars(reading))
    name, f = _signal(known, signal)
    grown = growing.build(known) if tree is None else _load_tree(tree, known.n, known.ids, reading.max_bytes)
    with errors.status("transforming"):
        result = _transform(grown, f, weights, rule)
    if output is not None:
        _write(output, known, f, result)
    if picture is not None:
        with errors.status("drawing"):
            save_picture(_draw(known, name, f, result), picture)
    if as_json:
        numbers = {key: result[key] for key in ("energy", "coefficients", "reconstruction_error", "removed")}
        about = {"source": source.to_dict(), "signal": name, "clusters": grown.n_clusters, "denoise": rule}
        print_json({**about, **numbers, "output": output, "picture": picture})
        return
    _print(name, source.name, grown, result)
    what = "Coefficients" if output and output.suffix == ".npz" else "Table"
    print_files({what: output, "Picture": picture})


def _transform_in_pieces(
    where: list[str],
    signal: str,
    tree: Path | None,
    rule: str | float | None,
    weights: str,
    output: Path | None,
    growing: Growing,
    reading: Reading,
    pieces: Pieces,
    as_json: bool,
) -> None:
    """Transform one signal of a graph beyond memory: a number per node and its coefficients fit, the graph need not."""
    from pegfan.cli._large import opened, print_kept
    from pegfan.datasets import Source

    settings = growing.in_pieces()
    source = Source.of(*where, **vars(reading))
    with opened(pieces, "transform", where, vars(reading), output, as_json) as graph:
        name, f = _signal_in_pieces(graph, signal)
        grown = graph.tree(**settings) if tree is None else _load_tree(tree, graph.n, graph.all_ids())
        result, kept = _transform(grown, f, weights, rule, parts=False), graph.work.folder
        if output is not None:
            _write(output, None, f, result)
    if as_json:
        about = {"source": source.to_dict(), "signal": name, "clusters": grown.n_clusters, "denoise": rule}
        numbers = {key: result[key] for key in ("energy", "coefficients", "reconstruction_error", "removed")}
        print_json({**about, "levels": grown.K, **numbers, "output": output})
        return
    _print(name, source.name, grown, result)
    print_files({"Coefficients": output})
    print_kept(kept)


def _signal_in_pieces(graph: LargeGraph, wanted: str) -> tuple[str, FloatArray]:
    """The signal that the command line asks for, and what to call it; only its column is read."""
    from types import SimpleNamespace

    import numpy as np

    from pegfan.large import arcs

    names = [str(name) for name in graph.about["columns"]]
    known = SimpleNamespace(labels=None, classes=np.array(graph.about["classes"] or []))
    if graph.tables.nodes.has("labels"):
        known.labels = graph.labels
    if wanted not in names and wanted == "degree":
        return "degree", arcs.degrees(graph.work, graph.arcs).load("degrees").astype(np.float64)
    if wanted not in names and wanted.startswith("label:"):
        return wanted, _indicator(known, wanted.removeprefix("label:"))  # type: ignore[arg-type]
    slabs = graph.tables.features
    if slabs is None or (wanted not in names and not (wanted.isdecimal() and int(wanted) < len(names))):
        raise Fail(_no_signal(known, wanted, names, len(names)))  # type: ignore[arg-type]
    place = names.index(wanted) if wanted in names else int(wanted)
    slab, about = next((k, one) for k, one in enumerate(slabs.results) if one["start"] <= place < one["stop"])
    values = slabs.load("values", slab, mmap=True)[:, place - about["start"]]
    return names[place], np.asarray(values, np.float64)


def _rule(denoise: str | None) -> str | float | None:
    if denoise is None or denoise in default.RULES:
        return denoise
    value = -1.0
    with contextlib.suppress(ValueError):
        value = float(denoise)
    if not 0 <= value < float("inf"):
        raise Fail(f"--denoise is {', '.join(default.RULES)} or a number of at least 0, not {denoise}.", USAGE)
    return value


def _load_tree(path: Path, n: int, ids: Iterable[Any], max_bytes: str | None = None) -> Hierarchy:
    """A tree that was kept, if it is of just these nodes."""
    from pegfan import Hierarchy

    tree = Hierarchy.load(path, max_bytes)
    if tree.n != n:
        raise Fail(f"{path} is a tree of {tree.n:,} nodes, and the graph has {n:,}; build one with pegfan tree.")
    return Hierarchy.load(path, max_bytes, ids=ids)


def _signal(graph: Graph, wanted: str) -> tuple[str, FloatArray]:
    """The signal that the command line asks for, and what to call it."""
    import numpy as np
    from scipy.sparse import issparse

    names = list(graph.feature_names or ())
    columns = 0 if graph.features is None else int(graph.features.shape[1])
    if wanted in names:
        place = names.index(wanted)
    elif wanted == "degree":
        return "degree", np.diff(graph.adjacency.indptr).astype(np.float64)
    elif wanted.startswith("label:"):
        return wanted, _indicator(graph, wanted.removeprefix("label:"))
    elif wanted.isdecimal() and int(wanted) < columns:
        place = int(wanted)
    else:
        raise Fail(_no_signal(graph, wanted, names, columns))
    column = graph.features[:, [place]]
    values = column.toarray() if issparse(column) else column
    return names[place] if names else f"feature {place}", np.asarray(values, np.float64).ravel()


def _indicator(graph: Graph, name: str) -> FloatArray:
    import numpy as np

    if graph.labels is None:
        raise Fail("The graph has no classes; name their column with --label.")
    classes = list(map(str, graph.classes.tolist()))
    if name not in classes:
        raise Fail(f"There is no class {name!r}; {choices(name, classes)}.")
    return np.asarray(graph.labels == classes.index(name), np.float64)


def _no_signal(graph: Graph, wanted: str, names: list[str], columns: int) -> str:
    if wanted.isdecimal():
        have = f"the features are 0 to {columns - 1:,}" if columns else "the graph has no features"
        return f"There is no feature {wanted}: {have}. Or use degree, or label:NAME."
    every = [*names, "degree", *(["label:NAME"] if graph.labels is not None else [])]
    numbers = f" Features can be given by number, 0 to {columns - 1:,}." if columns and not names else ""
    return f"There is no column {wanted!r} to use as a signal; {choices(wanted, every)}.{numbers}"


def _transform(
    tree: Hierarchy, f: FloatArray, weights: str, rule: str | float | None, parts: bool = True
) -> dict[str, Any]:
    import numpy as np

    from pegfan import FrameletSystem

    system = FrameletSystem(tree, weights=weights)  # type: ignore[arg-type]
    c = system.decompose(f)
    total = float(f @ f)
    size = float(np.abs(f).max(initial=0.0)) or 1.0
    denoised = None if rule is None else system.denoise(f, threshold=rule)  # type: ignore[arg-type]
    return {
        "system": system,
        "c": c,
        "parts": system.projections(f) if parts else [],
        "denoised": denoised,
        "energy": [energy / total if total else float("nan") for energy in c.energies()],
        "coefficients": [len(part) for part in c],
        "reconstruction_error": float(np.abs(system.reconstruct(c) - f).max() / size),
        "removed": None if denoised is None or not total else float(np.sum((f - denoised) ** 2)) / total,
    }


def _write(path: Path, graph: Graph | None, f: FloatArray, result: dict[str, Any]) -> None:
    import numpy as np

    from pegfan._atomic import replacing
    from pegfan._npz import write_npz

    system: FrameletSystem = result["system"]
    columns = {"signal": f, **{f"F_{j}": part for j, part in enumerate(result["parts"])}}
    if result["denoised"] is not None:
        columns["denoised"] = result["denoised"]
    if path.suffix.lower() == ".npz":
        arrays = {"coefficients": result["c"].array, "offsets": np.array(system.offsets()), **columns}
        save(path, lambda place: write_npz(place, arrays))
        return
    import pandas as pd

    assert graph is not None
    table = pd.DataFrame({"id": graph.ids, **columns})

    def write(place: Path) -> None:
        with replacing(place) as file:
            table.to_csv(file, index=False)

    save(path, write)


def _draw(graph: Graph, name: str, f: FloatArray, result: dict[str, Any]) -> Any:
    from pegfan import layouts, plots

    panels = {name.replace("$", r"\$"): f}
    if result["denoised"] is not None:
        panels["denoised"] = result["denoised"]
    for j, (part, share) in enumerate(zip(result["parts"], result["energy"], strict=True)):
        panels[f"$F_{{{j}}}f$   {share:.1%}"] = part
    ground, positions = layouts.ground(graph, result["system"].hierarchy)
    return plots.signals(ground, panels, positions, limits=_limits(f))


def _limits(f: FloatArray) -> tuple[float, float] | None:
    """Where the colours end: at the largest value, unless a few outliers would leave all others grey."""
    import numpy as np

    usual, largest = float(np.quantile(np.abs(f), 0.98)), float(np.abs(f).max())
    return (-usual, usual) if 0 < usual < largest / 3 else None


def _print(name: str, graph: str, tree: Hierarchy, result: dict[str, Any]) -> None:
    table = make_table(
        f"{literal(name)} on {literal(graph)}, by scale", "part", "clusters", "coefficients", "energy", "<"
    )
    for j, (share, count) in enumerate(zip(result["energy"], result["coefficients"], strict=True)):
        clusters = tree.n_clusters[max(j - 1, 0)]
        table.add_row(f"F_{j}  {part_words(j)}", f"{clusters:,}", f"{count:,}", percent(share), bar(share, 24))
    print_table(table)
    console.print(
        f"After reconstruction the largest error is {result['reconstruction_error']:.1e} of the largest value."
    )
    if result["removed"] is not None:
        why = ": most coefficients of the finest level are 0, so no noise is found" if result["removed"] < 1e-9 else ""
        console.print(f"Denoising removed {result['removed']:.1%} of the energy{why}.")
