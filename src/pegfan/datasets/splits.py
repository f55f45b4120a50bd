"""Random splits into training, validation and test nodes: stratified, seeded, each with a seed of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import as_array, check_flag, check_integer, check_numbers, check_seed, shown
from pegfan.graph import Split

# Which parts come first in a class too small for all of them: what cannot be learned cannot be tested either.
_PRIORITY = (0, 2, 1)  # train, test, val


def random_splits(
    labels: Any,
    *,
    k: int = 10,
    sizes: Sequence[float] = (0.48, 0.32, 0.2),
    stratify: bool = True,
    seed: int = 0,
) -> tuple[Split, ...]:
    """Draw k random splits of the labelled nodes.

    Parameters
    ----------
    labels : integer array, (n,)
        Class numbers; nodes with a negative one are unlabelled and belong to no part. ``graph.labels`` is
        such an array.
    k : int
        How many splits. Split i depends on `labels`, `sizes`, `stratify`, `seed` and i, not on `k`: asking for
        more splits later keeps the first ones.
    sizes : three numbers
        Shares of train, val and test, adding up to at most 1; what they leave over is in no part.
    stratify : bool
        Whether each class is divided in these shares. Rounding errors are carried from class to class, so that
        the parts as a whole keep their shares too. A class with one node has it in train, one with two has
        them in train and test, and any larger class has a node in every part whose share is not 0.
    seed : int
        Not negative.

    Returns
    -------
    tuple of Split

    Examples
    --------
    >>> splits = random_splits([0] * 50 + [1] * 50 + [-1] * 7, k=2)
    >>> [len(part) for part in splits[0]]
    [48, 32, 20]
    >>> int(max(splits[1].test)) < 100  # the unlabelled nodes are left out
    True
    """
    codes, shares = _check_labels(labels), _check_sizes(sizes)
    k, seed = check_integer(k, "k", least=0, most=10**6), check_seed(seed)
    check_flag(stratify, "stratify")
    nodes = np.flatnonzero(codes >= 0)
    if nodes.size == 0:
        raise ValueError("no node has a label, so there is nothing to split")
    return tuple(_draw(nodes, codes if stratify else None, shares, np.random.default_rng([seed, i])) for i in range(k))


def fold_splits(labels: Any, *, k: int = 5, seed: int = 0) -> tuple[Split, ...]:
    """Deal the labelled nodes into k folds; split i tests on fold i, validates on the next one, and trains on the rest.

    So every labelled node is a test node once, a validation node once, and a training node otherwise. Nodes of classes
    with fewer than three are always training nodes: what cannot be learned cannot be tested either.

    Parameters
    ----------
    labels : integer array, (n,)
        As in `random_splits`.
    k : int
        How many folds, at least 3.
    seed : int
        Not negative.

    Examples
    --------
    >>> splits = fold_splits([0] * 50 + [1] * 50 + [-1] * 7)
    >>> [len(part) for part in splits[0]], sum(len(split.test) for split in splits)
    ([60, 20, 20], 100)
    """
    codes = _check_labels(labels)
    k, seed = check_integer(k, "k, the number of folds,", least=3), check_seed(seed)
    if k > max(int((codes >= 0).sum()), 3):
        raise ValueError(f"there are {k} folds of {int((codes >= 0).sum())} labelled nodes; take fewer folds")
    rng = np.random.default_rng([seed, k])
    nodes = rng.permutation(np.flatnonzero(codes >= 0))
    if nodes.size == 0:
        raise ValueError("no node has a label, so there is nothing to split")
    rare = np.bincount(codes[nodes])[codes[nodes]] < 3
    order = nodes[~rare][np.argsort(codes[nodes[~rare]], kind="stable")]  # class by class, in a random order
    fold = np.arange(len(order)) % k
    every = np.concatenate([order, nodes[rare]])
    parts = np.concatenate([fold, np.full(int(rare.sum()), -1)])
    found = []
    for i in range(k):
        test, val = parts == i, parts == (i + 1) % k
        found.append(Split(*(np.sort(every[part]) for part in (~(test | val), val, test))))
    return tuple(found)


def _check_labels(labels: Any) -> IntArray:
    array = as_array(labels, "labels")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be a vector of class numbers, got {array.dtype} of shape {array.shape}; "
            "pass graph.labels, where -1 marks a node without a label"
        )
    return array.astype(np.int64)


def _check_sizes(sizes: Sequence[float]) -> FloatArray:
    shares = check_numbers(sizes, "sizes", None).astype(float)
    total = math.fsum(shares.ravel())
    if shares.shape != (3,) or not (shares >= 0).all() or not 0 < total <= 1 + 1e-9:
        raise ValueError(f"sizes must be three shares of train, val and test, at most 1 in all; got {shown(sizes)}")
    return np.append(shares, max(0.0, 1.0 - total) if total < 1 - 1e-9 else 0.0)  # the last: nodes in no part


def _draw(nodes: IntArray, codes: IntArray | None, shares: FloatArray, rng: np.random.Generator) -> Split:
    shuffled = rng.permutation(nodes)
    if codes is None:
        groups = [shuffled]
    else:
        order = np.argsort(codes[shuffled], kind="stable")
        groups = np.split(shuffled[order], np.flatnonzero(np.diff(codes[shuffled][order])) + 1)
    parts: list[list[IntArray]] = [[], [], [], []]
    owed = np.zeros(4)
    for group in groups:
        fair = len(group) * shares + owed
        counts = _share_out(len(group), fair, shares)
        # Only rounding is made up for: many tiny classes, all in train, must not bend the shares of a large one.
        owed = np.clip(fair - counts, -1, 1)
        for part, piece in zip(parts, np.split(group, np.cumsum(counts)[:-1]), strict=True):
            part.append(piece)
    return Split(*(np.sort(np.concatenate(part)) for part in parts[:3]))


def _share_out(size: int, fair: FloatArray, shares: FloatArray) -> IntArray:
    """Return whole counts near the fair ones that add up to `size`; a part that is due a node gets at least one."""
    least = np.zeros(4, dtype=np.int64)
    least[[part for part in _PRIORITY if shares[part] > 0][:size]] = 1
    counts = np.maximum(np.floor(fair).astype(np.int64), least)
    while counts.sum() < size:
        counts[np.argmax(np.where(shares > 0, fair - counts, -np.inf))] += 1
    while counts.sum() > size:
        counts[np.argmax(np.where(counts > least, counts - fair, -np.inf))] -= 1
    return counts
