"""Noise off signals: the mixture, its parts and what it promises."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import pegfan as pf
from pegfan.framelets.empirical import shrink_levels, shrink_values
from pegfan.signals._bank import Bank, _boxed, laplacian
from pegfan.signals._dictionary import Dictionary
from pegfan.signals._ground import KEPT, Ground
from pegfan.signals._stacking import mixture
from pegfan.signals.denoising import _weights
from pegfan.signals.noise import first_guess, local_noise, of_counts


def geometric(n: int, seed: int = 0, degree: float = 14.0) -> tuple[pf.Graph, np.ndarray]:
    """Random points in the unit square, joined where they are near; and the points."""
    points = np.random.default_rng(seed).random((n, 2))
    square = ((points[:, None] - points) ** 2).sum(axis=2)
    edges = np.argwhere(np.triu(square < degree / (np.pi * n), 1))
    # With weights no two nodes are symmetric, and the canonical order has no ties.
    return pf.Graph.from_edges(edges, weights=np.exp(-square[tuple(edges.T)] * n / degree), n=n), points


GRAPH, POINTS = geometric(500)
CLEAN = {
    "pieces": np.where(POINTS[:, 0] > 0.5, 1.0, -1.0) + (POINTS[:, 1] > 0.6),
    "smooth": np.sin(3 * POINTS[:, 0]) + np.cos(4 * POINTS[:, 1]),
    "spikes": np.sin(3 * POINTS[:, 0]) + 4.0 * (np.arange(500) % 50 == 7),
    "classes": (np.arange(500) * 7919 % 3).astype(float),
}


def noisy(f: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    return f + sigma * np.random.default_rng(seed).standard_normal(f.shape)


def error(f: np.ndarray, g: np.ndarray) -> float:
    return float(np.sqrt(np.mean((f - g) ** 2)))


@pytest.mark.parametrize(("kind", "most"), [("pieces", 0.15), ("smooth", 0.12), ("spikes", 0.16), ("classes", 0.25)])
def test_noise_goes_whatever_the_signal_and_the_noise_is_known(kind: str, most: float) -> None:
    found = pf.denoise(GRAPH, noisy(CLEAN[kind], 0.3), report=True)
    assert error(found.signal, CLEAN[kind]) < most
    assert np.all(found.sigma == found.sigma[0])
    assert found.sigma[0] == pytest.approx(0.3, rel=0.15)
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_the_result_does_not_depend_on_the_numbering() -> None:
    y = noisy(CLEAN["pieces"], 0.3)
    perm = np.random.default_rng(1).permutation(GRAPH.n)
    assert np.allclose(pf.denoise(GRAPH.permute(perm), y[perm]), pf.denoise(GRAPH, y)[perm], atol=1e-5)


def test_the_result_goes_with_scale_and_shift() -> None:
    y = noisy(CLEAN["smooth"], 0.3)
    moved = pf.denoise(GRAPH, 1e6 * y - 5e6)
    assert np.allclose(moved, 1e6 * pf.denoise(GRAPH, y) - 5e6, rtol=0, atol=2e4)


def test_columns_are_signals_of_their_own() -> None:
    columns = np.stack([noisy(CLEAN["smooth"], 0.2), noisy(CLEAN["classes"], 0.5)], axis=1)
    steps: list[Any] = []
    found = pf.denoise(GRAPH, columns, progress=steps.append)
    assert len(steps) == 2
    for i in range(2):
        assert np.array_equal(found[:, i], pf.denoise(GRAPH, columns[:, i]))


def test_gaps_are_filled_and_do_not_spread() -> None:
    y = noisy(CLEAN["smooth"], 0.1)
    gaps = np.arange(GRAPH.n) % 5 == 0
    found = pf.denoise(GRAPH, np.where(gaps, np.nan, y))
    assert error(found[gaps], CLEAN["smooth"][gaps]) < 0.15
    assert error(found[~gaps], CLEAN["smooth"][~gaps]) < 0.08


def test_a_known_sigma_is_taken_as_it_is() -> None:
    y = noisy(CLEAN["smooth"], 0.3)
    assert np.array_equal(pf.denoise(GRAPH, y, sigma=0), y)
    assert pf.denoise(GRAPH, y, sigma=0.3, report=True).sigma[0] == 0.3
    known = np.where(POINTS[:, 0] > 0.5, 0.6, 0.05)
    y = CLEAN["pieces"] + known * np.random.default_rng(0).standard_normal(GRAPH.n)
    assert error(pf.denoise(GRAPH, y, sigma=known), CLEAN["pieces"]) < error(pf.denoise(GRAPH, y), CLEAN["pieces"])


def test_noise_that_varies() -> None:
    sigma = np.where(POINTS[:, 0] > 0.5, 0.8, 0.1)
    y = CLEAN["smooth"] + sigma * np.random.default_rng(0).standard_normal(GRAPH.n)
    found = pf.denoise(GRAPH, y, noise="varying", report=True)
    assert error(found.signal, CLEAN["smooth"]) < 0.9 * error(pf.denoise(GRAPH, y), CLEAN["smooth"])
    strong, weak = (float(np.median(found.sigma[sigma == s])) for s in (0.8, 0.1))
    assert strong > 0.5
    assert weak < 0.25


def test_outliers() -> None:
    draw = np.random.default_rng(0)
    y = noisy(CLEAN["smooth"], 0.2)
    far = draw.random(GRAPH.n) < 0.05
    y[far] += draw.choice([-1, 1], far.sum()) * draw.uniform(3, 10, far.sum())
    found = pf.denoise(GRAPH, y, noise="heavy")
    assert error(found, CLEAN["smooth"]) < 0.15
    assert error(found, CLEAN["smooth"]) < 0.3 * error(pf.denoise(GRAPH, y), CLEAN["smooth"])


def test_counts() -> None:
    expected = np.exp(1.0 + CLEAN["smooth"])
    counts = np.random.default_rng(0).poisson(expected)
    found = pf.denoise(GRAPH, counts, noise="counts", report=True)
    assert error(found.signal, expected) < 0.5 * error(counts, expected)
    assert error(found.signal, expected) < error(pf.denoise(GRAPH, counts), expected)
    assert found.signal.mean() == pytest.approx(counts.mean(), rel=0.05)
    assert np.array_equal(found.sigma, np.sqrt(found.signal))
    with pytest.raises(ValueError, match="whole numbers from 0, and the signal holds -"):
        pf.denoise(GRAPH, counts - 10.0 * (counts == counts.max()) - counts.max() + 9, noise="counts")


@pytest.mark.parametrize("mean", [1.0, 3.0, 20.0])
def test_the_mean_of_counts_comes_back(mean: float) -> None:
    counts = np.random.default_rng(0).poisson(mean, 200_000)
    assert of_counts(np.array([np.mean(2 * np.sqrt(counts + 0.375))]))[0] == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("joined", [False, True])
def test_small_graphs(n: int, joined: bool) -> None:
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(n - 1)] if joined else np.zeros((0, 2), int), n=n)
    for f in (np.zeros(n), np.ones(n), np.arange(n) * 1.0, noisy(np.zeros(n), 1.0)):
        assert np.isfinite(pf.denoise(graph, f)).all()


def test_constants_and_integers_stay() -> None:
    assert np.allclose(pf.denoise(GRAPH, np.full(GRAPH.n, 3)), 3.0)


@pytest.mark.parametrize(
    ("f", "options", "words"),
    [
        (np.full(500, np.nan), {}, "no number at all"),
        (np.full(500, np.inf), {}, "holds inf"),
        (np.zeros(499), {}, "499 rows and 500 are needed"),
        (np.zeros(500), {"sigma": -1.0}, "sigma"),
        (np.zeros(500), {"sigma": np.ones(3)}, "sigma"),
        (np.zeros(500), {"sigma": 0.1, "noise": "heavy"}, "give one of them"),
        (np.zeros(500), {"noise": "loud"}, "noise"),
        (np.zeros(500), {"trees": 0}, "trees"),
        (np.zeros(500), {"time": True}, "one column"),
    ],
)
def test_bad_calls_are_answered(f: np.ndarray, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pf.denoise(GRAPH, f, **options)


# ---------------------------------------------------------------- what it is made of


@pytest.mark.parametrize("n", [200, 420])  # all eigenvectors; some of them, and polynomials
def test_bands_add_up_and_their_sizes_are_right(n: int) -> None:
    graph, _ = geometric(n)
    ground = Ground(graph, 1)
    y = np.random.default_rng(0).standard_normal(n)
    parts = ground.bank.apply(y)
    assert np.allclose(parts.sum(axis=0), y, atol=1e-9)
    dense = np.stack([ground.bank.apply(one) for one in np.eye(n)], axis=2)
    traces = np.trace(dense, axis1=1, axis2=2)
    assert np.allclose(ground.bank.diagonals.sum(axis=1), traces, atol=0.03 * n)
    assert np.allclose(ground.bank.sizes, (dense**2).sum(axis=(1, 2)), atol=0.03 * n)
    assert np.allclose(dense, dense.transpose(0, 2, 1), atol=1e-8)


def test_the_risk_of_filters_is_told_without_bias() -> None:
    """Over many draws of noise, what Stein's estimate chooses is nearly as good as the best fixed weights."""
    ground = Ground(GRAPH, 1)
    f, draw = CLEAN["smooth"], np.random.default_rng(0)
    ys = f + 0.5 * draw.standard_normal((20, len(f)))
    chosen = np.mean([error(ground.bank.fit(y, np.full(len(f), 0.25)), f) ** 2 for y in ys])
    clean, dense = ground.bank.apply(f), ground.bank.diagonals.sum(axis=1)
    wiener = _boxed(clean @ clean.T + 0.25 * np.diag(dense), clean @ f)
    best = np.mean([error(wiener @ ground.bank.apply(y), f) ** 2 for y in ys])
    assert chosen < 1.6 * best


