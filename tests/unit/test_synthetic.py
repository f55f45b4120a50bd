"""The paper's synthetic graphs: what is drawn, how often, and the similarity of classes that results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chdtri

import pegfan as pf
from pegfan.datasets import D4, synthetic
from pegfan.datasets.synthetic import _draw_by_race, _draw_by_rejection


def similarities(gamma, seeds=10):
    return np.mean([pf.measures.ccns(synthetic(gamma, n_features=0, seed=seed)) for seed in range(seeds)], axis=0)


def test_ccns_of_the_paper_at_gamma_0_and_1():
    """The numbers that the text reads off Figure 6."""
    at_0 = similarities(0)
    assert at_0[0, 1] == pytest.approx(0.367, abs=0.012)
    assert at_0[0, 2] == pytest.approx(0.686, abs=0.02)
    np.testing.assert_allclose(similarities(1), 0.91, atol=0.01)


def test_the_distributions_are_those_of_the_papers_table():
    """Table V."""
    printed = """
        0.1  0.4  0    0.5
        0.5  0    0.5  0
        0.2  0    0.5  0.3
        0.25 0.25 0.25 0.25
    """
    np.testing.assert_array_equal(D4, [[float(x) for x in row.split()] for row in printed.strip().splitlines()])
    np.testing.assert_allclose(D4.sum(axis=1), 1, rtol=1e-15)


@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0])
def test_neighbours_are_drawn_from_the_mixture_of_the_papers_table_and_the_uniform_one(gamma):
    """Algorithm 4: an edge joins classes a and b with probability (M_ab + M_ba)/4, where M = γ/4 + (1 − γ) D."""
    graph = synthetic(gamma, n_features=0)
    ends = np.sort(graph.labels[graph.edges()[0]], axis=1)
    found = np.bincount(4 * ends[:, 0] + ends[:, 1], minlength=16).reshape(4, 4) / graph.n_edges
    M = (gamma / 4 + (1 - gamma) * D4) / 4
    np.testing.assert_allclose(found, np.triu(M + M.T) - np.diag(M.diagonal()), atol=0.01)
    assert (found[1, 1] == 0) == (gamma == 0)


def test_classes_become_alike_as_gamma_grows():
    """What Figure 6 shows from panel to panel."""
    off = [similarities(gamma, 3)[np.triu_indices(4, 1)].mean() for gamma in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    assert (np.diff(off) > 0).all()


def plain_ccns(graph):
    A, y = graph.adjacency.toarray() > 0, graph.labels
    k = graph.n_classes
    d = np.array(
        [[sum(A[i, j] and y[j] == c for j in range(graph.n)) for c in range(k)] for i in range(graph.n)], float
    )
    result = np.zeros((k, k))
    for a in range(k):
        for b in range(k):
            pairs = [(i, j) for i in range(graph.n) if y[i] == a for j in range(graph.n) if y[j] == b]
            cos = [d[i] @ d[j] / max(np.linalg.norm(d[i]) * np.linalg.norm(d[j]), 1e-300) for i, j in pairs]
            result[a, b] = np.mean(cos) if cos else np.nan
    return result


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.booleans())
def test_ccns_is_its_definition(seed, n, directed):
    """Definition 1."""
    rng = np.random.default_rng(seed)
    graph = pf.Graph.from_edges(
        rng.integers(n, size=(2 * n, 2)), n=n, directed=directed, labels=rng.integers(-1, 3, n), class_names=[0, 1, 2]
    )
    np.testing.assert_allclose(pf.measures.ccns(graph), plain_ccns(graph), atol=1e-12)
    perm = rng.permutation(n)
    np.testing.assert_allclose(pf.measures.ccns(graph.permute(perm)), pf.measures.ccns(graph), atol=1e-12)


def test_the_papers_graph():
    graph = synthetic(0.4)
    assert repr(graph) == "Graph(n=3000, edges=45000, undirected, features=700, classes=4, splits=1)"
    assert 1 <= graph.describe().self_loops <= 40  # the authors' have 11 to 13
    assert set(graph.adjacency.data) == {1.0}
    split = graph.splits[0]
    assert [len(part) for part in split] == pytest.approx([1440, 960, 600], abs=3)
    assert np.bincount(graph.labels).min() > 600


@pytest.mark.parametrize("separation", [6.0, 1.0])
def test_features_have_the_means_of_the_tables(separation):
    graph = synthetic(0, separation=separation, n_edges=10)
    for c in range(4):
        rows = graph.features[graph.labels == c]
        assert rows.mean() == pytest.approx(separation * (-0.75 + 0.5 * c), abs=0.02)
        assert rows.std() == pytest.approx(1, abs=0.02)


def test_gamma_changes_edges_only_and_seeds_change_everything():
    a, b, c = synthetic(0, seed=1), synthetic(0.5, seed=1), synthetic(0, seed=2)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.features, b.features)
    assert all(np.array_equal(x, y) for x, y in zip(a.splits[0], b.splits[0], strict=True))
    assert (a.adjacency != b.adjacency).nnz
    assert not np.array_equal(a.labels, c.labels)
    again = synthetic(0, seed=1)
    assert (again.adjacency != a.adjacency).nnz == 0
    np.testing.assert_array_equal(again.features, a.features)


def algorithm_4(labels, N, D, gamma, rng):
    """Algorithm 4, draw by draw; pairs have no order here, as in the authors' stored graphs.

    It is printed with ``while k ≤ N`` from k = 0, which would make N + 1 edges; the text has N.
    """
    edges = set()
    while len(edges) < N:
        i, r = rng.integers(len(labels)), rng.random()
        c = rng.integers(len(D)) if r <= gamma else rng.choice(len(D), p=D[labels[i]])
        members = np.flatnonzero(labels == c)
        j = members[rng.integers(len(members))]
        edges.add((min(i, j), max(i, j)))
    return edges


@pytest.mark.parametrize("gamma", [0.0, 0.6])
def test_algorithm_4_listed_draws_what_ours_draws(gamma):
    """Pairs of classes of 1,000 edges, by the listing and by ours, compared by a chi-square test."""
    graph = synthetic(gamma, n=400, n_edges=1000, n_features=0, splits=0, seed=4)
    listed = np.array(sorted(algorithm_4(graph.labels, 1000, D4, gamma, np.random.default_rng(5))))
    counts = []
    for edges in (graph.edges()[0], listed):
        ends = np.sort(graph.labels[edges], axis=1)
        counts.append(np.bincount(4 * ends[:, 0] + ends[:, 1], minlength=16))
    a, b = counts
    assert a.sum() == b.sum() == 1000
    seen = a + b > 0
    assert ((a - b)[seen] ** 2 / (a + b)[seen]).sum() < chdtri(seen.sum() - 1, 0.001)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
def test_exactly_as_many_distinct_edges_as_asked_for(n, seed, share, gamma):
    most = n * (n + 1) // 2 if gamma > 0 else 0
    wanted = int(share * most)
    try:
        graph = synthetic(gamma, n=n, n_edges=wanted, n_features=0, splits=0, seed=seed)
    except ValueError as error:  # classes that drew no node, or pairs with no weight, leave fewer pairs
        assert "pairs to join" in str(error)
        assert wanted > 0
        return
    assert graph.n_edges == wanted


def test_only_pairs_that_the_distributions_allow_are_joined():
    graph = synthetic(0, distributions=np.eye(3)[[1, 2, 0]], n=90, n_edges=500, n_features=0)
    i, j = graph.edges()[0].T
    step = (graph.labels[j] - graph.labels[i]) % 3
    assert set(step.tolist()) == {1, 2}


def test_a_class_that_can_choose_nobody_starts_no_edge():
    """Class 0 may choose class 2 only, which has no node."""
    D = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    for seed in range(200):
        graph = synthetic(0, distributions=D, n=6, n_edges=0, n_features=0, splits=0, seed=seed)
        if set(graph.labels) == {0, 1}:
            graph = synthetic(0, distributions=D, n=6, n_edges=1, n_features=0, splits=0, seed=seed)
            assert set(graph.labels[graph.edges()[0].ravel()]) == {1}


def test_impossible_requests_name_what_is_possible():
    sizes = np.bincount(
        synthetic(0, distributions=np.eye(2), n=10, n_edges=0, n_features=0, seed=3).labels, minlength=2
    )
    possible = sum(s * (s + 1) // 2 for s in sizes)
    full = synthetic(0, distributions=np.eye(2), n=10, n_edges=possible, n_features=0, seed=3)
    assert full.n_edges == possible
    with pytest.raises(ValueError, match=f"only {possible} pairs"):
        synthetic(0, distributions=np.eye(2), n=10, n_edges=possible + 1, n_features=0, seed=3)


@pytest.mark.long
def test_both_ways_of_drawing_follow_the_same_law():
    """Counts of every pair over many draws of 3 edges out of 15, compared by a chi-square test."""
    labels = np.array([0, 0, 1, 1, 2])
    D = np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5], [0.2, 0.3, 0.5]])
    counts = []
    for draw, seed in ((_draw_by_rejection, 1), (_draw_by_race, 2)):
        rng = np.random.default_rng(seed)
        keys = np.concatenate([draw(labels, D, 3, rng) for _ in range(6000)])
        counts.append(np.bincount(keys, minlength=25))
    a, b = counts
    seen = a + b > 0
    statistic = ((a - b)[seen] ** 2 / (a + b)[seen]).sum()
    assert statistic < chdtri(seen.sum(), 0.001)
    # and against the law of one draw: i uniform, class by D, j uniform in it
    sizes, law = np.bincount(labels), np.zeros(25)
    for i in range(5):
        for j in range(5):
            law[min(i, j) * 5 + max(i, j)] += D[labels[i], labels[j]] / sizes[labels[j]] / 5
    rng = np.random.default_rng(3)
    one = np.bincount(np.concatenate([_draw_by_rejection(labels, D, 1, rng) for _ in range(6000)]), minlength=25)
    assert set(np.flatnonzero(one)) <= set(np.flatnonzero(law))
    expected = 6000 * law[law > 0]
    assert ((one[law > 0] - expected) ** 2 / expected).sum() < chdtri((law > 0).sum() - 1, 0.001)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: synthetic(-0.1), ValueError, "gamma"),
        (lambda: synthetic(1.1), ValueError, "gamma"),
        (lambda: synthetic("0"), TypeError, "gamma"),
        (lambda: synthetic(float("nan")), ValueError, "gamma"),
        (lambda: synthetic(0, n=0), ValueError, "n must be at least 1"),
        (lambda: synthetic(0, n=2.5), TypeError, "n must be an integer"),
        (lambda: synthetic(0, n_edges=-1), ValueError, "edges"),
        (lambda: synthetic(0, n_features=-1), ValueError, "features"),
        (lambda: synthetic(0, seed=-1), ValueError, "seed"),
        (lambda: synthetic(0, separation=np.inf), ValueError, "separation"),
        (lambda: synthetic(0, distributions=[[0.5, 0.5]]), ValueError, "square"),
        (lambda: synthetic(0, distributions=D4 * 2), ValueError, "row 0 of distributions sums to 2"),
        (lambda: synthetic(0, distributions=[[2.0, -1.0], [0.5, 0.5]]), ValueError, "not negative"),
        (lambda: synthetic(0, distributions="D4"), ValueError, "square matrix"),
        (lambda: pf.measures.ccns(pf.Graph.from_edges([[0, 1]])), ValueError, "no labels"),
        (lambda: pf.plots.ccns({}), ValueError, "no graphs"),
    ],
)
def test_bad_input_is_answered(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_heat_maps_show_the_numbers():
    """Figure 6: six heat maps."""
    graphs = {f"γ = {gamma}": synthetic(gamma, n_features=0) for gamma in (0, 0.2, 0.4, 0.6, 0.8, 1)}
    figure = pf.plots.ccns(graphs)
    assert [ax.get_title() for ax in figure.axes[:6]] == list(graphs)
    for ax, graph in zip(figure.axes[:6], graphs.values(), strict=True):
        shown = np.array([float(text.get_text()) for text in ax.texts]).reshape(4, 4)
        np.testing.assert_allclose(shown, pf.measures.ccns(graph), atol=0.0051)


def test_the_finest_part_alone_tells_classes_apart():
    """Type a with h = 4 cannot be as bad as the paper's Table I has it at γ = 1 (27.7 %, chance is 25 %), but on SX.

    Neighbours say nothing there, but a node minus its cluster of a few does: one number per node, the mean of its
    finest part, and the majority of the 25 training nodes that are nearest in it.
    """
    graph = synthetic(1.0, n=1200, n_edges=18_000, n_features=50, seed=1)
    system = pf.FrameletSystem(pf.build_tree(graph, "ward", h=4))
    train, _, test = graph.splits[0]

    def accuracy(features):
        part = system.projections(features)[-1].mean(axis=1)
        near = np.abs(part[test][:, None] - part[train]).argpartition(25, axis=1)[:, :25]
        votes = np.stack([(graph.labels[train][near] == k).sum(axis=1) for k in range(4)])
        return (votes.argmax(axis=0) == graph.labels[test]).mean()

    X = graph.features.astype(np.float64)
    assert accuracy(X) > 0.45
    assert accuracy(pf.channels.hop_matrix(graph, "S") @ X) < 0.32
