"""The boundary: what a graph is made of, checked once and made read-only, so that nothing is checked again inside."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from pegfan._arrays import FloatArray, IntArray, cast, freeze
from pegfan._checks import as_array, check_class_names, check_numbers, shown
from pegfan._limits import check_memory
from pegfan._matrices import transposed
from pegfan.graph.edges import Joined
from pegfan.graph.splits import are_known
from pegfan.metrics import METRICS

_UNSEEN = 1000
"""How many classes there may be that no node has, besides one per node: class numbers size the matrices of a model."""


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    """A vector of the objects as they are, even where NumPy would see rows or convert to strings."""
    return np.fromiter(values, dtype=object)


def _canonical_csr(matrix: Any, what: str, dtype: Any) -> csr_array:
    """Return an independent, read-only CSR copy: sorted, duplicates summed, zeros dropped, entries finite."""
    if matrix.ndim != 2:
        raise ValueError(f"{what} must have 2 dimensions, got shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold real numbers, got dtype {matrix.dtype}")
    check_memory(8.0 * (max(matrix.shape) + 1), f"{what} of shape {matrix.shape}")
    try:
        # Cast first: small integers would wrap around in the sum of duplicates. True + True is True in SciPy.
        copied = matrix.copy() if matrix.dtype.kind == "b" else cast(matrix, dtype)
        if hasattr(copied, "check_format"):
            copied.check_format()  # in full: an index out of range would make SciPy's C++ code crash
        if hasattr(copied, "indptr") and (copied.indptr[1:] < copied.indptr[:-1]).any():
            raise ValueError("indptr decreases")  # SciPy does not look where nothing is stored
        csr = csr_array(csr_array(copied), dtype=dtype)
        csr.check_format()
    except ValueError as error:
        raise ValueError(f"{what} is not a valid sparse matrix: {error}") from error
    csr.sum_duplicates()
    csr.eliminate_zeros()
    index = np.int32 if max(*csr.shape, csr.nnz) <= np.iinfo(np.int32).max else np.int64
    csr.indices, csr.indptr = csr.indices.astype(index, copy=False), csr.indptr.astype(index, copy=False)
    _require(np.isfinite(csr.data), csr, what, "is not finite")
    freeze(csr.data, csr.indices, csr.indptr)
    return csr


def _require(good: NDArray[np.bool_], csr: csr_array, what: str, complaint: str) -> None:
    if not good.all():
        k = int(good.argmin())
        i = int(np.searchsorted(csr.indptr, k, side="right")) - 1
        raise ValueError(f"{what}[{i}, {csr.indices[k]}] = {csr.data[k]} {complaint}")


def check_adjacency(adjacency: Any, what: str = "adjacency") -> csr_array:
    """The matrix of edges, square and without negative entries."""
    if isinstance(adjacency, Joined):
        csr = adjacency.matrix
        if not adjacency.finite:
            _require(np.isfinite(csr.data), csr, what, "is not finite")
        freeze(csr.data, csr.indices, csr.indptr)
        return csr
    if not issparse(adjacency):
        if not isinstance(adjacency, Sequence) and not hasattr(adjacency, "__array__"):
            raise TypeError(
                f"{what} must be a SciPy sparse matrix or a 2-D array, got {type(adjacency).__name__}; "
                "see also Graph.from_edges, from_networkx, from_pyg and from_pygsp"
            )
        adjacency = csr_array(cast(check_numbers(adjacency, what, None, None), np.float64))
    csr = _canonical_csr(adjacency, what, np.float64)
    if csr.shape[0] != csr.shape[1] or csr.shape[0] == 0:
        raise ValueError(f"{what} must be square with at least one node, got shape {csr.shape}")
    _require(csr.data >= 0, csr, what, "is negative; weights must be 0 (no edge) or more")
    return csr


def check_edge_matrices(matrices: Any, adjacency: csr_array, directed: bool) -> dict[str, csr_array]:
    """Other adjacency matrices over the same nodes, by name."""
    if not isinstance(matrices, Mapping):
        raise TypeError(f"edge_matrices must be a mapping of names to matrices, got {type(matrices).__name__}")
    checked = {}
    for name, matrix in matrices.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"the names of edge_matrices must be texts, got {shown(name)}")
        what = f"edge_matrices[{name!r}]"
        csr = check_adjacency(matrix, what)
        _check_rows(csr.shape[0], adjacency.shape[0], what)
        if not directed and not (isinstance(matrix, Joined) and matrix.symmetric):
            check_directed(False, csr, what)
        if np.array_equal(csr.indptr, adjacency.indptr) and np.array_equal(csr.indices, adjacency.indices):
            csr.indptr, csr.indices = adjacency.indptr, adjacency.indices  # other weights of the same edges, held once
        checked[name] = csr
    return checked


def check_edge_kinds(kinds: Any, matrices: Mapping[str, csr_array]) -> tuple[str, ...]:
    """The names of those matrices that are kinds of edges."""
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise TypeError(f"edge_kinds must be a sequence of names, got {shown(kinds)}")
    names = tuple(kinds)
    for kind in names:
        if kind not in matrices:
            raise ValueError(
                f"edge_kinds names {shown(kind)}, which is not among the edge_matrices: {', '.join(matrices)}"
            )
    _require_distinct(names, "edge_kinds")
    return names


def check_directed(directed: bool | None, adjacency: csr_array, what: str = "adjacency") -> bool:
    """Whether edges have a direction, which only a symmetric matrix may do without."""
    if directed is not None and not isinstance(directed, bool | np.bool_):
        raise TypeError(f"directed must be True, False or None, got {shown(directed)}")
    if directed:
        return True
    across = transposed(adjacency)
    if all(np.array_equal(getattr(adjacency, part), getattr(across, part)) for part in ("indptr", "indices", "data")):
        return False
    odd = (adjacency - adjacency.T).tocoo()
    if directed is None or odd.nnz == 0:
        return bool(odd.nnz)
    i, j = int(odd.coords[0][0]), int(odd.coords[1][0])
    raise ValueError(
        f"directed=False needs a symmetric {what}, but [{i}, {j}] = {adjacency[i, j]} and [{j}, {i}] = "
        f"{adjacency[j, i]}; use directed=True, and .symmetrize() on the result for an undirected graph"
    )


def _check_rows(rows: int, n: int, what: str) -> None:
    if rows != n:
        raise ValueError(f"{what} has {rows} rows, but the graph has {n} nodes")


def check_features(features: Any, n: int) -> Any:
    """One row of numbers per node, dense or sparse."""
    array = features if issparse(features) else as_array(features, "features")
    if array.ndim == 1:
        raise ValueError(
            f"features must have 2 dimensions, got shape {array.shape}; use features.reshape(-1, 1) for a single column"
        )
    array = array if issparse(array) else check_numbers(array, "features", None, None)
    dtype = np.float32 if array.dtype.char in "ef" else np.float64
    checked = _canonical_csr(array, "features", dtype) if issparse(array) else _finite_copy(array, "features", dtype)
    _check_rows(checked.shape[0], n, "features")
    return checked


def column_names(features: Any) -> list[str] | None:
    """Return the names that a data frame gives its columns; mere numbers are none."""
    columns = getattr(features, "columns", None)
    names = list(columns) if isinstance(columns, Iterable) else []
    return None if names == list(range(len(names))) else [str(name) for name in names]


def check_feature_names(names: Any, features: Any) -> tuple[str, ...]:
    """One name per column of the features."""
    if features is None:
        raise ValueError("feature_names are given, but no features")
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a sequence of strings, got {type(names).__name__}")
    texts = tuple(names)
    for name in texts:
        if not isinstance(name, str):
            raise TypeError(f"feature_names must be strings, got {shown(name)}")
    if len(texts) != features.shape[1]:
        raise ValueError(f"feature_names has {len(texts)} names, but features has {features.shape[1]} columns")
    _require_distinct(texts, "feature_names")
    return tuple(map(str, texts))  # of NumPy's strings too


def check_things(things: Any, n: int, truth: Any) -> NDArray[np.bool_] | None:
    """Which nodes are of another kind than those that are asked about; None where none are."""
    array = as_array(things, "things")
    if array.dtype != np.bool_ or array.shape != (n,):
        raise ValueError(f"things must be {n} booleans, one per node, got {array.dtype} of shape {array.shape}")
    if truth is not None and (array & are_known(truth)).any():
        raise ValueError("things are nodes that nothing is said of, and some of these have a label")
    if not array.any():
        return None
    array = array.copy()
    freeze(array)
    return array


def check_positions(positions: Any, n: int) -> FloatArray:
    """Points of the plane or of space, one per node."""
    array = check_numbers(positions, "positions", None, None)
    _check_rows(len(array), n, "positions")
    if array.shape[1] not in (2, 3):
        raise ValueError(f"positions must have 2 or 3 columns, got {array.shape[1]}")
    return _finite_copy(array, "positions", np.float64)


def _finite_copy(array: NDArray[Any], what: str, dtype: Any) -> NDArray[Any]:
    copied = np.ascontiguousarray(cast(array, dtype))
    bad = ~np.isfinite(copied)
    if bad.any():
        i, j = (int(k) for k in np.unravel_index(bad.argmax(), bad.shape))
        raise ValueError(f"{what}[{i}, {j}] = {copied[i, j]} is not finite (row {i}, column {j})")
    freeze(copied)
    return copied


def check_names(names: Any, what: str, n: int | None = None) -> NDArray[Any]:
    """Distinct names, of the nodes or of the classes."""
    if isinstance(names, np.ndarray):
        array = names if _cannot_change(names) else np.array(names)
    elif isinstance(names, Sequence) and not isinstance(names, str | bytes):
        cut = any(isinstance(name, str) and name.endswith("\x00") for name in names)  # by NumPy
        uniform = {type(name) for name in names} in ({str}, {int}) and not cut
        array = np.array(names) if uniform else _objects(names)
    else:
        array = np.array(as_array(names, what))
    if array.ndim != 1:
        raise ValueError(f"{what} must have 1 dimension, got shape {array.shape}")
    if n is not None:
        _check_rows(len(array), n, what)
    else:
        check_class_names(array.tolist())
    if array.dtype.kind not in "USiu" or not (array[1:] > array[:-1]).all():  # what is sorted differs
        _require_distinct(array.tolist(), what)
    freeze(array)
    return array


def _cannot_change(array: NDArray[Any]) -> bool:
    """Whether nobody can write into the memory of an array: what the readers make need not be copied."""
    return not array.flags.writeable and (
        array.base is None or (isinstance(array.base, np.ndarray) and _cannot_change(array.base))
    )


def _require_distinct(names: Iterable[Any], what: str) -> None:
    seen = set()
    for name in names:
        try:
            repeated = name in seen
        except TypeError:
            raise TypeError(f"{what} must be hashable, got {shown(name)}") from None
        if repeated:
            raise ValueError(f"{what} must be distinct, but {shown(name)} occurs more than once")
        seen.add(name)


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float | np.floating) and bool(np.isnan(label)))


def check_labels(values: Any, n: int, class_names: NDArray[Any] | None) -> tuple[IntArray, NDArray[Any] | None]:
    """Class numbers, −1 for unknown ones, and the names of the classes where there are any."""
    array = as_array(values, "labels")
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = _objects(values)  # among strings, NumPy would spell a missing label "nan"
    if array.ndim != 1:
        raise ValueError(f"labels must have 1 dimension, got shape {array.shape}")
    _check_rows(len(array), n, "labels")
    if array.dtype.kind in "USTO":
        array, class_names = _encode(array.astype(object), class_names)
    codes = _integer_labels(array)
    if class_names is not None and codes.max() >= len(class_names):
        raise ValueError(
            f"labels go up to {codes.max()}, but there are only {len(class_names)} class_names; "
            "name every class, or give class_names=None"
        )
    freeze(codes)
    return codes, class_names


def metric_problem(metric: str, numeric: bool) -> str:
    """Say that a metric is for classes where there are numbers, or the other way round, and which ones are not."""
    there, needed = ("numbers", "classes") if numeric else ("classes", "numbers")
    fitting = " or ".join(name for name, other in METRICS.items() if other.numbers == numeric)
    other = "" if numeric else ", or read the labels as numbers (label_kind='numbers')"
    return f"{METRICS[metric].words} is for {needed}, and what is to be predicted are {there}; choose {fitting}{other}"


def check_targets(values: Any, n: int, labels: Any, class_names: Any) -> FloatArray:
    """Numbers to predict, NaN for unknown ones."""
    if labels is not None or class_names is not None:
        raise ValueError("a graph has labels, which are classes, or targets, which are numbers; give one of them")
    array = as_array(values, "targets")
    if array.dtype.kind == "O":  # None among numbers
        try:
            array = np.array([np.nan if _is_missing(value) else float(value) for value in array.tolist()])
        except (TypeError, ValueError) as error:
            raise TypeError(f"targets must be numbers, NaN or None where they are not known: {error}") from None
    array = cast(check_numbers(array, "targets", None), np.float64)
    _check_rows(len(array), n, "targets")
    wrong = np.isinf(array)
    if wrong.any():
        raise ValueError(f"targets[{wrong.argmax()}] = {array[wrong.argmax()]} is not finite; NaN is for unknown ones")
    copied = np.array(array)
    freeze(copied)
    return copied


def _encode(labels: NDArray[Any], class_names: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Turn objects into class numbers, NaN for missing ones; numbers with gaps are kept."""
    missing = np.fromiter(map(_is_missing, labels), dtype=bool, count=len(labels))
    codes = np.full(len(labels), np.nan)
    present = labels[~missing].tolist()
    try:
        if all(isinstance(label, numbers.Real) for label in present):
            codes[~missing] = [float(label) for label in present]
            return codes, class_names
        if class_names is None:
            class_names = check_names(sorted(set(present)), "class_names")
        number = {name: k for k, name in enumerate(class_names.tolist())}
        codes[~missing] = [number[label] for label in present]
    except TypeError as error:
        raise TypeError(f"labels must be numbers, or objects of one kind that sort: {error}") from error
    except OverflowError as error:
        raise ValueError(f"labels must be class numbers 0..k-1: {error}") from error
    except KeyError as error:
        raise ValueError(f"label {error.args[0]!r} is not among class_names") from error
    return codes, class_names


def _integer_labels(array: NDArray[Any]) -> IntArray:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"labels must be integers or strings, got dtype {array.dtype}")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, cast(array, np.float64))
    # Class numbers size the last layer of a model: a stray id among them must not get that far.
    wrong = (array < -1) | (array > _UNSEEN + len(array)) | (array != np.floor(array))
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"labels[{i}] = {array[i]} is not a class number 0..k-1, or -1 for no label; "
            "np.unique(labels, return_inverse=True)[1] numbers the classes"
        )
    return array.astype(np.int64)
