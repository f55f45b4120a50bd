"""Tables in many files: which files, what they hold, and their columns one at a time.

A table is a file, several, a glob or a folder of Parquet or text files, in the order of their names; all have the same
columns. Text is turned into Parquet once, every cell as it is written, and a column gets its type when it is read
whole, by the very rules by which the reader of small files gives it one.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import glob, has_magic
from itertools import accumulate
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pegfan._atomic import replacing
from pegfan._checks import BadInput
from pegfan.datasets import _text
from pegfan.datasets._coded import Cells
from pegfan.datasets._graph_files import reading
from pegfan.datasets._table import Table, few
from pegfan.datasets._text import TextSettings
from pegfan.datasets.readers import FileOptions, existing, file_format, for_file, readable
from pegfan.large.pieces import Made, Stage, Task, Work

__all__ = ["Columns", "Source", "TablePaths", "find_source", "open_columns"]

TablePaths = str | PathLike[str] | Sequence[str | PathLike[str]]

KNOWN = "sources.json"
"""The file of the working folder that says which file has which content."""

_ROWS = 2**18
"""Rows of a batch, and of a row group of what was text."""


@dataclass(frozen=True)
class Source:
    """A table in files.

    Attributes
    ----------
    what
        What it is called in messages: the file, or the folder.
    kind
        "parquet" or "text".
    paths, digests
        The files, and a hash of the content of each.
    rows
        The rows of each row group of each file; empty for text, whose rows are counted when it is unpacked.
    columns
        The names of the columns.
    layout
        How the first file of a text table is laid out, and so all others.
    """

    what: str
    kind: str
    paths: tuple[Path, ...]
    digests: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...] = ()
    layout: Mapping[str, Any] | None = None

    @property
    def params(self) -> dict[str, Any]:
        """What stages that read it depend on: the content, not where it is."""
        return {
            "what": self.what,
            "kind": self.kind,
            "files": list(self.digests),
            "columns": list(self.columns),
            "layout": self.layout,
        }

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(path.stat().st_size for path in self.paths)


# ------------------------------------------------------------------------------------------------- which files


def find_source(work: Work, given: TablePaths, role: str, names: frozenset[str], how: FileOptions) -> Source:
    """The table that a path, several, a glob or a folder name.

    Parameters
    ----------
    work
        Whose folder remembers the hashes of files that do not change.
    given
        The path or paths.
    role
        "nodes" or "edges", for messages.
    names
        Words in small letters that show the first line of a text file to be its header.
    how
        What the caller says about text files.
    """
    paths = _paths(given, role)
    kinds = {path: file_format(path, for_file(how.format, path)) for path in paths}
    first = kinds[paths[0]]
    if first not in ("parquet", "text"):
        raise BadInput(
            f"{paths[0]}: beyond memory, {role} are read from Parquet or text files (CSV, TSV, .gz), not from {first}"
        )
    other = next((path for path, kind in kinds.items() if kind != first), None)
    if other is not None:
        raise BadInput(
            f"{paths[0]} is {first} and {other} is {kinds[other]}; the files of one table must be of one format: leave "
            "out the others, or name the files with a pattern such as 'folder/*.parquet'"
        )
    what = paths[0].name if len(paths) == 1 else f"{_called(given)} ({len(paths)} files)"
    digests = tuple(_digests(work, paths))
    if first == "parquet":
        columns, rows = _parquet_columns(paths)
        return Source(what, first, tuple(paths), digests, columns, rows)
    layout = _text_layout(paths, names, how)
    return Source(what, first, tuple(paths), digests, tuple(layout["names"]), (), layout)


def _called(given: TablePaths) -> str:
    return fspath(given) if isinstance(given, str | PathLike) else Path(fspath(next(iter(given)))).parent.name


def _paths(given: TablePaths, role: str) -> list[Path]:
    every = [given] if isinstance(given, str | PathLike) else list(given)
    found: dict[Path, None] = {}
    for one in every:
        path = Path(one)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._" and readable(p))
            if not inside:
                raise BadInput(f"{path} has no Parquet or text files; name the folder or the files of the {role}")
        elif not path.exists() and has_magic(str(one)):
            inside = sorted(Path(p) for p in glob(str(one), recursive=True) if Path(p).is_file())
            if not inside:
                raise BadInput(f"no file matches {str(one)!r}; name the files of the {role}")
        else:
            inside = [path]
        found |= dict.fromkeys(existing(p) for p in inside)
    if not found:
        raise BadInput(f"there are no files of {role}; name at least one")
    return list(found)


def _digests(work: Work, paths: Iterable[Path]) -> Iterator[str]:
    """The hashes of files; those of files that have not changed since are remembered."""
    known = _known(work.folder)
    for path in paths:
        about, key = path.stat(), str(path.absolute())
        if known.get(key, [])[:2] != [about.st_size, about.st_mtime_ns]:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
            known[key] = [about.st_size, about.st_mtime_ns, digest]
            with replacing(work.folder / KNOWN) as file:
                file.write(json.dumps(known).encode())
        yield str(known[key][2])


def _known(folder: Path) -> dict[str, list[Any]]:
    try:
        found = json.loads((folder / KNOWN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(folder: Path, digests: Iterable[str]) -> list[Path]:
    """Where files of some content are; they must not have changed."""
    places: dict[str, list[Path]] = {}
    changed: dict[str, Path] = {}
    for name, (size, stamp, digest) in _known(folder).items():
        path = Path(name)
        try:
            about = path.stat()
            same = [about.st_size, about.st_mtime_ns] == [size, stamp]
        except OSError:
            same = False
        if same:
            places.setdefault(digest, []).append(path)
        else:
            changed[digest] = path
    found = []
    for digest in digests:
        if digest not in places:
            raise BadInput(
                f"{changed.get(digest, 'a file')} is not there any more, or was changed while it was read; run "
                "the same command again"
            )
        found.append(places[digest][0])
    return found


# ------------------------------------------------------------------------------------------------- what they hold


def _parquet_columns(paths: Sequence[Path]) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """The columns that all files have, and the rows of their row groups."""
    from pyarrow import parquet

    columns: tuple[str, ...] = ()
    types: dict[str, Any] = {}
    rows = []
    for path in paths:
        with reading(path, "Parquet"), parquet.ParquetFile(path) as file:
            schema, about = file.schema_arrow, file.metadata
            names = tuple(_shown_name(name) for name in schema.names)
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise BadInput(f"{path} has two columns named {twice!r}; rename one")
            if not types:
                columns = names
            elif set(names) != set(columns):
                lacking, strange = sorted(set(columns) - set(names)), sorted(set(names) - set(columns))
                differs = f"lacks {few(lacking)}" if lacking else f"has {few(strange)} besides"
                raise BadInput(
                    f"{path} {differs}, compared with {paths[0].name}; the files of one table must have the same "
                    "columns: give them, or leave the file out"
                )
            for name, kind in zip(names, schema.types, strict=True):
                if types.setdefault(name, kind) != kind and not _alike(types[name], kind):
                    raise BadInput(
                        f"{path}: column {name!r} holds {kind}, and {types[name]} in {paths[0].name}; write it alike "
                        "in all files"
                    )
            rows.append(tuple(about.row_group(k).num_rows for k in range(about.num_row_groups)))
    return columns, tuple(rows)


def _shown_name(name: str) -> str:
    """The name of a column; pandas writes an index without a name so."""
    return "index" if name == "__index_level_0__" else name


def _alike(one: Any, other: Any) -> bool:
    """Whether columns of two types can be joined without loss."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(one) or types.is_null(other):
        return True
    return any(
        is_kind(_plain(one)) and is_kind(_plain(other))
        for is_kind in (types.is_integer, types.is_floating, types.is_string)
    )


