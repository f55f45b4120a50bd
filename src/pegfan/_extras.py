"""Packages that only a part of this one needs."""

from __future__ import annotations

import importlib
from types import ModuleType


def need(name: str, extra: str) -> ModuleType:
    """Import a package that comes with an extra, or say how to get it.

    Examples
    --------
    >>> need("json", "files").__name__
    'json'
    >>> need("no_such_package", "files")
    Traceback (most recent call last):
    ImportError: this needs no_such_package: pip install 'pegfan[files]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ImportError(f"this needs {name.partition('.')[0]}: pip install 'pegfan[{extra}]'") from error
