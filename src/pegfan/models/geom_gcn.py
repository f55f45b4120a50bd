"""GEOM-GCN (Pei et al., 2020)."""

from __future__ import annotations

from typing import Any

import torch
from scipy.sparse import csr_array, diags_array
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes, side_by_side
from pegfan.models._neighbours import GraphNetwork, Neighbours, as_sparse, by_type, inverse_roots
from pegfan.models._sparse import Sparse, dropout

DIVISIONS = 9
"""Two spaces, the graph and the plane, by four directions in the plane; and the node itself."""


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
        n = int(x.shape[0])
        matrices = self.divisions(edge_index, edge_weight, edge_type, n)
        if len(matrices) > len(self.first):
            raise ValueError(f"the edges have {len(matrices)} divisions, and the network has {len(self.first)}")
        matrices = [*matrices, *[Sparse(csr_array((n, n)))] * (len(self.first) - len(matrices))]
        x = dropout(x, self.dropout, self.training)
        h = [matrix @ block for matrix, block in zip(matrices, side_by_side(x, self.first), strict=True)]
        whole = dropout(F.relu(torch.cat(h, dim=1)), self.dropout, self.training)
        parts = [matrix @ block for matrix, block in zip(matrices, side_by_side(whole, self.output), strict=True)]
        return F.log_softmax(torch.stack(parts).sum(dim=0) / len(self.output), dim=-1)

    @staticmethod
    def divisions(edge_index: Any, edge_weight: Any, edge_type: Any, n: int) -> Any:
        """One matrix per division."""
        if edge_type is not None:
            return by_type(edge_index, edge_weight, edge_type, n, _normalized)
        graph = Neighbours.of(edge_index, edge_weight, n)
        return graph.keep("geometry", lambda: _geometry(graph))


def _normalized(matrices: list[csr_array]) -> list[Sparse]:
    """Divide the matrices by the roots of the degrees in all of them together."""
    if not matrices:
        return []
    root = diags_array(inverse_roots(sum(matrices[1:], matrices[0])))
    return as_sparse([root @ matrix @ root for matrix in matrices])


def _geometry(graph: Neighbours) -> Any:
    from pegfan.graph import Graph
    from pegfan.relations import geom_divisions, geom_relations

    whole = Graph.from_scipy(graph.matrix.T, directed=True)  # edges from source to target
    return as_sparse(geom_divisions(whole, geom_relations(whole)))
