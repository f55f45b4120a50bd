"""The columns of an edge table: rows are events, and become other weights of the edges and columns of the nodes.

Everything is grouped by arrays of node numbers: one pass per column, and one sort of all pairs of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan import _pairs
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput
from pegfan.datasets import _blocks, _dates
from pegfan.datasets._columns import ID_NAMES
from pegfan.datasets._ids import is_number, is_text
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import Table, shown

CATEGORIES = 8
"""The most categories of an edge column whose shares become columns of the nodes: the most frequent ones."""
WEIGHED = 3
"""The most number columns that become weights of the edges, three of each."""
KINDS = ("number", "date", "time", "category")
"""What an edge column may be read as."""
HEAVY = 10.0
"""Columns whose largest value is so many times the median are taken as logarithms."""
SIZES = ("count", "partners", "sum", "mean", "largest", "smallest", "spread")
"""Last words of the names of columns of nodes that may have a heavy tail."""
WAITS = ("gap", "turnaround")
"""Last words of those that always have: an hour and a day differ as much as a day and a month."""

_TIME_NAME = re.compile(r"(?:^|[^a-z])(?:time|date|day|year|month|step|timestamp|datetime|ts|epoch|when)(?:$|[^a-z])")
_MANY = 20  # rows, from which on chance does not explain that all of them differ
_DAY = 86_400.0


class LeftOut(Exception):
    """Why an edge column is not used."""


class Column(NamedTuple):
    """An edge column that was read.

    Attributes
    ----------
    name
        Its name.
    values
        Numbers, or days since 1970 (or times as given), NaN where there is none; or the places of categories, -1 where
        there is none or it is a rare one.
    rule
        How it was read.
    how
        The same in words.
    """

    name: str
    values: NDArray[Any]
    rule: Rule
    how: str


# -------------------------------------------------------------------- reading columns


def read_column(edges: Table, column: str, rule: Rule | None = None, *, asked: bool = False) -> Column:
    """Return a column as numbers, times or categories, as `rule` says or as its content does.

    Parameters
    ----------
    edges
        The table.
    column
        The name of the column.
    rule
        How it was read in another table.
    asked
        Whether the caller named the column: one that looks like an id is then read too.

    Raises
    ------
    LeftOut
        If nothing is to be made of it.
    BadInput
        If a value is not what the others are, with its line.
    """
    series = edges.series(column)
    gaps = _blocks.gaps(series, placeholders=True)
    if gaps.all():
        raise LeftOut("every value is missing")
    kind = rule.kind if rule is not None else _guess(edges, column, gaps, asked)
    read = {"number": _numbers, "date": _read_dates, "time": _times, "category": _categories}[kind]
    return read(edges, column, gaps, {} if rule is None else rule.facts)


def _guess(edges: Table, column: str, gaps: NDArray[np.bool_], asked: bool) -> str:
    """Say what a column holds: number, date, time (a number in units of its own) or category; or raise why not."""
    import pandas as pd

    types, series = pd.api.types, edges.series(column)
    if is_number(series):
        return _guess_number(edges, column, gaps, asked)
    inferred = types.infer_dtype(series, skipna=True)
    kind = "date" if types.is_datetime64_any_dtype(series.dtype) else _INFERRED.get(inferred)
    if kind is None:
        raise LeftOut(f"values of unusual or unlike kinds ({inferred})")
    if inferred == "string":
        some = series[~gaps].iloc[:: max(len(series) // 1000, 1)]
        numeric = pd.to_numeric(some, errors="coerce").notna()
        coded = some.str.fullmatch(r"\s*0\d+\s*").any()  # 0742 is a code
        if 2 * int(numeric.sum()) >= len(some) and not coded:
            kind = "number"
        elif is_dates(edges, column):
            kind = "date"
            if not asked and len(series) > 1 and not gaps.any() and series.nunique() == 1:
                raise LeftOut(f"every row has {shown(series.iloc[0])}")
    if kind == "category" and not asked:
        _require_categories(series[~gaps], len(series))
    return kind


_INFERRED = {
    **dict.fromkeys(["datetime", "datetime64", "date"], "date"),
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "decimal"], "number"),
    **dict.fromkeys(["string", "boolean", "categorical"], "category"),
}


def _guess_number(edges: Table, column: str, gaps: NDArray[np.bool_], asked: bool) -> str:
    series = edges.series(column)
    if not asked:
        like_id = column.strip().lower() in ID_NAMES or column.strip().endswith(("_id", " id", "_ID", "Id", "ID"))
        if series.dtype.kind in "iu" and len(series) > 1 and series.is_unique:
            if like_id:
                raise LeftOut("whole numbers that all differ, in a column named like an id")
            if len(series) > _MANY and int(series.max()) - int(series.min()) == len(series) - 1:
                raise LeftOut("numbers its rows")
        if len(series) > 1 and not gaps.any() and series.nunique() == 1:
            raise LeftOut(f"every row has {shown(series.iloc[0])}")
    if is_dates(edges, column):
        return "date"
    return "time" if _TIME_NAME.search(column.strip().lower()) else "number"


def _require_categories(values: Any, rows: int) -> None:
    """Refuse texts that are all alike, or names."""
    distinct = int(values.nunique())
    if distinct == 1:
        raise LeftOut(f"every row has {shown(values.iloc[0])}")
    if 2 * distinct > rows > _MANY or distinct == rows:
        raise LeftOut(f"{distinct:,} different texts in {rows:,} rows: names, not categories")


def _numbers(edges: Table, column: str, gaps: NDArray[np.bool_], facts: Mapping[str, Any]) -> Column:
    import pandas as pd

    series = edges.series(column)
    if gaps.any() or not is_number(series):
        series = pd.to_numeric(series.where(~gaps), errors="coerce")
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    _require(edges, column, gaps | np.isfinite(values), "not a finite number")
    lacking = int(gaps.sum())
    return Column(column, values, Rule("number", facts), "number" + (f", {lacking:,} missing" if lacking else ""))


def _require(edges: Table, column: str, good: NDArray[np.bool_], what: str) -> None:
    if not good.all():
        row = int(good.argmin())
        raise BadInput(
            f"{edges.where(row)}: {shown(edges.series(column).iloc[row])} in column {column!r} is {what}; correct it, "
            "leave it blank, or name the columns to use without this one with edge_columns="
        )


def is_dates(edges: Table, column: str) -> bool:
    """Whether a column holds dates."""
    return _dates.date_form(_blocks.Column(edges, column)) is not None


def _read_dates(edges: Table, column: str, gaps: NDArray[np.bool_], facts: Mapping[str, Any]) -> Column:
    """Days since 1970, with their fractions."""
    form = facts.get("form") or _dates.date_form(_blocks.Column(edges, column)) or "date"
    if form == "time of day":
        raise LeftOut("times of the day, without the day")
    days = _dates.moments(edges.series(column), form) / _DAY
    told = "" if form in ("date", "year first") else f" ({_dates.WORDS.get(form, form).split(' (')[0]})"
    _require(edges, column, gaps | np.isfinite(days), f"not a date as the values there are{told}")
    never = _dates.stand_ins(days * _DAY)
    gaps = gaps | never
    days[gaps] = np.nan
    if gaps.all():
        raise LeftOut("every value is missing")
    clock = bool(facts.get("clock", (np.nan_to_num(days) % 1 != 0).any()))
    rule = Rule("date", _reference(days, {**facts, "form": form, "clock": clock}))
    newest = np.datetime64(round(rule.facts["reference"] * _DAY), "s").item()
    words = f"date{told}, newest {newest:%Y-%m-%d}" + (f", {int(gaps.sum()):,} missing" if gaps.any() else "")
    words += f" ({int(never.sum()):,} {_dates.STAND_INS})" if never.any() else ""
    return Column(column, days, rule, words)


def _times(edges: Table, column: str, gaps: NDArray[np.bool_], facts: Mapping[str, Any]) -> Column:
    """Numbers that say when, in units of their own."""
    values = _numbers(edges, column, gaps, {}).values
    rule = Rule("time", _reference(values, facts))
    words = f"time as given, newest {rule.facts['reference']:g}"
    return Column(column, values, rule, words + (f", {int(gaps.sum()):,} missing" if gaps.any() else ""))


def _reference(times: FloatArray, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What ages count from: the newest time; with the oldest, and the age at which an event weighs half."""
    known = times[np.isfinite(times)]
    newest = float(facts.get("reference", known.max(initial=-np.inf)))
    return {
        "reference": newest,
        "oldest": float(known.min()),
        "half_life": float(newest - np.median(known)),
        **facts,
    }


