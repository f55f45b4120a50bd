"""Node ids of any kind: brought to one kind, numbered, and compared between tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import IntArray
from pegfan._checks import BadInput
from pegfan.datasets._coded import Coded, Numberer
from pegfan.datasets._table import Table, shown

WHOLE_NUMBER = r"-?(?:0|[1-9]\d{0,17})"
LARGEST_EXACT = 2**53
"""From here on, a float no longer tells one integer from the next."""


class Ids:
    """Node ids as a Series, all of one kind: "int", "str", or "other" for any other hashable.

    Texts may be given as their numbers: the Series is then made where it is asked for.
    """

    def __init__(self, values: Any, kind: str, coded: Coded | None = None) -> None:
        self.kind, self.coded = kind, coded
        if coded is None:
            self.values = values

    @cached_property
    def values(self) -> Any:
        """The ids."""
        assert self.coded is not None
        return self.coded.texts.series(self.coded.codes)

    def __len__(self) -> int:
        return len(self.values if self.coded is None else self.coded.codes)


def is_text(series: Any) -> bool:
    """Whether a column holds texts and gaps only."""
    import pandas as pd

    if isinstance(series.dtype, pd.StringDtype):
        return True
    return bool(series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) == "string")


def is_number(series: Any) -> bool:
    """Whether a column has a type of numbers; booleans are none."""
    import pandas as pd

    types = pd.api.types
    return bool(types.is_numeric_dtype(series.dtype) and not types.is_bool_dtype(series.dtype))


def blanks(series: Any, words: Sequence[str] = ("",)) -> NDArray[np.bool_]:
    """Return where a column holds nothing, or one of the words for it."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":  # pandas takes long to say so
        return np.zeros(len(series), dtype=bool)
    gaps = np.array(series.isna(), dtype=bool)
    if is_text(series):
        gaps |= np.asarray(series.str.strip().isin(words), dtype=bool)
    return gaps


def blank_ids(table: Table, column: str) -> NDArray[np.bool_]:
    """Return where a column to be read as ids holds nothing."""
    coded = table.coded(column)
    if coded is None:
        return blanks(table.ids(column))
    blank = coded.texts.blank
    return blank[coded.codes] if blank.any() else np.zeros(table.size, dtype=bool)


def ids_of(table: Table, column: str) -> Ids:
    """Return the ids of a column of a table without blanks, all of one kind."""
    coded = table.coded(column)
    if coded is None or (coded.texts.ends_with_nul.any() and coded.texts.ends_with_nul[coded.codes].any()):
        return read_ids(table.ids(column), table)
    return Ids(None, "str", coded)


def read_ids(series: Any, table: Table) -> Ids:
    """Return the ids of a column without blanks, all of one kind."""
    import pandas as pd

    types = pd.api.types
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if series.dtype == object:
        series = _typed(series, table)
    if is_text(series):
        cut = np.asarray(series.str.endswith("\x00"), dtype=bool)
        if cut.any():  # NumPy's texts end where the last NUL characters begin
            row = int(cut.argmax())
            raise BadInput(
                f"{table.where(row)}: the id {series.iloc[row]!r} in column {series.name!r} ends with a NUL character; "
                "take it off"
            )
        return Ids(series, "str")
    if types.is_integer_dtype(series.dtype):
        if types.is_unsigned_integer_dtype(series.dtype) and len(series) and series.max() > np.iinfo(np.int64).max:
            return Ids(series.astype(object), "other")
        return Ids(series.astype(np.int64), "int")
    if types.is_float_dtype(series.dtype):
        return Ids(_whole(series, table), "int")
    return Ids(series.astype(object), "other")


def _whole(series: Any, table: Table) -> Any:
    values = series.to_numpy(dtype=np.float64)
    exact = np.abs(values) < LARGEST_EXACT
    good = exact & (values == np.floor(values))
    if not good.all():
        row = int(good.argmin())
        why = (
            "is not a node id; ids are whole numbers or texts"
            if exact[row]
            else "is too large to be told from its neighbours; write ids of this size as text, with a letter in them"
        )
        raise BadInput(f"{table.where(row)}: {float(values[row])!r} in column {series.name!r} {why}")
    return series.astype(np.int64)


