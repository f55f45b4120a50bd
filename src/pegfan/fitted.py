"""A fitted model: trained recipes, what they need to predict on any graph, and how they are kept on disk."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pegfan import _saved
from pegfan._arrays import Float32Array, FloatArray, IntArray
from pegfan._checks import check_flag, check_kind, check_numbers, check_predictions, shown
from pegfan._extras import need
from pegfan._limits import allowed_for, require
from pegfan._npz import read_npz, write_npz
from pegfan._plain import plain
from pegfan.channels import Channel, Channels, FeatureScale, PrincipalColumns, names, spectral_vectors
from pegfan.decisions import Decision
from pegfan.graph import Graph, Split, are_known, check_graph
from pegfan.metrics import METRICS, score
from pegfan.networks import NetworkRecipe, recipe_of
from pegfan.recipe import Known, Recipe
from pegfan.stages import believe, deal, without_part
from pegfan.training import Network, Run, train
from pegfan.training.boosting import Boosted, boost
from pegfan.training.engine import check_metric, check_weights, without_weightless
from pegfan.training.linear import fit_linear, linear_settings
from pegfan.training.loop import Unfinished
from pegfan.training.rows import TARGET
from pegfan.trees import Hierarchy, canonical_order, extend_tree

__all__ = [
    "ChannelFacts",
    "Fitted",
    "Trained",
    "TrainedNetwork",
    "draw_folds",
    "draw_splits",
    "fingerprint",
    "mean_of",
    "network_inputs",
    "only_classes",
    "ranks_and_tenths",
    "train_network_recipe",
    "train_recipe",
]

_WEIGHTS, _HISTORY, _INPUTS, _NODES = "weights.safetensors", "history.npz", "inputs.npz", "nodes.json"
_LISTED = 100
"""Bytes that a number of a history takes in lists of lists."""
_SCALE = ("tail", "full", "centre", "scale")
_LIKELIEST = Decision()
_RUN_FIELDS = ("split", "seed", "epochs", "best_epoch", "val_loss", "val_metric", "test_metric", "seconds")


class ChannelFacts(NamedTuple):
    """What is kept of a channel after training: its name, the number of its columns, and how it is written."""

    name: str
    width: int
    words: str = ""
    symbol: str = ""
    group: names.Group = "other"
    scale: int | None = None

    @classmethod
    def of(cls, channel: Channel) -> Self:
        """The facts of a channel."""
        description, symbol = names.describe(channel), names.symbol(channel)
        return cls(channel.name, channel.shape[1], description, symbol, names.group(channel), channel.scale)


@dataclass(frozen=True, eq=False)
class Trained:
    """A recipe that was trained on a split of a graph.

    Attributes
    ----------
    recipe
        How it was made; its regime is decided.
    tree
        Its tree, or None.
    channels
        What is known of its channels, in their order.
    run
        Its training (`pegfan.training.Run`), with the weights.
    engine
        What trained it: an engine of `pegfan.train`, ``"boosting"`` or ``"linear"``; None once it was loaded.
    fold
        Which of several splits it was trained on.
    weight
        How much it counts among the members of its fold.
    inner
        Of a recipe of two stages, the models of the first one, and
    parts
        the part of every node of the fitted graph, whose labels the model of that place was trained without; -1 for
        nodes that are no training nodes (`pegfan.stages`).
    """

    recipe: Recipe
    tree: Hierarchy | None
    channels: tuple[ChannelFacts, ...]
    run: Run = field(repr=False)
    engine: str | None = None
    fold: int = 0
    weight: float = 1.0
    inner: tuple[Trained, ...] = ()
    parts: NDArray[np.int8] | None = field(default=None, repr=False)

    @cached_property
    def network(self) -> Network | Boosted:
        """The network, from its weights; or the boosted trees."""
        if self.recipe.is_boosted:
            return Boosted(self.run.state)
        linear = self.recipe.is_linear
        return Network(self.run.state, linear_settings(self.run.state) if linear else self.recipe.settings)

    @property
    def attention(self) -> dict[str, float]:
        """The weight of each channel, by its name."""
        return {facts.name: float(a) for facts, a in zip(self.channels, self.run.attention, strict=True)}

    def second_channels(self, channels: Channels, graph: Graph, known: Known | None) -> Channels:
        """The channels that the second stage sees of a graph, from those of the first."""
        if self.parts is None or known is None:
            raise ValueError("the model has one stage only, or what is known of training nodes is not given")
        check_kind(known, "known", Known)
        check_kind(channels, "channels", Channels)
        assert self.parts is not None
        assert known is not None
        outputs = []
        for part, model in enumerate(self.inner):
            own = self.recipe.relabelled(channels, graph, without_part(known, self.parts, part))
            outputs.append(model.network.predict(own))
        return self.recipe.relabelled(channels, graph, believe(graph, known, self.parts, outputs))


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A graph network that was trained on a split of a graph.

    Attributes
    ----------
    recipe
        How it was made.
    classes
        How many there are.
    run
        Its training, with the weights.
    engine
        What trained it, ``"torch"``; None once it was loaded.
    """

    recipe: NetworkRecipe
    classes: int
    run: Run = field(repr=False)
    engine: str | None = None
    tree: None = None
    channels: tuple[ChannelFacts, ...] = ()
    fold: int = 0
    weight: float = 1.0

    @property
    def attention(self) -> dict[str, float]:
        """Networks have no channels to weigh."""
        return {}

    def predict(self, graph: Graph, scale: FeatureScale | None, known: Known | None) -> Float32Array:
        """Logarithms of the classes' probabilities, per node of a graph."""
        from pegfan.training.networks import predict

        check_graph(graph, needs="features")
        codes = check_kind(known, "known", Known).labels_of(graph) if known is not None else None
        return predict(self.recipe, self.run.state, network_inputs(self.recipe, graph, scale), self.classes, codes)


