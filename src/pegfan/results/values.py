"""The parts of a result. Every part checks its members against their annotations when it is made."""

from __future__ import annotations

import functools
import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from pegfan._checks import check_integer, check_list, check_numbers, check_places, kind_of, shown
from pegfan._plain import plain
from pegfan.datasets.sources import Source
from pegfan.graph import Split
from pegfan.metrics import METRICS, check_metric
from pegfan.recipe import Recipe

FORMAT, VERSION = "pegfan result", 3

_MOST, _LONGEST, _LARGEST = 1_000_000, 10_000_000, 2**63
"""The most entries of a list, the longest text, and a number that no count reaches."""

Numbers = tuple[float | None, ...]


class Part:
    """Members are checked against their annotations.

    NumPy's values become Python's, a number that may be missing and is not finite becomes None, and a `ValueError`
    names a member that is anything else.
    """

    def __post_init__(self) -> None:
        for name, kind in _members(type(self)).items():
            object.__setattr__(self, name, _checked(kind, getattr(self, name), name))


@dataclass(frozen=True)
class TargetFacts(Part):
    """The known numbers that are to be predicted: their mean, spread and range."""

    mean: float
    std: float
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Data(Part):
    """What is known of the graph, by the names of `pegfan.measures.Description`.

    Attributes
    ----------
    classes, class_counts
        Names of the classes, and how many labelled nodes each has.
    metric
        What is measured on the graph: a name of `pegfan.metrics.METRICS`.
    positive
        Of two classes, the one that is looked for: the second, class 1. None where the metric does not tell them apart.
    ccns
        `pegfan.measures.ccns`; None where there are no labels or too many classes.
    report
        What the reader of the files said.
    feature_names
        Of the columns, where they have names.
    schema
        How the columns of files were read, `pegfan.datasets.Schema.to_dict`.
    target
        The numbers to predict; None where there are classes.
    """

    nodes: int
    edges: int
    directed: bool
    features: int
    labelled: int
    components: int
    isolated: int
    edge_homophily: float | None
    node_homophily: float | None
    adjusted_homophily: float | None
    label_informativeness: float | None
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    metric: str = "accuracy"
    ccns: tuple[Numbers, ...] | None = None
    report: str | None = None
    feature_names: tuple[str, ...] | None = None
    schema: Mapping[str, Any] | None = None
    positive: str | None = None
    target: TargetFacts | None = None
    things: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_metric(self.metric)
        _square(self.ccns or (), len(self.classes), "ccns")
        if self.target is not None and (self.classes or not METRICS[self.metric].numbers):
            raise ValueError(f"target is there, and so are classes or the metric {self.metric!r}, which is for classes")
        if len(self.class_counts) != len(self.classes):
            raise ValueError(f"class_counts has {len(self.class_counts)} entries for {len(self.classes)} classes")


@dataclass(frozen=True)
class Splits(Part):
    """Numbers of training, validation and test nodes per split; which splits were used, that of the model first."""

    sizes: tuple[tuple[int, int, int], ...]
    used: tuple[int, ...] = (0,)
    made: bool = False

    @classmethod
    def of(cls, splits: Iterable[Split], used: Iterable[int] = (0,), made: bool = False) -> Self:
        """The sizes of some splits."""
        return cls(
            tuple((len(part.train), len(part.val), len(part.test)) for part in check_list(splits, "splits", Split)),
            tuple(check_places(used if hasattr(used, "shape") else list(used), "used", 2**31).tolist()),
            made,
        )


@dataclass(frozen=True)
class Candidate(Part):
    """A recipe that was tried, how it did on validation, whether it was chosen and why; and its weight in the model."""

    name: str
    recipe: Recipe
    val_metric: float | None
    val_loss: float | None
    seconds: float
    epochs: int
    chosen: bool
    why: str = ""
    weight: float = 0.0


@dataclass(frozen=True)
class Chosen(Part):
    """How the model was chosen and why; its metric and loss on validation."""

    how: str
    reason: str
    val_metric: float | None = None
    val_loss: float | None = None


