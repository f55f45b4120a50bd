"""Which options of automatic training earn their place: with all of them, without all, then without each.

    python benchmarks/ablation.py run [--only twitch_RU,dblp] [--keep adjacency]    trains; resumes where it stopped
    python benchmarks/ablation.py table                                       prints what was found

The metric is that of the validation nodes of a split. The model never sees them: a quarter of the training nodes serves
for its own choices. Nobody looks at test nodes. A training takes so many seconds of one core, whatever else the machine
does. Every row is appended to results/ablation.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pegfan as pf
from pegfan.auto import recipes
from pegfan.auto.classifier import fit_model
from pegfan.recipe import Recipe
from pegfan.running import Clock

HOME = Path(__file__).parent
STORE = HOME / "results" / "ablation.jsonl"
SHARED = HOME.parents[1] / "shared" / "data"
OPTIONS: dict[str, dict[str, Any]] = {
    "between": {"between": False},
    "words": {"direction": "both"},
    "stages": {"stages": 1},
    "spectrum": {"spectrum": False},
    "principal": {"scaling": "none"},
    "adjacency": {"adjacency": False},
}
"""What stands in the place of an option that is left out."""
SETS = ("chameleon_filtered_directed", "squirrel_filtered_directed", "minesweeper", "tolokers")
GRAPHS = ("facebook_Reed98", "facebook_Amherst41", "twitch_PTBR", "twitch_RU", *SETS)
GRAPHS += ("chameleon_filtered", "squirrel_filtered", "amazon_photo", "dblp", "deezer_europe", "musae_github")


def read(name: str, seed: int) -> tuple[pf.Graph, tuple[Any, Any]]:
    """A graph, its own training and validation nodes, and in the place of test nodes the split's validation nodes."""
    folder = "heterophilous-graphs" if name in SETS or "filtered" in name else "graphs"
    graph = pf.read_graph(SHARED / folder / f"{name}.npz", directed=name.endswith("directed") or None)
    if name in ("minesweeper", "tolokers"):
        graph = graph.replace(metric="roc_auc")
    assert graph.labels is not None
    rng = np.random.default_rng(seed)
    if graph.splits:
        train, judged = graph.splits[seed].train, graph.splits[seed].val
    else:
        train, judged, _ = np.array_split(rng.permutation(graph.n), 3)
    train = rng.permutation(train)
    own = len(train) // 4
    return graph.replace(splits=[(np.sort(train[own:]), np.sort(train[:own]), np.sort(judged))]), (train, judged)


def leave_out(names: list[str]) -> None:
    """Take options from every recipe that the search makes."""
    before, may_boost = recipes._fitting, recipes._may_boost

    def fitting(graph: pf.Graph, recipe: Recipe, pins: Any) -> Recipe:
        for name in names:
            ((field, value),) = OPTIONS[name].items()
            taken = {"words": "words", "principal": "principal"}.get(name)
            if taken is None or getattr(recipe, field) == taken:
                recipe = recipe.changed(**{field: value})
        return before(graph, recipe, pins)

    recipes._fitting = fitting
    if "principal" in names:  # boosting asks about every column, where there are not too many
        made = recipes._boosted
        recipes._boosted = lambda graph, training: made(graph, training) if narrow(graph) else []
        base = recipes.Space.__init__

        def init(self: Any, graph: pf.Graph, *args: Any, **options: Any) -> None:
            recipes._may_boost = may_boost if narrow(graph) else lambda pins: False
            base(self, graph, *args, **options)

        recipes.Space.__init__ = init  # type: ignore[method-assign]


def narrow(graph: pf.Graph) -> bool:
    """Whether boosting may ask about all columns."""
    assert graph.features is not None
    return bool(graph.features.shape[1] <= recipes.BOOSTED_MOST)


def train(name: str, seed: int, without: list[str], seconds: float) -> dict[str, Any]:
    """Train once, in this process."""
    leave_out(without)
    graph, _ = read(name, seed)
    model = pf.AutoClassifier(budget=seconds, random_state=seed, workers=1)
    fit_model(model, graph, 0, None, clock=Clock(seconds, only_cpu=True))
    used = dict.fromkeys(OPTIONS, 0)
    for trial in model.trials_:
        if trial.weight:
            recipe = trial.recipe
            used["words"] += recipe.direction == "words"
            used["principal"] += recipe.scaling == "principal"
            used["stages"] += recipe.stages > 1
            for field in ("between", "spectrum", "adjacency"):
                used[field] += bool(getattr(recipe, field))
    row: dict[str, Any] = {"name": name, "seed": seed, "without": without, "seconds": seconds}
    row |= {"metric": float(model.score(graph, split=0)), "recipes": len(model.trials_), "used": used}
    return row


def rows() -> Iterator[dict[str, Any]]:
    """What was stored."""
    if STORE.exists():
        yield from map(json.loads, STORE.read_text(encoding="utf-8").splitlines())


def run(given: argparse.Namespace) -> None:
    """Train where no row is stored; every training is a process of its own."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    names = given.only.split(",") if given.only else GRAPHS
    left_out = [name for name in OPTIONS if name not in given.keep.split(",")]
    arms = [[], left_out] if given.arms == "all" else [[name] for name in given.arms.split(",")]
    done = {(row["name"], row["seed"], *row["without"]) for row in rows()}
    for seed in range(given.seeds):
        for name in names:
            for without in arms:
                if (name, seed, *without) in done:
                    continue
                with context.Pool(1) as pool:
                    row = pool.apply(partial(train, name, seed, without, given.seconds))
                with STORE.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, sort_keys=True) + "\n")
                print(row, flush=True)


def table(given: argparse.Namespace) -> None:
    """For every graph, the means over seeds, with all options and without some, and how far seeds are apart."""
    stored: dict[str, dict[str, list[float]]] = {}
    for row in rows():
        arm = "all" if len(row["without"]) == len(OPTIONS) else " ".join(row["without"])
        stored.setdefault(row["name"], {}).setdefault(arm, []).append(row["metric"])
    for name, arms in stored.items():
        parts = [f"{name:28s}"]
        for arm, values in arms.items():
            spread = statistics.stdev(values) if len(values) > 1 else float("nan")
            said = f"without {arm}" if arm else "with all"
            parts.append(f"{said} {statistics.mean(values):.4f} ± {spread:.4f} ({len(values)})")
        print("  ".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    for work in (run, table):
        command = commands.add_parser(work.__name__, help=work.__doc__)
        command.set_defaults(work=work)
        command.add_argument("--only", default="", help="names of graphs, with commas between them")
        command.add_argument(
            "--arms", default="all", help="all: with and without all; or options to be left out one by one"
        )
        command.add_argument("--keep", default="", help="options that stay where the others are left out")
        command.add_argument("--seeds", type=int, default=3)
        command.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    given.work(given)


if __name__ == "__main__":
    main()
