"""GraphSAGE with the mean (Hamilton, Ying and Leskovec, 2017)."""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes, propagate
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, relu_dropout


class GraphSAGE(GraphNetwork):
    """Every layer sees a node and the mean of its neighbours apart.

    ::

        H_l = ReLU(H_(l-1) U_l + D⁻¹ A H_(l-1) W_l + b_l)

    with H_0 = X, dropout before every layer, and log softmax in place of the last ReLU. (All neighbours, no sampling.)

    Parameters
    ----------
    features, classes, hidden, layers, dropout
        As in `MLP`.

    Examples
    --------
    >>> import torch
    >>> model = GraphSAGE(5, 3)
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
        pairs = list(itertools.pairwise(sizes))
        self.own = nn.ModuleList(Weight(a, b, bias=False) for a, b in pairs)
        self.around: Any = nn.ModuleList(Weight(a, b) for a, b in pairs)
        self.dropout = dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        h = dropout(h, self.dropout, self.training)
        last = len(self.own) - 1
        for i, (own, around) in enumerate(zip(self.own, self.around, strict=True)):
            h = own(h) + propagate(graph.mean, h, around)
            if i < last:
                h = relu_dropout(h, self.dropout, self.training)
        return F.log_softmax(h, dim=-1)
