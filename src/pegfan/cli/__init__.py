"""The command line: ``pegfan --help``. One file per group of commands; private modules hold what they share."""

from __future__ import annotations

from typing import Annotated

import typer

from pegfan.cli import bench, clean, compare, datasets, demo, explain, info, reproduce, search, train, transform, tree
from pegfan.cli._shell import Program, add_commands, write_output

app = typer.Typer(cls=Program, no_args_is_help=True, rich_markup_mode="rich")


def _version(wanted: bool) -> None:
    if wanted:
        from pegfan import __version__

        write_output(f"pegfan {__version__}\n")
        raise typer.Exit


_EPILOG = (
    "Examples:  [bold]pegfan demo -o demo[/bold]   [bold]pegfan info nodes.csv edges.csv --label kind[/bold]\n\n"
    "A GRAPH is a data set's name, a file or folder, or a file of nodes and one of edges. Every command has its own "
    "[bold]--help[/bold] with an example, and takes after its name [bold]--verbose[/bold] and [bold]--log-file[/bold] "
    "to tell what it does, [bold]--debug[/bold] to show where an error comes from. "
    "Exit codes: 0 success, 1 a problem with input or machine, 2 a wrong command line, 3 a bug, 130 Ctrl-C, 143 a kill."
)


@app.callback(epilog=_EPILOG)
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Permutation equivariant graph framelets: from an edge list to trees, multiscale signals and predictions."""


PANELS = {
    "demo": "Start here",
    **dict.fromkeys(("datasets", "info", "tree", "transform"), "Look at a graph"),
    **dict.fromkeys(("train", "predict", "explain", "report", "compare"), "Predict"),
    **dict.fromkeys(("search", "reproduce"), "Research"),
    **dict.fromkeys(("bench", "clean"), "This machine"),
}
"""Under which heading the help lists a command."""

for part in (demo, datasets, info, tree, transform, train, explain, compare, search, reproduce, bench, clean):
    add_commands(app, part, PANELS)
