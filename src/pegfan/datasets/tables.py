"""A table of nodes and a table of edges become a Graph, and every guess on the way is written down.

The columns are guessed from their names and their content, and from their position only where these cannot
decide. What was guessed stands in a :class:`ReadReport`, and every guess can be overridden by naming the
column; ``False`` in place of a name says that there is no such column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from pegfan._arrays import IntArray
from pegfan._checks import BadInput, check_flag
from pegfan.datasets import _ids, _labels
from pegfan.datasets._blocks import Column
from pegfan.datasets._coded import places
from pegfan.datasets._columns import ID_NAMES, read_features
from pegfan.datasets._edges import (
    Derived,
    Listed,
    derive,
    end_columns,
    kinds_of,
    points,
    read_edges,
    require_columns,
    some_ends,
)
from pegfan.datasets._ids import Ids
from pegfan.datasets._numbers import read_positions
from pegfan.datasets._table import Options, ReadReport, Table, TableOptions, few, shown, unique_names
from pegfan.graph import Graph, Joined


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
    edges : DataFrame, dict of columns, array (m, 2) or (m, 3), list of pairs, or dict of tables by name
        Source, target and possibly a weight; an undirected edge once or in both directions. Rows may repeat, and have
        other columns: they are events then, see `edge_columns`. Several tables are so many kinds of edges: each has its
        matrix in ``graph.edge_matrices``, and the adjacency is the largest weight of all kinds.
    id : str or False, optional
        The column of `nodes` with the ids: any hashable values, all different. By default a column with a usual
        name (id, node, name, ...) in which at least half of the edge ends are found, else the column of
        different values that holds most of them, else the row numbers (which False asks for).
    label : str or False, optional
        By default a column named label, class, y, target or kind that holds classes. Whole numbers 0..k-1 are
        kept, anything else is numbered in sorted order and kept as ``class_names``; a missing value, and -1
        among numbers (unless the labels are just -1 and 1), is a node without a label. Numbers that can hardly be
        classes are numbers to predict, ``graph.targets``, see `label_kind`.
    label_kind : {"classes", "numbers"}, optional
        Whether the labels are classes or numbers to predict. By default they are numbers if more than 20 of them
        differ, and some are not whole or more than one in 20 differs; without `label`, only in a column named label or
        target.
    split : str, sequence of str or False, optional
        Columns with the words train, val (valid, validation) and test; blank for a node in no part. By
        default those named split, split_0, split_1, ..., and columns of truth values named train_mask, val_mask and
        test_mask (train_mask_0, ...), which are a split together.
    features : sequence of str, mapping or False, optional
        By default every column that has no other role, by what it holds; the table in the notes says how, and the
        report what became of each. Columns that are constant, count the rows, or hold ids or names are left out.
        A sequence names the columns to use; one that cannot be read is then an error. A mapping {column: kind}
        also says how: "number" (as it is), "log", "category", "date", "day first", "month first", "words",
        "tokens" or "vector". Features are dense if every column is a number, a date or a vector, else sparse.
    source, target : str, optional
        The columns of `edges`; by default by their usual names, else the first two.
    weight : str or False, optional
        By default a column named weight, or the third of three columns if it holds numbers.
    directed : bool, optional
        Whether row (i, j) is the arc from i to j only. By default so say names such as payer and payee, sender and
        receiver, citing and cited, buyer and seller, caller and callee, follower and followee; and names such as source
        and target, or from and to, where rows have columns of their own beside a weight.
    duplicates : {"max", "min", "sum", "mean", "count", "error"}, default "max"
        The weight of an edge that is given more than once.
    edge_columns : sequence of str or False, optional
        The columns of `edges` that are used besides its ends and its weight: by default all that hold numbers, times or
        categories. They become other weights of the edges, ``graph.edge_matrices``: count (how often an edge is
        given); of every number, without signs, sum, mean and log-sum; and recent, a sum of halves to the power of
        age over the median age. And they become features: of the events that leave a node (out), reach it (in), or
        either in an undirected graph (both), count and partners; sum, mean, largest, smallest and spread of numbers;
        recency, span, number per active day, gaps, weekends and hours of times, and the turnaround from in to out; and
        the share of each of the 8 most frequent categories. Those with a heavy tail are taken as
        sign(x) log(1 + size). False, or "none", for none of it.
    bipartite : bool, optional
        Whether one end of the edges is no row of `nodes` but of another kind, such as the devices of accounts: its ids
        are added as nodes, apart from others of the same name. By default so say the values: nearly all of the one end
        are ids of nodes, and nearly none of the other, in columns that are not named as two ends of one kind.
    unknown : {"error", "add", "drop"}, default "error"
        What to do with ids in `edges` that `nodes` does not have: raise an error, add them as nodes about which
        nothing is known, or drop them with their edges.
    missing : {"mean", "zero", "error"}, default "mean"
        What to do about a missing number or date: use the mean of its column, use 0, or raise an error. Unless it is
        an error, a column says where one was missing. A missing category sets none of its columns; a missing list
        is empty.
    categories_max : int, default 50
        The columns that a column of categories becomes, at most: of more categories, the rarest share one.
    positions : sequence of str, optional
        Two or three columns with the coordinates for drawing.
    metric : str, optional
        Passed to :class:`Graph`.
    schema : Schema, optional
        The ``report.schema`` of other tables: features are read by its rules, with its means, categories and days.
        Columns that the tables lack count as missing, columns that the schema lacks are not used; the report names
        both. Columns of edges are read by it too.
    report : bool
        Whether to return the :class:`ReadReport` too.

    Returns
    -------
    Graph, or (Graph, ReadReport)

    Notes
    -----
    What the columns of `nodes` become:

    ==========  ===========================================  ==================================================
    what        read as                                      names of features
    ==========  ===========================================  ==================================================
    numbers     numbers; the logarithm of 1 + size where     ``age``, ``amount (log)``; ``age missing`` if any
                they are skewed over more than two orders    is missing
                of magnitude
    booleans,   one column per value; of more than           ``city=Paris``, ``city=(other)``
    categories  `categories_max`, the rarest share one
    dates       days before the newest date; sine and        ``joined age``, ``joined month sin``, ...,
                cosine of month, weekday and hour where      ``joined missing`` if any is missing
                they vary
    free text   how often words occur, hashed into at        ``note#17``
                most 256 columns
    lists       of tokens: how often each occurs; of         ``tags:red``, ``where[0]``
                numbers, all of one length: vectors
    ==========  ===========================================  ==================================================

    Texts are free text if they have three words or more on average and most differ. Dates are written year first, day
    first or month first, with ``-``, ``.`` or ``/``, or with the name of the month; with a time or without. Which of
    day and month comes first is told by the content of the column, and said if nothing there tells. Numbers are seconds
    (or milliseconds, ...) since 1970 if the name of the column says date or time and they fall into the years 1980 to
    2100. Digits with leading zeros are categories.

    Ids of text files are compared as they are written: ``7``, ``007``, ``7.0`` and ``" 7"`` are four ids. So are
    classes, but for spaces around them and zeros behind a point: ``10``, ``010`` and ``1e1`` are three. Ids that are
    integers in one table and text in the other are compared as integers if every text is one
    (``"7"``, not ``"007"``), else as text; the report says so. A column in which both 1 and ``"1"`` occur is an
    error.

    Examples
    --------
    >>> nodes = {"name": ["ann", "bob", "cat"], "age": [31, None, 35], "kind": ["x", "y", "x"]}
    >>> graph, report = graph_from_tables(nodes, [("ann", "bob"), ("cat", "bob")], report=True)
    >>> graph
    Graph(n=3, edges=2, undirected, features=2, classes=2)
    >>> print(report)
    edges     'source' to 'target' (by name), undirected
    weight    none: every edge weighs 1
    id        'name' (by name)
    label     'kind' (by name): 2 classes, 0 of 3 nodes without
    feature   age: number, 1 missing: the mean and 'age missing'
    counts    0 repeated merged, 0 self loops, 0 unknown ids
    """
    account = ReadReport()
    node_table = None if nodes is None else Table(_as_frame(nodes, "nodes"), "nodes")
    named = edges if _are_several(edges) else {"edges": edges}
    tables = [Table(_as_frame(table, "edges"), str(name)) for name, table in named.items()]
    graph = build(node_table, tables, Options.of(options), account)
    return (graph, account) if check_flag(report, "report") else graph


