"""New rows for tables that a graph was read from before: next week's accounts and payments joined to last week's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pegfan._arrays import IntArray
from pegfan._checks import BadInput
from pegfan._limits import allowed
from pegfan.datasets import _ids
from pegfan.datasets._columns import DROPPED
from pegfan.datasets._graph_files import Parts
from pegfan.datasets._schema import Rule, Schema
from pegfan.datasets._table import Options, ReadReport, Table, few, shown
from pegfan.datasets.readers import FileOptions, build_parts, complaints_about, existing, gather, read_table
from pegfan.graph import Graph

__all__ = ["Growth", "read_growth"]


@dataclass(frozen=True, eq=False)
class Growth:
    """A graph before and after rows were added to its tables.

    Attributes
    ----------
    before, graph
        The graph of the old rows, and of all rows; both read by one schema.
    places
        The place of every node of `graph` in `before`; -1 for nodes that are new.
    updated
        How many new rows of nodes are of ids that were known, and say something else than before: they win.
    repeated
        How many say the same.
    report
        Of reading all rows. ``report.unknown`` ids of edges are in neither the old nor the new table of nodes,
        ``report.lost`` rows were dropped with them; ``report.filled`` and ``report.strange`` are the columns that the
        new tables lack, or have besides.
    """

    before: Graph
    graph: Graph
    places: IntArray = field(repr=False)
    updated: int
    repeated: int
    report: ReadReport = field(repr=False)

    @property
    def new(self) -> IntArray:
        """The nodes that are new."""
        return np.flatnonzero(self.places < 0)


def read_growth(
    before: Sequence[Path], added: Sequence[Path], schema: Schema | None, options: Mapping[str, Any]
) -> Growth:
    """Read the graph of some files, and that of the same files with the rows of others added.

    Parameters
    ----------
    before
        The files of the graph: tables of edges, and one of nodes or none.
    added
        Files with new rows of these tables; which table is told by the names of their columns.
    schema
        How the files were read before; by default as `read_graph` reads them.
    options
        Of `read_graph`. Unknown ends of edges are dropped unless ``unknown`` says otherwise.
    """
    how = FileOptions(**{name: options[name] for name in FileOptions._fields if name in options})
    how = how._replace(max_bytes=allowed(how.max_bytes))
    rest = {name: value for name, value in options.items() if name not in FileOptions._fields}
    chosen, first = Options.of({**rest, "schema": schema}), ReadReport()
    files = [existing(path) for path in before]
    parts, bags = gather(files, chosen, first, how)
    if parts.graph is not None or parts.n is not None or parts.edges is None:
        raise BadInput(
            f"{files[0]} holds a whole graph, and rows can be added to tables only; give the graph as it is now"
        )
    with complaints_about(*files):
        old = build_parts(parts, bags, chosen, first)
    if parts.nodes is not None and first.id_column is None:
        raise BadInput(
            f"the nodes of {parts.nodes.name} have no ids but their row numbers, so that new rows cannot be told from "
            "old ones; add a column of ids to both, and train again"
        )
    report, news = ReadReport(files=dict(first.files)), [existing(path) for path in added]
    if not news:
        raise ValueError("no files with new rows were given")
    chosen = replace(chosen, schema=first.schema, id=first.id_column)
    chosen = replace(chosen, unknown="drop") if "unknown" not in rest else chosen
    with complaints_about(*news):
        joined, changed = _join(parts, first, _read_new(news, parts, chosen, report, how), report)
    with complaints_about(*files, *news):
        graph = build_parts(joined, bags, chosen, report)
        places = _places(old, graph, parts, joined, first.schema)
    return Growth(old, graph, places, *changed, report)


# -------------------------------------------------------------------- which table is which


def _read_new(news: list[Path], parts: Parts, options: Options, report: ReadReport, how: FileOptions) -> list[Table]:
    known = [table for table in (parts.nodes, parts.edges, *parts.others) if table is not None]
    names = frozenset(column.lower() for table in known if table.header for column in table.columns)
    tables = []
    for path in news:
        own = ReadReport()
        table = read_table(path, options, own, how, names)
        if not isinstance(table, Table):
            raise BadInput(f"{path} holds lists by node id; give new rows as text or Parquet files")
        name = str(path) if path.name in report.files else path.name
        report.files[name] = own.files[path.name]
        tables.append(replace(table, name=name))
    return tables


class _Role(NamedTuple):
    """A table that rows may be added to: the columns without which they cannot be, and how all of them are read."""

    table: Table
    needed: tuple[str, ...]
    what: str
    rules: Mapping[str, Rule]


def _roles(parts: Parts, first: ReadReport) -> list[_Role]:
    assert parts.edges is not None
    roles = []
    if parts.nodes is not None:
        assert first.id_column is not None
        roles.append(_Role(parts.nodes, (first.id_column,), "nodes", first.schema.nodes))
    for table, rules in zip([parts.edges, *parts.others], first.schema.edges.values(), strict=True):
        ends = tuple(next(name for name, rule in rules.items() if rule.kind == end) for end in ("source", "target"))
        roles.append(_Role(table, ends, "edges", rules))
    return roles


def _role_of(new: Table, roles: list[_Role]) -> tuple[_Role, Table]:
    """Return the table that rows belong to, by the names of their columns; or by their number where they have none."""
    readings = [new] if new.other is None else [new, replace(new.other()[0], name=new.name)]
    for table in readings:
        columns = set(table.columns)
        fitting = [role for role in roles if columns.issuperset(role.needed)]
        if fitting:
            return max(fitting, key=lambda role: (len(columns & set(role.table.columns)), role.what)), table
    for table in readings:
        alike = [role for role in roles if len(role.table.columns) == len(table.columns)]
        if not table.header and len(alike) == 1:
            return alike[0], _renamed(table, list(alike[0].table.columns))
    wanted = "; ".join(f"{' and '.join(map(repr, role.needed))} of {role.table.name}" for role in roles)
    raise BadInput(
        f"{new.name}: its columns ({few(new.columns)}) are those of no table that rows can be added to; "
        f"rename them: {wanted} must be there"
    )


def _renamed(table: Table, columns: list[str]) -> Table:
    """Return a table without a header with the names of another's columns."""
    before = dict(zip(columns, table.columns, strict=True))
    written = table.verbatim
    verbatim = None if written is None else lambda column: written(before[column]).rename(column)
    return replace(table, data=table.frame.set_axis(columns, axis=1), verbatim=verbatim)


