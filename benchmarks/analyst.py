"""Average precision on an analyst's tables: `pegfan train` beside gradient boosting on columns made by hand.

    python benchmarks/analyst.py                       ten banks of 20,000 accounts, 120 s each, as the command has it
    python benchmarks/analyst.py --n 3000 --budget 20 --seeds 2
    python benchmarks/analyst.py --data tolokers --only sums,train
    python benchmarks/analyst.py --table               shows what is stored

Everybody sees the same tables and the same labels, and is judged on the accounts whose label was blank in the file:
average precision, precision among the top 1 %, ROC AUC, and the calibration error (the mean distance of predicted and
true share over twenty groups of equally many nodes). Boosting is tuned: learning rate, leaves, class weights and the
number of trees are chosen by average precision in five folds of the labelled nodes, and then it learns from all of
them. Every result is stored when it is there, and nothing is run twice.

    train     pegfan train without options
    columns   boosting on the columns of nodes alone
    sums      boosting on these and, of payments in and out: number, sum, mean, largest, spread, partners, recency
    expert    boosting on these and shares by night and purpose, the time between payments, and shared devices
    hops      FSGNN on what the reader makes of the files: our hops alone
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, issparse

import pegfan as pf
from pegfan.auto.outcome import Plan, carry_out, with_metric
from pegfan.datasets import Source, Transactions

HOME = Path(__file__).parent
STORE = HOME / "results" / "analyst.jsonl"
SHARED = HOME.parents[1] / "shared" / "data"
METHODS = ("columns", "sums", "expert", "hops", "train")
MEASURES = ("ap", "top", "auc", "ece")
REAL = ("twitch-es", "deezer_europe", "tolokers")
TRIES: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 20},
    {"learning_rate": 0.05, "max_leaf_nodes": 31, "min_samples_leaf": 20, "l2_regularization": 1.0},
    {"learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 20, "class_weight": "balanced"},
    {"learning_rate": 0.02, "max_leaf_nodes": 16, "min_samples_leaf": 10, "l2_regularization": 1.0},
)
TREES = 300

# ------------------------------------------------------------------------- measures


def judged(truth: Any, p: Any) -> dict[str, float]:
    """The measures of predicted probabilities."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    truth, p = np.asarray(truth, bool), np.asarray(p, float)
    top = np.argsort(-p, kind="stable")[: max(1, round(0.01 * len(p)))]
    return {
        "ap": float(average_precision_score(truth, p)),
        "top": float(truth[top].mean()),
        "auc": float(roc_auc_score(truth, p)),
        "ece": calibration_error(truth, p),
        "mean_p": float(p.mean()),
        "share": float(truth.mean()),
    }


def calibration_error(truth: Any, p: Any, groups: int = 20) -> float:
    """The mean distance between predicted and true share, over groups of equally many nodes by prediction."""
    order = np.argsort(p, kind="stable")
    parts = [part for part in np.array_split(order, groups) if len(part)]
    return float(sum(len(part) * abs(p[part].mean() - truth[part].mean()) for part in parts) / len(p))


# ----------------------------------------------------------------- columns by hand


