"""Channels: named linear operators on a graph's features, the input X_1, ..., X_(n_C) of the network (Section IV).

A channel is a product of factors (hops, a framelet projection, anything linear) on an input. A set of
channels states what it would cost, materialises as matrices, or acts on weights without being formed:
P(X W) = (P X) W.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, reduce
from itertools import groupby
from typing import Any, Literal, Self, cast, overload

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from pegfan._arrays import IntArray
from pegfan._checks import (
    as_array,
    check_choice,
    check_integer,
    check_kind,
    check_list,
    check_mapping,
    check_sparse,
    shown,
)
from pegfan.channels._kept import KEEPING
from pegfan.channels._trie import SPARSE_BELOW, Scales, Stem, Trie, dense_bytes, sparse_bytes
from pegfan.channels.factors import Matrix, all_finite, as_factor, renumbered
from pegfan.channels.order import AS_NUMBERED, NodeOrder
from pegfan.framelets import FrameletSystem, Operator
from pegfan.framelets._signals import is_tensor
from pegfan.measures import equal_rows

Format = Literal["auto", "dense", "sparse"]


class Channel:
    """A named linear operator on a named input, such as "F_3 S X".

    Parameters
    ----------
    name
        Its name; names are distinct in a set of channels.
    operator
        None for the input itself; a sparse matrix, 2-D array or `LinearOperator`; or several of them, a
        product written as on paper: the last one acts first.
    input
        What it acts on: a matrix (dense or sparse) with one row per node, a vector for a single column,
        ``"I"`` for the identity, so that the channel's rows are those of the operator (adjacency rows), or
        another channel, whose products are then shared.
    input_name
        What to call the input in tables.
    what
        In a few words what it holds, where its factors and its input do not say it; see `pegfan.channels.names`.

    Attributes
    ----------
    name, input_name : str
    factors : tuple of Operator
        The factors of the operator, the last one acting first: `Matrix` (with its ``matrix``), `Projection`
        (with its ``system`` and ``scale``) or any other. Their nodes are in the order `nodes`.
    input : array or csr_array
        What it acts on.
    signal : array or csr_array
        The same in the order `nodes`.
    nodes : NodeOrder
        The order in which it is computed: that of the numbers, or for channels of a set, that of the set. What
        `materialize`, `apply` and `operator` give is numbered as the nodes are.
    apart : bool
        Whether its rows may tell nodes apart that look alike.
    shape : tuple of int
        Rows and columns.
    of_features : callable or None
        How it is made of other features, all nodes' as they are numbered, where it is linear in them and no product.
    kept : dict
        What other code derived from the channel, for reuse; it lives as long as the channel and is not pickled.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan.channels import Channel, hop_matrix
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]])
    >>> channel = Channel("A^2 X", [hop_matrix(graph, "A")] * 2, np.array([[1.0], [10.0], [100.0]]), "X")
    >>> channel
    Channel('A^2 X', 3×1)
    >>> channel.materialize(np.float64)
    array([[101.],
           [ 20.],
           [101.]])
    >>> Channel("A^3 X", hop_matrix(graph, "A"), channel).materialize(np.float64).ravel()
    array([ 20., 202.,  20.])
    >>> Channel("A", hop_matrix(graph, "A"), "I").materialize().shape
    (3, 3)
    """

    name: str
    factors: tuple[Operator, ...]
    signal: Any
    input_name: str
    shape: tuple[int, int]
    nodes: NodeOrder = AS_NUMBERED
    apart: bool = False
    of_features: Callable[[Any], Any] | None = None

    def __init__(
        self,
        name: str,
        operator: Any,
        input: Any,  # noqa: A002
        input_name: str | None = None,
        what: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a channel's name must be a non-empty string, got {shown(name)}")
        several = isinstance(operator, Sequence) and not isinstance(operator, str)
        values = () if operator is None else tuple(operator) if several else (operator,)
        self.name, self.what = name, what
        self.kept: dict[str, Any] = {}
        self.factors = tuple(as_factor(value, name) for value in values)
        if input_name is not None:
            check_kind(input_name, "input_name", str)
        if isinstance(input, Channel):
            if self.factors and self.factors[0].shape[0] != input.n:
                input = input.entered(AS_NUMBERED, {})  # noqa: A001 - the order is that of other rows
            self.nodes, self.apart = input.nodes, input.apart or bool(self.factors)
            order = self.nodes.order
            self.factors = (*(_renumbered(factor, order, input.n) for factor in self.factors), *input.factors)
            self.signal, self.input_name = input.signal, input_name or input.input_name
        elif isinstance(input, str):
            self.signal, self.input_name = self._identity(input), input_name or "I"
        else:
            self.signal, self.input_name = as_input(input, name), input_name or "input"
        rows = self.signal.shape[0]
        for factor in reversed(self.factors):
            if factor.shape[1] != rows:
                raise ValueError(
                    f"channel {shown(name)}: factor {factor.name} is {factor.shape[0]}×{factor.shape[1]}, "
                    f"and what it acts on has {rows} rows"
                )
            rows = factor.shape[0]
        self.shape = (int(rows), int(self.signal.shape[1]))

    @property
    def input(self) -> Any:
        """What it acts on, a row per node as they are numbered."""
        return self.nodes.leave(self.signal, apart=True) if self.signal.shape[0] == self.n else self.signal

    @classmethod
    def inside(
        cls,
        factors: Sequence[Operator],
        signal: Any,
        nodes: NodeOrder,
        name: str | None = None,
        what: str | None = None,
        apart: bool = False,
    ) -> Self:
        """A channel of features, of operators and features that are in an order already; by default named after them.

        Nothing is checked.
        """
        channel = cls.__new__(cls)
        channel.name, channel.what = f"{product_name(factors)} X" if factors and name is None else name or "X", what
        channel.factors, channel.signal, channel.input_name, channel.kept = tuple(factors), signal, "X", {}
        channel.nodes, channel.apart, channel.shape = nodes, apart, (signal.shape[0], signal.shape[1])
        return channel

    def entered(self, nodes: NodeOrder, systems: dict[int, FrameletSystem]) -> Channel:
        """The same channel in another order of the nodes; see `renumbered` for `systems`."""
        order, inside = nodes.places_in(self.nodes), copy(self)
        inside.nodes, inside.apart, inside.of_features = nodes, True, self.of_features
        inside.factors = tuple(_renumbered(factor, order, self.n, systems) for factor in self.factors)
        if order is not None and self.signal.shape[0] == self.n:
            inside.signal = self.signal[order]
        return inside

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def scale(self) -> int | None:
        """The j of its projection F_j; None without one."""
        return next((factor.scale for factor in self.factors if factor.scale is not None), None)

    @cached_property
    def operator(self) -> Operator:
        """The product of the factors, as one linear operator that is never formed, of nodes as they are numbered."""
        return _renumbered(self.product, self.nodes.position, self.n)

    @cached_property
    def product(self) -> Operator:
        """The same of nodes in the order `nodes`."""
        if not self.factors:
            return Matrix("1", eye_array(self.n, format="csr"))
        return Operator(
            product_name(self.factors),
            (self.n, self.factors[-1].shape[1]),
            lambda x: reduce(lambda y, factor: factor._forward(y), reversed(self.factors), x),
            lambda x: reduce(lambda y, factor: factor._transposed(y), self.factors, x),
        )

    @cached_property
    def nnz(self) -> int:
        """An upper bound on the entries that are not zero, found without computing them."""
        return Trie([self]).bounds[0]

    def apply(self, weights: Any) -> Any:
        """P(X W) for weights W of shape (d, k): the operator acts on k columns, whatever d is.

        Parameters
        ----------
        weights
            An array or a torch tensor; gradients flow to it.

        Examples
        --------
        >>> import numpy as np
        >>> channel = Channel("X", None, np.eye(3))
        >>> channel.apply(np.ones((3, 2))).shape
        (3, 2)
        """
        if not is_tensor(weights) and not issparse(weights):
            weights = as_array(weights, "weights")
        if weights.ndim != 2 or weights.shape[0] != self.shape[1]:
            raise ValueError(
                f"channel {shown(self.name)} has {self.shape[1]} columns: its weights must have as many rows, "
                f"got shape {tuple(weights.shape)}"
            )
        for factor in (self._input_factor, *reversed(self.factors)):
            weights = factor @ weights
        return self.nodes.leave(weights, self.apart)

    def materialize(self, dtype: Any = np.float32, format: Format = "auto") -> Any:  # noqa: A002
        """The channel as a matrix; see `Channels.materialize`."""
        return Channels([self]).materialize(dtype, format)[0]

    def _identity(self, name: str) -> csr_array:
        if name != "I":
            raise ValueError(
                f"the input of channel {shown(self.name)} is a matrix, a Channel, or 'I' for the identity; "
                f"got {shown(name)}"
            )
        if not self.factors:
            raise ValueError(
                f"channel {shown(self.name)} is the identity: give it an operator such as hop_matrix(graph)"
            )
        return csr_array(eye_array(self.factors[-1].shape[1], format="csr"))

    @cached_property
    def _input_factor(self) -> Matrix:
        return Matrix(self.input_name, self.signal)

    def __getstate__(self) -> dict[str, Any]:
        made = ("operator", "product", "nnz", "_input_factor", "of_features")  # when they are asked for
        return {name: value for name, value in self.__dict__.items() if name not in made} | {"kept": {}}

    def __repr__(self) -> str:
        return f"Channel({self.name!r}, {self.shape[0]}×{self.shape[1]})"


class Channels(Sequence[Channel]):
    """An ordered set of channels; ``print`` it for a table of what they are and what they would cost.

    Parameters
    ----------
    channels
        Channels with distinct names and the same number of rows.
    info
        How they were chosen (kind, regime, hop matrix); anything that JSON can hold.

    Attributes
    ----------
    info : dict
    nodes : NodeOrder
        The order in which everything is computed: that of the channels that were made together. Others are put into it.
    alike : bool
        Whether nodes that look alike have equal rows, up to rounding, in the channels that were made together: they get
        equal bits. Inputs of others may tell such nodes apart; of operators of others, nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], features=np.eye(4))
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> from pegfan.channels import make_channels
    >>> channels = make_channels(graph, system, kind="b", regime="heterophily", hops=2)
    >>> channels
    Channels(X, S X, S^2 X, F_0 X, F_1 X, F_2 X)
    >>> print(channels)
    name   operator  input  shape  nonzeros    density  dense  sparse
    X      1         X      4×4           4     25.00%   64 B    52 B
    S X    S         X      4×4         ≤ 6   ≤ 37.50%   64 B    68 B
    S^2 X  S^2       X      4×4        ≤ 10   ≤ 62.50%   64 B   100 B
    F_0 X  F_0       X      4×4        ≤ 16  ≤ 100.00%   64 B   148 B
    F_1 X  F_1       X      4×4        ≤ 16  ≤ 100.00%   64 B   148 B
    F_2 X  F_2       X      4×4         ≤ 8   ≤ 50.00%   64 B    84 B
    6 channels of float32: 384 B dense, at most 600 B sparse
    >>> structure = Channel("degree", None, graph.adjacency.sum(axis=1))
    >>> (channels[:2] + [structure]).names
    ('X', 'S X', 'degree')
    """

    def __init__(self, channels: Iterable[Channel], info: Mapping[str, Any] | None = None) -> None:
        self._channels = tuple(check_list(channels, "channels", Channel))
        self.info = {} if info is None else dict(check_mapping(info, "info"))
        if not self._channels:
            raise ValueError("no channels given; a network needs at least one")
        for channel in self._channels:
            if channel.n != self.n:
                raise ValueError(
                    f"channel {shown(channel.name)} has {channel.n} rows and channel {self._channels[0].name!r} "
                    f"has {self.n}: all need one row per node of the same graph"
                )
        if len(set(self.names)) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if name in self.names[:i])
            raise ValueError(f"two channels are named {shown(twice)}; give one of them another name")
        self.nodes = next((c.nodes for c in self._channels if c.nodes is not AS_NUMBERED), AS_NUMBERED)
        systems: dict[int, FrameletSystem] = {}
        self._channels = tuple(c if c.nodes is self.nodes else c.entered(self.nodes, systems) for c in self._channels)
        self.alike = self.nodes.first is not None and not any(c.apart and c.factors for c in self._channels)
        self.kept: dict[str, Any] = {}
        self._prepared: dict[Any, tuple[dict[int, Any], dict[int, Scales]]] = {}

    @overload
    def __getitem__(self, which: int | str) -> Channel: ...

    @overload
    def __getitem__(self, which: slice) -> Channels: ...

    def __getitem__(self, which: int | str | slice) -> Channel | Channels:
        if isinstance(which, slice):
            return Channels(self._channels[which], self.info)
        if isinstance(which, str):
            if which not in self.names:
                raise KeyError(f"no channel is named {shown(which)}; there are {', '.join(self.names)}")
            return self._channels[self.names.index(which)]
        return self._channels[which]

    def __len__(self) -> int:
        return len(self._channels)

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._channels)

    def __add__(self, others: Iterable[Channel]) -> Channels:
        return Channels([*self._channels, *others], self.info)

    @property
    def n(self) -> int:
        """The number of rows, one per node."""
        return self._channels[0].n

    @property
    def names(self) -> tuple[str, ...]:
        """The channels' names, in order."""
        return tuple(channel.name for channel in self._channels)

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of columns d_1, ..., d_(n_C), as the models want them."""
        return tuple(channel.shape[1] for channel in self._channels)

    @property
    def entries(self) -> int:
        """How many entries of all channels may be other than zero, found without computing them."""
        return sum(self._trie.bounds)

    def memory(self, dtype: Any = np.float32, format: Literal["auto", "dense", "sparse", "rows"] = "auto") -> int:  # noqa: A002
        """The bytes that the channels take when materialised; an upper bound where they are sparse.

        Parameters
        ----------
        dtype
            float32 or float64.
        format
            As in `materialize`; ``"rows"`` is what `rows` keeps.

        Examples
        --------
        >>> import numpy as np
        >>> Channels([Channel("X", None, np.ones((10, 3)))]).memory()
        120
        """
        dtype = _as_dtype(dtype)
        if format == "rows":
            return self._rows_memory(dtype)
        return sum(
            sparse_bytes(channel.shape, bound, dtype) if sparse else dense_bytes(channel.shape, dtype)
            for channel, bound, sparse in zip(self, self._trie.bounds, self._formats(format), strict=True)
        )

    def materialize(self, dtype: Any = np.float32, format: Format = "auto", limit: int | None = None) -> list[Any]:  # noqa: A002
        """The channels as matrices X_1, ..., X_(n_C).

        Every product is computed once: S² X from S X, and the projections of one signal together, so that
        all channels cost O((edges + n K) d). Beside the result little memory is taken.

        Parameters
        ----------
        dtype
            float32 or float64.
        format
            ``"dense"`` NumPy arrays, ``"sparse"`` CSR arrays, or ``"auto"``: CSR where at most 1 in 32
            entries is not zero, by the bound that the table shows; there products with it become cheaper.
        limit
            Refuse to take more bytes than this; what would be taken is `memory`.

        Returns
        -------
        list of array or csr_array
            Read-only or shared with the input where a channel is its input.

        Examples
        --------
        >>> import numpy as np
        >>> import pegfan as pf
        >>> graph = pf.Graph.from_edges([[0, 1]], features=np.array([[2.0], [4.0]]))
        >>> from pegfan.channels import make_fsgnn_channels
        >>> make_fsgnn_channels(graph, hops=1, regime="heterophily", scaling="none").materialize(np.float64)
        [array([[2.],
               [4.]]), array([[4.],
               [2.]])]
        """
        dtype = _as_dtype(dtype)
        formats = self._formats(format)
        needed = self.memory(dtype, format)
        if limit is not None and needed > check_integer(limit, "limit", least=0):
            raise MemoryError(
                f"the channels take up to {_bytes(needed)}, and the limit is {_bytes(limit)}; use apply or rows, "
                "fewer channels, or another format"
            )
        try:
            return self._trie.materialize(dtype, formats, self.nodes.order, self._leave)
        except MemoryError as error:
            raise MemoryError(
                f"the channels need up to {_bytes(needed)}, more than there is; use apply, rows or fewer channels"
            ) from error

    def apply(self, weights: Sequence[Any]) -> list[Any]:
        """P_i(X_i W_i) for every channel, without forming P_i X_i.

        Parameters
        ----------
        weights
            One matrix W_i per channel, with as many rows as the channel has columns: arrays or torch tensors.

        Examples
        --------
        >>> import numpy as np
        >>> import pegfan as pf
        >>> graph = pf.Graph.from_edges([[0, 1]], features=np.array([[2.0], [4.0]]))
        >>> from pegfan.channels import make_fsgnn_channels
        >>> channels = make_fsgnn_channels(graph, hops=1, regime="heterophily", scaling="none")
        >>> channels.apply([np.array([[1.0]]), np.array([[3.0]])])
        [array([[2.],
               [4.]]), array([[12.],
               [ 6.]])]
        """
        if len(weights) != len(self):
            raise ValueError(f"{len(self)} channels need as many weights, got {len(weights)}")
        return [channel.apply(w) for channel, w in zip(self, weights, strict=True)]

    def rows(self, nodes: Any, dtype: Any = np.float32) -> list[Any]:
        """Some rows of every channel, for training in batches of nodes.

        The first call computes the hops and the scaling coefficients of their levels and keeps them; that is
        a fraction of all channels (``memory(format="rows")``). After that, a row costs O(d) per channel.

        Parameters
        ----------
        nodes
            Node indices.
        dtype
            float32 or float64.

        Returns
        -------
        list of array or csr_array
            Sparse where a channel is best kept sparse.

        Examples
        --------
        >>> import numpy as np
        >>> Channels([Channel("X", None, np.arange(6.0).reshape(3, 2))]).rows([2, 0])
        [array([[4., 5.],
               [0., 1.]], dtype=float32)]
        """
        index = node_indices(nodes, self.n)
        dtype = _as_dtype(dtype)
        return self.rows_at(self.places[index], dtype)

    @cached_property
    def places(self) -> IntArray:
        """The place of every node's row; nodes whose rows are equal in all channels share one.

        Where channels tell nodes apart that look alike, rows are sorted by class, and then by those channels.
        """
        first, position = self.nodes.first, self.nodes.position
        if self._sorted is not None:
            keys, ranked = np.column_stack(self._keys), self._sorted
            new = np.concatenate([[True], (keys[ranked][1:] != keys[ranked][:-1]).any(axis=1)])
            first = np.empty_like(ranked)
            first[ranked] = np.maximum.accumulate(np.where(new, np.arange(self.n), 0))
        elif not self.alike or first is None:
            first = np.arange(self.n)
        return first if position is None else first[position]

    def at(self, channel: Channel, places: Any) -> Any:
        """Which rows a channel has at some places."""
        if self._sorted is None or self.nodes.first is None:
            return places
        return self._sorted[places] if channel.apart else self.nodes.first[self._sorted[places]]

    def at_places(self, channel: Channel) -> Channel:
        """An added input with its rows at their places, where these are sorted; else the channel itself, see `at`."""
        if self._sorted is None or not channel.apart:
            return channel
        key = f"at places: {channel.name}"
        if key not in self.kept:
            signal = channel.signal[self._sorted]
            self.kept[key] = Channel.inside((), signal, channel.nodes, channel.name, apart=True)
        found: Channel = self.kept[key]
        return found

    def rows_at(self, places: Any, dtype: Any) -> list[Any]:
        """Rows of every channel at some places, which nothing checks; dtypes are those of `rows`."""
        if dtype not in self._prepared:
            with KEEPING:  # in several threads, once
                if dtype not in self._prepared:
                    self._prepared[dtype] = self._prepare(dtype)
        values, scales = self._prepared[dtype]
        at = {channel.apart: self.at(channel, places) for channel in self}
        lifted: dict[Any, Any] = {}
        return [
            values[i][at[c.apart]] if i in values else scales[i].rows(at[c.apart], cast(int, c.scale), lifted)
            for i, c in enumerate(self)
        ]

    # -------------------------------------------------------------------- inside

    @cached_property
    def _trie(self) -> Trie:
        return Trie(self)

    def _formats(self, format: str) -> list[bool]:  # noqa: A002
        """Whether each channel is sparse."""
        check_choice(format, "format", ("auto", "dense", "sparse"))
        if format != "auto":
            return [format == "sparse"] * len(self)
        return [
            bound <= SPARSE_BELOW * channel.shape[0] * channel.shape[1]
            for channel, bound in zip(self, self._trie.bounds, strict=True)
        ]

    def _leave(self, i: int, value: Any) -> Any:
        return self.nodes.leave(value, self[i].apart or not self.alike)

    @cached_property
    def _keys(self) -> list[Any]:
        """What tells rows apart: the class of a place, and hashes of the rows of channels that do not go by class."""
        return [self.nodes.first, *(equal_rows(channel.signal) for channel in self if channel.apart)]

    @cached_property
    def _sorted(self) -> IntArray | None:
        """The places sorted by what tells rows apart; None where that is the place, or the class alone."""
        if not self.alike or not any(channel.apart for channel in self):
            return None
        return np.lexsort((*self._keys[1:], self._keys[0]))

    def _prepare(self, dtype: Any) -> tuple[dict[int, Any], dict[int, Scales]]:
        values: dict[int, Any] = {}
        scales: dict[int, Scales] = {}
        for stem, value in self._trie.walk(dtype, lambda stem: stem.sparse):
            if stem.channel is not None:
                values[stem.channel] = value
            for group in stem.projections.values():
                shared = Scales(group[0][1], value)
                shared.prepare([head.scale for _, head in group])
                scales.update((i, shared) for i, _ in group)
        values.update((i, values[original]) for i, original in self._trie.copies.items())
        return values, scales

    def _rows_memory(self, dtype: Any) -> int:
        total = 0
        waiting = list(self._trie.roots)
        while waiting:
            stem = waiting.pop()
            waiting.extend(stem.below)
            if stem.channel is not None or stem.projections:
                total += _stem_bytes(stem, (self.n, stem.columns), dtype)
            for group in stem.projections.values():
                tree, means = group[0][1].system.hierarchy, group[0][1].means
                if means is not None:
                    total += len(group) * _stem_bytes(stem, (len(means.sizes), stem.columns), dtype)
                levels = {level for _, head in group for level in (head.scale, head.scale + 1) if 0 < level < tree.K}
                for level in levels:
                    shape = (tree.n_clusters[level - 1], stem.columns)
                    total += _stem_bytes(stem, shape, dtype) + self.n * (4 + dtype.itemsize)
        return total

    def __repr__(self) -> str:
        return f"Channels({', '.join(self.names)})"

    def __str__(self) -> str:
        head = ("name", "operator", "input", "shape", "nonzeros", "density", "dense", "sparse")
        table = [head, *(self._line(channel, bound) for channel, bound in zip(self, self._trie.bounds, strict=True))]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join([*map(str.ljust, row[:4], widths[:4]), *map(str.rjust, row[4:], widths[4:])]) for row in table
        ]
        dense, sparse = _bytes(self.memory(format="dense")), _bytes(self.memory(format="sparse"))
        return "\n".join([*lines, f"{len(self)} channels of float32: {dense} dense, at most {sparse} sparse"])

    def _line(self, channel: Channel, bound: int) -> tuple[str, ...]:
        n, d = channel.shape
        sign = "≤ " if channel.factors else ""
        return (
            channel.name,
            product_name(channel.factors),
            channel.input_name,
            f"{n}×{d}",
            f"{sign}{bound:,}",
            f"{sign}{bound / max(n * d, 1):.2%}",
            _bytes(dense_bytes(channel.shape, np.float32)),
            _bytes(sparse_bytes(channel.shape, bound, np.float32)),
        )


def _renumbered(
    operator: Operator, order: IntArray | None, n: int, systems: dict[int, FrameletSystem] | None = None
) -> Operator:
    """An operator in an order of n nodes, on the sides that have so many rows."""
    rows, columns = (order if size == n else None for size in operator.shape)
    return renumbered(operator, rows, columns, systems)


def as_input(values: Any, name: str) -> Any:
    """What a channel acts on, checked: a dense matrix, or a CSR matrix in its canonical form."""
    if issparse(values):
        check_sparse(values, f"the input of channel {name!r}")
        array: Any = values  # kept as it is where possible: channels that share an input share products
        if not (isinstance(values, csr_array) and values.has_canonical_format):
            array = csr_array(values, copy=True)
            array.sum_duplicates()
    else:
        array = as_array(values, f"the input of channel {name!r}")
        array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"the input of channel {shown(name)} must be a matrix of real numbers with one row per node, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if not all_finite(array):
        raise ValueError(f"the input of channel {shown(name)} holds NaN or infinity; fill or remove these values")
    return array


def _as_dtype(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, type | str | np.dtype):
        raise TypeError(f"dtype must be float32 or float64, got {shown(dtype)}")
    found: np.dtype[Any] = np.dtype(dtype)
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {found}")
    return found


def node_indices(nodes: Any, n: int) -> IntArray:
    """Check indices of some of n nodes, which may repeat."""
    index = as_array(nodes, "nodes")
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise TypeError(f"nodes must be a vector of node indices, got {index.dtype} of shape {index.shape}")
    if index.size and not 0 <= index.min() <= index.max() < n:
        bad = index[(index < 0) | (index >= n)][0]
        raise ValueError(f"there is no node {bad}: nodes are numbered 0 to {n - 1}")
    return index.astype(np.int64)  # an empty list is one of floats


def product_name(factors: Sequence[Operator]) -> str:
    """The factors' names, powers gathered: "F_0 S^2"."""
    runs = [(name, len(list(run))) for name, run in groupby(factor.name for factor in factors)]
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in runs) or "1"


def _stem_bytes(stem: Stem, shape: tuple[int, int], dtype: Any) -> int:
    if stem.sparse:
        return sparse_bytes(shape, min(stem.bound, shape[0] * shape[1]), dtype)
    return dense_bytes(shape, dtype)


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    power = min(int(np.log10(count)) // 3, 4)
    return f"{count / 1000**power:.3g} {('KB', 'MB', 'GB', 'TB')[power - 1]}"
