"""Which column plays which role: decided by the code that reads small tables, on as little as it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as arrow

from pegfan._checks import BadInput
from pegfan.datasets import _ids, _labels
from pegfan.datasets._columns import asked_for
from pegfan.datasets._edges import Listed, kinds_of, read_edges, require_columns
from pegfan.datasets._schema import Schema
from pegfan.datasets._table import Options, ReadReport, Table, few
from pegfan.datasets.tables import pick_id, refuse_swapped
from pegfan.large.pieces import Task
from pegfan.large.sources import Columns, open_columns

__all__ = ["are_whole", "find_roles", "options_of", "plain_options"]

_SOME = 10_000
"""Edges that say which columns hold what, as with small files."""


def plain_options(options: Options) -> dict[str, Any]:
    """Options as JSON holds them."""
    found = {name: getattr(options, name) for name in Options.__dataclass_fields__}
    found["schema"] = None if options.schema is None else options.schema.to_dict()
    return found


def options_of(task: Task) -> Options:
    """The options that a task was given."""
    given = dict(task.params["options"])
    if given["schema"] is not None:
        given["schema"] = Schema.from_dict(given["schema"])
    return Options(**given)


def find_roles(task: Task) -> dict[str, Any]:
    """A piece: the columns of ends, weight, id, labels, splits, positions and features, and what was noticed."""
    import pandas as pd

    options, report = options_of(task), ReadReport()
    edges = open_columns(task, "edges")
    head = edges.table(most=_SOME)
    head = replace(head, data=pd.DataFrame({name: head.series(name) for name in head.columns}))
    columns = open_columns(task, "nodes") if "nodes" in task.params else None
    nodes = None if columns is None else columns.table()
    if nodes is not None:
        refuse_swapped(nodes, head, options)
    require_columns([head], options)
    kind = kinds_of([head], options.schema)[0]
    listed = read_edges(head, kind, nodes, options, report, several=False)
    if listed.apart is not None:
        raise BadInput(
            f"{head.name}: column {listed.things!r} holds other things than the nodes, and "
            "nodes of two kinds are not read beyond memory; add them to the table of nodes, or pass bipartite=False"
        )
    kinds = {name: _kind(edges, name) for name in listed.ends.columns}
    found: dict[str, Any] = {
        "ends": list(listed.ends.columns),
        "weight": listed.weight,
        "directed": _directed(listed, options),
        "unused": _unused(listed, options, report),
        "kinds": list(kinds.values()),
        "first": [str(head.ids(name, 1).iloc[0]) for name in listed.ends.columns] if head.size else None,
        **_roles_of_nodes(nodes, columns, head, listed, options, report),
    }
    of_ids = [*found["kinds"], *([found["id_kind"]] if nodes is not None else [])]
    found["mixed"] = "either" in of_ids or len(set(of_ids)) > 1
    way = "directed" if found["directed"] else "undirected"
    ends = f"{listed.ends.columns[0]!r} to {listed.ends.columns[1]!r} ({listed.ends.how}), {way}"
    return {**found, "columns": {"edges": ends, **report.columns}, "notes": report.notes}


def _directed(listed: Listed, options: Options) -> bool | str:
    """Whether edges are directed, as `pegfan.datasets` says; "unless mutual" if all edges must be seen for that."""
    stored = listed.rules[listed.ends.columns[0]].facts if listed.ends.columns[0] in listed.rules else {}
    if options.directed is not None:
        return bool(options.directed)
    if "directed" in stored:
        return bool(stored["directed"])
    if listed.ends.names == "directed":
        return True
    events = [column for column in listed.columns if column.name != listed.weight]
    return "unless mutual" if listed.ends.names == "events" and events and listed.table.size else False


def _unused(listed: Listed, options: Options, report: ReadReport) -> list[str]:
    """Columns of which small files would make features and other weights."""
    if options.edge_columns is False:
        return []
    dropped = [name for name in listed.table.columns if f"{listed.table.name} {name!r}" in report.dropped]
    return [*dict.fromkeys([*(column.name for column in listed.columns), *dropped])]


def _roles_of_nodes(
    nodes: Table | None, columns: Columns | None, head: Table, listed: Listed, options: Options, report: ReadReport
) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "id": None,
        "label": None,
        "numeric": False,
        "splits": [],
        "masks": [],
        "positions": [],
        "features": [],
    }
    if nodes is None or columns is None:
        return {**nothing, "own": []}
    if nodes.size == 0:
        raise BadInput(f"{nodes.name} has no rows; a graph needs a node")
    ends = _ids.number_ids(*_ids.agree(*listed.ids))[1]
    column, why = pick_id(nodes, head, ends, options)
    report.columns["id"] = f"{'row numbers' if column is None else repr(column)} ({why})"
    rest = [name for name in nodes.columns if name != column]
    positions = [columns.table(rest).find(name, "position") for name in options.positions or ()]
    rest = [name for name in rest if name not in positions]
    splits, masks = _labels.pick_splits(columns.table(rest), options), _labels.pick_masks(columns.table(rest), options)
    every = [*splits, *(name for parts in masks for name in parts.values())]
    rest = [name for name in rest if name not in every]
    label, numeric = _labels.pick_label(columns.table(rest), options, report)
    rest = [name for name in rest if name != label]
    if positions:
        report.columns["positions"] = few(positions)
    if every:
        report.columns["splits"] = ", ".join(map(repr, every))
    own = rest
    if options.schema is not None:
        features = [name for name, rule in options.schema.nodes.items() if rule.kind != "dropped"]
    else:
        features = asked_for(columns.table(rest), options)
    return {
        **{"id": column, "id_kind": "int" if column is None else _kind_of_series(columns, column)},
        **{"label": label, "numeric": numeric, "splits": splits, "masks": masks, "positions": positions},
        **{"features": features, "own": own},
    }


def _kind(columns: Columns, name: str) -> str:
    """What the ids in a column are: "int", "str", or "either" if a text table may hold nothing but whole numbers."""
    if columns.layout is not None:
        return "either" if are_whole(columns.arrow(name, _SOME)) else "str"
    kind = columns.arrow(name, 1).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "str"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "int"
    raise BadInput(
        f"{columns.what}: column {name!r} holds {kind}; beyond memory, ids are texts or whole numbers: write them so"
    )


def _kind_of_series(columns: Columns, name: str) -> str:
    if columns.layout is None:
        return _kind(columns, name)
    return "int" if columns.table().ids(name).dtype.kind in "iu" else "str"


def are_whole(texts: Any) -> bool:
    """Whether all texts are whole numbers as Python writes them."""
    plain = arrow.match_substring_regex(texts, f"^(?:{_ids.WHOLE_NUMBER})$")
    odd = arrow.or_(arrow.invert(plain), arrow.equal(texts, "-0"))
    return not arrow.any(odd, min_count=0).as_py()
