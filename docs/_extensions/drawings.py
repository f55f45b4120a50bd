"""Pictures that the documentation draws itself: the code of a ``draw`` block is shown, run, and its figure follows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import pegfan


class Draw(SphinxDirective):
    """Show some Python, run it, and show the figure that it names ``figure``."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Make the block of code and the picture."""
        code = "\n".join(self.content)
        block = nodes.literal_block(code, code, language="python")
        key = hashlib.sha256(f"{pegfan.__version__}\n{code}".encode()).hexdigest()[:16]
        place = Path(self.env.srcdir) / "_build" / "drawings" / f"{key}.png"
        if not place.exists():
            draw(code, place)
        uri = f"/{place.relative_to(self.env.srcdir)}"
        return [block, nodes.image("", uri=uri, alt=self.options["alt"], classes=["drawing"])]


def draw(code: str, place: Path) -> None:
    """Run the code and save its figure."""
    import matplotlib as mpl

    mpl.use("agg")
    names: dict[str, Any] = {}
    exec(compile(code, "<drawing>", "exec"), names)
    place.parent.mkdir(parents=True, exist_ok=True)
    names["figure"].savefig(place, dpi=144)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("draw", Draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
