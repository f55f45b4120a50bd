"""One run of a graph beyond memory, to be measured from outside: what each part took, as a line of JSON.

    python benchmarks/_stages.py FOLDER WORK --memory 2GB [--train OUT] [--budget 3000]
    python benchmarks/_stages.py FOLDER WORK --in-memory

Both read, build the tree (h = 8) and make the channels of type b (three hops of S, and the tree's scales); the second
with the parts of the package that hold everything in memory. The digests that both print are those of the tree and of
all channels at 10,000 nodes, spread evenly.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

import pegfan as pf
from pegfan.running import Step

RECIPE = pf.Recipe(method="matching", h=8, kind="b", regime="heterophily", hops=3, scaling="none")
SHOWN = 10_000


class Clock:
    """Seconds per part."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.begun = self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.parts[name] = round(now - self.last, 2)
        self.last = now


def digest_of_tree(tree: pf.Hierarchy) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in (*tree.parents, tree.order):
        digest.update(np.ascontiguousarray(part, np.int64).tobytes())
    return digest.hexdigest()


def digest_of_rows(rows: list[Any]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in rows:
        values = np.ascontiguousarray(part if isinstance(part, np.ndarray) else part.toarray(), np.float32)
        digest.update((values + np.float32(0)).tobytes())  # + 0: no negative zero
    return digest.hexdigest()


def shown(n: int) -> Any:
    return np.unique(np.linspace(0, n - 1, SHOWN).astype(np.int64))


def in_pieces(given: argparse.Namespace) -> dict[str, Any]:
    """Everything in pieces."""
    said = [""]

    def progress(step: Step) -> None:
        text = str(step).split(": block")[0].split(",")[0]
        if given.verbose and text != said[0]:
            said[0] = text
            print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    clock, files = Clock(), [str(Path(given.folder) / f"{what}-*") for what in ("nodes", "edges")]
    found: dict[str, Any] = {}
    with pf.large.open(*files, label="label", memory=given.memory, work=given.work, progress=progress) as graph:
        arcs = sum(one["arcs"] for one in graph.arcs.results)
        clock.lap("ids and edges")
        assert graph.tables.features is not None
        graph.tables.features.run()
        clock.lap("features")
        graph.ordered(graph.order)
        clock.lap("order")
        tree = graph.tree_stage(RECIPE.h).run()
        clock.lap("tree")
        found |= {"nodes": graph.n, "arcs": arcs, "K": tree.result()["K"]}
        if not given.no_channels:
            channels = graph.channels(RECIPE)
            nodes = shown(graph.n)
            found["rows"] = digest_of_rows(channels.rows(channels.places_of(nodes)))
            clock.lap("channels")
        if not given.no_channels:
            found["tree"] = digest_of_tree(graph.tree(h=RECIPE.h))
        if given.train:
            result = graph.train(budget=given.budget)
            clock.lap("training")
            result.write(Path(given.train), graph.ids)
            clock.lap("predictions")
            found |= {"test": result.test_metric, "recipes": [str(one) for one in result.model.ran_]}
    return found | {"seconds": clock.parts, "all": round(time.perf_counter() - clock.begun, 2)}


def in_memory(given: argparse.Namespace) -> dict[str, Any]:
    """Everything in memory."""
    import pandas as pd

    clock = Clock()
    tables = [
        pd.concat([pd.read_parquet(path) for path in sorted(Path(given.folder).glob(f"{what}-*.parquet"))])
        for what in ("nodes", "edges")
    ]
    graph = pf.datasets.graph_from_tables(*tables, label="label")
    del tables
    clock.lap("ids and edges")
    pf.trees.canonical_order(graph)
    clock.lap("order")
    tree = RECIPE.build_tree(graph)
    assert tree is not None
    clock.lap("tree")
    channels = pf.make_channels(graph, pf.FrameletSystem(tree), kind="b", regime="heterophily", hops=3, scaling="none")
    rows = digest_of_rows(channels.rows(shown(graph.n)))
    clock.lap("channels")
    found = {"nodes": graph.n, "arcs": graph.adjacency.nnz, "K": tree.K, "tree": digest_of_tree(tree), "rows": rows}
    return found | {"seconds": clock.parts, "all": round(time.perf_counter() - clock.begun, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("work")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--no-channels", action="store_true")
    parser.add_argument("--train", metavar="OUT")
    parser.add_argument("--budget", type=float, default=3000.0)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    found = in_memory(given) if given.in_memory else in_pieces(given)
    found["resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main()
