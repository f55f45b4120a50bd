"""H2GCN (Zhu et al., 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout


class H2GCN(GraphNetwork):
    """A node, its neighbours and those exactly two steps away, apart; weights only before and after.

    ::

        R_0 = σ(X W),   R_k = [A_1 R_(k-1) ‖ A_2 R_(k-1)],   Ŷ = log softmax([R_0 ‖ R_1 ‖ … ‖ R_K] V)

    A_1 and A_2 are the neighbours one step and exactly two steps away, without self loops and weights, each divided by
    the roots of its own degrees; σ is ReLU or nothing; dropout before V.

    Parameters
    ----------
    features, classes, hidden, dropout
        As in `MLP`.
    rounds
        K: 1 is H2GCN-1.
    relu
        Whether σ is ReLU.

    Examples
    --------
    >>> import torch
    >>> H2GCN(5, 3)(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        rounds: int = 1,
        dropout: float = default.DROPOUT,
        relu: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, rounds=rounds)
        self.first = Weight(features, hidden, bias=False)
        self.output = Weight(hidden * (2 ** (rounds + 1) - 1), classes, bias=False)
        self.rounds, self.dropout, self.relu = rounds, dropout, relu

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        x, graph = self.read(x, edge_index, edge_weight)
        r = self.first(x)
        r = F.relu(r) if self.relu else r
        all_rounds = [r]
        for _ in range(self.rounds):
            r = torch.cat([hop @ r for hop in graph.hops], dim=1)
            all_rounds.append(r)
        return F.log_softmax(self.output(dropout(torch.cat(all_rounds, dim=1), self.dropout, self.training)), dim=-1)
