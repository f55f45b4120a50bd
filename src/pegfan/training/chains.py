"""A channel as a chain of small matrices: H = A_1 A_2 ... A_m W for the rows that training looks at.

P(X W) = (P X) W: with sparse X and few hidden units the operator acts on the weights' columns, never on features.
Which neighbours in the chain are multiplied out beforehand is decided by counting what a product costs.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack, issparse, vstack

from pegfan._arrays import IntArray
from pegfan._hashing import digest_of
from pegfan.channels import Channel
from pegfan.measures import equal_rows

_DENSE_GAIN = 2.0  # how much faster an entry of a dense matrix is multiplied than one of a sparse matrix
_DENSE_FROM = 16  # rows and columns from which on this is so
_MOST_ROWS, _MOST_ENTRIES = 32_768, 8_000_000
"""From so many rows and entries on, products are left as they are: to try which are cheaper takes minutes."""
_PER_ROW = 0.75  # what it costs to begin a row or a column of a matrix, in entries


class Stored:
    """A matrix as the loops read it: row pointers, columns and entries; of a dense one only the entries."""

    def __init__(self, matrix: Any) -> None:
        self.shape = matrix.shape
        self.dense = not issparse(matrix)
        if self.dense:
            self.pointers, self.indices = np.zeros(0, np.int64), np.zeros(0, np.int32)
            self.data = np.ascontiguousarray(matrix, np.float32).reshape(-1)
            return
        sparse = csr_array(matrix)
        sparse.sort_indices()
        self.pointers, self.indices = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32)
        self.data = sparse.data.astype(np.float32)

    @cached_property
    def digest(self) -> str:
        """Equal for equal matrices, so that channels can share them."""
        return digest_of(f"{self.dense} {self.shape}", self.pointers, self.indices, self.data)


class Chain:
    """The matrices of a channel for all nodes, and the columns of its input that are not all zero; made once."""

    def __init__(self, channel: Channel) -> None:
        matrices: list[Any] = [csr_array(m) if issparse(m) else np.asarray(m) for m in _product(channel)]
        if channel.n < _MOST_ROWS or sum(int(m.size) for m in matrices) < _MOST_ENTRIES:
            matrices = simplify(matrices)
        self.used = _used_columns(matrices[-1])
        self.matrices = [*matrices[:-1], matrices[-1][:, self.used]]
        self._later: tuple[list[Stored], list[Stored]] | None = None

    @classmethod
    def of(cls, channel: Channel) -> Chain:
        """That of a channel, which keeps it."""
        chain: Chain = channel.kept.get("chain") or channel.kept.setdefault("chain", cls(channel))
        return chain

    def links(self, rows: IntArray, train: int) -> tuple[list[Stored], list[Stored]]:
        """What products with W go through for some rows, training nodes first, and those with gradients back to W.

        The first are A_m, ..., A_1; the others are A_1ᵀ, ..., A_mᵀ, with the columns of training nodes only in A_1ᵀ.
        """
        if self._later is None:
            later = self.matrices[1:]
            self._later = [Stored(m) for m in reversed(later)], [Stored(m.T) for m in later]
        first = self.matrices[0][rows]
        return [*self._later[0], Stored(first)], [Stored(first[:train].T), *self._later[1]]


def simplify(matrices: list[Any]) -> list[Any]:
    """A product of cheaper matrices: repeated rows taken out, and neighbours multiplied out where that pays."""
    matrices = [part for m in matrices for part in _distinct(csr_array(m) if issparse(m) else np.asarray(m))]
    matrices = _pruned(matrices)
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
    return _pruned(matrices)


def _pruned(matrices: list[Any]) -> list[Any]:
    """The same product without what meets only zeros: nodes that no edge leads to, or that have no features."""
    matrices = list(matrices)
    for k in [*range(len(matrices) - 1), *reversed(range(len(matrices) - 1))]:
        left, right = matrices[k : k + 2]
        kept = np.intersect1d(_used_columns(left), _used_columns(right.T.tocsr() if issparse(right) else right.T))
        if 0 < len(kept) < left.shape[1]:
            matrices[k : k + 2] = left[:, kept], right[kept]
    return matrices


def _distinct(matrix: Any) -> list[Any]:
    """M as E U, where U has every row of M once up to a factor, if that saves a fifth of the entries; else M.

    Nodes with the same neighbours have rows of S that are multiples of each other: in chameleon 1449 of 2277. Those of
    S̃ have an entry of their own beside that. It is S̃ = D + R with a diagonal D, and R may be E U; then S̃ is E beside
    the unit matrix times U on top of D.
    """
    if not issparse(matrix) or not matrix.nnz:
        return [matrix]
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()  # a copy: the matrix is the user's, and may be read-only
    shared = _shared(matrix)
    if shared is not None:
        return shared
    n, own = matrix.shape[0], matrix.diagonal()
    if matrix.shape[0] != matrix.shape[1] or np.count_nonzero(own) < n / 2:
        return [matrix]
    rest = csr_array(matrix - diags_array(own))
    rest.eliminate_zeros()
    parts = _shared(rest, more=2 * n)
    if parts is None:
        return [matrix]
    spread, kept = parts
    return [
        csr_array(hstack([spread, eye_array(n)], format="csr")),
        csr_array(vstack([kept, diags_array(own)], format="csr")),
    ]


def _shared(matrix: Any, more: int = 0) -> list[Any] | None:
    """M as E U, or None where that does not save a fifth of the entries, and `more`."""
    if not matrix.nnz:
        return None
    sizes = np.diff(matrix.indptr)
    filled = sizes > 0
    owner = np.repeat(np.arange(len(sizes)), sizes)
    lead = np.ones(len(sizes))
    lead[filled] = matrix.data[matrix.indptr[:-1][filled]]
    if (lead == 0).any():
        return None
    scaled = matrix.data / lead[owner]
    rounded = csr_array((np.round(scaled * 2.0**20), matrix.indices, matrix.indptr), shape=matrix.shape)
    _, first, place = np.unique(equal_rows(rounded), return_index=True, return_inverse=True)
    if matrix.nnz - sizes[first].sum() < 0.2 * matrix.nnz + len(sizes) + more:
        return None
    shown = np.where(sizes[first[place]] == sizes, first[place], np.arange(len(sizes)))
    mine, theirs = np.arange(matrix.nnz), np.arange(matrix.nnz) + (matrix.indptr[shown] - matrix.indptr[:-1])[owner]
    same = matrix.indices[mine] == matrix.indices[theirs]
    same &= np.abs(scaled[mine] - scaled[theirs]) <= 1e-12 * np.abs(scaled[mine])
    alone = np.zeros(len(sizes), bool)
    alone[owner[~same]] = True  # values are near but not the same, or hashes collided
    shown[alone] = np.flatnonzero(alone)
    kept, column = np.unique(shown, return_inverse=True)
    spread = csr_array((lead / lead[shown], column, np.arange(len(sizes) + 1)), shape=(len(sizes), len(kept)))
    return [spread, matrix[kept]]


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


def _product(channel: Channel) -> list[Any]:
    """Matrices whose product the channel is.

    An operator that knows only its product acts on what stands to its right, once: its n² entries are never formed.
    """
    left: list[Any] = []
    right = channel.signal
    for factor in reversed(channel.factors):
        matrices = factor.matrices()
        if matrices is not None:
            left = [*matrices, *left]
            continue
        for matrix in reversed(left):
            right = matrix @ right
        left, right = [], factor @ right
    return [*(left or [eye_array(channel.n, format="csr")]), right]


def _prefer(matrix: Any) -> Any:
    """A sparse matrix as a dense one where that multiplies faster."""
    rows, columns = matrix.shape
    if min(rows, columns) >= _DENSE_FROM:
        dense = issparse(matrix) and matrix.nnz * _DENSE_GAIN > rows * columns
        return matrix.toarray() if dense else matrix
    return csr_array(matrix)


def _cost(matrix: Any) -> float:
    rows, columns = matrix.shape
    return float(_PER_ROW * (rows + columns) + (matrix.nnz if issparse(matrix) else matrix.size / _DENSE_GAIN))


def _used_columns(matrix: Any) -> IntArray:
    """Columns that are not all zero: the other weights never matter, and stay at zero."""
    if issparse(matrix):
        return np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    return np.flatnonzero((matrix != 0).any(axis=0))
