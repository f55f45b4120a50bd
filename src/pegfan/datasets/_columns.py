"""The columns of a node table as labels, splits and features."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput
from pegfan.datasets._ids import LARGEST_EXACT, WHOLE_NUMBER, blanks, is_number, name_array
from pegfan.datasets._table import MISSING_WORDS, Options, ReadReport, Table, few, plain, shown
from pegfan.graph import Split

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "node_name", "vertex", "key", "index", "unnamed: 0")
LABEL_NAMES = ("label", "labels", "class", "y", "target", "kind")
_SPLIT_NAME = re.compile(r"split[_ .-]?(\d*)", re.IGNORECASE)
_SPLIT_WORDS = {"training": "train", "valid": "val", "validation": "val", **{part: part for part in Split._fields}}
_ALL_DIFFERENT = 20  # a label column in which more values than this all differ is a column of names


def _gaps(series: Any) -> NDArray[np.bool_]:
    """Return where a column has no value, in whatever word it says so."""
    return blanks(series, MISSING_WORDS)


def pick_splits(nodes: Table, options: Options) -> list[str]:
    """Return the columns with splits, given or by their names."""
    if options.split is False:
        return []
    if options.split is None:
        matches = {column: _SPLIT_NAME.fullmatch(column.strip()) for column in nodes.frame.columns}
        found = {column: int(match[1] or -1) for column, match in matches.items() if match}
        return sorted(found, key=lambda column: found[column])
    given = [options.split] if isinstance(options.split, str) else options.split
    return [nodes.find(column, "split") for column in given]


def read_split(nodes: Table, column: str) -> Split:
    """Return the split that a column of words describes."""
    series = nodes.frame[column]
    present = ~_gaps(series)
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


def pick_label(nodes: Table, options: Options, report: ReadReport) -> str | None:
    """Return the column with the labels, given or by its name and content."""
    if options.label is False:
        report.columns["label"] = "none (as given)"
        return None
    if options.label is not None:
        try:
            column = nodes.find(options.label, "label")
        except ValueError as error:
            raise NoLabels(str(error)) from None
        report.columns["label"] = f"{column!r} (as given)"
        return column
    named = nodes.named(*LABEL_NAMES)
    for column in named:
        if _class_problem(nodes.frame[column]) is None:
            report.columns["label"] = f"{column!r} (by name)"
            return column
    report.columns["label"] = "none" + "".join(f"; {column!r} does not hold classes" for column in named)
    return None


def _unlabelled(series: Any) -> NDArray[np.bool_]:
    gaps = _gaps(series)
    if is_number(series) and set(series[~gaps].unique()) != {-1, 1}:  # -1 and 1 are the classes of a binary problem
        gaps |= np.asarray((series == -1).fillna(False), dtype=bool)
    return gaps


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
            return row, f"holds {float(values[row])!r}; labels are classes: whole numbers or texts"
    try:
        distinct = series[present].nunique()
    except TypeError:
        return first, "holds lists, not classes"
    if distinct == present.sum() > _ALL_DIFFERENT:
        return first, f"holds {distinct} values that all differ: names, not classes"
    return None


def read_labels(nodes: Table, column: str) -> tuple[IntArray, NDArray[Any] | None]:
    """Return class numbers, -1 where there is none, and the names of the classes if they are not 0..k-1."""
    series = nodes.frame[column]
    missing = _unlabelled(series)
    if missing.all():
        raise NoLabels(
            f"{nodes.name}: every label in column {column!r} is missing; fill some in, or pass label=False for a graph "
            "without labels"
        )
    problem = _class_problem(series)
    if problem is not None:
        raise BadInput(f"{nodes.where(problem[0])}: label column {column!r} {problem[1]}")
    codes = np.full(len(series), -1)
    if is_number(series):
        names, codes[~missing] = np.unique(series[~missing].to_numpy(dtype=np.int64), return_inverse=True)
        return codes, None if np.array_equal(names, np.arange(len(names))) else names
    distinct, codes[~missing] = _categories(series[~missing])
    return codes, name_array(distinct)


def _categories(values: Any) -> tuple[list[Any], IntArray]:
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


class _Block(NamedTuple):
    """Some columns of the feature matrix, with their names and how they were read."""

    values: Any
    names: list[str]
    how: str


class _Unusable(Exception):
    """Why a column cannot be a feature."""


def read_features(nodes: Table, extra: int, options: Options, report: ReadReport) -> tuple[Any, list[str] | None]:
    """Return the features, dense if every column is, and their names; `extra` nodes without a row come last."""
    asked = options.features is not None
    if not asked:
        columns = list(nodes.frame.columns)
    elif options.features is False:
        columns = []
    else:
        given = [options.features] if isinstance(options.features, str) else list(options.features)
        columns = [nodes.find(column, "feature") for column in given]
    report.dropped.update({column: "not asked for" for column in nodes.frame.columns if column not in columns})
    kinds: Mapping[str, str] = options.features if isinstance(options.features, Mapping) else {}
    blocks: list[Any] = []
    names: dict[str, None] = {}
    for column in columns:
        try:
            block = _read_column(nodes, column, extra, options, kinds.get(column), asked=asked)
        except _Unusable as why:
            if asked:
                raise BadInput(f"{nodes.name}: column {column!r} cannot be a feature: {why}") from None
            report.dropped[column] = str(why)
            continue
        blocks.append(block.values)
        report.features[column] = block.how
        for name in block.names:
            while name in names:  # a number "a=b" beside a category "b" of "a"
                name += ".1"  # noqa: PLW2901
            names[name] = None
    if not blocks:
        return None, None
    dtype = np.float32 if all(block.dtype == np.float32 for block in blocks) else np.float64
    if any(issparse(block) for block in blocks):
        return hstack([csr_array(block) for block in blocks], format="csr", dtype=dtype), list(names)
    return np.hstack(blocks, dtype=dtype), list(names)


def _read_column(nodes: Table, column: str, extra: int, options: Options, kind: str | None, *, asked: bool) -> _Block:
    series = nodes.frame[column]
    if not asked and _looks_like_id(series):
        raise _Unusable("whole numbers that all differ, in a column named like an id")
    lists = _as_lists(series) if kind in (None, "tokens", "vector") else None
    if kind is None:
        kind = _guess_kind(nodes, column, lists)
    if kind == "number":
        values, lacking = _numbers(nodes, column, options.missing, extra)
        return _Block(values.reshape(-1, 1), [column], "number" + _filled(lacking, options.missing))
    if kind == "category":
        return _one_hot(column, series, extra, options.categories_max, asked=asked)
    if lists is None:
        lists = _split_texts(nodes, column)
    if kind == "tokens":
        return _bag(column, lists, extra)
    return _vectors(nodes, column, lists, extra, options.missing)


def _filled(lacking: int, missing: str) -> str:
    return f", {lacking} missing: {'the mean' if missing == 'mean' else '0'}" if lacking else ""


def _looks_like_id(series: Any) -> bool:
    name = str(series.name).strip().lower()
    named = name in ID_NAMES or name.endswith(("_id", " id"))
    return named and series.dtype.kind in "iu" and bool(series.is_unique) and len(series) > 1


def _guess_kind(nodes: Table, column: str, lists: list[list[Any]] | None) -> str:
    """Say how to read a column, or raise why not."""
    import pandas as pd

    series = nodes.frame[column]
    if lists is not None:
        return "vector" if _are_vectors(lists) else "tokens"
    if is_number(series):
        return "number"
    gaps = _gaps(series)
    if gaps.all():
        raise _Unusable("every value is missing")
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    if inferred in ("boolean", "categorical"):
        return "category"
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number"
    if inferred in ("datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period"):
        raise _Unusable("dates or times; make numbers of them if they matter")
    if inferred != "string":
        raise _Unusable(f"values of unusual or unlike kinds ({inferred})")
    numeric = np.asarray(pd.to_numeric(series.where(~gaps), errors="coerce").notna(), dtype=bool)
    if numeric.sum() == (~gaps).sum():
        return "number"
    if 2 * numeric.sum() >= (~gaps).sum():
        row = int((~gaps & ~numeric).argmax())
        raise BadInput(
            f"{nodes.where(row)}: {shown(series.iloc[row])} in column {column!r} is not a number, as most values there "
            f"are; correct it, or pass features={{{column!r}: 'category', ...}} or a list of features without it"
        )
    return "category"


def _numbers(nodes: Table, column: str, missing: str, extra: int = 0) -> tuple[NDArray[Any], int]:
    """Return a column as floats with the gaps filled, and how many there were."""
    import pandas as pd

    series = nodes.frame[column]
    if series.dtype.kind in "cmM":
        raise _Unusable(f"values of type {series.dtype}")
    gaps = _gaps(series)
    if gaps.all():
        raise _Unusable("every value is missing")
    if gaps.any() or not is_number(series):
        series = pd.to_numeric(series.where(~gaps), errors="coerce")
    values = series.to_numpy(dtype=np.float32 if series.dtype == np.float32 else np.float64, na_value=np.nan)
    bad = ~gaps & ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise BadInput(
            f"{nodes.where(row)}: {shown(nodes.frame[column].iloc[row])} in column {column!r} is not a finite "
            "number; correct it, or leave it blank and choose a rule with missing="
        )
    if missing == "error":
        _require_all(nodes, column, gaps, extra, "number")
    filled = np.append(values, np.full(extra, np.nan, dtype=values.dtype))
    lacking = np.isnan(filled)
    filled[lacking] = values[~gaps].mean(dtype=np.float64) if missing == "mean" else 0
    return filled, int(lacking.sum())


def _require_all(nodes: Table, column: str, gaps: NDArray[np.bool_], extra: int, what: str) -> None:
    if gaps.any() or extra:
        where = nodes.where(gaps.argmax()) if gaps.any() else f"{extra} added nodes"
        raise BadInput(f"{where}: no {what} in column {column!r}; fill it in, or pass missing='mean' or 'zero'")


def read_positions(nodes: Table, columns: list[str]) -> FloatArray:
    """Return columns of coordinates, none of them missing."""
    try:
        return np.column_stack([_numbers(nodes, column, "error")[0] for column in columns]).astype(np.float64)
    except _Unusable as why:
        raise BadInput(f"{nodes.name}: columns {few(columns)} cannot be positions: {why}") from None


def _one_hot(column: str, series: Any, extra: int, most: int, *, asked: bool) -> _Block:
    """One column per value; a missing value sets none of them."""
    rows = np.flatnonzero(~_gaps(series))
    try:
        names, codes = _categories(series.iloc[rows])
    except TypeError:
        raise _Unusable("its values cannot be categories") from None
    if not asked and len(names) == len(rows) > 1 and isinstance(names[0], str):
        raise _Unusable("texts that all differ: names, not categories")
    if len(names) > most:
        raise _Unusable(f"{len(names)} different texts, more than categories_max={most}")
    block = csr_array((np.ones(len(rows)), (rows, codes)), shape=(len(series) + extra, len(names)))
    gaps = len(series) - len(rows)
    how = f"{len(names)} categories" + (f", {gaps} missing" if gaps else "")
    return _Block(block, [f"{column}={name}" for name in names], how)


# -------------------------------------------------------------------- lists of tokens and of numbers

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NUMBERS = re.compile(r"[-+.,;|eE\d\s]*")
_BRACKETED = re.compile(r"\s*\[.*\]\s*", re.DOTALL)


def _as_lists(series: Any) -> list[list[Any]] | None:
    """Return the lists that a column holds, as objects or unmistakably as text; None if it does not."""
    if series.dtype.kind != "O":
        return None
    cells = _cells(series)
    present = [cell for cell in cells if cell is not None]
    if present and all(isinstance(cell, list | tuple | set | frozenset | np.ndarray) for cell in present):
        return [[] if cell is None else _items(cell) for cell in cells]
    if not all(isinstance(cell, str) for cell in present):
        return None
    texts = [cell for cell in present if cell.strip() not in MISSING_WORDS]
    if texts and all(map(_BRACKETED.fullmatch, texts)):
        return _cut(cells)
    # A decimal comma makes lists of two: three numbers somewhere show that commas separate.
    if not any(len(re.findall("[,;|]", text)) > 1 for text in texts) or not all(map(_NUMBERS.fullmatch, texts)):
        return None
    lists = _cut(cells)
    return lists if _are_numbers(lists) else None


def _cells(series: Any) -> list[Any]:
    return [None if _no_value(cell) else cell for cell in series]


def _no_value(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and np.isnan(cell)) or type(cell).__name__ in ("NAType", "NaTType")


def _items(cell: Any) -> list[Any]:
    items = cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
    if not isinstance(items, list) or any(isinstance(item, list | tuple | dict | set) for item in items):
        raise _Unusable("lists within lists")
    return [plain(item) for item in items if not _no_value(item)]


def _split_texts(nodes: Table, column: str) -> list[list[Any]]:
    """Cut the texts of a column that the caller says holds lists."""
    cells = _cells(nodes.frame[column])
    odd = next((row for row, cell in enumerate(cells) if not isinstance(cell, str | None)), None)
    if odd is not None:
        raise BadInput(f"{nodes.where(odd)}: {shown(cells[odd])} in column {column!r} is not a list")
    return _cut(cells)


def _cut(cells: list[Any]) -> list[list[Any]]:
    """Cut texts into tokens, at the one separator that the column uses, and read them as numbers if all are."""
    bare = [(cell or "").strip().removeprefix("[").removesuffix("]") for cell in cells]
    separator = next((mark for mark in "|;," if any(mark in text for text in bare)), None)
    rows = [[piece.strip(" \t\r\n'\"") for piece in text.split(separator)] for text in bare]
    rows = [[piece for piece in row if piece not in MISSING_WORDS] for row in rows]
    pieces = {piece for row in rows for piece in row}
    for read, pattern in ((int, re.compile(WHOLE_NUMBER)), (float, _NUMBER)):
        if all(map(pattern.fullmatch, pieces)):
            value = {piece: read(piece) for piece in pieces}
            return [[value[piece] for piece in row] for row in rows]
    return rows


def _are_numbers(lists: list[list[Any]]) -> bool:
    return all(isinstance(value, int | float) for value in {value for row in lists for value in row})


def _are_vectors(lists: list[list[Any]]) -> bool:
    """Whether lists are coordinates: numbers, as many in every list, that cannot well be numbers of tokens."""
    lengths = {len(row) for row in lists} - {0}
    if len(lengths) != 1 or not _are_numbers(lists):
        return False
    values = {value for row in lists for value in row}
    return any(isinstance(value, float) or value < 0 for value in values) or (max(values) <= 1 and min(lengths) > 1)


def _bag(column: str, lists: list[list[Any]], extra: int) -> _Block:
    """One column per token, holding how often it occurs in the list."""
    try:
        tokens, codes = _categories([token for row in lists for token in row])
    except TypeError:
        raise _Unusable("lists of values that are neither numbers nor texts") from None
    if not tokens:
        raise _Unusable("every list is empty")
    indptr = np.cumsum([0, *map(len, lists), *[0] * extra])
    block = csr_array((np.ones(len(codes)), codes, indptr), shape=(len(lists) + extra, len(tokens)))
    block.sum_duplicates()
    empty = sum(not row for row in lists)
    how = f"bag of {len(tokens)} tokens" + (f", {empty} empty" if empty else "")
    return _Block(block, [f"{column}:{token}" for token in tokens], how)


def _vectors(nodes: Table, column: str, lists: list[list[Any]], extra: int, missing: str) -> _Block:
    lengths = np.array([len(row) for row in lists])
    present, length = lengths > 0, int(lengths.max(initial=0))
    odd = present & (lengths != length)
    if odd.any():
        raise BadInput(
            f"{nodes.where(odd.argmax())}: column {column!r} holds {lengths[odd][0]} numbers here and {length} "
            f"elsewhere; vectors must be of one length (features={{{column!r}: 'tokens'}} reads bags)"
        )
    if length == 0:
        raise _Unusable("every list is empty")
    try:
        numbers = np.array([row for row in lists if row], dtype=np.float64)
    except (TypeError, ValueError):
        raise _Unusable("lists of something other than numbers") from None
    if not np.isfinite(numbers).all():
        row = np.flatnonzero(present)[~np.isfinite(numbers).all(axis=1)][0]
        raise BadInput(f"{nodes.where(row)}: the vector in column {column!r} is not finite; correct it")
    if missing == "error":
        _require_all(nodes, column, ~present, extra, "vector")
    values = np.tile(numbers.mean(axis=0) if missing == "mean" else np.zeros(length), (len(lists) + extra, 1))
    values[: len(lists)][present] = numbers
    names = [f"{column}[{k}]" for k in range(length)]
    return _Block(values, names, f"vector of {length}" + _filled(len(values) - len(numbers), missing))