def network_inputs(
    recipe: NetworkRecipe,
    graph: Graph,
    scale: FeatureScale | None = None,
    relations: str | os.PathLike[str] | None = None,
) -> Any:
    """What a network sees of a graph with features.

    Parameters
    ----------
    recipe, graph
        Which network, on what.
    scale
        Of the columns of the graph that was fitted, for another graph.
    relations
        The folder of relation files, for recipes that name one.
    """
    check_kind(recipe, "recipe", NetworkRecipe)
    check_graph(graph)
    need("torch", "torch", f"{recipe.label}, like all networks but PEGFAN and FSGNN,")
    from pegfan.training.networks import inputs_of

    scaling = scale if scale is not None and recipe.scaling == "columns" else recipe.scaling
    divisions = None
    if recipe.relation_file is not None:
        from pegfan.relations import geom_divisions, read_geom_relations

        path = recipe.relation_file.find(relations, "relations")
        divisions = geom_divisions(graph, read_geom_relations(path, graph.n))
    return inputs_of(graph, recipe.direction, scaling, divisions)


def train_network_recipe(
    recipe: NetworkRecipe,
    graph: Graph,
    split: Any,
    seed: int,
    *,
    inputs: Any = None,
    scale: FeatureScale | None = None,
    **options: Any,
) -> TrainedNetwork:
    """Train a graph network on a split of a graph.

    Parameters
    ----------
    recipe, graph, split, seed
        What to train, on what. The graph has features and labels; the split goes through `fit_split`.
    inputs
        What `network_inputs` gives, if made before.
    scale
        Of the feature columns, likewise.
    **options
        Of `pegfan.training.networks.train_network`: sample_weight, device, history, progress.
    """
    check_kind(recipe, "recipe", NetworkRecipe)
    split = fit_split(graph, split, seed)
    if graph.labels is None:
        raise ValueError(only_classes(recipe.label))
    inputs = network_inputs(recipe, graph, scale) if inputs is None else inputs
    from pegfan.training.networks import train_network

    run = train_network(recipe, inputs, graph.labels, split, graph.n_classes, graph.metric, seed, **options)
    return TrainedNetwork(recipe, graph.n_classes, run, "torch")


def train_recipe(
    recipe: Recipe,
    graph: Graph,
    split: Any,
    seed: int,
    *,
    tree: Hierarchy | None = None,
    channels: Channels | None = None,
    scale: FeatureScale | None = None,
    stood_in: bool = False,
    **options: Any,
) -> tuple[Trained, Channels]:
    """Train a recipe on a split of a graph; the channels are returned too, for predictions on the same graph.

    Parameters
    ----------
    recipe, graph, split, seed
        What to train, on what. The graph has features and labels; the split goes through `fit_split`.
    tree, channels
        What ``recipe.build_tree(graph)`` and ``recipe.channels(graph, tree, split=split)`` give, if made before.
    scale
        Likewise ``recipe.scale(graph)``.
    stood_in
        Whether degrees stand in for features, which are then not divided by row sums.
    **options
        Of `pegfan.train`: sample_weight, engine, device, workers, history, progress, until.

    Raises
    ------
    pegfan.training.loop.Unfinished
        If the time is over before the second of two stages.
    """
    check_kind(recipe, "recipe", Recipe)
    split = fit_split(graph, split, seed)
    recipe = recipe.settled(graph, split, stood_in)
    if channels is None:
        tree = recipe.build_tree(graph) if tree is None else tree
        channels = recipe.channels(graph, tree, split=split, scale=scale if recipe.scaling == "columns" else None)
    if recipe.stages > 1:
        return _train_stages(recipe, graph, split, seed, tree, channels, **options)
    return _train_channels(recipe, graph, split, seed, tree, channels, **options), channels


def _train_channels(
    recipe: Recipe, graph: Graph, split: Split, seed: int, tree: Hierarchy | None, channels: Channels, **options: Any
) -> Trained:
    """Train what the recipe says on channels that are made."""
    facts = tuple(map(ChannelFacts.of, channels))
    metric: Any = graph.metric
    if recipe.is_boosted or recipe.is_linear:
        run = _fit_other(recipe, channels, graph, split, seed, **options)
        return Trained(recipe, tree, facts, run, recipe.head)
    result = train(
        channels, graph.truth, split, recipe.settings, classes=graph.n_classes, metric=metric, seed=seed, **options
    )
    return Trained(recipe, tree, facts, result.runs[0], result.engine)


def _train_stages(
    recipe: Recipe, graph: Graph, split: Split, seed: int, tree: Hierarchy | None, channels: Channels, **options: Any
) -> tuple[Trained, Channels]:
    """Train the models of the first stage, each without a part of the labels, and one on what they predict.

    Where time is short, the first model has its share of it, and the others at most as many epochs: the recipe of what
    is trained has these epochs, so that it can be trained again without a clock.
    """
    if graph.labels is None:
        raise ValueError(only_classes("a second stage (stages=2)"))
    known, until, begun = Known.of(graph, split.train), options.pop("until", None), time.monotonic()
    parts = deal(graph, known.codes, seed)
    count = int(parts.max()) + 1
    rest = None if until is None else until.within(begun)
    share = None if rest is None else until.within(begun, rest.left / (count + 1.5))
    inner: list[Trained] = []
    outputs: list[Float32Array] = []
    for part in range(count):
        own = recipe.relabelled(channels, graph, without_part(known, parts, part))
        others = Split(split.train[parts[split.train] != part], split.val, np.empty(0, np.int64))
        limit = rest if part else share
        now = {**options, "history": False, "until": limit}
        inner.append(_train_channels(recipe.changed(stages=1), graph, others, seed, tree, own, **now))
        outputs.append(inner[-1].network.predict(own))
        if limit is not None and limit.passed:
            if part:
                raise Unfinished(f"the time was over before the second stage of {recipe.name}")
            recipe = recipe.changed(epochs=inner[0].run.epochs)
            inner = [replace(inner[0], recipe=recipe.changed(stages=1))]
    second = recipe.relabelled(channels, graph, believe(graph, known, parts, outputs))
    trained = _train_channels(recipe, graph, split, seed, tree, second, **options, until=rest)
    if rest is not None and rest.passed and trained.run.epochs < recipe.settings.epochs:  # no recipe could say this
        raise Unfinished(f"the time was over before the end of {recipe.name}")
    seconds = trained.run.seconds + sum(model.run.seconds for model in inner)
    return replace(trained, run=replace(trained.run, seconds=seconds), inner=tuple(inner), parts=parts), second


