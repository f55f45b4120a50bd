"""Training runs as values: what a run depends on is its name, and what was run once is not run again."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pegfan._checks import check_integer, check_kind, check_list, check_mapping, check_number, shown
from pegfan._extras import need
from pegfan._plain import plain, versions
from pegfan.datasets import Source
from pegfan.experiments.records import NUMERICS, Record, agreeing, disagreement, job_name, records_of
from pegfan.experiments.store import Store
from pegfan.fitted import (
    Trained,
    TrainedNetwork,
    network_inputs,
    only_classes,
    train_member,
    train_network_recipe,
)
from pegfan.networks import NetworkRecipe, recipe_of
from pegfan.recipe import Recipe
from pegfan.running import Progress, Runner, Step, one_thread, watch_memory
from pegfan.splits import draw_splits, fit_split, with_features
from pegfan.training import Diverged, Settings

if TYPE_CHECKING:
    from pegfan.channels import Channels
    from pegfan.graph import Graph, Split
    from pegfan.trees import Hierarchy

__all__ = ["ChangedData", "Job", "OutOfTime", "require_same", "run", "run_job"]

_log = logging.getLogger(__name__)

_LOOK = 0.2
"""Seconds between two looks whether other processes have finished what they are at."""


class OutOfTime(Exception):
    """The time budget of `run` is used up; finished jobs are in the store."""


class ChangedData(OSError):
    """Files are not what they were when runs on them were asked for; finished runs are in the store."""


def require_same(before: Mapping[Path, bytes], now: Mapping[Path, bytes]) -> None:
    """Raise `ChangedData`, with the names of the files, where two answers of `Source.hashes` differ."""
    changed = sorted(str(file) for file in before.keys() | now.keys() if before.get(file) != now.get(file))
    if changed:
        raise ChangedData(
            f"{', '.join(changed)} changed while runs on it were made; those that are finished are stored, and are of "
            "the data as they were: bring these back to go on, or run again to begin with the new"
        )


@dataclass(frozen=True)
class Job:
    """One training run, by everything that its numbers depend on.

    Attributes
    ----------
    source
        The graph. Where it has no splits, split i is the i-th of ``pegfan.splits.draw_splits``; labels, validation
        nodes and features that are missing are treated as by the classifiers.
    recipe
        The model: a `pegfan.Recipe`, or a `pegfan.networks.NetworkRecipe`.
    split
        Which split.
    seed
        Of the weights and dropout.

    Examples
    --------
    >>> graph = Source.of("synthetic", gamma=0.2, n=300, n_edges=900, n_features=5)
    >>> job = Job(graph, Recipe.of({"h": 4, "kind": "b", "regime": "heterophily", "epochs": 20}), split=0, seed=42)
    >>> job.name
    '...'
    >>> Job.from_dict(job.to_dict()) == job
    True
    """

    source: Source
    recipe: Recipe | NetworkRecipe
    split: int
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.source, Source):
            raise TypeError(f"source must be a Source, see Source.of; got {type(self.source).__name__}")
        if not isinstance(self.recipe, (Recipe, NetworkRecipe)):
            raise TypeError(
                f"recipe must be a Recipe or a NetworkRecipe, see Recipe.of; got {type(self.recipe).__name__}"
            )
        for name in ("split", "seed"):
            object.__setattr__(self, name, check_integer(getattr(self, name), name, 0))

    @cached_property
    def hashes(self) -> Mapping[Path, bytes]:
        """The SHA-256 of the source's files, as they are when this is first asked for: the run is one on these."""
        return self.source.hashes()

    @cached_property
    def fingerprint(self) -> str:
        """What stands for the source in names: a hash of its files' bytes and its options."""
        return _fingerprint(self.source, self.hashes)

    @cached_property
    def name(self) -> str:
        """16 hex digits of the SHA-256 of all that defines the run, the source by its fingerprint.

        Runs of one name may still differ, if their trees do or the version of the numbers: see `Record`.
        """
        return job_name(self.to_dict())

    @cached_property
    def cell(self) -> Hashable:
        """What runs have in common that must have one tree: the graph, and the recipe but for its settings."""
        own = self.recipe.changed(settings=Settings()) if isinstance(self.recipe, Recipe) else self.recipe.key
        return self.fingerprint, own

    @cached_property
    def channels_mark(self) -> Hashable:
        """What runs have in common that must have the same channels; the split counts where training labels do."""
        recipe = self.recipe
        by_split = isinstance(recipe, Recipe) and (recipe.regime == "auto" or recipe.labels or recipe.adjacency)
        return self.cell, self.split if by_split else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        source = {**self.source.to_dict(), "fingerprint": self.fingerprint}
        recipe = self.recipe.changes() if isinstance(self.recipe, Recipe) else self.recipe.to_dict()
        return {"source": source, "recipe": recipe, "split": self.split, "seed": self.seed}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The job that `to_dict` wrote; the fingerprint is not trusted but computed from the source."""
        check_mapping(stored, "stored")
        try:
            source, recipe = Source.from_dict(stored["source"]), recipe_of(stored["recipe"])
            return cls(source, recipe, stored["split"], stored["seed"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not what Job.to_dict wrote: {shown(error)}") from error


def run_job(
    job: Job, trees: str | os.PathLike[str] | None = None, relations: str | os.PathLike[str] | None = None
) -> Record:
    """Run a job on one core.

    Parameters
    ----------
    job
        What to run. The graph, tree and channels of the last few jobs are kept for the next ones.
    trees, relations
        The folders of tree files and of relation files, for jobs that name one.

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
    check_kind(job, "job", Job)
    if isinstance(job.recipe, NetworkRecipe):  # torch is imported first, for only what is there can be limited
        need("torch", "torch", f"{job.recipe.label}, like all networks but PEGFAN and FSGNN,")
    require_same(job.hashes, job.source.hashes())
    with _ONE_AT_A_TIME, one_thread():
        for kept in (_trees, _channels) if isinstance(job.recipe, NetworkRecipe) else (_inputs,):
            kept.values.clear()  # what runs of other kinds keep is not this one's memory
        peak = watch_memory()
        if isinstance(job.recipe, NetworkRecipe):
            about = _run_network(job, job.recipe, relations)
        else:
            about = _run_channels(job, job.recipe, trees)
    return Record(
        job=job.to_dict(),
        **about,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        memory=peak(),
    )


