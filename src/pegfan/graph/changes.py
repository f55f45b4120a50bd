"""Graphs made of a graph, methods of :class:`~pegfan.Graph`: other columns or classes, edges both ways, some nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from pegfan._arrays import IntArray
from pegfan._checks import check_choice, kind_of, shown
from pegfan._matrices import moved
from pegfan.graph.splits import Split

if TYPE_CHECKING:
    from pegfan.graph.graph import Graph


def align_features(graph: Graph, names: Sequence[str], *, missing: Literal["error", "zero"] = "error") -> Graph:
    """Return the graph with the feature columns of these names, in this order: those that a model was fitted to.

    Columns of other names are left out. A category or token that no node has, ``"city=Paris"`` or ``"tags:red"``
    where there are other columns ``"city=..."`` or ``"tags:..."``, is a column of zeros.

    Parameters
    ----------
    names : sequence of str
    missing : {"error", "zero"}
        What stands for any other column that is not there: an error, or zeros.

    Examples
    --------
    >>> import pegfan as pf
    >>> nodes = {"age": [30, 40, 50], "city": ["Rome", "Oslo", "Oslo"]}
    >>> g = pf.datasets.graph_from_tables(nodes, [[0, 1], [1, 2]])
    >>> g.feature_names
    ('age', 'city=Oslo', 'city=Rome')
    >>> g.align_features(["city=Paris", "city=Rome", "age"]).features.toarray()
    array([[ 0.,  1., 30.],
           [ 0.,  0., 40.],
           [ 0.,  0., 50.]])
    >>> g.align_features(["age", "height"])
    Traceback (most recent call last):
    ValueError: 1 of 2 features is missing: 'height'; add columns of these names, or fill them with zeros by ...
    """
    check_choice(missing, "missing", ("error", "zero"))
    if graph.feature_names is None:
        what = "features without names" if graph.features is not None else "no features"
        raise ValueError(
            f"the graph has {what}, and {len(names)} named features are wanted; read it from tables, or give "
            "feature_names="
        )
    if tuple(names) == graph.feature_names:
        return graph
    column_of = {name: k for k, name in enumerate(graph.feature_names)}
    origins = {_origin(name) for name in column_of} - {""}
    absent = [name for name in names if name not in column_of and _origin(name) not in origins]
    if absent and missing == "error":
        more = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
        raise ValueError(
            f"{len(absent)} of {len(names)} features {'is' if len(absent) == 1 else 'are'} missing: "
            f"{', '.join(map(repr, absent[:10]))}{more}; add columns of these names, or fill them with zeros by "
            "graph.align_features(names, missing='zero')"
        )
    columns = [column_of.get(name, -1) for name in names]  # -1 is a column of zeros after the last one
    if issparse(graph.features):
        wider = graph.features.tocsc()
        wider.resize(graph.n, len(column_of) + 1)
    else:
        wider = np.hstack([graph.features, np.zeros((graph.n, 1), dtype=graph.features.dtype)])
    return graph.replace(features=wider[:, columns], feature_names=names)


def _origin(name: str) -> str:
    """The column of a table that a category or token is from: "city" for "city=Paris", "tags" for "tags:red"."""
    return re.split("[=:]", name, maxsplit=1)[0] if re.search("[=:]", name) else ""


def with_positive(graph: Graph, name: Any = None) -> Graph:
    """Return the graph with its two classes in an order that has the positive one last, as class 1.

    Parameters
    ----------
    name
        The positive class by its name, or by its number where classes have none. By default the one that fewer
        nodes have; of two that as many have, the last.

    Examples
    --------
    >>> from pegfan import Graph
    >>> g = Graph.from_edges([[0, 1], [1, 2]], labels=["fraud", "good", "good"]).with_positive()
    >>> g.classes, g.labels
    (array(['good', 'fraud'], dtype='<U5'), array([1, 0, 0]))
    """
    if graph.labels is None or graph.n_classes != 2:
        raise ValueError(f"a positive class is one of two, and this graph has {graph.n_classes} classes")
    names = [str(one) for one in graph.classes.tolist()]
    if isinstance(name, Collection) and not isinstance(name, str):
        raise TypeError(f"positive must be the name of a class, got {kind_of(name)}")
    if name is None:
        few, many = np.bincount(graph.labels[graph.labels >= 0], minlength=2)
        positive = int(few >= many)
    elif str(name) in names:
        positive = names.index(str(name))
    else:
        raise ValueError(f"positive must be one of the classes, {names[0]!r} or {names[1]!r}, got {shown(name)}")
    if positive == 1:
        return graph
    return graph.replace(labels=np.where(graph.labels < 0, -1, 1 - graph.labels), class_names=graph.classes[::-1])


def symmetrize(graph: Graph, rule: str = "max") -> Graph:
    """Return the undirected graph with each edge wherever there is an arc in one direction or the other.

    Parameters
    ----------
    rule : {"max", "sum"}
        ``"max"`` takes max(A, Aᵀ) entry by entry and leaves an undirected graph as it is. ``"sum"``
        takes A + Aᵀ with the diagonal counted once; the weights of a graph that is already symmetric
        are doubled.

    Examples
    --------
    >>> from pegfan import Graph
    >>> Graph.from_edges([[0, 1], [1, 0], [1, 2]], directed=True).symmetrize("sum").edges()[1]
    array([2., 1.])
    """
    check_choice(rule, "rule", ("max", "sum"))

    def symmetric(a: csr_array) -> csr_array:
        return csr_array(a.maximum(a.T) if rule == "max" else a + (a - diags_array(a.diagonal())).T)

    matrices = {name: symmetric(matrix) for name, matrix in graph.edge_matrices.items()}
    return graph.replace(adjacency=symmetric(graph.adjacency), directed=False, edge_matrices=matrices)


def take(graph: Graph, nodes: IntArray) -> Graph:
    """The graph on some nodes, in this order, with everything that belongs to them."""
    new = np.full(graph.n, -1)
    new[nodes] = np.arange(nodes.size)

    def rows(array: Any) -> Any:
        return None if array is None else array[nodes]

    def renumber(part: IntArray) -> IntArray:
        return new[part][new[part] >= 0]

    return graph.replace(
        adjacency=moved(graph.adjacency, nodes),
        features=rows(graph.features),
        labels=rows(graph.labels),
        targets=rows(graph.targets),
        splits=[Split(*map(renumber, split)) for split in graph.splits],
        node_names=rows(graph.node_names),
        positions=rows(graph.positions),
        things=rows(graph.things),
        edge_matrices={name: moved(matrix, nodes) for name, matrix in graph.edge_matrices.items()},
    )
