"""Where to draw nodes: clusters as boxes inside boxes, or linked nodes near each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from pegfan.trees import Hierarchy

__all__ = ["nested_boxes", "springs"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

WIDE = 1.3
"""The picture's half width, for a half height of 1."""
_GAP = 0.03
"""Half the distance of two branches of the root; deeper clusters stand closer."""
_LEAST = 0.06
_GOLDEN = np.pi * (3 - np.sqrt(5))


def nested_boxes(tree: Hierarchy) -> list[FloatArray]:
    """Boxes inside boxes: for every level 1, ..., K an array (N_j, 4) of left, top, right and bottom.

    A cluster's box is shared by its children in their order, by their numbers of nodes (very small ones get more),
    less a gap that is the wider the coarser the level is: white lines show what belongs together.

    Examples
    --------
    >>> from pegfan import Hierarchy
    >>> root, nodes = nested_boxes(Hierarchy.from_nested([0, 1]))
    >>> root.tolist(), nodes.round(2).tolist()
    ([[-1.3, -1.0, 1.3, 1.0]], [[-1.27, -0.97, -0.03, 0.97], [0.03, -0.97, 1.27, 0.97]])
    """
    levels = [np.array([[-WIDE, -1.0, WIDE, 1.0]])]
    for level in range(1, tree.K):
        first, sizes = tree.first_child(level), tree.sizes(level + 1)
        boxes = np.empty((len(sizes), 4))
        for box, (a, b) in zip(levels[-1], pairwise(first.tolist()), strict=True):
            if b - a == 1:  # a cluster with one child is drawn once
                boxes[a] = box
            else:
                _share(boxes, box, a, b, np.concatenate([[0.0], np.cumsum(_widened(sizes[a:b]))]))
                _shrink(boxes[a:b], _GAP * 0.6 ** (level - 1))
        levels.append(boxes)
    return levels


def _widened(sizes: IntArray) -> FloatArray:
    """Shares of a box: a small child gets more than is due to it, or its box would be a hair's breadth."""
    return np.asarray(np.maximum(sizes, _LEAST * sizes.sum() / np.sqrt(len(sizes))))


def _share(boxes: FloatArray, box: FloatArray, a: int, b: int, ends: FloatArray) -> None:
    """Cut a box across its longer side into two halves of about the same share; and again."""
    if b - a == 1:
        boxes[a] = box
        return
    total = ends[-1]
    cut = 1 + int(np.abs(ends[1:-1] - total / 2).argmin())
    side = int(box[3] - box[1] > box[2] - box[0])  # 0: left and right, 1: top and bottom
    at = box[side] + (box[side + 2] - box[side]) * ends[cut] / total
    one, other = box.copy(), box.copy()
    one[side + 2] = other[side] = at
    _share(boxes, one, a, a + cut, ends[: cut + 1])
    _share(boxes, other, a + cut, b, ends[cut:] - ends[cut])


def _shrink(boxes: FloatArray, gap: float) -> None:
    """Leave a gap around every box, of a small part of it at most."""
    least = np.minimum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    inset = np.minimum(gap, 0.09 * least)[:, None]
    boxes += np.hstack([inset, inset, -inset, -inset])


def springs(links: csr_array, start: FloatArray, steps: int = 100) -> FloatArray:
    """Nodes pushed apart by each other and pulled together by links, from a given start; within the unit circle.

    Parameters
    ----------
    links
        A symmetric matrix without self loops.
    start
        Where the nodes are first, (n, 2); distinct places.
    steps
        How often every node moves; less far every time.
    """
    n = len(start)
    if n < 2:
        return np.zeros((n, 2))
    degree = np.asarray(links.sum(axis=1)).ravel()
    # A link between two busy nodes pulls less: hubs would otherwise drag everything into one heap.
    calm = 1.0 / np.sqrt(np.maximum(degree, 1.0))
    pull = csr_array(diags_array(calm) @ links @ diags_array(calm), dtype=np.float32)
    weight = np.asarray(pull.sum(axis=1)).ravel()[:, None]
    x = (start * np.sqrt(n)).astype(np.float32)
    for step in range(steps):
        squares = (x * x).sum(axis=1)
        near = squares[:, None] + squares - 2.0 * (x @ x.T)
        np.reciprocal(np.maximum(near, 0.05, out=near), out=near)
        np.fill_diagonal(near, 0.0)
        push = x * near.sum(axis=1)[:, None] - near @ x
        force = push + (pull @ x - weight * x) * 0.2 - x * 0.02
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        reach = 0.08 * np.sqrt(n) * (1 - step / steps) ** 1.5 + 0.01
        x += force / length * np.minimum(length, reach)
    x -= x.mean(axis=0)
    # A few strays must not shrink the picture: the farthest come nearer, in their order.
    distance = np.linalg.norm(x, axis=1)
    far = max(float(np.quantile(distance, 0.97)), 1e-9)
    squeezed = np.where(distance > far, far * (1 + 0.35 * np.tanh((distance / far - 1) / 0.35)), distance)
    x *= (squeezed / np.maximum(distance, 1e-9))[:, None]
    return np.asarray(x / max(float(np.linalg.norm(x, axis=1).max()), 1e-9), np.float64)


def spiral(n: int) -> FloatArray:
    """Distinct places inside the unit circle, for a start."""
    k = np.arange(n)
    distance = np.sqrt((k + 0.5) / max(n, 1))
    return np.column_stack([distance * np.cos(_GOLDEN * k), distance * np.sin(_GOLDEN * k)])


def as_integers(values: Sequence[float] | FloatArray, scale: float = 10_000) -> list[int]:
    """Numbers of about one as integers, which are shorter in a file."""
    rounded: list[int] = np.rint(np.asarray(values) * scale).astype(np.int64).ravel().tolist()
    return rounded
