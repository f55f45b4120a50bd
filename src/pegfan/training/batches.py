"""Training in batches of rows on CPUs: the network of `pegfan.models` on rows of channels, in compiled loops.

Where a graph is large, an epoch over all nodes is long and says little more than a part of it. Here a step takes some
rows of every channel (see `pegfan.channels.Channels.rows`): hops are computed once, and rows are put together from them
when they are needed, so that memory stays small. The rows of a step are drawn from the seed among rows in canonical
order; channels are computed one by one, each by one thread, so that weights depend neither on how nodes are numbered
nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan._arrays import IntArray
from pegfan._limits import is_large
from pegfan.channels import Channels
from pegfan.training.rows import Rows, loss_weights

ROWS = 2048
"""Rows of a step, where no other number is asked for."""
STEPS = 64
"""The most steps of an epoch: a pass over more rows than these take is several epochs."""
JUDGED = 16384
"""The most validation rows that an epoch is judged by; of more, evenly spaced ones."""
ENTRIES = 4096
"""The most entries of a row, over all channels, for which they are taken: an operator is cheaper on wider ones."""
WIDEST = 16_384
"""The most columns of a channel for which they are taken: all its weights are updated in every step."""
_MEAN = 100
"""Steps, at most those of a pass, that the mean of the weights looks back: that is validated and kept, for single steps
are noisy."""


def suits(channels: Channels, rows: int) -> bool:
    """Whether batches are the way to train on so many rows: by counts alone, so that no load of a machine decides.

    Examples
    --------
    >>> from pegfan.channels import Channel
    >>> channels = Channels([Channel("X", None, np.ones((50_000, 8)))])
    >>> suits(channels, 1_000), suits(channels, 40_000)
    (False, True)
    """
    if not is_large(rows) or max(channels.widths) > WIDEST:
        return False
    return channels.entries <= ENTRIES * channels.n


class Source(Protocol):
    """Where the rows of batches come from, and in which order."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of columns of the channels."""

    @property
    def per_pass(self) -> int:
        """Batches of a pass over the training rows."""

    @property
    def largest(self) -> int:
        """The most rows of a batch."""

    def batches(self, step: int) -> Iterator[IntArray]:
        """Which training rows the batches have, pass after pass, from some step on; it never ends."""

    def train_rows(self, chunk: IntArray) -> list[Any]:
        """Rows of all channels for the newest of `batches`."""

    def val_rows(self, block: slice) -> list[Any]:
        """Rows of all channels for some validation rows."""


