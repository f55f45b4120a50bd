"""Every claim of Section III of the paper and of its appendix, as a test that fails if the claim breaks.

Where the printed claim is off (FACTS: slips), the test holds what is true and shows what is not.
"""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import pegfan as pf
from support import plain
from support.strategies import admissible, random_tree, signal, trees, unit

FAMILIES = [("binary-haar", "equal"), ("binary-haar", "size"), ("haar-basis", "equal"), ("haar-basis", "size")]
seeds = st.integers(0, 2**32 - 1)


def regular(h, K):
    """The tree in which every cluster has h children."""
    return pf.Hierarchy([np.arange(h**j) // h for j in range(K - 1, 0, -1)])


# --------------------------------------------------------------- Theorem 1


@given(trees(24), seeds, st.integers(0, 3))
def test_theorem_1_admissible_filters_give_a_tight_frame_for_every_j0(tree, seed, extra):
    rng = np.random.default_rng(seed)
    table = {L: admissible(rng, L, extra) for L in range(2, tree.h + 1)}
    system = pf.FrameletSystem(tree, table)
    for j0 in range(1, tree.K + 1):
        rows = plain.frame(tree, lambda c: table.get(c.n_children, (np.ones(1), [])), j0)
        assert plain.is_tight(rows)
        np.testing.assert_allclose(system.matrix(j0).toarray(), rows, atol=1e-12)


VIOLATIONS = {
    "B Bᵀ B ≠ B": lambda p, B: (p, 1.5 * B),
    "B p ≠ 0": lambda p, B: (p, B + 0.3 * np.outer(np.ones(len(B)), p)),
    "rank B": lambda p, B: (p, _drop_direction(B)),
    "unit length": lambda p, B: (1.2 * p, B),
}


def _drop_direction(B):
    u, s, v = np.linalg.svd(B, full_matrices=False)
    s[-1] = 0
    s[: np.linalg.matrix_rank(B) - 1] = 1
    s[np.linalg.matrix_rank(B) - 1 :] = 0
    return u * s @ v


@pytest.mark.parametrize("name", VIOLATIONS)
@given(seed=seeds, children=st.integers(2, 6), extra=st.integers(0, 3))
def test_theorem_1_a_violated_condition_breaks_tightness(name, seed, children, extra):
    p, B = VIOLATIONS[name](*admissible(np.random.default_rng(seed), children, extra))
    tree = pf.Hierarchy([np.zeros(children, int)])
    rows = plain.frame(tree, lambda _: (p, B))
    assert not plain.is_tight(rows, 1e-6)
    check = pf.check_filters(p, B)
    assert not check.tight
    assert any(name in failure for failure in check.failures)
    with pytest.raises(ValueError, match=name):
        pf.FrameletSystem(tree, {children: (p, B)})


@given(seeds, st.integers(2, 6))
def test_theorem_1_only_the_violated_condition_is_named(seed, children):
    p, B = admissible(np.random.default_rng(seed), children)
    assert pf.check_filters(p, B).failures == ()
    assert len(pf.check_filters(p, 1.5 * B).failures) == 1
    assert len(pf.check_filters(1.2 * p, B).failures) == 1


# ------------------------------------------------------------ Proposition 1


@given(seeds, st.integers(2, 7), st.integers(0, 4), st.floats(0.1, 5.0))
def test_proposition_1_splitting_of_the_complement(seed, children, extra, c):
    rng = np.random.default_rng(seed)
    p, isometric = admissible(rng, children, extra)
    B = np.sqrt(c) * isometric
    np.testing.assert_allclose(B @ B.T @ B, c * B, atol=1e-10)
    np.testing.assert_allclose(B.T @ B, c * (np.eye(children) - np.outer(p, p)), atol=1e-10)
    P = np.column_stack([p, B.T / np.sqrt(c)])
    np.testing.assert_allclose(P @ P.T, np.eye(children), atol=1e-10)


@given(seeds, st.integers(3, 7))
def test_proposition_1_both_sides_fail_together(seed, children):
    rng = np.random.default_rng(seed)
    p, B = admissible(rng, children)
    B = np.diag(np.linspace(0.5, 2.0, len(B))) @ B  # still B p = 0 and of rank L − 1
    c = np.trace(B.T @ B) / (children - 1)
    assert np.abs(B @ B.T @ B - c * B).max() > 1e-3
    assert np.abs(B.T @ B - c * (np.eye(children) - np.outer(p, p))).max() > 1e-3


# ---------------------------------------------------------------- Example 1


def test_example_1_the_path_graph_has_the_haar_basis():
    tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    a, b, c = 1 / np.sqrt(8), 1 / 2, 1 / np.sqrt(2)
    by_hand = [
        [a, a, a, a, a, a, a, a],
        [a, a, a, a, -a, -a, -a, -a],
        [b, b, -b, -b, 0, 0, 0, 0],
        [0, 0, 0, 0, b, b, -b, -b],
        [c, -c, 0, 0, 0, 0, 0, 0],
        [0, 0, c, -c, 0, 0, 0, 0],
        [0, 0, 0, 0, c, -c, 0, 0],
        [0, 0, 0, 0, 0, 0, c, -c],
    ]
    system = pf.FrameletSystem(tree)
    F = system.matrix(1).toarray()
    np.testing.assert_allclose(F, by_hand, atol=1e-15)
    np.testing.assert_allclose(F @ F.T, np.eye(8), atol=1e-15)
    # j0 = 2: two scaling vectors in place of φ_(1) and ψ_(1)
    np.testing.assert_allclose(system.matrix(2).toarray()[:2], [[b] * 4 + [0] * 4, [0] * 4 + [b] * 4], atol=1e-15)
    # j0 = 4: the identity
    np.testing.assert_array_equal(system.matrix(4).toarray(), np.eye(8))


# -------------------------------------------------- Corollary 1 and Remark 2


@given(trees())
def test_corollary_1_binary_haar_is_tight_for_every_j0(tree):
    system = pf.FrameletSystem(tree)
    for j0 in range(1, tree.K + 1):
        rows = plain.frame(tree, plain.pair_filters, j0)
        assert plain.is_tight(rows)
        np.testing.assert_allclose(system.matrix(j0).toarray(), rows, atol=1e-12)


@given(st.integers(2, 12))
def test_the_rows_of_binary_haar_stand_in_the_papers_order(children):
    _, B = pf.binary_haar(children)
    B = B.toarray()
    assert len(B) == children * (children - 1) // 2
    for first in range(1, children + 1):
        for second in range(first + 1, children + 1):
            m = (2 * children - first) * (first - 1) // 2 + second - first
            row = np.zeros(children)
            row[first - 1], row[second - 1] = 1 / np.sqrt(children), -1 / np.sqrt(children)
            np.testing.assert_allclose(B[m - 1], row, atol=1e-15)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=6))
