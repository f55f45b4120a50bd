"""A whole training run: the final model, its test metric with its spread, two floors, and all that a report shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pegfan.auto.classifier import AutoClassifier, Member
from pegfan.auto.recipes import Recipe
from pegfan.auto.search import Candidate, Job, Pool, Progress, mean_of, validate
from pegfan.graph import Graph, Split

__all__ = ["Outcome", "Plan", "carry_out", "with_splits"]

FORMAT, VERSION = "pegfan result", 1

SEARCH = 0.6
"""The part of the budget that the search has; the rest is for the other splits."""
SPLITS = 5
"""On how many splits the chosen recipes are trained, if time allows and nothing else is said."""
_UNSURE = 20
_TINY = 50
_IMBALANCE = 10.0


@dataclass(frozen=True)
class Plan:
    """What a training run is asked to do.

    Attributes
    ----------
    budget
        Seconds in all.
    seed
        Of splits that are drawn, weights and dropout.
    split
        The split whose model is kept.
    splits
        On how many splits the chosen recipes are trained for the spread; None for five, or fewer as time allows.
    workers
        Processes.
    pins, recipes, choose
        As in `AutoClassifier`.
    """

    budget: float = 120.0
    seed: int = 0
    split: int = 0
    splits: int | None = None
    workers: int = 1
    pins: Mapping[str, Any] = field(default_factory=dict)
    recipes: Sequence[Recipe] | None = None
    choose: Literal["auto", "mean", "best"] = "auto"


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished training run.

    Attributes
    ----------
    model
        The fitted classifier.
    probabilities
        Of every node and class.
    result
        All that ``result.json`` holds but what only the command line knows (source, command, time of day).
    parts
        Of every node in the split of the model: train, val, test or none.
    ran
        The recipes in the order in which they were listed, and the number of splits: what repeats the run.
    """

    model: AutoClassifier
    probabilities: NDArray[np.float32]
    result: dict[str, Any]
    parts: list[str]
    ran: dict[str, Any]


def with_splits(graph: Graph, plan: Plan) -> tuple[Graph, bool]:
    """The graph with splits: its own, or stratified ones drawn here; and whether they were drawn.

    A split of the user's without validation nodes gives up a quarter of its training nodes for them.
    """
    from pegfan.datasets import random_splits

    if graph.labels is None or not (graph.labels >= 0).any():
        raise ValueError("no node has a label, so there is nothing to learn; name the column of classes with label=")
    if len(np.unique(graph.labels[graph.labels >= 0])) < 2:
        raise ValueError("all labelled nodes are of one class, so there is nothing to tell apart")
    if graph.splits:
        return graph.replace(splits=[_with_validation(graph, part, plan.seed) for part in graph.splits]), False
    wanted = max(plan.splits or SPLITS, plan.split + 1)
    return graph.replace(splits=random_splits(graph.labels, k=wanted, seed=plan.seed)), True


def _with_validation(graph: Graph, part: Split, seed: int) -> Split:
    from pegfan.datasets import random_splits

    assert graph.labels is not None
    if len(part.val) or not len(part.train):
        return part
    among = np.full(graph.n, -1, np.int64)
    among[part.train] = graph.labels[part.train]
    drawn = random_splits(among, k=1, sizes=(0.75, 0.25, 0.0), seed=seed)[0]
    return Split(drawn.train, drawn.val, part.test)


