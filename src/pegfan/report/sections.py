"""The sections of the report as plain data: what is known, in an order and size that a page can show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pegfan.report import words
from pegfan.report.reading import count, mapping, number, numbers, paragraph, pick, rows, sequence, text

__all__ = ["SECTIONS", "colours", "sections"]

_MOST_CLASSES = 20
"""Rows of a matrix of classes; the rest share one."""
_MOST_BARS = 40
_MOST_TABLE = 400
_MOST_POINTS = 240
_OWN_COLOURS = 10
"""Classes with a colour of their own, the most frequent ones; the others are grey."""
_SCALE = re.compile(r"F_\d+")
_HOP = re.compile(r"S(?:[~^_]\S*)? ")


def sections(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Every section that is made of the result alone, by name. An absent one is ``{"absent": sentence}``."""
    return {name: make(result, classes) for name, make in SECTIONS.items()}


def colours(sizes: Sequence[int]) -> list[int]:
    """The colour of every class: its place in the palette, or −1 for grey where there are more classes than colours.

    Examples
    --------
    >>> colours([5, 9, 2])
    [0, 1, 2]
    >>> colours([1] * 4 + [7] * 10)[2:6]
    [-1, -1, 0, 1]
    """
    if len(sizes) <= _OWN_COLOURS:
        return list(range(len(sizes)))
    largest = sorted(np.argsort(-np.asarray(sizes), kind="stable")[:_OWN_COLOURS].tolist())
    return [largest.index(k) if k in largest else -1 for k in range(len(sizes))]


# ------------------------------------------------------------------------- data


