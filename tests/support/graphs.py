"""Graphs that tests of trees start from."""

import networkx as nx
import numpy as np

import pegfan as pf


def graph_of(nx_graph, **attributes):
    plain = nx.convert_node_labels_to_integers(nx_graph)
    for _, data in plain.nodes(data=True):
        data.clear()
    return pf.Graph.from_networkx(plain).replace(node_names=None, **attributes)


def random_graph(seed, n=60, degree=3.0, features=True, directed=False, weighted=False):
    rng = np.random.default_rng(seed)
    m = int(n * degree / 2)
    edges = rng.integers(n, size=(m, 2))
    weights = rng.uniform(0.5, 2.0, m) if weighted else None
    X = rng.standard_normal((n, 3)).round(2) if features else None
    return pf.Graph.from_edges(edges, weights, n=n, directed=directed, features=X)
