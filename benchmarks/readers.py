"""Files that become graphs: Parquet against a bar, CSV against pandas on the same file.

    python benchmarks/readers.py [--quick]

"parsed" is the way from a CSV file to a table, guesses included, which is what pandas does; "read" is the whole way
to a Graph, which pandas has no part in. Edges are drawn at random, ids are numbers 0..n-1 or names.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from measure import peak_memory, pin, seconds, show, verdict
from pegfan._npz import MAX_BYTES
from pegfan.datasets._text import TextSettings, read_text
from pegfan.datasets.readers import read_graph

READ = "from pegfan.datasets.readers import read_graph; read_graph({path!r})"


def write_files(folder: Path, rows: int) -> None:
    numbers = pd.DataFrame(np.random.default_rng(0).integers(0, rows // 10, (rows, 2)), columns=["source", "target"])
    for ids, frame in (("numbers", numbers), ("names", "n" + numbers.astype(str))):
        frame.to_parquet(folder / f"{ids}.parquet", index=False)
        frame.to_csv(folder / f"{ids}.csv", index=False)


def cpu_seconds(path: Path) -> float:
    start = time.process_time()
    read_graph(path)
    return time.process_time() - start


def main() -> None:
    pin()
    quick = "--quick" in sys.argv
    rows = 10**6 if quick else 10**7
    settings = TextSettings(max_bytes=MAX_BYTES, known_names=frozenset({"source"}))
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows)
        for ids in ("numbers", "names"):
            parquet, csv = folder / f"{ids}.parquet", folder / f"{ids}.csv"
            what = f"{rows:.0e} edges, ids are {ids}"
            took, peak = cpu_seconds(parquet), peak_memory(READ.format(path=str(parquet)))
            lines.append((f"{what}: Parquet read", f"{took:.2f} s CPU", "<= 30 s", verdict(took <= 30)))
            lines.append((f"{what}: Parquet, peak memory", f"{peak:.2f} GB", "<= 3 GB", verdict(peak <= 3)))
            rivals = {"ours": lambda csv=csv: read_text(csv, settings), "pandas": lambda csv=csv: pd.read_csv(csv)}
            taken = seconds(rivals, repeats=3 if quick else 5)
            ratio, whole = taken["pandas"] / taken["ours"], cpu_seconds(csv)
            speed = f"{ratio:.2f} of pandas' speed"
            lines.append((f"{what}: CSV parsed", speed, ">= 0.5", verdict(ratio >= 0.5)))
            lines.append(
                (f"{what}: CSV read", f"{whole:.2f} s CPU, {whole / taken['pandas']:.1f} pandas.read_csv", "", "")
            )
    show(lines)


if __name__ == "__main__":
    main()
