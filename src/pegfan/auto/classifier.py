"""A classifier and a regressor that find their own tree, channels and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

from pegfan import _defaults as default
from pegfan import _saved
from pegfan._checks import check_integer, check_path, check_seed, kind_of, shown
from pegfan._limits import UNKNOWN_MEMORY, free_memory, is_large, read_bytes
from pegfan._plain import plain
from pegfan.auto.search import MEMORY, Choice, Pool, Search, Trial, choose, validate
from pegfan.channels import FeatureScale
from pegfan.classifier import (
    FSGNNClassifier,
    NetworkClassifier,
    NodeClassifier,
    NodeModel,
    NodeRegressor,
    PEGFANClassifier,
    PEGFANRegressor,
    RecipeClassifier,
    kept_split,
    own_tree,
)
from pegfan.decisions import Decision, Predictions
from pegfan.fitted import Fitted, Trained
from pegfan.graph import Graph, Split
from pegfan.recipe import Known, Recipe
from pegfan.running import Clock, Deadline, Progress
from pegfan.splits import settle_data

__all__ = ["AutoClassifier", "AutoModel", "AutoRegressor", "fit_model", "load_classifier", "load_model"]


LEAST = 4e8
"""Bytes without which a search does not begin: OpenBLAS, whose buffers come late, would end the process or hang."""
GRACE = 5.0
"""Seconds that every training on a small graph has in any case."""


class AutoModel(NodeModel):
    """What `AutoClassifier` and `AutoRegressor` share: recipes are tried within a budget, and the best ones kept."""

    trials_: list[Trial]
    how_: str
    reason_: str
    validation_: tuple[float, float]

    def __init__(
        self,
        budget: float = default.BUDGET,
        random_state: int = default.SEED,
        recipes: Sequence[Recipe | Mapping[str, Any]] | None = None,
        pins: Mapping[str, Any] | None = None,
        members: int = default.MEMBERS,
        choose: Literal["auto", "mean", "best"] = "auto",
        stand_in: Literal["degree"] | None = default.STAND_IN,
        workers: int = 1,
        max_memory: str | float | None = None,
    ) -> None:
        self.budget, self.random_state, self.recipes, self.pins = budget, random_state, recipes, pins
        self.members, self.choose, self.stand_in, self.workers = members, choose, stand_in, workers
        self.max_memory = max_memory

    def fit(
        self,
        graph: Any,
        split: Any = default.SPLIT,
        progress: Progress | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Try recipes on a split, choose on its validation nodes, and keep what was chosen.

        Parameters
        ----------
        graph
            As in `PEGFANClassifier.fit`.
        split
            As there.
        progress
            Called with a `pegfan.running.Step` whenever something happened; its result is a `Trial`.
        sample_weight
            As there.
        """
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be a function, got {kind_of(progress)}")
        fit_model(self, graph, split, progress, sample_weight)
        return self

    @property
    def members_(self) -> tuple[Trained, ...]:
        """The networks whose probabilities, or numbers, are averaged."""
        members: Any = self._check_fitted().members  # only recipes with channels are tried
        return tuple(members)

    def _check_parameters(self) -> int:
        if self.choose not in ("auto", "mean", "best"):
            raise ValueError(f"choose must be 'auto', 'mean' or 'best', got {shown(self.choose)}")
        for name in ("members", "workers"):
            check_integer(getattr(self, name), name, 1)
        if isinstance(self.budget, bool) or not isinstance(self.budget, Real) or not self.budget > 0:
            raise ValueError(f"budget must be a positive number of seconds, got {shown(self.budget)}")
        if self.recipes is not None and not len(self.recipes):
            raise ValueError("recipes must hold at least one recipe; leave it out to have them found")
        Recipe.of(self.pins or {})  # fails if a pin is wrong
        search_memory(self.max_memory)
        return check_seed(self.random_state, "random_state")

    # ----------------------------------------------------------------------- files

    def _kept(self) -> dict[str, Any]:
        return self.get_params() | {"recipes": [recipe.to_dict() for recipe in self.ran_]}

    def _more(self) -> dict[str, Any]:
        return {"how": self.how_, "reason": self.reason_, "validation": plain(self.validation_)}

    def _take(self, about: Mapping[str, Any]) -> None:
        self._check_parameters()
        metric, loss = (float("nan") if value is None else value for value in about["validation"])
        self.validation_, self.trials_ = (metric, loss), []
        self.ran_ = [Recipe.of(recipe) for recipe in self.recipes or ()]
        self.how_, self.reason_ = about["how"], about["reason"]


