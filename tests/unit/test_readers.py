"""Files become graphs: every format comes back equal, guesses and overrides, and bad files with their words."""

import gzip
import io
import json
import os
import re
import zipfile
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from pegfan.datasets.readers import read_graph
from pegfan.datasets.tables import graph_from_tables
from pegfan.graph import Graph, Split

NODES = pd.DataFrame(
    {
        "id": ["ann", "bob", "cat", "dan", "eve", "fay"],
        "size": [0.5, -1.25, 3.0, 1e-9, 7.0, 2.0],
        "count": [3, 1, 4, 1, 5, 9],
        "label": ["x", "y", "x", "z", "y", "x"],
        "split": ["train", "train", "val", "test", "test", "train"],
    }
)
EDGES = pd.DataFrame(
    {
        "source": ["ann", "bob", "cat", "dan", "eve"],
        "target": ["bob", "cat", "dan", "eve", "eve"],
        "weight": [1.0, 2.5, 0.125, 4.0, 1.0],
    }
)


def dense(features):
    return features.toarray() if sp.issparse(features) else features


def assert_same(g, h):
    """Equal in content, attribute by attribute."""
    np.testing.assert_array_equal(g.adjacency.toarray(), h.adjacency.toarray())
    assert g.directed == h.directed
    for name in ("labels", "node_names", "class_names"):
        a, b = getattr(g, name), getattr(h, name)
        assert (None if a is None else a.tolist()) == (None if b is None else b.tolist()), name
    assert (g.features is None) == (h.features is None)
    if g.features is not None:
        np.testing.assert_array_equal(dense(g.features), dense(h.features))
    assert [[part.tolist() for part in split] for split in g.splits] == [
        [part.tolist() for part in split] for split in h.splits
    ]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def pair(tmp_path):
    """A file of nodes and a file of edges, as CSV."""
    NODES.to_csv(tmp_path / "nodes.csv", index=False)
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    return tmp_path / "nodes.csv", tmp_path / "edges.csv"


# -------------------------------------------------------------------- tables

TABLE_WRITERS = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "a.txt": lambda frame, path: frame.to_csv(path, index=False, sep=" "),
    "semicolon.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "decimal.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";", decimal=","),
    "bar.txt": lambda frame, path: frame.to_csv(path, index=False, sep="|"),
    "a.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "quoted.csv": lambda frame, path: frame.to_csv(path, index=False, quoting=1),
    "windows.csv": lambda frame, path: frame.to_csv(path, index=False, lineterminator="\r\n", encoding="utf-8-sig"),
    "indexed.csv": lambda frame, path: frame.set_index(frame.columns[0]).to_csv(path),
    "a.parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "a.pq": lambda frame, path: frame.to_parquet(path, compression="gzip"),
    "no suffix": lambda frame, path: frame.to_csv(path, index=False),
}


@pytest.mark.parametrize("name", TABLE_WRITERS)
def test_a_pair_of_tables_comes_back(tmp_path, name):
    nodes, edges = tmp_path / f"nodes {name}", tmp_path / f"edges {name}"
    TABLE_WRITERS[name](NODES, nodes)
    TABLE_WRITERS[name](EDGES, edges)
    expected = graph_from_tables(NODES, EDGES)
    assert_same(read_graph(nodes, edges), expected)
    assert_same(read_graph(edges, nodes), expected)  # which is which is found out
    assert_same(read_graph(edges=edges, nodes=nodes), expected)
    assert_same(read_graph(str(nodes), str(edges), directed=True), graph_from_tables(NODES, EDGES, directed=True))


def test_formats_mix(tmp_path, pair):
    EDGES.to_parquet(tmp_path / "e.parquet")
    assert_same(read_graph(pair[0], tmp_path / "e.parquet"), graph_from_tables(NODES, EDGES))


@pytest.mark.parametrize(
    ("text", "delimiter", "rows"),
    [
        ("1,2\n2,3\n", "comma", 2),
        ("1 2\n2 3\n", "white space", 2),
        ("  1   2 \n2\t\t3\n\n", "white space", 2),
        ("1\t2\r\n2\t3\r\n", "tab", 2),
        ("# SNAP\n# FromNodeId ToNodeId\n1\t2\n2\t3", "tab", 2),
        ("% KONECT\n1 2\n2 3\n", "white space", 2),
        ("1;2\n2;3\n", "semicolon", 2),
        ("1, 2\n2, 3\n", "comma and space", 2),
        ("\n\n1|2\n\n2|3\n", "bar", 2),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".edges", ""])
def test_edges_without_a_header(tmp_path, text, delimiter, rows, suffix):
    path = write(tmp_path / f"graph{suffix}", text)
    g, report = read_graph(path, report=True)
    assert g.node_names.tolist() == [1, 2, 3]
    assert g.edges()[0].tolist() == [[0, 1], [1, 2]]
    comments = text.count("#") + text.count("%")
    words = f", {comments} comment lines" if comments else ""
    assert report.files == {path.name: f"edges; {delimiter}, no header, {rows} rows{words}"}


def test_comments_are_counted(tmp_path):
    path = write(tmp_path / "e.txt", "% KONECT\n1 2\n# in between\n2 3\n  # and here\n")
    g, report = read_graph(path, report=True)
    assert g.n == 3
    assert report.files == {"e.txt": "edges; white space, no header, 2 rows, 3 comment lines"}


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        ("a,b\n#b,c\n%c,a\n", "#b %c a b c", "3 rows, 2 rows begin with # or % (--comments '#%' skips them)"),
        ("a b\n# one two three\n# b\n#b c\n", "#b a b c", "2 rows, 2 comment lines, 1 rows begin with # or %"),
        ("# top\na,b\n#b\nb,a\n", "a b", "2 rows, 2 comment lines"),
        ("1,2\n#2,3\n3,1\n", "1 2 3", "2 rows, 1 comment lines (1 of them with as many cells as a row; --comments ''"),
    ],
)
def test_a_row_that_begins_like_a_comment_does_not_vanish(tmp_path, text, names, words):
    path = write(tmp_path / "e.csv", text)
    g, report = read_graph(path, report=True)
    assert list(map(str, g.ids.tolist())) == names.split()
    assert words in report.files["e.csv"]
    rows = [line[0] not in "#%" for line in text.splitlines()]
    skipped = read_graph(path, comments="#%", report=True)[1].files["e.csv"]
    assert f"no header, {sum(rows)} rows, {len(rows) - sum(rows)} comment lines" in skipped


