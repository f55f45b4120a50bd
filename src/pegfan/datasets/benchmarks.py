"""The public benchmarks as graphs, exactly as the paper's authors used them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from pegfan import measures
from pegfan._npz import read_npz
from pegfan.channels.scaling import l1_rows
from pegfan.datasets._pickles import read_array, read_csr, read_lists
from pegfan.datasets.download import fetch
from pegfan.datasets.registry import DATASETS, Dataset, find
from pegfan.graph import Graph, Split

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["info", "load", "names", "read_dataset", "table"]

_LARGEST_NPZ = 2**30
_ID = re.compile(rb"[0-9]{1,9}")
_EDGE = re.compile(rb"[0-9]{1,9}\t[0-9]{1,9}")
_COLUMNS = re.compile(rb"[0-9]{1,9}(,[0-9]{1,9})*")


def names() -> list[str]:
    """Return the names that :func:`load` knows.

    Examples
    --------
    >>> names()[:4]
    ['cora', 'citeseer', 'pubmed', 'texas']
    """
    return list(DATASETS)


def info(name: str) -> Dataset:
    """Return the card of a benchmark: its metric, licence, citation, files and what to know about it.

    Examples
    --------
    >>> info("tolokers").metric
    'roc_auc'
    >>> print(info("minesweeper"))
    minesweeper
    layout    heterophilous
    edges     undirected
    regime    heterophily
    metric    roc_auc
    licence   MIT
    citation  Platonov et al., A Critical Look at the Evaluation of GNNs under Heterophily: ...
    files     heterophilous-graphs/minesweeper.npz
    """
    return find(name)


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    directed: bool | None = None,
    normalize_features: bool = False,
    largest_component: bool = False,
    offline: bool | None = None,
) -> Graph:
    """Return a public benchmark with its ten splits, as the authors of the paper used it.

    Edges given more than once are merged and self loops kept. Cora, Citeseer and Pubmed are undirected; the
    six heterophilous sets of the paper are directed, though its text says otherwise. Citeseer's 15 nodes
    without label count as class 0, as they do everywhere. Features are float32, and sparse if they are bags
    of words.

    Parameters
    ----------
    name : str
        One of :func:`names`. Case, hyphens and underscores do not matter; ``"film"`` is ``"actor"``.
    root : path, optional
        Folder with the files, laid out as :func:`info` lists them; by default the one that ``PEGFAN_DATA``
        names. What is not there is taken from the cache, or downloaded into it: see
        :mod:`pegfan.datasets.download`.
    directed : bool, optional
        False joins two nodes wherever there is an arc either way. True gives the arcs as published: those of
        ``"chameleon-filtered-directed"`` for ``"chameleon-filtered"`` (and so for squirrel), an arc each way
        where no direction was published. By default as the authors used it.
    normalize_features : bool
        Divide each row of the features by the sum of its absolute values; zero rows stay zero.
    largest_component : bool
        Keep the largest weakly connected component only.
    offline : bool, optional
        True: never touch the network. By default what ``PEGFAN_OFFLINE`` says.

    Returns
    -------
    Graph
        Its metric is the one that the set is judged by.

    Raises
    ------
    ValueError
        If there is no such set, or a file is not the public one.
    OSError
        If a file is neither here nor to be had.

    Notes
    -----
    ``load("chameleon")`` gives ``Graph(n=2277, edges=36101, directed, features=2325 sparse, classes=5,
    splits=10)``.

    Examples
    --------
    >>> load("chamelion")
    Traceback (most recent call last):
    ValueError: there is no data set 'chamelion'; did you mean 'chameleon'? There are cora, citeseer, ...
    """
    dataset = find(name)
    if directed is not None and not isinstance(directed, bool | np.bool_):
        raise TypeError(f"directed must be True, False or None, got {directed!r}")
    if directed and f"{dataset.name}-directed" in DATASETS:
        dataset = DATASETS[f"{dataset.name}-directed"]
    graph = read_dataset(dataset, root, offline=offline)
    if directed is not None and directed != graph.directed:
        graph = graph.replace(directed=True) if directed else graph.symmetrize("max")
    if largest_component:
        graph = graph.largest_component()
    if normalize_features:
        graph = graph.replace(features=l1_rows(graph.features))
    return graph


def table(names: Iterable[str] | None = None, root: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Return the statistics of benchmarks: the upper part of the paper's Table III, and measures of their labels.

    Parameters
    ----------
    names : iterable of str, optional
        Names of benchmarks, which are downloaded if need be. By default all whose files are on this machine.
    root : path, optional
        As in :func:`load`.

    Returns
    -------
    DataFrame
        One row a set, indexed by name, with its ``nodes``, ``nonzeros`` of the adjacency, ``features``,
        ``density`` (nonzeros / nodes²), ``classes`` and ``regime``; its ``edge_homophily``,
        ``node_homophily``, ``adjusted_homophily`` and ``label_informativeness``; and the means of the
        cross-class neighbourhood similarity inside classes, ``ccns_within``, and between them,
        ``ccns_between``. ``attrs["missing"]`` says of each set that was left out which file it lacks.

    Examples
    --------
    >>> table([]).columns.tolist()[:6]
    ['nodes', 'nonzeros', 'features', 'density', 'classes', 'regime']
    """
    import pandas as pd

    rows, missing = {}, {}
    fetch([], root)  # a root that is no folder is a mistake, not a folder without data sets
    for dataset in map(find, DATASETS if names is None else names):
        try:
            graph = read_dataset(dataset, root, offline=True if names is None else None)
        except FileNotFoundError as error:
            missing[dataset.name] = str(error)
        else:
            rows[dataset.name] = _statistics(graph, dataset)
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(_STATISTICS))
    frame.attrs["missing"] = missing
    return frame.rename_axis("name")


