"""Features of nodes that have none: their degrees, as `pegfan.channels.structural_features`, but counting edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegfan.large import arcs as on_disk
from pegfan.large.arcs import read_block, vector
from pegfan.large.pieces import Stage, Task, Work

__all__ = ["NAMES", "degree_features"]

NAMES = ("out-degree", "in-degree", "mean out-degree ahead", "mean in-degree behind")


def degree_features(work: Work, arcs: Stage, arcs_in: Stage | None = None) -> Stage:
    """A slab of four columns per node: log(1 + x) of its degrees, and of the mean degrees of its neighbours.

    Sums of whole numbers are exact, so that they depend neither on the blocks nor on how nodes are numbered.

    Parameters
    ----------
    work
        Where it is done.
    arcs
        Arc blocks of the adjacency matrix.
    arcs_in
        Those of its transpose, for a directed graph.
    """
    total = on_disk.describe(arcs)["arcs"]
    sides = []
    for side in (arcs,) if arcs_in is None else (arcs, arcs_in):
        inputs = {"arcs": side, "degrees": on_disk.degrees(work, side)}
        sides.append(work.stage(count_degrees, {}, inputs, side.count, "degrees of neighbours", total))
    both = {"out": sides[0], "into": sides[-1]}
    return work.stage(degree_slab, {}, both, words="degrees as features", alone=True)


def count_degrees(task: Task) -> None:
    """The degree of every node, and the mean degree of those that its arcs lead to."""
    block, degrees = read_block(task.inputs["arcs"], task.block), vector(task.inputs["degrees"], "degrees")
    ends = np.concatenate([[0], np.cumsum(degrees[block.columns], dtype=np.int64)])
    own, sums = np.diff(block.pointers), np.diff(ends[block.pointers])
    task.save("columns", np.column_stack([own, sums / np.maximum(own, 1)]))


def degree_slab(task: Task) -> dict[str, Any]:
    """The piece: the four columns."""
    out, into = vector(task.inputs["out"], "columns"), vector(task.inputs["into"], "columns")
    values = np.empty((len(out), 4), np.float32)
    for column, given in enumerate((out[:, 0], into[:, 0], out[:, 1], into[:, 1])):
        values[:, column] = np.log1p(given)
    on_disk.forget()
    task.save("values", values)
    return {"start": 0, "stop": 4}