class AutoClassifier(AutoModel, NodeClassifier):
    """Try recipes within a time budget, and keep what does best on validation.

    A recipe is a tree (or none), a set of channels and a few settings. The most useful ones come first; then the best
    ones are varied, and trained with other seeds, until the time is over or nothing gets better any more. The final
    model is an ensemble: the weighted mean of the probabilities of a few recipes, selected greedily by the validation
    loss, unless the best single recipe does better on validation nodes that were left out of the selection. The labels
    of test nodes are never looked at.

    Parameters
    ----------
    budget
        Seconds for the search, by the clock. The smallest graphs end earlier; what everybody would try is always
        trained: the shares of the classes, a linear model, boosting with and without a hop, and the paper's network.
    random_state
        Of weights, dropout and ``split="random"``.
    recipes
        Exactly these recipes (`pegfan.Recipe`, or mappings of its fields and settings), whatever the budget; the
        result then does not depend on the clock. One that is listed again is trained with another seed.
    pins
        Fields of `pegfan.Recipe` and settings (`pegfan.Settings`) that all recipes must have, such as
        ``{"h": 4, "epochs": 200}``.
    members
        The most recipes in the final model.
    choose
        ``"auto"``, or ``"mean"`` (of those of lowest loss, with equal weights) or ``"best"`` to force one of them.
    stand_in
        What a graph without features gets: ``"degree"`` (`pegfan.datasets.stand_in_features`), or None for an error.
    workers
        Threads that share the recipes. What a recipe gives does not depend on their number, but how many fit into the
        budget does.
    max_memory
        The memory that the search may take beside the graph, in bytes or as ``"2GB"``; by default half of what is free,
        at most 4 GB. Recipes whose channels do not fit are left out.

    Attributes
    ----------
    classes_ : array
        Names of the classes, or their numbers.
    trials_ : list of pegfan.auto.search.Trial
        All recipes that were trained, the best on validation first, with their weights in the model; not saved.
    members_ : tuple of pegfan.fitted.Trained
        The networks whose probabilities are averaged, each with its weight.
    how_, reason_ : str
        How the members were chosen, and why.
    validation_ : tuple of float
        Metric and loss of the final model on the validation nodes, before calibration.
    fitted_ : pegfan.fitted.Fitted
        Among others its ``decision`` (`pegfan.decisions.Decision`), learned from the validation nodes: how
        probabilities are calibrated, and from which one on a rare class is decided on.

    Notes
    -----
    Channels about particular nodes (rows of the adjacency, training labels of neighbours) match the nodes of another
    graph by name if both graphs have names, and by position otherwise; nodes that were not there in training have no
    label and no column.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> recipes = [{"method": "ward", "kind": "b", "epochs": 40}, {"method": "none", "epochs": 40}]
    >>> model = pf.AutoClassifier(recipes=recipes).fit(graph)
    >>> model.score(graph, split=0) > 0.5
    True
    >>> sorted(trial.recipe.method for trial in model.trials_), model.predict_proba().shape
    (['none', 'ward'], (300, 4))
    """


class AutoRegressor(AutoModel, NodeRegressor):
    """Try recipes for numeric targets within a time budget, and keep what does best on validation.

    The search is that of `AutoClassifier`; networks have one output and are trained by the squared error of targets
    that are brought to mean 0 and variance 1. The final model is an ensemble of recipes, or the best single one.

    Parameters
    ----------
    budget, random_state, recipes, pins, members, choose, stand_in, workers, max_memory
        As in `AutoClassifier`.

    Attributes
    ----------
    trials_, members_, how_, reason_, validation_, fitted_
        As there.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> graph = graph.replace(targets=graph.features @ np.arange(20))
    >>> recipes = [{"method": "none", "hops": h, "regime": "all", "scaling": "columns", "epochs": 40} for h in (0, 2)]
    >>> model = pf.AutoRegressor(recipes=recipes).fit(graph)
    >>> model.score() > 0.5, model.predict().shape
    (True, (300,))
    """


def load_model(folder: str | os.PathLike[str], max_bytes: str | float | None = None) -> NodeModel:
    """Read a saved classifier or regressor of any class.

    Parameters
    ----------
    folder
        What `save` wrote.
    max_bytes
        The memory that the arrays of a file may take, in bytes or as ``"8GB"``; by default 50 times the size of the
        file, and 16 MB in any case.

    Examples
    --------
    >>> import tempfile
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = pf.FSGNNClassifier(epochs=5).fit(graph).save(f"{place}/model")
    ...     pf.load_model(folder)
    FSGNNClassifier(epochs=5)
    """
    every: list[type[NodeModel]] = [PEGFANClassifier, FSGNNClassifier, RecipeClassifier, NetworkClassifier]
    every += [AutoClassifier, PEGFANRegressor, AutoRegressor]
    kinds = {kind.__name__: kind for kind in every}
    name = _saved.read_description(check_path(folder, "folder"))["class"]
    if name not in kinds:
        raise ValueError(f"{folder} holds a {shown(name)}; this version knows {', '.join(kinds)}")
    return kinds[name].load(folder, max_bytes)


