"""Commands of pegfan in forks of a warm process, with faults of the file system on demand (faults.c).

Starting Python and importing everything takes longer than the commands that are attacked, so one process does that once
and is forked for every command. It is loaded with the faults, which sleep until they are armed.
"""

from __future__ import annotations

import csv
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.campaign import Fault

OPEN, WRITE, SYNC, RENAME, REMOVE, MAKE, CUT = (2**i for i in range(7))
CHANGES = OPEN | WRITE | SYNC | RENAME | REMOVE | MAKE | CUT
NAMES = {OPEN: "open", WRITE: "write", SYNC: "sync", RENAME: "rename", REMOVE: "remove", MAKE: "make", CUT: "cut"}
COUNT, KILL_BEFORE, KILL_AFTER, FAIL_ONCE, FAIL_ON, SHORT = range(6)
_HEAD = struct.Struct("6q")
_PLACE, _PLACES = 1024, 4
_SIZE = _HEAD.size + (_PLACES + 1) * _PLACE
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    """Its exit code, or minus the signal that ended it."""
    out: str
    err: str
    seconds: float
    session: int
    """The session that all of its processes belong to."""

    @property
    def text(self) -> str:
        """The end of what it said."""
        return f"code {self.code}: {self.err.strip()[-600:] or self.out.strip()[-300:]}"


