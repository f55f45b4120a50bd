"""The reference of the command line, from the commands themselves: what ``--help`` says, as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MARKUP = re.compile(r"\[/?(bold|dim|italic|red|yellow|cyan)\]")
"""Rich's markup, as help texts use it."""
BRACKETS = re.compile(r"(.*?)(?:  \[(.*)\])?", flags=re.DOTALL)
"""A help text, and what stands behind it in brackets: a default, a range, "required"."""


class Commands(SphinxDirective):
    """Every command of ``pegfan``: a section each, in the order and under the headings of ``pegfan --help``."""

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        from pegfan.cli import app

        panels: dict[str, list[Any]] = {}
        for command in typer.main.get_command(app).commands.values():  # type: ignore[attr-defined]
            panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(command)
        parts: list[nodes.Node] = []
        for panel, commands in panels.items():
            section = make_section(panel)
            section.extend(describe(command) for command in commands)
            parts.append(section)
        return parts


def describe(command: Any) -> nodes.section:
    """A command: what it does, how to call it, an example, its arguments and options."""
    section = make_section(f"pegfan {command.name}")
    section.extend(nodes.paragraph("", "", *in_code(text)) for text in paragraphs(command.help))
    context = command.make_context(f"pegfan {command.name}", [], resilient_parsing=True)
    section += code(command.get_usage(context).removeprefix("Usage: "))
    for text in paragraphs(command.epilog):
        section += nodes.paragraph("", "For example:")
        section += code(text.removeprefix("Example:").strip())
    listed = nodes.definition_list(classes=["options"])
    listed.extend(entry(*record) for record in (p.get_help_record(context) for p in command.params) if record)
    section += listed
    return section


def entry(names: str, text: str) -> nodes.definition_list_item:
    """An argument or option: its names, what it is for, and its default."""
    words, brackets = BRACKETS.fullmatch(text).groups()  # type: ignore[union-attr]
    about = nodes.paragraph("", "", *in_code(words))
    if brackets:
        about += nodes.inline("", f" ({brackets.replace('x>=', 'at least ')})", classes=["muted"])
    names = names.replace("<int range>", "<int>")
    term = nodes.term("", "", nodes.literal(names, names))
    return nodes.definition_list_item("", term, nodes.definition("", about))


def make_section(title: str) -> nodes.section:
    """A section that can be linked to by its title."""
    section = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title)])
    section += nodes.title(title, title)
    return section


def code(text: str) -> nodes.literal_block:
    """A block of shell."""
    return nodes.literal_block(text, text, language="sh")


def paragraphs(text: str | None) -> Iterator[str]:
    """The paragraphs of a text, without Rich's markup."""
    plain = MARKUP.sub("", text or "").replace("\\[", "[")
    return (" ".join(part.split()) for part in re.split(r"\n\s*\n", plain) if part.strip())


def in_code(text: str) -> list[nodes.Node]:
    """A text in which backticks are code."""
    pieces = re.split(r"``?", text)
    return [nodes.literal(piece, piece) if i % 2 else nodes.Text(piece) for i, piece in enumerate(pieces) if piece]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("pegfan-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
