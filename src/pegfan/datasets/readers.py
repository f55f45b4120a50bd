"""Graphs from files: tables of nodes and edges, and the usual formats for whole graphs.

Nothing in a file is ever executed: pickles are refused, PyG files are loaded with an allow-list of classes, XML with
declarations of its own is refused, and the size that a file claims is checked before memory is allocated for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, overload

from pegfan._checks import BadInput, check_flag, check_list, shown
from pegfan._limits import BYTE, CELL, COLUMN, JSON, NUMBER, allowed, require
from pegfan.datasets._columns import ID_NAMES
from pegfan.datasets._edges import END_NAMES, WEIGHT_NAMES, best_share, end_columns, some_ends
from pegfan.datasets._graph_files import Parts, read_whole, reading
from pegfan.datasets._header import edges_have_header, nodes_have_header
from pegfan.datasets._labels import LABEL_NAMES
from pegfan.datasets._table import Options, ReadReport, Table, TableOptions, few, nearest
from pegfan.datasets._text import TextSettings, open_bytes, read_text, require_columns
from pegfan.datasets.tables import best_id, build, edges_fit
from pegfan.graph import Graph

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


_Path = str | os.PathLike[str]


class ReadOptions(TableOptions, total=False):
    """What :func:`read_graph` may be told."""

    edges: _Path | Sequence[_Path] | None
    nodes: _Path | None
    format: str | Mapping[Any, str] | None
    delimiter: str | Mapping[Any, str] | None
    header: bool | Mapping[Any, bool] | None
    comments: str | None
    max_bytes: str | float | None


@overload
def read_graph(*paths: _Path, report: Literal[False] = False, **options: Unpack[ReadOptions]) -> Graph: ...


@overload
def read_graph(*paths: _Path, report: Literal[True], **options: Unpack[ReadOptions]) -> tuple[Graph, ReadReport]: ...


def read_graph(
    *paths: _Path,
    edges: _Path | Sequence[_Path] | None = None,
    nodes: _Path | None = None,
    format: str | Mapping[Any, str] | None = None,  # noqa: A002
    delimiter: str | Mapping[Any, str] | None = None,
    header: bool | Mapping[Any, bool] | None = None,
    comments: str | None = None,
    max_bytes: str | float | None = None,
    report: bool = False,
    **options: Unpack[TableOptions],
) -> Graph | tuple[Graph, ReadReport]:
    r"""Read a graph from a file, or from a file of edges and one of nodes.

    Parameters
    ----------
    *paths : path
        One file with a whole graph, or one of edges or several, possibly one of nodes, and JSON files of lists by node
        id, in any order: which is which is detected. Several files of edges are kinds of edges, named by the files. All
        but Parquet, npz and PyG files may be packed by gzip.

        =============  =====================================================================================
        text           .csv, .tsv, .txt, .edges, ...: edges (source, target, weight; with a header or not) or nodes
        Parquet        .parquet, .pq: edges or nodes
        JSON           .json: ``{id: [token, ...], ...}``, joined to the nodes as a bag of tokens
        Matrix Market  .mtx: a square matrix of weights
        npz            .npz of plain arrays: ``scipy.sparse.save_npz``; ``edge_index``, ``x`` (or ``x_data``,
                       ``x_indices``, ``x_indptr``, ``x_shape``), ``y`` and masks; or ``edges``, ``node_features``,
                       ``node_labels`` and masks; ``feature_names``
        GraphML, GML   .graphml, .gml: attributes of the nodes are the columns of the node table
        edge list      as NetworkX writes it, with ``{...}`` at the end of lines
        PyG            .pt: a ``Data`` object, loaded without running anything in the file
        =============  =====================================================================================
    edges, nodes : path, optional
        The file of edges, or a list of them, and the file of nodes, where the guess is wrong.
    format : str or dict, optional
        One of "text", "parquet", "json", "mtx", "npz", "graphml", "gml", "edgelist" and "pt", where the suffix does not
        say it; or a dict {path or file name: format}.
    delimiter : str or dict, optional
        A single character, " " for any white space; or a dict {path or file name: delimiter}.
    header : bool or dict, optional
        Whether the first line of text files holds the names of the columns; or a dict {path or file name: bool}. By
        default it does if a cell is a usual name or a text above numbers or dates, or, among texts only, if its cells
        are not among the ids of the other table nor among what is below them; the report says why.
    comments : str, optional
        Lines of text files that start with one of these characters are skipped wherever they are (in a file with
        quotes, only before the first row). By default lines before the first row that start with # or %; after it,
        such a line is a row if it has as many cells and rows do not begin with numbers, as an id may start with
        anything. The report counts both.
    max_bytes : int or str, optional
        The memory that reading a file may take, in bytes or as ``"8GB"``; by default 80 % of what is free. A file that
        claims more, by its rows, nodes or what it unpacks to, is refused before memory is taken.
    report : bool
        Whether to return the :class:`~pegfan.datasets.ReadReport` too.
    **options
        As in :func:`~pegfan.datasets.tables.graph_from_tables`: id, label, label_kind, split, features, source, target,
        weight, directed, duplicates, edge_columns, bipartite, unknown, missing, categories_max, positions, metric,
        schema. By
        default the graph is directed if the format or the names of the columns say so; npz arrays are undirected. For
        npz and PyG files only label (the name of the array), label_kind, split=False, features=False, directed,
        duplicates and metric apply.

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
    ...     _ = edges.write_text("7 8\n8 9\n")
    ...     _ = nodes.write_text("id,colour,size\n7,red,1.5\n8,blue,2\n9,red,\n")
    ...     graph, report = read_graph(edges, nodes, label="colour", report=True)
    >>> graph
    Graph(n=3, edges=2, undirected, features=2, classes=2)
    >>> print(report)
    read      edges.csv: edges; white space, no header, 2 rows
    read      nodes.csv: nodes; comma, header, 3 rows
    edges     'source' to 'target' (by name), undirected
    weight    none: every edge weighs 1
    id        'id' (by name)
    label     'colour' (as given): 2 classes, 0 of 3 nodes without
    feature   size: number, 1 missing: the mean and 'size missing'
    counts    0 repeated merged, 0 self loops, 0 unknown ids
    """
    chosen, account = Options.of(options), ReadReport()
    edge_files: list[Any] = []
    if edges is not None:
        edge_files = [edges] if isinstance(edges, str | os.PathLike) else check_list(edges, "edges", object)
    every = [existing(path) for path in (*paths, *edge_files, nodes) if path is not None]
    how = FileOptions(format, delimiter, header, comments, allowed(max_bytes))
    parts, bags = gather(
        every, chosen, account, how, list(map(Path, edge_files)), None if nodes is None else Path(nodes)
    )
    with complaints_about(*every):
        graph = parts.graph if parts.graph is not None else build_parts(parts, bags, chosen, account)
    return (graph, account) if check_flag(report, "report") else graph


class FileOptions(NamedTuple):
    """What the caller says about files, as in `read_graph`."""

    format: str | Mapping[Any, str] | None = None
    delimiter: str | Mapping[Any, str] | None = None
    header: bool | Mapping[Any, bool] | None = None
    comments: str | None = None
    max_bytes: int | None = None


def gather(
    every: Sequence[Path],
    options: Options,
    report: ReadReport,
    how: FileOptions,
    edges: Sequence[Path] = (),
    nodes: Path | None = None,
) -> tuple[Parts, dict[str, Any]]:
    """Read files, and say which is which: tables in their roles or a whole graph, and columns of lists by node id."""
    if not every:
        raise ValueError("read_graph needs at least one file")
    if len({path.name for path in every}) < len(every):
        raise ValueError(f"two files have the same name: {few([str(path) for path in every])}")
    formats = {path: file_format(path, for_file(how.format, path)) for path in every}
    wholes = [path for path in every if formats[path] not in ("text", "parquet", "json")]
    if len(wholes) > 1:
        raise BadInput(f"{wholes[0]} and {wholes[1]} each hold a graph; give one of them")
    tables = {path: read_table(path, options, report, how) for path in every if path not in wholes}
    bags = {path.name: tables.pop(path) for path in every if formats[path] == "json"}
    with complaints_about(*every):
        parts = read_whole(wholes[0], formats[wholes[0]], options, how.max_bytes, report) if wholes else Parts()
        if parts.graph is None:
            parts = _complete(parts, tables, bags, list(edges), nodes, options, report)
        elif tables or bags:
            raise BadInput(f"{wholes[0]} holds a whole graph, nodes included; leave out the other files")
    return parts, bags


def for_file(option: Any, path: Path) -> Any:
    """What the caller says about a file: of all alike, or by its path or name."""
    if not isinstance(option, Mapping):
        return option
    named = {Path(key): value for key, value in option.items()}
    return named.get(path, named.get(Path(path.name)))


def readable(path: Path) -> bool:
    """Whether a file's name says that `read_graph` may know its format."""
    return _suffix(path) in _SUFFIXES


