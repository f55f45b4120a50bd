"""What the project's own environments are made of: pinned, by hash, and looked up among known holes.

    python tools/supply.py lock      writes constraints.txt from this environment, and requirements.lock beside it
    python tools/supply.py audit     asks the index which of the pinned versions have known holes

The lock holds the hashes of every file of a version, for all systems, as pip's own index tells them. torch is not in
it: its CPU build comes from elsewhere (see the Makefile), and pip accepts no hash of two builds under one name.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

HOME = Path(__file__).resolve().parents[1]
CONSTRAINTS, LOCK = HOME / "constraints.txt", HOME / "requirements.lock"
LEFT_OUT = ("torch",)
_SECONDS = 60
_PYTHON = re.compile("py3|cp31[1-9]")
"""The interpreters that the package is for."""


def read_pins(text: str) -> dict[str, str]:
    """The versions that a file of constraints or a lock names."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", text, flags=re.MULTILINE))


def lock() -> int:
    """Write both files."""
    words = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    frozen = subprocess.run(words, capture_output=True, text=True, check=True).stdout.replace("+cpu", "")
    pins = read_pins(frozen)
    if len(pins) != len(frozen.splitlines()):
        wrong = [line for line in frozen.splitlines() if not read_pins(line)]
        return _fail(f"{wrong[0]} is no release of an index; install it from one, and lock again.")
    _, place = _index()
    locked = {name: version for name, version in pins.items() if name not in LEFT_OUT}
    try:
        found = _all(lambda name: hashes(_get(f"{place.rstrip('/')}/{_normal(name)}/"), name, locked[name]), locked)
    except OSError as error:
        return _fail(f"The index of packages is out of reach ({error}), so nothing was written.")
    missing = [name for name, own in found.items() if not own]
    if missing:
        return _fail(f"The index has no {missing[0]} {locked[missing[0]]}: install a release that it has.")
    lines = [
        " \\\n".join([f"{name}=={locked[name]}", *(f"    --hash=sha256:{one}" for one in found[name])])
        for name in locked
    ]
    head = "# Written by tools/supply.py (make lock): the files of constraints.txt by their hashes, without torch.\n"
    CONSTRAINTS.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), encoding="utf-8")
    LOCK.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(pins)} versions, {sum(map(len, found.values()))} files.")
    return 0


def hashes(page: str, name: str, version: str) -> list[str]:
    """The hashes of a version's files, on the page that an index has of a package."""
    links = _Links()
    links.feed(page)
    found = set()
    for link in links.found:
        parts = urlsplit(link)
        file, digest = unquote(parts.path).rsplit("/", 1)[-1], parts.fragment.removeprefix("sha256=")
        if _of_version(file, name, version) and re.fullmatch("[0-9a-f]{64}", digest):
            found.add(digest)
    return sorted(found)


def _of_version(file: str, name: str, version: str) -> bool:
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    try:
        own: tuple[Any, ...] = (
            parse_sdist_filename(file) if file.endswith((".tar.gz", ".zip")) else parse_wheel_filename(file)
        )
    except (InvalidSdistFilename, InvalidVersion, InvalidWheelFilename):
        return False
    if own[:2] != (_normal(name), Version(version)):
        return False
    tags = own[3] if len(own) > 2 else ()
    return not tags or any(tag.abi == "abi3" or _PYTHON.fullmatch(tag.interpreter) for tag in tags)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep where links lead; withdrawn releases stay, as pip takes those that are pinned."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def audit() -> int:
    """Look every pinned version up; 1 if one has a known hole, or if nothing could be asked."""
    pins = read_pins(CONSTRAINTS.read_text(encoding="utf-8"))
    home, _ = _index()
    try:
        told = _all(lambda name: json.loads(_get(f"{home}pypi/{_normal(name)}/{pins[name]}/json")), pins)
    except (OSError, ValueError) as error:
        return _fail(f"No database of known holes is in reach ({error}): nothing was looked up. Ask again elsewhere.")
    holes = {name: holes_of(about) for name, about in told.items()}
    for name, lines in holes.items():
        for line in lines:
            print(f"{name} {pins[name]}: {line}")
    count = sum(map(len, holes.values()))
    print(f"{len(pins)} versions, {count or 'no'} known holes.")
    return int(count > 0)


def holes_of(about: dict[str, Any]) -> list[str]:
    """What an index says of a release's holes: their names, in which versions they are mended, and what they are."""
    lines = []
    for one in about.get("vulnerabilities", ()):
        if not one.get("withdrawn"):
            names = ", ".join([one["id"], *one.get("aliases", ())])
            mended = ", ".join(one.get("fixed_in") or ()) or "no version yet"
            lines.append(
                f"{names}; mended in {mended}: {(one.get('summary') or one.get('details') or '')[:200]}".rstrip(": ")
            )
    return lines


def _index() -> tuple[str, str]:
    """The addresses that pip itself uses: of the index's own interface, and of its pages by package."""
    from pip._internal.models.index import PyPI

    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return PyPI.url, told.stdout.strip() or PyPI.simple_url


def _get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=_SECONDS) as page:
        return str(page.read().decode())


def _all(ask: Callable[[str], Any], names: dict[str, str]) -> dict[str, Any]:
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(names, pool.map(ask, names), strict=True))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    asked = {"lock": lock, "audit": audit}.get(" ".join(sys.argv[1:]))
    sys.exit(__doc__ if asked is None else asked())
