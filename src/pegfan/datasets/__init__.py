"""Graphs to work with: public benchmarks by name."""

from pegfan.datasets.benchmarks import info, load, names, table

__all__ = ["info", "load", "names", "table"]