@dataclass(frozen=True)
class Spread(Part):
    """A metric on several splits, with mean and population standard deviation of the values that are known.

    `interval` is the 95% one of `pegfan.metrics.interval`, from resampled nodes and splits, where it was computed.
    """

    mean: float | None
    std: float | None
    per_split: Numbers = ()
    name: str = ""
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, values: Iterable[float], name: str = "", interval: tuple[float, float] | None = None) -> Self:
        """The spread of some values.

        Examples
        --------
        >>> Spread.of([0.5, float("nan"), 1.0])
        Spread(mean=0.75, std=0.25, per_split=(0.5, None, 1.0), name='', interval=None)
        """
        given = tuple(check_numbers(values if hasattr(values, "shape") else list(values), "values", None).tolist())
        known = [value for value in given if math.isfinite(value)]
        mean, std = (float(np.mean(known)), float(np.std(known))) if known else (None, None)
        return cls(mean, std, given, name, interval)

    def __format__(self, form: str) -> str:
        """In per cent, mean ± deviation if there are several values; a dash where nothing is known."""
        if self.mean is None:
            return "–"
        several = sum(value is not None for value in self.per_split) > 1
        return " ± ".join(format(100 * (value or 0.0), form) for value in (self.mean, self.std)[: 1 + several])

    def shown(self, metric: str, digits: int = 2) -> str:
        """As the metric is shown: the mean and its interval; without one, the mean and the deviation of several values.

        Examples
        --------
        >>> Spread.of([0.91, 0.92], interval=(0.88, 0.97)).shown("roc_auc", 1)
        '91.5 (88.0 to 97.0)'
        >>> Spread.of([0.5, 1.0]).shown("log_loss", 1)
        '0.750 ± 0.250'
        """
        show = METRICS[check_metric(metric)].show
        check_integer(digits, "digits", least=0, most=100)
        if self.interval is not None:
            low, high = (show(end, digits) for end in self.interval)
            return f"{show(self.mean, digits)} ({low} to {high})"
        several = sum(value is not None for value in self.per_split) > 1
        return " ± ".join(show(value, digits) for value in (self.mean, self.std)[: 1 + several])


@dataclass(frozen=True)
class Bin(Part):
    """Test nodes with about the same probability: its mean, the share of them for which it came true, and how many."""

    said: float
    true: float
    nodes: int


@dataclass(frozen=True)
class Calibrated(Part):
    """How far probabilities can be believed, see `pegfan.decisions`.

    Attributes
    ----------
    used
        Whether probabilities were calibrated: only if that lowers the log loss of predictions it was not fitted to.
    scale, shifts
        What was fitted, to `predictions` out-of-fold ones; None and empty where nothing was.
    loss_before, loss_after
        The log loss without and with it, on predictions that it was not fitted to.
    error_before, error_after
        The expected calibration error on test nodes, of the bins of `pegfan.decisions.reliability`.
    before, after
        Those bins, of the networks' own probabilities and of those that predictions have.
    """

    used: bool
    predictions: int
    scale: float | None = None
    shifts: tuple[float, ...] = ()
    loss_before: float | None = None
    loss_after: float | None = None
    error_before: float | None = None
    error_after: float | None = None
    before: tuple[Bin, ...] = ()
    after: tuple[Bin, ...] = ()


@dataclass(frozen=True)
class Decided(Part):
    """How the class is decided on where it is not the likeliest one, and what that gives on the model's test nodes.

    Attributes
    ----------
    aim
        What the rule makes as large as possible on out-of-fold predictions, or who asked for it.
    threshold
        Of two classes, the probability from which the positive one is decided on; None for more classes.
    offsets
        What is taken from the logarithms of the classes' probabilities.
    flagged, flagged_nodes
        How many test nodes, and how many nodes in all, are decided to be of the positive class.
    precision, recall
        Of the positive class, on test nodes.
    """

    aim: str
    threshold: float | None = None
    offsets: tuple[float, ...] = ()
    flagged: int | None = None
    flagged_nodes: int | None = None
    precision: float | None = None
    recall: float | None = None


@dataclass(frozen=True)
class Rival(Part):
    """A model among others on the same splits, see `pegfan.compare`.

    Attributes
    ----------
    name, label
        Its name, and how it is written.
    recipe, how
        The settings that won on validation, as a mapping and in a short line.
    test, validation
        The metric of these settings, split by split; None where the model did not run.
    difference, interval
        The mean over splits of the difference to the best one's test metric, and its 95% interval
        (`pegfan.results.paired_difference`).
    means_nothing
        Whether the interval holds 0, or is not known.
    seconds, search_seconds, memory
        CPU seconds of its training per split and those of its search in all; the most bytes that a process held.
    reason
        Why it did not run.
    """

    name: str
    label: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    how: str = ""
    test: Spread | None = None
    validation: Spread | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    means_nothing: bool = False
    seconds: float | None = None
    search_seconds: float | None = None
    memory: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class PerClass(Part):
    """A class among the test nodes; precision and recall are None where nothing was predicted, or nothing there."""

    name: str
    support: int
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Curve(Part):
    """A training run, epoch by epoch."""

    name: str
    train_loss: Numbers
    val_loss: Numbers
    val_metric: Numbers
    best_epoch: int


