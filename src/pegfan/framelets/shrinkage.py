"""Shrinking coefficients: denoising rules, and the best few coefficients.

The frame may be redundant, and then a framelet is shorter than 1: unit noise has the standard deviation ‖ψ‖
in its coefficient. Rules therefore look at coefficients in units of their own noise, z = c/(σ‖ψ‖). Most are the
classical ones for orthonormal wavelets, which is what they are for ``filters="haar-basis"``; with the redundant
binary Haar system they are well-tried heuristics. Blocks are exact with any tight filters, see `_block`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_choice, check_number, check_numbers, shown
from pegfan._defaults import RULES
from pegfan.framelets._signals import is_tensor
from pegfan.framelets.empirical import shrink_levels

if TYPE_CHECKING:
    from pegfan.framelets.coefficients import Coefficients
    from pegfan.framelets.system import FrameletSystem

MODES = ("soft", "hard")
FACTORS = ("empirical", "block")
"""Rules without a threshold."""
_FEW = 24
"""Coefficients per tree that a scale needs to be shrunk by a rule of its own."""
_GENERATIONS = 4
"""How far up the common ancestor of a block may be, its own cluster included."""
_STRENGTHS = np.append(np.arange(0.0, 8.1, 0.25), 1e300)
_MAD = 0.6744897501960817  # median of |N(0, 1)|


def threshold(values: Any, value: ArrayLike, mode: Literal["soft", "hard"] = "soft") -> Any:
    r"""Set small values to zero, and with ``"soft"`` shrink the others towards it.

    ``"hard"`` keeps x where \|x\| > t, ``"soft"`` makes it sign(x) (\|x\| − t); the rest becomes 0. NaN stays NaN.

    Parameters
    ----------
    values
        Coefficients or anything else: a NumPy array, a SciPy sparse matrix or a torch tensor, through which gradients
        flow.
    value
        t, not negative: a number, or an array that is broadcast to the shape of the values.
    mode
        See above.

    Returns
    -------
    array, csr_array or tensor
        Of the kind and precision of the values; integers become float64.

    Examples
    --------
    >>> import pegfan as pf
    >>> pf.framelets.threshold([3.0, -2.0, 0.5], 1.0)
    array([ 2., -1.,  0.])
    >>> pf.framelets.threshold([3.0, -2.0, 0.5], 1.0, mode="hard")
    array([ 3., -2.,  0.])

    All coefficients of a signal, the average too; `FrameletSystem.denoise` leaves it alone and knows how long framelets
    are:

    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> c = system.decompose([4.2, 3.8, 1.1, 0.9])
    >>> system.reconstruct(c.replace(pf.framelets.threshold(c.array, 0.5, mode="hard"))).round(12)
    array([4., 4., 1., 1.])
    """
    check_choice(mode, "mode", MODES)
    limit = np.asarray(value, dtype=np.float64)
    if (limit < 0).any():
        raise ValueError(f"a threshold must not be negative, got {limit.min()}")
    if is_tensor(values):
        import torch

        bound = torch.from_numpy(np.ascontiguousarray(limit)).to(values)
        shrunk = values - torch.sign(values) * bound if mode == "soft" else values
        return torch.where(values.abs() <= bound, 0.0, shrunk)  # NaN is neither, and stays
    if issparse(values):
        rows = csr_array(values, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        limit = np.broadcast_to(limit, rows.shape)[rows.nonzero()] if limit.ndim else limit
        rows.data = threshold(rows.data, limit, mode)
        rows.eliminate_zeros()
        return rows
    x = np.asarray(values)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    shrunk = x - np.sign(x) * limit if mode == "soft" else x
    return np.ascontiguousarray(np.where(np.abs(x) <= limit, 0.0, shrunk), dtype=x.dtype)


class Shrinkage:
    """How the coefficients of some systems on the same nodes, one system after the other, are shrunk together.

    Parameters
    ----------
    systems
        The systems.
    j0
        Their coarsest level.
    share
        What all vectors are multiplied by: 1/√T makes T systems one tight frame.

    Attributes
    ----------
    levels
        A system, a level of it, and the places of its framelets among all coefficients.
    """

    def __init__(self, systems: Sequence[FrameletSystem], j0: int = 1, share: float = 1.0) -> None:
        self.systems, self.j0, self.share = systems, j0, share
        self.levels: list[tuple[FrameletSystem, int, slice]] = []
        start = 0
        for system in systems:
            ends = system.offsets(j0)
            places = (slice(start + a, start + b) for a, b in pairwise(ends[1:]))
            self.levels += [(system, j, place) for j, place in enumerate(places, j0)]
            start += ends[-1]
        self.count = start

    @cached_property
    def norms(self) -> FloatArray:
        """The norms of all vectors."""
        norms = np.full(self.count, self.share)
        for system, j, places in self.levels:
            norms[places] *= system.norms(j)
        return norms

    @cached_property
    def scales(self) -> IntArray:
        """The scale of every coefficient: log₂ of its cluster's size, rounded; −1 for scaling coefficients."""
        scales = np.full(self.count, -1)
        for system, j, places in self.levels:
            size = np.round(np.log2(system.hierarchy.sizes(j))).astype(np.int64)
            scales[places] = np.repeat(size, system.n_framelets(j))
        return scales

    @cached_property
    def groups(self) -> list[IntArray]:
        """The framelets of every scale; the coarsest ones together, until there are enough of them."""
        scales = self.scales.copy()
        counts = np.bincount(scales[scales >= 0], minlength=1)
        above = np.cumsum(counts[::-1])[::-1]
        top = int(np.flatnonzero(above >= _FEW * len(self.systems)).max(initial=0))
        scales[scales > top] = top
        return [np.flatnonzero(scales == scale) for scale in range(top + 1)]

    def noise(self, sigma: Any) -> FloatArray:
        """The standard deviation of the noise of every coefficient, from that of the nodes."""
        if np.ndim(sigma) == 0:
            return self.norms * check_number(sigma, "sigma")
        variance = _deviations(sigma, self.systems[0].n) ** 2
        if np.ptp(variance) == 0:
            return np.asarray(self.norms * np.sqrt(variance[0]))
        return np.asarray(
            self.share * np.sqrt(np.concatenate([system.variances(variance, self.j0) for system in self.systems]))
        )

    def __call__(self, c: Any, by: Any, mode: Literal["soft", "hard"] | None = None, sigma: Any = None) -> Any:
        """Coefficients shrunk by a rule, a number, or a number per level; the scaling ones stay."""
        if mode is not None:
            check_choice(mode, "mode", MODES)
        if not isinstance(by, str):
            limit = self._limits(by)
            return threshold(c, limit if c.ndim == 1 else limit[:, None], mode or "soft")
        if by not in RULES:
            raise ValueError(f"unknown threshold rule {shown(by)}; choose one of {', '.join(RULES)}, or a number")
        if by in FACTORS and mode is not None:
            raise ValueError(f"mode={mode!r} is for thresholds, and {by!r} has none; leave mode out")
        values = _numpy(c).reshape(self.count, -1)
        noise = self.norms if sigma is None else self.noise(sigma)
        found = np.full(values.shape, float(by in FACTORS))
        for k, column in enumerate(values.T.astype(np.float64)):
            own = noise * self._level(column) if sigma is None else noise
            if own.any():
                found[:, k] = self._factors(column, own, by) if by in FACTORS else self._thresholds(column, own, by)
        found = found.reshape(c.shape)
        if by not in FACTORS:
            return threshold(c, found, mode or ("hard" if by == "universal" else "soft"))
        if issparse(c):
            return csr_array(c.multiply(found.astype(c.dtype)))
        if is_tensor(c):
            import torch

            return c * torch.from_numpy(found).to(c)
        return c * found.astype(c.dtype)

    def _limits(self, by: Any) -> FloatArray:
        """Thresholds for every coefficient, from a number or one per level."""
        limits = np.zeros(self.count)
        single = np.ndim(by) == 0
        for system, j, places in self.levels:
            numbers = by if single else check_numbers(by, "threshold", None)
            if not single and len(numbers) != system.K - self.j0:
                raise ValueError(
                    f"threshold has {len(numbers)} numbers, and there are {system.K - self.j0} levels of framelets, "
                    f"{self.j0} to {system.K - 1}; give one for each"
                )
            limit = check_number(numbers if single else float(numbers[j - self.j0]), "threshold")
            limits[places] = limit * self.norms[places]
        return limits

    def _level(self, column: FloatArray) -> float:
        """σ, from the finest framelets of every tree, levels of them until there are enough: the median of sizes."""
        sizes: list[FloatArray] = []
        seen: dict[int, int] = {}
        for system, _, level in reversed(self.levels):
            if seen.setdefault(id(system), 0) < _FEW:
                part = _ratio(np.abs(column[level]), self.norms[level])
                seen[id(system)] += len(part)
                sizes.append(part)
        every = np.concatenate(sizes) if sizes else np.empty(0)
        return float(np.median(every)) / _MAD if len(every) else 0.0

    def _factors(self, column: FloatArray, noise: FloatArray, by: str) -> FloatArray:
        factors = np.ones(self.count)
        if by == "empirical":
            for places in self.groups:
                factors[places] = _ratio(shrink_levels(column[places], noise[places]), column[places])
            return factors
        for system, j, level in self.levels:
            z = _ratio(column[level], noise[level])
            factors[level] = np.where(noise[level] > 0, _block(z, system.norms(j) ** 2, _blocks(system, j)), 1.0)
        return factors

    def _thresholds(self, column: FloatArray, noise: FloatArray, by: str) -> FloatArray:
        limits = np.zeros(self.count)
        for system, _, level in self.levels:
            z = _ratio(column[level], noise[level])
            limits[level] = noise[level] * _rule(by, z, system.n)
        return limits


