"""Training: epochs against a plain dense loop, preparing the channels of a large graph, and training on it in batches.

    PEGFAN_DATA=folder python benchmarks/training.py [--quick] [--part epochs|channels|batches]

All are ratios inside one run on one core. (Ten splits beside the paper's GPU: ``pegfan reproduce table4``.) The
authors' trees are read from PEGFAN_TREES, or from ../reference/trees beside PEGFAN_DATA. The plain loop is the network
as one would write it: dense channels of all nodes, forward with dropout and a loss on the training nodes, autograd,
Adam, and two more forwards, for validation and for test. It is in torch, whose products of these shapes are faster than
NumPy's.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F

import pegfan as pf
from measure import pin, seconds, show, verdict
from pegfan._npz import read_npz
from pegfan.channels import Channels, hop_matrix
from pegfan.training.fast import ChainSteps
from pegfan.training.rows import Labelled, loss_weights

Row = tuple[str, str, str, str]

EPOCHS = {"chameleon": (4, 120, 150), "squirrel": (4, 90, 120), "cora": (4, 65, 90), "texas": (8, 35, 50)}
"""h of the tree, and how many times faster than the plain loop an epoch must be, and is to be."""


def data_folder() -> Path:
    if "PEGFAN_DATA" not in os.environ:
        raise FileNotFoundError("PEGFAN_DATA is not set: it names the folder with the paper's data sets")
    return Path(os.environ["PEGFAN_DATA"])


def of_the_paper(name: str, h: int) -> tuple[pf.Graph, Channels]:
    """A data set with channels of type c on the authors' tree."""
    root = data_folder()
    trees = Path(os.environ.get("PEGFAN_TREES", root.parent / "reference" / "trees"))
    path = trees / f"{name}_h{h}.npz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: PEGFAN_TREES names the folder with the authors' trees")
    graph = pf.datasets.load(name, root=root, offline=True)
    system = pf.FrameletSystem(pf.Hierarchy.from_labels(read_npz(path)["labels"]))
    regime = "homophily" if name == "cora" else "heterophily"
    return graph, pf.make_channels(graph, system, kind="c", regime=regime, hops=3)


# ------------------------------------------------------------------------------- epochs


class PlainNetwork(nn.Module):
    """The paper's network, plainly."""

    def __init__(self, widths: tuple[int, ...], classes: int, hidden: int) -> None:
        super().__init__()
        self.channel_layers = nn.ModuleList(nn.Linear(width, hidden) for width in widths)
        self.attention_logits = nn.Parameter(torch.ones(len(widths)))
        self.output = nn.Linear(hidden * len(widths), classes)

    def forward(self, inputs: list[Tensor], dropout: float) -> Tensor:
        alpha = self.attention_logits.softmax(dim=0)
        layers = zip(alpha, self.channel_layers, inputs, strict=True)
        h = torch.cat([a * F.normalize(layer(x), dim=1) for a, layer, x in layers], dim=1)
        return F.log_softmax(self.output(F.dropout(F.relu(h), dropout, self.training)), dim=1)


class PlainLoop:
    """Epochs of the plain network on dense channels of all nodes."""

    def __init__(self, channels: Channels, graph: pf.Graph, settings: pf.Settings) -> None:
        torch.manual_seed(0)
        self.inputs = [torch.from_numpy(np.array(x)) for x in channels.materialize(format="dense")]
        self.y = torch.from_numpy(np.array(graph.labels))
        split = graph.splits[0]
        self.train, self.val, self.test = (torch.from_numpy(np.array(nodes)) for nodes in split)
        self.dropout = settings.dropout
        self.network = net = PlainNetwork(channels.widths, int(self.y.max()) + 1, settings.hidden)
        self.optimizer = torch.optim.Adam(
            [
                {"params": net.output.parameters(), "lr": settings.lr_fc, "weight_decay": settings.wd_fc2},
                {"params": net.channel_layers.parameters(), "lr": settings.lr_fc, "weight_decay": settings.wd_fc1},
                {"params": [net.attention_logits], "lr": settings.lr_sca, "weight_decay": settings.wd_sca},
            ]
        )

    def epoch(self) -> float:
        self.network.train()
        self.optimizer.zero_grad()
        output = self.network(self.inputs, self.dropout)
        loss = F.nll_loss(output[self.train], self.y[self.train])
        loss.backward()
        self.optimizer.step()
        self.loss(self.test)
        return self.loss(self.val)

    def loss(self, nodes: Tensor) -> float:
        self.network.eval()
        with torch.no_grad():
            output = self.network(self.inputs, self.dropout)
            return F.nll_loss(output[nodes], self.y[nodes]).item()

    def products(self) -> tuple[Callable[[], None], float]:
        """The matrix products of one epoch and nothing else, and how many GFLOP they are."""
        weights = [layer.weight.detach() for layer in self.network.channel_layers]
        V = self.network.output.weight.detach()
        n, hidden = len(self.y), weights[0].shape[0]
        H, G, E = torch.rand(n, V.shape[1]), torch.rand(n, hidden), torch.rand(n, V.shape[0])

        def run() -> None:
            for x, W in zip(self.inputs, weights, strict=True):
                F.linear(x, W)  # training
                G.T @ x
                F.linear(x, W)  # validation
                F.linear(x, W)  # test
            F.linear(H, V)
            E.T @ H
            E @ V
            F.linear(H, V)
            F.linear(H, V)

        return run, 2e-9 * n * (4 * sum(W.numel() for W in weights) + 5 * V.numel())


