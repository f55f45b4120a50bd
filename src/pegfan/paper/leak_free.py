"""The leak-free table: every model on graphs without duplicated nodes, by one protocol. It is ours, not the paper's."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pegfan.comparison import CONTENDERS, Comparison, compare
from pegfan.datasets import Source
from pegfan.experiments.store import Store
from pegfan.paper.documents import MISSING, Block, Document, Grid, Mark, Rows
from pegfan.results import Rival, gap
from pegfan.running import Progress

__all__ = ["LeakFree"]

TRIES = 4
CHANGES = {"epochs": 500, "patience": 50}
"""The budget of every model on every graph: settings that it may try on the first split, and epochs."""

SETS: dict[str, str] = {
    "chameleon-filtered": "",
    "chameleon-filtered-directed": "",
    "squirrel-filtered": "",
    "squirrel-filtered-directed": "",
    "facebook_Reed98": "graphs",
    "facebook_Amherst41": "graphs",
    "twitch_PTBR": "graphs",
    "twitch_RU": "graphs",
    "minesweeper": "",
    "amazon_photo": "graphs",
    "dblp": "graphs",
    "tolokers": "",
    "deezer_europe": "graphs",
    "musae_github": "graphs",
}
"""The graphs, small ones first; and the folder of those that are plain files, in the folder of data sets."""
_WITHOUT_SPLITS, _DRAWN = ("musae_github",), 5
"""A graph whose file has none, and how many are drawn for it: as many as the other files have."""


@dataclass(frozen=True)
class LeakFree:
    """All models on all graphs.

    Attributes
    ----------
    only
        Names of graphs and models to keep; all where none is named.
    """

    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = [name for name in self.only if name not in SETS and name not in CONTENDERS]
        if unknown:
            raise ValueError(
                f"this table has no {unknown[0]!r}; it has {', '.join(SETS)}; and rows {', '.join(CONTENDERS)}"
            )

    @property
    def name(self) -> str:
        """Of the files."""
        return "-".join(("leak-free", *self.only))

    @property
    def sets(self) -> list[str]:
        """The graphs that are compared on."""
        return [name for name in SETS if name in self.only] or list(SETS)

    @property
    def models(self) -> list[str]:
        """The models that are compared."""
        return [name for name in CONTENDERS if name in self.only] or list(CONTENDERS)

    def comparisons(
        self,
        store: Store,
        *,
        workers: int = 1,
        scheduler: str | None = None,
        progress: Progress | None = None,
        run: bool = True,
    ) -> Iterator[Comparison]:
        """Compare on one graph after another; with `run` false, only what the store holds."""
        for name in self.sets:
            source = find(name)
            if source is not None:
                found = compare(
                    source,
                    self.models,
                    splits=_DRAWN if name in _WITHOUT_SPLITS else None,
                    tries=TRIES,
                    changes=CHANGES,
                    store=store,
                    workers=workers,
                    scheduler=scheduler,
                    progress=progress,
                    run=run,
                )
                yield replace(found, title=name)

    def document(self, found: Sequence[Comparison], command: str) -> Document:
        """The table, what it costs, and what it says."""
        shown = [one for one in found if one.best is not None]
        document = Document(self.name, "The leak-free table: all models by one protocol", command)
        document.cells = [_cell(one, row) for one in found for row in one.rows]
        document.blocks.append(_opening(shown))
        if not shown:
            document.blocks += _reasons(found)
            return document
        document.blocks.append(_grid("Test metric in percent, mean over the splits", shown, _metric))
        document.blocks.append(
            "In bold the best. ≈: not to be told from the best, for the 95% interval of the paired difference "
            "(corrected for overlapping splits) holds 0. "
            "ROC AUC where the set's authors use it, accuracy otherwise."
        )
        document.blocks += self._of_pegfan(shown, document.summary)
        document.blocks += _ranks(shown, self.models, document.summary)
        document.blocks.append(_grid("CPU seconds per split, of the chosen settings", shown, _seconds))
        document.blocks.append(_grid("Peak memory of the process, MB", shown, _memory))
        document.blocks += _reasons(found)
        return document

    def guide(self, found: Sequence[Comparison], command: str) -> Document:
        """What the table says to somebody who has a graph and wants a model."""
        shown = [one for one in found if one.best is not None]
        document = Document("which-model", "Which model for which graph", command)
        document.blocks += [_GUIDE, *_kinds(shown, document.summary), *_graphs(shown), *_cost(shown, document.summary)]
        return document

    def _of_pegfan(self, shown: Sequence[Comparison], summary: dict[str, Any]) -> list[str]:
        """Where PEGFAN stands, also where that is not flattering."""
        lines, best, even = ["## What it says of PEGFAN"], [], []
        for one in shown:
            ran = [row for row in one.rows if row.test is not None]
            place = next((i for i, row in enumerate(ran) if row.name == "pegfan"), None)
            if place is None:
                continue
            row = ran[place]
            if place == 0:
                best.append(one.title)
                lines.append(f"- {one.title}: the best of {len(ran)}, {row.test:.2f}.")
                continue
            if row.means_nothing:
                even.append(one.title)
            words = "which means nothing" if row.means_nothing else "which is a difference"
            where = f"place {place + 1} of {len(ran)}"
            lines.append(f"- {one.title}: {where}, {row.test:.2f}; {gap(row)} to {ran[0].label}, {words}.")
        summary["pegfan"] = {"best": best, "even": even, "graphs": len(lines) - 1}
        count = len(lines) - 1
        lines.insert(
            1,
            f"PEGFAN is the best on {len(best)} of {count} graphs, not to be told from the best on {len(even)} more, "
            f"and behind on {count - len(best) - len(even)}.",
        )
        return lines if count else []


def find(name: str) -> Source | None:
    """Where a graph is read; None for a file that is not there."""
    if not SETS[name]:
        return Source.of(name)
    path = Path(os.environ.get("PEGFAN_DATA", ".")) / SETS[name] / f"{name}.npz"
    return Source.of(path) if path.is_file() else None


def _opening(shown: Sequence[Comparison]) -> str:
    counts = sorted({len(one.splits.used) for one in shown})
    return (
        "Chameleon and squirrel of the paper leak: duplicates of training nodes are in the test sets. Here are graphs "
        f"without that. Every model tries {TRIES} settings of its own space (the default first, the others drawn with "
        "seed 0) on the first split; the best on validation is trained on "
        f"{' or '.join(map(str, counts)) or 'all'} splits, for at most {CHANGES['epochs']} epochs and "
        f"{CHANGES['patience']} without improvement of the validation loss. Split i is trained with seed i. Test nodes "
        "play no part in any choice. The same few tries are a small budget: published figures with hundreds of tries, "
        "or hidden layers of 512 columns, are higher for some models."
    )


def _grid(caption: str, shown: Sequence[Comparison], show: Any) -> Grid:
    names = [name for name in CONTENDERS if any(row.name == name for one in shown for row in one.rows)]
    rows: Rows = []
    for name in names:
        own = [next((row for row in one.rows if row.name == name), None) for one in shown]
        rows.append([CONTENDERS[name].label, *map(show, own, shown)])
    return Grid(caption, ["model", *(one.title for one in shown)], rows)


def _metric(row: Rival | None, one: Comparison) -> Mark:
    if row is None or row.test is None:
        return Mark(MISSING, ("missing",), row.reason if row else "")
    best = row is next(r for r in one.rows if r.test is not None)
    even = " ≈" if row.means_nothing and not best else ""
    return Mark(f"{row.test:.2f}{even}", ("best",) if best else ("agrees",) if even else (), row.how)


def _seconds(row: Rival | None, one: Comparison) -> str:
    del one
    return MISSING if row is None or row.seconds is None else f"{row.seconds:.1f}"


def _memory(row: Rival | None, one: Comparison) -> str:
    del one
    return MISSING if row is None or row.memory is None else f"{row.memory / 2**20:,.0f}"


def _ranks(shown: Sequence[Comparison], names: Sequence[str], summary: dict[str, Any]) -> list[Block]:
    """Mean places of the models over the graphs that all of them ran on."""
    whole = [one for one in shown if all(row.test is not None for row in one.rows)]
    if not whole:
        return []
    places: dict[str, list[int]] = {name: [] for name in names}
    behind: dict[str, list[float]] = {name: [] for name in names}
    for one in whole:
        for i, row in enumerate(one.rows):
            places[row.name].append(i + 1)
            behind[row.name].append(-100 * (row.difference or 0.0))
    order = sorted(names, key=lambda name: float(np.mean(places[name])))
    summary["ranks"] = {name: float(np.mean(places[name])) for name in order}
    rows: Rows = [
        [CONTENDERS[name].label, f"{np.mean(places[name]):.1f}", f"{np.mean(behind[name]):.2f}"] for name in order
    ]
    caption = f"Over the {len(whole)} graphs on which all models ran"
    return [Grid(caption, ["model", "mean place", "mean distance to the best, points"], rows)]


# ---------------------------------------------------------------------------- the guide

_GUIDE = (
    "Made from the leak-free table (leak-free.md), by the command above; nothing here is written by hand. A model's "
    "distance is how far it is behind the best of all on a graph, in points of the test metric; below are its means "
    "over graphs of a kind. Graphs differ more than kinds do: the answer for yours is `pegfan compare GRAPH`, and "
    "`pegfan compare GRAPH --models quick` has one within minutes. `pegfan info GRAPH` tells of which kind it is."
)
_SAME, _LARGE = 0.25, 10_000
_NEAR = 1.0
"""Points of distance within which a cheaper model will do."""

_KINDS: dict[str, Callable[[Comparison], bool]] = {
    "all graphs": lambda _: True,
    f"edges join nodes of one class (adjusted homophily of {_SAME} or more)": lambda one: _homophily(one) >= _SAME,
    "edges say little of the class, or join other classes (below that)": lambda one: _homophily(one) < _SAME,
    "features alone (MLP) beat edges alone (label propagation)": lambda one: _ahead(one, "mlp", "label-propagation"),
    "edges alone (label propagation) beat features alone (MLP)": lambda one: _ahead(one, "label-propagation", "mlp"),
    "directed": lambda one: one.data.directed,
    f"up to {_LARGE:,} nodes": lambda one: one.data.nodes <= _LARGE,
    f"more than {_LARGE:,} nodes": lambda one: one.data.nodes > _LARGE,
}


def _homophily(one: Comparison) -> float:
    return one.data.adjusted_homophily or 0.0


def _ahead(one: Comparison, first: str, second: str) -> bool:
    """Whether one model ran and is better than another that ran."""
    means = {row.name: row.test.mean or 0.0 for row in one.rows if row.test is not None}
    return first in means and second in means and means[first] > means[second]


def _distances(shown: Sequence[Comparison]) -> dict[str, float]:
    """Mean points behind the best, of the models that ran on all of these graphs; the nearest first."""
    behind: dict[str, list[float]] = {}
    for one in shown:
        for row in one.rows:
            if row.test is not None:
                behind.setdefault(row.name, []).append(-100 * (row.difference or 0.0))
    means = {name: float(np.mean(values)) for name, values in behind.items() if len(values) == len(shown)}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def _kinds(shown: Sequence[Comparison], summary: dict[str, Any]) -> list[Block]:
    rows: Rows = []
    for words, belongs in _KINDS.items():
        of = [one for one in shown if belongs(one)]
        behind = _distances(of)
        if not behind:
            continue
        near = [name for name in behind if behind[name] <= min(behind.values()) + _NEAR]
        seconds = {name: _median_seconds(of, name) for name in near}
        cheap = min(near, key=lambda name: seconds[name])
        places = list(behind)
        own = f"{places.index('pegfan') + 1} of {len(places)}" if "pegfan" in behind else MISSING
        best = ", ".join(f"{CONTENDERS[name].label} {behind[name]:.2f}" for name in places[:3])
        rows.append([words, str(len(of)), best, f"{CONTENDERS[cheap].label} ({seconds[cheap]:.1f} s)", own])
        summary.setdefault("kinds", {})[words] = {"graphs": [one.title for one in of], "distances": behind}
    columns = ["kind of graph", "graphs", "smallest mean distances", f"quickest within {_NEAR:g} point", "PEGFAN is"]
    return [Grid("By kind of graph", columns, rows)] if rows else []


def _median_seconds(shown: Sequence[Comparison], name: str) -> float:
    rows = [row for one in shown for row in one.rows if row.name == name and row.seconds is not None]
    return float(np.median([row.seconds or 0.0 for row in rows])) if rows else math.inf


def _graphs(shown: Sequence[Comparison]) -> list[Block]:
    rows: Rows = []
    for one in shown:
        ran = [row for row in one.rows if row.test is not None]
        even = [row for row in ran[1:] if row.means_nothing]
        quickest = min([ran[0], *even], key=lambda row: math.inf if row.seconds is None else row.seconds)
        data = one.data
        homophily = MISSING if data.adjusted_homophily is None else f"{data.adjusted_homophily:.2f}"
        others = ", ".join(row.label for row in even) or "none"
        rows.append([one.title, f"{data.nodes:,}", f"{data.edges:,}", homophily, ran[0].label, others, quickest.label])
    columns = ["graph", "nodes", "edges", "adjusted homophily", "best", "not to be told from it", "quickest of these"]
    return [Grid("Graph by graph", columns, rows)] if rows else []


def _cost(shown: Sequence[Comparison], summary: dict[str, Any]) -> list[Block]:
    """What models cost, as multiples of an MLP on the same graph."""
    ratios: dict[str, list[tuple[float, float]]] = {}
    for one in shown:
        ran = {row.name: row for row in one.rows if row.seconds and row.memory}
        for name, row in ran.items() if "mlp" in ran else ():
            base = ran["mlp"]
            ratios.setdefault(name, []).append((row.seconds / base.seconds, row.memory / base.memory))  # type: ignore[operator]
    medians = {name: np.median(values, axis=0).tolist() for name, values in ratios.items()}
    summary["cost"] = medians
    rows: Rows = [
        [CONTENDERS[name].label, f"{seconds:.1f}", f"{memory:.1f}"]
        for name, (seconds, memory) in sorted(medians.items(), key=lambda item: item[1][0])
    ]
    caption = "What they cost: CPU seconds and peak memory of a training, over those of an MLP; medians of the graphs"
    return [Grid(caption, ["model", "time", "memory"], rows)] if rows else []


# ------------------------------------------------------------------------------- cells


def _reasons(found: Sequence[Comparison]) -> list[str]:
    lines = []
    for one in found:
        reasons = [(row.label, row.reason) for row in one.rows if row.test is None and row.reason]
        if len(reasons) > 1 and {reason for _, reason in reasons} == {reasons[0][1]} and one.best is None:
            reasons = [("all models", reasons[0][1])]
        lines += [f"- {one.title}, {label}: {reason}" for label, reason in reasons]
    return ["## What did not run", *lines] if lines else []


def _cell(one: Comparison, row: Rival) -> dict[str, Any]:
    test = row.test
    return {
        "table": "leak-free",
        "set": one.title,
        "row": row.name,
        "label": row.label,
        "metric": one.data.metric,
        "ours": None if test is None or test.mean is None else 100 * test.mean,
        "std": None if test is None or test.std is None else 100 * test.std,
        "runs": 0 if test is None else len(test.per_split),
        "values": [] if test is None else [100 * (value or 0.0) for value in test.per_split],
        "validation": None if row.validation is None else 100 * (row.validation.mean or 0.0),
        "difference": None if row.difference is None else 100 * row.difference,
        "interval": None if row.interval is None else [100 * end for end in row.interval],
        "means_nothing": row.means_nothing,
        "settings": dict(row.recipe),
        "seconds": row.seconds,
        "search_seconds": row.search_seconds,
        "memory": row.memory,
        "reason": row.reason,
    }
