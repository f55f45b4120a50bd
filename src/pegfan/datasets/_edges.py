"""Tables of edges: which columns hold the ends, which way they point, and what else the rows say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan import _pairs
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput
from pegfan.datasets import _events, _ids
from pegfan.datasets._columns import ID_NAMES
from pegfan.datasets._events import Column, LeftOut
from pegfan.datasets._ids import Ids
from pegfan.datasets._schema import Rule, Schema
from pegfan.datasets._table import Options, ReadReport, Table, few, named_among, shown
from pegfan.graph import Joined

WEIGHT_NAMES = ("weight", "weights", "w", "value", "count", "strength")
_ROLES = (
    *(("payer", "payee"), ("sender", "receiver"), ("sender", "recipient"), ("citing", "cited")),
    *(("follower", "followee"), ("buyer", "seller"), ("caller", "callee"), ("debtor", "creditor")),
    *(("lender", "borrower"), ("orig", "dest"), ("nameorig", "namedest"), ("origin", "destination")),
)
"""Names of ends that say which way an edge points, whatever it is."""
_FORMS = ("{}", "{}_id", "{} id", "{}id", "{}_account", "{} account", "{}_acct", "{}_name", "{}_node")
DIRECTED_NAMES = tuple((form.format(one), form.format(other)) for one, other in _ROLES for form in _FORMS)
_EVENT_NAMES = (
    *(("source", "target"), ("src", "dst"), ("from", "to"), ("source_id", "target_id"), ("from_id", "to_id")),
    *(("from_account", "to_account"), ("source_account", "target_account"), ("from_node", "to_node")),
)
"""Names of ends of any edges; they say which way an event goes, but a plain list of friends is written so too."""
END_NAMES = (
    *(("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("i", "j"), ("node1", "node2")),
    *(("node_1", "node_2"), ("id1", "id2"), ("id_1", "id_2"), ("source_id", "target_id"), ("from_id", "to_id")),
    *(("fromnodeid", "tonodeid"), ("node_id", "node_id.1"), ("head", "tail"), ("start", "end")),
    *(pair for pair in _EVENT_NAMES if pair[0].endswith(("_account", "_node"))),
    *DIRECTED_NAMES,
)
_THINGS = re.compile(
    r"(?:device|merchant|ip|ip_address|card|phone|email|address|product|item|movie|book|song|artist|shop|store|page|tag|"
    r"group|url|domain|host|terminal|atm|wallet|iban|cookie|fingerprint|imei|company|event|venue|keyword|word)"
    r"(?:[_ ]?(?:id|number|no|code|hash|name))?"
)
"""Names of columns that hold something other than the nodes of the node table, though the numbers may look alike."""
_KNOWN, _FOREIGN = 0.9, 0.1
"""The least share of the values of one end that nodes have, and the most of the other, for that one to be no nodes."""
_SOME = 10_000


class Ends(NamedTuple):
    """The columns of the ends, why they are it, and whether their names say which way edges point."""

    columns: tuple[str, str]
    how: str
    names: str  # "directed", "events" or "any"


@dataclass(frozen=True, eq=False)
class Listed:
    """A table of edges whose ends were read.

    Attributes
    ----------
    table, kind
        The table, and what to call this kind of edges.
    ends
        Its columns of ends.
    ids
        What they hold.
    apart
        Which end, 0 or 1, holds things of another kind than the nodes; None if neither does.
    weight, weights
        The column of weights, and these; None if every edge weighs 1.
    columns
        The other columns that were read.
    rules
        How all columns were read in another table, if that is to be followed.
    """

    table: Table
    kind: str
    ends: Ends
    ids: tuple[Ids, Ids]
    apart: int | None
    weight: str | None
    weights: FloatArray | None
    columns: tuple[Column, ...]
    rules: Mapping[str, Rule]

    @property
    def things(self) -> str:
        """The column of the things that are not nodes of the node table."""
        assert self.apart is not None
        return self.ends.columns[self.apart]


def end_columns(table: Table) -> tuple[str, str] | None:
    """Return the columns with the usual names of edge ends."""
    for pair in END_NAMES:
        found = table.named(*pair)
        if len(found) == 2:
            return found[0], found[1]
    return None


def some_ends(edges: Table, options: Options) -> tuple[str, str] | None:
    """Return the columns that hold the ends of edges: as given, by name, or the first two; None if there is but one."""
    columns = edges.columns
    guessed = end_columns(edges) or tuple(columns[:2])
    given = [name if name in columns else None for name in (options.source, options.target)]
    if len(guessed) < 2:
        return None
    return given[0] or guessed[0], given[1] or guessed[1]


def kinds_of(tables: Sequence[Table], schema: Schema | None) -> list[str]:
    """Return what to call the edges of each table: as in the schema, else by the stem of the file."""
    names = [Path(table.stem or table.name).name.removesuffix(".gz").rsplit(".", 1)[0] for table in tables]
    if len(set(names)) < len(names):
        names = [table.stem or table.name for table in tables]
    known = [] if schema is None else list(schema.edges)
    if len(known) == len(names) == 1:
        return known
    for k, table in enumerate(tables) if known else ():
        if names[k] not in known:  # another file of the same columns
            assert schema is not None
            left = [name for name in known if name not in names]
            common = {name: len(set(schema.edges[name]) & set(table.columns)) for name in left}
            best = max(common, key=lambda name: common[name], default=None)
            if best is not None and common[best] >= 2:
                names[k] = best
    return names


def read_edges(
    edges: Table, kind: str, nodes: Table | None, options: Options, report: ReadReport, several: bool
) -> Listed:
    """Read the ends, the weight and all other columns of a table of edges."""
    rules = {} if options.schema is None else options.schema.edges.get(kind, {})
    ends = _pick_ends(edges, nodes, options, rules, several)
    for column in ends.columns:
        if (blank := _ids.blank_ids(edges, column)).any():
            raise BadInput(
                f"{edges.where(blank.argmax())}: column {column!r} is blank; an edge needs both ends "
                f"({int(blank.sum())} of {len(blank)} rows are blank)"
            )
    first, second = (_ids.ids_of(edges, column) for column in ends.columns)
    apart = _pick_apart(edges, ends, nodes, options, rules)
    weight, how = _pick_weight(edges, ends.columns, options, several)
    words = "none: every edge weighs 1" if weight is None else f"{weight!r} ({how})"
    _tell(report, "weight", edges, words, several)
    weights = None if weight is None else _read_weights(edges, weight)
    natural = weight or _pick_weight(edges, ends.columns, replace(options, weight=None), several)[0]
    alone = [column for column in edges.columns if column not in ends.columns] == [natural]
    if alone and not (several or apart is not None or ends.names == "directed" or options.edge_columns or rules):
        columns: tuple[Column, ...] = ()  # a list of edges with a weight, as there are many: no more is made of it
        report.dropped.update({f"{edges.name} {natural!r}": "not used"} if weight is None else {})
    else:
        columns = _read_columns(edges, ends.columns, weight, options, rules, report)
    return Listed(edges, kind, ends, (first, second), apart, weight, weights, columns, rules)


def _tell(report: ReadReport, role: str, edges: Table, words: str, several: bool) -> None:
    before = f"{report.columns[role]}; " if role in report.columns else ""
    report.columns[role] = f"{before}{edges.name}: {words}" if several else words


# -------------------------------------------------------------------- the ends


def _pick_ends(edges: Table, nodes: Table | None, options: Options, rules: Mapping[str, Rule], several: bool) -> Ends:
    columns = edges.columns
    stored = [next((name for name, rule in rules.items() if rule.kind == role), None) for role in ("source", "target")]
    guessed, how = end_columns(edges), "by name"
    if all(name in columns for name in stored):
        guessed, how = (str(stored[0]), str(stored[1])), "as in the schema"
    if guessed is None:
        if len(columns) < 2:
            raise BadInput(
                f"{edges.name} has {len(columns)} column(s): {few(columns)}; edges need a source and a target "
                "(in a text file, is the delimiter right?)"
            )
        guessed, how = (columns[0], columns[1]), "the first two columns"
        found = None if nodes is None or len(columns) == 2 else _ends_by_content(edges, nodes)
        if found is not None and found != guessed:
            guessed, how = found, "by content"
    given = [
        None if name is None or (several and name not in columns) else edges.find(name, role)
        for name, role in ((options.source, "source"), (options.target, "target"))
    ]
    source, target = given[0] or guessed[0], given[1] or guessed[1]
    if None not in given:
        how = "as given"
    if source == target:
        raise BadInput(f"{edges.name}: source and target are the same column {source!r}; name them both")
    named = source.strip().lower(), target.strip().lower()
    says = "directed" if named in DIRECTED_NAMES else "events" if named in _EVENT_NAMES and edges.header else "any"
    return Ends((source, target), how, says)


def _ends_by_content(edges: Table, nodes: Table) -> tuple[str, str] | None:
    """Return two columns that hold ids of nodes, or one that does and one of other things; None if none does."""
    shares = {column: max(_shares(edges, column, nodes).values(), default=0.0) for column in edges.columns}
    held = [column for column, share in shares.items() if share >= _KNOWN]
    if len(held) >= 2:
        return held[0], held[1]
    others = [column for column in edges.columns if column not in held and _may_be_things(edges, column)]
    others.sort(key=lambda column: _THINGS.fullmatch(column.strip().lower()) is None)
    return (held[0], others[0]) if held and others else None


def _may_be_things(edges: Table, column: str) -> bool:
    """Whether a column may name things: texts or whole numbers, some of them more than once."""
    series = edges.series(column)
    if not (_ids.is_text(series) or series.dtype.kind in "iu"):
        return False
    return bool(series.iloc[:_SOME].duplicated().any()) and not _events.is_dates(edges, column)


def best_share(edges: Table, nodes: Table) -> float:
    """Return the largest share of a column's first values that some column of the nodes has whose values all differ."""
    return max((share for name in edges.columns for share in _shares(edges, name, nodes).values()), default=0.0)


