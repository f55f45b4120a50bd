"""The public benchmarks are exactly what the paper's authors used: sizes, splits and traps."""

import socket
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

from pegfan import datasets, measures


class Facts(NamedTuple):
    nodes: int
    nonzeros: int
    features: int
    entries: int  # nonzeros of the features
    classes: int
    loops: int
    directed: bool
    split: tuple[int, int, int]  # sizes of the first
    labels: tuple[int, ...]  # nodes of each class


FACTS = {
    "cora": Facts(2708, 10556, 1433, 49216, 7, 0, False, (1192, 796, 497), (351, 217, 418, 818, 426, 298, 180)),
    "citeseer": Facts(3327, 9228, 3703, 105165, 6, 124, False, (1596, 1065, 666), (264, 590, 668, 701, 596, 508)),
    "pubmed": Facts(19717, 88651, 500, 988031, 3, 3, False, (9463, 6310, 3944), (4103, 7739, 7875)),
    "texas": Facts(183, 325, 1703, 15266, 5, 16, True, (87, 59, 37), (33, 1, 18, 101, 30)),
    "wisconsin": Facts(251, 515, 1703, 24057, 5, 16, True, (120, 80, 51), (10, 70, 118, 32, 21)),
    "cornell": Facts(183, 298, 1703, 15266, 5, 3, True, (87, 59, 37), (33, 1, 18, 101, 30)),
    "actor": Facts(7600, 30019, 932, 40977, 5, 93, True, (3648, 2432, 1520), (853, 1337, 1630, 1815, 1965)),
    "chameleon": Facts(2277, 36101, 2325, 29157, 5, 50, True, (1092, 729, 456), (456, 460, 453, 521, 387)),
    "squirrel": Facts(5201, 217073, 2089, 93477, 5, 140, True, (2496, 1664, 1041), (1042, 1040, 1039, 1040, 1040)),
    "minesweeper": Facts(10000, 2 * 39402, 7, 10000, 2, 0, False, (5000, 2500, 2500), (8000, 2000)),
    "tolokers": Facts(11758, 2 * 519000, 10, 61101, 2, 0, False, (5879, 2939, 2940), (9192, 2566)),
    "chameleon-filtered": Facts(890, 2 * 8854, 2325, 9903, 5, 0, False, (409, 287, 194), (242, 134, 209, 164, 141)),
    "squirrel-filtered": Facts(2223, 2 * 46998, 2089, 32481, 5, 0, False, (1053, 718, 452), (756, 516, 397, 321, 233)),
}
for name, arcs, loops in (("chameleon", 13584, 50), ("squirrel", 65718, 140)):
    FACTS[f"{name}-filtered-directed"] = FACTS[f"{name}-filtered"]._replace(nonzeros=arcs, loops=loops, directed=True)
