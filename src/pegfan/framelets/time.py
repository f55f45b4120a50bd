"""Time on a graph: framelets over nodes times Haar's wavelets over time."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_integer, shown
from pegfan.framelets._signals import as_signal, is_tensor, stack_rows
from pegfan.framelets.coefficients import Coefficients
from pegfan.framelets.frames import FrameletFrame
from pegfan.framelets.operators import Operator
from pegfan.framelets.system import FrameletSystem
from pegfan.trees import Hierarchy

__all__ = ["TimeSystem", "time_tree"]


def time_tree(length: int, shift: float = 0.0) -> Hierarchy:
    """The binary tree over the times 0, 1, ..., length − 1 whose clusters are intervals.

    Parameters
    ----------
    length
        T, any number from 1.
    shift
        0 halves intervals as evenly as possible. Another number below 1 lays a grid of powers of two over the times
        that starts this share of the whole earlier; intervals at both ends are cut off.

    Examples
    --------
    >>> time_tree(5)
    Hierarchy(n=5, K=4, clusters=1-2-4-5, h=2)
    >>> [time_tree(8, shift).labels(2).tolist() for shift in (0.0, 0.25)]
    [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1]]
    """
    times, depth = np.arange(check_integer(length, "length", least=1)), int(length).bit_length() - 1
    if not 0 <= shift < 1:
        raise ValueError(f"shift is a share of the whole, from 0 and below 1; got {shown(shift)}")
    if not shift:  # interval i of 2^d begins at ⌊i T/2^d⌋
        levels = [((times + 1) * 2**d - 1) // length for d in range(depth + 1)]
    else:
        width = 2 ** (depth + (length > 2**depth))
        levels = [(times + round(shift * width)) // size for size in width // 2 ** np.arange(int(width).bit_length())]
    found = [times * 0]
    for level in (*levels, times):  # no level twice: a shifted grid may leave the first ones whole
        if np.count_nonzero(np.diff(level)) > np.count_nonzero(np.diff(found[-1])):
            found.append(level)
    return Hierarchy.from_labels(found)


class TimeSystem:
    """A tight frame for signals over nodes and times: framelets of a tree (or of several) times Haar's over time.

    With the framelets F of a tree in rows and an orthonormal Haar basis G of T times, the coefficients of an n × T
    signal are F f Gᵀ, those of the tensor system F ⊗ G. Over several trees it is a frame (F_1 ⊗ G_1; F_2 ⊗ G_2;
    ...)/√K, the first with times halved evenly and every other one with a grid of its own, so that no single moment
    is an edge in all.

    Parameters
    ----------
    space
        The framelets over nodes: a system or a frame.
    length
        T, how many times.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    >>> system = TimeSystem(pf.FrameletSystem(tree, "haar-basis"), length=6)
    >>> system
    TimeSystem(1 tree of 4 nodes × 6 times)
    >>> f = np.outer([1.0, 1, 2, 2], [0, 0, 0, 3, 3, 3])
    >>> c = system.decompose(f)
    >>> c.shape, int(np.count_nonzero(c.round(9)))
    ((4, 6), 4)
    >>> bool(np.isclose(np.sum(c**2), np.sum(f**2))), bool(np.allclose(system.reconstruct(c), f))
    (True, True)
    """

    def __init__(self, space: FrameletSystem | FrameletFrame, length: int) -> None:
        if not isinstance(space, FrameletSystem | FrameletFrame):
            raise TypeError(f"space must be a FrameletSystem or a FrameletFrame, got {type(space).__name__}")
        self.space = space if isinstance(space, FrameletFrame) else FrameletFrame([space])
        self.length = check_integer(length, "length", least=1)
        # Shifts of grids are spread as evenly as so many can be (the golden section), whatever their number is.
        shifts = np.arange(len(self.space)) * 0.6180339887498949 % 1.0
        trees = {shift: time_tree(self.length, shift) for shift in shifts.tolist()}
        self.time = [FrameletSystem(trees[shift], "haar-basis", weights="size") for shift in shifts.tolist()]

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.space.n

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of coefficients: framelets over nodes of all trees × times."""
        return self.space.offsets[-1], self.length

    def decompose(self, f: Any) -> Any:
        """The coefficients F f Gᵀ of an n × T signal, tree by tree below each other; their energy is the signal's."""
        f = self._checked(f, self.n, "the signal")
        parts = [
            _across(lambda x, time=time: time.decompose(x).array, space.decompose(f).array)
            for space, time in zip(self.space, self.time, strict=True)
        ]
        return stack_rows(parts) * len(self.space) ** -0.5

    def reconstruct(self, coefficients: Any) -> Any:
        """The signal whose coefficients these are, or else the nearest one's."""
        c = self._checked(coefficients, self.shape[0], "the coefficient array")
        total: Any = 0.0
        for (space, start, end), time in zip(self.space._places(), self.time, strict=True):
            part = _across(lambda x, time=time: time.reconstruct(Coefficients(x, time, 1)), c[start:end])
            total = total + space.reconstruct(Coefficients(part, space, 1))
        return total * len(self.space) ** -0.5

    def operator(self) -> Operator:
        """The system as a linear operator on signals in one column, node by node: F ⊗ G."""

        def each(transform: Any, rows: int, x: Any) -> Any:
            columns = [transform(x[:, i].reshape(rows, self.length)).reshape(-1) for i in range(x.shape[1])]
            return np.stack(columns, axis=1)

        shape = (self.shape[0] * self.length, self.n * self.length)
        return Operator(
            "F ⊗ G",
            shape,
            lambda x: each(self.decompose, self.n, x),
            lambda x: each(self.reconstruct, self.shape[0], x),
        )

    @cached_property
    def scales(self) -> tuple[IntArray, IntArray]:
        """Of every coefficient the scale over nodes and the one over time, as `FrameletFrame.scales` has them."""
        over_time = [FrameletFrame([time]).scales for time in self.time]
        counts = np.diff(self.space.offsets)
        return np.broadcast_to(self.space.scales[:, None], self.shape), np.repeat(over_time, counts, axis=0)

    @cached_property
    def norms(self) -> FloatArray:
        """The norms of the framelets over nodes, without the factor 1/√K; those over time are 1."""
        return self.space.norms

    def permute(self, perm: Any) -> TimeSystem:
        """The same system on renumbered nodes: new node i is old node ``perm[i]``."""
        return TimeSystem(self.space.permute(perm), self.length)

    def _checked(self, f: Any, rows: int, what: str) -> Any:
        f = as_signal(f, rows, what)
        if f.ndim != 2 or f.shape[1] != self.length:
            raise ValueError(f"{what} must have {self.length} columns, one per time; got shape {tuple(f.shape)}")
        return f

    def __repr__(self) -> str:
        trees = f"{len(self.space)} tree{'s' if len(self.space) > 1 else ''}"
        return f"TimeSystem({trees} of {self.n} nodes × {self.length} times)"


def _across(transform: Any, x: Any) -> Any:
    """A transform of columns, of the rows."""
    turned = x.T if is_tensor(x) or not isinstance(x, np.ndarray) else np.ascontiguousarray(x.T)
    found = transform(turned).T
    return np.ascontiguousarray(found) if isinstance(found, np.ndarray) else found
