"""How a command is declared, and how it fails."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import inspect
import logging
import os
import platform
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.status import Status
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

__all__ = [
    "ERROR",
    "INTERNAL",
    "INTERRUPTED",
    "USAGE",
    "Fail",
    "Program",
    "add_commands",
    "command",
    "console",
    "describe",
    "errors",
    "literal",
    "visible",
    "write_output",
]

ERROR, USAGE, INTERNAL, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: a problem with the input or the machine; a wrong command line; a bug in pegfan; Ctrl-C."""


_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What steers a terminal or turns the direction of text, and bytes of a file's name that are no text."""
_SPACES = {ord("\t"): r"\t", ord("\n"): r"\n"}
_NARROWEST, _WIDEST = 20, 1000
"""Columns of a terminal that can be printed to."""


def visible(text: str) -> str:
    r"""Text in which whatever would steer a terminal is written as in Python: ``\x1b`` for the escape code."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def literal(text: str) -> str:
    """Text that is not ours (a name, a path, a cell), for a console's markup: as it is, and on one line."""
    text = visible(text).translate(_SPACES)
    body = text.rstrip("\\")
    # Before a tag, two backslashes stand for one; so that it is always one, a tag follows that does nothing.
    return escape(body) + ("\\\\" * (len(text) - len(body)) + "[none][/none]" if body != text else "")


class _Terminal(Console):
    """A console that looks at the terminal and the environment when a command starts, not when it is imported.

    No text steers the terminal, wherever it comes from; `literal` also keeps names from being read as markup.
    """

    def __init__(self, stderr: bool = False) -> None:
        _mend_columns()
        super().__init__(stderr=stderr, highlight=False, emoji=False)

    def look(self) -> None:
        _Terminal.__init__(self, self.stderr)
        self.width = min(max(self.width, _NARROWEST), _WIDEST)
        stream = sys.stderr if self.stderr else sys.stdout
        with contextlib.suppress(AttributeError, ValueError):  # a closed or foreign stream stays as it is
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for one in super().render(renderable, options):
            yield one if one.control else Segment(visible(one.text), one.style)

    def __exit__(self, *raised: Any) -> None:  # where all that is printed is written
        with contextlib.suppress(OSError) if self.stderr else _to_output():
            super().__exit__(*raised)

    def status(self, status: RenderableType, **options: Any) -> Status:
        return super().status(self.render_str(status) if isinstance(status, str) else status, **options)


@contextlib.contextmanager
def _to_output() -> Iterator[None]:
    """Name standard output in errors of the system, and write no more to it: Python would fail again at its end."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_output(text: str) -> None:
    """Write text to standard output as it is; where there is none, nobody wants it."""
    if sys.stdout is not None:
        with _to_output():
            sys.stdout.write(text)
            sys.stdout.flush()


def _mend_columns() -> None:
    """Forget a width that nothing can be printed to, so that the terminal is asked, or 80 columns are taken."""
    given = os.environ.get("COLUMNS")
    if given is not None and not (re.fullmatch("[0-9]{1,4}", given) and _NARROWEST <= int(given) <= _WIDEST):
        del os.environ["COLUMNS"]


console: Console = _Terminal()
"""For results."""
errors: Console = _Terminal(stderr=True)
"""For progress and errors, so that results can be piped."""


class Fail(Exception):
    """Ends a command with a sentence that names the fix; nothing else is printed."""

    def __init__(self, sentence: str, code: int = ERROR) -> None:
        super().__init__(sentence)
        self.code = code


# ------------------------------------------------------------------ declaring


def _option(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_EVERY = [
    _option(
        "verbose",
        0,
        Annotated[
            int, typer.Option("--verbose", "-v", count=True, help="Say what is done, to standard error; -vv says more.")
        ],
    ),
    _option(
        "log_file",
        None,
        Annotated[Path | None, typer.Option(help="Add what is done, in all detail and with the time, to this file.")],
    ),
    _option("debug", False, Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]),
]
"""The options that every command takes."""


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command: its help ends with the examples, it takes `_EVERY`, and its errors are sentences.

    A parameter whose type is a dataclass stands for a group of options, one per field.
    """

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
        groups = {p.name: _options_of(p.annotation) for p in parameters if is_dataclass(p.annotation)}
        kinds = {p.name: p.annotation for p in parameters}

        @functools.wraps(function)
        def guarded(*, verbose: int, log_file: Path | None, debug: bool, **options: Any) -> None:
            for terminal in (console, errors):
                terminal.look()  # type: ignore[attr-defined]
            try:
                _check_text({**options, "log_file": log_file})
                for group, members in groups.items():
                    options[group] = kinds[group](**{member.name: options.pop(member.name) for member in members})
                with _logging(verbose, log_file):
                    function(**options)
            except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit):
                raise
            except KeyboardInterrupt:
                errors.print("[red]Interrupted.[/red]")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                console.on_broken_pipe()  # the reader stopped reading, as `| head` does
            except BaseException as error:
                if debug:
                    errors.print(escape(traceback.format_exc()), soft_wrap=True)
                raise typer.Exit(_explain(error, debug)) from None

        every = [one for p in parameters for one in groups.get(p.name, [p.replace(kind=p.KEYWORD_ONLY)])]
        every += _EVERY
        guarded.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        guarded.__annotations__ = {p.name: p.annotation for p in every}
        guarded.declared = {  # type: ignore[attr-defined]
            "name": function.__name__,
            # Lines of a paragraph are joined; an indented line or an item of a list starts a new one.
            "help": re.sub(r"(?<!\n)\n(?![\n\s*-])", " ", inspect.getdoc(function) or ""),
            "epilog": "\n\n".join(f"Example:  [bold]{escape(example)}[/bold]" for example in examples),
        }
        return guarded

    return declare


