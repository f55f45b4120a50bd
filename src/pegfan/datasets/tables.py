"""A table of nodes and a table of edges become a Graph, and every guess on the way is written down.

The columns are guessed from their names and their content, and from their position only where these cannot
decide. What was guessed stands in a :class:`ReadReport`, and every guess can be overridden by naming the
column; ``False`` in place of a name says that there is no such column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import BadInput
from pegfan.datasets import _columns, _ids
from pegfan.datasets._columns import ID_NAMES
from pegfan.datasets._ids import Ids
from pegfan.datasets._table import Options, ReadReport, Table, TableOptions, few, shown
from pegfan.graph import Graph

WEIGHT_NAMES = ("weight", "weights", "w", "value", "count", "strength")
END_NAMES = (
    *(("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("i", "j"), ("node1", "node2")),
    *(("node_1", "node_2"), ("id1", "id2"), ("id_1", "id_2"), ("source_id", "target_id"), ("from_id", "to_id")),
    *(("fromnodeid", "tonodeid"), ("node_id", "node_id.1"), ("head", "tail"), ("start", "end")),
    *(("sender", "receiver"), ("citing", "cited"), ("follower", "followee")),
)


class _Edges(NamedTuple):
    codes: IntArray  # (m, 2), positions in `ids`
    ids: Ids
    weights: FloatArray | None


@overload
def graph_from_tables(
    nodes: Any, edges: Any, *, report: Literal[False] = False, **options: Unpack[TableOptions]
) -> Graph: ...


@overload
def graph_from_tables(
    nodes: Any, edges: Any, *, report: Literal[True], **options: Unpack[TableOptions]
) -> tuple[Graph, ReadReport]: ...


def graph_from_tables(
    nodes: Any, edges: Any, *, report: bool = False, **options: Unpack[TableOptions]
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
        The column of `nodes` with the ids: any hashable values, all different. By default a column with a usual
        name (id, node, name, ...) in which at least half of the edge ends are found, else the column of
        different values that holds most of them, else the row numbers (which False asks for).
    label : str or False, optional
        By default a column named label, class, y, target or kind that holds classes. Whole numbers 0..k-1 are
        kept, anything else is numbered in sorted order and kept as ``class_names``; a missing value, and -1
        among numbers (unless the labels are just -1 and 1), is a node without a label.
    split : str, sequence of str or False, optional
        Columns with the words train, val (valid, validation) and test; blank for a node in no part. By
        default those named split, split_0, split_1, ...
    features : sequence of str, mapping or False, optional
        By default every column that has no other role and can be read: numbers as they are; booleans, and texts
        with at most `categories_max` different values, one column per value; lists of tokens as bags (how
        often each token occurs); lists of numbers, all of one length, as vectors. Dates and free texts are
        left out. A sequence names the columns to use; one that cannot be read is then an error. A mapping
        {column: "number", "category", "tokens" or "vector"} also says how. Features are dense if every
        column is a number or a vector, else sparse. ``graph.feature_names`` are ``age`` for a number, ``city=Paris``
        for a category, ``tags:red`` for a token and ``where[0]`` for the first number of a vector.
    source, target : str, optional
        The columns of `edges`; by default by their usual names, else the first two.
    weight : str or False, optional
        By default a column named weight, or the third of three columns if it holds numbers.
    directed : bool, default False
        Whether row (i, j) is the arc from i to j only.
    duplicates : {"max", "min", "sum", "error"}, default "max"
        What to do with an edge that is given more than once.
    unknown : {"error", "add", "drop"}, default "error"
        What to do with ids in `edges` that `nodes` does not have: raise an error, add them as nodes about which
        nothing is known, or drop them with their edges.
    missing : {"mean", "zero", "error"}, default "mean"
        What to do about a missing number: use the mean of its column, use 0, or raise an error. A missing category
        sets none of its columns; a missing list is empty.
    categories_max : int, default 50
        See `features`.
    positions : sequence of str, optional
        Two or three columns with the coordinates for drawing.
    metric : str, default "accuracy"
        Passed to :class:`Graph`.
    report : bool
        Whether to return the :class:`ReadReport` too.

    Returns
    -------
    Graph, or (Graph, ReadReport)

    Notes
    -----
    Ids that are integers in one table and text in the other are compared as integers if every text is one
    (``"7"``, not ``"007"``), else as text; the report says so. A column in which both 1 and ``"1"`` occur is an
    error.

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
    account = ReadReport()
    node_table = None if nodes is None else Table(_as_frame(nodes, "nodes"), "nodes")
    graph = build(node_table, Table(_as_frame(edges, "edges"), "edges"), Options.of(options), account)
    return (graph, account) if report else graph


def _as_frame(table: Any, what: str) -> Any:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        index = table.index
        # An index with a name, or of texts, is a column; a plain numeric index only says where the rows were.
        kept = index.nlevels == 1 and (index.name is not None or not pd.api.types.is_numeric_dtype(index.dtype))
        frame = table.reset_index() if kept and len(table) else table.reset_index(drop=True)
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
    arrow = {name: dtype for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.ArrowDtype)}
    return frame.assign(**{name: frame[name].array.__arrow_array__().to_pandas() for name in arrow})


def _edge_frame(edges: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(edges if hasattr(edges, "__array__") else list(edges))
    if len(frame) == 0:
        return pd.DataFrame({"source": [], "target": []})
    if frame.shape[1] not in (2, 3):
        fix = "; transpose it: edges.T" if len(frame) in (2, 3) else ""
        raise ValueError(f"edges must have shape (m, 2) or (m, 3), one edge per row, got {frame.shape}{fix}")
    frame.columns = ["source", "target", "weight"][: frame.shape[1]]
    return frame


# -------------------------------------------------------------------- from tables to a graph


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

    Without `nodes`, `n` says that they are 0..n-1, whether or not they have edges. `bags` are columns of lists by node
    id, joined to the nodes.
    """
    if nodes is not None:
        _refuse_swapped(nodes, edges, options)
    listed = _read_edges(edges, options, report)
    attributes: dict[str, Any] = {}
    if nodes is None:
        ids, known = _ids_of_edges(edges, listed, n)
    else:
        column, ids = _ids_of_nodes(nodes, edges, listed.ids, options, report)
        ids, known = _match(nodes, edges, ids, listed, options, report)
        attributes = _read_attributes(nodes, column, ids, options, report, bags or {})
    pairs, weights = listed.codes if known is None else known[listed.codes], listed.weights
    if options.unknown == "drop" and report.unknown:
        kept = (pairs >= 0).all(axis=1)
        pairs, weights = pairs[kept], weights if weights is None else weights[kept]
    graph = Graph.from_edges(
        pairs,
        weights,
        n=len(ids.values),
        directed=bool(options.directed),
        duplicates=options.duplicates,
        metric=options.metric,
        node_names=_node_names(ids),
        **attributes,
    )
    present = len(pairs) if weights is None else int(np.count_nonzero(weights))
    report.merged = present - graph.n_edges
    report.self_loops = int(np.count_nonzero(graph.adjacency.diagonal()))
    if present < len(pairs):
        report.notes.append(f"{len(pairs) - present} rows of {edges.name} have weight 0 and are not edges")
    return graph


