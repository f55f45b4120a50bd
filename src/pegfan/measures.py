"""What a graph is like: how its labels lie on its edges, its degrees, components and duplicates, and a summary.

In measures of labels edges count once each whatever their weight, self loops are left out, and so is every edge with
an unlabelled end. They are made of one matrix, :func:`class_edges`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_numbers, check_places
from pegfan._hashing import row_hashes
from pegfan._limits import check_memory
from pegfan._matrices import as_matrix, sorted_hashes
from pegfan.graph import Graph, check_graph

__all__ = [
    "Degrees",
    "Description",
    "Duplicates",
    "Summary",
    "adjusted_homophily",
    "ccns",
    "class_edges",
    "class_sizes",
    "component_sizes",
    "degrees",
    "describe",
    "duplicates",
    "edge_homophily",
    "equal_rows",
    "label_informativeness",
    "leaking_share",
    "node_homophily",
    "purity",
]

_FEW, _CELLS = 1_000, 50_000_000
"""Classes, and nodes times classes, up to which counts are kept for all of them, whether they occur or not."""


def class_edges(graph: Graph) -> IntArray:
    """Count the edges from each class to each class.

    Entry (a, b) of the result is the number of stored a_ij, i ≠ j, with node i of class a and node j of
    class b. An undirected edge is stored in both directions: the matrix is then symmetric, and an edge
    inside a class counts twice.

    Parameters
    ----------
    graph : Graph
        With labels.

    Returns
    -------
    array of int64, (n_classes, n_classes)

    Examples
    --------
    >>> class_edges(Graph.from_edges([[0, 1], [1, 2]], labels=[0, 0, 1]))
    array([[2, 1],
           [1, 0]])
    """
    check_graph(graph, needs="labels")
    check_memory(16.0 * graph.n_classes**2, f"the edges between {graph.n_classes:,} classes")
    return np.asarray(_class_edges(graph).toarray())


def edge_homophily(graph: Graph) -> float:
    """Return the fraction of edges whose ends have the same label.

    It is trace(C) / sum(C) for C = :func:`class_edges`; NaN if no edge joins two labelled nodes.

    Examples
    --------
    >>> edge_homophily(Graph.from_edges([[0, 1], [1, 2]], labels=[0, 0, 1]))
    0.5
    """
    counts = _class_edges(graph)
    total = counts.sum()
    return float(counts.trace() / total) if total else float("nan")


def node_homophily(graph: Graph) -> float:
    """Return the mean over nodes of the fraction of their neighbours that have their label.

    The mean is over the labelled nodes with a labelled neighbour [1]_; neighbours in a directed graph are
    those that the arcs lead to. NaN if there is no such node.

    References
    ----------
    .. [1] Pei et al., "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020.

    Examples
    --------
    >>> node_homophily(Graph.from_edges([[0, 1], [1, 2]], labels=[0, 0, 1]))  # (1 + 1/2 + 0) / 3
    0.5
    """
    labels, i, j = _labelled_arcs(graph)
    neighbours = np.bincount(i, minlength=graph.n)
    alike = np.bincount(i[labels[i] == labels[j]], minlength=graph.n)
    counted = neighbours > 0
    return float(np.mean(alike[counted] / neighbours[counted])) if counted.any() else float("nan")


def adjusted_homophily(graph: Graph) -> float:
    """Return the edge homophily, corrected for the classes' degrees.

    With p(a) the fraction of edge ends in class a, and h the edge homophily, it is [1]_::

        (h - Σ_a p(a)²) / (1 - Σ_a p(a)²)

    1 if all edges stay inside their class; 0 if ends meet at random. Directions are dropped, each arc
    counting as one edge. By definition here 0 if all ends are in one class (no edge could be otherwise, so
    the excess over chance is 0), and NaN if no edge joins two labelled nodes. For numeric targets it is the
    correlation of the two ends of edges, which is the same measure of assortativity [2]_.

    References
    ----------
    .. [1] Platonov et al., "Characterizing Graph Datasets for Node Classification: Homophily-Heterophily
       Dichotomy and Beyond", NeurIPS 2023.
    .. [2] Newman, "Mixing patterns in networks", Physical Review E 67, 2003.

    Examples
    --------
    >>> adjusted_homophily(Graph.from_edges([[0, 1], [2, 3]], labels=[0, 1, 0, 1]))
    -1.0
    >>> adjusted_homophily(Graph.from_edges([[0, 1], [2, 3]], targets=[1.5, 1.5, 3.0, 3.0]))
    1.0
    """
    check_graph(graph)
    if graph.targets is not None:
        return _correlation(graph.targets, *_labelled_arcs(graph)[1:])
    joint, ends = _end_distribution(graph)
    if ends.size < 2:
        return 0.0 if ends.size else float("nan")
    chance = np.sum(ends**2)
    return float((joint.trace() - chance) / (1 - chance))


def label_informativeness(graph: Graph) -> float:
    """Return how much of the uncertainty about a label is removed by a neighbour's label.

    With p(a, b) the fraction of edges, both directions of each, from class a to class b, and p(a) its
    marginal, it is the mutual information of the two ends over the entropy of one (LI_edge of [1]_)::

        2 - Σ_ab p(a, b) log p(a, b) / Σ_a p(a) log p(a)

    between 0 (a neighbour's label tells nothing) and 1 (it tells everything, by likeness or by
    contrast). Directions are dropped, each arc counting as one edge. By definition here 0 if all ends are
    in one class (there is nothing to tell), and NaN if no edge joins two labelled nodes.

    References
    ----------
    .. [1] Platonov et al., "Characterizing Graph Datasets for Node Classification: Homophily-Heterophily
       Dichotomy and Beyond", NeurIPS 2023.

    Examples
    --------
    >>> label_informativeness(Graph.from_edges([[0, 1], [2, 3]], labels=[0, 1, 0, 1]))
    1.0
    """
    joint, ends = _end_distribution(graph)
    if ends.size < 2:
        return 0.0 if ends.size else float("nan")
    informativeness = 2 - np.sum(joint.data * np.log(joint.data)) / np.sum(ends * np.log(ends))
    return float(np.clip(informativeness, 0, 1))  # rounding may step over the bounds


def ccns(graph: Graph) -> FloatArray:
    """Return the cross-class neighbourhood similarity s(c, c') of every two classes.

    s(c, c') is the mean of cos⟨d(i), d(j)⟩ over nodes i of class c and j of class c', where d(i) counts the
    neighbours of i in each class [1]_ (the paper's definition; self loops count, as nodes are neighbours of
    themselves there). It is the inner product of the mean directions of the two classes, so no pair of nodes is
    ever formed. A node without labelled neighbours has no direction and contributes 0; a class without nodes has
    the similarity NaN.

    Parameters
    ----------
    graph : Graph
        With labels. Neighbours in a directed graph are those that the arcs lead to.

    Returns
    -------
    array, (n_classes, n_classes)

    References
    ----------
    .. [1] Ma et al., "Is homophily a necessity for graph neural networks?", ICLR 2022.

    Examples
    --------
    >>> star = Graph.from_edges([[0, 1], [0, 2], [0, 3]], labels=[0, 1, 1, 1])
    >>> ccns(star)
    array([[1., 0.],
           [0., 1.]])
    """
    labels = _labels(graph)
    i, j = graph.adjacency.tocoo().coords
    labelled = (labels[i] >= 0) & (labels[j] >= 0)
    k, n = graph.n_classes, graph.n
    check_memory(32.0 * k * k, f"the similarity of {k:,} classes to each other")
    if n * k <= _CELLS:
        cells = np.bincount(i[labelled] * np.int64(k) + labels[j[labelled]], minlength=n * k).reshape(n, k)
        counts = csr_array(cells.astype(np.float64))
    else:
        counts = coo_array((np.ones(int(labelled.sum())), (i[labelled], labels[j[labelled]])), shape=(n, k)).tocsr()
    norms = np.sqrt((counts * counts).sum(axis=1))
    direction = counts.multiply(1 / np.maximum(norms, 1)[:, None]).tocsr()
    nodes = np.flatnonzero(labels >= 0)
    sizes = np.bincount(labels[nodes], minlength=k)
    member = coo_array((np.ones(len(nodes)), (labels[nodes], nodes)), shape=(k, n)).tocsr()
    with np.errstate(invalid="ignore"):
        mean = (member @ direction).toarray() / np.where(sizes, sizes, np.nan)[:, None]
    return np.asarray(mean @ mean.T)


def class_sizes(graph: Graph) -> IntArray:
    """Count the nodes of each class.

    Examples
    --------
    >>> class_sizes(Graph.from_edges([[0, 1], [1, 2]], labels=[0, 0, 1]))
    array([2, 1])
    """
    labels = _labels(graph)
    return np.bincount(labels[labels >= 0], minlength=graph.n_classes)


def component_sizes(graph: Graph) -> IntArray:
    """Count the nodes of each weakly connected component, the largest first.

    Examples
    --------
    >>> component_sizes(Graph.from_edges([[0, 1], [1, 2]], n=4))
    array([3, 1])
    """
    check_graph(graph)
    _, component = connected_components(graph.adjacency, connection="weak")
    return np.sort(np.bincount(component))[::-1]


@dataclass(frozen=True)
class Summary:
    """The least, the median, the mean and the largest of some numbers."""

    min: int
    median: float
    mean: float
    max: int

    @classmethod
    def of(cls, values: NDArray[Any]) -> Summary:
        """Of an array of integers."""
        values = check_numbers(values, "values", None)
        if not len(values):
            raise ValueError("values must not be empty")
        return cls(int(values.min()), float(np.median(values)), float(values.mean()), int(values.max()))


@dataclass(frozen=True)
class Degrees:
    """The degrees of a graph.

    Attributes
    ----------
    outgoing, incoming : Summary
        Over nodes; the same in an undirected graph.
    histogram : dict
        How many nodes have an (outgoing) degree of 0, of 1, from 2 to 3, from 4 to 7, and so on, by the least of each.
    """

    outgoing: Summary
    incoming: Summary
    histogram: dict[int, int]


def degrees(graph: Graph) -> Degrees:
    """Return how many neighbours nodes have; edges count once each whatever their weight.

    Examples
    --------
    >>> counted = degrees(Graph.from_edges([[0, 1], [0, 2], [0, 3]]))
    >>> counted.outgoing, counted.histogram
    (Summary(min=1, median=1.0, mean=1.5, max=3), {1: 3, 2: 1})
    """
    check_graph(graph)
    arcs = graph.adjacency
    outgoing, incoming = np.diff(arcs.indptr), np.bincount(arcs.indices, minlength=graph.n)
    return Degrees(Summary.of(outgoing), Summary.of(incoming), histogram(outgoing))


def histogram(values: NDArray[Any]) -> dict[int, int]:
    """Count the values of 0, of 1, from 2 to 3, from 4 to 7, and so on, by the least of each.

    Examples
    --------
    >>> histogram(np.array([1, 1, 3, 5]))
    {1: 2, 2: 1, 4: 1}
    """
    ends = [0, 1, *(2**k for k in range(1, 64) if 2 ** (k - 1) <= max(values.max(initial=0), 1))]
    counts = np.histogram(values, [*ends, np.inf])[0]
    used = np.flatnonzero(counts)
    return {ends[k]: int(counts[k]) for k in range(used[0], used[-1] + 1)}


@dataclass(frozen=True)
class Duplicates:
    """How many nodes look like another.

    Attributes
    ----------
    neighbours : int
        Nodes that share all their neighbours with another; nodes without any do not count.
    features : int or None
        Nodes that share all their features with another, rows of zeros aside; None without features.
    test_in_train : float or None
        See :func:`leaking_share`, for the first split; None without splits or test nodes.
    """

    neighbours: int
    features: int | None
    test_in_train: float | None


def duplicates(graph: Graph) -> Duplicates:
    """Count the nodes that share their neighbours, or their features, with another.

    Examples
    --------
    >>> duplicates(Graph.from_edges([[0, 2], [1, 2], [3, 4]]))
    Duplicates(neighbours=2, features=None, test_in_train=None)
    """
    check_graph(graph)
    split = graph.splits[0] if graph.splits and len(graph.splits[0].test) else None
    return Duplicates(
        neighbours=_shared(_same_neighbours(graph)),
        features=None if graph.features is None else _shared(equal_rows(graph.features)),
        test_in_train=None if split is None else leaking_share(graph, split.train, split.test),
    )


def leaking_share(graph: Graph, train: IntArray, test: IntArray) -> float:
    """Return the share of test nodes whose neighbours are exactly those of a training node.

    Nodes without neighbours are like no other; neighbours in a directed graph are those that the arcs lead to, and
    weights do not count. 0 without test nodes.

    Examples
    --------
    >>> leaking_share(Graph.from_edges([[0, 2], [1, 2], [3, 4]]), np.array([0, 3]), np.array([1, 4]))
    0.5
    """
    check_graph(graph)
    train, test = (check_places(nodes, name, graph.n) for nodes, name in ((train, "train"), (test, "test")))
    group = _same_neighbours(graph)
    seen = group[train]
    return float(np.isin(group[test], seen[seen >= 0]).mean()) if len(test) else 0.0


def purity(clusters: IntArray, classes: IntArray) -> float:
    """Return the share of nodes that have the most frequent class of their cluster.

    Examples
    --------
    >>> purity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    0.75
    """
    clusters = check_places(clusters, "clusters", 2**31)
    classes = check_places(classes, "classes", 2**31)
    if len(clusters) != len(classes) or not len(classes):
        raise ValueError(f"there must be as many clusters as classes, and some; got {len(clusters)} and {len(classes)}")
    count = int(classes.max()) + 1
    pairs, counts = np.unique(clusters * count + classes, return_counts=True)
    largest = np.zeros(int(clusters.max()) + 1, np.int64)
    np.maximum.at(largest, pairs // count, counts)
    return float(largest.sum() / len(clusters))


def equal_rows(matrix: Any) -> IntArray:
    """Number the rows of a matrix, equal ones alike; −1 for rows of zeros, which say nothing.

    Rows are compared by 64-bit hashes, which do not collide in practice.

    Parameters
    ----------
    matrix : array or sparse matrix

    Examples
    --------
    >>> rows = equal_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]))
    >>> bool(rows[0] == rows[2] != rows[3]), int(rows[1])
    (True, -1)
    """
    matrix = as_matrix(matrix, "matrix")
    order, number, _ = sorted_hashes(row_hashes(matrix), np.int64)
    filled = np.diff(csr_array(matrix).indptr) > 0 if issparse(matrix) else np.asarray(matrix).any(axis=1)
    group = np.empty(len(order), np.int64)
    group[order] = number
    return np.where(filled, group, -1)


def _same_neighbours(graph: Graph) -> IntArray:
    return equal_rows(graph.adjacency.astype(bool))


def _shared(group: IntArray) -> int:
    """Count the members of groups of more than one."""
    sizes = np.bincount(group[group >= 0], minlength=1)
    return int(sizes[sizes > 1].sum())


@dataclass(frozen=True)
class Description:
    """The sizes of a graph and the measures of its labels; ``print`` it, or take it :meth:`to_dict`.

    Attributes
    ----------
    nodes, edges : int
        As ``graph.n`` and ``graph.n_edges``.
    nonzeros : int
        Stored entries of the adjacency.
    directed, weighted : bool
        Weighted if any weight is not 1.
    density : float
        nonzeros / nodes².
    self_loops, components, isolated : int
        Components are weakly connected; a node is isolated if it has no edge other than a self loop.
    features, classes, labelled, splits, things : int
        Columns of the features, classes, nodes with a label or a target, splits, nodes of another kind that nothing is
        said of (``Graph.things``); 0 where there are none.
    edge_homophily, node_homophily, adjusted_homophily, label_informativeness : float or None
        None if no edge joins two labelled nodes; of numeric targets, only the adjusted homophily is there.
    """

    nodes: int
    edges: int
    nonzeros: int
    directed: bool
    weighted: bool
    density: float
    self_loops: int
    components: int
    isolated: int
    features: int
    classes: int
    labelled: int
    splits: int
    edge_homophily: float | None
    node_homophily: float | None
    adjusted_homophily: float | None
    label_informativeness: float | None
    things: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the facts by name, as plain Python numbers that JSON can hold."""
        return asdict(self)

    def __str__(self) -> str:
        facts = self.to_dict()
        width = max(map(len, facts))
        return "\n".join(f"{name.replace('_', ' '):<{width}}  {_shown(fact)}" for name, fact in facts.items())


