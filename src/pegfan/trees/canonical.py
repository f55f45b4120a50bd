"""A canonical order of nodes: by structure and features, never by node number.

Colour refinement gives every node a 64-bit colour that depends on its features, its degree, its neighbours' colours,
theirs, and so on. Sums of integers that wrap around are the same in any order, bit for bit, so the colours of a
renumbered graph are the renumbered colours. Nodes of equal colour are either symmetric, or colour refinement cannot
tell them apart; on graphs small enough, look-ahead and individualisation continue from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pegfan._arrays import IntArray
from pegfan._cache import Cache
from pegfan._hashing import digest_of, hash_rows, mix_all, row_hashes
from pegfan._matrices import by_label, count_hashes, csr_of, moved, sorted_hashes, transposed
from pegfan.graph import Graph, check_graph
from pegfan.trees._kernels import add_by_label, components, gather_colours, leading_bits
from pegfan.trees.hierarchy import offsets_within

Colours = NDArray[np.uint64]

ROUNDS = 64  # rounds of refinement that any graph gets; small ones get as many as they need
VISITS = 100_000_000
"""Arcs that refinement may visit beyond that, and that individualisation may visit: a second or so."""

_COLOURINGS = Cache(2**26)
"""Of equal graphs, by their digests: a tree, its channels and a split ask for one order."""
_OVERHEAD = 50_000  # arcs that could be visited in the time that a component takes whatever its size


@dataclass(frozen=True, eq=False)
class Colouring:
    """What `canonical_order` found.

    Attributes
    ----------
    order
        The nodes in canonical order: ``graph.permute(order)`` is the same for every numbering of the graph, as far as
        the colours tell.
    classes
        The class of every node: nodes of one class look alike (numbered in canonical order of the classes).
    tied
        The number of nodes that share their class with another.
    symmetric
        How many choices were made between nodes that are symmetric (twins, copies of a component, or nodes that an
        automorphism was found for): any choice gives the same graph.
    arbitrary
        How many nodes took part in choices that went by node number, for they could be neither told apart nor shown to
        be symmetric at a reasonable cost. With 0, ``graph.permute(order)`` does not depend on the numbering; with
        ``tied`` 0 as well, renumbering the graph renumbers the order.
    """

    order: IntArray
    classes: IntArray
    tied: int
    symmetric: int
    arbitrary: int


def canonical_order(graph: Graph, labels: IntArray | None = None) -> Colouring:
    """Order the nodes of a graph by what they are, not by how they are numbered.

    Parameters
    ----------
    graph
        A graph; directions, weights (those of its `edge_matrices` too) and features tell nodes apart. Labels do not.
    labels
        A number for every node that counts as well.

    Examples
    --------
    The nodes of a path are told apart up to its mirror symmetry:

    >>> import pegfan as pf
    >>> path = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]])
    >>> colouring = pf.trees.canonical_order(path)
    >>> colouring.classes[[0, 1]].tolist() == colouring.classes[[4, 3]].tolist()
    True
    >>> colouring.tied, colouring.arbitrary
    (4, 0)
    """
    check_graph(graph)

    def colour() -> Colouring:
        refiner = Refiner(_all_weights(graph), graph.directed)
        # Long paths and grids of millions of nodes would take as many rounds as they are long.
        return colouring_of(refiner, refiner.refine(_initial_colours(graph, labels), or_what_is_affordable=True))

    return _COLOURINGS.get((graph.digest, digest_of(labels)), colour)


def colouring_of(refiner: Refiner, stable: Colours) -> Colouring:
    """The order that refined colours give, with ties broken as far as they can be."""
    order, number, shared = sorted_hashes(stable, refiner.index)
    classes = np.empty(len(order), np.int64)
    classes[order] = number
    tied = int(np.count_nonzero(shared))
    symmetric = arbitrary = 0
    if tied:
        nodes = order[shared]
        apart, symmetric, arbitrary = _break_ties(refiner, stable, np.sort(nodes))
        # The stable colours come first, so that ties are broken inside their class.
        order[shared] = nodes[np.lexsort((apart[nodes], number[shared]))]
    in_order = order.astype(np.int64)
    for array in (in_order, classes):
        array.setflags(write=False)
    return Colouring(in_order, classes, tied, symmetric, arbitrary)


def _all_weights(graph: Graph) -> csr_array:
    """Bits that tell edges apart by their weights, all of them where the graph has several matrices."""
    adjacency = graph.adjacency
    weights = csr_of(
        _leading_bits(adjacency.data, adjacency.data), adjacency.indices, adjacency.indptr, adjacency.shape
    )
    others = [matrix for _, matrix in sorted(graph.edge_matrices.items())]
    if not others:
        return weights
    keys = [matrix.tocoo().coords[0].astype(np.int64) * graph.n + matrix.indices for matrix in [weights, *others]]
    every = np.unique(np.concatenate(keys))
    bits = np.zeros(len(every), np.uint64)
    for salt, (key, matrix) in enumerate(zip(keys, [graph.adjacency, *others], strict=True)):
        bits[np.searchsorted(every, key)] += _scramble(_leading_bits(matrix.data, matrix.data) + np.uint64(salt))
    rows, columns = np.divmod(every, graph.n)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=graph.n))])
    index = weights.indices.dtype
    return csr_array((bits, columns.astype(index), indptr.astype(index)), shape=weights.shape)


class SpentError(Exception):
    """The budget of visits is used up."""


class Refiner:
    """Colour refinement on one graph; `SpentError` where it has visited more arcs than its budget allows.

    Parameters
    ----------
    weights
        A matrix of bits that tell edges apart.
    directed
        Whether it need not be symmetric.
    """

    def __init__(self, weights: csr_array, directed: bool) -> None:
        self.weights, self.directed = weights, directed
        self.sides = [(weights.indptr, weights.indices, weights.data, np.uint64(5))]
        if directed:
            incoming = transposed(weights)
            self.sides.append((incoming.indptr, incoming.indices, incoming.data, np.uint64(7)))
        self.allow(weights.nnz * len(self.sides), weights.shape[0])

    def allow(self, arcs: int, n: int) -> None:
        """Start with the budget that a graph of so many arcs and nodes has."""
        self.arcs = max(arcs, n)
        self.visited, self.budget = 0, max(ROUNDS * self.arcs, VISITS)

    @property
    def index(self) -> Any:
        """The dtype of the numbers of nodes."""
        return self.weights.indices.dtype

    @property
    def plain(self) -> bool:
        """Whether edges have neither directions nor different weights."""
        bits = self.weights.data
        return not self.directed and len(bits) > 0 and bool(bits.min() == bits.max())

    def step(self, colours: Colours, out: Colours | None = None) -> Colours:
        """The colours after one round."""
        total = np.multiply(colours, np.uint64(3), out=out)
        self.add_neighbours(colours, total)
        mix_all(total, total)
        self.visited += self.arcs
        if self.visited > self.budget:
            raise SpentError
        return total

    def add_neighbours(self, colours: Colours, total: Colours) -> None:
        """Add what every node sees of its neighbours' colours."""
        for indptr, indices, weights, factor in self.sides:
            gather_colours(indptr, indices, weights, colours, factor, total)

    def hash_rows(self, nodes: NDArray[Any], joined: bool) -> Colours:
        """Hashes of the neighbourhoods of some nodes; `joined` counts them as their own neighbours."""
        key, part = np.zeros(len(nodes), np.uint64), np.empty(len(nodes), np.uint64)
        for indptr, indices, weights, factor in self.sides:
            hash_rows(nodes, indptr, indices, weights, joined, part)
            key += factor * part
        return key

    def components(self) -> tuple[NDArray[Any], int]:
        """The component of every node, numbered by their first nodes, and how many there are."""
        parent, component = (np.empty(self.weights.shape[0], self.index) for _ in range(2))
        arcs = (self.weights.indptr, self.weights.indices)
        return component, components(*arcs, not self.directed, parent, component)

    def part(self, nodes: NDArray[Any]) -> Refiner:
        """The same for some of the nodes, a component."""
        if len(nodes) == self.weights.shape[0]:
            return self
        return Refiner(moved(self.weights, nodes), self.directed)

    def refine(self, colours: Colours, count: int = 0, or_what_is_affordable: bool = False) -> Colours:
        """Step until no class splits any more; or, where that is enough, until the budget is spent."""
        room = np.empty((2, len(colours)), np.uint64)  # here and below memory is used again: fresh memory is slow
        count = count or _count(colours, room)
        original, spare = colours, None
        try:
            while count < len(colours):
                refined = self.step(colours, spare)
                refined_count = _count(refined, room)
                if refined_count <= count:
                    break
                spare = None if colours is original else colours
                colours, count = refined, refined_count
        except SpentError:
            if not or_what_is_affordable:
                raise
        return colours


