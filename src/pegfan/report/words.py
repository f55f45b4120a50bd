"""The report's sentences: what the numbers say, and no more than that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pegfan.report.reading import count, mapping, number, pick, sequence, text

__all__ = ["attention", "choice", "confusion", "data", "duration", "lede", "metric_name", "score", "symbol", "tree"]


def metric_name(result: Mapping[str, Any]) -> str:
    """How the score is called.

    Examples
    --------
    >>> metric_name({"test": {"metric": "roc_auc"}}), metric_name({})
    ('ROC AUC', 'accuracy')
    """
    metric = pick(result, "test", "metric") or pick(result, "data", "metric")
    return "ROC AUC" if metric == "roc_auc" else "accuracy"


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.8613)
    '86.1%'
    """
    return f"{100 * value:.{digits}f}%"


def duration(seconds: Any) -> str:
    """A time in the unit that suits it.

    Examples
    --------
    >>> duration(3.21), duration(95), duration(7320)
    ('3.2 s', '1 min 35 s', '2 h 2 min')
    """
    known = number(seconds)
    if known is None:
        return "unknown"
    if known < 60:
        return f"{known:.1f} s"
    minutes, rest = divmod(round(known), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def symbol(channel: str) -> str:
    """A channel's name as the paper prints it.

    Examples
    --------
    >>> symbol("F_12 S~^2 X")
    'F₁₂ S\u0303² X'
    """
    down, up = (str.maketrans("0123456789", digits) for digits in ("₀₁₂₃₄₅₆₇₈₉", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    channel = re.sub(r"_(\d+)", lambda found: found.group(1).translate(down), channel)
    return re.sub(r"\^(\d+)", lambda found: found.group(1).translate(up), channel.replace("~", "\u0303"))


def lede(result: Mapping[str, Any], nodes: int, classes: int) -> str:
    """The report in two sentences."""
    mean, std = number(pick(result, "test", "mean")), number(pick(result, "test", "std"))
    if mean is None:
        return (
            f"The model gives each of the {nodes:,} nodes one of {_some(classes, 'class', 'classes')}. "
            "Without labelled test nodes nobody can say how often it is right."
        )
    spread = f", give or take {100 * std:.1f} points from split to split" if std else ""
    if metric_name(result) == "ROC AUC":
        first = f"On nodes that it has not seen, the model reaches a ROC AUC of {100 * mean:.1f}{spread}."
    else:
        first = f"Of the nodes that it has not seen, the model puts {percent(mean)} into the right class{spread}."
    features = number(pick(result, "floors", "features_only", "mean"))
    majority = number(pick(result, "floors", "majority", "mean"))
    unit = "" if metric_name(result) == "ROC AUC" else "%"
    beside = []
    if features is not None:
        beside.append(f"the features alone, without the graph, give {100 * features:.1f}{unit}")
    if majority is not None:
        beside.append(f"always answering with the largest class gives {100 * majority:.1f}{unit}")
    return f"{first} For comparison: {'; '.join(beside)}." if beside else first


def score(result: Mapping[str, Any]) -> str:
    """How the model stands beside its floors."""
    mean, std = number(pick(result, "test", "mean")), number(pick(result, "test", "std")) or 0.0
    if mean is None:
        return ""
    splits = len(sequence(pick(result, "test", "per_split")))
    sentences = []
    if splits > 1:
        sentences.append(
            f"The large dot is the mean over {splits} splits, the line one standard deviation to each side, "
            "and the small dots are the single splits."
        )
    else:
        sentences.append("There is one split, so nothing is known about the spread from split to split.")
    floor = number(pick(result, "floors", "features_only", "mean"))
    if floor is not None:
        gap = 100 * (mean - floor)
        spread = 100 * max(std, number(pick(result, "floors", "features_only", "std")) or 0.0)
        points = f"{abs(gap):.1f} points"
        if abs(gap) < 0.05:
            sentences.append("The graph does not help here: the features alone do as well.")
        elif gap < 0:
            sentences.append(f"The graph does not help here: the features alone are {points} better.")
        elif spread and gap <= spread:
            sentences.append(f"The graph adds {points} to the features, which is within the spread.")
        else:
            sentences.append(f"The graph adds {points} to what the features tell.")
    return " ".join(sentences)


def data(about: Mapping[str, Any], splits: Mapping[str, Any]) -> str:
    """What the data is like."""
    sentences = []
    measures = mapping(about.get("homophily"))
    edge = next((number(value) for name, value in measures.items() if "edge" in name), None)
    if edge is None and len(measures) == 1:
        edge = number(next(iter(measures.values())))
    if edge is not None:
        kind = "homophily" if edge >= 0.5 else "heterophily"
        sentences.append(f"{percent(edge, 0)} of the links join nodes of the same class: {kind}.")
    nodes, labelled = count(about.get("nodes")), count(about.get("labelled"))
    if nodes and labelled is not None and labelled < nodes:
        sentences.append(f"{nodes - labelled:,} nodes have no label; the model gives them one.")
    sizes = [[count(part) or 0 for part in sequence(size)] for size in sequence(splits.get("sizes"))]
    if sizes and all(len(size) == 3 for size in sizes):
        train, val, test = sizes[0]
        made = "drawn here" if splits.get("made") is True else "given with the data"
        sentences.append(
            f"{_some(count(splits.get('count')) or len(sizes), 'split', 'splits')}, {made}; the first trains on "
            f"{train:,} nodes, chooses on {val:,} and tests on {test:,}."
        )
    return " ".join(sentences)


def choice(result: Mapping[str, Any]) -> str:
    """What was chosen, how and why."""
    tried = len(sequence(pick(result, "candidates")))
    how, reason = text(pick(result, "chosen", "how")), text(pick(result, "chosen", "reason"), 1_000)
    sentences = []
    if tried > 1:
        sentences.append(f"{tried} candidates were compared on validation nodes; test nodes had no say.")
    if reason:
        reason = reason if reason.endswith((".", "!", "?")) else f"{reason}."
    if how and reason:
        sentences.append(f"Chosen: {how}; {reason}" if reason[0].islower() else f"Chosen: {how}. {reason}")
    elif how or reason:
        sentences.append(reason or f"Chosen: {how}.")
    return " ".join(sentences)


def confusion(table: Sequence[Sequence[int]], classes: Sequence[str]) -> str:
    """The most frequent mistake."""
    mistakes = [(n, -a, -b) for a, row in enumerate(table) for b, n in enumerate(row) if a != b and n]
    total = sum(map(sum, table))
    if not mistakes:
        return f"All {total:,} test nodes are in the right class."
    most, a, b = max(mistakes)
    wrong = sum(n for n, _, _ in mistakes)
    return (
        f"{wrong:,} of {total:,} test nodes are in the wrong class. The most frequent mistake, "
        f"{_times(most)}: a node of “{classes[-a]}” is taken for “{classes[-b]}”."
    )


def attention(channels: Sequence[Mapping[str, Any]]) -> str:
    """Which hops and scales carry the signal, as far as the weights of the channels tell."""
    total = sum(channel["weight"] for channel in channels)
    if len(channels) < 2 or total <= 0:
        return "There is one channel, and it has all the weight."
    even = 1 / len(channels)
    named = {
        "features": "the features themselves",
        "hops": "hops",
        "scales": "scales of the tree",
        "other": "other channels",
    }
    shares = []
    for kind, name in named.items():
        own = [channel["weight"] / total for channel in channels if channel["group"] == kind]
        if own:
            share, fair = percent(sum(own), 0), percent(even * len(own), 0)
            shares.append((sum(own), f"{name} {share} (an even share would be {fair})"))
    shares.sort(reverse=True)
    sentence = "; ".join(words for _, words in shares)
    top = max(channels, key=lambda channel: channel["weight"])
    ratio = top["weight"] / total / even
    sentences = [f"{sentence[0].upper()}{sentence[1:]}."]
    if ratio < 1.15:
        sentences.append("The weights are nearly even: no single channel stands out.")
    else:
        what = f", {top['what']}," if top["what"] else ""
        sentences.append(f"The heaviest channel is {symbol(top['name'])}{what} with {ratio:.1f} times an even share.")
    sentences.append(_scales(channels, total))
    return " ".join(filter(None, sentences))


def _scales(channels: Sequence[Mapping[str, Any]], total: float) -> str:
    """Whether the coarse or the fine scales weigh more."""
    scales = [
        (int(found.group(1)), channel["weight"] / total)
        for channel in channels
        if (found := re.search(r"F_(\d{1,4})", channel["name"]))
    ]
    if len(scales) < 4:
        return ""
    scales.sort()
    half = len(scales) // 2
    coarse, fine = (sum(weight for _, weight in part) / len(part) for part in (scales[:half], scales[half:]))
    if max(coarse, fine) < 1.1 * min(coarse, fine):
        return "Coarse and fine scales weigh about the same."
    more, span = ("coarse", scales[:half]) if coarse > fine else ("fine", scales[half:])
    return f"Among the scales the {more} ones, {symbol(f'F_{span[0][0]}')} to {symbol(f'F_{span[-1][0]}')}, weigh more."


def tree(levels: Sequence[Mapping[str, Any]], purity: Sequence[float]) -> str:
    """How well clusters agree with predictions."""
    if len(levels) < 3:
        return ""
    base = purity[0]
    for level, share in enumerate(purity, start=1):
        if share >= base + 0.8 * (1 - base):
            clusters = levels[level - 1]["clusters"]
            if level == len(purity):
                return "Clusters and predictions do not follow each other: only single nodes are of one class."
            return (
                f"At level {level}, with {clusters:,} clusters, {percent(share, 0)} of the nodes are predicted as the "
                "most frequent class of their cluster."
            )
    return ""


def _some(number_of: int, one: str, many: str) -> str:
    return f"{number_of:,} {one if number_of == 1 else many}"


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")
