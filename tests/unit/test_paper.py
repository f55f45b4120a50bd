"""Every claim of Section III of the paper and of its appendix, by its number, as a test that fails if the claim breaks.

Where the printed claim is off, the test holds what is true and shows what is not.
"""

import re
from math import ceil, log, log2

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

import pegfan as pf
from pegfan.channels import make_fsgnn_channels
from pegfan.framelets._transforms import Transforms
from pegfan.framelets.filters import Filters
from support import plain
from support.strategies import admissible, random_tree, signal, trees, unit

FAMILIES = [(name, weights) for name in pf.framelets.FAMILIES for weights in ("equal", "size")]
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


def unchecked(tree, table):
    """A system of filters that the package refuses, to see what it refuses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegfan.framelets._levels.tight_filters", lambda p, B, where: Filters(p, csr_array(B)))
        return pf.FrameletSystem(tree, table)


@given(seeds, st.integers(2, 5), st.sampled_from(list(VIOLATIONS)), st.data())
def test_theorem_1_one_bad_cluster_inside_a_deep_tree_breaks_tightness(seed, depth, name, data):
    """Only if: one cluster Λ that violates a condition spoils every F_j0 that has it, j0 ≤ dim Λ, and no other."""
    tree = random_tree(seed, depth, 4, 20)
    able = [c for level in range(1, tree.K) for c in plain.clusters(tree, level) if c.n_children > 1]
    assume(able)
    spoilt = data.draw(st.sampled_from(able))
    rng = np.random.default_rng(seed)
    table = {L: admissible(rng, L) for L in range(2, tree.h + 1)}
    pf.FrameletSystem(tree, table)
    table[spoilt.index] = VIOLATIONS[name](*admissible(rng, spoilt.n_children, 1))
    with pytest.raises(ValueError, match=re.escape(f"cluster {spoilt.index}") + f".*{name}"):
        pf.FrameletSystem(tree, table)
    system = unchecked(tree, table)
    for j0 in range(1, tree.K + 1):
        assert plain.is_tight(system.matrix(j0).toarray(), 1e-6) == (j0 > spoilt.level)


# ------------------------------------------------------------ Proposition 1


def nearest_splitting(p, B):
    """The c with c (I − p pᵀ) nearest to BᵀB (least squares), and by how much they differ: no c does better."""
    complement, gram = np.eye(len(p)) - np.outer(p, p), B.T @ B
    c = (gram * complement).sum() / (complement**2).sum()
    return c, np.linalg.norm(gram - c * complement)


def nearest_isometry(B):
    """The c with c B nearest to B Bᵀ B, and by how much they differ."""
    cubed = B @ B.T @ B
    c = (cubed * B).sum() / (B**2).sum()
    return c, np.linalg.norm(cubed - c * B)


@given(seeds, st.integers(2, 7), st.integers(0, 4), st.floats(0.1, 5.0))
def test_proposition_1_splitting_of_the_complement(seed, children, extra, c):
    p, isometric = admissible(np.random.default_rng(seed), children, extra)
    B = np.sqrt(c) * isometric
    assert nearest_isometry(B) == pytest.approx((c, 0), abs=1e-10)
    assert nearest_splitting(p, B) == pytest.approx((c, 0), abs=1e-10)
    P = np.column_stack([p, B.T / np.sqrt(c)])
    np.testing.assert_allclose(P @ P.T, np.eye(children), atol=1e-10)
    check = pf.check_filters(p, B / np.sqrt(c))
    assert check.tight
    assert check.splitting < 1e-10
    assume(c == 1 or abs(c - 1) > 1e-6)
    off = pf.check_filters(p, B)  # the right directions, at the wrong length
    assert off.splitting == pytest.approx(abs(c - 1) * np.abs(np.eye(children) - np.outer(p, p)).max(), abs=1e-10)
    assert off.tight == (c == 1)


@given(seeds, st.integers(3, 7), st.integers(0, 3))
def test_proposition_1_both_sides_fail_together_whatever_c_is(seed, children, extra):
    rng = np.random.default_rng(seed)
    p, B = admissible(rng, children, extra)
    stretch = np.linspace(0.5, 2.0, children - 1)  # still B p = 0 and of rank L − 1
    u, _, v = np.linalg.svd(B, full_matrices=False)
    B = u[:, : children - 1] * rng.permutation(stretch) @ v[: children - 1]
    for c, miss in (nearest_splitting(p, B), nearest_isometry(B)):
        assert miss > 1e-2
        check = pf.check_filters(p, B / np.sqrt(c))
        assert not check.tight
        assert check.splitting > 1e-3
        assert check.kernel < 1e-10
        assert check.rank == children - 1


def _anything(rng, children, extra):
    return unit(rng, children), rng.standard_normal((children - 1 + extra, children))


def _moved(rng, children, extra):
    """Filters of Theorem 1 that were moved a little, or not at all."""
    p, B = admissible(rng, children, extra)
    return p, B + rng.choice([0.0, 1e-4, 0.1]) * rng.standard_normal(B.shape)


@given(seeds, st.integers(2, 7), st.integers(0, 3), st.sampled_from([admissible, _moved, _anything]))
def test_proposition_1_unit_filters_are_tight_exactly_if_they_split_the_complement(seed, children, extra, draw):
    p, B = draw(np.random.default_rng(seed), children, extra)
    for weights, rows in ((p, B), *(violate(p, B) for name, violate in VIOLATIONS.items() if name != "unit length")):
        check = pf.check_filters(weights, rows)
        assert check.unit < 1e-12
        assert check.splitting == pytest.approx(
            np.abs(rows.T @ rows - np.eye(children) + np.outer(weights, weights)).max(initial=0), abs=1e-12
        )
        assert check.tight == (check.splitting < 1e-6)


def test_proposition_1_is_about_unit_vectors():
    """A shorter p leaves more than L − 1 directions: the splitting exists, and Theorem 1 does not hold for it."""
    p = np.array([0.3, 0.4])
    check = pf.check_filters(p, np.linalg.cholesky(np.eye(2) - np.outer(p, p)).T)
    assert check.splitting < 1e-12
    assert not check.tight


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
    for j0 in range(1, 5):
        F = system.matrix(j0).toarray()
        np.testing.assert_allclose(F @ F.T, np.eye(8), atol=1e-15)  # a basis, and not only a tight frame
    # j0 = 2: two scaling vectors in place of φ_(1) and ψ_(1)
    np.testing.assert_allclose(system.matrix(2).toarray()[:2], [[b] * 4 + [0] * 4, [0] * 4 + [b] * 4], atol=1e-15)
    # j0 = 4: the identity
    np.testing.assert_array_equal(system.matrix(4).toarray(), np.eye(8))


# -------------------------------------------------- Corollary 1 and Remark 1


@given(trees())
def test_corollary_1_binary_haar_is_tight_for_every_j0(tree):
    system = pf.FrameletSystem(tree)
    for j0 in range(1, tree.K + 1):
        rows = plain.frame(tree, plain.pair_filters, j0)
        assert plain.is_tight(rows)
        np.testing.assert_allclose(system.matrix(j0).toarray(), rows, atol=1e-12)


@given(st.integers(2, 12))
def test_equation_3_the_rows_of_binary_haar_stand_in_the_papers_order(children):
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
def test_remark_1_permutations_of_a_zero_sum_vector_are_tight(values):
    w = np.array(values, float) - np.mean(values)
    if np.abs(w).max() < 1e-9:
        w[0], w[1] = 1, -1
    check = pf.check_filters(*pf.permuted(w))
    assert check.tight, check


def test_remark_1_the_simplest_vector_gives_the_binary_haar_framelets_with_both_signs():
    _, B = pf.permuted([1, -1, 0, 0])
    rows = {tuple(row) for row in np.sign(B.toarray()).astype(int)}
    pairs = {tuple(row) for row in np.sign(pf.binary_haar(4).B.toarray()).astype(int)}
    assert rows == pairs | {tuple(-x for x in row) for row in pairs}


def test_remark_1_as_a_system():
    tree = random_tree(3, 3, 4, 30)
    system = pf.FrameletSystem(tree, lambda L: pf.permuted(np.r_[L - 1, -np.ones(L - 1)]))
    assert plain.is_tight(system.matrix().toarray())


# ------------------------------------- Section III-C, Theorem 2, Remark 2; Theorem 3, Remark 3


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
    """True bound: ((K−j0)(h−1) + 1)‖f‖₀; the printed one, for j0 = 1, forgets the scaling coefficient."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(tree.n) * (rng.random(tree.n) < density)
    system = pf.FrameletSystem(tree)
    for j0 in range(1, tree.K + 1):
        c = system.decompose(csr_array(f[:, None]), j0).array
        assert c.count_nonzero() <= ((tree.K - j0) * max(tree.h - 1, 0) + 1) * np.count_nonzero(f)


