"""What a command will take before it starts: pieces, disk, memory and time of every stage.

Costs per node, edge and cell of features were measured (``benchmarks/large.py``) on a machine whose rates are
`REFERENCE`; a probe of a second or two measures the rates of this one. They are estimates, to a factor of two or so.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pegfan._limits import show_bytes
from pegfan._matrices import csr_of, transposed
from pegfan.large.arcs import BYTES
from pegfan.large.inputs import Sizes
from pegfan.large.pieces import full_disk
from pegfan.running import cores

__all__ = ["REFERENCE", "Plan", "PlannedStage", "Probe", "least_memory", "make_plan", "probe"]

BASE = 250_000_000
"""Bytes that a process takes before it has read anything: Python, NumPy and Arrow."""
PER_NODE = 112
"""Bytes per node that must fit in memory: the vectors of one number per node that the tree needs at once."""


@dataclass(frozen=True)
class Probe:
    """How fast a machine is.

    Attributes
    ----------
    arcs
        Entries of a sparse matrix that one core moves to their places, per second.
    write, read
        Bytes per second of the disk of the working folder.
    cores
        How many there are.
    """

    arcs: float
    write: float
    read: float
    cores: int


REFERENCE = Probe(arcs=60e6, write=600e6, read=2e9, cores=2)


@dataclass(frozen=True)
class _Cost:
    """What a stage costs on `REFERENCE`, both cores at work."""

    words: str
    base: float = 0.0  # seconds whatever the size
    node: float = 0.0  # nanoseconds per node
    edge: float = 0.0  # nanoseconds per edge
    cell: float = 0.0  # nanoseconds per node and column of features
    disk_node: float = 0.0  # bytes that stay
    disk_edge: float = 0.0
    disk_cell: float = 0.0
    passing_node: float = 0.0  # bytes while it runs, and after it none
    passing_edge: float = 0.0
    per_block: bool = True  # whether it is done block by block


COSTS: dict[str, _Cost] = {
    "ids": _Cost("reading nodes", 0.5, node=1_500, disk_node=40, passing_node=60, per_block=False),
    "features": _Cost("reading features", 0.3, cell=250, disk_cell=4, per_block=False),
    "edges": _Cost("reading edges", 0.5, edge=900, disk_node=8, disk_edge=8, passing_edge=48),
    "facts": _Cost("counting", 0.2, node=500, edge=150, disk_node=24),
    "order": _Cost("canonical order", 0.2, node=300, edge=120, disk_node=16),
    "ordered": _Cost("rows in canonical order", 0.1, node=20, edge=180, disk_node=8, disk_edge=8, passing_edge=16),
    "tree": _Cost("tree", 0.3, node=1_000, edge=1_100, disk_node=24, passing_edge=16),
    "channels": _Cost("channels", 0.3, node=100, edge=60, cell=800, disk_cell=16),
    "training": _Cost("training", 5.0, node=20_000, cell=800, disk_node=16),
    "predicting": _Cost("predicting", 0.5, node=1_500, cell=80, disk_node=40),
}
"""Stages by name, in the order in which they run."""

NEEDED: dict[str, tuple[str, ...]] = {
    "info": ("ids", "edges", "facts"),
    "tree": ("ids", "features", "edges", "order", "ordered", "tree"),
    "transform": ("ids", "features", "edges", "order", "ordered", "tree"),
    "train": ("ids", "features", "edges", "order", "ordered", "tree", "channels", "training", "predicting"),
    "predict": ("ids", "features", "edges", "order", "ordered", "tree", "channels", "predicting"),
}
"""The stages that a command needs."""


@dataclass(frozen=True)
class PlannedStage:
    """What is expected of a stage.

    Attributes
    ----------
    name, words
        Which it is, and what it does.
    pieces
        How many there are.
    disk, passing
        Bytes that it leaves on disk, and those that it needs beside while it runs.
    memory
        Bytes that it takes at most.
    seconds
        How long.
    """

    name: str
    words: str
    pieces: int
    disk: float
    passing: float
    memory: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What a command is expected to take.

    Attributes
    ----------
    sizes
        What is in the files.
    memory
        Bytes that it may take.
    stages
        What it does, in order.
    """

    sizes: Sizes
    memory: int
    stages: tuple[PlannedStage, ...]

    @property
    def disk(self) -> float:
        """The most bytes on disk at one time."""
        held = most = 0.0
        for stage in self.stages:
            most = max(most, held + stage.disk + stage.passing)
            held += stage.disk
        return most

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(stage.seconds for stage in self.stages)

    def check(self, folder: str | os.PathLike[str], held: float = 0.0) -> None:
        """Refuse what cannot fit, before any work is done.

        Parameters
        ----------
        folder
            The working folder, which need not be there.
        held
            Bytes that are in it already.

        Raises
        ------
        ValueError
            The memory is too little for so many nodes.
        OSError
            The disk is too small.
        """
        least = least_memory(self.sizes.nodes)
        if self.memory < least:
            raise ValueError(
                f"{self.sizes.nodes:,} nodes need --memory {_asked(least)} at least, as a few numbers per node must "
                f"fit in memory; {show_bytes(self.memory)} are too little"
            )
        free = shutil.disk_usage(_there(Path(folder))).free
        if self.disk - held > free:
            raise OSError(
                f"the working folder {folder} needs about {show_bytes(self.disk)}, and {show_bytes(free)} are free "
                "there; free some space, or name a folder on a larger disk with --work"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "sizes": asdict(self.sizes),
            "memory": self.memory,
            "least_memory": least_memory(self.sizes.nodes),
            "disk": round(self.disk),
            "seconds": round(self.seconds, 1),
            "stages": [asdict(stage) for stage in self.stages],
        }


