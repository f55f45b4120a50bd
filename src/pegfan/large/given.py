"""A graph that is in memory, as stages: what was read elsewhere goes through the same pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan._hashing import digest_of
from pegfan.graph import Graph
from pegfan.large.arcs import Block, bounds_of, index_of, save_block
from pegfan.large.pieces import Stage, Task, Work

__all__ = ["cut"]


def cut(work: Work, graph: Graph, arcs_per_block: int = 1_000_000, width: int = 8) -> tuple[Stage, Stage | None]:
    """The arc blocks of a graph, and the slabs of its features.

    Parameters
    ----------
    work
        Where they go.
    graph
        The graph.
    arcs_per_block
        The most arcs of a block.
    width
        The columns of a slab.

    Examples
    --------
    >>> import tempfile
    >>> import pegfan as pf
    >>> from pegfan.large.pieces import Work
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    >>> with tempfile.TemporaryDirectory() as folder, Work(folder) as work:
    ...     arcs, _ = cut(work, graph, arcs_per_block=3)
    ...     [result["arcs"] for result in arcs.results]
    [3, 3]
    """
    given = graph.adjacency
    key = digest_of(given)
    bounds = bounds_of(np.diff(given.indptr), arcs_per_block)
    arcs = work.stage(take_rows, {"bounds": bounds, "digest": key}, count=len(bounds) - 1)
    _give(work, arcs, given)
    if graph.features is None:
        return arcs, None
    values: Any = graph.features
    d = values.shape[1]
    key = digest_of(values)
    starts = list(range(0, d, width))
    slabs = work.stage(take_columns, {"starts": [*starts, d], "digest": key}, count=max(len(starts), 1))
    _give(work, slabs, values)
    return arcs, slabs


_given: dict[str, Any] = {}


def _give(work: Work, stage: Stage, values: Any) -> None:
    """Let the pieces of a stage see an array; they run in this process, at once."""
    _given[stage.key] = values
    try:
        cluster, work.cluster = work.cluster, None
        stage.params["key"] = stage.key  # says where to look, and is no part of the key itself
        stage.run()
    finally:
        work.cluster = cluster
        del _given[stage.key], stage.params["key"]


def take_rows(task: Task) -> dict[str, Any]:
    """A piece: some rows of a matrix in memory."""
    matrix: csr_array = _given[task.params["key"]]
    start, stop = task.params["bounds"][task.block : task.block + 2]
    part, index = slice(matrix.indptr[start], matrix.indptr[stop]), index_of(matrix.shape[0])
    pointers = (matrix.indptr[start : stop + 1] - matrix.indptr[start]).astype(index)
    return save_block(task, Block(start, pointers, matrix.indices[part].astype(index), matrix.data[part]))


def take_columns(task: Task) -> dict[str, Any]:
    """A piece: some columns of features in memory."""
    matrix = _given[task.params["key"]]
    start, stop = task.params["starts"][task.block : task.block + 2]
    values = matrix[:, start:stop]
    values = values.toarray() if issparse(values) else np.asarray(values)
    small = values.astype(np.float32)
    task.save("values", np.ascontiguousarray(small if np.array_equal(small, values) else values))
    return {"start": start, "stop": stop}
