"""How commands show what they found: tables, bars, progress, JSON, and the files that they wrote."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich import box
from rich.table import Table

from pegfan.cli._shell import Fail, console, errors, literal, write_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pegfan.results import Rival
    from pegfan.running import Progress, Step

T = TypeVar("T")


def make_table(title: str, *columns: str) -> Table:
    """An open table; columns are aligned right, except the first and those that end in ``<``."""
    shown = f"[bold]{title}[/bold]" if title else None
    table = Table(title=shown, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    table.show_edge, table.padding = False, (0, 1, 0, 0)
    for place, name in enumerate(columns):
        left = place == 0 or name.endswith("<")
        # Numbers are not broken, however narrow the terminal.
        table.add_column(name.removesuffix("<"), justify="left" if left else "right", no_wrap=not left)
    return table


def print_table(table: Table) -> None:
    """Print a table and an empty line."""
    console.print(table)
    console.print()


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print facts by name, one per line."""
    table = make_table(title, "", "<")
    table.show_header, table.columns[0].style = False, "cyan"
    for name, value in facts.items():
        table.add_row(name, value)
    print_table(table)


def print_rivals(title: str, rows: Sequence[Rival], metric: str) -> None:
    """Print models against each other: the best one bold; those that did not run or do not differ from it dim."""
    from pegfan.results import rival_table

    head, *lines = rival_table(rows, metric)
    table = make_table(title, *head[:-1], "<")
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        style = "dim" if row.means_nothing or row.test is None else "bold" if place == 0 else None
        table.add_row(*map(literal, line), style=style)
    print_table(table)


def print_json(value: Any) -> None:
    """Print a value as JSON, and nothing else; what is not a number becomes null."""
    from pegfan._plain import plain

    write_output(json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def print_warnings(warnings: list[str]) -> None:
    """Print what a careful user would want to know."""
    for warning in warnings:
        console.print(f"[yellow]![/yellow] {literal(warning)}")


def print_files(files: Mapping[str, Path | None]) -> None:
    """Print where files were written, and what they are."""
    for what, path in files.items():
        if path is not None:
            console.print(f"{what}: [bold]{literal(str(path))}[/bold]", soft_wrap=True)


def bar(share: float, width: int) -> str:
    """A horizontal bar for a share between 0 and 1, to an eighth of a character."""
    if not math.isfinite(share):
        return ""
    whole, rest = divmod(round(min(max(share, 0.0), 1.0) * width * 8), 8)
    return f"[cyan]{'█' * whole}{' ▏▎▍▌▋▊▉'[rest].strip()}[/cyan]"


def part_words(j: int) -> str:
    """What F_j f shows."""
    return f"level {j} against {j + 1}" if j else "the root's average"


def percent(share: float) -> str:
    """A share in per cent, or a dash if there is none."""
    return f"{share:.1%}" if math.isfinite(share) else "-"


def _clock_bar(seconds: float) -> Any:
    """A column with a bar that is full when so many seconds are over, and the seconds that are left."""
    from rich.progress import ProgressColumn, Task
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    class ClockBar(ProgressColumn):
        def render(self, task: Task) -> Table:
            gone = task.elapsed or 0.0
            row = Table.grid(padding=(0, 1))
            bar = ProgressBar(total=seconds, completed=min(gone, seconds), width=30)
            row.add_row(bar, f"{gone:.0f} of {seconds:.0f} s")
            return row

    return ClockBar()


@contextlib.contextmanager
def progress_bar(
    title: str, words: Callable[[Step], str], remaining: bool = False, seconds: float | None = None
) -> Iterator[Progress]:
    """A bar while tasks run, with what `words` says of the newest step; with `remaining`, the time that is left.

    Where all will take so many `seconds`, the bar moves with the clock.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn(title), BarColumn(30), TextColumn("{task.description}"), TimeElapsedColumn()]
    columns += [TimeRemainingColumn()] if remaining else []
    if seconds is not None:
        columns = [TextColumn(title), _clock_bar(seconds), TextColumn("{task.description}")]
    with Progress(*columns, console=errors, transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def tell(step: Step) -> None:
            if seconds is not None:
                shown.update(task, description=literal(words(step)))
                return
            if step.planned > 0 and step.done < shown.tasks[0].completed:  # a new stage
                shown.reset(task)
            shown.update(task, completed=step.done, total=step.planned or None, description=literal(words(step)))

        yield tell


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the system into a sentence that names the file that could not be written."""
    try:
        yield
    except OSError as error:
        fix = "Free some space, or choose" if error.errno == errno.ENOSPC else "Choose"
        raise Fail(f"Cannot write to {path}: {error.strerror or error}. {fix} another place with -o.") from error


def save(path: Path, write: Callable[[Path], T]) -> T:
    """Write what work has given to a path; where that fails, write it elsewhere, and say where."""
    try:
        return write(path)
    except (OSError, Fail) as error:
        target = Path(os.path.realpath(path))
        shown = path if path.name else target
        reason = f"Cannot write to {shown}: {error.strerror or error}." if isinstance(error, OSError) else str(error)
        for home in (".", tempfile.gettempdir()):
            if target in (Path(home).resolve(), *Path(home).resolve().parents):
                continue  # it would be in the way of the next attempt
            refuge = None
            try:
                refuge = Path(tempfile.mkdtemp(dir=home, prefix="pegfan-"))
                place = refuge / (target.name or "out")
                write(place)
            except (OSError, Fail):
                if refuge is not None:
                    shutil.rmtree(refuge, ignore_errors=True)
            else:
                raise Fail(f"{reason} Nothing is lost: it was written to {place} instead.") from error
        fix = "Free some space, or choose" if getattr(error, "errno", 0) == errno.ENOSPC else "Choose"
        raise Fail(f"{reason} It could not be written elsewhere either. {fix} another place with -o.") from error


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure in the format of its name, whole or not at all."""
    from pegfan._atomic import write_figure

    save(path, lambda place: write_figure(figure, place))
