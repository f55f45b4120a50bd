"""Graphs and signals of `signals.py`, and the rivals for signals with gaps and for compression.

Graphs are PyGSP's and two real ones, signals are drawn: five kinds, all with mean square 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse import csgraph, csr_array
from scipy.sparse.linalg import splu

import pegfan as pf

Array = NDArray[np.float64]

GRAPHS = ("minnesota", "swiss roll", "bunny", "sensor", "cora", "chameleon")
KINDS = ("piecewise constant", "piecewise smooth", "smooth", "spikes", "labels")
KEPT = (0.01, 0.02, 0.05, 0.1, 0.2)
MISSING = (0.1, 0.3, 0.5)
STEPS = 32
"""Of tables over time."""


@cache
def graph_of(name: str) -> pf.Graph:
    """A graph by name, as one component."""
    from pygsp import graphs

    makers: dict[str, Callable[[], Any]] = {
        "minnesota": graphs.Minnesota,
        "swiss roll": lambda: graphs.SwissRoll(N=1000, seed=7),
        "bunny": graphs.Bunny,
        "sensor": lambda: graphs.Sensor(N=1000, seed=7),
        "community": lambda: graphs.Community(N=1000, seed=7),
        "grid": lambda: graphs.Grid2d(32),
    }
    if name not in makers:
        loaded = pf.datasets.load(name)
        whole = loaded.symmetrize() if loaded.directed else loaded
    else:
        weights = csr_array(makers[name]().W)
        whole = pf.Graph((weights + weights.T) * 0.5)
    graph = whole.largest_component()
    return pf.Graph(graph.adjacency, features=graph.features, labels=graph.labels)


@cache
def spectrum(name: str) -> tuple[Array, Array]:
    """All eigenvalues and eigenvectors of the Laplacian."""
    values, vectors = eigh(laplacian_of(graph_of(name)).toarray(), driver="evd")
    return values, vectors


def laplacian_of(graph: pf.Graph) -> csr_array:
    """D − W."""
    return csr_array(csgraph.laplacian(csr_array(graph.adjacency, dtype=np.float64)))


# --------------------------------------------------------------------- signals


def signal(name: str, kind: str, rng: np.random.Generator) -> Array:
    """A signal of a class; on the real graphs also their own labels, degrees and features."""
    graph = graph_of(name)
    if kind == "piecewise constant":
        k = int(rng.integers(3, 10))
        values = rng.permutation(np.linspace(-1, 1, k)) if rng.random() < 0.5 else rng.standard_normal(k)
        return normed(values[_cells(graph, k, rng)])
    if kind == "piecewise smooth":
        k = int(rng.integers(2, 6))
        cells = _cells(graph, k, rng)
        parts = np.stack([normed(_smooth(name, rng, 5)) for _ in range(k)])
        return normed(parts[cells, np.arange(graph.n)] + 2.0 * rng.standard_normal(k)[cells])
    if kind == "smooth":
        return normed(_smooth(name, rng))
    if kind == "spikes":
        f = normed(_smooth(name, rng))
        places = rng.choice(graph.n, max(1, graph.n // 50), replace=False)
        f[places] += rng.choice([-1, 1], len(places)) * rng.uniform(2, 5, len(places))
        return normed(f)
    if graph.labels is not None and rng.random() < 0.5:
        own = graph.labels if rng.random() < 0.5 else graph.labels == rng.integers(graph.n_classes)
        return normed(np.asarray(own, np.float64))
    k = int(rng.integers(2, 8))
    classes = _cells(graph, k, rng)
    flipped = rng.random(graph.n) < rng.choice([0, 0.05, 0.2])
    classes[flipped] = rng.integers(0, k, int(flipped.sum()))
    return normed(classes.astype(float) if rng.random() < 0.5 else (classes == 0).astype(float))


def normed(f: Array) -> Array:
    """Mean 0 and mean square 1."""
    f = f - f.mean()
    return np.asarray(f / (np.sqrt(np.mean(f**2)) or 1.0))


def _cells(graph: pf.Graph, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The nearest of k random nodes, by steps."""
    centres = rng.choice(graph.n, k, replace=False)
    steps = csgraph.dijkstra(csr_array(graph.adjacency), directed=False, indices=centres, unweighted=True)
    return np.asarray((np.where(np.isfinite(steps), steps, 1e9) + 0.5 * rng.random((k, 1))).argmin(axis=0))


def _smooth(name: str, rng: np.random.Generator, scale: float | None = None) -> Array:
    values, vectors = spectrum(name)
    scale = float(rng.choice([3, 10, 30])) if scale is None else scale
    by_number = rng.random() < 0.5
    decay = np.exp(-np.arange(len(values)) / scale) if by_number else np.exp(-values / values[int(scale)])
    return np.asarray(vectors @ (decay * rng.standard_normal(len(values))))


