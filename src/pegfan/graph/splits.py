"""Splits: which nodes a model is trained on, which decide when it stops, and which it is judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray, freeze
from pegfan._checks import as_array, check_numbers, check_places


class Split(NamedTuple):
    """Three disjoint sets of nodes, each a sorted int64 array of node indices."""

    train: IntArray
    val: IntArray
    test: IntArray


def as_split(split: Any, n: int, what: str = "split", *, labels: IntArray | FloatArray | None = None) -> Split:
    """Check a split of n nodes: the one place where splits from outside are looked at.

    Parameters
    ----------
    split : Split, triple (train, val, test) or mapping with these keys
        Each part a boolean mask of length n or an array of distinct node indices; OGB's ``"valid"`` is read as
        ``"val"``.
    n : int
        Number of nodes.
    what : str
        What to call it in errors.
    labels : int64 or float64 array, (n,), optional
        With labels, -1 for none, or targets, NaN for none, the split must be fit for training: train and val must not
        be empty and all of their nodes labelled. Test nodes without a label are left out.

    Returns
    -------
    Split
        Of sorted, disjoint, read-only arrays.

    Examples
    --------
    >>> as_split(([2, 0], [False, True, False], []), n=3)
    Split(train=array([0, 2]), val=array([1]), test=array([], dtype=int64))
    """
    if isinstance(split, Mapping):
        named = {"val" if key == "valid" else key: part for key, part in split.items()}
        if named.keys() != set(Split._fields):
            raise ValueError(f"{what} must have the keys train, val and test, got {list(split)}")
        split = [named[name] for name in Split._fields]
    if not isinstance(split, Sequence) or isinstance(split, str | bytes):
        raise TypeError(f"{what} must be a Split (train, val, test), got {type(split).__name__}")
    if len(split) != 3:
        raise ValueError(
            f"{what} must be a triple (train, val, test), got {len(split)} parts (a graph has a list of triples)"
        )
    parts = [np.sort(check_nodes(part, n, f"{what}.{name}")) for name, part in zip(Split._fields, split, strict=True)]
    times = np.bincount(np.concatenate(parts), minlength=1)
    if times.max() > 1:
        raise ValueError(f"{what}: node {times.argmax()} is in more than one of train, val and test")
    if labels is not None:
        labelled = are_known(check_numbers(labels, "labels", n))
        for name, part in zip(("train", "val"), parts, strict=False):
            if not part.size:
                raise ValueError(f"{what} has no {name} nodes; training needs them (the test part may be empty)")
            if not labelled[part].all():
                unknown = part[~labelled[part]][0]
                raise ValueError(f"{what}: node {unknown} is in {name} but has no label; leave it out")
        parts[2] = parts[2][labelled[parts[2]]]
    freeze(*parts)
    return Split(*parts)


def are_known(values: IntArray | FloatArray) -> NDArray[np.bool_]:
    """Whether each of some labels or targets is known: not negative, or not NaN."""
    return np.asarray(~np.isnan(values) if values.dtype.kind == "f" else values >= 0)


def check_nodes(values: Any, n: int, what: str) -> IntArray:
    """Return distinct node indices in the order given; a boolean mask of length n gives those it selects."""
    array = as_array(values, what)
    if array.dtype.kind == "b" and array.ndim == 1:
        if len(array) != n:
            raise ValueError(f"{what} is a mask of length {len(array)}, but the graph has {n} nodes")
        return np.flatnonzero(array)
    if array.size and array.dtype.kind not in "biu":
        raise TypeError(f"{what} must be a boolean mask or node indices, got dtype {array.dtype}")
    nodes = check_places(array, what, n)
    times = np.bincount(nodes, minlength=1)
    if times.max() > 1:
        raise ValueError(f"{what} holds node {times.argmax()} more than once")
    return nodes


def check_splits(splits: Any, n: int) -> tuple[Split, ...]:
    """The splits of a graph of n nodes."""
    if isinstance(splits, Split | Mapping):
        raise ValueError("splits must be a sequence of splits; wrap a single one in a list: splits=[split]")
    if not isinstance(splits, Sequence) or isinstance(splits, str | bytes):
        raise TypeError(f"splits must be a sequence of splits, got {type(splits).__name__}")
    return tuple(as_split(split, n, f"splits[{k}]") for k, split in enumerate(splits))


def mask_splits(masks: Mapping[str, Any]) -> list[Split]:
    """Return the splits that masks of shape (n,) or (n, k) describe; one of shape (n,) serves every split."""
    columns = {part: np.atleast_2d(mask.T).astype(bool) for part, mask in masks.items() if mask is not None}
    counts = {len(mask) for mask in columns.values()} - {1}
    if len(counts) > 1:
        raise ValueError(f"the masks hold different numbers of splits: {sorted(counts)}")
    repeats = max(counts, default=1) if columns else 0
    empty = np.empty((1, 0), dtype=np.int64)
    every = [columns.get(part, empty) for part in Split._fields]
    return [Split(*(mask[k if len(mask) > 1 else 0] for mask in every)) for k in range(repeats)]
