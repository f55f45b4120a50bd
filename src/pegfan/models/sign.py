"""SIGN (Frasca et al., 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_integer
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import dropout, linear, relu_dropout


class SIGN(GraphNetwork):
    """Features smoothed by every power up to r, side by side, each with weights of its own.

    ::

        H = ReLU(‖_k (P^k X W_k + b_k), k = 0..r),   Ŷ = log softmax(H V + c)

    with dropout before both layers; P is GCN's matrix.

    Parameters
    ----------
    features, classes, dropout
        As in `MLP`.
    hidden
        The width of a power.
    hops
        r.

    Examples
    --------
    >>> import torch
    >>> SIGN(5, 3)(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        hops: int = default.HOPS,
        dropout: float = default.DROPOUT,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden)
        self.hops, self.dropout = check_integer(hops, "hops", 0), dropout
        self.powers: Any = nn.ModuleList(Weight(features, hidden) for _ in range(hops + 1))
        self.output = Weight((hops + 1) * hidden, classes)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        h = dropout(h, self.dropout, self.training)
        blocks = [linear(h, layer.weight) for layer in self.powers]
        for k in range(self.hops, 0, -1):  # all powers that are left, at once: P acts on every column by itself
            above = graph.normalized @ torch.cat(blocks[k:], dim=1)
            blocks[k:] = torch.split(above, [block.shape[1] for block in blocks[k:]], dim=1)
        parts = [block + layer.bias for block, layer in zip(blocks, self.powers, strict=True)]
        return F.log_softmax(self.output(relu_dropout(torch.cat(parts, dim=1), self.dropout, self.training)), dim=-1)
