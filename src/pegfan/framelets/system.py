"""Haar-type framelet systems on a hierarchy, and the transforms of signals with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import accumulate, combinations
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array, issparse

from pegfan import _defaults as default
from pegfan._arrays import IntArray
from pegfan._checks import check_list, check_numbers, shown
from pegfan.framelets import shrinkage
from pegfan.framelets._levels import Level, make_levels
from pegfan.framelets._signals import ClassMeans, as_signal, check_out, class_means, is_tensor, stack_rows
from pegfan.framelets._transforms import CompiledTransforms, Transforms, transforms_for
from pegfan.framelets.coefficients import Coefficients
from pegfan.framelets.filters import FAMILIES, Filters
from pegfan.framelets.operators import Operator
from pegfan.trees import Hierarchy

Rule = Literal["empirical", "block", "sure", "bayes", "universal"]
FilterChoice = str | Callable[[int], Filters] | Mapping[Any, Any]


class FrameletSystem:
    """A tight frame of Haar-type framelets on a hierarchy (equations (1) and (2), Theorem 1, Corollary 1).

    A cluster Λ at level j < K has the scaling vector φ_Λ = Σ_ℓ p_ℓ φ_(Λ,ℓ) over its children and framelets
    ψ_(Λ,m) = Σ_ℓ B_mℓ φ_(Λ,ℓ); single nodes have φ = 1. Φ_j and Ψ_j hold those of level j in rows. For every
    level j0, Φ_j0 with Ψ_j0, ..., Ψ_(K−1) is a tight frame: the coefficients of a signal give it back, and
    have its energy.

    Parameters
    ----------
    hierarchy
        The tree.
    filters
        The name of a family; a function from the number of children L to (p, B); or a table of (p, B) keyed by L
        or, for single clusters, by index vector Λ. Your own filters are checked against Theorem 1. The families, the
        first of which is the paper's and the second has the fewest coefficients:

        FAMILIES_AND_WHAT_THEY_ARE
    weights
        p of the named families: ``"equal"`` weighs children equally, as the paper does; ``"size"`` takes
        ``√(|child|/|cluster|)``, so that φ is constant on its cluster and every framelet has mean zero.

    Notes
    -----
    Signals are vectors or matrices with one row per node: NumPy arrays, SciPy sparse matrices (results are
    sparse), torch tensors (gradients flow). float32 and float64 are kept. Memory is read straight through
    when nodes are numbered as they sit on the leaves: work with ``tree.permute(tree.order)`` and
    ``f[tree.order]`` where many large signals are to be transformed, and ``out=`` to use the memory of an
    earlier result again.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> tree = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    >>> system = pf.FrameletSystem(tree)
    >>> c = system.decompose(np.array([3.0, 1, 2, 2, 0, 0, 0, 0]))
    >>> c
    Coefficients(j0=1, [1, 1, 2, 4])
    >>> c.framelets(3).round(3)
    array([1.414, 0.   , 0.   , 0.   ])
    >>> system.reconstruct(c).round(12)
    array([3., 1., 2., 2., 0., 0., 0., 0.])
    """

    _in_c = True  # one p per child is all that the loops in C need to average

    def __init__(
        self,
        hierarchy: Hierarchy,
        filters: FilterChoice = "binary-haar",
        weights: Literal["equal", "size"] = "equal",
    ) -> None:
        if not isinstance(hierarchy, Hierarchy):
            raise TypeError(f"a framelet system stands on a Hierarchy, got {type(hierarchy).__name__}")
        self.hierarchy, self.filters, self.weights = hierarchy, filters, weights
        self._levels = make_levels(hierarchy, filters, weights)
        self._of_kinds: dict[Any, Transforms] = {}

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.hierarchy.n

    @property
    def K(self) -> int:
        """The number of levels."""
        return self.hierarchy.K

    def scaling(self, j: int) -> csr_array:
        """Φ_j: the scaling vectors of level j in rows, N_j × n."""
        self.hierarchy._check_level(j, 1, self.K)
        return _sorted(self._scalings(j)[0])

    def framelets(self, j: int) -> csr_array:
        """Ψ_j: the framelets of the clusters at level j in rows, M_j × n; cluster by cluster, then m."""
        return _sorted(self._level(j).B @ self._scalings(j + 1)[0])

    def matrix(self, j0: int = 1) -> csr_array:
        """All vectors of the frame in rows, M × n: ``matrix(j0) @ f`` are the coefficients of f.

        It is the transpose of the paper's F, and as sparse as Theorem 3 says; transforms do not need it.
        """
        self.hierarchy._check_level(j0, 1, self.K)
        phi = self._scalings(j0)
        psi = (self._level(j).B @ phi[j + 1 - j0] for j in range(j0, self.K))
        return _sorted(csr_array(sparse.vstack([phi[0], *psi], format="csr")))

    def offsets(self, j0: int = 1) -> tuple[int, ...]:
        """Where the parts of the coefficients start: those of Φ_j0, Ψ_j0, ..., Ψ_(K−1), and the end."""
        self.hierarchy._check_level(j0, 1, self.K)
        framelets = (int(level.n_framelets.sum()) for level in self._levels[j0 - 1 :])
        return (0, *accumulate([self._n_scaling(j0), *framelets]))

    def count(self, j0: int = 1) -> int:
        """The number M of vectors in the frame; by Theorem 3 of order n h for the binary Haar system."""
        return self.offsets(j0)[-1]

    def nnz(self, j0: int = 1) -> int:
        """The number of stored entries of ``matrix(j0)``, counted without forming it."""
        self.hierarchy._check_level(j0, 1, self.K)
        return self.n + sum(self._level(j).nnz(self.hierarchy.sizes(j + 1)) for j in range(j0, self.K))

    def n_framelets(self, j: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number M_Λ of framelets of every cluster at level j."""
        return self._level(j).n_framelets

    def norms(self, j: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The norms of the framelets of level j; a unit noise has these standard deviations there."""
        return self._level(j).norms

    def variances(self, variance: Any, j0: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The variance of every coefficient of a signal whose nodes have these, independent of each other.

        The vectors of a cluster's children are apart, so that variances follow equations (1) and (2) with p² and B²:
        the cost is that of `decompose`.
        """
        self.hierarchy._check_level(j0, 1, self.K)
        v = self._variance(variance)[self.hierarchy.order]
        parts = []
        for level in reversed(self._levels[j0 - 1 :]):
            v, framelets = level.variances(v)
            parts.append(framelets)
        return np.concatenate([v, *reversed(parts)])

    def frame_bounds(self, j0: int = 1) -> tuple[float, float]:
        """Frame bounds A ≤ B with A‖f‖² ≤ ‖f̂‖² ≤ B‖f‖², enclosed from the filters; (1, 1) up to rounding."""
        self.hierarchy._check_level(j0, 1, self.K)
        low = high = 1.0
        for level in self._levels[j0 - 1 :]:
            smallest, largest = level.bounds()
            low, high = min(low, 1.0) * max(smallest, 0.0), max(high, 1.0) * largest
        return low, high

    def permute(self, perm: Any) -> FrameletSystem:
        """The same system on renumbered nodes: new node i is old node ``perm[i]``."""
        moved = copy(self)
        moved.hierarchy, moved._of_kinds = self.hierarchy.permute(perm), {}
        return moved

    # ---------------------------------------------------------------- transforms

    def decompose(self, f: Any, j0: int = 1, out: Any = None) -> Coefficients:
        """The coefficients of a signal, by the fast decomposition: level by level, from the leaves up.

        The frame is never formed. The binary Haar system takes Σ L_Λ² multiplications per column over all clusters Λ
        with L_Λ children: at most 2 h (n − 1), and one more for every cluster with a single child.

        Parameters
        ----------
        f
            A signal: n values or an n×d matrix.
        j0
            The level of the scaling coefficients; 1 goes all the way to the root.
        out
            Coefficients of an earlier call (or an array of that shape) to write into; NumPy only.

        Returns
        -------
        Coefficients
            The scaling coefficients of level j0, then the framelet coefficients, coarse to fine.

        Examples
        --------
        >>> import pegfan as pf
        >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
        >>> [part.round(2).tolist() for part in system.decompose([4.0, 2.0, 1.0, 1.0])]
        [[4.0], [2.0], [1.41, 0.0]]
        """
        f = as_signal(f, self.n)
        self.hierarchy._check_level(j0, 1, self.K)
        if out is not None:
            out = check_out(out.array if isinstance(out, Coefficients) else out, (self.count(j0), *f.shape[1:]), f)
        try:
            if isinstance(f, np.ndarray):
                return Coefficients._of(self._transforms(f).decompose(f, j0, out), self, j0)
            return Coefficients(self.operator("analysis", j0) @ f, self, j0)
        except MemoryError as error:
            raise MemoryError(
                f"{self.count(j0):,} coefficients per column do not fit into memory: clusters have up to "
                f"{self.hierarchy.h:,} children; use filters='haar-basis', or a tree with more levels"
            ) from error

    def reconstruct(self, coefficients: Coefficients | Sequence[Any], out: Any = None) -> Any:
        """The signal of some coefficients, by the fast reconstruction: level by level, down to the leaves.

        The frame is never formed, and the cost is that of `decompose`.

        Parameters
        ----------
        coefficients
            What `decompose` gave; or a list of its parts, from which j0 is inferred.
        out
            An array to write the signal into; NumPy only.

        Examples
        --------
        >>> import pegfan as pf
        >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
        >>> c = system.decompose([4.0, 2.0, 1.0, 1.0])
        >>> c.framelets(2)[:] = 0  # the finest details go
        >>> system.reconstruct(c).round(12)
        array([3., 3., 1., 1.])
        """
        c = self._coefficients(coefficients)
        array = as_signal(c.array, self.count(c.j0), "the coefficient array")
        if out is not None:
            out = check_out(out, (self.n, *array.shape[1:]), array)
        if isinstance(array, np.ndarray):
            return self._transforms(array).reconstruct(array, c.j0, out)
        return self.operator("analysis", c.j0).T @ array

    def project(self, f: Any, j: int, classes: Any = None) -> Any:
        """F_j f, the part of a signal at scale j: F_0 = Φ_1ᵀΦ_1 and F_j = Ψ_jᵀΨ_j for 1 ≤ j ≤ K−1.

        Costs O(n) per level, from the leaves up to j, whatever the filters are: by Proposition 1
        Ψ_jᵀΨ_j = Φ_(j+1)ᵀΦ_(j+1) − Φ_jᵀΦ_j. For `classes` see `projections`.
        """
        result = self.operator("projection", j) @ f
        return result if classes is None else class_means(result, classes)

    def projections(self, f: Any, out: Sequence[Any] | None = None, classes: Any = None) -> list[Any]:
        """[F_0 f, F_1 f, ..., F_(K−1) f]; they add up to f.

        Parameters
        ----------
        f
            A signal.
        out
            K arrays of its shape to write into; NumPy only.
        classes
            A class number for every node, such as ``pegfan.trees.canonical_order(graph).classes``: every projection
            is averaged over the nodes of a class. Where a tree had to choose between symmetric nodes, this undoes
            the choice for signals that are constant on classes, as features and S·features are, and their parts still
            add up.

        Examples
        --------
        >>> import pegfan as pf
        >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
        >>> [part.round(12).tolist() for part in system.projections([4.0, 2.0, 1.0, 1.0])]
        [[2.0, 2.0, 2.0, 2.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 0.0, 0.0]]
        """
        f = as_signal(f, self.n)
        if classes is not None:
            if out is not None:
                raise ValueError("out= and classes= do not go together")
            means = ClassMeans(classes, self.n)
            return [means(part, own=True) for part in self.projections(f)]
        if out is not None:
            if len(check_list(out, "out", object)) != self.K:
                raise ValueError(f"out must hold K = {self.K} arrays, got {len(out)}")
            out = [check_out(array, f.shape, f) for array in out]
            if any(np.may_share_memory(a, b) for a, b in combinations(out, 2)):
                raise ValueError("the arrays of out share memory with each other; they must be K different ones")
        if is_tensor(f) or (f.ndim == 1 and issparse(f)):
            return [self.project(f, j) for j in range(self.K)]
        return self._transforms(f).projections(f, range(self.K), out)

    def _projections_out(self, f: Any, order: IntArray) -> list[Any] | None:
        """`projections` of a signal in an order of the nodes, numbered as these are; None if that is not in C."""
        in_c = self._transforms(f)
        return in_c.projections(f, range(self.K), order=order) if isinstance(in_c, CompiledTransforms) else None

    def operator(self, kind: Literal["analysis", "scaling", "framelets", "projection"], j: int = 1) -> Operator:
        """A part of the system as a linear operator that never forms its matrix.

        Parameters
        ----------
        kind
            ``"analysis"``: all coefficients with j0 = j, M × n; ``"scaling"``: Φ_j; ``"framelets"``: Ψ_j;
            ``"projection"``: F_j, n × n.
        j
            The level (for ``"projection"`` the scale, from 0).

        Examples
        --------
        >>> import pegfan as pf
        >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3, 4]]))
        >>> system.operator("framelets", 2)
        <4×5 operator Ψ_2>
        >>> system.operator("framelets", 2).T @ [0, 0, 0, 3]
        array([ 0.        ,  0.        ,  0.        ,  1.73205081, -1.73205081])
        """
        transforms, check = self._transforms, self.hierarchy._check_level
        if kind == "analysis":
            return Operator(
                f"F (j0={j})",
                (self.count(j), self.n),
                lambda x: transforms(x).decompose(x, j),
                lambda c: transforms(c).reconstruct(c, j),
            )
        if kind == "scaling":
            check(j, 1, self.K)
            shape = (self._n_scaling(j), self.n)
            return Operator(f"Φ_{j}", shape, lambda x: transforms(x).average(x, j), lambda c: transforms(c).lift(c, j))
        if kind == "framelets":
            shape = (int(self._level(j).n_framelets.sum()), self.n)
            return Operator(
                f"Ψ_{j}",
                shape,
                lambda x: transforms(x).framelet(x, j),
                lambda c: transforms(c).framelet_adjoint(c, j),
            )
        if kind == "projection":
            check(j, 0, self.K - 1)
            return Operator(
                f"F_{j}",
                (self.n, self.n),
                lambda x: transforms(x).project(x, j),
                lambda x: transforms(x).project(x, j),
            )
        raise ValueError(f"kind must be 'analysis', 'scaling', 'framelets' or 'projection', got {shown(kind)}")

    def denoise(
        self,
        f: Any,
        threshold: float | Sequence[float] | Rule = default.RULE,
        mode: Literal["soft", "hard"] | None = None,
        sigma: Any = None,
        j0: int = 1,
    ) -> Any:
        """Remove noise: shrink the framelet coefficients, keep the scaling ones, reconstruct.

        Parameters
        ----------
        f
            A signal; every column is treated by itself.
        threshold
            A rule, see below; or a number in units of the signal, for framelets of unit norm (others are scaled by
            their norm); or a list of such numbers, one per level of framelets, coarse to fine.
        mode
            ``"soft"`` shrinks what it keeps by the threshold, ``"hard"`` does not; by default soft, and hard for
            ``"universal"``. ``"empirical"`` and ``"block"`` have no threshold, and take none.
        sigma
            The noise's standard deviation: a number, or one per node. By default one number per column, from the
            median absolute deviation of the finest level.
        j0
            The coarsest level.

        Notes
        -----
        Rules look at coefficients in units of their noise, z, and at the levels one by one:

        ``"empirical"``
            The posterior mean of the coefficient, under the prior of largest likelihood for those of its scale
            (clusters of about the same size); it is best on average (``pegfan.framelets.empirical``).
        ``"block"``
            Blocks of framelets decide together: those of a cluster, of siblings, of cousins. With the energy S² of a
            block and its dimension d, factors are (1 − t d/S²)₊ (James and Stein); t and the size of blocks have the
            least of Stein's unbiased risk.
        ``"sure"``
            The threshold with the least of Stein's unbiased risk.
        ``"bayes"``
            The threshold 1/√(mean z² − 1), that is σ²/σ_signal.
        ``"universal"``
            The threshold √(2 ln n), above which noise hardly ever is. Softly, it takes that much from every coefficient
            it keeps, too: in little noise that costs more than the noise, and so it is hard.

        With torch tensors, thresholds and factors are taken for constants by gradients. ``weights="size"`` suits
        signals that are smooth in pieces: its framelets are blind to constants. `FrameletFrame` does the same on many
        trees, and ``pegfan.denoise`` knows more kinds of signals, and missing values.

        Examples
        --------
        >>> import pegfan as pf
        >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
        >>> system.denoise([4.2, 3.8, 1.1, 0.9], threshold=0.5, mode="hard").round(12)
        array([4., 4., 1., 1.])
        >>> system.denoise([4.2, 3.8, 1.1, 0.9], threshold=[0.0, 9.0]).round(12)
        array([4., 4., 1., 1.])
        """
        c = self.decompose(f, j0)
        return self.reconstruct(c.replace(shrinkage.Shrinkage([self], j0)(c.array, threshold, mode, sigma)))

    def compress(self, f: Any, keep: float) -> Coefficients:
        """Keep the largest framelet coefficients of every column, set the others to zero.

        Parameters
        ----------
        f
            A signal.
        keep
            How many to keep: an integer is a count, a float up to 1.0 a fraction of all coefficients. Scaling
            coefficients are always kept. `reconstruct` gives the approximation; an orthonormal system
            (``filters="haar-basis"``) wastes none of them.

        Examples
        --------
        >>> import pegfan as pf
        >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]), "haar-basis")
        >>> system.reconstruct(system.compress([4.2, 3.8, 1.1, 0.9], keep=2)).round(12)
        array([4., 4., 1., 1.])
        """
        return shrinkage.keep_largest(self.decompose(f), keep)

    # -------------------------------------------------------------------- inside

    def _level(self, j: int) -> Level:
        self.hierarchy._check_level(j, 1, self.K - 1)
        return self._levels[j - 1]

    def _n_scaling(self, j: int) -> int:
        return self.hierarchy.n_clusters[j - 1]

    def _variance(self, given: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.asarray(check_numbers(given, "variance", self.n), np.float64)

    def _scalings(self, j0: int) -> list[csr_array]:
        """Φ_j0, ..., Φ_K, by equation (1) from the leaves up; every row is a run of leaves."""
        order, values, leaf = self.hierarchy.order, np.ones(self.n), np.arange(self.n + 1)
        matrices = [csr_array((values, order, leaf), shape=(self.n, self.n))]
        for level in reversed(self._levels[j0 - 1 :]):
            values = values * np.repeat(level.p, np.diff(leaf))
            leaf = leaf[level.first]
            matrices.append(csr_array((values, order, leaf), shape=(len(leaf) - 1, self.n)))
        return matrices[::-1]

    def _transforms(self, x: Any) -> Transforms:
        """The fast transforms of signals of this kind, made once."""
        key = (type(x), x.dtype, getattr(x, "device", None))
        if key not in self._of_kinds:
            self._of_kinds[key] = transforms_for(self._levels, self.hierarchy.order, x, self._in_c)
        return self._of_kinds[key]

    def _coefficients(self, coefficients: Coefficients | Sequence[Any]) -> Coefficients:
        if isinstance(coefficients, Coefficients):
            if coefficients.system is not self and coefficients.system != self:
                raise ValueError(
                    "these coefficients belong to another tree or other filters; decompose with this system"
                )
            return coefficients
        if isinstance(coefficients, (str, bytes)) or not isinstance(coefficients, Sequence):
            raise TypeError(f"reconstruct takes Coefficients or a list of parts, got {type(coefficients).__name__}")
        j0 = self.K + 1 - len(coefficients)
        if not 1 <= j0 <= self.K:
            raise ValueError(f"{len(coefficients)} parts given; this system has 1 to K = {self.K} of them")
        ends = self.offsets(j0)
        parts = [
            as_signal(part, ends[i + 1] - ends[i], f"part {i} of the coefficients")
            for i, part in enumerate(coefficients)
        ]
        try:
            return Coefficients(stack_rows(parts), self, j0)
        except ValueError as error:
            raise ValueError(f"the parts do not have the same number of columns: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrameletSystem):
            return NotImplemented
        return self is other or (self.hierarchy == other.hierarchy and self._same_filters(other))

    __hash__ = None  # type: ignore[assignment]

    def _same_filters(self, other: FrameletSystem) -> bool:
        if isinstance(self.filters, str) and isinstance(other.filters, str):
            return (self.filters, self.weights) == (other.filters, other.weights)
        return all(
            np.array_equal(mine.p, theirs.p) and mine.B.shape == theirs.B.shape and (mine.B != theirs.B).nnz == 0
            for mine, theirs in zip(self._levels, other._levels, strict=True)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_of_kinds": {}}  # they are made again when they are needed

    def __repr__(self) -> str:
        name = self.filters if isinstance(self.filters, str) else "your filters"
        weights = "" if self.weights == "equal" else f", weights={self.weights!r}"
        return f"FrameletSystem({self.hierarchy}, {name}{weights}, {self.count()} framelets)"


FrameletSystem.__doc__ = (FrameletSystem.__doc__ or "").replace(
    "FAMILIES_AND_WHAT_THEY_ARE",
    "\n        ".join(f'* ``"{name}"``: {family.summary}' for name, family in FAMILIES.items()),
)


def _sorted(matrix: csr_array) -> csr_array:
    """A matrix of its own memory with columns in order."""
    matrix = matrix.copy()
    matrix.sort_indices()
    return matrix