def _run_channels(job: Job, recipe: Recipe, trees: str | os.PathLike[str] | None) -> dict[str, Any]:
    ready = _prepare(job, recipe, trees)
    about = (ready.recipe, ready.graph, ready.split, job.seed, ready.tree, ready.channels)
    return {
        **_numbers(lambda: train_member(*about)[0]),
        "channels": len(ready.channels),
        "regime": ready.channels.info.get("regime"),
        "metric": ready.graph.metric,
        "stand_in": ready.stand_in,
        "tree": None if ready.tree is None else _about(ready.tree),
        "channels_digest": _channels_digest(ready.channels),
        "versions": versions("numpy", "scipy"),
    }


def _run_network(job: Job, recipe: NetworkRecipe, relations: str | os.PathLike[str] | None) -> dict[str, Any]:
    graph, stand_in = _graphs.get(job.fingerprint, lambda: _open(job.source, job.hashes))
    split = _split(graph, stand_in, job)
    key = job.fingerprint, recipe.inputs
    inputs = _inputs.get(key, lambda: network_inputs(recipe, graph, relations=relations))
    mark = json.dumps([list(inputs.x.shape), inputs.edges.matrix.nnz, recipe.direction, recipe.scaling])
    return {
        **_numbers(lambda: train_network_recipe(recipe, graph, split, job.seed, inputs=inputs)),
        "channels": 0,
        "regime": None,
        "metric": graph.metric,
        "stand_in": stand_in,
        "tree": None,
        "channels_digest": hashlib.sha256(mark.encode()).hexdigest()[:16],
        "versions": versions("numpy", "scipy", "torch"),
    }


