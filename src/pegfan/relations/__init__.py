"""Relations of a graph: who attends to whom, and how much, beyond the edges that it has.

A relation is a sparse n × n matrix, a `csr_array` of float64 with int32 indices and no stored zeros: row i lists the
nodes that node i attends to. Networks with several relations (WRGAT, GEOM-GCN) take a list of them.
"""

from pegfan.relations.geometry import GeomRelations, geom_divisions, geom_relations, read_geom_relations
from pegfan.relations.struc2vec import struc2vec_relations

__all__ = ["GeomRelations", "geom_divisions", "geom_relations", "read_geom_relations", "struc2vec_relations"]
