"""Sparse products S X: ours against SciPy's and torch's, on graphs without and with locality, on one core and on all.

    python benchmarks/products.py [--quick]

Ratios inside one run. S has 20 entries per row and X 64 columns of float32. The floor is what it takes this machine to
read the entries of S and, for each, a row of X, at the speed at which it copies memory; a graph with locality reads its
rows from the caches and may be below it. Results are SciPy's, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from measure import pin, seconds, show, verdict
from pegfan._products import product

DEGREE, WIDTH = 20, 64


def graph(n: int, local: bool) -> csr_array:
    """Neighbours anywhere, or among the hundred nodes around; in order."""
    rng = np.random.default_rng(0)
    source = np.repeat(np.arange(n, dtype=np.int32), DEGREE)
    target = (source + rng.integers(-50, 51, len(source))) % n if local else rng.integers(n, size=len(source))
    made = csr_array((rng.random(len(source), np.float32), (source, target.astype(np.int32))), shape=(n, n))
    made.sort_indices()
    return made


def shuffled(matrix: csr_array) -> csr_array:
    order = np.random.default_rng(1).permutation(matrix.shape[0])
    moved = csr_array(matrix[order][:, order])
    moved.sort_indices()
    return moved


def wall(run: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small graph")
    quick = parser.parse_args().quick
    n, repeats = (100_000, 3) if quick else (1_000_000, 5)
    cores = os.sched_getaffinity(0)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Sparse")
    x = np.random.default_rng(2).random((n, WIDTH), np.float32)
    out, copied = np.empty_like(x), np.empty_like(x)
    anywhere, near = graph(n, local=False), graph(n, local=True)
    far = shuffled(near)
    parts = (torch.from_numpy(array) for array in (anywhere.indptr, anywhere.indices, anywhere.data))
    tensor, features = torch.sparse_csr_tensor(*parts, size=anywhere.shape), torch.from_numpy(x)
    assert product(anywhere, x).tobytes() == (anywhere @ x).tobytes()

    pin()
    rivals: dict[str, Any] = {
        "ours": lambda: product(anywhere, x),
        "into": lambda: product(anywhere, x, out=out),
        "scipy": lambda: anywhere @ x,
        "torch": lambda: tensor @ features,
        "far": lambda: product(far, x, out=out),
        "near": lambda: product(near, x, out=out),
        "copy": lambda: np.copyto(copied, x),
    }
    taken = seconds(rivals, repeats)
    bytes_read = anywhere.nnz * (8 + 4 * WIDTH) + x.nbytes
    floor = bytes_read * taken["copy"] / (2 * x.nbytes)
    os.sched_setaffinity(0, cores)
    one = wall(lambda: product(anywhere, x, 1, out), repeats)
    both = wall(lambda: product(anywhere, x, 2, out), repeats)

    print(f"n = {n:,}, {anywhere.nnz:,} entries, {WIDTH} columns of float32; one core but in the last row\n")
    ratio, kept, order, threads = (
        taken["ours"] / taken["scipy"],
        taken["into"] / taken["scipy"],
        taken["far"] / taken["near"],
        one / both,
    )
    show(
        [
            ("S X, of SciPy's time", f"{ratio:.2f}x ({taken['ours']:.2f} s)", "<= 0.4x", verdict(ratio <= 0.4)),
            ("  into an array that is there", f"{kept:.2f}x", "", ""),
            ("  of torch's time", f"{taken['ours'] / taken['torch']:.2f}x", "", ""),
            ("  of the floor: entries and rows at the speed of a copy", f"{taken['into'] / floor:.2f}x", "", ""),
            ("a graph with locality, shuffled / in order", f"{order:.1f}x", ">= 4x", verdict(order >= 4)),
            ("two threads, by the clock", f"{threads:.2f}x", ">= 1.7x", verdict(threads >= 1.7)),
        ]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
