"""The graph: a value, checked once, read-only, and what other graphs are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, triu
from scipy.sparse.csgraph import connected_components

from pegfan._arrays import FloatArray, IntArray
from pegfan._cache import Cache, bytes_of
from pegfan._checks import as_array, check_flag, kind_of, shown
from pegfan._hashing import digest_of
from pegfan.graph import attributes as check
from pegfan.graph import changes, converters
from pegfan.graph.edges import Joined, join_edges
from pegfan.graph.splits import Split, are_known, as_split, check_nodes, check_splits
from pegfan.metrics import METRICS, check_metric

if TYPE_CHECKING:
    from pegfan.measures import Description

_CACHE_LEAST, _CACHE_TIMES = 2**26, 8
"""What is computed from a graph is held with it: so many bytes, or so many times those of edges and features."""


class Graph:
    """A graph with what is known about its nodes, checked once and read-only.

    Parameters
    ----------
    adjacency : sparse array, sparse matrix or 2-D array, (n, n)
        ``adjacency[i, j]`` is the weight of the edge from i to j: finite and not negative, 0 for no edge.
        Duplicate entries of a COO matrix are summed, as SciPy does. The input is copied.
    features : 2-D array or sparse array, (n, d), optional
        One row per node. float32 and float64 are kept, half precision becomes float32, integers and
        booleans float64. A data frame brings the names of its columns.
    feature_names : sequence of str, optional
        Distinct names of the columns of the features; by default those of a data frame, else none.
    labels : 1-D array, (n,), optional
        Class positions 0..k-1; -1, NaN or None marks a node without a label. Strings (and other objects)
        are encoded by their place in `class_names`, or in sorted order, which then becomes `class_names`.
    targets : 1-D array, (n,), optional
        Numbers to predict in place of classes; NaN or None marks a node whose number is not known.
    splits : sequence of splits, optional
        Each a :class:`Split`, a triple (train, val, test) or a mapping with these keys (OGB's ``"valid"``
        is read as ``"val"``); each part a boolean mask of length n or an array of node indices. Parts must
        be disjoint.
    directed : bool, optional
        By default a symmetric adjacency makes an undirected graph, any other a directed one. Symmetry is
        exact.
    metric : str, optional
        How predictions on this graph are scored: a name of `pegfan.metrics.METRICS`; by default ``"accuracy"``, and
        ``"r2"`` for targets. Where a metric is for two classes, class 1 is the positive one, see `with_positive`.
    node_names, class_names : 1-D array, optional
        Distinct names of the nodes and of the classes.
    positions : array, (n, 2) or (n, 3), optional
        Where to draw the nodes.
    things : boolean array, (n,), optional
        Which nodes are of another kind than those that are asked about, such as the devices of accounts: they have no
        label, and join others, but nothing is said of them.
    edge_matrices : mapping of str to matrix, optional
        Other adjacency matrices over the same nodes, by name: other weights of the edges, such as ``"amount sum"``,
        and the edges of each kind. Like the adjacency, they are not negative, and symmetric if the graph is
        undirected.
    edge_kinds : sequence of str, optional
        Which of the `edge_matrices` are kinds of edges.

    Attributes
    ----------
    adjacency : csr_array of float64
        Sorted indices, no duplicates, no stored zeros.
    features : array or csr_array or None
    labels : int64 array or None
    targets : float64 array or None
    splits : tuple of Split
    edge_matrices : mapping of str to csr_array of float64
        Empty if there are none; :meth:`weighted` makes one of them the adjacency.
    cache : Cache
        What was computed from the graph, by those who did; never pickled.

    Notes
    -----
    Every parameter is an attribute, None where it was not given. All arrays are read-only; :meth:`replace` gives a
    graph with other attributes. ``torch.from_numpy`` warns about read-only arrays; ``torch.tensor`` copies them.

    Examples
    --------
    >>> import numpy as np
    >>> g = Graph(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]), labels=["cat", None, "ant"])
    >>> g
    Graph(n=3, edges=2, undirected, classes=2)
    >>> g.labels, g.class_names
    (array([ 1, -1,  0]), array(['ant', 'cat'], dtype='<U3'))
    """

    __slots__ = ("__dict__", "__weakref__", "cache")
    cache: Cache
    adjacency: csr_array
    features: Any
    feature_names: tuple[str, ...] | None
    labels: IntArray | None
    targets: FloatArray | None
    splits: tuple[Split, ...]
    directed: bool
    metric: str
    node_names: NDArray[Any] | None
    class_names: NDArray[Any] | None
    positions: FloatArray | None
    things: NDArray[np.bool_] | None
    edge_kinds: tuple[str, ...]

    def __init__(
        self,
        adjacency: Any,
        *,
        features: Any = None,
        feature_names: Sequence[str] | None = None,
        labels: Any = None,
        targets: Any = None,
        splits: Sequence[Any] = (),
        directed: bool | None = None,
        metric: str | None = None,
        node_names: Any = None,
        class_names: Any = None,
        positions: Any = None,
        things: Any = None,
        edge_matrices: Mapping[str, Any] | None = None,
        edge_kinds: Sequence[str] = (),
    ) -> None:
        metric = check_metric(("accuracy" if targets is None else "r2") if metric is None else metric)
        origin = adjacency.graph if isinstance(adjacency, _Checked) else None
        matrix = check.check_adjacency(adjacency) if origin is None else origin.adjacency
        n = matrix.shape[0]
        if targets is not None:
            targets = check.check_targets(targets, n, labels, class_names)
        if METRICS[metric].numbers != (targets is not None) and not (labels is None and targets is None):
            raise ValueError(check.metric_problem(metric, targets is not None))
        names = None if class_names is None else check.check_names(class_names, "class_names")
        codes = None
        if labels is not None:
            codes, names = check.check_labels(labels, n, names)
        columns = check.column_names(features) if feature_names is None else feature_names
        if isinstance(features, _Checked):
            features = features.graph.features
        elif features is not None:
            features = check.check_features(features, n)
        if origin is not None:
            is_directed, matrices = origin.directed, dict(origin.edge_matrices)
        else:
            undirected = isinstance(adjacency, Joined) and adjacency.symmetric and not directed
            is_directed = False if undirected else check.check_directed(directed, matrix)
            matrices = check.check_edge_matrices({} if edge_matrices is None else edge_matrices, matrix, is_directed)
        truth = codes if targets is None else targets
        attributes = dict(  # noqa: C408
            adjacency=matrix,
            features=features,
            feature_names=None if columns is None else check.check_feature_names(columns, features),
            labels=codes,
            targets=targets,
            splits=check_splits(splits, n),
            directed=is_directed,
            metric=metric,
            node_names=None if node_names is None else check.check_names(node_names, "node_names", n),
            class_names=names,
            positions=None if positions is None else check.check_positions(positions, n),
            things=None if things is None else check.check_things(things, n, truth),
            edge_matrices=matrices,
            edge_kinds=check.check_edge_kinds(edge_kinds, matrices),
        )
        self.__setstate__(attributes)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__  # without what was computed from it

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        limit = max(_CACHE_LEAST, _CACHE_TIMES * bytes_of([self.adjacency, self.features]))
        object.__setattr__(self, "cache", Cache(limit))

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self  # nothing in it can change; scikit-learn's clone would copy it for every fit

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Graph is read-only; use graph.replace({name}=...) to get a changed copy")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Graph is read-only; {shown(name)} cannot be deleted")

    def __repr__(self) -> str:
        facts = [f"n={self.n}", f"edges={self.n_edges}", "directed" if self.directed else "undirected"]
        if self.features is not None:
            facts.append(f"features={self.features.shape[1]}" + (" sparse" if issparse(self.features) else ""))
        if self.labels is not None:
            facts.append(f"classes={self.n_classes}")
        if self.targets is not None:
            facts.append("targets")
        if self.splits:
            facts.append(f"splits={len(self.splits)}")
        if self.edge_matrices:
            facts.append(f"edge matrices={len(self.edge_matrices)}")
        return f"Graph({', '.join(facts)})"

    @property
    def n(self) -> int:
        """Number of nodes."""
        return int(self.adjacency.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of edges; arcs if directed, else unordered pairs (a self loop counts once)."""
        arcs = int(self.adjacency.nnz)
        if self.directed:
            return arcs
        return (arcs + int(np.count_nonzero(self.adjacency.diagonal()))) // 2

    @property
    def n_classes(self) -> int:
        """Number of classes; of `class_names` if there are any, else the largest label plus one."""
        if self.class_names is not None:
            return len(self.class_names)
        return 0 if self.labels is None else int(self.labels.max()) + 1

    @property
    def truth(self) -> IntArray | FloatArray | None:
        """What is to be predicted, as far as it is known: the targets, or else the labels."""
        return self.labels if self.targets is None else self.targets

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which nodes have a label or a target."""
        return np.zeros(self.n, dtype=bool) if self.truth is None else are_known(self.truth)

    @property
    def subjects(self) -> IntArray:
        """The nodes that something is said of: all but the `things`."""
        return np.arange(self.n) if self.things is None else np.flatnonzero(~self.things)

    @property
    def classes(self) -> NDArray[Any]:
        """`class_names`, or the numbers of the classes where they have no names."""
        return np.arange(self.n_classes) if self.class_names is None else self.class_names

    @property
    def ids(self) -> NDArray[Any]:
        """`node_names`, or 0..n-1 where nodes have no names."""
        return np.arange(self.n) if self.node_names is None else self.node_names

    @property
    def digest(self) -> str:
        """32 hex digits of what trees and channels are made of, edges and features: the same on every machine.

        Labels are no part of it.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1], [1, 2]])
        >>> g.digest == g.replace(labels=[0, 1, 0]).digest != g.permute([1, 0, 2]).digest
        True
        """
        names = sorted(self.edge_matrices)
        matrices = (self.adjacency, self.features, *map(self.edge_matrices.get, names))
        return self.cache.get("digest", lambda: digest_of(f"{self.directed} {names} {self.edge_kinds}", *matrices))

    @property
    def edge_matrices(self) -> Mapping[str, csr_array]:
        """Other adjacency matrices over the same nodes, by name."""
        return MappingProxyType(self.__dict__["edge_matrices"])  # made here, as it cannot be pickled

    # ---------------------------------------------------------------- in

    of = classmethod(converters.of)
    from_networkx = classmethod(converters.from_networkx)
    from_pyg = classmethod(converters.from_pyg)
    from_pygsp = classmethod(converters.from_pygsp)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: Any = None,
        *,
        n: int | None = None,
        directed: bool = False,
        duplicates: str = "max",
        **attributes: Any,
    ) -> Graph:
        """Make a graph from a list of edges.

        Parameters
        ----------
        edges : integer array, (m, 2)
            Node ids 0..n-1, one edge per row. An undirected edge is given once, in either direction.
        weights : array, (m,), optional
            Finite and not negative; ones by default. A row of weight 0 is not an edge.
        n : int, optional
            Number of nodes; by default the largest id plus one. Give it if the last nodes have no edge.
        directed : bool
            Whether row (i, j) is the arc from i to j only.
        duplicates : {"max", "min", "sum", "mean", "count", "error"}
            What to do with an edge that is given more than once: which of its weights, their sum or mean, or how often
            it is given. If undirected, (i, j) and (j, i) are the same edge.
        **attributes
            Passed to :class:`Graph`.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1], [1, 0], [2, 1]], [3.0, 4.0, 5.0])
        >>> g.adjacency.toarray()
        array([[0., 4., 0.],
               [4., 0., 5.],
               [0., 5., 0.]])
        """
        directed = check_flag(directed, "directed")
        adjacency = join_edges(edges, weights, n, duplicates, mirror=not directed)
        return cls(adjacency, directed=directed, **attributes)

    # ---------------------------------------------------------------- out

    def edges(self) -> tuple[IntArray, FloatArray]:
        """Return the edges, (m, 2), and their weights, (m,); undirected edges once, with i <= j.

        Examples
        --------
        >>> Graph.from_edges([[2, 0], [1, 2]]).edges()
        (array([[0, 2],
               [1, 2]]), array([1., 1.]))
        """
        arcs = (self.adjacency if self.directed else triu(self.adjacency)).tocoo()
        return np.column_stack(arcs.coords).astype(np.int64), arcs.data.copy()

    to_networkx = converters.to_networkx
    to_pyg = converters.to_pyg
    to_pygsp = converters.to_pygsp

    # ---------------------------------------------------------------- other graphs

    def replace(self, **changes: Any) -> Graph:
        """Return a graph with some attributes changed; these are checked, and the others shared.

        Features with another number of columns lose the names of the old ones, unless `feature_names` is given. Targets
        take the place of labels, and labels that of targets; the metric then is the default, unless it is given.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1], [1, 2]])
        >>> g.replace(labels=[0, 1, 0])
        Graph(n=3, edges=2, undirected, classes=2)
        """
        unknown = changes.keys() - self.__dict__.keys()
        if unknown:
            raise TypeError(f"a Graph has no attribute {min(unknown)!r}; it has {', '.join(self.__dict__)}")
        if "edge_matrices" in changes:  # a kind of edges that is not among them is gone
            matrices = changes["edge_matrices"] or {}
            changes = {"edge_kinds": [kind for kind in self.edge_kinds if kind in matrices], **changes}
        gone: dict[str, Any] = {}
        if changes.get("targets") is not None and self.targets is None:
            gone = {"labels": None, "class_names": None, "metric": None}
        elif changes.get("labels") is not None and self.targets is not None:
            gone = {"targets": None, "metric": None}
        elif "targets" in changes and self.targets is not None and changes["targets"] is None:
            gone = {"metric": None}
        shared: dict[str, Any] = {}
        if not {"adjacency", "directed", "edge_matrices", "edge_kinds"} & changes.keys():
            shared["adjacency"] = _Checked(self)
        if self.features is not None and "features" not in changes and "adjacency" not in changes:
            shared["features"] = _Checked(self)
        changed = Graph(**{**self.__dict__, "feature_names": None, **gone, **shared, **changes})
        names = self.feature_names if changed.feature_names is None and "feature_names" not in changes else None
        if names is not None and changed.features is not None and len(names) == changed.features.shape[1]:
            changed.__dict__["feature_names"] = names
        return changed

    def weighted(self, name: str | None) -> Graph:
        """Return the graph whose adjacency is one of its `edge_matrices`; the graph itself for None.

        Examples
        --------
        >>> import pegfan as pf
        >>> edges = {"payer": ["a", "a", "b"], "payee": ["b", "b", "c"], "amount": [5, 7, 1], "note": ["x", "y", "x"]}
        >>> g = pf.datasets.graph_from_tables(None, edges)
        >>> g.adjacency.max(), g.weighted("amount sum").adjacency.max()
        (np.float64(1.0), np.float64(12.0))
        """
        if name is None:
            return self
        if not isinstance(name, str) or name not in self.edge_matrices:
            names = ", ".join(map(repr, self.edge_matrices)) or "none"
            raise ValueError(
                f"the graph has no edge matrix {shown(name)}; it has {names}. A table of edges with the same columns "
                "makes the same ones"
            )
        return self.replace(adjacency=self.edge_matrices[name])

    def split(self, which: Any) -> Split:
        """Return one of the splits by its number, or check a split of the caller's own.

        Parameters
        ----------
        which : int, or anything that :func:`as_split` takes
            A position in `splits`, counted from 0.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1], [1, 2]], splits=[([0], [1], [2])])
        >>> g.split(0).val, g.split(([2], [], [])).train
        (array([1]), array([2]))
        >>> g.split(3)
        Traceback (most recent call last):
        ValueError: there is no split 3: the graph has split 0; name one of them, or pass a Split (train, val, test)
        """
        if isinstance(which, bool | np.bool_) or not isinstance(which, int | np.integer):
            return as_split(which, self.n)
        if not 0 <= which < len(self.splits):
            last = len(self.splits) - 1
            present = {-1: "no splits", 0: "split 0"}.get(last, f"splits 0 to {last}")
            fix = "name one of them, or pass" if self.splits else "pass"
            raise ValueError(f"there is no split {which}: the graph has {present}; {fix} a Split (train, val, test)")
        return self.splits[which]

    align_features = changes.align_features
    with_positive = changes.with_positive
    symmetrize = changes.symmetrize

    def permute(self, perm: Any) -> Graph:
        """Renumber the nodes: new node i is old node ``perm[i]``, with everything that belongs to it.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1]], n=3, labels=[5, 6, 7]).permute([2, 0, 1])
        >>> g.edges()[0].tolist(), g.labels.tolist()
        ([[1, 2]], [7, 5, 6])
        """
        order = as_array(perm, "perm")
        if order.shape != (self.n,):
            raise ValueError(f"perm must have shape ({self.n},), got {order.shape}")
        if order.dtype.kind == "b":
            raise TypeError("perm must hold node indices, got a boolean mask")
        return changes.take(self, check_nodes(order, self.n, "perm"))

    def subgraph(self, nodes: Any) -> Graph:
        """Return the graph on some nodes, in the order given, with the edges among them.

        Parameters
        ----------
        nodes : array
            Distinct node indices, at least one, or a boolean mask of length n. Splits keep the nodes that
            remain.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1], [1, 2], [2, 3]]).subgraph([3, 2, 0])
        >>> g.n, g.edges()[0].tolist()
        (3, [[0, 1]])
        """
        chosen = check_nodes(nodes, self.n, "nodes")
        if chosen.size == 0:
            raise ValueError("nodes is empty; a Graph needs at least one node")
        return changes.take(self, chosen)

    def largest_component(self) -> Graph:
        """Return the largest weakly connected component, its nodes in their order here.

        Of components of equal size it is the one with the smallest node index: a choice by node number, the
        only thing here that renumbering the nodes can change.

        Examples
        --------
        >>> Graph.from_edges([[0, 1], [2, 3], [3, 4]]).largest_component()
        Graph(n=3, edges=2, undirected)
        """
        _, component = connected_components(self.adjacency, directed=True, connection="weak")
        size = np.bincount(component)[component]
        return changes.take(self, np.flatnonzero(component == component[size.argmax()]))

    def describe(self) -> Description:
        """Return the sizes and the homophily of this graph; see :func:`pegfan.measures.describe`.

        Examples
        --------
        >>> Graph.from_edges([[0, 1], [1, 2]]).describe().edges
        2
        """
        from pegfan.measures import describe  # measures stands after graph

        return describe(self)


class _Checked(NamedTuple):
    """In place of what a graph holds: it was checked and cannot change, so that another graph may share it."""

    graph: Graph


def check_graph(value: Any, what: str = "graph", needs: str | None = None) -> Graph:
    """Refuse what is not a graph, or lacks something, and say how to make it one: the one place that does.

    Examples
    --------
    >>> check_graph([[0, 1]])
    Traceback (most recent call last):
    ...
    TypeError: graph must be a pegfan.Graph, got list; Graph.from_edges makes one
    """
    if not isinstance(value, Graph):
        maker = _MAKERS.get(type(value).__module__.partition(".")[0], "Graph.from_edges")
        raise TypeError(f"{what} must be a pegfan.Graph, got {kind_of(value)}; {maker} makes one")
    if needs is not None and getattr(value, needs) is None:
        lacking = "labels" if needs == "truth" else needs
        raise ValueError(f"the graph has no {lacking}; give them with graph.replace({lacking}=...)")
    return value


_MAKERS = {
    "networkx": "Graph.from_networkx",
    "torch_geometric": "Graph.from_pyg",
    "pygsp": "Graph.from_pygsp",
    "scipy": "Graph.of",
    "numpy": "Graph.of",
    "pandas": "pegfan.datasets.graph_from_tables",
}
