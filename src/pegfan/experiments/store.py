"""Where results go: a folder with one file of append-only records, safe to kill at any moment.

The format
----------
``records.jsonl`` holds one record per line: a JSON object in UTF-8 with a ``"key"``. Records of several keys may share
a ``"name"``, by which they are found together; without one, the key is the name. The last member of the line,
``"check"``, is the CRC-32 of all bytes before ``,"check"`` as eight hex digits; it is not part of the record.
Any tool that reads JSON lines reads the file; lines are only ever added, so that differences between versions stay
small. Floats are written with all their digits; NaN and infinity are refused.

* An append is one write under an exclusive lock on the file, made durable (fsync) before `Store.append` returns.
* A last line without its newline is what a killed writer left. Readers ignore it; the next append removes it, or gives
  it its newline if its check says that it is whole.
* A line whose check or content is wrong is ignored and listed in `Store.damaged`; the others are not affected.
* Of several records with one key the last one counts.

Files from outside are hostile: lines longer than `MAX_LINE`, files larger than `MAX_BYTES`, deep nesting and wrong
types are refused. Locks are those of :mod:`pegfan._locks`.

``claims`` holds an empty file for every name that a process is at, locked by that process. A file that is not locked is
what a killed process left, and means nothing.
"""

from __future__ import annotations

import errno
import json
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pegfan._atomic import sync_folder
from pegfan._checks import check_flag, check_mapping, check_path, shown
from pegfan._locks import claim, is_at, locked

__all__ = ["Store"]

MAX_LINE = 2**20
"""The longest line that is written or read, in bytes."""
MAX_BYTES = 4 * 2**30
"""The largest file that is read."""

_BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows changes newlines
_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
_CHECK = re.compile(rb',"check":"([0-9a-f]{8})"\}')
_CHECK_BYTES = len(b',"check":"00000000"}')


class Store:
    """A folder of append-only records, one per key; several processes may read and write it at once.

    Parameters
    ----------
    folder
        The folder; ``records.jsonl`` in it holds the records (its format is in this module's docstring).
    create
        Whether to make the folder if it is missing; else it must be there.

    Attributes
    ----------
    folder, path
        The folder and the file.
    damaged
        Lines that were ignored: pairs of a line number and a reason.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(folder.name)
    >>> store.append({"key": "a1", "result": {"val_metric": 0.1 + 0.2}})
    >>> "a1" in store, len(store), store.get("a1")["result"]
    (True, 1, {'val_metric': 0.30000000000000004})
    >>> Store(folder.name).get("a1") == store.get("a1")
    True
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str], *, create: bool = True) -> None:
        self.folder = check_path(folder, "folder")
        self.path = self.folder / "records.jsonl"
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; a store is a folder: name another one")
        if check_flag(create, "create"):
            self.folder.mkdir(parents=True, exist_ok=True)
        elif not self.path.is_file():
            raise FileNotFoundError(f"{self.folder} is not a store: it holds no {self.path.name}")
        self._forget()
        self.refresh()

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; when this returns, it is on the disk.

        Parameters
        ----------
        record
            Plain values that JSON can hold, with a ``"key"``: up to 100 letters, digits, ``.``, ``_`` and ``-``.

        Raises
        ------
        OSError
            Where the disk is full or broken. The record is then not stored, and all others are as they were.
        """
        line = _line(record)
        with self._locked() as file, _explained(self.path, record["key"]):
            new = not self._mend(file)
            try:
                _write_all(file, line)
                os.fsync(file)
            except OSError:
                os.ftruncate(file, self._offset)  # needs no space
                raise
            if new:
                sync_folder(self.folder)  # else the file itself may be missing after a crash
            self._read(file)

    def claim(self, name: str) -> Callable[[], None] | None:
        """Tell other processes that this one is at a name, until it ends or calls what is returned.

        Parameters
        ----------
        name
            What records are going to be appended under.

        Returns
        -------
        callable or None
            What gives the name back; None where another process, or another call, is at it.
        """
        _check_key(name, "name")
        return claim(self.folder / "claims" / name)

    def get(self, key: str) -> dict[str, Any] | None:
        """The newest record of a key, or None. It is the store's own: copy it before changing it."""
        return self._newest.get(key)

    def named(self, name: str) -> list[dict[str, Any]]:
        """The newest record of each key that has this name, the newest last; they are the store's own."""
        return list(self._named.get(name, {}).values())

    def refresh(self) -> None:
        """Read what other processes appended since this one looked last."""
        try:
            file = os.open(self.path, os.O_RDONLY | _BINARY)
        except FileNotFoundError:
            self._forget()
            return
        try:
            self._read(file)
        finally:
            os.close(file)

    def __contains__(self, key: object) -> bool:
        return key in self._newest

    def __len__(self) -> int:
        """The number of records, older ones of the same key included."""
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All records in the order in which they were appended, older ones of the same key included."""
        return iter(tuple(self._records))

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r}, records={len(self)})"

    # -------------------------------------------------------------------- inside

    def _forget(self) -> None:
        self._records: list[dict[str, Any]] = []
        self._newest: dict[str, dict[str, Any]] = {}
        self._named: dict[str, dict[str, dict[str, Any]]] = {}
        self.damaged: list[tuple[int, str]] = []
        self._identity: tuple[int, int] | None = None  # of the file that was read
        self._offset = 0  # how much of it was read: whole lines
        self._lines = 0

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, open and locked for this process alone."""
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, 0o666)
            try:
                with locked(self.path, file):
                    if not is_at(file, self.path):  # git, or an editor, put another file in its place meanwhile
                        continue
                    yield file
                    return
            finally:
                os.close(file)

    def _mend(self, file: int) -> int:
        """Deal with what a killed writer left at the end; return where the next line starts."""
        self._read(file)
        os.lseek(file, self._offset, os.SEEK_SET)
        tail = _read_all(file, MAX_LINE + 1)
        if not tail:
            return self._offset
        try:
            _record(tail)
        except ValueError:
            os.ftruncate(file, self._offset)
        else:
            _write_all(file, b"\n")
            self._read(file)
        return self._offset

    def _read(self, file: int) -> None:
        """Take in the whole lines that were not read yet; what follows the last newline is left alone."""
        state = os.fstat(file)
        if state.st_size > MAX_BYTES:
            raise ValueError(f"{self.path} has {state.st_size:,} bytes; a store may have {MAX_BYTES:,}")
        identity = (state.st_dev, state.st_ino)
        if identity != self._identity or state.st_size < self._offset:
            self._forget()  # the file was replaced
        self._identity = identity
        found = len(self.damaged)
        with os.fdopen(os.dup(file), "rb") as stream:
            stream.seek(self._offset)
            for line, length in _whole_lines(stream):
                self._take(line)
                self._offset += length
        if len(self.damaged) > found:
            (number, reason), count = self.damaged[found], len(self.damaged) - found
            warnings.warn(f"{self.path}: {count} damaged lines ignored; line {number} {reason}", stacklevel=4)

    def _take(self, line: bytes) -> None:
        self._lines += 1
        try:
            record = _record(line)
        except ValueError as error:
            self.damaged.append((self._lines, str(error)))
            return
        self._records.append(record)
        key = record["key"]
        self._newest[key] = record
        alike = self._named.setdefault(record.get("name", key), {})
        alike.pop(key, None)
        alike[key] = record


