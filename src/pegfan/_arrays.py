"""The types of arrays that signatures name, and arrays that start on a cache line."""

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
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * dtype.itemsize
    block = fresh(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    return block[start : start + size].view(dtype).reshape(shape)


def cast(array: Any, dtype: Any) -> Any:
    """The array in another dtype; a long double too large for it becomes infinite, for checks to report."""
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def freeze(*arrays: NDArray[Any]) -> None:
    """Make arrays read-only."""
    for array in arrays:
        array.setflags(write=False)
