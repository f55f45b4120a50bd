"""FrameletConv beside layers of PyG: an epoch of two layers with 64 columns, forward, backward and step.

    python benchmarks/layers.py [--quick]

Graphs come in shuffled batches, so that every batch is new and every graph is known; trees are built before. CPU
seconds on one core. PyG's layers take edge_index as ours do; on the large graph GCNConv also takes a sparse matrix.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import ChebConv, GATConv, GCNConv
from torch_geometric.utils import erdos_renyi_graph, to_torch_csr_tensor

from measure import pin, seconds, show, verdict
from pegfan.nn import FrameletConv

COLUMNS = 64


def epoch(model: torch.nn.ModuleList, batches: Iterable[Any], with_batch: bool) -> None:
    """Once through all batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for data in batches:
        h = data.x
        for layer in model:
            h = torch.relu(layer(h, data.edge_index, **({"batch": data.batch} if with_batch else {})))
        optimizer.zero_grad()
        h.square().mean().backward()
        optimizer.step()


def rivals(batches: Any) -> dict[str, Callable[[], None]]:
    """An epoch of each layer."""
    layers: dict[str, Any] = {
        "FrameletConv": FrameletConv,
        "FrameletConv, kind a": partial(FrameletConv, kind="a"),
        "GCNConv": GCNConv,
        "ChebConv, K = 3": partial(ChebConv, K=3),
        "GATConv": GATConv,
    }
    models = {name: torch.nn.ModuleList([make(COLUMNS, COLUMNS) for _ in range(2)]) for name, make in layers.items()}
    found = {name: partial(epoch, model, batches, "Framelet" in name) for name, model in models.items()}
    if isinstance(batches, list):
        other = [Data(x=data.x, edge_index=to_torch_csr_tensor(data.edge_index)) for data in batches]
        found["GCNConv, sparse"] = partial(epoch, models["GCNConv"], other, False)
    return found


def rows(what: str, batches: Any, repeats: int) -> list[tuple[str, str, str, str]]:
    """Times, and ratios to GCNConv."""
    calls = rivals(batches)
    start = time.process_time()
    calls["FrameletConv"]()
    first = time.process_time() - start
    taken = seconds(calls, repeats)
    found = [(what, f"the first epoch, with trees: {first:.2f} s", "", "")]
    for name, value in taken.items():
        ratio = value / taken["GCNConv"]
        bar = ("<= 1.5x", verdict(ratio <= 1.5)) if "Framelet" in name else ("", "")
        found.append((f"  {name}", f"{1000 * value:.0f} ms, {ratio:.2f}x GCNConv", *bar))
    return found


def main() -> None:
    """Many small graphs, and a large one."""
    pin()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    quick = "--quick" in sys.argv
    count, n = (128, 10_000) if quick else (640, 100_000)
    graphs = [Data(x=torch.randn(50, COLUMNS), edge_index=erdos_renyi_graph(50, 0.1)) for _ in range(count)]
    small = DataLoader(graphs, batch_size=64, shuffle=True)
    table = rows(f"{count} graphs of 50 nodes, batches of 64", small, 5)
    edges = torch.randint(n, (2, 5 * n))
    large = [Data(x=torch.randn(n, COLUMNS), edge_index=torch.cat([edges, edges.flip(0)], dim=1), batch=None)]
    show(table + rows(f"one graph of {n:,} nodes, {10 * n:,} arcs", large, 2))


if __name__ == "__main__":
    main()
