"""The classifiers: any kind of graph in, the same answers from files, on changed graphs and under renumbering."""

import json
import shutil

import numpy as np
import pytest
from scipy import sparse

import pegfan as pf
from pegfan._saved import FORMAT_VERSION, _checksum
from pegfan.classifier import FSGNNClassifier, PEGFANClassifier
from pegfan.graph import Graph, Split
from pegfan.recipe import pad_levels
from pegfan.splits import draw_splits, fit_split

BOTH = pytest.mark.parametrize("kind", [PEGFANClassifier, FSGNNClassifier])
SMALL = {"epochs": 40, "hidden": 16, "lr_fc": 0.02}


@pytest.fixture(scope="module")
def graph():
    plain = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    names = [f"class {chr(97 + k)}" for k in range(plain.n_classes)]
    return plain.replace(class_names=names)


@pytest.fixture(scope="module")
def fitted(graph):
    return {kind: kind(**SMALL).fit(graph, split=0) for kind in (PEGFANClassifier, FSGNNClassifier)}


def grown(graph, nodes, edges, seed=0):
    """The graph with new nodes behind the old ones, and new edges anywhere."""
    rng = np.random.default_rng(seed)
    n = graph.n + nodes
    old, _ = graph.edges()
    every = np.vstack([old, rng.integers(n, size=(edges, 2))]) if edges else old
    more = rng.standard_normal((nodes, graph.features.shape[1]))
    return Graph.from_edges(every, n=n, features=np.vstack([graph.features, more]))


# ------------------------------------------------------------------ fit, predict, score


def test_a_quarter_of_the_training_nodes_judge_where_none_are_said_to(graph):
    whole = graph.splits[0]
    part = fit_split(graph, Split(whole.train, whole.val[:0], whole.test), seed=0)
    assert np.array_equal(np.sort(np.concatenate(part[:2])), whole.train)
    assert len(part.val) == pytest.approx(0.25 * len(whole.train), abs=1)
    assert np.array_equal(part.test, whole.test)


@BOTH
def test_fit_predict_score(kind, graph, fitted):
    model = fitted[kind]
    probabilities = model.predict_proba(graph)
    assert probabilities.shape == (graph.n, graph.n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    predicted = model.predict(graph)
    assert predicted.tolist() == graph.class_names[probabilities.argmax(axis=1)].tolist()
    test = graph.splits[0].test
    accuracy = float((predicted[test] == graph.class_names[graph.labels[test]]).mean())
    assert model.score(graph, 0) == pytest.approx(accuracy)
    assert model.score() == accuracy == pytest.approx(model.run_.test_metric)
    assert accuracy > 2 / graph.n_classes
    assert model.classes_.tolist() == graph.class_names.tolist()
    assert sum(model.attention_.values()) == pytest.approx(1, rel=1e-5)
    assert len(model.history_["val_loss"]) == model.run_.epochs <= 40
    assert (model.tree_ is not None) == (kind is PEGFANClassifier)


def test_channels_are_those_asked_for(graph, fitted):
    assert list(fitted[PEGFANClassifier].attention_)[:5] == ["X", "S X", "S^2 X", "S^3 X", "F_0 S X"]
    assert len(fitted[PEGFANClassifier].attention_) == 4 + fitted[PEGFANClassifier].tree_.K
    model = PEGFANClassifier(kind="a", h=4, epochs=2).fit(graph)
    assert list(model.attention_) == ["X", *(f"F_{j} X" for j in range(model.tree_.K))]
    assert model.predict(graph.replace(labels=None)).shape == (300,)
    assert list(FSGNNClassifier(regime="homophily", hops=1, epochs=2).fit(graph).attention_) == ["X", "S~ X"]


@BOTH
def test_same_seed_same_bytes(kind, graph, fitted):
    again = kind(**SMALL).fit(graph)
    assert again.predict_proba().tobytes() == fitted[kind].predict_proba(graph).tobytes()
    other = kind(**SMALL, random_state=7).fit(graph)
    assert other.predict_proba().tobytes() != again.predict_proba().tobytes()


def test_score_keeps_to_the_split_that_was_fitted(graph, tmp_path):
    three = graph.replace(splits=pf.datasets.random_splits(graph.labels, k=3))
    mine = tuple(three.splits[1])
    for split in (2, "random", mine):
        model = FSGNNClassifier(epochs=15, hidden=16).fit(three, split)
        assert model.score() == model.score(three) == pytest.approx(model.run_.test_metric)
        assert model.score(three) == model.score(three, split)
        loaded = FSGNNClassifier.load(model.save(tmp_path / "model", overwrite=True))
        if split is mine:
            with pytest.raises(ValueError, match="pass it as split="):
                loaded.score(three)
        else:
            assert loaded.score(three) == model.score(three)


@BOTH
def test_every_kind_of_graph_gives_the_same(kind, graph, fitted):
    part = graph.splits[0]
    expected = fitted[kind].predict_proba(graph)
    attributes = graph.replace(splits=()).to_networkx()
    inputs = {
        "tuple": ((graph.adjacency, graph.features, graph.labels), part),
        "matrices": ((sparse.coo_matrix(graph.adjacency), graph.features, graph.labels), tuple(part)),
        "pyg": (graph.to_pyg(), 0),
        "networkx": (attributes, dict(zip(Split._fields, part, strict=True))),
    }
    for name, (given, _) in inputs.items():
        np.testing.assert_allclose(fitted[kind].predict_proba(given), expected, atol=1e-6, err_msg=name)
        assert fitted[kind].predict(given).dtype.kind == "U"
    given, split = inputs["networkx"]
    assert kind(**SMALL).fit(given, split).score(given, split) == fitted[kind].score(graph)
    assert kind(**SMALL).fit(*inputs["tuple"]).predict(inputs["tuple"][0][:2]).dtype.kind == "i"


def test_random_split_and_two_class_auc(graph):
    two = graph.replace(labels=graph.labels % 2, class_names=["no", "yes"], metric="roc_auc", splits=())
    model = FSGNNClassifier(**SMALL).fit(two, split="random")
    expected = draw_splits(two, k=1, seed=0)[0]
    values, truth = model.predict_proba(two)[expected.test, 1], two.labels[expected.test] == 1
    pairs = values[truth][:, None] - values[~truth][None]
    assert model.score(two, "random") == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2, abs=1e-3)


