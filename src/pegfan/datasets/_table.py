"""What the readers share: tables that know where their rows come from, the options, and the report."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, TypedDict

import numpy as np

from pegfan._checks import BadInput, check_choice
from pegfan.datasets._coded import Cells, Coded
from pegfan.datasets._schema import Schema

_KINDS = ("number", "log", "category", "date", "day first", "month first", "words", "tokens", "vector")
MISSING, UNKNOWN = ("mean", "zero", "error"), ("error", "add", "drop")
LABEL_KINDS = ("classes", "numbers")
DUPLICATES = ("max", "min", "sum", "mean", "count", "error")
_SHOWN = 5
MISSING_WORDS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
"""Texts that say that there is no value, in a column of labels or features; an id may be any text."""


@dataclass
class ReadReport:
    """What was guessed, changed and left out on the way from tables to a graph; ``print`` it.

    Attributes
    ----------
    files : dict
        For each file, what it was read as.
    columns : dict
        For each role (edges, weight, id, label, splits, positions), the column that plays it, and why.
    features : dict
        For each feature column, how it was read.
    dropped : dict
        For each column that was left out, why.
    unknown : int
        Distinct ids of the edge list that the nodes do not have; they were added or their edges dropped.
    lost : int
        Rows of edges that were dropped with them.
    merged, self_loops : int
        Repeated edges that were merged into one; self loops, which are kept.
    filled, strange : list of str
        Columns that a schema has and the tables lack, which count as missing; and columns that the schema lacks.
    id_column : str or None
        The column of ids in the table of nodes; None if they are row numbers, or there is no such table.
    numbered : bool
        Whether nodes are known by their place in the file only: there is no column of ids, or the file holds arrays.
    notes : list of str
        Anything else that a careful user would want to know.
    schema : Schema
        The rules by which columns were read: given to the reader, it reads other tables alike.
    """

    files: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    features: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    unknown: int = 0
    lost: int = 0
    merged: int = 0
    self_loops: int = 0
    filled: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    id_column: str | None = None
    numbered: bool = False
    notes: list[str] = field(default_factory=list)
    schema: Schema = field(default_factory=Schema, repr=False)

    def __str__(self) -> str:
        counts = f"{self.merged} repeated merged, {self.self_loops} self loops, {self.unknown} unknown ids"
        lines = [*(("read", f"{file}: {how}") for file, how in self.files.items()), *self.columns.items()]
        lines += [("feature", f"{column}: {how}") for column, how in _shortened(self.features)]
        if not self.features:
            lines.append(("feature", "none"))
        lines += [("dropped", f"{column}: {why}") for column, why in _shortened(self.dropped)]
        lines += [("counts", counts), *(("note", note) for note in self.notes)]
        return "\n".join(f"{head:<10}{text}" for head, text in lines)


def _shortened(entries: dict[str, str], most: int = 12, names: int = 50) -> list[tuple[str, str]]:
    """Return the entries, those that say the same on one line if there are many."""
    if len(entries) <= most:
        return list(entries.items())
    alike: dict[str, list[str]] = {}
    for name, words in entries.items():
        alike.setdefault(words, []).append(name)
    return [
        (", ".join(group[:names]) + (f" and {len(group) - names:,} more" if len(group) > names else ""), words)
        for words, group in alike.items()
    ]


class TableOptions(TypedDict, total=False):
    """What :func:`~pegfan.datasets.graph_from_tables` and :func:`~pegfan.datasets.read_graph` may be told."""

    id: str | Literal[False] | None
    label: str | Literal[False] | None
    split: str | Sequence[str] | Literal[False] | None
    features: str | Sequence[str] | Mapping[str, str] | Literal[False] | None
    source: str | None
    target: str | None
    weight: str | Literal[False] | None
    directed: bool | None
    duplicates: str
    unknown: str
    missing: str
    categories_max: int
    positions: Sequence[str] | None
    metric: str | None
    label_kind: Literal["classes", "numbers"] | None
    edge_columns: str | Sequence[str] | Literal[False] | None
    bipartite: bool | None
    schema: Schema | None


@dataclass(frozen=True)
class Options:
    """What the caller decides; None leaves it to a guess, False says that there is none."""

    id: Any = None
    label: Any = None
    split: Any = None
    features: Any = None
    source: Any = None
    target: Any = None
    weight: Any = None
    directed: bool | None = None
    duplicates: str = "max"
    unknown: str = "error"
    missing: str = "mean"
    categories_max: int = 50
    positions: Sequence[str] | None = None
    metric: str | None = None
    label_kind: str | None = None
    edge_columns: Any = None
    bipartite: bool | None = None
    schema: Schema | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the options of a call, or say which one may have been meant."""
        unknown = options.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            name = min(unknown)
            raise TypeError(f"there is no option {name!r}; {suggestion(name, cls.__dataclass_fields__)}")
        return cls(**options)

    def __post_init__(self) -> None:
        if isinstance(self.edge_columns, str):  # as the command line writes several
            names = [name.strip() for name in self.edge_columns.split(",") if name.strip()]
            object.__setattr__(self, "edge_columns", False if names == ["none"] else names)
        for name, allowed in (("unknown", UNKNOWN), ("missing", MISSING), ("duplicates", DUPLICATES)):
            check_choice(getattr(self, name), name, allowed)
        if self.label_kind is not None:
            check_choice(self.label_kind, "label_kind", LABEL_KINDS)
        if isinstance(self.categories_max, bool) or not isinstance(self.categories_max, int) or self.categories_max < 2:
            raise ValueError(f"categories_max must be a whole number from 2 on, got {self.categories_max!r}")
        if isinstance(self.features, Mapping):
            for column, kind in self.features.items():
                check_choice(kind, f"features[{column!r}]", _KINDS)


