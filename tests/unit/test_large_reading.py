"""Files of any number, read in pieces, make the graph that the reader of small files makes, bit for bit."""

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy.sparse import issparse

from pegfan.datasets import read_graph
from pegfan.datasets.readers import FileOptions
from pegfan.large import _ends, _features
from pegfan.large.pieces import Work
from pegfan.large.reading import read_tables

# ------------------------------------------------------------------------------- comparing


def adjacency_of(tables):
    edges, n = tables.edges, tables.nodes.result()["n"]
    indptr, indices, data = [np.zeros(1, np.int64)], [], []
    row = 0
    for block, about in enumerate(edges.results):
        assert about["start"] == row
        row = about["stop"]
        pointers, columns = edges.load("pointers", block), edges.load("columns", block)
        assert pointers[0] == 0
        assert len(pointers) == about["stop"] - about["start"] + 1
        assert about["arcs"] == len(columns)
        indptr.append(pointers[1:].astype(np.int64) + indptr[-1][-1])
        indices.append(columns)
        weighted = edges.has("weights", block)
        data.append(edges.load("weights", block).astype(np.float64) if weighted else np.ones(len(columns)))
    assert row == n
    return np.concatenate(indptr), np.concatenate(indices), np.concatenate(data)


def names_of(tables):
    if tables.nodes.result()["ids"] == "rows":
        return None
    return parquet.read_table(tables.nodes.path("ids.parquet"))["id"].to_pylist()


def features_of(tables):
    if tables.features is None:
        return None
    parts = [tables.features.load("values", k) for k in range(tables.features.count)]
    assert all(part.flags.c_contiguous for part in parts)
    return np.hstack([part.astype(np.float64) for part in parts])


def require_same(tables, graph):
    """Whether stages hold just what a graph holds."""
    about = tables.nodes.result()
    assert about["n"] == graph.n
    assert tables.directed == graph.directed
    indptr, indices, data = adjacency_of(tables)
    np.testing.assert_array_equal(indptr, graph.adjacency.indptr)
    np.testing.assert_array_equal(indices, graph.adjacency.indices)
    np.testing.assert_array_equal(data, graph.adjacency.data)
    assert names_of(tables) == (None if graph.node_names is None else graph.node_names.tolist())
    found = features_of(tables)
    assert (found is None) == (graph.features is None)
    if found is not None:
        expected = graph.features.toarray() if issparse(graph.features) else np.asarray(graph.features)
        np.testing.assert_array_equal(found, expected)
        assert about["sparse"] == issparse(graph.features)
        assert about["dtype"] == str(expected.dtype)
        assert about["columns"] == list(graph.feature_names)
    assert tables.nodes.has("labels") == (graph.labels is not None)
    if graph.labels is not None:
        np.testing.assert_array_equal(tables.nodes.load("labels"), graph.labels)
        assert about["classes"] == (None if graph.class_names is None else graph.class_names.tolist())
        assert about["n_classes"] == graph.n_classes
    assert tables.nodes.has("targets") == (graph.targets is not None)
    if graph.targets is not None:
        np.testing.assert_array_equal(tables.nodes.load("targets"), graph.targets)
    assert about["splits"] == len(graph.splits or ())
    for k, split in enumerate(graph.splits or ()):
        for part, nodes in split._asdict().items():
            np.testing.assert_array_equal(tables.nodes.load(f"split{k}_{part}"), nodes)


def write(folder, name, frame, kind, files=1, groups=None):
    """Write a table in several files; its whole in one beside them, as the reader of small files reads it."""
    folder = Path(folder)
    cuts = np.linspace(0, len(frame), files + 1).astype(int)
    (folder / name).mkdir()
    (folder / "whole").mkdir(exist_ok=True)
    parts = [(folder / "whole" / f"{name}.{kind}", frame)]
    parts += [(folder / name / f"part-{k}.{kind}", frame.iloc[a:b]) for k, (a, b) in enumerate(pairwise(cuts))]
    for path, some in parts:
        if kind == "parquet":
            table = pa.Table.from_pandas(frame, preserve_index=False).slice(
                *((0, len(frame)) if some is frame else (int(cuts[int(path.stem[5:])]), len(some)))
            )
            parquet.write_table(table, path, row_group_size=groups)
        elif kind == "csv.gz":
            with gzip.open(path, "wt", newline="") as file:
                some.to_csv(file, index=False)
        else:
            some.to_csv(path, index=False)
    return parts[0][0], folder / name


