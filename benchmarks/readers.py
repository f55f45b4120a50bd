"""How fast files become graphs: Parquet against a bar, CSV against pandas on the same file, all in one run.

    python benchmarks/readers.py [--quick]

Each measurement runs in a process of its own, so that the peak of its memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

REPEATS = 5


def make_edges(rows: int, nodes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, nodes, (rows, 2))


def write_files(folder: Path, rows: int) -> None:
    import pandas as pd

    numbers = pd.DataFrame(make_edges(rows, rows // 10), columns=["source", "target"])
    numbers.to_parquet(folder / "numbers.parquet", index=False)
    numbers.to_csv(folder / "numbers.csv", index=False)
    names = "n" + numbers.astype(str)
    names.to_parquet(folder / "names.parquet", index=False)
    names.to_csv(folder / "names.csv", index=False)


# -------------------------------------------------------------------- measured in a process of their own


def read_whole(path: Path) -> None:
    from pegfan.datasets.readers import read_graph

    read_graph(path)


def parse_ours(path: Path) -> None:
    from pegfan._npz import MAX_BYTES
    from pegfan.datasets._text import TextSettings, read_text

    read_text(path, TextSettings(max_bytes=MAX_BYTES, known_names=frozenset({"source"})))


def parse_pandas(path: Path) -> None:
    import pandas as pd

    pd.read_csv(path)


TASKS = {task.__name__: task for task in (read_whole, parse_ours, parse_pandas)}


def measure(task: str, path: Path, repeats: int) -> dict[str, float]:
    """Run a task in a new process; CPU seconds are those of its fastest repetition, all threads together."""
    command = [sys.executable, __file__, "--task", task, "--path", str(path), "--repeats", str(repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_task(task: str, path: Path, repeats: int) -> None:
    import pandas as pd
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    import pegfan.datasets.readers  # noqa: F401

    pd.DataFrame()
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        TASKS[task](path)
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": min(seconds), "peak": peak / 2**20, "idle": idle / 2**20}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10^6 rows in place of 10^7")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        run_task(arguments.task, arguments.path, arguments.repeats)
        return
    rows = 10**6 if arguments.quick else 10**7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows)
        print(f"{rows:,} edges among {rows // 10:,} nodes; CPU seconds of all threads, peak memory of the process\n")
        print("Parquet to Graph                  CPU s   peak GB   (bar for 10^7 rows: 30 s, 3 GB)")
        for ids in ("numbers", "names"):
            whole = measure("read_whole", folder / f"{ids}.parquet", 1)
            print(f"  ids are {ids:<22} {whole['seconds']:8.2f} {whole['peak']:9.2f}")
        print("\nCSV                               CPU s   speed against pandas.read_csv (bar: 0.5)")
        for ids in ("numbers", "names"):
            path = folder / f"{ids}.csv"
            theirs = measure("parse_pandas", path, REPEATS)["seconds"]
            ours = measure("parse_ours", path, REPEATS)["seconds"]
            whole = measure("read_whole", path, 1)["seconds"]
            print(f"  {ids}: pandas.read_csv      {theirs:10.2f}")
            print(f"  {ids}: table, ours          {ours:10.2f} {theirs / ours:9.2f}")
            print(f"  {ids}: file to Graph        {whole:10.2f} {theirs / whole:9.2f}   (the graph is built, too)")


if __name__ == "__main__":
    main()
