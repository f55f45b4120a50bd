"""Filters (p, B): how a cluster with L children makes one scaling vector and M framelets of them.

By equations (1) and (2) of the paper, φ_Λ = Σ_ℓ p_ℓ φ_(Λ,ℓ) and ψ_(Λ,m) = Σ_ℓ B_mℓ φ_(Λ,ℓ). Theorem 1: the
system is a tight frame for all levels j0 exactly if B Bᵀ B = B, B p = 0 and rank B = L − 1, for unit p.
Proposition 1: that is the same as BᵀB = I − p pᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import as_array, check_integer, check_sparse
from pegfan._limits import check_memory

TOLERANCE = 1e-8
"""How far a filter may be from Theorem 1's conditions, in the largest absolute entry."""

MAX_CHILDREN = 5_000
"""The most children whose pairs `binary_haar` writes out as a matrix."""


class Filters(NamedTuple):
    """The pair (p, B) of a cluster with L children: p of length L, B sparse of shape M×L."""

    p: FloatArray
    B: csr_array  # the paper's letter


def binary_haar(children: int | ArrayLike) -> Filters:
    """The binary Haar filters of Corollary 1: one row for every pair of children.

    Parameters
    ----------
    children
        The number of children L, for equal weights p = 1/√L; or p itself, a unit vector.

    Returns
    -------
    Filters
        p, and B with M = L(L−1)/2 rows p_ℓ₂ e_ℓ₁ − p_ℓ₁ e_ℓ₂ for ℓ₁ < ℓ₂, in the paper's order
        m(ℓ₁, ℓ₂, L) = (2L − ℓ₁)(ℓ₁ − 1)/2 + ℓ₂ − ℓ₁. With equal weights a row is (1, −1)/√L on its pair.

    Examples
    --------
    >>> import pegfan as pf
    >>> p, B = pf.binary_haar(4)
    >>> (2 * B.toarray()).astype(int)
    array([[ 1, -1,  0,  0],
           [ 1,  0, -1,  0],
           [ 1,  0,  0, -1],
           [ 0,  1, -1,  0],
           [ 0,  1,  0, -1],
           [ 0,  0,  1, -1]])
    """
    p = _weights(children)
    if len(p) > MAX_CHILDREN:
        raise ValueError(
            f"{len(p):,} children have {len(p) * (len(p) - 1) // 2:,} pairs; use haar_basis, or more levels"
        )
    first, second = np.triu_indices(len(p), 1)
    rows = np.column_stack([first, second]).ravel()
    values = np.column_stack([p[second], -p[first]]).ravel()
    indptr = 2 * np.arange(len(first) + 1)
    return Filters(p, csr_array((values, rows, indptr), shape=(len(first), len(p))))


def haar_basis(children: int | ArrayLike) -> Filters:
    """Orthonormal Haar filters: M = L − 1 rows, each comparing the two halves of a run of children.

    Parameters
    ----------
    children
        The number of children L, for equal weights p = 1/√L; or p itself, a unit vector of non-zero entries.

    Returns
    -------
    Filters
        p and B with B Bᵀ = I. The first row splits all children in two runs (the first the longer one by
        at most one), the next rows the runs, breadth first; for L = 2, 4, 8, ... this is the Haar matrix.

    Examples
    --------
    >>> import pegfan as pf
    >>> p, B = pf.haar_basis(4)
    >>> B.toarray().round(3)
    array([[ 0.5  ,  0.5  , -0.5  , -0.5  ],
           [ 0.707, -0.707,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  0.707, -0.707]])
    """
    p = _weights(children)
    if not p.all():
        raise ValueError(f"haar_basis needs non-zero weights, but p[{np.argmin(p != 0)}] is 0; use binary_haar")
    start, _, stop = halves(len(p))
    lengths = stop - start
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - start, lengths)
    values = halves_values(p[None, :])[0]
    return Filters(p, csr_array((values, columns, indptr), shape=(len(lengths), len(p))))


