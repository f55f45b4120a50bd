"""What the paper's tables share: how a cell is run, what it says, and when it agrees with the paper."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from pegfan.channels.names import RAISED
from pegfan.datasets import Source
from pegfan.experiments.jobs import Job, run
from pegfan.experiments.records import NUMERICS, Record, Records, agreeing, records_of
from pegfan.experiments.search import Entry, Rung, climb
from pegfan.experiments.store import Store
from pegfan.networks import NetworkRecipe
from pegfan.paper.documents import MISSING, Document, Mark
from pegfan.paper.published import HOMOPHILOUS, Model, Published
from pegfan.recipe import Recipe, TreeFile
from pegfan.running import Progress, Runner, Step

__all__ = [
    "NOTES",
    "Halving",
    "Options",
    "Records",
    "Score",
    "Table",
    "compute",
    "parse_rungs",
    "read_notes",
    "spread",
    "verdict",
]

NOTES = "notes.toml"
"""Beside the tables: for each document, a sentence for each cell that differs (``"cora a4" = "..."``)."""
SPLITS = 10
FIRST_SEED = 42
"""Split i has the seed 42 + i; the authors set 42 once and then ran the ten splits in a row."""


@dataclass(frozen=True)
class Options:
    """What the command line decides.

    Attributes
    ----------
    quick
        A part of the table that takes minutes.
    trees
        A folder of level labels, one ``<set>_h<h>.npz`` each; None for our own trees.
    settings
        The authors' best settings, or a search.
    seeds
        How many seeds the winners of Tables I and II run on.
    only
        The data sets (or values of γ) and the rows to keep; all where none is named.
    every
        All 108 settings in Table IV, not twelve.
    rungs
        Of the search; None for each table's own.
    workers
        How many runs go side by side, which Table IV's elapsed times depend on.
    relations
        A folder of GEOM-GCN's relation files, ``<set>_<embedding>.txt.gz`` each; None for our own relations.
    """

    quick: bool = False
    trees: Path | None = None
    settings: Literal["authors", "search"] = "authors"
    seeds: int = 3
    only: tuple[str, ...] = ()
    every: bool = False
    rungs: tuple[Rung, ...] | None = None
    workers: int = 2
    relations: Path | None = None

    def name(self, base: str, *parts: str) -> str:
        """The name of a document's files, which differs where options change the document.

        Examples
        --------
        >>> Options(quick=True, only=("texas", "cora")).name("table3", "authors-trees")
        'table3-authors-trees-texas-cora-quick'
        """
        rungs = "_".join(f"{r.settings}x{r.epochs}x{r.splits}" for r in self.rungs or ())
        return "-".join(part for part in (base, *parts, *self.only, rungs, "quick" if self.quick else "") if part)


class Table(Protocol):
    """A table of the paper, as runs and as a document."""

    name: str

    def jobs(self, records: Records) -> Iterator[tuple[str, list[Job]]]:
        """Stages of jobs, in their order; a later stage may depend on the records of an earlier one."""

    def document(self, records: Records, command: str, notes: Mapping[str, str]) -> Document:
        """The table from what has run so far."""


def compute(
    table: Table,
    store: Store,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    trees: Path | None = None,
    relations: Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Run what a table still lacks. It may be stopped at any moment; calling it again continues from there."""
    with Runner(workers, scheduler=scheduler) as runner:
        for stage, jobs in table.jobs(lookup(store)):
            tell = progress and partial(_tell, progress, stage)
            run(jobs, store, runner=runner, trees=trees, relations=relations, progress=tell)


def _tell(progress: Progress, stage: str, step: Step) -> None:
    progress(replace(step, text=stage))


def lookup(store: Store) -> Records:
    """The records of a store by job; lines that are not what they say count as missing."""
    return partial(records_of, store)


# --------------------------------------------------------------------------- jobs


def recipe_of(model: Model, regime: str, **more: Any) -> Recipe:
    """The recipe of a row on a graph of a regime; our own trees look at the side of edges that the authors' do."""
    if model.kind is None:
        return Recipe.of({"method": "none", "hops": model.hops, "regime": "all" if model.all_hops else regime, **more})
    return Recipe.of({"method": "ward", "h": model.h, "kind": model.kind, "regime": regime, "hops": model.hops, **more})


