"""The channels of the paper: PEGFAN's types a, b and c, and FSGNN's three options (Section IV)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import copy
from functools import cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from pegfan import _defaults as default
from pegfan._arrays import IntArray
from pegfan._checks import check_choice, check_flag, check_integer, shown
from pegfan._limits import is_large
from pegfan.channels._kept import part_of
from pegfan.channels.channels import Channel, Channels, as_input
from pegfan.channels.factors import Hop, Projection, as_factor, renumbered
from pegfan.channels.inputs import training_nodes
from pegfan.channels.names import SIDES
from pegfan.channels.order import NodeOrder
from pegfan.channels.scaling import FeatureScale, PrincipalColumns, scale
from pegfan.framelets import FrameletSystem, Operator
from pegfan.framelets._signals import ClassMeans
from pegfan.graph import Graph, Split, check_graph
from pegfan.measures import adjusted_homophily, edge_homophily
from pegfan.trees import Hierarchy, canonical_order
from pegfan.trees.build import DIRECTIONS

HOMOPHILY_FROM = 0.5
"""regime="auto" calls a graph homophilous from this edge homophily on."""
ADJUSTED_FROM = 0.3
"""Likewise from this adjusted homophily on, where there are numeric targets."""

REGIMES = {"homophily": ("S~",), "heterophily": ("S",), "all": ("S", "S~")}
"""The hop matrices of a regime."""

WAYS = (*DIRECTIONS, "both", "words")
"""Which way hops lead along directed edges; trees and rows of the adjacency know the first three."""

HOPS_MOST = 10_000
"""Every hop is a channel."""
WORDS_MOST = 6
"""The most factors per word: twice as many channels with each."""


class ChannelKind(NamedTuple):
    """What a kind of channels has beside X: whether powers of S, and the power of S whose scales are channels."""

    powers: bool
    projected: int


KINDS = {
    "a": ChannelKind(False, 0),
    "b": ChannelKind(True, 0),
    "c": ChannelKind(True, 1),
    "as": ChannelKind(False, 1),
}
"""The kinds of `make_channels`."""

Direction = Literal["out", "in", "symmetric", "both", "words"]
Scaling = Literal["none", "l1", "columns", "principal"] | FeatureScale | PrincipalColumns


def make_channels(
    graph: Graph,
    system: FrameletSystem | None = None,
    kind: str = default.KIND,
    regime: str = default.REGIME,
    hops: int = default.HOPS,
    include_features: bool = True,
    hop: Any = None,
    direction: Direction = default.DIRECTION,
    scaling: Scaling = default.SCALING,
    split: Split | int | None = default.SPLIT,
    average: bool | None = None,
    weight: str | None = None,
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
    kind
        One of those in the table.
    regime : {"auto", "homophily", "heterophily", "all"}
        "auto" measures the edge homophily among training nodes, and takes homophily from 0.5 on (of numeric targets,
        the adjusted homophily, from 0.3 on); no other
        label is looked at. "all" takes S, and powers of S~ as further channels.
    hops : int
        r, the highest power of S; not used by "a" and "as".
    include_features : bool
        Whether X itself is a channel (the paper's synthetic tables leave it out).
    hop : str or matrix or LinearOperator, optional
        Another hop matrix than the regime's: a kind of `hop_matrix`, or your own n × n operator.
    direction : {"out", "in", "symmetric", "both", "words"}
        Which side of directed edges hops use; see `hop_matrix`. "both" is "out", and on directed graphs r hops
        against the edges as further channels, whatever the kind. "words" has, on directed graphs, all products of up
        to r factors Q or Qᵀ (`hop_matrix` "Q") in place of powers of S: 2 + 4 + ... + 2^r channels, whatever the
        regime; otherwise it is "out".
    scaling : {"none", "l1", "columns", "principal"} or FeatureScale or PrincipalColumns
        "l1" divides each row of X by the sum of its absolute values, as the paper does on real data; a row
        of zeros stays. "columns" brings columns to one scale; "principal" has X V in place of X, with the 32 leading
        right singular vectors V of X. A `FeatureScale` or `PrincipalColumns` does either as on another graph.
    split : Split or int, optional
        The split, or its place in ``graph.splits``, whose training nodes decide ``regime="auto"``; by default the
        first. None where no labels may be looked at.
    average : bool, optional
        Whether projections are averaged over nodes that look alike (the classes of
        `pegfan.trees.canonical_order`). By default where the tree is that of `pegfan.build_tree` and had to choose
        between such nodes.
    weight : str, optional
        Which of ``graph.edge_matrices`` the hops use in place of the adjacency.

    Returns
    -------
    Channels
        ``info`` says how they were chosen, how many nodes projections are ``averaged`` over, and how many stand in an
        ``arbitrary`` order, where there are any.

    Notes
    -----
    Channels of a renumbered graph, on its own tree, are the renumbered channels, bit for bit, where nothing is
    ``arbitrary``: everything is computed in the order of the tree's leaves.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], features=np.eye(4))
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> make_channels(graph, system, kind="c", regime="homophily", hops=2)
    Channels(X, S~ X, S~^2 X, F_0 S~ X, F_1 S~ X, F_2 S~ X)
    >>> make_channels(graph, system, kind="b", regime="all", hops=2)
    Channels(X, S X, S^2 X, F_0 X, F_1 X, F_2 X, S~ X, S~^2 X)
    """
    check_graph(graph)
    check_choice(kind, "kind", KINDS)
    with_hops, projected = KINDS[kind]
    if system is None:
        raise ValueError(
            f"kind {shown(kind)} projects on framelets: pass system=FrameletSystem(tree), or use make_fsgnn_channels"
        )
    if not isinstance(system, FrameletSystem):
        raise TypeError(f"system must be a FrameletSystem, got {type(system).__name__}")
    if system.n != graph.n:
        raise ValueError(f"the system is of a tree with {system.n} nodes, and the graph has {graph.n}")
    own = not (hop is None or isinstance(hop, str))  # it may tell nodes apart that look alike
    tree, classes = system.hierarchy, None
    if average is not None:
        check_flag(average, "average")
    if average or (average is None and not own and tree.info.get("tied", 0) > 0):
        colouring = canonical_order(graph)
        classes = colouring.classes if colouring.tied else None
    nodes = _order_of(graph, tree, None if own else classes)
    x, steps, against, letters, info = _parts(
        graph, nodes, regime, hops, hop, direction, scaling, split, with_hops, bool(projected), weight
    )
    powers = info["hops"] * with_hops
    means = None
    if classes is not None:
        means, info["averaged"] = ClassMeans(nodes.enter(classes), graph.n), colouring.tied
    if tree.info.get("arbitrary", 0) > 0:
        info["arbitrary"] = int(tree.info["arbitrary"])
    channels = [x] if check_flag(include_features, "include_features") else []
    channels += _words(letters, powers, x) if letters else _powers(steps[:1], powers, x)
    inside = system if nodes.order is None else system.permute(nodes.order)
    channels += [_channel([Projection(inside, j, means), *steps[:1] * projected], x) for j in range(system.K)]
    channels += _powers([] if letters else steps[1:], powers, x) + _powers(against, info["hops"], x)
    return Channels(channels, {"kind": kind, **info})


