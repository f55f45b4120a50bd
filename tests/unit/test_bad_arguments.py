"""What is not what a function takes is refused by us, in a sentence that names the argument and what was given.

`tests/torture/calls.py` tries every public call; these are the classes of what it found in 0.1.
"""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, dok_array

import pegfan as pf
from pegfan import (
    channels,
    decisions,
    explain,
    layouts,
    measures,
    networks,
    plots,
    relations,
    results,
    splits,
)
from pegfan._checks import check_integer, check_number, shown
from pegfan.graph import check_graph


@pytest.fixture(scope="module")
def graph():
    ring = [[i, (i + 1) % 6] for i in range(6)]
    return pf.Graph.from_edges(ring, features=np.eye(6), labels=[0, 1] * 3, splits=[([0, 1], [2, 3], [4, 5])])


@pytest.fixture(scope="module")
def tree():
    return pf.Hierarchy.from_nested([[0, 1, 2], [3, 4, 5]])


def deep():
    value = []
    for _ in range(10_000):
        value = [value]
    return value


def within_itself():
    value = [1]
    value.append(value)
    return value


REPEATED = np.broadcast_to(1.0, (10**6, 10**8))
"""Eight bytes that claim to be a matrix of 800 TB."""
WITHOUT_SCALE = {**decisions.Decision().to_dict(), "calibration": {"shifts": [0.0, 0.0]}}

OF_A_GRAPH = [
    *(getattr(measures, name) for name in ("ccns", "class_edges", "class_sizes", "component_sizes", "degrees")),
    *(getattr(measures, name) for name in ("describe", "duplicates", "edge_homophily", "adjusted_homophily")),
    *(measures.node_homophily, measures.label_informativeness, layouts.layout, explain.column_names),
    *(channels.hop_matrix, channels.structural_features, channels.spectral_vectors, pf.make_fsgnn_channels),
    *(pf.build_tree, pf.trees.canonical_order, plots.ccns, relations.geom_relations, relations.struc2vec_relations),
    *(splits.draw_folds, pf.datasets.stand_in_features, results.data, channels.Hop),
    lambda given: plots.signal(given, np.ones(6)),
]


@pytest.mark.parametrize("call", OF_A_GRAPH)
def test_what_is_no_graph_is_told_how_to_become_one(call):
    for given, maker in (
        (nx.path_graph(3), "from_networkx"),
        (csr_array(np.eye(6)), "of"),
        (None, "from_edges"),
    ):
        with pytest.raises(TypeError, match=rf"Graph.* got .*Graph\.{maker}"):
            call(given)


