"""One level of a framelet system: its clusters, their p and B, and both as sparse matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_choice, shown
from pegfan.framelets.filters import FAMILIES, Family, Filters, tight_filters
from pegfan.trees import Hierarchy

SINGLE = Filters(np.ones(1), csr_array((0, 1)))
"""A cluster with one child hands its scaling vector down and has no framelet."""


@dataclass(eq=False)
class Level:
    """The clusters of level j and how they combine their children."""

    first: IntArray  # cluster c has the slots first[c] up to first[c + 1] of level j + 1 as children
    p: FloatArray  # the weight of every child in its parent's scaling vector
    bank: Sequence[Filters] = ()  # the distinct filters; none for the binary Haar family, where p says everything
    chosen: IntArray | None = None  # which of them each cluster has
    family: Family | None = None  # whose B every cluster has for its own p

    @property
    def pairs(self) -> bool:
        """Whether framelets are the pairs of `binary_haar`, so that compiled loops need p alone."""
        return self.chosen is None

    @property
    def n_scaling(self) -> int:
        """The number of scaling vectors: one per cluster."""
        return len(self.first) - 1

    @cached_property
    def n_children(self) -> IntArray:
        """L_Λ of every cluster."""
        return np.diff(self.first)

    @cached_property
    def n_framelets(self) -> IntArray:
        """M_Λ of every cluster."""
        if self.chosen is None:
            return self.n_children * (self.n_children - 1) // 2
        return np.array([filters.B.shape[0] for filters in self.bank], np.int64)[self.chosen]

    def nnz(self, sizes: IntArray) -> int:
        """The stored entries of Ψ_j, for children of the given sizes."""
        if self.chosen is None:  # a child is in L − 1 pairs
            return int((np.repeat(self.n_children - 1, self.n_children) * sizes).sum())
        return int(sizes[self.B.indices].sum())

    @cached_property
    def P(self) -> csr_array:
        """All p in one matrix: coefficients of children to those of their parents, N_j × N_(j+1)."""
        return csr_array((self.p, np.arange(len(self.p)), self.first), shape=(len(self.first) - 1, len(self.p)))

    @cached_property
    def B(self) -> csr_array:
        """All B in one matrix: coefficients of children to framelet coefficients, M_j × N_(j+1)."""
        return self._pair_matrix() if self.chosen is None else self._bank_matrix()

    def _pair_matrix(self) -> csr_array:
        left, right = self._pairs_of_children()
        values = np.column_stack([self.p[right], -self.p[left]]).ravel()
        columns = np.column_stack([left, right]).ravel()
        return csr_array((values, columns, 2 * np.arange(len(left) + 1)), shape=(len(left), len(self.p)))

    def _pairs_of_children(self) -> tuple[IntArray, IntArray]:
        child = np.arange(len(self.p))
        partners = np.repeat(self.first[1:], self.n_children) - child - 1
        left = np.repeat(child, partners)
        return left, np.arange(len(left)) - np.repeat(np.cumsum(partners) - partners - child - 1, partners)

    def _bank_matrix(self) -> csr_array:
        assert self.chosen is not None
        blocks = [filters.B for filters in self.bank]
        entries = np.array([block.nnz for block in blocks])[self.chosen]
        take = _ranges(starts([block.nnz for block in blocks])[self.chosen], entries)
        columns = np.concatenate([block.indices for block in blocks])[take] + np.repeat(self.first[:-1], entries)
        lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
        rows = _ranges(starts([block.shape[0] for block in blocks])[self.chosen], self.n_framelets)
        indptr = np.concatenate([[0], np.cumsum(lengths[rows])])
        values = np.concatenate([b.data for b in blocks])[take] if self.family is None else self._values(entries)
        return csr_array((values, columns, indptr), shape=(len(rows), len(self.p)))

    def _values(self, entries: IntArray) -> FloatArray:
        """The values of B where every cluster has its own p: all clusters of one L at a time."""
        assert self.family is not None
        values = np.empty(entries.sum())
        start = np.cumsum(entries) - entries
        for children in np.unique(self.n_children):
            at = np.flatnonzero(self.n_children == children)
            p = self.p[self.first[at][:, None] + np.arange(children)]
            block = self.family.entries(p)
            values[start[at][:, None] + np.arange(block.shape[1])] = block
        return values

    @cached_property
    def norms(self) -> FloatArray:
        """‖ψ‖ of every framelet: the norms of the rows of B, as scaling vectors are orthonormal."""
        return np.sqrt(self.variances(np.ones(len(self.p)))[1])

    def variances(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The variances of scaling and framelet coefficients, from those of the children, which are independent."""
        up = np.add.reduceat(self.p**2 * v, self.first[:-1])
        if self.pairs:  # B is not formed for this
            left, right = self._pairs_of_children()
            return up, self.p[right] ** 2 * v[left] + self.p[left] ** 2 * v[right]
        return up, csr_array((self.B.data**2, self.B.indices, self.B.indptr), shape=self.B.shape) @ v

    def bounds(self) -> tuple[float, float]:
        """Enclosure of the eigenvalues of p pᵀ + BᵀB over all clusters; both ends are 1 for tight filters."""
        if self.pairs:  # the pairs of a unit p give BᵀB = ‖p‖² I − p pᵀ exactly
            squares = np.add.reduceat(self.p**2, self.first[:-1])
            return float(squares.min()), float(squares.max())
        gram = (self.P.T @ self.P + self.B.T @ self.B).tocsr()
        diagonal = gram.diagonal()
        radius = np.asarray(abs(gram).sum(axis=1)).ravel() - np.abs(diagonal)  # Gershgorin's discs
        return float((diagonal - radius).min()), float((diagonal + radius).max())


