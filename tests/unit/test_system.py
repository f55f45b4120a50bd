"""FrameletSystem as its users meet it: kinds of signals, operators, coefficients, shrinkage, bad input."""

import builtins
import importlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

import pegfan as pf
from pegfan._arrays import aligned
from pegfan.framelets import _kernels, _transforms
from pegfan.framelets._transforms import CompiledTransforms, Transforms
from support.strategies import admissible, random_tree, signal, trees
from support.twins import same_as_twin

FAMILIES = [(name, weights) for name in pf.framelets.FAMILIES for weights in ("equal", "size")]
families = st.sampled_from(FAMILIES)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture
def system():
    return pf.FrameletSystem(random_tree(1, 3, 4, 30))


# ------------------------------------------------------------ kinds of signals


@given(trees(), families, seeds)
def test_sparse_signals(tree, family, seed):
    system = pf.FrameletSystem(tree, *family)
    f = sparse.random_array((tree.n, 5), density=0.2, rng=np.random.default_rng(seed), format="coo")
    c = system.decompose(f)
    assert sparse.issparse(c.array)
    np.testing.assert_allclose(c.array.toarray(), system.decompose(f.toarray()).array, atol=1e-12)
    back = system.reconstruct(c)
    assert sparse.issparse(back)
    np.testing.assert_allclose(back.toarray(), f.toarray(), atol=1e-12)
    for part, dense in zip(system.projections(f), system.projections(f.toarray()), strict=True):
        assert sparse.issparse(part)
        np.testing.assert_allclose(part.toarray(), dense, atol=1e-12)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.lil_array, sparse.dia_array])
def test_every_sparse_format(system, make):
    f = np.diag(np.arange(1.0, system.n + 1))
    np.testing.assert_allclose(system.decompose(make(f)).array.toarray(), system.matrix() @ f, atol=1e-12)


@given(trees(), families, seeds, st.sampled_from([None, 1, 4]))
def test_torch_signals(tree, family, seed, columns):
    system = pf.FrameletSystem(tree, *family)
    f = signal(tree, seed, columns)
    c = system.decompose(torch.tensor(f))
    assert isinstance(c.array, torch.Tensor)
    np.testing.assert_allclose(c.array.numpy(), system.decompose(f).array, atol=1e-12)
    np.testing.assert_allclose(system.reconstruct(c).numpy(), f, atol=1e-12)
    for part, wanted in zip(system.projections(torch.tensor(f)), system.projections(f), strict=True):
        np.testing.assert_allclose(part.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_flow_and_can_be_differentiated_again(family):
    tree = random_tree(5, 2, 3, 8)
    system = pf.FrameletSystem(tree, *family)
    x = torch.randn(tree.n, 2, dtype=torch.float64, requires_grad=True)
    maps = [
        lambda f: system.decompose(f).array,
        lambda f: system.reconstruct([*system.decompose(f)]),
        lambda f: system.project(f, 1),
        lambda f: sum(part**2 for part in system.projections(f)),
        lambda f: system.operator("framelets", 2) @ f,
        lambda f: system.denoise(f, 0.1),
    ]
    for transform in maps:
        assert torch.autograd.gradcheck(transform, (x,))
        assert torch.autograd.gradgradcheck(transform, (x,))


def test_gradient_is_the_transpose(system):
    x = torch.randn(system.n, dtype=torch.float64, requires_grad=True)
    y = torch.randn(system.count(), dtype=torch.float64)
    (system.decompose(x).array @ y).backward()
    np.testing.assert_allclose(x.grad.numpy(), system.matrix().T @ y.numpy(), atol=1e-12)


@given(trees(), families, seeds)
def test_the_path_for_other_devices_equals_the_compiled_one(tree, family, seed):
    """What tensors on an accelerator go through, run here on the CPU."""
    system = pf.FrameletSystem(tree, *family)
    x = torch.tensor(signal(tree, seed, 3))
    products, compiled = system._transforms(x), system._transforms(x.numpy())
    assert (type(products), type(compiled)) == (Transforms, CompiledTransforms)
    for j0 in range(1, tree.K + 1):
        c = products.decompose(x, j0)
        np.testing.assert_allclose(c.numpy(), compiled.decompose(x.numpy(), j0), atol=1e-12)
        np.testing.assert_allclose(products.reconstruct(c, j0).numpy(), x.numpy(), atol=1e-12)
    for j in range(tree.K):
        np.testing.assert_allclose(products.projections(x, [j])[0], compiled.projections(x.numpy(), [j])[0], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_floats_keep_their_precision(system, dtype, family):
    system = pf.FrameletSystem(system.hierarchy, *family)
    f = signal(system.hierarchy, 0, 3, dtype)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for kind in (np.asarray, sparse.csr_array, torch.tensor):
        c = system.decompose(kind(f))
        results = [c.array, system.reconstruct(c), *system.projections(kind(f))]
        assert {str(result.dtype).removeprefix("torch.") for result in results} == {np.dtype(dtype).name}
        back = results[1].toarray() if sparse.issparse(results[1]) else np.asarray(results[1])
        np.testing.assert_allclose(back, f, atol=tolerance)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16])
def test_other_numbers_become_floats(system, dtype):
    f = (np.arange(system.n) % 2).astype(dtype)
    assert system.decompose(f).array.dtype == (np.float32 if dtype is np.float16 else np.float64)
    np.testing.assert_allclose(system.reconstruct(system.decompose(f)), f.astype(float), atol=1e-6)
    assert system.decompose(torch.tensor(np.arange(system.n))).array.dtype == torch.float64


