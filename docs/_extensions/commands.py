"""The reference of the command line, from the commands themselves: what ``--help`` says, as a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MARKUP = re.compile(r"\[/?[a-z ]*\]")
"""Rich's markup, such as [bold]; an escaped bracket is left alone."""


class Commands(SphinxDirective):
    """Every command of ``pegfan``: a section each, in the order and under the headings of ``pegfan --help``."""

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        from pegfan.cli import app

        group = typer.main.get_command(app)
        panels: dict[str, list[Any]] = {}
        for command in group.commands.values():  # type: ignore[attr-defined]
            panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(command)
        parts: list[nodes.Node] = []
        for panel, commands in panels.items():
            section = named_section(panel, f"panel-{panel}")
            section.extend(describe(command) for command in commands)
            parts.append(section)
        return parts


def describe(command: Any) -> nodes.section:
    """A command: what it does, how to call it, its arguments and options, an example."""
    section = named_section(f"pegfan {command.name}", f"pegfan-{command.name}")
    for text in paragraphs(command.help):
        section += nodes.paragraph("", "", *in_code(text))
    context = command.make_context(command.name, [], resilient_parsing=True)
    usage = " ".join(["pegfan", command.name, *command.collect_usage_pieces(context)])
    section += nodes.literal_block(usage, usage, language="none")
    entries = [entry(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    listed = nodes.definition_list(classes=["options"])
    listed.extend(item for item in entries if item is not None)
    section += listed
    for text in paragraphs(command.epilog):
        example = plain(text).removeprefix("Example:").strip()
        section += nodes.paragraph("", "Example:")
        section += nodes.literal_block(example, example, language="sh")
    return section


def entry(parameter: Any) -> nodes.definition_list_item | None:
    """An argument or option, with what ``--help`` says of it."""
    if "--help" in parameter.opts:
        return None
    option = parameter.opts[0].startswith("-")
    kind = parameter.make_metavar(parameter.make_context if False else CONTEXT(parameter)) if takes_value(parameter) else ""
    names = ", ".join([*parameter.opts, *parameter.secondary_opts]) if option else kind
    term = nodes.term("", "", nodes.literal(names, names))
    if option and kind:
        term += nodes.Text(" ")
        term += nodes.emphasis(kind, kind)
    text = plain(getattr(parameter, "help", None) or "")
    default = parameter.default
    if option and takes_value(parameter) and isinstance(default, (str, int, float)) and not callable(default):
        text += f" Default: ``{getattr(default, 'value', default)}``."
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", "", *in_code(text))))


def CONTEXT(parameter: Any) -> Any:
    """A context in which a parameter can name its values."""
    import click

    return click.Context(click.Command("pegfan"))


def takes_value(parameter: Any) -> bool:
    """Whether it is more than a switch."""
    return not getattr(parameter, "is_flag", False)


def named_section(title: str, name: str) -> nodes.section:
    """A section that can be linked to."""
    section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
    section += nodes.title(title, title)
    return section


def paragraphs(text: str | None) -> Iterable[str]:
    """The paragraphs of a text."""
    return (" ".join(part.split()) for part in re.split(r"\n\s*\n", text or "") if part.strip())


def plain(text: str) -> str:
    """A text without Rich's markup."""
    return MARKUP.sub("", text).replace("\\[", "[")


def in_code(text: str) -> list[nodes.Node]:
    """A text whose double or single backticks are code."""
    parts: list[nodes.Node] = []
    for place, piece in enumerate(re.split(r"``?", plain(text))):
        if piece:
            parts.append(nodes.literal(piece, piece) if place % 2 else nodes.Text(piece))
    return parts


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("pegfan-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
