"""The factors of a channel's operator: matrices, framelet projections, and any other linear operator.

All are `pegfan.framelets.Operator`: they multiply NumPy arrays, SciPy sparse matrices and torch tensors, with
gradients, on any device.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator

from pegfan.framelets import FrameletSystem, Operator
from pegfan.framelets._signals import is_tensor

__all__ = ["Foreign", "Matrix", "Projection", "as_factor"]


class Matrix(Operator):
    """A matrix as an operator; it is converted once for every dtype and device that it meets.

    Parameters
    ----------
    name
        What it is, for names and tables.
    matrix
        A SciPy sparse matrix or a 2-D array.

    Examples
    --------
    >>> import numpy as np
    >>> Matrix("M", np.array([[0.0, 2.0], [1.0, 0.0]])) @ np.array([[1.0], [5.0]])
    array([[10.],
           [ 1.]])
    """

    def __init__(self, name: str, matrix: Any) -> None:
        self.given = matrix  # also keeps its id from being used again, see `key`
        self.matrix: Any = _as_floats(csr_array(matrix) if issparse(matrix) else np.asarray(matrix))
        self._converted: dict[Any, Any] = {}
        super().__init__(name, self.matrix.shape, self._multiply, self._multiply_transposed)

    def _multiply(self, x: Any) -> Any:
        return self._like(x) @ x

    def _multiply_transposed(self, x: Any) -> Any:
        return self._like(x, transposed=True) @ x

    def _like(self, x: Any, transposed: bool = False) -> Any:
        """The matrix, or its transpose, in the kind of x."""
        if not is_tensor(x):
            if x.dtype not in self._converted:
                self._converted[x.dtype] = self.matrix.astype(x.dtype, copy=False)
            return self._converted[x.dtype].T if transposed else self._converted[x.dtype]
        key = (x.dtype, x.device, transposed)
        if key not in self._converted:
            import torch

            from pegfan.framelets._torch import sparse_csr

            matrix = self.matrix.T if transposed else self.matrix
            self._converted[key] = (
                sparse_csr(csr_array(matrix), x.dtype, x.device)
                if issparse(matrix)
                else torch.tensor(np.ascontiguousarray(matrix), dtype=x.dtype, device=x.device)
            )
        return self._converted[key]


class Projection(Operator):
    """F_j of a framelet system as a factor; projections of one signal are computed together.

    Parameters
    ----------
    system
        The framelet system.
    scale
        j, from 0 to K−1.

    Examples
    --------
    >>> import pegfan as pf
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> Projection(system, 2)
    <4×4 operator F_2>
    """

    def __init__(self, system: FrameletSystem, scale: int) -> None:
        inner = system.operator("projection", scale)
        self.system, self.scale = system, scale
        super().__init__(inner.name, inner.shape, inner._forward, inner._transposed)


class Foreign(Operator):
    """Somebody's `LinearOperator`, which knows NumPy arrays only."""

    def __init__(self, name: str, inner: LinearOperator) -> None:
        self.inner = inner
        super().__init__(name, inner.shape, lambda x: _call(inner.matmat, x), lambda x: _call(inner.rmatmat, x))


def _as_floats(matrix: Any) -> Any:
    """A matrix whose products are those of numbers: small integers overflow, and booleans know only "or"."""
    matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)
    if issparse(matrix) and not matrix.has_sorted_indices:
        return matrix.sorted_indices()  # a copy: sorting in place would change what the user gave
    return matrix


def as_factor(value: Any, name: str) -> Operator:
    """One factor of a channel's operator, from whatever the user has."""
    if isinstance(value, Operator):
        return value
    if isinstance(value, LinearOperator):
        if value.dtype is not None and value.dtype.kind == "c":
            raise TypeError(f"a factor of channel {name!r} must be real, got a LinearOperator of {value.dtype}")
        return Foreign("L", value)
    if issparse(value) or (isinstance(value, np.ndarray) and value.ndim == 2):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"a factor of channel {name!r} must hold real numbers, got dtype {value.dtype}")
        if not all_finite(value):
            raise ValueError(f"a factor of channel {name!r} holds NaN or infinity")
        return Matrix("M", value)
    raise TypeError(
        f"a factor of channel {name!r} must be a sparse matrix, a 2-D array or a LinearOperator, "
        f"got {type(value).__name__}"
    )


def key(factor: Operator) -> Hashable:
    """What two factors have in common if they are the same operator."""
    if isinstance(factor, Matrix):
        return id(factor.given)
    if isinstance(factor, Projection):
        return id(factor.system), factor.scale
    return id(factor.inner) if isinstance(factor, Foreign) else id(factor)


def all_finite(array: Any) -> bool:
    """Whether no entry is NaN or infinite; takes no memory unless something is wrong."""
    values = array.data if issparse(array) else array
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def scaling_vectors(system: FrameletSystem, level: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The slot of every node's cluster at a level, and the value of that cluster's φ at the node."""
    matrix = system.scaling(level)
    phi = np.zeros(system.n)
    phi[matrix.indices] = matrix.data
    return system.hierarchy.labels(level), phi


def _call(product: Any, x: Any) -> Any:
    if is_tensor(x):  # on a device: CPU tensors arrive as arrays
        import torch

        return torch.from_numpy(np.asarray(product(x.cpu().numpy()))).to(x)
    return np.asarray(product(x.toarray() if issparse(x) else x)).astype(x.dtype, copy=False)
