"""Graph networks as recipes, classifiers and stored runs: every network on the same small graphs."""

import dataclasses
import hashlib
import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pegfan as pf
from pegfan import models
from pegfan._saved import _checksum
from pegfan.classifier import NetworkClassifier
from pegfan.datasets import Source
from pegfan.experiments import Job, Record, Store, jobs, records, run, run_job
from pegfan.networks import COMMON, NETWORKS, NetworkRecipe, recipe_of
from pegfan.recipe import Recipe, TreeFile
from pegfan.training import networks as training
from pegfan.training.loop import training_loop
from pegfan.trees import canonical_order
from support.equivariance import assert_same_run

EVERY = pytest.mark.parametrize("name", NETWORKS)
QUICK = {"epochs": 3}


def small(name, **changes):
    """A quick classifier of a network."""
    width = {"hidden": 8} if "hidden" in NETWORKS[name].options else {}
    return NetworkClassifier(name, **({} if name == "label-propagation" else {**QUICK, **width}), **changes)


@pytest.fixture(scope="module")
def graph():
    """Sixty nodes with real features, which tell all of them apart, names and three classes."""
    plain = pf.datasets.synthetic(0.3, n=60, n_edges=200, n_features=6, splits=2)
    made = plain.replace(class_names=[f"class {k}" for k in range(plain.n_classes)])
    assert canonical_order(made).tied == 0
    return made


@pytest.fixture(scope="module")
def fitted(graph):
    return {name: small(name).fit(graph, 1) for name in NETWORKS}


# --------------------------------------------------------------------------- recipes


@EVERY
def test_options_are_what_the_module_takes(name):
    kind = NETWORKS[name]
    taken = inspect.signature(getattr(models, kind.module)).parameters
    assert set(kind.options) == set(taken) - {"features", "classes", "nodes"}
    assert set(kind.base) <= {*kind.options, *COMMON}
    assert set(kind.space) <= {*kind.options, *COMMON}


@EVERY
def test_every_value_that_a_search_tries_is_accepted(name):
    kind = NETWORKS[name]
    start = NetworkRecipe.of({"model": name})
    sizes = {"features": 5, "classes": 3, "nodes": 7}
    assert isinstance(training.make_network(start, **sizes), getattr(models, kind.module))
    for field, values in {**COMMON, **kind.space}.items():
        assert len(set(values)) == len(values)
        for value in values:
            training.make_network(start.changed(**{field: value}), **sizes)


@EVERY
def test_recipes_come_back_from_plain_values(name):
    start = NetworkRecipe.of({"model": name})
    others = [start.changed(**{field: value}) for field, values in NETWORKS[name].space.items() for value in values]
    others += [start.changed(lr=0.5), start.changed(keep="last"), start.changed(direction="in")]
    for recipe in [start, *others]:
        again = NetworkRecipe.of(json.loads(json.dumps(recipe.to_dict())))
        assert again == recipe == recipe_of(recipe.to_dict()) == recipe_of(recipe)
        assert (again.key, again.name, hash(again)) == (recipe.key, recipe.name, hash(recipe))
    different = {json.dumps(recipe.to_dict()) for recipe in [start, *others]}
    assert len(different) == len({r.key for r in [start, *others]}) == len({r.name for r in [start, *others]})
    assert (start.name, repr(start)) == (name, f"NetworkRecipe(model={name!r})")


def test_networks_are_told_apart():
    recipes = [NetworkRecipe.of({"model": name}) for name in NETWORKS]
    assert len({r.key for r in recipes}) == len({r.label for r in recipes}) == len({r.module for r in recipes})


def test_one_recipe_however_its_numbers_are_written():
    plain = NetworkRecipe.of({"model": "gcn", "hidden": 32, "dropout": 0.5, "weight_decay": 0, "class_weights": True})
    numpys = {
        "hidden": np.int64(32),
        "dropout": np.float64(0.5),
        "weight_decay": np.float64(0),
        "epochs": np.int32(1500),
    }
    other = NetworkRecipe.of({"model": "gcn", **numpys, "class_weights": np.bool_(True)})
    assert other == plain
    assert (other.key, repr(other)) == (plain.key, repr(plain))


