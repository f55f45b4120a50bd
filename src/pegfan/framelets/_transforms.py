"""The fast transforms: the recursions (1) and (2) of the paper on coefficients, one level at a time.

`Transforms` writes them as products with the small sparse matrices P_j and B_j of a level, for any kind of
array that such a matrix multiplies. `CompiledTransforms` runs the same recursions for dense NumPy arrays as
loops over clusters. No framelet is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pegfan._arrays import LINE, IntArray, aligned
from pegfan.framelets import _kernels
from pegfan.framelets._levels import Level, starts

_LARGE = 16 * 2**20  # results of more bytes than this are written past the caches


class Transforms:
    """Transforms of signals in rows, by sparse products.

    They take the levels 1, ..., K−1, the node on every leaf, and three functions for the kind of array: one
    converts a SciPy matrix so that it multiplies them, one stacks them, one converts an index array.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        order: IntArray,
        convert: Callable[[Any], Any],
        concatenate: Callable[[list[Any]], Any],
        index: Callable[[Any], Any] = np.asarray,
    ) -> None:
        self.levels, self.concatenate = levels, concatenate
        self.K = len(levels) + 1
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        self.order, self.place = index(order), index(place)
        self._convert = convert
        self._matrices: dict[tuple[str, int], Any] = {}

    def matrix(self, name: str, j: int) -> Any:
        """P, B or a transpose ("Pt", "Bt") of level j, converted once."""
        if (name, j) not in self._matrices:
            matrix = getattr(self.levels[j - 1], name[0])
            self._matrices[name, j] = self._convert(matrix.T.tocsr() if name.endswith("t") else matrix)
        return self._matrices[name, j]

    def decompose(self, x: Any, j0: int, out: Any = None) -> Any:
        """All coefficients, those of level j0 first."""
        x = x[self.order]
        parts = []
        for j in range(self.K - 1, j0 - 1, -1):
            parts.append(self.matrix("B", j) @ x)
            x = self.matrix("P", j) @ x
        return _into(out, self.concatenate([x, *reversed(parts)]))

    def reconstruct(self, c: Any, j0: int, out: Any = None) -> Any:
        """The signal from all coefficients; also the transpose of `decompose`."""
        end = len(self.order) if j0 == self.K else self.levels[j0 - 1].n_scaling
        x = c[:end]
        for j in range(j0, self.K):
            start, end = end, end + int(self.levels[j - 1].n_framelets.sum())
            x = self.matrix("Pt", j) @ x + self.matrix("Bt", j) @ c[start:end]
        return _into(out, x[self.place])

    def average(self, x: Any, j: int) -> Any:
        """Φ_j x: the scaling coefficients of level j."""
        x = x[self.order]
        for i in range(self.K - 1, j - 1, -1):
            x = self.matrix("P", i) @ x
        return x

    def lift(self, x: Any, j: int) -> Any:
        """Φ_jᵀ x."""
        for i in range(j, self.K):
            x = self.matrix("Pt", i) @ x
        return x[self.place]

    def framelet(self, x: Any, j: int) -> Any:
        """Ψ_j x."""
        return self.matrix("B", j) @ self.average(x, j + 1)

    def framelet_adjoint(self, y: Any, j: int) -> Any:
        """Ψ_jᵀ y."""
        return self.lift(self.matrix("Bt", j) @ y, j + 1)

    def projections(self, x: Any, scales: Sequence[int], out: Sequence[Any] | None = None) -> list[Any]:
        """F_j x for the given scales; F_0 = Φ_1ᵀΦ_1, F_j = Ψ_jᵀΨ_j = Φ_(j+1)ᵀ (I − p pᵀ) Φ_(j+1)."""
        averages = {self.K: x[self.order]}
        for j in range(self.K - 1, max(min(scales), 1) - 1, -1):
            averages[j] = self.matrix("P", j) @ averages[j + 1]
        parts = (
            self.lift(averages[j + 1] - self.matrix("Pt", j) @ averages[j], j + 1) if j else self.lift(averages[1], 1)
            for j in scales
        )
        return [_into(None if out is None else out[k], part) for k, part in enumerate(parts)]