_STATISTICS = (
    *("nodes", "nonzeros", "features", "density", "classes", "regime"),
    *("edge_homophily", "node_homophily", "adjusted_homophily", "label_informativeness"),
    *("ccns_within", "ccns_between"),
)


def _statistics(graph: Graph, dataset: Dataset) -> list[Any]:
    similarity = measures.ccns(graph)
    same = np.eye(len(similarity), dtype=bool)
    facts = {
        **graph.describe().to_dict(),
        "regime": dataset.regime,
        "ccns_within": similarity[same].mean(),
        "ccns_between": similarity[~same].mean(),
    }
    return [facts[name] for name in _STATISTICS]


# -------------------------------------------------------------------- the layouts


@dataclass(frozen=True)
class _Contents:
    """What the files of a data set hold, each already checked by itself."""

    edges: NDArray[np.int64]
    features: Any
    labels: NDArray[np.int64]
    splits: list[Split]


def read_dataset(dataset: Dataset, root: str | os.PathLike[str] | None = None, *, offline: bool | None = None) -> Graph:
    """Return the graph that the files of a registered data set describe; :func:`load` without its options."""
    found = fetch(dataset.files, root, offline=offline)
    paths = {file.role: path for file, path in zip(dataset.files, found, strict=True)}
    contents = _LAYOUTS[dataset.layout](paths, dataset)
    try:
        return Graph.from_edges(
            contents.edges,
            n=len(contents.labels),
            directed=dataset.directed,
            features=contents.features,
            labels=contents.labels,
            splits=contents.splits,
            metric=dataset.metric,
        )
    except (TypeError, ValueError) as error:
        where = os.path.commonpath([path.parent for path in found])
        raise ValueError(f"the files of {dataset.name} in {where} do not fit together: {error}") from error


def _read_planetoid(paths: Mapping[str, Path], dataset: Dataset) -> _Contents:
    lists = read_lists(paths["graph"])
    n = len(lists)
    x, tx = read_csr(paths["allx"]), read_csr(paths["tx"])
    y, ty = _one_hot(paths["ally"]), _one_hot(paths["ty"])
    index = _read_test_index(paths["index"], len(y), n)
    if (x.shape[0], tx.shape[0], tx.shape[1], ty.shape) != (len(y), len(index), x.shape[1], (len(index), y.shape[1])):
        raise ValueError(
            f"{paths['allx'].parent}: allx {x.shape}, ally {y.shape}, tx {tx.shape}, ty {ty.shape} and test.index "
            f"({len(index)}) of {dataset.name} do not fit together"
        )
    # Row k of the test files belongs to node index[k]. Citeseer's index has gaps: nodes without features and
    # label, which get the row of zeros put at the end.
    source = np.full(n, len(y) + len(index))
    source[: len(y)] = np.arange(len(y))
    source[index] = np.arange(len(y), len(y) + len(index))
    features = vstack([x, tx, csr_array((1, x.shape[1]), dtype=x.dtype)], format="csr")[source]
    labels = np.vstack([y, ty, np.zeros((1, y.shape[1]), dtype=y.dtype)])[source].argmax(axis=1)

    degrees = np.fromiter(map(len, lists.values()), dtype=np.int64, count=n)
    tails = np.repeat(np.fromiter(lists, dtype=np.int64, count=n), degrees)
    heads = np.fromiter(chain.from_iterable(lists.values()), dtype=np.int64, count=len(tails))
    return _Contents(np.column_stack([tails, heads]), features, labels, _read_splits(paths, n))


