"""What the channels of several recipes on one large graph have in common: scaled features, hop matrices, hops.

A search makes channels of one graph again and again. On large graphs, what they are made of is kept for as long as the
graph is there, and what was computed from it for as long as any channels hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

from pegfan._cache import Same
from pegfan._limits import is_large
from pegfan.graph import Graph

_VALUES: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
KEEPING = RLock()
"""Held while something that is kept is computed: trainings in several threads then compute it once."""


def part_of(graph: Graph, key: Hashable, make: Callable[[], Any], always: bool = False) -> Any:
    """A part of a graph's channels, made once if the graph is large, or `always`."""
    if not is_large(graph.n) and not always:
        return make()
    return graph.cache.get(("channels", key), make)


def value_of(rows: int, key: Hashable, make: Callable[[], Any]) -> Any:
    """What was computed from parts with this key, while somebody holds it."""
    if not is_large(rows):
        return make()
    with KEEPING:
        value = _VALUES.get(key)
        if value is None:
            value = make()
            if not _is_part(value, key):  # which the key would keep alive for ever
                _VALUES[key] = value
        return value


def _is_part(value: Any, key: Hashable) -> bool:
    """Whether a value is one of the objects that its key holds, such as an input that needed no conversion."""
    if isinstance(key, Same):
        return key.value is value
    return isinstance(key, tuple) and any(_is_part(value, part) for part in key)