def node_columns(bank: Transactions) -> pd.DataFrame:
    """The columns of accounts as boosting takes them: gaps stay gaps, categories are categories, words of notes."""
    from sklearn.feature_extraction.text import CountVectorizer

    table = bank.accounts
    x = table[["age", "income", "balance"]].astype(float)
    for name in ("country", "segment", "channel"):
        x[name] = table[name].astype("category")
    x["verified"], x["newsletter"] = table["verified"].astype(float), table["newsletter"].astype(float)
    x["opened"] = (pd.Timestamp("2025-01-01") - table["opened"]).dt.days.astype(float)
    words = CountVectorizer(binary=True, min_df=max(5, len(table) // 200))
    found = words.fit_transform(table["note"]).toarray()
    return x.join(pd.DataFrame(found, columns=[f"note_{word}" for word in words.get_feature_names_out()], dtype=float))


def payment_columns(bank: Transactions, expert: bool) -> pd.DataFrame:
    """What payments in and out come to, per account."""
    made = []
    last = bank.payments["time"].max()
    for side, end, other in (("out", "payer", "payee"), ("in", "payee", "payer")):
        groups = bank.payments.groupby(end, sort=False)
        x = groups["amount"].agg(["count", "sum", "mean", "max", "std"]).add_prefix(f"{side}_")
        x[f"{side}_partners"] = groups[other].nunique()
        x[f"{side}_days_since"] = (last - groups["time"].max()).dt.total_seconds() / 86_400
        if expert:
            x[f"{side}_days"] = (groups["time"].max() - groups["time"].min()).dt.total_seconds() / 86_400
            x[f"{side}_least"], x[f"{side}_median"] = groups["amount"].min(), groups["amount"].median()
            night = bank.payments["time"].dt.hour < 6
            x[f"{side}_at_night"] = night.groupby(bank.payments[end]).mean()
            purposes = pd.crosstab(bank.payments[end], bank.payments["purpose"], normalize="index")
            x = x.join(purposes.add_prefix(f"{side}_"))
        made.append(x.reindex(bank.accounts["id"]).reset_index(drop=True))
    x = made[0].join(made[1])
    for side in ("in", "out"):
        x[[f"{side}_count", f"{side}_sum", f"{side}_partners"]] = x[
            [f"{side}_count", f"{side}_sum", f"{side}_partners"]
        ].fillna(0.0)
    x["in_less_out"] = x["in_sum"] - x["out_sum"]
    if expert:
        x["in_by_out"] = x["in_sum"] / (x["out_sum"] + 1.0)
        sharing = bank.devices.groupby("device")["account"].transform("nunique").groupby(bank.devices["account"])
        shared = pd.DataFrame({"devices": sharing.size(), "most_on_device": sharing.max()})
        x = x.join(shared.reindex(bank.accounts["id"]).reset_index(drop=True))
    return x


# ------------------------------------------------------------------------ boosting


def boosted(x: Any, y: Any, known: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    """Probabilities of all nodes from boosting that was tuned on the known ones, and what was chosen."""
    rows = np.flatnonzero(known)
    grown = _lightgbm if issparse(x) or find_spec("lightgbm") else _histogram
    curves = [_curve(x, y, rows, settings, seed, grown) for settings in TRIES]
    best = int(np.argmax([curve.max() for curve in curves]))
    trees = _steps()[int(curves[best].argmax())]
    p = grown(_take(x, rows), y[rows], x, TRIES[best], [trees], seed)[0]
    return p, {**TRIES[best], "trees": trees, "in folds": float(curves[best].max()), "by": grown.__name__[1:]}


def _steps() -> list[int]:
    return list(range(10, TREES + 1, 10))


def _take(x: Any, rows: Any) -> Any:
    return x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows]


def _curve(x: Any, y: Any, rows: Any, settings: dict[str, Any], seed: int, grown: Callable[..., Any]) -> Any:
    """Average precision by the number of trees, out of fold."""
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import StratifiedKFold

    out = np.zeros((len(_steps()), len(y)))
    for train, val in StratifiedKFold(5, shuffle=True, random_state=seed).split(rows, y[rows]):
        held = rows[val]
        staged = grown(_take(x, rows[train]), y[rows[train]], _take(x, held), settings, _steps(), seed)
        for place, p in enumerate(staged):
            out[place, held] = p
    return np.array([average_precision_score(y[rows], p[rows]) for p in out])


def _histogram(x: Any, y: Any, to: Any, settings: dict[str, Any], steps: list[int], seed: int) -> list[Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    options = {"categorical_features": "from_dtype"} if isinstance(x, pd.DataFrame) else {}
    model = HistGradientBoostingClassifier(
        max_iter=steps[-1], early_stopping=False, random_state=seed, **settings, **options
    ).fit(x, y)
    wanted = set(steps)
    return [p[:, 1] for count, p in enumerate(model.staged_predict_proba(to), start=1) if count in wanted]


def _lightgbm(x: Any, y: Any, to: Any, settings: dict[str, Any], steps: list[int], seed: int) -> list[Any]:
    """As good as scikit-learn's, several times as fast, and it takes sparse columns."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(
        n_estimators=steps[-1],
        learning_rate=settings["learning_rate"],
        num_leaves=settings["max_leaf_nodes"],
        min_child_samples=settings["min_samples_leaf"],
        reg_lambda=settings.get("l2_regularization", 0.0),
        class_weight=settings.get("class_weight"),
        random_state=seed,
        verbose=-1,
        n_jobs=1,
    )
    if issparse(x):
        from scipy.sparse import csr_matrix

        x, to = (csr_matrix(part.astype(np.float64)) for part in (x, to))
    model.fit(x, y)
    # Trees add up: those between two steps are all that a step has to predict.
    raw, out = np.zeros(to.shape[0]), []
    for start, stop in zip([0, *steps[:-1]], steps, strict=True):
        raw = raw + model.predict(to, raw_score=True, start_iteration=start, num_iteration=stop - start)
        out.append(1.0 / (1.0 + np.exp(-raw)))
    return out


# ------------------------------------------------------------------------ our side


def of_files(folder: Path, bank: Transactions) -> tuple[Any, dict[str, Any]]:
    """The graph that the reader makes of the written files: of all three, or of those that it takes."""
    paths = bank.write(folder)
    try:
        graph, _ = Source.of(*paths, label="fraud").open()
        return graph, {"files": 3}
    except (ValueError, TypeError) as error:
        graph, _ = Source.of(*paths[:2], label="fraud").open()
        return graph, {"files": 2, "why": str(error)[:200]}


def in_order(bank: Transactions, graph: Any) -> tuple[Any, dict[str, Any]]:
    """Where the accounts are among the nodes; an id that lost its zeros is found, and counted."""
    wanted = bank.accounts["id"].astype(str)
    place = pd.Series(np.arange(graph.n), index=[str(name) for name in graph.ids.tolist()])
    found = place.reindex(wanted)
    lost = int(found.isna().sum())
    if lost:
        found = found.where(found.notna(), place.reindex(wanted.str.lstrip("0")).to_numpy())
    return found.to_numpy().astype(np.int64), {"ids changed": lost}


def trained(graph: Any, budget: float, seed: int, workers: int) -> tuple[Any, dict[str, Any]]:
    """Probabilities of every node and class, as the command writes them into predictions.csv."""
    known, why = with_metric(graph)
    outcome = carry_out(known, Plan(budget=budget, seed=seed, workers=workers, metric_reason=why))
    chosen = outcome.result.chosen
    about = {
        "chosen": None if chosen is None else chosen.how,
        "recipes": [m.recipe.name for m in outcome.model.members_],
    }
    place = [known.classes.tolist().index(name) for name in graph.classes.tolist()]
    about |= {"folds": len(outcome.result.splits.used), "estimate": outcome.result.test.mean}
    return outcome.probabilities[:, place], {**about, "metric": known.metric, "tried": len(outcome.model.trials_)}


def hops_alone(graph: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    """FSGNN on a random split of the labelled nodes."""
    model = pf.FSGNNClassifier(random_state=seed).fit(graph, split="random")
    return model.predict_proba(graph), {}


# ----------------------------------------------------------------------------- runs


def on_bank(method: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    dials = {name: float(value) for name, value in (part.split("=") for part in options.set)}
    bank = pf.datasets.transactions(options.n, n_payments=3 * options.n, seed=seed, **dials)
    y, hidden = bank.truth.astype(int), ~bank.labelled
    if method in ("columns", "sums", "expert"):
        x = node_columns(bank)
        if method != "columns":
            x = x.join(payment_columns(bank, method == "expert"))
        p, about = boosted(x, y, bank.labelled, seed)
    else:
        with tempfile.TemporaryDirectory() as folder:
            graph, about = of_files(Path(folder), bank)
        place, more = in_order(bank, graph)
        run = hops_alone(graph, seed) if method == "hops" else trained(graph, options.budget, 0, options.workers)
        yes = [str(name) for name in graph.classes.tolist()].index("yes")
        p, about = run[0][place, yes], about | more | run[1]
    return judged(y[hidden], p[hidden]) | {"about": about}


def real_graph(name: str, data: Path) -> Any:
    if name == "twitch-es":
        return pf.datasets.read_graph(*sorted((data / "twitch" / "ES").iterdir()), label="mature", id="new_id")
    if name == "deezer_europe":
        return pf.datasets.read_graph(data / "graphs" / "deezer_europe.npz")
    return pf.datasets.read_graph(data / "heterophilous-graphs" / "tolokers.npz")


def on_graph(method: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """A public graph, half of whose labels are hidden; the rarer class is looked for."""
    graph = real_graph(options.data, options.folder)
    rare = int(np.bincount(graph.labels[graph.labels >= 0]).argmin())
    y = (graph.labels == rare).astype(int)
    rng = np.random.default_rng([seed, zlib.crc32(options.data.encode())])
    known = np.zeros(graph.n, bool)
    for c in (0, 1):
        nodes = rng.permutation(np.flatnonzero((y == c) & (graph.labels >= 0)))
        known[nodes[: len(nodes) // 2]] = True
    hidden = ~known & (graph.labels >= 0)
    if method in ("columns", "sums"):
        x, degrees = graph.features, _degrees(graph)
        wide = issparse(x) and x.shape[1] > 200
        x = csr_array(x) if wide else (x.toarray() if issparse(x) else np.asarray(x))
        if method == "sums":
            x = csr_array(hstack([x, csr_array(degrees)])) if wide else np.hstack([x, degrees])
        p, about = boosted(x, y, known, seed)
    else:
        masked = graph.replace(labels=np.where(known, graph.labels, -1), splits=())
        run = hops_alone(masked, seed) if method == "hops" else trained(masked, options.budget, 0, options.workers)
        p, about = run[0][:, rare], run[1]
    return judged(y[hidden], p[hidden]) | {"about": about}


def _degrees(graph: Any) -> Any:
    A = graph.adjacency
    return np.column_stack([A.sum(axis=1), A.sum(axis=0)]) if graph.directed else np.asarray(A.sum(axis=1))[:, None]


# ---------------------------------------------------------------------- the record


def stored(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def key_of(method: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """All that a result depends on; the budget only where there is one."""
    key: dict[str, Any] = {"data": options.data, "seed": seed, "method": method}
    if options.data == "bank":
        key |= {"n": options.n, "set": sorted(options.set)}
    if method == "train":
        key |= {"budget": options.budget}
    return key | {"tag": options.tag if method in ("train", "hops") else ""}


def show(records: list[dict[str, Any]], options: argparse.Namespace, seeds: range) -> None:
    """Means over seeds, and in how many of them `train` is ahead of each."""
    values: dict[str, dict[int, dict[str, float]]] = {}
    for record in records:
        if record["key"] == key_of(record["key"]["method"], record["key"]["seed"], options):
            values.setdefault(record["key"]["method"], {})[record["key"]["seed"]] = record
    ours = values.get("train", {})
    print(f"{'':10}{'seeds':>6}{'AP':>8}{'top 1%':>8}{'AUC':>8}{'ECE':>8}{'seconds':>9}   train ahead in")
    for method in METHODS:
        found = {seed: record for seed, record in values.get(method, {}).items() if seed in seeds}
        if not found:
            continue
        means = [np.mean([record[measure] for record in found.values()]) for measure in MEASURES]
        both = [seed for seed in found if seed in ours]
        ahead = sum(ours[seed]["ap"] > found[seed]["ap"] for seed in both)
        told = "" if method == "train" or not both else f"   {ahead} of {len(both)}"
        numbers = "".join(f"{value:8.3f}" for value in means)
        took = np.mean([record["seconds"] for record in found.values()])
        print(f"{method:10}{len(found):6}{numbers}{took:9.0f}{told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="bank", choices=("bank", *REAL))
    parser.add_argument("--folder", type=Path, default=SHARED, help="where public graphs are")
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--set", action="append", default=[], metavar="DIAL=VALUE", help="such as in_amounts=1")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default=",".join(METHODS), help="methods, with commas between them")
    parser.add_argument("--tag", default="", help="a word for the version of our side, kept apart from other words")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    options.store.parent.mkdir(parents=True, exist_ok=True)
    records = stored(options.store)
    done = [record["key"] for record in records]
    methods = [method for method in METHODS if method in options.only.split(",")]
    if options.data != "bank":
        methods = [method for method in methods if method != "expert"]
    for seed in range(options.seeds * (not options.table)):
        for method in methods:
            key = key_of(method, seed, options)
            if key in done:
                continue
            start = time.perf_counter()
            found = (on_bank if options.data == "bank" else on_graph)(method, seed, options)
            record = {"key": key, **found, "seconds": time.perf_counter() - start, "version": pf.__version__}
            with options.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            records.append(record)
            numbers = "  ".join(f"{measure} {record[measure]:.3f}" for measure in MEASURES)
            print(f"seed {seed}  {method:8} {numbers}  {record['seconds']:.0f} s", flush=True)
    show(records, options, range(options.seeds))


if __name__ == "__main__":
    main()
