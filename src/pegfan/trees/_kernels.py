"""Compiled loops of the tree builders."""

from __future__ import annotations

import math

import numpy as np

from pegfan._compiled import compiled
from pegfan._hashing import B, mix


@compiled("gather_colours")
def gather_colours(indptr, indices, weights, colours, factor, out):  # type: ignore[no-untyped-def]
    """Add to out[i] a sum over the arcs of node i: of integers that wrap around, so that no order matters."""
    for i in range(indptr.size - 1):
        total = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += mix(colours[indices[e]] ^ weights[e])
        out[i] += factor * total


@compiled("hash_some_rows")
def hash_some_rows(nodes, indptr, indices, bits, with_self, out):  # type: ignore[no-untyped-def]
    """Hash some rows of a sparse matrix, as `hash_rows` does."""
    for k in range(nodes.size):
        i = nodes[k]
        total = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += mix(bits[e] ^ mix(np.uint64(indices[e]) + B))
        if with_self and indptr[i] < indptr[i + 1]:
            total += mix(bits[indptr[i]] ^ mix(np.uint64(i) + B))
        out[k] = mix(total)


@compiled("add_by_label")
def add_by_label(labels, values, out):  # type: ignore[no-untyped-def]
    """Add every value to the sum of its label: integers that wrap around."""
    for i in range(labels.size):
        out[labels[i]] += values[i]


@compiled("leading_bits")
def leading_bits(weights, largest, out):  # type: ignore[no-untyped-def]
    """Round weights, relative to the largest, to 40 significant bits, and take their bits as integers."""
    rounded = np.empty(1)
    for e in range(weights.size):
        mantissa, exponent = math.frexp(weights[e] / largest)
        rounded[0] = math.ldexp(np.rint(math.ldexp(mantissa, 40)), exponent - 40)
        out[e] = rounded.view(np.uint64)[0]


@compiled(inline="always")
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled("components")
def components(indptr, indices, symmetric, parent, labels):  # type: ignore[no-untyped-def]
    """Number the components that arcs of either direction make, by their first nodes; returns how many there are.

    `symmetric` says that every arc has its opposite.
    """
    for i in range(parent.size):
        parent[i] = i
    for i in range(parent.size):
        for e in range(indptr[i], indptr[i + 1]):
            a, b = _root(parent, i), _root(parent, indices[e])
            parent[max(a, b)] = min(a, b)
    count = 0
    for i in range(parent.size):
        root = _root(parent, i)
        if root == i:
            labels[i] = count
            count += 1
        else:
            labels[i] = labels[root]
    return count


@compiled("upper_pairs")
def upper_pairs(indptr, indices, data, root, start, pairs, score):  # type: ignore[no-untyped-def]
    """The entries right of the diagonal, row by row, divided by the roots of both ends.

    Rows are numbered from `start` on; the roots are those of all nodes.
    """
    count = 0
    for row in range(indptr.size - 1):
        i = start + row
        for e in range(indptr[row], indptr[row + 1]):
            j = indices[e]
            if j > i:
                pairs[count, 0], pairs[count, 1] = i, j
                score[count] = data[e] / (root[i] * root[j])
                count += 1
    return count


