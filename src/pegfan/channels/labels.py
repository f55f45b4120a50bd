"""Channels of labels: what is known of a node's neighbours, and never of the node itself.

Training labels one and two steps away, the features of neighbours by their label, and labels two steps away by the
features of the node in between.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan.channels._sums import order_free_product
from pegfan.channels.channels import Channel, Channels
from pegfan.channels.hops import hop_matrix
from pegfan.channels.inputs import propagated_labels
from pegfan.graph import Graph, Split

__all__ = [
    "BETWEEN",
    "JOINT",
    "Beliefs",
    "belief_channels",
    "label_channels",
    "labels_between",
    "target_channels",
    "without_labels",
]

NEAR, FAR = "Y near", "Y far"
"""Names of the channels that hold labels alone."""
JOINT, BETWEEN = "Y X", "Y between"
"""Names of the channels that hold products of labels and features, for each column and class one."""
_NAMES = (NEAR, FAR, JOINT, BETWEEN)
JOINT_MOST = 256
"""The most columns of such a channel."""


def label_channels(graph: Graph, x: Any, codes: IntArray, classes: int, between: bool = False) -> list[Channel]:
    """Training labels one and two steps away, and the features of neighbours by their class; a node's own left out.

    Parameters
    ----------
    graph
        Whose edges are looked at.
    x
        The features of its nodes, scaled.
    codes
        The class of every training node; -1 for others.
    classes
        How many there are.
    between
        Whether labels two steps away by the features in between are a channel too, see `labels_between`.
    """
    told = Graph(graph.adjacency, directed=graph.directed, labels=codes, class_names=np.arange(classes))
    walk, sides = hop_matrix(graph, "random-walk", "symmetric"), _sides(graph)
    propagate = partial(_propagate, told, codes >= 0, classes)
    near = [propagate(hop_matrix(graph, "random-walk", side)) for side in sides]
    near.append(np.log1p(propagate(hop_matrix(graph, "A", "symmetric"))))
    channels = [
        Channel(NEAR, None, np.hstack(near), "Y", what="training labels of neighbours"),
        Channel(FAR, None, propagate(walk, walk), "Y", what="training labels two steps away"),
    ]
    shares = _one_hot(codes, classes)
    if x.shape[1] * (classes + 1) <= JOINT_MOST:
        words = "features of neighbours by their training label"
        channels.append(_of_features(JOINT, x, partial(_by_label, walk, shares), words))
    if between:
        channels += _between(graph, x, shares[:, 1:], "training labels two steps away, by the features in between")
    return channels


def target_channels(graph: Graph, x: Any, values: FloatArray, between: bool = False) -> list[Channel]:
    """Means of the training targets one and two steps away, a node's own left out, and how much of them is known.

    Parameters
    ----------
    graph, x
        As in `label_channels`.
    values
        The targets of training nodes; NaN for others.
    between
        As in `label_channels`: of the sum of the targets, and of how many there are.
    """
    known = ~np.isnan(values)
    told, sides = Graph(graph.adjacency, directed=graph.directed, targets=values), _sides(graph)
    walk = hop_matrix(graph, "random-walk", "symmetric")

    def propagate(*steps: csr_array) -> FloatArray:
        total, weight = _propagate(told, known, 2, *steps).T
        return np.column_stack([np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), 0.0), weight])

    near = [propagate(hop_matrix(graph, "random-walk", side)) for side in sides]
    near.append(np.log1p(propagate(hop_matrix(graph, "A", "symmetric"))[:, 1:]))
    channels = [
        Channel(NEAR, None, np.hstack(near), "Y", what="training targets of neighbours"),
        Channel(FAR, None, propagate(walk, walk), "Y", what="training targets two steps away"),
    ]
    if between:
        both = np.column_stack([np.where(known, values, 0.0), known])
        channels += _between(graph, x, both, "training targets two steps away, by the features in between")
    return channels


class Beliefs(NamedTuple):
    """What is believed of the classes of all nodes, and of whom which is believed.

    Attributes
    ----------
    worlds
        Probabilities, a row per node and a column per class: one such array per world.
    seen
        The world that every node sees.
    """

    worlds: tuple[FloatArray, ...]
    seen: IntArray


def belief_channels(graph: Graph, x: Any, beliefs: Beliefs, between: bool = False) -> list[Channel]:
    """The channels of `label_channels`, made of beliefs: every node sees those of its world, its own left out.

    No neighbour is without a belief, so that "Y X" has no columns for such.

    Parameters
    ----------
    graph, x, between
        As in `label_channels`.
    beliefs
        What every node sees.
    """
    a, walk = _without_loops(hop_matrix(graph, "A", "symmetric")), hop_matrix(graph, "random-walk", "symmetric")
    walks = [_without_loops(hop_matrix(graph, "random-walk", side)) for side in _sides(graph)]
    ones, back = np.ones((graph.n, 1)), csr_array(walk.T).data  # in the places of `walk`, for edges lead both ways

    def near(y: FloatArray) -> FloatArray:
        return np.hstack([*(order_free_product(step, y) for step in walks), np.log1p(order_free_product(a, y))])

    def far(y: FloatArray) -> FloatArray:
        return _two_steps(walk, walk, back, ones, y)

    seen, width = partial(_seen, beliefs), x.shape[1]
    channels = [
        Channel(NEAR, None, seen(near), "Y", what="labels of neighbours, known or predicted"),
        Channel(FAR, None, seen(far), "Y", what="labels two steps away, known or predicted"),
    ]
    classes = beliefs.worlds[0].shape[1]
    if width * (classes + 1) <= JOINT_MOST:
        words = "features of neighbours by their label, known or predicted"
        channels.append(_of_features(JOINT, x, lambda z: seen(lambda y: _by_label(walk, y, z)), words))
    if between and width * classes <= JOINT_MOST:
        words = "labels two steps away, known or predicted, by the features in between"
        channels.append(_of_features(BETWEEN, x, lambda z: seen(lambda y: labels_between(graph, z, y)), words))
    return channels


def without_labels(channels: Channels) -> Channels:
    """The channels but those of labels."""
    return Channels([channel for channel in channels if channel.name not in _NAMES], channels.info)


def labels_between(graph: Graph, x: Any, shares: Any) -> FloatArray:
    r"""What is known two steps away, told apart by the features of the node in between; a node's own left out.

    Column (k, j) of node v is Σ_u W_vu x_uj Σ_{w≠v} A_uw y_wk, with A the adjacency of the graph whose edges lead both
    ways, without loops, and W = D⁻¹A the random walk.

    Parameters
    ----------
    graph
        Whose edges are looked at.
    x
        Features, a row per node.
    shares
        y: a row per node, one column per class, such as ones at the labels of training nodes.

    Returns
    -------
    array, (n, classes × columns)

    Notes
    -----
    The sum over w is the sum over all neighbours of u minus the term of v, arc by arc: counts, which are exact, where
    edges have no weights. Matrices of two steps are never formed.

    Examples
    --------
    On a path of three nodes, of which the first has the label 0 and the last the label 1, the label of each end reaches
    the other one by the node in between, whose feature is 5:

    >>> path = Graph.from_edges([[0, 1], [1, 2]])
    >>> labels_between(path, [[3.0], [5.0], [7.0]], [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    array([[0., 5.],
           [0., 0.],
           [5., 0.]])
    """
    known, features = np.asarray(shares, np.float64), _dense(x)
    a, walk = (_without_loops(hop_matrix(graph, kind, "symmetric")) for kind in ("A", "random-walk"))
    return _two_steps(walk, a, a.data, features, known)


def _two_steps(first: csr_array, second: csr_array, back: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Σ_u L_vu x_uj Σ_{w≠v} R_uw y_wk for two matrices with entries in the same places; `back` has R_uv where L_vu is.

    What rounding leaves of a node's own label would be enough to recognise it by, so it is taken for nothing.
    """
    row, column = np.repeat(np.arange(len(x)), np.diff(first.indptr)), first.indices
    whole, sizes = order_free_product(second, y), order_free_product(abs(second), np.abs(y))
    found = []
    for k in range(y.shape[1]):
        others = whole[column, k] - back * y[row, k]
        others[np.abs(others) <= 1e-12 * sizes[column, k]] = 0.0
        found.append(order_free_product(csr_array((first.data * others, column, first.indptr), first.shape), x))
    return np.hstack(found)


def _seen(beliefs: Beliefs, make: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Rows of what is made of beliefs, those of every node from its world."""
    rows = {world: np.flatnonzero(beliefs.seen == world) for world in np.unique(beliefs.seen).tolist()}
    made = {world: make(beliefs.worlds[world])[nodes] for world, nodes in rows.items()}
    found = np.empty((len(beliefs.seen), next(iter(made.values())).shape[1]))
    for world, nodes in rows.items():
        found[nodes] = made[world]
    return found


def _by_label(walk: csr_array, shares: FloatArray, x: Any) -> FloatArray:
    """Mean features of the neighbours of each class, by their shares in it; a node itself is no neighbour."""
    others, features = _without_loops(walk), _dense(x)
    return np.hstack([order_free_product(others, features * share[:, None]) for share in shares.T])


def _between(graph: Graph, x: Any, shares: FloatArray, words: str) -> list[Channel]:
    """The channel of `labels_between`; none where it would have too many columns."""
    if x.shape[1] * shares.shape[1] > JOINT_MOST:
        return []
    return [_of_features(BETWEEN, x, lambda features: labels_between(graph, features, shares), words)]


def _of_features(name: str, x: Any, make: Callable[[Any], FloatArray], words: str) -> Channel:
    """A channel that is linear in the features; how it is made of others is kept, see `pegfan.importance`."""
    channel = Channel(name, None, make(x), name, what=words)
    channel.of_features = make
    return channel


def _propagate(told: Graph, known: Any, width: int, *steps: csr_array) -> FloatArray:
    nodes, nothing = np.flatnonzero(known), np.empty(0, np.int64)
    if not nodes.size:  # another graph, none of whose nodes were in training
        return np.zeros((told.n, width))
    return propagated_labels(told, list(steps), Split(nodes, nothing, nothing))


def _one_hot(codes: IntArray, classes: int) -> FloatArray:
    """Ones at the class of every node; the first column has those of nodes without a label."""
    return np.asarray(codes[:, None] == np.arange(-1, classes), np.float64)


def _sides(graph: Graph) -> tuple[str, ...]:
    return ("out", "in") if graph.directed else ("out",)


def _dense(x: Any) -> FloatArray:
    return np.asarray(x.toarray() if issparse(x) else x, np.float64)


def _without_loops(matrix: csr_array) -> csr_array:
    """The matrix without its diagonal."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    kept = row != matrix.indices
    if kept.all():
        return matrix
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    return csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)
