"""A layer that acts on a signal scale by scale."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from pegfan import _defaults as default
from pegfan._checks import check_flag, check_integer
from pegfan.nn._forest import LEVELS, Parts, Trees, averages, forest_of, lift, powers_of


class FrameletConv(nn.Module):
    r"""A graph convolution by hops and framelets: one linear map for each of them.

    .. math::

       Y = \sum_{i=0}^{r} S^i X\,W_i + \sum_{j=0}^{J-1} F_j S^s X\,V_j + b

    S is the hop matrix and :math:`F_j` projects on a scale of the graph's tree (`FrameletSystem.project`). Scales are
    counted from the leaves, so that those of different graphs mean the same: of J scales, the last one compares nodes
    with the clusters they are in, the one before it these clusters with theirs, and :math:`F_0` is all that is coarser.
    They add up to the identity. Where a tree has fewer levels, scales between are zero.

    Parameters
    ----------
    in_channels, out_channels
        The columns of x, and of what the layer returns.
    levels
        J, the number of scales.
    kind
        One of those of `pegfan.make_channels`: "a" has x and its scales, "b" r hops as well, "c" r hops and the scales
        of S x (so s = 1), "as" x and the scales of S x.
    hops
        r; not used by "a" and "as".
    hop
        A kind of `pegfan.channels.hop_matrix`. The paper takes "S" for heterophilous graphs, "S~" for others.
    h
        The most children of a cluster.
    method
        How trees are built, see `pegfan.build_tree`.
    weights : {"equal", "size"}
        How clusters weigh their children, see `FrameletSystem`.
    direction : {"in", "out", "symmetric"}
        What a node looks at: "in" is at the sources of its edges, as messages of PyG go.
    ties : {"join", "break"}
        What a tree does with nodes that the graph cannot tell apart. "join" keeps them in one cluster, however many
        they are: a renumbered graph has renumbered outputs, whatever x is. "break" keeps clusters at h by choosing
        between such nodes: it has more scales on rings and grids, and its choice shows.
    bias
        Whether there is b.

    Notes
    -----
    Costs the hops and one product n × `in_channels` × `out_channels` for each power of S: coarser scales are handled in
    as many rows as there are clusters. A tree depends on edges and weights only and is kept by their content (the
    newest, up to 8 million nodes in all), so that a module holds nothing but its own weights. Weights of edges have no
    gradient.

    Examples
    --------
    >>> import torch
    >>> conv = FrameletConv(3, 2, levels=3)
    >>> conv
    FrameletConv(3, 2, levels=3, kind='c')
    >>> conv.parts
    ['X', 'S X', 'F_0 S X', 'F_1 S X', 'F_2 S X']
    >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    >>> conv(torch.ones(5, 3), edge_index).shape
    torch.Size([5, 2])
    >>> conv(torch.ones(5, 3), edge_index, batch=torch.tensor([0, 0, 0, 1, 1])).shape  # two graphs, each with its tree
    torch.Size([5, 2])
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        levels: int = LEVELS,
        *,
        kind: str = default.KIND,
        hops: int = 1,
        hop: str = "S",
        h: int = default.H,
        method: str = default.METHOD,
        weights: Literal["equal", "size"] = "equal",
        direction: Literal["in", "out", "symmetric"] = "in",
        ties: Literal["join", "break"] = "join",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels = check_integer(in_channels, "in_channels", least=1)
        self.out_channels = check_integer(out_channels, "out_channels", least=1)
        self.made = Parts(levels, kind, hops, hop).checked()
        self.trees = Trees(h, method, weights, direction, ties).checked()
        self.weight = nn.Parameter(torch.empty(len(self.parts), self.in_channels, self.out_channels))
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(self.out_channels)) if check_flag(bias, "bias") else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for part in self.weight:
            nn.init.xavier_uniform_(part)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def parts(self) -> list[str]:
        """What the rows of `weight` multiply."""
        return self.made.names()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        x
            One row per node.
        edge_index
            Sources and targets of edges, or a sparse matrix (target, source). Repeated edges add up.
        edge_weight
            One number per edge, not negative; by default 1.
        batch
            The graph of every node; by default there is one.
        """
        forest = forest_of(x, edge_index, edge_weight, batch, self.trees)
        if x.shape[1] != self.in_channels:
            raise ValueError(f"x has {x.shape[1]} columns, and the layer was made for in_channels={self.in_channels}")
        powers, projected = self.made.powers, self.made.projected
        steps = powers_of(x, forest, self.made.hop, max(powers, projected))
        tops = averages(steps[projected], forest, self.made.levels)
        scales = self.weight[powers + 1 :].flip(0)  # the finest first
        maps = [*scales[: len(tops) - 1], scales[-1]]
        found: Tensor = steps[projected] @ (maps[0] + self.weight[projected] if projected <= powers else maps[0])
        for power in range(powers + 1):
            if power != projected:
                found = found + steps[power] @ self.weight[power]
        if len(tops) > 1:
            # Σ_j F_j V_j = Σ_t Φ_tᵀ Φ_t (V_t − V_(t−1)) over levels t from the leaves up, in as many rows as there are
            # clusters; the first term is above.
            coarser = [tops[t] @ (maps[t] - maps[t - 1]) for t in range(1, len(tops))]
            found = found + lift([None, *coarser], forest)
        return found if self.bias is None else found + self.bias

    def __repr__(self) -> str:
        channels = f"{self.in_channels}, {self.out_channels}"
        return f"{type(self).__name__}({channels}, levels={self.made.levels}, kind={self.made.kind!r})"
