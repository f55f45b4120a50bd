"""Training runs as values: what a run depends on is its name, and what was run once is not run again."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pegfan.datasets import Source
from pegfan.experiments.store import Store
from pegfan.running import Runner

if TYPE_CHECKING:
    from pegfan.channels import Channels
    from pegfan.graph import Graph, Split
    from pegfan.trees import Hierarchy

__all__ = ["Job", "OutOfTime", "run", "run_job", "tree_file"]

Progress = Callable[[int, int, dict[str, Any] | None], None]

NUMERICS = 1
"""Raised when the same job gives other numbers than before, so that older records are not taken for its own."""

_FIRST_SETTINGS = (
    *("hidden", "layers", "dropout", "hop_normalize", "lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca"),
    *("epochs", "patience", "stop", "class_weights"),
)
"""Settings that always are part of a key. One that is added later is left out at its default, so that keys last."""

_NUMBERS = ("val_loss", "val_metric", "test_metric", "seconds", "wall")


class OutOfTime(Exception):
    """The time budget of `run` is spent; what was finished is in the store."""


@dataclass(frozen=True)
class Job:
    """One training run, by everything that its numbers depend on.

    Attributes
    ----------
    source
        The graph. Where it has no splits, split i is the i-th of ``random_splits(graph.labels)``; where it has no
        features, degrees stand in and are not normalised, as in the classifiers.
    tree
        Arguments of `build_tree`; or what `tree_file` says of a file with the labels of every level; or None.
    channels
        ``"model"``: ``"pegfan"`` with arguments of `make_channels`, or ``"fsgnn"`` with those of
        `make_fsgnn_channels`.
    settings
        Fields of `Settings`; those that are missing get their defaults.
    split
        Which split.
    seed
        Of the weights and dropout.

    Examples
    --------
    >>> graph = Source.of("synthetic", gamma=0.2, n=300, edges=900, features=5)
    >>> job = Job(graph, {"method": "ward", "h": 4}, {"model": "pegfan", "kind": "b", "regime": "heterophily"},
    ...           {"epochs": 20}, split=0, seed=42)
    >>> job.key
    '...'
    >>> Job.from_dict(job.to_dict()) == job
    True
    """

    source: Source
    tree: Mapping[str, Any] | None
    channels: Mapping[str, Any]
    settings: Mapping[str, Any]
    split: int
    seed: int

    def __post_init__(self) -> None:
        from pegfan.training import Settings

        if not isinstance(self.source, Source):
            raise TypeError(f"source must be a Source, see Source.of; got {type(self.source).__name__}")
        settings = asdict(Settings.of(self.settings))
        for name, default in asdict(Settings()).items():
            settings[name] = type(default)(settings[name])  # 0 and 0.0 are one setting
        _put(self, "settings", settings)
        _put(self, "tree", None if self.tree is None else _plain(self.tree, "tree"))
        _put(self, "channels", _plain(self.channels, "channels"))
        for name in ("split", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
                raise ValueError(f"{name} must be an integer, 0 or more, got {value!r}")
            _put(self, name, int(value))
        if self.channels.get("model") not in ("pegfan", "fsgnn"):
            raise ValueError(f"channels must name a model, 'pegfan' or 'fsgnn', got {self.channels.get('model')!r}")
        if self.channels["model"] == "pegfan" and self.tree is None:
            raise ValueError("PEGFAN needs a tree: give build_tree's arguments, or use the model 'fsgnn' without")

    @cached_property
    def key(self) -> str:
        """The name of the run: 16 hex digits of the SHA-256 of its canonical JSON, the source by its fingerprint."""
        return _key(self._without_source(), _fingerprint(self.source))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        source = {**self.source.to_dict(), "fingerprint": _fingerprint(self.source)}
        return {"source": source, **self._without_source()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The job that `to_dict` wrote; the fingerprint is not believed but taken anew from the source."""
        try:
            parts = {name: stored[name] for name in ("tree", "channels", "settings", "split", "seed")}
            return cls(source=Source.from_dict(stored["source"]), **parts)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not what Job.to_dict wrote: {error!r}") from error

    def _without_source(self) -> dict[str, Any]:
        return {
            "tree": None if self.tree is None else dict(self.tree),
            "channels": dict(self.channels),
            "settings": dict(self.settings),
            "split": self.split,
            "seed": self.seed,
        }


