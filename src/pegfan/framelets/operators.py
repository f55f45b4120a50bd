"""Linear operators: a product, its transpose, and a test that one is the transpose of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from pegfan.framelets._signals import as_signal, is_tensor

Map = Callable[[Any], Any]


class Operator(LinearOperator):  # type: ignore[misc]
    """A SciPy `LinearOperator` that also takes sparse matrices and torch tensors on its right.

    ``op @ x`` multiplies a vector or a matrix of the kinds that signals come in, ``op.T`` is the transpose,
    and everything that SciPy builds on linear operators works (sums and products of operators take NumPy arrays only).
    Gradients flow through products with tensors.

    Parameters
    ----------
    name
        What it is, for ``repr``.
    shape
        Rows and columns.
    forward, transposed
        The products with a matrix from the left, and with the transpose.
    """

    def __init__(self, name: str, shape: tuple[int, int], forward: Map, transposed: Map) -> None:
        super().__init__(np.dtype(np.float64), shape)
        self.name, self._forward, self._transposed = name, forward, transposed

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, LinearOperator):
            return super().__matmul__(other)
        x = as_signal(other, self.shape[1], "the right factor")
        columns = x[:, None] if x.ndim == 1 else x
        if issparse(x) and x.ndim == 1:
            columns = x.reshape(-1, 1).tocsr()
        if is_tensor(columns):
            from pegfan.framelets._torch import linear

            result = linear(columns, self._forward, self._transposed)
        else:
            result = self._forward(columns)
        return result.reshape(-1) if x.ndim == 1 else result

    def _matmat(self, X: Any) -> Any:
        return self._forward(np.ascontiguousarray(X, dtype=np.float64))

    def _rmatmat(self, X: Any) -> Any:
        return self._transposed(np.ascontiguousarray(X, dtype=np.float64))

    def _adjoint(self) -> Operator:
        name = self.name.removesuffix("ᵀ") if self.name.endswith("ᵀ") else self.name + "ᵀ"
        return Operator(name, (self.shape[1], self.shape[0]), self._transposed, self._forward)

    _transpose = _adjoint

    def __repr__(self) -> str:
        return f"<{self.shape[0]}×{self.shape[1]} operator {self.name}>"


def adjoint_test(operator: LinearOperator, tolerance: float = 1e-10, seed: int = 0) -> float:
    """Test ⟨A x, y⟩ = ⟨x, Aᵀ y⟩ on random x and y, for any SciPy `LinearOperator` of real numbers.

    Returns
    -------
    float
        The relative difference of the two sides; more than `tolerance` is a ValueError.

    Examples
    --------
    >>> import pegfan as pf
    >>> tree = pf.Hierarchy.from_nested([[0, 1, 2], [3, 4]])
    >>> pf.adjoint_test(pf.FrameletSystem(tree).operator("analysis")) < 1e-12
    True
    """
    generator = np.random.default_rng(seed)
    x, y = (generator.standard_normal(size) for size in operator.shape[::-1])
    forward, transposed = operator.matvec(x), operator.rmatvec(y)
    left, right = float(forward @ y), float(x @ transposed)
    scale = np.linalg.norm(forward) * np.linalg.norm(y) + np.linalg.norm(x) * np.linalg.norm(transposed)
    difference = float(abs(left - right) / max(scale, np.finfo(float).tiny))
    if not difference <= tolerance:
        raise ValueError(f"⟨A x, y⟩ = {left:.12g} but ⟨x, Aᵀ y⟩ = {right:.12g}: they must agree")
    return difference
