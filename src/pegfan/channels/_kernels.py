"""Compiled loops of channels: products whose sums are those of integers."""

from __future__ import annotations

import math

import numpy as np

from pegfan._compiled import compiled

_BITS = 62  # of a sum, beside its sign


@compiled("order_free_product", error_model="numpy")
def product(indptr, indices, data, x, out):  # type: ignore[no-untyped-def]
    """Compute out = M x for a sparse M; every sum is taken over integers, in units of a power of two."""
    width = x.shape[1]
    largest, half, rest = np.empty(width), np.empty(width), np.empty(width)
    total = np.empty(width, np.int64)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        largest[:] = 0.0
        for e in range(start, stop):
            for t in range(width):
                largest[t] = max(largest[t], abs(data[e] * x[indices[e], t]))
        spare = math.frexp(float(stop - start))[1]
        for t in range(width):
            power = _BITS - spare - math.frexp(largest[t])[1]  # in two parts, for one alone may overflow
            half[t], rest[t] = math.ldexp(1.0, power // 2), math.ldexp(1.0, power - power // 2)
        total[:] = 0
        for e in range(start, stop):
            for t in range(width):
                total[t] += np.int64(np.rint(data[e] * x[indices[e], t] * half[t] * rest[t]))
        for t in range(width):
            out[i, t] = total[t] / half[t] / rest[t] if largest[t] < np.inf else largest[t]
    return 0


@compiled("sums", error_model="numpy")
def sums(indptr, data, out):  # type: ignore[no-untyped-def]
    """The sums of rows, as `product` with ones takes them."""
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        largest = 0.0
        for e in range(start, stop):
            largest = max(largest, abs(data[e]))
        if not largest < np.inf:
            out[i] = largest
            continue
        power = _BITS - math.frexp(float(stop - start))[1] - math.frexp(largest)[1]
        half, rest = math.ldexp(1.0, power // 2), math.ldexp(1.0, power - power // 2)
        total = np.int64(0)
        for e in range(start, stop):
            total += np.int64(np.rint(data[e] * half * rest))
        out[i] = total / half / rest


@compiled("divide_rows", error_model="numpy")
def divide_rows(indptr, indices, data, degree, both, out):  # type: ignore[no-untyped-def]
    """Divide every entry by the degree of its row, or by those of its row and its column."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = data[e] / (degree[i] * degree[indices[e]] if both else degree[i])


@compiled("count_terms")
def count_terms(indptr, indices, terms, most, out):  # type: ignore[no-untyped-def]
    """Add up integers along the rows of a matrix, each sum at most `most`."""
    for i in range(indptr.size - 1):
        total = 0
        for e in range(indptr[i], indptr[i + 1]):
            total += terms[indices[e]]
        out[i] = min(total, most)
