"""``pegfan reproduce``: the paper's tables and figures, and tables of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pegfan import _defaults as default
from pegfan.cli._options import Json, Tls, use_tls
from pegfan.cli._shell import INTERRUPTED, USAGE, Fail, command, console, errors
from pegfan.cli._show import make_table, print_json, print_table, progress_bar, save, writing

if TYPE_CHECKING:
    from pegfan.paper.cells import Options
    from pegfan.paper.documents import Document

STORE, OUTPUT, SEEDS, WORKERS = Path("results"), Path("docs/results"), 3, 2


class What(StrEnum):
    """What can be reproduced."""

    table1 = "table1"
    table2 = "table2"
    table3 = "table3"
    table4 = "table4"
    figures = "figures"
    leak_free = "leak-free"
    automatic = "automatic"
    all = "all"


How = StrEnum("How", ["authors", "search"])


@command("pegfan reproduce table3 --only texas,cornell -o /tmp/tables --store /tmp/store")
def reproduce(
    what: Annotated[What, typer.Argument(help="A table, the figures, or all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A part of it, in minutes; files are named -quick.")] = False,
    trees: Annotated[
        str, typer.Option(help="own: our equivariant trees; or a folder of level labels, <set>_h<h>.npz each.")
    ] = "own",
    relations: Annotated[
        Path | None,
        typer.Option(help="Table III: the folder of GEOM-GCN's public relation files, <set>_MDS.txt.gz; else our own."),
    ] = None,
    settings: Annotated[
        How, typer.Option(help="Table III: the authors' best settings, or our own search.")
    ] = How.authors,
    store: Annotated[Path, typer.Option(help="Where runs are kept; runs that are there are not repeated.")] = STORE,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where tables and figures go.")] = OUTPUT,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, each on one core: 2; of automatic, all cores.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="Compute on the Dask cluster at this address instead.")] = None,
    tls: Tls = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Tables I, II: graphs that the winners are run on; 3, or 1 with --quick.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these data sets (or γ) and rows: texas,c8 or mixhop or 0.2,b4,r3-all. Their cells are printed."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Table IV: all 108 settings, not twelve.")] = False,
    rungs: Annotated[
        str | None, typer.Option(help="The search: settings x epochs x splits of each rung, such as 108x12,8x1500.")
    ] = None,
    splits: Annotated[
        int | None, typer.Option(min=1, help="automatic: run only so many splits of every set, the first ones.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help=f"automatic: seconds of every training; {default.BUDGET:g}, as in pegfan train."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="automatic: the seed of every training; 0.")] = None,
    render_only: Annotated[bool, typer.Option("--render-only", help="Run nothing; show what the store holds.")] = False,
    json: Json = False,
) -> None:
    """Reproduce the paper's tables and figures: our number beside the paper's, cell by cell, with a verdict.

    leak-free is a table of our own: all models on graphs without duplicated nodes, by one protocol, and what it says
    on which model to take; all leaves it out.

    automatic is how well pegfan train does by itself, with its default budget, on the nine sets of Table III, on
    leak-free sets and on plain files, beside published figures and the models of pegfan compare; all leaves it out,
    too. Choices are made on validation nodes only, and no test metric is printed before the page is written.

    Every run is stored as soon as it ends. Stop whenever you like: the same command continues from there.
    """
    from pegfan.paper.cells import Options, parse_rungs

    folder = None if trees == "own" else Path(trees)
    if folder is not None and not folder.is_dir():
        raise Fail(f"--trees {trees} is not a folder; give one with files such as chameleon_h4.npz, or own.")
    options = Options(
        quick=quick,
        trees=folder,
        settings=settings.value,  # type: ignore[arg-type]
        seeds=seeds or (1 if quick else SEEDS),
        only=tuple(part.strip() for part in ",".join(only or []).split(",") if part.strip()),
        every=every,
        rungs=None if rungs is None else parse_rungs(rungs),
        workers=workers or WORKERS,
        relations=relations,
    )
    asked = {"--splits": splits, "--budget": budget, "--seed": seed}
    if what is What.automatic:
        others: dict[str, Any] = {
            "--quick": quick,
            "--trees": folder,
            "--relations": relations,
            "--seeds": seeds,
            "--all": every,
        }
        others |= {"--settings": settings is not How.authors, "--rungs": rungs, "--scheduler": scheduler}
        _refuse(others, "is for other tables, and automatic sets nothing by hand")
    else:
        _refuse(asked, "is for automatic")
    if budget is not None and not 0 < budget < float("inf"):
        raise Fail(f"--budget is a positive number of seconds, not {budget}.", USAGE)
    if what in (What.all, What.figures) and options.only:
        raise Fail(f"--only names data sets and rows of one table; leave it out with {what.value}.")
    if folder is not None and not any(folder.glob("*_h*.npz")):
        raise Fail(f"{folder} holds no trees; its files should have names such as chameleon_h4.npz.")
    if relations is not None:
        _check_relations(relations)
    if render_only and not store.is_dir():
        raise Fail(f"{store} is not a folder, so there is nothing to show; name the store with --store.")
    use_tls(tls, scheduler)
    ours = (What.all, What.leak_free, What.automatic)
    parts = [part for part in What if part not in ours] if what is What.all else [what]
    from pegfan._atomic import try_replacing

    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
        try_replacing(output / what.value)
    summary: dict[str, Any] = {}
    try:
        for part in parts:
            text = _command(part, options, store, output, {k: v for k, v in asked.items() if k != "--splits"})
            if part is What.figures:
                from pegfan.paper.figures import write_figures

                with errors.status("drawing"):
                    document = save(output, partial(write_figures, options, store, command=text))
            elif part is What.leak_free:
                document = _leak_free(options, store, output, text, render_only, scheduler)
            elif part is What.automatic:
                document = _automatic(options.only, asked, workers, store, output, text, render_only)
            else:
                document = _table(part, options, store, output, text, render_only, scheduler)
            summary[document.name] = document.summary
            if not json:
                _show(document, options, output)
    except KeyboardInterrupt:
        errors.print(
            f"[red]Interrupted.[/red] Finished runs are in {escape(str(store))}; the same command continues from there."
        )
        raise typer.Exit(INTERRUPTED) from None
    if json:
        print_json(summary)


def _check_relations(folder: Path) -> None:
    from pegfan.paper.published import DATASETS
    from pegfan.paper.rivals import relation_files

    if not folder.is_dir():
        raise Fail(
            f"--relations {folder} is not a folder; give one with files such as chameleon_MDS.txt.gz, or leave it."
        )
    if not any(relation_files(name, folder) for name in DATASETS):
        raise Fail(f"{folder} holds no relations; its files should have names such as chameleon_MDS.txt.gz.")


def _table(
    part: What, options: Options, store: Path, output: Path, text: str, render_only: bool, scheduler: str | None
) -> Document:
    from pegfan.experiments.store import Store
    from pegfan.paper.cells import compute, lookup, read_notes
    from pegfan.paper.documents import write

    table = _tables()[part](options)
    # Times are only comparable if the same command measured them all.
    kept = Store(store / "times" if part is What.table4 else store)
    if not render_only:
        with progress_bar(part.value, lambda s: f"{s.done}/{s.planned}  {s.text}", remaining=True) as progress:
            folders = {"trees": options.trees, "relations": options.relations}
            compute(table, kept, workers=options.workers, scheduler=scheduler, **folders, progress=progress)
    document: Document = table.document(lookup(kept), text, read_notes(output, table.name))
    save(output, partial(write, document))
    return document


def _leak_free(
    options: Options, store: Path, output: Path, text: str, render_only: bool, scheduler: str | None
) -> Document:
    from pegfan.experiments.store import Store
    from pegfan.paper.documents import write
    from pegfan.paper.leak_free import LeakFree

    table, found = LeakFree(options.only), []
    with progress_bar("leak-free", lambda s: f"{s.done}/{s.planned}  {s.text}", remaining=True) as progress:
        how: dict[str, Any] = {"workers": options.workers, "scheduler": scheduler, "progress": progress}
        for one in table.comparisons(Store(store), run=not render_only, **how):
            found.append(one)
            if not one.complete:
                raise KeyboardInterrupt
    document = table.document(found, text)
    save(output, partial(write, document))
    if not options.only:
        save(output, partial(write, table.guide(found, text)))
    return document


def _automatic(
    only: tuple[str, ...],
    asked: Mapping[str, Any],
    workers: int | None,
    store: Path,
    output: Path,
    text: str,
    render_only: bool,
) -> Document:
    from pegfan._extras import need
    from pegfan.experiments.store import Store
    from pegfan.paper.automatic import Automatic
    from pegfan.paper.automatic_page import render

    need("matplotlib", "plots", "the page")  # before hours of runs, not after
    given = {name.removeprefix("--"): value for name, value in asked.items() if value is not None}
    table, kept, failed = Automatic(only, workers=workers, **given), Store(store), {}
    if not render_only:
        with progress_bar("automatic", lambda s: f"{s.done}/{s.planned}  {s.text}", remaining=True) as progress:
            failed = table.compute(kept, progress)
    with errors.status("writing"):
        return save(output, lambda place: render(table, kept, place, text, failed))


def _refuse(options: Mapping[str, Any], why: str) -> None:
    given = next((name for name, value in options.items() if value is not None and value is not False), None)
    if given is not None:
        raise Fail(f"{given} {why}; leave it out.", USAGE)


def _tables() -> dict[What, Any]:
    from pegfan.paper.benchmarks import Table3
    from pegfan.paper.synthetic import Synthetic
    from pegfan.paper.times import Table4

    synthetic = {What.table1: partial(Synthetic, number=1), What.table2: partial(Synthetic, number=2)}
    return {**synthetic, What.table3: Table3, What.table4: Table4}


def _show(document: Document, options: Options, output: Path) -> None:
    console.print(f"[bold]{escape(document.title)}[/bold]")
    for block in document.blocks:
        if isinstance(block, str) and block.startswith("- "):
            console.print(escape(block))
    if "pictures" in document.summary:
        console.print(f"{document.summary['pictures']} pictures in [bold]{escape(str(output))}[/bold]")
    if options.only and document.name.partition("-")[0] not in ("leak", "automatic"):
        _show_cells([cell for cell in document.cells if _named(cell, options.only)])
    console.print(f"Written: {escape(str(output / document.name))}.md, .csv, .json, .html", soft_wrap=True)


def _named(cell: Mapping[str, Any], only: Sequence[str]) -> bool:
    """Whether ``--only`` names a cell: its column and its row, as far as any column and any row is named."""
    from pegfan.paper.published import TABLE1, TABLE3, TABLE4
    from pegfan.paper.rivals import RIVALS

    models = (*TABLE1, *TABLE3, *(model for _, model in TABLE4))
    rows = {*(model.name for model in models), *RIVALS.values()} & set(only)
    columns = set(only) - rows
    return (not columns or _column(cell) in columns) and (not rows or _row(cell) in rows)


def _row(cell: Mapping[str, Any]) -> str:
    """What ``--only`` calls a cell's row."""
    from pegfan.paper.published import Model
    from pegfan.paper.rivals import RIVALS

    return cell["row"] if cell["row"] in RIVALS.values() else Model.of(cell["row"]).name


def _column(cell: Mapping[str, Any]) -> str:
    return str(cell["set"]) if "set" in cell else f"{cell['gamma']:g}"


def _show_cells(cells: Sequence[Mapping[str, Any]]) -> None:
    """One cell as a list of facts, several as a table with the words of ``--only``."""
    console.print()
    facts = [_facts(cell) for cell in cells]
    if len(cells) == 1:
        title = f"{'γ = ' * ('gamma' in cells[0])}{_column(cells[0])}, {cells[0]['label']}{_variant(cells[0])}"
        console.print(f"[bold]{escape(title)}[/bold]")
        for name, value in facts[0].items():
            console.print(f"[cyan]{name:<{max(map(len, facts[0]))}}[/cyan]  {escape(value)}", soft_wrap=True)
        console.print()
        return
    heads = list(facts[0])
    table = make_table("", "cell", *(f"{name}<" if name in ("verdict", "tree") else name for name in heads))
    table.title = None
    for column in table.columns:
        column.overflow = "fold"  # a name that is cut off is of no use
    for cell, of in zip(cells, facts, strict=True):
        name = f"{_column(cell)} {_row(cell)}{_variant(cell)}"
        tree = of["tree"].partition(" (")[0].replace("method=", "").replace("direction=", "")
        table.add_row(escape(name), *(escape(of[head]) for head in heads[:-1]), escape(tree))
    print_table(table)


