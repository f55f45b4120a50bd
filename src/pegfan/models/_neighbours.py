"""A graph as graph networks read it: who a node listens to, and the matrices that are made of that."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array, eye_array
from torch import Tensor, nn

from pegfan._checks import check_integer
from pegfan._limits import check_memory
from pegfan._matrices import as_matrix
from pegfan.models._sparse import Sparse, check_tensor

__all__ = ["GraphNetwork", "Neighbours"]


class Neighbours:
    """The neighbours of every node: entry (i, j) is the weight of the edge from j to i, so node i listens to node j.

    Models make what they need of it once: normalised matrices, neighbours two steps away, relations.

    Parameters
    ----------
    matrix
        Square, sparse.

    Examples
    --------
    >>> import torch
    >>> graph = Neighbours.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), n=3)
    >>> graph.normalized.scipy().toarray().round(3)
    array([[0.5  , 0.408, 0.   ],
           [0.408, 0.333, 0.408],
           [0.   , 0.408, 0.5  ]])
    """

    def __init__(self, matrix: Any) -> None:
        matrix = as_matrix(matrix, "matrix")
        self.matrix = csr_array(matrix, dtype=np.float64, copy=True)
        self.matrix.sum_duplicates()
        self.matrix.eliminate_zeros()
        if self.matrix.shape[0] != self.matrix.shape[1]:
            raise ValueError(f"the matrix of a graph is square, got {self.matrix.shape}")
        self.n = int(self.matrix.shape[0])
        self._made: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, edge_index: Any, edge_weight: Any = None, n: int | None = None) -> Neighbours:
        """The neighbours that PyG's ``edge_index`` (sources over targets) says; the newest few are kept."""
        if isinstance(edge_index, Neighbours):
            if n is not None and edge_index.n != n:
                raise ValueError(f"the graph has {edge_index.n} nodes, and x has {n} rows")
            return edge_index
        if n is not None:
            check_integer(n, "n", least=0)
        _check_edges(edge_index, edge_weight)
        found: Neighbours = _NEWEST.get(
            (edge_index, edge_weight), (cls, n), lambda: cls(_matrix(edge_index, edge_weight, n))
        )
        return found

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once for a key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @cached_property
    def adjacency(self) -> Sparse:
        """The weights of the edges."""
        return Sparse(self.matrix)

    @cached_property
    def with_loops(self) -> csr_array:
        """The matrix with a self loop of weight one where a node has none."""
        missing = (self.matrix.diagonal() == 0).astype(np.float64)
        return csr_array(self.matrix + diags_array(missing))

    @cached_property
    def normalized(self) -> Sparse:
        """P = D^(-1/2) (A + I) D^(-1/2), D the row sums: GCN's matrix."""
        return Sparse(symmetric(self.with_loops))

    @cached_property
    def mean(self) -> Sparse:
        """D⁻¹ A: the mean over neighbours, zero without any."""
        sums = np.asarray(self.matrix.sum(axis=1)).reshape(-1)
        return Sparse(diags_array(_inverse(sums)) @ self.matrix)

    @cached_property
    def attended(self) -> Sparse:
        """Who attends to whom in GAT: neighbours and the node itself."""
        return Sparse(self.with_loops)

    @cached_property
    def hops(self) -> tuple[Sparse, Sparse]:
        """Neighbours one step away and exactly two steps away, without the node itself, each normalised by itself."""
        one = csr_array((self.matrix != 0).astype(np.float64))
        one.setdiag(0)
        one.eliminate_zeros()
        pairs = float(np.diff(one.tocsc().indptr).astype(np.float64) @ np.diff(one.indptr))
        check_memory(40 * min(pairs, float(self.n) ** 2), "H2GCN's list of nodes two steps away")
        two = csr_array(one @ one)
        two.data[:] = 1
        nearer = csr_array(one + eye_array(self.n)) != 0
        two = csr_array(two - two.multiply(nearer))
        two.eliminate_zeros()
        return Sparse(symmetric(one)), Sparse(symmetric(two))


class _Newest:
    """The few newest things that were made of tensors, while these are alive and unchanged."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: OrderedDict[Hashable, tuple[list[Any], Any]] = OrderedDict()

    def get(self, tensors: Sequence[Tensor | None], more: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once for these tensors, their contents (by torch's count of changes) and `more`."""
        if any(tensor is not None and tensor.is_inference() for tensor in tensors):
            return make()  # torch does not count changes of these
        key = tuple(None if tensor is None else (id(tensor), tensor._version) for tensor in tensors), more
        references, value = self.values.pop(key, ([], None))
        present = [tensor for tensor in tensors if tensor is not None]
        if not references or any(r() is not tensor for r, tensor in zip(references, present, strict=True)):
            references, value = [weakref.ref(tensor) for tensor in present], make()
        while len(self.values) >= self.most:
            self.values.popitem(last=False)
        self.values[key] = references, value
        return value


_NEWEST = _Newest(8)


