"""Trees: how building scales beside communities of other libraries, against one product S·X, SciPy's linkage and a
plain pipeline.

python benchmarks/trees.py [--quick | --large]  (PEGFAN_DATA=folder adds the table of quality on real graphs; --large
adds ten million nodes, which takes 8 GB)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse.linalg import LinearOperator, eigsh

import pegfan as pf
from measure import peak_memory, pin, seconds, show, verdict
from pegfan.trees import embeddings
from pegfan.trees.canonical import _known, canonical_order
from pegfan.trees.embeddings import spectral_embedding
from pegfan.trees.hierarchy import by_appearance, cut_linkage
from pegfan.trees.level import first_level
from pegfan.trees.linkage import ward_linkage

QUICK, LARGE = "--quick" in sys.argv, "--large" in sys.argv
Row = tuple[str, str, str, str]

SCALE = """
import time, numpy as np, pegfan as pf
def held(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]) * 1024 / 1e9
pf.build_tree(pf.datasets.synthetic(0.5, n=1000, n_edges=5000, n_features=0, splits=0), 'matching', h=4)
graph = pf.datasets.synthetic(0.5, n={n}, n_edges=5 * {n}, n_features=0, splits=0)
open('/proc/self/clear_refs', 'w').write('5')  # forget the peak of making the graph
before = held()
start = time.process_time()
tree = pf.build_tree(graph, 'matching', h=4)
print(time.process_time() - start, before, tree.h)
"""

CHANNELS = """
import time, numpy as np, pegfan as pf
def run(n):
    graph = pf.datasets.synthetic(0.5, n=n, n_edges=5 * n, n_features=4, splits=0)
    system = pf.FrameletSystem(pf.build_tree(graph, 'matching', h=4))
    start = time.process_time()
    channels = pf.make_channels(graph, system, kind='b', regime='all', hops=2)
    channels.materialize(np.float32, 'dense')
    return time.process_time() - start, len(channels), graph.adjacency.nnz
run(1000)
print(*run({n}))
"""

COMMUNITIES = """
import time, numpy as np, pegfan as pf
graph = pf.datasets.synthetic(0.5, n={n}, n_edges=5 * {n}, n_features=0, splits=0)
taken = []
try:
    from scipy.sparse import csr_matrix
    from sknetwork.clustering import Louvain
    A = csr_matrix(graph.adjacency)
    start = time.process_time()
    Louvain(random_state=0).fit(A)
    taken.append(time.process_time() - start)
except ImportError:
    taken.append('missing')
try:
    import igraph
    G = igraph.Graph(n=graph.n, edges=graph.edges()[0])
    start = time.process_time()
    G.community_leiden(objective_function='modularity', n_iterations=2)
    taken.append(time.process_time() - start)
except ImportError:
    taken.append('missing')