@dataclass(frozen=True)
class ChannelWeight(Part):
    """A channel of a network: its name, symbol and description, what it shows, its scale, and its weight."""

    name: str
    symbol: str
    words: str
    group: Literal["features", "hops", "scales", "other"]
    scale: int | None
    weight: float


@dataclass(frozen=True)
class Attention(Part):
    """The weights of a network's channels."""

    member: str
    channels: tuple[ChannelWeight, ...]


@dataclass(frozen=True)
class Unsure(Part):
    """A node about which the model is in doubt: its two likeliest classes, and the true one where it is known."""

    id: str
    predicted: str
    probability: float
    second: str
    second_probability: float
    true: str | None = None


@dataclass(frozen=True)
class ReasonPart(Part):
    """One of the parts that a score falls into."""

    words: str
    contribution: float


@dataclass(frozen=True)
class Reasons(Part):
    """Why a node has its score; see `pegfan.explain`.

    Attributes
    ----------
    id, target
        The node, and the class that the score is for.
    score, average
        The log-odds of the class for the node, and for the average node.
    parts
        The largest of the parts that add up to the difference: own columns, other nodes, and what belongs to neither.
    groups
        What the features themselves, hops, scales and other channels add to the difference.
    """

    id: str
    target: str
    score: float
    average: float
    parts: tuple[ReasonPart, ...]
    groups: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ranked(Part):
    """A node that is worth a look: the class that it is ranked for, its probability, and the true class if known."""

    id: str
    target: str
    probability: float
    true: str | None = None


@dataclass(frozen=True)
class Ranking(Part):
    """The nodes to look at first.

    Attributes
    ----------
    by
        The class by whose probability nodes are ranked, the rarer one of two; None where every node is ranked among
        those that are predicted as its class.
    rows
        The first ones.
    total
        How many nodes are ranked.
    held_out
        Whether these are test nodes, for want of nodes without a label.
    """

    by: str | None
    rows: tuple[Ranked, ...]
    total: int
    held_out: bool = False


@dataclass(frozen=True)
class Predicted(Part):
    """A node with the number that is predicted for it, and the true one where it is known."""

    id: str
    value: float
    true: float | None = None


@dataclass(frozen=True)
class Regression(Part):
    """How good predicted numbers are, and which nodes to look at.

    Attributes
    ----------
    scores
        By the name of a metric, ``"r2"`` and ``"mae"``: the spread over splits of this model, of the features alone,
        and of always predicting the mean of training nodes.
    bias, rmse, median_error, most_error
        On the test nodes of the model: the mean of predicted minus true numbers, the root of the mean square,
        the median of the absolute errors, and what nine in ten of them do not exceed.
    points
        Test nodes, evenly chosen by their true number where there are many.
    worst
        The test nodes with the largest errors.
    first, total, held_out
        Nodes without a known number by the predicted one, the largest first, and how many there are; test nodes where
        every number is known.
    """

    scores: Mapping[str, tuple[Spread, Spread, Spread]]
    bias: float | None = None
    rmse: float | None = None
    median_error: float | None = None
    most_error: float | None = None
    points: tuple[Predicted, ...] = ()
    worst: tuple[Predicted, ...] = ()
    first: tuple[Predicted, ...] = ()
    total: int = 0
    held_out: bool = False


@dataclass(frozen=True)
class Gain(Part):
    """What is found among the nodes with the highest probability.

    Attributes
    ----------
    share, nodes
        The part of all test nodes that is looked at, and how many nodes these are.
    found
        How many of them are of the class; on average, where equal probabilities leave a choice.
    precision, recall, lift
        The part of those looked at that is of the class, the part of the class that is found, and how many times
        more that is than among nodes drawn at random.
    """

    share: float
    nodes: int
    found: float
    precision: float
    recall: float
    lift: float


@dataclass(frozen=True)
class PrecisionRecall(Part):
    """How test nodes of a class are found when nodes are looked at by their probability, the highest first.

    Attributes
    ----------
    name, positives, total
        The class, its test nodes, and all test nodes.
    average_precision
        The mean of the precision over recall.
    recall, precision
        The curve, from high thresholds to low ones.
    gains
        What is found at the top.
    """

    name: str
    positives: int
    total: int
    average_precision: float
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    gains: tuple[Gain, ...] = ()