def _suffix(path: Path) -> str:
    return next((suffix.lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "")


def existing(path: Any) -> Path:
    """Return the path of a file that is there and not empty, or say which may have been meant."""
    found = Path(path)
    if found.is_dir():
        raise IsADirectoryError(f"{found} is a folder; name the files in it")
    if not found.exists():
        beside = sorted(path.name for path in found.parent.iterdir()) if found.parent.is_dir() else []
        near = nearest(found.name, beside)
        raise FileNotFoundError(f"{found}: no such file{f' (did you mean {shown(near)}?)' if near else ''}")
    if found.stat().st_size == 0:
        raise BadInput(f"{found} is empty; was it written to the end? Give another file")
    return found


def known_names(options: Options) -> frozenset[str]:
    """Return the words that show the first line of a text file to be its header."""
    given = [options.id, options.label, options.source, options.target, options.weight, options.split]
    names = {str(name).lower() for name in given if isinstance(name, str)}
    for several in (options.split, options.features, options.positions):
        if isinstance(several, list | tuple | dict):
            names |= {str(name).lower() for name in several}
    pairs = {name for pair in END_NAMES for name in pair if len(name) > 1}
    return frozenset(names | pairs | set(ID_NAMES) | set(LABEL_NAMES) - {"y"} | set(WEIGHT_NAMES) - {"w"})


def file_format(path: Path, given: str | None) -> str:
    """Return the format of a file: given, by its suffix, or by how it starts."""
    if given is not None:
        if given not in _FORMATS:
            raise ValueError(f"format must be one of {', '.join(_FORMATS)}, got {shown(given)}")
        return given
    suffix = _suffix(path)
    if suffix in _REFUSED:
        raise BadInput(f"{path}: {_REFUSED[suffix]}; save the graph as CSV, Parquet, npz or GraphML")
    found = _SUFFIXES.get(suffix)
    if found in (None, "text"):
        with open_bytes(path, None) as stream:
            start = stream.read(4096)
        found = _by_content(path, start) if found is None else found
        if found == "text" and re.match(rb"(?:[#%][^\n]*\n|\s)*[^\n#%][^\n]*\{[^\n{}]*\}[ \t]*\r?(?:\n|$)", start):
            return "edgelist"
    return found


def _by_content(path: Path, start: bytes) -> str:
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:4] == b"PK\x03\x04":
        with reading(path, "a zip archive"), zipfile.ZipFile(path) as archive:
            return "npz" if any(name.endswith(".npy") for name in archive.namelist()) else "pt"
    if start[:1] == b"\x80":
        raise BadInput(f"{path} is a pickle, which can run code and is never read; save the graph in another format")
    for pattern, found in ((rb"%%MatrixMarket", "mtx"), (rb"\s*<", "graphml"), (rb"\s*\{", "json")):
        if re.match(pattern, start):
            return found
    return "gml" if re.search(rb"(?m)^\s*graph\s*\[", start) else "text"


