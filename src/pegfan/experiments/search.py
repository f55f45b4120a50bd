"""Search over training settings: the paper's grids, successive halving, or optuna's sampler; chosen on validation."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from pegfan import _defaults as default
from pegfan._checks import shown
from pegfan._extras import need
from pegfan._plain import plain
from pegfan.datasets import Source
from pegfan.experiments.jobs import Job, OutOfTime, require_same, run
from pegfan.experiments.records import NUMERICS, Record, agreeing, records_of
from pegfan.experiments.store import Store
from pegfan.metrics import METRICS
from pegfan.recipe import Recipe
from pegfan.running import Progress, Runner, Step

__all__ = ["Rung", "SearchResult", "Standing", "climb", "default_rungs", "grid", "search"]

Entry = Mapping[str, Any]
"""Settings that are searched, by name."""
STRATEGIES = ("grid", "halving", "optuna")

GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "paper": {
        "wd_sca": (0.0, 1e-3, 1e-1),
        "lr_sca": (0.01, 0.04),
        "wd_fc1": (0.0, 1e-4, 1e-3),
        "wd_fc2": (0.0, 1e-4, 1e-3),
        "lr_fc": (0.005, 0.01),
        "dropout": (0.5,),
    },
    "authors": {
        "wd_sca": (0.0, 1e-4, 1e-3, 1e-2, 1e-1),
        "wd_fc1": (0.0, 1e-4, 1e-3),
        "wd_fc2": (0.0, 1e-3, 1e-4),
        "lr_sca": (0.04, 0.02, 0.01, 0.005),
        "lr_fc": (0.01, 0.005),
        "dropout": (0.5, 0.6, 0.7),
    },
}

_RANGES = {
    "lr_fc": (2e-3, 2e-2),
    "lr_sca": (2e-3, 5e-2),
    "wd_fc1": (1e-6, 1e-2),
    "wd_fc2": (1e-6, 1e-2),
    "wd_sca": (1e-5, 0.3),
}
"""What optuna draws from, on a logarithmic scale; and dropout from 0.3 to 0.8, and hop_normalize."""

_FIRST = {"lr_fc": 0.01, "lr_sca": 0.005, "wd_fc1": 1e-6, "wd_fc2": 1e-6, "wd_sca": 0.1}
"""optuna's first trial: near the default settings."""

_PLACE = "place"
"""The first column of the table, which has the settings next."""
_NUMBERS = ("rung", "epochs", "splits", "val_metric", "val_std", "val_loss", "test_metric", "test_std", "keys")
"""Its last columns."""
_HEADER = 10_000
"""The most characters of its first line that are looked at."""

_BATCH = 4
"""Trials that are drawn at a time. It is not the number of workers: trials must not depend on that."""
_WORST = 1e3
"""A log loss that no run has."""
_CHUNK = 3
"""Splits that are run before a setting is judged."""
_MARGIN = 0.005
"""A setting within this of the leader is never hopeless."""


class Rung(NamedTuple):
    """A round of successive halving: how many settings enter it, for how many epochs, on how many splits."""

    settings: int
    epochs: int
    splits: int


