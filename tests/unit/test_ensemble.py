"""Which recipes make the model and with what weights: greedy selection, its check, and models that hold weights."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pegfan as pf
from pegfan._saved import _checksum
from pegfan.auto import AutoClassifier, AutoRegressor
from pegfan.auto.ensemble import LEAST, STEPS, Judge, greedy, select
from pegfan.auto.search import Trial, choose, validate
from pegfan.explain import Explainer
from pegfan.fitted import mean_of
from pegfan.graph import Split
from pegfan.recipe import Recipe

seeds = st.integers(0, 2**32 - 1)
NOTHING = np.empty(0, np.int64)
TRAINED = object()
"""Stands for a network: the choice only asks whether there is one."""


def log_loss(rows):
    return -np.log(rows).mean(axis=1)


def made(n=60, classes=3, seed=0, numeric=False, alike=False):
    """A graph with a split of 10 training nodes and validation nodes; with `alike`, many nodes look the same."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 1)) * 1.0 if alike else rng.random((n, 2))
    edges = [] if alike else rng.integers(n, size=(3 * n, 2))
    about = {"targets": rng.normal(size=n)} if numeric else {"labels": np.arange(n) % classes}
    graph = pf.Graph.from_edges(np.reshape(edges, (-1, 2)).astype(np.int64), n=n, features=x, **about)
    return graph, Split(np.arange(10), np.arange(10, n), NOTHING)


def outputs_of(graph, count, seed=0, skill=1.0):
    """Log-probabilities, or numbers, that know something of the truth."""
    rng = np.random.default_rng(seed)
    if graph.targets is not None:
        return [(graph.targets + rng.normal(size=graph.n) / skill)[:, None] for _ in range(count)]
    found = []
    for _ in range(count):
        scores = rng.normal(size=(graph.n, graph.n_classes)) + skill * np.eye(graph.n_classes)[graph.labels]
        found.append((scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))).astype(np.float32))
    return found


def trials_of(outputs, graph, split, weights=None):
    return [
        Trial(
            Recipe.of({"method": "none", "epochs": k + 1}),
            *validate(output, graph, split, weights),
            10,
            1.0,
            output,
            TRAINED,
        )
        for k, output in enumerate(outputs)
    ]


def shares_of(choice):
    return [
        (trial.recipe.settings.epochs - 1, weight) for trial, weight in zip(choice.members, choice.weights, strict=True)
    ]


# ------------------------------------------------------------------- greedy steps


def test_greedy_steps_by_hand():
    """The losses: 0.511 of the first, 0.916 of the second, 0.554 of both, 0.517 of 2:1, and 0.507 of 3:1."""
    said = np.array([[0.9, 0.4], [0.2, 0.8]])
    for steps in (1, 2, 3):
        assert greedy(said, log_loss, steps).tolist() == [1, 0]
    assert greedy(said, log_loss, 4).tolist() == [0.75, 0.25]


def test_of_equal_ones_the_first_is_taken():
    said = np.full((3, 2), 0.5)
    assert greedy(said, log_loss).tolist() == [1, 0, 0]


@given(seeds, st.integers(1, 12), st.integers(1, 30), st.integers(1, STEPS))
def test_a_selection_is_never_worse_than_the_best_single_one_where_it_was_selected(seed, count, nodes, steps):
    said = np.random.default_rng(seed).uniform(0.01, 1, (count, nodes))
    weights = greedy(said, log_loss, steps)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert log_loss((weights @ said)[None])[0] <= log_loss(said).min() + 1e-12
    numbers = said - 0.5
    mixed = greedy(numbers, lambda rows: (rows**2).mean(axis=1), steps) @ numbers
    assert (mixed**2).mean() <= (numbers**2).mean(axis=1).min() + 1e-12


# ---------------------------------------------------------------- selection in parts


@given(seeds, st.integers(1, 9), st.integers(1, 5), st.sampled_from([13, 40, 75]), st.booleans(), st.booleans())
def test_weights_sum_to_one_and_members_are_not_too_many(seed, count, most, n, numeric, weighted):
    graph, split = made(n, seed=seed % 1000, numeric=numeric)
    weights = np.random.default_rng(seed).uniform(0.1, 5, n) if weighted else None
    outputs = outputs_of(graph, count, seed)
    found = select(outputs, Judge(graph, split, weights, outputs), most, range(count))
    assert math.fsum(found.weights) == pytest.approx(1)
    kept = found.weights[found.weights > 0]
    assert 1 <= len(kept) <= most
    assert (kept >= LEAST).all()
    told = [*found.ensemble, *found.single]
    assert np.isfinite(told).all() if len(split.val) >= 20 and count > 1 else np.isnan(told).all()