def _ids_of_edges(edges: Table, listed: _Edges, n: int | None) -> tuple[Ids, IntArray | None]:
    """Return the ids of the graph's nodes, and for each id of the edges its node (None: they are the same)."""
    import pandas as pd

    if n is not None:
        return Ids(pd.Series(np.arange(n)), "int"), np.asarray(listed.ids.values)
    if len(listed.ids.values) == 0:
        raise BadInput(f"{edges.name} holds no edges and there is no table of nodes; a graph needs a node")
    return listed.ids, None


def _node_names(ids: Ids) -> NDArray[Any] | None:
    """Return the names of the nodes, or None if they are just their positions."""
    if ids.kind != "int":
        return _ids.name_array(ids.values.tolist())
    values = np.asarray(ids.values)
    return None if np.array_equal(values, np.arange(len(values))) else values


def end_columns(table: Table) -> tuple[str, str] | None:
    """Return the columns with the usual names of edge ends."""
    for pair in END_NAMES:
        found = table.named(*pair)
        if len(found) == 2:
            return found[0], found[1]
    return None


def _read_edges(edges: Table, options: Options, report: ReadReport) -> _Edges:
    ends = _pick_ends(edges, options, report)
    for column in ends:
        if (blank := _ids.blanks(edges.frame[column])).any():
            raise BadInput(
                f"{edges.where(blank.argmax())}: column {column!r} is blank; an edge needs both ends "
                f"({int(blank.sum())} of {len(blank)} rows are blank)"
            )
    first, second = (_ids.read_ids(edges.frame[column], edges) for column in ends)
    weights = _read_weights(edges, ends, options, report)
    codes, ids = _ids.number_ids(*_ids.agree(first, second))
    return _Edges(codes, ids, weights)


