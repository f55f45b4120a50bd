"""How the C extension is built; setup.py calls it."""

from __future__ import annotations

import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent

# Sums keep their order and every product is rounded, so that all processors give the same bits; what is fused is fused
# by hand.
UNIX = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else UNIX

builder = FFI()
builder.cdef((HERE / "native.h").read_text(encoding="utf-8"))
builder.set_source(
    "pegfan._native",
    '#include "native.h"',
    sources=[str(path.relative_to(HERE.parents[1])) for path in sorted(HERE.glob("*.c"))],
    include_dirs=[str(HERE)],
    depends=[str(path) for path in sorted(HERE.glob("*.[hi]*"))],
    extra_compile_args=FLAGS,
    py_limited_api=True,
    optional=True,  # without a compiler, numba does its work
)
