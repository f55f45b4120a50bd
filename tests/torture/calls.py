"""Every public function, constructor and method, called with arguments some of which are bad.

What is public is read from ``__all__``; a name that is new there is called too, and one whose arguments have no example
below stops the attack before its first try. `python -m torture.calls 5000` counts what calls come to, and where errors
arise that this package did not raise itself.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import io
import linecache
import os
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from torture.campaign import Fault, attack

MODULES = (
    *("graph", "measures", "metrics", "trees", "framelets", "channels", "models", "training", "decisions", "recipe"),
    *(
        "networks",
        "fitted",
        "splits",
        "explain",
        "importance",
        "classifier",
        "auto",
        "results",
        "datasets",
        "relations",
    ),
    *("experiments", "comparison", "large", "running", "report", "layouts", "plots", "integrations.sklearn"),
    *("integrations.pyg", "testing", "_families"),
)
DOCUMENTED = (TypeError, ValueError, OSError, MemoryError, ImportError, NotImplementedError)
ALSO = {"testing.check_operator": AssertionError}
"""What else a function promises to raise: this is a test that users call in tests of their own."""
LEFT_OUT = {
    "running.follow": "ends a worker whose parent is another than the one it is told",
    "running.release_memory": "has no arguments, and takes longer than a thousand calls",
    "experiments.OutOfTime": "an exception",
    "training.Diverged": "an exception",
    "datasets.NoLabels": "an exception",
    "datasets.UnknownIds": "an exception",
    "datasets.ReadOptions": "a type of keywords",
    "datasets.TableOptions": "a type of keywords",
    "models.GraphNetwork": "a base class",
    "classifier.NodeModel": "a base class",
    "classifier.NodeClassifier": "a base class",
    "classifier.NodeRegressor": "a base class",
    **dict.fromkeys(
        (
            *("fitted.Fitted.channels_on", "fitted.Fitted.held_out", "fitted.Fitted.is_fitted_to"),
            *("fitted.Fitted.known_to", "fitted.Trained.second_channels", "fitted.TrainedNetwork.predict"),
            "fitted.ChannelFacts.of",
            *("channels.Channel.inside", "channels.Channel.entered"),
            *("channels.Channels.at", "channels.Channels.at_places", "channels.Channels.rows_at"),
        ),
        "what parts of the package ask each other, with what they have checked",
    ),
    "large.LargeGraph": "made by large.open",
    "trees.Builder": "made by trees.builder, and called by build_tree with what it has checked",
    "trees.LevelGraph": "made by build_tree",
    "framelets.Family": "a row of a table, made where it stands",
    "running.Progress": "a type",
}
WITHIN = ("by_rows", "matrices", "nonzeros", "shares")
"""What operators answer to the channels that hold them, which ask with what they have checked."""
RARE = (
    "plots.",
    "layouts.layout",
    "report.",
    "experiments.run",
    "comparison.compare",
    "large.",
    ".plot",
    ".draw",
    ".fit",
)
"""Calls that take tens of milliseconds: one in twenty of the others."""
SPARED = {"scheduler", "cluster"}
"""Addresses: a bad one is waited for, half a minute."""
WRITING = {
    "path",
    "folder",
    "work",
    "store",
    "trees",
    "relations",
    "root",
    "where",
    "paths",
    "source",
    "nodes",
    "edges",
}
"""Where a file is named, a bad name may be a good one."""


@dataclass(frozen=True)
class Call:
    """A public name, what makes it (fresh for every call, given a folder), and arguments that it takes."""

    name: str
    make: Callable[[Path], Callable[..., Any]]
    given: dict[str, Any]
    optional: tuple[str, ...]
    spread: tuple[str, ...] = ()
    """The name of its ``*arguments``, if there are any, after those that come before."""


# ------------------------------------------------------------------ good arguments


def world(place: Path) -> dict[str, Any]:
    """Small examples of everything, by the names that parameters have."""
    import pandas as pd
    import torch

    import pegfan as pf
    from pegfan import comparison, explain, measures, networks, recipe, results, running, stages, training
    from pegfan.channels import Matrix

    rng = np.random.default_rng(0)
    n = 12
    ring = np.array([[i, (i + 1) % n] for i in range(n)] + [[0, 5], [2, 9], [3, 7]])
    labels = np.arange(n) % 2
    whole = pf.Graph.from_edges(
        ring,
        features=rng.normal(size=(n, 4)),
        feature_names=["a", "b", "c", "d"],
        labels=labels,
        class_names=["no", "yes"],
        splits=[([0, 1, 2, 3, 4, 5], [6, 7, 8], [9, 10, 11])],
        positions=rng.normal(size=(n, 2)),
    )
    split = whole.splits[0]
    tree = pf.build_tree(whole, h=3)
    system = pf.FrameletSystem(tree)
    channels = pf.make_channels(whole, system, regime="heterophily", hops=2)
    settings = training.Settings(epochs=3, hidden=4)
    brief = pf.Recipe(h=3, hops=1, regime="heterophily", settings=settings)
    model = pf.RecipeClassifier(brief).fit(whole)
    told = model.fitted_
    member = told.members[0]
    network = pf.NetworkClassifier("gcn", epochs=3, patience=2).fit(whole)
    gcn = networks.NetworkRecipe("gcn", epochs=3, patience=2)
    numbers = whole.replace(labels=None, targets=rng.normal(size=n), class_names=None, metric="r2")
    explainer = explain.Explainer(told)
    outputs = np.log(np.full((n, 2), 0.5, np.float32))
    known = recipe.Known.of(whole, split.train)
    decision = pf.decisions.Decision.of(pf.decisions.Predictions(outputs, labels, np.arange(n)), "accuracy")
    facts = results.data(whole)
    rival = results.Rival("gcn", "GCN", test=results.Spread.of([0.5, 0.6]), validation=results.Spread.of([0.5, 0.6]))
    found = comparison.Comparison(
        title="t", data=facts, splits=results.Splits.of(whole.splits), rows=(rival,), tries=1, search_splits=1, seed=0
    )
    table = place / "nodes.csv"
    pairs = place / "edges.csv"
    frame = pd.DataFrame({"id": np.arange(n), "age": np.arange(n) % 5, "label": np.where(labels, "x", "y")})
    ends = pd.DataFrame(ring, columns=["source", "target"])
    saved = place / "model"
    if not saved.exists():
        frame.to_csv(table, index=False)
        ends.to_csv(pairs, index=False)
        tree.save(place / "tree.npz")
        model.save(saved)
    store = pf.experiments.Store(place / "store")
    source = pf.datasets.Source.of(pairs, nodes=str(table))
    job = pf.experiments.Job(source, brief, 0, 0)
    result = results.Result(data=facts)
    x = torch.tensor(np.asarray(whole.features), dtype=torch.float32)
    edge_index = torch.tensor(np.concatenate([ring, ring[:, ::-1]]).T.copy())
    run = member.run
    parts = stages.deal(whole, known.codes, 0)
    inputs = brief.channels(whole, member.tree)
    net = training.Network(run.state, settings)
    return {k: v for k, v in locals().items() if k not in ("place", "pf", "pd", "torch")} | {
        "graph": whole,
        "g": whole,
        "adjacency": whole.adjacency,
        "features": np.asarray(whole.features),
        "hierarchy": tree,
        "B": pf.binary_haar(3).B,
        "p": pf.binary_haar(3).p,
        "f": rng.normal(size=n),
        "values": rng.normal(size=n),
        "array": rng.normal(size=system.count()),
        "matrix": sp.csr_array(np.eye(n)),
        "operator": Matrix("own", sp.csr_array(np.eye(n))),
        "probabilities": np.exp(outputs),
        "predicted": labels,
        "log_probabilities": outputs,
        "calibrated": outputs,
        "summary": measures.Summary(1, 1.0, 1.0, 1),
        "deadline": running.Deadline(10.0),
        "told": told,
        "fitted": told,
        "network": network,
        "numbers": numbers,
        "model": model,
        "gcn": gcn,
        "facts": facts,
        "explainer": explainer,
        "job": job,
        "source": source,
        "result": result,
        "decision": decision,
        "found": found,
        "rival": rival,
    }


def _named(w: dict[str, Any]) -> dict[str, Any]:
    """A good argument for each name of a parameter that is called the same everywhere."""
    n = 12
    return {
        **{name: w[name] for name in ("graph", "hierarchy", "system", "tree", "channels", "settings", "features", "f")},
        **{name: w[name] for name in ("labels", "split", "values", "B", "p", "matrix", "operator", "probabilities")},
        **{
            name: w[name] for name in ("predicted", "log_probabilities", "calibrated", "explainer", "decision", "found")
        },
        **{name: w[name] for name in ("adjacency", "job", "source", "result", "run", "known", "fitted", "array")},
        **{name: w[name] for name in ("x", "edge_index", "parts")},
        "h": 3,
        "hops": 2,
        "n": n,
        "j": 1,
        "j0": 1,
        "level": 1,
        "slot": 0,
        "index": (1,),
        "seed": 0,
        "perm": np.arange(n)[::-1].copy(),
        "places": np.arange(n),
        "order": np.arange(n),
        "nodes": np.arange(3),
        "train": w["split"].train,
        "test": w["split"].test,
        "clusters": np.arange(n) // 3,
        "classes": w["labels"],
        "codes": w["known"].codes,
        "metric": "accuracy",
        "name": "name",
        "label": "label",
        "names": ("a", "b", "c", "d"),
        "member": "member",
        "kind": "projection",
        "mode": "soft",
        "children": 3,
        "keep": 0.5,
        "value": 0.5,
        "w": np.array([1.0, -1.0, 0.0]),
        "weights": np.ones(3) / 3,
        "weight_decay": 0.01,
        "recipe": w["brief"],
        "counts": [5, 7],
        "powers": 1,
        "sizes": [0.4, 0.3, 0.3],
        "levels": [np.arange(n) // 6],
        "linkage": np.array([[0, 1, 1.0, 2], [2, 3, 1.0, 2], [4, 5, 2.0, 4]]),
        "nested": [[0, 1], [2, [3, 4]]],
        "other": w["tree"],
        "permutations": {(1,): [*range(int(w["tree"].n_children(1)[0]))][::-1]},
        "permutation": np.arange(int(w["tree"].n_children(1)[0]))[::-1].copy(),
        "edges": w["ring"],
        "data": w["facts"],
        "members": w["told"].members,
        "widths": [4, 4],
        "state": w["run"].state,
        "runs": [w["run"]],
        "splits": list(w["whole"].splits),
        "stored": {},
        "text": "{}",
        "rows": [w["rival"]],
        "row": w["rival"],
        "text_": "text",
        "about": w["facts"],
        "copies": 0.1,
        "others": [0.5, 0.7],
        "ratio": 0.5,
        "tests": [(w["outputs"], w["labels"], np.arange(n))],
        "outputs": [w["outputs"], w["outputs"]],
        "seconds": 5.0,
        "begun": 0.0,
        "size": 100,
        "what": "an array",
        "xy": np.random.default_rng(0).normal(size=(n, 2)),
        "positions": np.random.default_rng(0).normal(size=(n, 2)),
        "links": w["whole"].adjacency,
        "start": np.random.default_rng(0).normal(size=(n, 2)),
        "gamma": 0.5,
        "path": Path("out"),
        "folder": Path("out"),
    }


_OF_KIND = {"int": 1, "float": 0.5, "float | None": 0.5, "str": "word", "bool": False, "tuple": (), "Numbers": (0.5,)}
_OF_KIND |= {"str | None": "word", "int | None": 1, "Mapping": {}, "dict": {}}
"""A good argument for each annotation, without what is in brackets."""


def _special(w: dict[str, Any], place: Path) -> dict[str, dict[str, Any]]:
    """Good arguments of single functions, where the names alone do not tell them; None leaves out an optional one."""
    import torch

    from pegfan import decisions, relations, results
    from pegfan.datasets import Schema
    from pegfan.framelets import MomentSystem

    n = 12
    files = {"nodes": w["frame"], "edges": w["ends"]}
    networks = {"features": 4, "classes": 2, "hidden": 4, "dropout": 0.5}
    state = {"x": w["x"], "edge_index": w["edge_index"]}
    told = {"graph": w["whole"], "split": w["split"]}
    scores = {"values": [0.5, 0.6]}
    small = {"n": 40, "n_edges": 80, "n_features": 3}
    short = {"settings": w["settings"], "labels": w["labels"], "splits": list(w["whole"].splits)}
    return {
        "graph.Graph": {"features": w["features"], "labels": w["labels"], "splits": w["whole"].splits},
        "graph.Graph.from_edges": {"weights": np.ones(len(w["ring"])), "features": w["features"]},
        "graph.Graph.from_networkx": {"nx_graph": w["whole"].to_networkx()},
        "graph.Graph.from_pyg": {"data": w["whole"].to_pyg()},
        "graph.Graph.of": {"value": w["whole"].to_pygsp()},
        "graph.Graph.from_pygsp": {"pygsp_graph": w["whole"].to_pygsp()},
        "graph.Graph.split": {"which": 0},
        "graph.Graph.replace": {"features": w["features"], "labels": w["labels"], "positions": None},
        "graph.Graph.weighted": {"name": None},
        "graph.Graph.with_positive": {"name": "yes"},
        "datasets.graph_from_tables": files,
        "datasets.read_graph": {"edges": w["pairs"], "nodes": w["table"]},
        "datasets.load": {"name": "cora", "root": place / "none", "offline": True},
        "datasets.info": {"name": "cora"},
        "datasets.table": {"names": ["cora"], "root": place / "none"},
        "datasets.synthetic": small,
        "datasets.transactions": {"n": 60, "n_payments": 150},
        "datasets.Source": {"where": (str(w["pairs"]),)},
        "datasets.Source.of": {"where": (w["pairs"],), "nodes": w["table"]},
        "datasets.Source.from_dict": {"stored": w["source"].to_dict()},
        "datasets.Source.kept": {"folder": place / "none"},
        "datasets.Source.grown": {"paths": (w["pairs"],), "schema": None},
        "datasets.Schema.from_dict": {"stored": Schema.of_names(["a"]).to_dict()},
        "datasets.stand_in_features": {"how": "degree", "dimension": 8},
        "framelets.FrameletSystem": {"weights": None},
        "framelets.FrameletFrame": {"systems": [w["system"]]},
        "framelets.FrameletFrame.denoise": {"threshold": "empirical", "sigma": 0.3},
        "framelets.FrameletFrame.noise": {"sigma": 0.3},
        "framelets.TimeSystem": {"space": w["system"], "length": 8},
        "framelets.TimeSystem.decompose": {"f": np.zeros((w["system"].n, 8))},
        "framelets.TimeSystem.reconstruct": {"coefficients": np.zeros((w["system"].count(), 8))},
        "framelets.FrameletFrame.reconstruct": {"coefficients": w["system"].decompose(w["f"]).array},
        "framelets.FrameletSystem.denoise": {"threshold": "sure", "mode": "soft", "sigma": 0.3},
        "framelets.FrameletSystem.variances": {"variance": np.ones(w["tree"].n)},
        "framelets.MomentSystem": {"coordinates": np.arange(w["tree"].n)},
        "framelets.MomentSystem.reconstruct": {
            "coefficients": list(MomentSystem(w["tree"], np.arange(w["tree"].n)).decompose(w["f"]))
        },
        "framelets.MomentSystem.variances": {"variance": np.ones(w["tree"].n)},
        "framelets.MomentSystem.denoise": {"threshold": "sure", "mode": "soft", "sigma": 0.3},
        "framelets.FrameletSystem.project": {"classes": None},
        "framelets.FrameletSystem.projections": {"classes": None},
        "framelets.FrameletSystem.reconstruct": {"coefficients": w["system"].decompose(w["f"])},
        "framelets.Coefficients.replace": {"array": w["system"].decompose(w["f"]).array},
        "framelets.Operator": {"shape": (n, n), "forward": lambda x: x, "transposed": lambda x: x},
        "framelets.binary_haar": {},
        "measures.Summary.of": {"values": np.arange(5)},
        "metrics.interval": {"parts": [(w["outputs"], w["labels"])], "resamples": 20},
        "metrics.suitable": {"names": ["a", "b"]},
        "trees.Hierarchy": {"parents": [[0] * n], "order": np.arange(n)},
        "trees.Hierarchy.from_linkage": {"sizes": [2]},
        "trees.Hierarchy.load": {"path": place / "tree.npz"},
        "trees.Hierarchy.draw": {},
        "trees.canonical_order": {"labels": None},
        "channels.Channel": {"input": w["features"], "operator": None},
        "channels.Channel.apply": {"weights": np.ones((4, 2))},
        "channels.Channel.materialize": {},
        "channels.Channels": {"channels": list(w["channels"]), "order": None},
        "channels.Channels.apply": {"weights": [np.ones((4, 2))] * len(w["channels"])},
        "channels.Hop": {"kind": "S", "edges": None},
        "channels.hop_matrix": {"kind": "S"},
        "channels.make_channels": {"kind": "c", "system": w["system"]},
        "channels.Projection": {"scale": 1, "classes": None},
        **{f"models.{one}": networks for one in ("GCN", "GCNII", "GPRGNN", "H2GCN", "MLP", "SGC", "SIGN", "WRGAT")},
        **{f"models.{one}": networks for one in ("ClassicGNN", "GeomGCN", "GraphSAGE", "MixHop")},
        "models.GAT": networks | {"heads": 2},
        "models.LINKX": networks | {"nodes": n},
        "models.SGC": {"features": 4, "classes": 2},
        **{f"models.{one}": {"classes": 2, "hidden": 4} for one in ("PEGFAN", "FSGNN", "ChannelNetwork")},
        **{
            f"models.{one}.{name}": given
            for one in ("PEGFAN", "FSGNN", "ChannelNetwork")
            for name, given in {
                "forward": {"channels": [w["x"], w["x"]]},
                "outputs": {"channels": [w["x"], w["x"]]},
                "from_state": {"settings": w["settings"]},
            }.items()
        },
        "models.WRGAT.forward": state | {"edge_type": torch.zeros(w["edge_index"].shape[1], dtype=torch.long)},
        "models.GeomGCN.forward": state | {"edge_type": torch.zeros(w["edge_index"].shape[1], dtype=torch.long)},
        "models.GeomGCN.divisions": state
        | {"edge_weight": None, "edge_type": torch.zeros(w["edge_index"].shape[1], dtype=torch.long)},
        "models.LabelPropagation.forward": {"y": torch.eye(2)[torch.tensor(w["labels"])]},
        "models.LabelPropagation": {},
        "models.Neighbours.keep": {"key": "key", "make": lambda: 1},
        "models.Sparse.data": {"dtype": np.float32},
        "models.Sparse.drop": {"rate": 0.5},
        "models.to_tensors": {"arrays": [w["features"]]},
        "training.Network": {"settings": w["settings"]},
        "training.Network.draw": {"classes": 2},
        "training.Network.predict": {"channels": w["inputs"], "nodes": None},
        "training.Network.predict_rows": {"rows": lambda part: w["inputs"].rows(np.arange(12)[part]), "count": 12},
        "training.Settings.of": {"given": {"epochs": 3}},
        "training.train": short | {"classes": None},
        "decisions.Decision.of": {"given": decisions.Predictions(w["outputs"], w["labels"], np.arange(n))},
        "decisions.Decision.from_dict": {"stored": w["decision"].to_dict(), "classes": 2},
        "decisions.Decision.with_threshold": {"threshold": 0.5},
        "decisions.Decision.asked": {"threshold": 0.5},
        "decisions.Predictions.joined": {"parts": [decisions.Predictions(w["outputs"], w["labels"], np.arange(n))]},
        "decisions.Predictions.some": {"most": 5},
        "recipe.Recipe.of": {"given": {"h": 3}},
        "recipe.Recipe": {"weights": None, "kind": "c", "levels": None},
        "recipe.Recipe.build_tree": {"levels": None},
        "recipe.Recipe.changed": {"h": 3, "hops": 1},
        "recipe.Recipe.channels": {"known": w["known"]},
        "recipe.Recipe.hop_count": {"directed": True},
        "recipe.Recipe.relabelled": {"told": w["known"]},
        "recipe.TreeFile.of": {"path": place / "tree.npz"},
        "recipe.TreeFile.find": {"folder": place},
        "recipe.TreeFile.read": {"folder": place},
        "recipe.pad_levels": {"levels": w["tree"].K + 1},
        "networks.NetworkRecipe.changed": {"epochs": 3},
        "networks.NetworkRecipe.of": {"given": {"model": "gcn"}},
        "networks.recipe_of": {"given": {"h": 3}},
        "networks.NetworkRecipe": {"kind": None, "weights": None},
        "fitted.Fitted.of": {"stood_in": False},
        "splits.draw_folds": {"k": 3},
        "splits.draw_splits": {"k": 2},
        "fitted.mean_of": {"weights": None},
        "fitted.network_inputs": {"recipe": w["gcn"]},
        "splits.ranks_and_tenths": {"targets": np.linspace(0, 1, 20)},
        "fitted.train_network_recipe": {"recipe": w["gcn"]},
        "explain.Explainer.texts": {"nodes": [0]},
        "importance.permutation_importance": {"repeats": 1, "seconds": 0.2},
        **{
            f"{one}.{name}": given
            for one in (
                *("classifier.FSGNNClassifier", "classifier.NetworkClassifier", "classifier.PEGFANClassifier"),
                *(
                    "classifier.PEGFANRegressor",
                    "classifier.RecipeClassifier",
                    "auto.AutoClassifier",
                    "auto.AutoRegressor",
                ),
            )
            for name, given in {
                "explain": {"nodes": [0, 1]},
                "load": {"folder": w["saved"]},
                "set_params": {"random_state": 1},
                "decided": {},
                "extended": {"places": np.arange(n)},
                "fit": {"graph": w["numbers"] if "Regressor" in one else w["whole"]},
                "score": {"graph": w["numbers"] if "Regressor" in one else w["whole"], "split": 0},
            }.items()
        },
        "auto.load_classifier": {"folder": w["saved"]},
        "auto.load_model": {"folder": w["saved"]},
        "results.ChannelWeight": {"group": "hops"},
        "results.Result.from_json": {"text": w["result"].to_json()},
        "results.Spread.of": scores,
        "results.Unsure": {
            **{"id": "0", "predicted": "yes", "probability": 0.5, "second": "no", "second_probability": 0.5}
        },
        "results.attention": {"channels": w["member"].channels, "weights": [0.1] * len(w["member"].channels)},
        "results.calibrated": {"decision": decisions.Decision(decisions.Calibration(1.0, (0.0, 0.0)))},
        "results.cautions": {"result": results.Result(data=w["facts"], splits=results.Splits.of(w["whole"].splits))},
        "results.curve": {"run": w["run"]},
        "results.data": {"classes": ["no", "yes"]},
        "results.paired_difference": scores,
        "results.ranked": {"splits": results.Splits.of(w["whole"].splits)},
        "results.rank_numbers": told | {"graph": w["numbers"]},
        "results.mean_prediction": told | {"graph": w["numbers"]},
        "results.regression": told
        | {"graph": w["numbers"], "outputs": {name: [(w["f"], w["f"])] for name in ("model", "mean", "features")}},
        "results.decided": told,
        "results.majority": told,
        "experiments.Record": {
            "job": w["job"].to_dict(),
            "metric": "accuracy",
            "versions": {},
            "regime": None,
            "tree": {},
        },
        "experiments.Job": {"split": 0},
        "experiments.Job.from_dict": {"stored": w["job"].to_dict()},
        "experiments.Store.get": {"key": "0" * 64},
        "experiments.Store.append": {"record": {}},
        "experiments.run": {"jobs": [w["job"]], "store": w["store"]},
        "comparison.Comparison": {"splits": results.Splits.of(w["whole"].splits), "rows": (w["rival"],)},
        "comparison.Contender": {"space": {"hops": [1, 2]}},
        "comparison.Contender.candidates": {"count": 2},
        "comparison.Contender.without": {"name": "hops", "choices": (1,)},
        "comparison.compare": {"models": ["mlp"], "tries": 1, "changes": {"epochs": 2}, "store": None},
        "large.open": {"nodes": w["table"], "edges": w["pairs"], "work": Path("out")},
        "relations.geom_divisions": {"relations": relations.geom_relations(w["whole"])},
        "relations.read_geom_relations": {"path": place / "none"},
        "running.Runner": {},
        "running.Runner.map": {"task": len, "items": ["a", "b"], "here": True},
        "report.write_report": {"tree": w["tree"]},
        "plots.signals": {"values": {"a": w["f"]}},
        "plots.ccns": {"graphs": w["whole"]},
        "plots.framelets": {"levels": None},
        "plots.tree": {"labels": None},
        "plots.levels": {"levels": None},
        "integrations.sklearn.TransductiveClassifier.fit": {"X": np.arange(9)[:, None], "y": w["labels"][:9]},
        "integrations.sklearn.TransductiveClassifier.predict": {"X": np.arange(3)[:, None]},
        "integrations.sklearn.TransductiveClassifier.predict_proba": {"X": np.arange(3)[:, None]},
        "integrations.pyg.Framelets.forward": {"data": w["whole"].to_pyg()},
        "integrations.pyg.Framelets": {"kind": "c"},
    }


def _instances(w: dict[str, Any], place: Path) -> dict[str, Callable[[Path], Any]]:
    """What methods are called on: where a constructor's example would not do, or calls change it."""
    from pegfan import (
        AutoClassifier,
        AutoRegressor,
        PEGFANRegressor,
        comparison,
        datasets,
        decisions,
        metrics,
        training,
    )
    from pegfan.channels import FeatureScale, PrincipalColumns
    from pegfan.experiments import Store
    from pegfan.integrations.sklearn import TransductiveClassifier
    from pegfan.recipe import TreeFile

    tree_file = TreeFile.of(place / "tree.npz")
    scale, principal = FeatureScale.of(w["features"]), PrincipalColumns.of(w["features"])
    explanation = w["explainer"].explain([0])[0]
    paid = datasets.transactions(60, n_payments=150)
    short = {"h": 3, "hops": 1, "regime": "heterophily", "epochs": 3, "hidden": 4}
    regressor = PEGFANRegressor(**short).fit(w["numbers"])
    by_recipes = AutoClassifier(budget=5, recipes=[w["brief"]], members=1).fit(w["whole"])
    of_numbers = AutoRegressor(budget=5, recipes=[w["brief"]], members=1).fit(w["numbers"])
    sklearn = TransductiveClassifier(w["whole"], w["model"]).fit(np.arange(9)[:, None], w["labels"][:9])
    return {
        "graph.Graph": lambda folder: w["whole"],
        "trees.Hierarchy": lambda folder: w["tree"],
        "recipe.Recipe": lambda folder: w["brief"],
        "recipe.TreeFile": lambda folder: tree_file,
        "fitted.Trained": lambda folder: w["member"],
        "fitted.TrainedNetwork": lambda folder: w["network"].fitted_.members[0],
        "measures.Description": lambda folder: w["whole"].describe(),
        "metrics.Metric": lambda folder: metrics.METRICS["accuracy"],
        "channels.FeatureScale": lambda folder: scale,
        "channels.PrincipalColumns": lambda folder: principal,
        "training.TrainingResult": lambda folder: training.TrainingResult(
            [w["run"]], w["settings"], "accuracy", "fast"
        ),
        "decisions.Calibration": lambda folder: decisions.Calibration(1.0, (0.0, 0.0)),
        "decisions.Predictions": lambda folder: decisions.Predictions(w["outputs"], w["labels"], np.arange(12)),
        "explain.Explanation": lambda folder: explanation,
        "datasets.Schema": lambda folder: datasets.Schema.of_names(["a"]),
        "datasets.Transactions": lambda folder: paid,
        "comparison.Contender": lambda folder: comparison.CONTENDERS["mlp"],
        "fitted.Fitted": lambda folder: w["told"],
        "explain.Explainer": lambda folder: w["explainer"],
        "channels.Channels": lambda folder: w["channels"],
        "training.Network": lambda folder: w["net"],
        "decisions.Decision": lambda folder: w["decision"],
        "classifier.PEGFANClassifier": lambda folder: copy.copy(w["model"]),
        "classifier.FSGNNClassifier": lambda folder: copy.copy(w["model"]),
        "classifier.RecipeClassifier": lambda folder: copy.copy(w["model"]),
        "classifier.NetworkClassifier": lambda folder: copy.copy(w["network"]),
        "classifier.PEGFANRegressor": lambda folder: copy.copy(regressor),
        "auto.AutoClassifier": lambda folder: copy.copy(by_recipes),
        "auto.AutoRegressor": lambda folder: copy.copy(of_numbers),
        "integrations.sklearn.TransductiveClassifier": lambda folder: copy.copy(sklearn),
        "experiments.Store": lambda folder: Store(folder / "store"),
        "datasets.Source": lambda folder: w["source"],
        "comparison.Comparison": lambda folder: w["found"],
    }