def test_filters_do_not_depend_on_the_choice_of_eigenvectors() -> None:
    """On a grid many eigenvalues are equal; a renumbered one has other eigenvectors and the same filters."""
    side = 12
    places = np.arange(side * side).reshape(side, side)
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in
                            ((places[1:], places[:-1]), (places[:, 1:], places[:, :-1]))])  # fmt: skip
    graph = pf.Graph.from_edges(edges)
    perm = np.random.default_rng(0).permutation(graph.n)
    y = np.random.default_rng(1).standard_normal(graph.n)
    banks = [Bank(csr, np.ones((graph.n, 1))) for csr in (graph.adjacency, graph.permute(perm).adjacency)]
    assert np.allclose(banks[0].apply(y)[:, perm], banks[1].apply(y[perm]), atol=1e-8)
    noise = np.random.default_rng(2).random(graph.n)
    assert np.allclose(banks[0].smooth(y, noise)[perm], banks[1].smooth(y[perm], noise[perm]), atol=1e-8)


@pytest.mark.parametrize("n", [300, 700])  # all eigenvectors, and some with polynomials
def test_a_smooth_field_comes_near_to_who_knows_its_variances_and_beats_every_cut_off(n: int) -> None:
    """Wiener's factors of the true variances are the best there is; a cut-off is chosen with the true σ."""
    graph, _ = geometric(n, seed=3)
    ground, draw, sigma = Ground(graph, 1), np.random.default_rng(0), 0.3
    values, vectors = np.linalg.eigh(laplacian(ground.weights).toarray())
    errors = []
    for scale in (3, 10, 30):
        for falling in (np.exp(-np.arange(n) / scale), np.exp(-values / values[scale])):
            variances = n * falling / falling.sum()  # of mean square 1
            c = np.sqrt(variances) * draw.standard_normal(n)
            z = c + sigma * draw.standard_normal(n)
            risks = np.append(np.cumsum(z[::-1] ** 2)[::-1], 0.0) + 2.0 * sigma**2 * np.arange(n + 1)
            cut = np.where(np.arange(n) < risks.argmin(), z, 0.0)
            found = ground.bank.smooth(vectors @ z, np.full(n, sigma**2))
            errors.append([error(found, vectors @ c), error(z * variances / (variances + sigma**2), c), error(cut, c)])
    ours, best, low_pass = np.square(errors).mean(axis=0)
    assert ours < 1.15 * best
    assert ours < 0.9 * low_pass


