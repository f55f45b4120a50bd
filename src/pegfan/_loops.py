"""Loops in C: one declaration each makes the C prototype and the checks of every call.

A module that calls a loop declares it::

    fold_words = Loop("void fold_words(const uint64 words[n], uint64 lanes[8])")

and src/native holds the function ``fold_words``; `pegfan._declarations` has the language. A call passes arrays and
numbers in the order of the declaration; dtypes, shapes, contiguity and writability are checked, so that C cannot be
called wrongly. An array that is only read may be strided: C gets a copy. A loop does not hold the interpreter's lock
while it runs.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pegfan._declarations import LETTERS, Parameter, parse

__all__ = ["Fields", "Loop", "Struct", "native"]


def _load() -> Any:
    try:
        return importlib.import_module("pegfan._native")
    except ImportError as error:
        raise ImportError(
            "pegfan's compiled part is missing or was built for another Python; "
            "install it again: pip install . in its folder"
        ) from error


native: Any = _load()
"""The extension: its ``ffi`` and its ``lib``."""

_DTYPES = {name: np.dtype(name) for names in LETTERS.values() for name in names}
_DTYPES |= {name: np.dtype(name) for name in ("int8", "uint8", "uint16")}
_CHECKED_MOST = 256  # shapes that a loop remembers
_from_buffer, _NULL = native.ffi.from_buffer, native.ffi.NULL
_BOOL, _BYTE = np.dtype(bool), np.dtype(np.uint8)


class _Size:
    """One entry of a declared shape: a number, a name, or an expression of names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at_least = text.startswith(">=")
        tree = ast.parse(text.removeprefix(">="), mode="eval")
        self.name = tree.body.id if isinstance(tree.body, ast.Name) else ""
        self.names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self._code = compile(tree, text, "eval")
        # The one name in "n + 1" can be had from the size itself.
        body = tree.body
        solvable = isinstance(body, ast.BinOp) and isinstance(body.op, ast.Add) and isinstance(body.right, ast.Constant)
        self.offset = int(body.right.value) if solvable and isinstance(body.left, ast.Name) else None  # type: ignore[attr-defined]

    def agrees(self, size: int, sizes: dict[str, int]) -> bool:
        """Whether a size is the declared one; learns a name that was not there before."""
        name = self.name or (next(iter(self.names)) if self.offset is not None else "")
        if name and name not in sizes and not self.at_least:
            sizes[name] = size - (self.offset or 0)
            return sizes[name] >= 0
        wanted = sizes[self.name] if self.name else eval(self._code, {"__builtins__": {}}, sizes)
        return size >= wanted if self.at_least else bool(size == wanted)


class _Argument:
    """A declared parameter, ready to check what is passed for it."""

    def __init__(self, parameter: Parameter) -> None:
        self.name, self.type, self.written = parameter.name, parameter.type, parameter.written
        self.may_be_empty, self.new_names = parameter.may_be_empty, parameter.new_names
        self.dtype = _DTYPES.get(self.type)
        self.sizes = None if parameter.shape is None else [_Size(text) for text in parameter.shape]
        self.text = f"{parameter.type}[{', '.join(parameter.shape or ())}]"

    def check(self, value: Any, sizes: dict[str, int], letters: dict[str, np.dtype[Any]]) -> None:
        """Raise unless an array agrees with the declaration; learns the sizes and dtypes that names stand for."""
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{self.name} must be an array {self.text}, not {type(value).__name__}")
        dtype = _BYTE if value.dtype == _BOOL else value.dtype
        wanted = self.dtype or letters.setdefault(self.type, dtype)
        swapped = not dtype.isnative  # its name is that of the ordinary dtype
        if dtype != wanted or swapped or (self.dtype is None and dtype.name not in LETTERS[self.type]):
            raise TypeError(f"{self.name} must be {self.text}, not of dtype {value.dtype} (letters are {letters})")
        if self.may_be_empty and not value.size:
            for name in self.new_names:
                sizes.setdefault(name, 0)
            return
        assert self.sizes is not None
        if len(self.sizes) != value.ndim or not all(
            size.agrees(length, sizes) for size, length in zip(self.sizes, value.shape, strict=True)
        ):
            raise ValueError(f"{self.name} must be {self.text}, not of shape {value.shape} (with {sizes})")
        if self.written and not (value.flags.c_contiguous and value.flags.aligned and value.flags.writeable):
            raise ValueError(f"{self.name} must be contiguous, aligned and writable")


class _Passing(NamedTuple):
    """The sizes that C gets behind an array, and whether it gets a copy of the array."""

    sizes: tuple[int, ...]
    copied: bool


