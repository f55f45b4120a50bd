"""Haar-type framelets on a hierarchy: filters, systems and their fast transforms."""

from pegfan.framelets.coefficients import Coefficients
from pegfan.framelets.filters import (
    FAMILIES,
    Family,
    FilterCheck,
    Filters,
    binary_haar,
    check_filters,
    haar_basis,
    left_inverse,
    permuted,
)
from pegfan.framelets.frames import FrameletFrame
from pegfan.framelets.moments import MomentSystem
from pegfan.framelets.operators import Operator, adjoint_test
from pegfan.framelets.quality import quality
from pegfan.framelets.shrinkage import threshold
from pegfan.framelets.system import FrameletSystem
from pegfan.framelets.time import TimeSystem, time_tree

__all__ = [
    "FAMILIES",
    "Coefficients",
    "Family",
    "FilterCheck",
    "Filters",
    "FrameletFrame",
    "FrameletSystem",
    "MomentSystem",
    "Operator",
    "TimeSystem",
    "adjoint_test",
    "binary_haar",
    "check_filters",
    "haar_basis",
    "left_inverse",
    "permuted",
    "quality",
    "threshold",
    "time_tree",
]