@dataclass(frozen=True)
class Table:
    """A data frame, or the cells of a text file; what to call it, and where its rows come from."""

    data: Any
    name: str
    line_of: Callable[[int], int] | None = None
    header: bool = True  # whether the columns have names of their own
    other: Callable[[], tuple[Table, str]] | None = (
        None  # the other reading, where the first line may be a header or not
    )
    verbatim: Callable[[str], Any] | None = None  # a column of a text file as the texts that it holds
    stem: str | None = None  # what to call its kind of edges, where that is not by its name

    @property
    def frame(self) -> Any:
        """All columns as a data frame; of cells, it has to be made."""
        return self.data.frame if isinstance(self.data, Cells) else self.data

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    @cached_property
    def _names(self) -> list[str]:
        return list(self.data.columns)

    @cached_property
    def _lower(self) -> dict[str, str]:
        return _by_lower_case(self._names)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.data)

    def series(self, column: str, most: int | None = None) -> Any:
        """Return a column, or its first rows."""
        if isinstance(self.data, Cells):
            return self.data.series(column, most)
        return self.data[column] if most is None else self.data[column].iloc[:most]

    def coded(self, column: str) -> Coded | None:
        """Return a column of texts as numbers, if it was read as such."""
        return self.data.coded.get(column) if isinstance(self.data, Cells) else None

    def where(self, row: Any) -> str:
        """Return the place of a row, for error messages."""
        row = int(row)
        return f"{self.name}, row {row}" if self.line_of is None else f"{self.name}, line {self.line_of(row)}"

    def find(self, column: Any, role: str) -> str:
        """Return the column that the caller named, or say which one may have been meant."""
        name = str(column)
        if name in self.data.columns:
            return name
        raise BadInput(f"{self.name} has no {role} column {name!r}; {suggestion(name, self.columns)}")

    def ids(self, column: str, most: int | None = None) -> Any:
        """Return a column to be read as ids, or its first rows.

        What a text file holds in other than texts and whole numbers is given as text.
        """
        series = self.series(column, most)
        if self.verbatim is None or series.dtype.kind in "iuO":
            return series
        return self.verbatim(column).iloc[:most]

    def named(self, *names: str) -> list[str]:
        """Return the columns that bear one of the names, whatever their case, in the order of the names."""
        return [self._lower[name] for name in names if name in self._lower]


def named_among(columns: Sequence[str], *names: str) -> list[str]:
    """Return those of some columns that bear one of the names, whatever their case, in the order of the names."""
    lower = _by_lower_case(columns)
    return [lower[name] for name in names if name in lower]


def _by_lower_case(columns: Sequence[str]) -> dict[str, str]:
    return {column.strip().lower(): column for column in reversed(columns)}


def unique_names(given: Iterable[str]) -> list[str]:
    """Return names, those that occurred before with a number at their end.

    Examples
    --------
    >>> unique_names(["a", "a", "b", "a", "a.1"])
    ['a', 'a.1', 'b', 'a.2', 'a.1.1']
    """
    taken: dict[str, int] = {}  # and how many more there were: names that all are the same must not take for ever
    for name in given:
        unique = name
        while unique in taken:
            taken[name] += 1
            unique = f"{name}.{taken[name]}"
        taken[unique] = 0
    return list(taken)


def nearest(name: str, choices: Iterable[Any]) -> str | None:
    """Return the choice that comes nearest to the name; None if none is near."""
    every = {str(choice).lower(): str(choice) for choice in reversed([*choices])}
    return next((every[near] for near in difflib.get_close_matches(name.lower(), every, n=1)), None)


def suggestion(name: str, choices: Iterable[Any], there: str = "it has") -> str:
    """Say which of the choices comes nearest to the name, and which there are."""
    every = [str(choice) for choice in choices]
    near = nearest(name, every)
    shown = ", ".join(map(repr, every[:12])) + (f" and {len(every) - 12} more" if len(every) > 12 else "")
    return f"{there} {shown}" if near is None else f"did you mean {near!r}? {there.capitalize()} {shown}"


def plain(value: Any) -> Any:
    """Return a Python object in place of a NumPy scalar, whose repr would show its type."""
    return value.item() if isinstance(value, np.generic) else value


def shown(value: Any) -> str:
    """Return a value for an error message, a long one cut short."""
    text = repr(plain(value))
    return text if len(text) <= 80 else f"{text[:80]}..."


def few(values: Any) -> str:
    """Show the first few values."""
    return ", ".join(map(shown, values[:_SHOWN])) + (", ..." if len(values) > _SHOWN else "")
