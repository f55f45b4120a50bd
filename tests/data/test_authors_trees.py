"""Framelet systems on the trees that the paper's authors used."""

import numpy as np
import pytest

import pegfan as pf
from pegfan._npz import read_npz

NAMES = ["actor", "chameleon", "citeseer", "cora", "cornell", "squirrel", "texas", "wisconsin"]


@pytest.fixture(scope="module", params=[f"{name}_h{h}" for name in NAMES for h in (4, 8)])
def labels(request, authors_trees):
    return request.param, read_npz(authors_trees / f"{request.param}.npz")["labels"]


def test_the_trees_are_hierarchies_and_only_texas_h4_lacks_its_root(labels):
    name, levels = labels
    tree = pf.Hierarchy.from_labels(levels)
    assert tree.n == levels.shape[1]
    assert tree.K == len(levels) + (name == "texas_h4")
    assert (levels[-1].max() > 0) == (name == "texas_h4")
    for j, level in enumerate(reversed(levels), start=tree.K - len(levels) + 1):
        pairs = np.unique(np.column_stack([tree.labels(j), level]), axis=0)  # one to one, whatever the numbering
        assert len(pairs) == tree.n_clusters[j - 1] == len(np.unique(level))


@pytest.mark.parametrize("filters", ["binary-haar", "haar-basis"])
@pytest.mark.parametrize("weights", ["equal", "size"])
def test_their_systems_are_tight(labels, filters, weights):
    _, levels = labels
    tree = pf.Hierarchy.from_labels(levels)
    system = pf.FrameletSystem(tree, filters, weights)
    f = np.random.default_rng(0).standard_normal((tree.n, 3))
    for j0 in (1, 2, tree.K - 1):
        c = system.decompose(f, j0)
        np.testing.assert_allclose((c.array**2).sum(axis=0), (f**2).sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(system.reconstruct(c), f, atol=1e-12)
        np.testing.assert_allclose(c.array, system.matrix(j0) @ f, atol=1e-11)
    np.testing.assert_allclose(sum(system.projections(f)), f, atol=1e-12)
    np.testing.assert_allclose(system.frame_bounds(), (1, 1), atol=1e-11)


def test_without_its_root_texas_h4_is_not_tight(authors_trees):
    """Their stored system spans 25 scaling vectors less than the nodes need: rank 159 of 183, as one is kept."""
    levels = read_npz(authors_trees / "texas_h4.npz")["labels"]
    tree = pf.Hierarchy.from_labels(levels)
    system = pf.FrameletSystem(tree)
    assert tree.n_children(1).tolist() == [25]
    kept = np.vstack([system.scaling(2).toarray()[:1], *(system.framelets(j).toarray() for j in range(2, tree.K))])
    assert np.linalg.matrix_rank(kept) == 159
    assert np.linalg.matrix_rank(system.matrix().toarray()) == 183


def test_the_trees_are_permuted_with_their_nodes(labels):
    _, levels = labels
    tree = pf.Hierarchy.from_labels(levels)
    perm = np.random.default_rng(1).permutation(tree.n)
    moved = pf.Hierarchy.from_labels(levels[:, perm])
    assert moved.equivalent(tree.permute(perm))
    f = np.random.default_rng(2).standard_normal(tree.n)
    old, new = pf.FrameletSystem(tree), pf.FrameletSystem(moved)
    for before, after in zip(old.projections(f), new.projections(f[perm]), strict=True):
        np.testing.assert_allclose(after, before[perm], atol=1e-12)
