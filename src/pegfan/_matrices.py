"""Sparse matrices and labels, moved and sorted by counting: a fixed time per entry, at any size.

Loops take the arrays of CSR matrices, whose two index arrays have one dtype; values are moved as plain bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from pegfan._checks import check_numbers, check_sparse
from pegfan._limits import check_memory
from pegfan._loops import Loop

__all__ = [
    "as_matrix",
    "by_label",
    "count_hashes",
    "csr_of",
    "drop_loops",
    "enough",
    "holds_each_once",
    "merged",
    "moved",
    "number_by_appearance",
    "sorted_hashes",
    "transposed",
]

_BITS = {4: np.uint32, 8: np.uint64}


def as_matrix(values: Any, what: str) -> Any:
    """Return a matrix of real numbers, sparse as it is or else a dense array; refuse anything else."""
    if issparse(values):
        check_sparse(values, what)
        return values
    matrix = check_numbers(values, what, None, None)
    if 0 in matrix.strides:  # it repeats itself, and claims more than it holds
        check_memory(2.0 * matrix.nbytes, what)
    return matrix


# ------------------------------------------------------------------------------------------------------- loops


move_rows = Loop(
    "int64 move_rows(const I order[n], const I place[_columns], const I indptr[_rows + 1], const I indices[_m], "
    "const W data[_m], I out_ptr[n + 1], I out_indices[_room], W out_data[_room])"
)
"""Rows in the order given, column j in place[j]; columns whose place is negative are left out."""

transpose = Loop(
    "void transpose(const I indptr[n + 1], const I indices[m], const W data[m], I out_ptr[columns + 1], "
    "I out_indices[m], W out_data[m])"
)
"""The transposed matrix, its columns in order."""

merge_rows = Loop(
    "int64 merge_rows(const I indptr[n + 1], const I indices[_m], const float64 data[_m], const I other_ptr[n + 1], "
    "const I other[_k], const float64 other_data[_k], int64 largest, I out_ptr[n + 1], I out[_room], "
    "float64 out_data[_room])"
)
"""The sum of two matrices of no negative entries, or their maximum; returns the number of entries."""

drop_loops = Loop("int64 drop_loops(I indptr[n + 1], I indices[_m], float64 data[_m])")
"""Take out the diagonal and zeros, in place; returns the number of entries that are left."""

order_by_label = Loop("void order_by_label(const I labels[n], I first[count + 1], I members[n])")
"""List the members of every label, in order: those of c are members[first[c]:first[c + 1]]."""

holds_each_once = Loop("int64 holds_each_once(const I values[n], uint8 seen[count])")
"""Whether values hold each of 0, ..., count - 1 once; `seen` holds zeros."""

number_by_appearance = Loop("int64 number_by_appearance(const I labels[n], I number[most], I out[n])")
"""Number labels below `most` in the order in which they first appear; returns how many there are."""

count_hashes = Loop("int64 count_hashes(uint64 hashes[n], uint64 room[n])")
"""Count distinct numbers; what both arrays hold afterwards is of no use."""

sort_hashes = Loop("int64 sort_hashes(const uint64 hashes[n], uint64 ordered[n], I order[n])")
"""Sort numbers; of equal ones, `order` has the first first."""


# ------------------------------------------------------------------------------------------------- what is made of them


def enough(result: Any) -> int:
    """What a loop returned; it is -1 where memory ran out."""
    if result is not None and result < 0:
        raise MemoryError("there is not enough memory for this graph")
    return int(result or 0)


def moved(matrix: csr_array, order: Any) -> csr_array:
    """The rows and columns of a square matrix in an order, or of some of its nodes; ``matrix[order][:, order]``.

    Examples
    --------
    >>> moved(csr_array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [0.0, 0.0, 4.0]]), [2, 0]).toarray()
    array([[4., 0.],
           [2., 0.]])
    """
    if matrix.dtype.itemsize not in _BITS:
        return _numbered(matrix, lambda places: moved(places, order))
    n, index = matrix.shape[0], matrix.indices.dtype
    rows = np.asarray(order, dtype=index)
    if len(rows) and rows.min() < 0:
        raise IndexError(f"there is no node {rows.min()}")
    place = np.full(n, -1, index)
    place[rows] = np.arange(len(rows), dtype=index)
    size = int((matrix.indptr[1:] - matrix.indptr[:-1])[rows].sum(dtype=np.int64))
    columns, values = np.empty(size, index), np.empty(size, matrix.dtype)
    pointers = np.empty(len(rows) + 1, index)
    given = (rows, place, matrix.indptr, matrix.indices, _bits(matrix.data))
    end = enough(move_rows(*given, pointers, columns, _bits(values)))
    return csr_of(values[:end], columns[:end], pointers, (len(rows), len(rows)), matrix.has_canonical_format)


def transposed(matrix: csr_array) -> csr_array:
    """The transposed matrix in CSR form.

    Examples
    --------
    >>> transposed(csr_array([[0.0, 1.0], [2.0, 3.0], [0.0, 4.0]])).toarray()
    array([[0., 2., 0.],
           [1., 3., 4.]])
    """
    if matrix.dtype.itemsize not in _BITS:
        return _numbered(matrix, transposed)
    pointers = np.empty(matrix.shape[1] + 1, matrix.indices.dtype)
    columns, values = np.empty_like(matrix.indices), np.empty_like(matrix.data)
    transpose(matrix.indptr, matrix.indices, _bits(matrix.data), pointers, columns, _bits(values))
    return csr_of(values, columns, pointers, matrix.shape[::-1], matrix.has_canonical_format)


def merged(matrix: csr_array, other: csr_array, largest: bool = False) -> csr_array:
    """The sum of two matrices without negative entries, or their maximum entry by entry.

    Examples
    --------
    >>> a, b = csr_array([[0.0, 1.0], [0.0, 2.0]]), csr_array([[0.0, 4.0], [3.0, 0.0]])
    >>> merged(a, b).toarray(), merged(a, b, largest=True).toarray()
    (array([[0., 5.],
           [3., 2.]]), array([[0., 4.],
           [3., 2.]]))
    """
    size, index = matrix.nnz + other.nnz, matrix.indices.dtype
    if size > np.iinfo(index).max:
        index = np.dtype(np.int64)
    pointers, columns, values = np.empty(matrix.shape[0] + 1, index), np.empty(size, index), np.empty(size)
    both = [array.astype(index, copy=False) for m in (matrix, other) for array in (m.indptr, m.indices)]
    given = (*both[:2], matrix.data, *both[2:], other.data, largest)
    end = merge_rows(*given, pointers, columns, values)
    return csr_of(values[:end].copy(), columns[:end].copy(), pointers, matrix.shape)


def by_label(labels: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The members of labels 0, ..., count − 1, one label after the other, and where each of these begins.

    Examples
    --------
    >>> by_label(np.array([1, 0, 1, 2, 0]), 3)
    (array([1, 4, 0, 2, 3]), array([0, 2, 4, 5]))
    """
    first, members = np.empty(count + 1, labels.dtype), np.empty(len(labels), labels.dtype)
    order_by_label(labels, first, members)
    return members, first