def make_levels(tree: Hierarchy, filters: Any, weights: str) -> list[Level]:
    """The levels 1, ..., K−1 of a system, finest last; no loop over clusters, only over distinct filters."""
    check_choice(weights, "weights", ("equal", "size"))
    if isinstance(filters, str):
        if filters not in FAMILIES:
            raise ValueError(
                f"unknown filters {shown(filters)}; choose one of {', '.join(map(repr, FAMILIES))}, or pass "
                "a function of L or a table of (p, B)"
            )
    elif weights == "size":
        raise ValueError(f"weights='size' is for {', '.join(map(repr, FAMILIES))}; your own filters have their own p")
    elif not callable(filters) and not isinstance(filters, Mapping):
        raise TypeError(f"filters must be a name, a function of L or a table of (p, B), got {type(filters).__name__}")
    table = _FilterTable(tree, filters) if not isinstance(filters, str) else None
    return [_make_level(tree, j, filters, weights, table) for j in range(1, tree.K)]


def _make_level(tree: Hierarchy, j: int, filters: Any, weights: str, table: _FilterTable | None) -> Level:
    first = tree.first_child(j)
    children = np.diff(first)
    if table is not None:
        bank, chosen = table.choose(j, children)
        entries = np.array([len(f.p) for f in bank])
        take = _ranges(starts(entries)[chosen], children)
        return Level(first, np.concatenate([f.p for f in bank])[take], bank, chosen)
    if weights == "size":
        p = np.sqrt(tree.sizes(j + 1) / np.repeat(tree.sizes(j), children))
    else:
        p = np.repeat(1.0 / np.sqrt(children), children)
    family = FAMILIES[filters]
    if family.pairs:
        return Level(first, p)
    distinct, chosen = np.unique(children, return_inverse=True)
    bank = [family.filters(int(count)) for count in distinct]
    return Level(first, p, bank, chosen, family if weights == "size" else None)


class _FilterTable:
    """Users' filters: by number of children L, and by index vector Λ for single clusters."""

    def __init__(self, tree: Hierarchy, filters: Any) -> None:
        self.tree, self.filters = tree, filters
        self.made: dict[Any, Filters] = {1: SINGLE}
        self.named: dict[int, list[tuple[int, Any]]] = {}
        for key in filters if isinstance(filters, Mapping) else ():
            if isinstance(key, tuple):
                cluster = tree.cluster(key)
                self.named.setdefault(cluster.level, []).append((cluster.slot, key))
            elif isinstance(key, bool) or not isinstance(key, (int, np.integer)):
                raise TypeError(f"filters are keyed by a number of children or an index vector, not {shown(key)}")

    def choose(self, level: int, children: IntArray) -> tuple[list[Filters], IntArray]:
        """The distinct filters of a level, and which one each cluster takes."""
        distinct, chosen = np.unique(children, return_inverse=True)
        bank: list[Filters | None] = [None] * len(distinct)
        own: list[Filters] = []
        for slot, key in self.named.get(level, ()):
            chosen[slot] = len(distinct) + len(own)
            own.append(self._make(key, int(children[slot]), f"cluster {key}"))
        for i in np.unique(chosen[chosen < len(distinct)]):
            count = int(distinct[i])
            bank[i] = self._make(count, count, f"clusters with {count} children")
        return [filters or SINGLE for filters in bank] + own, chosen

    def _make(self, key: Any, children: int, where: str) -> Filters:
        if key not in self.made:
            try:
                pair = self.filters[key] if isinstance(self.filters, Mapping) else self.filters(key)
            except (KeyError, IndexError) as error:
                raise ValueError(f"no filters for {where}: add an entry {key} to the table") from error
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"the filters of {where} must be a pair (p, B), got {type(pair).__name__}")
            self.made[key] = tight_filters(pair[0], pair[1], where)
        if len(self.made[key].p) != children:
            raise ValueError(f"the filters of {where} have {len(self.made[key].p)} weights; {children} are needed")
        return self.made[key]


def starts(lengths: Any) -> IntArray:
    """Where parts of these lengths start, one after the other."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))[:-1]])


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenated ranges [start, start + length)."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
