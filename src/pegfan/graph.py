"""The graph: the one boundary where data from outside is checked.

Whatever the caller has (SciPy, NumPy, an edge list, NetworkX, PyG, PyGSP) becomes a :class:`Graph`. Its
arrays are checked here, once, and are read-only from then on, so that the rest of the package never checks
them again.
"""

from __future__ import annotations

import numbers
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Unpack, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, csr_matrix, diags_array, issparse, triu
from scipy.sparse.csgraph import connected_components

from pegfan import _pairs
from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import (
    as_array,
    check_choice,
    check_class_names,
    check_flag,
    check_integer,
    check_kind,
    check_list,
    check_numbers,
    kind_of,
    shown,
)
from pegfan._extras import need
from pegfan._limits import check_memory
from pegfan._matrices import moved, transposed
from pegfan.metrics import METRICS, check_metric

if TYPE_CHECKING:
    import networkx
    import pygsp
    import torch_geometric

    from pegfan.datasets._table import ReadReport, TableOptions
    from pegfan.measures import Description

__all__ = ["Graph", "Split", "as_split"]

_MERGE_RULES = {"max": np.maximum, "min": np.minimum, "sum": np.add, "mean": np.add, "count": np.add}
# Node pairs are sorted by the single key i * n + j, which has to fit in an int64.
_UNSEEN = 1000
"""How many classes there may be that no node has, besides one per node: class numbers size the matrices of a model."""
_LARGEST_N = 3_037_000_499


class Split(NamedTuple):
    """Three disjoint sets of nodes, each a sorted int64 array of node indices."""

    train: IntArray
    val: IntArray
    test: IntArray


def as_split(split: Any, n: int, what: str = "split", *, labels: IntArray | FloatArray | None = None) -> Split:
    """Check a split of n nodes: the one place where splits from outside are looked at.

    Parameters
    ----------
    split : Split, triple (train, val, test) or mapping with these keys
        Each part a boolean mask of length n or an array of distinct node indices; OGB's ``"valid"`` is read as
        ``"val"``.
    n : int
        Number of nodes.
    what : str
        What to call it in errors.
    labels : int64 or float64 array, (n,), optional
        With labels, -1 for none, or targets, NaN for none, the split must be fit for training: train and val must not
        be empty and all of their nodes labelled. Test nodes without a label are left out.

    Returns
    -------
    Split
        Of sorted, disjoint, read-only arrays.

    Examples
    --------
    >>> as_split(([2, 0], [False, True, False], []), n=3)
    Split(train=array([0, 2]), val=array([1]), test=array([], dtype=int64))
    """
    if isinstance(split, Mapping):
        named = {"val" if key == "valid" else key: part for key, part in split.items()}
        if named.keys() != set(Split._fields):
            raise ValueError(f"{what} must have the keys train, val and test, got {list(split)}")
        split = [named[name] for name in Split._fields]
    check_kind(what, "what", str)
    if not isinstance(split, Sequence) or isinstance(split, str | bytes):
        raise TypeError(f"{what} must be a Split (train, val, test), got {type(split).__name__}")
    if len(split) != 3:
        raise ValueError(
            f"{what} must be a triple (train, val, test), got {len(split)} parts (a graph has a list of triples)"
        )
    parts = [np.sort(_check_nodes(part, n, f"{what}.{name}")) for name, part in zip(Split._fields, split, strict=True)]
    times = np.bincount(np.concatenate(parts), minlength=1)
    if times.max() > 1:
        raise ValueError(f"{what}: node {times.argmax()} is in more than one of train, val and test")
    if labels is not None:
        labelled = are_known(check_numbers(labels, "labels", n))
        for name, part in zip(("train", "val"), parts, strict=False):
            if not part.size:
                raise ValueError(f"{what} has no {name} nodes; training needs them (the test part may be empty)")
            if not labelled[part].all():
                unknown = part[~labelled[part]][0]
                raise ValueError(f"{what}: node {unknown} is in {name} but has no label; leave it out")
        parts[2] = parts[2][labelled[parts[2]]]
    _freeze(*parts)
    return Split(*parts)


def are_known(values: IntArray | FloatArray) -> NDArray[np.bool_]:
    """Whether each of some labels or targets is known: not negative, or not NaN."""
    return np.asarray(~np.isnan(values) if values.dtype.kind == "f" else values >= 0)


