"""The tree builders: one file each, which is named like the builder and holds its function under `builder`.

A file that is put here is a builder: its name is taken by `pegfan.build_tree`, recipes, layers and commands, and its
function goes through every test of trees.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pegfan import _defaults as default
from pegfan._arrays import IntArray
from pegfan._checks import shown
from pegfan.trees.level import LevelGraph

__all__ = ["BUILDERS", "Builder", "Clustering", "Option", "builder"]

Clustering = Callable[[LevelGraph, int], IntArray]
"""A function from a level and h to one label per node: which nodes become one cluster."""

Option = Literal["signals", "seed"]
"""What a builder may take beside the graph and h: signals to follow, and a seed, which changes the edges' weights."""


@dataclass(frozen=True)
class Builder:
    """A function that clusters one level of a tree, and what it takes.

    Attributes
    ----------
    cluster
        The function.
    name
        What `build_tree` calls it.
    takes
        The options of `build_tree` that make a difference to it; others are refused.
    most_nodes
        How many nodes it is for, if it compares all pairs of them; None where any number will do.
    """

    cluster: Clustering
    name: str
    takes: frozenset[Option] = frozenset()
    most_nodes: int | None = None

    def __call__(self, level: LevelGraph, h: int) -> IntArray:
        """Cluster a level."""
        return self.cluster(level, h)

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.cluster.__doc__ or "").strip().partition("\n")[0]

    def check(self, n: int, **options: Any) -> None:
        """Refuse more nodes than it is for, and options that it would ignore."""
        for option, value in options.items():
            if value is not None and option not in self.takes:
                others = [other.name for other in BUILDERS.values() if option in other.takes]
                raise ValueError(
                    f"the builder {shown(self.name)} takes no {option}: leave {option} out, use one that does "
                    f"({', '.join(others)}), or say that yours does with @builder({option!r})"
                )
        if self.most_nodes is not None and n > self.most_nodes:
            raise ValueError(
                f"{shown(self.name)} compares all pairs of {n:,} nodes ({n**2 / 2:.1e} distances at the first level; "
                f"a matrix of them would take {n**2 * 4 / 1e9:,.0f} GB); above {self.most_nodes:,} use "
                "method='matching'"
            )


def builder(*takes: Option, most_nodes: int | None = None) -> Callable[[Clustering], Builder]:
    """Make a `Builder` of a function, with the options that it takes.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> @pf.trees.builder()
    ... def in_turn(level, h):
    ...     "Nodes that follow each other in canonical order."
    ...     return np.arange(level.n) // h
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]])
    >>> pf.build_tree(graph, in_turn, h=2).n_clusters
    (1, 2, 3, 5)
    """

    def make(function: Clustering) -> Builder:
        name = getattr(function, "__name__", type(function).__name__)
        return Builder(function, name, frozenset(takes), most_nodes)

    return make


BUILDERS: Mapping[str, Builder] = MappingProxyType(
    {name: getattr(importlib.import_module(f"{__name__}.{name}"), name) for name in default.BUILDERS}
)
"""All builders of the package, by name."""
