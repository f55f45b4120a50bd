"""Amounts of memory: as people write them, what this machine has and has left, and what reading a file may take of it.

A small file can claim much: rows, columns, nodes, strides, what it unpacks to. Readers work out from such claims how
much memory they would take, and refuse too much of it before any is taken, see `require`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from pegfan._checks import BadInput, check_number

__all__ = [
    "allowed",
    "allowed_for",
    "check_memory",
    "free_memory",
    "is_large",
    "machine_memory",
    "read_bytes",
    "require",
    "show_bytes",
]

LARGE_NODES = 32_768
"""Nodes from which on a graph is large, and training nodes from which on a training is: see `is_large`."""

SHARE = 0.8
"""Of the memory that is free, what reading a graph may take by default: about half of that stays for the work on it."""
UNKNOWN_MEMORY = 4 * 10**9
"""Bytes that are taken to be free where the system does not say."""
NUMBER, CELL, BYTE, COLUMN = 24, 32, 4, 20_000
"""Bytes in memory that reading a table takes per number, per cell of text, and besides per byte of text and column."""
NUMBER_DIGITS = 26
"""Bytes that a number and what parts it from the next one take in a text table at the most."""
JSON, GML, GRAPHML, EDGELIST = 30, 40, 50, 75
"""Bytes in memory that a byte of these formats may become: Python's objects are large."""
MOST_COLUMNS = 100_000
"""Columns of a table: each of them is looked at by itself, which takes about a thousandth of a second."""
NODE, EDGE = 64, 100
"""Bytes in memory that a node and an edge of a graph take while it is made."""

PACKED = 50
"""How many times the size of a file of this package its arrays may take: they are packed, mostly to a tenth."""

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SHAPE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)(b?)\s*", re.IGNORECASE)
_LIMIT = "memory.limit_in_bytes"
_USED = {"memory.max": "memory.current", _LIMIT: "memory.usage_in_bytes"}
_EXAMPLE = "write it as 4GB, 512MB or 1.5GiB"
_SMALL = 2**26
"""Bytes below which the system is not asked whether they are free: that takes longer than making a small graph."""


def is_large(nodes: int) -> bool:
    """Whether so many nodes are many: the one policy for large graphs, by counts alone, so that no load decides.

    Results of either side are right, and equal to rounding; they are not the same bits. From `LARGE_NODES` nodes of a
    graph on,

    * what channels share is kept: scaled features, hop matrices, hops;
    * terms are added up in canonical order, and not in that of the tree's leaves, where all nodes differ;
    * predictions (float32) put rows of channels together in blocks, and reasons (float64) add up what is near.

    From as many training nodes on, networks are trained in batches where rows are short (`pegfan.train`), and automatic
    training searches as on large graphs.

    Examples
    --------
    >>> is_large(32_767), is_large(32_768)
    (False, True)
    """
    return nodes >= LARGE_NODES


def read_bytes(amount: str | float, name: str = "memory") -> int:
    """The bytes that an amount stands for.

    Parameters
    ----------
    amount
        A number of bytes, or a text: a number and kB, MB, GB or TB, which are powers of 1000, or KiB, MiB, GiB or TiB,
        which are powers of 1024. The B may be left out.
    name
        What it is, for the message.

    Examples
    --------
    >>> read_bytes("4GB"), read_bytes("1.5 GiB"), read_bytes(1e6)
    (4000000000, 1610612736, 1000000)
    >>> read_bytes("much")
    Traceback (most recent call last):
    ValueError: memory is an amount of bytes, not 'much'; write it as 4GB, 512MB or 1.5GiB
    """
    if isinstance(amount, bool) or not isinstance(amount, int | float | str):
        raise TypeError(f"{name} is an amount of bytes, not {amount!r}; {_EXAMPLE}")
    if isinstance(amount, str):
        found = _SHAPE.fullmatch(amount)
        if found is None or (found[3] and not found[2]):
            raise ValueError(f"{name} is an amount of bytes, not {amount!r}; {_EXAMPLE}")
        unit = _UNITS[found[2].lower()]
        if found[3]:
            unit = 1024 ** "kmgt".index(found[2].lower()) * 1024
        size = float(found[1]) * unit
    else:
        size = float(amount)
    if not 1 <= size < 2**62:
        raise ValueError(f"{name} is an amount of bytes, not {amount!r}; {_EXAMPLE}")
    return round(size)


