"""What every command shares: how it is declared, how it fails, how it reads a graph, and how it talks."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import inspect
import json
import math
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pegfan.datasets import ReadReport, Source
    from pegfan.graph import Graph
    from pegfan.trees import Hierarchy

__all__ = [
    "ERROR",
    "INTERNAL",
    "INTERRUPTED",
    "USAGE",
    "Fail",
    "add_commands",
    "command",
    "console",
    "errors",
    "print_json",
]

ERROR, USAGE, INTERNAL, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: the input or the machine says no; a wrong command line; a bug of ours; Ctrl-C."""


class _Terminal(Console):
    """A console that looks at the terminal and the environment when a command starts, not when it is imported."""

    def look(self) -> None:
        super().__init__(stderr=self.stderr, highlight=False)
        stream = sys.stderr if self.stderr else sys.stdout
        with contextlib.suppress(AttributeError, ValueError):  # a closed or foreign stream stays as it is
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


console: Console = _Terminal(highlight=False)
"""For results."""
errors: Console = _Terminal(stderr=True, highlight=False)
"""For progress and errors, so that results can be piped."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Sources = Annotated[
    list[str],
    typer.Argument(metavar="GRAPH", help="A data set's name, a file or folder, or a file of nodes and one of edges."),
]
Label = Annotated[str | None, typer.Option(help="The column of the node table that holds the classes.")]
Id = Annotated[str | None, typer.Option("--id", help="The column of node ids, where the guess goes wrong.")]
Tail = Annotated[str | None, typer.Option("--source", help="The column of the edges' first ends, likewise.")]
Head = Annotated[str | None, typer.Option("--target", help="The column of the edges' second ends.")]
Directed = Annotated[
    bool | None,
    typer.Option("--directed/--undirected", help="Whether edges have a direction; by default the format says."),
]
Metric = Annotated[str | None, typer.Option(help="accuracy, or roc_auc for two classes.")]

PICTURES = (".png", ".svg", ".pdf")


class Fail(Exception):
    """Ends a command with a sentence that names the fix; nothing else is printed."""

    def __init__(self, sentence: str, code: int = ERROR) -> None:
        super().__init__(sentence)
        self.code = code


# ------------------------------------------------------------------ declaring


def command(example: str, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command: its help ends with the example, it takes ``--debug``, and its errors are sentences."""

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def guarded(*args: Any, debug: bool, **options: Any) -> None:
            for terminal in (console, errors):
                terminal.look()  # type: ignore[attr-defined]
            try:
                function(*args, **options)
            except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit):
                raise
            except KeyboardInterrupt:
                errors.print("[red]Interrupted.[/red]")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                console.on_broken_pipe()  # whoever reads has read enough, as `| head` does
            except BaseException as error:
                if debug:
                    traceback.print_exc()
                raise typer.Exit(_explain(error, debug)) from None

        option = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
        extra = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
        signature = inspect.signature(function, eval_str=True)
        guarded.__signature__ = signature.replace(parameters=[*signature.parameters.values(), extra])  # type: ignore[attr-defined]
        guarded.__annotations__ = {p.name: p.annotation for p in [*signature.parameters.values(), extra]}
        guarded.declared = {  # type: ignore[attr-defined]
            "name": name,
            # Lines of a paragraph flow; an indented line or an item of a list starts anew.
            "help": re.sub(r"(?<!\n)\n(?![\n\s*-])", " ", inspect.getdoc(function) or ""),
            "epilog": f"Example:  [bold]{escape(example)}[/bold]",
        }
        return guarded

    return declare


def add_commands(app: typer.Typer, module: ModuleType, panels: Mapping[str, str] | None = None) -> None:
    """Add every command that a module declares, in their order; each to its panel of the help."""
    for function in vars(module).values():
        declared = getattr(function, "declared", None)
        if declared is not None and function.__module__ == module.__name__:
            name = declared["name"] or function.__name__
            app.command(**declared, rich_help_panel=(panels or {}).get(name))(function)


# -------------------------------------------------------------------- failing

_FIXES = {
    errno.ENOSPC: "Free some space, or write to another place.",
    errno.EACCES: "Change its permissions, or use another place.",
    errno.EPERM: "Change its permissions, or use another place.",
    errno.EROFS: "Write to another place.",
    errno.ENOENT: "Is the path right?",
}


def _explain(error: BaseException, debug: bool) -> int:
    """Print an error as a sentence, and say with which code to end."""
    code, hint = getattr(error, "code", ERROR), ""
    sentence = str(error)
    if isinstance(error, OSError):
        sentence = _of_system(error)
    elif isinstance(error, MemoryError):
        sentence = f"Not enough memory. {sentence}".strip()
    elif not isinstance(error, (Fail, ValueError, TypeError, ImportError)):
        code = INTERNAL
        sentence = f"{type(error).__name__}: {sentence}"
        hint = "" if debug else " This is a bug of pegfan's; --debug shows where."
    errors.print(f"[red]{escape(_as_options(sentence))}[/red]{hint}", soft_wrap=True)
    return int(code)


def _of_system(error: OSError) -> str:
    """What the system says, about which file, and what to do."""
    if not error.strerror:
        return str(error)
    name = f"{error.filename}: " if error.filename else ""
    fix = _FIXES.get(error.errno or 0, "")
    return f"{name}{error.strerror}. {fix}".rstrip() if fix else f"{name}{error.strerror}"


