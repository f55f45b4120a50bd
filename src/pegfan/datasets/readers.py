"""Graphs from files: tables of nodes and edges, and the usual formats for whole graphs.

Nothing in a file is ever executed: pickles are refused, PyG files are loaded with an allow-list of classes, XML with
declarations of its own is refused, and what a file claims to hold is checked before room is made for it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, triu

from pegfan._npz import MAX_BYTES, read_npz
from pegfan.datasets._columns import ID_NAMES, LABEL_NAMES
from pegfan.datasets._table import Options, ReadReport, Table, few, suggestion
from pegfan.datasets._text import TextSettings, is_packed, open_bytes, read_text
from pegfan.datasets.tables import END_NAMES, WEIGHT_NAMES, build, edges_fit, end_columns
from pegfan.graph import Graph, _import

__all__ = ["read_graph"]

_SUFFIXES = {
    **dict.fromkeys([".csv", ".tsv", ".tab", ".txt", ".edges", ".edgelist", ".el", ".dat", ".data"], "text"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    ".json": "json",
    ".mtx": "mtx",
    ".npz": "npz",
    ".graphml": "graphml",
    ".gml": "gml",
    **dict.fromkeys([".pt", ".pth"], "pt"),
}
_FORMATS = tuple(dict.fromkeys([*_SUFFIXES.values(), "edgelist"]))
_REFUSED = {
    **dict.fromkeys([".pkl", ".pickle", ".gpickle", ".p"], "pickles can run code, so they are never read"),
    ".npy": "an .npy file holds a single array",
    **dict.fromkeys([".xlsx", ".xls", ".ods"], "spreadsheets are not read"),
    ".zip": "zip archives are not read",
}
_DEEPEST_XML = 100
# What an edge of a Matrix Market file and an entry of a sparse array cost at least.
_SHORTEST_ENTRY = len(b"1 1\n")


@dataclass(frozen=True)
class _Parts:
    """What a file of a whole graph holds: tables to build it from, or the graph itself."""

    edges: Table | None = None
    nodes: Table | None = None
    n: int | None = None
    directed: bool | None = None
    id: str | None = None
    graph: Graph | None = None


def read_graph(
    *paths: Any,
    edges: Any = None,
    nodes: Any = None,
    format: Any = None,  # noqa: A002
    delimiter: Any = None,
    header: Any = None,
    comments: str = "#%",
    max_bytes: int = MAX_BYTES,
    report: bool = False,
    **options: Any,
) -> Any:
    """Read a graph from a file, or from a file of edges and one of nodes.

    Parameters
    ----------
    *paths : path
        One file with a whole graph, or one of edges, possibly one of nodes, and JSON files of lists by node id, in any
        order: which is which is found out. Any but Parquet, npz and PyG files may be packed by gzip.

        =============  =====================================================================================
        text           .csv, .tsv, .txt, .edges, ...: edges (source, target, weight; with a header or not) or nodes
        Parquet        .parquet, .pq: edges or nodes
        JSON           .json: ``{id: [token, ...], ...}``, joined to the nodes as a bag of tokens
        Matrix Market  .mtx: a square matrix of weights
        npz            .npz of plain arrays: ``scipy.sparse.save_npz``; ``edge_index``, ``x`` (or ``x_data``,
                       ``x_indices``, ``x_indptr``, ``x_shape``), ``y`` and masks; or ``edges``, ``node_features``,
                       ``node_labels`` and masks
        GraphML, GML   .graphml, .gml: attributes of the nodes are the columns of the node table
        edge list      as NetworkX writes it, with ``{...}`` at the end of lines
        PyG            .pt: a ``Data`` object, loaded without running anything in the file
        =============  =====================================================================================
    edges, nodes : path, optional
        The file of edges and the file of nodes, where the guess goes wrong.
    format : str or dict, optional
        One of "text", "parquet", "json", "mtx", "npz", "graphml", "gml", "edgelist" and "pt", where the suffix does not say
        it; or a dict {path: format}.
    delimiter : str or dict, optional
        A single character, " " for any white space; or a dict {path: delimiter}.
    header : bool or dict, optional
        Whether the first line of text files holds the names of the columns; or a dict {path: bool}.
    comments : str
        Lines of text files that start with one of these characters are skipped (in a file with quotes, only before
        the first row).
    max_bytes : int
        What a file may claim to hold, or unpack to.
    report : bool
        Whether to return the :class:`~pegfan.datasets.tables.ReadReport` too.
    **options
        As in :func:`~pegfan.datasets.tables.graph_from_tables`: id, label, split, features, source, target, weight,
        directed, duplicates, unknown, missing, categories_max, positions, metric. By default the graph is directed if
        the format says so: edge lists and npz arrays do not, and are read as undirected. For npz and PyG files only
        label (the name of the array), split=False, features=False, directed, duplicates and metric apply.

    Returns
    -------
    Graph, or (Graph, ReadReport)

    Raises
    ------
    ValueError
        What is wrong with a file, with its name and, for text, the line.
    OSError
        A file cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges, nodes = pathlib.Path(folder, "edges.csv"), pathlib.Path(folder, "nodes.csv")
    ...     _ = edges.write_text("7 8\\n8 9\\n")
    ...     _ = nodes.write_text("id,colour,size\\n7,red,1.5\\n8,blue,2\\n9,red,\\n")
    ...     graph, report = read_graph(edges, nodes, label="colour", report=True)
    >>> graph
    Graph(n=3, edges=2, undirected, features=1, classes=2)
    >>> print(report)
    read      edges.csv: edges; white space, no header, 2 rows
    read      nodes.csv: nodes; comma, header, 3 rows
    edges     'source' to 'target' (by name), undirected
    weight    none: every edge weighs 1
    id        'id' (by name)
    label     'colour' (as given): 2 classes, 0 of 3 nodes without
    feature   size: number, 1 missing: the mean
    counts    0 repeated merged, 0 self loops, 0 unknown ids
    """
    chosen, account = _options(options), ReadReport()
    every = [_existing(path) for path in (*paths, edges, nodes) if path is not None]
    if not every:
        raise ValueError("read_graph needs at least one file")
    if len(set(every)) < len(every):
        raise ValueError(f"the same file is given twice: {few([str(path) for path in every])}")
    formats = {path: _format(path, _for_file(format, path)) for path in every}
    known = _known_names(chosen)
    settings = {
        path: TextSettings(_for_file(delimiter, path), _for_file(header, path), comments, max_bytes, known)
        for path in every
    }
    wholes = [path for path in every if formats[path] not in ("text", "parquet", "json")]
    if len(wholes) > 1:
        raise ValueError(f"{wholes[0]} and {wholes[1]} each hold a graph; give one of them")
    tables = {path: _read_table(path, formats[path], settings[path], account) for path in every if path not in wholes}
    bags = {path.stem.removesuffix(".json"): tables.pop(path) for path in every if formats[path] == "json"}
    with _complaints_about(*every):
        parts = _read_whole(wholes[0], formats[wholes[0]], chosen, max_bytes, account) if wholes else _Parts()
        if parts.graph is None:
            parts = _complete(parts, tables, bags, _role(edges), _role(nodes), chosen, account)
            graph = _build(parts, bags, chosen, account)
        elif tables or bags:
            raise ValueError(f"{wholes[0]} holds a whole graph, nodes included; leave out the other files")
        else:
            graph = parts.graph
    return (graph, account) if report else graph


def _options(options: dict[str, Any]) -> Options:
    unknown = options.keys() - Options.__dataclass_fields__.keys()
    if unknown:
        name = min(unknown)
        raise TypeError(f"read_graph has no option {name!r}; {suggestion(name, Options.__dataclass_fields__)}")
    return Options(**options)


def _for_file(option: Any, path: Path) -> Any:
    if not isinstance(option, Mapping):
        return option
    return {Path(key): value for key, value in option.items()}.get(path)


def _role(path: Any) -> Path | None:
    return None if path is None else Path(path)


def _existing(path: Any) -> Path:
    found = Path(path)
    if found.is_dir():
        raise IsADirectoryError(f"{found} is a folder; name the files in it")
    if not found.exists():
        near = suggestion(found.name, sorted(p.name for p in found.parent.iterdir())) if found.parent.is_dir() else ""
        meant = f" ({near.split('? ')[0]}?)" if near.startswith("did you mean") else ""
        raise FileNotFoundError(f"{found}: no such file{meant}")
    if found.stat().st_size == 0:
        raise ValueError(f"{found} is empty")
    return found


def _known_names(options: Options) -> frozenset[str]:
    """Return the words that show the first line of a text file to be its header."""
    given = [options.id, options.label, options.source, options.target, options.weight, options.split]
    names = {str(name).lower() for name in given if isinstance(name, str)}
    for several in (options.split, options.features, options.positions):
        if isinstance(several, list | tuple | dict):
            names |= {str(name).lower() for name in several}
    pairs = {name for pair in END_NAMES for name in pair if len(name) > 1}
    return frozenset(names | pairs | set(ID_NAMES) | set(LABEL_NAMES) - {"y"} | set(WEIGHT_NAMES) - {"w"})


# -------------------------------------------------------------------- formats


def _format(path: Path, given: str | None) -> str:
    """Return the format of a file: given, by its suffix, or by how it starts."""
    if given is not None:
        if given not in _FORMATS:
            raise ValueError(f"format must be one of {', '.join(_FORMATS)}, got {given!r}")
        return given
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")
    if suffix in _REFUSED:
        raise ValueError(f"{path}: {_REFUSED[suffix]}; save the graph as CSV, Parquet, npz or GraphML")
    found = _SUFFIXES.get(suffix)
    if found in (None, "text"):
        start = _start(path)
        found = _by_content(path, start) if found is None else found
        if found == "text" and re.match(rb"(?:[#%][^\n]*\n|\s)*[^\n#%][^\n]*\{[^\n{}]*\}[ \t]*\r?(?:\n|$)", start):
            return "edgelist"
    return found


def _start(path: Path) -> bytes:
    with open_bytes(path, MAX_BYTES) as stream:
        return stream.read(4096)


def _by_content(path: Path, start: bytes) -> str:
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:4] == b"PK\x03\x04":
        with _reading(path, "a zip archive"), zipfile.ZipFile(path) as archive:
            return "npz" if any(name.endswith(".npy") for name in archive.namelist()) else "pt"
    if start[:1] == b"\x80":
        raise ValueError(f"{path} is a pickle, which can run code and is never read; save the graph in another format")
    for pattern, found in ((rb"%%MatrixMarket", "mtx"), (rb"\s*<", "graphml"), (rb"\s*\{", "json")):
        if re.match(pattern, start):
            return found
    return "gml" if re.search(rb"(?m)^\s*graph\s*\[", start) else "text"


@contextlib.contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a parser of somebody else's raises into one ValueError that names the file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:  # the file system's own complaint
            raise
        raise ValueError(f"{path} cannot be read as {what}: {error}") from error
    except MemoryError as error:
        raise ValueError(f"{path} needs more memory than there is") from error
    except Exception as error:
        words = " ".join(str(error).split())
        if isinstance(error, ValueError) and str(path) in words:
            raise
        raise ValueError(f"{path} cannot be read as {what}: {words[:300] or type(error).__name__}") from error


@contextlib.contextmanager
def _complaints_about(*paths: Path) -> Iterator[None]:
    """Name the files where the message does not: Graph does not know where its arrays come from."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        words = str(error)
        if isinstance(error, ValueError) and any(path.name in words for path in paths):
            raise
        raise ValueError(f"{', '.join(path.name for path in paths)}: {words}") from error


