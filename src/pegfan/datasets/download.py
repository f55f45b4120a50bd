"""Finding the files of a data set: in a folder, in the cache, or on the network, and always by their hash.

======================  =========================================================================
variable                meaning
======================  =========================================================================
``PEGFAN_DATA``         folder with the data sets, laid out as :func:`pegfan.datasets.info` lists
``PEGFAN_CACHE``        where downloads are kept, in the same layout; by default the user's cache
``PEGFAN_OFFLINE``      1: never touch the network
``PEGFAN_MIRROR``       address of a folder in the same layout, in place of the public sources
======================  =========================================================================

A download is written to a ``.part`` beside its place and moved there once its hash is right, so a file in the
cache is whole or absent. A ``.part`` that is left behind by a dropped connection or a killed process is taken
up where it ends.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegfan.datasets.registry import File

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["cache_folder", "fetch"]

_CHUNK = 2**16
_LARGEST = 2**30  # ten times the largest file: a server that never stops must not fill the disk
_WORTH_RETRYING = (408, 425, 429, 500, 502, 503, 504)


def fetch(
    files: Sequence[File],
    root: str | os.PathLike[str] | None = None,
    *,
    offline: bool | None = None,
    timeout: float = 30.0,
    attempts: int = 4,
    pause: float = 1.0,
) -> list[Path]:
    """Return where each file is on this machine, with the right hash; download what is missing.

    Parameters
    ----------
    files : sequence of File
    root : path, optional
        Folder to look in first; by default the one that ``PEGFAN_DATA`` names.
    offline : bool, optional
        Whether to raise FileNotFoundError rather than download; by default what ``PEGFAN_OFFLINE`` says.
    timeout : float
        Seconds that a server may stay silent.
    attempts : int
        How often to try each download.
    pause : float
        Seconds before the second attempt; doubled before each further one.

    Raises
    ------
    FileNotFoundError
        If `root` is no folder, or a file is nowhere and `offline` is set.
    OSError
        If a download fails, or brings other bytes than it should.
    ValueError
        If a file that is there has another hash than it should.
    """
    folder = _data_folder(root)
    if offline is None:
        offline = os.environ.get("PEGFAN_OFFLINE", "").lower() not in ("", "0", "no", "false")
    with _Bar() as bar:
        courier = _Courier(timeout, attempts, pause, bar)
        return [_fetch_one(file, folder, offline, courier) for file in files]


def cache_folder() -> Path:
    """Return where downloads are kept: ``PEGFAN_CACHE``, or else the user's cache."""
    named = os.environ.get("PEGFAN_CACHE")
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("pegfan"))


def _data_folder(root: str | os.PathLike[str] | None) -> Path | None:
    named, what = (os.environ.get("PEGFAN_DATA"), "PEGFAN_DATA") if root is None else (root, "root")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{what} is {str(folder)!r}, which is not a folder; correct it, or leave it out")
    return folder


def _fetch_one(file: File, folder: Path | None, offline: bool, courier: _Courier) -> Path:
    if folder is not None and (folder / file.path).is_file():
        _check(file, folder / file.path)
        return folder / file.path
    cached = cache_folder() / file.path
    if _is_right(file, cached):
        return cached
    if not offline:
        courier.bring(file, cached)
    elif cached.is_file():
        _check(file, cached)
    else:
        looked = " or in ".join(str(place) for place in (folder, cache_folder()) if place is not None)
        raise FileNotFoundError(
            f"{file.path} is not in {looked}, and downloads are off (offline=True or PEGFAN_OFFLINE); "
            f"allow them, or put {file.url} at {cached}"
        )
    return cached


# -------------------------------------------------------------------- hashes


def _digest(file: File, path: Path) -> str:
    with path.open("rb") as stream:
        if file.algorithm == "sha256":
            return hashlib.file_digest(stream, "sha256").hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % os.fstat(stream.fileno()).st_size, usedforsecurity=False)
        while chunk := stream.read(_CHUNK):
            blob.update(chunk)
        return blob.hexdigest()


def _is_right(file: File, path: Path) -> bool:
    return path.is_file() and _digest(file, path) == file.digest


def _check(file: File, path: Path) -> None:
    found = _digest(file, path)
    if found != file.digest:
        raise ValueError(
            f"{path} is not the public file: its {file.algorithm} is {found}, expected {file.digest}; "
            f"remove it, or replace it by {file.url}"
        )