@dataclass(frozen=True)
class Importance(Part):
    """How much the metric on test nodes drops, and the loss grows, when a column is shuffled among nodes.

    See `pegfan.importance`.
    """

    name: str
    columns: int
    drop: float | None
    std: float | None
    loss: float | None


@dataclass(frozen=True)
class Importances(Part):
    """The importance of columns, the largest drop first, and how many columns were not tried."""

    rows: tuple[Importance, ...]
    left_out: int = 0


@dataclass(frozen=True)
class Note(Part):
    """Something that a careful reader would want to know."""

    kind: str
    text: str


@dataclass(frozen=True)
class TreeFacts(Part):
    """The tree of a model: how it was built, and its clusters per level."""

    method: str | None
    h: int
    levels: int
    clusters: tuple[int, ...]
    member: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seconds(Part):
    """How long it took: in all, for the search, and for the rest."""

    total: float
    search: float | None = None
    final: float | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Part):
    """What a training run gave: all that ``result.json`` holds and the report shows.

    Only `data` is required; the report says which other parts are missing.

    Attributes
    ----------
    title, command, when, source, versions, seconds, budget, seed
        What to call it, and what repeats it.
    data, splits
        What was learned from.
    candidates, chosen
        What was tried, the members of the model first, then the best on validation; and what was kept.
    test, validation, majority, features_only
        The metric of the model on several splits; of always predicting the largest class; of the features alone.
    confusion, per_class
        On the labelled test nodes of the model's split: true classes by predicted ones, and what that says per class.
    curves, attention
        Of the networks that were kept.
    unsure
        The nodes that the model is least sure about.
    warnings
        What a careful reader would want to know.
    tree
        The model's tree, or None.
    against
        The model among others on the same splits, the best first, where it was compared.
    metric_reason
        Why it is judged by this metric.
    calibrated, decided
        How far probabilities can be believed, and how a class is decided on; None where that is not known, or where
        the likeliest class is taken.
    ranking, precision_recall
        The nodes to look at first, and how test nodes of a class are found by their probability: of the rarer class
        of two, or of every class.
    importances
        Of the columns, on test nodes.
    reasons
        Of the nodes that are ranked first, and of those that the model is unsure about.
    regression
        How good predicted numbers are; None where classes are predicted. The majority is then their mean.

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan import results
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]], labels=["a", "b", "b"])
    >>> result = results.Result(title="A path", data=results.data(graph), test=results.Spread.of([0.5, 1.0]))
    >>> results.Result.from_json(result.to_json()) == result
    True
    """

    title: str = "PEGFAN"
    command: str | None = None
    when: str | None = None
    source: Source | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Seconds | None = None
    budget: float | None = None
    seed: int | None = None
    data: Data
    splits: Splits | None = None
    candidates: tuple[Candidate, ...] = ()
    chosen: Chosen | None = None
    test: Spread | None = None
    validation: Spread | None = None
    majority: Spread | None = None
    features_only: Spread | None = None
    confusion: tuple[tuple[int, ...], ...] = ()
    per_class: tuple[PerClass, ...] = ()
    curves: tuple[Curve, ...] = ()
    attention: tuple[Attention, ...] = ()
    unsure: tuple[Unsure, ...] = ()
    warnings: tuple[Note, ...] = ()
    tree: TreeFacts | None = None
    against: tuple[Rival, ...] = ()
    metric_reason: str = ""
    calibrated: Calibrated | None = None
    decided: Decided | None = None
    ranking: Ranking | None = None
    precision_recall: tuple[PrecisionRecall, ...] = ()
    importances: Importances | None = None
    reasons: tuple[Reasons, ...] = ()
    regression: Regression | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _square(self.confusion, len(self.data.classes), "confusion")

    def __repr__(self) -> str:
        score = "" if self.test is None else f", {self.data.metric} {self.test.shown(self.data.metric, 1)} on test"
        return f"Result({self.title!r}, {self.data.nodes:,} nodes{score})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the format and its version."""
        tried = [asdict(candidate) | {"recipe": candidate.recipe.to_dict()} for candidate in self.candidates]
        return {"format": FORMAT, "version": VERSION, **plain(asdict(self) | {"candidates": tried})}

    def to_json(self) -> str:
        """The result as text, for `from_json`."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The result that `to_json` wrote, in this version of the format.

        Raises
        ------
        ValueError
            If the text is anything else; it names the member that is missing or not what it should be.
        """
        try:
            if not isinstance(text, str | bytes):
                raise TypeError(f"text must be str or bytes, got {kind_of(text)}")
            stored = json.loads(text)
            if not isinstance(stored, dict) or stored.get("format") != FORMAT:
                raise ValueError(f"it was not written by pegfan: its format is not {FORMAT!r}")
            version = stored.get("version")
            if version != VERSION:
                raise ValueError(
                    f"it is of version {version!r:.20}, and this pegfan reads {VERSION}: train again, or use the "
                    "pegfan that wrote it"
                )
            result: Self = _part(cls, stored, "")
        except json.JSONDecodeError as error:
            raise ValueError(f"it is damaged: {error}") from error
        except RecursionError:
            raise ValueError("it is damaged: values lie too deep in it") from None
        return result


