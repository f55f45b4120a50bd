"""``pegfan demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pegfan.cli._shell import Fail, command, console, errors

if TYPE_CHECKING:
    from pegfan.demo import Numbers


@command("pegfan demo -o /tmp/demo --seed 1")
def demo(
    folder: Annotated[
        Path, typer.Option("-o", "--output", help="Where to write framelets.png; made if it is missing.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the graph and the noise.")] = 0,
) -> None:
    """Decompose, denoise and reconstruct a noisy signal on a graph of 1000 nodes; a few seconds."""
    from pegfan.demo import run

    try:
        with errors.status("building a graph, its tree and its framelets"):
            numbers = run(folder, seed)
    except OSError as error:
        raise Fail(f"Cannot write to {folder}: {error.strerror or error}. Choose another folder with -o.") from error
    console.print(_demo_table(numbers))
    console.print(f"Picture: [bold]{escape(str(numbers['picture']))}[/bold]", soft_wrap=True)


def _demo_table(numbers: Numbers) -> Table:
    low, high = numbers["frame_bounds"]
    gain = numbers["snr_denoised"] - numbers["snr_noisy"]
    table = Table(title="Framelets on a random geometric graph", show_header=False, title_justify="left")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    table.add_row("nodes", f"{numbers['nodes']:,}")
    table.add_row("edges", f"{numbers['edges']:,}")
    table.add_row("clusters of the tree, level by level", " - ".join(map(str, numbers["clusters"])))
    table.add_row("framelets", f"{numbers['framelets']:,}")
    table.add_row("frame bounds (tight: 1 and 1)", f"{low:.12g} and {high:.12g}")
    table.add_row("reconstruction error, largest", f"{numbers['reconstruction_error']:.1e}", end_section=True)
    for j, share in enumerate(numbers["energy"]):
        part = "F_0, the root's average" if j == 0 else f"F_{j}, level {j} against {j + 1}"
        table.add_row(f"energy in {part}", f"{share:6.1%}", end_section=j == len(numbers["energy"]) - 1)
    table.add_row("signal-to-noise ratio of the noisy signal", f"{numbers['snr_noisy']:5.1f} dB")
    table.add_row("after denoising", f"{numbers['snr_denoised']:5.1f} dB  [green]({gain:+.1f} dB)[/green]")
    return table
