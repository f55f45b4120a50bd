"""Recipes: a tree or none, a set of channels and a few settings; and the list of those that are worth a try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pegfan.auto.inputs import FeatureScale, is_bag
from pegfan.graph import Graph
from pegfan.measures import adjusted_homophily
from pegfan.trees.build import AUTO_WARD, BUILDERS

if TYPE_CHECKING:
    from pegfan.training import Settings

__all__ = ["Recipe", "first_recipes", "pinned", "variations"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "method": ("none", *BUILDERS),
    "kind": ("a", "b", "c", "as"),
    "regime": ("heterophily", "homophily", "all"),
    "direction": ("out", "in", "symmetric", "both"),
    "features": ("raw", "l1", "scaled"),
}
_SYMBOLS = {"heterophily": "S", "homophily": "S~", "all": "S, S~"}

ADJUSTED_FROM = 0.3
"""Recipes for homophily come first from this adjusted homophily of training labels on."""
ROWS_MOST = 100_000
"""The most nodes for which rows of the adjacency are a channel: every node takes as many weights as a feature."""


@dataclass(frozen=True)
class Recipe:
    """What one candidate of the search is made of.

    Attributes
    ----------
    method, h
        Of the tree, see `pegfan.build_tree`; ``"none"`` for no tree.
    kind
        Of the channels on the tree, see `pegfan.make_channels`. Without a tree the channels are the hops.
    regime
        ``"heterophily"`` (hops S), ``"homophily"`` (S~) or ``"all"`` (both).
    hops
        The highest power of the hop matrices; 0 without a tree leaves the features alone.
    direction
        ``"out"``, ``"in"`` or ``"symmetric"``, or ``"both"``: hops along and against the edges, side by side.
    features
        ``"raw"``; ``"l1"``: rows divided by their sums; ``"scaled"``: columns brought to one scale.
    adjacency
        Whether rows of the adjacency are a channel.
    labels
        Whether the training labels of a node's neighbours, its own left out, are channels.
    structure
        Whether degrees are a channel.
    settings
        What differs from the defaults of `pegfan.Settings`.

    Examples
    --------
    >>> recipe = Recipe(method="ward", h=4, adjacency=True, settings={"hop_normalize": False})
    >>> recipe.name
    'c ward h=4 S^3 l1 +A, no norm'
    >>> Recipe.of({"method": "none", "hops": 8, "wd_fc1": 0.001}).name
    'S^8 l1, wd_fc1=0.001'
    """

    method: str = "none"
    h: int = 8
    kind: str = "c"
    regime: Literal["heterophily", "homophily", "all"] = "heterophily"
    hops: int = 3
    direction: str = "out"
    features: str = "l1"
    adjacency: bool = False
    labels: bool = False
    structure: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from pegfan.training import Settings

        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}")
        for name, least in (("h", 2), ("hops", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        for name in ("adjacency", "labels", "structure"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, got {getattr(self, name)!r}")
        default = asdict(Settings())
        chosen = asdict(Settings.of(self.settings))
        object.__setattr__(self, "settings", {k: v for k, v in chosen.items() if v != default[k]})

    def __hash__(self) -> int:
        return hash(tuple(sorted((name, str(value)) for name, value in self.to_dict().items())))

    @classmethod
    def of(cls, given: Recipe | Mapping[str, Any]) -> Recipe:
        """A recipe from its fields and any settings, all in one mapping; what `to_dict` gives."""
        return given if isinstance(given, Recipe) else pinned(cls(), given)

    def to_dict(self) -> dict[str, Any]:
        """Plain values in one level, the settings among them."""
        own: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "settings"}
        return own | dict(self.settings)

    @property
    def tree(self) -> tuple[str, int, str] | None:
        """Arguments of the tree: method, h and direction."""
        if self.method == "none":
            return None
        return self.method, self.h, "out" if self.direction == "both" else self.direction

    @property
    def name(self) -> str:
        """A short line that tells recipes apart."""
        words = [f"{self.kind} {self.method} h={self.h}"] if self.tree else []
        if self.hops or self.tree:
            power = f"^{self.hops}" if self.hops > 1 else ""
            words.append(_SYMBOLS[self.regime].replace(",", f"{power},") + power)
            words += [] if self.direction == "out" else [self.direction]
        else:
            words.append("X alone")
        words.append(self.features)
        words += [sign for sign, wanted in (("+A", self.adjacency), ("+Y", self.labels)) if wanted]
        words += ["+degrees"] * self.structure
        changes = ["no norm" if k == "hop_normalize" else f"{k}={v}" for k, v in self.settings.items()]
        return ", ".join([" ".join(words), *changes])

    @property
    def full_settings(self) -> Settings:
        """The settings with their defaults filled in."""
        from pegfan.training import Settings

        return Settings.of(self.settings)

    def changed(self, **changes: Any) -> Recipe:
        """The recipe with other fields or settings."""
        return pinned(self, changes)


def pinned(recipe: Recipe, pins: Mapping[str, Any]) -> Recipe:
    """The recipe with some fields and settings fixed."""
    from pegfan.training import Settings

    own = {f.name for f in fields(Recipe)} - {"settings"}
    known = {f.name for f in fields(Settings)}
    for name in pins:
        if name not in own | known:
            raise ValueError(
                f"unknown pin {name!r}; a recipe has {', '.join(sorted(own))}, and the settings are "
                f"{', '.join(sorted(known))}"
            )
    settings = dict(recipe.settings) | {k: v for k, v in pins.items() if k in known}
    return replace(recipe, settings=settings, **{k: v for k, v in pins.items() if k in own})


# ------------------------------------------------------------------- the list

_DECAY = {"wd_fc1": 1e-3, "wd_sca": 1e-3, "lr_sca": 0.02}
_OPEN = {**_DECAY, "hop_normalize": False}
_LOOSE = {**_OPEN, "wd_fc1": 1e-4, "dropout": 0.7}
_SLOW = {"lr_fc": 0.005, "lr_sca": 0.04}


def first_recipes(graph: Graph, training: Graph, pins: Mapping[str, Any] | None = None) -> list[Recipe]:
    """The recipes that are tried first, the most useful ones in front; features alone, which cost little, are second.

    Parameters
    ----------
    graph
        With features.
    training
        Its part among training nodes: the only labels that are looked at.
    pins
        Fields and settings that are the same in every recipe.
    """
    adjusted = adjusted_homophily(training)
    homophilous = not np.isnan(adjusted) and adjusted >= ADJUSTED_FROM
    lists = _homophily(graph), _heterophily(graph)
    first, second = lists if homophilous else lists[::-1]
    ordered = [*first[:7], second[0], *first[7:], *second[1:4]]
    return list(dict.fromkeys(_fitting(graph, pinned(recipe, pins or {}), pins or {}) for recipe in ordered))


def _heterophily(graph: Graph) -> list[Recipe]:
    tree, rows = _trees(graph)
    a = graph.n <= ROWS_MOST
    side = "symmetric"
    return [
        Recipe(tree, 8, "c"),
        Recipe(hops=0, features="raw", settings=_OPEN),
        Recipe(features="raw", settings=_OPEN),
        Recipe(regime="all", direction=side, features="raw", adjacency=a, labels=True, structure=True),
        Recipe(rows, 4, "c", features="raw", adjacency=a),
        Recipe(
            regime="all",
            hops=2,
            direction=side,
            features="raw",
            labels=True,
            structure=True,
            settings=_OPEN | {"wd_fc1": 1e-4},
        ),
        Recipe(tree, 4, "b", features="raw", settings=_OPEN),
        Recipe(regime="all", direction="both", features="raw", adjacency=a),
        Recipe(rows, 8, "c", direction="both", features="raw", adjacency=a, settings=_SLOW),
        Recipe(rows, 4, "b", direction=side, features="raw", adjacency=a, labels=True, structure=True),
        Recipe(regime="all", direction="both", hops=2, features="l1", adjacency=a, labels=True, structure=True),
    ]


def _homophily(graph: Graph) -> list[Recipe]:
    tree, rows = _trees(graph)
    a = graph.n <= ROWS_MOST
    return [
        Recipe(tree, 8, "c", "homophily", settings=_DECAY),
        Recipe(hops=0, features="raw", settings=_OPEN),
        Recipe(regime="homophily", hops=8, features="raw", settings=_LOOSE),
        Recipe(regime="all", direction="symmetric", settings=_DECAY),
        Recipe(tree, 8, "c", "homophily", features="raw", settings=_LOOSE),
        Recipe(regime="homophily", features="raw", labels=True, structure=True, settings=_LOOSE),
        Recipe(regime="homophily", hops=8, settings=_DECAY),
        Recipe("matching", 4, "b", "homophily", direction="symmetric", settings=_DECAY),
        Recipe(regime="all", features="raw", settings=_OPEN),
        Recipe(rows, 4, "c", "homophily", adjacency=a, settings=_DECAY),
    ]


def _trees(graph: Graph) -> tuple[str, str]:
    """The builder of the paper and the one on adjacency rows, where the graph is not too large for them."""
    return ("ward", "adjacency") if graph.n <= AUTO_WARD else ("matching", "matching")


def _fitting(graph: Graph, recipe: Recipe, pins: Mapping[str, Any]) -> Recipe:
    """The recipe without choices that make no difference on this graph."""
    changes: dict[str, Any] = {}
    if not graph.directed and "direction" not in pins:
        changes["direction"] = "out"
    if "features" not in pins and not is_bag(graph.features):
        changes["features"] = "scaled"
    if recipe.method == "none":
        changes |= {"h": Recipe.h, "kind": Recipe.kind}
        if recipe.hops == 0:
            changes |= {"regime": "heterophily", "direction": "out"}
    return replace(recipe, **changes)


def variations(recipe: Recipe) -> Iterator[Recipe]:
    """Recipes that differ in a training setting or two, and in how features enter."""
    settings = recipe.full_settings
    yield recipe.changed(lr_fc=0.005, dropout=0.6)
    yield recipe.changed(wd_fc1=1e-4 if settings.wd_fc1 in (0, 1e-3) else 1e-3)
    yield recipe.changed(hop_normalize=not settings.hop_normalize)
    if recipe.features != "scaled":
        yield recipe.changed(features="l1" if recipe.features == "raw" else "raw")
    yield recipe.changed(dropout=0.7, wd_fc2=1e-4)
    if not recipe.labels:
        yield recipe.changed(labels=True, structure=True)


def difference(one: Recipe, other: Recipe) -> int:
    """In how many fields and settings two recipes differ; epochs and patience do not count."""
    a, b = ({k: v for k, v in r.to_dict().items() if k not in ("epochs", "patience")} for r in (one, other))
    return sum(a.get(name) != b.get(name) for name in a.keys() | b.keys())


def work(recipe: Recipe, graph: Graph, levels: int) -> float:
    """Roughly the products that one epoch takes; `levels` is K of the recipe's tree."""
    from scipy.sparse import issparse

    x = graph.features
    entries = float(x.nnz if issparse(x) else x.size) + 3.0 * x.shape[1]  # the second: Adam on the weights
    edges = float(graph.adjacency.nnz)
    both = 2 if recipe.direction == "both" and graph.directed else 1
    powers = np.arange(1, (recipe.hops if not recipe.tree or recipe.kind in "bc" else 0) + 1)
    hops = (2 if recipe.regime == "all" else 1) * both * float((entries + powers * edges).sum())
    tree = levels * (entries + edges * (recipe.kind in ("c", "as")) + 2.0 * graph.n) if recipe.tree else 0.0
    extra = (edges + 3.0 * graph.n) * recipe.adjacency + 8.0 * graph.n * (recipe.labels + recipe.structure)
    return float(entries + hops + tree + extra + 10_000.0)


def scale_of(graph: Graph, recipes: Sequence[Recipe]) -> FeatureScale | None:
    """The scale of the graph's columns, where a recipe asks for it."""
    return FeatureScale.of(graph.features) if any(r.features == "scaled" for r in recipes) else None