def _initial_colours(graph: Graph, labels: IntArray | None) -> Colours:
    colours = np.ones(graph.n, np.uint64)
    if graph.features is not None:
        colours = row_hashes(graph.features)
    if labels is not None:
        colours = _scramble(colours + _scramble(labels.astype(np.int64).view(np.uint64)))
    # A loop leads to a node of one's own colour, as an edge to an equal node does: tell them apart from the start.
    loops = _scramble(_leading_bits(graph.adjacency.diagonal(), graph.adjacency.data))
    for _, matrix in sorted(graph.edge_matrices.items()):
        loops = _scramble(loops + _leading_bits(matrix.diagonal(), matrix.data))
    return colours + loops


def _leading_bits(weights: Any, all_weights: Any) -> Colours:
    """40 significant bits of each weight, relative to the largest of all.

    What rounding changes, where weights were summed in another order, stays unseen, and so does the unit.
    """
    out = np.empty(len(weights), np.uint64)
    leading_bits(weights, float(all_weights.max(initial=0.0)) or 1.0, out)
    return out


def _break_ties(refiner: Refiner, colours: Colours, tied: NDArray[Any]) -> tuple[Colours, int, int]:
    """Other colours for nodes that share theirs, with the numbers of symmetric and of arbitrary choices on the way."""
    colours = colours.copy()
    colours[tied], symmetric = _break_twins(refiner, colours[tied], tied)
    component, count = refiner.components()
    arbitrary, budget = 0, VISITS
    for nodes in _components_with_ties(colours, component, count, tied):
        part = refiner.part(nodes)
        part.visited, part.budget = 0, budget
        colours[nodes], chosen, left = _individualise(part, colours[nodes])
        symmetric, arbitrary = symmetric + chosen, arbitrary + left
        budget -= part.visited + _OVERHEAD
    colours[tied], copies = _break_copies(colours, component, count, tied)
    return colours, symmetric + copies, arbitrary