def _require_plausible(path: Path, n: int, entries: int) -> None:
    if n > 10**6 + 1000 * entries:
        raise ValueError(f"{path} declares {n:,} nodes for {entries:,} entries; the size is not believable")


# -------------------------------------------------------------------- tables, and which is which


def _read_table(path: Path, kind: str, settings: TextSettings, report: ReadReport) -> Any:
    if kind == "json":
        bag = _read_json(path, settings.max_bytes)
        report.files[path.name] = f"lists of tokens of {len(bag):,} nodes"
        return bag
    if kind == "parquet":
        table, how = _read_parquet(path, settings.max_bytes)
    else:
        with _reading(path, "a text table"):
            table, how = read_text(path, settings)
    report.files[path.name] = how
    return table


def _read_parquet(path: Path, max_bytes: int) -> tuple[Table, str]:
    from pyarrow import parquet

    with _reading(path, "Parquet"), parquet.ParquetFile(path) as file:
        about = file.metadata
        groups = [about.row_group(k) for k in range(about.num_row_groups)]
        declared = max(about.num_rows * about.num_columns * 8, sum(group.total_byte_size for group in groups))
        if not 0 <= declared <= max_bytes:
            raise ValueError(
                f"{path} declares {declared:,} bytes, more than the {max_bytes:,} allowed; "
                "if it is yours, pass a larger max_bytes"
            )
        table = file.read()
        table.validate(full=True)
        frame = table.to_pandas(ignore_metadata=True, split_blocks=True, self_destruct=True)
    frame.columns = ["index" if name == "__index_level_0__" else str(name) for name in frame.columns]
    if frame.columns.duplicated().any():
        raise ValueError(f"{path} has two columns named {frame.columns[frame.columns.duplicated()][0]!r}; rename one")
    return Table(frame, path.name), f"Parquet, {len(frame):,} rows"


