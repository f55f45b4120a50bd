"""Automatic training: recipes, their channels, the search, the choice, and models that come back from files."""

import math
import time
import zipfile
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from scipy.sparse import csr_array

import pegfan as pf
from pegfan._saved import FORMAT_VERSION
from pegfan.auto import AutoClassifier, search
from pegfan.auto.classifier import GRACE
from pegfan.auto.outcome import SEARCH, Plan, carry_out, finalists, plan_words, reserve, with_splits
from pegfan.auto.reasons import add_importances, add_reasons
from pegfan.auto.recipes import Space, baseline_recipes, difference, first_recipes, large_recipes, work
from pegfan.auto.search import Pool, Search, Task, Trial, choose, validate
from pegfan.channels import FeatureScale
from pegfan.explain import Explainer
from pegfan.fitted import mean_of
from pegfan.graph import Split
from pegfan.recipe import OWN, Recipe
from pegfan.results import Result
from pegfan.running import Deadline

QUICK = {"epochs": 12, "hidden": 8}
FULL = {
    "method": "matching",
    "h": 4,
    "regime": "all",
    "direction": "both",
    "scaling": "columns",
    "adjacency": True,
    "labels": True,
    "structure": True,
    **QUICK,
}
PLAIN = {"method": "none", "regime": "heterophily", "hops": 2, "scaling": "none", "hop_normalize": False, **QUICK}


@pytest.fixture(scope="module")
def graph():
    """Directed, with named nodes and classes, features of different scales, and unlabelled nodes."""
    made = pf.datasets.synthetic(0.1, n=120, n_edges=700, n_features=6, splits=2)
    rng = np.random.default_rng(1)
    x = np.asarray(made.features) * [1, 1, 1, 1, 1, 1000]
    labels = made.labels.copy()
    labels[rng.choice(120, 10, replace=False)] = -1
    keep = [Split(*(part[labels[part] >= 0] for part in split)) for split in made.splits]
    arcs = csr_array(np.triu(made.adjacency.toarray()))
    names = [f"n{i}" for i in range(120)]
    classes = ["red", "green", "blue", "white"]
    return pf.Graph(arcs, features=x, labels=labels, splits=keep, node_names=names, class_names=classes, directed=True)


@pytest.fixture(scope="module")
def model(graph):
    return AutoClassifier(recipes=[FULL, PLAIN], choose="mean").fit(graph)


# -------------------------------------------------------------------- recipes


def test_names_tell_the_first_recipes_apart(graph):
    recipes = first_recipes(graph, graph.subgraph(graph.splits[0].train))
    assert len({recipe.name for recipe in recipes}) == len(recipes) > 8
    assert all(recipe.scaling == "columns" for recipe in recipes), "these features are no bag of words"
    assert any(not recipe.has_tree and recipe.hops == 0 for recipe in recipes), "features alone are among them"


def test_the_order_follows_the_homophily_of_training_labels():
    half = np.repeat([0, 1], 30)
    rng = np.random.default_rng(0)
    same = [(i, int(rng.choice(np.flatnonzero(half == half[i])))) for i in range(60) for _ in range(4)]
    other = [(i, int(rng.choice(np.flatnonzero(half != half[i])))) for i in range(60) for _ in range(4)]
    regimes = []
    for edges in (same, other):
        graph = pf.Graph.from_edges(np.array(edges), n=60, labels=half, features=np.eye(60))
        listed = first_recipes(graph, graph)
        regimes.append(next(recipe.regime for recipe in listed if recipe.head == "network"))
    assert regimes == ["homophily", "heterophily"]


def drawn_from(space, count=40, seed=0):
    """Recipes of every head, and what they are varied into."""
    rng = np.random.default_rng(seed)
    drawn = [space.draw(rng, head) for head in space.heads for _ in range(count)]
    return drawn + [space.vary(recipe, rng) for recipe in drawn]


PINS = [
    {"method": "ward", "h": 3, "epochs": 7, "scaling": "l1"},
    {"method": "none", "hops": 1},
    {"hidden": 8, "lr_fc": 0.1, "patience": 5},
    {"direction": "both", "regime": "all", "labels": True},
    {"adjacency": True, "structure": False},
    {"head": "boosting", "hops": 2, "leaves": 5},
    {"head": "linear"},
    {"head": "network", "kind": "b", "method": "matching"},
    {"lr_sca": 0.3},
    {"weight": None, "class_weights": True},
]