def _shares(edges: Table, column: str, nodes: Table) -> dict[str, float]:
    """Return the share of the first values of a column that each column of the nodes has whose values all differ."""
    some = edges.series(column, _SOME)
    if some.dtype.kind not in "iuO" and not _ids.is_text(some):
        return {}
    try:
        some = edges.ids(column, _SOME).dropna().drop_duplicates()
        return _ids.shares_found(_ids.read_ids(some, edges), nodes)
    except (TypeError, ValueError):  # not even ids
        return {}


def _pick_apart(
    edges: Table, ends: Ends, nodes: Table | None, options: Options, rules: Mapping[str, Rule]
) -> int | None:
    """Return the end that holds things which are no rows of the node table; None if neither does."""
    if options.bipartite is None and rules:
        stored = [column in rules and rules[column].facts.get("apart", False) for column in ends.columns]
        return stored.index(True) if True in stored else None
    # Two ends that are named alike are of one kind, and strangers among them are the caller's to judge.
    alike = end_columns(edges) == ends.columns or not edges.header
    undecided = options.bipartite is None and options.unknown == "error" and not alike
    if not (options.bipartite or undecided):
        return None
    shares = [{} if nodes is None else _shares(edges, column, nodes) for column in ends.columns]
    if options.bipartite:
        best = [max(share.values(), default=0.0) for share in shares]
        return 0 if best[1] > best[0] else 1
    for end in (1, 0):
        name = ends.columns[end].strip().lower()
        for column, share in shares[1 - end].items():
            by_name = _THINGS.fullmatch(name) is not None and not _THINGS.fullmatch(column.strip().lower())
            if share >= _KNOWN and (shares[end].get(column, 0.0) <= _FOREIGN or by_name):
                return end
    return None


