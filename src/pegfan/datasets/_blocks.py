"""What the kinds of columns share: a column of a node table, and the columns of the feature matrix made of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan._checks import BadInput
from pegfan.datasets._ids import blanks, is_text
from pegfan.datasets._table import MISSING_WORDS, Table

PLACEHOLDERS = ("?", "-", "--", "–", "—", ".", "*", "n.a.", "unknown", "missing", "none", "nil", "not available", "tbd")
"""Words, in small letters, that stand for no value among numbers and dates; among categories they are categories."""


@dataclass(frozen=True)
class Column:
    """A column of a node table; `extra` nodes without a row come last."""

    table: Table
    name: str
    extra: int = 0

    @cached_property
    def series(self) -> Any:
        """The cells."""
        return self.table.series(self.name)

    def where(self, row: Any) -> str:
        """The place of a row, for error messages."""
        return self.table.where(row)


class Block(NamedTuple):
    """Some columns of the feature matrix, with their names and how they were read."""

    values: Any
    names: list[str]
    how: str


class Unusable(Exception):
    """Why a column cannot be a feature."""


def gaps(series: Any, *, placeholders: bool = False) -> NDArray[np.bool_]:
    """Return where a column has no value, in whatever word it says so."""
    found = blanks(series, MISSING_WORDS)
    if placeholders and is_text(series):
        found |= np.asarray(series.str.strip().str.lower().isin(PLACEHOLDERS), dtype=bool)
    return found


def filled(lacking: int, missing: str, flag: str | None = None) -> str:
    """Say what stands for missing values of rows; nodes without a row have none at all, and are told elsewhere."""
    if not lacking:
        return ""
    return f", {lacking} missing: {'the mean' if missing == 'mean' else '0'}" + (f" and {flag!r}" if flag else "")


def require_all(column: Column, lacking: NDArray[np.bool_], what: str) -> None:
    """Refuse a column with gaps."""
    if lacking.any() or column.extra:
        where = column.where(lacking.argmax()) if lacking.any() else f"{column.extra} added nodes"
        raise BadInput(f"{where}: no {what} in column {column.name!r}; fill it in, or pass missing='mean' or 'zero'")
