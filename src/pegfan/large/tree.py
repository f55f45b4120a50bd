"""The tree of a graph on disk: that of ``build_tree(method="matching")``, bit for bit, whatever the blocks are.

Every block sorts the pairs of its rows by score. One pass over all of them in the order of their scores, those of the
blocks one after the other where scores are equal, joins nodes as in memory: what that needs is two numbers per node.
Edges between clusters are summed block by block, each in the order of its terms. From the level on that fits in memory,
the builder in memory goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan import _defaults as default
from pegfan._matrices import by_label, csr_of, enough, merge_rows
from pegfan.large import arcs as on_disk
from pegfan.large.arcs import Block, index_of, read_block, save_block, vector
from pegfan.large.pieces import Stage, Task, Work
from pegfan.trees import Hierarchy, _kernels, _linear
from pegfan.trees.build import gather_loose, grow, order_facts, settings_of
from pegfan.trees.builders.matching import gather_by_neighbour, matching
from pegfan.trees.level import LevelGraph

__all__ = ["build_tree", "load_tree"]

_KEYS = 1 << 16

_IN_MEMORY = 72
"""Bytes per arc that the builder in memory takes, and the level that it starts from."""

_PER_PAIR = 40
"""Bytes per pair while pairs of several blocks are sorted."""


def build_tree(
    work: Work,
    ordered: Stage,
    order: Stage,
    ordered_in: Stage | None = None,
    h: int = default.H,
    max_levels: int | None = None,
    direction: str = default.DIRECTION,
) -> Stage:
    """The tree, as ``tree.npz``.

    Parameters
    ----------
    work
        Where it is done.
    ordered
        Arc blocks in canonical order.
    order
        What `pegfan.large.order.canonical_order` made.
    ordered_in
        Arc blocks of the transpose, for a directed graph.
    h, max_levels, direction
        As in `pegfan.build_tree`.
    """
    about = on_disk.describe(ordered)
    first = {"largest": about["largest"] if about["arcs"] else 0.0}
    inputs = {"arcs": ordered} | ({} if ordered_in is None else {"arcs_in": ordered_in})
    level = work.stage(first_level, first, inputs, ordered.count, "level 1: edges both ways", about["arcs"])
    parents: list[Stage] = []
    n, arcs, most = about["n"], _arcs_of(level), max_levels or about["n"] + 2
    while n > h and len(parents) + 2 < most and arcs * _IN_MEMORY + n * 64 > work.memory:
        words = f"level {len(parents) + 1}, {n:,} clusters, {arcs // 2:,} edges"
        labels, coarse = _coarser(work, level, h, words, arcs)
        parents.append(labels)
        work.free(level)
        level, n, arcs = coarse, int(labels.result()["count"]), _arcs_of(coarse)
    params = {"h": h, "max_levels": max_levels, "done": len(parents), "n": n}
    rest = work.stage(grow_in_memory, params, {"level": level}, words=f"levels of at most {n:,} clusters", alone=True)
    side = "symmetric" if ordered_in is None else direction
    info = settings_of("matching", h, max_levels, side)
    below = {"order": order, "rest": rest} | {f"level{i}": stage for i, stage in enumerate(parents)}
    tree = work.stage(finish_tree, {"info": info, "levels": len(parents)}, below, words="putting the tree together")
    tree.run(files=False)
    work.free(level)
    return tree


def load_tree(tree: Stage) -> Hierarchy:
    """The tree itself."""
    return Hierarchy.load(tree.path("tree.npz"))


def _arcs_of(level: Stage) -> int:
    return sum(one["arcs"] for one in level.results)


def _coarser(work: Work, level: Stage, h: int, words: str, arcs: int) -> tuple[Stage, Stage]:
    """The clusters of a level, and the level above."""
    inputs = {"level": level}
    ranges = work.stage(score_pairs, {}, inputs, level.count, f"{words}: scoring pairs", arcs).results
    low = min((one["low"] for one in ranges if "low" in one), default=0.0)
    high = max((one["high"] for one in ranges if "high" in one), default=0.0)
    pairs = work.stage(sort_pairs, {"low": low, "high": high}, inputs, level.count, f"{words}: sorting pairs", arcs)
    joined = work.stage(join_pairs, {"h": h}, {"pairs": pairs, "level": level}, words=f"{words}: joining", alone=True)
    joined.run(files=False)  # as below: a level that was finished, and its files freed, is not made again
    work.free(pairs)
    count = int(joined.result()["count"])
    bounds: dict[str, Any] = {"count": count}
    bounds["bounds"] = on_disk.bounds_of(joined.load("lengths"), on_disk.arcs_per_block(work))
    both = {"level": level, "labels": joined}
    grouped = work.stage(group_by_cluster, bounds, both, level.count, f"{words}: grouping edges by cluster", arcs)
    sums = {"grouped": grouped, "labels": joined}
    blocks = len(bounds["bounds"]) - 1
    coarse = work.stage(sum_clusters, bounds, sums, blocks, f"{words}: summing edges between clusters", arcs)
    coarse.run(files=False)
    work.free(grouped)
    return joined, coarse


# ------------------------------------------------------------------------------------------------- pieces


def first_level(task: Task) -> dict[str, Any]:
    """The symmetric weights between different nodes, relative to the largest."""
    block, scale = read_block(task.inputs["arcs"], task.block), task.params["largest"] or 1.0
    values = block.values()
    values /= scale
    pointers, columns = block.pointers, block.columns
    if "arcs_in" in task.inputs:
        other = read_block(task.inputs["arcs_in"], task.block)
        theirs = other.values() / scale
        size = len(columns) + len(other.columns)
        both = np.empty_like(pointers), np.empty(size, columns.dtype), np.empty(size)
        given = (pointers, columns, values, other.pointers, other.columns, theirs, False)
        end = enough(merge_rows(*given, *both))
        pointers, columns, values = both[0], both[1][:end], both[2][:end]
    return _save_level(task, Block(block.start, pointers, columns, values))


def _save_level(task: Task, block: Block) -> dict[str, Any]:
    """Write a block of a level, without loops and zeros, and the roots of its row sums."""
    assert block.weights is not None
    numbers = block.row_numbers()
    kept = (block.columns != numbers) & (block.weights != 0)
    if not kept.all():
        counts = np.bincount(numbers[kept] - block.start, minlength=block.rows)
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(block.pointers.dtype)
        block = Block(block.start, pointers, block.columns[kept], block.weights[kept])
    sums = np.empty(block.rows)
    assert block.weights is not None
    _linear.row_sums(block.pointers, block.weights, sums)
    task.save("roots", np.sqrt(sums))
    return save_block(task, block)


def _pairs(task: Task) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The pairs of a block, and their scores."""
    level = task.inputs["level"]
    block = read_block(level, task.block)
    count = int(np.count_nonzero(block.columns > block.row_numbers()))
    pairs, score = np.empty((count, 2), block.columns.dtype), np.empty(count)
    given = (block.pointers, block.columns, block.values(), vector(level, "roots"), block.start)
    _kernels.upper_pairs(*given, pairs, score)
    return pairs, score