def test_a_row_that_begins_like_a_comment_in_a_large_file(tmp_path):
    """Large files are cut into cells by another way, and a row may lie across two blocks."""
    names = [f"{'#' if k % 7 == 3 else ''}name-{k:06d}" for k in range(60_000)]
    path = write(tmp_path / "e.csv", "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairwise(names)))
    assert read_graph(path).node_names.tolist() == sorted(names)


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("size", [100, 20_000, 200_000])
def test_a_quote_that_never_ends_is_named_with_its_line(tmp_path, size, pack):
    """`csv` ends at cells of 128 KB, and said something else there, which was not heard: the rest was one cell."""
    rows = [f"v{k},v{k + 1}\n" for k in range(size)]
    rows[50] = 'v50,"v51\n'
    text = ("source,target\n" + "".join(rows)).encode()
    path = write(tmp_path / "e.csv", gzip.compress(text, 1) if pack else text)
    refused(r"e\.csv, line 52: a quoted text starts here and never ends", path)


def test_a_quoted_text_that_ends_within_another_cell_is_named(tmp_path):
    """Two stray quotes are as many as one needs: the lines between them were one cell."""
    rows = [f"v{k},v{k + 1}\n" for k in range(100)]
    rows[50], rows[70] = 'v50,"v51\n', 'v70,"v71\n'
    path = write(tmp_path / "e.csv", "source,target\n" + "".join(rows))
    refused(r"e\.csv, line 52: a quoted text starts here and ends in line 72, in the midst of a cell", path)


def test_long_cells_are_read_and_lines_counted_behind_them(tmp_path):
    text = "x" * 200_000
    path = write(tmp_path / "e.csv", f'source,target\n"{text}",5" pipe\nb,"c\nd"\n,e\n')
    refused(r"e\.csv, line 5: column 'source' is blank", path)
    g = read_graph(write(tmp_path / "e.csv", f'source,target\n"{text}",5" pipe\nb,"c\nd"\n'))
    assert set(g.node_names) == {text, '5" pipe', "b", "c\nd"}


def test_spaces_within_quotes_are_part_of_a_text(tmp_path):
    g = read_graph(write(tmp_path / "e.txt", '"a  b"  "a b"\n"a b" c\n'))
    assert g.node_names.tolist() == ["a  b", "a b", "c"]


def test_edge_lists_of_networkx_keep_what_follows_a_hash(tmp_path):
    text = "#made by hand\n# user#1 user#2\nuser#12 user#13 {}\nuser#13 bob {'weight': 2}\n#bob user#12 {}\n"
    g = read_graph(write(tmp_path / "g.edgelist", text))
    assert sorted(g.node_names) == ["#bob", "bob", "user#12", "user#13"]
    assert g.n_edges == 3


def test_a_first_line_that_nothing_tells_about_is_said(tmp_path):
    path = write(tmp_path / "e.csv", "person,friend\nanna,ben\ncarl,dora\n")
    _, report = read_graph(path, report=True)
    assert report.notes == [
        "e.csv: nothing tells whether the first line, 'person' and 'friend', names its columns, so that it was read as "
        "an edge; --header (header=True) reads it as names"
    ]
    assert read_graph(path, header=False, report=True)[1].notes == []


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("source,target\na,b\n", True),
        ("a,b\nb,c\n", False),
        ("von,nach\n1,2\n", True),
        ("1,2\n2,3\n", False),
        ("a,b,1.5\nb,c,2\n", False),
        ("x,y,weight\na,b,1\n", True),
        ("node_id\tnode_id\na\tb\n", True),
    ],
)
def test_headers_are_found_out_and_can_be_stated(tmp_path, text, header):
    path = write(tmp_path / "e.csv", text)
    _, report = read_graph(path, report=True)
    assert ("no header" not in report.files["e.csv"]) == header
    rows = len(text.splitlines())
    for stated in (True, False, {path: True}, {"e.csv": False}):
        _, report = read_graph(path, header=stated, report=True, weight=False)
        assert report.files["e.csv"].endswith(f"{rows - (stated in (True, {path: True}))} rows")


def test_names_that_the_caller_gives_make_a_header(tmp_path):
    nodes = write(tmp_path / "n.csv", "who,town\nann,Rome\nbob,Oslo\ncat,Rome\n")
    edges = write(tmp_path / "e.csv", "ann,bob\nbob,cat\n")
    g = read_graph(edges, nodes, label="town")
    assert g.class_names[g.labels].tolist() == ["Rome", "Oslo", "Rome"]


def test_rows_numbered_as_pandas_does(tmp_path):
    g, report = read_graph(write(tmp_path / "e.csv", ",from,to\n0,7,8\n1,8,9\n"), report=True)
    assert g.node_names.tolist() == [7, 8, 9]
    assert report.dropped == {"e.csv 'index'": "whole numbers that all differ, in a column named like an id"}


def test_rows_named_as_r_does(tmp_path):
    g = read_graph(write(tmp_path / "e.txt", 'from to weight\n"1" "a" "b" 2\n"2" "b" "c" 3\n'))
    assert g.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]


def test_quoted_names_with_spaces_among_white_space(tmp_path):
    g = read_graph(write(tmp_path / "e.txt", '"New York" "Rome"\n"Rome"  "San Jose"\n'))
    assert g.node_names.tolist() == ["New York", "Rome", "San Jose"]


def test_long_values_are_cut_short_in_messages(tmp_path):
    nodes = write(tmp_path / "n.csv", "id,label\na,x\nb,y\n")
    words = refused("is not in", write(tmp_path / "e.csv", "source,target\na,b\na," + "z" * 10**5 + "\n"), nodes)
    assert len(words) < 1000


def test_stated_delimiter_and_comments(tmp_path):
    path = write(tmp_path / "e.txt", "#a:#b\n#b:#c\n")
    with pytest.raises(ValueError, match="holds no rows, only blank lines and comments"):
        read_graph(path)
    assert read_graph(path, delimiter=":", comments="").node_names.tolist() == ["#a", "#b", "#c"]
    assert read_graph(path, delimiter={path: ":"}, comments="").n == 3
    with pytest.raises(ValueError, match="delimiter must be a single character"):
        read_graph(path, delimiter="::", comments="")


def test_quotes_hold_delimiters_newlines_and_comments(tmp_path):
    nodes = write(tmp_path / "nodes.csv", '# people\nid,bio,label\na,"x, y",p\nb,"line\n# two",q\nc,"say ""hi""",p\n')
    edges = write(tmp_path / "edges.csv", "a,b\nb,c\n")
    g = read_graph(nodes, edges, features=["bio"])
    assert g.feature_names == ("bio=line\n# two", 'bio=say "hi"', "bio=x, y")
    assert g.labels.tolist() == [0, 1, 0]


def test_ids_keep_their_spelling(tmp_path):
    g = read_graph(write(tmp_path / "e.csv", "source,target\nNA,null\nnull,None\n"))
    assert g.node_names.tolist() == ["NA", "None", "null"]
    g = read_graph(write(tmp_path / "e.csv", "18446744073709551617,18446744073709551618\n18446744073709551618,3\n"))
    assert g.node_names.tolist() == ["18446744073709551617", "18446744073709551618", "3"]
    nodes = write(tmp_path / "n.csv", "id,label\n1,x\n2,y\nb7,x\n")
    g, report = read_graph(write(tmp_path / "e.csv", "1,2\n2,1\n"), nodes, report=True)
    assert g.node_names.tolist() == ["1", "2", "b7"]
    assert "compared as text" in report.notes[0]


def test_a_row_longer_than_a_block_is_read(tmp_path):
    nodes = write(tmp_path / "n.csv", "id,text\na,x\nb," + "y" * (3 * 2**20) + "\nc,x\n")
    edges = write(tmp_path / "e.csv", "a,b\nb,c\n")
    assert read_graph(nodes, edges).features.shape == (3, 2)


