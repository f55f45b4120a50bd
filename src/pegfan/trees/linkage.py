"""Ward's linkage of points, cut into clusters of at most h."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._matrices import enough, moved
from pegfan.trees._kernels import name_merges, ward_merges
from pegfan.trees.hierarchy import cut_linkage
from pegfan.trees.level import LevelGraph

ALL_PAIRS = 200_000
"""The most nodes of which comparing all pairs is sensible: some minutes."""


def cluster_points(level: LevelGraph, embed: Callable[[LevelGraph], FloatArray], h: int) -> IntArray:
    """Labels from Ward's linkage of the points that an embedding gives the nodes with edges, and of their signals."""
    labels = np.arange(level.n)
    joined = np.flatnonzero(np.diff(level.edges.indptr))  # nodes without edges have no place in an embedding
    if len(joined) < 2:
        return labels
    part = _restrict(level, joined)
    points = embed(part)
    if part.signals is not None:
        points = np.column_stack([points, part.signals.points()])
    labels[joined] = level.n + cut_linkage(ward_linkage(points), h)
    return labels


def ward_linkage(points: FloatArray) -> FloatArray:
    """Ward's linkage of points in O(n) memory: what ``scipy.cluster.hierarchy.linkage(points, "ward")`` gives.

    Chains of nearest neighbours end in pairs that may be merged at once, whatever else is merged before (Ward's
    criterion is reducible). Ties fall to the point that stands first.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan.trees.linkage import ward_linkage
    >>> ward_linkage(np.array([[0.0], [1.0], [5.0]])).round(3)
    array([[0.   , 1.   , 1.   , 2.   ],
           [2.   , 3.   , 5.196, 3.   ]])
    """
    n = len(points)
    merged, heights, linkage = np.empty((n - 1, 2), np.int64), np.empty(n - 1), np.empty((n - 1, 4))
    enough(_interruptible(ward_merges, np.array(points.T, dtype=np.float64, order="C"), merged, heights))
    order = np.argsort(heights, kind="stable")
    linkage[:, 2] = np.sqrt(2.0 * heights[order])
    enough(name_merges(merged[order], linkage))
    return linkage


def _interruptible(kernel: Callable[..., Any], *arrays: Any) -> Any:
    """Run a compiled loop in a thread of its own, so that Ctrl-C reaches it: it looks at a flag and ends."""
    stop = np.zeros(1, np.uint8)
    with ThreadPoolExecutor(1) as pool:
        try:
            future = pool.submit(kernel, *arrays, stop)
            while not wait([future], timeout=0.2).done:  # a signal just before an endless wait would not end it
                pass
            return future.result()
        except BaseException:
            stop[0] = 1
            raise


def _restrict(level: LevelGraph, nodes: IntArray) -> LevelGraph:
    if len(nodes) == level.n:
        return level
    arcs, edges = (moved(matrix, nodes) for matrix in (level.arcs, level.edges))
    signals = None if level.signals is None else level.signals.take(nodes)
    return replace(level, arcs=arcs, edges=edges, signals=signals)
