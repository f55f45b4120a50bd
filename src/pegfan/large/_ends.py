"""The ids of nodes as numbers, the ends of edges by these numbers, and edges sorted into blocks of rows.

Ids are looked up in a table of 16 bytes per slot, in which a text of up to eleven bytes stands itself; all threads and
processes of a machine share its pages. A piece of the edges is sorted by rows in runs: of an arc, two runs of files
hold the last bits of its row, and its column, and a third how many arcs every 256 rows have. Any rows are then a part
of each run, and a block of the result reads its own parts only.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as arrow
from numpy.typing import NDArray
from pyarrow import parquet

from pegfan import _pairs
from pegfan._arrays import FloatArray
from pegfan._checks import BadInput
from pegfan.datasets import _ids, _kernels
from pegfan.datasets._coded import Numberer
from pegfan.datasets._ids import Ids
from pegfan.datasets._table import few, shown
from pegfan.datasets.tables import UnknownIds
from pegfan.graph import merge_pairs
from pegfan.large._roles import are_whole, options_of
from pegfan.large.arcs import Block, bounds_of, index_of, narrow, save_block
from pegfan.large.pieces import Made, Task
from pegfan.large.sources import Columns, open_columns

__all__ = [
    "cut_rows",
    "find_strangers",
    "list_ends",
    "look_at_ends",
    "number_edges",
    "number_ends",
    "number_nodes",
    "pieces_of",
    "sort_edges",
]

_MOST = 2**31 - 2
"""The most nodes: numbers of nodes are of 32 bits."""

_BYTES = 160
"""Memory per row of edges while a run is made."""


# ------------------------------------------------------------------------------------------------- pieces


def pieces_of(rows: list[list[int]], most: int) -> list[list[list[int]]]:
    """Row groups of files in order, in pieces of about `most` rows: file, first and last group, first row.

    Examples
    --------
    >>> pieces_of([[5, 5], [5, 5, 5]], 10)
    [[[0, 0, 2, 0]], [[1, 0, 2, 0]], [[1, 2, 3, 10]]]
    """
    pieces: list[list[list[int]]] = [[]]
    held = 0
    for file, groups in enumerate(rows):
        first = 0
        for group, count in enumerate(groups):
            if held and held + count > most:
                pieces.append([])
                held = 0
            if pieces[-1] and pieces[-1][-1][0] == file:
                pieces[-1][-1][2] = group + 1
            else:
                pieces[-1].append([file, group, group + 1, first])
            held += count
            first += count
    return pieces


def _batches(task: Task, columns: Columns, names: list[str]) -> Iterator[tuple[int, int, Any]]:
    """The batches of a piece: the file, the number of the first row in it, and the columns."""
    for file, group, last, first in task.params["pieces"][task.block]:
        row = first
        for batch in columns.batches(file, range(group, last), names):
            yield file, row, batch
            row += len(batch)


# ------------------------------------------------------------------------------------------------- kinds of ids


def look_at_ends(task: Task) -> dict[str, Any]:
    """A piece: whether each column of ends that holds texts holds nothing but whole numbers."""
    columns, ends = open_columns(task, "edges"), task.params["roles"]["ends"]
    whole = [True, True]
    for _, _, batch in _batches(task, columns, ends):
        for end, column in enumerate(batch.columns):
            texts = _decoded(column)
            whole[end] = whole[end] and (not _is_text(texts.type) or are_whole(texts))
        if not any(whole):
            break
    return {"whole": whole}


def _kind_of_ids(task: Task, nodes: Ids | None = None) -> str:
    """Whether ids are compared as integers or as texts, by the rules of `pegfan.datasets._ids.agree`."""
    kinds = task.params["roles"]["kinds"]
    whole = [True, True]
    if "kinds" in task.inputs:
        looked = [one["whole"] for one in task.inputs["kinds"].results]
        whole = [all(one[end] for one in looked) for end in (0, 1)]
    said = [("int" if whole[end] else "str") if kind == "either" else kind for end, kind in enumerate(kinds)]
    both = said[0]
    if said[0] != said[1]:
        both = "int" if whole[said.index("str")] else "str"
    if nodes is None or nodes.kind == both:
        return both
    if not any(task.params["pieces"]):  # no edges: nothing to agree with
        return nodes.kind
    if both == "str":
        return "int" if all(whole) else "str"
    return "int" if are_whole(_ids.as_arrow(nodes.values)) else "str"


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _as_kind(column: Any, kind: str) -> Any:
    """A column of ids without gaps as int64 or as texts; raises ArrowInvalid where it cannot be."""
    column = _decoded(column)
    if _is_text(column.type):
        if kind == "int":
            return column.cast(pa.int64())
        return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
    numbers = column.cast(pa.int64())
    if pa.types.is_floating(column.type) and arrow.any(arrow.greater_equal(arrow.abs(column), float(2**53))).as_py():
        raise pa.ArrowInvalid("numbers too large to be told from their neighbours; write ids of this size as text")
    return numbers if kind == "int" else numbers.cast(pa.string())


# ------------------------------------------------------------------------------------------------- ids of nodes


class _Lookup:
    """Where ids stand among the nodes."""

    def __init__(self, ids: Made) -> None:
        about = ids.result()
        self.n, self.kind, self.seed = about["n"], about["kind"], about["seed"]
        self.counted = about["counted"]
        if not self.counted:
            self.slots = ids.load("slots", mmap=True)
            self.texts = ids.load("texts", mmap=True) if ids.has("texts") else np.empty(0, np.uint8)
            self.starts = ids.load("starts", mmap=True) if ids.has("starts") else np.empty(0, np.int64)

    def find(self, column: Any) -> NDArray[np.int32]:
        """The numbers of nodes of ids of the right kind, -1 for those that no node has."""
        if self.counted:
            values = _numbers(column)
            inside = (values >= 0) & (values < self.n)
            return np.where(inside, values, -1).astype(np.int32)
        codes = np.empty(len(column), np.int32)
        _kernels.find_texts(*_bytes(column), self.seed, self.slots, self.texts, self.starts, codes)
        return codes


def _numbers(column: Any) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _bytes(column: Any) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[Any]]:
    """The bytes of ids, and where each begins and ends; of a number, its eight."""
    if pa.types.is_integer(column.type):
        places = np.arange(len(column) + 1, dtype=np.int64) * 8
        return np.ascontiguousarray(_numbers(column)).view(np.uint8), places[:-1], places[1:]
    dtype = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, offsets, data = column.buffers()
    if len(column) == 0:
        return np.empty(0, np.uint8), np.empty(0, dtype), np.empty(0, dtype)
    ends = np.frombuffer(offsets, dtype)[column.offset : column.offset + len(column) + 1]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), ends[:-1], ends[1:]


def number_nodes(task: Task) -> dict[str, Any]:
    """A piece: the ids of the table of nodes, then those that only edges have, if they are to be added."""
    import pandas as pd

    columns, name = open_columns(task, "nodes"), task.params["roles"]["id"]
    table = columns.table()
    if name is None:
        ids = Ids(pd.Series(np.arange(table.size)), "int")
    else:
        series = table.ids(name)
        blank = _ids.blanks(series)
        if blank.any():
            raise BadInput(f"{table.where(blank.argmax())}: the id in column {name!r} is blank; every node needs one")
        ids = _ids.read_ids(series, table)
        del series
    kind = _kind_of_ids(task, ids)
    own = len(ids)
    values = _as_kind(_ids.as_arrow(ids.values) if ids.kind == "str" else pa.array(ids.values.to_numpy()), kind)
    if kind == "str":
        values = values.cast(pa.large_string())
    del ids
    if "strangers" in task.inputs:
        made = task.inputs["strangers"]
        more = [parquet.read_table(made.path("strangers.parquet", k))["id"].combine_chunks() for k in range(made.count)]
        values = pa.concat_arrays([values, _sorted(pa.chunked_array(more)).cast(values.type)])
    result, twice = _save_ids(task, values, kind)
    if twice is not None:
        late, early = twice
        raise BadInput(
            f"{table.where(late)}: id {shown(values[late].as_py())} in column {name!r} was already given in "
            f"{table.where(early)}; keep one row per node, or name another column with id="
        )
    return {**result, "own": own, "extra": len(values) - own}


def _sorted(values: Any) -> Any:
    distinct = arrow.unique(values)
    return distinct.take(arrow.array_sort_indices(distinct))


def list_ends(task: Task) -> dict[str, Any]:
    """A piece: the ids in some of the edges, each once."""
    columns, kind = open_columns(task, "edges"), _kind_of_ids(task)
    names = task.params["roles"]["ends"]
    numberer, numbers = Numberer(), np.empty(0, np.int64)
    for file, row, batch in _batches(task, columns, names):
        for name, column in zip(names, batch.columns, strict=True):
            ids = _checked(columns, file, row, name, column, kind)
            if kind == "int":
                numbers = np.union1d(numbers, _numbers(ids))
            else:
                numberer.number(*_bytes(ids), np.empty(len(ids), np.int32))
    texts = numberer.texts()
    if texts.blank.any():
        _refuse_first_blank(task, columns, names)
    if texts.ends_with_nul.any():
        culprit = texts.arrow[int(texts.ends_with_nul.argmax())].as_py()
        raise BadInput(f"{columns.what}: the id {culprit!r} ends with a NUL character; take it off")
    table = pa.table({"id": numbers if kind == "int" else texts.arrow})
    parquet.write_table(table, task.folder / "ids.parquet", use_dictionary=False, row_group_size=2**17)
    return {"ids": len(table), "kind": kind}


def _refuse_first_blank(task: Task, columns: Columns, names: list[str]) -> None:
    for file, row, batch in _batches(task, columns, names):
        for name, column in zip(names, batch.columns, strict=True):
            blank = np.asarray(arrow.equal(arrow.utf8_trim_whitespace(_as_kind(column, "str")), ""))
            if blank.any():
                _refuse_blank(columns, file, row + int(blank.argmax()), name)


def number_ends(task: Task) -> dict[str, Any]:
    """A piece: the ids of the nodes of edges alone, each once and sorted.

    DuckDB, asked for the distinct of ten million texts, ran out of a limit of 1 GB in spite of its files: a table of
    these texts takes some 110 bytes for each, as much as other vectors over the nodes do later.
    """
    listed = task.inputs["listed"]
    kind = listed.result()["kind"]
    numberer, numbers = Numberer(), np.empty(0, np.int64)
    for block in range(listed.count):
        with parquet.ParquetFile(listed.path("ids.parquet", block)) as file:
            for batch in file.iter_batches(2**18):
                if kind == "int":
                    numbers = np.union1d(numbers, _numbers(batch.column(0)))
                else:
                    numberer.number(*_bytes(batch.column(0)), np.empty(len(batch), np.int32))
    texts = numberer.texts()
    del numberer  # its table is of no use any more, and larger than the texts
    values = pa.array(numbers) if kind == "int" else texts.in_order([]).arrow
    if len(values) == 0:
        what = task.params["edges"]["what"]
        raise BadInput(f"{what} holds no edges and there is no table of nodes; a graph needs a node")
    result, _ = _save_ids(task, values, kind)
    return {**result, "own": len(values), "extra": 0}


def _save_ids(task: Task, values: Any, kind: str) -> tuple[dict[str, Any], tuple[int, int] | None]:
    """Write ids and the table to look them up in; the second result is a row that repeats the id of an earlier one."""
    n = len(values)
    if n > _MOST:
        raise BadInput(f"{n:,} nodes; there can be {_MOST:,} at most")
    counted = kind == "int" and np.array_equal(_numbers(values), np.arange(n))
    result = {"n": n, "kind": kind, "counted": counted, "seed": 0}
    if counted:
        return result, None
    data, begins, ends = _bytes(values)
    starts = np.append(begins, ends[-1:]).astype(np.int64, copy=False)
    longest = int((ends - begins).max())
    slots = np.zeros(2 * 2 ** max(1, int(1.5 * n)).bit_length(), np.uint64)
    seed = secrets.randbits(63)  # nobody can prepare ids that all fall into one place without knowing it
    _kernels.place_texts(data, n, starts, seed, slots)
    found = np.empty(n, np.int32)
    _kernels.find_texts(data, begins, ends, seed, slots, data, starts, found)
    again = found != np.arange(n, dtype=np.int32)
    if again.any():
        late = int(again.argmax())
        return result, (late, int(found[late]))
    parquet.write_table(pa.table({"id": values}), task.folder / "ids.parquet", compression="zstd", use_dictionary=False)
    task.save("slots", slots)
    if longest > _kernels.SHORT:
        task.save("texts", data[: int(starts[-1])])
        task.save("starts", starts)
    return {**result, "seed": seed}, None


# ------------------------------------------------------------------------------------------------- ends of edges


def _checked(columns: Columns, file: int, row: int, name: str, column: Any, kind: str) -> Any:
    """The ids in a part of a column, of the right kind."""
    if column.null_count:
        _refuse_blank(columns, file, row + int(np.asarray(column.is_null()).argmax()), name)
    try:
        return _as_kind(column, kind)
    except pa.ArrowInvalid as error:
        raise BadInput(
            f"{columns.originals[file]}: column {name!r} holds something other than ids, texts or whole numbers: "
            f"{str(error).splitlines()[0]}"
        ) from None


def _refuse_blank(columns: Columns, file: int, row: int, name: str) -> None:
    raise BadInput(f"{columns.where(file, row)}: column {name!r} is blank; an edge needs both ends")


class _Strange:
    """What to do about ends that no node has."""

    def __init__(self, task: Task, columns: Columns) -> None:
        self.columns, self.roles, self.unknown = columns, task.params["roles"], options_of(task).unknown
        self.nodes = task.params["nodes"]["what"] if "nodes" in task.params else ""

    def look(self, file: int, row: int, ids: list[Any], codes: list[NDArray[np.int32]]) -> None:
        """Refuse blanks, and strangers unless they are to be dropped."""
        for name, some, found in zip(self.roles["ends"], ids, codes, strict=True):
            strange = np.flatnonzero(found < 0)
            if len(strange) == 0:
                continue
            there = some.take(pa.array(strange))
            if _is_text(there.type):
                blank = np.asarray(arrow.equal(arrow.utf8_trim_whitespace(there), ""))
                if blank.any():
                    _refuse_blank(self.columns, file, row + int(strange[int(blank.argmax())]), name)
            if self.unknown == "error":
                raise UnknownIds(
                    f"{self.columns.where(file, row + int(strange[0]))}: node {shown(there[0].as_py())} is not in "
                    f"{self.nodes} (id: {self.roles['columns']['id']}); there may be more, such as "
                    f"{few(arrow.unique(there).to_pylist())}. Name the column of ids with id=, or pass unknown='add' "
                    "to add them as nodes, or unknown='drop' to leave out their edges"
                )


def find_strangers(task: Task) -> dict[str, Any]:
    """A piece: the ids in edges that the table of nodes does not have, each once."""
    columns, lookup = open_columns(task, "edges"), _Lookup(task.inputs["ids"])
    names = task.params["roles"]["ends"]
    kind = pa.int64() if lookup.kind == "int" else pa.large_string()
    strange, found = _Strange(task, columns), pa.array([], kind)
    for file, row, batch in _batches(task, columns, names):
        ids = [_checked(columns, file, row, n, c, lookup.kind) for n, c in zip(names, batch.columns, strict=True)]
        codes = [lookup.find(some) for some in ids]
        strange.look(file, row, ids, codes)
        new = [some.filter(pa.array(found < 0)).cast(kind) for some, found in zip(ids, codes, strict=True)]
        found = arrow.unique(pa.concat_arrays([found, *new]))
    if lookup.kind == "str":
        cut = np.asarray(arrow.ends_with(found, "\x00"))
        if cut.any():
            raise BadInput(
                f"{columns.what}: the id {found[int(cut.argmax())].as_py()!r} ends with a NUL character; take it off"
            )
    parquet.write_table(pa.table({"id": found}), task.folder / "strangers.parquet")
    return {"strangers": len(found)}


def width_of(n: int) -> int:
    """How many rows stand together in the counts of a run: their last bits take a byte."""
    return int(min(256, 2 ** max(0, (n // 256).bit_length())))


def number_edges(task: Task) -> dict[str, Any]:
    """A piece: its edges by the numbers of their ends, sorted by rows, in runs that fit into memory."""
    options, columns, lookup = options_of(task), open_columns(task, "edges"), _Lookup(task.inputs["ids"])
    roles = task.params["roles"]
    names, weight = list(roles["ends"]), roles["weight"]
    strange, runs = _Strange(task, columns), _Runs(task, lookup.n, bool(roles["directed"]), options.duplicates)
    first = _first_pair(roles, lookup) if roles["directed"] == "unless mutual" else None
    counts = {"rows": 0, "lost": 0, "zeros": 0}
    turned = False
    for file, row, batch in _batches(task, columns, names if weight is None else [*names, weight]):
        ids = [_checked(columns, file, row, n, c, lookup.kind) for n, c in zip(names, batch.columns, strict=False)]
        source, target = codes = [lookup.find(some) for some in ids]
        counts["rows"] += len(source)
        weights = None if weight is None else _weights(columns, file, row, weight, batch.column(2))
        kept = np.ones(len(source), dtype=bool)
        if min(source.min(initial=0), target.min(initial=0)) < 0:
            strange.look(file, row, ids, codes)
            kept = (source >= 0) & (target >= 0)
            counts["lost"] += int((~kept).sum())
        if weights is not None and not weights[kept].all():
            counts["zeros"] += int(np.count_nonzero(weights[kept] == 0))
            kept &= weights > 0
        if not kept.all():
            source, target = source[kept], target[kept]
            weights = None if weights is None else weights[kept]
        if first is not None:
            turned = turned or first[0] < 0 or bool(((source == first[1]) & (target == first[0])).any())
        runs.add(source, target, weights)
    runs.flush()
    return {**counts, "turned": turned, "n": lookup.n, "arcs": runs.arcs, "runs": runs.count, "width": runs.width}


def _first_pair(roles: Mapping[str, Any], lookup: _Lookup) -> tuple[int, int]:
    column = pa.array(roles["first"], pa.string())
    try:
        one, other = lookup.find(_as_kind(column, lookup.kind)).tolist()
    except pa.ArrowInvalid:
        return -1, -1
    return (one, other) if min(one, other) >= 0 else (-1, -1)


def _weights(columns: Columns, file: int, row: int, name: str, column: Any) -> FloatArray:
    """The weights of a part of the edges."""
    column = _decoded(column)
    try:
        if _is_text(column.type):
            if columns.layout is not None and columns.layout["decimal"] == ",":
                column = arrow.replace_substring(column, ",", ".")
            numbers = arrow.utf8_trim_whitespace(column).cast(pa.float64())
        else:
            numbers = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadInput(
            f"{columns.originals[file]}: column {name!r} holds something other than weights: "
            f"{str(error).splitlines()[0]} (weight=False ignores the column)"
        ) from None
    weights = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        bad = int(good.argmin())
        raise BadInput(
            f"{columns.where(file, row + bad)}: weight {shown(column[bad].as_py())} in column {name!r} must be a "
            "finite number, not negative (weight=False ignores the column)"
        )
    return weights


class _Runs:
    """Arcs that are gathered, sorted by rows and written, as many as fit into memory at a time."""

    def __init__(self, task: Task, n: int, directed: bool, duplicates: str) -> None:
        self.task, self.n, self.directed, self.duplicates = task, n, directed, duplicates
        self.width = width_of(n)
        self.most = max(task.memory // 2 // _BYTES, 2**16)
        self.count, self.arcs, self._held = 0, 0, 0
        self._parts: list[tuple[NDArray[np.int32], NDArray[np.int32], FloatArray | None]] = []

    def add(self, source: NDArray[np.int32], target: NDArray[np.int32], weights: FloatArray | None) -> None:
        """Take edges; without weights they weigh 1."""
        self._parts.append((source, target, None if self.duplicates == "count" else weights))
        self._held += len(source)
        if self._held >= self.most:
            self.flush()

    def flush(self) -> None:
        """Write what was taken."""
        if not self._held and self.count:
            return
        source = np.concatenate([part[0] for part in self._parts] or [np.empty(0, np.int32)])
        target = np.concatenate([part[1] for part in self._parts] or [np.empty(0, np.int32)])
        weighted = bool(self._parts) and self._parts[0][2] is not None
        weights = np.concatenate([part[2] for part in self._parts if part[2] is not None]) if weighted else None
        self._parts, self._held = [], 0
        keys = _pairs.pack(source, target, self.n, both=False)
        if not self.directed:
            turned, loops = _pairs.pack(target, source, self.n, both=False), source == target
            if weights is None:
                keys = np.concatenate([keys, turned[~loops] if loops.any() else turned])
            else:  # next to each other: of equal pairs, the order of rows is kept
                once = np.column_stack([np.ones(len(loops), dtype=bool), ~loops])
                keys, weights = np.column_stack([keys, turned])[once], np.repeat(weights, 2)[once.ravel()]
        self._write(keys, weights)

    def _write(self, keys: _pairs.Keys, weights: FloatArray | None) -> None:
        if weights is None:
            keys.sort()
            if self.duplicates in ("max", "min", "mean"):  # all weigh 1: how many there are does not matter
                keys = _pairs.without_repeats(keys)
        else:
            keys, order = _pairs.in_order(keys, self.n)
            weights = weights[order]
        bits = np.uint64(_pairs.bits_of(self.n))
        rows = (keys >> bits).astype(np.uint32)
        columns = (keys & ((np.uint64(1) << bits) - np.uint64(1))).astype(index_of(self.n))
        step = np.uint32(self.width)
        counts = np.bincount(rows // step, minlength=-(-self.n // self.width))
        name = str(self.count)
        self.task.save(f"low-{name}", (rows % step).astype(np.uint8))
        self.task.save(f"columns-{name}", columns)
        self.task.save(f"counts-{name}", counts.astype(np.uint32))
        small = narrow(weights)
        if small is not None:
            self.task.save(f"weights-{name}", small)
        self.count += 1
        self.arcs += len(keys)


# ------------------------------------------------------------------------------------------------- blocks of rows


def cut_rows(task: Task) -> dict[str, Any]:
    """A piece: where blocks of about `most` arcs begin and end."""
    pieces = task.inputs["pieces"]
    about = pieces.results
    total = sum(
        _counts(pieces, block, run).astype(np.int64) for block, one in enumerate(about) for run in range(one["runs"])
    )
    n, width = about[0]["n"], about[0]["width"]
    return {"bounds": [min(bound * width, n) for bound in bounds_of(np.asarray(total), task.params["most"])]}


def _counts(pieces: Made, block: int, run: int) -> NDArray[Any]:
    return pieces.load(f"counts-{run}", block)


def part(pieces: Made, name: str, block: int, start: int, stop: int) -> NDArray[Any]:
    return np.array(pieces.load(name, block, mmap=True)[start:stop])


def sort_edges(task: Task) -> dict[str, Any]:
    """A piece: a block of rows of the adjacency matrix, each arc once."""
    pieces, duplicates = task.inputs["pieces"], task.params["duplicates"]
    start, stop = task.params["bounds"][task.block : task.block + 2]
    keys, weights = [], []
    n = 1
    weighted = any(pieces.has(f"weights-{run}", block) for block, run in _runs(pieces))
    for block, run in _runs(pieces):
        about = pieces.result(block)
        n, width = about["n"], about["width"]
        counts = _counts(pieces, block, run)
        first, last = start // width, -(-stop // width)
        arc, end = int(counts[:first].sum(dtype=np.int64)), int(counts[:last].sum(dtype=np.int64))
        rows = np.repeat(np.arange(first, last, dtype=np.int32) * width, counts[first:last])
        rows += part(pieces, f"low-{run}", block, arc, end)
        keys.append(_pairs.pack(rows, part(pieces, f"columns-{run}", block, arc, end), n, both=False))
        if weighted:
            there = pieces.has(f"weights-{run}", block)
            weights.append(
                part(pieces, f"weights-{run}", block, arc, end).astype(np.float64) if there else np.ones(end - arc)
            )
    every = np.concatenate(keys)
    given = np.concatenate(weights) if weighted else None
    del keys, weights
    try:
        merged, values = merge_pairs(every, given, n, duplicates)
    except ValueError as error:
        raise BadInput(f"{task.params['what']}: {error}") from None
    del every, given
    if values is not None and not np.isfinite(values).all():
        raise BadInput(f"{task.params['what']}: the sum of the weights of an edge is not finite; make them smaller")
    bits = np.uint64(_pairs.bits_of(n))
    pointers = np.zeros(stop - start + 1, np.int64)
    np.cumsum(np.bincount((merged >> bits).astype(np.int64) - start, minlength=stop - start), out=pointers[1:])
    columns = (merged & ((np.uint64(1) << bits) - np.uint64(1))).astype(index_of(n))
    return save_block(task, Block(start, pointers.astype(columns.dtype), columns, values))


def _runs(pieces: Made) -> Iterator[tuple[int, int]]:
    for block in range(pieces.count):
        for run in range(pieces.result(block)["runs"]):
            yield block, run
