"""Training in batches, linear models, and what large graphs share: as exact, as equivariant, and bounded."""

import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pegfan as pf
from pegfan.auto import AutoClassifier, AutoRegressor
from pegfan.auto.outcome import Plan, carry_out
from pegfan.auto.reasons import add_importances, add_reasons
from pegfan.auto.recipes import large_recipes
from pegfan.auto.search import Kept, Pool, Search, Shared, Task, run_task
from pegfan.channels import Channel, Channels, FeatureScale
from pegfan.cli.train import _table
from pegfan.decisions import Predictions
from pegfan.graph import Split
from pegfan.models import ChannelNetwork, to_tensors
from pegfan.recipe import Recipe
from pegfan.report import graphview
from pegfan.running import Deadline, release_memory
from pegfan.training import Network, train
from pegfan.training.batches import BatchSteps, RowsInMemory, suits
from pegfan.training.linear import fit_linear, linear_settings
from pegfan.training.rows import Labelled, loss_weights
from pegfan.training.settings import Settings
from support.training import train_recipe

seeds = st.integers(0, 2**32 - 1)
ROWS = 16


def make(seed=0, n=120, sparse_features=False, kind="c"):
    rng = np.random.default_rng(seed)
    graph = pf.datasets.synthetic(0.2, n=n, n_edges=6 * n, n_features=0, seed=seed, splits=2)
    x = rng.standard_normal((n, 12)) + graph.labels[:, None]
    if sparse_features:
        x = sparse.csr_array(x * (rng.random(x.shape) < 0.1))
    graph = graph.replace(features=x)
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=4))
    return graph, pf.make_channels(graph, system, kind=kind, regime="heterophily", scaling="none")


@pytest.fixture
def small_is_large(monkeypatch):
    """Graphs of a hundred nodes count as large."""
    monkeypatch.setattr("pegfan._limits.LARGE_NODES", 40)
    monkeypatch.setattr("pegfan.training.batches.ROWS", ROWS)


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


# ---------------------------------------------------------------------- batches