def fast_steps(channels: Channels, graph: pf.Graph, state: dict[str, Any], settings: pf.Settings) -> ChainSteps:
    split = graph.splits[0]
    train, val = (Labelled.of(channels, nodes, graph.labels) for nodes in (split.train, split.val))
    return ChainSteps(channels, state, train, val, loss_weights(train.labels, by_class=False), settings, seed=0)


def floor(steps: ChainSteps, graph: pf.Graph, peak: float, bandwidth: float) -> float:
    """Seconds that a step takes at least: its sums at the speed of sgemm, its weights at the speed of a copy."""
    layout, split = steps.layout, graph.splits[0]
    arrays, multiplied = steps.packed.arrays, 0
    for dense, rows, columns, first, _ in np.concatenate([arrays["forward"], arrays["back"]]):
        pointers = arrays["pointers"]
        multiplied += rows * columns if dense else int(pointers[first + rows] - pointers[first])
    head = layout.count * layout.classes * (3 * len(split.train) + len(split.val))  # forward, back, the gradient by V
    gflop = 2e-9 * layout.hidden * (multiplied + head)
    return float(gflop / peak + 24e-9 * steps.w.size / bandwidth)  # w, m and v are read and written


def alternate(blocks: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, float]:
    """Median CPU seconds per epoch; rivals take turns in blocks of epochs, and the first round does not count."""
    times: dict[str, list[float]] = {name: [] for name in blocks}
    for turn in range(rounds + 1):
        for name, (run, epochs) in blocks.items():
            for _ in range(epochs):
                start = time.process_time()
                run()
                if turn:
                    times[name].append(time.process_time() - start)
    return {name: median(taken) for name, taken in times.items()}


def epoch_rows(name: str, quick: bool) -> list[Row]:
    h, must, aim = EPOCHS[name]
    settings = pf.Settings()
    graph, channels = of_the_paper(name, h)
    plain = PlainLoop(channels, graph, settings)
    state = {key: value.numpy().copy() for key, value in plain.network.state_dict().items()}
    steps = fast_steps(channels, graph, state, settings)
    np.testing.assert_allclose(steps.losses[1], plain.loss(plain.val), rtol=1e-4)  # the same network
    epochs = itertools.count()

    products, gflop = plain.products()
    a, b, c = (np.ones((2048, 2048), np.float32) for _ in range(3))
    alone = seconds(
        {
            "peak": lambda: np.matmul(a, b, out=c),
            "products": products,
            "copy": lambda: np.copyto(steps.kept, steps.m),
        },
        repeats=3 if quick else 7,
    )
    peak, reached = 2e-9 * 2048**3 / alone["peak"], gflop / alone["products"]
    least = floor(steps, graph, peak, 2e-9 * steps.m.nbytes / alone["copy"])
    many = 20 if name == "texas" else 2
    taken = alternate(
        {"plain": (plain.epoch, many), "fast": (lambda: steps.step(next(epochs)), 5 * many)}, rounds=2 if quick else 7
    )
    gain, share, within = taken["plain"] / taken["fast"], reached / peak, alone["products"] / taken["plain"]
    what = f"{name}, type c, h={h}, {len(channels)} channels"
    good = verdict(gain >= must) + (", aim met" if gain >= aim else ", below the aim" if gain >= must else "")
    times = f"{1000 * taken['plain']:.1f} / {1000 * taken['fast']:.2f} ms"
    speed = f"{reached:.0f} of {peak:.0f} GFLOP/s = {100 * share:.0f} %"
    return [
        (f"{what}: plain / fast epoch", f"{gain:.1f}x ({times})", f">= {must}x, aim {aim}x", good),
        (
            "  fast epoch / its floor (sums at sgemm's speed, weights at a copy's)",
            f"{taken['fast'] / least:.1f}x",
            "",
            "",
        ),
        ("  products of the plain loop, of sgemm", f"{speed}", ">= 70 %", verdict(share >= 0.7)),
        ("  products in the plain epoch", f"{gflop:.1f} GFLOP, {100 * within:.0f} % of its time", "", ""),
    ]


def epochs(quick: bool) -> None:
    print("An epoch: a step on the training nodes and the loss of the validation nodes; one core, medians of CPU time")
    print("sgemm: 2048×2048×2048 float32 in NumPy, in turns with the plain loop's products\n")
    rows: list[Row] = []
    for name in EPOCHS:
        print(f"... {name}", file=sys.stderr, flush=True)
        rows += epoch_rows(name, quick)
    show(rows)


