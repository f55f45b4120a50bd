"""Working folders: what is in them, whether their command has ended, and how to free them.

Nothing is removed that is not ours: a working folder is one with our marker in it, and in it only what has a name of
ours goes. Symbolic links are not followed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pegfan._atomic import replacing
from pegfan.large.pieces import LOG, MARKER

__all__ = ["NAME", "StageFolder", "WorkingFolder", "find_folders", "free_folder", "note_command"]

NAME = "pegfan.work"
"""The working folder of a command, beside what it writes; commands there share what they have worked out."""

_STATE, _LOCK, _SOURCES = "command.json", "lock", "sources.json"
_STAGE = re.compile(r"(?P<name>[A-Za-z_]\w*)-(?P<key>[0-9a-f]{20})")
_PIECE = re.compile(r"\d{5,}")
_PASSING = re.compile(r"(?:tmp-\S+|token-[0-9a-f]+|\.[\w.-]+\.part|predict-[0-9a-f]+(?:-mean)?\.npy)")
_TRAINING = re.compile(r"(?P<name>train)-[0-9a-f]+-[0-9a-f]{8}")
_DEPTH = 3
"""How far below a folder working folders are looked for."""


@dataclass(frozen=True)
class StageFolder:
    """A stage in a working folder.

    Attributes
    ----------
    name
        What it computes.
    pieces
        How many are finished.
    size
        Bytes on disk.
    changed
        When its last piece was finished, in seconds since 1970.
    """

    name: str
    pieces: int
    size: int
    changed: float


@dataclass(frozen=True)
class WorkingFolder:
    """A working folder, as it was found.

    Attributes
    ----------
    path
        Where.
    stages
        What has been worked out in it, the oldest first.
    size
        Bytes on disk.
    changed
        When something was last finished in it, in seconds since 1970.
    command
        The last command that worked in it, where that is known.
    finished
        Whether that command came to its end.
    busy
        Whether a process works in it now.
    foreign
        What in it is not ours, and stays.
    """

    path: Path
    stages: tuple[StageFolder, ...]
    size: int
    changed: float
    command: tuple[str, ...] = ()
    finished: bool = False
    busy: bool = False
    foreign: tuple[str, ...] = ()


def note_command(folder: str | os.PathLike[str], command: Sequence[str], finished: bool) -> None:
    """Write down which command works in a folder, and whether it has come to its end.

    Parameters
    ----------
    folder
        A working folder.
    command
        The words of the command line.
    finished
        Whether it has.
    """
    with replacing(Path(folder) / _STATE) as file:
        file.write(json.dumps({"command": list(command), "finished": finished, "when": time.time()}).encode())


def find_folders(home: str | os.PathLike[str] = ".") -> list[WorkingFolder]:
    """The working folders at a place or a few folders below it.

    Parameters
    ----------
    home
        A working folder, or a folder that holds some.

    Examples
    --------
    >>> import tempfile
    >>> from pegfan.large.pieces import Work, example
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with Work(Path(home, "pegfan.work")) as work:
    ...         _ = work.stage(example, {"power": 2}, count=3).results
    ...     [(one.path.name, [(s.name, s.pieces) for s in one.stages], one.busy) for one in find_folders(home)]
    [('pegfan.work', [('example', 3)], False)]
    """
    place = Path(home)
    if not place.is_dir():
        raise FileNotFoundError(f"{place}: no such folder")
    found, waiting = [], [(place, 0)]
    while waiting:
        folder, depth = waiting.pop()
        if is_ours(folder):
            found.append(_describe(folder))
            continue
        if depth < _DEPTH:
            waiting += [(path, depth + 1) for path in _folders(folder)]
    return sorted(found, key=lambda one: str(one.path))


def free_folder(folder: str | os.PathLike[str]) -> int:
    """Remove what is ours in a working folder, and the folder if nothing else is in it; the bytes that this frees.

    Parameters
    ----------
    folder
        A working folder that no process works in.

    Raises
    ------
    ValueError
        It is not a working folder, or a process works in it.
    """
    from filelock import FileLock, Timeout

    place = Path(folder)
    if place.is_symlink() or not is_ours(place):
        raise ValueError(f"{place} is not a working folder of pegfan: {MARKER} is not in it; nothing was removed")
    lock = FileLock(place / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(f"a process works in {place}; wait for it, or end it first") from None
    freed = 0
    try:
        for entry in _entries(place):
            ours = _kind(entry)
            if ours is None or entry.name in (MARKER, _LOCK):
                continue
            freed += _size(entry)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        left = [entry.name for entry in _entries(place) if entry.name not in (MARKER, _LOCK)]
        if not left:  # the marker goes last: whatever is left of a removal that is cut short is still ours
            (place / MARKER).unlink()
    finally:
        lock.release()
    if not left:
        (place / _LOCK).unlink(missing_ok=True)
        place.rmdir()
    return freed


def is_ours(folder: Path) -> bool:
    """Whether a folder has our marker in it, a plain file."""
    marker = folder / MARKER
    try:
        if not stat.S_ISREG(marker.lstat().st_mode) or marker.lstat().st_size > 10_000:
            return False
        about = json.loads(marker.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and isinstance(about.get("format"), int)


# ------------------------------------------------------------------------------------------ inside


def _describe(folder: Path) -> WorkingFolder:
    stages, size, foreign = [], 0, []
    changed = (folder / MARKER).lstat().st_mtime
    for entry in _entries(folder):
        kind, own = _kind(entry), _size(entry)
        if kind is None:
            foreign.append(entry.name)
            continue
        size += own
        if kind:
            pieces = [piece for piece in _entries(Path(entry.path)) if _PIECE.fullmatch(piece.name)]
            last = max((piece.stat(follow_symlinks=False).st_mtime for piece in pieces), default=0.0)
            stages.append(StageFolder(kind, len(pieces), own, last))
            changed = max(changed, last)
    command, finished = _state(folder)
    stages.sort(key=lambda stage: stage.changed)
    return WorkingFolder(folder, tuple(stages), size, changed, command, finished, _busy(folder), tuple(sorted(foreign)))


def _kind(entry: os.DirEntry[str]) -> str | None:
    """What an entry of a working folder is: the name of a stage, an empty text for other things of ours, or None."""
    if entry.is_symlink():
        return None
    if entry.is_dir(follow_symlinks=False):
        found = _STAGE.fullmatch(entry.name) or _TRAINING.fullmatch(entry.name)
        return found["name"] if found else "" if _PASSING.fullmatch(entry.name) else None
    known = entry.name in (MARKER, _STATE, _LOCK, LOG, _SOURCES) or _PASSING.fullmatch(entry.name)
    return "" if known else None


def _state(folder: Path) -> tuple[tuple[str, ...], bool]:
    try:
        about = json.loads((folder / _STATE).read_bytes())
        return tuple(map(str, about["command"])), bool(about["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return (), False


def _busy(folder: Path) -> bool:
    from filelock import FileLock, Timeout

    if not (folder / _LOCK).exists():
        return False
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        return True
    lock.release()
    return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def _folders(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:  # not ours to read
        return []


def _size(entry: os.DirEntry[str]) -> int:
    """Bytes on disk of a file, or of all files of a folder."""
    if not entry.is_dir(follow_symlinks=False):
        about = entry.stat(follow_symlinks=False)
        return int(getattr(about, "st_blocks", 0)) * 512 or about.st_size
    try:
        return sum(_size(inner) for inner in _entries(Path(entry.path)))
    except OSError:  # gone meanwhile
        return 0
