"""Permutation equivariant graph framelets: exact multiscale transforms of signals on graphs.

A graph becomes a tree (`Hierarchy`), a tree becomes framelets (`FrameletSystem`), and framelets take
signals apart by scale and put them together again.
"""

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
from pegfan.trees import Hierarchy

__version__ = "0.1.0"

__all__ = [
    "Coefficients",
    "FrameletSystem",
    "Graph",
    "Hierarchy",
    "Split",
    "adjoint_test",
    "binary_haar",
    "check_filters",
    "haar_basis",
    "left_inverse",
    "permuted",
]