def carry_out(
    graph: Graph, plan: Plan, progress: Progress | None = None, say: Callable[[str], None] | None = None
) -> Outcome:
    """Search on one split, keep the model, and train what was chosen on further splits for the spread.

    Parameters
    ----------
    graph
        With labels.
    plan
        What to do.
    progress
        Called with events of the search.
    say
        Called with a sentence at every stage after it.
    """
    start = time.perf_counter()
    tell = say or (lambda _: None)
    known, drawn = with_splits(graph, plan)
    if not 0 <= plan.split < len(known.splits):
        raise ValueError(f"there is no split {plan.split}: the graph has splits 0 to {len(known.splits) - 1}")
    model = AutoClassifier(
        budget=SEARCH * plan.budget,
        random_state=plan.seed,
        recipes=plan.recipes,
        pins=plan.pins,
        choose=plan.choose,
        workers=plan.workers,
    ).fit(known, plan.split, progress)
    searched = time.perf_counter() - start
    tell("floors and further splits")
    spread = _Spread(model, plan, start, tell)
    spread.run()
    probabilities = model.predict_proba()
    parts = _parts(known, plan.split)
    result = {
        "format": FORMAT,
        "version": VERSION,
        "seed": plan.seed,
        "budget": plan.budget,
        "data": _data(graph),
        "splits": {
            "count": len(known.splits),
            "used": spread.used,
            "made": drawn,
            "sizes": [list(map(len, part)) for part in known.splits],
        },
        "candidates": _candidates(model),
        "chosen": _chosen(model),
        "test": {"metric": known.metric, **spread.table("test")},
        "validation": {"metric": known.metric, **spread.table("validation")},
        "floors": {
            "majority": spread.table("majority"),
            "features_only": spread.table("features") | {"recipe": spread.floor.name},
        },
        **_confusion(known, probabilities, known.splits[plan.split], model),
        "curves": [_curve(member) for member in model.members_],
        "attention": [_attention(member) for member in model.members_],
        "unsure": _unsure(known, probabilities, parts, model),
        "warnings": _warnings(graph, known, plan, drawn, spread),
        "tree": _tree(model),
    }
    total = time.perf_counter() - start
    result["seconds"] = {"total": total, "search": searched, "final": total - searched}
    recipes = [Recipe.of(recipe).to_dict() for recipe in model._check_fitted().parameters["recipes"]]
    ran = {"recipes": recipes, "splits": len(spread.used)}
    return Outcome(model, probabilities, _plain(result), parts.tolist(), ran)


# ----------------------------------------------------------------------- spread


class _Spread:
    """The test metric of the chosen recipes on several splits, beside what the majority and the features give."""

    def __init__(self, model: AutoClassifier, plan: Plan, start: float, tell: Callable[[str], None]) -> None:
        self.model, self.plan, self.start, self.tell = model, plan, start, tell
        fitted = model._check_fitted()
        self.graph = model._fitted_graph(fitted)
        self.members = [member.recipe for member in model.members_]
        first = min(model.members_, key=lambda m: m.run.val_loss).recipe
        same = Recipe(hops=0, features=first.features, settings=first.settings)
        tried = [c for c in model.candidates_ if c.recipe.tree is None and _features_alone(c.recipe)]
        self.tried = {c.recipe: c for c in tried}
        self.choices = list(dict.fromkeys([same, *self.tried]))
        self.floor = same
        self.values: dict[str, list[float]] = {"test": [], "validation": [], "majority": [], "features": []}
        self.used: list[int] = []

    def run(self) -> None:
        splits = self.graph.splits
        wanted = min(self.plan.splits or SPLITS, len(splits))
        order = [self.plan.split, *(i for i in range(len(splits)) if i != self.plan.split)][:wanted]
        from pegfan.auto.recipes import scale_of

        chosen = {c.recipe: c for c in self.model.candidates_}
        cost = sum(chosen[recipe].seconds for recipe in self.members)
        slow = cost / len(self.members) > 2.0
        with Pool(self.graph, scale_of(self.graph, [*self.members, *self.choices]), self.plan.workers) as pool:
            pool.trees.update({m.recipe.tree: m.tree for m in self.model.members_ if m.tree is not None})
            self._first(pool)
            for place, i in enumerate(order[1:], start=1):
                left = self.plan.budget - (time.perf_counter() - self.start)
                fixed = self.plan.splits is not None
                if not fixed and cost / (self.plan.workers if slow else 1) > left:
                    break
                self.tell(f"split {i}, {place + 1} of at most {len(order)}")
                part = self._part(i)
                recipes = [*self.members, self.floor]
                jobs = [Job(recipe, part, self.plan.seed + i) for recipe in dict.fromkeys(recipes)]
                done = {c.recipe: c for c in pool.run(iter(jobs), parallel=slow)}
                self._add(i, part, [done[r] for r in self.members], done[self.floor])

    def _first(self, pool: Pool) -> None:
        """The split of the search: the members are there, only the floor may be missing."""
        part = self._part(self.plan.split)
        for recipe in self.choices:
            if recipe not in self.tried:
                self.tried |= {recipe: next(pool.run(iter([Job(recipe, part, self.plan.seed)]), parallel=False))}
        best = min(self.tried.values(), key=lambda c: c.rank)
        self.floor = best.recipe
        candidates = {c.recipe: c for c in self.model.candidates_}
        self._add(self.plan.split, part, [candidates[recipe] for recipe in self.members], best)

    def _part(self, i: int) -> Split:
        assert self.graph.labels is not None
        return Split(*(nodes[self.graph.labels[nodes] >= 0] for nodes in self.graph.splits[i]))

    def _add(self, i: int, part: Split, members: Sequence[Candidate], floor: Candidate) -> None:
        from pegfan.training import score

        assert self.graph.labels is not None
        labels = self.graph.labels[part.test]
        output = mean_of([member.log_probabilities for member in members])
        self.used.append(i)
        self.values["test"].append(score(output[part.test], labels, self.graph.metric))
        self.values["validation"].append(validate(output, self.graph, part)[0])
        self.values["features"].append(score(floor.log_probabilities[part.test], labels, self.graph.metric))
        counts = np.bincount(self.graph.labels[part.train], minlength=self.graph.n_classes)
        flat = np.tile(counts == counts.max(), (len(labels), 1)).astype(float)
        self.values["majority"].append(score(flat, labels, self.graph.metric))

    def table(self, what: str) -> dict[str, Any]:
        values = [value for value in self.values[what] if np.isfinite(value)]
        spread = (
            {"mean": float(np.mean(values)), "std": float(np.std(values))} if values else {"mean": None, "std": None}
        )
        return spread | {"per_split": self.values[what]}


