"""How the C extension is built; setup.py calls it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "src" / "pegfan"


def write_prototypes() -> str:
    """Write loops.h, which C includes, from the declarations in the package."""
    spec = importlib.util.spec_from_file_location("_declarations", PACKAGE / "_declarations.py")
    assert spec is not None
    assert spec.loader is not None
    declarations = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = declarations
    spec.loader.exec_module(declarations)
    text = str(declarations.prototypes(list(declarations.collect(PACKAGE))))
    header = HERE / "loops.h"
    if not header.exists() or header.read_text(encoding="utf-8") != text:
        header.write_text(text, encoding="utf-8")
    return text


# Sums keep their order and every product is rounded, so that all processors give the same bits; what is fused is fused
# by hand.
UNIX = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror"]
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else UNIX
# For `make test-native`: every access out of bounds and every overflow ends the process, and says where.
SANITIZED = os.environ.get("PEGFAN_SANITIZE", "0") == "1"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if SANITIZED else []
if SANITIZED:
    FLAGS = [*FLAGS, "-O1", "-g1", "-fno-omit-frame-pointer", *SANITIZERS]

builder = FFI()
builder.cdef(write_prototypes())
builder.set_source(
    "pegfan._native",
    '#include "common.h"',
    sources=[str(path.relative_to(HERE.parents[1])) for path in sorted(HERE.glob("*.c"))],
    include_dirs=[str(HERE)],
    depends=[str(path) for path in sorted(HERE.glob("*.[hi]*"))],
    extra_compile_args=FLAGS,
    extra_link_args=SANITIZERS,
    py_limited_api=True,
)