# -------------------------------------------------------------------- old rows and new ones


@dataclass(frozen=True)
class _Joined(Table):
    """Rows of two tables: `rows` are places in both together, the first before the second."""

    tables: tuple[Table, Table] | None = None
    rows: Any = None

    def where(self, row: Any) -> str:
        """Return the place of a row in the table that it comes from."""
        assert self.tables is not None
        first, second = self.tables
        place = int(self.rows[int(row)])
        return first.where(place) if place < first.size else second.where(place - first.size)

    def ids(self, column: str, most: int | None = None) -> Any:
        """Return a column to be read as ids, or its first rows, as each table has it."""
        assert self.tables is not None
        one, other = self.tables
        if column not in other.columns:
            return self.series(column, most)
        whole = _stack(column, one, other, one.ids(column), other.ids(column))
        return whole.iloc[self.rows[:most]].reset_index(drop=True)


def _join(parts: Parts, first: ReadReport, new: list[Table], report: ReadReport) -> tuple[Parts, tuple[int, int]]:
    """Return the tables with the new rows, and how many rows of known nodes say something else, or the same."""
    roles = _roles(parts, first)
    found = {id(role.table): role.table for role in roles}
    changed = (0, 0)
    for table in new:
        role, rows = _role_of(table, roles)
        key = id(role.table)
        report.files[table.name] = f"new {role.what}; {report.files[table.name]}"
        _tell_columns(rows, role, report)
        if role.what == "nodes":
            found[key], more = _with_rows(found[key], rows, role.needed[0])
            changed = (changed[0] + more[0], changed[1] + more[1])
        else:
            found[key] = _with_events(found[key], rows, role, report)
    assert parts.edges is not None
    if changed[0]:
        report.notes.append(
            f"{changed[0]:,} rows of known nodes were updated: what the new row says takes the place of the old"
        )
    if changed[1]:
        report.notes.append(f"{changed[1]:,} rows of known nodes say what was known")
    joined = replace(
        parts,
        nodes=None if parts.nodes is None else found[id(parts.nodes)],
        edges=found[id(parts.edges)],
        others=tuple(found[id(table)] for table in parts.others),
    )
    return joined, changed