def tree_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe a file with the labels of every level of a tree, for `Job`: its name and the hash of its bytes.

    The file is an ``.npz`` with ``labels``, one row of cluster numbers a level, fine to coarse or coarse to fine. A
    root is added where it is missing.
    """
    return {"file": Path(path).name, "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}


def run_job(job: Job, trees: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Run a job on one core and return its record.

    Parameters
    ----------
    job
        What to run. The graph, tree and channels of the last few jobs are kept for the next ones.
    trees
        The folder of tree files.

    Returns
    -------
    dict
        ``key``; ``job``; ``result``; ``versions``; ``when``. The result holds ``val_loss``, ``val_metric`` and
        ``test_metric`` (None where a part of the split is empty, or where the loss ``diverged``), ``epochs``,
        ``best_epoch``, ``seconds`` (CPU time of the training), ``wall`` (its elapsed time), ``channels`` (how many),
        ``regime``, ``metric``, ``engine``, ``stand_in`` (what stood in for features, or None) and ``tree``. The same
        job gives the same record, times apart.

    Examples
    --------
    >>> graph = Source.of("synthetic", n=300, edges=3000, features=20)
    >>> job = Job(graph, None, {"model": "fsgnn", "option": "heterophily"}, {"epochs": 60}, split=0, seed=42)
    >>> record = run_job(job)
    >>> record["result"]["channels"], record["result"]["val_metric"] > 0.5
    (4, True)
    """
    from threadpoolctl import threadpool_limits

    with _ONE_AT_A_TIME, threadpool_limits(limits=1):
        ready = _prepare(job, trees)
        result = _train(job, ready)
    tree, info = ready.tree, ready.channels.info
    result["channels"] = len(ready.channels)
    result["regime"] = info.get("regime", info.get("option"))
    result["metric"] = ready.graph.metric
    result["stand_in"] = ready.stand_in
    result["tree"] = None
    if tree is not None:
        result["tree"] = {"K": tree.K, "clusters": list(tree.n_clusters), **_plain(tree.info, "info")}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"key": job.key, "job": job.to_dict(), "result": result, "versions": versions(), "when": when}


def run(
    jobs: Iterable[Job],
    store: Store,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    trees: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    budget: float | None = None,
) -> list[dict[str, Any]]:
    """Run jobs that the store does not hold yet, and append their records as they come.

    Workers only compute; this process writes. Jobs on the same graph, tree and channels follow each other, so that what
    a process keeps serves them; otherwise the order is that of `jobs`. Whatever stops this (Ctrl-C, kill -9, a full
    disk), what was finished is in the store, and calling it again goes on from there.

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
        the same paths; a worker that dies has its jobs run again by others.
    trees
        The folder of tree files, for jobs that name one.
    progress
        Called with the number of jobs done, of all, and the newest record (None at the start).
    budget
        Seconds after which no further job is begun; those that run are finished, and `OutOfTime` is raised.

    Returns
    -------
    list of dict
        The records, in the order of `jobs`.

    Examples
    --------
    >>> import tempfile
    >>> graph = Source.of("synthetic", n=300, edges=3000, features=20)
    >>> jobs = [Job(graph, None, {"model": "fsgnn"}, {"epochs": 5}, split=0, seed=seed) for seed in (42, 43)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run(jobs, Store(folder))
    ...     again = run(jobs, Store(folder), progress=lambda done, total, record: print(done, "of", total))
    2 of 2
    >>> first == again
    True
    """
    wanted = list(jobs)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be an integer, at least 1, got {workers!r}")
    deadline = math.inf if budget is None else time.monotonic() + budget
    store.refresh()
    unique = {job.key: job for job in wanted}
    todo = [job for key, job in unique.items() if stored(store, key) is None]
    done = len(unique) - len(todo)
    if progress:
        progress(done, len(unique), None)
    stopped = threading.Event()
    waiting = _waiting(_grouped(todo), store, deadline, stopped)
    with closing(_records(waiting, workers, scheduler, trees)) as records:
        for record in records:
            store.append({**record, "workers": workers if scheduler is None else None})
            done += 1
            if progress:
                progress(done, len(unique), record)
    if stopped.is_set():
        missing = sum(stored(store, key) is None for key in unique)
        raise OutOfTime(f"the time budget is spent with {missing} of {len(unique)} runs to do; run again to go on")
    return [_known(store, job.key) for job in wanted]


def graph_of(source: Source) -> Graph:
    """The graph that jobs on a source are run on; it is kept for them."""
    graph: Graph = _graphs.get(_fingerprint(source), lambda: _open(source))[0]
    return graph