# -------------------------------------------------------------------- the network


class _Broken(OSError):
    """A transfer that another attempt may complete."""


class _Courier:
    """Brings files over the network, with patience."""

    def __init__(self, timeout: float, attempts: int, pause: float, bar: _Bar) -> None:
        self.timeout = timeout
        self.attempts = attempts
        self.pause = pause
        self.bar = bar

    def bring(self, file: File, target: Path) -> None:
        """Put the file at `target`, whole and with the right hash, or raise and leave at most a ``.part``."""
        url = _address(file)
        part = target.with_name(target.name + ".part")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.parent):
            if _is_right(file, target):  # another process brought it while this one waited
                return
            failure = self._complete(file, url, part)
            if failure:
                raise OSError(
                    f"cannot download {url}: {failure} ({self.attempts} attempts); try again, set PEGFAN_MIRROR, "
                    f"or put the file at {target}"
                )
            os.replace(part, target)

    def _complete(self, file: File, url: str, part: Path) -> str:
        """Fill the part until its hash is right and return "", or say what went wrong in the last attempt."""
        failure = ""
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                if not _is_right(file, part):  # a process killed just before the move leaves a complete one
                    self._receive(url, part)
            except _Broken as error:
                failure = str(error)
                continue
            found = _digest(file, part)
            if found == file.digest:
                return ""
            part.unlink()  # nothing in it can be trusted
            failure = f"the {file.algorithm} of what arrived is {found}, expected {file.digest}"
        return failure

    def _receive(self, url: str, part: Path) -> None:
        """Append to the part what is missing of it, as far as the connection holds."""
        have = part.stat().st_size if part.exists() else 0
        headers = {"User-Agent": "pegfan", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with _open(urllib.request.Request(url, headers=headers), self.timeout, part) as answer:
            resumed = answer.status == http.client.PARTIAL_CONTENT
            if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                part.unlink(missing_ok=True)
                raise _Broken("the server sent another part than it was asked for")
            done = have if resumed else 0
            total = None if answer.length is None else done + answer.length
            with part.open("ab" if resumed else "wb") as out:
                while chunk := _read(answer):
                    out.write(chunk)
                    out.flush()  # what has arrived survives if this process is killed
                    done += len(chunk)
                    self.bar.show(part.stem, done, total)
                    if done > _LARGEST:
                        break
        if done > _LARGEST:
            part.unlink()
            raise OSError(f"{url} sends more than {_LARGEST:,} bytes; no file of the benchmarks is that large")
        if total is not None and done < total:
            raise _Broken(f"the connection closed after {done:,} of {total:,} bytes")


def _address(file: File) -> str:
    mirror = os.environ.get("PEGFAN_MIRROR")
    if not mirror:
        return file.url
    if not mirror.startswith(("http://", "https://")):
        raise ValueError(f"PEGFAN_MIRROR is {mirror!r}; it must begin with http:// or https://")
    return f"{mirror.rstrip('/')}/{file.path}"


def _open(request: urllib.request.Request, timeout: float, part: Path) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)  # it is longer than the file: it cannot be the beginning of it
        elif error.code not in _WORTH_RETRYING:
            raise OSError(
                f"cannot download {request.full_url}: the server answers {error.code} {error.reason}; "
                f"set PEGFAN_MIRROR to a server that has it, or put the file at {part.with_suffix('')}"
            ) from error
        raise _Broken(f"the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _read(answer: Any) -> bytes:
    """Return the bytes that are there, at least one, or none at the end."""
    try:
        chunk: bytes = answer.read1(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error) or type(error).__name__) from error
    return chunk


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time download into a folder.

    The lock is on the folder itself: nothing is left behind, and the system lifts it from a killed process.
    Where there are no such locks, two downloads may spoil each other's part; the hash then has it fetched
    again.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class _Bar:
    """A progress bar for a person at a terminal, once there was something to wait for."""

    def __init__(self, delay: float = 2.0) -> None:
        self.due = time.monotonic() + delay
        self.progress: Progress | None = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress is not None:
            self.progress.stop()

    def show(self, name: str, done: int, total: int | None) -> None:
        """Say how far the file of that name is."""
        if time.monotonic() < self.due or not sys.stderr.isatty():
            return
        if self.progress is None:
            self.progress = _make_progress()
            self.progress.start()
        self.progress.update(self.progress.task_ids[0], description=name, completed=done, total=total)


def _make_progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task("", total=None)
    return progress
