"""Divisions of a graph by direction in a plane: the bi-level neighbourhoods of GEOM-GCN.

Pei et al. 2020, "Geom-GCN: geometric graph convolutional networks". Every node has neighbours in the graph and
neighbours in a plane (the latent space) into which the graph is embedded; each of the two sets is divided by quadrants.
"""

from __future__ import annotations

import re
from math import ceil
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput, check_choice, check_integer, check_kind, shown
from pegfan._limits import BYTE
from pegfan.graph import Graph, check_graph
from pegfan.relations._kernels import nearest_nodes
from pegfan.relations.struc2vec import undirected
from pegfan.trees import canonical_order

__all__ = ["GeomRelations", "geom_divisions", "geom_relations", "read_geom_relations"]

SPACES = ("graph", "latent_space")
NAMES = tuple(f"{space} {kind}" for space in SPACES for kind in range(4))
"""The divisions: two spaces with four relation types each."""

_HEADER = b"node1,node2\tspace\trelation_type"
_ROW = re.compile(rb"([0-9]{1,10}),([0-9]{1,10})\t(graph|latent_space)\t([0-3])")
_LONGEST = 200  # bytes of a line; a right one has 36 at most
_CAP = 4  # latent neighbours of a node, in average degrees


class GeomRelations(NamedTuple):
    """Neighbours in the graph and in the latent space, by relation type.

    Attributes
    ----------
    matrices
        Eight csr_arrays of ones, (n, n), no two with a common entry: row v lists the nodes u whose edges u → v are of
        this division.
    names
        What they are: ``"graph 0"``, .., ``"graph 3"``, ``"latent_space 0"``, .., ``"latent_space 3"``.
    """

    matrices: tuple[csr_array, ...]
    names: tuple[str, ...] = NAMES


def read_geom_relations(path: str | PathLike[str], n: int, *, max_bytes: int = 2**28) -> GeomRelations:
    r"""Read a file of relations as GEOM-GCN's authors publish them, packed by gzip or not.

    Parameters
    ----------
    path
        A text file with the header ``node1,node2<TAB>space<TAB>relation_type`` and rows such as
        ``101,120<TAB>graph<TAB>0``: the edge from node 101 to node 120 is of type 0 (to 3) in the space ``graph`` (or
        ``latent_space``).
    n
        The number of nodes of the graph.
    max_bytes
        The most bytes that the file may hold, unpacked.

    Returns
    -------
    GeomRelations
        A row ``u,v`` is the entry [v, u]: node v attends to node u. A pair that is listed more than once is of the
        division that is listed last, as in the authors' program; in their files that is the latent space.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pegfan as pf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "relations.txt")
    ...     _ = file.write_text("node1,node2\tspace\trelation_type\n0,1\tgraph\t2\n2,0\tlatent_space\t0\n")
    ...     relations = pf.relations.read_geom_relations(file, n=3)
    >>> {name: matrix.nnz for name, matrix in zip(relations.names, relations.matrices) if matrix.nnz}
    {'graph 2': 1, 'latent_space 0': 1}
    >>> float(relations.matrices[2][1, 0])
    1.0
    """
    n = check_integer(n, "n", least=1)
    source, target, division = _read_rows(Path(path), n, check_integer(max_bytes, "max_bytes", least=1))
    keys = target * n + source
    _, last = np.unique(keys[::-1], return_index=True)
    last = len(keys) - 1 - last
    return _divided(target[last], source[last], division[last], n)


