"""GCN (Kipf and Welling, 2017)."""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes, propagate
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, relu_dropout


class GCN(GraphNetwork):
    """Graph convolutions: every layer averages over a node and its neighbours.

    ::

        H_l = ReLU(P H_(l-1) W_l + b_l),   P = D^(-1/2) (A + I) D^(-1/2)

    with H_0 = X, dropout before every layer, and log softmax in place of the last ReLU.

    Parameters
    ----------
    features, classes, hidden, layers, dropout
        As in `MLP`.

    Examples
    --------
    >>> import torch
    >>> model = GCN(5, 3)
    >>> model(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        layers: int = default.LAYERS,
        dropout: float = default.DROPOUT,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, layers=layers)
        sizes = [features, *[hidden] * (layers - 1), classes]
        self.layers: Any = nn.ModuleList(Weight(a, b) for a, b in itertools.pairwise(sizes))
        self.dropout = dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        h = dropout(h, self.dropout, self.training)
        for layer in self.layers[:-1]:
            h = relu_dropout(propagate(graph.normalized, h, layer), self.dropout, self.training)
        return F.log_softmax(propagate(graph.normalized, h, self.layers[-1]), dim=-1)
