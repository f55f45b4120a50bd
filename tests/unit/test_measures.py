"""Homophily and label informativeness: by hand, against plain loops over pairs of nodes, and as invariants."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan import measures
from pegfan.graph import Graph

MEASURES = ["edge_homophily", "node_homophily", "adjusted_homophily", "label_informativeness"]

TRIANGLES = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]
SQUARE = [[0, 1], [1, 2], [2, 3], [3, 0]]


def measure_all(g):
    return [getattr(measures, name)(g) for name in MEASURES]


@st.composite
def labelled_graphs(draw, max_n=7):
    n = draw(st.integers(1, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    a = rng.choice([0, 0, 1, 2.5], size=(n, n))
    directed = draw(st.booleans())
    if not directed:
        a = np.maximum(a, a.T)
    return Graph(a, directed=directed, labels=rng.integers(-1, draw(st.integers(1, 4)), size=n))


def pairs_of(g):
    """Return (i, j) for every arc between different labelled nodes, by looking at every entry."""
    a, y = g.adjacency.toarray(), g.labels
    nodes = range(g.n)
    return [(i, j) for i in nodes for j in nodes if i != j and a[i, j] != 0 and y[i] >= 0 and y[j] >= 0]


def entropy(counts):
    total = sum(counts)
    return -sum(c / total * math.log(c / total) for c in counts if c)


# ------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("edges", "labels", "expected"),
    [
        (TRIANGLES, [0, 0, 0, 1, 1, 1], [1, 1, 1, 1]),
        # a square with alternating labels: no edge alike, every label told by the neighbour's
        (SQUARE, [0, 1, 0, 1], [0, 0, -1, 1]),
        # a square in two halves: neighbours say nothing
        (SQUARE, [0, 0, 1, 1], [0.5, 0.5, 0, 0]),
        # a path 0-0-1: p(0) = 3/4, h = 1/2, chance = 10/16; joint 1/2, 1/4, 1/4
        (
            [[0, 1], [1, 2]],
            [0, 0, 1],
            [1 / 2, 1 / 2, -1 / 3, 2 - entropy([2, 1, 1]) / entropy([3, 1])],
        ),
        # a star whose hub has two leaves alike and two not: the hub counts as one node, but for every edge
        ([[0, 1], [0, 2], [0, 3], [0, 4]], [0, 0, 0, 1, 1], [1 / 2, 1 / 2, -1 / 3, None]),
        ([[0, 1], [0, 2], [0, 3]], [0, 0, 1, 1], [1 / 3, (1 / 3 + 1) / 4, -1 / 2, None]),
    ],
)
def test_by_hand(edges, labels, expected):
    for value, wanted in zip(measure_all(Graph.from_edges(edges, labels=labels)), expected, strict=True):
        assert wanted is None or value == pytest.approx(wanted, abs=1e-15)


def test_directed_by_hand():
    # 0 -> 1 -> 2 and 0 -> 2 with labels 0, 0, 1: node 2 leads nowhere and is not counted
    g = Graph.from_edges([[0, 1], [1, 2], [0, 2]], directed=True, labels=[0, 0, 1])
    np.testing.assert_array_equal(measures.class_edges(g), [[1, 2], [0, 0]])
    assert measures.edge_homophily(g) == pytest.approx(1 / 3)
    assert measures.node_homophily(g) == pytest.approx((1 / 2 + 0) / 2)
    assert measures.adjusted_homophily(g) == pytest.approx((1 / 3 - 20 / 36) / (1 - 20 / 36))
    assert measures.label_informativeness(g) == pytest.approx(2 - entropy([2, 2, 2]) / entropy([4, 2]))


def test_self_loops_weights_and_unlabelled_nodes_do_not_count():
    g = Graph.from_edges(SQUARE, labels=[0, 0, 1, 1])
    noisy = Graph.from_edges(
        [*SQUARE, [0, 0], [2, 2], [0, 4], [2, 4], [4, 5]],
        [1, 7, 0.5, 2, 3, 4, 5, 6, 7],
        labels=[0, 0, 1, 1, -1, -1],
    )
    np.testing.assert_array_equal(measures.class_edges(noisy), [[2, 2], [2, 2]])
    assert measure_all(noisy) == measure_all(g)


def test_one_class_and_no_edge():
    assert measure_all(Graph.from_edges(SQUARE, labels=[2, 2, 2, 2])) == [1, 1, 0, 0]
    for g in (
        Graph.from_edges([], n=3, labels=[0, 1, 0]),
        Graph.from_edges(SQUARE, labels=[-1, -1, -1, -1]),
        Graph.from_edges([[0, 0], [0, 1]], labels=[0, -1]),
    ):
        assert all(math.isnan(value) for value in measure_all(g))


def test_class_edges_has_a_row_for_every_class():
    g = Graph.from_edges([[0, 1]], labels=[0, 2], class_names=["a", "b", "c", "d"])
    counts = measures.class_edges(g)
    assert (counts.shape, counts.dtype, counts.sum()) == ((4, 4), np.int64, 2)
    assert counts[0, 2] == counts[2, 0] == 1
    assert measures.class_edges(g.replace(labels=[-1, -1], class_names=None)).shape == (0, 0)


@pytest.mark.parametrize("name", [*MEASURES, "class_edges"])
def test_a_graph_without_labels_is_refused(name):
    with pytest.raises(ValueError, match=r"no labels.*replace\(labels="):
        getattr(measures, name)(Graph.from_edges(SQUARE))


# ------------------------------------------------------------------ against loops


@given(labelled_graphs())
def test_against_plain_loops(g):
    y, pairs = g.labels, pairs_of(g)
    counts = np.zeros((g.n_classes, g.n_classes))
    for i, j in pairs:
        counts[y[i], y[j]] += 1
    np.testing.assert_array_equal(measures.class_edges(g), counts)
    if not pairs:
        assert all(math.isnan(value) for value in measure_all(g))
        return

    edge = sum(y[i] == y[j] for i, j in pairs) / len(pairs)
    shares = []
    for i in range(g.n):
        ends = [y[j] for tail, j in pairs if tail == i]
        if ends:
            shares.append(sum(end == y[i] for end in ends) / len(ends))
    ends = [y[node] for pair in pairs for node in pair]
    p = [ends.count(c) / len(ends) for c in set(ends)]
    both = [(y[i], y[j]) for i, j in pairs] + [(y[j], y[i]) for i, j in pairs]
    p_both = [both.count(c) / len(both) for c in set(both)]
    if len(p) == 1:
        adjusted = informativeness = 0.0
    else:
        chance = sum(q**2 for q in p)
        adjusted = (edge - chance) / (1 - chance)
        informativeness = (2 * entropy(p) - entropy(p_both)) / entropy(p)
    expected = [edge, sum(shares) / len(shares), adjusted, informativeness]
    assert measure_all(g) == pytest.approx(expected, abs=1e-12)


@given(labelled_graphs(), st.data())
def test_measures_do_not_depend_on_the_numbering(g, data):
    h = g.permute(data.draw(st.permutations(range(g.n))))
    np.testing.assert_array_equal(measures.class_edges(g), measures.class_edges(h))
    np.testing.assert_allclose(measure_all(h), measure_all(g), rtol=0, atol=1e-12)


@given(labelled_graphs(), st.data())
def test_measures_do_not_depend_on_the_names_of_classes(g, data):
    renamed = np.array(data.draw(st.permutations(range(9))))
    h = g.replace(labels=np.where(g.labels < 0, -1, renamed[g.labels]))
    np.testing.assert_allclose(measure_all(h), measure_all(g), rtol=0, atol=1e-12)


@given(labelled_graphs())
def test_bounds(g):
    edge, node, adjusted, informativeness = measure_all(g)
    if math.isnan(edge):
        assert not pairs_of(g)
        return
    assert 0 <= edge <= 1
    assert 0 <= node <= 1
    assert adjusted <= edge + 1e-12
    assert 0 <= informativeness <= 1


# ------------------------------------------------------------------ the description


def test_describe_by_hand():
    g = Graph.from_edges(
        [[0, 1], [1, 2], [3, 3]],
        [1, 2, 1],
        n=6,
        labels=[0, 0, 1, -1, 1, -1],
        features=np.ones((6, 3)),
        splits=[([0], [1], [2])],
    )
    assert measures.describe(g).to_dict() == {
        "nodes": 6,
        "edges": 3,
        "nonzeros": 5,
        "directed": False,
        "weighted": True,
        "density": 5 / 36,
        "self_loops": 1,
        "components": 4,
        "isolated": 3,
        "features": 3,
        "classes": 2,
        "labelled": 4,
        "splits": 1,
        "things": 0,
        **dict(zip(MEASURES, measure_all(g), strict=True)),
    }


def test_describe_a_directed_graph_without_labels():
    d = measures.describe(Graph.from_edges([[0, 1], [2, 1]], n=4, directed=True))
    assert (d.edges, d.nonzeros, d.directed, d.weighted, d.components, d.isolated) == (2, 2, True, False, 2, 1)
    assert [getattr(d, name) for name in MEASURES] == [None] * 4
    assert (d.features, d.classes, d.labelled, d.splits) == (0, 0, 0, 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        d.nodes = 3


@given(labelled_graphs())
def test_descriptions_are_plain_and_aligned(g):
    d = measures.describe(g)
    assert measures.Description(**json.loads(json.dumps(d.to_dict(), allow_nan=False))) == d
    lines = str(d).splitlines()
    names = [field.name.replace("_", " ") for field in dataclasses.fields(d)]
    assert [line[:21].rstrip() for line in lines] == names
    assert all(line[21:23] == "  " and line[23] != " " for line in lines)
    assert (d.edge_homophily is None) == (not pairs_of(g))


@pytest.mark.parametrize(
    ("fact", "shown"),
    [(None, "-"), (True, "yes"), (False, "no"), (1234567, "1,234,567"), (0.25, "0.2500"), (0.0, "0.0000")],
)
def test_facts_are_shown_for_people(fact, shown):
    blank = dict.fromkeys((field.name for field in dataclasses.fields(measures.Description)), 0)
    text = str(measures.Description(**{**blank, "density": fact}))
    assert f"density                {shown}" in text.splitlines()


def test_a_small_density_keeps_its_digits():
    g = Graph.from_edges([[0, 1]], n=1000)
    assert "density                2.00e-06" in str(g.describe()).splitlines()


# ---------------------------------------------------------------- degrees and duplicates


def test_duplicates_by_hand():
    # 1 and 2 point at {0}, 3 and 4 at nothing, 0 at {1, 2}; features of 0 and 3 are equal and not zero.
    graph = Graph.from_edges(
        [[1, 0], [2, 0], [0, 1], [0, 2]],
        n=5,
        directed=True,
        features=np.array([[1.0, 2], [2, 1], [0, 0], [1, 2], [0, 0]]),
        labels=[0, 1, 0, 1, 0],
        splits=[([1], [0], [2, 3])],
    )
    assert measures.duplicates(graph) == measures.Duplicates(neighbours=2, features=2, test_in_train=0.5)


def test_equal_rows_are_found_and_others_are_not():
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 3, size=(400, 5)).astype(float)
    groups = measures.equal_rows(matrix)
    same = (matrix[:, None] == matrix[None]).all(axis=2)
    empty = ~matrix.any(axis=1)
    assert empty.any()
    assert (groups[empty] == -1).all()
    kept = ~empty
    assert np.array_equal(groups[kept][:, None] == groups[kept][None], same[np.ix_(kept, kept)])


def test_neighbours_are_the_same_whatever_the_weights():
    graph = Graph.from_edges([[0, 2], [1, 2], [3, 4]], [1.0, 2.0, 1.0])
    assert measures.duplicates(graph).neighbours == 2


def test_degrees_by_hand():
    graph = Graph.from_edges([[0, 1], [0, 2], [0, 3], [0, 4], [1, 0]], n=6, directed=True)
    found = measures.degrees(graph)
    assert found.outgoing == measures.Summary(0, 0.0, 5 / 6, 4)
    assert found.incoming == measures.Summary(0, 1.0, 5 / 6, 1)
    assert found.histogram == {0: 4, 1: 1, 2: 0, 4: 1}