def _break_twins(refiner: Refiner, colours: Colours, nodes: NDArray[Any]) -> tuple[Colours, int]:
    """Number the twins of every group: nodes with the same neighbours, which no other node can tell apart."""
    symmetric = 0
    # Twins that are joined to each other share their rows once they count as their own neighbours.
    for joined in (False, True) if refiner.plain else (False,):
        key = refiner.hash_rows(nodes, joined)
        order = np.lexsort((key, colours))
        rank = np.empty(len(order), np.int64)
        rank[order] = offsets_within(colours[order], key[order])
        colours = _numbered(colours, rank, salt=2 + joined)
        symmetric += int((rank > 0).sum())
    return colours, symmetric


def _components_with_ties(
    colours: Colours, component: NDArray[Any], count: int, among: NDArray[Any]
) -> Iterator[NDArray[Any]]:
    """The nodes of every component in which two nodes have one colour."""
    parts, colours = component[among], colours[among]
    order = np.lexsort((colours, parts))
    tied = np.unique(parts[order][offsets_within(parts[order], colours[order]) > 0])
    if len(tied):
        members, first = by_label(component, count)
        for which in tied:
            yield members[first[which] : first[which + 1]]


def _individualise(refiner: Refiner, colours: Colours) -> tuple[Colours, int, int]:
    """Single nodes out, one at a time, until all colours differ; by node number once the budget is spent."""
    stable = colours
    symmetric = arbitrary = 0
    try:
        while (nodes := _smallest_tied_class(colours)) is not None:
            count = _count(colours)
            # What the whole colouring becomes if a node is singled out, as one number per node.
            futures = (refiner.refine(_single_out(colours, node), count + 1) for node in nodes)
            ahead = np.array([np.sum(_scramble(future), dtype=np.uint64) for future in futures])
            if (ahead != ahead[0]).any():
                apart = colours.copy()
                apart[nodes] = _scramble(colours[nodes] ^ ahead)
            else:
                if any(_one_orbit(refiner, stable, colours, nodes, at_once) for at_once in (True, False)):
                    symmetric += 1
                else:
                    arbitrary += len(nodes)
                apart = _single_out(colours, nodes[0])
            colours = refiner.refine(apart)
    except SpentError:
        order, _, shared = sorted_hashes(colours, refiner.index)
        order = order[shared]
        colours = colours.copy()
        colours[order] = _numbered(colours[order], np.arange(1, len(order) + 1), salt=4)
        arbitrary += len(order)
    return colours, symmetric, arbitrary


