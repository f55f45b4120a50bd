"""Pieces on a Dask cluster: one that runs somewhere, or one of our own on this machine.

A task is a JSON text that names a function of `pegfan.large` and folders, its result is a JSON text, and the client
takes nothing else from the cluster: no pickled result is opened here. Data goes through the working folder, which all
workers must reach. A piece appears there whole or not at all, so a worker that dies costs the pieces it was at.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import multiprocessing
import os
import re
import secrets
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from pegfan import __version__
from pegfan._cluster import connected, on_client
from pegfan._extras import need
from pegfan.large.pieces import MARKER, FullError, run_piece
from pegfan.running import cores, follow

__all__ = ["LOCAL", "DaskCluster", "is_address"]

LOCAL = "local"
"""In place of an address: a cluster of our own, on this machine."""

_TOKEN = "token-"
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss|inproc)://\S+|(?:[\w.-]+|\[[\da-fA-F:]+\]):\d{1,5})")
_KINDS = {kind.__name__: kind for kind in (ValueError, TypeError, MemoryError, ImportError, FileNotFoundError)}
"""Errors of workers that are raised here as what they are; all others are bugs."""

_CONFIG = {
    # Results are short texts: there is nothing to spill, and a worker that pauses would wait for ever for our arrays.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 1.0,
    "distributed.scheduler.allowed-failures": 10,
    # A worker that dies again just when this time is over after an earlier death would be given up for good.
    "distributed.deploy.lost-worker-timeout": "30 days",
}


def is_address(text: str) -> bool:
    """Whether a text is the address of a scheduler, or asks for a cluster of our own.

    Examples
    --------
    >>> [is_address(text) for text in ("tcp://10.0.0.1:8786", "tls://head:8786", "head:8786", "local")]
    [True, True, True, True]
    >>> [is_address(text) for text in ("nodes.parquet", "data/edges", "-o")]
    [False, False, False]
    """
    return text == LOCAL or _ADDRESS.fullmatch(text) is not None


class DaskCluster:
    """Runs pieces on the workers of a Dask scheduler. Use it as a context manager, and as ``Work(cluster=)``.

    Parameters
    ----------
    where
        The address of a scheduler, ``tcp://host:8786`` or ``tls://host:8786``, whose certificates Dask's own
        configuration names; or ``"local"`` for workers of our own on this machine, one core each.
    memory
        Bytes per worker of a local cluster; one that takes more is ended and replaced.
    workers
        How many a local cluster has; by default one per core, and two at least.
    say
        Called with sentences about the cluster: where its dashboard is.

    Examples
    --------
    >>> import tempfile
    >>> from pegfan.large.pieces import Work, example
    >>> with DaskCluster(workers=1) as cluster, tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     with Work(folder, cluster=cluster) as work:
    ...         [result["value"] for result in work.stage(example, {"power": 2}, count=3).results]
    [0, 1, 4]
    """

    def __init__(
        self,
        where: str = LOCAL,
        memory: int | None = None,
        workers: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if not is_address(where):
            raise ValueError(f"{where!r} is no address of a Dask scheduler; it looks like tcp://host:8786, or {LOCAL}")
        self.where, self.memory, self.workers = where, memory, workers or max(2, cores())
        self.say: Callable[[str], None] = say or (lambda words: None)
        self._open = ExitStack()
        self._client: Any = None
        self._seen: set[str] = set()

    def __enter__(self) -> Self:
        need("distributed", "large", "a Dask cluster")
        try:
            self._open.enter_context(_quiet())
            address = self.where if self.where != LOCAL else self._open.enter_context(self._local())
            self._client = self._open.enter_context(
                connected(address, "large", deserializers=["dask", "msgpack"])  # no pickles from there
            )
            if self.where != LOCAL:
                self._tell(self._client.dashboard_link)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self._client = None
        self._open.close()

    @property
    def threads(self) -> int:
        """The pieces that a worker computes at once, at most."""
        return max([1, *map(int, self._client.nthreads().values())])

    @property
    def cores(self) -> int:
        """The threads that a piece may use while no other is computed."""
        return cores() if self.where == LOCAL else self.threads

    @property
    def processes(self) -> dict[str, int]:
        """The process of every worker, by the worker's address."""
        return dict(self._client.run(os.getpid))

    def check(self, folder: str | os.PathLike[str]) -> None:
        """Make sure that all workers see a folder of this machine, and have the pegfan that we have.

        Parameters
        ----------
        folder
            The working folder, which must be there.
        """
        place, token = Path(folder).absolute(), secrets.token_hex(8)
        file = place / f"{_TOKEN}{token}"
        file.write_text(token, encoding="ascii")
        try:
            found = {worker: json.loads(text) for worker, text in self._client.run(_look, str(file)).items()}
        except ImportError as error:
            raise OSError(f"a worker of {self.where} cannot import pegfan ({error}); install it there") from error
        finally:
            file.unlink(missing_ok=True)
        for worker, (seen, version) in sorted(found.items()):
            if seen != token:
                raise OSError(
                    f"the worker {worker} does not see the working folder {place}; name a folder that this machine and "
                    "all workers share under one path, with --work"
                )
            if version != __version__:
                raise OSError(
                    f"the worker {worker} has pegfan {version}, and this machine {__version__}; install the same there"
                )
        self._seen.add(str(place))

    def __call__(self, orders: list[str], at_once: int | None = None) -> Generator[tuple[int, str]]:
        """Compute pieces; yields the number of the order and its result as they are finished.

        Parameters
        ----------
        orders
            What `pegfan.large.pieces.run_piece` takes.
        at_once
            How many may be under way; by default as many as keep all workers busy.
        """
        for place in {str(json.loads(order)["place"]) for order in orders} - self._seen:
            self.check(place)
        waiting = (json.dumps([number, order]) for number, order in enumerate(orders))
        results = on_client(self._client, _on_worker, waiting, at_once)
        try:
            for text in results:
                number, result, failure = json.loads(text)
                if failure is not None:
                    raise _error(failure)
                yield number, result
        finally:
            results.close()

    @contextmanager
    def _local(self) -> Iterator[str]:
        import dask
        from distributed import LocalCluster

        with (
            dask.config.set(_CONFIG),
            LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=self.memory or 0,
                host="127.0.0.1",  # for nobody else
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                preload=[__name__],
            ) as cluster,
        ):
            self._tell(cluster.dashboard_link)
            yield cluster.scheduler_address

    def _tell(self, dashboard: str | None) -> None:
        name = f"{self.workers} workers on this machine" if self.where == LOCAL else self.where
        if dashboard is None or (self.where == LOCAL and importlib.util.find_spec("bokeh") is None):
            self.say(f"Dask: {name}; a dashboard comes with: pip install bokeh")
        else:
            self.say(f"Dask: {name}, dashboard at {dashboard}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave it to our errors to say what is wrong with a cluster."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _error(failure: dict[str, Any]) -> Exception:
    """The error that a worker had, with what it said."""
    kind, words, number = str(failure["kind"]), str(failure["words"]), failure["errno"]
    if kind == FullError.__name__:
        return FullError(number, words)
    if kind in _KINDS:
        return _KINDS[kind](words)
    if number is not None:
        return OSError(number, words, failure["file"])
    return OSError(words) if kind == "OSError" else RuntimeError(f"{kind}: {words}\n{failure['trace']}")


# ------------------------------------------------------------------------------------------ on a worker


def dask_setup(worker: Any) -> None:
    """What workers of our own do first: leave Ctrl-C to the command, which ends them, and end when it is killed."""
    if parent := multiprocessing.parent_process():
        follow(parent.pid or 0)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _look(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="ascii")
    except OSError:
        token = ""
    return json.dumps([token, __version__])


def _on_worker(item: str) -> str:
    """Compute a piece; its number, its result, and what went wrong."""
    number, order = json.loads(item)
    try:
        place = Path(json.loads(order)["place"])
        if not (place / MARKER).is_file():  # workers that came later were not asked
            raise FileNotFoundError(
                f"a Dask worker on {os.uname().nodename if hasattr(os, 'uname') else 'another machine'} does not see "
                f"the working folder {place}; all workers must share it under one path"
            )
        return json.dumps([number, run_piece(order), None])
    except Exception as error:  # as a text: an error that is an object would be a pickle
        about: dict[str, Any] = {"kind": type(error).__name__, "words": str(error), "errno": None, "file": None}
        if isinstance(error, OSError) and error.errno is not None:
            file = None if error.filename is None else str(error.filename)
            about |= {"errno": error.errno, "words": error.strerror, "file": file}
        lines = itertools.chain.from_iterable(map(str.splitlines, traceback.format_exception(error)))
        return json.dumps([number, None, about | {"trace": "\n".join(lines)}])