def _variant(cell: Mapping[str, Any]) -> str:
    """What tells cells of one row apart: a projection of SX or of X, or hidden layers that are not normalised."""
    if "variant" in cell:
        return f", {cell['variant']}"
    used = cell.get("used", cell["row"])
    if "both ways" in cell["table"] or used != cell["row"]:
        return " on SX" if used.startswith("as") else " on X"
    return ", not normalised" if "not normalised" in cell["table"] else ""


def _facts(cell: Mapping[str, Any]) -> dict[str, str]:
    """What a terminal says of a cell: ours, the paper's, whether they agree, the runs and their tree."""
    tree = cell.get("tree") or ("none" if cell.get("keys") else "-")
    if cell["table"] == "IV":  # seconds, which have no verdict
        times = {name: _mean(cell.get(key)) for name, key in (("CPU seconds", "cpu"), ("elapsed", "wall"))}
        paper = f"{cell['paper_mean']:.1f} (RTX 3090)"
        return {**times, "paper": paper, "runs": str(len(cell.get("keys", ()))), "tree": tree}
    ours = _number(cell["ours"], cell["std"] if cell["runs"] > 1 else None)
    paper = _number(cell.get("paper"), cell.get("paper_std"))  # the paper has no filtered sets
    return {"ours": ours, "paper": paper, "verdict": cell.get("verdict", "-"), "runs": str(cell["runs"]), "tree": tree}