def test_a_graph_without_what_is_needed_is_told_how_to_get_it(graph):
    bare = graph.replace(labels=None, features=None)
    with pytest.raises(ValueError, match=r"no labels; give them with graph\.replace\(labels=\.\.\.\)"):
        measures.ccns(bare)
    with pytest.raises(ValueError, match=r"no features; give them"):
        pf.make_fsgnn_channels(bare)
    assert check_graph(graph, needs="labels") is graph


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g, t: pf.make_fsgnn_channels(g, direction=["out"]), ValueError, "direction must be 'out'"),
        (lambda g, t: pf.make_fsgnn_channels(g, hops=10**9), ValueError, "hops must be at most"),
        (
            lambda g, t: pf.make_fsgnn_channels(g, include_features=np.ones(3)),
            TypeError,
            "include_features must be True",
        ),
        (lambda g, t: channels.Hop(g, direction=7), ValueError, "direction must be"),
        (lambda g, t: channels.density(g, None), TypeError, "system must be a FrameletSystem, got NoneType"),
        (lambda g, t: channels.Channel("c", None, g.features).apply("w"), TypeError, "weights must be an array"),
        (lambda g, t: channels.FeatureScale.of(g.features).apply(np.ones((2, 3))), ValueError, r"shape \(any, 6\)"),
        (lambda g, t: measures.purity([0, 1], [0]), ValueError, "as many clusters as classes"),
        (lambda g, t: measures.leaking_share(g, [99], [0]), ValueError, "train holds 99"),
        (lambda g, t: pf.Hierarchy.equivalent(t, 3), TypeError, "other must be a Hierarchy, got int"),
        (lambda g, t: t.permute_children([1]), TypeError, "permutations must be a mapping"),
        (lambda g, t: pf.FrameletSystem(t).scaling(deep()), TypeError, "a level must be an integer"),
        (lambda g, t: pf.Hierarchy.load(3), TypeError, "path must be a path, got int"),
        (lambda g, t: pf.load_model("a\0b"), ValueError, "NUL"),
        (lambda g, t: pf.training.Network({"output.bias": "x"}), TypeError, "output.bias must be an array"),
        (lambda g, t: pf.Settings(layers=10**9), ValueError, "layers must be at most 64"),
        (lambda g, t: pf.training.score(np.ones((3, 2)), [0, 1], "accuracy"), ValueError, "a row for each"),
        (lambda g, t: pf.training.score(np.ones((2, 2)), [0, 9], "accuracy"), ValueError, "labels holds 9"),
        (lambda g, t: decisions.Decision().judged(np.ones((2, 2)), "a"), ValueError, "metric must be"),
        (lambda g, t: decisions.Decision.from_dict({}, 2), ValueError, "not what Decision.to_dict wrote"),
        (lambda g, t: pf.datasets.fold_splits([0] * 9, k=10**5000), ValueError, "an integer of 16610 bits"),
        (lambda g, t: results.majority(g, "split"), TypeError, "split must be a Split"),
        (lambda g, t: results.verdict([3], "accuracy"), TypeError, r"rows\[0\] must be a Rival, got int"),
        (lambda g, t: pf.datasets.Schema.from_dict({}), ValueError, "not what Schema.to_dict wrote"),
        (lambda g, t: pf.testing.check_operator(3), TypeError, "operator must be an Operator, got int"),
        (lambda g, t: pf.adjoint_test("x"), TypeError, "operator must be a LinearOperator"),
        (lambda g, t: pf.Recipe.of([1]), TypeError, "a recipe must be a mapping"),
        (lambda g, t: networks.NetworkRecipe.of([1]), TypeError, "a recipe must be a mapping"),
        (lambda g, t: networks.NetworkRecipe.of(dok_array((3, 4))), TypeError, "a recipe must be a mapping"),
        (lambda g, t: networks.NetworkRecipe("gcn", options=()), TypeError, "options must be a mapping"),
        (lambda g, t: pf.compare(g, ["fsgnn"], changes=[1]), TypeError, "changes must be a mapping"),
        (lambda g, t: pf.datasets.read_graph("e.csv", edges=dok_array((3, 4))), TypeError, "edges must be a list"),
        (lambda g, t: pf.datasets.read_graph(__file__, format=deep()), ValueError, "format must be one of"),
        (lambda g, t: pf.datasets.load("cora", unit_rows=deep()), TypeError, "unit_rows must be True or False"),
        (lambda g, t: pf.datasets.synthetic(0.1, separation=deep()), TypeError, "separation must be a number"),
        (lambda g, t: pf.datasets.synthetic(0.1, n_features=10**12), MemoryError, "such a graph takes up to"),
        (lambda g, t: t.save("tree.npz", ids=dok_array((3, 4))), TypeError, "ids are a list or a vector"),
        (lambda g, t: g.replace(feature_names=[deep()] * 6), TypeError, "feature_names must be strings"),
        (lambda g, t: channels.principal_vectors(REPEATED), MemoryError, "features takes up to"),
        (lambda g, t: decisions.Decision.from_dict(WITHOUT_SCALE, 2), ValueError, "the calibration has no 'scale'"),
    ],
)
def test_it_is_refused_by_its_name(graph, tree, call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(graph, tree)
    assert "/pegfan/" in caught.traceback[-1].path.as_posix()


def test_a_sparse_matrix_that_would_crash_compiled_code_is_refused():
    broken = csr_array(np.eye(6))
    broken.indices = broken.indices + 100
    for call in (measures.equal_rows, channels.FeatureScale.of, pf.channels.principal_vectors):
        with pytest.raises(ValueError, match="is not a valid sparse matrix"):
            call(broken)
    with pytest.raises(ValueError, match="leave out what is empty"):
        measures.equal_rows(coo_array(([1.0], ([0], [0])), shape=(10**9, 10**9)))


def test_tensors_that_networks_cannot_take():
    torch = pytest.importorskip("torch")
    from pegfan import models

    edges, model = torch.tensor([[0, 1], [1, 0]]), models.GCN(3, 2)
    with pytest.raises(ValueError, match="device 'meta'"):
        model(torch.ones((2, 3), device="meta"), edges)
    with pytest.raises(ValueError, match="cannot multiply"):
        models.Sparse(csr_array(np.eye(2))).times(torch.ones(3))
    with pytest.raises(ValueError, match="hidden must be at most"):
        models.GCN(3, 2, hidden=2**41)
    with pytest.raises(ValueError, match="got more"):
        models.PEGFAN([3], 2)(torch.ones((2, 3)) for _ in iter(int, 1))  # an endless list of channels


@pytest.mark.parametrize(
    ("value", "text"),
    [("S~", "'S~'"), (10**5000, "an integer of 16610 bits"), (deep(), "[[[[[["), (within_itself(), "[1, [1,")],
    ids=["word", "long", "deep", "within itself"],
)
def test_any_value_can_be_shown(value, text):
    assert shown(value).startswith(text)
    assert len(shown(value)) < 200


def test_numbers_that_are_too_large_for_numpy():
    with pytest.raises(ValueError, match="n must be at most"):
        check_integer(10**400, "n")
    with pytest.raises(ValueError, match="x must be finite"):
        check_number(10**400, "x")
