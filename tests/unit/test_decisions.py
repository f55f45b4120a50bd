"""Probabilities that can be believed, thresholds, and what models keep of both."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

import pegfan as pf
from pegfan.auto.outcome import Plan, carry_out, with_metric
from pegfan.auto.recipes import Space, first_recipes
from pegfan.auto.search import Shared, Task, run_task
from pegfan.decisions import Calibration, Decision, Predictions, best_offsets, calibration_error
from pegfan.metrics import METRICS, score
from pegfan.recipe import Recipe
from pegfan.results import Result

QUICK = {"method": "none", "hops": 1, "scaling": "columns", "epochs": 40, "hidden": 8}


def sample(seed, n=4000, shift=0.0, scale=1.0, classes=2, rare=0.0):
    """Logarithms of true probabilities, made wrong by a shift of class 1 and a scale, and the labels they gave."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes))
    logits[:, 1] -= rare
    true = log_softmax(logits, axis=1)
    labels = (rng.random((n, 1)) > np.cumsum(np.exp(true), axis=1)).sum(axis=1).clip(max=classes - 1)
    wrong = scale * true
    wrong[:, 1] += shift
    return log_softmax(wrong, axis=1), labels, true


def predictions(output, labels):
    return Predictions(output, labels, np.arange(len(labels)))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 3.0), (2.0, 1.0), (-1.5, 0.5)])
def test_calibration_undoes_shifts_and_scales(classes, shift, scale):
    output, labels, true = sample(0, shift=shift, scale=scale, classes=classes)
    made = Calibration.fit(output, labels)
    assert made.scale == pytest.approx(1 / scale, rel=0.15)
    assert sum(made.shifts) == pytest.approx(0, abs=1e-6)
    assert np.abs(np.exp(made.applied(output)) - np.exp(true)).max() < 0.08
    fresh, truth, _ = sample(1, shift=shift, scale=scale, classes=classes)
    assert calibration_error(made.applied(fresh), truth) < 0.03 < calibration_error(fresh, truth)


@given(st.integers(0, 1000), st.floats(-3, 3), st.floats(0.1, 5))
def test_calibration_keeps_the_order_of_nodes_within_two_classes(seed, shift, scale):
    output, labels, _ = sample(seed, n=60, shift=shift, scale=scale)
    made = Calibration.fit(output, labels).applied(output)
    order = np.argsort(output[:, 1] - output[:, 0])
    assert (np.diff((made[:, 1] - made[:, 0])[order]) >= 0).all()
    assert score(made, labels, "roc_auc") == pytest.approx(score(output, labels, "roc_auc"), nan_ok=True)


def test_without_shifts_the_likeliest_class_stays():
    output, labels, _ = sample(2, classes=4, shift=1.0, scale=2.0)
    made = Calibration.fit(output, labels, shifting=False)
    assert made.shifts == (0.0,) * 4
    assert np.array_equal(made.applied(output).argmax(axis=1), output.argmax(axis=1))


def test_calibration_is_used_only_if_it_helps_where_it_was_not_fitted():
    output, labels, _ = sample(3, scale=2.0, rare=3.0)
    used = Decision.of(predictions(output, labels), "average_precision")
    assert used.calibration is not None
    before, after = used.tested
    assert after < before == pytest.approx(score(output, labels, "log_loss"))
    perfect, truth, _ = sample(4, n=60)
    unused = [Decision.of(predictions(*sample(seed, n=60)[:2]), "accuracy") for seed in range(20)]
    assert any(one.calibration is None for one in unused), "what is right already is often left alone"
    assert all((one.tested[1] < one.tested[0]) == (one.calibration is not None) for one in unused)
    few = Decision.of(predictions(perfect[:20], truth[:20]), "accuracy")
    assert (few.calibration, few.tested) == (None, None)


def test_a_node_that_is_predicted_twice_is_in_one_part():
    """With every node twice, parts by rows would hold the answer for the rows that they are judged on."""
    rng = np.random.default_rng(0)
    output = log_softmax(rng.normal(size=(40, 20)), axis=1)  # 20 shifts for 40 nodes: easy to fit too well
    labels = rng.integers(20, size=40)
    counts = np.array([1] * 19 + [21])
    labels = np.repeat(np.arange(20), counts)
    once = Decision.of(predictions(output, labels), "accuracy").tested
    twice = Predictions.joined([predictions(output, labels)] * 2)
    assert Decision.of(twice, "accuracy").tested[1] > once[1] - 0.15


@given(st.permutations(range(50)))
def test_decisions_do_not_depend_on_the_order_of_nodes(order):
    output, labels, _ = sample(5, n=50, scale=2.0, rare=1.5)
    given_ = predictions(output, labels)
    moved = Predictions(*(column[list(order)] for column in given_))
    assert Decision.of(moved, "average_precision") == Decision.of(given_, "average_precision")