@pytest.mark.parametrize("pins", PINS)
@pytest.mark.parametrize("large", [False, True])
def test_pins_hold_in_every_recipe_and_variation(graph, pins, large):
    listed = large_recipes if large else first_recipes
    recipes = [*listed(graph, graph, pins), *drawn_from(Space(graph, pins, True, large))]
    for recipe in recipes:
        assert recipe.changed(**pins) == recipe
        if any(name in ("hidden", "lr_fc", "lr_sca", "adjacency") for name in pins):
            assert recipe.head == "network" or (large and recipe.head == "linear"), "only these have such a setting"
    assert len(set(recipes)) > 1


def test_undirected_graphs_get_no_directions(graph):
    both = graph.symmetrize()
    recipes = [*first_recipes(both, both), *drawn_from(Space(both, {}))]
    assert {recipe.direction for recipe in recipes} == {"out"}
    assert {recipe.direction for recipe in first_recipes(graph, graph)} > {"out", "both"}
    assert {recipe.direction for recipe in drawn_from(Space(graph, {}))} == {"out", "symmetric", "both", "words"}
    pinned = drawn_from(Space(both, {"direction": "both", "method": "none", "hops": 2}))
    assert {recipe.direction for recipe in pinned} == {"both"}


def test_what_is_drawn_does_not_depend_on_how_nodes_are_numbered(graph):
    moved = graph.permute(np.random.default_rng(5).permutation(graph.n))
    assert drawn_from(Space(graph, {})) == drawn_from(Space(moved, {}))
    assert drawn_from(Space(graph, {}), seed=1) != drawn_from(Space(graph, {}))


def test_what_varies_a_recipe_changes_few_parts(graph):
    space, rng = Space(graph, {}), np.random.default_rng(0)
    for head in space.heads:
        one = space.draw(rng, head)
        others = [space.vary(one, rng) for _ in range(60)]
        assert {other.head for other in others} == {head}
        changed = [difference(one, other) for other in others]
        assert 1 <= sorted(changed)[30] <= 4, "one to three axes, and a tree brings its own"


@pytest.mark.long
@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_every_recipe_that_is_drawn_can_be_trained(graph, numeric, large):
    known = graph.replace(targets=np.asarray(graph.features)[:, 5]) if numeric else graph
    seen = set()
    pool = Pool(known, FeatureScale.of(known.features), 1)
    for recipe in drawn_from(Space(known, {}, not numeric, large), count=25, seed=2):
        quick = recipe.changed(epochs=2).settled(known, known.splits[0])
        trial = next(pool.run(iter([Task(quick, known.splits[0], 0)])))
        assert np.isfinite(trial.val_loss), quick.name
        seen.add((recipe.head, recipe.has_tree, recipe.regime))
    assert {head for head, _, _ in seen} == {"network", "boosting"}
    assert {tree for head, tree, _ in seen if head == "network"} == {False, True}


def test_difference_counts_fields_and_settings_but_not_the_clock():
    one = Recipe("ward", 4, settings={"lr_fc": 0.1})
    assert difference(one, one.changed(epochs=3, patience=2)) == 0
    assert difference(one, Recipe("ward", 8, labels=True)) == 3


def test_more_channels_are_more_work(graph):
    small, large = Recipe("none", hops=0), Recipe.of(FULL).changed(hidden=64)
    assert work(large.changed(hidden=128), graph, 5) > work(large, graph, 5)
    assert work(small, graph, 5) < work(Recipe("none"), graph, 5) < work(large, graph, 5) < work(large, graph, 9)


# ------------------------------------------------------------ search and choice


def fake(loss, metric, output, trained=True):
    output = np.log(np.asarray(output, dtype=np.float32))
    return Trial(Recipe("none", hops=int(loss * 100)), metric, loss, 10, 1.0, output, object() if trained else None)


def test_a_choice_is_the_ensemble_the_mean_or_the_best(graph):
    two = pf.Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 0])
    split = Split(np.array([0]), np.array([1, 2]), np.array([], dtype=np.int64))
    good, poor = (
        fake(0.4, 1.0, [[0.5, 0.5], [0.3, 0.7], [0.6, 0.4]]),
        fake(0.9, 0.5, [[0.5, 0.5], [0.6, 0.4], [0.95, 0.05]]),
    )
    found = choose([poor, good], two, split, 5)
    assert (found.members[0], found.how) == (good, "ensemble of 2")
    assert found.weights[0] > found.weights[1]
    single = choose([poor, good], two, split, 1)
    assert (single.members, single.weights, single.how) == ([good], [1.0], "best")
    assert "the best on validation" in single.reason
    helpful = fake(0.5, 1.0, [[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]])
    mean = choose([good, poor], two, split, 5, "mean")
    assert (mean.members, mean.weights, mean.how) == ([good, poor], [0.5, 0.5], "mean of 2")
    assert choose([good, helpful], two, split, 5, "best").how == "best"
    assert choose([good, poor, helpful], two, split, 2, "mean").members == [good, helpful], "the two of lowest loss"
    assert len(choose([good, poor, helpful], two, split, 1).members) == 1
    forgotten = fake(0.1, 1.0, [[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]], trained=False)
    assert forgotten not in choose([good, forgotten, poor], two, split, 5).members, "its weights are gone"


