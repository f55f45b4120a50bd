"""Signals over nodes and times: the tensor system, denoising of tables, streams."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pegfan as pf
from pegfan.framelets.time import TimeSystem, time_tree
from pegfan.signals._ground import Ground
from pegfan.signals.stream import Stream
from pegfan.signals.time import denoise_time
from support.strategies import places, trees

lengths = st.integers(1, 20)
seeds = st.integers(0, 2**32 - 1)


def table(xy, length, seed=1, sigma=0.3):
    """A patch that moves to the right over a region that changes once; clean and noisy."""
    time = np.arange(length) / length
    clean = (np.abs(xy[:, :1] - time) < 0.25) * 2.0 + np.where(time < 0.4, 1.0, -1.0) * (xy[:, 1:] > 0.5)
    return clean, clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def error(found, clean):
    return float(np.mean((found - clean) ** 2))


# ------------------------------------------------------------ the tensor system


@given(lengths, st.floats(0, 0.999))
def test_clusters_of_times_are_intervals(length, shift):
    tree = time_tree(length, shift)
    assert tree.n == length
    assert tree.h <= 2
    assert len(set(tree.n_clusters)) == tree.K
    for level in range(1, tree.K + 1):
        assert (np.diff(tree.labels(level)) >= 0).all()


@settings(max_examples=25)
@given(trees(limit=15), lengths, st.sampled_from(["binary-haar", "haar-basis"]), seeds)
def test_the_tensor_system_is_tight_and_is_a_tensor(tree, length, filters, seed):
    space = pf.FrameletSystem(tree, filters)
    system = TimeSystem(space, length)
    f = np.random.default_rng(seed).standard_normal((tree.n, length))
    c = system.decompose(f)
    np.testing.assert_allclose(np.sum(c**2), np.sum(f**2), rtol=1e-10)
    np.testing.assert_allclose(system.reconstruct(c), f, atol=1e-10)
    dense = np.kron(space.matrix().toarray(), system.time[0].matrix().toarray())
    np.testing.assert_allclose(dense @ f.ravel(), c.ravel(), atol=1e-10)
    np.testing.assert_allclose(system.operator() @ f.ravel(), c.ravel(), atol=1e-10)


def test_a_frame_has_a_grid_of_times_for_every_tree():
    graph, xy = places(30)
    frame = pf.FrameletFrame.of(graph, trees=3)
    system = TimeSystem(frame, 11)
    f = table(xy, 11)[1]
    c = system.decompose(f)
    assert c.shape == system.shape == (90, 11)
    assert len({time.hierarchy.digest for time in system.time}) == 3
    np.testing.assert_allclose(np.sum(c**2), np.sum(f**2))
    np.testing.assert_allclose(system.reconstruct(c), f, atol=1e-12)
    pf.adjoint_test(system.operator())
    nodes, times = system.scales
    assert nodes.shape == times.shape == c.shape
    assert np.count_nonzero((nodes < 0) & (times < 0)) == 3  # the mean of everything, of each tree
    perm = np.random.default_rng(2).permutation(30)
    np.testing.assert_allclose(system.permute(perm).decompose(f[perm]), c, atol=1e-12)
    np.testing.assert_allclose(system.decompose(torch.tensor(f)).numpy(), c, atol=1e-12)
    np.testing.assert_allclose(system.decompose(sparse.csr_array(f)).toarray(), c, atol=1e-12)


def test_bad_tables():
    system = TimeSystem(pf.FrameletSystem(time_tree(4)), 3)
    with pytest.raises(ValueError, match=r"3 columns, one per time; got shape \(4, 2\)"):
        system.decompose(np.zeros((4, 2)))
    with pytest.raises(TypeError, match="FrameletSystem or a FrameletFrame, got Hierarchy"):
        TimeSystem(time_tree(4), 3)
    with pytest.raises(ValueError, match="shift"):
        time_tree(4, 1.0)


# ------------------------------------------------------------ denoising


@pytest.fixture(scope="module")
def small():
    graph, xy = places(70)
    return graph, *table(xy, 12)


def test_a_table_is_denoised_as_a_whole(small):
    graph, clean, noisy = small
    ground = Ground.of(graph, 2)
    found = pf.denoise(graph, noisy, time=True, trees=2, report=True)
    alone = [denoise_time(ground, noisy[:, [t]]).signal for t in range(0, 12, 5)]
    assert error(found.signal, clean) < 0.5 * error(np.hstack(alone), clean[:, ::5]) < error(noisy, clean)
    assert 0.2 < found.sigma[0, 0] < 0.4  # it is 0.3
    assert sum(found.shares.values()) == pytest.approx(1)
    perm = np.random.default_rng(3).permutation(70)
    moved = denoise_time(Ground.of(graph.permute(perm), 2), noisy[perm])
    np.testing.assert_allclose(moved.signal, found.signal[perm], atol=1e-6)


@pytest.mark.long
def test_gaps_in_a_table_are_filled(small):
    graph, clean, noisy = small
    gaps = np.random.default_rng(4).random(noisy.shape) < 0.2
    gaps[5], gaps[:, 7] = True, True  # a node never seen, a time without anything
    found = denoise_time(Ground.of(graph, 2), np.where(gaps, np.nan, noisy)).signal
    assert np.isfinite(found).all()
    assert error(found[gaps], clean[gaps]) < 0.5 * np.var(clean)
    assert error(found[~gaps], clean[~gaps]) < 0.5 * error(noisy, clean)


@pytest.mark.long
def test_noise_by_node_is_used(small):
    graph, clean, _ = small
    sigma = np.where(np.arange(70) % 2, 0.1, 1.0)
    noisy = clean + sigma[:, None] * np.random.default_rng(5).standard_normal(clean.shape)
    ground = Ground.of(graph, 2)
    known, one = (denoise_time(ground, noisy, given).signal for given in (sigma, np.full(70, 0.7)))
    assert error(known, clean) < 0.7 * error(one, clean)


# ------------------------------------------------------------ streams


def test_one_by_one_is_as_all_at_once(small):
    graph, _, noisy = small
    noisy = noisy[:, :7].copy()
    noisy[3, 2], noisy[:4, 0] = np.nan, np.nan
    one, block = (Stream(graph, 4, delay=1, trees=2) for _ in range(2))
    found = [one.push(column) for column in noisy.T]
    assert found[0] is None
    first = block.push(noisy[:, :3])
    assert first.shape == (70, 2)
    rest = block.push(noisy[:, 3:])
    np.testing.assert_array_equal(np.stack(found[1:], axis=1), np.hstack([first, rest]))
    assert np.isfinite(rest).all()
    assert block.rest().shape == (70, 1)
    np.testing.assert_array_equal(block.rest(), one.rest())


def test_a_stream_forgets_what_left_its_window(small):
    graph, _, noisy = small
    fresh, old = (Stream(graph, 2, trees=2, sigma=0.3) for _ in range(2))
    old.push(noisy[:, :3])
    np.testing.assert_array_equal(fresh.push(noisy[:, 3:5])[:, -1], old.push(noisy[:, 3:5])[:, -1])


def test_a_stream_uses_the_past_and_what_comes_after():
    graph, xy = places(60)
    clean = np.repeat((xy[:, :1] > 0.5) * 2.0, 9, axis=1)
    noisy = clean + 0.5 * np.random.default_rng(6).standard_normal(clean.shape)
    single = Stream(graph, 1, trees=2).push(noisy[:, -1])
    newest = Stream(graph, 8, trees=2).push(noisy)[:, -1]
    assert error(newest, clean[:, -1]) < 0.5 * error(single, clean[:, -1])
    drift = clean * np.linspace(0, 1, 9) + 0.5 * np.random.default_rng(7).standard_normal(clean.shape)
    now, later = (Stream(graph, 8, delay=d, trees=2, sigma=0.5).push(drift[:, : 6 + d])[:, -1] for d in (0, 3))
    assert error(later, clean[:, 0] * 5 / 8) < error(now, clean[:, 0] * 5 / 8)
    perm = np.random.default_rng(8).permutation(60)
    moved = Stream(graph.permute(perm), 8, trees=2).push(noisy[perm])[:, -1]
    np.testing.assert_allclose(moved, newest[perm], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({"window": 0}, None, "window"),
        ({"window": 4, "delay": 4}, None, "a delay of 4 needs a window of more columns"),
        ({"sigma": -1.0}, None, "sigma must be a number of 0 or more"),
        ({"sigma": [1.0, 2.0]}, None, "one for each of the 70 nodes"),
        ({}, np.zeros(3), "has 3 rows and 70 are needed"),
        ({}, np.full(70, np.inf), "infinite values; make them NaN"),
    ],
)
def test_bad_streams(small, settings, columns, message):
    with pytest.raises(ValueError, match=message):
        Stream(small[0], trees=1, **settings).push(columns)
