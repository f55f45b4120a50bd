"""How much noise a signal has, told from the signal."""

from __future__ import annotations

import numpy as np

from pegfan._arrays import FloatArray
from pegfan.signals._ground import Ground

__all__ = ["NOISES", "count_of", "first_guess", "local_noise", "of_counts", "spread"]

NOISES = ("normal", "varying", "heavy", "counts")

_MAD = 0.6744897501960817  # median of |N(0, 1)|
_LESS = 2.7
"""A median of sizes says as much about σ as the mean square of so many times fewer numbers."""


def spread(x: FloatArray) -> float:
    """The standard deviation of normal numbers around 0, by the median of their sizes: outliers hardly move it."""
    return float(np.median(np.abs(x))) / _MAD if len(x) else 0.0


def first_guess(ground: Ground, y: FloatArray) -> float:
    """The standard deviation of white noise: the least of several estimates, each of which a signal can only enlarge.

    Differences along edges, differences of nodes to the mean of their neighbours, the width of heaps where values are
    few (labels, steps), and bands of high frequencies. As the least of many is too small by chance, one that is told
    from few numbers must be smaller by more than chance, and half of that is added to it. With gaps (NaN), the first
    and the third of them.
    """
    low, high = ground.ends
    seen = y[~np.isnan(y)]
    n = len(seen)
    found = [(_width(seen), n / _LESS)]
    along = (y[low] - y[high]) / np.sqrt(2.0)
    along = along[~np.isnan(along)]
    if len(along):
        found.append((spread(along), n / _LESS))
    if n == len(y):
        found += ground.bank.noise(y)
        if len(low):
            found.append((spread(ground.differences(y)[ground.degrees > 0]), n / _LESS))
    chance = [1.0 / np.sqrt(2.0 * numbers) for _, numbers in found]
    best = int(np.argmin([told * (1.0 + by) for (told, _), by in zip(found, chance, strict=True)]))
    return float(found[best][0] * (1.0 + 0.5 * chance[best]))


def _width(y: FloatArray, most: int = 10, rounds: int = 40) -> float:
    """σ of a mixture of at most so many normal heaps of one width; how many is chosen by Schwarz's criterion."""
    y = np.sort(y)
    if len(y) > 4000:
        y = y[np.linspace(0, len(y) - 1, 4000).astype(np.int64)]
    n, least = len(y), 1e-12 * float(np.var(y)) + 1e-300
    best, found = np.inf, 0.0
    for k in range(1, min(most, n) + 1):
        centres = np.quantile(y, (np.arange(k) + 0.5) / k)
        for _ in range(10):
            nearest = np.abs(y[:, None] - centres).argmin(axis=1)
            sizes = np.bincount(nearest, minlength=k)
            centres = np.where(sizes, np.bincount(nearest, y, minlength=k) / np.maximum(sizes, 1), centres)
        shares, variance = (sizes + 1e-3) / n, float(np.mean((y - centres[nearest]) ** 2)) + least
        for _ in range(rounds):
            exponents = np.log(shares) - 0.5 * (y[:, None] - centres) ** 2 / variance
            largest = exponents.max(axis=1, keepdims=True)
            parts = np.exp(exponents - largest)
            whole = parts.sum(axis=1, keepdims=True)
            parts /= whole
            sizes = parts.sum(axis=0) + 1e-12
            shares, centres = sizes / n, y @ parts / sizes
            variance = float(np.sum(parts * (y[:, None] - centres) ** 2)) / n + least
        likelihood = float(np.sum(largest + np.log(whole))) - 0.5 * n * np.log(variance)
        if -2.0 * likelihood + 2 * k * np.log(n) < best:
            best, found = -2.0 * likelihood + 2 * k * np.log(n), float(np.sqrt(variance))
    return found


def local_noise(ground: Ground, residual: FloatArray, freedom: FloatArray | float = 0.0) -> FloatArray:
    """The standard deviation at every node, where noise is stronger in some places than in others.

    Squares of residuals, of which a few large ones count less, as means over about thirty nodes around, over the share
    of the noise that an estimate of such `freedom` leaves in its residual there.
    """
    squares = residual**2
    usual = float(np.median(squares)) / _MAD**2
    squares = np.minimum(squares, 9.0 * ground.around(squares))
    left = np.maximum(ground.around(np.ones(len(residual)) - freedom), 0.3)
    return np.asarray(np.sqrt(np.maximum(ground.around(squares) / left, 1e-4 * usual)))


def count_of(y: FloatArray) -> None:
    """Check counts."""
    seen = y[~np.isnan(y)]
    wrong = (seen < 0) | (seen != np.floor(seen))
    if wrong.any():
        raise ValueError(f'noise="counts" is for whole numbers from 0, and the signal holds {seen[wrong][0]:g}')


def of_counts(z: FloatArray) -> FloatArray:
    """The expected count whose 2 √(count + 3/8) is z on average.

    F. J. Anscombe, Biometrika 35 (1948), made counts have noise of σ = 1; that a mean of roots is not the root of a
    mean is put right by the closed form of M. Mäkitalo and A. Foi, IEEE Transactions on Image Processing 20 (2011).
    """
    z = np.maximum(z, 2.0 * np.sqrt(0.375))
    root = np.sqrt(1.5)
    return np.asarray(np.maximum(z**2 / 4 + root / (4 * z) - 11 / (8 * z**2) + 5 * root / (8 * z**3) - 0.125, 0.0))
