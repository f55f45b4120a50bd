"""Amounts of memory: as people write them, as bytes, and how much of it this machine has."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["machine_memory", "read_bytes", "show_bytes"]

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SHAPE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)(b?)\s*", re.IGNORECASE)
_LIMIT = "memory.limit_in_bytes"
_EXAMPLE = "write it as 4GB, 512MB or 1.5GiB"


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
    for limit in _limits():
        try:
            text = limit.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            found = min(found, int(text))
    return found


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
