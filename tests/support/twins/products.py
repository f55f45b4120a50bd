"""The loops of pegfan._products."""

from __future__ import annotations

import numpy as np

from support.twins.hashing import _mix


def sparse_product(pointers, indices, data, B, out, first, last):
    for i in range(first, last):
        out[i] = 0
        for e in range(pointers[i], pointers[i + 1]):
            out[i] += data[e] * B[indices[e]]


def keep_entries(seed, threshold, mask):
    each = 64 if threshold == 32768 else 4
    blocks = np.arange(-(-len(mask) // each), dtype=np.uint64)
    numbers = _mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) + blocks)
    parts = numbers[:, None] >> np.arange(0, 64, 64 // each, dtype=np.uint64)
    kept = parts & np.uint64(1) if each == 64 else (parts & np.uint64(0xFFFF)) >= np.uint64(threshold)
    mask[:] = kept.reshape(-1)[: len(mask)]