def test_classes_are_matched_by_name(graph, fitted):
    model = fitted[FSGNNClassifier]
    order = np.arange(graph.n_classes)[::-1]
    turned = graph.replace(labels=order[graph.labels], class_names=graph.class_names[::-1])
    assert model.score(turned) == model.score(graph)
    with pytest.raises(ValueError, match="class 'new' is not one of the classes that were fitted"):
        model.score(graph.replace(class_names=["new", *graph.class_names[1:]]))
    with pytest.raises(ValueError, match=r"not one of the .* classes"):
        model.score(graph.replace(class_names=None, labels=graph.labels + 3))


def test_a_class_without_training_nodes_works(graph):
    labels = graph.labels.copy()
    part = graph.splits[0]
    labels[part.train] = np.minimum(labels[part.train], graph.n_classes - 2)
    model = PEGFANClassifier(**SMALL).fit(graph.replace(labels=labels))
    assert model.predict_proba().shape[1] == graph.n_classes


# --------------------------------------------------------------------- other graphs


@pytest.mark.parametrize(("nodes", "edges"), [(0, 1), (0, 200), (5, 20), (700, 5000), (1, 0)])
@BOTH
def test_changed_graph(kind, graph, fitted, nodes, edges):
    changed = grown(graph, nodes, edges)
    probabilities = fitted[kind].predict_proba(changed)
    assert probabilities.shape == (graph.n + nodes, graph.n_classes)
    assert np.isfinite(probabilities).all()


@pytest.mark.parametrize("n", [1, 3, 20])
def test_small_graph_gets_as_many_levels(graph, fitted, n):
    model = fitted[PEGFANClassifier]
    few = graph.subgraph(np.arange(n))
    assert pf.build_tree(few, h=8).K < model.tree_.K
    assert model.predict_proba(few).shape == (n, graph.n_classes)


def test_few_changes_change_little(graph, fitted):
    changed = fitted[PEGFANClassifier].predict(grown(graph, 2, 3))[: graph.n]
    assert (changed == fitted[PEGFANClassifier].predict()).mean() > 0.8


