"""Sparse matrices that multiply tensors: on CPUs in compiled loops, elsewhere by torch; and dropout that is as fast."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from pegfan._checks import check_number, kind_of, shown
from pegfan._matrices import as_matrix
from pegfan._products import keep_mask, sparse_product
from pegfan.framelets._torch import sparse_csr
from pegfan.models import _kernels

__all__ = ["Sparse", "attend", "dropout", "linear", "relu_dropout"]

_COMPILED = (torch.float32, torch.float64)


class Sparse:
    """A constant sparse matrix M, such as a graph's neighbours or a bag of words; ``M @ x`` is differentiable by x.

    Parameters
    ----------
    matrix
        Sparse rows.

    Examples
    --------
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> Sparse(csr_array([[0.0, 2.0], [1.0, 0.0]])) @ torch.tensor([[1.0], [3.0]])
    tensor([[6.],
            [1.]])
    """

    def __init__(self, matrix: Any) -> None:
        matrix = as_matrix(matrix, "matrix")
        csr = csr_array(matrix)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        self.shape: tuple[int, int] = (int(csr.shape[0]), int(csr.shape[1]))
        self.pointers = np.asarray(csr.indptr, np.int64)
        self.indices = np.asarray(csr.indices, np.int32)
        self._data = {np.dtype(csr.data.dtype): csr.data}
        self._given = csr.data
        self._on: dict[Any, Any] = {}

    @classmethod
    def of(cls, x: Any) -> Self:
        """The matrix of a sparse tensor."""
        check_tensor(x, "x")
        whole = x.detach().cpu()
        if whole.layout == torch.sparse_csr:
            parts: Any = (whole.values().numpy(), whole.col_indices().numpy(), whole.crow_indices().numpy())
        else:  # not by torch's CSR layout, which warns that it is new
            pairs = whole.to_sparse_coo().coalesce()
            parts = pairs.values().numpy(), tuple(pairs.indices().numpy())
        return cls(csr_array(parts, shape=tuple(whole.shape)))

    def data(self, dtype: Any) -> Any:
        """Its entries in a dtype."""
        try:
            wanted = np.dtype(dtype)
        except (TypeError, ValueError, RecursionError, SyntaxError):
            raise TypeError(f"dtype must be one that NumPy knows, got {shown(dtype)}") from None
        if wanted not in self._data:
            self._data[wanted] = self._given.astype(wanted)
        return self._data[wanted]

    def scipy(self) -> csr_array:
        """The matrix for SciPy."""
        return csr_array((self._given, self.indices, self.pointers), shape=self.shape)

    @cached_property
    def _turn(self) -> tuple[Any, Any, Any]:
        """Row pointers and columns of the transposed matrix, and where its entries are in this one."""
        places = csr_array((np.arange(len(self.indices)), self.indices, self.pointers), shape=self.shape)
        turned = csr_array(places.T)
        return turned.indptr.astype(np.int64), turned.indices.astype(np.int32), turned.data

    @cached_property
    def t(self) -> Sparse:
        """The transposed matrix."""
        pointers, indices, places = self._turn
        if np.array_equal(pointers, self.pointers) and np.array_equal(indices, self.indices):
            turned = self._given[places]
            if np.array_equal(turned, self._given):
                return self
        return self._with(pointers, indices, self._given[places], self.shape[::-1])

    @classmethod
    def _with(cls, pointers: Any, indices: Any, data: Any, shape: tuple[int, int]) -> Self:
        made = cls.__new__(cls)
        made.shape, made.pointers, made.indices = shape, pointers, indices
        made._data, made._given, made._on = {np.dtype(data.dtype): data}, data, {}
        return made

    def drop(self, rate: float) -> Sparse:
        """The matrix with a part of its entries dropped and the others scaled up."""
        if not 0 <= check_number(rate, "rate") < 1:
            raise ValueError(f"rate must be at least 0 and below 1, got {rate}")
        if rate == 0:
            return self
        mask, scale = _mask(len(self._given), rate)
        data = self.data(np.float32) if self._given.dtype != np.float64 else self._given
        out = np.empty_like(data)
        _kernels.drop(data, mask, data.dtype.type(scale), out)
        return self._scaled(out)

    def unit_rows(self) -> Sparse:
        """The matrix with rows of Euclidean norm one; rows without entries stay."""
        data = self.data(np.float32) if self._given.dtype != np.float64 else self._given
        out = np.empty_like(data)
        _kernels.unit_rows(self.pointers, data, out)
        return self._scaled(out)

    def _scaled(self, data: Any) -> Sparse:
        """The same places with other entries."""
        made = self._with(self.pointers, self.indices, data, self.shape)
        made._turn = self._turn
        return made

    def _tensor(self, device: Any, dtype: Any) -> Any:
        """The matrix as torch has it, on another device."""
        key = str(device), dtype
        if key not in self._on:
            self._on[key] = sparse_csr(self.scipy(), dtype, device)
        return self._on[key]

    def __matmul__(self, x: Tensor) -> Tensor:
        check_tensor(x, "x")
        if x.ndim != 2 or x.shape[0] != self.shape[1]:
            raise ValueError(f"a matrix of {self.shape[1]} columns cannot multiply a tensor of shape {tuple(x.shape)}")
        result: Tensor = _Product.apply(self, x)  # type: ignore[no-untyped-call]
        return result

    def times(self, x: Tensor) -> Tensor:
        """M x without gradients."""
        check_tensor(x, "x")
        if x.ndim != 2 or x.shape[0] != self.shape[1]:
            raise ValueError(f"a matrix of {self.shape[1]} columns cannot multiply a tensor of shape {tuple(x.shape)}")
        if x.layout != torch.strided:
            raise ValueError(f"x must be a dense tensor, got the layout {x.layout}; use x.to_dense()")
        if x.device.type != "cpu":
            result: Tensor = (self._tensor(x.device, x.dtype) @ x).contiguous()
            return result
        if x.dtype not in _COMPILED:  # torch has no such product of half precision on CPUs, either
            return self.times(x.float()).to(x.dtype)
        rows = x.detach().contiguous().numpy()
        out = np.empty((self.shape[0], rows.shape[1]), rows.dtype)
        sparse_product(self.pointers, self.indices, self.data(rows.dtype), rows, out, 0, len(out))
        return torch.from_numpy(out)

    def __repr__(self) -> str:
        return f"Sparse({self.shape[0]} x {self.shape[1]}, {len(self.indices)} entries)"


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Sparse, x: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix.times(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor | None]:
        return None, ctx.matrix.t @ gradients[0] if ctx.needs_input_grad[1] else None


def check_tensor(given: Any, name: str) -> None:
    """Refuse what is not a tensor of real numbers that are there."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} must be a tensor, got {kind_of(given)}")
    if given.is_meta:
        raise ValueError(f"{name} is on the device 'meta', where tensors hold no numbers")
    if given.is_complex():
        raise TypeError(f"{name} must hold real numbers, got {given.dtype}")