def versions() -> dict[str, str]:
    """The versions of what computed a result."""
    from importlib.metadata import version

    from pegfan import __version__

    parts = {name: version(name) for name in ("numba", "numpy", "scipy", "torch")}
    return {"pegfan": __version__, "python": platform.python_version(), **parts}


# ------------------------------------------------------------------ names of runs


def _put(job: Job, name: str, value: Any) -> None:
    object.__setattr__(job, name, value)  # the class is frozen for everybody else


def _plain(values: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The mapping as JSON would give it back, so that equal jobs compare equal."""
    try:
        text = json.dumps(dict(values), allow_nan=False, default=lambda value: value.tolist())
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{what} must hold plain values that JSON can hold: {error}") from error
    plain: dict[str, Any] = json.loads(text)
    return plain


def _key(parts: Mapping[str, Any], fingerprint: str) -> str:
    from pegfan.training import Settings

    defaults = asdict(Settings())
    settings = {k: v for k, v in parts["settings"].items() if k in _FIRST_SETTINGS or v != defaults.get(k)}
    revision = {} if NUMERICS == 1 else {"numerics": NUMERICS}
    text = json.dumps(
        {**parts, **revision, "settings": settings, "source": fingerprint}, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_fingerprints: dict[Hashable, str] = {}


def _fingerprint(source: Source) -> str:
    """The source's fingerprint; files are hashed again only if they changed."""
    states = tuple((str(file), state.st_size, state.st_mtime_ns) for file in source.files for state in [file.stat()])
    mark = (source.where, json.dumps(source.options, sort_keys=True, default=repr), states)
    if mark not in _fingerprints:
        _fingerprints[mark] = source.fingerprint()
    return _fingerprints[mark]


def stored(store: Store, key: str) -> dict[str, Any] | None:
    """The record of a key if it is what `run_job` writes; a hostile or foreign one is as good as none."""
    record = store.get(key)
    if record is None:
        return None
    job, result = record.get("job"), record.get("result")
    if not isinstance(job, dict) or not isinstance(result, dict):
        return None
    numbers = all(isinstance(result.get(name), (int, float, type(None))) for name in _NUMBERS)
    counts = all(isinstance(result.get(name), int) for name in ("epochs", "best_epoch", "channels"))
    try:
        parts = {name: job[name] for name in ("tree", "channels", "settings", "split", "seed")}
        genuine = _key(parts, job["source"]["fingerprint"]) == key
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return record if numbers and counts and genuine else None


def _known(store: Store, key: str) -> dict[str, Any]:
    record = stored(store, key)
    if record is None:
        raise RuntimeError(f"the record {key} is not in {store.path} though it was written; was the file changed?")
    return record


# --------------------------------------------------- graphs, trees, channels, kept

_ONE_AT_A_TIME = threading.RLock()
"""Runs of one process do not overlap, on whatever threads: CPU time and thread numbers belong to the process."""


class _Kept:
    """The newest few of something."""

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
    graph: Graph
    stand_in: str | None
    split: Split
    tree: Hierarchy | None
    channels: Channels


def _prepare(job: Job, trees: str | os.PathLike[str] | None) -> _Prepared:
    source, tree_mark, channels_mark = _marks(job)
    graph, stand_in = _graphs.get(source, lambda: _open(job.source))
    split = _split(graph, job)
    tree = None if job.tree is None else _trees.get(tree_mark, lambda: _tree(job.tree or {}, graph, trees))
    options = {**job.channels, "normalize_features": False} if stand_in else job.channels
    channels = _channels.get(channels_mark, lambda: _make_channels(options, graph, tree, split))
    return _Prepared(graph, stand_in, split, tree, channels)


def _marks(job: Job) -> tuple[Hashable, Hashable, Hashable]:
    """What tells graphs, trees and channels of jobs apart."""
    source = _fingerprint(job.source)
    tree = (source, json.dumps(job.tree, sort_keys=True))
    by_split = job.channels["model"] == "pegfan" and job.channels.get("regime", "auto") == "auto"
    return source, tree, (*tree, json.dumps(job.channels, sort_keys=True), job.split if by_split else None)


def _open(source: Source) -> tuple[Graph, str | None]:
    graph, _ = source.open()
    if graph.labels is None:
        raise ValueError(f"{source.name} has no labels, so there is nothing to learn; name their column with label=")
    if graph.features is not None:
        return graph, None
    from pegfan.datasets import stand_in_features

    return stand_in_features(graph, "degree"), "degree"


def _split(graph: Graph, job: Job) -> Split:
    from pegfan.datasets import random_splits

    if not graph.splits:
        return random_splits(graph.labels, k=job.split + 1)[job.split]
    if job.split >= len(graph.splits):
        raise ValueError(f"{job.source.name} has splits 0 to {len(graph.splits) - 1}; split {job.split} was asked for")
    return graph.splits[job.split]


def _tree(options: Mapping[str, Any], graph: Graph, folder: str | os.PathLike[str] | None) -> Hierarchy:
    from pegfan.trees import build_tree

    if "file" in options:
        return _tree_of_file(options, graph, folder)
    try:
        return build_tree(graph, **options)
    except TypeError as error:
        raise ValueError(f"the tree's options {dict(options)} do not fit build_tree: {error}") from error


def _tree_of_file(options: Mapping[str, Any], graph: Graph, folder: str | os.PathLike[str] | None) -> Hierarchy:
    from pegfan._npz import read_npz
    from pegfan.trees import Hierarchy

    name = options["file"]
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"a tree's file is a plain name in the folder of trees, got {name!r}")
    if folder is None:
        raise ValueError(f"the job uses the tree file {name}: say with trees= in which folder it is")
    path = Path(folder) / name
    if tree_file(path)["sha256"] != options.get("sha256"):
        raise ValueError(f"{path} is not the file that the job was made with: its SHA-256 differs")
    arrays = read_npz(path)
    if "labels" not in arrays:
        raise ValueError(f"{path} holds no array 'labels' with a row of cluster numbers for every level")
    tree = Hierarchy.from_labels(list(arrays["labels"]), info=dict(options))
    if tree.n != graph.n:
        raise ValueError(f"{path} is a tree of {tree.n} nodes, and the graph has {graph.n}")
    return tree


