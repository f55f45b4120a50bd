"""Builders and the canonical order: equivariance where it is promised, h kept everywhere, honesty elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import pegfan as pf
from pegfan.trees import BUILDERS, build, canonical, embeddings, linkage
from pegfan.trees.alike import Signals
from pegfan.trees.hierarchy import by_appearance
from pegfan.trees.level import coarsen, first_level
from support.digests import OTHER_MACHINES
from support.graphs import graph_of, random_graph

METHODS = list(BUILDERS)
seeds = st.integers(0, 2**32 - 1)


SYMMETRIC = {
    "cycle": nx.cycle_graph(24),
    "grid": nx.grid_2d_graph(5, 6),
    "torus": nx.grid_2d_graph(5, 5, periodic=True),
    "hypercube": nx.hypercube_graph(5),
    "petersen": nx.petersen_graph(),
    "star": nx.star_graph(17),
    "regular": nx.random_regular_graph(3, 50, seed=1),
    "complete": nx.complete_graph(9),
    "path": nx.path_graph(20),
    "triangles": nx.disjoint_union_all([nx.complete_graph(3)] * 40),
    "mixed": nx.disjoint_union_all([nx.path_graph(4), nx.cycle_graph(5), nx.path_graph(4), nx.empty_graph(7)]),
    "binary tree": nx.balanced_tree(2, 4),
    "edgeless": nx.empty_graph(30),
}


# ---------------------------------------------------------- the canonical order


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_graphs_have_one_canonical_form(name):
    graph = graph_of(SYMMETRIC[name])
    colouring = pf.trees.canonical_order(graph)
    assert colouring.arbitrary == 0
    form = graph.permute(colouring.order).adjacency
    for seed in range(5):
        moved = graph.permute(np.random.default_rng(seed).permutation(graph.n))
        again = pf.trees.canonical_order(moved)
        assert (moved.permute(again.order).adjacency != form).nnz == 0
        assert (again.tied, again.arbitrary) == (colouring.tied, 0)


@given(seeds, st.integers(1, 40), st.floats(0, 4), st.booleans(), st.booleans(), st.booleans())
def test_random_graphs_have_one_canonical_form(seed, n, degree, directed, weighted, features):
    graph = random_graph(seed, n, degree, features, directed, weighted)
    colouring = pf.trees.canonical_order(graph)
    assert sorted(colouring.order) == list(range(n))
    assert colouring.arbitrary == 0
    perm = np.random.default_rng(seed + 1).permutation(n)
    moved = graph.permute(perm)
    again = pf.trees.canonical_order(moved)
    a, b = graph.permute(colouring.order), moved.permute(again.order)
    assert (a.adjacency != b.adjacency).nnz == 0
    np.testing.assert_array_equal(again.classes, colouring.classes[perm])
    if features:
        np.testing.assert_array_equal(a.features, b.features)


def orbits(graph):
    """Classes of nodes that an automorphism takes to each other, by brute force."""
    A = nx.from_numpy_array(graph.adjacency.toarray())
    classes = np.arange(graph.n)
    for mapping in nx.isomorphism.GraphMatcher(A, A).isomorphisms_iter():
        for i, j in mapping.items():
            low, high = sorted((classes[i], classes[j]))
            classes[classes == high] = low
    return classes


@pytest.mark.parametrize("name", ["grid", "petersen", "path", "star", "cycle"])
def test_nodes_of_one_orbit_have_one_class(name):
    graph = graph_of({"star": nx.star_graph(5), "grid": nx.grid_2d_graph(3, 4)}.get(name, SYMMETRIC[name]))
    classes = pf.trees.canonical_order(graph).classes
    for orbit in np.unique(orbits(graph)):
        assert len(np.unique(classes[orbits(graph) == orbit])) == 1


def test_twins_are_told_from_others_and_counted():
    star = graph_of(nx.star_graph(6))
    colouring = pf.trees.canonical_order(star)
    assert (colouring.tied, colouring.symmetric) == (6, 5)
    assert len(np.unique(colouring.classes)) == 2
    lonely = star.replace(features=np.arange(7.0)[:, None])
    assert pf.trees.canonical_order(lonely).tied == 0
    assert pf.trees.canonical_order(lonely.replace(features=None)).tied == 6


def test_direction_and_weights_tell_nodes_apart():
    arcs = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], directed=True)
    assert pf.trees.canonical_order(arcs).tied == 0
    assert pf.trees.canonical_order(arcs.symmetrize()).tied == 4
    weighted = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], [1.0, 1.0, 2.0])
    assert pf.trees.canonical_order(weighted).tied == 0
    noisy = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], [1.0, 1.0, 1.0 + 1e-15])
    assert pf.trees.canonical_order(noisy).tied == 4


def test_what_is_too_large_to_single_out_is_admitted(monkeypatch):
    graph = graph_of(nx.random_regular_graph(3, 40, seed=2))
    monkeypatch.setattr(canonical, "VISITS", 10)
    colouring = pf.trees.canonical_order(graph)
    assert 35 < colouring.arbitrary <= colouring.tied == 40  # all but twins
    assert sorted(colouring.order) == list(range(40))
    assert pf.build_tree(graph, "matching").info["arbitrary"] == colouring.arbitrary


# --------------------------------------------------------------- equivariance


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("h", [2, 4, 8])
@given(seed=seeds, n=st.integers(1, 50), degree=st.floats(0, 5), directed=st.booleans(), weighted=st.booleans())
def test_the_tree_of_a_permuted_graph_is_the_permuted_tree(method, h, seed, n, degree, directed, weighted):
    graph = random_graph(seed, n, degree, True, directed, weighted)
    for direction in ("symmetric", "out", "in") if directed else ("symmetric",):
        tree = pf.build_tree(graph, method, h=h, direction=direction)
        perm = np.random.default_rng(seed).permutation(n)
        assert tree.info["arbitrary"] == tree.info["tied"] == 0
        assert pf.build_tree(graph.permute(perm), method, h=h, direction=direction) == tree.permute(perm)
        assert tree.h <= h


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_graphs_have_one_tree_shape(name, method):
    graph = graph_of(SYMMETRIC[name])
    tree = pf.build_tree(graph, method, h=4)
    assert tree.h <= 4
    for seed in range(4):
        perm = np.random.default_rng(seed).permutation(graph.n)
        other = pf.build_tree(graph.permute(perm), method, h=4)
        assert all(np.array_equal(a, b) for a, b in zip(other.parents, tree.parents, strict=True))
        # the same tree, up to a symmetry of the graph: both put the same graph on the leaves
        assert (graph.permute(perm).permute(other.order).adjacency != graph.permute(tree.order).adjacency).nnz == 0


AVERAGED = ["cycle", "grid", "torus", "hypercube", "petersen", "star", "regular", "path", "triangles", "binary tree"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", AVERAGED)
def test_averaging_over_classes_restores_equality(name, method):
    """Signals that are constant on classes: degrees, and their sums over neighbours."""
    graph = graph_of(SYMMETRIC[name])
    A = graph.adjacency
    degree = np.asarray(A.sum(axis=1)).ravel()
    f = np.column_stack([degree, A @ degree, np.ones(graph.n)])
    perm = np.random.default_rng(3).permutation(graph.n)
    moved = graph.permute(perm)
    old, new = (pf.FrameletSystem(pf.build_tree(g, method, h=4)) for g in (graph, moved))
    classes, moved_classes = (pf.trees.canonical_order(g).classes for g in (graph, moved))
    before, after = old.projections(f, classes=classes), new.projections(f[perm], classes=moved_classes)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(b, a[perm], atol=1e-9)
    np.testing.assert_allclose(sum(before), f, atol=1e-9)


def test_class_means_of_every_kind():
    import torch

    system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    f, classes = np.arange(8.0).reshape(4, 2) ** 2, [0, 1, 1, 1]
    wanted = system.project(f, 1)
    wanted = np.stack([wanted[0], *[wanted[1:].mean(axis=0)] * 3])
    np.testing.assert_allclose(system.project(f, 1, classes=classes), wanted)
    np.testing.assert_allclose(system.project(csr_array(f), 1, classes=classes).toarray(), wanted)
    np.testing.assert_allclose(system.project(torch.tensor(f), 1, classes=classes).numpy(), wanted)
    np.testing.assert_allclose(system.project(f[:, 0], 1, classes=classes), wanted[:, 0])
    for bad in ([0, 1], [0.5] * 4, [-1, 0, 0, 0]):
        with pytest.raises(ValueError, match="classes must hold 4"):
            system.project(f, 1, classes=bad)
    with pytest.raises(ValueError, match="do not go together"):
        system.projections(f, out=[f] * 3, classes=classes)


SCRIPT = """
import pegfan as pf
graph = pf.datasets.synthetic(0.3, n=800, n_edges=4000, n_features=5)
values = {"signals": graph.features[:, 0], "seed": 1}
for method, builder in pf.trees.BUILDERS.items():
    for options in ({}, *({name: values[name]} for name in sorted(builder.takes))):
        print(pf.build_tree(graph, method, h=4, **options).digest)
