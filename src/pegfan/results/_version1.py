"""Results as 0.1 wrote them (version 1 of the format), and channels by their names, which is all that those had."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["channel_facts", "upgraded"]

_KINDS = ("edge", "node", "adjusted")
_OWN_WORDS = {
    "X": "the features alone",
    "A": "who a node is joined to",
    "degrees": "degrees of a node and its neighbours",
    "Y near": "training labels of neighbours",
    "Y far": "training labels two steps away",
    "Y X": "features of neighbours by their training label",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_SIDES = {"in": " against the edges", "sym": " both ways"}
_SCALE = re.compile(r"\bF_(\d{1,4})\b")
_HOP = re.compile(r"\bS(~)?(?:_(\w+?))?(?:\^(\d{1,4}))? ")
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
        "majority": floors.get("majority"),
        "features_only": features,
        "per_class": _each(old.get("per_class"), lambda row: {**row, "name": row.get("class")}),
        "attention": _each(old.get("attention"), lambda e: {**e, "channels": _each(e.get("channels"), _channel)}),
    }


def channel_facts(name: str) -> dict[str, Any]:
    """How a channel is written and said, what it shows and its scale, read from its name.

    Examples
    --------
    >>> channel_facts("F_12 S~^2 X")["symbol"], channel_facts("S_in X")["words"]
    ('F₁₂ S\u0303² X', 'one hop against the edges')
    """
    scale, hop, words = _SCALE.search(name), _HOP.search(name), _OWN_WORDS.get(name, name)
    if hop:
        own, side, power = hop.groups()
        count = int(power or 1)
        number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
        words = f"{number} hop{'s' * (count > 1)}{' with the node itself' * bool(own)}{_SIDES.get(side, '')}"
    if scale:
        words = f"{'the average' if scale[1] == '0' else f'scale {scale[1]}'} of {words if hop else 'the features'}"
    symbol = re.sub(r"_(\d+)", lambda digits: digits[1].translate(_DOWN), name)
    return {
        "name": name,
        "symbol": re.sub(r"\^(\d+)", lambda digits: digits[1].translate(_UP), symbol.replace("~", "\u0303")),
        "words": words,
        "group": "scales" if scale else "hops" if hop else "features" if name == "X" else "other",
        "scale": int(scale[1]) if scale else None,
    }


def _channel(row: dict[str, Any]) -> dict[str, Any]:
    name, words = row.get("name"), row.get("what")
    facts = channel_facts(name) if isinstance(name, str) else {}
    return {**row, **facts, **({} if words is None else {"words": words})}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _each(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    return [change(_object(entry)) for entry in value] if isinstance(value, list) else value