def decibels(f: Array, g: Array) -> float:
    """The signal over the error; from 120 on, all is there but rounding."""
    return min(120.0, float(10 * np.log10(np.sum(f**2) / max(float(np.sum((f - g) ** 2)), 1e-30))))


# ------------------------------------------------------------------------ gaps


def tikhonov(L: csr_array, y: Array, seen: NDArray[np.bool_], tau: float) -> Array:
    """PyGSP's ``regression_tikhonov``: least Σ_seen (x − y)² + τ xᵀLx; with τ = 0 the harmonic interpolation."""
    if tau == 0:
        x, gap = np.where(seen, y, 0.0), ~seen
        inner = sparse.csc_array(L[gap][:, gap] + 1e-12 * sparse.eye_array(int(gap.sum())))
        x[gap] = splu(inner).solve(-(L[gap][:, seen] @ y[seen]))
        return x
    matrix = sparse.csc_array(sparse.diags_array(seen.astype(float)) + tau * L)
    return np.asarray(splu(matrix).solve(np.where(seen, y, 0.0)))


def propagation(graph: pf.Graph, y: Array, seen: NDArray[np.bool_], alpha: float) -> Array:
    """Label propagation of Zhou et al. with S = D^-1/2 W D^-1/2: (I − αS)^-1 Y over (I − αS)^-1 of what is seen."""
    W = csr_array(graph.adjacency, dtype=np.float64)
    d = np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1e-12) ** -0.5
    S = csr_array(sparse.diags_array(d) @ W @ sparse.diags_array(d))
    both = np.stack([np.where(seen, y, 0.0), seen.astype(float)], axis=1)
    x = both.copy()
    for _ in range(100):
        x = alpha * (S @ x) + both
    mean = y[seen].mean()
    return np.asarray((x[:, 0] + 1e-9 * mean) / (x[:, 1] + 1e-9))


def gap_rivals(graph: pf.Graph, y: Array, seen: NDArray[np.bool_]) -> dict[str, Array]:
    """Estimates by name; τ is in units of the mean degree."""
    L = laplacian_of(graph)
    scale = float(L.diagonal().mean())
    found = {"mean": np.full(graph.n, y[seen].mean()), "harmonic (Tikhonov, τ = 0)": tikhonov(L, y, seen, 0.0)}
    for tau in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0):
        found[f"Tikhonov, τ = {tau:g}"] = tikhonov(L, y, seen, tau / scale)
    for alpha in (0.5, 0.8, 0.9, 0.99):
        found[f"label propagation, α = {alpha:g}"] = propagation(graph, y, seen, alpha)
    return found


def gap_row(name: str, kind: str, missing: float, noise: float, seed: int, ours: bool = True) -> dict[str, float]:
    """Decibels at the missing nodes, by method."""
    rng = np.random.default_rng([seed, GRAPHS.index(name) if name in GRAPHS else 99, KINDS.index(kind)])
    f = signal(name, kind, rng)
    graph = graph_of(name)
    gap = np.zeros(graph.n, bool)
    gap[rng.choice(graph.n, max(1, round(missing * graph.n)), replace=False)] = True
    y = f + noise * rng.standard_normal(graph.n)
    row = {rival: _missed(f, found, gap) for rival, found in gap_rivals(graph, y, ~gap).items()}
    if ours:
        row["pegfan"] = _missed(f, pf.inpaint(graph, np.where(gap, np.nan, y)), gap)
    return row


def _missed(f: Array, g: Array, gap: NDArray[np.bool_]) -> float:
    return min(120.0, float(-10 * np.log10(max(float(np.mean((f - g)[gap] ** 2)), 1e-30))))


# ----------------------------------------------------------------- compression


