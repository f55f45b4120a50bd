"""Tests for your own additions: an operator is compared with its dense twin in every answer that it gives."""

from __future__ import annotations

from functools import reduce
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, random_array

from pegfan._checks import check_kind, check_number, check_numbers, check_seed
from pegfan.channels import Channel
from pegfan.channels.factors import renumbered
from pegfan.framelets import Operator, adjoint_test

__all__ = ["check_operator"]

_COLUMNS = 3


def check_operator(operator: Operator, matrix: Any = None, tolerance: float = 1e-9, seed: int = 0) -> None:
    """Compare an operator with its dense twin, in everything that channels and the training engine ask it for.

    It compares products with vectors, arrays of both precisions and sparse matrices, those with the transpose, its
    matrices, bounds on nonzeros, rows, entries, the channel that it makes; and products and gradients of tensors, where
    torch is installed. Answers that an operator does not give (None) are not compared.

    Parameters
    ----------
    operator
        The operator; a small one, as its twin stores every entry.
    matrix
        Its dense twin, made in another way. By default its product with the identity, which finds answers that do
        not agree with each other.
    tolerance
        How far products in float64 may be off, in units of the largest entry of the twin (or of 1).
    seed
        Of what it multiplies.

    Raises
    ------
    AssertionError
        If something differs; it says what.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]])
    >>> check_operator(pf.channels.Hop(graph, "A"), graph.adjacency.toarray())
    >>> check_operator(pf.channels.Hop(graph, "A"), np.eye(3))
    Traceback (most recent call last):
        ...
    AssertionError: <3×3 operator A>: the product in float64 is off by 1.48
    """
    check_kind(operator, "operator", Operator)
    check_number(tolerance, "tolerance")
    check_seed(seed)
    rng = np.random.default_rng(seed)
    dense = check_numbers(operator @ np.eye(operator.shape[1]) if matrix is None else matrix, "matrix", None, None)
    dense = dense.astype(np.float64, copy=False)
    check = _Check(operator, dense, tolerance)
    check.that(operator.shape == dense.shape, f"it is not {dense.shape[0]}×{dense.shape[1]} as its twin")
    check.that(operator.key == operator.key and hash(operator.key) is not None, "its key changes")
    ways = ((operator, dense, "product"), (operator.T, dense.T, "transposed product"))
    for one, twin, name in ways:
        _check_products(check, one, twin, rng.standard_normal((twin.shape[1], _COLUMNS)), name)
    for one, twin, name in ways if find_spec("torch") is not None else ():
        _check_tensors(check, one, twin, rng.standard_normal((twin.shape[1], _COLUMNS)), name)
    check.close(operator.T.T @ np.eye(dense.shape[1]), dense, "the transpose of its transpose")
    if dense.size:
        adjoint_test(operator, max(tolerance, 1e-10), seed)
    _check_answers(check, operator, dense, rng)


