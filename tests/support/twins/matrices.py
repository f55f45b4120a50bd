"""The loops of pegfan._matrices."""

from __future__ import annotations

import itertools

import numpy as np


def _rows_of(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def move_rows(order, place, indptr, indices, data, out_ptr, out_indices, out_data):
    end = out_ptr[0] = 0
    for i, row in enumerate(order):
        columns, values = place[indices[indptr[row] : indptr[row + 1]]], data[indptr[row] : indptr[row + 1]]
        entries = np.argsort(columns, kind="stable")[np.count_nonzero(columns < 0) :]
        begin, end = end, end + len(entries)
        out_indices[begin:end], out_data[begin:end] = columns[entries], values[entries]
        out_ptr[i + 1] = end
    return end


def transpose(indptr, indices, data, out_ptr, out_indices, out_data):
    order = np.argsort(indices, kind="stable")
    out_indices[:], out_data[:] = _rows_of(indptr)[order], data[order]
    out_ptr[:] = np.searchsorted(indices[order], np.arange(len(out_ptr)))


def merge_rows(indptr, indices, data, other_ptr, other, other_data, largest, out_ptr, out, out_data):
    end = out_ptr[0] = 0
    for i, ((a, b), (c, d)) in enumerate(zip(itertools.pairwise(indptr), itertools.pairwise(other_ptr), strict=True)):
        ours, theirs = (dict(zip(columns, values, strict=True)) for columns, values in
                        ((indices[a:b], data[a:b]), (other[c:d], other_data[c:d])))  # fmt: skip
        for column in sorted(ours | theirs):
            both = ours.get(column, 0.0), theirs.get(column, 0.0)
            out[end], out_data[end] = column, max(both) if largest else sum(both)
            end += 1
        out_ptr[i + 1] = end
    return end


def drop_loops(indptr, indices, data):
    rows = _rows_of(indptr)
    kept = (indices != rows) & (data != 0)
    end = np.count_nonzero(kept)
    indices[:end], data[:end] = indices[kept], data[kept]
    indptr[:] = np.searchsorted(rows[kept], np.arange(len(indptr)))
    return end


def order_by_label(labels, first, members):
    members[:] = np.argsort(labels, kind="stable")
    first[:] = np.searchsorted(labels[members], np.arange(len(first)))


def holds_each_once(values, seen):
    return sorted(values) == list(range(len(seen)))


def number_by_appearance(labels, number, out):
    distinct, first = np.unique(labels, return_index=True)
    number[:] = -1
    number[distinct[np.argsort(first)]] = np.arange(len(distinct))
    out[:] = number[labels]
    return len(distinct)


def count_hashes(hashes, room):
    return len(np.unique(hashes))


def sort_hashes(hashes, ordered, order):
    order[:] = np.argsort(hashes, kind="stable")
    ordered[:] = hashes[order]
    return 0
