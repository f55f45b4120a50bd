"""Which files hold the nodes and which the edges, of any number of them, and how much is in them: from a look at each.

Files with the same columns are parts of one table, in the order of their names. Which table is which is found as for
graphs that fit in memory, from the first rows.
"""

from __future__ import annotations

import glob
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegfan._checks import BadInput
from pegfan.datasets._table import Options, ReadReport, few
from pegfan.datasets._text import is_packed, open_bytes
from pegfan.datasets.readers import FileOptions, existing, gather, read_table, readable

__all__ = ["Inputs", "Sizes", "find_inputs", "measure"]

_PARQUET = (".parquet", ".pq")
_HEAD, _ROWS = 262_144, 2_000
"""Bytes of a text file, and rows of a Parquet file, that are looked at to see what is in it."""
_SAMPLES = 8
"""Places of a text file where the length of its lines is looked at."""
_FIX = "leave out --memory to read it in memory"


@dataclass(frozen=True)
class Inputs:
    """The files of a graph.

    Attributes
    ----------
    nodes, edges
        The parts of the tables, in order; `nodes` is empty where only edges are given.
    """

    nodes: tuple[Path, ...]
    edges: tuple[Path, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return self.nodes + self.edges


def expand(where: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that names, folders and patterns such as ``edges/*.parquet`` stand for, each once."""
    found: list[Path] = []
    for entry in (os.fspath(one) for one in where):
        path = Path(entry)
        if path.is_dir():
            inside = sorted(
                file for file in path.iterdir() if file.is_file() and file.name[0] not in "._" and readable(file)
            )
            if not inside:
                raise FileNotFoundError(f"the folder {path} holds no table: CSV or Parquet")
            found += inside
        elif not path.exists() and glob.has_magic(entry):
            inside = sorted(Path(name) for name in glob.glob(entry, recursive=True) if Path(name).is_file())
            if not inside:
                raise FileNotFoundError(f"no file fits {entry}; is the path right?")
            found += inside
        elif not path.exists() and not path.suffix and len(path.parts) == 1:
            raise FileNotFoundError(f"{entry}: no such file or folder; a data set that has a name fits: {_FIX}")
        else:
            found.append(existing(path))
    return list(dict.fromkeys(found))


def find_inputs(where: Sequence[str | os.PathLike[str]], **options: Any) -> Inputs:
    r"""The tables of nodes and edges among files, folders and patterns.

    Parameters
    ----------
    where
        Files, folders and patterns.
    **options
        Options of `pegfan.read_graph` that say which columns are what: id, label, source, target, header, ...

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a", "b"):
    ...         _ = Path(folder, f"{name}.csv").write_text("source,target\n1,2\n2,3\n")
    ...         _ = Path(folder, f"people {name}.csv").write_text("id,age\n1,30\n2,40\n")
    ...     found = find_inputs([folder])
    >>> [file.name for file in found.nodes], [file.name for file in found.edges]
    (['people a.csv', 'people b.csv'], ['a.csv', 'b.csv'])
    """
    files = expand(where)
    for file in files:
        if not _is_parquet(file) and not _is_text(file):
            raise BadInput(f"{file} is no table that can be read in pieces; give CSV or Parquet files, or {_FIX}")
    given = {name: value for name, value in options.items() if value is not None}
    given.pop("max_bytes", None)  # of what is read at once; here it is read in pieces
    how = FileOptions(**{name: given.pop(name) for name in FileOptions._fields if name in given})
    chosen = Options.of(given)
    alone = Counter(file.name for file in files)
    with tempfile.TemporaryDirectory(prefix="pegfan-") as place:
        tables: dict[tuple[str, ...], list[Path]] = {}
        heads: dict[tuple[str, ...], Path] = {}
        for number, file in enumerate(files):
            inside = Path(place, str(number))
            inside.mkdir()
            head = _write_head(
                file, inside / (file.name if alone[file.name] == 1 else f"{file.parent.name}-{file.name}")
            )
            columns = tuple(read_table(head, chosen, ReadReport(), how).columns)
            tables.setdefault(columns, []).append(file)
            if columns in heads:
                head.unlink()
            heads.setdefault(columns, head)
        if len(tables) > 2:
            names = few([parts[0].name for parts in tables.values()])
            raise BadInput(
                f"{names} have different columns, and in pieces a graph has one table of nodes and one of edges; give "
                f"the parts of a table the same columns, or {_FIX}"
            )
        parts, _ = gather(list(heads.values()), chosen, ReadReport(), how)
    whole = {heads[columns].name: tuple(files) for columns, files in tables.items()}
    assert parts.edges is not None
    if parts.others:
        names = few([files[0].name for files in whole.values()])
        raise BadInput(f"{names} are two tables of edges, and in pieces a graph has one; join them, or {_FIX}")
    return Inputs(() if parts.nodes is None else whole[parts.nodes.name], whole[parts.edges.name])


@dataclass(frozen=True)
class Sizes:
    """How much there is to do, as far as a look at the files tells.

    Attributes
    ----------
    nodes, edges
        Rows of the tables; without a table of nodes, a guess at how many the edges join.
    columns
        Columns of the table of nodes beside the id.
    file_bytes
        Bytes of all files.
    guessed
        Whether rows were counted from the length of some lines.
    """

    nodes: int
    edges: int
    columns: int
    file_bytes: int
    guessed: bool = False


def measure(inputs: Inputs) -> Sizes:
    """How many rows and columns the tables have: by the metadata of Parquet files, by some lines of text files.

    Parameters
    ----------
    inputs
        What `find_inputs` found.
    """
    counts = [[_rows(file) for file in part] for part in (inputs.nodes, inputs.edges)]
    nodes, edges = (sum(count for count, _ in part) for part in counts)
    guessed = any(guess for part in counts for _, guess in part)
    if not inputs.nodes:
        nodes, guessed = max(1, edges // 5), True
    columns = max(0, _columns(inputs.nodes[0]) - 1) if inputs.nodes else 0
    return Sizes(nodes, edges, columns, sum(file.stat().st_size for file in inputs.files), guessed)


def rough_memory(files: Sequence[Path]) -> float:
    """The bytes that a graph of these files takes in memory while it is read and trained on, by their sizes alone.

    Text takes about twice its size once its ids are numbers and its edges are in order, and Parquet, which is packed,
    five times; training takes as much again.
    """
    factors = {".gz": 20.0, **dict.fromkeys(_PARQUET, 10.0)}
    return sum(factors.get(file.suffix.lower(), 4.0) * file.stat().st_size for file in files if file.is_file())


# ------------------------------------------------------------------------------------------ inside


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() in _PARQUET


def _is_text(file: Path) -> bool:
    name = file.name.lower().removesuffix(".gz")
    return name.endswith((".csv", ".tsv", ".tab", ".txt", ".edges", ".edgelist", ".el", ".dat", ".data"))


def _write_head(file: Path, head: Path) -> Path:
    """Write the first rows of a file to another."""
    if _is_parquet(file):
        from pyarrow import Table, parquet

        try:
            with parquet.ParquetFile(file) as source:
                first = next(source.iter_batches(_ROWS), None)
                rows = source.schema_arrow.empty_table() if first is None else Table.from_batches([first])
        except (OSError, ValueError) as error:
            raise BadInput(
                f"{file} is not a Parquet file that can be read ({error}); was it written to the end?"
            ) from error
        parquet.write_table(rows, head)
        return head
    with open_bytes(file, None) as stream:
        text = stream.read(_HEAD)
    if len(text) == _HEAD:
        text = text[: text.rfind(b"\n") + 1] or text
    head = head.with_name(head.name.removesuffix(".gz"))
    head.write_bytes(text)
    return head


def _rows(file: Path) -> tuple[int, bool]:
    """How many rows a file has, and whether that is a guess."""
    if _is_parquet(file):
        from pyarrow import parquet

        return int(parquet.read_metadata(file).num_rows), False
    size = file.stat().st_size
    if is_packed(file):
        with open_bytes(file, None) as stream:
            text = stream.read(_HEAD)
        return int(4 * size / max(1.0, len(text) / max(1, text.count(b"\n")))), True  # text packs to a quarter or so
    if size <= _SAMPLES * _HEAD:
        text = file.read_bytes()
        return max(0, text.count(b"\n") - 1), False
    lines = length = 0
    with file.open("rb") as stream:
        for place in range(_SAMPLES):
            stream.seek(place * (size - _HEAD) // (_SAMPLES - 1))
            text = stream.read(_HEAD)
            lines, length = lines + text.count(b"\n"), length + len(text)
    return int(size * lines / max(1, length)), True


def _columns(file: Path) -> int:
    if _is_parquet(file):
        from pyarrow import parquet

        return int(parquet.read_metadata(file).num_columns)
    with tempfile.TemporaryDirectory(prefix="pegfan-") as place:
        head = _write_head(file, Path(place) / file.name)
        return len(read_table(head, Options.of({}), ReadReport(), FileOptions()).columns)
