"""What to look at first: nodes by their probability, and what is found that way among test nodes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_numbers
from pegfan.graph import Graph, Split, as_split, check_graph
from pegfan.results.values import Gain, PrecisionRecall, Ranked, Ranking

SHARES = (0.01, 0.05, 0.10)
"""The parts of all nodes at which gains are told."""
_SHOWN = 50
_MOST_POINTS = 200
_MOST_CLASSES = 20


def rarer_class(counts: Sequence[int]) -> int | None:
    """The class that is looked for: the rarer one of two that both occur; the second where they are equal; else None.

    Examples
    --------
    >>> rarer_class([970, 30]), rarer_class([5, 5]), rarer_class([3, 2, 1])
    (1, 1, None)
    """
    counts = check_numbers(counts, "counts", None).tolist()
    if len(counts) != 2 or min(counts) == 0:
        return None
    return 0 if counts[0] < counts[1] else 1


def rank(graph: Graph, split: Split, probabilities: NDArray[Any]) -> tuple[IntArray, IntArray, int | None, bool]:
    """The nodes to look at, in order, and the classes that they are ranked for.

    Nodes without a label are ranked, or test nodes where every node has one. Of two classes, nodes are ranked by the
    probability of the rarer one; of more, class by class, those that are predicted as it by their probability.

    Returns
    -------
    nodes, classes
        Node by node.
    by
        The class that all are ranked for, or None.
    held_out
        Whether these are test nodes.
    """
    check_graph(graph, needs="labels")
    split = as_split(split, graph.n)
    probabilities = check_numbers(probabilities, "probabilities", graph.n, graph.n_classes)
    assert graph.labels is not None
    nodes = graph.subjects[graph.labels[graph.subjects] < 0]
    held_out = not len(nodes)
    nodes = np.sort(split.test) if held_out else nodes
    by = rarer_class(np.bincount(graph.labels[graph.labels >= 0], minlength=graph.n_classes).tolist())
    classes = probabilities[nodes].argmax(axis=1) if by is None else np.full(len(nodes), by)
    order = np.lexsort((nodes, -probabilities[nodes, classes], classes))
    return nodes[order], classes[order], by, held_out


def rank_numbers(graph: Graph, split: Split, values: NDArray[Any]) -> tuple[IntArray, bool]:
    """The nodes without a target by their predicted number, the largest first; or test nodes, and whether these."""
    check_graph(graph)
    split = as_split(split, graph.n)
    values = check_numbers(values, "values", graph.n)
    nodes = graph.subjects[~graph.labelled[graph.subjects]]
    held_out = not len(nodes)
    nodes = np.sort(split.test) if held_out else nodes
    return nodes[np.lexsort((nodes, -values[nodes]))], held_out


def ranking(graph: Graph, split: Split, probabilities: NDArray[Any]) -> Ranking:
    """The first of the nodes that `rank` lists; of more than two classes, the first ones of each."""
    check_graph(graph, needs="labels")
    split = as_split(split, graph.n)
    probabilities = check_numbers(probabilities, "probabilities", graph.n, graph.n_classes)
    assert graph.labels is not None
    nodes, classes, by, held_out = rank(graph, split, probabilities)
    names, ids = (list(map(str, words.tolist())) for words in (graph.classes, graph.ids))
    _, starts, place = np.unique(classes, return_index=True, return_inverse=True)
    kept = np.flatnonzero(np.arange(len(nodes)) - starts[place] < ceil(_SHOWN / max(len(starts), 1)))[:_SHOWN]
    rows = tuple(
        Ranked(
            id=ids[i],
            target=names[k],
            probability=probabilities[i, k],
            true=names[graph.labels[i]] if graph.labels[i] >= 0 else None,
        )
        for i, k in zip(nodes[kept].tolist(), classes[kept].tolist(), strict=True)
    )
    return Ranking(None if by is None else names[by], rows, len(nodes), held_out)


def precision_recall(graph: Graph, split: Split, probabilities: NDArray[Any]) -> tuple[PrecisionRecall, ...]:
    """How labelled test nodes are found by their probability: of the rarer class of two, or of the largest classes."""
    check_graph(graph, needs="labels")
    split = as_split(split, graph.n)
    probabilities = check_numbers(probabilities, "probabilities", graph.n, graph.n_classes)
    assert graph.labels is not None
    test = split.test[graph.labels[split.test] >= 0]
    truth = graph.labels[test]
    by = rarer_class(np.bincount(graph.labels[graph.labels >= 0], minlength=graph.n_classes).tolist())
    support = np.bincount(truth, minlength=graph.n_classes)
    wanted = np.argsort(-support, kind="stable")[:_MOST_CLASSES] if by is None else np.array([by])
    names = list(map(str, graph.classes.tolist()))
    return tuple(
        _curve(names[k], truth == k, np.asarray(probabilities[test, k], np.float64))
        for k in np.sort(wanted).tolist()
        if support[k] and support[k] < len(test)
    )


def _curve(name: str, true: NDArray[np.bool_], scores: FloatArray) -> PrecisionRecall:
    """Precision and recall at every threshold; nodes of equal scores come together."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=-np.inf))  # of each run of equal scores
    hits, seen = np.cumsum(true[order], dtype=np.int64)[last], last + 1
    recall, precision = hits / true.sum(), hits / seen
    average = float(np.sum(np.diff(recall, prepend=0.0) * precision))
    at = np.unique(np.linspace(0, len(last) - 1, min(len(last), _MOST_POINTS)).round().astype(int))
    gains = tuple(_gain(share, hits, seen, len(true), int(true.sum())) for share in SHARES)
    return PrecisionRecall(
        name, int(true.sum()), len(true), average, recall[at].tolist(), precision[at].tolist(), gains
    )


def _gain(share: float, hits: IntArray, seen: IntArray, total: int, positives: int) -> Gain:
    """What is found among the first nodes; a run of equal scores that is cut counts by its share."""
    nodes = max(1, round(share * total))
    count = float(np.interp(nodes, np.concatenate([[0], seen]), np.concatenate([[0], hits])))
    return Gain(share, nodes, count, count / nodes, count / positives, (count / nodes) / (positives / total))