# ----------------------------------------------------------------------------- channels


def held(what: str) -> int:
    """VmRSS or VmHWM in bytes."""
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith(what)).split()[1])


def prepare(graph: pf.Graph, system: pf.FrameletSystem) -> Channels:
    return pf.make_channels(graph, system, kind="c", regime="heterophily", hops=3, scaling="none")


def channels(quick: bool) -> None:
    n = 10**5 if quick else 10**6
    small = pf.datasets.synthetic(0.3, n=1000, n_edges=5000, n_features=64, splits=0)
    prepare(small, pf.FrameletSystem(pf.build_tree(small, "matching", h=4))).materialize()  # compile
    graph = pf.datasets.synthetic(0.3, n=n, n_edges=5 * n, n_features=64, splits=0)
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=4))
    made = prepare(graph, system)
    size = made.memory()
    np.ones(int(1.4 * size), np.uint8)  # memory that this machine has not used yet is slow to come

    ctypes.CDLL(None).malloc_trim(0)  # else what was freed before is used again, and not seen
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = held("VmRSS")
    arrays = made.materialize()
    peak = held("VmHWM") - before
    new = sum(array.nbytes for array in arrays if not np.shares_memory(array, graph.features))
    del arrays

    S, X = hop_matrix(graph, "S").astype(np.float32), graph.features
    taken = seconds(
        {
            "products": lambda: S @ (S @ (S @ X)),
            "materialize": made.materialize,
            "all": lambda: prepare(graph, system).materialize(),
        },
        repeats=3 if quick else 2,
    )
    ratio, whole, over = (
        taken["materialize"] / taken["products"],
        taken["all"] / taken["products"],
        peak / new,
    )
    print(f"n = {n:,}, {graph.adjacency.nnz:,} arcs, d = 64 float32, tree by matching with h = 4, K = {system.K};")
    print(f"{len(made)} channels of type c, {size / 1e9:.2f} GB ({new / 1e9:.2f} GB without X, which is shared)\n")
    base = f"{taken['products']:.2f} s"
    show(
        [
            ("materialize, over three products S X (SciPy)", f"{ratio:.2f}x {base}", "<= 2.5x", verdict(ratio <= 2.5)),
            ("  with make_channels before it", f"{whole:.2f}x", "", ""),
            ("peak memory over the graph, of the channels without X", f"{over:.2f}x", "<= 1.3x", verdict(over <= 1.3)),
        ]
    )


# ------------------------------------------------------------------------------ batches


def batches(quick: bool) -> None:
    n, batch = (10**5, 4096) if quick else (10**6, 16_384)
    graph = pf.datasets.synthetic(0.3, n=n, n_edges=5 * n, n_features=64, splits=1)
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=4))
    small = pf.datasets.synthetic(0.3, n=1000, n_edges=5000, n_features=64, splits=1)
    made = prepare(small, pf.FrameletSystem(pf.build_tree(small, "matching", h=4)))
    pf.train(made, small.labels, small.splits, {"epochs": 1}, batch=batch)  # compile
    made = prepare(graph, system)
    kept = made.memory(format="rows")

    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    start = time.perf_counter()
    made.rows(np.zeros(1, np.int64))
    ready = time.perf_counter() - start
    result = pf.train(made, graph.labels, graph.splits, {"epochs": 1}, batch=batch)
    peak = held("VmHWM") - before
    rows, one = len(graph.splits[0].train), 4 * batch * sum(made.widths)
    print(f"n = {n:,}, {graph.adjacency.nnz:,} arcs, d = 64, {len(made)} channels of type c; {rows:,} training nodes")
    print(
        f"in batches of {batch:,} rows, plain engine, one core. All channels would take {made.memory() / 1e9:.2f} GB.\n"
    )
    show(
        [
            ("hops and scaling coefficients, made once", f"{ready:.1f} s, {kept / 1e9:.2f} GB", "", ""),
            ("one epoch, validation and test prediction", f"{result.runs[0].seconds:.1f} s CPU", "", ""),
            ("peak memory over the graph", f"{peak / 1e9:.2f} GB", "", ""),
            ("  what is above the kept part, in batches of all channels", f"{(peak - kept) / one:.1f}", "", ""),
        ]
    )


PARTS = {"epochs": epochs, "channels": channels, "batches": batches}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats")
    parser.add_argument("--part", choices=PARTS, help="one part only")
    asked = parser.parse_args()
    cores, code = os.sched_getaffinity(0), 0
    torch.set_num_threads(1)
    for name in [asked.part] if asked.part else PARTS:
        print(f"\n== {name}")
        pin()
        try:
            with threadpool_limits(limits=1):
                PARTS[name](asked.quick)
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            code = 2
        os.sched_setaffinity(0, cores)
    return code


if __name__ == "__main__":
    sys.exit(main())
