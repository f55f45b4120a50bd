"""Columns of dates: their age up to the newest of them, and where in the year, the week and the day they fall."""

from __future__ import annotations

import datetime
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput
from pegfan.datasets._blocks import Block, Column, Unusable, filled, gaps, require_all
from pegfan.datasets._ids import is_number, is_text
from pegfan.datasets._schema import Rule
from pegfan.datasets._table import shown

_DAY = 86400
_MOST = 0.9
"""The share of cells that are dates from which on the others are mistakes."""

_CLOCK = r"(?:[T ]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?)?"
_ZONE = r" ?(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
_NUMERIC = rf"(?P<one>\d{{1,4}})(?P<mark>[-./])(?P<two>\d{{1,2}})(?P=mark)(?P<three>\d{{1,4}}){_CLOCK}{_ZONE}"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>(?i:{'|'.join(_MONTHS)}))[a-z]*\.?"
_NAMED = (
    rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -]{_MONTH}[ -](?P<year>\d{{4}}){_CLOCK}{_ZONE}",
    rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}}){_CLOCK}{_ZONE}",
)
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
_SAYS_TIME = re.compile(r"date|time|epoch|(?:^|[^a-z])(?:ts|day|when)(?:$|[^a-z])|(?:^|_)(?:at|on)$")
_EPOCHS = {"seconds": 1, "milliseconds": 1000, "microseconds": 10**6, "nanoseconds": 10**9}
_YEAR_2, _YEAR_9999 = -62_104_060_800, 253_370_764_800  # when these years begin, in seconds since 1970
_EARLIEST, _LATEST = 315_532_800, 4_102_444_800  # the years 1980 to 2100, in seconds since 1970


class _Moments(NamedTuple):
    """Seconds since 1970, NaN where there is no date; how dates were read; whether they are times of the day only."""

    seconds: FloatArray
    form: str
    clock: bool = False


def date_form(column: Column) -> str | None:
    """Say in which form a column holds dates; None if it does not."""
    series = column.series
    if is_number(series):
        return _number_form(column)
    if series.dtype.kind == "M":
        return "date"
    cells = series[~gaps(series, placeholders=True)]
    if series.dtype.kind != "O" or len(cells) == 0:
        return None
    return _text_form(cells) if is_text(series) else _object_form(cells)


def _object_form(cells: Any) -> str | None:
    forms = {"date": datetime.date, "time of day": datetime.time}
    return next((form for form, kind in forms.items() if all(isinstance(cell, kind) for cell in cells)), None)