def test_json_lists_join_the_nodes(tmp_path):
    nodes = write(tmp_path / "target.csv", "id,new_id,kind\n900,2,p\n901,0,q\n902,1,p\n")
    edges = write(tmp_path / "edges.csv", "from,to\n0,1\n1,2\n")
    bag = write(tmp_path / "features.json", json.dumps({"0": [5, 7], "2": [7, 7], "1": []}))
    g, report = read_graph(edges, nodes, bag, report=True)
    assert g.node_names.tolist() == [2, 0, 1]
    assert dense(g.features).tolist() == [[0, 2], [1, 1], [0, 0]]
    assert g.feature_names == ("features:5", "features:7")
    assert report.files["features.json"] == "lists of tokens of 3 nodes"
    g = read_graph(edges, bag)
    assert g.node_names.tolist() == [0, 2, 1]
    assert dense(g.features).tolist() == [[1, 1], [0, 2], [0, 0]]
    named = write(tmp_path / "nodes.csv", "new_id,features\n2,9.5\n0,8.5\n1,7.5\n")
    assert read_graph(edges, named, bag).feature_names[0] == "features"
    assert read_graph(edges, named, bag).features.shape == (3, 3)
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(bag.read_bytes()))
    assert_same(read_graph(edges, packed), g)
    strange = write(tmp_path / "s.json", json.dumps({"0": [5], "8": [7]}))
    with pytest.raises(ValueError, match=r"s\.json: 1 of 2 ids are not in target\.csv: 8; pass unknown='drop'"):
        read_graph(edges, nodes, strange)
    assert dense(read_graph(edges, nodes, strange, unknown="drop").features).tolist() == [[0], [1], [0]]


# -------------------------------------------------------------------- which file is which


def test_roles_by_content_and_by_name(tmp_path):
    one = write(tmp_path / "one.csv", "a,b\nb,c\nc,a\nb,d\na,d\n")
    two = write(tmp_path / "two.csv", "person,age\na,20\nb,30\nc,41\nd,50\n")
    for files in ((one, two), (two, one)):
        g, report = read_graph(*files, report=True)
        assert g.n == 4
        assert report.files["one.csv"].startswith("edges")
    same = [write(tmp_path / name, "p,q\n1,2\n2,1\n") for name in ("my edges.csv", "other.csv")]
    assert read_graph(same[1], same[0]).n == 2
    same.append(write(tmp_path / "third.csv", "p,q\n1,2\n2,1\n"))
    with pytest.raises(ValueError, match=r"other\.csv and third\.csv: cannot tell which holds the edges"):
        read_graph(same[1], same[2])


def test_a_header_is_found_by_the_ids_of_the_nodes(tmp_path):
    edges = write(tmp_path / "e.csv", "p,q\na,b\nb,c\nc,a\n")
    nodes = write(tmp_path / "n.csv", "person,age\na,20\nb,30\nc,41\n")
    g, report = read_graph(edges, nodes, report=True)
    assert g.n_edges == 3
    why = "a header, as 'p' and 'q' are not among the ids of n.csv, as those below are"
    assert report.files["e.csv"] == f"edges; comma, header, 3 rows; {why}"
    assert report.columns["edges"] == "'p' to 'q' (the first two columns), undirected"
    refused(
        r"e\.csv, line 1: node 'p' is not in n\.csv.*header=\{'e\.csv': True\}", edges, nodes, header={"e.csv": False}
    )


def accounts(folder, header):
    """Payments between 60 accounts whose ids are texts, and a table of the accounts."""
    rng = np.random.default_rng(0)
    ids = [f"acct-{k:04d}" for k in range(60)]
    nodes = "account,town\n" + "".join(f"{name},{'Rome' if k % 2 else 'Oslo'}\n" for k, name in enumerate(ids))
    rows = "".join(f"{ids[i]},{ids[j]}\n" for i, j in rng.integers(0, 60, (400, 2)))
    return write(folder / "nodes.csv", nodes), write(folder / "edges.csv", ("payer,payee\n" if header else "") + rows)


@pytest.mark.parametrize("header", [True, False])
def test_tables_of_texts_only(tmp_path, header):
    """Both tables could be read either way; the reading under which ids match is taken."""
    nodes, edges = accounts(tmp_path, header)
    for files in ((nodes, edges), (edges, nodes), (edges,)):
        g, report = read_graph(*files, report=True, directed=True, duplicates="sum")
        assert g.n == 60
        assert g.adjacency.sum() == 400
        assert ("no header" not in report.files["edges.csv"]) == header
    g = read_graph(nodes, edges, label="town")
    assert g.node_names[:2].tolist() == ["acct-0000", "acct-0001"]
    assert g.class_names.tolist() == ["Oslo", "Rome"]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("payer,payee\nacct-1,acct-2\nacct-3,acct-4\n", True),  # no digits above digits
        ("x,y\na,b\nb,c\nc,a\n", True),  # all others occur again
        ("a,b\nc,d\n", False),  # an edge as good as the other
        ("from,to\nto,sea\nfrom,sea\n", False),  # words of a header, but among the ids
        ("who,whom,when\na,b,2020-01-05\nb,c,2020-01-06\n", True),
        ("who,whom,paid\na,b,true\nb,c,false\n", True),
        ("who;whom;sum\na;b;1,5\nb;c;2,5\n", True),
        ("who,whom,sum\na,b,1.5\nb,c,NA\n", True),
        ("a,b,2020-01-05\nb,c,2020-01-06\n", False),
    ],
)
def test_headers_of_edges_alone(tmp_path, text, header):
    _, report = read_graph(write(tmp_path / "e.csv", text), report=True, weight=False)
    assert ("no header" not in report.files["e.csv"]) == header


def test_roles_that_cannot_be(tmp_path, pair):
    nodes, edges = pair
    with pytest.raises(ValueError, match=r"nodes\.csv looks like a table of nodes.*give the file of edges"):
        read_graph(nodes)
    with pytest.raises(ValueError, match=r"edges\.csv and nodes\.csv look swapped"):
        read_graph(nodes=edges, edges=nodes)
    with pytest.raises(ValueError, match=r"x\.csv: no column holds ids of nodes\.csv, which seems to hold the nodes"):
        read_graph(nodes, edges, write(tmp_path / "x.csv", "a,b\n"))
    with pytest.raises(ValueError, match="two files have the same name"):
        read_graph(nodes, nodes)
    with pytest.raises(ValueError, match="label='label' is a column of the nodes"):
        read_graph(edges, label="label")
    with pytest.raises(ValueError, match="at least one file"):
        read_graph()
    with pytest.raises(ValueError, match="no file of edges"):
        read_graph(nodes=nodes)
    with pytest.raises(TypeError, match="no option 'lable'; did you mean 'label'"):
        read_graph(edges, lable="x")


# -------------------------------------------------------------------- files with a whole graph