@pytest.mark.parametrize("view", [np.asfortranarray, lambda f: f[:, ::-1], lambda f: np.repeat(f, 2, axis=0)[::2]])
def test_memory_layout_does_not_matter(system, view):
    f = view(signal(system.hierarchy, 0, 4))
    np.testing.assert_allclose(system.decompose(f).array, system.matrix() @ f, atol=1e-12)
    np.testing.assert_allclose(system.projections(f)[1], system.project(np.ascontiguousarray(f), 1), atol=1e-12)


@given(trees(), seeds, st.sampled_from([np.float32, np.float64]), st.sampled_from([1, 3, 8, 16, 21]), st.booleans())
def test_loops_in_c_equal_their_twins(tree, seed, dtype, columns, streaming):
    """With stores past the caches too, in tree order and any other, from every level."""
    streaming = streaming and columns % 16 == 0
    for order in (tree.order, np.arange(tree.n)) if tree.K > 1 else ():
        moves = CompiledTransforms(pf.FrameletSystem(tree)._levels, order, np.dtype(dtype))
        f = signal(tree, seed, columns, dtype) * dtype(10.0 ** np.random.default_rng(seed).integers(-30, 30))
        for j0 in range(1, tree.K):
            table, count, most = moves._plan(j0)
            c, back = aligned((count, columns), np.dtype(dtype)), aligned(f.shape, np.dtype(dtype))
            work = np.empty((most, columns), dtype), np.empty(2 * len(table), np.int64)
            args = (*moves._chain, table, f, moves._rows, c, *work, streaming)
            c = same_as_twin(_kernels.decompose, *args, scratch=(6, 7))[5]
            same_as_twin(
                _kernels.reconstruct, *moves._chain, table, c, back, moves._rows, *work, streaming, scratch=(6, 7)
            )
        level = moves.levels[-1]
        up = np.zeros((len(level.n_children), columns), dtype)
        up = same_as_twin(_kernels.average, level.first, moves._p[-1], f, moves._rows, up)[4]
        leaf, weight = np.arange(tree.n + 1), np.random.default_rng(seed).random(tree.n).astype(dtype)
        parents = (level.first, moves._p[-1], leaf, weight, f, moves._rows, up)
        same_as_twin(_kernels.detail, *parents, back, moves._rows, streaming)
        same_as_twin(_kernels.lift, level.first, weight, up, back, moves._rows, streaming)


def test_large_signals_are_streamed_and_equal(monkeypatch):
    """Stores that go past the caches give the bits that ordinary ones give."""
    tree = random_tree(2, 6, 5, 800)
    for columns, dtype in ((16, np.float32), (8, np.float64), (64, np.float32)):
        for t in (tree, tree.permute(tree.order)):
            system, f = pf.FrameletSystem(t), signal(t, 0, columns, dtype)
            plain = [system.decompose(f).array, system.reconstruct(system.decompose(f)), *system.projections(f)]
            monkeypatch.setattr(_transforms, "_STREAMED_BYTES", 0)
            assert _transforms.streams(aligned((10, columns), np.dtype(dtype)), scattered=True)
            streamed = [system.decompose(f).array, system.reconstruct(system.decompose(f)), *system.projections(f)]
            monkeypatch.undo()
            for a, b in zip(plain, streamed, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-6 if dtype is np.float32 else 1e-14)


def test_zero_columns(system):
    assert system.decompose(np.empty((system.n, 0))).array.shape == (system.count(), 0)
    assert system.projections(np.empty((system.n, 0)))[1].shape == (system.n, 0)


# ------------------------------------------------------- writing into arrays


@given(trees(), families, st.sampled_from([None, 3]))
def test_results_can_be_written_into_arrays(tree, family, columns):
    system = pf.FrameletSystem(tree, *family)
    f = signal(tree, 0, columns)
    for j0 in range(1, tree.K + 1):
        c = system.decompose(f, j0)
        target = np.full_like(c.array, np.nan)
        assert system.decompose(f, j0, out=target).array is target
        np.testing.assert_array_equal(target, c.array)
        again = system.decompose(2 * f, j0, out=c)
        assert again.array is c.array
        back = np.full_like(f, np.nan)
        assert system.reconstruct(again, out=back) is back
        np.testing.assert_allclose(back, 2 * f, atol=1e-12)
    targets = [np.full_like(f, np.nan) for _ in range(tree.K)]
    assert all(a is b for a, b in zip(system.projections(f, out=targets), targets, strict=True))
    np.testing.assert_allclose(sum(targets), f, atol=1e-12)


# ---------------------------------------------------------------- operators

KINDS = ["analysis", "scaling", "framelets", "projection"]


def dense_twin(system, kind, j):
    if kind == "analysis":
        return system.matrix(j).toarray()
    if kind == "scaling" or j == 0:
        phi = system.scaling(max(j, 1)).toarray()
        return phi if kind == "scaling" else phi.T @ phi
    psi = system.framelets(j).toarray()
    return psi if kind == "framelets" else psi.T @ psi


@pytest.mark.parametrize("kind", KINDS)
@given(tree=trees(20), family=families, seed=seeds)
def test_operators_equal_their_dense_twins(kind, tree, family, seed):
    system = pf.FrameletSystem(tree, *family)
    levels = {"analysis": range(1, tree.K + 1), "scaling": range(1, tree.K + 1), "framelets": range(1, tree.K)}
    rng = np.random.default_rng(seed)
    for j in levels.get(kind, range(tree.K)):
        operator, dense = system.operator(kind, j), dense_twin(system, kind, j)
        assert isinstance(operator, LinearOperator)
        assert operator.shape == dense.shape
        x, y = rng.standard_normal((tree.n, 3)), rng.standard_normal((len(dense), 3))
        np.testing.assert_allclose(operator @ x, dense @ x, atol=1e-12)
        np.testing.assert_allclose(operator @ x[:, 0], dense @ x[:, 0], atol=1e-12)
        np.testing.assert_allclose(operator.matvec(x[:, 0]), dense @ x[:, 0], atol=1e-12)
        np.testing.assert_allclose(operator.T @ y, dense.T @ y, atol=1e-12)
        np.testing.assert_allclose(operator.rmatvec(y[:, 0]), dense.T @ y[:, 0], atol=1e-12)
        np.testing.assert_allclose((operator @ sparse.csr_array(x)).toarray(), dense @ x, atol=1e-12)
        np.testing.assert_allclose((operator @ torch.tensor(x)).numpy(), dense @ x, atol=1e-12)
        assert (operator.T.T @ x).tolist() == (operator @ x).tolist()
        if len(dense):
            assert pf.adjoint_test(operator) < 1e-12
            assert pf.adjoint_test(operator.T) < 1e-12


