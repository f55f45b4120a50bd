"""The networks, as torch modules: PEGFAN and FSGNN on channels, and the graph networks that they are compared with."""

from pegfan._extras import need

need("torch", "torch", "pegfan.models")

# ruff: noqa: E402 - torch was looked for first
from pegfan.models._neighbours import GraphNetwork, Neighbours
from pegfan.models._sparse import Sparse
from pegfan.models.classic import ClassicGNN
from pegfan.models.gat import GAT
from pegfan.models.gcn import GCN
from pegfan.models.gcnii import GCNII
from pegfan.models.geom_gcn import GeomGCN
from pegfan.models.gprgnn import GPRGNN
from pegfan.models.h2gcn import H2GCN
from pegfan.models.label_propagation import LabelPropagation
from pegfan.models.linkx import LINKX
from pegfan.models.mixhop import MixHop
from pegfan.models.mlp import MLP
from pegfan.models.pegfan import FSGNN, PEGFAN, ChannelNetwork, to_tensors
from pegfan.models.sage import GraphSAGE
from pegfan.models.sgc import SGC
from pegfan.models.sign import SIGN
from pegfan.models.wrgat import WRGAT

__all__ = [
    "FSGNN",
    "GAT",
    "GCN",
    "GCNII",
    "GPRGNN",
    "H2GCN",
    "LINKX",
    "MLP",
    "PEGFAN",
    "SGC",
    "SIGN",
    "WRGAT",
    "ChannelNetwork",
    "ClassicGNN",
    "GeomGCN",
    "GraphNetwork",
    "GraphSAGE",
    "LabelPropagation",
    "MixHop",
    "Neighbours",
    "Sparse",
    "to_tensors",
]
