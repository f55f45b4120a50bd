"""Columns of numbers: as they are, or their logarithms where a few are far larger than the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray
from pegfan._checks import BadInput
from pegfan.datasets._blocks import Block, Column, Unusable, filled, gaps, require_all
from pegfan.datasets._ids import is_number, is_text
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import few, shown

_ENOUGH = 20
"""Fewer numbers than this do not show a tail."""


def as_floats(column: Column) -> NDArray[Any]:
    """Return a column as floats, NaN where there is no value; durations as seconds."""
    import pandas as pd

    series = column.series
    if series.dtype.kind == "m":
        return np.asarray(series.dt.total_seconds().to_numpy(dtype=np.float64))
    if series.dtype.kind in "cM":
        raise Unusable(f"values of type {series.dtype}")
    absent = gaps(series, placeholders=True)
    if absent.any() or not is_number(series):
        series = pd.to_numeric(series.where(~absent), errors="coerce")
    values = series.to_numpy(dtype=np.float32 if series.dtype == np.float32 else np.float64, na_value=np.nan)
    bad = ~absent & ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise BadInput(
            f"{column.where(row)}: {shown(column.series.iloc[row])} in column {column.name!r} is not a finite "
            "number; correct it, or leave it blank and choose a rule with missing="
        )
    return np.asarray(values)


def learn_number(column: Column, *, asked: bool, log: bool | None = None) -> Rule:
    """Return the mean that stands for missing numbers, and whether logarithms are taken."""
    values = as_floats(column)
    known = values[~np.isnan(values)].astype(np.float64)
    if len(known) == 0:
        raise Unusable("every value is missing")
    if not asked and len(known) == len(values) > 1 and known.min() == known.max():
        raise Unusable(f"constant: every value is {known[0]:g}")
    if not asked and _counts_rows(values):
        raise Unusable("it counts the rows")
    facts: dict[str, Any] = {"flag": len(known) < len(values)}
    if _is_heavy(known) if log is None else log:
        facts["unit"] = _unit(known)
        known = _log(known, facts["unit"])
    return Rule("number", {**facts, "mean": float(known.mean())})


def read_number(column: Column, rule: Rule, missing: str) -> Block:
    """The numbers, and where any was missing in learning, a column that says where one is."""
    values = as_floats(column)
    lacking = np.isnan(values)
    if missing == "error":
        require_all(column, lacking, "number")
    unit = rule.facts.get("unit")
    if unit is not None:
        values = _log(values, unit)
    fill = rule.facts["mean"] if missing == "mean" else 0.0
    if fill is None:  # nobody kept it
        fill = 0.0 if lacking.all() else values[~lacking].mean(dtype=np.float64)
    # In the rows' own type: a gap must not make doubles of floats.
    values = np.append(
        np.where(lacking, np.asarray(fill, values.dtype), values), np.full(column.extra, fill, values.dtype)
    )
    name = column.name if unit is None else f"{column.name} (log)"
    flag = f"{column.name} missing" if rule.facts["flag"] else None
    how = "number" + ("" if unit is None else ", log") + (", seconds" if column.series.dtype.kind == "m" else "")
    how += _placeholders(column) + filled(int(lacking.sum()), missing, flag)
    if flag is None:
        return Block(values.reshape(-1, 1), [name], how)
    marks = np.append(lacking, np.ones(column.extra, dtype=bool)).astype(values.dtype)
    return Block(np.column_stack([values, marks]), [name, flag], how)


def _placeholders(column: Column) -> str:
    if not is_text(column.series):
        return ""
    words = column.series[gaps(column.series, placeholders=True) & ~gaps(column.series)]
    return f", {few(list(dict.fromkeys(words)))} taken for missing" if len(words) else ""


def _counts_rows(values: NDArray[Any]) -> bool:
    first = values[0] if len(values) else np.nan
    return len(values) > _ENOUGH and first in (0, 1) and np.array_equal(values, first + np.arange(len(values)))


def _is_heavy(values: FloatArray) -> bool:
    """Whether a few numbers are far larger than the rest, over more than two orders of magnitude."""
    sizes = np.abs(values[values != 0])
    if len(sizes) < _ENOUGH or sizes.max() <= 100 * sizes.min() or sizes.max() <= 10 * np.median(sizes):
        return False
    scaled = values / sizes.max()  # whose cubes are finite
    spread = scaled.std()
    return bool(abs(((scaled - scaled.mean()) ** 3).mean()) > 2 * spread**3)


def _unit(values: FloatArray) -> float:
    """The power of ten, one at most, from which on numbers differ in their logarithms."""
    sizes = np.abs(values[values != 0])
    return 1.0 if len(sizes) == 0 else float(10.0 ** min(0, math.floor(math.log10(np.quantile(sizes, 0.05)))))


def _log(values: NDArray[Any], unit: float) -> NDArray[Any]:
    """The logarithm of one plus the size, with the sign."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values) / unit), dtype=values.dtype)


def undo_log(values: FloatArray, unit: float) -> FloatArray:
    """The numbers that `_log` was taken of; whole ones are whole again."""
    found = np.sign(values) * np.expm1(np.abs(values)) * unit
    whole = np.round(found)
    return np.asarray(whole if np.allclose(found, whole, rtol=1e-9, atol=1e-9, equal_nan=True) else found)


def read_positions(columns: list[Column]) -> FloatArray:
    """Return columns of coordinates, none of them missing."""
    try:
        found = [as_floats(column) for column in columns]
    except Unusable as why:
        names = few([column.name for column in columns])
        raise BadInput(f"{columns[0].table.name}: columns {names} cannot be positions: {why}") from None
    for column, values in zip(columns, found, strict=True):
        if np.isnan(values).all():
            raise BadInput(f"{column.table.name}: column {column.name!r} cannot be positions: every value is missing")
        require_all(column, np.isnan(values), "number")
    return np.column_stack(found).astype(np.float64)
