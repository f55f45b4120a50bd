"""A table of nodes and a table of edges become a Graph, and every guess on the way is written down.

The columns are guessed from their names and their content, never from their position alone where the content
can decide. What was guessed stands in a :class:`ReadReport`, and every guess can be overridden by naming the
column; ``False`` in place of a name says that there is no such column.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, issparse
from scipy.sparse.linalg import svds

from pegfan.graph import Graph, Split

__all__ = ["ReadReport", "graph_from_tables", "stand_in_features"]

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "node_name", "vertex", "key", "index", "unnamed: 0")
LABEL_NAMES = ("label", "labels", "class", "y", "target", "kind")
WEIGHT_NAMES = ("weight", "weights", "w", "value", "count", "strength")
END_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("i", "j"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("source_id", "target_id"),
    ("from_id", "to_id"),
    ("fromnodeid", "tonodeid"),
    ("node_id", "node_id.1"),
    ("head", "tail"),
    ("start", "end"),
    ("sender", "receiver"),
    ("citing", "cited"),
    ("follower", "followee"),
)
_SPLIT_NAME = re.compile(r"split[_ .-]?(\d*)", re.IGNORECASE)
_SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}
_MISSING_WORDS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
_WHOLE_NUMBER = r"-?(?:0|[1-9]\d{0,17})"
_KINDS = ("number", "category", "tokens", "vector")
_SHOWN = 5
_LARGEST_EXACT = 2**53  # above it, a float no longer tells one integer from the next
_ALL_DIFFERENT = 20  # a label column in which more values than this all differ is a column of names


# -------------------------------------------------------------------- what is handed around


@dataclass
class ReadReport:
    """What was guessed, changed and left out on the way from tables to a graph; ``print`` it.

    Attributes
    ----------
    files : dict
        For each file, what it was read as.
    columns : dict
        For each role (edges, weight, id, label, splits, positions), the column that plays it, and why.
    features : dict
        For each feature column, how it was read.
    feature_names : list of str
        The name of each column of ``graph.features``.
    dropped : dict
        For each column that was left out, why.
    unknown : int
        Distinct ids of the edge list that the nodes do not have; they were added or their edges dropped.
    merged, self_loops : int
        Repeated edges that were merged into one; self loops, which are kept.
    notes : list of str
        Anything else that a careful user would want to know.
    """

    files: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    features: dict[str, str] = field(default_factory=dict)
    feature_names: list[str] = field(default_factory=list, repr=False)
    dropped: dict[str, str] = field(default_factory=dict)
    unknown: int = 0
    merged: int = 0
    self_loops: int = 0
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{self.merged} repeated merged, {self.self_loops} self loops, {self.unknown} unknown ids"
        lines = [*(("read", f"{file}: {how}") for file, how in self.files.items()), *self.columns.items()]
        lines += [("feature", f"{column}: {how}") for column, how in _shortened(self.features)]
        if not self.features:
            lines.append(("feature", "none"))
        lines += [("dropped", f"{column}: {why}") for column, why in _shortened(self.dropped)]
        lines += [("counts", counts), *(("note", note) for note in self.notes)]
        return "\n".join(f"{head:<10}{text}" for head, text in lines)


def _shortened(entries: dict[str, str], most: int = 12) -> list[tuple[str, str]]:
    items = list(entries.items())
    left = len(items) - most
    return items if left <= 1 else [*items[:most], ("...", f"{left} more")]


@dataclass(frozen=True)
class Table:
    """A data frame, what to call it, and where its rows come from."""

    frame: Any
    name: str
    line_of: Callable[[int], int] | None = None

    def where(self, row: int) -> str:
        """Return the place of a row, for error messages."""
        row = int(row)
        return f"{self.name}, row {row}" if self.line_of is None else f"{self.name}, line {self.line_of(row)}"

    def find(self, column: Any, role: str) -> str:
        """Return the column that the caller named, or say which he may have meant."""
        name = str(column)
        if name in self.frame.columns:
            return name
        raise ValueError(f"{self.name} has no {role} column {name!r}; {suggestion(name, self.frame.columns)}")

    def named(self, names: Sequence[str]) -> str | None:
        """Return the first column that bears one of the names, in the order of the names."""
        lower = {column.strip().lower(): column for column in reversed(self.frame.columns)}
        return next((lower[name] for name in names if name in lower), None)


def suggestion(name: str, choices: Any) -> str:
    """Say which of the choices comes nearest to the name, and which there are."""
    every = [str(choice) for choice in choices]
    near = difflib.get_close_matches(name.lower(), [choice.lower() for choice in every], n=1)
    meant = next((f"did you mean {choice!r}? " for choice in every if near and choice.lower() == near[0]), "")
    shown = ", ".join(map(repr, every[:12])) + (f" and {len(every) - 12} more" if len(every) > 12 else "")
    return f"{meant}it has {shown}"


@dataclass(frozen=True)
class Options:
    """What the caller decides; None leaves it to a guess, False says that there is none."""

    id: Any = None
    label: Any = None
    split: Any = None
    features: Any = None
    source: Any = None
    target: Any = None
    weight: Any = None
    directed: bool | None = False
    duplicates: str = "max"
    unknown: str = "error"
    missing: str = "mean"
    categories_max: int = 50
    positions: Sequence[str] | None = None
    metric: str = "accuracy"

    def __post_init__(self) -> None:
        for name, allowed in (("unknown", ("error", "add", "drop")), ("missing", ("mean", "zero", "error"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        if isinstance(self.features, Mapping):
            for column, kind in self.features.items():
                if kind not in _KINDS:
                    raise ValueError(f"features[{column!r}] must be one of {_KINDS}, got {kind!r}")


class _Ids(NamedTuple):
    """Node ids as a Series, all of one kind: "int", "str", or "other" for any other hashable."""

    values: Any
    kind: str


class _Edges(NamedTuple):
    codes: NDArray[np.int64]  # (m, 2), positions in `ids`
    ids: _Ids
    weights: NDArray[np.float64] | None


# -------------------------------------------------------------------- the public door


@overload
def graph_from_tables(nodes: Any, edges: Any, *, report: Literal[False] = False, **options: Any) -> Graph: ...
@overload
def graph_from_tables(nodes: Any, edges: Any, *, report: Literal[True], **options: Any) -> tuple[Graph, ReadReport]: ...
@overload
def graph_from_tables(nodes: Any, edges: Any, *, report: bool, **options: Any) -> Graph | tuple[Graph, ReadReport]: ...
def graph_from_tables(
    nodes: Any,
    edges: Any,
    *,
    id: str | Literal[False] | None = None,  # noqa: A002
    label: str | Literal[False] | None = None,
    split: str | Sequence[str] | Literal[False] | None = None,
    features: Sequence[str] | Mapping[str, str] | Literal[False] | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | Literal[False] | None = None,
    directed: bool = False,
    duplicates: str = "max",
    unknown: str = "error",
    missing: str = "mean",
    categories_max: int = 50,
    positions: Sequence[str] | None = None,
    metric: str = "accuracy",
    report: bool = False,
) -> Graph | tuple[Graph, ReadReport]:
    """Make a graph from a table of nodes and a table of edges.

    Node i of the graph is row i of `nodes`; without `nodes`, the nodes are the ids found in `edges`, sorted.
    Their ids become ``graph.node_names``, unless they are 0, 1, ..., n-1 in this order.

    Parameters
    ----------
    nodes : DataFrame, dict of columns, or None
    edges : DataFrame, dict of columns, array (m, 2) or (m, 3), or list of pairs
        Source, target and possibly a weight; an undirected edge once or in both directions.
    id : str or False, optional
        The column of `nodes` with the ids: any hashable values, distinct. By default a column with a usual
        name (id, node, name, ...) in which at least half of the edge ends are found, else the column of distinct
        values that holds most of them, else the row numbers (which False asks for).
    label : str or False, optional
        By default a column named label, class, y, target or kind that holds classes. Whole numbers 0..k-1 are kept,
        anything else is numbered in sorted order and kept as ``class_names``; a missing value, and -1
        among numbers (unless the labels are just -1 and 1), is a node without a label.
    split : str, sequence of str or False, optional
        Columns with the words train, val (valid, validation) and test; blank for a node in no part. By
        default those named split, split_0, split_1, ...
    features : sequence of str, mapping or False, optional
        By default every column that is nothing else and can be read: numbers as they are; booleans, and texts
        with at most `categories_max` different values, one column per value; lists of tokens as bags (how
        often each token occurs); lists of numbers, all of one length, as vectors. Dates and free texts are left
        out. A sequence names the columns to use, and what cannot be read is then an error. A mapping
        {column: "number", "category", "tokens" or "vector"} also says how.
    source, target : str, optional
        The columns of `edges`; by default by their usual names, else the first two.
    weight : str or False, optional
        By default a column named weight, or the third of three columns if it holds numbers.
    directed : bool
        Whether row (i, j) is the arc from i to j only.
    duplicates : {"max", "min", "sum", "error"}
        What becomes of an edge given more than once.
    unknown : {"error", "add", "drop"}
        What becomes of ids in `edges` that `nodes` does not have: added as nodes about which nothing is known,
        or dropped with their edges.
    missing : {"mean", "zero", "error"}
        What stands for a missing number: the mean of its column, 0, or nothing. A missing category sets none
        of its columns; a missing list is empty.
    categories_max : int
        See `features`.
    positions : sequence of str, optional
        Two or three columns with the coordinates for drawing.
    metric : {"accuracy", "roc_auc"}
        Passed to :class:`Graph`.
    report : bool
        Whether to return the :class:`ReadReport` too.

    Returns
    -------
    Graph, or (Graph, ReadReport)

    Notes
    -----
    Ids that are integers in one table and text in the other are compared as integers if every text is one
    (``"7"``, not ``"007"``), else as text; the report says so. A column in which both 1 and ``"1"`` occur is an error.

    Examples
    --------
    >>> nodes = {"name": ["ann", "bob", "cat"], "age": [31, None, 35], "kind": ["x", "y", "x"]}
    >>> graph, report = graph_from_tables(nodes, [("ann", "bob"), ("cat", "bob")], report=True)
    >>> graph
    Graph(n=3, edges=2, undirected, features=1, classes=2)
    >>> print(report)
    edges     'source' to 'target' (by name), undirected
    weight    none: every edge weighs 1
    id        'name' (by name)
    label     'kind' (by name): 2 classes, 0 of 3 nodes without
    feature   age: number, 1 missing: the mean
    counts    0 repeated merged, 0 self loops, 0 unknown ids
    """
    options = Options(
        id=id,
        label=label,
        split=split,
        features=features,
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        duplicates=duplicates,
        unknown=unknown,
        missing=missing,
        categories_max=categories_max,
        positions=positions,
        metric=metric,
    )
    account = ReadReport()
    node_table = None if nodes is None else Table(_as_frame(nodes, "nodes"), "nodes")
    graph = build(node_table, Table(_as_frame(edges, "edges"), "edges"), options, account)
    return (graph, account) if report else graph


def _as_frame(table: Any, what: str) -> Any:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        index = table.index
        # An index that somebody named, or that holds texts, is a column; numbers are where rows happened to be.
        kept = index.nlevels == 1 and (index.name is not None or not pd.api.types.is_numeric_dtype(index.dtype))
        frame = table.reset_index() if kept and len(table) else table.copy(deep=False)
    elif isinstance(table, Mapping):
        try:
            frame = pd.DataFrame(dict(table))
        except ValueError as error:
            raise ValueError(f"{what} is not a table: {error}") from error
    elif what == "edges" and (isinstance(table, Sequence) or hasattr(table, "__array__")):
        frame = _edge_frame(table)
    else:
        raise TypeError(f"{what} must be a pandas DataFrame or a dict of columns, got {type(table).__name__}")
    frame.columns = [str(column) for column in frame.columns]
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{what} has two columns named {twice[0]!r}; rename one of them")
    return frame


def _edge_frame(edges: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(edges if hasattr(edges, "__array__") else list(edges))
    if len(frame) == 0:
        return pd.DataFrame({"source": [], "target": []})
    if frame.shape[1] not in (2, 3):
        fix = "; transpose it: edges.T" if len(frame) in (2, 3) else ""
        raise ValueError(f"edges must have shape (m, 2) or (m, 3), one edge a row, got {frame.shape}{fix}")
    frame.columns = ["source", "target", "weight"][: frame.shape[1]]
    return frame


def build(
    nodes: Table | None,
    edges: Table,
    options: Options,
    report: ReadReport,
    *,
    n: int | None = None,
    bags: Mapping[str, Mapping[Any, Any]] | None = None,
) -> Graph:
    """Make the graph: what :func:`graph_from_tables` and the readers of files share.

    `n` says that the ids are 0..n-1, whether or not they occur in the edges. `bags` are columns of lists by
    node id, joined to the nodes.
    """
    listed = _read_edges(edges, options, report)
    if nodes is None:
        graph_ids = _Ids(_series(np.arange(n)), "int") if n is not None else listed.ids
        known = np.asarray(listed.ids.values) if n is not None else None
        attributes: dict[str, Any] = {"metric": options.metric}
        if len(graph_ids.values) == 0:
            raise ValueError(f"{edges.name} holds no edges and there is no table of nodes: a graph needs a node")
    else:
        graph_ids = _read_ids(nodes, edges, listed.ids, options, report)
        graph_ids, known = _match(nodes, edges, graph_ids, listed, options, report)
        attributes = _read_attributes(nodes, graph_ids, options, report, bags or {})
    pairs = listed.codes if known is None else known[listed.codes]
    weights = listed.weights
    if options.unknown == "drop" and report.unknown:
        kept = (pairs >= 0).all(axis=1)
        pairs, weights = pairs[kept], weights if weights is None else weights[kept]
    try:
        graph = Graph.from_edges(
            pairs,
            weights,
            n=len(graph_ids.values),
            directed=bool(options.directed),
            duplicates=options.duplicates,
            node_names=_node_names(graph_ids),
            **attributes,
        )
    except TypeError as error:
        raise ValueError(f"{edges.name}: {error}") from error
    present = len(pairs) if weights is None else int(np.count_nonzero(weights))
    report.merged = present - graph.n_edges
    report.self_loops = int(np.count_nonzero(graph.adjacency.diagonal()))
    if present < len(pairs):
        report.notes.append(f"{len(pairs) - present} rows of {edges.name} have weight 0, which is no edge")
    return graph


def _series(values: Any) -> Any:
    import pandas as pd

    return pd.Series(values)


def _node_names(ids: _Ids) -> NDArray[Any] | None:
    """Return the names of the nodes, or None if they are just their positions."""
    if ids.kind == "int":
        values = np.asarray(ids.values)
        return None if np.array_equal(values, np.arange(len(values))) else values
    return _name_array(ids.values.tolist())


def _name_array(names: list[Any]) -> NDArray[Any]:
    # NumPy gives every string the room of the longest: one very long name among many would exhaust the memory.
    if all(isinstance(name, str) for name in names) and max(map(len, names), default=0) <= 256:
        return np.array(names, dtype=np.str_)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


# -------------------------------------------------------------------- ids


def _blank(series: Any) -> NDArray[np.bool_]:
    blank = series.isna().to_numpy(dtype=bool)
    if _is_text(series):
        blank |= (series.str.strip() == "").fillna(True).to_numpy(dtype=bool)
    return blank


def _is_text(series: Any) -> bool:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return False
    return bool(pd.api.types.infer_dtype(series, skipna=True) in ("string", "empty")) and series.dtype.kind == "O"


def _normalise_ids(series: Any, table: Table) -> _Ids:
    """Return the ids of a column without blanks, all of one kind."""
    import pandas as pd

    types = pd.api.types
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if types.is_object_dtype(series.dtype):
        series = _uniform_objects(series, table)
    if types.is_bool_dtype(series.dtype):
        return _Ids(series.astype(object), "other")
    if types.is_integer_dtype(series.dtype):
        if types.is_unsigned_integer_dtype(series.dtype) and len(series) and series.max() > np.iinfo(np.int64).max:
            return _Ids(series.astype(object), "other")
        return _Ids(series.astype(np.int64), "int")
    if types.is_float_dtype(series.dtype):
        values = series.to_numpy(dtype=np.float64)
        whole = (values == np.floor(values)) & (np.abs(values) < _LARGEST_EXACT)
        if not whole.all():
            row = int(whole.argmin())
            why = (
                "too large to be told from its neighbours as a number; write ids of this size as text, with a letter"
                if abs(values[row]) >= _LARGEST_EXACT
                else "is no node id; ids are whole numbers or texts"
            )
            raise ValueError(f"{table.where(row)}: {values[row]!r} in column {series.name!r} {why}")
        return _Ids(series.astype(np.int64), "int")
    if series.dtype.kind == "O" and not types.is_object_dtype(series.dtype):
        return _Ids(series, "str")
    return _Ids(series.astype(object), "other")


def _uniform_objects(series: Any, table: Table) -> Any:
    """Give a column of Python objects the type that they share; integers among texts become text."""
    types = {type(value) for value in series}
    if all(issubclass(kind, str) for kind in types) and types:
        return series.astype("str")
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in types) and types:
        try:
            return series.astype(np.int64)
        except OverflowError:
            return series
    if all(issubclass(kind, float | np.floating | int | np.integer) and kind is not bool for kind in types) and types:
        return series.astype(np.float64)
    if all(issubclass(kind, str | int | np.integer) and kind is not bool for kind in types):
        text = series.astype("str")
        spellings = series.groupby(text.to_numpy(), sort=False).nunique()
        if (spellings > 1).any():
            both = spellings.index[int((spellings > 1).to_numpy().argmax())]
            row = int((text == both).to_numpy().argmax())
            raise ValueError(
                f"{table.where(row)}: column {series.name!r} holds both the number {both} and the text {both!r}; "
                f"make them one kind, for example with .astype(str)"
            )
        return text
    for row, value in enumerate(series):
        try:
            hash(value)
        except TypeError:
            raise ValueError(f"{table.where(row)}: {value!r} cannot be a node id; ids must be hashable") from None
    return series


def _agree(first: _Ids, second: _Ids) -> tuple[_Ids, _Ids]:
    """Bring ids of two columns to one kind: text that is all integers becomes integers, else integers become text."""
    kinds = {first.kind, second.kind}
    if len(kinds) == 1:
        return first, second
    if kinds != {"int", "str"}:
        return _Ids(first.values.astype(object), "other"), _Ids(second.values.astype(object), "other")
    text = first if first.kind == "str" else second
    if text.values.str.fullmatch(_WHOLE_NUMBER).all() and not (text.values == "-0").any():
        return _Ids(first.values.astype(np.int64), "int"), _Ids(second.values.astype(np.int64), "int")
    return _Ids(first.values.astype("str"), "str"), _Ids(second.values.astype("str"), "str")


def _factorize(first: _Ids, second: _Ids) -> tuple[NDArray[np.int64], _Ids]:
    """Return the place of every id among the distinct ids, (m, 2), and these, sorted where they sort."""
    import pandas as pd

    codes = np.empty((len(first.values), 2), dtype=np.int64)
    if first.kind == "int" and len(codes):
        a, b = first.values.to_numpy(), second.values.to_numpy()
        low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
        if high - low < 4 * len(a) + 1000:  # near enough to 0..n-1 for a table in place of hashing
            seen = np.zeros(high - low + 1, dtype=bool)
            seen[a - low] = seen[b - low] = True
            rank = np.cumsum(seen) - 1
            np.take(rank, a - low, out=codes[:, 0])
            np.take(rank, b - low, out=codes[:, 1])
            return codes, _Ids(pd.Series(np.flatnonzero(seen) + low), "int")
    both = pd.concat([first.values, second.values], ignore_index=True)
    flat, distinct = pd.factorize(both, sort=first.kind != "other")
    codes[:, 0], codes[:, 1] = flat[: len(codes)], flat[len(codes) :]
    return codes, _Ids(pd.Series(distinct), first.kind)


# -------------------------------------------------------------------- edges


def end_columns(table: Table) -> tuple[str, str] | None:
    """Return the columns with the usual names of edge ends."""
    for pair in END_NAMES:
        first, second = table.named(pair[:1]), table.named(pair[1:])
        if first is not None and second is not None:
            return first, second
    return None


def _read_edges(edges: Table, options: Options, report: ReadReport) -> _Edges:
    source, target = _pick_ends(edges, options, report)
    for column in (source, target):
        blank = _blank(edges.frame[column])
        if blank.any():
            row = int(blank.argmax())
            raise ValueError(
                f"{edges.where(row)}: column {column!r} is blank; an edge needs both ends "
                f"({int(blank.sum())} of {len(blank)} rows)"
            )
    first = _normalise_ids(edges.frame[source], edges)
    second = _normalise_ids(edges.frame[target], edges)
    weights = _read_weights(edges, (source, target), options, report)
    codes, ids = _factorize(*_agree(first, second))
    return _Edges(codes, ids, weights)


def _pick_ends(edges: Table, options: Options, report: ReadReport) -> tuple[str, str]:
    columns = list(edges.frame.columns)
    guessed, how = end_columns(edges), "by name"
    if guessed is None:
        if len(columns) < 2:
            raise ValueError(
                f"{edges.name} has {len(columns)} column(s) ({', '.join(map(repr, columns))}); edges need a source and "
                "a target (in a text file, is the delimiter right?)"
            )
        guessed, how = (columns[0], columns[1]), "the first two columns"
    source = guessed[0] if options.source is None else edges.find(options.source, "source")
    target = guessed[1] if options.target is None else edges.find(options.target, "target")
    if options.source is not None and options.target is not None:
        how = "as given"
    if source == target:
        raise ValueError(f"{edges.name}: source and target are the same column {source!r}; name them both")
    direction = "directed" if options.directed else "undirected"
    report.columns["edges"] = f"{source!r} to {target!r} ({how}), {direction}"
    return source, target


def _read_weights(
    edges: Table, ends: tuple[str, str], options: Options, report: ReadReport
) -> NDArray[np.float64] | None:
    import pandas as pd

    others = [column for column in edges.frame.columns if column not in ends]
    column = None
    if options.weight is None:
        rest = Table(edges.frame[others], edges.name)
        column, how = rest.named(WEIGHT_NAMES), "by name"
        if column is None and len(others) == 1 and _is_number(edges.frame[others[0]]):
            timely = re.search(r"time|date|year", others[0], re.IGNORECASE)
            column, how = (None, "") if timely else (others[0], "the third column")
    elif options.weight is not False:
        column, how = edges.find(options.weight, "weight"), "as given"
    report.dropped.update({f"{edges.name} {other!r}": "not used" for other in others if other != column})
    if column is None:
        report.columns["weight"] = "none: every edge weighs 1"
        return None
    report.columns["weight"] = f"{column!r} ({how})"
    series = edges.frame[column]
    weights = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(good.argmin())
        raise ValueError(
            f"{edges.where(row)}: weight {series.iloc[row]!r} in column {column!r} must be a finite number, "
            "not negative (weight=False ignores the column)"
        )
    return np.asarray(weights)


def _is_number(series: Any) -> bool:
    import pandas as pd

    types = pd.api.types
    return bool(types.is_numeric_dtype(series.dtype)) and not types.is_bool_dtype(series.dtype)


# -------------------------------------------------------------------- nodes and their ids


def edges_fit(edges: Table, nodes: Table, rows: int = 10_000) -> float:
    """Return the largest share of edge ends that some column of distinct values of `nodes` holds."""
    if len(edges.frame.columns) < 2 or len(nodes.frame) == 0:
        return 0.0
    columns = end_columns(edges) or tuple(edges.frame.columns[:2])
    ends = []
    for column in columns:
        try:
            ends.append(_normalise_ids(edges.frame[column].iloc[:rows].dropna(), edges))
        except ValueError:
            return 0.0
    ids = _factorize(*_agree(*(_Ids(end.values.iloc[: min(len(e.values) for e in ends)], end.kind) for end in ends)))[1]
    return max((_share_found(ids, column) for column in _distinct_columns(nodes)), default=0.0)


def _distinct_columns(nodes: Table) -> list[_Ids]:
    """Return the columns that could be ids: whole numbers, texts or objects, all different, none missing."""
    found = []
    for column in nodes.frame.columns:
        series = nodes.frame[column]
        if series.dtype.kind not in "iuO" or len(series) == 0:
            continue
        try:
            if not _blank(series).any() and not series.duplicated().any():
                found.append(_normalise_ids(series, nodes))
        except (TypeError, ValueError):  # lists, or numbers among texts: no ids
            continue
    return found


def _share_found(ids: _Ids, column: _Ids) -> float:
    ids, column = _agree(ids, column)
    return float(ids.values.isin(column.values).mean()) if len(ids.values) else 0.0


def _read_ids(nodes: Table, edges: Table, ends: _Ids, options: Options, report: ReadReport) -> _Ids:
    column = _pick_id(nodes, edges, ends, options, report)
    if column is None:
        return _Ids(_series(np.arange(len(nodes.frame))), "int")
    series = nodes.frame[column]
    blank = _blank(series)
    if blank.any():
        row = int(blank.argmax())
        raise ValueError(f"{nodes.where(row)}: the id in column {column!r} is blank; every node needs one")
    ids = _normalise_ids(series, nodes)
    again = ids.values.duplicated().to_numpy()
    if again.any():
        row = int(again.argmax())
        earlier = int((ids.values == ids.values.iloc[row]).to_numpy().argmax())
        raise ValueError(
            f"{nodes.where(row)}: id {_plain(ids.values.iloc[row])!r} in column {column!r} was already given in "
            f"{nodes.where(earlier)} ({int(again.sum())} rows are doubled); keep one row a node, or name another "
            "column with id="
        )
    return ids


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _pick_id(nodes: Table, edges: Table, ends: _Ids, options: Options, report: ReadReport) -> str | None:
    frame = nodes.frame
    if options.id is not None and options.id is not False:
        column = nodes.find(options.id, "id")
        report.columns["id"] = f"{column!r} (as given)"
        return column
    rows = "the row numbers 0..n-1"
    if options.id is False:
        report.columns["id"] = f"{rows} (as given)"
        return None
    named = [column for name in ID_NAMES if (column := nodes.named([name])) is not None]
    shares = {column: _named_share(ends, nodes, column) for column in named}
    good = next((column for column in named if shares[column] >= 0.5), None)
    if good is not None or (named and len(ends.values) == 0):
        report.columns["id"] = f"{good or named[0]!r} (by name)"
        return good or named[0]
    found = {ids.values.name: _share_found(ends, ids) for ids in _distinct_columns(nodes)}
    best = max(found, key=lambda column: found[column], default=None)
    if best is not None and found[best] >= 0.5:
        than = "".join(f", {shares[column]:.0%} in {column!r}" for column in named)
        report.columns["id"] = f"{best!r} (by content: {found[best]:.0%} of the edge ends are in it{than})"
        return str(best)
    if edges_fit(nodes, edges) >= 0.5 and edges_fit(edges, nodes) < 0.5:
        raise ValueError(
            f"{nodes.name} and {edges.name} look swapped: the first columns of {nodes.name} are ids of {edges.name}; "
            "exchange them"
        )
    if not named and ends.kind == "int" and 0 <= ends.values.min() and ends.values.max() < len(frame):
        report.columns["id"] = f"{rows} (no column holds the edge ends)"
        return None
    if named:
        report.columns["id"] = f"{named[0]!r} (by name)"
        return named[0]
    raise ValueError(
        f"no column of {nodes.name} holds the ids of {edges.name} (such as {_few(ends.values)}); name it with id=, "
        f"or id=False for row numbers; {nodes.name} has the columns {', '.join(map(repr, frame.columns[:12]))}"
    )


def _named_share(ends: _Ids, nodes: Table, column: str) -> float:
    try:
        return _share_found(ends, _normalise_ids(nodes.frame[column].dropna(), nodes))
    except ValueError:
        return 0.0


def _few(values: Any) -> str:
    shown = ", ".join(repr(_plain(value)) for value in values[:_SHOWN])
    return shown + (", ..." if len(values) > _SHOWN else "")


def _match(
    nodes: Table, edges: Table, ids: _Ids, listed: _Edges, options: Options, report: ReadReport
) -> tuple[_Ids, NDArray[np.int64] | None]:
    """Return the ids of the graph's nodes, and for each id of the edges its node (None: they are the same)."""
    import pandas as pd

    before = ids.kind, listed.ids.kind
    ids, ends = _agree(ids, listed.ids)
    if before[0] != before[1]:
        words = {"int": "integers", "str": "text", "other": "objects"}
        report.notes.append(
            f"ids are {words[before[0]]} in {nodes.name} and {words[before[1]]} in {edges.name}; "
            f"they were compared as {words[ids.kind]}"
        )
    known = np.asarray(pd.Index(ids.values).get_indexer(pd.Index(ends.values)))
    strangers = known < 0
    report.unknown = int(strangers.sum())
    if not report.unknown:
        return ids, None if np.array_equal(known, np.arange(len(ids.values))) else known
    strange = ends.values[strangers]
    if options.unknown == "error":
        raise ValueError(_stranger_message(nodes, edges, strangers, strange, listed, ends, report))
    if options.unknown == "add":
        known[strangers] = len(ids.values) + np.arange(report.unknown)
        ids = _Ids(pd.concat([ids.values, strange], ignore_index=True), ids.kind)
    action = "added as nodes" if options.unknown == "add" else "dropped with their edges"
    report.notes.append(f"{report.unknown} ids of {edges.name} are not in {nodes.name}: {action} ({_few(strange)})")
    return ids, known