def _one_orbit(refiner: Refiner, stable: Colours, colours: Colours, nodes: IntArray, at_once: bool) -> bool:
    """Whether automorphisms that keep all colours take the first of these nodes to each of the others.

    Each node is singled out in turn, and the ties that remain are broken arbitrarily. If two of these orders give the
    same graph, they are an automorphism. Every automorphism enlarges the orbits, so few are needed. Breaking the ties
    of all classes at once is cheap, and enough for local symmetries; breaking one at a time finds the others.
    """
    orbit = np.arange(len(colours))
    form = _finish(refiner, colours, nodes[0], at_once)
    weights, before = moved(refiner.weights, form), stable[form]
    for node in nodes[1:]:
        if orbit[node] == orbit[nodes[0]]:
            continue
        other = _finish(refiner, colours, node, at_once)
        if not (np.array_equal(stable[other], before) and _equal(moved(refiner.weights, other), weights)):
            return False
        for i, j in zip(form, other, strict=True):
            if orbit[i] != orbit[j]:
                orbit[orbit == orbit[j]] = orbit[i]
    return True


def _finish(refiner: Refiner, colours: Colours, node: int, at_once: bool) -> IntArray:
    """An order of all nodes that starts with singling one out."""
    colours = refiner.refine(_single_out(colours, node))
    while (nodes := _smallest_tied_class(colours)) is not None:
        if at_once:
            _, first, counts = np.unique(colours, return_index=True, return_counts=True)
            nodes = first[counts > 1]
        colours = refiner.refine(_single_out(colours, nodes if at_once else nodes[:1]))
    return np.argsort(colours, kind="stable")


def _single_out(colours: Colours, nodes: Any) -> Colours:
    singled = colours.copy()
    nodes = np.atleast_1d(nodes)
    singled[nodes] = _numbered(singled[nodes], np.ones(len(nodes), np.int64), salt=5)
    return singled


def _equal(one: csr_array, other: csr_array) -> bool:
    parts = ((m.indptr, m.indices, m.data) for m in (one, other))
    return all(map(np.array_equal, *parts))


def _break_copies(colours: Colours, component: NDArray[Any], count: int, tied: NDArray[Any]) -> tuple[Colours, int]:
    """Tell the tied nodes of components apart, and number components that look the same as a whole."""
    key = np.zeros(count, np.uint64)
    add_by_label(component, _scramble(colours), key)
    by_key = np.argsort(key, kind="stable")
    rank = np.empty(len(key), np.int64)
    rank[by_key] = offsets_within(key[by_key])
    # The whole component enters the colour: parts of different ones may look alike on their own.
    whole = _scramble(key + rank.astype(np.uint64))
    return _scramble(colours[tied] ^ whole[component[tied]]), int((rank > 0).sum())


def _smallest_tied_class(colours: Colours) -> IntArray | None:
    """The nodes of the smallest class of more than one (of equal sizes, the one of the smallest colour)."""
    values, counts = np.unique(colours, return_counts=True)
    tied = counts > 1
    if not tied.any():
        return None
    return np.flatnonzero(colours == values[tied][counts[tied].argmin()])


def _numbered(colours: Colours, rank: Any, salt: int) -> Colours:
    """A new colour for every node of a rank above 0; each purpose has its salt, so that no two meet."""
    fresh = _scramble(_scramble(colours ^ np.uint64(salt)) + np.asarray(rank).astype(np.uint64))
    return np.where(np.asarray(rank) > 0, fresh, colours)


def _scramble(colours: Colours) -> Colours:
    out = np.empty_like(colours)
    mix_all(colours, out)
    return out


def _count(colours: Colours, room: NDArray[np.uint64] | None = None) -> int:
    room = np.empty((2, len(colours)), np.uint64) if room is None else room
    room[0] = colours
    return int(count_hashes(room[0], room[1]))
