"""`python -m torture`: run the attacks within so many minutes, print the table, and keep it for docs/reliability.md."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from torture import campaign

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "results" / "torture.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
MARKS = ("<!-- torture: begin -->", "<!-- torture: end -->")


def load() -> dict[str, campaign.Attack]:
    """Every attack of this folder."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in ("__init__", "__main__", "campaign"):
            importlib.import_module(f"torture.{path.stem}")
    return campaign.known()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="for all of them together, shared alike")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="attacks whose name is or holds this; several with |"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first try")
    parser.add_argument("--more", action="store_true", help="go on after tries that were kept without a fault")
    parser.add_argument("--tries", type=int, help="of each attack, in place of its own number")
    parser.add_argument("--place", type=Path, help="a folder to work in, which is kept; else a temporary one")
    parser.add_argument("--list", action="store_true", help="list them and end")
    parser.add_argument("--keep", action="store_true", help=f"keep the rows in {KEPT.name} and write docs/{PAGE.name}")
    asked = parser.parse_args(words)
    wanted = _wanted(asked.only)
    if asked.list:
        for one in wanted:
            print(f"{one.name}: {one.promise} ({one.tries:,} tries)")
        return 0
    if not wanted:
        parser.error(f"no attack is called {asked.only!r}; --list lists them")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the process of the tries is ended as well
    commit = _commit()
    with tempfile.TemporaryDirectory(prefix="torture-") as temporary:
        place, rows = asked.place or Path(temporary), list[campaign.Row]()
        end = time.monotonic() + 60 * asked.minutes
        for number, one in enumerate(wanted):
            share = (end - time.monotonic()) / (len(wanted) - number)
            folder = place / "".join(letter if letter.isalnum() else "-" for letter in one.name)
            earlier = _earlier(one.name, asked.seed) if asked.more else None
            first = asked.first if earlier is None else earlier.tries
            tries = max((one.tries if asked.tries is None else asked.tries) - (first - asked.first), 0)
            row = campaign.run(one, folder, seed=asked.seed, first=first, tries=tries, seconds=share, tell=_show)
            if earlier is not None:
                row = replace(row, tries=earlier.tries + row.tries, seconds=earlier.seconds + row.seconds)
            rows.append(replace(row, commit=commit))
            print(f"\r{row.name}: {row.tries:,} tries, {len(row.faults)} faults, {row.seconds:.0f} s", flush=True)
            for line in _alike(row.faults):
                print(f"  {line}")
            if asked.keep:
                keep(rows)
    print(f"\n{campaign.table(rows)}")
    return int(any(row.faults for row in rows))


def _wanted(text: str) -> list[campaign.Attack]:
    """Attacks that are called so, or whose name holds one of these parts."""
    attacks = load()
    if text in attacks:
        return [attacks[text]]
    return [one for name, one in attacks.items() if any(part in name for part in text.split("|"))]


def _earlier(name: str, seed: int) -> campaign.Row | None:
    """What was kept of an attack, if it was tried with this seed and had no fault."""
    row = campaign.read_rows(KEPT).get(name)
    return row if row is not None and row.seed == seed and not row.faults else None


def keep(rows: list[campaign.Row]) -> None:
    """Put rows in the place of older ones, and all of them on the page."""
    kept = campaign.read_rows(KEPT) | {row.name: row for row in rows}
    campaign.write_rows(KEPT, {name: kept[name] for name in load() if name in kept})
    write_page()


def write_page() -> None:
    """Write the table between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    rows = list(campaign.read_rows(KEPT).values())
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{campaign.table(rows)}\n\n{MARKS[1]}{after}", encoding="utf-8")


def _show(row: campaign.Row) -> None:
    if sys.stdout.isatty():
        print(f"\r{row.name}: {row.tries:,} tries, {len(row.faults)} faults", end="", flush=True)


def _alike(faults: tuple[str, ...]) -> list[str]:
    """The first fault of each kind, and how many more there are."""
    kinds = dict[str, list[str]]()
    for fault in faults:
        kinds.setdefault(re.sub(r"try \d+: |=[^:]*|\d+", "", fault)[:60], []).append(fault)
    return [f"{first} (and {len(more)} more like it)" if more else first for first, *more in kinds.values()]


def _commit() -> str:
    """The commit that is tried, with a mark where its code was changed."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "src", "tests"))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "default")
    sys.exit(main())
