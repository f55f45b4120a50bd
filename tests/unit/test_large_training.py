"""Training on graphs in pieces: batches from disk, choices on a sample, checkpoints, predictions, model folders."""

import csv
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import pegfan as pf
from pegfan.large import predicting, training
from pegfan.large import rows as rows_module
from pegfan.large.channels import make_channels
from pegfan.large.pieces import Work
from pegfan.large.rows import RowsOnDisk
from pegfan.recipe import Recipe
from pegfan.training import Network, Run
from support.pieces import graph_pieces

TREE = Recipe("matching", 8, regime="heterophily", hops=2, scaling="none", settings={"hop_normalize": False})
HOPS = Recipe(method="none", regime="heterophily", hops=2, scaling="columns", settings={"dropout": 0.2})


@pytest.fixture(scope="module")
def graph():
    return pf.datasets.synthetic(0.3, n=1500, n_edges=12000, n_features=12, splits=1)


@pytest.fixture
def small(monkeypatch):
    """Runs and batches so short that a small graph has many of them."""
    monkeypatch.setattr(rows_module, "RUN", 50)
    monkeypatch.setattr(rows_module, "WINDOW", 3)
    for module in (training, rows_module):
        monkeypatch.setattr(module, "ROWS", 64)
    monkeypatch.setattr(predicting, "_BLOCK", 8 * 64)


def pieces_of(work, graph, recipe=TREE):
    tree = Recipe("matching", 8, regime="heterophily", direction=recipe.direction).build_tree(graph)
    return graph_pieces(work, graph, tree, blocks=3, slabs=2)


def test_batches_from_disk_are_the_rows_they_name(tmp_path, graph, small):
    nodes = graph.splits[0].train
    with Work(tmp_path) as work:
        channels = make_channels(work, pieces_of(work, graph), TREE)
        places = np.sort(channels.places_of(nodes))
        whole = channels.rows(places)
        for room in (0.0, 1e9):
            source = RowsOnDisk(channels, places, places[:7], 3, 64, room)
            taken = source.batches(0)
            for number in range(2):
                seen = []
                for _ in range(source.per_pass):
                    which = next(taken)
                    assert 0 < len(which) <= source.largest
                    for mine, theirs in zip(source.train_rows(which), whole, strict=True):
                        np.testing.assert_array_equal(mine, theirs[which])
                    seen.append(which)
                assert sorted(np.concatenate(seen).tolist()) == list(range(len(places)))
                again = source.batches(number * source.per_pass + 5)
                np.testing.assert_array_equal(next(again), seen[5])
                again.close()
            taken.close()
            assert [part.shape for part in source.val_rows(slice(2, 5))] == [(3, 12)] * len(channels.widths)


def test_errors_of_the_reader_reach_the_training(tmp_path, graph, small):
    with Work(tmp_path) as work:
        channels = make_channels(work, pieces_of(work, graph), TREE)
        source = RowsOnDisk(channels, np.arange(500), np.arange(5), 0, 64)
        work.free(channels.stem(()))
        with pytest.raises(OSError, match="values"):
            next(source.batches(0))


@pytest.mark.parametrize("recipe", [TREE, HOPS, HOPS.changed(class_weights=True)])
@pytest.mark.parametrize("numeric", [False, True])
def test_a_training_that_was_killed_ends_with_the_same_bits(tmp_path, graph, small, monkeypatch, recipe, numeric):
    if numeric and recipe.settings.class_weights:
        return
    truth = graph.features[:, 0].astype(np.float64) if numeric else graph.labels
    recipe = recipe.changed(epochs=7)

    def run(folder, every):
        with Work(folder) as work:
            return training.train(work, pieces_of(work, graph), truth, graph.splits[0], recipes=[recipe], every=every)

    whole = run(tmp_path / "one", 1e9)
    real, calls = training._Checkpoint.keep, []

    def dying(self, state):
        real(self, state)
        calls.append(None)
        if len(calls) in (2, 3):
            raise KeyboardInterrupt

    monkeypatch.setattr(training._Checkpoint, "keep", dying)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "two", 0.0)
    found = run(tmp_path / "two", 0.0)
    assert len(calls) > 4
    one, two = (result.model.members_[0].run for result in (whole, found))
    assert one.epochs == two.epochs
    assert one.best_epoch == two.best_epoch
    for name, value in one.state.items():
        np.testing.assert_array_equal(value, two.state[name], err_msg=name)
    np.testing.assert_array_equal(np.load(whole.outputs), np.load(found.outputs))
    assert np.array(one.history["val_loss"]).tolist() == np.array(two.history["val_loss"]).tolist()
    assert whole.test_metric == found.test_metric


