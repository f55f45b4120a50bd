"""Filters of the Laplacian: bands that add up to the identity, and the best mixture of them for a signal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackError, eigsh

from pegfan._arrays import FloatArray

__all__ = ["Bank", "laplacian"]

_ALL = 400
"""Up to so many nodes all eigenvectors are computed, and no polynomial is needed."""
_SOME = 5_000
"""Up to so many nodes the eigenvectors of the lowest frequencies are computed."""
_MODES = 128
_ALIKE = 1e-6
"""Eigenvalues that differ by less than this share of the largest are one: their eigenvectors stay together."""
_SHAPES: tuple[Callable[[FloatArray], FloatArray], ...] = (
    lambda x: np.exp(-x),
    lambda x: np.exp(-(x**2)),
    lambda x: 1.0 / (1.0 + x),
    lambda x: 1.0 / (1.0 + x) ** 2,
    lambda x: 1.0 / (1.0 + x) ** 4,
    lambda x: (x < 1.0).astype(np.float64),
)
"""How the variance of a smooth signal may fall: like heat, like Matérn's fields, all at once."""
_SCALES, _AMOUNTS = 24, 16
_POINTS = 4096
_BLOCK = 16
_PER_OCTAVE = 2
_ROOM = 1 << 20
"""Numbers that are filtered at once: there is memory for as many in every band."""


def laplacian(weights: csr_array) -> csr_array:
    """L = D − W of symmetric weights."""
    return csr_array(diags_array(np.asarray(weights.sum(axis=1)).ravel()) - weights)


