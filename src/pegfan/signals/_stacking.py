"""Several estimates become one: the mixture of least estimated risk."""

from __future__ import annotations

import numpy as np

from pegfan._arrays import FloatArray

__all__ = ["mixture"]


def mixture(residuals: FloatArray, price: FloatArray, rounds: int = 5000) -> FloatArray:
    """The w ≥ 0 with Σ w = 1 of least ‖R w‖² + priceᵀw, by pairwise steps from the best single one.

    Parameters
    ----------
    residuals
        R: a column y − f_k per estimate.
    price
        What is added for each: 2 Σ_i σ_i² ∂f_k,i/∂y_i makes it Stein's unbiased estimate of the risk, which is
        quadratic in w; 0 where the residuals are those of nodes that an estimate has not seen.

    Examples
    --------
    >>> mixture(np.array([[1.0, -1.0], [0.0, 0.0]]), np.zeros(2)).round(6)
    array([0.5, 0.5])
    """
    gram = residuals.T @ residuals
    w = np.zeros(len(price))
    w[np.argmin(np.diag(gram) + price)] = 1.0
    scale = float(np.abs(gram).max() + np.abs(price).max()) or 1.0
    for _ in range(rounds):
        slope = 2.0 * gram @ w + price
        used = np.flatnonzero(w)
        to, off = int(slope.argmin()), int(used[slope[used].argmax()])
        if slope[off] - slope[to] <= 1e-10 * scale:
            break
        bend = 2.0 * (gram[to, to] + gram[off, off] - 2.0 * gram[to, off])
        step = w[off] if bend <= 0 else min(w[off], (slope[off] - slope[to]) / bend)
        w[to] += step
        w[off] = w[off] - step if step < w[off] else 0.0
    return w
