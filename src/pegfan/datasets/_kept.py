"""The files of a graph kept beside a model, packed, with a list of what they were."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pegfan._checks import BadInput
from pegfan.datasets._text import is_packed

__all__ = ["DESCRIPTION", "keep", "read_kept"]

DESCRIPTION = "data.json"
_FORMAT, _VERSION = "pegfan data", 1
_PLAIN = (".parquet", ".pq", ".npz", ".pt", ".pth")
"""Files that are packed already, and are not read through gzip."""


def keep(folder: Path, files: Sequence[Path], options: Mapping[str, Any]) -> list[str]:
    """Copy files into a folder, which is made, and write down their digests; return the names of the copies.

    The folder appears whole or not at all where it is made inside one that does.
    """
    folder.mkdir()
    copies = {}
    for file in files:
        copy = folder / file.name
        if file.suffix.lower() in _PLAIN or is_packed(file):
            shutil.copyfile(file, copy)
        else:
            copy = folder / f"{file.name}.gz"
            # Without the time, so that the same files are the same bytes.
            with file.open("rb") as source, copy.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                shutil.copyfileobj(source, packed)
        copies[copy.name] = _digest(copy)
    about = {"format": _FORMAT, "version": _VERSION, "options": dict(options), "files": copies}
    (folder / DESCRIPTION).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return list(copies)


def read_kept(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    """Return the files that were kept in a folder, and the options to read them with."""
    path = folder / DESCRIPTION
    fix = "train again with --keep-data, or take the folder away"
    try:
        about = json.loads(path.read_bytes())
        kind, version, files, options = about["format"], about["version"], dict(about["files"]), dict(about["options"])
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise BadInput(f"{path} cannot be read: {error}; {fix}") from error
    if kind != _FORMAT or version != _VERSION:
        raise BadInput(f"{path} says {kind!r}, version {version!r}, which this pegfan does not read; {fix}")
    for name, digest in files.items():
        file = folder / name
        if Path(name).name != name or not file.is_file() or _digest(file) != digest:
            raise BadInput(f"{file} is not what was kept there; {fix}")
    return [folder / name for name in files], options


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
