"""Tables become graphs: what is guessed, what can be overridden, what is refused and in which words."""

import datetime
import json
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pegfan.datasets import ReadReport, Schema, graph_from_tables, read_graph, stand_in_features
from pegfan.graph import Graph

PATH = [("a", "b"), ("b", "c")]


def nodes(**columns):
    return pd.DataFrame({"id": ["a", "b", "c"], **columns})


def read(nodes, edges=PATH, **options):
    return graph_from_tables(nodes, edges, report=True, **options)


def dense(graph):
    return graph.features.toarray() if sp.issparse(graph.features) else graph.features


# -------------------------------------------------------------------- edges


def test_edges_alone_name_the_nodes_in_sorted_order():
    g = graph_from_tables(None, [("b", "c"), ("a", "b")])
    assert g.node_names.tolist() == ["a", "b", "c"]
    assert g.edges()[0].tolist() == [[0, 1], [1, 2]]
    assert g.features is None
    assert g.labels is None


def test_numbers_from_zero_need_no_names_and_others_do():
    assert graph_from_tables(None, np.array([[0, 2], [1, 2]])).node_names is None
    assert graph_from_tables(None, np.array([[10, 12], [11, 12]])).node_names.tolist() == [10, 11, 12]
    far = graph_from_tables(None, np.array([[-5, 10**12], [10**12, 7]]))
    assert far.node_names.tolist() == [-5, 7, 10**12]
    assert far.edges()[0].tolist() == [[0, 2], [1, 2]]


@pytest.mark.parametrize(
    "edges",
    [
        pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [2.0, 3.0]}),
        pd.DataFrame({"weight": [2, 3], "To": ["b", "c"], "From": ["a", "b"]}),
        pd.DataFrame({"x": ["a", "b"], "z": ["b", "c"], "strangely named": [2, 3]}),
        {"u": ["a", "b"], "v": ["b", "c"], "w": [2, 3]},
        [("a", "b", 2), ("b", "c", 3)],
        np.array([("a", "b", 2), ("b", "c", 3)], dtype=object),
        pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": ["2", "3"]}),
    ],
)
def test_ends_and_weights_by_name_or_place(edges):
    g = graph_from_tables(None, edges)
    assert g.node_names.tolist() == ["a", "b", "c"]
    assert g.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]


def test_ends_and_weight_as_given():
    edges = pd.DataFrame({"source": [1, 1], "target": [1, 1], "s": ["a", "b"], "t": ["b", "c"], "cost": [5, 7]})
    g, report = read(None, edges, source="s", target="t", weight="cost", directed=True)
    assert g.directed
    assert g.adjacency.toarray().tolist() == [[0, 5, 0], [0, 0, 7], [0, 0, 0]]
    assert report.columns["edges"] == "'s' to 't' (as given), directed"
    assert set(report.dropped) == {"edges 'source'", "edges 'target'"}
    assert not graph_from_tables(None, edges, source="s", target="t", weight=False).adjacency.data.max() > 1


def test_a_third_column_of_times_or_texts_is_no_weight():
    for column in ("timestamp", "Year"):
        g, report = read(None, pd.DataFrame({"a": [0], "b": [1], column: [2020]}))
        assert g.adjacency.max() == 1
        assert report.dropped == {}
        assert report.features[f"edges {column!r}"].startswith("time as given, newest 2020; node columns both")
    assert graph_from_tables(None, pd.DataFrame({"a": [0], "b": [1], "note": ["x"]})).adjacency.max() == 1


def test_what_happened_to_the_edges_is_counted():
    g, report = read(None, [(0, 1, 1.0), (1, 0, 3.0), (1, 1, 1.0), (0, 2, 0.0)])
    assert g.adjacency.toarray().tolist() == [[0, 3, 0], [3, 1, 0], [0, 0, 0]]
    assert (report.merged, report.self_loops) == (1, 1)
    assert report.notes == ["1 rows of edges have weight 0 and are not edges"]
    assert graph_from_tables(None, [(0, 1, 1.0), (1, 0, 3.0)], duplicates="sum").adjacency[0, 1] == 4
    assert graph_from_tables(None, [(0, 1, 1.0), (1, 0, 3.0)], directed=True).adjacency[0, 1] == 1


def test_bad_edges():
    with pytest.raises(ValueError, match=r"edges, row 1: column 'target' is blank.*\(2 of 3 rows"):
        graph_from_tables(None, {"source": ["a", "b", "c"], "target": ["b", None, " "]})
    with pytest.raises(ValueError, match=r"edges, row 1: weight -2\.0 .*weight=False"):
        graph_from_tables(None, [(0, 1, 1.0), (1, 2, -2.0)])
    with pytest.raises(ValueError, match="edges, row 0: weight 'x'"):
        graph_from_tables(None, {"source": [0], "target": [1], "weight": ["x"]})
    with pytest.raises(ValueError, match=r"edges has 1 column\(s\): 'a'"):
        graph_from_tables(None, {"a": [1]})
    with pytest.raises(ValueError, match=r"shape \(m, 2\).*edges\.T"):
        graph_from_tables(None, np.zeros((2, 5), int))
    with pytest.raises(ValueError, match="no source column 'form'; did you mean 'From'"):
        graph_from_tables(None, {"From": [1], "To": [1]}, source="form")
    with pytest.raises(ValueError, match="same column 'b'"):
        graph_from_tables(None, {"a": [1], "b": [1]}, source="b")
    with pytest.raises(ValueError, match="no edges and there is no table of nodes"):
        graph_from_tables(None, [])
    with pytest.raises(ValueError, match="two columns named 'a'"):
        graph_from_tables(None, pd.DataFrame([[0, 1]], columns=["a", "a"]))
    with pytest.raises(TypeError, match="nodes must be a pandas DataFrame or a dict"):
        graph_from_tables([1, 2], PATH)
    with pytest.raises(ValueError, match=r"edges, row 0: 0\.5 in column 'source' is not a node id"):
        graph_from_tables(None, [(0.5, 1)])
    with pytest.raises(ValueError, match="too large to be told from its neighbours"):
        graph_from_tables(None, np.array([[1.8e19, 1.0]]))
    with pytest.raises(ValueError, match="cannot be a node id; ids must be hashable"):
        graph_from_tables(None, pd.DataFrame({"a": [[1], [2]], "b": [0, 1]}))


# -------------------------------------------------------------------- ids


def test_node_i_is_row_i():
    table = pd.DataFrame({"id": [2, 0, 1], "label": [7, 5, 6], "x": [0.2, 0.0, 0.1]})
    g = graph_from_tables(table, [(0, 2)])
    assert g.node_names.tolist() == [2, 0, 1]
    assert g.class_names[g.labels].tolist() == [7, 5, 6]
    assert g.features.ravel().tolist() == [0.2, 0.0, 0.1]
    assert g.edges()[0].tolist() == [[0, 1]]
    assert graph_from_tables(table.sort_values("id"), [(0, 2)]).node_names is None


