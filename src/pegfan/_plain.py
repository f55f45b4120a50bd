"""Plain values: what JSON can hold, and the versions of packages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

__all__ = ["plain", "versions"]


def plain(value: Any) -> Any:
    """The value with what JSON can hold only: NumPy's numbers and arrays as Python's, what is no number as None.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"mean": np.float32(0.5), "values": np.array([1.0, np.nan]), "shape": (2,)})
    {'mean': 0.5, 'values': [1.0, None], 'shape': [2]}
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def versions(*names: str) -> dict[str, str]:
    """The version of pegfan and of those packages that are installed.

    Examples
    --------
    >>> list(versions("numpy", "no-such-package"))
    ['pegfan', 'numpy']
    """
    from pegfan import __version__

    installed = {"pegfan": __version__}
    for name in names:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed
