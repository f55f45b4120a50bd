"""Where a graph comes from, as a value: a name or files and how to read them. It can be stored and opened again."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from pegfan._checks import check_kind, check_mapping, check_path, shown
from pegfan.datasets._kept import keep, read_kept
from pegfan.datasets._schema import Schema
from pegfan.datasets._table import ReadReport, nearest
from pegfan.datasets.benchmarks import info, load, names
from pegfan.datasets.growth import Growth, read_growth
from pegfan.datasets.readers import read_graph, readable
from pegfan.datasets.synthetic import synthetic
from pegfan.graph import Graph

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A data set's name, ``"synthetic"``, a file, a folder of files, or several files; and options for the reader.

    Attributes
    ----------
    where
        The name or the paths. A name means the data set even where there is a file of that name: write
        ``./cora``, or a `Path`, for the file.
    options
        Arguments of `load`, `synthetic` or `read_graph`.

    Examples
    --------
    >>> graph, report = Source.of("synthetic", gamma=0.2, n=300, n_edges=900, n_features=5).open()
    >>> graph
    Graph(n=300, edges=900, undirected, features=5, classes=4, splits=1)
    """

    where: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *where: str | os.PathLike[str], **options: Any) -> Self:
        """Make a source; options that are None are left out."""
        if not where:
            raise ValueError("no graph given; name a data set (pegfan datasets lists them) or files")
        return cls(tuple(map(_as_text, where)), {k: v for k, v in options.items() if v is not None})

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The source that `to_dict` wrote."""
        check_mapping(stored, "stored")
        where = stored.get("where")
        if not isinstance(where, list | tuple) or not all(isinstance(one, str) for one in where):
            raise ValueError(f"this is not what Source.to_dict wrote: where is {shown(where)}")
        return cls.of(*where, **check_mapping(stored.get("options", {}), "options"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and TOML."""
        return {"where": list(self.where), "options": dict(self.options)}

    @property
    def name(self) -> str:
        """What to call the graph."""
        return self.where[0] if len(self.where) == 1 else " + ".join(Path(path).name for path in self.where)

    @property
    def files(self) -> list[Path]:
        """The files that are read; none for names."""
        if self._by_name():
            return []
        return [file for path in self.where for file in _files(Path(path))]

    def hashes(self) -> dict[Path, bytes]:
        """The SHA-256 of every file; files are read again only if their size or time changed."""
        return {file: _hash(file, state.st_size, state.st_mtime_ns) for file in self.files for state in [file.stat()]}

    def fingerprint(self, hashes: Mapping[Path, bytes] | None = None) -> str:
        """A hash of what is read: of the files' bytes and the options, not of where the files are.

        Parameters
        ----------
        hashes
            Those that the files had at some time; by default as they are now.
        """
        # How much memory reading may take changes nothing about what is read.
        options = {name: value for name, value in self.options.items() if name != "max_bytes"}
        digest = hashlib.sha256(repr(sorted(options.items())).encode())
        known = self.hashes() if hashes is None else check_mapping(hashes, "hashes")
        parts = sorted(known.values())
        for part in parts or [str(_known_name(self.where[0])).encode()]:
            digest.update(part)
        return digest.hexdigest()[:16]

    def open(self, schema: Schema | None = None) -> tuple[Graph, ReadReport | None]:
        """Read the graph, and for files the report of what was guessed; with a schema, as the tables that it is of."""
        if schema is not None:
            check_kind(schema, "schema", Schema)
        report: ReadReport | None = None
        _log.debug("reading %s with %s", ", ".join(self.where), dict(self.options))
        if not self._by_name():
            graph, report = read_graph(*self.files, report=True, **{**self.options, "schema": schema})
        elif self.where[0] == "synthetic":
            graph = synthetic(**{"gamma": 0.0, **self.options})
        else:
            graph = load(self.where[0], **self.options)
        _log.info("read %s: %d nodes, %d edges", self.name, graph.n, graph.n_edges)
        return graph, report

    def keep(self, folder: str | os.PathLike[str]) -> list[str]:
        """Copy the files, packed, to a folder that is not there yet; `kept` reads them from it.

        Parameters
        ----------
        folder
            Where; it holds all that the files hold, ids and labels included.
        """
        if self._by_name():
            raise ValueError(f"{self.name} is a data set, which has no files to keep")
        return keep(check_path(folder, "folder"), self.files, self.options)

    @classmethod
    def kept(cls, folder: str | os.PathLike[str]) -> Self:
        """The source that `keep` wrote; files that were changed since are a ValueError.

        Parameters
        ----------
        folder
            Where.
        """
        files, options = read_kept(check_path(folder, "folder"))
        return cls.of(*files, **options)

    def grown(self, *paths: str | os.PathLike[str], schema: Schema | None = None, **options: Any) -> Growth:
        r"""Read the graph, and the graph with new rows added to its tables.

        New rows of nodes that were known take the place of the old; new rows of edges are added. Which table rows
        belong to is told by the names of their columns. Columns that they lack count as missing, those that they have
        besides are not used, and edges with ends in neither table of nodes are left out: the report names them all.

        Parameters
        ----------
        *paths
            Files or folders with new rows: of nodes, of edges, or of both.
        schema
            How the tables were read before, see `Schema`.
        **options
            In place of those of the source.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     place = pathlib.Path(folder)
        ...     _ = (place / "nodes.csv").write_text("id,size\nann,1\nbob,2\ncat,5\n")
        ...     _ = (place / "edges.csv").write_text("source,target\nann,bob\nbob,cat\n")
        ...     _ = (place / "new.csv").write_text("id,size\ncat,3\ndan,4\n")
        ...     _ = (place / "links.csv").write_text("source,target\ndan,ann\ndan,eve\n")
        ...     before = Source.of(place / "nodes.csv", place / "edges.csv")
        ...     growth = before.grown(place / "new.csv", place / "links.csv")
        >>> growth.graph, growth.updated
        (Graph(n=4, edges=3, undirected, features=1), 1)
        >>> growth.places.tolist(), growth.report.unknown, growth.graph.features.ravel().tolist()
        ([0, 1, 2, -1], 1, [1.0, 2.0, 3.0, 4.0])
        """
        if self._by_name():
            raise ValueError(f"{self.name} is a data set, not tables that rows can be added to")
        if schema is not None:
            check_kind(schema, "schema", Schema)
        files = [file for path in paths for file in _files(check_path(path, "a table"))]
        given = {name: value for name, value in options.items() if value is not None}
        growth = read_growth(self.files, files, schema, {**self.options, **given})
        _log.info("added to %s: %d new nodes, %d updated", self.name, len(growth.new), growth.updated)
        return growth

    def _by_name(self) -> bool:
        # Whatever lies in the working folder: what "cora" means must not depend on it.
        return len(self.where) == 1 and _known_name(self.where[0]) is not None


def _as_text(where: str | os.PathLike[str]) -> str:
    text = where if isinstance(where, str) else str(check_path(where, "a graph"))
    return text if isinstance(where, str) or _known_name(text) is None else os.path.join(os.curdir, text)


def _known_name(name: str) -> str | None:
    """The name of a data set as `names` lists it; None for anything else."""
    if name == "synthetic":
        return name
    try:
        return info(name).name
    except ValueError:
        return None


def _files(path: Path) -> Sequence[Path]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.is_file() and readable(file))
        if not found:
            raise FileNotFoundError(
                f"the folder {path} holds no file that could be a graph: CSV, Parquet, npz, GraphML"
            )
        return found
    if not path.exists() and not path.suffix:
        near = nearest(str(path), ["synthetic", *names()])
        meant = f"did you mean {near!r}? " if near else ""
        raise ValueError(f"{path} is neither a file nor a data set; {meant}pegfan datasets lists the names")
    return [path]


@lru_cache(maxsize=4096)
def _hash(file: Path, size: int, time: int) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