def sorted_hashes(hashes: NDArray[np.uint64], index: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """The places of hashes, the smallest first; in that order the number of each, and whether it is there again.

    Examples
    --------
    >>> order, number, again = sorted_hashes(np.array([7, 3, 7, 1], np.uint64), np.int32)
    >>> order.tolist(), number.tolist(), again.tolist()
    ([3, 1, 0, 2], [0, 1, 2, 2], [False, False, True, True])
    """
    ordered, order = np.empty_like(hashes), np.empty(len(hashes), index)
    enough(sort_hashes(hashes, ordered, order))
    new = np.ones(len(ordered) + 1, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:-1])
    return order, np.cumsum(new[:-1], dtype=index) - 1, ~(new[1:] & new[:-1])


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    """Values of four or eight bytes as integers, without a copy."""
    return values.view(_BITS[values.dtype.itemsize])


def _numbered(matrix: csr_array, change: Callable[[csr_array], csr_array]) -> csr_array:
    """Change a matrix whose values have another size: their places are moved in their stead."""
    places = csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    changed = change(places)
    return csr_array((matrix.data[changed.data], changed.indices, changed.indptr), shape=changed.shape)


def csr_of(values: Any, columns: Any, pointers: Any, shape: tuple[int, ...], canonical: bool = True) -> csr_array:
    """A CSR matrix of these very arrays, where SciPy would copy parts of larger ones.

    `canonical` says that rows are sorted and without repetitions, which SciPy then need not find out.
    """
    made = csr_array(shape, dtype=values.dtype)
    made.data, made.indices, made.indptr = values, columns, pointers
    made.has_canonical_format = canonical
    return made
