"""The measures of a result, each in one place: of the graph, of predictions, of trainings; and what to beware of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan import measures
from pegfan._checks import (
    check_kind,
    check_list,
    check_mapping,
    check_number,
    check_numbers,
    check_places,
    kind_of,
    shown,
)
from pegfan._plain import versions
from pegfan.decisions import Decision, calibration_error, reliability
from pegfan.fitted import ChannelFacts
from pegfan.graph import Graph, Split, as_split, check_graph
from pegfan.metrics import METRICS, interval, score
from pegfan.results.ranking import rank_numbers
from pegfan.results.values import (
    Attention,
    Bin,
    Calibrated,
    ChannelWeight,
    Curve,
    Data,
    Decided,
    Note,
    PerClass,
    Predicted,
    Regression,
    Result,
    Spread,
    TargetFacts,
    TreeFacts,
    Unsure,
)
from pegfan.training import Run
from pegfan.trees import Hierarchy

_MOST_CLASSES = 100
"""The most classes for which the matrix of similarities is kept."""
_UNSURE = 20
_FIRST = 50
_POINTS = 1_000
"""The most test nodes in the picture of predicted and true numbers."""
_TINY = 50
_IMBALANCE = 10.0
_COPIES = 0.1
_ISOLATED = 0.05


# --------------------------------------------------------------------- the graph


def data(graph: Graph, classes: Iterable[str] | None = None) -> Data:
    """The facts about a graph.

    Parameters
    ----------
    graph
        The graph.
    classes
        Names of the classes, if the graph does not name them.

    Examples
    --------
    >>> found = data(Graph.from_edges([[0, 1], [1, 2]], labels=["a", "b", "b"]))
    >>> found.nodes, found.classes, found.class_counts, found.edge_homophily
    (3, ('a', 'b'), (1, 2), 0.5)
    """
    check_graph(graph)
    given = graph.classes.tolist() if classes is None else check_list(classes, "classes", object)
    names = tuple(one if isinstance(one, str) else shown(one) for one in given)
    labels = np.empty(0, np.int64) if graph.labels is None else graph.labels[graph.labels >= 0]
    facts = measures.describe(graph).to_dict()
    similar = graph.labels is not None and len(names) == graph.n_classes <= _MOST_CLASSES
    return Data(
        **{member.name: facts[member.name] for member in fields(Data) if member.name in facts.keys() - {"classes"}},
        classes=names,
        class_counts=np.bincount(labels, minlength=len(names)).tolist(),
        metric=graph.metric,
        positive=names[1] if METRICS[graph.metric].two_classes and len(names) == 2 else None,
        ccns=measures.ccns(graph).tolist() if similar else None,
        feature_names=graph.feature_names,
        target=None if graph.targets is None else _target_facts(graph.targets[graph.labelled]),
    )


def _target_facts(values: NDArray[Any]) -> TargetFacts | None:
    if not len(values):
        return None
    return TargetFacts(*map(float, (values.mean(), values.std(), values.min(), np.median(values), values.max())))


def parts(graph: Graph, split: Split) -> NDArray[np.str_]:
    """The part of every node in a split: train, val, test or none."""
    check_graph(graph)
    split = as_split(split, graph.n)
    found = np.full(graph.n, "none", dtype="<U5")
    for name, nodes in zip(Split._fields, split, strict=True):
        found[nodes] = name
    return found


# --------------------------------------------------------------- the predictions


def judged(
    graph: Graph, split: Split, predicted: NDArray[Any]
) -> tuple[tuple[tuple[int, ...], ...], tuple[PerClass, ...]]:
    """The confusion matrix on the labelled test nodes, true classes by predicted ones, and what it says per class.

    Parameters
    ----------
    graph, split
        With labels; whose test nodes count.
    predicted
        The class of every node, as a number.

    Examples
    --------
    >>> graph = Graph.from_edges([[0, 1], [1, 2]], labels=["a", "b", "b"])
    >>> nodes = np.arange(3)
    >>> judged(graph, Split(nodes[:0], nodes[:0], nodes), np.array([0, 0, 1]))[0]
    ((1, 0), (1, 1))
    """
    check_graph(graph, needs="labels")
    split = as_split(split, graph.n)
    predicted = check_places(check_numbers(predicted, "predicted", graph.n, whole=True), "predicted", graph.n_classes)
    assert graph.labels is not None
    test = split.test[graph.labels[split.test] >= 0]
    table = np.zeros((graph.n_classes, graph.n_classes), np.int64)
    np.add.at(table, (graph.labels[test], predicted[test]), 1)
    with np.errstate(invalid="ignore"):  # 0 / 0: nothing predicted or nothing there
        precision, recall = (table.diagonal() / table.sum(axis=axis) for axis in (0, 1))
    rows = zip(map(str, graph.classes.tolist()), table.sum(axis=1), precision, recall, strict=True)
    return tuple(map(tuple, table.tolist())), tuple(PerClass(*row) for row in rows)


def majority(graph: Graph, split: Split) -> float:
    """The metric on labelled test nodes of always predicting what training nodes have most, with their frequencies."""
    check_graph(graph)
    split = as_split(split, graph.n)
    if graph.targets is None:
        check_graph(graph, needs="labels")
    if graph.targets is not None:
        return score(*mean_prediction(graph, split), graph.metric)
    assert graph.labels is not None
    train, test = (graph.labels[nodes][graph.labels[nodes] >= 0] for nodes in (split.train, split.test))
    counts = np.bincount(train, minlength=graph.n_classes)
    frequency = np.log(np.maximum(counts, 1e-9) / max(counts.sum(), 1))
    return score(np.tile(frequency, (len(test), 1)), test, graph.metric)


def mean_prediction(graph: Graph, split: Split) -> tuple[NDArray[Any], NDArray[Any]]:
    """For the test nodes with a target, the mean of the training targets; and their targets."""
    check_graph(graph, needs="targets")
    split = as_split(split, graph.n)
    assert graph.targets is not None
    train, test = (graph.targets[nodes][graph.labelled[nodes]] for nodes in (split.train, split.test))
    return np.full(len(test), np.sort(train).mean()), test


def regression(
    graph: Graph, split: Split, values: NDArray[Any], outputs: Mapping[str, Sequence[tuple[Any, Any]]], seed: int
) -> Regression:
    """How good predicted numbers are, and which nodes to look at.

    Parameters
    ----------
    graph, split
        With targets; the split of the model.
    values
        The predicted number of every node.
    outputs
        Split by split, predictions and targets of test nodes: of the ``"model"``, the ``"features"`` alone, and the
        ``"mean"``.
    seed
        Of the intervals.
    """
    check_graph(graph, needs="targets")
    split = as_split(split, graph.n)
    values = check_numbers(values, "values", graph.n)
    check_mapping(outputs, "outputs")
    if missing := {"model", "features", "mean"} - set(outputs):
        raise ValueError(f"outputs must have the keys model, features and mean; {sorted(missing)[0]!r} is missing")
    assert graph.targets is not None
    ids, truth = list(map(str, graph.ids.tolist())), graph.targets

    def rows(nodes: Any) -> tuple[Predicted, ...]:
        return tuple(
            Predicted(ids[i], float(values[i]), None if np.isnan(truth[i]) else float(truth[i])) for i in nodes.tolist()
        )

    def spread(name: str, metric: str) -> Spread:
        pairs = outputs[name]
        return Spread.of([score(*pair, metric) for pair in pairs], interval=interval(pairs, metric, seed=seed))

    test = np.sort(split.test[graph.labelled[split.test]])
    nodes, held_out = rank_numbers(graph, split, values)
    scores = {name: tuple(spread(of, name) for of in ("model", "features", "mean")) for name in ("r2", "mae")}
    errors = values[test] - truth[test]
    told: dict[str, float] = {}
    if len(test):
        sizes = np.abs(errors)
        told = {"bias": errors.mean(), "rmse": np.sqrt((errors**2).mean())}
        told |= {"median_error": np.median(sizes), "most_error": np.quantile(sizes, 0.9)}
    ordered = test[np.lexsort((test, truth[test]))]
    even = np.unique(np.linspace(0, len(test) - 1, min(len(test), _POINTS)).round().astype(int))
    return Regression(
        scores,  # type: ignore[arg-type]
        **told,
        points=rows(ordered[even] if len(test) else test),
        worst=rows(test[np.lexsort((test, -np.abs(errors)))][:_UNSURE]),
        first=rows(nodes[:_FIRST]),
        total=len(nodes),
        held_out=held_out,
    )


def calibrated(decision: Decision, tests: Sequence[tuple[Any, Any, Any]]) -> Calibrated:
    """How far probabilities can be believed.

    Parameters
    ----------
    decision
        That of the model.
    tests
        Split by split, of its test nodes: logarithms of probabilities of the networks, those after a calibration that
        did not see them, and the labels.
    """
    check_kind(decision, "decision", Decision)
    fitted, (before, after) = decision.calibration, decision.tested or (None, None)
    if not len(tests) or not all(len(part) == 3 for part in tests):
        raise ValueError("tests must hold three arrays for each of some splits: outputs, calibrated ones, and labels")
    raw, made, labels = (np.concatenate(parts) for parts in zip(*tests, strict=True))
    return Calibrated(
        used=fitted is not None,
        predictions=decision.predictions,
        scale=None if fitted is None else fitted.scale,
        shifts=() if fitted is None else fitted.shifts,
        loss_before=before,
        loss_after=after,
        error_before=calibration_error(raw, labels),
        error_after=calibration_error(made, labels),
        before=tuple(Bin(*row) for row in reliability(raw, labels)),
        after=tuple(Bin(*row) for row in reliability(made, labels)),
    )


def decided(decision: Decision, graph: Graph, split: Split, predicted: NDArray[Any]) -> Decided | None:
    """What deciding otherwise than on the likeliest class gives on test nodes; None where nothing else is done."""
    check_kind(decision, "decision", Decision)
    check_graph(graph, needs="labels")
    split = as_split(split, graph.n)
    predicted = check_numbers(predicted, "predicted", graph.n, whole=True)
    assert graph.labels is not None
    if decision.offsets is None:
        return None
    if len(decision.offsets) != 2:
        return Decided(decision.aim, offsets=decision.offsets)
    test = split.test[graph.labels[split.test] >= 0]
    flagged, true = predicted[test] == 1, graph.labels[test] == 1
    right = int((flagged & true).sum())
    return Decided(
        decision.aim,
        threshold=decision.threshold,
        offsets=decision.offsets,
        flagged=int(flagged.sum()),
        flagged_nodes=int((predicted[graph.subjects] == 1).sum()),
        precision=right / int(flagged.sum()) if flagged.any() else None,
        recall=right / int(true.sum()) if true.any() else None,
    )


def unsure(
    graph: Graph, split: Split, probabilities: NDArray[Any], offsets: Sequence[float] | None = None
) -> tuple[Unsure, ...]:
    """The nodes with the least margin between their two likeliest classes; test and unlabelled nodes come first.

    Parameters
    ----------
    graph, split, probabilities
        With labels; the parts; of every node and class.
    offsets
        Those of a `pegfan.decisions.Decision`, by which classes are decided on.
    """
    check_graph(graph, needs="labels")
    split = as_split(split, graph.n)
    probabilities = check_numbers(probabilities, "probabilities", graph.n, graph.n_classes)
    assert graph.labels is not None
    names, ids = (list(map(str, words.tolist())) for words in (graph.classes, graph.ids))
    if offsets is not None:
        offsets = check_numbers(offsets, "offsets", graph.n_classes).tolist()
    weighed = probabilities if offsets is None else probabilities * np.exp(-np.asarray(offsets))
    weighed = weighed / weighed.sum(axis=1, keepdims=True) if offsets is not None else weighed
    order = np.argsort(-weighed, axis=1, kind="stable")[:, :2]
    rows = np.arange(graph.n)
    high, low = (probabilities[rows, order[:, k]] for k in (0, 1))
    margin = weighed[rows, order[:, 0]] - weighed[rows, order[:, 1]]
    late = ~np.isin(parts(graph, split), ("none", "test"))
    return tuple(
        Unsure(
            id=ids[i],
            predicted=names[order[i, 0]],
            probability=high[i],
            second=names[order[i, 1]],
            second_probability=low[i],
            true=names[graph.labels[i]] if graph.labels[i] >= 0 else None,
        )
        for i in graph.subjects[np.lexsort([part[graph.subjects] for part in (rows, margin, late)])][:_UNSURE]
    )


# ----------------------------------------------------------------- the trainings


def curve(name: str, run: Any) -> Curve:
    """The course of a `pegfan.training.Run`, as far as its history was kept."""
    check_kind(run, "run", Run)
    history = run.history or {}

    def line(name: str) -> tuple[float, ...]:
        return tuple(round(float(value), 6) for value in history.get(name, ()))

    return Curve(name, line("train_loss"), line("val_loss"), line("val_metric"), run.best_epoch)


def attention(member: str, channels: Iterable[ChannelFacts], weights: Iterable[float]) -> Attention:
    """The weights of a network's channels."""
    channels, weights = check_list(channels, "channels", ChannelFacts), check_numbers(list(weights), "weights", None)
    rows = zip(channels, weights, strict=True)
    return Attention(
        member, tuple(ChannelWeight(c.name, c.symbol, c.words, c.group, c.scale, float(w)) for c, w in rows)
    )


