"""Coordinates for nodes: spectral, or singular vectors of the adjacency; the same on every machine.

All arithmetic is that of `_linear` and of `pegfan._products`: loops in C with a fixed order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components

from pegfan._arrays import FloatArray
from pegfan._matrices import enough, transposed
from pegfan._products import product
from pegfan.trees import _linear
from pegfan.trees.level import LevelGraph

_DENSE = 32  # matrices up to this size are decomposed whole
_SPARE = 5  # vectors that are iterated beside those that are wanted: the more, the fewer rounds
_TOLERANCE = 1e-4
_ROUNDS = 60
_GROWTH = 1e5  # how much a round may favour one vector above another; their Gram matrix must still tell them apart
_BITS = 40  # of every coordinate that count: equal ones are equal again, whatever the last bits made of them


def spectral_embedding(level: LevelGraph, dimension: int = 10) -> FloatArray:
    """Unit rows of the leading eigenvectors of the random walk, the first left out.

    These are D^(-1/2) v for the leading eigenvectors v of D^(-1/2) A D^(-1/2). A directed level is the bipartite
    graph of rows and columns, and rows are embedded. As in scikit-network's ``Spectral``, a disconnected graph is
    regularised by A + 11ᵀ/n. Few nodes get fewer dimensions, half their number: all eigenvectors together would put
    every two nodes at the same distance.
    """
    A = csr_array(level.rows())
    n = A.shape[0]
    if level.direction != "symmetric":
        A = csr_array(block_array([[csr_array((n, n)), A], [A.T, csr_array((n, n))]], format="csr"))
    A.sort_indices()
    size = A.shape[0]
    extra = 1.0 / size if connected_components(A, directed=False, return_labels=False) > 1 else 0.0
    degree = row_sums(A) + extra * size
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    S = csr_array((A.data / (np.repeat(root, np.diff(A.indptr)) * root[A.indices]), A.indices, A.indptr), A.shape)
    dimension = min(dimension, max(n // 2, 1))
    operator = _Operator([S], (1.0 / root, extra) if extra else None, low=-1.0)
    vectors = leading_eigenvectors(operator, dimension + 1, level.notes, first=root)
    return _rounded(_unit_rows((vectors[:, 1:] / root[:, None])[:n]))


def adjacency_embedding(level: LevelGraph, dimension: int = 32) -> FloatArray:
    """Adjacency rows in the coordinates of their leading singular vectors: U Σ of the truncated SVD."""
    A = csr_array(level.rows())
    A.sort_indices()
    across = transposed(A)
    vectors = leading_eigenvectors(_Operator([across, A]), min(dimension, A.shape[0]), level.notes)
    return _rounded(vectors * _lengths(_Operator([across]), vectors))


class _Operator:
    """A product of sparse matrices, the first acting first, and maybe factor · scale scaleᵀ added to it.

    Its eigenvalues are at least `low`.
    """

    def __init__(self, matrices: Sequence[csr_array], outer: tuple[FloatArray, float] | None = None, low: float = 0.0):
        self.matrices, self.outer, self.low = matrices, outer, low

    @property
    def n(self) -> int:
        return int(self.matrices[0].shape[1])

    def apply(self, x: FloatArray) -> FloatArray:
        image = x
        for matrix in self.matrices:
            image = product(matrix, image)
        if self.outer is not None:
            enough(_linear.add_outer(*self.outer, x, image))
        return image


def leading_eigenvectors(
    operator: _Operator, count: int, notes: dict[str, Any], first: FloatArray | None = None
) -> FloatArray:
    """Eigenvectors of the largest eigenvalues of a symmetric operator, largest first.

    Subspace iteration: a few vectors more than wanted are multiplied by a polynomial of the operator that is small on
    the eigenvalues below theirs (Chebyshev's, on the interval from the operator's lower bound to the smallest value
    found so far), made orthonormal, and turned to the eigenvectors of what the operator does to them; until
    A v − λ v is at most 10⁻⁴ times the largest eigenvalue. Of an eigenvalue with many eigenvectors those are found that
    the fixed start, hashes of places in the canonical order, has a share in.

    What is returned is A v / λ: nodes that the operator cannot tell apart, such as twins, have equal rows, bit for bit.
    """
    n = operator.n
    width = min(count + _SPARE, n)
    if n <= max(_DENSE, width):
        matrix = operator.apply(np.eye(n))
        values, vectors = _eigen((matrix + matrix.T) / 2)
        return _images(operator.apply(vectors), values, count)
    x = _Block(n, width, first)
    residual = np.inf
    for _ in range(_ROUNDS):
        image, values = x.ritz(operator)
        residual = float(x.residuals(image, values)[:count].max())
        if residual <= _TOLERANCE * values[0]:
            break
        x.filter(operator, image, values)
    else:
        notes["eigenvectors"] = f"to {residual / values[0]:.0e}: no better in {_ROUNDS} rounds"
    return _images(image, values, count)


def _images(image: FloatArray, values: FloatArray, count: int) -> FloatArray:
    """The first of A v / λ; zero where λ is, up to rounding."""
    sound = np.abs(values[:count]) > 1e-12 * np.abs(values).max()
    return np.ascontiguousarray(np.where(sound, image[:, :count], 0.0) / np.where(sound, values[:count], 1.0))


class _Block:
    """Some orthonormal vectors, in columns."""

    def __init__(self, n: int, width: int, first: FloatArray | None) -> None:
        self.vectors = np.empty((n, width))
        self._fill(1, np.ones(width, bool))
        if first is not None:
            self.vectors[:, 0] = first
        self._orthonormalise()

    def ritz(self, operator: _Operator) -> tuple[FloatArray, FloatArray]:
        """Turn to the eigenvectors of the operator's compression; its images of them, and their values."""
        image = operator.apply(self.vectors)
        values, turn = _eigen(_gram(self.vectors, image))
        self.vectors = _rotate(self.vectors, turn)
        return _rotate(image, turn), values

    def residuals(self, image: FloatArray, values: FloatArray) -> FloatArray:
        """The lengths of A v − λ v."""
        return _norms(image - values * self.vectors)

    def filter(self, operator: _Operator, image: FloatArray, values: FloatArray) -> None:
        """Multiply by a polynomial that is at most one from the operator's lower bound to the smallest value."""
        low, top = operator.low, float(values[0])
        cut = max(float(values[-1]), low + 1e-5 * (top - low))
        centre, radius = (cut + low) / 2, (cut - low) / 2
        before, now = self.vectors, np.empty_like(self.vectors)
        _linear.combine(1.0 / radius, image, -centre / radius, before, 0.0, before, now)
        for _ in range(_degree((top - centre) / radius) - 1):
            after = np.empty_like(now)
            _linear.combine(2.0 / radius, operator.apply(now), -2.0 * centre / radius, now, -1.0, before, after)
            before, now = now, after
        self.vectors = now
        self._orthonormalise()

    def _orthonormalise(self) -> None:
        """Twice, for once leaves errors as large as the vectors were dependent; lost ones are replaced."""
        width = self.vectors.shape[1]
        turn, lost = np.empty((width, width)), np.zeros(width, bool)
        passes = 0
        while passes < 2:
            missing = enough(_linear.orthonormal(_gram(self.vectors, self.vectors), turn, lost))
            self.vectors = _rotate(self.vectors, turn)
            passes = 0 if missing else passes + 1
            if missing:
                self._fill(2, lost)

    def _fill(self, salt: int, columns: Any) -> None:
        _linear.fill(self.vectors, salt, columns)


