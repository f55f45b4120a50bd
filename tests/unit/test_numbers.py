"""Numeric targets end to end: graphs, readers, both engines, boosting, models, reasons, results and commands."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import pegfan as pf
from pegfan import results
from pegfan._saved import load_fitted
from pegfan.auto.outcome import Plan, carry_out, with_metric, with_splits
from pegfan.auto.reasons import add_importances, add_reasons
from pegfan.channels import hop_matrix, propagated_labels
from pegfan.cli import app
from pegfan.datasets import NoLabels, graph_from_tables
from pegfan.explain import Explainer
from pegfan.fitted import mean_of, only_classes
from pegfan.graph import are_known
from pegfan.importance import permutation_importance
from pegfan.measures import adjusted_homophily
from pegfan.recipe import Known
from pegfan.report import write_report
from pegfan.splits import draw_splits
from pegfan.training import Network
from pegfan.training.rows import Units

N = 240
BOOSTED = {"method": "none", "hops": 1, "regime": "all", "labels": True, "structure": True, "head": "boosting"}
PLAIN = {"method": "none", "regime": "all", "scaling": "columns"}


def houses(n=N, seed=0, unknown=0.0):
    """A graph whose numbers are told by a node's own column and by the mean of its neighbours' other column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    graph = pf.Graph.from_edges(rng.integers(n, size=(4 * n, 2)), n=n, features=x)
    a = graph.adjacency
    near = a @ x[:, 1] / np.maximum(a.sum(axis=1), 1)
    y = 50_000 + 1_000 * (2 * x[:, 0] + 5 * near + 0.2 * rng.normal(size=n))
    y[rng.random(n) < unknown] = np.nan
    nodes = rng.permutation(n)
    parts = [np.sort(part) for part in np.split(nodes, [n // 2, 3 * n // 4])]
    names = [f"{i:04d}" for i in range(n)]
    return graph.replace(targets=y, splits=[pf.Split(*parts)], node_names=names, feature_names=list("abcd"))


@pytest.fixture(scope="module")
def graph():
    return houses()


@pytest.fixture(scope="module")
def model(graph):
    recipes = [
        {**PLAIN, "epochs": 120, "labels": True, "structure": True, "adjacency": True},
        {"h": 4, "regime": "homophily", "scaling": "columns", "layers": 3, "epochs": 80},
        {**BOOSTED, "epochs": 60},
    ]
    return pf.AutoRegressor(recipes=recipes, choose="mean").fit(graph)


# ---------------------------------------------------------------------- graphs


def test_a_graph_has_labels_or_targets_and_targets_go_where_nodes_go():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], targets=[1.5, None, -1])
    assert repr(graph) == "Graph(n=3, edges=2, undirected, targets)"
    assert (graph.metric, graph.labels, graph.n_classes) == ("r2", None, 0)
    assert graph.labelled.tolist() == [True, False, True], "-1 is a number like any other"
    assert graph.truth is graph.targets
    assert not graph.targets.flags.writeable
    np.testing.assert_array_equal(graph.permute([2, 0, 1]).targets, [-1, 1.5, np.nan])
    np.testing.assert_array_equal(graph.subgraph([2, 1]).targets, [-1, np.nan])
    np.testing.assert_array_equal(graph.symmetrize().replace(metric="mae").targets, graph.targets)
    classes = graph.replace(labels=["a", "b", "a"])
    assert (classes.targets, classes.metric) == (None, "accuracy")
    again = classes.replace(targets=[1.0, 2.0, 3.0])
    assert (again.labels, again.class_names, again.metric) == (None, None, "r2")
    assert again.replace(targets=None).metric == "accuracy"
    assert are_known(np.array([0, -1])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("attributes", "error", "words"),
    [
        ({"targets": [1.0, 2.0]}, ValueError, "targets has 2 rows, but the graph has 3 nodes"),
        ({"targets": [1.0, np.inf, 0.0]}, ValueError, r"targets\[1\] = inf is not finite; NaN is for unknown ones"),
        ({"targets": ["a", "b", "c"]}, TypeError, "real numbers"),
        ({"targets": [1.0, None, "x"]}, TypeError, "targets must be numbers, NaN or None"),
        ({"targets": [1.0, 2.0, 3.0], "labels": [0, 1, 0]}, ValueError, "give one of them"),
        ({"targets": [1.0, 2.0, 3.0], "metric": "accuracy"}, ValueError, "accuracy is for classes.* choose r2 or mae"),
        ({"labels": [0, 1, 0], "metric": "mae"}, ValueError, "for numbers.*choose accuracy .*label_kind='numbers'"),
    ],
)
def test_wrong_targets_are_refused_with_the_fix(attributes, error, words):
    with pytest.raises(error, match=words):
        pf.Graph.from_edges([[0, 1], [1, 2]], **attributes)


def test_targets_go_to_other_libraries_and_back():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], targets=[1.5, np.nan, 2.0])
    np.testing.assert_array_equal(pf.Graph.from_pyg(graph.to_pyg()).targets, graph.targets)
    drawn = graph.to_networkx()
    assert [data["target"] for _, data in drawn.nodes(data=True)] == [1.5, None, 2.0]
    whole = graph.replace(targets=[1.0, np.nan, 2.0])
    assert pf.Graph.from_pyg(whole.to_pyg()).labels is not None, "whole numbers are classes, unless it is said"
    with pytest.raises(ValueError, match="AutoRegressor or PEGFANRegressor"):
        pf.PEGFANClassifier().fit(graph.replace(features=np.eye(3)), ([0], [2], []))


