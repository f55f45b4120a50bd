"""Everything from outside enters here: the graph, a value that is checked once and read-only from then on.

Whatever the caller has (SciPy, NumPy, an edge list, NetworkX, PyG, PyGSP) becomes a :class:`Graph`; `attributes` checks
what it is made of, `converters` reads the graphs of other libraries, and `changes` makes graphs of graphs.
"""

from pegfan.graph.attributes import metric_problem as metric_problem
from pegfan.graph.converters import labels_or_targets as labels_or_targets
from pegfan.graph.converters import single_column as single_column
from pegfan.graph.edges import Joined as Joined
from pegfan.graph.edges import join_edges as join_edges
from pegfan.graph.edges import merge_pairs as merge_pairs
from pegfan.graph.graph import Graph
from pegfan.graph.graph import check_graph as check_graph
from pegfan.graph.splits import Split, as_split
from pegfan.graph.splits import are_known as are_known
from pegfan.graph.splits import mask_splits as mask_splits

__all__ = ["Graph", "Split", "as_split"]  # for users; the other names are for the rooms that follow
