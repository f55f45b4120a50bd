"""What to look at first, what is found that way, and which columns matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan import results
from pegfan.explain import Explainer
from pegfan.graph import Split
from pegfan.importance import permutation_importance
from pegfan.results.ranking import _curve

NOTHING = np.empty(0, np.int64)


def graph_of(labels, **attributes):
    n = len(labels)
    names = [f"n{i}" for i in range(n)]
    return pf.Graph.from_edges([[i, i + 1] for i in range(n - 1)], n=n, labels=labels, node_names=names, **attributes)


def test_unlabelled_nodes_are_ranked_by_the_rarer_class():
    graph = graph_of(["ok", "ok", "fraud", None, None, None])
    p = np.array([[0.5, 0.5]] * 3 + [[0.2, 0.8], [0.9, 0.1], [0.6, 0.4]])
    fraud = graph.classes.tolist().index("fraud")
    ranking = results.ranking(graph, Split(np.arange(3), NOTHING, NOTHING), p)
    assert ranking.by == "fraud"
    assert (ranking.total, ranking.held_out) == (3, False)
    assert [row.id for row in ranking.rows] == [f"n{i}" for i in 3 + np.argsort(-p[3:, fraud])]
    assert [row.true for row in ranking.rows] == [None] * 3


def test_more_classes_are_ranked_one_by_one_and_test_nodes_stand_in():
    graph = graph_of(["a", "b", "c", "a", "b", "c"])
    p = np.eye(3)[[0, 0, 0, 1, 1, 2]] * 0.5 + np.linspace(0.1, 0.2, 6)[:, None]
    ranking = results.ranking(graph, Split(NOTHING, NOTHING, np.arange(1, 6)), p)
    assert ranking.by is None
    assert ranking.held_out
    assert [(row.id, row.target) for row in ranking.rows] == [
        ("n2", "a"), ("n1", "a"), ("n4", "b"), ("n3", "b"), ("n5", "c"),
    ]  # fmt: skip
    assert ranking.rows[0].true == "c"


def test_gains_by_hand():
    """100 nodes, 10 of the class: six among the first ten, one of them on top, four among the first five."""
    true = np.zeros(100, bool)
    true[[0, 1, 2, 4, 7, 9, 40, 60, 80, 99]] = True
    curve = _curve("x", true, np.linspace(1, 0, 100))
    found = [(g.nodes, g.found, g.precision, g.recall, g.lift) for g in curve.gains]
    assert found == [(1, 1, 1, 0.1, 10), (5, 4, 0.8, 0.4, pytest.approx(8)), (10, 6, 0.6, 0.6, pytest.approx(6))]
    at = np.flatnonzero(true) + 1
    assert curve.average_precision == pytest.approx(np.mean(np.arange(1, 11) / at))
    assert (curve.recall[-1], curve.precision[-1]) == (1, 0.1)


def test_equal_scores_gain_nothing():
    true = np.arange(50) % 5 == 0
    curve = _curve("x", true, np.full(50, 0.3))
    assert (curve.recall, curve.precision) == ((1.0,), (0.2,))
    assert [gain.lift for gain in curve.gains] == pytest.approx([1, 1, 1])


@given(st.integers(0, 2**20), st.integers(2, 60))
def test_average_precision_is_scikit_learns(seed, n):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    true = rng.random(n) < 0.4
    true[0] = True
    scores = np.round(rng.random(n), 1)
    assert _curve("x", true, scores).average_precision == pytest.approx(metrics.average_precision_score(true, scores))


def test_curves_are_of_labelled_test_nodes():
    graph = graph_of([0, 0, 0, 1, 1, None])
    p = np.column_stack([1 - np.arange(6) / 10, np.arange(6) / 10])
    (curve,) = results.precision_recall(graph, Split(np.arange(1), NOTHING, np.arange(1, 6)), p)
    assert (curve.name, curve.positives, curve.total) == ("1", 2, 4)
    assert curve.average_precision == 1.0
    assert results.precision_recall(graph, Split(np.arange(6), NOTHING, NOTHING), p) == ()


def test_parts_survive_a_file_and_old_files_lack_them():
    graph = graph_of([0, 1, None])
    result = results.Result(
        data=results.data(graph),
        ranking=results.Ranking("1", (results.Ranked("n2", "1", 0.4),), 1),
        precision_recall=(_curve("1", np.array([True, False]), np.array([0.9, 0.2])),),
        importances=results.Importances((results.Importance("a", 2, 0.1, float("nan"), 0.3),), 4),
        reasons=(results.Reasons("n2", "1", 0.2, -0.1, (results.ReasonPart("a high", 0.3),), {"features": 0.3}),),
    )
    assert results.Result.from_json(result.to_json()) == result
    old = {name: value for name, value in result.to_dict().items() if name in ("format", "version", "data")}
    read = results.Result.from_json(pf.results.values.json.dumps(old))
    assert (read.ranking, read.precision_recall, read.importances, read.reasons) == (None, (), None, ())


# ------------------------------------------------------------------------- importance


def telling_graph():
    """The class is written in "tells"; a category and a number say nothing."""
    rng = np.random.default_rng(0)
    n = 200
    labels = rng.integers(0, 2, n)
    kinds = np.eye(3)[rng.integers(0, 3, n)]
    x = np.column_stack([labels + 0.3 * rng.standard_normal(n), rng.standard_normal(n), kinds])
    names = ["tells", "noise", "kind=a", "kind=b", "kind=c"]
    split = Split(np.arange(100), np.arange(100, 140), np.arange(140, 200))
    return pf.Graph.from_edges(
        rng.integers(0, n, (300, 2)), n=n, features=x, labels=labels, feature_names=names, splits=[split]
    )


@pytest.mark.parametrize("recipe", [{"scaling": "columns"}, {"scaling": "l1"}, {"labels": True, "scaling": "none"}])
def test_the_column_that_tells_matters(recipe):
    graph = telling_graph()
    model = pf.RecipeClassifier({"method": "none", "regime": "homophily", "epochs": 40, **recipe}).fit(graph)
    test = graph.splits[0].test
    rows, left = permutation_importance(Explainer(model.fitted_), graph.labels, test, "accuracy")
    assert left == 0
    assert rows[0].name == "tells"
    assert rows[0].drop > 0.2
    assert {row.name: row.columns for row in rows} == {"tells": 1, "noise": 1, "kind": 3}
    assert all(abs(row.drop) < 0.1 for row in rows[1:])
    again, _ = permutation_importance(Explainer(model.fitted_), graph.labels, test, "accuracy")
    assert again == rows


def test_importances_do_not_depend_on_the_numbering():
    graph, perm = telling_graph(), np.random.default_rng(0).permutation(200)
    both = []
    for one in (graph, graph.permute(perm)):
        model = pf.RecipeClassifier({"method": "none", "regime": "homophily", "epochs": 5}).fit(one)
        explainer, test = Explainer(model.fitted_), one.splits[0].test
        both.append(permutation_importance(explainer, one.labels, test, "accuracy", repeats=1)[0])
    for row, other in zip(*both, strict=True):
        assert (row.name, row.drop) == (other.name, other.drop)
        assert row.loss == pytest.approx(other.loss)


@pytest.mark.parametrize("recipe", [{"scaling": "columns", "kind": "b", "h": 4}, {"method": "none", "labels": True}])
def test_a_shuffled_column_is_a_column_shuffled_before_channels(recipe, monkeypatch):
    """The short way, through the first layer alone, gives what predicting on the changed graph gives."""
    graph = telling_graph()
    model = pf.RecipeClassifier({"regime": "homophily", "hops": 2, "epochs": 5, **recipe}).fit(graph)
    explainer, test = Explainer(model.fitted_), graph.splits[0].test
    member = model.fitted_.members[0]
    from pegfan.importance import _Scored

    scored = _Scored(explainer, test, graph.labels[test], "accuracy")
    taken = np.random.default_rng(1).permutation(graph.n)
    moved = scored._moved(0, np.array([2, 3, 4]), taken)
    features = np.array(graph.features)
    features[:, 2:] = features[taken][:, 2:]
    channels = member.recipe.channels(
        graph.replace(features=features),
        member.tree,
        known=model.fitted_.known,
        scale=model.fitted_.scale if member.recipe.scaling == "columns" else None,
    )
    for row, weight, bias, got in zip(
        channels.rows(test, np.float64), explainer.networks[0].weights, explainer.networks[0].biases, moved, strict=True
    ):
        np.testing.assert_allclose(got, row @ weight.T + bias, atol=1e-6)


def test_columns_beyond_the_limits_are_counted():
    graph = telling_graph()
    model = pf.FSGNNClassifier(epochs=2, regime="homophily").fit(graph)
    test = graph.splits[0].test
    rows, left = permutation_importance(Explainer(model.fitted_), graph.labels, test, "accuracy", most=2)
    assert (len(rows), left) == (2, 1)
    rows, left = permutation_importance(Explainer(model.fitted_), graph.labels, test, "accuracy", seconds=0)
    assert (len(rows), left) == (1, 2)