def directed_and_not():
    arcs = np.array([[0, 2, 0, 0], [0, 0, 1, 0], [0, 3, 0, 0], [0, 0, 0, 0]], dtype=float)
    return [Graph(arcs), Graph(arcs).symmetrize()]


@pytest.mark.parametrize("g", directed_and_not(), ids=["directed", "undirected"])
def test_matrix_market_comes_back(tmp_path, g):
    scipy.io.mmwrite(tmp_path / "g.mtx", sp.coo_matrix(g.adjacency))
    assert_same(read_graph(tmp_path / "g.mtx"), g)
    (tmp_path / "h.mtx.gz").write_bytes(gzip.compress((tmp_path / "g.mtx").read_bytes()))
    assert_same(read_graph(tmp_path / "h.mtx.gz"), g)
    scipy.io.mmwrite(tmp_path / "d.mtx", g.adjacency.toarray())
    assert_same(read_graph(tmp_path / "d.mtx"), g)


def test_matrix_market_patterns_and_stated_direction(tmp_path):
    path = write(tmp_path / "g.mtx", "%%MatrixMarket matrix coordinate pattern general\n% x\n3 3 2\n1 2\n2 3\n")
    assert read_graph(path).directed
    undirected = read_graph(path, directed=False)
    assert undirected.edges()[0].tolist() == [[0, 1], [1, 2]]
    symmetric = write(tmp_path / "s.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    g, report = read_graph(symmetric, report=True)
    assert not g.directed
    assert report.merged == 0
    assert read_graph(symmetric, directed=True).n_edges == 4


def test_matrix_market_against_scipy(tmp_path):
    """SciPy's reader is the twin of ours, on files that are whole."""
    rng = np.random.default_rng(0)
    for symmetry in ("general", "symmetric"):
        for field in ("real", "integer", "pattern"):
            a = sp.random_array((9, 9), density=0.4, rng=rng)
            a = (a + a.T if symmetry == "symmetric" else a) * 100
            for matrix in (sp.coo_matrix(a), a.toarray(), sp.coo_matrix((9, 9)))[: 1 if field == "pattern" else 3]:
                scipy.io.mmwrite(tmp_path / "g.mtx", matrix, field=field, symmetry=symmetry, comment="x\ny")
                twin = scipy.io.mmread(tmp_path / "g.mtx")
                twin = twin.toarray() if sp.issparse(twin) else twin
                assert np.array_equal(read_graph(tmp_path / "g.mtx").adjacency.toarray(), twin)


def test_a_matrix_with_a_table_of_nodes(tmp_path):
    matrix = write(tmp_path / "g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    nodes = write(tmp_path / "nodes.csv", "name,size,label\na,1.5,x\nb,2.5,y\nc,3.5,x\n")
    g, report = read_graph(matrix, nodes, report=True)
    assert g.labels.tolist() == [0, 1, 0]
    assert g.edges()[0].tolist() == [[0, 1], [1, 2]]
    assert report.columns["id"] == "row numbers (no column holds the edge ends)"


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("g", directed_and_not(), ids=["directed", "undirected"])
def test_sparse_npz_comes_back(tmp_path, g, layout):
    for matrix in (g.adjacency, sp.csr_matrix(g.adjacency)):
        sp.save_npz(tmp_path / "g.npz", matrix.asformat(layout))
        assert_same(read_graph(tmp_path / "g.npz"), g)


def arrays_of(g):
    masks = {part: np.zeros((len(g.splits), g.n), bool) for part in Split._fields}
    for k, split in enumerate(g.splits):
        for part, nodes in zip(Split._fields, split, strict=True):
            masks[part][k, nodes] = True
    return g.edges()[0], g.edges()[1], masks


def labelled(features):
    splits = [([0, 1], [2], [3]), ([3], [1], [0])]
    return directed_and_not()[1].replace(features=features, labels=[0, 1, -1, 2], splits=splits)


@pytest.mark.parametrize("features", [np.arange(8.0).reshape(4, 2), sp.csr_array(np.eye(4, 3)), None])
def test_arrays_in_npz_come_back(tmp_path, features):
    g = labelled(features)
    edges, weights, masks = arrays_of(g)
    plain = {"edge_index": edges.T, "edge_weight": weights, "y": g.labels, "num_nodes": np.array(4)}
    plain |= {f"{part}_mask": mask for part, mask in masks.items()}
    if sp.issparse(features):
        plain |= {f"x_{part}": getattr(g.features, part) for part in ("data", "indices", "indptr", "shape")}
    elif features is not None:
        plain["x"] = features
    np.savez(tmp_path / "plain.npz", **plain)
    assert_same(read_graph(tmp_path / "plain.npz"), g)
    bare = read_graph(tmp_path / "plain.npz", label=False, split=False, features=False)
    assert_same(bare, g.replace(labels=None, splits=(), features=None))
    other = {"edges": edges, "weights": weights, "node_labels": g.labels[:, None]}
    other |= {f"{part}_masks": mask.T for part, mask in masks.items()}
    if features is not None:
        other["node_features"] = dense(features)
    np.savez_compressed(tmp_path / "other.npz", **other)
    assert_same(read_graph(tmp_path / "other.npz"), g)
    assert read_graph(tmp_path / "other.npz", metric="roc_auc").metric == "roc_auc"


def test_one_mask_for_one_split_and_a_label_by_name(tmp_path):
    masks = {f"{part}_mask": np.arange(3) == k for k, part in enumerate(Split._fields)}
    np.savez(tmp_path / "g.npz", edges=[[0, 1], [1, 2]], y=[0, 0, 0], kind=[0, 1, 2], **masks)
    g = read_graph(tmp_path / "g.npz", label="kind")
    assert g.labels.tolist() == [0, 1, 2]
    assert [part.tolist() for part in g.splits[0]] == [[0], [1], [2]]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("suffix", [".graphml", ".graphml.gz", ".gml"])
def test_networkx_formats_come_back(tmp_path, suffix, directed):
    expected = graph_from_tables(NODES, EDGES, directed=directed)
    made = nx.from_pandas_edgelist(EDGES, edge_attr="weight", create_using=nx.DiGraph if directed else nx.Graph)
    graph = made.__class__()
    graph.add_nodes_from((row.pop("id"), row) for row in NODES.rename(columns={"label": "kind"}).to_dict("records"))
    graph.add_edges_from(made.edges(data=True))
    path = tmp_path / f"g{suffix}"
    nx.write_gml(graph, path) if suffix == ".gml" else nx.write_graphml(graph, path)
    assert_same(read_graph(path), expected)
    g = read_graph(path, label="split", split=False, features=["count"])
    assert g.class_names.tolist() == ["test", "train", "val"]
    assert g.features.ravel().tolist() == NODES["count"].tolist()


@pytest.mark.parametrize("g", directed_and_not(), ids=["directed", "undirected"])
def test_graphs_of_this_package_come_back_through_graphml(tmp_path, g):
    nx.write_graphml(g.to_networkx(), tmp_path / "g.graphml")
    assert_same(read_graph(tmp_path / "g.graphml"), g)


def test_gml_whose_labels_are_not_names(tmp_path):
    text = 'graph [\n node [ id 4 label "x" ]\n node [ id 5 label "x" ]\n node [ id 6 label "y" ]\n'
    g = read_graph(write(tmp_path / "g.gml", text + " edge [ source 4 target 5 ]\n]\n"))
    assert g.node_names.tolist() == [4, 5, 6]
    assert g.labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("data", [False, True, ["weight"]])
def test_edge_lists_of_networkx_come_back(tmp_path, data):
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2.5), ("b", "c", 1.0)])
    nx.write_edgelist(graph, tmp_path / "g.edgelist", data=data)
    g = read_graph(tmp_path / "g.edgelist")
    assert g.node_names.tolist() == ["a", "b", "c"]
    assert g.edges()[1].tolist() == ([2.5, 1.0] if data else [1.0, 1.0])
    assert not g.directed


