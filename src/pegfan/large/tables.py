"""Tables of predictions for many nodes, written block by block: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._atomic import replacing
from pegfan.decisions import Decision
from pegfan.large.files import Rows, RowWriter
from pegfan.large.pieces import Made

__all__ = ["in_node_order", "write_predictions"]

PARTS = ("none", "train", "val", "test")
"""The names of the parts of a split."""
_ROWS = 131_072
_SHARE = 3
"""Of the memory, one part in so many may hold what is predicted."""


def write_predictions(
    path: Path,
    outputs: Path,
    order: Made | None,
    decision: Decision,
    classes: Sequence[str],
    parts: NDArray[np.uint8],
    ids: Path | None,
    memory: int,
) -> dict[str, Any]:
    """Write a table of predictions, nodes in their order; the file appears when it is whole.

    Parameters
    ----------
    path
        Where to: ``.csv`` or ``.parquet``.
    outputs
        An ``.npy`` file with a row per place: logarithms of probabilities, or numbers in one column.
    order
        The stage with the node of every place; None where places are nodes.
    decision
        How probabilities are calibrated and decided on.
    classes
        Their names; none where numbers are predicted.
    parts
        Per node, a place in `PARTS`.
    ids
        A Parquet file with the column ``id``; None where nodes have their numbers.
    memory
        Bytes that this may take.

    Returns
    -------
    dict
        How many nodes are decided to be of each class; or the ``mean`` of the numbers, the lowest and the highest.
    """
    import pyarrow as pa

    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: a table of predictions ends in .csv or .parquet")
    names, split = pa.array(list(classes), pa.string()), pa.array(PARTS)
    counts, span, total = np.zeros(len(classes), np.int64), [np.inf, -np.inf], 0.0
    fields = [("id", pa.string() if ids is not None else pa.int64())]
    fields += [("predicted", pa.string() if classes else pa.float64())]
    fields += [*((f"p_{name}", pa.float32()) for name in classes), ("split", pa.string())]
    schema = pa.schema(fields)
    with replacing(path) as file, _writer(path, file, schema) as writer:
        for (start, values), own in zip(in_node_order(outputs, order, memory), _ids(ids, len(parts)), strict=True):
            columns: list[Any] = [own]
            if classes:
                calibrated = decision.calibrated(values)
                decided = decision.classes(calibrated)
                counts += np.bincount(decided, minlength=len(classes))
                columns.append(names.take(pa.array(decided)))
                shown = np.exp(calibrated)
                columns += [pa.array(np.ascontiguousarray(shown[:, k]), pa.float32()) for k in range(len(classes))]
            else:
                numbers = values[:, 0].astype(np.float64)
                span, total = [min(span[0], numbers.min()), max(span[1], numbers.max())], total + numbers.sum()
                columns.append(pa.array(numbers))
            columns.append(split.take(pa.array(parts[start : start + len(values)])))
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    if classes:
        return dict(zip(classes, counts.tolist(), strict=True))
    return {"lowest": float(span[0]), "mean": float(total / max(len(parts), 1)), "highest": float(span[1])}


def _writer(path: Path, file: Any, schema: Any) -> Any:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(file, schema)
    from pyarrow import csv

    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _ids(path: Path | None, n: int) -> Iterator[Any]:
    """The ids of nodes, block by block."""
    import pyarrow as pa

    if path is None:
        for start in range(0, n, _ROWS):
            yield pa.array(np.arange(start, min(start + _ROWS, n)))
        return
    import pyarrow.parquet as pq

    left: list[Any] = []
    for batch in pq.ParquetFile(path).iter_batches(_ROWS, columns=["id"]):
        left.append(batch.column(0).cast(pa.string()))
        while sum(map(len, left)) >= _ROWS:
            whole = pa.concat_arrays(left)
            yield whole[:_ROWS]
            left = [whole[_ROWS:]]
    if sum(map(len, left)):
        yield pa.concat_arrays(left)


def in_node_order(outputs: Path, order: Made | None, memory: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Where blocks of nodes begin, and what is predicted for them; as many columns at a time as fit are turned."""
    rows = Rows(outputs)
    n, columns = rows.count, rows.shape[0]
    if order is None:
        yield from ((start, rows.read(start, min(start + _ROWS, n))) for start in range(0, n, _ROWS))
        return
    step = max(1, int(memory / _SHARE / (rows.dtype.itemsize * max(n, 1))))
    nodes = order.load("order")
    files = []
    try:
        for first in range(0, columns, step):
            last = min(first + step, columns)
            turned = np.empty((n, last - first), rows.dtype)
            for start in range(0, n, _ROWS):
                stop = min(start + _ROWS, n)
                turned[nodes[start:stop]] = rows.read(start, stop)[:, first:last]
            if step >= columns:
                del nodes
                yield from ((start, turned[start : start + _ROWS]) for start in range(0, n, _ROWS))
                return
            files.append(outputs.with_name(f"{outputs.name}.{first}"))
            with RowWriter(files[-1], turned.shape, turned.dtype) as out:
                out.write(0, turned)
            del turned
        del nodes
        parts = [Rows(file) for file in files]
        for start in range(0, n, _ROWS):
            yield start, np.hstack([part.read(start, min(start + _ROWS, n)) for part in parts])
    finally:
        for file in files:
            file.unlink(missing_ok=True)
