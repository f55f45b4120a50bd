"""Hop matrices: one step along the edges of a graph, normalised or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array

from pegfan._arrays import FloatArray
from pegfan._checks import check_choice
from pegfan._loops import Loop
from pegfan._matrices import csr_of, merged, transposed
from pegfan.channels._sums import order_free_sums
from pegfan.graph import Graph, check_graph
from pegfan.trees.build import DIRECTIONS

SUFFIXES = {"out": "", "in": "_in", "symmetric": "_sym"}

_divide_rows = Loop(
    "void divide_rows(const I indptr[n + 1], const I indices[m], const float64 data[m], const float64 degree[n], "
    "int64 both, float64 out[m])"
)
"""Divide every entry by the degree of its row, or by those of its row and its column."""


def hop_matrix(graph: Graph, kind: str = "S", direction: str = "out") -> csr_array:
    """Make the matrix of one hop on a graph.

    ============= ======================= ==============================================
    kind          matrix                  where
    ============= ======================= ==============================================
    "S"           D^-1/2 A D^-1/2         the paper's heterophilous presets (its A)
    "S~"          D^-1/2 (A + I) D^-1/2   the paper's homophilous presets (its Ã)
    "A"           A                       the matrix that the paper's text names
    "random-walk" D^-1 A                  averages over neighbours
    "Q"           D_o^-1/4 A D_i^-1/4     steps of ``direction="words"``, see `make_channels`
    ============= ======================= ==============================================

    D holds the row sums of the matrix that is normalised (so of A + I for "S~"), on both sides even if the
    matrix is not symmetric; a row sum of zero counts as one. This is what the authors' code does. D_o holds the row
    sums of A and D_i its column sums, so that the matrix of one direction is the transpose of that of the other.

    Parameters
    ----------
    graph : Graph
    kind
        One of those in the table.
    direction : {"out", "in", "symmetric"}
        Which A: as stored (a node looks at the nodes its arcs lead to), its transpose (at the nodes that
        point to it), or max(A, Aᵀ). All the same if the graph is undirected.

    Returns
    -------
    csr_array, (n, n)

    Examples
    --------
    >>> path = Graph.from_edges([[0, 1], [1, 2]], directed=True)
    >>> hop_matrix(path, "S").toarray()  # node 2 has no out-edges: its row sum counts as one
    array([[0., 1., 0.],
           [0., 0., 1.],
           [0., 0., 0.]])
    >>> hop_matrix(path, "random-walk", direction="symmetric").toarray()
    array([[0. , 1. , 0. ],
           [0.5, 0. , 0.5],
           [0. , 1. , 0. ]])
    """
    check_graph(graph)
    check_choice(kind, "a hop matrix", HOPS)
    check_choice(direction, "direction", DIRECTIONS)
    a = graph.adjacency
    if graph.directed and direction != "out":
        a = transposed(a) if direction == "in" else merged(a, transposed(a), largest=True)
    if HOPS[kind].loops:
        a = merged(a, csr_array(eye_array(graph.n, format="csr")))
    values = HOPS[kind].normalize(a)
    copied = a.copy() if a is graph.adjacency else a  # whose arrays cannot be written to
    return csr_of(values, copied.indices, copied.indptr, a.shape)


def _divided(a: csr_array, both: bool) -> FloatArray:
    """The entries of a matrix, divided by the sums of their rows, or by the roots of those of rows and columns."""
    degrees, values = order_free_sums(a), np.empty(a.nnz)
    degrees[degrees == 0] = 1
    _divide_rows(a.indptr, a.indices, a.data, np.sqrt(degrees) if both else degrees, both, values)
    return values


def _by_fourth_roots(a: csr_array) -> FloatArray:
    """The entries of D_o^-1/4 A D_i^-1/4."""
    out, into = (np.sqrt(np.sqrt(np.where(sums == 0, 1.0, sums))) for sums in map(order_free_sums, (a, transposed(a))))
    return np.asarray(a.data / (np.repeat(out, np.diff(a.indptr)) * into[a.indices]))


class HopKind(NamedTuple):
    """A kind of hop matrices: its symbol, whether nodes see themselves, and what becomes of the entries of A, or A + I.

    `normalize` takes that matrix and gives its entries anew, in the same places.
    """

    symbol: str
    loops: bool
    normalize: Callable[[csr_array], FloatArray]


HOPS = {
    "S": HopKind("S", False, partial(_divided, both=True)),
    "S~": HopKind("S~", True, partial(_divided, both=True)),
    "A": HopKind("A", False, lambda a: a.data.copy()),
    "random-walk": HopKind("RW", False, partial(_divided, both=False)),
    "Q": HopKind("Q", False, _by_fourth_roots),
}
"""The kinds of `hop_matrix`."""


def hop_name(kind: str, direction: str = "out") -> str:
    """The name of a hop matrix in the names of channels, such as "S", "S~_sym" or "RW_in"."""
    return HOPS[kind].symbol + SUFFIXES[direction]
