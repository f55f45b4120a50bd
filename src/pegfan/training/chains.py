"""A channel as a chain of small matrices: H = A_1 A_2 ... A_m W for the rows that training looks at.

P(X W) = (P X) W: with sparse X and few hidden units the operator acts on the weights' columns, never on features.
Which neighbours in the chain are multiplied out beforehand is decided by counting what a product costs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, issparse

from pegfan.channels import Channel, Matrix, Projection
from pegfan.framelets import FrameletSystem

IntArray = NDArray[np.int64]

_DENSE_GAIN = 2.5
"""How much faster an entry of a dense matrix is multiplied than one of a sparse matrix."""


_KNOWN: WeakKeyDictionary[Channel, tuple[list[Any], IntArray]] = WeakKeyDictionary()


class Link:
    """One matrix of a chain, with its transpose for the way back; sparse in CSR form, or dense."""

    def __init__(self, matrix: Any, transposed: Any, dtype: Any) -> None:
        self.shape = matrix.shape
        self.forward_parts = _parts(matrix, dtype)
        self.backward_parts = _parts(transposed, dtype)

    def forward(self, x: Any, out: Any) -> Any:
        """A x."""
        return _multiply(self.forward_parts, x, out)

    def backward(self, g: Any, out: Any) -> Any:
        """Aᵀ g (of the training rows only, in the first link)."""
        return _multiply(self.backward_parts, g, out)


class Chain:
    """The matrices of one channel.

    Parameters
    ----------
    channel
        The channel.
    rows
        The nodes whose rows are needed, training nodes first.
    train
        How many of them are training nodes.
    dtype
        Of the computation.
    """

    def __init__(self, channel: Channel, rows: IntArray, train: int, dtype: Any) -> None:
        whole, self.used = _whole_chain(channel)
        self.width = channel.shape[1]
        first = whole[0][rows]
        matrices = [first, *whole[1:]]
        self.links = [Link(m, (first[:train] if i == 0 else m).T, dtype) for i, m in enumerate(matrices)]
        self.cost = sum(_cost(matrix) for matrix in matrices)

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        return int(self.links[0].shape[0])

    def forward(self, W: Any, buffers: list[Any]) -> Any:
        """A_1 ... A_m W."""
        for link, out in zip(reversed(self.links), reversed(buffers), strict=True):
            W = link.forward(W, out)
        return W

    def backward(self, G: Any, buffers: list[Any]) -> Any:
        """A_mᵀ ... A_1ᵀ G for the rows of training nodes."""
        for link, out in zip(self.links, buffers, strict=True):
            G = link.backward(G, out)
        return G

    def buffers(self, hidden: int, dtype: Any) -> tuple[list[Any], list[Any]]:
        """Room for what the two directions compute on the way."""
        return (
            [np.zeros((link.shape[0], hidden), dtype) for link in self.links],
            [np.zeros((link.shape[1], hidden), dtype) for link in self.links],
        )


def _whole_chain(channel: Channel) -> tuple[list[Any], IntArray]:
    """The chain for all nodes, and the columns of the input that are not all zero; made once a channel."""
    if channel not in _KNOWN:
        used = _used_columns(channel.input)
        _KNOWN[channel] = simplify([*_factors(channel), channel.input[:, used]]), used
    return _KNOWN[channel]


def simplify(matrices: list[Any]) -> list[Any]:
    """A product with neighbours multiplied out where that makes it cheaper to apply."""
    matrices = [csr_array(m) if issparse(m) else np.asarray(m) for m in matrices]
    merged = [_merge(left, right) for left, right in pairwise(matrices)]
    while merged:
        gains = [
            _cost(a) + _cost(b) - _cost(m) if m is not None else 0.0
            for (a, b), m in zip(pairwise(matrices), merged, strict=True)
        ]
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        matrices[best : best + 2] = [merged[best]]
        merged[best : best + 1] = []
        for i in (best - 1, best):  # only the neighbours of what was merged have to be looked at again
            if 0 <= i < len(merged):
                merged[i] = _merge(matrices[i], matrices[i + 1])
    return matrices


def _merge(left: Any, right: Any) -> Any:
    """The product of two matrices, or None where it surely is not worth its size."""
    together = _cost(left) + _cost(right)
    if min(left.shape[0] * right.shape[1] / _DENSE_GAIN, _multiplications(left, right) / 8) > together:
        return None
    return _prefer(left @ right)


def _multiplications(left: Any, right: Any) -> float:
    """How many multiplications a product takes; entries of it rarely come from more than a few of them."""
    columns = (
        np.bincount(left.indices, minlength=left.shape[1]) if issparse(left) else np.full(left.shape[1], left.shape[0])
    )
    rows = np.diff(right.indptr) if issparse(right) else np.full(right.shape[0], right.shape[1])
    return float(columns @ rows)


def _factors(channel: Channel) -> list[Any]:
    result: list[Any] = []
    for factor in channel.factors:
        if isinstance(factor, Matrix):
            result.append(factor.matrix)
        elif isinstance(factor, Projection):
            result.extend(_projection(factor.system, factor.scale))
        else:
            result.append(factor @ np.eye(factor.shape[1]))
    return result or [eye_array(channel.n, format="csr")]


def _projection(system: FrameletSystem, j: int) -> list[Any]:
    """F_j = Φ_(j+1)ᵀ (I − PᵀP) · Φ_(j+1), and F_0 = Φ_1ᵀ · Φ_1."""
    if j == 0:
        phi = system.scaling(1)
        return [phi.T.tocsr(), phi]
    fine, coarse = system.scaling(j + 1), system.scaling(j)
    # Φ_(j+1)ᵀ (I − PᵀP) with P = Φ_j Φ_(j+1)ᵀ, the weights of children in their parents
    weights = coarse @ fine.T
    middle = eye_array(fine.shape[0], format="csr") - weights.T @ weights
    return [csr_array(fine.T @ middle), fine]


def _prefer(matrix: Any) -> Any:
    """A sparse matrix as a dense one where that multiplies faster."""
    if issparse(matrix) and matrix.nnz * _DENSE_GAIN > matrix.shape[0] * matrix.shape[1]:
        return matrix.toarray()
    return matrix


def _cost(matrix: Any) -> float:
    return float(matrix.nnz if issparse(matrix) else matrix.size / _DENSE_GAIN)


def _used_columns(matrix: Any) -> IntArray:
    """Columns that are not all zero: the other weights never matter, and stay at zero."""
    if issparse(matrix):
        return np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    return np.flatnonzero((matrix != 0).any(axis=0))


def _parts(matrix: Any, dtype: Any) -> Any:
    if not issparse(matrix):
        return np.ascontiguousarray(matrix, dtype=dtype)
    sparse = csr_array(matrix)
    sparse.sort_indices()
    return sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data.astype(dtype)


def _multiply(parts: Any, x: Any, out: Any) -> Any:
    if isinstance(parts, tuple):
        from pegfan.training import _kernels

        _kernels.product(*parts, x, out)
        return out
    return np.matmul(parts, x, out=out)
