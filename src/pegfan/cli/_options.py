"""Options that several commands take, and how they are checked and used: the graph to read, the tree to grow, files."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan import _defaults as default
from pegfan.cli._complete import complete_sources
from pegfan.cli._shell import USAGE, Fail, errors, literal
from pegfan.cli._show import writing

if TYPE_CHECKING:
    from pegfan.datasets import ReadReport, Schema, Source
    from pegfan.graph import Graph
    from pegfan.trees import Hierarchy

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
SOURCES = "A data set's name, a file or folder, or a file of nodes and one of edges."
Sources = Annotated[list[str], typer.Argument(metavar="GRAPH", help=SOURCES, autocompletion=complete_sources)]
Metric = Annotated[
    str | None, typer.Option(help="What is judged: accuracy, average_precision, r2, ...; a wrong word lists them all.")
]
Threshold = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Of two classes, the probability from which the positive one is predicted."),
]
FlagShare = Annotated[
    float | None, typer.Option(min=0, max=1, help="Of two classes, the share of nodes to predict as the positive one.")
]
WithReasons = Annotated[
    bool, typer.Option("--reasons", help="Add the column top_reasons to the tables; takes a little longer.")
]

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Reading:
    """How the files of a graph are read. What is None is left to the reader."""

    label: Annotated[
        str | None, typer.Option(help="The column of the node table that holds the classes, or numbers to predict.")
    ] = None
    label_kind: Annotated[
        str | None, typer.Option(help="What it holds: classes or numbers; by default its values decide.")
    ] = None
    id: Annotated[str | None, typer.Option(help="The column of node ids, if the guess is wrong.")] = None
    source: Annotated[str | None, typer.Option(help="The column where edges start, if the guess is wrong.")] = None
    target: Annotated[str | None, typer.Option(help="The column where edges end.")] = None
    directed: Annotated[
        bool | None,
        typer.Option(
            "--directed/--undirected",
            help="Whether edges have a direction; by default the format or the names of the columns decide.",
        ),
    ] = None
    weight: Annotated[
        str | None, typer.Option(help="The column of the edges' weights, or none; by default one named weight.")
    ] = None
    edge_columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Columns of the edges to use, or none; by default all that can be read."),
    ] = None
    duplicates: Annotated[
        str | None,
        typer.Option(
            help="The weight of an edge given more than once: max (the default), min, sum, mean, count, error."
        ),
    ] = None
    bipartite: Annotated[
        bool | None,
        typer.Option(
            "--bipartite/--no-bipartite",
            help="Whether one end of the edges is of another kind, such as devices; by default their ids decide.",
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether text files start with the names of their columns."),
    ] = None
    comments: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTERS",
            help="Skip lines of text files that begin with one of these; by default with # or %, unless they look like "
            "rows.",
        ),
    ] = None
    missing: Annotated[
        str | None, typer.Option(help="What stands for a missing number: mean (the default), zero, or error.")
    ] = None
    unknown: Annotated[
        str | None, typer.Option(help="Ids of edges that the nodes lack: error (the default), add, or drop.")
    ] = None
    categories_max: Annotated[
        int | None, typer.Option(min=2, help="Categories per column; the rarest share one. 50 by default.")
    ] = None
    max_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The memory that reading a file may take, such as 8GB; by default 80 % of what is free.",
        ),
    ] = None


@dataclass(frozen=True)
class Growing:
    """How a tree is built."""

    method: Annotated[
        str,
        typer.Option(
            help=f"How: {', '.join(default.BUILDERS)}; auto is ward, the paper's, up to 20,000 nodes, matching above."
        ),
    ] = default.METHOD
    h: Annotated[int, typer.Option("--h", min=2, help="The maximum number of children per cluster.")] = default.H
    max_levels: Annotated[
        int | None,
        typer.Option(min=2, help="The maximum number of levels; the root gets what is left."),
    ] = None
    direction: Annotated[
        str, typer.Option(help="Which side of directed edges counts: symmetric, out (as in the authors' code), in.")
    ] = default.DIRECTION

    def check(self) -> None:
        """Refuse a method or a direction that does not exist, before any work is done."""
        from pegfan.trees.build import DIRECTIONS

        check_choice(self.method, ("auto", *default.BUILDERS), "--method")
        check_choice(self.direction, DIRECTIONS, "--direction")

    def in_pieces(self) -> dict[str, Any]:
        """The settings for a tree that is built in pieces; refuses methods that need the whole graph in memory."""
        if self.method not in ("auto", "matching"):
            raise Fail(
                f"--method {self.method} needs the whole graph in memory; in pieces trees are built by --method "
                "matching, or leave out --memory.",
                USAGE,
            )
        return {"h": self.h, "max_levels": self.max_levels, "direction": self.direction}

    def build(self, graph: Graph) -> Hierarchy:
        """Build the tree, and show the level that it has reached."""
        from pegfan import build_tree

        with errors.status("building the tree") as status:
            return build_tree(graph, progress=lambda words: status.update(f"tree: {words}"), **vars(self))


BEYOND = "Graphs beyond memory"


Tls = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Speak to the Dask scheduler, tls://host:8786, by TLS: with ca.pem, cert.pem and key.pem of this folder.",
    ),
]


def use_tls(folder: Path | None, address: str | None, option: str = "--scheduler") -> None:
    """Speak to a scheduler of Dask by TLS, if a folder is given; its address must then say so."""
    if folder is None:
        return
    from pegfan import _cluster

    if address is None or not address.startswith("tls://"):
        raise Fail(f"--tls is for a Dask scheduler elsewhere; name it, as in {option} tls://host:8786.", USAGE)
    _cluster.use_tls(folder)


@dataclass(frozen=True)
class Pieces:
    """How a graph is worked on that does not fit in memory; without ``--memory`` it has to fit."""

    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Work in pieces on disk, in at most so much memory, such as 4GB; GRAPH is then CSV or Parquet files, "
            "folders or patterns. With --dask, of every worker.",
            rich_help_panel=BEYOND,
        ),
    ] = None
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where finished pieces are kept, so that the same command goes on; pegfan.work beside the output by "
            "default. pegfan clean frees it.",
            rich_help_panel=BEYOND,
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Compute on the workers of this Dask scheduler, tcp://host:8786 or tls://...; without an address, on "
            "a cluster of its own on this machine.",
            rich_help_panel=BEYOND,
        ),
    ] = None
    tls: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Speak to that scheduler by TLS, with the ca.pem, cert.pem and key.pem of this folder.",
            rich_help_panel=BEYOND,
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it will take, and stop.", rich_help_panel=BEYOND)
    ] = False

    def check(self, **refused: Any) -> bool:
        """Whether the graph is worked on in pieces; refuses what then cannot be, and what is of use only then.

        Parameters
        ----------
        **refused
            Options that work in memory only, by their names with underscores; those that are None or False are not
            given.
        """
        if self.memory is None:
            given = {"--work": self.work, "--dask": self.dask, "--tls": self.tls, "--dry-run": self.dry_run or None}
            extra = next((option for option, value in given.items() if value is not None), None)
            if extra is not None:
                raise Fail(f"{extra} is for work in pieces; say in how much memory, as in --memory 4GB.", USAGE)
            return False
        use_tls(self.tls, self.dask, "--dask")
        for name, value in refused.items():
            if value is not None and value is not False:
                option = f"--{name.replace('_', '-')}"
                raise Fail(f"{option} needs the whole graph in memory: leave it out, or leave out --memory.", USAGE)
        return True


def open_source(where: list[str], **options: Any) -> Source:
    """The source that a command line names; options that are None are left to the reader."""
    from pegfan._limits import read_bytes
    from pegfan.datasets import Source, load, synthetic
    from pegfan.datasets._table import DUPLICATES, LABEL_KINDS, MISSING, UNKNOWN
    from pegfan.datasets.registry import find

    if len(where) == 1:  # a data set under its own name: Film is actor; anything else is a path, and so is ./actor
        with contextlib.suppress(ValueError):
            where = [find(where[0]).name]
    words = {"missing": MISSING, "unknown": UNKNOWN, "duplicates": DUPLICATES, "label_kind": LABEL_KINDS}
    for option, allowed in words.items():
        if options.get(option) is not None:
            check_choice(options[option], allowed, f"--{option.replace('_', '-')}")
    if options.get("max_bytes") is not None:
        try:
            read_bytes(options["max_bytes"], "--max-bytes")
        except ValueError as error:
            raise Fail(f"{error}.", USAGE) from error
    source = Source.of(*where, **options)
    if not source.files:
        own = synthetic if source.name == "synthetic" else load
        foreign = [name for name in source.options if name not in inspect.signature(own).parameters]
        if foreign:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
            raise Fail(f"{source.name} is a data set with its own columns and metric: leave out {flags}.")
    return source


def read(
    where: Source | list[str], schema: Schema | None = None, **options: Any
) -> tuple[Source, Graph, ReadReport | None]:
    """Read the graph that a command line names, and show that it is being read; with a schema, by its rules."""
    source = open_source(where, **options) if isinstance(where, list) else where
    with errors.status(f"reading {literal(source.name)}"):
        graph, report = source.open(schema)
    return source, graph, report


def choices(wanted: str, every: list[str]) -> str:
    """Say which of some words may have been meant, and which there are."""
    from pegfan.datasets._table import suggestion

    return suggestion(wanted, every, there="there are")


def check_choice(value: str, allowed: tuple[str, ...], option: str) -> None:
    """Refuse a word that an option does not know, before any work is done."""
    if value not in allowed:
        raise Fail(f"{option} does not know {value!r}; {choices(value, list(allowed))}.", USAGE)


def check_output(path: Path | None, force: bool, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse a file that cannot or must not be written, before any work is done for it."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        ends = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise Fail(f"{what} is written as {ends}; {path} has another ending. Rename it.", USAGE)
    if path.is_dir():
        raise Fail(f"{path} is a folder; name a file in it.")
    if path.exists() and not force:
        raise Fail(f"{path} exists. Choose another name, or overwrite it with --force.")
    if not path.parent.is_dir():
        raise Fail(f"Cannot write to {path}: there is no folder {path.parent}. Make it first, or choose another.")
    from pegfan._atomic import try_replacing

    with writing(path):
        try_replacing(path)


def assignments(given: Sequence[str]) -> dict[str, Any]:
    """``--set epochs=200`` as a mapping; values are read as TOML."""
    import tomllib

    pins: dict[str, Any] = {}
    for entry in given:
        name, sign, value = entry.partition("=")
        if not sign:
            raise Fail(f"--set takes NAME=VALUE, as in --set epochs=200; got {entry}", USAGE)
        try:
            pins[name.strip()] = tomllib.loads(f"v = {value.lower() if value in ('True', 'False') else value}")["v"]
        except tomllib.TOMLDecodeError:
            pins[name.strip()] = value
    return pins