def tree_of(name: str, model: Model, folder: Path | None) -> dict[str, Any]:
    """What a row's recipe says of its tree on a data set: the file, if the folder holds one.

    Pubmed at h = 4 keeps to the paper's six clustering steps.
    """
    file = None if folder is None or model.h is None else folder / f"{name}_h{model.h}.npz"
    if file is not None and file.is_file():
        return {"tree_file": TreeFile.of(file)}
    return {"max_levels": 7} if (name, model.h) == ("pubmed", 4) else {}


def benchmark_job(
    name: str, model: Model, settings: Mapping[str, Any], split: int, folder: Path | None, like: str | None = None
) -> Job:
    """A run of Table III or IV; `like` names the set whose regime holds, where `name` is a variant of it."""
    regime = "homophily" if (like or name) in HOMOPHILOUS else "heterophily"
    recipe = recipe_of(model, regime, **tree_of(name, model, folder), **settings)
    return Job(Source.of(name), recipe, split, FIRST_SEED + split)


# ------------------------------------------------------------------------- search


def parse_rungs(text: str) -> tuple[Rung, ...]:
    """Rungs from ``settings x epochs [x splits]``, separated by commas.

    Examples
    --------
    >>> parse_rungs("108x12,8x1500")[1]
    Rung(settings=8, epochs=1500, splits=1)
    """
    try:
        parts = [[int(number) for number in part.split("x")] for part in text.split(",")]
        rungs = tuple(Rung(settings, epochs, *(rest or [1])) for settings, epochs, *rest in parts)
    except (TypeError, ValueError):
        raise ValueError(f"rungs are settings x epochs, separated by commas: 108x12,8x1500; got {text!r}") from None
    if any(min(rung.settings, rung.epochs, rung.splits) < 1 for rung in rungs):
        raise ValueError(f"rungs need at least one setting, epoch and split each, got {text!r}")
    if any(a.settings < b.settings for a, b in pairwise(rungs)):
        raise ValueError(f"rungs must not grow in settings, got {text!r}")
    return rungs


class Walk(NamedTuple):
    """How far a search came: the winner, or None; the rung that is being climbed; the runs that it awaits.

    `numerics` is the oldest version of the numbers that a rung was decided by.
    """

    winner: dict[str, Any] | None
    place: int
    jobs: list[Job]
    numerics: int


@dataclass(frozen=True)
class Halving:
    """Successive halving on validation: every rung keeps the best of the one before and trains them longer.

    The last rung is decided by the highest mean validation metric, then the lowest mean validation loss, as in the
    paper; the rungs before it by the loss alone. Early on the metric misleads: over 24 of the 108 settings on a graph
    of Table I (γ = 0.4), its rank correlation with the final one was 0.19 after 12 epochs for type b, −0.11 for FSGNN
    r = 3, that of the loss 0.37 and 0.77. Few should be dropped early: type b's best setting was among the best third
    by the loss after 12 epochs, but not among the best sixth. Hence `apart`: the effect of weight decay shows late, so
    the best of every value go on together. The test metric is not used. The runs of a rung agree (`agreeing`): they are
    of one version and one tree.

    Attributes
    ----------
    job
        The run of some settings on a split.
    grid
        The settings; the first rung takes as many as it says, spread over them.
    rungs
        In their order; the last one's winner is the result.
    apart
        As in `climb`.
    """

    job: Callable[[Entry, int], Job]
    grid: Sequence[Entry]
    rungs: Sequence[Rung]
    apart: tuple[str, ...] = ()

    def walk(self, records: Records) -> Walk:
        """How far the records lead, rung by rung."""
        first = self.rungs[0].settings
        entries = spread(self.grid, first) if first < len(self.grid) else self.grid
        versions: list[int] = []
        place, left = climb(entries, self.rungs, partial(self._ranks, records, versions), self.apart)
        numerics = min(versions, default=NUMERICS)
        if place == len(self.rungs):
            return Walk({**left[0], "epochs": self.rungs[-1].epochs}, place, [], numerics)
        jobs = [job for row in self._jobs(place, left) for job in row]
        lacking = [job for job in jobs if not any(record.numerics == NUMERICS for record in records(job))]
        return Walk(None, place, lacking or jobs, numerics)  # all have run: with different trees, and run again

    def _jobs(self, place: int, entries: Sequence[Entry]) -> list[list[Job]]:
        rung = self.rungs[place]
        return [[self.job({**one, "epochs": rung.epochs}, split) for split in range(rung.splits)] for one in entries]

    def _ranks(
        self, records: Records, versions: list[int], place: int, entries: Sequence[Entry]
    ) -> list[tuple[float, float]] | None:
        rows = self._jobs(place, entries)
        agreed = agreeing(records, [job for row in rows for job in row])
        if agreed is None:
            return None
        versions.append(agreed[0].numerics)
        ranks = []
        for start in range(0, len(agreed), len(rows[0])):
            found = agreed[start : start + len(rows[0])]
            metric = _mean((record.val_metric for record in found), -np.inf)
            loss = _mean((record.val_loss for record in found), np.inf)
            ranks.append((metric, -loss) if place == len(self.rungs) - 1 else (-loss, metric))
        return ranks