_CONVERTERS = {
    "networkx": "Graph.from_networkx",
    "torch_geometric": "Graph.from_pyg",
    "pygsp": "Graph.from_pygsp",
    "scipy": "Graph.from_scipy",
    "numpy": "Graph.from_scipy (a matrix) or Graph.from_edges (a list)",
    "pandas": "Graph.from_tables",
}


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
        maker = _CONVERTERS.get(type(value).__module__.partition(".")[0], "Graph.from_edges")
        raise TypeError(f"{what} must be a pegfan.Graph, got {kind_of(value)}; {maker} makes one")
    if needs is not None and getattr(value, needs) is None:
        lacking = "labels" if needs == "truth" else needs
        raise ValueError(f"the graph has no {lacking}; give them with graph.replace({lacking}=...)")
    return value


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
    feature_names : tuple of str or None
    labels : int64 array or None
    targets : float64 array or None
    splits : tuple of Split
    directed : bool
    metric : str
    node_names, class_names : array or None
    positions : float64 array or None
    things : boolean array or None
        :attr:`subjects` are the other nodes.
    edge_matrices : mapping of str to csr_array of float64
        Empty if there are none; :meth:`weighted` makes one of them the adjacency.
    edge_kinds : tuple of str

    Notes
    -----
    All arrays are read-only. :meth:`replace` gives a graph with other attributes. ``torch.from_numpy``
    warns about read-only arrays; ``torch.tensor`` copies and does not.

    Examples
    --------
    >>> import numpy as np
    >>> g = Graph(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]), labels=["cat", None, "ant"])
    >>> g
    Graph(n=3, edges=2, undirected, classes=2)
    >>> g.labels, g.class_names
    (array([ 1, -1,  0]), array(['ant', 'cat'], dtype='<U3'))
    """

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
        held = adjacency.of if isinstance(adjacency, _Held) else None  # the graph that this one shares its edges with
        matrix = _check_adjacency(adjacency) if held is None else held.adjacency
        n = matrix.shape[0]
        if targets is not None:
            targets = _check_targets(targets, n, labels, class_names)
        if METRICS[metric].numbers != (targets is not None) and not (labels is None and targets is None):
            raise ValueError(metric_problem(metric, targets is not None))
        names = None if class_names is None else _check_names(class_names, "class_names")
        codes = None
        if labels is not None:
            codes, names = _check_labels(labels, n, names)
        columns = _column_names(features) if feature_names is None else feature_names
        if isinstance(features, _Held):
            features = features.of.features
        else:
            features = None if features is None else _check_features(features, n)
        if held is not None:
            is_directed, matrices = held.directed, dict(held.edge_matrices)
        else:
            made = isinstance(adjacency, Joined) and adjacency.symmetric and not directed
            is_directed = False if made else _check_directed(directed, matrix)
            matrices = _check_edge_matrices({} if edge_matrices is None else edge_matrices, matrix, is_directed)
        self.__dict__.update(
            adjacency=matrix,
            features=features,
            feature_names=None if columns is None else _check_feature_names(columns, features),
            labels=codes,
            targets=targets,
            splits=_check_splits(splits, n),
            directed=is_directed,
            metric=metric,
            node_names=None if node_names is None else _check_names(node_names, "node_names", n),
            class_names=names,
            positions=None if positions is None else _check_positions(positions, n),
            things=None if things is None else _check_things(things, n, codes if targets is None else targets),
            edge_matrices=matrices,
            edge_kinds=_check_edge_kinds(edge_kinds, matrices),
        )

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
    def edge_matrices(self) -> Mapping[str, csr_array]:
        """Other adjacency matrices over the same nodes, by name."""
        return MappingProxyType(self.__dict__["edge_matrices"])  # made here, as it cannot be pickled

    # ---------------------------------------------------------------- in

    @classmethod
    def of(cls, given: Any) -> Graph:
        """The graph that anything is or stands for: its edges, weights and positions, without features and labels.

        What functions of signals take in place of a graph, so that nobody has to convert.

        Parameters
        ----------
        given
            A `Graph`, which is returned as it is; a PyGSP or NetworkX graph, or PyG data; an adjacency matrix, sparse
            or not; or a list of edges, two node numbers each. A square array is an adjacency matrix.

        Examples
        --------
        >>> import networkx as nx
        >>> import numpy as np
        >>> Graph.of(nx.cycle_graph(5)), Graph.of([[0, 1], [1, 2], [2, 3]]), Graph.of(np.ones((2, 2)))
        (Graph(n=5, edges=5, undirected), Graph(n=4, edges=3, undirected), Graph(n=2, edges=3, undirected))
        """
        if isinstance(given, Graph):
            return given
        if issparse(given):
            return cls(given)
        if hasattr(given, "W") and hasattr(given, "is_directed"):
            return cls.from_pygsp(given, features=None)
        if hasattr(given, "is_multigraph") and hasattr(given, "nodes"):
            return cls.from_networkx(given)
        if getattr(given, "edge_index", None) is not None:
            return cls.from_pyg(given, features=None, labels=None, splits=())
        if isinstance(given, str) or not (isinstance(given, Sequence) or hasattr(given, "__array__")):
            raise TypeError(
                "a graph is a pegfan.Graph, a PyGSP or NetworkX graph, PyG data, an adjacency matrix or a list of "
                f"edges; got {kind_of(given)}"
            )
        array = as_array(given, "the graph")
        edges = array.ndim == 2 and array.shape[1] == 2 and len(array) != 2
        return cls.from_edges(array) if edges else cls(array)

    @classmethod
    def from_scipy(cls, adjacency: Any, **attributes: Any) -> Graph:
        """Make a graph from a SciPy sparse matrix or a dense array; the same as ``Graph(adjacency, ...)``.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> Graph.from_scipy(sp.coo_array(([1.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3)))
        Graph(n=3, edges=2, directed)
        """
        return cls(adjacency, **attributes)

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

    @classmethod
    def from_networkx(
        cls,
        nx_graph: Any,
        *,
        weight: str | None = "weight",
        features: str | Sequence[str] | None = None,
        labels: str | None = None,
        positions: str | None = "pos",
        duplicates: str = "sum",
        **attributes: Any,
    ) -> Graph:
        """Make a graph from a NetworkX graph; nodes keep their order, and their keys become `node_names`.

        Parameters
        ----------
        nx_graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        weight : str, optional
            Edge attribute to read; edges without it weigh 1. None: all edges weigh 1.
        features : str or sequence of str, optional
            Node attributes, each a number or a vector, that make the columns of the features. Columns are named
            after them, as ``"age"`` or ``"where[0]"``; those of :meth:`to_networkx` keep their names.
        labels : str, optional
            Node attribute with the label; nodes without it, or with None, are unlabelled.
        positions : str, optional
            Node attribute with the positions. The default is used only if the graph has it; None ignores
            it.
        duplicates : {"max", "min", "sum", "mean", "count", "error"}
            How parallel edges of a multigraph are merged.
        **attributes
            Passed to :class:`Graph`.

        Examples
        --------
        >>> import networkx as nx
        >>> g = Graph.from_networkx(nx.path_graph(["x", "y", "z"]))
        >>> g, g.node_names.tolist()
        (Graph(n=3, edges=2, undirected), ['x', 'y', 'z'])
        """
        if not (hasattr(nx_graph, "is_multigraph") and hasattr(nx_graph, "nodes")):
            raise TypeError(f"from_networkx needs a NetworkX graph, got {type(nx_graph).__name__}")
        for name, word in (("weight", weight), ("labels", labels), ("positions", positions)):
            if word is not None:
                check_kind(word, name, str)
        nodes = list(nx_graph.nodes)
        if not nodes:
            raise ValueError("the NetworkX graph has no nodes; a Graph needs at least one")
        if positions == "pos" and not any("pos" in data for _, data in nx_graph.nodes(data=True)):
            positions = None
        found: dict[str, Any] = {"node_names": nodes}
        asked = [features] if isinstance(features, str) else () if features is None else features
        columns = check_list(asked, "features", str)
        if columns:
            blocks = {name: _node_columns(nx_graph, name) for name in columns}
            found["features"] = np.hstack(list(blocks.values()))
            found["feature_names"] = [name for key, block in blocks.items() for name in _names_of(nx_graph, key, block)]
        if labels is not None:
            found["labels"] = _node_attribute(nx_graph, labels, required=False)
        if positions is not None:
            found["positions"] = _node_columns(nx_graph, positions)

        index = {node: i for i, node in enumerate(nodes)}
        arcs = list(nx_graph.edges(data=weight or False, default=1.0))
        edges = np.array([(index[u], index[v]) for u, v, *_ in arcs], dtype=np.int64).reshape(-1, 2)
        weights = [value for _, _, value in arcs] if weight else None
        return cls.from_edges(
            edges,
            weights,
            n=len(nodes),
            directed=nx_graph.is_directed(),
            duplicates=duplicates,
            **_overridden(found, attributes),
        )

    @classmethod
    def from_pyg(cls, data: Any, *, directed: bool | None = None, duplicates: str = "max", **attributes: Any) -> Graph:
        """Make a graph from a PyTorch Geometric ``Data`` object (OGB's node datasets give these too).

        Reads ``edge_index``; ``edge_weight``, or else an ``edge_attr`` of one number per edge, as
        weights; ``x``, dense or sparse, and ``feature_names``; ``y`` of shape (n,) or (n, 1), where NaN means
        unlabelled, as labels, or as targets if it has numbers that are not whole; ``pos``; ``num_nodes``; and the
        masks ``train_mask``, ``val_mask`` and ``test_mask`` of shape (n,) or (n, k), which become k splits (a mask of
        shape (n,) serves every split, a missing one leaves its part empty).

        Parameters
        ----------
        data : torch_geometric.data.Data
        directed : bool, optional
            By default, whether ``edge_index`` holds an arc without its reverse.
        duplicates : {"max", "min", "sum", "mean", "count", "error"}
            How repeated columns of ``edge_index`` are merged.
        **attributes
            Passed to :class:`Graph`, in place of what `data` holds (``labels=None`` ignores ``y``).

        Examples
        --------
        >>> Graph.from_pyg(Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 0]).to_pyg())
        Graph(n=3, edges=2, undirected, classes=2)
        """
        edge_index = getattr(data, "edge_index", None)
        if edge_index is None:
            raise TypeError(
                f"from_pyg needs a Data object with an edge_index, got {type(data).__name__} without one "
                "(undo ToSparseTensor, or use to_homogeneous() on heterogeneous data)"
            )
        pairs = _from_torch(edge_index)
        if pairs.ndim != 2 or pairs.shape[0] != 2:
            raise ValueError(f"edge_index must have shape (2, m), got {pairs.shape}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyG warns where it guesses n as we do, from the largest id
            n = getattr(data, "num_nodes", None)
        found = {
            "features": _from_torch(getattr(data, "x", None)),
            "feature_names": getattr(data, "feature_names", None),
            **labels_or_targets(single_column(_from_torch(getattr(data, "y", None)))),
            "splits": mask_splits({part: _from_torch(getattr(data, f"{part}_mask", None)) for part in Split._fields}),
            "positions": _from_torch(getattr(data, "pos", None)),
        }
        adjacency = join_edges(pairs.T, _edge_weights(data), n, duplicates, mirror=False)
        return cls(adjacency, directed=directed, **_overridden(found, attributes))

    @classmethod
    def from_pygsp(cls, pygsp_graph: Any, **attributes: Any) -> Graph:
        """Make a graph from a PyGSP graph: its ``W``, and its ``coords`` if they have two or three columns.

        Its ``signals``, numbers under a name, become the features; a signal of several columns is named as ``"x[0]"``,
        ``"x[1]"``, .... Features have no gaps: signals with NaN are for ``pegfan.denoise`` and ``pegfan.inpaint``, and
        here ``features=None`` leaves signals out.

        Examples
        --------
        >>> import pygsp
        >>> Graph.from_pygsp(pygsp.graphs.Ring(5))
        Graph(n=5, edges=5, undirected)
        """
        if not (hasattr(pygsp_graph, "W") and hasattr(pygsp_graph, "is_directed")):
            raise TypeError(f"from_pygsp needs a PyGSP graph, got {type(pygsp_graph).__name__}")
        coords = np.asarray(getattr(pygsp_graph, "coords", ()))
        drawable = coords.ndim == 2 and coords.shape[1] in (2, 3)
        found: dict[str, Any] = {"positions": coords if drawable else None, "directed": bool(pygsp_graph.is_directed())}
        signals = {} if "features" in attributes else getattr(pygsp_graph, "signals", {})
        blocks = {str(name): as_array(signal, f"signal {name!r}") for name, signal in signals.items()}
        for name, block in blocks.items():
            if block.dtype.kind == "f" and not np.isfinite(block).all():
                raise ValueError(
                    f"signal {shown(name)} has a value that is not finite, and features have no gaps; "
                    "pass features=None to leave signals out"
                )
        if blocks:
            found["features"] = np.column_stack(list(blocks.values()))
            found["feature_names"] = [
                name if block.ndim == 1 else f"{name}[{k}]"
                for name, block in blocks.items()
                for k in range(1 if block.ndim == 1 else block.shape[1])
            ]
        return cls(pygsp_graph.W, **_overridden(found, attributes))

    @overload
    @classmethod
    def from_tables(
        cls, nodes: Any, edges: Any, *, report: Literal[False] = False, **options: Unpack[TableOptions]
    ) -> Graph: ...

    @overload
    @classmethod
    def from_tables(
        cls, nodes: Any, edges: Any, *, report: Literal[True], **options: Unpack[TableOptions]
    ) -> tuple[Graph, ReadReport]: ...

    @classmethod
    def from_tables(
        cls, nodes: Any, edges: Any, *, report: bool = False, **options: Unpack[TableOptions]
    ) -> Graph | tuple[Graph, ReadReport]:
        """Make a graph from a table of nodes and a table of edges; see `pegfan.datasets.graph_from_tables`.

        Parameters
        ----------
        nodes : DataFrame, mapping of columns, or None
            One row per node: an id, and optionally a label, splits and features.
        edges : DataFrame or array
            Source, target and optionally weight.
        report : bool
            Whether to return the :class:`~pegfan.datasets.ReadReport` too, which lists the guesses.
        **options
            What to take each column for, where the guess is not right.

        Examples
        --------
        >>> nodes = {"id": ["a", "b", "c"], "age": [30, 40, 50], "kind": ["x", "y", "x"]}
        >>> Graph.from_tables(nodes, [["a", "b"], ["b", "c"]], label="kind")
        Graph(n=3, edges=2, undirected, features=1, classes=2)
        """
        from pegfan.datasets.tables import graph_from_tables

        check_flag(report, "report")
        graph, account = graph_from_tables(nodes, edges, report=True, **options)
        return (graph, account) if report else graph

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

    def to_networkx(self) -> networkx.Graph:
        """Return a ``networkx.Graph`` or ``DiGraph`` with edge attribute ``"weight"``.

        Nodes are keyed by `node_names`, or else by 0..n-1. They carry ``"label"`` (the class name if there
        is one, else the class number, None if unlabelled) or ``"target"`` (a number, None if it is not known),
        ``"features"`` (the row, if features are dense) and ``"pos"``. The names of features are in
        ``.graph["feature_names"]``.

        Examples
        --------
        >>> print(Graph.from_edges([[0, 1], [1, 2]]).to_networkx())
        Graph with 3 nodes and 2 edges
        """
        nx = need("networkx", "graphs", "this conversion")
        result = nx.DiGraph() if self.directed else nx.Graph()
        keys = self.ids.tolist()
        result.add_nodes_from(keys)
        columns: dict[str, list[Any]] = {}
        if self.labels is not None:
            names = self.classes.tolist()
            columns["label"] = [None if k < 0 else names[k] for k in self.labels.tolist()]
        if self.targets is not None:
            columns["target"] = [None if np.isnan(value) else value for value in self.targets.tolist()]
        if self.features is not None and not issparse(self.features):
            columns["features"] = list(self.features)
            if self.feature_names is not None:
                result.graph["feature_names"] = list(self.feature_names)
        if self.positions is not None:
            columns["pos"] = [tuple(row) for row in self.positions.tolist()]
        for attribute, values in columns.items():
            nx.set_node_attributes(result, dict(zip(keys, values, strict=True)), attribute)
        edges, weights = self.edges()
        result.add_weighted_edges_from(
            (keys[i], keys[j], w) for (i, j), w in zip(edges.tolist(), weights.tolist(), strict=True)
        )
        return result

    def to_pyg(self) -> torch_geometric.data.Data:
        """Return a ``torch_geometric.data.Data``: the inverse of :meth:`from_pyg`.

        ``edge_index`` holds both directions of an undirected edge; ``edge_weight`` is there if any weight
        is not 1. Types are kept, so features may be float64. One split gives masks of shape (n,), more give
        (n, k). The names of features are in ``feature_names``. Those of nodes and classes, and the metric, have no
        place in ``Data``; pass them to :meth:`from_pyg` again.

        Examples
        --------
        >>> Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 0]).to_pyg()
        Data(edge_index=[2, 4], y=[3], num_nodes=3)
        """
        torch, pyg = (need(name, "torch", "this conversion") for name in ("torch", "torch_geometric.data"))
        arcs = self.adjacency.tocoo()
        fields: dict[str, Any] = {"edge_index": torch.tensor(np.stack(arcs.coords).astype(np.int64))}
        if np.any(arcs.data != 1):
            fields["edge_weight"] = torch.tensor(arcs.data)
        if self.features is not None:
            fields["x"] = _to_torch(self.features, torch)
        if self.feature_names is not None:
            fields["feature_names"] = list(self.feature_names)
        if self.truth is not None:
            fields["y"] = torch.tensor(self.truth)
        if self.positions is not None:
            fields["pos"] = torch.tensor(self.positions)
        for part in Split._fields if self.splits else ():
            mask = np.zeros((self.n, len(self.splits)), dtype=bool)
            for k, split in enumerate(self.splits):
                mask[getattr(split, part), k] = True
            fields[f"{part}_mask"] = torch.tensor(mask[:, 0] if len(self.splits) == 1 else mask)
        return pyg.Data(**fields, num_nodes=self.n)

    def to_pygsp(self) -> pygsp.graphs.Graph:
        """Return a ``pygsp.graphs.Graph`` with these weights, and the positions as ``coords``.

        Features that have names become ``signals``, unless they are sparse.

        Examples
        --------
        >>> Graph.from_edges([[0, 1], [1, 2]]).to_pygsp()
        Graph(n_vertices=3, n_edges=2)
        """
        pygsp = need("pygsp", "graphs", "this conversion")
        coords = None if self.positions is None else self.positions.copy()
        result = pygsp.graphs.Graph(csr_matrix(self.adjacency.copy()), coords=coords)
        for k, name in enumerate(self.feature_names or ()) if not issparse(self.features) else ():
            result.set_signal(self.features[:, k].copy(), name)
        return result

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
            held = changes["edge_matrices"] or {}
            changes = {"edge_kinds": [kind for kind in self.edge_kinds if kind in held], **changes}
        gone: dict[str, Any] = {}
        if changes.get("targets") is not None and self.targets is None:
            gone = {"labels": None, "class_names": None, "metric": None}
        elif changes.get("labels") is not None and self.targets is not None:
            gone = {"targets": None, "metric": None}
        elif "targets" in changes and self.targets is not None and changes["targets"] is None:
            gone = {"metric": None}
        shared: dict[str, Any] = {}
        if not {"adjacency", "directed", "edge_matrices", "edge_kinds"} & changes.keys():
            shared["adjacency"] = _Held(self)
        if self.features is not None and "features" not in changes and "adjacency" not in changes:
            shared["features"] = _Held(self)
        made = Graph(**{**self.__dict__, "feature_names": None, **gone, **shared, **changes})
        kept = self.feature_names if made.feature_names is None and "feature_names" not in changes else None
        if kept is not None and made.features is not None and len(kept) == made.features.shape[1]:
            made.__dict__["feature_names"] = kept
        return made

    def weighted(self, name: str | None) -> Graph:
        """Return the graph whose adjacency is one of its `edge_matrices`; the graph itself for None.

        Examples
        --------
        >>> edges = {"payer": ["a", "a", "b"], "payee": ["b", "b", "c"], "amount": [5, 7, 1], "note": ["x", "y", "x"]}
        >>> g = Graph.from_tables(None, edges)
        >>> g.adjacency.max(), g.weighted("amount sum").adjacency.max()
        (np.float64(1.0), np.float64(12.0))
        """
        if name is None:
            return self
        if not isinstance(name, str) or name not in self.edge_matrices:
            there = ", ".join(map(repr, self.edge_matrices)) or "none"
            raise ValueError(
                f"the graph has no edge matrix {shown(name)}; it has {there}. A table of edges with the same columns "
                "makes the same ones"
            )
        return self.replace(adjacency=self.edge_matrices[name])

    def split(self, which: Any) -> Split:
        """Return one of the splits by its place, or check a split of the caller's own.

        Parameters
        ----------
        which : int, or anything that :func:`as_split` takes
            A place in `splits`, counted from 0.

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
            held = {-1: "no splits", 0: "split 0"}.get(last, f"splits 0 to {last}")
            fix = "name one of them, or pass" if self.splits else "pass"
            raise ValueError(f"there is no split {which}: the graph has {held}; {fix} a Split (train, val, test)")
        return self.splits[which]

    def align_features(self, names: Sequence[str], *, missing: Literal["error", "zero"] = "error") -> Graph:
        """Return the graph with the feature columns of these names, in this order: those that a model was fitted to.

        Columns of other names are left out. A category or token that no node has, ``"city=Paris"`` or ``"tags:red"``
        where there are other columns ``"city=..."`` or ``"tags:..."``, is a column of zeros.

        Parameters
        ----------
        names : sequence of str
        missing : {"error", "zero"}
            What stands for any other column that is not there: an error, or zeros.

        Examples
        --------
        >>> g = Graph.from_tables({"age": [30, 40, 50], "city": ["Rome", "Oslo", "Oslo"]}, [[0, 1], [1, 2]])
        >>> g.feature_names
        ('age', 'city=Oslo', 'city=Rome')
        >>> g.align_features(["city=Paris", "city=Rome", "age"]).features.toarray()
        array([[ 0.,  1., 30.],
               [ 0.,  0., 40.],
               [ 0.,  0., 50.]])
        >>> g.align_features(["age", "height"])
        Traceback (most recent call last):
        ValueError: 1 of 2 features is missing: 'height'; add columns of these names, or fill them with zeros by ...
        """
        check_choice(missing, "missing", ("error", "zero"))
        if self.feature_names is None:
            what = "features without names" if self.features is not None else "no features"
            raise ValueError(
                f"the graph has {what}, and {len(names)} named features are wanted; read it from tables, or give "
                "feature_names="
            )
        if tuple(names) == self.feature_names:
            return self
        place = {name: k for k, name in enumerate(self.feature_names)}
        kinds = {_kind_of(name) for name in place} - {""}
        absent = [name for name in names if name not in place and _kind_of(name) not in kinds]
        if absent and missing == "error":
            more = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
            raise ValueError(
                f"{len(absent)} of {len(names)} features {'is' if len(absent) == 1 else 'are'} missing: "
                f"{', '.join(map(repr, absent[:10]))}{more}; add columns of these names, or fill them with zeros by "
                "graph.align_features(names, missing='zero')"
            )
        # Place -1 is a column of zeros after the last one.
        columns = [place.get(name, -1) for name in names]
        if issparse(self.features):
            wider = self.features.tocsc()
            wider.resize(self.n, len(place) + 1)
        else:
            wider = np.hstack([self.features, np.zeros((self.n, 1), dtype=self.features.dtype)])
        return self.replace(features=wider[:, columns], feature_names=names)

    def with_positive(self, name: Any = None) -> Graph:
        """Return the graph with its two classes in an order that has the positive one last, as class 1.

        Parameters
        ----------
        name
            The positive class by its name, or by its number where classes have none. By default the one that fewer
            nodes have; of two that as many have, the last.

        Examples
        --------
        >>> g = Graph.from_edges([[0, 1], [1, 2]], labels=["fraud", "good", "good"]).with_positive()
        >>> g.classes, g.labels
        (array(['good', 'fraud'], dtype='<U5'), array([1, 0, 0]))
        """
        if self.labels is None or self.n_classes != 2:
            raise ValueError(f"a positive class is one of two, and this graph has {self.n_classes} classes")
        words = [str(known) for known in self.classes.tolist()]
        if isinstance(name, Collection) and not isinstance(name, str):
            raise TypeError(f"positive must be the name of a class, got {kind_of(name)}")
        if name is None:
            few, many = np.bincount(self.labels[self.labels >= 0], minlength=2)
            place = int(few >= many)
        elif str(name) in words:
            place = words.index(str(name))
        else:
            raise ValueError(f"positive must be one of the classes, {words[0]!r} or {words[1]!r}, got {shown(name)}")
        if place == 1:
            return self
        return self.replace(labels=np.where(self.labels < 0, -1, 1 - self.labels), class_names=self.classes[::-1])

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
        return self._take(_check_nodes(order, self.n, "perm"))

    def symmetrize(self, rule: str = "max") -> Graph:
        """Return the undirected graph with each edge wherever there is an arc in one direction or the other.

        Parameters
        ----------
        rule : {"max", "sum"}
            ``"max"`` takes max(A, Aᵀ) entry by entry and leaves an undirected graph as it is. ``"sum"``
            takes A + Aᵀ with the diagonal counted once; the weights of a graph that is already symmetric
            are doubled.

        Examples
        --------
        >>> Graph.from_edges([[0, 1], [1, 0], [1, 2]], directed=True).symmetrize("sum").edges()[1]
        array([2., 1.])
        """
        check_choice(rule, "rule", ("max", "sum"))

        def symmetric(a: csr_array) -> csr_array:
            return csr_array(a.maximum(a.T) if rule == "max" else a + (a - diags_array(a.diagonal())).T)

        matrices = {name: symmetric(matrix) for name, matrix in self.edge_matrices.items()}
        return self.replace(adjacency=symmetric(self.adjacency), directed=False, edge_matrices=matrices)

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
        kept = _check_nodes(nodes, self.n, "nodes")
        if kept.size == 0:
            raise ValueError("nodes is empty; a Graph needs at least one node")
        return self._take(kept)

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
        return self._take(np.flatnonzero(component == component[size.argmax()]))

    def describe(self) -> Description:
        """Return the sizes and the homophily of this graph; see :func:`pegfan.measures.describe`.

        Examples
        --------
        >>> Graph.from_edges([[0, 1], [1, 2]]).describe().edges
        2
        """
        from pegfan.measures import describe  # measures stands after graph

        return describe(self)

    def _take(self, nodes: IntArray) -> Graph:
        new = np.full(self.n, -1)
        new[nodes] = np.arange(nodes.size)

        def rows(array: Any) -> Any:
            return None if array is None else array[nodes]

        def renumber(part: IntArray) -> IntArray:
            return new[part][new[part] >= 0]

        return self.replace(
            adjacency=moved(self.adjacency, nodes),
            features=rows(self.features),
            labels=rows(self.labels),
            targets=rows(self.targets),
            splits=[Split(*map(renumber, split)) for split in self.splits],
            node_names=rows(self.node_names),
            positions=rows(self.positions),
            things=rows(self.things),
            edge_matrices={name: moved(matrix, nodes) for name, matrix in self.edge_matrices.items()},
        )