@dataclass(frozen=True)
class Standing:
    """Settings and their results on validation.

    Attributes
    ----------
    settings
        Those that differ between candidates.
    rung, epochs, splits
        How far they came: the round, its epochs, and the number of splits.
    val_metric, val_std, val_loss
        Mean and population standard deviation of the validation metric over splits, and the mean loss.
    larger
        Whether larger values of the metric are better.
    keys
        The keys of the runs in the store, one per split.
    """

    settings: Mapping[str, Any]
    rung: int
    epochs: int
    splits: int
    val_metric: float
    val_std: float
    val_loss: float
    keys: tuple[str, ...] = field(repr=False)
    larger: bool = True

    @property
    def rank(self) -> tuple[float, ...]:
        """Larger is better: how far it came, then the validation metric, then the lower validation loss."""
        return (self.rung, self.splits, self.val_metric if self.larger else -self.val_metric, -self.val_loss)


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    strategy
        How it searched.
    metric
        What was measured.
    candidates
        The best by validation first, among those that came equally far.
    test_metrics
        The winner's test metric on its splits. Test metrics of the others are not looked at.
    complete
        Whether the search came to its end; False if the time was up.
    computed, reused
        Runs that this call computed, and those that it found in the store: from before, or by other processes.
    """

    strategy: str
    metric: str
    candidates: tuple[Standing, ...]
    test_metrics: tuple[float, ...]
    complete: bool
    computed: int
    reused: int

    @property
    def best(self) -> Standing:
        """The winner."""
        return self.candidates[0]

    @property
    def test_mean(self) -> float:
        """The mean of the winner's test metric over splits."""
        return float(np.mean(self.test_metrics))

    @property
    def test_std(self) -> float:
        """Its population standard deviation."""
        return float(np.std(self.test_metrics))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return plain({**asdict(self), "test_mean": self.test_mean, "test_std": self.test_std})  # type: ignore[no-any-return]

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the candidates as a table, one per row, the best first; the winner's row has its test metric."""
        from pegfan._atomic import replacing

        names = list(dict.fromkeys(name for entry in self.candidates for name in entry.settings))
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_PLACE, *names, *_NUMBERS])
        for place, entry in enumerate(self.candidates, start=1):
            test = [self.test_mean, self.test_std] if place == 1 else ["", ""]
            own = [entry.settings.get(name, "") for name in names]
            writer.writerow([place, *own, *(getattr(entry, n) for n in _NUMBERS[:-3]), *test, " ".join(entry.keys)])
        with replacing(path) as file:
            file.write(text.getvalue().encode())


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table of `SearchResult.write_csv`, by the names of its columns.

    Parameters
    ----------
    path
        The file.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        columns = file.readline(_HEADER).rstrip("\n").split(",")
    return columns[0] == _PLACE and tuple(columns[-len(_NUMBERS) :]) == _NUMBERS