def show_bytes(size: float) -> str:
    """An amount as people write it, with two digits or more.

    Examples
    --------
    >>> show_bytes(4e9), show_bytes(1_234), show_bytes(512e6), show_bytes(25e9), show_bytes(7)
    ('4.0 GB', '1.2 kB', '512 MB', '25 GB', '7 B')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= 0.9995 * unit:
            return f"{size / unit:.1f} {name}" if size < 9.95 * unit else f"{size / unit:,.0f} {name}"
    return f"{size:.0f} B"


def machine_memory() -> int | None:
    """The bytes of memory that this process may fill: those of the machine, or of the group that it is limited to.

    None where the system does not say.
    """
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    return min([found, *(limit for limit in map(_number, _limits()) if limit is not None)])


def free_memory() -> int | None:
    """The bytes that this process may still take: of the machine, of its control group, of its own limit.

    None where the system does not say.
    """
    left = [] if (free := _free_of_machine()) is None else [free]
    for limit in _limits():
        most, used = _number(limit), _number(limit.with_name(_USED[limit.name]))
        if most is not None and used is not None:
            # What files were read from is kept for the next time, and given back when it is needed.
            left.append(most - used + _kept_of_files(limit.parent))
    try:
        space = re.search(r"Max address space +(\d+)", Path("/proc/self/limits").read_text(encoding="ascii"))
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        space = None
    if space is not None:
        left.append(int(space[1]) - mapped)
    return max(0, min(left)) if left else None


def _free_of_machine() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        if sys.platform != "win32":
            there = machine_memory()
            return None if there is None else there // 2  # other systems say what they have, not what is free
        import ctypes

        status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: two halves of 32 bits, then total and available bytes
        return int(status[2]) if ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)) else None
    found = re.search(r"MemAvailable: +(\d+)", text)
    return None if found is None else 1024 * int(found[1])


def _number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _kept_of_files(group: Path) -> int:
    try:
        found = re.search(r"(?m)^(?:total_)?inactive_file (\d+)", (group / "memory.stat").read_text(encoding="ascii"))
    except OSError:
        return 0
    return 0 if found is None else int(found[1])


def _limits() -> list[Path]:
    """The files that hold the limits of the control groups that this process is in, and of those around them."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, kinds, group = line.split(":", 2)
        if kinds in ("", "memory"):
            home, name = ("/sys/fs/cgroup", "memory.max") if not kinds else ("/sys/fs/cgroup/memory", _LIMIT)
            place = Path(group.lstrip("/"))
            found += [Path(home) / part / name for part in (place, *place.parents)]
    return found


def allowed(max_bytes: str | float | None = None) -> int:
    """The bytes that reading may take: as given, or the `SHARE` of those that are free.

    Parameters
    ----------
    max_bytes
        An amount as `read_bytes` takes it; None for what follows from the machine.
    """
    if max_bytes is not None:
        return read_bytes(max_bytes, "max_bytes")
    free = free_memory()
    return int(SHARE * (UNKNOWN_MEMORY if free is None else free))


def allowed_for(path: Path, max_bytes: str | float | None = None) -> int:
    """The bytes that the arrays of a file of this package may take: as given, or `PACKED` times its size.

    A small file may take 16 MB, and none more than is `allowed`.
    """
    if max_bytes is not None:
        return allowed(max_bytes)
    return min(allowed(), max(2**24, PACKED * path.stat().st_size))


def require(what: str, size: float, max_bytes: int, *, pieces: bool = False) -> None:
    """Refuse what takes more memory than is allowed, before any of it is taken.

    Parameters
    ----------
    what
        The file, and what it claims.
    size
        The bytes that it would take.
    max_bytes
        Those that it may take, as `allowed` says.
    pieces
        Whether work in pieces on disk is a way out.

    Examples
    --------
    >>> require("a.npz: arrays of 9,000,000,000 bytes", 9e9, 10**9)
    Traceback (most recent call last):
    pegfan._checks.BadInput: a.npz: arrays of 9,000,000,000 bytes take up to 9.0 GB of memory, and 1.0 GB are allowed; \
if they are yours, allow more with --max-bytes (max_bytes=)
    """
    if not 0 <= size <= max_bytes:
        other = ", or work in pieces on disk with --memory" if pieces else ""
        raise BadInput(
            f"{what} take up to {show_bytes(size)} of memory, and {show_bytes(max_bytes)} are allowed; if they are "
            f"yours, allow more with --max-bytes (max_bytes=){other}"
        )


def check_memory(size: float, what: str) -> None:
    """Refuse what would not fit into the memory that is free: the system would end the process without a word.

    Examples
    --------
    >>> check_memory(1e18, "a matrix of everything")
    Traceback (most recent call last):
    MemoryError: a matrix of everything takes up to 1000000000.0 GB, and ... GB are free
    """
    if check_number(size, "size") < _SMALL:
        return
    free = free_memory()
    if free is not None and size > free:
        raise MemoryError(f"{what} takes up to {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free")
