"""The command line: ``pegfan --help``. One file a group of commands; what they share is in `_shell`."""

from __future__ import annotations

from typing import Annotated

import typer

from pegfan.cli import demo
from pegfan.cli._shell import add_commands

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)


def _version(wanted: bool) -> None:
    if wanted:
        from pegfan import __version__

        typer.echo(f"pegfan {__version__}")
        raise typer.Exit


@app.callback(epilog="Example:  [bold]pegfan demo -o demo[/bold]  then open demo/framelets.png")
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Take signals on graphs apart by scale, and put them together again: permutation equivariant graph framelets."""


for part in (demo,):
    add_commands(app, part)
