"""Channels of labels: against dense twins, by hand, without a trace of a node's own label, renumbered, shuffled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan.channels import hop_matrix, names
from pegfan.channels.labels import BETWEEN, JOINT, labels_between
from pegfan.explain import Explainer
from pegfan.graph import Split
from pegfan.importance import permutation_importance
from pegfan.recipe import Known, Recipe
from support.equivariance import graphs, same_bits

seeds = st.integers(0, 2**32 - 1)
NOTHING = np.empty(0, np.int64)
TOLD = Recipe("none", regime="heterophily", hops=1, scaling="none", labels=True, between=True)


@pytest.fixture(scope="module")
def graph() -> pf.Graph:
    return pf.datasets.synthetic(0.0, n=200, n_edges=1200, n_features=5)


def one_hot(graph, nodes):
    y = np.zeros((graph.n, graph.n_classes))
    y[nodes, graph.labels[nodes]] = 1.0
    return y


# ------------------------------------------------------------------- the node in between


def plain_between(graph, x, y):
    """The formula, term by term."""
    a, walk = (hop_matrix(graph, kind, "symmetric").toarray() for kind in ("A", "random-walk"))
    np.fill_diagonal(a, 0.0)
    np.fill_diagonal(walk, 0.0)
    out = np.zeros((graph.n, y.shape[1], x.shape[1]))
    for v in range(graph.n):
        others = np.arange(graph.n) != v
        out[v] = np.einsum("u,uj,uk->kj", walk[v], x, a[:, others] @ y[others])
    return out.reshape(graph.n, -1)


@given(graphs(), seeds)
def test_labels_in_between_are_those_of_the_formula(graph, seed):
    train = np.random.default_rng(seed).permutation(graph.n)[: graph.n // 2]
    x, y = np.asarray(graph.features), one_hot(graph, train)
    np.testing.assert_allclose(labels_between(graph, x, y), plain_between(graph, x, y), atol=1e-12)


def test_by_hand_with_weights_loops_and_directions():
    # 0 → 1 (2), 1 → 2 (3), 3 → 1 (5), and a loop at 1, which nobody walks.
    graph = pf.Graph.from_edges([[0, 1], [1, 2], [3, 1], [1, 1]], [2.0, 3.0, 5.0, 10.0], directed=True)
    y = np.array([[1.0], [0.0], [0.0], [1.0]])
    x = np.array([[0.0], [4.0], [0.0], [0.0]])
    # All walk to node 1 and on to the others: 0 finds the label of 3, 2 both, 3 that of 0.
    assert labels_between(graph, x, y).ravel().tolist() == [4 * 5.0, 0.0, 4 * 7.0, 4 * 2.0]


@given(graphs(weighted=(False,)), seeds)
def test_a_nodes_own_label_leaves_no_trace_in_between(graph, seed):
    rng = np.random.default_rng(seed)
    node = int(rng.integers(graph.n))
    y = one_hot(graph, np.arange(graph.n))
    turned = y.copy()
    turned[node] = turned[node, ::-1]
    x = np.asarray(graph.features)
    assert same_bits(labels_between(graph, x, y)[node], labels_between(graph, x, turned)[node])


@given(graphs(weighted=(True,)), seeds)
def test_a_label_alone_is_not_seen_by_its_node(graph, seed):
    node = int(np.random.default_rng(seed).integers(graph.n))
    assert not labels_between(graph, graph.features, one_hot(graph, [node]))[node].any()


@given(graphs(), seeds)
def test_labels_in_between_are_renumbered_bit_for_bit(graph, seed):
    perm = np.random.default_rng(seed).permutation(graph.n)
    moved, y = graph.permute(perm), one_hot(graph, graph.splits[0].train)
    old, new = labels_between(graph, graph.features, y), labels_between(moved, moved.features, y[perm])
    assert same_bits(old[perm], new)


# ---------------------------------------------------------------------- in recipes


def test_the_channel_is_there_where_it_is_small_enough(graph):
    channels = TOLD.channels(graph, None)
    assert channels.names == ("X", "S X", "Y near", "Y far", JOINT, BETWEEN)
    assert names.describe(channels[BETWEEN]) == "training labels two steps away, by the features in between"
    wide = graph.replace(features=np.ones((200, 64)))  # by 4 classes: 256; and 5 with those without a label
    assert BETWEEN in TOLD.channels(wide, None).names
    assert JOINT not in TOLD.channels(wide, None).names
    wider = graph.replace(features=np.ones((200, 65)))
    assert TOLD.channels(wider, None).names == ("X", "S X", "Y near", "Y far")


def test_without_labels_it_makes_no_difference():
    assert Recipe("none", between=True) == Recipe("none")
    assert TOLD.changed(labels=False).between is False
    assert "between" not in Recipe("none", labels=True).to_dict()
    assert TOLD.name == "S unscaled +Y between"


def test_training_labels_are_what_is_seen(graph):
    part = graph.splits[0]
    found = TOLD.channels(graph, None, split=part)[BETWEEN].materialize(np.float64, "dense")
    np.testing.assert_array_equal(found, labels_between(graph, graph.features, one_hot(graph, part.train)))
    none = replace(Known.of(graph, part.train), codes=np.full(graph.n, -1))
    assert not TOLD.channels(graph, None, known=none)[BETWEEN].input.any()


def test_targets_are_summed_and_counted():
    path = pf.Graph.from_edges([[0, 1], [1, 2]], features=[[1.0], [4.0], [1.0]], targets=[1.0, 5.0, 3.0])
    split = Split(np.array([0, 2]), np.array([1]), NOTHING)
    channels = TOLD.channels(path, None, split=split)
    # Standardised, the two known targets are −1 and 1.
    assert channels[BETWEEN].input.tolist() == [[4.0, 4.0], [0.0, 0.0], [-4.0, 4.0]]
    assert names.describe(channels[BETWEEN]).startswith("training targets")


@pytest.mark.parametrize("head", ["network", "boosting"])
def test_reasons_add_up_and_columns_are_shuffled_in_between(graph, head):
    """A shuffled column has the channels of the graph with that column shuffled."""
    recipe = TOLD.changed(head=head, epochs=15)
    model = pf.RecipeClassifier(recipe).fit(graph)
    explainer = Explainer(model.fitted_)
    found = explainer.explain([3])[0]
    assert sum(part.contribution for part in found.reasons) == pytest.approx(found.score - found.average, abs=1e-8)
    test = graph.splits[0].test
    rows, left = permutation_importance(explainer, graph.labels, test, "accuracy", repeats=2)
    assert (len(rows), left) == (5, 0)
    channel = explainer.networks[0].channels[BETWEEN]
    shuffled = graph.features.copy()
    shuffled[:, 2] = shuffled[::-1, 2]
    again = TOLD.channels(graph.replace(features=shuffled), None)[BETWEEN]
    change = shuffled.astype(np.float64) - graph.features
    np.testing.assert_allclose(channel.input + channel.of_features(change), again.input, atol=1e-9)