def public() -> Iterator[tuple[str, Any]]:
    """Every public class and function, once, by the name of its module and its own."""
    seen = set[int]()
    for module in MODULES:
        part = importlib.import_module(f"pegfan.{module}")
        for name in part.__all__:
            value = getattr(part, name)
            if callable(value) and id(value) not in seen and f"{module}.{name}" not in LEFT_OUT:
                seen.add(id(value))
                yield f"{module}.{name}", value


def _holds_only(kind: type) -> bool:
    """Whether a class is a record that looks at nothing: whatever it is given, it holds."""
    return hasattr(kind, "_fields") or (hasattr(kind, "__dataclass_fields__") and not hasattr(kind, "__post_init__"))


def calls(w: dict[str, Any], place: Path) -> list[Call]:
    """Every call there is, with arguments that it takes."""
    from pegfan.framelets import Operator

    named, special, instances = _named(w), _special(w, place), _instances(w, place)
    found, missing = list[Call](), list[str]()

    def add(name: str, make: Callable[[Path], Callable[..., Any]], signed: Any) -> None:
        own, given, optional, spread = special.get(name, {}), dict[str, Any](), list[str](), list[str]()
        for one in inspect.signature(signed).parameters.values():
            kind = _OF_KIND.get(str(one.annotation).split("[")[0])
            if one.kind is one.VAR_KEYWORD:
                given |= {key: value for key, value in own.items() if key not in given and value is not None}
            elif one.kind is one.VAR_POSITIONAL:
                spread = [*given, one.name]
                given |= {one.name: own.get(one.name, ())}
            elif one.name in own:
                if own[one.name] is not None or one.default is one.empty:
                    given[one.name] = own[one.name]
            elif one.default is not one.empty:
                optional += [] if one.name in SPARED else [one.name]
            elif one.name in named and (kind is None or isinstance(named[one.name], type(kind))):
                given[one.name] = named[one.name]
            elif kind is not None:
                given[one.name] = kind
            else:
                missing.append(f"{name}({one.name})")
        found.append(Call(name, make, given, tuple(optional), tuple(spread)))

    for name, value in public():
        if not inspect.isclass(value):
            add(name, lambda folder, value=value: value, value)
            continue
        if not _holds_only(value):
            add(name, lambda folder, value=value: value, value)
        example = found[-1] if found and found[-1].name == name else None
        for word in dir(value):
            static, bound = inspect.getattr_static(value, word), getattr(value, word)
            if f"{name}.{word}" in LEFT_OUT or (issubclass(value, Operator) and word in WITHIN):
                continue
            if word.startswith("_") or not (getattr(bound, "__module__", None) or "").startswith("pegfan"):
                continue
            if isinstance(static, (classmethod, staticmethod)):
                add(f"{name}.{word}", lambda folder, bound=bound: bound, bound)
            elif inspect.isfunction(static):
                held = instances.get(name) or (lambda folder, example=example: _plain(example, folder))
                if name not in instances and example is None:
                    missing.append(f"an instance of {name}")
                    continue
                try:
                    method = getattr(held(place), word)
                except Exception as error:
                    missing.append(f"an instance of {name}: {error}")
                    continue
                add(f"{name}.{word}", lambda folder, held=held, word=word: getattr(held(folder), word), method)
    if missing:
        raise ValueError("no examples in torture/calls.py of " + ", ".join(dict.fromkeys(missing)))
    return found