@BOTH
def test_renumbered_graph_gives_renumbered_probabilities(kind, graph, fitted):
    perm = np.random.default_rng(3).permutation(graph.n)
    expected = fitted[kind].predict_proba(graph)[perm]
    np.testing.assert_allclose(fitted[kind].predict_proba(graph.permute(perm)), expected, atol=1e-5)
    assert fitted[kind].score(graph.permute(perm)) == pytest.approx(fitted[kind].score(graph), abs=0.02)


@BOTH
def test_columns_are_told_by_their_names(kind, graph, tmp_path):
    names = [f"f{i}" for i in range(20)]
    model = kind(epochs=5).fit(graph.replace(feature_names=names))
    expected = model.predict_proba()
    order = np.random.default_rng(0).permutation(20)
    turned = graph.replace(features=graph.features[:, order], feature_names=[names[i] for i in order])
    more = np.hstack([np.ones((graph.n, 1), np.float32), turned.features])
    wider = graph.replace(features=more, feature_names=["other", *turned.feature_names])
    for fitted in (model, kind.load(model.save(tmp_path / "model"))):
        for given in (turned, wider):
            assert fitted.predict_proba(given).tobytes() == expected.tobytes()
        assert fitted.score(turned) == model.score()
        with pytest.raises(ValueError, match="1 of 20 features is missing: 'f7'"):
            fitted.predict(graph.replace(feature_names=["g" if name == "f7" else name for name in names]))
        assert fitted.predict_proba(graph).tobytes() == expected.tobytes(), "without names their order tells"


def test_nodes_without_names_are_doubted_where_their_number_differs(graph):
    graph = graph.replace(node_names=None)
    model = pf.RecipeClassifier({"method": "none", "hops": 1, "labels": True, "epochs": 2, "hidden": 4}).fit(graph)
    fewer = graph.subgraph(np.arange(1, graph.n))
    for ask in (model.predict, model.predict_proba, lambda g: model.explain(g, [0])):
        with pytest.warns(UserWarning, match="node i is taken for node i"):
            ask(fewer)
    with pytest.warns(UserWarning, match="the fitted ones have no names"):
        model.predict(graph.replace(node_names=[f"n{i}" for i in range(graph.n)]))
    by_id = model.predict_proba(
        fewer.replace(node_names=np.arange(1, graph.n))
    )  # which says who is who, and no warning
    shuffled = graph.permute(np.arange(graph.n)[::-1]).replace(node_names=np.arange(graph.n)[::-1])
    assert np.array_equal(model.predict_proba(shuffled)[::-1], model.predict_proba(graph))
    with pytest.warns(UserWarning, match="node i is taken"):
        assert not np.array_equal(by_id, model.predict_proba(fewer))


def test_padding_keeps_the_clusters():
    tree = pf.Hierarchy.from_nested([[[3, 1], [2, 0]], [[4, 5]]])
    padded = pad_levels(tree, 6)
    assert padded.n_clusters == (1, 2, 2, 2, 3, 6)
    signal = np.arange(6.0)
    parts, longer = pf.FrameletSystem(tree).projections(signal), pf.FrameletSystem(padded).projections(signal)
    for j, k in {0: 0, 1: 1, 2: 4, 3: 5}.items():
        np.testing.assert_allclose(longer[k], parts[j], atol=1e-12)
    np.testing.assert_allclose(longer[2], 0, atol=1e-12)
    assert pad_levels(tree, 3) is tree
    assert pad_levels(pf.Hierarchy([]), 3).n_clusters == (1, 1, 1)


# ----------------------------------------------------------------------- parameters


@BOTH
def test_parameters_come_and_go(kind):
    model = kind(hops=2, settings={"dropout": 0.3, "epochs": 9}, epochs=7)
    parameters = model.get_params()
    assert (parameters["hops"], parameters["dropout"], parameters["epochs"], parameters["hidden"]) == (2, 0.3, 7, 64)
    assert kind(**parameters).get_params() == parameters
    assert model.set_params(hops=1, wd_sca=0.5) is model
    assert model.get_params() == {**parameters, "hops": 1, "wd_sca": 0.5}
    assert repr(model) == f"{kind.__name__}(hops=1, dropout=0.3, wd_sca=0.5, epochs=7)"
    assert repr(kind()) == f"{kind.__name__}()"
    assert model.set_params(settings={"epochs": 3}).get_params()["dropout"] == 0.5
    with pytest.raises(ValueError, match="has no parameter 'hop'; it has"):
        model.set_params(hop=3)
    with pytest.raises(ValueError, match="has no parameter 'hop'; it has"):
        kind(hop=3)


