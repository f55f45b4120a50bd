"""The report's sentences: what the numbers say, and no more than that."""

from __future__ import annotations

from collections.abc import Sequence

from pegfan.metrics import METRICS, Metric, amount
from pegfan.recipe import Recipe
from pegfan.results import ChannelWeight, Importances, PrecisionRecall, Ranking, Regression, Result, Splits, Spread

__all__ = [
    "attention",
    "calibration",
    "choice",
    "confusion",
    "data",
    "decision",
    "duration",
    "errors_of",
    "family",
    "judged",
    "lede",
    "metric_name",
    "ranked_numbers",
    "score",
    "short",
    "tree",
]

_DOWN = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def metric_name(result: Result) -> str:
    """What the score is called."""
    return METRICS[result.data.metric].words


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.8613)
    '86.1%'
    """
    return f"{100 * value:.{digits}f}%"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    Examples
    --------
    >>> duration(3.21), duration(95), duration(7320)
    ('3.2 s', '1 min 35 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def short(text: str, longest: int = 160) -> str:
    """A text, cut where it is too long to print.

    Examples
    --------
    >>> short("ab" * 200, 5)
    'abab…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def lede(result: Result) -> str:
    """The report in two sentences."""
    mean, std = _known(result.test)
    numeric = result.data.target is not None
    if mean is None and numeric:
        return (
            f"The model predicts a number for each of the {result.data.nodes:,} nodes. Without test nodes whose number "
            "is known there is no way to know how far it is off."
        )
    if mean is None:
        return (
            f"The model gives each of the {result.data.nodes:,} nodes one of "
            f"{_some(sum(map(bool, result.data.class_counts)), 'class', 'classes')}. "
            "Without labelled test nodes there is no way to know how often it is right."
        )
    metric = METRICS[result.data.metric]
    spread = _spread(result, std)
    if result.data.metric == "accuracy":
        first = f"Of the nodes that it has not seen, the model puts {percent(mean)} into the right class{spread}."
    else:
        of = f" for “{short(result.data.positive)}”" if result.data.positive else ""
        shown = _shown(metric, mean)
        article = "an" if metric.words[0] in "aeiouR" else "a"
        first = f"On nodes that it has not seen, the model reaches {article} {metric.words}{of} of {shown}{spread}."
    floors = {
        "the features alone, without the graph, give": _known(result.features_only)[0],
        f"always answering with {'the mean' if numeric else 'the largest class'} gives": _known(result.majority)[0],
    }
    beside = [f"{words} {_shown(metric, value)}" for words, value in floors.items() if value is not None]
    return f"{first} For comparison: {'; '.join(beside)}." if beside else first


def _shown(metric: Metric, value: float) -> str:
    """A value of the metric with its unit, and the sign that books have for a negative one."""
    return f"{metric.show(value, 1)}{'%' if metric.percent else ''}".replace("-", "−")


def _spread(result: Result, std: float) -> str:
    """Between which values the test metric lies, as far as that is known."""
    assert result.test is not None
    if result.test.interval is not None:
        low, high = (_shown(METRICS[result.data.metric], end) for end in result.test.interval)
        return f" (between {low} and {high} on other nodes and splits like these, in 95 of 100 cases)"
    return f", give or take {100 * std:.1f} points from split to split" if std else ""


def judged(result: Result) -> str:
    """What the model is judged by, and why."""
    metric = METRICS[result.data.metric]
    why = f": {result.metric_reason}" if result.metric_reason else ""
    return f"It is judged by {metric.words}, {metric.says}{why}."


def decision(result: Result) -> str:
    """How a class is decided on where it is not the likeliest one, and what that gives."""
    rule = result.decided
    if rule is None:
        return ""
    if rule.threshold is None:
        return (
            f"Rare classes are decided on before they are the likeliest: by how much has the best {rule.aim} on nodes "
            "that it was not trained on."
        )
    name = short(result.data.classes[1])
    why = {"F1": "the best F1", "asked for": "which was asked for"}.get(rule.aim, f"for {rule.aim}")
    why = f"{why} on nodes that it was not trained on" if rule.aim == "F1" else why
    first = f"A node is predicted as “{name}” from a probability of {rule.threshold:.3g} on ({why})."
    if rule.precision is None or rule.recall is None:
        return first
    return (
        f"{first} On test nodes, {percent(rule.precision, 0)} of those that are flagged are right (precision), and "
        f"{percent(rule.recall, 0)} of all there are get found (recall)."
    )