def _text_form(cells: Any) -> str | None:
    some = cells.astype("str").str.strip().iloc[:: max(1, len(cells) // 200)]
    for form, pattern in (
        ("numeric", _NUMERIC),
        ("named 0", _NAMED[0]),
        ("named 1", _NAMED[1]),
        ("time of day", _TIME),
    ):
        if some.str.fullmatch(pattern).mean() >= _MOST:
            return _order(cells.drop_duplicates().astype("str").str.strip()) if form == "numeric" else form
    return None


def _number_form(column: Column) -> str | None:
    """Numbers are times only if the column's name says so and all of them fall into the years 1980 to 2100."""
    if not _SAYS_TIME.search(column.name.strip().lower()):
        return None
    values = column.series.to_numpy(dtype=np.float64, na_value=np.nan)
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return None
    for unit, per_second in _EPOCHS.items():
        if _EARLIEST * per_second <= known.min() and known.max() <= _LATEST * per_second:
            return unit
    years, days = known // 10000, known % 100
    months = known // 100 % 100
    whole = (known == np.floor(known)) & (years >= 1900) & (years <= 2100) & (months >= 1) & (months <= 12)
    return "yyyymmdd" if (whole & (days >= 1) & (days <= 31)).all() else None


def _order(texts: Any) -> str | None:
    """Say what comes first in dates of three numbers, from what the whole column holds."""
    parts = texts.str.extract(_NUMERIC)
    long = parts["one"].str.len() > 2
    if long.mean() > 0.5:
        return "year first"
    one, two = (parts[name][~long].astype("float64") for name in ("one", "two"))
    if (one > 12).any() and (two > 12).any():
        return "day first" if (one > 12).sum() >= (two > 12).sum() else "month first"
    if (one > 12).any() or (two > 12).any():
        return "day first" if (one > 12).any() else "month first"
    return "month first, a guess" if (parts["mark"] == "/").mean() > 0.5 else "day first, a guess"


def _read(column: Column, form: str) -> FloatArray:
    """Return the moments of a column as seconds since 1970, NaN where there is none."""
    seconds = moments(column.series, form)
    return _checked(column, seconds, gaps(column.series, placeholders=True) | stand_ins(seconds))


def stand_ins(seconds: FloatArray) -> NDArray[np.bool_]:
    """Where dates are of the years 1 or 9999, which stand for none: never, or not yet."""
    with np.errstate(invalid="ignore"):
        return np.asarray((seconds < _YEAR_2) | (seconds >= _YEAR_9999))


def moments(series: Any, form: str) -> FloatArray:
    """Return the moments of a column as seconds since 1970, NaN where there is none or a cell is no date."""
    import pandas as pd

    if series.dtype.kind == "M":
        naive = series.dt.tz_convert(None) if getattr(series.dtype, "tz", None) is not None else series
        return _seconds(naive.to_numpy())
    if is_number(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if form == "yyyymmdd":
            return _moments(values // 10000, values // 100 % 100, values % 100)
        return np.asarray(values / _EPOCHS.get(form, 1))
    if not is_text(series):
        return np.fromiter(map(_of_object, series), dtype=np.float64, count=len(series))
    places, distinct = pd.factorize(series.astype("str").str.strip())  # there are fewer days than rows
    return np.asarray(_moments_of_texts(pd.Series(distinct, dtype="str"), form)[places])


def _moments_of_texts(texts: Any, form: str) -> FloatArray:
    import pandas as pd

    if form in ("named 0", "named 1"):
        parts = texts.str.extract(_NAMED[int(form[-1])])
        day, year = _floats(parts["day"]), _floats(parts["year"])
        month = _floats(parts["month"].str.lower().map({name: k + 1 for k, name in enumerate(_MONTHS)}))
    elif form == "time of day":
        parts = texts.str.extract(_TIME).assign(zone=pd.NA)
        day = month = np.where(np.isnan(_floats(parts["hour"])), np.nan, 1.0)
        year = 1969.0 + day
    else:
        parts = texts.str.extract(_NUMERIC)
        one, month, three = (_floats(parts[name]) for name in ("one", "two", "three"))
        ahead = np.asarray(parts["one"].str.len() > 2, dtype=bool)
        year, day = np.where(ahead, one, three), np.where(ahead, three, one)
        if form.startswith("month first"):
            month, day = np.where(ahead, month, day), np.where(ahead, day, month)
        short = ~ahead & np.asarray(parts["three"].str.len() <= 2, dtype=bool)
        year = np.where(short, year + np.where(year < 70, 2000, 1900), year)
    hour, minute, second = (np.nan_to_num(_floats(parts[name])) for name in ("hour", "minute", "second"))
    late = (hour > 23) | (minute > 59) | (second > 60)
    found = _moments(year, month, day) + 3600 * hour + 60 * minute + second - _offset(parts["zone"])
    return np.where(late, np.nan, found)


def _floats(texts: Any) -> FloatArray:
    return np.asarray(texts.astype("float64").to_numpy(dtype=np.float64, na_value=np.nan))


def _offset(zones: Any) -> FloatArray:
    parts = zones.astype("str").str.extract(r"([+-])(\d{2}):?(\d{2})")
    seconds = 3600 * np.nan_to_num(_floats(parts[1])) + 60 * np.nan_to_num(_floats(parts[2]))
    return np.where(np.asarray(parts[0] == "-", dtype=bool), -seconds, seconds)


def _moments(years: FloatArray, months: FloatArray, days: FloatArray) -> FloatArray:
    """Return the first seconds of days, NaN for days that the calendar does not have."""
    good = (years >= 1) & (years <= 9999) & (months >= 1) & (months <= 12) & (days >= 1)
    place = np.where(good, 12 * (years - 1970) + months - 1, 0).astype(np.int64)
    first = place.astype("datetime64[M]")
    length = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64)
    good &= days <= length
    start = first.astype("datetime64[D]").astype(np.int64)
    return np.where(good, _DAY * (start + np.nan_to_num(days) - 1), np.nan)


def _of_object(cell: Any) -> float:
    import pandas as pd

    if cell is pd.NaT:
        return float("nan")
    if isinstance(cell, datetime.time):
        return cell.hour * 3600 + cell.minute * 60 + cell.second
    if isinstance(cell, datetime.datetime):
        zone = cell.tzinfo or datetime.UTC
        return cell.replace(tzinfo=zone).timestamp()
    return float(_DAY * (cell.toordinal() - 719_163)) if isinstance(cell, datetime.date) else float("nan")


def _seconds(stamps: NDArray[Any]) -> FloatArray:
    known = ~np.isnat(stamps)
    unit = np.timedelta64(1, "s")
    return np.where(known, (np.where(known, stamps, stamps.dtype.type(0, "s")) - np.datetime64(0, "s")) / unit, np.nan)


def _checked(column: Column, seconds: FloatArray, absent: NDArray[np.bool_]) -> FloatArray:
    bad = np.isnan(seconds) & ~absent
    if bad.any():
        row = int(bad.argmax())
        raise BadInput(
            f"{column.where(row)}: {shown(column.series.iloc[row])} in column {column.name!r} is not a date, as the "
            f"values there are; correct it or leave it blank, or pass features={{{column.name!r}: 'category', ...}}"
        )
    return np.where(absent, np.nan, seconds)


# -------------------------------------------------------------------- from dates to columns


def learn_date(column: Column, form: str, *, asked: bool) -> Rule:
    """Return the form of dates, the newest of them, and what about them varies."""
    seconds = _read(column, form)
    known = seconds[~np.isnan(seconds)]
    if len(known) == 0:
        raise Unusable("every value is missing")
    if not asked and len(known) == len(seconds) > 1 and known.min() == known.max():
        raise Unusable(f"constant: every value is {shown(column.series.iloc[0])}")
    newest = int(np.ceil(known.max()))
    clock = form == "time of day"
    month, weekday, hour = _calendar(known)
    cycles = {"month": not clock and _varies(month), "weekday": not clock and _varies(weekday), "hour": _varies(hour)}
    facts: dict[str, Any] = {"form": form, "flag": len(known) < len(seconds)}
    if not clock:
        facts |= {"newest": _written(newest), "mean": float((newest - known).mean() / _DAY)}
    return Rule("date", {**facts, "cycles": [name for name, varies in cycles.items() if varies]})


def read_date(column: Column, rule: Rule, missing: str) -> Block:
    """The age in days, and sine and cosine of month, weekday and hour where they vary."""
    facts = rule.facts
    seconds = _read(column, facts["form"])
    lacking = np.append(np.isnan(seconds), np.ones(column.extra, dtype=bool))
    if missing == "error":
        require_all(column, np.isnan(seconds), "date")
    seconds = np.append(seconds, np.full(column.extra, np.nan))
    values, names = [], []
    if "newest" in facts:
        newest = _seconds(np.array([facts["newest"]], "datetime64[s]"))[0]
        values.append(np.where(lacking, facts["mean"] if missing == "mean" else 0.0, (newest - seconds) / _DAY))
        names.append(f"{column.name} age")
    month, weekday, hour = _calendar(np.where(lacking, 0.0, seconds))
    turns = {"month": (month - 1) / 12, "weekday": weekday / 7, "hour": hour / 24}
    for cycle in facts["cycles"]:
        angle = 2 * np.pi * turns[cycle]
        values += [np.where(lacking, 0.0, np.sin(angle)), np.where(lacking, 0.0, np.cos(angle))]
        names += [f"{column.name} {cycle} sin", f"{column.name} {cycle} cos"]
    flag = f"{column.name} missing" if facts["flag"] else None
    if flag is not None:
        values.append(lacking.astype(np.float64))
        names.append(flag)
    parts = ["age in days on " + facts["newest"].removesuffix("T00:00:00")] if "newest" in facts else []
    what = {"date": "date", "time of day": "time of day"}.get(
        facts["form"], f"date, {WORDS.get(facts['form'], facts['form'])}"
    )
    how = f"{what}: {', '.join([*parts, *facts['cycles']])}" + filled(int(lacking.sum()) - column.extra, missing, flag)
    if count := int(stand_ins(moments(column.series, facts["form"])).sum()):
        how += f"; {count:,} of them {STAND_INS}"
    return Block(np.column_stack(values), names, how)


STAND_INS = "of the year 1 or 9999, which stand for none"
WORDS = {
    "named 0": "day and name of month",
    "named 1": "name of month and day",
    **{unit: f"{unit} since 1970" for unit in _EPOCHS},
    "month first, a guess": "month first (nothing in the column tells; written as 2015-07-31, dates would)",
    "day first, a guess": "day first (nothing in the column tells; written as 2015-07-31, dates would)",
}


def _varies(values: FloatArray | IntArray) -> bool:
    return bool(len(values) and values.min() < values.max())


def _calendar(seconds: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return months from 1, weekdays from 0 for Monday, and hours with their fractions."""
    days = np.floor_divide(seconds, _DAY).astype(np.int64)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1
    return months, (days + 3) % 7, (seconds - _DAY * days) / 3600


def _written(seconds: int) -> str:
    return str(np.datetime64(seconds, "s"))
