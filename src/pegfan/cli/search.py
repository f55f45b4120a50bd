"""``pegfan search``."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from pegfan.cli._shell import (
    INTERRUPTED,
    USAGE,
    Directed,
    Fail,
    Head,
    Id,
    Json,
    Label,
    Metric,
    Sources,
    Tail,
    command,
    console,
    errors,
    make_table,
    open_source,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from pegfan.datasets import Source
    from pegfan.experiments.search import SearchResult, Step

_DRAWN = 5
"""Splits that are drawn where the graph has none."""
_SHOWN = 10
"""Settings in the printed table."""
_SHORT = {"dropout": "drop", "hop_normalize": "norm"}


Strategy = StrEnum("Strategy", ["grid", "halving", "optuna"])
Grid = StrEnum("Grid", ["paper", "authors"])
Model = StrEnum("Model", ["pegfan", "fsgnn"])
Kind = StrEnum("Kind", ["a", "b", "c", "as"])
Method = StrEnum("Method", ["auto", "ward", "adjacency", "matching"])
Regime = StrEnum("Regime", ["auto", "homophily", "heterophily", "all"])


@command("pegfan search chameleon -o results/chameleon --strategy halving --budget 600")
def search(
    graph: Sources,
    folder: Annotated[Path, typer.Option("-o", "--output", help="The store: a folder, made if it is missing.")],
    label: Label = None,
    id_: Id = None,
    tail: Tail = None,
    head: Head = None,
    directed: Directed = None,
    metric: Metric = None,
    strategy: Annotated[
        Strategy, typer.Option(help="The whole grid, successive halving, or optuna.")
    ] = Strategy.halving,
    settings: Annotated[
        Grid, typer.Option("--grid", help="108 settings of the paper, or the code's 1080.")
    ] = Grid.paper,
    trials: Annotated[int, typer.Option(min=1, help="How many settings optuna draws.")] = 40,
    model: Annotated[Model, typer.Option(help="PEGFAN's channels on a tree, or FSGNN's without.")] = Model.pegfan,
    kind: Annotated[Kind, typer.Option(help="PEGFAN's type.")] = Kind.c,
    h: Annotated[int, typer.Option(min=2, help="The most children of a cluster of the tree.")] = 4,
    method: Annotated[Method, typer.Option(help="How the tree is built.")] = Method.auto,
    regime: Annotated[Regime, typer.Option(help="Which hop matrix; all of them is FSGNN's only.")] = Regime.auto,
    hops: Annotated[int, typer.Option(min=0, help="The highest power of the hop matrix.")] = 3,
    raw: Annotated[bool, typer.Option("--raw", help="Leave feature rows as they are; else each sums to one.")] = False,
    splits: Annotated[int | None, typer.Option(min=1, help="How many splits; by default all, up to 10.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="The most epochs of a run.")] = 1500,
    patience: Annotated[int, typer.Option(min=1, help="Epochs without improvement that end a run.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of split 0's run; split i has seed + i.")] = 42,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each on one core.")] = 2,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Compute on this Dask cluster.")] = None,
    budget: Annotated[float | None, typer.Option(min=0, help="Seconds after which no run is begun.")] = None,
    as_json: Json = False,
) -> None:
    """Search for the settings that do best on validation.

    Every run goes to the store as it ends. Whatever stops the search, the same command goes on from there, and
    computes nothing twice.
    """
    from pegfan.experiments.jobs import OutOfTime
    from pegfan.experiments.search import search as find
    from pegfan.experiments.store import Store

    options = {"label": label, "id": id_, "source": tail, "target": head, "directed": directed, "metric": metric}
    source = open_source(graph, **options)
    tree, channels = _recipe(model, kind, h, method, regime, hops, raw)
    count, drawn = _count_splits(source, splits)
    store = Store(folder)
    if not as_json:
        how = f"{count} {'random ' if drawn else ''}{'split' if count == 1 else 'splits'}"
        errors.print(
            f"{strategy} on {escape(source.name)}, {how}; {len(store)} runs in [bold]{escape(str(folder))}[/bold]"
        )
    try:
        with _Bar() as shown:
            result = find(
                source,
                tree,
                channels,
                store,
                strategy=strategy.value,  # type: ignore[arg-type]
                settings=settings.value,  # type: ignore[arg-type]
                base={"epochs": epochs, "patience": patience},
                splits=count,
                trials=trials,
                seed=seed,
                workers=workers,
                scheduler=scheduler,
                budget=budget,
                progress=shown.update,
            )
    except KeyboardInterrupt:
        store.refresh()  # it may have come just after a record was written
        errors.print(
            f"[red]Interrupted.[/red] {escape(str(folder))} holds {len(store)} finished runs; the same command goes on "
            "from there.",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    except OutOfTime as error:
        raise Fail(f"Nothing to show yet: {error}.") from error
    result.write_csv(folder / "search.csv")
    if as_json:
        print_json({"source": source.to_dict(), "tree": tree, "channels": channels, **result.to_dict()})
    else:
        _show(result, folder)


def _count_splits(source: Source, wanted: int | None) -> tuple[int, bool]:
    """How many splits to use, and whether they are drawn because the graph has none."""
    from pegfan.experiments.jobs import graph_of

    with errors.status(f"reading {escape(source.name)}"):
        there = len(graph_of(source).splits)
    if not there:
        return wanted or _DRAWN, True
    if wanted is not None and wanted > there:
        raise Fail(f"{source.name} has {there} splits; --splits {wanted} is too many.")
    return wanted or min(there, 10), False


def _recipe(
    model: Model, kind: Kind, h: int, method: Method, regime: Regime, hops: int, raw: bool
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The tree and the channels of all runs."""
    features: dict[str, Any] = {"hops": hops, "normalize_features": False if raw else "l1"}
    if model is Model.fsgnn:
        option = "all" if regime is Regime.auto else regime.value
        return None, {"model": "fsgnn", "option": option, **features}
    if regime is Regime.all:
        raise Fail("--regime all is for --model fsgnn; PEGFAN takes auto, homophily or heterophily.", USAGE)
    tree = {"method": method.value, "h": h}
    return tree, {"model": "pegfan", "kind": kind.value, "regime": regime.value, **features}


