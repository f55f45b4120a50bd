"""The loops of pegfan.channels."""

from __future__ import annotations

import itertools
import math

import numpy as np


def _sums_of_integers(terms):
    """The sums of columns, over integers in units of a power of two; infinite ones are their largest term."""
    largest = np.abs(terms).max(axis=0, initial=0.0)
    finite = np.isfinite(largest)
    power = 62 - math.frexp(len(terms))[1] - np.frexp(np.where(finite, largest, 0.0))[1]
    half, rest = np.ldexp(1.0, power // 2), np.ldexp(1.0, power - power // 2)
    total = np.rint(np.where(finite, terms, 0.0) * half * rest).astype(np.int64).sum(axis=0)
    return np.where(finite, total / half / rest, largest)


def order_free_product(indptr, indices, data, x, out):
    for i, (begin, end) in enumerate(itertools.pairwise(indptr)):
        out[i] = _sums_of_integers(data[begin:end, None] * x[indices[begin:end]])
    return 0


def divide_rows(indptr, indices, data, degree, both, out):
    ours = np.repeat(degree, np.diff(indptr))
    out[:] = data / (ours * degree[indices] if both else ours)


def count_terms(indptr, indices, terms, most, out):
    for i, (begin, end) in enumerate(itertools.pairwise(indptr)):
        out[i] = min(terms[indices[begin:end]].sum(), most)