def _categories(edges: Table, column: str, gaps: NDArray[np.bool_], facts: Mapping[str, Any]) -> Column:
    import pandas as pd

    texts = edges.series(column)
    texts = texts.where(~_blocks.gaps(texts))  # "unknown" is a category
    codes, distinct = pd.factorize(texts if is_text(texts) else texts.astype(object))
    names = [str(value) for value in distinct]
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    if "categories" in facts:
        kept = list(facts["categories"])
    else:
        kept = [names[k] for k in sorted(range(len(names)), key=lambda k: (-counts[k], names[k]))[:CATEGORIES]]
    place = {name: k for k, name in enumerate(kept)}
    lookup = np.array([*(place.get(name, -1) for name in names), -1])
    # A rare category is no gap: it counts in the whole that shares are of.
    values = np.where(codes < 0, -1, np.where(lookup[codes] < 0, len(kept), lookup[codes]))
    most = f", shares of the {len(kept)} most frequent" if len(names) > len(kept) else ""
    return Column(column, values, Rule("category", {**facts, "categories": kept}), f"{len(names)} categories{most}")


# -------------------------------------------------------------------- pairs of nodes


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct pairs of nodes that rows join, and which of them each row joins.

    Attributes
    ----------
    n
        The number of nodes.
    i, j
        The pairs, sorted; with i <= j if undirected.
    row
        The place of each row's pair.
    mirror
        Whether they are undirected.
    """

    n: int
    i: IntArray
    j: IntArray
    row: IntArray
    mirror: bool

    @classmethod
    def of(cls, source: IntArray, target: IntArray, n: int, *, directed: bool) -> Pairs:
        """The pairs that rows join."""
        keys, order = _pairs.in_order(_pairs.pack(source, target, n, both=not directed), n)
        new = _pairs.are_first(keys)
        row = np.empty(len(keys), np.int64)
        row[order] = np.cumsum(new) - 1
        i, j = _pairs.unpack(keys[new], n)
        return cls(n, i, j, row, not directed)

    @cached_property
    def _pattern(self) -> tuple[csr_array, IntArray]:
        """The matrix without its weights, and whose weight each entry has."""
        keys = _pairs.pack(self.i, self.j, self.n, both=self.mirror)
        matrix = _pairs.rows_of(keys, np.arange(len(keys), dtype=np.float64), self.n, both=self.mirror)
        return matrix, matrix.data.astype(np.int64)

    def matrix(self, weights: FloatArray) -> csr_array:
        """The matrix of one weight per pair, both ways if undirected."""
        pattern, whose = self._pattern
        matrix = csr_array((weights[whose] if self.mirror else weights, pattern.indices, pattern.indptr), pattern.shape)
        if not weights.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def sums(self, values: FloatArray | None = None) -> FloatArray:
        """The sum over the rows of each pair; how many there are without values."""
        return np.bincount(self.row, values, minlength=len(self.i)).astype(np.float64)

    def partners(self, end: int) -> FloatArray:
        """With how many different nodes each node is paired: as the first (0) or the second (1), or as either."""
        if not self.mirror:
            return np.bincount((self.i, self.j)[end], minlength=self.n).astype(np.float64)
        off = self.i != self.j
        both = np.bincount(self.i, minlength=self.n) + np.bincount(self.j[off], minlength=self.n)
        return both.astype(np.float64)


def edge_weights(pairs: Pairs, columns: Sequence[Column]) -> Iterator[tuple[str, str | None, csr_array]]:
    """Other weights of the edges: names, the columns that they come from (None: the rows), and matrices.

    How often an edge is given; of numbers, without their signs, sum, mean and logarithm of one plus the sum; and of the
    first column of times, the sum of 2^(-age / half-life) over the rows.
    """
    counts = pairs.sums()
    yield "count", None, pairs.matrix(counts)
    weighed = 0
    timed = False
    for column in columns:
        if column.rule.kind == "number" and weighed < WEIGHED:
            weighed += 1
            lacking = np.isnan(column.values)
            sizes = np.abs(np.where(lacking, 0.0, column.values))
            total = pairs.sums(sizes)
            held = pairs.sums((~lacking).astype(np.float64)) if lacking.any() else counts
            yield f"{column.name} sum", column.name, pairs.matrix(total)
            yield f"{column.name} mean", column.name, pairs.matrix(total / np.maximum(held, 1))
            yield f"{column.name} log-sum", column.name, pairs.matrix(np.log1p(total))
        elif column.rule.kind in ("date", "time") and not timed:
            timed = True
            facts = column.rule.facts
            age = np.maximum(facts["reference"] - np.where(np.isnan(column.values), facts["oldest"], column.values), 0)
            yield "recent", column.name, pairs.matrix(pairs.sums(np.exp2(-age / (facts["half_life"] or 1.0))))


# -------------------------------------------------------------------- columns of the nodes


class Side(NamedTuple):
    """The rows as events of the nodes at one of their ends, or at either.

    Attributes
    ----------
    name
        ``"out"``, ``"in"`` or ``"both"``.
    node
        Whose event it is.
    row
        Which row it is; None for every row in turn.
    """

    name: str
    node: IntArray
    row: IntArray | None

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the events."""
        return values if self.row is None else values[self.row]


