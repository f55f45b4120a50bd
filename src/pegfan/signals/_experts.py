"""Estimates of a clean signal, each at home with another kind of signal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, diags_array

from pegfan._arrays import FloatArray
from pegfan.framelets.empirical import shrink_levels, shrink_values
from pegfan.framelets.frames import FrameletFrame
from pegfan.signals._ground import Ground
from pegfan.signals._stacking import mixture

__all__ = ["Experts", "shrunk"]

_GAMMAS = (0.5, 2.0)
"""What jumps cost, in units of σ."""
_STEPS = 100
_TAUS = (0.25, 1.0, 4.0, 16.0, 64.0)


def shrunk(frame: FrameletFrame, table: FloatArray, noise: FloatArray) -> FloatArray:
    """Signals in columns without what is taken for noise: by empirical Bayes, scale by scale over trees and columns."""
    c = frame.decompose(table)
    for places in frame.groups:
        sizes = np.repeat(noise[places], table.shape[1])
        c[places] = shrink_levels(c[places].ravel(), sizes).reshape(-1, table.shape[1])
    return np.asarray(frame.reconstruct(c))


class Experts:
    """All estimates for a graph and a noise.

    Parameters
    ----------
    ground
        The graph.
    sigma
        The standard deviation of the noise at every node.
    """

    def __init__(self, ground: Ground, sigma: FloatArray) -> None:
        self.ground, self.sigma, self.variance = ground, sigma, sigma**2
        self.alike = np.ptp(sigma) == 0
        self.noise = ground.frame.noise(float(sigma[0]) if self.alike else sigma)
        mean = float(np.mean(self.variance))
        self.shares = mean / np.maximum(self.variance, 1e-6 * mean)  # a node without noise counts much, not infinitely

    def estimates(self, y: FloatArray) -> dict[str, FloatArray]:
        """Estimates by name."""
        spectrum = self.ground.bank.fit(y, self.variance)
        found: dict[str, FloatArray] = {"smooth": self.smooth(y), "spectrum": spectrum, "trees": self.pieces(y)}
        if self.alike:
            found["values"] = shrink_values(y, float(self.sigma[0]))
        pilot = self.solve(self.ground.bank.L, 10.0, y, y)
        found["smooth + trees"] = self.apart(y, pilot, self.pieces, 3)
        found["smooth + spikes"] = self.apart(y, pilot, self.spikes, 4)
        once = self.along_edges(y, found["smooth + trees"], 1.0)
        found["edges"] = once
        found["edges again"] = self.along_edges(y, once, 0.7)
        for gamma in _GAMMAS if len(self.ground.values) else ():
            found[f"few jumps {gamma:g}"] = self.few_jumps(y, gamma)
        return found

    def smooth(self, y: FloatArray) -> FloatArray:
        """A filter of the Laplacian that weakens high frequencies more than low ones."""
        return self.ground.bank.smooth(y, self.variance)

    def pieces(self, y: FloatArray) -> FloatArray:
        """Framelets on many trees."""
        return shrunk(self.ground.frame, y[:, None], self.noise)[:, 0]

    def spikes(self, y: FloatArray) -> FloatArray:
        """A few nodes that stand out."""
        return shrink_levels(y, self.sigma)

    def apart(
        self, y: FloatArray, smooth: FloatArray, rest: Callable[[FloatArray], FloatArray], rounds: int
    ) -> FloatArray:
        """A smooth part and a rest that something else describes, in turns (backfitting)."""
        for _ in range(rounds):
            smooth = self.smooth(y - rest(y - smooth))
        return smooth + rest(y - smooth)

    def along_edges(self, y: FloatArray, pilot: FloatArray, width: float) -> FloatArray:
        """Smoothing along edges over which a pilot estimate hardly changes, by how many σ says `width`.

        The x of least Σ (y_i − x_i)² σ̄²/σ_i² + τ Σ w_ij exp(−(p_i − p_j)²/2(width σ)²) (x_i − x_j)²; τ by Stein's
        estimate of the risk.
        """
        low, high = self.ground.ends
        scale = width * np.sqrt((self.variance[low] + self.variance[high]) / 2.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = (pilot[low] - pilot[high]) / scale
        L = self.ground.laplacian(self.ground.values * np.exp(-0.5 * jump**2))
        probe = self.ground.signs[:, 0]
        x, z = y, probe
        found, price = [], []
        for tau in _TAUS:
            x, z = self.solve(L, tau, y, x), self.solve(L, tau, probe, z)
            found.append(x)
            price.append(2.0 * float(np.sum(self.variance * probe * z)))
        every = np.stack(found, axis=1)
        return every @ mixture(y[:, None] - every, np.array(price))

    def few_jumps(self, y: FloatArray, gamma: float) -> FloatArray:
        """The x of least ½ Σ (y_i − x_i)² σ̄²/σ_i² + γ σ̄ Σ √w_ij |x_i − x_j|, with √w of mean 1 (total variation).

        Accelerated steps on the dual problem, as A. Beck and M. Teboulle (SIAM Journal on Imaging Sciences 2, 2009)
        take them.
        """
        low, high = self.ground.ends
        root = np.sqrt(self.ground.values)
        root /= root.mean()
        limit = gamma * float(np.sqrt(np.mean(self.variance)))
        steps = csr_array((np.r_[root, -root], (np.r_[low, high], np.tile(np.arange(len(root)), 2))))
        back = csr_array(diags_array(1.0 / self.shares) @ steps)
        across = csr_array(steps.T)
        most = 2.0 * float(np.asarray(back.multiply(steps).sum(axis=1)).max())
        p = q = np.zeros(len(root))
        speed = 1.0
        for _ in range(_STEPS):
            new = np.clip(q + (across @ (y - back @ q)) / most, -limit, limit)
            faster = (1.0 + np.sqrt(1.0 + 4.0 * speed**2)) / 2.0
            q = new + (speed - 1.0) / faster * (new - p)
            p, speed = new, faster
        return np.asarray(y - back @ p)

    def solve(self, L: csr_array, tau: float, y: FloatArray, start: FloatArray) -> FloatArray:
        """The x with (S + τL) x = S y for the shares S of the nodes, by conjugate gradients."""
        right = self.shares * y
        diagonal = self.shares + tau * L.diagonal()
        x = start
        r = right - self.shares * x - tau * (L @ x)
        z = r / diagonal
        p, size = z, float(r @ z)
        enough = 1e-8 * float(right @ (right / diagonal))
        for _ in range(100):
            if size <= enough:
                break
            moved = self.shares * p + tau * (L @ p)
            step = size / float(p @ moved)
            x, r = x + step * p, r - step * moved
            z = r / diagonal
            before, size = size, float(r @ z)
            p = z + (size / before) * p
        return x
