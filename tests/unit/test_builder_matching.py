"""The builder "matching"."""

import networkx as nx

import pegfan as pf
from support.graphs import graph_of


def test_matching_joins_the_heaviest_edges_first():
    graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]], [1.0, 5.0, 2.0, 4.0])
    tree = pf.build_tree(graph, "matching", h=2)
    pairs = {frozenset(tree.cluster_at(tree.K - 1, s).nodes.tolist()) for s in range(tree.n_clusters[-2])}
    assert {frozenset({1, 2}), frozenset({3, 4})} <= pairs


def test_leaves_of_a_star_are_gathered():
    graph = graph_of(nx.star_graph(100))
    tree = pf.build_tree(graph, "matching", h=4)
    assert tree.K <= 6
    assert tree.h <= 4
