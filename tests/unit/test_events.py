"""Columns of edge tables: against plain loops, by hand, and what is said about them."""

import json
import math
import pickle
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from typer.testing import CliRunner

import pegfan as pf
from pegfan.auto.recipes import Space, first_recipes, weightings
from pegfan.channels import names
from pegfan.cli import app
from pegfan.datasets import read_graph
from pegfan.datasets._schema import Schema
from pegfan.datasets.tables import graph_from_tables
from pegfan.recipe import Recipe

runner = CliRunner()

NODES = {"account": ["a", "b", "c", "d"], "age": [30, 40, 50, 60]}
PAYMENTS = {
    "payer": ["a", "a", "b", "c"],
    "payee": ["b", "b", "c", "c"],
    "amount": [10.0, 30.0, -5.0, None],
    "date": ["2024-01-01", "2024-01-03", "2024-01-11", "2024-01-11"],
    "channel": ["web", "app", "web", "web"],
}


def read(nodes, edges, **options):
    return graph_from_tables(nodes, edges, report=True, **options)


def column(graph, name):
    values = graph.features[:, [graph.feature_names.index(name)]]
    return (values.toarray() if issparse(values) else np.asarray(values)).ravel().tolist()


# ------------------------------------------------------------------ against loops


def twin_columns(rows, nodes, sides, newest, oldest, categories):
    """The columns of the nodes by plain loops; no logarithms."""
    found = {}
    for side in sides:
        for node in nodes:
            mine = [row for row in rows if node in {"out": row[:1], "in": row[1:2], "both": row[:2]}[side]]
            partners = {row[1] if row[0] == node else row[0] for row in mine}
            if side != "both":
                partners = {row[side == "out"] for row in mine}
            amounts = [row[2] for row in mine if row[2] is not None]
            days = [row[3] for row in mine]
            gaps = np.diff(sorted(days)).tolist()
            told = [row[4] for row in mine if row[4] is not None]
            values = {
                "count": len(mine),
                "partners": len(partners),
                "amount sum": math.fsum(amounts),
                "amount mean": statistics.fmean(amounts) if amounts else 0,
                "amount largest": max(amounts, default=0),
                "amount smallest": min(amounts, default=0),
                "amount spread": statistics.pstdev(amounts) if amounts else 0,
                "day recency": newest - max(days, default=oldest),
                "day span": max(days) - min(days) if days else 0,
                "day per active day": len(days) / len({math.floor(day) for day in days}) if days else 0,
                "day shortest gap": min(gaps, default=newest - oldest),
                "day usual gap": usual(gaps, newest - oldest),
                **{f"kind={name} share": told.count(name) / len(told) if told else 0 for name in categories},
            }
            for name, value in values.items():
                found.setdefault(f"{side} {name}", []).append(value)
    if len(sides) == 2:
        found["day turnaround"] = []
        for node in nodes:
            come = [row[3] for row in rows if row[1] == node != row[0]]
            gone = [row[3] for row in rows if row[0] == node != row[1]]
            waits = [day - max(d for d in come if d <= day) for day in gone if any(d <= day for d in come)]
            found["day turnaround"].append(usual(waits, newest - oldest))
    return found


def usual(waits, none):
    return math.expm1(statistics.fmean(math.log1p(wait) for wait in waits)) if waits else none


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from("abcd"),
        st.none() | st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
        st.floats(0, 30).map(lambda x: round(x, 2)),
        st.none() | st.sampled_from(["x", "y", "z"]),
    ),
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.booleans())
def test_grouped_columns_equal_plain_loops(rows, directed):
    names = ["payer", "payee", "amount", "day", "kind"]
    wanted = [name for k, name in enumerate(names) if k > 1 and any(row[k] is not None for row in rows)]
    frame = pd.DataFrame(rows, columns=names).astype({"amount": "float64", "kind": "object"})[names[:2] + wanted]
    graph, report = read({"id": list("abcd")}, frame, directed=directed, edge_columns=wanted)
    days = [row[3] for row in rows]
    told = [row[4] for row in rows if row[4] is not None]
    sides = ["out", "in"] if directed else ["both"]
    twin = twin_columns(rows, "abcd", sides, max(days), min(days), sorted(set(told), key=lambda k: (-told.count(k), k)))
    expected = {name: values for name, values in twin.items() if "amount" in wanted or "amount" not in name}
    assert set(graph.feature_names) == set(expected)
    logs = " ".join(report.features.values())
    for name, values in expected.items():
        logged = f"{name} (log)" in logs
        by_hand = [math.copysign(math.log1p(abs(v)), v) if logged else v for v in values]
        np.testing.assert_allclose(column(graph, name), by_hand, rtol=1e-9, atol=1e-6, err_msg=name)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.booleans())