def _data(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    data = mapping(pick(result, "data"))
    if not data:
        return _absent("The result does not describe its data.")
    splits = mapping(pick(result, "splits"))
    directed = {"True": "directed links", "False": "undirected links"}.get(str(data.get("directed")), "links")
    facts = [
        ("nodes", count(data.get("nodes"))),
        (directed, count(data.get("edges"))),
        ("features", count(data.get("features"))),
        ("classes", len(classes)),
        ("labelled nodes", count(data.get("labelled"))),
        ("components", count(data.get("components"))),
    ]
    return {
        "facts": [{"name": name, "value": value} for name, value in facts if value is not None],
        "words": words.data(data, splits),
        "class_counts": _class_counts(data, classes),
        "homophily": _homophily(data),
        "ccns": _square(data.get("ccns"), data.get("class_counts"), classes),
        "report": paragraph(data.get("report")),
    }


def _class_counts(data: Mapping[str, Any], classes: Sequence[str]) -> list[dict[str, Any]]:
    sizes = [count(size) for size in sequence(data.get("class_counts"))]
    known = [(k, size) for k, size in enumerate(sizes[: len(classes)]) if size is not None]
    if len(known) > _MOST_BARS:
        known.sort(key=lambda entry: (-entry[1], entry[0]))
    bars: list[dict[str, Any]] = [{"class": k, "count": size} for k, size in known[:_MOST_BARS]]
    rest = known[_MOST_BARS:]
    if rest:
        bars.append({"class": None, "classes": len(rest), "count": sum(size for _, size in rest)})
    return bars


def _homophily(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    measures = mapping(data.get("homophily"))
    return [
        {"name": _measure(name), "value": number(value)}
        for name, value in measures.items()
        if number(value) is not None
    ]


def _measure(name: str) -> str | None:
    return f"{name} homophily" if name in ("edge", "node", "adjusted") else text(name.replace("_", " "))


def _square(matrix: Any, sizes: Any, classes: Sequence[str]) -> dict[str, Any] | None:
    """A matrix over classes, of the most frequent ones where there are many."""
    values = [numbers(row) for row in sequence(matrix)]
    if not values or len(values) != len(classes) or any(len(row) != len(values) for row in values):
        return None
    kept = _largest([count(size) or 0 for size in sequence(sizes)] or [0] * len(values), len(values))
    return {
        "classes": kept,
        "values": [[values[a][b] for b in kept] for a in kept],
        "left_out": len(values) - len(kept),
    }


def _largest(sizes: Sequence[int], total: int) -> list[int]:
    if total <= _MOST_CLASSES or len(sizes) != total:
        return list(range(min(total, _MOST_CLASSES)))
    return sorted(np.argsort(-np.asarray(sizes), kind="stable")[:_MOST_CLASSES].tolist())


# ------------------------------------------------------------------------ score


def _score(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    del classes
    named = [
        ("model", "This model", pick(result, "test")),
        ("features", "Features only, no graph", pick(result, "floors", "features_only")),
        ("majority", "Always the largest class", pick(result, "floors", "majority")),
    ]
    bars = [
        {
            "kind": kind,
            "name": name,
            "mean": number(pick(value, "mean")),
            "std": number(pick(value, "std")),
            "values": _several([value for value in numbers(pick(value, "per_split"))[:100] if value is not None]),
        }
        for kind, name, value in named
    ]
    bars = [bar for bar in bars if bar["mean"] is not None]
    if not bars or bars[0]["kind"] != "model":
        return _absent("There were no labelled test nodes, so there is no accuracy to show.") | {"bars": bars}
    return {
        "metric": words.metric_name(result),
        "bars": bars,
        "words": words.score(result),
        "validation": number(pick(result, "validation", "mean")),
    }


def _several(values: list[float]) -> list[float]:
    """Single splits, where there are more than one: a single one is the mean."""
    return values if len(values) > 1 else []


# ---------------------------------------------------------------------- choices


def _choice(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    del classes
    tried = rows(pick(result, "candidates"))[:_MOST_TABLE]
    if not tried:
        return _absent("Nothing was compared: the settings were given.") | {"words": words.choice(result)}
    recipes = [_flat(mapping(candidate.get("recipe"))) for candidate in tried]
    keys = list(dict.fromkeys(key for recipe in recipes for key in recipe))
    varied = [key for key in keys if len({recipe.get(key) for recipe in recipes}) > 1]
    members = {count(member) for member in sequence(pick(result, "chosen", "members"))}
    table = [
        {
            "name": text(candidate.get("name")) or f"candidate {i + 1}",
            "settings": [f"{key} {recipe[key]}" for key in varied if key in recipe],
            "val_metric": number(candidate.get("val_metric")),
            "val_loss": number(candidate.get("val_loss")),
            "seconds": number(candidate.get("seconds")),
            "epochs": count(candidate.get("epochs")),
            "chosen": candidate.get("chosen") is True or i in members,
            "why": text(candidate.get("why"), 300) or "",
        }
        for i, (candidate, recipe) in enumerate(zip(tried, recipes, strict=True))
    ]
    return {
        "rows": table,
        "common": [f"{key} {recipes[0][key]}" for key in keys if key not in varied and len(tried) > 1],
        "words": words.choice(result),
        "metric": words.metric_name(result),
    }


def _flat(recipe: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, str]:
    """A nested recipe as one table of short strings."""
    flat: dict[str, str] = {}
    for key, value in recipe.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and depth < 4:
            flat |= _flat(mapping(value), f"{name}.", depth + 1)
        else:
            shown = text(value, 60)
            flat[text(name, 60) or ""] = shown if shown is not None else (text(repr(value), 60) or "")
    return flat


# -------------------------------------------------------------------- confusion


def _confusion(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    table = [[count(value) or 0 for value in sequence(row)] for row in sequence(pick(result, "confusion"))]
    k = len(classes)
    if len(table) != k or any(len(row) != k for row in table) or not any(map(sum, table)):
        return _absent("There were no labelled test nodes to compare predictions with.")
    support = [sum(row) for row in table]
    kept = _largest(support, k)
    counts = [[table[a][b] for b in kept] for a in kept]
    if len(kept) < k:  # predictions outside the shown classes must not vanish from the rows
        for row, a in zip(counts, kept, strict=True):
            row.append(support[a] - sum(row))
    right = sum(table[a][a] for a in range(k))
    return {
        "classes": kept,
        "counts": counts,
        "left_out": k - len(kept),
        "right": right,
        "total": sum(support),
        "words": words.confusion(table, classes),
    }


def _per_class(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    place = {name: k for k, name in enumerate(classes)}
    entries = [
        {
            "name": text(row.get("class")) or "",
            "class": place.get(text(row.get("class")) or ""),
            "support": count(row.get("support")),
            "precision": number(row.get("precision")),
            "recall": number(row.get("recall")),
        }
        for row in rows(pick(result, "per_class"))
    ]
    if not any(entry["support"] for entry in entries):
        return _absent("There were no labelled test nodes, so classes cannot be judged one by one.")
    if len(entries) > _MOST_TABLE:
        entries.sort(key=lambda entry: -(entry["support"] or 0))  # type: ignore[operator]
    return {"rows": entries[:_MOST_TABLE], "left_out": max(0, len(entries) - _MOST_TABLE)}


# --------------------------------------------------------------------- training


def _curves(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    del classes
    drawn = []
    for entry in rows(pick(result, "curves"))[:5]:
        lines = {key: numbers(entry.get(key)) for key in ("train_loss", "val_loss", "val_metric")}
        length = max(map(len, lines.values()))
        if all(sum(value is not None for value in line) < 2 for line in lines.values()):
            continue
        at = np.unique(np.linspace(0, length - 1, min(length, _MOST_POINTS)).round().astype(int)).tolist()
        best = count(entry.get("best_epoch"))
        drawn.append(
            {
                "name": text(entry.get("name")) or "",
                "epochs": length,
                "at": at,
                **{key: [_rounded(line[i]) for i in at if i < len(line)] for key, line in lines.items()},
                "best": best if best is not None and best <= length else None,
            }
        )
    if not drawn:
        return _absent("The course of the training was not kept.")
    return {"members": drawn, "metric": words.metric_name(result)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _attention(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    del classes
    members: list[dict[str, Any]] = []
    for entry in rows(pick(result, "attention"))[:5]:
        channels: list[dict[str, Any]] = [
            {
                "name": text(channel.get("name")) or "",
                "what": text(channel.get("what")) or "",
                "weight": number(channel.get("weight")),
                "group": group(text(channel.get("name")) or ""),
            }
            for channel in rows(entry.get("channels"))[:_MOST_TABLE]
        ]
        channels = [channel for channel in channels if channel["weight"] is not None]
        if channels:
            name = text(entry.get("member")) or f"member {len(members) + 1}"
            members.append({"name": name, "words": words.attention(channels), "channels": channels})
            for channel in channels:
                channel["name"] = words.symbol(channel["name"])
    if not members:
        return _absent("The weights of the channels are not known.")
    return {"members": members}


def group(channel: str) -> str:
    """What a channel shows, by its name: the features themselves, a hop, a scale of the tree, or something else.

    Examples
    --------
    >>> [group(name) for name in ("X", "S~^2 X", "F_3 S X", "degrees")]
    ['features', 'hops', 'scales', 'other']
    """
    if _SCALE.search(channel):
        return "scales"
    if _HOP.match(channel):
        return "hops"
    return "features" if channel == "X" else "other"


# ------------------------------------------------------------------------- ends


def _unsure(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    place = {name: k for k, name in enumerate(classes)}
    entries = []
    for row in rows(pick(result, "unsure"))[:50]:
        named = {key: text(row.get(key)) for key in ("predicted", "second", "true")}
        entries.append(
            {
                "id": text(row.get("id")) or "",
                **{key: {"name": name, "class": place.get(name)} for key, name in named.items() if name is not None},
                "probability": number(row.get("probability")),
                "second_probability": number(row.get("second_probability")),
            }
        )
    return {"rows": entries} if entries else _absent("No node was found about which the model is in doubt.")


def _warnings(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    del classes
    found = [
        {"kind": text(row.get("kind")) or "", "text": text(row.get("text"), 2_000)}
        for row in rows(pick(result, "warnings"))
        if text(row.get("text"))
    ]
    return {"rows": found[:100]} if found else _absent("Nothing suspicious was found.")


def _repeat(result: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    del classes
    where = " ".join(filter(None, map(text, sequence(pick(result, "source", "where")))))
    options = _flat(mapping(pick(result, "source", "options")))
    seconds = mapping(pick(result, "seconds"))
    took = [f"{name} {words.duration(value)}" for name, value in seconds.items() if number(value) is not None]
    budget = number(pick(result, "budget"))
    facts = {
        "data": text(" ".join([where, *(f"{key}={value}" for key, value in options.items())]).strip(), 400),
        "seed": text(pick(result, "seed")),
        "made": text(pick(result, "when")),
        "time": ", ".join(took) or None,
        "time budget": words.duration(budget) if budget is not None else None,
        "versions": ", ".join(f"{name} {text(value)}" for name, value in mapping(pick(result, "versions")).items()),
    }
    return {
        "command": text(pick(result, "command"), 4_000),
        "facts": [{"name": name, "value": value} for name, value in facts.items() if value],
    }


def _absent(sentence: str) -> dict[str, Any]:
    return {"absent": sentence}


SECTIONS = {
    "data": _data,
    "score": _score,
    "choice": _choice,
    "confusion": _confusion,
    "per_class": _per_class,
    "curves": _curves,
    "attention": _attention,
    "unsure": _unsure,
    "warnings": _warnings,
    "repeat": _repeat,
}
