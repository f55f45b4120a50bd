"""One process at a time: locks that the system gives back when their holder ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout, lock_descriptor, unlock_descriptor

__all__ = ["locked"]

_POLL = 0.01
"""Seconds between two attempts to get a lock that another process holds."""


@contextmanager
def locked(path: Path, handle: int | None = None, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock on a file or folder that is there, for this block and against every other one; waits for its turn.

    Where the system allows it, the lock is on the file or folder itself, and nothing is left beside it. On Windows a
    locked file cannot be read by others and a folder cannot be locked, so there it is on a file beside it whose name
    ends with ``.lock``; it is removed with the lock.

    Parameters
    ----------
    path
        The file or folder.
    handle
        A descriptor by which it is open already; else it is opened for the lock.
    wait
        Whether to wait for whoever holds it; else the block begins without the lock.

    Yields
    ------
    bool
        Whether the lock is held.

    Raises
    ------
    OSError
        Where the file system has no locks, as some of those on a network.
    """
    if sys.platform == "win32":
        lock = FileLock(f"{path}.lock", poll_interval=_POLL)
        try:
            lock.acquire(blocking=wait)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
        return
    own = os.open(path, os.O_RDONLY) if handle is None else handle
    try:
        held = lock_descriptor(own, blocking=wait, poll_interval=_POLL)
        try:
            yield held
        finally:
            if held:
                unlock_descriptor(own)
    finally:
        if handle is None:
            os.close(own)
