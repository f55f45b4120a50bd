"""Channels against explicit matrices: hops, presets, materialised and lazy forms, rows, density, bad input."""

import importlib
import inspect
import itertools
import pickle
import re
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import pegfan as pf
from pegfan.channels import (
    Channel,
    Channels,
    FeatureScale,
    Hop,
    Matrix,
    Projection,
    density,
    hop_matrix,
    make_channels,
    make_fsgnn_channels,
    propagated_labels,
    structural_features,
)
from pegfan.channels._trie import SPARSE_BELOW
from pegfan.channels.factors import as_factor
from pegfan.channels.hops import HOPS
from pegfan.channels.names import describe, formula, group, symbol
from pegfan.channels.presets import KINDS, REGIMES
from pegfan.framelets import Operator
from pegfan.testing import check_operator
from support.strategies import admissible, random_tree, trees

PAPERS_REGIMES = ["homophily", "heterophily"]
PROJECTED = {"a": 0, "b": 0, "c": 1, "as": 1}
"""Of every kind, the power of S that is projected."""
DIRECTIONS = ["out", "in", "symmetric"]
seeds = st.integers(0, 2**32 - 1)


def random_graph(n, seed, density=0.2, columns=5, sparse_features=False, dtype=np.float64):
    """Directed, weighted, with self loops and nodes that no arc leaves."""
    rng = np.random.default_rng(seed)
    adjacency = sparse.random_array((n, n), density=density, rng=rng, format="csr")
    features = sparse.random_array((n, columns), density=0.4, rng=rng, format="csr").astype(dtype)
    return pf.Graph(
        adjacency,
        features=features if sparse_features else features.toarray(),
        labels=rng.integers(0, 3, n),
        directed=True,
    )


@st.composite
def graphs_with_systems(draw):
    tree = draw(trees(limit=20))
    graph = random_graph(tree.n, draw(seeds), sparse_features=draw(st.booleans()))
    return graph, pf.FrameletSystem(tree)


def plain_hop(graph, kind, direction="out"):
    """D^-1/2 M D^-1/2 (or D^-1 M), one entry at a time."""
    a = graph.adjacency.toarray()
    a = {"out": a, "in": a.T, "symmetric": np.maximum(a, a.T)}[direction]
    if kind == "A":
        return a
    if kind == "Q":
        out, into = ([sum(row) or 1.0 for row in m] for m in (a, a.T))
        return np.array([[a[i, j] / (out[i] * into[j]) ** 0.25 for j in range(graph.n)] for i in range(graph.n)])
    assert kind in ("S", "S~", "random-walk"), f"a hop {kind} needs a plain twin here"
    m = a + np.eye(graph.n) if kind == "S~" else a
    d = [sum(row) or 1.0 for row in m]
    step = np.zeros_like(m)
    for i in range(graph.n):
        for j in range(graph.n):
            step[i, j] = m[i, j] / d[i] if kind == "random-walk" else m[i, j] / np.sqrt(d[i] * d[j])
    return step


def plain_projections(system):
    first = system.scaling(1).toarray()
    psi = [system.framelets(j).toarray() for j in range(1, system.K)]
    return [first.T @ first, *(p.T @ p for p in psi)]


def plain_channels(graph, system, kind, step, hops):
    """The paper's lists, with dense matrices."""
    x = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
    powers = [np.linalg.matrix_power(step, k) @ x for k in range(1, hops + 1)] if kind in "bc" else []
    projected = np.linalg.matrix_power(step, PROJECTED[kind]) @ x
    return [x, *powers, *(f @ projected for f in plain_projections(system))]


def dense(array):
    return array.toarray() if sparse.issparse(array) else array


@pytest.mark.parametrize(
    ("table", "function"), [(KINDS, make_channels), (REGIMES, make_fsgnn_channels), (HOPS, hop_matrix)]
)
def test_what_there_is_stands_in_the_docs(table, function):
    rows = re.findall(r'^"([^"]+)" ', inspect.getdoc(function), re.M)
    assert rows == list(table)


# ------------------------------------------------------------------------ hops


def test_hop_matrices_by_hand():
    """Arcs 0→1 (weight 4) and 1→2; node 2 has no out-edge, node 0 no in-edge."""
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], [4.0, 1.0], directed=True)
    entries = {
        ("S", "out"): {(0, 1): 4 / 2, (1, 2): 1.0},
        ("S", "in"): {(1, 0): 4 / 2, (2, 1): 1 / 2},
        ("S", "symmetric"): {(0, 1): 4 / np.sqrt(20), (1, 0): 4 / np.sqrt(20), (1, 2): 1 / np.sqrt(5), (2, 1): 5**-0.5},
        ("S~", "out"): {(0, 0): 1 / 5, (1, 1): 1 / 2, (2, 2): 1.0, (0, 1): 4 / np.sqrt(10), (1, 2): 1 / np.sqrt(2)},
        ("A", "out"): {(0, 1): 4.0, (1, 2): 1.0},
        ("random-walk", "out"): {(0, 1): 1.0, (1, 2): 1.0},
        ("Q", "out"): {(0, 1): 4 / np.sqrt(4), (1, 2): 1.0},
        ("Q", "in"): {(1, 0): 4 / np.sqrt(4), (2, 1): 1.0},
        ("random-walk", "symmetric"): {(0, 1): 1.0, (1, 0): 4 / 5, (1, 2): 1 / 5, (2, 1): 1.0},
    }
    for (kind, direction), wanted in entries.items():
        matrix = np.zeros((3, 3))
        for place, value in wanted.items():
            matrix[place] = value
        np.testing.assert_allclose(hop_matrix(graph, kind, direction).toarray(), matrix, atol=1e-15)


@given(st.integers(1, 15), seeds, st.sampled_from(list(HOPS)), st.sampled_from(DIRECTIONS))
def test_hop_matrices_equal_their_plain_twins(n, seed, kind, direction):
    graph = random_graph(n, seed)
    step = hop_matrix(graph, kind, direction)
    assert isinstance(step, sparse.csr_array)
    np.testing.assert_allclose(step.toarray(), plain_hop(graph, kind, direction), atol=1e-14)


def test_directions_agree_on_undirected_graphs_and_results_are_the_callers_own():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]])
    for kind in HOPS:
        out, into, both = (hop_matrix(graph, kind, direction).toarray() for direction in DIRECTIONS)
        np.testing.assert_array_equal(out, into)
        np.testing.assert_array_equal(out, both)
    hop_matrix(graph, "A").data[:] = 7  # the graph is read-only; this is a copy
    assert graph.adjacency.data.max() == 1


# ------------------------------------------------------------------- operators


@given(graphs_with_systems(), st.sampled_from(list(HOPS)), st.sampled_from(DIRECTIONS))
def test_hops_equal_their_dense_twins(graph_and_system, kind, direction):
    graph, _ = graph_and_system
    check_operator(Hop(graph, kind, direction), plain_hop(graph, kind, direction))


