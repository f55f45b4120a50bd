"""Columns of categories: one column of the feature matrix per value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._arrays import IntArray
from pegfan.datasets._blocks import Block, Column, Unusable, gaps
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import few, plain

OTHER = "(other)"
_FEW = 20
"""Texts up to this many are categories even where most differ."""


def categories(values: Any) -> tuple[list[Any], IntArray]:
    """Return the distinct values, sorted, and the place of each value among them; unlike kinds become text."""
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


def _text(cell: Any) -> str:
    """The category of a cell; a whole number is the same category in a column of floats."""
    value = plain(cell)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def learn_categories(column: Column, most: int, *, asked: bool) -> Rule:
    """Return the categories to tell apart: all, or the most frequent if there are more than `most`."""
    present = column.series[~gaps(column.series)]
    try:
        found, codes = categories(present)
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
    place = {name: k for k, name in enumerate(names)}
    texts = [_text(cell) for cell in series.iloc[rows]]
    others = rule.facts.get("others", 0)
    codes: IntArray = np.array([place.get(text, len(names) if others else -1) for text in texts], dtype=np.int64)
    kept, width = codes >= 0, len(names) + bool(others)
    block = csr_array((np.ones(int(kept.sum())), (rows[kept], codes[kept])), shape=(len(series) + column.extra, width))
    booleans = set(names) <= {"True", "False"}
    how = "boolean" if booleans else f"{len(names)} categories" + (f" and {others} others in one" if others else "")
    lacking = len(series) - len(rows)
    how += f", {lacking} missing" if lacking else ""
    new = Counter(text for text, code in zip(texts, codes.tolist(), strict=True) if code < 0)
    if new:
        how += f", {new.total()} in new categories ({few(list(new))})"
    return Block(block, [f"{column.name}={name}" for name in [*names, *([OTHER] if others else [])]], how)