def test_recipes_compete_and_the_best_is_written_as_a_model_that_serves_in_memory(tmp_path, graph, small):
    names = [f"n{i}" for i in range(graph.n_classes)]
    steps = []
    with Work(tmp_path / "work") as work:
        pieces = pieces_of(work, graph)
        part, truth = graph.splits[0], graph.labels.copy()
        truth[part.test[::2]] = -1
        found = training.train(
            *(work, pieces, truth, part), classes=names, metric="accuracy", budget=20, progress=steps.append
        )
        assert len(found.trials) >= 2
        assert found.trials == sorted(found.trials, key=lambda trial: trial.rank)
        assert found.test_metric > 0.4
        out = found.write(tmp_path / "out", settings={"source": {"where": ["a.csv"]}}, title="A graph")
        settings = pf.results.Result.from_json((out / "result.json").read_bytes())
        assert settings.title == "A graph"
        assert settings.test.mean == found.test_metric
        assert settings.data.labelled == (truth >= 0).sum()
        with (out / "predictions.csv").open() as file:
            table = list(csv.DictReader(file))
        assert [row["id"] for row in table] == [str(i) for i in range(graph.n)]
        told = np.array([[float(row[f"p_{name}"]) for name in names] for row in table], np.float32)
        model = pf.load_model(out / "model")
        np.testing.assert_allclose(model.predict_proba(graph), told, atol=1e-4)
        wanted = [names[k] for k in model.fitted_.decision.classes(model.fitted_.log_probabilities(graph))]
        assert np.mean([row["predicted"] == name for row, name in zip(table, wanted, strict=True)]) > 0.995
        where = np.array([row["split"] for row in table])
        assert set(where[part.train]) == {"train"}
        assert set(where[part.test]) == {"test"}
        right = [table[i]["predicted"] == names[graph.labels[i]] for i in part.test if truth[i] >= 0]
        assert found.test_metric == pytest.approx(np.mean(right))
        counts = predicting.predict_in_pieces(work, pieces, out / "model", tmp_path / "again.parquet")
        again = pq.read_table(tmp_path / "again.parquet")
        np.testing.assert_array_equal(np.column_stack([again[f"p_{name}"] for name in names]), told)
        assert again["predicted"].to_pylist() == [row["predicted"] for row in table]
        assert sum(counts.values()) == graph.n
        assert not list(work.folder.glob("predict-*"))
    assert any("trying" in step.text for step in steps)


def test_what_was_chosen_before_a_kill_is_not_chosen_again(tmp_path, graph, small, monkeypatch):
    recipes = [HOPS.changed(epochs=3), HOPS.changed(hops=0, epochs=3), HOPS.changed(head="linear")]
    tried = []
    real = training._Training._try

    def dying(self, recipe, seconds):
        tried.append(recipe)
        if len(tried) == 2:
            raise KeyboardInterrupt
        return real(self, recipe, seconds)

    monkeypatch.setattr(training._Training, "_try", dying)

    def run():
        with Work(tmp_path) as work:
            return training.train(work, pieces_of(work, graph), graph.labels, graph.splits[0], recipes=recipes)

    with pytest.raises(KeyboardInterrupt):
        run()
    first = run()
    assert tried == [recipes[0], recipes[1], recipes[1], recipes[2]]
    again = run()
    assert len(tried) == 4
    assert first.trials == again.trials
    assert first.test_metric == again.test_metric


@pytest.mark.parametrize("head", ["linear", "boosting"])
def test_other_heads_are_fitted_to_the_sample(tmp_path, graph, small, head):
    recipe = Recipe(method="none", regime="heterophily", hops=1, scaling="none", head=head, settings={"epochs": 20})
    with Work(tmp_path) as work:
        found = training.train(work, pieces_of(work, graph), graph.labels, graph.splits[0], recipes=[recipe])
        assert found.test_metric > 0.4
        assert found.model.members_[0].engine == head


