"""Why the nodes that a report shows have their scores, and which columns matter."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from pegfan import results
from pegfan.channels._kept import LARGE
from pegfan.explain import OTHER_NODES, OTHERS, Explainer, Explanation, find_nodes
from pegfan.graph import Graph, Split
from pegfan.importance import permutation_importance
from pegfan.training.batches import JUDGED

__all__ = ["importances", "reasons"]

_PARTS = 6
"""Parts of a score that are kept."""
_TOGETHER = 8
"""Nodes of a small graph that are explained at once."""


def importances(
    explainer: Explainer, graph: Graph, split: Split, seconds: float, seed: int
) -> results.Importances | None:
    """The importance of columns on the labelled test nodes; None without any.

    Parameters
    ----------
    explainer, graph, split
        Of the model, on the graph that it was fitted to.
    seconds
        How long it may take.
    seed
        Of the shuffles.
    """
    test = split.test[graph.labelled[split.test]]
    if len(test) > JUDGED:
        test = test[np.arange(JUDGED) * len(test) // JUDGED]
    if not len(test):
        return None
    repeats: Any = {"repeats": 1} if graph.n >= LARGE else {}
    rows, left = permutation_importance(
        explainer, graph.truth, test, graph.metric, seconds=seconds, seed=seed, **repeats
    )
    return results.Importances(tuple(results.Importance(*row) for row in rows), left)


def reasons(
    explainer: Explainer, names: list[str], target: str | None, seconds: float = math.inf
) -> tuple[results.Reasons, ...]:
    """The reasons for some nodes, by their names, for as many as there is time for.

    Parameters
    ----------
    explainer
        Of the model.
    names
        Which nodes.
    target
        The class whose score is explained; None for the one that is predicted.
    seconds
        How long it may take.
    """
    nodes, found, start = find_nodes(explainer.graph, names), list[Explanation](), time.perf_counter()
    size = 1 if explainer.graph.n >= LARGE else _TOGETHER
    for place in range(0, len(nodes), size):
        if place and time.perf_counter() - start > seconds:
            break
        found += explainer.explain(nodes[place : place + size], target, _PARTS)
    return tuple(
        results.Reasons(
            one.id,
            one.target,
            one.score,
            one.average,
            tuple(results.ReasonPart(*part) for part in one.reasons if part.words not in (OTHERS, OTHER_NODES))[
                :_PARTS
            ],
            one.groups,
        )
        for one in found
    )