def _make_channels(options: Mapping[str, Any], graph: Graph, tree: Hierarchy | None, split: Split) -> Channels:
    from pegfan.channels import make_channels, make_fsgnn_channels
    from pegfan.framelets import FrameletSystem

    given = {name: value for name, value in options.items() if name != "model"}
    try:
        if options["model"] == "fsgnn":
            return make_fsgnn_channels(graph, **given)
        assert tree is not None
        return make_channels(graph, FrameletSystem(tree), split=split, **given)
    except TypeError as error:
        raise ValueError(f"the channels {dict(options)} do not fit the model: {error}") from error


def _train(job: Job, ready: _Prepared) -> dict[str, Any]:
    """The numbers of a run; one whose loss is lost to infinity has none, and says so."""
    from pegfan.training import Diverged, train

    importlib.import_module("pegfan.training.fast")  # numba takes a second to import, which is not the run's
    start = time.perf_counter()
    try:
        outcome = train(
            ready.channels,
            ready.graph.labels,
            ready.split,
            job.settings,
            classes=ready.graph.n_classes,
            metric=ready.graph.metric,  # type: ignore[arg-type]
            seed=job.seed,
        )
    except Diverged as error:
        wall = time.perf_counter() - start
        nothing = dict.fromkeys(("val_loss", "val_metric", "test_metric"))
        return {**nothing, "epochs": 0, "best_epoch": 0, "seconds": wall, "wall": wall, "diverged": str(error)}
    only = outcome.runs[0]
    return {
        "val_loss": _finite(only.val_loss),
        "val_metric": _finite(only.val_metric),
        "test_metric": _finite(only.test_metric),
        "epochs": only.epochs,
        "best_epoch": only.best_epoch,
        "seconds": only.seconds,
        "wall": time.perf_counter() - start,
        "engine": outcome.engine,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ------------------------------------------------------------------ who runs them


def _grouped(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with those of one graph together, in them those of one tree, in them those of the same channels."""
    first: dict[Hashable, int] = {}
    places = [[first.setdefault((i, mark), len(first)) for i, mark in enumerate(_marks(job))] for job in jobs]
    return [jobs[i] for i in sorted(range(len(jobs)), key=lambda i: places[i])]


def _waiting(jobs: Sequence[Job], store: Store, deadline: float, stopped: threading.Event) -> Iterator[Job]:
    """The jobs, but those that another process has stored meanwhile, until the time is up."""
    for job in jobs:
        store.refresh()
        if stored(store, job.key) is not None:
            continue
        if time.monotonic() >= deadline:
            stopped.set()
            return
        yield job


def _records(
    waiting: Iterator[Job], workers: int, scheduler: str | None, trees: str | os.PathLike[str] | None
) -> Generator[dict[str, Any]]:
    with Runner(workers, scheduler=scheduler) as runner:
        yield from runner.map(partial(run_job, trees=trees), waiting)
