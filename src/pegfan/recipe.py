"""A recipe: one value that describes a model, from the tree to the last training setting.

Classifiers, the automatic search, stored runs, saved models and reports hold recipes. The tree and the channels of a
recipe on a graph are made here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan import _defaults as default
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import (
    MOST,
    check_flag,
    check_integer,
    check_kind,
    check_mapping,
    check_path,
    kind_of,
    shown,
)
from pegfan._npz import read_npz
from pegfan.channels import (
    Channel,
    Channels,
    FeatureScale,
    PrincipalColumns,
    hop_matrix,
    make_channels,
    make_fsgnn_channels,
    spectral_vectors,
    structural_features,
)
from pegfan.channels._sums import order_free_product
from pegfan.channels.labels import Beliefs, belief_channels, label_channels, target_channels, without_labels
from pegfan.channels.presets import KINDS, REGIMES, WAYS, edge_kind_channels, find_regime
from pegfan.channels.scaling import SCALINGS
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph, Split, check_graph
from pegfan.training.rows import Units
from pegfan.training.settings import Settings
from pegfan.trees import Hierarchy, build_tree, canonical_order
from pegfan.trees.build import DIRECTIONS

if TYPE_CHECKING:
    import os

__all__ = ["BOOSTING", "CHOICES", "FIELDS", "OWN", "Recipe", "TreeFile", "pad_levels"]

CHOICES: dict[str, tuple[str, ...]] = {
    "method": ("auto", "none", *default.BUILDERS),
    "kind": tuple(KINDS),
    "regime": ("auto", *REGIMES),
    "direction": WAYS,
    "scaling": SCALINGS,
    "head": ("network", "boosting", "linear", "constant"),
}
"""The words that a recipe knows, by field."""


BOOSTING = ("epochs", "patience", "stop", "class_weights")
"""Settings that boosting has, too."""


class TreeFile(NamedTuple):
    """A file with the labels of every level of a tree: its name in the folder of trees, and the hash of its bytes."""

    name: str
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Describe a file: an ``.npz`` with ``labels``, one row of cluster numbers per level, in either order."""
        found = check_path(path, "path")
        return cls(found.name, hashlib.sha256(found.read_bytes()).hexdigest())

    def find(self, folder: str | os.PathLike[str] | None, what: str = "trees") -> Path:
        """Where it is, in a folder that holds exactly this file."""
        check_kind(what, "what", str)
        if Path(self.name).name != self.name:
            raise ValueError(f"such a file is a plain name in the folder of {what}, got {shown(self.name)}")
        if folder is None:
            raise ValueError(f"the recipe uses the file {self.name}: say with {what}= in which folder it is")
        path = check_path(folder, what) / self.name
        if self.of(path) != self:
            raise ValueError(f"{path} is not the file that the recipe names: its SHA-256 differs")
        return path

    def read(self, folder: str | os.PathLike[str] | None) -> Hierarchy:
        """The tree, from a folder that holds exactly this file; a root is added if it is missing."""
        path = self.find(folder)
        arrays = read_npz(path)
        if "labels" not in arrays:
            raise ValueError(f"{path} holds no array 'labels' with a row of cluster numbers for every level")
        return Hierarchy.from_labels(list(arrays["labels"]), info={"file": self.name, "sha256": self.sha256})