def _mean(values: Iterable[float | None], diverged: float) -> float:
    return float(np.mean([diverged if value is None else value for value in values]))


def spread(grid: Sequence[Entry], count: int) -> list[Entry]:
    """Some settings of a full grid, such that every value of every setting comes up equally often, as far as possible.

    Values take turns: a setting of m values takes number (k + s·⌊k/m⌋) mod m in draw k, where s is its place among the
    settings with m values; for two values it is ⌊k/2^s⌋ mod 2. Draws that repeat an earlier one are skipped. With the
    paper's 108 and twelve draws each of three values comes up four times and each of two values six times.

    Examples
    --------
    >>> grid = [{"a": a, "b": b} for a in (1, 2, 3) for b in (4, 5, 6)]
    >>> spread(grid, 3)
    [{'a': 1, 'b': 4}, {'a': 2, 'b': 5}, {'a': 3, 'b': 6}]
    """
    values = {name: list(dict.fromkeys(settings[name] for settings in grid)) for name in grid[0]}
    places: dict[str, int] = {}
    for name, options in values.items():
        places[name] = sum(len(values[other]) == len(options) for other in places)
    chosen: list[Entry] = []
    for k in range(len(grid) * len(grid)):
        if len(chosen) == min(count, len(grid)):
            break
        draw = {name: options[_turn(k, len(options), places[name])] for name, options in values.items()}
        if draw not in chosen and draw in grid:
            chosen.append(draw)
    return chosen + [settings for settings in grid if settings not in chosen][: max(count - len(chosen), 0)]


