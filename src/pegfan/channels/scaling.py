"""What is done to features before channels are made of them: rows of sum one, columns on one scale, fewer columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, issparse

from pegfan._arrays import FloatArray
from pegfan._checks import check_choice, check_numbers, check_sparse
from pegfan._rows import l1_rows
from pegfan.channels._kept import part_of
from pegfan.channels._sums import order_free_product, order_free_sums
from pegfan.channels.leading import principal_vectors
from pegfan.graph import Graph, check_graph

SCALINGS = ("none", "l1", "columns", "principal")

_BLOCK = 4 * 2**20
"""Entries of dense features that are looked at together, in double precision."""
BAG_MOST = 20.0
"""Features that are not negative and nowhere above this are taken as a bag of words: raw values or rows' shares do."""


def scale(features: Any, scaling: str | FeatureScale | PrincipalColumns) -> Any:
    """Scale features: not at all, rows by the sums of their absolute values, or columns to one scale; or project them.

    A `FeatureScale` or `PrincipalColumns` treats the columns of other nodes alike.
    """
    if isinstance(scaling, (FeatureScale, PrincipalColumns)):
        return scaling.apply(features)
    if scaling in ("columns", "principal"):
        return (FeatureScale if scaling == "columns" else PrincipalColumns).of(features).apply(features)
    check_choice(scaling, "scaling", SCALINGS)
    return l1_rows(features) if scaling == "l1" else features


def is_bag(features: Any) -> bool:
    """Whether raw features, or rows divided by their sums, make sense as they are."""
    values = features.data if issparse(features) else features
    return bool(values.size == 0 or (values.min() >= 0 and values.max() <= BAG_MOST))


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """Columns brought to one scale: long tails by ``sign(x) log(1 + |x|)``, then full columns standardised.

    Columns that are mostly zero are not centred but divided by the root mean square of their other entries, so that
    words of a bag stay as they are and sparse features stay sparse. Centred columns of sparse features come last.

    Attributes
    ----------
    tail
        Which columns have a long tail.
    centre, scale
        What is taken off, and what a column is divided by.
    full
        Which columns are centred.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 2.0], [7.0, 0.0]])
    >>> FeatureScale.of(x).apply(x).round(3)
    array([[-1.342,  0.   ],
           [-0.447,  0.   ],
           [ 0.447,  1.   ],
           [ 1.342,  0.   ]], dtype=float32)
    """

    tail: NDArray[np.bool_]
    full: NDArray[np.bool_]
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, features: Any) -> Self:
        """The scale of a graph's features."""
        features = _check_columns(features)
        if issparse(features):
            x = csc_array(features).astype(np.float64)
            column = np.repeat(np.arange(x.shape[1]), np.diff(x.indptr))
            largest = np.zeros(x.shape[1])
            np.maximum.at(largest, column, np.abs(x.data))
            return cls(*_scale_of(x.data, column, x.indptr, np.diff(x.indptr), largest, max(x.shape[0], 1)))
        dense = np.asarray(features)
        rows, width = dense.shape
        step = max(_BLOCK // max(rows, 1), 1)
        parts = []
        for start in range(0, max(width, 1), step):
            columns = np.ascontiguousarray(dense[:, start : start + step].T, dtype=np.float64)
            counts = np.count_nonzero(columns, axis=1)
            ends = np.concatenate([[0], np.cumsum(counts)])
            column = np.repeat(np.arange(len(columns)), counts)
            largest = np.abs(columns).max(axis=1, initial=0.0)
            values = columns.ravel() if ends[-1] == columns.size else columns[columns != 0]
            parts.append(_scale_of(values, column, ends, counts, largest, max(rows, 1)))
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def apply(self, features: Any) -> Any:
        """The features of any graph with these columns, scaled."""
        features = _check_columns(features, len(self.scale))
        if not issparse(features):
            dense = np.asarray(features)
            out = np.empty(dense.shape, np.float32)
            step = max(_BLOCK // max(dense.shape[1], 1), 1)
            for start in range(0, len(dense), step):
                x = np.array(dense[start : start + step], dtype=np.float64)
                x[:, self.tail] = np.sign(x[:, self.tail]) * np.log1p(np.abs(x[:, self.tail]))
                out[start : start + step] = (x - self.centre) / self.scale
            return out
        x = csc_array(features, dtype=np.float64, copy=True)
        column = np.repeat(np.arange(x.shape[1]), np.diff(x.indptr))
        data = np.where(self.tail[column], np.sign(x.data) * np.log1p(np.abs(x.data)), x.data)
        x.data = data / self.scale[column]
        sparse, full = x[:, ~self.full], x[:, self.full].toarray() - (self.centre / self.scale)[self.full]
        return csr_array(hstack([sparse, csc_array(full)]), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class PrincipalColumns:
    """X V in place of X, with the leading right singular vectors V of a graph's features: at most 32 columns.

    For features with many columns, such as bags of words: boosting asks about single columns, and no single word says
    much.

    Attributes
    ----------
    vectors
        V, see `pegfan.channels.principal_vectors`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[3.0, 4.0], [6.0, 8.0], [0.0, 0.0]])
    >>> PrincipalColumns.of(x).apply(x)
    array([[ 5.],
           [10.],
           [ 0.]], dtype=float32)
    """

    vectors: FloatArray

    @classmethod
    def of(cls, features: Any) -> Self:
        """The principal columns of a graph's features."""
        return cls(principal_vectors(features))

    @classmethod
    def of_graph(cls, graph: Graph) -> Self:
        """The same, found once per graph."""
        check_graph(graph, needs="features")
        found: Self = part_of(graph, "principal columns", lambda: cls.of(graph.features), always=True)
        return found

    def apply(self, features: Any) -> Any:
        """The principal columns of any graph with these features."""
        features = _check_columns(features, len(self.vectors))
        return order_free_product(csr_array(features), self.vectors).astype(np.float32)


def _check_columns(features: Any, width: int | None = None) -> Any:
    """Features as a matrix of numbers with so many columns."""
    if not issparse(features):
        return check_numbers(features, "features", None, width)
    check_sparse(features, "features", None, width)
    return features


def _scale_of(
    values: FloatArray, column: Any, ends: Any, counts: Any, largest: FloatArray, rows: int
) -> tuple[Any, Any, Any, Any]:
    """The scale of columns whose entries other than zero are given, one column after another."""
    tail = largest > BAG_MOST
    data = np.where(tail[column], np.sign(values) * np.log1p(np.abs(values)), values) if tail.any() else values
    full = counts > rows / 2
    nowhere = np.zeros(len(values), np.int32)
    sums, squares = (order_free_sums(csr_array((w, nowhere, ends), shape=(len(counts), 1))) for w in (data, data**2))
    centre = np.where(full, sums / rows, 0.0)
    variance = np.where(full, squares / rows - centre**2, squares / np.maximum(counts, 1))
    flat = variance <= 1e-12 * np.maximum(squares / rows, 1e-300)  # a constant column says nothing
    return tail, full, centre, np.where(flat, 1.0, np.sqrt(np.maximum(variance, 0.0)))
