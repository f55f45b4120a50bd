"""What runs gave, as the store keeps it; and which runs may stand together."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from pegfan._checks import check_integer, check_mapping
from pegfan.experiments.store import Store
from pegfan.metrics import METRICS
from pegfan.networks import NetworkRecipe
from pegfan.recipe import Recipe

if TYPE_CHECKING:
    from pegfan.experiments.jobs import Job

__all__ = ["NUMERICS", "Record", "Records", "agreeing", "disagreement", "job_name", "records_of"]

NUMERICS = 2
"""The version of the numbers, increased when the same job gives others than before.

1: before trees were the same on every machine; those records hold no digests.
"""

NETWORKS = 1
"""The version of the numbers of graph networks: part of the names of their runs."""

_NETWORK: dict[str, Any] = {
    member.name: member.default for member in fields(NetworkRecipe) if member.name not in ("model", "options")
}
"""Fields that are left out of a name while they have their default, so that names last when others come."""
_MISSING: Any = object()

_DIGEST = re.compile("[0-9a-f]{16}")
_LARGEST = 1e300
"""More than any number of a record; sums of such numbers are finite."""


def job_name(job: Mapping[str, Any]) -> str:
    """The name of a job as it is stored: a hash of what `Job.to_dict` gives."""
    return _job_name(json.dumps(job))


@lru_cache(maxsize=2**14)  # a search looks at the same thousands of records again and again
def _job_name(text: str) -> str:
    job = json.loads(text)
    if "model" in job["recipe"]:
        recipe = {k: v for k, v in job["recipe"].items() if _NETWORK.get(k, _MISSING) != v}
        source = job["source"]["fingerprint"]
        return _hash({"networks": NETWORKS, **recipe, "split": job["split"], "seed": job["seed"], "source": source})
    key = Recipe.of(job["recipe"]).key
    return _hash({"recipe": key, "split": job["split"], "seed": job["seed"], "source": job["source"]["fingerprint"]})


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a job gave, as the store keeps it.

    Attributes
    ----------
    key
        16 hex digits of the name, `numerics`, the tree's digest and `channels_digest`.
    name, job
        The job's name, and the job.
    numerics
        The version of the numbers.
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
    channels_digest
        16 hex digits of what the channels are; None in version 1.
    versions, when
        Packages, and the time of day.
    workers
        How many processes ran side by side; None if that is not known.
    memory
        The most bytes that its process held meanwhile, libraries and graph included; None if that is not known.
    """

    key: str = field(init=False)
    name: str = field(init=False)
    job: Mapping[str, Any] = field(repr=False)
    numerics: int = NUMERICS
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
    channels_digest: str | None = None
    versions: Mapping[str, str]
    when: str
    workers: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.tree is not None:
            check_mapping(self.tree, "tree")
        check_mapping(self.job, "job")
        check_integer(self.numerics, "numerics", least=1)
        try:
            name = job_name(self.job)
        except (KeyError, AttributeError) as error:
            raise ValueError(f"job is not one that Job.to_dict wrote: {error}") from error
        parts = {"name": name, "numerics": self.numerics, "tree": self.tree_digest, "channels": self.channels_digest}
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "key", _hash(parts))

    @property
    def tree_digest(self) -> str | None:
        """The digest of its tree; None without one, and in version 1."""
        return (self.tree or {}).get("digest")

    @property
    def made_of(self) -> tuple[str, str]:
        """Its tree and its channels in words that tell them apart as well as the record can."""
        if self.numerics > 1:
            return f"tree {self.tree_digest}", f"channels {self.channels_digest}"
        clusters = (self.tree or {}).get("clusters")
        sizes = "/".join(map(str, clusters)) if isinstance(clusters, (list, tuple)) else "no"
        return f"a tree of {sizes} clusters", f"{self.channels} channels"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        head = {"key": self.key, "name": self.name, "numerics": self.numerics}
        result = {name: getattr(self, name) for name in _RESULT}
        del result["engine" if self.engine is None else "diverged"]
        around = {name: getattr(self, name) for name in _AROUND if name != "memory" or self.memory is not None}
        return {**head, "job": self.job, "result": result, **around}

    @classmethod
    def of(cls, stored: Any) -> Self | None:
        """The record that `to_dict` wrote; None for anything else."""
        if not isinstance(stored, Mapping) or hasattr(stored, "shape"):  # a matrix of SciPy's dok format is a dict
            return None
        try:
            given: dict[str, Any] = {name: stored["result"].get(name) for name in _RESULT}
            given |= {name: stored.get(name) for name in ("job", "numerics", *_AROUND)}
            if not all(isinstance(given[name], kind) for kind, names in _KINDS.items() for name in names):
                return None
            numbers = [value for value in given.values() if isinstance(value, (int, float))]
            if given["metric"] not in METRICS or not all(abs(number) < _LARGEST for number in numbers):
                return None
            record = cls(**given)
            genuine = (record.key, record.name) == (stored["key"], stored["name"])
        except (KeyError, TypeError, AttributeError, ValueError):
            return None
        return record if genuine and record._has_its_digests else None

    @property
    def _has_its_digests(self) -> bool:
        if self.numerics == 1:
            return self.channels_digest is None
        digests = [self.channels_digest, *([] if self.tree is None else [self.tree_digest])]
        return self.numerics > 1 and all(isinstance(one, str) and _DIGEST.fullmatch(one) for one in digests)


