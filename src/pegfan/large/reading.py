"""Files of nodes and edges as stages: the same graph that the reader of small files makes, in pieces on disk.

Which column plays which role is decided by the code that reads small tables, on whole columns of the nodes and on the
first ten thousand edges. Nodes are then read column by column. Edges are read in pieces: ids become numbers by a table
in memory, every piece is sorted by its rows, and every block of the result merges its rows of all pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Unpack

from pegfan._checks import BadInput
from pegfan.datasets._schema import Schema
from pegfan.datasets._table import Options, ReadReport, TableOptions
from pegfan.datasets.readers import FileOptions, known_names
from pegfan.large import _ends, _features, sources
from pegfan.large._roles import find_roles, plain_options
from pegfan.large.pieces import Stage, Work
from pegfan.large.sources import Source, TablePaths

__all__ = ["LargeTables", "read_tables"]

_SOME = 10_000
"""Edges that say which columns hold what, as for small files."""


def read_tables(
    work: Work,
    nodes: TablePaths | None,
    edges: TablePaths,
    *,
    how: FileOptions | None = None,
    slab: int | None = None,
    piece: int | None = None,
    **options: Unpack[TableOptions],
) -> LargeTables:
    r"""Tables of nodes and edges in any number of files, to be read in pieces.

    Parameters
    ----------
    work
        Where it is done.
    nodes
        A Parquet or text file, several, a glob or a folder, in the order of the names; None if there are edges only,
        whose ids are the nodes then.
    edges
        The same of edges.
    how
        What is known about text files.
    slab
        How many features stand together in a piece of the features; by default as memory allows, 16 at most.
    piece
        How many rows of edges are read in a piece; by default a twentieth of all, four million at most.
    **options
        As in `pegfan.datasets.read_graph`, but for `bipartite` and `edge_columns`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pegfan.large.pieces import Work
    >>> with tempfile.TemporaryDirectory() as folder, Work(folder + "/work") as work:
    ...     _ = pathlib.Path(folder, "edges.csv").write_text("source,target\nann,bob\nbob,cat\n")
    ...     _ = pathlib.Path(folder, "nodes.csv").write_text("id,age\nann,31\nbob,35\ncat,33\n")
    ...     tables = read_tables(work, folder + "/nodes.csv", folder + "/edges.csv")
    ...     tables.edges.load("columns"), tables.features.load("values").tolist()
    (array([1, 0, 2, 1], dtype=int32), [[31.0], [35.0], [33.0]])
    """
    return LargeTables(work, nodes, edges, Options.of(options), how or FileOptions(), slab, piece)


class LargeTables:
    """What `read_tables` found: stages, which are computed when somebody asks for their files or results.

    Attributes
    ----------
    work
        Where it is done.
    sources
        The tables by name, "nodes" (if there is one) and "edges".
    options
        What the caller said.
    """

    def __init__(
        self,
        work: Work,
        nodes: TablePaths | None,
        edges: TablePaths,
        options: Options,
        how: FileOptions,
        slab: int | None,
        piece: int | None,
    ) -> None:
        self.work, self.options, self._slab, self._piece = work, options, slab, piece
        _refuse(nodes, options)
        names = known_names(options)
        self.sources: dict[str, Source] = {}
        if nodes is not None:
            self.sources["nodes"] = sources.find_source(work, nodes, "nodes", names, how)
        self.sources["edges"] = sources.find_source(work, edges, "edges", names, how)
        self._unpacked = {name: sources.unpacked(work, source) for name, source in self.sources.items()}
        self._params: dict[str, Any] = {name: source.params for name, source in self.sources.items()}
        self._params["options"] = plain_options(options)

    def _stage(
        self,
        function: Any,
        more: Mapping[str, Any],
        inputs: Mapping[str, Stage],
        words: str,
        count: int = 1,
        size: int = 0,
    ) -> Stage:
        """A stage that reads the tables."""
        given = {name: stages["table"] for name, stages in self._unpacked.items() if stages}
        return self.work.stage(
            function, {**self._params, **more}, {**given, **inputs}, count, words, size, alone=count == 1
        )

    @cached_property
    def roles(self) -> dict[str, Any]:
        """Which column plays which role."""
        return self._stage(find_roles, {}, {}, "looking at the columns").result()

    @cached_property
    def _rows(self) -> list[list[int]]:
        return sources.row_groups(self.sources["edges"], self._unpacked["edges"])

    @cached_property
    def _pieces(self) -> list[list[list[int]]]:
        """For each piece of the edges, the row groups that it reads: file, first and last group, first row."""
        rows = sum(map(sum, self._rows))
        most = self._piece or min(max(-(-rows // 20), 2**16), 2**22)
        return _ends.pieces_of(self._rows, most)

    @cached_property
    def kinds(self) -> Stage:
        """Whether the ids of edges are texts, numbers, or texts that are all numbers."""
        params = {"roles": self.roles, "pieces": self._pieces}
        return self._stage(_ends.look_at_ends, params, {}, "looking at the ids of edges", len(self._pieces))

    @cached_property
    def ids(self) -> Stage:
        """The ids of the nodes, in order, and a table to look them up in."""
        params = {"roles": self.roles, "pieces": self._pieces}
        inputs: dict[str, Stage] = {}
        if self.roles["mixed"]:
            inputs["kinds"] = self.kinds
        if "nodes" in self.sources and self.options.unknown == "add":
            known = self._stage(_ends.number_nodes, params, inputs, "numbering nodes")
            words = "looking for ids that the nodes lack"
            inputs["strangers"] = self._stage(
                _ends.find_strangers, params, {**inputs, "ids": known}, words, len(self._pieces)
            )
        if "nodes" in self.sources:
            return self._stage(_ends.number_nodes, params, inputs, "numbering nodes")
        listed = self._stage(_ends.list_ends, params, inputs, "listing the ids of edges", len(self._pieces))
        numbered = self._stage(_ends.number_ends, {}, {"listed": listed}, "numbering nodes")
        numbered.run()
        self.work.free(listed)
        return numbered

    @cached_property
    def _sorted(self) -> Stage:
        rows = sum(map(sum, self._rows))
        params = {"roles": self.roles, "pieces": self._pieces}
        words = "numbering the ends of edges"
        return self._stage(_ends.number_edges, params, {"ids": self.ids}, words, len(self._pieces), rows)

    @cached_property
    def edges(self) -> Stage:
        """The adjacency matrix, as arc blocks; see ``pegfan.large.arcs``."""
        from pegfan.large.arcs import arcs_per_block

        pieces = self._sorted
        found = pieces.results
        if self.roles["directed"] == "unless mutual" and any(one["turned"] for one in found):
            raise BadInput(
                f"{self.sources['edges'].what}: its columns say neither that edges are directed nor that they are not; "
                "say directed=True or directed=False (--directed, --undirected)"
            )
        most = {"most": arcs_per_block(self.work)}
        bounds = self.work.stage(_ends.cut_rows, most, {"pieces": pieces}, words="cutting edges into blocks").result()[
            "bounds"
        ]
        params = {"bounds": bounds, "duplicates": self.options.duplicates, "what": self.sources["edges"].what}
        rows = sum(one["arcs"] for one in found)
        words = "sorting edges"
        blocks = self.work.stage(_ends.sort_edges, params, {"pieces": pieces}, len(bounds) - 1, words, rows)
        if blocks.missing():
            blocks.run()
        self.work.free(pieces)
        return blocks

    @cached_property
    def _rules(self) -> Stage | None:
        if not self.roles["features"]:
            return None
        params = {"roles": self.roles}
        words, count = "reading columns of nodes", len(self.roles["features"])
        return self._stage(_features.learn_rules, params, {"ids": self.ids}, words, count)

    @cached_property
    def nodes(self) -> Stage:
        """What is known about the nodes: ids, labels, splits and positions; see `describe_nodes`."""
        inputs = {"ids": self.ids} if self._rules is None else {"ids": self.ids, "rules": self._rules}
        return self._stage(_features.describe_nodes, {"roles": self.roles}, inputs, "reading labels")

    @cached_property
    def features(self) -> Stage | None:
        """The features of all nodes, some columns per piece; None if there are none."""
        rules = self._rules
        about = self.nodes.result()
        if rules is None or not about["columns"]:
            return None
        width = self._slab or _features.slab_width(self.work, about["n"])
        slabs = _features.slabs_of([len(one["names"]) for one in rules.results], width)
        params = {"roles": self.roles, "slabs": slabs}
        inputs = {"ids": self.ids, "rules": rules}
        return self._stage(_features.make_slab, params, inputs, "writing features", len(slabs), about["n"] * len(slabs))

    @property
    def directed(self) -> bool:
        """Whether row (i, j) is the arc from i to j only."""
        return bool(self.roles["directed"])

    @property
    def unused(self) -> list[str]:
        """Columns of edges of which nothing is made here; of small files, they become features and other weights."""
        return list(self.roles["unused"])

    @property
    def report(self) -> ReadReport:
        """What was guessed, changed and left out."""
        found = self.nodes.result()
        report = ReadReport(
            columns=dict(self.roles["columns"]),
            features=dict(found["features"]),
            dropped=dict(found["dropped"]),
            filled=list(found["filled"]),
            strange=list(found["strange"]),
            id_column=self.roles["id"],
            notes=[*self.roles["notes"], *found["notes"]],
        )
        for name, source in self.sources.items():
            report.files[source.what] = f"{name}; {source.kind}"
            for stage in self._unpacked[name].values():
                told = zip(source.paths, stage.results, strict=True)
                report.notes += [f"{path.name}: {made['marked']}" for path, made in told if made["marked"]]
        if found["label"]:
            report.columns["label"] = found["label"]
        if self.unused:
            report.notes.append(
                f"columns of {self.sources['edges'].what} that are not used beyond memory: {', '.join(self.unused)}"
            )
        pieces, edges = self._sorted.results, self.edges.results
        report.lost = sum(one["lost"] for one in pieces)
        report.self_loops = sum(one["loops"] for one in edges)
        arcs = sum(one["arcs"] for one in edges)
        kept = arcs if self.directed else (arcs + report.self_loops) // 2
        report.merged = sum(one["rows"] - one["lost"] - one["zeros"] for one in pieces) - kept
        report.unknown = found["extra"]
        report.schema = Schema.from_dict({"nodes": found["rules"], "edges": {}})
        return report


def _refuse(nodes: TablePaths | None, options: Options) -> None:
    """Say what is only read from small files."""
    if options.bipartite:
        raise BadInput("bipartite=True: nodes of two kinds are not read beyond memory; give both in the table of nodes")
    if options.edge_columns:
        raise BadInput(
            f"edge_columns={options.edge_columns!r}: beyond memory, only a weight is read of the columns of edges"
        )
    for name in ("id", "label", "split", "features", "positions") if nodes is None else ():
        given = getattr(options, name)
        if given is not None and given is not False:
            raise BadInput(f"{name}={given!r} is a column of the nodes, but there are edges only; give the nodes")