def geom_divisions(graph: Graph, relations: GeomRelations) -> list[csr_array]:
    """The nine matrices with which GEOM-GCN sums over neighbours: eight divisions, and every node itself.

    The edges of the graph and all pairs of the relations are merged into one directed graph, with one loop for every
    node in place of its own; entry [v, u] of its division is

        1 / sqrt(d(v) d(u)),

    where d counts the edges that lead to a node, over all divisions, its loop included.

    Parameters
    ----------
    graph
        The graph, directed as it is stored: an edge u → v lets v attend to u. Weights and loops do not count.
    relations
        From `read_geom_relations` or `geom_relations`. A pair in several of its matrices is of the last one; edges of
        the graph that are in none are of the first, ``"graph 0"``.

    Returns
    -------
    list of csr_array
        Nine matrices, (n, n): the divisions in the order of ``relations.names``, and the diagonal.

    Notes
    -----
    The authors' files list the edges of a graph both ways, whatever their direction, and their program adds all that
    is listed: with a file of theirs, a directed graph becomes an undirected one. They number divisions in the order
    in which a file mentions them; here the numbers are the same for all files.

    Examples
    --------
    >>> import pegfan as pf
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2]])
    >>> divisions = pf.relations.geom_divisions(path, pf.relations.geom_relations(path))
    >>> len(divisions), divisions[8].diagonal().round(2).tolist()
    (9, [0.33, 0.33, 0.33])
    """
    check_graph(graph)
    n, matrices = graph.n, check_kind(relations, "relations", GeomRelations).matrices
    if len(matrices) != len(NAMES):
        raise ValueError(f"relations must hold {len(NAMES)} matrices, one for each of {NAMES}, got {len(matrices)}")
    for name, matrix in zip(NAMES, matrices, strict=True):
        if not issparse(matrix) or matrix.shape != (n, n):
            raise ValueError(
                f"relation {shown(name)} must be a sparse array of shape ({n}, {n}), as the graph has {n} nodes; got "
                f"{type(matrix).__name__} {np.shape(matrix)}: read or make the relations of this graph"
            )
    pairs = [csr_array(graph.adjacency.T).tocoo().coords, *(matrix.tocoo().coords for matrix in matrices)]
    division = np.repeat([0, *range(len(NAMES))], [len(target) for target, _ in pairs])
    keys = np.concatenate([target.astype(np.int64) * n + source for target, source in pairs])
    # Later divisions win: of equal keys, unique returns the first, so the list is turned round.
    keys, last = np.unique(keys[::-1], return_index=True)
    division = division[::-1][last]
    other = keys // n != keys % n
    target, source, division = keys[other] // n, keys[other] % n, division[other]
    degree = np.bincount(target, minlength=n) + 1
    values = np.sqrt(1.0 / (degree[target] * degree[source]))
    merged = [_matrix(target[at], source[at], n, values[at]) for at in (division == k for k in range(len(NAMES)))]
    return [*merged, _matrix(np.arange(n), np.arange(n), n, np.reciprocal(degree, dtype=np.float64))]


def geom_relations(graph: Graph, *, embedding: Literal["spectral", "adjacency"] = "spectral") -> GeomRelations:
    """Make relations for a graph that has no file of them. The embedding is ours, not one of the authors'.

    Nodes are put into a plane. Neighbours in the graph are those of the graph without directions; neighbours in the
    latent space are the nodes within a distance ρ, for which a node has on average as many of them as it has
    neighbours in the graph (the paper's rule). The relation type of u for v is the quadrant in which u lies, seen from
    v: 0 upper left, 1 upper right, 2 lower left, 3 lower right; equal coordinates count as right and as upper.

    Parameters
    ----------
    graph
        The graph; weights and loops do not count, features only tell nodes apart that would else be symmetric.
    embedding
        The plane: the first two coordinates of the spectral embedding of ``build_tree(method="ward")``, or the first
        two of the truncated SVD of ``method="adjacency"``.

    Returns
    -------
    GeomRelations
        For `geom_divisions`. A neighbour in both spaces counts as one in the latent space, as in the authors' files.

    Notes
    -----
    No node has more than four times the average degree of latent neighbours, the nearest; those at the same point go
    first, in canonical order. So many nodes at one point, such as isolated ones, take no more memory than others. Where
    many distances equal ρ, there are more latent neighbours than the rule asks for.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.2, n=300, n_edges=1500, n_features=0)  # two of the edges are loops
    >>> relations = pf.relations.geom_relations(graph)
    >>> sum(matrix.nnz for matrix in relations.matrices[4:])
    2996
    """
    check_graph(graph)
    check_choice(embedding, "embedding", ("spectral", "adjacency"))
    n, order = graph.n, canonical_order(graph).order
    edges = undirected(graph)[order][:, order].tocsr()
    edges.sort_indices()
    points = _plane(edges, embedding)
    close, near = _latent_neighbours(points, edges.nnz)
    row, column = edges.tocoo().coords
    keys = np.concatenate([row.astype(np.int64) * n + column, close * n + near])
    latent = np.repeat([0, 4], [edges.nnz, len(close)])
    keys, last = np.unique(keys[::-1], return_index=True)
    target, source = keys // n, keys % n
    dx, dy = (points[source] - points[target]).T
    kind = np.where(dx >= 0, 1, 0) + np.where(dy >= 0, 0, 2)
    return _divided(order[target], order[source], latent[::-1][last] + kind, n)


# -------------------------------------------------------------------- files