def _tell_columns(new: Table, role: _Role, report: ReadReport) -> None:
    """Name the columns that the new rows lack, and those that nothing is made of."""
    unused = (DROPPED, "left out", "source", "target")
    known = [name for name, rule in role.rules.items() if rule.kind not in unused]
    lacking = [name for name in known if name in role.table.columns and name not in new.columns]
    strange = [name for name in new.columns if name not in role.table.columns]
    report.filled += lacking
    report.strange += strange
    if lacking:
        fill = (
            "they count as missing, numbers as the mean of before" if role.what == "nodes" else "they count as missing"
        )
        report.notes.append(f"{new.name} lacks columns that {role.table.name} has: {few(lacking)}; {fill}")
    if strange:
        report.notes.append(f"{new.name} has columns that {role.table.name} lacks; they are not used: {few(strange)}")


def _with_rows(old: Table, new: Table, column: str) -> tuple[Table, tuple[int, int]]:
    """Return the nodes with new rows, each in the place of the one with its id or behind all; and how many changed."""
    import pandas as pd

    blank = _ids.blanks(new.ids(column))
    if blank.any():
        raise BadInput(f"{new.where(blank.argmax())}: the id in column {column!r} is blank; every node needs one")
    before, now = _ids.agree(_ids.read_ids(old.ids(column), old), _ids.read_ids(new.ids(column), new))
    again = np.asarray(now.values.duplicated())
    if again.any():
        culprit = now.values.iloc[int(again.argmax())]
        earlier = int(np.asarray(now.values == culprit).argmax())
        raise BadInput(
            f"{new.where(again.argmax())}: id {shown(culprit)} in column {column!r} was already given in "
            f"{new.where(earlier)}; keep one row per node"
        )
    size = old.size
    at = np.asarray(pd.Index(before.values).get_indexer(pd.Index(now.values)))
    known = np.flatnonzero(at >= 0)
    fresh = size + np.flatnonzero(at < 0)
    rows = np.concatenate([np.arange(size), fresh])
    kept = rows.copy()  # where the new table lacks a column, known nodes keep what they had
    rows[at[known]] = size + known
    joined = _stacked(old, new, rows, kept)
    shared = [name for name in new.columns if name in old.columns and name != column]
    differ = np.zeros(len(known), bool)
    for name in shared:
        whole = _stack(name, old, new, old.series(name), new.series(name)).astype("str")
        differ |= (whole.iloc[at[known]].to_numpy() != whole.iloc[size + known].to_numpy()).astype(bool)
    return joined, (int(differ.sum()), int((~differ).sum()))


def _with_events(old: Table, new: Table, role: _Role, report: ReadReport) -> Table:
    """Return the edges with new rows behind the old ones; the same rows once more are refused, a part of them said."""
    import pandas as pd

    size = old.size
    every = np.arange(size + new.size)
    joined = _stacked(old, new, every, every)
    if new.size and len(joined.columns) > len(role.needed):
        keys = pd.util.hash_pandas_object(joined.frame.astype("str"), index=False).to_numpy()
        again = int(np.isin(keys[size:], keys[:size]).sum())
        if again == new.size == role.table.size:
            raise BadInput(f"{new.name} holds the rows of {role.table.name} once more; give new rows only")
        if again:
            report.notes.append(
                f"{again:,} of {new.size:,} rows of {new.name} are rows of {old.name} too, and count twice; give "
                "new rows only"
            )
    return joined