def _check_text(options: Mapping[str, Any]) -> None:
    """Refuse names of files that are no text: the files that we write, and some libraries, have no word for them."""
    for value in options.values():
        for word in value if isinstance(value, list | tuple) else [value]:
            if isinstance(word, str | Path) and re.search("[\ud800-\udfff]", str(word)):
                code = sys.getfilesystemencoding().upper()
                raise Fail(
                    f"{word} is not {code}, which names of files and words are here. Rename it, or set PYTHONUTF8=1."
                )


def _options_of(group: Any) -> list[inspect.Parameter]:
    fields = inspect.signature(group, eval_str=True).parameters.values()
    return [field.replace(kind=inspect.Parameter.KEYWORD_ONLY) for field in fields]


def add_commands(app: typer.Typer, module: ModuleType, panels: Mapping[str, str] | None = None) -> None:
    """Add every command that a module declares, in their order; each to its panel of the help."""
    for function in vars(module).values():
        declared = getattr(function, "declared", None)
        if declared is not None and function.__module__ == module.__name__:
            panel = (panels or {}).get(declared["name"])
            app.command(**declared, cls=_Command, rich_help_panel=panel)(function)


_UsageError: Any = typer.BadParameter.__base__
"""Any complaint about the command line; typer brings its own since 0.26, and took click's before."""


class Program(TyperGroup):
    """All commands; what goes wrong outside of them is a sentence, too, and shows nothing that steers a terminal."""

    def main(self, *args: Any, **options: Any) -> Any:
        _mend_columns()
        try:
            return super().main(*args, **options)
        except OSError:  # help that is sent to a full disk
            try:
                with _to_output():
                    raise
            except OSError as named:
                sys.exit(_explain(named, False))

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _visible_complaints():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _visible_complaints():
            return super().invoke(ctx)


@contextlib.contextmanager
def _visible_complaints() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        told = error.format_message()
        if visible(told) == told:
            raise
        raise _UsageError(visible(told), ctx=error.ctx) from None


class _Command(TyperCommand):
    """A command some of whose options may stand alone, as ``--dask`` without an address does."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        spelled = list[str]()
        for place, word in enumerate(args):
            spelled.append(word)
            follows = args[place + 1] if place + 1 < len(args) else ""
            if word == "--":
                spelled += args[place + 1 :]
                break
            if word in _ALONE and not _ALONE[word][0].fullmatch(follows):
                spelled.append(_ALONE[word][1])
        return super().parse_args(ctx, spelled)


_ALONE = {
    "--dask": (re.compile(r"local|\w+://\S*|[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+"), "local"),
    "--denoise": (re.compile(r"[^-].*"), "best"),
}
"""What follows options if it is meant for them, and not a file or another option; and what they mean alone."""


# -------------------------------------------------------------------- telling


@contextlib.contextmanager
def _logging(verbose: int, file: Path | None) -> Iterator[None]:
    """Write what the package logs to the terminal and to a file, as far as asked for; errors too, to the file."""
    log, handlers = logging.getLogger("pegfan"), list[logging.Handler]()
    level = log.level
    try:
        if verbose:
            shown = _Shown(logging.INFO if verbose == 1 else logging.DEBUG)
            shown.setFormatter(_Line("%(message)s"))
            handlers.append(shown)
        if file is not None:
            kept = _Kept(file, encoding="utf-8")
            kept.setFormatter(_Line("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            handlers.append(kept)
        if handlers:
            log.setLevel(logging.INFO if verbose == 1 and file is None else logging.DEBUG)
        for handler in handlers:
            log.addHandler(handler)
        if handlers:
            from pegfan import __version__

            log.debug("pegfan %s, Python %s, %s: %s", __version__, platform.python_version(), sys.platform, sys.argv)
        yield
    except Exception as error:
        if file is not None and not isinstance(error, (typer.Exit, typer.Abort)):
            log.exception("the command failed")
        raise
    finally:
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()
        log.setLevel(level)


class _Line(logging.Formatter):
    """A line of the log, which somebody will look at in a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _Kept(logging.FileHandler):
    """The file of the log; where it cannot be written, the command goes on without it."""

    def handleError(self, record: logging.LogRecord) -> None:
        logging.getLogger("pegfan").removeHandler(self)
        stream, self.stream = self.stream, None
        with contextlib.suppress(AttributeError, OSError):  # what is not written yet fails once more
            stream.close()  # type: ignore[union-attr]
        why = getattr(sys.exc_info()[1], "strerror", None) or sys.exc_info()[1]
        errors.print(f"[yellow]![/yellow] No more is written to {literal(self.baseFilename)}: {why}", soft_wrap=True)