def _read_rows(path: Path, n: int, max_bytes: int) -> tuple[IntArray, IntArray, IntArray]:
    """The columns of a file: node 1, node 2, and the number of the division."""
    from pegfan.datasets._text import open_bytes

    rows: list[tuple[int, int, int]] = []
    read = 0
    with open_bytes(path, max_bytes, BYTE) as file:
        header = file.readline(_LONGEST)
        if header.rstrip(b"\r\n") != _HEADER:
            raise BadInput(
                f"{path}, line 1: the header must be 'node1,node2<TAB>space<TAB>relation_type', got {_shown(header)}"
            )
        number = 1
        while line := file.readline(_LONGEST):
            number += 1
            read += len(line)
            if read > max_bytes:
                raise BadInput(f"{path} has more than the {max_bytes:,} bytes allowed; pass a larger max_bytes")
            match = _ROW.fullmatch(line.rstrip(b"\r\n"))
            if match is None:
                raise BadInput(f"{path}, line {number}: {_complaint(line)}")
            one, two = int(match[1]), int(match[2])
            if one >= n or two >= n:
                raise BadInput(
                    f"{path}, line {number}: node {max(one, two)} is outside the nodes 0..{n - 1}; is it the file of "
                    "another graph?"
                )
            rows.append((one, two, 4 * (match[3] == b"latent_space") + int(match[4])))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def _complaint(line: bytes) -> str:
    """What is wrong with a row."""
    fields = line.rstrip(b"\r\n").split(b"\t")
    if len(line) == _LONGEST and not line.endswith(b"\n"):
        return f"the line is longer than {_LONGEST} bytes; rows are like '101,120<TAB>graph<TAB>0'"
    if len(fields) != 3:
        return f"a row has 3 fields with tabs between them, this one has {len(fields)}: {_shown(line)}"
    nodes, space, _ = fields
    if re.fullmatch(rb"[0-9]{1,10},[0-9]{1,10}", nodes) is None:
        return f"the nodes must be two numbers such as '101,120', got {_shown(nodes)}"
    if space.decode("latin-1") not in SPACES:
        return f"the space must be 'graph' or 'latent_space', got {_shown(space)}"
    return f"the relation type must be 0, 1, 2 or 3, got {_shown(fields[2])}"


def _shown(text: bytes) -> str:
    return repr(text[:60].rstrip(b"\r\n").decode("utf-8", "replace"))


# -------------------------------------------------------------------- the plane


def _plane(edges: csr_array, embedding: str) -> FloatArray:
    """Two coordinates of every node; nodes come in canonical order."""
    from pegfan.trees import embeddings
    from pegfan.trees.level import LevelGraph

    level = LevelGraph(edges, edges)
    if embedding == "spectral":
        coordinates = embeddings.spectral_embedding(level)
    else:
        coordinates = embeddings.adjacency_embedding(level, 2)
    points = np.zeros((len(coordinates), 2))
    points[:, : coordinates.shape[1]] = coordinates[:, :2]
    return points + 0.0  # no negative zero


def _latent_neighbours(points: FloatArray, target: int) -> tuple[IntArray, IntArray]:
    """Pairs of a node and one close to it, about as many as `target`."""
    from scipy.spatial import cKDTree

    n = len(points)
    cap = min(ceil(_CAP * target / n), n - 1)
    if cap == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    distinct, point_of = np.unique(points, axis=0, return_inverse=True)
    point_of = point_of.reshape(-1)
    count = min(cap + 1, len(distinct))  # its own point is among them
    gaps, near = cKDTree(distinct).query(distinct, k=np.arange(1, count + 1))
    first = np.concatenate([[0], np.cumsum(np.bincount(point_of))])
    nodes, distances = np.empty((n, cap), np.int64), np.empty((n, cap))
    nearest_nodes(np.argsort(point_of, kind="stable"), first, near, gaps, nodes, distances)
    radius = np.partition(distances, target - 1, axis=None)[target - 1]
    row, column = np.nonzero(distances <= radius)
    return row, nodes[row, column]


# -------------------------------------------------------------------- matrices


def _divided(target: IntArray, source: IntArray, division: IntArray, n: int) -> GeomRelations:
    among = [division == k for k in range(len(NAMES))]
    return GeomRelations(tuple(_matrix(target[at], source[at], n, np.ones(int(at.sum()))) for at in among))


def _matrix(target: NDArray[Any], source: NDArray[Any], n: int, values: FloatArray) -> csr_array:
    matrix = coo_array((values, (target.astype(np.int32), source.astype(np.int32))), shape=(n, n)).tocsr()
    matrix.sort_indices()
    return matrix
