"""Processes that die or share: workers whose parent is killed, two searches on one store, clusters that fall apart."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from torture.campaign import Fault, attack

COMMAND = [sys.executable, "-c", "from pegfan.cli import app; app()"]
MARK = "PEGFAN_TORTURE"
"""The environment variable by which processes of a try are found, whoever their parent is."""


def start(words: list[Any], mark: str, **environment: str) -> subprocess.Popen[str]:
    """Start a process of a try."""
    return subprocess.Popen(
        list(map(str, words)),
        env={**os.environ, MARK: mark, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def alive(mark: str) -> dict[int, str]:
    """Processes of a try that run, with what they are."""
    wanted, found = f"{MARK}={mark}".encode(), {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                state = (process / "stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if state != "Z":
                    found[int(process.name)] = words[-80:]
    return found


def end_all(mark: str) -> None:
    """End what a try has left."""
    for process in alive(mark):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def require_gone(mark: str, seconds: float) -> None:
    """Fail if processes of a try are there after so long."""
    until = time.monotonic() + seconds
    while (left := alive(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    if left:
        end_all(mark)
        raise Fault(f"after {seconds:.0f} s there are still {left}")


def tables(place: Path) -> list[str]:
    """A small graph as a user has it, with the options that read it."""
    nodes, edges = place / "nodes.csv", place / "edges.csv"
    if not edges.exists():
        rng = np.random.default_rng(0)
        rows = [f"n{i},{'ab'[i % 2]},{rng.normal(i % 2):.3f},{rng.integers(3)}" for i in range(120)]
        nodes.write_text("\n".join(["id,kind,x,y", *rows, ""]), encoding="utf-8")
        ends = rng.integers(120, size=(400, 2))
        edges.write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in ends), encoding="utf-8")
    return [str(nodes), str(edges), "--label", "kind"]


# ------------------------------------------------------------------------------ orphans

_LOKY = """
import ctypes, sys, time
from pegfan.running import Runner

def wait(item):
    ctypes.PyDLL(None).sleep(60)  # as compiled code that holds the interpreter

print("go", flush=True)
with Runner(2) as runner:
    list(runner.map(wait, range(3)))
"""
_DASK = """
import time
from pegfan.large.dask import DaskCluster

print("go", flush=True)
with DaskCluster(workers=2):
    time.sleep(60)
