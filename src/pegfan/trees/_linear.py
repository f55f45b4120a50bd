"""Linear algebra of the tree builders, in C, with the same bits on every machine.

Every sum has a fixed order, and nothing is left to a compiler or a library: no fast-math, no fused multiply-add, no
BLAS or LAPACK, and of functions only the square root, which IEEE 754 rounds exactly. Blocks of vectors are C-ordered,
one row per node; loops over columns are vectorised, which changes no sum.
"""

from __future__ import annotations

from pegfan._loops import Loop

add_outer = Loop("int64 add_outer(const float64 scale[n], float64 factor, const float64 x[n, d], float64 out[n, d])")
"""Add factor · scale scaleᵀ x to out."""

combine = Loop(
    "void combine(float64 a, const float64 ax[n, d], float64 b, const float64 x[n, d], float64 c,"
    " const float64 before[n, d], float64 out[n, d])"
)
"""Compute out = a ax + b x + c before."""

gram = Loop("void gram(const float64 x[n, d], const float64 y[n, d], float64 out[d, d])")
"""Compute out = xᵀ y, where that is symmetric: its upper half, mirrored. Rows are added in order."""

rotate = Loop("void rotate(const float64 x[n, rows], const float64 m[rows, d], float64 out[n, d])")
"""Compute out = x m for a small m. Columns of x are added in order."""

row_sums = Loop("void row_sums(const I indptr[n + 1], const float64 data[_m], float64 out[n])")
"""Sum the entries of every row of a sparse matrix."""

scale_rows = Loop("void scale_rows(float64 x[n, d])")
"""Give the rows length one, in place; rows of zeros stay."""

column_norms = Loop("void column_norms(const float64 x[n, d], float64 out[d])")
"""Compute the lengths of the columns."""

fill = Loop("void fill(float64 x[n, d], int64 salt, const uint8 only[d])")
"""Put numbers between −1 and 1, hashes of their places, into the columns for which only[t] is true."""

orthonormal = Loop("int64 orthonormal(const float64 g[d, d], float64 r[d, d], uint8 lost[d])")
"""From the Gram matrix g of some columns x, an upper r such that those of x r are orthonormal.

r is the inverse of g's transposed Cholesky factor. Columns that depend on those before them become zero, and are
marked in `lost`; the result is their number.
"""

symmetric_eigen = Loop("int64 symmetric_eigen(const float64 a[n, n], float64 values[n], float64 vectors[n, n])")
"""The eigenvalues of a small symmetric matrix, largest first, and its eigenvectors in columns.

Reflections bring it to three diagonals (Householder), rotations to one (QL with implicit shifts).
"""
