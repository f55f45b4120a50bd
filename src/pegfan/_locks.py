"""One process at a time: locks that the system gives back when their holder ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout, lock_descriptor, unlock_descriptor

__all__ = ["claim", "is_at", "locked"]

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


def claim(path: Path) -> Callable[[], None] | None:
    """Hold a lock on a file of its own, without waiting; returned is what gives it back, or None where another has it.

    The file is made, and removed when the lock is given back. What a killed holder leaves is a file that nobody holds.

    Parameters
    ----------
    path
        The file; its folder is made if it is missing.

    Raises
    ------
    OSError
        Where the file cannot be made, or the file system has no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        lock = FileLock(path, timeout=0)  # removes its file
        try:
            lock.acquire()
        except Timeout:
            return None
        return lock.release
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            held = lock_descriptor(handle, blocking=False)
            # One who held it may have removed the file just before: then this is a lock on nothing.
            if held and is_at(handle, path):
                return lambda: _give_back(path, handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if not held:
            return None


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _give_back(path: Path, handle: int) -> None:
    with suppress(OSError):
        path.unlink()  # while it is held, so that it is this file
    os.close(handle)
