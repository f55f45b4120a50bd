"""Framelets written as the paper writes them: one vector at a time, dense, by equations (1) and (2)."""

import numpy as np


def clusters(tree, level):
    """Every cluster of a level with its index vector, from the tree's public face alone."""
    found = [tree.cluster((1,))]
    for _ in range(level - 1):
        found = [child for cluster in found for child in tree.children(cluster.index)]
    return found


def frame(tree, filters, j0=1):
    """Rows φ of level j0, then ψ of the clusters at levels j0, ..., K−1, for any p and B, tight or not.

    ``filters`` maps a cluster to (p, B), B dense.
    """
    phi = {}
    for cluster in clusters(tree, tree.K):
        phi[cluster.index] = np.eye(tree.n)[cluster.nodes[0]]
    psi = {}
    for level in range(tree.K - 1, 0, -1):
        for cluster in clusters(tree, level):
            children = [phi[child.index] for child in tree.children(cluster.index)]
            p, B = filters(cluster)
            phi[cluster.index] = sum(p[i] * child for i, child in enumerate(children))
            psi[cluster.index] = [sum(row[i] * child for i, child in enumerate(children)) for row in B]
    rows = [phi[cluster.index] for cluster in clusters(tree, j0)]
    for level in range(j0, tree.K):
        for cluster in clusters(tree, level):
            rows.extend(psi[cluster.index])
    return np.array(rows)


def pair_filters(cluster):
    """Corollary 1, entry by entry."""
    count = cluster.n_children
    rows = []
    for first in range(count):
        for second in range(first + 1, count):
            row = np.zeros(count)
            row[first], row[second] = 1 / np.sqrt(count), -1 / np.sqrt(count)
            rows.append(row)
    return np.full(count, 1 / np.sqrt(count)), rows


def is_tight(rows, tolerance=1e-10):
    """Whether Σ ⟨f, u⟩ u = f for every f."""
    return bool(np.abs(rows.T @ rows - np.eye(rows.shape[1])).max() < tolerance)