def test_the_id_column_by_name_by_content_and_as_given():
    table = {"id": [70, 80, 90], "rank": [2, 0, 1], "other": [0, 1, 2]}
    g, report = read(table, [(0, 1), (1, 2)])
    assert report.columns["id"].startswith("'rank' (by content: 100% of the edge ends are in it, 0% in 'id')")
    assert g.node_names.tolist() == [2, 0, 1]
    assert "id" in report.dropped  # distinct whole numbers named like an id are no feature
    g, report = read(table, [(0, 1), (1, 2)], id="other")
    assert report.columns["id"] == "'other' (as given)"
    assert g.node_names is None
    g, report = read(table, [(70, 80), (80, 90)])
    assert report.columns["id"] == "'id' (by name)"


def test_a_named_id_column_stays_if_a_few_ends_are_missing_and_the_error_points_to_the_better_one():
    table = {"id": [10, 11, 12], "rank": [10, 11, 13]}
    with pytest.raises(
        ValueError, match=r"edges, row 1: node 13 is not in nodes.*column 'rank' has them all: id='rank'"
    ):
        graph_from_tables(table, [(10, 11), (11, 13)])


def test_row_numbers_where_no_column_holds_the_ends():
    g, report = read({"height": [1.5, 2.5, 3.5]}, np.array([[0, 1], [1, 2]]))
    assert report.columns["id"] == "row numbers (no column holds the edge ends)"
    assert g.node_names is None
    g, report = read({"name": ["x", "y", "z"], "h": [1.5, 2.5, 3.5]}, np.array([[0, 1], [1, 2]]))
    assert report.columns["id"] == "row numbers (no column holds the edge ends)"
    g, report = read({"id": [2, 1, 0], "h": [1.5, 2.5, 3.5]}, np.array([[0, 1], [0, 2]]), id=False)
    assert g.edges()[0].tolist() == [[0, 1], [0, 2]]


def test_a_column_called_id_is_never_passed_over_for_row_numbers():
    with pytest.raises(ValueError, match=r"node 0 is not in nodes.*if the edges hold row numbers, id=False"):
        graph_from_tables({"id": [70, 80, 90]}, [(0, 1)])


def test_an_index_with_a_name_or_of_texts_is_a_column():
    for index in (pd.Index([5, 6, 7], name="who"), pd.Index(["e", "f", "g"])):
        g = graph_from_tables(pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=index), [(index[0], index[2])])
        assert g.node_names.tolist() == index.tolist()
        assert g.features.shape == (3, 1)
    filtered = pd.DataFrame({"id": range(6), "x": range(6)}).query("id >= 3")
    assert graph_from_tables(filtered, [(3, 5)]).features.ravel().tolist() == [3, 4, 5]


def test_numbers_and_texts_are_reconciled_and_reported():
    g, report = read({"id": ["1", "2", "3"]}, [(1, 2), (2, 3)])
    assert g.node_names.tolist() == [1, 2, 3]
    assert report.notes == ["ids are text in nodes and integers in edges; they were compared as integers"]
    g, report = read({"id": ["1", "2", "x"]}, [(1, 2)])
    assert g.node_names.tolist() == ["1", "2", "x"]
    assert report.notes == ["ids are text in nodes and integers in edges; they were compared as text"]
    g, report = read({"id": [1, 2, 3]}, [("1", "2")])
    assert g.node_names.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"node '1' is not in nodes"):
        graph_from_tables({"id": ["01", "02", "x"]}, [(1, 2)])
    assert graph_from_tables(None, {"s": [1, 2], "t": ["2", "x"]}).node_names.tolist() == ["1", "2", "x"]


def test_one_column_with_both_1_and_text_1_is_an_error():
    with pytest.raises(
        ValueError, match=r"nodes, row 2: column 'id' holds both the number 1 and the text '1'; .*astype"
    ):
        graph_from_tables({"id": ["1", "2", 1]}, [("1", "2")])
    assert graph_from_tables({"id": ["x", 2, 1]}, [("x", 1)]).node_names.tolist() == ["x", "2", "1"]


def test_any_hashable_is_an_id():
    day = datetime.date(2020, 1, 1)
    g = graph_from_tables(pd.DataFrame({"id": [(1, 2), "x", day], "v": [1, 2, 3]}), [((1, 2), "x"), ("x", day)])
    assert g.node_names.tolist() == [(1, 2), "x", day]
    assert g.edges()[0].tolist() == [[0, 1], [1, 2]]
    huge = graph_from_tables({"id": np.array([2**63 + 1, 5], np.uint64)}, {"s": [2**63 + 1], "t": [5]})
    assert huge.node_names.tolist() == [2**63 + 1, 5]
    whole = graph_from_tables({"id": [1.0, 2.0]}, {"s": pd.Categorical([2]), "t": pd.array([1], dtype="Int64")})
    assert whole.node_names.tolist() == [1, 2]
    flags = graph_from_tables(pd.DataFrame({"id": [True, False]}), [(True, False)])
    assert flags.node_names.tolist() == [True, False]


def test_a_very_long_id_costs_its_own_length_only():
    ids = [f"n{k}" for k in range(2000)] + ["x" * 10**6]
    g = graph_from_tables({"id": ids}, [(ids[0], ids[-1])])
    assert g.node_names.dtype == object
    assert g.node_names[-1] == ids[-1]


def test_unknown_ids():
    edges = [("a", "b"), ("b", "z"), ("y", "z"), ("c", "c")]
    with pytest.raises(
        ValueError, match=r"edges, row 1: node 'z' is not in nodes.*2 ids in 2 of 4 edges.*'y', 'z'"
    ) as error:
        graph_from_tables(nodes(), edges)
    assert "unknown='add'" in str(error.value)
    assert "unknown='drop'" in str(error.value)
    g, report = read(nodes(), edges, unknown="drop")
    assert g.n == 3
    assert g.edges()[0].tolist() == [[0, 1], [2, 2]]
    assert report.unknown == 2
    table = nodes(x=[1.0, 2.0, 6.0], k=["u", "v", "u"], label=["p", "q", "p"], tags=[["t"], ["t"], ["s"]])
    g, report = read(table, edges, unknown="add")
    assert g.node_names.tolist() == ["a", "b", "c", "y", "z"]
    assert g.labels.tolist() == [0, 1, 0, -1, -1]
    assert dense(g)[3].tolist() == [3.0, 0, 0, 0, 0]  # the mean, no category, no token
    assert report.notes == ["2 ids of edges are not in nodes: added as nodes ('y', 'z')"]
    with pytest.raises(ValueError, match="2 added nodes: no number in column 'x'"):
        graph_from_tables(table, edges, unknown="add", missing="error")
    with pytest.raises(ValueError, match="2 added nodes have no position"):
        graph_from_tables(nodes(x=[1, 2, 3], y=[1, 2, 3]), edges, unknown="add", positions=["x", "y"])


