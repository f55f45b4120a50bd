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
from typing import Any, Protocol, Self

import numpy as np

from pegfan._arrays import IntArray
from pegfan._limits import is_large
from pegfan.channels import Channels
from pegfan.training.head import (
    LANES,
    Layout,
    adam_step,
    added,
    attention_gradient,
    cross_entropy,
    draw_masks,
    drawing,
    rows_back,
    softmax,
    squared_error,
)
from pegfan.training.rows import Labelled, loss_weights
from pegfan.training.settings import Settings

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


class RowSource(Protocol):
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
        self.channels, self.widths, self.seed = channels, channels.widths, seed
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
        return self.channels.rows_at(self.train[chunk], np.dtype(np.float32))

    def val_rows(self, block: slice) -> list[Any]:
        """Some validation rows."""
        return self.channels.rows_at(self.val[block], np.dtype(np.float32))


class BatchSteps:
    """Epochs of steps on batches; `weights` are those of the training rows in the loss, and sum to one."""

    def __init__(
        self,
        source: RowSource,
        state: dict[str, Any],
        train: Labelled,
        val: Labelled,
        weights: Any,
        settings: Settings,
        seed: int,
        threads: int = 1,
    ) -> None:
        self.source, self.settings, self.seed = source, settings, seed
        self.train, self.val, self.batch = train, val, source.largest
        self.numeric = train.labels.dtype.kind == "f"
        self.y, self.val_y = (part.labels.astype(np.float32) if self.numeric else part.labels for part in (train, val))
        self.weights = np.asarray(weights, np.float64)
        self.val_weights = loss_weights(val.labels, False, val.weights)
        self.layout = layout = Layout(state)
        self.w, self.m, self.v, self.mean, self.kept, self.grad = np.zeros((6, layout.starts[-1]), np.float32)
        layout.fill(self.w, state)
        self.mean[:] = self.w
        self.steps = 0
        self.pool = ThreadPoolExecutor(threads) if threads > 1 and layout.count > 1 else None
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
        return softmax(self.layout.views(self.mean)[-1])

    def snapshot(self) -> Any:
        """A copy of all weights; there is room for one."""
        self.kept[:] = self.mean
        return self.kept

    def state(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as the ``state_dict`` of the network."""
        return self.layout.state(snapshot)

    def progress(self) -> dict[str, Any]:
        """All that later steps depend on, as arrays: `resume` goes on from there."""
        arrays = {name: getattr(self, name).copy() for name in ("w", "m", "v", "mean", "kept")}
        return {**arrays, "steps": np.array(self.steps)}

    def resume(self, progress: Mapping[str, Any]) -> Any:
        """Go on from what `progress` gave; the newest snapshot."""
        for name in ("w", "m", "v", "mean", "kept"):
            stored, own = progress[name], getattr(self, name)
            if stored.dtype != own.dtype or stored.shape != own.shape:
                raise ValueError(f"{name} is {stored.dtype} {stored.shape}, and this network needs {own.shape}")
            own[:] = stored
        self.steps = int(progress["steps"])
        self._order = self.source.batches(self.steps)
        return self.kept

    # ------------------------------------------------------------------------ inside

    def _each(self, task: Callable[[int], Any]) -> list[Any]:
        """What a task gives for every channel."""
        every = range(self.layout.count)
        return list(map(task, every) if self.pool is None else self.pool.map(task, every))

    def _step(self, chunk: IntArray) -> float:
        """One step of Adam on a batch, which stands for all rows; the loss before it."""
        layout, normalized, size = self.layout, self.settings.hop_normalize, len(chunk)
        inputs = self.source.train_rows(chunk)
        *W, b, V, c, a = layout.views(self.w)
        *grad_W, grad_b, grad_V, grad_c, grad_a = layout.views(self.grad)
        alpha, by_alpha, (masks, scale) = softmax(a), np.zeros_like(a), self._masks(size)

        def forward(i: int) -> Any:
            return layout.forward(inputs[i], (W[i], b[i], V[i]), alpha[i] * scale, normalized, masks[i])

        Z, H, inverse = zip(*self._each(forward), strict=True)
        logits = added(c, Z)
        shares = (self.weights[chunk] * (len(self.weights) / size)).astype(np.float32)
        error = np.zeros_like(logits)
        loss = self._loss(logits, self.y[chunk], shares, error)

        def backward(i: int) -> None:
            G = layout.empty(size)
            by_alpha[i] = rows_back(
                *(layout.lines, H[i], inverse[i], normalized, alpha[i], V[i], masks[i], scale, error),
                *(layout.empty(4), G, grad_V[i], grad_b[i]),
            )
            layout.multiply_transposed(inputs[i], G, grad_W[i])

        self._each(backward)
        grad_c[:] = error.sum(axis=0)
        attention_gradient(alpha, by_alpha, grad_a)
        self._adam()
        return loss

    def _loss(self, logits: Any, truth: Any, shares: Any, error: Any) -> float:
        return float((squared_error if self.numeric else cross_entropy)(logits, truth, shares, error))

    def _masks(self, size: int) -> tuple[Any, Any]:
        """What dropout keeps in this step, per channel, and the factor that makes up for the rest."""
        layout, rate = self.layout, self.settings.dropout
        if rate == 0:
            return [layout.masks(0)] * layout.count, np.float32(1)
        masks = layout.masks(layout.count * size)
        start, threshold, scale = drawing(self.seed * 100_003 + self.steps, rate)
        draw_masks(start, threshold, layout.hidden, masks)
        return masks.reshape(layout.count, size, -1), np.float32(scale)

    def _adam(self) -> None:
        """Adam in three groups, as `torch.optim.Adam` has it, and the mean of the weights."""
        settings = self.settings
        self.steps += 1
        *_, V, _, a, end = self.layout.starts.tolist()
        groups = (
            (slice(0, V), settings.lr_fc, settings.wd_fc1),
            (slice(V, a), settings.lr_fc, settings.wd_fc2),
            (slice(a, end), settings.lr_sca, settings.wd_sca),
        )
        for part, rate, decay in groups:
            w, m, v, g = (array[part] for array in (self.w, self.m, self.v, self.grad))
            adam_step(len(w) // LANES, w, m, v, g, rate, decay, self.steps)
        passes = self.source.per_pass
        share = max(1 / min(_MEAN, passes), 9 / (9 + self.steps))  # the first weights are soon forgotten
        share = 1.0 if passes == 1 else share
        self.mean += np.float32(share) * (self.w - self.mean)

    def _validate(self) -> tuple[float, Any]:
        """The loss of the validation rows, without dropout, and their logits."""
        layout, normalized, loss = self.layout, self.settings.hop_normalize, 0.0
        *W, b, V, c, a = layout.views(self.mean)
        alpha = softmax(a)
        every = np.zeros((len(self.val.places), layout.classes), np.float32)
        for start in range(0, len(every), self.batch):
            block = slice(start, start + self.batch)
            inputs = self.source.val_rows(block)

            def forward(i: int, inputs: Any = inputs) -> Any:
                return layout.forward(inputs[i], (W[i], b[i], V[i]), alpha[i], normalized)[0]

            every[block] = added(c, self._each(forward))
            shares = self.val_weights[block].astype(np.float32)
            loss += self._loss(every[block], self.val_y[block], shares, np.zeros((0, 0), np.float32))
        return loss, every