def both(
    folder,
    nodes,
    edges,
    kind="parquet",
    files=(1, 1),
    groups=None,
    memory=10**9,
    how=None,
    slab=None,
    piece=None,
    **options,
):
    """What the reader of small files and the reader in pieces make of the same tables, compared."""
    given = {}
    whole_edges, many_edges = write(folder, "edges", edges, kind, files[1], groups)
    whole_nodes = many_nodes = None
    if nodes is not None:
        whole_nodes, many_nodes = write(folder, "nodes", nodes, kind, files[0], groups)
    given = {} if how is None else {"header": how.header}
    graph, report = read_graph(edges=whole_edges, nodes=whole_nodes, report=True, **given, **options)
    with Work(Path(folder, "work"), memory=memory, workers=1) as work:
        tables = read_tables(work, many_nodes, many_edges, how=how, slab=slab, piece=piece, **options)
        require_same(tables, graph)
        found = tables.report
        for name in ("features", "dropped", "merged", "self_loops", "lost"):
            assert getattr(found, name) == getattr(report, name), name
        for role in ("weight", "id", "label"):
            assert found.columns.get(role) == report.columns.get(role)
        assert found.schema.nodes == report.schema.nodes
        return tables.edges.count, graph


# ------------------------------------------------------------------------------- whole tables

PEOPLE = pd.DataFrame(
    {
        "name": [f"p{k * 37 % 100:02d}" for k in range(60)],
        "age": [None if k % 9 == 4 else 20 + k % 40 for k in range(60)],
        "income": [10.0 ** (k % 7) for k in range(60)],
        "town": [["Rome", "Oslo", "Bern", "NA", None][k % 5] for k in range(60)],
        "joined": [f"{2000 + k % 20}-0{1 + k % 9}-1{k % 10}" for k in range(60)],
        "code": [f"0{k % 4}7" for k in range(60)],
        "note": [f"this is note {k} about {['cats', 'dogs'][k % 2]}" for k in range(60)],
        "same": [3] * 60,
        "kind": [["x", "y", "", "z"][k % 4] for k in range(60)],
        "split": [["train", "val", "test", ""][k % 4] for k in range(60)],
        "split_1": [["test", "train", "valid"][k % 3] for k in range(60)],
    }
)


def some_edges(ids, m, rng, weights=False):
    found = {"source": rng.choice(ids, m), "target": rng.choice(ids, m)}
    return pd.DataFrame(found | ({"weight": rng.integers(0, 9, m) / 4} if weights else {}))


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz"])
@pytest.mark.parametrize("weights", [False, True])
def test_all_kinds_of_columns_in_many_files(tmp_path, kind, weights):
    edges = some_edges(PEOPLE["name"], 300, np.random.default_rng(0), weights)
    count, graph = both(tmp_path, PEOPLE, edges, kind, files=(3, 4), groups=20, slab=3, piece=50, memory=20_000)
    assert count > 3
    assert graph.n_classes == 3
    assert {"age missing", "income (log)", "town=Rome", "joined age", "code=007"} <= set(graph.feature_names)


def test_masks_comments_and_quotes_are_read_alike(tmp_path):
    rng = np.random.default_rng(4)
    parts = {f"{part}_mask": np.arange(60) % 3 == k for k, part in enumerate(("train", "val", "test"))}
    people = PEOPLE.drop(columns=["split", "note"]).assign(**parts)
    people["name"] = [f"#{name}" if k % 5 == 2 else name for k, name in enumerate(people["name"])]
    _, graph = both(tmp_path, people, some_edges(people["name"], 200, rng), "csv", files=(2, 2))
    assert len(graph.splits) == 2
    path = tmp_path / "odd.csv"
    for late in ('p99,"p98', "p99,p98"):
        rows = [f"p{k},p{k + 1}" for k in range(20_000)]
        rows[7], rows[11_000] = 'p7,"p8', late
        path.write_text("source,target\n" + "\n".join(rows))
        with (
            Work(tmp_path / "odd", memory=10**9, workers=1) as work,
            pytest.raises(ValueError, match="line 9: a quoted"),
        ):
            read_tables(work, None, path).edges.results  # noqa: B018 - which reads them


