"""Batches of rows of channels on disk: read ahead, in an order that is drawn anew for every pass.

Canonical order is an order by hashes, so rows that stand together are a random sample. A pass takes runs of rows in a
random order, a few of them at a time, and draws batches among those: the disk is read in long pieces, and what a batch
holds depends on nothing but the seed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

from pegfan._arrays import IntArray
from pegfan.large.channels import Block, LargeChannels
from pegfan.training.batches import ROWS

__all__ = ["RowsOnDisk"]

RUN = 8192
"""Training rows that are read together."""
WINDOW = 16
"""Runs that batches are drawn among."""
_AHEAD = 4
"""Batches that are ready before they are asked for."""
_WAIT = 0.1


class RowsOnDisk:
    """A source of batches (`pegfan.training.batches.RowSource`).

    Parameters
    ----------
    channels
        What rows are of.
    train, val
        The places of training and validation rows; rising.
    seed
        Of the order.
    batch
        The most rows of a batch.
    room
        Bytes that training rows may take in memory, before rows of channels are made of them; where they would take
        more, they are read in every pass. Batches are the same.
    """

    def __init__(
        self, channels: LargeChannels, train: IntArray, val: IntArray, seed: int, batch: int = ROWS, room: float = 0.0
    ) -> None:
        self.channels, self.train, self.seed, self.widths = channels, train, seed, channels.widths
        count = max(1, -(-len(train) // RUN))
        self.bounds = np.linspace(0, len(train), count + 1).astype(np.int64)
        longest = int(np.diff(self.bounds).max())
        self.largest = max(1, min(batch, longest * min(WINDOW, count)))
        self.windows = [range(start, min(start + WINDOW, count)) for start in range(0, count, WINDOW)]
        self.parts = [max(1, -(-len(window) * longest // self.largest)) for window in self.windows]
        self.per_pass = sum(self.parts)
        self._val = channels.block(val)
        self._held: Block | None = channels.block(train) if channels.row_bytes * len(train) <= room else None
        self._newest: list[Any] = []

    def batches(self, step: int) -> Iterator[IntArray]:
        """Which training rows the batches have, from some step on."""
        made = self._made(step)
        ready: Queue[Any] = Queue(_AHEAD)
        end = Event()
        worker = Thread(target=_fill, args=(made, ready, end), daemon=True)
        worker.start()
        try:
            while True:
                found = ready.get()
                if isinstance(found, BaseException):
                    raise found
                self._newest = found.rows
                yield found.which
        finally:
            end.set()
            worker.join()

    def train_rows(self, chunk: IntArray) -> list[Any]:
        """Rows of all channels for the newest batch."""
        del chunk
        return self._newest

    def val_rows(self, block: slice) -> list[Any]:
        """Rows of all channels for some validation rows."""
        return self._val.rows(np.arange(len(self._val.places))[block])

    # ------------------------------------------------------------------------ inside

    def _plan(self, step: int) -> Iterator[tuple[IntArray, list[IntArray]]]:
        """Windows, as training rows in order, and the batches drawn among them, as places in the window."""
        number, begin = divmod(step, self.per_pass)
        while True:
            runs = np.random.default_rng((self.seed, number)).permutation(len(self.bounds) - 1)
            for w, (window, parts) in enumerate(zip(self.windows, self.parts, strict=True)):
                if begin >= parts:
                    begin -= parts
                    continue
                own = np.sort(runs[window.start : window.stop])
                rows = np.concatenate([np.arange(self.bounds[run], self.bounds[run + 1]) for run in own])
                drawn = np.random.default_rng((self.seed, number, w)).permutation(len(rows))
                yield rows, np.array_split(drawn, parts)[begin:]
                begin = 0
            number += 1

    def _made(self, step: int) -> Generator[_Batch, None, None]:
        """Batches with their rows; the next window is read while batches of one are made."""
        with ThreadPoolExecutor(1) as reader:
            plan = self._plan(step)
            rows, batches = next(plan)
            coming = reader.submit(self._read, rows)
            while True:
                own, drawn, block = rows, batches, coming.result()
                rows, batches = next(plan)
                coming = reader.submit(self._read, rows)
                for which in drawn:
                    yield _Batch(own[which], block.rows(which if self._held is None else own[which]))

    def _read(self, rows: IntArray) -> Block:
        return self.channels.block(self.train[rows]) if self._held is None else self._held


class _Batch(NamedTuple):
    which: IntArray
    rows: list[Any]


def _fill(made: Generator[_Batch, None, None], ready: Queue[Any], end: Event) -> None:
    """Put batches, or what went wrong, where they are waited for."""
    try:
        for batch in made:
            if not _put(batch, ready, end):
                return
    except BaseException as error:
        _put(error, ready, end)
    finally:
        made.close()


def _put(what: Any, ready: Queue[Any], end: Event) -> bool:
    while not end.is_set():
        try:
            ready.put(what, timeout=_WAIT)
        except Full:
            continue
        return True
    return False
