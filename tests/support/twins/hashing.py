"""The loops of pegfan._hashing."""

from __future__ import annotations

import numpy as np

_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * _A
    x = (x ^ (x >> np.uint64(27))) * _B
    return x ^ (x >> np.uint64(31))


def mix_all(values, out):
    out[:] = _mix(values)


def hash_rows(rows, indptr, indices, bits, with_self, out):
    terms = _mix(bits ^ _mix(indices.astype(np.uint64) + _B))
    for k, i in enumerate(rows):
        begin, end = indptr[i : i + 2]
        own = [_mix(bits[begin] ^ _mix(np.uint64(i) + _B))] if with_self and begin < end else []
        out[k] = _mix(np.sum([*terms[begin:end], *own], dtype=np.uint64))


def hash_dense_rows(x, out):
    values = x.astype(np.float64)
    terms = _mix(values.view(np.uint64) ^ _mix(np.arange(x.shape[1], dtype=np.uint64) + _B))
    out[:] = _mix(np.where(values != 0, terms, np.uint64(0)).sum(axis=1, dtype=np.uint64))


def fold_words(words, lanes):
    for i, word in enumerate(words):
        lane = (lanes[i % 8] ^ word) * _A
        lanes[i % 8] = lane ^ (lane >> np.uint64(32))
