"""Trees over graphs: the hierarchical clustering on which framelets are built, and its builders."""

from pegfan.trees.build import build_tree
from pegfan.trees.builders import BUILDERS, Builder, builder
from pegfan.trees.canonical import Colouring, canonical_order
from pegfan.trees.extend import extend_tree
from pegfan.trees.hierarchy import Cluster, Hierarchy
from pegfan.trees.level import LevelGraph

__all__ = [
    "BUILDERS",
    "Builder",
    "Cluster",
    "Colouring",
    "Hierarchy",
    "LevelGraph",
    "build_tree",
    "builder",
    "canonical_order",
    "extend_tree",
]
