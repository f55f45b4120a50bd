"""Graphs of other libraries, made ours, and ours made theirs: the methods of :class:`~pegfan.Graph` that do so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_matrix, issparse

from pegfan._checks import as_array, check_choice, check_kind, check_list, kind_of, shown
from pegfan._extras import need
from pegfan.graph.edges import join_edges
from pegfan.graph.splits import Split, mask_splits

if TYPE_CHECKING:
    import networkx
    import pygsp
    import torch_geometric

    from pegfan.graph.graph import Graph


def of(cls: type[Graph], /, value: Any, truth: Literal["labels", "targets"] | None = None) -> Graph:
    """The graph that anything is or stands for: what functions take in place of a graph, so that nobody converts.

    Parameters
    ----------
    value
        A `Graph`, which is returned as it is; a PyGSP or NetworkX graph, or PyG data; an adjacency matrix, sparse or
        not; or a list of edges, two node numbers each. A square array is an adjacency matrix.
    truth : {"labels", "targets"}, optional
        What is to be predicted. Features, splits and these are then read as well, of a NetworkX graph from the
        attributes ``"features"`` or ``"x"`` and ``"label"``, ``"y"`` or ``"target"``, and a tuple is ``(adjacency, X)``
        or ``(adjacency, X, y)``. By default only edges, weights and positions are.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from pegfan import Graph
    >>> Graph.of(nx.cycle_graph(5)), Graph.of([[0, 1], [1, 2], [2, 3]]), Graph.of(np.ones((2, 2)))
    (Graph(n=5, edges=5, undirected), Graph(n=4, edges=3, undirected), Graph(n=2, edges=3, undirected))
    >>> Graph.of((np.ones((2, 2)), np.eye(2), [0, 1]), truth="labels")
    Graph(n=2, edges=3, undirected, features=2, classes=2)
    """
    if isinstance(value, cls):
        return value
    if truth is not None:
        check_choice(truth, "truth", ("labels", "targets"))
        learnable = _learnable(cls, value, truth)
        if learnable is not None:
            return learnable
    if hasattr(value, "W") and hasattr(value, "is_directed"):
        return from_pygsp(cls, value) if truth else from_pygsp(cls, value, features=None)
    if hasattr(value, "is_multigraph") and hasattr(value, "nodes"):
        return from_networkx(cls, value)
    if getattr(value, "edge_index", None) is not None:
        return from_pyg(cls, value, features=None, labels=None, splits=())
    if isinstance(value, str) or not (isinstance(value, Sequence) or issparse(value) or hasattr(value, "__array__")):
        more = ", a tuple (adjacency, X, y)" if truth else ""
        raise TypeError(
            f"a graph is a pegfan.Graph, a PyGSP or NetworkX graph, PyG data{more}, an adjacency matrix or a list of "
            f"edges; got {kind_of(value)}"
        )
    array = value if issparse(value) else as_array(value, "the graph")
    edges = not issparse(array) and array.ndim == 2 and array.shape[1] == 2 and len(array) != 2
    return cls.from_edges(array) if edges else cls(array)


def _learnable(cls: type[Graph], value: Any, truth: str) -> Graph | None:
    """The graph with its features and what is to be predicted, for what can hold them; None for anything else."""
    if isinstance(value, tuple):
        if len(value) not in (2, 3):
            raise ValueError(f"a tuple must be (adjacency, X) or (adjacency, X, y), got {len(value)} entries")
        predicted: dict[str, Any] = {truth: value[2]} if len(value) == 3 else {}
        return cls(value[0], features=value[1], **predicted)
    if getattr(value, "edge_index", None) is not None:
        graph = from_pyg(cls, value)
        if truth == "targets" and graph.labels is not None:  # numbers all of which happen to be whole
            return graph.replace(targets=np.where(graph.labelled, graph.labels, np.nan))
        return graph
    if not (hasattr(value, "is_multigraph") and hasattr(value, "nodes")):
        return None
    present = {name for _, data in value.nodes(data=True) for name in data}
    usual = {"features": ("features", "x"), "labels": ("label", "y") if truth == "labels" else ()}
    named: dict[str, Any] = {
        key: next((name for name in names if name in present), None) for key, names in usual.items()
    }
    if truth == "targets" and "target" in present:
        named["targets"] = [data.get("target") for _, data in value.nodes(data=True)]
    return from_networkx(cls, value, **named)


# ---------------------------------------------------------------------------- NetworkX


def from_networkx(
    cls: type[Graph],
    /,
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
        after them, as ``"age"`` or ``"where[0]"``; those of `to_networkx` keep their names.
    labels : str, optional
        Node attribute with the label; nodes without it, or with None, are unlabelled.
    positions : str, optional
        Node attribute with the positions. The default is used only if the graph has it; None ignores
        it.
    duplicates : {"max", "min", "sum", "mean", "count", "error"}
        How parallel edges of a multigraph are merged.
    **attributes
        Of :class:`~pegfan.Graph`, in place of what the graph holds.

    Examples
    --------
    >>> import networkx as nx
    >>> from pegfan import Graph
    >>> g = Graph.from_networkx(nx.path_graph(["x", "y", "z"]))
    >>> g, g.node_names.tolist()
    (Graph(n=3, edges=2, undirected), ['x', 'y', 'z'])
    """
    if not (hasattr(nx_graph, "is_multigraph") and hasattr(nx_graph, "nodes")):
        raise TypeError(f"from_networkx needs a NetworkX graph, got {type(nx_graph).__name__}")
    for name, attribute in (("weight", weight), ("labels", labels), ("positions", positions)):
        if attribute is not None:
            check_kind(attribute, name, str)
    nodes = list(nx_graph.nodes)
    if not nodes:
        raise ValueError("the NetworkX graph has no nodes; a Graph needs at least one")
    if positions == "pos" and not any("pos" in data for _, data in nx_graph.nodes(data=True)):
        positions = None
    arguments: dict[str, Any] = {"node_names": nodes}
    names = [features] if isinstance(features, str) else () if features is None else features
    if columns := check_list(names, "features", str):
        blocks = {name: _node_columns(nx_graph, name) for name in columns}
        arguments["features"] = np.hstack(list(blocks.values()))
        arguments["feature_names"] = [
            name for key, block in blocks.items() for name in _column_names(nx_graph, key, block)
        ]
    if labels is not None:
        arguments["labels"] = _node_attribute(nx_graph, labels, required=False)
    if positions is not None:
        arguments["positions"] = _node_columns(nx_graph, positions)
    index = {node: i for i, node in enumerate(nodes)}
    arcs = list(nx_graph.edges(data=weight or False, default=1.0))
    edges = np.array([(index[u], index[v]) for u, v, *_ in arcs], dtype=np.int64).reshape(-1, 2)
    weights = [value for _, _, value in arcs] if weight else None
    directed = bool(nx_graph.is_directed())
    adjacency = join_edges(edges, weights, len(nodes), duplicates, mirror=not directed)
    return cls(adjacency, directed=directed, **_overridden(arguments, attributes))