def _pick_ends(edges: Table, options: Options, report: ReadReport) -> tuple[str, str]:
    columns = list(edges.frame.columns)
    guessed, how = end_columns(edges), "by name"
    if guessed is None:
        if len(columns) < 2:
            raise BadInput(
                f"{edges.name} has {len(columns)} column(s): {few(columns)}; edges need a source and a target "
                "(in a text file, is the delimiter right?)"
            )
        guessed, how = (columns[0], columns[1]), "the first two columns"
    source = guessed[0] if options.source is None else edges.find(options.source, "source")
    target = guessed[1] if options.target is None else edges.find(options.target, "target")
    if options.source is not None and options.target is not None:
        how = "as given"
    if source == target:
        raise BadInput(f"{edges.name}: source and target are the same column {source!r}; name them both")
    direction = "directed" if options.directed else "undirected"
    report.columns["edges"] = f"{source!r} to {target!r} ({how}), {direction}"
    return source, target


def _read_weights(edges: Table, ends: tuple[str, str], options: Options, report: ReadReport) -> FloatArray | None:
    import pandas as pd

    column = _pick_weight(edges, ends, options, report)
    if column is None:
        return None
    series = edges.frame[column]
    weights = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(good.argmin())
        raise BadInput(
            f"{edges.where(row)}: weight {shown(series.iloc[row])} in column {column!r} must be a finite number, "
            "not negative (weight=False ignores the column)"
        )
    return np.asarray(weights)


def _pick_weight(edges: Table, ends: tuple[str, str], options: Options, report: ReadReport) -> str | None:
    others = [column for column in edges.frame.columns if column not in ends]
    rest = replace(edges, frame=edges.frame[others])
    column, how = None, ""
    if options.weight is not None:
        column, how = None if options.weight is False else edges.find(options.weight, "weight"), "as given"
    elif named := rest.named(*WEIGHT_NAMES):
        column, how = named[0], "by name"
    elif len(others) == 1 and _ids.is_number(edges.frame[others[0]]):
        # Neither when an edge was made nor the number of its row is a weight.
        unfit = re.search("time|date|year", others[0].lower()) or rest.named(*ID_NAMES)
        column, how = None if unfit else others[0], "the third column"
    report.columns["weight"] = "none: every edge weighs 1" if column is None else f"{column!r} ({how})"
    report.dropped.update({f"{edges.name} {other!r}": "not used" for other in others if other != column})
    return column


# -------------------------------------------------------------------- nodes and their ids


def edges_fit(edges: Table, nodes: Table, rows: int = 10_000) -> float:
    """Return the largest share of edge ends that some column of `nodes` holds whose values all differ."""
    columns = end_columns(edges) or tuple(edges.frame.columns[:2])
    if len(columns) < 2:
        return 0.0
    try:
        some = edges.frame[list(columns)].iloc[:rows].dropna()
        ends = _ids.number_ids(*_ids.agree(*(_ids.read_ids(some[column], edges) for column in columns)))[1]
    except (TypeError, ValueError):  # not even ids
        return 0.0
    return max(_ids.shares_found(ends, nodes).values(), default=0.0)


def _refuse_swapped(nodes: Table, edges: Table, options: Options) -> None:
    if options.source is not None or options.target is not None or options.id is not None:
        return
    named = end_columns(nodes) is not None, end_columns(edges) is not None
    fits = named[0] >= named[1] and edges_fit(nodes, edges) >= 0.5
    if fits and (named == (True, False) or edges_fit(edges, nodes) < 0.5):
        raise BadInput(
            f"{nodes.name} and {edges.name} look swapped: the edges seem to be in {nodes.name}, and the nodes in "
            f"{edges.name}; exchange them, or name their columns with source=, target= and id="
        )


