"""The loops of pegfan.models."""

from __future__ import annotations

import itertools

import numpy as np


def model_drop(x, mask, scale, out):
    out[:] = x * (mask.astype(x.dtype) * x.dtype.type(scale))


def model_relu_drop(x, mask, scale, out):
    model_drop(np.where(x < 0, x.dtype.type(0), x), mask, scale, out)


def model_relu_drop_back(gradient, y, scale, out):
    out[:] = np.where(y > 0, gradient * y.dtype.type(scale), 0)


def model_unit_rows(pointers, data, out):
    for begin, end in itertools.pairwise(pointers):
        squares = np.cumsum(data[begin:end].astype(np.float64) ** 2)  # one after the other
        out[begin:end] = data[begin:end] / data.dtype.type(np.sqrt(squares[-1]) if squares[-1:].any() else 1)


def model_attention(pointers, indices, source, target, slope, weights, room):
    for i, (begin, end) in enumerate(itertools.pairwise(pointers)):
        scores = source[indices[begin:end]] + target[i]
        scores = np.where(scores > 0, scores, source.dtype.type(slope) * scores)
        powers = np.exp(scores - scores.max(axis=0, initial=-np.inf))
        weights[begin:end] = powers / powers.sum(axis=0)


def model_attend(pointers, indices, weights, factors, z, out):
    out[:] = 0
    for i, (begin, end) in enumerate(itertools.pairwise(pointers)):
        for e in range(begin, end):
            out[i] += (weights[e] * factors[e])[:, None] * z[indices[e]]


def model_attend_back(
    pointers, indices, source, target, slope, weights, factors, z, gradient, by_z, by_source, by_target, room
):
    for i, (begin, end) in enumerate(itertools.pairwise(pointers)):
        mean, by_weight = np.zeros_like(target[i]), []
        for e in range(begin, end):
            j = indices[e]
            by_z[j] += (weights[e] * factors[e])[:, None] * gradient[i]
            by_weight.append(_dots(gradient[i], z[j]) * factors[e])
            mean += weights[e] * by_weight[-1]
        for e in range(begin, end):
            j = indices[e]
            s = weights[e] * (by_weight[e - begin] - mean)
            s = np.where(source[j] + target[i] <= 0, s * source.dtype.type(slope), s)
            by_source[j] += s
            by_target[i] += s


def _dots(x, y):
    """The dot products of rows, in eight partial sums, as a processor adds them side by side."""
    part = np.zeros((8, len(x)), x.dtype)
    for t in range(x.shape[1]):
        part[t % 8] += x[:, t] * y[:, t]
    while len(part) > 1:
        part = part[0::2] + part[1::2]
    return part[0]
