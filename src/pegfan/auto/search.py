"""Trying recipes within a time budget, on all cores, and choosing among them on validation."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from pegfan._arrays import Float32Array, FloatArray
from pegfan._cache import Same
from pegfan.auto.ensemble import FEWEST, Judge, noise, select
from pegfan.auto.recipes import Space, baseline_recipes, difference, first_recipes, large_recipes, memory, work
from pegfan.channels import Channels, FeatureScale
from pegfan.decisions import Decision, best_offsets
from pegfan.fitted import Trained, mean_of, train_member
from pegfan.graph import Graph, Split
from pegfan.metrics import METRICS, score, unequal
from pegfan.recipe import OWN, Recipe
from pegfan.running import Clock, Deadline, Progress, Step, one_thread, release_memory
from pegfan.training import Diverged, Settings
from pegfan.training.batches import ENTRIES, JUDGED, ROWS, STEPS
from pegfan.training.loop import Unfinished
from pegfan.trees import Hierarchy

__all__ = [
    "Choice",
    "Pool",
    "Search",
    "Task",
    "Trial",
    "by_loss",
    "choose",
    "metric_first",
    "unweighted_state",
    "validate",
]

_log = logging.getLogger(__name__)

_RATES = {"network": 6e-9, "boosting": 5e-9}
"""Seconds per unit of `work` and epoch, until something has been measured."""
_BATCHES = 2e-8
"""Seconds of a core per row of a batch and column, likewise."""
_STEPS, _FEWEST_STEPS, _PATIENCE = 1920, 256, 320
"""In batches, the steps that a network may take, those that it gets at least, and those without improvement."""
_PER_ARC = 1.2e-6
"""Seconds that a tree takes per arc of the graph."""
_NETWORKS = 6
"""Among how many networks the time for a large graph is shared."""
_LARGE_SHARE, _MEMBERS = 0.6, 2
"""The part of the time that the search on a large graph has if so many members can be trained on other folds in the
rest."""
_EPOCHS = 250
"""Epochs per recipe, until something has been measured."""
_LEVELS = 7
_SHARE = 10
"""A recipe may take a tenth of the time of all cores: its epochs are capped accordingly, and then the clock ends it."""
_FEWEST, _FEWEST_BASELINE = 100, 30
"""Epochs that a recipe must have to be worth a try, and those that what everybody would try gets in any case."""
_STEEP, _LEAST, _TRIED = 4, 0.05, 3
"""How steeply the time of a head falls with the skill of its best against that of the leader, and what it has at least,
once so many recipes with this head have been tried."""
_DIVERSE, _PARENTS, _REPEATS, _TRIES = 8, 6, 5, 20
"""How many recipes run before any is varied, how many of the best are varied, the most seeds per recipe, and how many
recipes are drawn to find one that is new."""
_MOST, _ENOUGH, _IDLE = 240, 32, 16
"""The most trainings; how many in a row that do not get among the best end a search; and how many turns in a row in
which nothing new is found, as where almost everything is pinned."""
_SHARES = (0.25, 0.5, 0.75)
"""Of the best baseline in an ensemble, where that is worse on validation without it."""
_IN_ANY_CASE = 10.0
"""Seconds that the tree of what everybody would try may take, however little time there is."""
_TICK = 1e-6
"""Seconds that a training takes at least, where the system counts them in large steps."""
_LATE = 2.0
"""A recipe is begun if at least one part in so many of the time that it takes is left."""
CHANNELS, ROWS_SHARE, WEIGHTS = 0.1, 0.75, 0.05
"""The parts of the memory for channels that are kept from one training to the next; for the rows of channels that are
being trained on, and what they are made of; and for weights and outputs of trainings that may be chosen."""
ROWS_LEAST, ROWS_MOST, ROWS_NEEDED = 4e8, 1.6e9, 2.5
"""However much memory there is, such rows have six times the bytes of the features as if they were dense, at least and
at most so many, but in any case room for the features themselves and one hop."""
MEMORY = 4e9
"""The most bytes that a search takes where nothing is said."""
_OVER: Any = object()
"""In place of a task: there is none any more."""
SEEDS = 1000
"""By how much the seeds of a recipe that is trained again differ."""


class Task(NamedTuple):
    """A recipe on a split: all that its result depends on, besides the graph; and when it is to end in any case.

    `place` is for who asks, and comes back with the result; `seconds` are those that the training may take at most,
    once its channels are made.
    """

    recipe: Recipe
    split: Split
    seed: int
    tree: Hierarchy | None = None
    until: Deadline | None = None
    place: Any = None
    seconds: float = math.inf


@dataclass(eq=False)
class Trial:
    """A recipe that was trained.

    Attributes
    ----------
    recipe
        What was trained; if time ran out, with the epochs that it had.
    val_metric, val_loss
        Of the probabilities that it predicts for the validation nodes.
    epochs, seconds
        How long the training took; seconds by the clock.
    log_probabilities
        Of all nodes; where there are numeric targets, the predicted numbers in one column. None once it can no longer
        be chosen.
    trained
        The trained network; None likewise, and where the training diverged.
    gain
        The metric, or its negative where smaller is better.
    seed
        Of the task.
    cpu
        Seconds that a core was busy with it.
    asked
        The recipe as it was planned, where time ran out.
    place
        Of the task.
    weight
        In the model; 0 for those that were not chosen.
    made
        Seconds of the core in which channels were made.
    baseline
        Whether everybody would have tried it: the model is never worse on validation.
    out_of_memory
        Whether memory ran out: nothing came of it.
    """

    recipe: Recipe
    val_metric: float
    val_loss: float
    epochs: int
    seconds: float
    log_probabilities: Any = field(repr=False)
    trained: Trained | None = field(repr=False)
    gain: float | None = None
    seed: int = 0
    cpu: float = 0.0
    asked: Recipe | None = None
    place: Any = None
    weight: float = 0.0
    made: float = 0.0
    baseline: bool = False
    out_of_memory: bool = False

    @property
    def per_epoch(self) -> float:
        """Seconds that a core takes for an epoch."""
        return max(self.cpu - self.made, _TICK) / max(self.epochs, 1)

    @property
    def rank(self) -> tuple[float, float]:
        """Sorts the best on validation first: by metric, then by loss."""
        gain = self.val_metric if self.gain is None else self.gain
        return (-gain if np.isfinite(gain) else np.inf, self.val_loss)


# --------------------------------------------------------------------- training


class Shared(NamedTuple):
    """What all tasks of a search share: a graph, the scale of its columns, whether degrees stand in, weights, channels.

    Channels are `kept` from one task to the next.
    """

    graph: Graph
    scale: FeatureScale | None
    stood_in: bool = False
    sample_weight: FloatArray | None = None
    kept: Kept | None = None


class Kept:
    """The newest channels of a graph, so that recipes that share them do not make them again.

    Parameters
    ----------
    most
        Bytes that all of them may take, counted as if they shared nothing; the newest are kept in any case.
    """

    def __init__(self, most: float = 1.5e9) -> None:
        self.most, self.sizes = most, dict[Any, int]()
        self.made: dict[Any, Channels] = {}
        self.lock = Lock()

    def channels(self, shared: Shared, task: Task) -> Channels:
        """The channels of a task."""
        own = {name: getattr(task.recipe, name) for name in OWN if name not in ("head", "leaves", "stages")}
        key = (
            tuple(sorted(own.items(), key=str)),
            Same(task.tree),
            task.split.train.tobytes() if own["labels"] else None,
        )
        with self.lock:
            if key in self.made:
                self.made[key] = self.made.pop(key)  # the newest come last
                return self.made[key]
            found = _make_channels(shared, task)
            self.made[key], self.sizes[key] = found, found.memory(format="rows")
            while len(self.made) > 1 and sum(self.sizes.values()) > self.most:
                oldest = next(iter(self.made))
                del self.made[oldest], self.sizes[oldest]
            return found


def _make_channels(shared: Shared, task: Task) -> Channels:
    scale = shared.scale if task.recipe.scaling == "columns" else None
    return task.recipe.channels(shared.graph, task.tree, split=task.split, scale=scale)


def run_task(shared: Shared, task: Task) -> Trial:
    """Train a recipe. The training never sees the test nodes; a recipe that diverges has no network."""
    start, busy = time.perf_counter(), time.thread_time()
    graph, split, recipe = shared.graph, task.split, task.recipe
    unseen = Split(split.train, split.val, np.empty(0, np.int64))
    settled = recipe.settled(graph, split, shared.stood_in)
    tree = settled.build_tree(graph) if task.tree is None else task.tree
    make = _make_channels if shared.kept is None else shared.kept.channels
    channels = make(shared, task._replace(recipe=settled, tree=tree))
    made, until = time.thread_time() - busy, task.until
    if until is not None and math.isfinite(task.seconds):
        until = until.within(time.monotonic(), max(task.seconds, until.grace))
    options: Any = {"sample_weight": shared.sample_weight, "history": True, "until": until}
    try:
        trained, channels = train_member(settled, graph, unseen, task.seed, tree, channels, **options)
    except Diverged as error:
        nothing: Any = np.full((graph.n, graph.n_classes), -np.log(max(graph.n_classes, 1)), np.float32)
        if graph.targets is not None:
            nothing = np.full((graph.n, 1), graph.targets[split.train].mean())
        if isinstance(error, Unfinished):
            nothing = None
        took, cpu = time.perf_counter() - start, time.thread_time() - busy
        return Trial(
            recipe, np.nan, np.inf, 0, took, nothing, None, None, task.seed, cpu, recipe, task.place, 0.0, made
        )
    if recipe.stages > 1:
        recipe = recipe.changed(epochs=trained.recipe.settings.epochs)
    elif until is not None and until.passed and not recipe.is_linear:
        recipe = recipe.changed(epochs=trained.run.epochs)  # so that it can be trained again without a clock
        trained = replace(trained, recipe=trained.recipe.changed(epochs=trained.run.epochs))
    if recipe.settings.class_weights:
        trained = unweighted(trained, graph, split)
    output = trained.network.predict(channels)
    metric, loss = validate(output, graph, split, shared.sample_weight)
    took, cpu, gain = time.perf_counter() - start, time.thread_time() - busy, METRICS[graph.metric].gain(metric)
    epochs, told = trained.run.epochs, (task.seed, cpu, task.recipe, task.place)
    return Trial(recipe, metric, loss, epochs, took, output, trained, gain, *told, made=made)


def unweighted(trained: Trained, graph: Graph, split: Split) -> Trained:
    """A member whose classes counted equally in the loss, with probabilities for classes of the sizes that they have.

    What such a training gives is in proportion to p / size; the logarithms of the sizes go into the biases.
    """
    assert graph.labels is not None
    sizes = np.bincount(graph.labels[split.train], minlength=graph.n_classes)
    name = "base" if trained.recipe.is_boosted else "output.bias"
    return replace(trained, run=replace(trained.run, state=unweighted_state(trained.run.state, name, sizes)))


def unweighted_state(state: Mapping[str, Any], name: str, sizes: Any) -> dict[str, Any]:
    """A state whose biases, of this name, know the sizes of the classes."""
    return {**state, name: state[name] + np.log(np.maximum(sizes, 1) / sizes.sum()).astype(np.float32)}


def validate(
    output: Float32Array, graph: Graph, split: Split, weights: FloatArray | None = None
) -> tuple[float, float]:
    """The metric and the loss on the validation nodes; a metric of decided classes, as they are best decided there.

    Weights count in the loss.
    """
    if graph.targets is not None:
        return _validate_numbers(output[split.val, 0], graph, split, weights)
    assert graph.labels is not None
    labels = graph.labels[split.val]
    picked = output[split.val, labels].astype(np.float64)
    offsets, _ = best_offsets(output[split.val], labels, graph.metric) if METRICS[graph.metric].decides else (None, "")
    value = Decision(offsets=offsets).score(output[split.val], labels, graph.metric)
    total = float(len(picked))
    if weights is not None:
        picked, total = weights[split.val] * picked, math.fsum(weights[split.val])
    return value, -math.fsum(picked) / (total or 1.0)


def _validate_numbers(
    values: FloatArray, graph: Graph, split: Split, weights: FloatArray | None
) -> tuple[float, float]:
    """The metric, and the mean squared error over the variance of training targets, as networks are trained by it."""
    assert graph.targets is not None
    train, truth = np.sort(graph.targets[split.train]), graph.targets[split.val]
    shares = np.ones(len(truth)) if weights is None else weights[split.val]
    error = math.fsum(shares * (values - truth) ** 2) / (math.fsum(shares) or 1.0)
    return score(values, truth, graph.metric), error / (float(np.var(train)) or 1.0)


class Pool:
    """Trains recipes on one graph in threads, which share the graph, trees and what channels are made of.

    Parameters
    ----------
    graph
        With features.
    scale
        Of its columns, where a recipe asks for it.
    workers
        The most threads. Results do not depend on it.
    stood_in
        Whether degrees stand in for features.
    sample_weight
        Of the nodes, in losses.
    large
        Whether recipes for large graphs are tried.
    until
        When trainings are to end.
    max_memory
        Bytes for all that trainings hold, beside the graph.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C came while threads were training; what they had by then counts.
    longest : float
        Seconds of a core after which any training ends: how long one will take is not known beforehand.
    whole : bool
        Whether a part of the trainings is worth nothing, so that Ctrl-C ends everything.
    """

    def __init__(
        self,
        graph: Graph,
        scale: FeatureScale | None,
        workers: int,
        stood_in: bool = False,
        sample_weight: FloatArray | None = None,
        large: bool = False,
        until: Deadline | None = None,
        max_memory: float = MEMORY,
    ) -> None:
        self.large, self.until, self.interrupted, self.longest, self.whole = large, until, False, math.inf, False
        self.workers, self.max_memory = workers, max_memory
        self.shared = Shared(graph, scale, stood_in, sample_weight, Kept(CHANNELS * max_memory))
        self.trees: dict[Any, Hierarchy | None] = {None: None}
        self._building: dict[Any, Lock] = {}

    def tree(self, recipe: Recipe) -> Hierarchy | None:
        """The tree of a recipe, built once."""
        key = recipe.tree_key
        with self._building.setdefault(key, Lock()):
            if key not in self.trees:
                self.trees[key] = recipe.build_tree(self.shared.graph)
        return self.trees[key]

    def _train(self, task: Task) -> Trial:
        try:
            ready = task._replace(tree=self.tree(task.recipe), until=self.until, seconds=self.longest)
            return run_task(self.shared, ready)
        except MemoryError as error:
            _log.warning("not enough memory for %s: %s", task.recipe.name, error)
            about: Any = {"seed": task.seed, "asked": task.recipe, "place": task.place, "out_of_memory": True}
            return Trial(task.recipe, math.nan, math.inf, 0, 0.0, None, None, **about)

    def columns(self, recipe: Recipe) -> float:
        """About how many columns all channels of a recipe have together."""
        graph = self.shared.graph
        both = 2 if recipe.direction == "both" and graph.directed else 1
        count = recipe.include_features + recipe.hop_count(graph.directed)
        tree = self.trees.get(recipe.tree_key) if recipe.has_tree else None
        count += (tree.K if tree else _LEVELS) * recipe.has_tree + 2 * both * len(graph.edge_kinds) * recipe.kinds
        assert graph.features is not None
        return float(count * graph.features.shape[1] + 4 * graph.n_classes * recipe.labels + 1)

    def is_batched(self, recipe: Recipe) -> bool:
        """Whether a recipe is trained in batches, on rows of its channels."""
        return self.large and recipe.head == "network" and self.columns(recipe) <= ENTRIES

    def fits(self, recipe: Recipe, *others: Recipe) -> bool:
        """Whether its rows fit into their part of the memory, beside those of others."""
        graph = self.shared.graph
        x: Any = graph.features
        held = 12.0 * x.nnz if issparse(x) else 4.0 * x.size
        allowed = min(max(6 * 4.0 * x.shape[0] * x.shape[1], ROWS_LEAST), ROWS_MOST)
        most = min(ROWS_SHARE * self.max_memory, max(allowed, ROWS_NEEDED * held))
        on_rows = [one for one in (recipe, *others) if one.head != "network" or self.is_batched(one)]
        return bool(memory(on_rows, graph) <= most)

    def run(self, tasks: Iterator[Task | None]) -> Iterator[Trial]:
        """Results as they come.

        The next task is asked for when a thread is free, later if it is None, and begins once it fits into memory
        beside the others.
        """
        running: dict[Any, Recipe] = {}
        clock = None if self.until is None else self.until.clock
        following: Task | None = None
        with one_thread(), ThreadPoolExecutor(self.workers) as lanes:
            while True:
                try:
                    over = self.interrupted
                    while len(running) < self.workers and not over:
                        following = next(tasks, _OVER) if following is None else following
                        over = following is _OVER
                        if over or following is None:
                            break
                        if running and not self.fits(following.recipe, *running.values()):
                            break
                        running[lanes.submit(self._train, following)] = following.recipe
                        following = None
                    if clock is not None:
                        clock.set_running(len(running))
                    if not running:
                        if over:
                            return
                        continue
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    release_memory()  # else what trainings have freed stays with the process
                    for future in finished:
                        del running[future]
                        yield future.result()
                except BaseException as error:  # Ctrl-C, or whoever asked wants no more
                    if running and self.until is not None:
                        self.until.at, self.until.grace = 0.0, 0.0  # trainings end after their epoch
                    if not isinstance(error, KeyboardInterrupt):
                        raise
                    if self.interrupted or self.until is None or self.whole:
                        raise
                    self.interrupted = True


class Search:
    """Tries recipes on a split until the time is over: first what everybody would try, then what helps on this graph.

    Parameters
    ----------
    pool
        Where tasks run.
    split, seed
        Of the tasks.
    budget
        Seconds, as the pool's clock counts them.
    members
        The most networks in the final mean; those with the lowest validation loss are kept.
    progress
        Called with a `Step` whenever something happened; its result is the newest `Trial`.
    afford
        Seconds of a core that a recipe may take, where it would be trained again on other splits; its epochs are
        capped.
    others
        On how many other splits the members are to be trained again, on a large graph.
    """

    def __init__(
        self,
        pool: Pool,
        split: Split,
        seed: int,
        budget: float,
        members: int,
        progress: Progress | None = None,
        afford: float | None = None,
        others: int = 0,
    ) -> None:
        self.afford, self.others = afford, others
        self.pool, self.split, self.seed, self.budget, self.members = pool, split, seed, budget, members
        self.progress = progress or (lambda _: None)
        clock = None if pool.until is None else pool.until.clock
        self.clock = clock or Clock(budget, lanes=pool.workers)
        self.done: list[Trial] = []
        self.skipped: list[Recipe] = []
        self.left_out: list[Recipe] = []
        self.order: list[Recipe] = []
        self.baselines: list[Recipe] = []
        self.pins: Mapping[str, Any] = {}
        self.unequal = False
        self.planned = 0
        self.room = WEIGHTS * pool.max_memory
        self.rates = {**_RATES, "batches": _BATCHES}
        self._stopped, self._best, self._skipped = False, (math.inf, 0), 0

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search early."""
        return self._stopped or self.pool.interrupted

    def run_fixed(self, recipes: Sequence[Recipe], baselines: int = 0) -> list[Trial]:
        """Train exactly these, each once, however long it takes; one that is listed again has another seed.

        The first of them are so many `baselines`.
        """
        wanted = list(map(self._settled, recipes))
        self.planned, self.baselines = len(wanted), wanted[:baselines]
        self.room = max(self.room, WEIGHTS * MEMORY)  # what may be chosen depends on no free memory then
        self._take(iter(wanted), fixed=True)
        return self._in_order()

    def run(self, training: Graph, pins: Mapping[str, Any]) -> list[Trial]:
        """Train recipes until the time is over, or for as long as that helps.

        First what everybody would try. Then networks and boosted trees by turns, in the time that their best ones
        deserve: of each, recipes of a list, which differ widely, some that are drawn, variations of the best, and the
        best ones with other seeds.
        """
        self.pins = pins
        self.unequal = training.labels is not None and unequal(np.bincount(training.labels[training.labels >= 0]))
        graph = self.pool.shared.graph
        self.space = Space(graph, pins, self.unequal, self.pool.large)
        self.baselines = baseline_recipes(graph, training, pins, self.pool.large)
        listed = (large_recipes if self.pool.large else first_recipes)(graph, training, pins)
        del training  # it takes memory
        listed = [recipe for recipe in listed if all(difference(recipe, known) for known in self.baselines)]
        self.left_out = [recipe for recipe in [*self.baselines, *listed] if not self.pool.fits(recipe)]
        most = max(self.clock.left(self.budget) / _LATE, _IN_ANY_CASE)
        late = [recipe for recipe in self.baselines if self.pool.large and self._tree_seconds(recipe) > most]
        self.baselines = [recipe for recipe in self.baselines if recipe not in [*self.left_out, *late]]
        listed = [recipe for recipe in listed if recipe not in self.left_out]
        try:
            self._run_listed(listed)
        except KeyboardInterrupt:
            self._stopped = True
        if self.interrupted and not any(trial.trained and trial.recipe.head != "constant" for trial in self.done):
            raise KeyboardInterrupt
        return self._in_order()

    def _run_listed(self, listed: list[Recipe]) -> None:
        self.pool.longest = self.budget * self.pool.workers / _SHARE
        self._take(iter(self.baselines), obvious=True)
        if self.pool.large:
            self.pool.longest = math.inf
        if self.pool.large and self.others and self.done:
            # Where the slowest shows that there is time for other folds, they get a part of it.
            spent = max(trial.cpu for trial in self.done)
            if _MEMBERS * spent * self.others / self.pool.workers <= (1 - _LARGE_SHARE) * self.budget:
                self.budget *= _LARGE_SHARE
                if self.pool.until is not None:
                    self.pool.until.upto = self.budget
        self._take(self._proposals(listed))

    def _proposals(self, listed: list[Recipe]) -> Iterator[Recipe | None]:
        """What to try next, by what is known when it is asked for; None where nothing fits beside what is trained."""
        idle, turns = 0, dict.fromkeys(self.space.heads, 0)
        while not self._is_over() and idle < _IDLE:
            beside = self._training
            found = next(filter(None, (self._proposal(head, turns, listed) for head in self._heads())), None)
            idle = 0 if found is not None or beside else idle + 1
            if found is not None or beside:
                yield found

    def _proposal(self, head: str, turns: dict[str, int], listed: list[Recipe]) -> Recipe | None:
        """What to try next with a head: of every four, one of the list, three new ones."""
        turn, beside = turns[head], self._training
        turns[head] += 1
        own = [recipe for recipe in listed if recipe.head == head or recipe.head not in self.space.heads]
        following = next((one for one in own if not self._is_slow(one) and self.pool.fits(one, *beside)), None)
        if following is not None and (turn < _DIVERSE // len(turns) or turn % 4 == 0):
            listed.remove(following)
            return following
        found = self._repeated(head) if turn % 4 == 3 else self._new(turn, head, drawn=turn % 4 == 1)
        return found if found is not None and self.pool.fits(found, *beside) else None

    def _heads(self) -> list[str]:
        """The heads, that which has had least of the time that it deserves first."""
        spent = dict.fromkeys(self.space.heads, 0.0)
        for trial in self.done:
            if trial.recipe.head in spent:
                spent[trial.recipe.head] += trial.cpu
        for recipe in self._training:
            if recipe.head in spent:
                spent[recipe.head] += self._estimate(recipe)
        return sorted(spent, key=lambda head: spent[head] / self._deserved(head))

    def _deserved(self, head: str) -> float:
        """What part of the time a head deserves, against one: by how far its best is from a constant to the leader."""
        best = {name: self._best_loss(name) for name in self.space.heads}
        worst = self._best_loss("constant")
        if math.isinf(worst) or math.isinf(best[head]) or sum(t.recipe.head == head for t in self.done) < _TRIED:
            return 1.0
        skill = (worst - best[head]) / max(worst - min(best.values()), 1e-12)
        return max(min(skill, 1.0), 0.0) ** _STEEP + _LEAST

    def _best_loss(self, head: str) -> float:
        return min((t.val_loss for t in self.done if t.recipe.head == head and t.trained is not None), default=math.inf)

    def _new(self, turn: int, head: str, drawn: bool) -> Recipe | None:
        """An untried recipe: of several that are drawn, or that vary one of the best, the first that is fast enough."""
        rng = np.random.default_rng([self.seed, turn, list(self.space.heads).index(head)])
        best = self._ranked(head)[:_PARENTS]
        tried, beside = [*self.order, *self.skipped], self._training
        for _ in range(_TRIES):
            if drawn or not best:
                found = self.space.draw(rng, head)
            else:
                found = self.space.vary(best[int(rng.integers(len(best)))], rng)
            if self._is_slow(found) or not self.pool.fits(found, *beside):
                continue
            if all(difference(found, known) for known in tried):
                return found
        return None

    @property
    def _training(self) -> list[Recipe]:
        """What is being trained."""
        ended = {trial.place for trial in self.done}
        return [recipe for place, recipe in enumerate(self.order) if place not in ended]

    def _ranked(self, head: str) -> list[Recipe]:
        """The recipes of a head as they were planned, the best first."""
        own = [c for c in by_loss(self.done) if c.trained is not None and c.recipe.head == head]
        return list(dict.fromkeys(c.asked or c.recipe for c in own))

    def _is_over(self) -> bool:
        """Whether the time is, or nothing has got among the best for long."""
        if self.interrupted or len(self.order) >= _MOST or self.clock.left(self.budget) <= 0:
            return True
        if len(self.skipped) - self._skipped >= _DIVERSE:  # nothing fits any more
            return True
        lowest = self._lowest()
        if math.isinf(self._best[0]) or lowest < self._best[0] - 1e-4 * abs(self._best[0]):
            self._best = (lowest, len(self.done))
        return len(self.done) - self._best[1] >= _ENOUGH

    def _repeated(self, head: str) -> Recipe | None:
        """One of the best that has been trained least often, or None where all of them were trained enough."""
        best = self._ranked(head)[: 2 * _PARENTS]
        times = {recipe: self.order.count(recipe) for recipe in best}
        left = [recipe for recipe in best if times[recipe] < _REPEATS and not self._is_slow(recipe)]
        return min(left, key=lambda recipe: best.index(recipe) + 3 * times[recipe], default=None)

    def _settled(self, recipe: Recipe) -> Recipe:
        shared = self.pool.shared
        return recipe.settled(shared.graph, self.split, shared.stood_in)

    def _in_order(self) -> list[Trial]:
        """The trials in the order in which they were started; those that can no longer be chosen come last.

        What is repeated lacks these, and those for which memory ran out. A recipe that is listed again has another seed
        then: where an earlier one of its kind is lacking, it can't be chosen either.
        """
        begun = sorted(self.done, key=lambda trial: trial.place)
        ended = [trial for trial in begun if not trial.out_of_memory]
        self.left_out += [trial.recipe for trial in begun if trial.out_of_memory]
        if not ended and self.left_out:
            raise MemoryError(f"none of {len(self.left_out)} recipes fits into the memory that a search may take")
        held: list[Trial] = []
        for trial in ended:
            again = sum(not difference(trial.recipe, other.recipe) for other in held)
            if trial.log_probabilities is not None and trial.seed == self.seed + SEEDS * again:
                trial.baseline = trial.place < len(self.baselines)
                held.append(trial)
            else:
                trial.trained = trial.log_probabilities = None
        lost = [trial for trial in ended if trial.log_probabilities is None]
        for place, trial in enumerate([*held, *lost]):
            trial.place = place
        return [*held, *lost]

    def _lowest(self) -> float:
        """The sum of the losses of those that may be averaged."""
        losses = sorted(c.val_loss for c in self.done)[: self.members]
        return sum(losses) + (self.members - len(losses)) * 1e9

    def _take(self, recipes: Iterator[Recipe | None], fixed: bool = False, obvious: bool = False) -> None:
        """Train recipes: planned and as far as there is time for each, or, as they are, what is fixed or obvious."""

        def tasks() -> Iterator[Task | None]:
            for given in recipes:
                if given is None:
                    yield None
                    continue
                recipe = given if fixed or given in self.order else self._settled(self._planned(given, obvious))
                again = sum(not difference(recipe, known) for known in self.order)
                if not fixed and not obvious:
                    if again and given not in self.order:  # another that comes to the same
                        continue
                    left = self.clock.left(self.budget)
                    if self._estimate(recipe) > _LATE * left or self.interrupted:
                        self.skipped.append(given)
                        _log.info("recipe %s does not fit into the time that is left", recipe.name)
                        continue
                self._skipped = len(self.skipped)
                self.order.append(recipe)
                self._tell()
                if self.pool.interrupted:
                    return
                yield Task(recipe, self.split, self.seed + SEEDS * again, place=len(self.order) - 1)

        for trial in self.pool.run(tasks()):
            if not fixed:
                self._uncap(trial)
            self.done.append(trial)
            _log.info(
                "recipe %d, %s: validation %.4f, loss %.4f, %d epochs, %.1f s",
                *(len(self.done), trial.recipe.name, trial.val_metric, trial.val_loss, trial.epochs, trial.seconds),
            )
            self._measure()
            self._forget()
            self._tell(trial)

    def _uncap(self, trial: Trial) -> None:
        """Take the cap from the epochs of a recipe that ended before it: what is repeated depends on no clock then."""
        recipe = trial.recipe
        if trial.trained is None or recipe.stages > 1 or "epochs" in self.pins or recipe.is_linear:
            return
        if trial.epochs < recipe.settings.epochs:
            trial.recipe = recipe.changed(epochs=self._most_epochs(recipe))
            trial.trained = replace(
                trial.trained, recipe=trial.trained.recipe.changed(epochs=trial.recipe.settings.epochs)
            )

    def _tell(self, trial: Trial | None = None) -> None:
        running = len(self.order) - len(self.done)
        self.progress(Step(len(self.done), self.planned, "", trial, running, self.clock.spent, self.budget))

    # ------------------------------------------------------------------- the clock

    def _work(self, recipe: Recipe) -> float:
        tree = self.pool.trees.get(recipe.tree_key)
        whole = work(recipe, self.pool.shared.graph, tree.K if tree else _LEVELS)
        rows = len(self.split.train) + len(self.split.val)  # boosting looks at no others
        return whole * rows / self.pool.shared.graph.n if recipe.is_boosted else whole

    def _cells(self, recipe: Recipe) -> float:
        """Rows times columns of an epoch in batches; a row that is only judged counts half."""
        rows = min(len(self.split.train), STEPS * ROWS) + min(len(self.split.val), JUDGED) / 2
        return rows * self.pool.columns(recipe)

    def _planned(self, recipe: Recipe, obvious: bool = False) -> Recipe:
        """The recipe with epochs for the time that is left: enough of them to converge, if that may be.

        The time is that of cores, as measured in earlier trainings, so that plans hardly depend on who else uses them;
        of epochs there are one, two, four, ... times the fewest, so that two runs come to the same plan.
        """
        if "epochs" in self.pins or recipe.is_linear:
            return recipe
        if not self.pool.is_batched(recipe):
            return self._capped(recipe, _FEWEST_BASELINE if obvious else _FEWEST)
        steps = min(STEPS, -(-len(self.split.train) // ROWS))
        left = max(self.budget - self.clock.spent, 0.0) * self.pool.workers
        networks = sum(not (trial.recipe.is_linear or trial.recipe.is_boosted) for trial in self.done)
        share = left / max(_NETWORKS - networks, 1)
        affordable = int(share / (self._cells(recipe) * self.rates["batches"]))
        epochs = _on_grid(affordable, -(-_FEWEST_STEPS // steps), self._most_epochs(recipe))
        patience = self.pins.get("patience", max(-(-_PATIENCE // steps), 3))
        _log.debug("%s: %.1f s of %.1f, %d epochs affordable", recipe.name, self.clock.spent, self.budget, affordable)
        return recipe.changed(epochs=epochs, patience=patience)

    def _most_epochs(self, recipe: Recipe) -> int:
        """The epochs that a recipe has where there is time."""
        steps = min(STEPS, -(-len(self.split.train) // ROWS))
        return -(-_STEPS // steps) if self.pool.is_batched(recipe) else Settings.epochs

    def _estimate(self, recipe: Recipe) -> float:
        """Seconds that a recipe will take."""
        if recipe.is_linear:
            return 0.0
        if self.pool.is_batched(recipe):
            known = [
                c.epochs / (c.asked or c.recipe).settings.epochs for c in self.done if self.pool.is_batched(c.recipe)
            ]
            part = float(np.mean(known)) if known else 0.5
            spent = self._cells(recipe) * self.rates["batches"] * recipe.settings.epochs * part
            return self._tree_seconds(recipe) + spent
        alike = [c.epochs for c in self.done if c.recipe.head == recipe.head]
        epochs = np.mean(alike) if alike else _EPOCHS
        return float(self._work(recipe) * self._rate(recipe) * min(epochs, recipe.settings.epochs))

    def _tree_seconds(self, recipe: Recipe) -> float:
        """Seconds that the tree of a recipe for a large graph will take, unless it is built."""
        built = recipe.tree_key in self.pool.trees
        return 0.0 if built or not recipe.has_tree else _PER_ARC * self.pool.shared.graph.adjacency.nnz

    def _measure(self) -> None:
        batched = [trial for trial in self.done if trial.epochs and self.pool.is_batched(trial.recipe)]
        if batched:
            spent = [max(trial.cpu, _TICK) / (trial.epochs * self._cells(trial.recipe)) for trial in batched]
            self.rates["batches"] = float(np.median(spent))

    def _rate(self, recipe: Recipe) -> float:
        """Seconds per unit of work and epoch, as measured: if it can be, in trainings of the same kind."""
        known = [trial for trial in self.done if trial.epochs and trial.recipe.head == recipe.head]
        alike = [trial for trial in known if trial.recipe.has_tree == recipe.has_tree] or known
        if not alike:
            return self.rates[recipe.head]
        return float(np.median([trial.per_epoch / self._work(trial.recipe) for trial in alike]))

    def _affordable(self, recipe: Recipe) -> float:
        """For how many epochs there is time."""
        share = self.budget * self.pool.workers / _SHARE
        most = share if self.afford is None else min(share, self.afford)
        return most / (self._work(recipe) * self._rate(recipe))

    def _is_slow(self, recipe: Recipe) -> bool:
        """Whether there is time for too few epochs; in batches, as many are planned as there is time for."""
        if recipe.is_linear or self.pool.is_batched(recipe):
            return False
        if "epochs" in self.pins:
            return self._estimate(recipe) > self.budget * self.pool.workers / _SHARE
        return self._affordable(recipe) < _FEWEST

    def _capped(self, recipe: Recipe, fewest: int) -> Recipe:
        """The recipe with its epochs capped, so that it takes at most its share of the budget."""
        return recipe.changed(epochs=_on_grid(self._affordable(recipe), fewest, Settings.epochs))

    def _forget(self) -> None:
        """Drop weights and outputs of the worst, where those of all would take too much memory."""
        kept = {id(min(self.done, key=metric_first)), id(by_loss(self.done)[0])}
        room = self.room
        for trial in by_loss(self.done):
            if trial.trained is None:
                trial.log_probabilities = None
                continue
            room -= sum(part.nbytes for part in trial.trained.run.state.values()) + trial.log_probabilities.nbytes
            if room < 0 and id(trial) not in kept and trial.place >= len(self.baselines):
                trial.trained = trial.log_probabilities = None


def _on_grid(affordable: float, fewest: int, most: int) -> int:
    """The largest of `fewest`, twice as many, ... that is affordable, and `most` where that is.

    Examples
    --------
    >>> [_on_grid(epochs, 100, 1500) for epochs in (7, 199, 200, 1499, 1e9)]
    [100, 100, 200, 800, 1500]
    """
    if affordable >= most or fewest >= most:
        return most
    return fewest << int(math.log2(max(affordable, fewest) / fewest))


class Choice(NamedTuple):
    """The members of a model, their weights, how they were chosen, and why."""

    members: list[Trial]
    weights: list[float]
    how: str
    reason: str

    @property
    def output(self) -> Any:
        """What the model says of all nodes."""
        return mean_of([trial.log_probabilities for trial in self.members], self.weights)


def choose(
    trials: Sequence[Trial],
    graph: Graph,
    split: Split,
    members: int,
    how: str = "auto",
    weights: FloatArray | None = None,
) -> Choice:
    """The members of the final model, which is never worse on validation than the best of the baselines.

    Parameters
    ----------
    trials
        All that was trained.
    graph, split
        Whose validation labels decide.
    members
        The most members.
    how
        ``"auto"``: an ensemble by greedy selection on the validation loss, unless the best single one does better on
        validation nodes that were left out of the selection (`pegfan.auto.ensemble`). ``"mean"``: the plain mean of
        those of lowest loss; ``"best"``: the single one that is best by the metric.
    weights
        Of the nodes, in the loss.
    """
    sound = by_loss([trial for trial in trials if np.isfinite(trial.val_loss) and trial.trained is not None])
    if not sound:
        raise Diverged(
            f"the training loss of all {len(trials)} recipes became infinite, or time was over before any was trained; "
            "use smaller learning rates, or a larger budget"
        )
    choice = _choose(sound, len(trials), graph, split, members, how, weights)
    baseline = min((trial for trial in sound if trial.baseline), key=metric_first, default=None)
    if how != "auto" or baseline is None:
        return choice
    measure, kept = METRICS[graph.metric], validate(choice.output, graph, split, weights)
    if not measure.gain(kept[0]) < -baseline.rank[0]:  # where there is no metric, the loss has decided
        return choice
    better = f"on validation {baseline.recipe.name} alone has {_shown(graph, (baseline.val_metric, baseline.val_loss))}"
    better += f", the {'ensemble' if len(choice.members) > 1 else 'recipe of lowest loss'} {_shown(graph, kept)}"
    for share in _SHARES:
        mixed = _with_baseline(choice, baseline, share, members)
        if len(mixed.members) == 1:
            break
        if measure.gain(validate(mixed.output, graph, split, weights)[0]) >= -baseline.rank[0]:
            return mixed._replace(reason=f"{choice.reason}; {share:.0%} of it is what everybody would try: {better}")
    return Choice([baseline], [1.0], "best", f"the best of what everybody would try: {better}")


def _with_baseline(choice: Choice, baseline: Trial, share: float, most: int) -> Choice:
    """The members of a model and a baseline, which has a share of it."""
    pairs = [pair for pair in zip(choice.members, choice.weights, strict=True) if pair[0] is not baseline]
    pairs = sorted(pairs, key=lambda pair: -pair[1])[: max(most - 1, 0)]
    total = math.fsum(weight for _, weight in pairs)
    group = [(baseline, share if pairs else 1.0), *((one, (1 - share) * weight / total) for one, weight in pairs)]
    group.sort(key=lambda pair: -pair[1])
    how = f"ensemble of {len(group)}" if len(group) > 1 else "best"
    return Choice([one for one, _ in group], [weight for _, weight in group], how, choice.reason)


def _shown(graph: Graph, pair: tuple[float, float]) -> str:
    return f"{METRICS[graph.metric].show(pair[0])} (loss {pair[1]:.4f})"


def _choose(
    sound: list[Trial], tried: int, graph: Graph, split: Split, members: int, how: str, weights: FloatArray | None
) -> Choice:
    """The members by validation alone."""
    best = min(sound, key=metric_first)
    judge = Judge(graph, split, weights, [trial.log_probabilities for trial in sound])
    told = partial(_shown, graph)
    if len(sound) == 1 or how == "best":
        return Choice([best], [1.0], "best", "the only recipe" if tried == 1 else "the best on validation")
    if how == "mean":
        group = sound[:members]
        both = (judge.judged(mean_of([c.log_probabilities[judge.nodes] for c in part])) for part in (group, [best]))
        name = f"the mean of the {len(group)} of lowest loss"
        reason = f"{name} was asked for: {' against '.join(map(told, both))} for the best single one"
        return Choice(group, [1 / len(group)] * len(group), f"mean of {len(group)}", reason)
    margin = noise(best.log_probabilities[judge.nodes], judge)
    floor = -best.rank[0] - margin
    near = [place for place, trial in enumerate(sound) if -trial.rank[0] >= floor]
    found = select([trial.log_probabilities for trial in sound], judge, members, near or [sound.index(best)], margin)
    chosen = sorted(np.flatnonzero(found.weights).tolist(), key=lambda m: -found.weights[m])
    group, shares = [sound[m] for m in chosen], [float(found.weights[m]) for m in chosen]
    if len(group) == 1:
        reason = f"the best on validation: {told(judge.judged(group[0].log_probabilities[judge.nodes]))}"
        if len(judge.nodes) >= FEWEST:
            reason += (
                f"; an ensemble does no better on validation nodes that it was not selected on: {told(found.ensemble)}"
            )
        return Choice(group, shares, "best", reason)
    reason = "a weighted mean, selected on validation"
    if len(judge.nodes) >= FEWEST:
        reason += (
            f"; on nodes left out of the selection {told(found.ensemble)}, the best single one {told(found.single)}"
        )
    return Choice(group, shares, f"ensemble of {len(group)}", reason)


def by_loss(trials: Sequence[Trial]) -> list[Trial]:
    """The lowest validation loss first; of equal ones, the order does not depend on which was ready first."""
    return sorted(trials, key=lambda c: (c.val_loss, c.recipe.key))


def metric_first(trial: Trial) -> tuple[tuple[float, float], str]:
    """Sorts the best by the metric first, likewise."""
    return trial.rank, trial.recipe.key
