"""A result as a document: text and grids of cells, written as Markdown, CSV, JSON and HTML."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from pegfan._atomic import replacing
from pegfan._plain import plain

__all__ = ["Document", "Grid", "Mark", "Picture", "write"]

MISSING = "–"
"""The text of a cell that has not been computed yet, or where a run diverged."""


@dataclass(frozen=True)
class Mark:
    """A cell of a grid.

    Attributes
    ----------
    text
        What it shows.
    styles
        Any of ``best``, ``second``, ``agrees``, ``differs``, ``cited``, ``missing``, ``old``.
    tip
        What the HTML page shows under the pointer.
    """

    text: str
    styles: tuple[str, ...] = ()
    tip: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: a caption, headings, and rows of texts or `Mark`."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Mark]]


@dataclass(frozen=True)
class Picture:
    """A picture: its file beside the document, and what it shows."""

    file: str
    caption: str


Block = str | Grid | Picture
Rows = list[list[str | Mark]]


@dataclass
class Document:
    """A table of the paper, or its figures, reproduced.

    Attributes
    ----------
    name
        Of the files.
    title, command
        What it is, and the command line that makes it.
    blocks
        Paragraphs, grids and pictures, in their order. A paragraph that starts with ``- `` is an item of a list, one
        that starts with ``## `` a heading.
    cells
        Everything about every cell, for machines: ours, the paper's, verdict, settings, keys of the runs, tree,
        seeds, seconds, versions.
    summary
        The sums and claims, for machines.

    Examples
    --------
    >>> document = Document("t", "A table", "pegfan reproduce t", [Grid("", ["set", "ours"], [["cora", Mark("87.4")]])])
    >>> print(document.markdown())
    # A table
    <BLANKLINE>
        pegfan reproduce t
    <BLANKLINE>
    | set | ours |
    |---|---|
    | cora | 87.4 |
    <BLANKLINE>
    """

    name: str
    title: str
    command: str
    blocks: list[Block] = field(default_factory=list)
    cells: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    def markdown(self) -> str:
        """The document for people; it holds no dates and no times of day."""
        parts = [f"# {self.title}", f"    {self.command}", *_joined(self.blocks, _markdown_block)]
        return "\n\n".join(parts) + "\n"

    def csv(self) -> str:
        """One line per cell, with everything that is known about it."""
        columns = dict.fromkeys(name for cell in self.cells for name in cell)
        buffer = io.StringIO()
        buffer.write(f"# {self.command}\n")
        writer = csv.DictWriter(buffer, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _flat(value) for name, value in cell.items()} for cell in self.cells)
        return buffer.getvalue()

    def json(self) -> str:
        """Cells and summary as JSON."""
        value = {
            "format": "pegfan table",
            "version": 1,
            "name": self.name,
            "title": self.title,
            "command": self.command,
            "summary": self.summary,
            "cells": self.cells,
        }
        return json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n"

    def html(self) -> str:
        """One page that needs nothing else; a cell shows more under the pointer."""
        body = "\n".join(_joined(self.blocks, _html_block))
        return _PAGE.format(title=escape(self.title), command=escape(self.command), body=body, style=_STYLE)


def write(document: Document, folder: str | Path) -> list[Path]:
    """Write the four files of a document; each appears whole or not at all."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    texts = {"md": document.markdown(), "csv": document.csv(), "json": document.json(), "html": document.html()}
    for suffix, text in texts.items():
        path = target / f"{document.name}.{suffix}"
        with replacing(path) as file:
            file.write(text.encode())
        written.append(path)
    return written


def _joined(blocks: Sequence[Block], render: Callable[[Block], str]) -> list[str]:
    """Blocks as text; items of one list stay together."""
    parts: list[str] = []
    last_item = False
    for block in blocks:
        item = isinstance(block, str) and block.startswith("- ")
        rendered = render(block)
        if item and last_item:
            parts[-1] += "\n" + rendered
        else:
            parts.append(rendered)
        last_item = item
    return parts


