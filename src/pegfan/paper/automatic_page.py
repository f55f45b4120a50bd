"""The page on how well ``pegfan train`` does by itself, rendered from stored runs; it is the first to read tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pegfan._extras import need
from pegfan.experiments.store import Store
from pegfan.metrics import METRICS
from pegfan.paper.automatic import GRAPHS, LEAK_FREE, SETS, Automatic, Run, Turn
from pegfan.paper.benchmarks import Table3
from pegfan.paper.cells import Options, lookup, read_notes
from pegfan.paper.documents import MISSING, Block, Document, Grid, Mark, Picture, Rows, write
from pegfan.paper.figures import save
from pegfan.paper.leak_free import LeakFree
from pegfan.paper.published import BEST, DATASETS, TABLE3, Model
from pegfan.results import paired_difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pegfan.comparison import Comparison

__all__ = ["family", "render"]

TYPE_C = Model.of("c8")
"""The paper's best row, which automatic training stands beside."""
NOT_RUN = "not run"

FAMILIES = (
    "network with a tree",
    "network without a tree",
    "features alone",
    "second stage",
    "boosting",
    "linear",
    "graph network",
)
"""What members of an ensemble may be, as they are counted."""


def family(recipe: Mapping[str, Any]) -> str:
    """What a recipe is, in the words of `FAMILIES`.

    Examples
    --------
    >>> family({"method": "ward", "hops": 3}), family({"method": "none", "hops": 0}), family({"head": "boosting"})
    ('network with a tree', 'features alone', 'boosting')
    """
    if "model" in recipe:
        return "graph network"
    if recipe.get("stages", 1) > 1:
        return "second stage"
    if recipe.get("head") in ("boosting", "linear"):
        return str(recipe["head"])
    if recipe.get("method") != "none" or recipe.get("tree_file"):
        return "network with a tree"
    return "network without a tree" if recipe.get("hops", 1) else "features alone"


@dataclass(frozen=True)
class Beside:
    """The best model of a comparison, on the splits that were trained automatically.

    Attributes
    ----------
    label, values
        The model, and its test metrics in percent, split by split.
    difference, interval
        Of automatic training to it, in points; the 95% interval is None for a single split.
    models
        How many ran.
    """

    label: str
    values: list[float]
    difference: float
    interval: tuple[float, float] | None
    models: int

    @classmethod
    def of(cls, runs: Sequence[Run], found: Comparison | None) -> Beside | None:
        """None where no model ran on these splits, or was judged by another metric."""
        if found is None or not runs or found.data.metric != runs[0].metric:
            return None
        places = {split: place for place, split in enumerate(found.splits.used)}
        if any(run.split not in places for run in runs):
            return None
        rows = [
            (row.label, [100 * (row.test.per_split[places[run.split]] or 0.0) for run in runs])
            for row in found.rows
            if row.test is not None
        ]
        if not rows:
            return None
        label, values = max(rows, key=lambda row: float(np.mean(row[1])))
        sizes = [found.splits.sizes[run.split] for run in runs]
        ratio = float(np.mean([test / max(train, 1) for train, _, test in sizes]))
        return cls(label, values, *paired_difference(_values(runs), values, ratio), len(rows))

    @property
    def gap(self) -> str:
        """The difference and its interval."""
        ends = "" if self.interval is None else " ({:+.2f} to {:+.2f})".format(*self.interval)
        return f"{self.difference:+.2f}{ends}"

    @property
    def means_nothing(self) -> bool:
        """Whether splits explain the difference."""
        return self.interval is None or self.interval[0] <= 0 <= self.interval[1]


