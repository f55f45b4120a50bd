"""Loops in C over the clusters of a tree, for dense signals in rows.

A signal with d columns is an (n, d) array with one row per slot; the pair filters of `binary_haar` are given by p
alone. ``rows`` maps leaves to nodes and is empty where both are in the same order. `streaming` results are too large
for the caches: src/native/framelets.c then writes past them.
"""

from __future__ import annotations

from pegfan._loops import Loop

FIRST, WEIGHTS, FRAMELETS, ROOM, CLUSTERS = range(5)
"""The columns of a table of levels, the finest first.

Where a level's offsets start in ``first``, its weights in ``p``, its framelet coefficients among all, its children in
``room``; and how many clusters it has. Cluster c has the children first[c] up to first[c + 1] of the level below.
"""

decompose = Loop(
    "void frame_decompose(const int64 first[_first], const T p[_p], const int64 levels[count, 5], const T x[n, d],"
    " maybe const int64 rows[n], T out[_out, d], T room[_room, d], int64 at[2 * count], int64 streaming)"
)
"""All coefficients, from the leaves up.

A cluster is worked on as soon as all its children are there, so that averages stay in the fastest cache: ``room`` has
rows for the children of one cluster per level, and one more. ``at`` is room for two numbers per level: its next
cluster, and the row of its next framelet coefficient.
"""

reconstruct = Loop(
    "void frame_reconstruct(const int64 first[_first], const T p[_p], const int64 levels[count, 5], const T c[_c, d],"
    " T out[n, d], maybe const int64 rows[n], T room[_room, d], int64 at[2 * count], int64 streaming)"
)
"""The signal, down to the leaves: the transpose of `decompose`, in the same order and with the same room."""

average = Loop(
    "void frame_average(const int64 first[clusters + 1], const T p[n], const T x[n, d], maybe const int64 rows[n],"
    " T up[clusters, d])"
)
"""up[c] = Σ_i p_i x[i] over the children i of every cluster c: equation (1) on coefficients."""

lift = Loop(
    "void frame_lift(const int64 leaf[clusters + 1], const T weight[_n], const T x[clusters, d], T out[_n, d],"
    " maybe const int64 rows[_n], int64 streaming)"
)
"""out = Φᵀ x: every leaf s of cluster c gets weight[s] x[c]."""

detail = Loop(
    "void frame_detail(const int64 first[clusters + 1], const T p[children], const int64 leaf[children + 1],"
    " const T weight[_n], const T x[children, d], maybe const int64 rows_of_x[children], const T up[clusters, d],"
    " T out[_n, d], maybe const int64 rows[_n], int64 streaming)"
)
"""out = Φ_fineᵀ (x − pᵀ up): what the children x of every cluster add to its average up."""
