"""The trees of a batch of graphs as one: levels count from the leaves, so that a step up is one product for all graphs.

What a layer is given is tensors. Their contents say which graphs they are: a batch that came before is known as a
whole, and a graph that came before, in whatever batch, has its tree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from pegfan import _defaults as default
from pegfan._arrays import FloatArray, IntArray
from pegfan._cache import Cache
from pegfan._checks import check_choice, check_integer, kind_of
from pegfan._hashing import digest_of
from pegfan._matrices import csr_of
from pegfan.channels.hops import HOPS, hop_matrix, hop_name
from pegfan.channels.presets import HOPS_MOST, KINDS
from pegfan.framelets._levels import make_levels
from pegfan.graph import Graph
from pegfan.models import Sparse
from pegfan.trees import Hierarchy, build_tree, canonical_order
from pegfan.trees.build import DIRECTIONS

TIES = ("join", "break")
LEVELS = 5
"""Scales of a layer: with h = 8, clusters of up to 4,096 nodes."""
MOST_LEVELS = 1000


class Trees(NamedTuple):
    """How the trees of a layer are built; see `pegfan.nn.FrameletConv`."""

    h: int
    method: str
    weights: str
    direction: str
    ties: str

    def checked(self) -> Trees:
        """These, if they are ones that can be."""
        check_integer(self.h, "h", least=2)
        check_choice(self.method, "method", ("auto", *default.BUILDERS))
        check_choice(self.weights, "weights", ("equal", "size"))
        check_choice(self.direction, "direction", DIRECTIONS)
        check_choice(self.ties, "ties", TIES)
        return self


class Parts(NamedTuple):
    """What a layer makes of x: hops, and scales; see `pegfan.nn.FrameletConv`."""

    levels: int
    kind: str
    hops: int
    hop: str

    def checked(self) -> Parts:
        """These, if they are ones that can be."""
        check_integer(self.levels, "levels", least=1, most=MOST_LEVELS)
        check_choice(self.kind, "kind", KINDS)
        check_integer(self.hops, "hops", least=0, most=HOPS_MOST)
        check_choice(self.hop, "hop", HOPS)
        return self

    @property
    def powers(self) -> int:
        """The highest power of S beside the scales."""
        return self.hops if KINDS[self.kind].powers else 0

    @property
    def projected(self) -> int:
        """The power of S whose scales are taken."""
        return KINDS[self.kind].projected

    def names(self) -> list[str]:
        """Of the parts, as channels have them."""
        name = hop_name(self.hop)
        powers = ["X", f"{name} X", *(f"{name}^{i} X" for i in range(2, self.powers + 1))][: self.powers + 1]
        return powers + [f"F_{j} {f'{name} ' * self.projected}X" for j in range(self.levels)]


class Forest:
    """The graphs of a batch and their trees.

    Attributes
    ----------
    adjacency
        Of all graphs, (source, target).
    graphs
        The graph of every node, numbered from 0 without gaps.
    steps
        For every step from the leaves up, the matrix P that makes the coefficients of clusters from those of their
        children; a tree that has come to its root stays there.
    clusters
        After every step, the cluster of each node.
    """

    def __init__(self, adjacency: csr_array, graphs: IntArray, settings: Trees) -> None:
        self.adjacency, self.graphs, self.settings = adjacency, graphs, settings
        self.n = len(graphs)
        self.clusters: list[IntArray] = []
        self.steps: list[Sparse] = []
        if self.n:
            tree = _planted(adjacency, graphs, settings)
            levels = make_levels(tree, "binary-haar", settings.weights)[1:]  # what joins the graphs is not theirs
            columns = tree.order
            for j, level in enumerate(reversed(levels), start=1):
                self.clusters.append(tree.labels(tree.K - j))
                shape = (len(level.first) - 1, len(columns))
                self.steps.append(Sparse(csr_array((level.p, columns, level.first), shape=shape)))
                columns = np.arange(shape[0])
        self._matrices: dict[Hashable, Sparse] = {}
        self._tensors: dict[Hashable, Any] = {}

    def hop(self, kind: str) -> Sparse:
        """The matrix of one hop."""
        if kind not in self._matrices:
            self._matrices[kind] = Sparse(hop_matrix(self._graph, kind, self.settings.direction))
        return self._matrices[kind]

    def cluster(self, levels: int) -> IntArray:
        """The cluster of every node, so many levels up, or as many as there are."""
        height = min(levels, len(self.steps))
        return self.clusters[height - 1] if height else np.arange(self.n)

    def members(self, levels: int) -> Sparse:
        """Clusters in rows, with ones for their nodes."""
        if levels not in self._matrices:
            cluster, nodes = self.cluster(levels), np.arange(self.n)
            self._matrices[levels] = Sparse(csr_array((np.ones(self.n), (cluster, nodes))))
        return self._matrices[levels]

    @cached_property
    def _graph(self) -> Graph:
        return Graph(self.adjacency)

    def on(self, device: torch.device, key: Hashable, make: Callable[[], tuple[Any, ...]]) -> tuple[Tensor, ...]:
        """Arrays as tensors on a device, made once."""
        place = str(device), key
        if place not in self._tensors:
            self._tensors[place] = tuple(torch.as_tensor(array).to(device) for array in make())
        found: tuple[Tensor, ...] = self._tensors[place]
        return found


@torch.compiler.disable  # type: ignore[untyped-decorator]
def forest_of(x: Any, edge_index: Any, edge_weight: Any, batch: Any, settings: Trees) -> Forest:
    """The trees of what a layer is given; known by content."""
    check_nodes(x)
    if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:  # PyG's adj_t, (target, source)
        if edge_weight is not None:
            raise ValueError("a sparse matrix in place of edge_index has weights of its own; leave edge_weight out")
        entries = edge_index.detach().to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
        edge_index, edge_weight = entries.indices().flip(0), entries.values()
    edges, weights, graphs = _edges(edge_index, x.shape[0]), _weights(edge_weight), _graphs(batch, x.shape[0])
    if weights is not None and weights.shape != edges.shape[1:]:
        raise ValueError(f"edge_weight has the shape {weights.shape}, and edge_index {edges.shape[1]} edges")
    key = x.shape[0], settings, digest_of(edges, weights, graphs)
    size = _BYTES * (x.shape[0] + edges.shape[1])
    return _FORESTS.get(key, lambda: _plant(edges, weights, graphs, x.shape[0], settings), size)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def powers_of(x: Tensor, forest: Forest, kind: str, count: int) -> list[Tensor]:
    """x, S x, ..., S^count x."""
    found = [x]
    for _ in range(count):
        found.append(_product(forest.hop(kind), found[-1]) if forest.n else x)
    return found


@torch.compiler.disable  # type: ignore[untyped-decorator]
def sums(x: Tensor, forest: Forest, levels: int) -> Tensor:
    """The sum of x over every cluster, so many levels up."""
    return _product(forest.members(levels), x) if forest.n else x


@torch.compiler.disable  # type: ignore[untyped-decorator]
def averages(x: Tensor, forest: Forest, levels: int) -> list[Tensor]:
    """The coefficients of the leaves and of up to levels − 1 levels above them, the finest first."""
    found = [x]
    for step in forest.steps[: levels - 1]:
        found.append(_product(step, found[-1]))
    return found


@torch.compiler.disable  # type: ignore[untyped-decorator]
def lift(parts: Sequence[Tensor | None], forest: Forest) -> Tensor:
    """Φᵀ of coefficients, added up over levels: the leaves first, where there are some."""
    below: Any = None
    for level in range(len(parts) - 1, -1, -1):
        if below is not None:
            below = _product(forest.steps[level].t, below)
        part = parts[level]
        below = part if below is None else below if part is None else below + part
    found: Tensor = below
    return found


def _product(matrix: Sparse, x: Tensor) -> Tensor:
    """M x; in float32 where x is of half precision."""
    with torch.autocast(x.device.type, enabled=False):
        if x.dtype in (torch.float16, torch.bfloat16):
            return (matrix @ x.float()).to(x.dtype)
        return matrix @ x


# ------------------------------------------------------------------------------ what is given


def check_nodes(x: Any) -> None:
    """Refuse what is not a matrix of numbers that are there."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a tensor, one row per node, got {kind_of(x)}")
    if x.is_meta:
        raise ValueError("x is on the device 'meta', where tensors hold no numbers")
    if x.ndim != 2 or not x.is_floating_point() or x.layout != torch.strided:
        raise ValueError(
            f"x must be a dense matrix of floating-point numbers, got {x.dtype} of shape {tuple(x.shape)}; x.float() "
            "converts numbers, x.to_dense() sparse matrices"
        )


