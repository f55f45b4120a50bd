"""Where names in docstrings lead.

Docstrings say `Graph`, `pegfan.build_tree` or `Channels.materialize`; Sphinx knows objects by the module they are
documented under. A name leads to the one object that it is the end of. Single backticks also name parameters: a
lower-case word without dots that is no object stays a word in code. Everything else that leads nowhere is a warning, as
``nitpicky`` has it.
"""

from __future__ import annotations

import builtins
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PARAMETER = re.compile(r"[a-z_][a-z_0-9]*|[A-Z]")
"""What single backticks may hold beside objects: parameters, and the paper's letters."""
FOREIGN = {"ArrayLike", "Axes", "DataFrame", "Figure", "LinearOperator", "NDArray", "Path", "csr_array", "ndarray"}
"""Names of other projects' types, where annotations and docstrings leave out their module."""
OWN = {"FloatArray", "IntArray", "Index", "Map", "Format", "FilterChoice", "Builder", "Progress"}
"""Names that annotations give to types, which are not documented by themselves."""
ARRAY = re.compile(r"~?numpy\.ndarray\[(tuple\[[^\]]*\]|~?typing\.Any), ~?numpy\.dtype\[[^\]]*\]\]")
"""What Python makes of ``NDArray[np.float64]``."""
ALIAS = re.compile(r"~?(?:[\w.]*\.)?TypeAliasForwardRef\('([\w.]+)'\)")
"""What Sphinx makes of its own ``autodoc_type_aliases`` inside of unions."""
OWN_ARRAYS = re.compile(r"\b(Float|Int)Array\b")
FOOTNOTE = re.compile(r"\[(\d+)\]")


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Node | None:
    """Find what a name means, or let Sphinx complain."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("~").removesuffix("()")
    found = lookup(env.domains.python_domain.objects, target)
    if found:
        name, entry = found
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)
    if hasattr(builtins, target) or target in FOREIGN | OWN:
        return content
    return content if node["reftype"] == "obj" and PARAMETER.fullmatch(target) else None


def lookup(objects: dict[str, Any], target: str) -> tuple[str, Any] | None:
    """The object that a name is the end of, modules left out; None if there is none, or more than one."""
    parts = target.removeprefix("pegfan.").split(".")
    while parts:
        end = ".".join(parts)
        found = {
            entry.node_id: (name, entry)
            for name, entry in objects.items()
            if name == end or (name.endswith("." + end) and entry.objtype not in ("attribute", "property"))
        }
        if len(found) > 1:  # a function is meant rather than a method of the same name
            found = {mark: pair for mark, pair in found.items() if pair[1].objtype != "method"}
        if len(found) == 1:
            return next(iter(found.values()))
        if found or not parts[0].islower():  # a module may be left out of a name, a class may not
            return None
        parts = parts[1:]
    return None


def prepare(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give the references of a docstring names of its own: the docstrings of a page would share their numbers."""
    short = name.rpartition(".")[2].replace("_", "-")
    if what in ("property", "attribute", "data"):
        # Napoleon would take what stands before a colon in the first line for a type; after a comment it does not.
        lines[:0] = ["..", ""]
    lines[:] = [FOOTNOTE.sub(rf"[#{short}-\1]", line) if is_reference(line) else line for line in lines]


def is_reference(line: str) -> bool:
    """Whether a line holds a footnote or a mark of one."""
    return not line.lstrip().startswith(">>>") and bool(re.search(r"\[\d+\]_|^\s*\.\. \[\d+\]", line))


def mend_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, annotation: str | None
) -> tuple[str | None, str | None]:
    """Write arrays as arrays, whatever they hold, and ``...`` for the defaults of dataclasses that a function makes."""
    return tidy(signature), tidy(annotation)


def tidy(text: str | None) -> str | None:
    """A signature, or a part of one, for people."""
    if text is None:
        return None
    return OWN_ARRAYS.sub("ndarray", ALIAS.sub(r"\1", ARRAY.sub("ndarray", text))).replace("<factory>", "...")


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, of which Python only says which number they have."""
    return True if str(getattr(obj, "__doc__", "")).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", prepare, priority=400)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", mend_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