def test_the_mean_is_that_of_probabilities():
    a, b = np.array([[0.2, 0.8]], np.float32), np.array([[0.6, 0.4]], np.float32)
    assert np.allclose(np.exp(mean_of([np.log(a), np.log(b)])), [[0.4, 0.6]])
    assert np.isfinite(mean_of([np.array([[-200.0, 0.0]], np.float32)] * 3)).all()


def test_test_labels_do_not_matter(graph):
    shuffled = graph.labels.copy()
    test = graph.splits[0].test
    shuffled[test] = (shuffled[test] + 1) % 4
    results = [AutoClassifier(recipes=[PLAIN, FULL]).fit(g) for g in (graph, graph.replace(labels=shuffled))]
    assert np.array_equal(results[0].predict_proba(), results[1].predict_proba())
    assert results[0].reason_ == results[1].reason_


@pytest.mark.long
def test_a_search_never_sees_test_labels(graph):
    """Poisoned, they change neither what is tried, in which order, nor what is chosen with what weights."""
    test = graph.splits[0].test
    poisoned = graph.labels.copy()
    poisoned[test] = np.random.default_rng(0).permutation((poisoned[test] + 1) % 4)
    one, other = (
        AutoClassifier(budget=1000, pins=QUICK | {"method": "none", "hops": 1}).fit(known)
        for known in (graph, graph.replace(labels=poisoned))
    )
    assert len(one.ran_) > 40
    assert one.ran_ == other.ran_
    assert [(t.val_loss, t.weight) for t in one.trials_] == [(t.val_loss, t.weight) for t in other.trials_]
    assert one.reason_ == other.reason_
    assert np.array_equal(one.fitted_.raw(), other.fitted_.raw())


@pytest.mark.long
def test_a_search_without_time_tries_what_everybody_would_and_one_with_time_goes_on(graph):
    short = AutoClassifier(budget=1e-6, pins=QUICK).fit(graph)
    wanted = baseline_recipes(graph, graph.subgraph(graph.splits[0].train), QUICK)
    assert [(r.method, r.hops, r.head) for r in short.ran_] == [(r.method, r.hops, r.head) for r in wanted]
    assert all(trial.baseline for trial in short.trials_)
    long = AutoClassifier(budget=1000, pins=QUICK | {"method": "none"}).fit(graph)
    again = AutoClassifier(budget=1000, pins=QUICK | {"method": "none"}).fit(graph)
    assert len(long.trials_) >= 40, "recipes of the list, drawn ones, variations and other seeds"
    assert {c.seed for c in long.trials_} > {0, search.SEEDS}
    assert max(Counter((c.recipe, c.seed) for c in long.trials_).values()) == 1
    assert [c.recipe for c in long.trials_] == [c.recipe for c in again.trials_], "time did not bind"
    assert np.array_equal(long.predict_proba(), again.predict_proba())
    ranks = [c.rank for c in long.trials_]
    assert ranks == sorted(ranks)


def test_a_search_with_nothing_left_to_try_ends(graph):
    """Everything is pinned: one recipe, and a few seeds of it."""
    whole = Recipe.of(PLAIN)
    pins = {name: getattr(whole, name) for name in OWN} | asdict(whole.settings)
    model = AutoClassifier(budget=1000, pins=pins, workers=2).fit(graph)
    assert len(set(model.ran_)) == 1
    assert sorted(trial.seed for trial in model.trials_) == [k * search.SEEDS for k in range(len(model.ran_))]
    assert 2 <= len(model.ran_) <= 8


@pytest.mark.long
def test_what_was_found_can_be_repeated_by_its_recipes(graph):
    found = AutoClassifier(budget=1000, pins=QUICK | {"method": "none", "hops": 1}).fit(graph)
    again = AutoClassifier(recipes=found.ran_).fit(graph)
    assert [m.recipe for m in again.members_] == [m.recipe for m in found.members_]
    assert np.array_equal(again.predict_proba(), found.predict_proba())


def test_large_graphs_get_fewer_epochs(graph):
    pool = Pool(graph, FeatureScale.of(graph.features), 1)
    search = Search(pool, graph.splits[0], 0, budget=10.0, members=5)
    search.rates["network"] = 1e-6
    capped = search._planned(Recipe())
    assert 40 <= capped.settings.epochs < 1500
    search.pins = {"epochs": 1500}
    assert search._planned(Recipe()) == Recipe(), "pinned epochs stay"
    search.pins, search.rates["network"] = {}, 1e-12
    assert search._planned(capped) == Recipe(), "where there is time after all, there is no cap"


