"""The paper's network on tensors of PyG."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from pegfan import _defaults as default
from pegfan._checks import check_integer
from pegfan.models import ChannelNetwork
from pegfan.nn._forest import LEVELS, Forest, Parts, Trees, averages, forest_of, lift, powers_of


class PEGFAN(nn.Module):
    """The permutation equivariant graph framelet augmented network, from features and edges to outputs for nodes.

    The channels of `pegfan.make_channels` are made of x, and `pegfan.models.ChannelNetwork` acts on them: a linear map,
    a norm and an attention weight for each, then an MLP. Outputs are not normalised: take ``cross_entropy``.

    Parameters
    ----------
    in_channels
        The columns of x.
    hidden_channels
        The columns that are made of every channel.
    num_layers
        2 is the paper's network; further ones come before the last.
    out_channels
        The columns of the output, such as classes.
    dropout
        The probability that an entry is dropped in training.
    levels
        The scales, counted from the leaves as in `FrameletConv`. With K of `pegfan.build_tree`, the channels are those
        of the paper.
    hops
        r, the highest power of the hop matrix.
    hop_normalize
        Whether each channel's rows are divided by their norms.
    kind, hop, h, method, weights, direction, ties
        As in `FrameletConv`.

    Examples
    --------
    >>> import torch
    >>> model = PEGFAN(3, 16, num_layers=2, out_channels=4, levels=2, hops=1)
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> model(torch.ones(3, 3), edge_index).shape
    torch.Size([3, 4])
    >>> dict(zip(model.parts, model.attention.tolist()))
    {'X': 0.25, 'S X': 0.25, 'F_0 S X': 0.25, 'F_1 S X': 0.25}
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        dropout: float = default.DROPOUT,
        *,
        levels: int = LEVELS,
        kind: str = default.KIND,
        hops: int = default.HOPS,
        hop: str = "S",
        hop_normalize: bool = default.HOP_NORMALIZE,
        h: int = default.H,
        method: str = default.METHOD,
        weights: Literal["equal", "size"] = "equal",
        direction: Literal["in", "out", "symmetric"] = "in",
        ties: Literal["join", "break"] = "join",
    ) -> None:
        super().__init__()
        self.in_channels = check_integer(in_channels, "in_channels", least=1)
        self.made = Parts(levels, kind, hops, hop).checked()
        self.trees = Trees(h, method, weights, direction, ties).checked()
        widths = [self.in_channels] * len(self.parts)
        self.network = ChannelNetwork(widths, out_channels, hidden_channels, num_layers, dropout, hop_normalize)

    def reset_parameters(self) -> None:
        """Draw the weights anew; all channels get the same attention."""
        for layer in self.network.modules():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()
        nn.init.ones_(self.network.attention_logits)

    @property
    def parts(self) -> list[str]:
        """The names of the channels."""
        return self.made.names()

    @property
    def attention(self) -> Tensor:
        """The weights of the channels; they sum to one."""
        return self.network.attention

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Outputs for every node; see `FrameletConv.forward` for the parameters."""
        return self.network.outputs(self.channels(x, edge_index, edge_weight, batch))

    def channels(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> list[Tensor]:
        """What `parts` names. Where x stays the same, make them once and give them to ``model.network``."""
        forest = forest_of(x, edge_index, edge_weight, batch, self.trees)
        made = self.made
        steps: list[Tensor] = powers_of(x, forest, made.hop, max(made.powers, made.projected))
        return [*steps[: made.powers + 1], *projections(steps[made.projected], forest, made.levels)]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def projections(x: Tensor, forest: Forest, levels: int) -> list[Tensor]:
    """F_0 x, ..., F_(levels−1) x: all that is coarse first, then details up to those of single nodes."""
    tops = averages(x, forest, levels)
    found = [lift([*[None] * (len(tops) - 1), tops[-1]], forest)] + [torch.zeros_like(x)] * (levels - len(tops))
    for t in range(len(tops) - 2, -1, -1):  # Φ_tᵀ (1 − Pᵀ P) Φ_t
        found.append(lift([*[None] * t, tops[t], -tops[t + 1]], forest))
    return found