def describe(graph: Graph) -> Description:
    """Return the sizes of a graph and the measures of its labels.

    Examples
    --------
    >>> print(describe(Graph.from_edges([[0, 1], [1, 2], [3, 3]], labels=[0, 0, 1, -1])))
    nodes                  4
    edges                  3
    nonzeros               5
    directed               no
    weighted               no
    density                0.3125
    self loops             1
    components             2
    isolated               1
    features               0
    classes                2
    labelled               3
    splits                 0
    edge homophily         0.5000
    node homophily         0.5000
    adjusted homophily     -0.3333
    label informativeness  0.1511
    things                 0
    """
    check_graph(graph)
    adjacency = graph.adjacency
    i, j = adjacency.tocoo().coords
    joined = np.zeros(graph.n, dtype=bool)
    joined[i[i != j]] = joined[j[i != j]] = True
    on_labels = (edge_homophily, node_homophily, adjusted_homophily, label_informativeness)
    measured = graph.truth is not None and _labelled_arcs(graph)[1].size > 0
    of_numbers = (adjusted_homophily,) if graph.labels is None else on_labels
    return Description(
        nodes=graph.n,
        edges=graph.n_edges,
        nonzeros=int(adjacency.nnz),
        directed=graph.directed,
        weighted=bool(np.any(adjacency.data != 1)),
        density=adjacency.nnz / graph.n**2,
        self_loops=int(np.count_nonzero(i == j)),
        components=len(component_sizes(graph)),
        isolated=int(np.count_nonzero(~joined)),
        features=0 if graph.features is None else int(graph.features.shape[1]),
        classes=graph.n_classes,
        labelled=int(np.count_nonzero(graph.labelled)),
        splits=len(graph.splits),
        things=graph.n - len(graph.subjects),
        **{m.__name__: m(graph) if measured and m in of_numbers else None for m in on_labels},
    )