def test_other_weights_equal_plain_loops(rows, directed):
    frame = pd.DataFrame(rows, columns=["payer", "payee", "amount", "day", "kind"]).astype({"amount": "float64"})
    wanted = ["day"] + ["amount"] * any(row[2] is not None for row in rows)
    graph, report = read({"id": list("abcd")}, frame, directed=directed, edge_columns=wanted)
    facts = report.schema.edges["edges"]["day"].facts
    for i, one in enumerate("abcd"):
        for j, other in enumerate("abcd"):
            ends = {(one, other)} if directed else {(one, other), (other, one)}
            mine = [row for row in rows if row[:2] in ends]
            sizes = [abs(row[2]) for row in mine if row[2] is not None]
            ages = [facts["reference"] - row[3] for row in mine]
            by_hand = {
                "count": len(mine),
                "recent": sum(0.5 ** (age / (facts["half_life"] or 1)) for age in ages),
                "amount sum": sum(sizes),
                "amount mean": statistics.fmean(sizes) if sizes else 0,
                "amount log-sum": math.log1p(sum(sizes)),
            }
            for name, matrix in graph.edge_matrices.items():
                assert matrix[i, j] == pytest.approx(by_hand[name], rel=1e-9, abs=1e-9), name
    assert len(graph.edge_matrices) == (5 if "amount" in wanted else 2)


# ------------------------------------------------------------------------ by hand


@pytest.mark.parametrize("directed", [True, False])
def test_the_order_of_rows_does_not_matter_to_the_last_bit(directed):
    """Sums of decimals differ by how they are ordered; a shuffled table was another graph, and predicted otherwise."""
    rng = np.random.default_rng(8)
    names, days = list("abcde"), pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**6, 300), "s")
    edges = pd.DataFrame({"source": rng.choice(names, 300), "target": rng.choice(names, 300), "when": days})
    edges["amount"] = rng.lognormal(3, 1, 300).round(2)
    moved = edges.iloc[rng.permutation(300)]
    if not directed:
        turned = rng.random(300) < 0.5
        moved = moved.assign(
            source=np.where(turned, moved["target"], moved["source"]),
            target=np.where(turned, moved["source"], moved["target"]),
        )
    one, other = (graph_from_tables({"id": names}, table, directed=directed) for table in (edges, moved))
    assert one.digest == other.digest


def test_what_payments_say_of_accounts_by_hand():
    graph, report = read(NODES, PAYMENTS)
    assert graph.directed
    assert graph.feature_names[0] == "age"
    assert column(graph, "out count") == [2, 1, 1, 0]
    assert column(graph, "in partners") == [0, 1, 2, 0]
    assert column(graph, "out amount sum") == [40, -5, 0, 0]
    assert column(graph, "out amount spread") == [10, 0, 0, 0]
    assert column(graph, "in amount largest") == [0, 30, -5, 0]
    assert column(graph, "out date recency") == [8, 0, 0, 10]  # d has no payment: as long ago as the oldest
    assert column(graph, "out date span") == [2, 0, 0, 0]
    assert column(graph, "in date per active day") == [0, 1, 2, 0]
    assert column(graph, "out date weekend share") == [0, 0, 0, 0]  # Monday, Wednesday, and twice a Thursday
    assert np.expm1(column(graph, "out date shortest gap")).round(9).tolist() == [48, 240, 240, 240]
    assert np.expm1(column(graph, "date turnaround")).round(9).tolist() == [240, 192, 240, 240]  # b: from the 3rd on
    assert "out date hour sin" not in graph.feature_names
    assert column(graph, "out channel=app share") == [0.5, 0, 0, 0]
    assert list(graph.edge_matrices) == ["count", "amount sum", "amount mean", "amount log-sum", "recent"]
    assert graph.edge_matrices["amount sum"].toarray()[:3, :3].tolist() == [[0, 40, 0], [0, 0, 5], [0, 0, 0]]
    assert graph.adjacency.max() == 1
    assert report.columns["edges"] == "'payer' to 'payee' (by name), directed as these names say"
    told = report.features["edges 'amount'"]
    assert told.startswith("number, 1 missing; node columns out amount sum, ")
    assert told.endswith("hop weights amount sum, amount mean, amount log-sum, without their signs")
    assert report.dropped == {}