class Bank:
    """Parts P_0 y, ..., P_(B−1) y of a signal that add up to it, each of a band of frequencies.

    The lowest frequencies, where most of a smooth signal is, are resolved by eigenvectors: the first one alone, then
    ever more of them together. The others are resolved by polynomials of L: with λ = λ_max (1 − cos θ)/2, a band is a
    hat on the logarithmic scale of θ, two per octave, and the last one all that is below. In θ a polynomial of degree m
    resolves π/m, which in λ is finest where smooth signals are. Hats are expanded into Chebyshev polynomials with
    Jackson's factors, which keeps them between 0 and 1 and their sum at 1.

    Parameters
    ----------
    weights
        Symmetric, not negative, without loops.
    probes
        Signs, n × p: what is on the diagonals of the bands is estimated by them (Hutchinson).
    degree, octaves
        m, and how many octaves of θ below π have bands of their own.
    """

    def __init__(self, weights: csr_array, probes: FloatArray, degree: int = 200, octaves: float = 6.0) -> None:
        self.L = laplacian(weights)
        degrees = self.L.diagonal()
        ends = weights.tocoo()
        # An upper bound of the spectrum that the numbering has no part in (W. Anderson, T. Morley 1985).
        self.largest = float((degrees[ends.row] + degrees[ends.col]).max(initial=0.0)) or 1.0
        values, self.modes = _modes(self.L, self.largest, probes[:, 0])
        self.groups = _groups(values, _ALIKE * self.largest)
        self.coefficients = np.zeros((0, 1))
        if len(values) < len(degrees):
            if len(values):
                octaves = min(octaves, -np.log2(2.0 / np.pi * np.arcsin(np.sqrt(values[-1] / self.largest))))
            self.coefficients = _hats(octaves, degree)
        low = [(self.modes[:, group] ** 2).sum(axis=1) for group in self.groups]
        filtered = self._filtered(probes - self.modes @ (self.modes.T @ probes))
        high = (probes * filtered).mean(axis=2)
        self.diagonals = np.concatenate([np.reshape(low, (-1, len(degrees))), high])
        sizes = [float(group.stop - group.start) for group in self.groups]
        self.sizes = np.concatenate([sizes, (filtered**2).sum(axis=1).mean(axis=1)])
        starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > _ALIKE * self.largest)
        self.runs = np.diff(np.append(starts, len(values))).astype(np.float64)
        whole = high.sum(axis=1)
        moved = [float(np.sum(probes * (self.L @ part))) / probes.shape[1] for part in filtered]
        frequencies = np.append(np.maximum(values[starts], 0.0), np.array(moved) / np.maximum(whole, 1e-12))
        counts = np.append(self.runs, whole)
        upwards = np.argsort(frequencies, kind="stable")
        numbers = np.empty(len(counts))
        numbers[upwards] = np.cumsum(counts[upwards]) - (counts[upwards] + 1.0) / 2.0
        self.shapes = _shapes(frequencies, np.maximum(numbers, 0.0), _ALIKE * self.largest)

    def apply(self, y: FloatArray) -> FloatArray:
        """The parts of a signal, B × n; of several columns, B × n × d."""
        low = self.modes.T @ y
        parts = [self.modes[:, group] @ low[group] for group in self.groups]
        return np.concatenate([np.reshape(parts, (-1, *y.shape)), self._filtered(y - self.modes @ low)])

    def fit(self, y: FloatArray, variance: FloatArray, width: int = 1) -> FloatArray:
        """Σ_b w_b P_b y with the weights 0 ≤ w_b ≤ 1 of least risk, as Stein's unbiased estimate has it.

        That is ‖y − Σ w_b P_b y‖² + 2 Σ_b w_b tr(P_b Σ) with the variances Σ of the noise. Weights may grow with the
        frequency, too: signals that differ between neighbours keep what they are made of. Of several columns, so many
        beside each other have them in common.
        """
        columns, price = y.reshape(len(y), -1), self.diagonals @ variance
        found, room = np.empty_like(columns), max(_ROOM // max(len(y), 1) // width, 1) * width
        for first in range(0, columns.shape[1], room):
            some = np.ascontiguousarray(columns[:, first : first + room])
            every = self.apply(some)
            for start in range(0, some.shape[1], width):
                here = some[:, start : start + width]
                parts = every[:, :, start : start + width].reshape(len(every), -1)
                weights = _boxed(parts @ parts.T, parts @ here.ravel() - here.shape[1] * price)
                found[:, first + start : first + start + width] = (weights @ parts).reshape(here.shape)
        return found.reshape(y.shape)

    def smooth(self, y: FloatArray, variance: FloatArray) -> FloatArray:
        """The posterior mean of a signal that is a random field, whose variance falls with the frequency.

        The coefficient of the k-th eigenvector, of eigenvalue λ, is taken for normal with variance A g(λ/t) or A g(k/t)
        plus noise; g is one of `_SHAPES`, and g, t and A are averaged over by how likely they make the signal. Its mean
        stays as it is. Two numbers to choose and not one per band: where a signal is smooth, the choice costs less.
        """
        mean = y.mean()
        low = self.modes.T @ (y - mean)
        parts = self._filtered(y - mean - self.modes @ low)
        bands = self.diagonals[len(self.groups) :]
        sizes, counts = np.append(self.runs, self.sizes[len(self.groups) :]), np.append(self.runs, bands.sum(axis=1))
        starts = (np.cumsum(self.runs) - self.runs).astype(np.int64)
        energy = np.append(np.add.reduceat(low**2, starts), (parts**2).sum(axis=1))
        noise = np.append(np.add.reduceat(variance @ self.modes**2, starts), bands @ variance)
        noise, sizes = noise / np.maximum(counts, 1e-12), np.maximum(sizes, 1e-12)
        amounts = np.geomspace(1e-4, 10.0, _AMOUNTS)[:, None, None] * float(energy.max())
        signal = amounts * self.shapes
        both = np.maximum(signal + noise, 1e-300)
        told = -0.5 * (np.log(both) @ sizes + (1.0 / both) @ energy)
        chances = np.exp(told - told.max())
        factors = np.einsum("as,asb->b", chances / chances.sum(), signal / both)
        by_mode = np.repeat(factors[: len(self.runs)], self.runs.astype(np.int64))
        return np.asarray(mean + self.modes @ (by_mode * low) + factors[len(self.runs) :] @ parts)

    @property
    def _upwards(self) -> list[int]:
        """The bands from low to high: groups begin at 0, polynomials at the top."""
        low = len(self.groups)
        return [*range(low), *reversed(range(low, len(self.sizes)))]

    def noise(self, y: FloatArray) -> list[tuple[float, float]]:
        """σ as ever more of the upper frequencies have it, which a smooth signal leaves to the noise.

        E ‖P_b y‖² = ‖P_b x‖² + σ² tr P_b². With each goes of how many numbers it is told.
        """
        order = self._upwards[::-1]
        energy = np.cumsum((self.apply(y) ** 2).sum(axis=1)[order])
        sizes = np.cumsum(self.sizes[order])
        wide = sizes >= max(len(y) / 8, 8.0)
        return list(zip(np.sqrt(energy[wide] / sizes[wide]).tolist(), sizes[wide].tolist(), strict=True))

    def _filtered(self, y: FloatArray) -> FloatArray:
        """All polynomials of L on one or several columns, in one pass."""
        degree = self.coefficients.shape[1] - 1
        out = np.zeros((len(self.coefficients), y.size))
        if not len(out):
            return out.reshape(0, *y.shape)
        block: list[FloatArray] = []
        before, now = y, y
        for k in range(degree + 1):
            if k:
                moved = now - (2.0 / self.largest) * (self.L @ now)
                before, now = now, moved if k == 1 else 2.0 * moved - before
            block.append(now.ravel())
            if len(block) == _BLOCK or k == degree:
                out += self.coefficients[:, k + 1 - len(block) : k + 1] @ np.stack(block)
                block = []
        return out.reshape(-1, *y.shape)


def _modes(L: csr_array, largest: float, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lowest eigenvalues and their eigenvectors: all, some or none of them, by the number of nodes."""
    n = len(start)
    if n <= _ALL:
        values, modes = np.linalg.eigh(L.toarray())
        return np.asarray(values), np.asarray(modes)
    if n <= _SOME:
        try:
            values, modes = eigsh(L.tocsc(), _MODES, sigma=-1e-3 * largest, v0=start)
        except (ArpackError, RuntimeError):  # polynomials do without
            return np.zeros(0), np.zeros((n, 0))
        order = np.argsort(values)
        values, modes = values[order], modes[:, order]
        # The next eigenvalue may be equal to the last ones, whose eigenvectors would then be any of their space.
        whole = values < values[-1] - _ALIKE * largest
        return np.asarray(values[whole]), np.asarray(modes[:, whole])
    return np.zeros(0), np.zeros((n, 0))


def _groups(values: FloatArray, alike: float) -> list[slice]:
    """Runs of eigenvectors, each half as long as all before it together; equal eigenvalues are not parted."""
    groups, start = [], 0
    while start < len(values):
        end = start + max(1, start // 2)
        while end < len(values) and values[end] - values[end - 1] <= alike:
            end += 1
        groups.append(slice(start, min(end, len(values))))
        start = end
    return groups


def _shapes(frequencies: FloatArray, numbers: FloatArray, least: float) -> FloatArray:
    """How variances may fall with the frequency or with its number; a row per shape and scale, a column per band."""
    found = []
    for places, smallest in ((frequencies, least), (numbers, 0.0)):
        above = places[places > smallest]
        if len(above):
            scales = np.geomspace(above.min() / 3.0, 3.0 * above.max(), _SCALES)
            found += [shape(places / scales[:, None]) for shape in _SHAPES]
    return np.concatenate(found) if found else np.ones((1, len(frequencies)))


def _hats(octaves: float, degree: int) -> FloatArray:
    """Chebyshev coefficients of the bands."""
    bands = int(np.ceil(octaves * _PER_OCTAVE)) + 1
    theta = (np.arange(_POINTS) + 0.5) * np.pi / _POINTS
    place = np.minimum(-np.log2(theta / np.pi) * _PER_OCTAVE, bands - 1)
    hats = np.maximum(0.0, 1.0 - np.abs(place - np.arange(bands)[:, None]))
    k = np.arange(degree + 1)
    found = (2.0 / _POINTS) * hats @ np.cos(np.outer(theta, k))
    found[:, 0] /= 2.0
    a = np.pi / (degree + 2)
    jackson = (degree + 2 - k) * np.sin(a) * np.cos(k * a) + np.cos(a) * np.sin(k * a)
    return np.asarray(found * jackson / ((degree + 2) * np.sin(a)))


def _boxed(Q: FloatArray, q: FloatArray, rounds: int = 300) -> FloatArray:
    """The w in [0, 1]^B with the least wᵀQw − 2qᵀw, coordinate by coordinate."""
    w = np.full(len(q), 0.5)
    for _ in range(rounds):
        before = w.copy()
        for i in range(len(q)):
            w[i] = min(1.0, max(0.0, w[i] + (q[i] - Q[i] @ w) / Q[i, i])) if Q[i, i] > 0 else 0.0
        if np.abs(w - before).max() < 1e-6:
            break
    return w
