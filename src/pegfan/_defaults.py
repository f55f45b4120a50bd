"""One default for one word: what functions, classifiers, recipes and commands start from."""

from __future__ import annotations

METHOD = "auto"
"""How a tree is built: Ward's method, and matching for large graphs."""
H = 8
"""The most children of a cluster."""
KIND = "c"
"""The type of channels (Section IV of the paper)."""
REGIME = "auto"
"""Which hop matrix: decided by the homophily of training labels."""
HOPS = 3
"""r, the highest power of the hop matrix."""
DIRECTION = "out"
"""Which side of directed edges trees and hops look at: that of the authors' code."""
SCALING = "l1"
"""What is done to features first: rows are divided by the sums of their absolute values."""
STAND_IN = "degree"
"""What a graph without features gets."""
SEED = 0
"""Of everything that is drawn."""
BUDGET = 120.0
"""Seconds for automatic training."""