# -------------------------------------------------------------------- reading arrays


def _as_real(values: Any, what: str, ndim: int) -> NDArray[Any]:
    array = as_array(values, what)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != ndim:
        column = what == "features" and array.ndim == 1
        fix = "; use features.reshape(-1, 1) for a single column" if column else ""
        raise ValueError(f"{what} must have {ndim} dimension(s), got shape {array.shape}{fix}")
    return array


def _as_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return a vector of the objects as they are, even where NumPy would see rows or convert to strings."""
    return np.fromiter(values, dtype=object)


def _cast(array: Any, dtype: Any) -> Any:
    # A long double too large for a float64 becomes inf, which the finiteness checks then report.
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def _freeze(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        array.setflags(write=False)


def _canonical_csr(matrix: Any, what: str, dtype: Any) -> csr_array:
    """Return an independent, read-only CSR copy: sorted, duplicates summed, zeros dropped, entries finite."""
    if matrix.ndim != 2:
        raise ValueError(f"{what} must have 2 dimensions, got shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold real numbers, got dtype {matrix.dtype}")
    check_memory(8.0 * (max(matrix.shape) + 1), f"{what} of shape {matrix.shape}")
    try:
        # Cast first: small integers would wrap around in the sum of duplicates. True + True is True in SciPy.
        copied = matrix.copy() if matrix.dtype.kind == "b" else _cast(matrix, dtype)
        if hasattr(copied, "check_format"):
            copied.check_format()  # in full: an index out of range would make SciPy's C++ code crash
        if hasattr(copied, "indptr") and (copied.indptr[1:] < copied.indptr[:-1]).any():
            raise ValueError("indptr decreases")  # SciPy does not look where nothing is stored
        csr = csr_array(csr_array(copied), dtype=dtype)
        csr.check_format()
    except ValueError as error:
        raise ValueError(f"{what} is not a valid sparse matrix: {error}") from error
    csr.sum_duplicates()
    csr.eliminate_zeros()
    index = np.int32 if max(*csr.shape, csr.nnz) <= np.iinfo(np.int32).max else np.int64
    csr.indices, csr.indptr = csr.indices.astype(index, copy=False), csr.indptr.astype(index, copy=False)
    _require(np.isfinite(csr.data), csr, what, "is not finite")
    _freeze(csr.data, csr.indices, csr.indptr)
    return csr


def _require(good: NDArray[np.bool_], csr: csr_array, what: str, complaint: str) -> None:
    if not good.all():
        k = int(good.argmin())
        i = int(np.searchsorted(csr.indptr, k, side="right")) - 1
        raise ValueError(f"{what}[{i}, {csr.indices[k]}] = {csr.data[k]} {complaint}")


# -------------------------------------------------------------------- checking attributes


class Joined(NamedTuple):
    """A matrix that was made of checked edges, with nothing left to check: sorted, without repeats or zeros."""

    matrix: csr_array
    symmetric: bool
    finite: bool = False  # known to be; a sum may not be


class _Held(NamedTuple):
    """In place of what a graph holds: it was checked and cannot change, so that another graph may share it."""

    of: Graph


def _check_adjacency(adjacency: Any, what: str = "adjacency") -> csr_array:
    if isinstance(adjacency, Joined):
        csr = adjacency.matrix
        if not adjacency.finite:
            _require(np.isfinite(csr.data), csr, what, "is not finite")
        _freeze(csr.data, csr.indices, csr.indptr)
        return csr
    if not issparse(adjacency):
        if not isinstance(adjacency, Sequence) and not hasattr(adjacency, "__array__"):
            raise TypeError(
                f"{what} must be a SciPy sparse matrix or a 2-D array, got {type(adjacency).__name__}; "
                "see also Graph.from_edges, from_networkx, from_pyg and from_pygsp"
            )
        adjacency = csr_array(_cast(_as_real(adjacency, what, ndim=2), np.float64))
    csr = _canonical_csr(adjacency, what, np.float64)
    if csr.shape[0] != csr.shape[1] or csr.shape[0] == 0:
        raise ValueError(f"{what} must be square with at least one node, got shape {csr.shape}")
    _require(csr.data >= 0, csr, what, "is negative; weights must be 0 (no edge) or more")
    return csr


def _check_edge_matrices(given: Any, adjacency: csr_array, directed: bool) -> dict[str, csr_array]:
    if not isinstance(given, Mapping):
        raise TypeError(f"edge_matrices must be a mapping of names to matrices, got {type(given).__name__}")
    checked = {}
    for name, matrix in given.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"the names of edge_matrices must be texts, got {shown(name)}")
        what = f"edge_matrices[{name!r}]"
        csr = _check_adjacency(matrix, what)
        _check_rows(csr.shape[0], adjacency.shape[0], what)
        if not directed and not (isinstance(matrix, Joined) and matrix.symmetric):
            _check_directed(False, csr, what)
        if np.array_equal(csr.indptr, adjacency.indptr) and np.array_equal(csr.indices, adjacency.indices):
            csr.indptr, csr.indices = adjacency.indptr, adjacency.indices  # other weights of the same edges, held once
        checked[name] = csr
    return checked


def _check_edge_kinds(kinds: Any, matrices: Mapping[str, csr_array]) -> tuple[str, ...]:
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise TypeError(f"edge_kinds must be a sequence of names, got {shown(kinds)}")
    found = tuple(kinds)
    for kind in found:
        if kind not in matrices:
            raise ValueError(
                f"edge_kinds names {shown(kind)}, which is not among the edge_matrices: {', '.join(matrices)}"
            )
    _require_distinct(found, "edge_kinds")
    return found


def _check_directed(directed: bool | None, adjacency: csr_array, what: str = "adjacency") -> bool:
    if directed is not None and not isinstance(directed, bool | np.bool_):
        raise TypeError(f"directed must be True, False or None, got {shown(directed)}")
    if directed:
        return True
    across = transposed(adjacency)
    if all(np.array_equal(getattr(adjacency, part), getattr(across, part)) for part in ("indptr", "indices", "data")):
        return False
    odd = (adjacency - adjacency.T).tocoo()
    if directed is None or odd.nnz == 0:
        return bool(odd.nnz)
    i, j = int(odd.coords[0][0]), int(odd.coords[1][0])
    raise ValueError(
        f"directed=False needs a symmetric {what}, but [{i}, {j}] = {adjacency[i, j]} and [{j}, {i}] = "
        f"{adjacency[j, i]}; use directed=True, and .symmetrize() on the result for an undirected graph"
    )


def _check_rows(rows: int, n: int, what: str) -> None:
    if rows != n:
        raise ValueError(f"{what} has {rows} rows, but the graph has {n} nodes")


def _check_features(features: Any, n: int) -> Any:
    array = features if issparse(features) else _as_real(features, "features", ndim=2)
    dtype = np.float32 if array.dtype.char in "ef" else np.float64
    checked = _canonical_csr(array, "features", dtype) if issparse(array) else _finite_copy(array, "features", dtype)
    _check_rows(checked.shape[0], n, "features")
    return checked


def _column_names(features: Any) -> list[str] | None:
    """Return the names that a data frame gives its columns; mere numbers are none."""
    columns = getattr(features, "columns", None)
    names = list(columns) if isinstance(columns, Iterable) else []
    return None if names == list(range(len(names))) else [str(name) for name in names]


def _check_feature_names(names: Any, features: Any) -> tuple[str, ...]:
    if features is None:
        raise ValueError("feature_names are given, but no features")
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a sequence of strings, got {type(names).__name__}")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"feature_names must be strings, got {shown(name)}")
    if len(found) != features.shape[1]:
        raise ValueError(f"feature_names has {len(found)} names, but features has {features.shape[1]} columns")
    _require_distinct(found, "feature_names")
    return tuple(map(str, found))  # of NumPy's strings too


def _kind_of(name: str) -> str:
    """Return what a category or token is one of: "city" for "city=Paris", "tags" for "tags:red"."""
    return re.split("[=:]", name, maxsplit=1)[0] if re.search("[=:]", name) else ""


def _check_things(things: Any, n: int, truth: Any) -> NDArray[np.bool_] | None:
    array = as_array(things, "things")
    if array.dtype != np.bool_ or array.shape != (n,):
        raise ValueError(f"things must be {n} booleans, one per node, got {array.dtype} of shape {array.shape}")
    if truth is not None and (array & are_known(truth)).any():
        raise ValueError("things are nodes that nothing is said of, and some of these have a label")
    if not array.any():
        return None
    array = array.copy()
    array.flags.writeable = False
    return array


def _check_positions(positions: Any, n: int) -> FloatArray:
    array = _as_real(positions, "positions", ndim=2)
    _check_rows(len(array), n, "positions")
    if array.shape[1] not in (2, 3):
        raise ValueError(f"positions must have 2 or 3 columns, got {array.shape[1]}")
    return _finite_copy(array, "positions", np.float64)


def _finite_copy(array: NDArray[Any], what: str, dtype: Any) -> NDArray[Any]:
    copied = np.ascontiguousarray(_cast(array, dtype))
    bad = ~np.isfinite(copied)
    if bad.any():
        i, j = (int(k) for k in np.unravel_index(bad.argmax(), bad.shape))
        raise ValueError(f"{what}[{i}, {j}] = {copied[i, j]} is not finite (row {i}, column {j})")
    _freeze(copied)
    return copied


def _check_names(names: Any, what: str, n: int | None = None) -> NDArray[Any]:
    if isinstance(names, np.ndarray):
        array = names if _cannot_change(names) else np.array(names)
    elif isinstance(names, Sequence) and not isinstance(names, str | bytes):
        cut = any(isinstance(name, str) and name.endswith("\x00") for name in names)  # by NumPy
        uniform = {type(name) for name in names} in ({str}, {int}) and not cut
        array = np.array(names) if uniform else _as_objects(names)
    else:
        array = np.array(as_array(names, what))
    if array.ndim != 1:
        raise ValueError(f"{what} must have 1 dimension, got shape {array.shape}")
    if n is not None:
        _check_rows(len(array), n, what)
    else:
        check_class_names(array.tolist())
    if array.dtype.kind not in "USiu" or not (array[1:] > array[:-1]).all():  # what is sorted differs
        _require_distinct(array.tolist(), what)
    _freeze(array)
    return array


def _cannot_change(array: NDArray[Any]) -> bool:
    """Whether nobody can write into the memory of an array: what the readers make need not be copied."""
    return not array.flags.writeable and (
        array.base is None or (isinstance(array.base, np.ndarray) and _cannot_change(array.base))
    )


def _require_distinct(names: Iterable[Any], what: str) -> None:
    seen = set()
    for name in names:
        try:
            repeated = name in seen
        except TypeError:
            raise TypeError(f"{what} must be hashable, got {shown(name)}") from None
        if repeated:
            raise ValueError(f"{what} must be distinct, but {shown(name)} occurs more than once")
        seen.add(name)


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float | np.floating) and bool(np.isnan(label)))


def _check_labels(values: Any, n: int, class_names: NDArray[Any] | None) -> tuple[IntArray, NDArray[Any] | None]:
    array = as_array(values, "labels")
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = _as_objects(values)  # among strings, NumPy would spell a missing label "nan"
    if array.ndim != 1:
        raise ValueError(f"labels must have 1 dimension, got shape {array.shape}")
    _check_rows(len(array), n, "labels")
    if array.dtype.kind in "USTO":
        array, class_names = _encode(array.astype(object), class_names)
    codes = _integer_labels(array)
    if class_names is not None and codes.max() >= len(class_names):
        raise ValueError(
            f"labels go up to {codes.max()}, but there are only {len(class_names)} class_names; "
            "name every class, or give class_names=None"
        )
    _freeze(codes)
    return codes, class_names


def metric_problem(metric: str, numeric: bool) -> str:
    """Say that a metric is for classes where there are numbers, or the other way round, and which ones are not."""
    there, needed = ("numbers", "classes") if numeric else ("classes", "numbers")
    fitting = " or ".join(name for name, other in METRICS.items() if other.numbers == numeric)
    other = "" if numeric else ", or read the labels as numbers (label_kind='numbers')"
    return f"{METRICS[metric].words} is for {needed}, and what is to be predicted are {there}; choose {fitting}{other}"


def _check_targets(values: Any, n: int, labels: Any, class_names: Any) -> FloatArray:
    if labels is not None or class_names is not None:
        raise ValueError("a graph has labels, which are classes, or targets, which are numbers; give one of them")
    array = as_array(values, "targets")
    if array.dtype.kind == "O":  # None among numbers
        try:
            array = np.array([np.nan if _is_missing(value) else float(value) for value in array.tolist()])
        except (TypeError, ValueError) as error:
            raise TypeError(f"targets must be numbers, NaN or None where they are not known: {error}") from None
    array = _cast(_as_real(array, "targets", ndim=1), np.float64)
    _check_rows(len(array), n, "targets")
    wrong = np.isinf(array)
    if wrong.any():
        raise ValueError(f"targets[{wrong.argmax()}] = {array[wrong.argmax()]} is not finite; NaN is for unknown ones")
    copied = np.array(array)
    _freeze(copied)
    return copied


def _encode(labels: NDArray[Any], class_names: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Turn objects into class numbers, NaN for missing ones; numbers with gaps are kept."""
    missing = np.fromiter(map(_is_missing, labels), dtype=bool, count=len(labels))
    codes = np.full(len(labels), np.nan)
    present = labels[~missing].tolist()
    try:
        if all(isinstance(label, numbers.Real) for label in present):
            codes[~missing] = [float(label) for label in present]
            return codes, class_names
        if class_names is None:
            class_names = _check_names(sorted(set(present)), "class_names")
        number = {name: k for k, name in enumerate(class_names.tolist())}
        codes[~missing] = [number[label] for label in present]
    except TypeError as error:
        raise TypeError(f"labels must be numbers, or objects of one kind that sort: {error}") from error
    except OverflowError as error:
        raise ValueError(f"labels must be class numbers 0..k-1: {error}") from error
    except KeyError as error:
        raise ValueError(f"label {error.args[0]!r} is not among class_names") from error
    return codes, class_names