def _stranger_message(
    nodes: Table,
    edges: Table,
    strangers: NDArray[np.bool_],
    strange: Any,
    listed: _Edges,
    ends: _Ids,
    report: ReadReport,
) -> str:
    touched = strangers[listed.codes].any(axis=1)
    row = int(touched.argmax())
    pair = listed.codes[row]
    culprit = _plain(ends.values.iloc[pair[0] if strangers[pair[0]] else pair[1]])
    elsewhere = [ids.values.name for ids in _distinct_columns(nodes) if _share_found(ends, ids) == 1]
    hint = f"; column {elsewhere[0]!r} has them all: id={elsewhere[0]!r}?" if elsewhere else ""
    return (
        f"{edges.where(row)}: node {culprit!r} is not in {nodes.name} (id: {report.columns['id']}); {len(strange)} ids "
        f"in {int(touched.sum())} of {len(touched)} edges are unknown: {_few(strange)}. Pass unknown='add' to add them "
        f"as nodes, or unknown='drop' to leave out their edges{hint}"
    )


# -------------------------------------------------------------------- what is known about the nodes


def _read_attributes(
    nodes: Table, ids: _Ids, options: Options, report: ReadReport, bags: Mapping[str, Mapping[Any, Any]]
) -> dict[str, Any]:
    """Return labels, splits, positions and features; nodes that the table does not have come last, with nothing."""
    extra = len(ids.values) - len(nodes.frame)
    id_column = report.columns["id"].split("'")[1] if report.columns["id"].startswith("'") else None
    id_column = id_column if options.id in (None, False) else str(options.id)
    frame = nodes.frame if id_column is None else nodes.frame.drop(columns=id_column)
    rest = replace(nodes, frame=frame.assign(**_joined_bags(nodes, ids, options, report, bags)))
    found: dict[str, Any] = {"metric": options.metric}

    if options.positions is not None:
        columns = [rest.find(column, "positions") for column in options.positions]
        found["positions"] = _read_positions(rest, columns, extra)
        report.columns["positions"] = ", ".join(map(repr, columns))
        rest = replace(rest, frame=rest.frame.drop(columns=columns))

    splits = _pick_splits(rest, options)
    if splits:
        found["splits"] = [_read_split(rest, column) for column in splits]
        report.columns["splits"] = ", ".join(map(repr, splits))
        rest = replace(rest, frame=rest.frame.drop(columns=splits))

    label = _pick_label(rest, options, report)
    if label is not None:
        codes, found["class_names"] = _read_labels(rest, label)
        found["labels"] = np.append(codes, np.full(extra, -1))
        classes = len(np.unique(codes[codes >= 0]))
        lacking = int(np.count_nonzero(found["labels"] < 0))
        report.columns["label"] += f": {classes} classes, {lacking} of {len(found['labels'])} nodes without"
        rest = replace(rest, frame=rest.frame.drop(columns=label))

    found["features"] = _read_features(rest, extra, options, report)
    return found


