"""Graphs to work with: public benchmarks by name, your own files, generated graphs."""

from pegfan.datasets.benchmarks import info, load, names, table
from pegfan.datasets.splits import random_splits
from pegfan.datasets.synthetic import D4, synthetic

__all__ = ["D4", "info", "load", "names", "random_splits", "synthetic", "table"]
