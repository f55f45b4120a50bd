"""``pegfan demo``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pegfan.cli._shell import (
    Json,
    command,
    console,
    errors,
    load_packages,
    make_table,
    print_json,
    print_table,
    writing,
)

if TYPE_CHECKING:
    from rich.table import Table

    from pegfan.demo import Comparison, Numbers


_PACKAGES = (
    *("torch", "loky", "numba", "matplotlib.figure", "pegfan.demo", "pegfan.plots", "pegfan.trees.ward"),
    *("pegfan.channels", "pegfan.models", "pegfan.training.fast", "pegfan.report"),
)


@command("pegfan demo -o /tmp/demo --seed 1")
def demo(
    folder: Annotated[
        Path, typer.Option("-o", "--output", help="Where to write pictures and report; made if it is missing.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the graphs, the noise and the networks.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that train side by side; by default two, if there are cores.")
    ] = None,
    signal_only: Annotated[bool, typer.Option("--signal", help="The first part only: a few seconds.")] = False,
    as_json: Json = False,
) -> None:
    """See what it does, in about a minute: denoise a signal on a graph; then PEGFAN against FSGNN.

    First a noisy signal on a graph of 1000 nodes is taken apart, denoised and put together: framelets.png. Then the
    paper's synthetic graph (its Table I, γ = 0.2): both networks on five splits, accuracy.png and report.html.
    Nothing is downloaded.
    """
    with errors.status("loading"):
        load_packages(*_PACKAGES)
    from pegfan.demo import run

    with writing(folder), errors.status("building a graph, its tree and its framelets"):
        numbers = run(folder, seed)
    if not as_json:
        print_table(_signal_table(numbers))
    found = None if signal_only else _compare(seed, workers)
    files = [numbers["picture"]]
    if found is not None:
        with writing(folder), errors.status("drawing"):
            files += found.save(folder)
    if as_json:
        print_json({"signal": numbers, "comparison": None if found is None else _facts(found), "files": files})
        return
    if found is not None:
        _print_comparison(found)
    for file in files:
        what = "Report" if file.suffix == ".html" else "Picture"
        console.print(f"{what}: [bold]{escape(str(file))}[/bold]", soft_wrap=True)


def _compare(seed: int, workers: int | None) -> Comparison:
    from pegfan.demo import compare

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    columns = (TextColumn("training"), BarColumn(30), TextColumn("{task.completed}/{task.total}"))
    with Progress(
        *columns, TimeElapsedColumn(), TextColumn("{task.description}"), console=errors, transient=True
    ) as bar:
        task = bar.add_task("a graph and its tree", total=None)
        return compare(
            seed,
            workers=min(2, cores) if workers is None else workers,
            progress=lambda step: bar.update(task, completed=step.done, total=step.planned, description=step.text),
        )


def _signal_table(numbers: Numbers) -> Table:
    low, high = numbers["frame_bounds"]
    gain = numbers["snr_denoised"] - numbers["snr_noisy"]
    table = make_table("1. A noisy signal on a random geometric graph", "", "<")
    table.show_header = False
    table.columns[0].style = "cyan"
    table.add_row("nodes, edges", f"{numbers['nodes']:,}, {numbers['edges']:,}")
    table.add_row("clusters of the tree, level by level", " - ".join(map(str, numbers["clusters"])))
    table.add_row("framelets", f"{numbers['framelets']:,}")
    table.add_row("frame bounds (tight: 1 and 1)", f"{low:.12g} and {high:.12g}")
    table.add_row("reconstruction error, largest", f"{numbers['reconstruction_error']:.1e}")
    for j, share in enumerate(numbers["energy"]):
        part = "F_0, the root's average" if j == 0 else f"F_{j}, level {j} against {j + 1}"
        table.add_row(f"energy in {part}", f"{share:6.1%}")
    table.add_row("signal-to-noise ratio of the noisy signal", f"{numbers['snr_noisy']:5.1f} dB")
    table.add_row("after denoising", f"{numbers['snr_denoised']:5.1f} dB  [green]({gain:+.1f} dB)[/green]")
    return table


def _print_comparison(found: Comparison) -> None:
    from pegfan.results import Spread

    graph = found.graph
    about = f"{graph.n:,} nodes, {graph.n_edges:,} edges, {graph.n_classes} classes, {len(graph.splits)} splits"
    table = make_table("2. The paper's synthetic graph, γ = 0.2", "network", "channels", "validation, %", "test, %")
    for entry in found.entries:
        spreads = [f"{Spread.of(values):.1f}" for values in (entry.validation, entry.test)]
        table.add_row(entry.name, f"{len(entry.channels)}", *spreads)
    table.add_row("the largest class", "", "", f"{Spread.of(found.majority):.1f}")
    print_table(table)
    # Advice for reading the table belongs beside it: without X out of both, there would be nothing to compare.
    console.print(
        f"{about}; mean ± standard deviation. Each network had the best of four settings on validation nodes. As in "
        f"the paper, neither gets X itself, which alone gives {sum(found.features) / len(found.features):.0%} here; "
        "the F_j X of PEGFAN add up to it. "
        f"{found.seconds:.0f} seconds.\n"
    )


def _facts(found: Comparison) -> dict[str, Any]:
    return {
        "graph": {"nodes": found.graph.n, "edges": found.graph.n_edges, "splits": len(found.graph.splits)},
        "seconds": found.seconds,
        "majority": {"test": found.majority},
        "features_alone": {"test": found.features},
        "networks": [
            {
                "name": entry.name,
                "channels": [channel.name for channel in entry.channels],
                "recipe": entry.recipe.to_dict(),
                "validation": entry.validation,
                "test": entry.test,
            }
            for entry in found.entries
        ],
    }
