"""Files that become graphs: Parquet against a bar, CSV against pandas on the same file.

    python benchmarks/readers.py [--quick]

"read" is the whole way from a file to a Graph; pandas only parses the file. Edges are drawn at random, ids are numbers
0..n-1 or texts such as user123456, one per ten edges; "events" have an amount and a date too, of which columns of the
nodes and weights of the edges are made. Readers take turns; "CPU" is the time of all threads, system included.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from measure import peak_memory, show, verdict
from pegfan.datasets.readers import read_graph

READ = "from pegfan.datasets.readers import read_graph; graph = read_graph({path!r})"
HELD = """
parts = [m for m in (graph.adjacency, *graph.edge_matrices.values())]
arrays = {id(a): a.nbytes for m in parts for a in (m.data, m.indices, m.indptr)}
print((sum(arrays.values()) + sum(a.nbytes for a in (graph.node_names, graph.features) if a is not None)) / 1e9)
"""


def write_files(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    n = rows // 10
    ends = rng.integers(0, n, (2, rows))
    names = pa.array([f"user{k}" for k in range(n)])
    texts = pa.table({"src": names.take(pa.array(ends[0])), "dst": names.take(pa.array(ends[1]))})
    days = np.datetime64("2020-01-01") + rng.integers(0, 1000, rows)
    events = texts.append_column("amount", pa.array(np.round(rng.gamma(2, 50, rows), 2)))
    tables = {
        "numbers": pa.table({"source": ends[0], "target": ends[1]}),
        "texts": texts,
        "events": events.append_column("date", pa.array(days)),
    }
    for name, table in tables.items():
        csv.write_csv(table, folder / f"{name}.csv", csv.WriteOptions(quoting_style="none"))
        parquet.write_table(table, folder / f"{name}.parquet")


def take_turns(rivals: dict[str, Callable[[], object]], repeats: int) -> dict[str, tuple[float, float]]:
    """Median CPU and wall seconds of every rival; the first, cold round does not count."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in rivals}
    for _ in range(repeats + 1):
        for name, run in rivals.items():
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {name: (median(t[0] for t in taken[1:]), median(t[1] for t in taken[1:])) for name, taken in times.items()}


def main() -> None:
    quick = "--quick" in sys.argv
    rows = 10**6 if quick else 10**7
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows)
        for kind in ("texts", "numbers", "events"):
            packed, text = folder / f"{kind}.parquet", folder / f"{kind}.csv"
            what = f"{rows:.0e} edges, {kind if kind == 'events' else f'ids are {kind}'}"
            rivals = {
                "ours": lambda text=text: read_graph(text),
                "pandas": lambda text=text: pd.read_csv(text),
                "parquet": lambda packed=packed: read_graph(packed),
            }
            took = take_turns(rivals, 5 if quick else 3)
            cpu, wall = (took["ours"][k] / took["pandas"][k] for k in range(2))
            both = f"{took['ours'][0]:.2f} and {took['pandas'][0]:.2f} s CPU"
            said = f"{cpu:.2f} of pandas' CPU, {wall:.2f} of its time ({both})"
            bar = 3.0 if kind == "texts" else None
            lines.append((f"{what}: CSV read", said, "<= 3" if bar else "", verdict(cpu <= bar) if bar else ""))
            peak = peak_memory(READ.format(path=str(text)) + HELD)
            lines.append((f"{what}: CSV, peak memory", f"{peak:.2f} GB", "<= 3 GB", verdict(peak <= 3)))
            seconds = took["parquet"][0]
            lines.append((f"{what}: Parquet read", f"{seconds:.2f} s CPU", "<= 30 s", verdict(seconds <= 30)))
    show(lines)


if __name__ == "__main__":
    main()