def calibration(result: Result) -> str:
    """How far probabilities can be believed, and what was done for it."""
    found = result.calibrated
    if found is None:
        return ""
    if found.loss_before is None or found.loss_after is None:
        return "There were too few validation nodes to calibrate probabilities with."
    losses = f"a log loss of {found.loss_after:.4f} instead of {found.loss_before:.4f} on nodes it was not fitted to"
    error = found.error_after
    told = "" if error is None else f" On test nodes, they are wrong by {100 * error:.1f} points on average."
    if not found.used:
        return f"Probabilities are the model’s own: calibrating them gave {losses}.{told}"
    before = "" if found.error_before is None else f" ({100 * found.error_before:.1f} before)"
    told = told[:-1] + f"{before}." if told else ""
    return f"Probabilities are calibrated, which gave {losses}.{told}"


def score(result: Result) -> str:
    """How the model compares with its floors."""
    mean, std = _known(result.test)
    if mean is None or result.test is None:
        return ""
    splits = len(result.test.per_split)
    metric, known = METRICS[result.data.metric], result.test.interval is not None
    line = (
        "the line its 95% interval from resampled nodes and splits"
        if known
        else "the line one standard deviation to each side"
    )
    dots = "There is one split, so nothing is known about the spread from split to split."
    if splits > 1:
        many = "folds" if result.splits is not None and result.splits.made else "splits"
        dots = f"The large dot is the mean over {splits} {many}, {line}, and the small dots are the single {many}."
    elif known:
        dots = f"The line is the 95% interval from resampled nodes. {dots}"
    floor, other = _known(result.features_only)
    if floor is None:
        return dots
    unit = 100 if metric.percent else 1
    gap, spread = unit * (metric.gain(mean) - metric.gain(floor)), unit * max(std, other)
    points = f"{abs(gap):.1f} points" if metric.percent else metric.show(abs(gap), 1)
    if abs(gap) < 0.0005 * unit:
        return f"{dots} The graph does not help here: the features alone do as well."
    if gap < 0:
        return f"{dots} The graph does not help here: the features alone are {points} better."
    if spread and gap <= spread:
        return f"{dots} The graph adds {points} to the features, which is within the spread."
    return f"{dots} The graph adds {points} to what the features give."


def data(result: Result) -> str:
    """What the data is like."""
    about, splits, sentences = result.data, result.splits, []
    if about.target is not None:
        low, middle, high = map(amount, (about.target.low, about.target.median, about.target.high))
        sentences.append(f"The numbers to predict go from {low} to {high}; half of them are below {middle}.")
        if about.adjusted_homophily is not None:
            sentences.append(f"Those at the two ends of a link have a correlation of {about.adjusted_homophily:.2f}.")
    if about.edge_homophily is not None:
        sentences.append(_homophily(about.edge_homophily, about.adjusted_homophily))
    if about.things:
        sentences.append(
            f"{_some(about.things, 'node is a thing', 'nodes are things')} that only links name; they carry "
            "what links tell, and nothing is predicted for them."
        )
    if about.labelled < about.nodes - about.things:
        what = "label" if about.target is None else "known number"
        sentences.append(
            f"{about.nodes - about.things - about.labelled:,} nodes have no {what}; the model gives them one."
        )
    if splits is not None and splits.sizes:
        sentences.append(_splits(splits, about.target is not None))
    return " ".join(sentences)


def _homophily(same: float, adjusted: float | None) -> str:
    """How often links join nodes of one class, beside how often they would if links were drawn at random.

    Examples
    --------
    >>> _homophily(0.95, 0.16)
    '95% of the links join nodes of the same class; links drawn at random would join 94%: weak homophily.'
    """
    start = f"{percent(same, 0)} of the links join nodes of the same class"
    if adjusted is None or adjusted >= 1:
        return f"{start}."
    kind = "homophily" if adjusted > 0 else "heterophily"
    size = abs(adjusted)
    kind = "neither homophily nor heterophily" if size < 0.1 else f"weak {kind}" if size < 0.3 else kind
    return f"{start}; links drawn at random would join {percent((same - adjusted) / (1 - adjusted), 0)}: {kind}."


def _splits(splits: Splits, numeric: bool) -> str:
    """Which nodes were trained and tested on, and whose predictions labelled nodes have."""
    first = splits.used[0] if splits.used else 0
    train, val, test = splits.sizes[first if first < len(splits.sizes) else 0]
    known = "Nodes whose number is known" if numeric else "Labelled nodes"
    sizes = f"{train:,} nodes to train on, {val:,} to choose on and {test:,} to test on"
    if splits.made and len(splits.used) > 1:
        of = "" if len(splits.used) == len(splits.sizes) else f" and {len(splits.used)} of them trained"
        return (
            f"{known} were dealt into {len(splits.sizes)} folds{of}, each time {sizes}. What is predicted for such a "
            "node comes from the members that did not learn from it; other nodes have the mean of all members."
        )
    made = "drawn here" if splits.made else "given with the data"
    used = "" if len(splits.sizes) == len(splits.used) else f", {len(splits.used)} of them used"
    each = "It has" if len(splits.sizes) == 1 else "The model’s has"
    return f"{_some(len(splits.sizes), 'split', 'splits')}, {made}{used}. {each} {sizes}."