@contextlib.contextmanager
def complaints_about(*paths: Path) -> Iterator[None]:
    """Name the files where the message does not: Graph does not know where its arrays come from."""
    try:
        yield
    except BadInput:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{', '.join(path.name for path in paths)}: {error}") from error


# -------------------------------------------------------------------- tables, and which is which


def read_table(
    path: Path, options: Options, report: ReadReport, how: FileOptions, names: frozenset[str] = frozenset()
) -> Any:
    """Read a file of rows, or a JSON file of lists; `names` are those that show the first line to be a header."""
    kind = file_format(path, for_file(how.format, path))
    known = known_names(options) | names
    settings = TextSettings(
        for_file(how.delimiter, path), for_file(how.header, path), how.comments, how.max_bytes, known
    )
    if kind == "json":
        bag = _read_json(path, settings.max_bytes)
        report.files[path.name] = f"lists of tokens of {len(bag):,} nodes"
        return bag
    if kind == "parquet":
        table, words = _read_parquet(path, settings.max_bytes)
    elif kind == "text":
        with reading(path, "a text table"):
            table, words = read_text(path, settings)
    else:
        raise BadInput(f"{path} holds a whole graph, not rows of a table; give text or Parquet files")
    report.files[path.name] = words
    return table


def _read_parquet(path: Path, max_bytes: int | None) -> tuple[Table, str]:
    from pyarrow import parquet

    with reading(path, "Parquet"), parquet.ParquetFile(path) as file:
        require_columns(path, file.metadata.num_columns)
        if max_bytes is not None:
            _require_parquet(path, file.metadata, max_bytes)
        table = file.read()
        table.validate(full=True)
        frame = table.to_pandas(ignore_metadata=True, split_blocks=True, self_destruct=True, date_as_object=False)
    frame.columns = ["index" if name == "__index_level_0__" else str(name) for name in frame.columns]
    if frame.columns.duplicated().any():
        raise BadInput(f"{path} has two columns named {frame.columns[frame.columns.duplicated()][0]!r}; rename one")
    return Table(frame, path.name), f"Parquet, {len(frame):,} rows"


