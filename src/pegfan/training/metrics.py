"""How good predictions are: accuracy, or the area under the ROC curve."""

from __future__ import annotations

from typing import Any

import numpy as np

METRICS = ("accuracy", "roc_auc")


def score(log_probabilities: Any, labels: Any, metric: str) -> float:
    """Accuracy, or the area under the ROC curve of class 1; NaN without nodes (or, for AUC, without both classes).

    Parameters
    ----------
    log_probabilities
        One row per node and one column per class; any scores will do.
    labels
        Class numbers of these nodes.
    metric
        ``"accuracy"`` or ``"roc_auc"``; the latter for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> output = np.log([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    >>> score(output, np.array([0, 0, 1]), "accuracy").__round__(3), score(output, np.array([0, 0, 1]), "roc_auc")
    (0.667, 1.0)
    """
    if metric == "accuracy":
        return accuracy(log_probabilities, labels)
    return roc_auc(log_probabilities[:, 1] - log_probabilities[:, 0], labels)


def accuracy(scores: Any, labels: Any) -> float:
    """The share of nodes whose highest score is that of their class; NaN without nodes."""
    return float((scores.argmax(axis=1) == labels).mean()) if len(labels) else float("nan")


def roc_auc(values: Any, labels: Any) -> float:
    """The share of pairs, one node of class 1 and one of class 0, whose values are in that order; ties count half.

    NaN without both classes.
    """
    positive = np.asarray(labels) == 1
    pairs = int(positive.sum()) * int((~positive).sum())
    if not pairs:
        return float("nan")
    order = np.argsort(values, kind="stable")
    _, ties, counts = np.unique(values[order], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    rank = np.empty(len(values))
    rank[order] = (ends - (counts - 1) / 2.0)[ties]  # ties share their mean rank
    wins = rank[positive].sum() - positive.sum() * (positive.sum() + 1) / 2.0
    return float(wins / pairs)
