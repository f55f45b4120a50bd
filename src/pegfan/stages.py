"""The second stage of a recipe: what a first one predicts takes the place of labels that are not known.

Training nodes are dealt into parts. For each part f, a model of the first stage is trained without the labels of its
nodes, neither as targets nor in channels, and gives probabilities P_f for all nodes. A node then sees a world of
beliefs about all nodes' classes:

* a training node of part f the world where all nodes of part f, and all that are no training nodes, have P_f, and the
  other training nodes their labels;
* every other node the world where nodes that are no training nodes have the mean of P_f over f, and training nodes
  their labels.

So nothing that a training node sees was learned from its own label, and it sees as much as a node without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import Float32Array, FloatArray, IntArray
from pegfan.channels.labels import Beliefs
from pegfan.graph import Graph
from pegfan.recipe import Known
from pegfan.trees import canonical_order

__all__ = ["PARTS", "believe", "deal", "without_part"]

PARTS = 5
"""How many models the first stage has, where training nodes suffice."""
_UNIT = 2.0**-20
"""Probabilities are multiples of it: sums of them are exact, and the last bits of a logarithm make no difference."""


def deal(graph: Graph, codes: IntArray, seed: int) -> NDArray[np.int8]:
    """Deal training nodes into parts, each class as evenly as possible.

    Nodes that look alike, labels of training nodes included, are in the same part, so that parts do not depend on how
    nodes are numbered.

    Parameters
    ----------
    graph
        The graph.
    codes
        The class of every training node; -1 for others.
    seed
        Of the draw.

    Returns
    -------
    array of int8, (n,)
        The part of every training node, from 0; -1 for others.

    Examples
    --------
    >>> path = Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]], features=np.arange(5.0)[:, None])
    >>> parts = deal(path, np.array([0, 0, -1, 1, 1]), seed=0)
    >>> sorted(parts.tolist())
    [-1, 0, 1, 2, 3]
    """
    colouring = canonical_order(graph)
    if colouring.tied:
        colouring = canonical_order(graph, labels=codes)
    train = np.flatnonzero(codes >= 0)
    groups, first, back = np.unique(colouring.classes[train], return_index=True, return_inverse=True)
    if len(groups) < 2:
        raise ValueError(
            "two stages need training nodes that differ: each of them is predicted without its own label once. "
            "Label more nodes, or use stages=1"
        )
    drawn = np.random.default_rng([seed, PARTS]).permutation(len(groups))
    turn = np.empty(len(groups), np.int64)
    turn[drawn[np.argsort(codes[train][first][drawn], kind="stable")]] = np.arange(len(groups))  # class by class
    parts = np.full(graph.n, -1, np.int8)
    parts[train] = (turn % PARTS)[back]
    return parts


def without_part(known: Known, parts: NDArray[np.int8], part: int) -> Known:
    """What is known of training nodes where one part of them is not known."""
    return replace(known, codes=np.where(parts == part, -1, known.codes))


def believe(graph: Graph, known: Known, parts: NDArray[np.int8], outputs: Sequence[Float32Array]) -> Beliefs:
    """The worlds of beliefs, and which of them every node of a graph sees.

    Parameters
    ----------
    graph
        The fitted graph or another one, whose nodes are matched with training nodes by `Known.places`.
    known
        What is known of training nodes.
    parts
        The parts of the fitted graph's nodes, see `deal`.
    outputs
        Per part, the logarithms of the probabilities that the first stage gives to the nodes of the graph.
    """
    places, codes = known.places(graph), known.labels_of(graph)
    own = np.where(places >= 0, parts[np.maximum(places, 0)], -1)
    told = np.asarray(codes[:, None] == np.arange(known.classes), np.float64)
    probabilities = [np.exp(output.astype(np.float64)) for output in outputs]
    probabilities.append(np.sum(probabilities, axis=0) / len(outputs))
    worlds = []
    for part, guess in enumerate(probabilities):
        labelled = (codes >= 0) & (own != part)
        world: FloatArray = np.where(labelled[:, None], told, np.rint(guess / _UNIT) * _UNIT)
        worlds.append(world)
    return Beliefs(tuple(worlds), np.where(own >= 0, own, len(outputs)))