def _read_json(path: Path, max_bytes: int) -> dict[str, list[Any]]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise ValueError(f"{path}: {next(key for key in found if keys.count(key) > 1)!r} is given more than once")
        return found

    with _reading(path, "JSON"), open_bytes(path, max_bytes) as stream:
        try:
            content = json.loads(stream.read().decode(), object_pairs_hook=unique)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f'{path} must hold lists by node id, {{"id": [token, ...], ...}}')
    for key, tokens in content.items():
        if not isinstance(tokens, list) or any(isinstance(token, list | dict | None) for token in tokens):
            raise ValueError(
                f"{path}: node {key!r} must have a list of tokens, numbers or texts, got {str(tokens)[:60]}"
            )
    return content


def _complete(
    parts: _Parts,
    tables: dict[Path, Table],
    bags: Mapping[str, Mapping[Any, Any]],
    edges: Path | None,
    nodes: Path | None,
    options: Options,
    report: ReadReport,
) -> _Parts:
    """Add the tables to what a graph file gave, each in its role."""
    import pandas as pd

    if parts.nodes is not None and (tables or bags):
        raise ValueError("the graph file holds its nodes; leave out the other files")
    if parts.edges is None:
        path = edges if edges is not None else _edges_among(tables, nodes, options)
        if path not in tables:
            raise ValueError(f"{path} cannot be a table of edges; it must be a text or Parquet file")
        parts = replace(parts, edges=tables.pop(path))
        report.files[path.name] = f"edges; {report.files[path.name]}"
    if len(tables) > 1:
        raise ValueError(f"{few([path.name for path in tables])}: more than one table of nodes; join them first")
    for path, table in tables.items():
        parts = replace(parts, nodes=table)
        report.files[path.name] = f"nodes; {report.files[path.name]}"
    if parts.nodes is None and bags:
        name, bag = next(iter(bags.items()))
        parts = replace(parts, nodes=Table(pd.DataFrame({"id": list(bag)}), name), id="id")
    return parts