def test_hours_and_weekends_of_events_by_hand():
    dates = ["2024-01-06 06:00", "2024-01-07 06:00", "2024-01-08 18:00", "2024-01-08 00:00"]
    graph, _ = read(NODES, {**PAYMENTS, "date": dates})
    assert column(graph, "out date weekend share") == [1, 0, 0, 0]
    assert np.allclose(column(graph, "out date hour sin"), [1, -1, 0, 0])
    assert np.allclose(column(graph, "out date hour cos"), [0, 0, 1, 0])
    assert np.allclose(np.expm1(column(graph, "date turnaround")), [60, 36, 60, 60])


def test_edge_columns_join_sparse_features_and_stand_where_there_are_none():
    nodes = {**NODES, "city": ["Rome", "Oslo", "Rome", "Oslo"]}
    graph = graph_from_tables(nodes, PAYMENTS)
    assert issparse(graph.features)
    assert column(graph, "in count") == [0, 2, 2, 0]
    alone = graph_from_tables(None, PAYMENTS)
    assert alone.features.shape == (3, 31)


@pytest.mark.parametrize(
    ("names", "more", "directed"),
    [
        (("payer", "payee"), {}, True),
        (("Sender", "Receiver"), {}, True),
        (("citing", "cited"), {}, True),
        (("buyer_id", "seller_id"), {}, True),
        (("from", "to"), {}, False),  # as friends are listed
        (("from", "to"), {"weight": [1, 2, 3]}, False),
        (("from", "to"), {"amount": [1, 2, 3], "note": ["x", "y", "x"]}, True),
        (("source", "target"), {"amount": [1, 2, 3]}, False),
        (("source", "target"), {"amount": [1, 2, 3], "note": ["x", "y", "x"]}, True),
        (("u", "v"), {"amount": [1, 2, 3], "note": ["x", "y", "x"]}, False),
    ],
)
def test_direction_is_guessed_from_the_names_and_can_be_told(names, more, directed):
    edges = {names[0]: ["a", "b", "c"], names[1]: ["b", "c", "a"], **more}
    graph, report = read(None, edges)
    assert graph.directed == directed
    assert (", directed" in report.columns["edges"]) == directed
    assert graph_from_tables(None, edges, directed=not directed).directed != directed


def test_events_that_are_all_there_both_ways_are_undirected():
    edges = {"source": ["a", "b"], "target": ["b", "a"], "amount": [1, 2], "note": ["x", "y"]}
    assert not graph_from_tables(None, edges).directed


def test_plain_lists_of_edges_are_read_as_before():
    for edges in (
        {"source": [0, 1, 0], "target": [1, 2, 1]},
        {"source": [0, 1, 0], "target": [1, 2, 1], "weight": [1.0, 2.0, 3.0]},
        {"source": [0, 1, 0], "target": [1, 2, 1], "length": [1.0, 2.0, 3.0]},
    ):
        graph = graph_from_tables(None, edges)
        assert not graph.directed
        assert graph.features is None
        assert not graph.edge_matrices


def test_options_of_edge_columns_and_weights():
    graph, report = read(NODES, PAYMENTS, edge_columns="none")
    assert graph.feature_names == ("age",)
    assert not graph.edge_matrices
    assert report.dropped["edges 'amount'"] == "not asked for"
    graph, report = read(NODES, PAYMENTS, edge_columns="date, channel")
    assert not any("amount" in name for name in graph.feature_names)
    weighted = {**PAYMENTS, "amount": [10, 30, 5, 1]}
    for rule, first in {"max": 30, "min": 10, "sum": 40, "mean": 20, "count": 2}.items():
        assert graph_from_tables(NODES, weighted, weight="amount", duplicates=rule).adjacency[0, 1] == first
    assert graph_from_tables(NODES, weighted, weight="none").adjacency.max() == 1


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {},
            {"weight": "amount"},
            r"edges, row 2: weight -5.0 in column 'amount' must be a finite number, not negative",
        ),
        ({"amount": ["1", "2", "3", "a lot"]}, {}, r"edges, row 3: 'a lot' in column 'amount' is not a finite number"),
        ({"amount": [1, 2, 3, float("inf")]}, {}, r"edges, row 3: inf in column 'amount' is not a finite number"),
        ({}, {"edge_columns": "amonut"}, r"edges has no edge column 'amonut'; did you mean 'amount'"),
        ({}, {"duplicates": "error"}, "row 1: the edge was already given in edges, row 0"),
    ],
)
def test_bad_columns_are_named_with_their_row(change, options, message):
    with pytest.raises(ValueError, match=message):
        graph_from_tables(NODES, {**PAYMENTS, **change}, **options)


