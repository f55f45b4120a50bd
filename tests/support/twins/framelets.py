"""The loops of pegfan.framelets: level by level, which gives the bits that cluster by cluster has."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np


def _levels(first, levels):
    """The offsets, the start of the weights and that of the framelet coefficients of every level, the finest first."""
    for begin, weights, framelets, _, clusters in levels:
        yield first[begin : begin + clusters + 1], weights, framelets


def frame_decompose(first, p, levels, x, rows, out, room, at, streaming):
    x = x[rows] if rows.size else x
    for offsets, weights, start in _levels(first, levels):
        m = start
        up = np.empty((len(offsets) - 1, x.shape[1]), x.dtype)
        frame_average(offsets, p[weights : weights + len(x)], x, rows[:0], up)
        for begin, end in pairwise(offsets):
            for i, j in combinations(range(begin, end), 2):
                out[m] = p[weights + j] * x[i] + -p[weights + i] * x[j]
                m += 1
        x = up
    out[: len(x)] = x


def frame_reconstruct(first, p, levels, c, out, rows, room, at, streaming):
    up = c[: levels[-1][-1]]
    for offsets, weights, start in reversed([*_levels(first, levels)]):
        m = start
        x = np.empty((offsets[-1], c.shape[1]), c.dtype)
        for parent, (begin, end) in enumerate(pairwise(offsets)):
            for i in range(begin, end):
                x[i] = p[weights + i] * up[parent]
            if end - begin == 1:
                x[begin] = 2 * (c.dtype.type(0.5) * p[weights + begin] * up[parent])
            for i, j in combinations(range(begin, end), 2):
                x[i] += p[weights + j] * c[m]
                x[j] += -p[weights + i] * c[m]
                m += 1
        up = x
    out[rows if rows.size else slice(None)] = up


def frame_average(first, p, x, rows, up):
    x = x[rows] if rows.size else x
    for c, (begin, end) in enumerate(pairwise(first)):
        up[c] = p[begin] * x[begin]
        for i in range(begin + 1, end):
            up[c] += p[i] * x[i]


def frame_lift(leaf, weight, x, out, rows, streaming):
    half = weight.dtype.type(0.5) * weight[:, None] * np.repeat(x, np.diff(leaf), axis=0)
    out[rows if rows.size else slice(None)] = half + half


def frame_detail(first, p, leaf, weight, x, rows_of_x, up, out, rows, streaming):
    x = x[rows_of_x] if rows_of_x.size else x
    size, parent = np.diff(leaf), np.repeat(np.arange(len(up)), np.diff(first))
    mine, theirs = np.repeat(x, size, axis=0), np.repeat(up[parent], size, axis=0)
    shares = -weight * np.repeat(p, size)
    out[rows if rows.size else slice(None)] = weight[:, None] * mine + shares[:, None] * theirs
