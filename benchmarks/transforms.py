"""Framelet transforms against a memory copy, explicit sparse matrices and a dense construction.

    python benchmarks/transforms.py [--quick]

Everything is a ratio inside one run on one core. "copy" is ``np.copyto`` of as many bytes as the transform reads
and writes together (so it moves each of them twice, once in and once out); "traffic" is the stricter reading, a
copy of half of them, which moves exactly the transform's bytes.

"As called" has no `out=`: every call makes its result in fresh memory, as ``system.decompose(f)`` does, of 4^10 nodes
in random order. It stands beside a copy of the same bytes into fresh memory (``np.copy``), and with `out=` beside one
into memory that is there already (``np.copyto``). Beside them, where it is installed, PyWavelets on the binary tree,
where framelets are Haar's wavelets: along the last axis of a C-ordered array, its best layout.
"""

from __future__ import annotations

import importlib.util
import sys
import time

import numpy as np

import pegfan as pf
from measure import peak_memory, pin, seconds, show, verdict

QUICK = "--quick" in sys.argv
N, D = (10**5 if QUICK else 10**6), 64


def regular_tree(n: int, h: int, order: np.ndarray | None = None) -> pf.Hierarchy:
    parents, count = [], n
    while count > 1:
        parents.append(np.arange(count) // h)
        count = -(-count // h)
    return pf.Hierarchy(parents, order)


def transforms(h: int, scattered: bool) -> list[tuple[str, str, str, str]]:
    rng = np.random.default_rng(0)
    system = pf.FrameletSystem(regular_tree(N, h, rng.permutation(N) if scattered else None))
    f = rng.standard_normal((N, D), dtype=np.float32)
    c = system.decompose(f)
    back = np.ascontiguousarray(system.reconstruct(c))
    moved = f.nbytes + c.array.nbytes
    source, target = np.ones(moved, np.uint8), np.ones(moved, np.uint8)
    matrix = system.matrix().astype(np.float32)
    transposed = matrix.T
    taken = seconds(
        {
            "copy": lambda: np.copyto(target, source),
            "traffic": lambda: np.copyto(target[: moved // 2], source[: moved // 2]),
            "decompose": lambda: system.decompose(f, out=c),
            "reconstruct": lambda: system.reconstruct(c, out=back),
        }
    )
    explicit = seconds({"decompose": lambda: matrix @ f, "reconstruct": lambda: transposed @ c.array}, repeats=2)
    bar = 2.0 if scattered else 1.2
    rows = []
    for name in ("decompose", "reconstruct"):
        what = f"{name}, h={h}, nodes in {'random' if scattered else 'tree'} order"
        over, strict = taken[name] / taken["copy"], taken[name] / taken["traffic"]
        gain = explicit[name] / taken[name]
        rows.append((what, f"{over:.2f}x a copy ({strict:.2f}x traffic)", f"<= {bar}x", verdict(over <= bar)))
        barred = h == 4 and scattered
        rows.append(("", f"{gain:.0f}x explicit F", ">= 25x" if barred else "", verdict(gain >= 25) if barred else ""))
    return rows


def as_called() -> list[tuple[str, str, str, str]]:
    n, rng = 4 ** (8 if QUICK else 10), np.random.default_rng(0)
    system = pf.FrameletSystem(regular_tree(n, 4, rng.permutation(n)))
    f = rng.standard_normal((n, D), dtype=np.float32)
    c = system.decompose(f)
    moved = f.nbytes + c.array.nbytes
    source, target = np.ones(moved, np.uint8), np.ones(moved, np.uint8)
    back = system.reconstruct(c)
    taken = seconds(
        {
            "fresh copy": lambda: np.copy(source),
            "decompose": lambda: system.decompose(f),
            "reconstruct": lambda: system.reconstruct(c),
            "warm copy": lambda: np.copyto(target, source),
            "decompose, out=": lambda: system.decompose(f, out=c),
            "reconstruct, out=": lambda: system.reconstruct(c, out=back),
        }
    )
    rows = []
    for name in ("decompose", "reconstruct"):
        fresh, warm = taken[name] / taken["fresh copy"], taken[f"{name}, out="] / taken["warm copy"]
        what = f"{name} as called, n=4^{8 if QUICK else 10}, nodes in random order"
        rows.append((what, f"{fresh:.2f}x a fresh copy", "<= 1.0x", verdict(fresh <= 1)))
        rows.append(("  with out=", f"{warm:.2f}x a warm copy", "<= 2.0x", verdict(warm <= 2)))
    return rows


def wavelets() -> list[tuple[str, str, str, str]]:
    if importlib.util.find_spec("pywt") is None:
        return [("PyWavelets", "is not installed", "", "")]
    import pywt

    n, rng = 2 ** (16 if QUICK else 20), np.random.default_rng(0)
    system = pf.FrameletSystem(regular_tree(n, 2))
    f = rng.standard_normal((n, D), dtype=np.float32)
    lines = np.ascontiguousarray(f.T)
    c, theirs = system.decompose(f), pywt.wavedec(lines, "haar", mode="periodization", axis=-1)
    np.testing.assert_allclose(c.framelets(system.K - 1), theirs[-1].T, atol=1e-4)
    taken = seconds(
        {
            "decompose": lambda: system.decompose(f),
            "reconstruct": lambda: system.reconstruct(c),
            "wavedec": lambda: pywt.wavedec(lines, "haar", mode="periodization", axis=-1),
            "waverec": lambda: pywt.waverec(theirs, "haar", mode="periodization", axis=-1),
        },
        repeats=4,
    )
    pairs = (("decompose", "wavedec"), ("reconstruct", "waverec"))
    return [
        (
            f"{ours} as called, n=2^{16 if QUICK else 20}, h=2, tree order",
            f"{gain:.1f}x PyWavelets",
            ">= 5x",
            verdict(gain >= 5),
        )
        for ours, other in pairs
        for gain in (taken[other] / taken[ours],)
    ]


def projections(h: int) -> list[tuple[str, str, str, str]]:
    rng = np.random.default_rng(0)
    system = pf.FrameletSystem(regular_tree(N, h, rng.permutation(N)))
    f = rng.standard_normal((N, D), dtype=np.float32)
    out = system.projections(f)
    frame = [system.scaling(1).astype(np.float32)]
    frame += [system.framelets(j).astype(np.float32) for j in range(1, system.K)]
    fast = seconds({"all": lambda: system.projections(f, out=out)}, repeats=4)["all"]
    explicit = seconds({"all": lambda: [rows.T @ (rows @ f) for rows in frame]}, repeats=1)["all"]
    bar = 5 if h == 4 else 10
    gain = explicit / fast
    return [(f"all {system.K} projections, h={h}", f"{gain:.1f}x explicit Ψᵀ(Ψ f)", f">= {bar}x", verdict(gain >= bar))]


def frames(trees: int = 16) -> list[tuple[str, str, str, str]]:
    rng = np.random.default_rng(0)
    orders = (rng.permutation(N) for _ in range(trees))
    frame = pf.FrameletFrame([pf.FrameletSystem(regular_tree(N, 2, order), weights="size") for order in orders])
    f = rng.standard_normal(N)
    one, all_ = frame[0].decompose(f), frame.decompose(f)
    taken = seconds(
        {
            "decompose": lambda: frame[0].decompose(f),
            "decompose, frame": lambda: frame.decompose(f),
            "reconstruct": lambda: frame[0].reconstruct(one),
            "reconstruct, frame": lambda: frame.reconstruct(all_),
        }
    )
    rows = []
    for name in ("decompose", "reconstruct"):
        over = taken[f"{name}, frame"] / (trees * taken[name])
        measured = f"{over:.2f}x {trees} times one tree's"
        rows.append((f"{name}, frame of {trees} trees, h=2, d=1", measured, "<= 1.3x", verdict(over <= 1.3)))
    return rows


def first_use() -> list[tuple[str, str, str, str]]:
    parents, order = regular_tree(N, 4).parents, np.random.default_rng(0).permutation(N)
    parents = [level.copy() for level in parents]
    f = np.random.default_rng(1).standard_normal(N)
    pf.FrameletSystem(pf.Hierarchy([[0, 0]])).decompose(np.ones(2))  # compile

    def run() -> None:
        pf.FrameletSystem(pf.Hierarchy(parents, order)).decompose(f)

    taken = seconds({"all": run})["all"]
    good = taken <= 0.3
    return [("parents -> system -> first decomposition, d=1", f"{taken:.3f} s CPU", "<= 0.3 s", verdict(good))]


def memory_at_ten_million() -> list[tuple[str, str, str, str]]:
    code = f"""
import numpy as np, pegfan as pf
n, parents = {10 * N}, []
count = n
while count > 1:
    parents.append(np.arange(count) // 4)
    count = -(-count // 4)
system = pf.FrameletSystem(pf.Hierarchy(parents, np.random.default_rng(0).permutation(n)))
f = np.random.default_rng(1).standard_normal(n)
assert np.abs(system.reconstruct(system.decompose(f)) - f).max() < 1e-10
"""
    peak = peak_memory(code)
    return [(f"decompose + reconstruct, n={10 * N:,}, d=1", f"{peak:.2f} GB peak", "<= 3 GB", verdict(peak <= 3))]


def dense_construction(tree: pf.Hierarchy) -> np.ndarray:
    """Equations (1) and (2) cluster by cluster with dense vectors of length n, a level's rows stacked as they come."""
    children = np.eye(tree.n)[tree.order]
    levels = []
    for j in range(tree.K - 1, 0, -1):
        first = tree.first_child(j)
        scaling, framelets = np.empty((0, tree.n)), np.empty((0, tree.n))
        for c in range(len(first) - 1):
            p, B = pf.binary_haar(int(first[c + 1] - first[c]))
            block = children[first[c] : first[c + 1]]
            scaling = np.vstack([scaling, p @ block])
            framelets = np.vstack([framelets, B.toarray() @ block])
        children = scaling
        levels.append(framelets)
    return np.vstack([children, *levels[::-1]])


def dense_rows(tree: pf.Hierarchy) -> np.ndarray:
    """The same with the rows collected in a list and stacked once: the kindest dense rival."""
    children = np.eye(tree.n)[tree.order]
    levels = []
    for j in range(tree.K - 1, 0, -1):
        first = tree.first_child(j)
        scaling, framelets = [], []
        for c in range(len(first) - 1):
            p, B = pf.binary_haar(int(first[c + 1] - first[c]))
            block = children[first[c] : first[c + 1]]
            scaling.append(p @ block)
            framelets.append(B.toarray() @ block)
        children = np.array(scaling)
        levels.append(np.vstack(framelets))
    return np.vstack([children, *levels[::-1]])


def matrix_construction() -> list[tuple[str, str, str, str]]:
    n = 1000 if QUICK else 5000
    tree = regular_tree(n, 4, np.random.default_rng(0).permutation(n))
    ours = seconds({"matrix": lambda: pf.FrameletSystem(tree).matrix(1)}, repeats=9)["matrix"]
    rows = []
    for name, build, bar in (("stacked as they come", dense_construction, 500), ("collected", dense_rows, None)):
        start = time.process_time()
        dense = build(tree)
        gain = (time.process_time() - start) / ours
        np.testing.assert_allclose(dense, pf.FrameletSystem(tree).matrix(1).toarray(), atol=1e-12)
        good = verdict(gain >= bar) if bar else ""
        rows.append((f"matrix(1), n={n}, dense rows {name}", f"{gain:.0f}x", f">= {bar}x" if bar else "", good))
    return rows


if __name__ == "__main__":
    pin()
    print(f"n = {N:,}, d = {D} float32, one core, warm; medians of CPU time\n")
    rows = as_called() + wavelets()
    for h in (4, 8):
        for scattered in (True, False):
            rows += transforms(h, scattered)
        rows += projections(h)
    rows += frames() + first_use() + memory_at_ten_million() + matrix_construction()
    show(rows)
