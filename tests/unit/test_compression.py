"""Signals as a few atoms: how near they come, that they come back, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

import pegfan as pf
from pegfan._npz import read_npz, write_npz
from pegfan.signals import Compressed, _dictionary, _spectrum
from pegfan.signals._dictionary import Dictionary
from pegfan.signals._ground import Ground

POINTS = np.random.default_rng(4).random((150, 2))
PAIRS = cKDTree(POINTS).query_pairs(0.13, output_type="ndarray")
GRAPH = pf.Graph.from_edges(PAIRS, weights=np.exp(-np.linalg.norm(np.diff(POINTS[PAIRS], axis=1)[:, 0], axis=1)), n=150)
STEPS = np.where(POINTS[:, 0] < 0.4, 1.0, np.where(POINTS[:, 1] < 0.6, -1.0, 3.0))
SMOOTH = np.sin(4 * POINTS[:, 0]) + POINTS[:, 1] ** 2


def lost(basis: np.ndarray, f: np.ndarray, k: int) -> float:
    """The relative error of the k largest coefficients in an orthonormal basis."""
    c = np.sort(np.abs(basis @ f))
    return float(np.linalg.norm(c[:-k]) / np.linalg.norm(f))


@pytest.mark.parametrize("f", [STEPS, SMOOTH, STEPS + SMOOTH])
@pytest.mark.parametrize("k", [3, 20])
def test_ahead_of_fourier_and_haar(f, k):
    error = pf.compress(GRAPH, f, k).error
    system = pf.FrameletSystem(pf.build_tree(GRAPH, "matching", 2), "haar-basis", weights="size")
    assert error < lost(system.matrix().toarray(), f, k)
    L = _spectrum.laplacian(Ground.of(GRAPH, 16).weights).toarray()
    assert error <= lost(np.linalg.eigh(L)[1].T, f, k) * 1.001


@given(st.integers(1, 40) | st.just(150), st.integers(0, 10**6))
@settings(max_examples=5)
def test_any_signal_and_count(k, seed):
    f = np.random.default_rng(seed).standard_normal(GRAPH.n)
    small = pf.compress(GRAPH, f, k)
    assert len(small.places) <= k
    assert small.error == pytest.approx(np.linalg.norm(f - small.signal) / np.linalg.norm(f))
    assert small.error < 1.0 - 0.9 * k / GRAPH.n if k < GRAPH.n else small.error == 0.0


def test_columns_shares_and_what_is_kept():
    f = np.stack([STEPS, SMOOTH, np.zeros(GRAPH.n)], axis=1)
    small = pf.compress(GRAPH, f, 0.1)
    assert (small.counts <= [15, 15, 0]).all()
    assert small.nbytes == small.counts.sum() * 12
    assert small.signal.shape == f.shape
    assert np.array_equal(small.signal[:, 1], pf.compress(GRAPH, SMOOTH, 15).signal)


def test_saved_and_read(tmp_path):
    f = np.stack([STEPS, SMOOTH], axis=1)
    small = pf.compress(GRAPH, f, 20)
    path = small.save(tmp_path / "small")
    again = Compressed.load(path, GRAPH)
    assert np.array_equal(again.signal, small.signal)
    assert np.array_equal(again.reconstruct(GRAPH), small.signal)
    assert (again.error, again.nbytes, repr(again)) == (small.error, small.nbytes, repr(small))
    with pytest.raises(ValueError, match="another graph"):
        Compressed.load(path, GRAPH.permute(np.arange(150)[::-1]))
    with pytest.raises(ValueError, match="another graph"):
        small.reconstruct(pf.Graph.from_edges([[0, 1]], n=150))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("format", np.array("else"), "not a signal"),
        ("places", np.array([2**31] * 5, np.uint32), "damaged|places"),
        ("places", np.arange(4, dtype=np.uint32), "do not fit"),
        ("places", np.arange(5.0), "do not fit"),
        ("values", np.full(5, np.nan), "not finite"),
        ("values", np.full(5, 3.0), "not those that the signal was written in"),
        ("counts", np.array([3]), "do not fit"),
        ("shape", np.array([7]), "does not belong"),
        ("error", np.array(np.inf), "damaged"),
    ],
)
def test_damaged_files(tmp_path, name, value, words):
    path = pf.compress(GRAPH, STEPS + SMOOTH, 5).save(tmp_path / "small.npz")
    arrays = read_npz(path)
    write_npz(path, arrays | {name: value})
    with pytest.raises(ValueError, match=words):
        Compressed.load(path, GRAPH)
    arrays.pop("values")
    write_npz(path, arrays)
    with pytest.raises(ValueError, match="damaged"):
        Compressed.load(path, GRAPH)


@pytest.mark.parametrize(
    ("f", "keep", "error", "words"),
    [
        (np.full(150, np.nan), 5, ValueError, "inpaint"),
        (np.full(150, np.inf), 5, ValueError, "infinite"),
        (STEPS, 1.5, ValueError, "share up to 1.0"),
        (STEPS, -1, ValueError, "keep"),
        (STEPS, "all", TypeError, "keep"),
        (STEPS[1:], 5, ValueError, "149 rows"),
    ],
)
def test_bad_arguments(f, keep, error, words):
    with pytest.raises(error, match=words):
        pf.compress(GRAPH, f, keep)


# --------------------------------------------------------------- inner promises


@pytest.mark.parametrize("limits", [(5_500, 20_000), (100, 20_000), (50, 100)])
def test_blocks_are_unit_atoms_numbered_alike(monkeypatch, limits):
    monkeypatch.setattr(_dictionary, "_SMALL", limits[0])
    monkeypatch.setattr(_dictionary, "_MIDDLE", limits[1])
    dictionary = Dictionary(GRAPH)
    f = np.random.default_rng(0).standard_normal(GRAPH.n)
    every = np.concatenate([block.analyse(f) for block in dictionary.blocks])
    for place in np.random.default_rng(1).integers(0, dictionary.starts[-1], 60):
        atom = dictionary.compose(np.array([place]), np.ones(1))
        assert atom @ f == pytest.approx(every[place], abs=1e-10)
        assert 0.3 < np.linalg.norm(atom) < 3.0
    if limits[0] == 5_500:
        sparse = np.concatenate([dictionary._sparse @ f, dictionary._modes.T @ f])
        np.testing.assert_allclose(sparse, every, atol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(dictionary._sparse.toarray(), axis=1), 1.0)


@pytest.mark.parametrize("limits", [(100, 20_000), (50, 100)])
def test_larger_graphs_are_not_behind_their_best_tree(monkeypatch, limits):
    monkeypatch.setattr(_dictionary, "_SMALL", limits[0])
    monkeypatch.setattr(_dictionary, "_MIDDLE", limits[1])
    monkeypatch.setattr(_dictionary, "_STEPS", 10)
    dictionary = Dictionary(GRAPH)
    for f in (STEPS + SMOOTH, SMOOTH):
        places, values = dictionary.approximate(f, 20)
        assert len(places) <= 20
        error = np.linalg.norm(f - dictionary.compose(places, values)) / np.linalg.norm(f)
        assert error <= 1e-9 + min(lost(system.matrix().toarray(), f, 20) for system in dictionary.ground.frame)


def test_modes_have_no_arbitrary_basis(monkeypatch):
    ring = pf.Graph.from_edges([[i, (i + 1) % 40] for i in range(40)])  # every eigenvalue but two is double
    ground = Ground(ring, 1)
    values, vectors = _spectrum._modes(ground, 40)
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]

    def other(matrix, **options):
        found = np.linalg.eigh(matrix)
        for start in range(1, 39, 2):
            found[1][:, start : start + 2] = found[1][:, start : start + 2] @ turned
        return found[0], -found[1]

    monkeypatch.setattr(_spectrum, "eigh", other)
    np.testing.assert_allclose(_spectrum._modes(ground, 40)[1], vectors, atol=1e-9)
    L = _spectrum.laplacian(ground.weights)
    np.testing.assert_allclose(L @ vectors, vectors * values, atol=1e-9)


def test_lowest_vectors_are_nearly_invariant():
    points = np.random.default_rng(1).random((700, 2))
    pairs = cKDTree(points).query_pairs(0.07, output_type="ndarray")
    ground = Ground(pf.Graph.from_edges(pairs, n=700), 1)
    values, vectors = _spectrum._lowest(ground, 30)
    L = _spectrum.laplacian(ground.weights)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L.toarray())[:30], atol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-9)