def test_adjusted_homophily_is_the_correlation_of_the_ends_of_edges():
    rng = np.random.default_rng(3)
    graph = pf.Graph.from_edges(rng.integers(50, size=(150, 2)), n=50, targets=rng.normal(size=50))
    i, j = graph.adjacency.tocoo().coords
    kept = i != j
    expected = np.corrcoef(graph.targets[i[kept]], graph.targets[j[kept]])[0, 1]
    assert adjusted_homophily(graph) == pytest.approx(expected)
    described = graph.describe()
    assert described.adjusted_homophily == pytest.approx(expected)
    assert (described.edge_homophily, described.labelled, described.classes) == (None, 50, 0)
    assert adjusted_homophily(graph.replace(targets=np.ones(50))) == 0.0
    assert np.isnan(adjusted_homophily(pf.Graph.from_edges([[0, 1]], targets=[1.0, np.nan])))


def test_targets_of_neighbours_leave_a_nodes_own_out():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], targets=[4.0, -2.0, 7.0])
    step, nothing = hop_matrix(graph, "A"), np.array([], int)
    near = propagated_labels(graph, step, pf.Split(np.array([0, 1]), nothing, np.array([2])))
    assert near.tolist() == [[-2.0, 1.0], [4.0, 1.0], [-2.0, 1.0]], "the test node's 7 is seen by nobody"
    far = propagated_labels(graph, [step, step], pf.Split(np.array([0, 1]), nothing, nothing))
    assert far.tolist() == [[0.0, 0.0], [0.0, 0.0], [4.0, 1.0]]


def test_splits_divide_every_tenth_alike_however_nodes_are_numbered():
    graph = houses(400, unknown=0.1)
    split = draw_splits(graph, k=1)[0]
    known = graph.targets[graph.labelled]
    assert sum(map(len, split)) == len(known)
    edges = np.quantile(known, np.arange(1, 10) / 10)
    tenths = [np.bincount(np.searchsorted(edges, graph.targets[part]), minlength=10) / len(part) for part in split]
    assert max(abs(share - 0.1).max() for share in tenths) < 0.03
    order = np.random.default_rng(1).permutation(graph.n)
    moved = draw_splits(graph.permute(order), k=1)[0]
    for one, other in zip(split, moved, strict=True):
        assert np.array_equal(np.sort(order[other]), one)


# ---------------------------------------------------------------------- readers


