"""How benchmarks measure: CPU seconds on one pinned core, alternating between rivals, medians and their ratios."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median


def pin(core: int | None = None) -> None:
    """Keep this process on one core (the last one), so that rivals meet the same caches."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1] if core is None else core})


def seconds(rivals: dict[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Median CPU seconds of every rival; they take turns, and the first, cold round does not count."""
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(repeats + 1):
        for name, run in rivals.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: median(taken[1:]) for name, taken in times.items()}


def peak_memory(code: str) -> float:
    """The peak memory in GB of a fresh process that runs some code."""
    # VmHWM and not getrusage: the latter starts from what the parent held when it forked.
    report = "\nprint(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    out = subprocess.run([sys.executable, "-c", code + report], check=True, capture_output=True, text=True).stdout
    return float(out.splitlines()[-1]) * 1024 / 1e9


def show(rows: list[tuple[str, str, str, str]]) -> None:
    """A table of (what, measured, bar, verdict)."""
    rows = [("what", "measured", "bar", ""), *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def verdict(good: bool) -> str:
    """A word for a bar that is met or not."""
    return "met" if good else "MISSED"