# ------------------------------------------------------------------ classifier


def test_it_learns(graph, model):
    probabilities = model.predict_proba()
    assert probabilities.shape == (120, 4)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert set(model.predict()) <= {"red", "green", "blue", "white"}
    longer = AutoClassifier(recipes=[{**FULL, "epochs": 150}]).fit(graph)
    assert longer.score() > 0.5


def test_parameters_are_those_of_scikit_learn():
    model = AutoClassifier(budget=7, pins={"h": 4})
    assert model.get_params()["budget"] == 7
    assert repr(model) == "AutoClassifier(budget=7, pins={'h': 4})"
    assert model.set_params(budget=9).budget == 9
    with pytest.raises(ValueError, match="no parameter 'budge'"):
        model.set_params(budge=1)
    with pytest.raises(ValueError, match="not fitted"):
        model.predict()


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"budget": 0}, "budget must be a positive"),
        ({"workers": 0}, "workers must be"),
        ({"choose": "worst"}, "choose must be"),
        ({"stand_in": "svd"}, "stand_in must be"),
        ({"recipes": []}, "at least one recipe"),
        ({"pins": {"hop": 2}}, "a recipe has no 'hop'"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_wrong_parameters_are_refused(graph, wrong, match):
    with pytest.raises(ValueError, match=match):
        AutoClassifier(**wrong).fit(graph)


def test_graphs_without_labels_or_validation_are_refused(graph):
    with pytest.raises(ValueError, match="no labels to learn from"):
        AutoClassifier().fit(graph.replace(labels=None))
    with pytest.raises(ValueError, match="no labelled val nodes"):
        AutoClassifier().fit(graph, (graph.splits[0].train[:1], [], graph.splits[0].test))


def test_a_graph_without_features_is_learned_by_its_degrees(graph):
    bare = graph.replace(features=None)
    model = AutoClassifier(recipes=[{**FULL, **QUICK}]).fit(bare)
    assert model.predict_proba(bare).shape == (120, 4)
    with pytest.raises(ValueError, match="no features"):
        AutoClassifier(recipes=[PLAIN], stand_in=None).fit(bare)


def test_a_loaded_model_gives_the_same_bytes(graph, model, tmp_path):
    folder = model.save(tmp_path / "model")
    loaded = AutoClassifier.load(folder)
    assert loaded.predict_proba(graph).tobytes() == model.predict_proba().tobytes()
    assert loaded.predict(graph).tolist() == model.predict(graph).tolist()
    assert loaded.score(graph) == model.score()
    assert [m.attention for m in loaded.members_] == [m.attention for m in model.members_]
    assert (loaded.how_, loaded.reason_, loaded.validation_) == (model.how_, model.reason_, model.validation_)
    with pytest.raises(ValueError, match="does not hold the graph"):
        loaded.predict()
    changed = graph.replace(adjacency=graph.adjacency + csr_array(([1.0], ([0], [7])), shape=(120, 120)))
    assert loaded.predict_proba(changed).tobytes() == model.predict_proba(changed).tobytes()
    assert not np.array_equal(model.predict_proba(changed), model.predict_proba())


def test_a_changed_graph_is_predicted_node_by_node(graph, model):
    """Nodes are told by name: leaving out the last ones keeps most of the others' predictions."""
    perm = np.random.default_rng(0).permutation(120)
    moved = model.predict_proba(graph.permute(perm))
    assert np.abs(moved - model.predict_proba()[perm]).max() < 1e-4
    part = graph.subgraph(np.arange(110))
    assert model.predict_proba(part).shape == (110, 4)
    assert (model.predict(part) == model.predict()[:110]).mean() > 0.7
    with pytest.raises(ValueError, match="5 feature columns"):
        model.predict(graph.replace(features=graph.features[:, :5]))


def test_a_model_holds_no_ids_of_nodes(graph, tmp_path):
    """Not in any of its files, packed or not; nodes are still found by their ids."""
    named = graph.replace(node_names=[f"acct-{i:04d}" for i in range(graph.n)])
    model = AutoClassifier(recipes=[{**PLAIN, "labels": True, "adjacency": True}]).fit(named)
    folder = model.save(tmp_path / "model")
    for path in folder.iterdir():
        held = path.read_bytes()
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                held = b"".join(map(archive.read, archive.namelist()))
        assert b"acct-" not in held.replace(b"\0", b""), path.name
    loaded = AutoClassifier.load(folder)
    shuffled = named.permute(np.random.default_rng(1).permutation(graph.n))
    np.testing.assert_array_equal(loaded.fitted_.known.places(shuffled), model.fitted_.known.places(shuffled))
    assert loaded.predict_proba(named).tobytes() == model.predict_proba().tobytes()
    again = AutoClassifier.load(loaded.save(tmp_path / "again"))
    assert again.fitted_.known.names == loaded.fitted_.known.names
    assert loaded.fitted_.known.labels_of(named.replace(node_names=[f"x{i}" for i in range(graph.n)])).max() == -1


def test_a_grown_graph_keeps_its_trees_and_what_is_far_from_new_nodes(graph, tmp_path):
    """Old nodes keep their places in the tree, their labels and columns; new ones have none."""
    recipes = [FULL]
    perm = np.random.default_rng(3).permutation(120)
    whole, old = graph.permute(perm), np.sort(np.random.default_rng(4).permutation(120)[:110])
    before = whole.subgraph(old)
    model = AutoClassifier(recipes=recipes).fit(before, "random")
    places = np.full(120, -1)
    places[old] = np.arange(110)
    after = model.extended(whole, places)
    known, tree = after.fitted_.known, after.members_[0].tree
    np.testing.assert_array_equal(known.codes[old], model.fitted_.known.codes)
    assert (known.codes[places < 0] == -1).all()
    assert (known.columns_of(whole)[places < 0] == -1).all()
    np.testing.assert_array_equal(tree.labels(2)[old], model.members_[0].tree.labels(2))
    assert after.predict_proba(whole).tobytes() == after.predict_proba().tobytes()
    assert (after.predict()[old] == model.predict()).mean() > 0.7
    nothing_new = model.extended(before, np.arange(110))
    assert nothing_new.predict_proba(before).tobytes() == model.predict_proba().tobytes()
    loaded = AutoClassifier.load(after.save(tmp_path / "model"))
    assert loaded.predict_proba(whole).tobytes() == after.predict_proba().tobytes()
    Explainer(after.fitted_, whole).texts([0, 1])


def test_saving_never_destroys(graph, model, tmp_path):
    folder = model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="overwrite=True"):
        model.save(folder)
    assert model.save(folder, overwrite=True) == folder
    (folder / "mine.txt").write_text("x")
    with pytest.raises(ValueError, match=r"mine\.txt"):
        model.save(folder, overwrite=True)
    assert (folder / "mine.txt").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"], "nothing is left beside it"