class RowsInMemory:
    """Rows of channels in memory, those of every pass in an order of its own that is drawn from the seed."""

    def __init__(self, channels: Channels, train: IntArray, val: IntArray, seed: int, batch: int = ROWS) -> None:
        self.canonical, self.widths, self.seed = channels.canonical, channels.widths, seed
        self.train, self.val, self.largest = train, val, min(batch, max(len(train), 1))
        self.per_pass = -(-len(train) // self.largest)

    def batches(self, step: int) -> Iterator[IntArray]:
        """Batches of one size, and a smaller one at the end of every pass."""
        number, begin = divmod(step, max(self.per_pass, 1))
        while True:
            order = np.random.default_rng((self.seed, number)).permutation(len(self.train))
            for start in range(begin * self.largest, len(self.train), self.largest):
                yield order[start : start + self.largest]
            number, begin = number + 1, 0

    def train_rows(self, chunk: IntArray) -> list[Any]:
        """Rows of a batch."""
        return self.canonical.rows(self.train[chunk], np.dtype(np.float32))

    def val_rows(self, block: slice) -> list[Any]:
        """Some validation rows."""
        return self.canonical.rows(self.val[block], np.dtype(np.float32))


class BatchSteps:
    """Epochs of steps on batches; `weights` are those of the training rows in the loss, and sum to one."""

    def __init__(
        self,
        source: Source,
        state: dict[str, Any],
        train: Rows,
        val: Rows,
        weights: Any,
        settings: Any,
        seed: int,
        threads: int = 1,
    ) -> None:
        self.source, self.settings, self.seed = source, settings, seed
        self.train, self.val, self.batch = train, val, source.largest
        self.numeric = train.labels.dtype.kind == "f"
        self.y, self.val_y = (part.labels.astype(np.float32) if self.numeric else part.labels for part in (train, val))
        self.weights = np.asarray(weights, np.float64)
        self.val_weights = loss_weights(val.labels, False, val.weights)
        count, (classes, width) = len(source.widths), state["output.weight"].shape
        hidden = width // count
        self.shapes: list[tuple[int, ...]] = [(w, hidden) for w in source.widths]
        self.shapes += [(count, hidden), (count, classes, hidden), (classes,), (count,)]
        sizes = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)])
        self.places = [slice(int(a), int(b)) for a, b in pairwise(sizes)]
        self.w, self.m, self.v, self.mean, self.kept = (np.zeros(sizes[-1], np.float32) for _ in range(5))
        self._take(state)
        self.mean[:] = self.w
        self.grad = np.zeros_like(self.w)
        self.H = np.zeros((count, self.batch, hidden), np.float32)
        self.inverse = np.zeros((count, self.batch), np.float32)
        self.back = np.zeros((count, self.batch, hidden), np.float32)
        self.masks = np.zeros((count, self.batch, hidden), np.uint8)
        self.steps = 0
        self.pool = ThreadPoolExecutor(threads) if threads > 1 and count > 1 else None
        self._order: Iterator[IntArray] = source.batches(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        close = getattr(self._order, "close", None)  # of a generator, which may have threads
        if close is not None:
            close()
        if self.pool is not None:
            self.pool.shutdown()

    # ------------------------------------------------------------------------ epochs

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch: the training loss, the validation loss and the outputs of validation rows."""
        del epoch
        steps = min(STEPS, self.source.per_pass)
        loss = float(np.mean([self._step(next(self._order)) for _ in range(steps)]))
        return (loss, *self._validate())

    def attention(self) -> Any:
        """The weights of the channels."""
        return _softmax(self._views(self.mean)[-1])

    def snapshot(self) -> Any:
        """A copy of all weights; there is room for one."""
        self.kept[:] = self.mean
        return self.kept

    def state(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as the ``state_dict`` of the network."""
        *W, b, V, c, a = self._views(snapshot)
        count, classes, hidden = V.shape
        state: dict[str, Any] = {}
        for i in range(count):
            state |= {
                f"channel_layers.{i}.weight": np.ascontiguousarray(W[i].T),
                f"channel_layers.{i}.bias": b[i].copy(),
            }
        V = V.transpose(1, 0, 2).reshape(classes, count * hidden)
        return state | {"output.weight": V, "output.bias": c.copy(), "attention_logits": a.copy()}

    def progress(self) -> dict[str, Any]:
        """All that later steps depend on, as arrays: `resume` goes on from there."""
        arrays = {name: getattr(self, name).copy() for name in ("w", "m", "v", "mean", "kept")}
        return {**arrays, "steps": np.array(self.steps)}

    def resume(self, progress: Mapping[str, Any]) -> Any:
        """Go on from what `progress` gave; the newest snapshot."""
        for name in ("w", "m", "v", "mean", "kept"):
            found, own = progress[name], getattr(self, name)
            if found.dtype != own.dtype or found.shape != own.shape:
                raise ValueError(f"{name} is {found.dtype} {found.shape}, and this network needs {own.shape}")
            own[:] = found
        self.steps = int(progress["steps"])
        self._order = self.source.batches(self.steps)
        return self.kept

    # ------------------------------------------------------------------------ inside

    def _views(self, w: Any) -> list[Any]:
        """All W_i, b, V, c and a, in the memory where they lie one after another."""
        return [w[place].reshape(shape) for place, shape in zip(self.places, self.shapes, strict=True)]

    def _take(self, state: dict[str, Any]) -> None:
        *W, b, V, c, a = self._views(self.w)
        count, classes, hidden = V.shape
        for i in range(count):
            W[i][:], b[i] = state[f"channel_layers.{i}.weight"].T, state[f"channel_layers.{i}.bias"]
        V[:] = state["output.weight"].reshape(classes, count, hidden).transpose(1, 0, 2)
        c[:], a[:] = state["output.bias"], state["attention_logits"]

    def _each(self, task: Callable[[int], Any]) -> list[Any]:
        """What a task gives for every channel."""
        every = range(len(self.H))
        return list(map(task, every) if self.pool is None else self.pool.map(task, every))

    def _forward(self, inputs: list[Any], size: int, w: Any) -> tuple[Any, Any]:
        """H_i = N(X_i W_i + b_i) for rows of all channels, and the factors of N."""
        from pegfan.training import _kernels

        views = self._views(w)
        H, inverse = (np.ascontiguousarray(array[:, :size]) for array in (self.H, self.inverse))

        def forward(i: int) -> None:
            multiply(inputs[i], views[i], H[i])
            _kernels.normalize(H[i], views[-4][i], self.settings.hop_normalize, inverse[i])

        self._each(forward)
        return H, inverse

    def _step(self, chunk: IntArray) -> float:
        """One step of Adam on a batch, which stands for all rows; the loss before it."""
        from pegfan.training import _kernels

        settings, size = self.settings, len(chunk)
        inputs = self.source.train_rows(chunk)
        H, inverse = self._forward(inputs, size, self.w)
        *_, V, c, a = self._views(self.w)
        *grad_W, grad_b, grad_V, grad_c, grad_a = self._views(self.grad)
        alpha, (masks, scale) = _softmax(a), self._masks(size)
        logits, error = (np.zeros((size, len(c)), np.float32) for _ in range(2))
        _kernels.compute_logits(H, alpha, V, masks, scale, 0, c, logits)
        shares = (self.weights[chunk] * (len(self.weights) / size)).astype(np.float32)
        measure = _kernels.squared_error if self.numeric else _kernels.cross_entropy
        loss = float(measure(logits, self.y[chunk], shares, error))
        normalized, grad_alpha = settings.hop_normalize, np.zeros_like(alpha)

        def backward(i: int) -> None:
            gradient = self.back[i, :size]
            grad_alpha[i] = _kernels.backward(
                H[i], inverse[i], normalized, alpha[i], V[i], masks[i], scale, error, gradient, grad_V[i], grad_b[i]
            )
            _transposed_product(inputs[i], gradient, grad_W[i])

        self._each(backward)
        grad_c[:] = error.sum(axis=0)
        _kernels.attention_gradient(alpha, grad_alpha, grad_a)
        self._adam()
        return loss

    def _masks(self, size: int) -> tuple[Any, Any]:
        """What dropout keeps in this step, and the factor that makes up for the rest."""
        from pegfan._products import keep_mask
        from pegfan.training.fast import drawing

        rate, count = self.settings.dropout, len(self.H)
        if rate == 0:
            return np.zeros((count, 0, 0), np.uint8), np.float32(1)
        masks = np.ascontiguousarray(self.masks[:, :size])
        start, threshold, scale = drawing(self.seed * 100_003 + self.steps, rate)
        keep_mask(np.uint64(start), np.uint64(threshold), masks)
        return masks, np.float32(scale)

    def _adam(self) -> None:
        """Adam in three groups, as `torch.optim.Adam` has it, and the mean of the weights."""
        from pegfan.training import _kernels

        settings, count = self.settings, len(self.H)
        self.steps += 1
        first, second = self.places[count].stop, self.places[count + 2].stop
        groups = (
            (slice(0, first), settings.lr_fc, settings.wd_fc1),
            (slice(first, second), settings.lr_fc, settings.wd_fc2),
            (slice(second, None), settings.lr_sca, settings.wd_sca),
        )
        for part, rate, decay in groups:
            w, m, v, g = (array[part] for array in (self.w, self.m, self.v, self.grad))
            _kernels.adam_step(w, m, v, g, *_kernels.adam_rates(rate, decay, self.steps))
        passes = self.source.per_pass
        share = max(1 / min(_MEAN, passes), 9 / (9 + self.steps))  # the first weights are soon forgotten
        share = 1.0 if passes == 1 else share
        self.mean += np.float32(share) * (self.w - self.mean)

    def _validate(self) -> tuple[float, Any]:
        """The loss of the validation rows, without dropout, and their logits."""
        from pegfan.training import _kernels

        *_, V, c, a = self._views(self.mean)
        alpha, nothing, loss = _softmax(a), np.zeros((0, 0), np.float32), 0.0
        every = np.zeros((len(self.val.places), len(c)), np.float32)
        no_masks = np.zeros((len(self.H), 0, 0), np.uint8)
        measure = _kernels.squared_error if self.numeric else _kernels.cross_entropy
        for start in range(0, len(every), self.batch):
            block = slice(start, start + self.batch)
            H, _ = self._forward(self.source.val_rows(block), len(every[block]), self.mean)
            _kernels.compute_logits(H, alpha, V, no_masks, np.float32(1), 0, c, every[block])
            shares = self.val_weights[block].astype(np.float32)
            loss += float(measure(every[block], self.val_y[block], shares, nothing))
        return loss, every


def _softmax(a: Any) -> Any:
    e = np.exp(a - a.max())
    return e / e.sum()


def multiply(x: Any, w: Any, out: Any) -> None:
    """Compute out = x w for rows of a channel, sparse or dense."""
    if issparse(x):
        from pegfan._products import product

        product(x, w, out=out)
    else:
        np.matmul(x, w, out=out)


def _transposed_product(x: Any, g: Any, out: Any) -> None:
    if issparse(x):
        multiply(csr_array(x.T), g, out)
    else:
        np.matmul(x.T, g, out=out)
