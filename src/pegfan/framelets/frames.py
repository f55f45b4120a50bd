"""Several trees at once: a tight frame that no single tree leaves its edges in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from pegfan import _defaults as default
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_integer, check_list
from pegfan.framelets._signals import as_signal, stack_rows
from pegfan.framelets.coefficients import Coefficients
from pegfan.framelets.operators import Operator
from pegfan.framelets.shrinkage import Shrinkage
from pegfan.framelets.system import FrameletSystem, Rule
from pegfan.graph import Graph
from pegfan.running import Progress, Step
from pegfan.trees import build_tree

__all__ = ["FrameletFrame"]


class FrameletFrame(Sequence[FrameletSystem]):
    """Framelet systems F_1, ..., F_T on different trees of one graph, together one tight frame F = (F_1; ...; F_T)/√T.

    FᵀF = (F_1ᵀF_1 + ... + F_TᵀF_T)/T = I. A single tree cuts a graph somewhere, and what is shrunk in its coefficients
    shows these cuts; the mean over many trees does not, as the mean over shifts does not for wavelets (cycle spinning).

    Parameters
    ----------
    systems
        Systems on trees of the same nodes.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(63)])
    >>> frame = pf.FrameletFrame.of(graph, trees=8)
    >>> frame
    FrameletFrame(8 trees of 64 nodes, 512 framelets)
    >>> f = np.arange(64.0)
    >>> c = frame.decompose(f)
    >>> bool(np.isclose(c @ c, f @ f)), bool(np.allclose(frame.reconstruct(c), f))
    (True, True)
    """

    def __init__(self, systems: Sequence[FrameletSystem]) -> None:
        self.systems = tuple(check_list(systems, "systems", FrameletSystem))
        if not self.systems:
            raise ValueError("a frame needs at least one system")
        sizes = {system.n for system in self.systems}
        if len(sizes) > 1:
            raise ValueError(f"the systems of a frame stand on the same nodes; these have {sorted(sizes)} of them")

    @classmethod
    def of(
        cls,
        graph: Graph,
        trees: int = default.TREES,
        *,
        progress: Progress | None = None,
    ) -> FrameletFrame:
        """A frame for signals, on the trees of the seeds 0, 1, ..., trees − 1.

        Every tree halves its clusters (`build_tree` with ``h=2``), so that its framelets, which ignore constants
        (``weights="size"``), are an orthonormal basis: n coefficients per tree, which is the least. Other trees and
        filters are given as systems: ``FrameletFrame([FrameletSystem(build_tree(graph, h=4, seed=s)) ...])``.

        Parameters
        ----------
        graph
            The graph.
        trees
            T, how many.
        progress
            Called with a `pegfan.running.Step` per tree.
        """
        systems = []
        for seed in range(check_integer(trees, "trees", least=1, most=10_000)):
            if progress:
                progress(Step(seed, trees, f"tree {seed + 1} of {trees}"))
            tree = build_tree(graph, "matching", 2, seed=seed)
            systems.append(FrameletSystem(tree, weights="size"))
        return cls(systems)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.systems[0].n

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where the coefficients of every system start, and where the last ones end."""
        return (0, *accumulate(system.count() for system in self.systems))

    def decompose(self, f: Any) -> Any:
        """F f: the coefficients of all systems, one system after the other, with the energy of the signal."""
        f = as_signal(f, self.n) * len(self) ** -0.5
        if not isinstance(f, np.ndarray):
            return stack_rows([system.decompose(f).array for system in self.systems])
        c = np.empty((self.offsets[-1], *f.shape[1:]), f.dtype)
        for system, start, end in self._places():
            system.decompose(f, out=c[start:end])
        return c

    def reconstruct(self, coefficients: Any) -> Any:
        """Fᵀ c: the signal whose coefficients these are, or else the nearest one's."""
        c = as_signal(coefficients, self.offsets[-1], "the coefficient array")
        parts = [Coefficients(c[start:end], system, 1) for system, start, end in self._places()]
        total = self[0].reconstruct(parts[0])
        if not isinstance(total, np.ndarray):
            for part in parts[1:]:
                total = total + part.system.reconstruct(part)
            return total * len(self) ** -0.5
        one = np.empty_like(total)
        for part in parts[1:]:
            total += part.system.reconstruct(part, out=one)
        total *= len(self) ** -0.5
        return total

    def denoise(self, f: Any, threshold: float | Rule = default.RULE, sigma: Any = None) -> Any:
        """Remove noise: shrink the framelet coefficients of all trees, keep the scaling ones, reconstruct.

        Parameters
        ----------
        f
            A signal; every column is treated by itself.
        threshold
            A rule of `FrameletSystem.denoise`, or a number. ``"empirical"`` learns from the coefficients of all trees
            together, scale by scale; the others look at every tree by itself.
        sigma
            The noise's standard deviation: a number, or one per node. By default one number per column, from the
            median absolute deviation of the finest levels.

        Examples
        --------
        Many trees see more than one:

        >>> import numpy as np
        >>> import pegfan as pf
        >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(255)])
        >>> clean = np.where(np.arange(256) < 100, 1.0, -1.0)
        >>> noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(256)
        >>> frame = pf.FrameletFrame.of(graph)
        >>> error = [np.square(one.denoise(noisy) - clean).mean() for one in (frame, frame[0])]
        >>> bool(error[0] < error[1] < np.square(noisy - clean).mean())
        True
        """
        return self.reconstruct(self._shrinkage(self.decompose(f), threshold, None, sigma))

    def operator(self) -> Operator:
        """F as a linear operator."""
        return Operator("F", (self.offsets[-1], self.n), self.decompose, self.reconstruct)

    @property
    def scales(self) -> IntArray:
        """The scale of every coefficient: log₂ of its cluster's size, rounded; −1 for scaling coefficients."""
        return self._shrinkage.scales

    @property
    def groups(self) -> list[IntArray]:
        """The places of the framelets of every scale; the coarsest ones together, until there are enough of them."""
        return self._shrinkage.groups

    def noise(self, sigma: Any) -> FloatArray:
        """The standard deviation of the noise of every coefficient, from that of the nodes: a number, or one each."""
        return self._shrinkage.noise(sigma)

    @cached_property
    def norms(self) -> FloatArray:
        """The norms of the framelets, without the factor 1/√T; those of scaling vectors are 1."""
        return np.asarray(self._shrinkage.norms * len(self) ** 0.5)

    @cached_property
    def _shrinkage(self) -> Shrinkage:
        return Shrinkage(self.systems, share=len(self) ** -0.5)

    def permute(self, perm: Any) -> FrameletFrame:
        """The same frame on renumbered nodes: new node i is old node ``perm[i]``."""
        return FrameletFrame([system.permute(perm) for system in self.systems])

    def _places(self) -> Iterator[tuple[FrameletSystem, int, int]]:
        return zip(self.systems, self.offsets, self.offsets[1:], strict=False)

    def __len__(self) -> int:
        return len(self.systems)

    def __getitem__(self, place: Any) -> Any:
        return self.systems[place]

    def __repr__(self) -> str:
        return f"FrameletFrame({len(self)} trees of {self.n} nodes, {self.offsets[-1]} framelets)"
