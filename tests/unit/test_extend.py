"""A tree for a graph that has grown: old nodes stay, new ones join their neighbours, however nodes are numbered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan import Graph, Hierarchy
from pegfan.trees import build_tree, extend_tree
from support.equivariance import graphs
from support.strategies import random_tree


@st.composite
def grown(draw):
    """A graph, the places of its nodes in an older one, and a tree of that one; at least one node is old."""
    graph = draw(graphs())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    old = rng.permutation(graph.n)[: rng.integers(1, graph.n, endpoint=True)]
    places = np.full(graph.n, -1)
    places[old] = np.arange(len(old))
    tree = build_tree(graph.subgraph(old), h=3) if draw(st.booleans()) else random_tree_of(rng, len(old))
    return graph, places, tree


def random_tree_of(rng, n):
    levels = [np.arange(n)]
    while levels[-1].max() > 0 and len(levels) < 6:
        above = rng.integers(0, max(1, (levels[-1].max() + 1) // 2), levels[-1].max() + 1)
        levels.append(np.unique(above, return_inverse=True)[1][levels[-1]])
    return Hierarchy.from_labels(levels)


@given(grown())
def test_old_nodes_stay_and_levels_are_nested(case):
    graph, places, tree = case
    after, old = extend_tree(tree, graph, places), np.flatnonzero(places >= 0)
    assert after.n == graph.n
    assert max(after.K, 2) == max(tree.K, 2)
    for level in range(1, tree.K):
        np.testing.assert_array_equal(after.labels(level)[old], tree.labels(level)[places[old]])
        assert after.n_clusters[level - 1] == tree.n_clusters[level - 1]
    leaves = after.order[places[after.order] >= 0]
    np.testing.assert_array_equal(places[leaves], tree.order)  # in the order that they had
    for level in range(2, after.K):  # nested: every cluster lies in one of the level above
        fine, coarse = after.labels(level), after.labels(level - 1)
        assert len(set(zip(fine, coarse, strict=True))) == after.n_clusters[level - 1]


@given(grown(), st.integers(0, 2**32 - 1))
def test_renumbered_graphs_give_renumbered_clusters(case, seed):
    graph, places, tree = case
    perm = np.random.default_rng(seed).permutation(graph.n)
    one, other = extend_tree(tree, graph, places), extend_tree(tree, graph.permute(perm), places[perm])
    for level in range(1, one.K):
        np.testing.assert_array_equal(other.labels(level), one.labels(level)[perm])


@given(grown(), st.integers(0, 2**32 - 1))
def test_renumbered_old_nodes_change_nothing(case, seed):
    graph, places, tree = case
    perm = np.random.default_rng(seed).permutation(tree.n)
    inverse = np.append(np.argsort(perm), -1)
    assert extend_tree(tree.permute(perm), graph, inverse[places]) == extend_tree(tree, graph, places)


@given(grown())
def test_each_new_node_joins_the_heaviest_of_its_neighbours_clusters(case):
    graph, places, tree = case
    after = extend_tree(tree, graph, places)
    weights = (graph.adjacency + graph.adjacency.T).toarray() if graph.directed else graph.adjacency.toarray()
    old = places >= 0
    for node in np.flatnonzero(~old & (weights[:, old] > 0).any(axis=1)):
        inside = old
        for level in range(2, tree.K):
            labels = after.labels(level)
            sums = np.bincount(labels[inside], weights[node, inside], minlength=after.n_clusters[level - 1])
            assert sums[labels[node]] == pytest.approx(sums.max())
            inside = inside & (labels == labels[node])


def test_by_hand():
    tree = Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7, 8]]])
    #        9: to both sides alike; 10: two light edges, one heavy; 11 - 12: a wave; 13: alone
    edges = [(9, 0), (9, 4), (10, 0), (10, 1), (10, 6), (11, 8), (12, 11)]
    weights = [1, 1, 1, 1, 5, 1, 1]
    graph = Graph.from_edges(edges, weights, n=14)
    after = extend_tree(tree, graph, [*range(9), *[-1] * 5])
    assert [members.tolist() for members in np.split(after.order, after.first_leaf(3)[1:-1])] == [
        *([0, 1, 9], [2, 3], [4, 5]),
        [6, 7, 8, *sorted([10, 11, 12, 13], key=after.order.tolist().index)],
    ]
    assert after.labels(3)[9:].tolist() == [0, 3, 3, 3, 3]
    assert after.info["extended"] == 5


def test_arcs_count_both_ways():
    tree = Hierarchy.from_nested([[0, 1], [2, 3]])
    graph = Graph.from_edges([(0, 4), (2, 4), (4, 3)], n=5, directed=True)
    assert extend_tree(tree, graph, [0, 1, 2, 3, -1]).labels(2)[4] == 1


def test_nothing_new_is_the_tree_as_it_was():
    tree = random_tree(0, 3, 4, 30)
    graph = Graph.from_edges([(0, 1)], n=tree.n)
    assert extend_tree(tree, graph, np.arange(tree.n)) == tree


def test_the_tree_of_a_single_node_grows():
    tree = Hierarchy.from_nested([0])
    single = Hierarchy([])
    graph = Graph.from_edges([(0, 1), (1, 2)])
    for one in (tree, single):
        assert extend_tree(one, graph, [0, -1, -1]).n_clusters == (1, 3)


@pytest.mark.parametrize("places", [[0, 1], [0, 1, 1], [0, -1, -1], [0.0, 1.0, -1.0], [0, 2, -1]])
def test_places_that_do_not_fit_are_refused(places):
    tree = Hierarchy.from_nested([0, 1])
    with pytest.raises(ValueError, match="places must hold"):
        extend_tree(tree, Graph.from_edges([(0, 1), (1, 2)]), places)
