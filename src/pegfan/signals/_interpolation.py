"""Guesses at the values of nodes that were not seen, each at home with another kind of signal.

Every guess is made for several columns at once: the same signal, of which every column hides other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from pegfan._arrays import FloatArray
from pegfan.signals._bank import laplacian
from pegfan.signals._ground import Ground
from pegfan.signals._spectrum import lowest
from pegfan.trees import Hierarchy

__all__ = ["Guesses"]

Mask = NDArray[np.bool_]


def solve(
    apply: Callable[[FloatArray], FloatArray],
    diagonal: FloatArray,
    right: FloatArray,
    start: FloatArray,
    rounds: int,
) -> FloatArray:
    """Columns x with A x = right, by conjugate gradients with the diagonal, each column with steps of its own.

    Rows where `diagonal` is infinite keep their start.
    """
    inverse = 1.0 / diagonal
    x = start.copy()
    r = right - apply(x)
    z = inverse * r
    p, size = z, np.einsum("ij,ij->j", r, z)
    enough = 1e-12 * np.maximum(np.einsum("ij,ij,ij->j", right, right, inverse), size)
    for _ in range(rounds):
        if (size <= enough).all():
            break
        moved = apply(p)
        bend = np.einsum("ij,ij->j", p, np.where(inverse > 0, moved, 0.0))
        step = np.where((size > enough) & (bend > 0), size / np.where(bend > 0, bend, 1.0), 0.0)
        x += step * p
        r -= step * moved
        z = inverse * r
        before, size = size, np.einsum("ij,ij->j", r, z)
        p = z + np.where(before > 0, size / np.where(before > 0, before, 1.0), 0.0) * p
    return x


@dataclass(frozen=True)
class Guesses:
    """All guesses for some columns.

    Attributes
    ----------
    ground
        The graph.
    values
        n × c, with mean 0 and variance 1 where seen, and 0 elsewhere.
    seen
        Which of them count.
    """

    ground: Ground
    values: FloatArray
    seen: Mask

    @cached_property
    def rounds(self) -> int:
        """Steps of conjugate gradients."""
        return 300 if self.ground.n <= 20_000 else 80

    @cached_property
    def L(self) -> csr_array:
        """The Laplacian."""
        return laplacian(self.ground.weights)

    def all(self) -> Iterator[tuple[str, FloatArray]]:
        """Guesses by name, one after the other."""
        yield "mean", np.zeros_like(self.values)
        yield from self.walks()
        trees = list(self.trees())
        yield from trees
        harmonic = self.harmonic(trees[0][1])
        yield "harmonic", harmonic
        x = harmonic
        for tau in (0.1, 1.0, 10.0):
            x = self.tikhonov(self.L, tau, x)
            yield f"tikhonov {tau}", x
        yield "biharmonic", self.biharmonic(0.0, harmonic)
        yield "biharmonic 1.0", self.biharmonic(1.0, harmonic)
        yield from self.spectral()
        yield from self.jumps(harmonic)
        yield from self.classes()
        yield "structure", self.structure()

    # ------------------------------------------------------------ smooth signals

    def harmonic(self, start: FloatArray) -> FloatArray:
        """Every node that was not seen is the mean of its neighbours."""
        x = np.where(self.seen, self.values, start)
        diagonal = np.where(self.seen, np.inf, np.maximum(self.L.diagonal(), 1e-12)[:, None])
        return solve(lambda p: self.L @ p, diagonal, np.zeros_like(x), x, self.rounds)

    def tikhonov(self, L: csr_array, tau: float, start: FloatArray) -> FloatArray:
        """The x of least Σ_seen (x − y)² + τ xᵀLx."""
        S = self.seen.astype(float)
        diagonal = np.maximum(S + tau * L.diagonal()[:, None], 1e-12)
        return solve(lambda p: S * p + tau * (L @ p), diagonal, S * self.values, start, self.rounds)

    def biharmonic(self, tau: float, start: FloatArray) -> FloatArray:
        """The x of least ‖L̃x‖², L̃ = D^-1/2 L, through what was seen; with τ, near it."""
        half = diags_array(np.maximum(self.L.diagonal(), 1e-12) ** -0.5) @ self.L
        both = csr_array(half.T @ half)
        if tau:
            return self.tikhonov(both, tau, start)
        x = np.where(self.seen, self.values, start)
        diagonal = np.where(self.seen, np.inf, np.maximum(both.diagonal(), 1e-12)[:, None])
        return solve(lambda p: both @ p, diagonal, np.zeros_like(x), x, self.rounds)

    def spectral(self) -> Iterator[tuple[str, FloatArray]]:
        """Gaussian regression on the smoothest vectors, with prior variances that fall with the frequency."""
        n = self.ground.n
        count = min(n, 128 if n <= 20_000 else 48)
        frequencies, U = lowest(self.ground, count)
        grams: list[FloatArray] = []
        sides: list[FloatArray] = []
        whole: FloatArray | None = None
        for c in range(self.values.shape[1] - 1, -1, -1):  # the last column sees what any other one does
            rows = U[self.seen[:, c]] if whole is None else U[self.seen[:, -1] & ~self.seen[:, c]]
            gram = rows.T @ rows if whole is None else whole - rows.T @ rows
            whole = gram if whole is None else whole
            grams.insert(0, gram)
            sides.insert(0, U.T @ self.values[:, c])
        A, b = np.stack(grams), np.stack(sides)
        for place in (3, 10, 30, 100):
            if place >= len(frequencies):
                continue
            for form in ("heat", "number"):
                level = max(float(frequencies[place]), 1e-12)
                fall = frequencies / level if form == "heat" else np.arange(len(frequencies)) / place
                prior = np.exp(-np.minimum(fall, 60.0))
                root = np.sqrt(prior * n / prior.sum())
                B = A * root[:, None] * root
                for noise in (1e-8, 1e-2, 0.1):
                    ridge = noise * np.eye(len(root))
                    a = np.linalg.solve(B + ridge, (root * b)[:, :, None])[:, :, 0] * root
                    yield f"spectrum {form} {place} {noise}", U @ a.T

    # -------------------------------------------------------------- local means

    def walks(self) -> Iterator[tuple[str, FloatArray]]:
        """Means of what was seen, by where a walker gets to: in one step, in two, or in any number of them."""
        W = self.ground.weights
        out = np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1e-12)
        P = csr_array(diags_array(1.0 / out) @ W)
        now = np.concatenate([self.values, self.seen.astype(float)], axis=1)
        half = self.values.shape[1]
        kernels = {alpha: np.zeros_like(now) for alpha in (0.5, 0.9)}
        for step in range(1, 31):
            now = P @ now
            for alpha in kernels:
                kernels[alpha] += alpha**step * now
            if step in (1, 2):
                yield f"walk {step}", now[:, :half] / (now[:, half:] + 0.1)
        for alpha, total in kernels.items():
            yield f"walks {alpha}", total[:, :half] / (total[:, half:] + 0.01)

    def trees(self) -> Iterator[tuple[str, FloatArray]]:
        """The mean over trees of what is expected of their leaves, if children differ from their parents by chance.

        On a tree, a child is its parent plus a normal number whose variance is a power of the parent's size, and what
        was seen is a leaf plus noise. Evidence goes up, expectations come down.
        """
        kinds = [(power, noise) for power in (0.5, 1.0) for noise in (1e-3, 0.1)]
        total = np.zeros((*self.values.shape, len(kinds)))
        for system in self.ground.frame:
            total += self._tree(system.hierarchy, np.array(kinds))
        total /= len(self.ground.frame)
        for i, (power, noise) in enumerate(kinds):
            yield f"trees {power} {noise}", np.ascontiguousarray(total[:, :, i])

    def _tree(self, tree: Hierarchy, kinds: FloatArray) -> FloatArray:
        """Of one tree, n × c × kinds."""
        power, noise = kinds.T
        below = [np.ones(1, np.int64)] * tree.K
        first = np.arange(tree.n + 1)
        firsts = [tree.first_child(j) for j in range(1, tree.K)]
        for j in range(tree.K - 1, 0, -1):
            first = first[firsts[j - 1]]
            below[j - 1] = np.diff(first)
        steps = [(below[j][:, None] / tree.n) ** power for j in range(tree.K - 1)]
        scale = sum(step.mean(axis=0) for step in steps)
        steps = [(step / scale)[:, None, :] for step in steps]
        precision = self.seen[tree.order][:, :, None] / noise
        mean = np.repeat(self.values[tree.order][:, :, None], len(kinds), axis=2)
        up = [(precision, mean)]
        for j in range(tree.K - 1, 0, -1):
            passed = precision / (1.0 + steps[j - 1][tree.parent(j)] * precision)
            precision = np.add.reduceat(passed, firsts[j - 1][:-1], axis=0)
            mean = np.add.reduceat(passed * mean, firsts[j - 1][:-1], axis=0) / np.maximum(precision, 1e-300)
            up.append((precision, mean))
        precision, mean = up.pop()
        x = precision * mean / (precision + 1.0)
        for j in range(1, tree.K):
            precision, mean = up.pop()
            parent = tree.parent(j)
            trust = steps[j - 1][parent] * precision
            x = (trust * mean + x[parent]) / (1.0 + trust)
        out: FloatArray = np.empty_like(x)
        out[tree.order] = x
        return out

    # -------------------------------------------------------------------- jumps

    def jumps(self, pilot: FloatArray) -> Iterator[tuple[str, FloatArray]]:
        """Smoothing along edges over which the signal hardly changes, by turns of weights and solutions.

        The weights w_ij (ε² + (x_i − x_j)²)^(p/2 − 1) lead to the least Σ w_ij |x_i − x_j|^p: with p = 1 the total
        variation, below that fewer and sharper jumps.
        """
        low, high = self.ground.ends
        if not len(low):
            return
        both = (np.tile(np.arange(len(low)), 2), np.concatenate([low, high]))
        D = csr_array((np.repeat([1.0, -1.0], len(low)), both), shape=(len(low), self.ground.n))
        back = csr_array(D.T)
        ends = abs(back)
        S = self.seen.astype(float)
        for p, tau in ((1.0, 0.0), (1.0, 0.3), (0.3, 0.0)):
            x = pilot
            for turn in range(6):
                eps = 0.3 * 0.6**turn
                W = self.ground.values[:, None] * (eps**2 + (D @ x) ** 2) ** (p / 2.0 - 1.0)
                if tau:
                    W *= tau
                    apply = lambda z, W=W: S * z + back @ (W * (D @ z))  # noqa: E731
                    diagonal, right = np.maximum(S + ends @ W, 1e-12), S * self.values
                else:
                    apply = lambda z, W=W: back @ (W * (D @ z))  # noqa: E731
                    diagonal = np.where(self.seen, np.inf, np.maximum(ends @ W, 1e-12))
                    right, x = np.zeros_like(x), np.where(self.seen, self.values, x)
                x = solve(apply, diagonal, right, x, max(self.rounds // 10, 15))
            yield f"jumps {p} {tau}", x

    # --------------------------------------------------------------- few values

    def classes(self) -> Iterator[tuple[str, FloatArray]]:
        """Where values come in a few heaps: which heap a node belongs to, by its neighbours' (mean field)."""
        heaps = _heaps(self.values[self.seen[:, -1], -1])
        if heaps is None:
            return
        centres, width = heaps
        n, c = self.values.shape
        k = len(centres)
        nearness = -0.5 * ((self.values[:, :, None] - centres) / width) ** 2
        given = np.exp(nearness - nearness.max(axis=2, keepdims=True))
        given /= given.sum(axis=2, keepdims=True)
        shares = (given * self.seen[:, :, None]).sum(axis=0) / self.seen.sum(axis=0)[:, None]
        W = self.ground.weights
        out = np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1e-12)
        P = csr_array(diags_array(1.0 / out) @ W)
        known = self.seen[:, :, None]
        start = np.where(known, given, shares)
        for _ in range(40):
            start = np.where(known, given, (P @ start.reshape(n, -1)).reshape(n, c, k))
        for sharp in (2.0, 4.0):
            q = (start + 1e-6) ** sharp
            yield f"classes {sharp}", (q / q.sum(axis=2, keepdims=True)) @ centres
        pull = 2.0 * np.sqrt(self.ground.degrees)[:, None, None]
        doubted = np.where(known, np.log(0.7 * given + 0.3 / k), 0.0)
        for name, evidence in (("classes", None), ("classes doubted", doubted)):
            q = start
            for _ in range(20):
                field = pull * (P @ q.reshape(n, -1)).reshape(n, c, k)
                if evidence is not None:
                    field += evidence
                field = np.exp(field - field.max(axis=2, keepdims=True))
                field /= field.sum(axis=2, keepdims=True)
                q = np.where(known, given, field) if evidence is None else field
            yield name, q @ centres

    # ---------------------------------------------------------------- structure

    def structure(self) -> FloatArray:
        """Regression on what nodes are: how many neighbours they have, and these have."""
        degrees = np.log1p(self.ground.degrees)
        strengths = np.log1p(np.asarray(self.ground.weights.sum(axis=1)).ravel())
        around = (self.ground.adjacency @ degrees) / np.maximum(self.ground.degrees, 1.0)
        further = (self.ground.adjacency @ around) / np.maximum(self.ground.degrees, 1.0)
        columns = [degrees, strengths, around, further, self.ground.degrees]
        X = np.stack([*columns, *(c**2 for c in columns[:3]), *(np.exp(-c) for c in columns[:3])], axis=1)
        X = X - X.mean(axis=0)
        X /= np.maximum(X.std(axis=0), 1e-9)
        X = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        found = np.empty_like(self.values)
        for c in range(self.values.shape[1]):
            rows = X[self.seen[:, c]]
            found[:, c] = X @ np.linalg.solve(
                rows.T @ rows + 0.1 * np.eye(X.shape[1]), rows.T @ self.values[self.seen[:, c], c]
            )
        return np.clip(found, self.values.min(), self.values.max())


