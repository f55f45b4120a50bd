"""Models against each other on one graph: the same splits, the same budget, and which differences mean nothing."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import shlex
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from pegfan import _defaults as default
from pegfan import experiments, results
from pegfan._checks import check_integer, check_mapping, check_seed, shown
from pegfan._npz import write_npz
from pegfan._plain import plain
from pegfan.datasets import Source
from pegfan.experiments import Job, Record, Store
from pegfan.experiments.jobs import ChangedData, graph_of, require_same
from pegfan.fitted import only_classes
from pegfan.graph import Graph, Split
from pegfan.metrics import METRICS
from pegfan.networks import COMMON, NETWORKS, NetworkRecipe, recipe_of
from pegfan.results import Data, Rival, Splits, Spread
from pegfan.results.values import Part
from pegfan.running import Progress, Runner, Step
from pegfan.splits import draw_splits, fit_split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONTENDERS", "Comparison", "Contender", "compare", "quick_ones"]

_DRAWN = 10
"""Splits that are drawn where the graph has none."""
_COMMAND, _READING = ("pegfan", "compare"), {"id", "label", "source", "target", "metric"}
"""How to say it in a shell, and the options of a source that the command takes."""


@dataclass(frozen=True)
class Contender:
    """A model that can be compared: what it is by default, and the settings that its search draws from.

    Attributes
    ----------
    name, label
        Its name, and how it is written.
    space
        For each setting that is searched, its choices.
    base
        Its default, as `pegfan.networks.recipe_of` takes it.
    quick
        Whether it trains in seconds, so that others can be shown beside it.

    Examples
    --------
    >>> some = Contender("fsgnn", "FSGNN", {"hops": (3, 8), "dropout": (0.5, 0.7)}, {"method": "none"})
    >>> [(recipe.hops, recipe.settings.dropout) for recipe in some.candidates(3)]
    [(3, 0.5), (8, 0.5), (3, 0.7)]
    """

    name: str
    label: str
    space: Mapping[str, Sequence[Any]]
    base: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False

    def candidates(
        self,
        count: int,
        seed: int = default.SEED,
        changes: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """At most `count` recipes that differ: the default, then random ones of the space.

        Parameters
        ----------
        count
            How many; fewer where the space is smaller.
        seed
            Of the draws.
        changes
            Settings that are the same in all of them.
        """
        check_integer(count, "count", least=1)
        changed = {} if changes is None else check_mapping(changes, "changes")
        sizes = [len(choices) for choices in self.space.values()]
        order = np.random.default_rng(seed).permutation(int(np.prod(sizes, dtype=np.int64)))
        found: dict[str, Any] = {}
        for place in (None, *order.tolist()):
            own = {} if place is None else self._drawn(np.unravel_index(place, sizes) if sizes else ())
            recipe = recipe_of({**self.base, **own, **changed})
            found.setdefault(_told_by(recipe), recipe)
            if len(found) == count:
                break
        return list(found.values())

    def without(self, name: str, *choices: Any) -> Contender:
        """The same with a setting that is not searched, or not among these choices."""
        left = [one for one in self.space.get(name, ()) if choices and one not in choices]
        own = {key: left if key == name else of for key, of in self.space.items()}
        return replace(self, space={key: of for key, of in own.items() if of})

    def _drawn(self, places: Sequence[Any]) -> dict[str, Any]:
        return {name: self.space[name][place] for name, place in zip(self.space, places, strict=True)}


def _told_by(recipe: Any) -> str:
    """What tells recipes apart that train differently."""
    return json.dumps(recipe.whole, sort_keys=True) if isinstance(recipe, NetworkRecipe) else recipe.key


_TRAINING = {
    "dropout": (0.5, 0.6, 0.7),
    "hop_normalize": (True, False),
    "wd_fc1": (0.0, 1e-4, 1e-3),
    "lr_fc": (0.01, 0.005),
    "scaling": ("l1", "none", "columns"),
    "hops": (3, 8),
    "direction": ("out", "symmetric"),
}
_OWN = (
    Contender("pegfan", "PEGFAN", {"kind": ("c", "b"), "method": ("auto", "adjacency"), "h": (8, 4), **_TRAINING}),
    Contender("fsgnn", "FSGNN", {"regime": ("auto", "all"), **_TRAINING}, {"method": "none"}, quick=True),
)


def _network(name: str) -> Contender:
    kind = NETWORKS[name]
    common = {} if name == "label-propagation" else COMMON  # it is not trained
    found = Contender(name, kind.label, {**common, **kind.space}, {"model": name}, kind.quick)
    return found.without("direction") if name == "mlp" else found  # which sees no edges


CONTENDERS: dict[str, Contender] = {one.name: one for one in (*_OWN, *map(_network, NETWORKS))}
"""The models that there are, by name; add your own."""


def quick_ones() -> list[str]:
    """The names of the models that train in seconds."""
    return [one.name for one in CONTENDERS.values() if one.quick]


# ----------------------------------------------------------------------- the outcome


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Part):
    """What `compare` found; printed, it is a table.

    Attributes
    ----------
    title, source
        What the graph is called, and where it is read; None for one that was in memory.
    data, splits
        The graph; the splits, of which ``splits.used`` were used.
    rows
        The models (`pegfan.results.Rival`), the best on test nodes first; those that did not run are last.
    tries, search_splits, seed, changes
        The budget of every model's search; see `compare`.
    complete
        Whether all were run; False after Ctrl-C.
    seconds
        In all, elapsed.
    when, versions
        Of the comparison.
    """

    title: str
    source: Source | None = None
    data: Data
    splits: Splits
    rows: tuple[Rival, ...]
    tries: int
    search_splits: int
    seed: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = True
    seconds: float = 0.0
    when: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Rival | None:
        """The first of the table, or None where no model ran."""
        return next((row for row in self.rows if row.test is not None), None)

    @property
    def verdict(self) -> str:
        """Which model is best, and which differences mean nothing."""
        return results.verdict(self.rows, self.data.metric)

    @property
    def budget(self) -> str:
        """How settings were chosen, in words."""
        drawn = f", the default and {self.tries - 1} drawn with seed {self.seed}" if self.tries > 1 else ", the default"
        where = f"{self.search_splits} split{'s' * (self.search_splits > 1)}"
        count = len(self.splits.used)
        return (
            f"Every model tried at most {self.tries} setting{'s' * (self.tries > 1)}{drawn}, on {where}; the best on "
            f"validation nodes was trained on {'all ' * (count > 1)}{count} split{'s' * (count > 1)}. "
            "Test nodes played no part in the choice."
        )

    @property
    def command(self) -> str | None:
        """What repeats it in a shell; None where no command does, as for a graph in memory."""
        used, models = self.splits.used, [row.name for row in self.rows]
        if self.source is None or used != tuple(range(len(used))) or not set(models) <= CONTENDERS.keys():
            return None
        options = dict(self.source.options)
        side = {None: [], True: ["--directed"], False: ["--undirected"]}[options.pop("directed", None)]
        if not options.keys() <= _READING:
            return None
        asked = {**options, "splits": len(used), "tries": self.tries, "search-splits": self.search_splits}
        asked |= {"seed": self.seed, "models": ",".join(models)}
        words = [*side, *(f"--{name}={value}" for name, value in asked.items())]
        return shlex.join([*_COMMAND, *self.source.where, *words, *(f"--set={k}={v}" for k, v in self.changes.items())])

    def __str__(self) -> str:
        table = results.rival_table(self.rows, self.data.metric)
        widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
        lines = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:-1], widths[1:-1]), line[-1]]).rstrip()
            for line in table
        ]
        return "\n".join([*lines, "", self.verdict, *([self.budget] if self.best else [])])

    def __repr__(self) -> str:
        return f"Comparison({self.title!r}, {len(self.rows)} models, {len(self.splits.used)} splits)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        words = {"verdict": self.verdict, "budget": self.budget}
        return {"format": "pegfan comparison", "version": 1, **plain(asdict(self)), **words}

    def plot(self) -> Figure:
        """Draw it, see `pegfan.plots.comparison`."""
        from pegfan import plots

        return plots.comparison(self)


# ------------------------------------------------------------------------ the contest


def compare(
    graph: Graph | Source | str | os.PathLike[str],
    models: Sequence[str | Contender] | None = None,
    *,
    splits: int | Sequence[int] | None = None,
    tries: int = default.TRIES,
    search_splits: int = 1,
    seed: int = default.SEED,
    changes: Mapping[str, Any] | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Progress | None = None,
    run: bool = True,
) -> Comparison:
    """Compare models on a graph: all on the same splits, each with the same budget of search.

    Every model tries `tries` settings, its default and random ones of its own space, on the first splits. The one
    with the best mean validation metric is trained on every split; of all others the test metric is not looked at. A
    model that cannot run says why, and the others go on. Ctrl-C ends it early with those that are finished.

    Parameters
    ----------
    graph
        A graph, or where one is read: a `pegfan.datasets.Source`, the name of a data set, a path.
    models
        Names, see ``list(pegfan.comparison.CONTENDERS)``, or `Contender` of your own; ``"quick"`` stands for PEGFAN and
        those that train in seconds. By default all that there are.
    splits
        How many splits, or which; by default all that the graph has, or ten that are drawn where it has none.
    tries, search_splits
        The budget: how many settings each model may try, and on how many of the splits.
    seed
        Of the draws; split i is trained with seed + i.
    changes
        Fields and settings that are the same in every try of every model, such as ``{"epochs": 200}``.
    store
        A folder where runs are kept; what is there is not run again. By default nothing is kept.
    workers, scheduler
        Processes, or the address of a Dask scheduler, as in `pegfan.experiments.run`.
    progress
        Called with a `pegfan.running.Step` after every run.
    run
        Whether to run what the store lacks; otherwise models that are not done say so.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.1, n=200, n_edges=1500, n_features=10, splits=3)
    >>> found = pf.compare(graph, ["fsgnn", "pegfan"], tries=1, changes={"epochs": 20, "hidden": 8})
    >>> sorted(row.name for row in found.rows), found.splits.used
    (['fsgnn', 'pegfan'], (0, 1, 2))
    """
    start = time.monotonic()
    chosen = _chosen(models)
    tries, search_splits = check_integer(tries, "tries", 1), check_integer(search_splits, "search_splits", 1)
    seed = check_seed(seed)
    _check_changes(chosen, changes or {})
    with ExitStack() as stack:
        if not isinstance(store, Store):
            store = Store(store or stack.enter_context(tempfile.TemporaryDirectory(prefix="pegfan-")))
        source = _source(graph, store.folder)
        known = graph_of(source, bare=True)
        every = _splits(known, source, splits)
        if not known.directed:
            chosen = [one.without("direction") for one in chosen]  # two tries would be one
        if known.features is None:
            # Likewise: degrees stand in, which rows of sum one would level; there our own take "l1" for "none".
            chosen = [one.without("scaling", "l1" if "model" in one.base else "none") for one in chosen]
        if search_splits > len(every.used):
            raise ValueError(f"search_splits is {search_splits}, but there are {len(every.used)} splits; ask for fewer")
        runner = stack.enter_context(Runner(workers, scheduler=scheduler) if run else _Idle())
        first = every.used[:search_splits]
        contest = _Contest(source, store, every.used, tries, first, seed, changes or {}, runner, progress)
        rows, complete = contest.rows(chosen)
    return Comparison(
        title="a graph" if isinstance(graph, Graph) else source.name,
        source=None if isinstance(graph, Graph) else source,
        data=results.data(known),
        splits=every,
        rows=results.ranked(rows, every, known.metric),
        tries=tries,
        search_splits=search_splits,
        seed=seed,
        changes=changes or {},
        complete=complete,
        seconds=time.monotonic() - start,
        **results.stamp(),
    )


class _NotRun(Exception):
    """The store lacks runs, and none are to be made."""


class _Idle(Runner):
    """Runs nothing."""

    def map(self, *_: Any, **__: Any) -> Any:
        """Say so."""
        raise _NotRun("the store does not hold all of its runs")


class _Attempt(NamedTuple):
    recipe: Any
    records: list[Record]

    @property
    def validation(self) -> float:
        """The mean metric on validation nodes, negative where smaller is better; the worst of all where it diverged."""
        values = [one.val_metric for one in self.records]
        if None in values:
            return -math.inf
        return METRICS[self.records[0].metric].gain(float(np.mean(values)))  # type: ignore[arg-type]


@dataclass
class _Contest:
    """What the runs of a comparison have in common, and how far it is."""

    source: Source
    store: Store
    splits: Sequence[int]
    tries: int
    search_splits: Sequence[int]
    seed: int
    changes: Mapping[str, Any]
    runner: Runner
    progress: Progress | None
    words: str = ""
    before: int = 0  # runs of the models before this one
    planned: int = 0
    done: set[str] = field(default_factory=set)  # runs of this one

    def __post_init__(self) -> None:
        self.hashes = self.source.hashes()

    def rows(self, chosen: Sequence[Contender]) -> tuple[list[Rival], bool]:
        """A row per model, and whether all of them had their turn."""
        each = (self.tries - 1) * len(self.search_splits) + len(self.splits)
        self.planned = each * len(chosen)
        rows: list[Rival] = []
        for place, contender in enumerate(chosen):
            self.words, self.before, self.done = contender.label, place * each, set()
            try:
                rows.append(self.row(contender))
            except KeyboardInterrupt:
                left = [Rival(one.name, one.label, reason="stopped before it was done") for one in chosen[place:]]
                return rows + left, False
        return rows, True

    def row(self, contender: Contender) -> Rival:
        """The model's row: its best settings on validation, on every split; or why there are none."""
        about: dict[str, Any] = {"name": contender.name, "label": contender.label}
        try:
            tried = self.search(contender)
            best = max(tried, key=lambda attempt: attempt.validation)  # of equal ones the first
            records = self.run([self.jobs(best.recipe, self.splits)])[0]
            test, validation = ([getattr(one, name) for one in records] for name in ("test_metric", "val_metric"))
            if None in test:
                lost = test.index(None)
                why = records[lost].diverged or "the metric is not defined on its test nodes"
                raise ValueError(f"split {self.splits[lost]}: {why}")
            return Rival(
                **about,
                recipe=best.recipe.to_dict(),
                how=best.recipe.name,
                test=Spread.of(test),
                validation=Spread.of([math.nan if value is None else value for value in validation]),
                seconds=float(np.median([one.seconds for one in records])),
                search_seconds=sum(one.seconds for attempt in tried for one in attempt.records),
                memory=max((one.memory for one in records if one.memory is not None), default=None),
            )
        except Exception as error:  # whatever it is, the others go on
            return Rival(**about, reason=self.reason(error))

    def search(self, contender: Contender) -> list[_Attempt]:
        """What the settings of a model give on the first splits; those that cannot run are left out."""
        recipes = contender.candidates(self.tries, self.seed, self.changes)
        groups = [self.jobs(recipe, self.search_splits) for recipe in recipes]
        try:
            found = self.run(groups)
        except (_NotRun, OSError):
            raise
        except Exception as error:
            found = list(map(self.attempt, groups))
            if not any(found):
                raise error from None
        tried = [_Attempt(recipe, records) for recipe, records in zip(recipes, found, strict=True) if records]
        if all(attempt.validation == -math.inf for attempt in tried):
            why = next((one.diverged for attempt in tried for one in attempt.records if one.diverged), None)
            count = f"all of {len(tried)} tries" if len(tried) > 1 else "its only try"
            raise ValueError(f"in {count}: {why or 'the metric is not defined on the validation nodes'}")
        return tried

    def attempt(self, group: Sequence[Job]) -> list[Record]:
        """The records of some jobs; none if they cannot run."""
        try:
            return self.run([group])[0]
        except Exception as error:
            self.reason(error)
            return []

    def jobs(self, recipe: Any, splits: Sequence[int]) -> list[Job]:
        made = [Job(self.source, recipe, split, self.seed + split) for split in splits]
        for job in made:
            require_same(self.hashes, job.hashes)  # else models would be compared on different data
        return made

    def run(self, groups: Sequence[Sequence[Job]]) -> list[list[Record]]:
        """The records of groups of jobs."""
        wanted = [job for group in groups for job in group]
        found = experiments.run(wanted, self.store, runner=self.runner, progress=self.tell)
        self.done |= {job.name for job in wanted}
        each = iter(found)
        return [list(itertools.islice(each, len(group))) for group in groups]

    def tell(self, step: Step) -> None:
        """Pass on how far the whole comparison is."""
        self.done |= {step.result.name} if step.result is not None else set()
        if self.progress is not None:
            done = self.before + len(self.done)
            self.progress(Step(done, self.planned, f"{self.words}, run {done} of {self.planned}", step.result))

    def reason(self, error: Exception) -> str:
        """Why a model does not run here; an error of the disk, the data or a cluster is raised again."""
        outside = isinstance(error, OSError) and (error.errno is not None or self.runner.scheduler is not None)
        if outside or isinstance(error, ChangedData):
            raise error
        if isinstance(error, MemoryError):
            return f"not enough memory. {error}".rstrip(". ")
        return (
            str(error)
            if isinstance(error, (ValueError, ImportError, OSError, _NotRun))
            else f"{type(error).__name__}: {error}"
        )


