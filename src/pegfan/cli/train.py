"""``pegfan train``, ``pegfan predict`` and ``pegfan report``."""

from __future__ import annotations

import contextlib
import csv
import gc
import json
import logging
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan import _defaults as default
from pegfan.cli._complete import complete_sources
from pegfan.cli._options import (
    SOURCES,
    FlagShare,
    Force,
    Json,
    Metric,
    Pieces,
    Reading,
    Sources,
    Threshold,
    WithReasons,
    assignments,
    check_choice,
    check_output,
    choices,
    open_source,
    read,
)
from pegfan.cli._shell import INTERNAL, USAGE, Fail, command, console, describe, errors, literal
from pegfan.cli._show import (
    make_table,
    print_facts,
    print_files,
    print_json,
    print_rivals,
    print_table,
    print_warnings,
    progress_bar,
    save,
    writing,
)

if TYPE_CHECKING:
    from pegfan.auto.outcome import Outcome, Plan
    from pegfan.classifier import NodeClassifier, NodeModel
    from pegfan.datasets import Growth, ReadReport, Schema, Source
    from pegfan.graph import Graph
    from pegfan.results import Result
    from pegfan.trees import Hierarchy

    _Part = Callable[["Result"], "Result"]
    """Adds to a result, or to the folder around it; returns the same result where it adds nothing to that."""

log = logging.getLogger(__name__)
PREDICTIONS, MODEL, SETTINGS, RESULT, REPORT = "predictions.csv", "model", "settings.toml", "result.json", "report.html"
RANKED, DATA = "ranked.csv", "data"
_IMPORTANCES, _REASONS, _COLUMN, _AGAINST = "importance of columns", "reasons", "the column top_reasons", "--against"
"""Beside the report, what is added to a folder that is whole."""
_WITHOUT = "without "
"""What a note about one that failed begins with, as its kind."""
_FORMAT, _VERSION = "pegfan settings", 4
_SHOWN = 10
_ROOM = 72
"""Columns of a terminal that has room for all that is known of candidates."""
_ROWS = 65_536
"""Rows of a table that are put together at a time."""
_BUDGET = 3600.0
"""Seconds for a graph beyond memory."""
_OF_BUDGET = 0.6
"""The part of them that training is expected to take, beside what comes before it."""
_TRIES = 4
"""Settings that each of the other models tries, with --against."""