def grid(name: Literal["paper", "authors"] = "paper") -> list[dict[str, float]]:
    """Every setting of a published grid: the paper's search table, 108, or that of the authors' code, 1080.

    Examples
    --------
    >>> len(grid("paper")), len(grid("authors"))
    (108, 1080)
    >>> grid("paper")[0]
    {'wd_sca': 0.0, 'lr_sca': 0.01, 'wd_fc1': 0.0, 'wd_fc2': 0.0, 'lr_fc': 0.005, 'dropout': 0.5}
    """
    if name not in GRIDS:
        raise ValueError(f"the grids are {' and '.join(map(repr, GRIDS))}, got {shown(name)}")
    axes = GRIDS[name]
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def default_rungs(settings: int, epochs: int = 1500, splits: int = 10) -> list[Rung]:
    """Three rungs: all settings briefly on one split, a sixth on two, a twenty-fourth to the end on all.

    Examples
    --------
    >>> default_rungs(108)
    [Rung(settings=108, epochs=30, splits=1), Rung(settings=18, epochs=125, splits=2),
     Rung(settings=5, epochs=1500, splits=10)]
    """
    return [
        Rung(settings, min(epochs, max(10, epochs // 50)), 1),
        Rung(max(3, -(-settings // 6)), min(epochs, max(20, epochs // 12)), min(2, splits)),
        Rung(max(2, -(-settings // 24)), epochs, splits),
    ]


def climb(
    entries: Sequence[Entry],
    rungs: Sequence[Rung],
    judge: Callable[[int, Sequence[Entry]], Sequence[tuple[float, ...] | None] | None],
    apart: Sequence[str] = (),
) -> tuple[int, list[Entry]]:
    """Successive halving: every rung takes the best settings of the one before; equal ones stay in their order.

    `judge` gets a rung's number and the settings that enter it, and returns their ranks: larger is better, None is
    given up; or None where ranks are not known yet, which ends the climb. `apart` names settings that only the last
    rung compares: before, the best of every combination of their values go on first, then the second best of each.
    Returned are the number of rungs that were climbed, and the settings that are left, the best first, or those that
    the next rung awaits.

    Examples
    --------
    >>> entries = [{"a": a, "b": b} for a in (0, 1) for b in (2, 3)]
    >>> ranks = lambda place, entering: [(10 * one["a"] + one["b"],) for one in entering]
    >>> climb(entries, [Rung(4, 5, 1), Rung(2, 50, 1)], ranks, apart=["a"])
    (2, [{'a': 1, 'b': 3}, {'a': 0, 'b': 3}])
    """
    left = list(entries)
    for place, rung in enumerate(rungs):
        left = left[: rung.settings]
        ranks = judge(place, left)
        if ranks is None:
            return place, left
        through = [(rank, entry) for rank, entry in zip(ranks, left, strict=True) if rank is not None]
        left = [entry for _, entry in sorted(through, key=lambda pair: pair[0], reverse=True)]
        if place < len(rungs) - 1:
            groups: Counter[tuple[Any, ...]] = Counter()
            turns = []
            for entry in left:
                group = tuple(entry[name] for name in apart)
                turns.append(groups[group])
                groups[group] += 1
            left = [left[k] for k in sorted(range(len(left)), key=turns.__getitem__)]
    return len(rungs), left


def search(
    source: Source,
    recipe: Recipe,
    store: Store,
    *,
    strategy: Literal["grid", "halving", "optuna"] = "halving",
    settings: Literal["paper", "authors"] | Sequence[Mapping[str, Any]] = "paper",
    splits: int | Sequence[int] = 1,
    rungs: Sequence[Rung | tuple[int, int, int]] | None = None,
    trials: int = 40,
    seed: int = default.SEED,
    workers: int = 1,
    scheduler: str | None = None,
    trees: str | os.PathLike[str] | None = None,
    budget: float | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Search for the settings with the best mean validation metric; ties are decided by validation loss.

    The test metric plays no part in it, and is given for the winner only. Every run is a `Job` in the store: a search
    that was killed continues when it is called again, and computes nothing twice. The same arguments give the same
    result, on any number of workers.

    ``"grid"``
        Every setting on every split, to the end.
    ``"halving"``
        Successive halving. Every rung runs its settings on the first splits for its epochs and passes the best on
        to the next rung, which has fewer settings, more epochs and more splits.
    ``"optuna"``
        Trials drawn by optuna's TPE sampler from ranges around the grids, four at a time. The study lives in memory:
        a search that is continued draws the same trials from the same seed, and finds their runs in the store.

    ``"halving"`` and ``"optuna"`` also prune across splits. Three splits are run at a time; after each three, a setting
    is given up if its mean validation metric is behind the leader's on the same splits by more than half a point and by
    more than two standard errors of their differences.

    Parameters
    ----------
    source
        The graph.
    recipe
        The model; all runs have its settings, except for those that are searched.
    store
        Where the runs go.
    strategy
        See above.
    settings
        A grid's name or the settings themselves; not used by optuna.
    splits
        How many of the splits, or which.
    rungs
        Of ``"halving"``: (settings, epochs, splits) of every round; `default_rungs` by default.
    trials
        Of ``"optuna"``: how many.
    seed
        Split i is run with seed + i; also the sampler's seed.
    workers, scheduler, trees
        As in `run`.
    budget
        Seconds after which no new run is started; the result then says that it is not complete.
    progress
        Called with a `pegfan.running.Step` after every run; work is counted in the most epochs that
        runs may take.

    Examples
    --------
    >>> import tempfile
    >>> graph = Source.of("synthetic", n=200, n_edges=1500, n_features=10, splits=2)
    >>> recipe = Recipe.of({"method": "none", "regime": "all", "scaling": "none", "epochs": 40})
    >>> some = [{"lr_fc": rate} for rate in (0.0001, 0.01, 0.02)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = search(graph, recipe, Store(folder), settings=some, splits=2)
    >>> result.best.settings, result.best.splits, result.complete
    ({'lr_fc': 0.02}, 2, True)
    """
    wanted = list(range(splits)) if isinstance(splits, int) else list(splits)
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(f"splits must name at least one split, each once; got {shown(splits)}")
    deadline = math.inf if budget is None else time.monotonic() + budget
    entries = grid(settings) if isinstance(settings, str) else [dict(entry) for entry in settings]
    if strategy != "optuna" and not entries:
        raise ValueError("there are no settings to search among")
    with Runner(workers, scheduler=scheduler) as runner:
        this = _Search(source, recipe, store, wanted, seed, runner, trees, deadline, progress)
        complete = True
        try:
            if strategy == "grid":
                this.whole_grid(entries)
            elif strategy == "halving":
                this.halving(entries, _check_rungs(rungs, len(entries), recipe.settings.epochs, len(wanted)))
            elif strategy == "optuna":
                this.sampled(trials)
            else:
                raise ValueError(f"strategy must be 'grid', 'halving' or 'optuna', got {shown(strategy)}")
        except OutOfTime:
            complete = False
        return this.result(strategy, complete)


@dataclass(eq=False)
class _Trace:
    """The runs of one setting in one rung."""

    settings: Mapping[str, Any]
    rung: int
    epochs: int
    jobs: list[Job] = field(default_factory=list)
    scores: list[tuple[float, float]] = field(default_factory=list)  # validation metric and loss, split by split

    @property
    def metrics(self) -> list[float]:
        return [metric for metric, _ in self.scores]

    @property
    def rank(self) -> tuple[float, float]:
        """Larger is better."""
        metric, loss = np.mean(self.scores, axis=0)
        return float(metric), -float(loss)


@dataclass
class _Search:
    """One search: what its runs have in common, and what was asked for so far."""

    source: Source
    recipe: Recipe
    store: Store
    splits: list[int]
    seed: int
    runner: Runner
    trees: str | os.PathLike[str] | None
    deadline: float
    progress: Progress | None
    traces: list[_Trace] = field(default_factory=list)
    runs: int = 0
    computed: int = 0  # of them, by this process
    work: int = 0
    computed_work: int = 0
    ahead: tuple[int, int] = (0, 0)  # runs and work planned after those that are being run
    start: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.hashes = self.source.hashes()

    # --------------------------------------------------------------- strategies

    def whole_grid(self, entries: Sequence[Entry]) -> None:
        traces = [self.trace(entry, 0, self.recipe.settings.epochs) for entry in entries]
        self.evaluate(traces, self.splits)

    def halving(self, entries: Sequence[Entry], rungs: Sequence[Rung]) -> None:
        def judge(place: int, entering: Sequence[Entry]) -> list[tuple[float, ...] | None]:
            rung, rest = rungs[place], [(later.settings * later.splits, later.epochs) for later in rungs[place + 1 :]]
            self.ahead = (sum(runs for runs, _ in rest), sum(runs * epochs for runs, epochs in rest))
            traces = [self.trace(entry, place, rung.epochs) for entry in entering]
            self.race(traces, self.splits[: rung.splits])
            # Only those that were not dropped were run on all splits of the rung.
            return [trace.rank if len(trace.scores) == rung.splits else None for trace in traces]

        climb(entries, rungs, judge)

    def sampled(self, trials: int) -> None:
        epochs, champion = self.recipe.settings.epochs, None
        with _Sampler(self.seed) as sampler:
            for first in range(0, trials, _BATCH):
                count = min(_BATCH, trials - first)
                left = (trials - first - count) * len(self.splits)
                self.ahead = (left, left * epochs)
                traces = [self.trace(entry, 0, epochs) for entry in sampler.ask(count)]
                self.race(traces, self.splits, champion)
                sampler.tell([trace.rank[0] for trace in traces])
                through = [trace for trace in traces if len(trace.scores) == len(self.splits)]
                champion = max([champion, *through] if champion else through, key=lambda t: t.rank, default=None)

    # ---------------------------------------------------------------- their steps

    def trace(self, settings: Mapping[str, Any], rung: int, epochs: int) -> _Trace:
        self.traces.append(_Trace(settings, rung, epochs))
        return self.traces[-1]

    def race(self, traces: Sequence[_Trace], splits: Sequence[int], champion: _Trace | None = None) -> None:
        """Run settings on splits, a few at a time, and drop those that are hopeless."""
        alive, behind = list(traces), self.ahead
        for start in range(0, len(splits), _CHUNK):
            chunk, later = splits[start : start + _CHUNK], max(0, len(splits) - start - _CHUNK) * len(alive)
            self.ahead = (behind[0] + later, behind[1] + later * traces[0].epochs)
            self.evaluate(alive, chunk)
            done = start + len(chunk)
            known = [trace.metrics for trace in alive] + ([champion.metrics[:done]] if champion else [])
            leader = max(known, key=lambda metrics: float(np.mean(metrics)))
            alive = [trace for trace in alive if not _hopeless(trace.metrics, leader)]
            if not alive:
                break
        self.ahead = behind

    def evaluate(self, traces: Sequence[_Trace], splits: Sequence[int]) -> None:
        """Run settings on splits; what is in the store is taken from there."""
        jobs = [[self.job(trace, split) for split in splits] for trace in traces]
        for trace, own in zip(traces, jobs, strict=True):
            trace.jobs += own  # before they run: if the time is up, those that were finished count
        weight = traces[0].epochs
        before, work = self.runs, self.work

        def report(step: Step) -> None:
            self.runs, self.work = before + step.done, work + step.done * weight
            if step.result is not None:
                self.computed += 1
                self.computed_work += weight
            if self.progress:
                self.progress(self.step((step.planned - step.done), weight))

        left = None if self.deadline == math.inf else max(self.deadline - time.monotonic(), 0.0)
        flat = [job for own in jobs for job in own]
        run(flat, self.store, runner=self.runner, trees=self.trees, progress=report, budget=left)
        if self.records() is None:  # another tree than before: all that was asked for is to be of one
            every = [job for trace in self.traces for job in trace.jobs]
            run(every, self.store, runner=self.runner, trees=self.trees, budget=left)
        records = self.records() or {}
        for trace in self.traces:
            trace.scores = [_score(records[job.name]) for job in trace.jobs]

    def records(self) -> dict[str, Record] | None:
        """What has run so far, by the jobs' names; None if that is not of one tree."""
        done = {job.name: job for trace in self.traces for job in trace.jobs if self.current(job)}
        found = agreeing(self.current, list(done.values()))
        return None if found is None else {record.name: record for record in found}

    def current(self, job: Job) -> list[Record]:
        return records_of(self.store, job, least=NUMERICS)

    def step(self, left: int, weight: int) -> Step:
        """How far the search is: in epochs at most, with the runs, their rate and the time left in words."""
        runs, more = self.ahead
        planned, elapsed = self.work + left * weight + more, time.monotonic() - self.start
        words = f"{self.runs} of at most {self.runs + left + runs} runs"
        if self.computed and elapsed > 0:
            rest = elapsed * (planned - self.work) / self.computed_work
            words += f", {self.computed / elapsed:.2g} per second, {_clock(rest)} left"
        return Step(self.work, planned, words, elapsed=elapsed)

    def job(self, trace: _Trace, split: int) -> Job:
        recipe = self.recipe.changed(**{**trace.settings, "epochs": trace.epochs})
        made = Job(self.source, recipe, split, self.seed + split)
        require_same(self.hashes, made.hashes)  # else settings would be compared on different data
        return made

    # ------------------------------------------------------------------- the end

    def result(self, strategy: str, complete: bool) -> SearchResult:
        records = self.records()
        if records is None:
            raise OutOfTime("the time ran out while runs were repeated with another tree; run again to continue")
        found = [candidate for trace in self.traces if (candidate := self.candidate(trace, records))]
        # Later rungs come later, and replace what the same settings reached before.
        deepest = {json.dumps(candidate.settings, sort_keys=True): candidate for candidate in found}
        if not deepest:
            raise OutOfTime("the time ran out before a single run was finished; allow more, and run again to continue")
        ordered = sorted(deepest.values(), key=lambda candidate: candidate.rank, reverse=True)
        by_key = {record.key: record for record in records.values()}
        winner = [by_key[key] for key in ordered[0].keys]
        test = tuple(math.nan if one.test_metric is None else one.test_metric for one in winner)
        reused = self.runs - self.computed
        return SearchResult(strategy, winner[0].metric, tuple(ordered), test, complete, self.computed, reused)

    def candidate(self, trace: _Trace, records: Mapping[str, Record]) -> Standing | None:
        own = [records[job.name] for job in trace.jobs if job.name in records]
        if not own:
            return None
        metrics, losses = np.transpose(list(map(_score, own)))
        metric, keys = METRICS[own[0].metric], tuple(one.key for one in own)
        numbers = metric.gain(float(metrics.mean())), float(metrics.std()), float(losses.mean())
        return Standing(trace.settings, trace.rung, trace.epochs, len(own), *numbers, keys, metric.larger)


class _Sampler:
    """optuna's TPE sampler, quiet and seeded; settings are rounded to three digits, so that they can be read."""

    def __init__(self, seed: int) -> None:
        self.optuna, self.seed = need("optuna", "search", "this strategy"), seed
        self.asked: list[Any] = []

    def __enter__(self) -> Self:
        self.loudness = self.optuna.logging.get_verbosity()
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        sampler = self.optuna.samplers.TPESampler(seed=self.seed)
        self.study = self.optuna.create_study(direction="maximize", sampler=sampler)
        self.study.enqueue_trial({**_FIRST, "dropout": 0.5, "hop_normalize": True})
        return self

    def __exit__(self, *error: object) -> None:
        self.optuna.logging.set_verbosity(self.loudness)

    def ask(self, count: int) -> list[dict[str, Any]]:
        self.asked = [self.study.ask() for _ in range(count)]
        return list(map(self.draw, self.asked))

    def draw(self, trial: Any) -> dict[str, Any]:
        drawn = {name: trial.suggest_float(name, *ends, log=True) for name, ends in _RANGES.items()}
        drawn["dropout"] = trial.suggest_float("dropout", 0.3, 0.8, step=0.1)
        settings: dict[str, Any] = {name: float(f"{value:.3g}") for name, value in drawn.items()}
        return {**settings, "hop_normalize": trial.suggest_categorical("hop_normalize", [True, False])}

    def tell(self, values: Sequence[float]) -> None:
        for trial, value in zip(self.asked, values, strict=True):
            self.study.tell(trial, value)


def _score(record: Record) -> tuple[float, float]:
    """Validation metric, its negative where smaller is better, and loss; a run that diverged has the worst values."""
    metric, loss, known = record.val_metric, record.val_loss, METRICS[record.metric]
    worst = 0.0 if known.larger else -_WORST
    return (worst if metric is None else known.gain(float(metric)), math.inf if loss is None else float(loss))


def _hopeless(metrics: Sequence[float], leader: Sequence[float]) -> bool:
    """The rule of `search`: behind by more than half a point and by more than two standard errors."""
    behind = np.subtract(leader, metrics)
    if len(behind) < _CHUNK:
        return False
    error = behind.std(ddof=1) / math.sqrt(len(behind))
    return bool(behind.mean() > max(_MARGIN, 2 * error))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _check_rungs(given: Sequence[Any] | None, settings: int, epochs: int, splits: int) -> list[Rung]:
    if given is None:
        return default_rungs(settings, epochs, splits)
    rungs = [Rung(*rung) for rung in given]
    if not rungs or any(min(rung) < 1 for rung in rungs):
        raise ValueError(f"rungs are (settings, epochs, splits), each at least 1; got {shown(given)}")
    for rung, following in itertools.pairwise(rungs):
        if following.settings > rung.settings or following.epochs < rung.epochs or following.splits < rung.splits:
            raise ValueError(f"from rung to rung settings get fewer, epochs and splits more; got {rung}, {following}")
    if rungs[-1].splits != splits:
        raise ValueError(
            f"the last rung must use all {splits} splits, so that the winner is known on them: {rungs[-1]}"
        )
    return rungs
