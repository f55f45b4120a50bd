"""A K-level hierarchical clustering P_K of the nodes of a graph (Section III-A of the paper).

Level 1 is the root, level K the single nodes, and every level refines the one above. The clusters of a
level occupy *slots* 0, 1, ..., sorted so that the children of a cluster are neighbours and stand in their
order. A tree is then two things: for every level but the root, the slot of each cluster's parent, and the
order in which the graph's nodes sit on the leaves. The first is the tree, which knows no node numbers;
the second is all that changes when nodes are renumbered.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pegfan._arrays import IntArray
from pegfan._checks import as_array, check_integer, check_kind, check_list, check_mapping, check_path, kind_of, shown
from pegfan._limits import JSON, allowed_for, require
from pegfan._matrices import by_label, holds_each_once, number_by_appearance
from pegfan._npz import read_npz, write_npz

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Index = tuple[int, ...]
"""An index vector Λ = (1, λ_2, ..., λ_j) of the paper: counted from 1, as long as the cluster's level."""

_FORMAT = "pegfan hierarchy 1"
_MAX_NESTING = 1_000


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster s_Λ of a hierarchy.

    Attributes
    ----------
    index
        Its index vector Λ, counted from 1.
    level
        Its level j, the length of Λ.
    slot
        Its position among the clusters of that level, counted from 0.
    nodes
        The nodes in it, in the order of the leaves.
    n_children
        How many clusters of the next level it splits into (L_Λ; 0 for a single node at level K).
    """

    index: Index
    level: int
    slot: int
    nodes: IntArray = field(repr=False)
    n_children: int

    @property
    def size(self) -> int:
        """The number of nodes in the cluster."""
        return len(self.nodes)


class Hierarchy:
    """A K-level hierarchical clustering: parents over slots, and the order of nodes on the leaves.

    Parameters
    ----------
    parents
        K−1 arrays, finest first: ``parents[0][s]`` is the slot at level K−1 of the cluster above leaf s,
        and so on up to an array of zeros, the children of the root. Every slot of the coarser level must
        have a child. Slots need not be sorted; siblings keep the order they are given in.
        An empty sequence is the tree of a single node (K = 1).
    order
        ``order[s]`` is the node on leaf s; 0, 1, ..., n−1 when left out. A signal in the order of the
        leaves is ``f[tree.order]``.
    info
        What made the tree (method, settings); anything that JSON can hold. Not part of equality.

    Examples
    --------
    The tree of Figure 1, on a path of eight nodes:

    >>> from pegfan import Hierarchy
    >>> tree = Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    >>> tree
    Hierarchy(n=8, K=4, clusters=1-2-4-8, h=2)
    >>> tree.cluster((1, 2, 1)).nodes
    array([4, 5])
    >>> [parents.tolist() for parents in tree.parents]
    [[0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1], [0, 0]]
    """

    parents: tuple[IntArray, ...]
    order: IntArray
    info: Mapping[str, Any]

    def __init__(
        self,
        parents: Sequence[ArrayLike],
        order: ArrayLike | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(parents, np.ndarray) and parents.ndim == 1 and parents.size:
            raise ValueError("parents must be a sequence of arrays, one per level; got one array: pass [array]")
        several: Any = parents if isinstance(parents, np.ndarray) else check_list(parents, "parents", object)
        levels = [_int_vector(level, f"parents[{i}]") for i, level in enumerate(several)]
        n = len(levels[0]) if levels else 1
        for i, level in enumerate(levels):
            _check_parents(level, i, len(levels[i + 1]) if i + 1 < len(levels) else 1)
        leaves = np.arange(n) if order is None else _permutation(order, n, "order")
        levels, leaf_order = _sort_slots(levels)
        self.parents = tuple(_frozen(level, parents) for level in levels)
        self.order = _frozen(leaves if leaf_order is None else leaves[leaf_order], [order])
        self.info = {} if info is None else dict(check_mapping(info, "info"))

    # ------------------------------------------------------------------ makers

    @classmethod
    def from_labels(cls, levels: Sequence[ArrayLike], info: Mapping[str, Any] | None = None) -> Self:
        """Make a tree from the cluster label of every node at every level.

        Parameters
        ----------
        levels
            One array of n labels per level, fine to coarse or coarse to fine; labels of any kind that
            sorts (integers, strings). The root and the level of single nodes are added where they are
            missing. Siblings are ordered by label, and by node number on an added leaf level.
        info
            See `Hierarchy`.

        Examples
        --------
        >>> Hierarchy.from_labels([[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]])
        Hierarchy(n=6, K=4, clusters=1-2-3-6, h=2)
        """
        level_codes = [_codes(level, i) for i, level in enumerate(levels)]
        if not level_codes:
            raise ValueError("no levels given; pass at least one array of node labels")
        n = len(level_codes[0])
        for i, code in enumerate(level_codes):
            if len(code) != n:
                raise ValueError(f"level {i} has {len(code)} labels, level 0 has {n}; each must label every node")
        counts = [int(code.max()) + 1 for code in level_codes]
        fine_to_coarse = list(range(len(level_codes)))
        if counts == sorted(counts):
            fine_to_coarse.reverse()
        elif counts != sorted(counts, reverse=True):
            raise ValueError(f"the levels have {counts} clusters: order them from fine to coarse or back")
        for fine, coarse in pairwise(fine_to_coarse):
            _check_refinement(level_codes[fine], level_codes[coarse], levels[fine], fine, coarse)
        codes = [level_codes[i] for i in fine_to_coarse]
        if codes[0].max() + 1 < n:
            codes.insert(0, np.arange(n))
        if codes[-1].max() > 0:
            codes.append(np.zeros(n, np.int64))
        order = np.empty(n, np.int64)
        order[codes[0]] = np.arange(n)
        parents = []
        for fine_code, coarse_code in pairwise(codes):
            above = np.empty(fine_code.max() + 1, np.int64)
            above[fine_code] = coarse_code
            parents.append(above)
        return cls(parents, order, info)

    @classmethod
    def from_nested(cls, nested: Sequence[Any], info: Mapping[str, Any] | None = None) -> Self:
        """Make a tree from nested lists of node numbers; shallower nodes get single-child clusters.

        Examples
        --------
        >>> Hierarchy.from_nested([[0, 1], [2, [3, 4]]])
        Hierarchy(n=5, K=4, clusters=1-2-4-5, h=2)
        """
        row: list[Any] = [nested]
        parents: list[IntArray] = []
        while any(isinstance(item, (list, tuple)) for item in row):
            if len(parents) == _MAX_NESTING:
                raise ValueError(f"the lists are nested more than {_MAX_NESTING} deep; does one contain itself?")
            lists = [id(item) for item in row if isinstance(item, (list, tuple))]
            if len(set(lists)) < len(lists):  # shared lists may unfold to more nodes than memory holds
                raise ValueError("one list stands in two places, so its nodes appear more than once")
            below: list[Any] = []
            above: list[int] = []
            for slot, item in enumerate(row):
                items = item if isinstance(item, (list, tuple)) else [item]
                if not items:
                    raise ValueError("an empty list is not a cluster; remove it")
                below.extend(items)
                above.extend([slot] * len(items))
            parents.append(np.array(above, np.int64))
            row = below
        for item in row:
            if isinstance(item, bool) or not isinstance(item, (int, np.integer)):
                raise TypeError(f"{shown(item)} is not a node number; nest lists of integers")
        return cls(parents[::-1], row, info)

    @classmethod
    def from_linkage(cls, linkage: ArrayLike, sizes: Iterable[int], info: Mapping[str, Any] | None = None) -> Self:
        """Cut a SciPy linkage matrix at the given cluster sizes.

        Parameters
        ----------
        linkage
            The (n−1)×4 matrix of `scipy.cluster.hierarchy.linkage` (or fastcluster).
        sizes
            Increasing sizes, one per intermediate level: the clusters of that level are the largest
            merges of at most that many nodes. The single nodes and the root are added.
        info
            See `Hierarchy`.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.cluster.hierarchy import linkage
        >>> positions = np.array([[0.0], [1.0], [10.0], [11.0], [12.5]])
        >>> tree = Hierarchy.from_linkage(linkage(positions, "ward"), sizes=[2, 3])
        >>> [tree.labels(j).tolist() for j in (2, 3)]
        [[0, 0, 1, 1, 1], [0, 0, 2, 2, 1]]
        """
        merges, counts = _check_linkage(linkage)
        n = len(merges) + 1
        cuts = sorted({check_integer(size, "a size") for size in sizes})
        if not cuts or cuts[0] < 2:
            raise ValueError(f"sizes must hold numbers of at least 2, got {cuts}")
        levels = [np.arange(n), *(_cut(merges, counts, size) for size in cuts if size < n)]
        return cls.from_labels([*levels, np.zeros(n, np.int64)], info)

    # ------------------------------------------------------------- plain facts

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.order)

    @property
    def K(self) -> int:
        """The number of levels; level 1 is the root, level K the single nodes."""
        return len(self.parents) + 1

    @cached_property
    def n_clusters(self) -> tuple[int, ...]:
        """The number of clusters N_1 = 1, ..., N_K = n of each level."""
        return (1, *(len(level) for level in reversed(self.parents)))

    @property
    def branching(self) -> tuple[int, ...]:
        """The largest number of children L_j of a cluster at each level j = 1, ..., K−1."""
        return tuple(int(self.n_children(j).max()) for j in range(1, self.K))

    @property
    def h(self) -> int:
        """The largest number of children of any cluster (0 for the tree of a single node, K = 1)."""
        return max(self.branching, default=0)

    def parent(self, level: int) -> IntArray:
        """The slot at `level` of the parent of every cluster at level + 1."""
        self._check_level(level, 1, self.K - 1)
        return self.parents[self.K - 1 - level]

    def n_children(self, level: int) -> IntArray:
        """The number of children L_Λ of every cluster at a level (all 0 at level K)."""
        self._check_level(level, 1, self.K)
        if level == self.K:
            return np.zeros(self.n, np.int64)
        return np.bincount(self.parent(level), minlength=self.n_clusters[level - 1])

    def first_child(self, level: int) -> IntArray:
        """Offsets of children: those of slot c at `level` are the slots from entry c up to entry c + 1."""
        return np.concatenate([[0], np.cumsum(self.n_children(level))])

    def first_leaf(self, level: int) -> IntArray:
        """Offsets of leaves: the nodes of slot c at `level` are ``order[first_leaf[c]:first_leaf[c + 1]]``."""
        self._check_level(level, 1, self.K)
        first = np.arange(self.n_clusters[level - 1] + 1)
        for j in range(level, self.K):
            first = self.first_child(j)[first]
        return first

    def sizes(self, level: int) -> IntArray:
        """The number of nodes in every cluster of a level."""
        return np.diff(self.first_leaf(level))

    def labels(self, level: int) -> IntArray:
        """The slot of every node's cluster at a level."""
        sizes = self.sizes(level)
        labels = np.empty(self.n, np.int64)
        labels[self.order] = np.repeat(np.arange(len(sizes)), sizes)
        return labels

    def cluster(self, index: Index) -> Cluster:
        """The cluster s_Λ of an index vector, e.g. ``tree.cluster((1, 2, 1))``; entries count from 1."""
        parts = check_list(index, "index", object)
        entries = tuple(check_integer(entry, "an entry of an index vector") for entry in parts)
        if not 1 <= len(entries) <= self.K or entries[0] != 1:
            raise ValueError(f"an index vector has 1 to {self.K} entries, the first of them 1; got {entries}")
        slot = 0
        for level, entry in enumerate(entries[1:], start=1):
            first = self.first_child(level)
            children = int(first[slot + 1] - first[slot])
            if not 1 <= entry <= children:
                raise ValueError(f"cluster {entries[:level]} has {children} children; it has no child number {entry}")
            slot = int(first[slot]) + entry - 1
        return self.cluster_at(len(entries), slot)

    def cluster_at(self, level: int, slot: int) -> Cluster:
        """The cluster in a slot of a level, with its index vector."""
        self._check_level(level, 1, self.K)
        if not 0 <= check_integer(slot, "slot") < self.n_clusters[level - 1]:
            raise ValueError(f"level {level} has slots 0 to {self.n_clusters[level - 1] - 1}, got {slot}")
        index: Index = ()
        at = slot
        for j in range(level - 1, 0, -1):
            above = int(self.parent(j)[at])
            at, index = above, (at - int(self.first_child(j)[above]) + 1, *index)
        first = self.first_leaf(level)
        nodes = self.order[first[slot] : first[slot + 1]]
        return Cluster((1, *index), level, slot, nodes, int(self.n_children(level)[slot]))

    def children(self, index: Index) -> tuple[Cluster, ...]:
        """The children s_(Λ,1), ..., s_(Λ,L) of a cluster, in their order."""
        parent = self.cluster(index)
        if parent.level == self.K:
            return ()
        first = int(self.first_child(parent.level)[parent.slot])
        return tuple(self.cluster_at(parent.level + 1, first + i) for i in range(parent.n_children))

    def members(self, index: Index) -> IntArray:
        """The nodes of a cluster, in the order of the leaves."""
        return self.cluster(index).nodes

    @cached_property
    def digest(self) -> str:
        """16 hex digits of the tree's content, parents and order, the same on every machine; `info` is not part of it.

        Examples
        --------
        >>> Hierarchy.from_nested([[0, 1], [2, 3]]).digest
        'd39bc631e3c39d52'
        """
        content = hashlib.sha256(json.dumps(self.n_clusters).encode())
        for array in (*self.parents, self.order):
            content.update(array.astype("<i8").tobytes())
        return content.hexdigest()[:16]

    def permute(self, perm: ArrayLike) -> Self:
        """The same tree over renumbered nodes: new node i is old node ``perm[i]``.

        ``tree.permute(tree.order)`` numbers the nodes as they sit on the leaves, the order in which
        transforms read memory straight through.
        """
        perm = _permutation(perm, self.n, "perm")
        return type(self)(self.parents, _inverse(perm)[self.order], self.info)

    def permute_children(self, permutations: Mapping[Index, ArrayLike] | np.random.Generator) -> Self:
        """Reorder children inside their clusters: a partition permutation π_p of the paper.

        Parameters
        ----------
        permutations
            For each cluster to change, by index vector, the permutation of its children: new child i is
            old child ``perm[i]``, counted from 0. Or a random generator, to shuffle every cluster.

        Examples
        --------
        Figure 2 swaps the two leaves of the cluster (1, 1, 1):

        >>> tree = Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        >>> tree.permute_children({(1, 1, 1): [1, 0]}).order
        array([1, 0, 2, 3, 4, 5, 6, 7])
        """
        if not isinstance(permutations, Mapping | np.random.Generator):
            raise TypeError(f"permutations must be a mapping or a NumPy generator, got {kind_of(permutations)}")
        parents: list[IntArray] = []
        above = np.zeros(1, np.int64)  # new slot of every old slot, one level up
        moved = above
        for level in range(1, self.K):
            moved = np.argsort(self._child_ranks(level, permutations), kind="stable")
            parents.insert(0, above[self.parent(level)[moved]])
            above = _inverse(moved)
        return type(self)(parents, self.order[moved], self.info)

    def equivalent(self, other: Hierarchy) -> bool:
        """Whether both trees have the same clusters at every level, whatever the order of children."""
        check_kind(other, "other", Hierarchy)
        return self.n_clusters == other.n_clusters and all(
            np.array_equal(by_appearance(self.labels(j)), by_appearance(other.labels(j))) for j in range(2, self.K)
        )

    def save(self, path: str | os.PathLike[str], ids: Iterable[Any] | None = None) -> Path:
        """Write the tree to an ``.npz`` of plain arrays; returns the path written.

        Parameters
        ----------
        path
            Where to.
        ids
            Of the nodes, in their order, such as ``graph.ids``: a digest of them is written, by which `load` tells the
            nodes from others, and from the same in another order.
        """
        about = {} if ids is None else {"ids": np.array(_digest_of_ids(ids))}
        return write_npz(
            check_path(path, "path"),
            {
                "format": np.array(_FORMAT),
                "n_clusters": np.array(self.n_clusters),
                "parents": np.concatenate([np.empty(0, np.int64), *self.parents]),
                "order": self.order,
                "info": np.array(json.dumps(dict(self.info))),
                **about,
            },
        )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], max_bytes: str | float | None = None, *, ids: Iterable[Any] | None = None
    ) -> Self:
        """Read a tree that `save` wrote; anything else is a ValueError.

        Parameters
        ----------
        path
            The file.
        max_bytes
            The memory that its arrays may take, in bytes or as ``"8GB"``; by default 50 times the size of the
            file, and 16 MB in any case.
        ids
            Of the nodes that it is wanted for, in their order: it is a ValueError if the tree was saved with others.
        """
        most = allowed_for(check_path(path, "path"), max_bytes)
        arrays = read_npz(path, most)
        if str(arrays.get("format")) != _FORMAT:
            raise ValueError(f"{path} is not a tree written by Hierarchy.save (no {_FORMAT!r} in it)")
        if ids is not None and "ids" in arrays and str(arrays["ids"]) != _digest_of_ids(ids):
            raise ValueError(
                f"{path} is a tree of other nodes than the graph has, or of the same in another order; give the graph "
                "as it was when the tree was made, or build the tree again (pegfan tree)"
            )
        try:
            if any(array.dtype.itemsize < 4 for array in arrays.values()):  # as integers of 64 bits they take more
                raise ValueError("its arrays hold numbers of less than 32 bits")
            length = arrays["info"].nbytes // 4
            require(f"{path}: a description of {length:,} characters", JSON * length, most)
            counts = _int_vector(arrays["n_clusters"], "n_clusters")
            flat = _int_vector(arrays["parents"], "parents")
            if (counts < 1).any() or counts[:1] != 1 or counts[1:].sum() != len(flat):
                raise ValueError(f"{len(flat)} parents do not fit {counts.tolist()} clusters")
            parents = np.split(flat, np.cumsum(counts[:0:-1])[:-1]) if len(counts) > 1 else []
            info = json.loads(str(arrays["info"]))
            if not isinstance(info, dict):
                raise ValueError("info is not a table")
            return cls(parents, arrays["order"], info)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error

    # ------------------------------------------------------------------- faces

    def draw(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the tree, leaves at the bottom; see `pegfan.plots.tree` for the options."""
        from pegfan.plots import tree

        return tree(self, ax=ax, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        mine, theirs = (self.order, *self.parents), (other.order, *other.parents)
        return self is other or (len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs)))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), (self.parents, self.order, self.info)  # so that copies are checked and read-only too

    def __repr__(self) -> str:
        counts: tuple[Any, ...] = self.n_clusters
        shown = counts if len(counts) <= 8 else (*counts[:4], "...", *counts[-3:])
        return f"Hierarchy(n={self.n}, K={self.K}, clusters={'-'.join(map(str, shown))}, h={self.h})"

    def _check_level(self, level: int, low: int, high: int) -> None:
        if not low <= check_integer(level, "a level") <= high:
            raise ValueError(f"level {level} is out of range; this call takes levels {low} to {high} (K = {self.K})")

    def _child_ranks(self, level: int, permutations: Mapping[Index, ArrayLike] | np.random.Generator) -> IntArray:
        """The new place among its siblings of every cluster at level + 1."""
        first, count = self.first_child(level), self.n_clusters[level]
        if isinstance(permutations, np.random.Generator):
            return permutations.permutation(count)
        rank = np.arange(count) - np.repeat(first[:-1], np.diff(first))
        for index, perm in permutations.items():
            cluster = self.cluster(index)
            if cluster.level == self.K:
                raise ValueError(f"{cluster.index} is a single node; it has no children to permute")
            if cluster.level == level:
                moved = _permutation(perm, cluster.n_children, f"the permutation of {cluster.index}")
                rank[first[cluster.slot] + moved] = np.arange(len(moved))
        return rank


def _frozen(array: IntArray, inputs: Sequence[Any]) -> IntArray:
    """A read-only array, which no other reference can change: a copy unless it was made here."""
    if array.base is not None or any(array is one for one in inputs):
        array = array.copy()
    array.flags.writeable = False
    return array


def _inverse(perm: IntArray) -> IntArray:
    inverse = np.empty(len(perm), np.int64)
    inverse[perm] = np.arange(len(perm))
    return inverse


def by_appearance(labels: IntArray) -> IntArray:
    """Renumber labels in the order in which they first appear, so that equal partitions look equal."""
    if len(labels) and labels.min() >= 0 and labels.max() < 4 * len(labels):  # few places for many labels
        first_seen, codes = np.empty(int(labels.max()) + 1, labels.dtype), np.empty_like(labels)
        number_by_appearance(labels, first_seen, codes)
        return codes
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return _inverse(np.argsort(first))[codes]


def offsets_within(*columns: NDArray[Any]) -> IntArray:
    """For rows in sorted order, given as columns, how many equal rows stand before each."""
    positions = np.arange(len(columns[0]))
    new = np.zeros(len(positions), bool)
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return positions - np.maximum.accumulate(np.where(new, positions, 0))


def cut_linkage(linkage: ArrayLike, size: int) -> IntArray:
    """The largest merges of a linkage that hold at most `size` nodes: a label for every node."""
    return _cut(*_check_linkage(linkage), size)


def _cut(merges: IntArray, counts: IntArray, size: int) -> IntArray:
    n = len(merges) + 1
    above = np.full(2 * n - 1, -1)
    above[merges.ravel()] = np.repeat(np.arange(n, 2 * n - 1), 2)
    # A node of the dendrogram is a cluster if it fits the size and what it merges into does not.
    labels = np.arange(2 * n - 1)
    inside = np.flatnonzero((above >= 0) & (counts[above] <= size))
    labels[inside] = above[inside]
    while not np.array_equal(further := labels[labels], labels):  # each round doubles the climb
        labels = further
    return labels[:n]


def _sort_slots(levels: list[IntArray]) -> tuple[list[IntArray], IntArray | None]:
    """Renumber slots, from the root down, so that parents ascend; also the old slot on each new leaf."""
    new_slot: IntArray | None = None  # new slot of every old slot, one level up; None if nothing moved
    slots: IntArray | None = None
    result: list[IntArray] = []
    for level in reversed(levels):
        key = level if new_slot is None else new_slot[level]
        if (key[1:] >= key[:-1]).all():
            new_slot = slots = None
        else:
            small = np.int32 if len(key) < np.iinfo(np.int32).max else np.int64
            slots, first = by_label(key.astype(small), int(key.max()) + 1)
            key, new_slot = np.repeat(np.arange(len(first) - 1), np.diff(first)), _inverse(slots)
        result.insert(0, key)
    return result, slots


# ---------------------------------------------------------------- the boundary


def _digest_of_ids(ids: Iterable[Any]) -> str:
    """What tells ids in their order from others; 7 and "7" are one id."""
    if hasattr(ids, "shape") and len(ids.shape) != 1:
        raise TypeError(f"ids are a list or a vector, got the shape {ids.shape}")
    digest, parts = hashlib.sha256(), map(str, ids.tolist() if isinstance(ids, np.ndarray) else ids)
    while some := list(islice(parts, 2**16)):
        digest.update("".join(f"{len(name)} {name} " for name in some).encode(errors="surrogatepass"))
    return digest.hexdigest()


def _int_vector(values: ArrayLike, what: str) -> IntArray:
    try:
        array = as_array(values, "it")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} must be a flat array of integers: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, got shape {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold integers, got dtype {array.dtype}")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{what} holds {array.max()}, which no slot or node has")
    return array.astype(np.int64, copy=False)


def _permutation(values: ArrayLike, n: int, what: str) -> IntArray:
    perm = _int_vector(values, what)
    if len(perm) == n and holds_each_once(perm, np.zeros(n, np.uint8)):
        return perm
    outside = (perm < 0) | (perm >= n)
    if len(perm) != n or outside.any():
        problem = f"has {len(perm)} entries" if len(perm) != n else f"holds {perm[outside][0]}"
        raise ValueError(f"{what} {problem}; it must hold each of 0, ..., {n - 1} once")
    counts = np.bincount(perm, minlength=n)
    if (counts > 1).any():
        raise ValueError(f"{what} holds {np.argmax(counts > 1)} more than once")
    return perm


def _check_parents(parents: IntArray, i: int, slots: int) -> None:
    if not len(parents):
        raise ValueError(f"parents[{i}] is empty; every level has at least one cluster")
    if parents.min() < 0 or parents.max() >= slots:
        culprit = int(np.flatnonzero((parents < 0) | (parents >= slots))[0])
        fix = (
            "the last array holds the children of the root and must be all 0: append np.zeros(N, int) for N clusters"
            if slots == 1
            else f"parents[{i + 1}] has {slots} slots, 0 to {slots - 1}"
        )
        raise ValueError(f"parents[{i}][{culprit}] is {parents[culprit]}: {fix}")
    used = np.bincount(parents, minlength=slots)
    if not used.all():
        raise ValueError(f"slot {np.argmin(used)} of parents[{i + 1}] has no child in parents[{i}]: remove or fill it")


def _codes(labels: ArrayLike, level: int) -> IntArray:
    """Labels of any sortable kind as 0, 1, ... in their sorted order."""
    try:
        array = as_array(labels, "it")
        if array.ndim != 1 or not array.size:
            raise ValueError(f"its shape is {array.shape}")
        if array.dtype.kind not in "biuSU":
            raise TypeError(f"its dtype is {array.dtype}")
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"level {level} must be a flat, non-empty array of integer or string labels: {error}"
        ) from error
    return np.unique(array, return_inverse=True)[1].astype(np.int64, copy=False)


def _check_refinement(fine: IntArray, coarse: IntArray, labels: ArrayLike, fine_level: int, coarse_level: int) -> None:
    above = np.empty(fine.max() + 1, np.int64)
    above[fine] = coarse
    broken = np.flatnonzero(above[fine] != coarse)
    if len(broken):
        node = int(broken[0])
        other = int(np.flatnonzero((fine == fine[node]) & (coarse != coarse[node]))[0])
        raise ValueError(
            f"not a refinement: nodes {node} and {other} share cluster {np.asarray(labels)[node].item()!r} of level "
            f"{fine_level} but not a cluster of the coarser level {coarse_level}; a cluster lies inside one cluster of "
            "the next coarser level"
        )


def _check_linkage(linkage: ArrayLike) -> tuple[IntArray, IntArray]:
    """The merged pairs of a linkage, and the size of every dendrogram node (leaves first)."""
    array = np.asarray(linkage)
    if array.ndim != 2 or array.shape[1] != 4 or array.dtype.kind not in "iuf":
        raise ValueError(f"a linkage is a numeric matrix of shape (n-1, 4), got shape {array.shape}, {array.dtype}")
    array = array.astype(np.float64)
    n = len(array) + 1
    pairs = array[:, :2]
    earlier_ids = n + np.arange(n - 1)[:, None]
    bad = ~((pairs >= 0) & (pairs < earlier_ids) & (pairs == np.floor(pairs))).all(axis=1)
    if bad.any():
        raise ValueError(
            f"row {np.argmax(bad)} of the linkage merges {pairs[np.argmax(bad)]}, which are not earlier ids"
        )
    merges = pairs.astype(np.int64)
    used = np.bincount(merges.ravel(), minlength=2 * n - 1)
    if (used > 1).any():
        raise ValueError(f"the linkage merges cluster {np.argmax(used > 1)} twice")
    counts = np.ones(2 * n - 1, np.int64)
    with np.errstate(invalid="ignore"):
        counts[n:] = array[:, 3].astype(np.int64)
    wrong = counts[n:] != counts[merges].sum(axis=1)
    if wrong.any():
        raise ValueError(f"row {np.argmax(wrong)} of the linkage states a size that is not the sum of its parts")
    return merges, counts