@given(seeds, st.booleans(), st.booleans(), st.booleans())
def test_neither_the_order_of_nodes_nor_that_of_trials_matters(seed, numeric, alike, weighted):
    graph, split = made(45, seed=seed % 1000, numeric=numeric, alike=alike)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 5, graph.n) if weighted else None
    trials = trials_of(outputs_of(graph, 6, seed), graph, split, weights)
    assume(len({trial.val_loss for trial in trials}) == len(trials))
    before = choose(trials, graph, split, 10, weights=weights)
    order = rng.permutation(graph.n)
    places = np.argsort(order)
    moved, part = graph.permute(order), Split(*(np.sort(places[nodes]) for nodes in split))
    other = None if weights is None else weights[order]
    outputs = [trial.log_probabilities[order] for trial in trials]
    again = trials_of(outputs, moved, part, other)
    after = choose([again[k] for k in rng.permutation(6)], moved, part, 10, weights=other)
    assert shares_of(after) == shares_of(before)
    assert after.reason == before.reason
    assert np.array_equal(after.output, before.output[order])


def test_few_validation_nodes_are_not_dealt_into_parts():
    """Of two nodes: two parts in 102 of the greedy weights, the rest of the plain mean of five of lowest loss."""
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 0])
    split = Split(np.array([0]), np.array([1, 2]), NOTHING)
    right = [(0.9, 0.6), (0.4, 0.95), (0.5, 0.5), (0.45, 0.5), (0.5, 0.4), (0.1, 0.1)]
    outputs = [np.log([[0.5, 0.5], [1 - one, one], [two, 1 - two]]) for one, two in right]
    picked = greedy(np.array(right), log_loss)
    assert (picked[:2] > 0).all()
    assert picked[:2].sum() == 1
    expected = 2 / 102 * picked + 100 / 102 * np.array([0.2] * 5 + [0.0])
    choice = choose(trials_of(outputs, graph, split), graph, split, 10)
    assert dict(shares_of(choice)) == pytest.approx({k: expected[k] for k in range(5)})
    assert choice.reason == "a weighted mean, selected on validation"
    assert choice.how == "ensemble of 5"


@pytest.mark.parametrize(("n", "expected"), [(15, (5 + 20) / 105), (60, 1.0), (400, 1.0)])
def test_guessers_are_in_the_plain_mean_unless_the_check_refuses_them(n, expected):
    """One knows, six others guess: greedy selection takes the first alone, the plain mean gives it a fifth."""
    graph, split = made(n, classes=2)
    sure = np.log(np.eye(2)[graph.labels] * 0.8 + 0.1)
    outputs = [sure, *(np.log(np.full((n, 2), 0.5)) for _ in range(6))]
    found = select(outputs, Judge(graph, split, outputs=outputs), 10, [0])
    assert found.weights[0] == pytest.approx(expected)


def test_one_trial_is_the_model():
    graph, split = made()
    trials = trials_of(outputs_of(graph, 1), graph, split)
    choice = choose(trials, graph, split, 5)
    assert (choice.members, choice.weights, choice.how, choice.reason) == (trials, [1.0], "best", "the only recipe")


def test_members_that_are_right_about_different_nodes_are_joined():
    graph, split = made(110, classes=2)
    half, sure = np.arange(110) % 4 < 2, np.eye(2)[graph.labels] * 0.9 + 0.05
    outputs = [np.log(np.where(knows[:, None], sure, 0.5)).astype(np.float32) for knows in (half, ~half)]
    choice = choose(trials_of(outputs, graph, split), graph, split, 5)
    assert [place for place, _ in sorted(shares_of(choice))] == [0, 1]
    assert choice.weights == pytest.approx([0.5, 0.5], abs=0.1)
    told = "a weighted mean, selected on validation; on nodes left out of the selection 100.00 (loss "
    assert choice.reason.startswith(told)
    assert validate(choice.output, graph, split)[1] < min(validate(output, graph, split)[1] for output in outputs)