def _fit_other(recipe: Recipe, channels: Channels, graph: Graph, split: Split, seed: int, **options: Any) -> Run:
    """Boosting, or a linear model; which engine, device and workers are wanted makes no difference to them."""
    assert graph.truth is not None
    weights = check_weights(options.get("sample_weight"), graph.n)
    part = without_weightless(split, weights)
    check_metric(graph.metric, graph.n_classes, recipe.settings.stop, graph.truth[part.val], "the split")
    fixed: dict[str, Any] = {"classes": graph.n_classes, "metric": graph.metric, "seed": seed}
    fixed |= {"sample_weight": weights, "history": options.get("history", False)}
    if recipe.is_linear:
        return fit_linear(channels, graph.truth, part, recipe.settings, constant=recipe.head == "constant", **fixed)
    fixed |= {name: options[name] for name in ("progress", "until") if name in options}
    return boost(channels, graph.truth, part, recipe.settings, leaves=recipe.leaves, **fixed)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Trained recipes and all that their predictions depend on; their probabilities are averaged.

    Attributes
    ----------
    members
        The trained recipes.
    classes
        Names of the classes, or their numbers; none where numeric targets are predicted.
    metric
        Of the graph; one for numbers where these are predicted.
    stood_in
        Whether degrees stood in for features.
    columns, feature_names
        How many feature columns there were, and their names if they have any.
    fingerprint
        Of the graph, see `fingerprint`.
    split
        As given to `fit`; None if nodes were given, and the model was loaded.
    seed
        Of ``split="random"``.
    known
        What is known of training nodes; None if no member needs it.
    scale
        Of the feature columns; None if no member needs it.
    principal
        Columns in place of the feature columns; None if no member needs them.
    decision
        What probabilities become, and which class they speak for; by default the likeliest one.
    graph
        What was fitted; it is not saved.
    """

    members: tuple[Trained | TrainedNetwork, ...]
    classes: NDArray[Any]
    metric: str
    stood_in: bool
    columns: int
    feature_names: tuple[str, ...] | None
    fingerprint: str
    split: Split | int | str | None
    seed: int
    known: Known | None = None
    scale: FeatureScale | None = None
    principal: PrincipalColumns | None = None
    decision: Decision = _LIKELIEST
    graph: Graph | None = None

    def __post_init__(self) -> None:
        """Add what channels of the members keep of the graph, whichever members they are by now."""
        if self.graph is None:
            return
        recipes = [member.recipe for member in self.members if isinstance(member, Trained)]
        if any(recipe.spectrum for recipe in recipes) and (self.known is None or self.known.vectors is None):
            told = Known.of(self.graph, np.empty(0, np.int64)) if self.known is None else self.known
            object.__setattr__(self, "known", replace(told, vectors=spectral_vectors(self.graph)))
        if any(recipe.scaling == "principal" for recipe in recipes) and self.principal is None:
            object.__setattr__(self, "principal", PrincipalColumns.of_graph(self.graph))

    @classmethod
    def of(
        cls,
        members: Sequence[Trained | TrainedNetwork],
        graph: Graph,
        split: Split | int | str,
        seed: int,
        *,
        stood_in: bool,
        known: Known | None = None,
        scale: FeatureScale | None = None,
        decision: Decision = _LIKELIEST,
    ) -> Self:
        """What was fitted to a graph."""
        check_graph(graph, needs="features")
        check_flag(stood_in, "stood_in")
        assert graph.features is not None
        return cls(
            members=tuple(members),
            classes=graph.classes,
            metric=graph.metric,
            stood_in=stood_in,
            columns=int(graph.features.shape[1]),
            feature_names=None if stood_in else graph.feature_names,
            fingerprint=fingerprint(graph),
            split=split,
            seed=seed,
            known=known,
            scale=scale,
            decision=decision,
            graph=graph,
        )

    @property
    def numeric(self) -> bool:
        """Whether numbers are predicted, not classes."""
        return METRICS[self.metric].numbers

    # ---------------------------------------------------------------- predictions

    def values(self, graph: Graph | None = None) -> FloatArray:
        """The predicted number of every node: the mean of the members' ones."""
        return np.asarray(self.raw(graph)[:, 0], np.float64)

    def log_probabilities(self, graph: Graph | None = None) -> Float32Array:
        """Logarithms of the mean of the members' probabilities, per node and class, calibrated if that helps."""
        return self.decision.calibrated(self.raw(graph))  # type: ignore[no-any-return]

    def raw(self, graph: Graph | None = None) -> Any:
        """Logarithms of the mean of the members' probabilities, per node and class; or a column of mean numbers.

        Members count by their weights, and those of several folds are averaged fold by fold. A node that the model
        learned from is left to the members of the fold that it was held out from.
        """
        known = self.prepared(graph)
        channels = self.channels_on(known)
        folds: dict[int, tuple[list[Float32Array], list[float]]] = {}
        for member in self.members:
            outputs, weights = folds.setdefault(member.fold, ([], []))
            weights.append(member.weight)
            if isinstance(member, TrainedNetwork):
                outputs.append(member.predict(known, self.scale, self.known))
            else:
                outputs.append(member.network.predict(next(channels)))
        means = {fold: mean_of(*found) for fold, found in folds.items()}
        output = mean_of(list(means.values()))
        held_out = self.held_out(known)
        for fold, mean in means.items() if held_out is not None else ():
            output[held_out == fold] = mean[held_out == fold]
        return check_predictions(output)

    def held_out(self, graph: Graph) -> IntArray | None:
        """The fold that every node of a graph is a test node of, -1 for none; None where there are no folds."""
        check_graph(graph)
        return None if self.known is None or self.known.folds is None else self.known.held_out(graph)

    def prepared(self, graph: Graph | None) -> Graph:
        """A graph as the members see it, with the features of the training; by default the one that was fitted."""
        if graph is not None:
            check_graph(graph)
        return self._graph() if graph is None else self._aligned(graph)

    def channels_on(self, known: Graph) -> Iterator[Channels]:
        """The channels of each member that has channels, on a `prepared` graph; made one after the other."""
        check_graph(known, needs="features")
        same = self.is_fitted_to(known)
        trees: dict[Any, Hierarchy | None] = {}
        for member in self.members:
            if isinstance(member, TrainedNetwork):
                continue
            recipe, tree = member.recipe, member.tree
            if tree is not None and not same:
                if (recipe.tree_key, tree.K) not in trees:
                    trees[recipe.tree_key, tree.K] = recipe.build_tree(known, levels=tree.K)
                tree = trees[recipe.tree_key, tree.K]
            scale = {"columns": self.scale, "principal": self.principal}.get(recipe.scaling)
            told = self.known_to(member)
            channels = recipe.channels(known, tree, known=told, scale=scale)
            yield member.second_channels(channels, known, told) if member.inner else channels

    def known_to(self, member: Trained) -> Known | None:
        """What a member knows of training nodes."""
        check_kind(member, "member", Trained)
        return None if self.known is None else self.known.of_fold(member.fold)

    def is_fitted_to(self, graph: Graph) -> bool:
        """Whether a graph, with features, is the one that was fitted, so that its trees are those that are kept."""
        check_graph(graph)
        return graph is self.graph or fingerprint(graph) == self.fingerprint

    def score(self, graph: Graph | None, split: Any) -> float:
        """The graph's metric on the test nodes of a split; by default the split that was fitted."""
        if graph is not None:
            check_graph(graph)
        known = self._graph() if graph is None else graph
        truth, missing = (known.targets, "targets") if self.numeric else (known.labels, "labels")
        if truth is None:
            raise ValueError(f"the graph has no {missing} to compare with; give them with graph.replace({missing}=...)")
        if split is None and self.split is None:
            raise ValueError("the model was fitted to a split of its own, which is not saved; pass it as split=")
        bare = known.replace(features=None) if self.stood_in else known  # as it was when the split was drawn
        part = pick_split(bare, self.split if split is None else split, self.seed)
        test = part.test[known.labelled[part.test]]
        if not test.size:
            raise ValueError("the split has no labelled test nodes, so there is nothing to score")
        if self.numeric:
            return score(self.values(known)[test], truth[test], known.metric)
        chosen = METRICS[known.metric]
        if chosen.two_classes and len(self.classes) != 2:
            raise ValueError(f"{chosen.words} is for two classes, and the model was fitted to {len(self.classes)}")
        return self.decision.score(self.raw(known)[test], self._codes(known)[test], known.metric)

    def _graph(self) -> Graph:
        if self.graph is None:
            raise ValueError("a loaded model does not hold the graph it was fitted to; pass a graph")
        return self.graph

    def _aligned(self, graph: Graph) -> Graph:
        """The graph with the features of the training: degrees if they stood in, columns by name if they have names."""
        if self.stood_in:
            known = with_features(graph.replace(features=None), "degree")  # of a directed graph there are two
        else:
            known = with_features(graph, None)
            if self.feature_names is not None and known.feature_names is not None:
                known = known.align_features(self.feature_names)
        assert known.features is not None
        if known.features.shape[1] != self.columns:
            raise ValueError(
                f"the graph has {known.features.shape[1]} feature columns, and the model was fitted to "
                f"{self.columns}; give it the same features in the same order"
            )
        return known

    def _codes(self, graph: Graph) -> IntArray:
        """The graph's labels as places in the fitted classes."""
        assert graph.labels is not None
        codes = graph.labels
        if graph.class_names is not None or self.classes.dtype.kind in "iu":
            place = {name: i for i, name in enumerate(self.classes.tolist())}
            names = graph.classes.tolist()
            used = np.unique(codes[codes >= 0])
            unknown = [names[k] for k in used if names[k] not in place]
            if unknown:
                raise ValueError(
                    f"class {unknown[0]!r} is not one of the classes that were fitted, {self.classes.tolist()}"
                )
            codes = np.array([*(place.get(name, -1) for name in names), -1])[codes]
        elif codes.max(initial=-1) >= len(self.classes):
            raise ValueError(f"class {codes.max()} is not one of the {len(self.classes)} classes that were fitted")
        return np.asarray(codes)

    def extended(self, graph: Graph, places: IntArray) -> Self:
        """What was fitted, for a graph that has grown from the fitted one: old nodes keep their places in the trees.

        Parameters
        ----------
        graph
            The graph as it is now.
        places
            The place of every node in the fitted graph; -1 for new ones. Every old node must be there.
        """
        check_graph(graph)
        known = self.prepared(graph)
        trees = {id(tree): extend_tree(tree, known, places) for tree in self._trees()}
        members = [_extended(member, trees, np.asarray(places)) for member in self.members]
        return replace(
            self,
            members=tuple(members),
            known=None if self.known is None else self.known.extended(known, np.asarray(places)),
            fingerprint=fingerprint(known),
            split=None,
            graph=known,
        )

    # --------------------------------------------------------------------- files

    def save(
        self,
        folder: str | os.PathLike[str],
        kind: str,
        parameters: Mapping[str, Any],
        more: Mapping[str, Any],
        over: bool,
    ) -> Path:
        """Write it to a folder, with the class and the parameters of the classifier that it belongs to."""
        places = {id(tree): i for i, tree in enumerate(self._trees())}
        about = {
            "class": kind,
            "parameters": dict(parameters),
            "classes": {"dtype": self.classes.dtype.str, "names": self.classes.tolist()},
            "metric": self.metric,
            "stand_in": self.stood_in,
            "columns": self.columns,
            "feature_names": self.feature_names,
            "graph": self.fingerprint,
            "split": self.split if isinstance(self.split, (int, str)) else None,
            "decision": None if self.decision == _LIKELIEST else self.decision.to_dict(),
            "members": [
                {
                    "recipe": member.recipe.to_dict(),
                    "tree": None if member.tree is None else places[id(member.tree)],
                    "fold": member.fold,
                    "weight": member.weight,
                    **_written(member),
                    **({"inner": list(map(_written, _inner(member)))} if _inner(member) else {}),
                }
                for member in self.members
            ],
            **more,
        }
        return _saved.write_model(folder, over, about, self._write_parts)

    def _trees(self) -> list[Hierarchy]:
        """The members' trees, each once."""
        return list({id(m.tree): m.tree for m in self.members if m.tree is not None}.values())

    def _write_parts(self, folder: Path) -> None:
        from safetensors.numpy import save

        state = {
            f"{i}/{name}": np.ascontiguousarray(value)
            for i, member in _numbered(self.members)
            for name, value in member.run.state.items()
        }
        _saved.write_file(folder / _WEIGHTS, save(state))
        for i, tree in enumerate(self._trees()):
            tree.save(folder / f"tree_{i}.npz")
        history = {
            f"{i}/{name}": np.array(values)
            for i, member in enumerate(self.members)
            for name, values in (member.run.history or {}).items()
        }
        write_npz(folder / _HISTORY, history)
        inputs = {name: getattr(self.scale, name) for name in _SCALE} if self.scale is not None else {}
        if self.principal is not None:
            inputs["principal"] = self.principal.vectors
        if self.known is not None:
            inputs["codes"] = self.known.codes
            inputs["columns"] = self.known.columns
            if self.known.values is not None:
                inputs["values"] = self.known.values
            if self.known.folds is not None:
                inputs["folds"] = self.known.folds
            if self.known.vectors is not None:
                inputs["vectors"] = self.known.vectors
            inputs |= {_parts_of(i): m.parts for i, m in enumerate(self.members) if isinstance(m, Trained) and m.inner}
            hashed = self.known.hashed(self.fingerprint)
            stored = None if hashed.names is None else {"salt": hashed.salt, "digests": hashed.names}
            _saved.write_file(folder / _NODES, json.dumps(stored).encode())
        write_npz(folder / _INPUTS, inputs)

    @classmethod
    def load(cls, source: Path, about: Mapping[str, Any], max_bytes: str | float | None = None) -> Self:
        """What `save` wrote, by the description that was read from the folder."""
        from safetensors.numpy import load

        classes = _saved.read_classes(about["classes"])
        state = load(_saved.read_file(source, _WEIGHTS, about))
        _saved.read_file(source, _HISTORY, about)
        history = _read_history(source / _HISTORY, max_bytes)
        files = {entry["tree"] for entry in about["members"]} - {None}
        for name in files:
            _saved.read_file(source, f"tree_{name}.npz", about)
        trees = {name: Hierarchy.load(source / f"tree_{name}.npz", max_bytes) for name in files}
        numeric = METRICS[about["metric"]].numbers
        outputs = 1 if numeric else len(classes)
        members = tuple(
            _member(entry, i, state, _arrays(i, history), trees, outputs, about["columns"])
            for i, entry in enumerate(about["members"])
        )
        every = [member for _, member in _numbered(members)]
        sizes = {m.classes if isinstance(m, TrainedNetwork) else m.network.classes for m in every}
        if sizes != {outputs} or any((TARGET in m.run.state) != numeric for m in every):
            fit = "targets" if numeric else f"{outputs} classes"
            raise ValueError(f"the members in {_saved.MODEL} do not fit its {fit}")
        known, scale, principal, parts = cls._read_inputs(source, about, outputs, max_bytes)
        if known is not None and (known.values is not None) != numeric:
            raise ValueError(f"{_INPUTS} does not hold what {_saved.MODEL} predicts")
        count = 1 if known is None or known.folds is None else len(known.folds)
        if known is not None and not all(0 <= m.fold < count for m in members if isinstance(m, Trained)):
            raise ValueError(f"a member was trained on a fold that {_INPUTS} does not know")
        if known is None and any(
            _inner(m) or (isinstance(m, TrainedNetwork) and m.recipe.needs_labels) for m in members
        ):
            raise ValueError(f"{_INPUTS} lacks the training labels that predictions need")
        for member in members:
            _check_kept(member, known, principal)
        members = tuple(_with_parts(member, parts.get(_parts_of(i)), known) for i, member in enumerate(members))
        names, decision = about["feature_names"], about["decision"]
        return cls(
            members=members,
            classes=classes,
            metric=about["metric"],
            stood_in=about["stand_in"],
            columns=about["columns"],
            feature_names=None if names is None else tuple(map(str, names)),
            fingerprint=about["graph"],
            split=about["split"],
            seed=int(about["parameters"]["random_state"]),
            known=known,
            scale=scale,
            principal=principal,
            decision=_LIKELIEST if decision is None else Decision.from_dict(decision, len(classes)),
        )

    @staticmethod
    def _read_inputs(
        source: Path, about: Mapping[str, Any], classes: int, max_bytes: str | float | None
    ) -> tuple[Known | None, FeatureScale | None, PrincipalColumns | None, dict[str, Any]]:
        _saved.read_file(source, _INPUTS, about)
        inputs = read_npz(source / _INPUTS, allowed_for(source / _INPUTS, max_bytes))
        parts = {name: inputs.pop(name) for name in list(inputs) if name.startswith(_parts_of(""))}
        known = None
        if "codes" in inputs:
            codes = inputs.pop("codes")
            if codes.ndim != 1 or not codes.size or not _are_places(codes, codes.shape, classes):
                raise ValueError(f"{_INPUTS} holds classes that {_saved.MODEL} does not know")
            names, salt = _read_names(json.loads(_saved.read_file(source, _NODES, about)), len(codes))
            columns = inputs.pop("columns")
            if not _are_places(columns, codes.shape, len(codes)):
                raise ValueError(f"{_INPUTS} holds columns that do not fit its nodes")
            values = inputs.pop("values", None)
            if values is not None and (
                values.dtype != np.float64
                or values.shape != codes.shape
                or not np.array_equal(np.isfinite(values), codes >= 0)
            ):
                raise ValueError(f"{_INPUTS} holds targets that do not fit its nodes")
            folds = inputs.pop("folds", None)
            if folds is not None and (folds.dtype != np.int8 or folds.shape[1:] != codes.shape):
                raise ValueError(f"{_INPUTS} holds folds that do not fit its nodes")
            vectors = inputs.pop("vectors", None)
            if vectors is not None and not _are_vectors(vectors, int(columns.max(initial=-1)) + 1):
                raise ValueError(f"{_INPUTS} holds vectors that do not fit its nodes")
            known = Known(codes, names, classes, columns, folds, salt, values, vectors)
        mixtures = inputs.pop("principal", None)
        if mixtures is not None and not _are_vectors(mixtures, about["columns"]):
            raise ValueError(
                f"{_INPUTS} holds principal columns that do not fit the {about['columns']} feature columns"
            )
        principal = None if mixtures is None else PrincipalColumns(mixtures)
        if inputs and not _are_scale(inputs, about["columns"]):
            raise ValueError(f"{_INPUTS} holds a scale that does not fit the {about['columns']} feature columns")
        return known, FeatureScale(**inputs) if inputs else None, principal, parts


