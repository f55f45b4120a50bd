"""The builder "ward": its embedding, and Ward's linkage."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy

import pegfan as pf
from pegfan.trees import embeddings, linkage
from pegfan.trees.hierarchy import by_appearance, cut_linkage
from pegfan.trees.level import first_level
from support.graphs import random_graph

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(2, 300), st.integers(1, 12))
def test_ward_is_scipys_ward_and_the_cut_is_the_balanced_one(seed, n, dimension):
    points = np.random.default_rng(seed).standard_normal((n, dimension))
    ours, theirs = linkage.ward_linkage(points), hierarchy.linkage(points, "ward")
    np.testing.assert_allclose(ours[:, 2:], theirs[:, 2:], rtol=1e-9)
    for size in (2, 4, 8):
        np.testing.assert_array_equal(*(by_appearance(cut_linkage(Z, size)) for Z in (ours, theirs)))


@pytest.mark.parametrize("points", [np.zeros((50, 3)), np.repeat(np.eye(4), 9, axis=0), np.full((5, 2), 1e200)])
def test_ward_with_equal_points_and_overflow(points):
    with np.errstate(all="ignore"):
        Z = linkage.ward_linkage(points)
    assert sorted(Z[:, :2].ravel()) == list(range(2 * len(points) - 2))
    assert Z[-1, 3] == len(points)
    if points.max() == 1:
        copies = by_appearance(cut_linkage(Z, 9))
        assert copies.tolist() == np.repeat(np.arange(4), 9).tolist()


def test_equal_points_join_in_pairs():
    """One by one they would leave a cluster of h and many single ones."""
    labels = cut_linkage(linkage.ward_linkage(np.zeros((64, 2))), 8)
    assert np.bincount(by_appearance(labels)).tolist() == [8] * 8


def test_ctrl_c_reaches_a_compiled_loop():
    import signal
    import threading
    import time

    started, told = threading.Event(), threading.Event()

    def kernel(stop):
        started.set()
        for _ in range(1000):  # ten seconds at most
            if stop[0]:
                return told.set()
            time.sleep(0.01)
        return None

    def interrupt():
        started.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # as the terminal does

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        linkage._interruptible(kernel)
    assert told.wait(5)


@pytest.mark.parametrize("n", [60, 900])
def test_the_spectral_embedding_is_its_definition(n, monkeypatch):
    monkeypatch.setattr(embeddings, "_TOLERANCE", 1e-10)
    graph = pf.datasets.synthetic(0.2, n=n, n_edges=5 * n, n_features=0).largest_component()
    level = first_level(graph, np.arange(graph.n), "symmetric")
    E = embeddings.spectral_embedding(level, 3)
    A = level.edges.toarray()
    degree = A.sum(axis=1)
    scaled = A / np.sqrt(np.outer(degree, degree))
    values, vectors = np.linalg.eigh(scaled)
    wanted = (vectors / np.sqrt(degree)[:, None])[:, ::-1][:, 1:4]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(E), np.abs(wanted), atol=1e-6)  # signs of eigenvectors are free
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), 1)
    assert values[-2] - values[-5] > 1e-6


def test_the_directed_embedding_is_that_of_rows_of_the_bipartite_graph(monkeypatch):
    monkeypatch.setattr(embeddings, "_TOLERANCE", 1e-10)
    graph = random_graph(5, 40, 6.0, directed=True)
    level = first_level(graph, np.arange(40), "out")
    E = embeddings.spectral_embedding(level, 2)
    A = level.arcs.toarray()
    B = np.block([[np.zeros_like(A), A], [A.T, np.zeros_like(A)]])
    components = nx.number_connected_components(nx.from_numpy_array(B))
    B = B + (1 / len(B) if components > 1 else 0.0)
    d = 1 / np.sqrt(B.sum(axis=1))
    vectors = np.linalg.eigh(d[:, None] * B * d)[1][:, ::-1][:, 1:3] * d[:, None]
    wanted = vectors[:40] / np.linalg.norm(vectors[:40], axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(E), np.abs(wanted), atol=1e-8)


def test_eigenvectors_that_are_not_found_in_time_are_told(monkeypatch):
    graph = pf.datasets.synthetic(0.0, n=900, n_edges=9000, n_features=0)
    assert "eigenvectors" not in pf.build_tree(graph, "ward", h=8).info
    monkeypatch.setattr(embeddings, "_ROUNDS", 1)
    tree = pf.build_tree(graph, "ward", h=8)
    assert "no better in 1 rounds" in tree.info["eigenvectors"]
    perm = np.random.default_rng(0).permutation(900)
    assert pf.build_tree(graph.permute(perm), "ward", h=8) == tree.permute(perm)
