"""Signals with gaps: what was not seen, guessed from what was."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components

from pegfan import _defaults as default
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_flag, check_number
from pegfan.framelets._signals import as_signal, is_tensor
from pegfan.graph import Graph
from pegfan.running import Progress, Step, one_thread
from pegfan.signals._ground import Ground
from pegfan.signals._interpolation import Guesses
from pegfan.signals._stacking import mixture
from pegfan.signals.estimate import Estimate
from pegfan.trees import canonical_order

__all__ = ["Filled", "fill", "inpaint"]

_FOLDS = (8, 5)
"""Into how many parts seen nodes are dealt, up to 20,000 nodes and beyond."""


@dataclass(frozen=True)
class Filled:
    """One column with gaps, as `fill` sees it.

    Attributes
    ----------
    signal
        The estimate at all nodes; at seen ones it is near to what was seen.
    held
        Of every seen node, in their order, what is expected of it if it had not been seen.
    shares
        The weights of the guesses, by name.
    deviation
        How far from the estimate values are, typically: the root mean square.
    half
        Half the length of an interval around the estimate that holds a share `level` of values; infinite where too few
        nodes are seen to say.
    """

    signal: FloatArray
    held: FloatArray
    shares: dict[str, float]
    deviation: FloatArray
    half: FloatArray


def fill(ground: Ground, y: FloatArray, seen: NDArray[np.bool_], level: float = 0.9) -> Filled:
    """Estimate a signal at all nodes from some of them.

    Many guesses are made without an eighth of the seen nodes each, and mixed as is best for nodes that they have not
    seen. Intervals are those of conformal prediction: with u the spread of the guesses at a node and r the residual of
    a node that was held out (by guesses and weights), the level-quantile of |r|/u times the u of any other node.
    """
    nodes = np.flatnonzero(seen)
    middle, scale = float(y[nodes].mean()), float(y[nodes].std())
    # What differs by rounding only is constant; so is a single value.
    if scale <= 1e-12 * abs(middle) or len(nodes) == 1:
        alike = np.full(ground.n, _quantile(np.zeros(len(nodes)), level))
        return Filled(np.where(seen, y, middle), y[nodes], {"mean": 1.0}, np.zeros(ground.n), alike)
    values = np.where(seen, (y - middle) / scale, 0.0)
    fold = folds(ground, nodes)
    shown = np.stack([*(seen & (fold != k) for k in range(int(fold.max()) + 1)), seen], axis=1)
    lost = _unreachable(ground, seen)
    names, there, here = [], [], []
    # Regression may end up anywhere at a node that is like no seen one.
    margin = 0.2 * float(np.ptp(values[nodes]))
    ends = (float(values[nodes].min()) - margin, float(values[nodes].max()) + margin)
    for name, guess in Guesses(ground, np.where(shown, values[:, None], 0.0), shown).all():
        names.append(name)
        there.append(np.clip(guess[nodes, fold[nodes]], *ends))
        here.append(np.where(lost, 0.0, np.clip(guess[:, -1], *ends)))
    held, every, truth = np.stack(there, axis=1), np.stack(here, axis=1), values[nodes]
    few = "classes" in names
    w = _weights(truth[:, None] - held, few)
    x = every @ w
    # Residuals of nodes that had no part in the weights either, and how sure the guesses were of them.
    apart, unsure = np.empty(len(nodes)), np.empty(len(nodes))
    for k in range(int(fold.max()) + 1):
        out = fold[nodes] == k
        other = _weights(truth[~out, None] - held[~out], few)
        apart[out] = held[out] @ other
        unsure[out] = _spread(held[out], other)
    r = np.abs(truth - apart)
    least = float(np.median(r)) + 1e-9
    ratio = r / (least + unsure)
    size = least + _spread(every, w)
    deviation, half = np.sqrt(np.mean(ratio**2)) * size, np.asarray(_quantile(ratio, level) * size)
    if lost.any():
        deviation[lost], half[lost] = 1.0, _quantile(np.abs(truth), level)
    return Filled(
        middle + scale * x,
        middle + scale * (held @ w),
        {name: float(share) for name, share in zip(names, w, strict=True) if share},
        scale * deviation,
        scale * half,
    )


def folds(ground: Ground, nodes: IntArray) -> IntArray:
    """The fold of every seen node, by canonical order, so that the numbering has no part in it; -1 elsewhere."""
    fold = np.full(ground.n, -1)
    fold[nodes] = 0
    order = canonical_order(ground.graph).order
    ordered = order[fold[order] == 0]
    dealt = np.random.default_rng(0).permutation(len(ordered))
    fold[ordered[dealt]] = np.arange(len(ordered)) % min(_FOLDS[ground.n > 20_000], len(ordered))
    return fold


def _weights(residuals: FloatArray, few: bool) -> FloatArray:
    """The best mixture of guesses; unless values are few, nodes that nobody can know about have a limited say."""
    free = np.zeros(residuals.shape[1])
    w = mixture(residuals, free)
    for _ in range(0 if few else 2):
        r = np.abs(residuals @ w)
        most = 3.0 * float(np.quantile(r, 0.9)) + 1e-12
        w = mixture(residuals * np.sqrt(np.minimum(1.0, most / np.maximum(r, most)))[:, None], free)
    return w


def _spread(guesses: FloatArray, w: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(guesses**2 @ w - (guesses @ w) ** 2, 0.0)))


def _quantile(sizes: FloatArray, level: float) -> float:
    """The one that a further size is below with a chance of at least `level`."""
    place = ceil(level * (len(sizes) + 1))
    return float(np.partition(sizes, place - 1)[place - 1]) if place <= len(sizes) else np.inf


def _unreachable(ground: Ground, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Nodes whose component has no seen node."""
    count, component = connected_components(ground.adjacency, directed=False)
    return np.asarray(np.bincount(component[seen], minlength=count)[component] == 0)


