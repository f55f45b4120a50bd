"""Columns of lists: bags of tokens, and vectors of numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._checks import BadInput
from pegfan._limits import check_memory
from pegfan.datasets._blocks import Block, Column, Unusable, filled, require_all
from pegfan.datasets._categories import categories
from pegfan.datasets._ids import WHOLE_NUMBER
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import MISSING_WORDS, Table, plain, shown

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NUMBERS = re.compile(r"[-+.,;|eE\d\s]*")
_BRACKETED = re.compile(r"\s*\[.*\]\s*", re.DOTALL)


def as_lists(series: Any) -> list[list[Any]] | None:
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
        raise Unusable("lists within lists")
    return [plain(item) for item in items if not _no_value(item)]


def split_texts(nodes: Table, column: str) -> list[list[Any]]:
    """Cut the texts of a column that the caller says holds lists."""
    cells = _cells(nodes.series(column))
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


def are_vectors(lists: list[list[Any]]) -> bool:
    """Whether lists are coordinates: numbers, as many in every list, that cannot well be numbers of tokens."""
    lengths = {len(row) for row in lists} - {0}
    if len(lengths) != 1 or not _are_numbers(lists):
        return False
    values = {value for row in lists for value in row}
    return any(isinstance(value, float) or value < 0 for value in values) or (max(values) <= 1 and min(lengths) > 1)


def learn_bag(lists: list[list[Any]]) -> Rule:
    """Return the tokens that lists hold."""
    try:
        tokens, _ = categories([token for row in lists for token in row])
    except TypeError:
        raise Unusable("lists of values that are neither numbers nor texts") from None
    if not tokens:
        raise Unusable("every list is empty")
    return Rule("tokens", {"tokens": list(map(str, tokens))})


def read_bag(column: Column, lists: list[list[Any]], rule: Rule) -> Block:
    """One column per token, holding how often it occurs in the list."""
    place = {token: k for k, token in enumerate(rule.facts["tokens"])}
    rows = [[place[token] for token in map(str, row) if token in place] for row in lists]
    strange = sum(map(len, lists)) - sum(map(len, rows))
    codes = np.array([code for row in rows for code in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, rows), *[0] * column.extra])
    block = csr_array((np.ones(len(codes)), codes, indptr), shape=(len(lists) + column.extra, len(place)))
    block.sum_duplicates()
    empty = sum(not row for row in lists)
    how = f"bag of {len(place)} tokens" + (f", {empty} empty" if empty else "")
    how += f", {strange} new tokens left out" if strange else ""
    return Block(block, [f"{column.name}:{token}" for token in place], how)


def learn_vector(column: Column, lists: list[list[Any]]) -> Rule:
    """Return the length of vectors and their mean."""
    length = max(map(len, lists), default=0)
    if length == 0:
        raise Unusable("every list is empty")
    numbers = _vectors(column, lists, length)
    return Rule("vector", {"length": length, "mean": numbers.mean(axis=0).tolist()})


def read_vector(column: Column, lists: list[list[Any]], rule: Rule, missing: str) -> Block:
    """The numbers of the lists, one column per place."""
    length, present = rule.facts["length"], np.array([bool(row) for row in lists], dtype=bool)
    if missing == "error":
        require_all(column, ~present, "vector")
    rows = len(lists) + column.extra
    check_memory(16.0 * rows * length, f"column {column.name!r}: a vector of {length:,} numbers for {rows:,} nodes")
    numbers = _vectors(column, lists, length)
    fill = rule.facts["mean"] if missing == "mean" else np.zeros(length)
    if fill is None:  # nobody kept it
        fill = numbers.mean(axis=0) if len(numbers) else np.zeros(length)
    values = np.tile(np.asarray(fill, dtype=np.float64), (len(lists) + column.extra, 1))
    values[: len(lists)][present] = numbers
    names = [f"{column.name}[{k}]" for k in range(length)]
    return Block(values, names, f"vector of {length}" + filled(len(values) - int(present.sum()), missing))


def _vectors(column: Column, lists: list[list[Any]], length: int) -> Any:
    lengths = np.array([len(row) for row in lists])
    odd = (lengths > 0) & (lengths != length)
    if odd.any():
        raise BadInput(
            f"{column.where(odd.argmax())}: column {column.name!r} holds {lengths[odd][0]} numbers here and {length} "
            f"elsewhere; vectors must be of one length (features={{{column.name!r}: 'tokens'}} reads bags)"
        )
    try:
        numbers = np.array([row for row in lists if row], dtype=np.float64).reshape(-1, length)
    except (TypeError, ValueError):
        raise Unusable("lists of something other than numbers") from None
    if not np.isfinite(numbers).all():
        row = np.flatnonzero(lengths)[~np.isfinite(numbers).all(axis=1)][0]
        raise BadInput(f"{column.where(row)}: the vector in column {column.name!r} is not finite; correct it")
    return numbers
