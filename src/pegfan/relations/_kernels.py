"""Compiled loops of the relations."""

from __future__ import annotations

import numpy as np

from pegfan._compiled import compiled


@compiled("nearest_degrees")
def nearest_degrees(order, first, degrees, around, out):  # type: ignore[no-untyped-def]
    """Fill row i of out with nodes of nearest degree: own class first, of equally near ones the higher.

    The nodes of the c-th smallest degree, degrees[c], are order[first[c]:first[c + 1]].
    A class that is taken in part gives its first nodes, or, with `around`, those that follow node i in its own class
    (in a circle) and those next to it in the others.
    """
    count, wanted = first.size - 1, out.shape[1]
    for c in range(count):
        for place in range(first[c], first[c + 1]):
            i = order[place]
            low, high, now, found = c - 1, c + 1, c, 0
            while True:
                start, size = first[now], first[now + 1] - first[now]
                for step in range(size):
                    if found == wanted:
                        break
                    at = start + step
                    if around and now == c:
                        at = start + (place - start + 1 + step) % size
                    elif around and now < c:
                        at = start + size - 1 - step
                    if order[at] != i:
                        out[i, found] = order[at]
                        found += 1
                if found == wanted:
                    break
                if low < 0 or (high < count and degrees[high] - degrees[c] <= degrees[c] - degrees[low]):
                    now = high
                    high += 1
                else:
                    now = low
                    low -= 1


@compiled("rings")
def rings(indptr, indices, own, reach, begin, stamp, queue, counts, sizes, which, many):  # type: ignore[no-untyped-def]
    """Count the degrees in the rings 1, 2, .. of the nodes begin, begin + 1, ..; returns the number of entries.

    Ring k of the b-th node has sizes[b, k - 1] entries: a class of degrees in `which` and how often it occurs in
    `many`, classes rising. reach[i] is the size of the component of node i: a search that has seen it all ends.
    stamp[i] is the last node from which i was seen.
    """
    end = 0
    for b in range(sizes.shape[0]):
        root = begin + b
        stamp[root], queue[0] = root, root
        head, tail = 0, 1
        for k in range(sizes.shape[1]):
            ring_end = tail
            low, high = counts.size, -1
            while head < ring_end and tail < reach[root]:
                i = queue[head]
                head += 1
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    if stamp[j] != root:
                        stamp[j] = root
                        queue[tail] = j
                        tail += 1
                        counts[own[j]] += 1
                        low, high = min(low, own[j]), max(high, own[j])
            head = ring_end
            before = end
            for c in range(low, high + 1):
                if counts[c]:
                    which[end], many[end] = c, counts[c]
                    counts[c] = 0
                    end += 1
            sizes[b, k] = end - before
            if tail == ring_end:
                break
    return end


@compiled(inline="always")
def _cost(a, b, many_a, many_b):  # type: ignore[no-untyped-def]
    return (max(a, b) / min(a, b) - 1.0) * max(many_a, many_b)


@compiled(error_model="numpy")
def _greedy(a, many_a, b, many_b):  # type: ignore[no-untyped-def]
    """The cost of the path that always takes the cheapest step: no less than the cost of the best."""
    i = j = 0
    total = _cost(a[0], b[0], many_a[0], many_b[0])
    while i + 1 < a.size or j + 1 < b.size:
        best, di, dj = np.inf, 0, 0
        if i + 1 < a.size and j + 1 < b.size:
            best, di, dj = _cost(a[i + 1], b[j + 1], many_a[i + 1], many_b[j + 1]), 1, 1
        if i + 1 < a.size:
            value = _cost(a[i + 1], b[j], many_a[i + 1], many_b[j])
            if value < best:
                best, di, dj = value, 1, 0
        if j + 1 < b.size:
            value = _cost(a[i], b[j + 1], many_a[i], many_b[j + 1])
            if value < best:
                best, di, dj = value, 0, 1
        i, j = i + di, j + dj
        total += best
    return total