@pytest.mark.parametrize("name", ["weights.safetensors", "tree_0.npz", "inputs.npz", "nodes.json", "history.npz"])
def test_a_model_that_was_tampered_with_is_refused(model, tmp_path, name):
    folder = model.save(tmp_path / "model")
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(ValueError, match="checksum does not fit"):
        AutoClassifier.load(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match="not a usable model"):
        AutoClassifier.load(folder)


def test_a_model_of_another_version_or_with_an_edited_description_is_refused(model, tmp_path):
    folder = model.save(tmp_path / "model")
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text.replace(f'"version": {FORMAT_VERSION}', '"version": 99', 1))
    with pytest.raises(ValueError, match=f"version 99, and this pegfan reads {FORMAT_VERSION}: train again"):
        AutoClassifier.load(folder)
    (folder / "model.json").write_text(text.replace('"columns": 6', '"columns": 7'))
    with pytest.raises(ValueError, match="was changed"):
        AutoClassifier.load(folder)
    with pytest.raises(ValueError, match="is not a saved model"):
        AutoClassifier.load(tmp_path)


def test_unlabelled_nodes_in_a_split_are_left_out(graph):
    everything = Split(np.arange(0, 60), np.arange(60, 90), np.arange(90, 120))
    model = AutoClassifier(recipes=[PLAIN]).fit(graph, everything)
    assert (model.fitted_.known.codes[:60] >= 0).sum() == (graph.labels[:60] >= 0).sum()


# --------------------------------------------------------------------- outcome


def test_large_features_are_not_explained_unasked_and_the_result_says_so(monkeypatch):
    """One node of a million takes seconds and as much memory as all hops."""
    graph = pf.datasets.synthetic(0.1, n=120, n_edges=500, n_features=8, splits=1)

    def run():
        outcome = carry_out(graph, Plan(recipes=[Recipe.of(PLAIN)], splits=1))
        assert not outcome.result.reasons
        assert outcome.result.importances is None
        fitted = outcome.model.fitted_
        return add_reasons(add_importances(outcome.result, fitted, outcome.graph), fitted, outcome.graph)

    plain = run()
    assert plain.reasons
    assert plain.importances is not None
    monkeypatch.setattr("pegfan.auto.reasons.EXPLAINED", 8 * 120 - 1)
    large = run()
    assert not large.reasons
    assert large.importances is None
    assert any("pegfan explain" in note.text for note in large.warnings)
    assert large.test == plain.test


