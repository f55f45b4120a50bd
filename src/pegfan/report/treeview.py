"""The picture of the tree: for every level, boxes in the order of the leaves with the classes predicted in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegfan._arrays import IntArray
from pegfan.trees import Hierarchy

__all__ = ["boxes"]


_NARROWEST = 180
"""A box is at least 1/180 of the picture wide; smaller clusters share one."""
_MOST_LEVELS = 24


def boxes(tree: Hierarchy, predicted: IntArray) -> list[dict[str, Any]]:
    """The levels of the picture, root first: boxes with their place, clusters, and classes with counts.

    A box is ``[first leaf, leaves, first slot, clusters, class, count, class, count, ...]``. Clusters too small to see
    share a box with their neighbours. Very deep trees show some of their levels.
    """
    shown = range(1, tree.K + 1)
    if tree.K > _MOST_LEVELS:
        shown = np.unique(np.linspace(1, tree.K, _MOST_LEVELS).round().astype(int)).tolist()
    on_leaves = predicted[tree.order]
    return [_row(tree, level, on_leaves) for level in shown]


def _row(tree: Hierarchy, level: int, on_leaves: IntArray) -> dict[str, Any]:
    first = tree.first_leaf(level)
    row: list[list[int]] = []
    least = max(1, tree.n // _NARROWEST)
    c, count = 0, len(first) - 1
    while c < count:
        # As many small clusters as fill a visible box; a cluster that fills one stands alone.
        end = c + 1
        if first[end] - first[c] < least:
            stop = int(np.searchsorted(first, first[c] + least))
            while end < min(stop, count) and first[end + 1] - first[end] < least:
                end += 1
        classes, counts = np.unique(on_leaves[first[c] : first[end]], return_counts=True)
        mix = np.column_stack([classes, counts]).ravel().tolist()
        row.append([int(first[c]), int(first[end] - first[c]), c, end - c, *mix])
        c = end
    return {"level": level, "clusters": count, "boxes": row}