def permuted(w: ArrayLike, max_rows: int = 10_000) -> Filters:
    """Equal weights, and for B every distinct permutation of a zero-sum vector w (Remark 1).

    Parameters
    ----------
    w
        A non-zero vector of length L ≥ 2 whose entries sum to zero; (1, −1, 0, ..., 0) gives each binary
        Haar framelet twice, with both signs. It is scaled so that the frame is tight.
    max_rows
        The most rows that B may have. A vector with repeated entries has L!/(k₁! k₂! ⋯) permutations.

    Examples
    --------
    >>> import pegfan as pf
    >>> p, B = pf.permuted([2, -1, -1])
    >>> B.shape, pf.check_filters(p, B).tight
    ((3, 3), True)
    """
    vector = _vector(w, "w")
    if len(vector) < 2 or not vector.any():
        raise ValueError(f"w must have at least two entries and not be all zero, got {vector.tolist()}")
    if abs(vector.sum()) > TOLERANCE * np.abs(vector).sum():
        raise ValueError(f"the entries of w must sum to zero, they sum to {vector.sum():g}: subtract the mean")
    _, repeats = np.unique(vector, return_counts=True)
    count = factorial(len(vector)) // prod(factorial(int(k)) for k in repeats)
    if count > check_integer(max_rows, "max_rows", least=1):
        many = f"{count:,}" if count.bit_length() < 200 else f"about 10^{int(count.bit_length() * 0.30103)}"
        raise ValueError(f"w has {many} distinct permutations, more than max_rows={max_rows:,}")
    rows = np.array(_distinct_permutations(vector))
    # Σ over permutations of w wᵀ is a multiple of I − 11ᵀ/L; its trace M ‖w‖² tells which.
    rows *= np.sqrt((len(vector) - 1) / (count * (vector @ vector)))
    return Filters(_weights(len(vector)), csr_array(rows))


@dataclass(frozen=True)
class FilterCheck:
    """What `check_filters` found: the residual of each condition, and which of them fail.

    Attributes
    ----------
    unit, kernel, partial_isometry, splitting
        Largest absolute entries of ‖p‖ − 1, of B p, of B Bᵀ B − B (Theorem 1) and of BᵀB − (I − p pᵀ)
        (Proposition 1).
    rank, children
        rank B and L; Theorem 1 asks for rank L − 1.
    tolerance
        What a residual may be.
    """

    unit: float
    kernel: float
    partial_isometry: float
    splitting: float
    rank: int
    children: int
    tolerance: float

    @property
    def failures(self) -> tuple[str, ...]:
        """One sentence per condition that fails, with its residual."""
        failures = []
        if not self.unit <= self.tolerance:
            failures.append(f"p is not of unit length: | ‖p‖ − 1 | = {self.unit:.3g}; divide p by its norm")
        if not self.kernel <= self.tolerance:
            failures.append(f"B p ≠ 0: its largest entry is {self.kernel:.3g}; every row of B must be orthogonal to p")
        if not self.partial_isometry <= self.tolerance:
            failures.append(
                f"B Bᵀ B ≠ B: they differ by {self.partial_isometry:.3g}; the non-zero singular values of B must be 1"
            )
        if self.rank != self.children - 1:
            failures.append(f"rank B is {self.rank}, not L − 1 = {self.children - 1}; B must span all that p leaves")
        return tuple(failures)

    @property
    def tight(self) -> bool:
        """Whether p and B satisfy Theorem 1 (equivalently, with unit p, Proposition 1)."""
        return not self.failures

    def __str__(self) -> str:
        return "tight: Theorem 1 holds" if self.tight else "not tight: " + "; ".join(self.failures)


