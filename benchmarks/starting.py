"""What a user waits for before anything is computed: imports, ``pegfan --help``, and training on a small graph.

    python benchmarks/starting.py [--quick]

Every number is the median of fresh processes. The last row is what the plain installation takes on the disk: pegfan and
all that it needs without extras, as the files come from the index, without bytecode.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from statistics import median

import numpy as np
from packaging.requirements import Requirement

from measure import show, verdict

NODES = 300
USUAL = "from pegfan import FrameletSystem, Graph, Hierarchy, build_tree"


def write_files(folder: Path) -> None:
    """A table of nodes with four numbers, a category and a label, and a table of edges."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, NODES)
    numbers = rng.normal(size=(NODES, 4)) + 0.7 * labels[:, None]
    ends = rng.integers(0, NODES, (1500, 2))
    ends = ends[(labels[ends[:, 0]] == labels[ends[:, 1]]) | (rng.random(len(ends)) < 0.4)]
    rows = [
        ",".join([f"u{k}", *(f"{x:.3f}" for x in numbers[k]), "abc"[rng.integers(3)], ("red", "green", "blue")[label]])
        for k, label in enumerate(labels)
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,age,income,score,height,city,label", *rows]) + "\n")
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(f"u{a},u{b}" for a, b in ends) + "\n")


def once(arguments: list[str], folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of a fresh process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - start


def medians(runs: list[tuple[float, float]]) -> tuple[float, float]:
    return median(cpu for cpu, _ in runs), median(wall for _, wall in runs)


def told(taken: tuple[float, float]) -> str:
    return f"{taken[1]:.2f} s, {taken[0]:.2f} s CPU"


def installed_bytes() -> int:
    """What the files of pegfan and of everything that it needs take."""
    names, todo = set[str](), ["pegfan"]
    while todo:
        name = todo.pop()
        if name in names:
            continue
        names.add(name)
        needs = [Requirement(line) for line in metadata.requires(name) or ()]
        todo += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    paths = [Path(file.locate()) for name in names for file in metadata.files(name) or () if file.suffix != ".pyc"]
    extension = importlib.util.find_spec("pegfan._native")  # of an editable installation, no file is listed
    ours = Path(extension.origin).parent.rglob("*")
    return sum(path.stat().st_size for path in {*paths, *ours} if path.is_file() and path.suffix != ".pyc")


def main() -> None:
    quick = "--quick" in sys.argv
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user has the compiled modules
    repeats = 5 if quick else 15
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        imports = {"nothing": "", "base": "import numpy, scipy.sparse", "pegfan": "import pegfan", "usual": USUAL}
        taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in (*imports, "help")}
        for _ in range(repeats):
            for kind, code in imports.items():
                taken[kind].append(once(["-c", code], folder))
            taken["help"].append(once(["-m", "pegfan", "--help"], folder))
        own = {kind: medians(runs) for kind, runs in taken.items()}
        ratio, usual = (
            (own[kind][0] - own["nothing"][0]) / (own["base"][0] - own["nothing"][0]) for kind in ("pegfan", "usual")
        )
        base = "of numpy + scipy.sparse, CPU"
        rows = [
            ("import pegfan", f"{ratio:.2f} {base}", "<= 1.5", verdict(ratio <= 1.5)),
            ("with Graph, build_tree, FrameletSystem", f"{usual:.2f} {base}", "", ""),
            ("pegfan --help", told(own["help"]), "<= 0.5 s", verdict(own["help"][1] <= 0.5)),
        ]
        train = ["-m", "pegfan", "train", "nodes.csv", "edges.csv", "--label", "label", "--budget", "2", "-o"]
        once([*train, "first"], folder)
        warm = medians([once([*train, f"warm{k}"], folder) for k in range(3 if quick else 7)])
        rows.append((f"pegfan train --budget 2, {NODES} nodes", told(warm), "<= 4 s", verdict(warm[1] <= 4)))
    size = installed_bytes() / 1e6
    rows.append(("plain installation", f"{size:.0f} MB", "<= 430 MB", verdict(size <= 430)))
    show(rows)


if __name__ == "__main__":
    main()