def _as_options(sentence: str) -> str:
    """Advice for Python as advice for the command line: ``label=`` is ``--label`` here."""
    sentence = sentence.replace("with edges= and nodes=", "by naming the columns of the edges: --source and --target")
    if sentence.endswith(" is empty"):
        sentence += "; was it written to the end? Give another file."
    return re.sub(r"\b(id|label|source|target|metric|method)=(?=([\w'\"]?))", _option, sentence)


def _option(match: re.Match[str]) -> str:
    return f"--{match[1]} " if match[2] else f"--{match[1]}"


def load_packages(*names: str) -> None:
    """Import packages, and hold Ctrl-C back meanwhile: some swallow it, and one that is half imported fails later."""
    heard: list[int] = []
    hold = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hold:
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        if hold:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of an error of the system which file could not be written."""
    try:
        yield
    except OSError as error:
        words = error.strerror or error
        raise Fail(f"Cannot write to {path}: {words}. Choose another place with -o.") from error


# -------------------------------------------------------------------- reading


def open_source(where: list[str], **options: Any) -> Source:
    """The source that a command line names; options that are None are left to the reader."""
    from pegfan.datasets import Source, load, synthetic

    given = {name: value for name, value in options.items() if value is not None}
    source = Source.of(*_canonical(where), **given)
    if not source.files:
        own = synthetic if source.name == "synthetic" else load
        foreign = [name for name in given if name not in inspect.signature(own).parameters]
        if foreign:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
            raise Fail(f"{source.name} is a data set that knows its own columns and metric: leave out {flags}.")
    return source


def _canonical(where: list[str]) -> list[str]:
    """A data set under its own name: ``Film`` is ``actor``; anything else is a path, and so is ``./actor``."""
    from pegfan.datasets.registry import find

    if len(where) == 1:
        with contextlib.suppress(ValueError):
            return [find(where[0]).name]
    return where


def read(where: list[str], **options: Any) -> tuple[Source, Graph, ReadReport | None]:
    """Read the graph that a command line names, with a word about it while it lasts."""
    source = open_source(where, **options)
    with errors.status(f"reading {escape(source.name)}"):
        graph, report = source.open()
    return source, graph, report


def grow_tree(graph: Graph, **options: Any) -> Hierarchy:
    """Build a tree, and say on which level it is."""
    from pegfan import build_tree

    with errors.status("building the tree") as status:
        return build_tree(graph, progress=lambda sentence: status.update(f"tree: {sentence}"), **options)


# -------------------------------------------------------------------- writing


def check_output(path: Path | None, force: bool, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse a file that cannot or must not be written, before any work is done for it."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        ends = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise Fail(f"{what} is written as {ends}; {path} ends otherwise. Rename it.", USAGE)
    if path.is_dir():
        raise Fail(f"{path} is a folder; name a file in it.")
    if path.exists() and not force:
        raise Fail(f"{path} exists. Choose another name, or overwrite it with --force.")
    if not path.parent.is_dir():
        raise Fail(f"Cannot write to {path}: there is no folder {path.parent}. Make it first, or choose another.")


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure in the format of its name, whole or not at all."""
    from io import BytesIO

    from pegfan._atomic import replacing

    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=160)
    with writing(path), replacing(path) as file:
        file.write(buffer.getvalue())


def print_json(value: Any) -> None:
    """Print a value as JSON, and nothing else; what is no number is null."""
    sys.stdout.write(json.dumps(_plain(value), indent=1, allow_nan=False) + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def make_table(title: str, *columns: str) -> Table:
    """An open table; columns are to the right but for the first and those that end in ``<``."""
    table = Table(title=f"[bold]{title}[/bold]", title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    table.show_edge, table.padding = False, (0, 1, 0, 0)
    for place, name in enumerate(columns):
        left = place == 0 or name.endswith("<")
        table.add_column(name.removesuffix("<"), justify="left" if left else "right")
    return table


def print_table(table: Table) -> None:
    """Print a table, and room after it."""
    console.print(table)
    console.print()


def bar(share: float, width: int = 20, colour: str = "cyan") -> str:
    """A horizontal bar for a share between 0 and 1, to an eighth of a character."""
    if not math.isfinite(share):
        return ""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    return f"[{colour}]{'█' * whole}{' ▏▎▍▌▋▊▉'[rest].strip()}[/{colour}]"


def choices(wanted: str, every: list[str]) -> str:
    """Say which of some words may have been meant, and which there are."""
    from pegfan.datasets._table import suggestion

    return suggestion(wanted, every).replace("? it has", "? There are").replace("it has", "there are")


def check_choice(value: str, allowed: tuple[str, ...], option: str) -> None:
    """Refuse a word that an option does not know, before any work is done."""
    if value not in allowed:
        raise Fail(f"{option} knows no {value!r}; {choices(value, list(allowed))}.", USAGE)


def percent(share: float) -> str:
    """A share in per cent, or a dash where there is none."""
    return f"{share:.1%}" if math.isfinite(share) else "-"


def print_warnings(warnings: list[str]) -> None:
    """Print what a careful user would want to know."""
    for warning in warnings:
        console.print(f"[yellow]![/yellow] {escape(warning)}")