@pytest.mark.parametrize(("h", "K"), [(2, 4), (3, 4), (4, 3)])
def test_theorem_2_one_node_on_a_regular_tree_meets_the_bound(h, K):
    system = pf.FrameletSystem(regular(h, K))
    for j0 in range(1, K + 1):
        c = system.decompose(np.eye(system.n), j0)  # every node, one per column
        framelets = c.array[len(c.scaling) :]
        assert (np.count_nonzero(framelets, axis=0) == (K - j0) * (h - 1)).all()  # the theorem's count: framelets
        assert (np.count_nonzero(c.array, axis=0) == (K - j0) * (h - 1) + 1).all()


def busiest(B):
    """The largest number of non-zero entries in a column of B."""
    return int(np.count_nonzero(B.toarray() if issparse(B) else B, axis=0).max(initial=0))


def dense_table(h, seed):
    return {L: admissible(np.random.default_rng(seed), L, 1) for L in range(2, h + 1)}


OTHER_FILTERS = {
    "halves": lambda h, seed: pf.haar_basis,
    "permutations": lambda h, seed: lambda L: pf.permuted(np.r_[L - 1, -np.ones(L - 1)]),
    "dense": lambda h, seed: dense_table(h, seed).get,
}


@given(st.sampled_from(list(OTHER_FILTERS)), trees(24), seeds, st.floats(0.05, 0.5))
def test_remark_2_other_sparse_filters_preserve_sparsity(name, tree, seed, density):
    """Theorem 2 with the fullest column of any B in place of h − 1. (The remark says rows; a node meets columns.)"""
    filters = OTHER_FILTERS[name](tree.h, seed)
    system = pf.FrameletSystem(tree, filters)
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(tree.n) * (rng.random(tree.n) < density)
    children = {int(L) for level in range(1, tree.K) for L in tree.n_children(level)} - {1}
    most = max((busiest(filters(L)[1]) for L in children), default=0)
    for j0 in range(1, tree.K + 1):
        c = system.decompose(csr_array(f[:, None]), j0).array
        assert c.count_nonzero() <= ((tree.K - j0) * most + 1) * np.count_nonzero(f)