@command("pegfan train nodes.csv edges.csv --label kind -o out")
def train(
    *,
    graph: Annotated[
        list[str] | None, typer.Argument(metavar="GRAPH...", help=SOURCES, autocompletion=complete_sources)
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The folder to write; it appears whole, then reasons and report follow."),
    ] = None,
    reading: Reading,
    metric: Metric = None,
    positive: Annotated[
        str | None, typer.Option(help="Of two classes, the one to look for; by default the rarer one.")
    ] = None,
    threshold: Threshold = None,
    flag_share: FlagShare = None,
    class_weights: Annotated[
        bool | None,
        typer.Option(
            "--class-weights/--no-class-weights",
            help="Pin whether classes count alike in the loss; by default tried where they are unequal.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help=f"Seconds in total, by the clock; by default {default.BUDGET:g}, and up to twice as many on a busy "
            "machine."
        ),
    ] = None,
    budget_cpu: Annotated[
        float | None,
        typer.Option(help="CPU seconds of all cores together instead, whatever else the machine does meanwhile."),
    ] = None,
    split: Annotated[
        int | None, typer.Option(min=0, help=f"The split whose model is kept; {default.SPLIT} by default.")
    ] = None,
    splits: Annotated[
        int | None, typer.Option(min=1, help="How many splits to report on; by default up to 5, as time allows.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help=f"Seed of splits, weights and dropout; {default.SEED} by default.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Recipes that are trained side by side; by default one per core.")
    ] = None,
    method: Annotated[str | None, typer.Option(help=f"Pin the tree: {', '.join(default.BUILDERS)} or none.")] = None,
    h: Annotated[int | None, typer.Option("--h", min=2, help="Pin the maximum number of children per cluster.")] = None,
    kind: Annotated[str | None, typer.Option(help="Pin the kind of channels on the tree, such as a or c.")] = None,
    regime: Annotated[str | None, typer.Option(help="Pin the hops: heterophily, homophily or all.")] = None,
    hops: Annotated[int | None, typer.Option(min=0, help="Pin the highest power of the hop matrix.")] = None,
    direction: Annotated[
        str | None, typer.Option(help="Pin the side of edges: out, in, symmetric, both, words.")
    ] = None,
    scaling: Annotated[
        str | None, typer.Option(help="Pin the scaling of features: none, l1, columns or principal.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Pin any other part of a recipe, such as epochs=200."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings from a file; settings.toml of an output folder repeats that run.")
    ] = None,
    against: Annotated[
        bool, typer.Option("--against", help="Then show it among quick models on the same splits; takes longer.")
    ] = False,
    reasons: WithReasons = False,
    keep_data: Annotated[
        bool | None,
        typer.Option(
            "--keep-data/--no-keep-data",
            help="Keep packed copies of the files, ids and labels included, for pegfan predict --add.",
        ),
    ] = None,
    pieces: Pieces,
    force: Annotated[bool, typer.Option("--force", help="Replace a folder that this command wrote.")] = False,
    as_json: Json = False,
) -> None:
    """Learn from the nodes that have a class or a number, and predict that of all others.

    Recipes (a tree or none, hops, channels, settings) are tried until the time budget is spent, and those that do best
    together on validation nodes make the model. The folder then holds predictions.csv, ranked.csv with the nodes to
    look at first, the model, a report to open in a browser, and settings.toml, which repeats the run bit for bit. It
    appears with the model and the tables; reasons, comparisons and the report are added one by one, and whatever ends
    the command meanwhile, what is there stays. pegfan report adds reasons and the report where they are missing.
    """
    start = time.perf_counter()
    if folder is None:
        raise Fail("Name the folder to write with -o, as in: pegfan train cornell -o out", USAGE)
    pins = {"method": method, "h": h, "kind": kind, "regime": regime, "hops": hops, "direction": direction}
    pins |= {"scaling": scaling, "class_weights": class_weights, **assignments(settings or [])}
    if budget is not None and budget_cpu is not None:
        raise Fail("Give --budget or --budget-cpu, not both.", USAGE)
    clock = "wall" if budget is not None else "cpu" if budget_cpu is not None else None
    own = {"budget": budget_cpu if budget is None else budget, "clock": clock, "split": split, "splits": splits}
    own |= {"seed": seed, "workers": workers, "metric": metric}
    own |= {"positive": positive, "threshold": threshold, "flag_share": flag_share, "keep_data": keep_data}
    if pieces.check(
        **{
            "max_bytes": reading.max_bytes,
            "positive": positive,
            "threshold": threshold,
            "flag_share": flag_share,
            "splits": splits,
            "budget_cpu": budget_cpu,
            "against": against,
        },
        **{"reasons": reasons, "keep_data": keep_data, "workers": workers},
    ):
        _train_in_pieces(graph, folder, reading, own, pins, config, pieces, force, as_json, start)
        return
    wanted = _resolve(graph, vars(reading), own, pins, config)
    _check_place(folder, force)
    if wanted.source.files:
        from pegfan.cli._large import warn_of_memory

        warn_of_memory(wanted.source.files)
    source, known, report = read(wanted.source)
    from pegfan.running import release_memory

    release_memory()
    wanted, known = wanted.judged(known)
    shown = console if not as_json else errors
    _print_plan(shown, source, known, wanted, folder)
    outcome = _carry_out(known, wanted.plan, start)
    result = _complete(outcome, source, report, folder)
    result = replace(result, command=f"{result.command}{' --reasons' * reasons}{' --against' * against}")
    plan, repeating, kept = wanted.plan, wanted.to_toml(outcome), source if wanted.keep_data else None

    def write(place: Path) -> Result:
        whole = _write_all(place, force, outcome, result, repeating, kept)
        return _add_parts(whole, result, _optional_parts(whole, outcome, plan, reasons, against))

    result = save(folder, write)
    if as_json:
        print_json({"output": str(folder), **replace(result, curves=()).to_dict()})
    else:
        _print_outcome(result, folder)
        if kept is not None:
            console.print(
                f"{literal(str(folder / DATA))} holds copies of {literal(kept.name)}, ids and labels included: keep "
                "the folder as safe as the files. Without --keep-data it would hold none.",
                soft_wrap=True,
            )


def _train_in_pieces(
    where: list[str] | None,
    folder: Path,
    reading: Reading,
    own: Mapping[str, Any],
    pins: Mapping[str, Any],
    config: Path | None,
    pieces: Pieces,
    force: bool,
    as_json: bool,
    start: float,
) -> None:
    """Train on a graph beyond memory: one split, a recipe that was chosen on a sample."""
    from pegfan.cli._large import opened, print_kept
    from pegfan.datasets import Source
    from pegfan.results import Seconds

    wanted = _resolve(where, vars(reading), own, pins, config, Source.of)
    source, plan = wanted.source, wanted.plan
    budget = plan.budget if own["budget"] is not None or plan.recipes is not None else _BUDGET
    if not pieces.dry_run:
        _check_place(folder, force)
    options = dict(source.options)
    with opened(
        pieces, "train", list(source.where), options, folder, as_json, {"training": budget * _OF_BUDGET}
    ) as graph:
        if own["split"] is not None and plan.split >= len(graph.splits):
            raise Fail(f"--split {plan.split}: the nodes have {len(graph.splits)} splits; leave it out to draw one.")
        found = graph.train(
            budget=budget,
            seed=plan.seed,
            split=plan.split,
            metric=wanted.metric,
            pins=plan.pins,
            recipes=plan.recipes,
        )
        again = f"pegfan train --config {shlex.quote(str(folder / SETTINGS))} --memory {pieces.memory} -o again"
        report = graph.report
        told: dict[str, Any] = {
            "title": " + ".join(Path(part).name or part for part in source.where),
            "source": source,
            "command": again,
            "data": replace(found.result.data, report=str(report), schema=report.schema.to_dict()),
        }

        def write(place: Path) -> None:
            _check_folder(place, force)
            total = time.perf_counter() - start
            # Where an earlier command made the search, its seconds are not of this one.
            search = min((found.result.seconds and found.result.seconds.search) or 0.0, total)
            seconds = Seconds(total, search, total - search)
            found.write(place, ids=graph.ids, settings={"source": source.to_dict()}, seconds=seconds, **told)

        save(folder, write)
        kept = graph.work.folder
    result = _read_result(folder)
    if as_json:
        print_json({"output": str(folder), **replace(result, curves=()).to_dict()})
        return
    _print_outcome(result, folder)
    print_kept(kept)


@command("pegfan predict out new-nodes.csv new-edges.csv --add -o predictions.csv")
def predict(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What pegfan train wrote, or a saved classifier.")],
    graph: Sources,
    output: Annotated[Path, typer.Option("-o", "--output", help="The table to write.")] = Path(PREDICTIONS),
    reading: Reading,
    add: Annotated[
        bool, typer.Option("--add", help="The files hold new rows only: add them to those of the training.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="With --add, write the predictions of all nodes, not of the new ones only.")
    ] = False,
    threshold: Threshold = None,
    flag_share: FlagShare = None,
    reasons: WithReasons = False,
    pieces: Pieces,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict the classes, or numbers, of a graph's nodes with a model that was trained before.

    The graph may have changed since: nodes are matched by their ids, feature columns by their names. With --add the
    files hold only what is new: rows are added to those of the training (kept with --keep-data, or the files as they
    were), new nodes join the tree beside their neighbours, and the new nodes are written. Of two unequal classes, the
    rarer one is predicted from the threshold on that the model was trained with.
    """
    import numpy as np

    from pegfan.classifier import NodeClassifier as Classes
    from pegfan.metrics import amount

    if pieces.check(max_bytes=reading.max_bytes, add=add, all=every, reasons=reasons, flag_share=flag_share):
        check_output(output, force, (".csv", ".parquet"), "The table of predictions")
        _predict_in_pieces(model, graph, output, reading, threshold, pieces, as_json)
        return
    check_output(output, force, (".csv",), "The table of predictions")
    if every and not add:
        raise Fail("--all is for --add; without it, all nodes are written.", USAGE)
    trained, stored = load_model(model, reading.max_bytes)
    read_as: ReadReport | None
    told: dict[str, Any]
    if add:
        source, trained, growth = _grow(graph, vars(reading), trained, stored, model)
        known, read_as = growth.graph, growth.report
        fresh = np.intersect1d(growth.new, known.subjects)
        shown = known.subjects if every or not len(fresh) else fresh
    else:
        source, known, read_as = _read_all(graph, vars(reading), stored)
        growth, shown = None, known.subjects
    require_names(trained, known)
    notes = _left_out(trained.fitted_.feature_names, known.feature_names)
    notes += [] if read_as is None else read_as.notes
    notes += _doubts(trained, known, read_as) if growth is None else []
    if not isinstance(trained, Classes):
        if threshold is not None or flag_share is not None:
            raise Fail("--threshold and --flag-share are for two classes, and this model predicts numbers.", USAGE)
        predicted: dict[str, Any] = _predict_numbers(trained, known, output, shown, reasons)
    else:
        counts = stored.data.class_counts if stored else ()
        asked = (threshold, flag_share)
        predicted = _predict_classes(trained, known, output, shown, asked, counts if reasons else None)
    told = {"nodes": len(shown), **predicted}
    if as_json:
        if read_as is not None:
            told |= {"unknown_ends": read_as.unknown, "lost_edges": read_as.lost}
            told |= {"filled": read_as.filled, "strange": read_as.strange}
        if growth is not None:
            told |= {"new": len(growth.new), "updated": growth.updated, "repeated": growth.repeated, "all": known.n}
        print_json({"output": str(output), "source": source.to_dict(), **told, "notes": notes})
        return
    what = "new nodes" if growth is not None and len(shown) < len(known.subjects) else "nodes"
    title = f"{len(shown):,} {what} of {literal(' + '.join(Path(path).name for path in graph))}"
    if "threshold" not in told:
        print_facts(title, {name: amount(fact) for name, fact in told["predicted"].items()})
    else:
        console.print(title, soft_wrap=True)
        table = make_table("", "class", "predicted")
        had = dict(zip(stored.data.classes, stored.data.class_counts, strict=False)) if stored else {}
        for name, count in told["predicted"].items():
            if count or had.get(name, 1):  # a class of the file's numbering that no node had is no news
                table.add_row(literal(name), f"{count:,}")
        print_table(table)
    if told.get("threshold") is not None:
        name, aim = literal(str(trained.fitted_.classes[1])), told["aim"]
        console.print(f"“{name}” from a probability of {told['threshold']:.3g} on ({aim})")
    if growth is not None:
        console.print(literal(_growth_words(growth, source, len(shown))), soft_wrap=True)
    print_warnings(notes)
    print_files({"Predictions": output})


def _predict_in_pieces(
    folder: Path,
    where: list[str],
    output: Path,
    reading: Reading,
    threshold: float | None,
    pieces: Pieces,
    as_json: bool,
) -> None:
    """Predict on a graph beyond memory, read as the one that was trained on."""
    from pegfan.cli._large import opened, print_kept
    from pegfan.datasets import Source

    trained, stored = load_model(folder)
    chosen = {name: value for name, value in vars(reading).items() if value is not None}
    before = dict(stored.source.options) if stored and stored.source else {}
    options = {**_as_read(stored), **before, **chosen}
    if "label" not in chosen:
        options["label"] = False  # predicting needs none
    schema = None if stored is None else _schema(stored)
    if schema is not None:
        options["schema"] = schema
    with opened(pieces, "predict", where, options, output, as_json) as graph, writing(output):
        found = graph.predict(trained, output, threshold=threshold)
        notes, kept, n = graph.report.notes, graph.work.folder, graph.n
    if as_json:
        print_json({"output": str(output), "source": Source.of(*where).to_dict(), "nodes": n, **found, "notes": notes})
        return
    console.print(f"{n:,} nodes of {literal(' + '.join(Path(path).name for path in where))}", soft_wrap=True)
    print_facts(
        "", {str(name): f"{value:,}" if isinstance(value, int) else str(value) for name, value in found.items()}
    )
    print_warnings(notes)
    print_files({"Predictions": output})
    print_kept(kept)


def _predict_classes(
    model: NodeClassifier, graph: Graph, output: Path, shown: Any, asked: tuple[Any, Any], counts: Sequence[int] | None
) -> dict[str, Any]:
    """Write the table of classes and probabilities, and say how many there are of each; reasons where counts are."""
    import numpy as np

    with errors.status("predicting"):
        logs = model.fitted_.log_probabilities(graph)
    _, decision = model.decided(logs[graph.subjects], *asked)
    predicted, classes = decision.classes(logs), [str(name) for name in model.classes_.tolist()]
    texts = None if counts is None else _some_reasons(model, graph, counts, shown)
    text = _table(graph, np.exp(logs), predicted, classes, _known_parts(model, graph), texts, shown)
    save(output, lambda place: _write_text(place, text))
    found = {name: int((predicted[shown] == i).sum()) for i, name in enumerate(classes)}
    return {"predicted": found, "threshold": decision.threshold, "aim": decision.aim}


def _predict_numbers(model: NodeModel, graph: Graph, output: Path, shown: Any, reasons: bool) -> dict[str, Any]:
    """Write the table of predicted numbers, and say how large they are."""
    import numpy as np

    with errors.status("predicting"):
        values = model.fitted_.values(graph)
    texts = _some_reasons(model, graph, (), shown) if reasons else None
    text = _table(graph, None, values, (), _known_parts(model, graph), texts, shown)
    save(output, lambda place: _write_text(place, text))
    own = values[shown]
    facts = {"lowest": own.min(), "median": np.median(own), "mean": own.mean(), "highest": own.max()}
    return {"predicted": {name: float(value) for name, value in facts.items()} if len(own) else {}}


def _some_reasons(model: NodeModel, graph: Graph, counts: Sequence[int], nodes: Any) -> dict[int, str]:
    return dict(zip(nodes.tolist(), _reasons(model, graph, counts, nodes), strict=True))


def _read_all(
    where: list[str], given: Mapping[str, Any], stored: Result | None
) -> tuple[Source, Graph, ReadReport | None]:
    """The graph to predict on; where edges lead to nodes that the files lack, say what these files may be."""
    from pegfan.datasets import UnknownIds

    try:
        return read_like(where, given, stored)
    except UnknownIds as error:
        raise Fail(f"{error}. If these files hold only what is new since the training, pass --add") from error


def _grow(
    where: list[str], given: Mapping[str, Any], trained: NodeModel, stored: Result | None, folder: Path
) -> tuple[Source, NodeModel, Growth]:
    """The tables of the training with new rows, and the model for the graph that they are now."""
    if stored is None or stored.source is None:
        raise Fail(
            f"{folder} has no {RESULT} that says what it was trained on, so nothing can be added to that; pass the old "
            "rows and the new ones in the same files, without --add."
        )
    home = folder if (folder / RESULT).is_file() else folder.parent
    source, fitted = training_source(stored, home), trained.fitted_
    fix = "pass the old rows and the new ones in the same files, without --add, or train again with --keep-data"
    gone = next((path for path in source.where if source.files and not Path(path).exists()), None)
    if gone is not None:
        raise Fail(f"{gone}, which the model was trained on, is not there any more; put it back, or {fix}.")
    with errors.status(f"adding to {literal(source.name)}"):
        options = {**_as_read(stored), **{name: value for name, value in given.items() if value is not None}}
        growth = source.grown(*where, schema=_schema(stored), **options)
    if not fitted.is_fitted_to(fitted.prepared(growth.before)):
        raise Fail(f"{source.name} has changed since the model was trained; put it back as it was, or {fix}.")
    return source, trained.extended(growth.graph, growth.places), growth


def _growth_words(growth: Growth, source: Source, written: int) -> str:
    new, report = len(growth.new), growth.report
    words = f"Added to {source.name}: {new:,} new nodes"
    words += f", {growth.updated:,} known ones updated" if growth.updated else ""
    words += f"; {report.unknown or 'no'} ids at the ends of edges are in neither the old nor the new nodes"
    words += f", {report.lost:,} edges were left out with them" if report.lost else ""
    if written < len(growth.graph.subjects):
        return f"{words}. Only the new nodes are written; --all writes all {len(growth.graph.subjects):,}."
    return f"{words}. All {written:,} nodes are written" + ("." if new else ", as none is new.")


@command("pegfan report out")
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What pegfan train wrote, or the model in it.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write it; report.html of the folder by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the report of a training run again, from its result, its model and the data.

    What pegfan train did not come to is made up for, and kept in the folder: the importance of columns, and reasons.
    """
    from pegfan._atomic import clear
    from pegfan.auto.outcome import Plan, with_splits
    from pegfan.report import write_report
    from pegfan.splits import with_features

    home = folder if (folder / RESULT).is_file() else folder.parent
    if not (home / RESULT).is_file():
        raise Fail(f"{folder} has no {RESULT}: a report is made of what pegfan train wrote. Train with -o first.")
    clear(home)  # what a killed training left, or had not finished
    stored = (home / RESULT).read_bytes()
    result = _read_result(home, stored)
    model, _ = load_model(home)
    source, known = reopen(result, home)
    drawn = len(result.splits.sizes) if result.splits is not None else None
    known, _ = with_splits(known, Plan(seed=result.seed or 0, splits=drawn))
    if not model.fitted_.is_fitted_to(with_features(known, "degree" if model.fitted_.stood_in else None)):
        raise Fail(f"{source.name} has changed since the model was trained, so its report cannot be made; train again.")
    parts = _explaining_parts(model, known)
    missing = {_IMPORTANCES: result.importances is None, _REASONS: not result.reasons}
    whole = _Whole(home, stored)
    result = _add_parts(whole, result, {name: add for name, add in parts.items() if missing[name]})
    target = output or home / REPORT
    with errors.status("writing the report"):
        outputs = _shown_outputs(model, known)
        save(target, lambda place: write_report(place, result, known, _shown_tree(model), outputs))
    if as_json:
        print_json({"output": str(target)})
    else:
        print_files({"Report": target})


# ------------------------------------------------------------------ what is asked


@dataclass(frozen=True)
class _Wanted:
    """A training run as it was asked for: by the command line, a file of settings, or both."""

    source: Source
    metric: str | None
    positive: str | None
    plan: Plan
    keep_data: bool = False
    """Whether copies of the files are kept."""

    def judged(self, graph: Graph) -> tuple[_Wanted, Graph]:
        """The graph with its metric: asked for, that of a data set or a file, or the one that suits its classes."""
        from pegfan.auto.outcome import with_metric

        if graph.targets is not None:
            asked = {"--positive": self.positive, "--class-weights": self.plan.pins.get("class_weights")}
            asked |= {"--threshold": self.plan.threshold, "--flag-share": self.plan.flag_share}
            wrong = next((option for option, value in asked.items() if value is not None), None)
            if wrong is not None:
                raise Fail(f"{wrong} is for classes, and numbers are predicted; leave it out, or --label-kind classes.")
        if self.metric is None:
            if not self.source.files or "metric" in self.source.options or graph.metric not in ("accuracy", "r2"):
                why = "the data says so"
                known = graph if self.positive is None else graph.with_positive(self.positive)
            else:
                known, why = with_metric(graph, None, self.positive)
        else:
            known, why = with_metric(graph, self.metric, self.positive)
        positive = str(known.classes[1]) if known.classes.tolist() != graph.classes.tolist() else self.positive
        plan = replace(self.plan, metric_reason=why)
        return replace(self, metric=known.metric, positive=positive, plan=plan), known

    @property
    def _decisions(self) -> dict[str, Any]:
        asked = {name: getattr(self.plan, name) for name in ("threshold", "flag_share")}
        return {"positive": self.positive, **asked}

    def to_toml(self, outcome: Outcome) -> bytes:
        """The settings that repeat the run: the recipes that ran and the splits, so that the clock does not matter."""
        import tomli_w

        plan = self.plan
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "budget": plan.budget,
            "clock": plan.clock,
            "seed": plan.seed,
            "split": plan.split,
            "splits": len(outcome.result.splits.used) if outcome.result.splits else 1,
            "workers": plan.workers,
            "choose": plan.choose,
            **({"finalists": outcome.finalists} if outcome.finalists else {}),
            **({"baselines": outcome.baselines} if outcome.baselines else {}),
            "metric": outcome.graph.metric,
            **{name: value for name, value in self._decisions.items() if value is not None},
            **({"keep_data": True} if self.keep_data else {}),
            "source": self.source.to_dict(),
            "recipes": [recipe.to_dict() for recipe in outcome.model.ran_],
        }
        members = "\n".join(f"#   {c.weight:.0%} {c.name}" for c in outcome.result.candidates if c.weight)
        head = (
            f"# Repeats a training run:  pegfan train --config {SETTINGS} -o folder\n"
            f"# Chosen on validation, {outcome.model.how_}:\n{members}\n"
        )
        return (head + tomli_w.dumps(document)).encode()


_KEYS = {
    **{"format": str, "version": int, "budget": (int, float), "seed": int, "split": int, "splits": int},
    **{"workers": int, "choose": str, "metric": str, "source": dict, "pins": dict, "recipes": list},
    **{"finalists": list, "baselines": int, "clock": str},
    **{"positive": str, "threshold": (int, float), "flag_share": (int, float), "keep_data": bool},
}


def _resolve(
    graph: Sequence[str] | None,
    reading: Mapping[str, Any],
    own: Mapping[str, Any],
    pins: Mapping[str, Any],
    config: Path | None,
    make: Callable[..., Source] | None = None,
) -> _Wanted:
    """What is wanted: the command line overrides the file, which overrides the defaults.

    Sources are opened, unless something else is to be made of their names.
    """
    from pegfan.auto.outcome import Plan
    from pegfan.metrics import METRICS
    from pegfan.recipe import Recipe
    from pegfan.running import cores

    stored = _read_settings(config) if config is not None else {}
    if graph:
        source = open_source(list(graph), **reading) if make is None else make(*graph, **reading)
    elif "source" in stored:
        source = _stored_source(stored["source"], reading, (config or Path()).parent, make)
    else:
        raise Fail("Name a graph to train on, as in: pegfan train nodes.csv edges.csv --label kind -o out", USAGE)
    given = {name: value for name, value in own.items() if value is not None}
    chosen = {"workers": cores(), "clock": "work", **{name: stored[name] for name in own if name in stored}, **given}
    fixed = {**stored.get("pins", {}), **{k: v for k, v in pins.items() if v is not None}}
    Recipe.of(fixed)  # fails before anything is read
    listed = stored.get("recipes")
    recipes = None if listed is None else [Recipe.of(recipe).changed(**fixed) for recipe in listed]
    metric, positive, kept = (chosen.pop(name, None) for name in ("metric", "positive", "keep_data"))
    if kept and not source.files:
        raise Fail(f"--keep-data keeps copies of files, and {source.name} is a data set; leave it out.", USAGE)
    if metric is not None:
        check_choice(metric, tuple(METRICS), "--metric")
    if chosen.get("threshold") is not None and chosen.get("flag_share") is not None:
        raise Fail("Give --threshold or --flag-share, not both.", USAGE)
    if not chosen.get("budget", 1) > 0:
        raise Fail(f"--budget is a positive number of seconds, not {chosen['budget']}.", USAGE)
    if given.get("clock") == "cpu":
        chosen["budget"] /= chosen["workers"]
    compared = None if recipes is None or fixed else stored.get("finalists")
    again: dict[str, Any] = {} if compared is None else {"finalists": compared}
    if recipes is not None and not fixed:
        again["baselines"] = stored.get("baselines", 0)
    plan = Plan(**chosen, pins=fixed, recipes=recipes, choose=stored.get("choose", "auto"), **again)
    return _Wanted(source, metric, positive, plan, bool(kept))


def _read_settings(path: Path) -> dict[str, Any]:
    import tomllib

    if path.is_dir():
        path = path / SETTINGS
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Fail(f"{path}: no such file. {SETTINGS} of a folder that pegfan train wrote is one.") from None
    except (ValueError, RecursionError) as error:  # not TOML, not text, or brackets without end
        raise Fail(f"{path} is not a file of settings: {error}") from error
    for name, value in stored.items():
        if name not in _KEYS:
            raise Fail(f"{path}: unknown setting {name!r}; {choices(name, list(_KEYS))}")
        if not isinstance(value, _KEYS[name]) or isinstance(value, bool) != (_KEYS[name] is bool):  # type: ignore[arg-type]
            raise Fail(f"{path}: {name} must not be {value!r}")
    if stored.get("format", _FORMAT) != _FORMAT or stored.get("version", _VERSION) != _VERSION:
        raise Fail(
            f"{path} says {stored.get('format')!r}, version {stored.get('version')}, and this pegfan reads "
            f"{_FORMAT!r}, version {_VERSION}: train again without it, or use the pegfan that wrote it"
        )
    if stored.get("clock", "wall") not in ("wall", "work", "cpu"):
        raise Fail(f"{path}: clock must be wall, work or cpu, not {stored['clock']!r}")
    for name, least in (("seed", 0), ("split", 0), ("splits", 1), ("workers", 1), ("baselines", 0)):
        if stored.get(name, least) < least:
            raise Fail(f"{path}: {name} must be at least {least}, not {stored[name]}")
    if not all(isinstance(recipe, dict) for recipe in stored.get("recipes", ())) or stored.get("recipes") == []:
        raise Fail(f"{path}: recipes must be tables, [[recipes]], at least one; or leave them out")
    places = range(len(stored.get("recipes", ())))
    for place in stored.get("finalists", ()):
        if isinstance(place, bool) or not isinstance(place, int) or place not in places:
            raise Fail(f"{path}: finalists must be places in recipes, not {place!r}; or leave them out")
    return stored


def _stored_source(
    stored: Any, reading: Mapping[str, Any], beside: Path, make: Callable[..., Source] | None = None
) -> Source:
    """The source that a file names; paths hold as they are, or from the parent of the output folder."""
    try:
        where, options = [str(path) for path in stored["where"]], dict(stored.get("options", {}))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise Fail(f"the stored source {stored!r} names no files; it needs a list 'where'") from None
    home = (beside / "..").resolve()
    if not all(Path(path).exists() for path in where) and all((home / path).exists() for path in where):
        where = [os.path.relpath(home / path) for path in where]
    given = {**options, **{k: v for k, v in reading.items() if v is not None}}
    return open_source(where, **given) if make is None else make(*where, **given)


# --------------------------------------------------------------------- training


def _print_plan(shown: Any, source: Source, graph: Graph, wanted: _Wanted, folder: Path) -> None:
    import numpy as np

    from pegfan.auto.outcome import plan_words
    from pegfan.metrics import METRICS

    plan, metric = wanted.plan, METRICS[graph.metric]
    labelled = int(graph.labelled.sum())
    held = 0 if graph.labels is None else len(np.unique(graph.labels[graph.labelled]))
    what = f"{labelled:,} labelled, {held} classes"
    if graph.targets is not None:
        what = f"{labelled:,} with a number to predict (--label-kind classes reads classes)"
    shown.print(
        f"[bold]{literal(source.name)}[/bold]: {graph.n:,} nodes, {graph.n_edges:,} edges, {what}, "
        f"{len(graph.splits) or 'no'} splits",
        soft_wrap=True,
    )
    why = f": {plan.metric_reason}" if plan.metric_reason else ""
    found = f" of “{graph.classes[1]}”" if metric.two_classes and graph.n_classes == 2 else ""
    shown.print(f"Judged by {metric.words}{literal(found)}, {metric.says}{literal(why)} (--metric)", soft_wrap=True)
    shown.print(f"{plan_words(graph, plan)}; writes {literal(str(folder))}", soft_wrap=True)


def _carry_out(graph: Graph, plan: Plan, start: float) -> Outcome:
    from pegfan.auto.outcome import carry_out
    from pegfan.running import Step

    def words(step: Step) -> str:
        if step.text:
            return step.text
        return f"{step.done} of {step.planned} recipes" if step.planned else f"{step.done} recipes tried"

    clock = None if plan.recipes is not None else plan.budget - (time.perf_counter() - start)
    with progress_bar("training", words, seconds=clock) as progress:
        return carry_out(graph, plan, progress, start)


def _complete(outcome: Outcome, source: Source, report: ReadReport | None, folder: Path) -> Result:
    """The result with what only the command line knows."""
    return replace(
        outcome.result,
        title=" + ".join(Path(part).name or part for part in source.where),
        data=replace(
            outcome.result.data,
            report=None if report is None else str(report),
            schema=None if report is None else report.schema.to_dict(),
        ),
        source=source,
        command=f"pegfan train --config {shlex.quote(str(folder / SETTINGS))} -o again",
    )


def _among_others(result: Result, graph: Graph, plan: Plan) -> Result:
    """The result with the model among quick ones, which try a few settings each on the model's split."""
    from pegfan.comparison import compare, quick_ones
    from pegfan.results import Rival, ranked

    assert result.splits is not None
    assert result.chosen is not None
    if graph.targets is not None:
        errors.print("[yellow]![/yellow] Not shown among others: those predict classes only.")
        return result
    if result.test is None or None in result.test.per_split:
        errors.print("[yellow]![/yellow] Not shown among others: there are splits without labelled test nodes.")
        return result
    with progress_bar("others", lambda step: step.text) as progress:
        found = compare(
            graph,
            quick_ones(),
            splits=result.splits.used,
            tries=_TRIES,
            seed=plan.seed,
            workers=plan.workers,
            progress=progress,
        )
    if not found.complete:
        errors.print("[yellow]![/yellow] Interrupted: only those that were done are shown beside the model.")
    own = Rival("model", "this model", how=result.chosen.how, test=result.test, validation=result.validation)
    return replace(result, against=ranked([own, *found.rows], result.splits, result.data.metric))


# ---------------------------------------------------------------------- writing


def _check_place(folder: Path, force: bool) -> None:
    """Refuse a folder that cannot or must not be written, before any work is done for it."""
    from pegfan._atomic import try_folder

    if folder.exists() and not folder.is_dir():
        raise Fail(f"{folder} is a file; name a folder to write with -o.")
    with writing(folder):
        try_folder(folder)
    _check_folder(folder, force)


def _check_folder(folder: Path, force: bool) -> None:
    """Refuse to replace anything but what this command wrote, and that only with --force."""
    from pegfan._atomic import is_passing

    held = [path for path in folder.iterdir() if not is_passing(path.name)] if folder.is_dir() else []
    if not held:
        return
    if not force:
        raise Fail(f"{folder} exists. Choose another folder with -o, or replace it with --force.")
    foreign = _foreign(folder, held)
    if foreign is not None:
        raise Fail(
            f"{folder} holds {str(foreign.relative_to(folder))!r}, which pegfan train did not write and does not "
            "replace. Move it elsewhere, or choose another folder."
        )
    if not (folder / RESULT).exists():
        raise Fail(f"{folder} has no {RESULT}, so pegfan train did not write it. Choose another folder.")
    _read_result(folder)


def _foreign(folder: Path, held: Sequence[Path]) -> Path | None:
    """What in a folder is not of a training: a name that none has, or a file that its model or data do not list."""
    from pegfan._saved import MODEL as DESCRIPTION
    from pegfan.datasets._kept import DESCRIPTION as KEPT

    listed = {MODEL: DESCRIPTION, DATA: KEPT}
    for path in sorted(held):
        if path.name not in (PREDICTIONS, RANKED, MODEL, SETTINGS, RESULT, REPORT, DATA) or path.is_symlink():
            return path
        if path.is_dir() != (path.name in listed):
            return path
        if path.is_dir():
            about = path / listed[path.name]
            try:
                known = {about.name, *json.loads(about.read_bytes())["files"]}
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                return about if about.exists() else path
            foreign = min(
                (file for file in path.iterdir() if file.name not in known or not file.is_file()), default=None
            )
            if foreign is not None:
                return foreign
    return None


def _reasons(model: NodeModel, graph: Graph, counts: Sequence[int], nodes: Any = None) -> list[str]:
    """The largest reasons per node: for the rarer class of two, or for the one that is predicted."""
    from pegfan.explain import Explainer
    from pegfan.results import rarer_class

    with errors.status("finding reasons"):
        return Explainer(model.fitted_, graph).texts(nodes, target=rarer_class(counts))


def _write_all(
    folder: Path, force: bool, outcome: Outcome, result: Result, settings: bytes, kept: Source | None
) -> _Whole:
    """Write all that a training gave, or nothing."""
    from pegfan._atomic import replacing_folder

    text = result.to_json()
    with errors.status(f"writing {literal(str(folder))}"), replacing_folder(folder) as temporary:
        for name, table in _tables(outcome, result).items():
            _write_text(temporary / name, table)
        outcome.model.save(temporary / MODEL)
        if kept is not None:
            kept.keep(temporary / DATA)
        _write_text(temporary / SETTINGS, settings.decode())
        _write_text(temporary / RESULT, text)
        _check_folder(folder, force)  # another process may have written there meanwhile
    outcome.model.trials_ = []  # each has outputs for all nodes
    return _Whole(folder, text.encode())


def _tables(outcome: Outcome, result: Result, reasons: Sequence[str] | None = None) -> dict[str, str]:
    """The predictions, and the nodes to look at first, as the texts of files."""
    graph, classes = outcome.graph, result.data.classes
    columns = (outcome.probabilities, outcome.predicted, classes, outcome.parts, reasons)
    return {PREDICTIONS: _table(graph, *columns, graph.subjects), RANKED: _ranked(outcome, result, reasons)}


# -------------------------------------------------- what is added to a whole folder


class _Replaced(Fail):
    """Another process has written the folder."""


class _Whole:
    """A folder that is whole; files are added to it as long as no other process has written it.

    Parameters
    ----------
    folder
        The folder.
    stored
        What its result.json holds.
    """

    def __init__(self, folder: Path, stored: bytes) -> None:
        self.folder, self.stored = folder, [stored]

    def check(self) -> None:
        """Raise unless the folder is still what was written."""
        if (self.folder / RESULT).read_bytes() not in self.stored:
            raise _Replaced(f"{self.folder} was written by another process meanwhile.")

    def write(self, texts: Mapping[str, str]) -> None:
        """Replace files, one right after the other once all of them are written."""
        from pegfan._atomic import replacing

        self.check()
        if RESULT in texts:  # a disk may break after that
            self.stored = [*self.stored[-1:], texts[RESULT].encode()]
        with contextlib.ExitStack() as files:
            for name, text in texts.items():
                file = files.enter_context(replacing(self.folder / name))
                file.write(text.encode())
                file.flush()


def _optional_parts(whole: _Whole, outcome: Outcome, plan: Plan, reasons: bool, against: bool) -> dict[str, _Part]:
    """What `pegfan train` adds to a folder, by name and in order."""
    model, graph = outcome.model, outcome.graph

    def add_column(result: Result) -> Result:
        whole.write(_tables(outcome, result, _reasons(model, graph, result.data.class_counts)))
        return result

    def add_rivals(result: Result) -> Result:
        return _among_others(result, graph, plan)

    def add_report(result: Result) -> Result:
        from pegfan.report import write_report

        whole.check()
        with errors.status("writing the report"):
            write_report(whole.folder / REPORT, result, graph, _shown_tree(model), outcome.probabilities)
        return result

    parts = _explaining_parts(model, graph)
    parts |= {_COLUMN: add_column} if reasons else {}
    parts |= {_AGAINST: add_rivals} if against else {}
    return parts | {REPORT: add_report}


def _explaining_parts(model: NodeModel, graph: Graph) -> dict[str, _Part]:
    """What says why the model predicts what it does; `pegfan report` adds it, too."""

    def add_columns(result: Result) -> Result:
        from pegfan.auto.reasons import add_importances

        with errors.status("finding which columns matter"):
            return add_importances(result, model.fitted_, graph)

    def add_nodes(result: Result) -> Result:
        from pegfan.auto.reasons import add_reasons

        with errors.status("finding reasons"):
            return add_reasons(result, model.fitted_, graph)

    return {_IMPORTANCES: add_columns, _REASONS: add_nodes}


def _add_parts(whole: _Whole, result: Result, parts: Mapping[str, _Part]) -> Result:
    """Add parts to a folder that is whole, one after the other; one that fails costs a warning and nothing else.

    Every file is there whole or as it was, wherever this ends, and no two parts need memory at the same time.
    """
    left = list(parts)
    try:
        while left:
            result = _add_part(whole, result, left[0], parts[left[0]])
            del left[0]
    except _Replaced as error:
        _warn(f"Left out: {', '.join(left)}. {error}")
    except KeyboardInterrupt:
        _warn(f"The model is complete. Left out: {', '.join(left)}.{_advice(whole, left)}")
        raise
    return result


def _add_part(whole: _Whole, result: Result, name: str, add: _Part) -> Result:
    """The result with a part, as it is stored; or without it, and with a note that says why."""
    from pegfan.running import release_memory

    failure = ""
    try:
        added = _timed(add, result)
    except _Replaced:
        raise
    except Exception as error:
        log.debug("%s failed", name, exc_info=True)
        added, failure = result, f"Left out: {name}. {_describe_failure(error)}{_advice(whole, [name])}"
    gc.collect()  # an error holds what was in memory when it was raised
    release_memory()
    try:
        noted = _noted(added, name, failure)
        if noted != result:
            whole.write({RESULT: noted.to_json()})
        added = noted
    except _Replaced:
        raise
    except Exception as error:
        log.debug("%s is not stored", name, exc_info=True)
        failure = failure or f"Left out of {RESULT}: {name}. {_describe_failure(error)}{_advice(whole, [name])}"
    if failure:
        _warn(failure)
    return added


def _noted(result: Result, name: str, failure: str) -> Result:
    """The result with a note why a part is left out, or without one; that of the report would not be read there."""
    from pegfan.results import Note

    kind = f"{_WITHOUT}{name}"
    others = tuple(note for note in result.warnings if note.kind != kind)
    return replace(result, warnings=(*others, Note(kind, failure)) if failure and name != REPORT else others)


def _advice(whole: _Whole, left: Sequence[str]) -> str:
    """What `pegfan report` makes up for, of what is left out."""
    later = [name for name in left if name not in (_COLUMN, _AGAINST)]
    return f" pegfan report {shlex.quote(str(whole.folder))} adds {', '.join(later)} later." if later else ""


def _warn(text: str) -> None:
    errors.print(f"[yellow]![/yellow] {literal(text)}", soft_wrap=True)


def _timed(add: _Part, result: Result) -> Result:
    """What a part makes of a result, with the seconds that it took."""
    start = time.perf_counter()
    added = add(result)
    if added is result or added.seconds is None:
        return added
    return replace(added, seconds=replace(added.seconds, total=added.seconds.total + time.perf_counter() - start))


def _describe_failure(error: Exception) -> str:
    sentence, code = describe(error)
    is_bug = code == INTERNAL or isinstance(error, (ValueError, TypeError))  # here, no input is left to be wrong
    ending = " This is a bug in pegfan; --log-file shows where." if is_bug else ""
    return f"{sentence.rstrip('.')}.{ending}"


def _shown_tree(model: NodeModel) -> Hierarchy | None:
    return next((member.tree for member in model.fitted_.members if member.tree is not None), None)


def _shown_outputs(model: NodeModel, graph: Graph) -> Any:
    """Probabilities, or predicted numbers in one column."""
    import numpy as np

    fitted = model.fitted_
    return fitted.values(graph)[:, None] if fitted.numeric else np.exp(fitted.log_probabilities(graph))


def _write_text(path: Path, text: str) -> None:
    from pegfan._atomic import replacing

    with replacing(path) as file:
        file.write(text.encode())


def _table(
    graph: Graph,
    probabilities: Any,
    predicted: Any,
    classes: Sequence[str],
    parts: Sequence[str],
    reasons: Sequence[str] | Mapping[int, str] | None = None,
    nodes: Any = None,
) -> str:
    """The table of predictions as CSV, with reasons where they were asked for; without classes, that of numbers.

    It is of all nodes, or of some.
    """
    import numpy as np

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    more = [] if reasons is None else ["top_reasons"]
    writer.writerow(["id", "predicted", *(f"p_{name}" for name in classes), "split", *more])
    wanted = np.arange(graph.n) if nodes is None else nodes
    numbers = ",".join(["%.9g"] * max(len(classes), 1))
    for start in range(0, len(wanted), _ROWS):
        own = wanted[start : start + _ROWS]
        names = _quoted([*map(str, graph.ids[own].tolist())])
        shown = np.asarray(probabilities if classes else predicted)[own].reshape(len(own), -1).tolist()
        texts = [numbers % tuple(row) for row in shown]  # a row at once: a million of them take a while
        if classes:
            of_class = _quoted(classes)
            texts = [f"{of_class[k]},{text}" for k, text in zip(predicted[own].tolist(), texts, strict=True)]
        ends = [parts[i] for i in own.tolist()]
        if reasons is not None:
            told = _quoted([reasons[i] for i in own.tolist()])
            ends = [f"{end},{text}" for end, text in zip(ends, told, strict=True)]
        lines = zip(names, texts, ends, strict=True)
        out.writelines(f"{name},{text},{end}\n" for name, text, end in lines)
    return out.getvalue()


def _quoted(words: Sequence[str]) -> list[str]:
    """Words as cells of a CSV file."""
    every = "".join(words)
    if all(words) and not any(mark in every for mark in ',"\r\n') and not every.isspace():
        return list(words)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    cells = []
    for word in words:
        writer.writerow([word, ""])  # a second cell: an empty one alone would be quoted
        cells.append(out.getvalue()[:-2])
        out.seek(0)
        out.truncate()
    return cells


def _ranked(outcome: Outcome, result: Result, reasons: Sequence[str] | None) -> str:
    """The nodes to look at first as CSV: those without a label, or test nodes where every node has one."""
    from pegfan.results import rank, rank_numbers

    graph, ids = outcome.graph, list(map(str, outcome.graph.ids.tolist()))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    split = outcome.judged
    if graph.targets is not None:
        writer.writerow(["rank", "id", "predicted", *([] if reasons is None else ["top_reasons"])])
        for place, i in enumerate(rank_numbers(graph, split, outcome.predicted)[0].tolist(), start=1):
            more = [] if reasons is None else [reasons[i]]
            writer.writerow([place, ids[i], f"{outcome.predicted[i]:.9g}", *more])
        return out.getvalue()
    nodes, classes, _, _ = rank(graph, split, outcome.probabilities)
    writer.writerow(["rank", "id", "class", "probability", *([] if reasons is None else ["top_reasons"])])
    place, before = 0, None
    for i, k in zip(nodes.tolist(), classes.tolist(), strict=True):
        place, before = (place + 1 if k == before else 1), k
        more = [] if reasons is None else [reasons[i]]
        writer.writerow([place, ids[i], result.data.classes[k], f"{outcome.probabilities[i, k]:.9g}", *more])
    return out.getvalue()


# ---------------------------------------------------------------- what was written


def _read_result(folder: Path, stored: bytes | None = None) -> Result:
    from pegfan.results import Result

    try:
        return Result.from_json((folder / RESULT).read_bytes() if stored is None else stored)
    except ValueError as error:
        raise Fail(f"{folder / RESULT} cannot be read: {error}. Train again, into another folder.") from error


def load_model(folder: Path, max_bytes: str | None = None) -> tuple[NodeModel, Result | None]:
    """A model by its folder or the one around it, and the result beside it if there is one."""
    from pegfan._saved import MODEL as DESCRIPTION
    from pegfan.auto import load_model as load

    if not folder.exists():
        raise Fail(f"{folder}: no such folder. Name what pegfan train wrote with -o.")
    place = folder if (folder / DESCRIPTION).is_file() else folder / MODEL
    if not place.is_dir():
        raise Fail(
            f"{folder} holds no model: neither {DESCRIPTION} nor a folder {MODEL!r}. Name what pegfan train wrote."
        )
    model = load(place, max_bytes)
    result = _read_result(place.parent) if (place.parent / RESULT).is_file() else None
    return model, result


def training_source(result: Result, home: Path) -> Source:
    """What a model was trained on: as it was kept beside the model, else where it was."""
    from pegfan.datasets import Source

    if (home / DATA).is_dir():
        return Source.kept(home / DATA)
    return _stored_source(result.source.to_dict() if result.source else None, _as_read(result), home)


def reopen(result: Result, home: Path) -> tuple[Source, Graph]:
    """The graph that a result is about."""
    source = training_source(result, home)
    try:
        graph, _ = source.open(_schema(result))
    except (OSError, ValueError) as error:
        raise Fail(
            f"The data that the model was trained on cannot be read any more: {error}. Put {source.name} back where it "
            "was, or train again."
        ) from error
    if len(result.data.classes) == 2 == graph.n_classes and str(graph.classes[0]) == result.data.classes[1]:
        graph = graph.with_positive(result.data.classes[1])
    return source, graph.replace(metric=result.data.metric)


def read_like(
    where: list[str], given: Mapping[str, Any], stored: Result | None
) -> tuple[Source, Graph, ReadReport | None]:
    """The graph to predict on, read as the one that was trained on; it need not have labels."""
    from pegfan.datasets import NoLabels

    chosen = {name: value for name, value in given.items() if value is not None}
    before = dict(stored.source.options) if stored and stored.source else {}
    options = {**_as_read(stored), **before, **chosen}
    if not open_source(where).files:
        return read(where, **chosen)
    schema = None if stored is None else _schema(stored)
    try:
        return read(where, schema, **options)
    except NoLabels:
        if "label" in chosen:
            raise
        return read(where, schema, **{**options, "label": False})


def _as_read(result: Result | None) -> dict[str, Any]:
    """How labels are read: as those of the training were, whatever a table of other nodes would be taken for."""
    if result is None or result.source is None or not result.source.files:
        return {}
    return {"label_kind": "classes" if result.data.target is None else "numbers"}


def _schema(result: Result) -> Schema | None:
    """How the tables of a result were read; results from before there were schemas have the names of features."""
    from pegfan.datasets import Schema

    if result.data.schema is not None:
        return Schema.from_dict(result.data.schema)
    return Schema.of_names(result.data.feature_names) if result.data.feature_names else None


def _left_out(trained: Sequence[str] | None, own: Sequence[str] | None) -> list[str]:
    new = sorted(set(own or ()) - set(trained)) if trained is not None else []
    if not new:
        return []
    shown = ", ".join(new[:5]) + (f" and {len(new) - 5} more" if len(new) > 5 else "")
    return [f"Feature columns that were not there in training are ignored: {shown}."]


def require_names(model: NodeModel, graph: Graph) -> None:
    """Refuse to take columns by their order where only one side knows their names: files order them as they like."""
    fitted = model.fitted_
    if fitted.stood_in or graph.features is None or (fitted.feature_names is None) == (graph.feature_names is None):
        return
    without, named = ("The model", "the graph") if fitted.feature_names is None else ("The graph", "the model")
    raise Fail(
        f"{without} does not know the names of its feature columns, and {named} does, so that they cannot be matched. "
        f"Name the whole folder that pegfan train wrote (its {RESULT} may know them), or give the graph in a format as "
        "in training: tables have names, arrays have them in 'feature_names'."
    )


def _doubts(model: NodeModel, graph: Graph, report: ReadReport | None) -> list[str]:
    """Say where nodes are told by their position only, and there are others than in training."""
    known = model.fitted_.known
    doubt = None if known is None or (report is not None and not report.numbered) else known.doubt(graph)
    return [] if doubt is None else [f"{doubt[0].upper()}{doubt[1:]}."]


def _known_parts(model: NodeModel, graph: Graph) -> list[str]:
    known = model.fitted_.known
    if known is None:
        return ["none"] * graph.n
    pairs = zip(known.labels_of(graph).tolist(), known.held_out(graph).tolist(), strict=True)
    return [f"fold {fold + 1}" if fold >= 0 else "train" if code >= 0 else "none" for code, fold in pairs]


# --------------------------------------------------------------------- printing


def _print_outcome(result: Result, folder: Path) -> None:
    from pegfan.metrics import METRICS
    from pegfan.report.words import calibration, decision, errors_of, unequal
    from pegfan.results import verdict

    assert result.chosen is not None
    assert result.splits is not None
    assert result.seconds is not None
    measure = METRICS[result.data.metric]
    metric = measure.title
    members = sum(candidate.chosen for candidate in result.candidates)
    title = "Candidates: those in the model with their weights, then the others by validation"
    more = ("loss", "epochs", "seconds") if console.width >= _ROOM else ()  # else recipes would be a word per line
    table = make_table(title, "weight", metric, *more, "recipe<")
    shown = result.candidates[: max(_SHOWN, members)]
    for candidate in shown:
        table.add_row(
            f"[green]{candidate.weight:.0%}[/green]" if candidate.chosen else "",
            measure.show(candidate.val_metric),
            *(
                "–" if candidate.val_loss is None else f"{candidate.val_loss:.4f}",
                str(candidate.epochs),
                f"{candidate.seconds:.1f}",
            )[: len(more)],
            literal(candidate.name),
        )
    print_table(table)
    console.print(
        "[dim]S: hops; S~: hops that keep the node itself; ^r: up to r of them; +A: who is joined to whom; "
        "+Y: training labels of neighbours; between: by the features in between; in two stages: known or predicted "
        "labels; by W: edges weighed by W; +kinds: hops along each kind of edges; words: steps along and against the "
        "edges, mixed; principal: mixtures of columns; +spectrum: where in the graph a node is[/dim]\n"
    )
    left = len(result.candidates) - len(shown)
    if left:
        console.print(f"and {left} more; {REPORT if (folder / REPORT).exists() else RESULT} lists them all\n")
    console.print(f"Chosen: [bold]{result.chosen.how}[/bold]; {literal(result.chosen.reason)}\n", soft_wrap=True)
    count = len(result.splits.used)
    table = make_table(f"On test nodes, {count} split{'s' if count > 1 else ''}", "", f"{metric} (95% interval)")
    model, floor = (
        "–" if spread is None else spread.shown(result.data.metric, 1) for spread in (result.test, result.features_only)
    )
    table.add_row("[bold]this model[/bold]", f"[bold]{model}[/bold]")
    table.add_row("features only, without the graph", floor)
    floor = "majority class" if result.regression is None else "the mean of training nodes"
    table.add_row(floor, measure.show(None if result.majority is None else result.majority.mean, 1))
    print_table(table)
    if result.regression is not None:
        console.print(literal(errors_of(result)), soft_wrap=True)
    for sentence in filter(None, (decision(result), calibration(result))):
        console.print(literal(sentence), soft_wrap=True)
    if result.against:
        print_rivals(f"Against the others, {count} split{'s' if count > 1 else ''}", result.against, result.data.metric)
        console.print(literal(verdict(result.against, result.data.metric)), soft_wrap=True)
        console.print(f"{unequal(result)}\n", soft_wrap=True)
    # What was left out was said when it failed.
    print_warnings([note.text for note in result.warnings if not note.kind.startswith(_WITHOUT)])
    files = {"Predictions": PREDICTIONS, "Look at these first": RANKED, "Report": REPORT, "To repeat": SETTINGS}
    print_files({what: folder / name for what, name in files.items() if (folder / name).exists()})
    console.print(f"{result.seconds.total:.0f} s in total")
