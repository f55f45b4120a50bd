"""Weights of nodes: two is a node twice, zero is no node, in every engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegfan as pf
from pegfan.graph import Split
from pegfan.training import Network
from pegfan.training.engine import TrainingTask
from pegfan.training.fast import ChainSteps
from pegfan.training.plain import PlainSteps, seeded
from pegfan.training.rows import Labelled, loss_weights

SETTINGS = pf.Settings(hidden=8, dropout=0.0, epochs=6, patience=6)


@pytest.fixture(scope="module")
def graph():
    return pf.datasets.synthetic(0.2, n=90, n_edges=500, n_features=6, splits=1)


@pytest.fixture(scope="module")
def channels(graph):
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=4))
    return pf.make_channels(graph, system, kind="b", regime="heterophily")


def repeated(rows, counts):
    """The rows, each as often as its count says."""
    return Labelled(np.repeat(rows.places, counts), np.repeat(rows.labels, counts))


def weighted(rows, counts):
    return Labelled(rows.places, rows.labels, counts.astype(float))


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def steps_of(channels, graph, train, val, by_class, engine):
    """Losses of four epochs, on training and validation nodes."""
    weights = loss_weights(train.labels, by_class, train.weights)
    if engine == "fast":
        state = Network.draw(channels.widths, graph.n_classes, SETTINGS, 3).state
        trainer = ChainSteps(channels, state, train, val, weights, SETTINGS, 3)
        return np.array([trainer.step(epoch)[:2] for epoch in range(4)])
    with seeded(3):
        task = TrainingTask(channels, graph.labels, [], SETTINGS, graph.n_classes, "accuracy")
        trainer = PlainSteps(task, train, val, weights, 3)
        return np.array([trainer.step(epoch)[:2] for epoch in range(4)])


@pytest.mark.parametrize("engine", ["fast", "plain"])
@pytest.mark.parametrize("by_class", [False, True])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=4)
def test_a_weight_of_two_is_a_node_twice(graph, channels, engine, by_class, seed):
    rng = np.random.default_rng(seed)
    train, val = (Labelled.of(channels, nodes, graph.labels) for nodes in graph.splits[0][:2])
    times = [rng.integers(1, 4, len(rows.places)) for rows in (train, val)]
    by_weight = steps_of(channels, graph, *map(weighted, (train, val), times), by_class, engine)
    by_rows = steps_of(channels, graph, *map(repeated, (train, val), times), by_class, engine)
    np.testing.assert_allclose(by_weight, by_rows, rtol=2e-5)
    assert not np.allclose(by_weight, steps_of(channels, graph, train, val, by_class, engine), rtol=1e-7, atol=0)


@pytest.mark.parametrize("engine", ["fast", "plain"])
def test_a_weight_of_zero_is_no_node(graph, channels, engine):
    """Bit for bit, dropout and the order of rows included."""
    part, chosen = graph.splits[0], {"hidden": 8, "epochs": 15}
    weights = np.ones(graph.n)
    weights[[*part.train[::3], *part.val[::4]]] = 0
    rest = Split(part.train[weights[part.train] > 0], part.val[weights[part.val] > 0], part.test)
    lost = pf.train(channels, graph.labels, part, chosen, engine=engine, sample_weight=weights).runs[0]
    without = pf.train(channels, graph.labels, rest, chosen, engine=engine).runs[0]
    assert same(lost.state, without.state) or engine == "plain"
    for name, value in lost.state.items():
        np.testing.assert_allclose(value, without.state[name], atol=1e-5)
    assert lost.val_metric == without.val_metric
    assert lost.val_loss == pytest.approx(without.val_loss, rel=1e-6)


def test_ones_are_no_weights_and_their_scale_makes_no_difference(graph, channels):
    plain = pf.train(channels, graph.labels, graph.splits[0], {"epochs": 10}).runs[0]
    for weights in (np.ones(graph.n), np.full(graph.n, 4), np.ones(graph.n, bool)):
        assert same(
            pf.train(channels, graph.labels, graph.splits[0], {"epochs": 10}, sample_weight=weights).runs[0].state,
            plain.state,
        )


def test_weights_by_the_size_of_classes_are_class_weights():
    labels = np.array([0, 0, 0, 1, 2, 2])
    sizes = np.bincount(labels)
    np.testing.assert_allclose(loss_weights(labels, True), loss_weights(labels, False, 1.0 / sizes[labels]))
    np.testing.assert_allclose(
        loss_weights(labels, True, np.array([1.0, 1, 2, 5, 3, 1])), np.array([3, 3, 6, 12, 9, 3]) / 36
    )


def test_order_of_nodes_makes_no_difference(graph):
    """A renumbered graph with renumbered weights gives the same network, bit for bit."""
    rng = np.random.default_rng(0)
    weights, order = rng.random(graph.n), rng.permutation(graph.n)
    other, moved = graph.permute(order), weights[order]
    one = pf.FSGNNClassifier(epochs=10).fit(graph, sample_weight=weights)
    two = pf.FSGNNClassifier(epochs=10).fit(other, sample_weight=moved)
    assert same(one.run_.state, two.run_.state)
    assert not same(one.run_.state, pf.FSGNNClassifier(epochs=10).fit(graph).run_.state)


MODELS = [
    pf.PEGFANClassifier(epochs=8, h=4),
    pf.RecipeClassifier({"method": "none", "labels": True, "epochs": 8}),
    pf.NetworkClassifier("gcn", hidden=8, epochs=8),
    pf.AutoClassifier(recipes=[{"method": "none", "epochs": 8}, {"method": "none", "hops": 1, "epochs": 8}]),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_classifier_takes_them(graph, model):
    part = graph.splits[0]
    weights = np.ones(graph.n)
    weights[part.train[::2]] = 0
    rest = Split(part.train[1::2], part.val, part.test)
    lost = model.fit(graph, sample_weight=weights).predict_proba(graph)
    np.testing.assert_allclose(lost, model.fit(graph, rest).predict_proba(graph), atol=1e-6)
    weights[part.train[::2]] = 5.0
    even = model.fit(graph).predict_proba(graph)
    assert not np.allclose(even, model.fit(graph, sample_weight=weights).predict_proba(graph), atol=1e-3)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(3), "90 numbers, one per node"),
        (["a"] * 90, "90 numbers"),
        (np.full(90, np.nan), "node 0 is nan"),
        (np.r_[1.0, -2.0, np.ones(88)], "node 1 is -2.0; weights are finite numbers of at least 0"),
        (np.zeros(90), "has no"),
    ],
)
def test_wrong_weights_are_refused(graph, channels, weights, words):
    with pytest.raises(ValueError, match=words):
        pf.train(channels, graph.labels, graph.splits[0], {"epochs": 1}, sample_weight=weights)
    with pytest.raises(ValueError, match=words):
        pf.FSGNNClassifier(epochs=1).fit(graph, sample_weight=weights)


def test_label_propagation_has_no_use_for_them(graph):
    with pytest.raises(ValueError, match="label propagation has no loss"):
        pf.NetworkClassifier("label-propagation").fit(graph, sample_weight=np.arange(graph.n) + 1.0)
