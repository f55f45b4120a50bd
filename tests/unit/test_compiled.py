"""Loops in C equal their bodies, which numba compiles, bit for bit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pegfan import _compiled, _hashing, _matrices, _products
from pegfan._compiled import compiled, native
from pegfan._products import product
from pegfan.channels import _sums, factors, hops
from pegfan.models import _kernels as models
from support.twins import all_twins
from support.twins import twin_of as new_twin_of

seeds = st.integers(0, 2**32 - 1)
built = pytest.mark.skipif(native is None, reason="no compiler built the extension here")
ROOT = Path(__file__).parents[2]


def twin(test):
    """A comparison with a body, which numba compiles for every dtype: not for the quick loop."""
    return pytest.mark.long(built(test))


def twin_of(loop):
    """What a loop in C is compared with."""
    return loop.by_numba if hasattr(loop, "by_numba") else new_twin_of(loop)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ------------------------------------------------------------------- declarations


def test_the_extension_is_built_where_there_is_a_compiler():
    """A build that breaks is not to pass as a machine without a compiler."""
    from shutil import which

    if os.environ.get("PEGFAN_NATIVE") != "0" and (which("cc") or which("gcc")):
        assert native is not None


def test_a_loop_without_the_extension_is_compiled_by_numba(monkeypatch):
    @compiled("mix_all")
    def mix_all(values, out):
        for i in range(values.size):
            out[i] = values[i] + 1

    monkeypatch.setattr(_compiled, "native", None)
    out = np.zeros(2, np.uint64)
    mix_all(np.arange(2, dtype=np.uint64), out)
    assert out.tolist() == [1, 2]  # the body, not the C function of that name


@built
def test_every_declared_function_is_the_twin_of_a_loop_or_of_the_network():
    """Nothing in C is left without a body to compare it with."""
    sources = (ROOT / "src" / "pegfan").rglob("*.py")
    loops = {name for path in sources for name in re.findall(r'^@compiled\(\s*"(\w+)"', path.read_text(), re.M)}
    loops |= all_twins().keys()
    declared = {name.split("__")[0] for name in dir(native.lib)}
    assert {name for name in declared if name.startswith(("network_", "NETWORK_"))} >= {"network_step", "network_use"}
    assert {name for name in declared if not name.startswith(("network_", "NETWORK_"))} == loops & declared
    assert declared & loops


# ------------------------------------------------------------------------ hashing


@twin
@given(seeds, st.integers(0, 40), st.sampled_from([(np.int32, np.int32), (np.int64, np.int32), (np.int64, np.int64)]))
def test_hashes_equal_their_bodies(seed, n, kinds):
    rng = np.random.default_rng(seed)
    M = sparse.random_array((n, n), density=0.2, rng=rng, format="csr")
    bits = rng.integers(2**63, size=M.nnz).astype(np.uint64)
    for with_self in (False, True):
        ours, theirs = np.zeros((2, n), np.uint64)
        args = np.arange(n, dtype=kinds[0]), M.indptr.astype(kinds[0]), M.indices.astype(kinds[1]), bits, with_self
        _hashing.hash_rows(*args, ours)
        twin_of(_hashing.hash_rows)(*args, theirs)
        assert same_bits(ours, theirs)
    ours, theirs = np.zeros((2, M.nnz), np.uint64)
    _hashing.mix_all(bits, ours)
    twin_of(_hashing.mix_all)(bits, theirs)
    assert same_bits(ours, theirs)


@twin
@given(st.integers(0, 2**63), st.one_of(st.just(32768), st.integers(1, 65535)), st.integers(0, 400))
def test_dropped_entries_equal_their_body(seed, threshold, n):
    ours, theirs = np.full((2, n), 7, np.uint8)
    _products._keep_entries(np.uint64(seed), np.uint64(threshold), ours)
    twin_of(_products._keep_entries)(np.uint64(seed), np.uint64(threshold), theirs)
    assert same_bits(ours, theirs)


# ----------------------------------------------------------------------- products


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


# ------------------------------------------------------- framelets, models, relations

floats = st.sampled_from([np.float32, np.float64])


def twins(loop, *args, room=()):
    """Run a loop in C and its body by numba on equal arrays; all arrays but those to work in are then equal in bits."""
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    found, expected = loop(*args), twin_of(loop)(*copies)
    assert found == expected or (found is None and expected is None)
    for place, (ours, theirs) in enumerate(zip(args, copies, strict=True)):
        assert not isinstance(ours, np.ndarray) or place in room or same_bits(ours, theirs), place
    return found


@twin
@given(seeds, floats, st.integers(0, 30), st.integers(1, 4), st.integers(1, 19), st.booleans())
def test_attention_and_dropout_equal_their_bodies(seed, dtype, n, heads, width, shared):
    rng = np.random.default_rng(seed)
    M = sparse.random_array((n, n), density=0.2, rng=rng, format="csr")
    pointers, indices = M.indptr.astype(np.int64), M.indices.astype(np.int32)

    def normal(*shape):
        return rng.standard_normal(shape).astype(dtype)

    x, y, out = normal(3, 7 * n)
    x[rng.random(x.shape) < 0.1] = np.nan
    mask, scale = (rng.random(x.size) < 0.5).astype(np.uint8), dtype(1 / 0.7)
    twins(models.drop, x, mask, scale, out)
    twins(models.relu_drop, x, mask, scale, out)
    twins(models.relu_drop_back, x, y, scale, out)
    twins(models.unit_rows, pointers, M.data.astype(dtype), np.zeros(M.nnz, dtype))
    source, target, weights = normal(n, heads), normal(n, heads), np.zeros((M.nnz, heads), dtype)
    scores = pointers, indices, source, target, dtype(0.2)
    expected = np.zeros_like(weights)
    models.attention(*scores, weights, np.zeros((2, heads), dtype))
    twin_of(models.attention)(*scores, expected, None)
    np.testing.assert_allclose(weights, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)  # another exp
    factors, z, gradient = normal(M.nnz, 1 if shared else heads), normal(n, heads, width), normal(n, heads, width)
    twins(models.attend, pointers, indices, weights, factors, z, np.zeros_like(z))
    room = np.zeros((int(np.diff(pointers).max(initial=0)) + 1, heads), dtype)
    twins(
        *(models.attend_back, pointers, indices, source, target, dtype(0.2), weights, factors, z, gradient),
        *(np.zeros_like(z), np.zeros_like(source), np.zeros_like(target), room),
        room={12},
    )


WITHOUT_NUMBA = """
import sys
import numpy as np
import pegfan as pf
from pegfan.channels import Channel, Channels
from pegfan.training.boosting import Boosted, boost
tree = pf.Hierarchy.from_nested([[0, 1, 2], [3, [4, 5]]])
system = pf.FrameletSystem(tree)
for dtype in (np.float32, np.float64):
    f = np.arange(12, dtype=dtype).reshape(6, 2)
    system.reconstruct(system.decompose(f, 2))
    system.projections(f)
    system.denoise(f, threshold="sure")
    system.operator("scaling", 2).T @ (system.operator("scaling", 2) @ f)
