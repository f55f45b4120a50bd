"""GEOM-GCN (Pei et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from scipy.sparse import block_diag, csr_array, diags_array, hstack
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes, side_by_side
from pegfan.models._neighbours import GraphNetwork, Neighbours, by_type, inverse_roots
from pegfan.models._sparse import Sparse, dropout

DIVISIONS = 9
"""Two spaces, the graph and the plane, by four directions in the plane; and the node itself."""


class Divisions(NamedTuple):
    """The matrices M_r of all divisions in two: ``apart`` is diag(M_1, ..., M_R), ``together`` is (M_1 | ... | M_R).

    One product with a large matrix takes the time of nine with small ones, without nine times their overhead.
    """

    size: int
    apart: Sparse
    together: Sparse

    @classmethod
    def of(cls, matrices: Sequence[Any], n: int) -> Self:
        """Those of some matrices, each with a row and a column per node."""
        every = list(matrices)
        if not every:
            return cls(0, Sparse(csr_array((0, 0))), Sparse(csr_array((n, 0))))
        return cls(len(every), Sparse(block_diag(every, format="csr")), Sparse(hstack(every, format="csr")))


class GeomGCN(GraphNetwork):
    """Neighbours in the graph and in a plane, sorted by direction, each division with weights of its own.

    ::

        H = ReLU(‖_r M_r X W_r),   Ŷ = log softmax(mean_r M_r H V_r)

    M_r are the edges of division r, divided by the roots of the degrees in all divisions together; dropout before both
    layers. The divisions are those of `edge_type`, which has the nodes themselves as a division if they are to count;
    without it they are made from the graph and the last one is the nodes, see `pegfan.relations.geom_relations`.

    Parameters
    ----------
    features, classes, dropout
        As in `MLP`.
    hidden
        The width of a division.
    divisions
        How many there are.

    Examples
    --------
    >>> import torch
    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> GeomGCN(5, 3)(torch.ones(4, 5), ring).shape
    torch.Size([4, 3])
    """

    relational = "geometry"

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        dropout: float = default.DROPOUT,
        divisions: int = DIVISIONS,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, divisions=divisions)
        self.first: Any = nn.ModuleList(Weight(features, hidden, bias=False) for _ in range(divisions))
        self.output = nn.ModuleList(Weight(divisions * hidden, classes, bias=False) for _ in range(divisions))
        self.dropout = dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None, edge_type: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node; `edge_type` has the division of every edge, as in PyG's RGCN."""
        x = self.read_features(x)
        found = self.divisions(edge_index, edge_weight, edge_type, int(x.shape[0]))
        if found.size > len(self.first):
            raise ValueError(f"the edges have {found.size} divisions, and the network has {len(self.first)}")
        z = torch.stack(side_by_side(dropout(x, self.dropout, self.training), self.first))[: found.size]
        h = (found.apart @ z.flatten(0, 1)).view_as(z)
        h = torch.cat([*h, *h.new_zeros(len(self.first) - found.size, *h.shape[1:])], dim=1)
        h = dropout(F.relu(h), self.dropout, self.training)
        z = torch.stack(side_by_side(h, self.output))[: found.size]
        return F.log_softmax(found.together @ z.flatten(0, 1) / len(self.output), dim=-1)

    @staticmethod
    def divisions(edge_index: Any, edge_weight: Any, edge_type: Any, n: int) -> Divisions:
        """The matrices of all divisions."""
        if edge_type is not None:
            given: Divisions = by_type(edge_index, edge_weight, edge_type, n, _normalized)
            return given
        graph = Neighbours.of(edge_index, edge_weight, n)
        found: Divisions = graph.keep("geometry", lambda: _geometry(graph))
        return found


def _normalized(matrices: list[csr_array], n: int) -> Divisions:
    """Divide the matrices by the roots of the degrees in all of them together."""
    root = diags_array(inverse_roots(sum(matrices, csr_array((n, n)))))
    return Divisions.of([root @ matrix @ root for matrix in matrices], n)


def _geometry(graph: Neighbours) -> Divisions:
    from pegfan.graph import Graph
    from pegfan.relations import geom_divisions, geom_relations

    whole = Graph(graph.matrix.T, directed=True)  # edges from source to target
    return Divisions.of(geom_divisions(whole, geom_relations(whole)), graph.n)
