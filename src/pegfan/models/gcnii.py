"""GCNII and GCNII* (Chen et al., 2020)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_flag, check_number
from pegfan._limits import check_memory
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, relu_dropout


class GCNII(GraphNetwork):
    """A deep GCN: every layer sees the first one again, and is near the identity.

    ::

        H_0 = ReLU(X W + b)
        H_l = ReLU((1-α) P H_(l-1) ((1-β_l) I + β_l W_l) + α H_0 ((1-β_l) I + β_l U_l)),   β_l = log(λ/l + 1)
        Ŷ = log softmax(H_L V + c)

    with dropout before every layer. That is GCNII*; without `variant`, U_l = W_l. P is GCN's matrix.

    Parameters
    ----------
    features, classes, hidden, dropout
        As in `MLP`.
    layers
        L.
    alpha, lamda
        α and λ.
    variant
        Whether it is GCNII*.
    scaled
        Whether W_l and U_l are multiplied by 1-α and α, as above and in the paper; the authors' code of GCNII*
        leaves that out.

    Examples
    --------
    >>> import torch
    >>> model = GCNII(5, 3, layers=4)
    >>> model(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        layers: int = 16,
        dropout: float = default.DROPOUT,
        alpha: float = 0.5,
        lamda: float = 0.5,
        variant: bool = True,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, layers=layers)
        check_memory(8.0 * layers * hidden * hidden, "the weights of the network")
        if not 0 <= check_number(alpha, "alpha") <= 1 or check_number(lamda, "lamda") <= 0:
            raise ValueError(f"alpha is between 0 and 1 and lamda positive, got {alpha} and {lamda}")
        self.first, self.output = Weight(features, hidden), Weight(hidden, classes)
        count = 2 if check_flag(variant, "variant") else 1
        self.weights = nn.Parameter(torch.empty(layers, count, hidden, hidden))
        nn.init.uniform_(self.weights, -1 / math.sqrt(hidden), 1 / math.sqrt(hidden))
        self.dropout, self.alpha, self.lamda, self.scaled = dropout, alpha, lamda, scaled

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        x, graph = self.read(x, edge_index, edge_weight)
        first = F.relu(self.first(dropout(x, self.dropout, self.training)))
        h = dropout(first, self.dropout, self.training)
        for around, own in zip(*self._mixed(), strict=True):
            h = torch.addmm((graph.normalized @ h) @ around, first, own)
            h = relu_dropout(h, self.dropout, self.training)
        return F.log_softmax(self.output(h), dim=-1)

    def _mixed(self) -> tuple[Tensor, Tensor]:
        """(1-α) ((1-β_l) I + β_l W_l) and α ((1-β_l) I + β_l U_l), layer by layer."""
        layers, _, hidden, _ = self.weights.shape
        steps = torch.arange(1.0, layers + 1).to(self.weights)[:, None, None, None]
        beta = torch.log(self.lamda / steps + 1)
        share = self.weights.new_tensor([1 - self.alpha, self.alpha])[:, None, None]
        own = (1 - beta) * share * torch.eye(hidden).to(self.weights)
        mixed = own + beta * (share * self.weights if self.scaled else self.weights)
        return mixed[:, 0], mixed[:, 1]
