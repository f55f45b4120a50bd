"""The types of arrays that signatures name, memory that starts on a cache line, and memory that is used again."""

from __future__ import annotations

import math
from typing import Any

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
