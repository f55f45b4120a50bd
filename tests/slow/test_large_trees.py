"""Large trees: the compiled transforms against explicit sparse matrices, where memory is streamed for real."""

import numpy as np
import pytest

import pegfan as pf
from support.strategies import random_tree, signal

FAMILIES = [(name, weights) for name in pf.framelets.FAMILIES for weights in ("equal", "size")]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("depth", "most"), [(8, 8), (12, 4), (18, 2), (2, 1000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_signals(family, depth, most, dtype):
    tree = random_tree(depth, depth, most, 50_000)
    system = pf.FrameletSystem(tree, *family)
    f = signal(tree, 0, 64, dtype)
    tolerance = 2e-4 if dtype is np.float32 else 1e-11
    if system.count() * f.itemsize * 64 < 4e9:
        c = system.decompose(f)
        np.testing.assert_allclose(system.reconstruct(c), f, atol=tolerance)
        np.testing.assert_allclose(sum(c.energies()), (f.astype(float) ** 2).sum(), rtol=tolerance)
        if system.nnz() < 2e8:
            np.testing.assert_allclose(c.array[:, :4], system.matrix() @ f[:, :4].astype(float), atol=tolerance)
    np.testing.assert_allclose(sum(system.projections(f)), f, atol=tolerance)


def test_a_million_nodes_are_equivariant():
    tree = random_tree(0, 10, 6, 10**6)
    perm = np.random.default_rng(0).permutation(tree.n)
    f = signal(tree, 1, 2)
    old, new = pf.FrameletSystem(tree), pf.FrameletSystem(tree.permute(perm))
    np.testing.assert_array_equal(new.decompose(f[perm]).array, old.decompose(f).array)
    for a, b in zip(old.projections(f), new.projections(f[perm]), strict=True):
        np.testing.assert_array_equal(b, a[perm])