def run(
    jobs: Iterable[Job],
    store: Store,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    runner: Runner | None = None,
    trees: str | os.PathLike[str] | None = None,
    relations: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    budget: float | None = None,
) -> list[Record]:
    """Run jobs that the store does not hold yet, and append their records as they come.

    Workers only compute; this process writes. Jobs on the same graph, tree and channels follow each other, so that a
    process can reuse these; otherwise the order is that of `jobs`. However it is stopped (Ctrl-C, kill -9, a full
    disk), finished jobs are in the store, and calling it again continues from there.

    Several processes may share a store: none runs a job that another one is at. What others are at comes last: it is
    waited for, and taken over if they end without a record of it.

    A job is done if the store has a record of its name in the current version of the numbers. Jobs on one graph by one
    recipe must have one tree: if this machine builds another one than the store's runs have, a warning names both, the
    records stay apart, and those jobs among `jobs` are run again.

    Parameters
    ----------
    jobs
        What to run; jobs of the same name are run once.
    store
        Where records are looked up and go.
    workers
        Processes, each on one core. Results do not depend on their number.
    scheduler
        The address of a Dask scheduler whose workers compute instead. They need this package and the same files at
        the same paths; if a worker dies, others run its jobs again.
    runner
        Used in place of `workers` and `scheduler`; its processes are kept for the next call.
    trees, relations
        The folders of tree files and of relation files, for jobs that name one.
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
            return run(jobs, store, runner=own, trees=trees, relations=relations, progress=progress, budget=budget)
    wanted = check_list(jobs, "jobs", Job)
    check_kind(store, "store", Store)
    check_kind(runner, "runner", Runner)
    deadline = math.inf if budget is None else time.monotonic() + check_number(budget, "budget")
    tell = progress or (lambda _: None)
    unique = {job.name: job for job in wanted}
    this = _Run(store, list(unique.values()))
    todo = this.todo()
    tell(Step(len(unique) - len(todo), len(unique)))
    side_by_side = runner.workers if runner.scheduler is None else None
    while todo:
        done, stopped = len(unique) - len(todo), threading.Event()
        waiting = this.waiting(_grouped(todo), deadline, stopped)
        with this, closing(runner.map(partial(run_job, trees=trees, relations=relations), waiting)) as records:
            for record in records:
                this.expect(record)
                store.append(replace(record, workers=side_by_side).to_dict())
                this.take(record)
                done += 1
                _log.info("run %d of %d stored: %s", done, len(unique), record.name)
                tell(Step(done, len(unique), result=record))
        before, todo = len(todo), this.todo()
        if todo and stopped.is_set():
            raise OutOfTime(
                f"the time budget is used up with {len(todo)} of {len(unique)} runs left; run again to continue"
            )
        if len(todo) == before:  # others are at all of them
            time.sleep(min(_LOOK, max(0.0, deadline - time.monotonic())))
        elif done < len(unique) - len(todo):
            tell(Step(len(unique) - len(todo), len(unique), "stored by another process"))
    found = this.found()
    return [found[job.name] for job in wanted]


def graph_of(source: Source, *, bare: bool = False) -> Graph:
    """The graph that jobs on a source are run on, `bare` without features that stand in; it is kept for them."""
    hashes = source.hashes()
    graph, stand_in = _graphs.get(_fingerprint(source, hashes), lambda: _open(source, hashes))
    return graph.replace(features=None) if bare and stand_in is not None else graph  # type: ignore[no-any-return]


def _fingerprint(source: Source, hashes: Mapping[Path, bytes]) -> str:
    """The source's fingerprint as it is after JSON, where a tuple is a list, so that names last."""
    return Source.from_dict(json.loads(json.dumps(source.to_dict(), default=repr))).fingerprint(hashes)


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


