"""The promise of `build_tree`, as one check; graphs with symmetric nodes; comparisons to the last bit."""

import numpy as np
from hypothesis import strategies as st

import pegfan as pf


def check_equivariance(graph, method, h, options, perms):
    """The promise of `build_tree`, on one graph."""
    tree = pf.build_tree(graph, method, h=h, **options)
    assert tree.h <= h
    assert tree.info["arbitrary"] == 0
    colouring = pf.trees.canonical_order(graph)
    system = pf.FrameletSystem(tree)
    X = graph.features
    X = X[:, :20].toarray() if hasattr(X, "toarray") else X[:, :20]
    signals = np.column_stack([X, graph.adjacency @ X])
    before = system.projections(signals, classes=colouring.classes)
    np.testing.assert_allclose(sum(before), signals, atol=1e-9)
    for seed in perms:
        perm = np.random.default_rng(seed).permutation(graph.n)
        moved = graph.permute(perm)
        other = pf.build_tree(moved, method, h=h, **options)
        if tree.info["tied"] == 0:
            assert other == tree.permute(perm)
        assert all(np.array_equal(a, b) for a, b in zip(other.parents, tree.parents, strict=True))
        after = pf.FrameletSystem(other).projections(signals[perm], classes=colouring.classes[perm])
        for a, b in zip(before, after, strict=True):
            np.testing.assert_allclose(b, a[perm], atol=1e-9)


@st.composite
def graphs(draw, weighted=(False, True), features=("ones", "few", "random")):
    """Small graphs with labels and a split: twins, copies, stars, paths, random ones; many nodes look alike."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    shape = draw(st.sampled_from(["random", "twins", "copies", "star", "path"]), label="shape")
    n = draw(st.integers(6, 12), label="nodes")
    a = np.triu(rng.random((n, n)) < 0.3, 1).astype(float)
    if shape in ("star", "path"):
        a = np.zeros((n, n))
        a[(0,) * (n - 1) if shape == "star" else np.arange(n - 1), np.arange(1, n)] = 1
    a *= rng.random((n, n)) if draw(st.sampled_from(weighted), label="weighted") else 1
    if shape == "twins":
        a[:, n // 2 :] = a[:, n // 2 - 1 :][:, [0]]
        a[n // 2 :] = 0
    directed = draw(st.booleans(), label="directed")
    a = np.where(rng.random((n, n)) < 0.5, a, a.T) if directed and shape == "random" else a if directed else a + a.T
    a = np.kron(np.eye(2), a) if shape == "copies" else a
    n = len(a)
    kind = draw(st.sampled_from(features), label="features")
    X = {"ones": np.ones((n, 2)), "few": rng.integers(0, 2, (n, 3)) * 0.1, "random": rng.random((n, 3))}[kind]
    X = np.vstack([X[: n // 2]] * 2) if shape == "copies" and rng.random() < 0.5 else X
    parts = np.split(rng.permutation(n), [n // 2, 3 * n // 4])
    labels = rng.integers(0, 2, n)
    labels[parts[0][:2]] = 0, 1
    return pf.Graph(a, directed=directed, features=X, labels=labels, splits=[tuple(map(np.sort, parts))])


def same_bits(one, other):
    """Whether two results are the same to the last bit, sparse or not."""
    one, other = (m.toarray() if hasattr(m, "toarray") else np.asarray(m) for m in (one, other))
    return one.dtype == other.dtype and np.array_equal(one, other)


def assert_same_run(one, other):
    """Two trainings that went the same way, bit for bit."""
    assert all(same_bits(one.state[name], other.state[name]) for name in one.state | other.state)
    assert (one.epochs, one.best_epoch) == (other.epochs, other.best_epoch)
    for name in one.history or ():
        assert np.array_equal(one.history[name], other.history[name], equal_nan=True), name
    ends = ("val_loss", "val_metric", "test_metric")
    assert np.array_equal(*([getattr(run, name) for name in ends] for run in (one, other)), equal_nan=True)
