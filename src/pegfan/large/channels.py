"""Channels of a graph beyond memory: hops and scaling coefficients on disk, rows put together when they are asked for.

Everything is computed in the order of the channels (`channel_order`), in which *place* i belongs to node ``order[i]``,
and in *slabs*, some columns of the features for all nodes: sums of different columns have nothing to do with each
other. What is kept of a slab are X and its hops, and for projections the coefficients c_j = Φ_j f of the levels of the
tree. Coefficients of the coarser levels fit into memory; those of the finer ones are written as Φ_jᵀ c_j, a row per
place. The rows that come out are those of `pegfan.channels.Channels.rows`, bit for bit, however the graph is cut.

``make_channels(work, pieces, recipe) -> LargeChannels``
    `GraphPieces` says where the parts of the graph are; a `pegfan.Recipe` which channels are wanted.
``LargeChannels.rows(places) -> list of array``
    Rows of every channel, for some places; ``channels.places_of(nodes)`` finds those of nodes.
``LargeChannels.block(places).rows(which)``
    The same in two steps: what is read from disk, and what is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan._arrays import Float32Array, IntArray
from pegfan._limits import is_large
from pegfan._matrices import merge_rows
from pegfan._products import sparse_product
from pegfan.channels import Channel, Channels, FeatureScale, names
from pegfan.channels._sums import order_free_sums
from pegfan.channels._trie import split as split_factors
from pegfan.framelets._kernels import average
from pegfan.framelets._signals import ClassMeans
from pegfan.graph import Graph
from pegfan.large.files import Arcs, Rows, RowWriter
from pegfan.large.pieces import Made, Stage, Task, Work
from pegfan.recipe import Recipe, pad_levels
from pegfan.trees import Hierarchy

__all__ = ["Block", "GraphPieces", "LargeChannels", "channel_order", "make_channels"]

_ARCS = 2**20
"""Arcs that are multiplied at a time."""
_CELLS = 2**21
"""Entries of features that are moved at a time."""
_LINE = 16
"""Numbers of float32 in a cache line: an arc reads whole lines of a slab."""
_SLAB = 0.4
"""The part of the memory that a slab takes."""
_HELD = 0.25
"""The part of the memory that coefficients take while rows are put together."""

Step = tuple[str, str]
"""A hop: its symbol, and the side of the edges that it looks at."""


@dataclass(frozen=True)
class GraphPieces:
    """The parts of a graph on disk, as channels need them.

    Attributes
    ----------
    n, columns, directed
        Nodes and feature columns, and whether edges have a direction.
    features
        A stage with a piece per slab of columns: ``values.npy``, rows in the order of the nodes, for the columns from
        ``start`` up to ``stop`` of its result.
    order
        A stage with the canonical order: ``order.npy`` and ``classes.npy``, and ``tied`` and ``arbitrary`` in its
        result, as in `pegfan.trees.canonical_order`.
    arcs
        From a stage with ``order.npy``, and whether directions are turned around, to the arcs renumbered so: arc blocks
        (``pegfan.large.arcs``).
    tree
        From a recipe to a stage with its tree, ``tree.npz``.
    """

    n: int
    columns: int
    directed: bool
    features: Stage
    order: Stage
    arcs: Callable[[Stage, bool], Stage]
    tree: Callable[[Recipe], Stage]


def channel_order(work: Work, pieces: GraphPieces, tree: Stage | None) -> Stage:
    """The stage with the order in which the sums of channels are taken: the canonical one, or that of the leaves.

    Large graphs, all of whose nodes differ, have one order whatever the tree is, so that all channels share their hops.
    """
    if tree is None:
        return pieces.order
    about = pieces.order.results[0]
    if is_large(pieces.n) and not about["tied"] and not about["arbitrary"]:
        return pieces.order
    return work.stage(leaf_order, {}, {"tree": tree}, words="the order of the leaves")


def make_channels(
    work: Work, pieces: GraphPieces, recipe: Recipe, scale: FeatureScale | None = None, levels: int | None = None
) -> LargeChannels:
    """Make the channels of a recipe on a graph in pieces; nothing is computed before rows are asked for.

    Parameters
    ----------
    work
        Where pieces are kept.
    pieces
        The graph.
    recipe
        Of features, hops and projections; channels of labels, degrees, kinds of edges and the like do not come in
        pieces. Its regime must be named.
    scale
        Of the columns of the graph that was fitted, for another graph, where the recipe asks for one.
    levels
        So many levels of the tree, as in `Recipe.build_tree`.

    Examples
    --------
    >>> import tempfile
    >>> import pegfan as pf
    >>> from pegfan.large.arcs import ordered
    >>> from pegfan.large.given import cut
    >>> from pegfan.large.order import canonical_order
    >>> from pegfan.large.tree import build_tree
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=4)
    >>> with tempfile.TemporaryDirectory() as folder, Work(folder) as work:
    ...     arcs, features = cut(work, graph, arcs_per_block=1000, width=3)
    ...     order = canonical_order(work, arcs, None, features)
    ...     moved = ordered(work, arcs, order)
    ...     parts = (features, order, lambda by, turned: ordered(work, arcs, by))
    ...     pieces = GraphPieces(300, 4, False, *parts, lambda recipe: build_tree(work, moved, order, h=recipe.h))
    ...     recipe = Recipe("matching", h=8, kind="b", regime="heterophily", hops=2)
    ...     channels = make_channels(work, pieces, recipe)
    ...     found = channels.rows(channels.places_of([7, 0]))
    >>> channels
    LargeChannels(X, S X, S^2 X, F_0 X, F_1 X, F_2 X, F_3 X)
    >>> theirs = recipe.channels(graph, recipe.build_tree(graph), split=None).rows([7, 0])
    >>> all(map(np.array_equal, found, theirs))
    True
    """
    _check(recipe)
    tree = pieces.tree(recipe) if recipe.has_tree else None
    if tree is not None and levels is not None:
        tree = _with_levels(work, pieces, recipe, tree, levels)
    return LargeChannels(work, pieces, recipe, tree, channel_order(work, pieces, tree), scale)


def _with_levels(work: Work, pieces: GraphPieces, recipe: Recipe, tree: Stage, levels: int) -> Stage:
    """The tree with exactly so many levels: one that was never built higher, or one whose levels are repeated."""
    own = work.stage(count_levels, {}, {"tree": tree}).results[0]["levels"]
    if own > levels:
        tree = pieces.tree(recipe.changed(max_levels=levels))
        own = work.stage(count_levels, {}, {"tree": tree}).results[0]["levels"]
    if own == levels:
        return tree
    return work.stage(repeat_levels, {"levels": levels}, {"tree": tree}, words="levels of the tree")


def _check(recipe: Recipe) -> None:
    """Refuse what cannot be made in pieces."""
    wrong = [name for name in ("adjacency", "labels", "structure", "kinds", "spectrum") if getattr(recipe, name)]
    wrong += ["weight"] if recipe.weight is not None else []
    if wrong:
        raise ValueError(
            f"{wrong[0]} cannot be made of a graph in pieces: use a recipe without it, not {recipe.name!r}"
        )
    if recipe.scaling == "principal" or recipe.direction == "words":
        found = "scaling='principal'" if recipe.scaling == "principal" else "direction='words'"
        raise ValueError(f"{found} is not there for graphs in pieces; choose another, not {recipe.name!r}")
    if recipe.regime_is_open:
        raise ValueError("name the regime, 'homophily' or 'heterophily': 'auto' is decided before channels are made")


class LargeChannels:
    """Channels of a graph in pieces.

    Attributes
    ----------
    work, pieces, recipe
        As given to `make_channels`.
    tree
        The stage with the tree; None without one.
    order
        The stage with the order of the channels: place i belongs to node ``order[i]``.
    names, widths
        Of the channels.
    like
        The same channels on a graph of three nodes: their names and words.
    """

    def __init__(
        self,
        work: Work,
        pieces: GraphPieces,
        recipe: Recipe,
        tree: Stage | None,
        order: Stage,
        scale: FeatureScale | None,
    ) -> None:
        self.work, self.pieces, self.recipe, self.tree, self.order, self._scale = (
            *(work, pieces, recipe, tree, order),
            scale,
        )
        self.n = pieces.n
        self.tied = int(pieces.order.results[0]["tied"])
        # The order is all that the levels depend on beside the tree, and it knows both.
        self.levels: Stage | None = None
        self.clusters: list[int] = []
        if tree is not None:
            self.levels = work.stage(tree_levels, {}, {"tree": tree, "order": order}, words="levels of the tree")
            self.clusters = self.levels.results[0]["clusters"]
        self.like = self._small()
        self.names, self.widths = self.like.names, self.like.widths
        self.wanted = [_wanted(channel) for channel in self.like]
        self.slabs = _slabs(work, pieces.n, pieces.columns)
        self._stems: dict[tuple[Step, ...], Stage] = {}

    def _small(self) -> Channels:
        """The channels on a graph of three nodes, which have the same names, factors and widths."""
        graph = Graph.from_edges([[0, 1], [1, 2]], directed=self.pieces.directed)
        graph = graph.replace(features=np.arange(3.0 * self.pieces.columns, dtype=np.float32).reshape(3, -1) + 1)
        tree = None
        if self.recipe.has_tree:
            levels = len(self.clusters)
            above = [np.zeros(1, np.int64)] * (levels - 2)
            tree = Hierarchy([np.zeros(3, np.int64), *above])
        recipe = self.recipe.changed(scaling="none")
        return recipe.channels(graph, tree, split=None)

    # ------------------------------------------------------------------------ stages

    @cached_property
    def scale(self) -> FeatureScale | None:
        """The scale of the columns, where the recipe asks for one."""
        if self.recipe.scaling != "columns" or self._scale is not None:
            return self._scale if self.recipe.scaling == "columns" else None
        stage = self.work.stage(
            scale_columns,
            {"slabs": self.slabs},
            {"features": self.pieces.features},
            count=len(self.slabs),
            words="scales of columns",
            alone=True,
        )
        parts = [[stage.load(name, block) for block in range(stage.count)] for name in _SCALE]
        return FeatureScale(*map(np.concatenate, parts))

    def stem(self, steps: tuple[Step, ...]) -> Stage:
        """The stage with the features, after hops: ``values.npy`` per slab, rows in the order of the channels."""
        if steps not in self._stems:
            self._stems[steps] = self._spread(steps) if steps else self._features()
        return self._stems[steps]

    def _features(self) -> Stage:
        inputs, params = {"features": self.pieces.features, "order": self.order}, {"slabs": self.slabs}
        if self.recipe.scaling == "columns":
            scale = self.scale
            params |= {name: getattr(scale, name).tolist() for name in _SCALE}
        elif self.recipe.scaling == "l1":
            inputs["sums"] = self.work.stage(
                row_sums, {}, {"features": self.pieces.features}, words="sums of features", alone=True
            )
        return self.work.stage(
            ordered_features, params, inputs, len(self.slabs), "features in order", self.n, alone=self._alone
        )

    def _spread(self, steps: tuple[Step, ...]) -> Stage:
        (kind, side), above = steps[0], self.stem(steps[1:])
        arcs: dict[str, Stage] = {}
        if side != "in" or not self.pieces.directed:
            arcs["arcs"] = self.pieces.arcs(self.order, False)
        if side != "out" and self.pieces.directed:
            arcs["arcs" if side == "in" else "others"] = self.pieces.arcs(self.order, True)
        params = {"own": kind == "S~"}
        roots = self.work.stage(degree_roots, params, arcs, words="degrees", alone=True)
        inputs = {**arcs, "roots": roots, "above": above}
        words = f"hop {len(steps)} ({kind})"
        return self.work.stage(
            spread, params | {"slabs": self.slabs}, inputs, len(self.slabs), words, self.n, alone=self._alone
        )

    @property
    def _alone(self) -> bool:
        """Threads of one machine share a slab; workers elsewhere have slabs of their own."""
        return self.work.cluster is None

    @cached_property
    def held(self) -> int:
        """The finest level whose coefficients are held in memory, and those of all coarser ones; 0 for none."""
        room = _HELD * self.work.memory / max(len(self._projected), 1)
        sizes = np.cumsum([4.0 * count * self.pieces.columns for count in self.clusters[:-1]])
        return int(np.searchsorted(sizes, room, side="right"))

    @property
    def _projected(self) -> list[tuple[Step, ...]]:
        """Which stems are projected."""
        return list(dict.fromkeys(steps for steps, scale in self.wanted if scale is not None))

    def coefficients(self, steps: tuple[Step, ...]) -> Stage:
        """The stage with scaling coefficients of a stem: ``level_j`` per slab, and ``lifted_j`` of finer levels."""
        assert self.levels is not None
        inputs = {"levels": self.levels, "stem": self.stem(steps)}
        if self.tied:
            inputs |= {"order": self.order, "classes": self.pieces.order}
        scales = sorted(scale for own, scale in self.wanted if own == steps and scale is not None)
        params = {"slabs": self.slabs, "held": self.held, "scales": scales}
        return self.work.stage(coefficients, params, inputs, len(self.slabs), "coefficients", self.n, alone=self._alone)

    def paths(self) -> Stage:
        """The stage with the cluster of every place at the level that is held, and the value of its φ there."""
        assert self.levels is not None
        return self.work.stage(paths, {"level": self.held}, {"levels": self.levels}, words="paths in the tree")

    # -------------------------------------------------------------------------- rows

    @cached_property
    def _first(self) -> IntArray | None:
        """The first place whose node looks like that of a place; None where all differ."""
        if not self.tied:
            return None
        classes = self.pieces.order.load("classes")[self.order.load("order")]
        first = np.full(int(classes.max()) + 1, self.n)
        np.minimum.at(first, classes, np.arange(self.n))
        return np.asarray(first[classes])

    def places_of(self, nodes: Any = None) -> IntArray:
        """The places of some nodes, or of all; nodes that look alike share one."""
        order = self.order.load("order")
        places = np.empty(self.n, np.int64)
        places[order] = np.arange(self.n) if self._first is None else self._first
        return places if nodes is None else places[nodes]

    def block(self, places: IntArray) -> Block:
        """What rows of all channels at some places are computed from."""
        return Block(self._reader, places if self._first is None else self._first[places])

    def rows(self, places: IntArray, dtype: Any = np.float32) -> list[Float32Array]:
        """Some rows of every channel; contiguous places are read at once.

        Parameters
        ----------
        places
            See `places_of`.
        dtype
            float32; there is no other.
        """
        if np.dtype(dtype) != np.float32:
            raise ValueError(f"channels in pieces are of float32, not {np.dtype(dtype)}")
        return self.block(np.asarray(places, np.int64)).rows()

    def sample(self, places: IntArray) -> Channels:
        """The rows at some places as channels in memory, which know nothing of the graph."""
        rows = self.rows(places)
        return Channels([_plain(channel, x) for channel, x in zip(self.like, rows, strict=True)], self.like.info)

    def prepare(self) -> LargeChannels:
        """Compute all that rows need."""
        _ = self._reader
        return self

    @cached_property
    def _reader(self) -> _Reader:
        return _Reader(self)

    @property
    def row_bytes(self) -> int:
        """What a place takes when it is read, before rows of channels are made of it."""
        return self._reader.row_bytes

    def __repr__(self) -> str:
        return f"LargeChannels({', '.join(self.names)})"


def _wanted(channel: Channel) -> tuple[tuple[Step, ...], int | None]:
    """The hops of a channel, the last one acting first, and the scale of its projection."""
    head, factors = split_factors(channel.factors)
    steps = tuple((str(factor.hop), str(factor.side)) for factor in factors)
    return steps, None if head is None else head.scale


def _plain(channel: Channel, rows: Float32Array) -> Channel:
    return Channel(channel.name, None, rows, channel.input_name, names.describe(channel))


def _slabs(work: Work, n: int, columns: int) -> list[list[int]]:
    """Where slabs of columns begin and end: as wide as fits, of whole cache lines if that may be."""
    share = work.memory if work.cluster is None else work.memory // work.workers
    widest = int(_SLAB * share / (4.0 * max(n, 1)))
    if widest < 1:
        raise ValueError(
            f"{n:,} nodes need at least {4 * n / _SLAB / 1e9:.1f} GB, and {share / 1e9:.1f} GB are allowed; allow more"
        )
    step = widest // _LINE * _LINE or widest
    return [[start, min(start + step, columns)] for start in range(0, columns, step)]


# ------------------------------------------------------------------------- putting rows together


class _Reader:
    """The files of channels, and what of them is held in memory."""

    def __init__(self, channels: LargeChannels) -> None:
        self.wanted, self.held, self.K = channels.wanted, channels.held, len(channels.clusters)
        self.stems = {steps: _files(channels.stem(steps), "values") for steps, _ in channels.wanted}
        self.tables: dict[Any, list[Float32Array]] = {}
        self.lifted: dict[Any, list[Rows]] = {}
        self.means: dict[Any, Float32Array] = {}
        self.parents: dict[int, NDArray[Any]] = {}
        self.weights: dict[int, NDArray[Any]] = {}
        self.code: NDArray[Any] | None = None
        self.path: list[Rows] = []
        if channels._projected and self.held:
            stage = channels.paths()
            self.path = [Rows(stage.path(f"{name}.npy")) for name in ("slot", "phi")]
        for steps in channels._projected:
            stage = channels.coefficients(steps)
            for level in range(1, self.K):
                if level <= self.held:
                    self.tables[steps, level] = _joined(stage, f"level_{level}")
                elif stage.has(f"lifted_{level}"):
                    self.lifted[steps, level] = _files(stage, f"lifted_{level}")
            if channels.tied:
                for own, scale in channels.wanted:
                    if own == steps and scale is not None:
                        self.means[steps, scale] = _joined(stage, f"mean_{scale}")
                self.code = _class_means(channels.pieces.order, channels.order).code
        if channels.levels is not None:
            for level in range(1, self.held):
                self.parents[level], self.weights[level] = _links(channels.levels, level)
        files = [*self.stems.values(), *self.lifted.values(), self.path]
        self.row_bytes = sum(rows.row_bytes for group in files for rows in group)


def _files(stage: Stage, name: str) -> list[Rows]:
    return [Rows(stage.path(f"{name}.npy", block)) for block in range(stage.count)]


def _joined(stage: Stage, name: str) -> Any:
    parts = [stage.load(name, block) for block in range(stage.count)]
    return parts[0] if len(parts) == 1 else np.hstack(parts)


class Block:
    """What was read of some places; `rows` puts rows of channels together."""

    def __init__(self, reader: _Reader, places: IntArray) -> None:
        self.reader, self.places = reader, places
        run = _run_of(places)
        self.stems = {steps: _taken(files, places, run) for steps, files in reader.stems.items()}
        self.lifted = {key: _taken(files, places, run) for key, files in reader.lifted.items()}
        self.path = [rows.take(places, run) for rows in reader.path]

    def rows(self, which: Any = None) -> list[Float32Array]:
        """Rows of every channel: of all places, or of some, by their place in the block."""
        reader, some = self.reader, slice(None) if which is None else which
        ways = self._ways(some)
        code = None if reader.code is None else reader.code[self.places[some]]
        kept: dict[Any, Float32Array] = {}

        def lift(steps: tuple[Step, ...], level: int) -> Float32Array:
            if level == reader.K:
                return self._stem(steps, some)
            if (steps, level) not in kept:
                if level > reader.held:
                    kept[steps, level] = self.lifted[steps, level][some]
                else:
                    slot, phi = ways[level]
                    kept[steps, level] = phi[:, None] * reader.tables[steps, level][slot]
            return kept[steps, level]

        found = []
        for steps, scale in reader.wanted:
            if scale is None:
                found.append(self._stem(steps, some))
                continue
            rows = lift(steps, 1).copy() if scale == 0 else lift(steps, scale + 1) - lift(steps, scale)
            if code is not None:
                where = np.flatnonzero(code >= 0)
                rows[where] = reader.means[steps, scale][code[where]]
            found.append(rows)
        return found

    def _stem(self, steps: tuple[Step, ...], some: Any) -> Float32Array:
        return self.stems[steps][some] if not isinstance(some, slice) else self.stems[steps]

    def _ways(self, some: Any) -> dict[int, tuple[NDArray[Any], Float32Array]]:
        """The cluster of every place and the value of its φ there, at the levels that are held."""
        if not self.path:
            return {}
        found: dict[int, tuple[NDArray[Any], Float32Array]] = {}
        slot, phi = (part[some] for part in self.path)
        for level in range(self.reader.held, 0, -1):
            if level < self.reader.held:
                phi, slot = phi * self.reader.weights[level][slot], self.reader.parents[level][slot]
            found[level] = (slot, phi.astype(np.float32))
        return found


def _taken(files: list[Rows], places: IntArray, run: slice | None) -> Float32Array:
    parts = [rows.take(places, run) for rows in files]
    return parts[0] if len(parts) == 1 else np.hstack(parts)


def _run_of(places: IntArray) -> slice | None:
    """Places that follow each other, as a slice."""
    if len(places) and places[-1] - places[0] + 1 == len(places) and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return None


# --------------------------------------------------------------------------------- what pieces do

_SCALE = ("tail", "full", "centre", "scale")


def leaf_order(task: Task) -> None:
    """The nodes in the order of a tree's leaves."""
    task.save("order", Hierarchy.load(task.inputs["tree"].path("tree.npz")).order)


