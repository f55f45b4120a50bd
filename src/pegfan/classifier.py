"""Classifiers of nodes in the manner of scikit-learn: graph in, tree, channels and training inside, classes out."""

from __future__ import annotations

import hashlib
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from pegfan import _saved
from pegfan._npz import read_npz, write_npz
from pegfan.graph import Graph, Split
from pegfan.trees import Hierarchy, build_tree

if TYPE_CHECKING:
    from pegfan.channels import Channels
    from pegfan.training import Run, Settings

__all__ = ["FSGNNClassifier", "PEGFANClassifier", "load_classifier"]

_WEIGHTS, _TREE, _HISTORY = "weights.safetensors", "tree.npz", "history.npz"
_RUN_FIELDS = ("split", "seed", "epochs", "best_epoch", "val_loss", "val_metric", "test_metric", "seconds")


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What prediction needs beside the weights; parameters as they were when `fit` was called."""

    parameters: dict[str, Any]
    regime: str | None
    stand_in: bool  # whether degrees stood in for features
    columns: int
    names: tuple[str, ...]
    widths: tuple[int, ...]
    metric: str
    fingerprint: str
    graph: Graph | None  # not saved
    split: Split | int | str | None = 0  # as `fit` was given it; None if it was nodes, and the model was loaded

    def to_dict(self) -> dict[str, Any]:
        """What is saved of it; the channels are described with their network."""
        return {
            "parameters": self.parameters,
            "regime": self.regime,
            "stand_in": self.stand_in,
            "columns": self.columns,
            "metric": self.metric,
            "graph": self.fingerprint,
            "split": self.split if isinstance(self.split, (int, str)) else None,
        }

    @classmethod
    def from_dict(cls, about: Mapping[str, Any], names: tuple[str, ...] = (), widths: tuple[int, ...] = ()) -> _Fitted:
        """What `to_dict` wrote."""
        return cls(
            parameters=dict(about["parameters"]),
            regime=about.get("regime"),
            stand_in=about["stand_in"],
            columns=about["columns"],
            names=names,
            widths=widths,
            metric=about["metric"],
            fingerprint=about["graph"],
            graph=None,
            split=about.get("split", 0),  # older models do not say
        )


class _ChannelClassifier(ABC):
    """What the two classifiers share; they differ in the channels they make."""

    classes_: NDArray[Any]
    attention_: dict[str, float]
    history_: dict[str, list[Any]]
    run_: Run
    model_: Any
    tree_: Hierarchy
    settings: Settings
    features: str | None
    random_state: int
    engine: str
    device: str | None
    workers: int

    _network: ClassVar[str]
    _has_tree: ClassVar[bool]

    # -------------------------------------------------------------- parameters

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Store the constructor's arguments, settings checked."""
        from pegfan.training import Settings

        values = {name: value for name, value in given.items() if name in self._own_names()}
        settings = Settings.of(given["settings"])
        unknown = [name for name in given["changes"] if name not in asdict(settings)]
        if unknown:
            known = ", ".join([*self._own_names(), "settings", *asdict(settings)])
            raise ValueError(f"{type(self).__name__} has no parameter {unknown[0]!r}; it has {known}")
        self.settings = Settings.of({**asdict(settings), **given["changes"]})
        for name, value in values.items():
            setattr(self, name, value)

    @classmethod
    def _own_names(cls) -> tuple[str, ...]:
        names = inspect.signature(cls.__init__).parameters
        return tuple(name for name in names if name not in ("self", "settings", "changes"))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name, those of the settings among them.

        Parameters
        ----------
        deep
            For scikit-learn; nothing here is nested.
        """
        del deep
        return {name: getattr(self, name) for name in self._own_names()} | asdict(self.settings)

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; what is fitted stays as it is until `fit` is called again."""
        known = self.get_params()
        for name in parameters:
            if name not in known and name != "settings":
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
        if "settings" in parameters:
            known = {name: known[name] for name in self._own_names()}
        self.__dict__.update(vars(type(self)(**{**known, **parameters})))
        return self

    def __repr__(self) -> str:
        default = type(self)().get_params()
        changed = {name: value for name, value in self.get_params().items() if value != default[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    # ----------------------------------------------------------- fit, predict

    def fit(self, graph: Any, split: Any = 0) -> Self:
        """Build the tree and the channels, and train on a split.

        Parameters
        ----------
        graph
            A `Graph`; a tuple (adjacency, X, y); PyG ``Data``; or a NetworkX graph with node attributes
            ``"features"`` (or ``"x"``) and ``"label"`` (or ``"y"``). For other names use `Graph.from_networkx`.
        split
            The place of a split in ``graph.splits``; a `Split` or (train, val, test); or ``"random"`` for a
            stratified one of 48, 32 and 20 per cent, drawn with `random_state`.

        Returns
        -------
        self
        """
        from pegfan.training import train

        if self.features not in (None, "degree"):
            raise ValueError(f"features must be None or 'degree', got {self.features!r}")
        normalize = self.get_params()["normalize_features"]
        if normalize not in (False, "l1"):  # here, for features that stand in are not normalised
            raise ValueError(f"normalize_features must be False or 'l1', got {normalize!r}")
        seed = _as_seed(self.random_state)
        given = as_graph(graph)
        if given.labels is None:
            raise ValueError(
                "the graph has no labels to learn from; give them with graph.replace(labels=...), or name them where "
                "it is made: Graph.from_networkx(g, labels='club')"
            )
        part = _as_split(given, split, seed)
        stand_in = given.features is None and self.features == "degree"
        known = _with_features(given, stand_in)
        parameters = self.get_params()
        tree = self._build_tree(known, parameters, None) if self._has_tree else None
        channels = self._make_channels(known, tree, parameters, parameters.get("regime"), stand_in, part)
        result = train(
            channels,
            known.labels,
            part,
            self.settings,
            classes=known.n_classes,
            metric=known.metric,  # type: ignore[arg-type]
            seed=seed,
            engine=self.engine,  # type: ignore[arg-type]
            device=self.device,
            workers=self.workers,
            history=True,
        )
        names = known.class_names
        run = replace(result.runs[0], split=int(split)) if isinstance(split, (int, np.integer)) else result.runs[0]
        fitted = _Fitted(
            parameters=parameters,
            regime=channels.info.get("regime"),
            stand_in=stand_in,
            columns=int(known.features.shape[1]),
            names=channels.names,
            widths=channels.widths,
            metric=known.metric,
            fingerprint=_fingerprint(known),
            graph=known,
            split=_kept_split(split, part),
        )
        self._set(fitted, np.arange(known.n_classes) if names is None else names, tree, run)
        return self

    def predict(self, graph: Any = None) -> NDArray[Any]:
        """The most probable class of every node: its name if the fitted graph named classes, else its number.

        Parameters
        ----------
        graph
            As in `fit`; a tuple may leave y out. By default the graph that was fitted.
        """
        best = self._log_probabilities(graph).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, graph: Any = None) -> NDArray[np.float32]:
        """The probabilities of the classes, in the order of ``classes_``; one row per node.

        Parameters
        ----------
        graph
            As in `predict`.

        Notes
        -----
        On another graph than the fitted one, even if only an edge was added, the tree is built anew with as
        many levels K as the fitted tree has: where it would have more, the root holds what is left; where it
        has fewer, the children of the root are repeated as clusters of one child, so that the finest and the
        coarsest scales stay those of the training, and the channels between them are zero.
        """
        return np.asarray(np.exp(self._log_probabilities(graph)))

    def score(self, graph: Any = None, split: Any = None) -> float:
        """The graph's metric (accuracy or ROC AUC) on the test nodes of a split.

        Parameters
        ----------
        graph
            As in `predict`; with labels.
        split
            As in `fit`; by default the split that was fitted, for test nodes of another one may have been trained
            on. So may those that ``"random"`` draws on a changed graph.
        """
        from pegfan.training import score

        fitted = self._check_fitted()
        known = self._fitted_graph(fitted) if graph is None else as_graph(graph)
        if known.labels is None:
            raise ValueError("the graph has no labels to compare with; give them with graph.replace(labels=...)")
        if split is None and fitted.split is None:
            raise ValueError("the model was fitted to a split of its own, which is not saved; pass it as split=")
        part = _as_split(known, fitted.split if split is None else split, fitted.parameters["random_state"])
        test = part.test[known.labels[part.test] >= 0]
        if not test.size:
            raise ValueError("the split has no labelled test nodes, so there is nothing to score")
        if known.metric == "roc_auc" and len(self.classes_) != 2:
            raise ValueError(f"ROC AUC is for two classes, and the model was fitted to {len(self.classes_)}")
        labels = self._codes(known)[test]
        return float(score(self._log_probabilities(known)[test], labels, known.metric))

    # ------------------------------------------------------------------ files

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the fitted model to a folder, which appears whole or not at all.

        Parameters
        ----------
        folder
            Where. ``model.json`` says what was fitted and with which packages, ``weights.safetensors`` holds
            the weights, ``tree*.npz`` the trees, ``history.npz`` the course of the training; `AutoClassifier` also
            writes the training labels and the nodes' names. The graph is not saved.
        overwrite
            Whether to replace a model that is there. A folder with other files in it is never replaced.
        """
        fitted = self._check_fitted()
        about = {
            "class": type(self).__name__,
            "classes": {"dtype": self.classes_.dtype.str, "names": self.classes_.tolist()},
            **fitted.to_dict(),
            **self._description(fitted),
        }
        return _saved.write_model(folder, overwrite, about, self._write_parts)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; anything else is a ValueError.

        Parameters
        ----------
        folder
            The folder. `load_classifier` reads one whose class is not known.
        """
        from safetensors import SafetensorError

        source = Path(folder)
        about = _saved.read_description(source)
        if about["class"] != cls.__name__:
            raise ValueError(f"{source} holds a {about['class']}, not a {cls.__name__}; use {about['class']}.load")
        try:
            return cls._restore(source, about)
        except (KeyError, TypeError, AttributeError, ValueError, OSError, RuntimeError, SafetensorError) as error:
            raise ValueError(f"{source} is not a usable model: {error}") from error

    # ----------------------------------------------------------------- inside

    @abstractmethod
    def _make_channels(
        self,
        graph: Graph,
        tree: Hierarchy | None,
        parameters: Mapping[str, Any],
        regime: str | None,
        stand_in: bool,
        split: Split | None,
    ) -> Channels:
        """The channels of a graph on a tree."""

    def _build_tree(self, graph: Graph, parameters: Mapping[str, Any], levels: int | None) -> Hierarchy:
        """The tree of a graph, with as many levels as the fitted one; only for classifiers that have one."""
        raise TypeError(f"{type(self).__name__} has no tree")

    def _set(self, fitted: _Fitted, classes: NDArray[Any], tree: Hierarchy | None, run: Run) -> None:
        import torch

        from pegfan import models

        settings = {field: fitted.parameters[field] for field in ("hidden", "layers", "dropout", "hop_normalize")}
        with torch.device("meta"):  # the weights are known: none need be drawn, no memory taken
            model = getattr(models, self._network)(fitted.widths, len(classes), **settings)
        state = {name: torch.tensor(value) for name, value in run.state.items()}
        model.load_state_dict(state, assign=True)
        if tree is not None:
            self.tree_ = tree
        self.classes_, self.run_, self.model_ = classes, run, model.eval()
        self.attention_ = dict(zip(fitted.names, map(float, run.attention), strict=True))
        self.history_ = run.history or {}
        self._fitted = fitted

    def _check_fitted(self) -> _Fitted:
        fitted: _Fitted | None = getattr(self, "_fitted", None)
        if fitted is None:
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(graph) first, or load(folder)")
        return fitted

    def _fitted_graph(self, fitted: _Fitted) -> Graph:
        if fitted.graph is None:
            raise ValueError("a loaded model does not hold the graph it was fitted to; pass a graph")
        return fitted.graph

    def _graph_to_predict(self, graph: Any, fitted: _Fitted) -> Graph:
        known = self._fitted_graph(fitted) if graph is None else _with_features(as_graph(graph), fitted.stand_in)
        if known.features.shape[1] != fitted.columns:
            raise ValueError(
                f"the graph has {known.features.shape[1]} feature columns, and the model was fitted to "
                f"{fitted.columns}; give it the same features in the same order"
            )
        return known

    def _log_probabilities(self, graph: Any) -> NDArray[np.float32]:
        from pegfan.training import Network

        fitted = self._check_fitted()
        known = self._graph_to_predict(graph, fitted)
        tree = self._tree_of(known, fitted) if self._has_tree else None
        channels = self._make_channels(known, tree, fitted.parameters, fitted.regime, fitted.stand_in, None)
        settings = {field: fitted.parameters[field] for field in ("hidden", "layers", "hop_normalize")}
        return Network(self.run_.state, settings).predict(channels)

    def _tree_of(self, graph: Graph, fitted: _Fitted) -> Hierarchy:
        if graph is fitted.graph or (graph.n == self.tree_.n and _fingerprint(graph) == fitted.fingerprint):
            return self.tree_
        return pad_levels(self._build_tree(graph, fitted.parameters, self.tree_.K), self.tree_.K)

    def _codes(self, graph: Graph) -> NDArray[np.int64]:
        """The graph's labels as places in ``classes_``."""
        assert graph.labels is not None
        codes = graph.labels
        if graph.class_names is not None:
            place = {name: i for i, name in enumerate(self.classes_.tolist())}
            names = graph.class_names.tolist()
            used = np.unique(codes[codes >= 0])
            unknown = [names[k] for k in used if names[k] not in place]
            if unknown:
                raise ValueError(f"class {unknown[0]!r} is none of the fitted {self.classes_.tolist()}")
            codes = np.array([*(place.get(name, -1) for name in names), -1])[codes]
        elif codes.max(initial=-1) >= len(self.classes_):
            raise ValueError(f"class {codes.max()} is none of the {len(self.classes_)} classes that were fitted")
        return np.asarray(codes)

    def _description(self, fitted: _Fitted) -> dict[str, Any]:
        """What ``model.json`` says beside what all classifiers say."""
        levels = self.tree_.K if self._has_tree else None
        return {"K": levels, **describe_network(fitted.names, fitted.widths, self.run_)}

    def _write_parts(self, folder: Path) -> None:
        """Write the other files."""
        from safetensors.numpy import save

        state = {name: np.ascontiguousarray(value) for name, value in self.run_.state.items()}
        _saved.write_file(folder / _WEIGHTS, save(state))
        write_npz(folder / _HISTORY, {name: np.array(values) for name, values in self.history_.items()})
        if self._has_tree:
            self.tree_.save(folder / _TREE)

    @classmethod
    def _restore(cls, source: Path, about: Mapping[str, Any]) -> Self:
        from safetensors.numpy import load

        result = cls(**about["parameters"])
        state = load(_saved.read_file(source, _WEIGHTS, about))
        _saved.read_file(source, _HISTORY, about)
        history = {name: list(values) for name, values in read_npz(source / _HISTORY).items()}
        tree = None
        if cls._has_tree:
            _saved.read_file(source, _TREE, about)
            tree = Hierarchy.load(source / _TREE)
            if about["K"] != tree.K:
                raise ValueError(f"the tree has {tree.K} levels, {_saved.MODEL} says {about['K']}")
        names, widths, run = restore_network(about, state, history, int(about["parameters"]["layers"]))
        result._set(_Fitted.from_dict(about, names, widths), _saved.read_classes(about["classes"]), tree, run)
        return result


class PEGFANClassifier(_ChannelClassifier):
    """PEGFAN as a classifier: tree, framelets, channels and training behind `fit` and `predict`.

    Parameters
    ----------
    h, method
        Of the tree, see `pegfan.build_tree`.
    direction
        Which side of directed edges the tree and the hops use; ``"out"`` is what the paper's code does.
    channels
        The kind of channels, ``"a"``, ``"b"``, ``"c"`` or ``"as"``, see `pegfan.make_channels`.
    regime
        ``"homophily"``, ``"heterophily"``, or ``"auto"``: by the edge homophily among training nodes.
    hops
        r, the highest power of the hop matrix.
    normalize_features
        ``"l1"`` divides each row of X by its sum of absolute values, as the paper does on real data; or False.
    features
        What a graph without features gets: None for an error, or ``"degree"`` (`pegfan.datasets.stand_in_features`),
        which is not normalised.
    random_state
        Of weights, dropout and ``split="random"``.
    engine, device, workers
        See `pegfan.train`. One split keeps one worker busy.
    settings
        `pegfan.Settings`, or a mapping of some of them.
    **changes
        Settings by name, such as ``epochs=200`` or ``lr_fc=0.01``; they go before `settings`.

    Attributes
    ----------
    classes_ : array
        Names of the classes, or their numbers.
    tree_ : Hierarchy
    attention_ : dict
        The weight of each channel, by its name.
    history_ : dict
        ``train_loss``, ``val_loss``, ``val_metric`` and ``attention`` of every epoch.
    run_ : pegfan.training.Run
    model_ : pegfan.models.PEGFAN

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan.classifier import PEGFANClassifier
    >>> graph = pf.datasets.synthetic(0.0, n=300, edges=3000, features=20)
    >>> model = PEGFANClassifier(channels="b", epochs=60).fit(graph, split=0)
    >>> model.score(graph, split=0) > 0.5
    True
    >>> model.predict(graph).shape, model.predict_proba(graph).shape[1] == len(model.classes_)
    ((300,), True)
    >>> model
    PEGFANClassifier(channels='b', epochs=60)
    """

    _network = "PEGFAN"
    _has_tree = True

    def __init__(
        self,
        h: int = 8,
        method: Literal["auto", "ward", "matching", "adjacency"] = "auto",
        direction: Literal["out", "in", "symmetric"] = "out",
        channels: Literal["a", "b", "c", "as"] = "c",
        regime: Literal["homophily", "heterophily", "auto"] = "auto",
        hops: int = 3,
        normalize_features: Literal[False, "l1"] = "l1",
        features: Literal["degree"] | None = None,
        random_state: int = 42,
        engine: Literal["auto", "fast", "plain"] = "auto",
        device: str | None = None,
        workers: int = 1,
        settings: Settings | Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        self._keep(locals())

    def _build_tree(self, graph: Graph, parameters: Mapping[str, Any], levels: int | None) -> Hierarchy:
        chosen = {name: parameters[name] for name in ("method", "h", "direction")}
        return build_tree(graph, max_levels=levels, **chosen)

    def _make_channels(
        self,
        graph: Graph,
        tree: Hierarchy | None,
        parameters: Mapping[str, Any],
        regime: str | None,
        stand_in: bool,
        split: Split | None,
    ) -> Channels:
        from pegfan.channels import make_channels
        from pegfan.framelets import FrameletSystem

        assert tree is not None
        return make_channels(
            graph,
            FrameletSystem(tree),
            kind=parameters["channels"],
            regime=regime,  # type: ignore[arg-type]
            hops=parameters["hops"],
            direction=parameters["direction"],
            normalize_features=False if stand_in else parameters["normalize_features"],
            split=split,
        )


class FSGNNClassifier(_ChannelClassifier):
    """FSGNN, the network without framelets, as a classifier.

    Parameters
    ----------
    hops
        r, the highest power of the hop matrices.
    option
        ``"homophily"``, ``"heterophily"`` or ``"all"``, see `pegfan.make_fsgnn_channels`.
    direction, normalize_features, features, random_state, engine, device, workers, settings, **changes
        As in `PEGFANClassifier`, whose attributes it has too, but for the tree.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan.classifier import FSGNNClassifier
    >>> graph = pf.datasets.synthetic(0.0, n=300, edges=3000, features=20)
    >>> model = FSGNNClassifier(hops=2, epochs=60).fit(graph)
    >>> list(model.attention_)
    ['X', 'S X', 'S~ X', 'S^2 X', 'S~^2 X']
    """

    _network = "FSGNN"
    _has_tree = False

    def __init__(
        self,
        hops: int = 3,
        option: Literal["homophily", "heterophily", "all"] = "all",
        direction: Literal["out", "in", "symmetric"] = "out",
        normalize_features: Literal[False, "l1"] = "l1",
        features: Literal["degree"] | None = None,
        random_state: int = 42,
        engine: Literal["auto", "fast", "plain"] = "auto",
        device: str | None = None,
        workers: int = 1,
        settings: Settings | Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        self._keep(locals())

    def _make_channels(
        self,
        graph: Graph,
        tree: Hierarchy | None,
        parameters: Mapping[str, Any],
        regime: str | None,
        stand_in: bool,
        split: Split | None,
    ) -> Channels:
        from pegfan.channels import make_fsgnn_channels

        return make_fsgnn_channels(
            graph,
            hops=parameters["hops"],
            option=parameters["option"],
            direction=parameters["direction"],
            normalize_features=False if stand_in else parameters["normalize_features"],
        )


def load_classifier(folder: str | os.PathLike[str]) -> Any:
    """Read a saved model of whichever class: PEGFANClassifier, FSGNNClassifier or AutoClassifier.

    Examples
    --------
    >>> import tempfile
    >>> import pegfan as pf
    >>> from pegfan.classifier import FSGNNClassifier, load_classifier
    >>> graph = pf.datasets.synthetic(0.0, n=300, edges=3000, features=20)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = FSGNNClassifier(epochs=5).fit(graph).save(f"{place}/model")
    ...     load_classifier(folder)
    FSGNNClassifier(epochs=5)
    """
    name = _saved.read_description(Path(folder))["class"]
    from pegfan.auto import AutoClassifier  # which builds on this module

    kinds: dict[str, Any] = {kind.__name__: kind for kind in (PEGFANClassifier, FSGNNClassifier, AutoClassifier)}
    if name not in kinds:
        raise ValueError(f"{folder} holds a {name!r}; this version knows {', '.join(kinds)}")
    return kinds[name].load(folder)


# ------------------------------------------------------------------ the boundary


def as_graph(given: Any) -> Graph:
    """A Graph from a Graph, a tuple (adjacency, X[, y]), PyG data or a NetworkX graph."""
    if isinstance(given, Graph):
        return given
    if isinstance(given, tuple):
        if len(given) not in (2, 3):
            raise ValueError(f"a tuple must be (adjacency, X) or (adjacency, X, y), got {len(given)} entries")
        return Graph(given[0], features=given[1], labels=given[2] if len(given) == 3 else None)
    if getattr(given, "edge_index", None) is not None:
        return Graph.from_pyg(given)
    if hasattr(given, "is_multigraph") and hasattr(given, "nodes"):
        held = {name for _, data in given.nodes(data=True) for name in data}
        found: dict[str, Any] = {
            key: next((name for name in names if name in held), None)
            for key, names in (("features", ("features", "x")), ("labels", ("label", "y")))
        }
        return Graph.from_networkx(given, **found)
    raise TypeError(
        f"a graph is a pegfan.Graph, a tuple (adjacency, X, y), PyG Data or a NetworkX graph; "
        f"got {type(given).__name__}"
    )


def _with_features(graph: Graph, stand_in: bool) -> Graph:
    if stand_in:
        from pegfan.datasets import stand_in_features

        return stand_in_features(graph, "degree")
    if graph.features is None:
        raise ValueError(
            "the graph has no features; give them with graph.replace(features=...), or let degrees stand in with "
            "features='degree' when the classifier is made"
        )
    return graph


def _kept_split(split: Any, part: Split) -> Split | int | str:
    """A split as `fit` was given it, for `score` to come back to."""
    return split if isinstance(split, str) else int(split) if isinstance(split, (int, np.integer)) else part


def _as_split(graph: Graph, split: Any, seed: int) -> Split:
    if isinstance(split, str):
        if split != "random":
            raise ValueError(f"split must be an index, a Split or 'random', got {split!r}")
        from pegfan.datasets import random_splits

        return random_splits(graph.labels, k=1, seed=seed)[0]
    if isinstance(split, (int, np.integer)) and not isinstance(split, bool):
        if not 0 <= split < len(graph.splits):
            held = f"splits 0 to {len(graph.splits) - 1}" if graph.splits else "no splits"
            raise ValueError(f"there is no split {split}: the graph has {held}; pass a Split, or split='random'")
        return graph.splits[int(split)]
    return graph.replace(splits=[split]).splits[0]


def _as_seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"random_state must be an integer of at least 0, got {value!r}")
    return int(value)


def pad_levels(tree: Hierarchy, levels: int) -> Hierarchy:
    """A tree with so many levels at least: the root's children repeated, as clusters of one child.

    Examples
    --------
    >>> tree = Hierarchy.from_nested([[0, 1], [2, 3, 4]])
    >>> pad_levels(tree, 5)
    Hierarchy(n=5, K=5, clusters=1-2-2-2-5, h=3)
    """
    missing = levels - tree.K
    if missing <= 0:
        return tree
    *below, top = tree.parents or (np.zeros(1, np.int64),)
    missing -= not tree.parents  # the tree of a single node has no children of the root to repeat
    return Hierarchy([*below, *[np.arange(len(top))] * missing, top], tree.order, {**tree.info, "padded": missing})


def _fingerprint(graph: Graph) -> str:
    """A digest of everything that a tree and its channels are made of: edges and features, not labels."""
    digest = hashlib.sha256(f"{graph.n} {graph.directed}".encode())
    for matrix in (graph.adjacency, graph.features):
        digest.update(f" {matrix.shape} {matrix.dtype.str}".encode())
        if issparse(matrix):
            for array in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data):
                digest.update(np.ascontiguousarray(array).data)
        else:
            digest.update(np.ascontiguousarray(matrix).data)
    return digest.hexdigest()


# ------------------------------------------------------------------------ files


def describe_network(names: tuple[str, ...], widths: tuple[int, ...], run: Run) -> dict[str, Any]:
    """A trained network but for its weights, for JSON, which has no NaN."""
    numbers = {field: getattr(run, field) for field in _RUN_FIELDS}
    return {
        "channels": [[name, width] for name, width in zip(names, widths, strict=True)],
        "attention": [float(value) for value in run.attention],
        "run": {key: None if np.isnan(value) else value for key, value in numbers.items()},
    }


def restore_network(
    entry: Mapping[str, Any], state: Mapping[str, Any], history: dict[str, list[Any]], layers: int
) -> tuple[tuple[str, ...], tuple[int, ...], Run]:
    """Names and widths of the channels, and the run, of what `describe_network` wrote."""
    from pegfan.training import Run

    names, widths = zip(*entry["channels"], strict=True)
    # A network of the size that the description claims is not made before the weights are seen to be there.
    tensors = 2 * len(widths) + 2 * layers - 1
    if len(state) != tensors:
        raise ValueError(f"{_WEIGHTS} holds {len(state)} tensors, {tensors} belong to this network")
    numbers: dict[str, Any] = {key: float("nan") if value is None else value for key, value in entry["run"].items()}
    attention = np.array(entry["attention"], dtype=np.float32)
    return names, widths, Run(**numbers, attention=attention, state=dict(state), history=history)
