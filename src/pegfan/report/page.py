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
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pegfan import measures
from pegfan._arrays import FloatArray, IntArray
from pegfan._atomic import replacing
from pegfan._checks import check_kind
from pegfan.decisions import Decision
from pegfan.graph import Graph, check_graph
from pegfan.metrics import METRICS, amount
from pegfan.report import graphview, treeview, words
from pegfan.report.sections import colours, reasons, sections
from pegfan.report.words import short
from pegfan.results import Result, Seconds
from pegfan.trees import Hierarchy

if TYPE_CHECKING:
    from pegfan.comparison import Comparison

__all__ = ["write_comparison", "write_report"]

_FIFTHS = 5
"""Groups of predicted numbers, of equal size, that have a colour of their own."""
_MARK = re.compile(r"\{\{(\w+)\}\}")


def write_report(
    path: str | os.PathLike[str], result: Result, graph: Graph, tree: Hierarchy | None, probabilities: Any
) -> Path:
    """Write the report of a training run: one HTML file that needs nothing else.

    Parameters
    ----------
    path
        The file; it appears whole or not at all.
    result
        What ``pegfan train`` stores as ``result.json``. The page says which parts are missing.
    graph
        The graph.
    tree
        The tree of the model; None for one without.
    probabilities
        Of every node and class, (n, classes); or predicted numbers, (n, 1).

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan import results
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], labels=["left", "left", "right", None])
    >>> tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    >>> result = results.Result(title="A path", data=results.data(graph))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/report.html", result, graph, tree, np.eye(4)[:, :2])
    ...     "<title>A path" in page.read_text(encoding="utf-8")
    True
    """
    check_graph(graph)
    if not isinstance(result, Result):
        raise TypeError(f"the result must be a pegfan.results.Result; got {type(result).__name__}")
    shape, classes = np.shape(probabilities), 1 if result.data.target is not None else len(result.data.classes)
    if shape != (graph.n, classes) or not classes:
        raise ValueError(
            f"probabilities have shape {shape}; give one row per node and one column per class, {graph.n} × {classes}"
        )
    if tree is not None and check_kind(tree, "tree", Hierarchy).n != graph.n:
        raise ValueError(f"the tree has {tree.n} nodes and the graph {graph.n}; they must belong together")
    page = _render(_content(result, graph, tree, np.nan_to_num(np.asarray(probabilities, np.float64))))
    with replacing(path) as file:
        file.write(page)
    return Path(path)


def write_comparison(path: str | os.PathLike[str], found: Comparison) -> Path:
    """Write the page of a comparison of models: one HTML file that needs nothing else.

    Parameters
    ----------
    path
        The file; it appears whole or not at all.
    found
        What `pegfan.compare` gave.

    Examples
    --------
    >>> import tempfile
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.1, n=120, n_edges=900, n_features=6, splits=2)
    >>> found = pf.compare(graph, ["fsgnn"], tries=1, changes={"epochs": 5, "hidden": 4})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_comparison(f"{folder}/page.html", found)
    ...     "Against the others" in page.read_text(encoding="utf-8")
    True
    """
    from pegfan.comparison import Comparison as Found

    check_kind(found, "found", Found)
    result = Result(
        title=found.title,
        source=found.source,
        command=found.command,
        when=found.when,
        versions=found.versions,
        seconds=Seconds(found.seconds),
        seed=found.seed,
        data=found.data,
        splits=found.splits,
        against=found.rows,
    )
    every = sections(result)
    every["against"]["budget"] = found.budget
    content = {
        **{name: every[name] for name in ("against", "data", "repeat")},
        "title": short(found.title),
        "lede": found.verdict,
        "classes": list(map(short, found.data.classes)),
        "colours": colours(found.data.class_counts),
        "metric": words.metric_name(result),
        "percent": METRICS[result.data.metric].percent,
    }
    page = _render(content)
    with replacing(path) as file:
        file.write(page)
    return Path(path)


def _content(result: Result, graph: Graph, tree: Hierarchy | None, probabilities: FloatArray) -> dict[str, Any]:
    """Everything that the page shows, as values that JSON can hold."""
    if result.data.target is not None:
        return _number_content(result, graph, tree, probabilities[:, 0])
    predicted = probabilities.argmax(axis=1)
    if result.decided is not None and len(result.decided.offsets) == probabilities.shape[1]:
        logs = np.log(np.maximum(probabilities, 1e-300))
        predicted = Decision(offsets=result.decided.offsets).classes(logs)
    return sections(result) | {
        "title": short(result.title),
        "lede": words.lede(result),
        "classes": list(map(short, result.data.classes)),
        "colours": _class_colours(result, predicted[graph.subjects]),
        "metric": words.metric_name(result),
        "percent": METRICS[result.data.metric].percent,
        "reasons": reasons(result),
        "tree": _tree(result, graph, tree, predicted),
        "graph": _graph(result, graph, tree, predicted, probabilities),
    }


def _class_colours(result: Result, predicted: IntArray) -> list[int]:
    """The colours of classes by how often they are predicted; −2 for those that no node has, which no key lists."""
    counts = np.bincount(predicted, minlength=len(result.data.classes)).tolist()
    shades = zip(colours(counts), counts, result.data.class_counts, strict=True)
    return [shade if count or labelled else -2 for shade, count, labelled in shades]


