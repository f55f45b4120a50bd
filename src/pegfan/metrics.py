"""How good predictions are: the one table of metrics, which of them suits some classes, and how sure a value is.

A new metric is a row of `METRICS`: values, intervals, thresholds, words and choices on the command line follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import (
    as_array,
    check_choice,
    check_integer,
    check_numbers,
    check_places,
    check_seed,
    kind_of,
    shown,
)

__all__ = ["METRICS", "Cells", "Metric", "amount", "interval", "score", "suitable", "unequal"]

RARE = 0.2
"""Two classes are unequal if fewer than this share of the labelled nodes are of one of them."""
TIMES = 10
"""More classes are unequal if the largest has more than this many times the nodes of the smallest."""
_RESAMPLES = 1000
_LEVEL = 0.95
_BLOCK = 1_000_000
"""Counts of resampled cells that are held at a time."""


@dataclass(frozen=True)
class Metric:
    """A metric, by the name that graphs, commands and files have for it.

    Attributes
    ----------
    name, words
        The name, and how people write it.
    says
        What it is, as a sentence without its subject.
    cells
        The nodes in `Cells`, from outputs (one row per node, one column per class) and class numbers.
    two_classes
        Whether it is for two classes, of which class 1 is the positive one.
    larger
        Whether larger values are better.
    likeliest
        Whether the likeliest class is the best decision, so that there is none to learn.
    percent
        Whether it is shown in per cent.
    numbers
        Whether it is for numeric targets: outputs are predicted values, labels the true ones.
    double
        Whether it is measured in double precision; those of stored runs are of outputs as they come.
    """

    name: str
    words: str
    says: str
    cells: Callable[[FloatArray, Any], Cells]
    two_classes: bool = False
    larger: bool = True
    likeliest: bool = False
    percent: bool = True
    numbers: bool = False
    double: bool = True

    @property
    def decides(self) -> bool:
        """Whether only the class that is decided on counts, not its probability."""
        return isinstance(self.cells, Confusion)

    @property
    def title(self) -> str:
        """The head of a column of values."""
        return f"{self.words}, %" if self.percent else self.words

    def gain(self, value: float) -> float:
        """The value, or its negative where smaller is better: what is to be as large as possible."""
        return value if self.larger else -value

    def show(self, value: float | None, digits: int = 2) -> str:
        """A value as text, in per cent where that is how it is shown; a dash where there is none.

        Examples
        --------
        >>> METRICS["accuracy"].show(0.8613), METRICS["log_loss"].show(0.8613, 1), METRICS["accuracy"].show(None)
        ('86.13', '0.861', '–')
        """
        check_integer(digits, "digits", least=0, most=100)
        if value is not None and not isinstance(value, int | float | np.number):
            raise TypeError(f"value must be a number or None, got {shown(value)}")
        if value is None or not np.isfinite(value):
            return "–"
        if self.in_units:
            return amount(value, digits + 2)
        return f"{100 * value:.{digits}f}" if self.percent else f"{round(value, digits + 2) + 0.0:.{digits + 2}f}"

    @property
    def in_units(self) -> bool:
        """Whether values are in units of the targets, whatever these are."""
        return self.numbers and not self.larger


def amount(value: float, digits: int = 4) -> str:
    """A number of any size in so many digits, large ones to the last.

    Examples
    --------
    >>> amount(0.012341), amount(-12.3456), amount(1234567.8)
    ('0.01234', '-12.35', '1,234,568')
    """
    digits = check_integer(digits, "digits", least=1, most=300)
    if not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"value must be a number, got {kind_of(value)}")
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def score(log_probabilities: Any, labels: Any, metric: str) -> float:
    """The value of a metric; NaN without nodes, or, for two classes, without both of them.

    Parameters
    ----------
    log_probabilities
        One row per node and one column per class; any scores will do, for the log loss those of a softmax. For metrics
        of numbers a single column, or none: the predicted values.
    labels
        Class numbers of these nodes. Of two classes, class 1 is the positive one. For metrics of numbers the true ones.
    metric
        A name of `METRICS`.

    Examples
    --------
    >>> import numpy as np
    >>> output = np.log([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    >>> score(output, np.array([0, 0, 1]), "accuracy").__round__(3), score(output, np.array([0, 0, 1]), "roc_auc")
    (0.667, 1.0)
    """
    return measure(*check_outputs(log_probabilities, labels, METRICS[check_metric(metric)].numbers), metric)


def measure(log_probabilities: Any, labels: Any, metric: str) -> float:
    """`score`, of arrays that are known to fit: training loops ask in every epoch."""
    chosen = METRICS[metric]
    if not len(labels):
        return float("nan")
    outputs = np.asarray(log_probabilities, np.float64 if chosen.double else None)
    cells = chosen.cells(outputs, np.asarray(labels))
    return float(cells.value(cells.counts[None])[0])


def unequal(counts: Sequence[int] | IntArray) -> bool:
    """Whether classes with so many labelled nodes are very unequal; those without a node do not count.

    Examples
    --------
    >>> unequal([30, 970]), unequal([400, 600]), unequal([500, 60, 40]), unequal([500, 200, 0])
    (True, False, True, False)
    """
    sizes = check_numbers(counts, "counts", None)
    sizes = sizes[sizes > 0]
    if len(sizes) < 2:
        return False
    return bool(sizes.min() < RARE * sizes.sum()) if len(sizes) == 2 else bool(sizes.max() > TIMES * sizes.min())


def suitable(counts: Sequence[int] | IntArray, names: Sequence[str]) -> tuple[str, str]:
    """The metric that suits classes of these sizes, and why.

    Parameters
    ----------
    counts
        How many labelled nodes each class has.
    names
        Of the classes.

    Examples
    --------
    >>> suitable([970, 30], ["no", "yes"])
    ('average_precision', '3.0% of the labelled nodes are “yes”, so accuracy would praise a model that finds none')
    >>> suitable([400, 600], ["no", "yes"])
    ('accuracy', 'the classes are not very unequal')
    """
    sizes = check_numbers(counts, "counts", None)
    if len(names) < len(sizes):
        raise ValueError(f"there are {len(sizes)} counts and {len(names)} names; every class has a name")
    present = np.flatnonzero(sizes)
    if not unequal(sizes):
        return "accuracy", "the classes are not very unequal"
    few, many = present[sizes[present].argmin()], int(sizes.argmax())
    if len(present) == 2 == len(sizes):
        share = 100 * sizes[few] / sizes.sum()
        why = f"{share:.1f}% of the labelled nodes are “{names[few]}”"
        return "average_precision", f"{why}, so accuracy would praise a model that finds none"
    why = f"“{names[many]}” has {sizes[many]:,} labelled nodes and “{names[few]}” {sizes[few]:,}"
    return "balanced_accuracy", f"{why}, and every class counts the same"


def interval(
    parts: Sequence[tuple[Any, Any]], metric: str, *, resamples: int = _RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """The 95% interval of a metric: what one training would give on as many other nodes of every class.

    Every resample takes the nodes of one of the splits, each as often as chance has it (Poisson weights), scaled so
    that all classes keep their sizes. So the interval holds both how values differ between splits and how few nodes
    there are, and it does not shrink because a few splits happen to agree.

    Parameters
    ----------
    parts
        Outputs and labels of the test nodes, split by split.
    metric
        A name of `METRICS`.
    resamples
        How many in all; every split has the same number.
    seed
        Of the resamples.

    Returns
    -------
    (float, float) or None
        None where the metric is not defined on any split.

    Examples
    --------
    >>> import numpy as np
    >>> output = np.eye(2)[[0] * 50 + [1] * 50]
    >>> low, high = interval([(output, np.array([0] * 40 + [1] * 60))], "accuracy")
    >>> low < 0.9 < high, 0.83 < low, high < 0.97
    (True, True, True)
    """
    check_integer(resamples, "resamples", least=1, most=10**7)
    chosen = METRICS[check_metric(metric)]
    rng = np.random.default_rng(check_seed(seed))
    resampled = [np.empty(0)]
    share = -(-resamples // max(len(parts), 1))
    for output, labels in (check_outputs(*part, chosen.numbers) for part in parts):
        if not len(labels):
            continue
        cells = chosen.cells(np.asarray(output, np.float64), np.asarray(labels))
        step = max(1, _BLOCK // len(cells.counts))
        for first in range(0, share, step):
            resampled.append(cells.value(_resampled(cells, min(step, share - first), rng)))
    values = np.concatenate(resampled)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _resampled(cells: Cells, times: int, rng: np.random.Generator) -> Any:
    """Counts of resampled nodes, one row per resample.

    A node is taken a Poisson number of times, so a cell of k nodes is taken a Poisson(k) number of times; scaled, so
    that the cells of every class keep their sum.
    """
    weights = _POISSON[rng.integers(2**16, size=(times, len(cells.counts)), dtype=np.uint16)]
    several = np.flatnonzero(cells.counts != 1)
    weights[:, several] = rng.poisson(cells.counts[several], size=(times, len(several)))
    for k in np.unique(cells.classes):
        members = cells.classes == k
        total = weights @ members.astype(np.float32)
        weights[:, members] *= (cells.counts[members].sum() / np.maximum(total, 1))[:, None].astype(np.float32)
    return weights


_POISSON: Any = np.searchsorted(
    np.cumsum([math.exp(-1.0) / math.factorial(k) for k in range(9)]), (np.arange(2**16) + 0.5) / 2**16
).astype(np.float32)
"""How often a node is taken, for 16 random bits: numbers with the shares of a Poisson variable of mean one."""


# -------------------------------------------------------------- the metrics themselves


class Cells(NamedTuple):
    """Nodes that make the same difference to a metric, in cells.

    Attributes
    ----------
    counts, classes
        How many nodes each cell holds, and their class.
    value
        The metric for other counts, one row each.
    """

    counts: FloatArray
    classes: IntArray
    value: Callable[[Any], FloatArray]


@dataclass(frozen=True)
class Confusion:
    """The cells of a metric that is made of confusion matrices, true classes by predicted ones; `value` takes many."""

    value: Callable[[Any], FloatArray]

    def __call__(self, output: FloatArray, labels: IntArray) -> Cells:
        k = output.shape[1]
        counts = np.bincount(labels * k + output.argmax(axis=1), minlength=k * k).astype(np.float64)
        return Cells(counts, np.repeat(np.arange(k), k), lambda rows: self.value(rows.reshape(-1, k, k)))

    def at_thresholds(self, hits: Any, misses: Any) -> FloatArray:
        """The values where class 1 of two is decided on for the first nodes of a ranking, so many of each class."""
        tables = np.stack([misses[-1] - misses, misses, hits[-1] - hits, hits], axis=1)
        return self.value(tables.reshape(-1, 2, 2).astype(np.float64))


def _accuracies(tables: Any) -> FloatArray:
    return np.asarray(np.trace(tables, axis1=1, axis2=2) / tables.sum(axis=(1, 2)))


def _balanced_accuracies(tables: Any) -> FloatArray:
    """The mean over the classes that occur of the share of their nodes that are found."""
    sizes = tables.sum(axis=2)
    recall = np.diagonal(tables, axis1=1, axis2=2) / np.where(sizes > 0, sizes, 1)
    return np.asarray(recall.sum(axis=1) / (sizes > 0).sum(axis=1))


def _macro_f1s(tables: Any) -> FloatArray:
    """The mean of F1 = 2 TP / (2 TP + FP + FN) over the classes that occur or are predicted."""
    both = tables.sum(axis=2) + tables.sum(axis=1)
    f1 = 2 * np.diagonal(tables, axis1=1, axis2=2) / np.where(both > 0, both, 1)
    return np.asarray(f1.sum(axis=1) / (both > 0).sum(axis=1))


def _positive_f1s(tables: Any) -> FloatArray:
    hits, wrong = tables[:, 1, 1], tables[:, 0, 1] + tables[:, 1, 0]
    return np.asarray(2 * hits / np.maximum(2 * hits + wrong, 1))


F1 = Confusion(_positive_f1s)
"""F1 of class 1 of two: what thresholds are for where the metric itself is of probabilities."""


def _ranks(value: Callable[[Any, Any], FloatArray]) -> Callable[[FloatArray, IntArray], Cells]:
    """The cells of a metric that is made of the nodes of class 1 and of class 0 per score, the highest score first.

    Scores that only nodes of class 0 have, with no node of class 1 between them, are one cell.
    """

    def cells(output: FloatArray, labels: IntArray) -> Cells:
        gaps = output[:, 0] - output[:, 1]
        order = np.argsort(gaps, kind="stable")
        ranked, positive = gaps[order], (labels[order] == 1).astype(np.float64)
        first = np.flatnonzero(np.append(True, (ranked[1:] != ranked[:-1]) & ~np.isnan(ranked[:-1])))
        hits = np.add.reduceat(positive, first)
        misses = np.diff(first, append=len(order)) - hits
        alone = hits == 0
        starts = np.flatnonzero(~(alone & np.concatenate([[False], alone[:-1]])))
        counts = np.concatenate([np.add.reduceat(part, starts) for part in (hits, misses)])
        kinds, middle = np.repeat([1, 0], len(starts)), len(starts)

        def rows(counted: Any) -> FloatArray:
            with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: one of the classes is not there
                return value(counted[:, :middle], counted[:, middle:])

        used = counts > 0

        def spread(counted: Any) -> FloatArray:
            whole = np.zeros((len(counted), len(counts)), counted.dtype)
            whole[:, used] = counted
            return rows(whole)

        return Cells(counts[used], kinds[used], spread)

    return cells


def _roc_aucs(hits: Any, misses: Any) -> FloatArray:
    """The share of pairs, one node of class 1 and one of class 0, whose scores are in that order; ties count half."""
    total = misses.sum(axis=1, keepdims=True, dtype=np.float64)
    below = total - np.cumsum(misses, axis=1, dtype=np.float64)
    return np.asarray((hits * (below + misses / 2)).sum(axis=1) / (hits.sum(axis=1, dtype=np.float64) * total[:, 0]))


def _average_precisions(hits: Any, misses: Any) -> FloatArray:
    """Σ (R_k − R_{k−1}) P_k over the distinct scores, with P_k and R_k of the nodes of the k highest ones."""
    true, false = (np.cumsum(part, axis=1, dtype=np.float64) for part in (hits, misses))
    precision = np.nan_to_num(true / (true + false))
    return np.asarray((hits * precision).sum(axis=1) / true[:, -1])


def _log_losses(output: FloatArray, labels: IntArray) -> Cells:
    from scipy.special import log_softmax

    # In an order that does not depend on how nodes are numbered, so that the value does not either.
    losses = -log_softmax(output, axis=1)[np.arange(len(labels)), labels]
    order = np.lexsort((losses, labels))
    losses = losses[order]
    return Cells(np.ones(len(labels)), labels[order], lambda rows: np.asarray(rows @ losses / rows.sum(axis=1)))


def _errors(power: int) -> Callable[[FloatArray, Any], Cells]:
    """The cells of R² (power 2) and of the mean absolute error (power 1): one per node, sorted by target and error."""

    def cells(output: FloatArray, truth: Any) -> Cells:
        values, targets = output.reshape(len(truth)), np.asarray(truth, np.float64)
        order = np.lexsort((values, targets))
        targets, errors = targets[order], np.abs(values[order] - targets[order])
        ones = np.ones(len(targets))

        def absolute(rows: Any) -> FloatArray:
            with np.errstate(invalid="ignore"):  # no node was taken
                return np.asarray(rows @ errors / rows.sum(axis=1))

        def explained(rows: Any) -> FloatArray:
            weights = np.asarray(rows, np.float64)
            shifted = targets - targets.mean()  # so that squares of large numbers do not cancel
            total = weights.sum(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):  # no node was taken, or all targets are the same
                spread = weights @ shifted**2 - (weights @ shifted) ** 2 / total
                return np.asarray(np.where(spread > 0, 1.0 - weights @ errors**2 / spread, np.nan))

        return Cells(ones, np.zeros(len(targets), np.int64), absolute if power == 1 else explained)

    return cells


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy",
            "accuracy",
            "the share of nodes in the right class",
            Confusion(_accuracies),
            likeliest=True,
            double=False,
        ),
        Metric(
            "roc_auc",
            "ROC AUC",
            "how often a positive node is ranked above another",
            _ranks(_roc_aucs),
            two_classes=True,
            double=False,
        ),
        Metric(
            "balanced_accuracy",
            "balanced accuracy",
            "the share of nodes in the right class, as a mean over classes",
            Confusion(_balanced_accuracies),
        ),
        Metric(
            "macro_f1",
            "macro F1",
            "precision and recall in one, as a mean over classes",
            Confusion(_macro_f1s),
        ),
        Metric(
            "average_precision",
            "average precision",
            "the precision among the highest ranked nodes, as a mean over those to find",
            _ranks(_average_precisions),
            two_classes=True,
        ),
        Metric(
            "log_loss",
            "log loss",
            "how far probabilities are from the truth; 0 is perfect",
            _log_losses,
            larger=False,
            percent=False,
        ),
        Metric(
            "r2",
            "R²",
            "the share of the numbers' variance that is explained; 1 is perfect, 0 no better than their mean",
            _errors(2),
            percent=False,
            numbers=True,
        ),
        Metric(
            "mae",
            "mean absolute error",
            "by how much predictions are off on average, in units of the numbers",
            _errors(1),
            larger=False,
            percent=False,
            numbers=True,
        ),
    )
}
"""All metrics, by name."""


def check_outputs(outputs: Any, labels: Any, numbers: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """What a model says of some nodes and what is true of them, as arrays that fit together.

    Parameters
    ----------
    outputs
        One row per node and one column per class; of numbers a single column, or none.
    labels
        Class numbers; true numbers where they are `numbers`.
    numbers
        Whether numbers are predicted.
    """
    array, truth = as_array(outputs, "the outputs"), check_numbers(labels, "labels", None)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"the outputs must hold real numbers, got dtype {array.dtype}")
    if array.shape[:1] != truth.shape or (
        not (array.ndim == 2 and array.shape[1]) and not (numbers and array.ndim == 1)
    ):
        raise ValueError(f"the outputs must have a row for each of the {len(truth)} labels, got shape {array.shape}")
    if not numbers:
        truth = check_places(truth, "labels", array.shape[1])
    return array, truth


def check_metric(name: Any) -> str:
    """Refuse a metric that does not exist."""
    check_choice(name, "metric", METRICS)
    return str(name)