def test_bad_nodes():
    with pytest.raises(
        ValueError, match=r"nodes, row 2: id 'a' in column 'id' was already given in nodes, row 0 \(1 duplicate"
    ):
        graph_from_tables({"id": ["a", "b", "a"]}, [("a", "b")])
    with pytest.raises(ValueError, match="nodes, row 1: the id in column 'id' is blank"):
        graph_from_tables({"id": ["a", None, "b"]}, [("a", "b")])
    with pytest.raises(ValueError, match="nodes has no id column 'naem'; did you mean 'name'"):
        graph_from_tables({"name": ["a", "b"]}, [("a", "b")], id="naem")
    with pytest.raises(ValueError, match=r"no column of nodes holds the ids of edges \(such as 'a', 'b'"):
        graph_from_tables({"x": [0.5, 1.5]}, [("a", "b")])
    with pytest.raises(ValueError, match="nodes has no rows"):
        graph_from_tables({"id": []}, [("a", "b")])
    with pytest.raises(ValueError, match="nodes is not a table"):
        graph_from_tables({"id": [1, 2], "x": [1]}, [(1, 2)])
    with pytest.raises(ValueError, match=r"unknown must be .*, got"):
        graph_from_tables(nodes(), PATH, unknown="ignore")
    with pytest.raises(ValueError, match=r"missing must be .*, got"):
        graph_from_tables(nodes(), PATH, missing="median")


