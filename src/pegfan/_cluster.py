"""Tasks on a Dask cluster. Results are handed over as they come."""

from __future__ import annotations

import itertools
import socket
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pegfan._extras import need

__all__ = ["on_cluster"]

_ATTEMPTS = 3
"""How often a task is tried on a Dask cluster whose workers die, before that is an error."""
_PATIENCE = 30
"""Seconds to wait for a Dask cluster."""


def on_cluster(task: Callable[[Any], Any], waiting: Iterator[Any], address: str) -> Generator[Any]:
    """Results of a task on the waiting items, by the workers of a Dask scheduler.

    What a worker was doing when it died is done again by another one.
    """
    need("distributed", "search", "a scheduler of Dask")
    from distributed import Client, KilledWorker, as_completed

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
            f"no Dask scheduler answers at {address} ({error}); `dask scheduler` starts one and prints its address"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise OSError(f"the Dask scheduler {address} has no workers; start one: dask worker {address}") from error
        yield client


def _knock(address: str) -> None:
    """Fail at once if nothing listens there: a client that cannot connect takes a minute to give up."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "tls"):
        return
    if not parts.hostname or not parts.port:
        raise ValueError("an address looks like tcp://host:8786")
    socket.create_connection((parts.hostname, parts.port), timeout=_PATIENCE).close()
