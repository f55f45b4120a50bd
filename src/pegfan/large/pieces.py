"""Long computations in pieces on disk: what is finished stays, the same command goes on where it was killed.

A *stage* is a function, what it is called with, and the stages that it reads; it is computed in *pieces*, each of which
writes files of its own. The key of a stage is a hash of all that its files depend on, and names its folder, so that a
piece is either there whole and right, or not there. Nothing but JSON and plain arrays is read back.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pegfan._atomic import clear, is_passing, replacing
from pegfan.running import Progress, Step, cores

if TYPE_CHECKING:
    from pegfan.large.dask import DaskCluster

__all__ = ["FullError", "Made", "Stage", "Task", "Work", "run_piece"]

FORMAT = 1
"""Goes into every key: pieces of another format are not taken for ours."""

MARKER = "pegfan-work.json"
"""The file that says that a folder is a working folder of ours, and may be freed."""

LOG = "log.jsonl"
"""The file of a working folder that says when pieces were begun and ended."""

_DONE = "done.json"
_HOME = "pegfan.large."


class FullError(OSError):
    """The disk is full; what is finished stays."""


class Made:
    """The files of a stage, as its readers see them.

    Parameters
    ----------
    folder
        Where the pieces are.
    count
        How many there are.
    """

    def __init__(self, folder: str | os.PathLike[str], count: int) -> None:
        self.folder, self.count = Path(folder), count

    def path(self, name: str, block: int = 0) -> Path:
        """A file of a piece."""
        return self.folder / f"{block:05d}" / name

    def load(self, name: str, block: int = 0, mmap: bool = False) -> NDArray[Any]:
        """An array of a piece, read or mapped into memory."""
        found: NDArray[Any] = np.load(
            self.path(f"{name}.npy", block), mmap_mode="r" if mmap else None, allow_pickle=False
        )
        return found

    def has(self, name: str, block: int = 0) -> bool:
        """Whether a piece has such an array."""
        return self.path(f"{name}.npy", block).exists()

    def result(self, block: int = 0) -> dict[str, Any]:
        """What the function returned for a piece."""
        found: dict[str, Any] = json.loads(self.path(_DONE, block).read_text(encoding="utf-8"))["result"]
        return found

    @property
    def results(self) -> list[dict[str, Any]]:
        """What the function returned for every piece."""
        return [self.result(block) for block in range(self.count)]


@dataclass(frozen=True)
class Task:
    """What the function of a stage is called with for one piece.

    Attributes
    ----------
    params
        As given to `Work.stage`.
    block, count
        Which piece, of how many.
    inputs
        The stages that it reads.
    memory
        The bytes that it may take.
    threads
        How many threads it may use.
    folder
        Where it writes; the folder takes its place among the pieces when the function returns.
    place
        The working folder, for temporary files of libraries.
    """

    params: dict[str, Any]
    block: int
    count: int
    inputs: dict[str, Made]
    memory: int
    threads: int
    folder: Path
    place: Path

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Write an array."""
        np.save(self.folder / f"{name}.npy", array, allow_pickle=False)


PieceFunction = Callable[[Task], "dict[str, Any] | None"]


class Stage(Made):
    """A stage of a `Work`; asking for its files or results computes what is missing."""

    def __init__(
        self,
        work: Work,
        function: PieceFunction,
        params: dict[str, Any],
        inputs: dict[str, Stage],
        count: int,
        words: str,
        size: int,
        alone: bool,
    ) -> None:
        self.work, self.function, self.params, self.inputs = work, function, params, inputs
        self.words, self.size, self.alone = words, size, alone
        self.name = f"{function.__module__}:{function.__qualname__}"
        about = [FORMAT, self.name, params, count, {name: stage.key for name, stage in sorted(inputs.items())}]
        self.key: str = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=10).hexdigest()
        super().__init__(work.folder / f"{function.__name__}-{self.key}", count)

    def missing(self, files: bool = True) -> list[int]:
        """The pieces that are not there; without `files`, those that were never made."""
        return [block for block in range(self.count) if not self._there(block, files)]

    def run(self, files: bool = True) -> Self:
        """Compute the pieces that are missing, and before them what they read; without `files`, those never made."""
        missing = self.missing(files)
        if missing:
            for stage in self.inputs.values():
                stage.run()
            self.work._run(self, missing)
        return self

    def path(self, name: str, block: int = 0) -> Path:
        """A file of a piece."""
        self.run(files=name != _DONE)
        return super().path(name, block)

    @property
    def results(self) -> list[dict[str, Any]]:
        """What the function returned for every piece."""
        self.run(files=False)
        return Made(self.folder, self.count).results  # all of them are there: no need to look again for each

    def _there(self, block: int, files: bool) -> bool:
        return _whole(Made.path(self, "", block), files)


