"""The factors of a channel's operator: matrices, framelet projections, and any other linear operator.

All are `pegfan.framelets.Operator`: they multiply NumPy arrays, SciPy sparse matrices and torch tensors, with
gradients, on any device.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse
from scipy.sparse.linalg import LinearOperator

from pegfan._arrays import FloatArray, IntArray
from pegfan._cache import Same
from pegfan._checks import check_choice, check_kind, check_sparse, shown
from pegfan._loops import Loop
from pegfan._matrices import as_matrix, moved
from pegfan._products import multipliable, product
from pegfan.channels._sums import order_free_sums
from pegfan.channels.hops import HOPS, SUFFIXES, hop_matrix, hop_name
from pegfan.channels.order import inverse
from pegfan.framelets import FrameletSystem, Operator
from pegfan.framelets._signals import ClassMeans, is_tensor
from pegfan.graph import Graph, check_graph

_count_terms = Loop(
    "void count_terms(const I indptr[n + 1], const I indices[m], const int64 terms[_columns], int64 most, int64 out[n])"
)
"""Add up integers along the rows of a matrix, each sum at most `most`."""


class Matrix(Operator):
    """A matrix as an operator; it is converted once for every dtype and device that it meets.

    Parameters
    ----------
    name
        What it is, for names and tables.
    matrix
        A SciPy sparse matrix or a 2-D array.

    Examples
    --------
    >>> import numpy as np
    >>> Matrix("M", np.array([[0.0, 2.0], [1.0, 0.0]])) @ np.array([[1.0], [5.0]])
    array([[10.],
           [ 1.]])
    """

    def __init__(self, name: str, matrix: Any) -> None:
        self._given = matrix  # see `key`
        matrix = as_matrix(matrix, "matrix")
        self.matrix: Any = _as_floats(csr_array(matrix) if issparse(matrix) else matrix)
        self._converted: dict[Any, Any] = {}
        super().__init__(name, self.matrix.shape)  # its maps are methods: kept on it, they would keep it alive

    @property
    def key(self) -> Hashable:
        """The matrix that was given, however often it was."""
        return Same(self._given)

    def matrices(self) -> list[Any]:
        """The matrix."""
        return [self.matrix]

    def nonzeros(self, rows: IntArray | None, columns: int) -> IntArray | None:
        """A row of the product has at most the entries of all rows that are added up in it."""
        if rows is None or not issparse(self.matrix):
            return None
        out = np.empty(self.shape[0], np.int64)
        _count_terms(self.matrix.indptr, self.matrix.indices, np.asarray(rows, np.int64), columns, out)
        return out

    def by_rows(self, x: Any) -> Any:
        """Rows of a sparse matrix times x."""
        if not issparse(self.matrix):
            return None
        matrix = self._like(x)
        return lambda rows: matrix[rows] @ x

    def shares(self, nodes: IntArray, columns: Any) -> tuple[FloatArray, FloatArray] | None:
        """Entry by entry, if the matrix is sparse."""
        if not issparse(self.matrix):
            return None
        shares = csr_array(columns.multiply(self.matrix[nodes]))
        return order_free_sums(shares), order_free_sums(abs(shares))

    def _forward(self, x: Any) -> Any:
        matrix = self._like(x)
        return product(matrix, x) if multipliable(matrix, x) else matrix @ x

    def _transposed(self, x: Any) -> Any:
        return self._like(x, transposed=True) @ x

    def _like(self, x: Any, transposed: bool = False) -> Any:
        """The matrix, or its transpose, in the kind of x."""
        if not is_tensor(x):
            if x.dtype not in self._converted:
                self._converted[x.dtype] = self.matrix.astype(x.dtype, copy=False)
            return self._converted[x.dtype].T if transposed else self._converted[x.dtype]
        key = (x.dtype, x.device, transposed)
        if key not in self._converted:
            import torch

            from pegfan.framelets._torch import sparse_csr

            matrix = self.matrix.T if transposed else self.matrix
            if issparse(matrix):
                self._converted[key] = sparse_csr(csr_array(matrix), x.dtype, x.device)
            else:
                self._converted[key] = torch.tensor(np.ascontiguousarray(matrix), dtype=x.dtype, device=x.device)
        return self._converted[key]


class Hop(Matrix):
    """A hop matrix that knows what it is; `hop_matrix` makes the matrix alone.

    Parameters
    ----------
    graph
        The graph.
    kind, direction
        As for `hop_matrix`.
    edges
        Along which kind of edges, of the graph's `edge_kinds`; by default along all of them.

    Examples
    --------
    >>> import pegfan as pf
    >>> step = Hop(pf.Graph.from_edges([[0, 1], [1, 2]], directed=True), "S~", "in")
    >>> step, step.hop, step.side
    (<3×3 operator S~_in>, 'S~', 'in')
    """

    hop: str
    side: str

    def __init__(self, graph: Graph, kind: str = "S", direction: str = "out", edges: str | None = None) -> None:
        check_graph(graph)
        check_choice(kind, "a hop matrix", HOPS)
        check_choice(direction, "direction", SUFFIXES)
        name = hop_name(kind, direction) + (f"[{edges}]" if edges is not None else "")
        super().__init__(name, hop_matrix(graph.weighted(edges), kind, direction))
        adjacency = graph.adjacency
        if edges is None and np.array_equal(adjacency.indices, self.matrix.indices):  # the same places, held once
            parts = (self.matrix.data, adjacency.indices, adjacency.indptr)
            self._given = self.matrix = csr_array(parts, shape=self.shape)
        self.hop, self.side, self.edges = hop_name(kind), direction, edges


class Projection(Operator):
    """F_j of a framelet system as a factor; projections of one signal are computed together.

    Parameters
    ----------
    system
        The framelet system.
    scale
        j, from 0 to K−1.
    classes
        A class number for every node: the factor is then M F_j, where M averages over the nodes of a class (see
        `FrameletSystem.projections`).

    Examples
    --------
    >>> import pegfan as pf
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> Projection(system, 2)
    <4×4 operator F_2>
    """

    system: FrameletSystem
    scale: int
    means: ClassMeans | None

    def __init__(self, system: FrameletSystem, scale: int, classes: Any = None) -> None:
        check_kind(system, "system", FrameletSystem)
        inner = system.operator("projection", scale)
        self.system, self.scale = system, scale
        self._vectors: dict[int, tuple[IntArray, FloatArray]] = {}
        means = classes if isinstance(classes, ClassMeans) or classes is None else ClassMeans(classes, system.n)
        if means is None or not len(means.nodes):
            self.means = None
            super().__init__(inner.name, inner.shape, inner._forward, inner._transposed)
            return
        self.means = means
        super().__init__(
            inner.name,
            inner.shape,
            lambda x: means(inner._forward(x), own=True),
            lambda x: inner._transposed(means(x)),
        )

    @property
    def key(self) -> Hashable:
        """The system, the scale and the classes."""
        return Same(self.system), self.scale, Same(self.means)

    def matrices(self) -> list[Any]:
        """F_j = Φ_(j+1)ᵀ (I − PᵀP) · Φ_(j+1) with P = Φ_j Φ_(j+1)ᵀ, the weights of children, and F_0 = Φ_1ᵀ · Φ_1."""
        fine = self.system.scaling(self.scale + 1)
        first = fine.T.tocsr()
        if self.scale > 0:
            weights = self.system.scaling(self.scale) @ fine.T
            first = csr_array(fine.T @ (eye_array(fine.shape[0], format="csr") - weights.T @ weights))
        if self.means is None:
            return [first, fine]
        spread, mean = _mean_matrices(self.means)
        return [spread, csr_array(mean @ first), fine]

    def nonzeros(self, rows: IntArray | None, columns: int) -> IntArray | None:
        """A row of F_j f mixes the rows of its cluster; a cluster with one child has no framelet."""
        if rows is None:
            return None
        tree, level = self.system.hierarchy, max(self.scale, 1)
        slots = tree.labels(level)
        total = np.bincount(slots, weights=rows, minlength=tree.n_clusters[level - 1]).astype(np.int64)
        if self.scale > 0:
            total[tree.n_children(level) == 1] = 0
        bounds = np.minimum(total, columns)[slots]
        if self.means is not None:
            self.means.put(np.minimum(self.means.members @ bounds[self.means.nodes], columns), bounds)
        return np.asarray(bounds)

    def shares(self, nodes: IntArray, columns: Any) -> tuple[FloatArray, FloatArray]:
        """With the entries of F_j = Φ_(j+1)ᵀΦ_(j+1) − Φ_jᵀΦ_j, and the sizes of the two parts together."""
        at = columns.tocoo()
        row, v = at.coords
        fine, coarse = (self._average(level, nodes[row], v) for level in (self.scale + 1, self.scale))
        weights = at.data * (fine - coarse), np.abs(at.data) * (np.abs(fine) + np.abs(coarse))
        own, size = (np.asarray(np.bincount(row, w, len(nodes)), np.float64) for w in weights)
        return own, size

    def _average(self, level: int, i: IntArray, v: IntArray) -> FloatArray:
        """Entries of Φᵀ Φ for a level; level 0 has none."""
        if level == 0:
            return np.zeros(len(i))
        if level not in self._vectors:
            self._vectors[level] = scaling_vectors(self.system, level)
        slots, phi = self._vectors[level]
        if self.means is None:
            return np.where(slots[i] == slots[v], phi[i] * phi[v], 0.0)
        spread, mean = _mean_matrices(self.means)
        inside = csr_array((phi, slots, np.arange(len(phi) + 1)), shape=(len(phi), int(slots.max()) + 1))
        return np.asarray((spread @ (mean @ inside))[i, slots[v]]).ravel() * phi[v]


class Foreign(Operator):
    """Somebody's `LinearOperator`, which knows NumPy arrays only."""

    def __init__(self, name: str, inner: LinearOperator) -> None:
        self.inner = inner
        super().__init__(name, inner.shape, lambda x: _call(inner.matmat, x), lambda x: _call(inner.rmatmat, x))

    @property
    def key(self) -> Hashable:
        """The operator that was given."""
        return Same(self.inner)