def _joined_bags(
    nodes: Table, ids: _Ids, options: Options, report: ReadReport, bags: Mapping[str, Mapping[Any, Any]]
) -> dict[str, Any]:
    import pandas as pd

    columns = {}
    for name, bag in bags.items():
        keys, among = _agree(_normalise_ids(pd.Series(list(bag), name=name), Table(None, name)), ids)
        position = pd.Index(among.values).get_indexer(pd.Index(keys.values))
        strange = keys.values[position < 0]
        if len(strange) and options.unknown == "error":
            raise ValueError(
                f"{name}: {len(strange)} of {len(keys.values)} ids are not in {nodes.name}: {_few(strange)}; pass "
                "unknown='drop' to leave them out"
            )
        cells = np.full(len(ids.values), None, dtype=object)
        for place, value in zip(position, bag.values(), strict=True):
            if place >= 0:
                cells[place] = value
        if len(strange):
            report.notes.append(f"{len(strange)} ids of {name} are in no edge and not in {nodes.name}: dropped")
        columns[name] = cells[: len(nodes.frame)]
    return columns


def _pick_splits(nodes: Table, options: Options) -> list[str]:
    if options.split is False:
        return []
    if options.split is None:
        matches = {column: _SPLIT_NAME.fullmatch(column.strip()) for column in nodes.frame.columns}
        found = {column: int(match[1] or -1) for column, match in matches.items() if match}
        return sorted(found, key=lambda column: found[column])
    given = [options.split] if isinstance(options.split, str) else options.split
    return [nodes.find(column, "split") for column in given]


