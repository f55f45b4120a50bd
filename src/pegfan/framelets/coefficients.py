"""The coefficients of a signal: one array, seen level by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pegfan._checks import check_kind
from pegfan.framelets._signals import as_signal

if TYPE_CHECKING:
    from pegfan.framelets.system import FrameletSystem


class Coefficients(Sequence[Any]):
    """Framelet coefficients f̂ of a signal, coarse to fine as PyWavelets orders them.

    ``c[0]`` are the scaling coefficients of level j0, ``c[1]``, ``c[2]``, ... the framelet coefficients of
    the clusters at levels j0, j0 + 1, ..., K − 1. All of them are parts of one array, ``c.array``, whose
    rows are those of ``system.matrix(j0) @ f``; changing a part changes the array.

    Attributes
    ----------
    array
        All coefficients: M values, M×d for a signal with d columns; NumPy, SciPy sparse or torch, as the
        signal was.
    system
        The framelet system they belong to.
    j0
        The level of the scaling coefficients.
    """

    def __init__(self, array: Any, system: FrameletSystem, j0: int) -> None:
        from pegfan.framelets.system import FrameletSystem as System  # which imports this module

        check_kind(system, "system", System)
        array = as_signal(array, system.count(j0), f"a coefficient array with j0 = {j0}")
        self.array, self.system, self.j0 = array, system, j0

    @classmethod
    def _of(cls, array: Any, system: FrameletSystem, j0: int) -> Coefficients:
        """What a transform made: there is nothing to check."""
        coefficients = cls.__new__(cls)
        coefficients.array, coefficients.system, coefficients.j0 = array, system, j0
        return coefficients

    @property
    def scaling(self) -> Any:
        """The scaling coefficients of level j0."""
        return self[0]

    def framelets(self, level: int) -> Any:
        """The framelet coefficients of the clusters at a level, j0 ≤ level ≤ K−1."""
        self.system.hierarchy._check_level(level, self.j0, self.system.K - 1)
        return self[level - self.j0 + 1]

    def replace(self, array: Any) -> Coefficients:
        """Other values on the same system: the way back from one flat array."""
        return Coefficients(array, self.system, self.j0)

    def energies(self) -> list[float]:
        """The squared norm of every part; they add up to the signal's."""
        return [float((part * part).sum()) for part in self]

    def __len__(self) -> int:
        return self.system.K - self.j0 + 1

    def __getitem__(self, part: Any) -> Any:
        if isinstance(part, slice):
            return [self[i] for i in range(*part.indices(len(self)))]
        i = part + len(self) if part < 0 else part
        if not 0 <= i < len(self):
            raise IndexError(f"there are {len(self)} parts, 0 to {len(self) - 1}; got {part}")
        ends = self.system.offsets(self.j0)
        return self.array[ends[i] : ends[i + 1]]

    def __repr__(self) -> str:
        counts = ", ".join(f"{part.shape[0]}" for part in self)
        columns = "" if self.array.ndim == 1 else f" × {self.array.shape[1]}"
        return f"Coefficients(j0={self.j0}, [{counts}]{columns})"
