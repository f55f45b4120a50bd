"""Graphs beyond memory: generated graphs of any size, and what working on them in pieces costs.

    python benchmarks/large.py make --nodes 10000000 --edges 100000000 --features 32 -o FOLDER

    python benchmarks/large.py run FOLDER FOLDER ... --memory 2GB [--train] [--limit 2GB]
    python benchmarks/large.py against FOLDER --memory 2GB
    python benchmarks/large.py kills FOLDER --memory 500MB --times 30 [--config out/settings.toml]
    python benchmarks/large.py workers FOLDER --memory 1.5GB --times 10 [--config out/settings.toml]

`make` writes many files of nodes and of edges in bounded memory. Degrees follow a power law, communities of very
different sizes are nested in classes, and one hub joins a tenth of all nodes. Ids are texts in no order. A class shows
in the features and in the communities of the neighbours, in neither of them clearly: one label in ten is
blank, and one in ten is wrong, so that about 90 % is the most that any model can reach. The same seed writes the same
files. `run` takes graphs through ids, sorting, tree and channels (and `--train`ing) in a process whose memory the
system limits, and prints what each part took, also per edge, and how that grows. `against` does the same on one graph
in pieces and in memory, and compares the bits of the tree and of the channels. Both add a line per run to
benchmarks/results/large.jsonl. `kills` ends `pegfan tree` by SIGKILL again and again, and `workers` the workers of its
own Dask cluster, one in each kind of stage and run; with `--config`, `pegfan train` with the recipes of that run. The
results must be the same bits, and little may be done twice.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from pegfan._limits import read_bytes

sys.path.insert(0, str(Path(__file__).parent))

from _limited import run_limited

DIGITS = 10
NODES_PER_FILE, EDGES_PER_FILE = 500_000, 2_500_000
STEEP = 2.5  # places in a community are drawn as u^2.5: degrees fall with a power of about 2.7
WITHIN = 0.7  # the share of edges inside a community
WRONG, BLANK = 0.1, 0.1
SIGNAL = 0.2  # of a class in one feature, in units of the noise


class World(NamedTuple):
    """The nodes in the order of their communities, before they get their ids."""

    n: int
    classes: int
    starts: NDArray[np.int64]  # of communities
    community: NDArray[np.int32]  # of nodes
    seed: int


def world_of(n: int, classes: int, seed: int) -> World:
    """Communities whose sizes follow a power law too, up to a fiftieth of all nodes."""
    rng = np.random.default_rng([seed, 0])
    sizes: list[NDArray[np.int64]] = []
    held, largest = 0, max(n // 50, 30)
    while held < n:
        some = np.minimum((30 * rng.random(10_000) ** (-1 / 1.2)).astype(np.int64), largest)
        sizes.append(some)
        held += int(some.sum())
    starts = np.append(0, np.cumsum(np.concatenate(sizes)))
    starts = np.append(starts[starts < n], n)
    community = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    return World(n, classes, starts, community, seed)


def coprime(near: float, n: int) -> int:
    """The first number from `near` on that has no divisor in common with n: its multiples reach all of 0..n-1."""
    step = max(int(near), 1)
    while math.gcd(step, n) > 1:
        step += 1
    return step


def ids_of(nodes: NDArray[np.int64], seed: int) -> pa.Array:
    """The ids of nodes: texts of which all differ, in no order."""
    whole = 10**DIGITS
    numbers = (nodes * 6_180_339_887 + seed * 7919) % whole  # below 2^63 for a thousand million nodes
    numbers = (numbers % 10**5) * 10**5 + (numbers // 10**5 + (numbers % 10**5) * 92_821) % 10**5
    text = np.empty((len(nodes), DIGITS + 1), np.uint8)
    text[:, 0] = ord("u")
    for place in range(DIGITS, 0, -1):
        numbers, digit = np.divmod(numbers, 10)
        text[:, place] = digit + ord("0")
    ends = np.arange(len(nodes) + 1, dtype=np.int32) * (DIGITS + 1)
    return pa.Array.from_buffers(pa.string(), len(nodes), [None, pa.py_buffer(ends), pa.py_buffer(text)])


def node_tables(world: World, features: int) -> Iterator[pa.Table]:
    """The table of nodes, a part at a time."""
    n, seed = world.n, world.seed
    step = coprime(0.618 * n, n)
    centres = np.random.default_rng([seed, 1]).standard_normal((world.classes, features)).astype(np.float32) * SIGNAL
    for part, start in enumerate(range(0, n, NODES_PER_FILE)):
        rng = np.random.default_rng([seed, 2, part])
        nodes = np.arange(start, min(start + NODES_PER_FILE, n)) * step % n
        truth = world.community[nodes] % world.classes
        values = rng.standard_normal((features, len(nodes)), dtype=np.float32)
        values += centres[truth].T
        wrong = rng.random(len(nodes)) < WRONG
        said = np.where(wrong, rng.integers(0, world.classes, len(nodes)), truth)
        names = pa.array([f"kind {chr(ord('a') + k)}" for k in range(world.classes)])
        label = pa.DictionaryArray.from_arrays(
            pa.array(said.astype(np.int8), mask=rng.random(len(nodes)) < BLANK), names
        )
        columns = {"id": ids_of(nodes, seed), "label": label.cast(pa.string())}
        yield pa.table(columns | {f"x{k}": pa.array(values[k]) for k in range(features)})


def edge_tables(world: World, m: int, weights: bool) -> Iterator[pa.Table]:
    """The table of edges, a part at a time."""
    n, seed = world.n, world.seed
    spokes = min(n // 10, m // 10)  # edges of the hub, spread over all parts
    for part, start in enumerate(range(0, m, EDGES_PER_FILE)):
        rng = np.random.default_rng([seed, 3, part])
        stop = min(start + EDGES_PER_FILE, m)
        first, last = start * spokes // m, stop * spokes // m
        rim = np.arange(first, last) * 10 + 5
        count = stop - start - len(rim)
        source = inside(world, rng.integers(0, n, count), rng)
        other = np.where(rng.random(count) < WITHIN, source, rng.integers(0, n, count))
        target = inside(world, other, rng)
        source, target = np.append(source, np.zeros_like(rim)), np.append(target, rim)
        turned = rng.random(len(source)) < 0.5
        source, target = np.where(turned, target, source), np.where(turned, source, target)
        order = rng.permutation(len(source))
        columns: dict[str, Any] = {"source": ids_of(source[order], seed), "target": ids_of(target[order], seed)}
        if weights:
            columns["weight"] = pa.array(rng.integers(1, 6, len(source)).astype(np.float32) / 2)
        yield pa.table(columns)


def inside(world: World, nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Nodes of the same communities, the first ones of each more often."""
    where = world.community[nodes]
    start = world.starts[where]
    return start + ((world.starts[where + 1] - start) * rng.random(len(nodes)) ** STEEP).astype(np.int64)


