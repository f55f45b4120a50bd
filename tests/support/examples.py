"""The examples of Markdown pages, run as they stand and in their order: Python, sessions, drawings, commands."""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(```+)(\{?[\w-]*\}?)[^\n]*\n(.*?)^\1$", flags=re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"\A(?::[\w-]+:.*\n)+\n?")
KINDS = ("python", "pycon", "draw", "sh", "text")
SESSION = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is, what it holds, and where."""

    kind: str
    text: str
    place: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    content = page.read_text()
    return [
        Block(match[2].strip("{}"), match[3], f"{page.name}:{content.count(chr(10), 0, match.start()) + 1}")
        for match in FENCE.finditer(content)
    ]


def run(page: Path, kinds: tuple[str, ...] = KINDS) -> dict[str, Any]:
    """Run the examples of a page in the working folder; what Python left behind."""
    names: dict[str, Any] = {}
    printed = ""
    for block in blocks(page):
        if block.kind not in kinds:
            continue
        if block.kind == "python":
            exec(compile(block.text, block.place, "exec"), names)
        elif block.kind == "draw":  # as the documentation does: by itself, and it leaves a figure
            own: dict[str, Any] = {}
            exec(compile(OPTIONS.sub("", block.text), block.place, "exec"), own)
            assert own["figure"].axes, f"{block.place} draws nothing"
        elif block.kind == "pycon":
            run_session(block, names)
        elif block.kind == "sh":
            printed = run_commands(block)
        elif block.kind == "text":
            told = f"{block.place} shows\n{block.text}but the commands before it print\n{printed}"
            assert is_shown(block.text, printed), told
    return names


def is_shown(wanted: str, printed: str) -> bool:
    """Whether a command printed what a page shows; rules are as wide as their tables, and those follow the numbers."""
    short = [re.sub("─+", "─", text) for text in (wanted, printed)]
    return doctest.OutputChecker().check_output(*short, SESSION)


def run_session(block: Block, names: dict[str, Any]) -> None:
    """Run a session in the names that the page has so far, and compare what it prints."""
    test = doctest.DocTestParser().get_doctest(block.text, names, block.place, block.place, 0)
    complaints: list[str] = []
    doctest.DocTestRunner(optionflags=SESSION).run(test, out=complaints.append, clear_globs=False)
    assert not complaints, "".join(complaints)
    names.update(test.globs)


def run_commands(block: Block) -> str:
    """Run the commands of a shell block; what the last one prints. What make and pip are told need only exist."""
    printed = ""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "pegfan":
            printed = run_pegfan(words[1:], block.place)
        elif words[0] == "make":
            makefile = (ROOT / "Makefile").read_text()
            assert re.search(rf"^{words[1]}:", makefile, flags=re.MULTILINE), f"{block.place}: no target {words[1]}"
        else:
            assert words[:2] == ["pip", "install"], f"{block.place}: {line} is not run by any test"
            extras = re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*)\]", words[-1])))
            for extra in extras:
                assert re.search(rf"^{extra} = ", (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE), extra
    return printed


def run_pegfan(words: list[str], place: str) -> str:
    """Run a command of ours in this process."""
    from typer.testing import CliRunner

    from pegfan.cli import app

    result = CliRunner().invoke(app, words, env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exit_code == 0, f"{place}: pegfan {shlex.join(words)} ends with {result.exit_code}:\n{result.output}"
    return result.stdout