@pytest.mark.parametrize("duplicates", ["max", "min", "sum", "mean", "count"])
@pytest.mark.parametrize("directed", [False, True])
def test_weights_of_repeated_edges(tmp_path, duplicates, directed):
    rng = np.random.default_rng(1)
    edges = pd.DataFrame({"u": rng.integers(0, 9, 2000), "v": rng.integers(0, 9, 2000), "w": rng.random(2000)})
    edges.loc[::7, "w"] = 0
    options = {"duplicates": duplicates, "directed": directed}
    both(tmp_path, None, edges, files=(1, 3), groups=100, piece=300, memory=10_000, **options)


@pytest.mark.parametrize("duplicates", ["sum", "count", "max"])
def test_repeated_edges_without_weights(tmp_path, duplicates):
    rng = np.random.default_rng(1)
    edges = pd.DataFrame({"u": rng.integers(0, 30, 500), "v": rng.integers(0, 30, 500)})
    both(tmp_path, None, edges, files=(1, 3), groups=100, duplicates=duplicates)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_edges_alone_number_nodes_in_the_order_of_their_ids(tmp_path, kind):
    texts = ["b", "a", "Z", "é", "10", "9", "ab", " a", "a rather long id, longer than a slot", "日本"]
    edges = some_edges(texts, 60, np.random.default_rng(2))
    _, graph = both(tmp_path, None, edges, kind, files=(1, 3))
    assert graph.node_names.tolist() == sorted(set(edges["source"]) | set(edges["target"]))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_edges_alone_of_numbers_in_order_of_size(tmp_path, kind):
    _, graph = both(tmp_path, None, pd.DataFrame({"a": [10, 9, -3, 10**15], "b": [9, 10, 10, 9]}), kind, files=(1, 2))
    assert graph.node_names.tolist() == [-3, 9, 10, 10**15]


def test_folders_with_names_that_look_like_patterns(tmp_path):
    folder = tmp_path / "a[b]*? 'c'"
    folder.mkdir()
    both(folder, None, some_edges(["x", "y", "z"], 20, np.random.default_rng(2)), files=(1, 2))


