"""Results as 0.1 wrote them (version 1 of the format), and channels by their names, which is all that those had."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pegfan._legacy import recipe_of

__all__ = ["channel_facts", "upgraded"]

_KINDS = ("edge", "node", "adjusted")
_SCALE = re.compile(r"\bF_(\d{1,4})\b")
_HOP = re.compile(r"\bS(?:[~_^]\S*)? ")
_DOWN, _UP = (str.maketrans("0123456789", digits) for digits in ("₀₁₂₃₄₅₆₇₈₉", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def upgraded(old: dict[str, Any]) -> dict[str, Any]:
    """Version 1 in the shape of this version; what is wrong in it is found where parts are made."""
    data, floors = _object(old.get("data")), _object(old.get("floors"))
    homophily, features = _object(data.get("homophily")), floors.get("features_only")
    measures = {f"{kind}_homophily": homophily.get(kind) for kind in _KINDS}
    measures["label_informativeness"] = homophily.get("label_informativeness")
    if isinstance(features, dict):
        features = {**features, "name": features.get("recipe", "")}
    return {
        **old,
        "data": {**data, **measures},
        "candidates": _each(old.get("candidates", []), lambda row: {**row, "recipe": _recipe(row.get("recipe"))}),
        "majority": floors.get("majority"),
        "features_only": features,
        "per_class": _each(old.get("per_class"), lambda row: {**row, "name": row.get("class")}),
        "attention": _each(old.get("attention"), lambda e: {**e, "channels": _each(e.get("channels"), _channel)}),
    }


def channel_facts(name: str) -> dict[str, Any]:
    """How a channel is written, what it shows and its scale, read from its name.

    Examples
    --------
    >>> channel_facts("F_12 S~^2 X")
    {'symbol': 'F₁₂ S\u0303² X', 'group': 'scales', 'scale': 12}
    """
    scale = _SCALE.search(name)
    symbol = re.sub(r"_(\d+)", lambda digits: digits[1].translate(_DOWN), name.replace("~", "\u0303"))
    return {
        "symbol": re.sub(r"\^(\d+)", lambda digits: digits[1].translate(_UP), symbol),
        "group": "scales" if scale else "hops" if _HOP.search(name) else "features" if name == "X" else "other",
        "scale": int(scale[1]) if scale else None,
    }


def _channel(row: dict[str, Any]) -> dict[str, Any]:
    name = row.get("name")
    return {**row, "words": row.get("what"), **(channel_facts(name) if isinstance(name, str) else {})}


def _recipe(value: Any) -> Any:
    return recipe_of(value) if isinstance(value, dict) and isinstance(value.get("features", ""), str) else value


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _each(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    return [change(_object(entry)) for entry in value] if isinstance(value, list) else value
