"""Tasks on a Dask cluster. Results are handed over as they come."""

from __future__ import annotations

import itertools
import os
import queue
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pegfan._extras import need

__all__ = ["connected", "on_client", "on_cluster", "use_tls"]

_ATTEMPTS = 3
"""How often a task is tried on a Dask cluster whose workers die, before that is an error."""
_CONNECT, _PATIENCE = 30, 120
"""Seconds to wait for a Dask cluster, and for workers in place of the last one that is gone."""
_LOOK = 2.0
"""Seconds without a result after which we look whether there are workers."""


def on_cluster(task: Callable[[Any], Any], waiting: Iterator[Any], address: str) -> Generator[Any]:
    """Results of a task on the waiting items, by the workers of a Dask scheduler.

    What a worker was doing when it died is done again by another one.
    """
    first = list(itertools.islice(waiting, 1))
    if not first:
        return  # with nothing to do, no cluster is needed
    waiting = itertools.chain(first, waiting)
    with connected(address) as client:
        yield from on_client(client, task, waiting)


def on_client(
    client: Any, task: Callable[[Any], Any], waiting: Iterator[Any], at_once: int | None = None
) -> Generator[Any]:
    """Results of a task on the waiting items, by the workers that a client of Dask has, as they come.

    Parameters
    ----------
    client
        A client that `connected` gave.
    task
        A function that workers can import.
    waiting
        What it is called with.
    at_once
        How many items are sent before their results are there; by default two per thread of the workers.

    Raises
    ------
    OSError
        The scheduler is gone, there are no workers any more, or workers die whenever they try an item.
    """
    from distributed import KilledWorker

    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    items: dict[str, tuple[Any, Any, int]] = {}

    def submit(item: Any, attempt: int) -> None:
        future = client.submit(task, item, key=f"pegfan-{uuid.uuid4().hex}", pure=False)
        items[future.key] = (future, item, attempt)
        future.add_done_callback(finished.put)

    def fill() -> None:
        room = at_once or 2 * max(1, sum(_ask(client, client.nthreads).values()))
        for item in itertools.islice(waiting, max(0, room - len(items))):
            submit(item, 1)

    try:
        fill()
        seen = time.monotonic()
        while items:
            try:
                future = finished.get(timeout=_LOOK)
            except queue.Empty:
                seen = _look(client, seen)
                continue
            seen = time.monotonic()
            _, item, attempt = items.pop(future.key)
            try:
                if future.status == "cancelled":
                    raise _gone(client)
                result = future.result()
            except KilledWorker as error:
                if attempt >= _ATTEMPTS:
                    raise OSError(
                        f"workers of the Dask cluster {_address(client)} died whenever they tried one of the tasks; "
                        "they may lack memory: start them with more, or fewer threads per worker"
                    ) from error
                submit(item, attempt + 1)
                continue
            yield result
            fill()
    finally:
        for future, *_ in items.values():  # what nobody waits for any more
            future.release()


def _look(client: Any, seen: float) -> float:
    """When there was last somebody who computes; an error if that is too long ago."""
    if _ask(client, client.nthreads):
        return time.monotonic()
    if time.monotonic() - seen > _PATIENCE:
        raise OSError(
            f"the Dask scheduler {_address(client)} has had no workers for {_PATIENCE} seconds; start one: "
            f"dask worker {_address(client)}"
        )
    return seen


def _ask(client: Any, question: Callable[[], Any]) -> Any:
    """What the scheduler answers; an error where there is none any more."""
    if client.status != "running":
        raise _gone(client)
    try:
        return question()
    except (OSError, TimeoutError, ValueError) as error:
        raise _gone(client) from error


def _gone(client: Any) -> OSError:
    return OSError(
        f"the Dask scheduler {_address(client)} is gone; what was finished is kept where it was written: start a "
        "scheduler again, and run the same command"
    )


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", "")) or "that was used"


@contextmanager
def connected(address: str, extra: str = "search", **options: Any) -> Iterator[Any]:
    """A client of the Dask scheduler at an address, which has a worker at least.

    Parameters
    ----------
    address
        Such as ``tcp://host:8786``, or ``tls://host:8786`` after `use_tls` or with Dask's own settings for TLS.
    extra
        What to install where Dask is missing.
    **options
        For `distributed.Client`.
    """
    need("distributed", extra, "a scheduler of Dask")
    from distributed import Client

    class Closed(Client):  # type: ignore[misc]  # Dask has no types
        """Dask leaves a client that cannot start to the garbage collector.

        That closes it in any thread, and in one that is to run another client's loop it waits for a lock which that
        client holds: ten seconds, then an AssertionError.
        """

        def start(self, **how: object) -> None:
            try:
                super().start(**how)
            except BaseException:
                self.close()
                raise

    try:
        _knock(address)
        client = Closed(address, timeout=_CONNECT, set_as_default=False, **options)
    except (TypeError, RuntimeError) as error:  # of Dask: TLS without certificates, or no TLS where there must be
        raise OSError(
            f"the Dask scheduler at {address} cannot be spoken to ({error}); an address that begins with tls:// needs "
            "certificates: name their folder with --tls, or use Dask's own settings"
        ) from error
    except (OSError, ValueError) as error:
        raise OSError(
            f"no Dask scheduler answers at {address} ({error}); `dask scheduler` starts one and prints its address"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT)
        except TimeoutError as error:
            raise OSError(f"the Dask scheduler {address} has no workers; start one: dask worker {address}") from error
        yield client


def use_tls(folder: str | os.PathLike[str]) -> None:
    """Speak to schedulers by TLS from now on, in this process, and refuse all that do not: settings of Dask.

    Parameters
    ----------
    folder
        Holds ``ca.pem``, which signed the certificates of the scheduler and the workers, and our own ``cert.pem`` and
        ``key.pem``.
    """
    need("distributed", "search", "a scheduler of Dask")
    import dask

    files = {name: Path(folder).absolute() / f"{name}.pem" for name in ("ca", "cert", "key")}
    missing = next((file for file in files.values() if not file.is_file()), None)
    if missing is not None:
        raise FileNotFoundError(f"{missing} is missing; a folder for TLS holds ca.pem, cert.pem and key.pem")
    dask.config.set(
        {
            "distributed.comm.require-encryption": True,
            "distributed.comm.tls.ca-file": str(files["ca"]),
            "distributed.comm.tls.client": {"cert": str(files["cert"]), "key": str(files["key"])},
        }
    )


def _knock(address: str) -> None:
    """Fail at once if nothing listens there: a client that cannot connect takes a minute to give up."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "tls"):
        return
    if not parts.hostname or not parts.port:
        raise ValueError("an address looks like tcp://host:8786")
    socket.create_connection((parts.hostname, parts.port), timeout=_CONNECT).close()