def _integer_labels(array: NDArray[Any]) -> IntArray:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"labels must be integers or strings, got dtype {array.dtype}")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, _cast(array, np.float64))
    # Class numbers size the last layer of a model: a stray id among them must not get that far.
    wrong = (array < -1) | (array > _UNSEEN + len(array)) | (array != np.floor(array))
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"labels[{i}] = {array[i]} is not a class number 0..k-1, or -1 for no label; "
            "np.unique(labels, return_inverse=True)[1] numbers the classes"
        )
    return array.astype(np.int64)


def _check_nodes(values: Any, n: int, what: str) -> IntArray:
    """Return distinct node indices in the order given; a boolean mask of length n gives those it selects."""
    array = as_array(values, what)
    if array.ndim != 1:
        raise ValueError(f"{what} must have 1 dimension, got shape {array.shape}")
    if array.dtype.kind == "b":
        if len(array) != n:
            raise ValueError(f"{what} is a mask of length {len(array)}, but the graph has {n} nodes")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be a boolean mask or node indices, got dtype {array.dtype}")
    outside = (array < 0) | (array >= n)
    if outside.any():
        raise ValueError(f"{what} holds {array[outside.argmax()]}, but nodes are 0..{n - 1}")
    nodes = array.astype(np.int64)
    times = np.bincount(nodes)
    if times.max() > 1:
        raise ValueError(f"{what} holds node {times.argmax()} more than once")
    return nodes


