"""Permutation equivariant graph framelets: exact multiscale transforms of signals on graphs.

A graph becomes a tree (`Hierarchy`), a tree becomes framelets (`FrameletSystem`), and framelets take
signals apart by scale and put them together again.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pegfan.framelets import (
    Coefficients,
    FrameletSystem,
    adjoint_test,
    binary_haar,
    check_filters,
    haar_basis,
    left_inverse,
    permuted,
)
from pegfan.graph import Graph, Split
from pegfan.trees import Hierarchy, build_tree

if TYPE_CHECKING:
    from pegfan import channels, datasets, measures, plots, trees
    from pegfan.auto import AutoClassifier
    from pegfan.channels import make_channels, make_fsgnn_channels
    from pegfan.classifier import FSGNNClassifier, PEGFANClassifier
    from pegfan.datasets import read_graph
    from pegfan.training import Settings, train

__version__ = "0.1.0"

__all__ = [
    "AutoClassifier",
    "Coefficients",
    "FSGNNClassifier",
    "FrameletSystem",
    "Graph",
    "Hierarchy",
    "PEGFANClassifier",
    "Settings",
    "Split",
    "adjoint_test",
    "binary_haar",
    "build_tree",
    "channels",
    "check_filters",
    "datasets",
    "haar_basis",
    "left_inverse",
    "make_channels",
    "make_fsgnn_channels",
    "measures",
    "permuted",
    "plots",
    "read_graph",
    "train",
    "trees",
]

_PARTS = ("channels", "datasets", "measures", "plots", "trees")
_LAZY = {
    "AutoClassifier": "auto",
    "FSGNNClassifier": "classifier",
    "PEGFANClassifier": "classifier",
    "Settings": "training",
    "make_channels": "channels",
    "make_fsgnn_channels": "channels",
    "read_graph": "datasets",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    """Import the parts that need heavy packages when they are first used."""
    if name in _PARTS:
        return importlib.import_module(f"pegfan.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"pegfan.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'pegfan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PARTS, *_LAZY])