class Commands:
    """A warm process and its faults; stopped with the process that made it."""

    def __init__(self, place: Path, warm: Sequence[Sequence[str]] = ()) -> None:
        place.mkdir(exist_ok=True)
        library, steering = place / "faults.so", place / "faults.map"
        if not library.exists():
            source = Path(__file__).with_name("faults.c")
            part = place / f"faults.{os.getpid()}"
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", part, source, "-ldl"], check=True)
            part.rename(library)
        steering.write_bytes(bytes(_SIZE))
        with steering.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self.place = place
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, **_ONE_THREAD, "LD_PRELOAD": str(library), "PEGFAN_FAULTS": str(steering)}
        env |= {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200", "PYTHONWARNINGS": "ignore"}
        env["TMPDIR"] = str(place)  # what is written elsewhere goes with the campaign
        self._server = subprocess.Popen(
            [sys.executable, "-m", "torture.commands", json.dumps([list(map(str, words)) for words in warm])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            cwd=place,
        )
        self._ask()

    def _ask(self, **order: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        if order:
            self._server.stdin.write(json.dumps(order) + "\n")
            self._server.stdin.flush()
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError("the warm process ended")
        return json.loads(line)

    def arm(self, action: int, at: int = 0, *places: Path, mask: int = CHANGES, error: int = 0) -> None:
        """Count the calls below some places from now on, and act at one of them."""
        self._map[_HEAD.size :] = bytes(_SIZE - _HEAD.size)
        for i, path in enumerate(places):
            name = os.fsencode(path.resolve())
            self._map[_HEAD.size + i * _PLACE : _HEAD.size + i * _PLACE + len(name)] = name
        self._map[: _HEAD.size] = _HEAD.pack(1, mask, at, action, error, 0)

    def disarm(self) -> tuple[int, str]:
        """How many calls were counted, and which was hit."""
        count = _HEAD.unpack(self._map[: _HEAD.size])[5]
        self._map[:8] = bytes(8)
        kind, _, path = self._map[_HEAD.size + _PLACES * _PLACE :].split(b"\0")[0].decode().partition(" ")
        return count, f"{NAMES[int(kind)]} {path}" if kind else ""

    def run(self, words: Sequence[str], folder: Path, kill_after: float | None = None) -> Done:
        """Run a command in a folder to its end, or kill it after some seconds."""
        begun, texts = time.monotonic(), [self.place / "out.txt", self.place / "err.txt"]
        pid = self._ask(words=[str(word) for word in words], folder=str(folder), texts=[str(path) for path in texts])
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = self._ask(wait=pid)
        out, err = (path.read_text(encoding="utf-8", errors="replace") for path in texts)
        return Done(code, out, err, time.monotonic() - begun, pid)


def outlived(session: int, seconds: float = 20) -> list[int]:
    """The processes of a session that are still there after a while."""
    until = time.monotonic() + seconds
    while True:
        alive = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == session]
        if not alive or time.monotonic() > until:
            return alive
        time.sleep(0.02)


def _session(pid: int) -> int | None:
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state == "Z" else int(session)


# ------------------------------------------------------------- what is attacked

_TIMED = ("result.json", "report.html", "model.json")
"""Files that tell how long it took."""
_SETTINGS = """format = "pegfan settings"
version = 4
budget = 500.0
seed = {seed}
split = 0
splits = 1
workers = 1
metric = "accuracy"
[source]
where = {files}
[source.options]
label = "kind"
[[recipes]]
method = "matching"
h = 4
kind = "c"
regime = "heterophily"
hops = 2
hidden = 8
epochs = 5
"""
_MINE = ".out.mine.part"
OPTIONAL = ("report.html", "importances", "reasons")
"""What `train` adds to a folder that is whole."""
Facts = dict[str, Any]


def without_optional(facts: Facts) -> Facts:
    """What an output folder appears with."""
    return {name: value for name, value in facts.items() if name not in OPTIONAL}


@dataclass(frozen=True)
class Command:
    """A command that is run in the folder ``here`` of a try, and writes to the folder ``disk`` beside it."""

    words: tuple[str, ...]
    facts: Callable[[Path], Facts]
    """What it has written to a disk so far, by name and without times."""
    setup: Callable[[Path], None] = lambda disk: None
    """What is on the disk before."""
    whole: bool = False
    """Whether its output is there as a whole or not at all, so that a mixture of old and new is a fault."""
    here: str = "here"
    """Where it is run."""
    foreign: bool = True
    """Whether a file of the user is on the disk, too."""
    complete: tuple[str, ...] = ()
    """The words of another command, which adds what is optional."""

    def begin(self, folder: Path) -> Path:
        """Make the folders of a try; where the disk is."""
        (folder / "here").mkdir()
        disk = folder / "disk"
        if not disk.exists():  # a file system may be there
            disk.mkdir()
        self.setup(disk)
        if self.foreign:
            (disk / _MINE).write_text("mine", encoding="utf-8")
        return disk

    def check_between(self, disk: Path, old: Facts, new: Facts) -> None:
        """Raise a fault unless all that is on the disk is old or new."""
        found = self.facts(disk)
        for name, value in found.items():
            require(value in (old.get(name), new.get(name)), f"{name} is neither the old nor the new one")
        versions = [version for version in (old, new) if without_optional(found) == without_optional(version)]
        optional = {name: value for name, value in found.items() if name in OPTIONAL}
        is_whole = found in (old, new) or (self.complete and any(optional.items() <= one.items() for one in versions))
        require(not self.whole or bool(is_whole), f"neither the old output nor the new one: {sorted(found)}")
        self.check_foreign(disk)

    def check_results(self, disk: Path, expected: Facts, words: str) -> None:
        """Raise a fault unless all is on the disk that an undisturbed run gives."""
        found = self.facts(disk)
        other = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        require(not other, f"{words}, other than an undisturbed run: {', '.join(other[:5])}")

    def check_foreign(self, disk: Path) -> None:
        """Raise a fault where the file of the user is gone; its name is like that of a leftover, but not one."""
        mine = disk / _MINE
        require(not self.foreign or mine.read_text(encoding="utf-8") == "mine", "a file of the user was changed")


def graph_files(place: Path, n: int = 120) -> list[str]:
    """A small graph as a user has it: nodes with kinds, and edges."""
    folder = place / "graph"
    if not folder.exists():
        draw, made = random.Random(1), place / f"graph.{os.getpid()}"
        made.mkdir()
        nodes: list[list[Any]] = [["id", "kind", *"abcd"]]
        for i in range(n):
            kind = draw.randrange(3)
            nodes.append([f"v{i}", f"c{kind}" if i % 9 else "", *(round(draw.gauss(kind, 1), 3) for _ in range(4))])
        edges = [["from", "to"], *([f"v{draw.randrange(n)}", f"v{draw.randrange(n)}"] for _ in range(4 * n))]
        for name, rows in (("nodes.csv", nodes), ("edges.csv", edges)):
            with (made / name).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(rows)
        made.rename(folder)
    return [str(folder / "nodes.csv"), str(folder / "edges.csv")]


def settings(place: Path, seed: int) -> str:
    """A file of settings whose training gives the same bits whenever it runs."""
    path = place / f"settings{seed}.toml"
    path.write_text(_SETTINGS.format(seed=seed, files=json.dumps(graph_files(place))), encoding="utf-8")
    return str(path)


def output_facts(folder: Path) -> Facts:
    """The files of an output folder; of those that tell times, only that they are JSON and whole.

    And what the result in it says of columns and nodes, if it does.
    """
    found: Facts = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not is_passing(parts[0]) and parts[0] != _MINE:
            data = path.read_bytes()
            if path.suffix == ".json" and path.name in _TIMED:
                stored = json.loads(data)
                found |= {name: stored[name] for name in OPTIONAL if parts == ("result.json",) and stored.get(name)}
            found["/".join(parts)] = b"" if path.name in _TIMED else data
    return found


def store_facts(folder: Path) -> Facts:
    """The records of a store by key, and its table."""
    found: Facts = {}
    path = folder / "records.jsonl"
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if line.endswith(b"\n"):
            record = json.loads(line)
            require(record["key"] not in found, f"{record['key']} was computed twice")
            timed = ("seconds", "wall", "cpu")
            result = {name: value for name, value in record.get("result", {}).items() if name not in timed}
            found[record["key"]] = {"job": record.get("job"), "result": result}
    table = folder / "search.csv"
    return found | ({"search.csv": table.read_bytes()} if table.exists() else {})


def pages_facts(folder: Path) -> Facts:
    """The pages of a table; its numbers stand in the store, and times beside them in the other files."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("table*.md")) if not is_passing(path.name)}


def work_facts(folder: Path) -> Facts:
    """Raise a fault where a piece of work was done twice; there is nothing else to compare."""
    log = folder / "pegfan.work" / "log.jsonl"
    seen = set[tuple[str, int]]()
    for line in log.read_bytes().splitlines(keepends=True) if log.exists() else ():
        if line.endswith(b"\n") and b'"ended"' in line and line.startswith(b"{"):
            one = json.loads(line)
            piece = (one["stage"], one["block"])
            require(piece not in seen, f"{piece} was computed twice")
            seen.add(piece)
    return {}


def is_passing(name: str) -> bool:
    """Whether a hidden name is that of something that is being written."""
    return re.fullmatch(r"\..*\.[a-z0-9_]{8}\.part", name) is not None


def leftovers(folder: Path) -> list[str]:
    """Hidden things below a folder that writers left."""
    found = (path for path in folder.rglob("*") if is_passing(path.name) or path.name.startswith("tmp-"))
    return [str(path.relative_to(folder)) for path in found]


def require(holds: bool, text: str) -> None:
    """Raise a fault unless something holds."""
    if not holds:
        raise Fault(text)


@dataclass(frozen=True)
class Target:
    """A command with what an undisturbed run of it has shown."""

    command: Command
    calls: int
    seconds: float
    expected: Facts


@dataclass(frozen=True)
class State:
    """What the tries of an attack share."""

    commands: Commands
    targets: tuple[Target, ...]


def prepare(make: Callable[[Path, Path], Sequence[Command]], mask: int = CHANGES) -> Callable[[Path], State]:
    """How an attack is prepared: commands are made, and run undisturbed; the folder for what they need is given."""

    def ready(place: Path) -> State:
        place, old = place.resolve(), place.resolve() / "old"
        listed = make(place, old)
        commands = Commands(place / "warm", [["train", "--config", settings(place, 1), "-o", str(old), "--force"]])
        targets = []
        for number, command in enumerate(listed):
            folder = place / f"undisturbed{number}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            disk = command.begin(folder)
            commands.arm(COUNT, 0, disk, mask=mask)
            done = commands.run(command.words, folder / command.here)
            calls, _ = commands.disarm()
            if done.code:
                raise RuntimeError(f"{command.words}: {done.text}")
            targets.append(Target(command, calls, done.seconds, command.facts(disk)))
            left = leftovers(disk)
            if left:
                raise RuntimeError(f"{command.words}: leaves {left}")
        return State(commands, tuple(targets))

    return ready


# -------------------------------------------------------------- the warm process


def _serve(warm: list[list[str]]) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import pegfan.auto.outcome
    import pegfan.cli.train
    import pegfan.comparison
    import pegfan.experiments.search
    import pegfan.large
    import pegfan.paper.cells
    import pegfan.report
    import pegfan.training.fast  # noqa: F401
    from pegfan.cli import app

    for words in warm:
        kept = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            app(words, standalone_mode=False)
        finally:
            os.dup2(kept, 1)
    answers.write("0\n")
    answers.flush()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                os.setsid()
                for number, path in enumerate(order["texts"], start=1):
                    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.chdir(order["folder"])
                sys.argv = ["pegfan", *order["words"]]
                app(order["words"])
                raise SystemExit(0)
        answers.write(f"{answer}\n")
        answers.flush()


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
