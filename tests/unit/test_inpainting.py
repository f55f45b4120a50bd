"""Gaps filled: what is kept, what is refused, that the numbering has no part, how good it is, what intervals hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

import pegfan as pf
from pegfan.signals._ground import Ground
from pegfan.signals._interpolation import Guesses, solve
from pegfan.signals.inpainting import fill
from support.strategies import random_tree

RNG = np.random.default_rng(3)
POINTS = RNG.random((140, 2))


def near(points: np.ndarray, k: int = 6) -> pf.Graph:
    """The graph of nearest neighbours, with weights that tell all nodes apart."""
    distance, to = cKDTree(points).query(points, k + 1)
    edges = np.stack([np.repeat(np.arange(len(points)), k), to[:, 1:].ravel()], axis=1)
    return pf.Graph.from_edges(edges, weights=np.exp(-20 * distance[:, 1:].ravel()), n=len(points), duplicates="max")


GRAPH = near(POINTS)
SMOOTH = np.sin(4 * POINTS[:, 0]) + POINTS[:, 1] ** 2
STEPS = np.where(POINTS[:, 0] < 0.4, 1.0, np.where(POINTS[:, 1] < 0.6, -1.0, 3.0))


def gapped(f: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    f = np.array(f, float)
    f[np.random.default_rng(seed).random(f.shape) < share] = np.nan
    return f


def test_what_was_seen_stays_and_columns_do_not_mix():
    f = np.stack([gapped(SMOOTH, 0.3), gapped(STEPS, 0.5, 1), STEPS], axis=1)
    told = pf.inpaint(GRAPH, f, report=True)
    seen = ~np.isnan(f)
    assert np.array_equal(told.signal[seen], f[seen])
    assert np.array_equal(told.low[seen], f[seen])
    assert np.array_equal(told.high[seen], f[seen])
    assert np.isfinite(told.signal).all()
    assert (told.low[~seen] < told.high[~seen]).all()
    assert sum(told.shares.values()) == pytest.approx(1.0)
    assert np.array_equal(pf.inpaint(GRAPH, f[:, 1]), told.signal[:, 1])
    assert np.array_equal(pf.inpaint(GRAPH, STEPS), STEPS)


def test_numbering_has_no_part():
    perm = np.random.default_rng(5).permutation(GRAPH.n)
    for f in (gapped(SMOOTH, 0.4), gapped(STEPS, 0.4)):
        here = pf.inpaint(GRAPH, f, report=True)
        there = pf.inpaint(GRAPH.permute(perm), f[perm], report=True)
        np.testing.assert_allclose(there.signal, here.signal[perm], atol=1e-6)
        np.testing.assert_allclose(there.high, here.high[perm], atol=1e-4)


@pytest.mark.parametrize(("f", "gain"), [(SMOOTH, 2.0), (STEPS, 1.0), (STEPS + SMOOTH, 1.0)])
def test_ahead_of_harmonic_interpolation(f, gain):
    ground = Ground.of(GRAPH, 16)
    ours, harmonic = 0.0, 0.0
    for seed in range(2):
        y = gapped(f, 0.3, seed)
        seen = ~np.isnan(y)
        guesses = Guesses(ground, np.where(seen, y, 0.0)[:, None], seen[:, None])
        ours += np.sum((pf.inpaint(GRAPH, y) - f) ** 2)
        harmonic += np.sum((guesses.harmonic(np.zeros((GRAPH.n, 1)))[:, 0] - f) ** 2)
    assert ours * gain < harmonic


@pytest.mark.long
def test_intervals_hold_what_they_say():
    rng = np.random.default_rng(8)
    held = []
    for seed in range(18):
        points = rng.random((200, 2))
        f = [np.sin(5 * points[:, 0]), points.sum(axis=1) > 1.0, points[:, 0] * (points[:, 1] > 0.5)][seed % 3]
        f = f + 0.1 * rng.standard_normal(200)
        y = gapped(f, 0.4, seed)
        told = pf.inpaint(near(points), y, report=True, level=0.9)
        gap = np.isnan(y)
        held.append(np.mean((told.low <= f)[gap] & (f <= told.high)[gap]))
    assert 0.87 < np.mean(held) < 0.95


def test_intervals_grow_with_their_level():
    y = gapped(SMOOTH + STEPS, 0.3)
    gap = np.isnan(y)
    less, more = (pf.inpaint(GRAPH, y, report=True, level=level) for level in (0.5, 0.95))
    assert np.array_equal(less.signal, more.signal)
    assert ((more.high - more.low) > (less.high - less.low))[gap].all()


def test_components_without_a_seen_node():
    edges = np.concatenate([GRAPH.edges()[0], [[140, 141], [141, 142]]])
    graph = pf.Graph.from_edges(edges, n=143)
    f = np.concatenate([gapped(SMOOTH, 0.3), [np.nan] * 3])
    told = pf.inpaint(graph, f, report=True)
    np.testing.assert_allclose(told.signal[140:], np.nanmean(f))
    assert np.mean((told.low[140] <= SMOOTH) & (told.high[140] >= SMOOTH)) >= 0.85


def test_few_seen_nodes():
    f = np.full(GRAPH.n, np.nan)
    f[3] = 7.0
    told = pf.inpaint(GRAPH, f, report=True)
    assert (told.signal == 7.0).all()
    assert np.isinf(told.high[0])
    f[9] = 1.0
    filled = pf.inpaint(GRAPH, f)
    assert np.isfinite(filled).all()
    assert ((filled >= 0.5) & (filled <= 7.5)).all()
    assert pf.inpaint(GRAPH, gapped(np.full(GRAPH.n, 0.1), 0.5)) == pytest.approx(0.1)


def test_without_edges():
    graph = pf.Graph.from_edges(np.empty((0, 2), int), n=9)
    f = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, np.nan])
    assert pf.inpaint(graph, f)[-1] == pytest.approx(4.5)


def test_fill_smooths_what_was_seen():
    noisy = SMOOTH + 0.3 * np.random.default_rng(0).standard_normal(GRAPH.n)
    seen = ~np.isnan(gapped(SMOOTH, 0.2))
    done = fill(Ground.of(GRAPH, 16), noisy, seen)
    assert np.sum((done.signal - SMOOTH)[seen] ** 2) < 0.7 * np.sum((noisy - SMOOTH)[seen] ** 2)
    assert len(done.held) == seen.sum()


@pytest.mark.parametrize(
    ("f", "options", "error", "words"),
    [
        (np.full(140, np.nan), {}, ValueError, "all values"),
        (np.full((140, 2), [1.0, np.nan]), {}, ValueError, "column 1"),
        (np.full(140, np.inf), {}, ValueError, "140 infinite"),
        (np.ones(7), {}, ValueError, "7 rows and 140"),
        (np.ones(140), {"level": 1.0}, ValueError, "between 0 and 1"),
        (np.ones(140), {"level": "much"}, TypeError, "level"),
        (np.ones(140), {"report": "yes"}, TypeError, "report"),
        (np.array(["a"] * 140), {}, TypeError, "real numbers"),
    ],
)
def test_bad_arguments(f, options, error, words):
    with pytest.raises(error, match=words):
        pf.inpaint(GRAPH, f, **options)
    with pytest.raises(TypeError, match="graph"):
        pf.inpaint("roads", f)


# --------------------------------------------------------------- inner promises


@given(st.integers(2, 12), st.integers(0, 10**6))
@settings(max_examples=20)
def test_solve_is_the_solution(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A = A @ A.T + n * np.eye(n)
    right = rng.standard_normal((n, 3))
    diagonal = np.repeat(np.diag(A)[:, None], 3, axis=1)
    found = solve(lambda x: A @ x, diagonal, right, np.zeros_like(right), 100)
    np.testing.assert_allclose(found, np.linalg.solve(A, right), atol=1e-5)


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_expectations_on_a_tree_are_those_of_its_covariance(seed):
    tree = random_tree(seed, 3, 4, 14)
    rng = np.random.default_rng(seed)
    seen = rng.random((tree.n, 2)) < 0.6
    seen[0] = True
    y = np.where(seen, rng.standard_normal((tree.n, 2)), 0.0)
    guesses = Guesses(Ground(pf.Graph.from_edges(np.empty((0, 2), int), n=tree.n), 1), y, seen)
    kinds = np.array([(0.5, 1e-3), (1.0, 0.1)])
    found = guesses._tree(tree, kinds)
    for i, (power, noise) in enumerate(kinds):
        steps = [(tree.sizes(j) / tree.n) ** power for j in range(1, tree.K)]
        scale = sum(step.mean() for step in steps)
        K = np.ones((tree.n, tree.n))
        for j in range(1, tree.K):
            above, own = tree.labels(j), tree.labels(j + 1)
            K += (own[:, None] == own) * (steps[j - 1][above] / scale)
        for c in range(2):
            s = seen[:, c]
            dense = K[:, s] @ np.linalg.solve(K[s][:, s] + noise * np.eye(s.sum()), y[s, c])
            np.testing.assert_allclose(found[:, c, i], dense, atol=1e-8)