def test_remark_2_permutations_of_a_zero_sum_vector_are_tight(values):
    w = np.array(values, float) - np.mean(values)
    if np.abs(w).max() < 1e-9:
        w[0], w[1] = 1, -1
    check = pf.check_filters(*pf.permuted(w))
    assert check.tight, check


def test_remark_2_the_simplest_vector_gives_the_binary_haar_framelets_with_both_signs():
    _, B = pf.permuted([1, -1, 0, 0])
    rows = {tuple(row) for row in np.sign(B.toarray()).astype(int)}
    pairs = {tuple(row) for row in np.sign(pf.binary_haar(4).B.toarray()).astype(int)}
    assert rows == pairs | {tuple(-x for x in row) for row in pairs}


def test_remark_2_as_a_system():
    tree = random_tree(3, 3, 4, 30)
    system = pf.FrameletSystem(tree, lambda L: pf.permuted(np.r_[L - 1, -np.ones(L - 1)]))
    assert plain.is_tight(system.matrix().toarray())


# ---------------------------------------------------------- support, sparsity


@given(trees(), st.sampled_from(FAMILIES))
def test_scaling_vectors_are_orthonormal_and_supported_on_their_clusters(tree, family):
    system = pf.FrameletSystem(tree, *family)
    for j in range(1, tree.K + 1):
        phi = system.scaling(j).toarray()
        np.testing.assert_allclose(phi @ phi.T, np.eye(len(phi)), atol=1e-12)
        for slot, row in enumerate(phi):
            assert set(np.flatnonzero(row)) == set(tree.cluster_at(j, slot).nodes)


