"""The paper's clustering: Ward's linkage on the spectral embedding."""

from __future__ import annotations

from pegfan._arrays import IntArray
from pegfan.trees.builders import builder
from pegfan.trees.embeddings import spectral_embedding
from pegfan.trees.level import LevelGraph
from pegfan.trees.linkage import ALL_PAIRS, cluster_points


@builder("signals", "seed", most_nodes=ALL_PAIRS)
def ward(level: LevelGraph, h: int) -> IntArray:
    """The paper's: Ward's linkage on a ten-dimensional spectral embedding."""
    return cluster_points(level, spectral_embedding, h)
