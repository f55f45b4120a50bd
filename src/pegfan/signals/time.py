"""Signals over nodes and times: noise off a whole table of them, and off a stream as it comes."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct

from pegfan._arrays import FloatArray, IntArray
from pegfan.framelets.empirical import shrink_levels
from pegfan.framelets.frames import FrameletFrame
from pegfan.framelets.system import FrameletSystem
from pegfan.framelets.time import TimeSystem
from pegfan.running import Progress, Step
from pegfan.signals._experts import Experts, shrunk
from pegfan.signals._gaps import filled
from pegfan.signals._ground import Ground
from pegfan.signals._stacking import mixture
from pegfan.signals.estimate import Estimate
from pegfan.signals.noise import spread
from pegfan.trees import Hierarchy, canonical_order

__all__ = ["denoise_time"]

_FEW = 24
"""Coefficients per tree that a block of scales needs to be shrunk by a rule of its own."""
_TOGETHER = 200
"""Numbers that a filter over nodes is fitted to, at least: frequencies over time share one where nodes are few."""
_STEP = 0.03
"""How far a signal is moved, in units of noise, to see how much estimates follow it.

Much further, and estimates that judge coefficients by their energy take the move for signal: at 0.2 the noise has 4 %
more energy, and the degrees of freedom come out too large by 2 % of all numbers.
"""
_MOST = 20_000_000
"""Edges over nodes and times along which signals are still smoothed."""


class Product(Ground):
    """A graph times the path of T times: a node at a time is joined to its neighbours then, and to itself next."""

    def __init__(self, ground: Ground, length: int) -> None:
        self.space, self.length = ground, length
        self.graph, self.trees, self.n = ground.graph, ground.trees, ground.n * length
        times, nodes = np.arange(length), np.arange(ground.n)
        across = [(end[:, None] * length + times).ravel() for end in ground.ends]
        along = (nodes[:, None] * length + times[:-1]).ravel()
        self.ends: tuple[IntArray, IntArray] = (np.r_[across[0], along], np.r_[across[1], along + 1])
        self.over_space = np.repeat(ground.values, length)
        self.values = np.r_[self.over_space, np.ones(len(along))]

    def weigh(self, pilot: FloatArray) -> None:
        """Edges over time as heavy as a pilot estimate is smooth over them, beside the others."""
        low, high = self.ends
        steps, split = (pilot[low] - pilot[high]) ** 2, len(self.over_space)
        space, time = (float(np.mean(part)) if len(part) else 1.0 for part in (steps[:split], steps[split:]))
        mean = float(np.mean(self.over_space)) if split else 1.0
        factor = mean * np.clip(space / time, 0.03, 30.0) if time > 0 else 30.0 * mean
        self.values = np.r_[self.over_space, np.full(len(steps) - split, factor)]

    @cached_property
    def signs(self) -> FloatArray:
        """±1 that depend on the canonical order of the nodes, in one column."""
        drawn = np.random.default_rng(1).integers(0, 2, (self.space.n, self.length)) * 2.0 - 1.0
        signs = np.empty_like(drawn)
        signs[canonical_order(self.graph).order] = drawn
        return signs.reshape(-1, 1)

    @cached_property
    def system(self) -> TimeSystem:
        """Framelets over nodes times Haar's over time."""
        return TimeSystem(self.space.frame, self.length)

    @cached_property
    def over_time(self) -> TimeShrinker:
        """What shrinks coefficients of `system`."""
        return TimeShrinker(self.system)

    @cached_property
    def frame(self) -> FrameletFrame:
        """Framelets on trees whose clusters are a cluster of nodes times an interval, both halved at once."""
        pairs = zip(self.space.frame, self.system.time, strict=True)
        trees = (joint_tree(space.hierarchy, time.hierarchy) for space, time in pairs)
        return FrameletFrame([FrameletSystem(tree, "haar-basis", weights="size") for tree in trees])


def joint_tree(space: Hierarchy, time: Hierarchy) -> Hierarchy:
    """The tree over nodes × times whose clusters, j levels above single ones, are products of such clusters."""
    levels = []
    for up in range(max(space.K, time.K)):
        nodes = space.labels(max(space.K - up, 1))
        times = time.labels(max(time.K - up, 1))
        levels.append((nodes[:, None] * (times.max() + 1) + times).ravel())
    return Hierarchy.from_labels(levels)


