"""Relations between nodes that play the same part in a graph, near or far: the multigraph of WRGAT.

Suresh et al. 2021, "Breaking the limit of graph neural networks by improving the assortativity of graphs with local
mixing patterns", after Ribeiro et al. 2017, "struc2vec".
"""

from __future__ import annotations

from math import floor, log2
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_choice, check_integer
from pegfan.graph import Graph, check_graph
from pegfan.relations._kernels import add_distances, nearest_degrees, relation_weights, rings
from pegfan.trees import canonical_order

__all__ = ["struc2vec_relations"]

MOST_VISITS = 5e10
"""Edges that the searches of all nodes together may pass: some minutes."""

_ENTRIES = 2**22  # of the rings that are counted in one call; between calls, Ctrl-C is heard
_ROWS = 256  # of candidates that are compared in one call


def struc2vec_relations(
    graph: Graph, *, layers: int = 10, ties: Literal["first", "around"] = "first"
) -> list[csr_array]:
    """Relations 0, 1, .. of nodes whose surroundings look alike up to 0, 1, .. steps away.

    Ring k of a node holds the nodes at exactly k steps from it. Two nodes differ in layer k by

        f_k = f_{k-1} + DTW(degrees in ring k of one, degrees in ring k of the other),

    and node i attends to its candidate j with weight exp(-f_k(i, j)), divided by the sum over its candidates. A pair
    has layer k only where both rings are there. Candidates of a node are the ⌊2 log₂ n⌋ + 1 others of nearest degree.

    Parameters
    ----------
    graph
        The graph. Directions, weights and loops are left out of account.
    layers
        The last layer k. Layers in which no pair is left are not returned, so far-reaching `layers` cost nothing on
        graphs of small diameter.
    ties
        Which of the nodes of one degree are candidates where there are too many: ``"first"``, as in struc2vec, those
        that stand first in canonical order, nearly the same for all nodes of that degree; or ``"around"``, those next
        to the node itself, so that every node is a candidate of about as many.

    Returns
    -------
    list of csr_array
        At least one and at most ``layers + 1`` matrices, (n, n). Rows sum to one, or are empty.

    Notes
    -----
    A row holds the candidates of its own node: where j is among those of i but i not among those of j, row i has the
    entry j and row j has no entry i. Degrees are compared as sorted lists of pairs (degree, how often), by dynamic time
    warping with the cost (max(a, b) / min(a, b) - 1) · max(how often), in which every degree counts 0.5 more than it
    is, so that isolated nodes have a finite distance from others. The warping is exact (struc2vec's is approximate).
    Of two degrees that are equally near, the higher comes first. Weights below the smallest number are not stored.

    Where ``canonical_order(graph).tied`` is 0, a renumbered graph has the renumbered relations, bit for bit.

    Examples
    --------
    The ends of a path of four nodes look alike, and so do its inner nodes:

    >>> import pegfan as pf
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    >>> for relation in pf.relations.struc2vec_relations(path, layers=1):
    ...     print(relation.toarray().round(2))
    [[0.   0.25 0.25 0.49]
     [0.25 0.   0.49 0.25]
     [0.25 0.49 0.   0.25]
     [0.49 0.25 0.25 0.  ]]
    [[0.   0.17 0.17 0.65]
     [0.17 0.   0.65 0.17]
     [0.17 0.65 0.   0.17]
     [0.65 0.17 0.17 0.  ]]
    """
    check_graph(graph)
    check_integer(layers, "layers", least=0)
    check_choice(ties, "ties", ("first", "around"))
    edges = undirected(graph)
    layers = min(layers, graph.n - 1)
    _check_visits(edges, layers)
    degrees, class_of = np.unique(np.diff(edges.indptr), return_inverse=True)
    candidates = _candidates(degrees, class_of, canonical_order(graph).order, ties == "around")
    first, which, many = _ring_lists(edges, class_of, len(degrees), layers)
    distances = np.zeros(candidates.shape)
    relations: list[csr_array] = []
    for k in range(layers + 1):
        _compare(candidates, np.ascontiguousarray(first[:, k : k + 2]), which, many, degrees + 0.5, distances)
        if k and not np.isfinite(distances).any():
            break
        relations.append(_relation(candidates, distances))
    return relations