@compiled(error_model="numpy")
def _time_warp(a, many_a, b, many_b, above, row):  # type: ignore[no-untyped-def]
    """The cost of the best path that aligns two lists, exactly.

    Costs are not negative, so no prefix of the best path costs more than another whole path: cells beyond that are
    left out, and of most tables only a band is worked out. above and row are room for one row each.
    """
    bound = _greedy(a, many_a, b, many_b)
    if bound == 0.0:
        return 0.0
    width = b.size
    start, stop = 0, 1  # the columns of the row above that may be on the best path
    for i in range(a.size):
        x, many = a[i], many_a[i]
        new_start, new_stop = width, start
        left = np.inf
        j = start
        while j < width:
            if i == 0:
                best = left if j else 0.0
            else:
                best = left
                if j < stop and above[j] < best:
                    best = above[j]
                if start < j <= stop and above[j - 1] < best:
                    best = above[j - 1]
                if j > stop and left == np.inf:
                    break
            left = best + _cost(x, b[j], many, many_b[j])
            if left <= bound:
                if new_start == width:
                    new_start = j
                new_stop = j + 1
            else:
                left = np.inf
                if i == 0 or j > stop:
                    break
            row[j] = left
            j += 1
        above, row = row, above
        start, stop = new_start, new_stop
    return above[width - 1]


@compiled("add_distances", error_model="numpy")
def add_distances(begin, end, candidates, first, which, many, values, total, room):  # type: ignore[no-untyped-def]
    """Add to total[i, t] the distance of the lists of node i and its t-th candidate, for i from begin to end.

    The list of node i is first[i, 0]:first[i, 1]. Where one of two lists is empty, the total becomes infinite. `room`
    has four rows as long as the longest list can be.
    """
    a, b, above, row = room[0], room[1], room[2], room[3]
    for i in range(begin, end):
        low, high = first[i, 0], first[i, 1]
        for e in range(low, high):
            a[e - low] = values[which[e]]
        for t in range(candidates.shape[1]):
            if total[i, t] == np.inf:
                continue
            j = candidates[i, t]
            start, stop = first[j, 0], first[j, 1]
            if low == high or start == stop:
                total[i, t] = np.inf
                continue
            for e in range(start, stop):
                b[e - start] = values[which[e]]
            total[i, t] += _time_warp(a[: high - low], many[low:high], b[: stop - start], many[start:stop], above, row)


@compiled("relation_weights", error_model="numpy")
def weights(distances, out):  # type: ignore[no-untyped-def]
    """Rows of exp(-distance) over their sum; from the smallest distance on, so that no row vanishes."""
    for i in range(distances.shape[0]):
        least = np.inf
        for t in range(distances.shape[1]):
            least = min(least, distances[i, t])
        if least == np.inf:
            out[i] = 0.0
            continue
        total = 0.0
        for t in range(distances.shape[1]):
            out[i, t] = np.exp(least - distances[i, t])
            total += out[i, t]
        for t in range(distances.shape[1]):
            out[i, t] /= total


@compiled("nearest_nodes")
def nearest_nodes(order, first, near, gaps, nodes, distances):  # type: ignore[no-untyped-def]
    """Fill row i with nodes at the nearest points and their distances: those at its own point first, in a circle.

    The nodes at point p are order[first[p]:first[p + 1]]; near[p] are the points nearest to it, gaps[p] how far away.
    """
    wanted = nodes.shape[1]
    for p in range(first.size - 1):
        size = first[p + 1] - first[p]
        for place in range(size):
            i, found = order[first[p] + place], 0
            for step in range(1, size):
                if found == wanted:
                    break
                nodes[i, found] = order[first[p] + (place + step) % size]
                distances[i, found] = 0.0
                found += 1
            for t in range(near.shape[1]):
                q = near[p, t]
                if q == p:
                    continue
                for at in range(first[q], first[q + 1]):
                    if found == wanted:
                        break
                    nodes[i, found], distances[i, found] = order[at], gaps[p, t]
                    found += 1