def _read_split(nodes: Table, column: str) -> Split:
    series = nodes.frame[column]
    words = series.astype("str").str.strip()
    present = ~(series.isna() | words.isin(_MISSING_WORDS)).to_numpy()
    parts = words.str.lower().map(_SPLIT_WORDS)
    strange = present & parts.isna().to_numpy()
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(
            f"{nodes.where(row)}: split column {column!r} holds {_few(list(dict.fromkeys(words[strange])))}; it may hold "
            "train, val (or valid, validation), test and blanks (split=False makes it an ordinary column)"
        )
    if not present.any():
        raise ValueError(f"{nodes.name}: split column {column!r} is empty; fill it, or pass split=False")
    return Split(*(np.flatnonzero(present & (parts == part).to_numpy()) for part in Split._fields))


def _read_positions(nodes: Table, columns: list[str], extra: int) -> NDArray[np.float64]:
    if extra:
        raise ValueError(f"{extra} added nodes have no position; pass unknown='drop', or no positions")
    return np.column_stack([_numbers(nodes, column, "error")[0] for column in columns])


# -------------------------------------------------------------------- labels


def _pick_label(nodes: Table, options: Options, report: ReadReport) -> str | None:
    if options.label is False:
        return None
    if options.label is not None:
        column = nodes.find(options.label, "label")
        report.columns["label"] = f"{column!r} (as given)"
        return column
    named = [column for name in LABEL_NAMES if (column := nodes.named([name])) is not None]
    for column in named:
        if _class_problem(nodes.frame[column]) is None:
            report.columns["label"] = f"{column!r} (by name)"
            return column
    report.columns["label"] = "none" + "".join(f"; {column!r} does not hold classes" for column in named)
    return None