def _heaps(v: FloatArray, most: int = 10) -> tuple[FloatArray, float] | None:
    """Centres and common width of the heaps that values come in, or None where they do not."""
    found = np.unique(np.round(v, 9))
    if 1 < len(found) <= 2 * most and len(found) * 3 <= len(v):
        return found, max(0.1 * float(np.diff(found).min(initial=1.0)), 1e-6)
    y = np.sort(v)
    if len(y) > 4000:
        y = y[np.linspace(0, len(y) - 1, 4000).astype(np.int64)]
    n = len(y)
    best: tuple[float, FloatArray, float] = (np.inf, y[:1], 1.0)
    for k in range(1, min(most, n // 5) + 1):
        cuts = np.sort(np.argsort(-np.diff(y), kind="stable")[: k - 1]) + 1
        for start in (np.array([part.mean() for part in np.split(y, cuts)]), np.quantile(y, (np.arange(k) + 0.5) / k)):
            centres, shares, variance = start, np.full(k, 1.0 / k), float(np.var(y)) / k**2 + 1e-12
            for _ in range(30):
                e = np.log(shares) - 0.5 * (y[:, None] - centres) ** 2 / variance
                high = e.max(axis=1, keepdims=True)
                parts = np.exp(e - high)
                whole = parts.sum(axis=1, keepdims=True)
                parts /= whole
                sizes = parts.sum(axis=0) + 1e-9
                shares, centres = sizes / sizes.sum(), y @ parts / sizes
                variance = float(np.sum(parts * (y[:, None] - centres) ** 2)) / n + 1e-9
            cost = -2.0 * float(np.sum(high + np.log(whole))) + n * np.log(variance) + 2 * k * np.log(n)
            if cost < best[0]:
                best = (cost, centres, float(np.sqrt(variance)))
    _, centres, width = best
    return (centres, width) if len(centres) > 1 and width < 0.3 else None
