"""Signals that a tree should follow: nodes of alike values are joined before others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import as_array
from pegfan.trees._kernels import add_rows

__all__ = ["Signals", "check_signals", "codes_of"]

_JUMP = 10.0
"""Typical differences that make a jump: 2.1 standard deviations, where the typical one is noise."""


@dataclass(frozen=True)
class Signals:
    """The signals of a level's clusters, as sums over nodes and how many of these have a value.

    Attributes
    ----------
    sums, counts
        Per cluster and signal.
    weight
        How much signals count beside the structure.
    """

    sums: FloatArray
    counts: FloatArray
    weight: float

    @classmethod
    def of(cls, values: FloatArray, weight: float) -> Signals:
        """Those of single nodes; NaN is no value. Units and offsets do not matter."""
        seen = ~np.isnan(values)
        columns = (column[here] for column, here in zip(values.T, seen.T, strict=True))
        offset = [float(np.median(column)) if len(column) else 0.0 for column in columns]
        moved = np.where(seen, values - np.array(offset), 0.0)
        largest = np.abs(moved).max(axis=0, initial=0.0)
        return cls(moved / np.where(largest > 0, largest, 1.0), seen.astype(np.float64), weight)

    @property
    def means(self) -> FloatArray:
        """The mean of every cluster; 0 where there is no value."""
        return np.asarray(self.sums / np.maximum(self.counts, 1.0))

    def coarsen(self, labels: IntArray, count: int) -> Signals:
        """Those of clusters of clusters."""
        parts = []
        for rows in (self.sums, self.counts):
            total = np.zeros((count, rows.shape[1]))
            add_rows(labels, rows, total)
            parts.append(total)
        return Signals(parts[0], parts[1], self.weight)

    def take(self, nodes: IntArray) -> Signals:
        """Those of some clusters."""
        return Signals(self.sums[nodes], self.counts[nodes], self.weight)

    def closeness(self, pairs: NDArray[Any]) -> FloatArray:
        """What scores of pairs of clusters are multiplied by: 1 where noise may have set means apart, less beyond.

        With means a, b of k, l values the difference is k l/(k + l) (a − b)², by which Ward's method goes and which
        noise enlarges as much for large clusters as for small ones. Its unit is its median over the pairs, so that
        noise, or how steep a smooth signal is, is not taken for a jump; differences of up to ten units count as
        none, or clusters would be made of nodes with alike noise. Pairs without a value have no difference.
        """
        left, right = pairs[:, 0], pairs[:, 1]
        first, second, means = self.counts[left], self.counts[right], self.means
        size = first * second / np.maximum(first + second, 1.0) * (means[left] - means[right]) ** 2
        total = np.zeros(len(pairs))
        for column, both in zip(size.T, ((first > 0) & (second > 0)).T, strict=True):
            seen = column[both]
            unit = max(float(np.median(seen)), 0.01 * float(np.mean(seen))) if len(seen) else 0.0
            if unit > 0:
                total += np.where(both, np.maximum(column / (_JUMP * unit) - 1.0, 0.0), 0.0)
        return np.asarray(1.0 / (1.0 + self.weight * total / size.shape[1]))

    def points(self) -> FloatArray:
        """Coordinates beside those of an embedding in unit rows, of mean squared length weight²; 0 is for no value."""
        means, has_value = self.means, self.counts > 0
        count = np.maximum(has_value.sum(axis=0), 1)
        centred = np.where(has_value, means - (means * has_value).sum(axis=0) / count, 0.0)
        width = np.sqrt((centred**2).sum(axis=0) / count)
        return np.asarray(self.weight * len(width) ** -0.5 * centred / np.where(width > 0, width, 1.0))


def check_signals(signals: Any, n: int) -> FloatArray:
    """Signals as an n × d array of float64; NaN stays."""
    values = as_array(signals, "signals")
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(
            f"signals must hold numbers, one row for each of the {n} nodes; got {values.dtype} {values.shape}"
        )
    values = values.astype(np.float64).reshape(n, -1)
    if np.isinf(values).any():
        raise ValueError("signals hold infinite values; make them NaN, which is no value")
    return values


def codes_of(values: FloatArray) -> IntArray | None:
    """A number for every row, the same for equal ones and for no others; None where all are equal."""
    comparable = np.where(np.isnan(values), np.inf, values + 0.0)  # −0 is 0
    codes = np.unique(comparable, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return codes if codes.any() else None
