"""How much a model's score on held-out nodes depends on a column: it is shuffled among nodes, and the score drops.

The column is shuffled before channels are made of it, so that a node loses its own value and its neighbours theirs; the
tree and the weights stay. Columns that were made of one column of a table (its categories, its words, the entries of
its vector) are shuffled together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan import _defaults as default
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_integer, check_kind, check_number, check_numbers, check_places, check_seed
from pegfan.channels.scaling import scale
from pegfan.explain import Explainer, Linked, column_names, dense, log_softmax, source_columns
from pegfan.fitted import mean_of
from pegfan.metrics import METRICS, check_metric, measure
from pegfan.running import one_thread

__all__ = ["ColumnImportance", "permutation_importance"]

_CELLS = 100_000_000
"""The most entries of features that are made dense."""


class ColumnImportance(NamedTuple):
    """How much a column matters.

    Attributes
    ----------
    name, columns
        The column of the table, and how many feature columns were made of it.
    drop, std
        By how much the metric drops when it is shuffled, on average, and the standard deviation over shuffles. Where
        smaller values are better, by how much it grows.
    loss
        By how much the mean of −log p, p being the probability of the true class, grows; or the mean squared error of
        targets, over their variance.
    """

    name: str
    columns: int
    drop: float
    std: float
    loss: float


def permutation_importance(
    explainer: Explainer,
    labels: Any,
    nodes: IntArray,
    metric: str,
    *,
    repeats: int = 3,
    most: int = 30,
    seconds: float = 10.0,
    seed: int = default.SEED,
) -> tuple[list[ColumnImportance], int]:
    """The importance of columns, and how many columns were not tried.

    Parameters
    ----------
    explainer
        Of a model and a graph.
    labels, nodes
        The classes, or targets, of all nodes, and the held-out nodes that are scored.
    metric
        What drops: ``"accuracy"``, ``"roc_auc"`` or any other that `pegfan.training.score` knows.
    repeats
        How often a column is shuffled.
    most, seconds
        At most so many columns, those with the largest weights; and no new one after so long, but for the first.
    seed
        Of the shuffles, which follow the order of the nodes in the first network's channels.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=6)
    >>> model = pf.FSGNNClassifier(epochs=20).fit(graph)
    >>> found, left = permutation_importance(Explainer(model.fitted_), graph.labels, graph.splits[0].test, "accuracy")
    >>> len(found), left
    (6, 0)
    """
    check_kind(explainer, "explainer", Explainer)
    check_metric(metric)
    nodes = check_places(nodes, "nodes", explainer.graph.n)
    labels = check_numbers(labels, "labels", explainer.graph.n, whole=not explainer.numeric)
    check_integer(repeats, "repeats", least=1, most=10_000)
    check_integer(most, "most", least=1)
    check_number(seconds, "seconds")
    check_seed(seed)
    start = time.perf_counter()
    groups = source_columns(column_names(explainer.graph))
    ordered = _by_weight(explainer, groups)
    rows: list[ColumnImportance] = []
    if not _fits(explainer):
        return rows, len(groups)
    with one_thread():
        scored = _Scored(explainer, nodes, np.asarray(labels)[nodes], metric)
        for name in ordered[:most]:
            if rows and time.perf_counter() - start > seconds:
                break
            columns = np.array(groups[name])
            drops, losses = np.array(list(scored.shuffled(columns, repeats, seed))).T
            rows.append(
                ColumnImportance(name, len(columns), float(drops.mean()), float(drops.std()), float(losses.mean()))
            )
    rows.sort(key=lambda row: (-row.drop, -row.loss))
    return rows, len(groups) - len(rows)


def _fits(explainer: Explainer) -> bool:
    """Whether features fit into memory where a shuffled column changes all of them."""
    assert explainer.graph.features is not None
    rows, columns = explainer.graph.features.shape
    whole = any(network.member.recipe.scaling == "l1" for network in explainer.networks)
    return not whole or issparse(explainer.graph.features) or rows * columns <= _CELLS


def _by_weight(explainer: Explainer, groups: dict[str, list[int]]) -> list[str]:
    """Columns by how much they matter to the members, the largest first."""
    assert explainer.graph.features is not None
    weight = np.zeros(explainer.graph.features.shape[1])
    for network in explainer.networks:
        x = network.features.matrix
        squares = np.asarray((x.multiply(x) if issparse(x) else np.square(x)).mean(axis=0), np.float64).ravel()
        spread = np.maximum(squares - network.usual**2, 0.0)
        own = np.zeros(len(spread))
        for k, channel in enumerate(network.channels):
            if network.is_features(channel):
                own += network.strengths(k, spread)
        weight[network.columns] += network.member.weight * own / (own.sum() or 1.0)
    return sorted(groups, key=lambda name: -weight[groups[name]].sum())


class _Scored:
    """Held-out nodes, and their score when columns are shuffled."""

    def __init__(self, explainer: Explainer, nodes: IntArray, labels: Any, metric: str) -> None:
        self.explainer, self.nodes, self.labels, self.metric = explainer, nodes, labels, metric
        self.inputs = [network.inputs_of(nodes) for network in explainer.networks]
        self.base = self._measure(self.inputs)

    def shuffled(self, columns: IntArray, repeats: int, seed: int) -> Iterator[tuple[float, float]]:
        """How much the metric drops and the loss grows, shuffle by shuffle."""
        order = self.explainer.networks[0].channels.nodes.order
        n = self.explainer.graph.n
        order = np.arange(n) if order is None else order
        random = np.random.default_rng([seed, int(columns[0])])
        for _ in range(repeats):
            taken = np.empty(n, np.int64)
            taken[order] = order[random.permutation(n)]
            moved = [self._moved(m, columns, taken) for m in range(len(self.inputs))]
            metric, loss = self._measure(moved)
            gain = METRICS[self.metric].gain
            yield gain(self.base[0]) - gain(metric), loss - self.base[1]

    def _measure(self, inputs: list[list[FloatArray]]) -> tuple[float, float]:
        pairs = zip(self.explainer.networks, inputs, strict=True)
        weights = [network.member.weight for network in self.explainer.networks]
        if self.explainer.numeric:
            values = np.average([network.values(network.forward(one)) for network, one in pairs], 0, weights)
            error = float(np.mean((values - self.labels) ** 2)) / (float(np.var(self.labels)) or 1.0)
            return measure(values, self.labels, self.metric), error
        outputs: Any = [log_softmax(network.forward(one).logits) for network, one in pairs]
        output = mean_of(outputs, weights)
        loss = -float(np.mean(output[np.arange(len(self.labels)), self.labels]))
        return measure(output, self.labels, self.metric), loss

    def _moved(self, m: int, columns: IntArray, taken: IntArray) -> list[FloatArray]:
        """X_k W_k + b_k of a network, its columns shuffled."""
        network = self.explainer.networks[m]
        places, change = self._change(network, columns, taken)
        moved = []
        for k, (channel, before) in enumerate(zip(network.channels, self.inputs[m], strict=True)):
            weight = network.weights[k]
            if network.is_features(channel):
                x: Any = change @ weight[:, places].T if len(places) > weight.shape[0] else change
                step = dense(channel.operator @ x if channel.factors else x)[self.nodes]
                moved.append(before + (step if len(places) > weight.shape[0] else step @ weight[:, places].T))
            elif (make := channel.of_features) is not None:
                mixed = next((vectors for vectors in network.mixtures if vectors is not None), None)
                if mixed is None:
                    whole = np.zeros((channel.n, network.features.matrix.shape[1]))
                    whole[:, places] = dense(change)
                else:
                    whole = change @ mixed[places]
                moved.append(before + make(whole)[self.nodes] @ weight.T)
            else:
                moved.append(before)
        return moved

    def _change(self, network: Linked, columns: IntArray, taken: IntArray) -> tuple[IntArray, Any]:
        """Which columns of the scaled features change, and by how much per node, a matrix that may be sparse."""
        if (
            network.member.recipe.scaling != "l1"
        ):  # columns are scaled one by one, or not at all: values move with the raw ones
            places = np.flatnonzero(np.isin(network.columns, columns))
            x = network.channels.nodes.leave(network.features.matrix[:, places], apart=True)
            return places, dense(x[taken]) - dense(x)
        features: Any = self.explainer.graph.features
        before = network.channels.nodes.leave(network.features.matrix, apart=True)
        if issparse(features):  # rows are divided by their sums: all of a row changes with one of its values
            chosen = csr_array((np.ones(len(columns)), (columns, columns)), shape=(features.shape[1],) * 2)
            own = csr_array(features, dtype=np.float64) @ chosen
            return network.columns, scale(features - own + own[taken], "l1") - before
        values = dense(features).copy()
        values[:, columns] = values[taken][:, columns]
        return network.columns, dense(scale(values, "l1")) - dense(before)
