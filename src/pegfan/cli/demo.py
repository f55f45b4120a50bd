"""``pegfan demo``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan.cli._options import Json
from pegfan.cli._shell import command, console, errors, load_packages
from pegfan.cli._show import (
    make_table,
    part_words,
    print_facts,
    print_files,
    print_json,
    print_table,
    progress_bar,
    save,
    writing,
)

if TYPE_CHECKING:
    from pegfan.demo import Comparison, Numbers

_PACKAGES = (
    *("loky", "matplotlib.figure", "pegfan.demo", "pegfan.plots", "pegfan.trees"),
    *("pegfan.training.fast", "pegfan.report"),
)


@command("pegfan demo -o /tmp/demo --seed 1")
def demo(
    folder: Annotated[
        Path, typer.Option("-o", "--output", help="Where to write pictures and report; made if it is missing.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the graphs, the noise and the networks.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that train side by side; by default up to two, one per core."),
    ] = None,
    signal_only: Annotated[bool, typer.Option("--signal", help="The first part only: a few seconds.")] = False,
    as_json: Json = False,
) -> None:
    """See what pegfan does, in about a minute: denoise a signal on a graph, then compare PEGFAN with FSGNN.

    First a noisy signal on a graph of 1000 nodes is decomposed, denoised and reconstructed: framelets.png. Then both
    networks are trained on five splits of the paper's synthetic graph (Table I, γ = 0.2): accuracy.png, report.html.
    Nothing is downloaded.
    """
    with errors.status("loading"):
        load_packages(*_PACKAGES)
    from pegfan.demo import run

    with writing(folder), errors.status("building a graph, its tree and its framelets"):
        numbers = run(folder, seed)
    if not as_json:
        _print_signal(numbers)
    found = None if signal_only else _compare(seed, workers)
    files = [numbers["picture"]]
    if found is not None:
        with errors.status("drawing"):
            files += save(folder, found.save)
    if as_json:
        print_json({"signal": numbers, "comparison": None if found is None else _facts(found), "files": files})
        return
    if found is not None:
        _print_comparison(found)
    for file in files:
        print_files({"Report" if file.suffix == ".html" else "Picture": file})


def _compare(seed: int, workers: int | None) -> Comparison:
    from pegfan.demo import compare
    from pegfan.running import cores

    with progress_bar("training", lambda step: f"{step.done}/{step.planned}  {step.text}") as progress:
        return compare(seed, workers=workers or min(2, cores()), progress=progress)


def _print_signal(numbers: Numbers) -> None:
    low, high = numbers["frame_bounds"]
    gain = numbers["snr_denoised"] - numbers["snr_noisy"]
    facts = {
        "nodes, edges": f"{numbers['nodes']:,}, {numbers['edges']:,}",
        "clusters of the tree, level by level": " - ".join(map(str, numbers["clusters"])),
        "framelets": f"{numbers['framelets']:,}",
        "frame bounds (tight: 1 and 1)": f"{low:.12g} and {high:.12g}",
        "reconstruction error, largest": f"{numbers['reconstruction_error']:.1e}",
        **{f"energy in F_{j}, {part_words(j)}": f"{share:6.1%}" for j, share in enumerate(numbers["energy"])},
        "signal-to-noise ratio of the noisy signal": f"{numbers['snr_noisy']:5.1f} dB",
        "after denoising": f"{numbers['snr_denoised']:5.1f} dB  [green]({gain:+.1f} dB)[/green]",
    }
    print_facts("1. A noisy signal on a random geometric graph", facts)


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
    # The table needs this note: networks that see X itself leave nothing to compare.
    console.print(
        f"{about}; mean ± standard deviation. Each network had the best of four settings on validation nodes. As in "
        f"the paper, neither gets X itself, which alone gives {Spread.of(found.features_only).mean or 0.0:.0%} here; "
        "the F_j X of PEGFAN add up to it. "
        f"{found.seconds:.0f} seconds.\n"
    )


def _facts(found: Comparison) -> dict[str, Any]:
    from pegfan.results import Spread

    def spread(values: list[float]) -> dict[str, Any]:
        return asdict(Spread.of(values))

    return {
        "result": found.result(found.probabilities()).to_dict(),
        "features_only": spread(found.features_only),
        "networks": {e.name: {"validation": spread(e.validation), "test": spread(e.test)} for e in found.entries},
    }
