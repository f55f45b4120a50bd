"""Who computes: this process, other processes of this machine, or a Dask cluster; every task on one core."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

from pegfan._checks import check_flag, check_integer, shown

__all__ = [
    "Clock",
    "Deadline",
    "Progress",
    "Runner",
    "Step",
    "cores",
    "follow",
    "one_thread",
    "release_memory",
    "watch_memory",
]

_WATCH = 0.5
"""Seconds between two checks of a worker that its parent is alive."""
_ON_END_OF_PARENT = 1
"""PR_SET_PDEATHSIG: what ``prctl`` of Linux is asked."""


@dataclass(frozen=True)
class Step:
    """What every ``progress=`` is called with; printed, it is its sentence.

    Attributes
    ----------
    done, planned
        Finished tasks, and all tasks as far as is known; 0 where nothing is.
    text
        A sentence about the newest.
    result
        The newest result, if there is one.
    running
        Tasks that are being computed.
    elapsed, budget
        Seconds since the start, and the time budget, if there are any.
    """

    done: int
    planned: int
    text: str = ""
    result: Any = None
    running: int = 0
    elapsed: float = 0.0
    budget: float | None = None

    def __str__(self) -> str:
        return self.text or f"{self.done} of {self.planned}"


Progress = Callable[[Step], None]


_ENDLESS = 1e12
_SLOWEST = 0.05
"""Seconds of work that are expected in one by the clock, however little others have left so far."""


class Clock:
    """Counts the seconds of a budget as if the machine were ours: what others take of its cores does not count.

    While so many lanes are `running`, each of them should have a core. By the clock on the wall, all of it may take
    `longest` seconds: after that, less is done.

    Parameters
    ----------
    seconds
        Of work, with all lanes side by side.
    longest
        By the clock on the wall; by default as many, which leaves nothing for others to take.
    lanes
        How many threads work side by side.
    only_cpu
        Count nothing but the time of cores, divided by the lanes.
    start
        What ``time.perf_counter()`` was when the time began to run; by default now.

    Attributes
    ----------
    seconds, longest, lanes, only_cpu
        As given.

    Examples
    --------
    >>> clock = Clock(60)
    >>> 59 < clock.left() <= 60, 29 < clock.left(30) <= 30
    (True, True)
    """

    def __init__(
        self,
        seconds: float,
        longest: float | None = None,
        lanes: int = 1,
        only_cpu: bool = False,
        start: float | None = None,
    ) -> None:
        self.seconds = _seconds(seconds, "seconds")
        self.longest = self.seconds if longest is None else _seconds(longest, "longest")
        self.lanes, self.only_cpu = check_integer(lanes, "lanes", 1), only_cpu
        self._cores = min(self.lanes, cores())
        self._now, self._cpu = time.perf_counter(), time.process_time()
        self._start = self._now if start is None else start
        self._running, self._taken = 0, 0.0

    @property
    def elapsed(self) -> float:
        """Seconds by the clock on the wall."""
        return time.perf_counter() - self._start

    @property
    def spent(self) -> float:
        """Seconds of work."""
        if self.only_cpu:
            return (time.process_time() - self._cpu) / self.lanes
        return self.elapsed - self.taken

    @property
    def taken(self) -> float:
        """Seconds in which others had the cores that the lanes should have had."""
        expected = min(self._running, self._cores) * (time.perf_counter() - self._now)
        return self._taken + max(expected - (time.process_time() - self._cpu), 0.0) / self._cores

    def left(self, upto: float | None = None) -> float:
        """Seconds of work that are left of all, or of the first `upto` of them; negative once they are over.

        Of what is left by the clock on the wall, others are expected to take as much as they have taken so far.
        """
        upto = self.seconds if upto is None else upto
        if self.only_cpu or math.isinf(upto):
            return upto - self.spent
        elapsed, taken = self.elapsed, self.taken
        pace = max(1 - taken / elapsed, _SLOWEST) if taken else 1.0
        return min(upto - (elapsed - taken), (upto / self.seconds * self.longest - elapsed) * pace)

    def set_running(self, lanes: int) -> None:
        """From now on, so many lanes work."""
        if not self.only_cpu:
            self._taken = self.taken
            self._now, self._cpu, self._running = time.perf_counter(), time.process_time(), lanes


class Deadline:
    """A time at which loops end, as soon as they have something to show; it can be moved while they run.

    Parameters
    ----------
    seconds
        From now on; with a clock, of its time.
    grace
        Seconds that every loop has in any case.
    clock
        By which it is over, too.

    Attributes
    ----------
    at : float
        What ``time.monotonic()`` is then.

    Examples
    --------
    >>> deadline = Deadline(60)
    >>> deadline.passed, 59 < deadline.left <= 60
    (False, True)
    >>> deadline.at = 0.0
    >>> deadline.passed
    True
    """

    def __init__(self, seconds: float = math.inf, grace: float = 0.0, clock: Clock | None = None) -> None:
        self.clock, self.upto = clock, _seconds(seconds, "seconds")
        self.at = time.monotonic() + self.upto if clock is None else math.inf
        self.grace = _seconds(grace, "grace")

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return self.left <= 0

    @property
    def left(self) -> float:
        """The seconds that are left; negative once it has passed."""
        own = self.at - time.monotonic()
        return own if self.clock is None else min(own, self.clock.left(self.upto))

    def within(self, begun: float, seconds: float = math.inf) -> Deadline:
        """A deadline for a part of a task, which moves with this one.

        Parameters
        ----------
        begun
            When the task began, by ``time.monotonic()``: its parts share one grace.
        seconds
            After so many of this thread's core it has passed in any case.

        Examples
        --------
        >>> whole = Deadline(60)
        >>> part = whole.within(time.monotonic(), 10)
        >>> part.passed, 9 < part.left <= 10
        (False, True)
        >>> whole.at = 0.0
        >>> part.passed
        True
        """
        return _Part(self, _seconds(begun, "begun"), _seconds(seconds, "seconds"))


class _Part(Deadline):
    def __init__(self, whole: Deadline, begun: float, seconds: float) -> None:
        self.grace = 0.0
        self._whole, self._spared, self._until_cpu = whole, begun + whole.grace, time.thread_time() + seconds

    @property
    def left(self) -> float:
        spared = self._spared - time.monotonic()
        return min(self._until_cpu - time.thread_time(), max(self._whole.left, spared))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _seconds(value: float, what: str) -> float:
    """A time in seconds, which may be endless."""
    endless = isinstance(value, float) and value == math.inf
    if not endless and (isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _ENDLESS):
        raise ValueError(f"{what} must be a number of seconds, got {shown(value)}")
    return float(value)


class Runner:
    """Runs tasks: here, in other processes, or by the workers of a Dask scheduler. Use it as a context manager.

    Processes are started when they are first needed, kept until the block ends, and killed if it ends with an error or
    Ctrl-C. They keep to one core each, never see Ctrl-C, and end when this process is killed.

    Parameters
    ----------
    workers
        Processes; with 1 everything is computed in this one.
    scheduler
        The address of a Dask scheduler whose workers compute instead.
    shared
        What all tasks need, if it is too large to be sent with each: tasks are then called as ``task(shared, item)``,
        otherwise as ``task(item)``. Not for Dask.

    Examples
    --------
    >>> with Runner() as runner:
    ...     list(runner.map(abs, [-3, 2]))
    [3, 2]
    """

    def __init__(self, workers: int = 1, *, scheduler: str | None = None, shared: Any = None) -> None:
        if scheduler is not None and shared is not None:
            raise ValueError("what tasks share is not sent to a Dask cluster; send it with each item")
        self.workers, self.scheduler, self.shared = check_integer(workers, "workers", 1), scheduler, shared
        self._executor: Any = None
        self._quiet: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.close(kill=kind is not None)

    def map(
        self, task: Callable[..., Any], items: Iterable[Any], *, here: bool = False, ahead: int = 1
    ) -> Generator[Any]:
        """Results as they are finished; only as many items are taken as keep all workers busy.

        Parameters
        ----------
        task
            A function that other processes can import.
        items
            What it is called with, one by one.
        here
            Compute in this process anyway: for tasks that take less time than starting another one.
        ahead
            How many items are taken beyond those that workers are busy with, so that none of them has to wait.
        """
        check_flag(here, "here")
        waiting = iter(items)
        if self.scheduler is not None:
            from pegfan._cluster import on_cluster

            yield from on_cluster(partial(_call, task, None), waiting, self.scheduler)
        elif here or self.workers == 1:
            for item in waiting:
                yield _call(task, self.shared, item)
        else:
            yield from self._side_by_side(task, waiting, ahead)

    def close(self, kill: bool = False) -> None:
        """End the processes; with `kill` immediately."""
        executor, self._executor = self._executor, None
        if executor is not None:
            if kill:
                for process in list(executor._processes):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
            executor.shutdown(wait=not kill, kill_workers=kill)
        if self._quiet is not None:
            self._quiet.__exit__(None, None, None)
            self._quiet = None

    def _side_by_side(self, task: Callable[..., Any], waiting: Iterator[Any], ahead: int) -> Generator[Any]:
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        running: set[Any] = set()
        try:
            while True:
                for item in itertools.islice(waiting, self.workers + ahead - len(running)):
                    with _undisturbed():
                        running.add(self._open().submit(_in_worker, task, item))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                failed = [future for future in finished if future.exception() is not None]
                for future in finished.difference(failed):
                    yield future.result()
                for future in failed:
                    future.result()
        except BrokenProcessPool as error:
            self.close(kill=True)
            raise OSError(
                "a worker process died; the system may have ended it for lack of memory: run again with fewer workers"
            ) from error
        except BaseException:
            self.close(kill=True)
            raise

    def _open(self) -> Any:
        if self._executor is None:
            from loky import ProcessPoolExecutor
            from loky.backend.resource_tracker import ensure_running

            ensure_running()  # its start would lift the mask of `_undisturbed`
            self._quiet = warnings.catch_warnings()
            self._quiet.__enter__()
            # loky replaces workers whose memory has grown, and warns. Where warnings are errors, that would end its
            # thread, and we would wait forever.
            warnings.filterwarnings(
                "ignore", "A worker (stopped|was restarted) while some jobs were given", UserWarning
            )
            self._executor = ProcessPoolExecutor(
                self.workers, timeout=None, initializer=_begin, initargs=(_Follow(), self.shared)
            )
        return self._executor


def _call(task: Callable[..., Any], shared: Any, item: Any) -> Any:
    with one_thread():
        return task(item) if shared is None else task(shared, item)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The numerical libraries that are loaded, looked for when some of the so many `modules` are new."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit numerical libraries to one thread: the same bits on any machine, and no competition for its cores."""
    from pegfan import _products

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    if torch:
        torch.set_num_threads(1)
    try:
        with _libraries(len(sys.modules)).limit(limits=1), _products.one_thread():
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


