"""``pegfan clean``."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pegfan.cli._options import Json
from pegfan.cli._shell import Fail, command, console
from pegfan.cli._show import make_table, print_json, print_table

if TYPE_CHECKING:
    from pegfan.large.folders import WorkingFolder


@command("pegfan clean --yes")
def clean(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A working folder, or one that has some in it or below.")
    ] = Path(),
    yes: Annotated[bool, typer.Option("--yes", help="Remove what is shown.")] = False,
    as_json: Json = False,
) -> None:
    """Show the working folders of commands with --memory, and free their space with --yes.

    A working folder keeps finished pieces, so that the same command goes on after an end, and other commands on the
    same files find what they share. Once results are written, nothing needs it. Only folders that pegfan marked as
    its own are looked at, only what it wrote there is removed, links are not followed, and a folder in which a command
    is at work stays.
    """
    from pegfan._limits import show_bytes
    from pegfan.large.folders import find_folders, free_folder

    found = find_folders(folder)
    freed: dict[str, int] = {}
    for one in found if yes else ():
        if not one.busy:
            freed[str(one.path)] = free_folder(one.path)
    if as_json:
        print_json({"folders": [_plain(one) for one in found], "freed": freed})
        return
    if not found:
        console.print(f"No working folder in {escape(str(folder.absolute()))} or below.", soft_wrap=True)
        return
    for one in found:
        _print(one)
    total, busy = sum(one.size for one in found), [one for one in found if one.busy]
    if not yes:
        console.print(f"{show_bytes(total)} in all; [bold]--yes[/bold] removes them.")
        return
    console.print(f"Freed {show_bytes(sum(freed.values()))}.")
    for one in found:
        if one.foreign and not one.busy:
            console.print(
                f"{escape(str(one.path))} stays, with what is not pegfan's: {escape(', '.join(one.foreign[:5]))}",
                soft_wrap=True,
            )
    if busy:
        raise Fail(f"A command is at work in {busy[0].path}, so it stays; end that command first.")


def _plain(one: WorkingFolder) -> dict[str, Any]:
    return {**asdict(one), "path": str(one.path), "command": list(one.command)}


def _print(one: WorkingFolder) -> None:
    from pegfan._limits import show_bytes

    state = "at work" if one.busy else "finished" if one.finished else "not finished: the same command goes on"
    words = " ".join(one.command) or "unknown command"
    console.print(f"[bold]{escape(str(one.path))}[/bold]  {show_bytes(one.size)}, {state}", soft_wrap=True)
    console.print(f"[dim]{escape(words)}[/dim]", soft_wrap=True)
    table = make_table("", "stage", "pieces", "size", "age")
    table.title = None
    for stage in one.stages:
        table.add_row(stage.name, f"{stage.pieces:,}", show_bytes(stage.size), _age(stage.changed))
    print_table(table)


def _age(when: float) -> str:
    from pegfan.cli._large import show_seconds

    return show_seconds(max(0.0, time.time() - when))
