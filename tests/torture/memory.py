"""Trainings in address spaces of some sizes: a folder that can be used, or a sentence about memory and no folder."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from torture.campaign import GB, Fault, attack

SIZES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Gigabytes of address space."""
WHOLE = {"model", "predictions.csv", "ranked.csv", "result.json", "settings.toml"}
_SECONDS = 240


def write_graphs(place: Path) -> list[Path]:
    """A graph of texts, whose many columns make reasons large, and one of numbers with more nodes."""
    draw, paths = np.random.default_rng(0), []
    for name, n, classes in (("words", 3000, 19), ("numbers", 20_000, 2)):
        labels = draw.integers(0, classes, n)
        ends = draw.integers(0, n, (2, 3 * n))
        if name == "words":
            rows, width = np.repeat(np.arange(n), 40), 5000
            columns = (draw.integers(0, width, len(rows)) + labels[rows] * (draw.random(len(rows)) < 0.2)) % width
            _, first = np.unique(rows * width + columns, return_index=True)
            rows, columns = rows[first], columns[first]
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
            features = {"x_data": np.ones(len(rows), np.float32), "x_indices": columns, "x_indptr": starts}
            features["x_shape"] = np.array([n, width])
        else:
            features = {"x": (draw.normal(size=(n, 300)) + labels[:, None] * (np.arange(300) < 5)).astype(np.float32)}
        paths.append(place / f"{name}.npz")
        np.savez(paths[-1], edge_index=ends, y=np.where(draw.random(n) < 0.5, labels, -1), **features)
    return paths


def run_within(words: Sequence[str], folder: Path, limit: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of pegfan in a process of its own, with so many gigabytes of address space."""

    def restrict() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (int(limit * GB),) * 2)

    line = [sys.executable, "-m", "pegfan", *words]
    env = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        line, cwd=folder, env=env, preexec_fn=restrict, capture_output=True, text=True, check=False, timeout=_SECONDS
    )


@attack(
    "train in little memory",
    "exit 0 and a folder that can be used, which report completes; or exit 1, a sentence about memory, and no folder",
    24,
    prepare=write_graphs,
    seconds=2 * _SECONDS,
)
def train_in_little_memory(paths: list[Path], number: int, draw: random.Random, folder: Path) -> None:
    limit, path = SIZES[number % len(SIZES)], paths[number // len(SIZES) % len(paths)]
    words = ["train", str(path), "-o", "out", "--budget", str(draw.choice((4, 10))), "--seed", str(number), "--reasons"]
    done = run_within(words, folder, limit)
    about = f"{path.stem} in {limit} GB: exit {done.returncode}: {done.stderr.strip()[-500:]}"
    out, held = folder / "out", {path.name for path in folder.iterdir()}
    if "Traceback" in done.stderr or "bug in pegfan" in done.stderr:
        raise Fault(f"a traceback: {about}")
    if done.returncode == 1:
        if held or "memory" not in done.stderr.strip().splitlines()[-1]:
            raise Fault(f"no sentence about memory, or {sorted(held)} left behind: {about}")
        return
    if done.returncode or held != {"out"} or not {path.name for path in out.iterdir()} >= WHOLE:
        raise Fault(f"no whole folder: {about}")
    for more in (["predict", "out", str(path), "-o", "p.csv"], ["report", "out"]):
        used = run_within(more, folder)
        if used.returncode:
            raise Fault(f"{more[0]} fails with {used.stderr[-300:]} after {about}")
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    lacks = not result["reasons"] or result["importances"] is None or not (out / "report.html").exists()
    if lacks:
        raise Fault(f"report does not add what is missing: {about}")