def _shown(fact: bool | float | None) -> str:
    if fact is None:
        return "-"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, int):
        return f"{fact:,}"
    # A density of a large graph is far below the four decimals that a measure needs.
    return f"{fact:.4f}" if abs(fact) >= 0.001 or fact == 0 else f"{fact:.2e}"


def _labels(graph: Graph) -> IntArray:
    labels: IntArray = check_graph(graph, needs="labels").labels  # type: ignore[assignment]
    return labels


def _correlation(values: FloatArray, i: NDArray[Any], j: NDArray[Any]) -> float:
    """Return the correlation of the ends of arcs, each in both directions; 0 where all are equal, NaN without arcs."""
    if not i.size:
        return float("nan")
    both = np.concatenate([values[i], values[j]])
    mean = math.fsum(both) / len(both)  # exact sums, which do not depend on how nodes are numbered
    variance = math.fsum((both - mean) ** 2) / len(both)
    return math.fsum((values[i] - mean) * (values[j] - mean)) / len(i) / variance if variance else 0.0


def _labelled_arcs(graph: Graph) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """Return the labels or targets, and the tails and heads of the arcs between two different labelled nodes."""
    check_graph(graph)
    labels = _labels(graph) if graph.targets is None else graph.targets
    i, j = graph.adjacency.tocoo().coords
    labelled = (i != j) & graph.labelled[i] & graph.labelled[j]
    return labels, i[labelled], j[labelled]


def _class_edges(graph: Graph) -> csr_array:
    """Return the counts of :func:`class_edges`, sparse: there may be as many classes as nodes."""
    check_graph(graph)

    def count() -> csr_array:
        labels, i, j = _labelled_arcs(graph)
        k = graph.n_classes
        if k <= _FEW:
            return csr_array(np.bincount(labels[i] * k + labels[j], minlength=k * k).reshape(k, k))
        ones = np.ones(i.size, dtype=np.int64)
        return coo_array((ones, (labels[i], labels[j])), shape=(k, k)).tocsr()

    return graph.cache.get("class edges", count).copy()  # several measures of one graph ask for them


def _end_distribution(graph: Graph) -> tuple[csr_array, FloatArray]:
    """Return p(a, b), and p(a) of the classes that occur; empty if there are no edges."""
    counts = _class_edges(graph)
    counts = counts + counts.T
    joint = counts / max(counts.sum(), 1)
    ends = joint.sum(axis=1)
    return joint, ends[ends > 0]
