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