def test_relation_files_are_for_geom_gcn():
    file = TreeFile("relations.txt", "0" * 64)
    recipe = NetworkRecipe.of({"model": "geom-gcn", "relation_file": list(file)})
    assert recipe.relation_file == file
    assert NetworkRecipe.of(json.loads(json.dumps(recipe.to_dict()))) == recipe
    assert recipe.name == "geom-gcn relation_file=relations.txt"
    with pytest.raises(ValueError, match="relation_file is for geom-gcn"):
        NetworkRecipe.of({"model": "gcn", "relation_file": file})
    model = pf.NetworkClassifier("geom-gcn", relation_file=file)
    with pytest.raises(ValueError, match="a classifier makes its relations"):
        model.fit(pf.datasets.synthetic(0.2, n=60, n_edges=200, n_features=4, splits=1))
    assert model.set_params(model="gcn").recipe == NetworkRecipe("gcn")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"model": "gnc"}, ValueError, "model must be 'mlp', .* or 'gprgnn', got 'gnc'"),
        ({"model": "sgc", "hidden": 3}, ValueError, "SGC has no 'hidden'; it has hops, dropout, direction, .*, keep"),
        ({"model": "gcn", "lr_fc": 0.1}, ValueError, "GCN has no 'lr_fc'; it has hidden, layers, dropout, .*lr, "),
        ({"model": "gcn", "epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
        ({"model": "gcn", "lr": -1}, ValueError, "lr must be finite and not negative, got -1"),
        ({"model": "gcn", "lr": "fast"}, TypeError, "lr must be a number, got 'fast'"),
        ({"model": "gcn", "class_weights": 1}, TypeError, "class_weights must be True or False, got 1"),
        ({"model": "gcn", "direction": "both"}, ValueError, "direction must be 'out', 'in' or 'symmetric'"),
        ({"model": "gcn", "scaling": "rows"}, ValueError, "scaling must be .* or 'binary', got 'rows'"),
        ({"model": "gcn", "stop": "time"}, ValueError, "stop must be 'loss' or 'metric'"),
        ({"model": "gcn", "schedule": "cosine"}, ValueError, "schedule must be 'constant', 'plateau' or 'linear'"),
        ([("model", "gcn")], TypeError, "a recipe must be a mapping of names to values, got list"),
    ],
)
def test_bad_recipes(given, error, message):
    with pytest.raises(error, match=message):
        NetworkRecipe.of(given)


def test_a_mapping_with_a_model_is_a_networks():
    assert isinstance(recipe_of({"h": 4}), Recipe)
    assert isinstance(recipe_of({"model": "sage"}), NetworkRecipe)


# --------------------------------------------------------------------------- parameters


@EVERY
def test_parameters(name):
    model = small(name, random_state=3, lr=0.5)
    copy = type(model)(**model.get_params())  # what scikit-learn's clone does
    assert copy.get_params() == model.get_params()
    assert repr(copy) == repr(model)
    assert copy.recipe == model.recipe
    assert eval(repr(model), {"NetworkClassifier": NetworkClassifier}).get_params() == model.get_params()
    assert model.set_params(epochs=7, stand_in=None) is model
    assert (model.get_params()["epochs"], model.stand_in, model.recipe.lr) == (7, None, 0.5)
    before = model.get_params()
    with pytest.raises(ValueError, match=r"has no 'novelty'; it has .*epochs"):
        model.set_params(novelty=1, random_state=8)
    assert model.get_params() == before


def test_another_network_keeps_the_training_and_has_its_own_options():
    model = NetworkClassifier("gat", hidden=32, heads=4, lr=0.05, epochs=9, random_state=1).set_params(model="sgc")
    assert repr(model) == "NetworkClassifier('sgc', random_state=1, lr=0.05, epochs=9)"
    assert repr(model.set_params(model="gcnii", lr=0.01)) == "NetworkClassifier('gcnii', random_state=1, epochs=9)"
    assert model.recipe.options == {"layers": 8}


# --------------------------------------------------------------------------- classifiers