@given(graphs_with_systems(), st.data())
def test_projections_equal_their_dense_twins(graph_and_system, data):
    _, system = graph_and_system
    scale = data.draw(st.integers(0, system.K - 1))
    check_operator(Projection(system, scale), plain_projections(system)[scale])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, aslinearoperator])
def test_operators_of_users_equal_their_dense_twins(make):
    twin = np.random.default_rng(0).standard_normal((4, 7)) * (np.arange(7) % 3 > 0)
    check_operator(as_factor(make(twin), "mine"), twin)


class Doubled(Operator):
    """2 x, and one answer that is wrong."""

    def __init__(self, wrong=None):
        self.wrong = wrong
        back = 3 if wrong == "transpose" else 2
        super().__init__("D", (5, 5), self.double, lambda x: back * x)

    def double(self, x):
        if self.wrong == "float32" and x.dtype == np.float32:
            return (2 * x).astype(np.float64)
        if self.wrong == "sparse" and sparse.issparse(x):
            return 3 * x
        return 2 * x

    @property
    def key(self):
        return object() if self.wrong == "key" else super().key

    def matrices(self):
        return [np.eye(5) * (3 if self.wrong == "matrices" else 2)]

    def nonzeros(self, rows, columns):
        return None if rows is None else rows - (self.wrong == "nonzeros")

    def by_rows(self, x):
        return lambda rows: (3 if self.wrong == "by_rows" else 2) * x[rows]

    def shares(self, nodes, columns):
        own = 2 * columns.toarray()[np.arange(len(nodes)), nodes]
        return (own + 1, abs(own)) if self.wrong == "shares" else (own, abs(own) - (self.wrong == "sizes"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("transpose", "the transposed product in float64 is off"),
        ("float32", "the product in float32 has dtype float64"),
        ("sparse", "the product with a sparse matrix is off"),
        ("key", "its key changes"),
        ("matrices", "the product of its matrices is off"),
        ("nonzeros", "a row has more nonzeros than it says"),
        ("by_rows", "some rows of its product is off"),
        ("shares", "its shares of a diagonal is off"),
        ("sizes", "its shares are larger than their sizes"),
    ],
)
def test_a_wrong_answer_is_found(wrong, words):
    check_operator(Doubled(), 2 * np.eye(5))
    with pytest.raises(AssertionError, match=f"<5×5 operator D>: {words}"):
        check_operator(Doubled(wrong), 2 * np.eye(5))


# --------------------------------------------------------------------- presets


@pytest.fixture
def small():
    graph = random_graph(6, 0)
    return graph, pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1, 2], [3, 4, 5]]))


def test_the_papers_channels_by_name(small):
    def names(kind, regime="heterophily", **options):
        return " | ".join(make_channels(*small, kind=kind, regime=regime, **options).names)

    assert names("a") == "X | F_0 X | F_1 X | F_2 X"
    assert names("b") == "X | S X | S^2 X | S^3 X | F_0 X | F_1 X | F_2 X"
    assert names("c") == "X | S X | S^2 X | S^3 X | F_0 S X | F_1 S X | F_2 S X"
    assert names("as") == "X | F_0 S X | F_1 S X | F_2 S X"
    assert names("a", "homophily") == "X | F_0 X | F_1 X | F_2 X"
    assert names("b", "homophily", hops=1) == "X | S~ X | F_0 X | F_1 X | F_2 X"
    assert names("c", "homophily", hops=2) == "X | S~ X | S~^2 X | F_0 S~ X | F_1 S~ X | F_2 S~ X"
    assert names("as", "homophily") == "X | F_0 S~ X | F_1 S~ X | F_2 S~ X"
    assert names("c", hops=0) == names("as")
    assert names("b", hops=1, include_features=False) == "S X | F_0 X | F_1 X | F_2 X"
    assert names("c", hops=1, hop="A") == "X | A X | F_0 A X | F_1 A X | F_2 A X"
    assert names("b", hops=1, hop="random-walk", direction="in") == "X | RW_in X | F_0 X | F_1 X | F_2 X"
    assert names("b", hops=2, direction="symmetric").startswith("X | S_sym X | S_sym^2 X")


def test_fsgnns_channels_by_name(small):
    def names(regime, hops):
        return " | ".join(make_fsgnn_channels(small[0], hops, regime).names)

    assert names("homophily", 2) == "X | S~ X | S~^2 X"
    assert names("heterophily", 3) == "X | S X | S^2 X | S^3 X"
    assert names("all", 2) == "X | S X | S~ X | S^2 X | S~^2 X"
    assert names("all", 0) == "X"
    assert make_fsgnn_channels(small[0], 1, "all", include_features=False).names == ("S X", "S~ X")
    assert make_fsgnn_channels(small[0], 1, hop="A").names == ("X", "A X")


def test_hops_of_both_kinds_and_both_ways(small):
    """Further channels stand behind the paper's, in the order of FSGNN's."""
    graph, system = small

    def names(kind, regime, hops=1, graph=graph, **options):
        return " | ".join(make_channels(graph, system, kind, regime, hops, **options).names)

    assert names("c", "all", 2) == "X | S X | S^2 X | F_0 S X | F_1 S X | F_2 S X | S~ X | S~^2 X"
    assert names("as", "all") == names("as", "heterophily")
    both = "X | S X | F_0 S X | F_1 S X | F_2 S X | S~ X | S_in X | S~_in X"
    assert names("c", "all", direction="both") == both
    assert names("c", "all", graph=graph.symmetrize(), direction="both") == both.partition(" | S_in")[0]
    assert names("a", "homophily", direction="both") == "X | F_0 X | F_1 X | F_2 X | S~_in X"
    assert names("a", "homophily", 0, direction="both") == "X | F_0 X | F_1 X | F_2 X"
    assert names("b", "all", hop="random-walk", direction="both") == "X | RW X | F_0 X | F_1 X | F_2 X | RW_in X"
    assert names("b", "all", hop=np.eye(6), direction="both") == "X | M X | F_0 X | F_1 X | F_2 X"
    channels = make_channels(graph, system, "b", "all", 1, direction="both")
    assert (channels.info["hop"], channels["S~_in X"].factors[0].side) == ("S, S~, S_in, S~_in", "in")
    step = channels["S~_in X"].factors[0].matrix.toarray()
    np.testing.assert_allclose(step, plain_hop(graph, "S~", "in"), atol=1e-14)