def _missing_labels(series: Any) -> NDArray[np.bool_]:
    missing = np.asarray(series.isna(), dtype=bool)
    if _is_text(series):
        missing |= np.asarray(series.str.strip().isin(_MISSING_WORDS), dtype=bool)
    elif _is_number(series):
        present = set(np.unique(series[~missing]).tolist())
        if present != {-1, 1}:
            missing |= np.asarray(series == -1, dtype=bool)
    return missing


def _class_problem(series: Any) -> tuple[int, str] | None:
    """Return a row and what about it shows that this column does not hold classes."""
    import pandas as pd

    present = ~_missing_labels(series)
    row = int(present.argmax()) if present.any() else 0
    if pd.api.types.is_datetime64_any_dtype(series.dtype) or pd.api.types.is_timedelta64_dtype(series.dtype):
        return row, "holds dates or times, not classes"
    if _is_number(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        odd = present & ~((values == np.floor(values)) & (np.abs(values) < _LARGEST_EXACT))
        if odd.any():
            return int(odd.argmax()), f"holds {values[odd.argmax()]!r}; labels are classes: whole numbers or texts"
    try:
        distinct = series[present].nunique()
    except TypeError:
        return row, "holds lists, not classes"
    if distinct == present.sum() > _ALL_DIFFERENT:
        return row, f"holds {distinct} values that all differ: names, not classes"
    return None


def _read_labels(nodes: Table, column: str) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    series = nodes.frame[column]
    missing = _missing_labels(series)
    if missing.all():
        raise ValueError(
            f"{nodes.name}: every label in column {column!r} is missing; fill some in, or pass label=False for a graph "
            "without labels"
        )
    problem = _class_problem(series)
    if problem is not None:
        raise ValueError(f"{nodes.where(problem[0])}: label column {column!r} {problem[1]}")
    codes = np.full(len(series), -1)
    if _is_number(series):
        names, codes[~missing] = np.unique(series[~missing].to_numpy(dtype=np.int64), return_inverse=True)
        return codes, None if np.array_equal(names, np.arange(len(names))) else names
    values = series[~missing].astype(object)
    if {type(value) for value in values} not in ({str}, {bool}):
        values = values.astype("str").astype(object)
    distinct = sorted(set(values))
    number = {name: k for k, name in enumerate(distinct)}
    codes[~missing] = [number[value] for value in values]
    return codes, _name_array(distinct)


# -------------------------------------------------------------------- features


class _Block(NamedTuple):
    """Some columns of the feature matrix, with their names and how they were read."""

    values: Any
    names: list[str]
    how: str


class _Unusable(Exception):
    """Why a column cannot be a feature, and how far the caller can do something about it."""


def _read_features(nodes: Table, extra: int, options: Options, report: ReadReport) -> Any:
    kinds: Mapping[str, str] = options.features if isinstance(options.features, Mapping) else {}
    asked = options.features not in (None, False)
    if options.features is False:
        columns = []
    elif asked:
        given = [options.features] if isinstance(options.features, str) else list(options.features)
        columns = [nodes.find(column, "feature") for column in given]
    else:
        columns = list(nodes.frame.columns)
    report.dropped.update({str(c): "not asked for" for c in nodes.frame.columns if c not in columns})
    blocks = []
    for column in columns:
        try:
            blocks.append(_read_column(nodes, column, extra, options, kinds.get(column), asked=asked))
        except _Unusable as why:
            if asked:
                raise ValueError(f"{nodes.name}: column {column!r} cannot be a feature: {why}") from None
            report.dropped[column] = str(why)
        else:
            report.features[column] = blocks[-1].how
            report.feature_names += blocks[-1].names
    if not blocks:
        return None
    dtype = np.float32 if all(block.values.dtype == np.float32 for block in blocks) else np.float64
    if any(issparse(block.values) for block in blocks):
        return hstack([csr_array(block.values) for block in blocks], format="csr", dtype=dtype)
    return np.hstack([block.values for block in blocks], dtype=dtype)


def _read_column(nodes: Table, column: str, extra: int, options: Options, kind: str | None, *, asked: bool) -> _Block:
    series = nodes.frame[column]
    if not asked and _looks_like_id(series):
        raise _Unusable("whole numbers that all differ, in a column named like an id")
    lists = _as_lists(series) if kind in (None, "tokens", "vector") else None
    if kind is None:
        kind = _guess_kind(nodes, column, lists)
    if kind in ("tokens", "vector"):
        if lists is None:
            lists = _split_texts(nodes, column)
        return (
            _bag(column, lists, extra) if kind == "tokens" else _vectors(nodes, column, lists, extra, options.missing)
        )
    if kind == "category":
        return _one_hot(column, series, extra, options.categories_max, asked=asked)
    values, lacking = _numbers(nodes, column, options.missing, extra)
    rule = f", {lacking} missing: {'the mean' if options.missing == 'mean' else '0'}" if lacking else ""
    return _Block(values.reshape(-1, 1), [column], f"number{rule}")


def _looks_like_id(series: Any) -> bool:
    name = str(series.name).strip().lower()
    named = name in ID_NAMES or name.endswith(("_id", " id"))
    return named and series.dtype.kind in "iu" and bool(series.is_unique) and len(series) > 1


def _guess_kind(nodes: Table, column: str, lists: list[list[Any]] | None) -> str:
    """Say how to read a column, or raise why not."""
    import pandas as pd

    series = nodes.frame[column]
    if lists is not None:
        return "vector" if _are_vectors(lists) else "tokens"
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "category"
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    if inferred == "boolean":
        return "category"
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number"
    if inferred in ("datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period"):
        raise _Unusable("dates or times; make numbers of them if they matter")
    if inferred == "empty":
        raise _Unusable("every value is missing")
    if inferred != "string":
        raise _Unusable(f"values of mixed or unusual kinds ({inferred})")
    present = ~_missing_labels(series)
    if not present.any():
        raise _Unusable("every value is missing")
    numeric = pd.to_numeric(series.where(present), errors="coerce").notna().to_numpy()
    if numeric.sum() == present.sum():
        return "number"
    if 2 * numeric.sum() >= present.sum():
        row = int((present & ~numeric).argmax())
        raise ValueError(
            f"{nodes.where(row)}: {series.iloc[row]!r} in column {column!r} is not a number, as most values there are; "
            f"correct it, or pass features={{{column!r}: 'category', ...}} or a list of features without it"
        )
    return "category"


def _numbers(nodes: Table, column: str, missing: str, extra: int = 0) -> tuple[NDArray[Any], int]:
    """Return a column as floats with the gaps filled, and how many there were."""
    import pandas as pd

    series = nodes.frame[column]
    if pd.api.types.is_complex_dtype(series.dtype):
        raise _Unusable("complex numbers")
    gaps = _missing_labels(series) if _is_text(series) else series.isna().to_numpy(dtype=bool)
    values = pd.to_numeric(series.where(~gaps), errors="coerce")
    values = values.to_numpy(dtype=np.float32 if series.dtype == np.float32 else np.float64, na_value=np.nan)
    bad = ~gaps & ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"{nodes.where(row)}: {_plain(series.iloc[row])!r} in column {column!r} is not a finite number; correct it, or "
            "leave it blank and choose a rule with missing="
        )
    if missing == "error" and (gaps.any() or extra):
        where = nodes.where(int(gaps.argmax())) if gaps.any() else f"{extra} added nodes"
        raise ValueError(
            f"{where}: no number in column {column!r}; fill it in, or pass missing='mean' or missing='zero'"
        )
    if gaps.all():
        raise _Unusable("every value is missing")
    filled = np.append(values, np.full(extra, np.nan, dtype=values.dtype))
    lacking = np.isnan(filled)
    filled[lacking] = values[~gaps].mean(dtype=np.float64) if missing == "mean" else 0
    return filled, int(lacking.sum())


