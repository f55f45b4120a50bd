"""Synthetic graphs: a million nodes and ten million edges, beside one product with the graph that results.

python benchmarks/synthetic.py [--quick]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import pegfan as pf
from measure import pin, show, verdict

N = 10**5 if "--quick" in sys.argv else 10**6

if __name__ == "__main__":
    pin()
    start = time.process_time()
    graph = pf.datasets.synthetic(0.3, n=N, n_edges=10 * N, n_features=16)
    taken = time.process_time() - start
    assert graph.n_edges == 10 * N
    start = time.process_time()
    graph.adjacency @ np.ones((N, 64))
    product = time.process_time() - start
    what = f"synthetic graph, {N:,} nodes, {10 * N:,} undirected edges, 16 features"
    show([(what, f"{taken:.1f} s CPU, {taken / product:.1f}x one S·X with d=64", "<= 30 s", verdict(taken <= 30))])