def keep_largest(c: Coefficients, keep: float) -> Coefficients:
    """Coefficients with all but the `keep` largest framelet coefficients of every column set to zero."""
    total, scaling = c.array.shape[0], c[0].shape[0]
    wanted = check_number(keep, "keep")
    share = isinstance(keep, (float, np.floating))
    if share and wanted > 1:
        raise ValueError(f"keep is a whole number of coefficients or a fraction up to 1.0, got {keep}")
    count = round(wanted * total) if share else int(wanted)
    values = np.abs(_numpy(c.array)).reshape(total, -1)[scaling:]
    kept = max(count - scaling, 0)
    mask = np.zeros((total, values.shape[1]), bool)
    mask[:scaling] = True
    if kept >= len(values):
        mask[:] = True
    elif kept:
        largest = np.argpartition(-values, kept - 1, axis=0)[:kept]
        np.put_along_axis(mask[scaling:], largest, True, axis=0)
    mask = mask.reshape(c.array.shape)
    if is_tensor(c.array):
        import torch

        return c.replace(c.array * torch.from_numpy(mask).to(c.array.device))
    return c.replace(c.array.multiply(mask).tocsr() if issparse(c.array) else c.array * mask)


def _deviations(sigma: Any, n: int) -> FloatArray:
    array = np.asarray(check_numbers(sigma, "sigma", n), np.float64)
    if not (array >= 0).all() or not np.isfinite(array).all():
        bad = array[~((array >= 0) & np.isfinite(array))][0]
        raise ValueError(f"sigma holds {bad}; standard deviations are finite and not negative")
    return array