print(*taken)
"""


def alone(code: str) -> list[str]:
    """What some code prints in a process of its own, then the peak of its memory."""
    report = "print(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])"
    run = subprocess.run([sys.executable, "-c", code + report], check=True, capture_output=True, text=True)
    return run.stdout.split()


def scaling() -> list[Row]:
    """Nanoseconds per arc, each size in a process of its own; others find one partition, a tree is one per level."""
    sizes = (10**4, 10**5) if QUICK else (10**4, 10**5, 10**6, 3 * 10**6, *((10**7,) if LARGE else ()))
    per_arc, rows = {}, []
    for n in sizes:
        taken, before, _, peak = map(float, alone(SCALE.format(n=n)))
        over = peak * 1024 / 1e9 - before
        per_arc[n] = taken / (10 * n)
        ratio = f", {per_arc[n] / per_arc[10**5]:.2f}x of n=100,000" if n > 10**5 else ""
        met, bar = True, ""
        if n == 10**7:
            met = taken <= 100 and over <= 4 and per_arc[n] <= 1.3 * per_arc[10**5]
            bar = "<= 100 s, 4 GB, 1.3x"
        what = f"{per_arc[n] * 1e9:.0f} ns per arc ({taken:.2f} s){ratio}; {over:.2f} GB over the graph"
        rows.append((f"matching, h=4, n={n:,}, mean degree 10", what, bar, verdict(met) if bar else ""))
        if n <= 10**6:
            for name, found in zip(
                ("scikit-network's Louvain", "igraph's Leiden"), alone(COMMUNITIES.format(n=n))[:2], strict=True
            ):
                per = "not installed" if found == "missing" else f"{float(found) / (10 * n) * 1e9:.0f} ns per arc"
                times = "" if found == "missing" else f", {float(found) / taken:.1f}x of the tree"
                rows.append((f"  {name}", per + times, "", ""))
    return rows


def scaling_of_channels() -> list[Row]:
    sizes = (10**4, 10**5) if QUICK else (10**4, 10**5, 10**6, 3 * 10**6)
    first, rows = 0.0, []
    for n in sizes:
        taken, count, arcs, _ = map(float, alone(CHANNELS.format(n=n)))
        per_arc = taken / arcs
        first = per_arc if n == 10**5 else first
        ratio = f", {per_arc / first:.2f}x of n=100,000" if n > 10**5 else ""
        what = f"make_channels + materialize, n={n:,}, {count:.0f} of 4 columns"
        rows.append((what, f"{per_arc * 1e9:.0f} ns per arc{ratio}", "", ""))
    return rows


def against_a_product() -> list[Row]:
    n = 10**5 if QUICK else 10**6
    graph = pf.datasets.synthetic(0.5, n=n, n_edges=5 * n, n_features=0, splits=0)
    X = np.ones((n, 64))
    taken = seconds(
        {
            "product": lambda: graph.adjacency @ X,
            "order": lambda: (_known.clear(), canonical_order(graph)),  # which is kept otherwise
            "tree": lambda: (_known.clear(), pf.build_tree(graph, "matching", h=4)),
        },
        repeats=3,
    )
    tree, order = taken["tree"] / taken["product"], taken["order"] / taken["product"]
    return [
        (f"matching, n={n:,}, over S·X with d=64 (SciPy)", f"{tree:.1f}x", "<= 10x", verdict(tree <= 10)),
        (f"canonical order, n={n:,}, over the same", f"{order:.1f}x", "<= 4x", verdict(order <= 4)),
    ]


def against_pairwise_linkage() -> list[Row]:
    n = 4000 if QUICK else 20_000
    graph = pf.datasets.synthetic(0.2, n=n, n_edges=5 * n, n_features=0, splits=0)
    points = spectral_embedding(first_level(graph, np.arange(n), "symmetric"))
    ward_linkage(points[:100])  # compile
    start = time.process_time()
    ours = ward_linkage(points)
    middle = time.process_time()
    theirs = linkage(points, "ward")
    gain = (time.process_time() - middle) / (middle - start)
    np.testing.assert_allclose(ours[:, 2], theirs[:, 2], rtol=1e-6)
    over = peak_memory(SCALE.format(n=n).replace("'matching', h=4)\nprint", "'ward', h=4)\nprint")) - peak_memory(
        SCALE.format(n=n).replace("tree = pf.build_tree(graph, 'matching', h=4)", "tree = pf.Hierarchy([[0, 0]])")
    )
    return [
        (f"ward linkage, n={n:,}, over SciPy's of all pairs", f"{gain:.1f}x", ">= 10x", verdict(gain >= 10)),
        (f"ward tree, n={n:,}", f"{over:.2f} GB over the graph", "<= 0.3 GB", verdict(over <= 0.3)),
    ]


def plain_tree(graph: pf.Graph, h: int) -> list[np.ndarray]:
    """The authors' way, plainly: all-pairs Ward on an embedding, dense coarsening by a loop over edges."""
    A = graph.adjacency.toarray()
    levels = []
    while len(A) > h:
        A = A + 1e-3 / len(A)
        scale = 1 / np.sqrt(A.sum(axis=1))
        S = scale[:, None] * A * scale
        vectors = eigsh(S, 11, which="LA")[1] if len(A) > 400 else np.linalg.eigh(S)[1][:, -11:]
        points = scale[:, None] * vectors
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        labels = by_appearance(cut_linkage(linkage(points, "ward"), h))
        coarse = np.zeros((labels.max() + 1,) * 2)
        for p, q in zip(*np.nonzero(np.triu(A > 0.5, 1)), strict=True):
            if labels[p] != labels[q]:
                coarse[labels[p], labels[q]] += A[p, q]
                coarse[labels[q], labels[p]] += A[p, q]
        levels.append(labels)
        if len(coarse) == len(A):
            break
        A = coarse
    return levels