def test_words_by_name(small):
    """By length, then in the order of the letters; on undirected graphs hops along the edges, as ever."""
    graph, system = small

    def names(kind, regime="all", hops=2, graph=graph, **options):
        return " | ".join(make_channels(graph, system, kind, regime, hops, direction="words", **options).names)

    words = "X | Q X | Q_in X | Q^2 X | Q Q_in X | Q_in Q X | Q_in^2 X"
    assert names("b") == f"{words} | F_0 X | F_1 X | F_2 X"
    assert names("c", "homophily") == f"{words} | F_0 S~ X | F_1 S~ X | F_2 S~ X"
    assert names("a") == "X | F_0 X | F_1 X | F_2 X"
    assert names("as") == "X | F_0 S X | F_1 S X | F_2 S X"
    assert names("b", hops=1, hop="A") == "X | A X | A_in X | F_0 X | F_1 X | F_2 X"
    assert names("b", hops=1, hop=np.eye(6)) == "X | M X | F_0 X | F_1 X | F_2 X"
    assert names("c", graph=graph.symmetrize()) == " | ".join(
        make_channels(graph.symmetrize(), system, "c", "all", 2).names
    )
    channels = make_fsgnn_channels(graph.replace(labels=None), 3, direction="words")  # whatever the regime
    assert len(channels) == 1 + 2 + 4 + 8
    assert (channels.info["hop"], channels.info["regime"]) == ("Q, Q_in", "auto")
    assert describe(channels["Q_in Q X"]) == "two hops, against then along the edges"
    assert describe(channels["Q_in^2 X"]) == "two hops against the edges"
    assert describe(channels["Q Q_in Q X"]) == "three hops, along then against then along the edges"
    refused(ValueError, "up to 7 steps are 254 channels", lambda: make_fsgnn_channels(graph, 7, direction="words"))


@given(st.integers(1, 12), seeds, st.booleans())
def test_words_equal_their_dense_twins(n, seed, sparse_features):
    graph = random_graph(n, seed, sparse_features=sparse_features)
    q, x = plain_hop(graph, "Q"), dense(graph.features)
    wanted = [x]
    for length in (1, 2, 3):
        for word in itertools.product((q, q.T), repeat=length):
            wanted.append(np.linalg.multi_dot([*word, x]))
    found = make_fsgnn_channels(graph, 3, direction="words", scaling="none").materialize(np.float64)
    for array, twin in zip(found, wanted, strict=True):
        np.testing.assert_allclose(dense(array), twin, atol=1e-12)


def test_words_share_their_products(small, monkeypatch):
    """Every word is one product with a shorter one: 14 for words of up to three steps."""
    done = []
    forward = Matrix._forward
    monkeypatch.setattr(Matrix, "_forward", lambda self, x: done.append(self.name) or forward(self, x))
    make_fsgnn_channels(small[0], 3, direction="words").materialize(np.float64, "dense")
    assert sorted(done) == ["Q"] * 7 + ["Q_in"] * 7


@given(st.integers(2, 25), seeds)
def test_words_of_a_renumbered_graph_are_the_renumbered_words(n, seed):
    graph, perm = random_graph(n, seed), np.random.default_rng(seed).permutation(n)
    before, after = (make_fsgnn_channels(g, 3, direction="words") for g in (graph, graph.permute(perm)))
    for old, new in zip(before.materialize(), after.materialize(), strict=True):
        np.testing.assert_array_equal(dense(new), dense(old)[perm])


def test_info_says_how_channels_were_chosen(small):
    channels = make_channels(*small, kind="c", regime="homophily", direction="in")
    assert channels.info == {
        "kind": "c",
        "regime": "homophily",
        "hops": 3,
        "direction": "in",
        "scaling": "l1",
        "hop": "S~_in",
    }
    more = [Channel("more", None, np.ones(6))]
    assert (channels[:2] + more).info == channels.info


@given(
    graphs_with_systems(),
    st.sampled_from(list(KINDS)),
    st.sampled_from(list(HOPS)),
    st.sampled_from(DIRECTIONS),
    st.integers(0, 3),
    st.sampled_from(["auto", "dense", "sparse"]),
)
def test_every_channel_equals_its_dense_twin(graph_and_system, kind, hop, direction, hops, form):
    graph, system = graph_and_system
    channels = make_channels(graph, system, kind, "heterophily", hops, hop=hop, direction=direction, scaling="none")
    wanted = plain_channels(graph, system, kind, plain_hop(graph, hop, direction), hops)
    assert len(channels) == len(wanted)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 2e-4)):
        for channel, found, twin in zip(channels, channels.materialize(dtype, form), wanted, strict=True):
            assert found.dtype == dtype
            assert found.shape == channel.shape
            assert form == "auto" or sparse.issparse(found) == (form == "sparse")
            np.testing.assert_allclose(dense(found), twin, atol=tolerance * max(1, np.abs(twin).max(initial=0)))


@given(graphs_with_systems(), st.sampled_from(list(KINDS)), st.sampled_from(PAPERS_REGIMES))
def test_the_regimes_hops(graph_and_system, kind, regime):
    graph, system = graph_and_system
    step = plain_hop(graph, {"homophily": "S~", "heterophily": "S"}[regime])
    found = make_channels(graph, system, kind, regime, scaling="none").materialize(np.float64)
    for array, twin in zip(found, plain_channels(graph, system, kind, step, 3), strict=True):
        np.testing.assert_allclose(dense(array), twin, atol=1e-11)


@given(st.integers(1, 12), seeds, st.booleans())
def test_fsgnns_channels_equal_their_dense_twins(n, seed, sparse_features):
    graph = random_graph(n, seed, sparse_features=sparse_features)
    x, s, loops = dense(graph.features), plain_hop(graph, "S"), plain_hop(graph, "S~")
    found = make_fsgnn_channels(graph, 2, "all", scaling="none").materialize(np.float64)
    for array, twin in zip(found, [x, s @ x, loops @ x, s @ s @ x, loops @ loops @ x], strict=True):
        np.testing.assert_allclose(dense(array), twin, atol=1e-12)


@pytest.mark.parametrize("sparse_features", [False, True])
def test_l1_normalised_features(small, sparse_features):
    x = np.array([[1.0, -3.0], [0, 0], [2, 2], [1, 0], [0, 5], [1, 1]], dtype=np.float32)
    graph = small[0].replace(features=sparse.csr_array(x) if sparse_features else x)
    channels = make_channels(graph, small[1], "a", scaling="l1")
    wanted = [[0.25, -0.75], [0, 0], [0.5, 0.5], [1, 0], [0, 1], [0.5, 0.5]]
    assert channels[0].input.dtype == np.float32
    np.testing.assert_allclose(dense(channels["X"].materialize()), wanted)
    np.testing.assert_array_equal(dense(graph.features), x)


def test_scaled_columns_are_those_of_the_scale(small):
    graph, system = small
    scale = FeatureScale.of(graph.features)
    for scaling in ("columns", scale):
        channels = make_channels(graph, system, "a", scaling=scaling)
        np.testing.assert_array_equal(channels["X"].input, scale.apply(graph.features))
        assert channels.info["scaling"] == "columns"
    other = graph.replace(features=2 * graph.features)
    np.testing.assert_array_equal(
        make_fsgnn_channels(other, 0, scaling=scale)[0].input, scale.apply(2 * graph.features)
    )