@pytest.mark.parametrize(("h", "K"), [(2, 4), (4, 4), (8, 3)])
def test_remark_2_the_haar_basis_keeps_one_node_to_a_logarithm_of_h(h, K):
    assert busiest(pf.haar_basis(h).B) == log2(h)
    system = pf.FrameletSystem(regular(h, K), "haar-basis")
    for j0 in range(1, K + 1):
        c = system.decompose(np.eye(system.n), j0).array
        assert (np.count_nonzero(c, axis=0) == (K - j0) * log2(h) + 1).all()


@given(st.integers(1, 40))
def test_columns_of_the_haar_basis_are_as_full_as_halving_is_deep(children):
    assert busiest(pf.haar_basis(children).B) == ceil(log2(children))


@pytest.mark.parametrize(("h", "K"), [(2, 6), (3, 5), (4, 4), (8, 3)])
def test_remark_2_and_theorem_3_on_regular_trees(h, K):
    """K − 1 = log_h n; M is of order n h and nnz(F) of order n h log_h n, here with their constants."""
    tree = regular(h, K)
    system, n = pf.FrameletSystem(tree), tree.n
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
    """A caterpillar, one leaf split off per level: n = O(h^(K−1)) holds, yet nnz(F) is of order n², not n h log_h n."""
    nested = [0, 1]
    for leaf in range(2, 200):
        nested = [leaf, nested]
    tree = pf.Hierarchy.from_nested(nested)
    assert tree.h == 2
    assert tree.n <= 2 ** (tree.K - 1)
    system = pf.FrameletSystem(tree)
    assert system.nnz() > 4 * tree.n * 2 * log(tree.n) / log(2)
    assert system.nnz() > tree.n**2 / 2


