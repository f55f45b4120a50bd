"""Pieces that several networks are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from pegfan._checks import check_integer, check_number
from pegfan._limits import check_memory
from pegfan.models._sparse import Sparse, linear

__all__ = ["Weight", "check_sizes", "propagate", "side_by_side"]

_REPEATED = ("layers", "heads", "rounds", "hops", "steps", "divisions", "relations")
"""Sizes that say how often something is made."""


class Weight(nn.Module):
    """x W + b for dense or sparse x, Glorot's start.

    Parameters
    ----------
    rows, columns
        Of W.
    bias
        Whether there is a b.
    """

    def __init__(self, rows: int, columns: int, bias: bool = True) -> None:
        super().__init__()
        check_memory(4.0 * rows * columns, f"a layer of {rows} x {columns} weights")
        try:
            self.weight = nn.Parameter(torch.empty(columns, rows))
        except RuntimeError as error:
            raise MemoryError(f"a layer of {rows} x {columns} weights does not fit into memory") from error
        self.bias = nn.Parameter(torch.zeros(columns)) if bias else None
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Any) -> Tensor:
        """Multiply."""
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.shape[1]} -> {self.weight.shape[0]}"


def side_by_side(x: Any, layers: Iterable[Any]) -> list[Tensor]:
    """Multiply x by the weights of several layers in one product, so that x is read once; biases are left out."""
    weights = [layer.weight for layer in layers]
    whole = linear(x, torch.cat(weights))
    return list(torch.split(whole, [len(weight) for weight in weights], dim=1))


def propagate(matrix: Sparse, x: Any, layer: Weight) -> Tensor:
    """M (x W) + b, in the cheaper order."""
    columns, rows = layer.weight.shape
    if isinstance(x, Sparse) or columns <= rows:
        result = matrix @ linear(x, layer.weight)
    else:
        result = linear(matrix @ x, layer.weight)
    return result if layer.bias is None else result + layer.bias


def check_sizes(dropout: float, **sizes: int) -> None:
    """Refuse sizes below one and rates of dropout that drop everything."""
    for name, value in sizes.items():
        check_integer(
            value,
            name,
            1,
            most=1000 if name in _REPEATED else 2**40,
        )
    if not 0 <= check_number(dropout, "dropout") < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