def check_filters(p: ArrayLike, B: Any, tolerance: float = TOLERANCE) -> FilterCheck:
    """Check Theorem 1's conditions and Proposition 1 for a pair (p, B), and say which fails and by how much.

    Examples
    --------
    >>> import pegfan as pf
    >>> print(pf.check_filters([0.6, 0.8], [[0.8, -0.6]]))
    tight: Theorem 1 holds
    >>> print(pf.check_filters([0.6, 0.8], [[1.6, -1.2]]))
    not tight: B Bᵀ B ≠ B: they differ by 4.8; the non-zero singular values of B must be 1
    """
    p, B = _vector(p, "p"), _matrix(B, len(np.atleast_1d(p)))
    gram = (B.T @ B).toarray()
    cubed = B @ gram - B.toarray()
    eigenvalues = np.linalg.eigvalsh(gram)
    largest = max(float(eigenvalues.max(initial=0.0)), 1e-300)
    return FilterCheck(
        unit=abs(float(np.linalg.norm(p)) - 1.0),
        kernel=float(np.abs(B @ p).max(initial=0.0)),
        partial_isometry=float(np.abs(cubed).max(initial=0.0)),
        splitting=float(np.abs(gram - np.eye(len(p)) + np.outer(p, p)).max(initial=0.0)),
        rank=int((eigenvalues > largest * max(len(p), 8) * 1e-12).sum()),
        children=len(p),
        tolerance=tolerance,
    )


def left_inverse(p: ArrayLike, B: Any) -> FloatArray:
    """The L×(1 + M) matrix C with C (p; B) = I of the appendix, for any (p; B) of full column rank.

    It is the pseudo-inverse; for tight filters that is C = (p, Bᵀ), and fast reconstruction uses no other.

    Examples
    --------
    >>> import pegfan as pf
    >>> p, B = pf.binary_haar(3)
    >>> C = pf.left_inverse(p, B)
    >>> bool(np.allclose(C, np.column_stack([p, B.T.toarray()])))
    True
    """
    p, B = _vector(p, "p"), _matrix(B, len(np.atleast_1d(p)))
    stacked = np.vstack([p, B.toarray()])
    if np.linalg.matrix_rank(stacked) < len(p):
        raise ValueError(f"(p; B) has rank {np.linalg.matrix_rank(stacked)} < L = {len(p)}: it has no left inverse")
    return np.linalg.pinv(stacked)


def tight_filters(p: ArrayLike, B: Any, where: str) -> Filters:
    """A user's (p, B) as `Filters`, or a ValueError that says what Theorem 1 misses."""
    check = check_filters(p, B)
    if not check.tight:
        raise ValueError(f"the filters of {where} do not give a tight frame: " + "; ".join(check.failures))
    p = _vector(p, "p")
    return Filters(p, _matrix(B, len(p)))