def least_memory(nodes: int) -> int:
    """The least memory, in bytes, that a graph of so many nodes can be worked on with.

    Examples
    --------
    >>> show_bytes(least_memory(10**6)), show_bytes(least_memory(10**7))
    ('362 MB', '1.4 GB')
    """
    return BASE + PER_NODE * nodes


def probe(folder: str | os.PathLike[str], size: int = 2**26) -> Probe:
    """Measure how fast this machine moves entries of a sparse matrix, and how fast the disk of a folder is.

    Parameters
    ----------
    folder
        A folder on the disk; it need not be there, if one around it is.
    size
        Bytes that are written and read.
    """
    rng = np.random.default_rng(0)
    n, degree = 2**16, 16
    columns = rng.integers(0, n, n * degree, dtype=np.int32)
    matrix = csr_of(np.ones(n * degree), columns, np.arange(n + 1, dtype=np.int32) * degree, (n, n), canonical=False)
    arcs = n * degree / min(_seconds(lambda: transposed(matrix)) for _ in range(3))
    block = rng.integers(0, 256, 2**20, dtype=np.uint8).tobytes()
    there = _there(Path(folder))
    with full_disk(there), tempfile.TemporaryFile(dir=there) as file:

        def fill() -> None:
            for _ in range(size // len(block)):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

        def read() -> None:
            file.seek(0)
            while file.read(2**20):
                pass

        write = size / _seconds(fill)
        if hasattr(os, "posix_fadvise"):  # from the disk and not from memory
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return Probe(arcs, write, size / _seconds(read), cores())


def make_plan(
    command: str,
    sizes: Sizes,
    memory: int,
    speed: Probe,
    workers: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> Plan:
    """Estimate what a command takes.

    Parameters
    ----------
    command
        One of info, tree, transform, train and predict.
    sizes
        What is in the files.
    memory
        Bytes that it may take.
    speed
        What `probe` found.
    workers
        Pieces at once; by default one per core.
    more
        What is known of single stages: seconds by their names, such as a budget for training.

    Examples
    --------
    >>> plan = make_plan("tree", Sizes(10**6, 10**7, 8, 10**8), 2 * 10**9, REFERENCE)
    >>> [stage.name for stage in plan.stages]
    ['ids', 'features', 'edges', 'order', 'ordered', 'tree']
    """
    at_once = workers or speed.cores
    held = least_memory(sizes.nodes)
    for_blocks = max(memory - held, memory // 4)
    slow = REFERENCE.arcs / speed.arcs * REFERENCE.cores / max(1, min(at_once, speed.cores))
    arcs = 2 * sizes.edges
    blocks = max(1, math.ceil(3 * BYTES * arcs * at_once / for_blocks))
    n, m, cells = sizes.nodes, sizes.edges, sizes.nodes * max(1, sizes.columns)
    stages = []
    for name in NEEDED[command]:
        cost = COSTS[name]
        stays = cost.disk_node * n + cost.disk_edge * m + cost.disk_cell * cells
        passing = cost.passing_node * n + cost.passing_edge * m
        seconds = cost.base + slow * 1e-9 * (cost.node * n + cost.edge * m + cost.cell * cells)
        disk = (stays + passing) * max(0.0, 1 / speed.write - 1 / REFERENCE.write)
        disk += (stays + passing) * max(0.0, 1 / speed.read - 1 / REFERENCE.read)
        seconds = float((more or {}).get(name, seconds + disk))
        used = min(memory, held + 3 * BYTES * arcs)
        stages.append(PlannedStage(name, cost.words, blocks if cost.per_block else 1, stays, passing, used, seconds))
    return Plan(sizes, memory, tuple(stages))


def _asked(size: float) -> str:
    """An amount, rounded up, as it can be given on the command line."""
    return f"{math.ceil(size / 1e8) / 10:g}GB"


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return max(time.perf_counter() - start, 1e-9)


def _there(folder: Path) -> Path:
    """The folder, or the nearest one around it that is there."""
    place = folder.absolute()
    return next(path for path in (place, *place.parents) if path.is_dir())
