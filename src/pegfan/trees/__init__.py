"""Trees over graphs: the hierarchical clustering on which framelets are built, and its builders."""

from pegfan.trees.build import build_tree
from pegfan.trees.canonical import Colouring, canonical_order
from pegfan.trees.extend import extend_tree
from pegfan.trees.hierarchy import Cluster, Hierarchy

__all__ = ["Cluster", "Colouring", "Hierarchy", "build_tree", "canonical_order", "extend_tree"]
