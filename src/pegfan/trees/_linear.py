"""Compiled linear algebra of the tree builders, with the same bits on every machine.

Every sum has a fixed order, and nothing is left to a compiler or a library: no fast-math, no fused multiply-add, no
BLAS or LAPACK, and of functions only the square root, which IEEE 754 rounds exactly. Blocks of vectors are C-ordered,
one row per node; loops over columns are vectorised, which changes no sum.
"""

from __future__ import annotations

import numpy as np

from pegfan._compiled import compiled
from pegfan._hashing import mix

_EPS = 2.0**-52


@compiled("fixed_product", error_model="numpy")
def product(indptr, indices, data, x, out):  # type: ignore[no-untyped-def]
    """Compute out = M x for a sparse M in CSR form; sums go along its rows."""
    width = x.shape[1]
    total = np.empty(width)
    for i in range(indptr.size - 1):
        for t in range(width):
            total[t] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value, j = data[e], indices[e]
            for t in range(width):
                total[t] += value * x[j, t]
        for t in range(width):
            out[i, t] = total[t]


@compiled("add_outer", error_model="numpy")
def add_outer(scale, factor, x, out):  # type: ignore[no-untyped-def]
    """Add factor · scale scaleᵀ x to out."""
    n, width = x.shape
    total = np.zeros(width)
    for i in range(n):
        for t in range(width):
            total[t] += scale[i] * x[i, t]
    for i in range(n):
        for t in range(width):
            out[i, t] += factor * scale[i] * total[t]
    return 0


@compiled("combine", error_model="numpy")
def combine(a, ax, b, x, c, before, out):  # type: ignore[no-untyped-def]
    """Compute out = a ax + b x + c before."""
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[i, t] = a * ax[i, t] + b * x[i, t] + c * before[i, t]


@compiled("gram", error_model="numpy")
def gram(x, y, out):  # type: ignore[no-untyped-def]
    """Compute out = xᵀ y, where that is symmetric: its upper half, mirrored. Four rows at a time, added in order."""
    n, width = x.shape
    out[:] = 0.0
    i = 0
    while i + 4 <= n:
        for s in range(width):
            a, b, c, d = x[i, s], x[i + 1, s], x[i + 2, s], x[i + 3, s]
            for t in range(s, width):
                out[s, t] = out[s, t] + a * y[i, t] + b * y[i + 1, t] + c * y[i + 2, t] + d * y[i + 3, t]
        i += 4
    while i < n:
        for s in range(width):
            a = x[i, s]
            for t in range(s, width):
                out[s, t] += a * y[i, t]
        i += 1
    for s in range(width):
        for t in range(s):
            out[s, t] = out[t, s]


@compiled("rotate", error_model="numpy")
def rotate(x, m, out):  # type: ignore[no-untyped-def]
    """Compute out = x m for a small m. Four columns of x at a time, added in order."""
    rows, width = m.shape
    total = np.empty(width)
    for i in range(x.shape[0]):
        for t in range(width):
            total[t] = 0.0
        s = 0
        while s + 4 <= rows:
            a, b, c, d = x[i, s], x[i, s + 1], x[i, s + 2], x[i, s + 3]
            for t in range(width):
                total[t] = total[t] + a * m[s, t] + b * m[s + 1, t] + c * m[s + 2, t] + d * m[s + 3, t]
            s += 4
        while s < rows:
            a = x[i, s]
            for t in range(width):
                total[t] += a * m[s, t]
            s += 1
        for t in range(width):
            out[i, t] = total[t]


@compiled("row_sums", error_model="numpy")
def row_sums(indptr, data, out):  # type: ignore[no-untyped-def]
    """Sum the entries of every row."""
    for i in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e]
        out[i] = total


@compiled("scale_rows", error_model="numpy")
def scale_rows(x):  # type: ignore[no-untyped-def]
    """Give the rows length one, in place; rows of zeros stay."""
    for i in range(x.shape[0]):
        total = 0.0
        for t in range(x.shape[1]):
            total += x[i, t] * x[i, t]
        if total > 0.0:
            norm = np.sqrt(total)
            for t in range(x.shape[1]):
                x[i, t] /= norm