def _numpy(array: Any) -> Any:
    if issparse(array):
        return array.toarray()
    return array.detach().cpu().numpy() if is_tensor(array) else array


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotients; 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below != 0)


def _rule(rule: str, z: FloatArray, n: int) -> float:
    """The threshold of a level, in units of the noise."""
    if rule == "universal" or not len(z):
        return float(np.sqrt(2.0 * np.log(max(n, 2))))
    if rule == "sure":
        return _sure(z)
    signal = float(np.sqrt(max(float(np.mean(z**2)) - 1.0, 0.0)))
    return 1.0 / signal if signal > 0 else float(np.abs(z).max())


def _sure(z: FloatArray) -> float:
    """The threshold, among the coefficients' sizes, with the least of Stein's unbiased estimates of risk.

    risk(t) = m − 2 #{|z| ≤ t} + Σ min(|z|, t)².
    """
    size = np.append(0.0, np.sort(np.abs(z)))
    below = np.arange(len(size))
    risk = len(z) - 2.0 * below + np.cumsum(size**2) + (len(z) - below) * size**2
    return float(size[risk.argmin()])


def _blocks(system: FrameletSystem, j: int) -> list[IntArray]:
    """Which block each framelet of level j is in: its cluster's, that of its siblings, of cousins and so on."""
    cluster = np.repeat(np.arange(system.hierarchy.n_clusters[j - 1]), system.n_framelets(j))
    found = [cluster]
    for level in range(j, max(j + 1 - _GENERATIONS, 1), -1):
        found.append(system.hierarchy.parent(level)[found[-1]])
    return found


def _block(z: FloatArray, weights: FloatArray, choices: list[IntArray]) -> FloatArray:
    """Factors of coefficients that decide together with those of their block.

    A block with the energy S² = Σ w z² and the dimension d = Σ w, where w = ‖ψ‖², is multiplied by James's and Stein's
    factor (1 − t d/S²)₊. The BᵀB of a cluster is a projection, so that the noise of all its coefficients has just
    d = L − 1 dimensions, however many they are: Stein's unbiased estimate of the risk,

        d + (t² d² − 2 t d (d − 2))/S²   where S² > t d,   and   S² − d   elsewhere,

    holds for any tight filters. Its sum over a level chooses the strength t and how large blocks are.
    """
    best, factors = np.inf, np.ones(len(z))
    for block in choices if len(z) else ():
        d, energy = np.bincount(block, weights), np.bincount(block, weights * z**2)
        for t in _STRENGTHS:
            kept = energy > t * d
            e, k = energy[kept], d[kept]
            risk = float(np.sum(energy[~kept] - d[~kept]))
            if len(e):
                risk += float(np.sum(k + (t**2 * k**2 - 2.0 * t * k * (k - 2.0)) / e))
            if risk < best:
                factor = np.zeros(len(d))
                factor[kept] = 1.0 - t * k / e if len(e) else 0.0
                best, factors = risk, factor[block]
    return factors