@pytest.mark.parametrize("features", [np.arange(8.0).reshape(4, 2), sp.csr_array(np.eye(4, 3)), None])
def test_pyg_data_comes_back(tmp_path, features, pyg):
    g = labelled(features)
    data = g.to_pyg()
    for content in (data, data.to_dict(), (data, None), (data.to_dict(), None, pyg.Data)):
        torch.save(content, tmp_path / "g.pt")
        assert_same(read_graph(tmp_path / "g.pt"), g)
    bare = read_graph(tmp_path / "g.pt", label=False, split=False, features=False, directed=False)
    assert_same(bare, g.replace(labels=None, splits=(), features=None))
    data.kind = torch.tensor([[3], [2], [1], [0]])
    torch.save(data, tmp_path / "g.pt")
    assert read_graph(tmp_path / "g.pt", label="kind").labels.tolist() == [3, 2, 1, 0]


def test_formats_are_recognised_without_their_suffix(tmp_path, pyg):
    g = directed_and_not()[0]
    sp.save_npz(tmp_path / "a.npz", g.adjacency)
    scipy.io.mmwrite(tmp_path / "b.mtx", sp.coo_matrix(g.adjacency))
    nx.write_graphml(g.to_networkx(), tmp_path / "c.graphml")
    nx.write_gml(g.to_networkx(), tmp_path / "d.gml")
    torch.save(g.to_pyg(), tmp_path / "e.pt")
    for path in list(tmp_path.iterdir()):
        hidden = path.rename(tmp_path / f"{path.stem} without")
        assert_same(read_graph(hidden).replace(node_names=None), g)
        assert_same(read_graph(hidden, format=path.suffix[1:]).replace(node_names=None), g)
        assert_same(read_graph(hidden, format={str(hidden): path.suffix[1:]}).replace(node_names=None), g)


# -------------------------------------------------------------------- bad files


def brief(value):
    """A short name for a parameter of a test: contents of files are long."""
    return re.sub(r"\W+", " ", value)[:24].strip() if isinstance(value, str) else type(value).__name__


def refused(words, *paths, **options):
    with pytest.raises(ValueError, match=words) as error:
        read_graph(*paths, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_is_named_even_if_its_name_is_a_word_of_the_message(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], y=[0, 1, 1], num_nodes=2)
    refused("^labels: labels has 3 rows", (tmp_path / "g.npz").rename(tmp_path / "labels"))


def test_files_that_are_not_there(tmp_path, pair):
    with pytest.raises(FileNotFoundError, match=r"ndoes\.csv: no such file \(did you mean 'nodes\.csv'\?\)"):
        read_graph(tmp_path / "ndoes.csv", pair[1])
    with pytest.raises(IsADirectoryError, match="is a folder; name the files in it"):
        read_graph(tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json", ".mtx", ".npz", ".graphml", ".gml", ".pt", ""])
def test_empty_files(tmp_path, suffix):
    refused(r"g\S* is empty", write(tmp_path / f"g{suffix}", ""))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3\n", r"edges\.csv, line 3: 1 fields where 2 are expected \(comma separated\): '3'"),
        ("a,b\n1,2\n\n1,2,3\n", r"edges\.csv, line 4: 3 fields where 2 are expected"),
        ("source,target\n1,2\n,3\n", r"edges\.csv, line 3: column 'source' is blank"),
        ("# c\nsource,target\n\nx,y\nz,\n", r"edges\.csv, line 5: column 'target' is blank"),
        ("source,target\nx,y\n# c\nz,\n", r"edges\.csv, line 4: column 'target' is blank"),
        ("1,2,-1\n", r"edges\.csv, line 1: weight -1 "),
        ("1,2,1\n2,3,\n", r"edges\.csv, line 2: weight nan "),
        ("1,2,1\n2,3,x\n", r"edges\.csv, line 2: weight 'x' in column 'weight'"),
        ('source,target\n1,"2\n3,4\n', r"edges\.csv, line 2: a quoted text starts here and never ends"),
        ("abc\ndef\n", r"edges\.csv has 1 column\(s\).*delimiter"),
        ("source,target\n", r"edges\.csv holds no edges"),
        (b"a,b\n1,\xff\n", r"edges\.csv, line 2: not UTF-8 text"),
        (b"source,target\n" + b"xx,yy\n" * 30_000 + b"\xe9,x\n", r"edges\.csv, line 30002: not UTF-8 text"),
        (b"\xff\xfea\x00,\x00b\x00", r"edges\.csv is UTF-16 text; save it as UTF-8"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", r"edges\.csv is UTF-32 text; save it as UTF-8"),
        (b"\x00\x00\xfe\xff\x00\x00\x00a", r"edges\.csv is UTF-32 text; save it as UTF-8"),
        (b"a,b\n1,\x002\n", r"edges\.csv is not a text table: it holds zero bytes"),
        ('a192";49\n\rxx48;e\nf;', r"edges\.csv, line 4: column 'target' is blank"),
        (b"source,target\n" + b"1,2\n" * 300_000 + b"1,\x00\n", r"edges\.csv is not a text table: it holds zero"),
    ],
    ids=brief,
)
def test_bad_edge_files(tmp_path, text, words):
    refused(words, write(tmp_path / "edges.csv", text))


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "id,label\n1,x\n2,y\n\n1,x\n3,y\n",
            {},
            r"nodes\.csv, line 5: id 1 in column 'id' was already given in nodes\.csv, line 2",
        ),
        ("id,label\n1,x\n,y\n2,x\n3,y\n", {}, r"nodes\.csv, line 3: the id in column 'id' is blank"),
        ("id,kind\n1,x\n2,y\n3,y\n", {"label": "kin"}, r"nodes\.csv has no label column 'kin'; did you mean 'kind'"),
        ("id,label\n1,\n2,NA\n3,\n", {"label": "label"}, r"nodes\.csv: every label in column 'label' is missing"),
        ("id,split\n1,train\n2,holdout\n3,test\n", {}, r"nodes\.csv, line 3: split column 'split' holds 'holdout'"),
        ("id,age\n1,20\n2,old\n3,30\n", {}, r"nodes\.csv, line 3: 'old' in column 'age' is not a number"),
        ("id,age\n1,20\n2,inf\n3,30\n", {}, r"nodes\.csv, line 3: inf in column 'age' is not a finite number"),
        ("id,age\n1,20\n2,\n3,30\n", {"missing": "error"}, r"nodes\.csv, line 3: no number in column 'age'"),
        ("id,y\n1,20\n2,0.5\n3,30\n", {"label": "y"}, r"nodes\.csv, line 3: label column 'y' holds 0\.5"),
        ("id,x\n1,20\n2,5\n", {}, r"edges\.csv, line 2: node 3 is not in nodes\.csv.*1 ids in 1 of 2 edges"),
        ("id,x\n1,20\n2,5\n3\n", {}, r"nodes\.csv, line 4: 1 fields where 2 are expected"),
        ("id,x\n", {}, r"nodes\.csv has no rows"),
    ],
    ids=brief,
)
def test_bad_node_files(tmp_path, text, options, words):
    edges = write(tmp_path / "edges.csv", "1,2\n2,3\n")
    refused(words, edges=edges, nodes=write(tmp_path / "nodes.csv", text), **options)


