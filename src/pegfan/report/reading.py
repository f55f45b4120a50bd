"""Reading a result that may come from a file: what is missing or of another kind is None, and strings are short."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["count", "mapping", "number", "numbers", "pick", "rows", "sequence", "text"]

_LONGEST = 160
_LONGEST_PARAGRAPH = 20_000


def pick(value: Any, *path: str) -> Any:
    """What stands at a path of keys, or None.

    Examples
    --------
    >>> pick({"test": {"mean": 0.5}}, "test", "mean"), pick({"test": None}, "test", "mean")
    (0.5, None)
    """
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def number(value: Any) -> float | None:
    """A finite number, or None.

    Examples
    --------
    >>> number(3), number(float("nan")), number("3"), number(True)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def count(value: Any) -> int | None:
    """A whole number of at least 0, or None."""
    found = number(value)
    return int(found) if found is not None and found >= 0 else None


def text(value: Any, longest: int = _LONGEST) -> str | None:
    """A name or a sentence, cut where it is too long to print; numbers as text; None for anything else.

    Examples
    --------
    >>> text("ab" * 200, 5), text(7), text(["no"])
    ('abab…', '7', None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, (str, int, float, bool)):
        return None
    words = str(value)
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def paragraph(value: Any) -> str | None:
    """A long text, such as what a reader of files says."""
    return text(value, _LONGEST_PARAGRAPH)


def sequence(value: Any) -> list[Any]:
    """A list, from a list, a tuple or an array; empty for anything else."""
    if isinstance(value, np.ndarray):
        return list(value.tolist()) if value.ndim else []
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else []


def mapping(value: Any) -> dict[str, Any]:
    """A mapping with names as keys; empty for anything else."""
    return {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """The mappings of a list."""
    return [mapping(entry) for entry in sequence(value) if isinstance(entry, Mapping)]


def numbers(value: Any) -> list[float | None]:
    """A list of numbers, None where one is not finite."""
    return [number(entry) for entry in sequence(value)]
