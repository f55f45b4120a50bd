"""How dense framelet projections are, beside powers of the adjacency matrix (the paper's sparsity argument)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from pegfan._checks import check_integer, check_kind
from pegfan.framelets import FrameletSystem
from pegfan.graph import Graph, check_graph

if TYPE_CHECKING:
    from pandas import DataFrame

_ENTRIES = 2**24  # entries of a power of A that may be formed at a time


def density(graph: Graph, system: FrameletSystem, powers: int = 3, sample: int | None = None) -> DataFrame:
    """Count the nonzeros of the projections F_j and of the powers of A, without forming any of them.

    F_0 = Φ_1ᵀΦ_1 and F_j = Ψ_jᵀΨ_j are made of one full block per cluster of level j, so ``Σ |s_Λ|²`` entries are
    not zero; a cluster with a single child has no framelet and no block. (Filters with zeros in p are counted
    as exactly.) Powers of A, by contrast, fill up.

    Parameters
    ----------
    graph : Graph
    system : FrameletSystem
        On a tree of this graph's nodes.
    powers : int
        The highest power of A.
    sample : int, optional
        Count the powers on this many rows, drawn with a fixed seed, and scale up; for graphs whose powers take
        too long. Default: count them all.

    Returns
    -------
    DataFrame
        A row for every F_j and A^k, with ``nonzeros`` and ``density``, the fraction of n² entries.

    Examples
    --------
    >>> import pegfan as pf
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> density(path, system, powers=2)
         nonzeros  density
    F_0        16    1.000
    F_1        16    1.000
    F_2         8    0.500
    A           6    0.375
    A^2         8    0.500
    """
    import pandas as pd

    check_graph(graph)
    check_kind(system, "system", FrameletSystem)

    if system.n != graph.n:
        raise ValueError(f"the system is of a tree with {system.n} nodes, and the graph has {graph.n}")
    check_integer(powers, "powers", least=0)
    if sample is not None:
        check_integer(sample, "sample, a number of rows,", least=1)
    counts = {f"F_{j}": count for j, count in enumerate(_projection_nonzeros(system))}
    for k, count in enumerate(_power_nonzeros(graph.adjacency, powers, sample), start=1):
        counts["A" if k == 1 else f"A^{k}"] = count
    table = pd.DataFrame({"nonzeros": pd.Series(counts, dtype=np.int64)})
    table["density"] = table["nonzeros"] / graph.n**2
    return table


def _projection_nonzeros(system: FrameletSystem) -> list[int]:
    """The nonzeros of F_0, ..., F_(K−1), from the supports of scaling vectors, finest level first.

    The block of a cluster is Φᵀ(I − p pᵀ)Φ over its children: between two children it is full where both
    weigh something, inside a child unless p = 1 there.
    """
    support = np.ones(system.n, np.int64)
    counts = []
    for j in range(system.K - 1, 0, -1):
        level = system._level(j)
        reached = np.where(level.p != 0, support, 0)
        inside = np.where(np.abs(1 - level.p**2) > 1e-12, support**2, 0) - reached**2
        parents = level.first[:-1]
        support = np.add.reduceat(reached, parents)
        counts.append(int((support**2).sum() + np.add.reduceat(inside, parents).sum()))
    return [int(support[0]) ** 2, *reversed(counts)]


def _power_nonzeros(adjacency: csr_array, powers: int, sample: int | None) -> list[int]:
    n = adjacency.shape[0]
    pattern = adjacency.astype(bool)
    rows = np.arange(n)
    if sample is not None and sample < n:
        rows = np.sort(np.random.default_rng(0).choice(n, sample, replace=False))
    step = max(_ENTRIES // n, 1)
    totals = np.zeros(powers, np.int64)
    for start in range(0, len(rows), step):
        reached: Any = pattern[rows[start : start + step]]
        for k in range(powers):
            reached = reached @ pattern if k else reached
            totals[k] += reached.nnz
    return [round(int(total) * n / len(rows)) for total in totals]
