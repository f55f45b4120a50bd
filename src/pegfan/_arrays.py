"""The types of arrays that signatures name, and memory that starts on a cache line."""

from __future__ import annotations

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