def in_order_of_values(columns: Sequence[Column]) -> IntArray | None:
    """An order of rows in which sums over any of them do not depend on how the table orders them.

    None if they do not anyway: sums of whole numbers are exact.
    """
    keys = [column.values for column in columns if column.rule.kind != "category" and not _are_whole(column)]
    return np.lexsort(keys) if keys else None


def _are_whole(column: Column) -> bool:
    values = column.values[~np.isnan(column.values)]
    return column.rule.kind == "number" and bool((values == np.rint(values)).all())


def sides_of(source: IntArray, target: IntArray, *, directed: bool) -> list[Side]:
    """The sides on which nodes have events; a row from a node to itself is one event of it, whichever the side."""
    if directed:
        return [Side("out", source, None), Side("in", target, None)]
    other = np.flatnonzero(source != target)
    rows = np.concatenate([np.arange(len(source)), other])
    order = np.argsort(rows, kind="stable")  # row by row, whichever end of it a node is
    return [Side("both", np.concatenate([source, target[other]])[order], rows[order])]


def node_columns(
    pairs: Pairs, sides: Sequence[Side], columns: Sequence[Column]
) -> Iterator[tuple[str, str | None, FloatArray]]:
    """What the events of every node come to: names, the edge columns that they come from (None: the rows), and values.

    =========  =======================================================================================================
    the rows   count, partners (different nodes at the other end)
    numbers    sum, mean, largest, smallest, spread (standard deviation)
    times      recency (from the node's last event to the reference), span (first to last), events per active day,
               shortest gap and usual gap (geometric mean) from one event to the next
    dates      share at weekends; with times of the day, sine and cosine of the hour, as means
    categories the share of each
    both sides of times: the turnaround, usual time (geometric mean) from what came in last to what goes out
    =========  =======================================================================================================

    Gaps and turnarounds of dates are in hours. Nodes without events have zeros; their recency is that of the oldest
    event, and gaps that there are not are as long as from the oldest to the newest.
    """
    n = pairs.n
    orders = {column.name: _Order.of(column.values) for column in columns if column.rule.kind in ("date", "time")}
    for end, side in enumerate(sides):
        counts = np.bincount(side.node, minlength=n).astype(np.float64)
        yield f"{side.name} count", None, counts
        yield f"{side.name} partners", None, pairs.partners(end)
        for column in columns:
            stem = f"{side.name} {column.name}"
            for words, values in _by_node(column, side, counts, n, orders.get(column.name)):
                yield (f"{stem}={words}" if column.rule.kind == "category" else f"{stem} {words}"), column.name, values
    if len(sides) == 2:
        for column in columns:
            if column.name in orders:
                yield f"{column.name} turnaround", column.name, _turnaround(column, orders[column.name], sides, n)


