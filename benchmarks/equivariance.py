"""What it costs that results do not depend on how nodes are numbered.

    PEGFAN_DATA=folder python benchmarks/equivariance.py [--quick]

Ratios inside one run on one core, medians of CPU time: channels that are averaged over nodes that look alike beside
those that are not, and the canonical order (that of the tree's leaves) beside the order of the numbers. Channels of
type c on trees by Ward's method with h = 4.
"""

from __future__ import annotations

import argparse
import os
import sys

from threadpoolctl import threadpool_limits

import pegfan as pf
from measure import pin, seconds, show, verdict
from pegfan.channels import Channels
from pegfan.training.fast import ChainSteps
from pegfan.training.rows import Labelled, loss_weights

Row = tuple[str, str, str, str]

MOST_EPOCH, MOST_CHANNELS = 1.05, 2.0
"""What an epoch, and making all channels, may take in canonical order, in units of the order of the numbers."""


def steps_of(graph: pf.Graph, channels: Channels) -> ChainSteps:
    """The fast engine on the first split."""
    split, settings = graph.splits[0], pf.Settings()
    train, val = (Labelled.of(channels, nodes, graph.labels) for nodes in (split.train, split.val))
    state = pf.training.Network.draw(channels.widths, graph.n_classes, settings, seed=0).state
    return ChainSteps(channels, state, train, val, loss_weights(train.labels, by_class=False), settings, seed=0)


def epoch(steps: ChainSteps, count: int) -> None:
    for k in range(count):
        steps.step(k)


def compare(name: str, repeats: int) -> list[Row]:
    graph = pf.datasets.load(name, root=os.environ["PEGFAN_DATA"], offline=True)
    regime = "homophily" if name == "cora" else "heterophily"
    system = pf.FrameletSystem(pf.build_tree(graph, "ward", h=4, direction="out" if graph.directed else "symmetric"))

    def averaged() -> Channels:
        return pf.make_channels(graph, system, "c", regime)

    def as_they_are() -> Channels:
        return pf.make_channels(graph, system, "c", regime, average=False)

    def by_number() -> Channels:
        return Channels(list(as_they_are()))

    makers = {"averaged": averaged, "as they are": as_they_are, "by number": by_number}
    made = seconds({key: lambda make=make: make().materialize() for key, make in makers.items()}, repeats)
    ready = {key: steps_of(graph, make()) for key, make in makers.items()}
    taken = seconds({key: lambda fast=fast: epoch(fast, 20) for key, fast in ready.items()}, repeats)
    ways = (("channels", made, MOST_CHANNELS, 1e3), ("epoch", taken, MOST_EPOCH, 1e3 / 20))
    tied = averaged().info.get("averaged", 0)
    rows: list[Row] = [(f"{name}, {graph.n:,} nodes, {tied} of them look like another", "", "", "")]
    for what, times, most, unit in ways:
        order, mean = times["as they are"] / times["by number"], times["averaged"] / times["as they are"]
        told = f"{order:.2f}x ({unit * times['as they are']:.1f} / {unit * times['by number']:.1f} ms)"
        rows.append((f"  {what}: canonical order / order of numbers", told, f"<= {most}x", verdict(order <= most)))
        rows.append((f"  {what}: averaged / as they are", f"{mean:.2f}x", f"<= {most}x", verdict(mean <= most)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    if "PEGFAN_DATA" not in os.environ:
        print("PEGFAN_DATA is not set: it names the folder with the paper's data sets")
        return 2
    pin()
    with threadpool_limits(limits=1):
        rows = [row for name in ("chameleon", "squirrel", "cora") for row in compare(name, 3 if quick else 9)]
    show(rows)
    return int(any(row[3] == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