def watch_memory() -> Callable[[], int | None]:
    """A function that tells the most bytes that this process has held since; None where Linux does not count them.

    Examples
    --------
    >>> peak = watch_memory()
    >>> before, block = peak(), bytearray(64 * 2**20)
    >>> before is None or peak() - before > 60 * 2**20
    True
    """
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again from what is held now
    except OSError:
        return lambda: None
    return _peak


def release_memory() -> None:
    """Give back the free memory that pyarrow, after reading, and the C library keep for later."""
    if "pyarrow" in sys.modules:
        import pyarrow

        pyarrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _peak() -> int | None:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay Ctrl-C: a half-started process could not be ended, and processes started here must not see it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ----------------------------------------------------------------- in a worker

_held: list[Any] = []
"""In a worker, what its tasks share; empty in every other process."""


class _Follow:
    """Makes a process that receives it end with this one; it stands before what takes long to receive."""

    def __reduce__(self) -> tuple[Callable[[int], None], tuple[int]]:
        return follow, (os.getpid(),)


def follow(parent: int) -> None:
    """End this process when its parent does, however that ends, and at once if it has ended already.

    Linux does it, even while compiled code runs; it also does when the parent's thread ends that started this process.
    Elsewhere a thread looks, which compiled code may delay.

    Parameters
    ----------
    parent
        The process number of the parent.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # another C library
            if ctypes.CDLL(None).prctl(_ON_END_OF_PARENT, int(signal.SIGKILL)) == 0:
                if os.getppid() != parent:
                    os._exit(1)
                return

    def watch() -> None:
        _wait_for_end(parent)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _begin(_: None, shared: Any) -> None:
    """Take what tasks share, and leave Ctrl-C to the parent."""
    _held[:] = [shared]
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait_for_end(parent: int) -> None:
    """Return when the parent of this process has ended."""
    if sys.platform == "win32":  # there a process keeps the number of its parent when the parent is gone
        import ctypes

        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        kernel.WaitForSingleObject.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
        handle = kernel.OpenProcess(0x0010_0000, False, parent)  # SYNCHRONIZE: the right to wait
        if handle:
            kernel.WaitForSingleObject(handle, 0xFFFF_FFFF)
        return
    while os.getppid() == parent:
        time.sleep(_WATCH)


def _in_worker(task: Callable[..., Any], item: Any) -> Any:
    return _call(task, _held[0], item)