_NAMES = tuple(member.name for member in fields(Record))
_RESULT, _AROUND = _NAMES[_NAMES.index("val_loss") : -4], _NAMES[-4:]
_KINDS: dict[Any, tuple[str, ...]] = {
    int | float | None: ("val_loss", "val_metric", "test_metric"),
    int | float: ("seconds", "wall"),
    int: ("numerics", "epochs", "best_epoch", "channels"),
    str: ("metric", "when"),
    dict: ("versions",),
    dict | None: ("tree",),
    int | None: ("memory",),
}

Records = Callable[["Job"], Sequence[Record]]
"""From a job to all that it gave, whichever version and tree, the newest last; nothing where it has not run."""


def records_of(store: Store, job: Job, least: int = 1) -> list[Record]:
    """What a store holds of a job, from some version on; lines that are not what they say count as missing."""
    found = [Record.of(line) for line in store.named(job.name)]
    return [record for record in found if record and record.name == job.name and record.numerics >= least]


# ------------------------------------------------------------- what may be averaged


def agreeing(records: Records, jobs: Sequence[Job]) -> list[Record] | None:
    """One record of each job, such that they may be averaged or compared; None where there are no such records.

    They are all of one version: the current one if it has them all, else an older one. Those on one graph by one
    recipe, settings aside, have one tree, and the same channels; of several such sets, the newest is taken.
    """
    every = [list(records(job)) for job in jobs]
    for numerics in range(NUMERICS, 0, -1):
        found = [[record for record in own if record.numerics == numerics] for own in every]
        chosen: dict[int, Record] = {}
        for places in _places(job.cell for job in jobs):
            chosen |= _of_one_tree(found, places, jobs)
        if len(chosen) == len(jobs):
            return [chosen[i] for i in range(len(jobs))]
    return None


def _of_one_tree(found: Sequence[Sequence[Record]], places: Sequence[int], jobs: Sequence[Job]) -> dict[int, Record]:
    """Records of some jobs with one tree, and those of the same channels with one content; none if there are none."""
    for tree in _shared(found, places, 0):
        own = {i: [record for record in found[i] if record.made_of[0] == tree] for i in places}
        chosen: dict[int, Record] = {}
        for group in _places(jobs[i].channels_mark for i in places):
            alike = [places[k] for k in group]
            content = next(iter(_shared(own, alike, 1)), None)
            chosen |= {i: record for i in alike for record in own[i] if record.made_of[1] == content}
        if len(chosen) == len(places):
            return chosen
    return {}


def _shared(
    found: Sequence[Sequence[Record]] | Mapping[int, Sequence[Record]], places: Sequence[int], part: int
) -> list[str]:
    """The trees, or the channels, that all of these jobs have records of, the newest first."""
    newest: dict[str, tuple[int, str]] = {}
    for i in places:
        for k, record in enumerate(found[i]):
            content = record.made_of[part]
            # By their order in the store first: the time of day may have been wrong.
            place = (k - len(found[i]), record.when)
            newest[content] = max(newest.get(content, place), place)
    common = [one for one in newest if all(any(r.made_of[part] == one for r in found[i]) for i in places)]
    return sorted(common, key=lambda one: newest[one], reverse=True)


def _places(marks: Iterable[Any]) -> list[list[int]]:
    """Where equal marks are."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for i, mark in enumerate(marks):
        groups[mark].append(i)
    return list(groups.values())


def disagreement(records: Records, jobs: Sequence[Job]) -> str | None:
    """Why runs of these jobs are not averaged, in words; None where they are, or where they just have not run.

    For instance "5 runs of tree 3f1c…, 5 of tree 77a0…: not averaged".
    """
    if agreeing(records, jobs) is not None:
        return None
    every = [list(records(job)) for job in jobs]
    versions = Counter(f"version {record.numerics}" for own in every for record in own)
    kinds = [versions]
    for marks, part in (([job.cell for job in jobs], 0), ([job.channels_mark for job in jobs], 1)):
        kinds += [
            Counter(record.made_of[part] for i in group for record in every[i] if record.numerics == numerics)
            for group in _places(marks)
            for numerics in sorted({record.numerics for i in group for record in every[i]}, reverse=True)
        ]
    several = [kind for kind in kinds if len(kind) > 1]
    if not several:
        return None
    first, *rest = several[0].items()
    words = [f"{first[1]} runs of {first[0]}", *(f"{count} of {kind}" for kind, count in rest)]
    return f"{', '.join(words)}: not averaged"
