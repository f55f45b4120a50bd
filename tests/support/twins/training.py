"""The loops of pegfan.training, in float64: C rounds otherwise, so that results are near and not the same bits.

Those of boosting add integers, and have the same bits.
"""

from __future__ import annotations

import numpy as np

_UNIT = 1 << 24


def _unpacked(bits, width):
    """Masks of hidden units, from a bit each; all ones where there are none."""
    if not bits.size:
        return np.ones(width)
    return np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :width].astype(float)


def draw_masks(seed, threshold, hidden, bits):
    from pegfan._products import keep_mask

    mask = np.zeros((len(bits), hidden), np.uint8)
    keep_mask(np.uint64(seed), np.uint64(threshold), mask)
    bits.view(np.uint8)[:, : -(-hidden // 8)] = np.packbits(mask, axis=1, bitorder="little")


def rows_forward(lines, H, bias, normalized, inverse, V, by, bits, scratch, Z):
    h = H.astype(float) + bias
    inverse[:] = 1 / np.maximum(np.linalg.norm(h, axis=1), 1e-12) if normalized else 1
    H[:] = h * inverse[:, None].astype(float)
    Z[:] = (by * _unpacked(bits, 16 * lines) * np.maximum(H.astype(float), 0)) @ V.T


def rows_back(lines, H, inverse, normalized, alpha, V, bits, scale, error, scratch, gradient, grad_V, grad_b):
    h, error = H.astype(float), error.astype(float)
    kept = (scale if bits.size else 1.0) * _unpacked(bits, 16 * lines) * (h > 0)
    back = kept * (error @ V)
    inner = (back * h).sum(axis=1)
    grad_V[:] = alpha * error.T @ (kept * h)
    gradient[:] = alpha * inverse[:, None] * (back - (inner[:, None] * h if normalized else 0))
    grad_b[:] = gradient.sum(axis=0)
    return inner.sum()


def cross_entropy(logits, labels, weights, error):
    e = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    if error.size:
        error[:] = weights[:, None] * (p - np.eye(logits.shape[1])[labels])
    return -float(weights @ np.log(p[np.arange(len(p)), labels]))


def squared_error(outputs, targets, weights, error):
    gap = outputs[:, 0].astype(float) - targets
    if error.size:
        error[:, 0] = 2 * weights * gap
    return float(weights @ gap**2)


def attention_gradient(alpha, by_alpha, out):
    out[:] = alpha * (by_alpha - alpha @ by_alpha)


def adam_step(lines, w, m, v, g, rate, decay, steps):
    gradient = g + decay * w.astype(float)
    m[:] = 0.9 * m.astype(float) + 0.1 * gradient
    v[:] = 0.999 * v.astype(float) + 0.001 * gradient**2
    w -= rate / (1 - 0.9**steps) * m / (np.sqrt(v / (1 - 0.999**steps)) + 1e-8)


def boost_grow(
    bins, widths, chosen, g, h, leaves, fewest, l2, rate, order, spare, near, sums, places, gain, column, bin_at, child,
    value, gains,
):  # fmt: skip
    rows, best = {0: np.arange(len(g))}, {}
    column[:], bin_at[:], child[:], count = -1, 0, -1, 1

    def look(place):
        """The best split of a place: its gain, column and last bin on the left."""
        r, best[place] = rows[place], (0.0, -1, -1)
        whole_g, whole_h = g[r].sum() / _UNIT, h[r].sum() / _UNIT
        for j in chosen:
            left_rows, left_g, left_h = 0, 0, 0
            for b in range(widths[j] - 1):
                here = r[bins[j, r] == b]
                left_rows, left_g, left_h = left_rows + len(here), left_g + g[here].sum(), left_h + h[here].sum()
                if left_rows >= fewest and len(here) and len(r) - left_rows >= fewest:
                    a, c = left_g / _UNIT, left_h / _UNIT
                    found = a * a / (c + l2) + (whole_g - a) * (whole_g - a) / (whole_h - c + l2)
                    found -= whole_g * whole_g / (whole_h + l2)
                    if found > best[place][0] * (1.0 + 1e-12):
                        best[place] = (found, j, b)

    look(0)
    for _ in range(leaves - 1):
        open_places = [p for p in range(count) if child[p] < 0 and best[p][0] > 1e-9]
        if not open_places:
            break
        p = max(open_places, key=lambda place: (best[place][0], -place))
        found, j, last = best[p]
        column[p], bin_at[p], child[p], left = j, last, count, bins[j, rows[p]] <= last
        gains[j] += found
        rows[count], rows[count + 1] = rows[p][left], rows[p][~left]
        look(count), look(count + 1)
        count += 2
    for p in reversed(range(count)):
        k = child[p]
        if k < 0:
            value[p] = -rate * (g[rows[p]].sum() / _UNIT) / (h[rows[p]].sum() / _UNIT + l2)
        else:
            value[p] = (len(rows[k]) * value[k] + len(rows[k + 1]) * value[k + 1]) / len(rows[p])
    leaves_of = [p for p in range(count) if child[p] < 0]
    leaves_of.sort(key=lambda p: _path(p, child))
    end = 0
    places[:] = 0
    for p in leaves_of:
        order[end : end + len(rows[p])] = rows[p]
        places[p, :2] = end, end + len(rows[p])
        end += len(rows[p])
    return count


def _path(place, child):
    """The way from the root to a place: leaves are in the order of these."""
    way = []
    while place:
        parent = next(p for p in range(len(child)) if child[p] >= 0 and place in (child[p], child[p] + 1))
        way.append(place - child[parent])
        place = parent
    return way[::-1]


def boost_add_rows(order, places, child, value, out):
    for p in np.flatnonzero(child < 0):
        out[order[places[p, 0] : places[p, 1]]] += value[p]


def boost_add_bins(bins, column, bin_at, child, value, out):
    for r in range(len(out)):
        p = 0
        while child[p] >= 0:
            p = child[p] + (bins[column[p], r] > bin_at[p])
        out[r] += value[p]


def boost_walk(x, column, threshold, child, value, out):
    boost_walk_apart(x, column, threshold, child, value, None, out)


def boost_walk_apart(x, column, threshold, child, value, apart, out=None):
    for r in range(len(x)):
        for t in range(len(column)):
            p = 0
            while child[t, p] >= 0:
                j = column[t, p]
                following = child[t, p] + (not x[r, j] <= threshold[t, p])
                if apart is not None:
                    apart[r, t % apart.shape[1], j] += value[t, following] - value[t, p]
                p = following
            if out is not None:
                out[r, t % out.shape[1]] += value[t, p]
