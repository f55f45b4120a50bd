"""The types of arrays that signatures name, memory that starts on a cache line, and memory that is used again."""

from __future__ import annotations

import math
import mmap
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]

LINE = 64
"""Bytes of a cache line."""


def aligned(shape: int | tuple[int, ...], dtype: Any, fresh: Any = np.empty) -> Any:
    """An array that starts on a cache line; with ``fresh=np.zeros``, of zeros."""
    size = int(np.prod(shape)) * dtype.itemsize
    room = fresh(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(dtype).reshape(shape)


def cast(array: Any, dtype: Any) -> Any:
    """The array in another dtype; a long double too large for it becomes infinite, for checks to report."""
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def freeze(*arrays: NDArray[Any]) -> None:
    """Make arrays read-only."""
    for array in arrays:
        array.setflags(write=False)


class Room:
    """Memory for the arrays of one level at a time: fresh memory is slow, for the system clears it page by page."""

    def __init__(self, size: int) -> None:
        self._block = np.empty(size, np.uint8)

    def arrays(self, *wanted: tuple[Any, Any]) -> list[NDArray[Any]]:
        """Arrays of these shapes and dtypes; those that were made before are lost."""
        found, start = [], 0
        for shape, dtype in wanted:
            end = start + math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
            found.append(self._block[start:end].view(dtype).reshape(shape))
            start = -(-end // LINE) * LINE
        return found


# ------------------------------------------------------------------ large results

_LARGE = 8 * 2**20
_KEPT = 2**29
_HUGE = 2 * 2**20  # bytes of a huge page

_kept: list[mmap.mmap] = []
_lock = Lock()


def reused(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array like `aligned`, in the memory of an earlier one where that is free again.

    The system clears fresh memory before it hands it out, which takes about as long as a transform. The memory of
    large arrays is therefore kept when they and their views are gone, up to half a gigabyte, for the next array of
    that size. Meanwhile the system may take it back (``MADV_FREE``), and does when memory is short.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_FREE"):
        return aligned(shape, dtype)
    return np.asarray(_Lent(_take(-(-size // _HUGE) * _HUGE), shape, dtype))


class _Lent:
    """Memory as an array shows it: the array and its views hold this, and when they are gone the memory is free."""

    def __init__(self, piece: mmap.mmap, shape: tuple[int, ...], dtype: Any) -> None:
        address = np.frombuffer(piece, np.uint8).ctypes.data
        self.__array_interface__ = {"shape": shape, "typestr": dtype.str, "data": (address, False), "version": 3}
        finalize(self, _keep, piece).atexit = False


def _take(size: int) -> mmap.mmap:
    if _lock.acquire(blocking=False):
        try:
            for place, piece in enumerate(_kept):
                if len(piece) == size:
                    return _kept.pop(place)
        finally:
            _lock.release()
    try:
        piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"unable to allocate {size / 2**30:,.1f} GiB") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # not every kernel has huge pages
            piece.madvise(mmap.MADV_HUGEPAGE)
    return piece


def _keep(piece: mmap.mmap) -> None:
    # An array can go at any moment, also while this very thread is in here: nobody waits for the lock.
    if _lock.acquire(blocking=False):
        try:
            with suppress(OSError):  # where the system could not take it back, it is not kept
                piece.madvise(mmap.MADV_FREE)
                _kept.append(piece)
            while sum(map(len, _kept)) > _KEPT:
                del _kept[0]
        finally:
            _lock.release()


def forget() -> None:
    """Give back the memory that is kept."""
    if _lock.acquire(blocking=False):
        try:
            _kept.clear()
        finally:
            _lock.release()
