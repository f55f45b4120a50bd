"""How a set of channels is computed: every product once, everything released as soon as it is not needed.

A channel is a *stem* (hops applied to an input: X, S X, S² X, ...) or a projection F_j of one. Stems form a
trie: S² X stands below S X, which stands below X. Walking it from the inputs down, each stem is one product
with the stem above; all projections of a stem are computed together, and a stem that is not a channel itself
is dropped before the next one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from pegfan._arrays import IntArray
from pegfan._cache import Same
from pegfan._limits import is_large
from pegfan.channels._kept import value_of
from pegfan.channels.factors import Projection, scaling_vectors
from pegfan.framelets import Operator

if TYPE_CHECKING:
    from pegfan.channels.channels import Channel

SPARSE_BELOW = 1 / 32
"""A channel below this density is kept sparse: there torch's CSR products cost what dense ones do (measured)."""

_BLOCK = 8 * 2**20  # entries that are converted at a time between sparse and dense


@dataclass(eq=False)
class Stem:
    """An input with factors applied to it, none of them a leading projection.

    `place` tells stems apart that are made of other objects. `row_bounds` says how many entries of each row may be
    other than zero; None if all may.
    """

    place: Hashable
    source: Any
    factor: Operator | None
    rows: int
    row_bounds: IntArray | None
    channel: int | None = None
    projections: dict[Hashable, list[tuple[int, Projection]]] = field(default_factory=dict)
    below: list[Stem] = field(default_factory=list)

    @property
    def columns(self) -> int:
        """The number of columns of the input."""
        return int(self.source.shape[1])

    @property
    def bound(self) -> int:
        """An upper bound on the entries that are not zero."""
        return _total(self.row_bounds, self.rows, self.columns)

    @property
    def spread(self) -> IntArray | None:
        """Bounds for products with it; more than half full counts as full."""
        return None if 2 * self.bound > self.rows * self.columns else self.row_bounds

    @property
    def sparse(self) -> bool:
        """Whether it is cheaper kept sparse."""
        return self.bound <= SPARSE_BELOW * self.rows * self.columns


