"""Channels in an order of nodes that does not depend on how they are numbered: where all products are computed.

Sums round, and how they round depends on the order of their terms. In canonical order the matrices of a renumbered
graph are the same arrays, so that all that is computed from them is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from pegfan._arrays import IntArray
from pegfan.channels._kept import value_of
from pegfan.channels.factors import Matrix, Projection
from pegfan.framelets import Operator
from pegfan.measures import equal_rows

if TYPE_CHECKING:
    from pegfan.channels.channels import Channel, Channels


class Canonical:
    """Channels in canonical order, and where the rows of every node are.

    Attributes
    ----------
    places : array
        The row of every node. Nodes whose rows are equal in all channels share one.
    packed
        What `pegfan.training.fast` keeps of the newest split.

    Notes
    -----
    Nodes that are alike have one row in the channels that were made together; channels that were added, which are plain
    inputs, may tell them apart. Rows are then sorted by both, and `at` finds them in either.
    """

    places: IntArray
    packed: Any = None

    def __init__(self, channels: Channels) -> None:
        nodes = np.arange(channels.n)
        order = nodes if channels.order is None else channels.order
        self._given = channels[:]  # not the set itself, which holds this: they would keep each other alive
        self._known: IntArray | None = None
        base = np.empty_like(nodes)
        base[order] = nodes
        self._own, self._first = base, nodes
        added, later = order, np.array(channels._added)
        if channels.alike is not None:
            base = _first_of_class(base, channels.alike)
            self._first = order[base]
            if later.any():
                keys = [equal_rows(channel.input) for channel, late in zip(channels, later, strict=True) if late]
                added = np.lexsort((*keys, base))
                self._known, self._later = base[added], later
                base = _places(added, np.column_stack([base, *keys]))
        self.places, self._order, self._added = base, order, added

    @cached_property
    def channels(self) -> Channels:
        """The channels, renumbered."""
        given = self._given
        if given._in_order:
            return given
        mover = _Mover(self._order)
        plain = _Mover(self._added) if self._known is not None else mover
        return _all(given, lambda channel, late: (plain if late else mover).channel(channel))

    def at(self, i: int, rows: Any) -> Any:
        """Where rows are in channel i."""
        return rows if self._known is None or self._later[i] else self._known[rows]

    def rows(self, rows: IntArray, dtype: Any) -> list[Any]:
        """Some rows of every channel."""
        nodes = self._added[rows]  # any node with such a row
        first = self._first[nodes]
        index = [nodes if late else first for late in self._given._added]
        return self._listed._gather(index, dtype)

    def materialize(self, dtype: Any, sparse: Sequence[bool]) -> list[Any]:
        """All channels as matrices, in the numbering of the nodes."""
        apart = np.flatnonzero(self._first != np.arange(len(self._first)))

        def finish(i: int, value: Any) -> Any:
            if not len(apart) or not self._given[i].factors:
                return value
            if issparse(value):
                return value[self._first]
            value[apart] = value[self._first[apart]]
            return value

        return self._listed._trie.materialize(dtype, sparse, finish)

    @cached_property
    def _listed(self) -> Channels:
        """The channels with nodes as they are numbered, and the terms of every sum in canonical order."""
        if self._given._in_order:
            return self._given
        lister = _Lister(self._order, self._own)
        return _all(self._given, lambda channel, _: lister.channel(channel))


def _all(channels: Channels, change: Callable[[Channel, bool], Channel]) -> Channels:
    changed = channels._with(map(change, channels, channels._added), channels._added)
    changed.order = changed.alike = None
    return changed


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


class _Lister(_Mover):
    """Keeps the numbers of nodes, and lists the terms of sums in an order: results are those of the order, at once."""

    def __init__(self, order: IntArray, places: IntArray) -> None:
        super().__init__(order)
        self.places = places

    def channel(self, channel: Channel) -> Channel:
        listed = copy(channel)
        listed.factors = tuple(self._once(("listed", f.key), partial(self._list, f)) for f in channel.factors)
        return listed

    def _list(self, factor: Operator) -> Operator:
        if isinstance(factor, Projection):
            return factor.listed(self.order, self.memo)
        if isinstance(factor, Matrix) and issparse(factor.matrix):
            if factor.shape[1] != len(self.order):
                return factor
            key = ("listed", id(factor), id(self.order))
            listed: Operator = value_of(factor.shape[0], key, lambda: factor.listed(self.order, self.places))
            return listed
        rows, columns = (self.places if size == len(self.order) else None for size in factor.shape)
        return Operator.permute(self._factor(factor), rows, columns, self.memo)


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
