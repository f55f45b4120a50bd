r"""Reasons: which columns, neighbours and channels carried a node's score, in shares that add up exactly.

The score of a node for a class t is the log-odds of its probability, log p_t − log(1 − p_t), where p is the mean over
the model's members, as predictions have it. It is compared with the score of the *average node*, every channel of which
is the mean x̄_k of the channel's rows. The difference is taken apart by writing every step of the network, exactly, as a
linear map of the difference of what goes into it. With bars for the average node and Δ for differences to it:

* logarithm of a sum, log Σ_j e^(z_j): Σ_j w_j Δz_j with w_j = L(e^(z_j), e^(z̄_j)) / L(Σ e^z, Σ e^z̄), where
  L(a, b) = (a − b) / (log a − log b) is the logarithmic mean. It serves the softmax and the mean over members;
* ReLU: its chord, [max(a, 0) − max(ā, 0)] / (a − ā), times Δa;
* rows of norm one, n = h / r with r = ‖h‖: Δn = [2 Δh − (n + n̄) Δr] / (r + r̄), and Δr = (h + h̄)·Δh / (r + r̄);
* linear layers as they are.

The score of a numeric prediction is the number itself, the mean over the members; it needs the last three only, and its
parts are in the units of the targets.

So every channel k has a vector g_k with Δscore = Σ_k g_k·(x_k − x̄_k) W_k: no part is left over, none counts twice. For
two classes, one network and one hidden layer without norms, these are the integrated gradients from the average node.
Channels of features are X_k = P_k X, so that, with μ the mean of the rows of X,

    x_k[i] − x̄_k = Σ_j P_k[i, j] (X[j] − μ) + (Σ_j P_k[i, j] μ − x̄_k),

which splits the share of a channel among nodes j and columns; the last part is due to how many links the node has and
where, not to any single one. Where channels are made of principal columns X V, W_k becomes V W_k, so that shares are
those of the feature columns themselves.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import as_array, check_integer, check_kind, check_list, shown
from pegfan._limits import is_large
from pegfan.channels import Channel, Channels, hop_matrix
from pegfan.channels.channels import as_input, node_indices
from pegfan.channels.names import describe
from pegfan.channels.order import NodeOrder
from pegfan.fitted import Fitted, Trained, TrainedNetwork
from pegfan.graph import Graph, check_graph
from pegfan.running import one_thread
from pegfan.training import Network
from pegfan.training.boosting import Boosted

__all__ = [
    "ChannelShare",
    "ColumnShare",
    "Explainer",
    "Explanation",
    "NodeShare",
    "Reason",
    "column_names",
    "find_nodes",
]

LINKS = "number and place of links"
JOINED = "who it is joined to"
TOGETHER = "what its neighbours have in common"
LOOP = "its link to itself"
OTHERS, OTHER_NODES = "other columns", "other nodes"
VALUE = "value"
"""What stands in the place of a class where numbers are predicted."""
_DEGREES = ("links out", "links in", "links out of those it leads to", "links in of those it comes from")
_UNDIRECTED = ("links", "links", "links of its neighbours", "links of its neighbours")
_MADE = re.compile(r"(.+?)(?:=|:|\[\d+\]$)")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)|\s")
"""What most often goes missing from ids on their way through other programs."""
T = TypeVar("T")
_CELLS = 4_000_000
"""Entries of a matrix of n rows that are looked at together."""
_ROW_BYTES = 2**28
"""The most memory for the rows of all channels of all members that texts are made of."""
_MEAN_BLOCK = 32_768
"""Rows whose mean is taken at once."""
_BLOCK = 1024
"""The most nodes whose texts are made together."""
_PRODUCTS = 50_000_000
"""The most multiplications for the matrix of a channel; larger ones are not divided among neighbours in texts."""


class ColumnShare(NamedTuple):
    """What a column contributed.

    Attributes
    ----------
    name
        Of the feature column; or what else a channel holds, such as the training labels of neighbours.
    value, usual
        The node's value before scaling, and the mean over nodes; None for what is no feature.
    contribution
        Through all channels, whoever's value it was.
    own
        The part of it that is due to the node's own value.
    """

    name: str
    value: float | None
    usual: float | None
    contribution: float
    own: float


class NodeShare(NamedTuple):
    """What the features of a node contributed to another one's score, through all channels.

    Attributes
    ----------
    node, id
        Its number and its name.
    contribution
        Its part of the score.
    linked
        Whether the two are linked; others are further away, or in the same cluster of the tree.
    label
        Its class, or number, where it is known.
    """

    node: int
    id: str
    contribution: float
    linked: bool
    label: str | None = None


class ChannelShare(NamedTuple):
    """What a channel contributed; ``group`` and ``scale`` are those of `pegfan.channels.Channel`."""

    member: str
    name: str
    words: str
    group: Literal["features", "hops", "scales", "other"]
    scale: int | None
    contribution: float


class Reason(NamedTuple):
    """One of the parts that a score falls into, and what to call it."""

    words: str
    contribution: float

    def __str__(self) -> str:
        size = "+,.0f" if abs(self.contribution) >= 100 else "+.2g"  # parts of numbers, unlike log-odds, may be large
        return f"{self.words} ({self.contribution:{size}})"


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a node has its score.

    The contributions of `columns`, those of `channels`, and those of `nodes` together with `rest` each add up to
    ``score - average``.

    Attributes
    ----------
    node, id
        Which node.
    target
        The class that the score is for; ``"value"`` where numbers are predicted.
    probability, score, average
        The probability of that class, its log-odds, and the log-odds of the average node. Where numbers are predicted,
        no probability, the number, and that of the average node.
    channels, columns, nodes
        What carried it, the largest contributions first; the node itself is among the nodes.
    rest
        What belongs to no single node, by name.
    reasons
        Parts that add up, too, the largest first: the node's own columns, the categories of one column together; other
        nodes; and what belongs to neither.
    """

    node: int
    id: str
    target: str
    probability: float | None
    score: float
    average: float
    channels: tuple[ChannelShare, ...]
    columns: tuple[ColumnShare, ...]
    nodes: tuple[NodeShare, ...]
    rest: dict[str, float]
    reasons: tuple[Reason, ...]

    @property
    def groups(self) -> dict[str, float]:
        """The contributions of the features themselves, of hops, of the tree's scales and of other channels."""
        found: dict[str, float] = {}
        for channel in self.channels:
            found[channel.group] = found.get(channel.group, 0.0) + channel.contribution
        return found

    def text(self, top: int = 3) -> str:
        """The largest reasons in a line, as predictions have them in ``top_reasons``.

        Parameters
        ----------
        top
            How many.
        """
        check_integer(top, "top", least=0)
        return "; ".join(map(str, self.reasons[:top]))


