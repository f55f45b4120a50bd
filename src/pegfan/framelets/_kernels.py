"""Compiled loops over the clusters of a tree, for dense signals in rows.

A signal with d columns is an (N, d) array with one row per slot; the pair filters of `binary_haar` are given by p
alone. ``rows`` maps leaves to nodes and is empty where both are in the same order. `streaming` results are too large
for the caches: src/native/framelets.c, whose loops these are, then writes past them.
"""

from __future__ import annotations

from pegfan._compiled import compiled

FIRST, WEIGHTS, FRAMELETS, ROOM, CLUSTERS = range(5)
"""The columns of a table of levels, the finest first.

Where a level's offsets start in ``first``, its weights in ``p``, its framelet coefficients among all, its children in
``room``; and how many clusters it has. Cluster c has the children first[c] up to first[c + 1] of the level below.
"""


@compiled(error_model="numpy")
def _combine(out, r, a, x, i, b, y, j):  # type: ignore[no-untyped-def]
    """out[r] = a x[i] + b y[j]."""
    for t in range(out.shape[1]):
        out[r, t] = a * x[i, t] + b * y[j, t]


@compiled(error_model="numpy")
def _add(out, r, a, x, i, new):  # type: ignore[no-untyped-def]
    """out[r] += a x[i]; out[r] = a x[i] where it is new."""
    if new:
        for t in range(out.shape[1]):
            out[r, t] = a * x[i, t]
    else:
        for t in range(out.shape[1]):
            out[r, t] += a * x[i, t]


@compiled(error_model="numpy")
def _analyse(start, children, p, x, begin, rows, up, c, y, m):  # type: ignore[no-untyped-def]
    """One cluster: up[c] = Σ p_i x[i], and from y[m] on p_j x[i] − p_i x[j] for its pairs of children i < j."""
    for i in range(children):
        _add(up, c, p[start + i], x, rows[begin + i] if rows.size else begin + i, i == 0)
    for i in range(children):
        r = rows[begin + i] if rows.size else begin + i
        for j in range(i + 1, children):
            s = rows[begin + j] if rows.size else begin + j
            _combine(y, m, p[start + j], x, r, -p[start + i], x, s)
            m += 1


@compiled("frame_decompose", error_model="numpy")
def decompose(first, p, levels, x, rows, out, room, at, streaming):  # type: ignore[no-untyped-def]
    """All coefficients, from the leaves up.

    A cluster is worked on as soon as all its children are there, so that averages stay in the fastest cache: ``room``
    has rows for the children of one cluster per level, and one more. ``at`` is room for two numbers per level: its next
    cluster, and the row of its next framelet coefficient.
    """
    count, none = levels.shape[0], rows[:0]
    for level in range(count):
        at[2 * level], at[2 * level + 1] = 0, levels[level, FRAMELETS]
    for _ in range(levels[0, CLUSTERS]):
        for level in range(count):
            now, m = at[2 * level], at[2 * level + 1]
            place = levels[level, FIRST] + now
            start, children = first[place], first[place + 1] - first[place]
            if level > 0 and at[2 * level - 2] != start + children:
                break
            weights = levels[level, WEIGHTS] + start
            up, c = out, now
            if level + 1 < count:
                up, c = room, levels[level + 1, ROOM] + now - first[levels[level + 1, FIRST] + at[2 * level + 2]]
            if level == 0:
                _analyse(weights, children, p, x, start, rows, up, c, out, m)
            else:
                _analyse(weights, children, p, room, levels[level, ROOM], none, up, c, out, m)
            at[2 * level], at[2 * level + 1] = now + 1, m + children * (children - 1) // 2


@compiled(error_model="numpy")
def _synthesise(start, children, p, up, c, y, m, x, begin, rows):  # type: ignore[no-untyped-def]
    """The transpose of `_analyse`: x[k] = p_k up[c] − Σ_i p_i y_(i,k) + Σ_j p_j y_(k,j), i < k < j, in this order."""
    if children == 1:
        half = p.dtype.type(0.5) * p[start]
        _combine(x, rows[begin] if rows.size else begin, half, up, c, half, up, c)
        return
    for i in range(children):
        _add(x, rows[begin + i] if rows.size else begin + i, p[start + i], up, c, True)
    for i in range(children):
        r = rows[begin + i] if rows.size else begin + i
        for j in range(i + 1, children):
            s = rows[begin + j] if rows.size else begin + j
            _add(x, r, p[start + j], y, m, False)
            _add(x, s, -p[start + i], y, m, False)
            m += 1


@compiled("frame_reconstruct", error_model="numpy")
def reconstruct(first, p, levels, c, out, rows, room, at, streaming):  # type: ignore[no-untyped-def]
    """The signal, down to the leaves: the transpose of `decompose`, in the same order and with the same room."""
    count, none, last = levels.shape[0], rows[:0], room.shape[0] - 1
    for level in range(count):
        at[2 * level], at[2 * level + 1] = 0, levels[level, FRAMELETS]
    for _ in range(levels[0, CLUSTERS]):
        # Up to the first level whose next cluster is known already, and down again.
        level = 0
        while level + 1 < count and at[2 * level] == first[levels[level + 1, FIRST] + at[2 * level + 2]]:
            level += 1
        while level >= 0:
            now, m = at[2 * level], at[2 * level + 1]
            place = levels[level, FIRST] + now
            start, children = first[place], first[place + 1] - first[place]
            weights = levels[level, WEIGHTS] + start
            if level + 1 < count:
                up = levels[level + 1, ROOM] + now - first[levels[level + 1, FIRST] + at[2 * level + 2] - 1]
            else:
                up = last
                room[up] = c[now]
            if level == 0:
                _synthesise(weights, children, p, room, up, c, m, out, start, rows)
            else:
                _synthesise(weights, children, p, room, up, c, m, room, levels[level, ROOM], none)
            at[2 * level], at[2 * level + 1] = now + 1, m + children * (children - 1) // 2
            level -= 1


@compiled("frame_average", error_model="numpy")
def average(first, p, x, rows, up):  # type: ignore[no-untyped-def]
    """up[c] = Σ_i p_i x[i] over the children i of every cluster c: equation (1) on coefficients."""
    for c in range(first.size - 1):
        for i in range(first[c], first[c + 1]):
            _add(up, c, p[i], x, rows[i] if rows.size else i, i == first[c])


@compiled("frame_lift", error_model="numpy")
def lift(leaf, weight, x, out, rows, streaming):  # type: ignore[no-untyped-def]
    """Compute out = Φᵀ x: every leaf s of cluster c gets weight[s] x[c]."""
    for c in range(leaf.size - 1):
        for s in range(leaf[c], leaf[c + 1]):
            half = weight[s] * weight.dtype.type(0.5)
            _combine(out, rows[s] if rows.size else s, half, x, c, half, x, c)


@compiled("frame_detail", error_model="numpy")
def detail(first, p, leaf, weight, x, rows_of_x, up, out, rows, streaming):  # type: ignore[no-untyped-def]
    """Compute out = Φ_fineᵀ (x − p up): what the children x of every cluster add to its average up."""
    for c in range(first.size - 1):
        for i in range(first[c], first[c + 1]):
            source = rows_of_x[i] if rows_of_x.size else i
            for s in range(leaf[i], leaf[i + 1]):
                r = rows[s] if rows.size else s
                _combine(out, r, weight[s], x, source, -weight[s] * p[i], up, c)