def test_auto_looks_at_edges_among_training_nodes_only(small):
    """A path with alike ends inside training and unlike ends outside, and the other way round."""
    train, test = np.array([0, 1, 2]), np.array([3, 4, 5])
    alike_in_training = [0, 0, 0, 1, 0, 1]
    path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]], features=np.eye(6))
    split = pf.Split(train, np.array([], dtype=np.int64), test)
    other = pf.Split(test, np.array([], dtype=np.int64), train)
    graph = path.replace(labels=alike_in_training, splits=[split, other])
    homophilous = make_channels(graph, small[1])
    assert (homophilous.info["regime"], homophilous.info["split"]) == ("homophily", 0), "the first decides"
    assert homophilous.info["edge_homophily"] == 1.0
    assert homophilous.names[1] == "S~ X"
    assert make_channels(graph, small[1], "c", split=1).info["regime"] == "heterophily"
    assert make_channels(graph, small[1], "c", split=other).names[1] == "S X"
    hidden = graph.replace(labels=[0, 0, 0, -1, -1, -1])
    assert make_channels(hidden, small[1], "c", split=split).info["regime"] == "homophily"
    half = graph.replace(labels=[0, 0, 1, 1, 0, 1])  # one edge of two: the threshold itself is homophily
    assert make_channels(half, small[1], "c", split=0).info["regime"] == "homophily"


def test_a_kind_without_hops_needs_no_regime(small):
    assert make_channels(*small, kind="a").info["regime"] == "auto"
    assert len(make_channels(*small, kind="b", hops=0)) == 4
    assert make_fsgnn_channels(small[0], hops=0).names == ("X",)
    refused(ValueError, "training labels only.*name the regime", lambda: make_fsgnn_channels(small[0]))


# ----------------------------------------------------------- what channels are


def test_channels_say_what_they_are_and_how_they_are_written(small):
    graph, system = small
    channels = make_channels(graph, system, "c", "all", 2, direction="both")
    written = {
        "X": ("X", "$X$", "the features alone", "features", None),
        "S X": ("S X", r"$S\,X$", "one hop", "hops", None),
        "S~^2 X": ("S\u0303² X", r"$\tilde{S}^{2}\,X$", "two hops with the node itself", "hops", None),
        "F_0 S X": ("F₀ S X", r"$F_{0}\,S\,X$", "the average of one hop", "scales", 0),
        "F_2 S X": ("F₂ S X", r"$F_{2}\,S\,X$", "scale 2 of one hop", "scales", 2),
        "S~_in X": (
            *("S\u0303_in X", r"$\tilde{S}_{\mathrm{in}}\,X$", "one hop with the node itself against the edges"),
            *("hops", None),
        ),
    }
    for name, wanted in written.items():
        one = channels[name]
        found = (symbol(one), formula(one), describe(one), group(one), one.scale)
        assert found == wanted
    both_ways = make_channels(graph, system, "a", direction="symmetric", hop="random-walk")[2]
    assert describe(both_ways) == "scale 1 of the features"
    walked = make_fsgnn_channels(graph, 10, hop="random-walk", direction="symmetric")[10]
    assert (describe(walked), symbol(walked)) == ("10 hops both ways", "RW_sym¹⁰ X")
    mine = make_fsgnn_channels(graph, 1, hop=aslinearoperator(np.eye(6)))[1]
    assert (group(mine), describe(mine), formula(mine)) == ("hops", "one hop", r"$L\,X$")


def test_channels_of_ones_own_are_written_as_they_are_named(small):
    graph, system = small
    x, step = graph.features, Matrix("R", hop_matrix(graph))
    told = Channel("cost in $", None, x, "costs", "what a node costs")
    assert (describe(told), symbol(told), formula(told), group(told)) == (
        *("what a node costs", "cost in $", r"cost in \$", "other"),
    )
    assert group(Channel("F_3 S X", None, x)) == "other", "a name is a name"
    assert formula(Channel("R^2 X", [step, step], x, "X")) == r"$R^{2}\,X$"
    odd = Channel("?^2 X", [Matrix("?", step.matrix)] * 2, x, "X")
    assert (symbol(odd), formula(odd), describe(odd), group(odd)) == ("?² X", "?^2 X", "?^2 X", "other")
    labels = Channel("hop", Hop(graph), x, "Y")
    assert (describe(labels), group(labels)) == ("one hop of Y", "other")
    assert describe(Channel("scale", Projection(system, 1), labels)) == "scale 1 of one hop of Y"


def test_what_is_kept_with_a_channel_is_not_sent_along(small):
    channel = make_fsgnn_channels(small[0], 1, "homophily")[1]
    channel.kept["something"] = np.ones(1000)
    assert channel.nnz > 0
    assert channel.operator.shape == (6, 6)
    sent = pickle.loads(pickle.dumps(channel))
    assert sent.kept == {}
    np.testing.assert_array_equal(dense(sent.materialize()), dense(channel.materialize()))


# ---------------------------------------------------------- lazy forms and rows


@given(graphs_with_systems(), st.sampled_from(list(KINDS)), st.sampled_from(PAPERS_REGIMES), seeds)
def test_lazy_equals_materialised(graph_and_system, kind, regime, seed):
    graph, system = graph_and_system
    rng = np.random.default_rng(seed)
    channels = make_channels(graph, system, kind, regime, hops=2)
    weights = [rng.standard_normal((d, 3)) for d in channels.widths]
    arrays = [dense(array) for array in channels.materialize(np.float64)]
    tensors = channels.apply([torch.tensor(w) for w in weights])
    for array, w, lazy, tensor in zip(arrays, weights, channels.apply(weights), tensors, strict=True):
        np.testing.assert_allclose(lazy, array @ w, atol=1e-10)
        np.testing.assert_allclose(tensor.numpy(), array @ w, atol=1e-10)
    nodes = rng.integers(0, graph.n, 7)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 1e-4)):
        for array, rows in zip(arrays, channels.rows(nodes, dtype), strict=True):
            assert rows.dtype == dtype
            np.testing.assert_allclose(dense(rows), array[nodes], atol=tolerance)
    for channel, array in zip(channels, arrays, strict=True):
        np.testing.assert_allclose(dense(channel.operator @ channel.input), array, atol=1e-11)
        assert pf.adjoint_test(channel.operator) < 1e-10