def test_new_parameters_wait_for_fit(graph):
    model = PEGFANClassifier(epochs=5).fit(graph)
    before = model.predict_proba(grown(graph, 3, 9))
    after = model.set_params(h=3, hops=1, hidden=8).predict_proba(grown(graph, 3, 9))
    assert before.tobytes() == after.tobytes()


def test_a_classifier_without_a_tree_has_none(graph):
    assert PEGFANClassifier(method="none", epochs=2).fit(graph).tree_ is None


def test_degrees_stand_in_unless_that_is_an_error(graph):
    bare = graph.replace(features=None)
    model = FSGNNClassifier(epochs=2).fit(bare)
    assert model.predict_proba(graph).tobytes() == model.predict_proba(bare).tobytes()
    assert model.fitted_.members[0].recipe.scaling == "none", "degrees are not scaled"
    with pytest.raises(ValueError, match="stand_in='degree'"):
        FSGNNClassifier(epochs=2, stand_in=None).fit(bare)
    with pytest.raises(ValueError, match="stand_in must be None or 'degree'"):
        FSGNNClassifier(stand_in="svd").fit(bare)
    with pytest.raises(ValueError, match="scaling must be one of none, l1, columns, principal; got 'l2'"):
        FSGNNClassifier(scaling="l2").fit(bare)


# ------------------------------------------------------------------------- bad input


def test_not_fitted(graph, tmp_path):
    for call in ("predict", "predict_proba", "score"):
        with pytest.raises(ValueError, match=r"PEGFANClassifier is not fitted; call fit"):
            getattr(PEGFANClassifier(), call)(graph)
    with pytest.raises(ValueError, match="not fitted"):
        PEGFANClassifier().save(tmp_path / "model")


def test_bad_input(graph, fitted):
    model = FSGNNClassifier(epochs=2, regime="heterophily")
    for given, split, error, message in (
        ([1, 2], 0, ValueError, "adjacency must have the shape"),
        ("cora", 0, TypeError, r"a tuple .adjacency, X, y.*got str"),
        ((graph.adjacency,), 0, ValueError, "got 1 entries"),
        (graph, 99, ValueError, "there is no split 99"),
        (graph, "best", ValueError, "'random', got 'best'"),
        (graph, ([0, 1], [1], [2]), ValueError, "more than one of train, val and test"),
        (graph, ([0], [], [2]), ValueError, "no labelled val nodes"),
        (graph.replace(splits=()), 0, ValueError, "no splits; pass a Split, or split='random'"),
        (graph.replace(labels=None), 0, ValueError, "no labels to learn from"),
        (
            graph.replace(labels=np.where(np.arange(300) == 7, -1, graph.labels)),
            ([7], [2], []),
            ValueError,
            "no labelled train nodes",
        ),
    ):
        with pytest.raises(error, match=message):
            model.fit(given, split)
    with pytest.raises(ValueError, match="FSGNNClassifier has no parameter 'h'; it has hops, regime"):
        FSGNNClassifier(h=4)
    for seed in (-1, None, 1.5):
        with pytest.raises((TypeError, ValueError), match="random_state"):
            FSGNNClassifier(random_state=seed).fit(graph)
    with pytest.raises(ValueError, match="19 feature columns, and the model was fitted to 20"):
        fitted[FSGNNClassifier].predict(graph.replace(features=graph.features[:, 1:]))
    with pytest.raises(ValueError, match="no labels to compare"):
        fitted[FSGNNClassifier].score(graph.replace(labels=None))
    with pytest.raises(ValueError, match="no labelled test nodes"):
        fitted[FSGNNClassifier].score(graph, ([0], [1], []))
    with pytest.raises(ValueError, match="ROC AUC is for two classes"):
        fitted[FSGNNClassifier].score(graph.replace(metric="roc_auc"))


# ----------------------------------------------------------------------------- files