def table(values, **columns):
    n = len(values)
    nodes = {"id": [f"n{i}" for i in range(n)], "age": np.arange(n) % 7, **columns, "price": values}
    return nodes, [(f"n{i}", f"n{(i + 1) % n}") for i in range(n)]


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        (np.linspace(0, 1, 30), True),
        (np.linspace(0, 1, 21), True),
        (np.arange(30) % 21, True),
        (np.tile(np.arange(20), 5), False),  # twenty whole numbers
        (np.tile(np.arange(25), 30), False),  # 25 of 750 differ
        (np.where(np.arange(40) % 4, np.linspace(-1, 9, 40), np.nan), True),
        (["x", "y"] * 20, False),
    ],
)
def test_what_can_hardly_be_classes_are_numbers_and_it_is_said(values, numeric):
    graph, report = graph_from_tables(*table(values), label="price", report=True)
    assert (graph.targets is not None, graph.labels is not None) == (numeric, not numeric)
    assert ("numbers to predict" in report.columns["label"]) == numeric
    assert ("label_kind='classes' reads classes" in report.columns["label"]) == numeric
    if numeric:
        np.testing.assert_array_equal(graph.targets, values)
        assert "price" not in graph.feature_names


def test_the_kind_of_labels_can_be_asked_for():
    few = table(np.arange(12) % 4)
    assert graph_from_tables(*few, label="price", label_kind="numbers").targets.tolist() == (np.arange(12) % 4).tolist()
    many = table(np.arange(100) % 50)
    assert graph_from_tables(*many, label="price").targets is not None
    assert graph_from_tables(*many, label="price", label_kind="classes").n_classes == 50
    texts = table(["1.5", "", "2", "unknown"])
    np.testing.assert_array_equal(
        graph_from_tables(*texts, label="price", label_kind="numbers").targets, [1.5, np.nan, 2, np.nan]
    )


def test_a_column_named_target_holds_numbers_and_one_named_y_may_be_a_place():
    numbers = np.linspace(0, 1, 30)
    nodes, edges = table(["a", "b"] * 15, target=numbers)
    assert graph_from_tables(nodes, edges).targets is not None
    nodes, edges = table(["a", "b"] * 15, y=numbers)
    graph = graph_from_tables(nodes, edges)
    assert graph.truth is None
    assert "y" in graph.feature_names


def test_labels_that_are_no_numbers_are_answered_with_the_place_and_the_fix():
    with pytest.raises(
        ValueError, match="nodes, row 1: 'x' in label column 'price' is not a finite number; correct it"
    ):
        graph_from_tables(*table(["1.5", "x", "3"]), label="price", label_kind="numbers")
    with pytest.raises(NoLabels, match="every number in column 'price' is missing"):
        graph_from_tables(*table([None] * 4), label="price", label_kind="numbers")
    with pytest.raises(ValueError, match=r"holds 0.5; labels are classes.*label_kind='numbers'"):
        graph_from_tables(*table([0.5, 1.0, 2.0]), label="price")
    with pytest.raises(ValueError, match="label_kind must be 'classes' or 'numbers'"):
        graph_from_tables(*table([0.5, 1.0]), label="price", label_kind="real")


def test_nodes_that_edges_add_have_no_number():
    nodes, edges = table(np.linspace(0, 1, 30))
    graph = graph_from_tables(nodes, [*edges, ("n0", "new")], label="price", unknown="add")
    assert (graph.n, int(graph.labelled.sum())) == (31, 30)


def test_files_of_arrays_hold_numbers_too(tmp_path):
    y = np.linspace(0, 1, 5)
    np.savez(tmp_path / "graph.npz", edge_index=np.array([[0, 1, 2], [1, 2, 3]]), y=y, x=np.eye(5))
    np.testing.assert_array_equal(pf.read_graph(tmp_path / "graph.npz").targets, y)
    np.savez(tmp_path / "whole.npz", edge_index=np.array([[0, 1, 2], [1, 2, 3]]), y=np.arange(5), x=np.eye(5))
    assert pf.read_graph(tmp_path / "whole.npz").n_classes == 5
    assert pf.read_graph(tmp_path / "whole.npz", label_kind="numbers").targets is not None


# --------------------------------------------------------------------- training