@pytest.mark.parametrize("unknown", ["add", "drop"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_ids_that_the_nodes_lack(tmp_path, unknown, kind):
    edges = some_edges([*PEOPLE["name"], "new", "other", "Ann"], 300, np.random.default_rng(3))
    _, graph = both(tmp_path, PEOPLE, edges, kind, files=(2, 3), groups=30, piece=60, unknown=unknown)
    assert graph.n == (63 if unknown == "add" else 60)


@pytest.mark.parametrize(
    ("node_ids", "ends"),
    [
        ([3, 1, 2], ["1", "2", "3"]),  # texts that are all numbers are numbers
        (["3", "1", "2"], [1, 2, 3]),
        (["3", "1", "x"], [1, 3, 1]),  # numbers among texts are texts
        (["7", "007", "7.0"], ["7", "7.0", "007"]),  # as they are written
        ([0, 1, 2], [2, 1, 0]),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_ids_of_two_kinds(tmp_path, node_ids, ends, kind):
    nodes = pd.DataFrame({"id": node_ids, "x": [0.1, 0.2, 0.4]})
    edges = pd.DataFrame({"source": ends, "target": [*ends[1:], ends[0]]})
    both(tmp_path, nodes, edges, kind)


def test_whole_floats_as_ids(tmp_path):
    nodes = pd.DataFrame({"id": [3, 1, 2], "x": [0.1, 0.2, 0.4]})
    both(tmp_path, nodes, pd.DataFrame({"source": [1.0, 2.0], "target": [3.0, 3.0]}))


def test_row_numbers_as_ids(tmp_path):
    nodes = pd.DataFrame({"age": [0.5, 1.5, 2.5, 4.0]})
    both(tmp_path, nodes, pd.DataFrame({"source": [0, 1, 3], "target": [3, 2, 1]}))


def test_targets_and_positions(tmp_path):
    rng = np.random.default_rng(5)
    nodes = pd.DataFrame({"id": range(40), "target": rng.random(40), "x": rng.random(40), "y": rng.random(40)})
    _, graph = both(tmp_path, nodes, some_edges(range(40), 80, rng), positions=["x", "y"], files=(2, 2))
    assert graph.targets is not None
    assert graph.positions.shape == (40, 2)
    with Work(tmp_path / "work") as work:
        tables = read_tables(work, tmp_path / "nodes", tmp_path / "edges", positions=["x", "y"])
        np.testing.assert_array_equal(tables.nodes.load("positions"), graph.positions)


def test_options_of_columns(tmp_path):
    edges = some_edges(PEOPLE["name"], 100, np.random.default_rng(6))
    features = {"town": "category", "income": "number", "age": "number"}
    options = {"id": "name", "label": "town", "split": False, "missing": "zero"}
    both(tmp_path, PEOPLE, edges, files=(2, 1), **options, features={k: v for k, v in features.items() if k != "town"})


def test_single_precision_where_that_is_exact(tmp_path):
    rng = np.random.default_rng(7)
    nodes = pd.DataFrame({"id": range(30), "a": rng.random(30, np.float32), "b": rng.random(30, np.float32)})
    edges = some_edges(range(30), 50, rng)
    both(tmp_path, nodes, edges)
    with Work(tmp_path / "work") as work:
        tables = read_tables(work, tmp_path / "nodes", tmp_path / "edges")
        assert tables.features.load("values").dtype == np.float32
        assert tables.nodes.result()["dtype"] == "float32"


def test_a_schema_reads_other_tables_alike(tmp_path):
    edges = some_edges(PEOPLE["name"], 100, np.random.default_rng(8))
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    _, first = both(tmp_path / "one", PEOPLE, edges, slab=4)
    with Work(tmp_path / "one" / "work") as work:
        schema = read_tables(work, tmp_path / "one" / "nodes", tmp_path / "one" / "edges", slab=4).report.schema
    others = PEOPLE.drop(columns=["age"]).assign(new=1.5)
    whole_edges, many_edges = write(tmp_path / "two", "edges", edges, "parquet", 2)
    whole_nodes, many_nodes = write(tmp_path / "two", "nodes", others, "parquet", 2)
    graph, report = read_graph(edges=whole_edges, nodes=whole_nodes, schema=schema, report=True)
    assert list(graph.feature_names) == list(first.feature_names)
    with Work(tmp_path / "two" / "work") as work:
        tables = read_tables(work, many_nodes, many_edges, schema=schema)
        require_same(tables, graph)
        assert tables.report.filled == report.filled == ["age"]
        assert tables.report.strange == report.strange == ["new"]
        assert tables.report.dropped == report.dropped


# ------------------------------------------------------------------------------- any tables

LETTERS = st.characters(codec="utf-8", exclude_characters='\x00"', exclude_categories=["C", "Z"])
IDS = st.one_of(
    st.lists(st.text(LETTERS, min_size=1, max_size=20), min_size=1, max_size=12, unique=True),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=12, unique=True),
    st.integers(1, 12).map(lambda n: list(range(n))),
)


@st.composite
def tables(draw):
    ids = draw(IDS)
    n = len(ids)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes = pd.DataFrame({"id": draw(st.permutations(ids)) if draw(st.booleans()) else ids})
    nodes["value"] = rng.random(n) if draw(st.booleans()) else rng.integers(-3, 3, n)
    nodes["group"] = rng.choice(["a", "b", "c d", None], n)
    if draw(st.booleans()):
        nodes["label"] = rng.choice(["one", "two"], n)
    m = draw(st.integers(1, 30))
    edges = pd.DataFrame(
        {"source": rng.choice(np.array(ids, dtype=object), m), "target": rng.choice(np.array(ids, dtype=object), m)}
    )
    edges = edges.astype(dict.fromkeys(edges, nodes["id"].dtype))
    if draw(st.booleans()):
        edges["weight"] = rng.integers(0, 4, m) * draw(st.sampled_from([1.0, 0.1, 300.0]))
    return nodes, edges


@pytest.mark.long
@given(
    tables(),
    st.sampled_from(["parquet", "csv"]),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(["max", "min", "sum", "mean", "count"]),
    st.booleans(),
    st.integers(1, 10),
    st.sampled_from([2_000, 10**9]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_tables_make_the_same_graph(
    tmp_path_factory, given_tables, kind, files, duplicates, directed, piece, memory
):
    nodes, edges = given_tables
    folder = tmp_path_factory.mktemp("any")
    options = {"duplicates": duplicates, "directed": directed, "label": "label" if "label" in nodes else False}
    try:
        read_graph(
            edges=write(folder, "edges", edges, kind)[0],
            nodes=write(folder, "nodes", nodes, kind)[0],
            header=True,
            **options,
        )
    except ValueError:  # a table that is refused: see the tests of bad files
        return
    other = tmp_path_factory.mktemp("any")
    how = FileOptions(header=True)
    both(other, nodes, edges, kind, files, groups=2, how=how, piece=piece, slab=2, memory=memory, **options)


# ------------------------------------------------------------------------------- bad files


def refuse(folder, words, nodes=None, edges=None, **options):
    with Work(Path(folder, "work")) as work, pytest.raises((ValueError, OSError)) as error:
        tables = read_tables(work, nodes, edges, **options)
        tables.edges.run()
        tables.nodes.run()
        if tables.features is not None:
            tables.features.run()
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


GOOD = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.5, 3.0]})
JOINED = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})


