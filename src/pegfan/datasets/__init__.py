"""Graphs to work with: public benchmarks by name, your own tables and files, generated graphs."""

from pegfan.datasets._labels import NoLabels
from pegfan.datasets._schema import Rule, Schema
from pegfan.datasets._table import ReadReport, TableOptions
from pegfan.datasets.benchmarks import info, load, names, table
from pegfan.datasets.growth import Growth
from pegfan.datasets.readers import ReadOptions, read_graph
from pegfan.datasets.sources import Source
from pegfan.datasets.splits import fold_splits, random_splits
from pegfan.datasets.stand_in import stand_in_features
from pegfan.datasets.synthetic import D4, synthetic
from pegfan.datasets.tables import UnknownIds, graph_from_tables
from pegfan.datasets.transactions import Transactions, transactions

__all__ = [
    "D4",
    "Growth",
    "NoLabels",
    "ReadOptions",
    "ReadReport",
    "Rule",
    "Schema",
    "Source",
    "TableOptions",
    "Transactions",
    "UnknownIds",
    "fold_splits",
    "graph_from_tables",
    "info",
    "load",
    "names",
    "random_splits",
    "read_graph",
    "stand_in_features",
    "synthetic",
    "table",
    "transactions",
]
