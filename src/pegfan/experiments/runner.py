"""Who computes: the processes of this machine, or a Dask cluster. Results are handed over as they come."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

__all__ = ["on_cluster", "on_workers"]

_ATTEMPTS = 3
"""How often a task is handed to a Dask cluster that gives up on it because workers died, before that is an error."""
_PATIENCE = 30
"""Seconds to wait for a Dask cluster."""
_IDLE = 10
"""Seconds that a process without a task waits for the next one."""

Task = Callable[[Any], Any]


def on_workers(task: Task, waiting: Iterator[Any], workers: int) -> Generator[Any]:
    """Results of a task on what is waiting, by processes of this machine, in the order in which they are finished.

    Of what is waiting no more is taken than is needed to keep all workers busy. When this generator is closed, or a
    task fails, workers are ended; results that are finished by then come first.
    """
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    executor = _pool(workers)
    running: set[Any] = set()
    try:
        while True:
            # One more than there are workers, so that none waits for this process.
            for item in itertools.islice(waiting, workers + 1 - len(running)):
                running.add(executor.submit(_in_worker, task, item))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            failed = [future for future in finished if future.exception() is not None]
            for future in finished.difference(failed):
                yield future.result()
            for future in failed:
                future.result()
    except BrokenProcessPool as error:
        raise OSError(
            "a worker process died; the system may have ended it for want of memory: run again with fewer workers"
        ) from error
    except BaseException:
        executor.shutdown(wait=True, kill_workers=True)
        raise


_pools: dict[tuple[int, int], Any] = {}


def _pool(workers: int) -> Any:
    """Our processes, kept for the next call; idle ones leave by themselves.

    joblib's own pool is not ours to use: it would break for whoever calls joblib next in this process.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    # Workers that have grown are replaced between tasks, which is as it should be. Said at every call: where warnings
    # are errors, this one would end loky's thread, and we would wait for ever.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    place = (os.getpid(), workers)  # a forked process has none of its parent's
    flags = _pools[place]._flags if place in _pools else None
    if flags is None or flags.broken or flags.shutdown:
        _pools[place] = ProcessPoolExecutor(workers, timeout=_IDLE)
    return _pools[place]


def on_cluster(task: Task, waiting: Iterator[Any], address: str) -> Generator[Any]:
    """Results of a task on what is waiting, by the workers of a Dask scheduler.

    What a worker was doing when it died is done again by another one.
    """
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise ImportError("a scheduler needs Dask: pip install 'pegfan[search]'") from error

    first = list(itertools.islice(waiting, 1))
    if not first:
        return  # with nothing to do, no cluster is needed
    waiting = itertools.chain(first, waiting)
    with _client(Client, address) as client:
        running = as_completed(loop=client.loop)
        items: dict[str, tuple[Any, int]] = {}

        def submit(item: Any, attempt: int) -> None:
            future = client.submit(task, item, key=f"pegfan-{uuid.uuid4().hex}", pure=False)
            items[future.key] = (item, attempt)
            running.add(future)

        def fill() -> None:
            room = 2 * max(1, sum(client.nthreads().values())) - len(items)
            for item in itertools.islice(waiting, max(0, room)):
                submit(item, 1)

        fill()
        while items:
            future = next(running)
            item, attempt = items.pop(future.key)
            try:
                result = future.result()
            except KilledWorker:
                if attempt >= _ATTEMPTS:
                    raise
                submit(item, attempt + 1)
                continue
            yield result
            fill()


@contextmanager
def _client(make: Any, address: str) -> Iterator[Any]:
    try:
        _knock(address)
        client = make(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise OSError(
            f"no Dask scheduler answers at {address} ({error}); `dask scheduler` starts one and says its address"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise OSError(f"the Dask scheduler {address} has no workers; start one: dask worker {address}") from error
        yield client


def _knock(address: str) -> None:
    """Fail at once where nobody listens: a client that cannot connect takes a minute to go away."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "tls"):
        return
    if not parts.hostname or not parts.port:
        raise ValueError("an address looks like tcp://host:8786")
    socket.create_connection((parts.hostname, parts.port), timeout=_PATIENCE).close()


def _in_worker(task: Task, item: Any) -> Any:
    """Do a task in a process of its own: Ctrl-C is the parent's to answer."""
    _end_with_parent()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return task(item)
    finally:
        signal.signal(signal.SIGINT, before)


_watching = threading.Event()


def _end_with_parent() -> None:
    """See to it that this process ends when its parent is killed; it would go on computing for nobody."""
    if _watching.is_set():
        return
    _watching.set()
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