def _plain(call: Call, folder: Path) -> Any:
    """The call as its example has it."""
    ordered, given = _ordered(call, call.given)
    return call.make(folder)(*ordered, **given)


def _ordered(call: Call, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by place, where there are any number of them, and by name."""
    if not call.spread:
        return [], given
    *before, last = (given[name] for name in call.spread)
    rest = {name: value for name, value in given.items() if name not in call.spread}
    return [*before, *(last if isinstance(last, (list, tuple)) else [last])], rest


# ------------------------------------------------------------------ bad arguments


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    return value


def _within_itself() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def _objects() -> Any:
    value = np.empty(12, object)
    value[:] = [[1], None, "a", {}, 1.5, object, (), b"", True, 2, -1, np.nan]
    return value


def bad_values(w: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Values that few parameters take, by what they are."""
    import networkx
    import torch

    rng = np.random.default_rng(1)
    return {
        **{repr(value): lambda value=value: value for value in (None, True, False, 0, 1, -1, 2, 7, -(10**9), 10**9)},
        **{repr(value): lambda value=value: value for value in (10**12, -0.0, 0.5, -0.5, 1.5, 1e-300, 1e300)},
        **{repr(value): lambda value=value: value for value in (float("nan"), float("inf"), float("-inf"), 1j)},
        **{repr(value): lambda value=value: value for value in ("", "unknown", "a", "0", "\ud800", "\0", "x" * 5000)},
        **{repr(value)[:20]: lambda value=value: value for value in (b"", b"\xff\x00", (), (1,), (1, 2, 3), range(3))},
        **{repr(value): lambda value=value: value for value in ([], [[]], [1, 2, 3], [None], ["a", 1], [[1, 2], [3]])},
        **{repr(value): lambda value=value: value for value in ({}, {"unknown": 1}, {1: 2}, {None: []}, {1, 2}, set())},
        "10**5000": lambda: 10**5000,
        "np.int64(3)": lambda: np.int64(3),
        "np.float32(nan)": lambda: np.float32("nan"),
        "np.True_": lambda: np.True_,
        "np.datetime64": lambda: np.datetime64("2020-01-01"),
        "a list 10,000 deep": _deep,
        "a list within itself": _within_itself,
        "a generator": lambda: (i for i in range(3)),
        "a function": lambda: len,
        "a class": lambda: dict,
        "an object": object,
        # Only such paths as lie in the folder of the try, or nowhere: what is told to write, writes.
        "a missing path": lambda: Path("no such folder") / "file",
        "a path below a file": lambda: Path("/dev/null/file"),
        "a folder": lambda: Path(),
        "array: empty": lambda: np.empty(0),
        "array: (0, 5)": lambda: np.empty((0, 5)),
        "array: (12, 0)": lambda: np.empty((12, 0)),
        "array: ()": lambda: np.array(3.0),
        "array: (12,) floats": lambda: rng.normal(size=12),
        "array: (12,) NaN": lambda: np.full(12, np.nan),
        "array: (12,) integers": lambda: np.arange(12),
        "array: (12,) negative": lambda: -np.arange(12),
        "array: (12,) huge": lambda: np.full(12, 2**62),
        "array: (12,) uint64": lambda: np.full(12, 2**64 - 1, np.uint64),
        "array: (12,) words": lambda: np.array(list("abcdefghijkl")),
        "array: (12,) booleans": lambda: np.arange(12) % 2 == 0,
        "array: (12,) complex": lambda: np.ones(12, complex),
        "array: (12,) dates": lambda: np.arange(12).astype("datetime64[D]"),
        "array: (13,)": lambda: np.ones(13),
        "array: (12, 12)": lambda: rng.normal(size=(12, 12)),
        "array: (3, 3)": lambda: np.eye(3),
        "array: (2, 2, 2)": lambda: np.ones((2, 2, 2)),
        "array: (12, 2) inf": lambda: np.full((12, 2), np.inf),
        "array: objects": _objects,
        "array: a list of itself": lambda: np.array([_within_itself(), None], object),
        "array: records": lambda: np.zeros(12, dtype=[("a", int), ("b", float)]),
        "array: read-only, strided": lambda: np.broadcast_to(np.float64(1), (12, 10**9)),
        "masked array": lambda: np.ma.masked_array(np.arange(12), np.arange(12) % 2),
        "sparse: coo (12, 12)": lambda: sp.coo_array(np.eye(12)),
        "sparse: dok (3, 4)": lambda: sp.dok_array(np.eye(3, 4)),
        "sparse: bsr matrix": lambda: sp.bsr_matrix(np.ones((12, 12))),
        "sparse: lil objects": lambda: sp.lil_array(np.eye(12), dtype=np.float32),
        "sparse: (0, 0)": lambda: sp.csr_array((0, 0)),
        "sparse: 10**9 rows": lambda: sp.coo_array(([1.0], ([0], [0])), shape=(10**9, 10**9)),
        "sparse: indices out of range": _broken_sparse,
        "sparse: NaN": lambda: sp.csr_array(np.full((12, 12), np.nan)),
        "tensor: (12,)": lambda: torch.ones(12),
        "tensor: gradient": lambda: torch.ones((12, 4), requires_grad=True),
        "tensor: meta": lambda: torch.ones((12, 4), device="meta"),
        "tensor: half": lambda: torch.ones((12, 4), dtype=torch.bfloat16),
        "tensor: long": lambda: torch.full((2, 30), 99),
        "tensor: sparse": lambda: torch.eye(12).to_sparse(),
        "a graph": lambda: w["whole"],
        "a graph of numbers": lambda: w["numbers"],
        "a graph of nothing else": lambda: w["whole"].replace(features=None, labels=None, splits=(), class_names=None),
        "another graph": lambda: w["whole"].subgraph([0, 1, 2, 3, 4]),
        "a NetworkX graph": lambda: networkx.path_graph(3),
        "a tree": lambda: w["tree"],
        "another tree": lambda: type(w["tree"]).from_nested([[0, 1], [2, 3]]),
        "a system": lambda: w["system"],
        "channels": lambda: w["channels"],
        "a recipe": lambda: w["brief"],
        "a model": lambda: w["model"],
        "a fitted one": lambda: w["told"],
        "a split": lambda: w["split"],
        "a data frame": lambda: w["frame"],
        "an empty data frame": lambda: w["frame"].iloc[:0],
        "a series": lambda: w["frame"]["label"],
        "a generator of NumPy": lambda: np.random.default_rng(0),
    }


def _broken_sparse() -> Any:
    matrix = sp.csr_array(np.eye(12))
    matrix.indices = matrix.indices + 100
    return matrix


def spoiled(value: Any, draw: random.Random, bad: dict[str, Callable[[], Any]]) -> tuple[str, Any]:
    """A good value that is bad in one place."""
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iufb":
        how = draw.choice(
            ["shorter", "longer", "one more axis", "turned", "as objects", "as words", "one bad", "as list"]
        )
        if how == "one bad":
            value = value.astype(np.int64 if value.dtype.kind == "i" else np.float64)
            value.flat[draw.randrange(value.size)] = draw.choice(
                [-1, -2, 10**6, 2**62] if value.dtype.kind == "i" else [np.nan, np.inf, -1.0, 1e300]
            )
            return "with one bad number", value
        made = {
            "shorter": lambda: value[:-1],
            "longer": lambda: np.concatenate([value, value]),
            "one more axis": lambda: value[None],
            "turned": lambda: value.T.astype(np.float16),
            "as objects": lambda: value.astype(object),
            "as words": lambda: value.astype(str),
            "as list": lambda: value.tolist(),
        }
        return how, made[how]()
    if isinstance(value, dict) and value:
        key, (name, make) = draw.choice(list(value)), draw.choice(list(bad.items()))
        return f"{{{key!r}: {name}}}", {**value, key: make()}
    if isinstance(value, (list, tuple)) and value and not hasattr(value, "_fields"):
        place, (name, make) = draw.randrange(len(value)), draw.choice(list(bad.items()))
        return f"[{place}] = {name}", type(value)([*value[:place], make(), *value[place + 1 :]])
    name, make = draw.choice(list(bad.items()))
    return name, make()


def arguments(call: Call, draw: random.Random, bad: dict[str, Callable[[], Any]]) -> tuple[dict[str, Any], str]:
    """Arguments by name, and the words for those that are bad."""
    given, words = dict(call.given), list[str]()
    names = [*given, *call.optional]
    for name in draw.sample(names, min(len(names), draw.choice([1, 1, 1, 1, 2, 3]))):
        if name in given and draw.random() < 0.4:
            how, given[name] = spoiled(given[name], draw, bad)
        else:
            how, make = draw.choice(list(bad.items()))
            given[name] = make()
        words.append(f"{name}={how}")
    if draw.random() < 0.02:
        given["no_such_name"] = 1
        words.append("no_such_name=1")
    return given, ", ".join(words)


# ------------------------------------------------------------------ what came of it


def _bits(value: Any, depth: int = 3) -> list[bytes]:
    """What an argument's arrays hold."""
    if isinstance(value, np.ndarray):
        return [value.tobytes()] if value.nbytes < 10**6 and value.dtype.kind != "O" else []
    if sp.issparse(value) and hasattr(value, "indptr"):
        return [value.data.tobytes(), value.indices.tobytes(), value.indptr.tobytes()]
    if hasattr(value, "edge_matrices"):
        return _bits([value.adjacency, value.features, value.labels], 1)
    if type(value).__name__ == "Tensor" and value.device.type == "cpu" and not value.is_sparse:
        return [bytes(value.detach().contiguous().view(-1).numpy().data)] if value.dtype.itemsize > 2 else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth:
        return [bits for part in value[:20] for bits in _bits(part, depth - 1)]
    return []


def outcome(call: Call, draw: random.Random, bad: dict[str, Callable[[], Any]], folder: Path) -> BaseException | None:
    """Call it once, and look at what it may not do. Returns the error, which is a documented one."""
    here = folder / "here"
    here.mkdir()
    os.chdir(here)
    given, words = arguments(call, draw, bad)
    said = f"{call.name}({words})"
    before = _bits(given, 4)
    told, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            found = _plain(replace(call, given=given), folder)
            if inspect.isgenerator(found):
                for _ in zip(range(3), found, strict=False):
                    pass
    except Fault as fault:
        raise Fault(f"{said}: {fault}") from None
    except DOCUMENTED as documented:
        error = documented
        if isinstance(error, MemoryError) and "pegfan" not in _where(error)[0]:
            raise Fault(f"{said}: {_told(error)}") from error
        # A message must be fit to be shown.
        _told(error)
    except Exception as other:
        if not isinstance(other, ALSO.get(call.name, ())):
            raise Fault(f"{said}: {_told(other)}") from other
    if _bits(given, 4) != before:
        raise Fault(f"{said}: an argument was changed")
    if told.getvalue():
        raise Fault(f"{said}: printed {told.getvalue()[:100]!r}")
    if not WRITING & set(given) - {"nodes", "edges"} and any(here.iterdir()):
        raise Fault(f"{said}: left {[path.name for path in here.iterdir()]} in the current folder")
    if call.name.startswith(("plots.", "trees.Hierarchy.draw", "comparison.Comparison.plot")):
        import matplotlib.pyplot as plt

        plt.close("all")
    return error


def _where(error: BaseException) -> tuple[str, int, bool]:
    """The file and line that an error arose at, and whether this package raised it itself."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame, line = frames[-1]
    name = frame.f_code.co_filename
    ours = "/pegfan/" in name and linecache.getline(name, line).strip().startswith("raise")
    return name, line, ours or name == __file__


def _told(error: BaseException) -> str:
    name, line, _ = _where(error)
    inner = [
        f"{Path(frame.f_code.co_filename).name}:{number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if "/pegfan/" in frame.f_code.co_filename
    ]
    return f"{type(error).__name__}: {str(error)[:100]!r} ({Path(name).name}:{line} from {' '.join(inner[-2:])})"


def prepare(place: Path) -> tuple[list[Call], dict[str, Callable[[], Any]]]:
    """Everything that can be called, the rare ones once for twenty times the others."""
    os.environ.setdefault("MPLBACKEND", "agg")
    os.environ.setdefault("PEGFAN_OFFLINE", "1")
    warnings.simplefilter("ignore")
    import logging

    logging.disable(logging.CRITICAL)  # matplotlib's complaints of odd words are not ours
    w = world(place)
    found = calls(w, place)
    often = [call for call in found if not any(word in call.name for word in RARE)]
    return often * 20 + [call for call in found if call not in often], bad_values(w)


@attack(
    "bad arguments",
    "A call with bad arguments returns or raises a documented error, within 5 s and 500 MB; "
    "it changes no argument, prints nothing and leaves no file",
    100_000,
    prepare=prepare,
    seconds=5.0,
    memory=500 * 2**20,
)
def bad_arguments(state: Any, number: int, draw: random.Random, folder: Path) -> None:
    found, bad = state
    outcome(draw.choice(found), draw, bad, folder)


def main(count: int, only: str = "") -> None:
    """Count what calls come to."""
    with tempfile.TemporaryDirectory() as place:
        found, bad = prepare(Path(place))
        found = [call for call in found if only in call.name]
        came, foreign = Counter[str](), Counter[str]()
        for number in range(count):
            draw = random.Random(f"0/bad arguments/{number}")
            folder = Path(place) / f"try{number}"
            folder.mkdir()
            try:
                error = outcome(draw.choice(found), draw, bad, folder)
            except Fault as fault:
                came["fault"] += 1
                print(fault)
                continue
            kind = "a result" if error is None else type(error).__name__
            if error is not None and not _where(error)[2]:
                foreign[_told(error).split("(")[-1]] += 1
                kind += ", not raised by us"
            came[kind] += 1
    for kind, times in came.most_common():
        print(f"{times:8,}  {kind}")
    for where, times in foreign.most_common(40):
        print(f"{times:8,}  {where}")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
