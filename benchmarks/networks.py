"""Graph networks: an epoch beside the same network of PyG's own layers, and beside one in plain torch.

    PEGFAN_DATA=folder python benchmarks/networks.py [--quick] [--graph NAME] [--model NAME] [--deep]

An epoch is a training step on the training nodes and a forward pass for the validation loss: one loop for all, dropout
a half, Adam (fused). Every way is tried in a process of its own first, which gives its peak memory and whether its
outputs are ours; then ours, the fastest of PyG's ways and the fastest plain one take turns in this process on one core.

PyG's layers (GCNConv, SAGEConv, GATConv, MixHopConv and GCN2Conv; what they can keep is kept, self loops are added
beforehand) are tried with an `edge_index` and with a sparse CSR adjacency, on sparse CSR x and on dense x. The plain
network is the equations in torch, with sparse CSR matrices, on the same two kinds of x. Dense x of more than 1 GB is
tried only where sparse x is not taken. A process that needs more than 12 GB over what its imports take is out of
memory. MixHop has 63 hidden columns, since PyG gives all powers as many.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional as F

from measure import pin, seconds, show, verdict

Row = tuple[str, str, str, str]

GRAPHS = ("chameleon", "dblp", "deezer_europe")
MODELS = ("gcn", "sage", "gat", "mixhop", "gcnii")
HIDDEN, HEADS, RATE, ALPHA, LAMDA = 64, 8, 0.5, 0.5, 0.5
POWER = HIDDEN // 3
"""The columns of one of MixHop's three powers: PyG's layer has as many for each."""
WAYS = ("ours", "pyg-edges-sparse", "pyg-csr-sparse", "plain-sparse", "pyg-edges-dense", "pyg-csr-dense", "plain-dense")
LIMIT, PATIENCE = 12e9, 120
"""Bytes and CPU seconds that a way may take when it is tried."""
LARGE = 1e9
"""Bytes of dense x from which on it is tried only where sparse x is not taken."""
AIM = 3.0


# ----------------------------------------------------------------------------- the data


def prepare(name: str, place: Path) -> str:
    """Write what networks see of a graph; a line about it."""
    import pegfan as pf
    from pegfan.training.networks import inputs_of

    root = Path(os.environ["PEGFAN_DATA"])
    known = name == "chameleon"
    graph = pf.datasets.load(name, root=root, offline=True) if known else pf.read_graph(root / "graphs" / f"{name}.npz")
    inputs = inputs_of(graph, "symmetric", "columns")
    x, edges, split = inputs.x.scipy(), inputs.edges.matrix, graph.splits[0]
    train, val = (np.sort(inputs.places[part]) for part in (split.train, split.val))
    parts = {
        f"{key}_{part}": getattr(m, part)
        for key, m in (("x", x), ("a", edges))
        for part in ("data", "indices", "indptr")
    }
    np.savez(place, **parts, shape=x.shape, y=np.asarray(graph.labels)[inputs.order], train=train, val=val)
    size = f"{x.nnz:,} nonzeros in {x.shape[1]:,} features"
    return f"{name}: {graph.n:,} nodes, {edges.nnz:,} arcs, {size}, {graph.n_classes} classes"


class Data:
    """A graph as it was written."""

    def __init__(self, place: str) -> None:
        file = np.load(place)
        n = int(file["shape"][0])
        self.x = csr_array((file["x_data"], file["x_indices"], file["x_indptr"]), shape=tuple(file["shape"]))
        self.a = csr_array((file["a_data"], file["a_indices"], file["a_indptr"]), shape=(n, n))
        self.y, self.train, self.val = (torch.from_numpy(file[key]) for key in ("y", "train", "val"))
        self.features, self.classes = int(file["shape"][1]), int(self.y.max()) + 1

    def dense(self) -> Tensor:
        if not hasattr(self, "_dense"):
            self._dense = torch.from_numpy(self.x.toarray())
        return self._dense

    def sparse(self) -> Tensor:
        return as_csr(self.x)

    def with_loops(self) -> csr_array:
        missing = np.flatnonzero(self.a.diagonal() == 0)
        loops = csr_array((np.ones(len(missing)), (missing, missing)), shape=self.a.shape)
        return csr_array(self.a + loops)


def as_csr(matrix: csr_array) -> Tensor:
    parts = (torch.from_numpy(np.asarray(part)) for part in (matrix.indptr, matrix.indices, matrix.data))
    crow, col, values = parts
    return torch.sparse_csr_tensor(crow.long(), col.long(), values.float(), size=matrix.shape)


def normalized(matrix: csr_array) -> csr_array:
    """D^(-1/2) M D^(-1/2)."""
    root = 1 / np.sqrt(np.maximum(np.asarray(matrix.sum(axis=1)).reshape(-1), 1e-12))
    coo = matrix.tocoo()
    return csr_array((coo.data * root[coo.row] * root[coo.col], (coo.row, coo.col)), shape=matrix.shape)


def drop(x: Tensor, training: bool) -> Tensor:
    """Dropout of dense or sparse x."""
    if x.layout == torch.strided:
        return F.dropout(x, RATE, training)
    if not training:
        return x
    values = F.dropout(x.values(), RATE)
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, size=x.shape)


def unit_rows(x: Tensor) -> Tensor:
    """Rows of x, dense or sparse, divided by their norms."""
    if x.layout == torch.strided:
        return F.normalize(x, dim=1)
    counts = x.crow_indices().diff()
    rows = torch.repeat_interleave(torch.arange(x.shape[0]), counts)
    squares = torch.zeros(x.shape[0]).index_add(0, rows, x.values() ** 2)
    values = x.values() / squares.sqrt().clamp_min(1e-12)[rows]
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, size=x.shape)


# ------------------------------------------------------------------------------- rivals


def ours(model: str, data: Data, deep: bool) -> tuple[nn.Module, tuple[Any, ...]]:
    """The network as `pegfan.NetworkClassifier` trains it."""
    from pegfan import models
    from pegfan.models import Neighbours, Sparse

    sizes = (data.features, data.classes)
    inputs = (Sparse(data.x.astype(np.float32)), Neighbours(data.a))
    network: nn.Module
    if model == "gcn":
        network = models.GCN(*sizes, HIDDEN, 2, RATE)
    elif model == "sage":
        network = models.GraphSAGE(*sizes, HIDDEN, 2, RATE)
    elif model == "gat":
        network = models.GAT(*sizes, HIDDEN, 2, RATE, heads=HEADS)
    elif model == "mixhop":
        network = models.MixHop(*sizes, 3 * POWER, 2, RATE, RATE)
    else:
        network = models.GCNII(*sizes, HIDDEN, depth(deep), RATE, ALPHA, LAMDA)
    return network, inputs


def depth(deep: bool) -> int:
    return 64 if deep else 8


class OfLayers(nn.Module):
    """The five networks, of PyG's layers."""

    def __init__(self, model: str, data: Data, deep: bool, normalize: bool) -> None:
        from torch_geometric import nn as pyg

        super().__init__()
        d, c = data.features, data.classes
        self.model = model
        if model == "gcn":
            kept = {"cached": normalize, "normalize": normalize}
            layers = [pyg.GCNConv(d, HIDDEN, **kept), pyg.GCNConv(HIDDEN, c, **kept)]
        elif model == "sage":
            layers = [pyg.SAGEConv(d, HIDDEN), pyg.SAGEConv(HIDDEN, c)]
        elif model == "gat":
            kept = {"dropout": RATE, "add_self_loops": False}
            layers = [pyg.GATConv(d, HIDDEN // HEADS, HEADS, **kept), pyg.GATConv(HIDDEN, c, 1, concat=False, **kept)]
        elif model == "mixhop":
            kept = {"powers": [0, 1, 2], "add_self_loops": False, "bias": False}
            layers = [pyg.MixHopConv(d, POWER, **kept), pyg.MixHopConv(3 * POWER, c, **kept)]
            self.norm = nn.BatchNorm1d(3 * POWER, eps=1e-3, affine=False)
            self.shift, self.q = nn.Parameter(torch.zeros(3 * POWER)), nn.Parameter(torch.zeros(3))
        else:
            self.first, self.output = nn.Linear(d, HIDDEN), nn.Linear(HIDDEN, c)
            kept = {"theta": LAMDA, "shared_weights": False, "cached": normalize, "normalize": normalize}
            layers = [pyg.GCN2Conv(HIDDEN, ALPHA, layer=i + 1, **kept) for i in range(depth(deep))]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        x = drop(x, self.training)
        if self.model == "gcnii":
            first = F.relu(F.linear(x, self.first.weight, self.first.bias) if is_dense(x) else times(x, self.first))
            h = drop(first, self.training)
            for layer in self.layers:
                h = drop(F.relu(layer(h, first, edges)), self.training)
            return F.log_softmax(self.output(h), dim=-1)
        one, two = self.layers
        if self.model == "mixhop":
            h = drop(F.relu(self.norm(one(unit_rows(x), edges)) + self.shift), self.training)
            outputs = two(h, edges).view(len(h), 3, -1)
            return F.log_softmax(torch.einsum("k,nkc->nc", torch.softmax(self.q, 0), outputs), dim=-1)
        h = one(x, edges)
        h = drop(F.elu(h) if self.model == "gat" else F.relu(h), self.training)
        return F.log_softmax(two(h, edges), dim=-1)


def is_dense(x: Tensor) -> bool:
    return x.layout == torch.strided


def times(x: Tensor, layer: nn.Linear) -> Tensor:
    return torch.sparse.mm(x, layer.weight.t()) + layer.bias


def pyg(model: str, data: Data, way: str, deep: bool) -> tuple[nn.Module, tuple[Any, ...]]:
    """PyG's network, with its inputs."""
    x = data.dense() if way.endswith("dense") else data.sparse()
    by_layer = "edges" in way and model in ("gcn", "gcnii")  # with CSR, PyG would add a second self loop to one
    matrix = data.a if by_layer or model == "sage" else data.with_loops()
    edges: Any
    if "csr" in way:
        edges = as_csr(normalized(matrix) if model in ("gcn", "gcnii") else matrix)
    else:
        coo = matrix.tocoo()
        edges = torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64))
    return OfLayers(model, data, deep, by_layer), (x, edges)