def as_values(f: Any, n: int) -> FloatArray:
    """A signal as a dense float64 array; infinite values are refused, NaN is not."""
    given = as_signal(f, n)
    if is_tensor(given):
        given = given.detach().cpu().numpy()
    array = np.asarray(given.toarray() if issparse(given) else given, np.float64)
    if np.isinf(array).any():
        raise ValueError(f"the signal has {int(np.isinf(array).sum())} infinite values; NaN says that one is missing")
    return array


@overload
def inpaint(
    graph: Any, f: Any, *, level: float = ..., report: Literal[False] = ..., progress: Progress | None = ...
) -> FloatArray: ...


@overload
def inpaint(
    graph: Any, f: Any, *, level: float = ..., report: Literal[True], progress: Progress | None = ...
) -> Estimate: ...


def inpaint(
    graph: Any, f: Any, *, level: float = 0.9, report: bool = False, progress: Progress | None = None
) -> FloatArray | Estimate:
    """Fill the gaps of a signal on a graph; what was seen stays as it is.

    Guesses of many kinds (harmonic and smoother interpolation, regression on the smoothest vectors, means along walks
    and over the clusters of 16 trees, total variation, classes where values are few, regression on degrees) are mixed
    as is best for seen nodes that were held out. Noise, jumps and a few nodes that stand out may be there; nothing has
    to be set.

    Parameters
    ----------
    graph
        The graph, or what stands for one (`Graph.of`): PyGSP, NetworkX, a matrix, edges. Directions are not looked at.
    f
        The signal, n or n × d, NaN where it is missing; every column by itself, with gaps of its own.
    level
        The share of values that intervals are to hold.
    report
        Whether to say more than the signal.
    progress
        Called with a `pegfan.running.Step` per column.

    Returns
    -------
    array or Estimate
        The signal without gaps, float64. With ``report=True`` an `Estimate`: ``low`` and ``high`` are ends of intervals
        for the values that one would see at the missing nodes (both are the value itself at a seen one), ``sigma``
        their typical distance from the estimate, ``shares`` the weights of the guesses.

    Notes
    -----
    Intervals hold a share `level` of missing values, on average over nodes, if nodes are missing at random: whether one
    is seen has nothing to do with its value or place. Where a component of the graph has no seen node, it gets the
    mean of all others, and intervals as long as their values demand. Intervals are infinite with fewer than
    level/(1 − level) seen nodes. n = 10^5 takes about a minute.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(99)])
    >>> f = np.sin(np.arange(100) / 10)
    >>> seen = np.where(np.arange(100) % 3 == 0, np.nan, f)
    >>> bool(np.abs(pf.inpaint(graph, seen) - f).max() < 0.05)
    True
    >>> told = pf.inpaint(graph, seen, report=True)
    >>> bool(np.mean((told.low <= f) & (f <= told.high)) > 0.9)
    True
    """
    graph = Graph.of(graph)
    values = as_values(f, graph.n)
    if not 0 < check_number(level, "level") < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    report = check_flag(report, "report")
    columns = values.reshape(graph.n, -1)
    seen = ~np.isnan(columns)
    empty = np.flatnonzero(~seen.any(axis=0))
    if len(empty):
        raise ValueError(
            "all values of the signal are missing"
            + (f" in column {empty[0]}" if values.ndim == 2 else "")
            + "; at least one must be seen"
        )
    low, high, sigma = columns.copy(), columns.copy(), np.zeros_like(columns)
    signal = columns.copy()
    shares: dict[str, float] = {}
    with one_thread():
        ground = Ground.of(graph, default.TREES)
        for c in range(columns.shape[1]):
            if progress:
                progress(Step(c, columns.shape[1], f"column {c + 1} of {columns.shape[1]}"))
            gap = ~seen[:, c]
            if not gap.any():
                continue
            done = fill(ground, columns[:, c], seen[:, c], level)
            signal[gap, c], sigma[gap, c] = done.signal[gap], done.deviation[gap]
            low[gap, c], high[gap, c] = (done.signal - done.half)[gap], (done.signal + done.half)[gap]
            for name, share in done.shares.items():
                shares[name] = shares.get(name, 0.0) + share / int((~seen).any(axis=0).sum())
    shape = values.shape
    if not report:
        return signal.reshape(shape)
    return Estimate(
        signal.reshape(shape), sigma.reshape(shape), shares, low.reshape(shape), high.reshape(shape), float(level)
    )
