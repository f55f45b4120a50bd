"""The fast path on CPUs: the network of `pegfan.models`, trained in operator form with a backward pass written out.

What makes it fast: operators act on the weights' columns (see `chains`), only the rows of training and validation
nodes are computed, one forward serves a step's validation and the next step's training loss, each channel's weights
are updated and used again while they are in the caches, dropout takes 16 random bits per entry, and a whole step is
one compiled call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 - compiled code calls it; loaded here, so that limits of threads see it

from pegfan._arrays import LINE, IntArray, aligned
from pegfan.channels import Channels
from pegfan.channels._canonical import Canonical
from pegfan.training.chains import Chain
from pegfan.training.rows import Rows, loss_weights


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
    with targets (float64) the squared error of one output.
    """

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
        hidden = width // count
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
        count, classes, hidden = self.V.shape
        for i, chain in enumerate(self.chains):
            self.W[i][:] = state[f"channel_layers.{i}.weight"].T[chain.used]
            self.b[i] = state[f"channel_layers.{i}.bias"]
        self.V[:] = state["output.weight"].reshape(classes, count, hidden).transpose(1, 0, 2)
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
        threshold = min(round(rate * 65536), 65535)  # something is kept at any rate below 1
        self.scale = self.dtype.type(65536 / (65536 - threshold))
        if not self.masks.size:
            self.masks = np.empty((len(self.chains), *self.gradient.shape), np.uint8)
        start = (seed * 0x9E3779B97F4A7C15) % 2**64  # far from the start of any other step
        keep_mask(np.uint64(start), np.uint64(threshold), self.masks)

    def loss(self) -> float:
        """The loss of the training rows with the current masks; prepares the gradients."""
        from pegfan.training import _kernels

        logits = self.train_logits
        _kernels.compute_logits(self.H, self.alpha, self.V, self.masks, self.scale, 0, self.c, logits)
        measure = _kernels.squared_error if self.numeric else _kernels.cross_entropy
        return float(measure(logits, self.y[: self.train], self.loss_weights, self.error))

    def step(self, settings: Any) -> None:
        """One step of Adam, channel by channel: backward, update, forward again."""
        from pegfan.training import _kernels

        self.steps += 1
        _kernels.step(
            *(self.tables, self.numbers),
            (self.w, self.m, self.v, self.b, self.V, self.alpha),
            (self.H, self.inverse, self.normalize, self.error, self.gradient),
            *(self.masks, self.scale),
            (self.grad_b, self.grad_V, self.grad_c, self.grad_a, self.grad_alpha),
            self.room,
            tuple(map(float, (settings.lr_fc, settings.lr_sca, settings.wd_fc1, settings.wd_fc2, settings.wd_sca))),
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
        count, classes, hidden = self.V.shape
        W, b, V, c, a = self._views(snapshot, count, classes, hidden)
        state: dict[str, Any] = {}
        for i, chain in enumerate(self.chains):
            full = np.zeros((hidden, chain.width), self.dtype)
            full[:, chain.used] = W[i].T
            state |= {f"channel_layers.{i}.weight": full, f"channel_layers.{i}.bias": b[i].copy()}
        V = V.transpose(1, 0, 2).reshape(classes, count * hidden)
        return state | {"output.weight": V, "output.bias": c.copy(), "attention_logits": a.copy()}


def _whole(size: int) -> int:
    """A number of entries that fills whole cache lines, whatever the dtype."""
    return -(-size // LINE) * LINE


def _aligned(shape: int | tuple[int, ...], dtype: Any) -> Any:
    return aligned(shape, dtype, np.zeros)