def test_members_that_only_fit_noise_are_refused():
    """On the nodes it is selected on, a mean with some of 300 random ones is better; on those left out it is not."""
    graph, split = made(50, classes=2)
    steady = np.log(np.eye(2)[graph.labels] * 0.4 + 0.3)
    rng, n = np.random.default_rng(0), graph.n
    noise = []
    for _ in range(300):
        p = rng.choice([0.02, 0.98], n)
        noise.append(np.log(np.column_stack([p, 1 - p])))
    outputs = [output.astype(np.float32) for output in (steady, *noise)]
    judge = Judge(graph, split, outputs=outputs)
    said = np.stack([judge.said(output) for output in outputs])
    fitted = greedy(said, judge.losses)
    assert judge.losses((fitted @ said)[None])[0] < judge.losses(said[:1])[0]
    assert fitted[0] < 1
    found = select(outputs, judge, 10, [0])
    assert found.weights[0] == 1
    assert found.ensemble[1] > found.single[1]
    choice = choose(trials_of(outputs, graph, split), graph, split, 10)
    assert shares_of(choice) == [(0, 1.0)]
    assert "an ensemble does no better on validation nodes that it was not selected on" in choice.reason


def test_heavy_nodes_decide():
    graph, split = made(90, classes=2)
    first = np.arange(90) < 50
    sure, wrong = np.eye(2)[graph.labels] * 0.9 + 0.05, np.eye(2)[1 - graph.labels] * 0.9 + 0.05
    outputs = [np.log(np.where(knows[:, None], sure, wrong)).astype(np.float32) for knows in (first, ~first)]
    for heavy, place in ((first, 0), (~first, 1)):
        weights = np.where(heavy, 1e4, 1.0)
        judge = Judge(graph, split, weights, outputs)
        assert select(outputs, judge, 5, [0, 1]).weights[place] > 0.9
        picked = outputs[place][split.val, graph.labels[split.val]]
        expected = -np.average(picked, weights=weights[split.val])
        assert judge.judged(outputs[place][judge.nodes])[1] == pytest.approx(expected, rel=1e-6)


def test_numbers_are_joined_by_their_squared_errors():
    graph, split = made(80, numeric=True)
    up, down = ((graph.targets + shift)[:, None] for shift in (0.5, -0.5))
    choice = choose(trials_of([up, down], graph, split), graph, split, 5)
    assert choice.weights == [0.5, 0.5]
    np.testing.assert_allclose(choice.output[:, 0], graph.targets, atol=1e-12)


def test_the_loss_of_a_judge_is_that_of_a_trial():
    for numeric in (False, True):
        graph, split = made(60, numeric=numeric)
        weights = np.random.default_rng(1).uniform(0, 2, 60)
        (output,) = outputs_of(graph, 1)
        judge = Judge(graph, split, weights, [output])
        metric, loss = validate(output, graph, split, weights)
        assert judge.judged(output[judge.nodes]) == pytest.approx((metric, loss), rel=1e-6)
        assert judge.losses(judge.said(output)[None])[0] == pytest.approx(loss, rel=1e-6)


# ------------------------------------------------------------------ weighted means


@given(seeds, st.integers(1, 5), st.integers(1, 4), st.floats(0.01, 100))
def test_a_weighted_mean_is_that_of_probabilities_or_numbers(seed, count, classes, factor):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.05, 1, count)
    if classes == 1:
        outputs = list(rng.normal(size=(count, 7, 1)))
        expected = np.average(outputs, axis=0, weights=weights)
    else:
        p = rng.dirichlet(np.ones(classes), (count, 7))
        outputs, expected = list(np.log(p)), np.log(np.average(p, axis=0, weights=weights))
    np.testing.assert_allclose(mean_of(outputs, weights.tolist()), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mean_of(outputs, (factor * weights).tolist()), expected, rtol=1e-5, atol=1e-6)
    assert np.array_equal(mean_of(outputs, [0.3] * count), mean_of(outputs))
    narrow = [np.asarray(output, np.float32) for output in outputs]
    assert classes == 1 or mean_of(narrow, weights.tolist()).dtype == np.float32


# ------------------------------------------------------------ models that hold weights


@pytest.fixture(scope="module")
def graph():
    return pf.datasets.synthetic(0.1, n=120, n_edges=700, n_features=6, splits=1)


RECIPES = [
    {"method": "none", "regime": "heterophily", "hops": 2, "scaling": "none", "epochs": 12, "hidden": 8},
    {"method": "matching", "h": 4, "regime": "heterophily", "epochs": 12, "hidden": 8},
    {"method": "none", "hops": 1, "head": "boosting", "scaling": "columns", "epochs": 8},
]
WEIGHTS = (0.6, 0.3, 0.1)


