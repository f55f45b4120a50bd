"""A noisy signal on a random geometric graph: taken apart, cleaned, and put together again."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial import cKDTree

from pegfan._atomic import replacing
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.trees import Hierarchy

__all__ = ["Numbers", "piecewise_smooth", "random_geometric", "run"]

FloatArray = NDArray[np.float64]

PICTURE = "framelets.png"
NODES, DEGREE = 1000, 9
SIZES = (4, 16, 64, 256)
NOISE = 0.5


class Numbers(TypedDict):
    """What `run` found."""

    nodes: int
    edges: int
    clusters: tuple[int, ...]
    framelets: int
    frame_bounds: tuple[float, float]
    reconstruction_error: float
    energy: list[float]
    snr_noisy: float
    snr_denoised: float
    picture: Path


def run(folder: str | os.PathLike[str], seed: int = 0) -> Numbers:
    """Run the demonstration and write its picture.

    Parameters
    ----------
    folder
        Where to write ``framelets.png``; made if it is missing.
    seed
        Of the nodes' positions and the noise.

    Returns
    -------
    dict
        ``nodes`` and ``edges`` of the graph; ``clusters`` of every level of the tree; the number of
        ``framelets`` (with the scaling vector) and their ``frame_bounds``; the largest
        ``reconstruction_error``; the share of ``energy`` of the noisy signal in F_0, ..., F_(K−1); ``snr_noisy``
        and ``snr_denoised``, signal-to-noise ratios in decibels; the path of the ``picture``.

    Examples
    --------
    >>> import tempfile
    >>> from pegfan import demo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numbers = demo.run(folder)
    >>> numbers["snr_denoised"] > numbers["snr_noisy"] + 4
    True
    """
    target = Path(folder) / PICTURE
    target.parent.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(seed)
    graph = random_geometric(NODES, DEGREE, rng)
    assert graph.positions is not None
    tree = Hierarchy.from_linkage(linkage(graph.positions, "ward"), sizes=SIZES)
    # Weights by size make every framelet blind to constants, so that smooth pieces have small coefficients.
    system = FrameletSystem(tree, weights="size")

    clean = piecewise_smooth(graph.positions)
    noisy = clean + NOISE * rng.standard_normal(graph.n)
    coefficients = system.decompose(noisy)
    denoised = system.denoise(noisy, threshold="sure")
    with replacing(target) as file:
        file.write(_draw(graph, system, clean, noisy, denoised))
    return {
        "nodes": graph.n,
        "edges": graph.n_edges,
        "clusters": tree.n_clusters,
        "framelets": system.count(),
        "frame_bounds": system.frame_bounds(),
        "reconstruction_error": float(np.abs(system.reconstruct(coefficients) - noisy).max()),
        "energy": [energy / float(noisy @ noisy) for energy in coefficients.energies()],
        "snr_noisy": _decibels(clean, noisy),
        "snr_denoised": _decibels(clean, denoised),
        "picture": target,
    }


def random_geometric(n: int, degree: float, rng: np.random.Generator) -> Graph:
    """A graph of random points in the unit square, joined where they are close.

    Parameters
    ----------
    n
        The number of nodes.
    degree
        The mean number of neighbours of a node far from the border.
    rng
        Where the points come from.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan import demo
    >>> graph = demo.random_geometric(100, 6, np.random.default_rng(0))
    >>> graph.n, graph.positions.shape
    (100, (100, 2))
    """
    positions = rng.random((n, 2))
    edges = cKDTree(positions).query_pairs(np.sqrt(degree / (np.pi * n)), output_type="ndarray")
    return Graph.from_edges(edges, n=n, positions=positions)


def piecewise_smooth(positions: FloatArray) -> FloatArray:
    """A signal on the unit square: smooth above and below a wave, with a hole in the upper part.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan import demo
    >>> demo.piecewise_smooth(np.array([[0.0, 1.0], [0.5, 0.0], [0.75, 0.64]]))
    array([ 2. , -1.3, -1. ])
    """
    x, y = positions.T
    above = 1.2 + 0.8 * y * np.cos(2 * np.pi * x)
    below = -1.0 - 0.6 * x
    hole = (x - 0.72) ** 2 + (y - 0.64) ** 2 < 0.022
    wave = 0.5 + 0.22 * np.sin(2 * np.pi * x)
    return np.asarray(np.where(y > wave, above, below) - 2.2 * hole)


def _decibels(clean: FloatArray, other: FloatArray) -> float:
    """The signal-to-noise ratio 10 log10(‖f‖² / ‖f − g‖²)."""
    error = other - clean
    return float(10 * np.log10((clean @ clean) / (error @ error)))


def _draw(graph: Graph, system: FrameletSystem, clean: FloatArray, noisy: FloatArray, denoised: FloatArray) -> bytes:
    from matplotlib.figure import Figure

    from pegfan import plots

    figure = Figure(figsize=(10.2, 6.8), layout="constrained", facecolor="white")
    top, bottom = figure.subfigures(2, 1, squeeze=False)[:, 0]
    panels = {
        f"noisy signal, {_decibels(clean, noisy):.1f} dB": noisy,
        f"denoised, {_decibels(clean, denoised):.1f} dB": denoised,
        "true signal": clean,
    }
    limit = float(np.abs(clean).max())
    plots.signals(graph, panels, limits=(-limit, limit), figure=top)
    parts = {f"noisy signal at scale {j},  $F_{{{j}}}f$": system.project(noisy, j) for j in (1, 3, 5)}
    limit = float(np.quantile(np.abs(np.concatenate(list(parts.values()))), 0.99))
    plots.signals(graph, parts, limits=(-limit, limit), figure=bottom)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()
