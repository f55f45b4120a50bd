"""Automatic training: recipes, their channels, the search, the choice, and models that come back from files."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_array

import pegfan as pf
from pegfan._saved import _checksum
from pegfan.auto import AutoClassifier, search
from pegfan.auto.outcome import Plan, carry_out, with_splits
from pegfan.auto.recipes import Space, difference, first_recipes, work
from pegfan.auto.search import Pool, Search, Trial, choose
from pegfan.channels import FeatureScale
from pegfan.explain import Explainer
from pegfan.fitted import mean_of
from pegfan.graph import Split
from pegfan.recipe import Recipe
from pegfan.results import Result
from pegfan.running import Runner

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
        regimes.append(first_recipes(graph, graph)[0].regime)
    assert regimes == ["homophily", "heterophily"]


def test_pins_hold_in_every_recipe_and_variation(graph):
    pins = {"method": "ward", "h": 3, "epochs": 7, "scaling": "l1"}
    recipes = first_recipes(graph, graph, pins)
    recipes += [v.changed(**pins) for recipe in recipes for v in variations(recipe)]
    assert {(r.method, r.h, r.scaling, r.settings.epochs) for r in recipes} == {("ward", 3, "l1", 7)}


def test_undirected_graphs_get_no_directions(graph):
    both = first_recipes(graph.symmetrize(), graph.symmetrize())
    assert {recipe.direction for recipe in both} == {"out"}
    assert {recipe.direction for recipe in first_recipes(graph, graph)} > {"out", "both"}


def test_difference_counts_fields_and_settings_but_not_the_clock():
    one = Recipe("ward", 4, settings={"lr_fc": 0.1})
    assert difference(one, one.changed(epochs=3, patience=2)) == 0
    assert difference(one, Recipe("ward", 8, labels=True)) == 3


def test_more_channels_are_more_work(graph):
    small, large = Recipe("none", hops=0), Recipe.of(FULL)
    assert work(small, graph, 5) < work(Recipe("none"), graph, 5) < work(large, graph, 5) < work(large, graph, 9)


# ------------------------------------------------------------ search and choice


def fake(loss, metric, output):
    output = np.log(np.asarray(output, dtype=np.float32))
    return Trial(Recipe("none", hops=int(loss * 100)), metric, loss, 10, 1.0, output, None)


def test_the_mean_is_taken_only_if_it_beats_the_best(graph):
    two = pf.Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 0])
    split = Split(np.array([0]), np.array([1, 2]), np.array([], dtype=np.int64))
    good, poor = (
        fake(0.4, 1.0, [[0.5, 0.5], [0.3, 0.7], [0.6, 0.4]]),
        fake(0.9, 0.5, [[0.5, 0.5], [0.9, 0.1], [0.9, 0.1]]),
    )
    chosen, how, why = choose([poor, good], two, split, 5)
    assert (chosen, how) == ([good], "best")
    assert "the best on validation" in why
    helpful = fake(0.5, 1.0, [[0.5, 0.5], [0.2, 0.8], [0.8, 0.2]])
    assert choose([good, helpful], two, split, 5)[1] == "mean of 2"
    assert choose([good, poor], two, split, 5, "mean")[1] == "mean of 2"
    assert choose([good, helpful], two, split, 5, "best")[1] == "best"
    assert choose([good, poor, helpful], two, split, 2)[0] == [good, helpful], "the two of lowest loss"


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
def test_a_search_without_time_trains_two_recipes_and_one_with_time_goes_on(graph):
    short = AutoClassifier(budget=1e-6, pins=QUICK).fit(graph)
    assert sorted((c.recipe.method, c.recipe.hops) for c in short.trials_) == [("none", 0), ("ward", 3)]
    long = AutoClassifier(budget=1000, pins=QUICK | {"method": "none"}).fit(graph)
    again = AutoClassifier(budget=1000, pins=QUICK | {"method": "none"}).fit(graph)
    assert len(long.trials_) >= 8
    assert [c.recipe for c in long.trials_] == [c.recipe for c in again.trials_], "time did not bind"
    assert np.array_equal(long.predict_proba(), again.predict_proba())
    ranks = [c.rank for c in long.trials_]
    assert ranks == sorted(ranks)


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
    capped = search._capped(Recipe())
    assert 40 <= capped.settings.epochs < 1500
    assert capped.settings.patience < 100
    search.pins = {"epochs": 1500}
    assert search._capped(Recipe()) == Recipe(), "pinned epochs stay"
    search.pins, search.rates["network"] = {}, 1e-12
    assert search._capped(capped) == Recipe(), "where there is time after all, there is no cap"


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


def test_models_that_were_saved_with_names_are_read(graph, tmp_path):
    named = graph.replace(node_names=[f"acct-{i:04d}" for i in range(graph.n)])
    folder = AutoClassifier(recipes=[{**PLAIN, "labels": True}]).fit(named).save(tmp_path / "model")
    expected = AutoClassifier.load(folder).predict_proba(named)
    about = json.loads((folder / "model.json").read_text())
    names = json.dumps(named.node_names.tolist()).encode()
    (folder / "nodes.json").write_bytes(names)
    about["files"]["nodes.json"] = hashlib.sha256(names).hexdigest()
    del about["checksum"]
    (folder / "model.json").write_text(json.dumps({**about, "checksum": _checksum(about)}))
    assert AutoClassifier.load(folder).predict_proba(named).tobytes() == expected.tobytes()


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
    (folder / "model.json").write_text(text.replace('"version": 3', '"version": 99', 1))
    with pytest.raises(ValueError, match="upgrade pegfan"):
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
    plain = carry_out(graph, Plan(recipes=[Recipe.of(PLAIN)], splits=1)).result
    assert plain.reasons
    assert plain.importances is not None
    monkeypatch.setattr("pegfan.auto.outcome.EXPLAINED", 8 * 120 - 1)
    large = carry_out(graph, Plan(recipes=[Recipe.of(PLAIN)], splits=1)).result
    assert not large.reasons
    assert large.importances is None
    assert any("pegfan explain" in note.text for note in large.warnings)
    assert large.test == plain.test


def test_an_outcome_holds_what_a_report_shows(graph, monkeypatch):
    runners = []
    monkeypatch.setattr(search, "Runner", lambda *a, **k: runners.append(Runner(*a, **k)) or runners[-1])
    outcome = carry_out(graph, Plan(recipes=[Recipe.of(PLAIN), Recipe.of(FULL)], splits=2))
    assert len(runners) == 1, "processes are started once"
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


def test_a_recipe_that_is_listed_twice_is_trained_once(graph):
    model = AutoClassifier(recipes=[PLAIN, PLAIN], choose="mean").fit(graph)
    assert len(model.trials_) == len(model.members_) == 1


def test_a_report_shows_the_parts_of_splits_that_were_drawn(graph):
    outcome = carry_out(graph.replace(splits=()), Plan(recipes=[Recipe.of(PLAIN)], splits=2))
    part = outcome.graph.splits[0]
    assert [outcome.parts[i] for i in part.test] == ["fold 1"] * len(part.test)
