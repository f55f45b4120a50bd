"""The fast transforms: the recursions (1) and (2) of the paper on coefficients, one level at a time.

`Transforms` writes them as products with the small sparse matrices P_j and B_j of a level, for any kind of
array that such a matrix multiplies. `CompiledTransforms` runs the same recursions for dense NumPy arrays as
loops over clusters in C. No framelet is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from pegfan._arrays import LINE, IntArray, aligned
from pegfan.framelets import _kernels
from pegfan.framelets._levels import Level, starts
from pegfan.framelets._signals import as_columns, is_tensor, stack_rows

_STREAMED_BYTES = 16 * 2**20
"""Results of more bytes than this are written past the caches."""


class Transforms:
    """Transforms of signals in rows, by sparse products.

    Parameters
    ----------
    levels
        The levels 1, ..., K−1.
    order
        The node on every leaf.
    convert, index
        Make of a SciPy matrix one that multiplies the signals, and of numbers of rows what takes these rows of them.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        order: IntArray,
        convert: Callable[[Any], Any],
        index: Callable[[Any], Any] = np.asarray,
    ) -> None:
        self.levels, self.convert, self.K = levels, convert, len(levels) + 1
        leaf = np.empty(len(order), np.int64)
        leaf[order] = np.arange(len(order))
        self.order, self.leaf = index(order), index(leaf)
        self._matrices: dict[tuple[str, int], Any] = {}

    def decompose(self, x: Any, j0: int, out: Any = None) -> Any:
        """All coefficients, those of level j0 first: up from the leaves, x becomes P x and leaves B x behind."""
        x, parts = x[self.order], []
        for j in range(self.K - 1, j0 - 1, -1):
            parts.append(self.matrix("B", j) @ x)
            x = self.matrix("P", j) @ x
        return _into(out, stack_rows([x, *reversed(parts)]))

    def reconstruct(self, c: Any, j0: int, out: Any = None) -> Any:
        """The signal from all coefficients: down to the leaves, by the transposes."""
        end = len(self.order) if j0 == self.K else self.levels[j0 - 1].n_scaling
        x = c[:end]
        for j in range(j0, self.K):
            start, end = end, end + int(self.levels[j - 1].n_framelets.sum())
            x = self.matrix("Pt", j) @ x + self.matrix("Bt", j) @ c[start:end]
        return _into(out, x[self.leaf])

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
        return x[self.leaf]

    def framelet(self, x: Any, j: int) -> Any:
        """Ψ_j x."""
        return self.matrix("B", j) @ self.average(x, j + 1)

    def framelet_adjoint(self, y: Any, j: int) -> Any:
        """Ψ_jᵀ y."""
        return self.lift(self.matrix("Bt", j) @ y, j + 1)

    def project(self, x: Any, j: int) -> Any:
        """F_j x, and also F_jᵀ x."""
        return self.projections(x, [j])[0]

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

    def matrix(self, name: str, j: int) -> Any:
        """P, B or a transpose ("Pt", "Bt") of level j, converted once."""
        if (name, j) not in self._matrices:
            matrix = getattr(self.levels[j - 1], name[0])
            self._matrices[name, j] = self.convert(matrix.T.tocsr() if name.endswith("t") else matrix)
        return self._matrices[name, j]


