"""Trees in pieces: the tree in memory, bit for bit, for any graph and any number of blocks."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import pegfan as pf
from pegfan.large import arcs as on_disk
from pegfan.large import order as large_order
from pegfan.large import tree as large_tree
from pegfan.large.given import cut
from pegfan.large.pieces import Work

seeds = st.integers(0, 2**32 - 1)


def random_graph(seed, n, directed=False, weighted=False, features="distinct", loops=False):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (int(n * rng.uniform(0.5, 4)), 2))
    if n > 4:  # a hub
        edges = np.concatenate([edges, np.column_stack([np.zeros(n // 2, int), rng.integers(1, n, n // 2)])])
    if not loops:
        edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.choice([0.5, 1.0, 3.25, 1 / 3], len(edges)) if weighted else None
    values = {
        "none": None,
        "distinct": rng.standard_normal((n, 5)),
        "few": rng.integers(0, 2, (n, 3)).astype(float),
    }[features]
    return pf.Graph.from_edges(edges, weights=weights, n=n, features=values, directed=directed)


def in_pieces(folder, graph, h=4, per_block=7, memory=3000, width=2, **options):
    with Work(folder, memory=memory, workers=2) as work:
        arcs, features = cut(work, graph, per_block, width)
        arcs_in = on_disk.transposed(work, arcs) if graph.directed else None
        order = large_order.canonical_order(work, arcs, arcs_in, features)
        ordered = on_disk.ordered(work, arcs, order)
        ordered_in = on_disk.transposed(work, ordered) if graph.directed else None
        tree = large_tree.build_tree(work, ordered, order, ordered_in, h=h, **options)
        return order.load("order"), order.load("classes"), order.result(), large_tree.load_tree(tree)


def whole(stage, n):
    """Arc blocks as one matrix."""
    blocks = list(on_disk.blocks(stage))
    rows, columns = (np.concatenate(part) for part in zip(*((b.row_numbers(), b.columns) for b in blocks), strict=True))
    from scipy.sparse import csr_array

    return csr_array((np.concatenate([b.values() for b in blocks]), (rows, columns)), shape=(n, n))


@pytest.mark.long
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    seeds,
    st.integers(2, 40),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["none", "distinct", "few"]),
    st.booleans(),
    st.integers(5, 40),
    st.integers(2, 5),
)
def test_the_tree_is_that_of_memory(tmp_path_factory, seed, n, directed, weighted, features, loops, per_block, h):
    graph = random_graph(seed, n, directed, weighted, features, loops)
    memory = int(np.random.default_rng(seed).choice([3000, 20000, 10**9]))
    folder = tmp_path_factory.mktemp("work")
    order, classes, told, tree = in_pieces(folder, graph, h, per_block, memory)
    expected = pf.trees.canonical_order(graph)
    if told["arbitrary"] == expected.arbitrary:  # else a component did not fit in so little memory
        np.testing.assert_array_equal(order, expected.order)
        np.testing.assert_array_equal(classes, expected.classes)
        assert told == {"tied": expected.tied, "symmetric": expected.symmetric, "arbitrary": expected.arbitrary}
        known = pf.build_tree(graph, "matching", h=h)
        assert tree == known
        assert tree.info == known.info
    else:
        assert told["arbitrary"] > expected.arbitrary
        assert memory < 10**9


def test_a_tree_cut_short_is_that_of_memory(tmp_path):
    graph = random_graph(3, 80, weighted=True)
    tree = in_pieces(tmp_path / "work", graph, per_block=30, memory=3000, max_levels=4)[-1]
    known = pf.build_tree(graph, "matching", h=4, max_levels=4)
    assert tree == known
    assert tree.info == known.info
    assert tree.info["capped"]


@pytest.mark.long
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seeds, st.integers(1, 40), st.booleans(), st.booleans(), st.integers(1, 30))
def test_arcs_are_moved_and_turned(tmp_path_factory, seed, n, directed, weighted, per_block):
    graph = random_graph(seed, n, directed, weighted, loops=True)
    with Work(tmp_path_factory.mktemp("work"), memory=per_block * 400, workers=2) as work:
        arcs, features = cut(work, graph, per_block)
        assert (whole(arcs, n) != graph.adjacency).nnz == 0
        assert (whole(on_disk.transposed(work, arcs), n) != graph.adjacency.T).nnz == 0
        arcs_in = on_disk.transposed(work, arcs) if directed else None
        order = large_order.canonical_order(work, arcs, arcs_in, features)
        moved = on_disk.ordered(work, arcs, order)
        assert (whole(moved, n) != graph.permute(order.load("order")).adjacency).nnz == 0
        assert on_disk.describe(moved) | {"largest": 0} == on_disk.describe(arcs) | {"largest": 0}


def test_a_finished_tree_is_not_made_again(tmp_path):
    """Its levels were freed on the way, and nothing asks for them."""
    graph = random_graph(5, 60)
    for _ in range(2):
        in_pieces(tmp_path / "work", graph, per_block=30, memory=3000)
        ended = (tmp_path / "work" / "log.jsonl").read_text().count("ended")
    assert ended == len(list((tmp_path / "work").glob("*/*/done.json")))