def test_operators_work_with_scipy(system):
    F = system.operator("analysis")
    np.testing.assert_allclose((F.T @ F) @ np.ones(system.n), 1, atol=1e-12)
    np.testing.assert_allclose(svds(F, k=3, return_singular_vectors=False, rng=0), 1, atol=1e-9)
    assert repr(system.operator("framelets", 2)) == f"<{system.framelets(2).shape[0]}×{system.n} operator Ψ_2>"
    assert "Φ_1ᵀ" in repr(system.operator("scaling", 1).T)


def test_the_adjoint_test_can_fail():
    wrong = LinearOperator((2, 2), matvec=lambda x: x, rmatvec=lambda y: 2 * y, dtype=float)
    with pytest.raises(ValueError, match="must agree"):
        pf.adjoint_test(wrong)


# -------------------------------------------------------------- coefficients


def test_coefficients_come_coarse_to_fine_and_share_one_array(system):
    f = signal(system.hierarchy, 0)
    c = system.decompose(f, j0=2)
    assert len(c) == system.K - 1
    np.testing.assert_allclose(c[0], system.scaling(2) @ f)
    np.testing.assert_allclose(c.scaling, c[0])
    for j in range(2, system.K):
        np.testing.assert_allclose(c.framelets(j), system.framelets(j) @ f, atol=1e-12)
        np.testing.assert_allclose(c[j - 1], c.framelets(j))
    np.testing.assert_array_equal(np.concatenate(list(c)), c.array)
    c[-1][:] = 0
    assert not c.array[system.offsets(2)[-2] :].any()
    np.testing.assert_array_equal(c[1:][0], c[1])
    with pytest.raises(IndexError):
        c[len(c)]
    assert repr(c).startswith("Coefficients(j0=2, [")


@given(trees(), families, seeds)
def test_coefficients_flatten_to_and_from_one_array(tree, family, seed):
    system = pf.FrameletSystem(tree, *family)
    f = signal(tree, seed, 2)
    for j0 in range(1, tree.K + 1):
        c = system.decompose(f, j0)
        np.testing.assert_allclose(system.reconstruct(c.replace(c.array.copy())), f, atol=1e-12)
        np.testing.assert_allclose(system.reconstruct(list(c)), f, atol=1e-12)


def test_a_list_of_parts_of_every_kind(system):
    f = signal(system.hierarchy, 0, 2)
    for kind in (sparse.csr_array, torch.tensor):
        back = system.reconstruct(list(system.decompose(kind(f))))
        np.testing.assert_allclose(back.toarray() if sparse.issparse(back) else back, f, atol=1e-12)


def test_equal_systems_share_coefficients_and_others_do_not(system):
    tree = system.hierarchy
    c = system.decompose(signal(tree, 0))
    twin = pf.FrameletSystem(pf.Hierarchy(tree.parents, tree.order))
    np.testing.assert_allclose(twin.reconstruct(c), system.reconstruct(c))
    swapped = tree.permute(np.roll(np.arange(tree.n), 1))
    for other in (pf.FrameletSystem(swapped), pf.FrameletSystem(tree, weights="size")):
        assert other != system
        with pytest.raises(ValueError, match="another tree"):
            other.reconstruct(c)
    assert system != 3


# ------------------------------------------------------------ users' filters


@given(trees(24), seeds)
def test_filters_by_function_table_and_cluster(tree, seed):
    rng = np.random.default_rng(seed)
    table = {L: admissible(rng, L, 1) for L in range(2, tree.h + 1)}
    by_table, by_function = pf.FrameletSystem(tree, table), pf.FrameletSystem(tree, lambda L: table[L])
    f = signal(tree, seed, 2)
    np.testing.assert_array_equal(by_table.matrix().toarray(), by_function.matrix().toarray())
    for system in (by_table, by_function):
        np.testing.assert_allclose(system.reconstruct(system.decompose(f)), f, atol=1e-12)
        np.testing.assert_allclose(sum(system.projections(f)), f, atol=1e-12)


def test_filters_for_one_cluster():
    tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    p = np.array([0.6, 0.8])
    system = pf.FrameletSystem(tree, {2: pf.binary_haar(2), (1, 2): (p, [[0.8, -0.6]])})
    np.testing.assert_allclose(system.scaling(2).toarray(), [[0.5**0.5] * 2 + [0, 0], [0, 0, 0.6, 0.8]])
    np.testing.assert_allclose(system.framelets(2).toarray()[1], [0, 0, 0.8, -0.6])
    f = np.arange(4.0)
    np.testing.assert_allclose(system.reconstruct(system.decompose(f)), f, atol=1e-15)
    np.testing.assert_allclose(sum(system.projections(f)), f, atol=1e-15)


