"""The budget of ``pegfan train``: a generated graph is written to files, trained on by the command, and measured.

    python benchmarks/budget.py [--nodes 100000] [--degree 20] [--features 64] [--budget 120] [--format parquet]

The command runs in a process of its own, from its start to its end: seconds by the clock, of cores, and the most memory
that it held. Among its candidates is logistic regression on X | S X | S² X. Half of what features say about the
class is linear in them; the other half is in which direction a node is off, to either side, so that a linear model
misses it. Neighbours are chosen by class (`pegfan.datasets.synthetic`, gamma 0.3), not the same one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pegfan as pf
from pegfan._arrays import Float32Array

SHIFT, SIDES = 1.131, 1.4
"""How far classes are apart in a direction of their own, and to either side of another."""


def make(n: int, degree: int, d: int, seed: int = 0) -> tuple[pf.Graph, Float32Array]:
    """The graph, without features, and the features of its nodes."""
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


def write(folder: Path, n: int, degree: int, d: int, kind: str, known: float = 0.8) -> list[str]:
    """Write tables of nodes and edges; a share of the nodes has a class, the truth of the others is apart."""
    import pandas as pd

    graph, x = make(n, degree, d)
    assert graph.labels is not None
    hidden = np.random.default_rng(1).random(n) >= known
    names = np.array(["red", "green", "blue", "white"], object)[graph.labels]
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
    np.savez(folder / "truth.npz", names=names.astype("U"), hidden=hidden)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=float, default=100_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--budget", type=float, default=120)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--folder", type=Path, help="where the files are kept, for another run")
    parser.add_argument("--options", default="", help="more words for pegfan train")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [str(folder / f"{name}.{given.format}") for name in ("nodes", "edges")]
        if not all(map(os.path.exists, paths)):
            process = os.fork()  # so that the memory of generating is not counted
            if not process:
                write(folder, int(given.nodes), given.degree, given.features, given.format)
                os._exit(0)
            os.waitpid(process, 0)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        command = [sys.executable, "-m", "pegfan", "train", *paths, "--label", "kind", "-o", str(folder / "out")]
        command += ["--force", "--budget", str(given.budget), "--json", *given.options.split()]
        peak = folder / "peak"
        shell = ["/usr/bin/env", "time", "-f", "%M", "-o", str(peak)]
        timed = [*shell, *command] if os.path.exists("/usr/bin/time") else command
        done = subprocess.run(timed, stdout=subprocess.PIPE, check=False)
        took = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(done.returncode)
        result = json.loads(done.stdout)
        memory = int(peak.read_text().split()[-1]) * 1024 if peak.exists() else after.ru_maxrss * 1024
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        truth = np.load(folder / "truth.npz")
        predicted = np.loadtxt(
            folder / "out" / "predictions.csv", delimiter=",", skiprows=1, usecols=1, dtype="U", encoding="utf-8"
        )
        hidden = truth["hidden"]
        accuracy = float((predicted[hidden] == truth["names"][hidden]).mean())
        limit = max(1.15 * given.budget, given.budget + 20)
        print(f"nodes {given.nodes:,.0f}, edges {given.nodes * given.degree / 2:,.0f}, features {given.features}")
        print(
            f"seconds {took:.1f} of {given.budget:g} (at most {limit:g}); of cores {cpu:.1f}; "
            f"memory {memory / 1e9:.2f} GB"
        )
        print(f"accuracy {100 * accuracy:.2f} on nodes without a label; by its own test {result['test']['mean']}")
        print(
            f"recipes {len(result['candidates'])}, splits {len(result['splits']['used'])}; {result['chosen']['reason']}"
        )
        for one in result["candidates"]:
            print(
                f"  {one['val_metric']:.4f} {one['val_loss']:.4f} {one['epochs']:4d} "
                f"{one['seconds']:6.1f} s  {one['name']}"
            )


if __name__ == "__main__":
    main()
