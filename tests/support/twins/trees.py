"""The loops of pegfan.trees."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from support.twins.hashing import _mix


def _rows_of(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _in_order(terms):
    """Sums along the first axis, one term after the other (NumPy's own sums go by pairs)."""
    return np.add.accumulate(np.concatenate([np.zeros_like(terms[:1]), terms]))[-1] if len(terms) else 0.0


# ------------------------------------------------------------------------------------------------- _kernels


def gather_colours(indptr, indices, weights, colours, factor, out):
    total = np.zeros(len(out), np.uint64)
    np.add.at(total, _rows_of(indptr), _mix(colours[indices] ^ weights))
    out += factor * total


def add_by_label(labels, values, out):
    np.add.at(out, labels, values)


def leading_bits(weights, largest, out):
    mantissa, exponent = np.frexp(weights / largest)
    out[:] = np.ldexp(np.rint(np.ldexp(mantissa, 40)), exponent - 40).view(np.uint64)


def components(indptr, indices, symmetric, parent, labels):
    graph = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(labels), len(labels)))
    count, labels[:] = connected_components(graph, connection="weak")
    return count


def upper_pairs(indptr, indices, data, root, start, pairs, score):
    rows = _rows_of(indptr) + start
    above = indices > rows
    pairs[:] = np.column_stack([rows, indices])[above]
    score[:] = (data / (root[rows] * root[indices]))[above]


def shake_weights(indptr, indices, seed, data):
    ends = np.sort([_rows_of(indptr), indices], axis=0).astype(np.uint64)
    bits = _mix(_mix(_mix(seed) ^ ends[0]) ^ ends[1])
    fraction = 1.0 + (bits >> np.uint64(12)).astype(np.float64) * 2.0**-52
    data *= np.ldexp(fraction, (bits & np.uint64(3)).astype(int) - 2)


def _heights(score):
    mantissa, exponent = np.frexp(np.maximum(score, 1e-300))
    return exponent + 2.0 * mantissa


def height_range(score, out):
    heights = _heights(score)
    out[:] = heights.min(), heights.max()


def score_keys(score, low, high, keys):
    keys[:] = np.rint((high - _heights(score)) * (65535.0 / max(high - low, 1e-12)))


def sort_pairs(pairs, score, low, high, out):
    keys = np.empty(len(score), np.uint16)
    score_keys(score, low, high, keys)
    out[:] = pairs[np.argsort(keys, kind="stable")]
    return 0


def join_pairs(pairs, most, parent, first):
    def root(i):
        return root(parent[i]) if parent[i] >= 0 else i

    for i, j in pairs:
        for one, other in ((i, j), (j, i)):
            if first[one] < 0:
                first[one] = other
        low, high = sorted((root(i), root(j)))
        if low != high and -(parent[low] + parent[high]) <= most:
            parent[low], parent[high] = parent[low] + parent[high], low


def settle_clusters(parent, first):
    first[parent != -1] = -1
    for i in range(len(parent)):
        parent[i] = i if parent[i] < 0 else parent[parent[i]]
    first[:] = np.where(first >= 0, parent[first], -1)


def row_entries(rows, indptr, out):
    out[:] = np.concatenate([np.arange(indptr[i], indptr[i + 1]) for i in rows])


