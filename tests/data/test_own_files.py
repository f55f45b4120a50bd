"""Files as their users have them: a raw social graph, npz archives, and a benchmark set written as tables."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from pegfan.datasets import graph_from_tables, stand_in_features
from pegfan.datasets.readers import read_graph
from pegfan.datasets.splits import random_splits

# ids, edges and classes of the files under data/graphs, counted by hand with NumPy
ARRAYS = {"musae_github": (37700, 289003, 4005, 0), "deezer_europe": (28281, 92752, 31241, 5)}


@pytest.fixture(scope="module")
def twitch(data):
    folder = data / "twitch" / "ES"
    return [folder / f"musae_ES_{part}" for part in ("edges.csv", "target.csv", "features.json")]


def test_twitch_the_label_and_the_bag_are_joined_on_the_column_that_the_edges_speak_of(twitch):
    edges, target, features = twitch
    g, report = read_graph(edges, target, features, label="mature", report=True)
    assert (g.n, g.n_edges, g.directed) == (4648, 59382, False)
    assert report.columns["id"].startswith("'new_id' (by content: 100%")
    assert set(report.features) == {"days", "views", "partner", "musae_ES_features"}
    assert set(report.dropped) == {"id"}
    table = pd.read_csv(target)
    assert g.class_names.tolist() == [False, True]
    assert np.array_equal(g.labels, table["mature"])
    assert np.array_equal(g.node_names, table["new_id"])

    tokens = json.loads(features.read_text())
    x, names = g.features.toarray(), np.array(g.feature_names)
    assert x.shape[1] == len(names) == 4 + len({token for bag in tokens.values() for token in bag})
    assert np.allclose(x[:, names == "views (log)"].ravel(), np.log1p(table["views"]))
    assert np.array_equal(x[:, names == "partner=True"].ravel(), table["partner"])
    place = {int(name[len("musae_ES_features:") :]): k for k, name in enumerate(names) if ":" in name}
    for row in (0, 17, 4647):
        expected = np.zeros(len(names))
        np.add.at(expected, [place[token] for token in tokens[str(table["new_id"][row])]], 1)
        assert np.array_equal(x[row, 4:], expected[4:])

    listed = pd.read_csv(edges).to_numpy()
    row_of = np.argsort(table["new_id"].to_numpy())
    assert (g.adjacency[row_of[listed[:, 0]], row_of[listed[:, 1]]] == 1).all()


def test_twitch_in_any_order_and_in_part(twitch):
    whole = read_graph(*twitch, label="mature")
    again = read_graph(*twitch[::-1], label="mature")
    assert (whole.adjacency != again.adjacency).nnz == 0
    assert (whole.features != again.features).nnz == 0
    assert read_graph(*twitch[:2], label="mature").features.shape == (4648, 4)
    alone = read_graph(twitch[0])
    assert (alone.n, alone.features, alone.node_names) == (4648, None, None)
    assert stand_in_features(alone, "svd", dimension=8).features.shape == (4648, 8)
    with pytest.raises(ValueError, match=r"musae_ES_target\.csv has no label column 'matur'; did you mean 'mature'"):
        read_graph(*twitch, label="matur")
    with pytest.raises(ValueError, match=r"musae_ES_edges\.csv, line 2: node 0 is not in .*id='new_id'\?"):
        read_graph(*twitch, label="mature", id="id")


@pytest.mark.parametrize("name", ARRAYS)
def test_plain_arrays(data, name):
    nodes, edges, columns, splits = ARRAYS[name]
    g = read_graph(data / "graphs" / f"{name}.npz")
    assert (g.n, g.n_edges, g.features.shape[1], g.n_classes, len(g.splits)) == (nodes, edges, columns, 2, splits)
    with np.load(data / "graphs" / f"{name}.npz") as arrays:
        assert np.array_equal(g.labels, arrays["y"])
        assert g.features.nnz == np.count_nonzero(arrays["x_data"])
        assert (g.adjacency[arrays["edge_index"][0], arrays["edge_index"][1]] == 1).all()
        for k, split in enumerate(g.splits):
            assert np.array_equal(split.train, np.flatnonzero(arrays["train_mask"][k]))


def test_the_layout_of_heterophilous_graphs(data):
    path = data / "heterophilous-graphs" / "chameleon_filtered_directed.npz"
    g = read_graph(path, directed=True)
    assert (g.n, g.n_edges, g.features.shape, g.n_classes, len(g.splits)) == (890, 13584, (890, 2325), 5, 10)
    assert g.features.dtype == np.float32
    g = read_graph(data / "heterophilous-graphs" / "minesweeper.npz", metric="roc_auc")
    assert (g.n, g.n_edges, g.n_classes, g.metric) == (10000, 39402, 2, "roc_auc")


def raw(data, name):
    folder = data / "geom-gcn" / "new_data" / name
    return folder / "out1_node_feature_label.txt", folder / "out1_graph_edges.txt"


@pytest.mark.parametrize(
    ("name", "nodes", "arcs", "columns"),
    [("texas", 183, 325, 1703), ("cornell", 183, 298, 1703), ("film", 7600, 30019, 932)],
)
def test_the_raw_text_of_a_benchmark_is_read_as_it_is(data, name, nodes, arcs, columns):
    g = read_graph(*raw(data, name), directed=True)
    assert (g.n, g.n_edges, g.features.shape[1], g.n_classes) == (nodes, arcs, columns, 5)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["texas", "cornell"])
def test_a_benchmark_written_as_tables_comes_back(data, tmp_path, name, form):
    table = pd.read_csv(raw(data, name)[0], sep="\t")
    words = np.array([row.split(",") for row in table["feature"]], dtype=np.int8)
    nodes = pd.DataFrame(words, columns=[f"word{k}" for k in range(words.shape[1])])
    nodes.insert(0, "page", "www/" + table["node_id"].astype(str))
    nodes["kind"] = table["label"].map(dict(enumerate(["course", "faculty", "student", "project", "staff"])))
    split = random_splits(table["label"].to_numpy(), k=1)[0]
    nodes["split"] = pd.Series(np.select([nodes.index.isin(part) for part in split], split._fields, default=""))
    edges = "www/" + pd.read_csv(raw(data, name)[1], sep="\t").set_axis(["from", "to"], axis=1).astype(str)
    paths = tmp_path / f"nodes.{form}", tmp_path / f"edges.{form}"
    for frame, path in zip((nodes, edges), paths, strict=True):
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path, index=False)

    g, report = read_graph(*paths, label="kind", directed=True, report=True)
    plain = read_graph(*raw(data, name), directed=True)
    assert (g.adjacency != plain.adjacency).nnz == 0
    constant = words.min(axis=0) == words.max(axis=0)  # words that no page has are left out, and said to be
    assert np.array_equal(g.features, words[:, ~constant])
    assert sum("constant" in why for why in report.dropped.values()) == constant.sum()
    assert np.array_equal(plain.features, words)
    assert g.class_names[g.labels].tolist() == nodes["kind"].tolist()
    assert g.node_names.tolist() == nodes["page"].tolist()
    assert all(np.array_equal(a, b) for a, b in zip(g.splits[0], split, strict=True))
    assert not sp.issparse(g.features)
    twin = graph_from_tables(nodes, edges, label="kind", directed=True)
    assert (g.adjacency != twin.adjacency).nnz == 0
    assert np.array_equal(g.labels, twin.labels)
