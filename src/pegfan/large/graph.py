"""A graph beyond memory: files on the one side, trees, channels and predictions on the other, all of it in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pegfan import _defaults as default
from pegfan._checks import check_choice, check_integer
from pegfan._limits import read_bytes
from pegfan.datasets._table import ReadReport
from pegfan.graph import Split
from pegfan.large import arcs as on_disk
from pegfan.large import order as in_order
from pegfan.large import tree as trees
from pegfan.large.channels import GraphPieces, LargeChannels, make_channels
from pegfan.large.degrees import NAMES, degree_features
from pegfan.large.facts import facts
from pegfan.large.folders import NAME
from pegfan.large.pieces import Stage, Work
from pegfan.large.predicting import predict_in_pieces
from pegfan.large.reading import LargeTables, read_tables
from pegfan.large.training import LargeResult, draw_split, train
from pegfan.recipe import Recipe
from pegfan.running import Progress
from pegfan.trees import Hierarchy

if TYPE_CHECKING:
    from pegfan.large.dask import DaskCluster

__all__ = ["LargeGraph", "open_graph"]


def open_graph(
    nodes: Any,
    edges: Any,
    *,
    memory: str | float = "4GB",
    work: str | os.PathLike[str] = NAME,
    workers: int | None = None,
    cluster: DaskCluster | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> LargeGraph:
    r"""Open files of nodes and edges that need not fit in memory; everything is computed when it is asked for.

    Parameters
    ----------
    nodes
        Parquet or CSV: a file, several, a glob or a folder of many; None where there are edges only.
    edges
        The same of edges.
    memory
        How much all of it may take, such as ``"4GB"``: at least some 100 bytes per node.
    work
        A working folder, where finished pieces are kept: the same call goes on from them. ``pegfan clean`` frees it.
    workers
        How many pieces are computed at once; by default one per core.
    cluster
        A `pegfan.large.dask.DaskCluster` whose workers compute the pieces.
    progress
        Called with a `pegfan.running.Step`.
    **reading
        How tables are read, as in `pegfan.datasets.read_graph`: ``label="kind"``, ``directed=True``, ...

    Returns
    -------
    LargeGraph
        To be closed, or used as a context manager.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pegfan as pf
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "nodes.csv").write_text("id,age\nann,31\nbob,35\ncat,33\n")
    >>> _ = (folder / "edges.csv").write_text("source,target\nann,bob\nbob,cat\n")
    >>> with pf.large.open(folder / "nodes.csv", folder / "edges.csv", memory="100MB", work=folder / "work") as graph:
    ...     graph, graph.tree(h=2)
    (LargeGraph(3 nodes, 4 arcs), Hierarchy(n=3, K=3, clusters=1-2-3, h=2))
    """
    held = Work(work, read_bytes(memory), workers, progress, cluster)
    try:
        from pegfan.datasets.readers import FileOptions

        known = {name: reading.pop(name) for name in list(reading) if name in FileOptions._fields}
        known.pop("max_bytes", None)
        return LargeGraph(held, read_tables(held, nodes, edges, how=FileOptions(**known), **reading))
    except BaseException:
        held.close()
        raise


class LargeGraph:
    """A graph in pieces; see `open_graph`.

    Attributes
    ----------
    work
        Where it is done.
    tables
        Its parts as they were read.
    """

    def __init__(self, work: Work, tables: LargeTables) -> None:
        self.work, self.tables = work, tables

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Let others work in the folder."""
        on_disk.forget()
        self.work.close()

    @cached_property
    def n(self) -> int:
        """The number of nodes."""
        return int(on_disk.describe(self.arcs)["n"])

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.tables.directed

    @property
    def arcs(self) -> Stage:
        """The adjacency matrix, as arc blocks."""
        return self.tables.edges

    @property
    def about(self) -> dict[str, Any]:
        """What is known about the nodes: classes, names of columns, number of splits."""
        found = self.tables.nodes.result()
        return found if found["columns"] else {**found, "columns": list(NAMES)}

    @property
    def report(self) -> ReadReport:
        """What was guessed, changed and left out when the files were read."""
        return self.tables.report

    @cached_property
    def order(self) -> Stage:
        """The canonical order of the nodes."""
        turned = on_disk.transposed(self.work, self.arcs) if self.directed else None
        found = in_order.canonical_order(self.work, self.arcs, turned, self.tables.features)
        found.run(files=False)
        if turned is not None and self.tables.features is not None:
            self.work.free(turned)
        return found

    @cached_property
    def features(self) -> Stage:
        """Slabs of columns: those of the table of nodes or, where it has none, degrees."""
        if self.tables.features is not None:
            return self.tables.features
        turned = on_disk.transposed(self.work, self.arcs) if self.directed else None
        return degree_features(self.work, self.arcs, turned)

    def ordered(self, order: Stage, turned: bool = False) -> Stage:
        """The arcs in another order; `turned` around where edges have a direction."""
        moved = on_disk.ordered(self.work, self.arcs, order)
        return on_disk.transposed(self.work, moved) if turned and self.directed else moved

    def info(self) -> dict[str, Any]:
        """Sizes, degrees, components, twins and classes, as ``pegfan info --json`` has them."""
        about = self.about
        classes = about["classes"] or [str(k) for k in range(about["n_classes"])]
        columns = 0 if self.tables.features is None else len(about["columns"])
        return facts(self.work, self.arcs, self.directed, self.tables.nodes, classes, columns)

    def tree_stage(
        self,
        h: int = default.H,
        max_levels: int | None = None,
        direction: str = default.DIRECTION,
        method: str = default.METHOD,
    ) -> Stage:
        """The stage that has the tree."""
        check_integer(h, "h", least=2)
        if max_levels is not None:
            check_integer(max_levels, "max_levels", least=2)
        check_choice(direction, "direction", ("out", "in", "symmetric"))
        if method not in ("auto", "matching"):
            raise ValueError(f"beyond memory, trees are built by method='matching'; got method={method!r}")
        turned = self.ordered(self.order, turned=True) if self.directed else None
        moved = self.ordered(self.order)
        return trees.build_tree(self.work, moved, self.order, turned, h, max_levels, direction)

    def tree(self, **options: Any) -> Hierarchy:
        """The tree of ``pegfan.build_tree(method="matching")``, bit for bit.

        Parameters
        ----------
        **options
            ``h``, ``max_levels`` and ``direction``, as in `pegfan.build_tree`.
        """
        return trees.load_tree(self.tree_stage(**options))

    @cached_property
    def pieces(self) -> GraphPieces:
        """Its parts, as channels need them."""

        def grown(recipe: Recipe) -> Stage:
            return self.tree_stage(recipe.h, recipe.max_levels)  # matching does not look at directions

        columns = len(self.about["columns"])
        return GraphPieces(self.n, columns, self.directed, self.features, self.order, self.ordered, grown)

    def channels(self, recipe: Recipe) -> LargeChannels:
        """The channels of a recipe: rows are put together when they are asked for."""
        return make_channels(self.work, self.pieces, recipe)

    @property
    def labels(self) -> Any:
        """The class of every node, −1 where it is not known; or numbers, NaN where they are not; None without any."""
        for name in ("labels", "targets"):
            if self.tables.nodes.has(name):
                return self.tables.nodes.load(name)
        return None

    @property
    def splits(self) -> list[Split]:
        """The splits that the table of nodes has."""
        nodes = self.tables.nodes
        return [
            Split(*(nodes.load(f"split{place}_{part}") for part in Split._fields))
            for place in range(self.about["splits"])
        ]

    @property
    def ids(self) -> Path | None:
        """A Parquet file with the ids of the nodes; None where they are their numbers."""
        return None if self.about["ids"] == "rows" else self.tables.nodes.path("ids.parquet")

    def all_ids(self) -> Iterator[Any]:
        """The ids of the nodes, one after the other."""
        if self.ids is None:
            yield from range(self.n)
            return
        from pyarrow import parquet

        with parquet.ParquetFile(self.ids) as file:
            for batch in file.iter_batches(columns=["id"]):
                yield from batch.column(0).to_pylist()

    def train(
        self, *, budget: float = 3600.0, seed: int = default.SEED, split: Split | int = default.SPLIT, **options: Any
    ) -> LargeResult:
        """Choose a recipe on a sample, train it on everything, and predict all nodes.

        Parameters
        ----------
        budget, seed
            Seconds, and where chance starts.
        split
            A split, or the place of one that the nodes have; where they have none, one is drawn.
        **options
            ``metric``, ``pins`` (fields and settings that all recipes must have), ``recipes`` (exactly these),
            ``progress``, and ``every``, the seconds between two times that the training keeps how far it is.
        """
        labels, about = self.labels, self.about
        if labels is None:
            raise ValueError("nothing says what to predict: name the column of the labels with label=... (--label)")
        given = self.splits
        if not isinstance(split, tuple):
            if given and not 0 <= split < len(given):
                raise ValueError(f"there is no split {split}: the nodes have {len(given)}")
            split = given[split] if given else draw_split(labels, self.order, seed)
        classes = about["classes"] or [str(k) for k in range(about["n_classes"])]
        told: Mapping[str, Any] = {"classes": classes, "feature_names": about["columns"]}
        options.setdefault("progress", self.work.progress)
        return train(self.work, self.pieces, labels, split, budget=budget, seed=seed, **told, **options)

    def predict(self, model: Any, path: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
        """Write the predictions of a model for all nodes.

        Parameters
        ----------
        model
            The folder of a saved model.
        path
            The table, ``.csv`` or ``.parquet``.
        **options
            As in `pegfan.large.training.predict_in_pieces`.
        """
        options.setdefault("progress", self.work.progress)
        options.setdefault("feature_names", self.about["columns"])
        return predict_in_pieces(self.work, self.pieces, model, Path(path), ids=self.ids, **options)

    def __repr__(self) -> str:
        about = on_disk.describe(self.arcs)
        return f"LargeGraph({about['n']:,} nodes, {about['arcs']:,} arcs)"