def _ids_of_nodes(
    nodes: Table, edges: Table, ends: Ids, options: Options, report: ReadReport
) -> tuple[str | None, Ids]:
    """Return the column with the ids (None: the row numbers), and these, all different."""
    import pandas as pd

    if len(nodes.frame) == 0:
        raise BadInput(f"{nodes.name} has no rows; a graph needs a node")
    column, why = _pick_id(nodes, edges, ends, options)
    report.columns["id"] = f"{'row numbers' if column is None else repr(column)} ({why})"
    if column is None:
        return None, Ids(pd.Series(np.arange(len(nodes.frame))), "int")
    blank = _ids.blanks(nodes.frame[column])
    if blank.any():
        raise BadInput(f"{nodes.where(blank.argmax())}: the id in column {column!r} is blank; every node needs one")
    ids = _ids.read_ids(nodes.frame[column], nodes)
    again = np.asarray(ids.values.duplicated())
    if again.any():
        culprit = ids.values.iloc[int(again.argmax())]
        earlier = int(np.asarray(ids.values == culprit).argmax())
        raise BadInput(
            f"{nodes.where(again.argmax())}: id {shown(culprit)} in column {column!r} was already given in "
            f"{nodes.where(earlier)} ({int(again.sum())} duplicate rows); keep one row per node, or name another "
            "column with id="
        )
    return column, ids


def _pick_id(nodes: Table, edges: Table, ends: Ids, options: Options) -> tuple[str | None, str]:
    """Return the column with the ids, None for the row numbers, and the reason."""
    if options.id is not None:
        return (None if options.id is False else nodes.find(options.id, "id")), "as given"
    named = nodes.named(*ID_NAMES)
    shares = {column: _share_in(ends, nodes, column) for column in named}
    for column in named:
        # An id column with a usual name stays the id column if a few edge ends are missing from it: they are
        # reported as unknown. If most are missing, the edges speak of another column.
        if shares[column] >= 0.5 or len(ends.values) == 0:
            return column, "by name"
    found = _ids.shares_found(ends, nodes)
    best = max(found, key=lambda column: found[column], default=None)
    if best is not None and found[best] >= 0.5:
        than = "".join(f", {share:.0%} in {column!r}" for column, share in shares.items())
        return best, f"by content: {found[best]:.0%} of the edge ends are in it{than}"
    # A column called "name" may be no more than that; one called "id" is an id, and other ends are an error.
    if _may_be_rows(ends, nodes) and not set(named) - set(nodes.named("name", "node_name", "index", "unnamed: 0")):
        return None, "no column holds the edge ends"
    if named:
        return named[0], "by name"
    raise BadInput(
        f"no column of {nodes.name} holds the ids of {edges.name} (such as {few(ends.values)}): name it with id=, or "
        f"pass id=False for row numbers; its columns are {few(list(nodes.frame.columns))}"
    )


def _may_be_rows(ends: Ids, nodes: Table) -> bool:
    return ends.kind == "int" and bool(ends.values.between(0, len(nodes.frame) - 1).all())


def _share_in(ends: Ids, nodes: Table, column: str) -> float:
    try:
        return _ids.share_found(ends, _ids.read_ids(nodes.frame[column].dropna(), nodes))
    except ValueError:
        return 0.0


def _match(
    nodes: Table, edges: Table, ids: Ids, listed: _Edges, options: Options, report: ReadReport
) -> tuple[Ids, IntArray | None]:
    """Return the ids of the graph's nodes, and for each id of the edges its node (None: they are the same)."""
    import pandas as pd

    kinds = {"int": "integers", "str": "text", "other": "objects"}
    before, (ids, ends) = ids.kind, _ids.agree(ids, listed.ids)
    if before != listed.ids.kind and len(ends.values):
        report.notes.append(
            f"ids are {kinds[before]} in {nodes.name} and {kinds[listed.ids.kind]} in {edges.name}; "
            f"they were compared as {kinds[ids.kind]}"
        )
    known = np.asarray(pd.Index(ids.values).get_indexer(pd.Index(ends.values)))
    strangers = known < 0
    report.unknown = int(strangers.sum())
    if not report.unknown:
        return ids, None if np.array_equal(known, np.arange(len(ids.values))) else known
    strange = ends.values[strangers]
    if options.unknown == "error":
        raise BadInput(_stranger_message(nodes, edges, strangers, ends, listed.codes, report))
    if options.unknown == "add":
        known[strangers] = len(ids.values) + np.arange(report.unknown)
        ids = Ids(pd.concat([ids.values, strange], ignore_index=True), ids.kind)
    action = "added as nodes" if options.unknown == "add" else "dropped with their edges"
    report.notes.append(
        f"{report.unknown} ids of {edges.name} are not in {nodes.name}: {action} ({few(list(strange))})"
    )
    return ids, known


