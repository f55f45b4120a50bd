"""The loops of pegfan._pairs."""

from __future__ import annotations

import numpy as np


def _cut(keys, bits):
    return (keys >> np.uint64(bits)).astype(np.int64), (keys & np.uint64(2**bits - 1)).astype(np.int64)


def pack_pairs(first, second, bits, both, keys):
    ends = np.stack([first, second]).astype(np.uint64)
    a, b = np.sort(ends, axis=0) if both else ends
    keys[:] = a << np.uint64(bits) | b


def drop_repeats(keys):
    distinct = np.unique(keys)
    keys[: len(distinct)] = distinct
    return len(distinct)


def count_loops(keys, bits):
    rows, columns = _cut(keys, bits)
    return np.count_nonzero(rows == columns)


def fill_rows(keys, bits, both, weights, indptr, indices, data, following):
    rows, columns = _cut(keys, bits)
    values = weights if len(weights) else np.ones(len(keys))
    if both:
        turned = rows != columns
        values = np.append(values, values[turned])
        rows, columns = np.append(rows, columns[turned]), np.append(columns, rows[turned])
    order = np.lexsort((columns, rows))
    indptr[:] = np.searchsorted(rows[order], np.arange(len(indptr)))
    indices[:], data[:] = columns[order], values[order]