def to_networkx(graph: Graph) -> networkx.Graph:
    """Return a ``networkx.Graph`` or ``DiGraph`` with edge attribute ``"weight"``.

    Nodes are keyed by `node_names`, or else by 0..n-1. They carry ``"label"`` (the class name if there
    is one, else the class number, None if unlabelled) or ``"target"`` (a number, None if it is not known),
    ``"features"`` (the row, if features are dense) and ``"pos"``. The names of features are in
    ``.graph["feature_names"]``.

    Examples
    --------
    >>> from pegfan import Graph
    >>> print(Graph.from_edges([[0, 1], [1, 2]]).to_networkx())
    Graph with 3 nodes and 2 edges
    """
    nx = need("networkx", "graphs", "this conversion")
    result = nx.DiGraph() if graph.directed else nx.Graph()
    keys = graph.ids.tolist()
    result.add_nodes_from(keys)
    columns: dict[str, list[Any]] = {}
    if graph.labels is not None:
        names = graph.classes.tolist()
        columns["label"] = [None if k < 0 else names[k] for k in graph.labels.tolist()]
    if graph.targets is not None:
        columns["target"] = [None if np.isnan(value) else value for value in graph.targets.tolist()]
    if graph.features is not None and not issparse(graph.features):
        columns["features"] = list(graph.features)
        if graph.feature_names is not None:
            result.graph["feature_names"] = list(graph.feature_names)
    if graph.positions is not None:
        columns["pos"] = [tuple(row) for row in graph.positions.tolist()]
    for attribute, values in columns.items():
        nx.set_node_attributes(result, dict(zip(keys, values, strict=True)), attribute)
    edges, weights = graph.edges()
    result.add_weighted_edges_from(
        (keys[i], keys[j], w) for (i, j), w in zip(edges.tolist(), weights.tolist(), strict=True)
    )
    return result


