"""The fast path on CPUs: the network of `pegfan.models`, trained in operator form with a backward pass written out.

What makes it fast: operators act on the weights' columns (see `chains`), only the rows of training and validation
nodes are computed, one forward serves a step's validation and the next step's training loss, each channel's weights
are updated and used again while they are in the caches, dropout takes 16 random bits per entry, and a whole step is
one compiled call: in C where the extension is (`NativeNetwork`), else by numba (`FastNetwork`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegfan._arrays import LINE, IntArray, aligned
from pegfan._compiled import native
from pegfan.channels import Channels
from pegfan.channels._canonical import Canonical
from pegfan.training.chains import Chain
from pegfan.training.rows import Rows, loss_weights

_AHEAD = 8  # entries that loops may look ahead, past the last one, too


class Tables(NamedTuple):
    """The matrices of all channels (see `_kernels`), and where the weights are.

    ``forward`` and ``back`` hold matrices in the order of their use, those of channel i from ``_starts[i]`` on. W_i has
    ``sizes[i]`` rows from ``places[i]`` on; b, V, c and a begin at the four places of ``rest``.
    ``gradient`` is room for that of one W_i.
    """

    forward: Any
    forward_starts: Any
    back: Any
    back_starts: Any
    places: Any
    sizes: Any
    rest: Any
    gradient: Any


class Packed:
    """The matrices of all channels for the rows of a split, as the kernels read them.

    Those that several channels share are stored once.
    """

    def __init__(self, canonical: Canonical, train: IntArray, val: IntArray, dtype: Any) -> None:
        rows = np.concatenate([train, val])
        self.chains = [
            Chain(channel, canonical.at(i, rows), len(train), dtype) for i, channel in enumerate(canonical.channels)
        ]
        pointers: list[Any] = []
        indices: list[Any] = [np.zeros(0, np.int32)]
        data: tuple[list[Any], list[Any]] = ([np.zeros(0, dtype)], [np.zeros(0, dtype)])  # sparse, dense
        known: dict[Any, tuple[int, ...]] = {}
        first, places = 0, [0, 0]
        ways: tuple[list[Any], list[Any]] = ([], [])
        starts: tuple[list[int], list[int]] = ([0], [0])
        for chain in self.chains:
            for way, start, matrices in zip(ways, starts, (chain.forward_links, chain.back_links), strict=True):
                for matrix in matrices:
                    if matrix.digest not in known:
                        dense = int(matrix.dense)
                        known[matrix.digest] = (dense, *matrix.shape, first, places[dense])
                        pointers.append(matrix.pointers + places[0])
                        indices.append(matrix.indices)
                        data[dense].append(matrix.data)
                        first += len(matrix.pointers)
                        places[dense] += len(matrix.data)
                    way.append(known[matrix.digest])
                start.append(len(way))
            chain.forward_links, chain.back_links = [], []  # they are copied now
        self.forward, self.back = map(np.array, ways)
        self.forward_starts, self.back_starts = map(np.array, starts)
        indices.append(np.zeros(_AHEAD, np.int32))
        self.numbers = tuple(map(np.concatenate, (pointers, indices, *data)))


def _packed(canonical: Canonical, train: IntArray, val: IntArray, dtype: Any) -> Packed:
    """The matrices for a split; the newest are kept, for a search trains on the same ones again and again."""
    key = (train.tobytes(), val.tobytes(), dtype)
    if canonical.packed is None or canonical.packed[0] != key:
        canonical.packed = None  # frees the memory of the old ones first
        canonical.packed = key, Packed(canonical, train, val, dtype)
    packed: Packed = canonical.packed[1]
    return packed


class FastNetwork:
    """The weights of a two-layer `ChannelNetwork`, its forward pass for some rows, its gradients and its optimiser.

    `weights` are those of the training rows in the loss, and sum to one. With labels the loss is the cross entropy,
    with targets (float64) the squared error of one output. Hidden units are filled up to a multiple of `lanes` with
    ones that are and stay zero.
    """

    lanes = 1

    def __init__(
        self,
        channels: Channels,
        state: dict[str, Any],
        train: Rows,
        val: Rows,
        weights: Any,
        hop_normalize: bool,
        dtype: Any = np.float32,
    ) -> None:
        self.dtype, self.normalize = np.dtype(dtype), bool(hop_normalize)
        self.train, self.val = len(train.places), len(val.places)
        self.y = np.concatenate([train.labels, val.labels])
        self.numeric = self.y.dtype.kind == "f"
        self.y = self.y.astype(self.dtype) if self.numeric else self.y
        self.loss_weights = np.asarray(weights, self.dtype)
        self.val_weights = loss_weights(val.labels, False, val.weights).astype(self.dtype)
        packed = _packed(channels.canonical, train.places, val.places, self.dtype)
        self.chains, self.numbers = packed.chains, packed.numbers
        count, (classes, width) = len(self.chains), state["output.weight"].shape
        self.hidden = width // count
        hidden = -(-self.hidden // self.lanes) * self.lanes
        self.tables = self._lay_out(packed, classes, hidden)
        self.w, self.m, self.v, self.kept = (_aligned(int(self.tables.rest[-1]), self.dtype) for _ in range(4))
        self.W, self.b, self.V, self.c, self.a = self._views(self.w, count, classes, hidden)
        self._take(state)
        self.H = _aligned((count, len(self.y), hidden), self.dtype)
        self.inverse = np.zeros((count, len(self.y)), self.dtype)
        self.gradient = _aligned((self.train, hidden), self.dtype)
        self.error = np.zeros((self.train, classes), self.dtype)
        self.train_logits = np.zeros((self.train, classes), self.dtype)
        self.val_logits = np.zeros((self.val, classes), self.dtype)
        self.no_masks: Any = np.zeros((count, 0, 0), np.uint8)
        self.masks, self.scale = self.no_masks, self.dtype.type(1)
        self.grad_b, self.grad_V = np.zeros_like(self.b), np.zeros_like(self.V)
        self.grad_c, self.grad_a = np.zeros_like(self.c), np.zeros_like(self.a)
        self.grad_alpha = np.zeros_like(self.a)
        self.steps = 0
        self._set_alpha()
        self._forward()

    def _lay_out(self, packed: Packed, classes: int, hidden: int) -> Tables:
        """Places for all weights, one after another, each at the beginning of a cache line."""
        sizes, count = [len(chain.used) for chain in self.chains], len(self.chains)
        ends = np.cumsum([_whole(size * hidden) for size in sizes])
        rest = [ends[-1], *map(_whole, (count * hidden, count * classes * hidden, classes, count))]
        largest = max(way[:, 1].max() for way in (packed.forward, packed.back)) * hidden
        self.room = _aligned(2 * _whole(largest), self.dtype)
        return Tables(
            *(packed.forward, packed.forward_starts, packed.back, packed.back_starts),
            *(np.concatenate([[0], ends[:-1]]), np.array(sizes), np.cumsum(rest)),
            _aligned(max(sizes) * hidden, self.dtype),
        )

    def _views(self, w: Any, count: int, classes: int, hidden: int) -> tuple[list[Any], Any, Any, Any, Any]:
        """All W_i, b, V, c and a, in the memory where they lie one after another."""
        places, sizes, (at_b, at_V, at_c, at_a, _) = self.tables.places, self.tables.sizes, self.tables.rest
        W = [w[at : at + rows * hidden].reshape(rows, hidden) for at, rows in zip(places, sizes, strict=True)]
        b = w[at_b : at_b + count * hidden].reshape(count, hidden)
        V = w[at_V : at_V + count * classes * hidden].reshape(count, classes, hidden)
        return W, b, V, w[at_c : at_c + classes], w[at_a : at_a + count]

    def _take(self, state: dict[str, Any]) -> None:
        (count, classes, _), hidden = self.V.shape, self.hidden
        for i, chain in enumerate(self.chains):
            self.W[i][:, :hidden] = state[f"channel_layers.{i}.weight"].T[chain.used]
            self.b[i, :hidden] = state[f"channel_layers.{i}.bias"]
        self.V[..., :hidden] = state["output.weight"].reshape(classes, count, hidden).transpose(1, 0, 2)
        self.c[:], self.a[:] = state["output.bias"], state["attention_logits"]

    def _set_alpha(self) -> None:
        """The attention α = softmax(a)."""
        e = np.exp(self.a - self.a.max())
        self.alpha = e / e.sum()

    def _forward(self) -> None:
        from pegfan.training import _kernels

        for i in range(len(self.chains)):
            _kernels.forward(
                *(i, self.tables, self.numbers, self.w, self.room, self.b[i]),
                *(self.normalize, self.H[i], self.inverse[i]),
            )

    def drop(self, seed: int, rate: float) -> None:
        """Draw the masks of a step; rate 0 keeps everything."""
        from pegfan._products import keep_mask

        if rate == 0:
            self.masks, self.scale = self.no_masks, self.dtype.type(1)
            return
        start, threshold, scale = drawing(seed, rate)
        self.scale = self.dtype.type(scale)
        if not self.masks.size:
            self.masks = np.empty((len(self.chains), *self.gradient.shape), np.uint8)
        keep_mask(np.uint64(start), np.uint64(threshold), self.masks)

    def loss(self) -> float:
        """The loss of the training rows with the current masks; prepares the gradients."""
        from pegfan.training import _kernels

        logits = self.train_logits
        _kernels.compute_logits(self.H, self.alpha, self.V, self.masks, self.scale, 0, self.c, logits)
        measure = _kernels.squared_error if self.numeric else _kernels.cross_entropy
        return float(measure(logits, self.y[: self.train], self.loss_weights, self.error))

    def step(self, settings: Any, following: tuple[int, float] | None = None) -> None:
        """One step of Adam, channel by channel: backward, update, forward again.

        `following` is what `drop` will be called with next, for those who can use it at once.
        """
        from pegfan.training import _kernels

        self.steps += 1
        _kernels.step(
            *(self.tables, self.numbers),
            (self.w, self.m, self.v, self.b, self.V, self.alpha),
            (self.H, self.inverse, self.normalize, self.error, self.gradient),
            *(self.masks, self.scale),
            (self.grad_b, self.grad_V, self.grad_c, self.grad_a, self.grad_alpha),
            self.room,
            _rates(settings),
            self.steps,
        )
        self._set_alpha()

    def validate(self) -> tuple[float, Any]:
        """The loss of the validation rows, without dropout, and their logits."""
        from pegfan.training import _kernels

        one, logits = self.dtype.type(1), self.val_logits
        _kernels.compute_logits(self.H, self.alpha, self.V, self.no_masks, one, self.train, self.c, logits)
        nothing = np.zeros((0, 0), self.dtype)
        measure = _kernels.squared_error if self.numeric else _kernels.cross_entropy
        return float(measure(logits, self.y[self.train :], self.val_weights, nothing)), logits

    def snapshot(self) -> Any:
        """A copy of all weights; there is room for one."""
        self.kept[:] = self.w
        return self.kept

    def state_dict(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as the ``state_dict`` of the network; weights of columns that are all zero are zero."""
        count, classes, _ = self.V.shape
        W, b, V, c, a = self._views(snapshot, *self.V.shape)
        state: dict[str, Any] = {}
        for i, chain in enumerate(self.chains):
            full = np.zeros((self.hidden, chain.width), self.dtype)
            full[:, chain.used] = W[i][:, : self.hidden].T
            state |= {f"channel_layers.{i}.weight": full, f"channel_layers.{i}.bias": b[i, : self.hidden].copy()}
        V = V[..., : self.hidden].transpose(1, 0, 2).reshape(classes, count * self.hidden)
        return state | {"output.weight": V, "output.bias": c.copy(), "attention_logits": a.copy()}


