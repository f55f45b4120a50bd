"""Loops in C of the relations."""

from __future__ import annotations

from pegfan._loops import Loop

nearest_degrees = Loop(
    "void nearest_degrees(const int64 order[_n], const int64 first[c + 1], const int64 degrees[c], int64 around,"
    " int32 out[_n, d])"
)
"""Fill row i of out with nodes of nearest degree: own class first, of equally near ones the higher.

The nodes of the c-th smallest degree, degrees[c], are order[first[c]:first[c + 1]]. A class that is taken in part gives
its first nodes, or, with `around`, those that follow node i in its own class (in a circle) and those next to it in the
others.
"""

rings = Loop(
    "int64 rings(const int32 indptr[_n + 1], const int32 indices[_m], const int64 own[_n], const int64 reach[_n],"
    " int64 begin, int32 stamp[_n], int32 queue[_n], int32 counts[classes], int64 sizes[n, layers], int32 which[_e],"
    " int32 many[_e])"
)
"""Count the degrees in the rings 1, 2, .. of the nodes begin, begin + 1, ..; returns the number of entries.

Ring k of the b-th node has sizes[b, k - 1] entries: a class of degrees in `which` and how often it occurs in `many`,
classes rising. reach[i] is the size of the component of node i: a search that has seen it all ends. stamp[i] is the
last node from which i was seen.
"""

add_distances = Loop(
    "void add_distances(int64 begin, int64 end, const int32 candidates[_n, d], const int64 first[_n, 2],"
    " const int32 which[_e], const int32 many[_e], const float64 values[c], float64 total[_n, d], float64 room[4, c])"
)
"""Add to total[i, t] the distance of the lists of node i and its t-th candidate, for i from begin to end.

The list of node i is first[i, 0]:first[i, 1]; its distance from another is the cost of the best path that aligns the
two (dynamic time warping). Costs are not negative, so no prefix of the best path costs more than another whole path: of
most tables only a band is worked out. Where one of two lists is empty, the total becomes infinite.
"""

relation_weights = Loop("void relation_weights(const float64 distances[n, d], float64 out[n, d])")
"""Rows of exp(-distance) over their sum; from the smallest distance on, so that no row vanishes."""

nearest_nodes = Loop(
    "void nearest_nodes(const int64 order[_n], const int64 first[p + 1], const int64 near[p, d],"
    " const float64 gaps[p, d], int64 nodes[_n, k], float64 distances[_n, k])"
)
"""Fill row i with nodes at the nearest points and their distances: those at its own point first, in a circle.

The nodes at point p are order[first[p]:first[p + 1]]; near[p] are the points nearest to it, gaps[p] how far away.
"""
