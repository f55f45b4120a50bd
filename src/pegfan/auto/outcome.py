"""A whole training run: search, the model that is kept, further splits for the spread, and the result of it all."""

from __future__ import annotations

import gc
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan import _defaults as default
from pegfan import results
from pegfan._arrays import Float32Array, IntArray
from pegfan._checks import shown
from pegfan._limits import is_large
from pegfan.auto.classifier import AutoClassifier, AutoModel, AutoRegressor, decision_of, fit_model, weighted
from pegfan.auto.reasons import is_explained
from pegfan.auto.search import Choice, Pool, Task, Trial, by_loss, choose, metric_first, run_task, validate
from pegfan.decisions import Decision, Predictions
from pegfan.fitted import Fitted
from pegfan.graph import Graph, Split
from pegfan.metrics import METRICS, interval, score, suitable, unequal
from pegfan.recipe import Known, Recipe
from pegfan.running import Clock, Progress, Step, release_memory
from pegfan.splits import draw_folds, draw_splits, fit_split, with_validation

__all__ = ["Outcome", "Plan", "carry_out", "with_metric", "with_splits"]

SEARCH = 0.5
"""The part of the time that the search has where there are other splits, which have the rest."""
FLOOR = 10
"""The most epochs of a network on features alone, on a large graph whose search had no time for one."""
RESERVE = 0.1
"""The part of the budget that is kept for what follows the trainings: reasons, and the importance of columns."""
PER_NODE = 3e-5
"""Seconds per node that are kept for it, where that is more: predictions are written for every node."""
LONGEST = 2.0
"""How many times the budget a run may take by the clock where other processes take its cores."""
SPLITS = 5
"""How many splits the chosen recipes are trained on by default, if time allows."""
FEWEST = 3 * SPLITS
"""Labelled nodes from which on folds are dealt; fewer are drawn anew for every split."""
MARGIN = 0.85
"""The part of the time for other splits that is planned with: trainings there may take longer than on the first."""


