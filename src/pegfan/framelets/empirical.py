"""Empirical Bayes: how much to shrink numbers with noise, told from all of them together.

Let x = θ + σ ε with standard normal ε, and θ drawn from some distribution G that nobody knows. Among all functions of x
alone the posterior mean E[θ | x] has the least mean squared error. G is estimated by the likelihood of the x at hand,
without a shape given to it (J. Kiefer and J. Wolfowitz, Annals of Mathematical Statistics 27, 1956): on a grid, by the
EM algorithm. Where most θ are 0 the result is a threshold, where they are normal it is Wiener's factor, and it has no
parameter in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegfan._arrays import FloatArray

__all__ = ["shrink_levels", "shrink_values"]

_FAR = 64.0
"""In units of noise: what is larger stays as it is."""
_ROUNDS = 40
"""Of the EM algorithm; the posterior mean hardly moves after half of them."""


def _tables() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Edges and middles of bins, places of the prior, and the likelihood of both signs."""
    edges = np.concatenate([np.arange(0.0, 6.0, 0.1), 6.0 * 1.03 ** np.arange(0, 82)])
    middles = (edges[1:] + edges[:-1]) / 2
    places = np.concatenate([np.arange(0.0, 6.0, 0.5), 6.0 * 1.15 ** np.arange(0, 18)])
    same, other = (-0.5 * (middles[:, None] - sign * places) ** 2 for sign in (1.0, -1.0))
    largest = same.max(axis=1, keepdims=True)
    return edges, middles, places, np.exp(same - largest), np.exp(other - largest)


_EDGES, _MIDDLES, _PLACES, _SAME, _OTHER = _tables()


def shrink_levels(x: FloatArray, sigma: Any = 1.0) -> FloatArray:
    """The posterior means of coefficients, whose prior is symmetric around 0.

    Parameters
    ----------
    x
        Coefficients that belong together, such as those of one level.
    sigma
        The standard deviation of their noise: a number, or one for each.

    Examples
    --------
    Most are noise, and go; a few are not, and stay:

    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal(1000)
    >>> x[:20] += 8
    >>> shrunk = shrink_levels(x)
    >>> bool(np.abs(shrunk[20:]).max() < 3), bool(np.abs(shrunk[:20] - x[:20]).max() < 2)
    (True, True)
    """
    if not len(x):
        return x
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(sigma > 0, np.abs(x) / sigma, np.where(x == 0, 0.0, np.inf))
    near = size < _EDGES[-1]
    bins = np.searchsorted(_EDGES, size[near], side="right") - 1
    counts = np.bincount(bins, minlength=len(_MIDDLES)).astype(np.float64)
    rule = _rule(counts, float(np.count_nonzero(~near)))
    means = size.copy()
    means[near] = np.interp(size[near], np.r_[0.0, _MIDDLES], np.r_[0.0, rule])
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(near, np.sign(x) * means * sigma, x))


def _rule(counts: FloatArray, far: float) -> FloatArray:
    """E[θ | x] at the middles of the bins, from how many of the x are in each of them."""
    seen = np.flatnonzero(counts)
    if not len(seen):
        return _MIDDLES
    likelihood, count = (_SAME + _OTHER)[seen], counts[seen]
    prior = np.full(len(_PLACES), 0.5 / (len(_PLACES) - 1))
    prior[0] = 0.5
    total = count.sum() + far
    for _ in range(_ROUNDS):
        prior = prior * ((count / (likelihood @ prior)) @ likelihood) / total
        prior[-1] += far / total
    same, other = _SAME * prior, _OTHER * prior
    return np.asarray(((same - other) @ _PLACES) / np.maximum((same + other).sum(axis=1), 1e-300))


def shrink_values(y: FloatArray, sigma: float) -> FloatArray:
    """The posterior means of values whose prior may be anything: a few classes, two heaps, a slope.

    Examples
    --------
    Ones and zeros in little noise become ones and zeros:

    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> clean = draw.integers(0, 2, 500).astype(float)
    >>> shrunk = shrink_values(clean + 0.2 * draw.standard_normal(500), 0.2)
    >>> bool(np.abs(shrunk - clean).mean() < 0.05)
    True
    """
    low, high = float(y.min()), float(y.max())
    if not sigma > 0 or low == high:
        return y
    width = (high - low) / sigma
    places = np.linspace(low, high, int(np.clip(2 * width + 1, 10, 400)))
    edges = np.linspace(low, high, int(np.clip(10 * width, 50, 4000)) + 1)
    bins = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    seen = np.flatnonzero(counts)
    middles = ((edges[1:] + edges[:-1]) / 2)[seen]
    likelihood = np.exp(-0.5 * ((middles[:, None] - places) / sigma) ** 2)
    count, prior = counts[seen], np.full(len(places), 1.0 / len(places))
    for _ in range(2 * _ROUNDS):
        prior = prior * ((count / np.maximum(likelihood @ prior, 1e-300)) @ likelihood) / len(y)
    means = (likelihood * prior) @ places / np.maximum(likelihood @ prior, 1e-300)
    return np.asarray(np.interp(y, middles, means))