def _one_hot(column: str, series: Any, extra: int, most: int, *, asked: bool) -> _Block:
    """One column per value; a missing value sets none of them."""
    import pandas as pd

    present = ~_missing_labels(series)
    values = series[present].astype(object)
    if len({type(value) for value in values}) > 1:
        values = values.astype("str").astype(object)
    try:
        codes, names = pd.factorize(values, sort=True)
    except TypeError:
        raise _Unusable("its values cannot be sorted into categories") from None
    if len(names) > most:
        raise _Unusable(f"{len(names)} different texts, more than categories_max={most}")
    if not asked and len(names) == len(values) > 1:
        raise _Unusable("texts that all differ: names, not categories")
    rows = np.flatnonzero(present)
    shape = (len(series) + extra, len(names))
    block = csr_array((np.ones(len(rows)), (rows, codes)), shape=shape)
    gaps = len(series) - len(rows)
    how = f"{len(names)} categories" + (f", {gaps} missing" if gaps else "")
    return _Block(block, [f"{column}={name}" for name in names], how)


# -------------------------------------------------------------------- lists of tokens and of numbers

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BRACKETED = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_NUMBER_LIST = re.compile(rf"\s*{_NUMBER}(?:\s*[,;|]\s*{_NUMBER})*\s*")


def _as_lists(series: Any) -> list[list[Any]] | None:
    """Return the lists that a column holds, as objects or unmistakably as text; None if it does not."""
    if series.dtype.kind != "O":
        return None
    cells = [None if _no_value(cell) else cell for cell in series]
    present = [cell for cell in cells if cell is not None]
    if not present:
        return None
    if all(isinstance(cell, list | tuple | set | frozenset | np.ndarray) for cell in present):
        return [[] if cell is None else _flat(cell) for cell in cells]
    if not all(isinstance(cell, str) for cell in present):
        return None
    present = [cell for cell in present if cell.strip() not in _MISSING_WORDS]
    bracketed = present and all(_BRACKETED.fullmatch(cell) for cell in present)
    # A decimal comma makes lists of two: three numbers somewhere show that commas separate.
    listed = any(len(re.findall("[,;|]", cell)) > 1 for cell in present) and all(map(_NUMBER_LIST.fullmatch, present))
    return _pieces(cells) if bracketed or listed else None


