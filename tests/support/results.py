"""A real result of a small training run, in the form that `pegfan train` stores."""

from __future__ import annotations

from typing import Any

import numpy as np

import pegfan as pf
from pegfan.classifier import PEGFANClassifier


def trained(graph: pf.Graph, title: str = "A small graph", **settings: Any) -> tuple[dict[str, Any], PEGFANClassifier]:
    """Train two candidates on the first split and describe the better one as `result.json` does."""
    options = {"epochs": 60, "patience": 60, **settings}
    models = [PEGFANClassifier(h=4, channels=kind, **options).fit(graph) for kind in ("b", "c")]
    models.sort(key=lambda model: -model.run_.val_metric)
    best = models[0]
    probabilities = best.predict_proba()
    return describe(graph, models, probabilities, title), best


def describe(graph: pf.Graph, models: list[PEGFANClassifier], probabilities: Any, title: str) -> dict[str, Any]:
    best, split, labels = models[0], graph.splits[0], graph.labels
    classes = [str(name) for name in best.classes_]
    predicted = probabilities.argmax(axis=1)
    counts = np.bincount(labels[labels >= 0], minlength=len(classes))
    confusion = np.zeros((len(classes), len(classes)), int)
    np.add.at(confusion, (labels[split.test], predicted[split.test]), 1)
    about = pf.measures.describe(graph)
    majority = float((labels[split.test] == counts.argmax()).mean())
    with np.errstate(invalid="ignore"):
        precision = confusion.diagonal() / confusion.sum(axis=0)
        recall = confusion.diagonal() / confusion.sum(axis=1)
    return {
        "format": "pegfan result",
        "version": 1,
        "title": title,
        "source": {"where": ["synthetic"], "options": {"gamma": 0.0}},
        "command": "pegfan train synthetic -o out/",
        "seed": 42,
        "when": "2026-01-01 12:00",
        "versions": {"pegfan": pf.__version__, "numpy": np.__version__},
        "seconds": {"total": 12.0, "search": 9.0, "final": 3.0},
        "budget": 60,
        "data": {
            "nodes": graph.n,
            "edges": graph.n_edges,
            "directed": graph.directed,
            "features": about.features,
            "classes": classes,
            "class_counts": counts.tolist(),
            "labelled": about.labelled,
            "metric": graph.metric,
            "homophily": {
                "edge homophily": about.edge_homophily,
                "node homophily": about.node_homophily,
                "adjusted homophily": about.adjusted_homophily,
                "label informativeness": about.label_informativeness,
            },
            "ccns": pf.measures.ccns(graph).tolist(),
            "components": about.components,
            "report": None,
        },
        "splits": {
            "count": len(graph.splits),
            "made": False,
            "sizes": [[len(part) for part in s] for s in graph.splits],
        },
        "candidates": [_candidate(model, i) for i, model in enumerate(models)],
        "chosen": {"how": "the best on validation", "members": [0], "reason": "It is the best by a margin."},
        "test": _spread(best.run_.test_metric, graph.metric),
        "validation": _spread(best.run_.val_metric, graph.metric),
        "floors": {
            "majority": {"mean": majority, "std": 0.0},
            "features_only": {"mean": 0.5 * (majority + best.run_.test_metric), "std": 0.02},
        },
        "confusion": confusion.tolist(),
        "per_class": [
            {"class": name, "support": int(confusion[k].sum()), "precision": precision[k], "recall": recall[k]}
            for k, name in enumerate(classes)
        ],
        "curves": [
            {
                "name": f"PEGFAN {model.channels}",
                **{key: model.history_[key] for key in ("train_loss", "val_loss", "val_metric")},
                "best_epoch": model.run_.best_epoch,
            }
            for model in models
        ],
        "attention": [
            {
                "member": f"PEGFAN {model.channels}",
                "channels": [
                    {"name": name, "weight": weight, "what": "the features" if name == "X" else f"channel {i + 1}"}
                    for i, (name, weight) in enumerate(model.attention_.items())
                ],
            }
            for model in models
        ],
        "unsure": _unsure(graph, probabilities, classes),
        "warnings": [{"kind": "tiny test set", "text": f"The test set has only {len(split.test)} nodes."}],
        "tree": {
            "method": best.tree_.info.get("method"),
            "h": best.tree_.h,
            "levels": best.tree_.K,
            "clusters": list(best.tree_.n_clusters),
            "info": {},
        },
    }


def _candidate(model: PEGFANClassifier, i: int) -> dict[str, Any]:
    return {
        "name": f"PEGFAN {model.channels}",
        "recipe": {"h": model.h, "channels": model.channels, "regime": model.regime},
        "val_metric": model.run_.val_metric,
        "val_loss": model.run_.val_loss,
        "seconds": model.run_.seconds,
        "epochs": model.run_.epochs,
        "chosen": i == 0,
        "why": "best on validation" if i == 0 else "behind the best",
    }


def _spread(value: float, metric: str) -> dict[str, Any]:
    values = [value, min(1.0, value + 0.01), value - 0.02]
    return {"metric": metric, "mean": float(np.mean(values)), "std": float(np.std(values)), "per_split": values}


def _unsure(graph: pf.Graph, probabilities: Any, classes: list[str]) -> list[dict[str, Any]]:
    best = np.sort(probabilities, axis=1)
    order = np.argsort(best[:, -1] - best[:, -2])[:20]
    names = np.arange(graph.n) if graph.node_names is None else graph.node_names
    ranked = np.argsort(-probabilities, axis=1)
    return [
        {
            "id": str(names[i]),
            "predicted": classes[ranked[i, 0]],
            "probability": float(best[i, -1]),
            "second": classes[ranked[i, 1]],
            "second_probability": float(best[i, -2]),
            "true": classes[graph.labels[i]] if graph.labels[i] >= 0 else None,
        }
        for i in order
    ]
