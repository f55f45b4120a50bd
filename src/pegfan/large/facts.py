"""What a graph on disk is like: the measures of `pegfan.measures`, counted block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from pegfan._hashing import row_hashes
from pegfan._matrices import sorted_hashes
from pegfan.large.arcs import blocks, read_block
from pegfan.large.pieces import Stage, Task, Work
from pegfan.measures import Summary, histogram

__all__ = ["facts"]

_CLASSES = 1_000
"""Up to so many classes, what joins which is counted."""
_SHOWN = 5
_QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


def facts(
    work: Work, arcs: Stage, directed: bool, nodes: Stage | None = None, classes: Sequence[str] = (), columns: int = 0
) -> dict[str, Any]:
    """Sizes, degrees, components, twins and classes of a graph on disk, as ``pegfan info --json`` has them.

    Parameters
    ----------
    work
        Where it is done.
    arcs
        Arc blocks, in the order of the nodes.
    directed
        Whether edges have a direction.
    nodes
        A stage whose only piece has ``labels``, the class of every node or −1, or ``targets``, numbers or NaN.
    classes
        The names of the classes.
    columns
        Columns of the features.
    """
    known = nodes if nodes is not None and (nodes.has("labels") or nodes.has("targets")) else None
    inputs = {"arcs": arcs} if known is None else {"arcs": arcs, "nodes": known}
    total = sum(one["arcs"] for one in arcs.results)
    params = {"directed": directed, "classes": len(classes)}
    counted = work.stage(count_block, params, inputs, arcs.count, "counting edges", total)
    parts = counted.results
    joined = work.stage(join_nodes, inputs={"arcs": arcs}, words="finding components", size=total, alone=True).results[
        0
    ]
    n, loops = arcs.results[-1]["stop"], sum(one["loops"] for one in arcs.results)
    outgoing = np.concatenate([counted.load("degrees", block) for block in range(arcs.count)])
    incoming = outgoing
    if directed:
        incoming = _added(counted, "incoming")
    labels = known.load("labels") if known is not None and known.has("labels") else None
    targets = known.load("targets") if known is not None and labels is None else None
    labelled = 0 if targets is None else int((~np.isnan(targets)).sum())
    labelled = labelled if labels is None else int((labels >= 0).sum())
    on_labels = _of_labels(counted, parts, labels, targets, len(classes))
    graph = {
        "nodes": n,
        "edges": total if directed else (total + loops) // 2,
        "nonzeros": total,
        "directed": directed,
        "weighted": any(one["weighted"] for one in parts),
        "density": total / n**2,
        "self_loops": loops,
        "components": joined["count"],
        "isolated": joined["isolated"],
        "features": columns,
        "classes": len(classes),
        "labelled": labelled,
        "splits": 0,
        **{name: on_labels[name] for name in _MEASURES},
        "things": 0,
    }
    sides = {"out": outgoing, "in": incoming} if directed else {"degree": outgoing}
    sizes = np.zeros(0, np.int64) if labels is None else np.bincount(labels[labels >= 0], minlength=len(classes))
    return {
        "graph": graph,
        "degrees": {
            **{name: asdict(Summary.of(values)) for name, values in sides.items()},
            "quantiles": {f"{q:g}": float(np.quantile(outgoing, q)) for q in _QUANTILES},
            "histogram": histogram(outgoing),
        },
        "components": {"count": joined["count"], "largest": joined["largest"]},
        "duplicates": {"neighbours": _twins(counted), "features": None, "test_in_train": None},
        "classes": [{"name": str(k), "nodes": int(s)} for k, s in zip(classes, sizes, strict=True) if s],
        "ccns": on_labels["ccns"],
    }


# ------------------------------------------------------------------------------------------ pieces


def count_block(task: Task) -> dict[str, Any]:
    """Count what the arcs of a block say of degrees, twins and classes."""
    block = read_block(task.inputs["arcs"], task.block)
    task.save("degrees", np.diff(block.pointers).astype(np.int64))
    n = task.inputs["arcs"].result(task.inputs["arcs"].count - 1)["stop"]
    if task.params["directed"]:
        task.save("incoming", np.bincount(block.columns, minlength=n))
    ones = np.ones(len(block.columns), bool)
    task.save("hashes", row_hashes(csr_array((ones, block.columns, block.pointers), shape=(block.rows, n))))
    found: dict[str, Any] = {"weighted": block.weights is not None}
    made = task.inputs.get("nodes")
    if made is None:
        return found
    rows = block.row_numbers()
    if not made.has("labels"):
        return found | _sums(made.load("targets"), rows, block.columns)
    labels = made.load("labels", mmap=True)
    k = task.params["classes"]
    one, other = labels[rows], labels[block.columns]
    kept = (one >= 0) & (other >= 0)
    if k <= _CLASSES:  # loops count here: nodes are neighbours of themselves then
        task.save("directions", _directions(labels, block, np.flatnonzero(kept), rows, other, k))
    kept &= rows != block.columns
    one, other, at = one[kept], other[kept], rows[kept] - block.start
    if k <= _CLASSES:
        task.save("class_edges", np.bincount(one.astype(np.int64) * k + other, minlength=k * k).reshape(k, k))
    neighbours = np.bincount(at, minlength=block.rows)
    alike = np.bincount(at[one == other], minlength=block.rows)
    counted = neighbours > 0
    task.save("shares", alike[counted] / neighbours[counted])
    return found | {"kept": len(one), "alike": int((one == other).sum())}


def join_nodes(task: Task) -> dict[str, Any]:
    """Find components: blocks join the components that those before them have left."""
    made = task.inputs["arcs"]
    n = made.result(made.count - 1)["stop"]
    component, count = np.arange(n, dtype=np.int64), n
    joined = np.zeros(n, bool)
    for block in blocks(made):
        rows = block.row_numbers()
        other = rows != block.columns
        joined[rows[other]] = joined[block.columns[other]] = True
        i, j = component[rows[other]], component[block.columns[other]]
        apart = i != j
        if not apart.any():
            continue
        pairs = coo_array((np.ones(int(apart.sum())), (i[apart], j[apart])), shape=(count, count))
        count, of = connected_components(pairs.tocsr(), directed=False)
        component = of[component].astype(np.int64)
    sizes = np.sort(np.bincount(component))[::-1]
    isolated = int(np.count_nonzero(~joined))
    return {"count": len(sizes), "largest": sizes[:_SHOWN].tolist(), "isolated": isolated}


# ------------------------------------------------------------------------------------------ inside

_MEASURES = ("edge_homophily", "node_homophily", "adjusted_homophily", "label_informativeness")


def _directions(
    labels: NDArray[Any], block: Any, kept: NDArray[Any], rows: NDArray[Any], other: NDArray[Any], k: int
) -> NDArray[np.float64]:
    """The sum over the nodes of each class of the directions in which their neighbours' classes lie."""
    counts = np.zeros((k, k))
    step = max(1, 4_000_000 // max(k, 1))
    at = rows[kept] - block.start
    for first in range(0, block.rows, step):
        last = min(first + step, block.rows)
        low, high = np.searchsorted(at, [first, last])
        cells = (at[low:high] - first).astype(np.int64) * k + other[kept[low:high]]
        of = np.bincount(cells, minlength=(last - first) * k).reshape(last - first, k).astype(np.float64)
        of /= np.maximum(np.sqrt((of * of).sum(axis=1)), 1)[:, None]
        own = np.asarray(labels[block.start + first : block.start + last])
        known = np.flatnonzero(own >= 0)
        member = coo_array((np.ones(len(known)), (own[known], known)), shape=(k, last - first)).tocsr()
        counts += member @ of
    return counts


def _sums(values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any]) -> dict[str, Any]:
    """What a correlation of the ends of arcs is made of; values are first brought near 0 and 1."""
    held = ~np.isnan(values)
    if not held.any():
        return {"kept": 0}
    mean, spread = float(values[held].mean()), float(values[held].std()) or 1.0
    kept = (rows != columns) & held[rows] & held[columns]
    x, y = (values[rows[kept]] - mean) / spread, (values[columns[kept]] - mean) / spread
    sums = [math.fsum(x) + math.fsum(y), math.fsum(x * x) + math.fsum(y * y), math.fsum(x * y)]
    return {"kept": len(x), "sums": sums}


def _of_labels(counted: Stage, parts: list[dict[str, Any]], labels: Any, targets: Any, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {**dict.fromkeys(_MEASURES), "ccns": None}
    count = range(len(parts))
    if labels is not None and k <= _CLASSES:
        sizes = np.bincount(labels[labels >= 0], minlength=k)
        held = sizes > 0
        mean = _added(counted, "directions")[held] / sizes[held][:, None]
        found["ccns"] = mean @ mean.T
    arcs = sum(one.get("kept", 0) for one in parts)
    if not arcs:
        return found
    if targets is not None:
        both, squares, products = (math.fsum(one["sums"][part] for one in parts) for part in range(3))
        mean = both / (2 * arcs)
        variance = squares / (2 * arcs) - mean**2
        found["adjusted_homophily"] = (products / arcs - mean**2) / variance if variance > 1e-12 else 0.0
        return found
    found["edge_homophily"] = sum(one["alike"] for one in parts) / arcs
    found["node_homophily"] = float(np.mean(np.concatenate([counted.load("shares", block) for block in count])))
    if k > _CLASSES:
        return found
    pairs = _added(counted, "class_edges")
    joint = (pairs + pairs.T) / max(2 * pairs.sum(), 1)
    ends = joint.sum(axis=1)
    ends = ends[ends > 0]
    found["adjusted_homophily"] = found["label_informativeness"] = 0.0
    if ends.size > 1:
        chance, some = np.sum(ends**2), joint[joint > 0]
        found["adjusted_homophily"] = float((joint.trace() - chance) / (1 - chance))
        told = 2 - np.sum(some * np.log(some)) / np.sum(ends * np.log(ends))
        found["label_informativeness"] = float(np.clip(told, 0, 1))
    return found


def _added(counted: Stage, name: str) -> NDArray[Any]:
    """The sum of an array over all pieces."""
    total = counted.load(name)
    for block in range(1, counted.count):
        total += counted.load(name, block)
    return total


def _twins(counted: Stage) -> int:
    """How many nodes share all neighbours with another; nodes without any do not count."""
    count = range(counted.count)
    hashes = np.concatenate([counted.load("hashes", block) for block in count])
    filled = np.concatenate([counted.load("degrees", block) for block in count]) > 0
    order, number, _ = sorted_hashes(hashes[filled], np.int64)
    sizes = np.bincount(number, minlength=1) if len(order) else np.zeros(1, np.int64)
    return int(sizes[sizes > 1].sum())