def _no_value(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def _flat(cell: Any) -> list[Any]:
    items = cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
    if not isinstance(items, list) or any(isinstance(item, list | tuple | dict | set) for item in items):
        raise _Unusable("lists within lists")
    return [item for item in items if not _no_value(item)]


def _split_texts(nodes: Table, column: str) -> list[list[Any]]:
    cells = [None if _no_value(cell) else cell for cell in nodes.frame[column]]
    odd = next((row for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, str)), None)
    if odd is not None:
        raise ValueError(f"{nodes.where(odd)}: {cells[odd]!r} in column {column!r} is not a list")
    return _pieces(cells)


def _pieces(cells: list[Any]) -> list[list[Any]]:
    """Cut texts into tokens, at the one separator that the column uses, and read them as numbers if all are."""
    bare = [(cell or "").strip().removeprefix("[").removesuffix("]") for cell in cells]
    separator = next((mark for mark in "|;," if any(mark in text for text in bare)), None)
    rows = [[piece.strip(" \t\r\n'\"") for piece in text.split(separator)] for text in bare]
    rows = [[piece for piece in row if piece not in _MISSING_WORDS] for row in rows]
    flat = [piece for row in rows for piece in row]
    for read, pattern in ((int, _WHOLE_NUMBER), (float, _NUMBER)):
        if all(re.fullmatch(pattern, piece) for piece in flat):
            return [[read(piece) for piece in row] for row in rows]
    return rows