"""


@pytest.mark.long
def test_other_machines_give_the_same_trees():
    outputs = set()
    for changes in OTHER_MACHINES.values():
        env = {**os.environ, **changes}
        run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=env)
        outputs.add(run.stdout)
    assert len(outputs) == 1
    assert len(set(outputs.pop().split())) == sum(1 + len(builder.takes) for builder in BUILDERS.values())


def test_no_loop_of_the_builders_leaves_its_arithmetic_to_the_compiler():
    """Fast-math would fuse and reorder operations, as the CPU likes it best."""
    flags = (Path(__file__).parents[2] / "src" / "native" / "build.py").read_text()
    assert "-ffp-contract=off" in flags
    assert "fast-math" not in flags


# -------------------------------------------------------------------- builders


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, n=st.integers(1, 80), degree=st.floats(0, 3), h=st.integers(2, 9))
def test_clusters_hold_at_most_h_children_on_every_input(method, seed, n, degree, h):
    graph = random_graph(seed, n, degree, features=False)
    tree = pf.build_tree(graph, method, h=h)
    assert tree.n == n
    assert tree.h <= max(h, 1)
    assert tree.K <= 2 + 3 * np.log2(max(n, 2))  # shallow whatever the graph is
    assert not tree.info["capped"]


@pytest.mark.parametrize("method", METHODS)
def test_cliques_are_clusters(method):
    graph = graph_of(nx.ring_of_cliques(12, 6)).replace(features=np.arange(72.0)[:, None])
    edges, _ = graph.edges()
    bridges = edges[:, 0] // 6 != edges[:, 1] // 6
    graph = pf.Graph.from_edges(edges, np.where(bridges, 0.5, 1.0), features=graph.features)
    tree = pf.build_tree(graph, method, h=6)
    cliques = {frozenset(range(6 * i, 6 * i + 6)) for i in range(12)}
    clusters = {frozenset(tree.cluster_at(tree.K - 1, s).nodes.tolist()) for s in range(tree.n_clusters[-2])}
    assert clusters == cliques


@pytest.mark.parametrize("method", METHODS)
def test_nodes_without_edges_are_gathered(method):
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(39)], n=60)
    tree = pf.build_tree(graph, method, h=4)
    clusters = tree.labels(tree.K - 1)
    assert np.bincount(clusters)[np.unique(clusters[40:])].tolist() == [4] * 5


def test_coarsening_sums_both_directions_between_different_clusters():
    graph = pf.Graph.from_edges([[0, 2], [2, 1], [0, 1], [3, 0], [3, 3]], [1.0, 2.0, 4.0, 8.0, 16.0], directed=True)
    level = first_level(graph, np.arange(4), "symmetric")
    coarse = coarsen(level, np.array([0, 0, 1, 1])).edges.toarray() * 16  # the largest weight counts as one
    np.testing.assert_array_equal(coarse, [[0, 11], [11, 0]])
    swapped = coarsen(level, np.array([1, 1, 0, 0])).edges.toarray() * 16
    np.testing.assert_array_equal(swapped, coarse)  # the printed formula, summing p < q only, would differ


def test_max_levels_widens_the_root_and_says_so():
    graph = random_graph(0, 200, 4.0)
    free = pf.build_tree(graph, "matching", h=2)
    tree = pf.build_tree(graph, "matching", h=2, max_levels=4)
    assert tree.K == 4 < free.K
    assert tree.info["capped"]
    assert tree.branching[0] > 2
    assert max(tree.branching[1:]) <= 2
    assert pf.build_tree(graph, "matching", h=2, max_levels=2).n_clusters == (1, 200)
    assert pf.build_tree(graph, "matching", h=2, max_levels=50) == free


def test_auto_changes_the_method_with_the_size(monkeypatch):
    graph = random_graph(0, 50)
    assert pf.build_tree(graph).info["method"] == "ward"
    monkeypatch.setattr(build, "AUTO_WARD", 49)
    assert pf.build_tree(graph).info["method"] == "matching"


def spectrum(values, seed=0):
    """A symmetric matrix with given eigenvalues, and its eigenvectors."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (Q * np.asarray(values)) @ Q.T, Q