@dataclass(frozen=True)
class Plan:
    """What a training run is asked to do.

    Attributes
    ----------
    budget
        Seconds in all.
    clock
        What they are seconds of: ``"wall"``, the clock on the wall; ``"work"``, what the machine's other processes take
        left out, up to twice as long by the clock; or ``"cpu"``, the time of cores alone, divided by the workers.
    seed
        Of splits that are drawn, weights and dropout.
    split
        The split whose model is kept.
    splits
        On how many splits the chosen recipes are trained for the spread; None for five, or fewer as time allows.
    workers
        Processes.
    pins, recipes, choose
        As in `AutoClassifier`.
    finalists
        What is trained on other splits, as places among `recipes`; None for the best of the search, see `finalists`.
    baselines
        How many of the first of `recipes` are what everybody would try: the model is never worse on validation.
    threshold, flag_share
        As in `pegfan.classifier.NodeClassifier.predict`; None for what is best on out-of-fold predictions.
    metric_reason
        Why the graph's metric is what it is.
    """

    budget: float = default.BUDGET
    seed: int = default.SEED
    split: int = 0
    splits: int | None = None
    workers: int = 1
    pins: Mapping[str, Any] = field(default_factory=dict)
    recipes: Sequence[Recipe] | None = None
    choose: Literal["auto", "mean", "best"] = "auto"
    finalists: Sequence[int] | None = None
    baselines: int = 0
    threshold: float | None = None
    flag_share: float | None = None
    metric_reason: str = ""
    clock: Literal["wall", "work", "cpu"] = "wall"


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished training run.

    Attributes
    ----------
    model
        The fitted classifier or regressor.
    probabilities, predicted
        Of every node and class; and the classes that are decided on, as numbers. Where numbers are predicted, both hold
        them, the first in one column.
    result
        The result, without what only the command line knows (title, source, command), and without importances and
        reasons: `pegfan.auto.reasons` adds them.
    graph
        The graph with the splits that were used.
    judged
        Its test nodes are those whose probabilities come from networks that did not learn from them.
    parts
        Of every node: the part of the split of the model (train, val, test or none); or, where a model was trained on
        several folds, the fold that it was held out from.
    finalists, baselines
        What was trained on other splits, None if there were none; and how many of the first recipes are baselines. As
        in `Plan`.
    """

    model: AutoModel
    probabilities: Any
    predicted: Any
    result: results.Result
    graph: Graph
    judged: Split
    parts: list[str]
    finalists: list[int] | None = None
    baselines: int = 0


def with_metric(graph: Graph, metric: str | None = None, positive: Any = None) -> tuple[Graph, str]:
    """The graph with the metric that is asked for or that suits its classes, and why that is the metric.

    Of two classes, the positive one becomes class 1 where the metric tells them apart or they are unequal.

    Parameters
    ----------
    graph
        With labels or targets.
    metric
        A name of `pegfan.metrics.METRICS`; None for the one that suits the sizes of the classes, and R² for numbers.
    positive
        The class to look for among two; None for the rarer one.

    Examples
    --------
    >>> rare = Graph.from_edges([[i, i + 1] for i in range(9)], labels=["bad"] + ["good"] * 9)
    >>> graph, why = with_metric(rare)
    >>> graph.metric, graph.classes.tolist(), why[:30]
    ('average_precision', ['good', 'bad'], '10.0% of the labelled nodes ar')
    """
    if graph.targets is not None:
        if positive is not None:
            raise ValueError(f"positive={shown(positive)} is for two classes, and numbers are predicted; leave it out")
        why = "numbers are predicted" if metric in (None, "r2") else "it was asked for"
        return graph.replace(metric=metric or "r2"), why
    labels = np.empty(0, np.int64) if graph.labels is None else graph.labels[graph.labels >= 0]
    counts, names = np.bincount(labels, minlength=graph.n_classes), list(map(str, graph.classes.tolist()))
    chosen, why = suitable(counts, names)
    if metric not in (None, chosen):
        chosen, why = str(metric), "it was asked for"
    known = graph.replace(metric=chosen)
    if positive is not None or (len(counts) == 2 and (METRICS[chosen].two_classes or unequal(counts))):
        known = known.with_positive(positive)
    return known, why


def with_splits(graph: Graph, plan: Plan) -> tuple[Graph, bool]:
    """The graph with splits: its own, or stratified folds that are dealt here; and whether they were.

    In a given split without validation nodes, a quarter of the training nodes become validation nodes.
    """
    if graph.truth is None or not graph.labelled.any():
        raise ValueError("no node has a label, so there is nothing to learn; name the column of classes with label=")
    if len(np.unique(graph.truth[graph.labelled])) < 2:
        count, only = int(graph.labelled.sum()), graph.truth[graph.labelled][0]
        same = f"of the class {str(graph.classes[only])!r}" if graph.targets is None else f"of the number {only:g}"
        raise ValueError(
            f"all {count:,} labelled nodes are {same}, so there is nothing to tell apart; label some others too, or "
            "name another column with label="
        )
    count = len(graph.splits) or max(plan.splits or SPLITS, plan.split + 1, 3)  # so many are drawn where there are none
    if not 0 <= plan.split < count:
        raise ValueError(f"there is no split {plan.split}: the graph has splits 0 to {count - 1}")
    if graph.splits:
        return graph.replace(splits=[with_validation(graph, part, plan.seed) for part in graph.splits]), False
    if graph.labelled.sum() < max(FEWEST, 3 * count):
        return graph.replace(splits=draw_splits(graph, k=count, seed=plan.seed)), True
    return graph.replace(splits=draw_folds(graph, k=max(count, SPLITS), seed=plan.seed)), True


def plan_words(graph: Graph, plan: Plan) -> str:
    """What a training run will do with its time, in a sentence.

    Examples
    --------
    >>> graph = Graph.from_edges([[i, i + 1] for i in range(40)], labels=[0, 1] * 20 + [0])
    >>> plan_words(graph, Plan(workers=2))
    'Budget 120 s on 2 cores: 54 s to find recipes on the first of 5 folds, 54 s to train the best ones on the others, \
12 s for reasons and the report'
    """
    known, drawn = with_splits(graph, plan)
    others = min(plan.splits or SPLITS, len(known.splits)) - 1
    after = min(reserve(known, plan.budget), 0.95 * plan.budget)
    whole = plan.budget - after
    part = "the first" if drawn else f"split {plan.split}"
    kind, count = "folds" if drawn else "splits", others + 1
    if plan.recipes is not None:
        given = f"{len(plan.recipes)} recipe{'s' if len(plan.recipes) > 1 else ''} on {part}"
        return f"{given} of {count} {kind}, then some of them on the others" if others else given
    words = f"Budget {plan.budget:g} s on {plan.workers} core{'s' if plan.workers > 1 else ''}"
    counted = {"wall": "", "work": f" (up to {LONGEST * plan.budget:g} s on a busy machine)", "cpu": " of CPU time"}
    words += f"{counted[plan.clock]}: "
    if is_large(len(known.splits[plan.split].train)):
        words += f"{whole:.0f} s to find recipes, and to train the best ones on other {kind} as time allows"
    elif not others:
        words += f"{whole:.0f} s to find recipes on {part}"
    else:
        words += f"{SEARCH * whole:.0f} s to find recipes on {part} of {count} {kind}, "
        words += f"{(1 - SEARCH) * whole:.0f} s to train the best ones on the others"
    return f"{words}, {after:.0f} s for reasons and the report"


def reserve(graph: Graph, budget: float) -> float:
    """Seconds that are kept for what follows the trainings: reasons, importances, tables and the report."""
    return max(RESERVE * budget, PER_NODE * graph.n)


def carry_out(graph: Graph, plan: Plan, progress: Progress | None = None, start: float | None = None) -> Outcome:
    """Search on one split, keep the model, and train what was chosen on further splits for the spread.

    Parameters
    ----------
    graph
        With labels or targets.
    plan
        What to do.
    progress
        Called with the steps of the search, and then, with a text, of what follows it.
    start
        What ``time.perf_counter()`` was when the time of the budget began to run; by default now. Reading counts.
    """
    entered = time.perf_counter()
    start = entered if start is None else start
    tell = progress or (lambda _: None)
    numeric = graph.targets is not None
    if numeric and (plan.threshold is not None or plan.flag_share is not None):
        raise ValueError("a threshold or a share to flag is for two classes, and numbers are predicted; leave it out")
    known, drawn = with_splits(graph, plan)
    kind = AutoRegressor if numeric else AutoClassifier
    large = is_large(len(known.splits[plan.split].train))
    after = reserve(known, plan.budget)
    others = min(plan.splits or SPLITS, len(known.splits)) - 1
    whole = max(plan.budget - after, 0.05 * plan.budget)
    model = kind(
        budget=whole if large or not others else SEARCH * whole,
        random_state=plan.seed,
        recipes=plan.recipes,
        pins=plan.pins,
        choose=plan.choose,
        workers=plan.workers,
    )
    afford = None
    if others and not large:
        afford = (1 - SEARCH) * whole * plan.workers / others
    # Reading a small graph takes a second or so, whatever the budget is.
    clock = Clock(
        plan.budget,
        {"wall": plan.budget, "work": LONGEST * plan.budget, "cpu": math.inf}[plan.clock],
        lanes=plan.workers,
        only_cpu=plan.clock == "cpu",
        start=start if large else entered,
    )
    pool = fit_model(model, known, plan.split, progress, None, afford, others * drawn, clock, plan.baselines)
    if plan.recipes is not None and plan.finalists is not None and len(model.ran_) < len(plan.recipes):
        raise MemoryError(f"of {len(plan.recipes)} recipes of the plan, {len(model.ran_)} came to their end")
    searched = time.perf_counter() - start
    if pool.until is not None:
        pool.until.upto = math.inf
    pool.longest = math.inf
    tell(Step(0, 0, "floors and further splits"))
    spread = _FurtherSplits(model, plan, clock, tell, after, others)
    spread.run(pool)
    own = spread.chosen[0].output
    part, parts = known.splits[plan.split], results.parts(known, known.splits[plan.split])
    kept, bagged = model.members_, drawn and len(spread.used) > 1
    names = [_name(trial, plan.seed) for trial in spread.chosen[0].members]
    if bagged:
        model.fitted_ = spread.bag(model.fitted_, pool)
        model.how_ += f", over {len(spread.used)} folds"
        if len(spread.finalists) > 1:
            model.reason_ += (
                f"; every other fold chooses in the same way, by its own validation nodes, among the "
                f"{len(spread.finalists)} recipes that are trained on it"
            )
        own, part, parts = spread.held_out()
    found = _numbers(spread, known, part, own) if numeric else _classes(spread, model, known, part, own, drawn)
    del pool  # with the hops of all nodes
    gc.collect()
    release_memory()
    trees = [results.tree(member.tree, member.recipe.name) for member in kept if member.tree is not None]
    result = results.Result(
        **results.stamp(),
        seed=plan.seed,
        budget=plan.budget,
        data=results.data(graph),
        splits=results.Splits.of(known.splits, spread.used, drawn),
        candidates=_candidates(model, spread.chosen if bagged else spread.chosen[:1]),
        chosen=results.Chosen(model.how_, model.reason_, *model.validation_),
        test=results.Spread.of(spread.values["test"], interval=spread.intervals["test"]),
        validation=results.Spread.of(spread.values["validation"]),
        majority=results.Spread.of(spread.values["majority"]),
        features_only=results.Spread.of(
            spread.values["features_only"], spread.floor.name, spread.intervals["features_only"]
        ),
        curves=tuple(results.curve(name, member.run) for name, member in zip(names, kept, strict=True)),
        attention=tuple(
            results.attention(name, member.channels, member.run.attention)
            for name, member in zip(names, kept, strict=True)
        ),
        tree=next(iter(trees), None),
        metric_reason=plan.metric_reason,
        **found.parts,
    )
    total = time.perf_counter() - start
    warnings = results.cautions(result, known)
    if not is_explained(known):
        text = "The graph is large, so no reasons were worked out; `pegfan explain` gives those of single nodes."
        warnings += (results.Note("reasons", text),)
    result = replace(result, warnings=warnings, seconds=results.Seconds(total, searched, total - searched))
    again = spread.finalists if len(spread.used) > 1 else None
    baselines = sum(trial.baseline for trial in model.trials_)
    return Outcome(model, found.probabilities, found.predicted, result, known, part, parts.tolist(), again, baselines)


def finalists(trials: Sequence[Trial], seconds: float) -> list[Trial]:
    """What is trained on another split: the best baseline, the members of the model, and what has the lowest loss.

    The first in any case, or the cheapest of the model; the others as time allows.

    Parameters
    ----------
    trials
        Of the search, with their weights.
    seconds
        Of a core, for all of them.
    """
    sound = [trial for trial in trials if trial.trained is not None and np.isfinite(trial.val_loss)]
    members = sorted((t for t in sound if t.weight), key=lambda t: (-t.weight, t.val_loss, t.recipe.key, t.seed))
    baseline = min((t for t in sound if t.baseline), key=metric_first, default=None)
    found: list[Trial] = []
    ordered = [*([] if baseline is None else [baseline]), *members, *(t for t in by_loss(sound) if not t.weight)]
    for trial in dict.fromkeys(ordered):
        if trial.cpu <= seconds or trial is baseline:
            found.append(trial)
            seconds -= trial.cpu
    return found or [min(members, key=lambda t: t.cpu)]


class _Found(NamedTuple):
    """What is predicted, and what the result says of it."""

    probabilities: Any
    predicted: Any
    parts: dict[str, Any]


def _classes(spread: _FurtherSplits, model: AutoModel, graph: Graph, part: Split, output: Any, bagged: bool) -> _Found:
    """Classes and their probabilities, and how they are decided on."""
    decision, tests = spread.decide(bagged)
    output = decision.calibrated(output)
    decision = decision.asked(output[graph.subjects], spread.plan.threshold, spread.plan.flag_share)
    model.fitted_ = replace(model.fitted_, decision=decision)
    probabilities, predicted = np.exp(output), decision.classes(output)
    confusion, per_class = results.judged(graph, part, predicted)
    parts = {
        "confusion": confusion,
        "per_class": per_class,
        "unsure": results.unsure(graph, part, probabilities, decision.offsets),
        "ranking": results.ranking(graph, part, probabilities),
        "precision_recall": results.precision_recall(graph, part, probabilities),
        "calibrated": results.calibrated(decision, tests),
        "decided": results.decided(decision, graph, part, predicted),
    }
    return _Found(probabilities, predicted, parts)


def _numbers(spread: _FurtherSplits, graph: Graph, part: Split, output: Any) -> _Found:
    """Numbers, and how far they are off."""
    judged = spread.compare_numbers()
    found = results.regression(graph, part, output[:, 0], judged, spread.plan.seed)
    return _Found(output, output[:, 0], {"regression": found})


def _candidates(model: AutoModel, chosen: Sequence[Choice]) -> tuple[results.Candidate, ...]:
    """What was tried: the members of the model first, by their weights, which are the means over its folds."""
    weights: defaultdict[int, float] = defaultdict(float)
    for choice in chosen:
        for trial, weight in zip(choice.members, choice.weights, strict=True):
            weights[trial.place[1] if isinstance(trial.place, tuple) else trial.place] += weight / len(chosen)
    best = model.trials_[0]
    return tuple(
        results.Candidate(
            _name(c, model.random_state),
            c.recipe,
            c.val_metric,
            c.val_loss,
            c.seconds,
            c.epochs,
            chosen=weights[c.place] > 0,
            why="best on validation" if c is best else "",
            weight=weights[c.place],
        )
        for c in sorted(model.trials_, key=lambda c: (-weights[c.place], c.rank))
    )


def _name(trial: Trial, seed: int) -> str:
    """A short line that tells trials apart: that of the recipe, and the seed where it is another."""
    return trial.recipe.name + (f" (seed {trial.seed})" if trial.seed != seed else "")


class _FurtherSplits:
    """The test metric on several splits, beside what the majority and the features give.

    The best recipes of the search are trained on every other split, and chosen among by its own validation nodes.
    """

    def __init__(self, model: AutoModel, plan: Plan, clock: Clock, tell: Progress, after: float, others: int) -> None:
        self.model, self.plan, self.clock, self.tell, self.after, self.others = model, plan, clock, tell, after, others
        assert model.fitted_.graph is not None
        self.graph = model.fitted_.graph
        # In the order of the search, which repeats it.
        self.trials = sorted(model.trials_, key=lambda trial: trial.place)
        self.finalists: list[int] = []
        first = min(model.members_, key=lambda m: m.run.val_loss).recipe
        same = Recipe(method="none", hops=0, scaling=first.scaling, settings=first.settings)
        self.tried = {
            trial.recipe: trial
            for trial in model.trials_
            if _features_alone(trial.recipe) and trial.log_probabilities is not None
        }
        self.choices = list(dict.fromkeys([same, *self.tried]))
        if is_large(len(self.graph.splits[plan.split].train)):
            short = same.changed(epochs=min(same.settings.epochs, FLOOR), patience=min(same.settings.patience, FLOOR))
            self.choices = list(self.tried) or [short]
        self.floor = same
        self.values: dict[str, list[float]] = {"test": [], "validation": [], "majority": [], "features_only": []}
        self.used: list[int] = []
        self.chosen: list[Choice] = []
        self.kept: list[tuple[Split, Float32Array, Float32Array]] = []
        self.sum: Any = None
        self.floors: list[tuple[Any, Any]] = []
        self.intervals: dict[str, tuple[float, float] | None] = {}

    def run(self, pool: Pool) -> None:
        splits = self.graph.splits
        order = [i for i in range(len(splits)) if i != self.plan.split][: self.others]
        floor = self._first(pool)
        members = sorted((trial for trial in by_loss(self.trials) if trial.weight), key=lambda trial: -trial.weight)
        own = Choice(members, [trial.weight for trial in members], self.model.how_, self.model.reason_)
        self._add(self.plan.split, fit_split(self.graph, self.plan.split, self.plan.seed), own, floor)
        if not order:
            return
        if self.plan.finalists is not None:
            again = [self.trials[place] for place in self.plan.finalists]
        else:
            again = finalists(self.trials, MARGIN * max(self.left, 0.0) * self.plan.workers / len(order))
        self.finalists = [trial.place for trial in again]
        done = dict(self._train(again, order, pool))
        for i in filter(done.get, order):  # in their order, whichever was ready first
            part, found, floor = done[i]
            self._add(i, part, choose(found, self.graph, part, self.model.members, self.plan.choose), floor)

    def _train(
        self, wanted: Sequence[Trial], order: Sequence[int], pool: Pool
    ) -> Iterator[tuple[int, tuple[Split, list[Trial], Trial]]]:
        """Train recipes and the floor on further splits, as many as time allows; split by split."""
        whole = len(order) + 1
        each = max(sum(trial.cpu for trial in wanted) / self.plan.workers, *(trial.cpu for trial in wanted))
        baselines = {trial.place for trial in wanted if trial.baseline}
        parts: dict[int, Split] = {}
        waiting: dict[int, dict[Any, Trial]] = {}
        tasks_of = {trial.place: (trial.recipe, trial.seed) for trial in wanted}
        same = next((trial.place for trial in wanted if trial.recipe == self.floor), None)

        def tasks() -> Iterator[Task]:
            for i in order:
                if pool.interrupted or (self.plan.splits is None and each > self.left):
                    return
                parts[i] = fit_split(self.graph, i, self.plan.seed)
                self.tell(self._step(f"split {i}, {len(parts) + 1} of at most {whole}"))
                for place, (recipe, seed) in tasks_of.items():
                    yield Task(recipe, parts[i], seed + i, place=(i, place))
                if same is None:
                    yield Task(self.floor, parts[i], self.plan.seed + i, place=(i, None))

        for trial in pool.run(tasks()):
            i, place = trial.place
            trial.baseline = place in baselines
            found = waiting.setdefault(i, {})
            found[place] = trial
            self.tell(self._step(f"split {i}, {len(parts) + 1} of at most {whole}"))
            if len(found) == len(tasks_of) + (same is None):
                del waiting[i]
                if any(one.out_of_memory for one in found.values()):
                    continue  # as a split that there is no time for
                yield i, (parts[i], [found[place] for place in tasks_of], found[same])

    def _step(self, text: str) -> Step:
        return Step(0, 0, text, elapsed=self.clock.spent, budget=self.plan.budget - self.after)

    @property
    def left(self) -> float:
        """Seconds of the budget that are left for trainings."""
        return self.clock.left(self.plan.budget - self.after)

    def _first(self, pool: Pool) -> Trial:
        """The floor on the split of the search, where all else was trained."""
        part = fit_split(self.graph, self.plan.split, self.plan.seed)
        for recipe in self.choices:
            if recipe not in self.tried and not pool.interrupted:
                for trial in pool.run(iter([Task(recipe, part, self.plan.seed)])):
                    if not trial.out_of_memory:
                        self.tried[recipe] = trial
        if not self.tried:
            constant = Recipe(method="none", hops=0, head="constant")
            self.tried[constant] = run_task(pool.shared, Task(constant, part, self.plan.seed))
        best = min(self.tried.values(), key=lambda c: c.rank)
        self.floor = best.recipe
        return best

    def _add(self, i: int, part: Split, choice: Choice, floor: Trial) -> None:
        output = choice.output
        join = np.add if self.graph.targets is not None else np.logaddexp
        self.sum = output if self.sum is None else join(self.sum, output)
        self.chosen.append(choice)
        self.used.append(i)
        self.kept.append((part, output[part.val], output[part.test]))
        self.values["validation"].append(validate(output, self.graph, part)[0])
        self.floors.append(self._floor(part, floor.log_probabilities))
        self.values["features_only"].append(score(*self.floors[-1], self.graph.metric))
        self.values["majority"].append(results.majority(self.graph, part))

    def _floor(self, part: Split, output: Float32Array) -> tuple[Any, Any]:
        """What a network on features alone decides about test nodes, by its own validation nodes; and their labels."""
        assert self.graph.truth is not None
        own = decision_of(output, self.graph, part)
        return own.judged(output[part.test], self.graph.metric), self.graph.truth[part.test]

    def bag(self, fitted: Fitted, pool: Pool) -> Fitted:
        """What the fitted model becomes: the members of all folds, and what each knows of training nodes."""
        members = [replace(member, fold=k) for k, choice in enumerate(self.chosen) for member in weighted(choice)]
        scaled = any(member.recipe.scaling == "columns" for member in members)
        about: dict[str, Any] = {"stood_in": fitted.stood_in, "decision": fitted.decision}
        about |= {"scale": pool.shared.scale if scaled else None}
        known = None if fitted.known is None else Known.of_folds(self.graph, [part for part, _, _ in self.kept])
        assert fitted.split is not None
        return Fitted.of(members, self.graph, fitted.split, fitted.seed, known=known, **about)

    def held_out(self) -> tuple[Float32Array, Split, NDArray[np.str_]]:
        """Outputs, as a split the nodes that they are tested on, and parts in words.

        The output of a test node of a fold is that of the members that did not learn from it; others have the mean.
        """
        count, numeric = len(self.used), self.graph.targets is not None
        output = self.sum / count if numeric else self.sum - np.float32(np.log(count))
        parts = np.where(self.graph.labelled, "train", "none").astype("<U8")
        for k, (part, _, tested) in enumerate(self.kept, start=1):
            output[part.test] = tested
            parts[part.test] = f"fold {k}"
        test = np.sort(np.concatenate([part.test for part, _, _ in self.kept]))
        return output, Split(np.flatnonzero(parts == "train"), np.empty(0, np.int64), test), parts

    def decide(self, bagged: bool) -> tuple[Decision, list[tuple[Float32Array, Float32Array, IntArray]]]:
        """The decision of the model; and per split, of its test nodes, outputs as they are, calibrated, and labels.

        What is decided about the test nodes of a split is learned from the predictions for validation nodes of all
        splits, except where these nodes are test nodes of that split.
        """
        assert self.graph.labels is not None
        labels, metric = self.graph.labels, self.graph.metric
        every = Predictions.joined([Predictions(val, labels[part.val], part.val) for part, val, _ in self.kept])
        decisions, tests, judged = [], [], []
        for part, _, output in self.kept:
            decision, truth = Decision.of(every.without(part.test), metric), labels[part.test]
            decisions.append(decision)
            tests.append((output, decision.calibrated(output), truth))
            judged.append((decision.judged(output, metric), truth))
            self.values["test"].append(score(*judged[-1], metric))
        parts = {"test": judged, "features_only": self.floors}
        self.intervals = {name: interval(part, metric, seed=self.plan.seed) for name, part in parts.items()}
        return Decision.of(every, metric) if bagged and len(self.kept) > 1 else decisions[0], tests

    def compare_numbers(self) -> dict[str, list[tuple[Any, Any]]]:
        """Numbers that are predicted for test nodes and the true ones, split by split: of the model and its floors."""
        assert self.graph.targets is not None
        metric, judged = self.graph.metric, [(output, self.graph.targets[part.test]) for part, _, output in self.kept]
        self.values["test"] = [score(*pair, metric) for pair in judged]
        both: dict[str, Any] = {"test": judged, "features_only": self.floors}
        self.intervals = {name: interval(pairs, metric, seed=self.plan.seed) for name, pairs in both.items()}
        means = [results.mean_prediction(self.graph, part) for part, _, _ in self.kept]
        return {"model": judged, "features": self.floors, "mean": means}


def _features_alone(recipe: Recipe) -> bool:
    more = recipe.adjacency or recipe.labels or recipe.structure or recipe.spectrum or recipe.kinds
    return not recipe.has_tree and recipe.hops == 0 and not more
