"""Shrinking coefficients: denoising thresholds, and the best few coefficients.

The frame may be redundant, and then a framelet is shorter than 1: unit noise has the standard deviation ‖ψ‖
in its coefficient. Thresholds are therefore stated for unit framelets and scaled by ‖ψ‖. The rules are the
classical ones for orthonormal wavelets, which is what they are for ``filters="haar-basis"``; with the redundant
binary Haar system they are well-tried heuristics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from pegfan._arrays import FloatArray
from pegfan._checks import check_choice, check_number, shown
from pegfan._defaults import RULES
from pegfan.framelets._signals import is_tensor

if TYPE_CHECKING:
    from pegfan.framelets.coefficients import Coefficients

MODES = ("soft", "hard")
_MAD = 0.6744897501960817  # median of |N(0, 1)|


def threshold(values: Any, value: ArrayLike, mode: Literal["soft", "hard"] = "soft") -> Any:
    r"""Set small values to zero, and with ``"soft"`` shrink the others towards it.

    ``"hard"`` keeps x where \|x\| > t, ``"soft"`` makes it sign(x) (\|x\| − t); the rest becomes 0. NaN stays NaN.

    Parameters
    ----------
    values
        Coefficients or anything else: a NumPy array, a SciPy sparse matrix or a torch tensor, through which gradients
        flow.
    value
        t, not negative: a number, or an array that is broadcast to the shape of the values.
    mode
        See above.

    Returns
    -------
    array, csr_array or tensor
        Of the kind and precision of the values; integers become float64.

    Examples
    --------
    >>> import pegfan as pf
    >>> pf.framelets.threshold([3.0, -2.0, 0.5], 1.0)
    array([ 2., -1.,  0.])
    >>> pf.framelets.threshold([3.0, -2.0, 0.5], 1.0, mode="hard")
    array([ 3., -2.,  0.])

    All coefficients of a signal, the average too; `FrameletSystem.denoise` leaves it alone and knows how long framelets
    are:

    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> c = system.decompose([4.2, 3.8, 1.1, 0.9])
    >>> system.reconstruct(c.replace(pf.framelets.threshold(c.array, 0.5, mode="hard"))).round(12)
    array([4., 4., 1., 1.])
    """
    check_choice(mode, "mode", MODES)
    limit = np.asarray(value, dtype=np.float64)
    if (limit < 0).any():
        raise ValueError(f"a threshold must not be negative, got {limit.min()}")
    if is_tensor(values):
        import torch

        bound = torch.from_numpy(np.ascontiguousarray(limit)).to(values)
        shrunk = values - torch.sign(values) * bound if mode == "soft" else values
        return torch.where(values.abs() <= bound, 0.0, shrunk)  # NaN is neither, and stays
    if issparse(values):
        rows = csr_array(values, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        limit = np.broadcast_to(limit, rows.shape)[rows.nonzero()] if limit.ndim else limit
        rows.data = threshold(rows.data, limit, mode)
        rows.eliminate_zeros()
        return rows
    x = np.asarray(values)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    shrunk = x - np.sign(x) * limit if mode == "soft" else x
    return np.ascontiguousarray(np.where(np.abs(x) <= limit, 0.0, shrunk), dtype=x.dtype)


def shrink(c: Coefficients, by: Any, mode: Literal["soft", "hard"], sigma: float | None) -> Coefficients:
    """Coefficients with every framelet part shrunk by a number or a rule."""
    parts = [_unit(c, j) for j in range(c.j0, c.system.K)]
    if isinstance(by, str):
        if by not in RULES:
            raise ValueError(f"unknown threshold rule {shown(by)}; choose one of {', '.join(RULES)}, or a number")
        noise = _noise(parts) if sigma is None else np.asarray(check_number(sigma, "sigma"))
        levels = [_rule(by, part, noise, c.system.n) for part in parts]
    else:
        levels = [np.asarray(check_number(by, "threshold"))] * len(parts)
    limit = np.concatenate(
        [np.zeros((c[0].shape[0], 1 if c.array.ndim == 1 else c.array.shape[1]))]
        + [
            np.broadcast_to(level, part.shape[1:]) * c.system.norms(j)[:, None]
            for j, level, part in zip(range(c.j0, c.system.K), levels, parts, strict=True)
        ]
    ).reshape(c.array.shape)
    return c.replace(threshold(c.array, limit, mode))


def keep_largest(c: Coefficients, keep: float) -> Coefficients:
    """Coefficients with all but the `keep` largest framelet coefficients of every column set to zero."""
    total, scaling = c.array.shape[0], c[0].shape[0]
    wanted = check_number(keep, "keep")
    share = isinstance(keep, (float, np.floating))
    if share and wanted > 1:
        raise ValueError(f"keep is a whole number of coefficients or a fraction up to 1.0, got {keep}")
    count = round(wanted * total) if share else int(wanted)
    values = np.abs(_numpy(c.array)).reshape(total, -1)[scaling:]
    kept = max(count - scaling, 0)
    mask = np.zeros((total, values.shape[1]), bool)
    mask[:scaling] = True
    if kept >= len(values):
        mask[:] = True
    elif kept:
        largest = np.argpartition(-values, kept - 1, axis=0)[:kept]
        np.put_along_axis(mask[scaling:], largest, True, axis=0)
    mask = mask.reshape(c.array.shape)
    if is_tensor(c.array):
        import torch

        return c.replace(c.array * torch.from_numpy(mask).to(c.array.device))
    return c.replace(c.array.multiply(mask).tocsr() if issparse(c.array) else c.array * mask)


def _unit(c: Coefficients, j: int) -> FloatArray:
    """The framelet coefficients of a level in columns, divided by the framelets' norms."""
    values = _numpy(c.framelets(j)).astype(np.float64)
    columns = 1 if values.ndim == 1 else values.shape[1]
    norms = c.system.norms(j)
    return np.asarray(values.reshape(-1, columns) / np.where(norms > 0, norms, 1.0)[:, None])


def _numpy(array: Any) -> Any:
    if issparse(array):
        return array.toarray()
    return array.detach().cpu().numpy() if is_tensor(array) else array


def _noise(parts: list[FloatArray]) -> FloatArray:
    """σ of every column, from the finest level that has framelets."""
    finest = next((part for part in reversed(parts) if len(part)), None)
    return np.zeros(1) if finest is None else np.asarray(np.median(np.abs(finest), axis=0) / _MAD)


def _rule(rule: str, part: FloatArray, noise: FloatArray, n: int) -> FloatArray:
    if rule == "universal" or not len(part):
        return np.asarray(noise * np.sqrt(2.0 * np.log(max(n, 2))))
    if rule == "sure":
        return _sure(part, np.broadcast_to(noise, part.shape[1:]))
    signal = np.sqrt(np.maximum((part**2).mean(axis=0) - noise**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(signal > 0, noise**2 / signal, np.abs(part).max(axis=0)))


def _sure(part: FloatArray, noise: FloatArray) -> FloatArray:
    """The threshold, among the coefficients' sizes, with the least of Stein's unbiased estimates of risk.

    risk(t) = m σ² − 2 σ² #{|y| ≤ t} + Σ min(|y|, t)².
    """
    size = np.sort(np.abs(part), axis=0)
    size = np.concatenate([np.zeros((1, size.shape[1])), size])
    m = len(part)
    below = np.arange(m + 1)[:, None]
    risk = (m - 2 * below) * noise**2 + np.cumsum(size**2, axis=0) + (m - below) * size**2
    return np.asarray(np.take_along_axis(size, risk.argmin(axis=0)[None, :], axis=0)[0])