def _edges(edge_index: Any, n: int) -> IntArray:
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"edge_index must be a tensor of two rows, got {kind_of(edge_index)}")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or (edge_index.numel() and not _holds_integers(edge_index)):
        raise ValueError(
            f"edge_index must be two rows of node numbers, got {edge_index.dtype} of shape {tuple(edge_index.shape)}"
        )
    edges = np.ascontiguousarray(edge_index.detach().cpu().numpy().astype(np.int64, copy=False))
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise ValueError(f"edge_index names node {wrong}, and x has {n} rows")
    return edges


def _weights(edge_weight: Any) -> FloatArray | None:
    if edge_weight is None:
        return None
    if not isinstance(edge_weight, Tensor):
        raise TypeError(f"edge_weight must be a tensor, got {kind_of(edge_weight)}")
    if edge_weight.requires_grad:
        raise ValueError("edge_weight asks for a gradient, and a tree has none; pass edge_weight.detach()")
    flat = edge_weight.reshape(-1) if edge_weight.ndim == 2 and edge_weight.shape[1] == 1 else edge_weight
    return np.ascontiguousarray(flat.cpu().double().numpy())


def _graphs(batch: Any, n: int) -> IntArray | None:
    if batch is None:
        return None
    if not isinstance(batch, Tensor):
        raise TypeError(f"batch must be a tensor, got {kind_of(batch)}")
    if batch.shape != (n,) or not _holds_integers(batch):
        raise ValueError(
            f"batch must hold the graph of each of the {n} nodes, got {batch.dtype} of shape {tuple(batch.shape)}"
        )
    return np.ascontiguousarray(batch.detach().cpu().numpy().astype(np.int64, copy=False))


