"""Graphs beyond memory: the same trees, channels and predictions, worked out in pieces on disk.

`open` takes files of any size, and an amount of memory; see "Large graphs" in the documentation.
"""

from pegfan.large.graph import LargeGraph
from pegfan.large.graph import open_graph as open  # noqa: A004

__all__ = ["LargeGraph", "open"]
