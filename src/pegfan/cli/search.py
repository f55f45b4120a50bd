"""``pegfan search``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from pegfan import _defaults as default
from pegfan.cli._options import Json, Metric, Reading, Sources, Tls, check_choice, open_source, use_tls
from pegfan.cli._shell import INTERRUPTED, Fail, command, console, errors, literal
from pegfan.cli._show import make_table, print_json, print_table, progress_bar, save, writing

if TYPE_CHECKING:
    from pegfan.datasets import Source
    from pegfan.experiments.search import SearchResult

_DRAWN = 5
"""Splits that are drawn where the graph has none."""
_SHOWN = 10
"""Settings in the printed table."""
_SHORT = {"dropout": "drop", "hop_normalize": "norm"}


@command("pegfan search chameleon -o results/chameleon --strategy halving --budget 600")
def search(
    *,
    graph: Sources,
    folder: Annotated[Path, typer.Option("-o", "--output", help="The store: a folder, made if it is missing.")],
    reading: Reading,
    metric: Metric = None,
    strategy: Annotated[str, typer.Option(help="grid (all of it), halving (successive) or optuna.")] = "halving",
    settings: Annotated[
        str, typer.Option("--grid", help="paper: its 108 settings; authors: the 1080 of their code.")
    ] = "paper",
    trials: Annotated[int, typer.Option(min=1, help="How many settings optuna draws.")] = 40,
    method: Annotated[
        str,
        typer.Option(
            help=f"How the tree is built: auto, {', '.join(default.BUILDERS)}; none is FSGNN, without a tree."
        ),
    ] = default.METHOD,
    h: Annotated[int, typer.Option("--h", min=2, help="The most children of a cluster of the tree.")] = default.H,
    kind: Annotated[str, typer.Option(help="The type of channels on the tree: a, b, c or as.")] = default.KIND,
    regime: Annotated[
        str, typer.Option(help="Which hop matrix: auto, heterophily, homophily or all.")
    ] = default.REGIME,
    hops: Annotated[int, typer.Option(min=0, help="The highest power of the hop matrix.")] = default.HOPS,
    scaling: Annotated[
        str,
        typer.Option(
            help="l1 divides rows of features by their sums, columns brings columns to one scale; or principal, none."
        ),
    ] = default.SCALING,
    splits: Annotated[int | None, typer.Option(min=1, help="How many splits; by default all, up to 10.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="The most epochs per run.")] = 1500,
    patience: Annotated[int, typer.Option(min=1, help="Epochs without improvement after which a run ends.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run on split 0; split i has seed + i.")] = default.SEED,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each on one core.")] = 2,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Compute on this Dask cluster.")] = None,
    tls: Tls = None,
    budget: Annotated[float | None, typer.Option(min=0, help="Seconds after which no new run is started.")] = None,
    as_json: Json = False,
) -> None:
    """Search for the settings that do best on validation.

    Every run is stored as soon as it ends. If the search is stopped, the same command continues from there and
    computes nothing twice.
    """
    from pegfan import families
    from pegfan.experiments.jobs import OutOfTime
    from pegfan.experiments.search import search as find
    from pegfan.experiments.store import Store
    from pegfan.recipe import Recipe

    words = {"method": method, "kind": kind, "regime": regime, "scaling": scaling}
    for name, word in {**words, "strategy": strategy, "grid": settings}.items():
        check_choice(word, families()[name], f"--{name}")
    use_tls(tls, scheduler)
    source = open_source(graph, **vars(reading), metric=metric)
    recipe = Recipe.of({**words, "h": h, "hops": hops, "epochs": epochs, "patience": patience})
    count, drawn = _count_splits(source, splits)
    store, table = Store(folder), folder / "search.csv"
    _check_table(table)
    if not as_json:
        how = f"{count} {'random ' if drawn else ''}{'split' if count == 1 else 'splits'}"
        errors.print(
            f"{strategy} on {literal(source.name)}, {how}; {len(store)} runs in [bold]{literal(str(folder))}[/bold]"
        )
    try:
        with progress_bar("runs", lambda step: step.text) as progress:
            result = find(
                source,
                recipe,
                store,
                strategy=strategy,  # type: ignore[arg-type]
                settings=settings,  # type: ignore[arg-type]
                splits=count,
                trials=trials,
                seed=seed,
                workers=workers,
                scheduler=scheduler,
                budget=budget,
                progress=progress,
            )
    except KeyboardInterrupt:
        store.refresh()  # it may have come just after a record was written
        errors.print(
            f"[red]Interrupted.[/red] {literal(str(folder))} holds {len(store)} finished runs; the same command "
            "continues from there.",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    except OutOfTime as error:
        raise Fail(f"Nothing to show yet: {error}.") from error

    def write(place: Path) -> None:
        _check_table(place)
        result.write_csv(place)

    save(table, write)
    if as_json:
        print_json({"source": source.to_dict(), "recipe": recipe.to_dict(), **result.to_dict()})
    else:
        _show(result, folder)


def _check_table(path: Path) -> None:
    """Refuse to overwrite a table that this command did not write."""
    from pegfan._atomic import try_replacing
    from pegfan.experiments.search import is_table

    if path.exists() and not is_table(path):
        raise Fail(f"{path} exists, and pegfan search did not write it. Move it, or choose another folder with -o.")
    with writing(path):
        try_replacing(path)


def _count_splits(source: Source, wanted: int | None) -> tuple[int, bool]:
    """How many splits to use, and whether they are drawn at random because the graph has none."""
    from pegfan.experiments.jobs import graph_of

    with errors.status(f"reading {literal(source.name)}"):
        there = len(graph_of(source).splits)
    if not there:
        return wanted or _DRAWN, True
    if wanted is not None and wanted > there:
        raise Fail(f"{source.name} has {there} splits; --splits {wanted} is too many.")
    return wanted or min(there, 10), False


def _show(result: SearchResult, folder: Path) -> None:
    from pegfan.metrics import METRICS

    print_table(_table(result))
    best, measure = result.best, METRICS[result.metric]
    spread = f" ± {measure.show(result.test_std)}" if len(result.test_metrics) > 1 else ""
    chosen = ", ".join(f"{name} {_value(value, 6)}" for name, value in best.settings.items())
    console.print(f"Best on validation: {chosen}", soft_wrap=True)
    console.print(
        f"Its test {measure.words}: [bold]{measure.show(result.test_mean)}{spread}[/bold]; test results of the others "
        "were not used."
    )
    console.print(f"{result.computed} runs computed, {result.reused} from the store.")
    if not result.complete:
        console.print("[yellow]The time ran out before the end; the same command continues from there.[/yellow]")
    console.print(f"All settings: {literal(str(folder / 'search.csv'))}", soft_wrap=True)


def _table(result: SearchResult) -> Table:
    """The best settings; what is the same for all of them is left out, so that 80 columns are enough."""
    from pegfan.metrics import METRICS

    shown = result.candidates[:_SHOWN]
    names = [name for name in result.best.settings if len({c.settings.get(name) for c in result.candidates}) > 1]
    reached = [name for name in ("epochs", "splits") if len({getattr(c, name) for c in shown}) > 1]
    titles = [_SHORT.get(name, name) for name in names]
    counts = {name: getattr(shown[0], name) for name in ("epochs", "splits") if name not in reached}
    same = [f"{count} {name if count != 1 else name[:-1]}" for name, count in counts.items()]
    title = f"Settings by validation, {' and '.join(same)}" if same else "Settings by validation"
    table = make_table(title, "", *titles, *reached, "metric", "loss")
    for place, entry in enumerate(shown, start=1):
        own = [_value(entry.settings.get(name)) for name in names]
        numbers = [*(str(getattr(entry, name)) for name in reached), METRICS[result.metric].show(entry.val_metric)]
        table.add_row(str(place), *own, *numbers, f"{entry.val_loss:.4f}", style="bold" if place == 1 else None)
    return table


def _value(value: Any, digits: int = 2) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