_graphs, _trees, _channels, _inputs = _Kept(2), _Kept(2), _Kept(1), _Kept(2)


class _Prepared(NamedTuple):
    recipe: Recipe
    graph: Graph
    stand_in: str | None
    split: Split
    tree: Hierarchy | None
    channels: Channels


def _prepare(job: Job, recipe: Recipe, trees: str | os.PathLike[str] | None) -> _Prepared:
    source, tree_mark, channels_mark = _marks(job, trees)
    graph, stand_in = _graphs.get(source, lambda: _open(job.source, job.hashes))
    split = _split(graph, stand_in, job)
    recipe = recipe.settled(graph, split, stand_in is not None)
    tree = _trees.get(tree_mark, lambda: recipe.build_tree(graph, trees=trees))
    channels = _channels.get(channels_mark, lambda: recipe.channels(graph, tree, split=split))
    return _Prepared(recipe, graph, stand_in, split, tree, channels)


def _marks(job: Job, trees: str | os.PathLike[str] | None = None) -> tuple[Hashable, Hashable, Hashable]:
    """Keys of a job's graph, tree and channels."""
    source, recipe = job.fingerprint, job.recipe
    if isinstance(recipe, NetworkRecipe):
        return source, None, recipe.inputs
    folder = None if recipe.tree_file is None or trees is None else os.path.abspath(trees)
    return source, (source, recipe.tree_key, folder), (job.channels_mark, folder)


def _open(source: Source, hashes: Mapping[Path, bytes]) -> tuple[Graph, str | None]:
    graph, _ = source.open()
    require_same(hashes, source.hashes())  # what was read is what the run is called by
    if graph.targets is not None:
        raise ValueError(only_classes("a stored run, of compare, search or reproduce,"))
    if graph.labels is None:
        raise ValueError(f"{source.name} has no labels, so there is nothing to learn; name their column with label=")
    return with_features(graph, "degree"), None if graph.features is not None else "degree"


def _about(tree: Hierarchy) -> dict[str, Any]:
    """What a record says of a tree."""
    return {"K": tree.K, "clusters": list(tree.n_clusters), **plain(tree.info), "digest": tree.digest}


def _channels_digest(channels: Channels) -> str:
    """16 hex digits of what channels are: their names, factors, inputs and widths, and the words of how they came."""
    each = [
        [
            channel.name,
            [[f.name, f.hop, f.side, f.scale] for f in channel.factors],
            channel.input_name,
            channel.shape[1],
        ]
        for channel in channels
    ]
    words = {name: value for name, value in channels.info.items() if isinstance(value, (str, int, bool))}
    return hashlib.sha256(json.dumps([each, words], sort_keys=True).encode()).hexdigest()[:16]


def _split(graph: Graph, stand_in: str | None, job: Job) -> Split:
    bare = graph if stand_in is None else graph.replace(features=None)  # as the classifiers draw
    drawn = None if graph.splits else draw_splits(bare, k=job.split + 1)[job.split]
    return fit_split(graph, drawn or job.split, seed=0)  # not the job's seed: split i is the same for all of them


def _numbers(train: Callable[[], Trained | TrainedNetwork]) -> dict[str, Any]:
    """The numbers of a run; one that diverged has none, and says so."""
    start = time.perf_counter()
    try:
        trained = train()
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