def score_pairs(task: Task) -> dict[str, Any]:
    """A piece: the lowest and the highest score of its pairs."""
    _, score = _pairs(task)
    if not len(score):
        return {}
    ends = np.empty(2)
    _kernels.height_range(score, ends)
    return {"low": float(ends[0]), "high": float(ends[1])}


def sort_pairs(task: Task) -> dict[str, Any]:
    """A piece: its pairs by falling score, and how many there are of each."""
    pairs, score = _pairs(task)
    keys, out = np.empty(len(score), np.uint16), np.empty_like(pairs)
    ends = (task.params["low"], task.params["high"])
    _kernels.score_keys(score, *ends, keys)
    enough(_kernels.sort_pairs(pairs, score, *ends, out))
    task.save("pairs", out)
    task.save("histogram", np.bincount(keys, minlength=_KEYS).astype(np.int32))
    return {"pairs": len(pairs)}


def join_pairs(task: Task) -> dict[str, Any]:
    """Join the ends of all pairs in the order of their scores; labels, and the arcs of every cluster."""
    made, level, h = task.inputs["pairs"], task.inputs["level"], task.params["h"]
    n = level.result(level.count - 1)["stop"]
    counts = np.stack([made.load("histogram", block) for block in range(made.count)]).astype(np.int64)
    starts = np.concatenate([np.zeros((made.count, 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
    total = counts.sum(axis=0)
    parent, first = np.full(n, -1, index_of(n)), np.full(n, -1, index_of(n))
    most, key = max(task.memory // 3 // _PER_PAIR, 1), 0
    while key < _KEYS:
        stop = key + max(int(np.searchsorted(np.cumsum(total[key:]), most, side="right")), 1)
        if stop == key + 1:  # pairs of one score, which are in order as they are
            for block in range(made.count):
                for begin in range(starts[block, key], starts[block, stop], most):
                    end = min(begin + most, int(starts[block, stop]))
                    _kernels.join_pairs(on_disk.part(made, "pairs", block, begin, end), h, parent, first)
        else:
            spans = [(block, int(starts[block, key]), int(starts[block, stop])) for block in range(made.count)]
            pairs = np.concatenate([on_disk.part(made, "pairs", *span) for span in spans])
            numbers = np.arange(stop - key, dtype=np.uint16)
            keys = np.concatenate([np.repeat(numbers, counts[block, key:stop]) for block in range(made.count)])
            pairs = pairs[np.argsort(keys, kind="stable")]
            _kernels.join_pairs(pairs, h, parent, first)
            del pairs, keys
        key = stop
    lonely = vector(level, "roots") == 0
    labels = gather_loose(gather_by_neighbour(parent, first, h), lonely, h)
    del parent, first
    lengths = np.concatenate([np.diff(level.load("pointers", block)) for block in range(level.count)])
    count = int(labels.max()) + 1
    task.save("labels", labels)
    task.save("lengths", np.bincount(labels, weights=lengths, minlength=count).astype(np.int64))
    return {"count": count}


def group_by_cluster(task: Task) -> dict[str, Any]:
    """A piece: its rows, by the clusters of their nodes."""
    block, labels = read_block(task.inputs["level"], task.block), vector(task.inputs["labels"], "labels")
    return on_disk.group_rows(task, block, labels[block.start : block.start + block.rows], task.params["bounds"])


def sum_clusters(task: Task) -> dict[str, Any]:
    """A piece: some rows of the level above."""
    keys, block = on_disk.read_group(task.inputs["grouped"], task.block)
    labels = vector(task.inputs["labels"], "labels").astype(block.columns.dtype, copy=False)
    start, stop = task.params["bounds"][task.block : task.block + 2]
    members, first = by_label((keys - start).astype(block.columns.dtype), stop - start)
    pointers = np.empty(stop - start + 1, block.columns.dtype)
    columns, weights = np.empty_like(block.columns), np.empty(len(block.columns))
    given = (members, first, labels, start, task.params["count"], block.pointers, block.columns, block.values())
    end = enough(_kernels.sum_between(*given, pointers, columns, weights))
    return _save_level(task, Block(start, pointers, columns[:end], weights[:end]))


def grow_in_memory(task: Task) -> dict[str, Any]:
    """The levels that fit in memory."""
    params, level = task.params, task.inputs["level"]
    blocks = [read_block(level, block) for block in range(level.count)]
    ends = np.concatenate([[0], np.cumsum([len(block.columns) for block in blocks])])
    pointers = np.concatenate([[0], *(block.pointers[1:] + end for block, end in zip(blocks, ends[:-1], strict=True))])
    index = np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
    columns, values = np.empty(ends[-1], index), np.empty(ends[-1])
    for k, block in enumerate(blocks):
        part = slice(ends[k], ends[k + 1])
        columns[part], values[part] = block.columns, block.values()
        blocks[k] = Block(0, pointers, columns)  # what was read is not needed any more
    n = params["n"]
    edges = csr_of(values, columns, pointers.astype(index), (n, n))
    first = LevelGraph(edges, edges)
    before: list[Any] = [None] * params["done"]
    parents, last = grow(first, matching, params["h"], params["max_levels"], before, lambda _: None)
    for i, labels in enumerate(parents[params["done"] :]):
        task.save(f"labels{i}", labels)
    return {"levels": len(parents) - params["done"], "capped": last.n > params["h"]}


def finish_tree(task: Task) -> dict[str, Any]:
    """The piece: the tree."""
    from types import SimpleNamespace

    rest, order = task.inputs["rest"], task.inputs["order"]
    about = rest.result()
    parents = [task.inputs[f"level{i}"].load("labels") for i in range(task.params["levels"])]
    parents += [rest.load(f"labels{i}") for i in range(about["levels"])]
    info = task.params["info"] | order_facts(SimpleNamespace(**order.result()), about["capped"])
    tree = Hierarchy(parents, order.load("order"), info)
    tree.save(task.folder / "tree.npz")
    return {"K": tree.K, "clusters": [int(count) for count in tree.n_clusters], **info}
