"""From probabilities to decisions: calibrated probabilities, and the class that is decided on.

Both are learned from out-of-fold predictions, those for nodes that a network was not trained on, and are a few numbers
that a model keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import (
    as_array,
    check_integer,
    check_kind,
    check_list,
    check_mapping,
    check_number,
    check_numbers,
    shown,
)
from pegfan.metrics import F1, METRICS, Confusion, check_metric, check_outputs, score, unequal
from pegfan.running import one_thread

__all__ = ["Calibration", "Decision", "Predictions", "best_offsets", "calibration_error", "reliability"]

_FOLDS = 5
_MOST = 65_536
"""The most predictions that a decision is learned from; of more, evenly spaced ones by class and score."""
_FEWEST = 30
"""Fewer predictions than these calibrate nothing."""
_RIDGE = 0.05
_BINS = 10
_STRENGTHS = np.linspace(0.0, 1.25, 11)
"""How far decisions go from the likeliest class (0) to one that counts every class alike (1), and a little beyond."""


class Predictions(NamedTuple):
    """Out-of-fold predictions, one per row.

    Attributes
    ----------
    log_probabilities
        Per class.
    labels
        The true classes.
    nodes
        Which node it is about: a node may be predicted several times, by networks of several splits.
    """

    log_probabilities: Any
    labels: IntArray
    nodes: IntArray

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """Several of them as one."""
        parts = check_list(parts, "parts", Predictions)
        if not parts:
            raise ValueError("parts must not be empty")
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def without(self, nodes: IntArray) -> Predictions:
        """Those about other nodes."""
        kept = ~np.isin(self.nodes, as_array(nodes, "nodes"))
        return Predictions(*(column[kept] for column in self))

    def sorted(self) -> Predictions:
        """In an order that does not depend on how nodes are numbered."""
        order = np.lexsort((*np.asarray(self.log_probabilities).T, self.labels))
        return Predictions(*(column[order] for column in self))

    def some(self, most: int) -> Predictions:
        """At most so many of them, evenly spaced."""
        check_integer(most, "most", least=1)
        count = len(self.labels)
        return self if count <= most else Predictions(*(column[np.arange(most) * count // most] for column in self))


@dataclass(frozen=True)
class Calibration:
    """Probabilities made true: softmax(scale · log p + shifts), which is Platt's scaling for two classes.

    Attributes
    ----------
    scale
        Positive, so that the order of nodes by their probability of one of two classes stays what it is. Below 1 where
        a network is too sure of itself.
    shifts
        One per class; they sum to zero. Positive where a class is more frequent than a network says.

    Examples
    --------
    >>> import numpy as np
    >>> sure = np.log([[0.99, 0.01]] * 100)
    >>> round(float(np.exp(Calibration.fit(sure, np.repeat([0, 1], [90, 10])).applied(sure))[0, 1]), 2)
    0.1
    """

    scale: float
    shifts: tuple[float, ...]

    def applied(self, log_probabilities: Any) -> Any:
        """Calibrated logarithms of probabilities, in the type of those that are given."""
        from scipy.special import log_softmax

        log_probabilities = check_numbers(log_probabilities, "log_probabilities", None, len(self.shifts))

        given = np.asarray(log_probabilities)
        moved = self.scale * given.astype(np.float64) + np.asarray(self.shifts)
        return log_softmax(moved, axis=1).astype(given.dtype)

    @classmethod
    def fit(cls, log_probabilities: Any, labels: Any, shifting: bool = True) -> Self:
        """The calibration with the least log loss on some predictions.

        Parameters
        ----------
        log_probabilities, labels
            Per class, and the true classes.
        shifting
            Whether classes may be shifted; without it, only the scale is fitted, and the likeliest class stays the
            likeliest.
        """
        from scipy.optimize import minimize
        from scipy.special import log_softmax

        log_probabilities, labels = check_outputs(log_probabilities, labels)

        given, truth = np.asarray(log_probabilities, np.float64), np.asarray(labels)
        given = np.maximum(given, -50.0)  # a probability of zero would make any other scale infinitely bad
        count, classes = given.shape
        rows = np.arange(count)

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            scale, shifts = np.exp(x[0]), x[1:] if shifting else np.zeros(classes)
            logs = log_softmax(scale * given + shifts, axis=1)
            error = np.exp(logs)
            error[rows, truth] -= 1.0
            by_scale = scale * float((error * given).sum()) / count + _RIDGE * x[0] / count
            by_shifts = error.sum(axis=0) / count + _RIDGE * shifts / count
            value = -float(logs[rows, truth].mean()) + _RIDGE * float((x**2).sum()) / 2 / count
            return value, np.concatenate([[by_scale], by_shifts if shifting else []])

        start = np.zeros(1 + classes * shifting)
        bounds = [(-4.0, 4.0)] + [(-30.0, 30.0)] * (len(start) - 1)
        with one_thread():  # the vectors are short: threads would only wait for each other
            found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        shifts = found.x[1:] - found.x[1:].mean() if shifting else np.zeros(classes)
        return cls(float(np.exp(found.x[0])), tuple(map(float, shifts)))


@dataclass(frozen=True)
class Decision:
    """How a model decides: what its probabilities become, and which class they speak for.

    Attributes
    ----------
    calibration
        None where it would not have made probabilities better.
    offsets
        What is taken from the logarithms of the classes' probabilities before the largest one is looked for; None for
        nothing. Of two classes, class 1 is decided on from `threshold` on.
    aim
        What the offsets were chosen to make large, in words; empty where there are none.
    tested
        Log loss without and with the calibration, each on predictions that it was not fitted to; None where there were
        too few.
    predictions
        How many it was learned from.
    """

    calibration: Calibration | None = None
    offsets: tuple[float, ...] | None = None
    aim: str = ""
    tested: tuple[float, float] | None = None
    predictions: int = 0

    @property
    def threshold(self) -> float | None:
        """The probability from which class 1 of two is decided on; None if that is half, or there are more classes."""
        if self.offsets is None or len(self.offsets) != 2:
            return None
        return float(1.0 / (1.0 + np.exp(self.offsets[0] - self.offsets[1])))

    def with_threshold(self, threshold: float, aim: str = "asked for") -> Decision:
        """The decision with another threshold, for two classes.

        Examples
        --------
        >>> round(Decision().with_threshold(0.3).threshold, 6)
        0.3
        """
        check_number(threshold, "threshold")
        if not 0 < threshold < 1:
            raise ValueError(f"a threshold is a probability between 0 and 1, got {threshold}")
        return replace(self, offsets=(0.0, float(np.log(threshold) - np.log1p(-threshold))), aim=aim)

    def asked(self, calibrated: Any, threshold: float | None = None, flag_share: float | None = None) -> Decision:
        """The decision with a threshold that is asked for, or one that flags a share of some nodes.

        Examples
        --------
        >>> import numpy as np
        >>> p = np.linspace(0.001, 0.1, 100)
        >>> output = np.log(np.stack([1 - p, p], axis=1))
        >>> Decision().asked(output, flag_share=0.02).classes(output).sum()
        np.int64(2)
        """
        if threshold is not None and flag_share is not None:
            raise ValueError("give a threshold or the share of nodes to flag, not both")
        if threshold is not None:
            return self.with_threshold(threshold)
        if flag_share is None:
            return self
        if not 0 < check_number(flag_share, "flag_share") < 1:
            raise ValueError(f"the share of nodes to flag is between 0 and 1, got {flag_share}")
        gaps = np.sort(np.asarray(calibrated[:, 1], np.float64) - calibrated[:, 0])[::-1]
        gap = gaps[max(1, round(flag_share * len(gaps))) - 1]
        return replace(self, offsets=(0.0, float(gap)), aim=f"{100 * flag_share:g}% of the nodes")

    def calibrated(self, log_probabilities: Any) -> Any:
        """Logarithms of probabilities as they should be."""
        return log_probabilities if self.calibration is None else self.calibration.applied(log_probabilities)

    def classes(self, calibrated: Any) -> IntArray:
        """The classes that calibrated logarithms of probabilities speak for."""
        calibrated = check_numbers(calibrated, "calibrated", None, None if self.offsets is None else len(self.offsets))
        if not calibrated.shape[1]:
            raise ValueError("calibrated must have a column for each class, and has none")
        if self.offsets is None:
            return np.asarray(calibrated.argmax(axis=1))
        if len(self.offsets) == 2:  # as the threshold is told: from it on, not above it
            gap = np.asarray(calibrated[:, 1], np.float64) - calibrated[:, 0]
            return np.asarray(gap >= self.offsets[1] - self.offsets[0] - 1e-9, np.int64)
        return np.asarray((calibrated - np.asarray(self.offsets)).argmax(axis=1))

    def judged(self, log_probabilities: Any, metric: str) -> Any:
        """What `pegfan.metrics.score` is to be given: calibrated logarithms, or ones and zeros of decided classes."""
        check_metric(metric)
        calibrated = self.calibrated(log_probabilities)
        if not METRICS[metric].decides or self.offsets is None:
            return calibrated
        return np.eye(calibrated.shape[1])[self.classes(calibrated)]

    def score(self, log_probabilities: Any, labels: Any, metric: str) -> float:
        """The metric of the decided classes, or of the calibrated probabilities."""
        return score(self.judged(log_probabilities, metric), labels, metric)

    @classmethod
    def of(cls, given: Predictions, metric: str) -> Self:
        """Learn from out-of-fold predictions.

        Parameters
        ----------
        given
            Of nodes that decided neither about weights nor, as far as possible, about settings.
        metric
            What is measured: where accuracy is, the likeliest class is decided on.

        Notes
        -----
        The calibration is used only if it lowers the log loss of predictions that it was not fitted to: the nodes are
        divided into five parts, and each is judged by a calibration of the other four. Classes are shifted where they
        are unequal. Of two unequal classes, the threshold has the largest F1 of class 1 (or the largest metric, where
        that is one of decisions); of more, the offsets are the share of log(class frequency) that is best for it.
        """
        check_kind(given, "given", Predictions)
        check_metric(metric)
        check_outputs(given.log_probabilities, given.labels)
        rows = given.sorted().some(_MOST)
        counts = np.bincount(rows.labels, minlength=rows.log_probabilities.shape[1])
        calibration, tested = _calibration(rows, unequal(counts)) if len(rows.labels) >= _FEWEST else (None, None)
        made = cls(calibration, tested=tested, predictions=len(rows.labels))
        offsets, aim = best_offsets(made.calibrated(rows.log_probabilities), rows.labels, metric)
        return replace(made, offsets=offsets, aim=aim)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        calibration = self.calibration and {"scale": self.calibration.scale, "shifts": list(self.calibration.shifts)}
        return {
            "calibration": calibration,
            "offsets": None if self.offsets is None else list(self.offsets),
            "aim": self.aim,
            "tested": None if self.tested is None else list(self.tested),
            "predictions": self.predictions,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], classes: int) -> Self:
        """What `to_dict` gave, for a model of so many classes; anything else is a ValueError."""
        check_mapping(stored, "stored")
        if missing := {"calibration", "offsets", "aim", "tested", "predictions"} - set(stored):
            raise ValueError(f"this is not what Decision.to_dict wrote: it has no {sorted(missing)[0]!r}")
        calibration = stored["calibration"]
        if calibration is not None:
            check_mapping(calibration, "the calibration")
            if missing := {"scale", "shifts"} - set(calibration):
                raise ValueError(f"the calibration has no {sorted(missing)[0]!r}")
            (scale,), shifts = _numbers([calibration["scale"]], 1), _numbers(calibration["shifts"], classes)
            if scale <= 0:
                raise ValueError(f"a calibration with the scale {scale} would turn probabilities around")
            calibration = Calibration(scale, shifts)
        offsets = None if stored["offsets"] is None else _numbers(stored["offsets"], classes)
        tested = None if stored["tested"] is None else _numbers(stored["tested"], 2)
        pair = None if tested is None else (tested[0], tested[1])
        return cls(calibration, offsets, str(stored["aim"]), pair, int(stored["predictions"]))


def _numbers(values: Any, count: int) -> tuple[float, ...]:
    numbers = tuple(map(float, check_numbers(values, "a decision's numbers", None)))
    if len(numbers) != count or not all(np.isfinite(numbers)):
        raise ValueError(f"a decision needs {count} finite numbers, and has {shown(values)}")
    return numbers


def _calibration(rows: Predictions, shifting: bool) -> tuple[Calibration | None, tuple[float, float]]:
    """The calibration, if it helps on predictions that it was not fitted to; and the losses without and with it."""
    _, first, place = np.unique(rows.nodes, return_index=True, return_inverse=True)
    turn = np.argsort(np.argsort(first))  # of every node, by its first row: rows are sorted by class and score
    fold = (turn % _FOLDS)[place]
    outputs = np.asarray(rows.log_probabilities, np.float64)
    held_out = np.empty_like(outputs)
    for k in range(_FOLDS):
        own = fold == k
        if own.any():
            held_out[own] = Calibration.fit(outputs[~own], rows.labels[~own], shifting).applied(outputs[own])
    before, after = (score(part, rows.labels, "log_loss") for part in (outputs, held_out))
    used = Calibration.fit(outputs, rows.labels, shifting) if after < before else None
    return used, (before, after)


def best_offsets(log_probabilities: Any, labels: IntArray, metric: str) -> tuple[tuple[float, ...] | None, str]:
    """The offsets of a `Decision` that are best on some nodes, and what they make large; None for the likeliest class.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.02, 0.04, 0.06, 0.1, 0.2, 0.05, 0.01, 0.01, 0.02, 0.02])
    >>> output = np.log(np.stack([1 - p, p], axis=1))
    >>> offsets, aim = best_offsets(output, (p > 0.15).astype(int), "average_precision")
    >>> round(Decision(offsets=offsets).threshold, 3), aim
    (0.143, 'F1')
    """
    log_probabilities, labels = check_outputs(log_probabilities, labels)
    check_metric(metric)
    outputs, truth = np.asarray(log_probabilities, np.float64), np.asarray(labels)
    classes = outputs.shape[1]
    counts = np.bincount(truth, minlength=classes)
    judge = METRICS[metric]
    if judge.likeliest or (counts > 0).sum() < 2:
        return None, ""
    if classes == 2:
        if not judge.decides and (not unequal(counts) or counts[1] > counts[0]):
            return None, ""
        aim, sign = (judge.cells, judge.gain(1.0)) if isinstance(judge.cells, Confusion) else (F1, 1.0)
        return (
            0.0,
            _best_gap(outputs[:, 1] - outputs[:, 0], truth == 1, aim, sign),
        ), judge.words if judge.decides else "F1"
    if not judge.decides:
        return None, ""
    frequency = np.log(np.maximum(counts, 1) / counts.sum())
    values = [judge.gain(score(outputs - strength * frequency, truth, metric)) for strength in _STRENGTHS]
    best = _STRENGTHS[int(np.argmax(values))]  # the first of equals, nearest to the likeliest class
    return (tuple(map(float, best * frequency)), judge.words) if best else (None, "")


def _best_gap(gaps: FloatArray, positive: Any, aim: Confusion, sign: float) -> float:
    """The log odds from which class 1 is decided on: between two nodes, where the aim is best."""
    values, index = np.unique(-gaps, return_inverse=True)
    hits, misses = (np.cumsum(np.bincount(index, part, minlength=len(values))) for part in (positive, ~positive))
    best = int(np.argmax(sign * aim.at_thresholds(hits, misses)))
    edge = values[best : best + 2]
    return float(np.clip(-edge.mean(), -30.0, 30.0))


def reliability(log_probabilities: Any, labels: IntArray) -> list[tuple[float, float, int]]:
    """How often something comes true that is given a probability: mean probability, share and number of nodes per bin.

    Of two classes, the probability is that of class 1; of more, that of the likeliest class, which comes true where
    the node is of it. The ten bins are of equal width, and those without a node are left out.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.12, 0.14, 0.16, 0.18, 0.9])
    >>> bins = reliability(np.log(np.stack([1 - p, p], axis=1)), np.array([0, 0, 0, 1, 1]))
    >>> [(round(said, 2), true, nodes) for said, true, nodes in bins]
    [(0.15, 0.25, 4), (0.9, 1.0, 1)]
    """
    log_probabilities, labels = check_outputs(log_probabilities, labels)
    p = np.exp(np.asarray(log_probabilities, np.float64))
    said, true = (p[:, 1], labels == 1) if p.shape[1] == 2 else (p.max(axis=1), p.argmax(axis=1) == labels)
    place = np.minimum((said * _BINS).astype(int), _BINS - 1)
    found = []
    for k in np.unique(place):
        own = place == k
        found.append((float(said[own].mean()), float(true[own].mean()), int(own.sum())))
    return found


def calibration_error(log_probabilities: Any, labels: IntArray) -> float:
    """The expected calibration error: the mean gap between probability and share over the bins of `reliability`.

    Examples
    --------
    >>> import numpy as np
    >>> calibration_error(np.log([[0.25, 0.75]] * 4), np.array([1, 1, 1, 0]))
    0.0
    """
    bins = reliability(log_probabilities, labels)
    total = sum(count for _, _, count in bins)
    return sum(count * abs(said - true) for said, true, count in bins) / total if total else float("nan")
