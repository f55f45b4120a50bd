"""``pegfan datasets``."""

from __future__ import annotations

import contextlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan.cli._complete import complete_names
from pegfan.cli._options import Force, Json, assignments, choices
from pegfan.cli._shell import USAGE, Fail, command, console, errors, literal
from pegfan.cli._show import make_table, print_facts, print_files, print_json, print_table, writing

if TYPE_CHECKING:
    from pegfan.datasets.registry import Dataset

GENERATED = "transactions"


@command("pegfan datasets chameleon --download")
def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="One data set, for its details.", show_default=False, autocompletion=complete_names),
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch what is missing from its public source.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help=f"With {GENERATED}: the folder for the tables of an invented bank."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help=f"With {GENERATED}: what to make, such as n=2000 or seed=1."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """List the public data sets: sizes, homophily, whether they are on this machine; or one of them in detail.

    Files are looked for in the folder PEGFAN_DATA, then in the cache. Other commands download what they need.

    pegfan datasets transactions -o bank writes accounts, payments and devices with known rings of fraud, to try
    the other commands on.
    """
    if name == GENERATED:
        _write_transactions(output, assignments(settings or []), force, as_json)
        return
    if output is not None or settings or force:
        raise Fail(f"-o, --set and --force go with generated tables, as in: pegfan datasets {GENERATED} -o bank", USAGE)
    from pegfan.datasets.download import fetch
    from pegfan.datasets.registry import DATASETS, find

    fetch([])  # a PEGFAN_DATA that is not a folder is a mistake, not an empty folder
    chosen = list(DATASETS.values()) if name is None else [find(name)]
    facts = []
    with errors.status("reading") as status:
        for dataset in chosen:
            status.update(f"reading {dataset.name}")
            if download:
                fetch(dataset.files)
            facts.append(_facts(dataset))
    if as_json:
        print_json(facts if name is None else facts[0])
    elif name is None:
        _print_all(facts)
    else:
        _print_one(chosen[0], facts[0])


def _write_transactions(folder: Path | None, settings: dict[str, Any], force: bool, as_json: bool) -> None:
    from pegfan.datasets import transactions
    from pegfan.datasets.transactions import FILES

    known = list(inspect.signature(transactions).parameters)
    for name in settings:
        if name not in known:
            raise Fail(f"--set does not know {name!r}; {choices(name, known)}.", USAGE)
    if folder is None:
        raise Fail(f"Name the folder to write with -o, as in: pegfan datasets {GENERATED} -o bank", USAGE)
    there = [folder / name for name in FILES if (folder / name).exists()]
    if there and not force:
        raise Fail(f"{there[0]} exists. Choose another folder with -o, or overwrite it with --force.")
    with errors.status("making the tables"), writing(folder):
        bank = transactions(**settings)
        paths = bank.write(folder)
    counts = {"accounts": len(bank.accounts), "payments": len(bank.payments), "devices": len(bank.devices)}
    counts |= {"labelled": int(bank.labelled.sum()), "frauds": int(bank.truth.sum())}
    if as_json:
        print_json({"output": str(folder), **counts})
        return
    print_facts(GENERATED, {key: _count(value) for key, value in counts.items()})
    print_files(dict(zip(("Accounts", "Payments", "Devices"), paths, strict=True)))
    console.print(f"Next: [bold]pegfan info {literal(str(paths[0]))} {literal(str(paths[1]))}[/bold]", soft_wrap=True)


def _facts(dataset: Dataset) -> dict[str, Any]:
    """What is known without the files, and what they say if they are on this machine."""
    from pegfan import measures
    from pegfan.datasets.benchmarks import read_dataset

    unread = ("nodes", "edges", "features", "classes", "splits", "edge_homophily")
    facts: dict[str, Any] = {
        "name": dataset.name,
        "here": False,
        "problem": None,
        **dict.fromkeys(unread),
        "directed": dataset.directed,
        "regime": dataset.regime,
        "metric": dataset.metric,
        "origin": dataset.files[0].url.split("/")[4],
        "licence": dataset.licence,
        "note": dataset.note,
        "files": [file.path for file in dataset.files],
        "places": _places(dataset),
    }
    try:
        graph = read_dataset(dataset, offline=True)
    except FileNotFoundError:
        return facts
    except (OSError, ValueError) as error:
        return facts | {"problem": str(error)}
    return facts | {
        "here": True,
        "nodes": graph.n,
        "edges": graph.n_edges,
        "features": int(graph.features.shape[1]),
        "classes": graph.n_classes,
        "splits": len(graph.splits),
        "edge_homophily": measures.edge_homophily(graph),
    }


def _places(dataset: Dataset) -> dict[str, str]:
    """Where the files on this machine are, by their role."""
    from pegfan.datasets.download import fetch

    found = {}
    for file in dataset.files:
        with contextlib.suppress(OSError, ValueError):
            found[file.role] = str(fetch([file], offline=True)[0])
    return found


def _print_all(facts: list[dict[str, Any]]) -> None:
    table = make_table("Data sets", "name", "nodes", "edges", "features", "classes", "homo-\nphily", "here<")
    for entry in facts:
        numbers = [_count(entry[key]) for key in ("nodes", "edges", "features", "classes")]
        homophily = "-" if entry["edge_homophily"] is None else f"{entry['edge_homophily']:.2f}"
        here = "[green]yes[/green]" if entry["here"] else "[red]damaged[/red]" if entry["problem"] else "no"
        table.add_row(entry["name"], *numbers, homophily, here, style=None if entry["here"] else "dim")
    print_table(table)
    origins = sorted({entry["origin"] for entry in facts})
    console.print(f"From the public repositories {' and '.join(origins)}; homophily is that of the edges.")
    if not all(entry["here"] for entry in facts):
        console.print("The others are downloaded when they are first used, or with [bold]--download[/bold].")
    console.print("Details: [bold]pegfan datasets NAME[/bold]. Generated: [bold]pegfan info synthetic[/bold], and")
    console.print(
        f"accounts, payments and devices with rings of fraud: [bold]pegfan datasets {GENERATED} -o bank[/bold]."
    )


def _print_one(dataset: Dataset, facts: dict[str, Any]) -> None:
    shown = {}
    if facts["here"]:
        shown = {key: _count(facts[key]) for key in ("nodes", "edges", "features", "classes", "splits")}
        shown["edge homophily"] = f"{facts['edge_homophily']:.3f}"
    words = {
        "edges are": "directed, as the paper's authors used it" if dataset.directed else "undirected",
        "regime": dataset.regime,
        "judged by": dataset.metric,
        "licence": dataset.licence,
        "cite": dataset.citation,
        "note": dataset.note,
    }
    print_facts(dataset.name, shown | {key: literal(text) for key, text in words.items() if text})
    for file in dataset.files:
        place = facts["places"].get(file.role)
        console.print(f"  {literal(place) if place else f'[dim]{file.url} (not here)[/dim]'}", soft_wrap=True)
    if facts["problem"]:
        console.print(f"[red]{literal(facts['problem'])}[/red]", soft_wrap=True)
    elif not facts["here"]:
        console.print(f"Not on this machine: [bold]pegfan datasets {dataset.name} --download[/bold] fetches it.")
    console.print(
        f'Load it: [bold]pf.datasets.load("{dataset.name}")[/bold], or [bold]pegfan info {dataset.name}[/bold]'
    )


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
