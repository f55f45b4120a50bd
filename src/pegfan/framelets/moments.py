"""Framelets with vanishing moments: several scaling vectors per cluster.

With one scaling vector per cluster, as in the paper, framelets can ignore one function only: by Theorem 1 B p = 0, and
with p of `weights="size"` that function is the constant. To ignore slopes as well, a cluster has to hand up more than
its mean. Let M hold m functions in columns, the constant and some coordinates. A cluster keeps an orthonormal basis of
their restrictions to it, of r ≤ m vectors, in terms of what its children keep: if Q stacks the coefficients of M in
the children's vectors, Q = U S with orthonormal U gives the cluster's scaling vectors, and the orthogonal complement
of U its framelets (B. Alpert, SIAM Journal on Mathematical Analysis 24, 1993, on an interval). All of them together are
an orthonormal basis, as every step is an orthogonal matrix, and framelets are orthogonal to all columns of M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import as_array
from pegfan.framelets._levels import starts
from pegfan.framelets.system import FrameletSystem
from pegfan.trees import Hierarchy

__all__ = ["MomentSystem"]

_NOTHING = 1e-10
"""Of the largest singular value: what is smaller is no direction of its own."""


class MomentSystem(FrameletSystem):
    """An orthonormal basis of framelets that ignore constants and some coordinates of the nodes, exactly.

    A signal that is linear in the coordinates, on a whole cluster, has no framelet coefficients in it: smooth signals
    need few of them where the means of clusters need many. What a `FrameletSystem` does, this one does.

    Parameters
    ----------
    hierarchy
        The tree.
    coordinates
        Numbers per node, n or n × k: where nodes are (``graph.positions``), features, or a few smooth functions of the
        graph, such as eigenvectors of its Laplacian. Every column costs a scaling vector per cluster.

    Notes
    -----
    A cluster has up to 1 + k scaling vectors, so that there are up to 1 + k scaling coefficients at the root. Small
    clusters have as many as they have nodes, and then no framelets. The basis is made by one small singular value
    decomposition per cluster; transforms are products with sparse matrices of O(n h k) entries.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> tree = pf.Hierarchy([np.arange(2**j) // 2 for j in range(6, 0, -1)])
    >>> x = np.linspace(0, 1, 64)
    >>> system = pf.framelets.MomentSystem(tree, x)
    >>> c = system.decompose(3 + 2 * x)
    >>> len(c.scaling), bool(np.allclose(c.array[2:], 0))
    (2, True)
    >>> bool(np.allclose(system.reconstruct(c), 3 + 2 * x))
    True
    """

    _in_c = False  # a cluster has several scaling vectors

    def __init__(self, hierarchy: Hierarchy, coordinates: Any) -> None:
        if not isinstance(hierarchy, Hierarchy):
            raise TypeError(f"a framelet system stands on a Hierarchy, got {type(hierarchy).__name__}")
        self.hierarchy, self.filters, self.weights = hierarchy, "moments", "size"
        self.coordinates = _checked(coordinates, hierarchy.n)
        self._levels: Any = _make_levels(hierarchy, self.coordinates)
        self._of_kinds: dict[Any, Any] = {}

    def nnz(self, j0: int = 1) -> int:
        """The number of stored entries of ``matrix(j0)``."""
        return int(self.matrix(j0).nnz)

    def variances(self, variance: Any, j0: int = 1) -> FloatArray:
        """The variance of every coefficient of a signal whose nodes have these, independent of each other."""
        return np.asarray(self.matrix(j0).power(2) @ self._variance(variance))

    def permute(self, perm: Any) -> MomentSystem:
        """The same system on renumbered nodes: new node i is old node ``perm[i]``."""
        moved = super().permute(perm)
        assert isinstance(moved, MomentSystem)
        moved.coordinates = self.coordinates[np.asarray(perm)]
        return moved

    def _n_scaling(self, j: int) -> int:
        return self.n if j == self.K else int(self._levels[j - 1].P.shape[0])

    def _scalings(self, j0: int) -> list[csr_array]:
        order = self.hierarchy.order
        matrices = [csr_array((np.ones(self.n), order, np.arange(self.n + 1)), shape=(self.n, self.n))]
        for level in reversed(self._levels[j0 - 1 :]):
            matrices.append(csr_array(level.P @ matrices[-1]))
        return matrices[::-1]

    def _same_filters(self, other: FrameletSystem) -> bool:
        return isinstance(other, MomentSystem) and np.array_equal(self.coordinates, other.coordinates)

    def __repr__(self) -> str:
        return f"MomentSystem({self.hierarchy}, {self.coordinates.shape[1]} coordinates, {self.count()} framelets)"


@dataclass(eq=False)
class _Level:
    """The clusters of a level: what they keep of their children's vectors, and what is orthogonal to it."""

    P: csr_array
    B: csr_array
    n_framelets: IntArray

    @property
    def n_scaling(self) -> int:
        """The number of scaling vectors."""
        return int(self.P.shape[0])

    @cached_property
    def norms(self) -> FloatArray:
        """All framelets are unit vectors."""
        return np.ones(self.B.shape[0])

    def bounds(self) -> tuple[float, float]:
        """Enclosure of the eigenvalues of PᵀP + BᵀB."""
        gram = csr_array(self.P.T @ self.P + self.B.T @ self.B)
        diagonal = gram.diagonal()
        radius = np.asarray(abs(gram).sum(axis=1)).ravel() - np.abs(diagonal)
        return float((diagonal - radius).min()), float((diagonal + radius).max())


def _checked(coordinates: Any, n: int) -> FloatArray:
    given = as_array(coordinates.toarray() if issparse(coordinates) else coordinates, "coordinates")
    if given.dtype.kind not in "biuf":
        raise TypeError(f"coordinates must hold real numbers, got dtype {given.dtype}")
    array = given.astype(np.float64).reshape(len(given), -1) if given.ndim in (1, 2) else given
    if array.ndim != 2 or len(array) != n:
        raise ValueError(f"coordinates must have one row per node, {n} of them; got shape {given.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"coordinates must be finite, and hold {array[~np.isfinite(array)][0]}")
    return array


def _make_levels(tree: Hierarchy, coordinates: FloatArray) -> list[_Level]:
    """The levels 1, ..., K−1, finest last."""
    spread = np.abs(coordinates - coordinates.mean(axis=0)).max(axis=0, initial=0.0)
    about = (coordinates - coordinates.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    moments = np.column_stack([np.ones(tree.n), about])[tree.order]  # of what every vector keeps, in rows
    held = np.ones(tree.n, np.int64)  # how many vectors each cluster has
    levels = []
    for j in range(tree.K - 1, 0, -1):
        level, moments, held = _make_level(tree.first_child(j), moments, held)
        levels.append(level)
    return levels[::-1]


def _make_level(first: IntArray, moments: FloatArray, held: IntArray) -> tuple[_Level, FloatArray, IntArray]:
    """One level from what the children keep; clusters with as many vectors below are decomposed together."""
    below = np.concatenate([[0], np.cumsum(held)])[first]
    widths, clusters = np.diff(below), len(first) - 1
    kept = np.empty(clusters, np.int64)
    turned: list[tuple[IntArray, FloatArray]] = []
    for width in np.unique(widths):
        at = np.flatnonzero(widths == width)
        Q = moments[below[at][:, None] + np.arange(width)]
        scale = np.sqrt((Q**2).sum(axis=1, keepdims=True))
        U, sizes, _ = np.linalg.svd(Q / np.where(scale > 0, scale, 1.0))
        kept[at] = np.maximum((sizes > _NOTHING * sizes[:, :1]).sum(axis=1), 1)
        turned.append((at, U.transpose(0, 2, 1)))
    total = int(widths.sum())
    P = _assembled(turned, below, np.zeros(clusters, np.int64), kept, total)
    B = _assembled(turned, below, kept, widths, total)
    return _Level(P, B, widths - kept), P @ moments, kept


def _assembled(
    turned: list[tuple[IntArray, FloatArray]], below: IntArray, begin: IntArray, end: IntArray, total: int
) -> csr_array:
    """The rows begin to end of every cluster's orthogonal matrix, cluster after cluster, as one sparse matrix."""
    counts = end - begin
    place = starts(counts)
    lengths = np.repeat(np.diff(below), counts)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values, columns = np.empty(indptr[-1]), np.empty(indptr[-1], np.int64)
    for at, rows in turned:
        width = rows.shape[2]
        which = (np.arange(width) >= begin[at][:, None]) & (np.arange(width) < end[at][:, None])
        cluster, row = np.nonzero(which)
        to = indptr[place[at][cluster] + row - begin[at][cluster]][:, None] + np.arange(width)
        values[to] = rows[cluster, row]
        columns[to] = below[at][cluster][:, None] + np.arange(width)
    return csr_array((values, columns, indptr), shape=(int(counts.sum()), total))
