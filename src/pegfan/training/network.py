"""The network of Section IV in NumPy: its first weights, and its predictions. `pegfan.models` has its torch twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from pegfan import _defaults as default
from pegfan._arrays import Float32Array
from pegfan._checks import as_array, check_integer, check_kind, check_mapping, shown
from pegfan._limits import check_memory
from pegfan.channels import Channel, Channels
from pegfan.channels.channels import node_indices
from pegfan.running import one_thread
from pegfan.training.batches import ROWS, suits
from pegfan.training.head import Layout, added
from pegfan.training.rows import TARGET, Units
from pegfan.training.settings import Settings

_ROWS = 65536  # rows that are computed at a time


class Network:
    """A network with its weights, as NumPy arrays. Its equations stand in `pegfan.models.ChannelNetwork`.

    Parameters
    ----------
    state
        Arrays by the names of the torch module's ``state_dict``, such as that of a `Run`. That of a network for numeric
        targets also has ``"target"``: mean and scale of the targets, in whose units predictions are.
    settings
        Settings, or a mapping of those that differ from the defaults; ``hidden``, ``layers`` and ``hop_normalize`` are
        looked at.

    Attributes
    ----------
    state : dict
        The weights, float32.
    settings : Settings
    widths : tuple of int
        The numbers of columns of the channels.
    classes : int
        The number of outputs: one for numeric targets.
    units : Units or None
        Of the targets; None where classes are predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan.channels import Channel, Channels
    >>> network = Network.draw([3], classes=2, settings={"hidden": 8}, seed=0)
    >>> network
    Network(widths=(3,), classes=2)
    >>> np.exp(network.predict(Channels([Channel("X", None, np.eye(3))]))).sum(axis=1)
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(self, state: Mapping[str, Any], settings: Settings | Mapping[str, Any] | None = None) -> None:
        self.settings = Settings.of(settings)
        check_mapping(state, "state")
        self.state: dict[str, Float32Array] = {
            name: as_array(value, name).astype(np.float32, copy=False)
            for name, value in state.items()
            if name != TARGET
        }
        self.units = Units.stored(state[TARGET]) if TARGET in state else None
        count = sum(name.startswith("channel_layers.") and name.endswith(".weight") for name in self.state)
        self.widths = tuple(int(self._matrix(f"channel_layers.{i}.weight").shape[1]) for i in range(max(count, 1)))
        self.classes = int(self._matrix("output.weight").shape[0])
        shapes: dict[str, tuple[int, ...]] = {"attention_logits": (count,)}
        for layer, (rows, columns) in _layers(self.widths, self.classes, self.settings).items():
            shapes |= {f"{layer}.weight": (rows, columns), f"{layer}.bias": (rows,)}
        for name, shape in shapes.items():
            if (actual := self._array(name).shape) != shape:
                raise ValueError(f"{name} has shape {actual}, and in a network of {self._description} it has {shape}")
        if unknown := self.state.keys() - shapes:
            raise ValueError(f"a network of {self._description} has no {min(unknown)!r}")
        if self.units is not None and self.classes != 1:
            raise ValueError(f"a network that predicts numbers has one output, this one has {self.classes}")

    @classmethod
    def draw(
        cls,
        widths: Sequence[int],
        classes: int,
        settings: Settings | Mapping[str, Any] | None = None,
        seed: int = default.SEED,
    ) -> Self:
        """The network that a training starts from: weights uniform in ±1/√columns, attention equal.

        Parameters
        ----------
        widths
            The numbers of columns of the channels: ``channels.widths``.
        classes
            The number of classes.
        settings
            As above.
        seed
            Of the weights; its lower 32 bits count.

        Notes
        -----
        These are bit for bit the weights of ``torch.manual_seed(seed)`` and ``ChannelNetwork(widths, classes, ...)``
        where torch's kernels fuse b − a times x plus a into one rounding, as they do on every CPU with AVX2. On others
        (``ATEN_CPU_CAPABILITY=default``) torch rounds twice, and half of its weights differ in their last bits.

        Examples
        --------
        >>> Network.draw([1], classes=2, settings={"hidden": 1}, seed=0).state["channel_layers.0.weight"]
        array([[-0.00748682]], dtype=float32)
        """
        chosen = Settings.of(settings)
        generator = np.random.RandomState(int(seed) % 2**32)  # torch's generator is this one

        def uniform(shape: tuple[int, ...], bound: np.float32) -> Float32Array:
            bits = generator.randint(0, 2**32, size=shape, dtype=np.uint32) % 2**24
            return ((bits / 2.0**23 - 1.0) * np.float64(bound)).astype(np.float32)  # exact until it is rounded once

        state: dict[str, Any] = {"attention_logits": np.ones(len(widths), np.float32)}
        for name, shape in _layers(widths, classes, chosen).items():
            bound = np.float32(shape[1] ** -0.5 if shape[1] else 0.0)
            state |= {f"{name}.weight": uniform(shape, bound), f"{name}.bias": uniform(shape[:1], bound)}
        return cls(state, chosen)

    @property
    def attention(self) -> Float32Array:
        """The weights α of the channels; they sum to one."""
        e = np.exp(self.state["attention_logits"] - self.state["attention_logits"].max())
        return np.asarray(e / e.sum())

    def predict(self, channels: Channels, nodes: Any = None) -> Any:
        """Log-probabilities of the classes, or predicted numbers in one column; in float32, on one thread.

        A channel P X with weights W is computed for all nodes as P(X W) or (P X) W, whichever lets P act on fewer
        columns; it is dropped before the next one. So memory is that of a few matrices of n rows and at most
        ``hidden`` columns, however many channels there are; what follows takes 65,536 rows at a time. Of a graph that
        is trained on in batches (see `pegfan.train`), rows are put together block by block as they are there: hops are
        computed once for all channels.

        Parameters
        ----------
        channels
            With the widths of the network.
        nodes
            Node indices; by default all.

        Returns
        -------
        array
            One row per node asked for; numbers, which are in the units of the targets, as float64.
        """
        if check_kind(channels, "channels", Channels).widths != self.widths:
            raise ValueError(f"the network is for channels of {self.widths} columns, these have {channels.widths}")
        asked = np.arange(channels.n) if nodes is None else node_indices(nodes, channels.n)
        first, *later = self._names
        if not len(asked):
            return np.empty((0, self.classes), np.float32 if self.units is None else np.float64)
        rows, back = np.unique(channels.places[asked], return_inverse=True)
        with one_thread():
            sums = np.zeros((len(rows), len(self.state[f"{first}.bias"])), np.float32)
            if suits(channels, channels.n):
                self._sum_parts(sums, lambda part: channels.rows_at(rows[part], np.dtype(np.float32)), first)
            else:
                for i, channel in enumerate(channels):
                    self._add(sums, i, channel, channels.at(channel, rows), self.state[f"{first}.weight"])
                sums += self.state[f"{first}.bias"]
            return self._outputs(sums, later)[back]

    def predict_rows(self, rows: Callable[[slice], Sequence[Any]], count: int) -> Any:
        """What the network says of some rows, wherever they are: what `predict` says of the nodes of a large graph.

        Parameters
        ----------
        rows
            Gives the rows of all channels for a part of them; 2,048 at a time are asked for.
        count
            How many there are.

        Examples
        --------
        >>> x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
        >>> network = Network.draw([2], 4)
        >>> network.predict_rows(lambda part: [x[part]], 3).shape
        (3, 4)
        """
        first, *later = self._names
        check_memory(4.0 * check_integer(count, "count", least=0) * self.settings.hidden, "what the network says")
        sums = np.zeros((count, len(self.state[f"{first}.bias"])), np.float32)
        with one_thread():
            self._sum_parts(sums, rows, first)
            return self._outputs(sums, later)

    @property
    def _names(self) -> list[str]:
        """The layers after those of the channels."""
        return [*(f"hidden_layers.{i}" for i in range(self.settings.layers - 2)), "output"]

    def _outputs(self, sums: Float32Array, later: Sequence[str]) -> Any:
        """Log-probabilities or numbers, from what the first layer gives."""
        for name in later:
            weight, bias = self.state[f"{name}.weight"], self.state[f"{name}.bias"]
            sums = np.maximum(sums, 0) @ weight.T + bias
        if self.units is not None:
            return self.units.values(sums)
        sums -= sums.max(axis=1, keepdims=True)
        sums -= np.log(np.exp(sums).sum(axis=1, keepdims=True))
        return sums

    def _sum_parts(self, sums: Float32Array, rows: Callable[[slice], Sequence[Any]], first: str) -> None:
        """What the first layer gives, or that after the channels' own, from rows of all channels."""
        state = {**self.state, **{f"output.{part}": self.state[f"{first}.{part}"] for part in ("weight", "bias")}}
        layout, alpha = Layout(state), self.attention
        w = np.zeros(layout.starts[-1], np.float32)
        layout.fill(w, state)
        *W, b, V, c, _ = layout.views(w)
        for start in range(0, len(sums), ROWS):
            part = slice(start, min(start + ROWS, len(sums)))
            parts = zip(rows(part), zip(W, b, V, strict=True), alpha, strict=True)
            sums[part] = added(c, (layout.forward(*each, self.settings.hop_normalize)[0] for each in parts))

    def _add(self, sums: Float32Array, i: int, channel: Channel, rows: Any, following: Float32Array) -> None:
        """Add what channel i contributes to the layer that follows: ReLU(α_i N(X_i W_i + b_i)) V_i."""
        weight, bias = self.state[f"channel_layers.{i}.weight"], self.state[f"channel_layers.{i}.bias"]
        hidden, columns = weight.shape
        V, alpha = following[:, i * hidden : (i + 1) * hidden].T, self.attention[i]
        narrow = columns <= hidden
        x: Any = channel.signal
        if narrow:
            x = x.astype(np.float32, copy=False)
        else:
            x = np.empty((x.shape[0], hidden), np.float32)
            for block in _blocks(len(x)):
                x[block] = channel.signal[block].astype(np.float32, copy=False) @ weight.T
        for factor in reversed(channel.factors):
            x = factor @ x
        for block in _blocks(len(rows)):
            h = x[rows[block]]
            h = (h @ weight.T if narrow else h) + bias
            if self.settings.hop_normalize:
                h /= np.maximum(np.sqrt(np.einsum("ij,ij->i", h, h)), np.float32(1e-12))[:, None]
            sums[block] += np.maximum(alpha * h, 0) @ V

    @property
    def _description(self) -> str:
        return (
            f"channels of {', '.join(map(str, self.widths))} columns, {self.classes} classes, "
            f"hidden={self.settings.hidden} and layers={self.settings.layers}"
        )

    def _array(self, name: str) -> Float32Array:
        if name not in self.state:
            raise ValueError(f"the state has no {shown(name)}; is it that of another network?")
        return self.state[name]

    def _matrix(self, name: str) -> Float32Array:
        array = self._array(name)
        if array.ndim != 2:
            raise ValueError(f"{name} must be a matrix, got shape {array.shape}")
        return array

    def __repr__(self) -> str:
        return f"Network(widths={self.widths}, classes={self.classes})"


def _layers(widths: Sequence[int], classes: int, settings: Settings) -> dict[str, tuple[int, int]]:
    """Rows and columns of the linear layers, in the order in which they are drawn."""
    inner = [len(widths) * settings.hidden, *[settings.hidden] * (settings.layers - 2)]
    shapes = {f"channel_layers.{i}": (settings.hidden, int(width)) for i, width in enumerate(widths)}
    shapes |= {f"hidden_layers.{i}": (settings.hidden, width) for i, width in enumerate(inner[:-1])}
    return shapes | {"output": (classes, inner[-1])}


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS) for start in range(0, rows, _ROWS))
