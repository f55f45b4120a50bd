"""Packages that only some faces need come with an extra; a user who lacks one is told which to install."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

__all__ = ["need"]


def need(name: str, extra: str, what: str = "this") -> Any:
    """Import a package that an extra brings, or say how to get it.

    Parameters
    ----------
    name
        The module.
    extra
        The extra of ``pip install 'pegfan[extra]'``.
    what
        What needs it, for the message.

    Examples
    --------
    >>> need("numpy", "all").__name__
    'numpy'
    >>> need("no_such_package", "torch", "training on a GPU")
    Traceback (most recent call last):
    ImportError: training on a GPU needs no_such_package: pip install 'pegfan[torch]'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it says about its own dependencies is not the caller's business
            return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{what} needs {package}: pip install 'pegfan[{extra}]'") from error
