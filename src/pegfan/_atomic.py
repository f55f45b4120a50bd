"""Files and folders that appear whole or not at all, wherever their writer is killed.

What is being written has a hidden name beside its place, ``.NAME.xxxxxxxx.part``, and is locked by its writer. The next
writer at that place removes what no living process has locked.

A folder that is there already is exchanged for the new one in one step of the system: readers see the old or the new
one, whole. Where it cannot be exchanged (a mount point, the current folder, a parent that is read-only, a file system
without that step), the new one is made inside it. Once whole, it is marked as such and its entries move out one by one;
if that is cut short, the next writer at the place finishes it first.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from pegfan._locks import locked

__all__ = [
    "clear",
    "is_passing",
    "real_path",
    "replacing",
    "replacing_folder",
    "sync_folder",
    "try_folder",
    "try_replacing",
    "write_figure",
]

_PART = re.compile(r"\.(?P<name>.*)\.[a-z0-9_]{8}\.part", re.DOTALL)
_INSIDE = "pegfan"
"""The name of what is made inside a folder that cannot be exchanged."""
_NEW, _OLD, _STALE = "new", "old", "stale.json"
_SWAP = 2
"""RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS."""
_HERE = -100
"""AT_FDCWD of Linux."""
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)
"""What file systems say that cannot sync a folder."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` when the block ends, and vanishes if it fails."""
    target = Path(path)
    with _named(target), _temporary(target.parent, target.name, folder=False) as temporary:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _publish(temporary)
        os.replace(temporary, target)
        sync_folder(target.parent)


def try_replacing(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `replacing` would, as far as that can be known before there is something to write."""
    target = Path(path)
    with _temporary(target.parent, target.name, folder=False) as temporary:
        _try_write(temporary)


def write_figure(figure: Any, path: Path, **options: Any) -> None:
    """Write a figure of Matplotlib in the format that the file's name ends with."""
    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=160, **options)
    with replacing(path) as file:
        file.write(buffer.getvalue())


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends, and vanishes if it fails.

    What was there is removed once the new folder is in place. Whether it may be removed is the caller's decision. Of a
    symbolic link, the folder is replaced that it leads to.
    """
    target = real_path(path)
    with _named(target), _box(target) as (box, inside):
        new = box / _NEW
        new.mkdir()
        yield new
        _sync_all(new)
        _move(box, target, inside)


def try_folder(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `replacing_folder` would, as far as that can be known before there is something to write.

    Folders above it are made; what killed writers left there is finished or removed.
    """
    target = real_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _box(target) as (box, _):
        (box / _NEW).mkdir()
        _try_write(box / _NEW / "file")
        (box / _NEW).rename(box / _OLD)


def real_path(path: str | os.PathLike[str]) -> Path:
    """The path that symbolic links lead to; an OSError where they lead in a circle."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    return Path(os.path.realpath(path))


def is_passing(name: str) -> bool:
    """Whether an entry of a folder has the name of something that is being written."""
    return _PART.fullmatch(name) is not None


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if sys.platform == "win32":
        return  # folders cannot be opened there; the system writes their entries with the file
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """Give errors that do not say which file they are about its name: those of a full disk do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(target)
        raise


# ------------------------------------------------------------------ hidden names


@contextmanager
def _temporary(home: Path, name: str, folder: bool) -> Iterator[Path]:
    """A hidden file or folder that is locked for the block, and gone after it; first, those of the dead go."""
    clear(home, name)
    with ExitStack() as stack:
        path, is_there = Path(), False
        while not is_there:
            if folder:
                path = Path(tempfile.mkdtemp(dir=home, prefix=f".{name}.", suffix=".part"))
            else:
                handle, made = tempfile.mkstemp(dir=home, prefix=f".{name}.", suffix=".part")
                os.close(handle)
                path = Path(made)
            is_there = True
            try:
                stack.enter_context(locked(path))
                is_there = path.exists()  # else another writer saw it before it was locked
            except FileNotFoundError:
                is_there = False
            except OSError:
                pass  # a file system without locks, where nobody removes what is not their own
        try:
            yield path
        finally:
            if not (path / _STALE).is_file():  # else the next writer finishes it
                _remove(path)