# ------------------------------------------------------------------------ what is asked


def _chosen(models: Sequence[str | Contender] | None) -> list[Contender]:
    given = [models] if isinstance(models, (str, Contender)) else list(CONTENDERS) if models is None else list(models)
    if "quick" in given:
        place = given.index("quick")
        given[place : place + 1] = ["pegfan", *quick_ones()]
    unknown = [name for name in given if isinstance(name, str) and name not in CONTENDERS]
    if unknown:
        raise ValueError(f"there is no model {unknown[0]!r}; there are {', '.join(CONTENDERS)}; quick for some")
    if not given:
        raise ValueError(f"no models are named; there are {', '.join(CONTENDERS)}")
    found = [CONTENDERS[one] if isinstance(one, str) else one for one in given]
    named = {**{one.name: one for one in found}, **CONTENDERS}
    other = next((one.name for one in found if named[one.name] != one), None)
    if other is not None:
        raise ValueError(f"there are two models of the name {shown(other)}; choose another name for yours")
    return list({one.name: one for one in found}.values())


def _check_changes(chosen: Sequence[Contender], changes: Mapping[str, Any]) -> None:
    """Refuse what would make one model of another, and what no model takes."""
    for name in check_mapping(changes, "changes"):
        own = next((one.label for one in chosen if name in one.base), None)
        if name == "model" or own is not None:
            raise ValueError(
                f"{name} is what {own or 'a network'} is told by, so it cannot be the same for every model"
            )
    if changes.get("method") == "none" and any(one.name == "pegfan" for one in chosen):
        raise ValueError("PEGFAN without a tree is FSGNN; compare fsgnn in place of method='none'")
    refused: list[Exception] = []
    for one in chosen:
        try:
            one.candidates(1, changes=changes)
        except (ValueError, TypeError) as error:
            refused.append(error)
    if len(refused) == len(chosen):
        raise refused[0]