def _matrix(edge_index: Tensor, edge_weight: Tensor | None, n: int | None) -> csr_array:
    """The matrix of PyG's edges: entry (i, j) is the weight of the edge from j to i."""
    pairs = edge_index.detach().cpu().numpy()
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"edge_index must be two rows of node numbers, got {pairs.dtype} {pairs.shape}")
    count = int(pairs.max(initial=-1)) + 1 if n is None else n
    if pairs.size and (pairs.min() < 0 or pairs.max() >= count):
        wrong = pairs.max() if pairs.max() >= count else pairs.min()
        raise ValueError(f"edge_index names node {wrong}, and x has {count} rows")
    weights = np.ones(pairs.shape[1]) if edge_weight is None else edge_weight.detach().cpu().double().numpy()
    if weights.size != pairs.shape[1]:
        raise ValueError(f"{weights.size} weights for {pairs.shape[1]} edges")
    matrix = csr_array((weights.reshape(-1), (pairs[1], pairs[0])), shape=(count, count))
    matrix.eliminate_zeros()
    return matrix


def symmetric(matrix: csr_array) -> csr_array:
    """D^(-1/2) M D^(-1/2), D the row sums; rows and columns of nodes without any count as zero."""
    root = diags_array(inverse_roots(matrix))
    return csr_array(root @ matrix @ root)


def inverse_roots(matrix: csr_array) -> Any:
    """The diagonal of D^(-1/2), D the row sums; zero where these are not positive."""
    return np.sqrt(_inverse(np.asarray(matrix.sum(axis=1)).reshape(-1)))


def _inverse(sums: Any) -> Any:
    positive = sums > 0
    return np.where(positive, 1.0 / np.where(positive, sums, 1.0), 0.0)


def by_type(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    edge_type: Tensor,
    n: int,
    make: Callable[[list[csr_array], int], Any],
) -> Any:
    """What `make` gives for the matrices of the types of edges 0, 1, ...; see `Neighbours` for their entries."""
    check_integer(n, "n", least=0)
    check_tensor(edge_type, "edge_type")
    _check_edges(edge_index, edge_weight)
    tensors = (edge_index, edge_weight, edge_type)
    return _NEWEST.get(tensors, (make, n), lambda: make(_parts(edge_index, edge_weight, edge_type, n), n))


def _parts(edge_index: Tensor, edge_weight: Tensor | None, edge_type: Tensor, n: int) -> list[csr_array]:
    kinds = edge_type.detach().cpu().numpy()
    if kinds.shape != edge_index.shape[1:] or kinds.dtype.kind not in "iu" or kinds.min(initial=0) < 0:
        raise ValueError(
            f"edge_type must be one number from 0 on for each of {edge_index.shape[-1]} edges, got {kinds.dtype} "
            f"{kinds.shape}"
        )
    if edge_weight is not None and len(edge_weight) != len(kinds):
        raise ValueError(f"{len(edge_weight)} weights for {len(kinds)} edges")
    owns = (torch.from_numpy(kinds == k).to(edge_index.device) for k in range(int(kinds.max(initial=-1)) + 1))
    return [_matrix(edge_index[:, own], None if edge_weight is None else edge_weight[own], n) for own in owns]


def _check_edges(edge_index: Any, edge_weight: Any) -> None:
    check_tensor(edge_index, "edge_index")
    if edge_weight is not None:
        check_tensor(edge_weight, "edge_weight")
        if edge_weight.requires_grad and torch.is_grad_enabled():
            raise ValueError("weights of edges are constants here and get no gradient: pass edge_weight.detach()")


class GraphNetwork(nn.Module):
    """What the graph networks share: how they take x and edges, and their groups of weights for an optimiser.

    `forward` takes x (dense, sparse, or a `Sparse`), PyG's ``edge_index`` and ``edge_weight``, and gives logarithms of
    the classes' probabilities, per node; ``nll_loss`` and ``cross_entropy`` of them are the same.
    """

    needs_edges = True
    """Whether it says anything on a graph without edges that an MLP does not."""
    needs_features = True

    def read(self, x: Any, edge_index: Any, edge_weight: Any = None) -> tuple[Any, Neighbours]:
        """The inputs as the layers take them."""
        rows = self.read_features(x)
        return rows, Neighbours.of(edge_index, edge_weight, int(rows.shape[0]))

    @staticmethod
    def read_features(x: Any) -> Any:
        """X as the layers take it: dense, or `Sparse`."""
        if not isinstance(x, (Tensor, Sparse)):
            raise TypeError(f"x must be a tensor, dense or sparse, got {type(x).__name__}")
        if len(x.shape) != 2:
            raise ValueError(f"x must have a row for every node, got the shape {tuple(x.shape)}")
        if isinstance(x, Sparse):
            return x
        check_tensor(x, "x")
        if x.layout == torch.strided:
            return x if x.is_floating_point() else x.float()
        return _NEWEST.get((x,), None, lambda: Sparse.of(x))

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Groups of weights for an optimiser; all decay alike unless the model says otherwise."""
        return [{"params": list(self.parameters()), "weight_decay": weight_decay}]


def as_sparse(matrices: Sequence[Any]) -> list[Sparse]:
    """Matrices that multiply tensors."""
    return [matrix if isinstance(matrix, Sparse) else Sparse(matrix) for matrix in matrices]