def _require_parquet(path: Path, about: Any, max_bytes: int) -> None:
    """Refuse a file that takes too much memory by what it declares, or by texts that stand in it once for many rows."""
    from pyarrow import parquet

    chunks = [about.row_group(k).column(j) for k in range(about.num_row_groups) for j in range(about.num_columns)]
    widths = [max(8, about.schema.column(j).length) for j in range(about.num_columns)] * about.num_row_groups
    texts = [chunk.physical_type.endswith("BYTE_ARRAY") for chunk in chunks]
    cells = [max(CELL if text else NUMBER, 2 * width) for text, width in zip(texts, widths, strict=True)]
    held = sum(chunk.num_values * cell for chunk, cell in zip(chunks, cells, strict=True))
    held += sum((BYTE if text else 1) * c.total_uncompressed_size for c, text in zip(chunks, texts, strict=True))
    what = f"{path}: {about.num_rows:,} rows of {about.num_columns:,} columns"
    require(what, max(held, CELL * about.num_rows) + COLUMN * about.num_columns, max_bytes, pieces=True)
    coded = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page]
    if BYTE * sum(chunk.num_values * chunk.total_uncompressed_size for chunk in coded) <= max_bytes - held:
        return
    names = list(dict.fromkeys(chunk.path_in_schema for chunk in coded))
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(columns=names, use_threads=False):
            held += BYTE * sum(map(_text_bytes, batch.columns))
            require(f"{what}, with texts that repeat,", held, max_bytes, pieces=True)