def render(
    table: Automatic, store: Store, folder: str | Path, command: str, failed: Mapping[Turn, str] | None = None
) -> Document:
    """Write the page of what the store holds, its four files and its pictures.

    Parameters
    ----------
    table
        Which sets, budget and seed.
    store
        With automatic runs; and with those of Table III and of the leak-free table, which stand beside them.
    folder
        Where to; sentences of its ``notes.toml`` are shown.
    command
        The command line that makes the page.
    failed
        Why turns failed just now.
    """
    need("matplotlib", "plots", "the page")
    page = _Page(table, store)
    document = Document(table.name, "What pegfan train reaches by itself", command)
    document.cells = [page.cell(name) for name in table.sets]
    document.blocks += [page.opening(), page.looks(), *read_notes(folder, table.name).values()]
    document.blocks += page.sums(document.summary)
    for name, (figure, words) in page.pictures().items():
        files = save(figure, Path(folder) / f"{table.name}{name}")
        document.blocks.append(Picture(files[0].name, words))
    document.blocks += [*page.nine(), *page.leak_free(), *page.graphs(), *page.chosen(document.summary), *page.took()]
    document.blocks += page.missing(failed or {})
    write(document, folder)
    return document


class _Page:
    """The parts of the page, and what they are made of: runs, type c on the same sets, and compared models."""

    def __init__(self, table: Automatic, store: Store) -> None:
        self.table, self.runs = table, table.runs(store)
        self.others = table.others(store)
        self.ran = [name for name in table.sets if self.runs.get(name)]
        own, records = Table3(Options()), lookup(store)
        scores = {name: own.score(records, name, TYPE_C) for name in table.sets if name in DATASETS}
        self.type_c = {
            name: [score.details["values"][i] for i in self._splits(name)] for name, score in scores.items() if score
        }
        compared = [name for name in self.ran if name in (*LEAK_FREE, *GRAPHS)]
        self.rivals = {name: Beside.of(self.runs[name], _comparison(name, store)) for name in compared}

    def _splits(self, name: str) -> list[int]:
        """Those that others are shown on: those that ran, or all."""
        return [run.split for run in self.runs.get(name, [])] or list(range(SETS[name]))

    def whole(self, name: str) -> bool:
        """Whether all splits of a set ran."""
        return len(self.runs.get(name, [])) == SETS[name]

    def mean(self, name: str) -> float:
        """In percent."""
        return float(np.mean(_values(self.runs[name])))

    def shown(self, name: str) -> str:
        """A cell: mean and deviation, and of how many splits where that is not all."""
        if name not in self.ran:
            return NOT_RUN
        part = "" if self.whole(name) else f" ({len(self.runs[name])} of {SETS[name]} splits)"
        return f"{_spread(_values(self.runs[name]))}{part}"

    # ---------------------------------------------------------------------- words

    def opening(self) -> str:
        """What was run."""
        table = self.table
        made = [run for name in self.ran for run in self.runs[name]]
        machines = sorted({(run.workers, run.cores) for run in made})
        where = " or ".join(f"{workers} workers on a machine of {of} cores" for workers, of in machines)
        return (
            f"What `pegfan train SET --split i --splits 1` keeps, split by split: {table.budget:g} seconds in all, "
            f"reading included, seed {table.seed}{', ' * bool(where)}{where}, one run at a time. Nothing is set by "
            "hand, and everything is the same for every set. Recipes are trained on training nodes, and chosen and "
            "weighed on validation nodes only. Numbers are test metrics in percent, mean ± standard deviation over "
            "splits: accuracy, but ROC AUC on minesweeper and tolokers, as their authors have it. What is tried within "
            "a time depends on the machine and on what else it does, so a run made anew may differ."
        )

    def looks(self) -> str:
        """How often test nodes were looked at."""
        count = sum(map(len, self.runs.values()))
        others = (
            f" The store also holds {self.others} runs on these sets with other budgets or seeds, or by earlier "
            "versions of the search: as many more looks."
        )
        return (
            f"Test nodes were looked at once per run, {count} times: by the run, after its choice was made, into the "
            "store and nowhere else. No test metric is printed while runs go on; rendering this page is what reads "
            f"them.{others if self.others else ''}"
        )

    def sums(self, summary: dict[str, Any]) -> list[str]:
        """What the tables say in a few lines; in the summary, too."""
        planned = sum(SETS[name] for name in self.table.sets)
        summary["runs"] = {"made": sum(map(len, self.runs.values())), "of": planned}
        lines = [f"- {summary['runs']['made']} of {planned} runs are in the store."]
        nine = [name for name in DATASETS if name in self.ran]
        if nine:
            ours = summary["average"] = float(np.mean([self.mean(name) for name in nine]))
            summary["average of"] = nine
            best = summary["best published"] = float(np.mean([BEST[name].mean for name in nine]))
            which = "the nine sets of Table III" if len(nine) == len(DATASETS) else f"{len(nine)} of the nine sets"
            lines.append(f"- {which[:1].upper()}{which[1:]}: {ours:.2f} on average; best published {best:.2f}.")
        graphs = [name for name in GRAPHS if self.rivals.get(name)]
        ahead = [name for name in graphs if self.rivals[name].difference > 0]  # type: ignore[union-attr]
        clear = [name for name in ahead if not self.rivals[name].means_nothing]  # type: ignore[union-attr]
        summary["graphs"] = {"ahead": ahead, "clearly": clear, "compared": graphs}
        if any(name in GRAPHS for name in self.table.sets):
            parts = sum(not self.whole(name) for name in graphs)
            lines.append(
                f"- Ahead of every model of `pegfan compare` on {len(ahead)} of {len(graphs)} graphs that have both"
                + (f" ({parts} of them with a part of their splits)" if parts else "")
                + f", on {len(clear)} by more than splits explain."
            )
        return lines

    # --------------------------------------------------------------------- tables

    def nine(self) -> list[Block]:
        """The sets of Table III."""
        sets = [name for name in DATASETS if name in self.table.sets]
        columns = ["set", "pegfan train", "type c, h = 8, ours", "the paper's", "best published", "of"]
        columns += ["to type c", "to the best published"]
        rows: Rows = []
        for name in sets:
            best, paper, own = BEST[name], TABLE3[TYPE_C][name], self.type_c.get(name)
            row = [
                _spread(own) if own else MISSING,
                f"{paper.mean:.2f} ± {paper.std:.2f}",
                _published(name),
                best.system,
            ]
            rows.append([name, self._mark(name), *row, self._to_type_c(name), self._to_best(name)])
        ran = [name for name in sets if name in self.ran]
        if len(ran) > 1:
            rows.append(self._average(ran))
        words = (
            "The nine sets of Table III. Type c, h = 8 is the paper's best row: ours with our own trees and the "
            "authors' settings (table3.md), on the splits that were trained here. Best published: the highest figure "
            "of any paper on the public splits, set by set; together an oracle over papers. Chameleon and squirrel "
            "leak (results.md)."
        )
        return [Grid(words, columns, rows)] if sets else []

    def _average(self, ran: Sequence[str]) -> list[str | Mark]:
        ours, best = (float(np.mean(values)) for values in ([*map(self.mean, ran)], [BEST[name].mean for name in ran]))
        paper = float(np.mean([TABLE3[TYPE_C][name].mean for name in ran]))
        label = "average" if len(ran) == len(DATASETS) else f"average of {len(ran)}"
        own, gap = MISSING, MISSING
        if all(name in self.type_c for name in ran):
            mean = float(np.mean([np.mean(self.type_c[name]) for name in ran]))
            own, gap = f"{mean:.2f}", f"{ours - mean:+.2f}"
        first = ours > best and all(map(self.whole, DATASETS))
        row = [own, f"{paper:.2f}", f"{best:.2f}", "", gap, f"{ours - best:+.2f}"]
        return [label, Mark(f"{ours:.2f}", ("best",) if first else ()), *row]

    def leak_free(self) -> list[Block]:
        """Public sets without duplicated nodes."""
        words = (
            "Public sets without duplicated nodes, of the filtered ones the undirected files. The best model of "
            "`pegfan compare` is that of the leak-free table (leak-free.md), on the splits that were trained here; a "
            "difference whose 95% interval (corrected for overlapping splits) holds 0 means nothing."
        )
        return self._compared(LEAK_FREE, words, published=True)

    def graphs(self) -> list[Block]:
        """Plain files of graphs."""
        words = (
            "Eight other graphs, read from plain files. Beside each, the best of all models of `pegfan compare` on "
            "the same splits, as above: to be ahead of it is to be ahead of every model."
        )
        return self._compared(GRAPHS, words, published=False)

    def _compared(self, names: Sequence[str], words: str, published: bool) -> list[Block]:
        sets = [name for name in names if name in self.table.sets]
        columns = ["set", "pegfan train", "best of pegfan compare", "which", "models that ran", "difference (95%)"]
        columns += ["best published", "of", "to the best published"] if published else []
        rows: Rows = []
        for name in sets:
            beside = self.rivals.get(name)
            row: list[str | Mark] = [name, self._mark(name)]
            if beside is None:
                row += [Mark(NOT_RUN if name in self.ran else MISSING, ("missing",)), "", "", ""]
            else:
                row += [_spread(beside.values), beside.label, str(beside.models), beside.gap]
            row += [_published(name), BEST[name].system, self._to_best(name)] if published else []
            rows.append(row)
        return [Grid(words, columns, rows)] if sets else []

    def _mark(self, name: str) -> Mark:
        if name not in self.ran:
            return Mark(NOT_RUN, ("missing",))
        values = " ".join(f"{value:.2f}" for value in _values(self.runs[name]))
        others = [BEST[name].mean] if name in BEST else []
        beside = self.rivals.get(name)
        others += [float(np.mean(beside.values))] if beside else []
        first = self.whole(name) and bool(others) and self.mean(name) > max(others)
        return Mark(self.shown(name), ("best",) if first else (), f"split by split: {values}")

    def _to_best(self, name: str) -> str:
        return f"{self.mean(name) - BEST[name].mean:+.2f}" if name in self.ran else MISSING

    def _to_type_c(self, name: str) -> str:
        if name not in self.type_c or name not in self.ran:
            return MISSING
        return f"{self.mean(name) - float(np.mean(self.type_c[name])):+.2f}"

    # ----------------------------------------------------- what was chosen, and cost

    def weights(self, name: str) -> dict[str, list[float]]:
        """Of a set's ensembles, run by run: the weight of every family."""
        found: dict[str, list[float]] = {words: [] for words in FAMILIES}
        for run in self.runs[name]:
            for words in FAMILIES:
                found[words].append(sum(one.weight for one in run.members if family(one.recipe) == words))
        return found

    def families(self) -> list[str]:
        """Those that have weight anywhere."""
        return [words for words in FAMILIES if any(any(self.weights(name)[words]) for name in self.ran)]

    def chosen(self, summary: dict[str, Any]) -> list[Block]:
        """How often which family has weight."""
        if not self.ran:
            return []
        rows: Rows = []
        summary["families"] = {}
        for name in self.ran:
            of = self.weights(name)
            count = {words: sum(weight > 0 for weight in of[words]) for words in self.families()}
            mean = {words: float(np.mean(of[words])) for words in count}
            summary["families"][name] = {words: {"runs": count[words], "weight": mean[words]} for words in count}
            texts = [f"{count[words]} ({mean[words]:.2f})" if count[words] else MISSING for words in count]
            members = float(np.mean([len(run.members) for run in self.runs[name]]))
            rows.append([name, str(len(self.runs[name])), *texts, f"{members:.1f}"])
        words = "In how many runs a family has weight in what was kept, and in brackets its mean weight over all runs."
        return ["## What was chosen", Grid(words, ["set", "runs", *self.families(), "members, mean"], rows)]

    def took(self) -> list[Block]:
        """Seconds, recipes, and what else the machine did."""
        rows: Rows = []
        for name in self.ran:
            runs = self.runs[name]
            loads = [run.load for run in runs if run.load is not None]
            before, after = (f"{np.mean([load[i] for load in loads]):.1f}" if loads else MISSING for i in (0, 1))
            search = [run.search_seconds for run in runs if run.search_seconds is not None]
            row = [f"{np.mean([run.seconds for run in runs]):.0f}", f"{np.mean(search):.0f}" if search else MISSING]
            tried, trainings = (np.mean([getattr(run, of) for run in runs]) for of in ("tried", "trainings"))
            rows.append([name, *row, f"{tried:.1f}", f"{trainings:.1f}", before, after])
        words = (
            "Means over the runs of a set. Load: processes that wanted a core in the minute before a run, which is "
            "other work beside it or the run before; and in its last minute, its own included."
        )
        columns = [
            "set",
            "seconds in all",
            "of the search",
            "recipes tried",
            "trainings",
            "load before",
            "load at its end",
        ]
        return ["## What it took", Grid(words, columns, rows)] if rows else []

    def missing(self, failed: Mapping[Turn, str]) -> list[Block]:
        """What did not run, and why."""
        lines = [f"- {turn.set}, split {turn.split}: {why}" for turn, why in failed.items()]
        left: dict[str, list[str]] = {}
        for name in self.table.sets:
            there = {run.split for run in self.runs.get(name, [])}
            splits = [i for i in range(SETS[name]) if i not in there and Turn(name, i) not in failed]
            if name not in self.table.sources:
                lines.append(f"- {name}: its file is not in the folder graphs of the data sets (PEGFAN_DATA names it)")
            elif splits:
                left.setdefault(_listed(splits), []).append(name)
        lines += [f"- not in the store: {splits} of {', '.join(names)}" for splits, names in left.items()]
        return ["## What did not run", *lines] if lines else []

    # -------------------------------------------------------------------- pictures

    def pictures(self) -> dict[str, tuple[Figure, str]]:
        """The pictures by what follows the page's name in theirs; none before anything ran."""
        if not self.ran:
            return {}
        distances = (
            "Points to the best other figure: the best published one of a set, and for the eight graphs the best model "
            "of `pegfan compare`. Large dots are means, small ones single splits; open ones type c, h = 8."
        )
        families = "What was chosen: the mean weight of every family in the ensembles of a set."
        found = {"": (self._draw_distances(), distances), "-families": (self._draw_families(), families)}
        return {name: (figure, words) for name, (figure, words) in found.items() if figure is not None}

    def _other(self, name: str) -> float | None:
        """The figure that a set's distances are to."""
        beside = self.rivals.get(name)
        return BEST[name].mean if name in BEST else float(np.mean(beside.values)) if beside else None

    def _draw_distances(self) -> Figure | None:
        from pegfan.plots import _drawing as drawing

        shown = {name: other for name in self.ran if (other := self._other(name)) is not None}
        if not shown:
            return None
        figure = drawing.new_figure(6.8, 0.9 + 0.3 * len(shown))
        ax = figure.add_subplot()
        ax.axvline(0.0, color=drawing.PALE, linewidth=1.0, zorder=0)
        for place, (name, other) in enumerate(shown.items()):
            values = np.array(_values(self.runs[name])) - other
            colour = drawing.VERMILION if values.mean() > 0 else drawing.BLUE
            ax.scatter(values, np.full(len(values), place), s=7, color=colour, alpha=0.35, linewidth=0, zorder=1)
            if name in self.type_c:
                own = float(np.mean(self.type_c[name])) - other
                ax.scatter([own], [place], s=30, facecolor="white", edgecolor=drawing.GREY, zorder=2)
            ax.scatter([values.mean()], [place], s=42, color=colour, edgecolor="white", zorder=3)
        ax.set_xlabel("points of the test metric to the best other figure", color=drawing.INK)
        _name_rows(ax, list(shown))
        return figure

    def _draw_families(self) -> Figure:
        from pegfan.plots import _drawing as drawing

        figure = drawing.new_figure(6.8, 1.2 + 0.3 * len(self.ran))
        ax = figure.add_subplot()
        left = np.zeros(len(self.ran))
        for words in self.families():
            means = np.array([np.mean(self.weights(name)[words]) for name in self.ran])
            ax.barh(range(len(self.ran)), means, left=left, height=0.7, color=_COLOURS[words], label=words)
            left += means
        ax.set_xlim(0, 1)
        ax.set_xlabel("mean weight", color=drawing.INK)
        _name_rows(ax, self.ran)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8.5, labelcolor=drawing.INK)
        return figure

    # ----------------------------------------------------------------------- cells

    def cell(self, name: str) -> dict[str, Any]:
        """Everything about a set, for machines."""
        runs, beside, best = self.runs.get(name, []), self.rivals.get(name), BEST.get(name)
        values = _values(runs)
        own, paper = self.type_c.get(name), TABLE3[TYPE_C].get(name)
        return {
            "table": "automatic",
            "set": name,
            "row": "automatic",
            "label": "pegfan train",
            "metric": runs[0].metric if runs else None,
            "ours": float(np.mean(values)) if runs else None,
            "std": float(np.std(values)) if runs else None,
            "runs": len(runs),
            "of": SETS[name],
            "splits": [run.split for run in runs],
            "values": values,
            "validation": [None if run.val_metric is None else 100 * run.val_metric for run in runs],
            "type_c": float(np.mean(own)) if own else None,
            "paper": paper and paper.mean,
            "paper_std": paper and paper.std,
            "best_published": best and best.mean,
            "best_published_of": best and best.system,
            "best_compared": float(np.mean(beside.values)) if beside else None,
            "best_compared_of": beside and beside.label,
            "models_compared": beside and beside.models,
            "difference": beside and beside.difference,
            "interval": list(beside.interval) if beside and beside.interval else None,
            "budget": self.table.budget,
            "seed": self.table.seed,
            "seconds": [round(run.seconds, 1) for run in runs],
            "search_seconds": [run.search_seconds and round(run.search_seconds, 1) for run in runs],
            "tried": [run.tried for run in runs],
            "trainings": [run.trainings for run in runs],
            "chosen": [[f"{one.weight:.3g} {one.name}" for one in run.members] for run in runs],
            "load": [list(run.load) if run.load else None for run in runs],
            "cores": sorted({run.cores for run in runs}),
            "workers": sorted({run.workers for run in runs}),
            "versions": sorted({run.versions.get("pegfan", "") for run in runs}),
            "keys": [run.key for run in runs],
        }