def _degree(top: float) -> int:
    """The degree of the Chebyshev polynomial that reaches `_GROWTH` at a point beyond one, from 1 to 40."""
    before, now, degree = 1.0, top, 1
    while now < _GROWTH and degree < 40:
        before, now, degree = now, 2 * top * now - before, degree + 1
    return degree


def row_sums(matrix: csr_array) -> FloatArray:
    """The sum of every row."""
    out = np.empty(matrix.shape[0])
    _linear.row_sums(matrix.indptr, matrix.data, out)
    return out


def _gram(x: FloatArray, y: FloatArray) -> FloatArray:
    out = np.empty((x.shape[1], y.shape[1]))
    _linear.gram(x, y, out)
    return out


def _rotate(x: FloatArray, turn: FloatArray) -> FloatArray:
    out = np.empty((x.shape[0], turn.shape[1]))
    _linear.rotate(x, turn, out)
    return out


def _norms(x: FloatArray) -> FloatArray:
    out = np.empty(x.shape[1])
    _linear.column_norms(x, out)
    return out


def _lengths(operator: _Operator, vectors: FloatArray) -> FloatArray:
    """The lengths of an operator's images of some vectors."""
    return _norms(operator.apply(np.ascontiguousarray(vectors)))


def _eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.empty(len(matrix)), np.empty(matrix.shape)
    enough(_linear.symmetric_eigen(matrix, values, vectors))
    return values, vectors


def _unit_rows(points: FloatArray) -> FloatArray:
    """Rows scaled to length one; rows of zeros stay."""
    rows = np.array(points, dtype=np.float64, order="C")
    _linear.scale_rows(rows)
    return rows


def _rounded(points: FloatArray) -> FloatArray:
    mantissa, exponent = np.frexp(points)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS))
