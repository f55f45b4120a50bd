"""The fast transforms: the recursions (1) and (2) of the paper on coefficients, one level at a time.

`Transforms` writes them as products with the small sparse matrices P_j and B_j of a level, for any kind of
array that such a matrix multiplies. `CompiledTransforms` runs the same recursions for dense NumPy arrays as
loops over clusters. No framelet is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan.framelets._levels import Level

_LARGE = 16 * 2**20
"""Results of more bytes than this are written past the caches."""

_LINE = 64  # bytes of a cache line


class Transforms:
    """Transforms of signals in rows, by sparse products.

    Parameters
    ----------
    levels
        Levels 1, ..., K−1.
    order
        The node on every leaf.
    convert
        From a SciPy matrix to one that multiplies the arrays at hand.
    concatenate
        Stacks the arrays at hand.
    index
        From a NumPy index array to one that indexes the arrays at hand.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        order: NDArray[np.int64],
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

    def decompose(self, x: Any, j0: int) -> Any:
        """All coefficients, those of level j0 first."""
        x = x[self.order]
        parts = []
        for j in range(self.K - 1, j0 - 1, -1):
            parts.append(self.matrix("B", j) @ x)
            x = self.matrix("P", j) @ x
        return self.concatenate([x, *reversed(parts)])

    def reconstruct(self, c: Any, j0: int) -> Any:
        """The signal from all coefficients; also the transpose of `decompose`."""
        end = len(self.order) if j0 == self.K else len(self.levels[j0 - 1].n_children)
        x = c[:end]
        for j in range(j0, self.K):
            start, end = end, end + int(self.levels[j - 1].n_framelets.sum())
            x = self.matrix("Pt", j) @ x + self.matrix("Bt", j) @ c[start:end]
        return x[self.place]

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

    def projections(self, x: Any, scales: Sequence[int]) -> list[Any]:
        """F_j x for the given scales; F_0 = Φ_1ᵀΦ_1, F_j = Ψ_jᵀΨ_j = Φ_(j+1)ᵀ (I − p pᵀ) Φ_(j+1)."""
        averages = {self.K: x[self.order]}
        for j in range(self.K - 1, max(min(scales), 1) - 1, -1):
            averages[j] = self.matrix("P", j) @ averages[j + 1]
        return [
            self.lift(averages[j + 1] - self.matrix("Pt", j) @ averages[j], j + 1) if j else self.lift(averages[1], 1)
            for j in scales
        ]