@pytest.mark.parametrize("h", [2, 4, 8])
def test_remark_3_the_frame_is_sparse_where_h_is_small(h):
    """Of M n entries of F at most the share 2K/(n − 1) is not zero, and it falls as the tree grows."""
    shares = []
    for K in range(2, 6 if h < 8 else 5):
        system = pf.FrameletSystem(regular(h, K))
        shares.append(system.nnz() / (system.count() * system.n))
        assert shares[-1] <= 2 * K / (system.n - 1)
    assert (np.diff(shares) < 0).all()


class Counted:
    """A sparse matrix that counts the multiplications it takes part in."""

    total = 0

    def __init__(self, matrix):
        self.matrix = matrix

    def __matmul__(self, x):
        rows = np.diff(x.indptr) if issparse(x) else np.full(len(x), x.shape[1])  # a product meets non-zeros only
        Counted.total += int(rows[self.matrix.indices].sum())
        return self.matrix @ x


@given(trees())
def test_theorem_3_framelets_are_made_with_one_multiplication_per_entry(tree):
    """Generating F costs what F holds: for each level n for Φ, and at most n (h − 1), counted here, for Ψ.

    That is O(n h K), which is the theorem's O(n h log_h n) where K is of order log_h n.
    """
    system = pf.FrameletSystem(tree)
    entries = [system.framelets(j).nnz for j in range(1, tree.K)]
    for j in range(1, tree.K):
        assert system.scaling(j).nnz == tree.n
        assert entries[j - 1] <= tree.n * (tree.h - 1)
        system._level(j).B = Counted(system._level(j).B)
    for j0 in range(1, tree.K + 1):
        Counted.total = 0
        assert system.matrix(j0).nnz == tree.n + sum(entries[j0 - 1 :])
        assert Counted.total == sum(entries[j0 - 1 :])


# ---------------------------------------------------------------- Theorem 5


def operations(system, j0=1):
    """The multiplications of one decomposition and of one reconstruction of one signal."""
    tree = system.hierarchy
    counting = Transforms(system._levels, tree.order, Counted)
    f = signal(tree, 0, 1)
    Counted.total = 0
    c = counting.decompose(f, j0)
    down, Counted.total = Counted.total, 0
    np.testing.assert_allclose(counting.reconstruct(c, j0), f, atol=1e-12)
    return down, Counted.total


@pytest.mark.parametrize("h", [2, 4, 8])
@pytest.mark.parametrize("K", [3, 4, 5])
def test_theorem_5_the_fast_transforms_take_order_nh_operations(h, K):
    tree = regular(h, K)
    system = pf.FrameletSystem(tree)
    down, up = operations(system)
    # Per cluster h for the scaling coefficient and 2 h (h − 1)/2 for the framelets; (n − 1)/(h − 1) clusters.
    assert down == up == (tree.n - 1) // (h - 1) * h * h
    assert down <= 2 * tree.n * h
    assert K == 3 or down < system.nnz()  # fewer than one product with the matrix takes


@given(trees())
def test_theorem_5_the_fast_transforms_take_the_squares_of_the_numbers_of_children(tree):
    """Σ L_Λ² ≤ 2h(n−1) and one for every single child: O(nh) for trees without long chains of single children."""
    system = pf.FrameletSystem(tree)
    for j0 in range(1, tree.K + 1):
        children = np.concatenate([[0], *(tree.n_children(j) for j in range(j0, tree.K))]).astype(int)
        squares = int((children**2).sum())
        assert operations(system, j0) == (squares, squares)
        # L² ≤ 2h (L − 1) where L ≥ 2, and L − 1 adds up to n less the clusters that it starts from.
        assert squares <= 2 * tree.h * (tree.n - tree.n_clusters[j0 - 1]) + (children == 1).sum()