def mean_of(outputs: Sequence[Any], weights: Sequence[float] | None = None) -> Any:
    """The logarithm of the mean of probabilities that are given by their logarithms; of one column, its plain mean.

    A single column holds predicted numbers, or zeros, the logarithms of the probabilities of a single class. Without
    weights, all count alike.

    Examples
    --------
    >>> np.exp(mean_of([np.log([[0.5, 0.5]]), np.log([[0.9, 0.1]])], weights=[3, 1])).round(3)
    array([[0.6, 0.4]])
    """
    outputs = [check_numbers(output, f"outputs[{place}]", None, None) for place, output in enumerate(outputs)]
    if not outputs or any(output.shape != outputs[0].shape for output in outputs) or not outputs[0].shape[1]:
        raise ValueError(f"outputs must be some arrays of one shape, got {[output.shape for output in outputs]}")
    if weights is not None:
        weights = check_numbers(weights, "weights", len(outputs)).tolist()
    if weights is not None and len(set(weights)) > 1:
        shares = np.asarray(weights, np.float64) / math.fsum(weights)
        if outputs[0].shape[1] == 1:
            return np.sum([share * output for share, output in zip(shares, outputs, strict=True)], axis=0)
        outputs = [output + output.dtype.type(np.log(share)) for share, output in zip(shares, outputs, strict=True)]
    elif outputs[0].shape[1] == 1:
        return np.mean(outputs, axis=0)
    total = outputs[0]
    for output in outputs[1:]:
        total = np.logaddexp(total, output)
    equal = weights is None or len(set(weights)) == 1
    return np.asarray(total - np.float32(np.log(len(outputs)))) if equal else np.asarray(total)