def ward_merges(centres, merged, heights, stop):
    d, n = centres.shape
    size, chain = np.ones(n), []
    alive = np.ones(n, bool)
    for k in range(n - 1):
        if stop[0]:
            break
        if not chain:
            chain = [np.flatnonzero(alive)[np.argmin(size[alive])]]
        while True:
            i, before = chain[-1], chain[-2] if len(chain) > 1 else -1
            squares = (centres - centres[:, [i]]) ** 2
            gap = np.zeros(n)
            for t in range(0, d // 5 * 5, 5):
                gap += (((squares[t] + squares[t + 1]) + squares[t + 2]) + squares[t + 3]) + squares[t + 4]
            for t in range(d // 5 * 5, d):
                gap += squares[t]
            gap[i] = np.inf
            values = np.where(alive, gap * (size[i] * size / (size[i] + size)), np.inf)
            lowest = values.min()
            nearest = np.flatnonzero(values == lowest)
            best = before if before in nearest else nearest[np.argmin(size[nearest])]
            if best == before:
                break
            chain.append(best)
        low, high = sorted((i, best))
        total = size[low] + size[high]
        centres[:, low] = (size[low] * centres[:, low] + size[high] * centres[:, high]) / total
        size[low], alive[high] = total, False
        merged[k], heights[k] = (low, high), lowest
        del chain[-2:]
    return 0


def name_merges(merged, linkage):
    n = len(merged) + 1
    of_point, sizes = {i: i for i in range(n)}, dict.fromkeys(range(n), 1)
    for k, ends in enumerate(merged):
        one, other = sorted(of_point[i] for i in ends)
        sizes[n + k] = sizes[one] + sizes[other]
        of_point = {i: n + k if name in (one, other) else name for i, name in of_point.items()}
        linkage[k, 0], linkage[k, 1], linkage[k, 3] = one, other, sizes[n + k]
    return 0


def sum_between(members, first, labels, start, count, indptr, indices, data, between_ptr, between, weights):
    end = between_ptr[0] = 0
    for row, (begin, stop) in enumerate(itertools.pairwise(first)):
        total = {}
        for i in members[begin:stop]:
            for e in range(indptr[i], indptr[i + 1]):
                cluster = labels[indices[e]]
                total[cluster] = total.get(cluster, 0.0) + data[e]
        for cluster in sorted(total.keys() - {start + row}):
            between[end], weights[end] = cluster, total[cluster]
            end += 1
        between_ptr[row + 1] = end
    return end


def add_rows(labels, x, out):
    np.add.at(out, labels, x)


# -------------------------------------------------------------------------------------------------- _linear


def add_outer(scale, factor, x, out):
    out += (factor * scale)[:, None] * _in_order(scale[:, None] * x)
    return 0


def combine(a, ax, b, x, c, before, out):
    out[:] = a * ax + b * x + c * before


def gram(x, y, out):
    upper = np.triu(_in_order(x[:, :, None] * y[:, None, :]))
    out[:] = upper + np.triu(upper, 1).T


def rotate(x, m, out):
    out[:] = _in_order(x.T[:, :, None] * m[:, None, :])


def row_sums(indptr, data, out):
    out[:] = [_in_order(data[start:stop]) for start, stop in itertools.pairwise(indptr)]


def scale_rows(x):
    norms = np.sqrt(_in_order((x * x).T))[:, None]
    np.divide(x, norms, out=x, where=norms > 0.0)


def column_norms(x, out):
    out[:] = np.sqrt(_in_order(x * x))


def fill(x, salt, only):
    places = np.arange(x.size, dtype=np.uint64).reshape(x.shape)
    bits = _mix(_mix(np.uint64(salt)) + places) >> np.uint64(12)
    x[:] = np.where(only, bits.astype(np.float64) * 2.0**-51 - 1.0, x)


def orthonormal(g, r, lost):
    width = len(g)
    low = np.zeros((width, width))
    r[:] = 0.0
    for j in range(width):
        rest = g[j, j]
        for k in range(j):
            rest -= low[j, k] * low[j, k]
        lost[j] = not rest > 1e-12 * g[j, j]
        if lost[j]:
            continue
        low[j, j] = np.sqrt(rest)
        column = g[j + 1 :, j].copy()
        for k in range(j):
            column -= low[j + 1 :, k] * low[j, k]
        low[j + 1 :, j] = column / low[j, j]
    for j in np.flatnonzero(~lost.astype(bool)):
        r[j, j] = 1.0 / low[j, j]
        for i in range(j - 1, -1, -1):
            if not lost[i]:
                r[i, j] = -_in_order(low[i + 1 : j + 1, i] * r[i + 1 : j + 1, j]) / low[i, i]
    return int(np.count_nonzero(lost))


def symmetric_eigen(a, values, vectors):
    n, tiny = len(a), 2.0**-52
    values[:], beside = _three_diagonals(a.copy(), vectors)
    for first in range(n):
        for _ in range(100):
            small = np.abs(beside[first:-1]) <= tiny * (np.abs(values[first:-1]) + np.abs(values[first + 1 :]))
            last = first + (int(np.argmax(small)) if small.any() else n - 1 - first)
            if last == first:
                break
            _shifted_rotations(values, beside, vectors, first, last)
    for i in range(n - 1):
        best = i + int(np.argmax(values[i:]))
        values[[i, best]], vectors[:, [i, best]] = values[[best, i]], vectors[:, [best, i]]
    return 0


def _three_diagonals(a, q):
    """Householder's reflections; the diagonal and what stands beside it."""
    n, tiny = len(a), 2.0**-52
    q[:] = np.eye(n)
    for k in range(n - 2):
        rest = slice(k + 1, n)
        size = _in_order(a[rest, k] * a[rest, k])
        if not size - a[k + 1, k] * a[k + 1, k] > tiny * tiny * size:
            continue
        pivot = -np.sqrt(size) if a[k + 1, k] >= 0.0 else np.sqrt(size)
        half = size - pivot * a[k + 1, k]
        v = a[rest, k].copy()
        v[0] -= pivot
        p = _in_order((a[rest, rest] * v).T) / half
        p -= _in_order(v * p) / (half + half) * v
        a[rest, rest] -= v[:, None] * p + p[:, None] * v
        a[k + 1, k] = a[k, k + 1] = pivot
        q[:, rest] -= (_in_order((q[:, rest] * v).T) / half)[:, None] * v
    return np.diagonal(a), np.append(np.diagonal(a, -1), 0.0)


def _shifted_rotations(d, e, q, first, last):
    """One round of QL on the rows first to last, by Wilkinson's shift."""
    gap = (d[first + 1] - d[first]) / (2.0 * e[first])
    root = np.sqrt(gap * gap + 1.0)
    g = d[last] - d[first] + e[first] / (gap + (root if gap >= 0.0 else -root))
    sine, cosine, moved = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = sine * e[i], cosine * e[i]
        e[i + 1] = length = np.sqrt(f * f + g * g)
        if length == 0.0:
            d[i + 1] -= moved
            e[last] = 0.0
            return
        sine, cosine = f / length, g / length
        g = d[i + 1] - moved
        mixed = (d[i] - g) * sine + 2.0 * cosine * b
        moved = sine * mixed
        d[i + 1] = g + moved
        g = cosine * mixed - b
        x, y = q[:, i].copy(), q[:, i + 1].copy()
        q[:, i + 1], q[:, i] = sine * x + cosine * y, cosine * x - sine * y
    d[first] -= moved
    e[first], e[last] = g, 0.0