@BOTH
def test_loaded_model_gives_the_same_bytes(kind, graph, fitted, tmp_path):
    model = fitted[kind]
    folder = model.save(tmp_path / "deep" / "model")
    loaded = kind.load(folder)
    changed = grown(graph, 4, 30)
    assert loaded.predict_proba(graph).tobytes() == model.predict_proba(graph).tobytes()
    assert loaded.predict_proba(changed).tobytes() == model.predict_proba(changed).tobytes()
    assert loaded.predict(graph).tolist() == model.predict(graph).tolist()
    assert loaded.score(graph) == model.score(graph)
    assert loaded.get_params() == model.get_params()
    assert loaded.attention_ == model.attention_
    assert loaded.history_["val_loss"] == model.history_["val_loss"]
    assert (loaded.run_.epochs, loaded.run_.test_metric) == (model.run_.epochs, model.run_.test_metric)
    assert type(pf.load_classifier(folder)) is kind
    if kind is PEGFANClassifier:
        assert loaded.tree_ == model.tree_
    with pytest.raises(ValueError, match="does not hold the graph"):
        loaded.predict()
    loaded.save(tmp_path / "copy")
    assert (tmp_path / "copy" / "weights.safetensors").read_bytes() == (folder / "weights.safetensors").read_bytes()


def test_missing_test_metric_survives(graph, tmp_path):
    model = FSGNNClassifier(epochs=2).fit(graph, (graph.splits[0].train, graph.splits[0].val, []))
    assert np.isnan(FSGNNClassifier.load(model.save(tmp_path / "m")).run_.test_metric)


def test_saving_replaces_models_only(graph, fitted, tmp_path):
    model, folder = fitted[FSGNNClassifier], tmp_path / "model"
    folder.mkdir()
    model.save(folder)  # an empty folder may be filled
    with pytest.raises(ValueError, match="overwrite=True"):
        model.save(folder)
    fitted[PEGFANClassifier].save(folder, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert type(pf.load_classifier(folder)) is PEGFANClassifier
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"'thesis\.tex', which is not part of a saved model"):
        model.save(folder, overwrite=True)
    assert (folder / "thesis.tex").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        model.save(tmp_path / "file")


def test_failed_save_leaves_nothing(graph, fitted, tmp_path, monkeypatch):
    model, folder = fitted[PEGFANClassifier], tmp_path / "model"
    model.save(folder)
    before = (folder / "model.json").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pegfan._atomic._move", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(folder, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (folder / "model.json").read_bytes() == before


def test_foreign_and_tampered_folders(fitted, tmp_path):
    good = fitted[PEGFANClassifier].save(tmp_path / "good")

    def spoiled(spoil):
        folder = tmp_path / "bad"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, folder)
        spoil(folder)
        with pytest.raises(ValueError, match=r".") as caught:
            pf.load_classifier(folder)
        return str(caught.value)

    def edit(honest, **changes):
        def spoil(folder):
            about = json.loads((folder / "model.json").read_bytes())
            about.update(changes)
            checksum = about.pop("checksum")
            about["checksum"] = _checksum(about) if honest else checksum
            (folder / "model.json").write_text(json.dumps(about))

        return spoil

    def member(**changes):
        def spoil(folder):
            members = json.loads((folder / "model.json").read_bytes())["members"]
            edit(True, members=[{**members[0], **changes}])(folder)

        return spoil

    def flip(name):
        def spoil(folder):
            data = bytearray((folder / name).read_bytes())
            data[-1] ^= 1
            (folder / name).write_bytes(data)

        return spoil

    assert "no model.json" in spoiled(lambda folder: (folder / "model.json").unlink())
    assert "damaged" in spoiled(lambda folder: (folder / "model.json").write_text("{"))
    assert "not written by pegfan" in spoiled(lambda folder: (folder / "model.json").write_text("[]"))
    for other in (FORMAT_VERSION + 1, FORMAT_VERSION - 1):
        assert "train again" in spoiled(edit(True, version=other))
    assert "changed since it was saved" in spoiled(edit(False, columns=7))
    for name in ("weights.safetensors", "tree_0.npz", "history.npz"):
        assert f"{name} was changed" in spoiled(flip(name))
        assert name in spoiled(lambda folder, name=name: (folder / name).unlink())
    assert "whose channels" in spoiled(member(channels=[["X", 20]]))
    assert "whose channels" in spoiled(
        member(channels=[[name, 10**12] for name in fitted[PEGFANClassifier].attention_])
    )
    assert "whose channels" in spoiled(member(attention=[1.0]))
    assert "do not agree on a tree" in spoiled(member(tree=None))
    assert "not a usable model" in spoiled(member(tree=7))
    for elsewhere in ("/../../evil", -1, True):  # a file of another folder, and no number of a tree
        assert "trees of models are numbered" in spoiled(member(tree=elsewhere))
    assert "do not fit" in spoiled(edit(True, classes={"dtype": "<i8", "names": [0, 1]}))
    assert "do not fit" in spoiled(edit(True, members=[]))
    assert "this version knows" in spoiled(edit(True, **{"class": "Other"}))
    assert "not a usable model" in spoiled(edit(True, parameters={"epochs": "many"}))
    assert "neither numbers nor names" in spoiled(edit(True, classes={"dtype": "V99", "names": ["a", "b", "c", "d"]}))
    assert "are lists" in spoiled(edit(True, classes={"dtype": "|O", "names": [[1, 2]] * 4}))


