"""Trees for a signal: clusters that follow it, the best of several trees, the best pieces of a tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pegfan as pf
from pegfan.signals import best_pieces, best_tree
from pegfan.trees.extend import extend_tree
from support.strategies import places, trees

METHODS = [name for name, builder in pf.trees.BUILDERS.items() if "signals" in builder.takes]


@pytest.fixture(scope="module")
def jumps():
    """Places, a signal of three values on them, and the same with noise."""
    graph, xy = places(150)
    clean = np.where(xy[:, 0] < 0.4, 0.0, np.where(xy[:, 1] < 0.6, 2.0, 1.0))
    return graph, clean, clean + 0.2 * np.random.default_rng(0).standard_normal(150)


def left(tree, f, few=12):
    """The share of a signal's energy that is in none of a tree's few largest coefficients."""
    energy = np.sort(pf.FrameletSystem(tree, "haar-basis", weights="size").decompose(f).array ** 2)
    return energy[:-few].sum() / energy.sum()


@pytest.mark.parametrize("method", METHODS)
def test_clusters_follow_signals(jumps, method):
    graph, clean, noisy = jumps
    plain, tree = pf.build_tree(graph, method, 2), pf.build_tree(graph, method, 2, signals=noisy, signal_weight=4)
    assert left(tree, clean) < 0.5 * left(plain, clean)
    assert (tree.info["signals"], tree.info["signal_weight"]) == (1, 4.0)
    assert "signals" not in plain.info
    # Units and offsets do not matter, and the tree is the same however nodes are numbered.
    assert pf.build_tree(graph, method, 2, signals=1024 * noisy - 1024, signal_weight=4) == tree
    perm = np.random.default_rng(1).permutation(graph.n)
    moved = pf.build_tree(graph.permute(perm), method, 2, signals=noisy[perm], signal_weight=4)
    assert moved == tree.permute(perm)


def test_signals_tell_symmetric_nodes_apart():
    star = pf.Graph.from_edges([[0, i] for i in range(1, 9)])
    values = np.array([0.0, 1, 9, 1, 9, 1, 9, 1, 9])
    tree = pf.build_tree(star, "ward", 4, signals=values, signal_weight=10)
    perm = np.random.default_rng(2).permutation(9)
    again = pf.build_tree(star.permute(perm), "ward", 4, signals=values[perm], signal_weight=10)
    clusters = [frozenset(values[tree.labels(2) == c]) for c in range(tree.n_clusters[1])]
    assert {frozenset({1.0}), frozenset({9.0})} <= set(clusters)
    assert values[tree.order].tolist() == values[perm][again.order].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_missing_values_are_no_opinion(jumps, method):
    graph, clean, _ = jumps
    nothing = np.full((graph.n, 2), np.nan)
    assert pf.build_tree(graph, method, 2, signals=nothing) == pf.build_tree(graph, method, 2)
    some = np.where(np.arange(graph.n) % 5, clean, np.nan)
    tree = pf.build_tree(graph, method, 2, signals=some, signal_weight=4)
    assert left(tree, clean) < left(pf.build_tree(graph, method, 2), clean)


def test_what_a_tree_followed_is_kept(jumps, tmp_path):
    graph, _, noisy = jumps
    tree = pf.build_tree(graph, "matching", signals=np.column_stack([noisy, noisy**2]))
    assert pf.Hierarchy.load(tree.save(tmp_path / "tree.npz")).info == tree.info
    assert extend_tree(tree, graph, np.arange(graph.n)).info["signals"] == 2


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        (np.zeros(3), "one row for each of the 150 nodes; got float64"),
        (np.zeros((150, 2, 2)), "one row for each"),
        (np.full(150, "a"), "must hold numbers"),
        (np.full(150, np.inf), "infinite values; make them NaN"),
    ],
)
def test_bad_signals(jumps, signals, message):
    with pytest.raises(ValueError, match=message):
        pf.build_tree(jumps[0], "matching", signals=signals)


# ------------------------------------------------------------ pieces


def cheapest(tree, y, price, index=(1,)):
    """The least cost of cutting a cluster, and the values of its nodes: a plain twin."""
    nodes = tree.members(index)
    seen = nodes[~np.isnan(y[nodes])]
    mean = y[seen].mean() if len(seen) else np.nan
    whole = float(np.sum((y[seen] - mean) ** 2)) + price
    parts = [cheapest(tree, y, price, child.index) for child in tree.children(index)]
    apart = sum(cost for cost, _ in parts)
    if not parts or whole <= apart:
        return whole, dict.fromkeys(nodes.tolist(), mean)
    return apart, {node: value for _, values in parts for node, value in values.items()}


@settings(max_examples=30)
@given(trees(limit=20), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 2.0, 8.0]), st.booleans())
def test_pieces_are_the_cheapest_cut(tree, seed, price, gaps):
    draw = np.random.default_rng(seed)
    y = np.repeat(draw.normal(0, 3, 3), 7)[: tree.n] + draw.standard_normal(tree.n)
    y[0 if gaps else tree.n :] = np.where(draw.random(tree.n) < 0.3, np.nan, y)[0 if gaps else tree.n :]
    pieces = best_pieces(tree, y, sigma=1.0, penalty=price)
    cost, values = cheapest(tree, y, price)
    assert np.isfinite(pieces.signal).all()
    assert np.nansum((y - pieces.signal) ** 2) + price * pieces.count == pytest.approx(cost)
    wanted = np.array([values[node] for node in range(tree.n)])
    known = ~np.isnan(wanted)
    np.testing.assert_allclose(pieces.signal[known], wanted[known], atol=1e-9)
    assert sorted(set(pieces.labels)) == list(range(pieces.count))
    for label in range(pieces.count):
        assert np.ptp(pieces.signal[pieces.labels == label]) < 1e-9


def test_pieces_without_noise_are_exact(jumps):
    _, clean, _ = jumps
    tree = pf.Hierarchy.from_labels([np.arange(150) // 2])
    both = np.column_stack([clean, -clean])
    np.testing.assert_allclose(best_pieces(tree, both, sigma=0).signal, both, atol=1e-12)


# ------------------------------------------------------------ the best tree


def test_the_best_tree_denoises_better_than_the_default_one(jumps):
    graph, clean, noisy = jumps
    tree, plain = best_tree(graph, noisy, trees=1), pf.build_tree(graph, "matching", 2)
    assert tree.info["signals"] == 1
    best, default = (np.mean((best_pieces(one, noisy).signal - clean) ** 2) for one in (tree, plain))
    assert best < 0.9 * default
    perm = np.random.default_rng(3).permutation(graph.n)
    assert best_tree(graph.permute(perm), noisy[perm], trees=1) == tree.permute(perm)


def test_a_best_tree_takes_gaps_and_several_columns(jumps):
    graph, clean, noisy = jumps
    table = np.column_stack([noisy, clean])
    table[::7, 0] = np.nan
    assert left(best_tree(graph, table, trees=1), clean) < 0.5 * left(pf.build_tree(graph, "matching", 2), clean)
    with pytest.raises(ValueError, match="infinite values"):
        best_tree(graph, np.full(graph.n, np.inf))
    with pytest.raises(ValueError, match="sigma"):
        best_tree(graph, noisy, sigma=-1)
