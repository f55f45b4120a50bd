"""Linear operators: a product, its transpose, and a test that one is the transpose of the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_kind, check_number, check_seed
from pegfan.framelets._signals import as_columns, as_signal, is_tensor

Map = Callable[[Any], Any]


class Operator(LinearOperator):  # type: ignore[misc]
    """A SciPy `LinearOperator` that also takes sparse matrices and torch tensors on its right.

    ``op @ x`` multiplies a vector or a matrix of the kinds that signals come in, ``op.T`` is the transpose,
    and everything that SciPy builds on linear operators works (sums and products of operators take NumPy arrays only).
    Gradients flow through products with tensors.

    Whoever uses an operator asks it for what it knows of itself. A subclass answers with as much as it can: its product
    alone is enough for channels and training; every further answer makes it cheaper. `pegfan.testing.check_operator`
    tests all answers.

    Parameters
    ----------
    name
        What it is, for ``repr`` and for names of channels.
    shape
        Rows and columns.
    forward, transposed
        The products with a matrix from the left, and with the transpose. They take NumPy arrays, sparse matrices, and
        tensors where these are not on a CPU.

    Attributes
    ----------
    system, scale
        The framelet system and j of a projection F_j; None for any other operator.
    hop, side
        The symbol of a hop matrix, such as ``"S"``, and the side of directed edges that it looks at; else None.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan.testing import check_operator
    >>> class Reverse(Operator):
    ...     def __init__(self, n):
    ...         super().__init__("R", (n, n), lambda x: x[::-1], lambda x: x[::-1])
    ...
    ...     def nonzeros(self, rows, columns):
    ...         return None if rows is None else rows[::-1]
    >>> check_operator(Reverse(4), np.eye(4)[::-1])
    """

    system: Any = None
    scale: int | None = None
    hop: str | None = None
    side: str | None = None

    _forward: Map
    _transposed: Map

    def __init__(
        self, name: str, shape: tuple[int, int], forward: Map | None = None, transposed: Map | None = None
    ) -> None:
        super().__init__(np.dtype(np.float64), shape)
        self.name = name
        if forward is not None and transposed is not None:
            self._forward, self._transposed = forward, transposed

    @property
    def key(self) -> Hashable:
        """Equal for factors that are the same operator, whose products are then computed once."""
        return self

    def matrices(self) -> list[Any] | None:
        """Matrices whose product it is, sparse or small; None if only products with it are known."""
        return None

    def nonzeros(self, rows: IntArray | None, columns: int) -> IntArray | None:
        """At most how many entries of each row of the product are not zero; None for all.

        Parameters
        ----------
        rows
            The same of what it acts on; None for all.
        columns
            The columns of what it acts on.
        """
        return None

    def by_rows(self, x: Any) -> Map | None:
        """A function from row numbers to these rows of the product with x; None if it would compute all of them."""
        return None

    def shares(self, nodes: IntArray, columns: Any) -> tuple[FloatArray, FloatArray] | None:
        """What single entries contribute to a product's diagonal, for `pegfan.channels.propagated_labels`.

        Parameters
        ----------
        nodes
            Some rows i of the operator L.
        columns
            A sparse matrix with one row per node i: the column ``R_·i`` of the matrix R that L multiplies.

        Returns
        -------
        tuple of array or None
            ``Σ_v L_iv R_vi`` and the sizes ``Σ_v |L_iv R_vi|`` of what was added; None if entries are not known.
        """
        return None

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, LinearOperator):
            return super().__matmul__(other)
        x = as_signal(other, self.shape[1], "the right factor")
        columns = as_columns(x)
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
    check_kind(operator, "operator", LinearOperator)
    check_number(tolerance, "tolerance")
    check_seed(seed)
    generator = np.random.default_rng(seed)
    x, y = (generator.standard_normal(size) for size in operator.shape[::-1])
    forward, transposed = operator.matvec(x), operator.rmatvec(y)
    left, right = float(forward @ y), float(x @ transposed)
    scale = np.linalg.norm(forward) * np.linalg.norm(y) + np.linalg.norm(x) * np.linalg.norm(transposed)
    difference = float(abs(left - right) / max(scale, np.finfo(float).tiny))
    if not difference <= tolerance:
        raise ValueError(f"⟨A x, y⟩ = {left:.12g} but ⟨x, Aᵀ y⟩ = {right:.12g}: they must agree")
    return difference
