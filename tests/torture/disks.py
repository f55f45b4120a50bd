"""Disks that are full or break: the command says so in a sentence, nothing is half, and what was worked out is kept."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from torture.campaign import attack
from torture.commands import (
    CUT,
    FAIL_ON,
    FAIL_ONCE,
    MAKE,
    OPEN,
    RENAME,
    SHORT,
    SYNC,
    WRITE,
    Command,
    Done,
    State,
    Target,
    graph_files,
    leftovers,
    output_facts,
    prepare,
    require,
)
from torture.kills import in_pieces, searched, trained

_FAILING = OPEN | WRITE | SYNC | RENAME | MAKE | CUT
"""What can fail on a disk; what only removes, does not."""
_FAULTS = (
    (FAIL_ON, errno.ENOSPC, "full"),
    (FAIL_ONCE, errno.EIO, "broken once"),
    (FAIL_ON, errno.EIO, "broken"),
    (SHORT, 0, "short write"),
)
_PROMISE = (
    "exit 1 and a sentence with the file and the fix, or 0 and a warning where only optional output fails; old output "
    "or new, whole; the same command then works"
)
_FIX = re.compile(r"instead|[Ff]ree some|make room|another|run (it|the same command) again|[Cc]hoose|in order")


def check_sentence(done: Done, disk: Path) -> None:
    """Raise a fault unless a command that failed says in one sentence which file, and what to do."""
    said = [line for line in done.err.splitlines() if line.strip()]
    require(done.code == 1, f"ended with {done.text}")
    require("Traceback" not in done.err, f"a traceback: {done.text}")
    require("disk" in said[-1] and _FIX.search(said[-1]) is not None, f"names no file or no fix: {said[-1]}")


def break_disk(every: bool) -> Callable[[State, int, random.Random, Path], None]:
    """Let a call fail: in one way after the other the one that is the number of the try, or a drawn one."""

    def attempt(state: State, number: int, draw: random.Random, folder: Path) -> None:
        target = state.targets[number % len(state.targets)]
        number //= len(state.targets)
        action, error, words = _FAULTS[number % len(_FAULTS)]
        number //= len(_FAULTS)
        at = number if every and number < target.calls else draw.randrange(target.calls)
        disk = target.command.begin(folder)
        old = target.command.facts(disk)
        state.commands.arm(action, at, disk, mask=_FAILING, error=error)
        done = state.commands.run(target.command.words, folder / target.command.here)
        _, hit = state.commands.disarm()
        try:
            require(action != SHORT or done.code == 0, f"a short write is no error: {done.text}")
            check_after(state, target, folder, disk, old, done)
        except Exception as fault:
            raise type(fault)(f"{target.command.words[0]}, {words} at {at}, {hit}: {fault}") from fault

    return attempt


def check_after(state: State, target: Target, folder: Path, disk: Path, old: dict[str, object], done: Done) -> None:
    """Raise a fault unless all is well after a command on a bad disk, and after another on a good one."""
    command = target.command
    if done.code == 0:
        found = command.facts(disk)
        if command.complete and found != target.expected:
            left = [line for line in done.err.splitlines() if "Left out" in line]
            require(bool(left), f"something is missing, and nothing says so: {done.text}")
            failures = [line.split(". ", 1)[1].split(" pegfan report ")[0] for line in left]
            require(all(re.search(r"\w+\.(json|html|csv)", line) for line in failures), f"no file: {left}")
            added = state.commands.run(command.complete, folder / command.here)
            require(added.code == 0, f"{' '.join(command.complete)}: {added.text}")
        command.check_results(disk, target.expected, "ended with 0 and results")
    else:
        check_sentence(done, disk)
        command.check_between(disk, old, target.expected)
        elsewhere = re.search(r"written to (\S+) instead", done.err)
        if elsewhere and command.whole:
            place = folder / command.here / elsewhere[1]
            found = output_facts(place) if place.is_dir() else {place.name: place.read_bytes()}
            wanted = {name: value for name, value in target.expected.items() if name != "settings.toml"}
            require(
                {name: found.get(name) for name in wanted} == wanted, "what was written elsewhere is not the result"
            )
            shutil.rmtree(place.parent)
    if command.facts(disk) == target.expected:
        return  # it failed after all was done
    again = state.commands.run(command.words, folder / command.here)
    require(again.code == 0, f"again: {again.text}")
    command.check_results(disk, target.expected, "the second run has results")
    left = leftovers(disk)
    require(not left, f"left after the second run: {left}")
    command.check_foreign(disk)


def quick(place: Path, old: Path) -> Sequence[Command]:
    """Commands that write a file."""
    files = graph_files(place)

    def facts(disk: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(disk.glob("[!.]*"))}

    return [
        Command(("predict", str(old), *files, "-o", "../disk/predictions.csv", "--force"), facts, whole=True),
        Command(("tree", *files, "-o", "../disk/tree.npz", "--force"), facts, whole=True),
        Command(
            ("transform", *files, "--label", "kind", "--signal", "a", "-o", "../disk/parts.csv", "--force"),
            facts,
            whole=True,
        ),
    ]


attack(
    "a full or broken disk: train --force",
    f"{_PROMISE}; what was trained is written elsewhere",
    480,
    prepare=prepare(lambda place, old: [trained(place, old, force=True)], _FAILING),
)(break_disk(every=True))
attack(
    "a full or broken disk: train --force into the current folder",
    f"{_PROMISE}; what was trained is written elsewhere",
    160,
    prepare=prepare(lambda place, old: [trained(place, old, force=True, inside=True)], _FAILING),
)(break_disk(every=False))
attack(
    "a full or broken disk: predict, tree, transform",
    f"{_PROMISE}; what was worked out is written elsewhere",
    120,
    prepare=prepare(quick, _FAILING),
)(break_disk(every=True))
attack(
    "a full or broken disk: search",
    "exit 1 and a sentence with the file and the fix; the same command then ends with the bits of an undisturbed run",
    80,
    prepare=prepare(lambda place, old: [searched(place, "optuna", 1), searched(place, "optuna", 2)], _FAILING),
    seconds=120,
)(break_disk(every=False))
attack(
    "a full or broken disk: stages of graphs beyond memory",
    "exit 1 and a sentence with the file and the fix; the same command then ends with the bits of an undisturbed run",
    120,
    prepare=prepare(in_pieces, _FAILING),
)(break_disk(every=False))


# ---------------------------------------------------------- a disk of a few pages

_PAGE = 4096


def mounted(place: Path, old: Path) -> Sequence[Command]:
    """`train --force` on a small disk: to a folder on it, and to the disk itself, as to the volume of a container."""
    on_it = trained(place, old, force=True)
    itself = Command(
        ("train", *on_it.words[1:3], "-o", "../disk", "--force"),
        output_facts,
        lambda disk: shutil.copytree(old, disk, dirs_exist_ok=True),
        foreign=False,
        complete=("report", "../disk"),
    )
    return [on_it, itself]


def fill_disk(state: State, number: int, draw: random.Random, folder: Path) -> None:
    """Train to a disk that has room for so many pages more than what is on it."""
    target = state.targets[number % len(state.targets)]
    command, pages = target.command, number // len(state.targets)
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], capture_output=True, check=False).returncode:
        if number == 0:
            print("no disks of a few pages: mounting is not permitted here", flush=True)
        return
    try:
        command.begin(folder)
        old, state_of = command.facts(disk), os.statvfs(disk)
        used = state_of.f_blocks - state_of.f_bfree
        _resize(disk, used + pages)
        done = state.commands.run(command.words, folder / command.here)
        _resize(disk, 10_000)
        check_after(state, target, folder, disk, old, done)
    except Exception as fault:
        raise type(fault)(f"{command.words}, {pages} pages: {fault}") from fault
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def _resize(disk: Path, pages: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={pages * _PAGE}", disk], check=True)


attack(
    "a disk that fills up: train --force to a folder on it, and to its root",
    f"{_PROMISE}; what was trained is written elsewhere",
    150,
    prepare=prepare(mounted),
)(fill_disk)
