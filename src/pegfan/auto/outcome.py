"""A whole training run: search, the model that is kept, further splits for the spread, and the result of it all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pegfan import _defaults as default
from pegfan import results
from pegfan._arrays import Float32Array
from pegfan.auto.classifier import AutoClassifier, fitting
from pegfan.auto.reasons import importances, reasons
from pegfan.auto.search import Pool, Task, Trial, validate
from pegfan.explain import Explainer
from pegfan.fitted import draw_splits, fit_split, mean_of, with_validation
from pegfan.graph import Graph, Split
from pegfan.recipe import Recipe
from pegfan.running import Progress, Step
from pegfan.training import score

__all__ = ["Outcome", "Plan", "carry_out", "with_splits"]

SEARCH = 0.6
"""The part of the budget that the search has; the rest is for the other splits."""
IMPORTANCE = 0.05
"""The part of the budget that the importance of columns may take at most."""
SPLITS = 5
"""How many splits the chosen recipes are trained on by default, if time allows."""


@dataclass(frozen=True)
class Plan:
    """What a training run is asked to do.

    Attributes
    ----------
    budget
        Seconds in all.
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
    """

    budget: float = default.BUDGET
    seed: int = default.SEED
    split: int = 0
    splits: int | None = None
    workers: int = 1
    pins: Mapping[str, Any] = field(default_factory=dict)
    recipes: Sequence[Recipe] | None = None
    choose: Literal["auto", "mean", "best"] = "auto"


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished training run.

    Attributes
    ----------
    model
        The fitted classifier.
    probabilities
        Of every node and class.
    result
        The result, without what only the command line knows (title, source, command).
    graph
        The graph with the splits that were used.
    parts
        Of every node in the split of the model: train, val, test or none.
    """

    model: AutoClassifier
    probabilities: Float32Array
    result: results.Result
    graph: Graph
    parts: list[str]


def with_splits(graph: Graph, plan: Plan) -> tuple[Graph, bool]:
    """The graph with splits: its own, or stratified ones drawn here; and whether they were drawn.

    In a given split without validation nodes, a quarter of the training nodes become validation nodes.
    """
    if graph.labels is None or not (graph.labels >= 0).any():
        raise ValueError("no node has a label, so there is nothing to learn; name the column of classes with label=")
    if len(np.unique(graph.labels[graph.labels >= 0])) < 2:
        raise ValueError("all labelled nodes are of one class, so there is nothing to tell apart")
    if graph.splits:
        return graph.replace(splits=[with_validation(graph, part, plan.seed) for part in graph.splits]), False
    wanted = max(plan.splits or SPLITS, plan.split + 1)
    return graph.replace(splits=draw_splits(graph, k=wanted, seed=plan.seed)), True


def carry_out(graph: Graph, plan: Plan, progress: Progress | None = None) -> Outcome:
    """Search on one split, keep the model, and train what was chosen on further splits for the spread.

    Parameters
    ----------
    graph
        With labels.
    plan
        What to do.
    progress
        Called with the steps of the search, and then, with a text, of what follows it.
    """
    start = time.perf_counter()
    tell = progress or (lambda _: None)
    known, drawn = with_splits(graph, plan)
    if not 0 <= plan.split < len(known.splits):
        raise ValueError(f"there is no split {plan.split}: the graph has splits 0 to {len(known.splits) - 1}")
    model = AutoClassifier(
        budget=SEARCH * plan.budget,
        random_state=plan.seed,
        recipes=plan.recipes,
        pins=plan.pins,
        choose=plan.choose,
        workers=plan.workers,
    )
    with fitting(model, known, plan.split, progress) as pool:
        searched = time.perf_counter() - start
        tell(Step(0, 0, "floors and further splits"))
        spread = _FurtherSplits(model, plan, start, tell)
        spread.run(pool)
    probabilities = np.exp(mean_of([spread.trials[recipe].log_probabilities for recipe in spread.members]))
    part = known.splits[plan.split]
    confusion, per_class = results.judged(known, part, probabilities)
    kept = model.members_
    ranking, unsure = results.ranking(known, part, probabilities), results.unsure(known, part, probabilities)
    tell(Step(0, 0, "reasons"))
    shown = list(dict.fromkeys([row.id for row in ranking.rows] + [row.id for row in unsure]))
    explainer = Explainer(model.fitted_)
    trees = [results.tree(member.tree, member.recipe.name) for member in kept if member.tree is not None]
    result = results.Result(
        **results.stamp(),
        seed=plan.seed,
        budget=plan.budget,
        data=results.data(graph),
        splits=results.Splits.of(known.splits, spread.used, drawn),
        candidates=_candidates(model),
        chosen=results.Chosen(model.how_, model.reason_, *model.validation_),
        test=results.Spread.of(spread.values["test"]),
        validation=results.Spread.of(spread.values["validation"]),
        majority=results.Spread.of(spread.values["majority"]),
        features_only=results.Spread.of(spread.values["features_only"], spread.floor.name),
        confusion=confusion,
        per_class=per_class,
        curves=tuple(results.curve(member.recipe.name, member.run) for member in kept),
        attention=tuple(results.attention(m.recipe.name, m.channels, m.run.attention) for m in kept),
        unsure=unsure,
        ranking=ranking,
        precision_recall=results.precision_recall(known, part, probabilities),
        importances=importances(explainer, known, part, IMPORTANCE * plan.budget, plan.seed),
        reasons=reasons(explainer, shown, ranking.by),
        tree=next(iter(trees), None),
    )
    total = time.perf_counter() - start
    result = replace(
        result, warnings=results.cautions(result, known), seconds=results.Seconds(total, searched, total - searched)
    )
    return Outcome(model, probabilities, result, known, results.parts(known, part).tolist())