def column_names(graph: Graph) -> list[str]:
    """The names of the feature columns; those without one are counted from 0."""
    check_graph(graph, needs="features")
    assert graph.features is not None
    width = graph.features.shape[1]
    return [f"column {k}" for k in range(width)] if graph.feature_names is None else list(graph.feature_names)


def source_columns(names: Sequence[str]) -> dict[str, list[int]]:
    """Feature columns by the column of a table that they were made of.

    Examples
    --------
    >>> source_columns(["age", "kind=a", "kind=b", "place[0]", "place[1]"])
    {'age': [0], 'kind': [1, 2], 'place': [3, 4]}
    """
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        made = _MADE.match(name)
        found.setdefault(made[1] if made else name, []).append(k)
    return found


def find_nodes(graph: Graph, nodes: Any) -> IntArray:
    """Node indices of what may be indices or names.

    Parameters
    ----------
    graph
        The graph.
    nodes
        Integers are indices; texts are the names of nodes, or their numbers where nodes have no names.

    Raises
    ------
    ValueError
        If there is no such node; it names those that come nearest.

    Examples
    --------
    >>> graph = Graph.from_edges([[0, 1]], node_names=["anna", "ben"])
    >>> find_nodes(graph, ["ben"])
    array([1])
    >>> find_nodes(graph, ["bem"])
    Traceback (most recent call last):
    ...
    ValueError: there is no node 'bem'; did you mean 'ben'? There are 2 nodes, such as 'anna'
    """
    check_graph(graph)
    given = (
        [nodes] if isinstance(nodes, str) else as_array(nodes, "nodes").tolist() if hasattr(nodes, "shape") else nodes
    )
    given = check_list(given, "nodes", object)
    if not any(isinstance(name, str) for name in given):
        return node_indices(given, graph.n)
    names = [str(name) for name in given]
    wanted = set(names)
    index = {name: i for i, name in enumerate(map(str, graph.ids.tolist())) if name in wanted}
    for name in names:
        if name not in index:
            ids = list(map(str, graph.ids.tolist()))
            same = [other for other in ids if _ZEROS.sub("", other) == _ZEROS.sub("", name)]
            near = list(dict.fromkeys(same + get_close_matches(name, ids, n=3, cutoff=0.6)))[:3]
            hint = f"did you mean {' or '.join(map(repr, near))}? There" if near else "there"
            raise ValueError(f"there is no node {shown(name)}; {hint} are {graph.n:,} nodes, such as {ids[0]!r}")
    return np.array([index[name] for name in names], np.int64)