_COLOURS = dict(
    zip(FAMILIES, ("#0072b2", "#56b4e9", "#b8bec6", "#009e73", "#d55e00", "#e69f00", "#7d3c7a"), strict=True)
)


def _name_rows(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)  # the first on top
    ax.tick_params(length=0, labelsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _listed(splits: Sequence[int]) -> str:
    """Splits in words: split 3, splits 0 to 9, or splits 0, 4."""
    if len(splits) == 1:
        return f"split {splits[0]}"
    row = list(splits) == list(range(splits[0], splits[-1] + 1))
    return f"splits {splits[0]} to {splits[-1]}" if row else f"splits {', '.join(map(str, splits))}"


def _comparison(name: str, store: Store) -> Comparison | None:
    """What the store holds of the comparison of all models on a graph."""
    return next(iter(LeakFree((name,)).comparisons(store, run=False)), None)


def _values(runs: Sequence[Run]) -> list[float]:
    """In percent, split by split."""
    return [(100 if METRICS[run.metric].percent else 1) * run.test_metric for run in runs]


def _spread(values: Sequence[float]) -> str:
    """Mean and population standard deviation; one value has no spread."""
    return f"{np.mean(values):.2f}" + (f" ± {np.std(values):.2f}" if len(values) > 1 else "")


def _published(name: str) -> str:
    best = BEST[name]
    remark = f" ({best.remark})" if best.remark else ""
    return f"{best.mean:.2f}{'' if best.std is None else f' ± {best.std:.2f}'}{remark}"