def _number_content(result: Result, graph: Graph, tree: Hierarchy | None, values: FloatArray) -> dict[str, Any]:
    """The same where numbers are predicted: pictures show in which fifth of them a node is."""
    asked = values[graph.subjects]
    edges = np.unique(np.quantile(asked, np.arange(1, _FIFTHS) / _FIFTHS))
    fifths = np.searchsorted(edges, values, side="right")
    truth = np.full(graph.n, np.nan) if graph.targets is None else graph.targets
    known = ~np.isnan(truth)
    true = np.where(known, np.searchsorted(edges, np.where(known, truth, 0.0), side="right"), -1)
    ends = list(map(amount, edges.tolist()))
    names = [f"below {ends[0]}", *(f"{a} to {b}" for a, b in pairwise(ends)), f"{ends[-1]} and more"]
    drawn = _graph(result, graph, tree, fifths, values[:, None], true)
    nodes = drawn.pop("nodes")
    low, high = float(asked.min()), float(asked.max())
    share = (values[nodes] - low) / ((high - low) or 1.0)
    drawn |= {
        "probability": np.rint(1000 * share.clip(0, 1)).astype(int).tolist(),
        "values": [float(f"{value:.7g}") for value in values[nodes].tolist()],
        "truths": [None if np.isnan(value) else float(f"{value:.7g}") for value in truth[nodes].tolist()],
        "range": [amount(low), amount(high)],
    }
    metric = METRICS[result.data.metric]
    return sections(result) | {
        "title": short(result.title),
        "lede": words.lede(result),
        "numeric": True,
        "in_units": metric.in_units,
        "classes": names,
        "colours": list(range(len(names))),
        "metric": metric.words,
        "percent": metric.percent,
        "reasons": reasons(result),
        "tree": _tree(result, graph, tree, fifths, values),
        "graph": drawn,
    }


def _between(clusters: IntArray, values: FloatArray) -> float:
    """The part of the variance of some values that lies between clusters."""
    sizes = np.bincount(clusters)
    shifted = values - values.mean()
    total = float((shifted**2).sum())
    return float((np.bincount(clusters, shifted) ** 2 / np.maximum(sizes, 1)).sum() / total) if total else 1.0


def _of_subjects(graph: Graph, codes: IntArray) -> IntArray:
    """Codes of nodes; −1 for things, which nothing is predicted for."""
    return codes if graph.things is None else np.where(graph.things, -1, codes)


def _tree(
    result: Result, graph: Graph, tree: Hierarchy | None, predicted: IntArray, values: FloatArray | None = None
) -> dict[str, Any]:
    if tree is None:
        return {"absent": "This model has no tree."}
    asked = graph.subjects
    levels = treeview.boxes(tree, _of_subjects(graph, predicted))
    labels = [tree.labels(j)[asked] for j in range(1, tree.K + 1)]
    purity = [
        measures.purity(one, predicted[asked]) if values is None else _between(one, values[asked]) for one in labels
    ]
    for level in levels:
        level["purity"] = round(purity[level["level"] - 1], 4)
    method = tree.info.get("method") if result.tree is None else result.tree.method
    return {
        "n": tree.n,
        "K": tree.K,
        "h": tree.h,
        "method": None if method is None else short(str(method)),
        "levels": levels,
        "words": words.tree(tree.n_clusters, purity, values is not None),
    }


def _graph(
    result: Result,
    graph: Graph,
    tree: Hierarchy | None,
    predicted: IntArray,
    probabilities: FloatArray,
    true: IntArray | None = None,
) -> dict[str, Any]:
    """What is drawn of the graph, with the nodes that the page lists among it; `nodes` too where `true` is given."""
    ids = list(map(str, graph.ids.tolist()))
    place = {name: i for i, name in enumerate(ids)}
    wanted = [row.id for row in result.unsure]
    wanted += [] if result.ranking is None else [row.id for row in result.ranking.rows]
    wanted += (
        [] if result.regression is None else [row.id for row in (*result.regression.first, *result.regression.worst)]
    )
    shown = graphview.view(graph, tree, [place[name] for name in wanted if name in place])
    nodes = shown.pop("nodes")
    return (
        shown
        | ({} if true is None else {"nodes": nodes})
        | {
            "ids": [short(ids[i]) for i in nodes.tolist()],
            "predicted": _of_subjects(graph, predicted)[nodes].tolist(),
            "probability": np.rint(1000 * np.clip(probabilities.max(axis=1)[nodes], 0, 1)).astype(int).tolist(),
            "true": (_true_classes(result, graph) if true is None else true)[nodes].tolist(),
            "split": _parts(result, graph, nodes),
        }
    )


def _parts(result: Result, graph: Graph, nodes: IntArray) -> list[int] | None:
    """1, 2, 3 for nodes of training, validation and test in the split of the model; 0 for others."""
    place = result.splits.used[0] if result.splits is not None and result.splits.used else 0
    if place >= len(graph.splits):
        return None
    parts = np.zeros(graph.n, np.int64)
    if result.splits is not None and result.splits.made and len(result.splits.used) > 1:
        for fold in result.splits.used:  # a node has the prediction of the fold that it is a test node of
            parts[graph.splits[fold].test] = 3
        return list(parts[nodes].tolist())
    for code, part in enumerate(graph.splits[place], start=1):
        parts[part] = code
    return list(parts[nodes].tolist())


def _true_classes(result: Result, graph: Graph) -> IntArray:
    """The label of every node as a place in the model's classes, which may be in another order; −1 for none."""
    if graph.labels is None:
        return np.full(graph.n, -1)
    place = {name: k for k, name in enumerate(result.data.classes)}
    codes = [place.get(name, -1) for name in map(str, graph.classes.tolist())]
    if graph.class_names is None and set(codes) == {-1}:  # named in the result only: the order is the graph's
        codes = [k if k < len(place) else -1 for k in range(graph.n_classes)]
    return np.asarray([*codes, -1])[graph.labels]


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
    r"""A value as JSON that cannot end the script element that holds it, nor begin anything else.

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
    """The hash by which the page's policy allows this source, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
