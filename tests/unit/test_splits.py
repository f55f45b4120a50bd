"""Random splits: disjoint, complete, stratified, and the same again for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan.datasets.splits import random_splits
from pegfan.graph import Graph

label_arrays = st.lists(st.integers(-1, 5), min_size=1, max_size=80).filter(lambda labels: max(labels) >= 0)
shares = st.tuples(st.integers(1, 10), st.integers(0, 10), st.integers(0, 10), st.integers(0, 3)).map(
    lambda parts: tuple(part / sum(parts) for part in parts[:3])
)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(label_arrays, shares, st.booleans(), st.integers(0, 2**64))
def test_parts_are_disjoint_and_hold_labelled_nodes_only(labels, sizes, stratify, seed):
    (split,) = random_splits(labels, k=1, sizes=sizes, stratify=stratify, seed=seed)
    everyone = np.concatenate(split)
    assert len(set(everyone.tolist())) == len(everyone)
    assert (np.array(labels)[everyone] >= 0).all()
    if sum(sizes) > 1 - 1e-9:
        assert len(everyone) == sum(label >= 0 for label in labels)
    Graph.from_edges([[0, 0]], n=len(labels), labels=labels, splits=[split])


@given(label_arrays, st.integers(0, 100))
def test_every_class_can_be_learned_and_is_tested_where_it_has_two_nodes(labels, seed):
    (split,) = random_splits(labels, k=1, seed=seed)
    for label in set(labels) - {-1}:
        train, val, test = ([labels[i] for i in part].count(label) for part in split)
        assert train >= 1
        assert (test >= 1) == (labels.count(label) >= 2)
        assert (val >= 1) == (labels.count(label) >= 3)


@given(st.lists(st.integers(3, 60), min_size=1, max_size=12), st.integers(0, 100))
def test_every_class_and_the_whole_keep_their_shares(class_sizes, seed):
    labels = np.repeat(np.arange(len(class_sizes)), class_sizes)
    sizes = np.array([0.48, 0.32, 0.2])
    (split,) = random_splits(labels, k=1, seed=seed)
    for label, size in enumerate(class_sizes):
        counts = np.array([np.count_nonzero(labels[part] == label) for part in split])
        assert np.abs(counts - size * sizes).max() < 2
    total = np.array([len(part) for part in split])
    if min(class_sizes) >= 5:  # no class so small that its fair share of a part is less than a node
        assert np.abs(total - len(labels) * sizes).max() <= 1


def test_the_defaults_are_ten_splits_of_48_32_20():
    splits = random_splits(np.arange(1000) % 4)
    assert len(splits) == 10
    assert {tuple(map(len, split)) for split in splits} == {(480, 320, 200)}
    assert len({split.train.tobytes() for split in splits}) == 10
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for split in splits for part in split)


def test_one_and_two_nodes():
    (split,) = random_splits([0, 1, 1] + [2] * 50, k=1)
    assert 0 in split.train
    assert {1, 2} == set(split.train) & {1, 2} | set(split.test) & {1, 2}
    assert not {1, 2} <= set(split.train)


def test_many_single_nodes_do_not_bend_the_shares_of_a_large_class():
    labels = np.append(np.arange(500), np.full(1000, 500))
    (split,) = random_splits(labels, k=1)
    large = [np.count_nonzero(part >= 500) for part in split]
    assert np.abs(np.array(large) - [480, 320, 200]).max() <= 2


def test_a_split_does_not_depend_on_how_many_are_drawn():
    labels = np.arange(60) % 3
    ten, two = random_splits(labels, k=10, seed=7), random_splits(labels, k=2, seed=7)
    assert same(ten[0], two[0])
    assert same(ten[1], two[1])
    assert not same(ten[0], ten[1])
    assert not same(ten[0], random_splits(labels, k=1, seed=8)[0])


def test_without_stratification_classes_fall_as_they_fall():
    labels = np.append(np.zeros(990, int), np.ones(10, int))
    counts = {np.count_nonzero(labels[split.test]) for split in random_splits(labels, k=30, stratify=False)}
    assert len(counts) > 2
    assert {np.count_nonzero(labels[split.test]) for split in random_splits(labels, k=30)} == {2}


def test_what_the_sizes_leave_over_is_in_no_part():
    (split,) = random_splits([0] * 100, k=1, sizes=(0.1, 0.2, 0.3))
    assert [len(part) for part in split] == [10, 20, 30]


@pytest.mark.parametrize("sizes", [(0.5, 0.5), (0.5, 0.4, 0.2), (-0.1, 0.5, 0.5), (0, 0, 0), (float("nan"), 0.5, 0.5)])
def test_impossible_sizes(sizes):
    with pytest.raises(ValueError, match="three shares of train, val and test"):
        random_splits([0, 1], sizes=sizes)


@pytest.mark.parametrize("labels", [["a", "b"], [[0], [1]], [0.0, 1.0]])
def test_labels_must_be_class_numbers(labels):
    with pytest.raises(ValueError, match=r"pass graph\.labels"):
        random_splits(labels)


def test_nothing_to_split():
    with pytest.raises(ValueError, match="no node has a label"):
        random_splits([-1, -1])
    with pytest.raises(ValueError, match="seed must be at least 0"):
        random_splits([0], seed=-1)
