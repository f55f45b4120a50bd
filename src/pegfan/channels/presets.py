"""The channels of the paper: PEGFAN's types a, b and c, and FSGNN's three options (Section IV)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pegfan._rows import l1_rows
from pegfan.channels.channels import Channel, Channels, product_name
from pegfan.channels.factors import Matrix, Projection, as_factor
from pegfan.channels.hops import DIRECTIONS, choose, hop_matrix, hop_name
from pegfan.channels.inputs import training_nodes
from pegfan.framelets import FrameletSystem, Operator
from pegfan.graph import Graph, Split
from pegfan.measures import edge_homophily

__all__ = ["make_channels", "make_fsgnn_channels"]

HOMOPHILY_FROM = 0.5
"""regime="auto" calls a graph homophilous from this edge homophily on."""

_REGIMES = {"homophily": "S~", "heterophily": "S"}
_OPTIONS = {"homophily": ("S~",), "heterophily": ("S",), "all": ("S", "S~")}

_TYPES = {"a": (False, 0), "b": (True, 0), "c": (True, 1), "as": (False, 1)}
"""Whether powers of S are channels, and the power of S that is projected."""


def make_channels(
    graph: Graph,
    system: FrameletSystem | None = None,
    kind: Literal["a", "b", "c", "as"] = "c",
    regime: Literal["homophily", "heterophily", "auto"] = "auto",
    hops: int = 3,
    include_features: bool = True,
    hop: Any = None,
    direction: Literal["out", "in", "symmetric"] = "out",
    normalize_features: Literal[False, "l1"] = False,
    split: Split | int | None = None,
) -> Channels:
    """Make the channels of PEGFAN (Section IV of the paper), in the paper's order.

    ====== ===============================================
    kind   channels
    ====== ===============================================
    "a"    X, F_0 X, ..., F_(K−1) X
    "b"    X, S X, ..., S^r X, F_0 X, ..., F_(K−1) X
    "c"    X, S X, ..., S^r X, F_0 S X, ..., F_(K−1) S X
    "as"   X, F_0 S X, ..., F_(K−1) S X
    ====== ===============================================

    S stands for the regime's hop matrix: "S" for heterophily, "S~" for homophily, as the authors' code and
    corrigendum have it (the text writes A and Ã). "as" is what two cells of the paper's Table III used.

    Parameters
    ----------
    graph : Graph
        With features.
    system : FrameletSystem
        On a tree of this graph's nodes.
    kind : {"a", "b", "c", "as"}
    regime : {"homophily", "heterophily", "auto"}
        "auto" measures the edge homophily among training nodes, and takes homophily from 0.5 on. No other
        label is looked at.
    hops : int
        r, the highest power of S; not used by "a" and "as".
    include_features : bool
        Whether X itself is a channel (the paper's synthetic tables leave it out).
    hop : str or matrix or LinearOperator, optional
        Another hop matrix than the regime's: a kind of `hop_matrix`, or your own n × n operator.
    direction : {"out", "in", "symmetric"}
        Which side of directed edges hops use; see `hop_matrix`.
    normalize_features : False or "l1"
        "l1" divides each row of X by the sum of its absolute values, as the paper does on real data; a row
        of zeros stays.
    split : Split or int, optional
        The split, or its place in ``graph.splits``, whose training nodes decide ``regime="auto"``.

    Returns
    -------
    Channels
        ``info`` says how they were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], features=np.eye(4))
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> make_channels(graph, system, kind="c", regime="homophily", hops=2)
    Channels(X, S~ X, S~^2 X, F_0 S~ X, F_1 S~ X, F_2 S~ X)
    """
    choose(kind, _TYPES, "kind")
    choose(regime, (*_REGIMES, "auto"), "regime")
    choose(direction, DIRECTIONS, "direction")
    with_hops, projected = _TYPES[kind]
    powers = _as_count(hops) * with_hops
    if system is None:
        raise ValueError(
            f"kind {kind!r} projects on framelets: pass system=FrameletSystem(tree), or use make_fsgnn_channels without"
        )
    if not isinstance(system, FrameletSystem):
        raise TypeError(f"system must be a FrameletSystem, got {type(system).__name__}")
    if system.n != graph.n:
        raise ValueError(f"the system is of a tree with {system.n} nodes, and the graph has {graph.n}")
    x = Channel("X", None, _features(graph, normalize_features), "X")
    info: dict[str, Any] = {"kind": kind, "regime": regime, "normalize_features": normalize_features}
    steps: list[Operator] = []
    if powers or projected:
        if hop is None:
            info["regime"], measured = _find_regime(graph, regime, split)
            info.update(measured)
            hop = _REGIMES[info["regime"]]
        steps = [_hop_factor(graph, hop, direction)]
        info.update(hop=steps[0].name, hops=powers)
        if isinstance(hop, str):
            info["direction"] = direction

    channels = [x] if include_features else []
    channels += [_channel(steps * power, x) for power in range(1, powers + 1)]
    channels += [_channel([Projection(system, j), *steps * projected], x) for j in range(system.K)]
    return Channels(channels, info)


def make_fsgnn_channels(
    graph: Graph,
    hops: int = 3,
    option: Literal["homophily", "heterophily", "all"] = "all",
    include_features: bool = True,
    direction: Literal["out", "in", "symmetric"] = "out",
    normalize_features: Literal[False, "l1"] = False,
) -> Channels:
    """Make the channels of FSGNN, by one of its three options (the remark on FSGNN in Section IV).

    ============= =====================================
    option        channels
    ============= =====================================
    "homophily"   X, S~ X, ..., S~^r X
    "heterophily" X, S X, ..., S^r X
    "all"         X, S X, S~ X, ..., S^r X, S~^r X
    ============= =====================================

    Parameters
    ----------
    graph : Graph
        With features.
    hops : int
        r, the highest power.
    option : {"homophily", "heterophily", "all"}
    include_features, direction, normalize_features
        As in `make_channels`.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3))
    >>> make_fsgnn_channels(graph, hops=2)
    Channels(X, S X, S~ X, S^2 X, S~^2 X)
    """
    choose(option, _OPTIONS, "option")
    hops = _as_count(hops)
    x = Channel("X", None, _features(graph, normalize_features), "X")
    steps = [_hop_factor(graph, kind, direction) for kind in _OPTIONS[option]]
    channels = [x] if include_features else []
    channels += [_channel([step] * power, x) for power in range(1, hops + 1) for step in steps]
    info = {"option": option, "direction": direction, "hops": hops, "normalize_features": normalize_features}
    return Channels(channels, info)


def _channel(factors: Sequence[Operator], x: Channel) -> Channel:
    """P X, named after its factors."""
    return Channel(f"{product_name(factors)} X", factors, x)


def _find_regime(graph: Graph, regime: str, split: Split | int | None) -> tuple[str, dict[str, float]]:
    """The regime, and the homophily that decided it."""
    if regime != "auto":
        return regime, {}
    if graph.labels is None:
        raise ValueError("regime='auto' measures homophily and the graph has no labels; name the regime")
    if split is None:
        raise ValueError(
            "regime='auto' looks at training labels only: pass split= (a Split, or its place in graph.splits), "
            "or name the regime"
        )
    homophily = edge_homophily(graph.subgraph(training_nodes(graph, split)))
    if np.isnan(homophily):
        raise ValueError("no edge joins two labelled training nodes, so regime='auto' cannot decide; name the regime")
    return "homophily" if homophily >= HOMOPHILY_FROM else "heterophily", {"edge_homophily": homophily}


def _hop_factor(graph: Graph, hop: Any, direction: str) -> Operator:
    if isinstance(hop, str):
        return Matrix(hop_name(hop, direction), hop_matrix(graph, hop, direction))
    factor = as_factor(hop, "hop")
    if factor.shape != (graph.n, graph.n):
        raise ValueError(
            f"hop is {factor.shape[0]}×{factor.shape[1]}; a graph of {graph.n} nodes needs {graph.n}×{graph.n}"
        )
    return factor


def _features(graph: Graph, normalize: Any) -> Any:
    if graph.features is None:
        raise ValueError(
            "the graph has no features; give them with graph.replace(features=...), for example "
            "pegfan.channels.structural_features(graph), or build Channels of your own inputs"
        )
    x = graph.features
    if normalize is False:
        return x
    if normalize != "l1":
        raise ValueError(f"normalize_features must be False or 'l1', got {normalize!r}")
    return l1_rows(x)


def _as_count(hops: Any) -> int:
    if isinstance(hops, bool) or not isinstance(hops, int | np.integer):
        raise TypeError(f"hops must be an integer, got {hops!r}")
    if hops < 0:
        raise ValueError(f"hops must be 0 or more, got {hops}")
    return int(hops)
