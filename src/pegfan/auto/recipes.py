"""The list of recipes that are worth a try, and how they are varied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan.channels.labels import JOINT_MOST
from pegfan.channels.leading import COUNT
from pegfan.channels.presets import ADJUSTED_FROM, REGIMES
from pegfan.channels.scaling import is_bag
from pegfan.graph import Graph
from pegfan.measures import adjusted_homophily
from pegfan.metrics import unequal
from pegfan.recipe import BOOSTING, OWN, Recipe
from pegfan.training import Settings
from pegfan.training.boosting import ROWS
from pegfan.trees.build import AUTO_WARD

__all__ = [
    "Space",
    "baseline_recipes",
    "difference",
    "first_recipes",
    "large_recipes",
    "memory",
    "plain_recipes",
    "weightings",
    "work",
]

ROWS_MOST = 100_000
"""The most nodes for which rows of the adjacency are a channel: every node takes as many weights as a feature."""

BOOSTED_MOST = 1_000
"""The most feature columns that are asked about one by one; bags of words have more, and are for networks."""

TOLD_MOST = 5_000_000
"""The most arcs of a large graph along which training labels are passed: sums that keep their bits take a while."""
HOPS_MOST = 2e9
"""The most bytes of hops of the features that a linear model is fitted to; of more, to the features alone."""
BOOSTED_CELLS = 2e7
"""The most cells of features of training nodes on a large graph for which boosting is tried."""

PRINCIPAL_FROM = 100
"""Feature columns from which on boosting asks about principal ones."""
SPECTRUM_MOST = 100_000
"""The most nodes of a graph whose leading eigenvectors are found."""

_DECAY = Settings(wd_fc1=1e-3, wd_sca=1e-3, lr_sca=0.02)
_OPEN = replace(_DECAY, hop_normalize=False)
_LOOSE = replace(_OPEN, wd_fc1=1e-4, dropout=0.7)
_LIGHT = Settings(hop_normalize=False, wd_fc1=1e-5)
_CALM = Settings(lr_fc=0.005, wd_fc1=1e-3, dropout=0.2)
_MANY = Settings(hop_normalize=False, dropout=0.2)


def baseline_recipes(
    graph: Graph, training: Graph, pins: Mapping[str, Any] | None = None, large: bool = False
) -> list[Recipe]:
    """What everybody would try, the cheapest first; the model is never worse on validation than the best of these.

    The shares of the classes; a linear model of the columns; boosted trees on the columns, and on the columns and one
    hop; and the network of the paper.

    Parameters
    ----------
    graph, training, pins
        As in `first_recipes`.
    large
        Whether the graph is searched as a large one.
    """
    given = pins or {}
    on = partial(Recipe, method="none", regime="homophily", hops=0, scaling="none")
    found = [on(head="constant"), on(head="linear")]
    if _may_boost(given):
        wide = graph.features is not None and graph.features.shape[1] > BOOSTED_MOST
        boosted = on(head="boosting", scaling="principal" if wide else "none")
        found += [boosted, boosted.changed(hops=1, direction="symmetric")]
    tree = "matching" if large else _trees(graph)[0]
    homophilous = is_homophilous(training)
    settings = _MANY if large else _DECAY if homophilous else Settings()
    found.append(Recipe(tree, 8, regime="homophily" if homophilous else "heterophily", settings=settings))
    return list(dict.fromkeys(_fitting(graph, recipe.changed(**given), given) for recipe in found))


def is_homophilous(training: Graph) -> bool:
    """Whether neighbours among training nodes are of one class more often than chance has it."""
    adjusted = adjusted_homophily(training)
    return bool(not np.isnan(adjusted) and adjusted >= ADJUSTED_FROM)


def first_recipes(graph: Graph, training: Graph, pins: Mapping[str, Any] | None = None) -> list[Recipe]:
    """The recipes that are tried first: a few that differ widely, so that one of them suits most graphs.

    Parameters
    ----------
    graph
        With features.
    training
        Its part among training nodes: the only labels that are looked at.
    pins
        Fields and settings that are the same in every recipe.
    """
    given = pins or {}
    boosted = _boosted(graph, training.n) if _may_boost(given) else []
    networks = _networks(graph, training)
    networks[1:1] = list(_along_edges(networks[0], graph))[:3]
    labels = training.labels
    if labels is not None and unequal(np.bincount(labels[labels >= 0])):
        networks.insert(1, networks[0].changed(class_weights=True))
    ordered = [*boosted[:1], *networks[:3], *boosted[1:2], *networks[3:6], *boosted[2:], *networks[6:]]
    if given.get("head") == "boosting":
        ordered = [recipe.changed(adjacency=False) for recipe in ordered]
    return list(dict.fromkeys(_fitting(graph, recipe.changed(**given), given) for recipe in ordered))


def _networks(graph: Graph, training: Graph) -> list[Recipe]:
    """Networks: hops with labels and degrees, features alone, the paper's tree, rows of A, words, and far hops."""
    homophilous = is_homophilous(training)
    one, other = ("homophily", "heterophily") if homophilous else ("heterophily", "homophily")
    tree, rows = _trees(graph)
    a = graph.n <= ROWS_MOST
    on, without = partial(Recipe, regime=one), partial(Recipe, method="none", regime=one)
    near: Any = {"labels": True, "structure": True}
    raw: Any = {"scaling": "none"}
    every: Any = {"regime": "all", "direction": "symmetric"}
    return [
        without(**raw, **near, settings=_LOOSE),
        without(hops=0, **raw, settings=_OPEN),
        on(tree, 8, settings=_DECAY if homophilous else Settings()),
        without(**every, **raw, adjacency=a, **near, settings=_LIGHT),
        without(hops=2, direction="words", **raw, adjacency=a),
        on(rows, 8, kind="b", regime="all", scaling="columns", adjacency=a, structure=True, settings=_LIGHT),
        without(hops=5, regime=other, **raw, settings=_OPEN),
        on(rows, 4, **raw, adjacency=a),
        without(hops=5, scaling="columns", **near, settings=replace(_LOOSE, wd_fc1=0.0, lr_fc=0.02)),
        without(scaling="columns", settings=_CALM),
        without(direction="words", **raw, adjacency=a, settings=Settings(lr_fc=0.005)),
        on(tree, 8, **raw, settings=_LOOSE),
    ]