@pytest.fixture
def good(tmp_path):
    nodes, edges = tmp_path / "n.parquet", tmp_path / "e.parquet"
    GOOD.to_parquet(nodes)
    JOINED.to_parquet(edges)
    return tmp_path, nodes, edges


def test_no_files(good):
    folder, nodes, _ = good
    refuse(folder, ["no such file", "f.parquet"], nodes, folder / "f.parquet")
    refuse(folder, ["no file matches", "*.csv"], nodes, str(folder / "*.csv"))
    (folder / "empty").mkdir()
    refuse(folder, [str(folder / "empty"), "no Parquet or text files"], nodes, folder / "empty")
    refuse(folder, ["no files of edges"], nodes, [])


def test_two_formats(good):
    folder, nodes, edges = good
    JOINED.to_csv(folder / "more.csv", index=False)
    refuse(folder, ["e.parquet is parquet", "more.csv is text"], nodes, [edges, folder / "more.csv"])


def test_files_with_other_columns(good):
    folder, nodes, edges = good
    JOINED.rename(columns={"target": "to"}).to_parquet(folder / "more.parquet")
    refuse(folder, ["more.parquet", "lacks 'target'"], nodes, [edges, folder / "more.parquet"])
    JOINED.assign(target=[1.5, 2.5]).to_parquet(folder / "more.parquet")
    refuse(folder, ["more.parquet", "'target'", "double"], nodes, [edges, folder / "more.parquet"])
    JOINED.to_csv(folder / "one.csv", index=False)
    JOINED.rename(columns={"target": "to"}).to_csv(folder / "two.csv", index=False)
    refuse(folder, ["two.csv", "'to'"], None, [folder / "one.csv", folder / "two.csv"])


def test_damaged_files(good):
    folder, nodes, edges = good
    content = edges.read_bytes()
    for bad in (content[:-20], b"PAR1" + content[4:40] + b"PAR1", b"PAR1" * 20):
        edges.write_bytes(bad)
        refuse(folder, [str(edges), "Parquet"], nodes, edges)
    edges.write_bytes(content[:60] + bytes(40) + content[100:])
    refuse(folder, [str(edges)], nodes, edges)
    edges.write_bytes(b"")
    refuse(folder, [str(edges), "empty"], nodes, edges)


