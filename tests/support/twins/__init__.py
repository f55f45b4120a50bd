"""Plain Python of every loop in C, by the loop's name: what the tests compare it with.

A module of this package holds the twins of one room; a twin takes what the loop takes.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np

__path__: Any


def all_twins() -> dict[str, Any]:
    """All twins, by name."""
    rooms = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    public = {name: value for room in rooms for name, value in vars(room).items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if getattr(value, "__module__", "").startswith(__name__)}


def twin_of(loop: Any) -> Any:
    """The twin of a loop; integers wrap around without a warning, as they do in C."""
    plain = all_twins()[loop.__name__]

    def run(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return plain(*args)

    return run


def same_as_twin(loop: Any, *args: Any, scratch: tuple[int, ...] = ()) -> list[Any]:
    """Check that a loop does in C what its twin does, bit for bit; the arguments as they are afterwards.

    `scratch` are arguments whose contents are of no use then.
    """
    runs = [[a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)]
    results = [run(*arguments) for run, arguments in zip((loop, twin_of(loop)), runs, strict=True)]
    assert results[0] == results[1]
    for i, (one, other) in enumerate(zip(*runs, strict=True)):
        if isinstance(one, np.ndarray) and i not in scratch:
            assert one.tobytes() == other.tobytes(), f"{loop.__name__}: argument {i}"
    return runs[0]
