"""What is known about the nodes, column by column: a column of all nodes fits into memory, not all of them do.

Every column goes through the very rules that small tables go through, so that the numbers are the same.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from pegfan._plain import plain
from pegfan.datasets import _labels
from pegfan.datasets._blocks import Block, Column
from pegfan.datasets._columns import learn_column, read_by_rule
from pegfan.datasets._numbers import read_positions
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import Options, Table, few, unique_names
from pegfan.large._roles import options_of
from pegfan.large.pieces import Task, Work
from pegfan.large.sources import Columns, open_columns

__all__ = ["describe_nodes", "learn_rules", "make_slab", "slab_width", "slabs_of"]

_WIDEST = 16
"""The most columns of a slab."""


# ------------------------------------------------------------------------------------------------- features


def learn_rules(task: Task) -> dict[str, Any]:
    """A piece: how one column of the nodes is read, and which features it becomes."""
    options, columns = options_of(task), open_columns(task, "nodes")
    name = task.params["roles"]["features"][task.block]
    extra = task.inputs["ids"].result()["extra"]
    column = _column(columns, name, extra, options)
    block: Block | None
    if options.schema is None:
        rule, block = learn_column(column, options)
    else:
        rule = options.schema.nodes[name]
        block = read_by_rule(column, rule, options.missing)
    found: dict[str, Any] = {"column": name, "rule": {"kind": rule.kind, **plain(dict(rule.facts))}, "names": []}
    if block is None:
        return found
    there = name in columns.names
    return {
        **found,
        "names": block.names,
        "how": block.how if there else "not in the table: all missing",
        "dtype": str(np.dtype(block.values.dtype)),
        "sparse": bool(issparse(block.values)),
        "single": _is_single(block.values),
    }


def _column(columns: Columns, name: str, extra: int, options: Options) -> Column:
    """A column, read once; one that only the schema has is missing everywhere."""
    import pandas as pd

    table = columns.table([name])
    series = table.series(name) if name in columns.names else pd.Series([None] * table.size, dtype=object, name=name)
    return Column(replace(table, data=pd.DataFrame({name: series}, copy=False)), name, extra)


def _is_single(values: Any) -> bool:
    """Whether numbers of single precision are just as good."""
    data = values.data if issparse(values) else values
    with np.errstate(over="ignore"):
        return bool(data.dtype == np.float32 or np.array_equal(data.astype(np.float32), data))


def slab_width(work: Work, n: int) -> int:
    """How many features of all nodes stand together: two slabs at work take a quarter of the memory."""
    most = int(work.memory // 4 // work.workers // (4 * max(n, 1)))
    return max(1, min(_WIDEST, most))


def slabs_of(widths: list[int], most: int) -> list[list[list[int]]]:
    """For each slab, which features of which columns it holds: the column's number, its first feature and its last.

    Examples
    --------
    >>> slabs_of([1, 1, 4], 3)
    [[[0, 0, 1], [1, 0, 1], [2, 0, 1]], [[2, 1, 4]]]
    """
    slabs: list[list[list[int]]] = []
    room = 0
    for column, width in enumerate(widths):
        done = 0
        while done < width:
            if room == 0:
                slabs.append([])
                room = most
            step = min(room, width - done)
            slabs[-1].append([column, done, done + step])
            done, room = done + step, room - step
    return slabs


def make_slab(task: Task) -> dict[str, Any]:
    """A piece: some features of all nodes."""
    options, columns, rules = options_of(task), open_columns(task, "nodes"), task.inputs["rules"]
    about = task.inputs["ids"].result()
    slabs = task.params["slabs"]
    before = sum(last - first for slab in slabs[: task.block] for _, first, last in slab)
    parts = slabs[task.block]
    width = sum(last - first for _, first, last in parts)
    learnt = {column: rules.result(column) for column, _, _ in parts}
    dtype: Any = np.float32 if all(one["single"] for one in learnt.values()) else np.float64
    values = np.empty((about["n"], width), dtype)
    place = 0
    for column, first, last in parts:
        facts = dict(learnt[column]["rule"])
        rule = Rule(facts.pop("kind"), facts)
        block = read_by_rule(_column(columns, learnt[column]["column"], about["extra"], options), rule, options.missing)
        values[:, place : place + last - first] = _dense(block.values, first, last)
        place += last - first
    task.save("values", values)
    return {"start": before, "stop": before + width, "dtype": str(np.dtype(dtype))}


def _dense(values: Any, first: int, last: int) -> NDArray[Any]:
    some = values[:, first:last]
    return np.asarray(some.toarray() if issparse(some) else some)


# ------------------------------------------------------------------------------------------------- labels and the rest


def describe_nodes(task: Task) -> dict[str, Any]:
    """A piece: ids, labels or targets, splits and positions of the nodes, and what became of the columns.

    Its files are ``ids.parquet`` (column ``id``, in the order of the nodes; absent where they are 0, ..., n − 1),
    ``labels.npy`` or ``targets.npy``, ``split0_train.npy``, ``split0_val.npy``, ..., and ``positions.npy``.
    """
    options, roles, ids = options_of(task), task.params["roles"], task.inputs["ids"]
    about = ids.result()
    if not about["counted"]:
        _link(ids.path("ids.parquet"), task.folder / "ids.parquet")
    learnt = task.inputs["rules"].results if "rules" in task.inputs else []
    used = [one for one in learnt if one["names"]]
    found: dict[str, Any] = {
        "n": about["n"],
        "extra": about["extra"],
        "ids": "rows" if about["counted"] else {"int": "numbers", "str": "texts"}[about["kind"]],
        "classes": None,
        "n_classes": 0,
        "targets": False,
        "columns": unique_names(name for one in used for name in one["names"]),
        "dtype": "float32" if all(one["dtype"] == "float32" for one in used) else "float64",
        "sparse": any(one["sparse"] for one in used),
        "splits": len(roles["splits"]) + len(roles["masks"]),
        "features": {one["column"]: one["how"] for one in used},
        "dropped": {one["column"]: one["rule"].get("why", "not used before") for one in learnt if not one["names"]},
        "rules": {one["column"]: one["rule"] for one in learnt},
        **{"filled": [], "strange": [], "notes": [], "label": roles["columns"].get("label", "")},
    }
    if "nodes" not in task.params:
        return found
    columns = open_columns(task, "nodes")
    _add_left_out(found, columns, roles, options)
    splits = [_labels.read_split(_alone(columns, name), name) for name in roles["splits"]]
    splits += [_labels.read_masks(columns.table(list(parts.values())), parts) for parts in roles["masks"]]
    for place, split in enumerate(splits):
        for part, nodes in zip(split._fields, split, strict=True):
            task.save(f"split{place}_{part}", nodes)
    if roles["positions"]:
        if about["extra"]:
            raise ValueError(f"{about['extra']} added nodes have no position; pass unknown='drop', or no positions")
        task.save("positions", read_positions([Column(_alone(columns, name), name) for name in roles["positions"]]))
    if roles["label"] is not None:
        _add_labels(task, found, _alone(columns, roles["label"]), about["extra"], options)
    return found


def _add_labels(task: Task, found: dict[str, Any], table: Table, extra: int, options: Options) -> None:
    name = task.params["roles"]["label"]
    if task.params["roles"]["numeric"]:
        values, words = _labels.read_targets(table, name, extra, options)
        task.save("targets", values)
        found["targets"] = True
        found["label"] += words
        return
    codes, names = _labels.read_labels(table, name, options.label_kind)
    labels = np.append(codes, np.full(extra, -1))
    task.save("labels", labels)
    found["n_classes"] = int(labels.max()) + 1
    found["classes"] = None if names is None else [plain(name) for name in names.tolist()]
    lacking = int(np.count_nonzero(labels < 0))
    found["label"] += f": {found['n_classes']} classes, {lacking} of {len(labels)} nodes without"


def _add_left_out(found: dict[str, Any], columns: Columns, roles: dict[str, Any], options: Options) -> None:
    """Say what became of columns that are no features."""
    if options.schema is None:
        for name in roles["own"]:
            if name not in roles["features"]:
                found["dropped"][name] = "not asked for"
                found["rules"][name] = {"kind": "dropped", "why": "not asked for"}
        return
    for name, rule in options.schema.nodes.items():
        found["rules"].setdefault(name, {"kind": rule.kind, **plain(dict(rule.facts))})
        if rule.kind == "dropped" and name in roles["own"]:
            found["dropped"][name] = str(rule.facts.get("why", "not used before"))
    found["filled"] = [name for name in roles["features"] if name not in roles["own"]]
    found["strange"] = [name for name in roles["own"] if name not in options.schema.nodes]
    found["dropped"].update(dict.fromkeys(found["strange"], "not in the schema"))
    if found["filled"]:
        found["notes"].append(
            f"{columns.what} lacks columns that the schema has; they count as missing: {few(found['filled'])}"
        )
    if found["strange"]:
        found["notes"].append(
            f"{columns.what} has columns that the schema lacks; they are not used: {few(found['strange'])}"
        )


def _alone(columns: Columns, name: str) -> Table:
    """A table of one column, read once."""
    import pandas as pd

    table = columns.table([name])
    return replace(table, data=pd.DataFrame({name: table.series(name)}, copy=False))


def _link(source: os.PathLike[str], target: os.PathLike[str]) -> None:
    """The same file in another folder; a copy where the file system cannot do that."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