def test_a_pickle_is_never_read(good):
    folder, nodes, _ = good
    (folder / "e.pkl").write_bytes(b"\x80\x04.")
    refuse(folder, ["e.pkl", "never read"], nodes, folder / "e.pkl")


@pytest.mark.parametrize("missing", [None, " "])
def test_blank_ids(good, missing):
    folder, nodes, edges = good
    pd.concat([GOOD, GOOD.assign(id=["x", missing, "y"])]).to_parquet(nodes, index=False)
    refuse(folder, [f"{nodes}, row 4", "blank"], nodes, edges)
    GOOD.to_parquet(nodes)
    pd.DataFrame({"source": ["a", "b", missing], "target": ["b", "c", "a"]}).to_parquet(edges)
    for table in (nodes, None):
        for unknown in ("error", "add", "drop"):
            refuse(folder, [f"{edges}, row 2", "'source' is blank"], table, edges, unknown=unknown)


def test_ids_given_twice(good):
    folder, nodes, edges = good
    GOOD.assign(id=["x", "b", "y"]).to_parquet(folder / "o.parquet")
    refuse(
        folder,
        [f"{folder / 'o.parquet'}, row 1", "'b'", f"already given in {nodes}, row 1"],
        [nodes, folder / "o.parquet"],
        edges,
    )


def test_an_end_that_no_node_has(good):
    folder, nodes, edges = good
    JOINED.assign(target=["b", "zoe"]).to_parquet(folder / "f.parquet")
    words = [f"{folder / 'f.parquet'}, row 1", "'zoe'", "unknown='add'"]
    refuse(folder, words, nodes, [edges, folder / "f.parquet"])


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan])
def test_weights_that_are_none(good, bad):
    folder, nodes, edges = good
    JOINED.assign(weight=[1.0, bad]).to_parquet(edges)
    refuse(folder, [f"{edges}, row 1", "'weight'", "finite"], nodes, edges)


def test_repeated_edges_can_be_an_error(good):
    folder, nodes, edges = good
    refuse(folder, ["given more than once"], nodes, [edges, _copy(edges, folder / "f.parquet")], duplicates="error")


def _copy(path, target):
    target.write_bytes(path.read_bytes())
    return target


def test_dates_are_no_ids(good):
    folder, _, edges = good
    pd.DataFrame({"source": pd.to_datetime(["2020-01-01"]), "target": pd.to_datetime(["2020-01-02"])}).to_parquet(edges)
    refuse(folder, ["'source'", "texts or whole numbers"], None, edges)


def test_text_says_the_line(tmp_path):
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.write_text("# people\nid,x\na,1\nb,2\n,3\n")
    edges.write_text("source,target\na,b\n")
    refuse(tmp_path, [f"{nodes}, line 5", "blank"], nodes, edges)
    nodes.write_text("id,x\na,1\nb,2\n")
    edges.write_text("source,target\na,b\nb,q\n")
    refuse(tmp_path, [f"{edges}, line 3", "'q'"], nodes, edges)
    edges.write_text("source,target\na,b\nb\n")
    refuse(tmp_path, [f"{edges}, line 3", "1 fields where 2"], nodes, edges)
    edges.write_text('source,target\na,"b\nb,a\n')
    refuse(tmp_path, [f"{edges}", "never ends"], nodes, edges)


def test_a_header_that_may_be_none(tmp_path):
    edges = tmp_path / "e.txt"
    edges.write_text("ann bob\nbob cat\n")
    refuse(tmp_path, [str(edges), "header=True"], None, edges)
    with Work(tmp_path / "work") as work:
        tables = read_tables(work, None, edges, how=FileOptions(header=False))
        assert names_of(tables) == ["ann", "bob", "cat"]


def test_what_is_not_read_beyond_memory(good):
    folder, nodes, edges = good
    refuse(folder, ["bipartite"], nodes, edges, bipartite=True)
    refuse(folder, ["edge_columns"], nodes, edges, edge_columns=["x"])
    refuse(folder, ["label", "edges only"], None, edges, label="x")