@EVERY
def test_fit_predict_score_save_load(name, graph, fitted, tmp_path):
    model, test = fitted[name], graph.splits[1].test
    probabilities = model.predict_proba(graph)
    assert probabilities.shape == (graph.n, graph.n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    predicted = model.predict()
    assert predicted.tolist() == graph.class_names[probabilities.argmax(axis=1)].tolist()
    accuracy = float((predicted[test] == graph.class_names[graph.labels[test]]).mean())
    assert model.score() == model.score(graph, 1) == pytest.approx(accuracy) == pytest.approx(model.run_.test_metric)
    assert model.run_.split == 1
    epochs = 0 if name == "label-propagation" else 3
    assert model.run_.epochs == epochs == len(model.history_.get("val_loss", []))
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    assert type(loaded) is NetworkClassifier
    assert repr(loaded) == repr(model)
    assert np.array_equal(loaded.predict_proba(graph), probabilities)
    assert loaded.score(graph) == model.score()
    assert loaded.history_ == model.history_
    for name_, value in loaded.to_torch().state_dict().items():
        assert np.array_equal(value.numpy(), model.run_.state[name_])


def test_the_module_is_that_of_the_fitted_recipe(graph):
    model = small("gcn").fit(graph)
    model.set_params(hidden=5, layers=3)
    assert [tuple(part.weight.shape) for part in model.to_torch().layers] == [(8, 6), (graph.n_classes, 8)]
    assert model.predict().shape == (60,)


@pytest.mark.parametrize("name", ["gcn", "linkx", "label-propagation"])
def test_what_is_not_a_saved_network_is_refused(name, graph, fitted, tmp_path):
    from safetensors.numpy import save

    folder = fitted[name].save(tmp_path / "model")
    about = json.loads((folder / "model.json").read_text())

    def write(changes, weights=None, recipe=()):
        new = json.loads(json.dumps(about)) | changes
        new["members"][0]["recipe"] |= dict(recipe)
        if weights is not None:
            (folder / "weights.safetensors").write_bytes(weights)
            new["files"]["weights.safetensors"] = hashlib.sha256(weights).hexdigest()
        new.pop("checksum", None)
        (folder / "model.json").write_text(json.dumps({**new, "checksum": _checksum(new)}))
        with pytest.raises(ValueError, match="is not a usable model"):
            NetworkClassifier.load(folder)

    write({"parameters": {"model": "nothing", "random_state": 0}})
    write({}, recipe={"novelty": 3})
    write({}, recipe={"model": "sage"})
    write({}, save({"0/layers.0.weight": np.zeros((2, 2), np.float32)}))
    write({}, b"nothing of the kind")
    if name == "label-propagation":
        write({"files": {k: v for k, v in about["files"].items() if k != "inputs.npz"}}, save({}))
    else:
        write({"columns": 17})
    with pytest.raises(ValueError, match="not a PEGFANClassifier"):
        pf.PEGFANClassifier.load(fitted[name].save(tmp_path / "other"))


@EVERY
def test_other_graphs(name, graph, fitted):
    part = graph.subgraph(np.arange(40))
    if name == "linkx":
        changed = graph.replace(adjacency=graph.adjacency * 2)
        for other in (part, changed):
            with pytest.raises(ValueError, match="LINKX has weights for the very nodes and edges"):
                fitted[name].predict(other)
    elif name == "label-propagation":  # it knows training nodes, and here only their numbers tell which these are
        with pytest.warns(UserWarning, match="fitted to 60 nodes without names, and the graph has 40"):
            assert fitted[name].predict_proba(part).shape == (40, graph.n_classes)
    else:
        assert fitted[name].predict_proba(part).shape == (40, graph.n_classes)


def test_labels_spread_on_another_graph_from_nodes_of_the_same_names():
    ring = np.array([[i, (i + 1) % 8] for i in range(8)])
    names, labels = [f"n{i}" for i in range(8)], np.array([0, 0, 0, 0, 1, 1, 1, 1])
    graph = pf.Graph.from_edges(ring, n=8, labels=labels, node_names=names)
    model = NetworkClassifier("label-propagation").fit(graph, ([1, 2, 5, 6], [0, 4], [3, 7]))
    other = pf.Graph.from_edges([[0, 1], [2, 3], [3, 4]], n=6, node_names=["n6", "new", "n1", "?", "!", "alone"])
    probabilities = model.predict_proba(other)
    assert probabilities[[0, 1]].argmax(1).tolist() == [1, 1]
    assert probabilities[[2, 3, 4]].argmax(1).tolist() == [0, 0, 0]
    np.testing.assert_allclose(probabilities[5], 0.5)


@EVERY
def test_a_graph_without_features_and_one_without_edges(name, graph):
    bare = graph.replace(features=None)
    model = small(name).fit(bare)
    assert np.isfinite(model.predict_proba()).all()
    assert model.predict(bare).shape == (60,)
    with pytest.raises(ValueError, match="the graph has no features"):
        small(name, stand_in=None).fit(bare)
    alone = pf.Graph.from_edges(np.zeros((0, 2), int), n=60, features=graph.features, labels=graph.labels)
    model = small(name).fit(alone, graph.splits[0])
    assert np.isfinite(model.predict_proba()).all()
    assert model.score(alone, graph.splits[0]) >= 0


@EVERY
def test_two_classes_and_roc_auc(name, graph):
    two = graph.replace(labels=graph.labels % 2, class_names=None, metric="roc_auc")
    model = small(name, stop="metric").fit(two)
    assert model.score() == model.run_.test_metric
    assert 0 <= model.score() <= 1


def test_roc_auc_where_it_says_nothing(graph):
    with pytest.raises(ValueError, match=f"ROC AUC is for two classes, these labels have {graph.n_classes}"):
        small("gcn").fit(graph.replace(metric="roc_auc"))
    two = graph.replace(labels=graph.labels % 2, class_names=None, metric="roc_auc")
    ones = np.flatnonzero(two.labels == 1)
    rest = np.setdiff1d(np.arange(60), ones[:5])
    with pytest.raises(ValueError, match="all validation nodes are of one class"):
        small("gcn", stop="metric").fit(two, (rest[:30], ones[:5], rest[30:]))


def test_devices_that_are_not_there(graph):
    with pytest.raises(ValueError, match="torch knows no device 'abacus'"):
        small("gcn", device="abacus").fit(graph)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA device"):
            small("gcn", device="cuda").fit(graph)
    same = small("gcn", device="cpu").fit(graph)
    assert_same_run(same.run_, small("gcn").fit(graph).run_)


# --------------------------------------------------------------------------- training


@pytest.mark.parametrize("name", ["gat", "mixhop", "classic"])
def test_same_seed_same_weights(name, graph, fitted):
    state = torch.random.get_rng_state()
    assert_same_run(small(name).fit(graph, 1).run_, fitted[name].run_)
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's generator is left alone"
    other = small(name, random_state=7).fit(graph, 1).run_
    assert any(not np.array_equal(other.state[key], value) for key, value in fitted[name].run_.state.items())


def test_classes_count_equally_where_asked(graph):
    """With weights by class, a class that is copied does not count more: the first loss tells."""
    many = graph.replace(labels=np.where(np.arange(60) % 10 == 0, graph.labels, 0), class_names=None)
    losses = {}
    for weighted in (False, True):
        model = small("mlp", class_weights=weighted, dropout=0.0, lr=0.0, scaling="none").fit(many)
        output, train = np.log(model.predict_proba()), many.splits[0].train
        own = -output[train, many.labels[train]]
        classes = [own[many.labels[train] == k].mean() for k in np.unique(many.labels[train])]
        wanted = np.mean(classes) if weighted else own.mean()
        losses[weighted] = model.history_["train_loss"][0]
        assert losses[weighted] == pytest.approx(wanted, rel=1e-5)
    assert losses[True] != losses[False]


class Course:
    """A training whose numbers are given."""

    def __init__(self, val_losses, hits):
        self.val_losses, self.hits, self.at = val_losses, hits, -1

    def step(self, epoch):
        self.at = epoch
        output = np.zeros((4, 2))
        output[: self.hits[epoch], 1] = 1
        output[self.hits[epoch] :, 0] = 1
        return 1.0, self.val_losses[epoch], output

    def snapshot(self):
        return self.at


def test_what_must_improve_and_what_is_kept():
    recipe = NetworkRecipe.of({"model": "gcn", "epochs": 5, "patience": 2})
    losses, hits, labels = [3.0, 1.0, 2.0, 2.0, 0.5], [1, 2, 4, 3, 3], np.ones(4, int)
    by_loss = training_loop(Course(losses, hits), recipe, labels, "accuracy", "")
    assert (by_loss.kept, by_loss.numbers["epochs"], by_loss.numbers["val_metric"]) == (1, 4, 0.5)
    by_metric = training_loop(Course(losses, hits), recipe.changed(stop="metric"), labels, "accuracy", "")
    assert (by_metric.kept, by_metric.numbers["epochs"], by_metric.numbers["val_loss"]) == (2, 5, 2.0)
    by_smallest = training_loop(Course(losses, hits), recipe.changed(stop="metric"), labels, "log_loss", "")
    assert (by_smallest.kept, by_smallest.numbers["best_epoch"]) == (2, 2)
    at_last = training_loop(Course(losses, hits), recipe, labels, "accuracy", "", last=True)
    assert (at_last.kept, at_last.numbers["best_epoch"]) == (3, 1)
    assert (at_last.numbers["val_loss"], at_last.numbers["val_metric"]) == (2.0, 0.75)


def test_the_last_weights_are_kept_where_asked(graph):
    options = {"lr": 0.5, "hidden": 8, "epochs": 4, "dropout": 0.0}
    best, last = (NetworkClassifier("gcn", keep=keep, **options).fit(graph) for keep in ("best", "last"))
    assert best.history_ == last.history_
    losses = last.history_["val_loss"]
    assert np.argmin(losses) < 3, "else there is nothing to tell apart"
    assert (best.run_.val_loss, last.run_.val_loss) == (min(losses), losses[-1])
    assert best.run_.best_epoch == last.run_.best_epoch == np.argmin(losses)
    val = graph.splits[0].val
    for model in (best, last):
        own = -np.log(model.predict_proba())[val, graph.labels[val]].mean()
        assert own == pytest.approx(model.run_.val_loss, rel=1e-4)


def rates(graph, monkeypatch, epochs, **changes):
    """The learning rate of every epoch."""
    seen, step = [], training._Steps.step

    def watched(self, epoch):
        seen.append(self.optimizer.param_groups[0]["lr"])
        return step(self, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(training._Steps, "step", watched)
        NetworkClassifier("sgc", epochs=epochs, patience=epochs, **changes).fit(graph)
    return seen


def test_schedules(graph, monkeypatch):
    constant = rates(graph, monkeypatch, 5, lr=0.1)
    assert constant == [0.1] * 5
    linear = rates(graph, monkeypatch, 82, lr=0.1, schedule="linear")
    np.testing.assert_allclose([linear[e] for e in (0, 39, 40, 79, 80)], [0.1, 0.1, 0.099, 0.099, 0.098])
    monkeypatch.setattr(training, "F", SimpleNamespace(nll_loss=lambda *_: 1.0))  # nothing improves after epoch 0
    plateau = rates(graph, monkeypatch, 104, lr=0.1, schedule="plateau")
    np.testing.assert_allclose([plateau[e] for e in (0, 51, 52, 102, 103)], [0.1, 0.1, 0.08, 0.08, 0.064])


def test_optimizers(graph):
    runs = [small("sgc", optimizer=name, dropout=0.0).fit(graph).run_ for name in ("adam", "sgd")]
    assert runs[0].history["train_loss"][0] == runs[1].history["train_loss"][0]
    assert runs[0].history["train_loss"][1] != runs[1].history["train_loss"][1]


def test_progress_is_told(graph, monkeypatch):
    from pegfan.training import loop

    monkeypatch.setattr(loop, "_TELL", 0.0)
    said, recipe = [], NetworkRecipe.of({"model": "gcn", **QUICK})
    pf.fitted.train_network_recipe(recipe, graph, graph.splits[0], 0, progress=said.append)
    assert [step.text.split(",")[0] for step in said] == ["epoch 1", "epoch 2", "epoch 3"]


@pytest.mark.parametrize("scaling", ["none", "l1", "columns", "binary"])
def test_sparse_and_dense_features_are_the_same(scaling):
    """Features with few entries stay sparse; what the network sees is the same."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    plain = pf.datasets.synthetic(0.3, n=60, n_edges=200, n_features=0)
    X = rng.random((60, 30)) * (rng.random((60, 30)) < 0.1)
    dense, sparse = plain.replace(features=X), plain.replace(features=csr_array(X))
    given = [training.inputs_of(g, "out", scaling).x for g in (dense, sparse)]
    if scaling != "columns":
        assert all(isinstance(x, models.Sparse) for x in given)
    arrays = [x.scipy().toarray() if isinstance(x, models.Sparse) else x.numpy() for x in given]
    np.testing.assert_allclose(*arrays, atol=1e-6)
    if scaling == "binary":
        order = canonical_order(dense).order
        assert np.array_equal(arrays[0], (X != 0)[order])
    runs = [small("gcn", scaling=scaling, dropout=0.0).fit(g).run_ for g in (dense, sparse)]
    np.testing.assert_allclose(runs[0].history["val_loss"], runs[1].history["val_loss"], rtol=1e-4)


# --------------------------------------------------------------------------- renumbered graphs


@EVERY
@pytest.mark.parametrize("direction", ["symmetric", "out"])
def test_renumbered_graphs_give_the_same_weights_and_renumbered_predictions(name, direction, graph):
    edges, _ = graph.edges()
    one = pf.Graph.from_edges(
        edges, n=graph.n, features=graph.features, labels=graph.labels, splits=graph.splits, directed=True
    )
    assert canonical_order(one).tied == 0
    perm = np.random.default_rng(5).permutation(graph.n)
    other = one.permute(perm)
    before, after = (small(name, direction=direction).fit(g) for g in (one, other))
    assert_same_run(before.run_, after.run_)
    assert np.array_equal(before.predict_proba()[perm], after.predict_proba())
    if name != "label-propagation":  # which knows nodes by their places where they have no names
        assert np.array_equal(before.predict_proba(other), after.predict_proba())


# --------------------------------------------------------------------------- stored runs

GRAPH = Source.of("synthetic", gamma=0.2, n=60, n_edges=200, n_features=5, splits=2)


def job(name="gcn", split=0, seed=1, **changes):
    return Job(GRAPH, NetworkRecipe.of({"model": name, **QUICK, **changes}), split, seed)


def test_names_of_network_runs_stay_what_they_are():
    """Stores hold results under these names: a change here would orphan all of them."""
    assert job().name == "32f5ce33f4d4c00f"
    assert job("gcnii", lr=0.1).name == "27211ad5ed9e82d5"


def test_fields_at_their_defaults_are_not_in_names(monkeypatch):
    old, stored = job().name, job().to_dict()
    standard = {f.name: f.default for f in dataclasses.fields(NetworkRecipe) if f.default is not dataclasses.MISSING}
    spare = {k: v for k, v in stored["recipe"].items() if k == "model" or standard.get(k) != v}
    assert spare == {"model": "gcn", "epochs": 3}
    assert records.job_name({**stored, "recipe": spare}) == old
    monkeypatch.setitem(records._NETWORK, "novelty", False)
    records._job_name.cache_clear()
    assert records.job_name({**stored, "recipe": {**stored["recipe"], "novelty": False}}) == old
    assert records.job_name({**stored, "recipe": {**stored["recipe"], "novelty": True}}) != old
    records._job_name.cache_clear()


def test_everything_that_numbers_depend_on_is_in_the_name():
    others = [
        *(job(name) for name in NETWORKS if name != "gcn"),
        *(job(hidden=32), job(layers=3), job(dropout=0.1), job(lr=0.1), job(weight_decay=0.1), job(epochs=4)),
        *(job(patience=4), job(stop="metric"), job(class_weights=True), job(optimizer="sgd"), job(keep="last")),
        *(job(schedule="linear"), job(direction="in"), job(scaling="l1"), job(split=1), job(seed=2)),
    ]
    assert len({one.name for one in [job(), *others]}) == len(others) + 1
    assert job(lr=np.float64(0.01), hidden=np.int64(8)).name == job(hidden=8).name
    assert Job.from_dict(json.loads(json.dumps(job().to_dict()))) == job()


@pytest.mark.parametrize("name", ["gcn", "label-propagation", "linkx"])
def test_a_record_holds_what_the_classifier_finds(name):
    changes = {"epochs": 3} if name == "label-propagation" else {"hidden": 8}
    one = job(name, split=1, seed=4, **changes)
    record = run_job(one)
    graph, _ = GRAPH.open()
    wanted = NetworkClassifier(**one.recipe.to_dict(), random_state=4).fit(graph, 1).run_
    for field in ("val_loss", "val_metric", "test_metric", "epochs", "best_epoch"):
        assert getattr(record, field) == getattr(wanted, field)
    assert (record.engine, record.tree, record.channels, record.regime) == ("torch", None, 0, None)
    assert record.memory > 10 * 2**20
    assert "torch" in record.versions
    assert record.name == one.name
    assert Job.from_dict(record.job) == one
    stored = json.loads(json.dumps(record.to_dict()))
    assert Record.of(stored) == record
    del stored["memory"]
    assert dataclasses.replace(record, memory=None) == Record.of(stored), "as lines were before"


def test_what_was_run_is_not_run_again(tmp_path, monkeypatch):
    wanted = [job(split=s, hidden=8) for s in (0, 1)] + [job("sgc"), job("label-propagation")]
    first = run(wanted, Store(tmp_path))
    assert [record.name for record in first] == [one.name for one in wanted]
    assert len(Store(tmp_path)) == 4

    def forbidden(*args, **kwargs):
        raise AssertionError("this was to be taken from the store")

    monkeypatch.setattr(jobs, "_run_network", forbidden)
    assert run(wanted, Store(tmp_path)) == first


def test_a_loss_that_diverges_is_a_record():
    record = run_job(job("gcn", lr=1e30, optimizer="sgd", hidden=8))
    assert record.diverged
    assert record.val_metric is None
    assert Record.of(json.loads(json.dumps(record.to_dict()))) == record
