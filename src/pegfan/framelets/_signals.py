"""Signals in: vectors, matrices, sparse matrices and torch tensors, checked once."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse


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
        if f.dtype.kind not in "biuf":
            raise TypeError(f"{what} must hold real numbers, got dtype {f.dtype}")
        return _check_shape(csr_array(f, dtype=_float(f.dtype)), rows, what)
    try:
        array = np.asarray(f)
    except ValueError as error:
        raise ValueError(f"{what} must be a vector or a matrix: {error}") from error
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


def class_means(x: Any, classes: Any) -> Any:
    """Every row of a signal replaced by the mean of the rows of its class."""
    numbers = np.asarray(classes)
    if numbers.shape != (x.shape[0],) or numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 0):
        raise ValueError(
            f"classes must hold {x.shape[0]} class numbers, not negative; got {numbers.dtype} {numbers.shape}"
        )
    _, first, numbers, sizes = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True)
    if len(first) == len(numbers):
        return x
    if is_tensor(x):
        import torch

        index = torch.tensor(numbers, device=x.device)
        sums = torch.zeros((len(sizes), *x.shape[1:]), dtype=x.dtype, device=x.device).index_add(0, index, x)
        count = torch.tensor(sizes, device=x.device).to(x.dtype)
        return (sums / count.reshape(-1, *[1] * (x.ndim - 1)))[index]
    weights = (1.0 / sizes[numbers]).astype(x.dtype)
    mean = csr_array((weights, (numbers, np.arange(len(numbers)))), shape=(len(sizes), len(numbers)))
    return (mean @ x)[numbers]
