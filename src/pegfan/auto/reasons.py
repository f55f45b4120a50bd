"""What a finished training adds to its result: which columns matter, and why the listed nodes have their scores.

Both are worked out from the model, the graph and the result alone, so that `pegfan report` can add them later.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pegfan import results
from pegfan._limits import is_large
from pegfan.explain import OTHER_NODES, OTHERS, Explainer, Explanation, find_nodes
from pegfan.fitted import Fitted
from pegfan.graph import Graph
from pegfan.importance import permutation_importance
from pegfan.training.batches import JUDGED

__all__ = ["add_importances", "add_reasons", "is_explained", "listed_nodes"]

IMPORTANCE = 0.03
"""The part of the budget that the importance of columns may take at most."""
REASONS, SHORT = 0.03, 5.0
"""The part of the budget that the reasons for nodes may take at most, and seconds that they have on a small graph."""
EXPLAINED = 3e7
"""Entries of dense features beyond which no reasons and importances are worked out unasked: one node takes seconds and
as much memory as all hops."""
_PARTS = 6
"""Parts of a score that are kept."""
_TOGETHER = 8
"""The most nodes that are explained at once; no more than there is time for, by what the last ones took."""


def is_explained(graph: Graph) -> bool:
    """Whether reasons and importances are worked out unasked."""
    return issparse(graph.features) or graph.features is None or graph.features.size <= EXPLAINED


def add_importances(result: results.Result, fitted: Fitted, graph: Graph) -> results.Result:
    """The result with the importance of columns on the labelled test nodes of the model's first split.

    Columns are tried until the time is over, one at least.

    Parameters
    ----------
    result
        Of the training.
    fitted
        Its model. Of one that was trained on several folds, the members of the first fold are asked.
    graph
        With the splits that were used.
    """
    start = time.perf_counter()
    if result.splits is None:
        return result
    test = graph.splits[result.splits.used[0]].test
    test = test[graph.labelled[test]]
    if len(test) > JUDGED:
        test = test[np.arange(JUDGED) * len(test) // JUDGED]
    if not len(test) or not is_explained(graph):
        return result
    first = tuple(member for member in fitted.members if member.fold == 0)
    explainer = _explainer(replace(fitted, members=first), graph)
    seconds = max(IMPORTANCE * (result.budget or 0.0) - (time.perf_counter() - start), 0.0)
    repeats: Any = {"repeats": 1} if is_large(graph.n) else {}
    rows, left_out = permutation_importance(
        explainer, graph.truth, test, graph.metric, seconds=seconds, seed=result.seed or 0, **repeats
    )
    return replace(result, importances=results.Importances(tuple(results.Importance(*row) for row in rows), left_out))


def add_reasons(result: results.Result, fitted: Fitted, graph: Graph) -> results.Result:
    """The result with the reasons for the nodes that it lists, as many as there is time for, one at least.

    Parameters
    ----------
    result
        Of the training.
    fitted
        Its model.
    graph
        With the splits that were used.
    """
    start = time.perf_counter()
    names = listed_nodes(result)
    if result.splits is None or not names or not is_explained(graph):
        return result
    seconds = REASONS * (result.budget or 0.0)
    if not is_large(len(graph.splits[result.splits.used[0]].train)):
        seconds = max(seconds, SHORT)
    explainer = _explainer(fitted, graph)
    target = None if result.ranking is None else result.ranking.by
    nodes, size, explanations = find_nodes(explainer.graph, names), 1, list[Explanation]()
    left = seconds - (time.perf_counter() - start)
    while len(explanations) < len(nodes) and (left > 0 or not explanations):
        done, before = len(explanations), left
        explanations += explainer.explain(nodes[done : done + size], target, _PARTS)
        left = seconds - (time.perf_counter() - start)
        size = max(1, min(_TOGETHER, int(size * left / (before - left))))
    return replace(result, reasons=tuple(map(_as_reasons, explanations)))


def listed_nodes(result: results.Result) -> list[str]:
    """The names of the nodes that a result lists: those to look at first, and those to doubt."""
    rows: list[Any] = [*(() if result.ranking is None else result.ranking.rows), *result.unsure]
    if result.regression is not None:
        rows += [*result.regression.first, *result.regression.worst]
    return list(dict.fromkeys(row.id for row in rows))


def _explainer(fitted: Fitted, graph: Graph) -> Explainer:
    """Of a model that was loaded, on a graph; of one that was just fitted, on the graph that it holds."""
    return Explainer(fitted, graph if fitted.graph is None else None)


def _as_reasons(one: Explanation) -> results.Reasons:
    named = (part for part in one.reasons if part.words not in (OTHERS, OTHER_NODES))
    parts = tuple(results.ReasonPart(*part) for part in named)[:_PARTS]
    return results.Reasons(one.id, one.target, one.score, one.average, parts, one.groups)
