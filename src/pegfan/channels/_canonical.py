"""Channels in an order of nodes that does not depend on how they are numbered: where all products are computed.

Sums round, and how they round depends on the order of their terms. In canonical order the matrices of a renumbered
graph are the same arrays, so that all that is computed from them is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pegfan._arrays import IntArray
from pegfan.channels._trie import convert
from pegfan.framelets import Operator
from pegfan.measures import equal_rows

if TYPE_CHECKING:
    from pegfan.channels.channels import Channel, Channels


class Canonical:
    """Channels in canonical order, and where the rows of every node are.

    Attributes
    ----------
    channels : Channels
        The channels, renumbered.
    places : array
        The row of every node. Nodes whose rows are equal in all channels share one.
    packed
        What `pegfan.training.fast` keeps of the newest split.

    Notes
    -----
    Nodes that are alike have one row in the channels that were made together; channels that were added, which are plain
    inputs, may tell them apart. Rows are then sorted by both, and `at` finds them in either.
    """

    channels: Channels
    places: IntArray
    packed: Any = None

    def __init__(self, channels: Channels) -> None:
        nodes = np.arange(channels.n)
        order = nodes if channels.order is None else channels.order
        self._given = channels
        self._known: IntArray | None = None
        base = np.empty_like(nodes)
        base[order] = nodes
        added, later = order, np.array(channels._added)
        if channels.alike is not None:
            base = _first_of_class(base, channels.alike)
            if later.any():
                keys = [equal_rows(channel.input) for channel, late in zip(channels, later, strict=True) if late]
                added = np.lexsort((*keys, base))
                self._known, self._later = base[added], later
                base = _places(added, np.column_stack([base, *keys]))
        self.places = base
        if channels._in_order:
            self.channels = channels
            return
        mover = _Mover(order)
        plain = _Mover(added) if self._known is not None else mover
        moved = ((plain if late else mover).channel(channel) for channel, late in zip(channels, later, strict=True))
        self.channels = channels._with(moved, channels._added)
        self.channels.order = self.channels.alike = None

    def at(self, i: int, rows: Any) -> Any:
        """Where rows are in channel i."""
        return rows if self._known is None or self._later[i] else self._known[rows]

    def rows(self, rows: IntArray, dtype: Any) -> list[Any]:
        """Some rows of every channel."""
        return self.channels._gather([self.at(i, rows) for i in range(len(self.channels))], dtype)

    def materialize(self, dtype: Any, sparse: Sequence[bool]) -> list[Any]:
        """All channels as matrices, in the numbering of the nodes."""

        def number_back(i: int, value: Any) -> Any:
            if self.channels is self._given:
                return value
            if not self._given[i].factors:
                return convert(self._given[i].input, dtype, sparse[i])
            return value[self.at(i, self.places)]

        return self.channels._trie.materialize(dtype, sparse, number_back)


class _Mover:
    """Renumbers channels; what they share is renumbered once."""

    def __init__(self, order: IntArray) -> None:
        self.order, self.memo = order, dict[Any, Any]()

    def channel(self, channel: Channel) -> Channel:
        moved = copy(channel)
        moved.factors = tuple(map(self._factor, channel.factors))
        if len(self.order) == channel.input.shape[0]:
            moved.input = self._once(("input", id(channel.input)), lambda: channel.input[self.order])
        return moved

    def _factor(self, factor: Operator) -> Operator:
        rows, columns = (self.order if size == len(self.order) else None for size in factor.shape)
        found: Operator = self._once(factor.key, lambda: factor.permute(rows, columns, self.memo))
        return found

    def _once(self, key: Any, make: Any) -> Any:
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]


def _first_of_class(places: IntArray, classes: IntArray) -> IntArray:
    """The least place of each node's class."""
    first = np.full(int(classes.max()) + 1, len(places))
    np.minimum.at(first, classes, places)
    return first[classes]


def _places(order: IntArray, keys: Any) -> IntArray:
    """The first place in the order at which a node of equal keys stands, for every node."""
    listed = keys[order]
    new = np.concatenate([[True], (listed[1:] != listed[:-1]).any(axis=1)])
    places = np.empty(len(order), np.int64)
    places[order] = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return places
