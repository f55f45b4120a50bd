"""How well ``pegfan train`` does by itself: its runs on public splits, as they are made and kept."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pegfan import _defaults as default
from pegfan._plain import plain
from pegfan.datasets import Source
from pegfan.experiments.store import Store
from pegfan.metrics import METRICS
from pegfan.paper import leak_free
from pegfan.paper.published import DATASETS
from pegfan.running import Progress, Step, cores, release_memory
from pegfan.splits import draw_splits

if TYPE_CHECKING:
    from pegfan.auto.outcome import Outcome
    from pegfan.graph import Graph
    from pegfan.results import Candidate

__all__ = ["SETS", "VERSION", "Automatic", "Member", "Run", "Turn"]

VERSION = 1
"""The version of the search, part of the keys of its runs: increased when its recipes, or how it chooses, change."""

LEAK_FREE = ("chameleon-filtered", "squirrel-filtered", "minesweeper", "tolokers")
"""The public sets without duplicated nodes; of the filtered ones the undirected files, as published figures have."""
GRAPHS = tuple(name for name, folder in leak_free.SETS.items() if folder)
"""Those that are plain files, in the folder of data sets."""
SETS: dict[str, int] = {**dict.fromkeys((*DATASETS, *LEAK_FREE), 10), **dict.fromkeys(GRAPHS, 5)}
"""The data sets in their turn, and how many splits each has; they are drawn for the file that has none."""

_NAME = "automatic"
"""What the records of all runs are called in the store."""


class Turn(NamedTuple):
    """What is run in its turn: a data set and a split."""

    set: str
    split: int


@dataclass(frozen=True)
class Member:
    """A part of what was chosen.

    Attributes
    ----------
    name, recipe
        The recipe in words and in full.
    weight
        In the ensemble, whose weights have the sum one.
    """

    name: str
    recipe: Mapping[str, Any]
    weight: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one automatic training gave, as the store keeps it.

    Attributes
    ----------
    set, fingerprint
        The data set, and the hash of what was read.
    split, budget, seed
        As `pegfan.auto.Plan` has them.
    version
        Of the search, `VERSION`.
    metric, test_metric, val_metric
        What was measured, once, on test nodes after the choice; and what the choice had on validation nodes.
    seconds, search_seconds
        Elapsed, reading included; and those of the search.
    tried, trainings
        How many recipes were tried; and trainings of them, with several seeds.
    how
        What was chosen, in words.
    members
        Who is in it, those of the largest weight first.
    cores, workers
        Of the machine, and the processes that were used.
    load
        Processes that wanted a core in the minute before the run, and in its last minute, its own included; None where
        the system does not say.
    when, versions
        Of the run.
    """

    set: str
    fingerprint: str
    split: int
    budget: float
    seed: int
    version: int = VERSION
    metric: str
    test_metric: float
    val_metric: float | None
    seconds: float
    search_seconds: float | None
    tried: int
    trainings: int
    how: str
    members: tuple[Member, ...]
    cores: int
    workers: int
    load: tuple[float, float] | None
    when: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """By which the store finds it."""
        return _key(self.set, self.fingerprint, self.split, self.budget, self.seed, self.version)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"key": self.key, "name": _NAME, "run": asdict(self)}

    @classmethod
    def of(cls, stored: Any) -> Self | None:
        """The run that `to_dict` wrote; None for anything else: records are files, which anybody may have written."""
        try:
            given = dict(stored["run"])
            given["members"] = tuple(Member(**_of_kinds(Member, one)) for one in given["members"])
            if not all(isinstance(value, str) for value in given["versions"].values()):
                return None
            load = given["load"]
            given["load"] = None if load is None else (float(load[0]), float(load[1]))
            run = cls(**_of_kinds(cls, given))
            numbers = (run.test_metric, run.budget, run.seconds, *(one.weight for one in run.members))
            whole = (
                run.key == stored["key"] and run.metric in METRICS and all(0 <= number < math.inf for number in numbers)
            )
        except (KeyError, TypeError, AttributeError, ValueError, IndexError):
            return None
        return run if whole else None


_KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "Mapping[str, Any]": dict,
    "Mapping[str, str]": dict,
    "tuple[Member, ...]": tuple,
    "tuple[float, float] | None": (tuple, type(None)),
}


def _of_kinds(kind: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is given, if it is of the kinds that the fields of a class say."""
    for member in fields(kind):
        value = given[member.name]
        if not isinstance(value, _KINDS[str(member.type)]) or isinstance(value, bool):
            raise TypeError(f"{member.name} is {value!r:.40}")
    return given


def _key(*parts: Any) -> str:
    return f"{_NAME}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Automatic:
    """Automatic trainings of all sets on their public splits, one after another.

    Attributes
    ----------
    only
        Names of sets to keep; all where none is named.
    splits
        The most splits of a set that are run; None for all. What is shown does not depend on it.
    budget, seed
        Of every training.
    workers
        Processes or threads of a training; None for all cores, as ``pegfan train`` takes.

    Examples
    --------
    >>> [(turn.set, turn.split) for turn in Automatic(("texas", "dblp"), splits=2).turns]
    [('texas', 0), ('dblp', 0), ('texas', 1), ('dblp', 1)]
    """

    only: tuple[str, ...] = ()
    splits: int | None = None
    budget: float = default.BUDGET
    seed: int = default.SEED
    workers: int | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.only if name not in SETS]
        if unknown:
            raise ValueError(f"this table has no {unknown[0]!r}; it has {', '.join(SETS)}")
        if not 0 < self.budget < math.inf:
            raise ValueError(f"the budget is a positive number of seconds, not {self.budget}")

    @property
    def name(self) -> str:
        """Of the files."""
        budget = f"{self.budget:g}s" if self.budget != default.BUDGET else ""
        seed = f"seed{self.seed}" if self.seed != default.SEED else ""
        return "-".join(part for part in ("automatic", *self.only, budget, seed) if part)

    @property
    def sets(self) -> list[str]:
        """The sets that are trained on."""
        return [name for name in SETS if name in self.only] or list(SETS)

    @property
    def turns(self) -> list[Turn]:
        """What is run, the first split of every set before the second of any: a part of it is a fair part."""
        counts = {name: min(SETS[name], self.splits or SETS[name]) for name in self.sets}
        return [Turn(name, i) for i in range(max(counts.values())) for name in self.sets if i < counts[name]]

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Where the sets are read, without those whose files are not there."""
        found = {name: leak_free.find(name) if name in GRAPHS else Source.of(name) for name in self.sets}
        return {name: source for name, source in found.items() if source is not None}

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        return {name: source.fingerprint() for name, source in self.sources.items()}

    def find(self, store: Store, turn: Turn) -> Run | None:
        """What the store holds of a turn."""
        key = _key(turn.set, self._fingerprints[turn.set], turn.split, float(self.budget), self.seed, VERSION)
        return Run.of(store.get(key))

    def runs(self, store: Store) -> dict[str, list[Run]]:
        """What the store holds, by set and in the order of splits."""
        every = {name: [self.find(store, Turn(name, i)) for i in range(SETS[name])] for name in self.sources}
        return {name: [run for run in found if run is not None] for name, found in every.items()}

    def others(self, store: Store) -> int:
        """How many runs on these sets the store holds that are not shown: of other budgets, seeds or versions."""
        shown = {run.key for runs in self.runs(store).values() for run in runs}
        found = [Run.of(stored) for stored in store.named(_NAME)]
        return sum(run is not None and run.set in self.sets and run.key not in shown for run in found)

    def compute(self, store: Store, progress: Progress | None = None) -> dict[Turn, str]:
        """Run what the store lacks; return why turns failed, the others go on.

        Test metrics go to the store, and nowhere else.

        Parameters
        ----------
        store
            Takes every run as soon as it ends.
        progress
            Called before and during every run.
        """
        tell = progress or (lambda _: None)
        turns = [turn for turn in self.turns if turn.set in self.sources]
        failed: dict[Turn, str] = {}
        for done, turn in enumerate(turns):
            store.refresh()  # somebody else may have run it meanwhile
            if self.find(store, turn) is not None:
                continue
            words = f"{turn.set}, split {turn.split}"
            tell(Step(done, len(turns), words))

            def during(step: Step, done: int = done, words: str = words) -> None:
                tell(Step(done, len(turns), f"{words}: {step.text or f'{step.done} recipes'}"))

            with _noticing_interrupts() as came:
                try:
                    run = self._run(turn, during)
                except Exception as error:
                    failed[turn] = f"{type(error).__name__}: {error}"
                    run = None
            if came:  # a search keeps its best until then, which is not what its budget gives
                raise KeyboardInterrupt
            if run is not None:
                store.append(run.to_dict())
            release_memory()
        tell(Step(len(turns), len(turns), "done"))
        return failed

    def _run(self, turn: Turn, progress: Progress) -> Run:
        """Do what ``pegfan train SET --split i --splits 1`` does."""
        from pegfan.auto.outcome import Plan, carry_out

        load, start = _load(), time.perf_counter()
        graph, why = _judged(self.sources[turn.set], turn.split)
        workers = self.workers or cores()
        plan = Plan(self.budget, self.seed, turn.split, splits=1, workers=workers, metric_reason=why, clock="work")
        outcome = carry_out(graph, plan, progress, start)
        after = _load()
        about: dict[str, Any] = {"set": turn.set, "fingerprint": self._fingerprints[turn.set], "split": turn.split}
        about |= {"budget": float(self.budget), "seed": self.seed, "cores": os.cpu_count() or 1, "workers": workers}
        return _finished(outcome, load=None if load is None or after is None else (load, after), **about)


def _judged(source: Source, split: int) -> tuple[Graph, str]:
    """The graph with its metric, as ``pegfan train`` has it, and why that; with splits as `pegfan.compare` draws."""
    from pegfan.auto.outcome import with_metric

    graph, _ = source.open()
    if not graph.splits:
        graph = graph.replace(splits=draw_splits(graph, k=split + 1))
    if source.files and "metric" not in source.options and graph.metric == "accuracy":
        return with_metric(graph)
    return graph, "the data says so"


def _finished(outcome: Outcome, **about: Any) -> Run:
    """What is kept of a training."""
    result = outcome.result
    test, validation = (spread.per_split[0] if spread else None for spread in (result.test, result.validation))
    if test is None:
        raise ValueError("its metric is not defined on its test nodes")
    seconds = result.seconds
    assert seconds is not None
    return Run(
        **about,
        metric=result.data.metric,
        test_metric=test,
        val_metric=validation,
        seconds=seconds.total,
        search_seconds=seconds.search,
        tried=len({one.recipe for one in result.candidates}),
        trainings=len(result.candidates),
        how=result.chosen.how if result.chosen else "",
        members=members_of(result.candidates),
        when=result.when or "",
        versions=dict(result.versions),
    )


def members_of(candidates: Sequence[Candidate]) -> tuple[Member, ...]:
    """Who is in an ensemble, those of the largest weight first."""
    inside = [one for one in candidates if one.weight > 0]
    total = sum(one.weight for one in inside)
    found = [Member(one.name, plain(one.recipe.to_dict()), one.weight / total) for one in inside]
    return tuple(sorted(found, key=lambda one: -one.weight))


def _load() -> float | None:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


@contextmanager
def _noticing_interrupts() -> Iterator[list[int]]:
    """Ctrl-C does what it did, and is noted."""
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield came
        return

    def note(number: int, frame: Any) -> None:
        came.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)
