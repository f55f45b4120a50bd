"""A classifier that finds its own tree, channels and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from pegfan import _saved
from pegfan._npz import read_npz, write_npz
from pegfan.auto.inputs import FeatureScale, Known, recipe_channels
from pegfan.auto.recipes import Recipe, scale_of
from pegfan.auto.search import Candidate, Pool, Progress, Search, choose, log_probabilities, make_network, mean_of
from pegfan.classifier import (
    _HISTORY,
    _WEIGHTS,
    _as_seed,
    _as_split,
    _ChannelClassifier,
    _fingerprint,
    _Fitted,
    _kept_split,
    _with_features,
    as_graph,
    describe_network,
    pad_levels,
    restore_network,
)
from pegfan.graph import Graph, Split
from pegfan.trees import Hierarchy, build_tree

__all__ = ["AutoClassifier", "Member"]

_NODES, _INPUTS = "nodes.json", "inputs.npz"
_HISTORIES = ("train_loss", "val_loss", "val_metric")


@dataclass(frozen=True, eq=False)
class Member:
    """One network of a fitted `AutoClassifier`.

    Attributes
    ----------
    recipe
        How it was made.
    run
        Its training (`pegfan.training.Run`), with history.
    tree
        Its tree, or None.
    names, widths
        Of its channels.
    model
        The network.
    """

    recipe: Recipe
    run: Any
    tree: Hierarchy | None
    names: tuple[str, ...]
    widths: tuple[int, ...]
    model: Any

    @property
    def attention(self) -> dict[str, float]:
        """The weight of each channel, by its name."""
        return dict(zip(self.names, map(float, self.run.attention), strict=True))


class AutoClassifier(_ChannelClassifier):
    """Try recipes within a time budget, and keep what does best on validation.

    A recipe is a tree (or none), a set of channels and a few settings. The most useful ones come first; then the best
    ones are varied for as long as that helps. The final model is the mean of the probabilities of the recipes of
    lowest validation loss if that mean beats the best single recipe on validation, and that single one otherwise. The
    labels of test nodes are never looked at.

    Parameters
    ----------
    budget
        Seconds for the search. Small graphs end earlier; two recipes are always trained, one of them on features alone.
    random_state
        Of weights, dropout and ``split="random"``.
    recipes
        Exactly these recipes (`Recipe`, or mappings of its fields and settings), whatever the budget: what is fitted
        then does not depend on the clock.
    pins
        Fields of `Recipe` and settings (`pegfan.Settings`) that all recipes shall have, such as
        ``{"h": 4, "epochs": 200}``.
    members
        The most networks in the final mean.
    choose
        ``"auto"``, or ``"mean"`` or ``"best"`` to have it so.
    features
        What a graph without features gets: ``"degree"`` (`pegfan.datasets.stand_in_features`), or None for an error.
    workers
        Processes that share the recipes. What a recipe gives does not depend on their number, but how many fit into the
        budget does.

    Attributes
    ----------
    classes_ : array
        Names of the classes, or their numbers.
    candidates_ : list of Candidate
        All recipes that were trained, the best on validation first; not saved.
    members_ : list of Member
        The networks whose probabilities are averaged.
    how_, reason_ : str
        How the members were chosen, and why.
    validation_ : tuple of float
        Metric and loss of the final model on the validation nodes.

    Notes
    -----
    On another graph than the fitted one, even if only an edge was added, channels are rebuilt and trees built anew to
    the number of levels they had, as in `PEGFANClassifier`. Channels that speak of particular nodes (rows of the
    adjacency, training labels of neighbours) tell nodes by their names where both graphs have names, and by their
    position otherwise; nodes that were not there in training have no label and no column.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> recipes = [{"method": "ward", "h": 4, "kind": "b", "epochs": 40}, {"hops": 2, "epochs": 40}]
    >>> model = pf.AutoClassifier(recipes=recipes).fit(graph)
    >>> model.score(graph, split=0) > 0.5
    True
    >>> sorted(candidate.recipe.method for candidate in model.candidates_), model.predict_proba().shape
    (['none', 'ward'], (300, 4))
    """

    candidates_: list[Candidate]
    members_: list[Member]
    how_: str
    reason_: str
    validation_: tuple[float, float]
    _known: Known
    _scale: FeatureScale | None

    _network: ClassVar[str] = "ChannelNetwork"
    _has_tree: ClassVar[bool] = False

    def __init__(
        self,
        budget: float = 60.0,
        random_state: int = 0,
        recipes: Sequence[Recipe | Mapping[str, Any]] | None = None,
        pins: Mapping[str, Any] | None = None,
        members: int = 5,
        choose: Literal["auto", "mean", "best"] = "auto",
        features: Literal["degree"] | None = "degree",
        workers: int = 1,
    ) -> None:
        self.budget, self.random_state, self.recipes, self.pins = budget, random_state, recipes, pins
        self.members, self.choose, self.features, self.workers = members, choose, features, workers

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name.

        Parameters
        ----------
        deep
            For scikit-learn; nothing here is nested.
        """
        del deep
        return {name: getattr(self, name) for name in self._own_names()}

    # ------------------------------------------------------------------------- fit

    def fit(self, graph: Any, split: Any = 0, progress: Progress | None = None) -> Self:
        """Try recipes on a split, choose on its validation nodes, and keep what was chosen.

        Parameters
        ----------
        graph
            As in `PEGFANClassifier.fit`.
        split
            As there.
        progress
            Called with a `pegfan.auto.search.Event` whenever something happened.
        """
        seed = self._check_parameters()
        known, part, stand_in = self._prepare(graph, split, seed)
        fixed = [Recipe.of(recipe) for recipe in self.recipes] if self.recipes is not None else None
        scale = FeatureScale.of(known.features) if fixed is None else scale_of(known, fixed)
        with Pool(known, scale, self.workers) as pool:
            search = Search(pool, part, seed, float(self.budget), self.members, progress)
            if fixed is not None:
                candidates = search.run_fixed(fixed)
            else:
                candidates = search.run(known.subgraph(part.train), self.pins or {})
        self._finish(known, part, stand_in, scale, candidates, _kept_split(split, part))
        return self

    def _check_parameters(self) -> int:
        if self.features not in (None, "degree"):
            raise ValueError(f"features must be None or 'degree', got {self.features!r}")
        if self.choose not in ("auto", "mean", "best"):
            raise ValueError(f"choose must be 'auto', 'mean' or 'best', got {self.choose!r}")
        for name in ("members", "workers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if isinstance(self.budget, bool) or not isinstance(self.budget, (int, float)) or not self.budget > 0:
            raise ValueError(f"budget must be a positive number of seconds, got {self.budget!r}")
        if self.recipes is not None and not len(self.recipes):
            raise ValueError("recipes must hold at least one recipe; leave it out to have them found")
        Recipe.of(self.pins or {})  # speaks up if a pin is wrong
        return _as_seed(self.random_state)

    def _prepare(self, graph: Any, split: Any, seed: int) -> tuple[Graph, Split, bool]:
        given = as_graph(graph)
        if given.labels is None or not (given.labels >= 0).any():
            raise ValueError(
                "the graph has no labels to learn from; give them with graph.replace(labels=...), or name the column "
                "of classes where it is read: label='kind'"
            )
        part = _as_split(given, split, seed)
        labelled = (nodes[given.labels[nodes] >= 0] for nodes in part)
        part = Split(*labelled)
        stand_in = given.features is None and self.features == "degree"
        return _with_features(given, stand_in), _check_part(part), stand_in

    def _finish(
        self,
        graph: Graph,
        part: Split,
        stand_in: bool,
        scale: FeatureScale | None,
        candidates: list[Candidate],
        split: Split | int | str,
    ) -> None:
        chosen, self.how_, self.reason_ = choose(candidates, graph, part, self.members, self.choose)
        self.candidates_ = sorted(candidates, key=lambda c: c.rank)
        self.members_ = [
            Member(
                c.recipe,
                c.run,
                c.tree,
                c.names,
                c.widths,
                make_network(c.recipe, c.widths, graph.n_classes, c.run.state),
            )
            for c in chosen
        ]
        from pegfan.auto.search import validate

        self.validation_ = validate(mean_of([c.log_probabilities for c in chosen]), graph, part)
        self.classes_ = np.arange(graph.n_classes) if graph.class_names is None else graph.class_names
        self._known = Known.of(graph, part.train)
        self._scale = scale if any(c.recipe.features == "scaled" for c in chosen) else None
        parameters = self.get_params()
        parameters["recipes"] = [c.recipe.to_dict() for c in candidates]
        self._fitted = _Fitted(
            parameters=parameters,
            regime=None,
            stand_in=stand_in,
            columns=int(graph.features.shape[1]),
            names=(),
            widths=(),
            metric=graph.metric,
            fingerprint=_fingerprint(graph),
            graph=graph,
            split=split,
        )

    # --------------------------------------------------------------------- predict

    def _log_probabilities(self, graph: Any) -> NDArray[np.float32]:
        fitted = self._check_fitted()
        known = self._graph_to_predict(graph, fitted)
        same = known is fitted.graph or (known.n == self._known.n and _fingerprint(known) == fitted.fingerprint)
        trees: dict[Any, Hierarchy | None] = {}
        outputs = []
        for member in self.members_:
            key = member.recipe.tree
            if key not in trees:
                trees[key] = (
                    member.tree if same or member.tree is None else _tree_like(known, member.recipe, member.tree)
                )
            channels = recipe_channels(member.recipe, known, trees[key], self._known, self._scale)
            outputs.append(log_probabilities(member.model, channels))
        return mean_of(outputs)

    def _make_channels(self, *_: Any) -> Any:
        raise TypeError("an AutoClassifier has channels for each of its members")

    # ----------------------------------------------------------------------- files

    def _write_parts(self, folder: Path) -> None:
        """Weights and histories of all members, their trees, the training labels and the nodes' names."""
        from safetensors.numpy import save

        state = {
            f"{i}/{name}": np.ascontiguousarray(value)
            for i, member in enumerate(self.members_)
            for name, value in member.run.state.items()
        }
        _saved.write_file(folder / _WEIGHTS, save(state))
        for i, tree in enumerate(self._trees()):
            tree.save(folder / f"tree_{i}.npz")
        history = {
            f"{i}/{name}": np.array(member.run.history[name])
            for i, member in enumerate(self.members_)
            for name in _HISTORIES
            if member.run.history
        }
        write_npz(folder / _HISTORY, history)
        inputs: dict[str, Any] = {"codes": self._known.codes}
        if self._scale is not None:
            inputs |= {name: getattr(self._scale, name) for name in ("tail", "full", "centre", "scale")}
        write_npz(folder / _INPUTS, inputs)
        _saved.write_file(folder / _NODES, json.dumps(self._known.names).encode())

    def _trees(self) -> list[Hierarchy]:
        """The members' trees, each once."""
        return list({id(m.tree): m.tree for m in self.members_ if m.tree is not None}.values())

    def _description(self, fitted: _Fitted) -> dict[str, Any]:
        places = {id(tree): i for i, tree in enumerate(self._trees())}
        return {
            "how": self.how_,
            "reason": self.reason_,
            "validation": [None if np.isnan(value) else float(value) for value in self.validation_],
            "members": [
                {
                    "recipe": member.recipe.to_dict(),
                    "tree": None if member.tree is None else places[id(member.tree)],
                    **describe_network(member.names, member.widths, member.run),
                }
                for member in self.members_
            ],
        }

    @classmethod
    def _restore(cls, source: Path, about: Mapping[str, Any]) -> Self:
        from safetensors.numpy import load

        data = {name: _saved.read_file(source, str(name), about) for name in (_WEIGHTS, _HISTORY, _INPUTS, _NODES)}
        result = cls(**about["parameters"])
        result._check_parameters()
        classes = _saved.read_classes(about["classes"])
        names = json.loads(data[_NODES])
        inputs = read_npz(source / _INPUTS)
        codes = inputs.pop("codes").astype(np.int64)
        if names is not None and (len(names) != len(codes) or not all(isinstance(name, str) for name in names)):
            raise ValueError(f"{_NODES} does not fit {_INPUTS}")
        if codes.ndim != 1 or codes.max(initial=-1) >= len(classes):
            raise ValueError(f"{_INPUTS} holds classes that {_saved.MODEL} does not know")
        state, history = load(data[_WEIGHTS]), read_npz(source / _HISTORY)
        trees: dict[int, Hierarchy] = {}
        for entry in about["members"]:
            place = entry["tree"]
            if place is not None and place not in trees:
                _saved.read_file(source, f"tree_{int(place)}.npz", about)
                trees[place] = Hierarchy.load(source / f"tree_{int(place)}.npz")
        result.members_ = [
            _restore_member(i, entry, state, history, trees, len(classes)) for i, entry in enumerate(about["members"])
        ]
        result._known = Known(codes, None if names is None else tuple(names), len(classes))
        result._scale = FeatureScale(**inputs) if inputs else None
        metric, loss = about["validation"]
        result.classes_, result.candidates_ = classes, []
        result.how_, result.reason_ = about["how"], about["reason"]
        result.validation_ = (float("nan") if metric is None else metric, float("nan") if loss is None else loss)
        result._fitted = _Fitted.from_dict(about)
        return result


def _restore_member(
    i: int,
    entry: Mapping[str, Any],
    weights: Mapping[str, Any],
    histories: Mapping[str, Any],
    trees: Mapping[int, Hierarchy],
    classes: int,
) -> Member:
    def own(stored: Mapping[str, Any]) -> dict[str, Any]:
        return {name.removeprefix(f"{i}/"): value for name, value in stored.items() if name.startswith(f"{i}/")}

    recipe = Recipe.of(entry["recipe"])
    tree = None if entry["tree"] is None else trees[entry["tree"]]
    if (tree is None) != (recipe.tree is None):
        raise ValueError(f"member {i} and its recipe do not agree on a tree")
    state = own(weights)
    history = {name: values.tolist() for name, values in own(histories).items()}
    names, widths, run = restore_network(entry, state, history, recipe.full_settings.layers)
    return Member(recipe, run, tree, names, widths, make_network(recipe, widths, classes, state))


def _tree_like(graph: Graph, recipe: Recipe, fitted: Hierarchy) -> Hierarchy:
    """The tree of another graph, with as many levels as the fitted one."""
    method, h, direction = recipe.tree or ("auto", 2, "out")
    built = build_tree(graph, method, h, direction=direction, max_levels=fitted.K)  # type: ignore[arg-type]
    return pad_levels(built, fitted.K)


def _check_part(part: Split) -> Split:
    for name in ("train", "val"):
        if not len(getattr(part, name)):
            raise ValueError(
                f"the split has no labelled {name} nodes; recipes are trained on the one and chosen on the other. "
                "Leave the split out to have one drawn, or label more nodes"
            )
    return part