def choice(result: Result) -> str:
    """What was chosen, how and why."""
    tried, chosen = len(result.candidates), result.chosen
    sentences = []
    if tried > 1:
        sentences.append(f"{tried} candidates were compared on validation nodes; test nodes played no part.")
    members = sum(candidate.weight > 0 for candidate in result.candidates)
    if members > 1:
        sentences.append(f"{members} of them are in the model, which is their weighted mean.")
    if chosen is not None:
        stop = "; " if chosen.reason[:1].islower() else ". "
        said = f"Chosen: {short(chosen.how)}{stop if chosen.reason else ''}{short(chosen.reason, 1_000)}"
        sentences.append(said if said.endswith((".", "!", "?")) else f"{said}.")
    return " ".join(sentences)


def family(recipe: Recipe) -> str:
    """What kind of model a recipe makes.

    Examples
    --------
    >>> family(Recipe("ward")), family(Recipe("none", head="boosting"))
    ('network on a tree', 'boosted trees')
    """
    if recipe.is_boosted:
        return "boosted trees"
    if recipe.is_linear:
        return "linear model" if recipe.head == "linear" else "same prediction for all"
    if recipe.has_tree:
        return "network on a tree"
    return "network on hops" if recipe.hops or recipe.adjacency else "network on features alone"


def errors_of(result: Result) -> str:
    """How far predicted numbers are off, in units of the numbers."""
    found = result.regression
    if found is None or "mae" not in found.scores or found.median_error is None or found.most_error is None:
        return ""
    model, features, mean = (spread.shown("mae", 1) for spread in found.scores["mae"])
    bias, half, most = found.bias or 0.0, amount(found.median_error, 3), amount(found.most_error, 3)
    side = "high" if bias > 0 else "low"
    return (
        f"Predictions are off by {model} on average; those of the features alone by {features}, always the mean by "
        f"{mean}. On test nodes, half of them are off by less than {half}, nine in ten by "
        f"less than {most}; on average they are {amount(abs(bias), 3)} too {side}."
    )


def confusion(table: Sequence[Sequence[int]], classes: Sequence[str]) -> str:
    """The most frequent mistake."""
    mistakes = [(n, -a, -b) for a, row in enumerate(table) for b, n in enumerate(row) if a != b and n]
    total = sum(map(sum, table))
    if not mistakes:
        return f"All {total:,} test nodes are in the right class."
    most, a, b = max(mistakes)
    times = {1: "once", 2: "twice"}.get(most, f"{most:,} times")
    wrong = sum(n for n, _, _ in mistakes)
    return (
        f"{wrong:,} of {total:,} test nodes are in the wrong class. The most frequent mistake, "
        f"{times}: a node of “{classes[-a]}” is taken for “{classes[-b]}”."
    )


def attention(channels: Sequence[ChannelWeight]) -> str:
    """Which hops and scales carry the signal, as far as the weights of the channels tell."""
    total = sum(channel.weight for channel in channels)
    if len(channels) < 2 or total <= 0:
        return "There is one channel, and it has all the weight."
    even = 1 / len(channels)
    named = {
        "features": "the features themselves",
        "hops": "hops",
        "scales": "scales of the tree",
        "other": "other channels",
    }
    own = {kind: [channel.weight / total for channel in channels if channel.group == kind] for kind in named}
    sentence = "; ".join(
        f"{named[kind]} {percent(sum(own[kind]), 0)} (an even share would be {percent(even * len(own[kind]), 0)})"
        for kind in sorted(own, key=lambda kind: sum(own[kind]), reverse=True)
        if own[kind]
    )
    top = max(channels, key=lambda channel: channel.weight)
    ratio = top.weight / total / even
    sentences = [f"{sentence[0].upper()}{sentence[1:]}."]
    if ratio < 1.15:
        sentences.append("The weights are nearly even: no single channel stands out.")
    else:
        what = f", {short(top.words)}," if top.words else ""
        sentences.append(f"The heaviest channel is {short(top.symbol)}{what} with {ratio:.1f} times an even share.")
    sentences.append(_scales(channels, total))
    return " ".join(filter(None, sentences))


def _scales(channels: Sequence[ChannelWeight], total: float) -> str:
    """Whether the coarse or the fine scales weigh more."""
    scales = sorted((channel.scale, channel.weight / total) for channel in channels if channel.scale is not None)
    if len(scales) < 4:
        return ""
    half = len(scales) // 2
    coarse, fine = (sum(weight for _, weight in part) / len(part) for part in (scales[:half], scales[half:]))
    if max(coarse, fine) < 1.1 * min(coarse, fine):
        return "Coarse and fine scales weigh about the same."
    more, span = ("coarse", scales[:half]) if coarse > fine else ("fine", scales[half:])
    first, last = (f"F{str(scale).translate(_DOWN)}" for scale, _ in (span[0], span[-1]))
    return f"Among the scales the {more} ones, {first} to {last}, weigh more."