@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_step_is_that_of_autograd(sparse_features, normalize):
    import torch

    graph, channels = make(3, sparse_features=sparse_features)
    settings = Settings(hidden=8, dropout=0.0, hop_normalize=normalize, wd_fc1=1e-3, wd_fc2=1e-2)
    part = graph.splits[0]
    rows, val = (Labelled.of(channels, nodes, graph.labels) for nodes in (part.train, part.val))
    state = Network.draw(channels.widths, 4, settings, 0).state
    source = RowsInMemory(channels, rows.places, val.places, 0, ROWS)
    steps = BatchSteps(source, state, rows, val, loss_weights(rows.labels, True), settings, 0)
    model = ChannelNetwork(channels.widths, 4, 8, dropout=0.0, hop_normalize=normalize)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    optimizer = torch.optim.Adam(model.parameter_groups(settings))
    order = source.batches(0)
    for _ in range(4):
        chunk = next(order)
        weights = torch.tensor(steps.weights[chunk] * len(rows.labels) / len(chunk)).float()
        output = model(to_tensors(channels.rows_at(rows.places[chunk], np.dtype(np.float32))))
        loss = -(weights * output[torch.arange(len(chunk)), torch.tensor(rows.labels[chunk])]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert steps._step(chunk) == pytest.approx(loss.item(), rel=1e-4)
    for name, value in model.state_dict().items():
        assert np.allclose(steps.state(steps.w)[name], value.numpy(), atol=2e-3), name


@pytest.mark.parametrize("numeric", [False, True])
def test_weights_do_not_depend_on_threads(numeric):
    graph, channels = make(1)
    truth = graph.labels + 0.5 if numeric else graph.labels
    runs = [
        train(channels, truth, graph.splits[0], {"epochs": 4}, batch=ROWS, threads=threads).runs[0]
        for threads in (1, 3)
    ]
    assert same(runs[0].state, runs[1].state)


@given(seeds)
def test_weights_do_not_depend_on_how_nodes_are_numbered(seed):
    graph, channels = make(seed % 1000)
    perm = np.random.default_rng(seed).permutation(graph.n)
    moved = graph.permute(perm)
    system = pf.FrameletSystem(pf.build_tree(moved, "matching", h=4))
    there = pf.make_channels(moved, system, kind="c", regime="heterophily", scaling="none")
    runs = [
        train(chosen, known.labels, known.splits[0], {"epochs": 3}, batch=ROWS).runs[0]
        for known, chosen in ((graph, channels), (moved, there))
    ]
    assert same(runs[0].state, runs[1].state)
    assert runs[0].val_loss == runs[1].val_loss


def test_batches_learn_and_say_so():
    graph, channels = make(5, n=300)
    result = train(channels, graph.labels, graph.splits[0], {"epochs": 40}, batch=64)
    assert result.engine == "batches"
    assert result.runs[0].val_metric > 0.5


def test_counts_alone_decide_on_batches(small_is_large):
    graph, channels = make(2)
    assert suits(channels, 40)
    assert not suits(channels, 39)
    assert train(channels, graph.labels, graph.splits[0], {"epochs": 1}).engine == "batches"
    assert train(channels, graph.labels, graph.splits[0], {"epochs": 1}, engine="fast").engine == "fast"
    wide = Channels([Channel("A", None, sparse.eye_array(20_000, format="csr"))])
    assert not suits(wide, 20_000)


def test_batches_are_for_two_layers_on_cpus():
    graph, channels = make(2)
    with pytest.raises(ValueError, match="two layers"):
        train(channels, graph.labels, graph.splits[0], {"layers": 3}, engine="batches")
    plain = train(channels, graph.labels, graph.splits[0], {"layers": 3, "epochs": 1}, batch=ROWS)
    assert plain.engine == "plain"


def test_long_epochs_are_cut_and_few_rows_judge_them(monkeypatch):
    graph, channels = make(4)
    monkeypatch.setattr("pegfan.training.batches.STEPS", 2)
    monkeypatch.setattr("pegfan.training.engine.JUDGED", 10)
    seen = []
    real = BatchSteps._step
    monkeypatch.setattr(BatchSteps, "_step", lambda self, chunk: (seen.append(chunk), real(self, chunk))[1])
    part = graph.splits[0]
    train(channels, graph.labels, part, {"epochs": 4}, batch=8)
    assert len(seen) == 8
    count = len(part.train)
    first = np.concatenate(seen)[:count]
    assert sorted(first) == list(range(count)), "a pass over all rows goes on in the next epoch"


@pytest.mark.parametrize("sparse_features", [False, True])
def test_predictions_by_rows_are_those_by_channels(small_is_large, sparse_features):
    _, channels = make(6, sparse_features=sparse_features)
    network = Network.draw(channels.widths, 4, {"hidden": 8}, 0)
    by_rows = network.predict(channels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegfan._limits.LARGE_NODES", 10**9)
        assert np.allclose(network.predict(channels), by_rows, atol=1e-5)
    some = np.array([7, 3, 7])
    assert np.array_equal(network.predict(channels, some), by_rows[some])


# ----------------------------------------------------------------------- linear


def test_a_linear_model_is_at_its_optimum_and_a_network():
    graph, channels = make(8, n=300, kind="b")
    part = graph.splits[0]
    run = fit_linear(channels, graph.labels, part)
    network = Network(run.state, linear_settings(run.state))
    x = np.hstack(channels.rows(np.arange(graph.n), np.float64))
    W = np.hstack([run.state[f"channel_layers.{i}.weight"][:4] for i in range(len(channels))])
    logits = x @ W.T + run.state["output.bias"]
    shown = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert np.allclose(network.predict(channels), shown, atol=1e-3)
    p, y = np.exp(shown[part.train]), np.eye(4)[graph.labels[part.train]]
    assert np.abs((p - y).mean(axis=0)).max() < 1e-3, "the bias is free, so that classes have their shares"
    assert run.test_metric == pytest.approx(
        (network.predict(channels, part.test).argmax(1) == graph.labels[part.test]).mean()
    )


def test_a_linear_model_of_numbers_is_least_squares():
    graph, channels = make(9, n=200, kind="a")
    x = np.hstack(channels.rows(np.arange(graph.n), np.float64))
    target = x @ np.arange(x.shape[1]) / 10 + 3.0
    run = fit_linear(channels, target, graph.splits[0], metric="r2")
    assert run.val_metric > 0.99


@given(seeds)
def test_linear_models_do_not_depend_on_how_nodes_are_numbered(seed):
    graph, _ = make(seed % 1000)
    moved = graph.permute(np.random.default_rng(seed).permutation(graph.n))
    recipe = Recipe(method="none", hops=2, regime="heterophily", scaling="columns", head="linear")
    runs = [train_recipe(recipe, one, 0, 0)[0].run for one in (graph, moved)]
    assert same(runs[0].state, runs[1].state)
    assert runs[0].val_loss == runs[1].val_loss


def test_linear_recipes_are_saved_explained_and_turned_into_torch(tmp_path):
    graph, _ = make(10)
    recipe = {"method": "none", "hops": 2, "regime": "heterophily", "scaling": "columns", "head": "linear"}
    assert Recipe.of(recipe).name == "S^2 columns linear"
    assert Recipe.of({**recipe, "dropout": 0.7, "leaves": 3}) == Recipe.of(recipe)
    model = AutoClassifier(recipes=[recipe]).fit(graph)
    again = AutoClassifier.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(graph), model.predict_proba())
    single = pf.RecipeClassifier(Recipe.of(recipe)).fit(graph)
    assert single.to_torch().output.in_features == 3 * 8
    from pegfan.explain import Explainer

    found = Explainer(model.fitted_).explain([3])[0]
    assert found.score == pytest.approx(found.average + sum(part.contribution for part in found.reasons), abs=1e-4)


# ------------------------------------------------------------------- the search


def test_a_deadline_ends_a_training_and_the_recipe_says_where():
    graph, _ = make(11)
    over = Deadline(0)
    recipe = Recipe(method="none", hops=1, regime="heterophily").changed(epochs=50, hidden=8)
    trial = run_task(Shared(graph, None), Task(recipe, graph.splits[0], 0, until=over))
    assert trial.epochs == 1
    assert trial.recipe == recipe.changed(epochs=1)
    assert trial.asked == recipe
    whole = run_task(Shared(graph, None), Task(trial.recipe, graph.splits[0], 0))
    assert np.array_equal(whole.log_probabilities, trial.log_probabilities)


def test_a_deadline_ends_boosting_too():
    graph, _ = make(11)
    recipe = Recipe(method="none", hops=0, scaling="columns", head="boosting").changed(epochs=50)
    trial = run_task(
        Shared(graph, FeatureScale.of(graph.features)), Task(recipe, graph.splits[0], 0, until=Deadline(0))
    )
    assert trial.epochs == 1


@pytest.mark.long
@pytest.mark.parametrize("numeric", [False, True])
def test_large_graphs_have_a_linear_model_first_and_repeat(small_is_large, numeric):
    graph, _ = make(12, n=200)
    if numeric:
        graph = graph.replace(targets=np.asarray(graph.features).sum(axis=1))
    kind = AutoRegressor if numeric else AutoClassifier
    pins = {"hidden": 8, "epochs": 3}
    one, two = (kind(budget=60, pins=pins, workers=workers).fit(graph) for workers in (1, 2))
    assert one.ran_[0].is_linear
    assert len(one.ran_) >= 8
    # What is varied depends on what was ready first, what a recipe gives does not; and the list comes first.
    listed = len(large_recipes(graph, graph.subgraph(graph.splits[0].train), pins))
    assert one.ran_[: min(listed, 8)] == two.ran_[: min(listed, 8)]
    values = [{(t.recipe, t.seed): t.val_loss for t in model.trials_} for model in (one, two)]
    both = values[0].keys() & values[1].keys()
    assert len(both) >= listed
    assert all(values[0][key] == values[1][key] for key in both)
    for found, workers in ((one, 2), (two, 1)):
        again = kind(recipes=found.ran_, workers=workers).fit(graph)
        assert np.array_equal(again.fitted_.raw(), found.fitted_.raw())


def test_networks_in_batches_have_the_epochs_that_there_is_time_for():
    """None of the list is left out as too slow before its epochs are planned, however slow the machine is."""
    graph, _ = make(12, n=200)
    search = Search(Pool(graph, None, 2, large=True, until=Deadline(100)), graph.splits[0], 0, budget=0.1, members=5)
    search.rates = dict.fromkeys(search.rates, 1.0)
    listed = large_recipes(graph, graph.subgraph(graph.splits[0].train))
    assert not any(search._is_slow(recipe) for recipe in listed if recipe.head in ("network", "linear"))
    search.pool.large = False
    assert all(search._is_slow(recipe) for recipe in listed if recipe.head == "network")


def test_a_search_without_time_keeps_the_linear_model(small_is_large):
    graph, _ = make(12, n=200)
    model = AutoClassifier(budget=1e-3, pins={"hidden": 8}).fit(graph)
    assert [recipe.head for recipe in model.ran_] == ["constant", "linear", "network"]
    assert model.ran_[2].settings.epochs == 1, "the time was over after an epoch, and that is what is repeated"
    again = AutoClassifier(recipes=model.ran_).fit(graph)
    assert np.array_equal(again.predict_proba(), model.predict_proba())


@pytest.mark.long
def test_a_whole_run_on_a_large_graph_repeats(small_is_large):
    graph, _ = make(20, n=240)
    graph = graph.replace(splits=())
    plan = Plan(budget=20, pins={"hidden": 8, "epochs": 4}, workers=2)
    found = carry_out(graph, plan)
    assert found.result.candidates[0].recipe in found.model.ran_
    assert any(candidate.recipe.head == "linear" and candidate.recipe.hops for candidate in found.result.candidates)
    assert add_reasons(found.result, found.model.fitted_, found.graph).reasons
    assert add_importances(found.result, found.model.fitted_, found.graph).importances is not None
    used = len(found.result.splits.used)
    fixed = Plan(budget=20, recipes=found.model.ran_, splits=used, finalists=found.finalists)
    again = carry_out(graph, fixed)
    assert np.array_equal(again.probabilities, found.probabilities)


def test_ctrl_c_keeps_the_best_of_a_large_graph(small_is_large, monkeypatch):
    import pegfan.auto.search as stage

    graph, _ = make(12, n=200)
    real, calls = stage.wait, []

    def ctrl_c(*args, **kwargs):
        calls.append(0)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(stage, "wait", ctrl_c)
    model = AutoClassifier(budget=1000, pins={"hidden": 8}).fit(graph)
    assert "Ctrl-C ended the search" in model.reason_
    assert 1 <= len(model.ran_) <= 3


def test_ctrl_c_keeps_the_best_of_a_small_graph(monkeypatch):
    import pegfan.auto.search as stage

    graph, _ = make(12)
    real, calls = stage.run_task, []

    def ctrl_c(shared, task):
        if shared.graph.n == graph.n:
            calls.append(0)
            if len(calls) == 3:
                raise KeyboardInterrupt
        return real(shared, task)

    monkeypatch.setattr(stage, "run_task", ctrl_c)
    model = AutoClassifier(budget=1000, pins={"hidden": 8, "epochs": 3}).fit(graph)
    assert len(model.ran_) == 2
    assert "Ctrl-C ended the search" in model.reason_
    calls[:] = [0, 0]
    with pytest.raises(KeyboardInterrupt):
        AutoClassifier(budget=1000, pins={"hidden": 8, "epochs": 3}).fit(graph)


def test_plans_share_the_time_among_networks():
    graph, _ = make(13, n=200)
    pool = Pool(graph, None, 2, large=True, until=Deadline(100))
    search = Search(pool, graph.splits[0], 0, budget=100.0, members=5)
    recipe = Recipe(method="none", regime="heterophily")
    plenty = search._planned(recipe).settings
    search.rates["batches"] = 1e-4
    scarce = search._planned(recipe).settings
    assert scarce.epochs < plenty.epochs
    search.rates["batches"] = 1e9
    assert search._planned(recipe).settings.epochs == -(-256 // -(-len(graph.splits[0].train) // 2048))
    search.pins = {"epochs": 7}
    assert search._planned(recipe.changed(epochs=7)).settings.epochs == 7


def test_recipes_of_large_graphs_fit_them():
    graph, _ = make(14, n=200)
    listed = large_recipes(graph, graph.subgraph(graph.splits[0].train))
    assert listed[0].is_linear
    assert not any(recipe.adjacency for recipe in listed)
    assert len(set(listed)) == len(listed) >= 7
    pinned = large_recipes(graph, graph.subgraph(graph.splits[0].train), {"hops": 1, "method": "none"})
    assert {recipe.hops for recipe in pinned} == {1}


# ------------------------------------------------------------- what is shared


def test_channels_of_a_large_graph_share_what_they_are_made_of(small_is_large):
    graph, _ = make(15)
    scale = FeatureScale.of(graph.features)
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=4))
    one = pf.make_channels(graph, system, regime="heterophily", scaling=scale)
    other = pf.make_fsgnn_channels(graph, 2, "heterophily", scaling=scale)
    assert one["S X"].factors[0] is other["S X"].factors[0]
    assert one["X"].signal is other["X"].signal
    first, second = one.rows([5, 7]), other.rows([5, 7])
    assert one._prepared[np.dtype(np.float32)][0][1] is (other._prepared[np.dtype(np.float32)][0][1])
    assert np.array_equal(first[1], second[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegfan._limits.LARGE_NODES", 10**9)
        alone = pf.make_fsgnn_channels(graph, 2, "heterophily", scaling=scale)
        assert all(map(np.array_equal, alone.rows([5, 7]), second))


def test_kept_channels_are_bounded():
    graph, _ = make(15)
    kept, shared = Kept(most=1), Shared(graph, None)
    tasks = [
        Task(Recipe(method="none", regime="heterophily", hops=hops).changed(dropout=dropout), graph.splits[0], 0)
        for hops, dropout in ((1, 0.5), (1, 0.2), (2, 0.5))
    ]
    first, again, other = (kept.channels(shared, task) for task in tasks)
    assert first is again
    assert first is not other
    assert list(kept.made.values()) == [other]


def test_rows_of_scales_are_those_of_matrices():
    _, channels = make(16)
    whole = channels.materialize(np.float64, "dense")
    nodes = np.array([5, 0, 99, 5])
    for part, matrix in zip(channels.rows(nodes, np.float64), whole, strict=True):
        assert np.allclose(part, matrix[nodes], atol=1e-12)


@given(seeds)
def test_scales_of_dense_and_sparse_features_are_one(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((60, 5)) * [1, 100, 1, 1, 1]
    x[rng.random(x.shape) < 0.4] = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegfan.channels.scaling._BLOCK", 130)
        one, other = FeatureScale.of(x), FeatureScale.of(sparse.csr_array(x))
        assert all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("tail", "full", "centre", "scale"))
        blocks = one.apply(x)
    assert np.array_equal(blocks, one.apply(x))


def test_replaced_graphs_share_what_did_not_change():
    graph, _ = make(18)
    other = graph.replace(metric="accuracy", splits=())
    assert other.adjacency is graph.adjacency
    assert other.features is graph.features
    loose = graph.replace(adjacency=graph.adjacency)
    assert loose.adjacency is not graph.adjacency
    with pytest.raises(ValueError, match="rows"):
        graph.replace(adjacency=np.zeros((3, 3)))


# ----------------------------------------------------------- what is written


def test_some_of_many_are_evenly_spaced():
    rows = Labelled(np.arange(10), np.arange(10) % 3, np.ones(10))
    assert rows.some(4).places.tolist() == [0, 2, 5, 7]
    assert rows.some(10) is rows
    told = Predictions(np.zeros((10, 2)), np.arange(10), np.arange(10))
    assert told.some(5).labels.tolist() == [0, 2, 4, 6, 8]


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)


@given(st.lists(texts, min_size=1, max_size=8, unique=True), st.lists(texts, min_size=2, max_size=2), st.booleans())
def test_tables_are_what_csv_writers_write(names, classes, with_reasons):
    rng = np.random.default_rng(len(names))
    p = rng.random((len(names), 2)).astype(np.float32)
    predicted, parts = p.argmax(axis=1), ["test"] * len(names)
    reasons = [f"{name}, because" for name in names] if with_reasons else None
    graph = SimpleNamespace(n=len(names), ids=np.array(names, object))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "predicted", *(f"p_{name}" for name in classes), "split", *["top_reasons"] * with_reasons])
    for i, name in enumerate(names):
        shown = [classes[predicted[i]], *(f"{value:.9g}" for value in p[i]), parts[i]]
        writer.writerow([name, *shown, *([] if reasons is None else [reasons[i]])])
    assert _table(graph, p, predicted, classes, parts, reasons) == out.getvalue()


@given(seeds, st.integers(2, 40))
def test_a_picture_looks_at_the_nodes_near_the_busiest_one(seed, most):
    rng = np.random.default_rng(seed)
    graph = pf.Graph.from_edges(rng.integers(60, size=(120, 2)), n=60)
    around = graphview._around(graph.adjacency, most)
    every = graphview._from_links(graphview._links(graph.adjacency))
    assert around is None or np.array_equal(around, every[: len(around)])
    assert (graphview._links(graph.adjacency, directed=False) != graphview._links(graph.adjacency)).nnz == 0


def test_memory_is_given_back():
    release_memory()
    import pyarrow  # noqa: F401 - its memory is given back where it is there

    release_memory()


def test_splits_are_taken_as_they_are():
    graph, channels = make(19)
    part = Split(graph.splits[0].train, graph.splits[0].val, np.empty(0, np.int64))
    assert np.isnan(train(channels, graph.labels, part, {"epochs": 1}, batch=ROWS).runs[0].test_metric)