def test_names_of_classes_take_the_room_they_need(fitted, tmp_path):
    folder = fitted[FSGNNClassifier].save(tmp_path / "model")
    about = json.loads((folder / "model.json").read_bytes())
    about["classes"]["dtype"] = "<U9000"
    about.pop("checksum")
    (folder / "model.json").write_text(json.dumps({**about, "checksum": _checksum(about)}))
    loaded = FSGNNClassifier.load(folder)
    assert loaded.classes_.tolist() == fitted[FSGNNClassifier].classes_.tolist()
    assert loaded.classes_.itemsize < 100


def test_a_model_of_another_class(fitted, tmp_path):
    good = fitted[PEGFANClassifier].save(tmp_path / "good")
    with pytest.raises(ValueError, match=r"use PEGFANClassifier\.load"):
        FSGNNClassifier.load(good)


# --------------------------------------------------------------- one model, whichever way


def test_a_classifier_of_any_recipe(graph, tmp_path):
    recipe = pf.Recipe.of({**SMALL, "kind": "b", "labels": True, "adjacency": True, "structure": True})
    model = pf.RecipeClassifier(recipe).fit(graph)
    assert list(model.attention_)[-4:] == ["degrees", "Y near", "Y far", "Y X"]
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    assert type(loaded) is pf.RecipeClassifier
    assert loaded.predict_proba(graph).tobytes() == model.predict_proba().tobytes()
    assert loaded.recipe == recipe.to_dict()
    assert pf.RecipeClassifier(recipe.to_dict()).fit(graph).predict_proba().tobytes() == model.predict_proba().tobytes()
    plain = pf.RecipeClassifier({**SMALL}).fit(graph)
    assert plain.predict_proba().tobytes() == PEGFANClassifier(**SMALL).fit(graph).predict_proba().tobytes()
    with pytest.raises(ValueError, match="classifier builds its trees"):
        pf.RecipeClassifier({"tree_file": ("a.npz", "0")}).fit(graph)


def test_degrees_that_stand_in_are_the_same_model_by_every_path(graph):
    bare = graph.replace(features=None)
    one = PEGFANClassifier(**SMALL).fit(bare)
    other = pf.AutoClassifier(recipes=[PEGFANClassifier(**SMALL).recipe]).fit(bare)
    assert one.fitted_.members[0].recipe.scaling == "none"
    assert one.fitted_.raw().tobytes() == other.fitted_.raw().tobytes()


def test_nodes_without_a_label_are_left_out_of_a_split(graph):
    lacking = graph.replace(labels=np.where(np.arange(300) % 10 == 7, -1, graph.labels))
    part = graph.splits[0]
    fewer = Split(*(nodes[lacking.labels[nodes] >= 0] for nodes in part))
    assert len(fewer.train) < len(part.train)
    models = [FSGNNClassifier(**SMALL).fit(lacking, split).predict_proba().tobytes() for split in (part, fewer)]
    assert models[0] == models[1]


def test_parameters_that_are_refused_change_nothing(graph):
    model = FSGNNClassifier(epochs=3)
    with pytest.raises(ValueError, match="no parameter 'wrong'"):
        model.set_params(settings={"epochs": 9}, wrong=1)
    assert model.get_params()["epochs"] == 3
