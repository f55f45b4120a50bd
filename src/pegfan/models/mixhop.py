"""MixHop (Abu-El-Haija et al., 2019)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_integer
from pegfan.models._layers import Weight, check_sizes
from pegfan.models._neighbours import GraphNetwork
from pegfan.models._sparse import Sparse, dropout, linear


class Mix(nn.Module):
    """One layer: powers of P, each with weights of its own; what it gives are the powers' outputs.

    Parameters
    ----------
    rows
        Of the weights.
    columns
        Of every power.
    """

    def __init__(self, rows: int, columns: list[int]) -> None:
        super().__init__()
        self.powers: Any = nn.ModuleList(Weight(rows, width, bias=False) for width in columns)

    def forward(self, x: Any, matrix: Sparse) -> list[Tensor]:
        """P^k x W_k for every k."""
        blocks = [linear(x, layer.weight) for layer in self.powers]
        for k in range(len(blocks) - 1, 0, -1):
            above = matrix @ torch.cat(blocks[k:], dim=1)
            blocks[k:] = torch.split(above, [block.shape[1] for block in blocks[k:]], dim=1)
        return blocks


class MixHop(GraphNetwork):
    """Powers of the smoothing side by side in every layer, so that a layer can take differences of them.

    ::

        H = ReLU(BN(‖_k P^k N(X) W_k)),   Ŷ = log softmax(Σ_k q_k P^k H V_k),   k = 0..K

    q = softmax of trained numbers that start at zero, N divides rows by their norms, BN is batch normalisation with a
    trained shift and no scale; dropout of X and of H. P is GCN's matrix.

    Parameters
    ----------
    features, classes
        As in `MLP`.
    hidden
        The width of the hidden layer, all powers together.
    hops
        K.
    dropout
        Of X.
    layer_dropout
        Of H.
    batch_statistics
        Whether batch normalisation takes the statistics of what it sees in predictions, too, as the published numbers
        do, and not those of the training.

    Examples
    --------
    >>> import torch
    >>> model = MixHop(5, 3).eval()
    >>> model(torch.ones(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        hops: int = 2,
        dropout: float = default.DROPOUT,
        layer_dropout: float = 0.5,
        batch_statistics: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden)
        check_sizes(layer_dropout)
        count = check_integer(hops, "hops", 0) + 1
        if hidden < count:
            raise ValueError(f"hidden must be at least {count}, a column for every power, got {hidden}")
        widths = [hidden // count + (k < hidden % count) for k in range(count)]
        self.first, self.output = Mix(features, widths), Mix(hidden, [classes] * count)
        self.norm = nn.BatchNorm1d(hidden, eps=1e-3, affine=False, track_running_stats=not batch_statistics)
        self.shift = nn.Parameter(torch.zeros(hidden))
        self.q = nn.Parameter(torch.zeros(count))
        self.dropout, self.layer_dropout = dropout, layer_dropout

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node."""
        x, graph = self.read(x, edge_index, edge_weight)
        x = _unit_rows(dropout(x, self.dropout, self.training))
        h = F.relu(self.norm(torch.cat(self.first(x, graph.normalized), dim=1)) + self.shift)
        h = dropout(h, self.layer_dropout, self.training)
        outputs = torch.stack(self.output(h, graph.normalized))
        return F.log_softmax(torch.einsum("k,knc->nc", torch.softmax(self.q, 0), outputs), dim=-1)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The weights of the powers decay, the rest does not."""
        kernels = [value for name, value in self.named_parameters() if "powers" in name]
        rest = [value for name, value in self.named_parameters() if "powers" not in name]
        return [{"params": kernels, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def _unit_rows(x: Any) -> Any:
    """Rows divided by their norms; rows of zeros stay."""
    return x.unit_rows() if isinstance(x, Sparse) else F.normalize(x, dim=1)
