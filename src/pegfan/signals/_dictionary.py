"""What signals on a graph are written in: nodes, framelets and clusters of many trees, and the smoothest vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, vstack

from pegfan._arrays import FloatArray, IntArray
from pegfan.framelets.coefficients import Coefficients
from pegfan.framelets.system import FrameletSystem
from pegfan.graph import Graph
from pegfan.signals._bank import laplacian
from pegfan.signals._ground import KEPT, Ground
from pegfan.signals._spectrum import bound, modes

__all__ = ["Dictionary"]

_SMALL = 5_500
"""Nodes up to which the eigenvectors of the Laplacian are atoms, from a dense matrix."""
_MIDDLE = 20_000
"""Nodes up to which clusters are atoms as well, of explicit matrices."""
_LARGE = 200_000
"""Nodes beyond which there are four trees, and fewer tries."""
_STEPS = 1_200
"""Atoms that are chosen one by one; the others are framelets of one tree."""
_WORK = 1e10
"""Multiplications that these may take."""


@dataclass(frozen=True)
class Block:
    """Atoms that are orthonormal, or nearly: how a signal is taken apart by them, and put together."""

    size: int
    analyse: Callable[[FloatArray], FloatArray]
    compose: Callable[[FloatArray], FloatArray]


class Dictionary:
    """Unit vectors, numbered: where a signal is a few of them, their numbers and amounts are all there is to keep.

    First the nodes; then for every tree its framelets and, level by level, its clusters; then the lowest quarter of the
    eigenvectors of the Laplacian. Beyond 20,000 nodes clusters are left out, beyond 5,500 eigenvectors; there, clusters
    of the first tree are blurred by as many steps (I − L/λ)^m as their size suggests, and stand for smooth signals.
    """

    def __init__(self, graph: Graph) -> None:
        n = graph.n
        self.ground = Ground.of(graph, 16 if n <= _MIDDLE else 8 if n <= _LARGE else 4)
        self.n = n
        self._trees: list[int] = []
        """The blocks of framelets."""

    @classmethod
    def of(cls, graph: Graph) -> Dictionary:
        """The one of a graph, made once, as long as it is among the last few."""
        return _made(graph)

    @cached_property
    def blocks(self) -> list[Block]:
        """All atoms, in blocks."""
        n = self.n
        found = [Block(n, lambda f: f, lambda c: c)]
        for system in self.ground.frame:
            self._trees.append(len(found))
            found.append(_framelets(system))
            if n <= _MIDDLE:
                found += [_matrix(system.scaling(j)) for j in range(2, system.K)]
        if n <= _SMALL:
            vectors = self._modes
            found.append(Block(vectors.shape[1], lambda f: vectors.T @ f, lambda c: vectors @ c))
        else:
            found += self._blurred()
        return found

    @cached_property
    def starts(self) -> IntArray:
        """The first atom of every block, and the number of all."""
        return np.cumsum([0, *(block.size for block in self.blocks)])

    def compose(self, places: IntArray, values: FloatArray) -> FloatArray:
        """The signal of some atoms."""
        total = np.zeros(self.n)
        for block, start, end in zip(self.blocks, self.starts, self.starts[1:], strict=False):
            own = (places >= start) & (places < end)
            if own.any():
                total += block.compose(np.bincount(places[own] - start, values[own], block.size).astype(np.float64))
        return total

    def approximate(self, f: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """At most so many atoms and their amounts that come near to a signal."""
        if count >= self.n:
            return np.arange(self.n), f.copy()
        tries = []
        if self.n <= _MIDDLE:
            tries.append(self._one_by_one(f, count, 1.0))
        if self.n <= _SMALL:
            # Greed prefers a large cluster to the several eigenvectors that smooth signals are made of.
            smooth = self._smoothest(f, count)
            if self._error(f, smooth) < 3.0 * self._error(f, tries[0]):
                tries += [smooth, self._one_by_one(f, count, 0.1)]
        else:
            tries.append(self._in_a_tree(f, np.empty(0, np.int64), count))
            for part in (16, 4) if self.n <= _LARGE else (16,):
                tries.append(self._in_a_tree(f, self._blurs(f, count // part), count))
        found = min(tries, key=lambda one: self._error(f, one))
        return found[0], self._refit(f, *found)[0]  # down to rounding, where all of the signal was found

    # ------------------------------------------------------------------- inside

    @cached_property
    def _sparse(self) -> csr_array:
        """The atoms of nodes and trees in rows."""
        parts: list[Any] = [eye_array(self.n, format="csr")]
        for system in self.ground.frame:
            parts += [system.matrix(), *(system.scaling(j) for j in range(2, system.K))]
        return csr_array(vstack(parts, format="csr"))

    def _error(self, f: FloatArray, found: tuple[IntArray, FloatArray]) -> float:
        return float(np.linalg.norm(f - self.compose(*found)))

    @cached_property
    def _modes(self) -> FloatArray:
        """Eigenvectors, the lowest quarter of them; none on larger graphs."""
        if self.n > _SMALL:
            return np.empty((self.n, 0))
        return np.asfortranarray(modes(self.ground, max(self.n // 4, min(self.n, 100)))[1])

    def _smoothest(self, f: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """The largest coefficients in the Fourier basis."""
        c = self._modes.T @ f
        best = np.sort(np.argsort(-np.abs(c), kind="stable")[:count])
        return self._sparse.shape[0] + best, c[best]

    def _one_by_one(self, f: FloatArray, count: int, share: float) -> tuple[IntArray, FloatArray]:
        """Orthogonal least squares: always the atom that leaves the least; what trees explain counts by a `share`.

        With residual r and the atoms d less what is chosen already, e = ‖d⊥‖², c = ⟨d⊥, r⟩, that is the largest c²/e. A
        new direction q changes c by −⟨q, r⟩⟨d, q⟩ and e by −⟨d, q⟩²: one product with all atoms per step.
        """
        D, U = self._sparse, self._modes
        m, norm = D.shape[0], float(np.linalg.norm(f))
        steps = int(min(count, _STEPS, max(_WORK / (D.nnz + U.size), 1)))
        weight = np.concatenate([np.full(m, share), np.ones(U.shape[1])])
        c, e = np.concatenate([D @ f, U.T @ f]), np.ones(m + U.shape[1])
        Q, r, chosen = np.empty((steps, self.n)), f, np.empty(0, np.int64)
        while (i := len(chosen)) < steps and np.linalg.norm(r) > 1e-15 * norm:
            place = int(np.where(e > 1e-4, weight * c * c / np.maximum(e, 1e-4), -1.0).argmax())
            q = U[:, place - m] if place >= m else D[[place]].toarray()[0]
            for _ in range(2):
                q = q - Q[:i].T @ (Q[:i] @ q)
            q /= np.linalg.norm(q)
            Q[i], step = q, float(q @ r)
            r = r - step * q
            moved = np.concatenate([D @ q, U.T @ q])
            c -= step * moved
            e -= moved * moved
            chosen = np.append(chosen, place)
        if len(chosen) == steps < count:
            return self._in_a_tree(f, chosen, count)
        chosen = np.sort(chosen)
        atoms = np.concatenate([D[chosen[chosen < m]].toarray(), U[:, chosen[chosen >= m] - m].T])
        return chosen, np.linalg.lstsq(atoms.T, f, rcond=None)[0]

    def _in_a_tree(self, f: FloatArray, places: IntArray, count: int) -> tuple[IntArray, FloatArray]:
        """More atoms: of what these leave, the largest coefficients in framelets of the tree that has most of it."""
        values, r = self._refit(f, places, np.zeros(len(places)), 20)
        used = np.zeros(int(self.starts[-1]), bool)
        used[places] = True
        best, found = -1.0, (places, values)
        for b in self._trees:
            start, end = self.starts[b : b + 2]
            c = np.where(used[start:end], 0.0, self.blocks[b].analyse(r))
            top = np.sort(np.argsort(-np.abs(c), kind="stable")[: count - len(places)])
            if float(c[top] @ c[top]) > best * (1.0 + 1e-9):
                best = float(c[top] @ c[top])
                found = (np.concatenate([places, top + start]), np.concatenate([values, c[top]]))
        return found[0], self._refit(f, *found, 20)[0]

    def _blurs(self, f: FloatArray, count: int) -> IntArray:
        """So many blurred clusters, in a few turns: the largest coefficients of what is left, of the best level."""
        places, values, r = np.empty(0, np.int64), np.empty(0), f
        first = self._trees[-1] + 1
        for turn in range(4):
            wanted = (count - len(places)) // (4 - turn)
            best, found = -1.0, (places[:0], values[:0])
            for b in range(first, len(self.blocks)):
                c = self.blocks[b].analyse(r)
                c[places[(places >= self.starts[b]) & (places < self.starts[b + 1])] - self.starts[b]] = 0.0
                top = np.sort(np.argsort(-np.abs(c), kind="stable")[:wanted])
                if float(c[top] @ c[top]) > best * (1.0 + 1e-9):
                    best, found = float(c[top] @ c[top]), (top + self.starts[b], c[top])
            places, values = np.concatenate([places, found[0]]), np.concatenate([values, found[1]])
            values, r = self._refit(f, places, values)
        return places

    def _refit(
        self, f: FloatArray, places: IntArray, values: FloatArray, rounds: int = 6
    ) -> tuple[FloatArray, FloatArray]:
        """Nearer to the least squares on these atoms, by conjugate gradients; the amounts and the residual."""
        owners = np.searchsorted(self.starts, places, side="right") - 1

        def analysed(x: FloatArray) -> FloatArray:
            out = np.empty(len(places))
            for b in np.unique(owners):
                own = owners == b
                out[own] = self.blocks[b].analyse(x)[places[own] - self.starts[b]]
            return out

        r = f - self.compose(places, values)
        g = analysed(r)
        p, size = g, float(g @ g)
        for _ in range(rounds):
            if size <= 1e-32 * float(f @ f):
                break
            moved = self.compose(places, p)
            step = size / max(float(moved @ moved), 1e-300)
            values, r = values + step * p, r - step * moved
            g = analysed(r)
            before, size = size, float(g @ g)
            p = g + (size / before) * p
        return values, r

    def _blurred(self) -> list[Block]:
        """Clusters of the first tree, blurred."""
        system = self.ground.frame[0]
        L = laplacian(self.ground.weights)
        top = bound(L, self.ground)
        found = []
        for j in range(2, system.K):
            size = self.n / system.hierarchy.n_clusters[j - 1]
            if 2 <= size <= 64:
                found.append(_Blur(L, top, system, j, round(2 * size)).block())
        return found


@dataclass(frozen=True)
class _Blur:
    """The scaling vectors of a level after m steps of diffusion, divided by an estimate of their norm."""

    L: csr_array
    top: float
    system: FrameletSystem
    level: int
    steps: int

    def blur(self, x: FloatArray) -> FloatArray:
        for _ in range(self.steps):
            x = x - (self.L @ x) / self.top
        return x

    def block(self) -> Block:
        down = self.system.operator("scaling", self.level)
        # Every cluster's share of nodes is blurred as the cluster is: a norm that is exact where the graph is regular.
        signs = np.random.default_rng(0).integers(0, 2, (self.system.n, 4)) * 2.0 - 1.0
        ordered = np.empty_like(signs)
        ordered[self.system.hierarchy.order] = signs
        norms = np.maximum(np.sqrt(np.mean((down @ self.blur(ordered)) ** 2, axis=1)), 0.05)
        norms = np.full(len(norms), float(np.sqrt(np.mean(norms**2))))
        return Block(len(norms), lambda f: (down @ self.blur(f)) / norms, lambda c: self.blur(down.T @ (c / norms)))


def _framelets(system: FrameletSystem) -> Block:
    return Block(
        system.count(),
        lambda f: system.decompose(f).array,
        lambda c: system.reconstruct(Coefficients(c, system, 1)),
    )


def _matrix(rows: csr_array) -> Block:
    return Block(rows.shape[0], lambda f: rows @ f, lambda c: rows.T @ c)


@lru_cache(maxsize=KEPT)
def _made(graph: Graph) -> Dictionary:
    return Dictionary(graph)
