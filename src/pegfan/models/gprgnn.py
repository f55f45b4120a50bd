"""GPRGNN (Chien et al., 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_integer, check_number
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, relu_dropout


class GPRGNN(GraphNetwork):
    """An MLP whose outputs are smoothed by all powers, with trained weights γ that may be negative.

    ::

        H = MLP(X),   Ŷ = log softmax(Σ_k γ_k P^k H, k = 0..K)

    γ starts as personalised PageRank, γ_k = α (1-α)^k and γ_K = (1-α)^K, and does not decay. P is GCN's matrix.

    Parameters
    ----------
    features, classes, hidden, dropout
        As in `MLP`, of two layers.
    hops
        K.
    alpha
        α: 1 starts with the MLP alone, 0 with the highest power alone.
    smooth_dropout
        The dropout of H.

    Examples
    --------
    >>> import torch
    >>> model = GPRGNN(5, 3, hops=2, alpha=0.5)
    >>> model.gamma.detach()
    tensor([0.5000, 0.2500, 0.2500])
    >>> model(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        dropout: float = default.DROPOUT,
        hops: int = 10,
        alpha: float = 0.1,
        smooth_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden)
        check_integer(hops, "hops", 0, most=1000)
        if not 0 <= check_number(alpha, "alpha") <= 1 or not 0 <= check_number(smooth_dropout, "smooth_dropout") < 1:
            raise ValueError(f"alpha is between 0 and 1 and smooth_dropout below 1, got {alpha} and {smooth_dropout}")
        self.first, self.second = Weight(features, hidden), Weight(hidden, classes)
        start = [alpha * (1 - alpha) ** k for k in range(hops)] + [(1 - alpha) ** hops]
        self.gamma = nn.Parameter(torch.tensor(start, dtype=torch.get_default_dtype()))
        self.dropout, self.smooth_dropout = dropout, smooth_dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        h = relu_dropout(self.first(dropout(h, self.dropout, self.training)), self.dropout, self.training)
        h = dropout(self.second(h), self.smooth_dropout, self.training)
        total = self.gamma[0] * h
        for gamma in self.gamma[1:]:
            h = graph.normalized @ h
            total = total + gamma * h
        return F.log_softmax(total, dim=-1)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The MLP decays, γ does not."""
        rest = [value for name, value in self.named_parameters() if name != "gamma"]
        return [{"params": rest, "weight_decay": weight_decay}, {"params": [self.gamma], "weight_decay": 0.0}]
