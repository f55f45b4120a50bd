"""Run the benchmarks one after another, on a machine that does nothing else, and write what they print to RESULTS.md.

    PEGFAN_DATA=folder python benchmarks/results.py [--quick] [--only NAME...]

The file says on which processor, at which commit and under which load each ran; it is written after every script, and
with `--only` the sections of the others stay as they are. Scripts that take an hour or more are not in the list.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(__file__).resolve().parent
RESULTS = HOME / "RESULTS.md"
SCRIPTS = {
    "training": ["training.py", "--part", "epochs"],
    "products": ["products.py"],
    "transforms": ["transforms.py"],
    "trees": ["trees.py"],
    "readers": ["readers.py"],
    "starting": ["starting.py"],
    "channels": ["training.py", "--part", "channels"],
    "batches": ["training.py", "--part", "batches"],
    "equivariance": ["equivariance.py"],
    "boosting": ["boosting.py"],
    "synthetic": ["synthetic.py"],
    "layers": ["layers.py"],
}
OLDER = "A section that names no processor is of an older pass, on another machine."
OWN_QUICK = {"channels", "batches"}
"""Those that take minutes; `--quick` makes them smaller."""


def processor() -> str:
    with open("/proc/cpuinfo") as file:
        lines = dict(re.findall(r"^(model name|flags)\s*:\s*(.*)$", file.read(), re.M))
    flags = lines["flags"].split()
    wide = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "neither AVX2 nor AVX-512"
    return f"{lines['model name']} ({wide}), {len(os.sched_getaffinity(0))} cores"


def run(command: list[str]) -> str:
    """A section: what a script printed, when, and how busy the machine was before."""
    options = {"cwd": HOME, "capture_output": True, "text": True}
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=False, **options).stdout
    load, start = os.getloadavg()[0], time.time()
    done = subprocess.run([sys.executable, *command], check=False, **options)
    shown = " ".join(["python", f"benchmarks/{command[0]}", *command[1:]])
    text = done.stdout.strip() if done.returncode == 0 else f"{done.stdout}\n{done.stderr[-2000:]}".strip()
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(start))
    note = f"{processor()}; commit {told.strip()}; {when} UTC, {time.time() - start:.0f} s; load before {load:.1f}"
    return f"## `{shown}`\n\n{note}\n\n```\n{text}\n```\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, help="these alone")
    asked = parser.parse_args()
    found = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:] if RESULTS.exists() else []
    known = {"## " + section.split("\n")[0]: "## " + section.strip() + "\n" for section in found}
    kept = dict.fromkeys(SCRIPTS, "")
    for name, command in SCRIPTS.items():
        shown = "## `" + " ".join(["python", f"benchmarks/{command[0]}", *command[1:]]) + "`"
        kept[name] = next((text for title, text in known.items() if title.startswith(shown[:-1])), "")
    for name in asked.only or SCRIPTS:
        print(f"... {name}", file=sys.stderr, flush=True)
        quick = ["--quick"] if asked.quick or name in OWN_QUICK else []
        kept[name] = run([*SCRIPTS[name], *quick])
        RESULTS.write_text(
            "# What the benchmarks printed\n\n" + "\n".join(filter(None, kept.values())), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