class Plain(nn.Module):
    """The five networks as one writes their equations in torch."""

    def __init__(self, model: str, data: Data, deep: bool) -> None:
        super().__init__()
        d, c, self.model = data.features, data.classes, model
        self.p = as_csr(normalized(data.with_loops()))
        sizes = {"gcn": [(d, HIDDEN), (HIDDEN, c)], "gat": [(d, HIDDEN), (HIDDEN, c)]}
        sizes["sage"] = [(d, HIDDEN), (d, HIDDEN), (HIDDEN, c), (HIDDEN, c)]
        sizes["mixhop"] = [(d, POWER)] * 3 + [(3 * POWER, c)] * 3
        sizes["gcnii"] = [(d, HIDDEN), (HIDDEN, c)]
        self.weights = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in sizes[model])
        self.biases = nn.ParameterList(torch.zeros(b) for b in (HIDDEN, c))
        if model == "sage":
            sums = np.asarray(data.a.sum(axis=1)).reshape(-1)
            coo = data.a.tocoo()
            self.p = as_csr(csr_array((coo.data / sums[coo.row], (coo.row, coo.col)), shape=data.a.shape))
        elif model == "gat":
            coo = data.with_loops().tocoo()
            self.i, self.j = (torch.from_numpy(part.astype(np.int64)) for part in (coo.row, coo.col))
            shapes = ((HEADS, HIDDEN // HEADS), (HEADS, HIDDEN // HEADS), (1, c), (1, c))
            self.scores = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(shape)) for shape in shapes)
        elif model == "mixhop":
            self.norm = nn.BatchNorm1d(3 * POWER, eps=1e-3, affine=False)
            self.shift, self.q = nn.Parameter(torch.zeros(3 * POWER)), nn.Parameter(torch.zeros(3))
        elif model == "gcnii":
            self.inner = nn.Parameter(torch.empty(depth(deep), 2, HIDDEN, HIDDEN))
            nn.init.uniform_(self.inner, -1 / math.sqrt(HIDDEN), 1 / math.sqrt(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        x = drop(x, self.training)
        W, b = self.weights, self.biases
        if self.model == "gcn":
            h = drop(F.relu(self.p @ (x @ W[0]) + b[0]), self.training)
            return F.log_softmax(self.p @ (h @ W[1]) + b[1], dim=-1)
        if self.model == "sage":
            h = drop(F.relu(x @ W[0] + self.p @ (x @ W[1]) + b[0]), self.training)
            return F.log_softmax(h @ W[2] + self.p @ (h @ W[3]) + b[1], dim=-1)
        if self.model == "gat":
            h = drop(F.elu(self.attend(x @ W[0], *self.scores[:2]).flatten(1) + b[0]), self.training)
            return F.log_softmax(self.attend(h @ W[1], *self.scores[2:])[:, 0] + b[1], dim=-1)
        if self.model == "mixhop":
            h = torch.cat(self.mix(unit_rows(x), W[:3]), dim=1)
            h = drop(F.relu(self.norm(h) + self.shift), self.training)
            q = torch.softmax(self.q, 0)
            return F.log_softmax(sum(a * y for a, y in zip(q, self.mix(h, W[3:]), strict=True)), dim=-1)
        first = F.relu(x @ W[0] + b[0])
        h = drop(first, self.training)
        for k, (around, own) in enumerate(self.inner):
            beta = math.log(LAMDA / (k + 1) + 1)
            r, s = (1 - ALPHA) * (self.p @ h), ALPHA * first
            h = (1 - beta) * (r + s) + beta * (r @ around + s @ own)
            h = drop(F.relu(h), self.training)
        return F.log_softmax(h @ W[1] + b[1], dim=-1)

    def mix(self, x: Tensor, weights: Any) -> list[Tensor]:
        return [x @ weights[0], self.p @ (x @ weights[1]), self.p @ (self.p @ (x @ weights[2]))]

    def attend(self, z: Tensor, source: Tensor, target: Tensor) -> Tensor:
        z = z.view(len(z), len(source), -1)
        e = F.leaky_relu((z * source).sum(2)[self.j] + (z * target).sum(2)[self.i], 0.2)
        top = torch.full_like(z[:, :, 0], -torch.inf).index_reduce(0, self.i, e.detach(), "amax")
        e = torch.exp(e - top[self.i])
        e = e / torch.zeros_like(top).index_add(0, self.i, e)[self.i]
        return torch.zeros_like(z).index_add(0, self.i, F.dropout(e, RATE, self.training)[:, :, None] * z[self.j])


def plain(model: str, data: Data, way: str, deep: bool) -> tuple[nn.Module, tuple[Any, ...]]:
    """The plain network, with its input."""
    return Plain(model, data, deep), (data.dense() if way.endswith("dense") else data.sparse(),)


def make(model: str, data: Data, way: str, deep: bool) -> tuple[nn.Module, tuple[Any, ...]]:
    """A network and its inputs; weights are those that our network draws first."""
    torch.manual_seed(0)
    if way == "ours":
        return ours(model, data, deep)
    return (pyg if way.startswith("pyg") else plain)(model, data, way, deep)


def take_weights(network: Any, way: str, mine: dict[str, Tensor]) -> None:
    """Give a rival our weights."""
    model = network.model
    with torch.no_grad():
        if way.startswith("pyg"):
            names = {
                "gcn": {
                    f"layers.{i}.{a}": f"layers.{i}.{b}"
                    for i in (0, 1)
                    for a, b in (("lin.weight", "weight"), ("bias", "bias"))
                },
                "sage": {
                    f"layers.{i}.{a}": b.format(i)
                    for i in (0, 1)
                    for a, b in (
                        ("lin_l.weight", "around.{}.weight"),
                        ("lin_l.bias", "around.{}.bias"),
                        ("lin_r.weight", "own.{}.weight"),
                    )
                },
                "gat": {
                    f"layers.{i}.{a}": f"layers.{i}.{b}"
                    for i in (0, 1)
                    for a, b in (
                        ("lin.weight", "weight.weight"),
                        ("att_src", "source"),
                        ("att_dst", "target"),
                        ("bias", "bias"),
                    )
                },
                "mixhop": {
                    f"layers.{i}.lins.{k}.weight": f"{part}.powers.{k}.weight"
                    for i, part in enumerate(("first", "output"))
                    for k in range(3)
                },
                "gcnii": {
                    f"{part}.{what}": f"{part}.{what}" for part in ("first", "output") for what in ("weight", "bias")
                },
            }[model]
            state = dict(network.named_parameters())
            for name, source in names.items():
                state[name].copy_(mine[source].view(state[name].shape))
            if model == "gcnii":
                for layer, pair in zip(network.layers, mine["weights"], strict=True):
                    layer.weight1.copy_(pair[0])
                    layer.weight2.copy_(pair[1])
            return
        names = {
            "gcn": ["layers.0.weight", "layers.1.weight"],
            "gat": ["layers.0.weight.weight", "layers.1.weight.weight"],
            "sage": ["own.0.weight", "around.0.weight", "own.1.weight", "around.1.weight"],
            "mixhop": [f"{part}.powers.{k}.weight" for part in ("first", "output") for k in range(3)],
            "gcnii": ["first.weight", "output.weight"],
        }[model]
        for weight, source in zip(network.weights, names, strict=True):
            weight.copy_(mine[source].t())
        if model == "gat":
            for score, source in zip(network.scores, ("0.source", "0.target", "1.source", "1.target"), strict=True):
                score.copy_(mine[f"layers.{source}"])
        if model == "gcnii":
            network.inner.copy_(mine["weights"])


class Loop:
    """Epochs of a network: the same loop for all."""

    def __init__(self, network: nn.Module, inputs: tuple[Any, ...], data: Data) -> None:
        self.network, self.inputs, self.data = network, inputs, data
        self.optimizer = torch.optim.Adam(network.parameters(), 0.01, weight_decay=5e-4, fused=True)

    def epoch(self) -> float:
        self.network.train()
        self.optimizer.zero_grad()
        output = self.network(*self.inputs)[self.data.train]
        F.nll_loss(output, self.data.y[self.data.train]).backward()
        self.optimizer.step()
        self.network.eval()
        with torch.no_grad():
            output = self.network(*self.inputs)[self.data.val]
            return float(F.nll_loss(output, self.data.y[self.data.val]))

    def outputs(self) -> Tensor:
        self.network.eval()
        with torch.no_grad():
            return self.network(*self.inputs)


# ------------------------------------------------------------------------------- probes


def status(what: str) -> float:
    """VmHWM, VmRSS or VmSize, in bytes."""
    with open("/proc/self/status") as lines:
        return 1024.0 * int(next(line for line in lines if line.startswith(what)).split()[1])


def probe(model: str, way: str, place: str, weights: str, deep: bool, budget: float) -> dict[str, Any]:
    """Some epochs of one way in this process: seconds of one, peak memory, and outputs with our weights."""
    if way.startswith("pyg"):
        import torch_geometric.nn  # noqa: F401
    elif way == "ours":
        import pegfan.models  # noqa: F401
    imported = status("VmRSS")
    limit = int(LIMIT + status("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
    data = Data(place)
    network, inputs = make(model, data, way, deep)
    if way == "ours":
        torch.save(network.state_dict(), weights)
    else:
        take_weights(network, way, torch.load(weights, weights_only=True))
    loop = Loop(network, inputs, data)
    first = loop.outputs().numpy()
    loop.epoch()
    times: list[float] = []
    while len(times) < 2 or (sum(times) < budget and len(times) < 20):
        start = time.process_time()
        loop.epoch()
        times.append(time.process_time() - start)
    peak = status("VmHWM")
    np.save(f"{weights}.{way}.npy", first)
    return {"seconds": min(times), "peak": peak, "over": peak - imported}


def ask(model: str, way: str, place: str, weights: str, deep: bool, budget: float) -> dict[str, Any]:
    """A probe in a process of its own."""
    words = [sys.executable, __file__, "--probe", way, "--model", model, "--file", place, "--weights", weights]
    words += ["--budget", str(budget), *(["--deep"] if deep else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"error": f"three epochs take more than {PATIENCE} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        full = any(word in done.stderr for word in ("not enough memory", "MemoryError", "can't allocate", "bad_alloc"))
        told = [line for line in lines if re.match(r"\w*Error\b", line)] or lines
        return {"error": "out of memory" if full else told[-1].partition(". ")[0][:90]}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------- table


def compare(model: str, data: Data, place: str, deep: bool, quick: bool) -> list[Row]:
    """Ours beside the rivals, on one graph."""
    label = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT", "mixhop": "MixHop", "gcnii": f"GCNII-{depth(deep)}"}[
        model
    ]
    large = 4 * data.x.shape[0] * data.x.shape[1] > LARGE
    with tempfile.TemporaryDirectory() as folder:
        weights = f"{folder}/weights"
        found: dict[str, dict[str, Any]] = {}
        for way in WAYS:
            print(f"... {label}, {way}", end="", file=sys.stderr, flush=True)
            twin = found.get(way.replace("dense", "sparse"), {"error": ""})
            if way.endswith("dense") and large and "error" not in twin:
                found[way] = {"error": "not tried: sparse x is taken"}
            else:
                found[way] = ask(model, way, place, weights, deep, 0.5 if quick else 1.5)
            print(f": {found[way]}", file=sys.stderr, flush=True)
        if "error" in found["ours"]:
            raise RuntimeError(found["ours"]["error"])
        mine = np.load(f"{weights}.ours.npy")
        for way in WAYS:
            if "error" not in found[way]:
                np.testing.assert_allclose(np.load(f"{weights}.{way}.npy"), mine, rtol=1e-3, atol=1e-4, err_msg=way)
    able = [way for way in WAYS if "error" not in found[way]]
    best = {
        kind: min((w for w in able if w.startswith(kind)), key=lambda w: found[w]["seconds"], default=None)
        for kind in ("pyg", "plain")
    }
    raced = ["ours", *(way for way in best.values() if way)]
    loops = {way: Loop(*make(model, data, way, deep), data) for way in raced}
    slowest = max(found[way]["seconds"] for way in raced)
    repeats = max(3, min(5 if quick else 15, int(20 / slowest)))
    taken = seconds({way: loop.epoch for way, loop in loops.items()}, repeats)
    my = 1000 * taken["ours"]
    rows: list[Row] = []
    for kind, name in (("pyg", "PyG"), ("plain", "plain torch")):
        way = best[kind]
        if way is None:
            rows.append((f"{label}: {name} / ours", f"none of its ways / {my:.1f} ms", "", ""))
            continue
        gain = taken[way] / taken["ours"]
        told = f"{gain:.2f}x ({1000 * taken[way]:.1f} / {my:.1f} ms), {short(way)}"
        bar, word = ("", "") if kind == "plain" else (f">= 1x, aim {AIM:.0f}x", judged(gain))
        rows.append((f"{label}: {name} / ours", told, bar, word))
    rows += memory_rows(label, found, best)
    return rows


def judged(gain: float) -> str:
    return verdict(gain >= 1) + (", aim met" if gain >= AIM else ", below the aim" if gain >= 1 else "")


def memory_rows(label: str, found: dict[str, Any], best: dict[str, Any]) -> list[Row]:
    """Peak memory of a process: ours, PyG's fastest way and its leanest."""
    own, peaks = found["ours"], {}
    for way in WAYS:
        if way.startswith("pyg") and "error" not in found[way]:
            peaks[way] = found[way]["peak"]
    mine = f"{own['peak'] / 1e9:.2f}"
    over = f"; over imports {{:.2f}} / {own['over'] / 1e9:.2f}"
    rows: list[Row] = []
    for name, way in (
        ("", best["pyg"]),
        (", the leanest of PyG", min(peaks, key=lambda way: peaks[way], default=None)),
    ):
        if way is not None:
            told = f"{peaks[way] / own['peak']:.2f}x ({peaks[way] / 1e9:.2f} / {mine} GB" + over.format(
                found[way]["over"] / 1e9
            )
            rows.append((f"  memory{name}", f"{told}), {short(way)}", ">= 1x", verdict(peaks[way] >= own["peak"])))
    if not rows:
        rows.append(("  memory", f"{mine} GB", "", ""))
    failed = (
        way
        for way in WAYS
        if way.startswith("pyg") and "error" in found[way] and "not tried" not in found[way]["error"]
    )
    return rows + [(f"  PyG, {short(way)}", found[way]["error"], "", "") for way in failed]


def short(way: str) -> str:
    """A way without whose it is: edges or adjacency, and x."""
    return way.partition("-")[2].replace("-", ", ") + " x"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--graph", choices=GRAPHS, action="append", help="only these graphs")
    parser.add_argument("--model", choices=MODELS, action="append", help="only these networks")
    parser.add_argument("--deep", action="store_true", help="GCNII of 64 layers, not 8")
    for name in ("probe", "file", "weights", "budget"):  # of the processes that this one starts
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pin()
    if given.probe:
        found = probe(given.model[0], given.probe, given.file, given.weights, given.deep, float(given.budget))
        print(json.dumps(found))
        return 0
    if "PEGFAN_DATA" not in os.environ:
        print("PEGFAN_DATA is not set: it names the folder with the data sets")
        return 2
    print("An epoch: a training step and a forward pass for validation; one core, medians of CPU time.")
    print(f"Hidden 64, two layers (MixHop: {3 * POWER}; GAT: {HEADS} heads; GCNII: {depth(given.deep)} layers).")
    print("Behind the numbers: which of its ways was the fastest, or the leanest.")
    missed = False
    for name in given.graph or GRAPHS:
        with tempfile.TemporaryDirectory() as folder:
            place = f"{folder}/{name}.npz"
            code = f"from pathlib import Path; import networks; print(networks.prepare({name!r}, Path({place!r})))"
            done = subprocess.run(
                [sys.executable, "-c", code], env=beside(), check=True, capture_output=True, text=True
            )
            print(f"\n{done.stdout.strip().splitlines()[-1]}\n", flush=True)
            data = Data(place)
            found = [compare(model, data, place, given.deep, given.quick) for model in given.model or MODELS]
        rows = [row for own in found for row in own]
        show(rows)
        missed |= any(row[3].startswith("MISSED") for row in rows)
    return int(missed)


def beside() -> dict[str, str]:
    """An environment in which this file can be imported."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


if __name__ == "__main__":
    sys.exit(main())