def test_a_date_that_cannot_be_read_names_the_line_of_the_file(tmp_path):
    rows = [f"a{k % 5},a{(k + 1) % 5},0{k % 9 + 1}.02.2024" for k in range(30)]
    rows[17] = "a1,a2,31.02.2024"
    (tmp_path / "pay.csv").write_text("\n".join(["payer,payee,when", *rows]) + "\n")
    with pytest.raises(ValueError, match=r"pay\.csv, line 19: '31\.02\.2024' in column 'when' is not a date"):
        read_graph(tmp_path / "pay.csv")


@pytest.mark.parametrize(
    ("dates", "newest"),
    [
        (["04.07.2015", "31.12.2015"], "2015-12-31"),
        (["07/31/2015", "01/02/2015"], "2015-07-31"),
        (["31/07/2015 10:30", "01/02/2015 00:00"], "2015-07-31"),
        (["2015-07-31T10:30:00Z", "2015-01-02T00:00:00Z"], "2015-07-31"),
        ([1438300800, 1420156800], "2015-07-31"),
        ([20150731, 20150102], "2015-07-31"),
        ([pd.Timestamp("2015-07-31"), pd.NaT], "2015-07-31"),
    ],
)
def test_usual_dates_are_understood(dates, newest):
    _, report = read(None, {"payer": ["a", "b"], "payee": ["b", "a"], "date": dates})
    assert f"newest {newest}" in report.features["edges 'date'"]


def test_columns_that_say_nothing_are_left_out_and_said_so():
    rows = 40
    edges = {
        "payer": [f"a{k % 7}" for k in range(rows)],
        "payee": [f"a{k % 5}" for k in range(rows)],
        "tx_id": range(1000, 1000 + 2 * rows, 2),
        "line": range(5, 5 + rows),
        "reference": [f"r{k}" for k in range(rows)],
        "currency": ["EUR"] * rows,
        "fee": [0.0] * rows,
        "empty": [None] * rows,
        "seen": ["2020-01-05"] * rows,
    }
    graph, report = read(None, edges)
    assert set(report.dropped) == {f"edges {name!r}" for name in list(edges)[2:]}
    assert report.dropped["edges 'currency'"] == "every row has 'EUR'"
    assert graph.feature_names == ("out count", "out partners", "in count", "in partners")


def test_rare_categories_count_in_the_whole():
    kinds = [f"k{k}" for k in range(12) for _ in range(12 - k)]
    edges = {"payer": ["a"] * len(kinds), "payee": ["b"] * len(kinds), "kind": kinds}
    graph = graph_from_tables(None, edges)
    shares = [name for name in graph.feature_names if name.startswith("out kind=")]
    assert len(shares) == 8
    assert column(graph, "out kind=k0 share")[0] == 12 / len(kinds)


# ----------------------------------------------------------- kinds of nodes and edges


DEVICES = {"account": ["a", "b", "c", "c"], "device": ["x", "x", "y", "a"]}


def test_the_other_end_of_a_bipartite_table_is_added_apart():
    graph, report = read(NODES, DEVICES)
    assert graph.node_names.tolist() == ["a", "b", "c", "d", "device a", "device x", "device y"]
    assert not graph.directed
    assert graph.adjacency[2, 4] == 1  # c has the device that is called as account a is
    assert graph.adjacency[0].sum() == 1
    assert any("3 ids in column 'device' of edges are a kind of their own" in note for note in report.notes)
    assert report.columns["id"].startswith("'account'")
    clean = {**DEVICES, "device": ["x", "x", "y", "z"]}
    assert graph_from_tables(NODES, clean).node_names.tolist() == [*"abcd", "x", "y", "z"]
    assert graph_from_tables(NODES, clean, unknown="drop").n == 4
    with pytest.raises(ValueError, match="node 'x' is not in nodes"):
        graph_from_tables(NODES, clean, bipartite=False)