def _are_several(edges: Any) -> bool:
    """Whether these are tables of edges by their names, not the columns of one."""
    import pandas as pd

    if not isinstance(edges, Mapping) or not edges:
        return False
    return all(isinstance(table, pd.DataFrame | Mapping) for table in edges.values())


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
    edges: Table | Sequence[Table],
    options: Options,
    report: ReadReport,
    *,
    n: int | None = None,
    bags: Mapping[str, Mapping[Any, Any]] | None = None,
) -> Graph:
    """Make the graph: what :func:`graph_from_tables` and the readers of files share.

    Without `nodes`, `n` says that they are 0..n-1, whether or not they have edges. `bags` are columns of lists by node
    id, joined to the nodes. Several tables of edges are so many kinds of edges.
    """
    tables = [edges] if isinstance(edges, Table) else list(edges)
    several = len(tables) > 1
    if nodes is not None and not several:
        refuse_swapped(nodes, tables[0], options)
    require_columns(tables, options)
    kinds = kinds_of(tables, options.schema)
    every = [
        read_edges(table, kind, nodes, options, report, several) for table, kind in zip(tables, kinds, strict=True)
    ]
    listed = _numbered(every)
    attributes: dict[str, Any] = {}
    if nodes is None:
        ids, known = _ids_of_edges(tables[0], listed, n)
        report.numbered = n is not None
        own = len(ids)
        ids, things = _with_things(ids, listed, report)
    else:
        column, ids = _ids_of_nodes(nodes, tables[0], listed.ids, options, report)
        ids, known = _match(nodes, ids, listed, options, report)
        own = len(ids)
        ids, things = _with_things(ids, listed, report)
        attributes = _read_attributes(nodes, column, ids, len(ids) - own, options, report, bags or {})
    if len(ids) > own:
        attributes["things"] = np.arange(len(ids)) >= own
    ends = [_nodes_of(codes, known, places) for codes, places in zip(listed.codes, things, strict=True)]
    return _assemble(every, ends, ids, attributes, options, report)


class _Numbered(NamedTuple):
    """The ends of all edges as places among the distinct ids; those of other things apart."""

    edges: list[Listed]
    codes: list[IntArray]  # (m, 2) per table, -1 for things
    ids: Ids
    things: dict[str, tuple[list[tuple[int, IntArray]], Ids]]  # by column: the tables, their places, and the ids


def _numbered(every: list[Listed]) -> _Numbered:
    if len(every) == 1 and every[0].apart is None:
        both, ids = _ids.number_ids(*_ids.agree(*every[0].ids))
        return _Numbered(every, [both], ids, {})
    columns = [(k, end, ids) for k, one in enumerate(every) for end, ids in enumerate(one.ids) if end != one.apart]
    codes = [np.full((one.table.size, 2), -1) for one in every]
    places, ids = _places([ids for _, _, ids in columns])
    for (k, end, _), place in zip(columns, places, strict=True):
        codes[k][:, end] = place
    things: dict[str, list[int]] = {}
    for k, one in enumerate(every):
        if one.apart is not None:
            things.setdefault(one.things, []).append(k)
    found = {}
    for name, members in things.items():
        places, own = _places([every[k].ids[every[k].apart or 0] for k in members])
        found[name] = (list(zip(members, places, strict=True)), own)
    return _Numbered(every, codes, ids, found)


def _places(columns: list[Ids]) -> tuple[list[IntArray], Ids]:
    """Return the places of the ids of several columns among the distinct ones, and these, sorted where they sort."""
    import pandas as pd

    kinds: dict[str, Any] = {}
    for ids in columns:
        kinds[ids.kind] = pd.concat([kinds[ids.kind], ids.values]) if ids.kind in kinds else ids.values
    joint = Ids(next(iter(kinds.values())), next(iter(kinds)))
    for kind, values in kinds.items():
        joint = _ids.agree(joint, Ids(values, kind))[0]
    dtype = {"int": np.int64, "str": "str"}.get(joint.kind, object)
    whole = pd.concat([ids.values.astype(dtype) for ids in columns], ignore_index=True)
    flat, distinct = pd.factorize(whole, sort=joint.kind != "other")
    cuts = np.cumsum([len(ids.values) for ids in columns])[:-1]
    return np.split(flat.astype(np.int64), cuts), Ids(pd.Series(distinct), joint.kind)


def _with_things(ids: Ids, listed: _Numbered, report: ReadReport) -> tuple[Ids, list[tuple[int, IntArray] | None]]:
    """Add the things that are no rows of the node table as nodes; names that nodes have already are kept apart."""
    import pandas as pd

    places: list[tuple[int, IntArray] | None] = [None] * len(listed.codes)
    for column, (members, own) in listed.things.items():
        start = len(ids.values)
        texts = own.values.astype("str")
        taken = set(ids.values.astype("str"))
        clash = texts.isin(taken)
        if clash.any() or own.kind != ids.kind:
            texts = column + " " + texts if clash.any() else texts
            ids = Ids(pd.concat([ids.values.astype("str"), texts], ignore_index=True), "str")
        else:
            ids = Ids(pd.concat([ids.values, own.values], ignore_index=True), ids.kind)
        for k, place in members:
            places[k] = (listed.edges[k].apart or 0, place + start)
        tables = ", ".join(listed.edges[k].table.name for k, _ in members)
        called = f" and called {shown(texts.iloc[0])}, ..., as nodes have the same ids" if clash.any() else ""
        report.notes.append(
            f"{len(own.values):,} ids in column {column!r} of {tables} are a kind of their own: nodes that join others "
            f"and are not predicted{called} ({few(list(own.values))}); --no-bipartite (bipartite=False) reads "
            "them as nodes like the others"
        )
    return ids, places


def _nodes_of(codes: IntArray, known: IntArray | None, things: tuple[int, IntArray] | None) -> IntArray:
    pairs = codes if known is None else np.append(known, -1)[codes]
    if things is not None:
        end, places = things
        pairs = pairs.copy()
        pairs[:, end] = places
    return pairs


def _require_once(table: Table, pairs: IntArray, kept: NDArray[np.bool_] | None, directed: bool) -> None:
    """Refuse a table that gives an edge more than once."""
    import pandas as pd

    frame = pd.DataFrame(pairs if directed else np.sort(pairs, axis=1))
    again = np.asarray(frame.duplicated())
    if again.any():
        late = int(again.argmax())
        early = int(np.asarray((frame == frame.iloc[late]).all(axis=1)).argmax())
        rows = np.arange(len(pairs)) if kept is None else np.flatnonzero(kept)
        raise BadInput(
            f"{table.where(rows[late])}: the edge was already given in {table.where(rows[early])} ({int(again.sum())} "
            "repeated rows); keep one of them, or choose duplicates='max', 'min', 'sum', 'mean' or 'count'"
        )


def _assemble(
    every: list[Listed],
    ends: list[IntArray],
    ids: Ids,
    attributes: dict[str, Any],
    options: Options,
    report: ReadReport,
) -> Graph:
    """Make the graph of the edges of all tables, with what their columns say."""
    several, n = len(every) > 1, len(ids)
    graphs: dict[str, Graph] = {}
    derived: list[Derived] = []
    for one, pairs in zip(every, ends, strict=True):
        kept = None if len(pairs) == 0 or pairs.min() >= 0 else np.asarray((pairs >= 0).all(axis=1))
        report.lost += 0 if kept is None else int((~kept).sum())
        rows = pairs if kept is None else pairs[kept]
        weights = one.weights if kept is None or one.weights is None else one.weights[kept]
        directed, why = points(one, rows, options)
        words = f"{one.ends.columns[0]!r} to {one.ends.columns[1]!r} ({one.ends.how}), "
        words += ("directed" if directed else "undirected") + why
        before = f"{report.columns['edges']}; " if "edges" in report.columns else ""
        report.columns["edges"] = f"{before}{one.table.name}: {words}" if several else words
        if options.duplicates == "error":
            _require_once(one.table, rows, kept, directed)
        graph = Graph.from_edges(rows, weights, n=n, directed=directed, duplicates=options.duplicates)
        present = len(rows) if weights is None else int(np.count_nonzero(weights))
        report.merged += present - graph.n_edges
        if present < len(rows):
            report.notes.append(f"{len(rows) - present} rows of {one.table.name} have weight 0 and are not edges")
        graphs[one.kind] = graph
        derived.append(derive(one, rows, kept, n, directed, several, options, report))
    matrices = {name: matrix for found in derived for name, matrix in found.matrices.items()}
    adjacency = next(iter(graphs.values())).adjacency
    for graph in [*graphs.values()][1:]:
        adjacency = adjacency.maximum(graph.adjacency)
    directed = any(graph.directed for graph in graphs.values())
    if several:
        kinds = {kind: Joined(graph.adjacency, not graph.directed, finite=True) for kind, graph in graphs.items()}
        matrices = kinds | matrices
    report.self_loops = int(np.count_nonzero(adjacency.diagonal()))
    report.columns = {role: report.columns[role] for role in ("edges", *report.columns) if role in report.columns}
    rules = {one.kind: found.rules for one, found in zip(every, derived, strict=True)}
    report.schema = replace(report.schema, edges=rules)
    return Graph(
        Joined(adjacency, symmetric=not directed, finite=True),
        directed=directed,
        metric=options.metric,
        node_names=_node_names(ids),
        edge_matrices=matrices,
        edge_kinds=list(graphs) if several else (),
        **_with_columns(attributes, derived),
    )


def _with_columns(attributes: dict[str, Any], derived: Sequence[Derived]) -> dict[str, Any]:
    """Join what the edges say of the nodes to their features."""
    columns = [values for found in derived for values in found.columns]
    if not columns:
        return attributes
    features, block = attributes.get("features"), np.column_stack(columns)
    names = list(attributes.get("feature_names") or ())
    names = unique_names([*names, *(name for found in derived for name in found.names)])
    if features is None:
        features = block
    elif issparse(features):
        features = hstack([features, csr_array(block)], format="csr")
    else:
        features = np.hstack([features, block])
    return {**attributes, "features": features, "feature_names": names}


def _ids_of_edges(edges: Table, listed: _Numbered, n: int | None) -> tuple[Ids, IntArray | None]:
    """Return the ids of the graph's nodes, and for each id of the edges its node (None: they are the same)."""
    import pandas as pd

    if n is not None:
        return Ids(pd.Series(np.arange(n)), "int"), np.asarray(listed.ids.values)
    if len(listed.ids) == 0:
        raise BadInput(f"{edges.name} holds no edges and there is no table of nodes; a graph needs a node")
    return listed.ids, None


def _node_names(ids: Ids) -> NDArray[Any] | None:
    """Return the names of the nodes, or None if they are just their positions."""
    if ids.kind != "int":
        found = None if ids.coded is None else ids.coded.texts.array(ids.coded.codes)
        return _ids.name_array(ids.values.tolist()) if found is None else found
    values = np.asarray(ids.values)
    return None if np.array_equal(values, np.arange(len(values))) else values


# -------------------------------------------------------------------- nodes and their ids


def edges_fit(edges: Table, nodes: Table) -> float:
    """Return the largest share of edge ends that some column of `nodes` holds whose values all differ."""
    columns = some_ends(edges, Options())
    return 0.0 if columns is None else max(_shares(edges, columns, nodes).values(), default=0.0)


def best_id(edges: Table, nodes: Table, ends: tuple[str, str]) -> str | None:
    """Return the column of `nodes` whose values all differ that holds the most ends of edges; None if it holds none."""
    shares = _shares(edges, ends, nodes)
    best = max(shares, key=lambda column: shares[column], default=None)
    return best if best is not None and shares[best] > 0 else None


def _shares(edges: Table, columns: tuple[str, str], nodes: Table, rows: int = 10_000) -> dict[str, float]:
    """Return the share of the ends of the first edges that each column of `nodes` holds whose values all differ."""
    try:
        some = [edges.ids(column, rows).dropna() for column in columns]
        ends = _ids.number_ids(*_ids.agree(*(_ids.read_ids(series, edges) for series in some)))[1]
    except (TypeError, ValueError):  # not even ids
        return {}
    return _ids.shares_found(ends, nodes)


def refuse_swapped(nodes: Table, edges: Table, options: Options) -> None:
    """Refuse a table of nodes that seems to hold the edges, beside one of edges that seems to hold the nodes."""
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

    if nodes.size == 0:
        raise BadInput(f"{nodes.name} has no rows; a graph needs a node")
    column, why = pick_id(nodes, edges, ends, options)
    report.id_column, report.numbered = column, column is None
    report.columns["id"] = f"{'row numbers' if column is None else repr(column)} ({why})"
    if column is None:
        return None, Ids(pd.Series(np.arange(nodes.size)), "int")
    blank = _ids.blanks(nodes.ids(column))
    if blank.any():
        raise BadInput(f"{nodes.where(blank.argmax())}: the id in column {column!r} is blank; every node needs one")
    ids = _ids.read_ids(nodes.ids(column), nodes)
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


def pick_id(nodes: Table, edges: Table, ends: Ids, options: Options) -> tuple[str | None, str]:
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
    if named and (best is None or found[best] < 1) and _misspelt(ends, edges, nodes, named[0]):
        return named[0], "by name"
    if best is not None and found[best] >= 0.5:
        than = "".join(f", {share:.0%} in {column!r}" for column, share in shares.items())
        return best, f"by content: {found[best]:.0%} of the edge ends are in it{than}"
    # A column called "name" may be no more than that; one called "id" is an id, and other ends are an error.
    if _may_be_rows(ends, nodes) and not set(named) - set(nodes.named("name", "node_name", "index", "unnamed: 0")):
        return None, "no column holds the edge ends"
    return (named[0], "by name") if named else _nearly_ids(nodes, edges, ends)


def _nearly_ids(nodes: Table, edges: Table, ends: Ids) -> tuple[str, str]:
    """Return the column that would hold the ids if none were blank or given twice, for that to be said; or refuse."""
    if len(ends.values) == 0:
        raise BadInput(
            f"{edges.name} has no rows, so nothing tells which column of {nodes.name} holds the ids; add rows, or name "
            "the column with id="
        )
    columns = [column for column in nodes.columns if _mostly_differs(nodes.series(column))]
    for column in columns:
        if nodes.series(column).dtype.kind != "f" and (share := _share_in(ends, nodes, column)) >= 0.9:
            return column, f"by content: {share:.0%} of the edge ends are in it"
    for column in columns:
        if near := _misspelt(ends, edges, nodes, column):
            raise BadInput(f"no column of {nodes.name} holds the ids of {edges.name}: {near} (column {column!r})")
    raise UnknownIds(
        f"no column of {nodes.name} holds the ids of {edges.name} (such as {few(ends.values)}): name it with id=, or "
        f"pass id=False for row numbers; its columns are {few(nodes.columns)}"
    )


def _mostly_differs(series: Any) -> bool:
    """Whether a column may hold ids but for some that are blank, repeated or written in another way."""
    if series.dtype.kind not in "iufO" and not _ids.is_text(series):
        return False
    try:
        return bool(2 * series.nunique() > len(series))
    except TypeError:  # lists
        return False


def _misspelt(ends: Ids, edges: Table, nodes: Table, column: str) -> str | None:
    """Say how ids of a column differ from the edge ends if it is only in how they are written."""
    try:
        ids = _ids.read_ids(nodes.ids(column).dropna(), nodes)
    except ValueError:  # no ids at all
        return None
    return _ids.spelling_hint(ends, edges, ids, nodes)


def _may_be_rows(ends: Ids, nodes: Table) -> bool:
    return ends.kind == "int" and bool(ends.values.between(0, nodes.size - 1).all())


def _share_in(ends: Ids, nodes: Table, column: str) -> float:
    try:
        return _ids.share_found(ends, _ids.read_ids(nodes.ids(column).dropna(), nodes))
    except ValueError:
        return 0.0


class UnknownIds(BadInput):
    """Edges have ends that the table of nodes does not have."""


def _match(
    nodes: Table, ids: Ids, listed: _Numbered, options: Options, report: ReadReport
) -> tuple[Ids, IntArray | None]:
    """Return the ids of the graph's nodes, and for each id of the edges its node (None: they are the same)."""
    import pandas as pd

    kinds = {"int": "integers", "str": "text", "other": "objects"}
    tables = ", ".join(one.table.name for one in listed.edges)
    before, (ids, ends) = ids.kind, _ids.agree(ids, listed.ids)
    if before != listed.ids.kind and len(ends.values):
        report.notes.append(
            f"ids are {kinds[before]} in {nodes.name} and {kinds[listed.ids.kind]} in {tables}; "
            f"they were compared as {kinds[ids.kind]}"
        )
    if ids.kind == ends.kind == "str":
        known = places(ends.values, ids.values)
    else:
        known = np.asarray(pd.Index(ids.values).get_indexer(pd.Index(ends.values)))
    strangers = known < 0
    report.unknown = int(strangers.sum())
    if not report.unknown:
        return ids, None if np.array_equal(known, np.arange(len(ids.values))) else known
    strange, known_ids = ends.values[strangers], ids
    if options.unknown == "error":
        marked = np.append(strangers, False)  # the last: things that are no nodes of the table, whose place is -1
        culprit = next(k for k, codes in enumerate(listed.codes) if marked[codes].any())
        edges, codes = listed.edges[culprit].table, listed.codes[culprit]
        raise UnknownIds(_stranger_message(nodes, edges, marked, ids, ends, codes, report))
    if options.unknown == "add":
        known[strangers] = len(ids.values) + np.arange(report.unknown)
        ids = Ids(pd.concat([ids.values, strange], ignore_index=True), ids.kind)
    action = "added as nodes" if options.unknown == "add" else "dropped with their edges"
    near = _ids.spelling_hint(Ids(strange, ends.kind), listed.edges[0].table, known_ids, nodes)
    report.notes.append(
        f"{report.unknown} ids of {tables} are not in {nodes.name}: {action} ({few(list(strange))})"
        + (f"; {near}" if near else "")
    )
    return ids, known


def _stranger_message(
    nodes: Table, edges: Table, strangers: NDArray[np.bool_], ids: Ids, ends: Ids, codes: IntArray, report: ReadReport
) -> str:
    touched = np.asarray(strangers[codes]).any(axis=1)
    row = int(touched.argmax())
    culprit = ends.values.iloc[codes[row][strangers[codes[row]]][0]]
    every_end, strangers = bool(strangers[codes[0]].all()), strangers[:-1]
    strange = list(ends.values[strangers])
    elsewhere = [column for column, share in _ids.shares_found(ends, nodes).items() if share == 1]
    hint = f"; column {elsewhere[0]!r} has them all: id={elsewhere[0]!r}?" if elsewhere else ""
    if not elsewhere and strangers.all() and _may_be_rows(ends, nodes):
        hint = "; if the edges hold row numbers, id=False"
    if near := None if elsewhere else _ids.spelling_hint(Ids(ends.values[strangers], ends.kind), edges, ids, nodes):
        return f"{edges.where(row)}: node {shown(culprit)} is not in {nodes.name} (id: {report.columns['id']}); {near}"
    if not edges.header and row == 0 and every_end:
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
    things: int,
    options: Options,
    report: ReadReport,
    bags: Mapping[str, Mapping[Any, Any]],
) -> dict[str, Any]:
    """Return labels, splits, positions and features; nodes that the table does not have come last, with nothing.

    The last of all are things.
    """
    extra = len(ids.values) - nodes.size
    rest = _without(nodes, [] if id_column is None else [id_column])
    rest = replace(rest, data=rest.frame.assign(**_join(nodes, ids, options, report, bags)))
    found: dict[str, Any] = {}

    if options.positions is not None:
        columns = [rest.find(column, "position") for column in options.positions]
        if extra:
            raise ValueError(f"{extra} added nodes have no position; pass unknown='drop', or no positions")
        found["positions"] = read_positions([Column(rest, column) for column in columns])
        report.columns["positions"] = few(columns)
        rest = _without(rest, columns)

    splits, masks = _labels.pick_splits(rest, options), _labels.pick_masks(rest, options)
    if splits or masks:
        found["splits"] = [_labels.read_split(rest, column) for column in splits]
        found["splits"] += [_labels.read_masks(rest, parts) for parts in masks]
        splits = [*splits, *(column for parts in masks for column in parts.values())]
        report.columns["splits"] = ", ".join(map(repr, splits))
        rest = _without(rest, splits)

    label, numeric = _labels.pick_label(rest, options, report)
    if label is not None and numeric:
        found["targets"], words = _labels.read_targets(rest, label, extra, options)
        report.columns["label"] += words
        rest = _without(rest, [label])
    elif label is not None:
        codes, found["class_names"] = _labels.read_labels(rest, label, options.label_kind)
        found["labels"] = np.append(codes, np.full(extra, -1))
        lacking, asked = int(np.count_nonzero(found["labels"] < 0)) - things, len(ids.values) - things
        report.columns["label"] += f": {codes.max() + 1} classes, {lacking} of {asked} nodes without"
        rest = _without(rest, [label])

    found["features"], found["feature_names"] = read_features(rest, extra, options, report)
    return found


def _without(table: Table, columns: list[str]) -> Table:
    return replace(table, data=table.frame.drop(columns=columns))


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
        cells = np.full(nodes.size, None, dtype=object)
        for row, items in zip(place.tolist(), bag.values(), strict=True):
            if 0 <= row < len(cells):
                cells[row] = items
        column = name.split(".")[0]
        columns[name if column in nodes.columns or column in columns else column] = cells
    return columns
