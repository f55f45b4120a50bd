"""The tree: its makers, its numbers, its permutations, its files."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from pegfan import Hierarchy
from support.strategies import random_tree, trees

FIGURE_1 = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
seeds = st.integers(0, 2**32 - 1)


def partition(tree, level):
    """The clusters of a level as a set of sets of nodes."""
    labels = tree.labels(level)
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


# ------------------------------------------------------------------ by hand


def test_figure_1_by_hand():
    tree = Hierarchy.from_nested(FIGURE_1)
    assert (tree.n, tree.K, tree.h) == (8, 4, 2)
    assert tree.n_clusters == (1, 2, 4, 8)
    assert tree.branching == (2, 2, 2)
    assert tree.cluster((1, 1)).nodes.tolist() == [0, 1, 2, 3]
    assert tree.cluster((1, 2, 2)).nodes.tolist() == [6, 7]
    assert tree.members((1, 1, 1, 2)).tolist() == [1]
    assert [child.index for child in tree.children((1, 2))] == [(1, 2, 1), (1, 2, 2)]
    assert tree.children((1, 1, 1, 1)) == ()
    assert tree.sizes(2).tolist() == [4, 4]
    assert tree.labels(3).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert tree.parent(2).tolist() == [0, 0, 1, 1]
    assert tree.first_child(2).tolist() == [0, 2, 4]
    assert tree.first_leaf(2).tolist() == [0, 4, 8]
    assert tree.n_children(4).tolist() == [0] * 8
    assert repr(tree) == "Hierarchy(n=8, K=4, clusters=1-2-4-8, h=2)"
    assert tree.cluster((1, 2)).size == 4


def test_ragged_lists_get_single_child_clusters():
    tree = Hierarchy.from_nested([[4, [0, 2]], 1, 3])
    assert tree.K == 4
    assert tree.cluster((1, 2)).nodes.tolist() == [1]
    assert tree.cluster((1, 2, 1, 1)).nodes.tolist() == [1]
    assert tree.cluster((1, 1, 2)).nodes.tolist() == [0, 2]
    assert tree.n_children(2).tolist() == [2, 1, 1]


def test_single_node_trees():
    alone = Hierarchy([])
    assert (alone.n, alone.K, alone.h, alone.n_clusters) == (1, 1, 0, (1,))
    assert alone.cluster((1,)).nodes.tolist() == [0]
    chain = Hierarchy([[0], [0]])
    assert (chain.n, chain.K, chain.h) == (1, 3, 1)
    assert chain.cluster((1, 1, 1)).size == 1


def test_labels_either_way_with_levels_added():
    fine, coarse = [5, 5, 7, 7, 9, 9], ["b", "b", "a", "a", "a", "a"]
    one = Hierarchy.from_labels([fine, coarse])
    assert one == Hierarchy.from_labels([coarse, fine])
    assert one.n_clusters == (1, 2, 3, 6)
    assert partition(one, 2) == {frozenset({0, 1}), frozenset({2, 3, 4, 5})}
    full = Hierarchy.from_labels([range(6), fine, coarse, [0] * 6])
    assert full == one
    # Siblings stand in the order of their labels: "a" before "b".
    assert one.cluster((1, 1)).nodes.tolist() == [2, 3, 4, 5]


def test_unsorted_parents_keep_the_order_of_siblings():
    tree = Hierarchy([[1, 0, 1, 0], [0, 0]], order=[3, 2, 1, 0])
    assert tree.parents[0].tolist() == [0, 0, 1, 1]
    assert tree.order.tolist() == [2, 0, 3, 1]
    assert tree.cluster((1, 1)).nodes.tolist() == [2, 0]


def test_linkage_cut_at_sizes():
    positions = np.array([[0.0], [1.0], [2.5], [10.0], [11.0], [30.0]])
    tree = Hierarchy.from_linkage(linkage(positions, "average"), sizes=[3, 2])
    assert tree.K == 4
    assert partition(tree, 3) == {frozenset({0, 1}), frozenset({2}), frozenset({3, 4}), frozenset({5})}
    assert partition(tree, 2) == {frozenset({0, 1, 2}), frozenset({3, 4}), frozenset({5})}
    assert Hierarchy.from_linkage(np.empty((0, 4)), sizes=[2]).n == 1


@given(seeds, st.integers(2, 40))
def test_linkage_clusters_are_the_largest_that_fit(seed, n):
    Z = linkage(np.random.default_rng(seed).standard_normal((n, 2)), "ward")
    members = {i: {i} for i in range(n)}
    for i, (a, b, *_) in enumerate(Z):
        members[n + i] = members[int(a)] | members[int(b)]
    tree = Hierarchy.from_linkage(Z, sizes=[2, 5])
    sizes = [size for size in (2, 5) if size < n]
    for level, size in zip(range(tree.K - 1, 1, -1), sizes, strict=True):
        fitting = [s for s in members.values() if len(s) <= size]
        largest = {frozenset(s) for s in fitting if not any(s < t for t in fitting)}
        assert partition(tree, level) == largest


# --------------------------------------------------------------- properties


@given(trees())
def test_every_level_is_a_partition_that_refines_the_one_above(tree):
    assert sorted(tree.order) == list(range(tree.n))
    assert partition(tree, 1) == {frozenset(range(tree.n))}
    assert all(len(cluster) == 1 for cluster in partition(tree, tree.K))
    for j in range(1, tree.K):
        fine, coarse = partition(tree, j + 1), partition(tree, j)
        assert all(any(small <= large for large in coarse) for small in fine)
        assert tree.n_children(j).sum() == tree.n_clusters[j]
        assert (np.diff(tree.parent(j)) >= 0).all()
    assert all(tree.sizes(j).sum() == tree.n for j in range(1, tree.K + 1))


@given(trees())
def test_index_vectors_lead_to_their_clusters(tree):
    for j in range(1, tree.K + 1):
        for slot in range(tree.n_clusters[j - 1]):
            cluster = tree.cluster_at(j, slot)
            assert len(cluster.index) == cluster.level == j
            again = tree.cluster(cluster.index)
            assert (again.slot, again.nodes.tolist()) == (slot, cluster.nodes.tolist())
            children = tree.children(cluster.index)
            assert len(children) == cluster.n_children
            if children:
                assert np.concatenate([child.nodes for child in children]).tolist() == cluster.nodes.tolist()


@given(trees())
def test_trees_come_back_from_their_labels_parents_and_lists(tree):
    assert Hierarchy(tree.parents, tree.order) == tree
    labels = [tree.labels(j) for j in range(1, tree.K + 1)]
    if len(set(tree.n_clusters)) == tree.K:  # equal neighbours read either way
        assert Hierarchy.from_labels(labels) == tree
        assert Hierarchy.from_labels(labels[::-1]) == tree
    if tree.n > 1:
        assert Hierarchy.from_nested(nested(tree, (1,))) == tree


def nested(tree, index):
    cluster = tree.cluster(index)
    if cluster.level == tree.K:
        return int(cluster.nodes[0])
    return [nested(tree, child.index) for child in tree.children(index)]


@given(trees(), seeds)
def test_permuting_nodes(tree, seed):
    perm = np.random.default_rng(seed).permutation(tree.n)
    moved = tree.permute(perm)
    assert all(np.array_equal(a, b) for a, b in zip(moved.parents, tree.parents, strict=True))
    for j in range(1, tree.K + 1):
        assert moved.labels(j).tolist() == tree.labels(j)[perm].tolist()
    assert moved.permute(np.argsort(perm)) == tree
    assert tree.permute(tree.order).order.tolist() == list(range(tree.n))


@given(trees(), seeds)
def test_permuting_children_keeps_the_clusters(tree, seed):
    moved = tree.permute_children(np.random.default_rng(seed))
    assert moved.equivalent(tree)
    assert tree.equivalent(moved)
    assert tree.permute_children({}) == tree


def test_permuting_named_children():
    tree = Hierarchy.from_nested([[0, 1, 2], [3, 4]])
    moved = tree.permute_children({(1,): [1, 0], (1, 1): [2, 0, 1]})
    assert moved.order.tolist() == [3, 4, 2, 0, 1]
    assert moved.n_children(2).tolist() == [2, 3]
    assert moved != tree
    assert moved.equivalent(tree)


def test_other_clusters_are_not_equivalent():
    tree = Hierarchy.from_nested(FIGURE_1)
    assert not tree.equivalent(Hierarchy.from_nested([[[0, 2], [1, 3]], [[4, 5], [6, 7]]]))
    assert not tree.equivalent(Hierarchy.from_nested([[0, 1, 2, 3], [4, 5, 6, 7]]))
    assert tree != "tree"


def test_what_is_handed_in_stays_the_users():
    parents, order = [np.array([0, 0, 1]), np.array([0, 0])], np.array([2, 1, 0])
    tree = Hierarchy(parents, order)
    parents[0][:] = 9
    order[:] = 9
    assert tree == Hierarchy([[0, 0, 1], [0, 0]], [2, 1, 0])
    with pytest.raises(ValueError, match="read-only"):
        tree.order[0] = 1


def test_an_array_that_was_read_only_when_handed_in_stays_the_users_too():
    mine = np.zeros(3, int)
    mine.flags.writeable = False
    tree = Hierarchy([mine])
    mine.flags.writeable = True
    mine[0] = 7
    assert tree.parents[0].tolist() == [0, 0, 0]


# --------------------------------------------------------------------- files


@given(trees())
def test_save_and_load(tmp_path_factory, tree):
    path = tree.save(tmp_path_factory.mktemp("trees") / "tree")
    assert path.suffix == ".npz"
    assert Hierarchy.load(path) == tree


def test_info_is_saved(tmp_path):
    tree = Hierarchy([[0, 0]], info={"method": "ward", "h": 4, "ties": [1, 2]})
    assert Hierarchy.load(tree.save(tmp_path / "t.npz")).info == tree.info
    assert tree.permute([1, 0]).info == tree.info


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    tree = Hierarchy([[0, 0]])
    path = tree.save(tmp_path / "t.npz")
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Hierarchy([[0, 0, 0]]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.npz"]


def write(path, **arrays):
    np.savez(path, **arrays)
    return path


def good(**changes):
    arrays = {
        "format": "pegfan hierarchy 1",
        "n_clusters": np.array([1, 2, 3]),
        "parents": np.array([0, 0, 1, 0, 0]),
        "order": np.arange(3),
        "info": json.dumps({}),
    }
    return {name: array for name, array in (arrays | changes).items() if array is not None}


def test_the_format_is_as_documented(tmp_path):
    assert Hierarchy.load(write(tmp_path / "t.npz", **good())) == Hierarchy([[0, 0, 1], [0, 0]])


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something else"},
        {"format": None},
        {"order": None},
        {"order": np.arange(4)},
        {"order": np.array([0.0, 1.0, 2.0])},
        {"parents": np.array([0, 0, 5, 0, 0])},
        {"parents": np.array([0, 0, 1, 0])},
        {"n_clusters": np.array([2, 2, 3])},
        {"n_clusters": np.array([], int)},
        {"n_clusters": np.array([1, -2, 7])},
        {"info": "not json"},
        {"info": "[1]"},
        {"info": "[" * 100_000},
    ],
)
def test_damaged_and_foreign_files_are_refused(tmp_path, changes):
    path = write(tmp_path / "t.npz", **good(**changes))
    with pytest.raises(ValueError, match=r"t\.npz"):
        Hierarchy.load(path)


def test_a_truncated_file_is_refused_wherever_it_is_cut(tmp_path):
    path = random_tree(0, 3, 3, 30).save(tmp_path / "t.npz")
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="npz"):
            Hierarchy.load(path)


def test_flipped_bytes_never_load_as_another_tree_or_crash(tmp_path):
    tree = random_tree(0, 3, 3, 30)
    path = tree.save(tmp_path / "t.npz")
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        try:
            loaded = Hierarchy.load(path)
        except ValueError:
            continue
        assert loaded == tree  # only bytes that carry no data may change unnoticed


# ----------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Hierarchy([[0, 1, 1], [0, 1]]), ValueError, "root.*append"),
        (lambda: Hierarchy([[0, 2], [0, 0]]), ValueError, r"parents\[0\]\[1\] is 2"),
        (lambda: Hierarchy([[0, 0], [0, 0]]), ValueError, "slot 1 .* no child"),
        (lambda: Hierarchy([[0, -1]]), ValueError, "-1"),
        (lambda: Hierarchy([[]]), ValueError, "empty"),
        (lambda: Hierarchy([[0.0, 0.0]]), TypeError, "integers"),
        (lambda: Hierarchy(np.zeros(3, int)), ValueError, r"pass \[array\]"),
        (lambda: Hierarchy([[[0, 0]]]), ValueError, "one-dimensional"),
        (lambda: Hierarchy([[0, 0]], [0, 0]), ValueError, "0 more than once"),
        (lambda: Hierarchy([[0, 0]], [0, 2]), ValueError, "holds 2"),
        (lambda: Hierarchy([[0, 0]], [0, 1, 2]), ValueError, "3 entries"),
        (lambda: Hierarchy.from_labels([]), ValueError, "no levels"),
        (lambda: Hierarchy.from_labels([[0, 0], [0, 0, 0]]), ValueError, "level 1 has 3 labels"),
        (
            lambda: Hierarchy.from_labels([[0, 0, 1, 2], [0, 1, 1, 1]]),
            ValueError,
            "nodes 0 and 1 share cluster 0 of level 0",
        ),
        (lambda: Hierarchy.from_labels([["x", "x", "y", "z"], [0, 1, 1, 1]]), ValueError, "cluster 'x' of level 0"),
        (lambda: Hierarchy.from_labels([[0, 1, 2], [0, 0, 0], [0, 1, 1]]), ValueError, "fine to coarse"),
        (lambda: Hierarchy.from_labels([[0.5, 1.5]]), TypeError, "level 0"),
        (lambda: Hierarchy.from_labels([[]]), ValueError, "non-empty"),
        (lambda: Hierarchy.from_nested([[0, 1], []]), ValueError, "empty list"),
        (lambda: Hierarchy.from_nested([0, 1.5]), TypeError, "1.5"),
        (lambda: Hierarchy.from_nested([0, 2]), ValueError, "2"),
        (lambda: Hierarchy.from_nested([0, True]), TypeError, "True"),
        (lambda: Hierarchy.from_nested([0, 2**70]), TypeError, "integers"),
        (lambda: Hierarchy.from_linkage(np.zeros((3, 3)), [2]), ValueError, r"\(n-1, 4\)"),
        (lambda: Hierarchy.from_linkage([[0, 7, 1.0, 2]], [2]), ValueError, "row 0"),
        (lambda: Hierarchy.from_linkage([[0, 1, 1.0, 2], [0, 2, 1.0, 2]], [2]), ValueError, "0 twice"),
        (lambda: Hierarchy.from_linkage([[0, 1, 1.0, 3]], [2]), ValueError, "size"),
        (lambda: Hierarchy.from_linkage([[0, np.nan, 1.0, 2]], [2]), ValueError, "row 0"),
        (lambda: Hierarchy.from_linkage([[0, 1, 1.0, 2]], []), ValueError, "sizes"),
        (lambda: Hierarchy.from_linkage([[0, 1, 1.0, 2]], [1]), ValueError, "at least 2"),
        (lambda: Hierarchy.from_linkage([[0, 1, 1.0, 2]], [2.5]), TypeError, "2.5"),
        (lambda: Hierarchy([[0, 0]]).cluster((1, 3)), ValueError, "2 children.*number 3"),
        (lambda: Hierarchy([[0, 0]]).cluster((2,)), ValueError, "first of them 1"),
        (lambda: Hierarchy([[0, 0]]).cluster((1, 1, 1)), ValueError, "1 to 2 entries"),
        (lambda: Hierarchy([[0, 0]]).cluster(("a",)), TypeError, "'a'"),
        (lambda: Hierarchy([[0, 0]]).cluster_at(2, 2), ValueError, "slots 0 to 1"),
        (lambda: Hierarchy([[0, 0]]).labels(3), ValueError, "level 3"),
        (lambda: Hierarchy([[0, 0]]).sizes(0), ValueError, "level 0"),
        (lambda: Hierarchy([[0, 0]]).sizes(1.0), TypeError, "1.0"),
        (lambda: Hierarchy([[0, 0]]).permute([0, 0]), ValueError, "perm holds 0"),
        (lambda: Hierarchy([[0, 0]]).permute_children({(1,): [0]}), ValueError, r"permutation of \(1,\)"),
        (lambda: Hierarchy([[0, 0]]).permute_children({(1, 1): [0]}), ValueError, "no children"),
    ],
)
def test_bad_input_is_answered(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_lists_that_contain_themselves():
    loop = [0]
    loop.append(loop)
    with pytest.raises(ValueError, match="contain itself"):
        Hierarchy.from_nested(loop)


def test_a_list_that_doubles_at_every_level_is_refused_before_memory_runs_out():
    pair = [0, 1]
    for _ in range(60):
        pair = [pair, pair]
    with pytest.raises(ValueError, match="more than once"):
        Hierarchy.from_nested(pair)