def _edges_among(tables: dict[Path, Table], nodes: Path | None, options: Options) -> Path:
    """Find out which table holds the edges: by the names of its columns, by its content, by the name of the file."""
    candidates = [path for path in tables if path != nodes]
    if not candidates:
        raise ValueError("there is no file of edges among the files")
    if len(candidates) == 1:
        if nodes is None:
            _require_edges(tables[candidates[0]], options)
        return candidates[0]
    if len(candidates) > 2:
        raise ValueError(
            f"{len(candidates)} tables; give one of edges and one of nodes, or say which with edges= and nodes="
        )
    first, second = candidates
    tests = [
        (_says_edges(tables[first], options), _says_edges(tables[second], options)),
        (edges_fit(tables[first], tables[second]), edges_fit(tables[second], tables[first])),
        ("edge" in first.name.lower(), "edge" in second.name.lower()),
    ]
    for one, other in tests:
        if one != other:
            return first if one > other else second
    raise ValueError(
        f"{first.name} and {second.name}: cannot tell which holds the edges; say so with edges= and nodes="
    )


def _says_edges(table: Table, options: Options) -> bool:
    named = {str(name) for name in (options.source, options.target) if name is not None} & set(table.frame.columns)
    labelled = isinstance(options.label, str) and options.label in table.frame.columns
    return bool(named) or (end_columns(table) is not None and not labelled)