# -------------------------------------------------------------------- weights and other columns


def _read_weights(edges: Table, column: str) -> FloatArray:
    import pandas as pd

    series = edges.series(column)
    weights = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(good.argmin())
        raise BadInput(
            f"{edges.where(row)}: weight {shown(series.iloc[row])} in column {column!r} must be a finite number, "
            "not negative (weight=False ignores the column)"
        )
    return np.asarray(weights)


def _pick_weight(edges: Table, ends: tuple[str, str], options: Options, several: bool) -> tuple[str | None, str]:
    others = [column for column in edges.columns if column not in ends]
    if options.weight is not None:
        none = options.weight is False or (options.weight == "none" and "none" not in others)
        if none or (several and options.weight not in others):
            return None, "as given"
        return edges.find(options.weight, "weight"), "as given"
    if named := named_among(others, *WEIGHT_NAMES):
        return named[0], "by name"
    if len(others) == 1 and _ids.is_number(edges.series(others[0])):
        # Neither when an edge was made nor the number of its row is a weight, nor a number below zero.
        unfit = re.search("time|date|year", others[0].lower()) or named_among(others, *ID_NAMES)
        return (None, "") if unfit else (others[0], "the third column")
    return None, ""


def _read_columns(
    edges: Table,
    ends: tuple[str, str],
    weight: str | None,
    options: Options,
    rules: Mapping[str, Rule],
    report: ReadReport,
) -> tuple[Column, ...]:
    """Read all columns but the ends."""
    others = [column for column in edges.columns if column not in ends]
    wanted = options.edge_columns
    asked = wanted is not None and wanted is not False
    if wanted is False:
        chosen = []
    elif asked:
        chosen = [column for column in wanted if column in others]
    elif rules:
        chosen = [column for column in others if column in rules and rules[column].kind in _events.KINDS]
    else:
        chosen = others
    found = []
    for column in chosen:
        try:
            found.append(_events.read_column(edges, column, rules.get(column), asked=asked))
        except LeftOut as why:
            if asked:
                raise BadInput(f"{edges.name}: column {column!r} cannot be used: {why}") from None
            if column != weight:
                report.dropped[f"{edges.name} {column!r}"] = str(why)
    for column in others:
        if column not in chosen and column != weight:
            reason = "not asked for" if asked or wanted is False else "not in the schema"
            known = rules[column].facts if column in rules else {}
            if rules and reason == "not in the schema" and column not in rules:
                report.strange.append(column)
            report.dropped[f"{edges.name} {column!r}"] = known.get("why", reason)
    return tuple(found)