def test_gradients_flow_through_lazy_channels(small):
    graph, system = small
    channels = make_channels(graph, system, "c", "homophily", hops=2)
    mine = Channel("mine", [aslinearoperator(np.eye(6) * 2), hop_matrix(graph)], "I")
    for channel in [*channels, mine]:
        w = torch.randn(channel.shape[1], 2, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(channel.apply, (w,))
        assert torch.autograd.gradgradcheck(channel.apply, (w,))


def test_products_on_other_devices_use_tensors(small):
    """What a GPU runs: the torch twins of the factors, called on tensors as on any device but the CPU."""
    graph, system = small
    x = torch.randn(6, 2, dtype=torch.float64)
    step = hop_matrix(graph)
    for factor, twin in (
        (Matrix("S", step), step.toarray()),
        (Matrix("D", step.toarray()), step.toarray()),
        (Projection(system, 1), plain_projections(system)[1]),
        (Channel("mine", aslinearoperator(step), x.numpy()).factors[0], step.toarray()),
    ):
        for product, matrix in ((factor._forward, twin), (factor._transposed, twin.T)):
            result = product(x)
            assert isinstance(result, torch.Tensor)
            np.testing.assert_allclose(result.numpy(), matrix @ x.numpy(), atol=1e-12)


class Counting(LinearOperator):
    """A hop that counts its products."""

    def __init__(self, matrix):
        super().__init__(np.dtype(np.float64), matrix.shape)
        self.matrix, self.count = matrix, 0

    def _matmat(self, x):
        self.count += 1
        return self.matrix @ x


@pytest.mark.parametrize(("kind", "products"), [("a", 0), ("b", 3), ("c", 3), ("as", 1)])
def test_hops_are_computed_once(small, kind, products):
    graph, system = small
    hop = Counting(hop_matrix(graph).toarray())
    channels = make_channels(graph, system, kind, hops=3, hop=hop, scaling="none")
    for found, twin in zip(
        channels.materialize(np.float64), plain_channels(graph, system, kind, hop.matrix, 3), strict=True
    ):
        np.testing.assert_allclose(found, twin, atol=1e-12)
    assert hop.count == products


@pytest.mark.parametrize("sparse_features", [False, True])
def test_projections_of_one_signal_are_computed_together(small, sparse_features, monkeypatch):
    graph = random_graph(6, 3, sparse_features=sparse_features)
    calls = []
    together = pf.FrameletSystem.projections
    monkeypatch.setattr(pf.FrameletSystem, "projections", lambda *a: (calls.append(1), together(*a))[1])
    make_channels(graph, small[1], "c", "heterophily").materialize(np.float64, "sparse" if sparse_features else "dense")
    assert len(calls) == 1


def test_a_tree_of_two_systems_and_repeated_channels(small):
    """Channels of different systems, a subset of scales, the same product under two names."""
    graph, system = small
    other = pf.FrameletSystem(pf.Hierarchy.from_nested([0, 1, 2, 3, 4, 5]))
    x, step = graph.features, hop_matrix(graph)
    channels = Channels(
        [
            Channel("X", None, x),
            Channel("F_1 X", Projection(system, 1), x),
            Channel("G_1 X", Projection(other, 1), x),
            Channel("S X", step, x),
            Channel("S X again", step, x),
            Channel("S F_2 X", [step, Projection(system, 2)], x),
            Channel("F_2 F_2 X", [Projection(system, 2), Projection(system, 2)], x),
        ]
    )
    s, f, g = step.toarray(), plain_projections(system), plain_projections(other)
    wanted = [x, f[1] @ x, g[1] @ x, s @ x, s @ x, s @ f[2] @ x, f[2] @ x]
    arrays = channels.materialize(np.float64)
    assert arrays[3] is arrays[4]
    for array, rows, twin in zip(arrays, channels.rows([4, 0], np.float64), wanted, strict=True):
        np.testing.assert_allclose(array, twin, atol=1e-12)
        np.testing.assert_allclose(rows, twin[[4, 0]], atol=1e-12)


# ---------------------------------------------------------------------- memory


@given(graphs_with_systems(), st.sampled_from(list(KINDS)))
def test_memory_is_stated_before_it_is_taken(graph_and_system, kind):
    channels = make_channels(*graph_and_system, kind=kind, regime="homophily")
    for dtype in (np.float32, np.float64):
        assert channels.memory(dtype, "dense") == sum(x.nbytes for x in channels.materialize(dtype, "dense"))
        taken = sum(x.data.nbytes + x.indices.nbytes + x.indptr.nbytes for x in channels.materialize(dtype, "sparse"))
        assert taken <= channels.memory(dtype, "sparse")
    for channel, array in zip(channels, channels.materialize(np.float64, "dense"), strict=True):
        assert np.count_nonzero(array) <= channel.nnz


def test_sparse_where_it_is_cheaper(small):
    n = 400
    tree = random_tree(2, 5, 4, n)
    n = tree.n
    rng = np.random.default_rng(0)
    features = sparse.random_array((n, 300), density=0.01, rng=rng, format="csr")
    graph = pf.Graph.from_edges(rng.integers(0, n, (2 * n, 2)), n=n, features=features)
    system = pf.FrameletSystem(tree)
    channels = make_channels(graph, system, "b", "heterophily", scaling="none")
    arrays = channels.materialize(np.float64)
    forms = [sparse.issparse(array) for array in arrays]
    assert forms == [channel.nnz <= SPARSE_BELOW * n * 300 for channel in channels]
    assert 0 < sum(forms) < len(forms)  # both, and dense ones made of sparse ones
    for array, twin in zip(arrays, plain_channels(graph, system, "b", hop_matrix(graph).toarray(), 3), strict=True):
        np.testing.assert_allclose(dense(array), twin, atol=1e-12)
        if sparse.issparse(array):
            assert array.data.all()
    assert channels.memory() < channels.memory(format="dense")


@pytest.mark.parametrize("kind", ["b", "c", "as"])
@pytest.mark.parametrize("form", ["dense", "auto"])
@pytest.mark.long
def test_little_memory_beside_the_result(kind, form):
    rng = np.random.default_rng(0)
    n, d = 20_000, 64
    tree = random_tree(0, 8, 4, n)
    n = tree.n
    features = rng.standard_normal((n, d)) if form == "dense" else sparse.random_array((n, d), density=0.01, rng=rng)
    graph = pf.Graph.from_edges(rng.integers(0, n, (2 * n, 2)), n=n, directed=True, features=features)
    channels = make_channels(graph, pf.FrameletSystem(tree), kind, "heterophily")
    channels.materialize(format=form)  # what is kept for good (scratch memory, converted hops) is there now
    tracemalloc.start()
    arrays = channels.materialize(format=form)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(x.data.nbytes + (x.indices.nbytes + x.indptr.nbytes if sparse.issparse(x) else 0) for x in arrays)
    assert peak <= 1.3 * size


def test_rows_keep_a_fraction_of_the_channels():
    tree = random_tree(0, 6, 6, 3000)
    rng = np.random.default_rng(0)
    graph = pf.Graph.from_edges(rng.integers(0, tree.n, (tree.n, 2)), n=tree.n, features=rng.random((tree.n, 50)))
    channels = make_channels(graph, pf.FrameletSystem(tree), "c", "heterophily")
    assert channels.memory(format="rows") < 0.8 * channels.memory()
    tracemalloc.start()
    channels.rows([0])
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept <= 1.1 * channels.memory(format="rows") + hop_matrix(graph).nnz * 24 + graph.n * 32  # and the order


def test_a_limit_is_kept(small):
    channels = make_channels(*small, regime="homophily")
    channels.materialize(limit=channels.memory())
    with pytest.raises(MemoryError, match=r"840 B, and the limit is 839 B; use apply or rows"):
        channels.materialize(limit=channels.memory() - 1)


def test_memory_that_cannot_be_had(small, monkeypatch):
    def fail(*_):
        raise MemoryError

    channels = make_channels(*small, regime="homophily")
    monkeypatch.setattr("pegfan.channels._trie.convert", fail)
    with pytest.raises(MemoryError, match="need up to 840 B, more than there is"):
        channels.materialize()


# ---------------------------------------------------------------- equivariance


@given(graphs_with_systems(), st.sampled_from(list(KINDS)), st.sampled_from(PAPERS_REGIMES), seeds)
def test_permuted_graph_and_tree_give_permuted_channels(graph_and_system, kind, regime, seed):
    graph, system = graph_and_system
    perm = np.random.default_rng(seed).permutation(graph.n)
    moved = pf.FrameletSystem(system.hierarchy.permute(perm))
    before = make_channels(graph, system, kind, regime).materialize(np.float64)
    after = make_channels(graph.permute(perm), moved, kind, regime).materialize(np.float64)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(dense(new), dense(old)[perm], atol=1e-11)


# ----------------------------------------------------------------- own channels


def test_the_collection(small):
    channels = make_channels(*small, kind="b", regime="heterophily", hops=1)
    assert len(channels) == 5
    assert channels[-1].name == "F_2 X"
    assert channels["S X"] is channels[1]
    assert channels[1:3].names == ("S X", "F_0 X")
    assert channels.widths == (5,) * 5
    ones = [Channel("ones", None, np.ones(6), "1")]
    more = channels + ones
    assert isinstance(more, Channels)
    assert more.names == (*channels.names, "ones")
    assert more.widths[-1] == 1
    assert [channel.name for channel in more] == list(more.names)
    assert repr(more) == "Channels(X, S X, F_0 X, F_1 X, F_2 X, ones)"
    assert repr(more[-1]) == "Channel('ones', 6×1)"


def test_the_table():
    graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], features=sparse.csr_array(np.eye(4)))
    step = hop_matrix(graph)
    system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    channels = Channels(
        [
            Channel("X", None, graph.features, "X"),
            Channel("two hops", [step, step], graph.features, "X"),
            Channel("rows", step, "I"),
            Channel("mixed", [Projection(system, 2), step, step], np.ones((4, 300))),
        ]
    )
    assert str(channels).splitlines() == [
        "name      operator  input  shape  nonzeros    density   dense   sparse",
        "X         1         X      4×4           4     25.00%    64 B     52 B",
        "two hops  M^2       X      4×4        ≤ 10   ≤ 62.50%    64 B    100 B",
        "rows      M         I      4×4         ≤ 6   ≤ 37.50%    64 B     68 B",
        "mixed     F_2 M^2   input  4×300   ≤ 1,200  ≤ 100.00%  4.8 KB  9.62 KB",
        "4 channels of float32: 4.99 KB dense, at most 9.84 KB sparse",
    ]


