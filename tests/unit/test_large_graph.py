"""A graph in many files, from end to end: what memory would give, in pieces."""

import csv

import numpy as np
import pytest

import pegfan as pf


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of 400 nodes and 1,600 edges in three files each, ids as texts in no order."""
    place = tmp_path_factory.mktemp("tables")
    graph = pf.datasets.synthetic(0.1, n=400, n_edges=1600, n_features=6, splits=0, seed=1)
    names = [f"u{number}" for number in np.random.default_rng(0).permutation(10_000)[:400]]
    rows = [
        [names[i], ["red", "green", "blue", "grey"][graph.labels[i] % 4] if i % 9 else "", *graph.features[i].round(4)]
        for i in range(400)
    ]
    pairs = [[names[i], names[j]] for i, j in graph.edges()[0]]
    for what, head, lines in (
        ("nodes", ["id", "kind", *(f"x{k}" for k in range(6))], rows),
        ("edges", ["source", "target"], pairs),
    ):
        for part in range(3):
            with (place / f"{what}-{part}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(head)
                writer.writerows(lines[part * len(lines) // 3 : (part + 1) * len(lines) // 3])
    for what in ("nodes", "edges"):
        whole = [
            line for part in range(3) for line in (place / f"{what}-{part}.csv").read_text().splitlines()[part > 0 :]
        ]
        (place / f"all-{what}.csv").write_text("\n".join(whole) + "\n")
    return place


def opened(folder, work, **options):
    return pf.large.open(str(folder / "nodes-*.csv"), str(folder / "edges-*.csv"), label="kind", work=work, **options)


@pytest.fixture(scope="module")
def small(folder):
    return pf.read_graph(folder / "all-nodes.csv", folder / "all-edges.csv", label="kind")


def test_tree_and_channels_are_those_of_memory(folder, small, tmp_path):
    recipe = pf.Recipe(method="matching", h=4, kind="c", regime="heterophily", hops=2, scaling="columns")
    with opened(folder, tmp_path / "work", memory="200kB") as graph:
        assert repr(graph) == f"LargeGraph(400 nodes, {small.adjacency.nnz:,} arcs)"
        assert graph.arcs.count > 1
        np.testing.assert_array_equal(graph.labels, small.labels)
        tree = recipe.build_tree(small)
        assert graph.tree(h=4) == tree
        channels = graph.channels(recipe)
        nodes = np.array([3, 399, 17, 0])
        known = recipe.channels(small, tree).rows(nodes)
        for mine, theirs in zip(channels.rows(channels.places_of(nodes)), known, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_training_ends_with_predictions_that_predict_repeats(folder, tmp_path):
    with opened(folder, tmp_path / "work", memory="200MB") as graph:
        result = graph.train(budget=5, seed=0)
        out = result.write(tmp_path / "out", graph.ids)
        counts = graph.predict(out / "model", tmp_path / "again.csv")
        tables = []
        for path in (out / "predictions.csv", tmp_path / "again.csv"):
            with path.open(newline="") as file:
                tables.append(list(csv.DictReader(file)))
    assert [row["predicted"] for row in tables[0]] == [row["predicted"] for row in tables[1]]
    assert {name: value for name, value in tables[0][7].items() if name.startswith("p_")} == {
        name: value for name, value in tables[1][7].items() if name.startswith("p_")
    }
    assert len(tables[0]) == 400
    assert counts
    assert {row["split"] for row in tables[0]} == {"train", "val", "test", "none"}
    assert 0 <= result.test_metric <= 1


def test_what_cannot_be_done_in_pieces_is_said(folder, tmp_path):
    refused = pytest.raises(ValueError, match="beyond memory, trees are built by method='matching'")
    with opened(folder, tmp_path / "work", memory="100MB") as graph, refused:
        graph.tree(method="ward")
    edges = str(folder / "edges-*.csv")
    with pf.large.open(None, edges, memory="100MB", work=tmp_path / "alone") as graph:
        assert graph.tree(h=4) == pf.build_tree(pf.read_graph(folder / "all-edges.csv"), "matching", h=4)
        with pytest.raises(ValueError, match="nothing says what to predict"):
            graph.train()
    with pytest.raises(ValueError, match="memory is an amount of bytes"):
        opened(folder, tmp_path / "third", memory="much")


@pytest.mark.parametrize("directed", [False, True])
def test_nodes_without_features_are_described_by_their_degrees(folder, tmp_path, directed):
    """As in memory: the same numbers, and a model on them."""
    lines = (folder / "all-nodes.csv").read_text().splitlines()
    (tmp_path / "nodes.csv").write_text("\n".join(",".join(line.split(",")[:2]) for line in lines) + "\n")
    files = [tmp_path / "nodes.csv", folder / "all-edges.csv"]
    small = pf.read_graph(*files, label="kind", directed=directed)
    with pf.large.open(*files, label="kind", directed=directed, memory="200kB", work=tmp_path / "work") as graph:
        np.testing.assert_array_equal(
            graph.features.load("values"), pf.channels.structural_features(small).astype("f4")
        )
        assert len(graph.about["columns"]) == 4
    with pf.large.open(*files, label="kind", directed=directed, memory="200MB", work=tmp_path / "other") as graph:
        assert graph.info()["graph"]["features"] == 0
        assert graph.train(budget=3).test_metric >= 0