def halves(children: int) -> tuple[IntArray, IntArray, IntArray]:
    """The runs [start, stop) of L children that Haar rows split at middle, breadth first."""
    splits: list[tuple[int, int, int]] = []
    runs = [(0, children)]
    while runs:
        below = []
        for start, stop in runs:
            if stop - start >= 2:
                middle = start + (stop - start + 1) // 2
                splits.append((start, middle, stop))
                below += [(start, middle), (middle, stop)]
        runs = below
    table = np.array(splits, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def halves_values(p: FloatArray) -> FloatArray:
    """The entries of the Haar rows, row after row, for many clusters at once: p is (clusters, L).

    A run with masses a and b (sums of p²) in its two halves has the entries p √(b/(a(a+b))) in the first
    and −p √(a/(b(a+b))) in the second: a unit vector orthogonal to p.
    """
    start, middle, stop = halves(p.shape[1])
    if not len(start):
        return np.empty((len(p), 0))
    lengths = np.column_stack([middle - start, stop - middle]).ravel()
    ends = np.cumsum(lengths)
    starts = np.column_stack([start, middle]).ravel()
    columns = np.arange(int(lengths.sum())) - np.repeat(ends - lengths - starts, lengths)
    # Each half is summed by itself: differences of running sums would lose small masses beside large ones.
    mass = np.add.reduceat(p[:, columns] ** 2, ends - lengths, axis=1).reshape(len(p), -1, 2)
    a, b = mass[:, :, 0], mass[:, :, 1]
    root = np.sqrt(a + b)
    scale = np.stack([np.sqrt(b) / (np.sqrt(a) * root), -np.sqrt(a) / (np.sqrt(b) * root)], axis=2).reshape(len(p), -1)
    return np.asarray(np.repeat(scale, lengths, axis=1) * p[:, columns])


@dataclass(frozen=True)
class Family:
    """Filters for every number of children, which have a name.

    Attributes
    ----------
    filters
        The function from a number of children L, or from p itself, to p and B. Where B has its entries depends on L
        alone. The first line of its docstring is the family's description.
    values
        The entries of B for many clusters of L children, row after row: p is (clusters, L). Without it `filters` is
        called for one cluster after the other, which takes its time with ``weights="size"``.
    pairs
        Whether B is that of `binary_haar`, for which loops need p alone.
    """

    filters: Callable[[int | ArrayLike], Filters]
    values: Callable[[FloatArray], FloatArray] | None = None
    pairs: bool = False

    @property
    def summary(self) -> str:
        """What it is."""
        return (self.filters.__doc__ or "").strip().partition("\n")[0]

    def entries(self, p: FloatArray) -> FloatArray:
        """The entries of B, row after row, for every row of p."""
        return self.values(p) if self.values else np.array([self.filters(row).B.data for row in p])


FAMILIES: Mapping[str, Family] = {
    "binary-haar": Family(binary_haar, pairs=True),
    "haar-basis": Family(haar_basis, halves_values),
}
"""The families by name: what `FrameletSystem` takes for ``filters=``."""


# ---------------------------------------------------------------- the boundary


def _numbers(values: Any, what: str) -> FloatArray:
    array = as_array(values, what)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold real numbers, got dtype {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} holds {array[~np.isfinite(array)][0]}; its entries must be finite")
    return array.astype(np.float64)


def _vector(values: ArrayLike, what: str) -> FloatArray:
    array = _numbers(values, what)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{what} must be a vector with at least one entry, got shape {array.shape}")
    return array


def _matrix(values: Any, columns: int) -> csr_array:
    if issparse(values):
        check_sparse(values, "B", None, columns)
        check_memory(8.0 * values.shape[0] * values.shape[1], "B as a dense matrix")
    array = _numbers(values.toarray() if issparse(values) else values, "B")
    if array.size == 0 and columns == 1:
        array = np.empty((0, 1))
    if array.ndim != 2 or array.shape[1] != columns:
        raise ValueError(f"B must have shape (M, L) with L = {columns} as p has, got {array.shape}")
    return csr_array(array)


def _weights(children: int | ArrayLike) -> FloatArray:
    """Equal weights for a number of children, or the unit vector p that was given."""
    if isinstance(children, (int, np.integer)) and not isinstance(children, bool):
        if children < 1:
            raise ValueError(f"a cluster has at least one child, got {children}")
        check_memory(8.0 * check_integer(children, "children"), f"weights of {children} children")
        return np.full(int(children), 1.0 / np.sqrt(children))
    p = _vector(children, "p")
    if abs(float(np.linalg.norm(p)) - 1.0) > TOLERANCE:
        raise ValueError(f"p must be of unit length, its norm is {np.linalg.norm(p):.12g}; divide p by it")
    return p


def _distinct_permutations(vector: FloatArray) -> Sequence[tuple[float, ...]]:
    # One value at a time: repeated entries make the distinct permutations few although L! is large.
    values, counts = np.unique(vector, return_counts=True)
    begun: list[tuple[tuple[float, ...], tuple[int, ...]]] = [((), tuple(counts.tolist()[::-1]))]
    largest_first = values.tolist()[::-1]
    for _ in range(len(vector)):
        begun = [
            ((*row, value), (*left[:i], left[i] - 1, *left[i + 1 :]))
            for row, left in begun
            for i, value in enumerate(largest_first)
            if left[i]
        ]
    return [row for row, _ in begun]