class _Shown(logging.Handler):
    """Lines of the log on the terminal, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None:  # an error is a sentence here, and --debug shows its traceback
            errors.print(escape(self.format(record)), style="dim", soft_wrap=True)


# -------------------------------------------------------------------- failing

_FIXES = {
    errno.ENOSPC: "Free some space, or write to another place.",
    errno.EACCES: "Change its permissions, or use another place.",
    errno.EPERM: "Change its permissions, or use another place.",
    errno.EROFS: "Write to another place.",
    errno.ENOENT: "Is the path right?",
    errno.EDQUOT: "Free some space, or write to another place.",
    errno.EIO: "Is the disk in order? Write to another place.",
}


def _explain(error: BaseException, debug: bool) -> int:
    """Print an error as a sentence, and say with which code to end."""
    sentence, code = describe(error)
    hint = " This is a bug in pegfan; --debug shows where." if code == INTERNAL and not debug else ""
    errors.print(f"[red]{literal(sentence)}[/red]{hint}", soft_wrap=True)
    return code


def describe(error: BaseException) -> tuple[str, int]:
    """An error as a sentence, and with which code a command ends for it."""
    sentence, code = str(error), error.code if isinstance(error, Fail) else ERROR
    if _is_of_memory(error):
        said = f" {sentence.rstrip('.')}." if sentence else ""
        sentence, code = f"Not enough memory.{said} {_LESS}", ERROR
    elif isinstance(error, OSError):
        sentence, code = _of_system(error), ERROR
    elif isinstance(error, RecursionError):
        sentence = f"The input is nested too deeply: {sentence}."
    elif not isinstance(error, (Fail, ValueError, TypeError, ImportError)):
        sentence, code = f"{type(error).__name__}: {sentence}", INTERNAL
    return as_options(sentence), code


_LESS = "Close other programs, use fewer --workers or smaller settings, or work in pieces with --memory."


def _is_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: NumPy and Arrow say so by type, torch, threads and the system in words."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    words = (
        *("can't allocate memory", "not enough memory", "out of memory", "can't start new thread"),
        "failed to map segment",  # of a library that is imported
    )
    return isinstance(error, MemoryError) or (
        isinstance(error, (RuntimeError, ImportError)) and any(one in str(error) for one in words)
    )


def _of_system(error: OSError) -> str:
    """What the system says, about which file, and what to do."""
    if not error.strerror:
        return str(error)
    name = f"{error.filename}: " if error.filename else ""
    fix = _FIXES.get(error.errno or 0, "")
    return f"{name}{error.strerror}. {fix}" if fix else f"{name}{error.strerror}"


def as_options(sentence: str) -> str:
    """Turn advice for Python into advice for the command line: ``label=`` is ``--label`` here."""
    sentence = re.sub(r"header=\{[^{}]*: (True|False)\}", lambda m: f"--{'no-' * (m[1] == 'False')}header", sentence)
    sentence = sentence.replace("--no-bipartite (bipartite=False)", "--no-bipartite")
    # What only Python has is left out.
    sentence = re.sub(r",? or pass features=\{[^{}]*\}(?: or a list of features without it)?", "", sentence)
    sentence = re.sub(r",? or pass id=False for row numbers", "", sentence)
    words = {
        **{"pass label=False": "leave out --label", "weight=False": "--weight none"},
        **{"bipartite=False": "--no-bipartite", "edge_columns=": "--edge-columns"},
        **{"pass label_kind=": "--label-kind ", "label_kind=": "--label-kind "},
    }
    for python, here in words.items():
        sentence = re.sub(rf"\b{python}", here, sentence)
    sentence = re.sub(r"--label-kind '(\w+)'", r"--label-kind \1", sentence)
    sentence = re.sub(r"\b(unknown|missing|duplicates)='\w+'(?:(?:,| or) '\w+')*", _as_choice, sentence)
    sentence = re.sub(r"\bmissing=", "--missing", sentence)
    names = "id|label|source|target|metric|method|weight"
    sentence = re.sub(rf"\b({names})=(?=[\w'\"])", r"--\1 ", sentence)
    return re.sub(rf"\b({names})=", r"--\1", sentence)


def _as_choice(match: re.Match[str]) -> str:
    return f"--{match[0].replace('=', ' ')}".replace("'", "")


def load_packages(*names: str) -> None:
    """Import packages, and delay Ctrl-C meanwhile: some swallow it, and one that is half imported fails later."""
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