def test_predictions_about_some_nodes_can_be_left_out():
    given_ = predictions(*sample(0, n=6)[:2])
    assert given_.without(np.array([1, 4])).nodes.tolist() == [0, 2, 3, 5]


# ------------------------------------------------------------------ thresholds


OF_CLASSES = [name for name, metric in METRICS.items() if not metric.numbers]


@given(st.integers(0, 500), st.sampled_from(OF_CLASSES))
def test_the_threshold_is_the_best_of_all(seed, metric):
    from sklearn.metrics import f1_score

    output, labels, _ = sample(seed, n=80, rare=2.5)
    offsets, aim = best_offsets(output, labels, metric)
    decided = METRICS[metric].decides
    if offsets is None:
        assert METRICS[metric].likeliest or len(np.unique(labels)) < 2 or labels.mean() >= 0.2
        return
    decision = Decision(offsets=offsets)

    def value(threshold):
        codes = Decision().with_threshold(threshold).classes(output)
        return METRICS[metric].gain(score(np.eye(2)[codes], labels, metric)) if decided else f1_score(labels, codes)

    assert aim == (METRICS[metric].words if decided else "F1")
    best = max(value(t) for t in np.exp(output[:, 1]) - 1e-7)
    assert value(decision.threshold) == pytest.approx(best)


def test_what_is_decided_follows_the_metric():
    output, labels, _ = sample(6, rare=3.0)
    assert best_offsets(output, labels, "accuracy") == (None, "")
    assert best_offsets(output, labels, "average_precision")[1] == "F1"
    even, codes, _ = sample(6)
    assert best_offsets(even, codes, "roc_auc") == (None, ""), "two classes that are not unequal"
    many, codes, _ = sample(7, classes=3, rare=4.0)
    offsets, aim = best_offsets(many, codes, "balanced_accuracy")
    assert aim == "balanced accuracy"
    decided = Decision(offsets=offsets).score(many, codes, "balanced_accuracy")
    assert decided > score(many, codes, "balanced_accuracy") + 0.05
    assert best_offsets(many, codes, "log_loss") == (None, "")


def test_thresholds_and_shares_that_are_asked_for():
    p = np.linspace(0.01, 0.5, 50)
    output = np.log(np.stack([1 - p, p], axis=1))
    for threshold in (0.1, 0.25, 0.9):
        decision = Decision().asked(output, threshold)
        assert decision.threshold == pytest.approx(threshold)
        assert np.array_equal(decision.classes(output) == 1, p >= threshold - 1e-9)
    assert Decision().asked(output, flag_share=0.1).classes(output).sum() == 5
    assert Decision().asked(output, flag_share=1e-9).classes(output).sum() == 1
    for wrong in ({"threshold": 0.0}, {"threshold": 1.5}, {"flag_share": 2.0}, {"threshold": 0.1, "flag_share": 0.1}):
        with pytest.raises(ValueError, match=r"between 0 and 1|not both"):
            Decision().asked(output, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"calibration": {"scale": -1.0, "shifts": [0.0, 0.0]}},
        {"calibration": {"scale": 1.0, "shifts": [0.0]}},
        {"calibration": {"scale": float("nan"), "shifts": [0.0, 0.0]}},
        {"offsets": [0.0, float("inf")]},
        {"offsets": [0.0, 1.0, 2.0]},
    ],
)
def test_decisions_come_back_from_files_and_wrong_ones_are_refused(wrong):
    decision = Decision(Calibration(0.5, (0.1, -0.1)), (0.0, -1.0), "F1", (0.3, 0.2), 99)
    stored = json.loads(json.dumps(decision.to_dict()))
    assert Decision.from_dict(stored, 2) == decision
    with pytest.raises(ValueError, match=r"finite numbers|turn probabilities"):
        Decision.from_dict({**stored, **wrong}, 2)


# ---------------------------------------------------------------- whole models


