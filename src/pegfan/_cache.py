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

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T], size: int | None = None) -> _T:
        """The value with this key, from `make` where there is none; of `size` bytes, where it will grow."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if not entry.made:
                try:
                    entry.value = make()
                except BaseException:
                    with self._lock:
                        if self._entries.get(key) is entry:
                            del self._entries[key]
                    raise
                self._count(key, entry, bytes_of(entry.value) if size is None else size)
        return entry.value  # type: ignore[no-any-return]

    def _count(self, key: Hashable, entry: _Entry, size: int) -> None:
        with self._lock:
            entry.made, entry.size = True, size
            self.size += size
            self._entries.move_to_end(key)
            # What is being made stays: it takes no memory yet, and others wait for it.
            for old in [name for name, one in self._entries.items() if one.made and one is not entry]:
                if self.size <= self.limit:
                    break
                self.size -= self._entries.pop(old).size


class Same:
    """An object as a key: equal to itself alone, and held, so that no other object gets its id while the key lives."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class _Entry:
    def __init__(self) -> None:
        self.value: Any = None
        self.made, self.size = False, 0
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
