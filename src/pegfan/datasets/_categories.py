"""Columns of categories: one column of the feature matrix per value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._arrays import IntArray
from pegfan.datasets._blocks import Block, Column, Unusable, gaps
from pegfan.datasets._ids import is_text
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import few, plain

OTHER = "(other)"
_FEW = 20
"""Texts up to this many are categories even where most differ."""


def categories(values: Any) -> tuple[list[Any], IntArray]:
    """Return the distinct values, sorted, and the place of each value among them; unlike kinds become text."""
    import pandas as pd

    if isinstance(getattr(values, "dtype", None), pd.StringDtype):
        codes, distinct = pd.factorize(values)
        names = sorted(distinct)
        rank = np.empty(len(names), np.int64)
        rank[np.argsort(np.array(distinct, dtype=object), kind="stable")] = np.arange(len(names))
        return names, rank[codes] if names else codes
    cells = [plain(value) for value in values]
    if len({type(cell) for cell in cells}) > 1 or any(isinstance(cell, dict) for cell in cells[:1]):
        cells = [str(cell) for cell in cells]
    try:
        distinct = sorted(set(cells))
    except TypeError:
        cells = [str(cell) for cell in cells]
        distinct = sorted(set(cells))
    number = {name: k for k, name in enumerate(distinct)}
    return distinct, np.fromiter((number[cell] for cell in cells), dtype=np.int64, count=len(cells))


def _distinct(series: Any) -> tuple[IntArray, list[Any]]:
    """Return the place of every cell among those that differ, and these; of other than texts, all of them."""
    import pandas as pd

    if isinstance(series.dtype, pd.StringDtype):
        codes, distinct = pd.factorize(series)
        return codes.astype(np.int64), list(distinct)
    return np.arange(len(series)), list(series)


def _text(cell: Any) -> str:
    """The category of a cell; a whole number is the same category in a column of floats, and so is a text in spaces."""
    value = plain(cell)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def learn_categories(column: Column, most: int, *, asked: bool) -> Rule:
    """Return the categories to tell apart: all, or the most frequent if there are more than `most`."""
    present = column.series[~gaps(column.series)]
    try:
        found, codes = categories(present.str.strip() if is_text(present) else present)
    except TypeError:
        raise Unusable("its values cannot be categories") from None
    if not found:
        raise Unusable("every value is missing")
    if not asked:
        if len(found) == 1 and len(present) == len(column.series) > 1:
            raise Unusable(f"constant: every value is {found[0]!r}")
        if isinstance(found[0], str) and len(found) == len(present) > 1:
            raise Unusable("texts that all differ: names, not categories")
        if isinstance(found[0], str) and 2 * len(found) > len(present) > _FEW and len(found) > most:
            raise Unusable(f"texts of which {len(found) / len(present):.0%} differ: names, not categories")
    texts = list(map(_text, found))
    if len(found) <= most:
        return Rule("category", {"categories": texts})
    counts = np.bincount(codes, minlength=len(found))
    frequent = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    return Rule("category", {"categories": [texts[k] for k in frequent], "others": len(found) - len(frequent)})


def read_categories(column: Column, rule: Rule) -> Block:
    """One column per category; a missing value sets none of them."""
    series, names = column.series, rule.facts["categories"]
    rows = np.flatnonzero(~gaps(series))
    place: dict[str, int] = {}
    for k, name in enumerate(names):
        place.setdefault(name.strip(), k)  # schemas of earlier versions may have a category twice, once in spaces
    found, distinct = _distinct(series.iloc[rows])
    texts = [_text(cell) for cell in distinct]
    others = rule.facts.get("others", 0)
    of_each = np.array([place.get(text, len(names) if others else -1) for text in texts], dtype=np.int64)
    codes: IntArray = of_each[found]
    kept, width = codes >= 0, len(names) + bool(others)
    block = csr_array((np.ones(int(kept.sum())), (rows[kept], codes[kept])), shape=(len(series) + column.extra, width))
    booleans = set(names) <= {"True", "False"}
    how = "boolean" if booleans else f"{len(names)} categories" + (f" and {others} others in one" if others else "")
    lacking = len(series) - len(rows)
    how += f", {lacking} missing" if lacking else ""
    new = Counter(texts[k] for k in found[codes < 0].tolist())
    if new:
        how += f", {new.total()} in new categories ({few(list(new))})"
    return Block(block, [f"{column.name}={name}" for name in [*names, *([OTHER] if others else [])]], how)
