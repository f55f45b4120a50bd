"""The full sweep of the promise: ten permutations, h = 4 and 8, every builder, nine real sets and random graphs."""

import numpy as np
import pytest

import pegfan as pf
from support.equivariance import check_equivariance

SETS = ["cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell", "actor", "chameleon", "squirrel"]
METHODS = list(pf.trees.BUILDERS)


@pytest.mark.parametrize("h", [4, 8])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SETS)
def test_real_graphs(data, name, method, h):
    graph = pf.datasets.load(name, root=data, offline=True)
    direction = "out" if graph.directed else "symmetric"
    check_equivariance(graph, method, h, {"direction": direction}, perms=range(10))


@pytest.mark.parametrize("h", [4, 8])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_synthetic_graphs(gamma, method, h):
    graph = pf.datasets.synthetic(gamma, n_features=20)
    check_equivariance(graph, method, h, {}, perms=range(10))


def test_a_million_nodes():
    graph = pf.datasets.synthetic(0.5, n=10**6, n_edges=5 * 10**6, n_features=4, splits=0)
    tree = pf.build_tree(graph, h=4)
    assert (tree.info["method"], tree.info["arbitrary"], tree.h) == ("matching", 0, 4)
    perm = np.random.default_rng(0).permutation(graph.n)
    assert pf.build_tree(graph.permute(perm), h=4) == tree.permute(perm)