def fingerprint(graph: Graph) -> str:
    """A digest of everything that a tree and its channels are made of: edges and features, not labels."""
    return check_graph(graph, needs="features").digest


def only_classes(what: str) -> str:
    """Say that something is for classes, where there are numeric targets."""
    check_kind(what, "what", str)
    return (
        f"{what} is for classes, and the labels are numbers to predict; pegfan train and AutoRegressor predict them, "
        "and label_kind='classes' reads them as classes"
    )


def with_features(graph: Graph, stand_in: str | None) -> Graph:
    """The graph, with degrees for features where it has none and they may stand in."""
    if graph.features is not None:
        return graph
    if stand_in is None:
        raise ValueError(
            "the graph has no features; give them with graph.replace(features=...), or let degrees stand in with "
            "stand_in='degree'"
        )
    from pegfan.datasets import stand_in_features

    return stand_in_features(graph, stand_in)


def pick_split(graph: Graph, split: Any, seed: int) -> Split:
    """A split by its place in ``graph.splits``, as nodes, or ``"random"``."""
    check_graph(graph)
    if isinstance(split, str):
        if split != "random":
            raise ValueError(f"split must be an index, a Split or 'random', got {shown(split)}")
        return draw_splits(graph, k=1, seed=seed)[0]
    if isinstance(split, (int, np.integer)) and not graph.splits:
        raise ValueError("the graph has no splits; pass a Split, or split='random'")
    return graph.split(split)


