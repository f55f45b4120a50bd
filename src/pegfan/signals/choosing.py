"""The tree for a signal, and the pieces of a tree that a signal is constant on; both told from noisy data alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_integer, check_kind, check_number
from pegfan.framelets._signals import as_signal
from pegfan.framelets.frames import FrameletFrame
from pegfan.framelets.system import FrameletSystem
from pegfan.graph import Graph
from pegfan.running import Progress, Step, one_thread
from pegfan.signals._gaps import filled
from pegfan.signals._ground import Ground
from pegfan.signals.noise import first_guess, spread
from pegfan.trees import Hierarchy, build_tree, canonical_order

__all__ = ["Pieces", "best_pieces", "best_tree"]

_SPLIT = 0.5
"""Noise that is added for choosing, in units of the noise that is there; the other copy has twice as much added."""
_DRAWS = 3
"""How often a signal is split: trees are chosen by the mean."""
_KEPT = 16
"""Trees whose mean estimate is followed instead of the signal itself."""
_WEIGHT = 4.0
"""`signal_weight` of trees that follow something; between 1 and 16 it hardly matters."""
_PAIRS = 24
"""Pairs of nodes that tell how much noise there is."""


def best_tree(
    graph: Any, f: Any, *, sigma: float | None = None, trees: int = 4, progress: Progress | None = None
) -> Hierarchy:
    """The tree on which a noisy signal is denoised best, by an honest estimate of the error.

    Trees of several seeds are tried, each as the graph alone has it, following the signal
    (``build_tree(signals=f)``), and following a first estimate of the clean signal. A tree that follows a noisy
    signal follows its noise, and no estimate of risk on the same data sees that. So the signal y is split (data
    fission): with normal numbers z, y + τσz and y − σz/τ have independent noise. Tree and estimate are made from the
    first, and compared with the second, which neither has seen; the tree of least mean error over a few z wins, and
    is grown once more from y itself.

    Parameters
    ----------
    graph
        The graph, or what stands for one (`Graph.of`): PyGSP, NetworkX, a matrix, edges.
    f
        The noisy signal, n values or n × d; NaN is missing.
    sigma
        The standard deviation of the noise; by default estimated, column by column.
    trees
        How many seeds, at most 16; three times as many trees are tried.
    progress
        Called with a `pegfan.running.Step` per split of the signal.

    Returns
    -------
    Hierarchy
        A binary tree; ``info["signals"]`` is there if it follows the signal.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(199)] + [[i, i + 5] for i in range(195)])
    >>> clean = np.repeat([0.0, 2.0, 1.0], [71, 62, 67])
    >>> noisy = clean + 0.2 * np.random.default_rng(0).standard_normal(200)
    >>> tree = best_tree(graph, noisy)
    >>> tree.info["signals"]
    1
    >>> bool(np.abs(best_pieces(tree, noisy).signal - clean).mean() < 0.05)
    True
    """
    graph = Graph.of(graph)
    y = _signal(f, graph.n)
    check_integer(trees, "trees", least=1, most=_KEPT)
    ground = Ground.of(graph, _KEPT)
    with one_thread():
        seen = ~np.isnan(y)
        whole = np.stack([filled(ground, *column) for column in zip(y.T, seen.T, strict=True)], axis=1)
        if sigma is None:
            noise = np.array([first_guess(ground, column) for column in whole.T])
        else:
            noise = np.full(y.shape[1], check_number(sigma, "sigma"))
        unit = np.where(noise > 0, noise, 1.0)
        choices = [(seed, follows) for seed in range(trees) for follows in ("graph", "signal", "estimate")]
        error = np.zeros(len(choices))
        for draw in range(_DRAWS if noise.any() else 0):
            if progress:
                progress(Step(draw, _DRAWS, f"choosing among {len(choices)} trees, round {draw + 1} of {_DRAWS}"))
            z = np.empty_like(y)
            z[canonical_order(graph).order] = np.random.default_rng(draw).standard_normal(y.shape)
            first, second = whole + _SPLIT * noise * z, whole - noise * z / _SPLIT
            louder = noise * (1.0 + _SPLIT**2) ** 0.5
            for place, system in enumerate(_grown(ground, first, louder, choices)):
                found = _shrunk(FrameletFrame([system]), first, louder)
                error[place] += np.sum(seen * ((second - found) / unit) ** 2)
        return _grown(ground, whole, noise, [choices[int(error.argmin())]])[0].hierarchy


def _grown(ground: Ground, y: FloatArray, noise: FloatArray, choices: list[tuple[int, str]]) -> list[FrameletSystem]:
    """Framelets on the trees of some choices of seed and of what is followed."""
    followed = {"signal": y}
    if any(follows == "estimate" for _, follows in choices):
        followed["estimate"] = _shrunk(ground.frame, y, noise)
    grow = partial(build_tree, ground.graph, "matching", 2, signal_weight=_WEIGHT)
    return [
        ground.frame[seed] if follows == "graph" else _basis(grow(signals=followed[follows], seed=seed))
        for seed, follows in choices
    ]


def _shrunk(frame: FrameletFrame, y: FloatArray, noise: FloatArray) -> FloatArray:
    return np.stack([frame.denoise(column, sigma=one) for column, one in zip(y.T, noise, strict=True)], axis=1)


def _basis(tree: Hierarchy) -> FrameletSystem:
    return FrameletSystem(tree, "haar-basis", weights="size")


@dataclass(frozen=True)
class Pieces:
    """A signal that is constant on clusters of a tree.

    Attributes
    ----------
    labels
        The piece of every node, numbered as they stand on the leaves.
    signal
        The mean of every node's piece, of the shape of what was given.
    sigma
        The standard deviation of the noise that was reckoned with; one per column.
    """

    labels: IntArray
    signal: FloatArray
    sigma: FloatArray

    @property
    def count(self) -> int:
        """How many pieces."""
        return int(self.labels.max()) + 1


def best_pieces(tree: Hierarchy, f: Any, *, sigma: float | None = None, penalty: float | None = None) -> Pieces:
    """Prune a tree to the clusters that a noisy signal is constant on: the best basis of its kind.

    Of all ways to cut a tree into clusters, from single nodes to the root, this is the one with the least squared
    error plus a penalty for every piece. The best cut of a cluster is either itself or the best cuts of its children,
    so it is found in one pass from the leaves up (R. Coifman and V. Wickerhauser; CART; D. Donoho's dyadic pieces).

    Parameters
    ----------
    tree
        The tree, of `best_tree` for instance.
    f
        The signal, n values or n × d, cut in the same places; NaN is missing.
    sigma
        The standard deviation of the noise; by default told from pairs of siblings, column by column.
    penalty
        What a piece costs per column, in units of σ²; ln n by default.

    Examples
    --------
    >>> import pegfan as pf
    >>> tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    >>> pieces = best_pieces(tree, [1.1, 0.9, 1.0, 1.0, 5.1, 4.9, 8.1, 7.9], sigma=0.1)
    >>> pieces.labels, pieces.signal
    (array([0, 0, 0, 0, 1, 1, 2, 2]), array([1., 1., 1., 1., 5., 5., 8., 8.]))
    """
    check_kind(tree, "tree", Hierarchy)
    y = _signal(f, tree.n)
    noise = _siblings(tree, y) if sigma is None else np.full(y.shape[1], check_number(sigma, "sigma"))
    price = np.log(max(tree.n, 2)) if penalty is None else check_number(penalty, "penalty")
    # A column without noise is worth any number of pieces, but none is made of equal values.
    unit = np.where(noise > 0, noise, 1e-9 * (np.nanmax(np.abs(y), axis=0, initial=0.0) + 1e-300))
    leaves = y[tree.order] / unit
    counts, means = (~np.isnan(leaves)).astype(np.float64), np.nan_to_num(leaves)
    error, cost = np.zeros(tree.n), np.full(tree.n, price * y.shape[1])
    levels = [(counts, means, np.ones(tree.n, bool))]
    for parents in tree.parents:
        m = int(parents[-1]) + 1
        total = _added(parents, counts, m)
        mean = _added(parents, counts * means, m) / np.maximum(total, 1.0)
        between = (counts * (means - mean[parents]) ** 2).sum(axis=1)
        error, apart = (np.bincount(parents, part, m).astype(np.float64) for part in (error + between, cost))
        whole = error + price * y.shape[1] <= apart
        cost = np.where(whole, error + price * y.shape[1], apart)
        counts, means = total, mean
        levels.append((counts, means, whole))
    counts, means, whole = levels[-1]
    piece, value, cut = np.zeros(1, np.int64), means, whole
    for parents, (counts, means, whole) in zip(tree.parents[::-1], levels[-2::-1], strict=True):
        above = cut[parents]
        # A cluster without a value takes that of the smallest one around it that has one.
        value = np.where(above[:, None] | (counts == 0), value[parents], means)
        piece = np.where(above, piece[parents], np.arange(len(parents)) + piece.max() + 1)
        cut = above | whole
    labels, signal = np.empty(tree.n, np.int64), np.empty(y.shape)
    labels[tree.order] = np.cumsum(np.diff(piece, prepend=-1) != 0) - 1
    signal[tree.order] = value * unit
    return Pieces(labels, signal.reshape(np.shape(f)), noise)


def _signal(f: Any, n: int) -> FloatArray:
    given = as_signal(f, n)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"the signal must be a NumPy array, got {type(f).__name__}; use .toarray() or .numpy()")
    if np.isinf(given).any():
        raise ValueError("the signal holds infinite values; make them NaN, which is missing")
    return given.astype(np.float64).reshape(n, -1)


def _siblings(tree: Hierarchy, y: FloatArray) -> FloatArray:
    """σ of every column, from clusters of two or three nodes."""
    system = _basis(tree)
    fine = system.decompose(y).array[np.isin(FrameletFrame([system]).scales, (1, 2))]
    seen = [column[~np.isnan(column)] for column in fine.T]
    return np.array([spread(column) if len(column) >= _PAIRS else 0.0 for column in seen])


def _added(parents: IntArray, rows: FloatArray, count: int) -> FloatArray:
    """Rows summed by parent; siblings stand beside each other."""
    return np.asarray(np.add.reduceat(rows, np.flatnonzero(np.diff(parents, prepend=-1)), axis=0)).reshape(count, -1)
