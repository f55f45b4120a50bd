"""Nodes as rows of scikit-learn: its tools, its checks, and what weights mean."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

import pegfan as pf
from pegfan.integrations.sklearn import EXPECTED_FAILED_CHECKS, TransductiveClassifier

QUICK = {"hops": 1, "regime": "heterophily", "hidden": 4, "epochs": 4}


@pytest.fixture(scope="module")
def graph():
    return pf.datasets.synthetic(0.0, n=120, n_edges=1200, n_features=20)


@pytest.fixture(scope="module")
def nodes(graph):
    return np.arange(graph.n)


def quick(graph, **changes):
    return TransductiveClassifier(graph, pf.FSGNNClassifier(**QUICK), **changes)


# ---------------------------------------------------------------------- its tools


def test_it_learns_and_tells_of_nodes_it_was_not_given(graph, nodes):
    model = TransductiveClassifier(graph, pf.FSGNNClassifier(regime="all", epochs=60))
    model.fit(nodes[::2], graph.labels[::2])
    assert model.score(nodes[1::2], graph.labels[1::2]) > 0.5
    probabilities = model.predict_proba(nodes[1::2])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(nodes[1::2])).all()
    assert model.probabilities_.shape == (graph.n, 4)
    assert is_classifier(model)


def test_other_labels_are_never_looked_at(graph, nodes):
    """Those that the graph has, of the nodes in X or of others: they may be wrong, or missing."""
    rng = np.random.default_rng(0)
    given = nodes[rng.permutation(graph.n)[:60]]
    wanted = quick(graph).fit(given, graph.labels[given]).probabilities_
    for labels in (rng.permutation(graph.labels), None):
        other = graph.replace(labels=labels, class_names=None, splits=())
        assert (quick(other).fit(given, graph.labels[given]).probabilities_ == wanted).all()


def test_the_order_of_rows_makes_no_difference(graph, nodes):
    order = np.random.default_rng(1).permutation(graph.n)
    one, two = quick(graph).fit(nodes, graph.labels), quick(graph).fit(nodes[order], graph.labels[order])
    assert (one.probabilities_ == two.probabilities_).all()


def test_cross_validation_grids_and_halving(graph, nodes):
    assert cross_val_score(quick(graph), nodes, graph.labels, cv=2).shape == (2,)
    assert cross_val_predict(quick(graph), nodes, graph.labels, cv=2, method="predict_proba").shape == (graph.n, 4)
    grid = {"model__hops": [1, 2], "class_weight": [None, "balanced"]}
    search = GridSearchCV(quick(graph), grid, cv=2).fit(nodes, graph.labels)
    assert search.best_params_.keys() == grid.keys()
    assert len(search.cv_results_["params"]) == 4
    halving = HalvingGridSearchCV(
        quick(graph),
        {"model__hidden": [2, 4]},
        resource="model__epochs",
        max_resources=4,
        min_resources=2,
        factor=2,
        cv=2,
    )
    assert halving.fit(nodes, graph.labels).best_estimator_.model.get_params()["epochs"] in (2, 4)
    rivals = [pf.FSGNNClassifier(**QUICK), pf.PEGFANClassifier(**QUICK)]
    models = GridSearchCV(quick(graph), {"model": rivals}, cv=2, refit=False)
    assert len(models.fit(nodes, graph.labels).cv_results_["params"]) == 2


def test_pipelines_and_calibration(graph, nodes):
    double = FunctionTransformer(lambda X: X // 2)
    pipeline = make_pipeline(double, CalibratedClassifierCV(quick(graph), cv=2))
    pipeline.fit(2 * nodes.reshape(-1, 1), graph.labels, calibratedclassifiercv__sample_weight=np.ones(graph.n))
    assert pipeline.predict_proba(2 * nodes[:5].reshape(-1, 1)).shape == (5, 4)


def test_clones_share_the_graph_and_pickles_hold_it(graph, nodes):
    model = quick(graph, class_weight="balanced").fit(nodes, graph.labels)
    made = clone(model)
    assert made.graph is graph
    assert made.model is not model.model
    assert made.get_params()["model__epochs"] == 4
    assert made.set_params(model__epochs=3).model.get_params()["epochs"] == 3
    assert model.model.get_params()["epochs"] == 4
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(nodes) == model.predict_proba(nodes)).all()


def test_the_graph_may_come_as_metadata(graph, nodes):
    wanted = quick(graph).fit(nodes, graph.labels).probabilities_
    assert (quick(None).fit(nodes, graph.labels, graph=graph).probabilities_ == wanted).all()
    with pytest.raises(ValueError, match="there is no graph: give it at construction"):
        quick(None).fit(nodes, graph.labels)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = quick(None).set_fit_request(graph=True)
        assert cross_val_score(routed, nodes, graph.labels, cv=2, params={"graph": graph}).shape == (2,)


@pytest.mark.parametrize("model", ["pegfan", "fsgnn", "auto", "gcn"])
def test_every_classifier_can_be_inside(graph, nodes, model):
    if model == "auto":
        model = pf.AutoClassifier(recipes=[{"method": "none", **QUICK}, {"method": "none", **QUICK, "hops": 2}])
    elif model != "gcn":
        model = {"pegfan": pf.PEGFANClassifier, "fsgnn": pf.FSGNNClassifier}[model](hidden=4, epochs=3)
    else:
        model = pf.NetworkClassifier("gcn", hidden=4, epochs=3)
    fitted = TransductiveClassifier(graph, model).fit(nodes[:80], graph.labels[:80])
    assert type(fitted.model_) is type(model)
    assert fitted.predict(nodes[80:]).shape == (40,)


def test_names_stand_for_classifiers(graph, nodes):
    from pegfan.integrations.sklearn import _made

    assert [type(_made(name)).__name__ for name in ("pegfan", "fsgnn", "auto", "gcn")] == [
        "PEGFANClassifier",
        "FSGNNClassifier",
        "AutoClassifier",
        "NetworkClassifier",
    ]
    with pytest.raises(ValueError, match="model is a classifier of pegfan, or one of pegfan, fsgnn, auto, mlp"):
        TransductiveClassifier(graph, "forest").fit(nodes, graph.labels)


# ------------------------------------------------------------------- nodes and classes


def test_nodes_by_number_by_id_and_in_tables(graph, nodes):
    pandas = pytest.importorskip("pandas")
    named = graph.replace(node_names=[f"0{i}" for i in nodes])
    wanted = quick(named).fit(nodes, graph.labels).probabilities_
    for X in (nodes.reshape(-1, 1), nodes.tolist(), nodes.astype(float), named.ids, named.ids.tolist()):
        assert (quick(named).fit(X, graph.labels).probabilities_ == wanted).all()
    table = pandas.DataFrame({"account": list(named.ids)})
    model = quick(named).fit(table, graph.labels)
    assert (model.probabilities_ == wanted).all()
    assert list(model.feature_names_in_) == ["account"]
    assert (model.predict_proba(pandas.DataFrame({"account": ["07"]})).argmax() == wanted[7].argmax()).all()


def test_classes_keep_their_names(graph, nodes):
    kinds = np.array(["ash", "beech", "elm", "oak"])[graph.labels]
    model = quick(graph).fit(nodes, kinds)
    assert model.classes_.tolist() == ["ash", "beech", "elm", "oak"]
    assert set(model.predict(nodes)) <= set(model.classes_)


def test_another_graph_can_be_predicted(graph, nodes):
    model = quick(graph).fit(nodes, graph.labels)
    order = np.random.default_rng(0).permutation(graph.n)
    moved = model.predict_proba(nodes, graph=graph.permute(order))
    np.testing.assert_allclose(moved, model.predict_proba(order), atol=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.zeros((4, 2)), [0, 1, 0, 1], "X has 2 columns, and it takes one"),
        ([0, 1, 2, 500], [0, 1, 0, 1], "0 to 119, and one of them is 500"),
        ([0, 1, 2, 2.5], [0, 1, 0, 1], "one of them is 2.5"),
        ([0, 1, 2, -1], [0, 1, 0, 1], "Negative values in data .* -1 is none"),
        ([0, 1, 2, np.nan], [0, 1, 0, 1], "NaN"),
        (["0", "1", "2", "x"], [0, 1, 0, 1], "the graph has no node 'x'"),
        ([0, 1, 2, 2], ["a", "b", "a", "b"], "the node 2 twice, as 'a' and as 'b'; a node has one class"),
        ([0, 1, 2], [0, 1], "inconsistent numbers of samples"),
        ([0, 1, 2, 3], [0.5, 1.5, 2.5, 0.25], "Unknown label type"),
        ([0], [0], "X has 1 sample"),
        (csr_array(np.ones((4, 1))), [0, 1, 0, 1], "[Ss]parse"),
    ],
)
def test_wrong_rows_are_refused(graph, X, y, words):
    with pytest.raises((ValueError, TypeError), match=words):
        quick(graph).fit(X, y)


def test_wrong_parameters_are_refused(graph, nodes):
    for share in (0, 1, "half", True):
        with pytest.raises(ValueError, match="validation is a share of the nodes"):
            quick(graph, validation=share).fit(nodes, graph.labels)
    for weight, words in (
        ("even", "'balanced'"),
        ({9: 1.0}, "the class 9, which is not in y"),
        ({0: -1.0}, "at least 0"),
    ):
        with pytest.raises(ValueError, match=words):
            quick(graph, class_weight=weight).fit(nodes, graph.labels)
    with pytest.raises(NotFittedError):
        quick(graph).predict(nodes)


def test_nodes_to_stop_by_are_of_all_classes(graph, nodes):
    model = quick(graph, validation=0.5).fit(nodes, graph.labels)
    split = model.model_.fitted_.split
    assert not len(split.test)
    assert len(split.val) == pytest.approx(graph.n / 2, abs=2)
    for k in range(4):
        assert (graph.labels[split.val] == k).sum() == pytest.approx((graph.labels == k).sum() / 2, abs=1)


# --------------------------------------------------------------------------- weights


def test_a_node_twice_is_a_weight_of_two_and_none_a_weight_of_zero(graph, nodes):
    times = np.random.default_rng(0).integers(0, 3, graph.n)
    by_rows = quick(graph).fit(np.repeat(nodes, times), np.repeat(graph.labels, times)).probabilities_
    by_weight = quick(graph).fit(nodes, graph.labels, sample_weight=times).probabilities_
    assert (by_rows == by_weight).all()
    assert not np.allclose(by_weight, quick(graph).fit(nodes, graph.labels).probabilities_, atol=1e-4)
    once = quick(graph).fit(nodes[times > 0], graph.labels[times > 0]).probabilities_
    assert not np.allclose(by_weight, once, atol=1e-4)
    balanced = quick(graph, class_weight="balanced")
    one = balanced.fit(np.repeat(nodes, times), np.repeat(graph.labels, times)).probabilities_
    two = clone(balanced).fit(nodes, graph.labels, sample_weight=times).probabilities_
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_class_weights_move_predictions(graph, nodes):
    for wanted in range(4):
        weights = {k: 1e6 if k == wanted else 1e-6 for k in range(4)}
        model = TransductiveClassifier(graph, pf.FSGNNClassifier(epochs=40, hops=1), class_weight=weights)
        assert (model.fit(nodes, graph.labels).predict(nodes) == wanted).mean() > 0.9
    rare = np.flatnonzero((graph.labels == 0) | (nodes % 5 == 0))
    even = quick(graph).fit(rare, graph.labels[rare]).probabilities_
    balanced = quick(graph, class_weight="balanced").fit(rare, graph.labels[rare]).probabilities_
    assert balanced[:, 0].mean() < even[:, 0].mean()


def test_weights_of_zero_only_are_refused(graph, nodes):
    with pytest.raises(ValueError, match=r"[Ww]eights"):
        quick(graph).fit(nodes, graph.labels, sample_weight=np.zeros(graph.n))


def test_one_class_is_learnt(graph, nodes):
    assert (quick(graph).fit(nodes, np.full(graph.n, "only")).predict(nodes) == "only").all()
    assert (quick(graph).fit(nodes, graph.labels, sample_weight=graph.labels == 2).predict_proba(nodes).shape[1]) == 4


# ------------------------------------------------------------------------- its checks


def failures(model):
    results = estimator_checks.check_estimator(model, on_fail=None, on_skip=None)
    return {result["check_name"] for result in results if result["status"] == "failed"}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_its_checks_pass_but_for_those_with_a_reason(graph):
    assert failures(quick(graph)) == EXPECTED_FAILED_CHECKS.keys()


BEYOND = {
    "check_fit2d_predict1d": "a vector is taken as nodes",
    "check_n_features_in_after_fitting": "looks at a second column",
    "check_sample_weights_shape": "makes its own rows",
    "check_sample_weights_not_overwritten": "makes its own rows",
    "check_sample_weight_equivalence_on_dense_data": "makes its own rows",
    "check_class_weight_classifiers": "makes its own rows",
    "check_classifiers_one_label_sample_weights": "makes its own rows",
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_its_checks_pass_with_nodes_in_place_of_rows_of_features(monkeypatch):
    """Its hook for estimators with odd input: each distinct row becomes a node."""

    def nodes_of(estimator, X, X_test=None, kernel=None):
        rows = np.asarray(X) if X_test is None else np.concatenate([X, X_test])
        places = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1, 1)
        return places if X_test is None else (places[: len(X)], places[len(X) :])

    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_X", nodes_of)
    large = pf.datasets.synthetic(0.0, n=600, n_edges=1200, n_features=4)
    assert failures(quick(large)) == BEYOND.keys()
