"""The page: data made of the result, the graph and the tree, inside one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._atomic import replacing
from pegfan.graph import Graph
from pegfan.report import graphview, treeview, words
from pegfan.report.reading import count, pick, rows, sequence, text
from pegfan.report.sections import colours, sections
from pegfan.trees import Hierarchy

__all__ = ["write_report"]

_MARK = re.compile(r"\{\{(\w+)\}\}")


def write_report(
    path: str | os.PathLike[str],
    result: Mapping[str, Any],
    graph: Graph,
    tree: Hierarchy | None,
    probabilities: Any,
) -> Path:
    """Write the report of a training run: one HTML file without anything outside it.

    Parameters
    ----------
    path
        The file; it appears whole or not at all.
    result
        What ``pegfan train`` stores as ``result.json``. Whatever is missing in it is left out of the page, or the
        page says why it is not there.
    graph
        The graph.
    tree
        The tree of the model; None for one without.
    probabilities
        Of every node and class, (n, classes).

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], labels=["left", "left", "right", None])
    >>> tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/report.html", {"title": "A path"}, graph, tree, np.eye(4)[:, :2])
    ...     "<title>A path" in page.read_text()
    True
    """
    if not isinstance(result, Mapping):
        raise TypeError(f"the result must be a mapping, as in result.json; got {type(result).__name__}")
    shape = np.shape(probabilities)
    if len(shape) != 2 or shape[0] != graph.n or not shape[1]:
        raise ValueError(f"probabilities have shape {shape}; give one row a node and one column a class, n = {graph.n}")
    if tree is not None and tree.n != graph.n:
        raise ValueError(f"the tree has {tree.n} nodes and the graph {graph.n}; they must belong together")
    page = _render(_content(result, graph, tree, np.nan_to_num(np.asarray(probabilities, np.float64))))
    with replacing(path) as file:
        file.write(page)
    return Path(path)


def _content(
    result: Mapping[str, Any], graph: Graph, tree: Hierarchy | None, probabilities: NDArray[np.float64]
) -> dict[str, Any]:
    """Everything that the page shows, as values that JSON can hold."""
    classes = _class_names(result, graph, probabilities.shape[1])
    predicted = probabilities.argmax(axis=1)
    content = sections(result, classes)
    drawn, nodes = _graph(graph, tree, classes, predicted, probabilities, _places(graph, content["unsure"]))
    content |= {
        "title": text(pick(result, "title")) or "PEGFAN",
        "lede": words.lede(result, graph.n, len(classes)),
        "classes": classes,
        "colours": colours(np.bincount(predicted, minlength=len(classes)).tolist()),
        "metric": words.metric_name(result),
        "tree": _tree(result, tree, predicted),
        "graph": drawn | {"split": _parts(result, graph, nodes)},
    }
    return content


def _class_names(result: Mapping[str, Any], graph: Graph, total: int) -> list[str]:
    named = [text(name) for name in sequence(pick(result, "data", "classes"))]
    if len(named) == total and None not in named:
        return [name or "" for name in named]
    if graph.class_names is not None and len(graph.class_names) == total:
        return [text(name) or "" for name in graph.class_names.tolist()]
    return [str(k) for k in range(total)]


def _tree(result: Mapping[str, Any], tree: Hierarchy | None, predicted: NDArray[np.int64]) -> dict[str, Any]:
    if tree is None:
        return {"absent": "This model has no tree."}
    levels, purity = treeview.boxes(tree, predicted), treeview.purity(tree, predicted)
    for level in levels:
        level["purity"] = round(purity[level["level"] - 1], 4)
    return {
        "n": tree.n,
        "K": tree.K,
        "h": tree.h,
        "method": text(pick(result, "tree", "method") or tree.info.get("method")),
        "levels": levels,
        "words": words.tree([{"clusters": clusters} for clusters in tree.n_clusters], purity),
    }


def _places(graph: Graph, unsure: dict[str, Any]) -> list[int]:
    """The nodes of the doubtful predictions, so that the picture can show them; each row learns its node."""
    names = range(graph.n) if graph.node_names is None else graph.node_names.tolist()
    place = {text(name): i for i, name in enumerate(names)}
    found = []
    for row in rows(unsure.get("rows")):
        if row["id"] in place:
            found.append(place[row["id"]])
    return found


def _graph(
    graph: Graph,
    tree: Hierarchy | None,
    classes: list[str],
    predicted: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    wanted: list[int],
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """What is drawn of the graph, and the nodes that are."""
    shown = graphview.view(graph, tree, wanted)
    nodes = shown.pop("nodes")
    names = nodes if graph.node_names is None else graph.node_names[nodes]
    labels = _true_classes(graph, classes)
    shown |= {
        "ids": [text(name) or "" for name in names.tolist()],
        "predicted": predicted[nodes].tolist(),
        "probability": np.rint(1000 * np.clip(probabilities.max(axis=1)[nodes], 0, 1)).astype(int).tolist(),
        "true": labels[nodes].tolist(),
    }
    return shown, nodes


def _parts(result: Mapping[str, Any], graph: Graph, nodes: NDArray[np.int64]) -> list[int] | None:
    """1, 2, 3 for nodes of training, validation and test in the split of the model; 0 for others."""
    used = [count(place) for place in sequence(pick(result, "splits", "used"))]
    place = used[0] if used else 0
    if place is None or place >= len(graph.splits):
        return None
    parts = np.zeros(graph.n, np.int64)
    for code, part in enumerate(graph.splits[place], start=1):
        parts[part] = code
    return list(parts[nodes].tolist())


def _true_classes(graph: Graph, classes: list[str]) -> NDArray[np.int64]:
    """The label of every node as a place in the model's classes, which may be in another order; −1 for none."""
    if graph.labels is None:
        return np.full(graph.n, -1)
    place = {name: k for k, name in enumerate(classes)}
    own = range(graph.n_classes) if graph.class_names is None else graph.class_names.tolist()
    codes = [place.get(text(name) or "", -1) for name in own]
    if graph.class_names is None and set(codes) == {-1}:  # named in the result only: the order is the graph's
        codes = [k if k < len(classes) else -1 for k in range(graph.n_classes)]
    return np.asarray([*codes, -1])[graph.labels]


# -------------------------------------------------------------------------- HTML


def _render(content: Mapping[str, Any]) -> bytes:
    style, script = _resource("style.css"), _resource("script.js")
    parts = {
        "policy": f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        "title": html.escape(content["title"]),
        "lede": html.escape(content["lede"]),
        "style": style,
        "script": script,
        "content": embedded(content),
    }
    # One pass: what is put in is never searched for marks.
    page = _MARK.sub(lambda mark: parts[mark.group(1)], _resource("page.html"))
    return page.encode("utf-8", "replace")


def embedded(value: Any) -> str:
    r"""A value as JSON that cannot end the script element it stands in, nor begin anything else.

    Examples
    --------
    >>> print(embedded({"name": "</script><!--"}))
    {"name":"\u003c/script\u003e\u003c!--"}
    """
    data = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _resource(name: str) -> str:
    return (files("pegfan.report") / name).read_text("utf-8")


def _hash(source: str) -> str:
    """The fingerprint by which the page's policy lets this source run, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
