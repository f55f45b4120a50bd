"""Files that hold a whole graph: Matrix Market, npz, GraphML, GML, NetworkX edge lists and PyG data.

Each becomes tables for :func:`~pegfan.datasets.tables.build`, or, where the file holds arrays, a Graph at once.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, issparse, triu

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput
from pegfan._extras import need
from pegfan._limits import BYTE, CELL, COLUMN, EDGE, EDGELIST, GML, GRAPHML, NODE, NUMBER, require
from pegfan._npz import read_npz
from pegfan.datasets._table import Options, ReadReport, Table, few, shown, suggestion
from pegfan.datasets._text import COMMENTS, open_bytes, read_numbers, require_columns
from pegfan.graph import Graph, Split, labels_or_targets, mask_splits, single_column

_DEEPEST_XML = 100


@dataclass(frozen=True)
class Parts:
    """What a file of a whole graph holds: tables to build it from, or the graph itself."""

    edges: Table | None = None
    others: tuple[Table, ...] = ()  # edges of other kinds
    nodes: Table | None = None
    n: int | None = None
    directed: bool | None = None
    id: str | None = None
    graph: Graph | None = None


@contextlib.contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a parser raises into an error that names the file."""
    try:
        yield
    except BadInput:
        raise
    except OSError as error:
        if error.filename is not None:  # the file system's own complaint
            raise
        raise BadInput(f"{path} cannot be read as {what}: {error}") from error
    except MemoryError as error:
        raise BadInput(f"{path} needs more memory than there is") from error
    except Exception as error:
        words = " ".join(str(error).split())
        raise BadInput(f"{path} cannot be read as {what}: {words[:300] or type(error).__name__}") from error


def _require_room(path: Path, n: int, entries: int, max_bytes: int | None, *, what: str = "nodes") -> None:
    """Refuse more nodes than entries can speak of, and more of both than there is memory for."""
    if n > 10**6 + 1000 * entries:
        raise BadInput(f"{path} declares {n:,} {what} for {entries:,} entries; the size is not believable")
    if max_bytes is not None:
        require(f"{path}: {n:,} {what} and {entries:,} entries", NODE * n + EDGE * entries, max_bytes)


def read_whole(path: Path, kind: str, options: Options, max_bytes: int | None, report: ReadReport) -> Parts:
    """Read a file that holds a whole graph."""
    if kind == "mtx":
        return _from_matrix(_read_mtx(path, max_bytes), path, "Matrix Market", options, max_bytes, report)
    if kind == "npz":
        with reading(path, "npz"):
            arrays = read_npz(path, max_bytes)
        if {"format", "shape", "data"} <= arrays.keys():
            return _from_matrix(_sparse_from(arrays, path), path, "npz of a sparse matrix", options, max_bytes, report)
        return Parts(graph=_graph_from_arrays(arrays, path, options, max_bytes, report))
    if kind == "pt":
        return Parts(graph=_read_pyg(path, options, max_bytes, report))
    with reading(path, {"graphml": "GraphML", "gml": "GML", "edgelist": "an edge list of NetworkX"}[kind]):
        nx_graph = _read_networkx(path, kind, max_bytes)
    report.files[path.name] = f"{kind}, {nx_graph.number_of_nodes():,} nodes, {nx_graph.number_of_edges():,} edges"
    return _from_networkx(nx_graph, path, kind != "edgelist" and nx_graph.is_directed(), max_bytes)


def _from_matrix(
    matrix: coo_array, path: Path, what: str, options: Options, max_bytes: int | None, report: ReadReport
) -> Parts:
    import pandas as pd

    n = matrix.shape[0]
    if matrix.ndim != 2 or n != matrix.shape[1] or n == 0:
        raise BadInput(f"{path} holds a matrix of shape {matrix.shape}; an adjacency matrix is square")
    if matrix.dtype.kind not in "biuf":
        raise BadInput(f"{path} holds a matrix of {matrix.dtype}; weights are real numbers")
    _require_room(path, n, matrix.nnz, max_bytes)
    report.files[path.name] = f"{what}, {n:,} nodes, {matrix.nnz:,} entries"
    csr = matrix.astype(np.float64).tocsr()
    directed = (csr != csr.T).nnz > 0
    if not directed and not options.directed:
        csr = triu(csr, format="csr")
    arcs = csr.tocoo()
    frame = pd.DataFrame({"source": arcs.coords[0], "target": arcs.coords[1]})
    if np.any(arcs.data != 1):
        frame["weight"] = arcs.data
    return Parts(edges=Table(frame, path.name), n=n, directed=directed)