def _stranger_message(
    nodes: Table, edges: Table, strangers: NDArray[np.bool_], ends: Ids, codes: IntArray, report: ReadReport
) -> str:
    touched = np.asarray(strangers[codes]).any(axis=1)
    row = int(touched.argmax())
    culprit = ends.values.iloc[codes[row][strangers[codes[row]]][0]]
    strange = list(ends.values[strangers])
    elsewhere = [column for column, share in _ids.shares_found(ends, nodes).items() if share == 1]
    hint = f"; column {elsewhere[0]!r} has them all: id={elsewhere[0]!r}?" if elsewhere else ""
    if not elsewhere and strangers.all() and _may_be_rows(ends, nodes):
        hint = "; if the edges hold row numbers, id=False"
    if not edges.header and row == 0 and strangers[codes[0]].all():
        hint = f"; or is this line the header? header={{{edges.name!r}: True}}"
    return (
        f"{edges.where(row)}: node {shown(culprit)} is not in {nodes.name} (id: {report.columns['id']}); "
        f"{len(strange)} ids in {int(touched.sum())} of {len(codes)} edges are unknown: {few(strange)}. "
        f"Pass unknown='add' to add them as nodes, or unknown='drop' to leave out their edges{hint}"
    )


# -------------------------------------------------------------------- what is known about the nodes


def _read_attributes(
    nodes: Table,
    id_column: str | None,
    ids: Ids,
    options: Options,
    report: ReadReport,
    bags: Mapping[str, Mapping[Any, Any]],
) -> dict[str, Any]:
    """Return labels, splits, positions and features; nodes that the table does not have come last, with nothing."""
    extra = len(ids.values) - len(nodes.frame)
    rest = _without(nodes, [] if id_column is None else [id_column])
    rest = replace(rest, frame=rest.frame.assign(**_join(nodes, ids, options, report, bags)))
    found: dict[str, Any] = {}

    if options.positions is not None:
        columns = [rest.find(column, "position") for column in options.positions]
        if extra:
            raise ValueError(f"{extra} added nodes have no position; pass unknown='drop', or no positions")
        found["positions"] = _columns.read_positions(rest, columns)
        report.columns["positions"] = few(columns)
        rest = _without(rest, columns)

    splits = _columns.pick_splits(rest, options)
    if splits:
        found["splits"] = [_columns.read_split(rest, column) for column in splits]
        report.columns["splits"] = ", ".join(map(repr, splits))
        rest = _without(rest, splits)

    label = _columns.pick_label(rest, options, report)
    if label is not None:
        codes, found["class_names"] = _columns.read_labels(rest, label)
        found["labels"] = np.append(codes, np.full(extra, -1))
        lacking = int(np.count_nonzero(found["labels"] < 0))
        report.columns["label"] += f": {codes.max() + 1} classes, {lacking} of {len(ids.values)} nodes without"
        rest = _without(rest, [label])

    found["features"], found["feature_names"] = _columns.read_features(rest, extra, options, report)
    return found


def _without(table: Table, columns: list[str]) -> Table:
    return replace(table, frame=table.frame.drop(columns=columns))


def _join(
    nodes: Table, ids: Ids, options: Options, report: ReadReport, bags: Mapping[str, Mapping[Any, Any]]
) -> dict[str, NDArray[Any]]:
    """Return lists that are given by node id as columns of the node table."""
    import pandas as pd

    columns = {}
    for name, bag in bags.items():
        keys, among = _ids.agree(_ids.read_ids(pd.Series(list(bag), name="id", dtype=object), Table(None, name)), ids)
        place = pd.Index(among.values).get_indexer(pd.Index(keys.values))
        strange = list(keys.values[place < 0])
        if strange and options.unknown == "error":
            raise BadInput(
                f"{name}: {len(strange)} of {len(bag)} ids are not in {nodes.name}: {few(strange)}; "
                "pass unknown='drop' to leave them out"
            )
        if strange:
            report.notes.append(f"{len(strange)} ids of {name} are not in {nodes.name}: dropped ({few(strange)})")
        cells = np.full(len(nodes.frame), None, dtype=object)
        for row, items in zip(place.tolist(), bag.values(), strict=True):
            if 0 <= row < len(cells):
                cells[row] = items
        column = name.split(".")[0]
        columns[name if column in nodes.frame.columns or column in columns else column] = cells
    return columns