def memory(recipes: Iterable[Recipe], graph: Graph) -> float:
    """About how many bytes some recipes take that are trained side by side, on rows of their channels.

    They share scaled features, hop matrices and hops of the features, which are taken as dense.
    """
    x: Any = graph.features
    parts: dict[Any, float] = {}
    for recipe in recipes:
        if recipe.head == "constant":
            continue
        principal = recipe.scaling == "principal"
        rows = 4.0 * graph.n * (min(x.shape[1], COUNT) if principal else x.shape[1])
        parts[recipe.scaling] = 12.0 * x.nnz if issparse(x) and not principal else rows
        symbols = REGIMES.get(recipe.regime, ("S",))
        for symbol in symbols:
            hops = (recipe.scaling, recipe.weight, symbol, recipe.direction)
            for power in range(recipe.hop_count(graph.directed) // len(symbols)):
                parts[*hops[1:]] = 12.0 * graph.adjacency.nnz
                parts[*hops, power] = rows
        if recipe.kinds:
            sides = 4 if recipe.direction == "both" and graph.directed else 2
            parts["kinds", recipe.scaling, recipe.regime, recipe.direction] = sides * len(graph.edge_kinds) * rows
        if recipe.has_tree:
            parts[recipe.tree_key, recipe.kind, recipe.scaling] = rows / 2
        if recipe.is_boosted and issparse(x) and not principal:  # its nodes are learned from as dense rows
            parts[recipe] = min(1.0, 2 * ROWS / graph.n) * rows * (1 + recipe.hop_count(graph.directed))
    return sum(parts.values())


def plain_recipes(homophilous: bool, linear: int = 2) -> list[Recipe]:
    """The recipes for a large graph that need nothing but features, hops and a tree, from the cheapest on.

    Parameters
    ----------
    homophilous
        Whether neighbours are alike.
    linear
        How many hops the linear model sees.
    """
    regime = "homophily" if homophilous else "heterophily"
    on, without = partial(Recipe, "matching", regime=regime), partial(Recipe, method="none", regime=regime)
    return [
        without(hops=linear, head="linear"),
        without(settings=_MANY),
        without(hops=0, settings=_MANY),
        without(regime="all", direction="symmetric", settings=_MANY),
        on(8, settings=_MANY),
        without(hops=8 if homophilous else 2, settings=replace(_MANY, hop_normalize=True, lr_fc=0.02, lr_sca=0.02)),
        without(direction="both", settings=_MANY),
        on(8, kind="b", settings=_MANY),
    ]


def large_recipes(graph: Graph, training: Graph, pins: Mapping[str, Any] | None = None) -> list[Recipe]:
    """The recipes that are tried first on a large graph: a linear model, and networks from the cheapest on.

    So many nodes need little decay and dropout, and trees of questions about every node take long.

    Parameters
    ----------
    graph, training, pins
        As in `first_recipes`.
    """
    homophilous = is_homophilous(training)
    told = graph.adjacency.nnz <= TOLD_MOST
    x: Any = graph.features
    spread = x.size / graph.n * (graph.adjacency.nnz / graph.n) ** 2 if issparse(x) else x.shape[1]
    room = graph.n * 12.0 * min(spread, x.shape[1])  # bytes of two hops of the features
    ordered = plain_recipes(homophilous, linear=2 if room <= HOPS_MOST else 0)
    if told:
        ordered.insert(2, ordered[1].changed(labels=True, structure=True))
    ordered += _along_edges(ordered[1], graph)
    labels, given = training.labels, pins or {}
    if labels is not None and unequal(np.bincount(labels[labels >= 0])):
        ordered.insert(3, ordered[1].changed(class_weights=True))
    if told and float(training.n) * x.shape[1] <= BOOSTED_CELLS and _may_boost(given):
        ordered[7:7] = _boosted(graph, training.n)[:1]
    if given.get("head") == "boosting":
        ordered = [recipe.changed(adjacency=False) for recipe in ordered]
    return list(dict.fromkeys(_fitting(graph, recipe.changed(**given), given) for recipe in ordered))


def _boosted(graph: Graph, training: int) -> list[Recipe]:
    """Trees on columns, their hops and what is known of neighbours; in two stages; on columns alone; by kind."""
    x: Any = graph.features
    wide = x.shape[1] > PRINCIPAL_FROM
    known: Any = {"labels": True, "structure": True, "head": "boosting"}
    on = partial(Recipe, method="none", regime="homophily", scaling="principal" if wide else "none", **known)
    whole = on(hops=2, direction="symmetric", spectrum=graph.n <= SPECTRUM_MOST)
    if may_tell_between(graph):
        whole = whole.changed(between=True)
    found = [whole]
    if whole.between and graph.targets is None and training >= STAGED_FROM:
        found.append(whole.changed(stages=2))
    if x.shape[1] <= BOOSTED_MOST:
        found.append(on(hops=0, scaling="none"))
        sides = 2 * (1 + len(graph.edge_kinds))
        if graph.directed and x.shape[1] * sides <= 2 * BOOSTED_MOST:
            found.append(on(hops=1, direction="both", scaling="none", kinds=bool(graph.edge_kinds)))
    return found


STAGED_FROM = 200
"""Training nodes from which on a part of them can be left out in a first stage."""


def may_tell_between(graph: Graph) -> bool:
    """Whether there are few enough columns to tell labels two steps away apart by the features in between."""
    assert graph.features is not None
    return graph.targets is None and graph.features.shape[1] * graph.n_classes <= JOINT_MOST


def _may_boost(pins: Mapping[str, Any]) -> bool:
    """Whether boosting can have what is pinned: it has no settings of a network, and no rows of the adjacency."""
    return all(name in OWN or name in BOOSTING for name in pins) and not pins.get("adjacency")


WEIGHTINGS = ("log-sum", "recent", "count", "sum", "mean")
"""How names of other weights of edges end, the most useful ones in front."""


def weightings(graph: Graph) -> list[str]:
    """The edge matrices of a graph that weigh its edges in another way than the adjacency, the most useful in front."""
    place = {word: k for k, word in enumerate(WEIGHTINGS)}
    names = [name for name in graph.edge_matrices if name not in graph.edge_kinds]
    names.sort(key=lambda name: place.get(name.rsplit(" ", 1)[-1], len(place)))
    found: list[str] = []
    for name in names:
        earlier = [graph.adjacency, *(graph.edge_matrices[other] for other in found)]
        if not any(_same(graph.edge_matrices[name], matrix) for matrix in earlier):
            found.append(name)
    return found


def _same(one: csr_array, other: csr_array) -> bool:
    """Whether two matrices make the same hops: they differ in a factor only."""
    if one.nnz != other.nnz or not np.array_equal(one.indices, other.indices):
        return False
    first, second = (matrix.data / (matrix.data.max(initial=0.0) or 1.0) for matrix in (one, other))
    return np.array_equal(one.indptr, other.indptr) and np.allclose(first, second, rtol=1e-9)


def _along_edges(recipe: Recipe, graph: Graph) -> Iterator[Recipe]:
    """The recipe with other weights of the edges, and with hops along every kind of them."""
    if graph.edge_kinds and not recipe.kinds:
        yield recipe.changed(kinds=True)
    for name in weightings(graph):
        other = recipe.changed(weight=name)
        if other != recipe:
            yield other


def _trees(graph: Graph) -> tuple[str, str]:
    """The builder of the paper and the one on adjacency rows, where the graph is not too large for them."""
    return ("ward", "adjacency") if graph.n <= AUTO_WARD else ("matching", "matching")


def _fitting(graph: Graph, recipe: Recipe, pins: Mapping[str, Any]) -> Recipe:
    """The recipe without choices that make no difference on this graph."""
    changes: dict[str, Any] = {}
    if not graph.directed and "direction" not in pins:
        changes["direction"] = "out"
    proper = graph.edge_matrices or not is_bag(graph.features)
    if "scaling" not in pins and proper and recipe.scaling != "principal":
        changes["scaling"] = "columns"
    return recipe.changed(**changes)


class Space:
    """The recipes that may be tried on a graph: the choices for every part of one, the likelier ones more than once.

    Nobody knows beforehand which of them suit a graph: they are drawn at random, and those that do well are varied.

    Parameters
    ----------
    graph
        With features.
    pins
        Fields and settings that are the same in every recipe.
    unequal
        Whether classes have very different sizes.
    large
        Whether the graph is large, so that only channels that cost little are made.

    Attributes
    ----------
    heads : dict
        The choices by head; a choice is a mapping of fields and settings.
    """

    def __init__(self, graph: Graph, pins: Mapping[str, Any], unequal: bool = False, large: bool = False) -> None:
        self.graph, self.pins = graph, pins
        x: Any = graph.features
        columns, bag = x.shape[1], is_bag(x) and not graph.edge_matrices
        told = not large or graph.adjacency.nnz <= TOLD_MOST
        sides: list[tuple[str, tuple[Any, ...]]] = (
            [("direction", ("out", "symmetric", "both", "words"))] if graph.directed else []
        )
        edges: list[tuple[str, tuple[Any, ...]]] = (
            [("weight", (None, None, *weightings(graph)[:4]))] if graph.edge_matrices else []
        )
        edges += [("kinds", (False, True))] if graph.edge_kinds else []
        rare = [("class_weights", (False, True))] if unequal else []
        names = ("labels", "structure") if told else ("structure",)
        shared = [*((name, (False, True)) for name in names), *sides, *edges, *rare]
        places = [("spectrum", (False, True))] if graph.n <= SPECTRUM_MOST else []
        few = ("principal",) if columns > PRINCIPAL_FROM else ()
        tree, rows = _trees(graph)
        settings: list[tuple[str, tuple[Any, ...]]] = [
            ("hop_normalize", (False, False, True)),
            ("dropout", (0.5, 0.7, 0.2)),
            ("wd_fc1", (0.0, 1e-5, 1e-5, 1e-4, 1e-4, 1e-3)),
            ("lr_fc", (0.01, 0.005, 0.02)),
            ("attention", ({"lr_sca": 0.005, "wd_sca": 0.1}, {"lr_sca": 0.02, "wd_sca": 1e-3})),
        ]
        network = [
            ("method", ("none",) * 5 + tuple(dict.fromkeys(("matching",) if large else (tree, rows)))),
            ("regime", ("heterophily", "homophily", "all")),
            ("hops", (1, 2, 3) if large else (0, 1, 2, 3, 3, 3, 5)),
            *([("scaling", ("none", "none", "columns", "l1", *few))] if bag else []),
            *([("adjacency", (False, True))] if graph.n <= ROWS_MOST and not large else []),
            *([] if large else [("hidden", (64, 128))]),
            *settings,
            *shared,
            *places,
        ]
        on_tree = [("kind", ("b", "c")), ("h", (8, 4))]
        self.heads: dict[str, list[tuple[str, tuple[Any, ...]]]] = {"network": network + on_tree}
        if (told or columns * graph.n <= BOOSTED_CELLS) and _may_boost(pins):
            many = ("principal",) * (2 * (columns > PRINCIPAL_FROM)) + ("none",) * (columns <= BOOSTED_MOST)
            between = may_tell_between(graph) and told
            self.heads["boosting"] = [
                ("hops", (0, 1, 2, 2)),
                ("regime", ("heterophily", "homophily")),
                ("leaves", (8, 4, 16, 32)),
                *([("scaling", many)] if many else []),
                *shared,
                *places,
                *([("between", (True, False))] if between else []),
                *([("stages", (1, 1, 2))] if between and graph.n <= SPECTRUM_MOST else []),
            ]
        fixed = pins.get("head")
        if fixed is not None:
            self.heads = {fixed: self.heads.get(fixed, self.heads["network"])}

    def draw(self, rng: Any, head: str) -> Recipe:
        """A recipe of a head with every other part drawn."""
        chosen: dict[str, Any] = {"method": "none", "head": head, "regime": "heterophily"}
        for part, choices in self.heads[head]:
            chosen |= _as_fields(part, choices[int(rng.integers(len(choices)))])
        return self._made(chosen)

    def vary(self, recipe: Recipe, rng: Any) -> Recipe:
        """A recipe with one to three parts drawn again."""
        axes = self.heads.get(recipe.head, [])
        if not axes:
            return recipe
        chosen: dict[str, Any] = {}
        for at in rng.permutation(len(axes))[: int(rng.integers(1, 4))].tolist():
            part, choices = axes[at]
            chosen |= _as_fields(part, choices[int(rng.integers(len(choices)))])
        if chosen.get("method", "none") != "none" and not recipe.has_tree:
            for part, choices in axes[-2:]:
                chosen |= _as_fields(part, choices[int(rng.integers(len(choices)))])
        return self._made({**recipe.to_dict(), **chosen})

    def _made(self, chosen: Mapping[str, Any]) -> Recipe:
        whole = {**chosen, **self.pins}
        if whole.get("direction") == "words":  # twice as many channels for each more
            whole["hops"] = min(whole.get("hops", 3), 3) if "hops" not in self.pins else self.pins["hops"]
        if whole.get("head", "network") != "network":
            settings = {name for name in whole if name not in OWN and name not in BOOSTING}
            whole = {name: value for name, value in whole.items() if name not in settings and name != "adjacency"}
        recipe = Recipe.of({name: value for name, value in whole.items() if name not in ("epochs", "patience")})
        kept = {name: self.pins[name] for name in ("epochs", "patience") if name in self.pins}
        return _fitting(self.graph, recipe.changed(**kept), self.pins)


def _as_fields(part: str, choice: Any) -> dict[str, Any]:
    """Fields and settings of a choice: of its own name, or several at once."""
    return dict(choice) if isinstance(choice, Mapping) else {part: choice}


def difference(one: Recipe, other: Recipe) -> int:
    """In how many fields and settings two recipes differ; epochs and patience do not count."""
    a, b = _compared(one), _compared(other)
    return sum(a.get(name) != b.get(name) for name in a.keys() | b.keys())


@lru_cache(maxsize=4096)
def _compared(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe counts: every one is compared with many."""
    return {name: value for name, value in recipe.to_dict().items() if name not in ("epochs", "patience")}


def work(recipe: Recipe, graph: Graph, levels: int) -> float:
    """Roughly the products that one epoch takes, or the entries that a round of boosting looks at.

    `levels` is K of the recipe's tree.
    """
    x: Any = graph.features
    entries = float(x.nnz if issparse(x) else x.size) + 3.0 * x.shape[1]  # the second: Adam on the weights
    if recipe.scaling == "principal":
        entries = float(graph.n) * min(x.shape[1], COUNT) / 2
    edges = float(graph.adjacency.nnz)
    both = 2 if recipe.direction == "both" and graph.directed else 1
    powers = np.arange(1, recipe.hops * recipe.has_powers + 1)
    words = recipe.direction == "words" and graph.directed
    times = 2.0**powers if words else np.full(len(powers), (2 if recipe.regime == "all" else 1) * both)
    hops = float((times * (entries + powers * edges)).sum())
    tree = levels * (entries + edges * recipe.projects_hops + 2.0 * graph.n) if recipe.has_tree else 0.0
    if recipe.is_boosted:
        columns = 1.0 + recipe.hop_count(graph.directed) + 2.0 * both * len(graph.edge_kinds) * recipe.kinds
        width = min(x.shape[1], COUNT) if recipe.scaling == "principal" else x.shape[1]
        outputs = graph.n_classes if graph.n_classes > 2 else 1
        more = float(COUNT) * recipe.spectrum + graph.n_classes * (4.0 + width * recipe.between) * recipe.labels
        models = 5.0 if recipe.stages > 1 else 1.0
        return float(models * outputs * graph.n * (width * columns + more + 12.0) + 10_000.0)
    extra = (edges + 3.0 * graph.n) * recipe.adjacency + 8.0 * graph.n * (recipe.labels + recipe.structure)
    kinds = 2.0 * both * len(graph.edge_kinds) * (entries + edges) * recipe.kinds
    wide = recipe.settings.hidden / Settings.hidden
    return float((entries + hops + tree + extra + kinds) * wide + 10_000.0)