def count_levels(task: Task) -> dict[str, Any]:
    """How many levels a tree has."""
    return {"levels": Hierarchy.load(task.inputs["tree"].path("tree.npz")).K}


def repeat_levels(task: Task) -> None:
    """A tree with so many levels: the root's children are repeated."""
    tree = Hierarchy.load(task.inputs["tree"].path("tree.npz"))
    pad_levels(tree, task.params["levels"]).save(task.folder / "tree.npz")


def tree_levels(task: Task) -> dict[str, Any]:
    """The levels of a tree: offsets of children, and which place is on which leaf."""
    tree = Hierarchy.load(task.inputs["tree"].path("tree.npz"))
    order = task.inputs["order"].load("order")
    places = np.empty(tree.n, np.int64)
    places[order] = np.arange(tree.n)
    del order
    rows = places[tree.order]
    task.save("rows", rows)
    leaf = np.empty(tree.n, np.int32 if tree.n <= np.iinfo(np.int32).max else np.int64)
    leaf[rows] = np.arange(tree.n, dtype=leaf.dtype)
    task.save("leaf", leaf)
    for level in range(1, tree.K):
        task.save(f"first_{level}", tree.first_child(level))
    return {"clusters": list(tree.n_clusters)}


def _links(levels: Made, level: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The parents at a level of the clusters one level below, and their weights in it."""
    children = np.diff(levels.load(f"first_{level}"))
    small = np.int32 if len(children) <= np.iinfo(np.int32).max else np.int64
    return np.repeat(np.arange(len(children), dtype=small), children), np.repeat(1.0 / np.sqrt(children), children)


def paths(task: Task) -> None:
    """The cluster of every place at a level, and the value of its φ."""
    levels, level = task.inputs["levels"], task.params["level"]
    slot, phi = levels.load("leaf"), None
    for j in range(len(levels.result()["clusters"]) - 1, level - 1, -1):
        parents, weights = _links(levels, j)
        own = weights[slot]
        phi, slot = own if phi is None else phi * own, parents[slot]
    assert phi is not None
    task.save("slot", slot)
    task.save("phi", phi)


def _columns(features: Made, start: int, stop: int, rows: slice) -> NDArray[Any]:
    """Some rows and columns of features."""
    parts = []
    for block, about in enumerate(features.results):
        a, b = max(start, about["start"]), min(stop, about["stop"])
        if a < b:
            found = Rows(features.path("values.npy", block)).read(rows.start, rows.stop)
            parts.append(found[:, a - about["start"] : b - about["start"]])
    return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.hstack(parts)


def _runs(n: int, columns: int) -> Iterator[slice]:
    step = max(_CELLS // max(columns, 1), 1)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _features_of(features: Made, start: int, stop: int, dtype: Any = None) -> NDArray[Any]:
    """Some columns of features, for all nodes."""
    first = Rows(features.path("values.npy"))
    n = first.count
    out = np.empty((n, stop - start), dtype or first.dtype)
    for run in _runs(n, stop - start):
        out[run] = _columns(features, start, stop, run)
    return out


def scale_columns(task: Task) -> None:
    """The scale of the columns of a slab, column by column."""
    start, stop = task.params["slabs"][task.block]
    slab = _features_of(task.inputs["features"], start, stop)
    parts = [FeatureScale.of(slab[:, [column]]) for column in range(stop - start)]
    for name in _SCALE:
        task.save(name, np.concatenate([getattr(part, name) for part in parts]))


def row_sums(task: Task) -> None:
    """What rows of features are divided by, so that their absolute values add up to one."""
    features = task.inputs["features"]
    columns, sums = max(about["stop"] for about in features.results), []
    for run in _runs(Rows(features.path("values.npy")).count, columns):
        sums.append(np.abs(_columns(features, 0, columns, run)).sum(axis=1))
    found = np.concatenate(sums)
    found[found == 0] = 1
    task.save("sums", found)


def ordered_features(task: Task) -> None:
    """The features of a slab, scaled, in an order of the nodes."""
    start, stop = task.params["slabs"][task.block]
    features, order = task.inputs["features"], task.inputs["order"].load("order")
    scale = None
    if "scale" in task.params:
        own = [np.array(task.params[name])[start:stop] for name in _SCALE]
        scale = FeatureScale(own[0].astype(bool), own[1].astype(bool), own[2], own[3])
    sums = task.inputs["sums"].load("sums") if "sums" in task.inputs else None
    n = len(order)
    slab = np.empty((n, stop - start), np.float32)
    for run in _runs(n, stop - start):
        x = _columns(features, start, stop, run)
        if scale is not None:
            x = scale.apply(x)
        elif sums is not None:
            x = x / sums[run, None]
        slab[run] = x
    with RowWriter(task.folder / "values.npy", slab.shape, np.float32) as out:
        for run in _runs(n, stop - start):
            out.write(run.start, slab[order[run]])


def _chunk(task: Task, start: int, stop: int, arcs: Arcs, others: Arcs | None) -> csr_array:
    """Rows of the matrix that is normalised: A, Aᵀ or the larger of both, and the identity where nodes see themselves.

    Its columns are numbered as in the whole matrix.
    """
    pointers, columns, weights = arcs.rows(start, stop)
    if others is not None:
        pointers, columns, weights = _merged((pointers, columns, weights), others.rows(start, stop), True)
    if task.params["own"]:
        rows = np.arange(start, stop, dtype=columns.dtype)
        one = (np.arange(len(rows) + 1, dtype=columns.dtype), rows, np.ones(len(rows)))
        pointers, columns, weights = _merged((pointers, columns, weights), one, False)
    found = csr_array((stop - start, arcs.n), dtype=np.float64)
    found.data, found.indices, found.indptr = weights, columns, pointers
    return found


def _merged(one: Sequence[Any], other: Sequence[Any], largest: bool) -> tuple[Any, Any, Any]:
    index, size = one[1].dtype, len(one[1]) + len(other[1])
    pointers, columns, values = np.empty(len(one[0]), index), np.empty(size, index), np.empty(size)
    given = [one[0].astype(index), *one[1:], other[0].astype(index), *other[1:]]
    end = merge_rows(*given, largest, pointers, columns, values)
    return pointers, columns[:end], values[:end]


def _over_arcs(task: Task, use: Callable[[int, int, csr_array], None]) -> None:
    """Call a function with rows of the matrix, from first to last, in all threads of the task."""
    arcs = Arcs(task.inputs["arcs"])
    others = Arcs(task.inputs["others"]) if "others" in task.inputs else None

    def one(rows: tuple[int, int]) -> None:
        use(*rows, _chunk(task, *rows, arcs, others))

    if task.threads == 1:
        for rows in arcs.chunks(_ARCS):
            one(rows)
        return
    with ThreadPoolExecutor(task.threads) as pool:
        waiting = []
        for rows in arcs.chunks(_ARCS):
            waiting.append(pool.submit(one, rows))
            if len(waiting) >= 2 * task.threads:
                waiting.pop(0).result()
        for future in waiting:
            future.result()


def degree_roots(task: Task) -> None:
    """The square roots of the row sums, by which hops are normalised; a sum of zero counts as one."""
    roots = np.empty(Arcs(task.inputs["arcs"]).n)

    def use(start: int, stop: int, matrix: csr_array) -> None:
        sums = order_free_sums(matrix)
        sums[sums == 0] = 1
        roots[start:stop] = np.sqrt(sums)

    _over_arcs(task, use)
    task.save("roots", roots)


def spread(task: Task) -> None:
    """A hop of a slab: D^-1/2 A D^-1/2 times its rows."""
    x, roots = task.inputs["above"].load("values", task.block), task.inputs["roots"].load("roots")
    with RowWriter(task.folder / "values.npy", x.shape, np.float32) as out:

        def use(start: int, stop: int, matrix: csr_array) -> None:
            values = roots[matrix.indices]
            values *= np.repeat(roots[start:stop], np.diff(matrix.indptr))
            np.divide(matrix.data, values, out=values)
            rows = np.empty((stop - start, x.shape[1]), np.float32)
            data = values.astype(np.float32)
            sparse_product(matrix.indptr, matrix.indices, data, x, rows, 0, stop - start)
            out.write(start, rows)

        _over_arcs(task, use)


def _class_means(classes: Made, order: Made) -> ClassMeans:
    """Means over nodes that look alike, in the order of the channels."""
    numbers = classes.load("classes")[order.load("order")]
    return ClassMeans(numbers, len(numbers))


def coefficients(task: Task) -> None:
    """The scaling coefficients of a slab, level by level from the leaves up; finer levels are lifted to places."""
    levels, held = task.inputs["levels"], task.params["held"]
    K = len(levels.result()["clusters"])
    f = task.inputs["stem"].load("values", task.block)
    rows, tables = levels.load("rows"), dict[int, Any]()
    x: Any = f
    for level in range(K - 1, 0, -1):
        first = levels.load(f"first_{level}")
        children = np.diff(first)
        p = np.repeat(1.0 / np.sqrt(children), children).astype(np.float32)
        tables[level] = np.empty((len(children), f.shape[1]), np.float32)
        average(first, p, x, rows, tables[level])
        x, rows = tables[level], rows[:0]
        if level <= held:
            task.save(f"level_{level}", tables[level])
    del x, rows
    wanted = {level for scale in task.params["scales"] for level in (scale, scale + 1) if 0 < level < K}
    lifted = sorted((level for level in wanted if level > held), reverse=True)
    links = {level: _links(levels, level) for level in range(K - 1, min(lifted, default=K) - 1, -1)}
    if lifted:
        leaf = levels.load("leaf")
        files = {level: RowWriter(task.folder / f"lifted_{level}.npy", f.shape, np.float32) for level in lifted}
        for run in _runs(len(leaf), f.shape[1]):
            for level, values in _lifts(tables, links, leaf[run], lifted):
                files[level].write(run.start, values)
        for file in files.values():
            file.close()
    if "classes" in task.inputs:
        _save_means(task, levels, tables, f, K)


def _lifts(tables: Any, links: Any, leaf: NDArray[Any], wanted: Sequence[int]) -> Iterator[tuple[int, Float32Array]]:
    """Φ_jᵀ c_j for some leaves, level by level from the finest one up."""
    slot, phi = leaf, None
    for level in sorted(links, reverse=True):
        parents, weights = links[level]
        own = weights[slot]
        phi, slot = own if phi is None else phi * own, parents[slot]
        if level in wanted:
            yield level, phi.astype(np.float32)[:, None] * tables[level][slot]


def _save_means(task: Task, levels: Made, tables: Any, f: Float32Array, K: int) -> None:
    """The means of every scale over nodes that look alike."""
    means = _class_means(task.inputs["classes"], task.inputs["order"])
    nodes, scales = means.nodes, set(task.params["scales"])
    links = {level: _links(levels, level) for level in range(K - 1, 0, -1)}
    finer: Any = f[nodes]  # of level K
    for level, values in _lifts(tables, links, levels.load("leaf")[nodes], range(1, K)):
        if level in scales:
            task.save(f"mean_{level}", means.of_members(finer - values))
        finer = values
    if 0 in scales:
        task.save("mean_0", means.of_members(finer))
