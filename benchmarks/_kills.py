"""Commands on graphs beyond memory that are killed on the way, and what that costs: `kills` and `workers` of large.py.

A command is run once to its end, for its results and the seconds of its pieces. Then it is run in another working
folder and killed with SIGKILL when so much of the work is done, at a random moment of the pieces that are at work,
again and again; and then to its end. Work that was repeated is what pieces had taken that were killed before they
were done.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL = 0.002


@dataclass(frozen=True)
class Outcome:
    """What kills have cost."""

    kills: int
    """How many hit the command while it ran."""
    same: bool
    """Whether results are the same bits."""
    repeated: float
    """Seconds of pieces that were killed, over the seconds of all pieces of a run without kills."""
    pieces: int
    """How many pieces a run has."""
    stages: tuple[str, ...]
    """The stages that were hit."""
    seconds: float
    """Of the run without kills."""


def log_of(work: Path) -> list[dict[str, Any]]:
    """The lines of the log of a working folder, one that is being written left out."""
    try:
        lines = (work / "log.jsonl").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def done_seconds(work: Path) -> float:
    """Seconds of all pieces that were finished."""
    return sum(line["ended"] - line["begun"] for line in log_of(work) if "ended" in line)


def at_work(log: Sequence[dict[str, Any]]) -> dict[tuple[str, int, float], dict[str, Any]]:
    """Pieces that were begun and not ended."""
    found = {}
    for line in log:
        key = (line["stage"], line["block"], line["begun"])
        if "ended" in line:
            found.pop(key, None)
        else:
            found[key] = line
    return found


def kind(line: dict[str, Any]) -> str:
    """Which stage a line is about; those of several rounds or levels have one name."""
    return str(line["stage"]).rpartition("-")[0]


def digests(path: Path) -> dict[str, str]:
    """A hash of every file of the output; times in them are not results."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    found = {}
    for file in files:
        content = file.read_bytes()
        if file.suffix in (".json", ".toml", ".html"):  # they tell how long it took, and where
            continue
        found[str(file.relative_to(path.parent))[len(path.name) :]] = hashlib.sha256(content).hexdigest()
    return found


def spelled(command: Sequence[str], out: Path, work: Path) -> list[str]:
    return [word.replace("{out}", str(out)).replace("{work}", str(work)) for word in map(str, command)]


def run_whole(command: Sequence[str], out: Path, work: Path, env: dict[str, str] | None = None) -> float:
    """Run a command to its end; its seconds."""
    begun = time.perf_counter()
    done = subprocess.run(spelled(command, out, work), env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the command ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - begun


def kill_again_and_again(
    command: Sequence[str], place: Path, suffix: str, kills: int, seed: int = 0, env: dict[str, str] | None = None
) -> Outcome:
    """Kill a command so many times; `{out}` and `{work}` in it stand for paths, and suffix is that of the output."""
    draw = random.Random(seed)
    place.mkdir(parents=True, exist_ok=True)
    whole, killed = (place / f"whole{suffix}", place / "whole.work"), (place / f"killed{suffix}", place / "killed.work")
    seconds = run_whole(command, *whole, env=env)
    log = log_of(whole[1])
    total, pieces = done_seconds(whole[1]), sum("ended" in line for line in log)
    hit, lost, stages, counted = 0, 0.0, list[str](), set[tuple[str, int, float]]()
    for turn in range(kills):
        wanted = total * (turn + draw.random()) / kills  # spread over the run; resumed ones begin where others ended
        process = subprocess.Popen(
            spelled(command, *killed), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and done_seconds(killed[1]) < wanted:
            time.sleep(_POLL)
        time.sleep(draw.uniform(0, 2 * total / max(pieces, 1)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = time.time()
        if process.returncode == -signal.SIGKILL:
            hit += 1
            for key, line in at_work(log_of(killed[1])).items():
                if key not in counted:
                    counted.add(key)
                    lost += now - line["begun"]
                    stages.append(kind(line))
        else:
            break
    run_whole(command, *killed, env=env)
    same = digests(whole[0]) == digests(killed[0])
    return Outcome(hit, same, lost / max(total, 1e-9), pieces, tuple(stages), seconds)


def kill_workers(
    command: Sequence[str], place: Path, suffix: str, times: int, seed: int = 0, env: dict[str, str] | None = None
) -> Outcome:
    """Kill a worker of the command's own cluster once in each kind of its stages, in so many runs."""
    draw = random.Random(seed)
    place.mkdir(parents=True, exist_ok=True)
    whole = (place / f"whole{suffix}", place / "whole.work")
    seconds = run_whole(command, *whole, env=env)
    total, pieces = done_seconds(whole[1]), sum("ended" in line for line in log_of(whole[1]))
    hit, lost, stages, same = 0, 0.0, list[str](), True
    for turn in range(times):
        out, work = place / f"workers{turn}{suffix}", place / f"workers{turn}.work"
        process = subprocess.Popen(
            spelled(command, out, work), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        done = set[str]()
        while process.poll() is None:
            running = [line for line in at_work(log_of(work)).values() if line["process"] != process.pid]
            new = [line for line in running if kind(line) not in done]
            if new:
                line = draw.choice(new)
                time.sleep(draw.uniform(0, 0.5 * total / max(pieces, 1)))
                key = (line["stage"], line["block"], line["begun"])
                if key in at_work(log_of(work)):  # else it has ended, and the process is at another piece
                    done.add(kind(line))
                    try:
                        os.kill(line["process"], signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                    hit, lost = hit + 1, lost + time.time() - line["begun"]
                    stages.append(kind(line))
            time.sleep(_POLL)
        _, err = process.communicate()
        if process.returncode:
            raise RuntimeError(f"the command ended with {process.returncode}: {err[-2000:]}")
        same = same and digests(out) == digests(whole[0])
    return Outcome(hit, same, lost / max(total * times, 1e-9), pieces, tuple(stages), seconds)


def rows_of(what: str, outcome: Outcome, limit: float = 0.1) -> list[tuple[str, str, str, str]]:
    """Rows for `measure.show`."""
    from measure import verdict

    each = outcome.repeated / max(outcome.kills, 1)
    share = f"{each:.1%}; {outcome.repeated:.1%} of {outcome.pieces} pieces by all of them together"
    names = ", ".join(sorted(set(outcome.stages)))
    return [
        (f"{what}: {outcome.kills} hits", "same bits" if outcome.same else "OTHER BITS", "same", verdict(outcome.same)),
        (f"{what}: work repeated per hit", share, f"{limit:.0%}", verdict(each <= limit)),
        (f"{what}: stages hit", names or "none", "", ""),
    ]