def _stacked(old: Table, new: Table, rows: IntArray, kept: IntArray) -> _Joined:
    """Join two tables column by column; `kept` are the rows of columns that the new one lacks."""
    import pandas as pd

    columns = {}
    for name in old.columns:
        there = name in new.columns
        other = new.series(name) if there else pd.Series([None] * new.size, dtype=object)
        columns[name] = _stack(name, old, new, old.series(name), other).iloc[rows if there else kept]
    frame = pd.DataFrame({name: series.reset_index(drop=True) for name, series in columns.items()}, copy=False)
    return _Joined(
        frame,
        f"{old.name} and {new.name}",
        header=old.header,
        stem=old.stem or old.name,
        tables=(old, new),
        rows=rows,
    )


def _stack(column: str, one: Table, other: Table, first: Any, second: Any) -> Any:
    """Put the cells of a column of one table before those of another, in one type."""
    import pandas as pd

    def dates(series: Any) -> bool:
        return bool(series.dtype.kind == "M")

    if second.isna().all() or first.isna().all():
        gaps = second.isna().all()
        typed, empty = (first, second) if gaps else (second, first)
        own = dates(typed) or isinstance(typed.dtype, pd.StringDtype)
        kind: Any = np.float64 if _ids.is_number(typed) else typed.dtype if own else object
        nothing = pd.Series([np.nan if kind == np.float64 else None] * len(empty), dtype=kind)
        typed = typed.astype(object) if kind is object and len(empty) else typed
        pair = (typed, nothing) if gaps else (nothing, typed)
        return pd.concat([part for part in pair if len(part)] or [first], ignore_index=True)
    if dates(first) != dates(second):
        table, texts = (one, first) if dates(second) else (other, second)
        read = pd.to_datetime(texts, errors="coerce", format="ISO8601")
        bad = np.asarray(read.isna() & texts.notna(), dtype=bool)
        if bad.any() or _ids.is_number(texts):
            row = int(bad.argmax())
            raise BadInput(
                f"{table.where(row)}: {shown(texts.iloc[row])} in column {column!r} is not a date as "
                f"{(one if table is other else other).name} has there; write dates alike in both"
            )
        first, second = (read, second) if table is one else (first, read)
    elif _ids.is_text(first) != _ids.is_text(second):
        first = first if _ids.is_text(first) else _as_text(one, column, first)
        second = second if _ids.is_text(second) else _as_text(other, column, second)
    return pd.concat([first, second], ignore_index=True)


def _as_text(table: Table, column: str, series: Any) -> Any:
    """Cells that are no texts as texts, beside others that are: as they are written, if the file is text."""
    written = series if table.verbatim is None else table.verbatim(column)
    return written.astype(object).where(series.notna(), None).map(lambda cell: cell if cell is None else str(cell))


# -------------------------------------------------------------------- which node is which


def _places(old: Graph, graph: Graph, parts: Parts, joined: Parts, schema: Schema) -> IntArray:
    """The place of every node in the old graph: rows of nodes keep theirs, all others are found by their ids."""
    rows, more = (0 if nodes is None else nodes.size for nodes in (parts.nodes, joined.nodes))
    place = {str(name): rows + i for i, name in enumerate(old.ids.tolist()[rows:])}
    now = [str(name) for name in graph.ids.tolist()]
    apart = any(rule.facts.get("apart") for rules in schema.edges.values() for rule in rules.values())
    clash = next((name for name in now[rows:more] if apart and name in place), None)
    if clash is not None:
        raise BadInput(
            f"the new node {shown(clash)} has the id of something of another kind that edges lead to; write one of "
            "them differently"
        )
    return np.array([*range(rows), *(place.get(name, -1) for name in now[rows:])], dtype=np.int64)
