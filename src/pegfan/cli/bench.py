"""``pegfan bench``."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Annotated, Any

import typer

from pegfan.cli._options import Json
from pegfan.cli._shell import command, console, errors, load_packages
from pegfan.cli._show import make_table, print_json, print_table

_WIDTH = 64
"""Columns of a signal, as many as the networks have hidden units."""
_HIDDEN = 64
_QUICK = 10
"""How many times smaller --quick is."""


@dataclass(frozen=True)
class Row:
    """One thing that was measured: CPU seconds, its rate, and how many times its limit it takes."""

    name: str
    what: str
    seconds: float
    rate: float
    unit: str
    limit: float | None = None
    limited_by: str = ""

    @property
    def ratio(self) -> float | None:
        """Seconds over the least that the machine's limits allow."""
        return None if self.limit is None else self.seconds / self.limit


@command("pegfan bench --quick --json")
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: a few seconds, rougher numbers.")] = False,
    as_json: Json = False,
) -> None:
    """Measure the speed of transforms, trees and training on one core, and compare it with this machine's limits.

    CPU seconds, medians of runs that alternate with their limit. Seconds do not carry over to other machines; the
    ratios to a memory copy and to a matrix product do, more or less.
    """
    scale = _QUICK if quick else 1
    rows: list[Row] = []
    load_packages("pegfan.training.fast", "pegfan.trees")
    with _one_core() as cores, errors.status("measuring") as status:
        for stage in (_machine, _hops, _transforms, _tree, _training):
            status.update(f"measuring: {stage.__name__.strip('_')}")
            rows += stage(scale, rows)
    facts = {"quick": quick, "cores": cores, "rows": [{**asdict(row), "ratio": row.ratio} for row in rows]}
    if as_json:
        from pegfan._plain import versions

        about = {**versions("numpy"), "python": platform.python_version()}
        print_json(facts | {"versions": about})
        return
    table = make_table("Speed on one core", "what", "time", "rate", "times the limit", "limit<")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}"
        table.add_row(row.what, f"{1000 * row.seconds:,.1f} ms", f"{row.rate:,.3g} {row.unit}", ratio, row.limited_by)
    print_table(table)
    console.print(
        f"CPU time, medians; one of {cores} core{'s' * (cores != 1)}. Signals have {_WIDTH} columns of float32, graphs "
        "degree 10, trees h = 4; training is type b. Limits: a copy of the bytes that must be read and written once; "
        "an epoch's products with the weights at the speed of the large product above."
    )


@contextlib.contextmanager
def _one_core() -> Iterator[int]:
    """Keep every library to one thread, and say how many cores there are."""
    from pegfan.running import cores, one_thread

    with one_thread():
        yield cores()


def _seconds(*rivals: Callable[[], object], repeats: int = 5) -> list[float]:
    """Median CPU seconds of each; they take turns, and the first, cold round does not count."""
    times: list[list[float]] = [[] for _ in rivals]
    for _ in range(repeats + 1):
        for run, taken in zip(rivals, times, strict=True):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    return [max(median(taken[1:]), 1e-9) for taken in times]