@compiled("shake_weights")
def shake_weights(indptr, indices, seed, data):  # type: ignore[no-untyped-def]
    """Multiply every weight by a factor from 1/4 to 4 that its two ends and the seed determine, in exact arithmetic."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            low, high = np.uint64(min(i, indices[e])), np.uint64(max(i, indices[e]))
            bits = mix(mix(mix(seed) ^ low) ^ high)
            fraction = 1.0 + float(bits >> np.uint64(12)) * 2.0**-52
            data[e] *= math.ldexp(fraction, int(bits & np.uint64(3)) - 2)


@compiled(inline="always")
def _height(score):  # type: ignore[no-untyped-def]
    """The logarithm to base 2, straight between powers of 2: exact arithmetic, which functions of libraries are not."""
    mantissa, exponent = math.frexp(max(score, 1e-300))
    return exponent + 2.0 * mantissa


@compiled("height_range")
def height_range(score, out):  # type: ignore[no-untyped-def]
    """The lowest and the highest of logarithms."""
    out[0] = out[1] = _height(score[0])
    for value in score:
        out[0], out[1] = min(out[0], _height(value)), max(out[1], _height(value))


@compiled("score_keys")
def score_keys(score, low, high, keys):  # type: ignore[no-untyped-def]
    """The numbers that `sort_pairs` sorts by."""
    scale = 65535.0 / max(high - low, 1e-12)
    for e in range(score.size):
        keys[e] = np.uint16(np.rint((high - _height(score[e])) * scale))


@compiled("sort_pairs")
def sort_pairs(pairs, score, low, high, out):  # type: ignore[no-untyped-def]
    """Pairs by falling logarithm, rounded to 16 bits from low to high; of equal ones the first comes first."""
    scale = 65535.0 / max(high - low, 1e-12)
    ends = np.zeros(65537, np.int64)
    for value in score:
        ends[np.int64(np.rint((high - _height(value)) * scale)) + 1] += 1
    ends = np.cumsum(ends)
    for e in range(score.size):
        key = np.int64(np.rint((high - _height(score[e])) * scale))
        out[ends[key], 0], out[ends[key], 1] = pairs[e, 0], pairs[e, 1]
        ends[key] += 1
    return 0


@compiled("join_in_order")
def join_in_order(pairs, most, parent, alone):  # type: ignore[no-untyped-def]
    """Join the ends of each pair, in the order given, where the cluster stays within `most` nodes.

    parent is the first node of every node's cluster; alone says which nodes no other joined.
    """
    size = np.ones(parent.size, np.int64)
    for i in range(parent.size):
        parent[i] = i
    for e in range(pairs.shape[0]):
        a, b = _root(parent, pairs[e, 0]), _root(parent, pairs[e, 1])
        if a != b and size[a] + size[b] <= most:
            low, high = min(a, b), max(a, b)
            parent[high] = low
            size[low] += size[high]
    for i in range(parent.size):
        parent[i] = _root(parent, i)
        alone[i] = parent[i] == i and size[i] == 1


@compiled(inline="always")
def _top(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] >= 0:
        i = parent[i]
    return i


@compiled("join_more")
def join_more(pairs, most, parent, first):  # type: ignore[no-untyped-def]
    """Go on as `join_in_order` does, where pairs come in parts.

    parent is -1 everywhere before the first part; at the first node of a cluster it is the number of its nodes,
    negated. first is the other end of the first pair of every node, or -1.
    """
    for e in range(pairs.shape[0]):
        i, j = pairs[e, 0], pairs[e, 1]
        if first[i] < 0:
            first[i] = j
        if first[j] < 0:
            first[j] = i
        a, b = _top(parent, i), _top(parent, j)
        size = -(parent[a] + parent[b])
        if a != b and size <= most:
            parent[max(a, b)], parent[min(a, b)] = min(a, b), -size


@compiled("settle")
def settle(parent, alone):  # type: ignore[no-untyped-def]
    """After the last part: parent is the first node of every node's cluster; alone says which nodes no other joined."""
    for i in range(parent.size):
        alone[i] = parent[i] == -1
        parent[i] = i if parent[i] < 0 else parent[parent[i]]


@compiled("row_entries")
def row_entries(rows, indptr, out):  # type: ignore[no-untyped-def]
    """Where the entries of some rows of a CSR matrix are, row after row."""
    end = 0
    for i in rows:
        for e in range(indptr[i], indptr[i + 1]):
            out[end] = e
            end += 1


@compiled("best_neighbours")
def best_neighbours(pairs, parent, alone, best):  # type: ignore[no-untyped-def]
    """For every node that is alone, the cluster at the other end of its first pair; else -1."""
    best[:] = -1
    for e in range(pairs.shape[0]):
        i, j = pairs[e, 0], pairs[e, 1]
        if alone[i] and best[i] < 0:
            best[i] = parent[j]
        if alone[j] and best[j] < 0:
            best[j] = parent[i]