@dataclass(frozen=True, repr=False)
class Recipe:
    """What a model is made of: a tree or none, channels, and the settings of its training.

    Attributes
    ----------
    method, h, max_levels
        Of the tree, see `pegfan.build_tree`; the method ``"none"`` means no tree and FSGNN's channels.
    kind
        Of the channels on the tree, see `pegfan.make_channels`.
    regime
        ``"heterophily"`` (hops S), ``"homophily"`` (S~), ``"all"`` (both), or ``"auto"``: by the edge homophily among
        training nodes.
    hops
        The highest power of the hop matrices; 0 without a tree leaves the features alone.
    direction
        Which side of directed edges the tree and the hops see: ``"out"``, ``"in"``, ``"symmetric"``; ``"both"``:
        hops along and against the edges, side by side; or ``"words"``: every mixture of steps along and against them.
    scaling
        What is done to the features first: ``"l1"`` divides rows by their sums, ``"columns"`` brings columns to one
        scale (`pegfan.channels.FeatureScale`), ``"principal"`` has at most 32 mixtures of columns in place of the
        columns (`pegfan.channels.PrincipalColumns`), ``"none"`` leaves them.
    include_features
        Whether X itself is a channel.
    adjacency
        Whether rows of the adjacency are a channel.
    labels
        Whether the training labels of a node's neighbours, its own left out, are channels.
    structure
        Whether degrees are a channel.
    settings
        Of the network and its training: `pegfan.Settings`, or a mapping of those that differ from the defaults.
    tree_file
        A file that holds the tree, in place of `method`, `h` and `max_levels`.
    weight
        Which of the graph's ``edge_matrices`` the hops use; by default the adjacency.
    kinds
        Whether hops along every kind of edges alone are channels too.
    head
        What is trained on the channels: the ``"network"`` of the paper; ``"boosting"``, trees of questions about
        single columns (`pegfan.training.boosting`); ``"linear"``, logistic regression, or least squares for numbers; or
        ``"constant"``, the shares of the classes among training nodes, or the mean, whatever the channels.
    leaves
        The most leaves per boosted tree.
    spectrum
        Whether a node's place in the graph is a channel: S V with the 32 leading eigenvectors V of S, see
        `pegfan.channels.spectral_vectors`.
    between
        Whether training labels two steps away, told apart by the features of the node in between, are a channel; with
        `labels` only, and where columns of features times classes are at most 256.
    stages
        1, or with `labels` 2: models of a first stage, each trained without a part of the training labels, predict all
        nodes, and the channels of labels are then made of what is known or predicted (`pegfan.stages`). For classes,
        and not for the head ``"linear"``.

    Notes
    -----
    Fields that make no difference are set to their defaults: without a tree, those of the tree; where no powers of
    hops are channels, those of the powers; without labels, what is made of them; and with another head, the settings of
    the network.

    Examples
    --------
    >>> recipe = Recipe(method="ward", h=4, regime="heterophily", adjacency=True, settings={"hop_normalize": False})
    >>> recipe.name
    'c ward h=4 S^3 l1 +A, no norm'
    >>> Recipe.of({"method": "none", "regime": "homophily", "hops": 8, "wd_fc1": 0.001}).name
    'S~^8 l1, wd_fc1=0.001'
    >>> Recipe.of(recipe.to_dict()) == recipe, len(recipe.key)
    (True, 16)
    >>> recipe
    Recipe(method='ward', h=4, regime='heterophily', adjacency=True, hop_normalize=False)
    """

    method: str = default.METHOD
    h: int = default.H
    max_levels: int | None = None
    kind: str = default.KIND
    regime: str = default.REGIME
    hops: int = default.HOPS
    direction: str = default.DIRECTION
    scaling: str = default.SCALING
    include_features: bool = True
    adjacency: bool = False
    labels: bool = False
    structure: bool = False
    settings: Settings = field(default_factory=Settings)
    tree_file: TreeFile | None = None
    weight: str | None = None
    kinds: bool = False
    head: str = default.HEAD
    leaves: int = default.LEAVES
    spectrum: bool = False
    between: bool = False
    stages: int = 1

    def __post_init__(self) -> None:
        if callable(self.method):
            raise ValueError(
                "a recipe is plain data, and a builder of your own is not: with tree = build_tree(graph, builder), "
                "train on make_channels(graph, FrameletSystem(tree))"
            )
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {shown(getattr(self, name))}")
        # No graph needs more hops or leaves, and neither the clock nor the memory would be kept to.
        ranges = {"h": (2, MOST), "hops": (0, 100), "max_levels": (2, MOST), "leaves": (2, 4096), "stages": (1, MOST)}
        for name, (least, most) in ranges.items():
            if name != "max_levels" or self.max_levels is not None:
                self._put(name, check_integer(getattr(self, name), name, least, most))
        if self.stages > 2:
            raise ValueError(f"stages must be 1 or 2: a third is no better; got {self.stages}")
        if self.weight is not None and not (isinstance(self.weight, str) and self.weight):
            raise ValueError(f"weight must be the name of an edge matrix, got {shown(self.weight)}")
        for name in ("include_features", "adjacency", "labels", "structure", "kinds", "spectrum", "between"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be true or false, got {shown(getattr(self, name))}")
            self._put(name, bool(getattr(self, name)))
        self._put("settings", Settings.of(self.settings))
        if self.tree_file is not None:
            given: Any = self.tree_file
            if isinstance(given, str) or len(given) != 2 or not all(isinstance(part, str) for part in given):
                raise ValueError(
                    f"tree_file must be the name of a file and its SHA-256, see TreeFile.of; got {shown(given)}"
                )
            self._put("tree_file", TreeFile(*given))
        if self.head == "boosting":
            if self.adjacency:
                raise ValueError(
                    "rows of the adjacency are for networks: boosting would ask about every node by itself"
                )
            self._put("settings", Settings(**{name: getattr(self.settings, name) for name in BOOSTING}))
        if self.is_linear:
            if self.labels and self.stages > 1:
                raise ValueError("a second stage is for networks and boosting: use stages=1 with head='linear'")
            self._put("settings", Settings(class_weights=self.settings.class_weights))
        idle = self._idle() + ("leaves",) * (not self.is_boosted) + ("between", "stages") * (not self.labels)
        for name in idle:
            self._put(name, _DEFAULTS[name])

    def _idle(self) -> tuple[str, ...]:
        """Fields that make no difference to the channels."""
        if not self.has_tree:
            hops = () if self.hops else self._idle_without_hops()
            return ("h", "max_levels", "kind", *hops)
        own: tuple[str, ...] = ("method", "h", "max_levels") if self.tree_file is not None else ()
        if self.has_powers or self.direction == "both":
            return own
        own += ("direction",) if self.direction == "words" and not self.kinds else ()  # there are no powers to replace
        return (*own, "hops") if self.projects_hops or self.labels else (*own, "hops", "weight")

    def _idle_without_hops(self) -> tuple[str, ...]:
        idle = () if self.kinds else ("regime",) if self.adjacency else ("regime", "direction")
        return idle if self.labels else (*idle, "weight")

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the class is frozen

    # ------------------------------------------------------------------ as a value

    @classmethod
    def of(cls, given: Recipe | Mapping[str, Any]) -> Recipe:
        """A recipe from its fields and any settings, all in one mapping; what `to_dict` gives."""
        if isinstance(given, Recipe):
            return given
        odd = next((name for name in check_mapping(given, "a recipe") if not isinstance(name, str)), None)
        if odd is not None:
            raise TypeError(f"a recipe names its fields, and {shown(odd)} is no name")
        return cls(**_fields(given, Settings()))

    def to_dict(self) -> dict[str, Any]:
        """Plain values in one level: all fields, and the settings that differ from their defaults."""
        plain = {name: getattr(self, name) for name in OWN if getattr(self, name) is not None}
        for name in ("kinds", "head", "leaves", "spectrum", "between", "stages"):
            if plain[name] == _DEFAULTS[name]:
                del plain[name]
        if self.tree_file is not None:
            plain["tree_file"] = list(self.tree_file)
        return plain | self.settings.changes()

    def changed(self, **changes: Any) -> Recipe:
        """The recipe with other fields or settings."""
        return replace(self, **_fields(changes, self.settings))

    def changes(self) -> dict[str, Any]:
        """The fields and settings that differ from their defaults, as plain values in one level."""
        return {name: value for name, value in self.to_dict().items() if value != _DEFAULTS.get(name)}

    def __repr__(self) -> str:
        return f"Recipe({', '.join(f'{name}={value!r}' for name, value in self.changes().items())})"

    @cached_property
    def key(self) -> str:
        """16 hex digits that tell recipes apart, in any process and on any machine; runs are stored by them.

        An option or a setting that is not in ``_CORE`` counts only where it is not at its default: keys last when
        others come and go. Who changes a default in ``_CORE`` rewrites the stored runs, whose jobs leave defaults out.
        """
        every = {**self.to_dict(), **asdict(self.settings)}
        whole = {name: every[name] for name in _CORE} | self.changes()
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A short line that tells recipes apart."""
        words = [f"{self.kind} {self._tree_words}"] if self.has_tree else []
        if self.hops or self.has_tree:
            power = f"^{self.hops}" if self.hops != 1 and "hops" not in self._idle() else ""
            words.append(", ".join(hop + power for hop in REGIMES.get(self.regime, ("S?",))))
        else:
            words.append("X alone")
        words += [] if self.direction == default.DIRECTION else [self.direction]
        words += [f"by {self.weight}"] if self.weight is not None else []
        words.append("unscaled" if self.scaling == "none" else self.scaling)
        words += ["-X"] * (not self.include_features)
        words += [sign for sign, wanted in (("+A", self.adjacency), ("+Y", self.labels)) if wanted]
        words += ["between"] * self.between + ["in two stages"] * (self.stages > 1)
        words += ["+degrees"] * self.structure + ["+kinds"] * self.kinds
        words += ["+spectrum"] * self.spectrum
        words += [f"boosted{f' leaves={self.leaves}' if self.leaves != default.LEAVES else ''}"] * self.is_boosted
        words += [self.head] * self.is_linear
        changes = ["no norm" if k == "hop_normalize" else f"{k}={v}" for k, v in self.settings.changes().items()]
        return ", ".join([" ".join(words), *changes])

    @property
    def _tree_words(self) -> str:
        if self.tree_file is not None:
            return self.tree_file.name
        return f"{self.method} h={self.h}" + (f" K<={self.max_levels}" if self.max_levels else "")

    # ---------------------------------------------------------------- on a graph

    @property
    def is_boosted(self) -> bool:
        """Whether trees of questions are trained on its channels, not a network."""
        return self.head == "boosting"

    @property
    def is_linear(self) -> bool:
        """Whether a linear model is fitted to its channels, not a network; a constant is one without weights."""
        return self.head in ("linear", "constant")

    @property
    def has_tree(self) -> bool:
        """Whether its channels need a tree."""
        return self.method != "none" or self.tree_file is not None

    @property
    def has_powers(self) -> bool:
        """Whether powers of hop matrices are channels."""
        return not self.has_tree or KINDS[self.kind].powers

    @property
    def projects_hops(self) -> bool:
        """Whether hops are projected on framelets, not the features themselves."""
        return self.has_tree and KINDS[self.kind].projected > 0

    @property
    def regime_is_open(self) -> bool:
        """Whether training labels are to decide which hop matrix there is."""
        hops = self.projects_hops or self.kinds or bool(self.hops and "hops" not in self._idle())
        return self.regime == "auto" and hops

    @property
    def tree_key(self) -> tuple[Any, ...] | None:
        """What recipes of the same tree have in common; None without one."""
        return (self.method, self.h, self.max_levels, self._side, self.tree_file) if self.has_tree else None

    @property
    def _side(self) -> str:
        return self.direction if self.direction in DIRECTIONS else "out"

    def hop_count(self, directed: bool) -> int:
        """How many channels are hops of the features, on a directed graph or on another one.

        Hops along every kind of edges alone are not counted.

        Examples
        --------
        >>> recipe = Recipe(method="none", hops=3, direction="words", regime="heterophily")
        >>> recipe.hop_count(directed=True), recipe.hop_count(directed=False)
        (14, 3)
        """
        check_flag(directed, "directed")
        powers = self.hops * self.has_powers
        if directed and self.direction == "words":
            return int(2 ** (powers + 1) - 2)
        against = self.hops if directed and self.direction == "both" else 0
        return (powers + against) * len(REGIMES.get(self.regime, "S"))

    def build_tree(
        self, graph: Graph, *, levels: int | None = None, trees: str | os.PathLike[str] | None = None
    ) -> Hierarchy | None:
        """Build its tree on a graph; None for a recipe without one.

        Parameters
        ----------
        graph
            The graph.
        levels
            Exactly this number of levels: if the tree would have more, the root holds what is left; if it has fewer,
            the root's children are repeated.
        trees
            The folder of tree files.
        """
        if not self.has_tree:
            return None
        if self.tree_file is not None:
            tree = self.tree_file.read(trees)
            if tree.n != graph.n:
                raise ValueError(f"{self.tree_file.name} is a tree of {tree.n} nodes, and the graph has {graph.n}")
            return tree
        side: Any = self._side
        most = self.max_levels if levels is None else levels
        built = build_tree(graph, self.method, self.h, max_levels=most, direction=side)
        return built if levels is None else pad_levels(built, levels)

    def channels(
        self,
        graph: Graph,
        tree: Hierarchy | None,
        *,
        split: Split | int | None = default.SPLIT,
        known: Known | None = None,
        scale: FeatureScale | PrincipalColumns | None = None,
    ) -> Channels:
        """Make its channels on a graph: those of the paper, and what the recipe adds to them.

        Of a recipe of two stages these are the channels of the first one; see `relabelled`.

        Parameters
        ----------
        graph
            With features.
        tree
            What `build_tree` gave.
        split
            Whose training nodes decide ``regime="auto"``, and whose labels are seen; None where none may be.
        known
            What is known of training nodes, for a graph that has no such split.
        scale
            Of the columns of the graph that was fitted, for another graph.
        """
        paper: dict[str, Any] = {
            **{name: getattr(self, name) for name in ("regime", "hops", "direction", "include_features")},
            "scaling": self.scaling if scale is None else scale,
            "split": split,
            "weight": self.weight,
        }
        if tree is None:
            channels = make_fsgnn_channels(graph, **paper)
        else:
            channels = make_channels(graph, FrameletSystem(tree), self.kind, **paper)
        if self.kinds:
            hop = REGIMES[find_regime(graph, self.regime, split)[0]][0]
            channels += edge_kind_channels(graph, _features_of(channels), hop, self.direction)
        if self.adjacency or self.labels:
            told = known or Known.of(graph, _training(graph, split))
        if self.adjacency:
            rows = _adjacency_rows(graph, told, self._side)
            channels += [Channel("A", None, rows, "A", what="who a node is joined to")]
        if self.structure:
            words = "degrees of a node and its neighbours"
            channels += [Channel("degrees", None, structural_features(graph), "degrees", what=words)]
        if self.spectrum:
            words = "where in the graph a node is"
            channels += [Channel("spectrum", None, _spectral_places(graph, known), "spectrum", what=words)]
        return self.relabelled(channels, graph, told) if self.labels else channels

    def relabelled(self, channels: Channels, graph: Graph, told: Known | Beliefs) -> Channels:
        """Its channels, with those of labels made of what else is known or believed."""
        check_graph(graph)
        check_kind(channels, "channels", Channels)
        if not isinstance(told, Known | Beliefs):
            raise TypeError(f"told must be a Known or Beliefs, got {kind_of(told)}")
        plain, edges = without_labels(channels), graph.weighted(self.weight)
        if isinstance(told, Beliefs):
            return plain + belief_channels(edges, plain[0].input, told, self.between)
        return plain + _label_channels(edges, plain[0].input, told, self.between)

    def settled(self, graph: Graph, split: Split | int | None, stood_in: bool = False) -> Recipe:
        """The recipe as it is trained on a split of a graph, with the regime that ``"auto"`` stands for.

        Where degrees `stood_in` for features, rows with sum one would say nothing: they are left unscaled.
        """
        check_graph(graph)
        check_flag(stood_in, "stood_in")
        changes: dict[str, Any] = {"scaling": "none"} if stood_in and self.scaling == "l1" else {}
        if self.direction == "words" and graph.directed and self.hops and not (self.projects_hops or self.kinds):
            changes["regime"] = "heterophily"  # where it makes no difference, equal recipes are equal
        elif self.regime_is_open:
            changes["regime"] = find_regime(graph, self.regime, split)[0]
        return self.changed(**changes) if changes else self

    def scale(self, graph: Graph) -> FeatureScale | None:
        """The scale of a graph's columns, if the recipe asks for one; principal columns are found once per graph."""
        return FeatureScale.of(graph.features) if self.scaling == "columns" else None


_DEFAULTS = {f.name: f.default for f in fields(Recipe) if f.name != "settings"}
OWN = tuple(_DEFAULTS)
"""The names of a recipe's fields, without those of its settings."""
_SETTINGS = tuple(f.name for f in fields(Settings))
_CORE = (
    *("method", "h", "kind", "regime", "hops", "direction", "scaling", "include_features"),
    *("hidden", "layers", "dropout", "hop_normalize", "lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca"),
    *("epochs", "patience", "stop", "class_weights"),
)
"""Fields and settings that keys are made of, whatever their values."""
FIELDS = OWN + _SETTINGS
"""The names that `Recipe.of` knows."""


def _fields(changes: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The fields of a recipe that change, settings by name gathered with those that there are."""
    unknown = next((name for name in changes if name not in FIELDS and name != "settings"), None)
    if unknown is not None:
        raise ValueError(
            f"a recipe has no {unknown!r}; it has {', '.join(sorted(OWN))}, and the settings "
            f"{', '.join(sorted(_SETTINGS))}"
        )
    values = {name: value for name, value in changes.items() if name in OWN}
    own = {name: value for name, value in changes.items() if name in _SETTINGS}
    base = Settings.of(changes["settings"]) if "settings" in changes else settings
    return values | {"settings": replace(base, **own) if own else base}


def pad_levels(tree: Hierarchy, levels: int) -> Hierarchy:
    """A tree with at least `levels` levels: the root's children are repeated, as clusters with one child.

    Examples
    --------
    >>> tree = Hierarchy.from_nested([[0, 1], [2, 3, 4]])
    >>> pad_levels(tree, 5)
    Hierarchy(n=5, K=5, clusters=1-2-2-2-5, h=3)
    """
    check_kind(tree, "tree", Hierarchy)
    check_integer(levels, "levels", most=10**6)
    missing = levels - tree.K
    if missing <= 0:
        return tree
    *below, top = tree.parents or (np.zeros(1, np.int64),)
    missing -= not tree.parents  # the tree of a single node has no children of the root to repeat
    return Hierarchy([*below, *[np.arange(len(top))] * missing, top], tree.order, {**tree.info, "padded": missing})


def _features_of(channels: Channels) -> Channel:
    """X, which the first channel holds: the features themselves, or hops or projections of them."""
    return Channel.inside((), channels[0].signal, channels.nodes)


# --------------------------------------------------------- what training nodes tell


@dataclass(frozen=True, eq=False)
class Known:
    """What the channels of a fitted model know about the nodes that it was fitted to.

    Attributes
    ----------
    codes
        The class of every training node of the fitted graph, 0 where it has a numeric target; -1 elsewhere.
    names
        The nodes' names as strings, or digests of them; None where they are called 0, 1, ..., n - 1.
    classes
        How many there are.
    columns
        The column of every node in a channel of adjacency rows: nodes that look alike share one, and nodes that came
        later have none, -1.
    folds
        Where members were trained on several splits, the part of every node in each of them, one row per split: 1 for
        train, 2 for val, 3 for test, 0 for none. The codes are then those of all that are training nodes of any.
    salt
        What the digests begin with, so that no list of digests made elsewhere fits; None where names are plain.
    values
        The numeric targets of training nodes, NaN elsewhere; None where there are classes.
    vectors
        `pegfan.channels.spectral_vectors` of the fitted graph, a row for every column; None where no channel needs
        them.
    """

    codes: IntArray
    names: tuple[str, ...] | None
    classes: int
    columns: IntArray
    folds: NDArray[np.int8] | None = None
    salt: str | None = None
    values: FloatArray | None = None
    vectors: FloatArray | None = None

    @classmethod
    def of(cls, graph: Graph, train: IntArray) -> Self:
        """What is known in training on a split."""
        told, classes, values = np.zeros(graph.n, np.bool_), graph.n_classes, None
        told[train] = True
        if graph.targets is not None:
            labels, classes, values = np.zeros(graph.n, np.int64), 1, np.where(told, graph.targets, np.nan)
        else:
            assert graph.labels is not None
            labels = graph.labels
        names = None if graph.node_names is None else tuple(map(str, graph.node_names.tolist()))
        codes, columns = np.where(told, labels, -1), canonical_order(graph).classes
        return cls(codes, names, classes, columns, values=values)

    @classmethod
    def of_folds(cls, graph: Graph, splits: Sequence[Split]) -> Self:
        """What is known in training on several splits."""
        folds = np.zeros((len(splits), graph.n), np.int8)
        for fold, split in zip(folds, splits, strict=True):
            for part, nodes in enumerate(split, start=1):
                fold[nodes] = part
        return replace(cls.of(graph, np.flatnonzero((folds == 1).any(axis=0))), folds=folds)

    def of_fold(self, fold: int) -> Known:
        """What is known in one of several trainings."""
        if self.folds is None:  # it is of one already
            return self
        own = self.folds[fold] == 1
        values = None if self.values is None else np.where(own, self.values, np.nan)
        return replace(self, codes=np.where(own, self.codes, -1), folds=None, values=values)

    def held_out(self, graph: Graph) -> IntArray:
        """The fold that every node of a graph is a test node of; -1 for none."""
        places = self.places(graph)
        if self.folds is None:
            return np.full(graph.n, -1)
        tests = self.folds == 3
        fold = np.where(tests.any(axis=0), tests.argmax(axis=0), -1)
        return np.where(places >= 0, fold[np.maximum(places, 0)], -1)

    @property
    def n(self) -> int:
        """How many nodes the fitted graph has."""
        return len(self.codes)

    def places(self, graph: Graph) -> IntArray:
        """The place of every node of a graph among the fitted ones, by its id; -1 for nodes that are new.

        Nodes without names are called 0, 1, ..., n - 1: a table with such ids in another order has names.
        """
        if self.names is None and graph.node_names is None:
            nodes = np.arange(graph.n)
            return np.where(nodes < self.n, nodes, -1)
        names = map(str, range(self.n)) if self.names is None else self.names
        place = {name: i for i, name in enumerate(names)}
        ids, salt = map(str, graph.ids.tolist()), self.salt
        wanted = ids if salt is None else (_digest(name, salt) for name in ids)
        return np.array([place.get(name, -1) for name in wanted], dtype=np.int64)

    def doubt(self, graph: Graph) -> str | None:
        """Say why nodes of a graph may be others than those that they are taken for; None if their names tell."""
        if self.names is None and graph.node_names is None and graph.n != self.n:
            return (
                f"the model was fitted to {self.n:,} nodes without names, and the graph has {graph.n:,}: node i is "
                "taken for node i of the training. If nodes were taken out or put in between, give both graphs ids "
                "(node_names, or a column of ids) and train again"
            )
        if (self.names is None) != (graph.node_names is None) and (self.places(graph) < 0).all():
            lacking = "fitted ones" if self.names is None else "graph's nodes"
            return (
                f"none of the graph's nodes is one that the model was fitted to: the {lacking} have no names, and are "
                "called 0, 1, ...; give them the names that the others have (node_names)"
            )
        return None

    def columns_of(self, graph: Graph) -> IntArray:
        """The column of every node of a graph in a channel of adjacency rows; -1 for nodes that have none."""
        places = self.places(graph)
        return np.where(places >= 0, self.columns[np.maximum(places, 0)], -1)

    @property
    def width(self) -> int:
        """How many columns a channel of adjacency rows has."""
        return int(self.columns.max()) + 1

    def hashed(self, salt: str) -> Self:
        """The same, with digests in place of names: nodes are found by their names, which cannot be read off."""
        if self.names is None or self.salt is not None:
            return self
        return replace(self, names=tuple(_digest(name, salt) for name in self.names), salt=salt)

    def extended(self, graph: Graph, places: IntArray) -> Self:
        """The same of a graph that has grown: `places` are those of its nodes in the fitted one, -1 for new ones."""
        at = np.maximum(places, 0)
        return replace(
            self,
            codes=np.where(places >= 0, self.codes[at], -1),
            names=None if graph.node_names is None else tuple(map(str, graph.node_names.tolist())),
            columns=np.where(places >= 0, self.columns[at], -1),
            folds=None if self.folds is None else np.where(places >= 0, self.folds[:, at], np.int8(0)),
            values=None if self.values is None else np.where(places >= 0, self.values[at], np.nan),
            salt=None,
        )

    def labels_of(self, graph: Graph) -> IntArray:
        """The training labels that apply to a graph's nodes."""
        places = self.places(graph)
        return np.where(places >= 0, self.codes[np.maximum(places, 0)], -1)

    def values_of(self, graph: Graph) -> FloatArray:
        """The training targets that apply to a graph's nodes, standardised by all of them; NaN for the others."""
        if self.values is None:
            raise ValueError("there are classes, and no numeric targets; see labels_of")
        own = np.sort(self.values[~np.isnan(self.values)])  # in an order that does not depend on how nodes are numbered
        units = Units.of(own, np.full(len(own), 1 / max(len(own), 1)))
        places = self.places(graph)
        return np.where(places >= 0, units.standard(self.values)[np.maximum(places, 0)], np.nan)


def _digest(name: str, salt: str) -> str:
    return hashlib.sha256(f"{salt} {name}".encode(errors="surrogatepass")).hexdigest()[:32]


def _training(graph: Graph, split: Split | int | None) -> IntArray:
    if split is None:
        raise ValueError("channels of labels or adjacency rows need to know the training nodes: pass split= or known=")
    return graph.split(split).train


def _adjacency_rows(graph: Graph, known: Known, direction: str) -> csr_array:
    """Rows of A, with a column per class of the fitted graph's nodes; edges to nodes that are new are left out."""
    a = hop_matrix(graph, "A", direction).tocoo()
    at = known.columns_of(graph)[a.coords[1]]
    kept = at >= 0
    row, column, weights = a.coords[0][kept], at[kept], a.data[kept]
    order = np.lexsort((weights, column, row))  # by weight, so that sums do not depend on how nodes are numbered
    row, column, weights = row[order], column[order], weights[order]
    first = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(column, prepend=-1))
    sums = np.add.reduceat(weights, first) if len(first) else weights
    return csr_array((sums, (row[first], column[first])), shape=(graph.n, known.width))


def _spectral_places(graph: Graph, known: Known | None) -> FloatArray:
    """S V, with S of the graph itself and V of the fitted graph, in which nodes that are new have no row."""
    if known is None:
        vectors, at = spectral_vectors(graph), canonical_order(graph).classes
    elif known.vectors is None:
        raise ValueError("what is known of the fitted graph lacks the vectors that the recipe's spectrum needs")
    else:
        vectors, at = known.vectors, known.columns_of(graph)
    rows = np.where(at[:, None] >= 0, vectors[np.maximum(at, 0)], 0.0)
    return order_free_product(hop_matrix(graph, "S", "symmetric"), rows)


def _label_channels(graph: Graph, x: Any, known: Known, between: bool) -> list[Channel]:
    """Channels of what is known of training nodes.

    On the fitted graph these are the training labels of the split. On another graph they are the labels of those
    nodes that were training nodes.
    """
    if known.values is not None:
        return target_channels(graph, x, known.values_of(graph), between)
    return label_channels(graph, x, known.labels_of(graph), known.classes, between)