def test_a_field_without_edges_or_without_noise_is_left_alone() -> None:
    y = np.arange(6.0)
    for graph in (pf.Graph.from_edges(np.zeros((0, 2), int), n=6), pf.Graph.from_edges([[0, 1], [1, 2]], n=6)):
        assert np.allclose(Ground(graph, 1).bank.smooth(y, np.zeros(6)), y)
    assert np.allclose(Ground(graph, 1).bank.smooth(np.full(6, 2.0), np.ones(6)), 2.0)


def test_a_mixture_must_promise_more_than_chance_does() -> None:
    residuals, price = np.array([[3.0, 0.0], [0.0, 2.9]]), np.zeros(2)
    assert np.array_equal(_weights(residuals, price, 10.0), [1.0, 0.0])
    assert _weights(residuals, price, 0.1)[1] > 0.4


@given(st.integers(0, 1000), st.integers(1, 6))
def test_the_mixture_is_the_best_one(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    residuals, price = draw.standard_normal((8, count)), draw.standard_normal(count)
    w = mixture(residuals, price)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0)

    def risk(w: np.ndarray) -> float:
        return float(np.sum((residuals @ w) ** 2) + price @ w)

    others = draw.dirichlet(np.full(count, 0.5), 200)
    assert all(risk(w) <= risk(other) + 1e-7 for other in [*others, *np.eye(count)])


