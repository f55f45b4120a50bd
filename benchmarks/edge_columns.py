"""How long it takes to read a table of payments with three columns: amount, date and channel.

    python benchmarks/edge_columns.py --rows 10000000

The file is written first, to a folder that is removed at the end. What is timed is `read_graph`, from the text to the
graph with its edge matrices and node columns, and the part of it that groups the rows.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import pegfan as pf
from pegfan.datasets import read_graph


def write(path: Path, rows: int, nodes: int) -> None:
    """Write payments between accounts, a few of which take part in many."""
    rng = np.random.default_rng(0)
    ends = (rng.pareto(1.2, size=(2, rows)) * nodes / 50).astype(np.int64) % nodes
    day = np.datetime64("2024-01-01") + rng.integers(0, 365, rows).astype("timedelta64[D]")
    columns = {
        "payer": pa.array(ends[0]),
        "payee": pa.array(ends[1]),
        "amount": pa.array(np.round(rng.lognormal(4, 1.5, rows), 2)),
        "date": pa.array(day),
        "channel": pa.DictionaryArray.from_arrays(rng.integers(0, 5, rows), ["web", "app", "branch", "atm", "phone"]),
    }
    columns["channel"] = columns["channel"].cast(pa.string())
    csv.write_csv(pa.table(columns), path)


def main() -> None:
    """Measure, and print a line per way of reading."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--nodes", type=int, help="by default a tenth of the rows")
    given = parser.parse_args()
    nodes = given.nodes or given.rows // 10
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "payments.csv")
        write(path, given.rows, nodes)
        print(f"{given.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, pegfan {pf.__version__}")
        for words, options in (("ends alone", {"edge_columns": False}), ("every column", {})):
            wall, work = time.perf_counter(), time.process_time()
            graph = read_graph(path, **options)
            wall, work = time.perf_counter() - wall, time.process_time() - work
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"{words:<13} {wall:6.1f} s on the clock, {work:6.1f} s of work, {most:.1f} GB at most: {graph}")


if __name__ == "__main__":
    main()
