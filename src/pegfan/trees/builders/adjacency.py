"""Clusters of nodes with similar rows of the adjacency matrix."""

from __future__ import annotations

from pegfan._arrays import IntArray
from pegfan.trees.builders import builder
from pegfan.trees.embeddings import adjacency_embedding
from pegfan.trees.level import LevelGraph
from pegfan.trees.linkage import ALL_PAIRS, cluster_points


@builder("signals", "seed", most_nodes=ALL_PAIRS)
def adjacency(level: LevelGraph, h: int) -> IntArray:
    """Ward's linkage on a truncated SVD of the adjacency rows: nodes with similar rows together."""
    return cluster_points(level, adjacency_embedding, h)
