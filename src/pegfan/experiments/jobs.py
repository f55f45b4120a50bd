"""Training runs as values: what a run depends on is its name, and what was run once is not run again."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pegfan import _legacy
from pegfan._checks import check_integer
from pegfan._plain import plain, versions
from pegfan.datasets import Source
from pegfan.experiments.store import Store
from pegfan.fitted import fit_split, train_recipe, with_features
from pegfan.recipe import Recipe
from pegfan.running import Progress, Runner, Step, one_thread
from pegfan.training import Diverged, Settings

if TYPE_CHECKING:
    from pegfan.channels import Channels
    from pegfan.graph import Graph, Split
    from pegfan.trees import Hierarchy

__all__ = ["Job", "OutOfTime", "Record", "run", "run_job"]

NUMERICS = 1
"""Increased when the same job gives other numbers than before, so that older records are not reused."""

_FIRST_SETTINGS = (
    *("hidden", "layers", "dropout", "hop_normalize", "lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca"),
    *("epochs", "patience", "stop", "class_weights"),
)
"""Settings that are always part of a key. A newer one is left out while it has its default, so that keys last."""


class OutOfTime(Exception):
    """The time budget of `run` is used up; finished jobs are in the store."""


@dataclass(frozen=True)
class Job:
    """One training run, by everything that its numbers depend on.

    Attributes
    ----------
    source
        The graph. Where it has no splits, split i is the i-th of ``random_splits(graph.labels)``; labels, validation
        nodes and features that are missing are treated as by the classifiers.
    recipe
        The model.
    split
        Which split.
    seed
        Of the weights and dropout.

    Examples
    --------
    >>> graph = Source.of("synthetic", gamma=0.2, n=300, n_edges=900, n_features=5)
    >>> job = Job(graph, Recipe.of({"h": 4, "kind": "b", "regime": "heterophily", "epochs": 20}), split=0, seed=42)
    >>> job.key
    '...'
    >>> Job.from_dict(job.to_dict()) == job
    True
    """

    source: Source
    recipe: Recipe
    split: int
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.source, Source):
            raise TypeError(f"source must be a Source, see Source.of; got {type(self.source).__name__}")
        if not isinstance(self.recipe, Recipe):
            raise TypeError(f"recipe must be a Recipe, see Recipe.of; got {type(self.recipe).__name__}")
        for name in ("split", "seed"):
            object.__setattr__(self, name, check_integer(getattr(self, name), name, 0))

    @cached_property
    def key(self) -> str:
        """The name of the run: 16 hex digits of the SHA-256 of what it depends on, the source by its fingerprint."""
        return _key(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        source = {**self.source.to_dict(), "fingerprint": _fingerprint(self.source)}
        return {"source": source, "recipe": self.recipe.to_dict(), "split": self.split, "seed": self.seed}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The job that `to_dict` wrote; the fingerprint is not trusted but computed from the source."""
        try:
            source, recipe = Source.from_dict(stored["source"]), Recipe.of(stored["recipe"])
            return cls(source, recipe, stored["split"], stored["seed"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not what Job.to_dict wrote: {error!r}") from error


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a job gave, as the store keeps it.

    Attributes
    ----------
    key, job
        The job's key, and the job in the words of the version that ran it.
    val_loss, val_metric, test_metric
        None where a part of the split is empty, or where the loss diverged.
    epochs, best_epoch
        How many there were, and which was kept.
    seconds, wall
        CPU time of the training, and its elapsed time.
    engine, diverged
        What trained; or the error, where the loss became infinite.
    channels, regime, metric, stand_in, tree
        How many channels; what ``"auto"`` stood for; what was measured; what stood in for features; its tree.
    versions, when
        Packages, and the time of day.
    workers
        How many processes ran side by side; None if that is not known.
    """

    key: str
    job: Mapping[str, Any] = field(repr=False)
    val_loss: float | None
    val_metric: float | None
    test_metric: float | None
    epochs: int
    best_epoch: int
    seconds: float
    wall: float
    engine: str | None = None
    diverged: str | None = None
    channels: int
    regime: str | None
    metric: str
    stand_in: str | None
    tree: Mapping[str, Any] | None
    versions: Mapping[str, str]
    when: str
    workers: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        result = {name: getattr(self, name) for name in _RESULT}
        del result["engine" if self.engine is None else "diverged"]
        return {"key": self.key, "job": self.job, "result": result} | {name: getattr(self, name) for name in _AROUND}

    @classmethod
    def of(cls, stored: Any) -> Self | None:
        """The record that `to_dict` wrote, today or in 0.1; None for anything else."""
        try:
            given: dict[str, Any] = {name: stored["result"].get(name) for name in _RESULT}
            given |= {name: stored.get(name) for name in ("key", "job", *_AROUND)}
            genuine = _key(stored["job"]) == stored["key"]
        except (KeyError, TypeError, AttributeError, ValueError):
            return None
        fits = all(isinstance(given[name], kind) for kind, names in _KINDS.items() for name in names)
        return cls(**given) if genuine and fits else None


_NAMES = tuple(member.name for member in fields(Record))
_RESULT, _AROUND = _NAMES[2:-3], _NAMES[-3:]
_KINDS: dict[Any, tuple[str, ...]] = {
    int | float | None: ("val_loss", "val_metric", "test_metric"),
    int | float: ("seconds", "wall"),
    int: ("epochs", "best_epoch", "channels"),
    str: ("metric", "when"),
    dict: ("versions",),
}


def run_job(job: Job, trees: str | os.PathLike[str] | None = None) -> Record:
    """Run a job on one core.

    Parameters
    ----------
    job
        What to run. The graph, tree and channels of the last few jobs are kept for the next ones.
    trees
        The folder of tree files.

    Returns
    -------
    Record
        The same for the same job, times apart.

    Examples
    --------
    >>> graph = Source.of("synthetic", n=300, n_edges=3000, n_features=20)
    >>> job = Job(graph, Recipe.of({"method": "none", "regime": "heterophily", "epochs": 60}), split=0, seed=42)
    >>> record = run_job(job)
    >>> record.channels, record.val_metric > 0.5
    (4, True)
    """
    with _ONE_AT_A_TIME, one_thread():
        ready = _prepare(job, trees)
        numbers = _train(job, ready)
    tree = ready.tree
    return Record(
        key=job.key,
        job=job.to_dict(),
        **numbers,
        channels=len(ready.channels),
        regime=ready.channels.info.get("regime"),
        metric=ready.graph.metric,
        stand_in=ready.stand_in,
        tree=None if tree is None else {"K": tree.K, "clusters": list(tree.n_clusters), **plain(tree.info)},
        versions=versions("numba", "numpy", "scipy"),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def run(
    jobs: Iterable[Job],
    store: Store,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    runner: Runner | None = None,
    trees: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    budget: float | None = None,
) -> list[Record]:
    """Run jobs that the store does not hold yet, and append their records as they come.

    Workers only compute; this process writes. Jobs on the same graph, tree and channels follow each other, so that a
    process can reuse these; otherwise the order is that of `jobs`. However it is stopped (Ctrl-C, kill -9, a full
    disk), finished jobs are in the store, and calling it again continues from there.

    Parameters
    ----------
    jobs
        What to run; jobs of the same key are run once.
    store
        Where records are looked up and go.
    workers
        Processes, each on one core. Results do not depend on their number.
    scheduler
        The address of a Dask scheduler whose workers compute instead. They need this package and the same files at
        the same paths; if a worker dies, others run its jobs again.
    runner
        Used in place of `workers` and `scheduler`; its processes are kept for the next call.
    trees
        The folder of tree files, for jobs that name one.
    progress
        Called with a `pegfan.running.Step`; its result is the newest record, None at the start.
    budget
        Seconds after which no further job is started; running ones are finished, and `OutOfTime` is raised.

    Returns
    -------
    list of Record
        In the order of `jobs`.

    Examples
    --------
    >>> import tempfile
    >>> graph = Source.of("synthetic", n=300, n_edges=3000, n_features=20)
    >>> jobs = [Job(graph, Recipe.of({"method": "none", "epochs": 5}), split=0, seed=seed) for seed in (0, 1)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run(jobs, Store(folder))
    ...     again = run(jobs, Store(folder), progress=lambda step: print(step.done, "of", step.planned))
    2 of 2
    >>> first == again
    True
    """
    if runner is None:
        with Runner(workers, scheduler=scheduler) as own:
            return run(jobs, store, runner=own, trees=trees, progress=progress, budget=budget)
    wanted = list(jobs)
    deadline = math.inf if budget is None else time.monotonic() + budget
    store.refresh()
    unique = {job.key: job for job in wanted}
    todo = [job for key, job in unique.items() if Record.of(store.get(key)) is None]
    done = len(unique) - len(todo)
    tell = progress or (lambda _: None)
    tell(Step(done, len(unique)))
    stopped = threading.Event()
    waiting = _waiting(_grouped(todo), store, deadline, stopped)
    side_by_side = runner.workers if runner.scheduler is None else None
    with closing(runner.map(partial(run_job, trees=trees), waiting)) as records:
        for record in records:
            store.append(replace(record, workers=side_by_side).to_dict())
            done += 1
            tell(Step(done, len(unique), result=record))
    if stopped.is_set():
        missing = sum(Record.of(store.get(key)) is None for key in unique)
        raise OutOfTime(f"the time budget is used up with {missing} of {len(unique)} runs left; run again to continue")
    found = [Record.of(store.get(job.key)) for job in wanted]
    if None in found:
        lost = wanted[found.index(None)].key
        raise RuntimeError(f"the record {lost} is not in {store.path} though it was written; was the file changed?")
    return found  # type: ignore[return-value]


def graph_of(source: Source) -> Graph:
    """The graph that jobs on a source are run on; it is kept for them."""
    graph: Graph = _graphs.get(_fingerprint(source), lambda: _open(source))[0]
    return graph


# ------------------------------------------------------------------ names of runs


def _key(job: Mapping[str, Any]) -> str:
    """The key of a job as it is stored, by 0.1 or today."""
    parts = {**_legacy.parts_of(job), "split": job["split"], "seed": job["seed"]}
    defaults = asdict(Settings())
    settings = {k: v for k, v in parts["settings"].items() if k in _FIRST_SETTINGS or v != defaults.get(k)}
    revision = {} if NUMERICS == 1 else {"numerics": NUMERICS}
    text = json.dumps(
        {**parts, **revision, "settings": settings, "source": job["source"]["fingerprint"]},
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fingerprint(source: Source) -> str:
    """The source's fingerprint; files are hashed again only if they changed."""
    states = tuple((str(file), state.st_size, state.st_mtime_ns) for file in source.files for state in [file.stat()])
    return _fingerprint_of(json.dumps(source.to_dict(), sort_keys=True, default=repr), states)


@lru_cache(maxsize=4096)
def _fingerprint_of(source: str, states: tuple[Any, ...]) -> str:
    return Source.from_dict(json.loads(source)).fingerprint()


# --------------------------------------------------- graphs, trees, channels, kept

_ONE_AT_A_TIME = threading.RLock()
"""Runs of one process do not overlap, even on several threads: CPU time is that of the process."""


class _Kept:
    """A cache of the few newest values."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self.values:
            while len(self.values) >= self.most:  # before the new one is made: they may be large
                self.values.popitem(last=False)
            self.values[key] = make()
        self.values.move_to_end(key)
        return self.values[key]


_graphs, _trees, _channels = _Kept(2), _Kept(2), _Kept(1)


class _Prepared(NamedTuple):
    recipe: Recipe
    graph: Graph
    stand_in: str | None
    split: Split
    tree: Hierarchy | None
    channels: Channels


def _prepare(job: Job, trees: str | os.PathLike[str] | None) -> _Prepared:
    source, tree_mark, channels_mark = _marks(job, trees)
    graph, stand_in = _graphs.get(source, lambda: _open(job.source))
    split = _split(graph, job)
    recipe = job.recipe.settled(graph, split, stand_in is not None)
    tree = _trees.get(tree_mark, lambda: recipe.build_tree(graph, trees=trees))
    channels = _channels.get(channels_mark, lambda: recipe.channels(graph, tree, split=split))
    return _Prepared(recipe, graph, stand_in, split, tree, channels)


def _marks(job: Job, trees: str | os.PathLike[str] | None = None) -> tuple[Hashable, Hashable, Hashable]:
    """Keys of a job's graph, tree and channels."""
    source, recipe = _fingerprint(job.source), job.recipe
    folder = None if recipe.tree_file is None or trees is None else os.path.abspath(trees)
    tree = (source, recipe.tree_key, folder)
    by_split = recipe.regime == "auto" or recipe.labels or recipe.adjacency
    return source, tree, (*tree, recipe.changed(settings=Settings()), job.split if by_split else None)


def _open(source: Source) -> tuple[Graph, str | None]:
    graph, _ = source.open()
    if graph.labels is None:
        raise ValueError(f"{source.name} has no labels, so there is nothing to learn; name their column with label=")
    return with_features(graph, "degree"), None if graph.features is not None else "degree"


def _split(graph: Graph, job: Job) -> Split:
    from pegfan.datasets import random_splits

    drawn = None if graph.splits else random_splits(graph.labels, k=job.split + 1)[job.split]
    return fit_split(graph, drawn or job.split, seed=0)  # not the job's seed: split i is the same for all of them


def _train(job: Job, ready: _Prepared) -> dict[str, Any]:
    """The numbers of a run; one that diverged has none, and says so."""
    start = time.perf_counter()
    try:
        trained, _ = train_recipe(
            ready.recipe, ready.graph, ready.split, job.seed, tree=ready.tree, channels=ready.channels
        )
    except Diverged as error:
        wall = time.perf_counter() - start
        nothing = dict.fromkeys(("val_loss", "val_metric", "test_metric"))
        return {**nothing, "epochs": 0, "best_epoch": 0, "seconds": wall, "wall": wall, "diverged": str(error)}
    return {
        **{name: plain(getattr(trained.run, name)) for name in ("val_loss", "val_metric", "test_metric")},
        **{name: getattr(trained.run, name) for name in ("epochs", "best_epoch", "seconds")},
        "wall": time.perf_counter() - start,
        "engine": trained.engine,
    }


# ------------------------------------------------------------------ who runs them


def _grouped(jobs: Sequence[Job]) -> list[Job]:
    """The jobs grouped by graph, then by tree, then by channels."""
    first: dict[Hashable, int] = {}
    places = [[first.setdefault((i, mark), len(first)) for i, mark in enumerate(_marks(job))] for job in jobs]
    return [jobs[i] for i in sorted(range(len(jobs)), key=lambda i: places[i])]


def _waiting(jobs: Sequence[Job], store: Store, deadline: float, stopped: threading.Event) -> Iterator[Job]:
    """The jobs that no other process has stored meanwhile, until the time is up."""
    for job in jobs:
        store.refresh()
        if Record.of(store.get(job.key)) is not None:
            continue
        if time.monotonic() >= deadline:
            stopped.set()
            return
        yield job
