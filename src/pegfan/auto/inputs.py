"""What recipes feed to channels: scaled features, and what is known of the fitted graph's nodes on another graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, issparse

from pegfan.graph import Graph, Split

if TYPE_CHECKING:
    from pegfan.auto.recipes import Recipe
    from pegfan.channels import Channel, Channels
    from pegfan.trees import Hierarchy

__all__ = ["FeatureScale", "Known", "is_bag", "recipe_channels"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

BAG_MOST = 20.0
"""Features that are not negative and nowhere above this are taken as a bag of words: raw values or rows' shares do."""
JOINT_MOST = 256
"""The most columns of features by class of the neighbour."""


def is_bag(features: Any) -> bool:
    """Whether raw features, or rows divided by their sums, make sense as they are.

    Examples
    --------
    >>> is_bag(np.array([[0.0, 1.0], [2.0, 0.0]])), is_bag(np.array([[0.0, 5000.0], [-1.0, 3.0]]))
    (True, False)
    """
    values = features.data if issparse(features) else features
    return bool(values.size == 0 or (values.min() >= 0 and values.max() <= BAG_MOST))


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """Columns brought to one scale: long tails by sign(x) log(1 + |x|), then full columns standardised.

    Columns that are mostly zero are not centred but divided by the root mean square of their other entries, so that
    words of a bag stay as they are and sparse features stay sparse. Centred columns of sparse features come last.

    Attributes
    ----------
    tail
        Which columns have a long tail.
    centre, scale
        What is taken off, and what a column is divided by.
    full
        Which columns are centred.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 2.0], [7.0, 0.0]])
    >>> FeatureScale.of(x).apply(x).round(3)
    array([[-1.342,  0.   ],
           [-0.447,  0.   ],
           [ 0.447,  1.   ],
           [ 1.342,  0.   ]], dtype=float32)
    """

    tail: NDArray[np.bool_]
    full: NDArray[np.bool_]
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, features: Any) -> Self:
        """The scale of a graph's features."""
        x = csc_array(features) if issparse(features) else csc_array(np.asarray(features, dtype=np.float64))
        x = x.astype(np.float64)
        rows = max(x.shape[0], 1)
        counts = np.diff(x.indptr)
        column = np.repeat(np.arange(x.shape[1]), counts)
        largest = np.zeros(x.shape[1])
        np.maximum.at(largest, column, np.abs(x.data))
        tail = largest > BAG_MOST
        data = np.where(tail[column], np.sign(x.data) * np.log1p(np.abs(x.data)), x.data)
        full = counts > rows / 2
        sums, squares = (np.bincount(column, weights=w, minlength=x.shape[1]) for w in (data, data**2))
        centre = np.where(full, sums / rows, 0.0)
        variance = np.where(full, squares / rows - centre**2, squares / np.maximum(counts, 1))
        flat = variance <= 1e-12 * np.maximum(squares / rows, 1e-300)  # a constant column says nothing
        return cls(tail, full, centre, np.where(flat, 1.0, np.sqrt(np.maximum(variance, 0.0))))

    def apply(self, features: Any) -> Any:
        """The features of any graph with these columns, scaled."""
        if not issparse(features):
            x = np.array(features, dtype=np.float64)
            x[:, self.tail] = np.sign(x[:, self.tail]) * np.log1p(np.abs(x[:, self.tail]))
            return ((x - self.centre) / self.scale).astype(np.float32)
        x = csc_array(features, dtype=np.float64, copy=True)
        column = np.repeat(np.arange(x.shape[1]), np.diff(x.indptr))
        data = np.where(self.tail[column], np.sign(x.data) * np.log1p(np.abs(x.data)), x.data)
        x.data = data / self.scale[column]
        sparse, full = x[:, ~self.full], x[:, self.full].toarray() - (self.centre / self.scale)[self.full]
        return csr_array(hstack([sparse, csc_array(full)]), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Known:
    """What the channels of a fitted model know of the nodes that it was fitted to.

    Attributes
    ----------
    codes
        The class of every training node of the fitted graph; -1 elsewhere.
    names
        The nodes' names as strings, or None: nodes of another graph are then told by their position.
    classes
        How many there are.
    """

    codes: IntArray
    names: tuple[str, ...] | None
    classes: int

    @classmethod
    def of(cls, graph: Graph, train: IntArray) -> Self:
        """What is known in training on a split."""
        assert graph.labels is not None
        codes = np.full(graph.n, -1, np.int64)
        codes[train] = graph.labels[train]
        names = None if graph.node_names is None else tuple(map(str, graph.node_names.tolist()))
        return cls(codes, names, graph.n_classes)

    @property
    def n(self) -> int:
        """How many nodes the fitted graph has."""
        return len(self.codes)

    def places(self, graph: Graph) -> IntArray:
        """The place of every node of a graph among the fitted ones; -1 for nodes that are new."""
        if self.names is None or graph.node_names is None:
            nodes = np.arange(graph.n)
            return np.where(nodes < self.n, nodes, -1)
        place = {name: i for i, name in enumerate(self.names)}
        return np.array([place.get(str(name), -1) for name in graph.node_names.tolist()], dtype=np.int64)

    def labels_of(self, graph: Graph) -> IntArray:
        """The training labels that apply to a graph's nodes."""
        places = self.places(graph)
        return np.where(places >= 0, self.codes[np.maximum(places, 0)], -1)


def recipe_channels(
    recipe: Recipe, graph: Graph, tree: Hierarchy | None, known: Known, scale: FeatureScale | None
) -> Channels:
    """The channels of a recipe on a graph: those of the paper, and what the recipe adds to them."""
    from pegfan.channels import Channel, make_channels, make_fsgnn_channels, structural_features
    from pegfan.framelets import FrameletSystem

    seen = _with_inputs(graph, recipe, scale)
    both = recipe.direction == "both"
    side: Any = "out" if both else recipe.direction
    if tree is None:
        channels = make_fsgnn_channels(seen, recipe.hops, recipe.regime, direction=side)
    else:
        first: Any = "heterophily" if recipe.regime == "all" else recipe.regime
        system = FrameletSystem(tree)
        kind: Any = recipe.kind
        channels = make_channels(seen, system, kind, first, recipe.hops, direction=side)
        if recipe.regime == "all" and recipe.hops and kind in "bc":
            channels += make_fsgnn_channels(seen, recipe.hops, "homophily", False, direction=side)
    if both and graph.directed and recipe.hops:
        channels += make_fsgnn_channels(seen, recipe.hops, recipe.regime, False, direction="in")
    if recipe.adjacency:
        channels += [Channel("A", _adjacency_rows(graph, known, recipe), "I")]
    if recipe.structure:
        channels += [Channel("degrees", None, structural_features(graph), "degrees")]
    if recipe.labels:
        channels += label_channels(graph, seen.features, known)
    return channels


def _with_inputs(graph: Graph, recipe: Recipe, scale: FeatureScale | None) -> Graph:
    if recipe.features == "raw":
        return graph
    if recipe.features == "scaled":
        assert scale is not None
        return graph.replace(features=scale.apply(graph.features))
    from pegfan.channels.presets import _features

    return graph.replace(features=_features(graph, "l1"))


def _adjacency_rows(graph: Graph, known: Known, recipe: Recipe) -> csr_array:
    """Rows of A over the fitted graph's nodes; edges to nodes that are new are left out."""
    from pegfan.channels import hop_matrix

    a = hop_matrix(graph, "A", "out" if recipe.direction == "both" else recipe.direction).tocoo()
    places = known.places(graph)
    row, column = a.coords[0], places[a.coords[1]]
    kept = column >= 0
    return csr_array((a.data[kept], (row[kept], column[kept])), shape=(graph.n, known.n))


def label_channels(graph: Graph, x: Any, known: Known) -> Sequence[Channel]:
    """Training labels one and two steps away, and the features of neighbours by their class; a node's own left out.

    Notes
    -----
    On the fitted graph these are the training labels of the split. On another graph they are the labels of those
    nodes that were training nodes: told by name where both graphs name their nodes, else by position.
    """
    from pegfan.channels import Channel, propagated_labels

    codes = known.labels_of(graph)
    nodes = np.flatnonzero(codes >= 0)
    nothing = np.empty(0, np.int64)
    told = Graph(graph.adjacency, directed=graph.directed, labels=codes, class_names=np.arange(known.classes))
    if not nodes.size:  # another graph, none of whose nodes were in training
        zeros = np.zeros((graph.n, known.classes))
        return _label_parts(graph, x, codes, known.classes, lambda _: zeros, Channel)
    part = Split(nodes, nothing, nothing)
    return _label_parts(graph, x, codes, known.classes, lambda steps: propagated_labels(told, steps, part), Channel)


def _label_parts(graph: Graph, x: Any, codes: IntArray, classes: int, propagate: Any, make: Any) -> list[Any]:
    from pegfan.channels import hop_matrix

    sides = ("out", "in") if graph.directed else ("out",)
    walk = hop_matrix(graph, "random-walk", "symmetric")
    near = [propagate([hop_matrix(graph, "random-walk", side)]) for side in sides]
    near.append(np.log1p(propagate([hop_matrix(graph, "A", "symmetric")])))
    channels = [make("Y near", None, np.hstack(near), "Y"), make("Y far", None, propagate([walk, walk]), "Y")]
    if x.shape[1] * (classes + 1) <= JOINT_MOST:
        channels.append(make("Y X", None, _by_class(walk, x, codes, classes), "Y X"))
    return channels


def _by_class(walk: csr_array, x: Any, codes: IntArray, classes: int) -> FloatArray:
    """Mean features of the neighbours of each class, and of those without a label; a node itself is no neighbour."""
    others = walk.copy()
    others.setdiag(0)
    dense = x.toarray() if issparse(x) else np.asarray(x)
    parts = [others @ (dense * (codes == k)[:, None]) for k in range(-1, classes)]
    return np.hstack(parts)
