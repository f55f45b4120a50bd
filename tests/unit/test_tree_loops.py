"""Loops in C of trees and of relations do what their plain twins do, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pegfan import _hashing, _matrices
from pegfan.relations import _kernels as relations
from pegfan.trees import _kernels, _linear
from support.matrices import hashes, matrix, parts, square
from support.twins import same_as_twin, twin_of

seeds = st.integers(0, 2**32 - 1)
indices = st.sampled_from([np.int32, np.int64])


@given(seeds, st.integers(1, 60), indices)
def test_rows_are_hashed_in_c(seed, n, index):
    rng = np.random.default_rng(seed)
    A = square(rng, n, index)
    bits = A.data.view(np.uint64)
    rows = rng.permutation(n)[: rng.integers(n + 1)].astype(index)
    for columns in (A.indices, A.indices.astype(np.int32)):
        for with_self in (False, True):
            out = np.zeros(len(rows), np.uint64)
            same_as_twin(_hashing.hash_rows, rows, A.indptr, columns, bits, with_self, out)
    for x in (A.toarray(), A.toarray().astype(np.float32), np.zeros((n, 0))):
        *_, dense = same_as_twin(_hashing.hash_dense_rows, x, np.zeros(n, np.uint64))
        np.testing.assert_array_equal(dense, _hashing.row_hashes(sparse.csr_array(x)))
    same_as_twin(_hashing.fold_words, hashes(rng, n), hashes(rng, 8))
    colours, factor = hashes(rng, n), np.uint64(rng.integers(9))
    same_as_twin(_kernels.gather_colours, A.indptr, A.indices, bits, colours, factor, hashes(rng, n))
    labels = rng.integers(0, 7, n).astype(index)
    same_as_twin(_kernels.add_by_label, labels, hashes(rng, n), hashes(rng, 7))
    same_as_twin(_kernels.add_rows, labels, rng.standard_normal((n, 3)), np.zeros((7, 3)))


@given(seeds, st.integers(1, 300))
def test_leading_bits_are_taken_in_c(seed, n):
    rng = np.random.default_rng(seed)
    weights = rng.random(n) * 2.0 ** rng.integers(-1074, 900, n).astype(float)
    weights[rng.random(n) < 0.2] = 0.0
    weights[rng.random(n) < 0.2] = 1.0
    same_as_twin(_kernels.leading_bits, weights, float(weights.max()) or 1.0, np.zeros(n, np.uint64))


@given(seeds, st.integers(1, 120), indices, st.booleans())
def test_components_are_found_in_c(seed, n, index, symmetric):
    from scipy.sparse.csgraph import connected_components

    rng = np.random.default_rng(seed)
    A = matrix(rng, n, n, index, per_row=1.0)
    A = sparse.csr_array(A + A.T) if symmetric else A
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    out = np.zeros(n, index), np.zeros(n, index)
    *_, labels = same_as_twin(_kernels.components, A.indptr, A.indices, symmetric, *out, scratch=(3,))
    np.testing.assert_array_equal(labels, connected_components(A, connection="weak")[1])


@given(seeds, st.integers(1, 60), indices, st.integers(1, 2**63))
def test_weights_are_shaken_in_c(seed, n, index, shake):
    A = square(np.random.default_rng(seed), n, index, symmetric=True)
    before = A.data.copy()
    *_, after = same_as_twin(_kernels.shake_weights, A.indptr, A.indices, np.uint64(shake), A.data)
    assert ((before / 4 <= after) & (after <= before * 4)).all()
    shaken = sparse.csr_array((after, A.indices, A.indptr), shape=A.shape)
    assert (shaken != shaken.T).nnz == 0  # an edge has one factor, whichever of its ends it is looked at from


def joined(pairs, n, most, count, join, settle):
    clusters = [np.full(n, -1, pairs.dtype) for _ in range(2)]
    for some in np.array_split(pairs, count):
        join(np.ascontiguousarray(some), most, *clusters)
    settle(*clusters)
    return clusters


@given(seeds, st.integers(2, 120), indices, st.integers(2, 6))
def test_matching_is_done_in_c(seed, n, index, most):
    rng = np.random.default_rng(seed)
    A = square(rng, n, index, symmetric=True)
    count = int((A.indices > np.repeat(np.arange(n), np.diff(A.indptr))).sum())
    root = np.sqrt(rng.random(n) + 0.1)
    given_ = (*parts(A), root, 0, np.zeros((count, 2), index), np.zeros(count))
    *_, pairs, score = same_as_twin(_kernels.upper_pairs, *given_)
    cut = int(rng.integers(0, n))  # the lower rows by themselves
    below = (A.indptr[cut:] - A.indptr[cut], A.indices[A.indptr[cut] :], A.data[A.indptr[cut] :])
    late = int((pairs[:, 0] >= cut).sum())
    *_, last, _ = same_as_twin(_kernels.upper_pairs, *below, root, cut, np.zeros((late, 2), index), np.zeros(late))
    np.testing.assert_array_equal(last, pairs[count - late :])
    if count:
        _, ends = same_as_twin(_kernels.height_range, score, np.zeros(2))
        *_, keys = same_as_twin(_kernels.score_keys, score, *ends.tolist(), np.zeros(count, np.uint16))
        in_order = pairs[np.argsort(keys, kind="stable")]
        *_, pairs = same_as_twin(_kernels.sort_pairs, pairs, score, *ends.tolist(), np.zeros_like(pairs))
        np.testing.assert_array_equal(pairs, in_order)
    loops = _kernels.join_pairs, _kernels.settle_clusters
    plain = joined(pairs, n, most, 1, *map(twin_of, loops))
    for parts_of_pairs in (1, 3):  # ways to the first node of a cluster may differ until they are settled
        np.testing.assert_array_equal(joined(pairs, n, most, parts_of_pairs, *loops), plain)


@given(seeds, st.integers(1, 60), indices)
def test_entries_of_rows_are_listed_in_c(seed, n, index):
    rng = np.random.default_rng(seed)
    A = square(rng, n, index)
    rows = rng.integers(0, n, 20).astype(index)
    size = int(np.diff(A.indptr)[rows].sum())
    *_, entries = same_as_twin(_kernels.row_entries, rows, A.indptr, np.zeros(size, index))
    np.testing.assert_array_equal(A.indices[entries], A[rows].indices)


@given(seeds, st.integers(1, 400), indices, st.integers(1, 9000))
def test_clusters_are_summed_in_c(seed, n, index, spread):
    """Few clusters and many: these are found by one layer of bits, or by three."""
    rng = np.random.default_rng(seed)
    A = square(rng, n, index, symmetric=True)
    labels = rng.integers(0, spread, n)
    labels[0] = spread - 1  # labels that nobody has are allowed here, and make rows of bits long
    members, first = _matrices.by_label(labels.astype(index), spread)
    out = np.zeros(spread + 1, index), np.zeros(A.nnz, index), np.zeros(A.nnz)
    *_, pointers, columns, sums = same_as_twin(
        _kernels.sum_between, members, first, labels.astype(index), 0, spread, *parts(A), *out
    )
    start = int(rng.integers(0, spread))  # the lower rows by themselves
    out = np.zeros(spread - start + 1, index), np.zeros(A.nnz, index), np.zeros(A.nnz)
    *_, here, some, weights = same_as_twin(
        _kernels.sum_between, members, first[start:], labels.astype(index), start, spread, *parts(A), *out
    )
    np.testing.assert_array_equal(here, pointers[start:] - pointers[start])
    np.testing.assert_array_equal(some[: here[-1]], columns[pointers[start] : pointers[-1]])
    np.testing.assert_array_equal(weights[: here[-1]], sums[pointers[start] : pointers[-1]])


@given(seeds, st.integers(2, 150), st.integers(1, 12))
def test_points_are_merged_in_c(seed, n, d):
    rng = np.random.default_rng(seed)
    centres = np.round(rng.standard_normal((d, n)), int(rng.integers(0, 8)))  # coarse ones have ties
    given_ = (centres, np.zeros((n - 1, 2), np.int64), np.zeros(n - 1), np.zeros(1, np.uint8))
    _, merged, heights, _ = same_as_twin(_kernels.ward_merges, *given_, scratch=(0,))
    order = np.argsort(heights, kind="stable")
    same_as_twin(_kernels.name_merges, merged[order], np.zeros((n - 1, 4)))


@given(seeds, st.integers(1, 50), st.integers(1, 20), indices)
def test_linear_algebra_is_done_in_c(seed, n, width, index):
    rng = np.random.default_rng(seed)
    x, y, z = (rng.standard_normal((n, width)) for _ in range(3))
    A = matrix(rng, n, n, index)
    same_as_twin(_linear.row_sums, A.indptr, A.data, np.zeros(n))
    same_as_twin(_linear.add_outer, rng.random(n), 0.3, x, y)
    same_as_twin(_linear.combine, 1.5, x, -0.7, y, 0.1, z, np.zeros((n, width)))
    *_, g = same_as_twin(_linear.gram, x, x, np.zeros((width, width)))
    same_as_twin(_linear.rotate, x, rng.standard_normal((width, 7)), np.zeros((n, 7)))
    x[rng.random(n) < 0.2] = 0.0
    same_as_twin(_linear.scale_rows, x)
    same_as_twin(_linear.column_norms, x, np.zeros(width))
    same_as_twin(_linear.fill, x, 3, rng.random(width) < 0.5)
    same_as_twin(_linear.orthonormal, g, np.zeros((width, width)), np.zeros(width, bool))
    square_ = rng.standard_normal((width, width))
    if rng.random() < 0.5:
        square_ = np.round(square_)  # eigenvalues that meet
    same_as_twin(_linear.symmetric_eigen, square_ + square_.T, np.zeros(width), np.zeros((width, width)))


@given(seeds, st.integers(2, 30), st.integers(1, 4), st.booleans())
def test_relations_are_made_in_c(seed, n, layers, around):
    rng = np.random.default_rng(seed)
    edges = sparse.csr_array(np.triu(rng.random((n, n)) < 0.15, 1))
    edges = sparse.csr_array(edges + edges.T)
    degrees, own = np.unique(np.diff(edges.indptr), return_inverse=True)
    degrees = degrees.astype(np.int64)
    order = np.argsort(own, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(own))])
    out = np.zeros((n, int(rng.integers(1, n))), np.int32)
    *_, candidates = same_as_twin(relations.nearest_degrees, order, first, degrees, around, out)
    component = sparse.csgraph.connected_components(edges, directed=False)[1]
    reach = np.bincount(component)[component]
    stamp, queue, counts = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros(len(degrees), np.int32)
    sizes, which, many = np.zeros((n, layers), np.int64), *np.ones((2, n * n), np.int32)
    arcs = edges.indptr.astype(np.int32), edges.indices.astype(np.int32)
    searched = (*arcs, own, reach, 0, stamp, queue, counts, sizes, which, many)
    *_, sizes, which, many = same_as_twin(relations.rings, *searched, scratch=(5, 6))
    stops = np.cumsum(sizes).reshape(sizes.shape)
    lists = np.column_stack([stops[:, 0] - sizes[:, 0], stops[:, 0]])
    values, room, nothing = degrees + 0.5, np.zeros((4, len(degrees))), np.zeros(candidates.shape)
    compared = (0, n, candidates, lists, which, many, values, nothing, room)
    *_, distances, _ = same_as_twin(relations.add_distances, *compared, scratch=(8,))
    same_as_twin(relations.relation_weights, distances, np.zeros_like(distances))
    near = rng.permuted(np.tile(np.arange(len(degrees)), (len(degrees), 1)), axis=1)
    nodes = np.zeros((n, int(rng.integers(1, n))), np.int64)
    same_as_twin(relations.nearest_nodes, order, first, near, rng.random(near.shape), nodes, np.zeros(nodes.shape))