def load_classifier(folder: str | os.PathLike[str]) -> NodeClassifier:
    """Read a saved classifier of any class.

    Examples
    --------
    >>> import tempfile
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = pf.FSGNNClassifier(epochs=5).fit(graph).save(f"{place}/model")
    ...     pf.load_classifier(folder)
    FSGNNClassifier(epochs=5)
    """
    found = load_model(folder)
    if not isinstance(found, NodeClassifier):
        raise ValueError(f"what {folder} holds is an {type(found).__name__}, not a classifier; use pegfan.load_model")
    return found


def predictions_of(output: Any, graph: Graph, part: Split) -> Predictions:
    """The predictions for the validation nodes of a split."""
    assert graph.labels is not None
    return Predictions(output[part.val], graph.labels[part.val], part.val)


def decision_of(output: Any, graph: Graph, part: Split) -> Decision:
    """What is decided by the predictions for validation nodes; about numbers there is nothing to decide."""
    if graph.targets is not None:
        return Decision()
    return Decision.of(predictions_of(output, graph, part), graph.metric)


def weighted(choice: Choice) -> list[Trained]:
    """The members of a model, each with its weight."""
    pairs = zip(choice.members, choice.weights, strict=True)
    return [replace(trial.trained, weight=weight) for trial, weight in pairs if trial.trained is not None]


def _ended(chosen: Sequence[Trial], search: Search) -> str:
    """How far the members got, where the time ran out or Ctrl-C came."""
    names = ", ".join(recipe.name for recipe in search.left_out)
    short = f"; left out for lack of memory: {names}" if names else ""
    pairs = [(trial, trial.asked.settings.epochs) for trial in chosen if trial.asked is not None]
    cut = [(trial.epochs, planned) for trial, planned in pairs if trial.recipe.settings.epochs < planned]
    if search.interrupted:
        return f"{short}; Ctrl-C ended the search, and this is the best until then"
    if not cut:
        return short
    got = ", ".join(f"{epochs} of {planned}" for epochs, planned in cut)
    return f"{short}; time ran out after {got} epochs"


def search_memory(max_memory: str | float | None) -> float:
    """The bytes that a search may take beside the graph: as given, or half of what is free and at most `MEMORY`."""
    if max_memory is not None:
        return float(read_bytes(max_memory, "max_memory"))
    free = free_memory()
    if free is not None and free < LEAST:
        raise MemoryError(f"A search needs {LEAST / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free")
    return min(MEMORY, (UNKNOWN_MEMORY if free is None else free) / 2)


def fit_model(
    model: AutoModel,
    graph: Any,
    split: Any,
    progress: Progress | None,
    sample_weight: Any = None,
    afford: float | None = None,
    others: int = 0,
    clock: Clock | None = None,
    baselines: int = 0,
) -> Pool:
    """Fit a model; what it was trained in (trees, scale, channels) is returned, for other splits.

    Where recipes are to be trained again, one may take `afford` seconds; on how many `others` is for a large graph. The
    `clock` counts the seconds of the budget, by default from now on. Of fixed recipes, the first are so many
    `baselines`.
    """
    seed = model._check_parameters()
    clock = Clock(float(model.budget), lanes=model.workers) if clock is None else clock
    data = settle_data(model._to_fit(graph), split, model.stand_in, seed, sample_weight)
    known, part, weights, stood_in = data
    fixed = None if model.recipes is None else [own_tree(Recipe.of(recipe)) for recipe in model.recipes]
    wanted = fixed is None or any(recipe.scaling == "columns" for recipe in fixed)
    scale = FeatureScale.of(known.features) if wanted else None
    large = is_large(len(part.train))
    budget = float(model.budget)
    until = Deadline()  # of fixed recipes, only Ctrl-C is the end
    if fixed is None:  # on small graphs, a training that has begun may take a little longer
        until = Deadline(budget, 0 if large else GRACE, clock)
    pool = Pool(known, scale, model.workers, stood_in, weights, large, until, search_memory(model.max_memory))
    pool.whole = fixed is not None
    search = Search(pool, part, seed, budget, model.members, progress, afford, others)
    pins = model.pins or {}
    trials = search.run_fixed(fixed, baselines) if fixed else search.run(known.subgraph(part.train), pins)
    pool.interrupted = search.interrupted
    choice = choose(trials, known, part, model.members, model.choose, weights)
    model.how_, model.reason_ = choice.how, choice.reason + _ended(choice.members, search)
    for trial, weight in zip(choice.members, choice.weights, strict=True):
        trial.weight = weight
    model.trials_ = sorted(trials, key=lambda trial: trial.rank)
    output = choice.output
    model.validation_ = validate(output, known, part, weights)
    model.ran_ = [trial.recipe for trial in trials if trial.log_probabilities is not None]
    scaled = any(trial.recipe.scaling == "columns" for trial in choice.members)
    model.fitted_ = Fitted.of(
        weighted(choice),
        known,
        kept_split(split, part),
        seed,
        stood_in=stood_in,
        known=Known.of(known, part.train),
        scale=scale if scaled else None,
        decision=decision_of(output, known, part),
    )
    return pool
