"""Loops in C over matrices, products, channels and the networks of others do what their plain twins do, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pegfan import _hashing, _matrices, _products
from pegfan._products import product
from pegfan.channels import _sums, factors, hops
from pegfan.models import _kernels as models
from support.matrices import hashes, matrix, parts, square
from support.twins import same_as_twin, twin_of

seeds = st.integers(0, 2**32 - 1)
indices = st.sampled_from([np.int32, np.int64])
floats = st.sampled_from([np.float32, np.float64])


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@given(seeds, st.integers(0, 100))
def test_numbers_are_scrambled_in_c(seed, n):
    same_as_twin(_hashing.mix_all, hashes(np.random.default_rng(seed), n), np.zeros(n, np.uint64))


@given(st.integers(0, 2**63), st.one_of(st.just(32768), st.integers(1, 65535)), st.integers(0, 400))
def test_dropped_entries_equal_their_twin(seed, threshold, n):
    same_as_twin(_products._keep_entries, np.uint64(seed), np.uint64(threshold), np.full(n, 7, np.uint8))


@given(
    *(seeds, st.integers(0, 40), st.integers(0, 40), st.sampled_from([1, 3, 8, 15, 16, 17, 64, 67, 131])),
    *(st.sampled_from([np.float32, np.float64]), st.integers(1, 3)),
)
def test_products_have_the_bits_of_scipys(seed, n, m, width, dtype, threads):
    rng = np.random.default_rng(seed)
    M = sparse.random_array((n, m), density=0.3, rng=rng, format="csr", dtype=dtype)
    x = rng.standard_normal((m, width)).astype(dtype)
    assert same_bits(product(M, x, threads), np.asarray(M @ x))
    assert same_bits(product(M, x[:, 0], threads), np.asarray(M @ x[:, 0]))
    out = np.empty((n, width), dtype)
    assert same_bits(product(M, x, threads, out), out)
    twin_of(_products.sparse_product)(M.indptr, M.indices, M.data, x, out, 0, n)
    assert same_bits(out, np.asarray(M @ x))


def test_threads_share_a_large_product():
    rng = np.random.default_rng(0)
    M = sparse.random_array((3000, 3000), density=0.05, rng=rng, format="csr", dtype=np.float32)
    x = rng.standard_normal((3000, 64)).astype(np.float32)
    assert M.nnz * 64 > 3 * _products._WORTH
    assert same_bits(product(M, x, 3), product(M, x, 1))


@given(seeds, floats, st.integers(0, 30), st.integers(1, 4), st.integers(1, 19), st.booleans())
def test_attention_and_dropout_equal_their_twins(seed, dtype, n, heads, width, shared):
    rng = np.random.default_rng(seed)
    M = sparse.random_array((n, n), density=0.2, rng=rng, format="csr")
    pointers, indices = M.indptr.astype(np.int64), M.indices.astype(np.int32)

    def normal(*shape):
        return rng.standard_normal(shape).astype(dtype)

    x, y, out = normal(3, 7 * n)
    x[rng.random(x.shape) < 0.1] = np.nan
    mask, scale = (rng.random(x.size) < 0.5).astype(np.uint8), dtype(1 / 0.7)
    same_as_twin(models.drop, x, mask, scale, out)
    same_as_twin(models.relu_drop, x, mask, scale, out)
    same_as_twin(models.relu_drop_back, x, y, scale, out)
    same_as_twin(models.unit_rows, pointers, M.data.astype(dtype), np.zeros(M.nnz, dtype))
    source, target, weights = normal(n, heads), normal(n, heads), np.zeros((M.nnz, heads), dtype)
    scores = pointers, indices, source, target, dtype(0.2)
    expected = np.zeros_like(weights)
    models.attention(*scores, weights, np.zeros((2, heads), dtype))
    twin_of(models.attention)(*scores, expected, None)
    np.testing.assert_allclose(weights, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)  # another exp
    factors, z, gradient = normal(M.nnz, 1 if shared else heads), normal(n, heads, width), normal(n, heads, width)
    same_as_twin(models.attend, pointers, indices, weights, factors, z, np.zeros_like(z))
    room = np.zeros((int(np.diff(pointers).max(initial=0)) + 1, heads), dtype)
    same_as_twin(
        *(models.attend_back, pointers, indices, source, target, dtype(0.2), weights, factors, z, gradient),
        *(np.zeros_like(z), np.zeros_like(source), np.zeros_like(target), room),
        scratch={12},
    )


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
        *_, columns, values = same_as_twin(_matrices.move_rows, order, place, *rows, pointers, *out)
        wanted = sparse.csr_array((data, A.indices, A.indptr), shape=(n, n))[order][:, order]
        wanted.sort_indices()
        np.testing.assert_array_equal(columns[: wanted.nnz], wanted.indices)
        np.testing.assert_array_equal(values[: wanted.nnz], wanted.data)
        same_as_twin(_matrices.transpose, *rows, np.zeros(n + 1, index), *out)


@given(seeds, st.integers(1, 60), indices, st.booleans())
def test_matrices_are_merged_in_c(seed, n, index, largest):
    rng = np.random.default_rng(seed)
    A, B = square(rng, n, index), square(rng, n, index)
    size = A.nnz + B.nnz
    out = np.zeros(n + 1, index), np.zeros(size, index), np.zeros(size)
    same_as_twin(_matrices.merge_rows, *parts(A), *parts(B), largest, *out)
    made, wanted = _matrices.merged(A, B, largest), A.maximum(B) if largest else A + B
    np.testing.assert_array_equal(made.toarray(), wanted.toarray())
    A.data[rng.random(A.nnz) < 0.2] = 0.0
    same_as_twin(_matrices.drop_loops, *parts(A))


@given(seeds, st.integers(1, 200), indices, st.integers(1, 300))
def test_labels_are_sorted_in_c(seed, n, index, most):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, most, n).astype(index)
    same_as_twin(_matrices.order_by_label, labels, np.zeros(most + 1, index), np.zeros(n, index))
    same_as_twin(_matrices.number_by_appearance, labels, np.zeros(most, index), np.zeros(n, index))
    same_as_twin(_matrices.holds_each_once, labels, np.zeros(most, np.uint8), scratch=(1,))
    perm = rng.permutation(n).astype(index)
    same_as_twin(_matrices.holds_each_once, perm, np.zeros(n, np.uint8), scratch=(1,))
    assert _matrices.holds_each_once(perm, np.zeros(n, np.uint8))


@given(seeds, st.integers(1, 3000), st.integers(1, 5000), indices)
def test_hashes_are_sorted_in_c(seed, n, distinct, index):
    rng = np.random.default_rng(seed)
    values = hashes(rng, distinct)[rng.integers(0, distinct, n)]
    values >>= np.uint64(rng.integers(0, 64))
    *_, order = same_as_twin(_matrices.sort_hashes, values, np.zeros_like(values), np.zeros(n, index))
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    same_as_twin(_matrices.count_hashes, values, np.zeros_like(values), scratch=(0, 1))
    assert _matrices.count_hashes(values.copy(), np.empty_like(values)) == len(np.unique(values))


@given(seeds, st.integers(1, 60), st.integers(1, 5), indices)
def test_sums_of_integers_are_taken_in_c(seed, n, width, index):
    rng = np.random.default_rng(seed)
    A = matrix(rng, n, n, index)
    A.data[:] *= 10.0 ** rng.integers(-290, 290, A.nnz).astype(float) * rng.choice([-1.0, 1.0], A.nnz)
    x = rng.standard_normal((n, width)) * 10.0 ** rng.integers(-10, 30, (n, width)).astype(float)
    same_as_twin(_sums._product, *parts(A), x, np.zeros((n, width)))
    ones = np.zeros((n, 1))
    _sums._product(*parts(A), np.ones((n, 1)), ones)
    np.testing.assert_array_equal(_sums.order_free_sums(A), ones[:, 0])
    for both in (False, True):
        same_as_twin(hops._divide_rows, *parts(A), rng.random(n) + 0.1, both, np.zeros(A.nnz))
    same_as_twin(factors._count_terms, A.indptr, A.indices, rng.integers(0, 50, n), 60, np.zeros(n, np.int64))
