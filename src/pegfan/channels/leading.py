"""Leading vectors of symmetric operators, with the same bits on every machine and for every numbering of nodes.

A block of vectors is multiplied again and again and made orthonormal in between; a small eigenproblem then tells the
vectors apart. Sums over nodes are sums of integers, in whatever order they are taken, and everything else is done entry
by entry. The block starts from hashes of what nodes or columns are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan._arrays import FloatArray, IntArray
from pegfan._hashing import mix_all
from pegfan._matrices import as_matrix
from pegfan.channels._kept import part_of
from pegfan.channels._sums import order_free_product
from pegfan.channels.hops import hop_matrix
from pegfan.graph import Graph, check_graph
from pegfan.running import one_thread
from pegfan.trees import canonical_order

COUNT = 32
"""How many vectors there are."""
_SPARE = 8
"""Further ones in the block, so that the last ones that count are good, too."""
_ROUNDS = 8
_TERMS = 40_000_000
"""Entries that may be multiplied with a vector in all; larger matrices get fewer rounds, and two at least."""
_LOST = 1e-8
"""A vector whose square shrinks to this share, beside those in front of it, has nothing of its own."""
_SWEEPS = 30
_COLUMNS = 4096
"""Entries of every vector that are multiplied together."""


def principal_vectors(features: Any) -> FloatArray:
    """The leading right singular vectors of a matrix, one per column: at most 32, and at most its rank.

    The largest entry of every vector is positive; the vectors do not depend on the order of the matrix's rows.

    Examples
    --------
    >>> x = np.array([[3.0, 4.0], [6.0, 8.0], [0.0, 0.0]])
    >>> principal_vectors(x).round(12)
    array([[0.6],
           [0.8]])
    """
    features = as_matrix(features, "features")
    x = csr_array(features, dtype=np.float64)
    largest = float(np.abs(x.data).max(initial=0.0))
    if largest:
        x = csr_array((np.ldexp(x.data, -math.frexp(largest)[1]), x.indices, x.indptr), shape=x.shape)
    across = csr_array(x.T)
    vectors, values = leading_vectors(
        lambda block: order_free_product(across, order_free_product(x, block)), np.arange(x.shape[1]), 2 * x.nnz
    )
    return np.ascontiguousarray(vectors[:, : max(int((values > 1e-10 * values[0]).sum()), 1)])


def spectral_vectors(graph: Graph) -> FloatArray:
    """The eigenvectors of S of the symmetric graph whose values are the largest in size, 32 columns.

    There is a row per class of `pegfan.trees.canonical_order`: nodes that look alike share it. Entries have a mean
    square of one over the nodes. Where there are fewer vectors that look alike on nodes that do, the rest are zero.

    Examples
    --------
    >>> star = Graph.from_edges([[0, 1], [0, 2], [0, 3]])
    >>> spectral_vectors(star)[:, :3].round(3)
    array([[ 0.816, -0.816,  0.   ],
           [ 1.414,  1.414,  0.   ]])
    """
    check_graph(graph)
    found: FloatArray = part_of(graph, "spectral vectors", lambda: _spectral_vectors(graph), always=True)
    return found


def _spectral_vectors(graph: Graph) -> FloatArray:
    classes = canonical_order(graph).classes
    step = hop_matrix(graph, "S", "symmetric")
    vectors, _ = leading_vectors(lambda block: order_free_product(step, block), classes, step.nnz)
    first = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    first[classes[::-1]] = np.arange(graph.n)[::-1]
    return _signed(vectors[first]) * math.sqrt(graph.n)


def leading_vectors(
    apply: Callable[[FloatArray], FloatArray], keys: IntArray, terms: int
) -> tuple[FloatArray, FloatArray]:
    """Vectors of a symmetric operator, as columns, and their values, the largest in size first.

    Parameters
    ----------
    apply
        The operator, for a matrix of vectors.
    keys
        What entries of vectors are told apart by: those of equal keys begin equal.
    terms
        How many products one vector takes.
    """
    rounds = min(max(_TERMS // max(terms, 1), 2), _ROUNDS)
    with one_thread():  # small products: threads would wait for one another
        return _leading_vectors(apply, keys, rounds)


def _leading_vectors(
    apply: Callable[[FloatArray], FloatArray], keys: IntArray, rounds: int
) -> tuple[FloatArray, FloatArray]:
    start = _hashed(keys, min(COUNT + _SPARE, len(keys)))
    block = _orthonormal(start.copy(), start, twice=False)
    for left in reversed(range(rounds)):
        block = _orthonormal(_applied(apply, block), start, twice=not left)
    small = _dots(block, _applied(apply, block))
    values, turn = _eigen((small + small.T) / 2)
    kept = np.argsort(-np.abs(values), kind="stable")[:COUNT]
    vectors, whole = np.zeros((COUNT, len(keys))), np.zeros(COUNT)
    for row, weights in zip(block, turn[:, kept], strict=True):  # one after the other: a fixed order of terms
        vectors[: len(kept)] += weights[:, None] * row
    whole[: len(kept)] = values[kept]
    return _signed(np.ascontiguousarray(vectors.T)), whole


def _applied(apply: Callable[[FloatArray], FloatArray], block: FloatArray) -> FloatArray:
    return np.ascontiguousarray(apply(np.ascontiguousarray(block.T)).T)


def _hashed(keys: IntArray, count: int) -> FloatArray:
    """Numbers between -1 and 1, a row per vector."""
    places = np.asarray(keys, np.uint64) * np.uint64(64) + np.arange(1, count + 1, dtype=np.uint64)[:, None]
    bits = np.empty(places.size, np.uint64)
    mix_all(places.ravel(), bits)
    return (bits >> np.uint64(11)).astype(np.float64).reshape(places.shape) * 2.0**-52 - 1.0


def _orthonormal(block: FloatArray, start: FloatArray, twice: bool) -> FloatArray:
    """Orthonormal rows that span those of the block; where these have nothing of their own, those of the start."""
    lost = _orthogonalise(block)
    if twice or lost.any():
        block[lost] = start[lost]
        block[_orthogonalise(block)] = 0.0
    return block


def _orthogonalise(block: FloatArray) -> NDArray[np.bool_]:
    """Make rows orthonormal, by the Cholesky factor of their products; the rows that are lost become zero."""
    block /= _powers(block)
    gram = _dots(block, block)
    squares = gram.diagonal().copy()
    lost = np.zeros(len(block), np.bool_)
    for j in range(len(block)):
        lost[j] = gram[j, j] <= _LOST * squares[j]
        if lost[j]:
            block[j] = 0.0
            continue
        root = math.sqrt(gram[j, j])
        factors = gram[j, j + 1 :] / root
        gram[j + 1 :, j + 1 :] -= factors[:, None] * factors
        block[j] /= root
        for k, factor in enumerate(factors.tolist(), start=j + 1):
            block[k] -= factor * block[j]
    return lost


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """The products of the rows of two matrices.

    Entries are split into two whole numbers of so few bits that sums of their products are exact, whatever multiplies
    the matrices, and in whatever order.
    """
    n = a.shape[1]
    bits = (53 - n.bit_length()) // 2
    unit = 2.0**bits
    scales = [_powers(rows) / unit for rows in (a, b)]
    whole = np.zeros((3, len(a), len(b)))
    for start in range(0, n, _COLUMNS):
        (high, low), (top, rest) = (
            _split(rows[:, start : start + _COLUMNS] / scale, unit) for rows, scale in zip((a, b), scales, strict=True)
        )
        whole += high @ top.T, high @ rest.T + low @ top.T, low @ rest.T
    return np.asarray((whole[0] + whole[1] / unit + whole[2] / unit**2) * scales[0] * scales[1].T)


def _split(values: FloatArray, unit: float) -> tuple[FloatArray, FloatArray]:
    high = np.rint(values)
    return high, np.rint((values - high) * unit)


def _powers(rows: FloatArray) -> FloatArray:
    """A power of two above the largest entry of every row, as a column: products with it and its inverse are exact."""
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0.0, keepdims=True), 1e-200)
    return np.asarray(np.ldexp(1.0, np.frexp(largest)[1]))


def _eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The values and vectors of a small symmetric matrix, by Jacobi's rotations in a fixed order.

    Examples
    --------
    >>> values, vectors = _eigen(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(12)
    array([1., 3.])
    """
    a, turn = matrix.copy(), np.eye(len(matrix))
    for _ in range(_SWEEPS):
        if np.abs(a - np.diag(a.diagonal())).max(initial=0.0) <= 1e-15 * np.abs(a).max(initial=0.0):
            break
        for p in range(len(a)):
            for q in range(p + 1, len(a)):
                if a[p, q] != 0:
                    cosine, sine = _rotation(float(a[p, p]), float(a[q, q]), float(a[p, q]))
                    for m in (a.T, a, turn.T):  # columns, then rows; and the columns of the vectors
                        m[p], m[q] = cosine * m[p] - sine * m[q], sine * m[p] + cosine * m[q]
    return a.diagonal().copy(), turn


def _rotation(first: float, second: float, across: float) -> tuple[float, float]:
    """The cosine and the sine of the turn after which two directions are apart."""
    ratio = (second - first) / across / 2  # infinite where there is next to nothing to turn
    tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    return cosine, tangent * cosine


def _signed(vectors: FloatArray) -> FloatArray:
    """Vectors whose largest entry is positive, the first of them where there are several."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
