"""Where nodes are drawn."""

import numpy as np
import pytest
from hypothesis import given

import pegfan as pf
from pegfan import layouts
from support.strategies import trees


@given(trees())
def test_boxes_lie_inside_their_parents_and_apart(tree):
    levels = layouts.nested_boxes(tree)
    assert [len(boxes) for boxes in levels] == list(tree.n_clusters)
    for level in range(1, tree.K):
        parent, child = levels[level - 1][tree.parent(level)], levels[level]
        assert (child[:, :2] >= parent[:, :2] - 1e-9).all()
        assert (child[:, 2:] <= parent[:, 2:] + 1e-9).all()
        assert (child[:, 2:] > child[:, :2]).all()
        overlap = np.minimum(child[:, None, 2:], child[None, :, 2:]) - np.maximum(
            child[:, None, :2], child[None, :, :2]
        )
        apart = (overlap <= 1e-9).any(axis=2)
        assert apart[~np.eye(len(child), dtype=bool)].all()


def test_springs_bring_linked_nodes_together():
    cliques = np.kron(np.eye(2), np.ones((10, 10))) - np.eye(20)
    order = np.random.default_rng(0).permutation(20)
    links = pf.Graph(cliques[order][:, order]).adjacency
    xy = layouts.springs(links, layouts.spiral(20))
    distance = np.linalg.norm(xy[:, None] - xy, axis=2)
    linked = links.toarray() > 0
    assert distance[linked].mean() < 0.6 * distance[~linked & ~np.eye(20, dtype=bool)].mean()
    assert np.linalg.norm(xy, axis=1).max() <= 1 + 1e-6
    assert np.array_equal(xy, layouts.springs(links, layouts.spiral(20)))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_springs_of_next_to_nothing(n):
    xy = layouts.springs(pf.Graph(np.zeros((max(n, 1),) * 2)).adjacency[:n, :n], layouts.spiral(n))
    assert xy.shape == (n, 2)
    assert np.isfinite(xy).all()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_hilbert_curve_visits_all_points_in_single_steps(k):
    points = layouts._hilbert(np.arange(4**k), k)
    assert len(np.unique(points, axis=0)) == 4**k
    assert (np.abs(np.diff(points, axis=0)).sum(axis=1) == 1).all()


def test_the_mosaic_keeps_clusters_together():
    rng = np.random.default_rng(0)
    graph = pf.Graph.from_edges(rng.integers(0, 600, size=(2000, 2)), n=600)
    tree = pf.build_tree(graph, "matching", h=4)
    ground, positions = layouts.ground(graph, tree)
    assert ground.n_edges == 0
    assert len(np.unique(positions, axis=0)) == 600
    labels = tree.labels(tree.K - 1)
    spread = [np.ptp(positions[labels == c], axis=0).max() for c in range(labels.max() + 1)]
    assert np.median(spread) <= 3, "clusters of at most four nodes are small patches of a grid of 32 by 32"
    placed = graph.replace(positions=rng.random((600, 2)))
    assert layouts.ground(placed, tree) == (placed, None)