def test_numbers_of_devices_are_no_numbers_of_accounts():
    nodes = {"account": range(1, 7), "age": range(6)}
    edges = {"account": [1, 2, 3, 4], "device_id": [1, 1, 2, 2]}
    graph = graph_from_tables(nodes, edges)
    assert graph.n == 8
    assert graph.node_names.tolist()[-2:] == ["device_id 1", "device_id 2"]
    assert graph_from_tables(nodes, edges, bipartite=False).n == 6


def test_strangers_in_ends_of_one_kind_stay_an_error():
    with pytest.raises(ValueError, match="is not in nodes"):
        graph_from_tables(NODES, {"payer": ["a", "b"], "payee": ["y", "z"]})


def test_several_tables_are_kinds_of_edges(tmp_path):
    pd.DataFrame(NODES).to_csv(tmp_path / "accounts.csv", index=False)
    pd.DataFrame(PAYMENTS).to_csv(tmp_path / "payments.csv", index=False)
    pd.DataFrame({**DEVICES, "device": ["x", "x", "y", "z"]}).to_csv(tmp_path / "shared.csv", index=False)
    graph, report = read_graph(*sorted(tmp_path.iterdir()), report=True)
    assert graph.edge_kinds == ("payments", "shared")
    assert graph.directed
    assert graph.n == 7
    assert report.columns["edges"] == (
        "payments.csv: 'payer' to 'payee' (by name), directed as these names say; "
        "shared.csv: 'account' to 'device' (the first two columns), undirected"
    )
    union = graph.edge_matrices["payments"].maximum(graph.edge_matrices["shared"])
    assert (union != graph.adjacency).nnz == 0
    assert (graph.edge_matrices["shared"] != graph.edge_matrices["shared"].T).nnz == 0
    assert column(graph, "shared both partners") == [1, 1, 2, 0, 2, 1, 1]
    assert column(graph, "payments out count")[:3] == [2, 1, 1]
    named = read_graph(tmp_path / "accounts.csv", edges=[tmp_path / "payments.csv", tmp_path / "shared.csv"])
    assert named.feature_names == graph.feature_names
    same = graph_from_tables(NODES, {"payments": PAYMENTS, "shared": {**DEVICES, "device": ["x", "x", "y", "z"]}})
    np.testing.assert_array_equal(same.features, graph.features)


def test_ends_are_found_by_their_content():
    edges = {
        "when": ["2024-01-01"] * 3 + ["2024-01-02"],
        "one": list("abca"),
        "other": list("bcab"),
        "sum": [1, 2, 3, 9],
    }
    graph, report = read(NODES, edges)
    assert report.columns["edges"] == "'one' to 'other' (by content), undirected"
    assert column(graph, "both sum sum")[:2] == [13, 12]


# ------------------------------------------------------------------------- schema


def test_a_schema_reads_other_tables_alike():
    _, report = read(NODES, PAYMENTS)
    schema = Schema.from_dict(json.loads(json.dumps(report.schema.to_dict())))
    first = graph_from_tables(NODES, PAYMENTS)
    again = graph_from_tables(NODES, PAYMENTS, schema=schema)
    np.testing.assert_array_equal(first.features, again.features)
    assert first.feature_names == again.feature_names
    later = {"payee": ["a"], "payer": ["d"], "amount": [1e9], "date": ["2024-01-21"], "channel": ["fax"], "new": [3]}
    graph, told = read(NODES, later, schema=schema)
    assert set(graph.feature_names) == set(first.feature_names)
    assert column(graph, "out amount sum")[3] == 1e9  # no logarithm there, so none here
    assert column(graph, "out date recency")[3] == -10  # from the same day on
    assert told.dropped == {"edges 'new'": "not in the schema"}
    short, told = read(NODES, {"payer": ["d"], "payee": ["a"], "date": ["2024-01-21"]}, schema=schema)
    assert set(short.feature_names) == set(first.feature_names)
    assert any("lacks columns that the schema has: 'amount', 'channel'" in note for note in told.notes)


def test_a_schema_knows_logarithms_and_kinds():
    amounts = {**PAYMENTS, "amount": [1.0, 2.0, 3.0, 5000.0]}
    tables = {"payments": amounts, "shared": DEVICES}
    _, report = read(NODES, tables)
    assert "payments out amount sum (log)" in report.features["payments 'amount'"]
    few = {"payments": {name: values[:2] for name, values in amounts.items()}, "shared": DEVICES}
    graph = graph_from_tables(NODES, few, schema=report.schema)
    assert column(graph, "payments out amount sum")[0] == pytest.approx(math.log1p(3))
    assert graph.edge_kinds == ("payments", "shared")


