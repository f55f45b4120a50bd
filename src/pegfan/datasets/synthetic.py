"""The paper's synthetic graphs: classes that differ in whom they are joined to, and less so as γ grows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_integer, shown
from pegfan._limits import check_memory
from pegfan.datasets.splits import random_splits
from pegfan.graph import Graph

D4 = np.array(
    [
        [0.1, 0.4, 0.0, 0.5],
        [0.5, 0.0, 0.5, 0.0],
        [0.2, 0.0, 0.5, 0.3],
        [0.25, 0.25, 0.25, 0.25],
    ]
)
"""The neighbourhood class distributions of the paper: row c holds D_c."""

_ENUMERABLE = 20_000_000  # pairs that are listed one by one when most of them are wanted


def synthetic(
    gamma: float,
    *,
    n: int = 3000,
    n_edges: int = 45_000,
    distributions: ArrayLike = D4,
    n_features: int = 700,
    separation: float = 6.0,
    splits: int = 1,
    seed: int = 0,
) -> Graph:
    """Make a graph whose nodes choose neighbours by class, as in the paper's appendix.

    Labels are uniform. Each edge starts at a uniform node i; the class of its other end is uniform with
    probability γ and drawn from D_(y_i) otherwise, the end itself is uniform in that class. Edges are undirected,
    distinct, and may be self loops, as in the graphs that the authors stored. The j-th feature of a node of class c
    is separation · (−0.75 + 0.5 c) + ξ with standard normal ξ.

    Parameters
    ----------
    gamma
        Between 0 (classes differ as much as D lets them) and 1 (neighbours of all classes are alike).
    n, n_edges
        Numbers of nodes and of undirected edges.
    distributions
        k×k matrix D of k classes, rows summing to one.
    n_features
        The number of features; 0 makes a graph without.
    separation
        6 for Table I, 1 for the harder Table II. (The caption of Table I and this formula agree; the appendix
        prints another offset.)
    splits
        How many random 48/32/20 splits.
    seed
        Labels, features and splits depend on it, n and the number of classes and not on γ, so that graphs of
        different γ differ in their edges alone.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n_features=10)
    >>> graph
    Graph(n=3000, edges=45000, undirected, features=10, classes=4, splits=1)
    >>> pf.measures.ccns(graph)[0].round(1)
    array([0.9, 0.4, 0.7, 0.6])
    """
    D = _check_distributions(distributions)
    gamma = _check_number(gamma, "gamma", 0.0, 1.0)
    _check_number(separation, "separation", -1e6, 1e6)
    check_integer(n, "n", least=1)
    counts = {"n_edges": n_edges, "n_features": n_features, "splits": splits, "seed": seed}
    for name, value in counts.items():
        check_integer(value, name, least=0)
    check_memory(8.0 * n + 32.0 * n_edges + 4.0 * n * n_features, "such a graph")
    of_labels, of_features, of_edges = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))

    labels = of_labels.integers(len(D), size=n)
    X = None
    if n_features:
        X = of_features.standard_normal((n, n_features), dtype=np.float32)
        X += (separation * (-0.75 + 0.5 * labels)).astype(np.float32)[:, None]
    return Graph.from_edges(
        _draw_edges(labels, gamma / len(D) + (1 - gamma) * D, n_edges, of_edges),
        n=n,
        features=X,
        labels=labels,
        class_names=np.arange(len(D)),
        splits=random_splits(labels, k=splits, seed=seed),
    )


def _draw_edges(labels: IntArray, D: FloatArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Distinct unordered pairs, in the law of drawing one after another and refusing repetitions."""
    n, sizes = len(labels), np.bincount(labels, minlength=len(D))
    D = D * (sizes > 0)
    with np.errstate(invalid="ignore"):
        D = np.nan_to_num(D / D.sum(axis=1, keepdims=True))  # an empty class cannot be chosen
    possible = _possible_pairs(sizes, D)
    if wanted > possible:
        raise ValueError(
            f"{wanted:,} edges are asked for, but {n:,} nodes with these distributions and gamma have only "
            f"{possible:,} pairs to join: ask for fewer edges or more nodes"
        )
    # Repetitions are rare if few pairs are wanted; if nearly all are, the last ones would take forever to be drawn.
    draw = _draw_by_race if possible <= _ENUMERABLE and 4 * wanted > possible else _draw_by_rejection
    keys = draw(labels, D, wanted, rng)
    return np.column_stack(np.divmod(keys, n))


def _possible_pairs(sizes: IntArray, D: FloatArray) -> int:
    allowed = (D > 0) & (sizes[:, None] > 0)
    allowed |= allowed.T
    pairs = np.outer(sizes, sizes).astype(object)
    within = sum(int(s) * (int(s) + 1) // 2 for s, ok in zip(sizes, allowed.diagonal(), strict=True) if ok)
    return int(sum(pairs[np.triu(allowed, 1)], 0)) + within


def _draw_by_rejection(labels: IntArray, D: FloatArray, wanted: int, rng: np.random.Generator) -> IntArray:
    n, sizes = len(labels), np.bincount(labels, minlength=len(D))
    members, first = np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
    steps = np.cumsum(D, axis=1)
    steps[steps >= steps[:, -1:]] = np.inf  # rounding must not point past the last class that has weight
    able = np.flatnonzero(D.sum(axis=1)[labels] > 0)  # nodes that have a neighbour to choose
    keys = np.empty(0, np.int64)
    while len(keys) < wanted:
        count = int(1.05 * (wanted - len(keys))) + 64
        i = able[rng.integers(len(able), size=count)]
        uniform = rng.random(count)
        c = np.zeros(count, np.int64)
        for k in range(len(D) - 1):  # one comparison per class: no (count, k) table of probabilities
            c += uniform >= steps[labels[i], k]
        j = members[first[c] + (rng.random(count) * sizes[c]).astype(np.int64)]
        keys = np.concatenate([keys, np.minimum(i, j) * n + np.maximum(i, j)])
        _, earliest = np.unique(keys, return_index=True)
        keys = keys[np.sort(earliest)]
    return keys[:wanted]


def _draw_by_race(labels: IntArray, D: FloatArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """The first arrivals of independent exponential clocks, one per pair, at the rates at which pairs are drawn."""
    n, sizes = len(labels), np.bincount(labels, minlength=len(D))
    i, j = np.triu_indices(n)
    a, b = labels[i], labels[j]
    rate = D[a, b] / sizes[b] + np.where(i == j, 0.0, D[b, a] / sizes[a])  # a pair is drawn from either end
    pairs = np.flatnonzero(rate > 0)
    with np.errstate(over="ignore"):  # what is all but impossible arrives at infinity
        arrival = rng.exponential(size=len(pairs)) / rate[pairs]
    chosen = pairs[np.argsort(arrival, kind="stable")[:wanted]]
    return i[chosen] * n + j[chosen]


def _check_distributions(distributions: ArrayLike) -> FloatArray:
    try:
        D = np.asarray(distributions, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(f"distributions must be a square matrix of numbers: {error}") from error
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not len(D):
        raise ValueError(f"distributions must be a square matrix, one row per class; got shape {D.shape}")
    if not np.isfinite(D).all() or (D < 0).any():
        raise ValueError("distributions must be finite and not negative")
    sums = D.sum(axis=1)
    if np.abs(sums - 1).max() > 1e-9:
        row = int(np.abs(sums - 1).argmax())
        raise ValueError(f"row {row} of distributions sums to {sums[row]:g}; every row must sum to 1")
    return D


def _check_number(value: Any, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value}")
    return float(value)
