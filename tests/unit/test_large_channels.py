"""Channels of graphs in pieces: the rows of the channels in memory, bit for bit, however the graph is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegfan as pf
from pegfan.large import channels as large
from pegfan.large.files import Arcs, Rows, RowWriter
from pegfan.large.pieces import Work
from pegfan.recipe import Recipe
from support.pieces import arc_blocks, graph_pieces


def random_graph(seed, n=60, degree=3, columns=5, directed=False, weighted=False, copies=False):
    rng = np.random.default_rng(seed)
    edges = rng.integers(n, size=(degree * n, 2))
    weights = rng.integers(1, 4, len(edges)) / 2 if weighted else None
    features = rng.standard_normal((n, columns)).astype(np.float32) ** 3
    if copies:  # leaves of hubs that look alike
        hubs = rng.integers(n, size=n)
        edges = np.concatenate([edges, np.column_stack([np.arange(n, 2 * n), hubs])])
        weights = None if weights is None else np.concatenate([weights, np.ones(n)])
        features = np.concatenate([features, np.zeros((n, columns), np.float32)])
    return pf.Graph.from_edges(edges, weights=weights, n=len(features), directed=directed, features=features)


def compare(tmp_path, graph, recipe, blocks, slabs, memory, **options):
    tree = recipe.build_tree(graph)
    channels = recipe.channels(graph, tree, split=None)
    with Work(tmp_path, memory=memory, workers=2) as work:
        found = large.make_channels(work, graph_pieces(work, graph, tree, blocks, slabs), recipe, **options)
        assert found.names == channels.names
        assert found.widths == channels.widths
        places, nodes = found.places_of(), np.arange(graph.n)
        for some in (nodes, np.random.default_rng(0).permutation(nodes)[: graph.n // 2], nodes[:0]):
            for mine, theirs in zip(found.rows(places[some]), channels.rows(some), strict=True):
                assert mine.dtype == np.float32
                dense = theirs if isinstance(theirs, np.ndarray) else theirs.toarray()
                np.testing.assert_array_equal(mine.view(np.int32), np.ascontiguousarray(dense).view(np.int32))
        return found


RECIPES = [
    {"method": "none", "regime": "heterophily", "hops": 3},
    {"method": "none", "regime": "all", "hops": 2, "direction": "symmetric"},
    {"method": "none", "regime": "homophily", "hops": 2, "direction": "both"},
    {"method": "none", "hops": 0, "scaling": "columns"},
    *(
        {"method": "matching", "h": 3, "kind": kind, "regime": "heterophily", "hops": 2}
        for kind in ("a", "b", "c", "as")
    ),
    {"method": "matching", "h": 4, "kind": "b", "regime": "all", "hops": 2, "direction": "in"},
    {"method": "matching", "h": 4, "kind": "c", "regime": "homophily", "direction": "both", "scaling": "columns"},
]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    recipe=st.sampled_from(RECIPES),
    scaling=st.sampled_from(["none", "l1", "columns"]),
    directed=st.booleans(),
    weighted=st.booleans(),
    copies=st.booleans(),
    blocks=st.integers(1, 5),
    slabs=st.integers(1, 5),
    memory=st.sampled_from([1_500, 3_000, 8_000, 10**9]),
)
def test_rows_are_those_of_the_channels_in_memory(
    tmp_path_factory, seed, recipe, scaling, directed, weighted, copies, blocks, slabs, memory
):
    graph = random_graph(seed, directed=directed, weighted=weighted, copies=copies)
    wanted = Recipe.of({"scaling": scaling, **recipe})
    compare(tmp_path_factory.mktemp("work"), graph, wanted, blocks, slabs, memory * graph.n // 60)


@pytest.mark.parametrize("kind", ["b", "c"])
def test_large_graphs_without_ties_are_summed_in_canonical_order(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("pegfan._limits.LARGE_NODES", 10)
    recipe = Recipe("matching", 4, kind=kind, regime="heterophily", hops=2)
    found = compare(tmp_path, random_graph(1), recipe, 3, 2, 10_000)
    assert found.order is found.pieces.order


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"method": "none", "regime": "homophily", "labels": True}, "labels cannot be made"),
        ({"method": "none", "regime": "homophily", "scaling": "principal"}, "principal"),
        ({"method": "none", "regime": "homophily", "direction": "words"}, "words"),
        ({"method": "none", "regime": "auto"}, "name the regime"),
    ],
)
def test_what_cannot_be_made_in_pieces_is_refused(tmp_path, recipe, words):
    with Work(tmp_path) as work, pytest.raises(ValueError, match=words):
        large.make_channels(work, graph_pieces(work, random_graph(0)), Recipe.of(recipe))


def test_too_little_memory_is_one_clear_error(tmp_path):
    with Work(tmp_path, memory=100) as work, pytest.raises(ValueError, match="60 nodes need at least"):
        large.make_channels(work, graph_pieces(work, random_graph(0)), Recipe(method="none", regime="homophily"))


def test_rows_have_one_precision(tmp_path):
    with Work(tmp_path) as work:
        found = large.make_channels(work, graph_pieces(work, random_graph(0)), Recipe(method="none", hops=0))
        with pytest.raises(ValueError, match="float32"):
            found.rows(np.arange(3), np.float64)


def test_a_sample_is_channels_in_memory(tmp_path):
    recipe = Recipe("matching", 4, kind="c", regime="heterophily", hops=2)
    with Work(tmp_path) as work:
        found = large.make_channels(work, graph_pieces(work, random_graph(0)), recipe)
        places = np.array([5, 3, 40])
        sample = found.sample(places)
        assert sample.names == found.names
        for mine, theirs in zip(sample.materialize(), found.rows(places), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@given(st.data())
def test_rows_of_a_file_in_any_order(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("rows") / "a.npy"
    width = data.draw(st.sampled_from([1, 3, 5000]))
    array = np.arange(40 * width, dtype=np.float32).reshape(40, width)
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, 39)))), 40]
    runs = data.draw(st.permutations(list(pairwise(cuts))))
    with RowWriter(path, array.shape, array.dtype) as out:
        for start, stop in runs:
            out.write(start, array[start:stop])
    np.testing.assert_array_equal(np.load(path), array)
    places = np.array(data.draw(st.lists(st.integers(0, 39))), np.int64)
    np.testing.assert_array_equal(Rows(path).take(places), array[places])


def test_a_file_that_was_cut_short_is_told(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100))
    with (tmp_path / "a.npy").open("r+b") as file:
        file.truncate(500)
    with pytest.raises(ValueError, match="cut short"):
        Rows(tmp_path / "a.npy").read(0, 100)


@given(st.integers(0, 100), st.integers(1, 8), st.integers(1, 60))
def test_arcs_come_in_runs_of_rows(tmp_path_factory, seed, blocks, most):
    matrix = random_graph(seed, n=30).adjacency
    bounds = [0, *sorted(np.random.default_rng(seed).choice(np.arange(1, 30), blocks - 1, replace=False).tolist()), 30]
    with Work(tmp_path_factory.mktemp("arcs")) as work:
        arcs = Arcs(arc_blocks(work, "arcs", matrix, bounds))
        ends = [0]
        for start, stop in arcs.chunks(most):
            assert start == ends[-1]
            ends.append(stop)
            assert stop - start == 1 or matrix.indptr[stop] - matrix.indptr[start] <= most
        assert ends[-1] == 30
        for start, stop in [(0, 30), (3, 17), (29, 30), (4, 4)]:
            pointers, columns, weights = arcs.rows(start, stop)
            part = matrix[start:stop]
            np.testing.assert_array_equal(pointers, part.indptr)
            np.testing.assert_array_equal(columns, part.indices)
            np.testing.assert_array_equal(weights, part.data)