class Loop:
    """A function in C, called with arrays that agree with its declaration.

    Examples
    --------
    >>> mix_all = Loop("void mix_all(const uint64 values[n], uint64 out[n])")
    >>> out = np.zeros(2, np.uint64)
    >>> mix_all(np.array([0, 1], np.uint64), out)
    >>> out[0], hex(out[1])
    (np.uint64(0), '0x5692161d100b05e5')
    >>> mix_all(np.array([0, 1], np.uint64), out[:1])
    Traceback (most recent call last):
    ValueError: mix_all: out must be uint64[n], not of shape (1,) (with {'n': 2})
    """

    def __init__(self, declaration: str) -> None:
        self._declaration = parse(declaration)
        self.__name__ = self._declaration.name
        self._arguments = [_Argument(parameter) for parameter in self._declaration.parameters]
        in_shapes = {name for argument in self._arguments for size in argument.sizes or () for name in size.names}
        self._shaping = [argument.sizes is None and argument.name in in_shapes for argument in self._arguments]
        self._checked: dict[Any, tuple[Callable[..., Any], list[_Passing | None]]] = {}

    def __call__(self, *values: Any) -> Any:
        # Arrays of shapes and dtypes that came before need no second check: loops are called for small levels, too.
        kinds = tuple(
            (value.dtype, value.shape, value.flags.num) if isinstance(value, np.ndarray) else value if shaping else None
            for value, shaping in zip(values, self._shaping, strict=False)
        )
        checked = self._checked.get((len(values), kinds))
        if checked is None:
            checked = self._check(values)
            if len(self._checked) >= _CHECKED_MOST:
                self._checked.clear()
            self._checked[len(values), kinds] = checked
        function, passings = checked
        passed: list[Any] = []
        for value, passing in zip(values, passings, strict=True):
            if passing is None:
                passed.append(value.pointer if isinstance(value, Fields) else value)
                continue
            array = np.require(value, requirements=["C", "A"]) if passing.copied else value
            passed.append(_from_buffer("void *", array) if array.size else _NULL)
            passed += passing.sizes
        return function(*passed)

    def _check(self, values: tuple[Any, ...]) -> tuple[Callable[..., Any], list[_Passing | None]]:
        """The C function for these values, and how each array is passed (None for a number)."""
        if len(values) != len(self._arguments):
            raise TypeError(f"{self.__name__} takes {len(self._arguments)} arguments, not {len(values)}")
        sizes: dict[str, int] = {}
        letters: dict[str, np.dtype[Any]] = {}
        passings: list[_Passing | None] = []
        for argument, value in zip(self._arguments, values, strict=True):
            if argument.sizes is None:
                passings.append(None)
                sizes[argument.name] = value
                continue
            try:
                argument.check(value, sizes, letters)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.__name__}: {error}") from None
            lies_well = value.flags.c_contiguous and value.flags.aligned
            passings.append(_Passing(tuple(sizes[name] for name in argument.new_names), not lies_well))
        dtypes = {letter: dtype.name for letter, dtype in letters.items()}
        name = next(name for name, variant in self._declaration.variants() if dict(variant) == dtypes)
        return getattr(native.lib, name), passings

    def __repr__(self) -> str:
        return f"<loop {self.__name__} in C>"


class Struct:
    """A struct in C, declared as ``struct name(...)``.

    `new` makes one; a loop takes it where its declaration names the struct's type, as in ``void step(network net)``.
    """

    def __init__(self, declaration: str) -> None:
        self.declaration = parse(declaration)
        self.arguments = {p.name: _Argument(p) for p in self.declaration.parameters}

    def new(self, **values: Any) -> Fields:
        """A struct with these arrays and numbers, every one that is declared."""
        missing = set(self.arguments) - set(values)
        if missing:
            raise TypeError(f"{self.declaration.name} needs {', '.join(sorted(missing))}")
        fields = Fields(self)
        for name in self.arguments:  # in the order of the declaration: shapes may name what stands before
            fields.set(name, values[name])
        return fields


class Fields:
    """The values of a struct in C: checked when they are set, and kept alive."""

    def __init__(self, struct: Struct) -> None:
        self._struct, self._sizes, self._addresses = struct, dict[str, int](), dict[str, Any]()
        self.pointer = native.ffi.new(f"{struct.declaration.name} *")
        self._types = {name: field.type for name, field in native.ffi.typeof(struct.declaration.name).fields}

    def set(self, name: str, value: Any) -> None:
        """Put an array or a number into a field."""
        argument = self._struct.arguments[name]
        if argument.sizes is None:
            setattr(self.pointer, name, value)
            self._sizes[name] = value
            return
        try:
            argument.check(value, self._sizes, {})
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self._struct.declaration.name}: {error}") from None
        for size in argument.new_names:
            setattr(self.pointer, size, self._sizes[size])
        array = np.require(value, requirements=["C", "A"]) if not argument.written else value
        self._addresses[name] = address = _from_buffer("void *", array) if array.size else _NULL  # keeps it alive
        setattr(self.pointer, name, native.ffi.cast(self._types[name], address))