def test_swapped_tables_are_noticed():
    people = pd.DataFrame({"name": ["a", "b", "c"], "age": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"nodes and edges look swapped.*exchange them"):
        graph_from_tables(pd.DataFrame(PATH * 3, columns=["p", "q"]), people)


def test_nodes_without_edges():
    g = graph_from_tables(nodes(x=[1, 2, 3]), [])
    assert g.n == 3
    assert g.n_edges == 0


# -------------------------------------------------------------------- labels and splits


@pytest.mark.parametrize(
    ("column", "codes", "names"),
    [
        (["x", None, "w"], [1, -1, 0], ["w", "x"]),
        (["x", "NA", " "], [0, -1, -1], ["x"]),
        ([0, 2, 1], [0, 2, 1], None),
        ([1.0, np.nan, 0.0], [1, -1, 0], None),
        ([5, 3, 5], [1, 0, 1], [3, 5]),
        ([0, -1, 1], [0, -1, 1], None),
        ([-1, 1, 1], [0, 1, 1], [-1, 1]),
        ([True, False, True], [1, 0, 1], [False, True]),
        (pd.Categorical(["q", "p", "q"]), [1, 0, 1], ["p", "q"]),
        (pd.array([1, None, 0], dtype="Int64"), [1, -1, 0], None),
        (pd.array([True, None, True], dtype="boolean"), [0, -1, 0], [True]),
        ([1, "1", "b"], [0, 0, 1], ["1", "b"]),
    ],
)
def test_labels(column, codes, names):
    g = graph_from_tables(nodes(label=column), PATH)
    assert g.labels.tolist() == codes
    assert (None if g.class_names is None else g.class_names.tolist()) == names


def test_the_label_column_is_guessed_only_if_it_holds_classes():
    g, report = read(nodes(y=[0.25, 1.5, 3.0], kind=["p", "q", "p"]))
    assert report.columns["label"].startswith("'kind' (by name)")
    assert g.features.ravel().tolist() == [0.25, 1.5, 3.0]
    g, report = read(nodes(y=[0.25, 1.5, 3.0]))
    assert report.columns["label"] == "none; 'y' does not hold classes"
    g, report = read(nodes(Label=["p", "q", "p"], group=["r", "r", "s"]), label="group")
    assert g.class_names.tolist() == ["r", "s"]
    assert report.features == {"Label": "2 categories"}
    assert graph_from_tables(nodes(label=["p", "q", "p"]), PATH, label=False).labels is None


def test_bad_labels():
    with pytest.raises(ValueError, match="nodes has no label column 'kid'; did you mean 'kind'"):
        graph_from_tables(nodes(kind=[1, 2, 3]), PATH, label="kid")
    with pytest.raises(ValueError, match=r"nodes: every label in column 'label' is missing.*label=False"):
        graph_from_tables(nodes(label=[None, "NA", ""]), PATH)
    with pytest.raises(ValueError, match=r"nodes, row 1: label column 'z' holds 0\.5; labels are classes"):
        graph_from_tables(nodes(z=[1, 0.5, 2]), PATH, label="z")
    many = {"id": range(30), "z": [f"t{k}" for k in range(30)]}
    with pytest.raises(ValueError, match="holds 30 values that all differ: names, not classes"):
        graph_from_tables(many, [(0, 1)], label="z")
    with pytest.raises(ValueError, match="label column 'z' holds dates"):
        graph_from_tables(nodes(z=pd.date_range("2020", periods=3)), PATH, label="z")
    with pytest.raises(ValueError, match="label column 'z' holds lists"):
        graph_from_tables(nodes(z=[[1], [2], [3]]), PATH, label="z")


def test_splits():
    table = nodes(
        split=["Train", "valid", "test"], split_10=["test", None, "train"], split_2=["validation", "", "train"]
    )
    g, report = read(table)
    assert [[part.tolist() for part in split] for split in g.splits] == [
        [[0], [1], [2]],
        [[2], [0], []],
        [[2], [], [0]],
    ]
    assert report.columns["splits"] == "'split', 'split_2', 'split_10'"
    assert g.features is None
    g = graph_from_tables(nodes(fold=["train", "val", "test"]), PATH, split="fold")
    assert [part.tolist() for part in g.splits[0]] == [[0], [1], [2]]
    g = graph_from_tables(nodes(split=["x", "y", "x"]), PATH, split=False)
    assert g.splits == ()
    assert g.features.shape == (3, 2)


def test_masks_are_splits_not_features():
    masks = {"train_mask": [True, True, False], "Val_Mask": [0, 0, 1], "test_mask_1": ["false", "", "TRUE"]}
    graph, report = graph_from_tables(nodes(**masks, x=[1, 2, 4]), [("a", "b")], report=True)
    assert [[part.tolist() for part in split] for split in graph.splits] == [[[0, 1], [2], []]]
    assert report.columns["splits"] == "'train_mask', 'Val_Mask'"
    assert set(graph.feature_names) == {"x"}, "without train_mask_1, test_mask_1 is a column of two words"
    more = {
        f"{part}_mask_1": [part == own for own in ("valid", "test", "train")] for part in ("train", "valid", "test")
    }
    graph = graph_from_tables(nodes(**masks | more, split=["train", "test", None]), [("a", "b")])
    parts = [[part.tolist() for part in split] for split in graph.splits]
    assert parts == [[[0], [], [1]], [[0, 1], [2], []], [[2], [0], [1]]]
    assert graph.features is None
    with pytest.raises(ValueError, match="row 1: the node is in 'train_mask' and in 'test_mask'"):
        graph_from_tables(nodes(train_mask=[1, 1, 0], test_mask=[0, 1, 1]), [("a", "b")])
    plain, report = graph_from_tables(nodes(**masks), [("a", "b")], split=False, report=True)
    assert not plain.splits
    assert "train_mask=True" in plain.feature_names
    again = graph_from_tables(nodes(**masks), [("a", "b")], schema=report.schema)  # as a model knows it
    assert (again.splits, again.feature_names) == ((), plain.feature_names)


def test_spaces_around_a_text_make_no_class_and_no_category():
    table = nodes(label=["red", " red", "blue "], town=["Rome ", "Oslo", "Rome"])
    graph = graph_from_tables(table, [("a", "b")])
    assert (graph.labels.tolist(), graph.class_names.tolist()) == ([1, 1, 0], ["blue", "red"])
    assert graph.feature_names == ("town=Oslo", "town=Rome")
    assert graph.features.toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    stored = {"nodes": {"town": {"kind": "category", "categories": ["Rome", "Rome "]}}, "edges": {}}
    before = graph_from_tables(table, [("a", "b")], schema=Schema.from_dict(stored))
    assert before.features.toarray().tolist() == [[1, 0], [0, 0], [1, 0]]


@pytest.mark.parametrize("last", ["1e1", "001", "+10", "0x10", "10."])
def test_classes_are_told_apart_as_they_are_written(tmp_path, last):
    (tmp_path / "n.csv").write_text("id,label\na,10\nb,2\nc,\nd," + last + "\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\nc,d\n")
    graph = read_graph(tmp_path / "n.csv", tmp_path / "e.csv")
    if last == "10.":  # as programs write whole numbers beside a gap
        assert (graph.classes.tolist(), graph.labels.tolist()) == ([2, 10], [1, 0, -1, 1])
    else:
        assert sorted(graph.classes.tolist()) == sorted(["10", "2", last])
        assert graph.labels[2] == -1


def test_bad_splits():
    with pytest.raises(
        ValueError, match=r"nodes, row 1: split column 'split' holds 'holdout', 'dev'; it may hold train"
    ):
        graph_from_tables(nodes(split=["train", "holdout", "dev"]), PATH)
    with pytest.raises(ValueError, match="split column 'split' holds '0', '1', '2'"):
        graph_from_tables(nodes(split=[0, 1, 2]), PATH)
    with pytest.raises(ValueError, match="split column 'split' is empty"):
        graph_from_tables(nodes(split=[None, "", None]), PATH)
    with pytest.raises(ValueError, match="no split column 'fold'"):
        graph_from_tables(nodes(), PATH, split=["fold"])


# -------------------------------------------------------------------- features


def test_numbers_are_kept_and_constant_columns_left_out():
    g, report = read(nodes(a=[1, 2, 3], b=[0.5, 0.5, 0.5], c=["u", "u", "u"]))
    assert isinstance(g.features, np.ndarray)
    assert g.features.tolist() == [[1], [2], [3]]
    assert report.features == {"a": "number"}
    assert report.dropped == {"b": "constant: every value is 0.5", "c": "constant: every value is 'u'"}
    assert g.feature_names == ("a",)
    assert graph_from_tables(nodes(b=[0.5, 0.5, 0.5]), PATH, features=["b"]).features.tolist() == [[0.5], [0.5], [0.5]]
    assert graph_from_tables(nodes(a=np.array([1, 2, 3], np.float32)), PATH).features.dtype == np.float32
    gap = graph_from_tables(nodes(a=np.array([1, np.nan, 3], np.float32)), PATH)
    assert gap.features.dtype == np.float32
    assert gap.features.tolist() == [[1, 0], [2, 1], [3, 0]]


def test_missing_numbers_by_rule():
    table = nodes(a=[1, None, 4], b=pd.array([1, None, 4], dtype="Int64"), c=["1", "NA", "4"])
    g, report = read(table)
    assert g.features[1].tolist() == [2.5, 1, 2.5, 1, 2.5, 1]
    assert g.feature_names[:2] == ("a", "a missing")
    assert report.features["a"] == "number, 1 missing: the mean and 'a missing'"
    assert graph_from_tables(table, PATH, missing="zero").features[1].tolist() == [0, 1] * 3
    with pytest.raises(ValueError, match=r"nodes, row 1: no number in column 'a'.*missing='mean' or 'zero'"):
        graph_from_tables(table, PATH, missing="error")
    _, report = read(nodes(a=[None, None, None], b=[1, 2, 3]))
    assert report.dropped == {"a": "every value is missing"}
    with pytest.raises(ValueError, match="nodes, row 2: inf in column 'a' is not a finite number"):
        graph_from_tables(nodes(a=[1, 2, np.inf]), PATH)


def test_words_that_stand_for_no_number():
    g, report = read(nodes(a=["1", "?", "4"], c=["unknown", "x", "x"]))
    assert dense(g).tolist() == [[1, 0, 1, 0], [2.5, 1, 0, 1], [4, 0, 0, 1]]
    assert report.features["a"] == "number, '?' taken for missing, 1 missing: the mean and 'a missing'"
    assert report.features["c"] == "2 categories"  # among categories they are one


def test_booleans_and_categories_are_one_hot():
    g, report = read(nodes(flag=[True, False, True], kindness=["low", None, "low"], n=[5, 6, 7]))
    assert sp.issparse(g.features)
    assert g.feature_names == ("flag=False", "flag=True", "kindness=low", "n")
    assert dense(g).tolist() == [[0, 1, 1, 5], [1, 0, 0, 6], [0, 1, 1, 7]]
    assert report.features["kindness"] == "1 categories, 1 missing"
    assert report.features["flag"] == "boolean"
    assert dense(graph_from_tables(nodes(flag=[True, None, False]), PATH)).tolist() == [[0, 1], [0, 0], [1, 0]]
    g = graph_from_tables(nodes(c=pd.Categorical(["u", "v", "u"])), PATH)
    assert dense(g).tolist() == [[1, 0], [0, 1], [1, 0]]


def test_names_ids_and_unlike_things_are_dropped_with_a_reason():
    n = 60
    table = pd.DataFrame(
        {
            "id": range(n),
            "name": [f"name {k}" for k in range(n)],
            "mail": [f"{k % 55}@x.org" for k in range(n)],
            "user_id": range(100, 100 + n),
            "row": range(1, n + 1),
            "thing": [{"a": 1}] * n,
            "x": [k % 7 for k in range(n)],
        }
    )
    g, report = read(table, [(0, 1)])
    assert g.feature_names == ("x",)
    assert report.dropped.keys() == set(table.columns) - {"id", "x"}
    assert "all differ" in report.dropped["name"]
    assert "texts of which 92% differ" in report.dropped["mail"]
    assert "named like an id" in report.dropped["user_id"]
    assert report.dropped["row"] == "it counts the rows"


def test_of_many_categories_the_most_frequent_are_kept():
    towns = ["Rome"] * 5 + ["Oslo"] * 4 + ["Bern"] * 3 + ["Kiel", "Lyon", "Metz"] * 2
    g, report = read({"id": range(len(towns)), "town": towns}, [(0, 1)], categories_max=3)
    assert g.feature_names == ("town=Oslo", "town=Rome", "town=(other)")
    assert dense(g).sum(axis=0).tolist() == [4, 5, 9]
    assert report.features["town"] == "2 categories and 4 others in one"
    assert read({"id": range(len(towns)), "town": towns}, [(0, 1)], categories_max=6)[0].features.shape[1] == 6
    with pytest.raises(ValueError, match="categories_max must be a whole number from 2 on, got 1"):
        graph_from_tables(nodes(), PATH, categories_max=1)


def test_codes_with_leading_zeros_are_categories():
    g, _ = read({"id": range(4), "zip": ["00184", "10115", "00184", "10115"]}, [(0, 1)])
    assert g.feature_names == ("zip=00184", "zip=10115")


def test_amounts_become_logarithms():
    rng = np.random.default_rng(0)
    amounts = np.exp(rng.normal(5, 2, 400))
    amounts[3] = np.nan
    table = {
        "id": range(400),
        "amount": amounts,
        "tiny": amounts / 1e9,
        "balance": np.where(amounts > 50, amounts, -amounts),
    }
    table |= {"age": rng.uniform(0, 90, 400), "score": rng.standard_normal(400)}
    g, report = read(table, [(0, 1)])
    assert g.feature_names[:2] == ("amount (log)", "amount missing")
    assert report.features["amount"] == "number, log, 1 missing: the mean and 'amount missing'"
    assert np.allclose(np.delete(g.features[:, 0], 3), np.log1p(np.delete(amounts, 3)))
    assert g.features[3, 0] == pytest.approx(np.delete(g.features[:, 0], 3).mean())
    assert "tiny (log)" in g.feature_names  # whose unit is small as well: logarithms tell them apart
    tiny = g.features[:, g.feature_names.index("tiny (log)")]
    assert tiny.std() > 1
    assert {"balance (log)", "age", "score"} < set(g.feature_names)
    asked = graph_from_tables(table, [(0, 1)], features={"amount": "number", "age": "log"})
    assert asked.feature_names == ("amount", "amount missing", "age (log)")


def test_free_text_becomes_hashed_words():
    notes = ["Called the bank twice today", "the card was lost", None, "new card, new bank: twice the trouble"]
    table = {"id": range(4), "note": notes}
    g, report = read(table, [(0, 1)])
    assert report.features["note"] == "free text: 10 different words hashed into 16 columns, 1 missing"
    assert g.feature_names == tuple(f"note#{k}" for k in range(16))
    assert dense(g).sum(axis=1).tolist() == [5, 4, 0, 7]
    new = zlib.crc32(b"new") % 16
    assert dense(g)[3, new] >= 2
    many = [" ".join(f"w{rng}x{k}" for rng in range(6)) for k in range(100)]
    g, report = read({"id": range(100), "note": many}, [(0, 1)])
    assert g.features.shape == (100, 256)


# -------------------------------------------------------------------- dates


def one_column(cells, options=None, **more):
    """A graph of as many nodes as there are cells, with one column `day`."""
    table = pd.DataFrame({"id": [f"n{k}" for k in range(len(cells))], "day": cells})
    return graph_from_tables(table, [("n0", "n1")], report=True, **(options or {}), **more)


ISO = ["2015-07-04", "2015-12-31", "2014-02-28"]


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (ISO, "year first"),
        (pd.to_datetime(ISO), None),
        (pd.to_datetime(ISO).tz_localize("UTC"), None),
        (pd.to_datetime(ISO).date, None),
        (["2015/07/04", "2015/12/31", "2014/02/28"], "year first"),
        (["04.07.2015", "31.12.2015", "28.02.2014"], "day first"),
        (["4.7.15", "31.12.15", "28.2.14"], "day first"),
        (["04/07/2015", "31/12/2015", "28/02/2014"], "day first"),
        (["07/04/2015", "12/31/2015", "02/28/2014"], "month first"),
        (["04-07-2015", "31-12-2015", "28-02-2014"], "day first"),
        (["4 Jul 2015", "31 Dec 2015", "28 February 2014"], "day and name of month"),
        (["July 4, 2015", "Dec 31, 2015", "Feb 28th 2014"], "name of month and day"),
        (["2015-07-04T00:00:00Z", "2015-12-31 00:00", "2014-02-28T02:00:00+02:00"], "year first"),
    ],
    ids=str,
)
def test_dates_in_the_usual_forms(cells, form):
    g, report = one_column(cells)
    assert report.features["day"].startswith("date" + (f", {form}" if form else "") + ": age in days on 2015-12-31")
    ages = (np.datetime64("2015-12-31") - np.array(ISO, "datetime64[D]")).astype(float)
    assert g.feature_names[0] == "day age"
    assert g.features[:, 0].tolist() == ages.tolist()
    months = 2 * np.pi * np.array([6, 11, 1]) / 12
    assert np.allclose(g.features[:, 1], np.sin(months))
    assert np.allclose(g.features[:, 2], np.cos(months))
    weekdays = 2 * np.pi * np.array([5, 3, 4]) / 7  # Saturday, Thursday, Friday
    assert np.allclose(g.features[:, 3], np.sin(weekdays))
    assert g.feature_names[1:] == ("day month sin", "day month cos", "day weekday sin", "day weekday cos")


