"""Figures of trees, signals and framelets, in the manner of the paper's Figures 1 and 2.

Every function returns the matplotlib `Axes` or `Figure` it drew and shows nothing by itself: in a notebook a
figure that ends a cell shows itself, for an Axes write ``ax.figure``; in a script call ``figure.savefig(...)``.
Neither pyplot nor any global setting of matplotlib is touched.
"""

from pegfan._extras import need

need("matplotlib", "plots")

from pegfan.plots._comparisons import comparison  # noqa: E402
from pegfan.plots._frames import framelets, partition_permutation  # noqa: E402
from pegfan.plots._matrices import ccns, density  # noqa: E402
from pegfan.plots._signals import decomposition, signal, signals  # noqa: E402
from pegfan.plots._trees import levels, tree, tree_blocks  # noqa: E402

__all__ = [
    "ccns",
    "comparison",
    "decomposition",
    "density",
    "framelets",
    "levels",
    "partition_permutation",
    "signal",
    "signals",
    "tree",
    "tree_blocks",
]