def _text_bytes(values: Any) -> int:
    """How long texts are together that stand in a dictionary, alone or in lists."""
    import pyarrow as pa
    import pyarrow.compute as arrow

    if pa.types.is_dictionary(values.type):
        texts = values.dictionary
        if not (pa.types.is_string(texts.type) or pa.types.is_binary(texts.type)):
            return 0
        return int(arrow.sum(arrow.binary_length(texts).take(values.indices).cast(pa.int64())).as_py() or 0)
    if pa.types.is_struct(values.type):
        return sum(map(_text_bytes, values.flatten()))
    return _text_bytes(values.flatten()) if hasattr(values, "flatten") and pa.types.is_nested(values.type) else 0


def _read_json(path: Path, max_bytes: int | None) -> dict[str, list[Any]]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise BadInput(f"{path}: {shown(twice)} is given more than once")
        return found

    with reading(path, "JSON"), open_bytes(path, max_bytes, JSON) as stream:
        try:
            content = json.loads(stream.read().decode(), object_pairs_hook=unique)
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}, line {error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    if not isinstance(content, dict) or not content:
        raise BadInput(f'{path} must hold lists by node id, {{"id": [token, ...], ...}}')
    for key, tokens in content.items():
        if not isinstance(tokens, list) or any(isinstance(token, list | dict | None) for token in tokens):
            raise BadInput(
                f"{path}: node {shown(key)} must have a list of tokens, numbers or texts, got {str(tokens)[:60]}"
            )
    return content


def _complete(
    parts: Parts,
    tables: dict[Path, Table],
    bags: Mapping[str, Mapping[Any, Any]],
    edges: list[Path],
    nodes: Path | None,
    options: Options,
    report: ReadReport,
) -> Parts:
    """Add the tables to what a graph file gave, each in its role."""
    import pandas as pd

    if parts.nodes is not None and (tables or bags):
        raise ValueError("the graph file holds its nodes; leave out the other files")
    if parts.edges is None:
        for path in edges or _edges_among(tables, nodes, options):
            if path not in tables:
                raise BadInput(f"{path} cannot be a table of edges; it must be a text or Parquet file")
            table = tables.pop(path)
            others = (*parts.others, table) if parts.edges is not None else ()
            parts = replace(parts, edges=parts.edges or table, others=others)
            report.files[path.name] = f"edges; {report.files[path.name]}"
    if len(tables) > 1:
        raise BadInput(f"{few([path.name for path in tables])}: more than one table of nodes; join them first")
    for path, table in tables.items():
        parts = replace(parts, nodes=table)
        report.files[path.name] = f"nodes; {report.files[path.name]}"
    if parts.nodes is None and bags:
        name, bag = next(iter(bags.items()))
        parts = replace(parts, nodes=Table(pd.DataFrame({"id": list(bag)}), name), id="id")
    return _with_headers(parts, options, report)


def _with_headers(parts: Parts, options: Options, report: ReadReport) -> Parts:
    """Decide whether first lines are headers where each alone does not say: by which reading the ids match."""
    import pandas as pd

    assert parts.edges is not None
    nodes, tables = parts.nodes, []
    for table in (parts.edges, *parts.others):
        if table.other is not None and (ends := some_ends(table, options)) is not None:
            column = None if nodes is None else best_id(table, nodes, ends)
            tables.append(_settled(table, *edges_have_header(table, ends, nodes, column), "edges", report))
        else:
            tables.append(table)
    edges, *others = tables
    if nodes is not None and nodes.other is not None and (ends := some_ends(edges, options)) is not None:
        both = pd.concat([edges.series(column).astype("str") for column in ends])
        nodes = _settled(nodes, *nodes_have_header(nodes, both), "nodes", report)
    return replace(parts, edges=edges, others=tuple(others), nodes=nodes)


def _settled(table: Table, header: bool, why: str, role: str, report: ReadReport) -> Table:
    """Return the table as it is, or its other reading, and say why."""
    assert table.other is not None
    settled, how = (replace(table, other=None), report.files[table.name]) if header == table.header else table.other()
    how = how.removeprefix(f"{role}; ")
    report.files[table.name] = f"{role}; {how}" + (f"; a header, as {why}" if header and why else "")
    if why and not header:
        report.notes.append(f"{table.name}: {why}; --header (header=True) reads it as names")
    return settled


def _edges_among(tables: dict[Path, Table], nodes: Path | None, options: Options) -> list[Path]:
    """Decide which tables hold edges: by the names of their columns, by their content, by the names of the files."""
    candidates = [path for path in tables if path != nodes]
    if not candidates:
        raise ValueError("there is no file of edges among the files")
    if nodes is not None or len(candidates) == 1:
        if nodes is None:
            _require_edges(tables[candidates[0]], options)
        return candidates
    if len(candidates) > 2:
        return _edges_among_many(tables, options)
    first, second = candidates
    says = _says_edges(tables[first], options), _says_edges(tables[second], options)
    fits = edges_fit(tables[first], tables[second]), edges_fit(tables[second], tables[first])
    if says == (True, True) and max(fits) < 0.5 and tables[first].header and tables[second].header:
        return candidates
    for one, other in (says, fits, ("edge" in first.name.lower(), "edge" in second.name.lower())):
        if one != other:
            return [first if one > other else second]
    raise BadInput(
        f"{first.name} and {second.name}: cannot tell which holds the edges; name their columns with source= and "
        "target=, or in Python the files with edges= and nodes="
    )


def _edges_among_many(tables: dict[Path, Table], options: Options) -> list[Path]:
    """Of three tables or more, the nodes are in the one whose ids columns of the others hold; they are edges."""

    def fitting(path: Path) -> int:
        others = [table for other, table in tables.items() if other != path]
        return sum(best_share(table, tables[path]) >= 0.5 for table in others)

    def rank(path: Path) -> tuple[bool, bool, int, int]:
        table = tables[path]
        labelled = isinstance(options.label, str) and options.label in table.columns
        return labelled, not _says_edges(table, options), fitting(path), -table.size

    best = max(tables, key=rank)
    if _says_edges(tables[best], options) and not rank(best)[0]:
        return list(tables)  # all of them are named as edges are
    lost = [path.name for path in tables if path != best and best_share(tables[path], tables[best]) < 0.5]
    if lost:
        raise BadInput(
            f"{lost[0]}: no column holds ids of {best.name}, which seems to hold the nodes; leave it out, or say in "
            "Python which files are edges= and nodes="
        )
    return [path for path in tables if path != best]


def _says_edges(table: Table, options: Options) -> bool:
    named = {str(name) for name in (options.source, options.target) if name is not None} & set(table.columns)
    labelled = isinstance(options.label, str) and options.label in table.columns
    return bool(named) or (end_columns(table) is not None and not labelled)


def _require_edges(table: Table, options: Options) -> None:
    """Refuse a table of nodes that came alone."""
    if options.source is not None or end_columns(table) is not None:
        return
    weighted = table.named(*WEIGHT_NAMES)
    names = [] if weighted else [name for name in table.named(*ID_NAMES, *LABEL_NAMES) if name.lower() != "y"]
    if names or len(table.columns) > 3:
        raise BadInput(
            f"{table.name} looks like a table of nodes (columns {few(table.columns)}); give the file of "
            "edges too, or name its columns with source= and target="
        )


def build_parts(parts: Parts, bags: Mapping[str, Mapping[Any, Any]], options: Options, report: ReadReport) -> Graph:
    """Make the graph of tables in their roles."""
    assert parts.edges is not None
    directed = options.directed if options.directed is not None else parts.directed
    options = replace(options, directed=directed, id=options.id if parts.id is None else parts.id)
    for name in ("id", "label", "split", "features", "positions") if parts.nodes is None else ():
        given = getattr(options, name)
        if given is not None and given is not False:
            raise BadInput(
                f"{name}={shown(given)} is a column of the nodes, but {parts.edges.name} holds edges only; "
                "give the nodes"
            )
    return build(parts.nodes, [parts.edges, *parts.others], options, report, n=parts.n, bags=bags)