def test_both_engines_learn_numbers_in_the_targets_units(graph):
    channels = pf.make_fsgnn_channels(graph, regime="all", hops=2, scaling="none")
    for engine in ("fast", "plain"):
        run = pf.train(channels, graph.targets, graph.splits, {"epochs": 250}, engine=engine, history=True).runs[0]
        assert run.test_metric > 0.8, engine
        mean, scale = run.state["target"]
        train = graph.targets[graph.splits[0].train]
        assert (mean, scale) == (pytest.approx(train.mean()), pytest.approx(train.std()))
        assert run.history["val_metric"][run.best_epoch] == pytest.approx(run.val_metric)
        predicted = Network(run.state).predict(channels)
        assert predicted.shape == (graph.n, 1)
        assert np.abs(predicted[:, 0] - graph.targets).mean() < 0.5 * train.std()


def test_the_engines_take_the_same_first_step(graph):
    channels = pf.make_fsgnn_channels(graph, regime="all", hops=1, scaling="none")
    runs = [
        pf.train(channels, graph.targets, graph.splits, {"epochs": 3, "dropout": 0.0}, engine=engine).runs[0]
        for engine in ("fast", "plain")
    ]
    assert runs[0].val_loss == pytest.approx(runs[1].val_loss, rel=1e-4)
    for name, value in runs[0].state.items():
        np.testing.assert_allclose(value, runs[1].state[name], rtol=2e-3, atol=2e-4, err_msg=name)


def test_the_torch_network_of_a_regressor_says_the_same(graph):
    model = pf.PEGFANRegressor(method="none", regime="all", epochs=20).fit(graph)
    channels = next(model.fitted_.channels_on(model.fitted_.prepared(graph)))
    said = model.to_torch()(channels).detach().numpy()[:, 0]
    np.testing.assert_allclose(said, model.predict(), rtol=1e-5)


@pytest.mark.parametrize("recipe", [PLAIN, BOOSTED], ids=["network", "boosting"])
def test_weights_of_two_are_as_two_nodes_and_weights_of_zero_as_none(graph, recipe):
    weights = np.ones(graph.n)
    weights[graph.splits[0].train[:20]] = 0.0
    model = pf.AutoRegressor(recipes=[{**recipe, "epochs": 15}]).fit(graph, sample_weight=weights)
    part = graph.splits[0]
    fewer = graph.replace(splits=[pf.Split(part.train[20:], part.val, part.test)])
    bare = pf.AutoRegressor(recipes=[{**recipe, "epochs": 15}]).fit(fewer)
    np.testing.assert_allclose(model.predict(), bare.predict(), rtol=1e-5)
    units = Units.of(np.array([1.0, 4.0]), np.array([2 / 3, 1 / 3]))
    assert (units.centre, units.scale) == (pytest.approx(2.0), pytest.approx(np.std([1, 1, 4])))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c, g: pf.train(c, g.targets, g.splits, metric="accuracy"), "accuracy is for classes"),
        (lambda c, g: pf.train(c, g.targets, g.splits, {"class_weights": True}), "class_weights are for classes"),
        (lambda c, g: pf.train(c, np.where(np.arange(N) == 3, np.inf, g.targets), g.splits), "target 3 is not finite"),
        (lambda c, g: pf.train(c, np.full(N, np.nan), g.splits), "is in train but has no label"),
        (lambda c, g: Network({**pf.train(c, np.arange(N) % 2, g.splits, {"epochs": 1}).runs[0].state,
                               "target": np.ones(2)}), "one output"),
        (lambda c, g: Network({**pf.train(c, g.targets, g.splits, {"epochs": 1}).runs[0].state,
                               "target": np.zeros(2)}), "mean and the scale of targets"),
    ],
)  # fmt: skip
def test_what_does_not_fit_numbers_is_refused(graph, call, words):
    channels = pf.make_fsgnn_channels(graph, regime="all", hops=1, scaling="none")
    with pytest.raises(ValueError, match=words):
        call(channels, graph)


# ----------------------------------------------------------------------- models


