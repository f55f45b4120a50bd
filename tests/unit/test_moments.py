"""Framelets with vanishing moments: an orthonormal basis that ignores constants and coordinates."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pegfan as pf
from pegfan.framelets import MomentSystem
from support.strategies import random_tree, signal, trees

seeds = st.integers(0, 2**32 - 1)


def coordinates_of(tree, seed, columns):
    """Numbers of any kind, some of them equal on whole clusters, some columns of others' making."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((tree.n, columns)) * 10.0 ** rng.integers(-3, 4, columns)
    return np.round(x) if seed % 3 == 0 else x


@given(trees(), seeds, st.integers(0, 3))
def test_an_orthonormal_basis_that_ignores_constants_and_coordinates(tree, seed, columns):
    x = coordinates_of(tree, seed, columns)
    system = MomentSystem(tree, x)
    F = system.matrix().toarray()
    assert F.shape == (tree.n, tree.n) == (system.count(), system.n)
    np.testing.assert_allclose(F @ F.T, np.eye(tree.n), atol=1e-9)
    framelets = F[system.offsets()[1] :]
    assert np.abs(framelets @ np.ones(tree.n)).max(initial=0.0) < 1e-9 * tree.n
    for column in x.T:
        assert np.abs(framelets @ column).max(initial=0.0) < 1e-8 * max(np.abs(column).max(), 1e-300) * tree.n
    assert system.offsets()[1] <= 1 + columns
    low, high = system.frame_bounds()
    assert 1 - 1e-9 < low <= high < 1 + 1e-9


@given(trees(), seeds, st.sampled_from([None, 2]), st.sampled_from([np.float32, np.float64]))
def test_transforms_equal_the_matrix(tree, seed, columns, dtype):
    system = MomentSystem(tree, coordinates_of(tree, seed, 2))
    f = signal(tree, seed, columns, dtype)
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype == np.float32 else {"atol": 1e-10}
    for j0 in {1, 1 + seed % tree.K, tree.K}:
        c = system.decompose(f, j0)
        assert c.array.dtype == dtype
        np.testing.assert_allclose(c.array, system.matrix(j0) @ f, **close)
        np.testing.assert_allclose(system.reconstruct(c), f, **close)
        again = system.decompose(f, j0, out=np.empty_like(c.array))
        np.testing.assert_array_equal(again.array, c.array)
        np.testing.assert_array_equal(system.reconstruct(c, out=np.empty_like(f)), system.reconstruct(c))
    parts = system.projections(f)
    np.testing.assert_allclose(sum(parts), f, **close)
    for here, there in zip(parts, system.projections(f, out=[np.empty_like(f) for _ in parts]), strict=True):
        np.testing.assert_array_equal(here, there)
    if dtype == np.float64:
        psi = [system.scaling(1), *(system.framelets(j) for j in range(1, tree.K))]
        for part, rows in zip(parts, psi, strict=True):
            np.testing.assert_allclose(part, rows.T @ (rows @ f), atol=1e-10)
        variance = np.abs(signal(tree, seed))
        np.testing.assert_allclose(system.variances(variance), system.matrix().power(2) @ variance)


def test_a_signal_that_is_linear_in_pieces_is_sparse():
    tree = pf.Hierarchy([np.arange(2**j) // 2 for j in range(8, 0, -1)])
    x = np.linspace(0, 1, 256)
    f = np.where(np.arange(256) < 64, 3 * x, 1 - x)
    counts = [
        np.count_nonzero(np.abs(s.decompose(f).array) > 1e-9) for s in (MomentSystem(tree, x), pf.FrameletSystem(tree))
    ]
    assert counts == [6, 256]
    noisy = np.sin(6 * x)[:, None] + 0.2 * np.random.default_rng(0).standard_normal((256, 6))
    errors = [
        np.mean((s.denoise(noisy) - np.sin(6 * x)[:, None]) ** 2)
        for s in (MomentSystem(tree, x), pf.FrameletSystem(tree))
    ]
    assert errors[0] < 0.75 * errors[1]


def test_every_kind_of_signal_and_frames():
    tree = random_tree(2, 3, 4, 30)
    system = MomentSystem(tree, np.arange(tree.n))
    f = signal(tree, 0, 2)
    c = system.decompose(f)
    thin = system.decompose(sparse.csr_array(f))
    np.testing.assert_allclose(thin.array.toarray(), c.array, atol=1e-12)
    np.testing.assert_allclose(system.reconstruct(thin).toarray(), f, atol=1e-12)
    x = torch.tensor(f, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: system.reconstruct(system.decompose(x)) ** 2, (x,))
    for rule in pf._defaults.RULES:
        np.testing.assert_allclose(system.denoise(x, rule).detach(), system.denoise(f, rule), atol=1e-12)
    frame = pf.FrameletFrame([system, pf.FrameletSystem(tree)])
    np.testing.assert_allclose(frame.reconstruct(frame.decompose(f)), f, atol=1e-12)
    perm = np.random.default_rng(0).permutation(tree.n)
    moved = system.permute(perm)
    np.testing.assert_array_equal(moved.decompose(f[perm]).array, c.array)
    assert moved == MomentSystem(tree.permute(perm), np.arange(tree.n)[perm])
    assert moved != system
    assert system != pf.FrameletSystem(tree)
    assert "1 coordinates" in repr(system)


def test_bad_coordinates_are_refused():
    tree = random_tree(0, 2, 3, 9)
    for given_, error, words in (
        (np.ones(3), ValueError, f"one row per node, {tree.n} of them; got shape"),
        (np.full(tree.n, np.nan), ValueError, "finite, and hold nan"),
        (["a"] * tree.n, TypeError, "real numbers"),
        (np.ones((tree.n, 1, 1)), ValueError, "one row per node"),
    ):
        with pytest.raises(error, match=words):
            MomentSystem(tree, given_)
    with pytest.raises(TypeError, match="stands on a Hierarchy, got list"):
        MomentSystem([[0, 1]], np.ones(2))