def tree(clusters: Sequence[int], purity: Sequence[float], numeric: bool = False) -> str:
    """How well the clusters of each level agree with predictions.

    Parameters
    ----------
    clusters
        How many there are, per level.
    purity
        The part of the nodes that are of their cluster's class; or the part of the variance of predicted numbers that
        lies between clusters.
    numeric
        Whether numbers are predicted.
    """
    if len(clusters) < 3:
        return ""
    if numeric:
        level = next((j for j, share in enumerate(purity) if share >= 0.5), len(purity) - 1)
        return (
            f"At level {level + 1}, with {clusters[level]:,} clusters, {percent(purity[level], 0)} of the variance of "
            "the predicted numbers lies between clusters."
        )
    level = next(j for j, share in enumerate(purity) if share >= purity[0] + 0.8 * (1 - purity[0]))
    if level == len(purity) - 1:
        return "Clusters and predictions do not follow each other: only single nodes are of one class."
    return (
        f"At level {level + 1}, with {clusters[level]:,} clusters, {percent(purity[level], 0)} of the nodes are "
        "predicted as the most frequent class of their cluster."
    )


def ranking(found: Ranking) -> str:
    """Which nodes are ranked, and by what."""
    which = "All nodes have labels, so these are test nodes" if found.held_out else "Nodes without a label"
    how = (
        f"by the probability of “{short(found.by)}”, the rarer class"
        if found.by is not None
        else "class by class, by the probability of the class that is predicted"
    )
    shown = f"the first {len(found.rows)} of {found.total:,}" if len(found.rows) < found.total else "all of them"
    return f"{which}, {how}: {shown}. Point at a node for the reasons; ranked.csv lists every node."


def ranked_numbers(found: Regression) -> str:
    """Which nodes are listed by their predicted number."""
    which = "All numbers are known, so these are test nodes" if found.held_out else "Nodes whose number is not known"
    shown = f"the first {len(found.first)} of {found.total:,}" if len(found.first) < found.total else "all of them"
    return (
        f"{which}, by the predicted one, the largest first: {shown}. Point at a node for the reasons; ranked.csv lists "
        "every node."
    )


def finding(curves: Sequence[PrecisionRecall]) -> str:
    """What is found by looking at the most probable nodes first."""
    if len(curves) > 1:
        return (
            "Test nodes by their probability of a class, the highest first: how many of those looked at belong to it."
        )
    (curve,) = curves
    share = curve.positives / curve.total
    sentence = (
        f"{curve.positives:,} of {curve.total:,} test nodes ({percent(share)}) are “{short(curve.name)}”. Looking at "
        f"nodes by their probability, the average precision is {percent(curve.average_precision)}."
    )
    if not curve.gains:
        return sentence
    gain = curve.gains[-1]
    return (
        f"{sentence} The first {percent(gain.share, 0)} ({_some(gain.nodes, 'node', 'nodes')}) hold "
        f"{percent(gain.recall, 0)} of them, {gain.lift:.1f} times as many as nodes drawn at random."
    )


def importance(found: Importances, name: str) -> str:
    """Which column matters most, by the metric of a name."""
    metric = METRICS[name]
    top = max(found.rows, key=lambda row: row.drop or 0.0)
    more = f" {_some(found.left_out, 'column was', 'columns were')} not tried." if found.left_out else ""
    way = "drops" if metric.larger else "grows"
    start = f"How much the {metric.words} on test nodes {way} when a column is shuffled among nodes before it is used."
    if (top.drop or 0.0) <= (top.std or 0.0):
        return f"{start} No single column matters beyond chance.{more}"
    size = f"{100 * (top.drop or 0.0):.1f} points" if metric.percent else metric.show(top.drop, 1)
    return f"{start} Most depends on “{short(top.name)}”: {size}.{more}"


def _known(spread: Spread | None) -> tuple[float | None, float]:
    """Mean and standard deviation, as far as they are known."""
    return (None, 0.0) if spread is None else (spread.mean, spread.std or 0.0)


def _some(number_of: int, one: str, many: str) -> str:
    return f"{number_of:,} {one if number_of == 1 else many}"


def unequal(result: Result) -> str:
    """That a model which was searched for stands among some that were hardly searched."""
    took = "" if result.budget is None else f" of {duration(result.budget)}"
    return (
        f"This model was searched for within the time budget{took}; each of the others tried a few settings only, so "
        "with equal budgets some may come closer: pegfan compare does that."
    )