def _one_hot(path: Path) -> NDArray[Any]:
    array = read_array(path)
    if array.ndim != 2 or not array.shape[1] or not np.isin(array, (0, 1)).all() or (array.sum(axis=1) > 1).any():
        raise ValueError(f"{path} must hold one row a node with at most one 1 among 0s; it has shape {array.shape}")
    return array


def _read_test_index(path: Path, first: int, n: int) -> NDArray[np.int64]:
    index = _integers(_lines(path, _ID, "the number of a node"))
    if len(np.unique(index)) < len(index) or (index < first).any() or (index >= n).any():
        raise ValueError(f"{path} must hold distinct nodes among {first}..{n - 1}")
    return index


def _read_geom_gcn(paths: Mapping[str, Path], dataset: Dataset) -> _Contents:
    ids, rows, labels = _read_nodes(paths["nodes"])
    n = len(ids)
    if dataset.columns is None:
        features = _read_bits(paths["nodes"], rows)
    else:
        features = _read_columns(paths["nodes"], rows, dataset.columns)
    lines = _lines(paths["edges"], _EDGE, "two numbers of nodes with a tab between", header=b"node_id\tnode_id")
    edges = _integers(lines).reshape(-1, 2)
    outside = (edges >= n).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"{paths['edges']}, line {row + 2}: {edges[row].tolist()} is outside the nodes 0..{n - 1}")
    order = np.argsort(ids)
    return _Contents(edges, features[order], labels[order], _read_splits(paths, n))


def _read_nodes(path: Path) -> tuple[NDArray[np.int64], list[bytes], NDArray[np.int64]]:
    """Return the number of each node, its features as they are written, and its label."""
    lines = _split(path)
    if not lines[0].startswith(b"node_id\tfeature"):
        raise ValueError(f"{path}, line 1: the header should be node_id, feature and label, got {lines[0][:60]!r}")
    rows = [line.split(b"\t") for line in lines[1:]]
    for number, row in enumerate(rows, start=2):
        if len(row) != 3 or not _ID.fullmatch(row[0]) or not _ID.fullmatch(row[2]):
            raise ValueError(
                f"{path}, line {number}: expected a node, its features and its label with tabs between, "
                f"got {lines[number - 1][:60]!r}"
            )
    ids, labels = _integers([row[0] for row in rows]), _integers([row[2] for row in rows])
    wrong = np.flatnonzero(np.sort(ids) != np.arange(len(ids)))
    if len(wrong) or not len(ids):
        fault = f"node {wrong[0]} is missing or there twice" if len(wrong) else "there are none"
        raise ValueError(f"{path}: the nodes should be 0..n-1, each once; {fault}")
    return ids, [row[1] for row in rows], labels


def _read_bits(path: Path, rows: list[bytes]) -> csr_array:
    """Read rows like ``0,1,0``, all of one length, as a matrix of characters."""
    width = len(rows[0])
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    text = np.frombuffer(b"".join(row.ljust(width)[:width] for row in rows), dtype=np.uint8).reshape(len(rows), width)
    bits, commas = text[:, ::2], text[:, 1::2]
    good = (lengths == width) & ((bits | 1) == ord("1")).all(axis=1) & (commas == ord(",")).all(axis=1)
    if not good.all() or width % 2 == 0:
        number = int(good.argmin()) + 2
        raise ValueError(f"{path}, line {number}: expected {width // 2 + 1} features, 0 or 1, with commas between")
    return csr_array(bits == ord("1")).astype(np.float32)