def make_fsgnn_channels(
    graph: Graph,
    hops: int = default.HOPS,
    regime: str = default.REGIME,
    include_features: bool = True,
    hop: Any = None,
    direction: Direction = default.DIRECTION,
    scaling: Scaling = default.SCALING,
    split: Split | int | None = default.SPLIT,
    weight: str | None = None,
) -> Channels:
    """Make the channels of FSGNN, by one of its three options (the remark on FSGNN in Section IV).

    ============= =====================================
    regime        channels
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
    regime, include_features, hop, direction, scaling, split, weight
        As in `make_channels`.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3), directed=True)
    >>> make_fsgnn_channels(graph, hops=2, regime="all")
    Channels(X, S X, S~ X, S^2 X, S~^2 X)
    >>> make_fsgnn_channels(graph, hops=2, regime="heterophily", direction="both")
    Channels(X, S X, S^2 X, S_in X, S_in^2 X)
    >>> make_fsgnn_channels(graph, hops=2, direction="words")
    Channels(X, Q X, Q_in X, Q^2 X, Q Q_in X, Q_in Q X, Q_in^2 X)
    """
    check_graph(graph)
    colouring = canonical_order(graph)
    own = not (hop is None or isinstance(hop, str))
    nodes = _order_of(graph, None, None if own or not colouring.tied else colouring.classes)
    x, steps, against, letters, info = _parts(
        graph, nodes, regime, hops, hop, direction, scaling, split, True, False, weight
    )
    channels = [x] if check_flag(include_features, "include_features") else []
    channels += _words(letters, info["hops"], x) + _powers(steps, info["hops"], x) + _powers(against, info["hops"], x)
    if colouring.arbitrary:
        info["arbitrary"] = colouring.arbitrary
    return Channels(channels, info)