class Renumbered(Operator):
    """An operator on renumbered spaces, by its products: new row i is old row ``rows[i]``, and likewise for columns."""

    def __init__(self, inner: Operator, rows: IntArray | None, columns: IntArray | None) -> None:
        back = [None if order is None else inverse(order) for order in (rows, columns)]
        self.inner, self.hop, self.side = inner, inner.hop, inner.side
        super().__init__(
            inner.name,
            inner.shape,
            lambda x: _taken(inner._forward(_taken(x, back[1])), rows),
            lambda x: _taken(inner._transposed(_taken(x, back[0])), columns),
        )

    @property
    def key(self) -> Hashable:
        """That of the operator: products are of channels in one order."""
        return self.inner.key


def renumbered(
    operator: Operator,
    rows: IntArray | None,
    columns: IntArray | None,
    systems: dict[int, FrameletSystem] | None = None,
) -> Operator:
    """Somebody's operator on renumbered spaces: new row i is old row ``rows[i]``, and likewise for columns.

    Matrices and projections are made anew, so that their sums are taken in the new order; of others, only products are
    known.

    Parameters
    ----------
    operator
        Of nodes as they are numbered.
    rows, columns
        The orders; None leaves the numbers as they are.
    systems
        Framelet systems that were renumbered so, by the id of the one that they come from.
    """
    if rows is None and columns is None:
        return operator
    if isinstance(operator, Matrix):
        matrix, inside = operator.matrix, copy(operator)
        if rows is columns and issparse(matrix):
            inside.matrix = moved(matrix, rows)
        else:
            inside.matrix = _taken(_taken(matrix, rows).T, columns).T
        inside._converted = {}
        return inside
    if isinstance(operator, Projection) and rows is not None and rows is columns:
        known = {} if systems is None else systems
        if id(operator.system) not in known:
            known[id(operator.system)] = operator.system.permute(rows)
        means = None if operator.means is None else ClassMeans(operator.means.classes[rows], len(rows))
        return Projection(known[id(operator.system)], operator.scale, means)
    return Renumbered(operator, rows, columns)


