"""MLP: the features alone."""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, relu_dropout


class MLP(GraphNetwork):
    """A network that does not see the edges: what the features say by themselves.

    ::

        H_1 = ReLU(X W_1 + b_1),  ...,  Ŷ = log softmax(H_(L-1) W_L + b_L)

    with dropout before every layer.

    Parameters
    ----------
    features, classes
        The columns of x, and of the output.
    hidden
        The width of the layers between.
    layers
        L.
    dropout
        The probability that an entry is dropped in training.

    Examples
    --------
    >>> import torch
    >>> MLP(5, 3)(torch.ones(4, 5)).shape
    torch.Size([4, 3])
    """

    needs_edges = False

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
        self.layers = nn.ModuleList(Weight(a, b) for a, b in itertools.pairwise(sizes))
        self.dropout = dropout

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node; the edges are not looked at."""
        del edge_index, edge_weight
        h = dropout(self.read_features(x), self.dropout, self.training)
        for layer in self.layers[:-1]:
            h = relu_dropout(layer(h), self.dropout, self.training)
        return F.log_softmax(self.layers[-1](h), dim=-1)