@given(st.integers(0, 2**31))
@settings(max_examples=3, deadline=None)
def test_renumbered_nodes_get_the_same_numbers_bit_for_bit(seed):
    graph = houses(120, seed % 5)
    order = np.random.default_rng(seed).permutation(graph.n)
    recipes = [{**PLAIN, "labels": True, "structure": True, "epochs": 6}, {"h": 3, "epochs": 4, "regime": "auto"}]
    recipes.append({**BOOSTED, "epochs": 6})
    one, other = (
        pf.AutoRegressor(recipes=recipes, choose="mean").fit(given, split="random")
        for given in (graph, graph.permute(order))
    )
    assert np.array_equal(one.predict()[order], other.predict())


def test_a_regressor_comes_back_from_its_folder(model, graph, tmp_path):
    folder = model.save(tmp_path / "model")
    loaded = pf.load_model(folder)
    assert type(loaded) is pf.AutoRegressor
    assert np.array_equal(loaded.predict(graph), model.predict())
    assert loaded.score(graph) == model.score() == model.score(graph, 0)
    assert loaded.score(graph.replace(metric="mae")) == pytest.approx(
        np.abs(model.predict() - graph.targets)[graph.splits[0].test].mean()
    )
    with pytest.raises(ValueError, match=r"is an? AutoRegressor, not a classifier; use pegfan.load_model"):
        pf.load_classifier(folder)
    about = json.loads((folder / "model.json").read_text())
    with pytest.raises(ValueError, match="do not fit its 0 classes"):
        load_fitted(folder, about | {"metric": "accuracy"})


def test_the_ensemble_is_the_mean_and_new_nodes_get_numbers(model, graph):
    channels = model.fitted_.channels_on(model.fitted_.prepared(None))
    each = [member.network.predict(next(channels)) for member in model.members_]
    np.testing.assert_allclose(model.predict(), np.mean(each, axis=0)[:, 0])
    assert np.array_equal(mean_of([np.zeros((3, 1)), np.ones((3, 1))]), np.full((3, 1), 0.5))
    smaller = graph.subgraph(np.arange(100))
    assert np.isfinite(model.predict(smaller)).all()
    with pytest.warns(UserWarning, match="none of the graph's nodes is one that the model was fitted to"):
        assert model.predict((graph.adjacency, graph.features)).shape == (N,)