def linear(x: Tensor | Sparse, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X Wᵀ + b, for dense or sparse x; W as `torch.nn.Linear` has it."""
    if not isinstance(x, Sparse):
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(f"x holds {x.dtype} and the weights {weight.dtype}; use x.to(...) or model.to(...)")
        if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
            raise ValueError(f"x must have {weight.shape[1]} columns, got the shape {tuple(x.shape)}")
        return F.linear(x, weight, bias)
    result = x @ weight.t()
    return result if bias is None else result + bias


# ----------------------------------------------------------------------- dropout


def _mask(size: int, rate: float) -> tuple[Any, float]:
    """Zeros and ones, and what kept entries are multiplied by; drawn from torch's generator."""
    seed = int(torch.randint(2**62, ()).item())
    threshold = min(round(rate * 65536), 65535)  # something is kept at any rate below 1
    mask = np.empty(size, np.uint8)
    keep_mask(np.uint64(seed), np.uint64(threshold), mask)
    return mask, 65536 / (65536 - threshold)


def _compiled(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype in _COMPILED


def dropout(x: Any, rate: float, training: bool) -> Any:
    """Dropout, of dense or sparse x."""
    if not training or rate == 0:
        return x
    if isinstance(x, Sparse):
        return x.drop(rate)
    return _Drop.apply(x, rate) if _compiled(x) else F.dropout(x, rate)  # type: ignore[no-untyped-call]


def relu_dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """dropout(ReLU(x)) in one pass."""
    if not training or rate == 0:
        return F.relu(x)
    if not _compiled(x):
        return F.dropout(F.relu(x), rate)
    result: Tensor = _ReluDrop.apply(x, rate)  # type: ignore[no-untyped-call]
    return result


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        ctx.mask, scale = _mask(x.numel(), rate)
        ctx.scale = x.detach().numpy().dtype.type(scale)
        return _drop(x, ctx.mask, ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _drop(gradients[0], ctx.mask, ctx.scale), None


def _drop(x: Tensor, mask: Any, scale: Any) -> Tensor:
    values = x.detach().contiguous().numpy()
    out = np.empty_like(values)
    _kernels.drop(values.reshape(-1), mask, scale, out.reshape(-1))
    return torch.from_numpy(out)


class _ReluDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        values = x.detach().contiguous().numpy()
        mask, scale = _mask(values.size, rate)
        ctx.scale = values.dtype.type(scale)
        out = np.empty_like(values)
        _kernels.relu_drop(values.reshape(-1), mask, ctx.scale, out.reshape(-1))
        result = torch.from_numpy(out)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (result,) = ctx.saved_tensors
        given = gradients[0].detach().contiguous().numpy()
        out = np.empty_like(given)
        _kernels.relu_drop_back(given.reshape(-1), result.detach().numpy().reshape(-1), ctx.scale, out.reshape(-1))
        return torch.from_numpy(out), None


# --------------------------------------------------------------------- attention


def attend(
    matrix: Sparse, z: Tensor, source: Tensor, target: Tensor, *, slope: float = 0.2, rate: float = 0.0, weighted: bool
) -> Tensor:
    """Attention over neighbours: row i is Σ_j α_ij f_ij z_j over the entries (i, j) of a matrix, for every head.

    ::

        α_ij = softmax_j LeakyReLU(source_j + target_i)

    Parameters
    ----------
    matrix
        Whose entries (i, j) say that node i attends to node j.
    z
        What nodes give, nodes by heads by columns.
    source, target
        The two parts of the scores, nodes by heads.
    slope
        Of the LeakyReLU.
    rate
        Of the dropout of the attention.
    weighted
        Whether f_ij are the entries of the matrix; otherwise they are one.
    """
    if not _compiled(z):
        return _attend_anywhere(matrix, z, source, target, slope, rate, weighted)
    result: Tensor = _Attend.apply(matrix, z, source, target, slope, rate, weighted)  # type: ignore[no-untyped-call]
    return result


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, matrix: Sparse, z: Tensor, source: Tensor, target: Tensor, slope: float, rate: float, weighted: bool
    ) -> Tensor:
        rows, *scores = (part.detach().contiguous().numpy() for part in (z, source, target))
        size, kind = (len(matrix.indices), scores[0].shape[1]), rows.dtype.type
        weights = np.empty(size, rows.dtype)
        room = np.empty((2, size[1]), rows.dtype)
        _kernels.attention(matrix.pointers, matrix.indices, *scores, kind(slope), weights, room)
        factors = matrix.data(rows.dtype)[:, None] if weighted else np.ones((size[0], 1), rows.dtype)
        if rate:
            mask, scale = _mask(size[0] * size[1], rate)
            factors = np.ascontiguousarray(factors * (mask.reshape(size) * kind(scale)))
        out = np.empty((matrix.shape[0], *rows.shape[1:]), rows.dtype)
        _kernels.attend(matrix.pointers, matrix.indices, weights, factors, rows, out)
        ctx.matrix, ctx.slope, ctx.kept = matrix, kind(slope), (rows, scores, weights, factors)
        return torch.from_numpy(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        matrix, (rows, scores, weights, factors) = ctx.matrix, ctx.kept
        by_z, by_source, by_target = (np.zeros_like(part) for part in (rows, *scores))
        given = gradients[0].detach().contiguous().numpy()
        longest = int(np.diff(matrix.pointers).max(initial=0))
        _kernels.attend_back(
            *(matrix.pointers, matrix.indices, *scores, ctx.slope, weights, factors, rows, given),
            *(by_z, by_source, by_target, np.empty((longest + 1, weights.shape[1]), rows.dtype)),
        )
        return None, *map(torch.from_numpy, (by_z, by_source, by_target)), None, None, None


def _attend_anywhere(
    matrix: Sparse, z: Tensor, source: Tensor, target: Tensor, slope: float, rate: float, weighted: bool
) -> Tensor:
    """Attention in torch, on any device."""
    counts = torch.from_numpy(np.diff(matrix.pointers)).to(z.device)
    i = torch.repeat_interleave(torch.arange(matrix.shape[0], device=z.device), counts)
    j = torch.from_numpy(matrix.indices.astype(np.int64)).to(z.device)
    scores = F.leaky_relu(source[j] + target[i], slope)
    where = i[:, None].expand_as(scores)
    top = scores.new_full(target.shape, -torch.inf).scatter_reduce(0, where, scores, "amax")
    weights = torch.exp(scores - top[i])
    weights = weights / torch.zeros_like(target).scatter_add(0, where, weights)[i]
    if weighted:
        weights = weights * torch.from_numpy(matrix.data(np.float64)).to(z)[:, None]
    if rate:
        weights = F.dropout(weights, rate)
    return z.new_zeros((matrix.shape[0], *z.shape[1:])).index_add(0, i, weights[:, :, None] * z[j])