def _check_splits(splits: Any, n: int) -> tuple[Split, ...]:
    if isinstance(splits, Split | Mapping):
        raise ValueError("splits must be a sequence of splits; wrap a single one in a list: splits=[split]")
    if not isinstance(splits, Sequence) or isinstance(splits, str | bytes):
        raise TypeError(f"splits must be a sequence of splits, got {type(splits).__name__}")
    return tuple(as_split(split, n, f"splits[{k}]") for k, split in enumerate(splits))


def join_edges(edges: Any, weights: Any, n: int | None, duplicates: str, *, mirror: bool) -> Joined:
    """Merge repeated edges and build the matrix; with `mirror`, (i, j) and (j, i) are one edge."""
    check_choice(duplicates, "duplicates", (*_MERGE_RULES, "error"))
    pairs = _check_edges(edges)
    n = _check_n(n, pairs)
    w = None if weights is None else _check_weights(weights, len(pairs))
    if w is not None and not w.all():
        pairs, w = pairs[w > 0], w[w > 0]
    if duplicates == "count":
        w = None
    keys, w = merge_pairs(_pairs.pack(pairs[:, 0], pairs[:, 1], n, both=mirror), w, n, duplicates)
    return Joined(_pairs.rows_of(keys, w, n, both=mirror), symmetric=mirror, finite=w is None)