def make(given: argparse.Namespace) -> None:
    """Write the files."""
    begun = time.perf_counter()
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    world = world_of(given.nodes, given.classes, given.seed)
    size = 0
    tables = {"nodes": node_tables(world, given.features), "edges": edge_tables(world, given.edges, given.weights)}
    for what, parts in tables.items():
        for part, table in enumerate(parts):
            path = folder / f"{what}-{part:04d}.{'csv' if given.csv else 'parquet'}"
            if given.csv:
                csv.write_csv(table, path)
            else:
                parquet.write_table(table, path, compression="zstd", use_dictionary=["label"] * (what == "nodes"))
            size += path.stat().st_size
    took = time.perf_counter() - begun
    print(f"{folder}: {given.nodes:,} nodes, {given.edges:,} edges, {size / 1e9:.2f} GB, {took:.0f} s")


STAGES = Path(__file__).with_name("_stages.py")
KEPT = Path(__file__).with_name("results") / "large.jsonl"


def measured(folder: str, work: Path, memory: str, limit: int, *more: str) -> dict[str, Any]:
    """What one run took, in a process of its own."""
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, str(STAGES), folder, str(work), "--memory", memory, *more]
    run = run_limited(command, limit)
    if run.code:
        raise SystemExit(f"{folder}: {run}\n{run.err[-2000:]}")
    found: dict[str, Any] = json.loads(run.out.splitlines()[-1])
    edges = sum(parquet.read_metadata(path).num_rows for path in Path(folder).glob("edges-*.parquet"))
    found |= {"edges": edges, "memory": memory, "resident": max(run.resident, run.largest), "limited": run.how}
    with KEPT.open("a") as file:
        file.write(json.dumps({"what": [Path(folder).name, *more], **found}) + "\n")
    return found


def run(given: argparse.Namespace) -> None:
    """Graphs of several sizes, one after the other."""
    first, work = 0.0, Path(given.work)
    names: list[str] = []
    for folder in given.folders:
        more = ["--train", str(work.with_suffix(".out")), "--budget", str(given.budget)] if given.train else []
        found = measured(folder, work, given.memory, read_bytes(given.limit or given.memory), *more)
        if not names:
            names = list(found["seconds"])
            print(" | ".join(["edges", "nodes", *names, "all", "ns per edge", "growth", "resident"]))
        made = sum(found["seconds"][name] for name in names[:5])
        first = first or made / found["edges"]
        cells = [f"{found['edges']:,}", f"{found['nodes']:,}", *(f"{found['seconds'][name]:.0f} s" for name in names)]
        cells += [f"{made:.0f} s", f"{made / found['edges'] * 1e9:.0f}", f"{made / found['edges'] / first:.2f}"]
        print(" | ".join([*cells, f"{found['resident'] / 1e9:.2f} GB"]), flush=True)
        if given.train:
            print(f"test {found['test']:.4f}: {', '.join(found['recipes'])}")
        if not given.keep:
            shutil.rmtree(work, ignore_errors=True)