def test_theorem_5_needs_more_than_it_says():
    """A caterpillar: h = 2, and every leaf hangs at the end of a chain of single children; about n²/2, not O(nh)."""
    n = 60
    nested = [0, 1]
    for leaf in range(2, n):
        nested = [leaf, nested]
    tree = pf.Hierarchy.from_nested(nested)
    assert (tree.h, tree.K) == (2, n)
    chains = (n - 1) * (n - 2) // 2
    assert operations(pf.FrameletSystem(tree)) == (4 * (n - 1) + chains,) * 2
    assert chains > 10 * n * tree.h


# ------------------------------------------------- the appendix's listings: Algorithms 1 to 3


def binary_haar_of(cluster):
    """p and B of a cluster, B dense."""
    p, rows = plain.pair_filters(cluster)
    return p, np.reshape(rows, (-1, cluster.n_children))


def algorithm_1(tree, j0):
    """Algorithm 1: framelets as dictionaries of their non-zero entries, and the multiplications that it took.

    The printed loop, j = 2 to j0 − 1, is not what the text describes: levels go from K − 1 down to j0.
    """
    phi = {leaf.index: {int(leaf.nodes[0]): 1.0} for leaf in plain.clusters(tree, tree.K)}
    psi, multiplications = {}, 0
    for level in range(tree.K - 1, j0 - 1, -1):
        for cluster in plain.clusters(tree, level):
            children = [phi[child.index] for child in tree.children(cluster.index)]
            p, B = binary_haar_of(cluster)
            # Children do not overlap, so sums of them need no addition.
            made = [
                {node: weight * value for weight, child in zip(row, children, strict=True) if weight
                 for node, value in child.items()}
                for row in (p, *B)
            ]  # fmt: skip
            phi[cluster.index], psi[cluster.index] = made[0], made[1:]
            multiplications += sum(map(len, made))
    rows = [phi[cluster.index] for cluster in plain.clusters(tree, j0)]
    for level in range(j0, tree.K):
        rows += [vector for cluster in plain.clusters(tree, level) for vector in psi[cluster.index]]
    return rows, multiplications


@given(trees(24))
def test_algorithm_1_generates_the_frame_at_the_cost_of_its_entries(tree):
    """Theorem 3 as a count: n multiplications a level for Φ and nnz(Ψ_j) for Ψ, at most n h (K − j0) in all."""
    system = pf.FrameletSystem(tree)
    for j0 in range(1, tree.K + 1):
        rows, multiplications = algorithm_1(tree, j0)
        dense = np.zeros((len(rows), tree.n))
        for row, vector in zip(dense, rows, strict=True):
            row[list(vector)] = list(vector.values())
        np.testing.assert_allclose(system.matrix(j0).toarray(), dense, atol=1e-12)
        levels = range(j0, tree.K)
        assert multiplications == len(levels) * tree.n + sum(system.framelets(j).nnz for j in levels)
        assert multiplications <= tree.n * tree.h * len(levels)


def algorithm_2(tree, f, j0, filters=binary_haar_of):
    """Algorithm 2: x and y of clusters by equation (14), and the multiplications that it took."""
    x = {leaf.index: f[leaf.nodes[0]] for leaf in plain.clusters(tree, tree.K)}
    y, multiplications = {}, 0
    for level in range(tree.K - 1, j0 - 1, -1):
        for cluster in plain.clusters(tree, level):
            C = pf.left_inverse(*filters(cluster))
            found = np.array([x[child.index] for child in tree.children(cluster.index)]) @ C
            x[cluster.index], y[cluster.index] = found[0], found[1:]
            multiplications += np.count_nonzero(np.abs(C) > 1e-12)
    return {cluster.index: x[cluster.index] for cluster in plain.clusters(tree, j0)}, y, multiplications