def tree(hierarchy: Hierarchy, member: str = "") -> TreeFacts:
    """The facts about a tree, and the name of the network that has it."""
    check_kind(hierarchy, "hierarchy", Hierarchy)
    info = hierarchy.info
    return TreeFacts(
        info.get("method"), info.get("h", hierarchy.h), hierarchy.K, tuple(hierarchy.n_clusters), member, info
    )


def stamp() -> dict[str, Any]:
    """When a result was made, and with which packages."""
    packages = versions("numpy", "scipy", "torch", "safetensors")
    return {"when": datetime.now(UTC).isoformat(timespec="seconds"), "versions": packages}


# ------------------------------------------------------------- what to beware of


def cautions(result: Result, graph: Graph) -> tuple[Note, ...]:
    """What a careful reader of a result would want to know.

    Parameters
    ----------
    result
        With data, splits and scores.
    graph
        The graph with the splits that were used.
    """
    check_graph(graph)
    check_kind(result, "result", Result)
    if result.splits is None or not all(k < len(graph.splits) for k in result.splits.used):
        raise ValueError("result and graph must have the splits that were used")
    assert result.splits is not None
    about, used, split = result.data, result.splits.used, graph.splits[result.splits.used[0]]
    # Where labelled nodes were dealt into folds, each is a test node of one.
    parts = [graph.splits[k].test for k in used] if result.splits.made else [split.test]
    test = np.unique(np.concatenate(parts))
    test = test[graph.labelled[test]]
    points = "" if graph.labels is None else f": one node is {100 / max(len(test), 1):.1f} points"
    copies = measures.leaking_share(graph, split.train, split.test[graph.labelled[split.test]])
    found = {
        "no test nodes": not len(test)
        and "The split has no labelled test nodes, so nothing says how good the predictions are.",
        "tiny test set": 0 < len(test) < _TINY and f"The test set has {len(test)} nodes{points}.",
        "one split": len(used) == 1
        and len(test)
        and "The metric comes from a single split, so its spread is not known"
        + ("; a larger budget allows more." if len(result.splits.sizes) > 1 else "."),
        "no better than a floor": _floor_reached(result),
        "class imbalance": _imbalance(about),
        **data_cautions(about, copies),
        "spread": len(used) > 1
        and "Recipes were chosen on validation nodes; some of those of one split are test nodes of another.",
    }
    return tuple(Note(kind, text) for kind, text in found.items() if text)


