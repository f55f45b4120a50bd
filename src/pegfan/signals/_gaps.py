"""Gaps in a signal, filled with what is around them: a first guess for methods that need every value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg

from pegfan._arrays import FloatArray
from pegfan.signals._ground import Ground

__all__ = ["filled"]


def filled(ground: Ground, y: FloatArray, seen: NDArray[np.bool_]) -> FloatArray:
    """The signal as it is where it was `seen`, and elsewhere as smooth as its neighbours allow."""
    if seen.all():
        return y
    mean = float(y[seen].mean()) if seen.any() else 0.0
    rest = np.where(seen, y - mean, 0.0)
    # The last term is for parts of a graph in which nothing was seen.
    system = csr_array(diags_array(seen + 1e-6) + 0.1 * ground.laplacian(ground.values))
    return np.where(seen, y, mean + cg(system, rest, rtol=1e-5, maxiter=300)[0])