def test_adjacency_rows(small):
    step = hop_matrix(small[0], "A")
    channel = Channel("A", step, "I")
    np.testing.assert_array_equal(dense(channel.materialize(np.float64)), step.toarray())
    w = np.random.default_rng(0).standard_normal((6, 3))
    np.testing.assert_allclose(channel.apply(w), step @ w)
    assert channel.input_name == "I"


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, np.asarray, aslinearoperator])
def test_operators_of_every_kind(small, make):
    graph, system = small
    step = hop_matrix(graph)
    factor = make(step.toarray())
    for x in (graph.features, sparse.coo_array(graph.features), graph.features > 0.5, np.arange(6)):
        values = x.toarray() if sparse.issparse(x) else np.asarray(x, float).reshape(6, -1)
        channel = Channel("mine", [system.operator("projection", 1), factor], x)
        wanted = plain_projections(system)[1] @ step.toarray() @ values
        for form in ("dense", "sparse"):
            np.testing.assert_allclose(dense(channel.materialize(np.float64, form)), wanted, atol=1e-12)
        np.testing.assert_allclose(channel.apply(np.eye(values.shape[1])), wanted, atol=1e-12)


def test_rectangular_operators(small):
    """From six nodes to their two clusters and back."""
    graph, system = small
    phi = system.scaling(2)
    channel = Channel("clusters", [phi.T, phi], graph.features)
    np.testing.assert_allclose(channel.materialize(np.float64), phi.T @ (phi @ graph.features), atol=1e-12)
    assert channel.operator.shape == (6, 6)
    assert Channel("up", phi, graph.features).shape == (2, 5)


def test_channels_of_channels_share_products(small):
    graph, system = small
    hop = Counting(hop_matrix(graph).toarray())
    once = Channel("once", hop, graph.features, "X")
    twice = Channel("twice", hop, once)
    fine = Channel("fine", Projection(system, 2), twice)
    assert (len(fine.factors), fine.input_name) == (3, "X")
    arrays = Channels([once, twice, fine]).materialize(np.float64)
    assert hop.count == 2
    wanted = hop.matrix @ hop.matrix @ graph.features
    np.testing.assert_allclose(arrays[1], wanted, atol=1e-12)
    np.testing.assert_allclose(arrays[2], plain_projections(system)[2] @ wanted, atol=1e-12)


def test_inputs_with_duplicates_are_summed_and_left_alone():
    doubled = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    np.testing.assert_array_equal(dense(Channel("x", None, doubled).materialize(np.float64)), [[3, 0]])
    assert doubled.nnz == 2


@pytest.mark.parametrize("dtype", [bool, np.int8])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_operators_of_small_integers_are_numbers(dtype, make):
    """10 · 20 is 200 and True + True is 2, however factors are multiplied: training multiplies them out."""
    tens = np.full((20, 20), 10).astype(dtype)
    channel = Channel("A^2 X", [make(tens)] * 2, tens[:, :1])
    first, second = (factor.matrix for factor in channel.factors)
    one = 1.0 if dtype is bool else 10.0
    np.testing.assert_array_equal(dense(first @ second), np.full((20, 20), 20 * one**2))
    np.testing.assert_array_equal(channel.materialize(np.float64), np.full((20, 1), 400 * one**3))


def test_unsorted_operators_are_left_alone():
    operator = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    for array in (operator.data, operator.indices, operator.indptr):  # as loky hands over what is large
        array.setflags(write=False)
    factor = Channel("x", operator, np.eye(2)).factors[0]
    assert factor.matrix.has_sorted_indices
    assert operator.indices.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(factor.matrix.toarray(), [[2, 1], [0, 3]])


def plain_labels(graph, nodes, operator):
    y = np.zeros((graph.n, graph.n_classes))
    y[nodes, graph.labels[nodes]] = graph.labels[nodes] >= 0
    return (operator - np.diag(np.diag(operator))) @ y