def require_columns(tables: Sequence[Table], options: Options) -> None:
    """Refuse names of columns that no table of edges has."""
    named = [("weight", options.weight)] if isinstance(options.weight, str) and options.weight != "none" else []
    named += [("edge", column) for column in options.edge_columns or ()]
    named += [(role, getattr(options, role)) for role in ("source", "target") if getattr(options, role) is not None]
    for role, column in named:
        if not any(str(column) in table.columns for table in tables):
            tables[0].find(column, role)


# -------------------------------------------------------------------- what the rows come to


class Derived(NamedTuple):
    """What the rows of a table come to: columns of the nodes, other weights, and how they were made."""

    names: list[str]
    columns: list[FloatArray]
    matrices: dict[str, Joined]
    rules: dict[str, Rule]


def points(listed: Listed, pairs: IntArray, options: Options) -> tuple[bool, str]:
    """Say whether the edges of a table are directed, and why."""
    columns = [column for column in listed.columns if column.name != listed.weight]
    stored = listed.rules[listed.ends.columns[0]].facts if listed.ends.columns[0] in listed.rules else {}
    if options.directed is not None:
        return bool(options.directed), ""
    if "directed" in stored:
        return bool(stored["directed"]), " as in the schema"
    if listed.apart is not None:
        return False, ""
    if listed.ends.names == "directed":
        return True, " as these names say"
    if listed.ends.names == "events" and columns and not _mutual(pairs):
        return True, ", as rows with columns of their own are events"
    return False, ""


def _mutual(pairs: IntArray) -> bool:
    """Whether every pair is there both ways."""
    n = int(pairs.max(initial=0)) + 1
    turned = _pairs.pack(pairs[:1, 1], pairs[:1, 0], n, both=False)  # mostly, the first pair says it
    keys = _pairs.pack(pairs[:, 0], pairs[:, 1], n, both=False)
    if len(pairs) and not (keys == turned[0]).any():
        return False
    there, back = np.sort(keys), np.sort(_pairs.pack(pairs[:, 1], pairs[:, 0], n, both=False))
    return np.array_equal(there[_pairs.are_first(there)], back[_pairs.are_first(back)])