def leading(matrix, count, low=-1.0):
    notes = {}
    found = embeddings.leading_eigenvectors(embeddings._Operator([csr_array(matrix)], low=low), count, notes)
    assert not notes
    return found


@pytest.mark.parametrize("n", [20, 60, 300])
def test_the_leading_eigenvectors_are_found(n):
    matrix, Q = spectrum(np.concatenate([[1.0, 0.8, 0.6], np.linspace(0.2, -0.9, n - 3)]))
    np.testing.assert_allclose(np.abs(np.sum(leading(matrix, 3) * Q[:, :3], axis=0)), 1, atol=1e-6)


def test_a_multiple_eigenvalue_has_all_its_eigenvectors():
    matrix, Q = spectrum(np.concatenate([[1.0] * 7, np.linspace(0.5, -1.0, 193)]))
    found = leading(matrix, 7)
    np.testing.assert_allclose(found.T @ found, np.eye(7), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(Q[:, :7].T @ found, axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_operators_of_low_rank(rank):
    matrix, Q = spectrum(np.concatenate([np.arange(rank, 0, -1.0), np.zeros(100 - rank)]))
    found = leading(matrix, 8, low=0.0)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.abs(np.sum(found[:, :rank] * Q[:, :rank], axis=0)), 1, atol=1e-4)


@given(seeds, st.integers(1, 30), st.sampled_from(["any", "multiple", "low rank", "far apart"]))
def test_small_matrices_are_decomposed_as_by_lapack(seed, n, kind):
    rng = np.random.default_rng(seed)
    values = {
        "any": rng.standard_normal(n),
        "multiple": rng.integers(0, 3, n).astype(float),
        "low rank": np.where(np.arange(n) < n // 3, 1.0 + np.arange(n), 0.0),
        "far apart": 10.0 ** rng.integers(-12, 12, n),
    }[kind]
    matrix, _ = spectrum(values, seed)
    matrix = (matrix + matrix.T) / 2
    found, vectors = embeddings._eigen(matrix)
    size = max(np.abs(values).max(), 1e-300)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(matrix)[::-1], atol=1e-13 * n * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-13 * n)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-12 * n * size)


