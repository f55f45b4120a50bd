"""Torch tensors: gradients of linear maps, and sparse products on devices that compiled loops do not reach."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Map = Callable[[Any], Any]


class _Linear(torch.autograd.Function):
    """x ↦ A x, with the gradient g ↦ Aᵀ g; the gradient is again such a map, so it can be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, forward: Map, transposed: Map) -> torch.Tensor:
        ctx.maps = transposed, forward
        if x.device.type == "cpu":
            return torch.from_numpy(np.ascontiguousarray(forward(x.detach().numpy())))
        result: torch.Tensor = forward(x.detach())
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return linear(gradients[0], *ctx.maps), None, None


def linear(x: torch.Tensor, forward: Map, transposed: Map) -> torch.Tensor:
    """A x for a tensor x, differentiable."""
    result: torch.Tensor = _Linear.apply(x, forward, transposed)  # type: ignore[no-untyped-call]
    return result


def sparse_csr(matrix: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A SciPy matrix as a torch sparse CSR tensor."""
    with warnings.catch_warnings():  # torch calls its CSR layout "beta"
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype("int64")),
            torch.from_numpy(matrix.indices.astype("int64")),
            torch.from_numpy(matrix.data).to(dtype),
            size=matrix.shape,
            device=device,
        )
