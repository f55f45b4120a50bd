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
import logging
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pegfan._checks import check_path
from pegfan._locks import locked
from pegfan.datasets.registry import File

__all__ = ["cache_folder", "fetch"]

_log = logging.getLogger(__name__)

_CHUNK = 2**16
_LARGEST = 2**30  # ten times the largest file: a server that never stops must not fill the disk
_WORTH_RETRYING = (408, 416, 425, 429, 500, 502, 503, 504)


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
        If `root` is not a folder, or if a file is missing and `offline` is set.
    OSError
        If a download fails, or returns the wrong bytes.
    ValueError
        If a file that exists has the wrong hash.
    """
    folder = _data_folder(root)
    if offline is None:
        offline = os.environ.get("PEGFAN_OFFLINE", "").lower() not in ("", "0", "no", "false")
    places = []
    for file in files:
        own, cached = None if folder is None else folder / file.path, cache_folder() / file.path
        if own is not None and own.is_file():
            _check(file, own)
        elif not _is_right(file, cached):
            if offline:
                _refuse_download(file, cached, folder)
            _download(file, cached, timeout, attempts, pause)
        places.append(own if own is not None and own.is_file() else cached)
    return places


def cache_folder() -> Path:
    """Return where downloads are kept: ``PEGFAN_CACHE``, or else the user's cache.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    named = os.environ.get("PEGFAN_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "pegfan" / "pegfan" / "Cache"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/pegfan").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pegfan"


def _data_folder(root: str | os.PathLike[str] | None) -> Path | None:
    named, what = (os.environ.get("PEGFAN_DATA"), "PEGFAN_DATA") if root is None else (root, "root")
    if root is None and not named:
        return None
    folder = check_path(named, what).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{what} is {str(folder)!r}, which is not a folder; correct it, or leave it out")
    return folder


def _refuse_download(file: File, cached: Path, folder: Path | None) -> None:
    if cached.is_file():
        _check(file, cached)
    looked = " or in ".join(str(place) for place in (folder, cache_folder()) if place is not None)
    raise FileNotFoundError(
        f"{file.path} is not in {looked}, and downloads are off (offline=True or PEGFAN_OFFLINE); "
        f"allow them, or put {file.url} at {cached}"
    )


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


class _Hopeless(OSError):
    """A failure that another attempt will not cure."""


def _download(file: File, target: Path, timeout: float, attempts: int, pause: float) -> None:
    """Put the file at `target`, whole and with the right hash, or raise and leave at most a ``.part``."""
    url, part, failure = _address(file), target.with_name(target.name + ".part"), ""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent):
        if _is_right(file, target):  # another process brought it while this one waited
            return
        for attempt in range(attempts):
            time.sleep(pause * 2 ** (attempt - 1) if attempt else 0)
            try:
                _log.info("downloading %s to %s, attempt %d of %d", url, target, attempt + 1, attempts)
                if not _is_right(file, part):  # a process killed just before the move leaves a complete one
                    _receive(url, part, timeout)
            except (OSError, http.client.HTTPException) as error:
                failure = str(getattr(error, "reason", error)) or type(error).__name__
                _log.warning("download of %s failed: %s", url, failure)
                if isinstance(error, _Hopeless):
                    break
                continue
            found = _digest(file, part)
            if found == file.digest:
                os.replace(part, target)
                _log.info("downloaded %s, %d bytes", target, target.stat().st_size)
                return
            part.unlink()  # nothing in it can be trusted
            failure = f"the {file.algorithm} of what arrived is {found}, expected {file.digest}"
            _log.warning("download of %s failed: %s", url, failure)
        raise OSError(
            f"cannot download {url}: {failure} ({attempt + 1} attempts); try again, set PEGFAN_MIRROR to a server that "
            f"has it, or put the file at {target}"
        )


def _receive(url: str, part: Path, timeout: float) -> None:
    """Append to the part what is missing of it, as far as the connection holds."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "pegfan", "Accept-Encoding": "identity", **({"Range": f"bytes={done}-"} if done else {})}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)  # it is longer than the file: it cannot be the beginning of it
        kind = OSError if error.code in _WORTH_RETRYING else _Hopeless
        raise kind(f"the server answers {error.code} {error.reason}") from error
    with answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            part.unlink(missing_ok=True)
            raise OSError("the server sent a different part from the one asked for")
        done = done if resumed else 0
        total = None if answer.length is None else done + answer.length
        with part.open("ab" if resumed else "wb") as out:
            while done <= _LARGEST and (chunk := answer.read1(_CHUNK)):
                out.write(chunk)
                out.flush()  # what has arrived survives if this process is killed
                done += len(chunk)
                _show(f"{part.stem}: {done / 2**20:.1f}" + (f" of {total / 2**20:.1f} MiB" if total else " MiB"))
        _show("")
    if done > _LARGEST:
        part.unlink()
        raise _Hopeless(f"it sends more than {_LARGEST:,} bytes, and no file of the benchmarks is that large")
    if total is not None and done < total:
        raise OSError(f"the connection closed after {done:,} of {total:,} bytes")


def _show(progress: str) -> None:
    """Tell a person at a terminal how far a download is, always in the same line."""
    if sys.stderr.isatty():
        print(f"\r{progress}\x1b[K", end="", file=sys.stderr, flush=True)


def _address(file: File) -> str:
    mirror = os.environ.get("PEGFAN_MIRROR")
    if not mirror:
        return file.url
    if not mirror.startswith(("http://", "https://")):
        raise ValueError(f"PEGFAN_MIRROR is {mirror!r}; it must begin with http:// or https://")
    return f"{mirror.rstrip('/')}/{file.path}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time download into a folder.

    Without such locks, two downloads may spoil each other's part; the hash shows it, and the file is fetched again.
    """
    with ExitStack() as stack:
        with suppress(OSError):  # some network file systems
            stack.enter_context(locked(folder))
        yield
