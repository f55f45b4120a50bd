"""Signals on graphs: noise, gaps, few numbers, time; ours beside PyGSP's methods, Tikhonov's and others', in decibels.

    PEGFAN_DATA=folder python benchmarks/signals.py noise|gaps|few|compression|time [--seeds 0 1] [--graphs ...]
    python benchmarks/signals.py tables   # what is in results/signals.jsonl, and in docs/signals.md between its marks

Rivals of `noise` are given the true σ; ours is called with the signal alone. Rows are written as they come, and are
not computed twice. `few` has 5 and 1 % of the nodes seen; `time` has tables of 32 columns, so name small graphs for it:
--graphs "swiss roll" sensor.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import _signals as on
import numpy as np
from _pygsp import Rivals

import pegfan as pf

HOME = Path(__file__).resolve().parent
ROWS = HOME / "results" / "signals.jsonl"
PAGE = HOME.parent / "docs" / "signals.md"
SIGMAS = (0.1, 0.3, 0.6)
TITLES = {
    "noise": "Decibels by σ, and their mean",
    "gaps": "Decibels at missing nodes, by the share of them that is missing, and their mean",
    "few": "Decibels at missing nodes where few are seen, by the share that is missing, and their mean",
    "compression": "Decibels by the share of coefficients kept, and their mean",
    "time": "Decibels of tables over time by σ, and their mean",
}


@cache
def rivals(name: str) -> Rivals:
    """PyGSP's methods on a graph."""
    return Rivals(on.graph_of(name).adjacency, *on.spectrum(name))


def noise_row(name: str, kind: str, sigma: float, seed: int) -> dict[str, float]:
    """Decibels of all methods for one noisy signal."""
    rng = np.random.default_rng([seed, on.GRAPHS.index(name), on.KINDS.index(kind)])
    f = on.signal(name, kind, rng)
    y = f + sigma * rng.standard_normal(len(f))
    found = rivals(name).estimates(y, sigma, f)
    start = time.process_time()
    ours = pf.denoise(on.graph_of(name), y, report=True)
    taken = time.process_time() - start
    row = {"noisy": on.decibels(f, y), **{rival: on.decibels(f, g) for rival, g in found.items()}}
    return {**row, "pegfan": on.decibels(f, ours.signal), "seconds": taken, "sigma": float(ours.sigma[0]) / sigma}


PARTS: dict[str, tuple[Callable[..., dict[str, float]], list[tuple[float, ...]]]] = {
    "noise": (noise_row, [(sigma,) for sigma in SIGMAS]),
    "gaps": (on.gap_row, [(share, noise) for noise in (0.0, 0.1) for share in on.MISSING]),
    "few": (on.gap_row, [(share, 0.1) for share in (0.95, 0.99)]),
    "compression": (on.compression_row, [(keep,) for keep in on.KEPT]),
    "time": (on.time_row, [(sigma,) for sigma in SIGMAS]),
}


def known() -> dict[tuple[Any, ...], dict[str, float]]:
    """The rows that there are, by part, graph, kind, seed and setting."""
    if not ROWS.exists():
        return {}
    rows = map(json.loads, ROWS.read_text(encoding="utf-8").splitlines())
    return {(row["part"], row["graph"], row["kind"], row["seed"], *row["setting"]): row["decibels"] for row in rows}


def run(part: str, graphs: Iterable[str], seeds: Iterable[int]) -> None:
    """Compute what is missing of a part."""
    make, settings = PARTS[part]
    there = known()
    asked = ["git", "-C", str(HOME), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    for seed in seeds:
        for graph in graphs:
            for kind in on.KINDS:
                for setting in settings:
                    if (part, graph, kind, seed, *setting) in there:
                        continue
                    row = {name: round(value, 3) for name, value in make(graph, kind, *setting, seed).items()}
                    about = {"part": part, "graph": graph, "kind": kind, "seed": seed, "setting": setting}
                    with ROWS.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({**about, "commit": commit.strip(), "decibels": row}) + "\n")
                    best = max(value for name, value in row.items() if name not in ("pegfan", "seconds", "sigma"))
                    print(
                        part, seed, graph, kind, setting, f"ours {row['pegfan']:.1f}, best other {best:.1f}", flush=True
                    )


def table(part: str) -> str:
    """A part as Markdown: the best rivals of every kind of signal, and ours."""
    _, settings = PARTS[part]
    rows = {key: row for key, row in known().items() if key[0] == part}
    noises = sorted({key[5] for key in rows}) if part == "gaps" else [None]
    lines = []
    for noise in noises:
        chosen = [setting for setting in settings if noise is None or setting[1] == noise]
        heads = [" / ".join(f"{setting[0]:g}" for setting in chosen) + " · mean"] * len(on.KINDS)
        if noise is not None:
            lines.append(f"\n{'Without noise' if noise == 0 else f'With noise, σ = {noise:g}'}:\n")
        lines.append("| | " + " | ".join(f"{kind}, {head}" for kind, head in zip(on.KINDS, heads, strict=True)) + " |")
        lines.append("|---|" + "---|" * len(on.KINDS))
        means: dict[str, list[list[float]]] = {}
        for kind in on.KINDS:
            for setting in chosen:
                these = [row for key, row in rows.items() if key[2] == kind and key[4:] == setting]
                for name in these[0] if these else ():
                    if name not in ("seconds", "sigma"):
                        means.setdefault(name, [[] for _ in on.KINDS])[on.KINDS.index(kind)].append(
                            float(np.mean([row[name] for row in these]))
                        )
        others = [cells for name, cells in means.items() if name != "pegfan"]
        best = [max(np.mean(cells[k]) for cells in others) for k in range(len(on.KINDS))]
        for name, cells in means.items():
            texts = []
            for k, values in enumerate(cells):
                text = " / ".join(f"{value:.1f}" for value in values) + f" · {np.mean(values):.1f}"
                ours_wins = name == "pegfan" and np.mean(values) > best[k]
                texts.append(f"**{text}**" if ours_wins or (name != "pegfan" and np.mean(values) == best[k]) else text)
            lines.append(f"| {name} | " + " | ".join(texts) + " |")
    seeds = sorted({key[3] for key in rows})
    graphs = [name for name in on.GRAPHS if name in {key[1] for key in rows}]
    about = f"{TITLES[part]}. Means over {', '.join(graphs)}; {len(seeds)} signals of every kind on each."
    if part == "noise":
        seconds, sigma = (float(np.mean([row[name] for row in rows.values()])) for name in ("seconds", "sigma"))
        lines += ["", f"`denoise` took {seconds:.1f} s of CPU on average; its σ was {sigma:.2f} of the true one."]
    return "\n".join([about, "", *lines, ""])


def page(text: str) -> str:
    """The page with the tables of today between its marks."""
    for part in PARTS:
        mark, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->"
        if mark in text and any(key[0] == part for key in known()):
            before, rest = text.split(mark)
            text = f"{before}{mark}{table(part)}{end}{rest.split(end)[1]}"
    return text


def main() -> None:
    """Run a part, or print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*PARTS, "tables"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--graphs", nargs="+", default=list(on.GRAPHS))
    options = parser.parse_args()
    if options.what == "tables":
        for part in PARTS:
            if any(key[0] == part for key in known()):
                print(f"# {part}\n\n{table(part)}")
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    run(options.what, options.graphs, options.seeds)
    print(table(options.what))


if __name__ == "__main__":
    main()
