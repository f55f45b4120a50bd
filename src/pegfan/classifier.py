"""Classifiers and regressors of nodes in the style of scikit-learn: graph in, classes or numbers out."""

from __future__ import annotations

import inspect
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from pegfan import _defaults as default
from pegfan import _saved
from pegfan._arrays import Float32Array
from pegfan._checks import as_array, check_path, check_seed, shown
from pegfan.channels import FeatureScale
from pegfan.decisions import Decision
from pegfan.fitted import Fitted, Trained, TrainedNetwork, train_member, train_network_recipe
from pegfan.graph import Graph, Split
from pegfan.networks import NetworkRecipe
from pegfan.recipe import FIELDS, Known, Recipe
from pegfan.splits import TrainingData, settle_data
from pegfan.training import Network, Run, Settings
from pegfan.training.boosting import Boosted
from pegfan.trees import Hierarchy

if TYPE_CHECKING:
    from pegfan.explain import Explanation

__all__ = [
    "FSGNNClassifier",
    "NetworkClassifier",
    "NodeClassifier",
    "NodeModel",
    "NodeRegressor",
    "PEGFANClassifier",
    "PEGFANRegressor",
    "RecipeClassifier",
]


class NodeModel(ABC):
    """What all classifiers and regressors share: parameters, reasons, scores, and files.

    Attributes
    ----------
    fitted_ : pegfan.fitted.Fitted
        The trained networks and all that their predictions depend on.
    """

    fitted_: Fitted
    _numeric: ClassVar[bool] = False

    @abstractmethod
    def predict(self, graph: Any = None) -> NDArray[Any]:
        """The class or the number of every node."""

    @abstractmethod
    def fit(self, graph: Any, split: Any = default.SPLIT, *, sample_weight: Any = None) -> Self:
        """Learn from the training nodes of a split."""

    # -------------------------------------------------------------- parameters

    @classmethod
    def _own_names(cls) -> tuple[str, ...]:
        names = inspect.signature(cls.__init__).parameters
        return tuple(name for name in names if name not in ("self", "settings", "changes"))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name.

        Parameters
        ----------
        deep
            For scikit-learn; nothing here is nested.
        """
        del deep
        return {name: getattr(self, name) for name in self._own_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; what is fitted stays as it is until `fit` is called again."""
        known = self.get_params()
        for name in parameters:
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {shown(name)}; it has {', '.join(known)}")
        self.__dict__.update(vars(type(self)(**{**known, **parameters})))
        return self

    def __repr__(self) -> str:
        standard = type(self)().get_params()
        changed = {name: value for name, value in self.get_params().items() if value != standard[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    # ------------------------------------------------------------- predictions

    def explain(
        self, graph: Any = None, nodes: Any = None, target: int | str | None = None, top: int | None = None
    ) -> list[Explanation]:
        """Which columns, neighbours and channels carried the scores of some nodes, in shares that add up exactly.

        Parameters
        ----------
        graph
            As in `predict`.
        nodes
            Node indices, or the names of nodes where the graph has names; by default all.
        target
            The class whose score is explained, by name or number; by default the one that is predicted. A predicted
            number needs none: it is explained itself.
        top
            List only so many columns and nodes each; the others are one entry together.

        Returns
        -------
        list of pegfan.explain.Explanation
            One per node asked for.

        Notes
        -----
        `pegfan.explain` states the equations. Only networks with channels (PEGFAN, FSGNN) have reasons.

        Examples
        --------
        >>> import pegfan as pf
        >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
        >>> model = pf.PEGFANClassifier(h=4, epochs=20).fit(graph)
        >>> found = model.explain(graph, [7])[0]
        >>> abs(sum(share.contribution for share in found.channels) - (found.score - found.average)) < 1e-6
        True
        """
        from pegfan.explain import Explainer, find_nodes

        explainer = Explainer(self._check_fitted(), self._given(graph))
        wanted = np.arange(explainer.graph.n) if nodes is None else find_nodes(explainer.graph, nodes)
        return explainer.explain(wanted, target, top)

    def score(self, graph: Any = None, split: Any = None) -> float:
        """The graph's metric (`pegfan.metrics.METRICS`) on the test nodes of a split.

        Parameters
        ----------
        graph
            As in `predict`; with labels, or targets.
        split
            As in `fit`; by default the split that was fitted. Test nodes of another split may have been used in
            training, and so may those that ``"random"`` draws on a changed graph.
        """
        return self._check_fitted().score(self._given(graph), split)

    def extended(self, graph: Any, places: Any) -> Self:
        """The model for a graph that has grown from the one it was fitted to, without fitting again.

        Old nodes keep their places in the trees, and new ones join the clusters of their neighbours
        (`pegfan.trees.extend_tree`); without this, predictions for another graph build new trees.

        Parameters
        ----------
        graph
            As in `fit`; with the same features.
        places
            The place of every node in the graph that was fitted, -1 for nodes that are new. Every old node must be
            there: `pegfan.datasets.Source.grown` makes both from tables.

        Examples
        --------
        >>> import numpy as np
        >>> import pegfan as pf
        >>> whole = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
        >>> model = pf.PEGFANClassifier(epochs=5).fit(whole.subgraph(np.arange(280)), split="random")
        >>> after = model.extended(whole, np.where(np.arange(300) < 280, np.arange(300), -1))
        >>> after.predict_proba().shape
        (300, 4)
        """
        fitted = self._check_fitted().extended(as_graph(graph, self._numeric), as_array(places, "places"))
        result = copy(self)
        result.fitted_ = fitted
        return result

    def _to_fit(self, graph: Any) -> Graph:
        """The graph that is given to `fit`, if it has what the model can learn."""
        given, own = as_graph(graph, self._numeric), type(self).__name__
        if self._numeric and given.labels is not None:
            fix = own.replace("Regressor", "Classifier")
            raise ValueError(
                f"{own} learns numbers, and the graph has classes; use {fix}, or graph.replace(targets=...)"
            )
        if given.targets is not None and not self._numeric:
            fix = "AutoRegressor or PEGFANRegressor"
            raise ValueError(f"{own} learns classes, and the graph has numeric targets; use {fix}")
        return given

    def _fitted(
        self,
        trained: Trained | TrainedNetwork,
        data: TrainingData,
        split: Any,
        seed: int,
        known: Known | None,
        scale: FeatureScale | None,
    ) -> Fitted:
        """What was fitted, with the split as it was asked for."""
        kept = kept_split(split, data.split)
        if isinstance(kept, int):
            trained = replace(trained, run=replace(trained.run, split=kept))
        return Fitted.of([trained], data.graph, kept, seed, stood_in=data.stood_in, known=known, scale=scale)

    def _given(self, graph: Any) -> Graph | None:
        """A graph to predict on, with a warning where it cannot be told which nodes were there in training."""
        known = self._check_fitted().known
        found = None if graph is None else as_graph(graph, self._numeric)
        if found is not None and known is not None and (doubt := known.doubt(found)) is not None:
            warnings.warn(doubt, stacklevel=4)
        return found

    def _check_fitted(self) -> Fitted:
        fitted: Fitted | None = getattr(self, "fitted_", None)
        if fitted is None:
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(graph) first, or load(folder)")
        return fitted

    # ------------------------------------------------------------------- files

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the fitted model to a folder, which appears whole or not at all.

        Parameters
        ----------
        folder
            Where. ``model.json`` says what was fitted and with which packages, ``weights.safetensors`` holds
            the weights, ``tree_*.npz`` the trees, ``history.npz`` the course of the training; `AutoClassifier` also
            writes the training labels, and digests of the nodes' names to find them by. The graph is not saved.
        overwrite
            Whether to replace a model that is there. A folder with other files in it is never replaced.
        """
        about = (type(self).__name__, self._kept(), self._more())
        return _saved.save_fitted(self._check_fitted(), folder, *about, overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], max_bytes: str | float | None = None) -> Self:
        """Read a model that `save` wrote; anything else is a ValueError.

        Parameters
        ----------
        folder
            The folder. `pegfan.load_classifier` reads one whose class is not known.
        max_bytes
            The memory that the arrays of a file may take, in bytes or as ``"8GB"``; by default 50 times the size of the
            file, and 16 MB in any case.
        """
        from safetensors import SafetensorError

        source = check_path(folder, "folder")
        about = _saved.read_description(source)
        if about["class"] != cls.__name__:
            raise ValueError(f"{source} holds a {about['class']}, not a {cls.__name__}; use {about['class']}.load")
        try:
            result = cls(**about["parameters"])
            result.fitted_ = _saved.load_fitted(source, about, max_bytes)
            result._take(about)
            return result
        except (
            *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError),
            *(OSError, RuntimeError, SafetensorError),
        ) as error:
            raise ValueError(f"{source} is not a usable model: {error}") from error

    def _kept(self) -> dict[str, Any]:
        """The parameters that are saved."""
        return self.get_params()

    def _more(self) -> dict[str, Any]:
        """What a class saves besides, in ``model.json``."""
        return {}

    def _take(self, about: Mapping[str, Any]) -> None:  # noqa: B027 - most classes have nothing to take
        """Take back what `_more` gave."""


class NodeClassifier(NodeModel):
    """What all classifiers share: classes, and predictions of them."""

    @property
    def classes_(self) -> NDArray[Any]:
        """Names of the classes, or their numbers."""
        return self._check_fitted().classes

    def predict(
        self, graph: Any = None, *, threshold: float | None = None, flag_share: float | None = None
    ) -> NDArray[Any]:
        """The class of every node: its name if the fitted graph named classes, else its number.

        It is the most probable one, unless `AutoClassifier` found that another rule does better: of two unequal classes
        it takes class 1 from the threshold of ``fitted_.decision`` on.

        Parameters
        ----------
        graph
            As in `fit`; a tuple may leave y out. By default the graph that was fitted.
        threshold
            For two classes: the probability from which class 1 is decided on.
        flag_share
            For two classes: the share of the nodes that class 1 is decided on for, those with its highest
            probabilities; more where several are equal.
        """
        logs = self._log_probabilities(graph)
        known = self._check_fitted().graph if graph is None else as_graph(graph, self._numeric)
        some = logs if known is None else logs[known.subjects]
        return np.asarray(self.classes_[self.decided(some, threshold, flag_share)[1].classes(logs)])

    def decided(
        self, log_probabilities: Any, threshold: float | None = None, flag_share: float | None = None
    ) -> tuple[NDArray[Any], Decision]:
        """Places of the classes that `predict` gives for logarithms of ``predict_proba``, and the decision behind them.

        Parameters
        ----------
        log_probabilities
            Of some nodes.
        threshold, flag_share
            As in `predict`.
        """
        decision = self._check_fitted().decision
        if threshold is not None or flag_share is not None:
            if len(self.classes_) != 2:
                raise ValueError(f"a threshold is for two classes, and the model has {len(self.classes_)}")
            decision = decision.asked(log_probabilities, threshold, flag_share)
        return decision.classes(log_probabilities), decision

    def predict_proba(self, graph: Any = None) -> Float32Array:
        """The probabilities of the classes, in the order of ``classes_``; one row per node.

        Parameters
        ----------
        graph
            As in `predict`.

        Notes
        -----
        On any other graph, even if only an edge was added, trees are built again with the same number of levels K: if
        one would have more, the root holds what is left; if it has fewer, the children of the root are repeated as
        clusters with one child, so that the finest and the coarsest scales stay those of the training, and the
        channels between them are zero. Feature columns are matched by name if both graphs have names
        (``graph.feature_names``), and by order otherwise. Nodes are matched by their ids, ``graph.ids``: what is known
        of training nodes is known of the nodes that have their names, in whatever order; nodes without names are called
        0, 1, ..., n - 1. If these are more or fewer than in training, there is a warning.
        """
        return np.asarray(np.exp(self._log_probabilities(graph)))

    def _log_probabilities(self, graph: Any) -> Float32Array:
        return self._check_fitted().log_probabilities(self._given(graph))


class NodeRegressor(NodeModel):
    """What all regressors share: predictions of numbers."""

    _numeric: ClassVar[bool] = True

    def predict(self, graph: Any = None) -> NDArray[Any]:
        """The number of every node, in the units of the targets.

        Parameters
        ----------
        graph
            As in `fit`; a tuple may leave y out. By default the graph that was fitted. Another graph is treated as in
            `NodeClassifier.predict_proba`.
        """
        return self._check_fitted().values(self._given(graph))


_STANDARD = Recipe()


class _OfRecipe(NodeModel):
    """A model of one recipe: how it is fitted, and what can be seen of its training."""

    recipe: Recipe | Mapping[str, Any]
    stand_in: str | None
    random_state: int
    engine: str
    device: str | None

    def fit(self, graph: Any, split: Any = default.SPLIT, *, sample_weight: Any = None) -> Self:
        """Build the tree and the channels, and train on a split.

        Parameters
        ----------
        graph
            A `Graph`; a tuple (adjacency, X, y); PyG ``Data``; or a NetworkX graph with node attributes
            ``"features"`` (or ``"x"``) and ``"label"`` (or ``"y"``). For other names use `Graph.from_networkx`. A
            regressor takes y as the numbers to learn; of NetworkX graphs the attribute ``"target"``.
        split
            The place of a split in ``graph.splits``; a `Split` or (train, val, test); or ``"random"`` for a
            stratified one of 48, 32 and 20 per cent, drawn with `random_state`. Nodes without a label are left out;
            where there are no validation nodes, a quarter of the training nodes become some.
        sample_weight
            Per node of the graph, how much it counts in the losses of training and validation: 2 is as if there were
            two of it, 0 as if it had no label. By default 1.

        Returns
        -------
        self
        """
        recipe, seed = own_tree(Recipe.of(self.recipe)), check_seed(self.random_state, "random_state")
        data = settle_data(self._to_fit(graph), split, self.stand_in, seed, sample_weight)
        graph, nodes = data.graph, data.split
        recipe = recipe.settled(graph, nodes, data.stood_in)
        scale, tree = recipe.scale(graph), recipe.build_tree(graph)
        channels = recipe.channels(graph, tree, split=nodes, scale=scale)
        options: Any = {"sample_weight": data.sample_weight, "engine": self.engine, "device": self.device}
        trained, _ = train_member(recipe, graph, nodes, seed, tree, channels, history=True, **options)
        known = Known.of(graph, nodes.train) if recipe.labels or recipe.adjacency else None
        self.fitted_ = self._fitted(trained, data, split, seed, known, scale)
        return self

    def _kept(self) -> dict[str, Any]:
        parameters = self.get_params()
        if "recipe" in parameters:
            parameters["recipe"] = Recipe.of(self.recipe).to_dict()
        return parameters

    @property
    def run_(self) -> Run:
        """The training."""
        return self._check_fitted().members[0].run

    @property
    def history_(self) -> dict[str, list[Any]]:
        """``train_loss``, ``val_loss``, ``val_metric`` and ``attention`` of every epoch."""
        return self.run_.history or {}

    @property
    def tree_(self) -> Hierarchy | None:
        """The tree of the fitted graph; None where channels need none."""
        return self._check_fitted().members[0].tree

    @property
    def attention_(self) -> dict[str, float]:
        """The weight of each channel, by its name."""
        return self._check_fitted().members[0].attention

    @property
    def network_(self) -> Network | Boosted:
        """The trained network, or boosted trees."""
        return self._trained().network

    def to_torch(self) -> Any:
        """The trained network as a torch module, `pegfan.models.ChannelNetwork`."""
        from pegfan.models import ChannelNetwork

        network = self._trained().network
        if isinstance(network, Boosted):
            raise ValueError("the model is boosted trees, which torch has no module for; use head='network'")
        return ChannelNetwork.from_state(self.run_.state, network.settings)

    def _trained(self) -> Trained:
        member = self._check_fitted().members[0]
        assert isinstance(member, Trained)
        return member


class RecipeClassifier(_OfRecipe, NodeClassifier):
    """A classifier of one recipe: the tree, the channels and the settings that it describes.

    Parameters
    ----------
    recipe
        `pegfan.Recipe`, or a mapping of its fields and settings that differ from the defaults.
    stand_in
        What a graph without features gets: ``"degree"`` (`pegfan.datasets.stand_in_features`), or None for an error.
    random_state
        Of weights, dropout and ``split="random"``.
    engine, device
        See `pegfan.train`.

    Attributes
    ----------
    classes_, attention_, history_, run_, network_
        As in `PEGFANClassifier`.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> recipe = pf.Recipe.of({"method": "none", "regime": "all", "labels": True, "epochs": 40})
    >>> model = pf.RecipeClassifier(recipe).fit(graph)
    >>> list(model.attention_)[-3:]
    ['Y near', 'Y far', 'Y X']
    """

    def __init__(
        self,
        recipe: Recipe | Mapping[str, Any] = _STANDARD,
        stand_in: Literal["degree"] | None = default.STAND_IN,
        random_state: int = default.SEED,
        engine: Literal["auto", "fast", "plain"] = "auto",
        device: str | None = None,
    ) -> None:
        self.recipe, self.stand_in, self.random_state = recipe, stand_in, random_state
        self.engine, self.device = engine, device


class NetworkClassifier(NodeClassifier):
    """A classifier of any other network: GCN, GAT, GraphSAGE, MLP, label propagation and so on.

    Parameters
    ----------
    model
        Which: a name of `pegfan.networks.NETWORKS`, such as ``"gcn"``, ``"gat"`` or ``"mlp"``.
    stand_in
        What a graph without features gets: ``"degree"`` (`pegfan.datasets.stand_in_features`), or None for an error.
    random_state
        Of weights, dropout and ``split="random"``.
    device
        Where torch computes, such as ``"cuda"``; by default the CPU.
    **changes
        Options of the network and of its training, such as ``hidden=128`` or ``lr=0.005``: see
        `pegfan.networks.NetworkRecipe`.

    Attributes
    ----------
    classes_, history_, run_
        As in `PEGFANClassifier`.
    recipe : pegfan.networks.NetworkRecipe
        The parameters as one value.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(1.0, n=300, n_edges=3000, n_features=20)
    >>> model = pf.NetworkClassifier("sage", hidden=16, epochs=40).fit(graph, split=0)
    >>> model.predict(graph).shape, model.score(graph, split=0) > 0.3
    ((300,), True)
    >>> model
    NetworkClassifier('sage', hidden=16, epochs=40)
    """

    def __init__(
        self,
        model: str = "gcn",
        stand_in: Literal["degree"] | None = default.STAND_IN,
        random_state: int = default.SEED,
        device: str | None = None,
        **changes: Any,
    ) -> None:
        self.recipe = NetworkRecipe.of({"model": model, **changes})
        self.stand_in, self.random_state, self.device = stand_in, random_state, device

    @property
    def model(self) -> str:
        """Which network it is."""
        return self.recipe.model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name, those of the recipe among them.

        Parameters
        ----------
        deep
            For scikit-learn; nothing here is nested.
        """
        return super().get_params(deep) | self.recipe.to_dict()

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; what is fitted stays as it is until `fit` is called again."""
        own = {
            name: parameters.pop(name) for name in list(parameters) if name in ("stand_in", "random_state", "device")
        }
        recipe = self.recipe
        if parameters.get("model", recipe.model) != recipe.model:  # another network has other options
            own_to_it = (*recipe.options, "relation_file")
            kept = {name: value for name, value in recipe.changes().items() if name not in own_to_it}
            self.recipe = NetworkRecipe.of({**kept, **parameters})
        else:
            self.recipe = recipe.changed(**parameters)
        self.__dict__.update(own)
        return self

    def __repr__(self) -> str:
        standard = type(self)(self.model)
        own = {n: getattr(self, n) for n in ("stand_in", "random_state", "device")}
        changed = {n: value for n, value in own.items() if value != getattr(standard, n)} | self.recipe.changes()
        words = ", ".join([repr(self.model), *(f"{name}={value!r}" for name, value in changed.items())])
        return f"{type(self).__name__}({words})"

    def fit(self, graph: Any, split: Any = default.SPLIT, *, sample_weight: Any = None) -> Self:
        """Train on a split.

        Parameters
        ----------
        graph, split, sample_weight
            As in `RecipeClassifier`.

        Returns
        -------
        self
        """
        recipe, seed = self.recipe, check_seed(self.random_state, "random_state")
        if recipe.relation_file is not None:
            raise ValueError(
                "a classifier makes its relations; recipes with a relation_file are for stored runs, see Job"
            )
        data = settle_data(self._to_fit(graph), split, self.stand_in, seed, sample_weight)
        graph, nodes = data.graph, data.split
        scale = FeatureScale.of(graph.features) if recipe.scaling == "columns" else None
        options: Any = {"sample_weight": data.sample_weight, "device": self.device, "history": True}
        trained = train_network_recipe(recipe, graph, nodes, seed, scale=scale, **options)
        known = Known.of(graph, nodes.train) if recipe.needs_labels else None
        self.fitted_ = self._fitted(trained, data, split, seed, known, scale)
        return self

    @property
    def run_(self) -> Run:
        """The training."""
        return self._check_fitted().members[0].run

    @property
    def history_(self) -> dict[str, list[Any]]:
        """``train_loss``, ``val_loss`` and ``val_metric`` of every epoch."""
        return self.run_.history or {}

    def to_torch(self) -> Any:
        """The trained network as a torch module of `pegfan.models`."""
        from pegfan.training.networks import trained_network

        fitted = self._check_fitted()
        return trained_network(fitted.members[0].recipe, self.run_.state, fitted.columns, len(fitted.classes))


class _Parametric(_OfRecipe):
    """A model whose recipe is given by parameters of its own, settings among them."""

    settings: Settings
    _fixed: ClassVar[dict[str, Any]] = {}

    def _set_settings(self, settings: Settings | Mapping[str, Any] | None, changes: Mapping[str, Any]) -> None:
        every = asdict(Settings.of(settings))
        unknown = next((name for name in changes if name not in every), None)
        if unknown is not None:
            names = ", ".join([*self._own_names(), "settings", *every])
            raise ValueError(f"{type(self).__name__} has no parameter {unknown!r}; it has {names}")
        self.settings = Settings(**{**every, **changes})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name, those of the settings among them.

        Parameters
        ----------
        deep
            For scikit-learn; nothing here is nested.
        """
        return super().get_params(deep) | asdict(self.settings)

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; what is fitted stays as it is until `fit` is called again."""
        if "settings" in parameters:
            parameters = {**asdict(Settings.of(parameters.pop("settings"))), **parameters}
        return super().set_params(**parameters)

    @property
    def recipe(self) -> Recipe:  # type: ignore[override]
        """The parameters as a recipe."""
        own = {name: value for name, value in self.get_params().items() if name in FIELDS}
        return Recipe.of({**self._fixed, **own})


class PEGFANClassifier(_Parametric, NodeClassifier):
    """PEGFAN as a classifier: tree, framelets, channels and training behind `fit` and `predict`.

    Parameters
    ----------
    h, method
        Of the tree, see `pegfan.build_tree`; ``"none"`` means no tree, as in `FSGNNClassifier`.
    direction
        Which side of directed edges the tree and the hops use; ``"out"`` is what the paper's code does.
    kind
        Of the channels, see `pegfan.make_channels`.
    regime
        ``"homophily"``, ``"heterophily"``, ``"all"``, or ``"auto"``: by the edge homophily among training nodes.
    hops
        r, the highest power of the hop matrix.
    scaling
        ``"l1"`` divides each row of X by its sum of absolute values, as the paper does on real data; ``"columns"``
        brings columns to one scale; ``"principal"`` has at most 32 mixtures of columns in their place; or ``"none"``.
    stand_in
        What a graph without features gets: ``"degree"`` (`pegfan.datasets.stand_in_features`), which is not scaled, or
        None for an error.
    random_state
        Of weights, dropout and ``split="random"``.
    engine, device
        See `pegfan.train`.
    settings
        `pegfan.Settings`, or a mapping of some of them.
    **changes
        Settings by name, such as ``epochs=200`` or ``lr_fc=0.01``; they override `settings`.

    Attributes
    ----------
    classes_ : array
        Names of the classes, or their numbers.
    tree_ : Hierarchy
        None with ``method="none"``.
    attention_ : dict
        The weight of each channel, by its name.
    history_ : dict
        ``train_loss``, ``val_loss``, ``val_metric`` and ``attention`` of every epoch.
    run_ : pegfan.training.Run
    network_ : pegfan.training.Network
    recipe : pegfan.Recipe
        The parameters as one value.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> model = pf.PEGFANClassifier(kind="b", scaling="none", epochs=60).fit(graph, split=0)
    >>> model.score(graph, split=0) > 0.5
    True
    >>> model.predict(graph).shape, model.predict_proba(graph).shape[1] == len(model.classes_)
    ((300,), True)
    >>> model
    PEGFANClassifier(kind='b', scaling='none', epochs=60)
    """

    def __init__(
        self,
        h: int = default.H,
        method: str = default.METHOD,
        direction: Literal["out", "in", "symmetric", "both", "words"] = default.DIRECTION,
        kind: str = default.KIND,
        regime: str = default.REGIME,
        hops: int = default.HOPS,
        scaling: Literal["none", "l1", "columns", "principal"] = default.SCALING,
        stand_in: Literal["degree"] | None = default.STAND_IN,
        random_state: int = default.SEED,
        engine: Literal["auto", "fast", "plain"] = "auto",
        device: str | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        self.h, self.method, self.direction, self.kind, self.regime, self.hops = (
            h,
            method,
            direction,
            kind,
            regime,
            hops,
        )
        self.scaling, self.stand_in, self.random_state = scaling, stand_in, random_state
        self.engine, self.device = engine, device
        self._set_settings(settings, changes)


class PEGFANRegressor(_Parametric, NodeRegressor):
    """PEGFAN for numeric targets: the network of `PEGFANClassifier` with one output, trained by the squared error.

    Parameters
    ----------
    h, method, direction, kind, regime, hops, stand_in, random_state, engine, device, settings, **changes
        As in `PEGFANClassifier`; so are the attributes, except for the classes.
    scaling
        As there, but ``"columns"`` by default.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> graph = graph.replace(targets=graph.features @ np.arange(20))
    >>> model = pf.PEGFANRegressor(epochs=100).fit(graph, split=0)
    >>> model.score() > 0.5, model.predict().shape
    (True, (300,))
    >>> model
    PEGFANRegressor(epochs=100)
    """

    def __init__(
        self,
        h: int = default.H,
        method: str = default.METHOD,
        direction: Literal["out", "in", "symmetric", "both", "words"] = default.DIRECTION,
        kind: str = default.KIND,
        regime: str = default.REGIME,
        hops: int = default.HOPS,
        scaling: Literal["none", "l1", "columns", "principal"] = "columns",
        stand_in: Literal["degree"] | None = default.STAND_IN,
        random_state: int = default.SEED,
        engine: Literal["auto", "fast", "plain"] = "auto",
        device: str | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        self.h, self.method, self.direction, self.kind, self.regime, self.hops = (
            h,
            method,
            direction,
            kind,
            regime,
            hops,
        )
        self.scaling, self.stand_in, self.random_state = scaling, stand_in, random_state
        self.engine, self.device = engine, device
        self._set_settings(settings, changes)


class FSGNNClassifier(_Parametric, NodeClassifier):
    """FSGNN, the network without framelets, as a classifier.

    Parameters
    ----------
    hops
        r, the highest power of the hop matrices.
    regime, direction, scaling, stand_in, random_state, engine, device, settings, **changes
        As in `PEGFANClassifier`; so are the attributes, with no tree.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> model = pf.FSGNNClassifier(hops=2, regime="all", epochs=60).fit(graph)
    >>> list(model.attention_)
    ['X', 'S X', 'S~ X', 'S^2 X', 'S~^2 X']
    """

    _fixed: ClassVar[dict[str, Any]] = {"method": "none"}

    def __init__(
        self,
        hops: int = default.HOPS,
        regime: str = default.REGIME,
        direction: Literal["out", "in", "symmetric", "both", "words"] = default.DIRECTION,
        scaling: Literal["none", "l1", "columns", "principal"] = default.SCALING,
        stand_in: Literal["degree"] | None = default.STAND_IN,
        random_state: int = default.SEED,
        engine: Literal["auto", "fast", "plain"] = "auto",
        device: str | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        self.hops, self.regime, self.direction, self.scaling = hops, regime, direction, scaling
        self.stand_in, self.random_state, self.engine, self.device = stand_in, random_state, engine, device
        self._set_settings(settings, changes)


# ------------------------------------------------------------------ the boundary


def as_graph(given: Any, numeric: bool = False) -> Graph:
    """The graph that anything stands for, with its features, splits, and labels or numbers; see `Graph.of`."""
    return Graph.of(given, truth="targets" if numeric else "labels")


def own_tree(recipe: Recipe) -> Recipe:
    """A recipe that a classifier can fit: one that builds its tree, on this graph and on others."""
    if recipe.tree_file is not None:
        raise ValueError("a classifier builds its trees; recipes with a tree_file are for stored runs, see Job")
    return recipe


def kept_split(split: Any, part: Split) -> Split | int | str:
    """A split as given to `fit`, for `score`."""
    return split if isinstance(split, str) else int(split) if isinstance(split, (int, np.integer)) else part
