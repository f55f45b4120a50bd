"""Trees over graphs: the hierarchical clustering on which framelets are built."""

from pegfan.trees.hierarchy import Cluster, Hierarchy

__all__ = ["Cluster", "Hierarchy"]
