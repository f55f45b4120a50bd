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

from pegfan.models._sparse import Sparse

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
        key = (id(edge_index), edge_index._version, id(edge_weight), getattr(edge_weight, "_version", 0), n)
        if key in _SEEN and _SEEN[key][0]() is edge_index:
            _SEEN.move_to_end(key)
            return _SEEN[key][1]
        made = cls._read(edge_index, edge_weight, n)
        while len(_SEEN) >= 4:
            _SEEN.popitem(last=False)
        _SEEN[key] = weakref.ref(edge_index), made
        return made

    @classmethod
    def _read(cls, edge_index: Tensor, edge_weight: Tensor | None, n: int | None) -> Neighbours:
        pairs = edge_index.detach().cpu().numpy()
        if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(f"edge_index must be two rows of node numbers, got {pairs.dtype} {pairs.shape}")
        count = int(pairs.max(initial=-1)) + 1 if n is None else n
        if pairs.size and (pairs.min() < 0 or pairs.max() >= count):
            raise ValueError(
                f"edge_index names node {pairs.max() if pairs.max() >= count else pairs.min()}, and x has {count} rows"
            )
        weights = np.ones(pairs.shape[1]) if edge_weight is None else edge_weight.detach().cpu().numpy().reshape(-1)
        if len(weights) != pairs.shape[1]:
            raise ValueError(f"{len(weights)} weights for {pairs.shape[1]} edges")
        return cls(csr_array((weights.astype(np.float64), (pairs[1], pairs[0])), shape=(count, count)))

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
        two = csr_array(one @ one)
        two.data[:] = 1
        nearer = csr_array(one + eye_array(self.n)) != 0
        two = csr_array(two - two.multiply(nearer))
        two.eliminate_zeros()
        return Sparse(symmetric(one)), Sparse(symmetric(two))


_SEEN: OrderedDict[Hashable, tuple[Any, Neighbours]] = OrderedDict()


def symmetric(matrix: csr_array) -> csr_array:
    """D^(-1/2) M D^(-1/2), D the row sums; rows and columns of nodes without any count as zero."""
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    root = np.sqrt(_inverse(sums))
    return csr_array(diags_array(root) @ matrix @ diags_array(root))


def _inverse(sums: Any) -> Any:
    positive = sums > 0
    return np.where(positive, 1.0 / np.where(positive, sums, 1.0), 0.0)


def by_type(edge_index: Tensor, edge_weight: Tensor | None, edge_type: Tensor, n: int) -> list[Sparse]:
    """One matrix per type of edge, 0, 1, ...; entry (i, j) is the weight of the edge from j to i."""
    kinds = edge_type.detach().cpu().numpy()
    parts = [torch.from_numpy(np.flatnonzero(kinds == k)) for k in range(int(kinds.max(initial=-1)) + 1)]
    return [
        Sparse(Neighbours._read(edge_index[:, own], None if edge_weight is None else edge_weight[own], n).matrix)
        for own in parts
    ]


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
        return _kept_sparse(x) if isinstance(x, Tensor) and x.layout != torch.strided else x

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Groups of weights for an optimiser; all decay alike unless the model says otherwise."""
        return [{"params": list(self.parameters()), "weight_decay": weight_decay}]


_SPARSE: OrderedDict[Hashable, tuple[Any, Sparse]] = OrderedDict()


def _kept_sparse(x: Tensor) -> Sparse:
    key = id(x)
    if key not in _SPARSE or _SPARSE[key][0]() is not x:
        while len(_SPARSE) >= 4:
            _SPARSE.popitem(last=False)
        _SPARSE[key] = weakref.ref(x), Sparse.of(x)
    return _SPARSE[key][1]


def as_sparse(matrices: Sequence[Any]) -> list[Sparse]:
    """Matrices that multiply tensors."""
    return [matrix if isinstance(matrix, Sparse) else Sparse(matrix) for matrix in matrices]