def _order_of(graph: Graph, tree: Hierarchy | None, classes: IntArray | None) -> NodeOrder:
    """The order in which channels are computed: that of the leaves, or without a tree the canonical one.

    Large graphs, all of whose nodes differ, have one order whatever the tree is, so that all channels share their hops.
    """
    if tree is not None and not is_large(graph.n):
        return NodeOrder(tree.order, classes)
    colouring = canonical_order(graph)
    order = tree.order if tree is not None and (colouring.tied or colouring.arbitrary) else colouring.order
    key = ("order", hashlib.sha256(order.tobytes()).digest(), classes is None)
    nodes: NodeOrder = part_of(graph, key, lambda: NodeOrder(order, classes))
    return nodes


class _Parts(NamedTuple):
    """X, hop matrices, those against the edges, those that words are made of, and what was chosen."""

    x: Channel
    steps: list[Operator]
    against: list[Operator]
    letters: list[Operator]
    info: dict[str, Any]


def _parts(
    graph: Graph,
    nodes: NodeOrder,
    regime: str,
    hops: int,
    hop: Any,
    direction: str,
    scaling: Any,
    split: Split | int | None,
    with_hops: bool,
    projected: bool,
    weight: str | None,
) -> _Parts:
    check_choice(regime, "regime", (*REGIMES, "auto"))
    check_choice(direction, "direction", WAYS)
    hops = check_integer(hops, "hops", least=0, most=HOPS_MOST)
    if graph.features is None:
        raise ValueError(
            "the graph has no features; give them with graph.replace(features=...), for example "
            "pegfan.channels.structural_features(graph), or build Channels of your own inputs"
        )
    named = {FeatureScale: "columns", PrincipalColumns: "principal"}.get(type(scaling), scaling)
    if isinstance(scaling, str) and scaling == "principal":
        scaling = PrincipalColumns.of_graph(graph)
    make = lambda: nodes.enter(as_input(scale(graph.features, scaling), "X"))  # noqa: E731
    x = Channel.inside((), part_of(graph, (nodes, "X", scaling), make), nodes)
    several = graph.directed and hops > 0 and (hop is None or isinstance(hop, str))
    both, words = several and direction == "both", several and direction == "words" and with_hops
    if words and hops > WORDS_MOST:
        raise ValueError(f"words of up to {hops} steps are {2 ** (hops + 1) - 2:,} channels: hops <= {WORDS_MOST}")
    info: dict[str, Any] = {
        "regime": regime,
        "hops": hops * (with_hops or both),
        "direction": direction,
        "scaling": named,
    }
    if not (info["hops"] or projected):
        return _Parts(x, [], [], [], info)
    side = direction if direction in DIRECTIONS else "out"
    edges = cache(lambda: nodes.edges(graph))

    def hop_of(kind: Any, way: str) -> Operator:
        if not isinstance(kind, str):
            return _hop_of_ones_own(graph, kind, nodes)
        key = (nodes, "hop", kind, way, weight)
        found: Operator = part_of(graph, key, lambda: Hop(edges().weighted(weight), kind, way))
        return found

    letters = [hop_of(hop or "Q", way) for way in ("out", "in")] if words else []
    if words and not projected:
        wanted: Sequence[Any] = []
    elif hop is None:
        info["regime"], measured = find_regime(graph, regime, split)
        info.update(measured)
        wanted = REGIMES[info["regime"]]
    else:
        wanted = [hop]
    steps = [hop_of(one, side) for one in wanted]
    against = [hop_of(one, "in") for one in wanted] if both else []
    if weight is not None:
        info["weight"] = weight
    names = dict.fromkeys(step.name for step in (*letters, *steps, *against))
    return _Parts(x, steps, against, letters, info | {"hop": ", ".join(names)})