def with_validation(graph: Graph, part: Split, seed: int) -> Split:
    """The split; a quarter of its labelled training nodes become validation nodes where it has none."""
    assert graph.truth is not None
    among: Any = np.full(graph.n, -1 if graph.targets is None else np.nan, graph.truth.dtype)
    among[part.train] = graph.truth[part.train]
    if len(part.val) or not are_known(among).any():
        return part
    drawn = draw_splits(graph, among, k=1, sizes=(0.75, 0.25, 0.0), seed=seed)[0]
    return Split(drawn.train, drawn.val, part.test)


def draw_splits(graph: Graph, labels: Any = None, **options: Any) -> tuple[Split, ...]:
    """Random splits of a graph that do not depend on how its nodes are numbered.

    Where there are numeric targets, every tenth of them is divided alike.

    Parameters
    ----------
    graph
        With labels or targets, unless others are given.
    labels
        Those of the nodes to divide; -1, or NaN, for the others.
    **options
        Of `pegfan.datasets.random_splits`.
    """
    from pegfan.datasets import random_splits

    check_graph(graph)

    codes: Any = graph.truth if labels is None else check_numbers(labels, "labels", graph.n)
    if codes is None:
        raise ValueError("the graph has no labels to draw splits by; give them with graph.replace(labels=...)")
    order, groups = _canonical_nodes(graph, codes)
    drawn = random_splits(groups[order], **options)
    return tuple(Split(*(np.sort(order[part]) for part in split)) for split in drawn)