def _by_node(
    column: Column, side: Side, counts: FloatArray, n: int, order: _Order | None
) -> Iterator[tuple[str, FloatArray]]:
    values, node = side.take(column.values), side.node
    if column.rule.kind == "category":
        yield from _shares(values, node, n, column.rule.facts["categories"])
        return
    lacking = np.isnan(values)
    if lacking.any():
        values, node = values[~lacking], node[~lacking]
        counts = np.bincount(node, minlength=n).astype(np.float64)
    held = np.maximum(counts, 1)
    largest, smallest = np.full(n, -np.inf), np.full(n, np.inf)
    np.maximum.at(largest, node, values)
    np.minimum.at(smallest, node, values)
    if column.rule.kind == "number":
        total = np.bincount(node, values, minlength=n).astype(np.float64)
        mean = total / held
        yield "sum", total
        yield "mean", mean
        yield "largest", np.where(counts > 0, largest, 0.0)
        yield "smallest", np.where(counts > 0, smallest, 0.0)
        yield "spread", np.sqrt(np.bincount(node, (values - mean[node]) ** 2, minlength=n) / held)
        return
    facts = column.rule.facts
    yield "recency", facts["reference"] - np.where(counts > 0, largest, facts["oldest"])
    with np.errstate(invalid="ignore"):
        yield "span", np.where(counts > 0, largest - smallest, 0.0)
    yield "per active day", counts / np.maximum(_active_days(values, node, n), 1)
    assert order is not None
    whose, when = order.sorted(node, side.take(order.codes)[~lacking])
    same = np.diff(whose) == 0
    whose, waits = whose[1:][same], np.diff(order.times[when])[same] * _unit(column)
    shortest = np.full(n, np.inf)
    np.minimum.at(shortest, whose, waits)
    yield "shortest gap", np.where(np.isfinite(shortest), shortest, _longest(column))
    yield "usual gap", _usual(waits, whose, n, _longest(column))
    if column.rule.kind == "date":
        # 1970 began on a Thursday.
        yield "weekend share", np.bincount(node, (np.floor(values) + 3) % 7 >= 5, minlength=n) / held
    if facts.get("clock"):
        turn = 2 * np.pi * (values % 1)
        yield "hour sin", np.bincount(node, np.sin(turn), minlength=n) / held
        yield "hour cos", np.bincount(node, np.cos(turn), minlength=n) / held


