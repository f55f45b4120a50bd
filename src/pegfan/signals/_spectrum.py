"""The smoothest vectors on a graph: the lowest eigenvectors of the Laplacian, the same for any numbering."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from pegfan._arrays import FloatArray
from pegfan.graph import Graph
from pegfan.signals._bank import laplacian
from pegfan.signals._ground import Ground
from pegfan.trees import canonical_order

__all__ = ["bound", "lowest", "modes"]

_ALIKE = 1e-9
"""Eigenvalues that are nearer to each other, as a share of the largest possible one, count as one."""


def drawn(graph: Graph, columns: int, seed: int) -> FloatArray:
    """Normal numbers by canonical order, so that what is made of them does not depend on the numbering."""
    numbers = np.empty((graph.n, columns))
    numbers[canonical_order(graph).order] = np.random.default_rng(seed).standard_normal((graph.n, columns))
    return numbers


def lowest(ground: Ground, count: int) -> tuple[FloatArray, FloatArray]:
    """About the `count` lowest eigenvalues and vectors, by subspace iteration with Chebyshev's polynomials.

    What they span is nearly invariant, and that is all that a regression on them needs.
    """
    return _once(ground, ("lowest", count), lambda: _lowest(ground, count))


def modes(ground: Ground, count: int) -> tuple[FloatArray, FloatArray]:
    """The `count` lowest eigenvalues and vectors to rounding; where several vectors would do, always the same ones.

    Inside every eigenspace V the vectors are those that Gram and Schmidt make of V Vᵀ R, with numbers R that go by the
    canonical order: that V has no preferred basis and vectors no sign has no part in it.
    """
    return _once(ground, ("modes", count), lambda: _modes(ground, count))


Pair = tuple[FloatArray, FloatArray]

_made: WeakKeyDictionary[Graph, dict[tuple[str, int], Pair]] = WeakKeyDictionary()


def _once(ground: Ground, key: tuple[str, int], make: Callable[[], Pair]) -> Pair:
    known = _made.setdefault(ground.graph, {})
    if key not in known:
        known[key] = make()
    return known[key]


def bound(L: csr_array, ground: Ground) -> float:
    """An upper bound of the spectrum that the numbering has no part in (W. Anderson, T. Morley 1985)."""
    low, high = ground.ends
    degrees = L.diagonal()
    return float((degrees[low] + degrees[high]).max(initial=0.0)) or 1.0


def _lowest(ground: Ground, count: int) -> tuple[FloatArray, FloatArray]:
    n = ground.n
    L = laplacian(ground.weights)
    if n <= 4 * count or n <= 500:
        values, vectors = eigh(L.toarray(), subset_by_index=(0, min(count, n) - 1))
        return np.maximum(values, 0.0), vectors
    top = bound(L, ground)
    X = drawn(ground.graph, count + count // 4, 1)
    degree, rounds = (60, 3) if n <= 20_000 else (60, 2)
    cut = top / 4.0
    for turn in range(rounds):
        middle, half = (top + cut) / 2.0, (top - cut) / 2.0
        before, now = X, (L @ X - middle * X) / half
        for k in range(2, degree + 1):
            before, now = now, (2.0 / half) * (L @ now - middle * now) - before
            if k % 10 == 0:  # they grow by as many orders of magnitude as one lets them
                size = np.abs(now).max(axis=0)
                before, now = before / size, now / size
        Q = np.linalg.qr(now)[0]
        values, turned = np.linalg.eigh(Q.T @ (L @ Q))
        X = Q @ turned
        cut = max(float(values[-1]), 1e-6 * top) if turn else max(float(values[len(values) // 2]), 1e-6 * top)
    return np.maximum(values[:count], 0.0), np.ascontiguousarray(X[:, :count])


def _modes(ground: Ground, count: int) -> tuple[FloatArray, FloatArray]:
    L = laplacian(ground.weights)
    values, vectors = eigh(L.toarray(), subset_by_index=(0, count - 1))
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > _ALIKE * bound(L, ground))
    ends = np.append(starts[1:], count)
    R = drawn(ground.graph, int((ends - starts).max()), 2)
    for start, end in zip(starts, ends, strict=True):
        V = vectors[:, start:end]
        Q, triangle = np.linalg.qr(V.T @ R[:, : end - start])
        vectors[:, start:end] = V @ (Q * np.where(np.diag(triangle) < 0, -1.0, 1.0))
    return np.maximum(values, 0.0), vectors
