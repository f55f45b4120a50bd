"""Checks of single arguments: an integer, a number, one of several words; and the error of files and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class BadInput(ValueError):
    """A file or table that cannot be used; the message names it, and the line where that is known."""


def check_integer(value: Any, what: str, least: int | None = None, most: int | None = None) -> int:
    """Return an integer as Python's own, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{what} must be at least {least}, got {value}")
    if most is not None and value > most:
        raise ValueError(f"{what} must be at most {most:,}, got {value:,}")
    return int(value)


def check_number(value: Any, what: str) -> float:
    """Return a number that is finite and not negative, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{what} must be a number, got {value!r}")
    if not np.isfinite(value) or value < 0:
        raise ValueError(f"{what} must be finite and not negative, got {value}")
    return float(value)


def check_choice(value: Any, what: str, known: Iterable[str]) -> None:
    """Refuse a word that is not known, and list those that are."""
    words = list(known)
    if value not in words:
        *others, last = map(repr, words)
        raise ValueError(f"{what} must be {', '.join(others)} or {last}, got {value!r}")