def _require_edges(table: Table, options: Options) -> None:
    """Refuse a table of nodes that came alone."""
    if options.source is not None or end_columns(table) is not None:
        return
    names = table.named(*ID_NAMES, *LABEL_NAMES)
    if names or len(table.frame.columns) > 3:
        raise ValueError(
            f"{table.name} looks like a table of nodes (columns {few(list(table.frame.columns))}); give the file of edges "
            "too, or name its columns with source= and target="
        )


def _build(parts: _Parts, bags: Mapping[str, Mapping[Any, Any]], options: Options, report: ReadReport) -> Graph:
    assert parts.edges is not None
    directed = options.directed if options.directed is not None else bool(parts.directed)
    options = replace(options, directed=directed, id=options.id if parts.id is None else parts.id)
    if parts.nodes is None:
        _refuse_node_options(parts.edges, options)
    return build(parts.nodes, parts.edges, options, report, n=parts.n, bags=bags)


def _refuse_node_options(edges: Table, options: Options) -> None:
    for name in ("id", "label", "split", "features", "positions"):
        given = getattr(options, name)
        if given is not None and given is not False:
            raise ValueError(
                f"{name}={given!r} is a column of the nodes, but {edges.name} holds edges only; give the nodes"
            )


# -------------------------------------------------------------------- files with a whole graph


def _read_whole(path: Path, kind: str, options: Options, max_bytes: int, report: ReadReport) -> _Parts:
    if kind == "mtx":
        return _from_matrix(_read_mtx(path, max_bytes), path, "Matrix Market", options, report)
    if kind == "npz":
        arrays = read_npz(path, max_bytes)
        if {"format", "shape", "data"} <= arrays.keys():
            return _from_matrix(_sparse_from(arrays, path), path, "npz of a sparse matrix", options, report)
        return _Parts(graph=_graph_from_arrays(arrays, path, options, report))
    if kind == "pt":
        return _Parts(graph=_read_pyg(path, options, max_bytes, report))
    read = {"graphml": _read_graphml, "gml": _read_gml, "edgelist": _read_edgelist}[kind]
    with _reading(path, {"graphml": "GraphML", "gml": "GML", "edgelist": "an edge list of NetworkX"}[kind]):
        nx_graph = read(path, max_bytes)
    report.files[path.name] = f"{kind}, {nx_graph.number_of_nodes():,} nodes, {nx_graph.number_of_edges():,} edges"
    return _from_networkx(nx_graph, path, directed=None if kind == "edgelist" else nx_graph.is_directed())


def _from_matrix(matrix: coo_array, path: Path, what: str, options: Options, report: ReadReport) -> _Parts:
    import pandas as pd

    n = matrix.shape[0]
    if matrix.ndim != 2 or n != matrix.shape[1] or n == 0:
        raise ValueError(f"{path} holds a matrix of shape {matrix.shape}; an adjacency matrix is square")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{path} holds a matrix of {matrix.dtype}; weights are real numbers")
    _require_plausible(path, n, matrix.nnz)
    report.files[path.name] = f"{what}, {n:,} nodes, {matrix.nnz:,} entries"
    csr = matrix.astype(np.float64).tocsr()
    directed = (csr != csr.T).nnz > 0
    if not directed and not options.directed:
        csr = triu(csr, format="csr")
    arcs = csr.tocoo()
    frame = pd.DataFrame({"source": arcs.coords[0], "target": arcs.coords[1]})
    if np.any(arcs.data != 1):
        frame["weight"] = arcs.data
    return _Parts(edges=Table(frame, path.name), n=n, directed=directed)


