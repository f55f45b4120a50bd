"""Commands on graphs beyond memory: the plan that is shown first, the progress, and how to go on after an end."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from pegfan.cli._options import Pieces
from pegfan.cli._shell import INTERRUPTED, USAGE, Fail, console, errors
from pegfan.cli._show import make_table, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from pegfan.large.graph import LargeGraph
    from pegfan.large.inputs import Inputs
    from pegfan.large.plan import Plan

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_FREE = 0.8
"""The share of this machine's memory that a graph may be expected to take before --memory is recommended."""


@contextlib.contextmanager
def opened(
    pieces: Pieces,
    command: str,
    where: list[str],
    reading: Mapping[str, Any],
    beside: Path | None,
    as_json: bool,
    seconds: Mapping[str, float] | None = None,
) -> Iterator[LargeGraph]:
    """The graph on disk that a command line names, once its plan is shown and fits.

    Parameters
    ----------
    pieces
        The options of work in pieces.
    command
        Its name: info, tree, transform, train or predict.
    where, reading
        The files, and how they are read.
    beside
        What is written; the working folder is beside it.
    as_json
        Whether results are for machines, so that all else goes to standard error.
    seconds
        What is known of the time of stages, by their names.
    """
    from pegfan import large
    from pegfan._limits import read_bytes
    from pegfan.large.folders import NAME, note_command
    from pegfan.large.pieces import FullError

    assert pieces.memory is not None
    try:
        memory = read_bytes(pieces.memory, "--memory")
    except ValueError as error:
        raise Fail(f"{error}.", USAGE) from error
    _check_address(pieces.dask)
    if beside is not None and not beside.name:
        beside = beside.resolve()  # of ".", or else it would be inside
    folder = pieces.work or (Path() if beside is None else beside.parent) / NAME
    inputs, plan = _plan(command, where, reading, memory, folder, seconds)
    _show_plan(plan, folder, pieces, as_json)
    if pieces.dry_run:
        raise typer.Exit
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with _going_on(folder), contextlib.ExitStack() as stack:
        cluster = None
        if pieces.dask is not None:
            from pegfan.large.dask import DaskCluster

            cluster = stack.enter_context(DaskCluster(pieces.dask, memory, say=lambda text: errors.print(escape(text))))
        progress = stack.enter_context(progress_bar(command, str))
        given = {name: value for name, value in reading.items() if value is not None}
        try:
            graph = stack.enter_context(
                large.open(
                    list(inputs.nodes) or None,
                    list(inputs.edges),
                    memory=memory,
                    work=folder,
                    cluster=cluster,
                    progress=progress,
                    **given,
                )
            )
            note_command(folder, words, finished=False)
            yield graph
            note_command(folder, words, finished=True)
        except FullError as error:
            raise Fail(f"{error.strerror or error}.") from error


@contextlib.contextmanager
def _going_on(folder: Path) -> Iterator[None]:
    """Say on Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print(
            f"[red]Interrupted.[/red] What is finished is kept in {escape(str(folder))}: the same command goes on "
            "from there, and pegfan clean frees it.",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED) from None


def print_kept(folder: Path) -> None:
    """Say where pieces are kept, how much they take, and how to free them."""
    from pegfan._limits import show_bytes
    from pegfan.large.folders import find_folders

    for found in find_folders(folder):
        where = shlex.quote(str(folder))
        console.print(
            f"{escape(str(folder))} holds {show_bytes(found.size)} of finished pieces, which other commands on these "
            f"files use too; [bold]pegfan clean {escape(where)} --yes[/bold] frees them",
            soft_wrap=True,
        )


def _check_address(address: str | None) -> None:
    if address is None:
        return
    from pegfan.large.dask import is_address

    if not is_address(address):
        raise Fail(f"--dask takes the address of a scheduler, such as tcp://host:8786, not {address}.", USAGE)


def _plan(
    command: str,
    where: list[str],
    reading: Mapping[str, Any],
    memory: int,
    folder: Path,
    seconds: Mapping[str, float] | None,
) -> tuple[Inputs, Plan]:
    from pegfan.large.folders import find_folders
    from pegfan.large.inputs import find_inputs, measure
    from pegfan.large.plan import make_plan, probe

    with errors.status("looking at the files"):
        inputs = find_inputs(where, **reading)
        sizes = measure(inputs)
    with errors.status("measuring this machine"):
        plan = make_plan(command, sizes, memory, probe(folder), more=seconds)
    held = sum(found.size for found in find_folders(folder)) if folder.is_dir() else 0
    plan.check(folder, held)
    return inputs, plan


def _show_plan(plan: Plan, folder: Path, pieces: Pieces, as_json: bool) -> None:
    """Print the plan: with --dry-run as the result, else where it does not disturb the result."""
    from pegfan._limits import show_bytes

    if as_json and pieces.dry_run:
        print_json({"plan": plan.to_dict(), "work": str(folder)})
        return
    shown: Console = errors if as_json else console
    about, sizes = "about " if plan.sizes.guessed else "", plan.sizes
    title = (
        f"Plan: {about}{sizes.nodes:,} nodes, {about}{sizes.edges:,} edges, {sizes.columns} columns, "
        f"in {show_bytes(plan.memory)} of memory"
    )
    table = make_table(title, "stage", "pieces", "disk", "memory", "time")
    for stage in plan.stages:
        disk = show_bytes(stage.disk) + (f" + {show_bytes(stage.passing)}" if stage.passing else "")
        table.add_row(stage.words, f"{stage.pieces:,}", disk, show_bytes(stage.memory), show_seconds(stage.seconds))
    most = max(stage.memory for stage in plan.stages)
    table.add_row("all, at most", "", show_bytes(plan.disk), show_bytes(most), show_seconds(plan.seconds), style="bold")
    if shown is console:
        print_table(table)
    else:
        shown.print(table)
    shown.print(
        f"In {escape(str(folder))}; times and sizes are estimates from a short probe. + is needed for a while only.",
        soft_wrap=True,
    )


def show_seconds(seconds: float) -> str:
    """A time to read at a glance.

    Examples
    --------
    >>> show_seconds(7.4), show_seconds(95), show_seconds(8000), show_seconds(200_000)
    ('7 s', '1 min 35 s', '2 h 13 min', '2 d 7 h')
    """
    if seconds < 60:
        return f"{max(seconds, 1):.0f} s"
    for unit, rest, most in (("min", "s", 3600), ("h", "min", 86_400), ("d", "h", float("inf"))):
        if seconds < most:
            whole, left = divmod(seconds, _UNITS[unit])
            return f"{whole:.0f} {unit} {left // _UNITS[rest]:.0f} {rest}"
    return "for ever"


def warn_of_memory(files: list[Path]) -> None:
    """Say up front where a graph will clearly not fit into the memory of this machine, and what to do."""
    from pegfan._limits import machine_memory, show_bytes
    from pegfan.large.inputs import rough_memory

    there = machine_memory()
    needed = rough_memory(files)
    if there is not None and needed > _FREE * there:
        asked = max(1, int(0.5 * there / 1e9))
        errors.print(
            f"[yellow]![/yellow] These files may take about {show_bytes(needed)} in memory, and this machine has "
            f"{show_bytes(there)}. [bold]--memory {asked}GB[/bold] works in pieces on disk instead.",
            soft_wrap=True,
        )
