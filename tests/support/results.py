"""Results of small training runs, and a stored one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pegfan as pf
from pegfan import results
from pegfan.auto.reasons import add_importances, add_reasons
from pegfan.classifier import PEGFANClassifier
from pegfan.decisions import Decision, Predictions
from pegfan.results import Result

STORED = Path(__file__).with_name("result.json").read_text(encoding="utf-8")
"""What `pegfan train` wrote, shortened: two members, one of them on a tree."""


def plain_result(graph: pf.Graph, classes: int | None = None, **parts: Any) -> Result:
    """A result of which only the data are known, and what is given."""
    names = None if classes is None else [str(k) for k in range(classes)]
    return Result(data=results.data(graph, names), **parts)


def trained(graph: pf.Graph, title: str = "A small graph", **settings: Any) -> tuple[Result, PEGFANClassifier]:
    """Train two candidates on the first split and describe the better one."""
    options = {"epochs": 60, "patience": 60, **settings}
    models = {f"PEGFAN {kind}": PEGFANClassifier(h=4, kind=kind, **options).fit(graph) for kind in ("b", "c")}
    ranked = sorted(models.items(), key=lambda entry: -entry[1].run_.val_metric)
    best, split = ranked[0][1], graph.splits[0]
    probabilities = best.predict_proba()
    confusion, per_class = results.judged(graph, split, probabilities.argmax(axis=1))
    floor = results.majority(graph, split)
    raw = best.fitted_.raw()
    decision = Decision.of(Predictions(raw[split.val], graph.labels[split.val], split.val), graph.metric)
    tests = [(raw[split.test], decision.calibrated(raw)[split.test], graph.labels[split.test])]
    result = Result(
        title=title,
        source=pf.datasets.Source.of("synthetic", gamma=0.0),
        command="pegfan train synthetic -o out/",
        calibrated=results.calibrated(decision, tests),
        seed=42,
        when="2026-01-01 12:00",
        versions={"pegfan": pf.__version__},
        seconds=results.Seconds(12.0, 9.0, 3.0),
        budget=60,
        data=results.data(graph),
        splits=results.Splits.of(graph.splits),
        candidates=tuple(
            results.Candidate(
                name,
                model.recipe,
                model.run_.val_metric,
                model.run_.val_loss,
                model.run_.seconds,
                model.run_.epochs,
                chosen=model is best,
                why="best on validation" if model is best else "behind the best",
            )
            for name, model in ranked
        ),
        chosen=results.Chosen("the best on validation", "It is the best by a margin."),
        test=_around(best.run_.test_metric),
        validation=_around(best.run_.val_metric),
        majority=results.Spread.of([floor]),
        features_only=results.Spread.of([0.5 * (floor + best.run_.test_metric) + d for d in (-0.02, 0.02)]),
        confusion=confusion,
        per_class=per_class,
        curves=tuple(results.curve(name, model.run_) for name, model in ranked),
        attention=tuple(
            results.attention(name, model.fitted_.members[0].channels, model.run_.attention) for name, model in ranked
        ),
        unsure=results.unsure(graph, split, probabilities),
        ranking=results.ranking(graph, split, probabilities),
        precision_recall=results.precision_recall(graph, split, probabilities),
        warnings=(results.Note("tiny test set", f"The test set has only {len(split.test)} nodes."),),
        tree=results.tree(best.tree_),
        against=results.ranked(
            [
                results.Rival("model", "this model", test=_around(best.run_.test_metric)),
                results.Rival("floor", "Features", test=_around(0.5), seconds=0.1, memory=2**28),
                results.Rival("gat", "GAT", reason="it needs torch"),
            ],
            results.Splits(((60, 20, 20),) * 3, used=(0, 1, 2)),
        ),
    )
    return add_reasons(add_importances(result, best.fitted_, graph), best.fitted_, graph), best


def _around(value: float) -> results.Spread:
    return results.Spread.of([value, min(1.0, value + 0.01), value - 0.02])
