"""A tree in pieces, for tests that kill it: ``python large_run.py OUTPUT FOLDER [DASK]``."""

import sys
from contextlib import ExitStack

import numpy as np

import pegfan as pf
from pegfan.large import order, tree
from pegfan.large.arcs import ordered
from pegfan.large.dask import DaskCluster
from pegfan.large.given import cut
from pegfan.large.pieces import Work


def graph_of(n=6_000, degree=6, seed=3):
    """A graph with hubs, for which a canonical order takes a few rounds."""
    rng = np.random.default_rng(seed)
    edges = (n * rng.random((n * degree // 2, 2)) ** [1, 2]).astype(int)
    return pf.Graph.from_edges(edges, n=n)


def main(output, folder, *dask):
    graph = graph_of()
    with ExitStack() as stack:
        cluster = stack.enter_context(DaskCluster(workers=2)) if dask else None
        work = stack.enter_context(Work(folder, memory=600_000, workers=2, cluster=cluster))
        arcs, _ = cut(work, graph, 4_000)
        found = order.canonical_order(work, arcs)
        moved = ordered(work, arcs, found)
        tree.load_tree(tree.build_tree(work, moved, found)).save(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