def _read_mtx(path: Path, max_bytes: int) -> coo_array:
    from scipy.io import mminfo, mmread

    with _reading(path, "Matrix Market"), open_bytes(path, max_bytes) as stream:
        content = io.BytesIO(stream.read())
        rows, columns, entries, layout, *_ = mminfo(content)
        least = entries * _SHORTEST_ENTRY if layout == "coordinate" else rows * columns // 2
        if least > len(content.getbuffer()):
            raise ValueError(
                f"{path} declares {entries:,} entries, more than its {len(content.getbuffer()):,} bytes hold"
            )
        if layout == "coordinate":
            _require_plausible(path, max(rows, columns), entries)
        content.seek(0)
        return coo_array(mmread(content))


def _sparse_from(arrays: dict[str, Any], path: Path) -> coo_array:
    """Return the matrix that ``scipy.sparse.save_npz`` wrote."""
    layout = arrays["format"].item() if arrays["format"].size == 1 else ""
    layout = layout.decode(errors="replace") if isinstance(layout, bytes) else str(layout)
    wanted = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.get(layout)
    if wanted is None or not set(wanted) <= arrays.keys():
        raise ValueError(f"{path}: a sparse matrix of format {layout!r} cannot be read; save it as matrix.tocsr()")
    with _reading(path, f"a sparse matrix of format {layout!r}"):
        shape = tuple(int(extent) for extent in arrays["shape"])
        if len(shape) == 2:
            _require_plausible(path, max(shape), arrays["data"].size)
        if layout == "coo":
            matrix: Any = coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
        else:
            make = csr_array if layout == "csr" else csc_array
            matrix = make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        matrix.check_format() if layout != "coo" else None
        return matrix.tocoo()


# -------------------------------------------------------------------- arrays


def _graph_from_arrays(arrays: dict[str, Any], path: Path, options: Options, report: ReadReport) -> Graph:
    _only_array_options(options, path)

    def first(*names: str) -> Any:
        return next((arrays[name] for name in names if name in arrays), None)

    pairs = first("edge_index", "edges")
    if pairs is None:
        raise ValueError(
            f"{path} holds the arrays {few(sorted(arrays))}; a graph needs 'edge_index' or 'edges', or the layout of "
            "scipy.sparse.save_npz"
        )
    if "edge_index" in arrays:
        pairs = pairs.T
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{path}: edges must have shape (m, 2) and edge_index (2, m), got {pairs.shape[::-1]}")
    labels = first("y", "node_labels", "labels")
    if options.label is not None and options.label is not False:
        labels = arrays.get(str(options.label))
        if labels is None:
            raise ValueError(
                f"{path} has no array {options.label!r} for the label; {suggestion(options.label, arrays)}"
            )
    labels = (
        None
        if labels is None or options.label is False
        else labels.reshape(len(labels) if labels.ndim else 1, -1)[:, 0]
    )
    features = None if options.features is False else first("x", "node_features", "features")
    if features is None and options.features is not False and "x_data" in arrays:
        features = _csr_parts(arrays, path)
    n = first("num_nodes")
    n = len(labels) if n is None and labels is not None else n if n is None else int(n.item())
    n = features.shape[0] if n is None and features is not None else n
    if n is not None:
        _require_plausible(path, n, len(pairs) + (0 if labels is None else len(labels)))
    masks = (
        {}
        if options.split is False
        else {part: first(f"{part}_mask", f"{part}_masks") for part in ("train", "val", "test")}
    )
    graph = Graph.from_edges(
        pairs,
        first("edge_weight", "edge_weights", "weights"),
        n=n,
        directed=bool(options.directed),
        duplicates=options.duplicates,
        features=features,
        labels=labels,
        splits=_splits_from(masks, n, path),
        metric=options.metric,
    )
    report.files[path.name] = f"npz of arrays {few(sorted(arrays))}"
    _describe_arrays(graph, len(pairs), report)
    return graph


def _only_array_options(options: Options, path: Path) -> None:
    tabular = [name for name in ("id", "source", "target", "weight", "positions") if getattr(options, name) is not None]
    tabular += [name for name in ("split", "features") if getattr(options, name) not in (None, False)]
    if tabular:
        raise ValueError(f"{tabular[0]}= names a column of a table, but {path} holds arrays; leave it out")