"""


def _orphans(code: str, latest: float, draw: random.Random) -> None:
    mark = f"{os.getpid()}-{draw.random()}"
    process = start([sys.executable, "-c", code], mark)
    assert process.stdout is not None
    if process.stdout.readline() != "go\n":
        raise Fault(f"it did not begin: {process.communicate()[0][-500:]}")
    time.sleep(draw.uniform(0, latest))
    process.kill()
    process.stdout.close()
    process.wait()
    require_gone(mark, 10)  # they start Python, at most, before they see that they are alone


@attack(
    "orphans: workers", "workers of a parent that is killed as they start end, with their trackers", 100, seconds=60
)
def orphans_of_workers(state: Any, number: int, draw: random.Random, folder: Path) -> None:
    """The parent of worker processes is killed up to a second and a half after it starts them."""
    _orphans(_LOKY, 1.5, draw)


@attack("orphans: a Dask cluster", "so do workers of a Dask cluster of our own", 20, seconds=60)
def orphans_of_dask(state: Any, number: int, draw: random.Random, folder: Path) -> None:
    """The parent of a cluster is killed up to four seconds after it starts it."""
    _orphans(_DASK, 4, draw)


# ------------------------------------------------------------------------ two on one store


def numbers(folder: Path) -> dict[str, Any]:
    """What a store says, in no order and without times; a run that is there twice is a fault."""
    from pegfan.experiments.store import Store

    store = Store(folder, create=False)
    if store.damaged:
        raise Fault(f"{store.path} is damaged: {store.damaged[:3]}")
    found: dict[str, Any] = {}
    for record in store:
        if record["key"] in found:
            raise Fault(f"the run {record['key']} was computed twice")
        found[record["key"]] = {k: v for k, v in record["result"].items() if k not in ("seconds", "wall")}
    return found


def _searching(place: Path) -> dict[str, Any]:
    """Searches of every strategy, undisturbed."""
    files, found = tables(place), {}
    for strategy in ("grid", "halving", "optuna"):
        epochs = {"grid": "5", "halving": "30", "optuna": "60"}[strategy]
        words = ["search", *files, "--strategy", strategy, "--trials", "12", "--splits", "1", "--method", "none"]
        words += ["--epochs", epochs]
        folder = place / f"alone-{strategy}"
        if not (folder / "search.csv").exists():
            shutil.rmtree(folder, ignore_errors=True)
            told = start([*COMMAND, *words, "--workers", "1", "-o", folder], "prepare")
            text = told.communicate()[0]
            assert told.returncode == 0, text
        found[strategy] = words, numbers(folder), (folder / "search.csv").read_bytes()
    return found


@attack(
    "two searches on one store",
    "two searches that share a store compute each run once, and both end with the table of one alone; if one is "
    "killed, the other does all of it",
    30,
    prepare=_searching,
    seconds=180,
)
def two_on_one_store(state: dict[str, Any], number: int, draw: random.Random, folder: Path) -> None:
    """Two at once, of one or two workers; in half of the tries one is killed."""
    words, expected, table = state[("grid", "halving", "optuna")[number % 3]]
    store, mark = folder / "store", f"{os.getpid()}-{draw.random()}"
    both = [start([*COMMAND, *words, "--workers", draw.choice("12"), "-o", store], mark) for _ in range(2)]
    killed = number % 2 == 1
    try:
        if killed:
            time.sleep(draw.uniform(1, 5))
            both[0].kill()
            both[0].communicate()
        for process in both[killed:]:
            text = process.communicate()[0]
            if process.returncode != 0:
                raise Fault(f"exit {process.returncode}: {text[-500:]}")
            if "from the store" not in text:
                raise Fault(f"it printed no end: {text[-500:]}")
        require_gone(mark, 10)
    finally:
        end_all(mark)
    if numbers(store) != expected:
        raise Fault("the runs are others than those of one search alone")
    if (store / "search.csv").read_bytes() != table:
        raise Fault("search.csv is not that of one search alone")


# -------------------------------------------------------------------------------- clusters

_SCHEDULER = "import sys; from distributed.cli.dask_scheduler import main; sys.exit(main())"
_WORKER = "import sys; from distributed.cli.dask_worker import main; sys.exit(main())"


class Cluster:
    """A scheduler and workers of its own processes."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder, self.mark = folder, mark
        self.begin()

    def begin(self) -> None:
        """Start a scheduler, and two workers."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show", "--scheduler-file", file]
        self.scheduler = self._start(_SCHEDULER, *options)
        until = time.monotonic() + 60
        while not file.exists() or not file.read_text(encoding="utf-8").endswith("}"):
            if time.monotonic() > until:
                raise Fault("no scheduler within a minute")
            time.sleep(0.05)
        import json

        self.address = json.loads(file.read_text(encoding="utf-8"))["address"]
        self.workers = [self.worker() for _ in range(2)]

    def worker(self) -> subprocess.Popen[Any]:
        """Start a worker."""
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "20"]
        return self._start(_WORKER, self.address, *options, "--local-directory", self.folder / "dask")

    def _start(self, code: str, *words: Any) -> subprocess.Popen[Any]:
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)],
            env={**os.environ, MARK: self.mark, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )

    def end(self) -> None:
        """End all of it."""
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait()


def _clustered(place: Path) -> dict[str, Any]:
    """A search and a tree in pieces, undisturbed."""
    files = tables(place)
    search = ["search", *files, "--strategy", "grid", "--splits", "1", "--method", "none", "--epochs", "200"]
    tree = ["tree", *files[:2], "--memory", "1GB", "--method", "matching"]
    if not (place / "alone" / "search.csv").exists():
        shutil.rmtree(place / "alone", ignore_errors=True)
        _run([*COMMAND, *search, "--workers", "1", "-o", place / "alone"])
    if not (place / "tree.npz").exists():
        _run([*COMMAND, *tree, "--work", place / "work", "-o", place / "tree.npz"])
    return {"search": search, "tree": tree, "numbers": numbers(place / "alone"), "place": place}


def _run(words: list[Any]) -> str:
    process = start(words, "prepare")
    text = process.communicate()[0]
    if process.returncode != 0:
        raise Fault(f"exit {process.returncode}: {text[-500:]}")
    return text


@attack(
    "Dask: workers and schedulers killed",
    "what a killed worker was at is done by others, with the same bits; a scheduler that dies is a sentence and exit "
    "1, and the same command goes on with another one",
    26,
    prepare=_clustered,
    seconds=240,
)
def kill_cluster(state: dict[str, Any], number: int, draw: random.Random, folder: Path) -> None:
    """Two workers, or a scheduler, are killed during a search or stages of a large graph: two hits a try."""
    mark = f"{os.getpid()}-{draw.random()}"
    searching, scheduler = number % 2 == 0, number % 4 >= 2
    cluster = Cluster(folder, mark)
    try:
        for turn in (0, 1):
            if searching:
                words = [*state["search"], "--scheduler", cluster.address, "-o", folder / "store"]
            else:
                words = [*state["tree"], "--dask", cluster.address, "--work", folder / "work"]
                words += ["-o", folder / f"tree{turn}.npz"]
            process = start([*COMMAND, *words], mark)
            time.sleep(draw.uniform(2, 9))
            if scheduler and turn == 0:
                cluster.scheduler.kill()
                text = process.communicate()[0]
                if process.returncode not in (0, 1) or (process.returncode and "scheduler" not in text):
                    raise Fault(f"the scheduler died, and that is exit {process.returncode}: {text[-500:]}")
                cluster.end()
                cluster.begin()
                continue
            for _ in range(1 + (not scheduler)):
                place = draw.randrange(2)
                cluster.workers[place].kill()
                cluster.workers[place].wait()
                cluster.workers[place] = cluster.worker()
                time.sleep(draw.uniform(0, 1))
            text = process.communicate()[0]
            if process.returncode != 0:
                raise Fault(f"workers died, and that is exit {process.returncode}: {text[-500:]}")
            break
        if searching and numbers(folder / "store") != state["numbers"]:
            raise Fault("the runs are others than those without a cluster")
        if not searching:
            _require_same_tree(folder / f"tree{turn}.npz", state["place"] / "tree.npz")
    finally:
        cluster.end()
        end_all(mark)


def _require_same_tree(one: Path, other: Path) -> None:
    from pegfan import Hierarchy

    if Hierarchy.load(one).digest != Hierarchy.load(other).digest:
        raise Fault("the tree is another than that without a cluster")
