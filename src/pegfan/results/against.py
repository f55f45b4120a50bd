"""Models against each other on the same splits: who is best, by how much, and which differences mean nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from pegfan._checks import check_kind, check_list, check_number, check_numbers
from pegfan.metrics import METRICS, check_metric
from pegfan.results.values import Rival, Splits

__all__ = ["gap", "paired_difference", "ranked", "rival_table", "verdict"]

_LEVEL = 0.95


def paired_difference(
    values: Sequence[float], others: Sequence[float], ratio: float
) -> tuple[float, tuple[float, float] | None]:
    """The mean difference of two metrics over the same splits, and its 95% interval.

    Splits share nodes, so that their differences are not independent, and the plain paired t interval is too narrow.
    This is the corrected one of Nadeau and Bengio (Inference for the generalization error, Machine Learning 52, 2003):
    the variance of the mean of J differences is not σ²/J but (1/J + ratio) σ².

    Parameters
    ----------
    values, others
        The metrics, split by split.
    ratio
        Test nodes over training nodes of a split.

    Returns
    -------
    float, (float, float) or None
        The interval is None for a single split.

    Examples
    --------
    >>> difference, (low, high) = paired_difference([0.5, 0.6, 0.7], [0.6, 0.6, 0.9], ratio=0.5)
    >>> round(difference, 3), round(low, 3), round(high, 3)
    (-0.1, -0.493, 0.293)
    >>> paired_difference([0.5], [0.75], ratio=0.5)
    (-0.25, None)
    """
    from scipy.special import stdtrit

    gaps = check_numbers(values, "values", None) - check_numbers(others, "others", len(values)).astype(float)
    check_number(ratio, "ratio")
    count, mean = len(gaps), float(gaps.mean())
    if count < 2:
        return mean, None
    error = math.sqrt((1 / count + ratio) * gaps.var(ddof=1))
    half = float(stdtrit(count - 1, 0.5 + _LEVEL / 2)) * error
    return mean, (mean - half, mean + half)


def ranked(rows: Iterable[Rival], splits: Splits, metric: str = "accuracy") -> tuple[Rival, ...]:
    """The rows by their mean test metric, with their differences to the best; those that did not run are last.

    Parameters
    ----------
    rows
        In any order; of equal ones the first stays first.
    splits
        On which their metrics are, in the order of ``splits.used``.
    metric
        Which it is: of some, smaller values are better.

    Examples
    --------
    >>> from pegfan.results import Spread
    >>> rows = Rival("a", "A", test=Spread.of([0.5, 0.6])), Rival("b", "B", test=Spread.of([0.7, 0.7]))
    >>> best, other = ranked(rows, Splits(sizes=((60, 20, 20), (60, 20, 20)), used=(0, 1)))
    >>> best.name, round(other.difference, 3), other.means_nothing
    ('b', -0.15, True)
    """
    rows = check_list(rows, "rows", Rival)
    check_metric(metric)
    check_kind(splits, "splits", Splits)
    every = list(rows)
    gain = METRICS[metric].gain
    ran = sorted((row for row in every if row.test is not None), key=lambda row: _mean(row, gain), reverse=True)
    sizes = [splits.sizes[i] for i in splits.used]
    ratio = float(np.mean([test / max(train, 1) for train, _, test in sizes]))
    return (*ran[:1], *(_beside(row, ran[0], ratio) for row in ran[1:]), *(row for row in every if row.test is None))


def _mean(row: Rival, gain: Callable[[float], float]) -> float:
    return -math.inf if row.test is None or row.test.mean is None else gain(row.test.mean)


def _beside(row: Rival, best: Rival, ratio: float) -> Rival:
    difference, interval = paired_difference(_values(row), _values(best), ratio)
    nothing = interval is None or interval[0] <= 0 <= interval[1]
    return replace(row, difference=difference, interval=interval, means_nothing=nothing)


def _values(row: Rival) -> list[float]:
    return [math.nan if value is None else value for value in row.test.per_split] if row.test else []


def verdict(rows: Sequence[Rival], metric: str) -> str:
    """What a table of `ranked` rows says, in words.

    Examples
    --------
    >>> from pegfan.results import Spread
    >>> rows = Rival("a", "A", test=Spread.of([0.5, 0.6])), Rival("b", "B", test=Spread.of([0.7, 0.7]))
    >>> verdict(ranked(rows, Splits(((60, 20, 20), (60, 20, 20)), used=(0, 1))), "accuracy")
    'B is best, with a test accuracy of 70.0 ± 0.0%. Its difference to A means nothing: the interval holds 0.'
    """
    rows = check_list(rows, "rows", Rival)
    check_metric(metric)
    ran = [row for row in rows if row.test is not None]
    if not ran:
        return "No model ran."
    best, others = ran[0], ran[1:]
    assert best.test is not None
    known = METRICS[metric]
    sign = "%" if known.percent and best.test.interval is None else ""
    name = f"{best.label[:1].upper()}{best.label[1:]}"
    value = f"{best.test.shown(metric, 1)}{sign}"
    first = f"{name} {'is best' if others else 'alone ran'}, with a test {known.words} of {value}."
    if others and others[0].interval is None:
        return f"{first} There is one split, so no difference means anything: compare on more of them."
    even, behind = ([row.label for row in others if row.means_nothing is wanted] for wanted in (True, False))
    sentences = [first]
    if even:
        all_of = "interval holds" if len(even) == 1 else "intervals hold"
        sentences.append(f"Its difference to {_listed(even)} means nothing: the {all_of} 0.")
    if behind:
        who = "All others" if len(behind) == len(others) > 1 else _listed(behind)
        sentences.append(f"{who} {'is' if len(behind) == 1 else 'are'} behind by more than splits explain.")
    return " ".join(sentences)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rival_table(rows: Sequence[Rival], metric: str) -> list[list[str]]:
    """The rows as text, below their titles: for terminals.

    Examples
    --------
    >>> from pegfan.results import Spread
    >>> rows = Rival("a", "A", test=Spread.of([0.5, 0.6])), Rival("b", "B", reason="it needs torch")
    >>> rival_table(rows, "accuracy")[1:]
    [['A', '55.00 ± 5.00', '', '', '', 'best'], ['B', '–', '', '', '', 'it needs torch']]
    """
    rows = check_list(rows, "rows", Rival)
    check_metric(metric)
    head = ["model", METRICS[metric].title, "difference (95% interval)", "seconds", "MB", ""]
    best = next((row for row in rows if row.test is not None), None)
    return [head, *([row.label, *_numbers(row, metric), _note(row, row is best)] for row in rows)]


def _numbers(row: Rival, metric: str) -> list[str]:
    if row.test is None:
        return ["–", "", "", ""]
    memory = "" if row.memory is None else f"{row.memory / 2**20:,.0f}"
    return [row.test.shown(metric), gap(row, metric), "" if row.seconds is None else f"{row.seconds:.2f}", memory]


def gap(row: Rival, metric: str = "accuracy") -> str:
    """A row's difference to the best and its interval, in points; nothing for the best.

    Examples
    --------
    >>> gap(Rival("a", "A", difference=-0.02, interval=(-0.05, 0.01)))
    '-2.00 (-5.00 to +1.00)'
    """
    check_kind(row, "row", Rival)
    check_metric(metric)
    if row.difference is None:
        return ""
    form, unit = ("{:+.2f}", 100) if METRICS[metric].percent else ("{:+.4f}", 1)
    ends = "" if row.interval is None else f" ({form} to {form})".format(*(unit * end for end in row.interval))
    return form.format(unit * row.difference) + ends


def _note(row: Rival, best: bool) -> str:
    return row.reason or ("best" if best else "means nothing" if row.means_nothing else "")
