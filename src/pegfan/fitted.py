"""A fitted model: trained recipes, and what they need to predict on any graph."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import Float32Array, FloatArray, IntArray
from pegfan._checks import check_flag, check_kind, check_numbers, check_predictions
from pegfan._extras import need
from pegfan.channels import Channel, Channels, FeatureScale, PrincipalColumns, names, spectral_vectors
from pegfan.decisions import Decision
from pegfan.graph import Graph, Split, as_split, check_graph
from pegfan.metrics import METRICS, score
from pegfan.networks import NetworkRecipe
from pegfan.recipe import Known, Recipe
from pegfan.splits import pick_split, with_features
from pegfan.stages import believe, deal, without_part
from pegfan.training import Network, Run
from pegfan.training.boosting import Boosted, boost
from pegfan.training.engine import TrainingTask, check_metric, choose_engine, train_splits
from pegfan.training.linear import fit_linear, linear_settings
from pegfan.training.loop import Unfinished
from pegfan.trees import Hierarchy, extend_tree

__all__ = [
    "ChannelFacts",
    "Fitted",
    "Trained",
    "TrainedNetwork",
    "mean_of",
    "network_inputs",
    "only_classes",
    "train_network_recipe",
]

LIKELIEST = Decision()
"""The likeliest class."""


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

        codes = known.labels_of(graph) if known is not None else None
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
        What to train, on what. The graph has features and labels; train and val have labels.
    inputs
        What `network_inputs` gives, if made before.
    scale
        Of the feature columns, likewise.
    **options
        Of `pegfan.training.networks.train_network`: sample_weight, device, history, progress.
    """
    check_kind(recipe, "recipe", NetworkRecipe)
    split = as_split(split, check_graph(graph).n)
    if graph.labels is None:
        raise ValueError(only_classes(recipe.label))
    inputs = network_inputs(recipe, graph, scale) if inputs is None else inputs
    from pegfan.training.networks import train_network

    run = train_network(recipe, inputs, graph.labels, split, graph.n_classes, graph.metric, seed, **options)
    return TrainedNetwork(recipe, graph.n_classes, run, "torch")


def train_member(
    recipe: Recipe, graph: Graph, split: Split, seed: int, tree: Hierarchy | None, channels: Channels, **options: Any
) -> tuple[Trained, Channels]:
    """Train a recipe on a graph; the channels that were trained on come with it, for predictions on the same graph.

    Parameters
    ----------
    recipe, split
        As settled on the way in, see `Recipe.settled` and `pegfan.splits.settle_data`.
    graph, seed, tree, channels
        What it is trained on, and the channels that the recipe makes of it.
    **options
        Of `pegfan.train`: sample_weight, engine, device, history, progress, until.

    Raises
    ------
    pegfan.training.loop.Unfinished
        If the time is over before the second of two stages.
    """
    assert graph.truth is not None
    check_metric(graph.metric, graph.n_classes, recipe.settings.stop, graph.truth[split.val], "the split")
    if recipe.stages > 1:
        return _train_stages(recipe, graph, split, seed, tree, channels, **options)
    return _train_channels(recipe, graph, split, seed, tree, channels, **options), channels


def _train_channels(
    recipe: Recipe, graph: Graph, split: Split, seed: int, tree: Hierarchy | None, channels: Channels, **options: Any
) -> Trained:
    """Train what the recipe says; which engine and device are wanted makes no difference to boosting and the like."""
    data: Any = (channels, graph.truth, split, recipe.settings)
    classes = 1 if graph.labels is None else graph.n_classes
    engine, device = options.pop("engine", "auto"), options.pop("device", None)
    options |= {"classes": classes, "metric": graph.metric, "seed": seed}
    if recipe.is_boosted:
        run, engine = boost(*data, leaves=recipe.leaves, **options), recipe.head
    elif recipe.is_linear:
        shared = {name: value for name, value in options.items() if name not in ("progress", "until")}
        run, engine = fit_linear(*data, constant=recipe.head == "constant", **shared), recipe.head
    else:
        if recipe.settings.class_weights and graph.labels is None:
            raise ValueError("class_weights are for classes, and what is to be predicted are numbers; leave them out")
        engine = choose_engine(engine, device, recipe.settings, None, channels, len(split.train))
        task = TrainingTask(channels, graph.truth, [split], recipe.settings, engine=engine, device=device, **options)
        run = train_splits(task).runs[0]
    return Trained(recipe, tree, tuple(map(ChannelFacts.of, channels)), run, engine)


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
        The graph's digest: of edges and features, not of labels.
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
    decision: Decision = LIKELIEST
    graph: Graph | None = None

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
        decision: Decision = LIKELIEST,
    ) -> Self:
        """What was fitted to a graph, with what the members' channels need of it on other graphs."""
        check_graph(graph, needs="features")
        check_flag(stood_in, "stood_in")
        assert graph.features is not None
        recipes = [member.recipe for member in members if isinstance(member, Trained)]
        if any(recipe.spectrum for recipe in recipes):
            known = Known.of(graph, np.empty(0, np.int64)) if known is None else known
            known = replace(known, vectors=spectral_vectors(graph))
        principal = any(recipe.scaling == "principal" for recipe in recipes)
        return cls(
            members=tuple(members),
            classes=graph.classes,
            metric=graph.metric,
            stood_in=stood_in,
            columns=int(graph.features.shape[1]),
            feature_names=None if stood_in else graph.feature_names,
            fingerprint=graph.digest,
            split=split,
            seed=seed,
            known=known,
            scale=scale,
            principal=PrincipalColumns.of_graph(graph) if principal else None,
            decision=decision,
            graph=graph,
        )

    @property
    def trees(self) -> list[Hierarchy]:
        """The members' trees, each once."""
        return list({id(m.tree): m.tree for m in self.members if m.tree is not None}.values())

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
        return None if self.known is None or self.known.folds is None else self.known.held_out(graph)

    def prepared(self, graph: Graph | None) -> Graph:
        """A graph as the members see it, with the features of the training; by default the one that was fitted."""
        if graph is not None:
            check_graph(graph)
        return self._graph() if graph is None else self._aligned(graph)

    def channels_on(self, known: Graph) -> Iterator[Channels]:
        """The channels of each member that has channels, on a `prepared` graph; made one after the other."""
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
        return None if self.known is None else self.known.of_fold(member.fold)

    def is_fitted_to(self, graph: Graph) -> bool:
        """Whether a graph, with features, is the one that was fitted, so that its trees are those that are kept."""
        return graph is self.graph or graph.digest == self.fingerprint

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
        trees = {id(tree): extend_tree(tree, known, places) for tree in self.trees}
        members = [_extended(member, trees, np.asarray(places)) for member in self.members]
        return replace(
            self,
            members=tuple(members),
            known=None if self.known is None else self.known.extended(known, np.asarray(places)),
            fingerprint=known.digest,
            split=None,
            graph=known,
        )


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


def only_classes(what: str) -> str:
    """Say that something is for classes, where there are numeric targets."""
    check_kind(what, "what", str)
    return (
        f"{what} is for classes, and the labels are numbers to predict; pegfan train and AutoRegressor predict them, "
        "and label_kind='classes' reads them as classes"
    )


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
