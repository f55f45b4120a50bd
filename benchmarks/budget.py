"""What ``pegfan train`` takes and gives: memory, cores, and quality on a busy machine. It runs as users run it.

    python benchmarks/budget.py peaks [--only words3000,bank]   the most memory that a training holds, by the system
    python benchmarks/budget.py bank [--seeds 5] [--busy 4]     a bank, idle and with busy processes beside it
    python benchmarks/budget.py graphs [--seeds 3]              the development graphs, accuracy on test nodes
    python benchmarks/budget.py large [--nodes 100000]          one generated graph, with all of its candidates

Every row is appended to results/budget.jsonl with the commit that it was made by.
Generated graphs: `words`, sparse words in many columns; `large`, dense features whose classes are half linear, half to
either side of a direction; `bank`, the tables of `pegfan.datasets.transactions`. The yardstick of a bank is gradient
boosting on the very columns that the command's reader makes: the best of four settings by validation nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _limited import run_limited
from scipy.sparse import csr_array

import pegfan as pf
from pegfan._arrays import Float32Array

HOME = Path(__file__).parent
STORE = HOME / "results" / "budget.jsonl"
SHARED = HOME.parents[1] / "shared" / "data"
SHIFT, SIDES = 1.131, 1.4
"""How far classes are apart in a direction of their own, and to either side of another."""
LIMIT = 20e9
"""Bytes that a training may hold where nothing else is said."""
GRAPHS = ("musae_github", "deezer_europe", "amazon_photo", "dblp", "twitch_RU", "twitch_PTBR")
GRAPHS += ("facebook_Amherst41", "facebook_Reed98")


# ------------------------------------------------------------------------ graphs


def words(n: int, d: int, classes: int, seed: int = 0, per_node: int = 40) -> pf.Graph:
    """A graph of texts: words that lean to a class, neighbours mostly of one class, half of the labels known."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    topics = rng.integers(classes, size=d)
    weights = rng.zipf(1.6, size=d).clip(max=200).astype(float)
    columns = []
    for label in range(classes):
        likely = weights * np.where(topics == label, 4.0, 1.0)
        columns.append(rng.choice(d, size=((labels == label).sum(), per_node), p=likely / likely.sum()))
    rows = np.concatenate([np.repeat(np.flatnonzero(labels == k), per_node) for k in range(classes)])
    x = csr_array((np.ones(len(rows), np.float32), (rows, np.concatenate(columns).ravel())), shape=(n, d))
    x.sum_duplicates()
    x.data[:] = 1.0
    source = rng.integers(n, size=5 * n)
    other = rng.integers(n, size=5 * n)
    keep = (labels[source] == labels[other]) | (rng.random(5 * n) < 0.15)
    known = labels.copy()
    known[rng.random(n) < 0.5] = -1
    return pf.Graph.from_edges(np.stack([source, other], 1)[keep], n=n, features=x, labels=known)