class CompiledTransforms(Transforms):
    """The same for dense NumPy arrays, in C; results may be written into arrays that exist already."""

    def __init__(self, levels: Sequence[Level], order: IntArray, dtype: np.dtype[Any]) -> None:
        super().__init__(levels, order, lambda matrix: matrix.astype(dtype))
        self.dtype = dtype
        self._rows = order[:0] if bool((order[1:] > order[:-1]).all()) else order
        self._slots = order[:0]
        self._p = [level.p.astype(dtype) for level in levels]
        self._pairs = all(level.pairs for level in levels)
        self._plans: dict[int, tuple[Any, int, int]] = {}

    def decompose(self, x: Any, j0: int, out: Any = None) -> Any:
        if not self._pairs or j0 == self.K:
            return super().decompose(x, j0, out)
        table, count, most = self._plan(j0)
        if out is None:
            out = aligned((count, *x.shape[1:]), self.dtype)
        f, c = as_columns(np.ascontiguousarray(x)), as_columns(out)
        room, at = aligned((most, f.shape[1]), self.dtype), np.empty(2 * len(table), np.int64)
        _kernels.decompose(*self._chain, table, f, self._rows, c, room, at, streams(out))
        return out

    def reconstruct(self, c: Any, j0: int, out: Any = None) -> Any:
        if not self._pairs or j0 == self.K:
            return super().reconstruct(c, j0, out)
        table, _, most = self._plan(j0)
        if out is None:
            out = aligned((len(self.order), *c.shape[1:]), self.dtype)
        c, f = as_columns(np.ascontiguousarray(c)), as_columns(out)
        room, at = aligned((most, f.shape[1]), self.dtype), np.empty(2 * len(table), np.int64)
        _kernels.reconstruct(*self._chain, table, c, f, self._rows, room, at, self._streams(f))
        return out

    def average(self, x: Any, j: int) -> Any:
        if j == self.K:
            return x[self.order]
        return self._averages(np.ascontiguousarray(x), j)[j].copy()  # without the memory of the other levels

    def lift(self, x: Any, j: int) -> Any:
        out = aligned((len(self.order), x.shape[1]), self.dtype)
        leaf, weight = np.arange(len(self.order) + 1), np.ones(len(self.order), self.dtype)
        for i in range(self.K - 1, j - 1, -1):
            weight, leaf = self._climb(weight, leaf, i)
        _kernels.lift(leaf, weight, np.ascontiguousarray(x), out, self._rows, self._streams(out))
        return out

    def projections(
        self, x: Any, scales: Sequence[int], out: Sequence[Any] | None = None, order: IntArray | None = None
    ) -> list[Any]:
        """As above; where rows of x are those of nodes in an order, results are numbered as the nodes are."""
        rows = self._rows if order is None else order[self.order]
        results = list(out) if out is not None else [aligned(x.shape, self.dtype) for _ in scales]
        targets = {j: as_columns(result) for j, result in zip(scales, results, strict=True)}
        lowest = max(min(scales), 1)
        fine, rows_of_fine = as_columns(np.ascontiguousarray(x)), self._rows
        averages = self._averages(fine, lowest)
        leaf, weight = np.arange(len(self.order) + 1), np.ones(len(self.order), self.dtype)
        for j in range(self.K - 1, lowest - 1, -1):
            first, p = self.levels[j - 1].first, self._p[j - 1]
            if j in targets:
                target = targets[j]
                parents = (first, p, leaf, weight, fine, rows_of_fine, averages[j])
                _kernels.detail(*parents, target, rows, streams(target, scattered=len(rows) > 0))
            weight, leaf = self._climb(weight, leaf, j)
            fine, rows_of_fine = averages[j], self._slots
        if 0 in targets:
            _kernels.lift(leaf, weight, fine, targets[0], rows, streams(targets[0], scattered=len(rows) > 0))
        return results

    @cached_property
    def _chain(self) -> tuple[Any, Any]:
        """What the loops over all levels read, the finest first: offsets and weights."""
        return np.concatenate([level.first for level in self.levels[::-1]]), np.concatenate(self._p[::-1])

    def _plan(self, j0: int) -> tuple[Any, int, int]:
        """The table of the levels K−1, ..., j0 for the loops, the number of coefficients, and of rows to work in."""
        if j0 not in self._plans:
            levels = self.levels[j0 - 1 :][::-1]
            children = [int(level.n_children.max()) for level in levels]
            counts = [int(level.n_framelets.sum()) for level in levels]
            total = levels[-1].n_scaling + sum(counts)
            table = np.empty((len(levels), 5), np.int64)
            table[:, _kernels.FIRST] = starts([len(level.first) for level in levels])
            table[:, _kernels.WEIGHTS] = starts([len(level.p) for level in levels])
            table[:, _kernels.FRAMELETS] = total - np.cumsum(counts)
            table[:, _kernels.ROOM] = starts(children)
            table[:, _kernels.CLUSTERS] = [level.n_scaling for level in levels]
            self._plans[j0] = table, total, sum(children) + 1
        return self._plans[j0]

    def _averages(self, x: Any, j: int) -> dict[int, Any]:
        """Φ_i x for the levels i = K−1, ..., j."""
        ends = np.cumsum([0, *(level.n_scaling for level in self.levels)]).tolist()
        table = aligned((ends[-1] - ends[j - 1], x.shape[1]), self.dtype)
        averages, rows = {}, self._rows
        for i in range(self.K - 1, j - 1, -1):
            averages[i] = table[ends[i - 1] - ends[j - 1] : ends[i] - ends[j - 1]]
            _kernels.average(self.levels[i - 1].first, self._p[i - 1], x, rows, averages[i])
            x, rows = averages[i], self._slots
        return averages

    def _climb(self, weight: Any, leaf: Any, j: int) -> tuple[Any, Any]:
        """From level j + 1 to j: the value of φ on every leaf, and the offsets of each cluster's leaves."""
        return weight * np.repeat(self._p[j - 1], np.diff(leaf)), leaf[self.levels[j - 1].first]

    def _streams(self, out: Any) -> bool:
        return streams(out, scattered=len(self._rows) > 0)


def transforms_for(levels: Sequence[Any], order: IntArray, x: Any, in_c: bool = True) -> Transforms:
    """The transforms of signals that are of the kind of x; `in_c` where the levels are those of one p per child."""
    dtype = x.dtype
    if is_tensor(x):
        import torch

        from pegfan.framelets._torch import sparse_csr

        device = x.device
        index = partial(torch.tensor, device=device)
        return Transforms(levels, order, lambda matrix: sparse_csr(matrix, dtype, device), index)
    if in_c and isinstance(x, np.ndarray):
        return CompiledTransforms(levels, order, dtype)
    return Transforms(levels, order, lambda matrix: matrix.astype(dtype))


def streams(out: Any, scattered: bool = False) -> bool:
    """Whether results may be written past the caches; scattered rows must not share a cache line."""
    if out.nbytes <= _STREAMED_BYTES:
        return False
    return bool(out.ctypes.data % (LINE if scattered else 16) == 0 and out.strides[0] % LINE == 0)


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out