class _Head(NamedTuple):
    """What the first lines of a Matrix Market file declare, and how many they are."""

    layout: str
    field: str
    symmetric: bool
    rows: int
    columns: int
    entries: int
    lines: int


def _read_mtx(path: Path, max_bytes: int | None) -> coo_array:
    """Read a Matrix Market file; a damaged one can crash SciPy's own reader."""
    with reading(path, "Matrix Market"):
        head = _read_mtx_head(path, max_bytes)
        _require_room(path, max(head.rows, head.columns), head.entries, max_bytes)
        if head.entries == 0:
            return coo_array((head.rows, head.columns))
        names = ["value"] if head.layout == "array" else ["row", "column", "value"][: 3 - (head.field == "pattern")]
        table = read_numbers(path, names, head.lines, "%", max_bytes)
        if table.size != head.entries:
            raise BadInput(f"{path} declares {head.entries:,} entries and holds {table.size:,}; is it cut short?")
        i, j = _mtx_places(table, head)
        values = _mtx_numbers(table, "value") if "value" in names else np.ones(len(i))
        if head.symmetric:
            off = i != j
            i, j, values = np.append(i, j[off]), np.append(j, i[off]), np.append(values, values[off])
        return coo_array((values, (i, j)), shape=(head.rows, head.columns))


def _read_mtx_head(path: Path, max_bytes: int | None) -> _Head:
    with open_bytes(path, max_bytes, BYTE) as stream:
        words = stream.readline(1000).decode(errors="replace").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise BadInput(f"{path}, line 1: not the first line of a Matrix Market file with a matrix")
        layout, field, symmetry = words[2:]
        if field not in ("real", "double", "integer", "pattern") or symmetry not in ("general", "symmetric"):
            raise BadInput(f"{path}, line 1: a {field} {symmetry} matrix; weights are real, general or symmetric")
        if (layout, field) == ("array", "pattern") or layout not in ("coordinate", "array"):
            raise BadInput(f"{path}, line 1: there is no layout {layout!r} of a {field} matrix")
        number, line = next(
            ((k, line) for k, line in enumerate(stream, 2) if line.strip() and line.lstrip()[:1] != b"%"), (1, b"")
        )
    sizes = [int(word) for word in line.split() if word.isdigit()]
    if len(sizes) != len(line.split()) or len(sizes) != (3 if layout == "coordinate" else 2):
        raise BadInput(f"{path}, line {number}: the sizes of the matrix are expected here")
    rows, columns = sizes[:2]
    if symmetry == "symmetric" and rows != columns:
        raise BadInput(f"{path}, line {number}: a symmetric matrix is square, but it is {rows} by {columns}")
    full = rows * (rows + 1) // 2 if symmetry == "symmetric" else rows * columns
    return _Head(layout, field, symmetry == "symmetric", rows, columns, [*sizes, full][2], number)


def _mtx_places(table: Table, head: _Head) -> tuple[IntArray, IntArray]:
    """Return the row and column of every entry, counted from 0; arrays are listed column by column."""
    if head.layout == "array":
        j, i = np.triu_indices(head.rows) if head.symmetric else np.divmod(np.arange(head.entries), head.rows)
        return i, j
    i, j = _mtx_numbers(table, "row") - 1, _mtx_numbers(table, "column") - 1
    inside = (i >= 0) & (i < head.rows) & (j >= 0) & (j < head.columns) & (i == np.floor(i)) & (j == np.floor(j))
    if not inside.all():
        raise BadInput(f"{table.where(inside.argmin())}: no place in a matrix of {head.rows} by {head.columns}")
    return i.astype(np.int64), j.astype(np.int64)


