"""Matrices and labels that are moved by counting equal what SciPy and NumPy make of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pegfan as pf
from pegfan._matrices import by_label, csr_of, merged, moved, sorted_hashes, transposed
from pegfan.trees.builders.matching import matching
from pegfan.trees.hierarchy import by_appearance
from pegfan.trees.level import coarsen, first_level

seeds = st.integers(0, 2**32 - 1)


def random_matrix(seed, rows, columns, dtype=np.float64, density=0.2):
    rng = np.random.default_rng(seed)
    made = sparse.csr_array(sparse.random_array((rows, columns), density=density, rng=rng))
    made.sum_duplicates()
    return sparse.csr_array((made.data.astype(dtype), made.indices, made.indptr), shape=made.shape)


def same_matrix(one, other):
    other = sparse.csr_array(other)
    other.sort_indices()
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    assert one.indices.dtype == other.indices.dtype
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


@given(seeds, st.integers(1, 70), st.sampled_from([np.float32, np.float64, np.longdouble, np.int16]), st.floats(0, 1))
def test_rows_and_columns_move_as_scipy_moves_them(seed, n, dtype, density):
    rng = np.random.default_rng(seed)
    A = random_matrix(seed, n, n, dtype, density)
    nodes = rng.permutation(n)[: rng.integers(1, n + 1)]
    same_matrix(moved(A, nodes), A[nodes][:, nodes])
    same_matrix(transposed(A), A.T)


@given(seeds, st.integers(1, 40), st.integers(1, 40))
def test_matrices_merge_as_scipys_do(seed, rows, columns):
    A, B = random_matrix(seed, rows, columns), random_matrix(seed + 1, rows, columns)
    same_matrix(merged(A, B), A + B)
    same_matrix(merged(A, B, largest=True), A.maximum(B))
    same_matrix(transposed(A), A.T)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_labels_are_listed_in_order(labels):
    labels = np.array(labels)
    members, first = by_label(labels, 31)
    np.testing.assert_array_equal(members, np.argsort(labels, kind="stable"))
    np.testing.assert_array_equal(np.diff(first), np.bincount(labels, minlength=31))


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=60), st.integers(1, 20))
def test_labels_are_numbered_as_they_appear(labels, few):
    for given_ in (np.array(labels), np.abs(np.array(labels)) % few):
        seen = list(dict.fromkeys(given_.tolist()))
        assert by_appearance(given_).tolist() == [seen.index(label) for label in given_.tolist()]


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), min_size=1, max_size=80))
def test_hashes_are_sorted_and_numbered(values):
    hashes = np.array(values, np.uint64)
    order, number, again = sorted_hashes(hashes, np.int32)
    _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(order, np.argsort(hashes, kind="stable"))
    np.testing.assert_array_equal(number, inverse[order])
    np.testing.assert_array_equal(again, counts[inverse[order]] > 1)


def test_matrices_are_made_of_the_arrays_given():
    block = np.zeros(100)
    values, columns, pointers = block[:2], np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32)
    made = csr_of(values, columns, pointers, (2, 2))
    assert made.data.base is block
    made.data[:] = 3.0
    assert made.toarray().tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert block[:2].tolist() == [3.0, 3.0]


@given(seeds, st.integers(5, 150), st.booleans())
def test_a_builder_of_ones_own_may_keep_what_it_sees(seed, n, directed):
    """What it kept stays as it was, and the tree is that of the named builder."""
    rng = np.random.default_rng(seed)
    graph = pf.Graph.from_edges(rng.integers(0, n, (3 * n, 2)), rng.random(3 * n), n=n, directed=directed)
    kept = []

    def own(level, h):
        kept.append((level.edges, level.edges.copy()))
        return matching(level, h)

    tree = pf.build_tree(graph, own)
    assert tree == pf.build_tree(graph, "matching")
    for edges, as_they_were in kept:
        same_matrix(edges, as_they_were)


def test_first_levels_leave_the_graph_alone():
    graph = pf.Graph.from_edges([[0, 0], [0, 1], [1, 2], [2, 3], [3, 4], [4, 4]], [5.0, 2.0, 1.0, 4.0, 3.0, 1.0])
    before = graph.adjacency.copy()
    for method in pf.trees.BUILDERS:
        pf.build_tree(graph, method, h=2)
    same_matrix(graph.adjacency, before)


@pytest.mark.parametrize("n", [1, 2])
def test_graphs_without_arcs_have_trees(n):
    graph = pf.Graph.from_edges(np.empty((0, 2), int), n=n)
    assert pf.build_tree(graph, "matching").n == n


def test_entries_that_stand_twice_are_moved_both():
    columns, pointers = np.array([2, 0, 2, 0, 1, 1] * 10), np.array([0, 6, 6, 60])
    twice = sparse.csr_array((np.arange(1.0, 61.0), columns, pointers), shape=(3, 3))
    order = [2, 0, 1]
    np.testing.assert_array_equal(moved(twice, order).toarray(), twice.toarray()[order][:, order])


def test_nodes_that_are_not_there_are_refused():
    A = random_matrix(0, 5, 5)
    for wrong in ([-1], [5], [0, 7]):
        with pytest.raises(IndexError):
            moved(A, wrong)
    assert moved(A, [0, 0, 0, 0, 0]).shape == (5, 5)  # not an order, and yet no write beyond an array


def test_coarsening_wants_one_label_per_node():
    level = first_level(pf.Graph.from_edges([[0, 1], [1, 2]]), np.arange(3), "symmetric")
    for wrong in ([0, 1], [0, -1, 1]):
        with pytest.raises(ValueError, match="a label of 0 or more for each of 3 nodes"):
            coarsen(level, np.array(wrong))
