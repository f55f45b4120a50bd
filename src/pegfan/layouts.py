"""Where to draw nodes: linked ones near each other, clusters as boxes inside boxes, leaves along a curve."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import eigsh

from pegfan._arrays import FloatArray, IntArray
from pegfan.graph import Graph, check_graph
from pegfan.trees import Hierarchy

__all__ = ["layout"]

WIDE = 1.3
"""The half width of nested boxes, for a half height of 1."""
_GAP = 0.03  # half the distance of two branches of the root; deeper clusters stand closer
_LEAST = 0.06
_GOLDEN = np.pi * (3 - np.sqrt(5))
_SMALL_LAYOUT = 500  # nodes; beyond, stress layouts take minutes and show hairballs


def coordinates(graph: Graph, positions: ArrayLike | None) -> FloatArray:
    """Where to draw the nodes, (n, 2): as the caller says, as the graph knows, or by a layout."""
    if positions is None:
        if graph.positions is None:
            return layout(graph)
        positions = graph.positions
    try:
        points = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"positions must be numbers, one row (x, y) per node: {error}") from error
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or len(points) != graph.n or points.shape[1] == 0:
        raise ValueError(
            f"positions have shape {np.shape(positions)}; give one row (x, y) per node, shape ({graph.n}, 2)"
        )
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise ValueError(f"positions[{row}] is {points[row].tolist()}; positions must be finite")
    return points[:, :2] if points.shape[1] > 1 else np.column_stack([points[:, 0], np.zeros(graph.n)])


def is_flat(xy: FloatArray) -> bool:
    """Whether all nodes are on a horizontal line."""
    return bool(np.ptp(xy[:, 1]) <= 1e-9 * np.ptp(xy[:, 0]))


def layout(graph: Graph) -> FloatArray:
    """Every connected component by itself, the largest first, side by side in rows."""
    check_graph(graph)
    links = graph.adjacency + graph.adjacency.T
    links = csr_array(links - diags_array(links.diagonal()))
    links.eliminate_zeros()
    links.data[:] = 1.0
    count, component = connected_components(links, directed=False)
    if count == 1:
        return _component_layout(links)
    sizes = np.bincount(component)
    nodes = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    side = np.sqrt(sizes)
    whole = float(np.sqrt(graph.n))
    row_length = side.max() if side.max() > 0.85 * whole else 1.45 * whole  # crumbs go below the one that dominates
    xy = np.empty((graph.n, 2))
    x = y = row_height = 0.0
    for c in np.argsort(-sizes, kind="stable"):
        if x > 0 and x + side[c] > row_length:
            x, y, row_height = 0.0, y - row_height, 0.0
        part = _component_layout(links[nodes[c]][:, nodes[c]])
        extent = float(np.ptp(part, axis=0).max()) or 1.0
        centred = (part - (part.max(axis=0) + part.min(axis=0)) / 2) / extent
        xy[nodes[c]] = [x + side[c] / 2, y - side[c] / 2] + 0.85 * side[c] * centred
        x, row_height = x + side[c], max(row_height, side[c])
    return xy


def _component_layout(links: csr_array) -> FloatArray:
    """A path on a line in its order; else graph distances as distances; else a spectral layout."""
    n = links.shape[0]
    order = _path_order(links)
    if order is not None:
        xy = np.zeros((n, 2))
        xy[order, 0] = np.arange(n)
        return xy
    spectral = _spectral_layout(links)
    if n > _SMALL_LAYOUT or find_spec("networkx") is None:
        return spectral
    import networkx as nx

    # Nodes with the same neighbours coincide in the spectral layout; a nudge lets the next one part them.
    start = spectral + np.random.default_rng(0).normal(0.0, 1e-3, spectral.shape)
    placed = nx.kamada_kawai_layout(nx.from_scipy_sparse_array(links), pos=dict(enumerate(start)), weight=None)
    return _longest_across(np.array([placed[node] for node in range(n)]))


def _path_order(links: csr_array) -> IntArray | None:
    """The nodes of a path from its end with the smaller number to the other; None for other graphs."""
    n, degree = links.shape[0], np.diff(links.indptr)
    if n == 1:
        return np.zeros(1, np.int64)
    if links.nnz != 2 * (n - 1) or degree.max() > 2:
        return None
    start = int(np.flatnonzero(degree == 1)[0])
    return np.asarray(breadth_first_order(links, start, return_predecessors=False), np.int64)


def _spectral_layout(links: csr_array) -> FloatArray:
    """Eigenvectors 2 and 3 of the normalised Laplacian of a connected graph, scaled to [−1, 1]."""
    n = links.shape[0]
    scale = 1.0 / np.sqrt(np.diff(links.indptr))
    walk = diags_array(scale) @ links @ diags_array(scale)
    if n <= _SMALL_LAYOUT:
        vectors = np.linalg.eigh(walk.toarray())[1][:, -3:-1]
    else:
        start = np.random.default_rng(0).random(n)
        vectors = eigsh(walk, k=3, which="LA", v0=start, tol=1e-3, ncv=60)[1][:, :2]
    xy = vectors[:, ::-1] * scale[:, None]
    return np.asarray(xy / np.abs(xy).max(axis=0))


def _longest_across(xy: FloatArray) -> FloatArray:
    """Turn a layout so that it is wide rather than tall."""
    centred = xy - xy.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    return np.asarray(centred @ axes.T)


def ground(graph: Graph, tree: Hierarchy) -> tuple[Graph, FloatArray | None]:
    """What to draw on: the graph and None if it has positions or is small enough for a layout.

    Otherwise a graph without edges, and positions on a Hilbert curve in the order of the leaves: clusters are runs of
    leaves, so each of them is a patch of this mosaic, at every level.
    """
    if graph.positions is not None or graph.n <= _SMALL_LAYOUT:
        return graph, None
    k = int(np.ceil(np.log2(graph.n) / 2))
    positions = np.empty((graph.n, 2))
    positions[tree.order] = _hilbert(((np.arange(graph.n) + 0.5) * 4**k / graph.n).astype(np.int64), k)
    return type(graph)(csr_array((graph.n, graph.n))), positions


def _hilbert(along: IntArray, k: int) -> FloatArray:
    """Points of the Hilbert curve on a grid of side 2^k, by their places along it."""
    x, y = np.zeros_like(along), np.zeros_like(along)
    for level in range(k):
        side, quarter = 2**level, along >> (2 * level)
        right, odd = (quarter >> 1) & 1, quarter & 1
        up = right ^ odd
        turned, flipped = up == 0, (up == 0) & (right == 1)
        x, y = np.where(flipped, side - 1 - x, x), np.where(flipped, side - 1 - y, y)
        x, y = np.where(turned, y, x) + side * right, np.where(turned, x, y) + side * up
    return np.column_stack([x, y]).astype(np.float64)


def nested_boxes(tree: Hierarchy) -> list[FloatArray]:
    """Boxes inside boxes: for every level 1, ..., K an array (N_j, 4) of left, top, right and bottom.

    Children share the box of their cluster in their order, by their numbers of nodes (very small ones get more). Gaps
    are wider at coarse levels, so that white lines show what belongs together.
    """
    levels = [np.array([[-WIDE, -1.0, WIDE, 1.0]])]
    for level in range(1, tree.K):
        first, sizes = tree.first_child(level), tree.sizes(level + 1)
        boxes = np.empty((len(sizes), 4))
        for box, (a, b) in zip(levels[-1], pairwise(first.tolist()), strict=True):
            if b - a == 1:  # a cluster with one child is drawn once
                boxes[a] = box
            else:
                # A small child gets more than its share, or its box would be a hair's breadth.
                shares = np.maximum(sizes[a:b], _LEAST * sizes[a:b].sum() / np.sqrt(b - a))
                _share(boxes, box, a, b, np.concatenate([[0.0], np.cumsum(shares)]))
                _shrink(boxes[a:b], _GAP * 0.6 ** (level - 1))
        levels.append(boxes)
    return levels


def _share(boxes: FloatArray, box: FloatArray, a: int, b: int, ends: FloatArray) -> None:
    """Cut a box across its longer side into two halves of about the same share; and again."""
    if b - a == 1:
        boxes[a] = box
        return
    total = ends[-1]
    cut = 1 + int(np.abs(ends[1:-1] - total / 2).argmin())
    side = int(box[3] - box[1] > box[2] - box[0])  # 0: left and right, 1: top and bottom
    at = box[side] + (box[side + 2] - box[side]) * ends[cut] / total
    one, other = box.copy(), box.copy()
    one[side + 2] = other[side] = at
    _share(boxes, one, a, a + cut, ends[: cut + 1])
    _share(boxes, other, a + cut, b, ends[cut:] - ends[cut])


def _shrink(boxes: FloatArray, gap: float) -> None:
    """Leave a gap around every box, of a small part of it at most."""
    least = np.minimum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    inset = np.minimum(gap, 0.09 * least)[:, None]
    boxes += np.hstack([inset, inset, -inset, -inset])


def springs(links: csr_array, start: FloatArray, steps: int = 100) -> FloatArray:
    """Nodes pushed apart by each other and pulled together by links, within the unit circle.

    `links` is symmetric, without self loops; `start` holds distinct points, (n, 2). Each step moves nodes less far.
    """
    n = len(start)
    if n < 2:
        return np.zeros((n, 2))
    degree = np.asarray(links.sum(axis=1)).ravel()
    # A link between two busy nodes pulls less: hubs would otherwise drag everything into one heap.
    calm = 1.0 / np.sqrt(np.maximum(degree, 1.0))
    pull = csr_array(diags_array(calm) @ links @ diags_array(calm), dtype=np.float32)
    weight = np.asarray(pull.sum(axis=1)).ravel()[:, None]
    x = (start * np.sqrt(n)).astype(np.float32)
    for step in range(steps):
        squares = (x * x).sum(axis=1)
        near = squares[:, None] + squares - 2.0 * (x @ x.T)
        np.reciprocal(np.maximum(near, 0.05, out=near), out=near)
        np.fill_diagonal(near, 0.0)
        push = x * near.sum(axis=1)[:, None] - near @ x
        force = push + (pull @ x - weight * x) * 0.2 - x * 0.02
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        reach = 0.08 * np.sqrt(n) * (1 - step / steps) ** 1.5 + 0.01
        x += force / length * np.minimum(length, reach)
    x -= x.mean(axis=0)
    # A few strays must not shrink the picture: the farthest come nearer, in their order.
    distance = np.linalg.norm(x, axis=1)
    far = max(float(np.quantile(distance, 0.97)), 1e-9)
    squeezed = np.where(distance > far, far * (1 + 0.35 * np.tanh((distance / far - 1) / 0.35)), distance)
    x *= (squeezed / np.maximum(distance, 1e-9))[:, None]
    return np.asarray(x / max(float(np.linalg.norm(x, axis=1).max()), 1e-9), np.float64)


def spiral(n: int) -> FloatArray:
    """Distinct places inside the unit circle, for a start."""
    k = np.arange(n)
    distance = np.sqrt((k + 0.5) / max(n, 1))
    return np.column_stack([distance * np.cos(_GOLDEN * k), distance * np.sin(_GOLDEN * k)])
