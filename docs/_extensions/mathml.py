"""Equations as MathML, which browsers draw by themselves: no script, and nothing from the network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def markup(latex: str, display: str) -> str:
    """An equation as MathML, with its source for those who copy it."""
    mathml = convert(latex.strip(), display=display)
    unknown = re.search(r"\\[a-zA-Z|]+|<mi>&(amp;|#x00026;)?</mi>|<merror", mathml)
    if unknown:
        raise ValueError(f"latex2mathml does not know {unknown[0]} in the equation {latex!r}")
    return mathml.replace("<math ", f'<math aria-label="{escape(latex.strip())}" ', 1)


def inline(translator: Any, node: nodes.math) -> None:
    """Write an equation that stands in a line."""
    translator.body.append(markup(node.astext(), "inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write an equation that stands alone, with its number if it has one."""
    number = f'<span class="eqno">({escape(str(node["number"]))})</span>' if node.get("number") else ""
    names = "".join(f' id="{escape(name)}"' for name in node["ids"][:1])
    formula = f'<div class="formula">{markup(node.astext(), "block")}</div>'
    translator.body.append(f'<div class="math"{names}>{formula}{number}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
