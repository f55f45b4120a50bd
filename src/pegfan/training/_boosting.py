"""Compiled loops of gradient boosting: histograms, the growth of a tree, and walks down trees.

Gradients are integers, 2^24 to the unit. Sums of integers do not depend on the order of their terms, so neither the
numbering of the nodes nor the CPU changes which split is best.

A tree is a row of arrays with room for 2 * leaves - 1 places: the column that a place asks about (-1 for a leaf), the
threshold, where its two children are (next to each other), and the mean of what the leaves below it add.
"""

from __future__ import annotations

from pegfan._compiled import compiled

UNIT = 1 << 24


START, STOP, SUMS, SPLIT, LAST, G, H, ROWS, FACTS = range(9)
"""What is known of a place while a tree grows, the columns of `places`; the last is their number.

Which of the rows in order are there, which of the histograms it has, its best split (the place of the column among
those chosen, and the last bin on the left), and its sums of gradients, of curvatures and of rows.
"""


@compiled(error_model="numpy")
def _histograms(bins, widths, chosen, order, start, stop, g, h, near, out):  # type: ignore[no-untyped-def]
    """Sums of gradients, of curvatures and of rows per bin, of the rows order[start:stop]; a bin has four numbers."""
    for i in range(start, stop):
        near[i, 0], near[i, 1], near[i, 2], near[i, 3] = g[order[i]], h[order[i]], 1, 0
    for s in range(chosen.size):
        column, own = bins[chosen[s]], out[s]
        own[: widths[chosen[s]]] = 0
        for i in range(start, stop):
            b = column[order[i]]
            for q in range(4):
                own[b, q] += near[i, q]


@compiled(error_model="numpy")
def _best_split(sums, widths, chosen, place, l2, fewest):  # type: ignore[no-untyped-def]
    """The gain of the best split, which is written into the place."""
    unit = 1.0 / UNIT
    whole_g, whole_h = place[G] * unit, place[H] * unit
    whole = whole_g * whole_g / (whole_h + l2)
    best = 0.0
    place[SPLIT], place[LAST] = -1, -1
    for s in range(chosen.size):
        left_g = left_h = left_rows = 0
        for b in range(widths[chosen[s]] - 1):
            left_g += sums[s, b, 0]
            left_h += sums[s, b, 1]
            left_rows += sums[s, b, 2]
            if left_rows < fewest or sums[s, b, 2] == 0:
                continue
            if place[ROWS] - left_rows < fewest:
                break
            a, c = left_g * unit, left_h * unit
            gain = a * a / (c + l2) + (whole_g - a) * (whole_g - a) / (whole_h - c + l2) - whole
            if gain > best * (1.0 + 1e-12):
                best, place[SPLIT], place[LAST] = gain, s, b
    return best


@compiled("boost_grow", error_model="numpy")
def grow(  # type: ignore[no-untyped-def]
    bins,
    widths,
    chosen,
    g,
    h,
    leaves,
    fewest,
    l2,
    rate,
    order,
    spare,
    near,
    sums,
    places,
    gain,
    column,
    bin_at,
    child,
    value,
    gains,
):
    """Grow a tree, the best split first; returns how many places it has.

    `order`, `spare`, `near`, `sums` (histograms), `places` and `gain` are arrays to work in; order and places then say
    which rows are in which leaf. The tree is `column`, `bin_at` (the last bin on the left), `child` and `value`.
    `gains` adds up gains per column.
    """
    n = order.size
    places[:] = 0
    gain[:] = 0.0
    column[:] = -1
    child[:] = -1
    bin_at[:] = 0
    for i in range(n):
        order[i] = i
        places[0, G] += g[i]
        places[0, H] += h[i]
    places[0, ROWS], places[0, STOP] = n, n
    _histograms(bins, widths, chosen, order, 0, n, g, h, near, sums[0])
    gain[0] = _best_split(sums[0], widths, chosen, places[0], l2, fewest)
    count, grown = 1, 1
    while grown < leaves:
        p = -1
        for place in range(count):
            if child[place] < 0 and gain[place] > 1e-9 and (p < 0 or gain[place] > gain[p]):
                p = place
        if p < 0:
            break
        j, last = chosen[places[p, SPLIT]], places[p, LAST]
        column[p], bin_at[p], child[p] = j, last, count
        gains[j] += gain[p]
        # Rows of the left child come first; both keep their order.
        start, stop = places[p, START], places[p, STOP]
        a, b = start, 0
        own = bins[j]
        left, right = count, count + 1
        for i in range(start, stop):
            r = order[i]
            if own[r] <= last:
                order[a] = r
                a += 1
                places[left, G] += g[r]
                places[left, H] += h[r]
            else:
                spare[b] = r
                b += 1
        order[a : a + b] = spare[:b]
        places[left, START], places[left, STOP], places[right, START], places[right, STOP] = start, a, a, a + b
        places[left, ROWS] = a - start
        places[right, G:] = places[p, G:] - places[left, G:]
        small, large = (left, right) if a - start <= b else (right, left)
        places[small, SUMS], places[large, SUMS] = grown, places[p, SUMS]
        few, many = sums[places[small, SUMS]], sums[places[large, SUMS]]
        _histograms(bins, widths, chosen, order, places[small, START], places[small, STOP], g, h, near, few)
        for s in range(chosen.size):
            w = widths[chosen[s]]
            many[s, :w] -= few[s, :w]
        for place in (left, right):
            gain[place] = _best_split(sums[places[place, SUMS]], widths, chosen, places[place], l2, fewest)
        count += 2
        grown += 1
    for place in range(count - 1, -1, -1):
        if child[place] < 0:
            value[place] = -rate * (places[place, G] / UNIT) / (places[place, H] / UNIT + l2)
        else:
            k = child[place]
            value[place] = (places[k, ROWS] * value[k] + places[k + 1, ROWS] * value[k + 1]) / places[place, ROWS]
    return count


@compiled("boost_add_rows", error_model="numpy")
def add_rows(order, places, child, value, count, out):  # type: ignore[no-untyped-def]
    """Add a tree's values to the rows that it was grown on."""
    for p in range(count):
        if child[p] < 0:
            for i in range(places[p, START], places[p, STOP]):
                out[order[i]] += value[p]


@compiled("boost_add_bins", error_model="numpy")
def add_bins(bins, column, bin_at, child, value, out):  # type: ignore[no-untyped-def]
    """Add a tree's values to other rows, given by their bins."""
    for r in range(out.size):
        place = 0
        while child[place] >= 0:
            place = child[place] + (bins[column[place], r] > bin_at[place])
        out[r] += value[place]


@compiled("boost_walk", error_model="numpy")
def walk(x, column, threshold, child, value, out):  # type: ignore[no-untyped-def]
    """Add what all trees say of rows of numbers; tree t speaks for output t % outputs."""
    outputs = out.shape[1]
    for r in range(x.shape[0]):
        for t in range(column.shape[0]):
            place = 0
            while child[t, place] >= 0:
                place = child[t, place] + (not x[r, column[t, place]] <= threshold[t, place])
            out[r, t % outputs] += value[t, place]


@compiled("boost_walk_apart", error_model="numpy")
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
