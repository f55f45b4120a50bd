"""What PyGSP offers against noise, each method with the true σ and the exact eigenvectors of the graph.

Low-pass filters and Tikhonov's have one parameter, chosen by Stein's estimate of the risk with the true σ. Filter banks
have six bands, whose coefficients but the lowest are made smaller: soft, by the threshold of least estimated risk per
band, or hard, at three σ. Total variation (`pygsp.optimization.prox_tv`; its solver pyunlocbox is not needed here) is
given the best of its parameters for the very signal, which nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pygsp import filters, graphs
from scipy.sparse import csr_array, triu

Array = NDArray[np.float64]

BANKS: dict[str, Callable[[Any], Any]] = {
    "Abspline": lambda G: filters.Abspline(G, Nf=6),
    "HalfCosine": lambda G: filters.HalfCosine(G, Nf=6),
    "Held": filters.Held,
    "Itersine": lambda G: filters.Itersine(G, Nf=6),
    "MexicanHat": lambda G: filters.MexicanHat(G, Nf=6),
    "Meyer": lambda G: filters.Meyer(G, Nf=6),
    "Papadakis": filters.Papadakis,
    "Regular": filters.Regular,
    "Simoncelli": filters.Simoncelli,
    "SimpleTight": lambda G: filters.SimpleTight(G, Nf=6),
}


class Rivals:
    """The methods on one graph.

    Parameters
    ----------
    weights
        Symmetric.
    values, vectors
        All eigenvalues and eigenvectors of its Laplacian.
    """

    def __init__(self, weights: csr_array, values: Array, vectors: Array) -> None:
        self.l, self.U = np.maximum(values, 0.0), vectors
        pairs = triu(weights, 1).tocoo()
        self.ends, self.root = pairs.coords, np.sqrt(pairs.data)
        # Kernels are functions of λ alone: all that they ask of a graph is its largest eigenvalue.
        G = graphs.Graph(np.array([[0.0, 1.0], [1.0, 0.0]]))
        G._lmax, G._lmax_method = float(self.l[-1]), "fourier"
        self.banks = {}
        for name, make in BANKS.items():
            kernels = np.stack([np.asarray(kernel(self.l), dtype=np.float64) for kernel in make(G)._kernels])
            self.banks[name] = kernels, np.sqrt((self.U**2) @ (kernels**2).T).T

    def estimates(self, y: Array, sigma: float, clean: Array) -> dict[str, Array]:
        """Estimates by name; `clean` is looked at by total variation only."""
        z = self.U.T @ y
        t = np.logspace(-3, 3, 40)[:, None] / self.l.mean()
        found = {
            "Tikhonov": self.U @ self._linear(z, sigma, 1.0 / (1.0 + t * self.l)),
            "Heat": self.U @ self._linear(z, sigma, np.exp(-t * self.l)),
            "Rectangular": self.U @ self._linear(z, sigma, np.tri(len(z))[:: max(1, len(z) // 200)]),
        }
        for name, (kernels, norms) in self.banks.items():
            soft, hard = np.zeros(len(z)), np.zeros(len(z))
            for i, (kernel, norm) in enumerate(zip(kernels, norms, strict=True)):
                c, noise = self.U @ (kernel * z), sigma * np.maximum(norm, 1e-12)
                soft += kernel * (self.U.T @ (c if i == 0 else _soft(c, noise)))
                hard += kernel * (self.U.T @ (c if i == 0 else np.where(np.abs(c) > 3 * noise, c, 0.0)))
            whole = np.maximum((kernels**2).sum(axis=0), 1e-12)
            found[f"{name}, soft"], found[f"{name}, hard"] = self.U @ (soft / whole), self.U @ (hard / whole)
        every = [self.total_variation(y, sigma * by) for by in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]
        found["total variation, best γ"] = min(every, key=lambda x: float(np.sum((x - clean) ** 2)))
        return found

    def _linear(self, z: Array, sigma: float, filters: Array) -> Array:
        risk = (((1.0 - filters) * z) ** 2).sum(axis=1) + 2.0 * sigma**2 * filters.sum(axis=1)
        return np.asarray(filters[risk.argmin()] * z)

    def total_variation(self, y: Array, gamma: float, rounds: int = 300) -> Array:
        """The x of least ½ ‖x − y‖² + γ Σ √w_ij |x_i − x_j|, by accelerated steps on the dual."""
        low, high = self.ends
        n, root = len(y), self.root / self.root.mean()

        def back(p: Array) -> Array:
            return np.bincount(low, root * p, n) - np.bincount(high, root * p, n)

        most = 2.0 * float((np.bincount(low, root**2, n) + np.bincount(high, root**2, n)).max())
        p = q = np.zeros(len(root))
        speed = 1.0
        for _ in range(rounds):
            x = y - back(q)
            new = np.clip(q + root * (x[low] - x[high]) / most, -gamma, gamma)
            faster = (1.0 + np.sqrt(1.0 + 4.0 * speed**2)) / 2.0
            q = new + (speed - 1.0) / faster * (new - p)
            p, speed = new, faster
        return np.asarray(y - back(p))


def _soft(c: Array, noise: Array) -> Array:
    """Soft thresholds, in units of the noise of each coefficient, of least estimated risk."""
    size = np.concatenate([[0.0], np.sort(np.abs(c / noise))])
    below = np.arange(len(size))
    risk = len(c) - 2 * below + np.cumsum(size**2) + (len(c) - below) * size**2
    limit = size[risk.argmin()] * noise
    return np.asarray(np.sign(c) * np.maximum(np.abs(c) - limit, 0.0))