class CompiledTransforms(Transforms):
    """The same for dense NumPy arrays, compiled; results may be written into arrays that exist already."""

    def __init__(self, levels: Sequence[Level], order: NDArray[np.int64], dtype: np.dtype[Any]) -> None:
        super().__init__(levels, order, lambda matrix: matrix.astype(dtype), np.concatenate)
        self.dtype = dtype
        identity = bool((order[1:] > order[:-1]).all())
        self._rows = (order[:0] if identity else order).view(np.uint64)
        self._slots = order[:0].view(np.uint64)
        self._first = [level.first.view(np.uint64) for level in levels]
        self._p = [level.p.astype(dtype) for level in levels]
        self._pairs = all(level.pairs for level in levels)

    def decompose(self, x: Any, j0: int, out: Any = None) -> Any:
        if not self._pairs:
            return _into(out, super().decompose(x, j0))
        from pegfan.framelets import _kernels

        counts = [int(level.n_framelets.sum()) for level in self.levels]
        top = len(self.order) if j0 == self.K else len(self.levels[j0 - 1].n_children)
        if out is None:
            out = empty((top + sum(counts[j0 - 1 :]), x.shape[1]), self.dtype)
        if j0 == self.K:
            return _into(out, x[self.order])
        x, rows, end, streaming = np.ascontiguousarray(x), self._rows, len(out), _streams(out)
        for j in range(self.K - 1, j0 - 1, -1):
            start = end - counts[j - 1]
            up = out[:top] if j == j0 else empty((len(self._first[j - 1]) - 1, x.shape[1]), self.dtype)
            _kernels.analyse(self._first[j - 1], self._p[j - 1], x, rows, up, out[start:end], streaming)
            x, rows, end = up, self._slots, start
        return out

    def reconstruct(self, c: Any, j0: int, out: Any = None) -> Any:
        if not self._pairs or j0 == self.K:
            return _into(out, super().reconstruct(c, j0))
        from pegfan.framelets import _kernels

        if out is None:
            out = empty((len(self.order), c.shape[1]), self.dtype)
        c = np.ascontiguousarray(c)
        end = len(self._first[j0 - 1]) - 1
        x = c[:end]
        for j in range(j0, self.K):
            start, end = end, end + int(self.levels[j - 1].n_framelets.sum())
            last = j == self.K - 1
            below = out if last else empty((len(self._p[j - 1]), c.shape[1]), self.dtype)
            rows = self._rows if last else self._slots
            _kernels.synthesise(
                self._first[j - 1], self._p[j - 1], x, c[start:end], below, rows, last and self._streams(out)
            )
            x = below
        return out

    def average(self, x: Any, j: int) -> Any:
        return self._averages(np.ascontiguousarray(x), j)[j] if j < self.K else x[self.order]

    def lift(self, x: Any, j: int) -> Any:
        from pegfan.framelets import _kernels

        out = empty((len(self.order), x.shape[1]), self.dtype)
        leaf, weight = self._leaves(j)
        _kernels.lift(leaf, weight, np.ascontiguousarray(x), out, self._rows, self._streams(out))
        return out

    def projections(self, x: Any, scales: Sequence[int], out: Sequence[Any] | None = None) -> list[Any]:
        from pegfan.framelets import _kernels

        x = np.ascontiguousarray(x)
        results = list(out) if out is not None else [empty(x.shape, self.dtype) for _ in scales]
        averages = self._averages(x, max(min(scales), 1))
        leaf, weight = np.arange(len(self.order) + 1), np.ones(len(self.order), self.dtype)
        wanted = dict(zip(scales, results, strict=True))
        for j in range(self.K - 1, 0, -1):
            first, p = self._first[j - 1], self._p[j - 1]
            if j in wanted:
                rows_of_x = self._rows if j + 1 == self.K else self._slots
                streaming = self._streams(wanted[j])
                _kernels.detail(
                    first,
                    p,
                    leaf.view(np.uint64),
                    weight,
                    averages[j + 1],
                    rows_of_x,
                    averages[j],
                    wanted[j],
                    self._rows,
                    streaming,
                )
            weight, leaf = weight * np.repeat(p, np.diff(leaf)), leaf[self.levels[j - 1].first]
        if 0 in wanted:
            top = averages[1] if self.K > 1 else x
            _kernels.lift(leaf.view(np.uint64), weight, top, wanted[0], self._rows, self._streams(wanted[0]))
        return results

    def _streams(self, out: Any) -> bool:
        return _streams(out, scattered=len(self._rows) > 0)

    def _averages(self, x: Any, j: int) -> dict[int, Any]:
        from pegfan.framelets import _kernels

        averages, rows = {self.K: x}, self._rows
        for i in range(self.K - 1, j - 1, -1):
            averages[i] = empty((len(self._first[i - 1]) - 1, x.shape[1]), self.dtype)
            _kernels.average(self._first[i - 1], self._p[i - 1], averages[i + 1], rows, averages[i])
            rows = self._slots
        return averages

    def _leaves(self, j: int) -> tuple[Any, Any]:
        """Offsets of the leaves of level j's clusters, and the value of φ on every leaf."""
        leaf, weight = np.arange(len(self.order) + 1), np.ones(len(self.order), self.dtype)
        for i in range(self.K - 1, j - 1, -1):
            weight, leaf = weight * np.repeat(self._p[i - 1], np.diff(leaf)), leaf[self.levels[i - 1].first]
        return leaf.view(np.uint64), weight


def empty(shape: tuple[int, int], dtype: np.dtype[Any]) -> Any:
    """An array that starts on a cache line, as streamed stores need."""
    size = shape[0] * shape[1] * dtype.itemsize
    raw = np.empty(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def _streams(out: Any, scattered: bool = False) -> bool:
    """Whether results may be written past the caches; scattered rows must not share a cache line."""
    alignment = _LINE if scattered else 16
    return bool(out.nbytes > _LARGE and out.ctypes.data % alignment == 0 and out.strides[0] % _LINE == 0)


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out
