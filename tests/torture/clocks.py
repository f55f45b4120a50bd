"""A clock that jumps: to last year, to next year, and back, while a command runs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

from torture.campaign import Fault, attack
from torture.processes import COMMAND, end_all, numbers, start, tables

_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

/* Real time, moved by up to two years either way, and elsewhere after every few looks at it. */
static unsigned state;
static int looks;
static long offset(void) {
    if (!state) { const char *seed = getenv("PEGFAN_CLOCK"); state = seed ? (unsigned)atoi(seed) + 1 : 1; }
    if (looks++ % 7 == 0) state = state * 1103515245u + 12345u;
    return (long)(state >> 4) % 126230400L - 63115200L;
}
typedef int (*real_clock)(clockid_t, struct timespec *);
int clock_gettime(clockid_t which, struct timespec *found) {
    static real_clock real;
    if (!real) real = (real_clock)dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(which, found);
    if (!code && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) found->tv_sec += offset();
    return code;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *found, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def _prepare(place: Path) -> dict[str, Any]:
    """The shim, and what the commands give by a clock that is right."""
    shim, files, found = place / "clock.so", tables(place), {}
    if not shim.exists():
        (place / "clock.c").write_text(_SHIM, encoding="ascii")
        words = ["cc", "-shared", "-fPIC", "-O1", "-o", place / "part.so", place / "clock.c", "-ldl"]
        subprocess.run(words, check=True)
        (place / "part.so").rename(shim)
    search = ["search", *files, "--splits", "1", "--method", "none", "--epochs", "30", "--budget", "3600"]
    tree = ["tree", *files[:2], "--memory", "1GB", "--method", "matching"]
    train = ["train", *files, "--budget", "4", "--workers", "1"]
    for name, words in {"search": search, "tree": tree, "train": train}.items():
        folder = place / name
        if name != "train" and not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([*words, *_output(name, folder)], {})
            (folder / "done").touch()
        found[name] = words, folder
    return {"shim": str(shim), "commands": found}


def _output(name: str, folder: Path) -> list[Any]:
    folder.mkdir()
    if name == "tree":
        return ["--work", folder / "work", "-o", folder / "tree.npz"]
    return ["-o", folder / "out"]


def _run(words: list[Any], environment: dict[str, str]) -> None:
    mark = f"{os.getpid()}-clock"
    process = start([*COMMAND, *words], mark, **environment)
    try:
        text = process.communicate(timeout=150)[0]
    except subprocess.TimeoutExpired:
        raise Fault("it did not end within 150 s") from None
    finally:
        end_all(mark)
    if process.returncode != 0:
        raise Fault(f"exit {process.returncode}: {text[-500:]}")


@attack(
    "a clock that jumps",
    "whatever the time of day does, searches and trees have the same bits, and trainings keep to their budget",
    15,
    prepare=_prepare,
    seconds=170,
)
def jump(state: dict[str, Any], number: int, draw: random.Random, folder: Path) -> None:
    """The clock jumps by up to two years with every few looks at it."""
    name = ("search", "tree", "train")[number % 3]
    words, alone = state["commands"][name]
    own = folder / "own"
    _run([*words, *_output(name, own)], {"LD_PRELOAD": state["shim"], "PEGFAN_CLOCK": str(draw.randrange(2**31))})
    if name == "search" and numbers(own / "out") != numbers(alone / "out"):
        raise Fault("the runs are others than by a clock that is right")
    if name == "tree":
        from pegfan import Hierarchy

        if Hierarchy.load(own / "tree.npz").digest != Hierarchy.load(alone / "tree.npz").digest:
            raise Fault("the tree is another than by a clock that is right")
    if name == "train":
        from pegfan.results import Result

        result = Result.from_json((own / "out" / "result.json").read_text(encoding="utf-8"))
        seconds = result.seconds
        if seconds is None or any(not 0 <= value < 100 for value in vars(seconds).values() if value is not None):
            raise Fault(f"it says that it took {seconds}")