class _Order(NamedTuple):
    """The different times of events in order, and the place of every event among them; any, where it has no time.

    With it an event is one whole number, by node and then by time, and numbers are quickly sorted.
    """

    times: FloatArray
    codes: IntArray

    @classmethod
    def of(cls, times: FloatArray) -> _Order:
        import pandas as pd

        codes, distinct = pd.factorize(times, sort=True)
        return cls(np.asarray(distinct), codes.astype(np.int64))

    @property
    def _bits(self) -> int:
        return len(self.times).bit_length()

    def keys(self, node: IntArray, codes: IntArray) -> IntArray:
        """Numbers of events, sorted."""
        keys = node.astype(np.int64) << self._bits
        keys |= codes
        keys.sort()
        return keys

    def parts(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """The nodes and the places of times of numbers of events."""
        return keys >> self._bits, keys & ((1 << self._bits) - 1)

    def sorted(self, node: IntArray, codes: IntArray) -> tuple[IntArray, IntArray]:
        """The nodes and the places of times of events, by node and then by time."""
        return self.parts(self.keys(node, codes))


def _turnaround(column: Column, order: _Order, sides: Sequence[Side], n: int) -> FloatArray:
    """The usual time from what came in last to what goes out; of nodes without, the longest that there is."""
    # A row from a node to itself is no answer to itself.
    counts = ~np.isnan(column.values) & (sides[0].node != sides[1].node)
    gone, come = (order.keys(side.node[counts], order.codes[counts]) for side in sides)
    place = np.searchsorted(come, gone, side="right") - 1
    last = come[place] if len(come) else gone
    (payer, then), (payee, before) = order.parts(gone), order.parts(last)
    answers = (place >= 0) & (payee == payer)
    waits = order.times[then[answers]] - order.times[before[answers]]
    return _usual(waits * _unit(column), payer[answers], n, _longest(column))


def _usual(waits: FloatArray, node: IntArray, n: int, none: float) -> FloatArray:
    """The geometric mean of one plus the waits of every node, less one; or `none`."""
    counts = np.bincount(node, minlength=n)
    logs = np.bincount(node, np.log1p(waits), minlength=n) / np.maximum(counts, 1)
    return np.where(counts > 0, np.expm1(logs), none)


def _unit(column: Column) -> float:
    """What gaps are multiplied by: those of dates are told in hours."""
    return 24.0 if column.rule.kind == "date" else 1.0


def _longest(column: Column) -> float:
    return float(column.rule.facts["reference"] - column.rule.facts["oldest"]) * _unit(column)


def _active_days(times: FloatArray, node: IntArray, n: int) -> FloatArray:
    """On how many different days each node has an event."""
    if len(times) == 0:
        return np.zeros(n)
    days = np.floor(times).astype(np.int64)
    low = int(days.min())
    width = int(days.max()) - low + 1
    if width < 2**62 // max(n, 1):
        key = np.sort(node * width + (days - low))
        return np.bincount(key[np.diff(key, prepend=-1) != 0] // width, minlength=n).astype(np.float64)
    order = np.lexsort((days, node))  # times so far apart that one number cannot hold node and day
    node, days = node[order], days[order]
    new = np.ones(len(node), dtype=bool)
    new[1:] = (np.diff(node) != 0) | (np.diff(days) != 0)
    return np.bincount(node[new], minlength=n).astype(np.float64)


def _shares(codes: IntArray, node: IntArray, n: int, names: Sequence[str]) -> Iterator[tuple[str, FloatArray]]:
    width = len(names) + 1  # the last: all rarer ones
    known = codes >= 0
    flat = np.bincount(node[known] * width + codes[known], minlength=n * width).reshape(n, width)
    held = np.maximum(flat.sum(axis=1), 1)
    for k, name in enumerate(names):
        yield f"{name} share", np.asarray(flat[:, k] / held, dtype=np.float64)


def is_heavy(values: FloatArray) -> bool:
    """Whether a few values are so much larger than the rest that logarithms are to be taken."""
    sizes = np.abs(values[values != 0])
    return bool(len(sizes) and sizes.max() > HEAVY * np.median(sizes))


def signed_log(values: FloatArray) -> FloatArray:
    """sign(x) log(1 + |x|)."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))
