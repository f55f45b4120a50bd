"""What models learn from, settled once: a graph with features, and a split of its labelled nodes.

Splits that are drawn here do not depend on how nodes are numbered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_numbers, shown
from pegfan.graph import Graph, Split, are_known, check_graph
from pegfan.training.engine import check_weights, without_weightless
from pegfan.trees import canonical_order

__all__ = ["TrainingData", "draw_folds", "draw_splits", "ranks_and_tenths"]


class TrainingData(NamedTuple):
    """What a model learns from.

    Attributes
    ----------
    graph
        With features.
    split
        Labelled nodes that count for something, some of them for validation.
    sample_weight
        How much every node counts; None where all count alike.
    stood_in
        Whether degrees stand in for features.
    """

    graph: Graph
    split: Split
    sample_weight: FloatArray | None
    stood_in: bool


def settle_data(graph: Graph, split: Any, stand_in: str | None, seed: int, sample_weight: Any = None) -> TrainingData:
    """What a model learns from, by what the user says of features, the split and the nodes' weights."""
    if stand_in not in (None, "degree"):
        raise ValueError(f"stand_in must be None or 'degree', got {shown(stand_in)}")
    weights = check_weights(sample_weight, graph.n)
    part = fit_split(graph, split, seed, weights)
    return TrainingData(with_features(graph, stand_in), part, weights, graph.features is None)


def fit_split(graph: Graph, split: Any, seed: int, weights: FloatArray | None = None) -> Split:
    """What models are trained on: the labelled nodes of `pick_split`, with validation nodes among them.

    Nodes whose weight is 0 are not among them.
    """
    if not graph.labelled.any():
        raise ValueError(
            "the graph has no labels to learn from; give them with graph.replace(labels=...), or name them where it is "
            "read or made: label='kind', or Graph.from_networkx(g, labels='club')"
        )
    whole = with_validation(graph, without_weightless(pick_split(graph, split, seed), weights), seed)
    part = Split(*(nodes[graph.labelled[nodes]] for nodes in whole))
    for name in ("train", "val"):
        if not len(getattr(part, name)):
            raise ValueError(
                f"the split has no labelled {name} nodes; models are trained on the one part and chosen on the other. "
                "Label more nodes, or pass another split, such as split='random'"
            )
    return part


def pick_split(graph: Graph, split: Any, seed: int) -> Split:
    """A split by its place in ``graph.splits``, as nodes, or ``"random"``."""
    if isinstance(split, str):
        if split != "random":
            raise ValueError(f"split must be an index, a Split or 'random', got {shown(split)}")
        return draw_splits(graph, k=1, seed=seed)[0]
    if isinstance(split, (int, np.integer)) and not graph.splits:
        raise ValueError("the graph has no splits; pass a Split, or split='random'")
    return graph.split(split)


def with_validation(graph: Graph, part: Split, seed: int) -> Split:
    """The split; a quarter of its labelled training nodes become validation nodes where it has none."""
    assert graph.truth is not None
    among: Any = np.full(graph.n, -1 if graph.targets is None else np.nan, graph.truth.dtype)
    among[part.train] = graph.truth[part.train]
    if len(part.val) or not are_known(among).any():
        return part
    drawn = draw_splits(graph, among, k=1, sizes=(0.75, 0.25, 0.0), seed=seed)[0]
    return Split(drawn.train, drawn.val, part.test)


def draw_splits(graph: Graph, labels: Any = None, **options: Any) -> tuple[Split, ...]:
    """Random splits of a graph that do not depend on how its nodes are numbered.

    Where there are numeric targets, every tenth of them is divided alike.

    Parameters
    ----------
    graph
        With labels or targets, unless others are given.
    labels
        Those of the nodes to divide; -1, or NaN, for the others.
    **options
        Of `pegfan.datasets.random_splits`.
    """
    from pegfan.datasets import random_splits

    check_graph(graph)

    codes: Any = graph.truth if labels is None else check_numbers(labels, "labels", graph.n)
    if codes is None:
        raise ValueError("the graph has no labels to draw splits by; give them with graph.replace(labels=...)")
    order, groups = _canonical_nodes(graph, codes)
    drawn = random_splits(groups[order], **options)
    return tuple(Split(*(np.sort(order[part]) for part in split)) for split in drawn)


def draw_folds(graph: Graph, **options: Any) -> tuple[Split, ...]:
    """Folds of a graph's labelled nodes (`pegfan.datasets.fold_splits`) that do not depend on their numbering."""
    from pegfan.datasets import fold_splits

    check_graph(graph, needs="truth")

    order, groups = _canonical_nodes(graph, graph.truth)
    drawn = fold_splits(groups[order], **options)
    return tuple(Split(*(np.sort(order[part]) for part in split)) for split in drawn)


def _canonical_nodes(graph: Graph, codes: Any) -> tuple[IntArray, IntArray]:
    """The nodes in an order that does not depend on how they are numbered, and their classes, or tenths of targets."""
    exact, groups = (codes, codes) if codes.dtype.kind != "f" else ranks_and_tenths(codes)
    colouring = canonical_order(graph)
    return canonical_order(graph, labels=exact).order if colouring.tied else colouring.order, groups


def ranks_and_tenths(targets: FloatArray) -> tuple[IntArray, IntArray]:
    """The place of every target among the distinct ones, and the tenth of the nodes that it is in; −1 where unknown."""
    targets = check_numbers(targets, "targets", None).astype(np.float64, copy=False)
    ranks, tenths = np.full(len(targets), -1), np.full(len(targets), -1)
    known = are_known(targets)
    if known.any():
        ranks[known] = np.unique(targets[known], return_inverse=True)[1]
        parts = max(1, min(10, int(known.sum()) // 10))
        edges = np.quantile(targets[known], np.arange(1, parts) / parts)
        tenths[known] = np.searchsorted(edges, targets[known], side="right")
    return ranks, tenths


def with_features(graph: Graph, stand_in: str | None) -> Graph:
    """The graph, with degrees for features where it has none and they may stand in."""
    if graph.features is not None:
        return graph
    if stand_in is None:
        raise ValueError(
            "the graph has no features; give them with graph.replace(features=...), or let degrees stand in with "
            "stand_in='degree'"
        )
    from pegfan.datasets import stand_in_features

    return stand_in_features(graph, stand_in)