class _Run:
    """What one call of `run` has to do: it ends with records of all its jobs that agree."""

    def __init__(self, store: Store, jobs: Sequence[Job]) -> None:
        self.store, self.jobs = store, jobs
        self.by_name = {job.name: job for job in jobs}
        self.made: dict[Hashable, str] = {}  # what this call's runs are made of: trees by cell, and channels
        self.ran: set[str] = set()
        self.claims: dict[str, Callable[[], None]] = {}  # what gives back the names that we are at
        self.before: dict[str, int] = {}
        self.cells: dict[Hashable, list[Job]] = {}
        self.stored: dict[Hashable, set[str]] = {}  # what runs of the store are made of
        store.refresh()
        for job in jobs:
            self.cells.setdefault(job.cell, []).append(job)
            for mark, content in (pair for record in self.current(job) for pair in _contents(job, record)):
                self.stored.setdefault(mark, set()).add(content)

    def current(self, job: Job) -> list[Record]:
        """What the store has of a job in the current version."""
        return records_of(self.store, job, least=NUMERICS)

    def todo(self) -> list[Job]:
        """The jobs that have not run, and those that ran with another tree than the one that is built here."""
        self.store.refresh()
        lacking = [job for jobs in self.cells.values() for job in self._lacking(jobs) if job.name not in self.ran]
        self.before = {job.name: len(self.current(job)) for job in lacking}
        return lacking

    def _lacking(self, jobs: Sequence[Job]) -> Sequence[Job]:
        if jobs[0].cell in self.made:
            return [job for job in jobs if not any(self._fits(job, record) for record in self.current(job))]
        if agreeing(self.current, jobs) is not None:
            return []
        # If all have run, but with different trees, the first one's run tells which tree is built here.
        return [job for job in jobs if not self.current(job)] or jobs[:1]

    def _fits(self, job: Job, record: Record) -> bool:
        """Whether a record is made of what this call's runs are made of, as far as there are any."""
        return all(self.made.get(mark, content) == content for mark, content in _contents(job, record))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        while self.claims:
            self.claims.popitem()[1]()

    def waiting(self, jobs: Sequence[Job], deadline: float, stopped: threading.Event) -> Iterator[Job]:
        """The jobs that no other process has stored meanwhile or is at, until the time is up."""
        for job in jobs:
            if time.monotonic() >= deadline:
                stopped.set()
                return
            require_same(job.hashes, job.source.hashes())  # here, where nothing has to be sent and started for it
            give_back = self.store.claim(job.name)
            if give_back is None:
                continue
            self.claims[job.name] = give_back
            self.store.refresh()  # after the claim: one who was at it stores first, and then gives it back
            if len(self.current(job)) > self.before[job.name]:
                self.claims.pop(job.name)()
                continue
            yield job

    def expect(self, record: Record) -> None:
        """Refuse the record of a run that was not asked for: a worker of another version may call it otherwise."""
        if record.name not in self.claims:
            raise OSError(
                f"a worker sent the run {record.name}, which was not asked for; have all workers the same version of "
                "pegfan?"
            )

    def take(self, record: Record) -> None:
        """Note what a run was made of; warn if the store has runs that were made of something else."""
        job = self.by_name[record.name]
        self.ran.add(record.name)
        self.claims.pop(record.name)()
        for mark, content in _contents(job, record):
            self.made[mark] = content
            if others := self.stored.pop(mark, set()) - {content}:
                warnings.warn(
                    f"{job.source.name}, {job.recipe.name}: this run has {content}, and others in {self.store.path} "
                    f"have {', '.join(sorted(others))}: they are not mixed; those that are asked for run again",
                    stacklevel=3,
                )

    def found(self) -> dict[str, Record]:
        """The records, which agree cell by cell."""
        result: dict[str, Record] = {}
        for jobs in self.cells.values():
            records = agreeing(self.current, jobs)
            if records is None:
                lost = next((job.name for job in jobs if not self.current(job)), None)
                if lost is not None:
                    raise RuntimeError(
                        f"the record {lost} is not in {self.store.path} though it was written; was the file changed?"
                    )
                raise RuntimeError(
                    f"{jobs[0].source.name}, {jobs[0].recipe.name}: {disagreement(self.current, jobs)}; do the workers "
                    "have different versions of pegfan?"
                )
            result |= {record.name: record for record in records}
        return result


def _contents(job: Job, record: Record) -> list[tuple[Hashable, str]]:
    """The tree and the channels of a run, with what jobs have in common that must have the same ones."""
    return list(zip((job.cell, job.channels_mark), record.made_of, strict=True))
