"""Coordinates for nodes: spectral, singular vectors of the adjacency, propagated features; deterministic."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from pegfan._arrays import FloatArray
from pegfan.running import one_thread
from pegfan.trees.build import LevelGraph, unit_rows

_DENSE = 400  # matrices up to this size are decomposed whole
_LIMIT = RLock()


def spectral_embedding(level: LevelGraph, dimension: int = 10) -> FloatArray:
    """Unit rows of the leading eigenvectors of the random walk, the first left out.

    These are D^(-1/2) v for the leading eigenvectors v of D^(-1/2) A D^(-1/2). A directed level is the bipartite
    graph of rows and columns, and rows are embedded. As in scikit-network's ``Spectral``, a disconnected graph is
    regularised by A + 11ᵀ/n. Few nodes get fewer dimensions, half their number: all eigenvectors together would put
    every two nodes at the same distance.
    """
    A = level.rows()
    n = A.shape[0]
    if level.direction != "symmetric":
        A = csr_array(block_array([[csr_array((n, n)), A], [A.T, csr_array((n, n))]], format="csr"))
    size = A.shape[0]
    extra = 1.0 / size if connected_components(A, directed=False, return_labels=False) > 1 else 0.0
    degree = np.asarray(A.sum(axis=1)).ravel() + extra * size
    scale = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    S = csr_array(diags_array(scale) @ A @ diags_array(scale))

    def product(x: Any) -> Any:
        x = x.reshape(size, -1)
        return S @ x + extra * np.outer(scale, scale @ x)

    dimension = min(dimension, max(n // 2, 1))
    vectors = leading_eigenvectors(product, size, dimension + 1, level.notes)
    return unit_rows((scale[:, None] * vectors[:, 1:])[:n])


def adjacency_embedding(level: LevelGraph, dimension: int = 32) -> FloatArray:
    """Adjacency rows in the coordinates of their leading singular vectors: U Σ of the truncated SVD."""
    A = csr_array(level.rows())
    transposed = csr_array(A.T)
    n = A.shape[0]
    vectors = leading_eigenvectors(lambda x: A @ (transposed @ x.reshape(n, -1)), n, min(dimension, n), level.notes)
    return np.asarray(vectors * np.linalg.norm(transposed @ vectors, axis=0))


def propagated_features(edges: csr_array, features: Any, notes: dict[str, Any], dimension: int = 10) -> FloatArray:
    """Unit rows of features averaged with the neighbours', reduced to their leading directions."""
    X = csr_array(features, dtype=np.float64) if issparse(features) else np.asarray(features, dtype=np.float64)
    n = X.shape[0]
    largest = abs(X).max()
    X = X / largest if largest > 0 else X
    degree = np.asarray(edges.sum(axis=1)).ravel()
    mean = csr_array(diags_array(1.0 / np.where(degree > 0, degree, 1.0)) @ edges)

    def rows(x: Any) -> Any:
        y = X @ x
        return 0.5 * (y + mean @ y)

    def columns(x: Any) -> Any:
        return X.T @ (0.5 * (x + mean.T @ x))

    vectors = leading_eigenvectors(lambda x: rows(columns(x.reshape(n, -1))), n, min(dimension, n), notes)
    points = vectors * np.linalg.norm(columns(vectors), axis=0)
    # Directions without energy and rows without features are rounding, not something to give unit length.
    points[np.abs(points) < 1e-9 * max(float(np.abs(points).max()), 1e-300)] = 0.0
    return unit_rows(points)


def leading_eigenvectors(product: Callable[[Any], Any], n: int, count: int, notes: dict[str, Any]) -> FloatArray:
    """Eigenvectors of the largest eigenvalues of a symmetric operator, largest first, from a fixed start."""
    # On one thread, as sums in another order would change the last bits. The limit belongs to the process: without the
    # lock, two calls at once would restore the wrong one.
    with _LIMIT, one_thread():
        if n <= max(_DENSE, 2 * count + 1):
            matrix = product(np.eye(n))
            return np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1][:, :count]
        start = np.cos(np.arange(1.0, n + 1.0))  # no symmetry of the graph makes it orthogonal to what is sought
        operator = LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
        try:
            values, vectors = eigsh(operator, count, which="LA", v0=start, maxiter=2000, rng=np.random.default_rng(0))
            return np.asarray(vectors[:, np.argsort(-values, kind="stable")])
        except (ArpackError, np.linalg.LinAlgError):
            notes["eigensolver"] = "subspace iteration, because ARPACK did not converge"
            return _subspace_iteration(product, n, count)


def _subspace_iteration(product: Callable[[Any], Any], n: int, count: int, rounds: int = 100) -> FloatArray:
    """The plain alternative: multiply and orthonormalise. A shift makes the largest eigenvalues the largest in size."""
    basis = np.cos(np.outer(np.arange(1.0, n + 1.0), np.arange(1.0, count + 11.0)))
    for _ in range(rounds):
        basis = np.linalg.qr(product(basis) + basis)[0]
    _, rotation = np.linalg.eigh(basis.T @ product(basis))
    return np.asarray((basis @ rotation)[:, ::-1][:, :count])