def clear(home: Path, name: str | None = None) -> None:
    """Finish or remove what writers of a name, or of any, left in a folder that are dead."""
    with suppress(OSError):
        for left in list(home.iterdir()):
            match = _PART.fullmatch(left.name)
            if match is None or name not in (None, match["name"]):
                continue
            with suppress(OSError), locked(left, wait=False) as free:
                if free and match["name"] == _INSIDE and (left / _STALE).is_file():
                    _move_out(left, home)
                if free:
                    _remove(left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _try_write(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())


def _publish(temporary: Path) -> None:
    """Temporary files are private; what a user saves gets the permissions of anything new."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, 0o666 & ~mask)


def _sync_all(folder: Path) -> None:
    """Wait until all of a folder is on the disk."""
    for home, _, names in os.walk(folder):
        for name in names:
            # Windows syncs only what may be written.
            handle = os.open(Path(home) / name, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        sync_folder(Path(home))


# ------------------------------------------------------------------- folders


@contextmanager
def _box(target: Path) -> Iterator[tuple[Path, bool]]:
    """A hidden folder in which a new one is made, and whether it is inside the old one."""
    if target.is_dir():
        clear(target, _INSIDE)
    inside = target.is_dir() and not _can_exchange(target)
    with _temporary(*((target, _INSIDE) if inside else (target.parent, target.name)), folder=True) as box:
        yield box, inside


def _move(box: Path, target: Path, inside: bool) -> None:
    """Put the new folder in its place."""
    if inside:
        _mark(box, target)
        _move_out(box, target)
        return
    new = box / _NEW
    if target.is_dir():
        shutil.copymode(target, new)
        _exchange(new, target)
    else:
        new.rename(target)
    sync_folder(target.parent)


def _can_exchange(target: Path) -> bool:
    """Whether a folder can change places with one beside it; seen by really doing it with two empty ones."""
    try:
        here = Path.cwd()
        if target == here or target in here.parents:
            return False  # whoever stands in it would be left in one that is gone
        with (
            _temporary(target.parent, target.name, folder=True) as beside,
            _temporary(target, _INSIDE, folder=True) as inside,
        ):
            _exchange(beside, inside)
    except OSError:
        return False
    return True


def _exchange(one: Path, other: Path) -> None:
    """Let two folders change places in one step; an OSError where the system or the file system has no such step."""
    try:
        if sys.platform == "linux":
            swap = ctypes.CDLL(None, use_errno=True).renameat2
            failed = swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _SWAP)
        elif sys.platform == "darwin":
            failed = ctypes.CDLL(None, use_errno=True).renamex_np(os.fsencode(one), os.fsencode(other), _SWAP)
        else:
            raise AttributeError
    except AttributeError:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(other)) from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def _mark(box: Path, target: Path) -> None:
    """Say that the new entries are whole, and which of the old ones have no successor."""
    new = {path.name for path in (box / _NEW).iterdir()}
    stale = [path.name for path in target.iterdir() if path.name not in new and not is_passing(path.name)]
    with replacing(box / _STALE) as file:
        file.write(json.dumps(stale).encode())


def _move_out(box: Path, target: Path) -> None:
    """Move new entries to their places and old ones away; after a kill, what is left of it."""
    try:
        stale = json.loads((box / _STALE).read_bytes())
    except (ValueError, RecursionError):
        stale = None
    if not isinstance(stale, list) or not all(isinstance(name, str) and Path(name).name == name for name in stale):
        raise OSError(errno.EINVAL, "was not written by pegfan", str(box / _STALE))
    (box / _OLD).mkdir(exist_ok=True)
    for name in stale:
        if os.path.lexists(target / name):
            (target / name).rename(box / _OLD / name)
    for path in sorted((box / _NEW).iterdir()):
        if (target / path.name).is_dir():  # a file is replaced in one step, a folder is not
            (target / path.name).rename(box / _OLD / path.name)
        os.replace(path, target / path.name)
    sync_folder(target)
    (box / _STALE).unlink()