@compiled("ward_merges", error_model="numpy")
def ward_merges(centres, merged, heights, stop):  # type: ignore[no-untyped-def]
    """Merge points by Ward's criterion along chains of nearest neighbours.

    centres is (d, n), one column per point, and is overwritten. Merge k joins the clusters of the points merged[k] at
    the squared height heights[k], the increase of the sum of squares. Merges come in the order of the chains. It ends
    early when another thread sets stop[0].
    """
    d, n = centres.shape
    size, point, alive = np.ones(n), np.arange(n), np.ones(n, np.bool_)
    gap = np.empty(n)
    chain = np.empty(n, np.int64)
    length, count, used = 0, n, n  # of the chain, of clusters, of columns in use
    for k in range(n - 1):
        if stop[0]:
            return 0
        if used > 64 and count < 0.8 * used:  # squeeze out the columns of clusters that are gone
            place = np.empty(used, np.int64)
            kept = 0
            for j in range(used):
                if alive[j]:
                    place[j] = kept
                    size[kept], point[kept] = size[j], point[j]
                    for t in range(d):
                        centres[t, kept] = centres[t, j]
                    kept += 1
            for link in range(length):
                chain[link] = place[chain[link]]
            used = kept
            alive[:used] = True
        if length == 0:
            first = -1  # the smallest cluster: equal points then pair up, instead of joining a growing heap one by one
            for j in range(used):
                if alive[j] and (first < 0 or size[j] < size[first]):
                    first = j
            chain[0], length = first, 1
        while True:
            i = chain[length - 1]
            for j in range(used):
                gap[j] = 0.0
            t = 0
            while t + 4 < d:  # five coordinates per pass: fewer passes over the gaps
                a, b, c, e, f = (
                    centres[t, i],
                    centres[t + 1, i],
                    centres[t + 2, i],
                    centres[t + 3, i],
                    centres[t + 4, i],
                )
                for j in range(used):
                    x, y, z = centres[t, j] - a, centres[t + 1, j] - b, centres[t + 2, j] - c
                    v, w = centres[t + 3, j] - e, centres[t + 4, j] - f
                    gap[j] += x * x + y * y + z * z + v * v + w * w
                t += 5
            while t < d:
                a = centres[t, i]
                for j in range(used):
                    x = centres[t, j] - a
                    gap[j] += x * x
                t += 1
            gap[i] = np.inf
            mine = size[i]
            least = mine / (mine + 1.0)  # no cluster has a smaller factor, so few need theirs worked out
            # On ties the one before wins, which ends the chain; then the smallest, then the first.
            before = chain[length - 2] if length > 1 else -1
            best = before
            lowest = gap[best] * (mine * size[best] / (mine + size[best])) if best >= 0 else np.inf
            for j in range(used):
                if gap[j] * least <= lowest:
                    value = gap[j] * (mine * size[j] / (mine + size[j]))
                    if value < lowest or (value == lowest and best != before and size[j] < size[best]):
                        lowest, best = value, j
            if best < 0:  # all distances overflow; any partner will do
                for j in range(used):
                    if alive[j] and j != i:
                        best = j
                        break
            if length > 1 and best == chain[length - 2]:
                break
            chain[length] = best
            length += 1
        low, high = min(i, best), max(i, best)
        total = size[low] + size[high]
        for t in range(d):
            centres[t, low] = (size[low] * centres[t, low] + size[high] * centres[t, high]) / total
            centres[t, high] = np.inf  # infinitely far from everybody
        merged[k, 0], merged[k, 1], heights[k] = point[low], point[high], lowest
        size[low], alive[high] = total, False
        count -= 1
        length -= 2
    return 0


@compiled("name_merges")
def name_merges(merged, parent, linkage):  # type: ignore[no-untyped-def]
    """Number merges as SciPy does: points 0..n-1, then one number per merge; fills the ids and the sizes."""
    n = parent.size
    name, size = np.arange(n), np.ones(n, np.int64)
    for k in range(n - 1):
        a, b = _root(parent, merged[k, 0]), _root(parent, merged[k, 1])
        linkage[k, 0], linkage[k, 1] = min(name[a], name[b]), max(name[a], name[b])
        parent[b] = a
        size[a] += size[b]
        name[a] = n + k
        linkage[k, 3] = size[a]
    return 0


@compiled("sum_between")
def sum_between(members, first, labels, start, count, indptr, indices, data, between_ptr, between, weights):  # type: ignore[no-untyped-def]
    """The weights between clusters as a CSR matrix without a diagonal, columns in order; returns the number of entries.

    Of `count` clusters, rows are those from `start` on; the nodes of the c-th are members[first[c]:first[c + 1]]. Sums
    go along the members and their edges.
    """
    total, seen, found = np.zeros(count), np.full(count, -1), np.empty(count, np.int64)
    end = 0
    between_ptr[0] = 0
    for row in range(first.size - 1):
        c = start + row
        length = 0
        for i in members[first[row] : first[row + 1]]:
            for e in range(indptr[i], indptr[i + 1]):
                k = labels[indices[e]]
                if k == c:
                    continue
                if seen[k] != c:
                    seen[k] = c
                    found[length] = k
                    length += 1
                    total[k] = 0.0
                total[k] += data[e]
        found[:length].sort()
        for k in found[:length]:
            between[end], weights[end] = k, total[k]
            end += 1
        between_ptr[row + 1] = end
    return end


@compiled("add_rows")
def add_rows(labels, x, out):  # type: ignore[no-untyped-def]
    """Add every row of x to the row of its label, in order."""
    for i in range(labels.size):
        for t in range(x.shape[1]):
            out[labels[i], t] += x[i, t]
