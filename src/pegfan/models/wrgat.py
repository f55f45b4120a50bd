"""WRGAT (Suresh et al., 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import check_integer
from pegfan.models._layers import Weight, check_sizes, side_by_side
from pegfan.models._neighbours import GraphNetwork, Neighbours, as_sparse, by_type
from pegfan.models._sparse import Sparse, attend, dropout


class RelationalAttention(nn.Module):
    """One layer: attention in every relation apart, weighted by its edges.

    ::

        y_i = x_i W + b + Σ_r Σ_j w_ij^r α_ij^r x_j W_r

    α^r is GAT's attention over the edges of relation r, and w^r their weights.

    Parameters
    ----------
    rows, columns, relations
        Of x, of y, and how many relations.
    """

    def __init__(self, rows: int, columns: int, relations: int) -> None:
        super().__init__()
        self.weights = nn.ModuleList(Weight(rows, columns, bias=False) for _ in range(relations))
        self.source, self.target = (nn.Parameter(torch.empty(relations, columns)) for _ in range(2))
        self.own = Weight(rows, columns)
        nn.init.xavier_uniform_(self.source)
        nn.init.xavier_uniform_(self.target)

    def forward(self, x: Any, matrices: list[Sparse]) -> Tensor:
        """Attend; the matrices hold the weights of the relations."""
        own, *every = side_by_side(x, [self.own, *self.weights])
        bias: Any = self.own.bias
        total: Tensor = own + bias
        for matrix, z, source, target in zip(matrices, every, self.source, self.target, strict=False):
            scores = ((z @ part)[:, None] for part in (source, target))
            total = total + attend(matrix, z[:, None], *scores, weighted=True)[:, 0]
        return total


class WRGAT(GraphNetwork):
    """Attention over nodes that look alike from their surroundings, beside neighbours, relation by relation.

    Relations are the layers of struc2vec: nodes of similar degree, whose neighbours have similar degrees, and so on;
    and the edges of the graph. Two layers of `pegfan.models.wrgat.RelationalAttention`, with ReLU and dropout between.

    Parameters
    ----------
    features, classes, hidden, dropout
        As in `MLP`.
    relations
        How many structural relations are made, from degrees alone (1) to wider and wider surroundings.
    edges
        Whether the edges of the graph are a relation, too.
    mean
        Whether the weights of a relation are divided by the number of edges that a node has in it, as the authors'
        public code does; their published numbers fit without it.

    Examples
    --------
    >>> import torch
    >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> WRGAT(5, 3)(torch.ones(4, 5), path).shape
    torch.Size([4, 3])
    """

    relational = "structure"

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int = default.HIDDEN,
        dropout: float = default.DROPOUT,
        relations: int = 3,
        edges: bool = True,
        mean: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(dropout, features=features, classes=classes, hidden=hidden)
        self.relations = check_integer(relations, "relations", 0)
        self.first = RelationalAttention(features, hidden, relations + edges)
        self.output = RelationalAttention(hidden, classes, relations + edges)
        self.dropout, self.edges, self.mean = dropout, edges, mean

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None, edge_type: Any = None) -> Tensor:
        """Log-probabilities of the classes, per node; `edge_type` has the relation of every edge, if they are given."""
        x = self.read_features(x)
        n, make = int(x.shape[0]), _mean if self.mean else _plain
        if edge_type is None:
            graph = Neighbours.of(edge_index, edge_weight, n)
            key = "structure", self.relations, self.edges
            matrices = graph.keep((*key, self.mean), lambda: make(graph.keep(key, lambda: self._relations(graph)), n))
        else:
            matrices = by_type(edge_index, edge_weight, edge_type, n, make)
        if len(matrices) > (most := self.relations + self.edges):
            raise ValueError(f"the edges have {len(matrices)} relations, and the network has {most}")
        h = F.relu(self.first(x, matrices))
        return F.log_softmax(self.output(dropout(h, self.dropout, self.training), matrices), dim=-1)

    def _relations(self, graph: Neighbours) -> list[csr_array]:
        """The graph's edges, each of weight one, and its structural relations."""
        from pegfan.graph import Graph
        from pegfan.relations import struc2vec_relations

        edges = graph.matrix.copy()
        edges.data[:] = 1.0
        whole = Graph(graph.matrix, directed=True)
        found = struc2vec_relations(whole, layers=self.relations - 1) if self.relations else []
        return [edges, *found] if self.edges else list(found)


def _plain(matrices: list[csr_array], n: int) -> list[Sparse]:
    del n
    return as_sparse(matrices)


def _mean(matrices: list[csr_array], n: int) -> list[Sparse]:
    """Divide the rows of every matrix by the number of their entries."""
    del n
    counts = (np.maximum(np.diff(matrix.indptr), 1) for matrix in matrices)
    return [Sparse(diags_array(1.0 / d) @ matrix) for d, matrix in zip(counts, matrices, strict=True)]