def _read_columns(path: Path, rows: list[bytes], columns: int) -> csr_array:
    """Read rows like ``17,4,99``, the columns that are 1."""
    for number, row in enumerate(rows, start=2):
        if not _COLUMNS.fullmatch(row):
            raise ValueError(
                f"{path}, line {number}: expected numbers of features with commas between, got {row[:60]!r}"
            )
    counts = np.fromiter((row.count(b",") + 1 for row in rows), dtype=np.int64, count=len(rows))
    i, j = np.repeat(np.arange(len(rows)), counts), _integers([row.replace(b",", b" ") for row in rows])
    if (j >= columns).any():
        number = int(i[(j >= columns).argmax()]) + 2
        raise ValueError(f"{path}, line {number}: there are {columns} features, numbered from 0")
    features = coo_array((np.ones(len(j), dtype=np.float32), (i, j)), shape=(len(rows), columns)).tocsr()
    features.data[:] = 1  # a few rows name a feature twice
    return features


def _lines(path: Path, pattern: re.Pattern[bytes], what: str, header: bytes | None = None) -> list[bytes]:
    """Return the lines of a file without its header; each must be what the pattern says."""
    lines = _split(path)
    start = 0 if header is None else 1
    if header is not None and lines[0] != header:
        raise ValueError(f"{path}, line 1: the header should be {header!r}, got {lines[0][:60]!r}")
    for number, line in enumerate(lines[start:], start=start + 1):
        if not pattern.fullmatch(line):
            raise ValueError(f"{path}, line {number}: expected {what}, got {line[:60]!r}")
    return lines[start:]


def _split(path: Path) -> list[bytes]:
    *lines, rest = path.read_bytes().split(b"\n")
    if rest or not lines:
        raise ValueError(f"{path}, line {len(lines) + 1}: the last line has no end; the file was cut short")
    return lines


def _integers(lines: list[bytes]) -> NDArray[np.int64]:
    return np.fromstring(b" ".join(lines), dtype=np.int64, sep=" ") if lines else np.empty(0, dtype=np.int64)


def _read_splits(paths: Mapping[str, Path], n: int) -> list[Split]:
    files = [path for role, path in paths.items() if role.startswith("split")]
    splits = []
    for path in files:
        arrays = _read_arrays(path)
        splits.append(Split(*(np.flatnonzero(_mask(arrays, f"{part}_mask", (n,), path)) for part in Split._fields)))
    return splits


def _read_heterophilous(paths: Mapping[str, Path], dataset: Dataset) -> _Contents:
    path = paths["arrays"]
    arrays = _read_arrays(path)
    features = _array(arrays, "node_features", "f", 2, path)
    labels = _array(arrays, "node_labels", "iu", 1, path)
    edges = _array(arrays, "edges", "iu", 2, path)
    k = len(_array(arrays, "train_masks", "b", 2, path))
    masks = [_mask(arrays, f"{part}_masks", (k, len(labels)), path) for part in Split._fields]
    splits = [Split(*(np.flatnonzero(mask[i]) for mask in masks)) for i in range(k)]
    return _Contents(edges, csr_array(features) if dataset.sparse else features, labels, splits)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_npz(path, max_bytes=_LARGEST_NPZ)
    except (LZMAError, UnicodeDecodeError) as error:  # of a damaged method or name of a member
        raise ValueError(f"{path} is not a readable npz archive ({error})") from error


def _array(arrays: Mapping[str, NDArray[Any]], name: str, kinds: str, ndim: int, path: Path) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"{path} holds {', '.join(arrays) or 'nothing'}, but no array {name!r}")
    if array.dtype.kind not in kinds or array.ndim != ndim:
        raise ValueError(f"{path}: {name!r} has shape {array.shape} and type {array.dtype}, which is another layout")
    return array


def _mask(arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], path: Path) -> NDArray[np.bool_]:
    """Return a mask of bytes or booleans; in a damaged file even these are other than 0 and 1."""
    array = _array(arrays, name, "bu", len(shape), path)
    if array.shape != shape or array.dtype.itemsize != 1 or (array.view(np.uint8) > 1).any():
        raise ValueError(f"{path}: {name!r} should be a mask of shape {shape}, got {array.dtype} {array.shape}")
    return array.view(np.bool_)


_LAYOUTS: Mapping[str, Callable[[Mapping[str, Path], Dataset], _Contents]] = {
    "planetoid": _read_planetoid,
    "geom-gcn": _read_geom_gcn,
    "heterophilous": _read_heterophilous,
}
