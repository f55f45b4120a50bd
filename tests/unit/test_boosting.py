"""Gradient boosting on channels: against a plain twin, renumbered, weighted, explained, saved, from hostile files."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan.auto.outcome import Plan, carry_out
from pegfan.auto.search import Trial, choose, validate
from pegfan.channels import Channel, Channels
from pegfan.datasets import fold_splits
from pegfan.explain import Explainer
from pegfan.graph import Split
from pegfan.importance import permutation_importance
from pegfan.recipe import Known, Recipe
from pegfan.training import boosting
from pegfan.training.boosting import Boosted, boost
from pegfan.training.linear import fit_linear
from support.training import train_recipe

BOOSTED = Recipe(method="none", hops=1, head="boosting", labels=True, structure=True).changed(epochs=12)
NOTHING = np.empty(0, np.int64)


@pytest.fixture(scope="module")
def graph() -> pf.Graph:
    return pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=12)


def columns(x) -> Channels:
    return Channels([Channel("X", None, np.asarray(x, float))])


# ------------------------------------------------------------------------ the trees


def plain_tree(x, g, h, leaves, fewest):
    """The same mathematics by trying every threshold of every column, the leaf of largest gain first."""

    def best(rows):
        G, H, found = g[rows].sum(), h[rows].sum(), (1e-9, None, None)
        for j in range(x.shape[1]):
            values = np.unique(x[rows, j])
            for low, high in itertools.pairwise(values):
                t = (low + high) / 2
                left = rows[x[rows, j] <= t]
                if min(len(left), len(rows) - len(left)) < fewest:
                    continue
                a, c = g[left].sum(), h[left].sum()
                gain = a * a / (c + 1) + (G - a) ** 2 / (H - c + 1) - G * G / (H + 1)
                if gain > found[0] * (1 + 1e-9):
                    found = (gain, j, t)
        return found

    parts = [np.arange(len(x))]
    while len(parts) < leaves:
        found = [best(rows) for rows in parts]
        k = int(np.argmax([gain for gain, _, _ in found]))
        if found[k][1] is None:
            break
        rows, (_, j, t) = parts.pop(k), found[k]
        parts += [rows[x[rows, j] <= t], rows[x[rows, j] > t]]
    out = np.empty(len(x))
    for rows in parts:
        out[rows] = -boosting.RATE * g[rows].sum() / (h[rows].sum() + 1)
    return out


@pytest.mark.parametrize("classes", [2, 3])
def test_rounds_are_those_of_a_plain_twin(classes, monkeypatch):
    monkeypatch.setattr(boosting, "COLUMNS", 1.0)
    rng = np.random.default_rng(3)
    x = rng.integers(0, 40, size=(150, 4)).astype(float)
    y = (x[:, 0] > 20).astype(int) + (classes == 3) * (x[:, 1] > 25)
    y[rng.integers(0, 150, 15)] = 0
    train, val = np.arange(110), np.arange(110, 150)
    run = boost(columns(x), y, Split(train, val, NOTHING), {"epochs": 4}, leaves=5, classes=classes)
    model = Boosted(run.state)
    # The twin, on the training rows in any order.
    logits = np.tile(model.state["base"], (110, 1))
    fewest = max(3, min(20, 110 // 40))
    for _ in range(len(model.state["column"]) // model.outputs):
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        steps = []
        for k in [1] if classes == 2 else range(classes):
            h = p[:, k] * (1 - p[:, k]) * (1 if classes == 2 else 1.5)
            steps.append(plain_tree(x[train], p[:, k] - (y[train] == k), h, 5, fewest))
        logits[:, [1] if classes == 2 else slice(None)] += np.array(steps).T
    np.testing.assert_allclose(model.logits(x[train].astype(np.float32)), logits, atol=1e-5)


def test_thresholds_are_found_that_no_line_shows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(2000, 3))
    y = ((np.abs(x[:, 0]) < 0.5) ^ (x[:, 1] > 0)).astype(int)
    run = boost(columns(x), y, Split(np.arange(1000), np.arange(1000, 1500), np.arange(1500, 2000)))
    assert run.test_metric > 0.95
    shares = boosting.channel_shares(run.state["gains"], (1, 1, 1))
    assert shares[2] < 0.1
    assert abs(shares.sum() - 1) < 1e-6


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=600))
def test_thresholds_lie_between_values_that_occur(values):
    x = np.array(values, np.float32)
    edges = boosting._edges(x)
    found = np.unique(x)
    assert len(edges) <= 254
    assert (np.diff(edges) > 0).all()
    for edge in edges:  # something is on both sides of every one
        assert found[0] <= edge < found[-1]
    if len(found) <= 255:
        assert len(edges) == len(found) - 1


def test_renumbering_changes_no_bit(graph):
    order = np.random.default_rng(1).permutation(graph.n)
    moved = graph.permute(order)
    one, _ = train_recipe(BOOSTED, graph, 0, seed=0)
    other, there = train_recipe(BOOSTED, moved, 0, seed=0)
    assert {name: a.tobytes() for name, a in one.run.state.items()} == {
        name: a.tobytes() for name, a in other.run.state.items()
    }
    here = BOOSTED.settled(graph, 0).channels(graph, None)
    first, second = one.network.predict(here), other.network.predict(there)
    assert (first[order].tobytes() == second.tobytes()) or (first.tobytes() == second[order].tobytes())


def test_nodes_without_weight_are_not_there(graph):
    weights = np.ones(graph.n)
    part = graph.splits[0]
    weights[part.train[:40]] = 0
    weighted, channels = train_recipe(BOOSTED.changed(labels=False), graph, part, 0, sample_weight=weights)
    without, _ = train_recipe(BOOSTED.changed(labels=False), graph, part._replace(train=part.train[40:]), 0)
    assert weighted.network.predict(channels).tobytes() == without.network.predict(channels).tobytes()


def test_labels_of_test_nodes_change_nothing(graph):
    part = graph.splits[0]
    labels = graph.labels.copy()
    labels[part.test] = (labels[part.test] + 1) % graph.n_classes
    one, channels = train_recipe(BOOSTED, graph, 0, 0)
    other, _ = train_recipe(BOOSTED, graph.replace(labels=labels), 0, 0)
    assert one.network.predict(channels).tobytes() == other.network.predict(channels).tobytes()


# ---------------------------------------------------------------------- as a recipe


def test_a_recipe_without_boosting_has_the_key_that_it_had():
    assert "head" not in Recipe().to_dict()
    assert "leaves" not in Recipe().to_dict()
    assert Recipe(leaves=31) == Recipe()
    boosted = Recipe(head="boosting", leaves=31).changed(dropout=0.9, class_weights=True)
    assert boosted.settings.dropout == Recipe().settings.dropout
    assert boosted.settings.class_weights
    assert Recipe.of(boosted.to_dict()) == boosted
    assert "boosted leaves=31" in boosted.name
    with pytest.raises(ValueError, match="rows of the adjacency are for networks"):
        Recipe(head="boosting", adjacency=True)


def test_saved_trees_predict_the_same(graph, tmp_path):
    model = pf.RecipeClassifier(BOOSTED).fit(graph)
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    assert loaded.predict_proba(graph).tobytes() == model.predict_proba(graph).tobytes()
    assert loaded.attention_ == pytest.approx(model.attention_)
    with pytest.raises(ValueError, match="boosted trees, which torch has no module for"):
        model.to_torch()


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("child", lambda a: np.where(a >= 0, 0, a), "children come after their parents"),
        ("child", lambda a: np.where(a >= 0, a + 1000, a), "children come after their parents"),
        ("child", lambda a: np.where(a >= 0, np.iinfo(np.int32).max, a), "children come after their parents"),
        ("column", lambda a: a + 10_000, "columns that their channels do not have"),
        ("value", lambda a: a * np.nan, "value of boosted trees must hold finite numbers"),
        ("gains", lambda a: np.full_like(a, np.inf), "gains of boosted trees must hold finite numbers"),
        ("value", lambda a: a[:, :2], "do not fit each other"),
        ("gains", lambda a: a[:1], "do not fit their channels"),
        ("base", lambda a: a.astype(np.float32), "base of boosted trees is float32"),
    ],
)
def test_hostile_trees_are_refused(graph, name, change, told):
    trained, _ = train_recipe(BOOSTED, graph, 0, 0)
    with pytest.raises(ValueError, match=told):
        Boosted(
            {
                **trained.run.state,
                name: change(trained.run.state[name]).astype(trained.run.state[name].dtype)
                if name != "base"
                else change(trained.run.state[name]),
            }
        )
    state = dict(trained.run.state)
    del state["gains"]
    with pytest.raises(ValueError, match="boosted trees have the arrays"):
        Boosted(state)


def test_trees_that_claim_to_be_long_are_refused_before_memory_is_taken(graph):
    """Of no trees at all, the shape may be anything."""
    trained, _ = train_recipe(BOOSTED, graph, 0, 0)
    state = trained.run.state
    empty = {name: np.empty((0, 2**50), state[name].dtype) for name in ("column", "threshold", "child", "value")}
    with pytest.raises(ValueError, match="do not fit each other"):
        Boosted(state | empty)


def test_rows_are_as_wide_as_the_trees_ask():
    x = np.arange(60.0).reshape(30, 2)
    run = boost(columns(x), (x[:, 0] > 20).astype(int), Split(np.arange(0, 30, 2), np.arange(1, 30, 2), NOTHING))
    model, rows = Boosted(run.state), x.astype(np.float32)
    for say in (model.logits, model.shares):
        for wrong in (rows[:, :1], rows[0], rows[:, :0]):
            with pytest.raises(ValueError, match=r"x must have the shape \(any, 2\)"):
                say(wrong)
        with pytest.raises(TypeError, match="x must hold real numbers"):
            say(rows.astype(str))
    expected = model.logits(rows)
    for same in (x, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(model.logits(same), expected)
        np.testing.assert_array_equal(model.shares(same)[1], model.shares(rows)[1])


@pytest.mark.parametrize("fit", [boost, fit_linear])
def test_training_needs_training_nodes(fit):
    with pytest.raises(ValueError, match="split has no train nodes"):
        fit(columns(np.ones((4, 1))), np.array([0, 1, 0, 1]), Split(NOTHING, np.arange(4), NOTHING))


# -------------------------------------------------------------------------- reasons


def test_shares_of_columns_add_up(graph):
    trained, channels = train_recipe(BOOSTED, graph, 0, 0)
    rows = boosting.dense_rows(channels, np.arange(20))
    logits, shares = trained.network.shares(rows)
    np.testing.assert_allclose(trained.network.average + shares.sum(axis=2), logits, atol=1e-10)


@pytest.mark.parametrize("recipes", [[BOOSTED], [BOOSTED, Recipe(method="none").changed(epochs=10)]])
def test_reasons_add_up_exactly(graph, recipes):
    model = pf.AutoClassifier(recipes=recipes, choose="mean").fit(graph)
    explainer = Explainer(model.fitted_)
    raw = model.fitted_.raw()
    for found in explainer.explain([0, 7, 44]):
        whole = found.score - found.average
        p = np.exp(raw[found.node].astype(float))[explainer.classes.index(found.target)]
        assert found.score == pytest.approx(np.log(p / (1 - p)), abs=1e-4)
        assert sum(part.contribution for part in found.columns) == pytest.approx(whole, abs=1e-8)
        assert sum(part.contribution for part in found.channels) == pytest.approx(whole, abs=1e-8)
        nodes = sum(part.contribution for part in found.nodes) + sum(found.rest.values())
        assert nodes == pytest.approx(whole, abs=1e-8)
        assert sum(part.contribution for part in found.reasons) == pytest.approx(whole, abs=1e-8)
    texts = explainer.texts([0, 7])
    assert len(texts) == 2
    assert all(";" in text for text in texts)


def test_importance_finds_the_column_that_matters():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    graph = pf.Graph.from_edges(rng.integers(600, size=(900, 2)), n=600, features=x, feature_names=["a", "b", "c"])
    graph = graph.replace(labels=(np.abs(x[:, 1]) < 0.7).astype(int))
    graph = graph.replace(splits=fold_splits(graph.labels)[:1])
    model = pf.RecipeClassifier(Recipe(method="none", hops=0, scaling="columns", head="boosting")).fit(graph)
    rows, _ = permutation_importance(
        Explainer(model.fitted_), graph.labels, graph.splits[0].test, "accuracy", repeats=2
    )
    assert rows[0].name == "b"
    assert rows[0].drop > 0.2
    assert abs(rows[1].drop) < 0.05


# ---------------------------------------------------------------------------- folds


@given(st.lists(st.integers(-1, 3), min_size=12, max_size=120), st.integers(3, 7), st.integers(0, 5))
def test_every_labelled_node_is_tested_once(labels, k, seed):
    codes = np.array(labels)
    counts = np.bincount(codes[codes >= 0], minlength=4) if (codes >= 0).any() else np.zeros(4, int)
    if not counts.sum():
        return
    splits = fold_splits(codes, k=k, seed=seed)
    tested = np.concatenate([split.test for split in splits])
    common = np.flatnonzero((codes >= 0) & (counts[np.maximum(codes, 0)] >= 3))
    assert sorted(tested.tolist()) == common.tolist()
    assert sorted(np.concatenate([split.val for split in splits]).tolist()) == common.tolist()
    for split in splits:
        assert sorted(np.concatenate(split).tolist()) == np.flatnonzero(codes >= 0).tolist()
        for c in range(4):  # every class that can be is in all folds alike
            if counts[c] >= 3:
                assert abs((codes[split.test] == c).sum() - counts[c] / k) < 1


def test_a_member_knows_the_labels_of_its_own_fold(graph):
    part = graph.splits[0]
    known = Known.of_folds(graph, [part, Split(part.val, part.test, part.train)])
    assert np.array_equal(np.flatnonzero(known.of_fold(1).codes >= 0), np.sort(part.val))
    assert (known.held_out(graph)[part.test] == 0).all()
    assert (known.held_out(graph)[part.train] == 1).all()
    assert (known.held_out(graph)[part.val] == -1).all()
    assert np.array_equal(known.of_fold(0).codes, Known.of(graph, part.train).codes)
    assert Known.of(graph, part.train).folds is None


@pytest.mark.long
def test_a_bag_of_folds_is_saved_and_its_labelled_nodes_are_held_out(graph, tmp_path: Path):
    labels = graph.labels.copy()
    labels[:60] = -1
    bare = graph.replace(splits=(), labels=labels)
    recipes = [BOOSTED, Recipe(method="none", labels=True).changed(epochs=20)]
    outcome = carry_out(bare, Plan(recipes=recipes, choose="mean", splits=5, budget=60.0))
    model = outcome.model
    assert len(model.fitted_.members) == 10
    assert "over 5 folds" in model.how_
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    probabilities = loaded.predict_proba(bare)
    assert probabilities.tobytes() == model.predict_proba().tobytes()
    assert outcome.probabilities.tobytes() == probabilities.tobytes()
    found = Explainer(model.fitted_).explain([3, 100])  # a node without a label, and one with
    raw = np.exp(model.fitted_.raw().astype(float))
    for one in found:
        p = raw[one.node, int(np.flatnonzero([one.target == name for name in Explainer(model.fitted_).classes])[0])]
        assert one.score == pytest.approx(np.log(p / (1 - p)), abs=1e-4)
        assert sum(part.contribution for part in one.reasons) == pytest.approx(one.score - one.average, abs=1e-8)
    assert [outcome.parts[i] for i in range(60)] == ["none"] * 60
    assert {part[:4] for part in outcome.parts[60:]} == {"fold"}
    # A labelled node has the prediction of the members that did not see it, and of no others.
    fitted = model.fitted_
    for fold, split in enumerate(outcome.graph.splits):
        own = tuple(member for member in fitted.members if member.fold == fold)
        alone = replace(fitted, members=own, known=fitted.known.of_fold(fold)).raw()
        assert alone[split.test].tobytes() == fitted.raw()[split.test].tobytes()
        assert alone[split.train].tobytes() != fitted.raw()[split.train].tobytes()
    # What is said of a fold's test nodes does not change with their labels.
    test = outcome.graph.splits[0].test
    turned = labels.copy()
    turned[test] = (turned[test] + 1) % graph.n_classes
    splits = outcome.graph.splits
    other = pf.AutoClassifier(recipes=recipes, choose="mean").fit(bare.replace(labels=turned, splits=splits))
    told = pf.AutoClassifier(recipes=recipes, choose="mean").fit(bare.replace(splits=splits))
    assert other.fitted_.raw()[test].tobytes() == told.fitted_.raw()[test].tobytes()


@pytest.mark.long
def test_boosting_and_networks_are_chosen_fold_by_fold(graph):
    bare = graph.replace(splits=())
    recipes = [BOOSTED, BOOSTED.changed(leaves=2), Recipe(method="none").changed(epochs=20)]
    outcome = carry_out(bare, Plan(recipes=recipes, splits=4, budget=600.0))
    model, ran = outcome.model, outcome.model.ran_
    assert {ran[place].head for place in outcome.finalists} == {"boosting", "network"}
    # By hand: all are trained on every fold, and what does best together on its validation nodes is its part.
    for i, part in enumerate(outcome.graph.splits[:4]):
        unseen, trials = Split(part.train, part.val, NOTHING), []
        for place in range(3) if i == 0 else outcome.finalists:
            trained, channels = train_recipe(ran[place], outcome.graph, unseen, i)
            output = trained.network.predict(channels)
            trials.append(Trial(ran[place], *validate(output, bare, part), 1, 1.0, output, trained))
        choice = choose(trials, outcome.graph, part, 10)
        own = [member for member in model.fitted_.members if member.fold == i]
        assert [member.recipe for member in own] == [trial.recipe for trial in choice.members]
        assert [member.weight for member in own] == choice.weights
        assert outcome.result.validation.per_split[i] == validate(choice.output, bare, part)[0]
    again = carry_out(bare, Plan(recipes=ran, finalists=outcome.finalists, splits=4, budget=0.1))
    assert again.probabilities.tobytes() == outcome.probabilities.tobytes()
    assert again.model.reason_ == model.reason_


def test_what_is_given_is_not_compared_again(graph):
    outcome = carry_out(graph, Plan(recipes=[BOOSTED, BOOSTED.changed(leaves=2)], splits=1, budget=600.0))
    assert outcome.finalists is None
