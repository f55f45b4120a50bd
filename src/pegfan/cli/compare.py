"""``pegfan compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pegfan import _defaults as default
from pegfan.cli._complete import complete_models
from pegfan.cli._options import (
    PICTURES,
    Force,
    Json,
    Metric,
    Reading,
    Sources,
    Tls,
    assignments,
    check_output,
    open_source,
    use_tls,
)
from pegfan.cli._shell import ERROR, INTERRUPTED, USAGE, Fail, command, console, errors
from pegfan.cli._show import print_files, print_json, print_rivals, progress_bar, save, save_picture

if TYPE_CHECKING:
    from pegfan.comparison import Comparison

_STORE = Path("comparison")


@command("pegfan compare nodes.csv edges.csv --label kind --models pegfan,fsgnn --report page.html")
def compare(
    *,
    graph: Sources,
    reading: Reading,
    metric: Metric = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            autocompletion=complete_models,
            help="Which models, separated by commas; quick: PEGFAN and those that train in seconds. By default all.",
        ),
    ] = None,
    splits: Annotated[
        int | None, typer.Option(min=1, help="How many splits; by default all, or 10 drawn ones if there are none.")
    ] = None,
    tries: Annotated[int, typer.Option(min=1, help="The budget: settings that every model tries.")] = default.TRIES,
    search_splits: Annotated[int, typer.Option(min=1, help="On how many of the splits they are tried.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="The same for every try of every model, as epochs=200."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws; split i is trained with seed + i.")] = (
        default.SEED
    ),
    store: Annotated[Path, typer.Option(help="Where runs are kept; runs that are there are not repeated.")] = _STORE,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each on one core.")] = 1,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Compute on this Dask cluster.")] = None,
    tls: Tls = None,
    picture: Annotated[Path | None, typer.Option("-o", "--output", help="A picture of it: .png, .svg or .pdf.")] = None,
    report: Annotated[Path | None, typer.Option(help="A page to open in a browser: .html.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare models on one graph: the same splits, and the same budget of search for each.

    Every model tries a few settings, its default first, and is trained on all splits with those that are best on
    validation nodes. The table has the mean and spread over splits, the difference to the best with its 95% interval,
    CPU seconds per split, and memory. Where the interval holds 0, the difference means nothing, and the table says so.
    A model that cannot run on this graph says why, and the others go on.

    Every run is stored as soon as it ends. Stop whenever you like: the same command continues from there.

    More examples:

      pegfan compare chameleon

      pegfan compare cornell --models pegfan,fsgnn --tries 20 --workers 2 -o cornell.png

      pegfan compare cornell --splits 3 --set epochs=100 --json
    """
    from pegfan.comparison import CONTENDERS
    from pegfan.comparison import compare as contest

    check_output(picture, force, PICTURES, "The picture")
    check_output(report, force, (".html",), "The page")
    names = None if models is None else [name.strip() for name in models.split(",") if name.strip()]
    unknown = [name for name in names or () if name not in (*CONTENDERS, "quick")]
    if unknown:
        raise Fail(f"--models does not know {unknown[0]!r}; there are {', '.join(CONTENDERS)}, and quick.", USAGE)
    use_tls(tls, scheduler)
    source = open_source(graph, **vars(reading), metric=metric)
    with progress_bar("comparing", lambda step: step.text, remaining=True) as progress:
        found = contest(
            source,
            names,
            splits=splits,
            tries=tries,
            search_splits=search_splits,
            seed=seed,
            changes=assignments(settings or []),
            store=store,
            workers=workers,
            scheduler=scheduler,
            progress=progress,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        _show(found)
    if not found.complete:  # no files, so that the same command does not find them in its way
        errors.print(f"[red]Interrupted.[/red] The same command continues from {escape(str(store))}.", soft_wrap=True)
        raise typer.Exit(INTERRUPTED)
    _write(found, picture, report)
    if not as_json:
        print_files({"Picture": picture if found.best else None, "Page": report, "Runs": store})
    if found.best is None:
        raise typer.Exit(ERROR)


def _write(found: Comparison, picture: Path | None, report: Path | None) -> None:
    if picture is not None and found.best is not None:
        save_picture(found.plot(), picture)
    if report is not None:
        from pegfan.report import write_comparison

        save(report, lambda place: write_comparison(place, found))


def _show(found: Comparison) -> None:
    count, drawn = len(found.splits.used), "random " * found.splits.made
    title = f"{escape(found.title)}, test nodes of {count} {drawn}split{'s' * (count > 1)}"
    print_rivals(title, found.rows, found.data.metric)
    console.print(f"[bold]{escape(found.verdict)}[/bold]", soft_wrap=True)
    if found.best is not None:
        console.print(f"{found.budget}\n", soft_wrap=True)