def test_rows_of_parquet_have_numbers_and_no_lines(tmp_path):
    pd.DataFrame({"source": ["a", None], "target": ["b", "c"]}).to_parquet(tmp_path / "e.parquet")
    refused(r"e\.parquet, row 1: column 'source' is blank", tmp_path / "e.parquet")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("g.parquet", b"PAR1 and so on", r"g\.parquet cannot be read as Parquet"),
        ("g.json", "[1, 2]", r"g\.json must hold lists by node id"),
        ("g.json", '{"a": [1],\n "b": [1}', r"g\.json, line 2: not JSON"),
        ("g.json", '{"a": [1], "a": [2]}', r"'a' is given more than once"),
        ("g.json", '{"a": 1}', r"node 'a' must have a list of tokens"),
        ("g.json", "[" * 100_000, r"g\.json cannot be read as JSON: .*recursion"),
        ("g.json", b'{"a": ["\xff"]}', r"g\.json cannot be read as JSON: .*utf-8"),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate real general\n3 3 9\n1 2 1.0\n",
            r"g\.mtx declares 9 entries and holds 1; is it cut",
        ),
        (
            "g.mtx",
            "%%MatrixMarket matrix array real general\n99999 99999\n1\n",
            "99,999 nodes and 9,999,800,001 entries take up to 1.0 TB of memory.*--max-bytes",
        ),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n9999999999 9999999999 1\n1 1\n", "not believable"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n", r"shape \(2, 3\).*square"),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n",
            r"g\.mtx, line 3: no place in a matrix of 2 by 2",
        ),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 1\n",
            r"line 1: a complex general matrix",
        ),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -1\n", r"g\.mtx, row 0: weight -1\.0"),
        ("g.mtx", "hello", r"g\.mtx, line 1: not the first line of a Matrix Market file"),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate real general\n% c\n2 2\n",
            r"g\.mtx, line 3: the sizes of the matrix",
        ),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n", r"g\.mtx, line 1: the sizes of the matrix"),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 x\n",
            r"line 3: 'x' is not a finite number",
        ),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2\n",
            r"line 3: 2 fields where 3 are expected",
        ),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1.5 1\n",
            r"line 3: no place in a matrix of 2",
        ),
        (
            "g.mtx",
            "%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 2 1\n",
            r"line 2: a symmetric matrix is square",
        ),
        ("g.mtx", "%%MatrixMarket vector coordinate real general\n2 2 1\n1 2 1\n", r"line 1: not the first line"),
        ("g.graphml", "<graphml><graph>", r"g\.graphml, line 1: not well-formed XML"),
        ("g.graphml", "<a>" * 200, r"g\.graphml, line 1: elements more than 100 deep"),
        ("g.graphml", "<html/>", r"g\.graphml cannot be read as GraphML"),
        ("g.gml", "graph [ node [ id 1 ", r"g\.gml cannot be read as GML"),
        ("g.gml", "graph " + "[ a " * 5_000, r"g\.gml cannot be read as GML"),
        ("g.edgelist", "a b {'weight': 1}\nc d {'weight': __import__('os')}\n", r"cannot be read as an edge list"),
        ("g.pkl", b"\x80\x04.", r"g\.pkl: pickles can run code, so they are never read"),
        ("g", b"\x80\x04.", r"g is a pickle, which can run code and is never read"),
        ("g.xlsx", b"PK", r"g\.xlsx: spreadsheets are not read; save the graph as CSV"),
        ("g.pt", b"\x80\x02.", r"g\.pt is not in the format that torch\.save has had since torch 1\.6"),
        ("g.npz", b"PK\x03\x04", r"g\.npz is not a readable npz archive"),
        ("g.csv.gz", gzip.compress(b"1,2\n" * 9999, mtime=0)[:-20], r"g\.csv\.gz is damaged or cut short"),
    ],
    ids=brief,
)
def test_bad_graph_files(tmp_path, name, content, words):
    path = write(tmp_path / name, content)
    if name.endswith(".json"):
        refused(words, path, write(tmp_path / "e.csv", "1,2\n"))
    else:
        refused(words, path)


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph edgedefault="directed"><node id="&b;"/></graph></graphml>"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_that_declares_entities_is_refused_in_any_encoding(tmp_path, encoding):
    path = tmp_path / "g.graphml"
    path.write_bytes(LAUGHS.encode(encoding))
    refused(r"g\.graphml, line 2: a DOCTYPE or entity, which is refused", path)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_pickles_in_pyg_files_are_refused_not_run(tmp_path, pyg):
    torch.save({"edge_index": Bomb()}, tmp_path / "g.pt")
    refused(r"g\.pt: it asks for \S+, which is not loaded from files", tmp_path / "g.pt")
    torch.save(pyg.HeteroData(), tmp_path / "h.pt")
    refused(r"h\.pt: it asks for torch_geometric\.\S+, which is not loaded", tmp_path / "h.pt")
    torch.save({"x": torch.zeros(3)}, tmp_path / "n.pt")
    refused("without an edge_index", tmp_path / "n.pt")
    several = (
        pyg.Data(edge_index=torch.zeros(2, 4, dtype=torch.long)).to_dict(),
        {"edge_index": torch.tensor([0, 2, 4])},
        pyg.Data,
    )
    torch.save(several, tmp_path / "s.pt")
    refused("holds several graphs", tmp_path / "s.pt")


