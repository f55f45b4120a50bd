"""Compiled loops: the functions in C do what the loops in Python say, to the last bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import pegfan as pf
from pegfan import _hashing, _matrices
from pegfan._compiled import Loop, native
from pegfan.channels import _kernels as of_channels
from pegfan.trees import _kernels as of_trees
from pegfan.trees import _linear

seeds = st.integers(0, 2**32 - 1)
indices = st.sampled_from([np.int32, np.int64])
needs_the_extension = pytest.mark.skipif(native is None, reason="the C extension was not built")


def same(loop, *args, scratch=()):
    """Check that a loop does in C what it does in Python; `scratch` are arguments whose contents are of no use then."""
    key = tuple(a.dtype if isinstance(a, np.ndarray) else None for a in args)
    assert loop._match(key) is not None, f"{loop.__name__} is not in C for {key}"
    runs = [[a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)]
    results = [run(*given) for run, given in zip((loop, loop.by_numba), runs, strict=True)]
    assert results[0] == results[1]
    for i, (one, other) in enumerate(zip(*runs, strict=True)):
        if isinstance(one, np.ndarray) and i not in scratch:
            assert one.tobytes() == other.tobytes(), f"{loop.__name__}: argument {i}"
    return runs[0]


# ------------------------------------------------------------------------------------------------ trees and channels


def matrix(rng, rows, columns, index, per_row=4.0, like=None):
    """A sparse matrix of weights that span many powers of ten; some rows are long, some empty."""
    density = min(per_row / max(columns, 1), 1.0)
    made = csr_array(random_array((rows, columns), density=density, rng=rng, format="csr"))
    if rows and rng.random() < 0.5:
        made = made.tolil()
        made[int(rng.integers(rows))] = rng.random(columns)
        made = csr_array(made)
    made.data[:] = rng.random(made.nnz) * 10.0 ** rng.integers(-5, 5, made.nnz)
    made.sum_duplicates()
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def square(rng, n, index, symmetric=False):
    made = matrix(rng, n, n, index)
    if symmetric:
        made = csr_array(made + made.T)
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def parts(made):
    return made.indptr, made.indices, made.data


def hashes(rng, size):
    return rng.integers(0, 2**64, size, dtype=np.uint64)


@needs_the_extension
@given(seeds, st.integers(1, 80), indices)
def test_rows_are_moved_in_c(seed, n, index):
    rng = np.random.default_rng(seed)
    A = square(rng, n, index)
    order = rng.permutation(n)[: rng.integers(1, n + 1)].astype(index)
    place = np.full(n, -1, index)
    place[order] = np.arange(len(order))
    for data in (A.data.view(np.uint64), A.data.astype(np.float32).view(np.uint32)):
        rows = (A.indptr, A.indices, data)
        out = (np.zeros(A.nnz, index), np.zeros_like(data))
        pointers = np.zeros(len(order) + 1, index)
        *_, columns, values = same(_matrices.move_rows, order, place, *rows, pointers, *out)
        wanted = csr_array((data, A.indices, A.indptr), shape=(n, n))[order][:, order]
        wanted.sort_indices()
        np.testing.assert_array_equal(columns[: wanted.nnz], wanted.indices)
        np.testing.assert_array_equal(values[: wanted.nnz], wanted.data)
        places = rng.permutation(n).astype(index)
        same(_matrices.list_rows, places, *rows, *out)
        same(_matrices.transpose, *rows, np.zeros(n + 1, index), *out)


@needs_the_extension
@given(seeds, st.integers(1, 60), indices, st.booleans())
def test_matrices_are_merged_in_c(seed, n, index, largest):
    rng = np.random.default_rng(seed)
    A, B = square(rng, n, index), square(rng, n, index)
    size = A.nnz + B.nnz
    out = np.zeros(n + 1, index), np.zeros(size, index), np.zeros(size)
    same(_matrices.merge_rows, *parts(A), *parts(B), largest, *out)
    made, wanted = _matrices.merged(A, B, largest), A.maximum(B) if largest else A + B
    np.testing.assert_array_equal(made.toarray(), wanted.toarray())
    A.data[rng.random(A.nnz) < 0.2] = 0.0
    same(_matrices.drop_loops, *parts(A))


@needs_the_extension
@given(seeds, st.integers(1, 200), indices, st.integers(1, 300))
def test_labels_are_sorted_in_c(seed, n, index, most):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, most, n).astype(index)
    same(_matrices.order_by_label, labels, np.zeros(most + 1, index), np.zeros(n, index))
    same(_matrices.number_by_appearance, labels, np.zeros(most, index), np.zeros(n, index))
    same(_matrices.holds_each_once, labels, np.zeros(most, np.uint8), scratch=(1,))
    perm = rng.permutation(n).astype(index)
    same(_matrices.holds_each_once, perm, np.zeros(n, np.uint8), scratch=(1,))
    assert _matrices.holds_each_once(perm, np.zeros(n, np.uint8))
    same(of_trees.add_by_label, labels, hashes(rng, n), hashes(rng, most))
    x = rng.standard_normal((n, 3))
    same(of_trees.add_rows, labels, x, np.zeros((most, 3)))


@needs_the_extension
@given(seeds, st.integers(1, 3000), st.integers(1, 5000), indices)
def test_hashes_are_sorted_in_c(seed, n, distinct, index):
    rng = np.random.default_rng(seed)
    values = hashes(rng, distinct)[rng.integers(0, distinct, n)]
    values >>= np.uint64(rng.integers(0, 64))
    *_, order = same(_matrices.sort_hashes, values, np.zeros_like(values), np.zeros(n, index))
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    same(_matrices.count_hashes, values, np.zeros_like(values), scratch=(0, 1))
    assert _matrices.count_hashes(values.copy(), np.empty_like(values)) == len(np.unique(values))


@needs_the_extension
@given(seeds, st.integers(1, 60), indices)
def test_rows_are_hashed_in_c(seed, n, index):
    rng = np.random.default_rng(seed)
    A = square(rng, n, index)
    bits = A.data.view(np.uint64)
    nodes = rng.permutation(n)[: rng.integers(n + 1)].astype(index)
    for with_self in (False, True):
        *_, every = same(_hashing.hash_rows, A.indptr, A.indices, bits, with_self, hashes(rng, n))
        *_, some = same(
            of_trees.hash_some_rows, nodes, A.indptr, A.indices, bits, with_self, np.zeros(len(nodes), np.uint64)
        )
        np.testing.assert_array_equal(some, every[nodes])
    for x in (A.toarray(), A.toarray().astype(np.float32), np.zeros((n, 0))):
        *_, dense = same(_hashing.hash_dense_rows, x, np.zeros(n, np.uint64))
        np.testing.assert_array_equal(dense, _hashing.row_hashes(csr_array(x)))
    same(_hashing.fold_words, hashes(rng, n), hashes(rng, 8))
    same(
        of_trees.gather_colours, A.indptr, A.indices, bits, hashes(rng, n), np.uint64(rng.integers(9)), hashes(rng, n)
    )


@needs_the_extension
@given(seeds, st.integers(1, 300))
def test_leading_bits_are_taken_in_c(seed, n):
    rng = np.random.default_rng(seed)
    weights = rng.random(n) * 2.0 ** rng.integers(-1074, 900, n).astype(float)
    weights[rng.random(n) < 0.2] = 0.0
    weights[rng.random(n) < 0.2] = 1.0
    same(of_trees.leading_bits, weights, float(weights.max()) or 1.0, np.zeros(n, np.uint64))


@needs_the_extension
@given(seeds, st.integers(1, 120), indices, st.booleans())
def test_components_are_found_in_c(seed, n, index, symmetric):
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(seed)
    A = matrix(rng, n, n, index, per_row=1.0)
    A = csr_array(A + A.T) if symmetric else A
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    out = np.zeros(n, index), np.zeros(n, index)
    *_, labels = same(of_trees.components, A.indptr, A.indices, symmetric, *out, scratch=(3,))
    np.testing.assert_array_equal(labels, connected_components(A, connection="weak")[1])


@needs_the_extension
@given(seeds, st.integers(2, 120), indices, st.integers(2, 6))
def test_matching_is_done_in_c(seed, n, index, most):
    rng = np.random.default_rng(seed)
    A = square(rng, n, index, symmetric=True)
    count = int((A.indices > np.repeat(np.arange(n), np.diff(A.indptr))).sum())
    for root in (np.sqrt(rng.random(n) + 0.1), np.empty(0)):
        given_ = (*parts(A), root, np.zeros((count, 2), index), np.zeros(count))
        *_, pairs, score = same(of_trees.upper_pairs, *given_)
    same(of_trees.common_weight, *parts(A), pairs, np.zeros(count))
    x = rng.standard_normal((n, 3))
    same(_linear.inner_products, pairs, x, np.zeros(count))
    if count:
        _, ends = same(of_trees.height_range, score, np.zeros(2))
        *_, pairs = same(of_trees.sort_pairs, pairs, score, *ends.tolist(), np.zeros_like(pairs))
    given_ = (pairs, most, np.zeros(n, index), np.zeros(n, bool))
    _, _, parent, alone = same(of_trees.join_in_order, *given_)
    same(of_trees.best_neighbours, pairs, parent, alone, np.zeros(n, index))


@needs_the_extension
@given(seeds, st.integers(1, 400), indices, st.integers(1, 9000))
def test_clusters_are_summed_in_c(seed, n, index, spread):
    """Few clusters and many: these are found by one layer of bits, or by three."""
    rng = np.random.default_rng(seed)
    A = square(rng, n, index, symmetric=True)
    labels = rng.integers(0, spread, n)
    labels[0] = spread - 1  # labels that nobody has are allowed here, and make rows of bits long
    members, first = _matrices.by_label(labels.astype(index), spread)
    out = np.zeros(spread + 1, index), np.zeros(A.nnz, index), np.zeros(A.nnz)
    same(of_trees.sum_between, members, first, labels.astype(index), *parts(A), *out)


@needs_the_extension
@given(seeds, st.integers(2, 150), st.integers(1, 12))
def test_points_are_merged_in_c(seed, n, d):
    rng = np.random.default_rng(seed)
    centres = np.round(rng.standard_normal((d, n)), int(rng.integers(0, 8)))  # coarse ones have ties
    given_ = (centres, np.zeros((n - 1, 2), np.int64), np.zeros(n - 1), np.zeros(1, np.uint8))
    _, merged, heights, _ = same(of_trees.ward_merges, *given_)
    order = np.argsort(heights, kind="stable")
    same(of_trees.name_merges, merged[order], np.arange(n), np.zeros((n - 1, 4)))


@needs_the_extension
@given(seeds, st.integers(1, 50), st.integers(1, 20), indices)
def test_linear_algebra_is_done_in_c(seed, n, width, index):
    rng = np.random.default_rng(seed)
    x, y, z = (rng.standard_normal((n, width)) for _ in range(3))
    A = matrix(rng, n, n, index)
    same(_linear.product, *parts(A), x, np.zeros((n, width)))
    same(_linear.row_sums, A.indptr, A.data, False, np.zeros(n))
    same(_linear.row_sums, A.indptr, A.data, True, np.zeros(n))
    same(_linear.add_outer, rng.random(n), 0.3, x, y)
    same(_linear.combine, 1.5, x, -0.7, y, 0.1, z, np.zeros((n, width)))
    *_, g = same(_linear.gram, x, x, np.zeros((width, width)))
    same(_linear.rotate, x, rng.standard_normal((width, 7)), np.zeros((n, 7)))
    x[rng.random(n) < 0.2] = 0.0
    same(_linear.scale_rows, x)
    same(_linear.column_norms, x, np.zeros(width))
    same(_linear.fill, x, 3, rng.random(width) < 0.5)
    same(_linear.orthonormal, g, np.zeros((width, width)), np.zeros(width, bool))
    square_ = rng.standard_normal((width, width))
    if rng.random() < 0.5:
        square_ = np.round(square_)  # eigenvalues that meet
    same(_linear.symmetric_eigen, square_ + square_.T, np.zeros(width), np.zeros((width, width)))


@needs_the_extension
@given(seeds, st.integers(1, 60), st.integers(1, 5), indices)
def test_sums_of_integers_are_taken_in_c(seed, n, width, index):
    rng = np.random.default_rng(seed)
    A = matrix(rng, n, n, index)
    A.data[:] *= 10.0 ** rng.integers(-290, 290, A.nnz).astype(float) * rng.choice([-1.0, 1.0], A.nnz)
    x = rng.standard_normal((n, width)) * 10.0 ** rng.integers(-10, 30, (n, width)).astype(float)
    same(of_channels.product, *parts(A), x, np.zeros((n, width)))
    *_, sums = same(of_channels.sums, A.indptr, A.data, np.zeros(n))
    ones = np.zeros((n, 1))
    of_channels.product(*parts(A), np.ones((n, 1)), ones)
    np.testing.assert_array_equal(sums, ones[:, 0])
    for both in (False, True):
        same(of_channels.divide_rows, *parts(A), rng.random(n) + 0.1, both, np.zeros(A.nnz))
    same(of_channels.count_terms, A.indptr, A.indices, rng.integers(0, 50, n), 60, np.zeros(n, np.int64))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["matching", "ward", "adjacency"])
def test_trees_are_the_same_in_c_and_in_python(seed, method, monkeypatch):
    from pegfan.trees import canonical

    rng = np.random.default_rng(seed)
    graph = pf.Graph.from_edges(rng.integers(0, 300, (700, 2)), rng.random(700), n=300, directed=seed == 1)
    options = {"direction": "out", "score": "cosine"} if seed == 1 else {}
    in_c = pf.build_tree(graph, method, **options)
    monkeypatch.setattr(Loop, "__call__", lambda self, *args: self.by_numba(*args))
    monkeypatch.setattr(canonical, "_known", {})
    assert pf.build_tree(graph, method, **options) == in_c


@needs_the_extension
def test_trees_and_channels_need_no_numba():
    code = """
import sys
import numpy as np
import pegfan as pf
from pegfan.channels import hop_matrix, structural_features
graph = pf.datasets.synthetic(0.3, n=120, n_edges=400, n_features=5, splits=0)
for method in ("auto", "ward", "matching", "adjacency"):
    for options in ({}, {"feature_weight": 0.5}, {"score": "cosine"}):
        pf.build_tree(graph, method, **options)
arcs = pf.Graph(graph.adjacency + graph.adjacency[::-1], directed=True)
for direction in ("symmetric", "in", "out"):
    pf.build_tree(arcs, "matching", direction=direction, score="cosine")
    for kind in ("S", "S~", "A", "random-walk"):
        hop_matrix(arcs, kind, direction)
structural_features(graph)
print("numba" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "False"
