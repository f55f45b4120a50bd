"""What is made once per graph: symmetric weights, filters, trees, and the signs that probe."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from scipy.sparse import csr_array, eye_array, triu

from pegfan._arrays import FloatArray, IntArray
from pegfan.framelets.frames import FrameletFrame
from pegfan.graph import Graph
from pegfan.signals._bank import Bank, laplacian
from pegfan.trees import canonical_order

__all__ = ["KEPT", "Ground"]

KEPT = 4
"""How many graphs have what was made of them kept. A weak dictionary would keep all: what is made holds its graph."""
_LARGE = 100_000
"""Nodes beyond which filters are of a lower degree, so that a signal takes seconds and not minutes."""


class Ground:
    """A graph as denoising sees it.

    Attributes
    ----------
    weights
        Symmetric, without loops, with a mean degree of 1.
    ends
        The two nodes of every edge.
    """

    def __init__(self, graph: Graph, trees: int) -> None:
        self.graph, self.trees, self.n = graph, trees, graph.n
        weights = graph.adjacency
        if graph.directed:
            weights = (weights + weights.T) * 0.5
        pairs = triu(weights, 1).tocoo()
        kept = pairs.data > 0
        self.ends: tuple[IntArray, IntArray] = tuple(one[kept].astype(np.int64) for one in pairs.coords)
        values = pairs.data[kept].astype(np.float64)
        total = 2.0 * values.sum() / max(self.n, 1)
        self.values = values / total if total > 0 else values
        self.weights = self.matrix(self.values)
        self.adjacency = self.matrix(np.ones(len(values)))
        self.degrees = np.asarray(self.adjacency.sum(axis=1)).ravel()

    def matrix(self, values: FloatArray) -> csr_array:
        """Values on the edges as a symmetric matrix."""
        low, high = self.ends
        both = (np.concatenate([values] * 2), (np.concatenate([low, high]), np.concatenate([high, low])))
        return csr_array(both, shape=(self.n, self.n))

    def laplacian(self, values: FloatArray) -> csr_array:
        """The Laplacian of values on the edges."""
        return laplacian(self.matrix(values))

    def around(self, y: FloatArray) -> FloatArray:
        """Means over some thirty nodes around each: where a random walk is after 16 steps, half of them not taken."""
        degrees = np.maximum(self.degrees, 1.0)
        for _ in range(16):
            y = 0.5 * y + 0.5 * np.where(self.degrees > 0, (self.adjacency @ y) / degrees, y)
        return y

    def differences(self, y: FloatArray) -> FloatArray:
        """Nodes against the mean of their neighbours, scaled so that white noise keeps its σ; 0 without neighbours."""
        degrees = np.maximum(self.degrees, 1.0)
        around = np.where(self.degrees > 0, (self.adjacency @ y) / degrees, y)
        return np.asarray((y - around) / np.sqrt(1.0 + 1.0 / degrees))

    def medians(self, y: FloatArray) -> FloatArray:
        """The median of every node and its neighbours."""
        near = self.adjacency + eye_array(self.n, format="csr")
        rows = np.repeat(np.arange(self.n), np.diff(near.indptr))
        values = y[near.indices]
        values = values[np.lexsort((values, rows))]
        counts = np.diff(near.indptr)
        low = near.indptr[:-1] + (counts - 1) // 2
        return np.asarray((values[low] + values[near.indptr[:-1] + counts // 2]) / 2.0)

    @cached_property
    def signs(self) -> FloatArray:
        """Nine columns of ±1 that depend on the canonical order, so that results do not depend on the numbering."""
        drawn = np.random.default_rng(0).integers(0, 2, (self.n, 9)) * 2.0 - 1.0
        signs = np.empty_like(drawn)
        signs[canonical_order(self.graph).order] = drawn
        return signs

    @cached_property
    def bank(self) -> Bank:
        """Filters of the Laplacian."""
        degree, octaves = (200, 6.0) if self.n <= _LARGE else (64, 4.5)
        return Bank(self.weights, self.signs[:, 1:], degree, octaves)

    @cached_property
    def frame(self) -> FrameletFrame:
        """Framelets on several trees."""
        return FrameletFrame.of(self.graph, self.trees)

    @classmethod
    def of(cls, graph: Graph, trees: int) -> Ground:
        """The one of a graph, made once, as long as it is among the last few."""
        return _made(graph, trees)


@lru_cache(maxsize=KEPT)
def _made(graph: Graph, trees: int) -> Ground:
    return Ground(graph, trees)