@given(seeds, st.integers(2, 60), st.integers(1, 8))
def test_twins_have_equal_coordinates(seed, n, copies):
    """Nodes with the same neighbours have the same rows in every embedding, bit for bit."""
    base = random_graph(seed, n, 4.0)
    old = base.adjacency.toarray()
    np.fill_diagonal(old, 0)
    joined = np.flatnonzero(old.sum(axis=0))
    if not len(joined):
        return
    row = old[joined[0]]
    size = n + copies
    A = np.zeros((size, size))
    A[:n, :n] = old
    A[n:, :n], A[:n, n:] = row, row[:, None]
    level = first_level(pf.Graph(A), np.arange(size), "symmetric")
    level = linkage._restrict(level, np.flatnonzero(level.edges.sum(axis=1)))
    twins = np.r_[np.flatnonzero(np.flatnonzero(A.sum(axis=1)) == joined[0]), level.n - copies : level.n]
    for embed in (embeddings.spectral_embedding, embeddings.adjacency_embedding):
        E = embed(level)[twins]
        assert (E == E[0]).all()


@given(seeds)
def test_clusters_sums_are_those_of_scipy(seed):
    graph = random_graph(seed, 60, 6.0)
    level = first_level(graph, np.arange(60), "symmetric")
    level.signals = Signals.of(np.random.default_rng(seed).standard_normal((60, 3)), 1.0)
    labels = by_appearance(np.random.default_rng(seed).integers(7, size=60))
    coarse = coarsen(level, labels)
    C = np.eye(labels.max() + 1)[labels]
    wanted = C.T @ level.edges.toarray() @ C
    np.fill_diagonal(wanted, 0)
    np.testing.assert_allclose(coarse.edges.toarray(), wanted, rtol=1e-12)
    assert coarse.edges.has_canonical_format
    np.testing.assert_allclose(coarse.signals.sums, C.T @ level.signals.sums, atol=1e-12)
    np.testing.assert_array_equal(coarse.signals.counts, C.T @ level.signals.counts)


