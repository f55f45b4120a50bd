"""The builder "adjacency"."""

import numpy as np

from pegfan.trees import embeddings
from pegfan.trees.level import first_level
from support.graphs import random_graph


def test_the_adjacency_embedding_keeps_distances_between_rows():
    graph = random_graph(2, 30, 5.0)
    level = first_level(graph, np.arange(30), "symmetric")
    E = embeddings.adjacency_embedding(level, 30)
    A = level.edges.toarray()
    np.testing.assert_allclose(E @ E.T, A @ A.T, atol=1e-9)