def draw_folds(graph: Graph, **options: Any) -> tuple[Split, ...]:
    """Folds of a graph's labelled nodes (`pegfan.datasets.fold_splits`) that do not depend on their numbering."""
    from pegfan.datasets import fold_splits

    check_graph(graph, needs="truth")

    order, groups = _canonical_nodes(graph, graph.truth)
    drawn = fold_splits(groups[order], **options)
    return tuple(Split(*(np.sort(order[part]) for part in split)) for split in drawn)


def _canonical_nodes(graph: Graph, codes: Any) -> tuple[IntArray, IntArray]:
    """The nodes in an order that does not depend on how they are numbered, and their classes, or tenths of targets."""
    exact, groups = (codes, codes) if codes.dtype.kind != "f" else ranks_and_tenths(codes)
    colouring = canonical_order(graph)
    return canonical_order(graph, labels=exact).order if colouring.tied else colouring.order, groups


def ranks_and_tenths(targets: FloatArray) -> tuple[IntArray, IntArray]:
    """The place of every target among the distinct ones, and the tenth of the nodes that it is in; −1 where unknown."""
    targets = check_numbers(targets, "targets", None).astype(np.float64, copy=False)
    ranks, tenths = np.full(len(targets), -1), np.full(len(targets), -1)
    known = are_known(targets)
    if known.any():
        ranks[known] = np.unique(targets[known], return_inverse=True)[1]
        parts = max(1, min(10, int(known.sum()) // 10))
        edges = np.quantile(targets[known], np.arange(1, parts) / parts)
        tenths[known] = np.searchsorted(edges, targets[known], side="right")
    return ranks, tenths


def fit_split(graph: Graph, split: Any, seed: int, weights: FloatArray | None = None) -> Split:
    """What models are trained on: the labelled nodes of `pick_split`, with validation nodes among them.

    Nodes whose weight is 0 are not among them.
    """
    check_graph(graph)
    if not graph.labelled.any():
        raise ValueError(
            "the graph has no labels to learn from; give them with graph.replace(labels=...), or name them where it is "
            "read or made: label='kind', or Graph.from_networkx(g, labels='club')"
        )
    whole = with_validation(graph, without_weightless(pick_split(graph, split, seed), weights), seed)
    part = Split(*(nodes[graph.labelled[nodes]] for nodes in whole))
    for name in ("train", "val"):
        if not len(getattr(part, name)):
            raise ValueError(
                f"the split has no labelled {name} nodes; models are trained on the one part and chosen on the other. "
                "Label more nodes, or pass another split, such as split='random'"
            )
    return part


def to_learn(
    graph: Graph, split: Any, stand_in: str | None, seed: int, weights: FloatArray | None = None
) -> tuple[Graph, Split, bool]:
    """The graph with features, `fit_split`, and whether degrees stand in for features."""
    if stand_in not in (None, "degree"):
        raise ValueError(f"stand_in must be None or 'degree', got {shown(stand_in)}")
    part = fit_split(graph, split, seed, weights)
    return with_features(graph, stand_in), part, graph.features is None


def _extended(
    member: Trained | TrainedNetwork, trees: Mapping[int, Hierarchy], places: IntArray
) -> Trained | TrainedNetwork:
    """A member for a graph that has grown."""
    if isinstance(member, TrainedNetwork):
        return member
    parts = member.parts
    return replace(
        member,
        tree=None if member.tree is None else trees[id(member.tree)],
        parts=None if parts is None else np.where(places >= 0, parts[np.maximum(places, 0)], np.int8(-1)),
    )


# ------------------------------------------------------------- writing and reading members


def _numbered(members: Sequence[Trained | TrainedNetwork]) -> Iterator[tuple[str, Trained | TrainedNetwork]]:
    """All that was trained, by the numbers that its arrays have in files: 3 for a member, 3.0 to 3.4 for its inner."""
    for i, member in enumerate(members):
        yield str(i), member
        yield from ((f"{i}.{part}", model) for part, model in enumerate(_inner(member)))


def _inner(member: Trained | TrainedNetwork) -> tuple[Trained, ...]:
    return member.inner if isinstance(member, Trained) else ()


def _parts_of(i: int | str) -> str:
    return f"parts_{i}"


def _written(model: Trained | TrainedNetwork) -> dict[str, Any]:
    """What is written of a training beside its arrays."""
    return {
        "channels": [list(facts) for facts in model.channels],
        "attention": [float(value) for value in model.run.attention],
        "run": {name: plain(getattr(model.run, name)) for name in _RUN_FIELDS},
    }


def _run_of(entry: Mapping[str, Any], state: dict[str, Any], history: Mapping[str, Any]) -> Run:
    numbers: dict[str, Any] = {key: float("nan") if value is None else value for key, value in entry["run"].items()}
    attention = np.array(entry["attention"], dtype=np.float32)
    return Run(**numbers, attention=attention, state=state, history={k: v.tolist() for k, v in history.items()})


def _member(
    entry: Mapping[str, Any],
    i: int,
    state: Mapping[str, Any],
    history: Mapping[str, Any],
    trees: Mapping[Any, Hierarchy],
    classes: int,
    columns: int,
) -> Trained | TrainedNetwork:
    recipe = recipe_of(entry["recipe"])
    run = _run_of(entry, _arrays(i, state), history)
    weight = float(entry["weight"])
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"{_saved.MODEL} has a member of weight {weight}; weights are above 0")
    if isinstance(recipe, NetworkRecipe):
        need("torch", "torch", f"{recipe.label}, like all networks but PEGFAN and FSGNN,")
        from pegfan.training.networks import trained_network

        trained_network(recipe, run.state, columns, classes)  # fails if the weights are not its own
        return TrainedNetwork(recipe, classes, run, weight=weight)
    tree = None if entry["tree"] is None else trees[entry["tree"]]
    if (tree is not None) != recipe.has_tree:
        raise ValueError("a member and its recipe do not agree on a tree")
    first = entry.get("inner", [])
    if (recipe.stages > 1) != bool(first):
        raise ValueError("a member and its recipe do not agree on the number of stages")
    inner = tuple(
        _checked(Trained(recipe.changed(stages=1), tree, _facts_of(one), _run_of(one, _arrays(f"{i}.{f}", state), {})))
        for f, one in enumerate(first)
    )
    return _checked(Trained(recipe, tree, _facts_of(entry), run, fold=int(entry["fold"]), inner=inner, weight=weight))


def _facts_of(entry: Mapping[str, Any]) -> tuple[ChannelFacts, ...]:
    return tuple(ChannelFacts(*facts) for facts in entry["channels"])


def _checked(model: Trained) -> Trained:
    """The model, if its weights are those of its channels."""
    widths = tuple(facts.width for facts in model.channels)
    if model.network.widths != widths or len(model.run.attention) != len(widths):
        raise ValueError(f"{_WEIGHTS} holds a network whose channels are not those of {_saved.MODEL}")
    return model


def _with_parts(member: Trained | TrainedNetwork, parts: Any, known: Known | None) -> Trained | TrainedNetwork:
    """The member, with the parts of its training nodes if it has two stages."""
    if not isinstance(member, Trained) or not member.inner:
        return member
    assert known is not None
    told = known.of_fold(member.fold).codes >= 0
    fits = parts is not None and parts.dtype == np.int8 and parts.shape == told.shape
    if not fits or not np.array_equal(parts >= 0, told) or parts.max(initial=-1) >= len(member.inner):
        raise ValueError(f"{_INPUTS} holds no parts of training nodes that fit the stages of a member")
    return replace(member, parts=parts)


def _read_history(path: Path, max_bytes: str | float | None) -> dict[str, Any]:
    """The numbers that a training is told by, which become lists."""
    most = allowed_for(path, max_bytes)
    history = read_npz(path, most)
    entries = sum(math.prod(max(size, 1) for size in array.shape) for array in history.values())
    require(f"{path}: {entries:,} numbers", _LISTED * entries, most)
    return history


def _are_places(array: Any, shape: tuple[int, ...], count: int) -> bool:
    """Whether an array of a file holds places among so many, or -1."""
    fits = array.dtype == np.int64 and array.shape == shape
    return bool(fits and array.min(initial=-1) >= -1 and array.max(initial=-1) < count)


def _are_scale(arrays: Mapping[str, Any], columns: int) -> bool:
    """Whether arrays of a file are those of a `FeatureScale`."""
    if set(arrays) != set(_SCALE) or any(array.shape != (columns,) for array in arrays.values()):
        return False
    numbers = [arrays["centre"], arrays["scale"]]
    flags = [arrays["tail"], arrays["full"]]
    return (
        all(array.dtype == np.bool_ for array in flags)
        and all(array.dtype == np.float64 and np.isfinite(array).all() for array in numbers)
        and bool((arrays["scale"] > 0).all())
    )


def _are_vectors(array: Any, rows: int) -> bool:
    """Whether an array of a file holds vectors, as columns with so many entries."""
    return bool(array.dtype == np.float64 and array.ndim == 2 and len(array) == rows and np.isfinite(array).all())


def _check_kept(member: Trained | TrainedNetwork, known: Known | None, principal: PrincipalColumns | None) -> None:
    """Refuse a member whose channels are made of what is not there, or is not what they were made of."""
    if isinstance(member, TrainedNetwork):
        return
    widths = [facts.width for facts in member.channels if facts.name == "spectrum"]
    if member.recipe.spectrum and (known is None or known.vectors is None or widths != [known.vectors.shape[1]]):
        raise ValueError(f"{_INPUTS} lacks the vectors that predictions need")
    if member.recipe.scaling == "principal" and (
        principal is None or member.channels[0].width != principal.vectors.shape[1]
    ):
        raise ValueError(f"{_INPUTS} lacks the principal columns that predictions need")


def _read_names(stored: Any, n: int) -> tuple[tuple[str, ...] | None, str | None]:
    """Digests of the nodes' names and their salt; None where nodes have no names."""
    if stored is None:
        return None, None
    names, salt = stored["digests"], stored["salt"]
    fits = isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)
    if not fits or not isinstance(salt, str):
        raise ValueError(f"{_NODES} does not fit {_INPUTS}")
    return tuple(names), salt


def _arrays(i: int | str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of member i."""
    return {name.removeprefix(f"{i}/"): value for name, value in stored.items() if name.startswith(f"{i}/")}