def test_an_outcome_holds_what_a_report_shows(graph):
    outcome = carry_out(graph, Plan(recipes=[Recipe.of(PLAIN), Recipe.of(FULL)], splits=2))
    assert outcome.probabilities.tobytes() == outcome.model.predict_proba().tobytes()
    result = outcome.result
    assert Result.from_json(result.to_json()) == result
    assert np.shape(result.confusion) == (4, 4)
    assert np.sum(result.confusion) == len(graph.splits[0].test)
    assert result.test.per_split[0] == pytest.approx(outcome.model.score(graph, 0))
    assert len(result.test.per_split) == 2
    assert outcome.result.splits.used == (0, 1)
    assert [len(part) for part in outcome.graph.splits[0]] == [len(part) for part in graph.splits[0]]
    assert sum(candidate.chosen for candidate in result.candidates) == len(outcome.model.members_)
    assert {"tiny test set", "unlabelled nodes"} <= {note.kind for note in result.warnings}
    assert len(result.unsure) == 20
    labels = graph.labels[graph.splits[0].test]
    most = np.bincount(graph.labels[graph.splits[0].train]).argmax()
    assert result.majority.per_split[0] == pytest.approx((labels == most).mean())
    assert 0 < result.features_only.mean < 1
    assert outcome.parts.count("none") == 10


def test_the_plan_says_what_the_time_is_spent_on(graph):
    one = graph.replace(splits=graph.splits[:1])
    assert plan_words(one, Plan(budget=100)) == (
        "Budget 100 s on 1 core: 90 s to find recipes on split 0, 10 s for reasons and the report"
    )
    assert plan_words(graph, Plan(budget=100, workers=2, split=1)) == (
        "Budget 100 s on 2 cores: 45 s to find recipes on split 1 of 2 splits, 45 s to train the best ones on the "
        "others, 10 s for reasons and the report"
    )
    assert "on the first of 5 folds" in plan_words(graph.replace(splits=()), Plan())
    fixed = plan_words(graph, Plan(recipes=[Recipe(), Recipe(h=4)]))
    assert fixed == "2 recipes on split 0 of 2 splits, then some of them on the others"
    assert plan_words(one, Plan(recipes=[Recipe()])) == "1 recipe on split 0"
    with pytest.raises(ValueError, match="there is no split 2: the graph has splits 0 to 1"):
        plan_words(graph, Plan(split=2))


def test_splits_are_drawn_where_there_are_none(graph):
    drawn, made = with_splits(graph.replace(splits=()), Plan(splits=3))
    assert made
    assert len(drawn.splits) == 5
    tested = np.sort(np.concatenate([part.test for part in drawn.splits]))
    assert np.array_equal(tested, np.flatnonzero(graph.labels >= 0)), "folds: each is tested once"
    few = graph.replace(splits=(), labels=np.where(np.arange(120) < 12, graph.labels, -1))
    assert len(with_splits(few, Plan(splits=2))[0].splits) == 3, "too few for folds"
    kept, made = with_splits(graph, Plan())
    assert not made
    assert all(np.array_equal(a, b) for a, b in zip(kept.splits[0], graph.splits[0], strict=True))
    part = graph.splits[0]
    without = graph.replace(splits=[Split(part.train, part.val[:0], part.test)])
    carved = with_splits(without, Plan())[0].splits[0]
    assert len(carved.val) > 0
    assert set(carved.train) | set(carved.val) == set(part.train)


def test_one_class_or_none_is_refused(graph):
    with pytest.raises(ValueError, match="no node has a label"):
        with_splits(graph.replace(labels=np.full(120, -1), class_names=None), Plan())
    with pytest.raises(ValueError, match="all 120 labelled nodes are of the class '0'"):
        with_splits(graph.replace(labels=np.zeros(120, int), class_names=None), Plan())


def test_score_comes_back_to_the_split_that_was_fitted(tmp_path):
    graph = pf.datasets.synthetic(0.0, n=200, n_edges=1200, n_features=10, splits=3)
    model = pf.AutoClassifier(recipes=[{"method": "none", "hops": 2, "epochs": 15}]).fit(graph, split=2)
    assert model.score(graph) == model.score(graph, split=2)
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    assert type(loaded) is pf.AutoClassifier
    assert loaded.score(graph) == model.score(graph, split=2)


WILD = {**PLAIN, "lr_fc": 1e30, "lr_sca": 1e30}


def test_a_recipe_that_diverges_does_not_end_the_search(graph):
    model = AutoClassifier(recipes=[WILD, PLAIN]).fit(graph)
    assert [trial.val_loss == np.inf for trial in model.trials_] == [False, True]
    assert model.predict_proba().shape == (120, 4)
    with pytest.raises(pf.training.Diverged, match="all 1 recipes"):
        AutoClassifier(recipes=[WILD]).fit(graph)