@given(st.integers(0, 1000), st.integers(1, 6))
def test_weights_in_a_box_are_the_best_ones(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    parts = draw.standard_normal((count, 10))
    Q, q = parts @ parts.T, 5.0 * draw.standard_normal(count)
    w = _boxed(Q, q)
    other = minimize(
        lambda w: w @ Q @ w - 2 * q @ w, np.full(count, 0.5), jac=lambda w: 2 * (Q @ w - q), bounds=[(0, 1)] * count
    )
    assert w @ Q @ w - 2 * q @ w <= other.fun + 1e-4 * (1 + abs(other.fun))


def test_shrinking_is_odd_and_keeps_the_order() -> None:
    x = np.concatenate([np.random.default_rng(0).standard_normal(500), np.linspace(-100, 100, 51)])
    shrunk = shrink_levels(x, 1.0)
    assert np.allclose(shrink_levels(-x, 1.0), -shrunk)
    order = np.argsort(x)
    assert (np.diff(shrunk[order]) >= -1e-9).all()
    assert np.array_equal(shrink_levels(x[:0]), x[:0])


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_normal_coefficients_meet_the_factor_of_wiener(spread: float) -> None:
    draw = np.random.default_rng(0)
    clean = spread * draw.standard_normal(20_000)
    x = clean + draw.standard_normal(20_000)
    wiener = error(x * spread**2 / (1 + spread**2), clean)
    assert error(shrink_levels(x, 1.0), clean) < 1.03 * wiener


def test_few_values_are_found() -> None:
    clean = np.random.default_rng(0).choice([0.0, 1.0, 5.0], 2000)
    found = shrink_values(noisy(clean, 0.3), 0.3)
    assert error(found, clean) < 0.6 * 0.3


@pytest.mark.parametrize("kind", CLEAN)
@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_the_first_guess_of_the_noise(kind: str, sigma: float) -> None:
    guess = first_guess(Ground.of(GRAPH, 1), noisy(CLEAN[kind], sigma))
    assert 0.85 * sigma < guess < 1.5 * sigma


def test_local_noise_is_a_mean_of_what_is_around() -> None:
    draw = np.random.default_rng(0)
    sigma = np.where(POINTS[:, 0] > 0.5, 2.0, 1.0)
    found = local_noise(Ground.of(GRAPH, 1), sigma * draw.standard_normal(GRAPH.n), 0.0)
    inside = np.abs(POINTS[:, 0] - 0.5) > 0.25
    assert np.abs(np.log(found / sigma))[inside].mean() < 0.3


def test_laplacian_of_a_path() -> None:
    assert laplacian(pf.Graph.from_edges([[0, 1], [1, 2]]).adjacency).toarray().tolist() == [
        [1, -1, 0],
        [-1, 2, -1],
        [0, -1, 1],
    ]


def test_graphs_of_other_libraries_are_taken_as_they_are() -> None:
    from pygsp import graphs

    given = graphs.Ring(60)
    y = noisy(np.sin(np.arange(60) / 5), 0.3)
    ours = pf.denoise(pf.Graph.from_pygsp(given), y)
    assert np.array_equal(pf.denoise(given, y), ours)
    assert np.array_equal(pf.denoise(given.W, y), ours)


def test_graphs_are_not_kept_for_ever() -> None:
    """What is made of a graph holds the graph, so only that of the last few may stay."""
    alive = []
    for seed in range(KEPT + 3):
        graph, _ = geometric(30, seed)
        Ground.of(graph, 1)
        Dictionary.of(graph)
        alive.append(weakref.ref(graph))
    del graph
    gc.collect()
    assert sum(one() is not None for one in alive) == KEPT
