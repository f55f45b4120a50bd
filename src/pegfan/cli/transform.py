"""``pegfan transform``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
    from pegfan.datasets._schema import Rule
    from pegfan.framelets import FrameletSystem
    from pegfan.graph import Graph
    from pegfan.large import LargeGraph
    from pegfan.trees import Hierarchy


NOISES = ("normal", "varying", "heavy", "counts")
BEST = "best"
RULES = (BEST, *default.RULES)


@dataclass(frozen=True)
class Wishes:
    """What is to be done with signals, beside taking them apart."""

    denoise: Annotated[
        str | None,
        typer.Option(
            metavar="[RULE]",
            help="Take the noise off. Alone or best: all that pegfan knows, on many trees. On one tree: "
            f"{', '.join(default.RULES)}, or a number as threshold.",
        ),
    ] = None
    inpaint: Annotated[
        bool, typer.Option("--inpaint", help="Fill missing cells from the rest of the graph, with intervals.")
    ] = False
    compress: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Keep the best few atoms: a share of the nodes, such as 0.05, or a whole number."
        ),
    ] = None
    time: Annotated[
        bool, typer.Option("--time", help="Signals are steps in time, in this order, and are denoised together.")
    ] = False
    noise: Annotated[
        str | None,
        typer.Option(
            help="Of what kind it is: normal (the default), varying (stronger at some nodes), heavy (with outliers), "
            "counts (what was counted)."
        ),
    ] = None
    sigma: Annotated[
        float | None, typer.Option(min=0, help="The noise's standard deviation, if known; by default it is estimated.")
    ] = None
    trees: Annotated[
        int | None, typer.Option(min=1, help=f"Trees to denoise on, {default.TREES} by default.", show_default=False)
    ] = None
    level: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="The share of intervals that hold the missing value, 0.9 by default.", show_default=False
        ),
    ] = None

    def check(self, signals: int) -> None:
        """Refuse what does not go together, before any work is done."""
        best, rule = self.rule == BEST, self.rule is not None
        if self.noise is not None:
            check_choice(self.noise, NOISES, "--noise")
        if self.noise is not None and self.sigma is not None:
            raise Fail("--sigma says all about the noise, so --noise says too much; give one of them.", USAGE)
        if self.time and signals < 2:
            raise Fail("--time is for several signals, one per step: --signal monday --signal tuesday.", USAGE)
        given = {"--noise": self.noise, "--trees": self.trees, "--time": self.time or None}
        extra = next((option for option, value in given.items() if value is not None), None)
        if extra is not None and not best:
            raise Fail(f"{extra} is for --denoise best; ask for it, or leave {extra} out.", USAGE)
        if self.sigma is not None and (not rule or isinstance(self.rule, float)):
            raise Fail("--sigma is for --denoise by best or a rule; ask for it, or leave --sigma out.", USAGE)
        if self.level is not None and not self.inpaint:
            raise Fail("--level is for --inpaint; ask for it, or leave --level out.", USAGE)
        _ = self.keep

    def check_in_pieces(self, signals: int) -> None:
        """Refuse what needs the graph in memory."""
        if self.rule == BEST:
            raise Fail(
                "--denoise best needs the whole graph in memory: name a rule, such as --denoise empirical, or leave "
                "out --memory.",
                USAGE,
            )
        if signals > 1:
            raise Fail("In pieces there is one --signal at a time: name one, or leave out --memory.", USAGE)

    @property
    def rule(self) -> str | float | None:
        """The rule, or the threshold, that noise is taken off by."""
        if self.denoise is None or self.denoise in RULES:
            return self.denoise
        value = _number(self.denoise)
        if not 0 <= value < float("inf"):
            raise Fail(f"--denoise is {', '.join(RULES)} or a number of at least 0, not {self.denoise}.", USAGE)
        return value

    @property
    def keep(self) -> int | float | None:
        """How many atoms to keep, or which share of the nodes."""
        if self.compress is None:
            return None
        if self.compress.isdecimal() and int(self.compress) > 0:
            return int(self.compress)
        value = _number(self.compress)
        if not 0 < value <= 1:
            words = "a share of the nodes from 0 to 1, such as 0.05, or a whole number of atoms"
            raise Fail(f"--compress is {words}, not {self.compress}.", USAGE)
        return value


def _number(text: str) -> float:
    """A number, or -1 if it is none."""
    with contextlib.suppress(ValueError):
        return float(text)
    return -1.0


@command(
    "pegfan transform nodes.csv edges.csv --signal temperature --denoise -o quiet.csv --picture quiet.png",
    "pegfan transform nodes.csv edges.csv --signal temperature --inpaint --level 0.95 -o filled.csv",
    "pegfan transform nodes.csv edges.csv --signal monday --signal tuesday --denoise --time -o week.csv",
    "pegfan transform chameleon --signal degree --denoise empirical --compress 0.05 -o degree.npz",
)
def transform(
    *,
    graph: Sources,
    signal: Annotated[
        list[str],
        typer.Option(
            help="A column of the node table, the number of a feature from 0, degree, or label:NAME "
            "(1 on the nodes of that class, 0 elsewhere). May be given more than once.",
            show_default=False,
        ),
    ],
    wishes: Wishes,
    tree: Annotated[Path | None, typer.Option(help="A tree that pegfan tree wrote; by default one is built.")] = None,
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
    """Signals on the nodes of a graph: split them by scale, take their noise off, fill their gaps, compress them.

    F_0 f is what the root keeps, F_j f what level j adds; together they are the signal.

    A missing cell is a gap. --denoise and --inpaint fill it from the rest of the graph; where neither is asked for, the
    mean of the column stands for it, and how many there are is told.
    """
    only = {"inpaint": wishes.inpaint, "compress": wishes.compress}
    in_pieces = pieces.check(max_bytes=reading.max_bytes, picture=picture, **only)
    check_output(output, force, (".npz",) if in_pieces else (".npz", ".csv"), "The result")
    check_output(picture, force, PICTURES, "A picture")
    wishes.check(len(signal))
    check_choice(weights, ("size", "equal"), "--weights")
    growing.check()
    if in_pieces:
        wishes.check_in_pieces(len(signal))
        _transform_in_pieces(graph, signal[0], tree, wishes, weights, output, growing, reading, pieces, as_json)
        return
    source, known, report = read(graph, **vars(reading))
    names, f = _signals(known, signal, {} if report is None else report.schema.nodes)
    grown = growing.build(known) if tree is None else _load_tree(tree, known.n, known.ids, reading.max_bytes)
    done = _granted(known, f, wishes)
    with errors.status("transforming"):
        stand_in = "0" if reading.missing == "zero" else "the mean"
        whole = done.get("inpainted", _filled(f, stand_in))
        result = _transform(grown, whole, weights, None if wishes.rule == BEST else wishes.rule, sigma=wishes.sigma)
    result |= done
    if output is not None:
        _write(output, known, names, f, result)
    if picture is not None:
        with errors.status("drawing"):
            save_picture(_draw(known, names, whole, result), picture)
    if as_json:
        about = {"source": source.to_dict(), "clusters": grown.n_clusters}
        print_json({**about, **_told(names, f, wishes, result), "output": output, "picture": picture})
        return
    _print(", ".join(names), source.name, grown, result)
    _print_done(f, wishes, result, stand_in)
    what = "Coefficients" if output and output.suffix == ".npz" else "Table"
    print_files({what: output, "Picture": picture})


def _signals(graph: Graph, wanted: list[str], rules: Mapping[str, Rule]) -> tuple[list[str], FloatArray]:
    """The signals that the command line asks for, a vector if it is one, and what to call them."""
    import numpy as np

    found = [_signal(graph, one, rules) for one in wanted]
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise Fail(f"--signal {name} is given more than once; leave one out.", USAGE)
    return names, found[0][1] if len(found) == 1 else np.column_stack([f for _, f in found])


def _filled(f: FloatArray, stand_in: str = "the mean") -> FloatArray:
    """A signal whose gaps have something in them."""
    import numpy as np

    gaps = np.isnan(f)
    if not gaps.any():
        return f
    known = (~gaps).sum(axis=0)
    mean = np.where(gaps, 0.0, f).sum(axis=0) / np.maximum(known, 1)
    return np.where(gaps, mean if stand_in == "the mean" else 0.0, f)


def _granted(graph: Graph, f: FloatArray, wishes: Wishes) -> dict[str, Any]:
    """Signals denoised by all that there is, filled, compressed, as far as asked for; and what is said about it."""
    import numpy as np

    from pegfan import signals

    done: dict[str, Any] = {}
    gaps = np.isnan(f)
    if wishes.inpaint and gaps.any():
        with errors.status("filling gaps"):
            found = signals.inpaint(graph, f, level=0.9 if wishes.level is None else wishes.level, report=True)
        done |= {"inpainted": found.signal, "low": found.low, "high": found.high, "level": found.level}
    if wishes.rule == BEST:
        with errors.status("denoising") as status:
            best = signals.denoise(  # type: ignore[call-overload]
                graph,
                f,
                sigma=wishes.sigma,
                noise=wishes.noise or "normal",
                time=wishes.time,
                trees=wishes.trees or default.TREES,
                report=True,
                progress=lambda step: status.update(f"denoising: {step}"),
            )
        seen = np.where(gaps, best.signal, f)
        sigma = np.sqrt(np.mean(np.square(best.sigma), axis=0))
        with np.errstate(divide="ignore"):
            ratio = 20.0 * np.log10(np.std(best.signal, axis=0) / sigma)
        done |= {"denoised": best.signal, "sigma": sigma.tolist(), "shares": best.shares, "snr": ratio.tolist()}
        done["removed"] = _removed(seen, best.signal)
    if wishes.keep is not None:
        with errors.status("compressing"):
            whole = done.get("inpainted", f)
            whole = signals.inpaint(graph, whole) if np.isnan(whole).any() else whole
            small = signals.compress(graph, whole, wishes.keep)
        done |= {"compressed": small.signal, "error": small.error, "bytes": small.nbytes}
    return done


def _removed(f: FloatArray, denoised: FloatArray) -> float | None:
    """The share of the energy that denoising took."""
    total = float((f * f).sum())
    return float(((f - denoised) ** 2).sum()) / total if total else None


def _told(names: list[str], f: FloatArray, wishes: Wishes, result: dict[str, Any]) -> dict[str, Any]:
    """What ``--json`` says of the signals."""
    import numpy as np

    told = {"signal": names[0] if len(names) == 1 else names, "missing": np.isnan(f).sum(axis=0).tolist()}
    told |= {"denoise": wishes.rule, "noise": wishes.noise, "time": wishes.time}
    keys = ("energy", "coefficients", "reconstruction_error", "removed", "sigma", "shares", "snr", "level")
    told |= {key: result.get(key) for key in keys}
    compressed = {key: result[key] for key in ("error", "bytes")} if "compressed" in result else None
    return {**told, "compressed": compressed}


def _transform_in_pieces(
    where: list[str],
    signal: str,
    tree: Path | None,
    wishes: Wishes,
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
        stand_in = "0" if reading.missing == "zero" else "the mean"
        whole, kept = _filled(f, stand_in), graph.work.folder
        result = _transform(grown, whole, weights, wishes.rule, parts=False, sigma=wishes.sigma)
        if output is not None:
            _write(output, None, [name], f, result)
    if as_json:
        about = {"source": source.to_dict(), "clusters": grown.n_clusters, "levels": grown.K}
        print_json({**about, **_told([name], f, wishes, result), "output": output})
        return
    _print(name, source.name, grown, result)
    _print_done(f, wishes, result, stand_in)
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

    def column(place: int) -> FloatArray:
        slab, about = next((k, one) for k, one in enumerate(slabs.results) if one["start"] <= place < one["stop"])
        return np.asarray(slabs.load("values", slab, mmap=True)[:, place - about["start"]], np.float64)

    return names[place], _with_gaps(names, place, column)


def _load_tree(path: Path, n: int, ids: Iterable[Any], max_bytes: str | None = None) -> Hierarchy:
    """A tree that was kept, if it is of just these nodes."""
    from pegfan import Hierarchy

    tree = Hierarchy.load(path, max_bytes)
    if tree.n != n:
        raise Fail(f"{path} is a tree of {tree.n:,} nodes, and the graph has {n:,}; build one with pegfan tree.")
    return Hierarchy.load(path, max_bytes, ids=ids)


def _signal(graph: Graph, wanted: str, rules: Mapping[str, Rule] | None = None) -> tuple[str, FloatArray]:
    """The signal that the command line asks for, and what to call it."""
    import numpy as np
    from scipy.sparse import issparse

    names = list(graph.feature_names or ())
    columns = 0 if graph.features is None else int(graph.features.shape[1])
    unit = rules[wanted].facts.get("unit") if rules and wanted in rules else None
    if unit is not None:  # features are its logarithms, but the column was asked for
        from pegfan.datasets._numbers import undo_log

        return wanted, undo_log(_signal(graph, f"{wanted} (log)")[1], unit)
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

    def column(place: int) -> FloatArray:
        values = graph.features[:, [place]]
        return np.asarray(values.toarray() if issparse(values) else values, np.float64).ravel()

    return names[place] if names else f"feature {place}", _with_gaps(names, place, column)


def _with_gaps(names: list[str], place: int, column: Callable[[int], FloatArray]) -> FloatArray:
    """A column with NaN where the table has nothing: reading puts a number there, and marks it in another column."""
    import numpy as np

    values, marks = column(place), f"{names[place].removesuffix(' (log)')} missing" if names else ""
    return np.where(column(names.index(marks)) == 1, np.nan, values) if marks in names else values


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
    tree: Hierarchy,
    f: FloatArray,
    weights: str,
    rule: str | float | None,
    parts: bool = True,
    sigma: float | None = None,
) -> dict[str, Any]:
    import numpy as np

    from pegfan import FrameletSystem

    system = FrameletSystem(tree, weights=weights)  # type: ignore[arg-type]
    c = system.decompose(f)
    total = float((f * f).sum())
    size = float(np.abs(f).max(initial=0.0)) or 1.0
    denoised = None if rule is None else system.denoise(f, threshold=rule, sigma=sigma)  # type: ignore[arg-type]
    return {
        "system": system,
        "c": c,
        "parts": system.projections(f) if parts else [],
        "energy": [energy / total if total else float("nan") for energy in c.energies()],
        "coefficients": [len(part) for part in c],
        "reconstruction_error": float(np.abs(system.reconstruct(c) - f).max() / size),
        **({} if denoised is None else {"denoised": denoised, "removed": _removed(f, denoised), "sigma": sigma}),
    }


def _write(path: Path, graph: Graph | None, names: list[str], f: FloatArray, result: dict[str, Any]) -> None:
    import numpy as np

    from pegfan._atomic import replacing
    from pegfan._npz import write_npz

    system: FrameletSystem = result["system"]
    columns = {"signal": f, **{f"F_{j}": part for j, part in enumerate(result["parts"])}}
    columns |= {name: result[name] for name in ("inpainted", "low", "high", "denoised", "compressed") if name in result}
    if path.suffix.lower() == ".npz":
        arrays = {"coefficients": result["c"].array, "offsets": np.array(system.offsets()), **columns}
        save(path, lambda place: write_npz(place, arrays))
        return
    import pandas as pd

    assert graph is not None
    if len(names) > 1:
        columns = {
            name if what == "signal" else f"{name} {what}": values[:, k]
            for k, name in enumerate(names)
            for what, values in columns.items()
        }
    table = pd.DataFrame({"id": graph.ids, **columns})

    def write(place: Path) -> None:
        with replacing(place) as file:
            table.to_csv(file, index=False)

    save(path, write)


def _draw(graph: Graph, names: list[str], f: FloatArray, result: dict[str, Any]) -> Any:
    from pegfan import layouts, plots

    panels: dict[str, FloatArray] = {}
    made = [what for what in ("inpainted", "denoised", "compressed") if what in result]
    for k, name in enumerate(names):
        literally = name.replace("$", r"\$")
        panels[literally] = f if len(names) == 1 else f[:, k]
        for what in made:
            panels[what if len(names) == 1 else f"{literally}, {what}"] = (
                result[what] if len(names) == 1 else result[what][:, k]
            )
    if len(names) == 1:
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


def _print_done(f: FloatArray, wishes: Wishes, result: dict[str, Any], stand_in: str) -> None:
    import numpy as np

    missing = int(np.isnan(f).sum())
    if missing:
        where = "the parts" if wishes.rule in (None, BEST) else "the parts and in what is denoised"
        told = f"{missing:,} of {f.size:,} values are missing"
        if "inpainted" in result:
            console.print(f"{told}, and were filled; {result['level']:.0%} of intervals hold what is there.")
        else:
            more = "" if wishes.rule == BEST else " --inpaint or --denoise best fill them from the rest of the graph."
            console.print(f"{told}; {stand_in} stands for them in {where}.{more}")
    elif wishes.inpaint:
        console.print("No value is missing: there is nothing to fill.")
    if result.get("removed") is not None:
        why = ""
        if result["removed"] < 1e-9:
            why = ": no noise is found" + (
                "" if wishes.rule == BEST else ", as most coefficients of the finest level are 0"
            )
        console.print(f"Denoising removed {result['removed']:.1%} of the energy{why}.")
    if "shares" in result:
        sigma, snr = (np.atleast_1d(result[key]) for key in ("sigma", "snr"))
        console.print(
            f"The noise has a standard deviation of {_range(sigma, '.3g')}; signal to noise {_range(snr, '.1f')} dB."
        )
        if result["shares"]:
            most = sorted(result["shares"].items(), key=lambda item: -item[1])
            console.print("Made of " + ", ".join(f"{literal(name)} {share:.0%}" for name, share in most) + ".")
    if "compressed" in result:
        console.print(f"Compressed to {result['bytes']:,} bytes: {result['error']:.1%} of its norm is lost.")


def _range(values: Any, form: str) -> str:
    """The values, or where they begin and end."""
    low, high = (f"{float(value):{form}}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