def _copy_of(count: float) -> Callable[[], object]:
    """A copy that reads and writes `count` bytes in total."""
    import numpy as np

    source = np.ones(int(count) // 8, np.float32)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


def _machine(scale: int, _: list[Row]) -> list[Row]:
    import numpy as np

    count = 512e6 / scale
    side = 2048 // (2 if scale > 1 else 1)
    a = np.random.default_rng(0).standard_normal((side, side), dtype=np.float32)
    out = np.empty_like(a)
    copying, multiplying = _seconds(_copy_of(count), lambda: np.matmul(a, a, out=out))
    return [
        Row("copy", f"memory copy, {count / 1e6:.0f} MB", copying, count / copying / 1e9, "GB/s"),
        Row("sgemm", f"product, {side}×{side}", multiplying, 2 * side**3 / multiplying / 1e9, "GFLOP/s"),
    ]


def _hops(scale: int, _: list[Row]) -> list[Row]:
    import numpy as np

    from pegfan.channels import hop_matrix
    from pegfan.datasets import synthetic

    n = 400_000 // scale
    graph = synthetic(0.5, n=n, n_edges=5 * n, n_features=0, splits=0)
    S = hop_matrix(graph, "S").astype(np.float32)
    X = np.random.default_rng(0).standard_normal((n, _WIDTH), dtype=np.float32)
    # Everything that must be touched, once: the matrix, the signal and the result.
    count = S.data.nbytes + S.indices.nbytes + S.indptr.nbytes + 2 * X.nbytes
    taken, copying = _seconds(lambda: S @ X, _copy_of(count), repeats=5)
    rate = 2 * S.nnz * _WIDTH / taken / 1e9
    return [Row("hop", f"S·X, {n:,} nodes", taken, rate, "GFLOP/s", copying, "copy")]


def _transforms(scale: int, _: list[Row]) -> list[Row]:
    import numpy as np

    from pegfan import FrameletSystem, Hierarchy

    n = 4**9 // (16 if scale > 1 else 1)
    parents, width = [], n
    while width > 1:
        parents.append(np.arange(width) // 4)
        width //= 4
    system = FrameletSystem(Hierarchy(parents))
    f = np.random.default_rng(0).standard_normal((n, _WIDTH), dtype=np.float32)
    c, back = system.decompose(f), np.empty_like(f)
    count = f.nbytes + c.array.nbytes
    taken = _seconds(
        lambda: system.decompose(f, out=c), lambda: system.reconstruct(c, out=back), _copy_of(count), repeats=5
    )
    return [
        Row(name, f"{name}, {n:,} nodes", seconds, count / seconds / 1e9, "GB/s", taken[2], "copy")
        for name, seconds in zip(("decompose", "reconstruct"), taken, strict=False)
    ]


def _tree(scale: int, _: list[Row]) -> list[Row]:
    from pegfan import build_tree
    from pegfan.datasets import synthetic

    build_tree(synthetic(0.5, n=500, n_edges=2500, n_features=0, splits=0), "matching")  # compiles what it needs
    n = 100_000 // scale
    graph = synthetic(0.5, n=n, n_edges=5 * n, n_features=0, splits=0)
    start = time.process_time()
    build_tree(graph, "matching", h=4)
    taken = time.process_time() - start
    return [Row("tree", f"tree, {n:,} nodes", taken, 5 * n / taken / 1e6, "M edges/s")]


def _training(scale: int, rows: list[Row]) -> list[Row]:
    from pegfan import FrameletSystem, build_tree, make_channels, train
    from pegfan.datasets import synthetic

    n, width = 3000, 200 if scale == 1 else 50
    graph = synthetic(0.2, n=n, n_edges=15 * n, n_features=width)
    system = FrameletSystem(build_tree(graph, h=4))
    channels = make_channels(graph, system, kind="b", regime="heterophily", scaling="none")
    epochs = 100 if scale == 1 else 20
    settings = {"epochs": epochs, "patience": epochs}
    train(channels, graph.labels, graph.splits, {**settings, "epochs": 2})
    run = train(channels, graph.labels, graph.splits, settings).runs[0]
    epoch = run.seconds / run.epochs
    peak = next(row.rate for row in rows if row.name == "sgemm") * 1e9
    limit = _flops(channels.widths, graph) / peak
    what = f"epoch, {n:,} nodes, {len(channels)}×{width}"
    return [Row("epoch", what, epoch, 1 / epoch, "epochs/s", limit, "product")]


def _flops(widths: tuple[int, ...], graph: Any) -> float:
    """An epoch's products: channels times weights for training and validation rows, and the gradients' way back."""
    split = graph.splits[0]
    forward, backward = len(split.train) + len(split.val), len(split.train)
    return float(sum(2 * width * _HIDDEN * (forward + backward) for width in widths))
