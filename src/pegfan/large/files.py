"""Arrays on disk that are read and written in runs of rows, and arcs that are read so."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan.large.pieces import Made

__all__ = ["Arcs", "RowWriter", "Rows"]

_GAP = 32_768
"""Bytes that are read for nothing rather than that a file is asked twice."""


class Rows:
    """The rows of an ``.npy`` file, read when they are asked for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.npy"
    ...     np.save(path, np.arange(8).reshape(4, 2))
    ...     rows = Rows(path)
    ...     rows.count, rows.read(1, 2), rows.take(np.array([3, 0, 3]))
    (4, array([[2, 3]]), array([[6, 7],
           [0, 1],
           [6, 7]]))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, self.dtype = read(file)
            self._begin = file.tell()
        if not shape or self.dtype.hasobject or (fortran and len(shape) > 1):
            raise ValueError(f"{self.path} holds no rows of plain numbers; remove it, so that it is made again")
        self.count, self.shape = int(shape[0]), tuple(shape[1:])
        self._entries = int(np.prod(self.shape, dtype=np.int64))
        self.row_bytes = self._entries * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The rows from one up to another."""
        with self.path.open("rb", buffering=0) as file:
            return self._read(file, start, stop)

    def _read(self, file: Any, start: int, stop: int) -> NDArray[Any]:
        out = np.empty((stop - start, *self.shape), self.dtype)
        room = _bytes_of(out)
        file.seek(self._begin + start * self.row_bytes)
        done = 0
        while done < len(room):
            got = file.readinto(room[done:])
            if not got:
                raise ValueError(f"{self.path} is cut short; remove it, so that it is made again")
            done += got
        return out

    def take(self, places: IntArray, run: slice | None = None) -> NDArray[Any]:
        """Rows in any order; those that are near each other are read at once. A `run` says that all of them are."""
        if run is not None:
            return self.read(run.start, run.stop)
        if not len(places):
            return np.empty((0, *self.shape), self.dtype)
        steps = np.diff(places)
        if (steps > 0).all():
            wanted, back = places, None
        else:
            wanted, back = np.unique(places, return_inverse=True)
            steps = np.diff(wanted)
        out = np.empty((len(wanted), *self.shape), self.dtype)
        apart = np.flatnonzero(steps > max(_GAP // max(self.row_bytes, 1), 1)) + 1
        ends = [0, *apart.tolist(), len(wanted)]
        with self.path.open("rb", buffering=0) as file:
            for first, last in pairwise(ends):
                own = wanted[first:last]
                found = self._read(file, int(own[0]), int(own[-1]) + 1)
                out[first:last] = found if len(found) == len(own) else found[own - own[0]]
        return out if back is None else out[back]


def _bytes_of(array: Any) -> memoryview:
    return memoryview(array.reshape(-1)).cast("B") if array.size else memoryview(b"")


class RowWriter:
    """An ``.npy`` file whose rows are written in any order, by any thread."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: Any) -> None:
        self._lock, self.dtype = Lock(), np.dtype(dtype)
        self._row = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        self._file = path.open("wb", buffering=0)
        header = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._file, header)
        self._begin = self._file.tell()
        self._file.truncate(self._begin + shape[0] * self._row)

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Write rows from one on."""
        data = _bytes_of(np.ascontiguousarray(rows, self.dtype))
        with self._lock:
            self._file.seek(self._begin + start * self._row)
            done = 0
            while done < len(data):
                done += self._file.write(data[done:])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class Arcs:
    """Arc blocks, read in runs of rows."""

    def __init__(self, blocks: Made) -> None:
        self.blocks, about = blocks, blocks.results
        self.starts = [int(one["start"]) for one in about]
        self.n = int(about[-1]["stop"])
        self._pointers = [Rows(blocks.path("pointers.npy", b)) for b in range(blocks.count)]
        self._columns = [Rows(blocks.path("columns.npy", b)) for b in range(blocks.count)]
        weighed = [blocks.has("weights", b) for b in range(blocks.count)]
        self._weights = [Rows(blocks.path("weights.npy", b)) if own else None for b, own in enumerate(weighed)]

    def chunks(self, arcs: int) -> Iterator[tuple[int, int]]:
        """Runs of rows with about so many arcs, or a single row with more; no run is in two blocks."""
        for block in range(self.blocks.count):
            yield from self.chunks_of(block, arcs)

    def chunks_of(self, block: int, arcs: int) -> Iterator[tuple[int, int]]:
        """Those of one block."""
        start, rows = self.starts[block], self._pointers[block]
        pointers = rows.read(0, rows.count).astype(np.int64)
        first, last = 0, len(pointers) - 1
        while first < last:
            end = int(np.searchsorted(pointers, pointers[first] + arcs, side="right")) - 1
            end = min(max(end, first + 1), last)
            yield start + first, start + end
            first = end

    def rows(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        """Pointers from 0 on, columns and weights of some rows; pointers have the dtype of the columns."""
        found = []
        while start < stop:
            block = bisect_right(self.starts, start) - 1
            while self._pointers[block].count - 1 + self.starts[block] <= start:  # blocks without rows
                block += 1
            begin = self.starts[block]
            end = min(stop, begin + self._pointers[block].count - 1)
            found.append(self._part(block, start - begin, end - begin))
            start = end
        if len(found) == 1:
            return found[0]
        if not found:
            return np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0)
        counts = np.concatenate([np.diff(part[0]) for part in found])
        columns, weights = (np.concatenate([part[k] for part in found]) for k in (1, 2))
        return np.concatenate([[0], np.cumsum(counts)]).astype(columns.dtype), columns, weights

    def _part(self, block: int, first: int, last: int) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        pointers = self._pointers[block].read(first, last + 1)
        a, b = int(pointers[0]), int(pointers[-1])
        columns, weights = self._columns[block].read(a, b), self._weights[block]
        values = np.ones(b - a) if weights is None else weights.read(a, b).astype(np.float64)
        return (pointers - a).astype(columns.dtype), columns, values
