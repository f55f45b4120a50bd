"""Framelets as layers of graph networks, in the manner of PyTorch Geometric: ``forward(x, edge_index, ...)``.

The layers take the tensors that PyG's own take, and need torch only. The tree of a graph is built when it is first
seen and kept by its content, whatever the order of its edges; in a batch, every graph has its own.
"""

from pegfan._extras import need

need("torch", "torch", "pegfan.nn")

# ruff: noqa: E402 - torch was looked for first
from pegfan.nn.conv import FrameletConv
from pegfan.nn.network import PEGFAN
from pegfan.nn.pool import FrameletPool, Pooling

__all__ = ["PEGFAN", "FrameletConv", "FrameletPool", "Pooling"]