def _powers(steps: Sequence[Operator], hops: int, x: Channel) -> list[Channel]:
    """S X, S~ X, S^2 X, S~^2 X, ... for hop matrices S, S~, ..."""
    return [_channel([step] * power, x) for power in range(1, hops + 1) for step in steps]


def _words(letters: Sequence[Operator], hops: int, x: Channel) -> list[Channel]:
    """Q X, Q_in X, Q^2 X, Q Q_in X, Q_in Q X, Q_in^2 X, ... for the steps Q and Q_in."""
    return [_channel(word, x) for length in range(1, hops + 1) for word in product(letters, repeat=length)]


def _channel(factors: Sequence[Operator], x: Channel) -> Channel:
    """P X, named after its factors."""
    return Channel.inside(factors, x.signal, x.nodes)


def edge_kind_channels(graph: Graph, x: Channel, hop: str, direction: str) -> list[Channel]:
    """One and two hops along every kind of edges alone, on each side of them that `direction` names.

    Two hops along a kind that joins nodes to things, such as accounts to devices, lead to the nodes that share one.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> path, short = np.diag([1.0, 1.0], 1), np.diag([1.0], 2)
    >>> matrices = {"calls": path + path.T, "visits": short + short.T}
    >>> graph = pf.Graph(sum(matrices.values()), edge_matrices=matrices, edge_kinds=["calls", "visits"])
    >>> x = Channel("X", None, np.eye(3), "X")
    >>> [channel.name for channel in edge_kind_channels(graph, x, "S", "out")]
    ['S[calls] X', 'S[calls]^2 X', 'S[visits] X', 'S[visits]^2 X']
    """
    if not graph.edge_kinds:
        raise ValueError("the graph has one kind of edges; read several tables of edges for hops along each")
    one = direction if direction in DIRECTIONS else "out"
    sides = ("out", "in") if direction not in DIRECTIONS and graph.directed else (one,)
    found, edges = [], x.nodes.edges(graph)
    for kind in graph.edge_kinds:
        for side in sides:
            step = Hop(edges, hop, side, kind)
            words = f"along {kind!r} alone" + SIDES.get(side, "") * graph.directed
            for power, number in ((1, "one hop"), (2, "two hops")):
                factors = [step] * power
                found.append(Channel.inside(factors, x.signal, x.nodes, what=f"{number} {words}"))
    return found


def find_regime(graph: Graph, regime: str, split: Split | int | None) -> tuple[str, dict[str, float]]:
    """The regime, and the homophily that decided it."""
    if regime != "auto":
        return regime, {}
    if graph.truth is None:
        raise ValueError("regime='auto' measures homophily and the graph has no labels; name the regime")
    if split is None or (isinstance(split, int) and not graph.splits):
        why = "no split is given" if split is None else f"there is no split {split}: the graph has no splits"
        raise ValueError(f"regime='auto' looks at training labels only, and {why}; pass a Split, or name the regime")
    numeric, training = graph.targets is not None, graph.subgraph(training_nodes(graph, split))
    homophily = adjusted_homophily(training) if numeric else edge_homophily(training)
    if np.isnan(homophily):
        raise ValueError("no edge joins two labelled training nodes, so regime='auto' cannot decide; name the regime")
    decided_by = {"split": int(split)} if isinstance(split, (int, np.integer)) else {}
    regime = "homophily" if homophily >= (ADJUSTED_FROM if numeric else HOMOPHILY_FROM) else "heterophily"
    return regime, {"adjusted_homophily" if numeric else "edge_homophily": homophily, **decided_by}


def _hop_of_ones_own(graph: Graph, hop: Any, nodes: NodeOrder) -> Operator:
    factor = copy(as_factor(hop, "hop"))  # the user's own may be something other than a hop elsewhere
    if factor.shape != (graph.n, graph.n):
        raise ValueError(
            f"hop is {factor.shape[0]}×{factor.shape[1]}; a graph of {graph.n} nodes needs {graph.n}×{graph.n}"
        )
    factor.hop = factor.hop or factor.name
    return renumbered(factor, nodes.order, nodes.order)