def against(given: argparse.Namespace) -> None:
    """One graph in pieces and in memory."""
    work = Path(given.work)
    memory = measured(given.folder, work, given.memory, 10**12, "--in-memory")
    pieces = measured(given.folder, work, given.memory, read_bytes(given.memory))
    shutil.rmtree(work, ignore_errors=True)
    for name, one in (("in memory", memory), ("in pieces", pieces)):
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in one["seconds"].items())
        print(f"{name}: {one['all']:.1f} s, {one['resident'] / 1e9:.2f} GB resident ({parts})")
    same = {part: memory[part] == pieces[part] for part in ("tree", "rows")}
    words = {True: "the same bits", False: "DIFFERENT"}
    print(f"tree: {words[same['tree']]}; channels of 10,000 nodes: {words[same['rows']]}")
    print(f"pieces take {pieces['all'] / memory['all']:.2f} of the time in memory")


def command_of(given: argparse.Namespace, *more: str) -> tuple[list[str], str]:
    """The command that is killed, and how its output ends."""
    start = [sys.executable, "-m", "pegfan", "tree" if given.config is None else "train", *map(str, given.folders)]
    chosen = [] if given.config is None else ["--config", given.config]
    end = ["--memory", given.memory, "--work", "{work}", "-o", "{out}", *more]
    return [*start, *chosen, *end], ".npz" if given.config is None else ""


def kills(given: argparse.Namespace) -> None:
    from _kills import kill_again_and_again, rows_of

    from measure import show

    command, suffix = command_of(given)
    shutil.rmtree(given.place, ignore_errors=True)
    show(rows_of("kill -9", kill_again_and_again(command, Path(given.place), suffix, given.times, given.seed)))


def workers(given: argparse.Namespace) -> None:
    from _kills import kill_workers, rows_of

    from measure import show

    command, suffix = command_of(given, "--dask")
    shutil.rmtree(given.place, ignore_errors=True)
    show(rows_of("workers", kill_workers(command, Path(given.place), suffix, given.times, given.seed), limit=1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make", help="write a generated graph as many files of nodes and of edges")
    making.add_argument("--nodes", type=int, default=10**5)
    making.add_argument("--edges", type=int, help="by default ten per node")
    making.add_argument("--features", type=int, default=32)
    making.add_argument("--classes", type=int, default=8)
    making.add_argument("--weights", action="store_true", help="edges have a column of weights")
    making.add_argument("--csv", action="store_true", help="text instead of Parquet")
    making.add_argument("--seed", type=int, default=0)
    making.add_argument("-o", "--output", required=True, help="the folder")
    making.set_defaults(run=make)
    running = commands.add_parser("run", help="ids, sorting, tree, channels and training, in limited memory")
    running.add_argument("folders", nargs="+")
    running.add_argument("--train", action="store_true", help="train to the end, too")
    running.add_argument("--budget", type=float, default=1800.0, help="seconds of training")
    running.add_argument("--limit", help="of the system; by default that of --memory")
    running.add_argument("--keep", action="store_true", help="leave the working folder")
    running.set_defaults(run=run)
    comparing = commands.add_parser("against", help="the same in pieces and in memory")
    comparing.add_argument("folder")
    comparing.set_defaults(run=against)
    for name, action, times in (("kills", kills, 30), ("workers", workers, 10)):
        ending = commands.add_parser(name, help="the same bits after kills, and what they cost")
        ending.add_argument("folders", nargs="+")
        ending.add_argument("--memory", default="1.5GB")
        ending.add_argument("--times", type=int, default=times)
        ending.add_argument("--config", help="settings.toml of a training: train with its recipes")
        ending.add_argument("--place", default="large-kills", help="where it is done; removed at the start")
        ending.add_argument("--seed", type=int, default=0)
        ending.set_defaults(run=action)
    for command in (running, comparing):
        command.add_argument("--memory", default="2GB")
        command.add_argument("--work", default="large-work", help="the working folder, which is removed at the start")
    given = parser.parse_args()
    if getattr(given, "edges", 0) is None:
        given.edges = 10 * given.nodes
    given.run(given)


if __name__ == "__main__":
    main()