# ------------------------------------------------------------------ graphs and recipes


@pytest.fixture(scope="module")
def traded():
    """A graph of two kinds of edges with amounts, labels and a split."""
    rng = np.random.default_rng(0)
    n, m = 40, 200
    names = [f"a{k}" for k in range(n)]
    pay = {
        "payer": rng.choice(names, m),
        "payee": rng.choice(names, m),
        "amount": rng.lognormal(3, 1, m),
        "day": rng.integers(0, 100, m),
    }
    shared = {"account": names, "device": [f"d{k % 13}" for k in range(n)]}
    nodes = {"account": names, "age": rng.normal(size=n), "fraud": rng.integers(0, 2, n)}
    graph = graph_from_tables(nodes, {"payments": pay, "shared": shared}, label="fraud")
    known = np.flatnonzero(graph.labels >= 0)
    return graph.replace(splits=[(known[::2], known[1::4], known[3::4])])


def test_edge_matrices_stay_with_the_nodes(traded):
    order = np.random.default_rng(1).permutation(traded.n)
    moved = traded.permute(order)
    for name, matrix in traded.edge_matrices.items():
        assert (moved.edge_matrices[name] != matrix[order][:, order]).nnz == 0
        both = traded.symmetrize().edge_matrices[name]
        assert (both != matrix.maximum(matrix.T)).nnz == 0
    assert traded.subgraph(np.arange(5)).edge_matrices["payments"].shape == (5, 5)
    assert traded.replace(metric="roc_auc").edge_kinds == ("payments", "shared")
    again = pickle.loads(pickle.dumps(traded))
    assert list(again.edge_matrices) == list(traded.edge_matrices)
    assert (again.weighted("payments amount sum").adjacency != traded.edge_matrices["payments amount sum"]).nnz == 0
    with pytest.raises(TypeError):
        traded.edge_matrices["new"] = traded.adjacency
    with pytest.raises(ValueError, match="no edge matrix 'nothing'; it has 'payments'"):
        traded.weighted("nothing")


@pytest.mark.parametrize(
    ("matrices", "kinds", "message"),
    [
        ({"w": np.ones((2, 2))}, (), r"edge_matrices\['w'\] has 2 rows, but the graph has 3 nodes"),
        ({"w": -np.eye(3)}, (), r"edge_matrices\['w'\]\[0, 0\] = -1.0 is negative"),
        ({"w": np.triu(np.ones((3, 3)))}, (), r"directed=False needs a symmetric edge_matrices\['w'\]"),
        ({"w": np.eye(3)}, ("v",), "edge_kinds names 'v', which is not among the edge_matrices: w"),
    ],
)
def test_edge_matrices_are_checked(matrices, kinds, message):
    with pytest.raises(ValueError, match=message):
        pf.Graph(np.ones((3, 3)), edge_matrices=matrices, edge_kinds=kinds)


def test_fingerprints_tell_weights_and_are_the_same_on_every_machine():
    plain = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3))
    assert plain.digest == "6cbbe8d2743923967843687f562f3d22"
    other = plain.replace(edge_matrices={"w": 2 * plain.adjacency})
    assert other.digest not in (
        plain.digest,
        plain.replace(edge_matrices={"w": plain.adjacency}).digest,
    )


def test_edges_are_no_part_of_plain_recipes():
    assert "weight" not in Recipe().to_dict()
    assert "kinds" not in Recipe().to_dict()
    assert Recipe(method="none", hops=0, weight="count") == Recipe(method="none", hops=0)
    assert "by amount sum" in Recipe(method="none", weight="amount sum", kinds=True).name
    assert Recipe(weight="count").key != Recipe().key


def test_hops_use_the_weights_and_kinds_of_a_recipe(traded):
    recipe = Recipe(
        method="none", regime="heterophily", hops=1, scaling="none", weight="payments amount sum", kinds=True
    )
    channels = recipe.channels(traded, None)
    assert channels.names == (*("X", "S X", "S[payments] X", "S[payments]^2 X", "S[shared] X", "S[shared]^2 X"),)
    for channel, matrix in ((channels[1], "payments amount sum"), (channels[4], "shared")):
        step = pf.channels.hop_matrix(traded.weighted(matrix), "S")
        np.testing.assert_allclose(
            channel.materialize(np.float64, "dense"), step @ np.asarray(traded.features), rtol=1e-9, atol=1e-9
        )
    assert names.describe(channels[5]) == "two hops along 'shared' alone"
    with pytest.raises(ValueError, match="one kind of edges"):
        recipe.changed(weight=None).channels(traded.replace(edge_kinds=()), None)


