"""Checks of single arguments: an integer, a number, a word, an array, an object; and the error of files and tables."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")
_LARGEST = float(np.finfo(np.float64).max)


LONGEST_CLASS = 1_000
"""Characters that the name of a class may have: a table of predictions holds it in every row."""
MOST = 2**63 - 1
"""The largest integer that compiled loops and arrays hold."""


class BadInput(ValueError):
    """A file or table that cannot be used; the message names it, and the line where that is known."""


class _Short(reprlib.Repr):
    """A repr that always comes to an end: of lists that are deep or hold themselves, and of endless integers."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 12
        self.maxstring = self.maxlong = self.maxother = 120

    def repr_int(self, x: int, level: int) -> str:
        return f"an integer of {x.bit_length()} bits" if x.bit_length() > 1000 else repr(x)

    def repr_instance(self, x: Any, level: int) -> str:
        return " ".join(super().repr_instance(x, level).split())


def shown(value: Any) -> str:
    """A value as errors show it: its repr, shortened.

    Examples
    --------
    >>> shown("S~"), shown(10**5000)
    ("'S~'", 'an integer of 16610 bits')
    """
    return _short.repr(value)


_short = _Short()


def kind_of(value: Any) -> str:
    """The class of a value as errors name it, such as ``networkx.Graph``; of a class, that it is one."""
    kind = type(value)
    top = kind.__module__.partition(".")[0]
    return kind.__name__ if top == "builtins" else f"{top}.{kind.__name__}"


def check_integer(value: Any, what: str, least: int | None = None, most: int = MOST) -> int:
    """Return an integer as Python's own, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{what} must be an integer, got {shown(value)}")
    if least is not None and value < least:
        raise ValueError(f"{what} must be at least {least}, got {shown(value)}")
    if not -most <= value <= most:
        raise ValueError(f"{what} must be at most {most:,}, got {shown(value)}")
    return int(value)


def check_seed(value: Any, what: str = "seed") -> int:
    """Return the seed of a generator: any integer that is not negative, within what hashes give."""
    return check_integer(value, what, least=0, most=2**512)


def check_number(value: Any, what: str) -> float:
    """Return a number that is finite and not negative, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{what} must be a number, got {shown(value)}")
    if not 0 <= (value if isinstance(value, int) else float(value)) <= _LARGEST:
        raise ValueError(f"{what} must be finite and not negative, got {shown(value)}")
    return float(value)


def check_choice(value: Any, what: str, choices: Iterable[str]) -> None:
    """Refuse a word that is not among the choices, and list them."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        *others, last = map(repr, names)
        raise ValueError(f"{what} must be {', '.join(others)} or {last}, got {shown(value)}")


def check_class_names(names: Iterable[Any]) -> None:
    """Refuse names of classes that are texts rather than names."""
    for name in names:
        if isinstance(name, str) and len(name) > LONGEST_CLASS:
            raise ValueError(
                f"a class has a name of {len(name):,} characters, and it may have {LONGEST_CLASS:,}; give it a shorter "
                f"one than {shown(name)}"
            )


def check_flag(value: Any, what: str) -> bool:
    """Return a truth value as Python's own; a word or an array is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} must be True or False, got {shown(value)}")
    return bool(value)


def check_kind(value: Any, what: str, kind: type[_T]) -> _T:
    """Refuse a value that is not of a class."""
    if not isinstance(value, kind):
        name = kind.__name__
        raise TypeError(f"{what} must be {'an' if name[0] in 'AEIO' else 'a'} {name}, got {kind_of(value)}")
    return value


def check_path(value: Any, what: str) -> Path:
    """Return a path, of text or anything that stands for one."""
    path = value if isinstance(value, str) else os.fspath(value) if isinstance(value, os.PathLike) else None
    if not isinstance(path, str):
        raise TypeError(f"{what} must be a path, got {kind_of(value)}")
    if "\0" in path:
        raise ValueError(f"{what} must be a path, and {shown(path)} holds a NUL character")
    return Path(path)


def check_mapping(value: Any, what: str) -> Mapping[Any, Any]:
    """Refuse what has no names to look up."""
    if not isinstance(value, Mapping) or hasattr(value, "shape"):  # a matrix of SciPy's dok format is a dict
        raise TypeError(f"{what} must be a mapping of names to values, got {kind_of(value)}")
    return value


def check_list(value: Any, what: str, kind: type[_T]) -> list[_T]:
    """Return the entries of anything but text that can be gone through, each of a class."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or hasattr(value, "shape"):
        raise TypeError(f"{what} must be a list of {kind.__name__}, got {kind_of(value)}")
    return [check_kind(one, f"{what}[{index}]", kind) for index, one in enumerate(value)]


def as_array(values: Any, what: str) -> NDArray[Any]:
    """Return `values` as an array; refuse what NumPy would turn into something else without a word."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{what} is a masked array, whose mask would be lost; use .filled(value) first")
    listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if not (listed or hasattr(values, "__array__")) or isinstance(values, type):
        raise TypeError(f"{what} must be an array, got {kind_of(values)}")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{what} cannot be read as a vector or a matrix: {error}") from error


def check_numbers(values: Any, what: str, *shape: int | None, whole: bool = False) -> NDArray[Any]:
    """Return an array of real numbers of a shape, None for any length; of integers where they are `whole`."""
    array = as_array(values, what)
    if whole and not array.size:
        array = np.zeros(array.shape, np.int64)  # an empty list is of no kind
    if array.dtype.kind not in ("biu" if whole else "biuf"):
        raise TypeError(f"{what} must hold {'integers' if whole else 'real numbers'}, got dtype {array.dtype}")
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{what} must have the shape ({expected}), got {array.shape}")
    return array


def check_places(values: Any, what: str, count: int, least: int = 0) -> NDArray[Any]:
    """Return a vector of integers from `least` to ``count - 1``."""
    array = check_numbers(values, what, None, whole=True)
    if array.dtype.kind == "b":
        raise TypeError(f"{what} must hold integers, got booleans")
    outside = (array < least) | (array >= count)
    if outside.any():
        raise ValueError(f"{what} holds {array[outside.argmax()]}; it must be from {least} to {count - 1}")
    return array.astype(np.int64, copy=False)


def check_sparse(matrix: Any, what: str, *shape: int | None) -> None:
    """Refuse a sparse matrix of another shape, of other than numbers, or whose places are none: C++ would crash."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TypeError(f"{what} must be a matrix of real numbers, got {matrix.dtype} of shape {matrix.shape}")
    if shape and any(want not in (None, have) for want, have in zip(shape, matrix.shape, strict=True)):
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{what} must have the shape ({expected}), got {matrix.shape}")
    rows = max(matrix.shape)
    if rows > 10**8 and rows > 1000 * (matrix.nnz + 1):
        raise ValueError(f"{what} has the shape {matrix.shape} and {matrix.nnz} entries; leave out what is empty")
    if hasattr(matrix, "check_format"):
        try:
            matrix.check_format()
        except ValueError as error:
            raise ValueError(f"{what} is not a valid sparse matrix: {error}") from error


def check_predictions(output: Any) -> Any:
    """What a model says, if it is numbers: weights from a file may be of any size."""
    if np.isnan(output).any() or (output.shape[1] == 1 and np.isinf(output).any()):
        raise ValueError(
            "the model's predictions are not numbers: its weights, or the features, are too large; train again"
        )
    return output