class _Bar:
    """A bar with the runs done, their rate, the time left, as far as it can be told."""

    def __init__(self) -> None:
        columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"))
        self.progress = Progress(*columns, console=errors, transient=True)
        self.task = self.progress.add_task("starting", total=None)
        self.start = time.monotonic()

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def update(self, step: Step) -> None:
        elapsed = time.monotonic() - self.start
        words = f"{step.runs} of at most {step.planned_runs} runs"
        if step.computed and elapsed > 0:
            left = elapsed * (step.planned_work - step.work) / max(1, step.work - step.reused_work)
            words += f", {step.computed / elapsed:.2g} a second, {_time(left)} left"
        self.progress.update(self.task, completed=step.work, total=step.planned_work, description=words)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _show(result: SearchResult, folder: Path) -> None:
    print_table(_table(result))
    best, word = result.best, "AUC" if result.metric == "roc_auc" else "accuracy"
    spread = f" ± {100 * result.test_std:.2f}" if len(result.test_metrics) > 1 else ""
    chosen = ", ".join(f"{name} {_value(value, 6)}" for name, value in best.settings.items())
    console.print(f"Best on validation: {chosen}", soft_wrap=True)
    console.print(
        f"Its test {word}: [bold]{100 * result.test_mean:.2f}{spread}[/bold]; that of the others was not used."
    )
    console.print(f"{result.computed} runs computed, {result.reused} from the store.")
    if not result.complete:
        console.print("[yellow]The time was up before the search was; the same command goes on from there.[/yellow]")
    console.print(f"All of it: {escape(str(folder / 'search.csv'))}", soft_wrap=True)


def _table(result: SearchResult) -> Table:
    """The best settings; what is the same for all of them is left out, so that 80 columns are enough."""
    shown = result.candidates[:_SHOWN]
    names = [name for name in result.best.settings if len({c.settings.get(name) for c in result.candidates}) > 1]
    reached = [name for name in ("epochs", "splits") if len({getattr(c, name) for c in shown}) > 1]
    titles = [_SHORT.get(name, name) for name in names]
    counts = {name: getattr(shown[0], name) for name in ("epochs", "splits") if name not in reached}
    same = [f"{count} {name if count != 1 else name[:-1]}" for name, count in counts.items()]
    title = f"Settings by validation, {' and '.join(same)}" if same else "Settings by validation"
    table = make_table(title, "", *titles, *reached, "metric", "loss")
    table.padding = (0, 1, 0, 0)
    for place, entry in enumerate(shown, start=1):
        own = [_value(entry.settings.get(name)) for name in names]
        numbers = [*(str(getattr(entry, name)) for name in reached), f"{100 * entry.val_metric:.2f}"]
        table.add_row(str(place), *own, *numbers, f"{entry.val_loss:.4f}", style="bold" if place == 1 else None)
    return table


def _value(value: Any, digits: int = 2) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
