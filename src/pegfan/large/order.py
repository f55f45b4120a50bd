"""The canonical order of the nodes of a graph on disk: colour refinement over blocks, the bits of that in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan._hashing import hash_rows, mix_all, row_hashes
from pegfan._matrices import count_hashes, csr_of, enough, move_rows
from pegfan.large import arcs as on_disk
from pegfan.large.arcs import Block, index_of, read_block, vector
from pegfan.large.pieces import Made, Stage, Task, Work
from pegfan.trees._kernels import gather_colours, join_pairs, leading_bits, settle_clusters
from pegfan.trees.canonical import ROUNDS, VISITS, Colours, Refiner, SpentError, colouring_of
from pegfan.trees.hierarchy import by_appearance

__all__ = ["canonical_order"]

_ROWS = 1 << 16  # of features that are hashed at a time

_PART = 40
"""Bytes per arc of a component that is looked at as a whole, to break ties in it."""


def canonical_order(work: Work, arcs: Stage, arcs_in: Stage | None = None, features: Stage | None = None) -> Stage:
    """The nodes in the order of `pegfan.trees.canonical_order`, as ``order``, and their ``classes``.

    Parameters
    ----------
    work
        Where it is done.
    arcs
        Arc blocks of the adjacency matrix.
    arcs_in
        Those of its transpose, for a directed graph.
    features
        Slabs of columns, if features tell nodes apart.

    Notes
    -----
    The result's ``tied``, ``symmetric`` and ``arbitrary`` are those of a `pegfan.trees.Colouring`. In components so
    large that their arcs do not fit in memory, ties other than between twins are broken by node number, and
    counted as arbitrary.
    """
    about = on_disk.describe(arcs)
    params = {"largest": about["largest"] or 1.0, "n": about["n"]}
    inputs = {"arcs": arcs} | ({} if arcs_in is None else {"arcs_in": arcs_in})
    given = {"arcs": arcs} | ({} if features is None else {"features": features})
    colours = work.stage(first_colours, params, given, arcs.count, "hashing features", about["n"])
    visits = max(about["arcs"] * len(inputs), about["n"])
    rounds, count = max(ROUNDS * visits, VISITS) // visits, _count_of(work, colours)
    for _ in range(rounds):
        if count == about["n"]:
            break
        step = {**inputs, "colours": colours}
        refined = work.stage(
            refine_colours, params, step, arcs.count, "telling nodes apart by their neighbours", visits
        )
        found = _count_of(work, refined)
        if found <= count:
            work.free(refined)
            break
        work.free(colours)
        colours, count = refined, found
    every = {**inputs, "colours": colours}
    return work.stage(order_nodes, {**params, "n_arcs": about["arcs"]}, every, words="ordering nodes", alone=True)


def _count_of(work: Work, colours: Stage) -> int:
    counted = work.stage(count_colours, inputs={"colours": colours}, words="counting kinds of nodes", alone=True)
    return int(counted.result()["count"])


def first_colours(task: Task) -> None:
    """The first colours of some rows: their features, and their loops."""
    block = read_block(task.inputs["arcs"], task.block)
    colours = np.ones(block.rows, np.uint64)
    if "features" in task.inputs:
        slabs = [task.inputs["features"].load("values", s, mmap=True) for s in range(task.inputs["features"].count)]
        for first in range(0, block.rows, _ROWS):
            rows = slice(block.start + first, block.start + min(first + _ROWS, block.rows))
            values = np.concatenate([slab[rows] for slab in slabs], axis=1)
            colours[first : first + _ROWS] = row_hashes(values)
    loops, numbers = np.zeros(block.rows), block.row_numbers()
    own = block.columns == numbers
    loops[block.columns[own] - block.start] = block.values()[own]
    bits = _bits_of(loops, task.params["largest"])
    mix_all(bits, bits)
    task.save("colours", colours + bits)


def refine_colours(task: Task) -> None:
    """The colours of some rows after one round; as `Refiner.step`."""
    colours = vector(task.inputs["colours"], "colours")
    total = np.empty(0, np.uint64)
    for side, factor in _sides(task.inputs):
        block = read_block(side, task.block)
        if not len(total):
            total = colours[block.start : block.start + block.rows] * np.uint64(3)
        _gather(block, task.params["largest"], colours, factor, total)
    mix_all(total, total)
    task.save("colours", total)


def count_colours(task: Task) -> dict[str, Any]:
    """The piece: how many colours there are."""
    colours = vector(task.inputs["colours"], "colours").copy()
    return {"count": enough(count_hashes(colours, np.empty_like(colours)))}


def order_nodes(task: Task) -> dict[str, Any]:
    """The piece: the order, with ties broken."""
    sides = _sides(task.inputs)
    refiner = _Streamed(sides, task.params["n"], task.params["n_arcs"], task.params["largest"], task.memory)
    found = colouring_of(refiner, vector(task.inputs["colours"], "colours"))
    on_disk.forget()
    task.save("order", found.order)
    task.save("classes", found.classes)
    return {"tied": found.tied, "symmetric": found.symmetric, "arbitrary": found.arbitrary}


def _sides(inputs: dict[str, Made]) -> list[tuple[Made, Any]]:
    both = [(inputs["arcs"], np.uint64(5))]
    return [*both, (inputs["arcs_in"], np.uint64(7))] if "arcs_in" in inputs else both


def _bits_of(weights: NDArray[Any], largest: float) -> Colours:
    out = np.empty(len(weights), np.uint64)
    leading_bits(np.ascontiguousarray(weights, np.float64), largest, out)
    return out


def _gather(block: Block, largest: float, colours: Colours, factor: Any, total: Colours) -> None:
    bits = _bits_of(block.values(), largest)
    gather_colours(block.pointers, block.columns, bits, colours, factor, total)


class _Streamed(Refiner):
    """Refinement that reads a graph from disk, block by block."""

    def __init__(self, sides: list[tuple[Made, Any]], n: int, arcs: int, largest: float, memory: int) -> None:
        self.streams, self.n, self.largest, self.memory = sides, n, largest, memory
        self.directed = len(sides) > 1
        self.allow(arcs * len(sides), n)

    @property
    def index(self) -> Any:
        """The dtype of the numbers of nodes."""
        return index_of(self.n)

    @property
    def plain(self) -> bool:
        """Whether edges have neither directions nor different weights."""
        if self.directed:
            return False
        seen: set[int] = set()
        for block in on_disk.blocks(self.streams[0][0]):
            if len(block.columns):
                values = block.values()
                seen |= set(_bits_of(np.array([values.min(), values.max()]), self.largest).tolist())
        return len(seen) == 1

    def add_neighbours(self, colours: Colours, total: Colours) -> None:
        """Add what every node sees of its neighbours' colours."""
        for side, factor in self.streams:
            for block in on_disk.blocks(side):
                _gather(block, self.largest, colours, factor, total[block.start : block.start + block.rows])

    def hash_rows(self, nodes: NDArray[Any], joined: bool) -> Colours:
        """Hashes of the neighbourhoods of some nodes, which are in order."""
        key = np.zeros(len(nodes), np.uint64)
        for side, factor in self.streams:
            for block in on_disk.blocks(side):
                some = slice(*np.searchsorted(nodes, [block.start, block.start + block.rows]))
                # The loop knows rows by their numbers: all others are empty.
                pointers = np.zeros(self.n + 1, block.pointers.dtype)
                pointers[block.start : block.start + block.rows + 1] = block.pointers
                pointers[block.start + block.rows + 1 :] = block.pointers[-1]
                part, bits = np.empty(some.stop - some.start, np.uint64), _bits_of(block.values(), self.largest)
                here = np.ascontiguousarray(nodes[some], dtype=pointers.dtype)
                hash_rows(here, pointers, block.columns, bits, joined, part)
                key[some] += factor * part
        return key

    def components(self) -> tuple[NDArray[Any], int]:
        """The component of every node, numbered by their first nodes, and how many there are."""
        parent, first = np.full(self.n, -1, self.index), np.full(self.n, -1, self.index)
        for block in on_disk.blocks(self.streams[0][0]):
            pairs = np.column_stack([block.row_numbers(), block.columns])
            join_pairs(pairs, self.n, parent, first)
        settle_clusters(parent, first)
        component = by_appearance(parent)
        return component, int(component.max(initial=-1)) + 1

    def part(self, nodes: NDArray[Any]) -> Refiner:
        """The same for some of the nodes, a component, in memory; where it does not fit, its budget is spent."""
        place = np.full(self.n, -1, self.index)
        place[nodes] = np.arange(len(nodes), dtype=place.dtype)
        pointers, columns, bits, arcs = [np.zeros(1, np.int64)], [], [], 0
        for block in on_disk.blocks(self.streams[0][0]):
            first, last = np.searchsorted(nodes, [block.start, block.start + block.rows])
            rows = (nodes[first:last] - block.start).astype(block.pointers.dtype)
            size = int((block.pointers[rows + 1] - block.pointers[rows]).sum(dtype=np.int64))
            arcs += size
            if arcs * _PART > self.memory // 2:
                return _Spent(len(nodes), self.index)
            ends, found, here = (
                np.empty(len(rows) + 1, rows.dtype),
                np.empty(size, rows.dtype),
                np.empty(size, np.uint64),
            )
            given = (rows, place, block.pointers, block.columns, _bits_of(block.values(), self.largest))
            enough(move_rows(*given, ends, found, here))
            pointers.append(arcs - size + ends[1:].astype(np.int64))
            columns.append(found)
            bits.append(here)
        ends = np.concatenate(pointers).astype(self.index)
        return Refiner(csr_of(np.concatenate(bits), np.concatenate(columns), ends, (len(nodes),) * 2), self.directed)


class _Spent(Refiner):
    """Stands for a part that would take too long to look at."""

    def __init__(self, n: int, index: Any) -> None:
        self._n, self._index = n, index

    @property
    def index(self) -> Any:
        """The dtype of the numbers of nodes."""
        return self._index

    def step(self, colours: Colours, out: Colours | None = None) -> Colours:
        """Nothing can be done."""
        raise SpentError

    @property
    def weights(self) -> csr_array:
        """Nothing can be looked at."""
        raise SpentError