def _csr_parts(arrays: dict[str, Any], path: Path) -> csr_array:
    with _reading(path, "features in x_data, x_indices, x_indptr and x_shape"):
        parts = [arrays[f"x_{part}"] for part in ("data", "indices", "indptr")]
        shape = tuple(int(extent) for extent in arrays["x_shape"])
        indices, indptr = (part.astype(np.int64) for part in parts[1:])
        return csr_array((parts[0], indices, indptr), shape=shape)


def _splits_from(masks: dict[str, Any], n: int | None, path: Path) -> list[tuple[Any, Any, Any]]:
    """Return the splits that masks of shape (n,), (k, n) or (n, k) describe."""
    if not any(mask is not None for mask in masks.values()):
        return []
    if any(mask is None for mask in masks.values()):
        raise ValueError(
            f"{path} has {few([part for part in masks if masks[part] is not None])} masks only; give all three"
        )
    stacked = {}
    for part, mask in masks.items():
        rows = np.atleast_2d(mask)
        rows = rows.T if rows.ndim == 2 and rows.shape[1] != n and rows.shape[0] == n else rows
        if rows.ndim != 2 or rows.shape[1] != n:
            raise ValueError(f"{path}: the {part} mask has shape {mask.shape}, but there are {n} nodes")
        stacked[part] = rows.astype(bool)
    if len({len(rows) for rows in stacked.values()}) > 1:
        raise ValueError(f"{path}: the masks hold different numbers of splits")
    return list(zip(stacked["train"], stacked["val"], stacked["test"], strict=True))


def _describe_arrays(graph: Graph, rows: int, report: ReadReport) -> None:
    report.columns["edges"] = "directed" if graph.directed else "undirected"
    report.columns["label"] = "none" if graph.labels is None else f"{graph.n_classes} classes"
    report.columns["splits"] = str(len(graph.splits))
    if graph.features is not None:
        report.features["x"] = f"{graph.features.shape[1]} columns"
    report.merged = max(0, rows - graph.n_edges)
    report.self_loops = int(np.count_nonzero(graph.adjacency.diagonal()))


# -------------------------------------------------------------------- NetworkX


def _read_graphml(path: Path, max_bytes: int) -> Any:
    nx = _import("networkx")
    with open_bytes(path, max_bytes) as stream:
        content = stream.read()
    _check_xml(content, path)
    return nx.read_graphml(io.BytesIO(content))