def _turn(k: int, m: int, place: int) -> int:
    return (k >> place) % 2 if m == 2 else (k + place * (k // m)) % m


# -------------------------------------------------------------------------- scores


def verdict(ours: float, printed: Published) -> tuple[bool, float]:
    """Whether a mean agrees with a printed one, and how far apart they may be: a point, or two standard errors.

    The standard error is the paper's: its standard deviation over √10.

    Examples
    --------
    >>> verdict(78.9, Published(80.0, 3.16))
    (True, 1.99...)
    >>> verdict(78.9, Published(80.0, 0.3))
    (False, 1.0)
    """
    tolerance = max(1.0, 2 * (printed.std or 0.0) / SPLITS**0.5)
    return abs(ours - printed.mean) <= tolerance, tolerance


@dataclass(frozen=True)
class Score:
    """What the runs of a cell gave, in percent."""

    mean: float
    std: float
    runs: int
    details: dict[str, Any]
    own_tree: bool = False  # not one of the authors'

    @classmethod
    def of(cls, records: Records, jobs: Sequence[Job], about: Mapping[str, Any] | None = None) -> Score | None:
        """The score of some jobs; None unless all of them have run, none diverged, and they agree (`agreeing`).

        `about` is added to its details.
        """
        found = agreeing(records, jobs)
        if not found or any(record.test_metric is None for record in found):
            return None
        values = 100 * np.array([record.test_metric for record in found])
        recipe = jobs[0].recipe
        own = isinstance(recipe, Recipe) and recipe.has_tree and recipe.tree_file is None
        details = {"values": values.tolist(), **_details(jobs, found), **(about or {})}
        return cls(float(values.mean()), float(values.std()), len(found), details, own)

    @property
    def sign(self) -> str:
        """What marks a cell of an older version: its number, raised."""
        return sign_of(self.details)

    @property
    def numbers(self) -> dict[str, Any]:
        """What a cell says for machines, details apart."""
        return {"ours": self.mean, "std": self.std, "runs": self.runs}

    @property
    def text(self) -> str:
        """Mean and population standard deviation, as the paper prints them; one run has no spread."""
        return f"{self.mean:.2f}±{self.std:.2f}" if self.runs > 1 else f"{self.mean:.2f}"


NO_NUMBERS = {"ours": None, "std": None, "runs": 0}
"""Those of a cell that has not run."""


def _details(jobs: Sequence[Job], records: Sequence[Record]) -> dict[str, Any]:
    recipe = jobs[0].recipe
    whens = sorted(record.when for record in records)
    return {
        "validation": 100 * float(_mean((record.val_metric for record in records), np.nan)),
        "settings": _settings(recipe),
        "channels": records[0].channels,
        "regime": recipe.regime if isinstance(recipe, Recipe) else None,
        "numerics": records[0].numerics,
        "tree": _tree_words(jobs[0], records),
        "levels": (records[0].tree or {}).get("K"),
        "splits": [job.split for job in jobs],
        "seeds": [job.seed for job in jobs],
        "epochs": sum(record.epochs for record in records),
        "seconds": round(sum(record.seconds for record in records), 3),
        "wall": round(sum(record.wall for record in records), 3),
        "workers": sorted({record.workers or 0 for record in records}),
        "keys": [record.key for record in records],
        "versions": records[-1].versions,
        "first": whens[0],
        "last": whens[-1],
    }


def _settings(recipe: Recipe | NetworkRecipe) -> dict[str, Any]:
    """What a cell says of its settings; of a network, what is not its default."""
    if isinstance(recipe, NetworkRecipe):
        return recipe.changes()
    return {name: value for name, value in asdict(recipe.settings).items() if name in _SHOWN}


_SHOWN = (
    *("lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca", "dropout", "hidden", "hop_normalize"),
    *("epochs", "patience", "stop"),
)


def _tree_words(job: Job, records: Sequence[Record]) -> str | None:
    """Where a tree comes from, in a few words, and its digest; several, where there are several graphs."""
    recipe = job.recipe
    if isinstance(recipe, NetworkRecipe) or not recipe.has_tree:
        return None
    digests = " ".join(dict.fromkeys(record.tree_digest for record in records if record.tree_digest))
    return _origin(job, recipe) + (f"; digest {digests}" if digests else "")


def _origin(job: Job, recipe: Recipe) -> str:
    if recipe.tree_file is not None:
        return f"{recipe.tree_file.name} (sha256 {recipe.tree_file.sha256[:12]})"
    side = None if job.source.where == ("synthetic",) else recipe.direction  # generated graphs have no directions
    words = {"method": recipe.method, "h": recipe.h, "direction": side, "max_levels": recipe.max_levels}
    return " ".join(["own:", *(f"{name}={value}" for name, value in words.items() if value is not None)])


def mark_of(score: Score | None, *styles: str) -> Mark:
    """A score in a grid, with its settings under the pointer."""
    if score is None:
        return Mark(MISSING, ("missing",))
    details = score.details
    settings = details["settings"]
    tip = ", ".join(f"{name} {_plainly(settings[name])}" for name in (_SHOWN[:6] if "lr_fc" in settings else settings))
    tip += f"; tree {details['tree']}" if details["tree"] else ""
    tip += f"; {score.runs} runs of version {details['numerics']}, {details['seconds']:.0f} s CPU"
    tip += f"; keys {details['keys'][0]}…"
    return Mark(score.text + score.sign, (*styles, *(["old"] if score.sign else [])), tip)


def _plainly(value: Any) -> str:
    if isinstance(value, (list, tuple)):  # a file and its hash
        return str(value[0])
    return f"{value:g}" if isinstance(value, float) else str(value)


def sign_of(details: Mapping[str, Any]) -> str:
    """The raised number of a version that is not the current one."""
    numerics = details.get("numerics") or NUMERICS
    return "" if numerics == NUMERICS else str(numerics).translate(RAISED)


def state_versions(cells: Iterable[Mapping[str, Any]], summary: dict[str, Any]) -> list[str]:
    """Which version the cells are of, where it is not the current one alone; counted in the summary."""
    cells = [cell for cell in cells if cell.get("numerics")]
    counts = Counter(cell["numerics"] for cell in cells)
    summary["versions"] = {str(numerics): counts[numerics] for numerics in sorted(counts)}
    text = [
        f"Cells with {str(numerics).translate(RAISED)} hold runs of version {numerics}, {_VERSIONS[numerics]}: "
        f"{'all of them' if counts[numerics] == len(cells) else f'{counts[numerics]} of {len(cells)}'}."
        for numerics in sorted(counts)
        if numerics != NUMERICS
    ]
    older = [c for c in cells if (c.get("search_numerics") or NUMERICS) < c["numerics"]]
    if older:
        text.append(f"The settings of {len(older)} of {len(cells)} cells were chosen by runs of an older version.")
    return [" ".join(text)] if text else []


_VERSIONS = {1: "before trees were the same on every machine"}
"""What set an older version apart."""


def state_gaps(gaps: Mapping[str, str]) -> list[str]:
    """The cells that are missing because their runs do not agree, as items of a list under a heading."""
    return ["Runs that do not agree:", *(f"- {cell}: {why}." for cell, why in gaps.items())] if gaps else []


Scores = Mapping[tuple[Any, Model], Score | None]
"""Scores by column (a data set or γ) and row."""
Cells = list[dict[str, Any]]
Claims = dict[str, tuple[bool, str]]
"""What the paper says of a table: whether it holds in our numbers, and those that decide it."""


def state_claims(claims: Claims, summary: dict[str, Any], where: str = "") -> list[str]:
    """The claims as items of a list under a heading, and in the summary."""
    summary["claims"] = {claim: {"holds": holds, "numbers": numbers} for claim, (holds, numbers) in claims.items()}
    words = {True: "holds", False: "does not hold"}
    items = [f"- {claim}: {words[holds]}; {numbers}." for claim, (holds, numbers) in claims.items()]
    return [f"The paper's claims in our numbers{where}:", *items]


def read_notes(folder: str | Path, name: str) -> dict[str, str]:
    """The sentences for a document's cells that differ, from the folder's notes; none without the file."""
    path = Path(folder) / NOTES
    if not path.is_file():
        return {}
    try:
        notes = tomllib.loads(path.read_text(encoding="utf-8")).get(name, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    if not isinstance(notes, dict) or not all(isinstance(sentence, str) for sentence in notes.values()):
        raise ValueError(f'{path}: [{name}] must hold sentences by cell, such as "cora a4" = "..."')
    return notes


def named(
    options: Options, columns: Sequence[str], models: Iterable[Model], others: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """The columns and the rows of a table that ``--only`` names, in their own order; `others` are further rows.

    Examples
    --------
    >>> named(Options(only=("r3-all", "cora")), ["texas", "cora"], [Model.of("c8"), Model.of("r3 all")])
    (['cora'], ['r3-all'])
    """
    rows = list(dict.fromkeys([*(model.name for model in models), *others]))
    unknown = [name for name in options.only if name not in (*columns, *rows)]
    if unknown:
        raise ValueError(f"this table has no {unknown[0]!r}; it has {', '.join(columns)}; and rows {', '.join(rows)}")
    return [name for name in columns if name in options.only], [name for name in rows if name in options.only]