def merge_pairs(
    keys: _pairs.Keys, w: FloatArray | None, n: int, duplicates: str
) -> tuple[_pairs.Keys, FloatArray | None]:
    """The numbers of pairs, each once and sorted, and their weights; without weights all weigh 1."""
    if w is None:
        keys.sort()  # all weigh 1, so there is nothing to carry along
    else:
        keys, order = _pairs.in_order(keys, n)
        w = w[order]
    if duplicates == "error" or w is not None or duplicates in ("sum", "count"):
        new = _pairs.are_first(keys)
        if duplicates == "error" and not new.all():
            (i,), (j,) = _pairs.unpack(keys[[int(new.argmin())]], n)
            raise ValueError(
                f"edge ({i}, {j}) is given more than once; choose duplicates='max', 'min', 'sum', 'mean' or 'count'"
            )
        if not new.all():
            w = _merged(w, np.flatnonzero(new), len(keys), duplicates)
    return _pairs.without_repeats(keys), w


def _merged(weights: FloatArray | None, first: IntArray, m: int, duplicates: str) -> FloatArray:
    """The weights of edges whose rows follow each other, from the `first` one on; of m rows in all."""
    times = np.diff(first, append=m).astype(np.float64)
    if weights is None:
        return times
    with np.errstate(over="ignore"):  # an infinite sum is reported by Graph
        merged = _MERGE_RULES[duplicates].reduceat(weights, first)
    return np.asarray(merged / times if duplicates == "mean" else merged)