def test_a_recipe_that_is_listed_again_has_another_seed(graph):
    model = AutoClassifier(recipes=[PLAIN, FULL, PLAIN, PLAIN], choose="mean", random_state=3).fit(graph)
    by_seed = {trial.seed: trial for trial in model.trials_ if trial.recipe == Recipe.of(PLAIN)}
    assert sorted(by_seed) == [3, 3 + search.SEEDS, 3 + 2 * search.SEEDS]
    assert len({trial.val_loss for trial in by_seed.values()}) == 3
    alone = AutoClassifier(recipes=[PLAIN], random_state=3 + search.SEEDS).fit(graph)
    assert np.array_equal(alone.fitted_.raw(), by_seed[3 + search.SEEDS].log_probabilities)
    again = AutoClassifier(recipes=model.ran_, choose="mean", random_state=3).fit(graph)
    assert np.array_equal(again.fitted_.raw(), model.fitted_.raw())


def test_threads_give_what_one_worker_gives(graph):
    recipes = [PLAIN, FULL, PLAIN, {**FULL, "hops": 1}, {**PLAIN, "head": "boosting"}, {**PLAIN, "hops": 0}]
    one, three = (AutoClassifier(recipes=recipes, workers=workers).fit(graph) for workers in (1, 3))
    assert one.ran_ == three.ran_
    for mine, other in zip(one.trials_, three.trials_, strict=True):
        assert (mine.recipe, mine.seed, mine.place, mine.weight) == (
            other.recipe,
            other.seed,
            other.place,
            other.weight,
        )
        assert mine.log_probabilities.tobytes() == other.log_probabilities.tobytes()
    assert one.reason_ == three.reason_
    assert one.fitted_.raw().tobytes() == three.fitted_.raw().tobytes()


@pytest.mark.parametrize("drawn", [False, True])
def test_other_splits_choose_by_themselves_and_repeat(graph, drawn):
    known = graph.replace(splits=()) if drawn else graph
    recipes = [Recipe.of(recipe) for recipe in (PLAIN, FULL, {**PLAIN, "hops": 0}, PLAIN)]
    plan = Plan(recipes=recipes, splits=2, budget=600)
    outcome = carry_out(known, plan)
    assert outcome.finalists is not None
    assert sorted(outcome.finalists) == [0, 1, 2, 3], "there is time for all of them"
    # By hand: what is trained on the second split, and chosen on its validation nodes.
    part, trials = outcome.graph.splits[1], []
    pool = Pool(outcome.graph, FeatureScale.of(graph.features), 1)
    for place in outcome.finalists:
        seed = 1 + (search.SEEDS if place == 3 else 0)  # the fourth is the first again
        trials += pool.run(iter([Task(outcome.model.ran_[place], part, seed)]))
    choice = choose(trials, outcome.graph, part, 10)
    if drawn:
        own = [member for member in outcome.model.fitted_.members if member.fold == 1]
        assert [member.recipe for member in own] == [trial.recipe for trial in choice.members]
        assert [member.weight for member in own] == choice.weights
        assert "every other fold chooses in the same way" in outcome.model.reason_
    folds = {member.fold for member in outcome.model.fitted_.members}
    assert folds == ({0, 1} if drawn else {0}), "the model of given splits is that of one of them"
    told, weights = Counter(), Counter()
    for candidate in outcome.result.candidates:
        told[candidate.recipe] += candidate.weight
    for member in outcome.model.fitted_.members:
        weights[member.recipe] += member.weight / len(folds)
    assert +told == pytest.approx(weights)
    expected = validate(choice.output, outcome.graph, part)[0]
    assert outcome.result.validation.per_split[1] == expected
    fixed = Plan(recipes=outcome.model.ran_, splits=2, budget=0.1, finalists=outcome.finalists, workers=2)
    again = carry_out(known, fixed)
    assert again.probabilities.tobytes() == outcome.probabilities.tobytes()
    assert again.model.reason_ == outcome.model.reason_
    assert again.result.test == outcome.result.test


def test_what_is_kept_predicts_what_was_judged_whatever_ties(graph):
    """Three with equal weights: in whichever order they are summed, it is one order."""
    recipes = [Recipe.of({**PLAIN, "hops": hops}) for hops in (0, 2, 1)]
    outcome = carry_out(graph, Plan(recipes=recipes, splits=1, choose="mean"))
    assert len(outcome.model.members_) == 3
    assert outcome.probabilities.tobytes() == outcome.model.predict_proba().tobytes()
    assert [entry.member for entry in outcome.result.attention] == [m.recipe.name for m in outcome.model.members_]