def _are_vectors(lists: list[list[Any]]) -> bool:
    """Whether lists are coordinates: numbers, as many in every list, that cannot well be numbers of tokens."""
    lengths = {len(row) for row in lists} - {0}
    flat = [value for row in lists for value in row]
    if len(lengths) != 1 or not all(isinstance(value, int | float) for value in flat):
        return False
    return any(isinstance(value, float) or value < 0 for value in flat) or (max(flat) <= 1 and min(lengths) > 1)


def _bag(column: str, lists: list[list[Any]], extra: int) -> _Block:
    flat = [token for row in lists for token in row]
    if len({type(token) for token in flat}) > 1:
        flat = [str(token) for token in flat]
    try:
        tokens = sorted(set(flat))
    except TypeError:
        raise _Unusable("lists of values that are neither numbers nor texts") from None
    if not tokens:
        raise _Unusable("every list is empty")
    number = {token: k for k, token in enumerate(tokens)}
    indices = np.fromiter((number[token] for token in flat), dtype=np.int64, count=len(flat))
    indptr = np.cumsum([0, *map(len, lists), *[0] * extra])
    shape = (len(lists) + extra, len(tokens))
    block = csr_array((np.ones(len(flat)), indices, indptr), shape=shape)
    block.sum_duplicates()
    empty = sum(not row for row in lists)
    how = f"bag of {len(tokens)} tokens" + (f", {empty} empty" if empty else "")
    return _Block(block, [f"{column}:{token}" for token in tokens], how)


def _vectors(nodes: Table, column: str, lists: list[list[Any]], extra: int, missing: str) -> _Block:
    lengths = np.array([len(row) for row in lists])
    length = int(lengths.max(initial=0))
    odd = (lengths > 0) & (lengths != length)
    if odd.any():
        row = int(odd.argmax())
        raise ValueError(
            f"{nodes.where(row)}: column {column!r} holds {lengths[row]} numbers here and {length} elsewhere; vectors "
            f"must be of one length (features={{{column!r}: 'tokens'}} reads bags)"
        )
    if length == 0:
        raise _Unusable("every list is empty")
    present = lengths > 0
    values = np.full((len(lists) + extra, length), np.nan)
    try:
        values[: len(lists)][present] = [row for row in lists if row]
    except (TypeError, ValueError):
        raise _Unusable("lists of something else than numbers") from None
    bad = present & ~np.isfinite(values[: len(lists)]).all(axis=1)
    if bad.any():
        raise ValueError(f"{nodes.where(int(bad.argmax()))}: a vector in column {column!r} is not finite")
    gaps = np.isnan(values[:, 0])
    if gaps.any():
        if missing == "error":
            raise ValueError(
                f"{nodes.where(int(gaps.argmax()))}: no vector in column {column!r}; fill it in, or pass missing="
            )
        values[gaps] = values[~gaps].mean(axis=0) if missing == "mean" else 0
    rule = f", {int(gaps.sum())} missing: {'the mean' if missing == 'mean' else '0'}" if gaps.any() else ""
    return _Block(values, [f"{column}[{k}]" for k in range(length)], f"vector of {length}{rule}")


# -------------------------------------------------------------------- graphs without features


def stand_in_features(graph: Graph, how: str = "degree", dimension: int = 64) -> Graph:
    """Give a graph features that are made of its edges alone.

    Parameters
    ----------
    graph : Graph
        Features that it has are replaced.
    how : {"degree", "svd", "identity"}
        ``"degree"``: log(1 + number of neighbours), one column, or two (out, in) if the graph is directed.
        ``"svd"``: U√Σ of the truncated singular value decomposition A ≈ UΣVᵀ; a directed graph has half of the
        columns from U√Σ and half from V√Σ. ``"identity"``: a sparse identity matrix, one column per node.
    dimension : int
        Columns of ``"svd"``; fewer if the graph has fewer nodes than that.

    Returns
    -------
    Graph

    Notes
    -----
    Each of the three is the same in every run. Degrees follow the nodes under any renumbering. Singular vectors
    do so up to the sign (the entry largest in absolute value is made positive) and up to a rotation among
    those with equal singular values. The identity does not: it tells the nodes apart by their number.

    Examples
    --------
    >>> star = Graph.from_edges([[0, 1], [0, 2], [0, 3]])
    >>> stand_in_features(star).features.round(2).ravel()
    array([1.39, 0.69, 0.69, 0.69])
    >>> stand_in_features(star, "identity")
    Graph(n=4, edges=3, undirected, features=4 sparse)
    """
    if how == "degree":
        out = np.diff(graph.adjacency.indptr)
        into = np.bincount(graph.adjacency.indices, minlength=graph.n)
        degrees = np.column_stack([out, into]) if graph.directed else out.reshape(-1, 1)
        return graph.replace(features=np.log1p(degrees))
    if how == "svd":
        return graph.replace(features=_singular_vectors(graph, dimension))
    if how == "identity":
        return graph.replace(features=eye_array(graph.n, format="csr"))
    raise ValueError(f"how must be 'degree', 'svd' or 'identity', got {how!r}")


def _singular_vectors(graph: Graph, dimension: int) -> NDArray[np.float64]:
    if dimension < 1:
        raise ValueError(f"dimension must be at least 1, got {dimension}")
    k = min(graph.n, (dimension + 1) // 2 if graph.directed else dimension)
    if k > graph.n // 2 or graph.n <= 64:  # ARPACK needs k well below n
        u, sigma, vt = np.linalg.svd(graph.adjacency.toarray(), full_matrices=False)
        u, sigma, vt = u[:, :k], sigma[:k], vt[:k]
    else:
        start = np.random.default_rng(0).standard_normal(graph.n)
        u, sigma, vt = svds(graph.adjacency, k=k, v0=start)
        order = np.argsort(-sigma, kind="stable")
        u, sigma, vt = u[:, order], sigma[order], vt[order]
    signs = np.sign(u[np.abs(u).argmax(axis=0), np.arange(k)])
    root = np.sqrt(np.maximum(sigma, 0)) * np.where(signs == 0, 1, signs)
    sides = [u * root, vt.T * root] if graph.directed else [u * root]
    return np.hstack(sides)[:, :dimension]