def derive(
    listed: Listed, pairs: IntArray, kept: NDArray[np.bool_] | None, n: int, directed: bool, several: bool,
    options: Options, report: ReadReport,
) -> Derived:  # fmt: skip
    """Make of the rows of a table what they say of nodes and edges, and write it down.

    Parameters
    ----------
    listed, pairs, n
        The table, the nodes that its rows join, and the number of nodes.
    kept
        Which rows are left; None for all.
    directed
        Whether they point from the first to the second.
    several
        Whether there are other tables: names then begin with the kind of edges.
    options, report
        As everywhere.
    """
    table, ends = listed.table, listed.ends.columns
    columns = [column if kept is None else column._replace(values=column.values[kept]) for column in listed.columns]
    if (order := _events.in_order_of_values(columns)) is not None:
        pairs = pairs[order]
        columns = [column._replace(values=column.values[order]) for column in columns]
    stored = listed.rules[ends[0]].facts if ends[0] in listed.rules else {}
    counted = bool(columns or several or listed.apart is not None)
    grouped, (source, target) = None, pairs.T
    if options.edge_columns is not False and (counted or listed.ends.names == "directed" or stored.get("events")):
        source, target = pairs.T.astype(np.int64, copy=False)  # to be multiplied
        grouped = _events.Pairs.of(source, target, n, directed=directed)
        counted = bool(stored.get("events", counted or len(grouped.i) < len(pairs)))
    counted = counted and grouped is not None
    ended = {"directed": directed, "events": counted}
    facts: dict[str | None, dict[str, Any]] = {column.name: dict(column.rule.facts) for column in columns}
    facts[None] = {"log": list(stored["log"])} if "log" in stored else {}
    found = Derived([], [], {}, {})
    made: dict[str | None, list[str]] = {name: [] for name in facts}
    weighs: dict[str | None, list[str]] = {name: [] for name in facts}
    prefix = f"{listed.kind} " if several else ""
    if counted:
        assert grouped is not None
        sides = _events.sides_of(source, target, directed=directed)
        for name, origin, values in _events.node_columns(grouped, sides, columns):
            tail = name.rsplit(" ", 1)[-1]
            logs = stored.get("log") if origin is None else listed.rules.get(origin, Rule("")).facts.get("log")
            if logs is not None:
                heavy = name in logs
            else:
                heavy = tail in _events.WAITS or (tail in _events.SIZES and _events.is_heavy(values))
            if heavy:
                facts[origin].setdefault("log", []).append(name) if logs is None else None
            made[origin].append(f"{prefix}{name} (log)" if heavy else prefix + name)
            found.names.append(prefix + name)
            found.columns.append(_events.signed_log(values) if heavy else values)
        for name, origin, matrix in _events.edge_weights(grouped, columns):
            weighs[origin].append(prefix + name)
            found.matrices[prefix + name] = Joined(matrix, symmetric=not directed)
    _describe(table, columns, made, weighs, counted, report)
    found.rules[ends[0]] = Rule("source", {**ended, "apart": listed.apart == 0, "log": [], **facts[None]})
    found.rules[ends[1]] = Rule("target", {"apart": listed.apart == 1})
    for column in columns:
        found.rules[column.name] = Rule(column.rule.kind, {"log": [], **facts[column.name]})
    for name in table.columns:
        if name not in found.rules:
            why = report.dropped.get(f"{table.name} {name!r}")
            found.rules[name] = Rule("weight") if why is None else Rule("left out", {"why": why})
    _add_missing(listed, prefix, n, found, report)
    return found


def _describe(
    table: Table,
    columns: Sequence[Column],
    made: Mapping[str | None, list[str]],
    weighs: Mapping[str | None, list[str]],
    counted: bool,
    report: ReadReport,
) -> None:
    """Write down what became of the rows and of every column."""
    if not counted:
        return
    entries: dict[str | None, tuple[str, str]] = {None: (f"{table.name} rows", "events")}
    entries |= {column.name: (f"{table.name} {column.name!r}", column.how) for column in columns}
    for name, (head, how) in entries.items():
        below = name is not None and any(
            c.name == name and c.rule.kind == "number" and (c.values < 0).any() for c in columns
        )
        sizes = ", without their signs" if below and weighs[name] else ""
        weights = f"; hop weights {', '.join(weighs[name])}{sizes}" if weighs[name] else ""
        report.features[head] = f"{how}; node columns {', '.join(made[name])}{weights}"


def _add_missing(listed: Listed, prefix: str, n: int, found: Derived, report: ReadReport) -> None:
    """Columns that the schema has and the table has not: as if no row said anything."""
    lacking = [
        column
        for column, rule in listed.rules.items()
        if rule.kind in _events.KINDS and column not in {one.name for one in listed.columns}
    ]
    if not lacking or not found.names:
        return
    nothing = np.empty(0, np.int64)
    directed = bool(found.rules[listed.ends.columns[0]].facts["directed"])
    empty = _events.Pairs.of(nothing, nothing, n, directed=directed)
    columns = [Column(name, np.empty(0, np.int64 if listed.rules[name].kind == "category" else np.float64),
                      listed.rules[name], "") for name in lacking]  # fmt: skip
    sides = _events.sides_of(nothing, nothing, directed=directed)
    for name, origin, values in _events.node_columns(empty, sides, columns):
        if origin is not None:
            found.names.append(prefix + name)
            found.columns.append(values)
    report.filled += lacking
    report.notes.append(
        f"{listed.table.name} lacks columns that the schema has: {few(lacking)}; nodes are as if without edges there"
    )