def _typed(series: Any, table: Table) -> Any:
    """Give a column of Python objects the type that they share; integers among texts become text."""
    kinds = {type(value) for value in series} or {str}

    def all_are(*allowed: type) -> bool:
        return bool not in kinds and all(issubclass(kind, allowed) for kind in kinds)

    if all_are(int, np.integer):
        fits = all(abs(int(value)) <= np.iinfo(np.int64).max for value in series)
        return series.astype(np.int64) if fits else series
    if all_are(int, float, np.integer, np.floating):
        return series.astype(np.float64)
    if all_are(str, int, np.integer):
        text = series.astype("str")
        _require_one_spelling(series, text, table)
        return text
    for row, value in enumerate(series):
        try:
            hash(value)
        except TypeError:
            raise BadInput(f"{table.where(row)}: {shown(value)} cannot be a node id; ids must be hashable") from None
    return series


def _require_one_spelling(series: Any, text: Any, table: Table) -> None:
    """Refuse a column in which both 1 and "1" occur."""
    words = {value for value in series if isinstance(value, str)}
    for row, (value, word) in enumerate(zip(series, text, strict=True)):
        if not isinstance(value, str) and word in words:
            raise BadInput(
                f"{table.where(row)}: column {series.name!r} holds both the number {word} and the text {word!r}; "
                "make them one kind, for example with .astype(str)"
            )