def rare_graph(seed=0, n=400):
    """Two classes, one of them rare and first by its name; what tells it is in the features."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.1
    x = rng.normal(size=(n, 3))
    x[:, 0] += 2.0 * bad
    labels = np.where(bad, "bad", "good").tolist()
    return pf.Graph.from_edges(rng.integers(n, size=(3 * n, 2)), n=n, features=x, labels=labels)


@pytest.fixture(scope="module")
def outcome():
    graph, why = with_metric(rare_graph())
    return carry_out(graph, Plan(recipes=[Recipe.of(QUICK)], splits=3, metric_reason=why))


def test_a_rare_class_is_found_and_what_is_said_of_it_holds(outcome):
    graph, result = outcome.graph, outcome.result
    assert (graph.metric, result.data.positive, result.data.classes) == ("average_precision", "bad", ("good", "bad"))
    assert "bad" in result.metric_reason
    test, predicted = outcome.judged.test, outcome.predicted
    flagged, true = predicted[test] == 1, graph.labels[test] == 1
    assert result.decided.flagged == flagged.sum() > 0
    assert result.decided.precision == pytest.approx(true[flagged].mean())
    assert result.decided.recall == pytest.approx(flagged[true].mean())
    assert np.sum(np.array(result.confusion)[:, 1]) == flagged.sum()
    low, high = result.test.interval
    assert low <= result.test.mean <= high
    assert high - low > 0.05, "some forty test nodes and three trainings"
    assert result.test.per_split[0] == pytest.approx(outcome.model.score(graph, 0))
    assert Result.from_json(result.to_json()) == result
    p = np.exp(outcome.model.fitted_.log_probabilities())
    assert p.tobytes() == outcome.probabilities.tobytes()
    assert np.array_equal(outcome.model.predict() == "bad", p[:, 1] >= result.decided.threshold - 1e-6)
    assert np.array_equal(outcome.model.predict(threshold=0.5) == "bad", p[:, 1] >= 0.5)
    assert (outcome.model.predict(flag_share=0.1) == "bad").sum() == 40


def test_test_labels_decide_nothing(outcome):
    graph = outcome.graph
    labels = graph.labels.copy()
    test = graph.splits[0].test
    labels[test] = np.random.default_rng(0).permutation(labels[test])
    splits = [graph.splits[0]]
    one, two = (
        carry_out(g.replace(splits=splits), Plan(recipes=[Recipe.of(QUICK)], splits=1))
        for g in (graph, graph.replace(labels=labels))
    )
    assert one.model.fitted_.decision == two.model.fitted_.decision
    assert np.array_equal(one.predicted, two.predicted)


def test_decisions_are_saved_with_a_model(outcome, tmp_path):
    folder = outcome.model.save(tmp_path / "model")
    loaded = pf.load_classifier(folder)
    assert loaded.fitted_.decision == outcome.model.fitted_.decision
    assert loaded.predict(outcome.graph).tolist() == outcome.model.predict().tolist()
    assert loaded.score(outcome.graph) == outcome.model.score()
    graph = rare_graph()
    assert graph.classes.tolist() == ["bad", "good"], "in another order than the model's"
    swapped = graph.replace(splits=outcome.graph.splits, metric="average_precision")
    assert loaded.score(swapped) == pytest.approx(loaded.score(outcome.graph))


def test_thresholds_are_for_two_classes():
    graph = pf.datasets.synthetic(0.0, n=200, n_edges=1200, n_features=10)
    model = pf.AutoClassifier(recipes=[QUICK]).fit(graph)
    with pytest.raises(ValueError, match="a threshold is for two classes, and the model has 4"):
        model.predict(threshold=0.3)


def test_class_weights_are_tried_where_classes_are_unequal():
    graph = with_metric(rare_graph())[0]
    weighted = [recipe.settings.class_weights for recipe in first_recipes(graph, graph)]
    assert weighted.count(True) == 1
    assert weighted.index(True) < 8, "among those that run first"
    pinned = first_recipes(graph, graph, {"class_weights": False})
    assert not any(recipe.settings.class_weights for recipe in pinned)
    for pins, unequal, expected in (
        ({}, True, {False, True}),
        ({}, False, {False}),
        ({"class_weights": True}, True, {True}),
    ):
        space, rng = Space(graph, pins, unequal), np.random.default_rng(0)
        drawn = [space.draw(rng, head) for head in space.heads for _ in range(30)]
        drawn += [space.vary(recipe, rng) for recipe in drawn]
        for head in ("network", "boosting"):
            assert {recipe.settings.class_weights for recipe in drawn if recipe.head == head} == expected
    even = graph.replace(labels=np.arange(graph.n) % 2)
    assert not any(recipe.settings.class_weights for recipe in first_recipes(even, even))


def test_class_weights_leave_probabilities_that_suit_the_sizes_of_classes():
    graph = with_metric(rare_graph(1, 1200))[0]
    graph = graph.replace(splits=pf.datasets.random_splits(graph.labels, k=1))
    recipe = Recipe.of({**QUICK, "class_weights": True, "epochs": 150})
    trial = run_task(Shared(graph, recipe.scale(graph)), Task(recipe, graph.splits[0], 0))
    mean = np.exp(trial.log_probabilities[graph.splits[0].test, 1]).mean()
    assert mean == pytest.approx(0.1, abs=0.05), "without the correction it would be near 0.3"
