"""What every command shares: how it is declared, how it fails, how it reads a graph, and how it talks."""

from __future__ import annotations

import functools
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from pegfan.datasets import Source

__all__ = ["ERROR", "INTERNAL", "INTERRUPTED", "Fail", "add_commands", "command", "console", "errors", "print_json"]

ERROR, USAGE, INTERNAL, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: the input or the machine says no; a wrong command line; a bug of ours; Ctrl-C."""

console = Console(highlight=False)
"""For results."""
errors = Console(stderr=True, highlight=False)
"""For progress and errors, so that results can be piped."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="GRAPH...", help="A data set's name, a file or folder, or a file of nodes and one of edges."
    ),
]
Label = Annotated[str | None, typer.Option(help="The column of the node table that holds the classes.")]
Id = Annotated[str | None, typer.Option("--id", help="The column of node ids, where the guess goes wrong.")]
Directed = Annotated[
    bool | None,
    typer.Option("--directed/--undirected", help="Whether edges have a direction; by default the format says."),
]
Metric = Annotated[str | None, typer.Option(help="accuracy, or roc_auc for two classes.")]


class Fail(Exception):
    """Ends a command with a sentence that names the fix; nothing else is printed."""

    def __init__(self, sentence: str, code: int = ERROR) -> None:
        super().__init__(sentence)
        self.code = code


def command(example: str, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command: its help ends with the example, it takes ``--debug``, and its errors are sentences."""

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def guarded(*args: Any, debug: bool, **options: Any) -> None:
            try:
                function(*args, **options)
            except (typer.Exit, typer.Abort):
                raise
            except KeyboardInterrupt:
                errors.print("[red]Interrupted.[/red]")
                raise typer.Exit(INTERRUPTED) from None
            except BaseException as error:
                if debug:
                    traceback.print_exc()
                raise typer.Exit(_explain(error, debug)) from None

        option = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
        extra = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
        signature = inspect.signature(function, eval_str=True)
        guarded.__signature__ = signature.replace(parameters=[*signature.parameters.values(), extra])  # type: ignore[attr-defined]
        guarded.__annotations__ = {p.name: p.annotation for p in [*signature.parameters.values(), extra]}
        guarded.declared = {"name": name, "epilog": f"Example:  [bold]{escape(example)}[/bold]"}  # type: ignore[attr-defined]
        return guarded

    return declare


def add_commands(app: typer.Typer, module: ModuleType) -> None:
    """Add every command that a module declares, in their order."""
    for function in vars(module).values():
        declared = getattr(function, "declared", None)
        if declared is not None and function.__module__ == module.__name__:
            app.command(**declared)(function)


def _explain(error: BaseException, debug: bool) -> int:
    """Print an error as a sentence, and say with which code to end."""
    code, hint = getattr(error, "code", ERROR), ""
    sentence = str(error)
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        sentence = f"{name}{error.strerror}" if error.strerror else sentence
    elif isinstance(error, MemoryError):
        sentence = f"Not enough memory. {sentence}".strip()
    elif not isinstance(error, (Fail, ValueError, TypeError, ImportError)):
        code = INTERNAL
        sentence = f"{type(error).__name__}: {sentence}"
        hint = "" if debug else " This is a bug of pegfan's; --debug shows where."
    errors.print(f"[red]{escape(sentence)}[/red]{hint}", soft_wrap=True)
    return int(code)


def open_source(where: list[str], **options: Any) -> Source:
    """The source that a command line names; options that are None are left to the reader."""
    from pegfan.datasets import Source

    return Source.of(*where, **options)


def print_json(value: Any) -> None:
    """Print a value as JSON, and nothing else."""
    json.dump(value, sys.stdout, indent=1, default=_plain)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