class NativeNetwork(FastNetwork):
    """The same with steps in C, in float32.

    A forward goes through to Z_i = mask relu(H_i) V_iᵀ, so the masks of a step are drawn before the forward that
    precedes it. Losses are computed after every forward; `drop` does nothing where its masks are known already.
    """

    lanes = 16

    def _forward(self) -> None:
        (count, classes, wide), rows = self.V.shape, len(self.y)
        self._words = -(-wide // 64)
        masks = [_aligned((count, self.train, self._words), np.dtype(np.uint64)) for _ in range(2)]
        self._both = [native.ffi.from_buffer("uint64_t[]", array) for array in masks]
        self._shares = np.concatenate([self.loss_weights, self.val_weights])
        self._outputs = _aligned((rows, classes), self.dtype)
        self.train_logits, self.val_logits = np.split(self._outputs, [self.train])
        self.alpha = np.zeros(count, self.dtype)
        self._Z = _aligned((count, rows, classes), self.dtype)
        self._scratch = _aligned(4 * wide, self.dtype)
        self._grads = _aligned((classes + 1) * wide + _whole(classes) + _whole(count), self.dtype)
        labels, targets = (np.zeros(rows, np.int64), self.y) if self.numeric else (self.y, self._shares)
        tables, (pointers, indices, data, dense) = self.tables, self.numbers
        arrays = {
            **{name: getattr(tables, name) for name in ("forward", "forward_starts", "back", "back_starts")},
            **{"places": tables.places, "sizes": tables.sizes, "rest": tables.rest},
            **{"pointers": pointers, "indices": indices, "data": data, "dense": dense},
            **{"w": self.w, "m": self.m, "v": self.v, "H": self.H, "inverse": self.inverse},
            **{"gradient": self.gradient, "room": self.room, "scratch": self._scratch, "grads": self._grads},
            **{"Z": self._Z, "logits": self._outputs, "error": self.error, "alpha": self.alpha},
            **{"labels": labels, "targets": targets, "weights": self._shares},
        }
        self._net = net = native.ffi.new("network *")
        self._held = [point(net, name, array) for name, array in arrays.items()]
        net.channels, net.rows, net.train, net.classes, net.hidden = count, rows, self.train, classes, wide
        net.words, net.half = self._words, self.room.size // 2
        net.numeric, net.normalized = self.numeric, self.normalize
        self._losses = native.ffi.new("double[2]")
        self._settings: Any = None
        self._draw(None)
        native.lib.network_forward(net)
        self._known()

    def _draw(self, masks: tuple[int, float] | None) -> None:
        """Draw the masks of the next forward."""
        net, self._next = self._net, masks
        net.next_masked, net.next_scale = int(masks is not None and masks[1] > 0), 1.0
        if masks is None or not net.next_masked:
            return
        start, threshold, net.next_scale = drawing(*masks)
        net.next_bits = bits = self._both[0]
        native.lib.network_draw(start, threshold, len(self.chains) * self.train, self.hidden, self._words, bits)

    def _known(self) -> None:
        """After a forward: its masks are those of the step to come, and its losses are computed."""
        net = self._net
        self._both.reverse()
        net.bits, net.masked, net.scale = net.next_bits, net.next_masked, net.next_scale
        self._now = self._next
        native.lib.network_losses(net, self._losses)

    def drop(self, seed: int, rate: float) -> None:
        """Draw the masks of a step; rate 0 keeps everything."""
        if self._now == (seed, rate):
            return
        self._draw((seed, rate))
        native.lib.network_masked(self._net)
        self._known()

    def loss(self) -> float:
        """The loss of the training rows with the current masks."""
        return float(self._losses[0])

    def step(self, settings: Any, following: tuple[int, float] | None = None) -> None:
        """One step of Adam; with the masks of the following one, `drop` need not go through the head again."""
        self.steps += 1
        self._draw(following)
        if settings is not self._settings:
            self._settings, self._rates = settings, native.ffi.new("network_rates *", [*_rates(settings), 0])
        self._rates.steps = self.steps
        native.lib.network_step(self._net, self._rates)
        self._known()

    def validate(self) -> tuple[float, Any]:
        """The loss of the validation rows, without dropout, and their logits."""
        return float(self._losses[1]), self.val_logits


def fast_network(
    channels: Channels, state: dict[str, Any], train: Rows, val: Rows, weights: Any, hop_normalize: bool
) -> FastNetwork:
    """The network in C where the extension is, else compiled by numba; see `FastNetwork`."""
    kind = FastNetwork if native is None else NativeNetwork
    return kind(channels, state, train, val, weights, hop_normalize)


def point(struct: Any, name: str, array: Any) -> Any:
    """Let a member of a C struct point to an array, which must have its dtype; what is returned keeps it alive."""
    kind = dict(native.ffi.typeof(struct[0]).fields)[name].type
    wanted = _DTYPES[kind.item.cname]
    assert array.dtype == wanted, f"{name} is {array.dtype} and not {wanted}"
    held = native.ffi.from_buffer(array)
    setattr(struct, name, native.ffi.cast(kind, held))
    return held


_DTYPES = {"int64_t": np.int64, "int32_t": np.int32, "uint64_t": np.uint64, "float": np.float32}


def drawing(seed: int, rate: float) -> tuple[int, int, float]:
    """Where the random numbers of a step begin, the threshold of 16 bits, and what the kept entries are scaled by."""
    threshold = min(round(rate * 65536), 65535)  # something is kept at any rate below 1
    start = (seed * 0x9E3779B97F4A7C15) % 2**64  # far from the start of any other step
    return start, threshold, 65536 / (65536 - threshold)


def _rates(settings: Any) -> tuple[float, ...]:
    return tuple(map(float, (settings.lr_fc, settings.lr_sca, settings.wd_fc1, settings.wd_fc2, settings.wd_sca)))


def _whole(size: int) -> int:
    """A number of entries that fills whole cache lines, whatever the dtype."""
    return -(-size // LINE) * LINE


def _aligned(shape: int | tuple[int, ...], dtype: Any) -> Any:
    return aligned(shape, dtype, np.zeros)