def algorithm_3(tree, x, y, j0, filters=binary_haar_of):
    """Algorithm 3: the signal from x at level j0 and all y by equation (16), and the multiplications that it took."""
    x, multiplications = dict(x), 0
    for level in range(j0, tree.K):
        for cluster in plain.clusters(tree, level):
            p, B = filters(cluster)
            r = x[cluster.index] * p + y[cluster.index] @ B
            x.update({child.index: value for child, value in zip(tree.children(cluster.index), r, strict=True)})
            multiplications += np.count_nonzero(p) + np.count_nonzero(B)
    f = np.empty(tree.n)
    for leaf in plain.clusters(tree, tree.K):
        f[leaf.nodes[0]] = x[leaf.index]
    return f, multiplications


@given(trees(24), seeds)
def test_algorithms_2_and_3_and_theorem_5_listed_and_counted(tree, seed):
    """The listings give our coefficients and the signal back, with Σ L² multiplications each, as ours take."""
    f = signal(tree, seed, None)
    system = pf.FrameletSystem(tree)
    for j0 in range(1, tree.K + 1):
        x, y, down = algorithm_2(tree, f, j0)
        levels = [plain.clusters(tree, level) for level in range(j0, tree.K)]
        listed = [*x.values(), *(value for level in levels for cluster in level for value in y[cluster.index])]
        np.testing.assert_allclose(system.decompose(f, j0).array, listed, atol=1e-10)
        back, up = algorithm_3(tree, x, y, j0)
        np.testing.assert_allclose(back, f, atol=1e-10)
        assert down == up == sum(cluster.n_children**2 for level in levels for cluster in level)
        assert (down, up) == operations(system, j0)


@given(trees(24), seeds, st.integers(0, 2))
def test_algorithms_2_and_3_take_any_filters_of_theorem_1(tree, seed, extra):
    rng = np.random.default_rng(seed)
    table = {L: admissible(rng, L, extra) for L in range(2, tree.h + 1)}
    filters = lambda c: table.get(c.n_children, (np.ones(1), np.empty((0, 1))))  # noqa: E731
    f = rng.standard_normal(tree.n)
    x, y, _ = algorithm_2(tree, f, 1, filters)
    np.testing.assert_allclose([*x.values()], pf.FrameletSystem(tree, table).decompose(f).scaling, atol=1e-9)
    np.testing.assert_allclose(algorithm_3(tree, x, y, 1, filters)[0], f, atol=1e-9)


def test_equations_17_and_18_need_the_framelets_of_level_j0():
    """The printed maps between f and its coefficients start at level j0 + 1; without level j0 f does not come back."""
    tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    f = np.arange(8.0) ** 2
    for j0 in (1, 2, 3):
        x, y, _ = algorithm_2(tree, f, j0)
        np.testing.assert_allclose(algorithm_3(tree, x, y, j0)[0], f, atol=1e-12)
        printed = {index: values if len(index) > j0 else 0 * values for index, values in y.items()}
        assert np.abs(algorithm_3(tree, x, printed, j0)[0] - f).max() > 0.1


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
    old, new = pf.FrameletSystem(tree), pf.FrameletSystem(both)
    for j0 in range(1, tree.K + 1):
        star, signs = exhibit(tree, shuffled, j0)
        wanted = signs[:, None] * old.matrix(j0).toarray()[star][:, perm]
        np.testing.assert_allclose(new.matrix(j0).toarray(), wanted, atol=1e-12)


@given(st.integers(2, 8), seeds)
def test_equations_9_and_10_a_reordering_of_children_is_one_of_rows_with_signs(children, seed):
    """pᵀQ = pᵀ and B Q = S R B with a permutation R and signs S: the claim in the proof of Theorem 4 (ii)."""
    p, B = pf.binary_haar(children)
    order = np.random.default_rng(seed).permutation(children)
    np.testing.assert_array_equal(p[order], p)
    rows = B.toarray()
    overlaps = np.round(children / 2 * rows[:, order] @ rows.T, 9)  # ±1 where a row is another's, up to its sign
    R = np.abs(overlaps) == 1
    assert (R.sum(axis=0) == 1).all()
    assert (R.sum(axis=1) == 1).all()
    np.testing.assert_allclose(np.where(R, overlaps, 0.0) @ rows, rows[:, order], atol=1e-12)


def test_remark_4_theorem_4_ii_is_special_to_the_binary_haar_system():
    """An orthonormal Haar basis, as in the works that the remark names, depends on the order of children."""
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