def _mtx_numbers(table: Table, column: str) -> FloatArray:
    import pandas as pd

    numbers = pd.to_numeric(table.series(column), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    good = np.isfinite(numbers)
    if not good.all():
        row = int(good.argmin())
        raise BadInput(f"{table.where(row)}: {shown(table.series(column).iloc[row])} is not a finite number")
    return np.asarray(numbers)


def _sparse_from(arrays: dict[str, Any], path: Path) -> coo_array:
    """Return the matrix that ``scipy.sparse.save_npz`` wrote."""
    layout = arrays["format"].item() if arrays["format"].size == 1 else ""
    layout = layout.decode(errors="replace") if isinstance(layout, bytes) else str(layout)
    wanted = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.get(layout)
    if wanted is None or not set(wanted) <= arrays.keys():
        raise BadInput(f"{path}: a sparse matrix of format {layout!r} cannot be read; save it as matrix.tocsr()")
    with reading(path, f"a sparse matrix of format {layout!r}"):
        shape = tuple(int(extent) for extent in arrays["shape"])
        if len(shape) == 2:
            _require_room(path, max(shape), arrays["data"].size, None)
        if layout == "coo":
            matrix: Any = coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
        else:
            make = csr_array if layout == "csr" else csc_array
            matrix = make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format()  # an index out of range would make SciPy's C++ code crash
        return matrix.tocoo()


def _graph_from_arrays(
    arrays: dict[str, Any], path: Path, options: Options, max_bytes: int | None, report: ReadReport
) -> Graph:
    _only_array_options(options, path)
    pairs = _pairs_from(arrays, path)
    labels = _labels_from(arrays, path, options)
    features = _features_from(arrays, path, options)
    n = _node_count(arrays, labels, features)
    counted = n is None and pairs.size and pairs.dtype.kind in "iu"  # then there are as many as the largest id says
    nodes = min(int(pairs.max()) + 1, 10**6 + 1000 * len(pairs)) if counted else n or 0
    _require_room(path, nodes, len(pairs) + (0 if labels is None else len(labels)), max_bytes)
    _require_features(path, features, max_bytes)
    names = arrays.get("feature_names", np.empty(0))
    graph = Graph.from_edges(
        pairs,
        _first(arrays, "edge_weight", "edge_weights", "weights"),
        n=n,
        directed=bool(options.directed),
        duplicates=options.duplicates,
        features=features,
        feature_names=names.ravel().tolist() if names.dtype.kind == "U" and features is not None else None,
        **labels_or_targets(labels, options.label_kind),
        splits=[] if options.split is False else _splits_from(arrays, path, n),
        metric=options.metric,
    )
    report.files[path.name] = f"npz of arrays {few(sorted(arrays))}"
    _describe_arrays(graph, len(pairs), report)
    return graph


def _first(arrays: dict[str, Any], *names: str) -> Any:
    return next((arrays[name] for name in names if name in arrays), None)


def _pairs_from(arrays: dict[str, Any], path: Path) -> Any:
    if "edge_index" not in arrays and "edges" not in arrays:
        raise BadInput(
            f"{path} holds the arrays {few(sorted(arrays))}; a graph needs 'edge_index' or 'edges', or the layout of "
            "scipy.sparse.save_npz"
        )
    pairs = arrays["edge_index"].T if "edge_index" in arrays else arrays["edges"]
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise BadInput(f"{path}: edge_index must have shape (2, m) and edges (m, 2); they are the other way round")
    return pairs


def _labels_from(arrays: dict[str, Any], path: Path, options: Options) -> Any:
    if options.label is False:
        return None
    if options.label is None:
        labels = _first(arrays, "y", "node_labels", "labels")
    elif str(options.label) in arrays:
        labels = arrays[str(options.label)]
    else:
        raise BadInput(f"{path} has no array {options.label!r} for the label; {suggestion(options.label, arrays)}")
    return single_column(labels)


def _features_from(arrays: dict[str, Any], path: Path, options: Options) -> Any:
    if options.features is False:
        return None
    if "x_data" not in arrays:
        return _first(arrays, "x", "node_features", "features")
    with reading(path, "features in x_data, x_indices, x_indptr and x_shape"):
        shape = tuple(int(extent) for extent in arrays["x_shape"])
        indices, indptr = (arrays[f"x_{part}"].astype(np.int64) for part in ("indices", "indptr"))
        return csr_array((arrays["x_data"], indices, indptr), shape=shape)


def _require_features(path: Path, features: Any, max_bytes: int | None) -> None:
    """Refuse features that take too much memory while they are checked and copied."""
    if features is None or features.ndim != 2:
        return
    if issparse(features):
        _require_room(path, max(features.shape), features.nnz + features.shape[0], max_bytes, what="feature columns")
    elif max_bytes is not None:
        rows, columns = features.shape
        require(f"{path}: features of {rows:,} nodes in {columns:,} columns", NUMBER * rows * columns, max_bytes)


def _node_count(arrays: dict[str, Any], labels: Any, features: Any) -> int | None:
    if "num_nodes" in arrays and arrays["num_nodes"].size == 1:
        return int(arrays["num_nodes"].item())
    rows = [array.shape[0] for array in (labels, features) if array is not None and array.ndim > 0]
    return rows[0] if rows else None


def _only_array_options(options: Options, path: Path) -> None:
    tabular = [name for name in ("id", "source", "target", "weight", "positions") if getattr(options, name) is not None]
    tabular += [name for name in ("split", "features") if getattr(options, name) not in (None, False)]
    if tabular:
        raise BadInput(f"{tabular[0]}= names a column of a table, but {path} holds arrays; leave it out")


def _splits_from(arrays: dict[str, Any], path: Path, n: int | None) -> list[Split]:
    """Return the splits that masks of shape (n,), (k, n) or (n, k) describe."""
    masks = {part: _first(arrays, f"{part}_mask", f"{part}_masks") for part in Split._fields}
    present = [part for part, mask in masks.items() if mask is not None]
    if not present:
        return []
    if len(present) < len(masks):
        raise BadInput(f"{path} has masks for {few(present)} only; a split needs all three (split=False ignores them)")
    for part, mask in masks.items():
        if mask.ndim not in (1, 2) or n not in mask.shape:
            raise BadInput(f"{path}: the {part} mask has shape {mask.shape}, but there are {n} nodes")
    return mask_splits({part: mask.T if mask.shape[-1] == n else mask for part, mask in masks.items()})


def _describe_arrays(graph: Graph, rows: int, report: ReadReport) -> None:
    report.numbered = True
    report.columns["edges"] = "directed" if graph.directed else "undirected"
    report.columns["label"] = "none" if graph.truth is None else f"{graph.n_classes} classes"
    if graph.targets is not None:
        report.columns["label"] = f"numbers, {int((~graph.labelled).sum())} of {graph.n} nodes without"
    report.columns["splits"] = str(len(graph.splits))
    if graph.features is not None:
        report.features["x"] = f"{graph.features.shape[1]} columns"
    report.merged = max(0, rows - graph.n_edges)
    report.self_loops = int(np.count_nonzero(graph.adjacency.diagonal()))


def _read_networkx(path: Path, kind: str, max_bytes: int | None) -> Any:
    nx = need("networkx", "graphs", "this format")
    with open_bytes(path, max_bytes, {"graphml": GRAPHML, "gml": GML}.get(kind, EDGELIST)) as stream:
        content = stream.read()
    if kind == "graphml":
        _check_xml(content, path)
        return nx.read_graphml(io.BytesIO(content))
    lines = content.decode().splitlines()
    if kind == "edgelist":
        # NetworkX would cut lines at every #, and an id may hold one: comments are lines, and no edge ends with }.
        rows = [line for line in lines if line.lstrip()[:1] not in tuple(COMMENTS) or line.rstrip().endswith("}")]
        return nx.parse_edgelist(rows, comments=None, create_using=nx.MultiDiGraph, data=True)
    try:
        return nx.parse_gml(lines)
    except nx.NetworkXError as error:
        if "label" not in str(error):  # NetworkX has no class for it
            raise
        return nx.parse_gml(lines, label="id")  # labels that are missing or repeated cannot name the nodes


def _check_xml(content: bytes, path: Path) -> None:
    """Refuse XML with declarations of its own: entities can expand without end, or name other files."""
    from xml.parsers import expat

    depth = 0

    def refuse(*_: Any) -> None:
        raise BadInput(f"{path}, line {parser.CurrentLineNumber}: a DOCTYPE or entity, which is refused; remove it")

    def deeper(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST_XML:
            raise BadInput(f"{path}, line {parser.CurrentLineNumber}: elements more than {_DEEPEST_XML} deep")

    def higher(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = deeper, higher
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise BadInput(f"{path}, line {error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from error


def _from_networkx(nx_graph: Any, path: Path, directed: bool | None, max_bytes: int | None) -> Parts:
    import pandas as pd

    if nx_graph.number_of_nodes() == 0:
        raise BadInput(f"{path} holds no nodes")
    columns = list(dict.fromkeys(name for _, data in nx_graph.nodes(data=True) for name in data))
    require_columns(path, len(columns))
    if max_bytes is not None:  # nodes may have an attribute each that no other has
        what = f"{path}: {nx_graph.number_of_nodes():,} nodes with {len(columns):,} attributes"
        require(what, CELL * nx_graph.number_of_nodes() * len(columns) + COLUMN * len(columns), max_bytes)
    key = next(name for name in ("id", "node", "node key") if name not in columns)
    # These formats may store numbers as text: keys that all look like integers are read as integers.
    whole = all(isinstance(name, str) and re.fullmatch(r"0|-?[1-9]\d{0,17}", name) for name in nx_graph.nodes)
    frame = pd.DataFrame({key: [int(name) if whole else name for name in nx_graph.nodes]})
    for name in columns:
        frame[str(name)] = pd.Series([data.get(name) for _, data in nx_graph.nodes(data=True)])
    ends = dict(zip(nx_graph.nodes, frame[key], strict=True))
    rows = list(nx_graph.edges(data="weight"))
    edges = {"source": [ends[u] for u, _, _ in rows], "target": [ends[v] for _, v, _ in rows]}
    if any(weight is not None for _, _, weight in rows):
        edges["weight"] = [1.0 if weight is None else weight for _, _, weight in rows]
    nodes = Table(frame, path.name)
    return Parts(edges=Table(pd.DataFrame(edges), path.name), nodes=nodes, directed=directed, id=key)


def _read_pyg(path: Path, options: Options, max_bytes: int | None, report: ReadReport) -> Graph:
    _only_array_options(options, path)
    data = _load_pyg(path, max_bytes)
    attributes: dict[str, Any] = {"metric": options.metric}
    if options.label is not None:
        values = None if options.label is False else getattr(data, str(options.label), None)
        if values is None and options.label is not False:
            raise BadInput(f"{path} has no attribute {options.label!r} for the label")
        values = None if values is None else np.asarray(values).reshape(len(values), -1)[:, 0]
        attributes |= labels_or_targets(values, options.label_kind)
    elif options.label_kind is not None:
        values = getattr(data, "y", None)
        attributes |= labels_or_targets(
            None if values is None else single_column(np.asarray(values)), options.label_kind
        )
    if options.features is False:
        attributes["features"] = None
    if options.split is False:
        attributes["splits"] = ()
    graph = Graph.from_pyg(data, directed=options.directed, duplicates=options.duplicates, **attributes)
    report.files[path.name] = "PyG data"
    _describe_arrays(graph, graph.n_edges, report)
    return graph


def _load_pyg(path: Path, max_bytes: int | None) -> Any:
    """Load tensors and PyG's plain data classes, nothing else."""
    torch = need("torch", "torch", "this format")
    pyg = need("torch_geometric.data.data", "torch", "this format")
    storage = need("torch_geometric.data.storage", "torch", "this format")
    allowed = [pyg.Data, pyg.DataEdgeAttr, pyg.DataTensorAttr, storage.GlobalStorage]
    with reading(path, "PyG data"):
        if not zipfile.is_zipfile(path):
            raise BadInput(
                f"{path} is not in the format that torch.save has had since torch 1.6 (a zip file); save it again"
            )
        with zipfile.ZipFile(path) as archive:
            declared = sum(member.file_size for member in archive.infolist())
            if max_bytes is not None:
                require(f"{path}: tensors of {declared:,} bytes", 2 * declared, max_bytes)
            damaged = archive.testzip()
            if damaged is not None:
                raise BadInput(f"{path} is damaged: {damaged}")
        try:
            with torch.serialization.safe_globals(allowed):
                content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            culprit = re.search(r"GLOBAL (\S+)", str(error))
            asks = f"it asks for {culprit[1]}, which" if culprit else "it holds what"
            raise BadInput(
                f"{path}: {asks} is not loaded from files, as it could run code; save the Data object alone, "
                "or use Graph.from_pyg on the object in memory"
            ) from error
        data = _single_data(content, path)
        if max_bytes is not None:
            _require_tensors(path, data, max_bytes)
        return data


def _require_tensors(path: Path, data: Any, max_bytes: int) -> None:
    """Refuse tensors that are larger than what the file holds of them, and nodes that nothing speaks of."""
    found = data.to_dict() if hasattr(data, "to_dict") else vars(data)
    tensors = [value for value in found.values() if hasattr(value, "numel") and hasattr(value, "element_size")]
    numbers = sum(tensor.numel() for tensor in tensors)
    require(f"{path}: tensors of {numbers:,} numbers", NUMBER * numbers, max_bytes)
    edges = found["edge_index"]
    largest = int(edges.max()) + 1 if hasattr(edges, "max") and edges.numel() and not edges.is_floating_point() else 0
    given = found.get("num_nodes")
    n = max(largest, given if isinstance(given, int) else 0)
    _require_room(path, n, edges.numel() // 2 if hasattr(edges, "numel") else 0, max_bytes)


def _single_data(content: Any, path: Path) -> Any:
    """Return the one graph in a Data object, in its dict, or in an InMemoryDataset's (data, slices, class)."""
    if isinstance(content, tuple) and content:
        slices = content[1] if len(content) > 1 else None
        if slices and any(len(bounds) > 2 for bounds in slices.values()):
            raise BadInput(f"{path} holds several graphs; save the one that is meant")
        content = content[0]
    if isinstance(content, dict):
        content = SimpleNamespace(**content)
    if getattr(content, "edge_index", None) is None:
        raise BadInput(f"{path} holds {type(content).__name__} without an edge_index; save a Data object")
    return content