class _Check:
    def __init__(self, operator: Operator, dense: Any, tolerance: float) -> None:
        self.name, self.unit = repr(operator), max(1.0, float(np.abs(dense).max(initial=0.0)))
        self.tolerance = tolerance

    def that(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise AssertionError(f"{self.name}: {otherwise}")

    def close(self, answer: Any, expected: Any, what: str, loose: float = 1.0) -> None:
        answer = answer.toarray() if issparse(answer) else np.asarray(answer)
        self.that(answer.shape == expected.shape, f"{what} has shape {answer.shape}, not {expected.shape}")
        off = float(np.abs(answer - expected).max(initial=0.0))
        self.that(off <= self.tolerance * loose * self.unit, f"{what} is off by {off:.3g}")


def _check_products(check: _Check, operator: Operator, dense: Any, x: Any, name: str) -> None:
    x.setflags(write=False)
    for dtype, loose in ((np.float64, 1.0), (np.float32, 1e5)):
        product = operator @ x.astype(dtype)
        check.close(product, dense @ x, f"the {name} in {np.dtype(dtype)}", loose)
        check.that(product.dtype == dtype, f"the {name} in {np.dtype(dtype)} has dtype {product.dtype}")
    check.close(operator @ x, dense @ x, f"the {name} with read-only memory")
    check.close(operator @ np.asfortranarray(x), dense @ x, f"the {name} with columns in memory")
    check.close(operator @ x[:, 0], dense @ x[:, 0], f"the {name} with a vector")
    check.close(operator.matvec(x[:, 0]), dense @ x[:, 0], f"the {name} by matvec")
    check.close(operator @ csr_array(x), dense @ x, f"the {name} with a sparse matrix")


def _check_tensors(check: _Check, operator: Operator, dense: Any, x: Any, name: str) -> None:
    import torch

    tensor = torch.tensor(x, requires_grad=True)
    product = operator @ tensor
    check.close(product.detach().numpy(), dense @ x, f"the {name} with a tensor")
    product.sum().backward()
    check.close(tensor.grad, dense.T @ np.ones_like(dense @ x), f"the gradient of the {name}")


def _check_answers(check: _Check, operator: Operator, dense: Any, rng: np.random.Generator) -> None:
    rows, columns = dense.shape
    x = csr_array(random_array((columns, _COLUMNS), density=0.4, rng=rng))
    product = dense @ x
    matrices = operator.matrices()
    if matrices is not None:
        check.close(reduce(lambda a, b: a @ b, matrices), dense, "the product of its matrices")
    bounds = operator.nonzeros(np.diff(x.indptr).astype(np.int64), _COLUMNS)
    if bounds is not None:
        counts = np.count_nonzero(np.abs(product) > check.tolerance * check.unit, axis=1)
        check.that(bounds.shape == (rows,), f"it bounds the nonzeros of {bounds.shape} rows, and has {rows}")
        check.that(bool((counts <= bounds).all()), "a row has more nonzeros than it says")
    check.that(
        (full := operator.nonzeros(None, _COLUMNS)) is None or full.shape == (rows,),
        "its bounds need others to start from",
    )
    some = rng.integers(0, rows, 5 if rows else 0)
    if (by_rows := operator.by_rows(x)) is not None:
        check.close(by_rows(some), product[some], "some rows of its product")
        check.close(by_rows(slice(0, rows // 2)), product[: rows // 2], "the first half of its product's rows")
    others = csr_array(random_array((len(some), columns), density=0.4, rng=rng))
    if (shares := operator.shares(some, others)) is not None:
        each = dense[some] * others.toarray()
        check.close(shares[0], each.sum(axis=1), "its shares of a diagonal")
        check.that(bool((shares[1] >= np.abs(shares[0]) * (1 - 1e-9)).all()), "its shares are larger than their sizes")
    if operator.scale is not None:
        projected, means = operator.system.project(x.toarray(), operator.scale), getattr(operator, "means", None)
        check.close(means(projected) if means else projected, product, "the projection of its scale")
    orders = rng.permutation(rows), rng.permutation(columns)
    for chosen in (orders, (orders[0], None), (None, orders[1]), (orders[0], orders[0]) if rows == columns else orders):
        i, j = (np.arange(size) if order is None else order for size, order in zip(dense.shape, chosen, strict=True))
        moved = renumbered(operator, chosen[0], chosen[1])
        check.close(moved @ np.eye(columns), dense[i][:, j], "the renumbered operator")
        check.close(moved.T @ np.eye(rows), dense[i][:, j].T, "the transpose of the renumbered operator")
        if (matrices := moved.matrices()) is not None:
            check.close(reduce(lambda a, b: a @ b, matrices), dense[i][:, j], "the renumbered operator's matrices")
    if rows:
        for values in (x, x.toarray()):
            channel = Channel("P X", operator, values, "X")
            for form in ("auto", "dense", "sparse"):
                check.close(channel.materialize(np.float64, form), product, f"its channel, {form},")
