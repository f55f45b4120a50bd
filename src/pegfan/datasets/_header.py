"""Whether the first line of a text file names its columns: told by what its cells are.

The cells alone often decide: a usual name, or a text above numbers. Where they do not, as in a table of nothing but
texts, a header's cells are not among the values below them, nor among the ids of the other table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pegfan.datasets._ids import are_in
from pegfan.datasets._table import MISSING_WORDS, Table, shown

_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(?::\d{2}.*)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_BOOLEANS = ("true", "false")
_RARE = 0.1
"""Of the ends of edges, the share that occur once; below it, two such in the first line are its own words."""


def is_number(cell: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _kind(cell: str) -> str:
    text = cell.strip()
    if is_number(text) or _DECIMAL_COMMA.fullmatch(text):
        return "number"
    if _DATE.fullmatch(text):
        return "date"
    return "boolean" if text.lower() in _BOOLEANS else "text"


def has_header(rows: Sequence[Sequence[str]], known_names: frozenset[str]) -> bool | None:
    """Say whether the first of some rows is a header; None where its cells could be either."""
    first, rest = rows[0], rows[1:]
    columns = [
        [row[k] for row in rest if k < len(row) and row[k].strip() not in MISSING_WORDS] for k in range(len(first))
    ]
    texts = new = True
    for cell, column in zip(first, columns, strict=True):
        kinds = {_kind(below) for below in column}
        if len(kinds) == 1 and kinds != {"text"} and cell.strip() not in MISSING_WORDS and _kind(cell) not in kinds:
            return True
        new = new and cell not in column
        texts = texts and _kind(cell) == "text"
    if new and any(cell.strip().lower() in known_names for cell in first):
        return True
    return None if new and texts else False


def _lines(table: Table) -> tuple[list[str], Any]:
    """Return the cells of the first line, and the rows below it."""
    if table.header:
        return table.columns, table.frame
    return [str(cell) for cell in table.frame.iloc[0]], table.frame.iloc[1:]


def edges_have_header(
    edges: Table, ends: tuple[str, str], nodes: Table | None, id_column: str | None
) -> tuple[bool, str]:
    """Say whether the first line of a table of edges is a header, and why; `id_column` of the nodes holds the ends.

    If it is none, the reason is given where nothing tells.
    """
    import pandas as pd

    cells, below = _lines(edges)
    places = [edges.columns.index(column) for column in ends]
    two = [cells[k] for k in places]
    both = pd.concat([below.iloc[:, k].astype("str") for k in places], ignore_index=True)
    if both.isin(two).any() or len(both) == 0:
        return False, ""
    words = " and ".join(map(shown, two))
    if nodes is not None and id_column is not None:
        _, rows = _lines(nodes) if nodes.other is not None else ([], nodes.frame)
        ids = rows[id_column].astype("str")
        if ids.isin(two).any():
            return False, ""
        if are_in(both, ids).mean() >= 0.5:
            return True, f"{words} are not among the ids of {nodes.name}, as those below are"
    if not any(map(_has_digit, two)) and both.iloc[:1000].map(_has_digit).all():
        return True, f"{words} have no digits, as all below have"
    if (both.map(both.value_counts()) == 1).mean() < _RARE:
        return True, f"{words} occur nowhere below, where ids recur"
    return False, f"nothing tells whether the first line, {words}, names its columns, so that it was read as an edge"


def nodes_have_header(nodes: Table, ends: Any) -> tuple[bool, str]:
    """Say whether the first line of a table of nodes is a header, and why; `ends` are those of the edges, as texts."""
    cells, below = _lines(nodes)
    if len(below) == 0:
        return nodes.header, ""
    columns = [below.iloc[:, k].astype("str") for k in range(len(cells))]
    if any(column.isin([cell]).any() for cell, column in zip(cells, columns, strict=True)):
        return False, ""
    if ends.isin(cells).any():
        return False, ""
    return True, f"{shown(cells[0])} is not an end of any edge, and no cell occurs again below it"


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))
