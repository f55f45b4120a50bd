"""Random trees, filters and signals for hypothesis."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial import cKDTree

from pegfan import Graph, Hierarchy


def random_tree(seed, depth, most, limit):
    """A tree grown from the root: `depth` splittings with 1 to `most` children each, about `limit` leaves."""
    rng = np.random.default_rng(seed)
    parents, count = [], 1
    for _ in range(depth):
        children = rng.integers(1, most + 1, count)
        spare = max(limit - count, 0)
        extra = np.minimum(np.cumsum(children - 1), spare)  # stop growing where the limit is reached
        children = 1 + np.diff(extra, prepend=0)
        parents.insert(0, np.repeat(np.arange(count), children))
        count = int(children.sum())
    return Hierarchy(parents, rng.permutation(count))


@st.composite
def trees(draw, limit=40):
    """Trees of all shapes: chains, wide roots, unbalanced depth, single nodes, K = 1 and 2."""
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    shape = draw(st.sampled_from(["bushy", "wide", "chain", "ragged", "single"]), label="shape")
    if shape == "single":
        return Hierarchy([np.zeros(1, int)] * draw(st.integers(0, 3)))
    if shape == "wide":
        return random_tree(seed, draw(st.integers(1, 2)), limit, limit)
    if shape == "chain":
        return random_tree(seed, draw(st.integers(2, 8)), 2, 6)
    if shape == "ragged":
        return Hierarchy.from_nested(_ragged(np.random.default_rng(seed), draw(st.integers(1, limit))))
    return random_tree(seed, draw(st.integers(1, 5)), draw(st.integers(2, 6)), limit)


def _ragged(rng, n):
    """Nested lists whose leaves lie at all depths."""
    forest = [int(node) for node in rng.permutation(n)]
    while len(forest) > 4:
        size = int(rng.integers(2, 5))
        picked = [forest.pop(int(rng.integers(len(forest)))) for _ in range(size)]
        forest.append(picked)
    return forest


def signal(tree, seed, columns=None, dtype=np.float64):
    shape = tree.n if columns is None else (tree.n, columns)
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def unit(rng, size):
    """A unit vector without entries near zero."""
    vector = rng.uniform(0.2, 1.0, size) * rng.choice([-1.0, 1.0], size)
    return vector / np.linalg.norm(vector)


def admissible(rng, children, extra=0):
    """Any p and B of Theorem 1: an isometry applied to a basis of what p leaves."""
    p = unit(rng, children)
    rest = np.linalg.svd(p[None, :])[2][1:]
    isometry = np.linalg.qr(rng.standard_normal((children - 1 + extra, children - 1)))[0]
    return p, isometry @ rest


def places(n, seed=0):
    """A graph of n places in a square, each joined to its four nearest, and where they are."""
    xy = np.random.default_rng(seed).random((n, 2))
    distance, near = cKDTree(xy).query(xy, 5)
    weights = np.exp(-((distance[:, 1:] / distance[:, 1:].mean()) ** 2)).ravel()
    matrix = sparse.csr_array((weights, (np.repeat(np.arange(n), 4), near[:, 1:].ravel())), shape=(n, n))
    return Graph(matrix.maximum(matrix.T)), xy
