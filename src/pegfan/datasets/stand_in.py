"""Features for graphs that have none, made of their edges."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, eigsh

from pegfan._arrays import FloatArray
from pegfan.graph import Graph, check_graph


def stand_in_features(graph: Graph, how: str = "degree", dimension: int = 64) -> Graph:
    """Give a graph features that are made of its edges alone.

    Parameters
    ----------
    graph : Graph
        Features that it has are replaced.
    how : {"degree", "svd", "identity"}
        ``"degree"``: log(1 + number of neighbours), one column, or two (out, in) if the graph is directed.
        ``"svd"``: U√Σ of the truncated singular value decomposition A ≈ UΣVᵀ; a directed graph has half of the
        columns from U√Σ and half from V√Σ. ``"identity"``: a sparse identity matrix, one column per node.
    dimension : int
        Columns of ``"svd"``; fewer if the graph has fewer nodes than that.

    Returns
    -------
    Graph

    Notes
    -----
    Each of the three is the same in every run. Degrees follow the nodes under any renumbering. Singular vectors
    do so up to the sign (the entry largest in absolute value is made positive) and up to a rotation among
    those with equal singular values. The identity does not: it tells the nodes apart by their number.

    Examples
    --------
    >>> star = Graph.from_edges([[0, 1], [0, 2], [0, 3]])
    >>> stand_in_features(star).features.round(2).ravel()
    array([1.39, 0.69, 0.69, 0.69])
    >>> stand_in_features(star, "identity")
    Graph(n=4, edges=3, undirected, features=4 sparse)
    """
    check_graph(graph)
    if how == "degree":
        out = np.diff(graph.adjacency.indptr)
        into = np.bincount(graph.adjacency.indices, minlength=graph.n)
        degrees = np.column_stack([out, into]) if graph.directed else out.reshape(-1, 1)
        names = ("out-degree", "in-degree") if graph.directed else ("degree",)
        return graph.replace(features=np.log1p(degrees), feature_names=names)
    if how == "svd":
        vectors = _singular_vectors(graph, dimension)
        return graph.replace(features=vectors, feature_names=[f"svd[{k}]" for k in range(vectors.shape[1])])
    if how == "identity":
        return graph.replace(features=eye_array(graph.n, format="csr"), feature_names=None)
    raise ValueError(f"how must be 'degree', 'svd' or 'identity', got {how!r}")


def _singular_vectors(graph: Graph, dimension: int) -> FloatArray:
    if dimension < 1:
        raise ValueError(f"dimension must be at least 1, got {dimension}")
    k = min(graph.n, (dimension + 1) // 2 if graph.directed else dimension)
    if graph.adjacency.nnz == 0:
        return np.zeros((graph.n, min(dimension, 2 * k if graph.directed else k)))
    if 2 * k > graph.n or graph.n <= 64:  # ARPACK wants k well below n
        u, sigma, vt = np.linalg.svd(graph.adjacency.toarray(), full_matrices=False)
        u, sigma, vt = u[:, :k], sigma[:k], vt[:k]
    else:
        u, sigma, vt = _truncated_svd(graph.adjacency, k)
    signs = np.where(u[np.abs(u).argmax(axis=0), np.arange(k)] < 0, -1, 1)
    # Where the rank is lower than k, the solver's noise must not become features: √ would magnify it.
    root = np.sqrt(np.where(sigma > 1e-8 * sigma[0], sigma, 0)) * signs
    sides = [u * root, vt.T * root] if graph.directed else [u * root]
    return np.hstack(sides)[:, :dimension]


def _truncated_svd(a: csr_array, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As ``scipy.sparse.linalg.svds``, which offers no way to fix the vectors that ARPACK restarts from."""
    normal = LinearOperator(a.shape, matvec=lambda x: a.T @ (a @ x), dtype=np.float64)
    _, v = eigsh(normal, k=k, v0=np.random.default_rng(0).standard_normal(a.shape[0]), rng=0)
    v = np.linalg.qr(v)[0]
    u, sigma, wt = np.linalg.svd(a @ v, full_matrices=False)
    return u, sigma, wt @ v.T