def test_the_order_of_day_and_month_is_said_where_nothing_tells():
    for mark, first in (("/", "month"), (".", "day")):
        cells = [f"04{mark}07{mark}2015", f"05{mark}07{mark}2015"]
        g, report = one_column(cells)
        assert report.features["day"].startswith(f"date, {first} first (nothing in the column tells")
        assert g.features[0, 0] == (31 if first == "month" else 1) - (first == "month")
        for stated in ("day first", "month first"):
            g, report = one_column(cells, {"features": {"day": stated}})
            assert g.features[0, 0] == (1 if stated == "day first" else 30)


def test_hours_vary_where_there_are_times():
    g, report = one_column(["2020-01-01 06:00:00", "2020-01-01 18:00", "2020-01-01T12:00:00"])
    assert report.features["day"] == "date, year first: age in days on 2020-01-01T18:00:00, hour"
    assert g.feature_names == ("day age", "day hour sin", "day hour cos")
    assert np.allclose(g.features, [[0.5, 1, 0], [0, -1, 0], [0.25, 0, -1]])
    g, report = one_column(["06:00", "18:00", "12:00"])
    assert report.features["day"] == "time of day: hour"
    assert np.allclose(g.features, [[1, 0], [-1, 0], [0, -1]])


def test_numbers_are_times_only_where_the_name_says_so():
    seconds = [1_577_836_800, 1_577_836_800 + 86400, 1_577_836_800 + 3 * 86400]
    for name, days in (("created_time", True), ("date", True), ("views", False)):
        table = pd.DataFrame({"id": ["a", "b", "c"], name: seconds})
        g, report = read(table)
        assert report.features[name].startswith("date, seconds since 1970" if days else "number")
        assert not days or g.features[:, 0].tolist() == [3, 2, 0]
    for values, words in (
        ([s * 1000 for s in seconds], "milliseconds"),
        ([20200101, 20200102, 20200104], "yyyymmdd"),
    ):
        g, report = read(pd.DataFrame({"id": ["a", "b", "c"], "date": values}))
        assert words in report.features["date"]
        assert g.features[:, 0].tolist() == [3, 2, 0]
    assert read(nodes(time=[3, 7, 5]))[1].features == {"time": "number"}


