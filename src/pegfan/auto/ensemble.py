"""Which of the trained recipes make the model, and with what weights: greedy selection on validation nodes.

Starting from nothing, the recipe is added that lowers the validation loss of the mean most, again and again; one that
is added several times has more weight. Few validation nodes are soon fitted too well. So the nodes are dealt into
`BAGS` parts, the selection is made without each part in turn, and what it gives for the part tells how good a selection
really is. The weights are the means over the parts; the fewer nodes there are, the nearer they are to the plain mean of
the recipes of lowest loss. Where the best single recipe has the better metric on the parts left out, the plain mean of
a few that are near it is put to the same test, and then the single one is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._hashing import row_hashes
from pegfan.decisions import Decision, best_offsets
from pegfan.fitted import mean_of
from pegfan.graph import Graph, Split
from pegfan.metrics import METRICS, interval, measure
from pegfan.trees import canonical_order

__all__ = ["Judge", "Selection", "greedy", "select"]

BAGS = 5
"""Parts that validation nodes are dealt into."""
FEWEST = 20
"""Validation nodes from which on they are dealt, and chance is told from the metric."""
STEPS = 40
"""How often a recipe is added."""
PLAIN, FEW = 5, 100
"""How many of lowest loss are in the plain mean, and with how many nodes it counts as much as the selection."""
LEAST = 0.02
"""The least weight of a member: less is left out."""
CLEAR = 2.0
"""How many standard errors a difference must have."""
_TINY = 1e-12


class Selection(NamedTuple):
    """What was selected.

    Attributes
    ----------
    weights
        Per trial; they sum to one, and are zero for most.
    ensemble, single
        Metric and loss of the selection and of the best single recipe, each on validation nodes that were left out when
        it was selected. NaN where there are too few for that.
    """

    weights: FloatArray
    ensemble: tuple[float, float]
    single: tuple[float, float]


class Judge:
    """The validation nodes of a split, and how outputs for them are judged.

    Nodes are looked at in an order that does not depend on how they are numbered, and so are sums.

    Parameters
    ----------
    graph, split
        Whose validation labels, or targets, decide.
    weights
        Of the nodes, in the loss.
    outputs
        What will be judged: where nodes look alike but differ in their labels, it tells them apart.
    """

    def __init__(
        self, graph: Graph, split: Split, weights: FloatArray | None = None, outputs: Sequence[Any] = ()
    ) -> None:
        assert graph.truth is not None
        self.nodes: IntArray = split.val[_ranked(graph, split.val, weights, outputs)]
        self.metric, self.numeric = graph.metric, graph.targets is not None
        self.truth: Any = graph.truth[self.nodes]
        self.shares = np.ones(len(self.nodes)) if weights is None else weights[self.nodes]
        train = graph.truth[split.train]
        self.scale = 1.0 if not self.numeric else float(np.var(np.sort(train))) or 1.0
        self.parts = np.arange(len(self.nodes)) % BAGS

    def said(self, output: Any) -> FloatArray:
        """What of an output the loss depends on: the probabilities of the true classes, or the numbers."""
        own = output[self.nodes]
        picked = own[:, 0] if self.numeric else np.exp(own[np.arange(len(own)), self.truth].astype(np.float64))
        return np.asarray(picked, np.float64)

    def losses(self, said: FloatArray, chosen: Any = slice(None)) -> FloatArray:
        """The loss of every row of what was said about some validation nodes."""
        shares = self.shares[chosen]
        each = (said - self.truth[chosen]) ** 2 / self.scale if self.numeric else -np.log(said + _TINY)
        return np.asarray((each * shares).sum(axis=1) / (shares.sum() or 1.0))

    def judged(self, output: Any) -> tuple[float, float]:
        """Metric and loss of an output for the validation nodes; a metric of decided classes as best decided there."""
        if self.numeric:
            return measure(output[:, 0], self.truth, self.metric), float(self.losses(output[None, :, 0])[0])
        decides = METRICS[self.metric].decides
        offsets = best_offsets(output, self.truth, self.metric)[0] if decides else None
        picked = np.exp(output[np.arange(len(output)), self.truth].astype(np.float64))
        return Decision(offsets=offsets).score(output, self.truth, self.metric), float(self.losses(picked[None])[0])

    def is_worse(self, output: Any, other: Any) -> bool:
        """Whether one output for the validation nodes clearly has a larger loss than another."""
        first, second = (
            (part[:, 0] - self.truth) ** 2 if self.numeric else -part[np.arange(len(part)), self.truth]
            for part in (output, other)
        )
        gaps = (first - second).astype(np.float64)
        mean = float((gaps * self.shares).sum() / (self.shares.sum() or 1.0))
        return mean > CLEAR * float(gaps.std()) / math.sqrt(max(len(gaps), 1))


def _ranked(graph: Graph, nodes: IntArray, weights: FloatArray | None, outputs: Sequence[Any]) -> IntArray:
    """The order of some nodes by what they are; of those that look alike, by all that they are judged by."""
    assert graph.truth is not None
    classes = canonical_order(graph).classes[nodes]
    if len(np.unique(classes)) == len(classes):
        return np.argsort(classes)
    told = np.zeros(len(nodes), np.uint64)
    for output in outputs:
        told = told * np.uint64(0x9E3779B97F4A7C15) + row_hashes(output[nodes])
    return np.lexsort((told, told if weights is None else weights[nodes], graph.truth[nodes], classes))


def greedy(said: FloatArray, loss: Callable[[FloatArray], FloatArray], steps: int = STEPS) -> FloatArray:
    """Weights of the rows of `said` by adding, again and again, the one that lowers the loss of the mean most.

    Of equal ones the first is taken; what had the lowest loss on the way is kept.

    Examples
    --------
    >>> said = np.array([[0.9, 0.1], [0.1, 0.9], [0.2, 0.2]])  # of two nodes, the probabilities of their classes
    >>> greedy(said, lambda rows: -np.log(rows).mean(axis=1), steps=4)
    array([0.5, 0.5, 0. ])
    """
    total, count = np.zeros(said.shape[1]), np.zeros(len(said))
    best, kept = math.inf, count
    for step in range(1, steps + 1):
        losses = loss((total + said) / step)
        at = int(losses.argmin())
        count[at] += 1
        total = total + said[at]
        if losses[at] < best:
            best, kept = float(losses[at]), count.copy()
    return np.asarray(kept / kept.sum())


def select(outputs: Sequence[Any], judge: Judge, most: int, near: Sequence[int], margin: float = 0.0) -> Selection:
    """Weights of some outputs, selected in parts: whichever is first no worse on the rest than the best single one.

    First the greedy selection, then the plain mean of a few that are near the best, then the best single one.

    Parameters
    ----------
    outputs
        Per trial, log-probabilities or numbers of all nodes.
    judge
        The validation nodes.
    most
        The most members.
    near
        The places of those that may be the best single one, by the metric on all validation nodes; of these, the one
        of lowest loss is.
    margin
        How far below the best metric those are.
    """
    said = np.stack([judge.said(output) for output in outputs])
    own = [output[judge.nodes] for output in outputs]
    every, unknown = np.arange(len(judge.nodes)), (math.nan, math.nan)
    chosen = METRICS[judge.metric]

    def ranked(nodes: IntArray) -> IntArray:
        """Those that may be the best by some of the nodes, of lowest loss first: where it is quick, by their metric."""
        pool = np.asarray(near)
        if len(nodes) < len(every) and not (chosen.decides or judge.numeric):
            gains = np.array([chosen.gain(measure(one[nodes], judge.truth[nodes], judge.metric)) for one in own])
            finite = np.isfinite(gains)
            pool = np.flatnonzero(gains >= gains[finite].max() - margin) if finite.any() else pool
        return np.asarray(pool[np.argsort(judge.losses(said[pool][:, nodes], nodes), kind="stable")])

    def greedily(nodes: IntArray) -> FloatArray:
        loss = partial(judge.losses, chosen=nodes)
        part, share = said[:, nodes], len(nodes) / (len(nodes) + FEW)
        plain = _equal(np.argsort(loss(part), kind="stable")[:PLAIN], len(outputs))
        return _pruned(share * greedy(part, loss) + (1 - share) * plain, most)

    def plainly(nodes: IntArray) -> FloatArray:
        return _equal(ranked(nodes)[: min(PLAIN, most)], len(outputs))

    if len(outputs) == 1 or len(every) < FEWEST:
        return Selection(greedily(every), unknown, unknown)
    alone = np.empty_like(own[0])
    for part in range(BAGS):
        left = np.flatnonzero(judge.parts == part)
        alone[left] = own[ranked(np.flatnonzero(judge.parts != part))[0]][left]
    single = judge.judged(alone)
    refused: list[tuple[float, float]] = []
    for weigh in (greedily, plainly):
        weights, mixed = np.zeros(len(outputs)), np.empty_like(own[0])
        for part in range(BAGS):
            left = np.flatnonzero(judge.parts == part)
            found = weigh(np.flatnonzero(judge.parts != part))
            weights += found / BAGS
            members = np.flatnonzero(found)
            mixed[left] = mean_of([own[m][left] for m in members], found[members].tolist())
        ensemble = judge.judged(mixed)
        if not chosen.gain(ensemble[0]) < chosen.gain(single[0]) and not judge.is_worse(mixed, alone):
            kept = _pruned(weights, most)
            if weigh is greedily or np.count_nonzero(kept) > 1:
                return Selection(kept, ensemble, single)
        refused.append(ensemble)
    return Selection(_equal(ranked(every)[:1], len(outputs)), refused[0], single)


def _equal(members: IntArray, count: int) -> FloatArray:
    """Equal weights of some of so many."""
    weights = np.zeros(count)
    weights[members] = 1 / len(members)
    return weights


def noise(output: Any, judge: Judge) -> float:
    """How far metrics of two models on these validation nodes may be apart by chance; the loss then decides.

    About 0.6 of the standard error of one of them: two that are judged on the same nodes vary together.
    """
    return 0.6 * standard_error(output, judge)


def standard_error(output: Any, judge: Judge) -> float:
    """The standard error of the metric of an output for the validation nodes; 0 where it is not estimated."""
    if judge.numeric or len(judge.nodes) < FEWEST:
        return 0.0
    found = interval([(output, judge.truth)], judge.metric, resamples=200)
    return 0.0 if found is None else (found[1] - found[0]) / 3.92


def _pruned(weights: FloatArray, most: int) -> FloatArray:
    """Without the smallest weights, and with at most so many."""
    order = np.argsort(-weights, kind="stable")
    kept = [m for m in order[:most].tolist() if weights[m] >= LEAST] or order[:1].tolist()
    out = np.zeros(len(weights))
    out[kept] = weights[kept] / math.fsum(weights[kept])
    return out