def test_renumbered_nodes_have_the_renumbered_channels(traded):
    recipe = Recipe(method="matching", h=4, regime="heterophily", scaling="none", weight="payments recent", kinds=True)
    order = np.random.default_rng(2).permutation(traded.n)
    moved = traded.permute(order)
    one, other = (
        recipe.channels(graph, recipe.build_tree(graph)).materialize(format="dense") for graph in (traded, moved)
    )
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first[order], second)


def test_the_search_tries_weights_and_kinds(traded):
    listed = first_recipes(traded, traded.subgraph(traded.splits[0].train))
    assert {"payments amount log-sum", None} <= {recipe.weight for recipe in listed[:8]}
    assert any(recipe.kinds for recipe in listed[:8])
    assert weightings(traded)[0] == "payments amount log-sum"
    plain, rng = traded.replace(edge_matrices={}, edge_kinds=()), np.random.default_rng(0)
    for head in ("network", "boosting"):
        space = Space(traded, {})
        drawn = [space.draw(rng, head) for _ in range(80)]
        assert {recipe.weight for recipe in drawn} == {None, *weightings(traded)[:4]}
        assert {recipe.kinds for recipe in drawn} == {False, True}
        varied = [space.vary(drawn[0], rng) for _ in range(300)]
        assert {recipe.weight for recipe in varied} == {None, *weightings(traded)[:4]}
        drawn = [Space(plain, {}).draw(rng, head) for _ in range(20)]
        assert all(recipe.weight is None and not recipe.kinds for recipe in drawn)
    assert all(recipe.weight is None and not recipe.kinds for recipe in first_recipes(plain, plain))


# ------------------------------------------------------------------- command line


@pytest.fixture
def files(tmp_path):
    nodes, edges = tmp_path / "accounts.csv", tmp_path / "payments.csv"
    pd.DataFrame(NODES).to_csv(nodes, index=False)
    pd.DataFrame({**PAYMENTS, "amount": [10, 30, 5, 1]}).to_csv(edges, index=False)
    return nodes, edges


def info(*words):
    result = runner.invoke(app, ["info", *map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_info_lists_every_edge_column(files):
    told = info(*files)
    assert {"payments.csv rows", *(f"payments.csv {name!r}" for name in ("amount", "date", "channel"))} <= set(
        told["read"]["features"]
    )
    assert told["graph"]["features"] == 1 + 31
    assert info(*files, "--edge-columns", "none")["graph"]["features"] == 1
    assert info(*files, "--edge-columns", "amount")["graph"]["features"] == 1 + 14
    assert info(*files, "--undirected")["graph"]["features"] == 1 + 15
    assert (
        info(*files, "--weight", "amount", "--duplicates", "sum")["read"]["columns"]["weight"] == "'amount' (as given)"
    )


def test_the_command_line_says_what_is_wrong(files):
    result = runner.invoke(app, ["info", *map(str, files), "--weight", "ammount"])
    assert result.exit_code == 1
    assert "payments.csv has no weight column 'ammount'; did you mean 'amount'?" in " ".join(result.output.split())
    assert "Traceback" not in result.output
    nodes, edges = files
    edges.write_text(edges.read_text() + "zed,a,1,2024-01-01,web\n")
    result = runner.invoke(app, ["info", str(nodes), str(edges)])
    told = " ".join(result.output.split())
    assert "payments.csv, line 6: node 'zed' is not in accounts.csv" in told
    assert "--unknown add" in told
    assert info(nodes, edges, "--unknown", "add")["graph"]["nodes"] == 5


@pytest.mark.long
def test_a_model_of_weights_and_kinds_is_trained_saved_and_used(traded, tmp_path):
    model = pf.AutoClassifier(budget=5, recipes=[Recipe(method="none", weight="payments recent", kinds=True)])
    model.fit(traded)
    model.save(tmp_path / "model")
    again = pf.AutoClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict_proba(traded), again.predict_proba(traded))
    with pytest.raises(ValueError, match="no edge matrix 'payments recent'"):
        again.predict_proba(traded.replace(edge_matrices={}, edge_kinds=()))