@pytest.mark.parametrize(("n", "recipe"), [(120, TREE), (120, HOPS), (6000, TREE)])
def test_a_model_predicts_on_another_graph_as_in_memory(tmp_path, graph, small, n, recipe):
    other = pf.datasets.synthetic(0.3, n=n, n_edges=8 * n, n_features=12, seed=5)
    with Work(tmp_path / "work") as work:
        found = training.train(
            work, pieces_of(work, graph), graph.labels, graph.splits[0], recipes=[recipe.changed(epochs=3)]
        )
        levels = {found.model.members_[0].tree.K, recipe.build_tree(other).K} if recipe.has_tree else {0, 1}
        assert len(levels) == 2
    with Work(tmp_path / "other") as work:
        pieces = graph_pieces(work, other)
        predicting.predict_in_pieces(work, pieces, found.model, tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    mine = np.column_stack([table[f"p_{k}"] for k in range(graph.n_classes)])
    np.testing.assert_allclose(mine, found.model.predict_proba(other), atol=1e-4)


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_homophily_is_that_of_the_training_nodes(tmp_path, graph, numeric, directed):
    pairs = np.argwhere(graph.adjacency.toarray() > 0)[:: 3 if directed else 1]
    truth = {"targets": graph.features[:, 0].astype(float)} if numeric else {"labels": graph.labels}
    one = pf.Graph.from_edges(pairs, n=graph.n, directed=directed, features=graph.features, **truth)
    part = graph.splits[0]
    with Work(tmp_path) as work:
        training_of = training._Training(
            *(work, graph_pieces(work, one, blocks=4), one.truth, part, None, None, None, 1.0, 0, None, 1.0)
        )
        training_of.folder = work.folder / "train-x"
        training_of.folder.mkdir()
        about = training_of._facts()
    own = one.subgraph(part.train)
    assert about["adjusted"] == pytest.approx(pf.measures.adjusted_homophily(own))
    assert about["isolated"] == (np.diff(one.adjacency.indptr) == 0).sum()
    if not numeric:
        assert about["edge"] == pytest.approx(pf.measures.edge_homophily(own))


def test_splits_are_the_folds_of_the_graph_in_memory(tmp_path, graph):
    with Work(tmp_path) as work:
        found = training.draw_split(graph.labels, graph_pieces(work, graph).order, 3)
    for mine, theirs in zip(found, pf.splits.draw_folds(graph, k=5, seed=3)[0], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_table_of_predictions_is_turned_some_columns_at_a_time(tmp_path):
    from pegfan.decisions import Decision
    from pegfan.large.tables import write_predictions
    from support.pieces import stage_of

    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.ones(5), 300)).astype(np.float32)
    np.save(tmp_path / "outputs.npy", logs)
    with Work(tmp_path / "work") as work:
        order = rng.permutation(300)
        stage = stage_of(work, "order", [({"order": order}, {})])
        made = []
        for memory in (10**9, 300 * 4 * 3 * 2):
            path = tmp_path / f"{memory}.csv"
            write_predictions(
                path, tmp_path / "outputs.npy", stage, Decision(), list("abcde"), np.zeros(300, np.uint8), None, memory
            )
            made.append(path.read_bytes())
    assert made[0] == made[1]
    rows = list(csv.DictReader(made[0].decode().splitlines()))
    assert float(rows[order[7]]["p_c"]) == pytest.approx(np.exp(logs[7, 2]), rel=1e-6)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("outputs.npy.")]


def test_outputs_are_those_of_large_graphs_in_memory_bit_for_bit(tmp_path, monkeypatch):
    graph = pf.datasets.synthetic(0.3, n=5000, n_edges=20000, n_features=12)
    monkeypatch.setattr(predicting, "_BLOCK", 4096)
    monkeypatch.setattr(predicting, "_PARTS", 2)
    monkeypatch.setattr("pegfan.training.network.suits", lambda channels, rows: True)
    tree = TREE.build_tree(graph)
    with Work(tmp_path, memory=500_000) as work:
        channels = make_channels(work, graph_pieces(work, graph, tree), TREE)
        network = Network.draw(channels.widths, 3, TREE.settings, 1)
        predicting.predict_places(network, channels, 3, tmp_path / "said.npy")
        said = np.load(tmp_path / "said.npy")[channels.places_of()]
    np.testing.assert_array_equal(said, network.predict(TREE.channels(graph, tree, split=None)))


