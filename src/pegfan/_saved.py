"""Models on disk: a folder that appears whole or not at all, with a description that says what else is in it.

``model.json`` carries its own checksum and those of the other files; files that do not match them are not read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._atomic import is_passing, replacing_folder
from pegfan._checks import check_class_names, check_path, shown
from pegfan._limits import PACKED
from pegfan._plain import versions

__all__ = ["read_classes", "read_description", "read_file", "write_file", "write_model"]

_log = logging.getLogger(__name__)

FORMAT = "pegfan classifier"
FORMAT_VERSION = 3
MODEL = "model.json"
_DTYPE = re.compile(r"[<>=|]?([biuf]\d{1,2}|U\d{1,9}|O)")
_PACKAGES = ("numpy", "scipy", "numba", "safetensors")


def write_model(
    folder: str | os.PathLike[str], overwrite: bool, about: Mapping[str, Any], write_parts: Callable[[Path], None]
) -> Path:
    """Write the parts of a model and its description to a folder; one that holds anything else is not replaced."""
    target = check_path(folder, "folder")
    _check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(target) as temporary:
        write_parts(temporary)
        write_file(temporary / MODEL, json.dumps(_complete(about, temporary), indent=1).encode())
    _log.info("model written to %s", target)
    return target


def write_file(path: Path, data: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_description(source: Path) -> dict[str, Any]:
    """What ``model.json`` says, after a check of its format, version and checksum."""
    path = source / MODEL
    if not path.is_file():
        raise ValueError(f"{source} is not a saved model: there is no {MODEL} in it")
    try:
        about = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by pegfan: its format is not {FORMAT!r}")
    version = about.get("version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} is of version {shown(version)}, and this pegfan reads {FORMAT_VERSION}: train again, or use "
            "the pegfan that wrote it"
        )
    claimed = about.pop("checksum", None)
    if claimed != _checksum(about) or not isinstance(about.get("class"), str):
        raise ValueError(f"{path} was changed since it was saved: its checksum does not fit")
    return about


def read_file(source: Path, name: str, about: Mapping[str, Any]) -> bytes:
    """The bytes of a file of the model, after a check that they are those that were saved."""
    data = (source / name).read_bytes()
    if _digest(data) != about["files"].get(name):
        raise ValueError(f"{name} was changed since it was saved: its checksum does not fit")
    return data


def read_classes(stored: Mapping[str, Any]) -> NDArray[Any]:
    """The classes; the length of strings is that of the names, not what the description claims."""
    names, kind = stored["names"], stored["dtype"]
    if not isinstance(kind, str) or not _DTYPE.fullmatch(kind) or not isinstance(names, list):
        raise ValueError(f"classes of type {shown(kind)} are neither numbers nor names")
    check_class_names(names)
    dtype = np.dtype(object if "U" in kind and not _is_even(names) else np.str_ if "U" in kind else kind)
    classes = np.array(names, dtype=dtype)
    if classes.shape != (len(names),):
        raise ValueError("classes are lists, not names")
    return classes


def _is_even(names: list[Any]) -> bool:
    """Whether NumPy, which gives every string the room of the longest, takes about as much room as the names have."""
    lengths = [len(str(name)) for name in names]
    return len(names) * max(lengths, default=0) <= 2**20 + PACKED * sum(lengths)


def _check_target(target: Path, overwrite: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ValueError(f"{target} is a file; give a folder to save to")
    held = {path.name for path in target.iterdir() if not is_passing(path.name)}
    if not held:
        return
    if not overwrite:
        raise ValueError(f"{target} exists and is not empty; pass overwrite=True to replace a model, or another folder")
    if MODEL not in held:
        raise ValueError(f"{target} is not a saved model; it is not overwritten: choose another folder")
    foreign = held - {MODEL, *read_description(target).get("files", ())}
    if foreign:
        what = f"{min(foreign)!r}, which is not part of a saved model"
        raise ValueError(f"{target} holds {what}; it is not overwritten: choose another folder")


def _complete(about: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The description completed by the format, packages, and checksums of the files in the folder."""
    whole = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "packages": versions(*_PACKAGES),
        **about,
        "files": {path.name: _digest(path.read_bytes()) for path in sorted(folder.iterdir())},
    }
    try:
        whole = json.loads(json.dumps(whole, allow_nan=False, default=_plain_number))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the model cannot be written as JSON: {error}; name classes by strings or numbers") from None
    return {**whole, "checksum": _checksum(whole)}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _checksum(about: Mapping[str, Any]) -> str:
    return _digest(json.dumps(about, sort_keys=True).encode())


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{shown(value)} is a {type(value).__name__}")
