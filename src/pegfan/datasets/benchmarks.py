"""The public benchmarks as graphs, exactly as the paper's authors used them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from pegfan import measures
from pegfan._arrays import IntArray
from pegfan._checks import check_flag, shown
from pegfan._npz import read_npz
from pegfan._rows import l1_rows
from pegfan.datasets._pickles import read_pickle
from pegfan.datasets.download import fetch
from pegfan.datasets.registry import DATASETS, Dataset, find
from pegfan.datasets.splits import random_splits
from pegfan.graph import Graph, Split

if TYPE_CHECKING:
    import pandas as pd


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
    unit_rows: bool = False,
    largest_component: bool = False,
    sizes: Sequence[float] | None = None,
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
    unit_rows : bool
        Whether to divide each row of the features by the sum of its absolute values; zero rows stay zero. Channels do
        so by themselves: ``scaling="l1"`` of `pegfan.make_channels`.
    largest_component : bool
        Keep the largest weakly connected component only.
    sizes : three numbers, optional
        Ten random splits of these shares of train, val and test in place of the public ones: those that
        :func:`random_splits` draws with seed 0. Numbers of the one and the other are not to be compared.
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
        If a file is not on this machine and cannot be downloaded.

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
        raise TypeError(f"directed must be True, False or None, got {shown(directed)}")
    if directed and f"{dataset.name}-directed" in DATASETS:
        dataset = DATASETS[f"{dataset.name}-directed"]
    check_flag(unit_rows, "unit_rows")
    graph = read_dataset(dataset, root, offline=offline)
    if directed is not None and directed != graph.directed:
        graph = graph.replace(directed=True) if directed else graph.symmetrize("max")
    if largest_component:
        graph = graph.largest_component()
    if unit_rows:
        graph = graph.replace(features=l1_rows(graph.features))
    if sizes is not None:
        graph = graph.replace(splits=random_splits(graph.labels, sizes=sizes))
    return graph


def table(names: Iterable[str] | None = None, root: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Return the statistics of benchmarks: the upper part of the paper's Table III, and measures of their labels.

    Parameters
    ----------
    names : iterable of str, optional
        Names of benchmarks, which are downloaded if necessary. By default all whose files are on this machine.
    root : path, optional
        As in :func:`load`.

    Returns
    -------
    DataFrame
        One row per set, indexed by name, with its ``nodes``, ``nonzeros`` of the adjacency, ``features``,
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
    fetch([], root)  # a root that is not a folder is an error, not a folder without data sets
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


class _Contents(NamedTuple):
    """What the files of a data set hold. Their hashes are those of the public files, so nothing is checked again."""

    edges: IntArray
    features: Any
    labels: IntArray
    splits: list[Split]


def read_dataset(dataset: Dataset, root: str | os.PathLike[str] | None = None, *, offline: bool | None = None) -> Graph:
    """Return the graph that the files of a registered data set describe; :func:`load` without its options."""
    found = fetch(dataset.files, root, offline=offline)
    paths = {file.role: path for file, path in zip(dataset.files, found, strict=True)}
    contents = _LAYOUTS[dataset.layout](paths, dataset)
    return Graph.from_edges(
        contents.edges,
        n=len(contents.labels),
        directed=dataset.directed,
        features=contents.features,
        labels=contents.labels,
        splits=contents.splits,
        metric=dataset.metric,
    )


def _read_planetoid(paths: Mapping[str, Path], dataset: Dataset) -> _Contents:
    digests = {file.role: file.digest for file in dataset.files}
    pickles = ("allx", "tx", "ally", "ty", "graph")
    x, tx, y, ty, lists = (read_pickle(paths[role], digests[role]) for role in pickles)
    n, index = len(lists), np.loadtxt(paths["index"], dtype=np.int64)
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
    return _Contents(np.column_stack([tails, heads]), features, labels, _read_splits(paths))


def _read_geom_gcn(paths: Mapping[str, Path], dataset: Dataset) -> _Contents:
    """Read lines of node, features and label: of a feature each, ``0,1,0``, or of those that are 1, ``17,4,99``."""
    lines = [line.split("\t") for line in paths["nodes"].read_text("ascii").splitlines()[1:]]
    ids, labels = (np.array([line[k] for line in lines], dtype=np.int64) for k in (0, 2))
    rows, n = [line[1] for line in lines], len(lines)
    if dataset.columns is None:
        bits = np.frombuffer("".join(row[::2] for row in rows).encode("ascii"), dtype=np.uint8).reshape(n, -1)
        features = csr_array(bits == ord("1")).astype(np.float32)
    else:
        i = np.repeat(np.arange(n), [row.count(",") + 1 for row in rows])
        j = np.array(",".join(rows).split(","), dtype=np.int64)
        features = coo_array((np.ones(len(j), dtype=np.float32), (i, j)), shape=(n, dataset.columns)).tocsr()
        features.data[:] = 1  # a few rows name a feature twice
    edges = np.loadtxt(paths["edges"], dtype=np.int64, skiprows=1)
    order = np.argsort(ids)
    return _Contents(edges, features[order], labels[order], _read_splits(paths))


def _read_splits(paths: Mapping[str, Path]) -> list[Split]:
    files = [read_npz(path) for role, path in paths.items() if role.startswith("split")]
    return [Split(*(np.flatnonzero(arrays[f"{part}_mask"]) for part in Split._fields)) for arrays in files]


def _read_heterophilous(paths: Mapping[str, Path], dataset: Dataset) -> _Contents:
    arrays = read_npz(paths["arrays"])
    features = csr_array(arrays["node_features"]) if dataset.sparse else arrays["node_features"]
    masks = zip(*(arrays[f"{part}_masks"] for part in Split._fields), strict=True)
    splits = [Split(*map(np.flatnonzero, parts)) for parts in masks]
    return _Contents(arrays["edges"], features, arrays["node_labels"], splits)


_LAYOUTS: Mapping[str, Callable[[Mapping[str, Path], Dataset], _Contents]] = {
    "planetoid": _read_planetoid,
    "geom-gcn": _read_geom_gcn,
    "heterophilous": _read_heterophilous,
}
