"""The Planetoid pickles, read as data.

A pickle is a program that may import and call anything. These were written by Python 2 with protocol 2, use
28 of the instructions and name six things; here they are taken apart without running them. The instructions
only move numbers and strings about, what a pickle says about an object is kept as a record, and of these
records exactly three shapes are understood: an array, a CSR matrix, a dict of lists.
"""

from __future__ import annotations

import math
import os
import pickletools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
# pickletools decodes even what is refused later, and may then warn of strange escapes in strings.
_DAMAGE = (ValueError, IndexError, KeyError, DeprecationWarning)


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the array that a Planetoid pickle holds."""
    array: NDArray[Any] = _read(path, _array)
    return array


def read_csr(path: str | os.PathLike[str]) -> csr_array:
    """Return the sparse matrix that a Planetoid pickle holds, checked in full."""
    return _read(path, _csr)


def read_lists(path: str | os.PathLike[str]) -> dict[int, list[int]]:
    """Return the adjacency lists that a Planetoid pickle holds."""
    lists: dict[int, list[int]] = _read(path, _lists)
    return lists


def _read(path: str | os.PathLike[str], understand: Callable[[Any], Any]) -> Any:
    size = Path(path).stat().st_size
    if size > _LARGEST:
        raise ValueError(f"{path} has {size:,} bytes, more than any Planetoid pickle; it is something else")
    data = Path(path).read_bytes()
    try:
        return understand(_Machine().run(data))
    except _Refused as error:
        raise ValueError(f"{path} asks for {error}, which no Planetoid pickle needs; it was not run") from error
    except _DAMAGE as error:
        raise ValueError(f"{path} is not a Planetoid pickle, or damaged: {error}") from error


class _Refused(Exception):
    """Something in a pickle that these files have no need of."""


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
        """Follow the instructions; none of them allocates more than the data it stands in."""
        for instruction, argument, _ in pickletools.genops(data):
            step = _STEPS.get(instruction.name)
            if step is None:
                raise _Refused(_wanted(data) or f"the pickle instruction {instruction.name}")
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
        self.push(argument)

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
        maker = _expect(self.stack.pop(), str)
        self.push({} if maker == "collections defaultdict" else _Record(maker, arguments))

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


def _wanted(data: bytes) -> str:
    """Return the first global that a pickle of any protocol names and we do not admit, if it can be told."""
    strings: list[str] = []
    with suppress(*_DAMAGE):
        for instruction, argument, _ in pickletools.genops(data):
            if instruction.name in ("GLOBAL", "INST") and argument not in _ADMITTED:
                return str(argument).replace(" ", ".")
            if instruction.name == "STACK_GLOBAL":
                return ".".join(strings[-2:])
            if isinstance(argument, str):
                strings.append(argument)
    return ""


# -------------------------------------------------------------------- what the records mean


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"there is a {type(value).__name__} where a {kind.__name__} should be")
    return value


def _array(record: Any) -> NDArray[Any]:
    match record:
        case _Record("numpy.core.multiarray _reconstruct", ("numpy ndarray", _, _), (1, shape, kind, False, data)):
            dtype = _dtype(kind)
            if not all(type(extent) is int and extent >= 0 for extent in _expect(shape, tuple)):
                raise ValueError("the shape of an array is not made of numbers")
            if math.prod(shape) * dtype.itemsize != len(_expect(data, str)):
                raise ValueError(f"an array has {len(data)} bytes, which do not fit its shape")
            return np.frombuffer(data.encode("latin-1"), dtype).reshape(shape)
    raise ValueError("it holds no array where there should be one")


def _dtype(record: Any) -> np.dtype[Any]:
    match record:
        case _Record("numpy dtype", (code, 0, 1), (3, "<", None, None, None, -1, -1, 0)) if code in _NUMBERS:
            return np.dtype(f"<{code}")
    raise ValueError("an array is not made of plain numbers")


def _csr(record: Any) -> csr_array:
    match record:
        case _Record("scipy.sparse.csr csr_matrix", (), {"_shape": shape, **state}):
            data, indices, indptr = (_array(state.get(part)) for part in ("data", "indices", "indptr"))
            if {indices.dtype.kind, indptr.dtype.kind} != {"i"} or {data.ndim, indices.ndim, indptr.ndim} != {1}:
                raise ValueError("the parts of a sparse matrix are not vectors, or its indices no integers")
            if [type(extent) for extent in _expect(shape, tuple)] != [int, int]:
                raise ValueError("the shape of a sparse matrix is not two numbers")
            # SciPy subtracts neighbouring pointers, which may overflow, and does not look at those of an empty
            # matrix; past its checks, its C++ code would read anywhere.
            if (indptr[:-1] > indptr[1:]).any():
                raise ValueError("the index pointers of a sparse matrix decrease")
            matrix = csr_array((data, indices, indptr), shape=shape)
            matrix.check_format(full_check=True)
            return matrix
    raise ValueError("it holds no CSR matrix")


def _lists(record: Any) -> dict[int, list[int]]:
    lists: dict[int, list[int]] = _expect(record, dict)
    for node, neighbours in lists.items():
        if type(node) is not int or any(type(neighbour) is not int for neighbour in _expect(neighbours, list)):
            raise ValueError("the graph is not a dict of lists of numbers")
    return lists