def against_a_plain_pipeline() -> list[Row]:
    n = 2000 if QUICK else 7600
    graph = pf.datasets.synthetic(0.5, n=n, n_edges=2 * n, n_features=0, splits=0)
    start = time.process_time()
    plain_tree(graph, 4)
    plain = time.process_time() - start
    ours = seconds({"tree": lambda: pf.build_tree(graph, "ward", h=4)}, repeats=3)["tree"]
    gain = plain / ours
    what = f"ward tree, n={n}, {2 * n:,} edges (actor's size), canonical order included"
    return [(what, f"{gain:.0f}x a plain pipeline", ">= 8x", verdict(gain >= 8))]


def library_eigenvectors(operator: Any, count: int, notes: Any, first: Any = None) -> Any:
    """Eigenvectors from LAPACK or ARPACK, whose last bits differ from one CPU to the next."""
    n = operator.n
    if n <= max(400, 2 * count + 1):
        return np.linalg.eigh(operator.apply(np.eye(n)))[1][:, ::-1][:, :count]
    action = LinearOperator((n, n), lambda x: operator.apply(x.reshape(n, 1)).ravel(), dtype=np.float64)
    start = np.cos(np.arange(1.0, n + 1.0)) if first is None else first
    return eigsh(action, count, which="LA", v0=start, maxiter=2000)[1][:, ::-1]


def against_library_eigenvectors() -> list[Row]:
    """What it costs that trees are the same on every machine."""
    n = 2000 if QUICK else 20_000
    graph = pf.datasets.synthetic(0.5, n=n, n_edges=5 * n, n_features=0, splits=0)
    rows = []
    for method in ("ward", "adjacency"):

        def library(method: Any = method) -> None:
            with patch.object(embeddings, "leading_eigenvectors", library_eigenvectors):
                pf.build_tree(graph, method, h=4)

        taken = seconds({"ours": partial(pf.build_tree, graph, method, h=4), "library": library}, repeats=3)
        ratio = taken["ours"] / taken["library"]
        what = f"{method} tree, n={n:,}, over one with eigenvectors of LAPACK and ARPACK"
        rows.append((what, f"{ratio:.2f}x", "<= 1.5x", verdict(ratio <= 1.5)))
    return rows


def quality_on_real_graphs(root: str) -> None:
    names = ["cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell", "actor", "chameleon", "squirrel"]
    names += ["chameleon-filtered", "squirrel-filtered"]
    print("\nTrees of real graphs, h=4: levels; edges inside the clusters of the finest level, and of level 3;")
    print("label energy in the coarser half of the levels (a random tree keeps little of any)\n")
    print(f"{'graph':20s}{'builder':20s}{'K':>3s}{'fine':>8s}{'level 3':>9s}{'labels':>8s}{'seconds':>9s}")
    for name in names:
        graph = pf.datasets.load(name, root=root, offline=True)
        direction = "out" if graph.directed else "symmetric"
        for method in ("ward", "adjacency", "matching", "random"):
            start = time.process_time()
            if method == "random":
                tree = pf.build_tree(graph, "matching", h=4)
                tree = pf.Hierarchy(tree.parents, np.random.default_rng(0).permutation(graph.n))
            else:
                tree = pf.build_tree(graph, method, h=4, direction=direction)
            taken = time.process_time() - start
            table = pf.framelets.quality(graph, tree)
            inside, labels = table["edges inside"], table["label energy"]
            half = labels.iloc[: tree.K // 2].sum()
            print(
                f"{name:20s}{method:20s}{tree.K:3d}{inside.iloc[-2]:8.3f}{inside.get(3, np.nan):9.3f}"
                f"{half:8.3f}{taken:9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    pin()
    parts = (
        against_a_product,
        against_library_eigenvectors,
        against_pairwise_linkage,
        against_a_plain_pipeline,
        scaling,
        scaling_of_channels,
    )
    show([row for part in parts for row in part()])
    if "PEGFAN_DATA" in os.environ:
        quality_on_real_graphs(os.environ["PEGFAN_DATA"])