class CompiledTransforms(Transforms):
    """The same for dense NumPy arrays, compiled; results may be written into arrays that exist already."""

    def __init__(self, levels: Sequence[Level], order: IntArray, dtype: np.dtype[Any]) -> None:
        super().__init__(levels, order, lambda matrix: matrix.astype(dtype), np.concatenate)
        self.dtype = dtype
        identity = bool((order[1:] > order[:-1]).all())
        self._rows, self._slots = order[:0] if identity else order, order[:0]
        self._p = [level.p.astype(dtype) for level in levels]
        self._pairs = all(level.pairs for level in levels)
        self._begun: dict[int, tuple[Any, int, int]] = {}

    @cached_property
    def _chain(self) -> tuple[Any, Any, Any, Any]:
        """What the loops over all levels read, the finest first: offsets, weights, the table, framelets per level."""
        levels = self.levels[::-1]
        table = np.zeros((len(levels), 5), np.int64)
        table[:, _kernels.FIRST] = starts([len(level.first) for level in levels])
        table[:, _kernels.WEIGHTS] = starts([len(level.p) for level in levels])
        table[:, _kernels.ROOM] = starts([int(level.n_children.max()) for level in levels])
        table[:, _kernels.CLUSTERS] = [len(level.n_children) for level in levels]
        counts = np.array([level.n_framelets.sum() for level in levels])
        return np.concatenate([level.first for level in levels]), np.concatenate(self._p[::-1]), table, counts

    def _from(self, j0: int) -> tuple[Any, int, int]:
        """The table of the levels K−1, ..., j0; how many coefficients there are; and how many rows of room."""
        if j0 not in self._begun:
            _, _, table, counts = self._chain
            table, counts = table[: self.K - j0].copy(), counts[: self.K - j0]
            total = table[-1, _kernels.CLUSTERS] + counts.sum()
            table[:, _kernels.FRAMELETS] = total - np.cumsum(counts)
            rows = table[-1, _kernels.ROOM] + self.levels[j0 - 1].n_children.max() + 1
            self._begun[j0] = table, int(total), int(rows)
        return self._begun[j0]

    def _room(self, j0: int, columns: int) -> tuple[Any, Any]:
        """Memory to work in: children of one cluster per level, and two numbers per level."""
        table, _, rows = self._from(j0)
        return np.empty((rows, columns), self.dtype), np.empty(2 * len(table), np.int64)

    def decompose(self, x: Any, j0: int, out: Any = None) -> Any:
        if not self._pairs or j0 == self.K:
            return super().decompose(x, j0, out)
        first, p, _, _ = self._chain
        table, total, _ = self._from(j0)
        if out is None:
            out = aligned((total, x.shape[1]), self.dtype)
        room = self._room(j0, x.shape[1])
        _kernels.decompose(first, p, table, np.ascontiguousarray(x), self._rows, out, *room, _streams(out))
        return out

    def reconstruct(self, c: Any, j0: int, out: Any = None) -> Any:
        if not self._pairs or j0 == self.K:
            return super().reconstruct(c, j0, out)
        first, p, _, _ = self._chain
        table, _, _ = self._from(j0)
        room = self._room(j0, c.shape[1])
        if out is None:
            out = aligned((len(self.order), c.shape[1]), self.dtype)
        _kernels.reconstruct(first, p, table, np.ascontiguousarray(c), out, self._rows, *room, self._streams(out))
        return out

    def average(self, x: Any, j: int) -> Any:
        if j == self.K:
            return x[self.order]
        scaling = self._scratch(x.shape[1])
        self._average_into(scaling, np.ascontiguousarray(x), j)
        return scaling[j].copy()

    def lift(self, x: Any, j: int) -> Any:
        out = aligned((len(self.order), x.shape[1]), self.dtype)
        leaf, weight = np.arange(len(self.order) + 1), np.ones(len(self.order), self.dtype)
        for i in range(self.K - 1, j - 1, -1):
            weight, leaf = self._climb(weight, leaf, i)
        _kernels.lift(leaf, weight, np.ascontiguousarray(x), out, self._rows, self._streams(out))
        return out

    def projections(self, x: Any, scales: Sequence[int], out: Sequence[Any] | None = None) -> list[Any]:
        x = np.ascontiguousarray(x)
        results = list(out) if out is not None else [aligned(x.shape, self.dtype) for _ in scales]
        wanted = dict(zip(scales, results, strict=True))
        lowest = max(min(scales), 1)
        leaf, weight = np.arange(len(self.order) + 1), np.ones(len(self.order), self.dtype)
        scaling = self._scratch(x.shape[1])
        self._average_into(scaling, x, lowest)
        fine, rows_of_fine = x, self._rows
        for j in range(self.K - 1, lowest - 1, -1):
            first, p = self.levels[j - 1].first, self._p[j - 1]
            if j in wanted:
                target = wanted[j]
                _kernels.detail(
                    *(first, p, leaf, weight, fine, rows_of_fine, scaling[j]),
                    *(target, self._rows, self._streams(target)),
                )
            weight, leaf = self._climb(weight, leaf, j)
            fine, rows_of_fine = scaling[j], self._slots
        if 0 in wanted:
            target = wanted[0]
            _kernels.lift(leaf, weight, fine, target, self._rows, self._streams(target))
        return results

    def _average_into(self, scaling: dict[int, Any], x: Any, j: int) -> None:
        """Φ_i x into scaling[i] for the levels i = K−1, ..., j."""
        rows = self._rows
        for i in range(self.K - 1, j - 1, -1):
            _kernels.average(self.levels[i - 1].first, self._p[i - 1], x, rows, scaling[i])
            x, rows = scaling[i], self._slots

    def _climb(self, weight: Any, leaf: Any, j: int) -> tuple[Any, Any]:
        """From level j + 1 to j: the value of φ on every leaf, and the offsets of each cluster's leaves."""
        return weight * np.repeat(self._p[j - 1], np.diff(leaf)), leaf[self.levels[j - 1].first]

    def _streams(self, out: Any) -> bool:
        return _streams(out, scattered=len(self._rows) > 0)

    def _scratch(self, columns: int) -> dict[int, Any]:
        """Room for scaling coefficients of the levels 1, ..., K−1."""
        ends = np.cumsum([0, *(len(level.n_children) for level in self.levels)]).tolist()
        table = np.empty((ends[-1], columns), self.dtype)
        return {j: table[ends[j - 1] : ends[j]] for j in range(1, self.K)}


def _streams(out: Any, scattered: bool = False) -> bool:
    """Whether results may be written past the caches; scattered rows must not share a cache line."""
    alignment = LINE if scattered else 16
    return bool(out.nbytes > _LARGE and out.ctypes.data % alignment == 0 and out.strides[0] % LINE == 0)


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out
