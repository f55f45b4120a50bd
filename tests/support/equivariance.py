"""The promise of `build_tree`, as one check."""

import numpy as np

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
