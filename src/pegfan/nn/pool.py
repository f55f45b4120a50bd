"""Pooling by the tree, and the way back."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from pegfan import _defaults as default
from pegfan._checks import check_choice, check_flag, check_integer, check_kind
from pegfan.nn._forest import MOST_LEVELS, Forest, Trees, forest_of, sums

REDUCES = ("mean", "sum", "max", "framelet")


class Pooling(NamedTuple):
    """How nodes were pooled, for the way back.

    Attributes
    ----------
    cluster
        The cluster of every node, a row of the coarse x.
    weight
        What a cluster's value is multiplied by on the way back, for every node; None where it is copied.
    detail
        What the clusters do not know of x, of ``reduce="framelet"``: its part in finer framelets. None otherwise.
    """

    cluster: torch.Tensor
    weight: torch.Tensor | None = None
    detail: torch.Tensor | None = None


class FrameletPool(nn.Module):
    r"""Pool the nodes of graphs to clusters of their trees; several of them, one after the other, go up a hierarchy.

    Parameters
    ----------
    levels
        How many levels of the tree to go up at once; one divides nodes by up to h. Trees with fewer become their root.
    reduce : {"mean", "sum", "max", "framelet"}
        What becomes of a cluster's rows. "framelet" is the scaling coefficient, :math:`\sqrt{|c|}` times the mean: what
        the framelets of finer levels hold is kept as ``detail``, and `unpool` gives back x exactly.
    h, direction, ties
        Of trees, as in `FrameletConv`.
    method
        Likewise; "matching" joins nodes along their heaviest edges.

    Examples
    --------
    >>> import torch
    >>> pool = FrameletPool(reduce="framelet", h=2)
    >>> pool
    FrameletPool(levels=1, reduce='framelet', h=2)
    >>> x = torch.tensor([[4.0], [2.0], [1.0], [0.0]])
    >>> edge_index = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
    >>> edge_weight = torch.tensor([3.0, 1.0, 2.0, 3.0, 1.0, 2.0])
    >>> coarse, edges, weights, batch, pooling = pool(x, edge_index, edge_weight)
    >>> pooling.cluster.tolist()
    [1, 1, 0, 0]
    >>> edges.tolist(), weights.tolist()
    ([[0, 1], [1, 0]], [1.0, 1.0])
    >>> pool.unpool(coarse, pooling, detail=False).flatten()
    tensor([3.0000, 3.0000, 0.5000, 0.5000])
    >>> pool.unpool(coarse, pooling).flatten()
    tensor([4., 2., 1., 0.])
    """

    def __init__(
        self,
        levels: int = 1,
        reduce: Literal["mean", "sum", "max", "framelet"] = "mean",
        *,
        h: int = default.H,
        method: str = "matching",
        direction: Literal["in", "out", "symmetric"] = "in",
        ties: Literal["join", "break"] = "join",
    ) -> None:
        super().__init__()
        self.levels = check_integer(levels, "levels", least=1, most=MOST_LEVELS)
        check_choice(reduce, "reduce", REDUCES)
        self.reduce = reduce
        self.trees = Trees(h, method, "size", direction, ties).checked()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Pooling]:
        """The coarse x, its edges, their weights, the graph of every cluster, and the way back.

        An edge of the coarse graph has the sum of the weights between two clusters; those inside a cluster go.
        The parameters are those of `FrameletConv.forward`.
        """
        forest = forest_of(x, edge_index, edge_weight, batch, self.trees)
        cluster, size, edges, weights, first = self._coarse(forest, x.device)
        graphs = x.new_zeros(x.shape[0], dtype=torch.long) if batch is None else batch
        weight = detail = None
        if self.reduce == "max":
            where = cluster[:, None].expand_as(x)
            coarse = x.new_zeros(len(size), x.shape[1]).scatter_reduce(0, where, x, "amax", include_self=False)
        else:
            coarse = sums(x, forest, self.levels)
        if self.reduce == "mean":
            coarse = coarse / size[:, None].to(x.dtype)
        if self.reduce == "framelet":
            # φ of a cluster is constant where children weigh by their sizes, whatever levels are between.
            root = size.sqrt()
            coarse = coarse / root[:, None].to(x.dtype)
            weight = (1 / root)[cluster].to(x.dtype)
            detail = x - weight[:, None] * coarse.index_select(0, cluster)
        # Copies: what is kept must not change with what was given away.
        pooling = Pooling(cluster.clone(), weight, detail)
        return coarse, edges.clone(), weights.to(x.dtype, copy=True), graphs[first], pooling

    def unpool(self, x: Tensor, pooling: Pooling, detail: bool = True) -> Tensor:
        """The way back: every node gets the row of its cluster.

        Parameters
        ----------
        x
            One row per cluster.
        pooling
            What `forward` gave. ``pooling._replace(detail=...)`` adds something else than what was there.
        detail
            Whether the detail that ``reduce="framelet"`` kept is added.
        """
        check_kind(pooling, "pooling", Pooling)
        found = x.index_select(0, pooling.cluster)
        if pooling.weight is not None:
            found = pooling.weight[:, None].to(x.dtype) * found
        if check_flag(detail, "detail") and pooling.detail is not None:
            if pooling.detail.shape != found.shape:
                raise ValueError(
                    f"x has {x.shape[1]} columns and the detail {pooling.detail.shape[1]}: pass detail=False, or "
                    "another one by pooling._replace(detail=...)"
                )
            found = found + pooling.detail
        return found

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _coarse(self, forest: Forest, device: torch.device) -> tuple[Any, ...]:
        return forest.on(device, self.levels, lambda: _coarse(forest, self.levels))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(levels={self.levels}, reduce={self.reduce!r}, h={self.trees.h})"


def _coarse(forest: Forest, levels: int) -> tuple[Any, ...]:
    """Clusters of nodes and their sizes; edges between clusters and their weights; a node of every cluster."""
    cluster = forest.cluster(levels)
    size = np.bincount(cluster)
    first = np.zeros(len(size), np.int64)
    first[cluster[::-1]] = np.arange(forest.n)[::-1]
    members = csr_array((np.ones(forest.n), (np.arange(forest.n), cluster)), shape=(forest.n, len(size)))
    between = (members.T @ forest.adjacency @ members).tocoo()
    kept = np.flatnonzero(between.coords[0] != between.coords[1])
    kept = kept[np.lexsort([axis[kept] for axis in between.coords[::-1]])]
    edges = np.array([axis[kept] for axis in between.coords], np.int64)
    return cluster, size.astype(np.float64), edges, between.data[kept], first
