"""Trying recipes within a time budget, in one process or several, and choosing among them on validation."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan.auto.inputs import FeatureScale, Known, recipe_channels
from pegfan.auto.recipes import Recipe, difference, first_recipes, pinned, variations, work
from pegfan.graph import Graph, Split
from pegfan.trees import Hierarchy, build_tree

__all__ = ["Candidate", "Event", "Job", "Pool", "Search", "choose", "mean_of"]

FloatArray = NDArray[np.float32]

_RATE = 6e-9
"""Seconds that a unit of `work` takes an epoch, before anything was measured."""
_EPOCHS = 250
"""Epochs that a recipe takes, before anything was measured."""
_LEVELS = 7
_SHARE = 4
"""A recipe may take this part of the budget at most: its epochs are capped accordingly."""
_FEWEST = 40
_FAN_OUT = 2.0
"""Seconds a recipe must take for other processes to be worth their start."""
_ALWAYS = 2
"""Recipes that run whatever the budget: the paper's, and features alone."""
_PROBE, _PROBE_EPOCHS = 5.0, 8
"""Seconds from which on the first recipe is probed, and the epochs of that."""
_DIVERSE, _PER_ROUND, _PARENTS, _MOST = 8, 4, 3, 28
"""Recipes to begin with, those of a round after that, how many of the best are varied, and the most in all."""


@dataclass(frozen=True)
class Job:
    """A recipe on a split; all that its result depends on beside the graph."""

    recipe: Recipe
    split: Split
    seed: int


@dataclass(eq=False)
class Candidate:
    """A recipe that was trained.

    Attributes
    ----------
    recipe
        What was trained.
    val_metric, val_loss
        Of the probabilities that it predicts for the validation nodes.
    epochs, seconds
        How long the training took; seconds by the clock.
    log_probabilities
        Of all nodes.
    run
        The trained network (`pegfan.training.Run`); None once it cannot be chosen any more.
    tree, names, widths
        Of its channels.
    """

    recipe: Recipe
    val_metric: float
    val_loss: float
    epochs: int
    seconds: float
    log_probabilities: FloatArray = field(repr=False)
    run: Any = field(repr=False)
    tree: Hierarchy | None = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    widths: tuple[int, ...] = field(repr=False)

    @property
    def rank(self) -> tuple[float, float]:
        """Sorts the best on validation first: by metric, then by loss."""
        return (-self.val_metric if np.isfinite(self.val_metric) else np.inf, self.val_loss)


@dataclass(frozen=True)
class Event:
    """What a search tells while it runs."""

    done: int
    running: int
    planned: int
    elapsed: float
    budget: float
    candidate: Candidate | None = None
    text: str = ""


Progress = Callable[[Event], None]


# --------------------------------------------------------------------- training


def run_job(graph: Graph, scale: FeatureScale | None, tree: Hierarchy | None, job: Job) -> Candidate:
    """Train a recipe. The test nodes are not handed to the training at all."""
    from pegfan.training import train

    start = time.perf_counter()
    assert graph.labels is not None
    known = Known.of(graph, job.split.train)
    channels = recipe_channels(job.recipe, graph, tree, known, scale)
    unseen = Split(job.split.train, job.split.val, np.empty(0, np.int64))
    result = train(
        channels,
        graph.labels,
        unseen,
        job.recipe.full_settings,
        classes=graph.n_classes,
        metric=graph.metric,  # type: ignore[arg-type]
        seed=job.seed,
        history=True,
    )
    run = result.runs[0]
    output = log_probabilities(make_network(job.recipe, channels.widths, graph.n_classes, run.state), channels)
    metric, loss = validate(output, graph, job.split)
    seconds = time.perf_counter() - start
    return Candidate(job.recipe, metric, loss, run.epochs, seconds, output, run, tree, channels.names, channels.widths)


def make_network(recipe: Recipe, widths: Sequence[int], classes: int, state: Mapping[str, Any]) -> Any:
    """The trained network of a recipe."""
    import torch

    from pegfan.models import ChannelNetwork

    s = recipe.full_settings
    with torch.device("meta"):  # the weights are known: none need be drawn
        model = ChannelNetwork(widths, classes, s.hidden, s.layers, s.dropout, s.hop_normalize)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, assign=True)
    return model.eval()


