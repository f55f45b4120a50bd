"""Classic networks with the choices that make them strong (Luo, Shi and Wu, 2024)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_choice, check_integer
from pegfan.models._layers import Weight, check_sizes, propagate
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import relu_dropout
from pegfan.models.gat import Attention

CONVOLUTIONS = ("gcn", "sage", "gat")
NORMS = ("none", "batch", "layer")


class ClassicGNN(GraphNetwork):
    """GCN, GraphSAGE or GAT with residual connections, normalisation, depth and width as choices.

    ::

        H_l = dropout(ReLU(norm(conv_l(H_(l-1)) + H_(l-1) R_l + r_l))),   Ŷ = log softmax(H_L V + c)

    Parameters
    ----------
    features, classes, hidden, layers, dropout
        As in `MLP`; there are `layers` convolutions.
    convolution
        ``"gcn"``, ``"sage"`` or ``"gat"``.
    residual
        Whether there are R_l and r_l; SAGE's own part, which it always has, is the same thing.
    norm
        ``"none"``, ``"batch"`` or ``"layer"``.
    heads
        Of attention; they divide `hidden`.

    Examples
    --------
    >>> import torch
    >>> model = ClassicGNN(5, 3, convolution="sage", norm="layer")
    >>> model(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        layers: int = 4,
        dropout: float = default.DROPOUT,
        convolution: str = "gcn",
        residual: bool = True,
        norm: str = "batch",
        heads: int = 1,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, layers=layers)
        check_choice(convolution, "convolution", CONVOLUTIONS)
        check_choice(norm, "norm", NORMS)
        if hidden % check_integer(heads, "heads", 1):
            raise ValueError(f"{heads} heads do not divide {hidden} hidden columns")
        rows = [features, *[hidden] * (layers - 1)]
        attention = convolution == "gat"
        self.layers: Any = nn.ModuleList(
            Attention(width, hidden // heads, heads, True) if attention else Weight(width, hidden) for width in rows
        )
        apart = residual or convolution == "sage"
        self.residual = nn.ModuleList(Weight(width, hidden) for width in rows) if apart else None
        kinds: Any = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
        self.norms = nn.ModuleList(kinds[norm](hidden) for _ in rows)
        self.output = Weight(hidden, classes)
        self.convolution, self.dropout = convolution, dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        matrix = graph.mean if self.convolution == "sage" else graph.normalized
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            around = layer(h, graph) if self.convolution == "gat" else propagate(matrix, h, layer)
            h = norm(around if self.residual is None else around + self.residual[i](h))
            h = relu_dropout(h, self.dropout, self.training)
        return F.log_softmax(self.output(h), dim=-1)
