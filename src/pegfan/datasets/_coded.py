"""Columns of texts as numbers: every text is held once, and a cell is its number.

A file of ten million edges names a million nodes: what is checked, sorted or compared is then these, not the cells.
"""

from __future__ import annotations

import secrets
import sys
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import IntArray
from pegfan.datasets import _kernels

_Bytes = NDArray[np.uint8]
_MOST = 2**31 - 1
_WIDEST = 256  # NumPy gives every string the room of the longest
_ASCII = 127


class Texts:
    """Different texts.

    Attributes
    ----------
    data : uint8 array
        Their bytes, one text after the other.
    starts : int64 array
        Where each begins; one more entry says where the last ends.
    are_sorted : bool
        Whether they are known to be in order.
    columns : int
        How many columns they come from: each of them is in one.
    """

    def __init__(self, data: _Bytes, starts: IntArray, *, are_sorted: bool = False, columns: int = 1) -> None:
        self.data, self.starts, self.are_sorted, self.columns = data, starts, are_sorted, columns

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def arrow(self) -> Any:
        """The texts as an Arrow array."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.starts), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    def series(self, codes: Any, name: str | None = None) -> Any:
        """The texts of some codes, as a column."""
        import pyarrow as pa

        return pa.table([self.arrow.take(pa.array(codes))], names=["texts"]).to_pandas()["texts"].rename(name)

    def array(self, codes: IntArray) -> NDArray[Any] | None:
        """The texts of some codes as an array of strings; None where they are long, or not all plain ASCII."""
        lengths = np.diff(self.starts)[codes]
        width = int(lengths.max(initial=0))
        if not 0 < width <= _WIDEST or self.ends_with_nul.any() or (self.data.size and self.data.max() > _ASCII):
            return None
        matrix = np.zeros((len(codes), width), np.uint32)  # as NumPy holds strings
        _kernels.spread_texts(self.data, self.starts, np.ascontiguousarray(codes, dtype=np.int64), matrix)
        matrix.setflags(write=False)
        return matrix.view(f"<U{width}" if sys.byteorder == "little" else f">U{width}").reshape(-1)

    @cached_property
    def ends_with_nul(self) -> NDArray[np.bool_]:
        """Which texts end with a NUL character."""
        lengths = np.diff(self.starts)
        last = np.append(self.data, np.uint8(1))[np.where(lengths > 0, self.starts[1:] - 1, len(self.data))]
        return np.asarray(last == 0)

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Which texts are nothing but white space."""
        first = np.append(self.data, np.uint8(0))[self.starts[:-1]]
        found = (np.diff(self.starts) == 0) | (first <= ord(" ")) | (first > _ASCII)
        some = np.flatnonzero(found)
        found[some] = (self.series(some).str.strip() == "").to_numpy(dtype=bool)
        return np.asarray(found)

    def sorted(self, codes: IntArray | None = None) -> IntArray:
        """The codes, all of them or some, in the order of their texts."""
        rows = np.arange(len(self)) if codes is None else np.ascontiguousarray(codes, dtype=np.int64)
        if self.are_sorted or len(rows) == 0:
            return np.sort(rows) if codes is not None else rows
        lengths = np.diff(self.starts)[rows]
        longest, depth = int(lengths.max()), self._shared(rows, int(lengths.min()))
        groups: IntArray | None = None  # after the first round: rows that are alike so far share a number
        places = np.arange(len(rows))
        result = rows.copy()
        while True:
            keys = np.empty(len(rows), np.uint64)
            _kernels.text_keys(self.data, self.starts, rows, depth, keys)
            order = np.argsort(keys) if groups is None else np.lexsort((keys, groups))
            rows, keys = rows[order], keys[order]
            result[places] = rows
            new = np.ones(len(rows), dtype=bool)
            new[1:] = keys[1:] != keys[:-1]
            if groups is not None:
                groups = groups[order]
                new[1:] |= groups[1:] != groups[:-1]
            alike = ~new
            alike[:-1] |= ~new[1:]
            depth += 8
            if not alike.any() or depth >= longest + 8:
                return result
            groups = np.cumsum(new)[alike]
            places, rows = places[alike], rows[alike]
            if depth >= longest:  # only how many NUL characters they end with is left
                order = np.lexsort((np.diff(self.starts)[rows], groups))
                result[places] = rows[order]
                return result

    def in_order(self, columns: list[NDArray[np.int32]]) -> Texts:
        """The texts, sorted; columns of their numbers are changed to the new ones."""
        order = self.sorted()
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        for codes in columns:
            _kernels.take_all(rank, codes, codes)
        starts = np.zeros(len(order) + 1, np.int64)
        np.cumsum(np.diff(self.starts)[order], out=starts[1:])
        data = np.empty(len(self.data), np.uint8)
        _kernels.copy_texts(self.data, self.starts, order, data)
        return Texts(data, starts, are_sorted=True, columns=len(columns))

    def _shared(self, rows: IntArray, shortest: int) -> int:
        """How many bytes all of the texts begin with alike."""
        depth, keys = 0, np.empty(len(rows), np.uint64)
        while depth < shortest:
            _kernels.text_keys(self.data, self.starts, rows, depth, keys)
            other = int(np.bitwise_or.reduce(keys ^ keys[0]))
            if other:
                return min(depth + 8 - -(-other.bit_length() // 8), shortest)
            depth += 8
        return min(depth, shortest)


class Coded:
    """A column of texts, as their numbers.

    Attributes
    ----------
    codes : integer array
        The number of every cell's text.
    texts : Texts
        The different texts, which other columns of the table may share.
    """

    def __init__(self, codes: NDArray[Any], texts: Texts) -> None:
        self.codes, self.texts = codes, texts


class Cells:
    """The columns of a text file: those of texts as numbers, and the others as a data frame.

    Attributes
    ----------
    columns : list of str
        Their names, in order.
    coded : dict
        The columns of texts; they share their `Texts`.
    """

    def __init__(self, columns: list[str], coded: dict[str, Coded], others: Any) -> None:
        self.columns, self.coded, self._others = columns, coded, others

    def __len__(self) -> int:
        return len(next(iter(self.coded.values())).codes)

    def series(self, column: str, most: int | None = None) -> Any:
        """A column, or its first rows."""
        if column in self.coded:
            found = self.coded[column]
            return found.texts.series(found.codes[:most], column)
        return self._others[column].iloc[:most]

    @cached_property
    def frame(self) -> Any:
        """All columns."""
        import pandas as pd

        return pd.DataFrame({column: self.series(column) for column in self.columns}, copy=False)


class Numberer:
    """Numbers texts, block by block."""

    def __init__(self) -> None:
        # Nobody can prepare a file whose texts all fall into one place without knowing this number.
        self._seed = secrets.randbits(64)
        self._slots = np.zeros(2**14, np.uint64)
        self._texts = np.empty(2**16, np.uint8)
        self._starts = np.zeros(len(self._slots) // 4 + 2, np.int64)

    def number(self, data: _Bytes, begins: Any, ends: Any, codes: NDArray[np.int32]) -> None:
        """Write the number of every text, which is ``data[begin:end]``."""
        done = 0
        while True:
            table = self._seed, self._slots, self._texts, self._starts
            done = int(_kernels.number_texts(data, begins, ends, done, *table, codes))
            if done == len(begins):
                return
            self._grow(int(ends[done]) - int(begins[done]))

    def number_series(self, texts: Any, codes: NDArray[np.int32]) -> None:
        """Write the number of every text of a column without gaps."""
        import pyarrow as pa

        done = 0
        held = pa.array(texts, type=pa.large_string())
        for chunk in held.chunks if isinstance(held, pa.ChunkedArray) else [held]:
            _, starts, data = chunk.buffers()
            own = np.frombuffer(starts, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
            letters = np.frombuffer(b"" if data is None else data, np.uint8)
            self.number(letters, own[:-1], own[1:], codes[done : done + len(chunk)])
            done += len(chunk)

    def _grow(self, length: int) -> None:
        """Make room for more texts, one of them of some length."""
        count = int(self._starts[-1])
        held = int(self._starts[count])
        if held + length > len(self._texts):
            self._texts = _longer(self._texts, max(2 * len(self._texts), held + length), held)
        if 4 * (count + 64) > len(self._slots):
            if count > _MOST // 2:
                raise MemoryError("more than a thousand million different texts")
            self._slots = np.zeros(4 * len(self._slots), np.uint64)
            self._starts = _longer(self._starts, len(self._slots) // 4 + 2, count + 1)
            self._starts[-1] = count
            _kernels.place_texts(self._texts, count, self._starts, self._seed, self._slots)

    def texts(self) -> Texts:
        """The different texts."""
        count = int(self._starts[-1])
        return Texts(self._texts[: int(self._starts[count])], self._starts[: count + 1])


def _longer(array: NDArray[Any], length: int, held: int) -> NDArray[Any]:
    longer = np.empty(length, array.dtype)
    longer[:held] = array[:held]
    return longer


def places(texts: Any, among: Any) -> IntArray:
    """Where each text of a column is among those of another one, which all differ; -1 where it is not."""
    numberer = Numberer()
    known = np.empty(len(among), np.int32)
    found = np.empty(len(texts), np.int32)
    numberer.number_series(among, known)
    numberer.number_series(texts, found)
    return np.where(found < len(among), found, -1).astype(np.int64)