def log_probabilities(model: Any, channels: Any) -> FloatArray:
    """Log-probabilities of all nodes, on one thread: the same bits however many cores there are.

    Operators act on the weights, so no channel is ever formed.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1), torch.no_grad():
            return np.asarray(model(channels).numpy())
    finally:
        torch.set_num_threads(before)


def mean_of(outputs: Sequence[FloatArray]) -> FloatArray:
    """The logarithm of the mean of probabilities that are given by their logarithms."""
    total = outputs[0]
    for output in outputs[1:]:
        total = np.logaddexp(total, output)
    return np.asarray(total - np.float32(np.log(len(outputs))))


def validate(output: FloatArray, graph: Graph, split: Split) -> tuple[float, float]:
    """The metric and the loss on the validation nodes."""
    from pegfan.training import score

    assert graph.labels is not None
    labels = graph.labels[split.val]
    picked = output[split.val, labels].astype(np.float64)
    return score(output[split.val], labels, graph.metric), float(-picked.mean())


def warm_up() -> None:
    """Have the loops compiled that every training needs, so that no recipe waits for the compiler; once a process."""
    if _WARM:
        return
    rng = np.random.default_rng(0)
    pairs = rng.integers(24, size=(60, 2))
    dense = rng.random((24, 6))
    for features in (dense, csr_array(dense * (dense > 0.8))):
        graph = Graph.from_edges(pairs, n=24, directed=True, features=features, labels=np.arange(24) % 2)
        recipe = Recipe("matching", 4, "c", adjacency=True, labels=True, structure=True, settings={"epochs": 2})
        nodes = np.arange(24)
        job = Job(recipe, Split(nodes[:12], nodes[12:20], nodes[20:]), 0)
        run_job(graph, None, build_tree(graph, "matching", 4), job)
    _WARM.append(True)


_WARM: list[bool] = []


# ------------------------------------------------------------------------ pools

_HELD: dict[str, Any] = {}


def _hold(graph: Graph, scale: FeatureScale | None) -> None:
    _HELD.update(graph=graph, scale=scale)


def _run_held(tree: Hierarchy | None, job: Job) -> Candidate:
    return run_job(_HELD["graph"], _HELD["scale"], tree, job)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put Ctrl-C off: a process that is started half-way could not be ended, and those started here never see it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Pool:
    """Runs jobs on one graph: here, or in other processes once jobs are long enough.

    Parameters
    ----------
    graph
        With features.
    scale
        Of its features, where a recipe scales them.
    workers
        How many processes at most. What a job gives does not depend on it.
    """

    def __init__(self, graph: Graph, scale: FeatureScale | None, workers: int) -> None:
        self.graph, self.scale, self.workers = graph, scale, workers
        self.trees: dict[Any, Hierarchy] = {}
        self._executor: Any = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._executor is None:
            return
        if kind is not None:  # an error or Ctrl-C: what is being computed is of no use any more
            for process in list(self._executor._processes):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        self._executor.shutdown(wait=kind is None, kill_workers=kind is not None)
        self._executor = None

    def tree(self, recipe: Recipe) -> Hierarchy | None:
        """The tree of a recipe, built once."""
        key = recipe.tree
        if key is None:
            return None
        if key not in self.trees:
            method, h, direction = key
            self.trees[key] = build_tree(self.graph, method, h, direction=direction)  # type: ignore[arg-type]
        return self.trees[key]

    def run(self, jobs: Iterator[Job], parallel: bool) -> Iterator[Candidate]:
        """Results as they come; the next job is asked for when there is room for it."""
        if self.workers == 1 or not parallel:
            for job in jobs:
                yield run_job(self.graph, self.scale, self.tree(job.recipe), job)
            return
        from concurrent.futures import FIRST_COMPLETED, wait

        pending: set[Any] = set()
        while True:
            while len(pending) < self.workers and (given := next(jobs, None)) is not None:
                tree = self.tree(given.recipe)
                with _undisturbed():
                    pending.add(self._open().submit(_run_held, tree, given))
            if not pending:
                return
            ready, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()

    def _open(self) -> Any:
        if self._executor is None:
            from joblib.externals.loky import ProcessPoolExecutor

            # Workers that have grown are replaced between jobs, which is as it should be.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
            self._executor = ProcessPoolExecutor(
                self.workers, initializer=_hold, initargs=(self.graph, self.scale), timeout=None
            )
        return self._executor


# ----------------------------------------------------------------------- search


class Search:
    """Tries recipes on a split until the list or the time runs out; the first two always run.

    Parameters
    ----------
    pool
        Where jobs run.
    split, seed
        Of the jobs.
    budget
        Seconds.
    members
        How many networks the final mean may have: that many of the lowest validation loss are kept.
    progress
        Called with an `Event` whenever something happened.
    """

    def __init__(
        self, pool: Pool, split: Split, seed: int, budget: float, members: int, progress: Progress | None = None
    ) -> None:
        self.pool, self.split, self.seed, self.budget, self.members = pool, split, seed, budget, members
        self.progress = progress or (lambda _: None)
        warm_up()
        self.done: list[Candidate] = []
        self.skipped: list[Recipe] = []
        self.start = time.perf_counter()
        self.order: list[Recipe] = []
        self.pins: Mapping[str, Any] = {}
        self.planned = 0
        self.rate = _RATE

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.start

    def run_fixed(self, recipes: Sequence[Recipe]) -> list[Candidate]:
        """Train exactly these, whatever the time."""
        self.planned = len(recipes)
        long = len(recipes) > 1 and self._estimate(recipes[0]) > _FAN_OUT
        self._take(recipes, parallel=long, fixed=True)
        return self._in_order()

    def run(self, training: Graph, pins: Mapping[str, Any]) -> list[Candidate]:
        """Train recipes that differ widely, then round by round those most like the best, for as long as that helps."""
        self.pins = pins
        listed = first_recipes(self.pool.graph, training, pins)
        first = listed[:_DIVERSE]
        self.planned = len(first)
        if self._estimate(first[0]) > _PROBE:
            self._probe(first[0])
        self._take(first[:1], parallel=False)  # tells how long the others will take
        self._take(first[1:], parallel=self._long())
        while len(self.done) < _MOST and not self.skipped:
            before = self._lowest()
            batch = self._promising(listed)
            self.planned += len(batch)
            self._take(batch, parallel=self._long())
            if not batch or self._lowest() >= before:
                break
        return self._in_order()

    def _in_order(self) -> list[Candidate]:
        """The candidates as they were started, whichever ended first."""
        place = {recipe: i for i, recipe in enumerate(self.order)}
        return sorted(self.done, key=lambda c: place[c.recipe])

    def _lowest(self) -> float:
        """The losses of those that would be averaged, together."""
        losses = sorted(c.val_loss for c in self.done)[: self.members]
        return sum(losses) + (self.members - len(losses)) * 1e9

    def _promising(self, listed: Sequence[Recipe]) -> list[Recipe]:
        """Untried recipes, most like the best first: by the place of a tried one plus in how much they differ."""
        ranked = [c.recipe for c in sorted(self.done, key=lambda c: c.val_loss)]
        near = [v.changed(**self.pins) for recipe in ranked[:_PARENTS] for v in variations(recipe)]
        rated: dict[Recipe, int] = {}
        for recipe in [*near, *listed]:
            if all(difference(recipe, known) for known in [*ranked, *rated]):
                rated[recipe] = min(place + difference(recipe, known) for place, known in enumerate(ranked))
        return sorted(rated, key=lambda recipe: rated[recipe])[:_PER_ROUND]

    def _take(self, recipes: Sequence[Recipe], parallel: bool, fixed: bool = False) -> None:
        def jobs() -> Iterator[Job]:
            for given in recipes:
                recipe = given if fixed else self._capped(given)
                if not fixed and len(self.order) >= _ALWAYS and not self._fits(recipe):
                    self.skipped.append(recipe)
                    self.planned -= 1
                    continue
                self.order.append(recipe)
                self._tell()
                yield Job(recipe, self.split, self.seed)

        for candidate in self.pool.run(jobs(), parallel):
            self.done.append(candidate)
            self._measure()
            self._forget()
            self._tell(candidate)

    def _tell(self, candidate: Candidate | None = None) -> None:
        running = len(self.order) - len(self.done)
        self.progress(Event(len(self.done), running, self.planned, self.elapsed, self.budget, candidate))

    # ------------------------------------------------------------------- the clock

    def _work(self, recipe: Recipe) -> float:
        tree = self.pool.trees.get(recipe.tree)
        return work(recipe, self.pool.graph, tree.K if tree else _LEVELS)

    def _estimate(self, recipe: Recipe) -> float:
        """Seconds that a recipe will take."""
        epochs = np.mean([c.epochs for c in self.done]) if self.done else _EPOCHS
        return float(self._work(recipe) * self.rate * min(epochs, recipe.full_settings.epochs))

    def _fits(self, recipe: Recipe) -> bool:
        return self.elapsed + self._estimate(recipe) <= self.budget

    def _long(self) -> bool:
        return bool(self.done) and float(np.mean([c.seconds for c in self.done])) > _FAN_OUT

    def _measure(self) -> None:
        # The median: one that waited for the compiler says nothing about the others.
        self.rate = float(np.median([c.seconds / (self._work(c.recipe) * c.epochs) for c in self.done]))

    def _probe(self, recipe: Recipe) -> None:
        """Find out how fast this machine is on this graph, by a few epochs, before a long recipe is begun."""
        short = pinned(recipe, {"epochs": _PROBE_EPOCHS})
        tried = run_job(self.pool.graph, self.pool.scale, self.pool.tree(short), Job(short, self.split, self.seed))
        self.rate = tried.seconds / (self._work(recipe) * tried.epochs)

    def _capped(self, recipe: Recipe) -> Recipe:
        """The recipe with so few epochs that it takes its share of the budget at most."""
        if "epochs" in self.pins:
            return recipe
        from pegfan.training import Settings

        whole = pinned(recipe, {"epochs": Settings.epochs, "patience": self.pins.get("patience", Settings.patience)})
        affordable = self.budget * self.pool.workers / _SHARE / (self._work(recipe) * self.rate)
        if affordable >= Settings.epochs:
            return whole
        epochs = max(int(affordable) // 20 * 20, _FEWEST)
        patience = whole.full_settings.patience
        if "patience" not in self.pins:
            patience = min(patience, max(epochs // 4, 10))
        return whole.changed(epochs=epochs, patience=patience)

    def _forget(self) -> None:
        """Drop the weights of those that cannot be chosen any more."""
        kept = set(map(id, sorted(self.done, key=lambda c: c.val_loss)[: self.members]))
        kept.add(id(min(self.done, key=lambda c: c.rank)))
        for candidate in self.done:
            if id(candidate) not in kept:
                candidate.run = replace(candidate.run, state={}, history=None) if candidate.run else None


# ----------------------------------------------------------------------- choice


def choose(
    candidates: Sequence[Candidate], graph: Graph, split: Split, members: int, how: str = "auto"
) -> tuple[list[Candidate], str, str]:
    """The members of the final model, how they are joined, and why.

    Parameters
    ----------
    candidates
        All that was trained.
    graph, split
        Whose validation labels decide.
    members
        The most members of a mean.
    how
        ``"auto"``: the mean of those of lowest validation loss if it beats the best single one, by the metric and at
        equal metrics by the loss; ``"mean"``: that mean in any case; ``"best"``: the single one.
    """
    best = min(candidates, key=lambda c: c.rank)
    group = sorted(candidates, key=lambda c: c.val_loss)[:members]
    metric, loss = validate(mean_of([c.log_probabilities for c in group]), graph, split)
    told = f"{100 * metric:.2f} (loss {loss:.4f}) against {100 * best.val_metric:.2f} (loss {best.val_loss:.4f})"
    if len(group) == 1:
        return [best], "best", "the only candidate" if len(candidates) == 1 else "the best on validation"
    if how == "mean" or (how == "auto" and (-metric, loss) <= best.rank):
        why = "beats the best single one on validation" if how == "auto" else "was asked for"
        return group, f"mean of {len(group)}", f"the mean of the {len(group)} of lowest loss {why}: {told}"
    why = "does not beat the best single one on validation" if how == "auto" else "was not asked for"
    return [best], "best", f"the mean of the {len(group)} of lowest loss {why}: {told}"