x = np.arange(60.0)[:, None]
channels = Channels([Channel("X", None, x)])
run = boost(channels, (x[:, 0] > 17).astype(int), pf.Split(np.arange(0, 60, 2), np.arange(1, 60, 2), np.arange(0)))
Boosted(run.state).shares(x.astype(np.float32))
print("numba" in sys.modules, "llvmlite" in sys.modules)
"""


@twin
def test_transforms_and_boosting_do_not_load_numba():
    run = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


# ------------------------------------------------------------- trees and channels

indices = st.sampled_from([np.int32, np.int64])


def same(loop, *args, scratch=()):
    """Check that a loop does in C what it does in Python; `scratch` are arguments whose contents are of no use then."""
    runs = [[a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)]
    results = [run(*given) for run, given in zip((loop, twin_of(loop)), runs, strict=True)]
    assert results[0] == results[1]
    for i, (one, other) in enumerate(zip(*runs, strict=True)):
        if isinstance(one, np.ndarray) and i not in scratch:
            assert one.tobytes() == other.tobytes(), f"{loop.__name__}: argument {i}"
    return runs[0]


def matrix(rng, rows, columns, index, per_row=4.0, like=None):
    """A sparse matrix of weights that span many powers of ten; some rows are long, some empty."""
    density = min(per_row / max(columns, 1), 1.0)
    made = sparse.csr_array(sparse.random_array((rows, columns), density=density, rng=rng, format="csr"))
    if rows and rng.random() < 0.5:
        made = made.tolil()
        made[int(rng.integers(rows))] = rng.random(columns)
        made = sparse.csr_array(made)
    made.data[:] = rng.random(made.nnz) * 10.0 ** rng.integers(-5, 5, made.nnz)
    made.sum_duplicates()
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def square(rng, n, index, symmetric=False):
    made = matrix(rng, n, n, index)
    if symmetric:
        made = sparse.csr_array(made + made.T)
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def parts(made):
    return made.indptr, made.indices, made.data


def hashes(rng, size):
    return rng.integers(0, 2**64, size, dtype=np.uint64)


@twin
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
        wanted = sparse.csr_array((data, A.indices, A.indptr), shape=(n, n))[order][:, order]
        wanted.sort_indices()
        np.testing.assert_array_equal(columns[: wanted.nnz], wanted.indices)
        np.testing.assert_array_equal(values[: wanted.nnz], wanted.data)
        places = rng.permutation(n).astype(index)
        same(_matrices.list_rows, places, *rows, *out)
        same(_matrices.transpose, *rows, np.zeros(n + 1, index), *out)


@twin
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


@twin
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


@twin
@given(seeds, st.integers(1, 3000), st.integers(1, 5000), indices)
def test_hashes_are_sorted_in_c(seed, n, distinct, index):
    rng = np.random.default_rng(seed)
    values = hashes(rng, distinct)[rng.integers(0, distinct, n)]
    values >>= np.uint64(rng.integers(0, 64))
    *_, order = same(_matrices.sort_hashes, values, np.zeros_like(values), np.zeros(n, index))
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    same(_matrices.count_hashes, values, np.zeros_like(values), scratch=(0, 1))
    assert _matrices.count_hashes(values.copy(), np.empty_like(values)) == len(np.unique(values))


@twin
@given(seeds, st.integers(1, 60), st.integers(1, 5), indices)
def test_sums_of_integers_are_taken_in_c(seed, n, width, index):
    rng = np.random.default_rng(seed)
    A = matrix(rng, n, n, index)
    A.data[:] *= 10.0 ** rng.integers(-290, 290, A.nnz).astype(float) * rng.choice([-1.0, 1.0], A.nnz)
    x = rng.standard_normal((n, width)) * 10.0 ** rng.integers(-10, 30, (n, width)).astype(float)
    same(_sums._product, *parts(A), x, np.zeros((n, width)))
    *_, sums = same(_sums._sums, A.indptr, A.data, np.zeros(n))
    ones = np.zeros((n, 1))
    _sums._product(*parts(A), np.ones((n, 1)), ones)
    np.testing.assert_array_equal(sums, ones[:, 0])
    for both in (False, True):
        same(hops._divide_rows, *parts(A), rng.random(n) + 0.1, both, np.zeros(A.nnz))
    same(factors._count_terms, A.indptr, A.indices, rng.integers(0, 50, n), 60, np.zeros(n, np.int64))


@built
def test_trees_and_channels_need_no_numba():
    code = """
import sys
import numpy as np
import pegfan as pf
from pegfan.channels import hop_matrix, structural_features
graph = pf.datasets.synthetic(0.3, n=120, n_edges=400, n_features=5, splits=0)
for method in pf.trees.BUILDERS:
    pf.build_tree(graph, method)
arcs = pf.Graph(graph.adjacency + graph.adjacency[::-1], directed=True)
for direction in ("symmetric", "in", "out"):
    pf.build_tree(arcs, "ward", direction=direction)
    for kind in ("S", "S~", "A", "random-walk"):
        hop_matrix(arcs, kind, direction)
structural_features(graph)
print("numba" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "False"