def bisection_haar(name: str) -> csr_array:
    """The Haar basis of recursive bisection: halves by the order of the Fiedler vector of every part."""
    L, n = laplacian_of(graph_of(name)), graph_of(name).n
    rows: list[tuple[NDArray[np.int64], Array]] = [(np.arange(n), np.full(n, n**-0.5))]
    parts = [np.arange(n)]
    W = sparse.diags_array(L.diagonal()) - L
    while parts:
        part = parts.pop()
        if len(part) == 1:
            continue
        inner = csr_array(csgraph.laplacian(csr_array(csr_array(W)[part][:, part]))).toarray()
        order = np.argsort(eigh(inner, subset_by_index=(0, 1))[1][:, 1], kind="stable")
        a, b = np.sort(part[order[: len(part) // 2]]), np.sort(part[order[len(part) // 2 :]])
        scale = (len(a) * len(b) / len(part)) ** 0.5
        rows.append((np.concatenate([a, b]), np.repeat([scale / len(a), -scale / len(b)], [len(a), len(b)])))
        parts += [a, b]
    places = np.concatenate([np.full(len(nodes), i) for i, (nodes, _) in enumerate(rows)])
    nodes, values = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
    return csr_array((values, (places, nodes)), shape=(n, n))


@cache
def bases(name: str) -> dict[str, Any]:
    """Orthonormal bases in rows."""
    graph = graph_of(name)
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", 2), "haar-basis", weights="size")
    return {
        "Fourier": spectrum(name)[1].T,
        "graph Haar (one tree)": system.matrix(),
        "graph Haar (bisection)": bisection_haar(name),
    }


def largest(basis: Any, f: Array, k: int) -> Array:
    """The best approximation of k vectors of an orthonormal basis."""
    c = basis @ f
    c[np.argsort(-np.abs(c), kind="stable")[k:]] = 0.0
    return np.asarray(basis.T @ c)


def compression_row(name: str, kind: str, keep: float, seed: int, ours: bool = True) -> dict[str, float]:
    """Decibels of the whole signal, by method."""
    rng = np.random.default_rng([seed, GRAPHS.index(name) if name in GRAPHS else 99, KINDS.index(kind)])
    f = signal(name, kind, rng)
    k = max(1, round(keep * len(f)))
    row = {rival: decibels(f, largest(basis, f, k)) for rival, basis in bases(name).items()}
    if ours:
        row["pegfan"] = decibels(f, pf.compress(graph_of(name), f, k).signal)
    return row


# ------------------------------------------------------------------------ time


def table_over_time(name: str, kind: str, rng: np.random.Generator) -> Array:
    """Two signals of a kind over `STEPS` steps: they turn into each other, or one jumps to the other, or one grows."""
    a, b = signal(name, kind, rng), signal(name, kind, rng)
    t = np.arange(STEPS) / STEPS
    how = rng.integers(3)
    if how == 0:
        by = np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)
    elif how == 1:
        late = t >= rng.uniform(0.2, 0.8)
        by = 1.0 - late, 1.0 * late
    else:
        by = np.ones(STEPS), t
    f = np.outer(a, by[0]) + np.outer(b, by[1])
    return np.asarray(f / np.sqrt(np.mean(f**2)))


def product_tikhonov(name: str, y: Array, clean: Array) -> Array:
    """(I + τ(L ⊗ I + ρ I ⊗ L_T))⁻¹ y on nodes times steps, with the τ and ρ that are best for the very table."""
    values, vectors = spectrum(name)
    over, waves = eigh(csgraph.laplacian(sparse.diags_array(np.ones(STEPS - 1), offsets=1).toarray(), symmetrized=True))
    z, best = vectors.T @ y @ waves, y
    for tau in np.geomspace(0.01, 100, 9) / values.mean():
        for rho in np.geomspace(0.01, 100, 9) * values.mean():
            x = vectors @ (z / (1.0 + tau * (values[:, None] + rho * over))) @ waves.T
            best = min(best, x, key=lambda one: float(np.sum((one - clean) ** 2)))
    return best


def few_components(y: Array, sigma: float) -> Array:
    """Singular values shrunk as is best for known noise (M. Gavish, D. Donoho 2017)."""
    n, steps = y.shape
    u, s, v = np.linalg.svd(y, full_matrices=False)
    beta, size = steps / n, s / (sigma * np.sqrt(n))
    kept = size > 1.0 + np.sqrt(beta)
    shrunk = np.sqrt(np.maximum((size**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0)) / np.maximum(size, 1e-12)
    return np.asarray((u * (np.where(kept, shrunk, 0.0) * sigma * np.sqrt(n))) @ v)


def time_row(name: str, kind: str, sigma: float, seed: int) -> dict[str, float]:
    """Decibels of a noisy table over time, by method; ours is not given σ."""
    rng = np.random.default_rng([seed, GRAPHS.index(name), KINDS.index(kind), STEPS])
    f = table_over_time(name, kind, rng)
    y = f + sigma * rng.standard_normal(f.shape)
    graph = graph_of(name)
    found = {
        "noisy": y,
        "components, true σ": few_components(y, sigma),
        "Tikhonov over nodes and time, best τ and ρ": product_tikhonov(name, y, f),
        "pegfan, column by column": pf.denoise(graph, y),
        "pegfan": pf.denoise(graph, y, time=True),
    }
    return {method: decibels(f, g) for method, g in found.items()}