# ------------------------------------------------------------------------ checks


_members: Callable[[Any], dict[str, Any]] = functools.cache(get_type_hints)


def _part(kind: Any, value: Any, at: str) -> Any:
    """A part from its members by name; those that it does not know are left out."""
    _check(isinstance(value, Mapping), "an object", value, at)
    given = {}
    for member in fields(kind):
        name = f"{at}.{member.name}" if at else member.name
        if member.name in value:
            given[member.name] = _checked(_members(kind)[member.name], value[member.name], name)
        elif member.default is MISSING and member.default_factory is MISSING:
            raise ValueError(f"{name} is missing")
    try:
        return kind(**given)
    except ValueError as error:  # parts of it do not belong together
        raise ValueError(f"{at}.{error}" if at else str(error)) from None


def _checked(kind: Any, value: Any, at: str) -> Any:
    """The value in the type of its annotation, or a `ValueError` that says where it is."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):  # all of them are X | None
        missing = value is None or (isinstance(value, float) and not math.isfinite(value))
        return None if missing else _checked(args[0], value, at)
    if kind is Recipe:
        return _recipe(value, at)
    if is_dataclass(kind):
        return value if isinstance(value, kind) else _part(kind, value, at)  # type: ignore[arg-type]
    if origin is tuple:
        return _sequence(args, value, at)
    if origin is Mapping:
        _check(isinstance(value, Mapping) and len(value) <= _MOST, "an object", value, at)
        return {str(k): plain(v) if args[1] is Any else _checked(args[1], v, f"{at}.{k}") for k, v in value.items()}
    return _scalar(kind, value, at)


def _recipe(value: Any, at: str) -> Recipe:
    _check(isinstance(value, (Recipe, Mapping)), "an object", value, at)
    try:
        return Recipe.of(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{at}: {str(error)[:200]}") from None


def _scalar(kind: Any, value: Any, at: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if get_origin(kind) is Literal:
        _check(value in get_args(kind), f"one of {get_args(kind)}", value, at)
    elif kind is float:
        _check(number and abs(value) < 1e300, "a finite number", value, at)
        return float(value)
    elif kind is int:
        _check(number and 0 <= value < _LARGEST and value == int(value), "a count", value, at)
        return int(value)
    elif kind is str:
        _check(isinstance(value, str) and len(value) <= _LONGEST, "a text of sensible length", value, at)
    else:
        _check(isinstance(value, kind), "true or false", value, at)
    return value


def _sequence(kinds: tuple[Any, ...], value: Any, at: str) -> tuple[Any, ...]:
    _check(isinstance(value, (list, tuple)) and len(value) <= _MOST, "a list of sensible length", value, at)
    if kinds[-1] is ...:
        kinds = kinds[:1] * len(value)
    _check(len(value) == len(kinds), f"a list of {len(kinds)}", value, at)
    return tuple(_checked(kind, entry, f"{at}[{i}]") for i, (kind, entry) in enumerate(zip(kinds, value, strict=True)))


def _square(rows: tuple[tuple[Any, ...], ...], classes: int, at: str) -> None:
    if rows and {len(rows), *map(len, rows)} != {classes}:
        raise ValueError(f"{at} must have one row and one column per class, of which there are {classes}")


def _check(fits: bool, what: str, value: Any, at: str) -> None:
    if not fits:
        told = shown(value) if isinstance(value, (bool, int, float)) or value is None else type(value).__name__
        raise ValueError(f"{at or 'it'} must be {what}, got {told[:60]}")