def test_progress_is_told_and_silent_by_default(capsys):
    told = []
    pf.build_tree(random_graph(0, 100), "matching", progress=told.append)
    assert [step.done for step in told] == [0, *range(len(told) - 1)]
    assert "100 nodes" in str(told[0])
    assert "100 clusters" in str(told[1])
    assert capsys.readouterr() == ("", "")


def test_info_survives_saving(tmp_path):
    tree = pf.build_tree(random_graph(0, 40), "ward", h=4)
    assert pf.Hierarchy.load(tree.save(tmp_path / "t.npz")).info == tree.info


# --------------------------------------------------------------------- quality


def test_quality_by_hand():
    graph = pf.Graph.from_edges(
        [[0, 1], [1, 2], [2, 3], [3, 3]], labels=[0, 0, 1, 1], features=np.array([[1.0], [-1.0], [1.0], [-1.0]])
    )
    table = pf.framelets.quality(graph, pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    assert table.index.tolist() == [1, 2, 3]
    np.testing.assert_allclose(table["edges inside"], [1, 2 / 3, 0])
    np.testing.assert_allclose(table["label energy"], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(table["feature energy"], [0, 1, 0], atol=1e-12)
    assert table["balance"].tolist() == [1, 1, 1]
    assert table["clusters"].tolist() == [1, 2, 4]
    assert table["children"].tolist() == [2, 2, 0]
    with pytest.raises(ValueError, match="5 nodes and the graph 4"):
        pf.framelets.quality(graph, pf.Hierarchy([np.zeros(5, int)]))


def test_a_good_tree_has_its_energy_at_coarse_levels():
    graph = graph_of(nx.connected_caveman_graph(8, 4), labels=np.arange(32) // 4)
    good = pf.framelets.quality(graph, pf.build_tree(graph, "ward", h=4))
    rng = np.random.default_rng(0)
    bad = pf.framelets.quality(
        graph, pf.Hierarchy([np.arange(32) // 4, np.arange(8) // 4, [0, 0]], rng.permutation(32))
    )
    assert good["label energy"].iloc[-2] < 0.1 < bad["label energy"].iloc[-2]
    assert good["edges inside"].iloc[-2] > bad["edges inside"].iloc[-2]


def test_levels_are_drawn_in_nested_colours():
    graph = random_graph(0, 64, 4.0)
    tree = pf.build_tree(graph, "matching", h=4)
    figure = pf.plots.levels(graph, tree)
    assert [ax.get_title() for ax in figure.axes] == [
        f"level {j}: {tree.n_clusters[j - 1]} clusters" for j in range(2, tree.K)
    ]
    for ax, level in zip(figure.axes, range(2, tree.K), strict=True):
        colours = ax.collections[-1].get_array()
        assert len(np.unique(colours)) == tree.n_clusters[level - 1]
        for slot in range(tree.n_clusters[level - 1]):
            assert len(np.unique(colours[tree.labels(level) == slot])) == 1
    with pytest.raises(ValueError, match="belong together"):
        pf.plots.levels(graph, pf.Hierarchy([[0, 0]]))
    for nothing in ([], 2):
        with pytest.raises(ValueError, match="at least one level"):
            pf.plots.levels(graph, tree, levels=nothing)
    with pytest.raises(TypeError, match="by title"):
        pf.plots.ccns([graph])


# ------------------------------------------------------------------- bad input

GRAPH = random_graph(0, 20)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: pf.build_tree(np.eye(3)), TypeError, "Graph.of"),
        (lambda: pf.build_tree(GRAPH, "kmeans"), ValueError, "method must be 'auto', .* got 'kmeans'"),
        (lambda: pf.build_tree(GRAPH, h=1), ValueError, "h must be at least 2"),
        (lambda: pf.build_tree(GRAPH, h=4.0), TypeError, "h must be an integer"),
        (lambda: pf.build_tree(GRAPH, h=None), TypeError, "h must be an integer"),
        (lambda: pf.build_tree(GRAPH, max_levels=1), ValueError, "max_levels"),
        (lambda: pf.build_tree(GRAPH, direction="up"), ValueError, "'out', 'in' or 'symmetric'"),
        (lambda: pf.build_tree(GRAPH, signals=np.ones(20), signal_weight=-1), ValueError, "not negative"),
        (lambda: pf.build_tree(GRAPH, signals=np.ones(20), signal_weight="X"), TypeError, "must be a number"),
    ],
)
def test_bad_input_is_answered(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ------------------------------------------------- graphs that are hard to cluster alike


LOW_RANK = {
    "star": lambda: nx.star_graph(420),
    "bipartite": lambda: nx.complete_bipartite_graph(210, 210),
    "uneven": lambda: nx.complete_bipartite_graph(140, 290),
    "multipartite": lambda: nx.complete_multipartite_graph(*[85] * 5),
}


@pytest.mark.parametrize("name", LOW_RANK)
@pytest.mark.parametrize("method", ["ward", "adjacency"])
def test_eigenvectors_of_low_rank_graphs_are_the_same_every_time(name, method):
    """The start spans everything at once, and vectors that are lost have to be replaced: by fixed ones."""
    graph = graph_of(LOW_RANK[name]())
    tree = pf.build_tree(graph, method)
    assert pf.build_tree(graph, method) == tree
    perm = np.random.default_rng(0).permutation(graph.n)
    other = pf.build_tree(graph.permute(perm), method)
    assert all(np.array_equal(a, b) for a, b in zip(other.parents, tree.parents, strict=True))


def shrikhande():
    steps = [(0, 1), (1, 0), (1, 1), (0, 3), (3, 0), (3, 3)]
    return nx.Graph(((i, j), ((i + a) % 4, (j + b) % 4)) for i in range(4) for j in range(4) for a, b in steps)


def rook():
    return nx.line_graph(nx.complete_bipartite_graph(4, 4))


def test_strongly_regular_components_are_told_apart():
    graph = graph_of(nx.disjoint_union(rook(), shrikhande()))
    colouring = pf.trees.canonical_order(graph)
    assert colouring.arbitrary == 0
    form = graph.permute(colouring.order).adjacency
    for seed in range(5):
        moved = graph.permute(np.random.default_rng(seed).permutation(32))
        assert (moved.permute(pf.trees.canonical_order(moved).order).adjacency != form).nnz == 0


def test_what_colours_cannot_tell_apart_is_not_called_symmetric():
    """Two strongly regular graphs of equal parameters behind one hub: no automorphism swaps them."""
    joined = nx.disjoint_union(rook(), shrikhande())
    joined.add_edges_from(("hub", node) for node in list(joined))
    assert pf.trees.canonical_order(graph_of(joined)).arbitrary > 0


def test_loops_are_not_edges_to_an_equal_node():
    graph = pf.Graph.from_edges([[0, 1], [2, 2]])
    classes = pf.trees.canonical_order(graph).classes
    assert classes[0] == classes[1] != classes[2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1e-200, 1e155, 1e300])
def test_the_unit_of_the_weights_does_not_matter(method, unit):
    graph = random_graph(3, 60, 5.0, weighted=True)
    edges, weights = graph.edges()
    scaled = pf.Graph.from_edges(edges, weights * unit, n=60, features=graph.features)
    assert pf.build_tree(scaled, method).equivalent(pf.build_tree(graph, method))


def test_tiny_weights_still_tell_nodes_apart():
    graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4], [5, 6]], [1e-14, 2e-14, 3e-14, 4e-14, 1.0])
    assert len(np.unique(pf.trees.canonical_order(graph).classes[:5])) == 5