def _whole(piece: Path, files: bool = True) -> bool:
    """Whether a piece is there, with all of its files or, without `files`, with its result."""
    try:
        about = json.loads((piece / _DONE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if about.get("freed"):
        return not files
    return all(_size(piece / name) == size for name, size in about["files"].items())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


class Work:
    """A working folder, and who computes: threads of this process, or the workers of a Dask cluster.

    Parameters
    ----------
    folder
        Made where it does not exist. One process at a time works in it.
    memory
        The bytes that all pieces at work may take together; on a cluster, those of every worker.
    workers
        How many pieces are computed at once; by default one per core.
    progress
        Called with a `pegfan.running.Step` after every piece.
    cluster
        What runs pieces elsewhere: a `pegfan.large.dask.DaskCluster`.

    Examples
    --------
    >>> import tempfile
    >>> from pegfan.large.pieces import Work, example
    >>> with tempfile.TemporaryDirectory() as folder, Work(folder) as work:
    ...     squares = work.stage(example, {"power": 2}, count=3)
    ...     [result["value"] for result in squares.results], squares.load("value", 2)
    ([0, 1, 4], array([4]))
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        memory: int = 4_000_000_000,
        workers: int | None = None,
        progress: Progress | None = None,
        cluster: DaskCluster | None = None,
    ) -> None:
        from filelock import FileLock, Timeout

        self.folder, self.memory, self.progress, self.cluster = Path(folder), memory, progress, cluster
        self.workers = workers or cores()
        with full_disk(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            marker = self.folder / MARKER
            if not marker.exists():
                if not all(is_passing(path.name) for path in self.folder.iterdir()):  # a kill may have left one
                    raise ValueError(f"{self.folder} holds other files; name a new or empty folder to work in")
                with replacing(marker) as file:
                    file.write(json.dumps({"format": FORMAT}).encode())
            self._lock = FileLock(self.folder / "lock")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise ValueError(
                    f"another process works in {self.folder}; wait for it, or name another working folder"
                ) from None
            for left in self.folder.glob("tmp-*"):  # of a process that was killed: the lock says that none is at work
                shutil.rmtree(left, ignore_errors=True)
            clear(self.folder)
        self._begun = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Let others work in the folder."""
        self._lock.release()

    def stage(
        self,
        function: PieceFunction,
        params: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Stage] | None = None,
        count: int = 1,
        words: str = "",
        size: int = 0,
        alone: bool = False,
    ) -> Stage:
        """A stage, which is computed when somebody asks for its files or results.

        Parameters
        ----------
        function
            A function of a module of `pegfan.large`, called with a `Task` for every piece. It writes into the task's
            folder, and returns what JSON can hold, or nothing.
        params
            What it depends on beside its inputs; anything that JSON can hold.
        inputs
            Stages that it reads, by the names that it knows them by.
        count
            How many pieces there are.
        words
            What it does, for the progress bar, such as "sorting edges".
        size
            How many rows or edges it goes over in all, for the rate.
        alone
            Whether one piece at a time takes all memory and all threads.
        """
        plain = json.loads(json.dumps(dict(params or {})))
        return Stage(self, function, plain, dict(inputs or {}), count, words or function.__name__, size, alone)

    def free(self, *stages: Stage) -> None:
        """Remove the files of stages, not their results: they come back if somebody asks for them."""
        for stage in stages:
            for block in range(stage.count):
                piece = Made.path(stage, _DONE, block)
                if not piece.exists():
                    continue
                about = json.loads(piece.read_text(encoding="utf-8"))
                if about.get("freed"):
                    continue
                with replacing(piece) as file:
                    file.write(json.dumps(about | {"freed": True}).encode())
                for name in about["files"]:
                    (piece.parent / name).unlink(missing_ok=True)

    # ------------------------------------------------------------------------ inside

    def _run(self, stage: Stage, missing: list[int]) -> None:
        several = len(missing) > 1 and not stage.alone
        at_once = min(self.workers, len(missing)) if several else 1
        threads = max(1, self.workers // at_once)
        if self.cluster is not None:  # memory is that of a worker, which computes so many at once
            at_once, threads = (self.cluster.threads, 1) if several else (1, self.cluster.cores)
        orders = {
            block: json.dumps(
                {
                    "function": stage.name,
                    "params": stage.params,
                    "block": block,
                    "count": stage.count,
                    "inputs": {name: [one.folder.name, one.count] for name, one in stage.inputs.items()},
                    "memory": self.memory // at_once,
                    "threads": threads,
                    "folder": stage.folder.name,
                    "place": str(self.folder.absolute()),
                }
            )
            for block in missing
        }
        done, begun = stage.count - len(missing), time.monotonic()
        self._say(stage, done, begun, 0)
        with full_disk(self.folder):
            if self.cluster is not None:
                for _ in self.cluster(list(orders.values()), None if several else 1):
                    done += 1
                    self._say(stage, done, begun, done - stage.count + len(missing))
                return
            for _ in _in_threads(list(orders.values()), at_once):
                done += 1
                self._say(stage, done, begun, done - stage.count + len(missing))

    def _say(self, stage: Stage, done: int, begun: float, new: int) -> None:
        if not self.progress:
            return
        now = time.monotonic()
        text = stage.words
        if stage.count > 1:
            text += f": block {done} of {stage.count}"
        if new and stage.size and now > begun:
            text += f", {stage.size * new / stage.count / (now - begun) / 1e6:.1f} million per second"
        if new and done < stage.count:
            text += f", {(now - begun) / new * (stage.count - done):.0f} s left"
        self.progress(Step(done, stage.count, text, elapsed=now - self._begun))


def _in_threads(orders: list[str], at_once: int) -> Iterator[None]:
    if at_once == 1:
        for one_order in orders:
            run_piece(one_order)
            yield
        return
    waiting, running = iter(orders), set[Future[str]]()
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            while len(running) < at_once and (order := next(waiting, None)) is not None:
                running.add(pool.submit(run_piece, order))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for one in finished:
                one.result()
                yield


def run_piece(order: str) -> str:
    """Compute a piece as a JSON text says, unless it is there; its result, as a JSON text.

    Only functions of `pegfan.large` are called, and files are written to the working folder that the text names.
    """
    about = json.loads(order)
    place = Path(about["place"])
    target = place / about["folder"] / f"{about['block']:05d}"
    module, _, name = str(about["function"]).partition(":")
    if not module.startswith(_HOME) or not name.isidentifier():
        raise ValueError(f"a piece can be a function of {_HOME[:-1]} only, not {about['function']!r}")
    function: PieceFunction = getattr(importlib.import_module(module), name)
    with full_disk(place):
        target.parent.mkdir(exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=place, prefix="tmp-"))
        start, begun = time.monotonic(), time.time()  # the time of day is for readers; it may jump
        piece = {"stage": about["folder"], "block": about["block"], "process": os.getpid()}
        _log(place, piece | {"begun": begun})
        try:
            inputs = {key: Made(place / folder, count) for key, (folder, count) in about["inputs"].items()}
            task = Task(
                about["params"],
                about["block"],
                about["count"],
                inputs,
                about["memory"],
                about["threads"],
                temporary,
                place,
            )
            result = function(task) or {}
            files = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
            text = json.dumps({"result": result, "files": files, "seconds": round(time.monotonic() - start, 3)})
            (temporary / _DONE).write_text(text, encoding="utf-8")
            os.chmod(temporary, 0o755)
            _put(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _log(place, piece | {"begun": begun, "ended": time.time()})
    return json.dumps(result)


def _log(place: Path, line: dict[str, Any]) -> None:
    """Add a line to what is known of pieces that were begun and ended: what a kill has cost."""
    with (place / LOG).open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")


def _put(temporary: Path, target: Path) -> None:
    """Move a piece to its place, unless it is there: a worker that was taken for dead may have made it meanwhile."""
    if not _whole(target):
        shutil.rmtree(target, ignore_errors=True)  # a piece whose files were freed or cut
        try:
            os.replace(temporary, target)
            return
        except OSError:
            if not _whole(target):
                raise
    shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Turn "no space left" into an error that says what to do, and name the folder in others."""
    try:
        yield
    except FullError:
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            if error.filename is None and error.errno is not None:
                error.filename = str(folder)
            raise
        raise FullError(
            error.errno,
            f"the disk is full: {folder} needs more space. Nothing is lost: free some, or move the folder and name its "
            "new place, and run the same command again",
        ) from error


def example(task: Task) -> dict[str, Any]:
    """A piece for examples and tests: a power of its number, after some seconds of sleep."""
    time.sleep(task.params.get("seconds", 0.0))
    value = task.block ** task.params["power"]
    task.save("value", np.array([value]))
    return {"value": value}
