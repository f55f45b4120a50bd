"""One default for one word: what functions, classifiers, recipes and commands start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BUILDERS: Final = tuple(sorted(path.stem for path in (Path(__file__).parent / "trees" / "builders").glob("[!_]*.py")))
"""The names of all tree builders, those of their files; here, so that ``--help`` need not load them."""
METHOD: Final = "auto"
"""How a tree is built: Ward's method, and matching for large graphs."""
H: Final = 8
"""The most children of a cluster."""
KIND: Final = "c"
"""The type of channels (Section IV of the paper)."""
REGIME: Final = "auto"
"""Which hop matrix: decided by the homophily of training labels."""
HOPS: Final = 3
"""r, the highest power of the hop matrix."""
DIRECTION: Final = "out"
"""Which side of directed edges trees and hops look at: that of the authors' code."""
SCALING: Final = "l1"
"""What is done to features first: rows are divided by the sums of their absolute values."""
STAND_IN: Final = "degree"
"""What a graph without features gets."""
TREES: Final = 16
"""Trees that signals are averaged over."""
SPLIT: Final = 0
"""Whose training labels are seen: the first split's."""
SEED: Final = 0
"""Of everything that is drawn."""
BUDGET: Final = 120.0
"""Seconds for automatic training."""
MEMBERS: Final = 10
"""The most recipes in the ensemble that automatic training keeps."""
TRIES: Final = 8
"""Settings that every model of a comparison may try."""
HIDDEN: Final = 64
"""The columns that the network makes of a channel."""
LAYERS: Final = 2
"""Of the network."""
DROPOUT: Final = 0.5
"""The probability that an entry is dropped in training."""
HEAD: Final = "network"
"""What is trained on channels."""
LEAVES: Final = 8
"""The most leaves of a boosted tree."""
HOP_NORMALIZE: Final = True
"""Whether the network divides the rows that it makes of a channel by their norms."""
RULE: Final = "empirical"
"""How coefficients are shrunk."""
RULES: Final = ("empirical", "block", "sure", "bayes", "universal")
"""The other ways, and this one; see `pegfan.FrameletSystem.denoise`."""