def _check_edges(edges: Any) -> NDArray[Any]:
    array = as_array(edges, "edges")
    if array.size == 0 and array.shape in ((0,), (0, 2)):
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        fix = "; transpose it: edges.T" if array.ndim == 2 and array.shape[0] == 2 else ""
        raise ValueError(f"edges must have shape (m, 2), one edge per row, got {array.shape}{fix}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"edges must hold integer node ids, got dtype {array.dtype}")
    if array.min() < 0:
        row = int((array < 0).any(axis=1).argmax())
        raise ValueError(f"edges[{row}] = {array[row].tolist()} has a negative node id; ids are 0..n-1")
    return array


def _check_n(n: int | None, pairs: NDArray[Any]) -> int:
    """Return the number of nodes, given or from the largest id; ids that are not positions stop here."""
    largest = int(pairs.max()) if len(pairs) else -1
    if n is None:
        if largest < 0:
            raise ValueError("there are no edges to take the number of nodes from; give n")
        if largest > 10**6 + 1000 * len(pairs):
            raise ValueError(
                f"the largest node id is {largest} with {len(pairs)} edges: ids must be positions 0..n-1; "
                "names, ids = np.unique(edges, return_inverse=True) makes them so, or give n if it is right"
            )
        n = largest + 1
    n = check_integer(n, "n")
    if not 1 <= n <= _LARGEST_N:
        raise ValueError(f"n must be between 1 and {_LARGEST_N}, got {n}")
    if largest >= n:
        row = int((pairs >= n).any(axis=1).argmax())
        raise ValueError(f"edges[{row}] = {pairs[row].tolist()} is outside the nodes 0..{n - 1}")
    return n


def _check_weights(weights: Any, m: int) -> FloatArray:
    array: FloatArray = _cast(_as_real(weights, "weights", ndim=1), np.float64)
    if len(array) != m:
        raise ValueError(f"weights has length {len(array)}, but there are {m} edges")
    good = np.isfinite(array) & (array >= 0)
    if not good.all():
        k = int(good.argmin())
        raise ValueError(f"weights[{k}] = {array[k]} must be finite and not negative")
    return array


# -------------------------------------------------------------------- other libraries


def _node_attribute(nx_graph: Any, name: str, *, required: bool = True) -> list[Any]:
    """Return the attribute of every node; None where it is missing, unless required."""
    lacking = [node for node, data in nx_graph.nodes(data=True) if name not in data]
    if lacking and (required or len(lacking) == len(nx_graph)):
        raise ValueError(f"node {lacking[0]!r} has no attribute {shown(name)}; set it, or do not ask for it (None)")
    return [data.get(name) for _, data in nx_graph.nodes(data=True)]


def _node_columns(nx_graph: Any, name: str) -> NDArray[Any]:
    array = as_array(_node_attribute(nx_graph, name), f"node attribute {name!r}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"node attribute {shown(name)} must hold numbers, got dtype {array.dtype}; None skips it")
    return array.reshape(len(array), -1)


def _names_of(nx_graph: Any, attribute: str, block: NDArray[Any]) -> list[str]:
    width = block.shape[1]
    stored = nx_graph.graph.get("feature_names", ()) if attribute == "features" else ()
    if len(stored) == width:
        return list(stored)
    return [str(attribute)] if width == 1 else [f"{attribute}[{k}]" for k in range(width)]


def _overridden(found: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    """Return what was found in another library's graph, with what the caller gives in its place."""
    if attributes.get("targets") is not None:
        found = {**found, "labels": None}
    elif "labels" in attributes:
        found = {**found, "targets": None}
    if "features" in attributes:  # the names found are those of other features
        found = {**found, "feature_names": None}
    return {**found, **attributes}


def _from_torch(tensor: Any) -> Any:
    """Return a NumPy array, or a SciPy array for a sparse tensor; None passes."""
    if not hasattr(tensor, "detach"):
        return tensor if tensor is None or issparse(tensor) else np.asarray(tensor)
    tensor = tensor.detach().cpu()
    if tensor.is_sparse or tensor.is_sparse_csr:
        coo = tensor.to_sparse_coo().coalesce()
        return coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))
    return tensor.numpy()


def labels_or_targets(values: Any, label_kind: str | None = None) -> dict[str, Any]:
    """Numbers of which some are not whole are targets, anything else labels; unless the kind is asked for."""
    fractions = values is not None and values.dtype.kind == "f" and bool(np.any(values % 1 > 0))
    numeric = values is not None and (fractions if label_kind is None else label_kind == "numbers")
    return {"labels": None, "targets": values} if numeric else {"labels": values, "targets": None}


def _to_torch(features: Any, torch: Any) -> Any:
    if not issparse(features):
        return torch.tensor(features)
    coo = features.tocoo()
    indices = torch.tensor(np.stack(coo.coords).astype(np.int64))
    return torch.sparse_coo_tensor(indices, torch.tensor(coo.data), coo.shape, is_coalesced=True, check_invariants=True)


def _edge_weights(data: Any) -> Any:
    """Return the weights of a PyG graph; edge features of several columns are not weights."""
    weights = _from_torch(getattr(data, "edge_weight", None))
    if weights is None:
        weights = _from_torch(getattr(data, "edge_attr", None))
        if weights is not None and weights.ndim == 2 and weights.shape[1] != 1:
            return None
    return single_column(weights)


def single_column(array: Any) -> Any:
    """Return the only column of a matrix as a vector; anything else as it is."""
    return array[:, 0] if array is not None and array.ndim == 2 and array.shape[1] == 1 else array


def mask_splits(masks: Mapping[str, Any]) -> list[Split]:
    """Return the splits that masks of shape (n,) or (n, k) describe; one of shape (n,) serves every split."""
    columns = {part: np.atleast_2d(mask.T).astype(bool) for part, mask in masks.items() if mask is not None}
    counts = {len(mask) for mask in columns.values()} - {1}
    if len(counts) > 1:
        raise ValueError(f"the masks hold different numbers of splits: {sorted(counts)}")
    repeats = max(counts, default=1) if columns else 0
    empty = np.empty((1, 0), dtype=np.int64)
    every = [columns.get(part, empty) for part in Split._fields]
    return [Split(*(mask[k if len(mask) > 1 else 0] for mask in every)) for k in range(repeats)]
