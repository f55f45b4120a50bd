"""The one cache: values by what they were computed from, up to so many bytes, held by the value that they belong to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock, RLock
from types import FunctionType, ModuleType
from typing import Any, TypeVar

_T = TypeVar("_T")


class Cache:
    """The values that were asked for last, up to so many bytes in all; the newest one stays whatever its size.

    Every value is made once, in several threads too: who asks for what is being made waits for it alone.

    Examples
    --------
    >>> cache = Cache(limit=2**20)
    >>> cache.get("squares", lambda: [i * i for i in range(4)])
    [0, 1, 4, 9]
    >>> cache.get("squares", lambda: "not made again")
    [0, 1, 4, 9]
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The value with this key, from `make` where there is none."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if not entry.size:
                entry.value = make()
                entry.size = bytes_of(entry.value)
        with self._lock:
            while len(self._entries) > 1 and sum(one.size for one in self._entries.values()) > self.limit:
                self._entries.popitem(last=False)
        return entry.value  # type: ignore[no-any-return]


class _Entry:
    def __init__(self) -> None:
        self.value: Any = None
        self.size = 0
        self.lock = RLock()


def bytes_of(value: Any, _seen: set[int] | None = None) -> int:
    """About how many bytes a value takes: those of the arrays in it, and a few for every object."""
    seen = set() if _seen is None else _seen
    if id(value) in seen or isinstance(value, type | FunctionType | ModuleType):
        return 0
    seen.add(id(value))
    if isinstance(size := getattr(value, "nbytes", None), int):
        return size + 100
    if isinstance(value, Mapping):
        parts = list(value.values())
    else:
        parts = list(value) if isinstance(value, list | tuple) else list(getattr(value, "__dict__", {}).values())
    return 100 + sum(bytes_of(part, seen) for part in parts)