def test_an_ensemble_that_was_fitted_in_memory_predicts_in_pieces(tmp_path, small):
    base = pf.datasets.synthetic(0.3, n=400, n_edges=1600, n_features=6, splits=1)
    features = np.vstack([base.features[:390], np.zeros((10, 6))])  # some nodes look alike
    pairs = np.argwhere(np.triu(base.adjacency.toarray()))
    pairs = np.vstack([pairs[(pairs < 390).all(axis=1)], np.column_stack([np.arange(390, 400), np.zeros(10, int)])])
    graph = pf.Graph.from_edges(pairs, n=400, features=features, labels=base.labels, splits=base.splits)
    recipes = [
        {"method": "matching", "kind": "b", "regime": "heterophily", "epochs": 5},
        {"method": "none", "regime": "homophily", "scaling": "columns", "epochs": 5},
        {"method": "none", "regime": "heterophily", "head": "linear"},
    ]
    model = pf.AutoClassifier(recipes=recipes, choose="mean", members=3).fit(graph)
    assert len(model.members_) == 3
    with Work(tmp_path / "work") as work:
        pieces = graph_pieces(work, graph)
        assert pieces.order.results[0]["tied"]
        predicting.predict_in_pieces(work, pieces, model.save(tmp_path / "model"), tmp_path / "p.parquet")
        with pytest.raises(ValueError, match="feature columns"):
            predicting.predict_in_pieces(work, graph_pieces(work, graph.replace(features=features[:, 1:])), model, "p")
    table = pq.read_table(tmp_path / "p.parquet")
    mine = np.column_stack([table[f"p_{k}"] for k in range(graph.n_classes)])
    np.testing.assert_allclose(mine, model.predict_proba(graph), atol=1e-4)


def test_where_memory_is_short_some_test_nodes_are_judged(tmp_path, graph, small, monkeypatch):
    monkeypatch.setattr(training, "_JUDGED", 50)
    with Work(tmp_path, memory=100_000) as work:
        recipe = HOPS.changed(head="linear")
        found = training.train(work, pieces_of(work, graph), graph.labels, graph.splits[0], recipes=[recipe])
    assert sum(map(sum, found.result.confusion)) == int(0.06 * 100_000 / (8 * graph.n_classes))
    assert [note.kind for note in found.result.warnings] == ["some test nodes"]


_SCRIPT = """
import sys
import time
sys.path.insert(0, {tests!r})
import numpy as np
import pegfan as pf
from pegfan.large import rows, training
from pegfan.large.pieces import Work
from pegfan.recipe import Recipe
from support.pieces import graph_pieces
rows.RUN, rows.WINDOW, training.ROWS = 50, 3, 64
graph = pf.datasets.synthetic(0.3, n=1500, n_edges=12000, n_features=12, splits=1)
long = {{"epochs": 120, "patience": 120}}
recipe = Recipe(method="none", regime="heterophily", hops=2, scaling="none", settings=long)
with Work({folder!r}) as work:
    found = training.train(work, graph_pieces(work, graph), graph.labels, graph.splits[0], recipes=[recipe], every=0.0)
    np.save({out!r}, np.load(found.outputs))
"""


@pytest.mark.long
def test_kill_9_loses_nothing_but_time(tmp_path):
    def start(name):
        tests = str(Path(__file__).parents[1])
        script = _SCRIPT.format(tests=tests, folder=str(tmp_path / name), out=str(tmp_path / f"{name}.npy"))
        return subprocess.Popen([sys.executable, "-c", script])

    begun = time.monotonic()
    assert start("whole").wait(300) == 0
    whole, killed = time.monotonic() - begun, 0
    for seed in range(40):
        process = start("killed")
        try:
            process.wait((0.4 + 0.1 * np.random.default_rng(seed).random() + 0.02 * seed) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            continue
        assert process.returncode == 0
        break
    assert killed > 0
    np.testing.assert_array_equal(np.load(tmp_path / "whole.npy"), np.load(tmp_path / "killed.npy"))


def test_a_run_that_was_kept_comes_back_as_the_same_bits(tmp_path):
    """A training that was killed after this goes on from the file, and its model must be saved as the same bits."""
    history = {"val_loss": [0.5, 0.25], "attention": [np.full(3, 0.1, np.float32), np.full(3, 0.2, np.float32)]}
    run = Run(
        split=0,
        seed=1,
        epochs=2,
        best_epoch=1,
        val_loss=0.25,
        val_metric=0.5,
        test_metric=0.5,
        seconds=1.0,
        attention=np.full(3, 0.1, np.float32),
        state={"w": np.ones(2, np.float32)},
        history=history,
    )
    training._write_run(tmp_path / "run.npz", run)
    back = training._read_run(tmp_path / "run.npz")
    assert back.history["val_loss"] == history["val_loss"]
    for one, other in ((back.history["attention"], history["attention"]), ([back.attention], [run.attention])):
        assert [(row.dtype, row.tolist()) for row in one] == [(row.dtype, row.tolist()) for row in other]