def test_missing_dates_and_bad_ones():
    g, report = one_column(["2020-01-03", "NA", "unknown", "2020-01-01"])
    assert g.feature_names[-1] == "day missing"
    assert g.features[:, 0].tolist() == [0, 1, 1, 2]
    assert g.features[1].tolist() == [1, 0, 0, 1]
    assert report.features["day"].endswith("2 missing: the mean and 'day missing'")
    with pytest.raises(ValueError, match="nodes, row 1: no date in column 'day'"):
        one_column(["2020-01-03", "NA"], missing="error")
    with pytest.raises(ValueError, match=r"nodes, row 1: '30\.02\.2015' in column 'day' is not a date, as the values"):
        one_column(["04.07.2015", "30.02.2015", "28.02.2015"])
    assert one_column(["2020-01-03"] * 3)[1].dropped == {"day": "constant: every value is '2020-01-03'"}
    old = one_column(["1066-10-14", "9998-12-31"])[0]  # beyond what nanoseconds can count
    assert old.features[0, 0] == (datetime.date(9998, 12, 31) - datetime.date(1066, 10, 14)).days


KNOWN_DAYS = st.dates(datetime.date(2, 1, 1), datetime.date(9998, 12, 31))
"""Those of the years 1 and 9999 stand for none: test_bad_tables.py."""


