"""A graph on disk: blocks of rows of its adjacency matrix, and how rows are moved between blocks.

A stage of arc blocks has one piece per block of rows, in order. A piece holds ``pointers`` (where the rows begin),
``columns`` (in order within the row, each once), and ``weights`` in the narrowest type that holds all of them exactly,
absent where all are 1. Its result says which rows it has: ``start``, ``stop``, and ``arcs``, ``loops``, ``largest``.

Rows move in two steps, as in any sort beyond memory: every block writes its rows grouped by where they go, and every
new block reads its part of each of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._matrices import by_label, enough, move_rows, transpose
from pegfan.large.pieces import Made, Stage, Task, Work
from pegfan.trees._kernels import row_entries

__all__ = ["Block", "bounds_of", "degrees", "describe", "narrow", "ordered", "read_block", "save_block", "vector"]

BYTES = 48
"""Memory per arc of a block while it is made: as read, as float64, as moved, and their places."""

_SHARE = 3
"""A block takes one part in so many of the memory of its task; vectors over all nodes have the rest."""


@dataclass
class Block:
    """Some rows of a matrix.

    Attributes
    ----------
    start
        The number of the first row.
    pointers, columns
        As in CSR form; pointers begin at 0 and have the dtype of columns.
    weights
        One per arc; None where all are 1.
    """

    start: int
    pointers: NDArray[Any]
    columns: NDArray[Any]
    weights: NDArray[Any] | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.pointers) - 1

    def values(self) -> NDArray[np.float64]:
        """The weights as numbers of double precision."""
        if self.weights is None:
            return np.ones(len(self.columns))
        return self.weights.astype(np.float64)

    def row_numbers(self) -> NDArray[Any]:
        """The row of every arc."""
        numbers = np.arange(self.start, self.start + self.rows, dtype=self.columns.dtype)
        return np.repeat(numbers, np.diff(self.pointers))


def index_of(n: int) -> Any:
    """The dtype of the numbers of n nodes."""
    return np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)


def narrow(weights: NDArray[Any] | None) -> NDArray[Any] | None:
    """Weights in the narrowest type that holds all of them exactly; None where all are 1.

    Examples
    --------
    >>> narrow(np.array([1.0, 1.0])) is None, narrow(np.array([1.0, 300.0])).dtype, narrow(np.array([0.1])).dtype
    (True, dtype('uint16'), dtype('float64'))
    """
    if weights is None or not (weights != 1).any():
        return None
    for dtype in (np.uint8, np.uint16, np.float32):
        with np.errstate(over="ignore", invalid="ignore"):
            small = weights.astype(dtype)
        if np.array_equal(small, weights):
            return small
    return weights.astype(np.float64, copy=False)


def read_block(made: Made, block: int) -> Block:
    """A block, read into memory."""
    about = made.result(block)
    columns = made.load("columns", block)
    pointers = made.load("pointers", block).astype(columns.dtype, copy=False)
    return Block(about["start"], pointers, columns, made.load("weights", block) if made.has("weights", block) else None)


def save_block(task: Task, block: Block) -> dict[str, Any]:
    """Write a block as a piece; its result."""
    weights = narrow(block.weights)
    task.save("pointers", block.pointers)
    task.save("columns", block.columns)
    if weights is not None:
        task.save("weights", weights)
    loops = int(np.count_nonzero(block.columns == block.row_numbers()))
    arcs = len(block.columns)
    largest = float(weights.max()) if weights is not None else float(arcs > 0)
    stop = block.start + block.rows
    return {"start": block.start, "stop": stop, "arcs": arcs, "loops": loops, "largest": largest}


def describe(arcs: Stage) -> dict[str, Any]:
    """The numbers of nodes, arcs and loops of arc blocks, and the largest weight."""
    results = arcs.results
    return {
        "n": results[-1]["stop"],
        "arcs": sum(one["arcs"] for one in results),
        "loops": sum(one["loops"] for one in results),
        "largest": max(one["largest"] for one in results),
    }


# ------------------------------------------------------------------------------------------------- vectors over nodes

_vectors: dict[tuple[str, str], NDArray[Any]] = {}
_READING = Lock()
_KEPT = 3  # the newest vectors: threads of a stage need the same ones


def vector(made: Made, name: str) -> NDArray[Any]:
    """A vector over all nodes that the pieces of a stage hold in parts; read once by all threads."""
    key = (str(made.folder), name)
    with _READING:
        if key not in _vectors:
            while len(_vectors) >= _KEPT:
                del _vectors[next(iter(_vectors))]
            parts = [made.load(name, block) for block in range(made.count)]
            _vectors[key] = parts[0] if len(parts) == 1 else np.concatenate(parts)
        else:
            _vectors[key] = _vectors.pop(key)  # now the newest
        return _vectors[key]


def forget() -> None:
    """Release the vectors that are kept."""
    with _READING:
        _vectors.clear()


def count_arcs(task: Task) -> None:
    """The piece: the arcs of every row."""
    arcs = task.inputs["arcs"]
    counts = [np.diff(arcs.load("pointers", block)) for block in range(arcs.count)]
    task.save("degrees", np.concatenate(counts).astype(np.int32))


def degrees(work: Work, arcs: Stage) -> Stage:
    """The number of arcs of every row, as ``degrees``."""
    return work.stage(count_arcs, inputs={"arcs": arcs}, words="counting arcs per node")


def bounds_of(lengths: NDArray[Any], most: int) -> list[int]:
    """Where blocks begin and end: rows in order, at most `most` arcs and as many rows per block, or a single row.

    Examples
    --------
    >>> bounds_of(np.array([2, 1, 7, 1, 1, 1]), 3)
    [0, 2, 3, 6]
    """
    bounds, ends = [0], np.cumsum(lengths, dtype=np.int64)
    while bounds[-1] < len(lengths):
        before = int(ends[bounds[-1] - 1]) if bounds[-1] else 0
        stop = int(np.searchsorted(ends, before + most, side="right"))
        bounds.append(min(max(stop, bounds[-1] + 1), bounds[-1] + most))
    return bounds


def arcs_per_block(work: Work) -> int:
    """How many arcs a block may have."""
    return max(1, int(work.memory // work.workers // _SHARE // BYTES))


# ------------------------------------------------------------------------------------------------- moving rows


def group_rows(task: Task, block: Block, keys: NDArray[Any], bounds: list[int]) -> dict[str, Any]:
    """Write the rows of a block by rising key, in order where keys are equal: those of one new block stand together."""
    order = np.argsort(keys, kind="stable").astype(block.pointers.dtype)
    entries = np.empty(len(block.columns), block.pointers.dtype)
    row_entries(order, block.pointers, entries)
    keys, counts = keys[order], np.diff(block.pointers)[order]
    task.save("keys", keys)
    task.save("counts", counts)
    task.save("columns", block.columns[entries])
    if block.weights is not None:
        task.save("weights", block.weights[entries])
    cuts = np.searchsorted(keys, bounds)
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return {"rows": cuts.tolist(), "arcs": ends[cuts].tolist()}


def read_group(made: Made, block: int) -> tuple[NDArray[Any], Block]:
    """What `group_rows` wrote for a new block, from all old ones: the keys of the rows, and the rows."""
    keys, counts, columns, weights = [], [], [], []
    weighted = any(made.has("weights", old) for old in range(made.count))
    for old in range(made.count):
        about = made.result(old)
        (row, last), (arc, end) = about["rows"][block : block + 2], about["arcs"][block : block + 2]
        keys.append(part(made, "keys", old, row, last))
        counts.append(part(made, "counts", old, row, last))
        columns.append(part(made, "columns", old, arc, end))
        if weighted and made.has("weights", old):
            weights.append(part(made, "weights", old, arc, end).astype(np.float64))
        elif weighted:
            weights.append(np.ones(end - arc))
    everything = np.concatenate(columns)
    del columns
    pointers = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)]).astype(everything.dtype)
    return np.concatenate(keys), Block(0, pointers, everything, np.concatenate(weights) if weighted else None)


def part(made: Made, name: str, block: int, start: int, stop: int) -> NDArray[Any]:
    """Entries start, ..., stop − 1 of an array, read and not mapped, so that they do not stay in memory."""
    with made.path(f"{name}.npy", block).open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if dtype.hasobject or stop > shape[0]:
            raise ValueError(f"{file.name} is damaged; remove its folder, and run the same command again")
        file.seek(start * dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64)), 1)
        found = np.fromfile(file, dtype, (stop - start) * int(np.prod(shape[1:], dtype=np.int64)))
    return found.reshape(-1, *shape[1:])


# ------------------------------------------------------------------------------------------------- another order


def group_by_place(task: Task) -> dict[str, Any]:
    """A piece: its rows, by their places in the new order."""
    block, place = read_block(task.inputs["arcs"], task.block), vector(task.inputs["places"], "place")
    return group_rows(task, block, place[block.start : block.start + block.rows], task.params["bounds"])


def move_blocks(task: Task) -> dict[str, Any]:
    """A piece: some rows in the new order."""
    place = vector(task.inputs["places"], "place")
    keys, block = read_group(task.inputs["grouped"], task.block)
    start = task.params["bounds"][task.block]
    order = np.argsort(keys, kind="stable").astype(block.columns.dtype)
    pointers, columns = np.empty_like(block.pointers), np.empty_like(block.columns)
    values = np.zeros(len(columns)) if block.weights is None else block.weights
    moved = np.empty_like(values)
    bits = (values.view(np.uint64), moved.view(np.uint64))
    enough(move_rows(order, place, block.pointers, block.columns, bits[0], pointers, columns, bits[1]))
    return save_block(task, Block(start, pointers, columns, None if block.weights is None else moved))


def number_places(task: Task) -> None:
    """The piece: the place of every node."""
    order = task.inputs["order"].load("order")
    place = np.empty(len(order), index_of(len(order)))
    place[order] = np.arange(len(order), dtype=place.dtype)
    task.save("place", place)


def ordered(work: Work, arcs: Stage, order: Stage) -> Stage:
    """Arc blocks with rows and columns in another order.

    Parameters
    ----------
    work
        Where it is done.
    arcs
        Arc blocks.
    order
        A stage whose only piece has the nodes in that order, as ``order``.
    """
    total = describe(arcs)["arcs"]
    places = work.stage(number_places, inputs={"order": order}, words="numbering nodes in their order")
    lengths = degrees(work, arcs).load("degrees")[order.load("order")]
    params = {"bounds": bounds_of(lengths, arcs_per_block(work))}
    inputs = {"arcs": arcs, "places": places}
    grouped = work.stage(group_by_place, params, inputs, arcs.count, "grouping edges by their places", total)
    count = len(params["bounds"]) - 1
    moved = work.stage(move_blocks, params, {"grouped": grouped, "places": places}, count, "moving edges", total)
    moved.run(files=False)
    work.free(grouped)
    return moved


def group_turned(task: Task) -> dict[str, Any]:
    """A piece: its arcs turned around, by where they lead."""
    block, n = read_block(task.inputs["arcs"], task.block), task.params["bounds"][-1]
    pointers = np.empty(n + 1, block.columns.dtype)
    rows, values = np.empty_like(block.columns), block.values()
    weights = np.empty_like(values)
    given = (block.pointers, block.columns, values.view(np.uint64))
    transpose(*given, pointers, rows, weights.view(np.uint64))
    used = np.flatnonzero(np.diff(pointers))
    counts = np.diff(pointers)[used]
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(pointers.dtype)
    given_weights = None if block.weights is None else weights.astype(block.weights.dtype)
    turned = Block(0, ends, rows + block.columns.dtype.type(block.start), given_weights)
    return group_rows(task, turned, used.astype(block.columns.dtype), task.params["bounds"])


def join_rows(task: Task) -> dict[str, Any]:
    """A piece: some rows of the transpose."""
    keys, block = read_group(task.inputs["grouped"], task.block)
    start, stop = task.params["bounds"][task.block : task.block + 2]
    members, first = by_label(keys - keys.dtype.type(start), stop - start)
    entries = np.empty(len(block.columns), block.pointers.dtype)
    row_entries(members, block.pointers, entries)
    ends = np.concatenate([[0], np.cumsum(np.diff(block.pointers)[members], dtype=np.int64)])
    weights = None if block.weights is None else block.weights[entries]
    pointers = ends[first].astype(block.pointers.dtype)
    return save_block(task, Block(start, pointers, block.columns[entries], weights))


def transposed(work: Work, arcs: Stage) -> Stage:
    """Arc blocks of the transposed matrix, with the same rows in each."""
    total = describe(arcs)["arcs"]
    params = {"bounds": [one["start"] for one in arcs.results] + [arcs.results[-1]["stop"]]}
    grouped = work.stage(group_turned, params, {"arcs": arcs}, arcs.count, "turning edges around", total)
    turned = work.stage(join_rows, params, {"grouped": grouped}, arcs.count, "joining edges by their ends", total)
    turned.run(files=False)
    work.free(grouped)
    return turned


def blocks(made: Made) -> Iterator[Block]:
    """Every block, one at a time."""
    for block in range(made.count):
        yield read_block(made, block)
