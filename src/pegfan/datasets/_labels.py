"""The columns of a node table that hold labels and splits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput, check_class_names
from pegfan.datasets._blocks import gaps
from pegfan.datasets._categories import categories
from pegfan.datasets._ids import LARGEST_EXACT, is_number, is_text, name_array
from pegfan.datasets._table import Options, ReadReport, Table, few, shown
from pegfan.graph import Split
from pegfan.metrics import amount

LABEL_NAMES = ("label", "labels", "class", "y", "target", "kind")
_SPLIT_NAME = re.compile(r"split[_ .-]?(\d*)", re.IGNORECASE)
_SPLIT_WORDS = {"training": "train", "valid": "val", "validation": "val", **{part: part for part in Split._fields}}
_ALL_DIFFERENT = 20  # a label column in which more values than this all differ is a column of names
_MANY = 20  # numbers of which no more than this differ are classes
_DIFFERENT = 0.05  # and so are whole numbers of which no larger share differs
_NEARLY = 0.9  # the share of numbers from which on words among them are mistakes
_NUMBER_NAMES = ("label", "labels", "target")  # a column "y" of numbers may be a place on a map


_MASK_NAME = re.compile(r"(train(?:ing)?|val(?:id(?:ation)?)?|test)[_ .-]?masks?[_ .-]?(\d*)", re.IGNORECASE)
_MASK_WORDS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def pick_masks(nodes: Table, options: Options) -> list[dict[str, str]]:
    """Return the columns of splits that are given as masks, by their names: for each split, those of its parts.

    What a model was trained on as an ordinary column stays one.
    """
    if options.split is not None:
        return []
    found: dict[int, dict[str, str]] = {}
    for column in nodes.columns:
        match = _MASK_NAME.fullmatch(column.strip())
        used = options.schema is not None and column in options.schema.nodes
        if match and not used and _mask(nodes, column) is not None:
            part = match[1].lower()
            found.setdefault(int(match[2] or -1), {})[_SPLIT_WORDS.get(part, part)] = column
    return [found[place] for place in sorted(found) if "train" in found[place]]


def read_masks(nodes: Table, masks: Mapping[str, str]) -> Split:
    """Return the split that columns of truth values describe; a part without a column is empty."""
    parts = {part: _mask(nodes, column) for part, column in masks.items()}
    seen: dict[str, Any] = {}
    for part, mask in parts.items():
        for other, before in seen.items():
            if (both := mask & before).any():
                raise BadInput(
                    f"{nodes.where(both.argmax())}: the node is in {masks[other]!r} and in {masks[part]!r}; parts of a "
                    "split share no nodes (split=False makes them ordinary columns)"
                )
        seen[part] = mask
    nothing = np.empty(0, np.int64)
    return Split(*(np.flatnonzero(parts[part]) if part in parts else nothing for part in Split._fields))


def _mask(nodes: Table, column: str) -> Any:
    """Where a column says true; None if it holds anything but truth values and blanks, or no value."""
    series = nodes.series(column)
    present = ~gaps(series)
    values = series.astype("str").str.strip().str.lower().map(_MASK_WORDS)
    if not present.any() or values[present].isna().any():
        return None
    return present & np.asarray(values.where(present, False), dtype=bool)


def pick_splits(nodes: Table, options: Options) -> list[str]:
    """Return the columns with splits, given or by their names."""
    if options.split is False:
        return []
    if options.split is None:
        matches = {column: _SPLIT_NAME.fullmatch(column.strip()) for column in nodes.columns}
        found = {column: int(match[1] or -1) for column, match in matches.items() if match}
        return sorted(found, key=lambda column: found[column])
    given = [options.split] if isinstance(options.split, str) else options.split
    return [nodes.find(column, "split") for column in given]


def read_split(nodes: Table, column: str) -> Split:
    """Return the split that a column of words describes."""
    series = nodes.series(column)
    present = ~gaps(series)
    words = series.astype("str").str.strip()
    parts = words.str.lower().map(_SPLIT_WORDS)
    strange = present & np.asarray(parts.isna(), dtype=bool)
    if strange.any():
        every = list(dict.fromkeys(words[strange]))
        raise BadInput(
            f"{nodes.where(strange.argmax())}: split column {column!r} holds {few(every)}; it may hold train, "
            "val (or valid, validation), test and blanks (split=False makes it an ordinary column)"
        )
    if not present.any():
        raise BadInput(f"{nodes.name}: split column {column!r} is empty; fill it, or pass split=False")
    return Split(*(np.flatnonzero(present & np.asarray(parts == part, dtype=bool)) for part in Split._fields))


class NoLabels(BadInput):
    """The column of labels that was asked for is not there, or is empty."""


def pick_label(nodes: Table, options: Options, report: ReadReport) -> tuple[str | None, bool]:
    """Return the column with the labels, given or by its name and content, and whether it holds numbers to predict."""
    if options.label is False:
        report.columns["label"] = "none (as given)"
        return None, False
    if options.label is not None:
        try:
            column = nodes.find(options.label, "label")
        except ValueError as error:
            raise NoLabels(str(error)) from None
        report.columns["label"] = f"{column!r} (as given)"
        return column, _are_numbers(nodes.series(column), options.label_kind)
    named = nodes.named(*LABEL_NAMES)
    for column in named:
        series = nodes.series(column)
        numeric = _are_numbers(series, options.label_kind) and (
            options.label_kind is not None or column.strip().lower() in _NUMBER_NAMES
        )
        if numeric or _class_problem(series) is None:
            report.columns["label"] = f"{column!r} (by name)"
            return column, numeric
    report.columns["label"] = "none" + "".join(f"; {column!r} does not hold classes" for column in named)
    return None, False


def _are_numbers(series: Any, asked: str | None) -> bool:
    """Whether a column of labels holds numbers to predict, not classes."""
    if asked is not None or not is_number(series) or series.dtype.kind == "b":
        return asked == "numbers"
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    values = values[np.isfinite(values)]
    distinct = np.unique(values)
    if len(distinct) <= _MANY:
        return False
    return bool((distinct != np.floor(distinct)).any() or len(distinct) > _DIFFERENT * len(values))


def read_targets(nodes: Table, column: str, extra: int, options: Options) -> tuple[FloatArray, str]:
    """Return the numbers to predict, NaN where there is none, and what to say of them."""
    import pandas as pd

    series = nodes.series(column)
    absent = gaps(series, placeholders=True)
    if absent.all():
        raise NoLabels(
            f"{nodes.name}: every number in column {column!r} is missing; fill some in, or pass label=False for a "
            "graph without labels"
        )
    known = series if is_number(series) else pd.to_numeric(series.where(~absent), errors="coerce")
    values = known.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~absent & ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise BadInput(
            f"{nodes.where(row)}: {shown(series.iloc[row])} in label column {column!r} is not a finite number; correct "
            "it, leave it blank, or pass label_kind='classes'"
        )
    values = np.append(np.where(absent, np.nan, values), np.full(extra, np.nan))
    present = values[~np.isnan(values)]
    how = "" if options.label_kind else "; label_kind='classes' reads classes"
    low, high = amount(present.min()), amount(present.max())
    words = (
        f": numbers to predict, {len(np.unique(present)):,} different ones from {low} to {high}, "
        f"{len(values) - len(present)} of {len(values)} nodes without{how}"
    )
    return values, words


def _unlabelled(series: Any) -> NDArray[np.bool_]:
    absent = gaps(series)
    if is_number(series) and set(series[~absent].unique()) != {-1, 1}:  # -1 and 1 are the classes of a binary problem
        absent |= np.asarray((series == -1).fillna(False), dtype=bool)
    return absent


def _class_problem(series: Any) -> tuple[int, str] | None:
    """Return a row and what about it shows that this column does not hold classes."""
    import pandas as pd

    present = ~_unlabelled(series)
    first = int(present.argmax()) if len(present) else 0
    if pd.api.types.is_datetime64_any_dtype(series.dtype) or pd.api.types.is_timedelta64_dtype(series.dtype):
        return first, "holds dates or times, not classes"
    if is_number(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        odd = present & ~((values == np.floor(values)) & (np.abs(values) < LARGEST_EXACT))
        if odd.any():
            row = int(odd.argmax())
            return row, (
                f"holds {float(values[row])!r}; labels are classes: whole numbers or texts (label_kind='numbers' reads "
                "numbers to predict)"
            )
    try:
        distinct = series[present].nunique()
    except TypeError:
        return first, "holds lists, not classes"
    if distinct == present.sum() > _ALL_DIFFERENT:
        return first, f"holds {distinct} values that all differ: names, not classes"
    return None


def read_labels(nodes: Table, column: str, kind: str | None = None) -> tuple[IntArray, NDArray[Any] | None]:
    """Return class numbers, -1 where there is none, and the names of the classes if they are not 0..k-1."""
    series = nodes.series(column)
    missing = _unlabelled(series)
    if missing.all():
        raise NoLabels(
            f"{nodes.name}: every label in column {column!r} is missing; fill some in, or pass label=False for a graph "
            "without labels"
        )
    if kind is None:
        _require_no_numbers(nodes, column, ~missing)
    problem = _class_problem(series)
    if problem is not None:
        raise BadInput(f"{nodes.where(problem[0])}: label column {column!r} {problem[1]}")
    codes = np.full(len(series), -1)
    if is_number(series) and (odd := _oddly_written(nodes, column, ~missing)) is not None:
        series = odd
    if is_number(series):
        names, codes[~missing] = np.unique(series[~missing].to_numpy(dtype=np.int64), return_inverse=True)
        return codes, None if np.array_equal(names, np.arange(len(names))) else names
    present = series[~missing]
    distinct, codes[~missing] = categories(present.str.strip() if is_text(present) else present)
    try:
        check_class_names(distinct)
    except ValueError as error:
        raise BadInput(f"{nodes.name}: in label column {column!r} {error}, or pass label=False") from None
    return codes, name_array(distinct)


def _oddly_written(nodes: Table, column: str, present: NDArray[np.bool_]) -> Any:
    """Return a column of numbers as it is written, where that is not as numbers of classes are: 1e1 is not 10."""
    if nodes.verbatim is None or nodes.series(column).dtype.kind != "f":
        return None
    texts = nodes.verbatim(column)
    plain = np.asarray(texts.str.strip().str.fullmatch(r"-?\d+([.,]0*)?").fillna(False), dtype=bool)
    return texts if (present & ~plain).any() else None


def _require_no_numbers(nodes: Table, column: str, present: NDArray[np.bool_]) -> None:
    """Refuse texts as classes where nearly all are numbers, such as prices, and a few words are among them."""
    import pandas as pd

    series = nodes.series(column)
    if is_number(series) or series.dtype.kind == "b":
        return
    values = pd.to_numeric(series.where(present), errors="coerce")
    numeric = present & np.asarray(values.notna(), dtype=bool)
    odd = present & ~numeric
    if not odd.any() or numeric.sum() < _NEARLY * present.sum() or not _are_numbers(values, None):
        return
    row = int(odd.argmax())
    raise BadInput(
        f"{nodes.where(row)}: {shown(series.iloc[row])} in label column {column!r} is not a number, as nearly all "
        "values there are; correct it, leave it blank, or pass label_kind='classes'"
    )