def _splits(graph: Graph, source: Source, wanted: int | Sequence[int] | None) -> Splits:
    """The splits that are used, among all that there are; drawn as jobs draw them where there are none."""
    there = len(graph.splits)
    count = there or _DRAWN if wanted is None else wanted
    used = list(count) if isinstance(count, Iterable) else range(check_integer(count, "splits", 1))
    if not used or len(set(used)) < len(used) or min(used) < 0:
        raise ValueError(f"splits must name at least one split, each once, counted from 0; got {shown(wanted)}")
    if there and max(used) >= there:
        raise ValueError(f"{source.name} has {there} splits, so there are no {max(used) + 1}; ask for fewer")
    every = graph.splits or draw_splits(graph, k=max(used) + 1)
    parts = [fit_split(graph, part, 0) if i in used else part for i, part in enumerate(every)]
    empty = [i for i in used if not len(parts[i].test)]
    if empty:
        raise ValueError(
            f"split {empty[0]} of {source.name} has no labelled test nodes; models cannot be compared on it"
        )
    return Splits.of(parts, used, made=not there)


def _source(graph: Any, folder: Path) -> Source:
    """Where runs read the graph; one that is in memory is written to the folder first."""
    if isinstance(graph, Source):
        return graph
    if isinstance(graph, (str, os.PathLike)):
        return Source.of(graph)
    if not isinstance(graph, Graph):
        raise TypeError(f"a graph is a Graph, a Source, the name of a data set or a path; got {type(graph).__name__}")
    if graph.targets is not None:
        raise ValueError(only_classes("compare"))
    if graph.labels is None:
        raise ValueError(
            "the graph has no labels, so there is nothing to learn; give them with graph.replace(labels=...)"
        )
    arrays = _arrays(graph)
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    path = folder.absolute() / f"graph-{digest.hexdigest()[:16]}.npz"
    if not path.exists():
        write_npz(path, arrays)
    return Source.of(path, directed=graph.directed, metric=graph.metric)


def _arrays(graph: Graph) -> dict[str, Any]:
    """A graph as `pegfan.read_graph` reads it from an npz file."""
    pairs, weights = graph.edges()
    arrays = {"edge_index": pairs.T, "edge_weight": weights, "y": np.asarray(graph.labels)}
    x = graph.features
    if issparse(x):
        arrays |= {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": np.array(x.shape)}
    elif x is not None:
        arrays["x"] = x
    for part in Split._fields if graph.splits else ():
        masks = np.zeros((len(graph.splits), graph.n), bool)
        for mask, split in zip(masks, graph.splits, strict=True):
            mask[getattr(split, part)] = True
        arrays[f"{part}_mask"] = masks
    return arrays
