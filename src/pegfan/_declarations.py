"""How loops and structs in C are declared: once, in one line of text that makes the C prototype and the checks.

A declaration reads like a prototype of C, with NumPy's names of dtypes and with the shape of every array::

    int64 merge(const I indptr[n + 1], const I indices[_m], const float64 data[_m], float64 scale, float64 out[n, d])

* ``I`` and ``J`` stand for int32 or int64, ``T`` for float32 or float64, ``W`` for uint32 or uint64: there is one C
  function for each choice, ``merge__i4`` and ``merge__i8`` (``merge__i4_f8`` where two letters occur).
* Without ``const`` an array is written.
* A name in a shape is one number wherever it stands. The C function takes an array as a pointer, followed by the names
  in its shape that were not there before, as int64_t; names that begin with ``_`` are checked and not handed over.
  Entries of a shape may be sums and products of names and numbers; ``>=n`` asks for at least n.
* ``maybe`` before an array admits an empty one, which becomes NULL whatever shape is asked for.
* Numbers (int64, uint64, float64) are handed over as they are, and may occur in shapes after them.

`prototypes` writes the header for the compiler; `pegfan._loops` checks what is passed. This module needs nothing but
the standard library, as the build runs it before anything is installed.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

LETTERS = {
    "I": ("int32", "int64"),
    "J": ("int32", "int64"),
    "T": ("float32", "float64"),
    "W": ("uint32", "uint64"),
}
"""The dtypes that a letter stands for."""

C_TYPES = {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
C_TYPES |= {"float32": "float", "float64": "double"}

SHORT = {name: f"{name[0]}{int(name.lstrip('uintfloa')) // 8}" for name in C_TYPES}
"""As the names of C functions have them: i4, u8, f4."""

_PART = re.compile(r"(?P<maybe>maybe )?(?P<const>const )?(?P<type>\w+) (?P<name>\w+)(\[(?P<shape>[^\]]*)\])?")


class Parameter(NamedTuple):
    """An array (with a shape) or a number (without) of a declaration."""

    name: str
    type: str
    shape: tuple[str, ...] | None
    written: bool
    may_be_empty: bool
    new_names: tuple[str, ...]
    """The names in the shape that the C function gets behind this array."""


class Declaration(NamedTuple):
    """A parsed declaration."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that it uses, in their order."""
        return tuple(dict.fromkeys(p.type for p in self.parameters if p.type in LETTERS))

    def variants(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """The names of its C functions, and the dtypes that the letters stand for in each."""
        for dtypes in itertools.product(*(LETTERS[letter] for letter in self.letters)):
            suffix = "_".join(SHORT[dtype] for dtype in dtypes)
            yield f"{self.name}__{suffix}" if suffix else self.name, dict(zip(self.letters, dtypes, strict=True))

    def c_parameters(self, dtypes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Types and names, as C has them."""
        for parameter in self.parameters:
            kind = dtypes.get(parameter.type, parameter.type)
            if parameter.shape is None:
                yield C_TYPES.get(kind, f"{kind} *"), parameter.name
                continue
            yield f"{'' if parameter.written else 'const '}{C_TYPES[kind]} *", parameter.name
            for name in parameter.new_names:
                yield "int64_t", name


def parse(text: str) -> Declaration:
    """Read a declaration; a struct is one whose result is ``struct``.

    Examples
    --------
    >>> declaration = parse("void scale(const T x[n, d], float64 factor, T out[n, d])")
    >>> [name for name, _ in declaration.variants()]
    ['scale__f4', 'scale__f8']
    >>> print(*(kind + name for kind, name in declaration.c_parameters({"T": "float32"})), sep="; ")
    const float *x; int64_tn; int64_td; doublefactor; float *out
    """
    head = re.fullmatch(r"\s*(\w+) (\w+)\((.*)\)\s*", text, re.DOTALL)
    if not head:
        raise ValueError(f"not a declaration: {text!r}; write it as: void name(const float64 x[n], float64 out[n])")
    result, name, body = head.groups()
    parameters: list[Parameter] = []
    seen: set[str] = set()
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", body):
        match = _PART.fullmatch(" ".join(part.split()))
        if not match:
            raise ValueError(f"not an array or a number in the declaration of {name}: {part.strip()!r}")
        shape = match["shape"]
        sizes = None if shape is None else tuple(size.strip() for size in shape.split(","))
        names = [word for size in sizes or () for word in re.findall(r"[A-Za-z_]\w*", size)]
        new = tuple(dict.fromkeys(word for word in names if word not in seen and not word.startswith("_")))
        seen |= {*names, match["name"]}
        parameters.append(Parameter(match["name"], match["type"], sizes, not match["const"], bool(match["maybe"]), new))
    return Declaration(name, result, tuple(parameters))


def collect(folder: Path) -> Iterator[Declaration]:
    """All declarations below a folder: the first arguments of ``Loop("...")`` and ``Struct("...")``."""
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "Loop(" not in source and "Struct(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            named = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Loop", "Struct")
            )
            if named and node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value:  # type: ignore[attr-defined]
                yield parse(str(node.args[0].value))  # type: ignore[attr-defined]


def prototypes(declarations: list[Declaration]) -> str:
    """What C and cffi read: structs first, then functions."""
    lines = []
    for struct in (d for d in declarations if d.result == "struct"):
        fields = "".join(f"    {kind} {name};\n" for kind, name in struct.c_parameters({}))
        lines.append(f"typedef struct {{\n{fields}}} {struct.name};\n")
    for loop in (d for d in declarations if d.result != "struct"):
        result = C_TYPES.get(loop.result, loop.result)
        for name, dtypes in loop.variants():
            given = ", ".join(f"{kind} {argument}" for kind, argument in loop.c_parameters(dtypes))
            lines.append(f"{result} {name}({given or 'void'});\n")
    return "".join(lines)
