"""Inputs of channels other than features: training labels and the structure of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from pegfan import _defaults as default
from pegfan._arrays import FloatArray, IntArray
from pegfan.channels._sums import order_free_product, order_free_sums
from pegfan.channels.factors import Matrix, as_factor
from pegfan.framelets import Operator
from pegfan.graph import Graph, Split, check_graph

_STEP = 256  # rows of a product of hops that are formed at a time


def propagated_labels(graph: Graph, operator: Any, split: Split | int = default.SPLIT) -> FloatArray:
    """Propagate training labels, and leave every node's own label out.

    With Y the one-hot labels of the training nodes (zero elsewhere) and P the operator, the result is
    (P − diag P) Y: a node sees its neighbours' labels, and a network cannot learn to copy its own. For numeric targets,
    Y has the targets and ones.

    Parameters
    ----------
    graph : Graph
        With labels or targets.
    operator : matrix or sequence of matrices
        P, a product as in `Channel`: sparse matrices, and at most one `Projection`, in front.
    split : Split or int
        The split, or its place in ``graph.splits``; by default the first. Training nodes of one split are test nodes
        of others: every split that is trained on needs labels of its own.

    Returns
    -------
    array, (n, n_classes)
        Of targets (n, 2): their sum, weighed by P, and the sum of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan.channels import hop_matrix
    >>> graph = Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 1])
    >>> step = hop_matrix(graph, "A")
    >>> propagated_labels(graph, [step, step], split=Split(np.array([0, 1]), np.array([]), np.array([2])))
    array([[0., 0.],
           [0., 0.],
           [1., 0.]])

    Two steps lead from node 0 to itself and to node 2, which is not a training node; from node 1 to itself only.
    """
    check_graph(graph, needs="truth")
    assert graph.truth is not None
    several = isinstance(operator, Sequence)
    factors = [as_factor(value, "labels") for value in (operator if several else [operator])]
    if [graph.n, *(factor.shape[1] for factor in factors)] != [*(factor.shape[0] for factor in factors), graph.n]:
        shapes = ", ".join("×".join(map(str, factor.shape)) for factor in factors)
        raise ValueError(f"the product of operators must be {graph.n}×{graph.n}, as the graph has nodes; got {shapes}")
    nodes = training_nodes(graph, split)
    nodes = nodes[graph.labelled[nodes]]
    own, size = _diagonal(factors, nodes)
    if graph.labels is None:
        rows, columns = np.repeat(nodes, 2), np.tile([0, 1], len(nodes))
        values: Any = np.column_stack([graph.truth[nodes], np.ones(len(nodes))]).ravel()
        own, size = np.repeat(own, 2) * values, np.asarray(np.repeat(size, 2) * np.abs(values))
    else:
        rows, columns, values = nodes, np.asarray(graph.labels[nodes]), np.ones(len(nodes))
    propagated = np.zeros((graph.n, 2 if graph.labels is None else graph.n_classes))
    propagated[rows, columns] = values
    for factor in reversed(factors):
        sparse = isinstance(factor, Matrix) and issparse(factor.matrix)
        propagated = order_free_product(factor.matrix, propagated) if sparse else factor @ propagated
    rest = propagated[rows, columns] - own
    # What rounding leaves of a node's own label would be enough to recognise it by, even where its shares cancel.
    propagated[rows, columns] = np.where(np.abs(rest) <= 1e-12 * size, 0.0, rest)
    return propagated


def structural_features(graph: Graph) -> FloatArray:
    """Describe each node by its degrees: log(1 + x) of four numbers.

    The columns are the out-degree, the in-degree, the mean out-degree of the nodes that its arcs lead to,
    and the mean in-degree of the nodes that point to it; degrees sum weights.

    Examples
    --------
    >>> import numpy as np
    >>> np.expm1(structural_features(Graph.from_edges([[0, 1], [1, 2]], directed=True))).round(12)
    array([[1., 0., 1., 0.],
           [1., 1., 0., 0.],
           [0., 1., 0., 1.]])
    """
    check_graph(graph)
    a = graph.adjacency
    out, into = order_free_sums(a), order_free_sums(a.T)
    mean_out = order_free_product(a, out) / np.where(out == 0, 1, out)
    mean_into = order_free_product(a.T, into) / np.where(into == 0, 1, into)
    return np.asarray(np.log1p(np.column_stack([out, into, mean_out, mean_into])))


def training_nodes(graph: Graph, split: Split | int) -> IntArray:
    """The training nodes of a split, or of the split in that place of ``graph.splits``; at least one."""
    nodes = graph.split(split).train
    if not nodes.size:
        raise ValueError("the split has no training nodes, and only their labels may be looked at")
    return nodes


def _diagonal(factors: Sequence[Operator], nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """The entries P_ii of a product, for some nodes; Σ_v L_iv R_vi for the first factor L and the rest R.

    Also the sizes Σ_v |L_iv R_vi| of what was added, to which rounding errors are proportional.
    """
    if not factors:
        raise ValueError("labels propagated by nothing are the labels themselves; give an operator")
    first, rest = factors[0], [_transposed(factor) for factor in reversed(factors[1:])]
    identity = eye_array(first.shape[1], format="csr")
    own, size = np.zeros(len(nodes)), np.zeros(len(nodes))
    for start in range(0, len(nodes), _STEP):
        here = slice(start, start + _STEP)
        columns = identity[nodes[here]]  # row b becomes column nodes[b] of R
        for matrix in rest:
            columns = columns @ matrix
        found = first.shares(nodes[here], columns)
        if found is None:
            raise _unknown(first)
        own[here], size[here] = found
    return own, size


def _transposed(factor: Operator) -> csr_array:
    """The transpose of a factor that is one sparse matrix; with others columns of a product would fill up."""
    matrices = factor.matrices()
    if matrices is None or len(matrices) > 1 or not issparse(matrices[0]):
        raise _unknown(factor)
    return csr_array(matrices[0].T)


def _unknown(factor: Operator) -> TypeError:
    return TypeError(
        f"labels are propagated by sparse matrices and at most one Projection in front: {factor.name} is "
        "neither, so a node's own share cannot be separated"
    )