@given(st.lists(KNOWN_DAYS, min_size=2, max_size=6, unique=True), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y"]))
def test_any_dates_as_any_text(days, form):
    texts = [day.strftime(form) if day.year > 999 else f"{day.year:04d}-{day:%m-%d}" for day in days]
    if form != "%Y-%m-%d":
        texts = [f"{day.day:02d}.{day.month:02d}.{day.year:04d}" for day in days]
    g, _ = one_column(texts, {"features": {"day": "date" if form == "%Y-%m-%d" else "day first"}})
    assert g.features[:, 0].tolist() == [(max(days) - day).days for day in days]


def test_durations_are_numbers():
    g, report = read(nodes(took=pd.to_timedelta([1, 2, 90], unit="min")))
    assert report.features == {"took": "number, seconds"}
    assert g.features.ravel().tolist() == [60, 120, 5400]


# -------------------------------------------------------------------- a schema reads other tables alike


def wide_table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    frame = pd.DataFrame(
        {
            "id": [f"n{seed}-{k}" for k in range(n)],
            "age": rng.integers(18, 90, n).astype(float),
            "amount": np.exp(rng.normal(4, 2, n)),
            "town": rng.choice([f"town {k}" for k in range(9)], n),
            "active": rng.random(n) < 0.5,
            "joined": days.strftime("%d.%m.%Y"),
            "note": [" ".join(rng.choice(["lost", "card", "bank", "call", "home", "late"], 5)) for _ in range(n)],
            "tags": [list(rng.choice(["x", "y", "z"], 2)) for _ in range(n)],
            "where": [rng.standard_normal(2).tolist() for _ in range(n)],
            "constant": 1,
            "label": rng.choice(["p", "q"], n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "age"] = np.nan
    return frame


def test_a_schema_reads_the_same_table_alike_and_survives_json():
    table, edges = wide_table(), [("n0-0", "n0-1")]
    g, report = read(table, edges, categories_max=5)
    assert report.features.keys() | report.dropped.keys() == set(table.columns) - {"id", "label"}
    schema = Schema.from_dict(json.loads(json.dumps(report.schema.to_dict())))
    again, told = read(table, edges, schema=schema)
    assert again.feature_names == g.feature_names
    assert np.array_equal(dense(again), dense(g))
    assert told.dropped == report.dropped
    assert told.schema.to_dict() == report.schema.to_dict()
    one = table.iloc[[7]]  # a row alone is read as it was among the others
    alone = graph_from_tables(one, [], schema=schema, id="id", label=False)
    assert np.array_equal(dense(alone)[0], dense(g)[7])


def test_a_schema_and_a_table_with_other_columns():
    first, report = read(wide_table(), [("n0-0", "n0-1")])
    other = wide_table(seed=1).drop(columns=["age", "town", "joined"]).assign(new=1.5)
    g, told = read(other, [("n1-0", "n1-1")], schema=report.schema)
    assert g.feature_names == first.feature_names
    place = {name: k for k, name in enumerate(g.feature_names)}
    known = wide_table()["age"].dropna()
    assert np.allclose(dense(g)[:, place["age"]], known.mean())
    assert (dense(g)[:, place["age missing"]] == 1).all()
    assert not dense(g)[:, [place[name] for name in place if name.startswith("town=")]].any()
    mean = dense(first)[:, place["joined age"]].mean()
    assert np.allclose(dense(g)[:, place["joined age"]], mean)
    assert told.features["age"] == "not in the table: all missing"
    assert told.dropped["new"] == "not in the schema"
    assert told.notes == [
        "nodes lacks columns that the schema has; they count as missing: 'age', 'town', 'joined'",
        "nodes has columns that the schema lacks; they are not used: 'new'",
    ]


def test_new_categories_and_tokens_are_named():
    table = nodes(town=["Rome", "Oslo", "Rome"], tags=[["x"], ["y"], ["x"]])
    _, report = read(table)
    g, told = read(nodes(town=["Rome", "Bern", None], tags=[["x"], ["z"], []]), schema=report.schema)
    assert dense(g).tolist() == [[0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert told.features["town"] == "2 categories, 1 missing, 1 in new categories ('Bern')"
    assert told.features["tags"] == "bag of 2 tokens, 1 empty, 1 new tokens left out"


def test_a_table_that_the_schema_cannot_read():
    _, report = read(nodes(age=[1, 2, 3], day=["2020-01-01", "2020-01-02", "2020-01-03"]))
    with pytest.raises(ValueError, match="nodes, row 1: 'old' in column 'age' is not a finite number"):
        read(nodes(age=["1", "old", "3"], day=["2020-01-01"] * 3), schema=report.schema)
    with pytest.raises(ValueError, match="nodes, row 0: 'soon' in column 'day' is not a date"):
        read(nodes(age=[1, 2, 3], day=["soon"] * 3), schema=report.schema)


def test_names_of_features_make_a_schema_for_models_that_have_none():
    names = ("age", "town=Oslo", "town=Rome", "tags:x", "tags:y", "where[0]", "where[1]")
    table = nodes(
        where=[[1.5, 2], [3.5, 4], None], age=[1, None, 4], town=["Rome", "Oslo", "Rome"], tags=[["x"], ["y"], []]
    )
    g, _ = read(table, schema=Schema.of_names(names))
    assert g.feature_names == names
    assert dense(g).tolist() == [[1, 0, 1, 1, 0, 1.5, 2], [2.5, 1, 0, 0, 1, 3.5, 4], [4, 0, 1, 0, 0, 2.5, 3]]


def test_lists_of_tokens_are_bags():
    for column in ([["x", "y", "x"], [], ["z"]], ["['x', 'y', 'x']", "[]", "['z']"]):
        g, report = read(nodes(tags=column))
        assert dense(g).tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]
        assert g.feature_names == ("tags:x", "tags:y", "tags:z")
        assert report.features["tags"] == "bag of 3 tokens, 1 empty"
    g = graph_from_tables(nodes(tags=["x|y|x", None, "z"]), PATH, features={"tags": "tokens"})
    assert dense(g).tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]
    for column in ([[7, 3], [10], []], ["7,3,10", "10", ""], [np.array([7, 3]), (10,), None]):
        g, report = read(nodes(tags=column))
        assert g.feature_names == ("tags:3", "tags:7", "tags:10")


def test_lists_of_numbers_of_one_length_are_vectors():
    for column in ([[0.5, 1.0], [2.0, 3.0], None], ["[0.5 1.0]", "[2.0\n 3.0]", ""]):
        g, report = read(nodes(e=column))
        assert g.features.tolist() == [[0.5, 1], [2, 3], [1.25, 2]]
        assert report.features["e"] == "vector of 2, 1 missing: the mean"
        assert g.feature_names == ("e[0]", "e[1]")
    g = graph_from_tables(nodes(e=["0,1,1", "0,0,0", "1,0,0"]), PATH)
    assert g.features.tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    g = graph_from_tables(nodes(e=[[1, 2], [3, 4], [5, 6]]), PATH, features={"e": "vector"})
    assert g.features.tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match="nodes, row 1: column 'e' holds 1 numbers here and 2 elsewhere"):
        graph_from_tables(nodes(e=[[1.0, 2.0], [3.0], [4.0, 5.0]]), PATH, features={"e": "vector"})
    with pytest.raises(ValueError, match="nodes, row 2: no vector in column 'e'"):
        graph_from_tables(nodes(e=[[0.5], [1.5], None]), PATH, missing="error")
    with pytest.raises(ValueError, match="nodes, row 1: the vector in column 'e' is not finite"):
        graph_from_tables(nodes(e=[[0.5], [np.inf], [1.5]]), PATH)


def test_decimal_commas_are_not_lists():
    assert graph_from_tables(nodes(e=["0,5", "1,5", "2,5"]), PATH, features=["e"]).feature_names[0] == "e=0,5"


def test_features_as_given():
    table = nodes(a=[1, 2, 3], b=["u", "v", "w"], c=[4, 5, 6])
    g, report = read(table, features=["c", "b"])
    assert g.feature_names == ("c", "b=u", "b=v", "b=w")
    assert report.dropped == {"a": "not asked for"}
    g = graph_from_tables(table, PATH, features={"a": "category"})
    assert dense(g).tolist() == np.eye(3).tolist()
    assert graph_from_tables(table, PATH, features=False).features is None
    assert graph_from_tables(nodes(), PATH).features is None
    assert dense(graph_from_tables(nodes(z=[-1, 0, -1]), PATH, features={"z": "category"})).tolist() == [
        [1, 0],
        [0, 1],
        [1, 0],
    ]


def test_features_that_cannot_be_what_they_should():
    with pytest.raises(ValueError, match="nodes has no feature column 'agee'; did you mean 'age'"):
        graph_from_tables(nodes(age=[1, 2, 3]), PATH, features=["agee"])
    with pytest.raises(ValueError, match="nodes, row 1: 'x' in column 'age' is not a finite number"):
        graph_from_tables(nodes(age=["1", "x", "y"]), PATH, features={"age": "number"})
    with pytest.raises(
        ValueError, match=r"nodes, row 1: 'x' in column 'age' is not a number, as most values there are"
    ):
        graph_from_tables(nodes(age=["1", "x", "3"]), PATH)
    with pytest.raises(ValueError, match="column 'when' cannot be a feature: values of type datetime64"):
        graph_from_tables(nodes(when=pd.date_range("2020", periods=3)), PATH, features={"when": "number"})
    with pytest.raises(ValueError, match="column 't' cannot be a feature: its values are not dates"):
        graph_from_tables(nodes(t=["u", "v", "w"]), PATH, features={"t": "date"})
    with pytest.raises(ValueError, match="nodes, row 0: 1 in column 'a' is not a list"):
        graph_from_tables(nodes(a=[1, 2, 3]), PATH, features={"a": "tokens"})
    with pytest.raises(ValueError, match=r"features\['a'\] must be .*, got"):
        graph_from_tables(nodes(a=[1, 2, 3]), PATH, features={"a": "texts"})


def test_columns_of_arrow_types_are_read_as_others():
    table = nodes(x=[1, None, 3], b=[True, None, False], s=["u", "v", "u"], label=["p", None, "q"], l=[["z"], [], None])
    arrow = table.convert_dtypes(dtype_backend="pyarrow")
    arrow["l"] = pd.Series(table["l"], dtype=pd.ArrowDtype(pa.list_(pa.string())))
    edges = pd.DataFrame(PATH, columns=["s", "t"]).convert_dtypes(dtype_backend="pyarrow")
    (g, report), (twin, other) = read(arrow, edges), read(table)
    assert report.features == other.features
    assert np.array_equal(dense(g), dense(twin))
    assert g.labels.tolist() == twin.labels.tolist() == [0, -1, 1]


def test_positions():
    g, _ = read(nodes(lon=[1, 2, 3], lat=[4, 5, 6], x=[7, 8, 9]), positions=["lon", "lat"])
    assert g.positions.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert g.features.shape == (3, 1)
    with pytest.raises(ValueError, match="no number in column 'lat'"):
        graph_from_tables(nodes(lon=[1, 2, 3], lat=[4, None, 6]), PATH, positions=["lon", "lat"])
    with pytest.raises(ValueError, match="cannot be positions"):
        graph_from_tables(nodes(lon=[1, 2, 3], lat=pd.date_range("2020", periods=3)), PATH, positions=["lon", "lat"])


def test_the_report_is_one_readable_block():
    table = nodes(age=[31, None, 35], born=pd.date_range("1990", periods=3), label=["p", "q", "p"])
    _, report = read(table, [("a", "b"), ("b", "a"), ("c", "c"), ("c", "z")], unknown="drop")
    assert str(report).splitlines() == [
        "edges     'source' to 'target' (by name), undirected",
        "weight    none: every edge weighs 1",
        "id        'id' (by name)",
        "label     'label' (by name): 2 classes, 0 of 3 nodes without",
        "feature   age: number, 1 missing: the mean and 'age missing'",
        "feature   born: date: age in days on 1990-01-03, weekday",
        "counts    1 repeated merged, 1 self loops, 1 unknown ids",
        "note      1 ids of edges are not in nodes: dropped with their edges ('z')",
    ]
    wide = ReadReport(features={f"f{k}": "number" for k in range(40)})
    assert f"feature   {', '.join(f'f{k}' for k in range(40))}: number" in str(wide)
    wider = ReadReport(features={f"f{k}": "number" for k in range(1400)})
    assert "f48, f49 and 1,350 more: number" in str(wider)


def test_the_tables_are_not_changed():
    table, edges = nodes(a=[1.0, None, 3.0], label=["p", "q", "p"]), pd.DataFrame(PATH, columns=["s", "t"])
    before = table.copy(), edges.copy()
    graph_from_tables(table, edges)
    pd.testing.assert_frame_equal(table, before[0])
    pd.testing.assert_frame_equal(edges, before[1])


def test_ids_that_numpy_would_cut_are_refused():
    edges = pd.DataFrame({"source": ["a", "a\x00"], "target": ["b", "b"]})
    with pytest.raises(ValueError, match="ends with a NUL character"):
        graph_from_tables(None, edges)


@st.composite
def small_tables(draw):
    """A graph as somebody's tables: ids of any kind, in any order."""
    kind = draw(
        st.sampled_from(
            [
                st.integers(-(2**62), 2**62),
                st.integers(0, 12),
                st.text(st.characters(exclude_characters="\x00", codec="utf-8"), min_size=1, max_size=4),
            ]
        )
    )
    ids = draw(st.lists(kind, min_size=1, max_size=8, unique=True).filter(lambda ids: all(str(i).strip() for i in ids)))
    pairs = draw(st.lists(st.tuples(st.integers(0, len(ids) - 1), st.integers(0, len(ids) - 1)), max_size=12))
    values = draw(st.lists(st.floats(-1e6, 1e6), min_size=len(ids), max_size=len(ids)))
    labels = draw(st.lists(st.integers(-1, 3), min_size=len(ids), max_size=len(ids)))
    return ids, pairs, values, labels


@given(small_tables())
def test_round_trip_against_a_plain_construction(tables):
    ids, pairs, values, labels = tables
    table = pd.DataFrame({"id": pd.Series(ids), "value": values, "label": labels})
    edges = pd.DataFrame({"source": [ids[i] for i, _ in pairs], "target": [ids[j] for _, j in pairs]})
    label = "label" if max(labels) >= 0 else False
    g = graph_from_tables(table, edges, directed=True, label=label, features={"value": "number"})
    expected = np.zeros((len(ids), len(ids)))
    for i, j in pairs:
        expected[i, j] = 1
    assert g.adjacency.toarray().tolist() == expected.tolist()
    assert (list(range(len(ids))) if g.node_names is None else g.node_names.tolist()) == ids
    assert g.features[:, 0].tolist() == values
    if label:
        names = np.arange(g.n_classes) if g.class_names is None else g.class_names
        back = np.where(g.labels < 0, -1, names[g.labels])
        same = back.tolist() == labels
        binary = set(labels) == {-1, 1}
        assert same or binary


# -------------------------------------------------------------------- graphs without features


def test_degrees_stand_in():
    arcs = Graph.from_edges([[0, 1], [0, 2], [1, 2]], directed=True)
    assert np.allclose(np.expm1(stand_in_features(arcs).features), [[2, 0], [1, 1], [0, 2]])
    weighted = Graph.from_edges([[0, 1], [1, 2]], [5.0, 7.0])
    assert np.allclose(np.expm1(stand_in_features(weighted).features), [[1], [2], [1]])


def random_graph(n, m, directed, seed=0):
    rng = np.random.default_rng(seed)
    return Graph.from_edges(rng.integers(0, n, (m, 2)), rng.uniform(0.5, 2, m), n=n, directed=directed)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_singular_vectors_stand_in(n):
    g = random_graph(n, 4 * n, directed=True)
    x = stand_in_features(g, "svd", dimension=2 * n).features
    assert np.allclose(x[:, :n] @ x[:, n:].T, g.adjacency.toarray())
    few = stand_in_features(g, "svd", dimension=6).features
    sigma = np.linalg.svd(g.adjacency.toarray())[1]
    assert np.allclose(few[:, :3].T @ few[:, :3], np.diag(sigma[:3]), atol=1e-8)
    assert np.allclose(few[:, 3:].T @ few[:, 3:], np.diag(sigma[:3]), atol=1e-8)
    undirected = stand_in_features(g.symmetrize(), "svd", dimension=3).features
    assert undirected.shape == (n, 3)
    assert (undirected[np.abs(undirected).argmax(axis=0), np.arange(3)] > 0).all()
    assert np.array_equal(undirected, stand_in_features(g.symmetrize(), "svd", dimension=3).features)


def test_singular_vectors_follow_the_nodes():
    g = random_graph(200, 800, directed=False)
    order = np.random.default_rng(1).permutation(200)
    a, b = stand_in_features(g, "svd", 4).features, stand_in_features(g.permute(order), "svd", 4).features
    assert np.allclose(a[order], b, atol=1e-6)


def test_singular_vectors_are_the_same_in_every_run_even_where_they_are_not_unique():
    star = [[0, k] for k in range(1, 200)]
    bipartite = [[i, j] for i in range(60) for j in range(60, 200)]
    cliques = [[10 * c + i, 10 * c + j] for c in range(20) for i in range(10) for j in range(i)]
    for edges in (star, bipartite, cliques):
        g = Graph.from_edges(edges)
        runs = [stand_in_features(g, "svd", dimension=12).features for _ in range(3)]
        assert np.array_equal(runs[0], runs[1])
        assert np.array_equal(runs[0], runs[2])
    assert np.linalg.matrix_rank(stand_in_features(Graph.from_edges(star), "svd", dimension=12).features) == 2


def test_a_graph_without_edges_has_stand_ins():
    empty = Graph(sp.csr_array((100, 100)))
    assert not stand_in_features(empty).features.any()
    assert not stand_in_features(empty, "svd", dimension=4).features.any()


def test_identity_stands_in():
    g = stand_in_features(random_graph(6, 9, directed=False), "identity")
    assert sp.issparse(g.features)
    assert np.array_equal(g.features.toarray(), np.eye(6))


def test_bad_stand_ins():
    g = random_graph(4, 4, directed=False)
    with pytest.raises(ValueError, match="how must be 'degree', 'svd' or 'identity'"):
        stand_in_features(g, "ones")
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        stand_in_features(g, "svd", dimension=0)
