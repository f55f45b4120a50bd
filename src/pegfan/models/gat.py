"""GAT (Veličković et al., 2018)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_integer
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork, Neighbours
from pegfan.models._sparse import attend, dropout


class Attention(nn.Module):
    """One layer of GAT: some heads, side by side or averaged.

    ::

        z = x W,   α_ij = softmax_j LeakyReLU(a · z_j + b · z_i),   y_i = Σ_j α_ij z_j + c

    over the neighbours j of node i and i itself, for every head.

    Parameters
    ----------
    rows, columns, heads
        Of x, of a head's output, and how many heads.
    joined
        Whether heads stand side by side; otherwise they are averaged.
    """

    def __init__(self, rows: int, columns: int, heads: int, joined: bool) -> None:
        super().__init__()
        self.weight = Weight(rows, heads * columns, bias=False)
        self.source, self.target = (nn.Parameter(torch.empty(heads, columns)) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(heads * columns if joined else columns))
        self.heads, self.joined = heads, joined
        nn.init.xavier_uniform_(self.source)
        nn.init.xavier_uniform_(self.target)

    def forward(self, x: Any, graph: Neighbours, rate: float = 0.0) -> Tensor:
        """Attend, dropping attention at a rate."""
        z = self.weight(x)
        z = z.view(len(z), *self.source.shape)
        scores = (torch.einsum("nhc,hc->nh", z, part) for part in (self.source, self.target))
        y = attend(graph.attended, z, *scores, rate=rate, weighted=False)
        return (y.flatten(1) if self.joined else y.mean(dim=1)) + self.bias


class GAT(GraphNetwork):
    """Graph attention: how much a node listens to a neighbour depends on both.

    Layers are `pegfan.models.gat.Attention`: all but the last with heads side by side and ELU after them, the last with
    one head and log softmax. Weights of edges are not looked at.

    Parameters
    ----------
    features, classes, layers, dropout
        As in `MLP`; attention is dropped as well.
    hidden
        The width of a layer, all heads together.
    heads
        Of all layers but the last; they divide `hidden`.

    Examples
    --------
    >>> import torch
    >>> model = GAT(5, 3)
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
        heads: int = 8,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden, layers=layers)
        if hidden % check_integer(heads, "heads", 1):
            raise ValueError(f"{heads} heads do not divide {hidden} hidden columns")
        inner = [features, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList(Attention(rows, hidden // heads, heads, True) for rows in inner[:-1])
        self.layers.append(Attention(inner[-1], classes, 1, False))
        self.dropout = dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        h, graph = self.read(x, edge_index, edge_weight)
        rate = self.dropout if self.training else 0.0
        for layer in self.layers[:-1]:
            h = F.elu(layer(dropout(h, self.dropout, self.training), graph, rate))
        return F.log_softmax(self.layers[-1](dropout(h, self.dropout, self.training), graph, rate), dim=-1)
