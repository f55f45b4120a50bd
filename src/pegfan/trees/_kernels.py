"""Loops in C of the tree builders."""

from __future__ import annotations

from pegfan._loops import Loop

gather_colours = Loop(
    "void gather_colours(const I indptr[n + 1], const I indices[m], const uint64 weights[m],"
    " const uint64 colours[_all], uint64 factor, uint64 out[n])"
)
"""Add to out[i] a sum over the arcs of node i: of integers that wrap around, so that no order matters."""

add_by_label = Loop("void add_by_label(const I labels[n], const uint64 values[n], uint64 out[_labels])")
"""Add every value to the sum of its label: integers that wrap around."""

leading_bits = Loop("void leading_bits(const float64 weights[n], float64 largest, uint64 out[n])")
"""Round weights, relative to the largest, to 40 significant bits, and take their bits as integers."""

components = Loop(
    "int64 components(const I indptr[n + 1], const I indices[m], int64 symmetric, I parent[n], I labels[n])"
)
"""Number the components that arcs of either direction make, by their first nodes; returns how many there are.

`symmetric` says that every arc has its opposite; what `parent` holds afterwards is of no use.
"""

upper_pairs = Loop(
    "void upper_pairs(const I indptr[n + 1], const I indices[m], const float64 data[m], const float64 root[_all],"
    " int64 start, I pairs[_pairs, 2], float64 score[_pairs])"
)
"""The entries right of the diagonal, row by row, divided by the roots of both ends.

Rows are numbered from `start` on; the roots are those of all nodes.
"""

shake_weights = Loop("void shake_weights(const I indptr[n + 1], const I indices[_m], uint64 seed, float64 data[_m])")
"""Multiply every weight by a factor from 1/4 to 4 that its two ends and the seed determine, in exact arithmetic."""

height_range = Loop("void height_range(const float64 score[n], float64 out[2])")
"""The lowest and the highest of logarithms to base 2, straight between powers of 2: in exact arithmetic."""

score_keys = Loop("void score_keys(const float64 score[n], float64 low, float64 high, uint16 keys[n])")
"""The numbers that `sort_pairs` sorts by."""

sort_pairs = Loop(
    "int64 sort_pairs(const I pairs[n, 2], const float64 score[n], float64 low, float64 high, I out[n, 2])"
)
"""Pairs by falling logarithm, rounded to 16 bits from low to high; of equal ones the first comes first."""

join_pairs = Loop("void join_pairs(const I pairs[m, 2], int64 most, I parent[_n], I first[_n])")
"""Join the ends of each pair, in the order given, where the cluster stays within `most` nodes.

Pairs may come in parts. Both arrays hold -1 before the first part. At the first node of a cluster, parent is the number
of its nodes, negated; elsewhere a node of the cluster that stands before. first is the other end of the first pair of
every node, or -1.
"""

settle_clusters = Loop("void settle_clusters(I parent[n], I first[n])")
"""After the last part: parent is the first node of every node's cluster.

For every node that no other joined, first is the cluster of the other end of its first pair; else -1.
"""

row_entries = Loop("void row_entries(const I rows[n], const I indptr[_rows + 1], I out[_entries])")
"""Where the entries of some rows of a CSR matrix are, row after row."""

ward_merges = Loop(
    "int64 ward_merges(float64 centres[d, n], int64 merged[n - 1, 2], float64 heights[n - 1], const uint8 stop[1])"
)
"""Merge points by Ward's criterion along chains of nearest neighbours.

centres has one column per point, and is overwritten. Merge k joins the clusters of the points merged[k] at the squared
height heights[k], the increase of the sum of squares. Merges come in the order of the chains. On ties the cluster
before in the chain wins, which ends it; then the smallest, then the first. It ends early when another thread sets
stop[0].
"""

name_merges = Loop("int64 name_merges(const int64 merged[m, 2], float64 linkage[m, 4])")
"""Number merges as SciPy does: points 0..n-1, then one number per merge; fills the ids and the sizes."""

sum_between = Loop(
    "int64 sum_between(const I members[n], const I first[rows + 1], const I labels[_all], int64 start, int64 count,"
    " const I indptr[n + 1], const I indices[_m], const float64 data[_m], I between_ptr[rows + 1], I between[_m],"
    " float64 weights[_m])"
)
"""The weights between clusters as a CSR matrix without a diagonal, columns in order; returns the number of entries.

Of `count` clusters, rows are those from `start` on; the nodes of the c-th are members[first[c]:first[c + 1]]. Sums go
along the members and their edges.
"""

add_rows = Loop("void add_rows(const I labels[n], const float64 x[n, d], float64 out[_labels, d])")
"""Add every row of x to the row of its label, in order."""
