"""Compiled loops of graph networks on CPUs: dropout, ReLU with dropout, and attention over neighbours.

Everything is C-ordered and on one core; sums over neighbours are taken in their order. `room` is memory to work in.
"""

from __future__ import annotations

import numpy as np

from pegfan._compiled import compiled

LANES = 8
"""Partial sums of a dot product, so that a CPU can add them side by side: the order of sums is always the same."""


@compiled("model_drop")
def drop(x, mask, scale, out):  # type: ignore[no-untyped-def]
    """Compute out = x · mask · scale, entry by entry."""
    for i in range(x.size):
        out[i] = x[i] * (mask[i] * scale)


@compiled("model_relu_drop")
def relu_drop(x, mask, scale, out):  # type: ignore[no-untyped-def]
    """Compute out = max(x, 0) · mask · scale, entry by entry."""
    zero = x.dtype.type(0)
    for i in range(x.size):
        out[i] = (zero if x[i] < zero else x[i]) * (mask[i] * scale)


@compiled("model_relu_drop_back")
def relu_drop_back(gradient, y, scale, out):  # type: ignore[no-untyped-def]
    """Compute out = gradient · scale where y is not zero: what is kept and positive."""
    zero = y.dtype.type(0)
    for i in range(y.size):
        out[i] = gradient[i] * scale if y[i] > zero else zero


@compiled("model_unit_rows", error_model="numpy")
def unit_rows(pointers, data, out):  # type: ignore[no-untyped-def]
    """Compute out = the entries of a sparse matrix over the Euclidean norms of their rows, summed in float64."""
    for i in range(pointers.size - 1):
        total = 0.0
        for e in range(pointers[i], pointers[i + 1]):
            total += np.float64(data[e]) * np.float64(data[e])
        norm = data.dtype.type(np.sqrt(total)) if total > 0 else data.dtype.type(1)
        for e in range(pointers[i], pointers[i + 1]):
            out[e] = data[e] / norm


@compiled("model_attention", error_model="numpy")
def attention(pointers, indices, source, target, slope, weights, room):  # type: ignore[no-untyped-def]
    """Compute weights[e, k] = softmax of LeakyReLU(source[j, k] + target[i, k]) over entries e = (i, j) of row i."""
    heads = source.shape[1]
    top, total = room[0], room[1]
    for i in range(pointers.size - 1):
        start, stop = pointers[i], pointers[i + 1]
        top[:] = -np.inf
        for e in range(start, stop):
            for k in range(heads):
                s = source[indices[e], k] + target[i, k]
                s = s if s > 0 else slope * s
                weights[e, k] = s
                top[k] = s if s > top[k] else top[k]
        total[:] = 0
        for e in range(start, stop):
            for k in range(heads):
                value = np.exp(weights[e, k] - top[k])
                weights[e, k] = value
                total[k] += value
        for e in range(start, stop):
            for k in range(heads):
                weights[e, k] /= total[k]


@compiled("model_attend", error_model="numpy")
def attend(pointers, indices, weights, factors, z, out):  # type: ignore[no-untyped-def]
    """Compute out[i, k] = Σ_j weights[e, k] factors[e, k] z[j, k] over the entries e = (i, j) of row i; k is a head."""
    heads, width = z.shape[1], z.shape[2]
    shared = factors.shape[1] == 1
    for i in range(pointers.size - 1):
        for k in range(heads):
            for t in range(width):
                out[i, k, t] = 0
        for e in range(pointers[i], pointers[i + 1]):
            j = indices[e]
            for k in range(heads):
                a = weights[e, k] * factors[e, 0 if shared else k]
                for t in range(width):
                    out[i, k, t] += a * z[j, k, t]


@compiled("model_attend_back", error_model="numpy")
def attend_back(  # type: ignore[no-untyped-def]
    pointers, indices, source, target, slope, weights, factors, z, gradient, by_z, by_source, by_target, room
):
    """Add the gradients of `attend` by z, and by the two parts of the attention's scores, to their arrays of zeros.

    `room` has a row for every entry of the longest row, and one more.
    """
    heads, width = z.shape[1], z.shape[2]
    shared = factors.shape[1] == 1
    mean, by_weight = room[0], room[1:]
    part = np.empty(LANES, z.dtype)
    for i in range(pointers.size - 1):
        start, stop = pointers[i], pointers[i + 1]
        mean[:] = 0
        for e in range(start, stop):
            j = indices[e]
            for k in range(heads):
                factor = factors[e, 0 if shared else k]
                a = weights[e, k] * factor
                part[:] = 0
                for t in range(width):
                    g = gradient[i, k, t]
                    part[t % LANES] += g * z[j, k, t]
                    by_z[j, k, t] += a * g
                dot = (
                    ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]))
                ) * factor
                by_weight[e - start, k] = dot
                mean[k] += weights[e, k] * dot
        for e in range(start, stop):
            j = indices[e]
            for k in range(heads):
                s = weights[e, k] * (by_weight[e - start, k] - mean[k])
                if source[j, k] + target[i, k] <= 0:
                    s *= slope
                by_source[j, k] += s
                by_target[i, k] += s
