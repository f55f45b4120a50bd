"""Archives of plain arrays: written atomically, read without pickle and within a stated size."""

from __future__ import annotations

import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from pegfan._atomic import replacing
from pegfan._checks import BadInput
from pegfan._limits import allowed, require

_CHUNK = 2**20

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, UnicodeDecodeError),
    *(EOFError, LookupError, OSError, OverflowError, RuntimeError),
)


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray[Any, Any]]) -> Path:
    """Write arrays to a compressed ``.npz``: the whole file appears at `path`, or nothing does."""
    target = Path(path)
    if target.suffix != ".npz":
        target = target.with_name(target.name + ".npz")
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise TypeError(f"{name!r} holds Python objects, which would need pickle; convert it to numbers or str")
    with replacing(target) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return target


def read_npz(path: str | os.PathLike[str], max_bytes: str | float | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Read every array of an ``.npz``, or raise a ValueError that says what is wrong with the file.

    Pickled members are refused. The sizes that the archive and the array headers declare are checked
    against `max_bytes`, see `pegfan._limits.allowed`, and against each other before any array is read.
    """
    source, most = Path(path), allowed(max_bytes)
    with source.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                declared = sum(member.file_size for member in archive.infolist())
                require(f"{source}: arrays of {declared:,} bytes", declared, most)
                return {
                    member.filename.removesuffix(".npy"): _read_member(archive, member, source)
                    for member in archive.infolist()
                }
        except _DAMAGE as error:
            raise BadInput(f"{source} is not a readable npz archive ({error}); was it cut short?") from error


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: Path) -> np.ndarray[Any, Any]:
    with archive.open(member) as file:
        try:
            version = npy.read_magic(file)
            reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if reader is None:
                raise ValueError(f"npy format {version} is not supported")
            shape, fortran, dtype = reader(file)
            if dtype.hasobject:
                raise ValueError("it holds pickled Python objects, which are never loaded")
            size = int(np.prod([int(extent) for extent in shape], dtype=object)) * dtype.itemsize
            # The archive states the member's length; a header that claims more lies about one of them.
            if size + file.tell() != member.file_size:
                raise ValueError(f"its header claims {size:,} bytes of data, the archive {member.file_size:,}")
            data, place = np.empty(size, np.uint8), 0
            while place < size and (chunk := file.read(min(_CHUNK, size - place))):
                data[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
                place += len(chunk)
            if place != size:
                raise ValueError("it is cut short")
        except (ValueError, SyntaxError, TypeError, OverflowError, tokenize.TokenError) as error:
            raise BadInput(f"{source}: member {member.filename!r} cannot be used: {error}") from error
    return np.ndarray(shape, dtype, data, order="F" if fortran else "C")
