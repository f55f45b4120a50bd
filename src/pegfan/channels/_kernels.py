"""Loops of channels in C: products whose sums are those of integers."""

from __future__ import annotations

from pegfan._loops import Loop

product = Loop(
    "int64 order_free_product(const I indptr[n + 1], const I indices[_m], const float64 data[_m], "
    "const float64 x[_columns, width], float64 out[n, width])"
)
"""Compute out = M x for a sparse M; every sum is taken over integers, in units of a power of two."""

sums = Loop("void sums(const I indptr[n + 1], const float64 data[_m], float64 out[n])")
"""The sums of rows, as `product` with ones takes them."""

divide_rows = Loop(
    "void divide_rows(const I indptr[n + 1], const I indices[m], const float64 data[m], const float64 degree[n], "
    "int64 both, float64 out[m])"
)
"""Divide every entry by the degree of its row, or by those of its row and its column."""

count_terms = Loop(
    "void count_terms(const I indptr[n + 1], const I indices[m], const int64 terms[_columns], int64 most, int64 out[n])"
)
"""Add up integers along the rows of a matrix, each sum at most `most`."""