# ------------------------------------------------------------ Algorithms 2 and 3


@given(trees(), seeds, st.sampled_from(FAMILIES), st.sampled_from([None, 1, 3]))
def test_algorithms_2_and_3_equal_matrix_products_and_invert_each_other(tree, seed, family, columns):
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


def eigenvalues(system, j0=1):
    """The least and the largest eigenvalue of FᵀF: the best frame bounds there are."""
    F = system.matrix(j0).toarray()
    values = np.linalg.eigvalsh(F.T @ F)
    return values[0], values[-1]


@given(trees(), st.sampled_from(FAMILIES))
def test_frame_bounds_are_one(tree, family):
    system = pf.FrameletSystem(tree, *family)
    for j0 in range(1, tree.K + 1):
        np.testing.assert_allclose(system.frame_bounds(j0), (1.0, 1.0), atol=1e-12)
        np.testing.assert_allclose(eigenvalues(system, j0), (1.0, 1.0), atol=1e-12)


@given(trees(24), seeds)
def test_frame_bounds_enclose_what_wrong_filters_give(tree, seed):
    rng = np.random.default_rng(seed)
    table = {}
    for L in range(2, tree.h + 1):
        p, B = admissible(rng, L)
        wrong = rng.standard_normal(B.shape)
        table[L] = p, B + 0.02 * wrong / np.linalg.norm(wrong, 2)
    system = unchecked(tree, table)
    for j0 in range(1, tree.K + 1):
        (low, high), (least, largest) = system.frame_bounds(j0), eigenvalues(system, j0)
        assert 0 < low <= least + 1e-12
        assert largest - 1e-12 <= high
        assert (largest - least > 1e-4) == (tree.n_clusters[j0 - 1] < tree.n)


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0])
def test_frame_bounds_of_one_pair_are_the_eigenvalues(c):
    p, B = pf.haar_basis(2)
    system = unchecked(pf.Hierarchy.from_nested([0, 1]), {2: (p, np.sqrt(c) * B)})
    np.testing.assert_allclose(eigenvalues(system), (min(c, 1), max(c, 1)), atol=1e-12)
    np.testing.assert_allclose(system.frame_bounds(), eigenvalues(system), atol=1e-12)


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
def test_equation_12_the_left_inverse(seed, children, extra):
    rng = np.random.default_rng(seed)
    p, B = admissible(rng, children, extra)
    np.testing.assert_allclose(pf.left_inverse(p, B), np.column_stack([p, B.T]), atol=1e-10)
    general = rng.standard_normal((children + extra, children))
    C = pf.left_inverse(unit(rng, children), general)
    assert C.shape == (children, 1 + len(general))
    q = unit(np.random.default_rng(seed), children)
    np.testing.assert_allclose(pf.left_inverse(q, general) @ np.vstack([q, general]), np.eye(children), atol=1e-6)


# -------------------------------------------------------------------- Remark 5


@given(trees(24), st.integers(1, 4))
def test_remark_5_fsgnn_has_the_hops_and_type_b_the_scales_as_well(tree, hops):
    """1 + r channels for one kind of hop, 1 + 2r for all, and 1 + r + K for PEGFAN's type b; 1 + K for type a."""
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(tree.n - 1)], n=tree.n, features=np.eye(tree.n))
    system = pf.FrameletSystem(tree)
    counts = {r: len(make_fsgnn_channels(graph, hops, r)) for r in ("homophily", "heterophily", "all")}
    assert counts == {"homophily": 1 + hops, "heterophily": 1 + hops, "all": 1 + 2 * hops}
    for regime in ("homophily", "heterophily"):
        fsgnn = make_fsgnn_channels(graph, hops, regime).names
        a, b, c = (pf.make_channels(graph, system, kind, regime, hops=hops).names for kind in "abc")
        assert b == (*fsgnn, *a[1:])
        assert (len(a), len(b), len(c)) == (1 + tree.K, 1 + hops + tree.K, 1 + hops + tree.K)
        assert c[: 1 + hops] == fsgnn


# ------------------------------------------------- projections (Section IV)


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