def test_a_table_must_cover_every_cluster_but_no_more():
    tree = pf.Hierarchy.from_nested([[0, 1], [2, 3, 4]])
    with pytest.raises(ValueError, match="no filters for clusters with 2 children"):
        pf.FrameletSystem(tree, {3: pf.binary_haar(3)})
    covered = pf.FrameletSystem(tree, {2: pf.binary_haar(2), (1, 2): pf.haar_basis(3)})
    assert covered.count() == 1 + 1 + 1 + 2


# ----------------------------------------------------------------- shrinkage


def noisy_steps(seed=0):
    tree = pf.Hierarchy([np.arange(4**j) // 4 for j in range(5, 0, -1)])
    rng = np.random.default_rng(seed)
    clean = np.repeat(rng.choice([-2.0, 0.0, 1.0, 4.0], 16), tree.n // 16)
    return tree, clean, clean + 0.5 * rng.standard_normal(tree.n)


@pytest.mark.parametrize("rule", ["universal", "sure", "bayes"])
@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("family", FAMILIES)
def test_denoising_removes_most_of_the_noise(rule, mode, family):
    tree, clean, noisy = noisy_steps()
    result = pf.FrameletSystem(tree, *family).denoise(noisy, rule, mode)
    assert np.mean((result - clean) ** 2) < 0.5 * np.mean((noisy - clean) ** 2)


@pytest.mark.parametrize("rule", ["empirical", "block"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rules_without_a_threshold_remove_most_of_the_noise(rule, family):
    tree, clean, noisy = noisy_steps()
    system = pf.FrameletSystem(tree, *family)
    worth = np.mean((system.denoise(noisy, rule) - clean) ** 2)
    assert worth < 0.15 * np.mean((noisy - clean) ** 2)
    assert worth < np.mean((system.denoise(noisy, "sure") - clean) ** 2)


def generated_signals():
    """Steps, a slope, a wave, spikes on it, and noise of its own, on trees of a line; all of unit variance."""
    n = 512
    tree = pf.Hierarchy([np.arange(2**j) // 2 for j in range(9, 0, -1)])
    rng, x = np.random.default_rng(5), np.linspace(0.0, 1.0, n)
    wave = np.sin(9 * x)
    spikes = wave + 4.0 * (rng.random(n) < 0.03)
    for f in (np.repeat(rng.standard_normal(8), 64), x, wave, spikes, np.where(x < 0.3, wave, 3 + x), rng.random(n)):
        yield tree, (f - f.mean()) / f.std(), rng


@pytest.mark.parametrize("rule", pf._defaults.RULES)
@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.6])
def test_no_rule_is_worse_than_doing_nothing(rule, sigma):
    """On average over signals; a hair is 0.1 dB. Softly, "universal" is worse at little noise, see below."""
    gains = {None: [], "soft": []}
    for tree, clean, rng in generated_signals():
        noisy = clean + sigma * rng.standard_normal(tree.n)
        for mode, found in gains.items() if rule == "universal" else ((None, gains[None]),):
            error = pf.FrameletSystem(tree, weights="size").denoise(noisy, rule, mode) - clean
            found.append(10 * np.log10(np.mean((noisy - clean) ** 2) / np.mean(error**2)))
    assert np.mean(gains[None]) > -0.1
    if rule == "universal" and sigma == 0.1:
        assert np.mean(gains["soft"]) < -0.1


def test_blocks_by_hand():
    """One cluster of four in noise of σ = 1: S² = 36, d = 3, and t has the least of 3 + (9t² − 6t)/36."""
    system = pf.FrameletSystem(pf.Hierarchy([np.zeros(4, int)]))
    f = np.array([3.0, 3.0, -3.0, -3.0])
    tried = np.arange(0.0, 8.1, 0.25)
    best = tried[np.argmin(9 * tried**2 - 6 * tried)]
    np.testing.assert_allclose(system.denoise(f, "block", sigma=1.0), f * (1 - best * 3 / 36))
    np.testing.assert_allclose(system.denoise(f / 9, "block", sigma=1.0), 0.0, atol=1e-12)  # S² = 4/9 is below d
    basis = pf.FrameletSystem(system.hierarchy, "haar-basis")
    g = np.array([1.0, 5.0, -2.0, 0.5])
    np.testing.assert_allclose(basis.denoise(g, "block", sigma=1.0), system.denoise(g, "block", sigma=1.0), atol=1e-12)


def test_a_threshold_per_level():
    tree, _, noisy = noisy_steps()
    system = pf.FrameletSystem(tree)
    numbers = [0.0, 0.1, 0.5, 0.0, 2.0]
    c = system.decompose(noisy)
    for j, number in enumerate(numbers, 1):
        c.framelets(j)[:] = pf.framelets.threshold(c.framelets(j), number * system.norms(j))
    np.testing.assert_allclose(system.denoise(noisy, numbers), system.reconstruct(c), atol=1e-12)
    np.testing.assert_allclose(system.denoise(noisy, [0.5] * 5, "hard"), system.denoise(noisy, 0.5, "hard"))
    np.testing.assert_allclose(
        system.denoise(noisy, numbers[2:], j0=3),
        system.denoise(noisy, [0.0, 0.0, *numbers[2:]]),
        atol=1e-12,
    )


@given(trees(), families, seeds)
def test_variances_of_coefficients(tree, family, seed):
    system = pf.FrameletSystem(tree, *family)
    variance = np.random.default_rng(seed).random(tree.n)
    wanted = system.matrix().toarray() ** 2 @ variance
    np.testing.assert_allclose(system.variances(variance), wanted, atol=1e-12)
    j0 = 1 + seed % tree.K
    np.testing.assert_allclose(system.variances(variance, j0), system.matrix(j0).toarray() ** 2 @ variance, atol=1e-12)


@pytest.mark.parametrize("rule", pf._defaults.RULES)
def test_noise_that_differs_by_node(rule):
    tree, clean, _ = noisy_steps()
    sigma = np.where(np.arange(tree.n) % 8 < 4, 0.01, 1.0)
    noisy = clean + sigma * np.random.default_rng(1).standard_normal(tree.n)
    system = pf.FrameletSystem(tree)
    told, alike = (np.mean((system.denoise(noisy, rule, sigma=s) - clean) ** 2) for s in (sigma, 0.5**0.5))
    assert told < alike
    np.testing.assert_allclose(
        system.denoise(noisy, rule, sigma=np.full(tree.n, 0.7)), system.denoise(noisy, rule, sigma=0.7), atol=1e-12
    )
    np.testing.assert_allclose(system.denoise(noisy, rule, sigma=0.0), noisy, atol=1e-12)


def test_denoising_by_hand():
    tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    system = pf.FrameletSystem(tree)
    f = np.array([2.0, 0.0, 1.0, 1.0])  # ψ_(1,1) has √2, ψ_(1) and ψ_(1,2) have 0
    np.testing.assert_allclose(system.denoise(f, 1.5), [1, 1, 1, 1], atol=1e-12)
    np.testing.assert_allclose(system.denoise(f, 1.0, "hard"), f, atol=1e-12)
    step = 0.5**0.5
    np.testing.assert_allclose(system.denoise(f, step, "soft"), [1.5, 0.5, 1, 1], atol=1e-12)
    np.testing.assert_allclose(system.denoise(f, 0), f, atol=1e-12)


def test_thresholds_scale_with_the_norm_of_the_framelet():
    tree = pf.Hierarchy.from_nested([0, 1, 2, 3])
    system = pf.FrameletSystem(tree)
    np.testing.assert_allclose(system.norms(1), 0.5**0.5)
    f = np.array([1.0, 0.0, 0.0, 0.0])  # three coefficients of 1/2 = (1/√2) · (1/√2)
    assert np.allclose(system.denoise(f, 0.708), 0.25)
    assert np.allclose(system.denoise(f, 0.706, "hard"), f)


def test_the_noise_level_is_found_and_can_be_given():
    tree = pf.Hierarchy([np.arange(4**j) // 4 for j in range(6, 0, -1)])
    noise = 3.0 * np.random.default_rng(0).standard_normal((tree.n, 2)) * [1, 10]
    system = pf.FrameletSystem(tree)
    left = system.denoise(noise, "universal")
    assert (left.std(axis=0) < 0.05 * noise.std(axis=0)).all()
    assert np.std(system.denoise(noise, "universal", sigma=1e-9)) > 0.99 * noise.std()
    given, found = system.denoise(noise[:, 0], "universal", sigma=3.0), left[:, 0]
    assert np.abs(given - found).max() < 1.0


def test_denoising_keeps_kind_and_shape():
    tree, _, noisy = noisy_steps()
    system = pf.FrameletSystem(tree)
    for rule in pf._defaults.RULES:
        wanted = system.denoise(noisy[:, None], rule)
        assert wanted.shape == (tree.n, 1)
        np.testing.assert_allclose(system.denoise(torch.tensor(noisy), rule).numpy(), wanted[:, 0], atol=1e-12)
        np.testing.assert_allclose(system.denoise(sparse.csr_array(noisy[:, None]), rule).toarray(), wanted, atol=1e-12)
        assert system.denoise(noisy.astype(np.float32), rule).dtype == np.float32
    one = pf.FrameletSystem(pf.Hierarchy([[0]]))
    np.testing.assert_allclose(one.denoise([5.0]), [5.0])


@pytest.mark.parametrize("mode", ["soft", "hard"])
@given(seeds)
def test_thresholds_of_any_kind_of_array(mode, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((6, 3)) * (rng.random((6, 3)) < 0.7)
    for limit in (0.5, rng.random(3), rng.random((6, 3))):
        t = np.broadcast_to(limit, x.shape)
        kept = np.sign(x) * (np.abs(x) - t) if mode == "soft" else x
        wanted = np.where(np.abs(x) > t, kept, 0.0)
        np.testing.assert_allclose(pf.framelets.threshold(x, limit, mode), wanted, atol=1e-15)
        thin = pf.framelets.threshold(sparse.coo_array(x), limit, mode)
        assert thin.nnz == np.count_nonzero(wanted)
        np.testing.assert_allclose(thin.toarray(), wanted, atol=1e-15)
        tensor = torch.tensor(x, requires_grad=True)
        found = pf.framelets.threshold(tensor, limit, mode)
        np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-15)
        found.sum().backward()
        np.testing.assert_array_equal(tensor.grad.numpy(), np.abs(x) > t)


def test_thresholds_keep_precision_and_refuse_nonsense():
    assert pf.framelets.threshold(np.float32([1, -3]), 1.0).dtype == np.float32
    assert pf.framelets.threshold([1, -3], 1).tolist() == [0.0, -2.0]
    for arguments, words in (((-1.0,), "must not be negative, got -1.0"), ((1.0, "firm"), "'soft' or 'hard'")):
        with pytest.raises(ValueError, match=words):
            pf.framelets.threshold([1.0], *arguments)


@given(trees(), families, seeds, st.integers(0, 60))
def test_compress_keeps_the_largest(tree, family, seed, keep):
    system = pf.FrameletSystem(tree, *family)
    f = signal(tree, seed, 2)
    c, full = system.compress(f, keep), system.decompose(f)
    np.testing.assert_array_equal(c.scaling, full.scaling)
    for column in range(2):
        kept = c.array[:, column] != 0
        np.testing.assert_array_equal(c.array[kept, column], full.array[kept, column])
        assert np.count_nonzero(kept[1:]) <= max(keep - 1, 0)
        if kept[1:].any() and not kept.all():
            assert np.abs(full.array[kept, column][1:]).min() >= np.abs(full.array[1:][~kept[1:], column]).max()
    if keep >= system.count():
        np.testing.assert_allclose(system.reconstruct(c), f, atol=1e-12)


def test_compress_by_fraction_and_by_pythagoras():
    tree, clean, noisy = noisy_steps()
    basis = pf.FrameletSystem(tree, "haar-basis")
    np.testing.assert_allclose(basis.reconstruct(basis.compress(noisy, 1.0)), noisy, atol=1e-12)
    assert np.count_nonzero(basis.compress(noisy, 1).array) == 1
    c = basis.compress(noisy, 0.1)
    assert np.count_nonzero(c.array) == round(0.1 * tree.n)
    lost = (basis.decompose(noisy).array ** 2).sum() - (c.array**2).sum()
    np.testing.assert_allclose(((basis.reconstruct(c) - noisy) ** 2).sum(), lost)
    np.testing.assert_allclose(basis.reconstruct(basis.compress(clean, 16)), clean, atol=1e-12)
    for kind in (lambda f: sparse.csr_array(f[:, None]), torch.tensor):
        assert float(abs(basis.compress(kind(noisy), 0.1).array).sum()) == pytest.approx(np.abs(c.array).sum())


def test_what_is_not_a_number_stays_so():
    system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    for kind in (np.asarray, torch.tensor):
        result = system.denoise(kind([1.0, np.nan, 3.0, 4.0]), 0.1)
        assert np.isnan(np.asarray(result)).all()  # the root's average is one too


def test_zero_rows_in_B_change_nothing():
    p, B = pf.binary_haar(2)
    tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    padded = pf.FrameletSystem(tree, {2: (p, np.vstack([B.toarray(), np.zeros(2)]))})
    f = np.array([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(
        padded.denoise(f, "sure", sigma=0.01), pf.FrameletSystem(tree).denoise(f, "sure", sigma=0.01)
    )


def test_haar_weights_of_very_different_size():
    for weights in ([1.0, 1e-9, 1e-9], [1.0, 1e-6, 1e-6], [1e-7, 1.0, 1e-7, 1e-3]):
        check = pf.check_filters(*pf.haar_basis(np.array(weights) / np.linalg.norm(weights)))
        assert check.tight, check
    wide = pf.FrameletSystem(pf.Hierarchy([np.zeros(100_000, int)]), "haar-basis")
    f = signal(wide.hierarchy, 0)
    np.testing.assert_allclose(wide.reconstruct(wide.decompose(f)), f, atol=1e-12)


def test_systems_trees_and_coefficients_can_be_copied_and_pickled(system):
    import copy
    import pickle

    f = signal(system.hierarchy, 0, 2)
    c = system.decompose(f)
    for again in (pickle.loads(pickle.dumps(c)), copy.deepcopy(c)):
        np.testing.assert_array_equal(again.array, c.array)
        np.testing.assert_allclose(system.reconstruct(again), f, atol=1e-12)
        assert again.system == system
        assert not again.system.hierarchy.order.flags.writeable


def test_systems_with_equal_filters_are_equal(system):
    table = {L: pf.haar_basis(L) for L in range(2, 5)}
    one, two = (pf.FrameletSystem(system.hierarchy, dict(table)) for _ in range(2))
    assert one == two
    assert one == pf.FrameletSystem(system.hierarchy, "haar-basis")
    assert one != pf.FrameletSystem(system.hierarchy, pf.binary_haar)


def test_threads_may_share_a_system(system):
    from concurrent.futures import ThreadPoolExecutor

    signals = [signal(system.hierarchy, seed, 8) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda f: system.reconstruct(system.decompose(f)), signals))
    for f, back in zip(signals, results, strict=True):
        np.testing.assert_allclose(back, f, atol=1e-12)


# ----------------------------------------------------------------- bad input

TREE = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
SYSTEM = pf.FrameletSystem(TREE)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: pf.FrameletSystem([0, 1]), TypeError, "Hierarchy, got list"),
        (lambda: pf.FrameletSystem(TREE, "haar"), ValueError, "'binary-haar', 'haar-basis'"),
        (lambda: pf.FrameletSystem(TREE, weights="mass"), ValueError, "'equal' or 'size'"),
        (lambda: pf.FrameletSystem(TREE, pf.binary_haar, weights="size"), ValueError, "their own p"),
        (lambda: pf.FrameletSystem(TREE, 3), TypeError, "got int"),
        (lambda: pf.FrameletSystem(TREE, lambda L: (np.ones(L) / L**0.5, np.eye(L))), ValueError, "B p ≠ 0"),
        (lambda: pf.FrameletSystem(TREE, lambda L: pf.binary_haar(3)), ValueError, "3 weights; 2 are needed"),
        (lambda: pf.FrameletSystem(TREE, lambda L: 5), TypeError, "pair"),
        (lambda: pf.FrameletSystem(TREE, {"two": pf.binary_haar(2)}), TypeError, "'two'"),
        (lambda: pf.FrameletSystem(TREE, {(1, 9): pf.binary_haar(2)}), ValueError, "no child number 9"),
        (lambda: SYSTEM.decompose(np.ones(5)), ValueError, "5 rows and 4"),
        (lambda: SYSTEM.decompose(np.ones((4, 2, 2))), ValueError, "3 dimensions"),
        (lambda: SYSTEM.decompose(np.ones(4, complex)), TypeError, "complex128"),
        (lambda: SYSTEM.decompose(np.array([1, None, 2, 3])), TypeError, "object"),
        (lambda: SYSTEM.decompose(["a", "b", "c", "d"]), TypeError, "real numbers"),
        (lambda: SYSTEM.decompose([[1, 2], [3]]), ValueError, "vector or a matrix"),
        (lambda: SYSTEM.decompose(sparse.csr_array(np.eye(4) * 1j)), TypeError, "complex"),
        (lambda: SYSTEM.decompose(torch.ones(4, dtype=torch.complex64)), TypeError, "real tensor"),
        (lambda: SYSTEM.decompose(torch.ones(5)), ValueError, "5 rows"),
        (lambda: SYSTEM.decompose(torch.eye(4).to_sparse()), TypeError, "to_dense"),
        (lambda: SYSTEM.decompose(np.ones(4), j0=0), ValueError, "level 0"),
        (lambda: SYSTEM.decompose(np.ones(4), j0=4), ValueError, "level 4"),
        (lambda: SYSTEM.decompose(np.ones(4), j0=1.5), TypeError, "1.5"),
        (lambda: SYSTEM.decompose(np.ones(4), out=np.ones(3)), ValueError, r"shape \(4,\)"),
        (lambda: SYSTEM.decompose(np.ones(4), out=np.ones(4, "f4")), ValueError, "float64"),
        (lambda: SYSTEM.decompose(np.ones((4, 2)), out=np.ones((4, 2), order="F")), ValueError, "C-ordered"),
        (lambda: SYSTEM.decompose(torch.ones(4), out=np.ones(4)), TypeError, "NumPy"),
        (lambda: (lambda f: SYSTEM.decompose(f, out=f))(np.ones(4)), ValueError, "share memory"),
        (lambda: SYSTEM.projections(np.ones(4), out=[np.ones(4)]), ValueError, "K = 3"),
        (lambda: SYSTEM.project(np.ones(4), 3), ValueError, "level 3"),
        (lambda: SYSTEM.project(np.ones(4), -1), ValueError, "level -1"),
        (lambda: SYSTEM.scaling(4), ValueError, "level 4"),
        (lambda: SYSTEM.framelets(3), ValueError, "level 3"),
        (lambda: SYSTEM.matrix(0), ValueError, "level 0"),
        (lambda: SYSTEM.count(9), ValueError, "level 9"),
        (lambda: SYSTEM.operator("psi"), ValueError, "'psi'"),
        (lambda: SYSTEM.operator("analysis") @ np.ones(3), ValueError, "3 rows"),
        (lambda: SYSTEM.reconstruct(np.ones(4)), TypeError, "Coefficients or a list"),
        (lambda: SYSTEM.reconstruct("abc"), TypeError, "str"),
        (lambda: SYSTEM.reconstruct([]), ValueError, "0 parts"),
        (lambda: SYSTEM.reconstruct([np.ones(1)] * 7), ValueError, "7 parts"),
        (lambda: SYSTEM.reconstruct([np.ones(1), np.ones(2), np.ones(2)]), ValueError, "part 1"),
        (lambda: SYSTEM.reconstruct([np.ones((1, 2)), np.ones((1, 3)), np.ones((2, 2))]), ValueError, "columns"),
        (lambda: SYSTEM.reconstruct([np.ones(1), np.ones((1, 3)), np.ones(2)]), ValueError, "columns"),
        (lambda: SYSTEM.decompose(np.ones(4)).replace(np.ones(5)), ValueError, "5 rows and 4"),
        (lambda: SYSTEM.decompose(np.ones(4)).framelets(3), ValueError, "level 3"),
        (lambda: SYSTEM.denoise(np.ones(4), "best"), ValueError, "empirical, block, sure, bayes, universal"),
        (lambda: SYSTEM.denoise(np.ones(4), -1.0), ValueError, "not negative"),
        (lambda: SYSTEM.denoise(np.ones(4), None), TypeError, "threshold must be a number"),
        (lambda: SYSTEM.denoise(np.ones(4), 1.0, "firm"), ValueError, "'firm'"),
        (lambda: SYSTEM.denoise(np.ones(4), sigma=np.nan), ValueError, "sigma"),
        (lambda: SYSTEM.denoise(np.ones(4), sigma=[1.0, 1.0, 1.0, -1.0]), ValueError, "sigma holds -1.0"),
        (lambda: SYSTEM.denoise(np.ones(4), sigma=np.ones(3)), ValueError, "sigma must have the shape"),
        (lambda: SYSTEM.denoise(np.ones(4), "block", "soft"), ValueError, "'block' has none; leave mode out"),
        (lambda: SYSTEM.denoise(np.ones(4), [1.0]), ValueError, "1 numbers, and there are 2 levels"),
        (lambda: SYSTEM.denoise(np.ones(4), [1.0, -1.0]), ValueError, "not negative, got -1.0"),
        (lambda: SYSTEM.compress(np.ones(4), -1), ValueError, "keep"),
        (lambda: SYSTEM.projections(np.ones(4), out=[np.ones(4)] * 3), ValueError, "share memory with each other"),
        (lambda: pf.permuted(np.arange(3001) - 1500.0), ValueError, "about 10"),
        (lambda: SYSTEM.compress(np.ones(4), 2.5), ValueError, "2.5"),
        (lambda: SYSTEM.compress(np.ones(4), "all"), TypeError, "keep"),
        (lambda: pf.binary_haar(0), ValueError, "at least one child"),
        (lambda: pf.binary_haar([3.0, 4.0]), ValueError, "norm is 5"),
        (lambda: pf.binary_haar("four"), TypeError, "p must be an array, got str"),
        (lambda: pf.binary_haar(10**6), ValueError, "haar_basis"),
        (lambda: pf.haar_basis([1.0, 0.0]), ValueError, r"p\[1\] is 0"),
        (lambda: pf.haar_basis([np.nan]), ValueError, "nan"),
        (lambda: pf.haar_basis([1j]), TypeError, "complex"),
        (lambda: pf.permuted([1, 2]), ValueError, "sum to 3"),
        (lambda: pf.permuted([0, 0]), ValueError, "all zero"),
        (lambda: pf.permuted(np.arange(10) - 4.5), ValueError, "3,628,800 distinct permutations"),
        (lambda: pf.check_filters([1.0], [[1.0, 2.0]]), ValueError, "L = 1"),
        (lambda: pf.check_filters([1.0], [["a"]]), TypeError, "real numbers"),
        (lambda: pf.check_filters([0.6, 0.8], [[np.inf, 0]]), ValueError, "finite"),
        (lambda: pf.left_inverse([0.6, 0.8], [[0.6, 0.8]]), ValueError, "rank 1"),
    ],
)
def test_bad_input_is_answered(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_refused_call_changes_nothing():
    c = SYSTEM.decompose(np.arange(4.0))
    before = c.array.copy()
    with pytest.raises(ValueError, match="rows"):
        SYSTEM.decompose(np.ones(5), out=c)
    np.testing.assert_array_equal(c.array, before)


def test_more_pairs_than_memory_are_named(monkeypatch):
    tree = pf.Hierarchy([np.zeros(3_000_000, int)])
    system = pf.FrameletSystem(tree)
    assert system.count() == 1 + 3_000_000 * 2_999_999 // 2
    with pytest.raises(MemoryError, match="haar-basis"):
        system.decompose(np.ones(tree.n))
    f = np.ones(tree.n)
    np.testing.assert_allclose(system.project(f, 0), 1, atol=1e-9)  # projections need no pairs


arrays = st.one_of(
    st.none(),
    st.integers(-3, 12),
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.lists(st.integers(-2, 6), max_size=8),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=6),
    st.lists(st.lists(st.integers(-1, 5), max_size=4), max_size=4),
    st.builds(
        lambda seed, shape, kind: (np.random.default_rng(seed).standard_normal(shape) * 3).astype(kind),
        seeds,
        st.sampled_from([(), (0,), (1,), (4,), (3, 4), (4, 2), (2, 2, 2)]),
        st.sampled_from([np.float64, np.float32, np.int64, bool, complex, object, "U3", "M8[s]"]),
    ),
)

CONSTRUCTORS = {
    "Hierarchy": lambda a, b: pf.Hierarchy(a, b),
    "parents": lambda a, b: pf.Hierarchy([a, b]),
    "from_labels": lambda a, b: pf.Hierarchy.from_labels([a, b]),
    "from_labels flat": lambda a, b: pf.Hierarchy.from_labels(a),
    "from_nested": lambda a, b: pf.Hierarchy.from_nested(a),
    "from_linkage": lambda a, b: pf.Hierarchy.from_linkage(a, b),
    "permute": lambda a, b: TREE.permute(a),
    "permute_children": lambda a, b: TREE.permute_children({(1,): a, (1, 1): b}),
    "cluster": lambda a, b: TREE.cluster(a),
    "binary_haar": lambda a, b: pf.binary_haar(a),
    "haar_basis": lambda a, b: pf.haar_basis(a),
    "permuted": lambda a, b: pf.permuted(a),
    "check_filters": lambda a, b: pf.check_filters(a, b),
    "left_inverse": lambda a, b: pf.left_inverse(a, b),
    "FrameletSystem": lambda a, b: pf.FrameletSystem(TREE, {2: (a, b)}),
    "FrameletSystem filters": lambda a, b: pf.FrameletSystem(TREE, a, b),
    "decompose": lambda a, b: SYSTEM.decompose(a),
    "decompose out": lambda a, b: SYSTEM.decompose(np.ones(4), out=a),
    "reconstruct": lambda a, b: SYSTEM.reconstruct(a),
    "reconstruct parts": lambda a, b: SYSTEM.reconstruct([a, b]),
    "project": lambda a, b: SYSTEM.project(a, 1),
    "level": lambda a, b: SYSTEM.project(np.ones(4), a),
    "projections": lambda a, b: SYSTEM.projections(a),
    "denoise": lambda a, b: SYSTEM.denoise(a, b),
    "compress": lambda a, b: SYSTEM.compress(np.ones(4), a),
    "replace": lambda a, b: SYSTEM.decompose(np.ones(4)).replace(a),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # arithmetic on the infinities that are fed in
@given(a=arrays, b=arrays)
def test_random_input_is_used_or_refused(name, a, b):
    try:
        CONSTRUCTORS[name](a, b)
    except (ValueError, TypeError) as error:
        assert str(error)


@pytest.mark.long
def test_the_import_is_light():
    import subprocess
    import sys

    heavy = ["torch", "matplotlib", "networkx", "pandas", "typer", "rich"]
    code = f"import sys, pegfan; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_public_names_exist_and_are_documented():
    for name in pf.__all__:
        assert getattr(pf, name).__doc__
    assert importlib.metadata.version("pegfan") == pf.__version__
    assert not set(pf.__all__) & set(dir(builtins))


@given(trees(), seeds, st.sampled_from([1, 3, 16]))
def test_renumbered_signals_are_transformed_bit_for_bit(tree, seed, columns):
    """Coefficients are the same, and projections and reconstructions are renumbered: all sums go along the leaves."""
    rng = np.random.default_rng(seed)
    perm, f = rng.permutation(tree.n), rng.standard_normal((tree.n, columns))
    old, new = pf.FrameletSystem(tree), pf.FrameletSystem(tree.permute(perm))
    before, after = old.decompose(f), new.decompose(f[perm])
    np.testing.assert_array_equal(after.array, before.array)
    np.testing.assert_array_equal(new.reconstruct(after), old.reconstruct(before)[perm])
    for one, other in zip(old.projections(f), new.projections(f[perm]), strict=True):
        np.testing.assert_array_equal(other, one[perm])
