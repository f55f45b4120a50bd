"""The Planetoid files, pickles that Python 2 wrote.

A pickle is a program that may import and call anything. These are known by their SHA-256, and even then nothing but
lists, dicts, NumPy arrays and SciPy's CSR matrices is made of them.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

_ADMITTED = {
    ("__builtin__", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],  # NumPy has moved it since
    ("scipy.sparse.csr", "csr_matrix"): csr_matrix,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no Planetoid file needs; it was not run")
        return _ADMITTED[module, name]


def read_pickle(path: Path, sha256: str) -> Any:
    """Return what a Planetoid file holds; bytes with another hash are not unpickled."""
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ValueError(f"{path} is not the public file: its sha256 is {found}, expected {sha256}; it was not read")
    try:
        return _Unpickler(io.BytesIO(data), encoding="latin1").load()
    except pickle.UnpicklingError as error:
        raise ValueError(f"{path}: {error}") from error