def _features_alone(recipe: Recipe) -> bool:
    return recipe.hops == 0 and not (recipe.adjacency or recipe.labels or recipe.structure)


# ------------------------------------------------------------------------ parts


def _data(graph: Graph) -> dict[str, Any]:
    from pegfan import measures

    facts = graph.describe().to_dict()
    assert graph.labels is not None
    names = _class_names(graph)
    kinds = ("edge_homophily", "node_homophily", "adjusted_homophily", "label_informativeness")
    return {
        "nodes": graph.n,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "features": facts["features"],
        "classes": names,
        "class_counts": np.bincount(graph.labels[graph.labels >= 0], minlength=len(names)).tolist(),
        "labelled": facts["labelled"],
        "metric": graph.metric,
        "homophily": {kind.removesuffix("_homophily"): facts[kind] for kind in kinds},
        "ccns": measures.ccns(graph).tolist() if len(names) <= 100 else None,
        "components": facts["components"],
        "isolated": facts["isolated"],
        "report": None,
    }


def _class_names(graph: Graph) -> list[str]:
    names = range(graph.n_classes) if graph.class_names is None else graph.class_names.tolist()
    return [str(name) for name in names]


def _candidates(model: AutoClassifier) -> list[dict[str, Any]]:
    chosen = {member.recipe for member in model.members_}
    best = model.candidates_[0].recipe
    why = {True: "one of the chosen", False: ""}
    return [
        {
            "name": c.recipe.name,
            "recipe": c.recipe.to_dict(),
            "val_metric": c.val_metric,
            "val_loss": c.val_loss,
            "seconds": c.seconds,
            "epochs": c.epochs,
            "chosen": c.recipe in chosen,
            "why": "best on validation" if c.recipe == best else why[c.recipe in chosen],
        }
        for c in model.candidates_
    ]


def _chosen(model: AutoClassifier) -> dict[str, Any]:
    places = {c.recipe: i for i, c in enumerate(model.candidates_)}
    return {
        "how": model.how_,
        "members": [places[member.recipe] for member in model.members_],
        "reason": model.reason_,
        "val_metric": model.validation_[0],
        "val_loss": model.validation_[1],
    }


