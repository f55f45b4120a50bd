"""Label propagation (Zhou et al., 2004)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pegfan._checks import check_integer, check_number
from pegfan.models._neighbours import GraphNetwork, Neighbours, symmetric
from pegfan.models._sparse import Sparse, check_tensor


class LabelPropagation(GraphNetwork):
    """Training labels spread along the edges; nothing is trained, and features are not looked at.

    ::

        Y_0 = training labels,   Y_t = α S Y_(t-1) + (1-α) Y_0,   S = D^(-1/2) A D^(-1/2)

    and rows of Y_T divided by their sums are the probabilities; nodes that no label reaches get equal ones.

    Parameters
    ----------
    steps
        T.
    alpha
        α, how far labels go.

    Examples
    --------
    >>> import torch
    >>> y = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> LabelPropagation()(y, path).argmax(dim=1)
    tensor([0, 0, 1, 1])
    """

    needs_features = False

    def __init__(self, steps: int = 50, alpha: float = 0.9) -> None:
        super().__init__()
        if not 0 <= check_number(alpha, "alpha") <= 1:
            raise ValueError(f"alpha is between 0 and 1, got {alpha}")
        self.steps, self.alpha = check_integer(steps, "steps", 0, most=10**6), alpha

    def forward(self, y: Tensor, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node; rows of y are one-hot for training nodes and zero for others."""
        check_tensor(y, "y")
        if y.ndim != 2 or y.layout != torch.strided or not y.is_floating_point():
            raise ValueError(f"y must be a dense matrix of numbers, a row per node, got {y.dtype} {tuple(y.shape)}")
        graph = Neighbours.of(edge_index, edge_weight, len(y))
        spread = graph.keep("symmetric", lambda: Sparse(symmetric(graph.matrix)))
        total = y
        for _ in range(self.steps):
            total = self.alpha * (spread @ total) + (1 - self.alpha) * y
        sums = total.sum(dim=1, keepdim=True)
        equal = torch.full_like(total, 1 / y.shape[1])
        return torch.log(torch.where(sums > 0, total / sums.clamp_min(1e-30), equal).clamp_min(1e-12))
