"""The fast path on CPUs: the network of `pegfan.models`, trained in operator form with a backward pass written out.

What makes it fast: operators act on the weights' columns (see `chains`), only the rows of training and validation
nodes are computed, one forward serves a step's validation and the next step's training loss, each channel's weights
are updated and used again while they are in the caches, dropout takes 16 random bits an entry, and Adam is one loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan.channels import Channels
from pegfan.training.chains import Chain

IntArray = NDArray[np.int64]


class FastNetwork:
    """The weights of a `ChannelNetwork`, its forward pass for some rows, its gradients and its optimiser.

    Parameters
    ----------
    channels
        The channels.
    state
        The ``state_dict`` of a two-layer network, as NumPy arrays.
    train, val
        The nodes whose rows are needed.
    labels
        Of all nodes.
    weights
        The weight of every training node in the loss; they sum to one.
    hop_normalize
        As in `ChannelNetwork`.
    dtype
        float32 or float64.
    """

    def __init__(
        self,
        channels: Channels,
        state: dict[str, Any],
        train: IntArray,
        val: IntArray,
        labels: IntArray,
        weights: Any,
        hop_normalize: bool,
        dtype: Any = np.float32,
    ) -> None:
        dtype = np.dtype(dtype)
        self.dtype, self.normalize = dtype, hop_normalize
        self.train, self.val = len(train), len(val)
        rows = np.concatenate([train, val])
        self.y = labels[rows]
        self.loss_weights = np.asarray(weights, dtype)
        self.val_weights = np.full(len(val), 1.0 / max(len(val), 1), dtype)
        self.chains = [Chain(channel, rows, len(train), dtype) for channel in channels]
        self.state = state
        count = len(self.chains)

        def stored(name: str) -> Any:
            return np.array(state[name], dtype=dtype, order="C")

        self.W = [
            np.ascontiguousarray(stored(f"channel_layers.{i}.weight").T[chain.used])
            for i, chain in enumerate(self.chains)
        ]
        self.b = [stored(f"channel_layers.{i}.bias") for i in range(count)]
        self.a = stored("attention_logits")
        self._set_alpha()
        hidden = self.b[0].size
        V = stored("output.weight")
        self.V = [np.ascontiguousarray(V[:, i * hidden : (i + 1) * hidden]) for i in range(count)]
        self.c = stored("output.bias")
        classes = self.c.size
        self.buffers = [chain.buffers(hidden, dtype) for chain in self.chains]
        self.H: list[Any] = [None] * count
        self.inverse = [np.zeros(len(rows), dtype) for _ in range(count)]
        self.gradient = np.zeros((len(train), hidden), dtype)
        self.error = np.zeros((len(train), classes), dtype)
        self.no_mask: Any = np.zeros((0, 0), np.uint8)
        self.masks: list[Any] = [self.no_mask] * count
        self.scale = dtype.type(1)
        self.grad_V = [np.zeros_like(v) for v in self.V]
        self.grad_b = [np.zeros_like(b) for b in self.b]
        self.grad_alpha = np.zeros(count)
        self.moments: dict[int, tuple[Any, Any]] = {}
        self.steps = 0
        for i in range(count):
            self._forward(i)

    def _set_alpha(self) -> None:
        """The attention α = softmax(a)."""
        e = np.exp(self.a - self.a.max())
        self.alpha = e / e.sum()

    def _forward(self, i: int) -> None:
        self.H[i] = self.chains[i].forward(self.W[i], self.buffers[i][0])
        self.inverse[i][:] = 0

    def _logits(self, start: int, stop: int, masks: list[Any]) -> Any:
        from pegfan.training import _kernels

        logits = np.repeat(self.c[None, :], stop - start, axis=0)
        alpha = self.alpha
        for i, H in enumerate(self.H):
            _kernels.add_logits(
                *(H[start:stop], self.b[i], self.normalize, alpha[i], self.V[i], masks[i], self.scale),
                *(stop - start, self.inverse[i][start:stop], logits),
            )
        return logits

    def drop(self, seed: int, rate: float) -> None:
        """Draw the masks of a step; rate 0 keeps everything."""
        from pegfan.training import _kernels

        if rate == 0:
            self.masks, self.scale = [self.no_mask] * len(self.H), self.dtype.type(1)
            return
        threshold = round(rate * 65536)
        self.scale = self.dtype.type(65536 / (65536 - threshold))
        if not self.masks[0].size:
            self.masks = [np.empty(self.gradient.shape, np.uint8) for _ in self.H]
        for i, mask in enumerate(self.masks):
            start = ((seed * 1_000_003 + i) * 0x9E3779B97F4A7C15) % 2**64  # far from the start of any other mask
            _kernels.keep_mask(np.uint64(start), np.uint64(threshold), mask)

    def loss(self) -> float:
        """The loss of the training rows with the masks at hand; prepares `gradients`."""
        from pegfan.training import _kernels

        self.train_logits = self._logits(0, self.train, self.masks)
        return float(_kernels.cross_entropy(self.train_logits, self.y[: self.train], self.loss_weights, self.error))

    def channel_gradient(self, i: int) -> Any:
        """The gradient of the loss by W_i; those by b_i, V_i and α_i are kept aside."""
        from pegfan.training import _kernels

        self.grad_alpha[i] = _kernels.backward(
            *(self.H[i], self.inverse[i], self.normalize, self.alpha[i], self.V[i], self.masks[i], self.scale),
            *(self.error, self.gradient, self.grad_V[i], self.grad_b[i]),
        )
        return self.chains[i].backward(self.gradient, self.buffers[i][1])

    def attention_gradient(self) -> Any:
        """The gradient by a, once every channel's is known."""
        alpha = self.alpha
        return (alpha * (self.grad_alpha - (alpha * self.grad_alpha).sum())).astype(self.dtype)

    def step(self, settings: Any) -> None:
        """One step of Adam, channel by channel: backward, update, forward again."""
        self.steps += 1
        for i in range(len(self.W)):
            self._adam(self.W[i], self.channel_gradient(i), settings.lr_fc, settings.wd_fc1)
            self._adam(self.b[i], self.grad_b[i], settings.lr_fc, settings.wd_fc1)
            self._forward(i)
        attention = self.attention_gradient()
        for i in range(len(self.V)):
            self._adam(self.V[i], self.grad_V[i], settings.lr_fc, settings.wd_fc2)
        self._adam(self.c, self.error.sum(axis=0), settings.lr_fc, settings.wd_fc2)
        self._adam(self.a, attention, settings.lr_sca, settings.wd_sca)
        self._set_alpha()

    def _adam(self, w: Any, g: Any, rate: float, decay: float) -> None:
        from pegfan.training import _kernels

        if id(w) not in self.moments:
            self.moments[id(w)] = np.zeros(w.size, self.dtype), np.zeros(w.size, self.dtype)
        number = self.dtype.type
        _kernels.adam(
            *(w.reshape(-1), g.reshape(-1), *self.moments[id(w)], number(rate), number(decay)),
            *(number(1 - 0.9**self.steps), number(1 - 0.999**self.steps)),
        )

    def validate(self) -> tuple[float, Any]:
        """The loss of the validation rows, without dropout, and their logits."""
        from pegfan.training import _kernels

        logits = self._logits(self.train, self.train + self.val, [self.no_mask] * len(self.H))
        nothing = np.zeros((0, 0), self.dtype)
        return float(_kernels.cross_entropy(logits, self.y[self.train :], self.val_weights, nothing)), logits

    def snapshot(self) -> list[Any]:
        """A copy of all weights."""
        return [w.copy() for w in [*self.W, *self.b, *self.V, self.c, self.a]]

    def state_dict(self, snapshot: list[Any]) -> dict[str, Any]:
        """A snapshot as the ``state_dict`` of the network; weights of columns that are all zero are zero."""
        count = len(self.chains)
        W, b, V = (snapshot[k * count : (k + 1) * count] for k in range(3))
        state = {}
        for i, chain in enumerate(self.chains):
            full = np.zeros((W[i].shape[1], chain.width), self.dtype)
            full[:, chain.used] = W[i].T
            state[f"channel_layers.{i}.weight"], state[f"channel_layers.{i}.bias"] = full, b[i]
        state["output.weight"], state["output.bias"] = np.concatenate(V, axis=1), snapshot[-2]
        state["attention_logits"] = snapshot[-1]
        return state