def _candidates(model: AutoClassifier) -> tuple[results.Candidate, ...]:
    chosen = {member.recipe for member in model.members_}
    best = model.trials_[0].recipe
    return tuple(
        results.Candidate(
            c.recipe.name,
            c.recipe,
            c.val_metric,
            c.val_loss,
            c.seconds,
            c.epochs,
            chosen=c.recipe in chosen,
            why="best on validation" if c.recipe == best else "one of the chosen" if c.recipe in chosen else "",
        )
        for c in model.trials_
    )


class _FurtherSplits:
    """The test metric of the chosen recipes on several splits, beside what the majority and the features give."""

    def __init__(self, model: AutoClassifier, plan: Plan, start: float, tell: Progress) -> None:
        self.plan, self.start, self.tell = plan, start, tell
        assert model.fitted_.graph is not None
        self.graph = model.fitted_.graph
        self.trials = {trial.recipe: trial for trial in model.trials_}
        self.members = [member.recipe for member in model.members_]
        first = min(model.members_, key=lambda m: m.run.val_loss).recipe
        same = Recipe(method="none", hops=0, scaling=first.scaling, settings=first.settings)
        self.tried = {trial.recipe: trial for trial in model.trials_ if _features_alone(trial.recipe)}
        self.choices = list(dict.fromkeys([same, *self.tried]))
        self.floor = same
        self.values: dict[str, list[float]] = {"test": [], "validation": [], "majority": [], "features_only": []}
        self.used: list[int] = []

    def run(self, pool: Pool) -> None:
        splits = self.graph.splits
        wanted = min(self.plan.splits or SPLITS, len(splits))
        order = [self.plan.split, *(i for i in range(len(splits)) if i != self.plan.split)][:wanted]
        cost = sum(self.trials[recipe].seconds for recipe in self.members)
        slow = cost / len(self.members) > 2.0
        self._first(pool)
        for place, i in enumerate(order[1:], start=1):
            left = self.plan.budget - (time.perf_counter() - self.start)
            if self.plan.splits is None and cost / (self.plan.workers if slow else 1) > left:
                break
            self.tell(Step(place, len(order), f"split {i}, {place + 1} of at most {len(order)}"))
            part = fit_split(self.graph, i, self.plan.seed)
            recipes = [*self.members, self.floor]
            tasks = [Task(recipe, part, self.plan.seed + i) for recipe in dict.fromkeys(recipes)]
            done = {trial.recipe: trial for trial in pool.run(iter(tasks), parallel=slow)}
            self._add(i, part, [done[r] for r in self.members], done[self.floor])

    def _first(self, pool: Pool) -> None:
        """The split of the search: the members are trained, only the floor may be missing."""
        part = fit_split(self.graph, self.plan.split, self.plan.seed)
        for recipe in self.choices:
            if recipe not in self.tried:
                self.tried[recipe] = next(pool.run(iter([Task(recipe, part, self.plan.seed)]), parallel=False))
        best = min(self.tried.values(), key=lambda c: c.rank)
        self.floor = best.recipe
        self._add(self.plan.split, part, [self.trials[recipe] for recipe in self.members], best)

    def _add(self, i: int, part: Split, members: Sequence[Trial], floor: Trial) -> None:
        assert self.graph.labels is not None
        labels = self.graph.labels[part.test]
        output = mean_of([member.log_probabilities for member in members])
        self.used.append(i)
        self.values["test"].append(score(output[part.test], labels, self.graph.metric))
        self.values["validation"].append(validate(output, self.graph, part)[0])
        self.values["features_only"].append(score(floor.log_probabilities[part.test], labels, self.graph.metric))
        self.values["majority"].append(results.majority(self.graph, part))


def _features_alone(recipe: Recipe) -> bool:
    return not recipe.has_tree and recipe.hops == 0 and not (recipe.adjacency or recipe.labels or recipe.structure)