class TimeShrinker:
    """Coefficients of a `TimeSystem`, shrunk by empirical Bayes, block by block of scales over all trees together."""

    def __init__(self, system: TimeSystem) -> None:
        self.system = system

    @cached_property
    def groups(self) -> list[IntArray]:
        """The coefficients of every pair of scales, as places; coarse ones over nodes together until there are enough.

        The mean of everything is in none.
        """
        nodes, times = (scale.ravel() for scale in self.system.scales)
        top = int(nodes.max()) + 1
        found = []
        for time in range(-1, int(times.max()) + 1):
            here = np.flatnonzero((times == time) & ((nodes >= 0) | (time >= 0)))
            scale = np.where(nodes[here] < 0, top, nodes[here])
            above = np.cumsum(np.bincount(scale, minlength=top + 1)[::-1])[::-1]
            enough = int(np.flatnonzero(above >= _FEW * len(self.system.space)).max(initial=0))
            scale = np.minimum(scale, enough)
            found += [here[scale == one] for one in range(enough + 1)]
        return [places for places in found if len(places)]

    def __call__(self, y: FloatArray, noise: FloatArray) -> FloatArray:
        """The signal, n × T, without what is taken for noise; `noise` is that of the framelets over nodes."""
        c = self.system.decompose(y)
        flat, sizes = c.ravel(), np.repeat(noise, self.system.length)
        for places in self.groups:
            flat[places] = shrink_levels(flat[places], sizes[places])
        return np.asarray(self.system.reconstruct(c))


