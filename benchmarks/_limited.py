"""A command with its memory limited by the system: in a control group of Linux of its own, version 1 or 2.

    python benchmarks/_limited.py 2GB pegfan tree nodes.parquet edges.parquet --memory 2GB -o tree.npz

Where no group can be made, the address space is limited instead (RLIMIT_AS), which counts more than is resident, and
the report says so. A group counts the page cache of the files that its processes read and write too, and gives it back
when memory is short; `counted` is that peak, and `resident` the peak of what processes hold: their own memory and the
files they have mapped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HOMES = {1: Path("/sys/fs/cgroup/memory"), 2: Path("/sys/fs/cgroup")}
LIMITS = {1: "memory.limit_in_bytes", 2: "memory.max"}
PEAKS = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
RESIDENT = {1: ("total_rss", "total_mapped_file"), 2: ("anon", "file_mapped")}
EVENTS = {1: "memory.oom_control", 2: "memory.events"}
INTERVAL = 0.05
"""Seconds between two looks at what is held."""
GROUP = 'echo 0 > "$1" || exit 125; shift; exec "$@"'
ADDRESSES = 'ulimit -v "$1" || exit 125; shift; exec "$@"'


@dataclass(frozen=True)
class Limited:
    """What a command took; sizes in bytes, None where they are not known."""

    code: int
    """As it ended; negative for a signal."""
    seconds: float
    counted: int | None
    """The peak of the group: with page cache, so it reaches the limit where files are larger."""
    resident: int
    """The peak of all processes together: their memory and mapped files."""
    largest: int
    """The largest peak of a single process (VmHWM)."""
    killed: int | None
    """How many processes the system ended for lack of memory."""
    how: str
    """How memory was limited."""
    out: str
    err: str

    def __str__(self) -> str:
        counted = "" if self.counted is None else f", {self.counted / 1e9:.2f} GB with page cache"
        ended = f", {self.killed} ended for lack of memory" if self.killed else ""
        return (
            f"exit {self.code} after {self.seconds:.1f} s; at most {self.resident / 1e9:.2f} GB resident, "
            f"{self.largest / 1e9:.2f} GB of one process{counted}{ended}; limited by {self.how}"
        )


def run_limited(command: Sequence[str], limit: int, env: Mapping[str, str] | None = None) -> Limited:
    """Run a command that may hold so many bytes; swap does not count as memory."""
    group = _make_group(limit)
    if group is None:
        start = ["sh", "-c", ADDRESSES, "sh", str(limit // 1024)]
        how = "RLIMIT_AS: no control group could be made, so addresses count that hold no memory"
    else:
        place, version = group
        start = ["sh", "-c", GROUP, "sh", str(place / "cgroup.procs")]
        how = f"a control group of version {version}"
    began = time.perf_counter()
    process = subprocess.Popen(
        [*start, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    watch = Watch(process.pid, group)
    watch.start()
    try:
        out, err = process.communicate()
    finally:
        if process.poll() is None:
            process.kill()
        watch.stop()
        counted, killed = _end_group(group)
    seconds = time.perf_counter() - began
    return Limited(process.returncode, seconds, counted, watch.resident, watch.largest, killed, how, out, err)


class Watch(threading.Thread):
    """Looks at what a process, its children and its group hold."""

    def __init__(self, root: int, group: tuple[Path, int] | None) -> None:
        super().__init__(daemon=True)
        self.root, self.group, self.resident, self.largest = root, group, 0, 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(INTERVAL):
            held = 0
            for process in tree_of(self.root):
                status = facts(Path(f"/proc/{process}/status"))
                held += 1024 * status.get("VmRSS", 0)
                self.largest = max(self.largest, 1024 * status.get("VmHWM", 0))
            if self.group is not None:
                place, version = self.group
                stat = facts(place / "memory.stat")
                held = sum(stat.get(name, 0) for name in RESIDENT[version]) or held  # shared pages once
            self.resident = max(self.resident, held)

    def stop(self) -> None:
        self._over.set()
        self.join()


def tree_of(root: int) -> list[int]:
    """A process and all below it."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        with suppress(OSError, ValueError):
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return found


def facts(path: Path) -> dict[str, int]:
    """Numbers by name of a file of the system; empty where it is gone."""
    found = {}
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[1].isdecimal():
            found[words[0]] = int(words[1])
    return found


def _make_group(limit: int) -> tuple[Path, int] | None:
    for version, home in HOMES.items():
        place = home / f"pegfan-{os.getpid()}-{time.monotonic_ns()}"
        if not (home / ("tasks" if version == 1 else "cgroup.controllers")).exists():
            continue
        try:
            place.mkdir()
            (place / LIMITS[version]).write_text(str(limit))
            if version == 2:
                (place / "memory.swap.max").write_text("0")
            else:
                with suppress(OSError):  # where swap is not counted
                    (place / "memory.memsw.limit_in_bytes").write_text(str(limit))
            return place, version
        except OSError:
            with suppress(OSError):
                place.rmdir()
    return None


def _end_group(group: tuple[Path, int] | None) -> tuple[int | None, int | None]:
    if group is None:
        return None, None
    place, version = group
    with suppress(OSError):
        (place / "memory.force_empty").write_text("0")
    peak = None
    with suppress(OSError, ValueError):
        peak = int((place / PEAKS[version]).read_text())
    killed = facts(place / EVENTS[version]).get("oom_kill")
    for _ in range(50):  # processes that were ended a moment ago may still be counted
        try:
            place.rmdir()
            break
        except OSError:
            time.sleep(0.1)
    return peak, killed


if __name__ == "__main__":
    from pegfan._limits import read_bytes

    done = run_limited(sys.argv[2:], read_bytes(sys.argv[1]))
    sys.stdout.write(done.out)
    sys.stderr.write(done.err)
    print(done)
    sys.exit(done.code if done.code >= 0 else 128 - done.code)