def test_models_say_which_kind_they_learn(graph):
    classes = graph.replace(labels=np.arange(N) % 2)
    for model, given_, words in [
        (pf.AutoClassifier(), graph, "AutoClassifier learns classes.*use AutoRegressor or PEGFANRegressor"),
        (pf.NetworkClassifier("gcn"), graph, "NetworkClassifier learns classes"),
        (pf.AutoRegressor(), classes, "AutoRegressor learns numbers.*use AutoClassifier"),
        (pf.PEGFANRegressor(), classes, "use PEGFANClassifier"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(given_)
    with pytest.raises(ValueError, match="the graph has no targets to compare with"):
        pf.PEGFANRegressor(method="none", epochs=1).fit(graph).score(graph.replace(targets=None))
    assert "compare is for classes" in only_classes("compare")
    with pytest.raises(ValueError, match="compare is for classes"):
        pf.compare(graph, ["fsgnn"])


def test_numbers_may_come_as_a_tuple_or_from_networkx(graph):
    given_ = (graph.adjacency, graph.features, np.round(graph.targets))
    model = pf.PEGFANRegressor(method="none", epochs=5).fit(given_, split=graph.splits[0])
    assert model.predict().shape == (N,)
    other_ = pf.PEGFANRegressor(method="none", epochs=5).fit(graph.to_networkx(), split=graph.splits[0])
    assert np.array_equal(other_.fitted_.graph.targets, graph.targets)


def test_what_is_known_of_folds_keeps_their_parts_when_the_graph_grows(graph):
    small = graph.subgraph(np.arange(200))
    nodes = np.arange(200)
    splits = [pf.Split(nodes[60:], nodes[:30], nodes[30:60]), pf.Split(nodes[:140], nodes[140:170], nodes[170:])]
    known = Known.of_folds(small, splits)
    grown = known.extended(graph, np.where(np.arange(N) < 200, np.arange(N), -1))
    assert np.array_equal(grown.folds[:, :200], known.folds)
    assert not grown.folds[:, 200:].any()
    assert np.array_equal(grown.held_out(graph)[:200], known.held_out(small))
    for fold, split in enumerate(splits):
        values = grown.of_fold(fold).values_of(graph)
        assert np.array_equal(np.flatnonzero(~np.isnan(values)), split.train)
        assert (values[split.train].mean(), values[split.train].std()) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


# ---------------------------------------------------------------------- reasons


def test_reasons_add_up_to_the_number_in_its_units(model):
    for top in (None, 3):
        for one in model.explain(nodes=[0, 17], top=top):
            gap = one.score - one.average
            assert one.score == pytest.approx(model.predict()[one.node], rel=1e-5)
            assert (one.target, one.probability) == ("value", None)
            for parts in (one.channels, one.columns, one.reasons):
                assert sum(part.contribution for part in parts) == pytest.approx(gap, rel=1e-6, abs=1e-4)
            assert sum(n.contribution for n in one.nodes) + sum(one.rest.values()) == pytest.approx(gap, abs=1e-4)
    texts = Explainer(model.fitted_).texts()
    assert len(texts) == N
    assert "e+0" not in " ".join(texts), "thousands are written out"


def test_the_columns_that_make_the_numbers_matter_most(graph):
    model = pf.PEGFANRegressor(method="none", regime="all", epochs=150).fit(graph)
    found, left = permutation_importance(Explainer(model.fitted_), graph.targets, graph.splits[0].test, "r2")
    assert left == 0
    assert {row.name for row in found[:2]} == {"a", "b"}
    assert found[0].drop == pytest.approx(found[0].loss), "R² is one minus the error over the variance"
    by_error, _ = permutation_importance(Explainer(model.fitted_), graph.targets, graph.splits[0].test, "mae")
    assert by_error[0].drop > 0, "where smaller is better, a growth counts"


# ---------------------------------------------------------------------- results


@pytest.fixture(scope="module")
def outcome():
    known, why = with_metric(houses(unknown=0.2).replace(splits=()))
    recipes = [pf.Recipe.of({**PLAIN, "epochs": 120, "hops": hops}) for hops in (0, 2)]
    return carry_out(known, Plan(recipes=recipes, splits=2, metric_reason=why))


def test_a_result_has_both_scores_beside_their_floors(outcome):
    result = outcome.result
    found = result.regression
    assert (result.data.metric, result.metric_reason, result.data.classes) == ("r2", "numbers are predicted", ())
    assert result.test.mean > result.features_only.mean > result.majority.mean
    assert abs(result.majority.mean) < 0.2
    for name, better in (("r2", 1), ("mae", -1)):
        model, features, mean = found.scores[name]
        assert better * model.mean > better * features.mean > better * mean.mean
        assert model.interval[0] < model.mean < model.interval[1]
    test = outcome.judged.test
    errors = outcome.predicted[test] - outcome.graph.targets[test]
    assert found.bias == pytest.approx(errors.mean())
    assert found.median_error == pytest.approx(np.median(np.abs(errors)))
    assert len(found.points) == len(test)
    assert abs(found.worst[0].value - found.worst[0].true) == pytest.approx(np.abs(errors).max())
    assert found.first[0].value == pytest.approx(outcome.predicted[~outcome.graph.labelled].max())
    assert (found.total, found.held_out, found.first[0].true) == (int((~outcome.graph.labelled).sum()), False, None)
    assert results.Result.from_json(result.to_json()) == result
    for name in ("confusion", "per_class", "unsure", "precision_recall"):
        assert getattr(result, name) == (), name
    explained = add_reasons(result, outcome.model.fitted_, outcome.graph)
    assert {row.id for row in explained.reasons} == {row.id for row in (*found.first, *found.worst)}


def test_a_graph_whose_numbers_are_all_known_ranks_test_nodes(graph):
    found = results.regression(graph, graph.splits[0], np.arange(N, dtype=float), {k: [] for k in
                               ("model", "features", "mean")}, 0)  # fmt: skip
    assert found.held_out
    assert found.total == len(graph.splits[0].test)


def test_the_report_speaks_of_numbers_and_not_of_classes(outcome, tmp_path):
    result = add_importances(outcome.result, outcome.model.fitted_, outcome.graph)
    page = write_report(tmp_path / "report.html", result, outcome.graph, None, outcome.probabilities)
    text = page.read_text(encoding="utf-8")
    start = text.index('<script type="application/json" id="content">')
    content = json.loads(text[text.index("{", start) : text.index("</script>", start)])
    assert content["numeric"] is True
    assert "R² of 0." in content["lede"]
    assert "always answering with the mean" in content["lede"]
    assert {"numbers", "ranking", "score", "importance"} <= content.keys()
    assert not {"confusion", "per_class", "probabilities", "finding", "unsure"} & content.keys()
    assert [row["name"] for row in content["numbers"]["scores"]] == [
        "This model", "Features only, no graph", "Always the mean"
    ]  # fmt: skip
    assert len(content["classes"]) == 5
    assert "class" not in content["data"]["words"]
    with pytest.raises(ValueError, match="240 × 1"):
        write_report(tmp_path / "other.html", outcome.result, outcome.graph, None, np.ones((N, 2)))


def test_what_cannot_be_learned_is_said_before_anything_runs(graph):
    same = graph.replace(targets=np.ones(N))
    with pytest.raises(ValueError, match="all 240 labelled nodes are of the number 1"):
        with_splits(same, Plan())
    with pytest.raises(ValueError, match="a threshold or a share to flag is for two classes"):
        carry_out(graph, Plan(threshold=0.3))
    with pytest.raises(ValueError, match="positive='a' is for two classes"):
        with_metric(graph, positive="a")
    assert with_metric(graph, "mae")[1] == "it was asked for"


# --------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Houses by their neighbours: rooms tell half of the price, where a house stands the other half."""
    folder, rng, n = tmp_path_factory.mktemp("houses"), np.random.default_rng(1), 500
    place = rng.random((n, 2))
    near = np.argsort(((place[:, None] - place[None]) ** 2).sum(-1), axis=1)[:, 1:6]
    pairs = np.unique(np.sort(np.column_stack([np.repeat(np.arange(n), 5), near.ravel()]), axis=1), axis=0)
    rooms, ids = rng.integers(1, 7, n), np.array([f"{i:05d}" for i in range(n)])
    price = 60_000 * rooms + 90_000 * (np.sin(5 * place[:, 0]) + np.cos(4 * place[:, 1])) + 350_000
    price = np.where(rng.random(n) < 0.2, np.nan, (price + rng.normal(0, 20_000, n)).round(2))
    columns = {"id": ids, "rooms": rooms, "garden": rng.choice(["yes", "no"], n), "price": price}
    pd.DataFrame(columns).to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"house": ids[pairs[:, 0]], "next": ids[pairs[:, 1]]}).to_csv(folder / "edges.csv", index=False)
    return folder