@compiled("column_norms", error_model="numpy")
def column_norms(x, out):  # type: ignore[no-untyped-def]
    """Compute the lengths of the columns."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[t] += x[i, t] * x[i, t]
    for t in range(x.shape[1]):
        out[t] = np.sqrt(out[t])


@compiled("fill")
def fill(x, salt, only):  # type: ignore[no-untyped-def]
    """Put numbers between −1 and 1, hashes of their places, into the columns for which only[t] is true."""
    width = x.shape[1]
    for i in range(x.shape[0]):
        for t in range(width):
            if only[t]:
                bits = mix(mix(np.uint64(salt)) + np.uint64(i * width + t)) >> np.uint64(12)
                x[i, t] = np.float64(bits) * 2.0**-51 - 1.0


@compiled("orthonormal", error_model="numpy")
def orthonormal(g, r, lost):  # type: ignore[no-untyped-def]
    """From the Gram matrix g of some columns x, an upper r such that those of x r are orthonormal.

    r is the inverse of g's transposed Cholesky factor. Columns that depend on those before them become zero, and are
    marked in `lost`; the result is their number.
    """
    width = g.shape[0]
    low = np.zeros((width, width))
    r[:] = 0.0
    count = 0
    for j in range(width):
        rest = g[j, j]
        for k in range(j):
            rest -= low[j, k] * low[j, k]
        lost[j] = not rest > 1e-12 * g[j, j]
        if lost[j]:
            count += 1
            continue
        low[j, j] = np.sqrt(rest)
        for i in range(j + 1, width):
            value = g[i, j]
            for k in range(j):
                value -= low[i, k] * low[j, k]
            low[i, j] = value / low[j, j]
    for j in range(width):
        if lost[j]:
            continue
        r[j, j] = 1.0 / low[j, j]
        for i in range(j - 1, -1, -1):
            if not lost[i]:
                total = 0.0
                for k in range(i + 1, j + 1):
                    total += low[k, i] * r[k, j]
                r[i, j] = -total / low[i, i]
    return count


@compiled("symmetric_eigen", error_model="numpy")
def symmetric_eigen(a, values, vectors):  # type: ignore[no-untyped-def]
    """The eigenvalues of a small symmetric matrix, largest first, and its eigenvectors in columns.

    Reflections bring it to three diagonals (Householder), rotations to one (QL with implicit shifts).
    """
    n = a.shape[0]
    q, beside = vectors, np.zeros(n)
    q[:] = a
    _three_diagonals(q, values, beside)
    for first in range(n):
        for _ in range(100):  # two or three rounds do
            last = first
            while last < n - 1 and abs(beside[last]) > _EPS * (abs(values[last]) + abs(values[last + 1])):
                last += 1
            if last == first:
                break
            _shifted_rotations(values, beside, q, first, last)
    for i in range(n - 1):
        best = i
        for j in range(i + 1, n):
            if values[j] > values[best]:
                best = j
        values[i], values[best] = values[best], values[i]
        for k in range(n):
            q[k, i], q[k, best] = q[k, best], q[k, i]
    return 0


@compiled(error_model="numpy")
def _three_diagonals(q, diagonal, beside):  # type: ignore[no-untyped-def]
    """Find T = Qᵀ q Q of three diagonals, the middle one and beside[i] = T[i, i + 1]; Q takes the place of q."""
    n = q.shape[0]
    a = q.copy()
    q[:] = 0.0
    for i in range(n):
        q[i, i] = 1.0
    v, p = np.empty(n), np.empty(n)
    for k in range(n - 2):
        size = 0.0
        for i in range(k + 1, n):
            size += a[i, k] * a[i, k]
        rest = size - a[k + 1, k] * a[k + 1, k]
        if not rest > _EPS * _EPS * size:
            continue
        pivot = -np.sqrt(size) if a[k + 1, k] >= 0.0 else np.sqrt(size)
        for i in range(k + 1, n):
            v[i] = a[i, k]
        v[k + 1] -= pivot
        half = size - pivot * a[k + 1, k]  # vᵀv / 2: the reflection is I − v vᵀ / half
        inner = 0.0
        for i in range(k + 1, n):
            total = 0.0
            for j in range(k + 1, n):
                total += a[i, j] * v[j]
            p[i] = total / half
            inner += v[i] * p[i]
        shift = inner / (half + half)
        for i in range(k + 1, n):
            p[i] -= shift * v[i]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                a[i, j] -= v[i] * p[j] + p[i] * v[j]
        a[k + 1, k] = a[k, k + 1] = pivot
        for i in range(n):
            total = 0.0
            for j in range(k + 1, n):
                total += q[i, j] * v[j]
            total /= half
            for j in range(k + 1, n):
                q[i, j] -= total * v[j]
    for i in range(n):
        diagonal[i] = a[i, i]
        beside[i] = a[i + 1, i] if i + 1 < n else 0.0


@compiled(error_model="numpy")
def _shifted_rotations(d, e, q, first, last):  # type: ignore[no-untyped-def]
    """One round of QL on the rows first to last of three diagonals: rotations from below, by Wilkinson's shift."""
    gap = (d[first + 1] - d[first]) / (2.0 * e[first])
    root = np.sqrt(gap * gap + 1.0)
    g = d[last] - d[first] + e[first] / (gap + (root if gap >= 0.0 else -root))
    sine, cosine, moved = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = sine * e[i], cosine * e[i]
        length = np.sqrt(f * f + g * g)
        e[i + 1] = length
        if length == 0.0:  # it falls apart here
            d[i + 1] -= moved
            e[last] = 0.0
            return
        sine, cosine = f / length, g / length
        g = d[i + 1] - moved
        mixed = (d[i] - g) * sine + 2.0 * cosine * b
        moved = sine * mixed
        d[i + 1] = g + moved
        g = cosine * mixed - b
        for k in range(q.shape[0]):
            x, y = q[k, i], q[k, i + 1]
            q[k, i + 1] = sine * x + cosine * y
            q[k, i] = cosine * x - sine * y
    d[first] -= moved
    e[first] = g
    e[last] = 0.0