def _holds_integers(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


# ------------------------------------------------------------------------------ trees


def _plant(edges: IntArray, weights: FloatArray | None, batch: IntArray | None, n: int, settings: Trees) -> Forest:
    graphs = np.zeros(n, np.int64) if batch is None else np.unique(batch, return_inverse=True)[1]
    if (across := graphs[edges[0]] != graphs[edges[1]]).any():
        source, target = edges[:, across.argmax()]
        raise ValueError(f"the edge from node {source} to node {target} leads from one graph of the batch to another")
    return Forest(_joined(edges, weights, n), graphs, settings)


def _joined(edges: IntArray, weights: FloatArray | None, n: int) -> csr_array:
    """The matrix of edges: those that are repeated are added up, as messages along them would be.

    They are added from the lightest on, whatever the order they are given in, and so the same graph is the same matrix.
    """
    if weights is None:
        weights = np.ones(edges.shape[1])
    elif not (np.isfinite(weights) & (weights >= 0)).all():
        wrong = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ValueError(f"edge_weight holds {wrong}; trees and hops need finite weights of 0 (no edge) or more")
    order = np.lexsort((weights, edges[1], edges[0]))
    (source, target), weights = edges[:, order], weights[order]
    kept = weights > 0
    source, target, weights = source[kept], target[kept], weights[kept]
    new = np.ones(len(source), bool)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(weights, first) if len(first) else weights
    pointers = np.concatenate([[0], np.cumsum(np.bincount(source[first], minlength=n))])
    index = np.int32 if max(n, len(first)) <= np.iinfo(np.int32).max else np.int64
    return csr_of(sums, target[first].astype(index), pointers.astype(index), (n, n))


def _planted(adjacency: csr_array, graphs: IntArray, settings: Trees) -> Hierarchy:
    """The trees of all graphs under one root, their leaves on one level."""
    sizes = np.bincount(graphs)
    nodes = np.argsort(graphs, kind="stable")  # the identity, unless graphs are interleaved
    if (graphs[1:] < graphs[:-1]).any():
        adjacency = csr_array(adjacency[nodes][:, nodes])
        adjacency.sort_indices()
    ends = np.cumsum(sizes)
    trees = [_tree_of(adjacency, end - size, end, settings) for size, end in zip(sizes, ends, strict=True)]
    order = np.concatenate([tree.order for tree in trees]) + np.repeat(ends - sizes, sizes)
    parents = []
    for step in range(max(tree.K for tree in trees) - 1):
        above = [tree.parents[step] if step < tree.K - 1 else np.zeros(1, np.int64) for tree in trees]
        counts = np.array([tree.n_clusters[max(tree.K - 2 - step, 0)] for tree in trees])
        starts = np.repeat(np.cumsum(counts) - counts, [len(part) for part in above])
        parents.append(np.concatenate(above) + starts)
    return Hierarchy([*parents, np.zeros(len(trees), np.int64)], nodes[order])


def _tree_of(adjacency: csr_array, start: int, end: int, settings: Trees) -> Hierarchy:
    """The tree of the graph whose nodes are start, ..., end − 1."""
    low, high = adjacency.indptr[start], adjacency.indptr[end]
    pointers, columns = adjacency.indptr[start : end + 1] - low, adjacency.indices[low:high] - start
    weights = adjacency.data[low:high]
    key = settings, digest_of(pointers, columns, weights)

    def build() -> Hierarchy:
        graph = Graph(csr_of(weights.copy(), columns, pointers, (end - start, end - start)))
        tree = build_tree(graph, settings.method, settings.h, direction=settings.direction)  # type: ignore[arg-type]
        return joined(tree, canonical_order(graph).classes) if settings.ties == "join" and tree.info["tied"] else tree

    return _TREES.get(key, build)


def joined(tree: Hierarchy, classes: IntArray) -> Hierarchy:
    """The finest tree above single nodes that keeps classes of nodes whole, and is coarser than the given one.

    Where nodes that look alike are in different clusters, these become one. An automorphism of the graph maps classes
    to themselves and hence every cluster to itself: which of the symmetric nodes the tree took first makes no
    difference.
    """
    if tree.K == 1:
        return tree
    levels: list[IntArray] = []
    for j in range(tree.K - 1, 1, -1):
        labels = tree.labels(j)
        count = int(labels.max()) + 1
        every = count + int(classes.max()) + 1
        links = coo_array((np.ones(tree.n), (labels, count + classes)), shape=(every, every))
        groups = np.unique(connected_components(links, directed=False)[1][labels], return_inverse=True)[1]
        if 0 < groups.max() < (levels[-1].max() if levels else tree.n):
            levels.append(groups)
    return Hierarchy.from_labels([*levels, np.zeros(tree.n, np.int64)], tree.info)


# ------------------------------------------------------------------------------ what is kept

_TREES = Cache(2**30)
_FORESTS = Cache(2**30)
_BYTES = 256
"""What a node or an edge of a forest takes, with matrices for hops and steps, and their transposes."""