class Explainer:
    """Finds the reasons for what a fitted model says of a graph's nodes.

    Parameters
    ----------
    fitted
        ``model.fitted_`` of a classifier whose networks have channels: PEGFAN, FSGNN, `RecipeClassifier` or
        `AutoClassifier`.
    graph
        By default the one that was fitted.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> model = pf.FSGNNClassifier(epochs=20).fit(graph)
    >>> found = Explainer(model.fitted_).explain([7])[0]
    >>> abs(sum(column.contribution for column in found.columns) - (found.score - found.average)) < 1e-6
    True
    """

    def __init__(self, fitted: Fitted, graph: Graph | None = None) -> None:
        check_kind(fitted, "fitted", Fitted)
        other = next((member.recipe.label for member in fitted.members if isinstance(member, TrainedNetwork)), None)
        if other is not None:
            raise ValueError(
                f"reasons are for PEGFAN and FSGNN, whose channels are linear in the features; this model is {other}"
            )
        if len(fitted.classes) < 2 and not fitted.numeric:
            raise ValueError("the model knows a single class, so there is nothing to give reasons for")
        self.graph = fitted.prepared(graph)
        self.numeric = fitted.numeric
        self.classes = [VALUE] if self.numeric else [str(name) for name in fitted.classes.tolist()]
        self.known_to, self.scale, self.principal = fitted.known_to, fitted.scale, fitted.principal
        self._held_out = fitted.held_out(self.graph)
        members = [member for member in fitted.members if isinstance(member, Trained)]
        with one_thread():
            self.networks = [
                (LinkedTrees if member.recipe.is_boosted else LinkedNetwork)(member, channels, self)
                for member, channels in zip(members, fitted.channels_on(self.graph), strict=True)
            ]

    # --------------------------------------------------------------------- asking

    def explain(self, nodes: Any, target: int | str | None = None, top: int | None = None) -> list[Explanation]:
        """The reasons for some nodes.

        Parameters
        ----------
        nodes
            Node indices.
        target
            The class whose score is explained, by name or number; by default the one that is predicted.
        top
            List only so many columns and nodes each; the others are one entry together.
        """
        wanted = node_indices(nodes, self.graph.n)
        if top is not None:
            check_integer(top, "top", least=0)
        size = max(1, min(16, _CELLS // max(self.graph.n, 1)))
        with one_thread():
            blocks = (wanted[start : start + size] for start in range(0, len(wanted), size))
            return [found for block in blocks for found in self._explain(block, self._target(target), top)]

    def texts(self, nodes: Any = None, target: int | str | None = None, top: int = 3) -> list[str]:
        """The largest reasons per node in a line: its own columns, neighbours, and what belongs to neither.

        Only nodes that are linked to it are named here; `explain` looks at all of them.

        Parameters
        ----------
        nodes
            Node indices; by default all.
        target
            As in `explain`.
        top
            How many.
        """
        check_integer(top, "top", least=0)
        wanted = np.arange(self.graph.n) if nodes is None else node_indices(nodes, self.graph.n)
        found: list[str] = []
        per_node = 8 * sum(channel.shape[1] for network in self.networks for channel in network.channels)
        block = min(_BLOCK, max(1, _ROW_BYTES // per_node))
        with one_thread():
            for start in range(0, len(wanted), block):
                found += self._texts(wanted[start : start + block], self._target(target), top)
        return found

    def _target(self, target: int | str | None) -> int | None:
        if target is None or (isinstance(target, (int, np.integer)) and 0 <= target < len(self.classes)):
            return None if target is None else int(target)
        if not isinstance(target, (str, int, np.integer)) or str(target) not in self.classes:
            raise ValueError(f"there is no class {shown(target)}; the model knows {', '.join(self.classes)}")
        return self.classes.index(str(target))

    # ------------------------------------------------------------------ computing

    def _scores(self, nodes: IntArray, target: int | None) -> _Scores:
        """The scores, and per member the vectors g_k of its channels."""
        rows = [list(network.rows(nodes)) for network in self.networks]
        passes = [network.forward(network.inputs(values)) for network, values in zip(self.networks, rows, strict=True)]
        if self.numeric:
            return self._numbers(nodes, rows, passes)
        share = self._weights(nodes)[:, :, None]
        logs = np.stack([log_softmax(done.logits) for done in passes], axis=1) + share
        usual = np.stack([log_softmax(network.average.logits)[0] for network in self.networks])[None] + share
        codes = _log_sum(logs, 1).argmax(axis=1) if target is None else np.full(len(nodes), target)
        score, weights = _log_odds(logs, codes)
        average, usual_weights = _log_odds(usual, codes)
        onto = np.exp(_log_mean(logs, usual) - _log_mean(weights, usual_weights))
        onto *= np.where(np.arange(logs.shape[2]) == codes[:, None], 1.0, -1.0)[:, None, :]
        found = [
            network.back(done, onto[:, m]) for m, (network, done) in enumerate(zip(self.networks, passes, strict=True))
        ]
        ways, left = [way for way, _ in found], [more for _, more in found]
        return _Scores(codes, score, average, rows, passes, ways, left)

    def _weights(self, nodes: IntArray) -> FloatArray:
        """The logarithm of every member's weight, per node: its fold counts as one, and others not where it tests."""
        folds = np.array([network.member.fold for network in self.networks])
        weights = np.array([network.member.weight for network in self.networks])
        own = np.log(weights / np.bincount(folds, weights)[folds])
        if self._held_out is None:
            return np.tile(own, (len(nodes), 1))
        held_out = self._held_out[nodes][:, None]
        return np.where((held_out < 0) | (held_out == folds), own, -1e4)

    def _numbers(self, nodes: IntArray, rows: list[list[Any]], passes: list[_Pass]) -> _Scores:
        """Predicted numbers, likewise: every member has its share of the mean."""
        share = np.exp(self._weights(nodes))
        share /= share.sum(axis=1, keepdims=True)
        values = np.stack([network.values(done) for network, done in zip(self.networks, passes, strict=True)], axis=1)
        usual = np.array([float(network.values(network.average)[0]) for network in self.networks])
        scales = [network.units.scale for network in self.networks if network.units is not None]
        onto = [scale * share[:, [m]] for m, scale in enumerate(scales)]
        found = [network.back(done, one) for network, done, one in zip(self.networks, passes, onto, strict=True)]
        ways, left = [way for way, _ in found], [more for _, more in found]
        score, average = np.einsum("bm,bm->b", share, values), share @ usual
        return _Scores(np.zeros(len(nodes), np.int64), score, average, rows, passes, ways, left)

    def _explain(self, nodes: IntArray, target: int | None, top: int | None) -> Iterator[Explanation]:
        done = self._scores(nodes, target)
        columns = _Columns(self, len(nodes))
        shares = np.zeros((self.graph.n, len(nodes)))
        rest: dict[str, FloatArray] = {}
        channels: list[list[ChannelShare]] = [[] for _ in nodes]
        members = zip(self.networks, done.rows, done.passes, done.ways, done.left, strict=True)
        for network, values, through, ways, left in members:
            places, order = _places(network.channels, nodes), network.channels.nodes.order
            units = np.zeros((self.graph.n, len(nodes)))
            units[places, np.arange(len(nodes))] = 1.0
            for k, channel in enumerate(network.channels):
                g, u = ways[k], ways[k] @ network.weights[k]
                more = np.zeros((len(nodes), channel.shape[1])) if left is None else left[k]
                whole = np.einsum("bh,bh->b", g, through.inputs[k] - network.average.inputs[k]) + more.sum(axis=1)
                facts = network.member.channels[k]
                for b, value in enumerate(whole.tolist()):
                    channels[b].append(
                        ChannelShare(network.name, facts.name, facts.words, facts.group, facts.scale, value)
                    )
                by_column = (dense(values[k]) - network.means[k]) * u + more
                if network.is_features(channel):
                    columns.add(network.columns, by_column)
                    entries = units if not channel.factors else _entries(channel, places, units)
                    near = np.flatnonzero(entries.any(axis=1))
                    there = near if order is None else order[near]
                    shares[there] += entries[near] * (dense(channel.signal[near] @ u.T) - network.usual @ u.T)
                    own = entries[places, np.arange(len(nodes))][:, None] * u
                    columns.add_own(network.columns, own * (network.features[nodes] - network.usual))
                    links = network.row_sums(k)[nodes] * (u @ network.usual) - u @ network.means[k]
                    rest[LINKS] = rest.get(LINKS, 0.0) + links
                    if left is not None and channel.factors:
                        rest[TOGETHER] = rest.get(TOGETHER, 0.0) + more.sum(axis=1)
                    elif left is not None:
                        shares[nodes, np.arange(len(nodes))] += more.sum(axis=1)
                        columns.add_own(network.columns, more)
                elif channel.input_name == "A":
                    columns.add_fact(JOINED, by_column.sum(axis=1))
                    joined = network.joined[nodes]
                    for b in range(len(nodes)):
                        row = joined[[b]]
                        shares[row.indices, b] += row.data * u[b, network.joined_columns[row.indices]]
                    rest[JOINED] = rest.get(JOINED, 0.0) - u @ network.means[k]
                else:
                    for name, chosen in network.facts(channel):
                        part = by_column[:, chosen].sum(axis=1)
                        columns.add_fact(name, part, own=part)
                        rest[name] = rest.get(name, 0.0) + part
        ids, labels = self._ids, self._labels
        for b, i in enumerate(nodes.tolist()):
            code = int(done.codes[b])
            near_to = self._linked if self.graph.directed else self.graph.adjacency
            linked = set(near_to[[i]].indices.tolist()) - {i}
            near = np.flatnonzero(shares[:, b])
            near = near[np.argsort(-np.abs(shares[near, b]), kind="stable")]
            many = top is not None and len(near) > top
            far = {OTHER_NODES: float(shares[near[top:], b].sum())} if many else {}
            others = tuple(
                NodeShare(j, ids[j], float(shares[j, b]), j in linked, labels[j]) for j in near[:top].tolist()
            )
            aside = {name: float(values[b]) for name, values in rest.items()} | far
            parts = columns.reasons(b, i, top)
            parts += [Reason(_node_words(n.id, n.linked), n.contribution) for n in others if n.node != i]
            loop = float(shares[i, b] - columns.own[b].sum())
            if self._loops[i] and loop:
                parts.append(Reason(LOOP, loop))
            if top is not None and i in near[top:]:  # it is told by its columns
                aside[OTHER_NODES] -= float(shares[i, b])
                others += (NodeShare(i, ids[i], float(shares[i, b]), False, labels[i]),)
            parts += [
                Reason(name, value) for name, value in aside.items() if name not in columns.facts or name == JOINED
            ]
            yield Explanation(
                node=i,
                id=ids[i],
                target=self.classes[code],
                probability=None if self.numeric else float(1 / (1 + np.exp(-done.score[b]))),
                score=float(done.score[b]),
                average=float(done.average[b]),
                channels=tuple(sorted(channels[b], key=lambda share: -abs(share.contribution))),
                columns=columns.of(b, i, top),
                nodes=others,
                rest=aside,
                reasons=tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
            )

    def _texts(self, nodes: IntArray, target: int | None, top: int) -> list[str]:
        done = self._scores(nodes, target)
        columns = _Columns(self, len(nodes))
        linked = self._linked[nodes]
        row = np.repeat(np.arange(len(nodes)), np.diff(linked.indptr))
        source = linked.indices.astype(np.int64)
        itself = source == nodes[row]
        at = np.flatnonzero(itself)  # every node is in its own row once
        sources, place = np.unique(source, return_inverse=True)
        shares = np.zeros(len(row))
        rest: dict[str, FloatArray] = {}
        for network, rows, ways, left in zip(self.networks, done.rows, done.ways, done.left, strict=True):
            features = network.features[sources] - network.usual
            own = np.zeros((len(nodes), features.shape[1]))
            more = np.zeros_like(own)
            for k, channel in enumerate(network.channels):
                g, weights = ways[k], network.weights[k]
                if network.is_features(channel):
                    entries = network.entries(k, nodes[row], source)
                    if left is not None and not channel.factors:
                        more += left[k]
                    elif left is not None:
                        rest[TOGETHER] = rest.get(TOGETHER, 0.0) + left[k].sum(axis=1)
                    if entries is None:
                        continue
                    kept = np.flatnonzero(entries)
                    shares[kept] += entries[kept] * _dots(features @ weights.T, place[kept], g, row[kept])
                    own += (entries[at][:, None] * g) @ weights
                    mean, usual = (g @ (weights @ point) for point in (network.means[k], network.usual))
                    rest[LINKS] = rest.get(LINKS, 0.0) + network.row_sums(k)[nodes] * usual - mean
                elif channel.input_name == "A":
                    value = np.asarray(network.joined[nodes[row], source]).ravel()
                    kept = np.flatnonzero(value)
                    shares[kept] += value[kept] * _dots(weights.T, network.joined_columns[source[kept]], g, row[kept])
                    rest[JOINED] = rest.get(JOINED, 0.0) - g @ (weights @ network.means[k])
                else:
                    by_column = (dense(rows[k]) - network.means[k]) * (g @ weights)
                    by_column += 0.0 if left is None else left[k]
                    for name, chosen in network.facts(channel):
                        part = by_column[:, chosen].sum(axis=1)
                        columns.add_fact(name, part, own=part)
            columns.add_own(network.columns, own * features[place[at]] + more)
        shares[itself] = 0.0
        first = np.lexsort((-np.abs(shares), row))
        starts = linked.indptr
        ids = self._ids
        found = []
        for b, parts in enumerate(columns.largest_own(nodes, top)):
            for pair in first[starts[b] : starts[b + 1]][:top]:
                if shares[pair]:
                    parts.append(Reason(_node_words(ids[source[pair]], linked=True), float(shares[pair])))
            parts += [Reason(name, float(values[b])) for name, values in rest.items()]
            parts.sort(key=lambda part: -abs(part.contribution))
            found.append("; ".join(str(part) for part in parts[:top] if part.contribution))
        return found

    # ---------------------------------------------------------------- what is known

    @cached_property
    def names(self) -> list[str]:
        """The names of the feature columns."""
        return column_names(self.graph)

    @cached_property
    def sources(self) -> list[list[int]]:
        """Feature columns, the categories of one column together."""
        found = source_columns(self.names).values()
        return [
            part
            for columns in found
            for part in ([columns] if "=" in self.names[columns[0]] else [[c] for c in columns])
        ]

    @cached_property
    def grouping(self) -> csr_array:
        """From feature columns to `sources`."""
        pairs = np.array([(c, group) for group, columns in enumerate(self.sources) for c in columns]).reshape(-1, 2)
        return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(self.names), len(self.sources)))

    @cached_property
    def usual(self) -> FloatArray:
        """The mean of every feature column, before scaling."""
        assert self.graph.features is not None
        return np.asarray(self.graph.features.mean(axis=0), np.float64).ravel()

    @cached_property
    def _ids(self) -> _Each[str]:
        ids = self.graph.ids
        return _Each(lambda i: str(ids[i : i + 1].tolist()[0]))

    @cached_property
    def _labels(self) -> _Each[str | None]:
        labels, targets = self.graph.labels, self.graph.targets
        if targets is not None:
            return _Each(lambda i: None if np.isnan(targets[i]) else f"{targets[i]:.6g}")
        if labels is None:
            return _Each(lambda _: None)
        names = [*map(str, self.graph.classes.tolist()), None]
        return _Each(lambda i: names[labels[i]])

    @cached_property
    def _loops(self) -> NDArray[np.bool_]:
        """Which nodes are linked to themselves."""
        return np.asarray(self.graph.adjacency.diagonal() != 0)

    @cached_property
    def _linked(self) -> csr_array:
        """Which nodes are linked, in either direction; every node with itself."""
        a = self.graph.adjacency
        linked = csr_array(abs(a) + abs(a).T + eye_array(self.graph.n, format="csr"))
        linked.sort_indices()
        return linked


class _Each(Generic[T]):
    """A value per node, made when it is asked for: a list of those of all nodes would take long."""

    def __init__(self, make: Callable[[int], T]) -> None:
        self.make = make

    def __getitem__(self, i: int) -> T:
        return self.make(i)


# ----------------------------------------------------------------------- the network


class _Pass(NamedTuple):
    """What a network computes on its way: rows of X_k W_k + b_k, their norms, the inputs of every ReLU, the logits."""

    inputs: list[FloatArray]
    norms: list[FloatArray]
    units: list[FloatArray]
    before: list[FloatArray]
    logits: FloatArray


class _Scores(NamedTuple):
    codes: IntArray
    score: FloatArray
    average: FloatArray
    rows: list[list[Any]]
    passes: list[_Pass]
    ways: list[list[FloatArray]]
    left: list[list[FloatArray] | None]


class Linked(ABC):
    """What was trained on the channels of a graph, in float64, with the channels' average node."""

    weights: list[Any]
    average: _Pass

    def __init__(self, member: Trained, channels: Channels, explainer: Explainer) -> None:
        # It keeps parts of the explainer, not the explainer: memory is then free as soon as nobody holds that.
        self.member, self.channels, self._graph, self._scale = member, channels, explainer.graph, explainer.scale
        self._classes = explainer.classes
        self.name, self.known = member.recipe.name, explainer.known_to(member)
        self.units, self._trained_on = member.network.units, channels
        self.mixtures: list[Any] = [None] * len(channels)
        """V of channels that are made of principal columns: here they are those of the features, P_k X."""
        if member.recipe.scaling == "principal":
            assert explainer.principal is not None
            vectors = explainer.principal.vectors
            self.mixtures = [vectors if self.is_features(channel) else None for channel in channels]
            self.channels = _unmixed(channels, self.mixtures, explainer.graph.features)
        self.means = [_mean_row(channel) for channel in self.channels]
        self._row_sums: dict[int, FloatArray] = {}
        self._factors: dict[int, Any] = {}

    # ------------------------------------------------------------ forward and back

    @abstractmethod
    def inputs(self, rows: Iterable[Any]) -> list[FloatArray]:
        """What a column of a channel enters linearly; rows are taken channel by channel."""

    @abstractmethod
    def inputs_of(self, nodes: IntArray) -> list[FloatArray]:
        """The same of many nodes, by products with all of them: no row of a wide channel is made."""

    @abstractmethod
    def forward(self, inputs: list[FloatArray]) -> _Pass:
        """All that follows the inputs."""

    @abstractmethod
    def back(self, done: _Pass, onto: FloatArray) -> tuple[list[FloatArray], list[FloatArray] | None]:
        """The vectors g_k for weights on the logarithms of probabilities.

        And, per channel and column, what they leave out of its share; None for nothing.
        """

    @abstractmethod
    def strengths(self, k: int, spread: FloatArray) -> FloatArray:
        """How much each column of channel k matters, where the features have this spread."""

    def _onto_logits(self, done: _Pass, onto: FloatArray) -> FloatArray:
        """Weights on logits, of weights on the logarithms of probabilities; a number has its weights already."""
        if self.units is not None:
            return onto
        usual = self.average
        spread = np.exp(
            _log_mean(done.logits, usual.logits)
            - _log_mean(_log_sum(done.logits, 1), _log_sum(usual.logits, 1))[:, None]
        )
        return np.asarray(onto - onto.sum(axis=1, keepdims=True) * spread)

    def values(self, done: _Pass) -> FloatArray:
        """Predicted numbers, in the units of the targets."""
        assert self.units is not None
        return self.units.values(done.logits[:, 0])

    def rows(self, nodes: IntArray) -> Iterator[FloatArray]:
        """Rows of the channels, one channel after the other; products with all nodes are not kept."""
        return (_rows_of(channel, nodes) for channel in self.channels)

    # ------------------------------------------------------------- channels as maps

    def is_features(self, channel: Channel) -> bool:
        """Whether a channel is a linear map of the nodes' features."""
        n = self.channels.n
        square = all(factor.shape == (n, n) for factor in channel.factors)
        return channel.input_name == "X" and channel.signal.shape[0] == n and square

    @cached_property
    def features(self) -> Any:
        """The scaled features X of all nodes, whose rows are asked for as dense arrays."""
        x = next((channel.signal for channel in self.channels if self.is_features(channel)), None)
        return _Rows(np.zeros((self.channels.n, 0)) if x is None else x, self.channels.nodes)

    @cached_property
    def usual(self) -> FloatArray:
        """μ, the mean of the scaled features."""
        return np.asarray(self.features.matrix.mean(axis=0), np.float64).ravel()

    @cached_property
    def columns(self) -> IntArray:
        """The feature column of every column of X: where sparse features are scaled, centred columns come last."""
        graph, scale = self._graph, self._scale
        assert graph.features is not None
        width = self.features.matrix.shape[1]
        if scale is not None and self.member.recipe.scaling == "columns" and issparse(graph.features):
            return np.concatenate([np.flatnonzero(~scale.full), np.flatnonzero(scale.full)])[:width]
        return np.arange(width)

    def row_sums(self, k: int) -> FloatArray:
        """Σ_j P_k[i, j] for every node i."""
        if k not in self._row_sums:
            channel = self.channels[k]
            ones = np.ones((channel.n, 1))
            self._row_sums[k] = np.asarray(channel.operator @ ones if channel.factors else ones).ravel()
        return self._row_sums[k]

    def entries(self, k: int, rows: IntArray, columns: IntArray) -> FloatArray | None:
        """P_k[i, j] for pairs of nodes; None where the matrix is too large to look them up."""
        channel = self.channels[k]
        if not channel.factors:
            return np.asarray(rows == columns, np.float64)
        if k not in self._factors:
            self._factors[k] = _two_factors(channel)
        if self._factors[k] is None:
            return None
        rows, columns = _places(channel, rows), _places(channel, columns)
        left, right = self._factors[k]
        if right is None:
            return np.asarray(left[rows, columns]).ravel()
        counts = np.diff(left.indptr)[rows]
        pair = np.repeat(np.arange(len(rows)), counts)
        step = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts) + left.indptr[rows][pair]
        values = left.data[step] * np.asarray(right[left.indices[step], columns[pair]]).ravel()
        return np.asarray(np.bincount(pair, values, minlength=len(rows)), np.float64)

    @cached_property
    def joined(self) -> csr_array:
        """Who is joined to whom, as the channel of adjacency rows has it: nodes that training did not know left out."""
        known, graph = self.known, self._graph
        assert known is not None
        rows = csr_array(hop_matrix(graph, "A", self.member.recipe._side), dtype=np.float64, copy=True)
        rows.data[known.columns_of(graph)[rows.indices] < 0] = 0.0
        rows.eliminate_zeros()
        return rows

    @cached_property
    def joined_columns(self) -> IntArray:
        """The column of every node in the channel of adjacency rows."""
        known = self.known
        assert known is not None
        return np.maximum(known.columns_of(self._graph), 0)

    def facts(self, channel: Channel) -> Iterator[tuple[str, Any]]:
        """What else channels hold, by name: columns that belong together."""
        width, classes = channel.shape[1], self._classes
        place = np.arange(width)
        if channel.name == "degrees" and width == len(_DEGREES):
            names = _DEGREES if self._graph.directed else _UNDIRECTED
            yield from ((name, np.array([name == other for other in names])) for name in dict.fromkeys(names))
        elif channel.input_name == "Y" and self.units is not None:
            yield f"known numbers {'two steps away' if channel.name == 'Y far' else 'of neighbours'}", place >= 0
        elif channel.input_name == "Y" and width % len(classes) == 0:
            far = " two steps away" if channel.name == "Y far" else ""
            held = "labelled" if self.member.recipe.stages == 1 else "labelled or taken for"
            yield from ((f"neighbours {held} {c}{far}", place % len(classes) == k) for k, c in enumerate(classes))
        else:
            yield describe(channel), place >= 0


class LinkedNetwork(Linked):
    """A trained network."""

    def __init__(self, member: Trained, channels: Channels, explainer: Explainer) -> None:
        super().__init__(member, channels, explainer)
        network = member.network
        assert isinstance(network, Network)
        state = network.state
        self.normalize = network.settings.hop_normalize
        self.attention = network.attention.astype(np.float64)
        own = [state[f"channel_layers.{k}.weight"].astype(np.float64) for k in range(len(channels))]
        self._own_weights = own
        self.weights = [w if mixed is None else w @ mixed.T for w, mixed in zip(own, self.mixtures, strict=True)]
        self.biases = [state[f"channel_layers.{k}.bias"].astype(np.float64) for k in range(len(channels))]
        names = [*(f"hidden_layers.{k}" for k in range(network.settings.layers - 2)), "output"]
        self.layers = [
            (state[f"{name}.weight"].astype(np.float64), state[f"{name}.bias"].astype(np.float64)) for name in names
        ]
        self.average = self.forward(
            [m[None] @ w.T + b for m, w, b in zip(self.means, self.weights, self.biases, strict=True)]
        )

    def inputs(self, rows: Iterable[Any]) -> list[FloatArray]:
        """X_k W_k + b_k."""
        return [np.asarray(x @ w.T) + b for x, w, b in zip(rows, self.weights, self.biases, strict=True)]

    def inputs_of(self, nodes: IntArray) -> list[FloatArray]:
        """P_k (X W_k) + b_k."""
        found, places = [], _places(self._trained_on, nodes)
        for channel, weight, bias in zip(self._trained_on, self._own_weights, self.biases, strict=True):
            product = np.asarray(channel.signal @ weight.T, np.float64)
            found.append((channel.product @ product if channel.factors else product)[places] + bias)
        return found

    def forward(self, inputs: list[FloatArray]) -> _Pass:
        """All that follows X_k W_k + b_k."""
        norms, units = [], []
        for h in inputs:
            norms.append(np.sqrt(np.einsum("bh,bh->b", h, h)))
            units.append(h / np.maximum(norms[-1], 1e-12)[:, None] if self.normalize else h)
        x = np.concatenate([a * n for a, n in zip(self.attention, units, strict=True)], axis=1)
        before = []
        for weight, bias in self.layers:
            before.append(x)
            x = np.maximum(x, 0) @ weight.T + bias
        return _Pass(inputs, norms, units, before, x)

    def back(self, done: _Pass, onto: FloatArray) -> tuple[list[FloatArray], None]:
        """The vectors g_k; nothing is left, for a network is linear in its inputs, difference by difference."""
        g, usual = self._onto_logits(done, onto), self.average
        for (weight, _), x, y in zip(reversed(self.layers), reversed(done.before), reversed(usual.before), strict=True):
            g = (g @ weight) * _chord(x, y)
        parts = np.split(g, len(self.weights), axis=1)
        return [
            self._through_norm(k, alpha * part, done)
            for k, (alpha, part) in enumerate(zip(self.attention, parts, strict=True))
        ], None

    def _through_norm(self, k: int, g: FloatArray, done: _Pass) -> FloatArray:
        if not self.normalize:
            return g
        s, t = done.norms[k], self.average.norms[k]
        r, q = np.maximum(s, 1e-12), np.maximum(t, 1e-12)
        sums = np.where(s + t > 0, s + t, 1.0)
        slope = np.where(s == t, (s > 1e-12) * 1.0, (r - q) / np.where(s == t, 1.0, s - t))  # 1 but for rows of zeros
        along = np.einsum("bh,bh->b", done.units[k] + self.average.units[k], g)
        both = done.inputs[k] + self.average.inputs[k]
        return np.asarray((2 * g - (slope * along / sums)[:, None] * both) / (r + q)[:, None])

    def strengths(self, k: int, spread: FloatArray) -> FloatArray:
        """By how much a column's spread can move the first layer."""
        return np.asarray(spread * self.attention[k] ** 2 * np.square(self.weights[k]).sum(axis=0))


class LinkedTrees(Linked):
    """Boosted trees: their inputs are the columns themselves.

    What a column adds to a score is found on the way down every tree. It is handed on to neighbours whose values the
    column is a mean of as if it were in proportion to the column, where the column is far from its mean; where it is
    near, so that neighbours on both sides would get large shares that cancel, it stays with the neighbourhood.
    """

    def __init__(self, member: Trained, channels: Channels, explainer: Explainer) -> None:
        super().__init__(member, channels, explainer)
        trees = member.network
        assert isinstance(trees, Boosted)
        self.trees = trees
        self.weights = [
            eye_array(width, format="csr") if mixed is None else mixed.T
            for width, mixed in zip(channels.widths, self.mixtures, strict=True)
        ]
        self._widths = channels.widths
        self.average = _Pass(self.inputs([m[None] for m in self.means]), [], [], [], trees.average[None])

    def inputs(self, rows: Iterable[Any]) -> list[FloatArray]:
        """The columns that the trees ask about."""
        return [dense(x if mixed is None else x @ mixed) for x, mixed in zip(rows, self.mixtures, strict=True)]

    def inputs_of(self, nodes: IntArray) -> list[FloatArray]:
        """Principal columns are looked at as they are."""
        return [_rows_of(channel, nodes) for channel in self._trained_on]

    def forward(self, inputs: list[FloatArray]) -> _Pass:
        """The logits."""
        return _Pass(inputs, [], [], [], self.trees.logits(self._joined_rows(inputs)))

    @staticmethod
    def _joined_rows(inputs: list[FloatArray]) -> Any:
        return np.ascontiguousarray(np.hstack(inputs), np.float32)

    def back(self, done: _Pass, onto: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Shares of columns by how far they are from their means, and what is left: all of it where they are there.

        What is left of a principal column is divided among the feature columns by the squares of their weights in it,
        which add up to one.
        """
        _, shares = self.trees.shares(self._joined_rows(done.inputs))
        whole = np.einsum("bo,bod->bd", self._onto_logits(done, onto), shares)
        slopes, left = [], []
        for k, part in enumerate(np.split(whole, np.cumsum(self._widths)[:-1], axis=1)):
            away = done.inputs[k] - self.average.inputs[k]
            slopes.append(part * away / (away**2 + self._near[k]))
            left.append(self._unmix(k, part - slopes[-1] * away))
        return slopes, left

    @cached_property
    def _near(self) -> list[FloatArray]:
        """A sixteenth of the variance of every column, and never nothing."""
        some = np.linspace(0, self.channels.n - 1, min(self.channels.n, _BLOCK)).astype(np.int64)
        rows = zip(self.inputs_of(some), self.average.inputs, strict=True)
        return [np.square(values - mean).mean(axis=0) / 16 + 1e-12 for values, mean in rows]

    def _unmix(self, k: int, shares: FloatArray) -> FloatArray:
        """Shares of the columns of channel k among the columns that these are made of."""
        mixed = self.mixtures[k]
        if mixed is None:
            return shares
        squares = mixed**2
        return np.asarray(shares @ (squares / np.maximum(squares.sum(axis=0), 1e-300)).T)

    def strengths(self, k: int, spread: FloatArray) -> FloatArray:
        """By how much questions about a column lowered the loss."""
        ends = np.cumsum(self._widths)
        return self._unmix(k, np.asarray(self.trees.state["gains"][ends[k] - self._widths[k] : ends[k]]))


class _Rows:
    """A matrix whose rows are in an order, and asked for by node, as dense float64 arrays."""

    def __init__(self, matrix: Any, nodes: NodeOrder) -> None:
        self.matrix, self.nodes = matrix, nodes

    def __getitem__(self, nodes: IntArray) -> FloatArray:
        return dense(self.matrix[_places(self, nodes)])


def dense(matrix: Any) -> FloatArray:
    """A matrix as a dense array of float64."""
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix, np.float64)


def _unmixed(channels: Channels, mixtures: Sequence[Any], features: Any) -> Channels:
    """Channels whose principal columns are replaced by the features that they are mixtures of."""
    x, pairs = channels.nodes.enter(as_input(features, "X")), zip(channels, mixtures, strict=True)
    changed = [c if v is None else Channel.inside(c.factors, x, c.nodes, c.name, c.what, c.apart) for c, v in pairs]
    return Channels(changed, channels.info)


def _mean_row(channel: Channel) -> FloatArray:
    """x̄ = (Pᵀ 1 / n)ᵀ X."""
    weights = np.full((channel.n, 1), 1 / channel.n)
    if channel.factors:
        weights = np.asarray(channel.product.T @ weights)
    if is_large(channel.n) and not issparse(channel.signal):
        blocks = [slice(start, start + _MEAN_BLOCK) for start in range(0, channel.n, _MEAN_BLOCK)]
        parts = [weights[block, 0] @ channel.signal[block].astype(np.float64) for block in blocks]
        return np.asarray(np.sum(parts, axis=0), np.float64)
    return np.asarray(channel.signal.T.astype(np.float64) @ weights).ravel()


def _entries(channel: Channel, places: IntArray, units: FloatArray) -> FloatArray:
    """Rows of a channel's product as columns, from those of the identity; on large graphs by what is near alone."""
    matrices: list[Any] = [getattr(factor, "matrix", None) for factor in channel.factors]
    if not is_large(channel.n) or not all(map(issparse, matrices)):
        return np.asarray(channel.product.T @ units)
    rows = matrices[0][places]
    for matrix in matrices[1:]:
        rows = rows @ matrix
    return np.asarray(rows.T.toarray())


def _rows_of(channel: Channel, nodes: IntArray) -> FloatArray:
    """Rows of a channel, in blocks: of few nodes by rows of its operator, of many by products with all its columns."""
    nodes = _places(channel, nodes)
    if not channel.factors:
        return dense(channel.signal[nodes])
    step, width = max(1, _CELLS // channel.n), channel.shape[1]
    out = np.empty((len(nodes), width))
    if len(nodes) > width:
        for start in range(0, width, step):
            columns = slice(start, start + step)
            out[:, columns] = np.asarray(channel.product @ dense(channel.signal[:, columns]))[nodes]
        return out
    for start in range(0, len(nodes), step):
        some = nodes[start : start + step]
        units = np.zeros((channel.n, len(some)))
        units[some, np.arange(len(some))] = 1.0
        out[start : start + step] = dense(channel.signal.T @ _entries(channel, some, units)).T
    return out


def _places(channels: Channel | Channels | _Rows, nodes: IntArray) -> IntArray:
    """The places of nodes in the order of channels."""
    position = channels.nodes.position
    return nodes if position is None else position[nodes]


def _two_factors(channel: Channel) -> tuple[csr_array, csr_array | None] | None:
    """The operator as a product of one or two sparse matrices, the first with short rows; None if one is large."""
    lists = [factor.matrices() for factor in channel.factors]
    if any(found is None or not all(issparse(matrix) for matrix in found) for found in lists):
        return None
    first, *others = [[csr_array(matrix) for matrix in found or ()] for found in lists]
    head, tail = first[:1], [matrix for found in others for matrix in found]
    if len(first) > 1:  # a projection: from nodes to clusters and back
        head, tail = first[:-1], [first[-1], *tail]
    parts = []
    for chain in (head, tail):
        product: Any = chain[-1] if chain else None
        for matrix in reversed(chain[:-1]):
            if np.bincount(matrix.indices, minlength=matrix.shape[1]) @ np.diff(product.indptr) > _PRODUCTS:
                return None
            product = csr_array(matrix @ product)
        if product is not None:
            product.sum_duplicates()
        parts.append(product)
    return parts[0], parts[1]


# -------------------------------------------------------------------- exact differences


def _chord(x: FloatArray, y: FloatArray) -> FloatArray:
    """[max(x, 0) − max(y, 0)] / (x − y); the slope where the two are equal."""
    apart = (x > 0) != (y > 0)
    chord = (np.maximum(x, 0) - np.maximum(y, 0)) / np.where(apart, x - y, 1.0)
    return np.where(apart, chord, ((x > 0) & (y > 0)) * 1.0)


def _log_sum(x: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    top = x.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis))


def log_softmax(x: FloatArray) -> FloatArray:
    """Logarithms of probabilities, per row."""
    return x - _log_sum(x, 1)[:, None]


def _log_mean(x: FloatArray, y: FloatArray) -> FloatArray:
    """The logarithm of L(e^x, e^y)."""
    d = np.abs(x - y) / 2
    small = d < 1e-3
    safe = np.where(small, 1.0, d)
    bent = np.where(small, d**2 / 6 - d**4 / 180, safe + np.log1p(-np.exp(-2 * safe)) - np.log(2 * safe))
    return np.asarray((x + y) / 2 + bent)


def _log_odds(logs: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log-odds of a class for the mean of the members' probabilities, and the logarithm of the sum that each enters."""
    own = np.arange(logs.shape[2]) == codes[:, None]
    inside = _log_sum(np.where(own[:, None, :], logs, -np.inf), (1, 2))
    outside = _log_sum(np.where(own[:, None, :], -np.inf, logs), (1, 2))
    return inside - outside, np.where(own, inside[:, None], outside[:, None])[:, None, :]


# ------------------------------------------------------------------------ the columns


class _Columns:
    """Contributions of feature columns and of other facts to some scores."""

    def __init__(self, explainer: Explainer, count: int) -> None:
        assert explainer.graph.features is not None
        self.explainer = explainer
        self.whole = np.zeros((count, explainer.graph.features.shape[1]))
        self.own = np.zeros_like(self.whole)
        self.facts: dict[str, tuple[FloatArray, FloatArray]] = {}

    def add(self, columns: IntArray, values: FloatArray) -> None:
        self.whole[:, columns] += values

    def add_own(self, columns: IntArray, values: FloatArray) -> None:
        self.own[:, columns] += values

    def add_fact(self, name: str, values: FloatArray, own: Any = 0.0) -> None:
        before = self.facts.get(name, (np.zeros(len(values)), np.zeros(len(values))))
        self.facts[name] = (before[0] + values, before[1] + own)

    def of(self, b: int, node: int, top: int | None) -> tuple[ColumnShare, ...]:
        """The shares for one score."""
        names, usual = self.explainer.names, self.explainer.usual
        features: Any = self.explainer.graph.features
        row = dense(features[[node]]).ravel()
        every = np.flatnonzero((self.whole[b] != 0) | (self.own[b] != 0))
        kept = every if top is None else np.union1d(_largest(self.whole[b], top), _largest(self.own[b], top))
        found = [
            ColumnShare(names[c], float(row[c]), float(usual[c]), float(self.whole[b, c]), float(self.own[b, c]))
            for c in kept.tolist()
        ]
        found += [ColumnShare(name, None, None, float(w[b]), float(o[b])) for name, (w, o) in self.facts.items()]
        left = np.setdiff1d(every, kept)
        if len(left):
            found.append(
                ColumnShare(OTHERS, None, None, float(self.whole[b, left].sum()), float(self.own[b, left].sum()))
            )
        return tuple(sorted(found, key=lambda share: -abs(share.contribution)))

    def reasons(self, b: int, node: int, top: int | None) -> list[Reason]:
        """The parts of one score that are due to the node's own values, the largest first."""
        (found,) = self.largest_own(np.array([node]), len(self.own.T) if top is None else top, slice(b, b + 1))
        left = float(self.own[b].sum() + sum(own[b] for _, own in self.facts.values())) - sum(
            r.contribution for r in found
        )
        return [*found, Reason(OTHERS, left)] if top is not None and top < len(self.explainer.sources) else found

    def largest_own(self, nodes: IntArray, top: int, which: slice = slice(None)) -> Iterator[list[Reason]]:
        """Per score the largest parts that are due to a node's own values, the categories of one column together."""
        names, usual, sources = self.explainer.names, self.explainer.usual, self.explainer.sources
        features: Any = self.explainer.graph.features
        own = self.own[which] @ self.explainer.grouping
        most = min(top, len(sources))
        kept = np.argpartition(-np.abs(own), most - 1, axis=1)[:, :most] if most else np.empty((len(own), 0), np.int64)
        sizes = np.take_along_axis(own, kept, axis=1).tolist()
        values = dense(features[nodes])
        for b, (groups, parts) in enumerate(zip(kept.tolist(), sizes, strict=True)):
            found = []
            for group, part in zip(groups, parts, strict=True):
                columns = sources[group]
                c = columns[0] if len(columns) == 1 else columns[int((values[b, columns] - usual[columns]).argmax())]
                found += [Reason(_column_words(names[c], float(values[b, c]), float(usual[c])), part)] if part else []
            place = b + (which.start or 0)
            found += [Reason(name, float(own[place])) for name, (_, own) in self.facts.items() if own[place]]
            yield found


def _dots(x: FloatArray, i: IntArray, y: FloatArray, j: IntArray) -> FloatArray:
    """Products x[i]·y[j], in single precision: they are only compared and printed."""
    return np.asarray(np.einsum("ph,ph->p", x.astype(np.float32)[i], y.astype(np.float32)[j]), np.float64)


def _largest(values: FloatArray, top: int) -> IntArray:
    """Where the largest values are, by size, the largest first."""
    size = np.abs(values)
    if top < len(size):
        kept = np.argpartition(-size, top)[:top] if top else np.empty(0, np.int64)
    else:
        kept = np.flatnonzero(size)
    return np.asarray(kept[np.argsort(-size[kept], kind="stable")])


def _column_words(name: str, value: float | None, usual: float | None) -> str:
    if value is None or usual is None:
        return name
    if value in (0.0, 1.0) and "=" in name:  # a category
        return name if value else f"not {name}"
    return f"{name} {'high' if value > usual else 'low' if value < usual else 'as usual'}"


def _node_words(name: str, linked: bool) -> str:
    return f"{'neighbour' if linked else 'further node'} {name}"
