"""SGC (Wu et al., 2019)."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from pegfan._checks import check_integer
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, linear


class SGC(GraphNetwork):
    """A linear model of smoothed features: GCN without its ReLU.

    ::

        Ŷ = log softmax(P^K X W + b),   P = D^(-1/2) (A + I) D^(-1/2)

    Parameters
    ----------
    features, classes, dropout
        As in `MLP`.
    hops
        K.

    Examples
    --------
    >>> import torch
    >>> SGC(5, 3)(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(self, features: int, classes: int, hops: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes)
        self.hops, self.dropout = check_integer(hops, "hops", 0), dropout
        self.weight: Any = Weight(features, classes)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        h = linear(dropout(h, self.dropout, self.training), self.weight.weight)
        for _ in range(self.hops):  # P^K (X W): on as many columns as there are classes
            h = graph.normalized @ h
        return F.log_softmax(h + self.weight.bias, dim=-1)
