"""Compiled loops of gradient boosting: histograms, the growth of a tree, and walks down trees.

Gradients are integers, 2^24 to the unit. Sums of integers do not depend on the order of their terms, so neither the
numbering of the nodes nor the CPU changes which split is best.

A tree is a row of arrays with room for 2 * leaves - 1 places: the column that a place asks about (-1 for a leaf), the
threshold, where its two children are (next to each other), and the mean of what the leaves below it add.
"""

from __future__ import annotations

import numpy as np

from pegfan._compiled import compiled

UNIT = 1 << 24


@compiled(error_model="numpy")
def _histograms(bins, widths, chosen, order, start, stop, g, h, near_g, near_h, out):  # type: ignore[no-untyped-def]
    """Sums of gradients, of curvatures and of rows per bin, of the rows order[start:stop]."""
    for i in range(start, stop):
        near_g[i], near_h[i] = g[order[i]], h[order[i]]
    for s in range(chosen.size):
        column, own = bins[chosen[s]], out[s]
        own[: widths[chosen[s]]] = 0
        for i in range(start, stop):
            b = column[order[i]]
            own[b, 0] += near_g[i]
            own[b, 1] += near_h[i]
            own[b, 2] += 1


@compiled(error_model="numpy")
def _best_split(sums, widths, chosen, total, l2, fewest):  # type: ignore[no-untyped-def]
    """The gain of the best split, the place of its column among those chosen, and the last bin on the left."""
    unit = 1.0 / UNIT
    G, H, rows = total[0] * unit, total[1] * unit, total[2]
    whole = G * G / (H + l2)
    best, at, last = 0.0, -1, -1
    for s in range(chosen.size):
        left_g = left_h = left_rows = 0
        for b in range(widths[chosen[s]] - 1):
            left_g += sums[s, b, 0]
            left_h += sums[s, b, 1]
            left_rows += sums[s, b, 2]
            if left_rows < fewest or sums[s, b, 2] == 0:
                continue
            if rows - left_rows < fewest:
                break
            a, c = left_g * unit, left_h * unit
            gain = a * a / (c + l2) + (G - a) * (G - a) / (H - c + l2) - whole
            if gain > best * (1.0 + 1e-12):
                best, at, last = gain, s, b
    return best, at, last


@compiled(error_model="numpy")
def grow(bins, widths, chosen, g, h, leaves, fewest, l2, rate, rooms, tree, gains):  # type: ignore[no-untyped-def]
    """Grow a tree, the best split first; returns where the rows of its leaves are.

    `rooms` are arrays to work in: order of the rows, gradients and curvatures near each other, and histograms. `tree`
    holds arrays of one row each: column, last bin on the left, left child, value. `gains` adds up gains per column.
    """
    order, near_g, near_h, sums, spare = rooms
    column, bin_at, child, value = tree
    n = order.size
    size = 2 * leaves - 1
    start, stop, room = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    split, last = np.zeros(size, np.int64), np.zeros(size, np.int64)
    gain, totals = np.zeros(size), np.zeros((size, 3), np.int64)
    for i in range(n):
        order[i] = i
        totals[0, 0] += g[i]
        totals[0, 1] += h[i]
    totals[0, 2] = n
    stop[0] = n
    column[:] = -1
    child[:] = -1
    bin_at[:] = 0
    _histograms(bins, widths, chosen, order, 0, n, g, h, near_g, near_h, sums[0])
    gain[0], split[0], last[0] = _best_split(sums[0], widths, chosen, totals[0], l2, fewest)
    count, grown = 1, 1
    while grown < leaves:
        p = -1
        for place in range(count):
            if child[place] < 0 and gain[place] > 1e-9 and (p < 0 or gain[place] > gain[p]):
                p = place
        if p < 0:
            break
        j = chosen[split[p]]
        column[p], bin_at[p], child[p] = j, last[p], count
        gains[j] += gain[p]
        # Rows of the left child come first; both keep their order.
        a, b = start[p], 0
        own = bins[j]
        left, right = count, count + 1
        for i in range(start[p], stop[p]):
            r = order[i]
            if own[r] <= last[p]:
                order[a] = r
                a += 1
                totals[left, 0] += g[r]
                totals[left, 1] += h[r]
            else:
                spare[b] = r
                b += 1
        order[a : a + b] = spare[:b]
        start[left], stop[left], start[right], stop[right] = start[p], a, a, a + b
        totals[left, 2] = a - start[p]
        totals[right] = totals[p] - totals[left]
        small, large = (left, right) if a - start[p] <= b else (right, left)
        room[small], room[large] = grown, room[p]
        _histograms(bins, widths, chosen, order, start[small], stop[small], g, h, near_g, near_h, sums[room[small]])
        for s in range(chosen.size):
            w = widths[chosen[s]]
            sums[room[large], s, :w] -= sums[room[small], s, :w]
        for place in (left, right):
            gain[place], split[place], last[place] = _best_split(
                sums[room[place]], widths, chosen, totals[place], l2, fewest
            )
        count += 2
        grown += 1
    for place in range(count - 1, -1, -1):
        if child[place] < 0:
            value[place] = -rate * (totals[place, 0] / UNIT) / (totals[place, 1] / UNIT + l2)
        else:
            k = child[place]
            value[place] = (totals[k, 2] * value[k] + totals[k + 1, 2] * value[k + 1]) / totals[place, 2]
    leaf = np.flatnonzero(child[:count] < 0)
    return start[leaf], stop[leaf], leaf


@compiled(error_model="numpy")
def add_rows(order, starts, stops, leaf, value, out):  # type: ignore[no-untyped-def]
    """Add a tree's values to the rows that it was grown on."""
    for k in range(leaf.size):
        for i in range(starts[k], stops[k]):
            out[order[i]] += value[leaf[k]]


@compiled(error_model="numpy")
def add_bins(bins, column, bin_at, child, value, out):  # type: ignore[no-untyped-def]
    """Add a tree's values to other rows, given by their bins."""
    for r in range(out.size):
        place = 0
        while child[place] >= 0:
            place = child[place] + (bins[column[place], r] > bin_at[place])
        out[r] += value[place]


@compiled(error_model="numpy")
def walk(x, column, threshold, child, value, out):  # type: ignore[no-untyped-def]
    """Add what all trees say of rows of numbers; tree t speaks for output t % outputs."""
    outputs = out.shape[1]
    for r in range(x.shape[0]):
        for t in range(column.shape[0]):
            place = 0
            while child[t, place] >= 0:
                place = child[t, place] + (not x[r, column[t, place]] <= threshold[t, place])
            out[r, t % outputs] += value[t, place]


@compiled(error_model="numpy")
def walk_apart(x, column, threshold, child, value, out):  # type: ignore[no-untyped-def]
    """Add up, per row, output and column, by how much the questions about the column changed what is expected."""
    outputs = out.shape[1]
    for r in range(x.shape[0]):
        for t in range(column.shape[0]):
            place = 0
            while child[t, place] >= 0:
                j = column[t, place]
                following = child[t, place] + (not x[r, j] <= threshold[t, place])
                out[r, t % outputs, j] += value[t, following] - value[t, place]
                place = following