def _plain(kind: Any) -> Any:
    """The type of the values of a dictionary, and one type for all that hold text."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return pa.string() if any(is_kind(kind) for is_kind in texts) else kind


def _text_layout(paths: Sequence[Path], names: frozenset[str], how: FileOptions) -> dict[str, Any]:
    """How the first file is laid out, which the others must be alike."""
    first = paths[0]
    settings = _settings(how, first, names)
    with reading(first, "a text table"):
        layout = _text.find_layout(first, settings, look=False)
        if not layout.sure:
            raise BadInput(
                f"{first}: the first line may be a header or not; say header=True or header=False "
                "(--header, --no-header)"
            )
    found = {
        "delimiter": layout.delimiter,
        "header": layout.header,
        "comments": settings.comments,
        "decimal": layout.decimal,
        "spaced": layout.spaced,
        "names": layout.names,
        "as_text": layout.as_text,
    }
    for path in paths[1:]:
        with reading(path, "a text table"):
            other = _text.find_layout(path, _told(found), look=False)
        if other.names != layout.names:
            raise BadInput(
                f"{path}: its columns are {few(other.names)}, and those of {first.name} {few(layout.names)}; the files "
                "of one table must have the same columns, and all a header or none"
            )
    return found


def _settings(how: FileOptions, path: Path, names: frozenset[str]) -> TextSettings:
    return TextSettings(for_file(how.delimiter, path), for_file(how.header, path), how.comments, known_names=names)


def _told(layout: Mapping[str, Any]) -> TextSettings:
    return TextSettings(layout["delimiter"], layout["header"], layout["comments"])


# ------------------------------------------------------------------------------------------------- text into Parquet


def unpack_text(task: Task) -> dict[str, Any]:
    """A piece: the rows of a text file as Parquet, every cell as it is written."""
    import pyarrow as pa
    import pyarrow.compute as arrow
    from pyarrow import parquet

    about = task.params["table"]
    path = _files(task.place, about["files"])[task.block]
    layout = _layout(path, about["layout"])
    groups: list[int] = []
    sound = False  # whether quotes were looked at
    target = task.folder / "table.parquet"
    for block in (_text.BLOCK, _text.LARGEST_BLOCK):
        groups = []
        try:
            with _text.open_as_text(layout, block) as reader, parquet.ParquetWriter(target, reader.schema) as writer:
                for batch in _gathered(reader):
                    columns = batch.columns
                    if layout.quoted and not sound and _text.hold_line_ends(columns):
                        _text.require_quotes_to_close(layout)
                        sound = True
                    if layout.spaced:
                        columns = [arrow.ascii_trim(column, characters=" ") for column in columns]
                    writer.write_batch(pa.record_batch(columns, schema=reader.schema))
                    groups.append(len(batch))
            break
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block == _text.LARGEST_BLOCK:
                raise BadInput(_text.diagnosis(layout, str(error))) from error
    return {"rows": sum(groups), "groups": groups, "marked": _text.marked_words(layout).removeprefix(", ")}


def _layout(path: Path, told: Mapping[str, Any]) -> Any:
    layout = _text.find_layout(path, _told(told))
    if layout.odd_quotes:
        _text.require_quotes_to_close(layout)
    return replace(layout, decimal=told["decimal"], spaced=told["spaced"])


def _gathered(reader: Iterable[Any]) -> Iterator[Any]:
    """Batches of many rows each."""
    import pyarrow as pa

    held: list[Any] = []
    for batch in reader:
        held.append(batch)
        if sum(map(len, held)) >= _ROWS:
            yield pa.concat_batches(held)
            held = []
    if held and sum(map(len, held)):
        yield pa.concat_batches(held)


def unpacked(work: Work, source: Source) -> dict[str, Stage]:
    """The stage that turns a text table into Parquet, by the name that readers know it by; nothing for Parquet."""
    if source.kind != "text":
        return {}
    words = f"reading {source.what}"
    return {"table": work.stage(unpack_text, {"table": source.params}, {}, len(source.paths), words)}


def row_groups(source: Source, stages: Mapping[str, Stage]) -> list[list[int]]:
    """The rows of each row group of each file."""
    if "table" in stages:
        return [result["groups"] for result in stages["table"].results]
    return [list(groups) for groups in source.rows]


# ------------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Columns:
    """The columns of a table in files, read from Parquet.

    Attributes
    ----------
    what
        What the table is called.
    names
        Its columns.
    originals
        The files that the user gave.
    paths
        The Parquet files with the rows.
    place
        A folder for temporary files.
    layout
        How a text table is laid out; None for Parquet.
    """

    what: str
    names: tuple[str, ...]
    originals: tuple[Path, ...]
    paths: tuple[Path, ...]
    place: Path
    layout: Mapping[str, Any] | None = None

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first row of every file, and of all rows."""
        from pyarrow import parquet

        counts = []
        for path, original in zip(self.paths, self.originals, strict=True):
            with reading(original, "Parquet"), parquet.ParquetFile(path) as file:
                counts.append(file.metadata.num_rows)
        return [0, *accumulate(counts)]

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.starts[-1]

    def where(self, file: int, row: int) -> str:
        """The place of a row of a file, for error messages."""
        path = self.originals[file]
        if self.layout is None:
            return f"{path}, row {row}"
        return f"{path}, line {_text.line_of(_layout(path, self.layout), row)}"

    def arrow(self, column: str, most: int | None = None) -> Any:
        """A column, or its first rows, as a chunked array."""
        chunks, held = [], 0
        for file in range(len(self.paths)):
            for batch in self.batches(file, None, [column]):
                chunks.append(batch.column(0))
                held += len(batch)
                if most is not None and held >= most:
                    break
            if most is not None and held >= most:
                break
        found = _joined(chunks)
        return found if most is None else found.slice(0, most)

    def batches(self, file: int, groups: Sequence[int] | None, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of a file, or of some of its row groups, in batches."""
        from pyarrow import parquet

        with reading(self.originals[file], "Parquet"), parquet.ParquetFile(self.paths[file]) as reader:
            stored = {_shown_name(name): name for name in reader.schema_arrow.names}
            wanted = [stored[name] for name in columns]
            for batch in reader.iter_batches(_ROWS, groups, wanted, use_threads=False):
                batch.validate(full=True)  # a file may claim anything, and loops in C believe it
                yield batch.select(wanted)

    def series(self, column: str, most: int | None = None) -> Any:
        """A column, or its first rows, as the reader of small files gives it."""
        import pyarrow as pa

        found = self.arrow(column, most)
        if self.layout is not None:
            return _typed(found, column, self.layout, self.place)
        table = pa.table({column: found})
        return table.to_pandas(ignore_metadata=True, split_blocks=True, self_destruct=True, date_as_object=False)[
            column
        ]

    def as_written(self, column: str, most: int | None = None) -> Any:
        """A column of a text table as the texts that it holds."""
        return self.arrow(column, most).to_pandas().rename(column)

    def table(self, columns: Sequence[str] | None = None, most: int | None = None) -> Table:
        """The table, or its first rows, as the reader of small files knows tables; columns are read when asked for."""
        names = self.names if columns is None else columns
        size = self.size if most is None else min(most, self.size)
        cells = _OnDisk(list(names), size, lambda column, some: self.series(column, _least(most, some)))
        verbatim = None if self.layout is None else lambda column: self.as_written(column, most)
        header = self.layout is None or bool(self.layout["header"])
        return _Placed(cells, self.what, header=header, verbatim=verbatim, stem=None, files=self)


def _least(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)


def _joined(chunks: list[Any]) -> Any:
    """Chunks of a column as one; files may hold numbers of several widths."""
    import pyarrow as pa

    kinds = dict.fromkeys(chunk.type for chunk in chunks)
    if len(kinds) <= 1:
        return pa.chunked_array(chunks, None if kinds else pa.string())
    plain = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
    tables = [pa.table({"column": chunk}) for chunk in plain]
    return pa.concat_tables(tables, promote_options="permissive")["column"]


def _typed(texts: Any, column: str, layout: Mapping[str, Any], place: Path) -> Any:
    """A column of a text table with the type that its cells have: they are parsed as those of a file of one column."""
    import pyarrow as pa
    from pyarrow import csv

    with tempfile.NamedTemporaryFile(dir=place, prefix="tmp-column-", suffix=".csv") as file:
        options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
        csv.write_csv(pa.table({column: texts}), file.name, options)
        whole = _text.one_column(Path(file.name), column, layout["decimal"], as_text=column in layout["as_text"])
        return whole[column]


class _OnDisk(Cells):
    """Columns that are read when they are asked for, and not kept."""

    def __init__(self, columns: list[str], size: int, read: Callable[[str, int | None], Any]) -> None:
        super().__init__(columns, {}, None)
        self._size, self._read = size, read

    def __len__(self) -> int:
        return self._size

    def series(self, column: str, most: int | None = None) -> Any:
        """A column, or its first rows."""
        return self._read(column, most)

    def without(self, columns: Sequence[str]) -> _OnDisk:
        """The others."""
        return _OnDisk([name for name in self.columns if name not in columns], self._size, self._read)


@dataclass(frozen=True)
class _Placed(Table):
    """A table that says of a row in which file it is."""

    files: Columns | None = None

    def where(self, row: Any) -> str:
        """The place of a row, for error messages."""
        assert self.files is not None
        starts, row = self.files.starts, int(row)
        file = max(k for k, start in enumerate(starts[:-1]) if start <= row)
        return self.files.where(file, row - starts[file])


def open_columns(task: Task, name: str) -> Columns:
    """The columns of a table that a task reads: ``params[name]`` says which; the input `name` holds what was text."""
    about = task.params[name]
    originals = tuple(_files(task.place, about["files"]))
    made: Made | None = task.inputs.get(name)
    paths = originals if made is None else tuple(made.path("table.parquet", k) for k in range(made.count))
    return Columns(about["what"], tuple(about["columns"]), originals, paths, task.folder, about["layout"])
