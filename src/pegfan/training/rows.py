"""The rows of channels that a part of a split takes, in an order that does not depend on how nodes are numbered."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan.channels import Channels

TARGET = "target"
"""The name in a state of the mean and scale of the targets, where numbers are predicted."""


class Units(NamedTuple):
    """The mean and the spread of training targets: networks are trained on (y − centre) / scale."""

    centre: float
    scale: float

    @classmethod
    def of(cls, targets: FloatArray, shares: FloatArray) -> Self:
        """Those of the targets of some rows, whose shares add up to one."""
        centre = float(shares @ targets)
        scale = float(np.sqrt(shares @ (targets - centre) ** 2))
        return cls(centre, scale if scale > 0 else 1.0)

    @classmethod
    def stored(cls, numbers: Any) -> Self:
        """Those of a state, which may come from a file."""
        pair = np.asarray(numbers, np.float64)
        if pair.shape != (2,) or not np.isfinite(pair).all() or pair[1] <= 0:
            raise ValueError(f"{TARGET} must be the mean and the scale of targets, got {pair!r:.60}")
        return cls(*map(float, pair))

    def standard(self, targets: FloatArray) -> FloatArray:
        """Targets as a network learns them."""
        return (targets - self.centre) / self.scale

    def values(self, output: Any) -> FloatArray:
        """What a network says in the units of the targets."""
        return np.asarray(output, np.float64) * self.scale + self.centre


class Labelled(NamedTuple):
    """Rows of channels by their places, the labels or targets that belong to them, and their weights if they differ.

    Nodes with equal rows share a place and may have different labels. They are sorted by place, then by label, then by
    weight: nodes that come in one place with one label and one weight make no difference to training.
    """

    places: IntArray
    labels: Any
    weights: FloatArray | None = None

    @classmethod
    def of(cls, channels: Channels, nodes: IntArray, labels: Any, weights: FloatArray | None = None) -> Self:
        """Those of some nodes; `labels`, or targets, and `weights` are those of all nodes."""
        places, own = channels.places[nodes], labels[nodes]
        if weights is None:
            order = np.lexsort((own, places))
            return cls(places[order], own[order])
        order = np.lexsort((weights[nodes], own, places))
        return cls(places[order], own[order], weights[nodes][order])

    def some(self, most: int) -> Self:
        """At most so many of them, evenly spaced."""
        if len(self.places) <= most:
            return self
        kept = np.arange(most) * len(self.places) // most
        weights = None if self.weights is None else self.weights[kept]
        return type(self)(self.places[kept], self.labels[kept], weights)


def loss_weights(labels: Any, by_class: bool, given: FloatArray | None = None) -> FloatArray:
    """The share of every node in a loss; equal or as given, and with `by_class` all classes that occur share alike."""
    own = np.ones(len(labels)) if given is None else given
    if not by_class:
        return np.asarray(own / own.sum())
    _, codes = np.unique(labels, return_inverse=True)
    sizes = np.bincount(codes, own)
    return np.asarray(own / (len(sizes) * sizes[codes]))
