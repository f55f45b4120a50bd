"""The sections of the report as plain data: what is known, in an order and size that a page can show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pegfan import _defaults as default
from pegfan.metrics import METRICS
from pegfan.report import words
from pegfan.report.words import short
from pegfan.results import Attention, Candidate, Curve, Predicted, Result, Rival, Spread, verdict

__all__ = ["SECTIONS", "colours", "reasons", "sections"]

_MOST_CLASSES = 20
"""Rows of a matrix of classes; the rest share one."""
_MOST_BARS = 40
_MOST_TABLE = 400
_MOST_POINTS = 240
_MOST_MEMBERS = default.MEMBERS
_MOST_PARTS = 8
_OWN_COLOURS = 10
"""Classes with a colour of their own, the most frequent ones; the others are grey."""


def sections(result: Result) -> dict[str, Any]:
    """Every section that is made of the result alone, by name. An absent one is ``{"absent": sentence}``.

    Where numbers are predicted, what is said of classes and probabilities makes room for them.
    """
    made = SECTIONS if result.data.target is None else _NUMBER_SECTIONS
    return {name: make(result) for name, make in made.items()}


def colours(sizes: Sequence[int]) -> list[int]:
    """The colour of every class: its place in the palette, or −1 for grey where there are more classes than colours.

    Examples
    --------
    >>> colours([5, 9, 2])
    [0, 1, 2]
    >>> colours([1] * 4 + [7] * 10)[2:6]
    [-1, -1, 0, 1]
    """
    largest = _largest(sizes, _OWN_COLOURS)
    return [largest.index(k) if k in largest else -1 for k in range(len(sizes))]


def _data(result: Result) -> dict[str, Any]:
    data = result.data
    measures = ("edge_homophily", "node_homophily", "adjusted_homophily", "label_informativeness")
    return {
        "facts": _facts(
            {
                "nodes": data.nodes - data.things,
                "things that only links name": data.things or None,
                "directed links" if data.directed else "undirected links": data.edges,
                "features": data.features,
                "classes": _present(data.class_counts) if data.target is None else None,
                "labelled nodes" if data.target is None else "nodes with a known number": data.labelled,
                "components": data.components,
            }
        ),
        "words": words.data(result),
        "class_counts": _class_counts(data.class_counts),
        "homophily": _facts({name.replace("_", " "): getattr(data, name) for name in measures}),
        "ccns": None if data.ccns is None else _square(data.ccns, data.class_counts),
        "report": None if data.report is None else short(data.report, 20_000),
    }


def _facts(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in facts.items() if value is not None]


def _class_counts(sizes: Sequence[int]) -> list[dict[str, Any]]:
    known = [(k, size) for k, size in enumerate(sizes) if size]  # a class may be named that no node has
    if len(known) > _MOST_BARS:
        known.sort(key=lambda entry: (-entry[1], entry[0]))
    bars: list[dict[str, Any]] = [{"class": k, "count": size} for k, size in known[:_MOST_BARS]]
    rest = known[_MOST_BARS:]
    if rest:
        bars.append({"class": None, "classes": len(rest), "count": sum(size for _, size in rest)})
    return bars


def _square(matrix: Sequence[Sequence[float | None]], sizes: Sequence[int]) -> dict[str, Any]:
    """A matrix over classes, of the most frequent ones where there are many."""
    kept = [k for k in _largest(sizes, _MOST_CLASSES) if sizes[k]]
    values = [[matrix[a][b] for b in kept] for a in kept]
    return {"classes": kept, "values": values, "left_out": _present(sizes) - len(kept)}


def _present(sizes: Sequence[int]) -> int:
    """How many classes have a node; all of them where none has."""
    return sum(map(bool, sizes)) or len(sizes)


def _largest(sizes: Sequence[int], most: int) -> list[int]:
    return sorted(np.argsort(-np.asarray(sizes), kind="stable")[:most].tolist())


def _score(result: Result) -> dict[str, Any]:
    named = [
        ("model", "This model", result.test),
        ("features", "Features only, no graph", result.features_only),
        ("majority", f"Always the {'largest class' if result.data.target is None else 'mean'}", result.majority),
    ]
    metric = METRICS[result.data.metric]
    bars = [_bar(kind, name, spread) for kind, name, spread in named if spread and spread.mean is not None]
    if not bars or bars[0]["kind"] != "model":
        return _absent("There were no labelled test nodes, so there is no accuracy to show.") | {"bars": bars}
    return {
        "metric": words.metric_name(result),
        "bars": bars,
        "words": f"{words.judged(result)} {words.score(result)}",
        "top": None if metric.percent else 1.0 if metric.larger else 1.1 * max(map(_far, bars)),
        "validation": result.validation and result.validation.mean,
    }


def _bar(kind: str, name: str, spread: Spread) -> dict[str, Any]:
    values = [value for value in spread.per_split[:100] if value is not None]
    several = values if len(values) > 1 else []  # a single split is the mean
    line = spread.interval or _deviation(spread)
    return {"kind": kind, "name": name, "mean": spread.mean, "std": spread.std, "values": several, "line": line} | (
        {} if spread.interval is None else {"interval": spread.interval}
    )


def _deviation(spread: Spread) -> tuple[float, float] | None:
    return None if spread.mean is None or spread.std is None else (spread.mean - spread.std, spread.mean + spread.std)


def _far(bar: Mapping[str, Any]) -> float:
    """The largest value that a bar shows."""
    return float(max([bar["mean"], *(bar["line"] or ()), *bar["values"]]))


def _probabilities(result: Result) -> dict[str, Any]:
    """How far probabilities can be believed, and from which one on a class is decided on."""
    found = result.calibrated
    if found is None or not found.after:
        return _absent("It is not known how far the probabilities can be believed.")
    data = result.data
    shown = {
        name: [_members(row, "said", "true", "nodes") for row in getattr(found, name)] for name in ("before", "after")
    }
    return {
        "words": words.calibration(result),
        "decision": words.decision(result),
        "class": 1 if len(data.classes) == 2 else None,
        "threshold": None if result.decided is None else result.decided.threshold,
        "used": found.used,
        **shown,
    }


def _against(result: Result) -> dict[str, Any]:
    rows = result.against[:_MOST_TABLE]
    if not rows:
        return _absent("It was not compared with other models: pegfan train --against does that, and pegfan compare.")
    best = next((row.test.mean or 0.0 for row in rows if row.test is not None), 0.0)
    shown = [_rival(row, place, best) for place, row in enumerate(rows)]
    ends = [end for row in shown for end in (*row["values"], *row["line"], row["mean"]) if end is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    margin = 0.06 * (high - low) or 0.01
    return {
        "rows": shown,
        "scale": [max(0.0, low - margin), min(1.0, high + margin)],
        "metric": words.metric_name(result),
        "words": verdict(rows, result.data.metric),
        "budget": None if result.chosen is None else words.unequal(result),
    }


def _rival(row: Rival, place: int, best: float) -> dict[str, Any]:
    test = row.test or Spread(None, None)
    return {
        "name": short(row.label),
        "kind": "absent" if row.test is None else "best" if place == 0 else "even" if row.means_nothing else "behind",
        "mean": test.mean,
        "std": test.std,
        "values": [value for value in test.per_split[:100] if value is not None],
        "line": [min(1.0, max(0.0, best + end)) for end in row.interval or ()],
        "validation": row.validation and row.validation.mean,
        **_members(row, "difference", "interval", "seconds", "search_seconds", "memory"),
        "how": short(row.how, 300) or None,
        "reason": short(row.reason, 1_000),
    }


def _choice(result: Result) -> dict[str, Any]:
    tried = result.candidates[:_MOST_TABLE]
    if not tried:
        return _absent("Nothing was compared: the settings were given.") | {"words": words.choice(result)}
    recipes = [_flat({**candidate.recipe.to_dict(), "head": candidate.recipe.head}) for candidate in tried]
    keys = list(dict.fromkeys(key for recipe in recipes for key in recipe))
    usual = {key: Counter(recipe.get(key) for recipe in recipes).most_common(1)[0][0] for key in keys}
    table = [
        {
            "name": short(candidate.name),
            "settings": _unusual(recipe, usual),
            "boosted": candidate.recipe.is_boosted,
            **_members(candidate, "val_metric", "val_loss", "seconds", "epochs", "chosen"),
            "weight": candidate.weight if 0 < candidate.weight <= 1 else None,
            "why": short(candidate.why, 300),
        }
        for candidate, recipe in zip(tried, recipes, strict=True)
    ]
    return {
        "rows": table,
        "families": _families(result.candidates),
        "usual": [f"{key} {value}" for key, value in usual.items() if value is not None and len(tried) > 1],
        "words": words.choice(result),
        "metric": words.metric_name(result),
    }


def _families(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """How much each kind of model weighs in the model, the heaviest first; nothing where there is one kind."""
    weights: dict[str, float] = {}
    for candidate in candidates:
        if 0 < candidate.weight <= 1:
            family = words.family(candidate.recipe)
            weights[family] = weights.get(family, 0.0) + candidate.weight
    heaviest = sorted(weights.items(), key=lambda pair: -pair[1])
    return [{"name": name, "weight": weight} for name, weight in heaviest] if len(weights) > 1 else []


def _unusual(recipe: Mapping[str, str], usual: Mapping[str, str | None]) -> list[str]:
    """The settings that are not those of most candidates.

    Examples
    --------
    >>> _unusual({"hops": "3", "kind": "c"}, {"hops": "1", "kind": "c", "leaves": "8"})
    ['hops 3', 'no leaves']
    """
    own = {key: recipe.get(key) for key, value in usual.items() if recipe.get(key) != value}
    return [f"no {key}" if value is None else f"{key} {value}" for key, value in own.items()]


def _flat(recipe: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, str]:
    """A nested recipe as one table of short strings."""
    flat: dict[str, str] = {}
    for key, value in recipe.items():
        if isinstance(value, Mapping) and depth < 4:
            flat |= _flat(value, f"{prefix}{key}.", depth + 1)
        else:
            flat[short(f"{prefix}{key}", 60)] = short(str(value), 60)
    return flat


def _confusion(result: Result) -> dict[str, Any]:
    table, support = result.confusion, list(map(sum, result.confusion))
    if not sum(support):
        return _absent("There were no labelled test nodes to compare predictions with.")
    held = result.data.class_counts
    met = [k for k in range(len(table)) if support[k] or held[k] or any(row[k] for row in table)]
    kept = [k for k in _largest(support, _MOST_CLASSES) if k in met]
    counts = [[table[a][b] for b in kept] for a in kept]
    if len(kept) < len(met):  # predictions outside the shown classes must not vanish from the rows
        for row, a in zip(counts, kept, strict=True):
            row.append(support[a] - sum(row))
    return {
        "classes": kept,
        "counts": counts,
        "left_out": len(met) - len(kept),
        "right": sum(table[a][a] for a in range(len(table))),
        "total": sum(support),
        "words": words.confusion(table, list(map(short, result.data.classes))),
    }


def _per_class(result: Result) -> dict[str, Any]:
    if not any(row.support for row in result.per_class):
        return _absent("There were no labelled test nodes, so classes cannot be judged one by one.")
    counts = dict(zip(result.data.classes, result.data.class_counts, strict=True))
    rows = [row for row in result.per_class if counts.get(row.name, 1)]  # a class may be named that no node has
    left_out = max(0, len(rows) - _MOST_TABLE)
    if left_out:
        rows.sort(key=lambda row: -row.support)
    numbers = ("support", "precision", "recall")
    shown = [_named(result, row.name) | _members(row, *numbers) for row in rows[:_MOST_TABLE]]
    return {"rows": shown, "left_out": left_out}


def _curves(result: Result) -> dict[str, Any]:
    boosted = _boosted(result)
    known = [
        drawn | {"boosted": curve.name in boosted}
        for curve in result.curves[:_MOST_MEMBERS]
        if (drawn := _curve(curve))
    ]
    if not known:
        return _absent("The curves of the training were not kept.")
    return {"members": known, "metric": words.metric_name(result)}


def _curve(curve: Curve) -> dict[str, Any] | None:
    lines = {key: getattr(curve, key) for key in ("train_loss", "val_loss", "val_metric")}
    length = max(map(len, lines.values()))
    if all(sum(value is not None for value in line) < 2 for line in lines.values()):
        return None
    at = np.unique(np.linspace(0, length - 1, min(length, _MOST_POINTS)).round().astype(int)).tolist()
    return {
        "name": short(curve.name),
        "epochs": length,
        "at": at,
        **{key: [line[i] and float(f"{line[i]:.4g}") for i in at if i < len(line)] for key, line in lines.items()},
        "best": curve.best_epoch if curve.best_epoch <= length else None,
    }


def _attention(result: Result) -> dict[str, Any]:
    boosted = _boosted(result)
    members = [
        _member(entry) | {"boosted": entry.member in boosted}
        for entry in result.attention[:_MOST_MEMBERS]
        if entry.channels
    ]
    return {"members": members} if members else _absent("The weights of the channels are not known.")


def _boosted(result: Result) -> set[str]:
    """The names of candidates that are boosted trees: these have rounds and gains, not epochs and weights."""
    return {candidate.name for candidate in result.candidates if candidate.recipe.is_boosted}


def _member(entry: Attention) -> dict[str, Any]:
    channels = entry.channels[:_MOST_TABLE]
    shown = [{"name": short(c.symbol), "what": short(c.words), "weight": c.weight, "group": c.group} for c in channels]
    return {"name": short(entry.member), "words": words.attention(channels), "channels": shown}


def _unsure(result: Result) -> dict[str, Any]:
    entries = [
        {
            "id": short(row.id),
            "predicted": _named(result, row.predicted),
            "second": _named(result, row.second),
            **({} if row.true is None else {"true": _named(result, row.true)}),
            **_members(row, "probability", "second_probability"),
        }
        for row in result.unsure[:50]
    ]
    return {"rows": entries} if entries else _absent("The model is not in doubt about any node.")


def _ranking(result: Result) -> dict[str, Any]:
    ranking = result.ranking
    if ranking is None or not ranking.rows:
        return _absent("There is no node without a label, and no test node, to rank.")
    rows = [
        {
            "id": short(row.id),
            "class": _named(result, row.target),
            "probability": row.probability,
            **({} if row.true is None else {"true": _named(result, row.true)}),
        }
        for row in ranking.rows[:_MOST_TABLE]
    ]
    by = None if ranking.by is None else _named(result, ranking.by)
    return {"rows": rows, "words": words.ranking(ranking), "total": ranking.total, "by": by}


def _finding(result: Result) -> dict[str, Any]:
    if not result.precision_recall:
        return _absent("There were no labelled test nodes of more than one class to look for.")
    shown = [
        {
            **_named(result, curve.name),
            **_members(curve, "positives", "total", "average_precision"),
            "recall": [round(value, 4) for value in curve.recall[:_MOST_POINTS]],
            "precision": [round(value, 4) for value in curve.precision[:_MOST_POINTS]],
            "gains": [_members(gain, "share", "nodes", "found", "precision", "recall", "lift") for gain in curve.gains],
        }
        for curve in result.precision_recall[:_MOST_CLASSES]
    ]
    return {"curves": shown, "words": words.finding(result.precision_recall)}


def _importance(result: Result) -> dict[str, Any]:
    found = result.importances
    if found is None or not found.rows:
        return _absent("It was not measured which columns matter.")
    rows = [{"name": short(row.name), **_members(row, "columns", "drop", "std", "loss")} for row in found.rows]
    return {
        "rows": rows[:_MOST_TABLE],
        "left_out": found.left_out,
        "larger": METRICS[result.data.metric].larger,
        "metric": words.metric_name(result),
        "words": words.importance(found, result.data.metric),
    }


def reasons(result: Result) -> dict[str, Any]:
    """The reasons of single nodes by their ids, for the lists and the picture."""
    return {
        short(row.id): {
            "class": _named(result, row.target),
            "score": round(row.score, 3),
            "average": round(row.average, 3),
            "parts": [[short(part.words), round(part.contribution, 3)] for part in row.parts[:_MOST_PARTS]],
            "groups": {short(name, 20): round(value, 3) for name, value in row.groups.items()},
        }
        for row in result.reasons[:_MOST_TABLE]
    }


def _warnings(result: Result) -> dict[str, Any]:
    found = [{"kind": short(note.kind), "text": short(note.text, 2_000)} for note in result.warnings[:100]]
    return {"rows": found} if found else _absent("Nothing suspicious was found.")


def _repeat(result: Result) -> dict[str, Any]:
    took, source = result.seconds, result.source
    spent = {} if took is None else _members(took, "total", "search", "final")
    options = {} if source is None else _flat(source.options)
    where = [] if source is None else map(short, source.where)
    facts = {
        "data": short(" ".join([*where, *(f"{key}={value}" for key, value in options.items())]), 400),
        "seed": None if result.seed is None else str(result.seed),
        "made": short(result.when or ""),
        "time": ", ".join(f"{name} {words.duration(value)}" for name, value in spent.items() if value is not None),
        "time budget": None if result.budget is None else words.duration(result.budget),
        "versions": ", ".join(f"{name} {short(value)}" for name, value in result.versions.items()),
    }
    return {
        "command": result.command and short(result.command, 4_000),
        "facts": _facts({name: value or None for name, value in facts.items()}),
    }


def _members(part: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(part, name) for name in names}


def _named(result: Result, name: str) -> dict[str, Any]:
    """A class by its name and its place among the classes."""
    classes = result.data.classes
    return {"name": short(name), "class": classes.index(name) if name in classes else None}


def _absent(sentence: str) -> dict[str, Any]:
    return {"absent": sentence}


def _numbers(result: Result) -> dict[str, Any]:
    """How far predicted numbers are off: scores, predicted against true ones, residuals, and the largest errors."""
    found = result.regression
    if found is None or not found.points:
        return _absent("There were no test nodes whose number is known, so nothing says how far predictions are off.")
    names = ("This model", "Features only, no graph", "Always the mean")
    scores = [
        {
            "name": name,
            **{metric: spreads[k].shown(metric, 1).replace("-", "−") for metric, spreads in found.scores.items()},
        }
        for k, name in enumerate(names)
    ]
    return {
        "words": words.errors_of(result),
        "scores": scores,
        "points": [[_brief(row.true), _brief(row.value)] for row in found.points],
        "ids": [short(row.id) for row in found.points],
        "worst": [_predicted(row) for row in found.worst],
    }


def _first_numbers(result: Result) -> dict[str, Any]:
    found = result.regression
    if found is None or not found.first:
        return _absent("There is no node without a known number, and no test node, to list.")
    rows = [_predicted(row) for row in found.first[:_MOST_TABLE]]
    return {"rows": rows, "words": words.ranked_numbers(found), "total": found.total, "numeric": True}


def _predicted(row: Predicted) -> dict[str, Any]:
    return {"id": short(row.id), "value": _brief(row.value), "true": _brief(row.true)}


def _brief(value: float | None) -> float | None:
    """A number in as many digits as anybody reads."""
    return None if value is None else float(f"{value:.7g}")


SECTIONS = {
    "data": _data,
    "score": _score,
    "ranking": _ranking,
    "finding": _finding,
    "importance": _importance,
    "against": _against,
    "choice": _choice,
    "probabilities": _probabilities,
    "confusion": _confusion,
    "per_class": _per_class,
    "curves": _curves,
    "attention": _attention,
    "unsure": _unsure,
    "warnings": _warnings,
    "repeat": _repeat,
}

_NUMBER_SECTIONS = {
    "data": _data,
    "score": _score,
    "numbers": _numbers,
    "ranking": _first_numbers,
    "importance": _importance,
    "choice": _choice,
    "curves": _curves,
    "attention": _attention,
    "warnings": _warnings,
    "repeat": _repeat,
}