def _number(mean: float | None, std: float | None) -> str:
    return "-" if mean is None else f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}")


def _mean(seconds: Sequence[float] | None) -> str:
    return f"{sum(seconds) / len(seconds):.1f}" if seconds else "-"


def _command(part: What, options: Options, store: Path, output: Path, asked: Mapping[str, Any] | None = None) -> str:
    """The command line that makes a part: options that its numbers depend on, without this machine's paths."""
    words = ["pegfan reproduce", part.value]
    words += ["--quick"] if options.quick else []
    synthetic = part in (What.table1, What.table2)
    words += ["--trees", _shown(options.trees)] if options.trees is not None and not synthetic else []
    words += ["--relations", _shown(options.relations)] if options.relations and part is What.table3 else []
    words += ["--settings", options.settings] if options.settings != "authors" and part is What.table3 else []
    words += ["--seeds", str(options.seeds)] if options.seeds != (1 if options.quick else SEEDS) else []
    words += ["--only", ",".join(options.only)] if options.only else []
    words += [word for name, value in (asked or {}).items() if value is not None for word in (name, f"{value:g}")]
    words += ["--all"] if options.every else []
    if options.rungs is not None:
        words += ["--rungs", ",".join(f"{r.settings}x{r.epochs}x{r.splits}" for r in options.rungs)]
    words += ["--workers", str(options.workers)] if part is What.table4 and options.workers != WORKERS else []
    words += ["--store", _shown(store)] if store != STORE else []
    words += ["-o", _shown(output)] if output != OUTPUT else []
    return " ".join(words)


def _shown(path: Path) -> str:
    return path.name if path.is_absolute() else path.as_posix()