# --------------------------------------------------------------------------------- PyG


def from_pyg(
    cls: type[Graph], /, data: Any, *, directed: bool | None = None, duplicates: str = "max", **attributes: Any
) -> Graph:
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
        Of :class:`~pegfan.Graph`, in place of what `data` holds (``labels=None`` ignores ``y``).

    Examples
    --------
    >>> from pegfan import Graph
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
    arguments = {
        "features": _from_torch(getattr(data, "x", None)),
        "feature_names": getattr(data, "feature_names", None),
        **labels_or_targets(single_column(_from_torch(getattr(data, "y", None)))),
        "splits": mask_splits({part: _from_torch(getattr(data, f"{part}_mask", None)) for part in Split._fields}),
        "positions": _from_torch(getattr(data, "pos", None)),
    }
    adjacency = join_edges(pairs.T, _edge_weights(data), n, duplicates, mirror=False)
    return cls(adjacency, directed=directed, **_overridden(arguments, attributes))


def to_pyg(graph: Graph) -> torch_geometric.data.Data:
    """Return a ``torch_geometric.data.Data``: the inverse of `from_pyg`.

    ``edge_index`` holds both directions of an undirected edge; ``edge_weight`` is there if any weight
    is not 1. Types are kept, so features may be float64. One split gives masks of shape (n,), more give
    (n, k). The names of features are in ``feature_names``. Those of nodes and classes, and the metric, have no
    place in ``Data``; pass them to `from_pyg` again.

    Examples
    --------
    >>> from pegfan import Graph
    >>> Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 0]).to_pyg()
    Data(edge_index=[2, 4], y=[3], num_nodes=3)
    """
    torch, pyg = (need(name, "torch", "this conversion") for name in ("torch", "torch_geometric.data"))
    arcs = graph.adjacency.tocoo()
    fields: dict[str, Any] = {"edge_index": torch.tensor(np.stack(arcs.coords).astype(np.int64))}
    if np.any(arcs.data != 1):
        fields["edge_weight"] = torch.tensor(arcs.data)
    if graph.features is not None:
        fields["x"] = _to_torch(graph.features, torch)
    if graph.feature_names is not None:
        fields["feature_names"] = list(graph.feature_names)
    if graph.truth is not None:
        fields["y"] = torch.tensor(graph.truth)
    if graph.positions is not None:
        fields["pos"] = torch.tensor(graph.positions)
    for part in Split._fields if graph.splits else ():
        mask = np.zeros((graph.n, len(graph.splits)), dtype=bool)
        for k, split in enumerate(graph.splits):
            mask[getattr(split, part), k] = True
        fields[f"{part}_mask"] = torch.tensor(mask[:, 0] if len(graph.splits) == 1 else mask)
    return pyg.Data(**fields, num_nodes=graph.n)