class Trie:
    """The trie of stems of some channels, and bounds on their nonzeros."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self.n, self.count, self.nodes = channels[0].n, len(channels), channels[0].nodes
        self.roots: list[Stem] = []
        self.bounds: list[int] = []
        self._stems: dict[Hashable, Stem] = {}
        self.copies: dict[int, int] = {}
        for i, channel in enumerate(channels):
            head, factors = split(channel.factors)
            stem = self._stem(channel.signal, factors)
            if head is not None:
                stem.projections.setdefault((id(head.system), id(head.means)), []).append((i, head))
                projected = head.nonzeros(stem.spread, stem.columns)
                self.bounds.append(_total(projected, self.n, stem.columns))
                continue
            if stem.channel is None:
                stem.channel = i
            else:
                self.copies[i] = stem.channel
            self.bounds.append(stem.bound)

    def _stem(self, source: Any, factors: tuple[Operator, ...]) -> Stem:
        place = (Same(source), tuple(factor.key for factor in factors))
        if place not in self._stems:
            if not factors:
                self._stems[place] = Stem(place, source, None, source.shape[0], _row_counts(source))
                self.roots.append(self._stems[place])
            else:
                above = self._stem(source, factors[1:])
                bounds = factors[0].nonzeros(above.spread, above.columns)
                stem = Stem(place, source, factors[0], factors[0].shape[0], bounds)
                above.below.append(stem)
                self._stems[place] = stem
        return self._stems[place]

    def walk(self, dtype: Any, sparse: Callable[[Stem], bool]) -> Iterator[tuple[Stem, Any]]:
        """Every stem with its value; the caller keeps what it wants to keep."""
        waiting: list[tuple[Stem, Any]] = [(root, None) for root in self.roots]
        while waiting:
            stem, above = waiting.pop()
            key = (self.nodes, stem.place, np.dtype(dtype), sparse(stem))
            value = value_of(stem.rows, key, partial(_value, stem, above, dtype, sparse(stem)))
            waiting.extend((below, value) for below in stem.below)
            del above
            yield stem, value
            del value

    def materialize(
        self, dtype: Any, sparse: Sequence[bool], order: IntArray | None, leave: Callable[[int, Any], Any]
    ) -> list[Any]:
        """The value of every channel, sparse or dense as asked.

        They leave the order of the nodes as soon as they are there; dense projections are written where they belong.
        """
        results: list[Any] = [None] * self.count

        def format_of(stem: Stem) -> bool:
            return stem.sparse if stem.channel is None else sparse[stem.channel]

        for stem, value in self.walk(dtype, format_of):
            if stem.channel is not None:
                result = leave(stem.channel, value)
                # What others may be given, too, is not to be written to.
                results[stem.channel] = result.copy() if result is value and is_large(stem.rows) else result
            for group in stem.projections.values():
                for (i, _), part in zip(group, _projections(value, group, sparse, order, leave), strict=True):
                    results[i] = part
                    del part
            del value  # the walk decides how long it is needed
        for i, original in self.copies.items():
            results[i] = results[original]
        return results


class Scales:
    """Rows of F_j f, or M F_j f, in O(1) each, from the scaling coefficients c_j = Φ_j f of the levels.

    By Proposition 1 F_j f = Φ_(j+1)ᵀ c_(j+1) − Φ_jᵀ c_j, and a row of Φ_jᵀ c_j is φ(i) times the row of c_j
    that belongs to the cluster of i. All c_j together are a fraction 1/(h−1) of f. Means over classes of nodes are
    kept for every scale.
    """

    def __init__(self, head: Projection, f: Any) -> None:
        self.system, self.classes, self.f = head.system, head.means, f
        self._levels: dict[int, tuple[Any, Any, Any]] = {}
        self._means: dict[int, Any] = {}

    def rows(self, nodes: Any, scale: int, lifted: dict[Any, Any] | None = None) -> Any:
        """The rows of F_j f that belong to some nodes; scales of the same nodes share what is `lifted`."""
        found = self._rows(nodes, scale, lifted)
        return found if self.classes is None else self.classes.put(self._mean(scale), found, nodes)

    def prepare(self, scales: Sequence[int]) -> None:
        """Compute the coefficients that these scales need."""
        for level in sorted({level for j in scales for level in (j, j + 1) if 0 < level < self.system.K}):
            self._level(level)
        for j in scales if self.classes is not None else ():
            self._mean(j)

    def _rows(self, nodes: Any, scale: int, lifted: dict[Any, Any] | None = None) -> Any:
        def lift(level: int) -> Any:
            key = (id(self), id(nodes), level)
            if lifted is None or key not in lifted:
                found = self._lift(nodes, level)
                if lifted is None:
                    return found
                lifted[key] = found
            return lifted[key]

        return lift(1).copy() if scale == 0 else lift(scale + 1) - lift(scale)

    def _mean(self, scale: int) -> Any:
        assert self.classes is not None
        if scale not in self._means:
            self._means[scale] = self.classes.of_members(self._rows(self.classes.nodes, scale))
        return self._means[scale]

    def _lift(self, nodes: Any, level: int) -> Any:
        if level == self.system.K:
            return self.f[nodes]
        slots, phi, coefficients = self._level(level)
        rows = coefficients[slots[nodes]]
        return diags_array(phi[nodes]) @ rows if issparse(rows) else phi[nodes, None] * rows

    def _level(self, level: int) -> tuple[Any, Any, Any]:
        if level not in self._levels:
            slots, phi = scaling_vectors(self.system, level)
            coefficients = self.system.operator("scaling", level) @ self.f
            self._levels[level] = slots.astype(np.int32), phi.astype(self.f.dtype), coefficients
        return self._levels[level]


def split(factors: tuple[Operator, ...]) -> tuple[Projection | None, tuple[Operator, ...]]:
    """A leading projection, if there is one, and the other factors."""
    if factors and factors[0].scale is not None:
        return cast(Projection, factors[0]), factors[1:]
    return None, factors


def dense_bytes(shape: tuple[int, int], dtype: Any) -> int:
    """The size of a dense matrix."""
    return shape[0] * shape[1] * int(np.dtype(dtype).itemsize)


def sparse_bytes(shape: tuple[int, int], nnz: int, dtype: Any) -> int:
    """The size of a CSR matrix."""
    index = 4 if max(nnz, *shape) <= np.iinfo(np.int32).max else 8
    return nnz * (int(np.dtype(dtype).itemsize) + index) + (shape[0] + 1) * index


def _value(stem: Stem, above: Any, dtype: Any, sparse: bool) -> Any:
    if stem.factor is None:
        return convert(stem.source, dtype, sparse)
    rows = stem.factor.by_rows(above) if issparse(above) and not sparse else None
    if rows is not None:
        return _fill((stem.rows, stem.columns), dtype, rows)
    return convert(stem.factor @ above, dtype, sparse)


def _projections(
    value: Any,
    group: list[tuple[int, Projection]],
    sparse: Sequence[bool],
    order: IntArray | None,
    leave: Callable[[int, Any], Any],
) -> Iterator[Any]:
    system, scales = group[0][1].system, [head.scale for _, head in group]
    wanted = [sparse[i] for i, _ in group]
    together = sorted(scales) == list(range(system.K)) and all(form == issparse(value) for form in wanted)
    if together:
        means = group[0][1].means
        numbered = None if order is None or issparse(value) else system._projections_out(value, order)
        parts = system.projections(value) if numbered is None else numbered
        for i, head in group:
            part, parts[head.scale] = parts[head.scale], None
            if numbered is None or order is None:
                yield leave(i, _clean(part if means is None else means(part, own=True)))
                continue
            if means is not None:
                members = order[means.nodes]
                part[members] = means.of_members(part[members])[means.code[means.nodes]]
            yield part
        return
    by_rows = Scales(group[0][1], value)
    for form, (i, head) in zip(wanted, group, strict=True):
        if issparse(value) and not form:
            yield leave(i, _fill(value.shape, value.dtype, lambda block, j=head.scale: by_rows.rows(block, j)))  # type: ignore[misc]
        else:
            yield leave(i, convert(head @ value, value.dtype, form))


def convert(array: Any, dtype: Any, sparse: bool) -> Any:
    """An input as a matrix of a dtype, sparse or dense."""
    if issparse(array):
        if sparse:
            return _clean(csr_array(array).astype(dtype, copy=False))
        return csr_array(array).astype(dtype, copy=False).toarray()
    return _to_sparse(array, dtype) if sparse else np.ascontiguousarray(array, dtype=dtype)


def _clean(array: Any) -> Any:
    """A sparse result without stored zeros, which differences of equal numbers leave, and with small indices."""
    if not issparse(array):
        return array
    if not array.data.all():
        array = array.copy()
        array.eliminate_zeros()
    if array.indices.dtype != np.int32 and max(array.nnz, *array.shape) <= np.iinfo(np.int32).max:
        parts = (array.data, array.indices.astype(np.int32), array.indptr.astype(np.int32))
        array = csr_array(parts, shape=array.shape)
    return array


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Blocks of rows that are small, and small beside the whole."""
    step = max(min(_BLOCK // max(columns, 1), rows // 32), 1)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _fill(shape: tuple[int, int], dtype: Any, rows: Callable[[slice], Any]) -> Any:
    """A dense matrix from sparse blocks of rows."""
    out = np.empty(shape, dtype)
    for block in _blocks(*shape):
        out[block] = rows(block).toarray()
    return out


def _to_sparse(array: Any, dtype: Any) -> csr_array:
    """A dense matrix as CSR, without SciPy's detour over three arrays of coordinates."""
    counts = _row_counts(array)
    nnz = int(counts.sum())
    index = np.int32 if max(nnz, *array.shape) <= np.iinfo(np.int32).max else np.int64
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    values, columns = np.empty(nnz, dtype), np.empty(nnz, index)
    for block in _blocks(*array.shape):
        here = slice(ends[block.start], ends[block.stop])
        rows, columns[here] = np.nonzero(array[block])
        values[here] = array[block][rows, columns[here]]
    return csr_array((values, columns, ends), shape=array.shape)


def _row_counts(array: Any) -> IntArray:
    counts = np.diff(array.indptr) if issparse(array) else np.count_nonzero(array, axis=1)
    return np.asarray(counts, np.int64)


def _total(bounds: IntArray | None, rows: int, columns: int) -> int:
    return rows * columns if bounds is None else int(bounds.sum())