def agree(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Bring two columns to one kind: text that is all integers becomes integers, else integers become text."""
    kinds = {first.kind, second.kind}
    if len(kinds) == 1:
        return first, second
    if len(first) == 0:
        return Ids(second.values[:0], second.kind), second
    if len(second) == 0:
        return first, Ids(first.values[:0], first.kind)
    if kinds != {"int", "str"}:
        return Ids(first.values.astype(object), "other"), Ids(second.values.astype(object), "other")
    text = first if first.kind == "str" else second
    numeric = text.values.str.fullmatch(WHOLE_NUMBER).all() and not (text.values == "-0").any()
    dtype, kind = (np.int64, "int") if numeric else ("str", "str")
    return Ids(first.values.astype(dtype), kind), Ids(second.values.astype(dtype), kind)


def number_ids(first: Ids, second: Ids) -> tuple[IntArray, Ids]:
    """Return the place of every id among the distinct ids, (m, 2), and these, sorted where they sort."""
    import pandas as pd

    if first.kind == second.kind == "str":
        return _number_texts(first, second)
    codes = np.empty((2, len(first)), dtype=np.int64).T  # every end by itself
    if first.kind == "int" and len(codes):
        a, b = first.values.to_numpy(), second.values.to_numpy()
        low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
        if high - low < 4 * len(a) + 1000:  # near enough to 0..n-1 for a table in place of hashing
            seen = np.zeros(high - low + 1, dtype=bool)
            seen[a - low] = seen[b - low] = True
            rank = np.cumsum(seen) - 1
            codes[:, 0], codes[:, 1] = rank[a - low], rank[b - low]
            return codes, Ids(pd.Series(np.flatnonzero(seen) + low), "int")
    both = pd.concat([first.values, second.values], ignore_index=True)
    flat, distinct = pd.factorize(both, sort=first.kind != "other")
    codes[:, 0], codes[:, 1] = flat[: len(codes)], flat[len(codes) :]
    return codes, Ids(pd.Series(distinct), first.kind)


def _number_texts(first: Ids, second: Ids) -> tuple[NDArray[Any], Ids]:
    """Return the places of texts among the distinct ones, and these, sorted."""
    one, other = first.coded, second.coded
    if len(first) != len(second):
        raise ValueError(f"{len(first)} sources and {len(second)} targets")
    if one is None or other is None or one.texts is not other.texts:
        numberer, codes = Numberer(), np.empty((2, len(first)), np.int32)
        for ids, own in zip((first, second), codes, strict=True):
            numberer.number_series(ids.values, own)
        texts = numberer.texts().in_order(list(codes))
    else:
        texts, codes = one.texts, _together(one.codes, other.codes)
        if texts.columns > 2 or one is other:  # other columns have texts that no end has
            used = np.zeros(len(texts), dtype=bool)
            used[one.codes] = used[other.codes] = True
            order = np.flatnonzero(used)
            rank = np.empty(len(texts), np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            return rank[codes.T], Ids(None, "str", Coded(order, texts))
    return codes.T, Ids(None, "str", Coded(np.arange(len(texts)), texts))


def _together(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Two arrays as the rows of one: without a copy where they are that already."""
    base = one.base
    if base is not None and base is other.base and base.ndim == 2 and len(base) == 2:
        both = base[:, : len(one)]
        if np.shares_memory(both[0], one) and np.shares_memory(both[1], other) and len(one) == len(other):
            return both
    return np.stack([one, other])


def share_found(ids: Ids, column: Ids) -> float:
    """Return the share of the ids that the column holds."""
    ids, column = agree(ids, column)
    return float(are_in(ids.values, column.values).mean()) if len(ids) else 0.0


def are_in(values: Any, among: Any) -> NDArray[np.bool_]:
    """Return which values are among others; pandas goes through texts one by one, Arrow does not."""
    import pyarrow.compute as arrow

    if not (is_text(values) and is_text(among)):
        return np.asarray(values.isin(among), dtype=bool)
    one, other = (as_arrow(series) for series in (values, among))
    if len(other) > 4 * len(one):  # a table is made of the texts to look among: better of the few that can be found
        other = other.filter(arrow.is_in(other, value_set=one))
    return np.asarray(arrow.is_in(one, value_set=other).to_numpy(zero_copy_only=False), dtype=bool)


def as_arrow(texts: Any) -> Any:
    """Return a column of texts as an Arrow array, without making an object of each where they are in Arrow already."""
    import pyarrow as pa

    held = getattr(texts.array, "_pa_array", None)  # pandas holds texts so, if it can
    if held is None:
        return pa.array(texts.to_numpy(dtype=object), pa.large_string())
    whole = held.cast(pa.large_string()).combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def shares_found(ids: Ids, nodes: Table) -> dict[str, float]:
    """Return the share of the ids that each column holds which could be ids: all different, none missing."""
    found = {}
    for column in nodes.columns:
        series = nodes.series(column)
        if series.dtype.kind not in "iuO" or len(series) == 0:
            continue
        try:
            if not blanks(series).any() and not series.duplicated().any():
                found[column] = share_found(ids, read_ids(series, nodes))
        except (TypeError, ValueError):  # lists, or numbers among texts: no ids
            continue
    return found


_SPELLINGS: dict[str, Callable[[Any], Any]] = {
    "white space around them": lambda texts: texts.str.strip(),
    "leading zeros": lambda texts: texts.str.replace(r"^(-?)0+(?=\d)", r"\1", regex=True),
    "a decimal part of zeros": lambda texts: texts.str.replace(r"^(-?\d+)[.,]0+$", r"\1", regex=True),
    "the case of letters": lambda texts: texts.str.lower(),
}


def spelling_hint(strange: Ids, from_table: Table, ids: Ids, to_table: Table) -> str | None:
    """Say what keeps ids of one table from being ids of another, if it is how they are written."""
    if "other" in (strange.kind, ids.kind) or len(strange) == 0:
        return None
    one, other = (found.values.astype("str").reset_index(drop=True) for found in (strange, ids))
    rules = [*_SPELLINGS.items(), ("all that", _as_one_spells)]
    alike = are_in(one, other)
    for words, rule in rules:
        spelled, among = rule(one), rule(other)
        found = are_in(spelled, among) & ~alike
        if found.any():
            row = int(found.argmax())
            twin = other[int(np.asarray(among == spelled[row]).argmax())]
            return (
                f"{from_table.name} has {shown(one[row])} where {to_table.name} has {shown(twin)}, and ids are "
                f"compared as they are written: {int(found.sum()):,} would match without "
                f"{', '.join(_SPELLINGS) if rule is _as_one_spells else words}; write them alike in both"
            )
    return None


def _as_one_spells(texts: Any) -> Any:
    for rule in _SPELLINGS.values():
        texts = rule(texts)
    return texts


def name_array(names: list[Any]) -> NDArray[Any]:
    """Return names as an array: of strings if they are, else of objects."""
    # NumPy gives every string the room of the longest: one very long name among many would exhaust the memory.
    if all(isinstance(name, str) for name in names) and max(map(len, names), default=0) <= 256:
        return np.array(names, dtype=np.str_)
    return np.fromiter(names, dtype=object, count=len(names))