def test_other_columns_of_edges_are_named(good):
    folder, nodes, edges = good
    JOINED.assign(amount=[1.5, 2.5], channel=["web", "app"]).to_parquet(edges)
    with Work(folder / "work") as work:
        tables = read_tables(work, nodes, edges)
        assert tables.unused == ["amount", "channel"]
        assert "amount, channel" in str(tables.report)
        assert tables.directed  # rows with columns of their own are events, as with small files
        assert adjacency_of(tables)[1].tolist() == [1, 2]
        assert not read_tables(work, nodes, edges, edge_columns=False).unused


def test_columns_that_do_not_say_whether_edges_are_directed(good):
    folder, nodes, edges = good
    pd.DataFrame({"source": ["a", "b"], "target": ["b", "a"], "amount": [1.5, 2.5], "n": [1, 2]}).to_parquet(edges)
    refuse(folder, ["directed=True"], nodes, edges)
    with Work(folder / "work") as work:
        assert not read_tables(work, nodes, edges, directed=False).directed


# ------------------------------------------------------------------------------- keys and pieces


def test_keys_follow_the_content_not_the_place(good):
    folder, nodes, edges = good
    with Work(folder / "work") as work:
        first = read_tables(work, nodes, edges)
        key = first.edges.key
        moved = folder / "moved.parquet"
        edges.rename(moved)
        again = read_tables(work, nodes, moved)
        assert again.sources["edges"].digests == first.sources["edges"].digests
        JOINED.iloc[::-1].to_parquet(moved)
        assert read_tables(work, nodes, moved).sources["edges"].digests != first.sources["edges"].digests
        assert read_tables(work, nodes, moved).edges.key != key


def test_a_file_that_changes_under_the_reader(good):
    folder, nodes, edges = good
    with Work(folder / "work") as work:
        tables = read_tables(work, nodes, edges)
        os.utime(edges, (1, 1))
        with pytest.raises(ValueError, match="changed while it was read"):
            tables.edges.run()


def test_the_same_tables_are_not_read_again(good, monkeypatch):
    folder, nodes, edges = good
    with Work(folder / "work") as work:
        read_tables(work, nodes, edges).edges.run()
    monkeypatch.setattr(_ends, "number_nodes", None)
    with Work(folder / "work") as work, pytest.raises(AttributeError):
        read_tables(work, nodes, edges, unknown="drop").edges.run()
    monkeypatch.undo()
    with Work(folder / "work") as work:
        before = (folder / "work" / "log.jsonl").read_text()
        assert adjacency_of(read_tables(work, nodes, edges))[1].tolist() == [1, 0, 2, 1]
        new = (folder / "work" / "log.jsonl").read_text()[len(before) :]
        assert "number_edges" not in new
        assert "sort_edges" not in new


def test_row_groups_are_gathered_into_pieces():
    assert _ends.pieces_of([[3, 3, 3], [1], [], [9, 1]], 6) == [
        [[0, 0, 2, 0]],
        [[0, 2, 3, 6], [1, 0, 1, 0]],
        [[3, 0, 1, 0]],
        [[3, 1, 2, 9]],
    ]
    assert _ends.pieces_of([[]], 6) == [[]]


def test_features_are_cut_into_slabs():
    assert _features.slabs_of([2, 0, 5], 3) == [[[0, 0, 2], [2, 0, 1]], [[2, 1, 4]], [[2, 4, 5]]]


def test_blocks_do_not_depend_on_pieces_or_memory(tmp_path):
    rng = np.random.default_rng(9)
    edges = some_edges([f"node number {k}" for k in range(700)], 5000, rng, weights=True)
    write(tmp_path, "edges", edges, "parquet", 5, 100)
    found = []
    for k, (memory, piece, workers) in enumerate([(10**9, None, 2), (400_000, 300, 2), (1_000_000, 10_000, 1)]):
        with Work(tmp_path / f"work{k}", memory=memory, workers=workers) as work:
            read = read_tables(work, None, tmp_path / "edges", duplicates="sum", piece=piece)
            found.append(adjacency_of(read))
            assert read.edges.count > 1 or k == 0
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
