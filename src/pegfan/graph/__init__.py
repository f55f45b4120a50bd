"""Everything from outside enters here: the graph, a value that is checked once and read-only from then on.

Whatever the caller has (SciPy, NumPy, an edge list, NetworkX, PyG, PyGSP) becomes a :class:`Graph`; `attributes` checks
what it is made of, `converters` reads the graphs of other libraries, and `changes` makes graphs of graphs.
"""

from pegfan.graph.attributes import metric_problem
from pegfan.graph.converters import labels_or_targets, single_column
from pegfan.graph.edges import Joined, join_edges, merge_pairs
from pegfan.graph.graph import Graph, check_graph
from pegfan.graph.splits import Split, are_known, as_split, mask_splits

__all__ = [
    "Graph",
    "Joined",
    "Split",
    "are_known",
    "as_split",
    "check_graph",
    "join_edges",
    "labels_or_targets",
    "mask_splits",
    "merge_pairs",
    "metric_problem",
    "single_column",
]
