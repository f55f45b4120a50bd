"""What is said about a signal that was not fully seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from pegfan._arrays import FloatArray

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """A signal as it probably is, and how that came about.

    Attributes
    ----------
    signal
        The estimate, of the shape of what was given.
    sigma
        The standard deviation of the noise, per node and column.
    shares
        What each kind of estimate contributed, by name; of one column, or the mean over several.
    low, high
        Ends of intervals, where these were asked for.
    level
        The share of intervals that hold the value that one would see at their node.
    """

    signal: FloatArray
    sigma: FloatArray
    shares: dict[str, float] = field(default_factory=dict)
    low: FloatArray | None = None
    high: FloatArray | None = None
    level: float | None = None
