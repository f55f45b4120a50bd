"""Loops of graph networks on CPUs, in C: dropout, ReLU with dropout, and attention over neighbours.

Everything is on one core; sums over neighbours are taken in their order. `room` is memory to work in.
"""

from __future__ import annotations

from pegfan._loops import Loop

drop = Loop("void model_drop(const T x[n], const uint8 mask[n], float64 scale, T out[n])")
"""Compute out = x · mask · scale, entry by entry."""

relu_drop = Loop("void model_relu_drop(const T x[n], const uint8 mask[n], float64 scale, T out[n])")
"""Compute out = max(x, 0) · mask · scale, entry by entry."""

relu_drop_back = Loop("void model_relu_drop_back(const T gradient[n], const T y[n], float64 scale, T out[n])")
"""Compute out = gradient · scale where y is not zero: what is kept and positive."""

unit_rows = Loop("void model_unit_rows(const int64 pointers[n + 1], const T data[_m], T out[_m])")
"""Compute out = the entries of a sparse matrix over the Euclidean norms of their rows, summed in float64."""

attention = Loop(
    "void model_attention(const int64 pointers[n + 1], const int32 indices[_m], const T source[_columns, heads], "
    "const T target[n, heads], float64 slope, T weights[_m, heads], T room[2, heads])"
)
"""Compute weights[e, k] = softmax of LeakyReLU(source[j, k] + target[i, k]) over entries e = (i, j) of row i."""

attend = Loop(
    "void model_attend(const int64 pointers[n + 1], const int32 indices[m], const T weights[m, heads], "
    "const T factors[m, factor_heads], const T z[_columns, heads, width], T out[n, heads, width])"
)
"""Compute out[i, k] = Σ_j weights[e, k] factors[e, k] z[j, k] over the entries e = (i, j) of row i; k is a head.

`factors` has one column for all heads, or one for each."""

attend_back = Loop(
    "void model_attend_back(const int64 pointers[n + 1], const int32 indices[m], const T source[_columns, heads], "
    "const T target[n, heads], float64 slope, const T weights[m, heads], const T factors[m, factor_heads], "
    "const T z[_columns, heads, width], const T gradient[n, heads, width], T by_z[_columns, heads, width], "
    "T by_source[_columns, heads], T by_target[n, heads], T room[_longest, heads])"
)
"""Add the gradients of `attend` by z, and by the two parts of the attention's scores, to their arrays of zeros.

`room` has a row for every entry of the longest row, and one more."""