def test_numbers_of_numpy_are_settings_too(tmp_path):
    tree = pf.build_tree(
        GRAPH, h=np.int64(4), max_levels=np.int32(9), signals=GRAPH.features[:, 0], signal_weight=np.float32(1.0)
    )
    assert pf.Hierarchy.load(tree.save(tmp_path / "t.npz")).info == tree.info


def test_an_expensive_look_ahead_stops_at_its_budget(monkeypatch):
    """A long cycle needs n/2 rounds for each of its n nodes."""
    monkeypatch.setattr(canonical, "VISITS", 2_000_000)
    graph = graph_of(nx.cycle_graph(600))
    refiner_visits = []
    original = canonical.Refiner.step

    def counted(self, *args):
        refiner_visits.append(self.arcs)
        return original(self, *args)

    monkeypatch.setattr(canonical.Refiner, "step", counted)
    colouring = pf.trees.canonical_order(graph)
    assert colouring.arbitrary > 0
    assert sum(refiner_visits) < 5_000_000


def test_threads_that_build_at_once_leave_the_thread_limit_alone():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    graphs = [pf.datasets.synthetic(0.1, n=700, n_edges=3000, n_features=0, seed=s) for s in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda g: pf.build_tree(g, "ward"), graphs))
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert together == [pf.build_tree(g, "ward") for g in graphs]