def data_cautions(about: Data | measures.Description, copies: float) -> dict[str, str]:
    """What to know of a graph before a training, by kind; `copies` is its `pegfan.measures.leaking_share`."""
    if not isinstance(about, Data | measures.Description):
        raise TypeError(f"about must be a Data or a Description, got {kind_of(about)}")
    check_number(copies, "copies")
    unlabelled = about.nodes - about.labelled - about.things
    what = "label" if about.classes else "known number"
    found = {
        "leaking duplicates": copies >= _COPIES
        and f"{copies:.0%} of the test nodes have exactly the neighbours of a training node. If they are copies, the "
        "test metric overstates how well new nodes are predicted.",
        "no features": not about.features and "The nodes have no features; degrees stand in for them.",
        "isolated nodes": about.isolated >= _ISOLATED * about.nodes
        and f"{about.isolated:,} nodes have no edge: for them only features count.",
        "unlabelled nodes": 0 < unlabelled < about.nodes
        and f"{unlabelled:,} of {about.nodes - about.things:,} nodes have no {what}; they are predicted, and no score "
        "counts them.",
    }
    return {kind: text for kind, text in found.items() if text}


def _floor_reached(result: Result) -> str | None:
    spreads = (result.test, result.majority, result.features_only)
    means = [spread.mean for spread in spreads if spread is not None and spread.mean is not None]
    if len(means) < len(spreads):
        return None
    gain = METRICS[result.data.metric].gain
    reached, largest, features = map(gain, means)
    if reached <= largest + 1e-9 and result.data.target is not None:
        return "On test nodes the model is no better than always predicting the mean."
    if reached <= largest + 1e-9:
        rare = result.data.metric == "accuracy" and len(result.data.classes) == 2
        hint = " Where one of two classes is rare, average_precision says more than accuracy." if rare else ""
        return f"On test nodes the model is no better than always predicting the largest class.{hint}"
    if reached <= features + 1e-9:
        return "On test nodes the model is no better than features alone: the graph adds nothing."
    return None


def _imbalance(about: Data) -> str | None:
    counts = [count for count in about.class_counts if count]  # a class may be named that no node has
    if not counts:
        return None
    fewest, most = min(counts), max(counts)
    if most < _IMBALANCE * fewest:
        return None
    name = about.classes[about.class_counts.index(fewest)]
    return f"Classes have from {fewest} ({name}) to {most} nodes; small ones are hard to learn."
