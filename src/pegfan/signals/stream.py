"""Signals that come column by column: each is denoised by what came before, and by a few columns after it."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np

from pegfan._arrays import FloatArray
from pegfan._checks import as_array, check_integer, shown
from pegfan.framelets._signals import as_signal
from pegfan.graph import Graph
from pegfan.running import one_thread
from pegfan.signals._ground import Ground
from pegfan.signals._stacking import mixture
from pegfan.signals.noise import spread

__all__ = ["Stream"]

_STEP = 0.03
"""How far a signal is moved, in units of noise, to see how much estimates follow it."""
_FEW = 24
"""Numbers that tell how much noise there is."""


class Stream:
    """Noise off a signal on a graph as it comes, column after column.

    A column is compared with the mean of the one before it, these two with the two before them, these four with four,
    and so on through a window: Haar's wavelets over time on the way from the newest column to the root, about log₂ W
    of them. Each difference is a signal on the graph with the same noise, and is denoised as such: by filters of the
    Laplacian and by framelets on several trees, mixed by the estimated risk. Where nothing changes, the newest column
    is the mean of the window; where it does, only as much of the past is used as is like it. Each column takes the
    same time, however many came before.

    Parameters
    ----------
    graph
        The graph, or what stands for one (`Graph.of`): PyGSP, NetworkX, a matrix, edges.
    window
        W, how many columns are kept.
    delay
        How many later columns an estimate waits for: 0 gives out the newest column, d the one of d columns ago, which
        is then smoothed from both sides.
    sigma
        The standard deviation of the noise, a number or one per node; by default it is estimated in the window.
    trees
        How many trees.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(49)])
    >>> clean = np.repeat([0.0, 1.0], 25)
    >>> draw = np.random.default_rng(0)
    >>> stream = Stream(graph, window=16, trees=4)
    >>> for _ in range(16):
    ...     newest = stream.push(clean + 0.3 * draw.standard_normal(50))
    >>> bool(np.abs(newest - clean).mean() < 0.1)
    True
    >>> stream
    Stream(50 nodes, 16 of 16 columns in the window, 16 given out)
    """

    def __init__(self, graph: Any, window: int = 64, *, delay: int = 0, sigma: Any = None, trees: int = 8) -> None:
        graph = Graph.of(graph)
        self.window = check_integer(window, "window", least=1)
        self.delay = check_integer(delay, "delay", least=0)
        if delay >= window:
            raise ValueError(f"a delay of {delay} needs a window of more columns than that; got window={window}")
        self.trees = check_integer(trees, "trees", least=1)
        self._ground = Ground.of(graph, trees)
        self._sigma = None if sigma is None else _check_sigma(sigma, graph.n)
        self._columns: deque[FloatArray] = deque(maxlen=self.window)
        self._guesses: deque[list[float]] = deque(maxlen=self.window)
        self._seen = 0

    def push(self, columns: Any) -> FloatArray | None:
        """Take in a column, or several of them in the order in which they came.

        Parameters
        ----------
        columns
            n values, or n × k; NaN is missing.

        Returns
        -------
        array or None
            Of one column: the estimate of the column `delay` before it, or None while there is none. Of n × k: all
            estimates that became ready, n × at most k. One by one or all at once is the same.
        """
        given = as_signal(columns, self._ground.n, "the columns")
        if not isinstance(given, np.ndarray):
            raise TypeError(f"a stream takes NumPy columns, got {type(columns).__name__}; use .toarray() or .numpy()")
        if np.isinf(given).any():
            raise ValueError("the columns hold infinite values; make them NaN, which is missing")
        table = given.astype(np.float64).reshape(self._ground.n, -1)
        with one_thread():
            ready = [found for column in table.T if (found := self._take(column.copy())) is not None]
        if given.ndim == 1:
            return ready[0] if ready else None
        return np.stack(ready, axis=1) if ready else np.empty((self._ground.n, 0))

    def rest(self) -> FloatArray:
        """Estimates of the columns that wait for later ones, as of now: n × at most `delay`. Nothing changes."""
        ages = range(min(self.delay, len(self._columns)) - 1, -1, -1)
        with one_thread():
            found = [self._estimate(age) for age in ages]
        return np.stack(found, axis=1) if found else np.empty((self._ground.n, 0))

    @property
    def sigma(self) -> FloatArray:
        """The standard deviation of the noise at every node, as given or as the window has it."""
        if self._sigma is not None:
            return self._sigma
        kinds = np.array(self._guesses).reshape(-1, 4)
        told = np.isfinite(kinds).any(axis=0)
        return np.full(self._ground.n, float(np.nanmedian(kinds[:, told], axis=0).min()) if told.any() else 0.0)

    def _take(self, column: FloatArray) -> FloatArray | None:
        if self._sigma is None:
            self._guesses.append(self._guess(column))
        missing = np.isnan(column)
        if missing.any():
            recent = list(self._columns)[-4:]
            around = float(column[~missing].mean()) if not missing.all() else 0.0
            column[missing] = np.mean(recent, axis=0)[missing] if recent else around
        self._columns.append(column)
        if missing.any():  # the guess above is of this node alone, the estimate knows its neighbours
            column[missing] = self._estimate(0)[missing]
        self._seen += 1
        return self._estimate(self.delay) if len(self._columns) > self.delay else None

    def _guess(self, column: FloatArray) -> list[float]:
        """σ by differences over edges, over time (first and second), and over both: a signal only enlarges them."""
        low, high = self._ground.ends
        blank = np.full_like(column, np.nan)
        last, before = (self._columns[-i] if len(self._columns) >= i else blank for i in (1, 2))
        across = column[low] - column[high]
        differences = (
            across / 2.0**0.5,
            (column - last) / 2.0**0.5,
            (column - 2.0 * last + before) / 6.0**0.5,
            (across - last[low] + last[high]) / 2.0,
        )
        seen = (kind[~np.isnan(kind)] for kind in differences)
        return [spread(kind) if len(kind) >= _FEW else np.nan for kind in seen]

    def _estimate(self, age: int) -> FloatArray:
        """The column of so many before the newest."""
        columns = np.stack(self._columns, axis=1)
        sums = np.concatenate([np.zeros((len(columns), 1)), np.cumsum(columns, axis=1)], axis=1)

        def mean(first: int, end: int) -> FloatArray:
            return np.asarray((sums[:, end] - sums[:, first]) / (end - first))

        chain = _around(columns.shape[1] - 1 - age, columns.shape[1])
        parts, shares = [], []
        for (first, end), (before, after) in pairwise(chain):
            inside, added = end - first, (after - before) - (end - first)
            beside = mean(before, first) if before < first else mean(end, after)
            parts.append((inside * added / (inside + added)) ** 0.5 * (mean(first, end) - beside))
            shares.append((added / (inside * (inside + added))) ** 0.5)
        size = columns.shape[1]
        parts.append(size**0.5 * mean(0, size))
        shares.append(size**-0.5)
        return np.asarray(self._denoised(np.stack(parts, axis=1)) @ np.array(shares))

    def _denoised(self, parts: FloatArray) -> FloatArray:
        """Columns with the same noise, each denoised over the graph: the mixture of least estimated risk."""
        sigma = self.sigma
        if not sigma.any():
            return parts
        probe = self._ground.signs[:, 0]
        here = self._estimates(parts, sigma)
        there = self._estimates(parts + _STEP * (sigma * probe)[:, None], sigma)
        found = np.empty_like(parts)
        for k in range(parts.shape[1]):
            price = 2.0 * ((sigma * probe) @ (there[:, k] - here[:, k])) / _STEP
            found[:, k] = here[:, k] @ mixture(parts[:, k, None] - here[:, k], price)
        return found

    def _estimates(self, parts: FloatArray, sigma: FloatArray) -> FloatArray:
        """By filters and by framelets: n × columns × 2."""
        trees = self._ground.frame.denoise(parts, sigma=sigma)
        return np.stack([self._ground.bank.fit(parts, sigma**2), trees], axis=2)

    def __repr__(self) -> str:
        out = max(self._seen - self.delay, 0)
        held = f"{len(self._columns)} of {self.window} columns in the window"
        return f"Stream({self._ground.n} nodes, {held}, {out} given out)"


def _around(place: int, length: int) -> list[tuple[int, int]]:
    """Intervals from a single place to all, each about twice the one before: to the right and left in turns.

    >>> _around(7, 8)
    [(7, 8), (6, 8), (4, 8), (0, 8)]
    >>> _around(4, 8)
    [(4, 5), (4, 6), (2, 6), (2, 8), (0, 8)]
    """
    first, end, right = place, place + 1, True
    found = [(first, end)]
    while end - first < length:
        size = end - first
        if (right and end < length) or first == 0:
            end = min(end + size, length)
        else:
            first = max(first - size, 0)
        right = not right
        found.append((first, end))
    return found


def _check_sigma(sigma: Any, n: int) -> FloatArray:
    given = np.asarray(sigma) if np.ndim(sigma) == 0 else as_array(sigma, "sigma")
    if given.dtype.kind not in "biuf" or given.shape not in ((), (n,)) or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(f"sigma must be a number of 0 or more, or one for each of the {n} nodes; got {shown(sigma)}")
    return np.full(n, given, dtype=np.float64)