def undirected(graph: Graph) -> csr_array:
    """The edges without directions, weights and loops."""
    edges = csr_array(graph.adjacency + graph.adjacency.T) if graph.directed else graph.adjacency.copy()
    edges.setdiag(0)
    edges.eliminate_zeros()
    edges.sort_indices()
    return relation_of(np.ones(edges.nnz), edges.indices, edges.indptr)


def relation_of(data: Any, indices: Any, indptr: Any) -> csr_array:
    """A square matrix with float64 data and int32 indices, in order and without zeros."""
    n = len(indptr) - 1
    relation = csr_array((np.asarray(data, np.float64), indices.astype(np.int32), indptr.astype(np.int32)), (n, n))
    relation.eliminate_zeros()
    relation.sort_indices()
    return relation


def _check_visits(edges: csr_array, layers: int) -> None:
    """Refuse searches that would take hours, and say how far they may reach instead."""
    degree = np.diff(edges.indptr).astype(np.float64)
    passed, fits = np.zeros(len(degree)), 0
    for k in range(1, layers + 1):
        before, passed = passed, np.minimum(degree + edges @ passed, edges.nnz)  # at most: walks may meet
        if passed.sum() > MOST_VISITS:
            raise ValueError(
                f"rings up to layers={layers} of {len(degree):,} nodes with {edges.nnz // 2:,} edges may pass more "
                f"than {MOST_VISITS:.0e} edges, the limit; layers={fits} stays within it"
            )
        fits = k
        if np.array_equal(before, passed):
            break


def _candidates(degrees: IntArray, class_of: IntArray, order: IntArray, around: bool) -> NDArray[np.int32]:
    """For every node the others of nearest degree, the nearest first."""
    n = len(order)
    by_degree = order[np.argsort(class_of[order], kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(class_of, minlength=len(degrees)))])
    candidates = np.empty((n, min(floor(2 * log2(n)) + 1, n - 1)), np.int32)
    nearest_degrees(by_degree, first, degrees.astype(np.int64), around, candidates)
    return candidates


def _ring_lists(
    edges: csr_array, class_of: IntArray, classes: int, layers: int
) -> tuple[IntArray, NDArray[np.int32], NDArray[np.int32]]:
    """The degrees in every ring of every node: ring k of node i is first[i, k]:first[i, k + 1] of the other two."""
    n = edges.shape[0]
    component = connected_components(edges, directed=False)[1]
    reach = np.bincount(component)[component]
    stamp, queue, counts = np.full(n, -1, np.int32), np.empty(n, np.int32), np.zeros(classes, np.int32)
    most = min(classes * max(layers, 1), n)
    block = max(1, _ENTRIES // most)
    room = np.empty((2, min(block, n) * most), np.int32)
    sizes = np.zeros((n, layers), np.int64)
    parts: list[NDArray[np.int32]] = []
    for begin in range(0, n, block):
        part = sizes[begin : begin + block]
        end = rings(edges.indptr, edges.indices, class_of, reach, begin, stamp, queue, counts, part, room[0], room[1])
        parts.append(room[:, :end].copy())
    # Ring 0 is the node itself; it goes first in the lists of the node.
    return _with_ring_zero(sizes, np.concatenate(parts, axis=1), class_of)


def _with_ring_zero(
    sizes: IntArray, rings: NDArray[np.int32], class_of: IntArray
) -> tuple[IntArray, NDArray[np.int32], NDArray[np.int32]]:
    n = len(class_of)
    widths = np.column_stack([np.ones(n, np.int64), sizes])
    ends = np.cumsum(widths).reshape(widths.shape)
    first = np.column_stack([ends[:, 0] - 1, ends])
    lists = np.ones((2, int(ends[-1, -1])), np.int32)
    rest = np.ones(lists.shape[1], bool)
    rest[first[:, 0]] = False
    lists[0, first[:, 0]] = class_of
    lists[:, rest] = rings
    return first, lists[0], lists[1]


def _compare(
    candidates: Any, first: IntArray, which: Any, many: Any, values: FloatArray, distances: FloatArray
) -> None:
    room = np.empty((4, len(values)))
    for begin in range(0, len(candidates), _ROWS):
        end = min(begin + _ROWS, len(candidates))
        add_distances(begin, end, candidates, first, which, many, values, distances, room)


def _relation(candidates: NDArray[np.int32], distances: FloatArray) -> csr_array:
    n, count = candidates.shape
    weights = np.empty((n, count))
    relation_weights(distances, weights)
    return relation_of(weights.ravel(), candidates.ravel(), np.arange(n + 1) * count)
