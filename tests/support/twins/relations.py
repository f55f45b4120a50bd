"""The loops of pegfan.relations."""

from __future__ import annotations

import itertools
import math

import numpy as np


def nearest_degrees(order, first, degrees, around, out):
    for c, (begin, end) in enumerate(itertools.pairwise(first)):
        for place in range(begin, end):
            mine = [*order[place + 1 : end], *order[begin:place]] if around else order[begin:end]
            near = [*mine]
            # Classes by distance; of two that are equally near, the higher.
            for other in sorted(set(range(len(degrees))) - {c}, key=lambda q: (abs(degrees[q] - degrees[c]), -q)):
                nodes = order[first[other] : first[other + 1]]
                near += [*(nodes[::-1] if around and other < c else nodes)]
            out[order[place]] = [node for node in near if node != order[place]][: out.shape[1]]


def rings(indptr, indices, own, reach, begin, stamp, queue, counts, sizes, which, many):
    end = 0
    for b, row in enumerate(sizes):
        ring, seen = {begin + b}, {begin + b}
        for k in range(len(row)):
            ring = {j for i in ring for j in indices[indptr[i] : indptr[i + 1]].tolist()} - seen
            seen |= ring
            classes, often = np.unique(own[sorted(ring)], return_counts=True)
            which[end : end + len(classes)], many[end : end + len(classes)] = classes, often
            row[k] = len(classes)
            end += len(classes)
    return end


def add_distances(begin, end, candidates, first, which, many, values, total, room):
    def lists(i):
        span = slice(*first[i])
        return values[which[span]], many[span]

    for i in range(begin, end):
        for t, j in enumerate(candidates[i]):
            (a, often_a), (b, often_b) = lists(i), lists(j)
            total[i, t] += _warp(a, often_a, b, often_b) if len(a) and len(b) else np.inf


def _warp(a, often_a, b, often_b):
    """Dynamic time warping, the whole table."""
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0.0
    for i, j in np.ndindex(len(a), len(b)):
        cost = (max(a[i], b[j]) / min(a[i], b[j]) - 1.0) * max(often_a[i], often_b[j])
        table[i + 1, j + 1] = min(table[i, j], table[i, j + 1], table[i + 1, j]) + cost
    return table[-1, -1]


def relation_weights(distances, out):
    out[:] = 0.0
    for i, row in enumerate(distances):
        if (least := row.min()) < np.inf:
            out[i] = [math.exp(least - distance) for distance in row]
            out[i] /= np.add.accumulate(out[i])[-1]


def nearest_nodes(order, first, near, gaps, nodes, distances):
    wanted = nodes.shape[1]
    for p, (begin, end) in enumerate(itertools.pairwise(first)):
        others = [
            (node, gap)
            for q, gap in zip(near[p], gaps[p], strict=True)
            if q != p
            for node in order[first[q] : first[q + 1]]
        ]
        for place in range(begin, end):
            mine = [(node, 0.0) for node in (*order[place + 1 : end], *order[begin:place])]
            for t, (node, gap) in enumerate((mine + others)[:wanted]):
                nodes[order[place], t], distances[order[place], t] = node, gap