ABSENT = ["roman-empire", "amazon-ratings", "questions"]
PAPER = list(FACTS)[:9]


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    def refuse(*_):
        pytest.fail("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("PEGFAN_CACHE", str(tmp_path / "cache"))


def test_these_are_all():
    assert sorted(datasets.names()) == sorted([*FACTS, *ABSENT])


@pytest.mark.parametrize("name", FACTS)
def test_sizes(data, name):
    graph, facts = datasets.load(name, data), FACTS[name]
    entries = graph.features.nnz if hasattr(graph.features, "nnz") else np.count_nonzero(graph.features)
    found = Facts(
        nodes=graph.n,
        nonzeros=graph.adjacency.nnz,
        features=graph.features.shape[1],
        entries=entries,
        classes=graph.n_classes,
        loops=np.count_nonzero(graph.adjacency.diagonal()),
        directed=graph.directed,
        split=tuple(map(len, graph.splits[0])),
        labels=tuple(np.bincount(graph.labels).tolist()),
    )
    assert found == facts
    assert set(graph.adjacency.data.tolist()) == {1.0}  # duplicates are merged, not added
    symmetric = (graph.adjacency != graph.adjacency.T).nnz == 0
    assert symmetric == (not facts.directed)
    assert graph.metric == ("roc_auc" if name in ("minesweeper", "tolokers") else "accuracy")


@pytest.mark.parametrize("name", FACTS)
def test_ten_disjoint_splits_of_nearly_equal_sizes(data, name):
    graph = datasets.load(name, data)
    shares = (0.50, 0.25, 0.25) if graph.metric == "roc_auc" else (0.48, 0.32, 0.20)
    covered = [len(np.unique(np.concatenate(split))) for split in graph.splits]
    assert len(graph.splits) == 10
    for split, total in zip(graph.splits, covered, strict=True):
        assert sum(map(len, split)) == total
        np.testing.assert_allclose([len(part) / total for part in split], shares, atol=0.03)
    expected = {"cora": [2485] * 10, "citeseer": [3327] * 4 + [2120] * 2 + [3327] * 4}.get(name, [graph.n] * 10)
    assert covered == expected


@pytest.mark.parametrize(("name", "of"), [("cora", range(10)), ("citeseer", (4, 5))])
def test_splits_that_cover_the_largest_component_only(data, name, of):
    whole, connected = datasets.load(name, data), datasets.load(name, data, largest_component=True)
    for k in of:
        nodes = np.sort(np.concatenate(whole.splits[k]))
        assert connected.n == len(nodes)
        assert (whole.subgraph(nodes).adjacency != connected.adjacency).nnz == 0
        assert np.array_equal(np.sort(np.concatenate(connected.splits[k])), np.arange(connected.n))


def test_citeseer_has_nodes_without_features_that_count_as_class_0(data):
    graph = datasets.load("citeseer", data)
    bare = np.flatnonzero(np.diff(graph.features.indptr) == 0)
    assert len(bare) == 15
    assert set(graph.labels[bare]) == {0}
    assert graph.adjacency[bare].nnz == 16  # they are cited all the same


def test_texas_and_cornell_share_features_and_labels(data):
    texas, cornell = datasets.load("texas", data), datasets.load("cornell", data)
    assert (texas.features != cornell.features).nnz == 0
    assert np.array_equal(texas.labels, cornell.labels)


@pytest.mark.parametrize(("name", "leaking", "bare"), [("chameleon", 1840, 233), ("squirrel", 4148, 165)])
def test_most_nodes_share_their_out_neighbours(data, name, leaking, bare):
    graph = datasets.load(name, data)
    rows = np.split(graph.adjacency.indices, graph.adjacency.indptr[1:-1])
    times = Counter(row.tobytes() for row in rows)
    assert sum(count for count in times.values() if count > 1) == leaking
    assert np.count_nonzero(np.diff(graph.features.indptr) == 0) == bare


@pytest.mark.parametrize(("name", "edges"), [("texas", 295), ("actor", 26752), ("squirrel", 198493)])
def test_undirected_on_request(data, name, edges):
    graph = datasets.load(name, data, directed=False)
    assert not graph.directed
    assert graph.n_edges == edges
    directed = datasets.load(name, data).adjacency
    assert (graph.adjacency != directed.maximum(directed.T)).nnz == 0


def test_directed_on_request(data):
    assert datasets.load("cora", data, directed=True).n_edges == 10556
    assert datasets.load("chameleon-filtered", data, directed=True).n_edges == 13584


@pytest.mark.parametrize("name", ["citeseer", "pubmed", "chameleon", "tolokers"])
def test_normalized_rows_add_up_to_one(data, name):
    sums = abs(datasets.load(name, data, unit_rows=True).features).sum(axis=1)
    bare = abs(datasets.load(name, data).features).sum(axis=1) == 0
    np.testing.assert_allclose(sums, np.where(bare, 0, 1), atol=1e-5)


@pytest.mark.parametrize("name", ["cora", "cornell", "squirrel-filtered-directed", "minesweeper"])
def test_a_permutation_and_its_inverse_change_nothing(data, name):
    graph = datasets.load(name, data)
    perm = np.random.default_rng(0).permutation(graph.n)
    back = graph.permute(perm).permute(np.argsort(perm))
    assert (back.adjacency != graph.adjacency).nnz == 0
    assert np.array_equal(back.labels, graph.labels)
    assert abs(back.features - graph.features).sum() == 0
    for one, other in zip(back.splits, graph.splits, strict=True):
        assert all(map(np.array_equal, one, other))


def test_table(data):
    frame = datasets.table(root=data)
    assert frame.index.tolist() == [name for name in datasets.names() if name not in ABSENT]
    assert list(frame.attrs["missing"]) == ABSENT
    for name, facts in FACTS.items():
        row = frame.loc[name]
        assert (row.nodes, row.nonzeros, row.features, row.classes) == (
            facts.nodes,
            facts.nonzeros,
            facts.features,
            facts.classes,
        )
    assert frame.regime[PAPER].tolist() == ["homophily"] * 3 + ["heterophily"] * 6
    assert (frame.edge_homophily[PAPER] > 0.5).tolist() == [True] * 3 + [False] * 6
    assert (frame.ccns_within > frame.ccns_between).all()
    texas = datasets.load("texas", data)
    for measure in ("edge_homophily", "node_homophily", "adjusted_homophily", "label_informativeness"):
        assert frame.loc["texas", measure] == getattr(measures, measure)(texas)
    assert frame.loc["texas", "density"] == 325 / 183**2
    similarity = measures.ccns(texas)
    assert frame.loc["texas", "ccns_within"] == pytest.approx(np.trace(similarity) / 5)
    assert frame.loc["texas", "ccns_between"] == pytest.approx((similarity.sum() - np.trace(similarity)) / 20)


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_not_here_says_where_it_would_be(data, name):
    with pytest.raises(FileNotFoundError, match=rf"{name.replace('-', '_')}\.npz is not in {data}"):
        datasets.load(name, data, offline=True)