class TimeExperts(Experts):
    """Estimates of a signal over nodes and times, given and returned as one column, node by node."""

    ground: Product

    def __init__(self, product: Product, sigma: FloatArray) -> None:
        super().__init__(product, np.repeat(sigma, product.length))
        self.units = np.maximum(sigma, 1e-3 * float(sigma.max()))  # a node without noise counts much, not infinitely
        self.each, self.over_nodes = sigma, product.space.frame.noise(sigma)

    def estimates(self, y: FloatArray) -> dict[str, FloatArray]:
        """Estimates by name."""
        table = y.reshape(-1, self.ground.length)
        found = {
            "spectrum": self.smooth(y),
            "trees × time": self.tensor(y),
            "trees over both": self.pieces(y),
            "columns": shrunk(self.ground.space.frame, table, self.over_nodes).ravel(),
            "nodes": self.nodes(table).ravel(),
        }
        found["smooth + trees"] = self.apart(y, found["spectrum"], self.tensor, 2)
        u, s, v = self.factors(table)
        found["low rank"] = ((u * s) @ v * self.units[:, None]).ravel()
        seen = v[s > 0]
        components = table @ seen.T
        found["components"] = (self.ground.space.bank.fit(components, self.each**2) @ seen).ravel()
        found["components on trees"] = (shrunk(self.ground.space.frame, components, self.over_nodes) @ seen).ravel()
        return found

    def smooth(self, y: FloatArray) -> FloatArray:
        """The best filter of the Laplacian for each frequency over time: cosines, the eigenvectors of the path."""
        waves = np.asarray(dct(y.reshape(-1, self.ground.length), axis=1, norm="ortho"))
        waves = self.ground.space.bank.fit(waves, self.each**2, -(-_TOGETHER // len(waves)))
        return np.asarray(idct(waves, axis=1, norm="ortho")).ravel()

    def tensor(self, y: FloatArray) -> FloatArray:
        """Framelets over nodes times Haar's over time."""
        return self.ground.over_time(y.reshape(-1, self.ground.length), self.over_nodes).ravel()

    def nodes(self, table: FloatArray) -> FloatArray:
        """Haar's wavelets over time only, by one rule for all nodes."""
        frame = FrameletFrame(self.ground.system.time)
        c = frame.decompose(np.ascontiguousarray(table.T)) * len(frame) ** 0.5
        for scale in range(int(frame.scales.max()) + 1):
            places = np.flatnonzero(frame.scales == scale)
            c[places] = shrink_levels(c[places].ravel(), np.tile(self.each, len(places))).reshape(-1, len(self.each))
        return np.asarray(frame.reconstruct(c * len(frame) ** -0.5)).T

    def factors(self, table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Singular vectors, in units of noise, with values shrunk as is best for many nodes and times.

        The rule is that of M. Gavish and D. Donoho (IEEE Transactions on Information Theory 63, 2017) for the squared
        error: √((x² − β − 1)² − 4β)/x where x is above 1 + √β, and 0 below.
        """
        u, s, v = np.linalg.svd(table / self.units[:, None], full_matrices=False)
        large, ratio = max(table.shape), min(table.shape) / max(table.shape)
        x = s / np.sqrt(large)
        kept = x > 1.0 + np.sqrt(ratio)
        inside = np.maximum((x**2 - ratio - 1.0) ** 2 - 4.0 * ratio, 0.0)
        return u, np.where(kept, np.sqrt(large * inside) / np.where(kept, x, 1.0), 0.0), v


def denoise_time(
    ground: Ground, y: FloatArray, sigma: FloatArray | None = None, progress: Progress | None = None
) -> Estimate:
    """The signal over nodes and times without its noise.

    Several estimates are mixed by Stein's estimate of the risk of the mixture: filters of the Laplacian for each
    frequency over time; framelets over nodes times Haar's over time; framelets on trees over nodes and times;
    framelets over nodes or over time alone; few components, with filters or framelets over nodes; last of all,
    smoothing along the edges over which the mixture so far hardly changes.

    Parameters
    ----------
    ground
        The graph.
    y
        n × T; NaN is missing.
    sigma
        The standard deviation of the noise: one number, or one per node; None where it is not known.
    progress
        Called with a `pegfan.running.Step` per round.
    """
    product = Product(ground, y.shape[1])
    seen = ~np.isnan(y).ravel()
    flat = filled(product, y.ravel(), seen)
    known = sigma is not None
    noise = np.full(ground.n, _first_guess(ground, y) if sigma is None else sigma, dtype=np.float64)
    rounds = 2 if seen.all() else 4
    for done in range(rounds):
        if progress:
            progress(Step(done, rounds, f"denoising {y.shape[1]:,} times, round {done + 1} of {rounds}"))
        if not noise.any():
            return Estimate(flat.reshape(y.shape), np.broadcast_to(noise[:, None], y.shape))
        signal, shares, freedom = _mixed(TimeExperts(product, noise), flat, seen)
        again = _again(flat[seen] - signal[seen], freedom)
        lower = not known and 0 < again < 0.9 * noise[0]
        if seen.all() and not lower:
            break
        flat = np.where(seen, flat, signal)
        if lower and done + 1 < rounds:
            noise = np.full(ground.n, again)
    return Estimate(signal.reshape(y.shape), np.repeat(noise[:, None], y.shape[1], axis=1), shares)


def _mixed(experts: TimeExperts, y: FloatArray, seen: NDArray[np.bool_]) -> tuple[FloatArray, dict[str, float], float]:
    """The mixture of all estimates, their shares, and its degrees of freedom."""
    product, probe = experts.ground, experts.ground.signs[:, 0] * seen
    both = y, y + _STEP * experts.sigma * probe
    here, there = (experts.estimates(one) for one in both)
    each = np.divide(probe, experts.sigma, out=np.zeros_like(probe), where=experts.sigma > 0)

    def mix() -> tuple[tuple[FloatArray, FloatArray], FloatArray, float]:
        M, moved = (np.stack(list(found.values()), axis=1) for found in (here, there))
        change = (moved - M) / _STEP
        w = mixture(y[seen, None] - M[seen], 2.0 * ((experts.sigma * probe) @ change))
        return (M @ w, moved @ w), w, float(each @ (change @ w))

    pilots, w, freedom = mix()
    if len(product.ends[0]) <= _MOST:
        product.weigh(pilots[0])
        for name, width in (("edges", 1.0), ("edges again", 0.7)):
            for found, one, pilot in zip((here, there), both, pilots, strict=True):
                found[name] = experts.along_edges(one, pilot, width)
            pilots, w, freedom = mix()
    return pilots[0], dict(zip(here, w.tolist(), strict=True)), freedom


def _again(rest: FloatArray, freedom: float) -> float:
    """σ from what an estimate leaves; 0 where it leaves too little to tell."""
    left = 1.0 - freedom / len(rest)
    return spread(rest) / np.sqrt(left) if left > 0.3 else 0.0


def _first_guess(ground: Ground, y: FloatArray) -> float:
    """σ by the least of differences over edges, over time (second ones), and over both: a signal only enlarges them."""
    low, high = ground.ends
    steps = [y[low] - y[high]]
    kinds = [(y[:, 2:] - 2.0 * y[:, 1:-1] + y[:, :-2]) / 6.0**0.5, steps[0] / 2.0**0.5, np.diff(steps[0]) / 2.0]
    found = [spread(kind[~np.isnan(kind)]) for kind in kinds if np.count_nonzero(~np.isnan(kind)) >= _FEW]
    return min(found) if found else 0.0
