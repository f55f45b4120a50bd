"""What an attack is, how its tries are run, and the table of what came of them.

Tries run one after the other in a process of their own, which is limited in time and memory. One that hangs, dies or
takes too much is a fault like any other, and the next try gets a new process. Every try draws from a generator of its
own, so that one can be repeated alone: `python -m torture --only NAME --seed S --first K --tries 1`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

__all__ = ["Attack", "Fault", "Row", "attack", "run", "table"]

GB = 2**30
_REPEATS = 3
"""How many processes in a row may fail before their first try, until the attack is given up."""
_BEGUN = "begun"
"""In place of a fault: the try has begun."""


class Fault(Exception):
    """A promise was broken; the text says which, and how to see it again."""


@dataclass(frozen=True)
class Attack:
    """One kind of test, tried again and again.

    A try that returns is a promise kept; `Fault`, or any other exception, is one broken.
    """

    name: str
    """A few words for `--only` and for the table: ``"kill -9 at random: train"``."""
    promise: str
    """What must be so after every try, for docs/reliability.md."""
    attempt: Callable[[Any, int, random.Random, Path], None]
    """Called with what `prepare` returned, the number of the try, its generator, and an empty folder of its own."""
    tries: int
    """How many there are in a whole campaign."""
    prepare: Callable[[Path], Any] = field(default=lambda place: None)
    """Called once per process with a folder that lasts for the campaign: reuse what an earlier process left in it."""
    cases: Callable[[Any], int] | None = None
    """How many tries there are in all, told from what `prepare` returned, where they can be listed one by one."""
    seconds: float = 60.0
    """How long one try may take."""
    memory: int | None = None
    """How many bytes one try may take beyond what the process holds when it starts."""


@dataclass(frozen=True)
class Row:
    """What came of an attack."""

    name: str
    promise: str
    tries: int
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int = 0
    commit: str = ""


_KNOWN: dict[str, Attack] = {}


def attack(name: str, promise: str, tries: int, **options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a function as the attempt of an attack."""

    def declare(attempt: Callable[..., None]) -> Callable[..., None]:
        if name in _KNOWN:
            raise ValueError(f"there are two attacks {name!r}")
        _KNOWN[name] = Attack(name, promise, attempt, tries, **options)
        return attempt

    return declare


def known() -> dict[str, Attack]:
    """All attacks that were declared, by name."""
    return dict(_KNOWN)


def run(
    one: Attack,
    place: Path,
    *,
    seed: int = 0,
    first: int = 0,
    tries: int | None = None,
    seconds: float = float("inf"),
    tell: Callable[[Row], None] = lambda row: None,
) -> Row:
    """Try an attack until its tries are made or its time is over; tell after each of them how it stands."""
    begun, row = time.monotonic(), Row(one.name, one.promise, 0, seed=seed)
    number, last, failed = first, first + (one.tries if tries is None else tries), 0
    place.mkdir(parents=True, exist_ok=True)
    while failed < _REPEATS:
        before = number
        for made, fault in _in_process(one, place, seed, number, last, begun + seconds):
            if made is None:
                return replace(row, seconds=time.monotonic() - begun)
            faults = row.faults if fault is None else (*row.faults, f"try {made}: {fault}")
            row = replace(row, tries=row.tries + 1, faults=faults, seconds=time.monotonic() - begun)
            tell(row)
            number = made + 1
        failed = failed + 1 if number == before else 0
    return replace(row, faults=(*row.faults, "it could not be prepared"), seconds=time.monotonic() - begun)


def _in_process(
    one: Attack, place: Path, seed: int, first: int, last: int, until: float
) -> Iterator[tuple[int | None, str | None]]:
    """Tries of one process, with what went wrong; None for a try says that no more are wanted."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        ours.close()
        _serve(one, place, seed, first, last, until, theirs)
    theirs.close()
    current: int | None = None
    try:
        while True:
            # Preparing may take as long as several tries, and on a busy machine longer than ten that are short.
            patience = one.seconds * 1.5 + 30 if current is not None else max(one.seconds * 10, 300)
            if not ours.poll(patience):
                if current is not None:
                    yield current, f"did not end within {patience:.0f} s"
                return
            try:
                made, fault = ours.recv()
            except EOFError:
                _, status = os.waitpid(child, 0)
                child = 0
                if current is not None:
                    yield current, f"the process ended: {_ending(status)}"
                return
            if fault == _BEGUN:
                current = made
            else:
                current = None
                yield made, fault
    finally:
        ours.close()
        if child:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


def _serve(one: Attack, place: Path, seed: int, first: int, last: int, until: float, pipe: Connection) -> None:
    """The process of the tries; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        state = one.prepare(place)
        if one.cases is not None:
            last = min(last, one.cases(state))
        for number in range(first, last):
            if time.monotonic() >= until:
                break
            pipe.send((number, _BEGUN))
            pipe.send((number, _try(one, state, place, seed, number)))
        pipe.send((None, None))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _try(one: Attack, state: Any, place: Path, seed: int, number: int) -> str | None:
    folder = place / f"try{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    fault, before = None, _held("VmRSS")
    try:
        with _within(one.seconds, one.memory):
            one.attempt(state, number, random.Random(f"{seed}/{one.name}/{number}"), folder)
    except Fault as broken:
        fault = str(broken)
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    taken = _held("VmHWM") - before
    if fault is None and one.memory is not None and taken > one.memory:
        fault = f"took {taken / GB:.2f} GB"
    if fault is None:
        shutil.rmtree(folder, ignore_errors=True)  # what went wrong is kept to look at
        return None
    return fault.replace(f"{place}{os.sep}", "")  # where it was tried says nothing to others


class _within:
    """Limits of one try: an alarm for its time, and the address space for its memory."""

    def __init__(self, seconds: float, memory: int | None) -> None:
        self.seconds, self.memory = seconds, memory

    def __enter__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        if self.memory is not None:
            # Twice: what is mapped is not yet taken, and what is taken is counted afterwards.
            resource.setrlimit(resource.RLIMIT_AS, (_held("VmSize") + 2 * self.memory, resource.RLIM_INFINITY))
        signal.signal(signal.SIGALRM, self._over)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def _over(self, *_: Any) -> None:
        raise Fault(f"did not end within {self.seconds:.0f} s")

    def __exit__(self, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _held(what: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


# ------------------------------------------------------------------ the table


def read_rows(path: Path) -> dict[str, Row]:
    """The rows that were kept, by name."""
    if not path.exists():
        return {}
    found = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["name"]: Row(**{**row, "faults": tuple(row["faults"])}) for row in found}


def write_rows(path: Path, rows: dict[str, Row]) -> None:
    """Keep rows; the file is there whole or as it was."""
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows.values()), encoding="utf-8")
    part.replace(path)


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown."""
    lines = ["| test | tries | faults | seconds | seed | commit |", "|---|--:|--:|--:|--:|---|"]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.tries:,} | {len(row.faults)} | {row.seconds:,.0f} | {row.seed} | {row.commit} |"
        )
    return "\n".join(lines)
