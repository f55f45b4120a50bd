"""A linear model on the columns of channels: logistic regression, or least squares for numbers.

It has one optimum, takes a second where a network takes minutes, and on hops of the features often comes near. What is
fitted is written as a network (`pegfan.training.Network`): x = relu(x) − relu(−x), so that a linear function of a
channel is two hidden units per output, and everything that reads networks reads it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from pegfan import _defaults as default
from pegfan._arrays import FloatArray
from pegfan.channels import Channels
from pegfan.graph import Split, as_split
from pegfan.metrics import score
from pegfan.running import one_thread
from pegfan.training.network import Network
from pegfan.training.rows import TARGET, Labelled, Units, loss_weights
from pegfan.training.settings import Run, Settings

__all__ = ["fit_linear", "linear_settings"]

_ROWS, _ENTRIES = 131_072, 2**25
"""The most training rows that are looked at, and the most entries of them; of more, evenly spaced ones."""
_STEPS = 60
"""Steps of L-BFGS at most."""
_RIDGE = 1.0
"""What the squares of the weights of standardised columns cost, against the sum of the losses of all rows."""


def linear_settings(state: Mapping[str, Any]) -> Settings:
    """The settings of the network that a linear model is written as."""
    hidden = int(np.shape(state["channel_layers.0.bias"])[0])
    return Settings(hidden=hidden, hop_normalize=False, dropout=0.0)


def fit_linear(
    channels: Channels,
    labels: Any,
    split: Split,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    classes: int | None = None,
    metric: str = "accuracy",
    seed: int = default.SEED,
    sample_weight: FloatArray | None = None,
    history: bool = False,
    constant: bool = False,
) -> Run:
    """Fit a linear model of all columns on a split.

    Parameters
    ----------
    channels, labels, split, classes, metric, seed, sample_weight, history
        As in `pegfan.train`; nothing is drawn from the seed. At most 131,072 training rows are looked at.
    settings
        Of which ``class_weights`` count.
    constant
        Leave all weights zero: every node gets the shares of the classes among training nodes, or the mean.

    Returns
    -------
    Run
        Its state makes a `Network` of the settings `linear_settings`; its one epoch is all steps.

    Examples
    --------
    >>> from pegfan.channels import Channel
    >>> x = np.arange(40.0)[:, None]
    >>> parts = Split(np.arange(0, 40, 2), np.arange(1, 40, 2), np.arange(0))
    >>> run = fit_linear(Channels([Channel("X", None, x)]), (x[:, 0] > 17).astype(int), parts)
    >>> run.val_metric > 0.9
    True
    """
    start, chosen, y = time.process_time(), Settings.of(settings), np.asarray(labels)
    split = as_split(split, channels.n, labels=y)
    numeric = y.dtype.kind == "f"
    count = 1 if numeric else max(int(y.max(initial=0)) + 1, classes or 0)
    per_row = max(1, channels.entries // max(channels.n, 1))
    train = Labelled.of(channels, split.train, y, sample_weight).some(max(1, min(_ROWS, _ENTRIES // per_row)))
    shares = loss_weights(train.labels, chosen.class_weights, train.weights)
    units = Units.of(train.labels, shares) if numeric else None
    truth = train.labels if units is None else units.standard(train.labels)
    if constant:
        weights, bias, loss = _constant(truth, shares, count, sum(channels.widths))
    else:
        with one_thread():
            weights, bias, loss = _fit(_side_by_side(channels, train.places), truth, shares, count)
    state = _as_network(weights, bias, channels.widths)
    if units is not None:
        state[TARGET] = np.array(units)
    network = Network(state, linear_settings(state))
    said = network.predict(channels, split.val)
    val_loss = _loss(said, y[split.val], split.val, sample_weight, units)
    value = score(said, y[split.val], metric)
    attention = network.attention
    kept: dict[str, list[Any]] = {
        "train_loss": [loss],
        "val_loss": [val_loss],
        "val_metric": [value],
        "attention": [attention],
    }
    return Run(
        split=0,
        seed=seed,
        epochs=1,
        best_epoch=0,
        val_loss=val_loss,
        val_metric=float(value),
        test_metric=score(network.predict(channels, split.test), y[split.test], metric),
        seconds=time.process_time() - start,
        attention=attention,
        state=state,
        history=kept if history else None,
    )


def _side_by_side(channels: Channels, rows: Any) -> Any:
    """Rows of all channels, those of wide sparse ones as a sparse matrix."""
    parts = channels.rows_at(rows, np.dtype(np.float32))
    if any(issparse(part) for part in parts):
        return csr_array(hstack([csr_array(part) for part in parts]))
    return np.hstack(parts)


def _constant(truth: Any, shares: FloatArray, count: int, columns: int) -> tuple[Any, Any, float]:
    """What `_fit` gives where no column has a weight."""
    if truth.dtype.kind == "f":  # targets have mean 0
        bias, loss = np.zeros(1), float(shares @ truth**2)
    else:
        sums = np.bincount(truth, shares, minlength=count) + _RIDGE / (1000 * len(shares))
        bias = np.log(sums / sums.sum())
        loss = -float(shares @ bias[truth])
    return np.zeros((columns, count), np.float32), bias.astype(np.float32), loss


def _fit(x: Any, truth: Any, shares: FloatArray, count: int) -> tuple[Any, Any, float]:
    """Weights per column and output, and what is added to the outputs."""
    from scipy.optimize import minimize

    squares = x.multiply(x).mean(axis=0) if issparse(x) else np.einsum("ij,ij->j", x, x, dtype=np.float64) / len(x)
    centre = np.zeros(x.shape[1]) if issparse(x) else x.mean(axis=0, dtype=np.float64)
    spread = np.sqrt(np.maximum(np.asarray(squares).ravel() - centre**2, 0.0))
    scale = np.where(spread > 1e-6 * np.sqrt(np.asarray(squares).ravel()), 1 / np.maximum(spread, 1e-30), 0.0)
    ridge, rows, parts = _RIDGE / len(shares), np.arange(len(shares)), np.asarray(shares, np.float64)

    def losses(flat: FloatArray) -> tuple[float, FloatArray]:
        w, c = flat[: x.shape[1] * count].reshape(-1, count), flat[x.shape[1] * count :]
        scaled = w * scale[:, None]
        output = np.asarray(x @ scaled.astype(np.float32), np.float64) + (c - centre @ scaled)
        if truth.dtype.kind == "f":
            gap = output[:, 0] - truth
            loss, error = float(parts @ gap**2), (2 * parts * gap)[:, None]
        else:
            output -= output.max(axis=1, keepdims=True)
            powers = np.exp(output)
            total = powers.sum(axis=1)
            loss = float(parts @ (np.log(total) - output[rows, truth]))
            error = powers * (parts / total)[:, None]
            error[rows, truth] -= parts
        by_c = error.sum(axis=0)
        by_w = (np.asarray(x.T @ error.astype(np.float32), np.float64) - np.outer(centre, by_c)) * scale[:, None]
        return loss + ridge * float((w**2).sum()), np.concatenate([(by_w + 2 * ridge * w).ravel(), by_c])

    begin = np.zeros((x.shape[1] + 1) * count)
    optimum = minimize(losses, begin, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "ftol": 1e-7})
    w, c = optimum.x[: x.shape[1] * count].reshape(-1, count), optimum.x[x.shape[1] * count :]
    scaled = w * scale[:, None]
    return scaled.astype(np.float32), (c - centre @ scaled).astype(np.float32), float(optimum.fun)


def _as_network(weights: Any, bias: Any, widths: tuple[int, ...]) -> dict[str, Any]:
    """The state of a network with these outputs: α_i is 1 over the number of channels, which V_i makes up for."""
    count, outputs = len(widths), len(bias)
    state: dict[str, Any] = {"attention_logits": np.ones(count, np.float32), "output.bias": bias}
    for i, own in enumerate(np.split(weights, np.cumsum(widths)[:-1])):
        state[f"channel_layers.{i}.weight"] = np.ascontiguousarray(np.vstack([own.T, -own.T]))
        state[f"channel_layers.{i}.bias"] = np.zeros(2 * outputs, np.float32)
    both = count * np.hstack([np.eye(outputs), -np.eye(outputs)])
    return state | {"output.weight": np.tile(both, count).astype(np.float32)}


def _loss(said: Any, truth: Any, nodes: Any, weights: FloatArray | None, units: Units | None) -> float:
    """The mean loss of validation nodes, in an order that does not depend on their numbers."""
    shares = loss_weights(truth, False, None if weights is None else weights[nodes])
    if units is None:
        own = -said[np.arange(len(truth)), truth].astype(np.float64)
    else:
        own = ((said[:, 0] - truth) / units.scale) ** 2
    return float(np.sort(shares * own).sum())