def _mark(cell: str | Mark) -> Mark:
    return cell if isinstance(cell, Mark) else Mark(cell)


def _markdown_block(block: Block) -> str:
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.file})\n\n{block.caption}"
    return _markdown_grid(block) if isinstance(block, Grid) else block


def _markdown_grid(grid: Grid) -> str:
    lines = ["| " + " | ".join(map(_cell_text, grid.columns)) + " |", "|" + "---|" * len(grid.columns)]
    lines += ["| " + " | ".join(_markdown_cell(_mark(cell)) for cell in row) + " |" for row in grid.rows]
    head = f"{grid.caption}\n\n" if grid.caption else ""
    return head + "\n".join(lines)


def _markdown_cell(cell: Mark) -> str:
    text = _cell_text(cell.text)
    if "best" in cell.styles:
        return f"**{text}**"
    return f"_{text}_" if "second" in cell.styles else text


def _cell_text(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html_block(block: Block) -> str:
    if isinstance(block, Picture):
        words = escape(block.caption)
        return f'<figure><img src="{escape(block.file)}" alt="{words}"><figcaption>{words}</figcaption></figure>'
    if isinstance(block, Grid):
        return _html_grid(block)
    if block.startswith("## "):
        return f"<h2>{escape(block[3:])}</h2>"
    return f"<p class=item>{escape(block[2:])}</p>" if block.startswith("- ") else f"<p>{escape(block)}</p>"


def _html_grid(grid: Grid) -> str:
    head = "".join(f"<th scope=col>{escape(column)}</th>" for column in grid.columns)
    rows = "\n".join(f"<tr>{''.join(map(_html_cell, row, range(len(row))))}</tr>" for row in grid.rows)
    caption = f"<caption>{escape(grid.caption)}</caption>" if grid.caption else ""
    return f"<div class=scroll><table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"


def _html_cell(cell: str | Mark, column: int) -> str:
    mark = _mark(cell)
    tip = f' title="{escape(mark.tip)}"' if mark.tip else ""
    style = f' class="{" ".join(mark.styles)}"' if mark.styles else ""
    tag = "th scope=row" if column == 0 else "td"
    return f"<{tag}{style}{tip}>{escape(mark.text)}</{tag[:2]}>"


def _flat(value: Any) -> str:
    """A value in one field of a CSV file."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_flat(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(map(_flat, value))
    return f"{value:.10g}" if isinstance(value, float) else str(value)


_STYLE = """
:root { color-scheme: light dark; --ink: #22262b; --soft: #6a727c; --line: #d9dde2; --ground: #fff; --band: #f6f7f9;
  --best: #0b6b4f; --second: #0a5fa8; --differs: #b3470a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9aa3ad; --line: #3a4048; --ground: #16181b;
  --band: #1e2125; --best: #5fd0aa; --second: #7fbcf0; --differs: #f0a070; } }
body { margin: 2rem auto; max-width: 100rem; padding: 0 1.5rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; font-weight: 650; margin-bottom: .4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
code { background: var(--band); padding: .2rem .45rem; border-radius: 4px; overflow-wrap: anywhere; }
p { max-width: 52rem; } p.item { margin: .2rem 0 .2rem 1.2rem; text-indent: -.9rem; } p.item::before { content: "• "; }
.scroll { overflow-x: auto; margin: 1.4rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .86rem; }
caption { text-align: left; font-size: .95rem; padding-bottom: .5rem; max-width: 60rem; }
th, td { padding: .28rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid var(--line); }
tbody th { font-weight: 500; } tbody tr:hover { background: var(--band); }
figure { margin: 2rem 0; } figure img { max-width: 100%; background: #fff; }
td[title] { cursor: help; } .old { opacity: .75; } .cited { color: var(--soft); } .missing { color: var(--soft); }
.differs { color: var(--differs); } .best { color: var(--best); font-weight: 700; } .second { color: var(--second); }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p><code>{command}</code></p>
{body}
</main>
</body>
</html>
"""