def trial_of(loss, weight, cost, hops):
    output = np.zeros((1, 2), np.float32)
    recipe = Recipe("none", hops=hops)
    return Trial(recipe, 0.5, loss, 1, cost, output, object(), weight=weight, place=hops, cpu=cost)


def test_finalists_are_the_members_and_what_has_the_lowest_loss_as_time_allows():
    heavy, light, low, high = (
        trial_of(*about) for about in ((0.5, 0.7, 4.0, 0), (0.6, 0.3, 3.0, 1), (0.3, 0.0, 2.0, 2), (0.9, 0.0, 1.0, 3))
    )
    every = [high, light, low, heavy]
    assert finalists(every, 10.0) == [heavy, light, low, high]
    assert finalists(every, 8.0) == [heavy, light, high], "the one of lowest loss does not fit, a cheaper one does"
    assert finalists(every, 3.5) == [light], "the heaviest does not fit"
    assert finalists(every, 0.0) == [light], "one is trained in any case: the cheapest of the model"
    diverged = trial_of(math.inf, 0.0, 0.1, 4)
    assert diverged not in finalists([*every, diverged], 100.0)


@pytest.mark.long
@pytest.mark.parametrize("splits", [1, 3])
def test_the_budget_is_spent(splits):
    """On a graph that keeps a search busy: all of it with one split, and at most a training longer."""
    graph = pf.datasets.synthetic(0.2, n=2500, n_edges=30_000, n_features=200, splits=splits)
    seen, budget = [], 20.0
    plan = Plan(budget=budget, splits=splits, workers=2)
    start = time.perf_counter()
    outcome = carry_out(graph, plan, progress=lambda step: seen.append((time.perf_counter() - start, step)))
    searching = [at for at, step in seen if not step.text]
    whole = budget - reserve(graph, budget)
    share = 1.0 if splits == 1 else SEARCH
    assert searching[-1] >= 0.85 * share * whole
    assert searching[-1] <= share * whole + 2 * GRACE
    assert time.perf_counter() - start <= budget + 3 * GRACE
    assert len(outcome.result.splits.used) == splits
    assert len(outcome.model.ran_) >= 2


@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_in_threads_keeps_the_best(graph, monkeypatch, workers):
    real, calls = search.wait, []

    def ctrl_c(*args, **kwargs):
        calls.append(0)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(search, "wait", ctrl_c)
    model = AutoClassifier(budget=1000, pins=QUICK | {"method": "none"}, workers=workers).fit(graph)
    assert "Ctrl-C ended the search, and this is the best until then" in model.reason_
    assert 5 <= len(model.ran_) <= 6 * workers, "every one of five waits ended for one training or more"
    assert sum(trial.weight for trial in model.trials_) == pytest.approx(1)
    again = AutoClassifier(recipes=model.ran_).fit(graph)
    assert again.fitted_.raw().tobytes() == model.fitted_.raw().tobytes()


@pytest.mark.parametrize("waits", [2, 4])
def test_ctrl_c_in_a_search_is_the_end_of_it_and_there_is_a_result(graph, monkeypatch, waits):
    real, calls = search.wait, []

    def ctrl_c(*args, **kwargs):
        calls.append(0)
        if len(calls) == waits:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(search, "wait", ctrl_c)
    found = carry_out(graph, Plan(budget=1000, pins=QUICK | {"method": "none"}, splits=2, workers=1))
    assert "Ctrl-C ended the search" in found.model.reason_
    assert found.result.splits.used == (0,)
    assert found.result.features_only.mean is not None


def test_who_wants_no_more_results_ends_the_trainings_that_run(graph, monkeypatch):
    """As Ctrl-C does while a result is looked at: each ends after its epoch, and nobody waits for the rest of them."""
    ended, real = [], search.run_task

    def noted(shared, task):
        ended.append(real(shared, task))
        return ended[-1]

    monkeypatch.setattr(search, "run_task", noted)
    short = Recipe("none", hops=0, head="constant")
    long = Recipe("none", hops=1).changed(epochs=100_000, patience=100_000, hidden=4)
    pool = Pool(graph, None, 2, until=Deadline(1000.0))
    results = pool.run(iter([Task(recipe, graph.splits[0], 0) for recipe in (short, long)]))
    assert next(results).recipe == short
    results.close()
    assert [trial.epochs < 100_000 for trial in ended] == [True, True]


def test_a_report_shows_the_parts_of_splits_that_were_drawn(graph):
    outcome = carry_out(graph.replace(splits=()), Plan(recipes=[Recipe.of(PLAIN)], splits=2))
    part = outcome.graph.splits[0]
    assert [outcome.parts[i] for i in part.test] == ["fold 1"] * len(part.test)
