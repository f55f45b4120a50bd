"""Frames of several trees: tight, equivariant, for every kind of signal; the seeds of their trees."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pegfan as pf
from support.strategies import random_tree, signal

seeds = st.integers(0, 2**32 - 1)


def weighted_graph(seed, n):
    """Weights that tell all nodes apart, so that trees do not depend on the numbering at all."""
    rng = np.random.default_rng(seed)
    pairs = np.column_stack([rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n)])
    return pf.Graph.from_edges(pairs, rng.random(3 * n) + 0.1, n=n, duplicates="sum")


def frame_of(seed, trees, n=20):
    """A frame of trees that have nothing in common but their nodes."""
    found = [random_tree(seed + k, 3, 4, n) for k in range(trees)]
    return pf.FrameletFrame([pf.FrameletSystem(tree, weights="size") for tree in found if tree.n == found[0].n])


@given(seeds, st.integers(1, 4), st.sampled_from([None, 1, 3]), st.sampled_from([np.float32, np.float64]))
def test_a_frame_is_tight(seed, trees, columns, dtype):
    frame = frame_of(seed, trees)
    f = signal(frame, seed, columns, dtype)
    c, close = frame.decompose(f), {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"atol": 1e-12}
    assert c.shape == (frame.offsets[-1], *f.shape[1:])
    assert c.dtype == frame.reconstruct(c).dtype == dtype
    dense = np.vstack([system.matrix().toarray() for system in frame]) / np.sqrt(len(frame))
    np.testing.assert_allclose(c, dense @ f, **close)
    np.testing.assert_allclose(frame.reconstruct(c), f, **close)
    other = signal(frame, seed + 1, columns, dtype)[np.arange(len(c)) % frame.n]
    np.testing.assert_allclose(frame.reconstruct(other), dense.T @ other, **close)
    np.testing.assert_allclose(frame.norms, np.linalg.norm(dense, axis=1) * np.sqrt(len(frame)), atol=1e-12)


def test_frames_take_every_kind_of_signal():
    frame = frame_of(3, 3)
    f = signal(frame, 0, 2)
    c = frame.decompose(f)
    thin = frame.decompose(sparse.coo_array(f))
    assert sparse.issparse(thin)
    assert sparse.issparse(frame.reconstruct(thin))
    np.testing.assert_allclose(thin.toarray(), c, atol=1e-12)
    np.testing.assert_allclose(frame.reconstruct(thin).toarray(), f, atol=1e-12)
    np.testing.assert_allclose(frame.denoise(sparse.csr_array(f)).toarray(), frame.denoise(f), atol=1e-12)
    assert frame.denoise(f.astype(np.float32)).dtype == np.float32
    x = torch.tensor(f, requires_grad=True)
    np.testing.assert_allclose(frame.decompose(x).detach(), c, atol=1e-12)
    assert torch.autograd.gradcheck(frame.decompose, (x,))
    assert torch.autograd.gradcheck(lambda x: frame.reconstruct(frame.decompose(x) ** 2), (x,))
    np.testing.assert_allclose(frame.denoise(x).detach(), frame.denoise(f), atol=1e-12)
    kept = f.copy()
    frame.reconstruct(c), frame.denoise(f)
    np.testing.assert_array_equal(f, kept)


@given(seeds, st.integers(3, 40))
def test_the_frame_of_a_renumbered_graph_is_the_renumbered_frame(seed, n):
    graph = weighted_graph(seed, n)
    perm = np.random.default_rng(seed).permutation(n)
    frame, moved = (pf.FrameletFrame.of(one, 3) for one in (graph, graph.permute(perm)))
    f = signal(frame, seed)
    if all(system.hierarchy.info["tied"] == 0 for system in frame):
        np.testing.assert_array_equal(moved.decompose(f[perm]), frame.decompose(f))
        np.testing.assert_allclose(moved.denoise(f[perm]), frame.denoise(f)[perm], atol=1e-12)
    np.testing.assert_array_equal(frame.permute(perm).decompose(f[perm]), frame.decompose(f))


def test_seeds_make_other_trees_of_the_same_kind(tmp_path):
    graph = weighted_graph(0, 200)
    perm = np.random.default_rng(1).permutation(200)
    trees = [pf.build_tree(graph, "matching", 2, seed=seed) for seed in range(4)]
    for seed, tree in enumerate(trees):
        assert tree == pf.build_tree(graph, "matching", 2, seed=seed)
        assert pf.build_tree(graph.permute(perm), "matching", 2, seed=seed) == tree.permute(perm)
        assert tree.info.get("seed", 0) == seed
        assert pf.Hierarchy.load(tree.save(tmp_path / f"{seed}.npz")).info.get("seed", 0) == seed
    assert all(one != other for one, other in combinations(trees, 2))
    assert pf.build_tree(graph, "matching", 2) == trees[0]
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        pf.build_tree(graph, seed=-1)


def test_one_tree_in_a_frame_is_its_system():
    system = pf.FrameletSystem(pf.build_tree(weighted_graph(0, 150), h=4), weights="size")
    frame, f = pf.FrameletFrame([system]), signal(system, 0)
    for rule in ("empirical", "block", "sure", "bayes", "universal", 0.3):
        np.testing.assert_allclose(frame.denoise(f, rule), system.denoise(f, rule), atol=1e-12)
    sigma = np.random.default_rng(0).random(system.n)
    np.testing.assert_allclose(frame.denoise(f, sigma=sigma), system.denoise(f, sigma=sigma), atol=1e-12)


def test_more_trees_denoise_better():
    graph = pf.Graph.from_networkx(nx.convert_node_labels_to_integers(nx.grid_2d_graph(24, 24)))
    rng = np.random.default_rng(0)
    clean = np.where(np.arange(576) // 24 < 10, 1.0, -1.0)
    frame = pf.FrameletFrame.of(graph)
    for sigma in (0.1, 0.5):
        noisy = clean + sigma * rng.standard_normal(576)
        errors = [np.mean((one.denoise(noisy) - clean) ** 2) for one in (frame, *frame.systems)]
        assert errors[0] < 0.8 * np.mean(errors[1:])
        assert errors[0] < 0.3 * sigma**2
    np.testing.assert_allclose(frame.denoise(clean), clean, atol=1e-12)


def test_bad_frames_are_refused():
    system, frame = pf.FrameletSystem(random_tree(0, 2, 3, 9)), frame_of(0, 2)
    for call, error, words in (
        (lambda: pf.FrameletFrame([]), ValueError, "at least one system"),
        (lambda: pf.FrameletFrame(system), TypeError, "a list of FrameletSystem"),
        (lambda: pf.FrameletFrame([system, pf.FrameletSystem(random_tree(1, 4, 4, 30))]), ValueError, "the same nodes"),
        (lambda: frame.decompose(np.ones(3)), ValueError, "3 rows"),
        (lambda: frame.reconstruct(np.ones(3)), ValueError, "the coefficient array has 3 rows"),
        (lambda: frame.denoise(np.ones(frame.n), "best"), ValueError, "unknown threshold rule 'best'"),
        (lambda: frame.denoise(np.ones(frame.n), sigma=np.ones(3)), ValueError, "sigma must have the shape"),
    ):
        with pytest.raises(error, match=words):
            call()