@pytest.mark.parametrize(
    ("arrays", "options", "words"),
    [
        ({"a": [1]}, {}, r"holds the arrays 'a'; a graph needs 'edge_index' or 'edges'"),
        ({"edges": [[0, 1, 2]]}, {}, "the other way round"),
        ({"edge_index": [[0, 1], [1, 2], [2, 0]]}, {}, "the other way round"),
        ({"edges": [[0.5, 1.0]]}, {}, "integer node ids"),
        (
            {"edges": [[0, 1]], "y": ["a", "b", "c"], "x": [[1.0], [2.0]]},
            {},
            "features has 2 rows, but the graph has 3",
        ),
        (
            {"edges": [[0, 1]], "y": [0, 1]},
            {"label": "yy"},
            r"no array 'yy' for the label; did you mean 'y'",
        ),
        ({"edges": [[0, 1]], "y": [0, 1]}, {"id": "id"}, "id= names a column of a table"),
        ({"edges": [[0, 1]], "y": [0, 1]}, {"features": ["x"]}, "features= names a column of a table"),
        ({"edges": [[0, 1]], "num_nodes": 10**12}, {}, "not believable"),
        ({"edges": [[0, 1]], "y": [0, 1], "train_mask": [1, 0]}, {}, "masks for 'train' only"),
        ({"edges": [[0, 10**15]]}, {}, "largest node id is"),
        (
            {"edges": [[0, 1]], "x_data": [1.0], "x_indices": [9], "x_indptr": [0, 1, 1], "x_shape": [2, 3]},
            {},
            "features is not a valid sparse",
        ),
        ({"edges": [[0, 1]], "x_data": [1.0]}, {}, "features in x_data, x_indices"),
        (
            {"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [7], "indptr": [0, 1, 1]},
            {},
            "cannot be read as a sparse",
        ),
        ({"format": b"coo", "shape": [10**12] * 2, "data": [1.0], "row": [7], "col": [7]}, {}, "not believable"),
        ({"format": b"coo", "shape": [3, 3], "data": [1.0], "row": [7], "col": [7]}, {}, "cannot be read as a sparse"),
        ({"format": b"dia", "shape": [2, 2], "data": [[1.0]], "offsets": [0]}, {}, r"save it as matrix\.tocsr\(\)"),
        ({"format": b"csr", "shape": [2, 3], "data": [1.0], "indices": [0], "indptr": [0, 1, 1]}, {}, "square"),
        ({"format": b"csr", "shape": [2, 2], "data": [-1.0], "indices": [0], "indptr": [0, 1, 1]}, {}, r"weight -1\.0"),
        (
            {"format": b"csr", "shape": [2, 2], "data": ["a"], "indices": [0], "indptr": [0, 1, 1]},
            {},
            "cannot be read as a sparse",
        ),
    ],
    ids=brief,
)
def test_bad_arrays(tmp_path, arrays, options, words):
    np.savez(tmp_path / "g.npz", **arrays)
    assert "g.npz" in refused(words, tmp_path / "g.npz", **options)


def test_bombs_are_refused_by_their_declared_size(tmp_path):
    np.savez_compressed(tmp_path / "g.npz", edges=np.zeros((10**6, 2), np.int64))
    refused(
        "arrays of 16,000,128 bytes .* are allowed.*--max-bytes",
        tmp_path / "g.npz",
        max_bytes=10**6,
    )
    pd.DataFrame({"a": np.zeros(10**6, int), "b": 1}).to_parquet(tmp_path / "g.parquet")
    assert (tmp_path / "g.parquet").stat().st_size < 10**5
    refused("1,000,000 rows of 2 columns take up to.*--max-bytes.*--memory", tmp_path / "g.parquet", max_bytes="1MB")
    (tmp_path / "g.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 10**6))
    refused("g.csv.gz.* take up to .*--max-bytes.*--memory", tmp_path / "g.csv.gz", max_bytes=10**6)
    for name in ("g.graphml.gz", "g.mtx.gz", "g.gml.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b" " * 10**7))
        refused("unpacks to .* bytes or more, which take up to .*--max-bytes", tmp_path / name, max_bytes=10**6)
    with zipfile.ZipFile(tmp_path / "g.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))
    refused("tensors of 10,000,000 bytes take up to", tmp_path / "g.pt", max_bytes=10**6)


def test_two_graphs_and_a_graph_with_nodes_of_its_own(tmp_path, pair):
    g = directed_and_not()[0]
    sp.save_npz(tmp_path / "a.npz", g.adjacency)
    np.savez(tmp_path / "b.npz", edges=[[0, 1]])
    nx.write_graphml(g.to_networkx(), tmp_path / "c.graphml")
    refused("each hold a graph; give one of them", tmp_path / "a.npz", tmp_path / "b.npz")
    refused("holds a whole graph, nodes included", tmp_path / "b.npz", pair[0])
    refused("the graph file holds its nodes", tmp_path / "c.graphml", pair[0])
    refused("format must be one of", tmp_path / "a.npz", format="numpy")


def test_nothing_is_left_open_or_behind(tmp_path, pair):
    before = sorted(tmp_path.iterdir()), len(os.listdir("/proc/self/fd"))
    read_graph(*pair)
    refused("has no label column", *pair, label="nothing")
    assert (sorted(tmp_path.iterdir()), len(os.listdir("/proc/self/fd"))) == before


# -------------------------------------------------------------------- any tables, any damage


def test_numbers_with_words_for_missing_ones_are_numbers(tmp_path):
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    edges.write_text("source,target\n0,1\n")
    nodes.write_text("id,x\n0,1\n1,None\n2,3\n")
    assert dense(read_graph(nodes, edges).features).tolist() == [[1, 0], [2, 1], [3, 0]]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r"), min_size=1, max_size=6)
spelled = st.sampled_from(
    ["1", "01", "001", "1.0", " 1", "1 ", "+1", "-0", "0", "0x1", "1e0", "true", "NA", "nan", "2020-01-01"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    ids=st.lists(cells | spelled, min_size=2, max_size=8, unique=True).filter(lambda ids: all(i.strip() for i in ids)),
    seed=st.integers(0, 10**6),
    form=st.sampled_from(["csv", "tsv", "quoted", "parquet"]),
)
@example(ids=["7", "007"], seed=0, form="csv")
@example(ids=[" 0", "1"], seed=0, form="csv")
@example(ids=[" 0", "0"], seed=0, form="csv")
@example(ids=["1", "01", "1.0", " 1"], seed=0, form="csv")
def test_any_ids_come_back_verbatim_from_any_table(tmp_path, ids, seed, form):
    """What was read is what is written, and no two ids are one; a `#` that starts a line must be quoted."""
    assume(form in ("quoted", "parquet") or not any(name.lstrip()[:1] in ("#", "%", "\ufeff") for name in ids))
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, len(ids), (6, 2))
    nodes = pd.DataFrame({"id": ids, "x": rng.standard_normal(len(ids))})
    edges = pd.DataFrame({"source": [ids[i] for i, _ in pairs], "target": [ids[j] for _, j in pairs]})
    suffix = form if form in ("tsv", "parquet") else "csv"
    paths = tmp_path / f"nodes.{suffix}", tmp_path / f"edges.{suffix}"
    for frame, path in zip((nodes, edges), paths, strict=True):
        if form == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if form == "tsv" else ",", quoting=2 if form == "quoted" else 0)
    g = read_graph(*paths, id="id", features=["x"], directed=True, delimiter="\t" if form == "tsv" else ",")
    assert list(map(str, g.ids.tolist())) == ids
    expected = np.zeros((len(ids), len(ids)))
    expected[pairs[:, 0], pairs[:, 1]] = 1
    assert g.adjacency.toarray().tolist() == expected.tolist()
    assert np.array_equal(dense(g.features)[:, 0], nodes["x"])


def test_ids_that_only_look_alike_are_named(tmp_path):
    def pair(ids, ends):
        nodes = write(tmp_path / "nodes.csv", "id,x\n" + "".join(f"{name},{k}.5\n" for k, name in enumerate(ids)))
        return nodes, write(tmp_path / "edges.csv", "source,target\n" + "".join(f"{i},{j}\n" for i, j in ends))

    words = r"edges\.csv, line 2: node '007' is not in nodes\.csv.*has '007' where nodes\.csv has '7'.*leading zeros"
    refused(words, *pair(["7", "8"], [("007", "008")]))
    refused(r"edges\.csv has '1' where nodes\.csv has '1\.0'.*decimal part", *pair(["1.0", "2.0"], [("1", "2")]))
    refused(r"edges\.csv has ' 2' where nodes\.csv has '2'.*white space", *pair(["1", "2"], [("1", "1"), ("1", " 2")]))
    refused(r"edges\.csv has 'a' where nodes\.csv has 'A'.*case of letters", *pair(["A", "b"], [("a", "b")]))
    g, report = read_graph(*pair(["1", "2"], [("1", "1"), ("1", " 2")]), unknown="add", report=True)
    assert g.node_names.tolist() == ["1", "2", " 2"]
    assert "edges.csv has ' 2' where nodes.csv has '2'" in report.notes[-1]


def test_ids_of_text_files_stay_integers_where_nothing_is_lost(tmp_path):
    g = read_graph(write(tmp_path / "e.csv", "source,target,day\n10,9,2020-01-05\n9,-3,2020-01-06\n"))
    assert g.node_names.tolist() == [-3, 9, 10]
    assert g.node_names.dtype.kind == "i"
    assert read_graph(write(tmp_path / "e.csv", "source,target\n0,1\n1,2\n")).node_names is None
    assert read_graph(write(tmp_path / "e.csv", "source,target\n00,1\n1,2\n")).node_names.tolist() == ["00", "1", "2"]


def valid_files(folder):
    """A small valid file of every format, with what is read beside it."""
    g = labelled(np.arange(8.0).reshape(4, 2))
    edges, weights, masks = arrays_of(g)
    NODES.to_csv(folder / "nodes.csv", index=False)
    EDGES.to_csv(folder / "edges.csv", index=False)
    NODES.to_csv(folder / "nodes.csv.gz", index=False)
    NODES.to_csv(folder / "quoted.csv", index=False, quoting=1)
    NODES.to_parquet(folder / "nodes.parquet")
    EDGES.to_parquet(folder / "edges.parquet", compression=None)
    write(folder / "spaced.txt", "# c\n 1  2 3\n2 3  4\n% d\n")
    write(folder / "features.json", json.dumps({name: ["t", "u"] for name in NODES["id"]}))
    scipy.io.mmwrite(folder / "g.mtx", sp.coo_matrix(g.adjacency))
    sp.save_npz(folder / "sparse.npz", g.adjacency)
    np.savez(folder / "arrays.npz", edge_index=edges.T, edge_weight=weights, x=g.features, y=g.labels)
    np.savez(folder / "masks.npz", edges=edges, node_labels=g.labels, **{f"{p}_masks": m for p, m in masks.items()})
    plain = g.replace(labels=None, features=None, splits=()).to_networkx()
    nx.write_graphml(plain, folder / "g.graphml")
    nx.write_gml(plain, folder / "g.gml")
    nx.write_edgelist(plain, folder / "g.edgelist")
    torch.save(g.to_pyg(), folder / "g.pt")
    beside = {
        "nodes.csv": "edges.csv",
        "nodes.csv.gz": "edges.csv",
        "quoted.csv": "edges.csv",
        "edges.csv": "nodes.csv",
    }
    beside |= {"nodes.parquet": "edges.csv", "edges.parquet": "nodes.csv", "features.json": "edges.csv"}
    return {path.name: beside.get(path.name) for path in sorted(folder.iterdir())}


def damage(content, rng):
    """Flip, cut, repeat or insert some bytes."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data) + 1))
        span = int(rng.integers(1, 12))
        kind = rng.integers(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at : at + span]
        elif kind == 2:
            data[at:at] = data[at : at + span]
        elif kind == 3:
            data[at:at] = bytes(rng.integers(0, 256, span, dtype=np.uint8))
        elif kind == 4:
            del data[at:]
        else:
            data[at : at + 4] = rng.choice(
                [b"\xff\xff\xff\xff", b"9999", b"-1.5", b'"', b",,", b"\n\n", b"{[<", b"\0\0"]
            )
        if not data:
            break
    return bytes(data)


def damage_inside(content, rng):
    """Damage what is packed and pack it again, so that checksums do not give it away."""
    if content[:2] == b"\x1f\x8b":
        return gzip.compress(damage(gzip.decompress(content), rng))
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(packed, "w") as target:
        chosen = int(rng.integers(len(source.namelist())))
        for k, member in enumerate(source.infolist()):
            inside = source.read(member)
            target.writestr(member.filename, damage(inside, rng) if k == chosen else inside)
    return packed.getvalue()


FUZZED = [
    *("arrays.npz", "edges.csv", "edges.parquet", "features.json", "g.edgelist", "g.gml", "g.graphml", "g.mtx", "g.pt"),
    *("masks.npz", "nodes.csv", "nodes.csv.gz", "nodes.parquet", "quoted.csv", "sparse.npz", "spaced.txt"),
]


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("valid")
    return folder, valid_files(folder)


def test_the_fuzz_covers_every_file(valid):
    folder, files = valid
    assert list(files) == sorted(FUZZED)
    for name, beside in files.items():
        read_graph(*(folder / file for file in (name, beside) if file))


@pytest.mark.parametrize("name", FUZZED)
def test_damaged_files_give_graphs_or_clear_errors(valid, tmp_path, name):
    folder, files = valid
    original = (folder / name).read_bytes()
    rng = np.random.default_rng(sum(name.encode()))
    beside = [folder / files[name]] if files[name] else []
    clear = 0
    for k in range(int(os.environ.get("PEGFAN_FUZZ", "40"))):
        inside = k % 2 and original[:2] in (b"PK", b"\x1f\x8b")
        path = write(tmp_path / name, (damage_inside if inside else damage)(original, rng))
        try:
            assert isinstance(read_graph(path, *beside), Graph)
        except (ValueError, OSError) as error:
            assert path.name in str(error) or path.stem in str(error), error
            clear += 1
    assert clear > 0


CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


def test_what_fuzzing_reached_gives_graphs_or_clear_errors(tmp_path):
    # Inputs by which Atheris reached lines of the readers that no other had.
    edges, nodes = write(tmp_path / "links.csv", "source,target\nn0,n1\nn1,n2\n"), tmp_path / "people.csv"
    write(nodes, "id,kind,size\nn0,a,1\nn1,b,2\nn2,a,3.5\n")
    beside = {"nodes": [edges], "bags": [edges], "edges": [nodes]}
    read = 0
    for path in CORPUS:
        try:
            read += isinstance(read_graph(path, *beside.get(path.name.split("-")[0], []), unknown="drop"), Graph)
        except ValueError as error:
            assert path.name in str(error) or path.stem in str(error), (path, error)
    assert 0 < read < len(CORPUS)