def _taken(x: Any, order: IntArray | None) -> Any:
    return x if order is None else x[order]


def _as_floats(matrix: Any) -> Any:
    """A matrix whose products are those of numbers: small integers overflow, and booleans know only "or"."""
    matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)
    if issparse(matrix) and not matrix.has_sorted_indices:
        return matrix.sorted_indices()  # a copy: sorting in place would change what the user gave
    return matrix


def as_factor(value: Any, name: str) -> Operator:
    """One factor of a channel's operator, from whatever the user has."""
    if isinstance(value, Operator):
        return value
    if isinstance(value, LinearOperator):
        if value.dtype is not None and value.dtype.kind == "c":
            raise TypeError(f"a factor of channel {shown(name)} must be real, got a LinearOperator of {value.dtype}")
        return Foreign("L", value)
    if issparse(value):
        check_sparse(value, f"a factor of channel {name!r}")
    if issparse(value) or (isinstance(value, np.ndarray) and value.ndim == 2):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"a factor of channel {shown(name)} must hold real numbers, got dtype {value.dtype}")
        if not all_finite(value):
            raise ValueError(f"a factor of channel {shown(name)} holds NaN or infinity")
        return Matrix("M", value)
    raise TypeError(
        f"a factor of channel {shown(name)} must be a sparse matrix, a 2-D array or a LinearOperator, "
        f"got {type(value).__name__}"
    )


def all_finite(array: Any) -> bool:
    """Whether no entry is NaN or infinite; takes no memory unless something is wrong."""
    values = array.tocsr().data if issparse(array) else array  # not all formats have their numbers in one array
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def scaling_vectors(system: FrameletSystem, level: int) -> tuple[IntArray, FloatArray]:
    """The slot of every node's cluster at a level, and the value of that cluster's φ at the node."""
    matrix = system.scaling(level)
    phi = np.zeros(system.n)
    phi[matrix.indices] = matrix.data
    return system.hierarchy.labels(level), phi


def _mean_matrices(means: ClassMeans) -> tuple[csr_array, csr_array]:
    """Matrices whose product is M: from classes to nodes, and means of classes; a class of one node is its own."""
    n, places = len(means.code), np.arange(len(means.code))
    number = np.where(means.code >= 0, means.code, len(means.sizes) + np.cumsum(means.code < 0) - 1)
    spread = csr_array((np.ones(n), number, np.arange(n + 1)), shape=(n, int(number.max()) + 1))
    weights = np.where(means.code >= 0, 1 / means.sizes[means.code], 1.0)
    return spread, csr_array((weights, (number, places)), shape=spread.shape[::-1])


def _call(product: Any, x: Any) -> Any:
    if is_tensor(x):  # on a device: CPU tensors arrive as arrays
        import torch

        return torch.from_numpy(np.asarray(product(x.cpu().numpy()))).to(x)
    return np.asarray(product(x.toarray() if issparse(x) else x)).astype(x.dtype, copy=False)