def dense(n: int, degree: int, d: int, seed: int = 0) -> tuple[pf.Graph, Float32Array]:
    """A graph without features, and the features of its nodes; neighbours are chosen by class, not the same one."""
    graph = pf.datasets.synthetic(0.3, n=n, n_edges=n * degree // 2, n_features=0, seed=seed)
    assert graph.labels is not None
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((graph.n_classes, d))
    means *= SHIFT / np.linalg.norm(means, axis=1, keepdims=True)
    sides = SIDES * np.linalg.qr(rng.standard_normal((d, 2 * graph.n_classes)))[0].T
    x = rng.standard_normal((n, d), dtype=np.float32)
    x += means.astype(np.float32)[graph.labels]
    x += rng.choice(np.array([-1, 1], np.float32), size=(n, 1)) * sides.astype(np.float32)[graph.labels]
    return graph, x


def write_dense(folder: Path, n: int, degree: int, d: int, kind: str, known: float = 0.8) -> list[str]:
    """Write tables of nodes and edges, or one npz; a share of the nodes has a class, the others' truth is apart."""
    import pandas as pd

    graph, x = dense(n, degree, d)
    assert graph.labels is not None
    hidden = np.random.default_rng(1).random(n) >= known
    names = np.array(["red", "green", "blue", "white"], object)[graph.labels]
    np.savez(folder / "truth.npz", names=names.astype("U"), hidden=hidden)
    if kind == "npz":
        return write_arrays(folder, graph, np.where(hidden, -1, graph.labels), x=x)
    nodes = pd.DataFrame(x, columns=[f"f{j}" for j in range(d)])
    nodes.insert(0, "id", np.arange(n))
    nodes["kind"] = np.where(hidden, None, names)
    ends, _ = graph.edges()
    edges = pd.DataFrame({"source": ends[:, 0], "target": ends[:, 1]})
    paths = [str(folder / f"{name}.{kind}") for name in ("nodes", "edges")]
    for table, path in zip((nodes, edges), paths, strict=True):
        if kind == "parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
    return [*paths, "--label", "kind"]


def write_words(folder: Path, n: int, d: int, classes: int) -> list[str]:
    """Write a graph of texts."""
    graph = words(n, d, classes)
    x: Any = graph.features
    parts = {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": np.array(x.shape)}
    return write_arrays(folder, graph, graph.labels, **parts)


def write_arrays(folder: Path, graph: pf.Graph, labels: Any, **features: Any) -> list[str]:
    """Write a graph as npz."""
    ends, _ = graph.edges()
    np.savez(folder / "graph.npz", edge_index=ends.T, y=labels, **features)
    return [str(folder / "graph.npz")]


def write_bank(folder: Path, seed: int = 0, n: int = 20_000) -> list[str]:
    """Write the tables of a bank, and apart who is a fraud."""
    bank = pf.datasets.transactions(n, n_payments=3 * n, seed=seed)
    paths = bank.write(folder)
    ids = bank.accounts.iloc[:, 0].astype(str).to_numpy().astype("U")
    np.savez(folder / "truth.npz", ids=ids[~bank.labelled], fraud=bank.truth[~bank.labelled])
    return [*map(str, paths), "--label", "fraud"]


PEAKS: dict[str, tuple[float, Any]] = {
    "words3000": (1.5, lambda folder: write_words(folder, 3_000, 5_000, 19)),
    "words7000": (1.5, lambda folder: write_words(folder, 7_000, 3_200, 2)),
    "bank": (1.5, write_bank),
    "dense1e5": (2.0, lambda folder: write_dense(folder, 100_000, 20, 64, "parquet")),
    "dense1e6.npz": (3.0, lambda folder: write_dense(folder, 1_000_000, 20, 64, "npz")),
    "dense1e6.csv": (3.0, lambda folder: write_dense(folder, 1_000_000, 20, 64, "csv")),
    "dense1e6.parquet": (3.0, lambda folder: write_dense(folder, 1_000_000, 20, 64, "parquet")),
}
"""What is trained on, and the gigabytes that it may take at the most."""


# ------------------------------------------------------------------------ running


def in_a_child(work: Any, *arguments: Any) -> Any:
    """What a function returns, from another process, so that its memory is not counted here."""
    read, write = os.pipe()
    if not os.fork():
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            json.dump(work(*arguments), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return json.load(pipe)


def train(folder: Path, words: Sequence[str], source: Path | None = None, limit: float = LIMIT) -> dict[str, Any]:
    """Run the command in a group of limited memory: what it says, and what it took."""
    command = [sys.executable, "-m", "pegfan", "train", *words, "-o", str(folder / "out"), "--force", "--json"]
    environment = {**os.environ, **({} if source is None else {"PYTHONPATH": str(source)})}
    timed = ["/usr/bin/time", "-f", "%U %S", "-o", str(folder / "times"), *command]
    done = run_limited(timed, int(limit), env=environment)
    if done.code:
        message = done.err[-500:].replace(f"{folder}{os.sep}", "")
        return {"exit": done.code, "seconds": done.seconds, "peak": done.largest, "err": message}
    cpu = sum(map(float, (folder / "times").read_text().split()[-2:]))
    return {
        "exit": 0,
        "seconds": done.seconds,
        "cores": cpu / done.seconds,
        "peak": done.largest,
        "lanes": lanes(result := json.loads(done.out)),
        "result": result,
    }


def lanes(result: dict[str, Any]) -> float:
    """How many recipes were in training at a time while the search went on; on an idle machine, the cores in use."""
    return float(sum(one["seconds"] for one in result["candidates"]) / result["seconds"]["search"])


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def commit() -> str:
    """The commit of the code that is measured."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HOME, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def store(row: dict[str, Any]) -> None:
    """Append a row to the results."""
    with STORE.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, "commit": commit()}, sort_keys=True) + "\n")


# ----------------------------------------------------------------------- commands


def peaks(given: argparse.Namespace) -> None:
    """The most memory that trainings hold."""
    for name in given.only.split(",") if given.only else PEAKS:
        most, write = PEAKS[name]
        with tempfile.TemporaryDirectory(dir=given.folder) as place:
            paths = in_a_child(write, Path(place))
            limit = 1e9 * (given.limit or most)
            done = train(Path(place), [*paths, *given.options.split()], given.source, limit)
            result = done.pop("result", {})
            test = (result.get("test") or {}).get("mean")
            reasons = len(result.get("reasons") or ())
            row = {"what": "peak", "name": name, "test": test, "reasons": reasons, "most": most * 1e9, **done}
        print(f"{name:18s} {done['peak'] / 1e9:5.2f} GB of {most:.1f}; {row}", flush=True)
        store(row)


def bank(given: argparse.Namespace) -> None:
    """Average precision on blank accounts, idle and busy, beside boosting on the same columns."""
    for seed in range(given.first, given.first + given.seeds):
        with tempfile.TemporaryDirectory(dir=given.folder) as place:
            folder = Path(place)
            paths = in_a_child(write_bank, folder, seed)
            row: dict[str, Any] = {"what": "bank", "seed": seed, "boosting": in_a_child(boosting, paths, folder)}
            for name, count in (("idle", 0), ("busy", given.busy)):
                if name not in given.only.split(","):
                    continue
                with busy(count):
                    done = train(folder, [*paths, *given.options.split()], given.source)
                row[name] = average_precision(folder, folder / "out" / "predictions.csv")
                row |= {f"{name}_{key}": done.get(key) for key in ("seconds", "cores", "lanes", "peak")}
                row[f"{name}_recipes"] = len(done["result"]["candidates"])
                row[f"{name}_folds"] = len(done["result"]["splits"]["used"])
        print(row, flush=True)
        store(row)


def average_precision(folder: Path, table: Path) -> float:
    """Of predictions for the blank accounts."""
    import pandas as pd
    from sklearn.metrics import average_precision_score

    truth, said = np.load(folder / "truth.npz"), pd.read_csv(table, dtype={"id": str}).set_index("id")
    return float(average_precision_score(truth["fraud"], said.loc[truth["ids"], "p_yes"].to_numpy()))


def boosting(paths: Sequence[str], folder: Path) -> float:
    """Gradient boosting on the columns that the reader makes of the tables, the best of four by validation."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import train_test_split

    graph = pf.read_graph(*(path for path in paths if path.endswith(".csv")), label="fraud")
    assert graph.labels is not None
    x: Any = graph.features
    x = x.toarray() if hasattr(x, "toarray") else x
    positive = [str(name) for name in graph.classes.tolist()].index("yes")
    labelled = np.flatnonzero(graph.labels >= 0)
    y = graph.labels[labelled] == positive
    train_rows, val_rows = train_test_split(np.arange(len(labelled)), test_size=0.25, stratify=y, random_state=0)
    models = []
    for leaves, rate in ((8, 0.05), (31, 0.05), (8, 0.1), (16, 0.02)):
        model = HistGradientBoostingClassifier(max_leaf_nodes=leaves, learning_rate=rate, max_iter=300, random_state=0)
        model.fit(x[labelled[train_rows]], y[train_rows])
        value = average_precision_score(y[val_rows], model.predict_proba(x[labelled[val_rows]])[:, 1])
        models.append((value, leaves, rate))
    _, leaves, rate = max(models)
    model = HistGradientBoostingClassifier(max_leaf_nodes=leaves, learning_rate=rate, max_iter=300, random_state=0)
    model.fit(x[labelled], y)
    truth = np.load(folder / "truth.npz")
    index = {str(name): i for i, name in enumerate(graph.ids.tolist())}
    rows = [index[name] for name in truth["ids"].tolist()]
    return float(average_precision_score(truth["fraud"], model.predict_proba(x[rows])[:, 1]))


def graphs(given: argparse.Namespace) -> None:
    """The development graphs: the metric on test nodes of their first splits, drawn where there are none."""
    for name in given.only.split(",") if given.only else GRAPHS:
        for seed in range(given.first, given.first + given.seeds):
            with tempfile.TemporaryDirectory(dir=given.folder) as place:
                path = str(SHARED / "graphs" / f"{name}.npz")
                words = [path, "--seed", str(seed), "--splits", "1", *given.options.split()]
                done = train(Path(place), words, given.source)
                result = done.pop("result", {})
                row = {"what": "graph", "name": name, "seed": seed, "test": (result.get("test") or {}).get("mean")}
                row |= {"validation": (result.get("validation") or {}).get("mean"), **done}
                row |= {"how": (result.get("chosen") or {}).get("how"), "label": given.label}
                row |= {"recipes": len(result.get("candidates") or ())}
            print(row, flush=True)
            store(row)


def large(given: argparse.Namespace) -> None:
    """One generated graph, and all that was tried on it."""
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        folder = Path(place)
        paths = in_a_child(write_dense, folder, int(given.nodes), given.degree, given.features, given.format)
        start = time.perf_counter()
        done = train(folder, [*paths, "--budget", str(given.budget), *given.options.split()], given.source)
        took = time.perf_counter() - start
        if done["exit"]:
            sys.exit(str(done))
        result, truth = done["result"], np.load(folder / "truth.npz")
        predicted = np.loadtxt(
            folder / "out" / "predictions.csv", delimiter=",", skiprows=1, usecols=1, dtype="U", encoding="utf-8"
        )
        hidden = truth["hidden"]
        accuracy = float((predicted[hidden] == truth["names"][hidden]).mean())
    print(f"nodes {given.nodes:,.0f}, edges {given.nodes * given.degree / 2:,.0f}, features {given.features}")
    print(f"{took:.1f} s of {given.budget:g}; {done['cores']:.2f} cores; {done['peak'] / 1e9:.2f} GB")
    print(f"accuracy {100 * accuracy:.2f} on nodes without a label; by its own test {result['test']['mean']}")
    print(f"recipes {len(result['candidates'])}, splits {len(result['splits']['used'])}; {result['chosen']['reason']}")
    for one in result["candidates"]:
        print(
            f"  {one['val_metric']:.4f} {one['val_loss']:.4f} {one['epochs']:4d} {one['seconds']:6.1f} s  {one['name']}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    for run, only in ((peaks, ""), (bank, "idle,busy"), (graphs, ""), (large, "")):
        command = commands.add_parser(run.__name__, help=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("--only", default=only, help="names, with commas between them")
        command.add_argument("--options", default="", help="more words for pegfan train")
        command.add_argument("--folder", type=Path, help="where files are written for the while")
        command.add_argument("--source", type=Path, help="src of another checkout, to measure that instead")
        command.add_argument("--label", default="", help="a word for the rows, such as 'before'")
        command.add_argument("--seeds", type=int, default=5 if run is bank else 3)
        command.add_argument("--first", type=int, default=0, help="the first seed")
        command.add_argument("--limit", type=float, help="gigabytes that the system gives; by default what is allowed")
        command.add_argument("--busy", type=int, default=4)
        command.add_argument("--nodes", type=float, default=100_000)
        command.add_argument("--degree", type=int, default=20)
        command.add_argument("--features", type=int, default=64)
        command.add_argument("--budget", type=float, default=120)
        command.add_argument("--format", choices=("parquet", "csv", "npz"), default="parquet")
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
