"""LINKX (Lim et al., 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, relu_dropout


class LINKX(GraphNetwork):
    """Rows of the adjacency and features, each through a layer of its own, then joined.

    ::

        H_A = A W_A + a,   H_X = X W_X + b,   H = ReLU([H_A ‖ H_X] W + c + H_A + H_X)
        Ŷ = log softmax(ReLU(H U + d) V + e)

    with dropout before U and V. The weights W_A are those of single nodes: a trained network is for its graph only.

    Parameters
    ----------
    features, classes, hidden, dropout
        As in `MLP`.
    nodes
        How many nodes the graph has.

    Examples
    --------
    >>> import torch
    >>> LINKX(5, 3, nodes=4)(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        nodes: int,
        hidden: int = default.HIDDEN,
        dropout: float = default.DROPOUT,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, nodes=nodes)
        self.edges, self.features = Weight(nodes, hidden), Weight(features, hidden)
        self.joined, self.inner, self.output = (
            Weight(2 * hidden, hidden),
            Weight(hidden, hidden),
            Weight(hidden, classes),
        )
        self.nodes, self.dropout = nodes, dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        if graph.n != self.nodes:
            raise ValueError(f"LINKX has weights for the {self.nodes} nodes of its graph, and this one has {graph.n}")
        by_edges, by_features = self.edges(graph.adjacency), self.features(h)
        h = self.joined(torch.cat([by_edges, by_features], dim=1)) + by_edges + by_features
        h = dropout(F.relu(h), self.dropout, self.training)
        return F.log_softmax(self.output(relu_dropout(self.inner(h), self.dropout, self.training)), dim=-1)