def _curve(member: Member) -> dict[str, Any]:
    history = member.run.history or {}
    kept = {
        name: [round(float(v), 6) for v in history.get(name, ())] for name in ("train_loss", "val_loss", "val_metric")
    }
    return {"name": member.recipe.name, **kept, "best_epoch": member.run.best_epoch}


def _attention(member: Member) -> dict[str, Any]:
    channels = [
        {"name": name, "weight": weight, "what": channel_words(name)} for name, weight in member.attention.items()
    ]
    return {"member": member.recipe.name, "channels": channels}


_OWN_WORDS = {
    "X": "the features alone",
    "A": "who a node is joined to",
    "degrees": "degrees of a node and its neighbours",
    "Y near": "training labels of neighbours",
    "Y far": "training labels two steps away",
    "Y X": "features of neighbours by their training label",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_SIDES = {"in": " against the edges", "sym": " both ways"}


def channel_words(name: str) -> str:
    """Say in words what a channel holds.

    Examples
    --------
    >>> channel_words("F_3 S X"), channel_words("S~^2 X"), channel_words("F_0 X"), channel_words("S_in X")
    ('scale 3 of one hop', 'two hops with the node itself', 'the average of the features', 'one hop against the edges')
    """
    if name in _OWN_WORDS:
        return _OWN_WORDS[name]
    scale, hops = None, ""
    for word in name.removesuffix(" X").split():
        symbol, _, power = word.partition("^")
        if symbol.startswith("F_"):
            scale = symbol[2:]
            continue
        count = int(power or 1)
        symbol, _, side = symbol.partition("_")
        number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
        own = " with the node itself" if symbol.endswith("~") else ""
        hops = f"{number} hop{'s' if count > 1 else ''}{own}{_SIDES.get(side, '')}"
    if scale is None:
        return hops or name
    return f"{'the average' if scale == '0' else f'scale {scale}'} of {hops or 'the features'}"


def _confusion(graph: Graph, probabilities: NDArray[np.float32], split: Split, model: AutoClassifier) -> dict[str, Any]:
    assert graph.labels is not None
    k = len(model.classes_)
    test = split.test[graph.labels[split.test] >= 0]
    matrix = np.zeros((k, k), np.int64)
    np.add.at(matrix, (graph.labels[test], probabilities[test].argmax(axis=1)), 1)
    support, predicted, right = matrix.sum(axis=1), matrix.sum(axis=0), matrix.diagonal()
    rows = [
        {
            "class": name,
            "support": int(support[i]),
            "precision": float(right[i] / predicted[i]) if predicted[i] else None,
            "recall": float(right[i] / support[i]) if support[i] else None,
        }
        for i, name in enumerate(_class_names(graph))
    ]
    return {"confusion": matrix.tolist(), "per_class": rows}


def _parts(graph: Graph, split: int) -> NDArray[Any]:
    """The part of every node in a split: train, val, test or none."""
    parts = np.full(graph.n, "none", dtype="<U5")
    for name, nodes in zip(Split._fields, graph.splits[split], strict=True):
        parts[nodes] = name
    return parts


def _unsure(
    graph: Graph, probabilities: NDArray[np.float32], parts: NDArray[Any], model: AutoClassifier
) -> list[dict[str, Any]]:
    """The nodes with the least margin between the first two classes; test and unlabelled ones before others."""
    assert graph.labels is not None
    names, ids = _class_names(graph), node_ids(graph)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    rows = np.arange(graph.n)
    margin = probabilities[rows, order[:, 0]] - probabilities[rows, order[:, 1]]
    late = ~np.isin(parts, ("none", "test"))
    found = np.lexsort([rows, margin, late])[:_UNSURE]
    return [
        {
            "id": ids[i],
            "predicted": names[order[i, 0]],
            "probability": float(probabilities[i, order[i, 0]]),
            "second": names[order[i, 1]],
            "second_probability": float(probabilities[i, order[i, 1]]),
            "true": names[graph.labels[i]] if graph.labels[i] >= 0 else None,
        }
        for i in found
    ]


def node_ids(graph: Graph) -> list[str]:
    """The names of the nodes, or their numbers."""
    return [str(name) for name in (range(graph.n) if graph.node_names is None else graph.node_names.tolist())]


def _tree(model: AutoClassifier) -> dict[str, Any] | None:
    member = next((m for m in model.members_ if m.tree is not None), None)
    if member is None or member.tree is None:
        return None
    tree = member.tree
    return {
        "method": tree.info.get("method"),
        "h": member.recipe.h,
        "levels": tree.K,
        "clusters": list(tree.n_clusters),
        "member": member.recipe.name,
        "info": dict(tree.info),
    }


def _warnings(graph: Graph, known: Graph, plan: Plan, drawn: bool, spread: _Spread) -> list[dict[str, str]]:
    assert graph.labels is not None
    found: list[dict[str, str]] = []

    def warn(kind: str, text: str) -> None:
        found.append({"kind": kind, "text": text})

    part = known.splits[plan.split]
    test = part.test[graph.labels[part.test] >= 0]
    if not len(test):
        warn("no test nodes", "The split has no labelled test nodes, so nothing says how good the predictions are.")
    elif len(test) < _TINY:
        warn("tiny test set", f"The test set has {len(test)} nodes: one node is {100 / len(test):.1f} points.")
    if len(spread.used) == 1 and len(test):
        warn("one split", "The metric comes from a single split, so its spread is not known; a larger budget has more.")
    means = {what: spread.table(what)["mean"] for what in ("test", "features", "majority")}
    if means["test"] is not None and means["test"] <= means["majority"] + 1e-9:
        hint = (
            " Where one of two classes is rare, metric roc_auc tells more than accuracy."
            if graph.metric == "accuracy" and graph.n_classes == 2
            else ""
        )
        warn(
            "no better than a floor",
            f"On test nodes the model is no better than naming the largest class each time.{hint}",
        )
    elif means["test"] is not None and means["test"] <= means["features"] + 1e-9:
        warn(
            "no better than a floor",
            "On test nodes the model is no better than features alone: the graph adds nothing.",
        )
    counts = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.n_classes)
    used = counts[counts > 0]
    if used.max() >= _IMBALANCE * used.min() or (counts == 0).any():
        low = _class_names(graph)[int(np.argmin(counts))]
        warn(
            "class imbalance",
            f"Classes have from {counts.min()} ({low}) to {counts.max()} nodes; small ones are hard to learn.",
        )
    share = duplicate_share(graph, part.train, test)
    if share >= 0.1:
        warn(
            "leaking duplicates",
            f"{share:.0%} of the test nodes have exactly the neighbours of a training node. If they are copies, the "
            "test metric is too good for new nodes.",
        )
    if graph.features is None:
        warn("no features", "The nodes have no features; degrees stand in for them.")
    isolated = graph.describe().isolated
    if isolated >= 0.05 * graph.n:
        warn("isolated nodes", f"{isolated:,} nodes have no edge: for them only features count.")
    unlabelled = int((graph.labels < 0).sum())
    if unlabelled:
        warn("unlabelled nodes", f"{unlabelled:,} nodes have no label; they are predicted, and count nowhere.")
    if len(spread.used) > 1 and not drawn:
        warn(
            "spread",
            f"Recipes were chosen on the validation nodes of split {plan.split}; some of those are test nodes of the "
            "other splits.",
        )
    return found


def duplicate_share(graph: Graph, train: NDArray[np.int64], test: NDArray[np.int64]) -> float:
    """The share of test nodes whose neighbours are exactly those of a training node; nodes without edges do not count.

    Examples
    --------
    >>> graph = Graph.from_edges([[0, 2], [1, 2], [3, 4]])
    >>> duplicate_share(graph, np.array([0, 3]), np.array([1, 4]))
    0.5
    """
    a = graph.adjacency

    def key(i: int) -> bytes:
        return bytes(a.indices[a.indptr[i] : a.indptr[i + 1]].tobytes())

    seen = {key(i) for i in train} - {b""}
    return float(np.mean([key(i) in seen for i in test])) if len(test) else 0.0


def _plain(value: Any) -> Any:
    """Values that JSON can hold; what is no number becomes None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
