"""What a graph on disk is like is what the same graph in memory is like."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegfan as pf
from pegfan import measures
from pegfan.large import facts as module
from pegfan.large.facts import facts
from pegfan.large.given import cut
from pegfan.large.pieces import Work

_known = {}


def give_nodes(task):
    """The classes or numbers of the nodes, as a reader would write them."""
    for name, values in _known[task.params["key"]].items():
        task.save(name, values)


give_nodes.__module__ = module.__name__  # pieces are functions of pegfan.large


def found_in_pieces(folder, graph, arcs_per_block):
    key = str(id(graph))
    _known[key] = {
        name: values for name, values in (("labels", graph.labels), ("targets", graph.targets)) if values is not None
    }
    module.give_nodes = give_nodes
    try:
        with Work(folder) as work:
            arcs, _ = cut(work, graph, arcs_per_block)
            nodes = work.stage(give_nodes, {"key": key}) if _known[key] else None
            columns = 0 if graph.features is None else graph.features.shape[1]
            return facts(work, arcs, graph.directed, nodes, list(map(str, graph.classes)), columns)
    finally:
        del module.give_nodes, _known[key]


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.floats(0, 4),
    st.booleans(),
    st.sampled_from(["labels", "targets", ""]),
)
def test_facts_are_those_of_the_graph_in_memory(tmp_path_factory, seed, n, degree, directed, kind):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (int(n * degree), 2))
    weights = rng.choice([1.0, 1.0, 2.5], len(edges)) if seed % 2 else None
    more = {}
    if kind == "labels":
        more["labels"] = np.where(rng.random(n) < 0.2, -1, rng.integers(0, 3, n))
    if kind == "targets":
        more["targets"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(5, 100, n))
    graph = pf.Graph.from_edges(edges, n=n, weights=weights, directed=directed, **more)
    found = found_in_pieces(tmp_path_factory.mktemp("w"), graph, int(rng.integers(1, 30)))
    wanted = measures.describe(graph).to_dict()
    assert list(found["graph"]) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, float):
            assert found["graph"][name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        else:
            assert found["graph"][name] == value, name
    degrees = asdict(measures.degrees(graph))
    assert found["degrees"]["histogram"] == degrees["histogram"]
    assert found["degrees"]["out" if directed else "degree"] == degrees["outgoing"]
    assert not directed or found["degrees"]["in"] == degrees["incoming"]
    assert found["components"]["largest"] == measures.component_sizes(graph)[:5].tolist()
    assert found["duplicates"]["neighbours"] == measures.duplicates(graph).neighbours
    if kind == "labels":
        held = measures.class_sizes(graph) > 0
        assert [entry["nodes"] for entry in found["classes"]] == measures.class_sizes(graph)[held].tolist()
        np.testing.assert_allclose(found["ccns"], measures.ccns(graph)[held][:, held], atol=1e-12)
    else:
        assert found["classes"] == []