def _line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of the file."""
    plain = dict(check_mapping(record, "record"))
    if "check" in plain:
        raise ValueError('a record cannot have a member "check": the store writes its own')
    _check_key(plain.get("key"))
    _check_key(plain.get("name", plain["key"]), "name")
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        body = text.encode()[:-1]
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"the record {plain['key']} holds what JSON cannot: {error}; use plain finite values"
        ) from error
    line = body + f',"check":"{zlib.crc32(body):08x}"}}\n'.encode()
    if len(line) > MAX_LINE:
        raise ValueError(f"the record {plain['key']} takes {len(line):,} bytes; a record may have {MAX_LINE:,}")
    return line


def _record(line: bytes) -> dict[str, Any]:
    """The record of a line, without its newline; a ValueError says what is wrong with it."""
    if len(line) > MAX_LINE:
        raise ValueError(f"is longer than {MAX_LINE:,} bytes")
    body, end = line[:-_CHECK_BYTES], _CHECK.fullmatch(line[-_CHECK_BYTES:])
    if end is None:
        raise ValueError('does not end with a "check"; it is torn or not of this store')
    if int(end[1], 16) != zlib.crc32(body):
        raise ValueError('was changed after it was written: its "check" does not fit')
    try:
        record = json.loads(body + b"}", parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    _check_key(record.get("key"))
    _check_key(record.get("name", record["key"]), "name")
    return record


def _check_key(key: Any, member: str = "key") -> None:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(f'has no usable "{member}" but {shown(key)[:50]}; letters, digits, ".", "_" and "-" make one')


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _whole_lines(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Lines that end with a newline, without it, and their lengths with it; of those too long, the beginning."""
    while line := stream.readline(MAX_LINE + 2):
        length, last = len(line), line
        while len(last) == MAX_LINE + 2 and not last.endswith(b"\n"):
            last = stream.readline(MAX_LINE + 2)
            length += len(last)
        if not last.endswith(b"\n"):
            return
        yield line.removesuffix(b"\n"), length


def _write_all(file: int, data: bytes) -> None:
    """Write all of it, with several calls if the system takes only a part at a time."""
    while data:
        data = data[os.write(file, data) :]


def _read_all(file: int, most: int) -> bytes:
    """Read from where the file stands to its end, `most` bytes at most."""
    data = b""
    while len(data) < most and (more := os.read(file, most - len(data))):
        data += more
    return data


@contextmanager
def _explained(path: Path, key: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror
        raise OSError(
            error.errno,
            f"{reason}: the record {key} was not stored, all others are safe; make room and run again",
            str(path),
        ) from error
