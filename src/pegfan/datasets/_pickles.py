"""The Planetoid pickles, read as data.

A pickle is a program that may import and call anything. These were written by Python 2 with protocol 2, use
27 of the instructions and name six things; here they are taken apart without running them. The instructions
only move numbers and strings about, what a pickle says about an object is kept as a record, and of these
records exactly three shapes are understood: an array, a CSR matrix, a dict of lists.
"""

from __future__ import annotations

import math
import os
import pickletools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["read_array", "read_csr", "read_lists"]

_LARGEST = 2**24  # bytes; the largest of the files has 8 million
_ADMITTED = (
    "__builtin__ list",
    "collections defaultdict",
    "numpy dtype",
    "numpy ndarray",
    "numpy.core.multiarray _reconstruct",
    "scipy.sparse.csr csr_matrix",
)
_NUMBERS = ("i4", "i8", "f4", "f8")


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the array that a Planetoid pickle holds."""
    return _read(path, _array)


def read_csr(path: str | os.PathLike[str]) -> csr_array:
    """Return the sparse matrix that a Planetoid pickle holds, checked in full."""
    return _read(path, _csr)


def read_lists(path: str | os.PathLike[str]) -> dict[int, list[int]]:
    """Return the adjacency lists that a Planetoid pickle holds."""
    return _read(path, _lists)


def _read(path: str | os.PathLike[str], understand: Callable[[Any], Any]) -> Any:
    size = Path(path).stat().st_size
    if size > _LARGEST:
        raise ValueError(f"{path} has {size:,} bytes, more than any Planetoid pickle; it is something else")
    data = Path(path).read_bytes()
    try:
        return understand(_Machine().run(data))
    except _Refused as error:
        raise ValueError(f"{path} asks for {error}, which no Planetoid pickle needs; it was not run") from error
    except (ValueError, IndexError, KeyError) as error:
        raise ValueError(f"{path} is not a Planetoid pickle, or damaged: {error}") from error


class _Refused(Exception):
    """Something in a pickle that these files have no need of."""


class _Name(str):
    """A global that a pickle names; never looked up."""

    __slots__ = ()


@dataclass
class _Record:
    """What a pickle says about an object: what to make it with, and its state."""

    maker: str
    arguments: tuple[Any, ...]
    state: Any = None


class _Machine:
    """The stack that the instructions of a pickle work on."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each mark
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for name, argument in _instructions(data):
            step = _STEPS.get(name)
            if step is None:
                raise _Refused(_wanted(data) or f"the instruction {name}")
            step(self, argument)
        return self.stack.pop()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self, _: None) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.below.pop()
        return items

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise ValueError("it takes more from its stack than there is")
        items = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        self.push(items)

    def name(self, argument: str) -> None:
        if argument not in _ADMITTED:
            raise _Refused(argument.replace(" ", "."))
        self.push(_Name(argument))

    def append(self, items: list[Any]) -> None:
        _expect(self.stack[-1], list).extend(items)

    def set_items(self, items: list[Any]) -> None:
        keys, values = items[::2], items[1::2]
        # Nothing but numbers and strings: the hash of nested tuples can take for ever, or overflow the C stack.
        if any(type(key) not in (int, str) for key in keys):
            raise ValueError("a key is neither a number nor a string")
        _expect(self.stack[-1], dict).update(zip(keys, values, strict=True))

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        # Lists used many times over would make a small file a huge graph.
        if isinstance(self.memo[index], list | dict):
            raise ValueError("it uses a list or dict twice")
        self.push(self.memo[index])

    def make(self, _: None) -> None:
        arguments = _expect(self.stack.pop(), tuple)
        maker = _expect(self.stack.pop(), _Name)
        self.push({} if maker == "collections defaultdict" else _Record(str(maker), arguments))

    def build(self, _: None) -> None:
        state = self.stack.pop()
        record = _expect(self.stack[-1], _Record)
        if record.state is not None:
            raise ValueError("it sets the state of an object twice")
        record.state = state


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "STOP": lambda machine, _: None,
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "BININT": _Machine.push,
    "BININT1": _Machine.push,
    "BININT2": _Machine.push,
    "BINSTRING": _Machine.push,
    "SHORT_BINSTRING": _Machine.push,
    "MARK": _Machine.mark,
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "APPEND": lambda machine, _: machine.append([machine.stack.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "BINPUT": _Machine.remember,
    "LONG_BINPUT": _Machine.remember,
    "BINGET": _Machine.recall,
    "GLOBAL": _Machine.name,
    "NEWOBJ": _Machine.make,
    "REDUCE": _Machine.make,
    "BUILD": _Machine.build,
}


def _instructions(data: bytes) -> Iterator[tuple[str, Any]]:
    """Decode the instructions up to the end of the pickle; nothing longer than the data is ever allocated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strange escapes in strings, which are refused anyway
        for instruction, argument, _ in pickletools.genops(data):
            yield instruction.name, argument


def _wanted(data: bytes) -> str:
    """Return the first global that a pickle of any protocol names and we do not admit, if it can be told."""
    strings: list[str] = []
    try:
        for name, argument in _instructions(data):
            if name in ("GLOBAL", "INST") and argument not in _ADMITTED:
                return str(argument).replace(" ", ".")
            if name == "STACK_GLOBAL":
                return ".".join(strings[-2:])
            if isinstance(argument, str):
                strings.append(argument)
    except ValueError:
        pass
    return ""


# -------------------------------------------------------------------- what the records mean


def _expect[T](value: Any, kind: type[T]) -> T:
    return value
