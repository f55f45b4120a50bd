"""The picture of the graph: a sample that keeps clusters together, two layouts, and framelets on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order

from pegfan._arrays import FloatArray, IntArray
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph
from pegfan.layouts import nested_boxes, spiral, springs
from pegfan.trees import Hierarchy

__all__ = ["framelets_on", "restrict", "sample", "view"]


_MOST_NODES = 1_500
_MOST_EDGES = 9_000
_MOST_FRAMELETS = 40
_CHUNK = 8
"""Framelets that are computed at a time: their coefficients may be many."""


def view(graph: Graph, tree: Hierarchy | None, wanted: Sequence[int] = (), most: int = _MOST_NODES) -> dict[str, Any]:
    """What the page draws of the graph: ``nodes`` of the sample, their places, links, clusters and framelets.

    Parameters
    ----------
    graph, tree
        The tree may be missing.
    wanted
        Nodes that must be in the sample.
    most
        The largest sample.
    """
    nodes = sample(graph, tree, wanted, most)
    links = _links(graph.adjacency[nodes][:, nodes])
    shown: dict[str, Any] = {"nodes": nodes, "total": graph.n, "edges": [], "boxes": [], "clusters": []}
    start = spiral(len(nodes))
    if tree is not None:
        small, slots = restrict(tree, nodes)
        boxes = nested_boxes(small)
        cells = boxes[-1][np.argsort(small.order)]
        start = (cells[:, :2] + cells[:, 2:]) / 2
        shown["tree_xy"] = as_integers(start)
        room = (cells[:, 2:] - cells[:, :2]).min(axis=1) / 2
        shown["room"] = as_integers(np.minimum(room, np.median(room)))
        shown["clusters"] = [slots[level][small.labels(level + 1)].tolist() for level in range(small.K)]
        shown["boxes"] = [as_integers(boxes[j][small.sizes(j + 1) > 1]) for j in range(small.K - 1)]
        shown["framelets"] = framelets_on(tree, nodes)
    shown["link_xy"] = as_integers(springs(links, start))
    i, j = coo_array(links).coords
    pairs = np.column_stack([i, j])[i < j]
    shown["links"] = len(pairs)
    if len(pairs) > _MOST_EDGES:  # evenly spread, so that no node loses all of its links to the cut
        pairs = pairs[np.linspace(0, len(pairs) - 1, _MOST_EDGES).astype(np.int64)]
    shown["edges"] = pairs.ravel().tolist()
    return shown


def _links(adjacency: csr_array, directed: bool = True) -> csr_array:
    """The links between nodes, regardless of direction and weight, without self loops."""
    if not directed:
        rows = np.repeat(np.arange(adjacency.shape[0], dtype=np.int32), np.diff(adjacency.indptr))
        proper = rows != adjacency.indices
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows[proper], minlength=adjacency.shape[0]))])
        columns = adjacency.indices[proper]
        return csr_array((np.ones(len(columns)), columns, ends.astype(columns.dtype)), shape=adjacency.shape)
    i, j = adjacency.tocoo().coords
    proper = i != j
    i, j = i[proper], j[proper]
    ones = np.ones(2 * len(i))
    links = coo_array((ones, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=adjacency.shape).tocsr()
    links.data[:] = 1.0
    return links


def sample(graph: Graph, tree: Hierarchy | None, wanted: Sequence[int] = (), most: int = _MOST_NODES) -> IntArray:
    """Nodes to draw, sorted: all of a small graph; else whole clusters with many links, from every branch of the tree.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [3, 4], [4, 5]])
    >>> sample(graph, pf.Hierarchy.from_nested([[0, 1, 2], [3, 4, 5]]), most=4).tolist()
    [0, 1, 3, 4]
    """
    if graph.n <= most:
        return np.arange(graph.n)
    keep = np.unique(np.asarray(wanted, np.int64))[:most]
    ordered = None
    if tree is None and not graph.directed:
        ordered = _around(graph.adjacency, most)
    if ordered is None:
        links = _links(graph.adjacency, graph.directed)
        ordered = _from_tree(links, tree, most) if tree is not None else _from_links(links)
    others = ordered[~np.isin(ordered, keep)][: most - len(keep)]
    return np.sort(np.concatenate([keep, others]))


def _around(adjacency: csr_array, most: int) -> IntArray | None:
    """The first nodes of `_from_links`, twice as many as wanted, without a look at the others; None if it has fewer."""
    counts = np.diff(adjacency.indptr) - (adjacency.diagonal() != 0)
    found = [int(counts.argmax())]
    seen = set(found)
    for node in found:  # which grows
        row = slice(adjacency.indptr[node], adjacency.indptr[node + 1])
        fresh = [other for other in adjacency.indices[row].tolist() if other not in seen]
        found += fresh
        seen.update(fresh)
        if len(found) >= 2 * most:
            return np.array(found)
    return None


def _from_links(links: csr_array) -> IntArray:
    """Nodes by their distance from the busiest one, then the rest."""
    busiest = int(np.diff(links.indptr).argmax())
    reached = np.asarray(breadth_first_order(links, busiest, directed=False, return_predecessors=False), np.int64)
    return np.concatenate([reached, np.setdiff1d(np.arange(links.shape[0]), reached)])


def _from_tree(links: csr_array, tree: Hierarchy, most: int) -> IntArray:
    """Clusters in the order of their turn: every branch of the root gets its share, links decide within it."""
    n = tree.n
    level = next((j for j in range(2, tree.K + 1) if tree.n_clusters[j - 1] >= 16 * n / most), tree.K)
    sizes, first = tree.sizes(level), tree.first_leaf(level)
    member = csr_array((np.ones(n), (np.arange(n), tree.labels(level))), shape=(n, len(sizes)))
    between = (member.T @ links @ member).tocsr()
    branch = np.arange(len(sizes))
    for j in range(level - 1, 1, -1):
        branch = tree.parent(j)[branch]
    share = np.maximum(np.rint(most * np.bincount(branch, weights=sizes) / n), 1)
    gain = between.diagonal().copy()
    free = np.ones(len(sizes), bool)
    parts, taken = [], 0
    while taken < most and free.any():
        open_ = free & (share[branch] > 0)
        candidates = np.flatnonzero(open_ if open_.any() else free)
        c = int(candidates[(gain[candidates] / sizes[candidates]).argmax()])
        room = int(min(sizes[c], most - taken, max(share[branch[c]], 1)))
        parts.append(tree.order[first[c] : first[c] + room])  # neighbours on the leaves stay together
        taken += room
        share[branch[c]] -= room
        free[c] = False
        gain += 2 * between[[c]].toarray().ravel()
    chosen = np.concatenate(parts)
    return np.concatenate([chosen, np.setdiff1d(tree.order, chosen)])


def restrict(tree: Hierarchy, nodes: IntArray) -> tuple[Hierarchy, list[IntArray]]:
    """The tree of some nodes, with all K levels, and for every level which slot of the whole tree each slot is.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan import Hierarchy
    >>> small, slots = restrict(Hierarchy.from_nested([[0, 1], [2, 3], [4]]), np.array([2, 3, 4]))
    >>> small, slots[1].tolist()
    (Hierarchy(n=3, K=3, clusters=1-2-3, h=2), [1, 2])
    """
    place = np.full(tree.n, -1)
    place[nodes] = np.arange(len(nodes))
    leaves = np.flatnonzero(place[tree.order] >= 0)
    slots, parents, below = [leaves], [], leaves
    for level in range(tree.K - 1, 0, -1):
        above, position = np.unique(tree.parent(level)[below], return_inverse=True)
        parents.append(position)
        slots.append(above)
        below = above
    return Hierarchy(parents, place[tree.order[leaves]]), slots[::-1]


def framelets_on(tree: Hierarchy, nodes: IntArray, most: int = _MOST_FRAMELETS) -> list[list[dict[str, Any]]]:
    """For every level 1, ..., K−1 some framelets of the binary Haar system, with their values on a sample.

    Clusters take turns, the largest first, with the pair of children that covers most of the sample; then the next
    pair. Each framelet has its ``cluster`` Λ, the two ``children`` it compares, ``support`` (all nodes), and
    ``at`` and ``values`` (places in the sample where it is not zero, and values there).
    """
    system = FrameletSystem(tree)
    place = np.full(tree.n, -1)
    place[nodes] = np.arange(len(nodes))
    levels = []
    for level in range(1, tree.K):
        chosen = _choose(tree, level, place[tree.order] >= 0, most)
        levels.append(_values(system, level, chosen, nodes))
    return levels


def _choose(tree: Hierarchy, level: int, sampled: NDArray[np.bool_], most: int) -> list[tuple[int, int, int]]:
    """(slot, a, b) of the framelets to show: pairs of children a < b, counted from 0."""
    leaf = tree.first_leaf(level + 1)
    seen = np.concatenate([[0], np.cumsum(sampled)])
    size = seen[leaf[1:]] - seen[leaf[:-1]]
    first = tree.first_child(level)
    clusters = np.flatnonzero(np.diff(first) > 1)
    total = np.add.reduceat(size, first[:-1])[clusters]
    clusters = clusters[np.argsort(-total, kind="stable")][:most]
    turns: list[tuple[int, int, int, int]] = []
    for rank, c in enumerate(clusters.tolist()):
        children = size[first[c] : first[c + 1]]
        largest = np.sort(np.argsort(-children, kind="stable")[:12])  # 66 pairs: more than are shown
        pairs = [(int(a), int(b)) for x, a in enumerate(largest) for b in largest[x + 1 :] if children[a] + children[b]]
        pairs.sort(key=lambda pair: -(children[pair[0]] + children[pair[1]]))
        turns += [(turn, rank, a, b) for turn, (a, b) in enumerate(pairs)]
    turns.sort(key=lambda entry: entry[:2])
    picked = sorted((rank, turn, a, b) for turn, rank, a, b in turns[:most])
    return [(int(clusters[rank]), a, b) for rank, _, a, b in picked]


def _values(
    system: FrameletSystem, level: int, chosen: list[tuple[int, int, int]], nodes: IntArray
) -> list[dict[str, Any]]:
    tree = system.hierarchy
    counts = system.n_framelets(level)
    starts, children = np.cumsum(counts) - counts, tree.n_children(level)
    adjoint = system.operator("framelets", level).T
    shown = []
    for at in range(0, len(chosen), _CHUNK):
        chunk = chosen[at : at + _CHUNK]
        unit = np.zeros((int(counts.sum()), len(chunk)), np.float32)
        for column, (slot, a, b) in enumerate(chunk):
            unit[starts[slot] + _pair(a, b, int(children[slot])), column] = 1.0
        vectors = adjoint @ unit
        for (slot, a, b), vector in zip(chunk, vectors.T, strict=True):
            here = np.flatnonzero(vector[nodes])
            shown.append(
                {
                    "cluster": list(tree.cluster_at(level, slot).index),
                    "children": [a + 1, b + 1],
                    "support": int(np.count_nonzero(vector)),
                    "at": here.tolist(),
                    "values": [float(f"{value:.3g}") for value in vector[nodes[here]]],
                }
            )
    return shown


def _pair(a: int, b: int, children: int) -> int:
    """The place of the pair a < b among the pairs of a cluster's children, as `binary_haar` lists them."""
    return a * children - a * (a + 1) // 2 + b - a - 1


def as_integers(values: FloatArray, scale: float = 10_000) -> list[int]:
    """Numbers of about one as integers, which are shorter in a file."""
    rounded: list[int] = np.rint(values * scale).astype(np.int64).ravel().tolist()
    return rounded