@given(graphs_with_systems(), st.sampled_from(["S", "S~", "A"]), st.integers(1, 3), st.booleans(), seeds)
def test_propagated_labels_leave_the_own_one_out(graph_and_system, kind, hops, project, seed):
    graph, system = graph_and_system
    rng = np.random.default_rng(seed)
    train = np.sort(rng.choice(graph.n, rng.integers(1, graph.n + 1), replace=False))
    split = pf.Split(train, train[:0], train[:0])
    step = hop_matrix(graph, kind)
    scale = int(rng.integers(system.K))
    factors = [Projection(system, scale)] * project + [step] * hops
    operator = np.linalg.matrix_power(step.toarray(), hops)
    if project:
        operator = plain_projections(system)[scale] @ operator
    found = propagated_labels(graph, factors, split)
    np.testing.assert_allclose(found, plain_labels(graph, train, operator), atol=1e-11)
    node = int(train[0])  # another label of its own changes nothing in a node's own row
    flipped = graph.labels.copy()
    flipped[node] = 2 if flipped[node] != 2 else 0
    other = propagated_labels(graph.replace(labels=flipped, class_names=[0, 1, 2]), factors, split)
    np.testing.assert_allclose(other[node, : found.shape[1]], found[node], atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_label_alone_is_not_seen_by_its_node(seed):
    """Nothing at all, even where the shares of its own label cancel: rounding must not betray training nodes."""
    rng = np.random.default_rng(seed)
    graph = pf.Graph.from_edges(rng.integers(0, 40, (40, 2)), n=40, labels=rng.integers(0, 3, 40))
    system = pf.FrameletSystem(pf.build_tree(graph, h=2 + seed % 4))
    steps = [hop_matrix(graph, kind) for kind in ("S", "S~")]
    for node in range(0, 40, 2):
        split = pf.Split(np.array([node]), np.array([], int), np.array([], int))
        for scale, step in itertools.product(range(system.K), steps):
            assert not propagated_labels(graph, [Projection(system, scale), step], split)[node].any()


def test_labels_that_only_lead_back_vanish_exactly():
    """On a star, two hops lead from a leaf to itself and to other leaves; alone in training, it sees nothing."""
    graph = pf.Graph.from_edges([[0, 1], [0, 2], [0, 3]], labels=[0, 1, 1, 0], splits=[([1], [2], [3])])
    seen = propagated_labels(graph, [hop_matrix(graph), hop_matrix(graph)])
    assert not seen[1].any()
    assert seen[2, 1] > 0
    unlabelled = graph.replace(labels=[0, -1, 1, 0])
    assert not propagated_labels(unlabelled, hop_matrix(graph)).any()


def test_structural_features():
    graph = pf.Graph.from_edges([[0, 1], [0, 2], [2, 1]], [1.0, 2.0, 4.0], directed=True)
    wanted = [[3, 0, (1 * 0 + 2 * 4) / 3, 0], [0, 5, 0, (0 + 4 * 2) / 5], [4, 2, 0, 0]]
    np.testing.assert_allclose(np.expm1(structural_features(graph)), wanted, atol=1e-12)


# --------------------------------------------------------------------- density


def count(matrix):
    return int(np.count_nonzero(np.abs(matrix) > 1e-12))


@given(trees(limit=25), seeds, st.sampled_from(["binary-haar", "haar-basis", "mine", "with zeros"]))
def test_densities_equal_those_of_formed_matrices(tree, seed, filters):
    graph = random_graph(tree.n, seed, density=0.1)
    rng = np.random.default_rng(seed)
    bank = {}

    def mine(children):
        if children not in bank:
            bank[children] = admissible(rng, children)
            if filters == "with zeros" and children > 1:  # p = e_1: the others' averages are lost on the way up
                bank[children] = np.eye(children)[0], np.eye(children)[1:]
        return bank[children]

    system = pf.FrameletSystem(tree, filters if "-" in filters else mine)
    table = density(graph, system, powers=3)
    projections = plain_projections(system)
    a = graph.adjacency.toarray()
    powers = [np.linalg.matrix_power(a, k) for k in (1, 2, 3)]
    assert table["nonzeros"].tolist() == [*map(count, projections), *(int(np.count_nonzero(p)) for p in powers)]
    assert table.index.tolist() == [*(f"F_{j}" for j in range(tree.K)), "A", "A^2", "A^3"]
    np.testing.assert_allclose(table["density"] * tree.n**2, table["nonzeros"])


def test_density_in_blocks_and_by_sample(monkeypatch):
    tree = random_tree(1, 4, 4, 60)
    graph, system = random_graph(tree.n, 0, density=0.05), pf.FrameletSystem(tree)
    whole = density(graph, system)
    monkeypatch.setattr(importlib.import_module("pegfan.channels._density"), "_ENTRIES", 3 * tree.n)
    assert density(graph, system).equals(whole)
    sampled = density(graph, system, sample=tree.n // 2)
    assert sampled.loc["F_1"].equals(whole.loc["F_1"])
    np.testing.assert_allclose(sampled.loc["A^3", "density"], whole.loc["A^3", "density"], rtol=0.3)
    assert density(graph, system, sample=10**6).equals(whole)


def test_the_plot_of_densities(small):
    figure = pf.plots.density(*small, powers=2)
    (ax,) = figure.axes
    assert [bar.get_height() for bar in ax.patches] == density(*small, powers=2)["density"].tolist()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["$F_0$", "$F_1$", "$F_2$", "$A$", "$A^{2}$"]
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["projections $F_j$", "powers of $A$"]
    figure.canvas.draw()
    pf.plots.density(*small, powers=0).canvas.draw()


# ------------------------------------------------------------------- bad input


def refused(error, message, action):
    with pytest.raises(error, match=message):
        action()


def test_bad_presets(small):
    graph, system = small
    empty = np.array([], dtype=np.int64)
    other = pf.FrameletSystem(pf.Hierarchy.from_nested([0, 1, 2]))
    split = pf.Split(np.array([0, 1]), empty, empty)
    isolated = pf.Graph.from_edges([[0, 1]], n=6, labels=[0] * 6, features=np.eye(6))
    for error, message, action in [
        (ValueError, "kind must be 'a', 'b', 'c' or 'as', got 'd'", lambda: make_channels(graph, system, "d")),
        (ValueError, "regime must be .*'auto', got 'x'", lambda: make_channels(graph, system, regime="x")),
        (ValueError, "direction must be .*'symm.*got 'x'", lambda: make_channels(graph, system, "a", direction="x")),
        (ValueError, "hop matrix must be .*'S~'.*got 'T'", lambda: make_channels(graph, system, hop="T")),
        (ValueError, "hop matrix must be .*got None", lambda: hop_matrix(graph, None)),
        (ValueError, "direction must be .*got 'up'", lambda: hop_matrix(graph, "S", "up")),
        (ValueError, "regime must be .*'all'.*got 'both'", lambda: make_fsgnn_channels(graph, regime="both")),
        (ValueError, "kind 'c' projects on framelets: pass system", lambda: make_channels(graph)),
        (TypeError, "must be a FrameletSystem, got Hierarchy", lambda: make_channels(graph, system.hierarchy)),
        (ValueError, "tree with 3 nodes, and the graph has 6", lambda: make_channels(graph, other)),
        (ValueError, "hops must be at least 0, got -1", lambda: make_channels(graph, system, hops=-1)),
        (TypeError, "hops must be an integer, got 1.5", lambda: make_fsgnn_channels(graph, 1.5)),
        (TypeError, "hops must be an integer, got True", lambda: make_fsgnn_channels(graph, True)),
        (ValueError, "hop is 2×2; a graph of 6 nodes", lambda: make_channels(graph, system, hop=np.eye(2))),
        (
            ValueError,
            "scaling must be .*'principal', got True",
            lambda: make_channels(graph, system, "a", scaling=True),
        ),
        (ValueError, "no features; give them", lambda: make_channels(graph.replace(features=None), system, "a")),
        (ValueError, "graph has no splits; pass a Split, or name", lambda: make_channels(graph, system)),
        (ValueError, "no split is given; pass a Split, or name", lambda: make_channels(graph, system, split=None)),
        (ValueError, "no labels; name", lambda: make_channels(graph.replace(labels=None), system, split=split)),
        (
            TypeError,
            "must be a Split .*, got str",
            lambda: make_channels(graph, system, split="train"),
        ),
        (ValueError, "no training nodes", lambda: make_channels(graph, system, split=pf.Split(empty, empty, empty))),
        (ValueError, "holds 6", lambda: make_channels(graph, system, split=pf.Split(np.array([6]), empty, empty))),
        (
            ValueError,
            "no edge joins two labelled training nodes",
            lambda: make_channels(isolated, system, split=pf.Split(np.array([2, 3]), empty, empty)),
        ),
        (ValueError, "tree with 3 nodes, and the graph has 6", lambda: density(graph, other)),
        (ValueError, "powers must be at least 0, got -1", lambda: density(graph, system, powers=-1)),
        (ValueError, "sample.* must be at least 1", lambda: density(graph, system, sample=0)),
    ]:
        refused(error, message, action)


def test_bad_channels(small):
    graph, system = small
    x, step = graph.features, hop_matrix(graph)
    channels = make_channels(graph, system, "b", "heterophily")
    short, again = [Channel("c", None, np.ones(4))], [Channel("S X", step, x)]
    split, scales = pf.Split(np.array([0, 1]), np.array([2]), np.array([3])), [Projection(system, 1)]
    complex_operator = aslinearoperator(np.eye(6) * 1j)
    for error, message, action in [
        (TypeError, "name must be a non-empty string", lambda: Channel("", None, x)),
        (TypeError, "factor of channel 'c' must be a sparse matrix.* got str", lambda: Channel("c", "S", x)),
        (TypeError, "got int", lambda: Channel("c", [step, 3], x)),
        (TypeError, "must hold real numbers, got dtype complex128", lambda: Channel("c", np.eye(6) * 1j, x)),
        (TypeError, "must be real, got a LinearOperator of complex128", lambda: Channel("c", complex_operator, x)),
        (ValueError, "factor of channel 'c' holds NaN", lambda: Channel("c", np.full((6, 6), np.nan), x)),
        (ValueError, "factor M is 6×6, and what it acts on has 4 rows", lambda: Channel("c", step, np.ones((4, 2)))),
        (ValueError, "factor F_1 is 6×6, and what", lambda: Channel("c", [Projection(system, 1), np.eye(3)], x[:3])),
        (ValueError, "a matrix, a Channel, or 'I' for the identity; got 'X'", lambda: Channel("c", step, "X")),
        (ValueError, "is the identity", lambda: Channel("c", None, "I")),
        (ValueError, "holds NaN or infinity", lambda: Channel("c", None, np.array([1.0, np.inf]))),
        (ValueError, "matrix of real numbers", lambda: Channel("c", None, np.ones((2, 2, 2)))),
        (ValueError, "matrix of real numbers", lambda: Channel("c", None, np.array(["a", "b"]))),
        (ValueError, "no channels given", lambda: Channels([])),
        (TypeError, "must be a Channel, got numpy.ndarray", lambda: Channels([x])),
        (
            ValueError,
            "channel 'c' has 4 rows and channel 'X' has 6",
            lambda: channels + short,
        ),
        (ValueError, "two channels are named 'S X'", lambda: channels + again),
        (KeyError, "no channel is named 'F_9'; there are X, S X", lambda: channels["F_9"]),
        (ValueError, "dtype must be float32 or float64, got int64", lambda: channels.materialize(int)),
        (ValueError, "format must be 'auto', 'dense' or 'sparse'", lambda: channels.materialize(format="csr")),
        (ValueError, "7 channels need as many weights, got 1", lambda: channels.apply([np.eye(5)])),
        (ValueError, "channel 'X' has 5 columns: its weights", lambda: channels[0].apply(np.eye(4))),
        (TypeError, "vector of node indices", lambda: channels.rows(np.array([True]))),
        (ValueError, "there is no node 6: nodes are numbered 0 to 5", lambda: channels.rows([0, 6])),
        (ValueError, "there is no node -1", lambda: channels.rows([-1])),
        (ValueError, "the graph has no labels", lambda: propagated_labels(graph.replace(labels=None), step)),
        (TypeError, "a node's own share cannot", lambda: propagated_labels(graph, aslinearoperator(step), split)),
        (TypeError, "one Projection in front", lambda: propagated_labels(graph, [step, *scales], split)),
        (ValueError, "labels propagated by nothing", lambda: propagated_labels(graph, [], split)),
    ]:
        refused(error, message, action)


def test_large_numbers_are_not_taken_for_infinite():
    Channel("large", None, np.full((3, 2), 1e308))


# --------------------------------------------------------- what large channels share


def test_a_large_product_is_never_that_of_an_array_that_is_gone():
    """An id comes again as soon as its object is gone; what is shared goes by the object."""
    n, results = 40_000, []
    step = sparse.eye_array(n, format="csr")
    for value in range(1, 7):
        channel = Channel("SX", step, np.full((n, 1), float(value)))
        results.append(Channels([channel]).materialize()[0])
        del channel
        assert (results[-1] == value).all()


def test_what_large_channels_give_is_the_callers_own():
    channel = Channel("X", None, np.ones((40_000, 1)))
    channels = Channels([channel])
    first = channels.materialize(np.float64)[0]
    first *= 0
    assert (channels.materialize(np.float64)[0] == 1).all()
    assert (channels.rows([0], np.float64)[0] == 1).all()


def test_large_products_of_other_orders_are_other_products():
    n = 40_000
    rng = np.random.default_rng(0)
    pool, y = sparse.random_array((n, 5), density=0.2, rng=rng, format="csr"), rng.random((5, 2))
    alone = Channel("B Y", pool, y)
    held = Channels([alone]).materialize(np.float64)[0]
    graph = pf.Graph.from_edges(rng.integers(0, n, (n, 2)), n=n, features=rng.random((n, 1)))
    made = pf.make_fsgnn_channels(graph, 0, "heterophily") + [alone]  # noqa: RUF005
    np.testing.assert_allclose(made.materialize(np.float64)[-1], pool @ y)
    np.testing.assert_allclose(held, pool @ y)


@pytest.mark.parametrize("rows", [3, 8])
def test_an_operator_to_other_rows_takes_nodes_as_they_are_numbered(rows):
    graph = pf.Graph.from_edges([[0, 4], [4, 2], [2, 1], [1, 3]], features=np.arange(10.0).reshape(5, 2) ** 2)
    made = pf.make_fsgnn_channels(graph, 1, "heterophily")
    pool = np.random.default_rng(0).random((rows, 5))
    channel = Channel("pool", pool, made["S X"])
    expected = pool @ made["S X"].materialize(np.float64)
    np.testing.assert_allclose(channel.materialize(np.float64), expected)
    np.testing.assert_allclose(channel.apply(np.eye(2)), expected)