# ------------------------------------------------------------------------------- PyGSP


def from_pygsp(cls: type[Graph], /, pygsp_graph: Any, **attributes: Any) -> Graph:
    """Make a graph from a PyGSP graph: its ``W``, and its ``coords`` if they have two or three columns.

    Its ``signals``, numbers under a name, become the features; a signal of several columns is named as ``"x[0]"``,
    ``"x[1]"``, .... Features have no gaps: signals with NaN are for ``pegfan.denoise`` and ``pegfan.inpaint``, and
    here ``features=None`` leaves signals out.

    Examples
    --------
    >>> import pygsp
    >>> from pegfan import Graph
    >>> Graph.from_pygsp(pygsp.graphs.Ring(5))
    Graph(n=5, edges=5, undirected)
    """
    if not (hasattr(pygsp_graph, "W") and hasattr(pygsp_graph, "is_directed")):
        raise TypeError(f"from_pygsp needs a PyGSP graph, got {type(pygsp_graph).__name__}")
    coords = np.asarray(getattr(pygsp_graph, "coords", ()))
    drawable = coords.ndim == 2 and coords.shape[1] in (2, 3)
    arguments: dict[str, Any] = {
        "directed": bool(pygsp_graph.is_directed()),
        "positions": coords if drawable else None,
    }
    signals = {} if "features" in attributes else getattr(pygsp_graph, "signals", {})
    blocks = {str(name): as_array(signal, f"signal {name!r}") for name, signal in signals.items()}
    for name, block in blocks.items():
        if block.dtype.kind == "f" and not np.isfinite(block).all():
            raise ValueError(
                f"signal {shown(name)} has a value that is not finite, and features have no gaps; "
                "pass features=None to leave signals out"
            )
    if blocks:
        arguments["features"] = np.column_stack(list(blocks.values()))
        arguments["feature_names"] = [
            name if block.ndim == 1 else f"{name}[{k}]"
            for name, block in blocks.items()
            for k in range(1 if block.ndim == 1 else block.shape[1])
        ]
    return cls(pygsp_graph.W, **_overridden(arguments, attributes))


def to_pygsp(graph: Graph) -> pygsp.graphs.Graph:
    """Return a ``pygsp.graphs.Graph`` with these weights, and the positions as ``coords``.

    Features that have names become ``signals``, unless they are sparse.

    Examples
    --------
    >>> from pegfan import Graph
    >>> Graph.from_edges([[0, 1], [1, 2]]).to_pygsp()
    Graph(n_vertices=3, n_edges=2)
    """
    pygsp = need("pygsp", "graphs", "this conversion")
    coords = None if graph.positions is None else graph.positions.copy()
    result = pygsp.graphs.Graph(csr_matrix(graph.adjacency.copy()), coords=coords)
    for k, name in enumerate(graph.feature_names or ()) if not issparse(graph.features) else ():
        result.set_signal(graph.features[:, k].copy(), name)
    return result


# --------------------------------------------------------------- parts of these graphs


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


def _column_names(nx_graph: Any, attribute: str, block: NDArray[Any]) -> list[str]:
    width = block.shape[1]
    stored = nx_graph.graph.get("feature_names", ()) if attribute == "features" else ()
    if len(stored) == width:
        return list(stored)
    return [str(attribute)] if width == 1 else [f"{attribute}[{k}]" for k in range(width)]


def _overridden(arguments: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    """What another library's graph is made of, with the caller's attributes in place of its own."""
    if attributes.get("targets") is not None:
        arguments = {**arguments, "labels": None}
    elif "labels" in attributes:
        arguments = {**arguments, "targets": None}
    if "features" in attributes:  # names are those of the graph's own features
        arguments = {**arguments, "feature_names": None}
    return {**arguments, **attributes}


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
