"""What recipes feed to channels beside features, and what is known of the fitted graph's nodes on another graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from pegfan.channels.scaling import FeatureScale, is_bag
from pegfan.graph import Graph, Split

if TYPE_CHECKING:
    from pegfan.auto.recipes import Recipe
    from pegfan.channels import Channel, Channels
    from pegfan.trees import Hierarchy

__all__ = ["FeatureScale", "Known", "is_bag", "recipe_channels"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

JOINT_MOST = 256
"""The most columns of features by class of the neighbour."""


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

    regime: Any = recipe.regime
    direction: Any = recipe.direction
    scaling: Any = {"raw": "none", "scaled": scale}.get(recipe.features, recipe.features)
    options: dict[str, Any] = {"hops": recipe.hops, "regime": regime, "direction": direction, "scaling": scaling}
    if tree is None:
        channels = make_fsgnn_channels(graph, **options)
    else:
        kind: Any = recipe.kind
        channels = make_channels(graph, FrameletSystem(tree), kind, **options)
    if recipe.adjacency:
        channels += [Channel("A", _adjacency_rows(graph, known, recipe), "I", what="who a node is joined to")]
    if recipe.structure:
        what = "degrees of a node and its neighbours"
        channels += [Channel("degrees", None, structural_features(graph), "degrees", what)]
    if recipe.labels:
        channels += label_channels(graph, channels["X"].input, known)
    return channels


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
    channels = [
        make("Y near", None, np.hstack(near), "Y", "training labels of neighbours"),
        make("Y far", None, propagate([walk, walk]), "Y", "training labels two steps away"),
    ]
    if x.shape[1] * (classes + 1) <= JOINT_MOST:
        what = "features of neighbours by their training label"
        channels.append(make("Y X", None, _by_class(walk, x, codes, classes), "Y X", what))
    return channels


def _by_class(walk: csr_array, x: Any, codes: IntArray, classes: int) -> FloatArray:
    """Mean features of the neighbours of each class, and of those without a label; a node itself is no neighbour."""
    others = walk.copy()
    others.setdiag(0)
    dense = x.toarray() if issparse(x) else np.asarray(x)
    parts = [others @ (dense * (codes == k)[:, None]) for k in range(-1, classes)]
    return np.hstack(parts)