def run(files, *words, code=0):
    where = [str(files / name) for name in ("nodes.csv", "edges.csv")]
    done = CliRunner().invoke(app, [w for word in words for w in (where if word == "FILES" else [str(word)])])
    assert done.exit_code == code, done.output + str(done.exception)
    return done.output


def read(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.long
def test_a_column_of_prices_is_learned_from_end_to_end(files, tmp_path):
    out = tmp_path / "out"
    said = run(files, "train", "FILES", "--label", "price", "-o", out, "--budget", 10, "--splits", 2, "--workers", 1,
               "--reasons")  # fmt: skip
    assert "with a number to predict (--label-kind classes reads classes)" in said
    assert "Judged by R²" in said
    result = results.Result.from_json((out / "result.json").read_text())
    assert result.test.mean > result.features_only.mean + 0.1, "the graph is worth it"
    rows = read(out / "predictions.csv")
    assert list(rows[0]) == ["id", "predicted", "split", "top_reasons"]
    assert {row["split"] for row in rows} >= {"fold 1", "fold 2", "none"}
    assert rows[7]["id"] == "00007"
    ranked = read(out / "ranked.csv")
    assert list(ranked[0]) == ["rank", "id", "predicted", "top_reasons"]
    values = [float(row["predicted"]) for row in ranked]
    assert values == sorted(values, reverse=True)
    assert {row["id"] for row in ranked} == {row["id"] for row in rows if row["split"] == "none"}
    told = run(files, "predict", out, "FILES", "-o", tmp_path / "p.csv", "--json")
    assert json.loads(told)["predicted"].keys() == {"lowest", "median", "mean", "highest"}
    again = read(tmp_path / "p.csv")
    both = [(one, two) for one, two in zip(rows, again, strict=True) if one["split"] == "none"]
    assert all(float(one["predicted"]) == pytest.approx(float(two["predicted"])) for one, two in both)
    found = json.loads(run(files, "explain", out, "00007", "--json"))["nodes"][0]
    assert sum(share["contribution"] for share in found["columns"]) == pytest.approx(found["score"] - found["average"])
    assert "that of the average node" in run(files, "explain", out, "00007")
    assert "for classes" not in run(files, "report", out, "-o", tmp_path / "again.html")
    run(files, "predict", out, "FILES", "-o", tmp_path / "q.csv", "--threshold", 0.5, code=2)
    run(files, "explain", out, "00007", "--class", "a", code=2)
    # Five rows say nothing of their kind: they are read as those of the training.
    few = pd.read_csv(files / "nodes.csv", dtype={"id": str}).head(5)
    few.to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "links.csv").write_text("house,next\n00000,00001\n00002,00003\n")
    done = CliRunner().invoke(
        app,
        ["predict", str(out), str(tmp_path / "few.csv"), str(tmp_path / "links.csv"), "-o", str(tmp_path / "f.csv")],
    )
    assert done.exit_code == 0, done.output
    (tmp_path / "new.csv").write_text("id,rooms,garden,price\nnew1,6,yes,\nnew2,1,no,\n")
    (tmp_path / "ties.csv").write_text("house,next\nnew1,00007\nnew2,00007\n")
    added = [str(tmp_path / name) for name in ("new.csv", "ties.csv")]
    done = CliRunner().invoke(app, ["predict", str(out), *added, "--add", "-o", str(tmp_path / "a.csv"), "--reasons"])
    assert done.exit_code == 0, done.output
    one, two = read(tmp_path / "a.csv")
    assert float(one["predicted"]) > float(two["predicted"]), "six rooms and one, next to the same house"
    repeated = tmp_path / "repeated"
    run(files, "train", "--config", out / "settings.toml", "-o", repeated)
    same = [[row["predicted"] for row in read(f / "predictions.csv")] for f in (out, repeated)]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--metric", "accuracy"],
            "accuracy is for classes, and what is to be predicted are numbers; choose r2 or mae",
        ),
        (["--threshold", "0.4"], "--threshold is for classes, and numbers are predicted"),
        (["--flag-share", "0.4"], "--flag-share is for classes, and numbers are predicted"),
        (["--positive", "x"], "--positive is for classes, and numbers are predicted"),
        (["--class-weights"], "--class-weights is for classes, and numbers are predicted"),
    ],
)
def test_options_for_classes_are_answered_before_the_budget_is_spent(files, tmp_path, options, words):
    said = run(files, "train", "FILES", "--label", "price", "-o", tmp_path / "out", *options, code=1)
    assert words in " ".join(said.split())


def test_other_commands_say_that_they_are_for_classes_and_info_describes_numbers(files, tmp_path):
    assert "numbers to predict" in run(files, "info", "FILES", "--label", "price")
    facts = json.loads(run(files, "info", "FILES", "--label", "price", "--json"))
    assert facts["target"]["low"] < facts["target"]["median"] < facts["target"]["high"]
    said = run(files, "compare", "FILES", "--label", "price", "--models", "fsgnn", "--store", tmp_path / "s", code=1)
    assert "for classes, and the labels are numbers to predict" in " ".join(said.split())
    assert "does not know 'real'" in run(files, "info", "FILES", "--label", "price", "--label-kind", "real", code=2)
