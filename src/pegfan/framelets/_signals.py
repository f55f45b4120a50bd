"""Signals in: vectors, matrices, sparse matrices and torch tensors, checked once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse, vstack

from pegfan._checks import as_array, check_sparse


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor; torch is not imported for the answer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_signal(f: Any, rows: int, what: str = "the signal") -> Any:
    """A signal as a float array of the same kind, with its first dimension checked.

    float32 and float64 stay as they are, integers and booleans become float64.
    """
    if is_tensor(f):
        return _check_shape(_as_tensor(f, what), rows, what)
    if issparse(f):
        check_sparse(f if f.ndim == 2 else f.reshape(1, -1), what)
        if f.dtype.kind not in "biuf":
            raise TypeError(f"{what} must hold real numbers, got dtype {f.dtype}")
        return _check_shape(csr_array(f, dtype=_float(f.dtype)), rows, what)
    array = as_array(f, what)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold real numbers, got dtype {array.dtype}")
    return _check_shape(array.astype(_float(array.dtype), copy=False), rows, what)


def _float(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    return np.float32 if dtype in (np.float32, np.float16) else np.float64


def _as_tensor(f: Any, what: str) -> Any:
    import torch

    if f.is_complex() or f.layout != torch.strided:
        raise TypeError(f"{what} must be a dense real tensor, got {f.dtype}, {f.layout}; use .to_dense()")
    if f.dtype in (torch.float32, torch.float64):
        return f
    return f.to(torch.float32 if f.dtype in (torch.float16, torch.bfloat16) else torch.float64)


def _check_shape(array: Any, rows: int, what: str) -> Any:
    if array.ndim not in (1, 2):
        raise ValueError(f"{what} must be a vector or a matrix with one row per node, got {array.ndim} dimensions")
    if array.shape[0] != rows:
        raise ValueError(f"{what} has {array.shape[0]} rows and {rows} are needed; does it belong to another tree?")
    return array


def as_columns(array: Any) -> Any:
    """A vector as one column; a matrix as it is."""
    if array.ndim == 2:
        return array
    return array.reshape(-1, 1).tocsr() if issparse(array) else array[:, None]


def stack_rows(parts: Sequence[Any]) -> Any:
    """Signals of one kind below each other; sparse where one of them is."""
    if is_tensor(parts[0]):
        import torch

        return torch.cat(list(parts))
    return vstack(parts, format="csr") if any(map(issparse, parts)) else np.concatenate(parts)


def check_out(out: Any, shape: tuple[int, ...], f: Any) -> Any:
    """The array `out=` that the transform of f is to be written into, if it can be."""
    if not isinstance(out, np.ndarray) or not isinstance(f, np.ndarray):
        raise TypeError("out= takes NumPy arrays, for NumPy signals")
    if out.shape != shape or out.dtype != f.dtype or not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(
            f"out must be a writeable C-ordered {f.dtype} array of shape {shape}, got {out.dtype} {out.shape}"
        )
    if np.shares_memory(out, f):
        raise ValueError("out must not share memory with the input")
    return out


def class_means(x: Any, classes: Any) -> Any:
    """Every row of a signal replaced by the mean of the rows of its class."""
    return ClassMeans(classes, x.shape[0])(x)


class ClassMeans:
    """The operator M that replaces rows by the means of their classes; rows that are equal stay as they are.

    Attributes
    ----------
    classes
        As given: a class number for every node.
    nodes
        The nodes that share their class with another: no other rows are touched.
    code
        The number of every node's class among those of more than one node; -1 elsewhere.
    sizes
        How many nodes each of these classes has.
    """

    def __init__(self, classes: Any, n: int) -> None:
        numbers = np.asarray(classes)
        if numbers.shape != (n,) or numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 0):
            raise ValueError(f"classes must hold {n} class numbers, not negative; got {numbers.dtype} {numbers.shape}")
        self.classes = numbers
        _, inverse, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
        shared = sizes > 1
        self.code = np.where(shared, np.cumsum(shared) - 1, -1)[inverse]
        self.nodes, self.sizes = np.flatnonzero(self.code >= 0), sizes[shared]

    @cached_property
    def members(self) -> csr_array:
        """Which of `nodes` are in which class: classes × nodes."""
        places = np.arange(len(self.nodes))
        ones = np.ones(len(places))
        return csr_array((ones, (self.code[self.nodes], places)), shape=(len(self.sizes), len(places)))

    def of_members(self, x: Any) -> Any:
        """The means of the classes, ``first + mean(x − first)``, from the rows of `nodes` alone."""
        code = self.code[self.nodes]
        first = np.unique(code, return_index=True)[1]
        if is_tensor(x):
            import torch

            lead, where = x[torch.tensor(first, device=x.device)], torch.tensor(code, device=x.device)
            total = torch.zeros_like(lead).index_add(0, where, x - lead[where])
            return lead + total / torch.tensor(self.sizes, device=x.device).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))
        sums = self.members.astype(x.dtype) @ (x - x[first][code])
        if issparse(x):
            return csr_array(x[first] + diags_array(1 / self.sizes, dtype=x.dtype) @ sums)
        return x[first] + sums / self.sizes.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1))

    def put(self, means: Any, rows: Any, nodes: Any = slice(None)) -> Any:
        """Write the means into the rows of some nodes; dense rows are overwritten."""
        code = self.code[nodes]
        where = np.flatnonzero(code >= 0)
        if not len(where):
            return rows
        if issparse(rows):
            place = np.arange(len(code))
            place[where] = len(code) + code[where]
            return csr_array(vstack([rows, means], format="csr")[place])
        if is_tensor(rows):
            import torch

            index, picked = (torch.tensor(array, device=rows.device) for array in (where, code[where]))
            return rows.index_copy(0, index, means[picked])
        rows[where] = means[code[where]]
        return rows

    def __call__(self, x: Any, own: bool = False) -> Any:
        """M x; a dense x is overwritten where it is the caller's own."""
        if not len(self.nodes):
            return x
        means = self.of_members(x[self.nodes])
        return self.put(means, x if own or issparse(x) or is_tensor(x) else x.copy())
