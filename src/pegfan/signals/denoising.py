"""Noise off a signal on a graph.

Several estimates are made, each at home with another kind of signal, and mixed so that Stein's estimate of the risk is
least. What a mixture risks can be told from the noisy signal alone: for f(y) = Σ w_k f_k(y),

    E ‖f(y) − x‖² = E [ ‖y − f(y)‖² + 2 Σ_i σ_i² ∂f_i/∂y_i ] − Σ_i σ_i²

(C. Stein, Annals of Statistics 9, 1981), which is a quadratic function of w; the derivatives are measured by a second
run on the signal with a little more noise (S. Ramani, T. Blu, M. Unser, IEEE Transactions on Image Processing 17,
2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from pegfan import _defaults as default
from pegfan._arrays import FloatArray
from pegfan._checks import check_choice, check_flag, check_integer, check_number, check_numbers, shown
from pegfan.framelets._signals import as_columns, as_signal
from pegfan.graph import Graph
from pegfan.running import Progress, Step, one_thread
from pegfan.signals._experts import Experts
from pegfan.signals._ground import Ground
from pegfan.signals._stacking import mixture
from pegfan.signals.estimate import Estimate
from pegfan.signals.noise import NOISES, count_of, first_guess, local_noise, of_counts, spread

__all__ = ["Mixed", "denoise", "mixed"]

Noise = Literal["normal", "varying", "heavy", "counts"]

_STEP = 0.05
"""How much noise the second run adds, in units of what there is: with more of it, rules would see a noisier signal."""
_MORE = 10.0
"""In units of σ²: a mixture that promises less than so much over the smooth estimate alone may be better by chance."""
_FAR = 3.5
"""In units of σ: what is further off is an outlier, where there may be some."""


@overload
def denoise(
    graph: Any,
    f: Any,
    *,
    sigma: Any = ...,
    noise: Noise = ...,
    time: bool = ...,
    trees: int = ...,
    report: Literal[False] = ...,
    progress: Progress | None = ...,
) -> FloatArray: ...
@overload
def denoise(
    graph: Any,
    f: Any,
    *,
    sigma: Any = ...,
    noise: Noise = ...,
    time: bool = ...,
    trees: int = ...,
    report: Literal[True],
    progress: Progress | None = ...,
) -> Estimate: ...
def denoise(
    graph: Any,
    f: Any,
    *,
    sigma: Any = None,
    noise: Noise = "normal",
    time: bool = False,
    trees: int = default.TREES,
    report: bool = False,
    progress: Progress | None = None,
) -> FloatArray | Estimate:
    """Take the noise off signals on the nodes of a graph; how much there is, and which kind of signal, is found out.

    Filters of the Laplacian for smooth signals, framelets on many trees for pieces, both together, single nodes that
    stand out, values that are few, and smoothing along the edges over which the signal hardly changes: their mixture of
    least estimated risk. The result does not depend on how nodes are numbered.

    Parameters
    ----------
    graph
        The graph, or what stands for one (`Graph.of`): PyGSP, NetworkX, a matrix, edges. Directions are not looked at.
    f
        A number per node, or a column per signal. NaN is missing: it does not spread, and comes back filled in.
    sigma
        The standard deviation of the noise, where it is known: a number, or one per node. By default it is estimated.
    noise
        ``"normal"``: alike at every node. ``"varying"``: stronger in some places than in others. ``"heavy"``: with
        outliers, which are then no part of the signal. ``"counts"``: what was counted, such as visits; estimates are of
        the expected counts.
    time
        Whether columns are steps in time, in order, and not signals of their own.
    trees
        On how many trees framelets stand.
    report
        Whether to give an `Estimate`, with σ and what each kind of estimate contributed, and not the signal alone.
    progress
        Called with a `pegfan.running.Step` per column.

    Returns
    -------
    array of the shape of `f`, or Estimate

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(299)])
    >>> clean = np.repeat([0.0, 3.0, 1.0], 100)
    >>> noisy = clean + 0.5 * np.random.default_rng(0).standard_normal(300)
    >>> noisy[7] = np.nan
    >>> found = pf.denoise(graph, noisy, report=True)
    >>> bool(np.abs(found.signal - clean).mean() < 0.25), float(found.sigma[0].round(1))
    (True, 0.5)
    """
    graph = Graph.of(graph)
    check_choice(noise, "noise", NOISES)
    check_integer(trees, "trees", least=1, most=10_000)
    given = _given(f, graph.n)
    known = None if sigma is None else _noise(sigma, graph.n)
    if known is not None and noise != "normal":
        raise ValueError(f'sigma says all about the noise, so noise="{noise}" says too much; give one of them')
    ground = Ground.of(graph, trees)
    columns = as_columns(given)
    if check_flag(time, "time"):
        if noise != "normal" or given.ndim == 1:
            what = "one column" if given.ndim == 1 else f'noise="{noise}"'
            raise ValueError(f'time=True is for several columns of noise="normal", not for {what}')
        from pegfan.signals.time import denoise_time

        with one_thread():
            found = denoise_time(ground, given, known, progress)
        return found if check_flag(report, "report") else found.signal
    parts = []
    with one_thread():
        for i, y in enumerate(columns.T):
            if progress:
                progress(Step(i, columns.shape[1], f"signal {i + 1} of {columns.shape[1]}"))
            parts.append(_column(ground, np.ascontiguousarray(y), known, noise))
    if not check_flag(report, "report"):
        return _joined([part.signal for part in parts], given)
    names = dict.fromkeys(name for part in parts for name in part.shares)
    shares = {name: float(np.mean([part.shares.get(name, 0.0) for part in parts])) for name in names}
    return Estimate(
        _joined([part.signal for part in parts], given),
        _joined([part.sigma for part in parts], given),
        {name: share for name, share in shares.items() if share},
    )


def _given(f: Any, n: int) -> FloatArray:
    """Signals as numbers; NaN is missing, and anything else must be finite."""
    values = as_signal(f, n)
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    values = values.toarray() if hasattr(values, "toarray") else values
    values = values.astype(np.float64)
    if np.isinf(values).any():
        raise ValueError("the signal must hold finite numbers, or NaN where they are missing; it holds inf")
    if np.isnan(values).all(axis=0).any():
        raise ValueError("a signal has no number at all, only NaN")
    return np.asarray(values)


def _noise(sigma: Any, n: int) -> FloatArray:
    if np.ndim(sigma) == 0:
        return np.full(n, check_number(sigma, "sigma"))
    values = check_numbers(sigma, "sigma", n).astype(np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"sigma must be finite and not negative, got {shown(values)}")
    return values


def _joined(columns: list[FloatArray], like: FloatArray) -> FloatArray:
    return np.stack(columns, axis=1).reshape(like.shape) if columns else np.zeros(like.shape)


@dataclass(frozen=True)
class Mixed:
    """The estimate of one column, and how it came about: ∂f_i/∂y_i, as far as one probe tells, is `freedom`."""

    signal: FloatArray
    sigma: FloatArray
    shares: dict[str, float]
    freedom: FloatArray


def _column(ground: Ground, y: FloatArray, sigma: FloatArray | None, noise: str) -> Mixed:
    if noise == "counts":
        count_of(y)
        found = _column(ground, 2.0 * np.sqrt(y + 0.375), np.ones(ground.n), "normal")
        counts = of_counts(found.signal)
        return Mixed(counts, np.sqrt(counts), found.shares, found.freedom)
    gaps = np.isnan(y)
    if gaps.any():
        from pegfan.signals.inpainting import fill

        if sigma is None and noise == "normal":
            sigma = np.full(ground.n, first_guess(ground, y))  # what is filled in has less noise than the rest
        y = np.where(gaps, fill(ground, np.where(gaps, 0.0, y), ~gaps).signal, y)
    if noise == "heavy":
        near, scale = ground.medians(y), first_guess(ground, y)
        for _ in range(3):
            # What is far off is taken for missing, and not just moved closer: estimates that keep spikes would follow.
            found = mixed(ground, np.where(np.abs(y - near) < _FAR * scale, y, near))
            near, scale = found.signal, float(found.sigma[0])
        return found
    if noise == "varying":
        sigma = local_noise(ground, ground.differences(y))
        for _ in range(2):
            found = mixed(ground, y, sigma)
            sigma = local_noise(ground, y - found.signal, found.freedom)
        return found
    return mixed(ground, y, sigma)


def mixed(ground: Ground, y: FloatArray, sigma: FloatArray | None = None, rounds: int = 2) -> Mixed:
    """The mixture of least estimated risk; σ is estimated where it is not given.

    Its first estimate can only be too large. The residual of a good estimate says whether it was.
    """
    noise = np.full(ground.n, first_guess(ground, y)) if sigma is None else sigma
    probe = ground.signs[:, 0]
    for _ in range(rounds):
        if not noise.any():
            return Mixed(y, noise, {}, np.ones(len(y)))
        experts = Experts(ground, noise)
        here, there = (experts.estimates(one) for one in (y, y + _STEP * noise * probe))
        every = np.stack(list(here.values()), axis=1)
        moved = (np.stack(list(there.values()), axis=1) - every) / _STEP
        w = _weights(y[:, None] - every, 2.0 * ((noise * probe) @ moved), _MORE * float(np.mean(noise**2)))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(noise > 0, probe / noise, 0.0)
        found = Mixed(every @ w, noise, dict(zip(here, w.tolist(), strict=True)), each * (moved @ w))
        left = len(y) - float(found.freedom.sum())
        if sigma is not None or left <= 0.3 * len(y):
            break
        again = spread(y - found.signal) / np.sqrt(left / len(y))
        if again > 0.9 * noise[0]:
            break
        noise = np.full(ground.n, again)
    return found


def _weights(residuals: FloatArray, price: FloatArray, least: float) -> FloatArray:
    """The mixture of least risk, if it promises at least so much less than the first estimate alone."""
    w, first = mixture(residuals, price), np.eye(len(price))[0]
    risks = [float(np.sum((residuals @ one) ** 2) + price @ one) for one in (first, w)]
    return w if risks[0] - risks[1] >= least else first