def weighted(model):
    members = zip(model.members_, WEIGHTS, strict=True)
    model.fitted_ = replace(model.fitted_, members=tuple(replace(member, weight=w) for member, w in members))
    return model


@pytest.fixture(scope="module")
def model(graph):
    return weighted(AutoClassifier(recipes=RECIPES, choose="mean").fit(graph))


def alone(model, place):
    return replace(model.fitted_, members=(model.members_[place],)).raw()


def test_a_model_predicts_by_its_weights(model):
    expected = sum(w * np.exp(alone(model, k).astype(np.float64)) for k, w in enumerate(WEIGHTS))
    np.testing.assert_allclose(np.exp(model.fitted_.raw()), expected, atol=1e-6)


def test_what_was_chosen_is_what_is_predicted(graph):
    found = AutoClassifier(recipes=RECIPES).fit(graph)
    weights = {trial.recipe: trial.weight for trial in found.trials_ if trial.weight}
    assert {member.recipe: member.weight for member in found.members_} == weights
    assert math.fsum(weights.values()) == pytest.approx(1)
    outputs = {trial.recipe: trial.log_probabilities for trial in found.trials_}
    members = found.members_
    expected = mean_of([outputs[m.recipe] for m in members], [m.weight for m in members])
    assert np.array_equal(found.fitted_.raw(), expected)
    assert [m.weight for m in members] == sorted((m.weight for m in members), reverse=True)


def test_weights_come_back_from_files(graph, model, tmp_path):
    loaded = AutoClassifier.load(model.save(tmp_path / "model"))
    assert tuple(member.weight for member in loaded.members_) == WEIGHTS
    assert loaded.predict_proba(graph).tobytes() == model.predict_proba().tobytes()


def test_models_of_even_weights_are_plain_means(graph, model, tmp_path):
    folder = model.save(tmp_path / "model")
    change_weight(folder, 1.0)
    loaded = AutoClassifier.load(folder)
    assert [member.weight for member in loaded.members_] == [1.0, 1.0, 1.0]
    expected = mean_of([alone(model, k) for k in range(3)])
    assert loaded.fitted_.raw(graph).tobytes() == expected.tobytes()


def change_weight(folder, value):
    about = json.loads((folder / "model.json").read_text())
    for entry in about["members"]:
        if value is None:
            del entry["weight"]
        else:
            entry["weight"] = value
    del about["checksum"]
    (folder / "model.json").write_text(json.dumps({**about, "checksum": _checksum(about)}))


@pytest.mark.parametrize("hostile", [None, 0, -1, float("nan"), float("inf"), -0.0, "much", [1], {}])
def test_hostile_weights_are_refused(model, tmp_path, hostile):
    folder = model.save(tmp_path / "model")
    change_weight(folder, hostile)
    with pytest.raises(ValueError, match=r"has a member of weight|not a usable model"):
        AutoClassifier.load(folder)


def test_explanations_of_a_weighted_ensemble_add_up_to_what_is_predicted(model):
    output = np.exp(model.fitted_.raw().astype(np.float64))
    for node, one in enumerate(Explainer(model.fitted_).explain(list(range(6)))):
        p = output[node].max()
        assert one.score == pytest.approx(np.log(p / (1 - p)), abs=1e-4)
        for parts in (one.reasons, one.channels, one.columns):
            assert sum(part.contribution for part in parts) == pytest.approx(one.score - one.average, abs=1e-6)


def test_explanations_of_weighted_numbers_add_up_to_them(graph):
    numbers = graph.replace(targets=np.asarray(graph.features) @ np.arange(6.0))
    recipes = [recipe | {"regime": "all", "scaling": "columns"} for recipe in RECIPES]
    model = weighted(AutoRegressor(recipes=recipes, choose="mean").fit(numbers))
    expected = sum(w * alone(model, k) for k, w in enumerate(WEIGHTS))
    np.testing.assert_allclose(model.fitted_.raw(), expected, rtol=1e-6)
    for node, one in enumerate(Explainer(model.fitted_).explain(list(range(6)))):
        assert one.score == pytest.approx(model.fitted_.raw()[node, 0], rel=1e-5)
        assert sum(part.contribution for part in one.reasons) == pytest.approx(one.score - one.average, abs=1e-6)