def _check_xml(content: bytes, path: Path) -> None:
    """Refuse XML that declares anything: entities can expand without end, or name other files."""
    from xml.parsers import expat

    depth = 0

    def refuse(*_: Any) -> None:
        raise ValueError(f"{path}, line {parser.CurrentLineNumber}: a DOCTYPE or entity, which is refused; remove it")

    def deeper(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST_XML:
            raise ValueError(f"{path}, line {parser.CurrentLineNumber}: elements more than {_DEEPEST_XML} deep")

    def higher(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = deeper, higher
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(
            f"{path}, line {error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
        ) from error


def _read_gml(path: Path, max_bytes: int) -> Any:
    nx = _import("networkx")
    with open_bytes(path, max_bytes) as stream:
        lines = stream.read().decode().splitlines()
    try:
        return nx.parse_gml(lines)
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.parse_gml(lines, label="id")  # labels that are missing, or not all different, name no nodes


def _read_edgelist(path: Path, max_bytes: int) -> Any:
    nx = _import("networkx")
    with open_bytes(path, max_bytes) as stream:
        lines = stream.read().decode().splitlines()
    return nx.parse_edgelist(lines, create_using=nx.MultiDiGraph, data=True)


def _from_networkx(nx_graph: Any, path: Path, directed: bool | None) -> _Parts:
    import pandas as pd

    if nx_graph.number_of_nodes() == 0:
        raise ValueError(f"{path} holds no nodes")
    columns = list(dict.fromkeys(name for _, data in nx_graph.nodes(data=True) for name in data))
    key = next(name for name in ("id", "node", "node key") if name not in columns)
    # What the file holds as text or number is not known to be meant so; text that is all numbers is taken for these.
    frame = pd.DataFrame({key: _as_integers(list(nx_graph.nodes))})
    for name in columns:
        frame[str(name)] = pd.Series([data.get(name) for _, data in nx_graph.nodes(data=True)])
    ends = {node: value for node, value in zip(nx_graph.nodes, frame[key], strict=True)}
    rows = list(nx_graph.edges(data="weight"))
    edges = {"source": [ends[u] for u, _, _ in rows], "target": [ends[v] for _, v, _ in rows]}
    if any(weight is not None for _, _, weight in rows):
        edges["weight"] = [1.0 if weight is None else weight for _, _, weight in rows]
    nodes = Table(frame, path.name)
    return _Parts(edges=Table(pd.DataFrame(edges), path.name), nodes=nodes, directed=directed, id=key)


def _as_integers(names: list[Any]) -> list[Any]:
    if all(isinstance(name, str) and re.fullmatch(r"0|-?[1-9]\d{0,17}", name) for name in names):
        return [int(name) for name in names]
    return names


# -------------------------------------------------------------------- PyTorch Geometric


def _read_pyg(path: Path, options: Options, max_bytes: int, report: ReadReport) -> Graph:
    _only_array_options(options, path)
    data = _load_pyg(path, max_bytes)
    attributes: dict[str, Any] = {"metric": options.metric}
    if options.label is not None:
        values = None if options.label is False else getattr(data, str(options.label), None)
        if values is None and options.label is not False:
            raise ValueError(f"{path} has no attribute {options.label!r} for the label")
        attributes["labels"] = None if values is None else np.asarray(values).reshape(len(values), -1)[:, 0]
    if options.features is False:
        attributes["features"] = None
    if options.split is False:
        attributes["splits"] = ()
    graph = Graph.from_pyg(data, directed=options.directed, duplicates=options.duplicates, **attributes)
    report.files[path.name] = "PyG data"
    _describe_arrays(graph, graph.n_edges, report)
    return graph


def _load_pyg(path: Path, max_bytes: int) -> Any:
    """Load tensors and PyG's plain data classes, nothing else."""
    import pickle

    torch = _import("torch")
    pyg = _import("torch_geometric.data.data", "torch_geometric")
    storage = _import("torch_geometric.data.storage", "torch_geometric")
    allowed = [pyg.Data, pyg.DataEdgeAttr, pyg.DataTensorAttr, storage.GlobalStorage]
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a file of torch.save as it is since torch 1.6 (a zip); save it again")
    with _reading(path, "PyG data"):
        with zipfile.ZipFile(path) as archive:
            declared = sum(member.file_size for member in archive.infolist())
            if declared > max_bytes:
                raise ValueError(f"{path} declares {declared:,} bytes, more than the {max_bytes:,} allowed")
            damaged = archive.testzip()
            if damaged is not None:
                raise ValueError(f"{path} is damaged: {damaged}")
        try:
            with torch.serialization.safe_globals(allowed):
                content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            culprit = re.search(r"GLOBAL (\S+)", str(error))
            asks = f"it asks for {culprit[1]}, which" if culprit else "it holds what"
            raise ValueError(
                f"{path}: {asks} is not loaded from files, as it could run code; save the Data object alone, "
                "or use Graph.from_pyg on the object in memory"
            ) from error
        return _single_data(content, path)


def _single_data(content: Any, path: Path) -> Any:
    """Return the one graph in what was loaded: a Data object, its dict, or an InMemoryDataset's (data, slices, class)."""
    if isinstance(content, tuple) and content:
        slices = content[1] if len(content) > 1 else None
        if slices and any(len(bounds) > 2 for bounds in slices.values()):
            raise ValueError(f"{path} holds several graphs; save the one that is meant")
        content = content[0]
    if isinstance(content, dict):
        content = SimpleNamespace(**content)
    if getattr(content, "edge_index", None) is None:
        raise ValueError(f"{path} holds {type(content).__name__} without an edge_index; save a Data object")
    return content
