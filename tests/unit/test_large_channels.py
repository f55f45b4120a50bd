"""Channels of graphs in pieces: the rows of the channels in memory, bit for bit, however the graph is cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegfan as pf
from pegfan.large import channels as large
from pegfan.large.pieces import Work
from pegfan.recipe import Recipe
from support.pieces import graph_pieces


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
                theirs = theirs if isinstance(theirs, np.ndarray) else theirs.toarray()
                np.testing.assert_array_equal(mine.view(np.int32), np.ascontiguousarray(theirs).view(np.int32))
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
    for module in (large, pf.channels.presets):
        monkeypatch.setattr(module, "LARGE", 10)
    recipe = Recipe("matching", 4, kind=kind, regime="heterophily", hops=2)
    found = compare(tmp_path, random_graph(1), recipe, 3, 2, 10_000)
    assert found.order is found.pieces.order