@given(trees())
def test_a_framelet_touches_at_most_two_children(tree):
    """The text's ‖ψ‖₀ ≤ 2 L_(j+1) holds one level above the leaves only; sizes of clusters are what is meant."""
    system = pf.FrameletSystem(tree)
    for j in range(1, tree.K):
        nonzeros = np.diff(system.framelets(j).indptr)
        assert (nonzeros <= 2 * tree.sizes(j + 1).max()).all()
        assert (nonzeros <= 2 * float(tree.h) ** (tree.K - j - 1)).all()


def test_the_printed_bound_on_the_support_is_wrong_on_a_binary_tree():
    tree = regular(2, 5)
    psi = pf.FrameletSystem(tree).framelets(1)
    assert psi.nnz == 16 > 2 * tree.branching[1]


@given(trees(), seeds, st.floats(0.05, 0.5))
def test_theorem_2_sparse_signals_have_sparse_coefficients(tree, seed, density):
    """True bound: ((K−1)(h−1) + 1)‖f‖₀; the printed one forgets the scaling coefficient."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(tree.n) * (rng.random(tree.n) < density)
    c = pf.FrameletSystem(tree).decompose(csr_array(f[:, None])).array
    assert c.count_nonzero() <= ((tree.K - 1) * max(tree.h - 1, 0) + 1) * np.count_nonzero(f)


@pytest.mark.parametrize(("h", "K"), [(2, 4), (3, 4), (4, 3)])
def test_theorem_2_one_node_on_a_regular_tree_meets_the_bound(h, K):
    system = pf.FrameletSystem(regular(h, K))
    for node in range(h ** (K - 1)):
        c = system.decompose(np.eye(1, system.n, node)[0])
        assert np.count_nonzero(c.array[1:]) == (K - 1) * (h - 1)  # the theorem's count: framelets
        assert np.count_nonzero(c.array) == (K - 1) * (h - 1) + 1


@pytest.mark.parametrize(("h", "K"), [(2, 6), (3, 5), (4, 4), (8, 3)])
def test_remark_3_and_theorem_3_on_regular_trees(h, K):
    """K − 1 = log_h n; M is of order n h and nnz(F) of order n h log_h n, here with their constants."""
    tree = regular(h, K)
    system, n = pf.FrameletSystem(tree), tree.n
    assert K - 1 == round(log(n) / log(h))
    assert system.count() == 1 + h * (n - 1) // 2
    assert system.nnz() == n * (1 + (h - 1) * (K - 1))
    for j0 in range(1, K + 1):
        assert system.count(j0) <= n * h
        assert system.nnz(j0) <= n * h * K


@given(trees())
def test_theorem_3_bounds_for_every_tree(tree):
    system = pf.FrameletSystem(tree)
    n, h, K = tree.n, tree.h, tree.K
    assert system.count() <= 1 + h * (n - 1) / 2
    assert system.nnz() <= n * (1 + max(h - 1, 0) * (K - 1))
    for j0 in range(1, K + 1):
        F = system.matrix(j0)
        assert F.shape == (system.count(j0), n)
        assert F.nnz == system.nnz(j0) == np.count_nonzero(F.toarray())


def test_theorem_3_needs_more_than_it_says():
    """A caterpillar, one leaf split off a level: n = O(h^(K−1)) holds, yet nnz(F) is of order n², not n h log_h n."""
    nested = [0, 1]
    for leaf in range(2, 400):
        nested = [leaf, nested]
    tree = pf.Hierarchy.from_nested(nested)
    assert tree.h == 2
    assert tree.n <= 2 ** (tree.K - 1)
    system = pf.FrameletSystem(tree)
    assert system.nnz() > 4 * tree.n * 2 * log(tree.n) / log(2)
    assert system.nnz() > tree.n**2 / 2


class Counted:
    """A sparse matrix that counts the multiplications it takes part in."""

    total = 0

    def __init__(self, matrix):
        self.matrix = matrix

    def __matmul__(self, x):
        Counted.total += self.matrix.nnz
        return self.matrix @ x


@pytest.mark.parametrize("h", [2, 4, 8])
@pytest.mark.parametrize("K", [3, 4, 5])
def test_the_fast_transforms_take_order_nh_operations(h, K):
    from pegfan.framelets._transforms import Transforms

    tree = regular(h, K)
    system = pf.FrameletSystem(tree)
    counting = Transforms(system._levels, tree.order, Counted, np.concatenate)
    f = signal(tree, 0, 1)
    Counted.total = 0
    c = counting.decompose(f, 1)
    down, Counted.total = Counted.total, 0
    back = counting.reconstruct(c, 1)
    np.testing.assert_allclose(back, f, atol=1e-12)
    # Per cluster h for the scaling coefficient and 2 h (h − 1)/2 for the framelets; (n − 1)/(h − 1) clusters.
    assert down == Counted.total == (tree.n - 1) // (h - 1) * h * h
    assert down <= 2 * tree.n * h
    assert K == 3 or down < system.nnz()  # fewer than one product with the matrix takes


# ---------------------------------------------------------------- Theorem 4


@given(trees(), seeds)
def test_theorem_4_i_node_permutations(tree, seed):
    """Row-stacked, Φ^π = Φ Pᵀ: column i of the new system is column perm[i] of the old, exactly."""
    perm = np.random.default_rng(seed).permutation(tree.n)
    old, new = pf.FrameletSystem(tree), pf.FrameletSystem(tree.permute(perm))
    for j0 in range(1, tree.K + 1):
        np.testing.assert_array_equal(new.matrix(j0).toarray(), old.matrix(j0).toarray()[:, perm])


def exhibit(old, new, j0):
    """The permutation π* and the signs c_m with new row m = c_m · old row π*(m), from the trees alone."""
    star, signs = [], []

    def old_slots(j):
        slots = np.empty(old.n_clusters[j - 1], int)
        slots[new.labels(j)] = old.labels(j)
        return slots

    star.extend(old_slots(j0))
    signs.extend([1] * len(star))
    start = len(star)
    for j in range(j0, old.K):
        first, counts, below = old.first_child(j), old.n_children(j), old_slots(j + 1)
        row = start + np.concatenate([[0], np.cumsum(counts * (counts - 1) // 2)])
        new_first = new.first_child(j)
        for slot, was in enumerate(old_slots(j)):
            L = counts[was]
            places = below[new_first[slot] : new_first[slot + 1]] - first[was] + 1  # old ℓ of each new child
            for i in range(L):
                for k in range(i + 1, L):
                    low, high = sorted((places[i], places[k]))
                    star.append(row[was] + (2 * L - low) * (low - 1) // 2 + high - low - 1)
                    signs.append(1 if places[i] < places[k] else -1)
        start = int(row[-1])
    return np.array(star, int), np.array(signs)


@given(trees(), seeds)
def test_theorem_4_ii_partition_permutations(tree, seed):
    other = tree.permute_children(np.random.default_rng(seed))
    old, new = pf.FrameletSystem(tree), pf.FrameletSystem(other)
    for j0 in range(1, tree.K + 1):
        star, signs = exhibit(tree, other, j0)
        assert sorted(star) == list(range(old.count(j0)))
        np.testing.assert_allclose(
            new.matrix(j0).toarray(), signs[:, None] * old.matrix(j0).toarray()[star], atol=1e-12
        )


@given(trees(), seeds)
def test_theorem_4_iii_both_permutations_commute(tree, seed):
    rng = np.random.default_rng(seed)
    perm = rng.permutation(tree.n)
    shuffled = tree.permute_children(np.random.default_rng(seed + 1))
    both = shuffled.permute(perm)
    assert both == tree.permute(perm).permute_children(np.random.default_rng(seed + 1))
    star, signs = exhibit(tree, shuffled, 1)
    F = pf.FrameletSystem(tree).matrix().toarray()
    np.testing.assert_allclose(
        pf.FrameletSystem(both).matrix().toarray(), signs[:, None] * F[star][:, perm], atol=1e-12
    )


def test_theorem_4_ii_is_special_to_the_binary_haar_system():
    tree = pf.Hierarchy.from_nested([0, 1, 2])
    other = tree.permute_children({(1,): [1, 2, 0]})
    old, new = (pf.FrameletSystem(t, "haar-basis").matrix().toarray() for t in (tree, other))
    same = np.abs(np.abs(new @ old.T) - 1) < 1e-9
    assert not same[1:].any(axis=1).all()


@given(trees(), seeds, st.sampled_from(FAMILIES))
def test_projections_are_equivariant_for_every_family(tree, seed, family):
    rng = np.random.default_rng(seed)
    perm, f = rng.permutation(tree.n), rng.standard_normal(tree.n)
    both = tree.permute(perm).permute_children(rng)
    old, new = pf.FrameletSystem(tree, *family), pf.FrameletSystem(both, *family)
    for before, after in zip(old.projections(f), new.projections(f[perm]), strict=True):
        np.testing.assert_allclose(after, before[perm], atol=1e-12)


def test_figure_2_swapping_two_leaves_flips_one_framelet():
    tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    other = tree.permute_children({(1, 1, 1): [1, 0]})
    F, G = pf.FrameletSystem(tree).matrix().toarray(), pf.FrameletSystem(other).matrix().toarray()
    flipped = [m for m in range(8) if not np.allclose(F[m], G[m])]
    assert flipped == [4]
    np.testing.assert_allclose(G[4], -F[4])


# -------------------------------------------------------- transforms (appendix)


@given(trees(), seeds, st.sampled_from(FAMILIES), st.sampled_from([None, 1, 3]))
def test_fast_transforms_equal_matrix_products_and_invert_each_other(tree, seed, family, columns):
    system = pf.FrameletSystem(tree, *family)
    f = signal(tree, seed, columns)
    for j0 in range(1, tree.K + 1):
        F = system.matrix(j0)
        c = system.decompose(f, j0)
        np.testing.assert_allclose(c.array, F @ f, atol=1e-12)
        np.testing.assert_allclose(system.reconstruct(c), f, atol=1e-12)
        np.testing.assert_allclose(sum(c.energies()), (f**2).sum(), rtol=1e-12)
        noise = np.random.default_rng(seed).standard_normal(c.array.shape)
        np.testing.assert_allclose(system.reconstruct(c.replace(noise)), F.T @ noise, atol=1e-12)


@given(trees(), st.sampled_from(FAMILIES))
def test_frame_bounds_are_one(tree, family):
    system = pf.FrameletSystem(tree, *family)
    for j0 in range(1, tree.K + 1):
        np.testing.assert_allclose(system.frame_bounds(j0), (1.0, 1.0), atol=1e-12)


def test_frame_bounds_enclose_what_slightly_wrong_filters_give():
    tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
    p, B = pf.binary_haar(2)
    low, high = pf.FrameletSystem(tree, {2: (p, (1 + 4e-9) * B.toarray())}).frame_bounds()
    eigenvalues = np.linalg.eigvalsh(plain.frame(tree, lambda _: (p, (1 + 4e-9) * B.toarray())).T
                                     @ plain.frame(tree, lambda _: (p, (1 + 4e-9) * B.toarray())))  # fmt: skip
    assert low <= eigenvalues[0]
    assert eigenvalues[-1] <= high < 1 + 1e-7
    assert high > 1 + 1e-9


@given(seeds, st.integers(2, 6), st.integers(0, 3))
def test_the_left_inverse_of_the_appendix(seed, children, extra):
    rng = np.random.default_rng(seed)
    p, B = admissible(rng, children, extra)
    np.testing.assert_allclose(pf.left_inverse(p, B), np.column_stack([p, B.T]), atol=1e-10)
    general = rng.standard_normal((children + extra, children))
    C = pf.left_inverse(unit(rng, children), general)
    assert C.shape == (children, 1 + len(general))
    q = unit(np.random.default_rng(seed), children)
    np.testing.assert_allclose(pf.left_inverse(q, general) @ np.vstack([q, general]), np.eye(children), atol=1e-6)


# ---------------------------------------------------------------- projections


@given(trees(24), seeds, st.sampled_from(FAMILIES))
def test_projections_split_the_signal(tree, seed, family):
    """F_0 = Φ_1ᵀΦ_1 and F_j = Ψ_jᵀΨ_j: symmetric, idempotent, mutually orthogonal, and they sum to I."""
    system = pf.FrameletSystem(tree, *family)
    phi = system.scaling(1).toarray()
    wanted = [phi.T @ phi] + [(psi := system.framelets(j).toarray()).T @ psi for j in range(1, tree.K)]
    F = [system.operator("projection", j) @ np.eye(tree.n) for j in range(tree.K)]
    for j, projection in enumerate(F):
        np.testing.assert_allclose(projection, wanted[j], atol=1e-12)
        for i, other in enumerate(F):
            np.testing.assert_allclose(projection @ other, projection if i == j else 0, atol=1e-12)
    np.testing.assert_allclose(sum(F), np.eye(tree.n), atol=1e-12)


@given(trees(), seeds)
def test_projections_do_not_depend_on_B(tree, seed):
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(tree.n)
    table = {}
    for L in range(2, tree.h + 1):
        p = pf.binary_haar(L).p
        rest = np.linalg.svd(p[None, :])[2][1:]
        table[L] = p, np.linalg.qr(rng.standard_normal((L + 1, L - 1)))[0] @ rest
    for a, b in zip(pf.FrameletSystem(tree).projections(f), pf.FrameletSystem(tree, table).projections(f), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


# -------------------------------------------------------------- weights by size


@given(trees())
def test_size_weights_make_constant_scaling_vectors_and_zero_mean_framelets(tree):
    for filters in ("binary-haar", "haar-basis"):
        system = pf.FrameletSystem(tree, filters, weights="size")
        for j in range(1, tree.K):
            np.testing.assert_allclose(system.framelets(j) @ np.ones(tree.n), 0, atol=1e-12)
            phi = system.scaling(j).toarray()
            heights = 1 / np.sqrt(tree.sizes(j))
            np.testing.assert_allclose(phi, (phi != 0) * heights[:, None], atol=1e-12)


def test_equal_weights_do_not_annihilate_constants_on_an_unbalanced_tree():
    tree = pf.Hierarchy.from_nested([[0, 1, 2], [3]])
    c = pf.FrameletSystem(tree).decompose(np.ones(4))
    assert abs(c.framelets(1)[0]) > 0.1


@given(st.integers(2, 9))
def test_binary_haar_is_the_equal_weight_case(children):
    p, B = pf.binary_haar(np.full(children, 1 / np.sqrt(children)))
    np.testing.assert_allclose(B.toarray(), pf.binary_haar(children).B.toarray(), atol=1e-15)
    np.testing.assert_allclose(p, 1 / np.sqrt(children))


@given(seeds, st.integers(1, 8))
def test_every_unit_p_has_pair_and_basis_filters(seed, children):
    p = unit(np.random.default_rng(seed), children)
    pairs, basis = pf.binary_haar(p), pf.haar_basis(p)
    assert pf.check_filters(*pairs).tight
    assert pf.check_filters(*basis).tight
    np.testing.assert_allclose((basis.B @ basis.B.T).toarray(), np.eye(children - 1), atol=1e-12)


def test_haar_basis_of_eight_children_is_the_haar_matrix():
    _, B = pf.haar_basis(8)
    sign = np.sign(B.toarray()).astype(int)
    assert sign.tolist() == [
        [1, 1, 1, 1, -1, -1, -1, -1],
        [1, 1, -1, -1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, -1, -1],
        [1, -1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, -1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, -1, 0, 0],
        [0, 0, 0, 0, 0, 0, 1, -1],
    ]
    three = pf.haar_basis(3).B.toarray()
    np.testing.assert_allclose(three, [[1 / np.sqrt(6)] * 2 + [-2 / np.sqrt(6)], [1 / np.sqrt(2), -1 / np.sqrt(2), 0]])
