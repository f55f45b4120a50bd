"""Compiled loops: the C extension where it was built, numba elsewhere, from one declaration.

A loop is a Python function under `compiled`. Its body is the loop, in the part of Python that numba compiles;
src/native may hold the same loop in C, declared in native.h under the name that `compiled` is given. What is called is
the C function where the extension has it, and else the body, compiled by numba, which is only then imported.

The C function takes the arguments in the same order, every array as a pointer and then its shape, numbers as int64_t,
uint64_t or double. A loop for several dtypes has several C functions, named ``name__what``; the one whose pointers have
the dtypes of the arrays is called. Arrays are C-ordered. ``PEGFAN_NATIVE=0`` leaves the extension alone.
"""

from __future__ import annotations

import dis
import importlib
import os
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

__all__ = ["Loop", "compiled", "native"]


def _load() -> Any:
    if os.environ.get("PEGFAN_NATIVE", "1") == "0":
        return None
    try:
        return importlib.import_module("pegfan._native")
    except ImportError:  # no compiler when this was installed, or no cffi
        return None


native: Any = _load()
"""The extension: its ``ffi`` and its ``lib``; None where it was not built."""

_DTYPES = {
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"float": "float32", "double": "float64"},
}


class Loop:
    """A compiled loop.

    Attributes
    ----------
    body : function
        The loop in Python.
    """

    def __init__(self, body: Any, name: str | None, options: dict[str, Any]) -> None:
        self.body, self.name, self.options = body, name, options
        self.__doc__, self.__name__, self.__module__ = body.__doc__, body.__name__, body.__module__
        self._found: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        if not self._variants:
            return self.by_numba(*args)
        key = tuple(a.dtype if isinstance(a, np.ndarray) else None for a in args)
        if key not in self._found:
            self._found[key] = self._match(key)
        function = self._found[key]
        if function is None:
            return self.by_numba(*args)
        given: list[Any] = []
        for value in args:
            if isinstance(value, np.ndarray):
                given += [native.ffi.from_buffer("void *", value), *value.shape]
            else:
                given.append(value)
        return function(*given)

    @cached_property
    def by_numba(self) -> Any:
        """The loop as numba compiles it."""
        import numba

        names = {code.argval for code in dis.get_instructions(self.body) if code.opname == "LOAD_GLOBAL"}
        called = {name: value for name in names if isinstance(value := self.body.__globals__.get(name), Loop)}
        used = {name: loop.by_numba for name, loop in called.items()}
        copy = FunctionType(self.body.__code__, {**self.body.__globals__, **used}, self.body.__name__)
        copy.__module__, copy.__qualname__ = self.body.__module__, self.body.__qualname__
        return numba.njit(cache=True, nogil=True, **self.options)(copy)

    @cached_property
    def _variants(self) -> list[tuple[list[Any], Any]]:
        """The C functions, and the dtypes of their pointers."""
        if native is None or self.name is None:
            return []
        names = [n for n in dir(native.lib) if n == self.name or n.startswith(f"{self.name}__")]
        found = [(getattr(native.lib, n), native.ffi.typeof(getattr(native.lib, n)).args) for n in names]
        return [([np.dtype(_DTYPES[a.item.cname]) for a in args if a.kind == "pointer"], f) for f, args in found]

    def _match(self, key: tuple[Any, ...]) -> Any:
        dtypes = [np.dtype(np.uint8) if dtype == np.bool_ else dtype for dtype in key if dtype is not None]
        return next((function for wanted, function in self._variants if wanted == dtypes), None)


def compiled(name: str | None = None, **options: Any) -> Callable[[Any], Any]:
    """Declare a loop.

    Parameters
    ----------
    name
        Of the C function; without one, the loop is only called by other loops.
    **options
        For numba: ``error_model``, ``fastmath``, ``inline``.

    Examples
    --------
    >>> @compiled()
    ... def total(values):
    ...     result = 0.0
    ...     for value in values:
    ...         result += value
    ...     return result
    >>> total.body([1.0, 2.0])
    3.0
    """
    return lambda body: Loop(body, name, options)
