"""Training in PyTorch, on any device: the network as it is written in `pegfan.models`, and autograd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from pegfan._arrays import IntArray
from pegfan.models import ChannelNetwork, to_tensors
from pegfan.training.engine import TrainingTask
from pegfan.training.rows import Labelled, loss_weights


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw weights and dropout from a seed; the caller's random state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


class PlainSteps:
    """Epochs in PyTorch, in the context of `seeded`."""

    def __init__(self, task: TrainingTask, train: Labelled, val: Labelled, weights: Any, seed: int) -> None:
        settings, self.batch, self.device = task.settings, task.batch, task.device
        self.channels, self.train, self.val = task.channels, train, val
        network = (settings.hidden, settings.layers, settings.dropout, settings.hop_normalize)
        self.model = ChannelNetwork(task.channels.widths, task.classes, *network).to(self.device or "cpu")
        self.weights = torch.tensor(weights, device=self.device).float()
        shares = None if val.weights is None else loss_weights(val.labels, False, val.weights)
        self.val_weights = None if shares is None else torch.tensor(shares, device=self.device).float()
        self.numeric = train.labels.dtype.kind == "f"
        kind = torch.float32 if self.numeric else torch.int64
        self.y, self.val_y = (torch.tensor(part.labels, dtype=kind, device=self.device) for part in (train, val))
        self.optimizer = torch.optim.Adam(self.model.parameter_groups(settings))
        self.order = np.random.default_rng(seed)
        self.kept: dict[str, Any] = {}

    def _inputs(self, rows: IntArray, part: str) -> Any:
        """The channels of some rows; those of a whole part are made once."""
        if self.batch is not None:
            return self._tensors(rows)
        if part not in self.kept:
            self.kept[part] = self._tensors(rows)
        return self.kept[part]

    def _tensors(self, rows: IntArray) -> Any:
        return to_tensors(self.channels.rows_at(rows, np.dtype(np.float32)), device=self.device)

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch: the training loss, the validation loss and the outputs of validation nodes."""
        del epoch
        self.model.train()
        count = len(self.y)
        among = np.arange(count) if self.batch is None else self.order.permutation(count)
        total = 0.0
        for chunk in self._chunks(among):
            self.optimizer.zero_grad()
            output = self._outputs(self._inputs(self.train.places[chunk], "train"))
            where = torch.tensor(chunk, device=self.device)
            loss = (self.weights[where] * self._losses(output, self.y[where])).sum()
            (loss * (count / len(chunk))).backward()  # a batch stands for all
            self.optimizer.step()
            total += float(loss.detach())
        return (total, *self._validate())

    def _validate(self) -> tuple[float, Any]:
        self.model.eval()
        with torch.no_grad():
            output = torch.cat([self._outputs(self._inputs(chunk, "val")) for chunk in self._chunks(self.val.places)])
            losses = self._losses(output, self.val_y)
            loss = losses.mean() if self.val_weights is None else (self.val_weights * losses).sum()
        return float(loss), output.cpu().numpy()

    def _outputs(self, inputs: Any) -> Any:
        return self.model.outputs(inputs) if self.numeric else self.model(inputs)

    def _losses(self, output: Any, truth: Any) -> Any:
        """−log p of the true class, or the squared error, per row."""
        return (output[:, 0] - truth) ** 2 if self.numeric else -output.gather(1, truth[:, None])[:, 0]

    def _chunks(self, rows: IntArray) -> Iterable[IntArray]:
        size = self.batch or len(rows)
        return (rows[start : start + size] for start in range(0, len(rows), size))

    def attention(self) -> Any:
        """The weights of the channels."""
        return self.model.attention.cpu().numpy()

    def snapshot(self) -> Any:
        """A copy of all weights."""
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def state(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as NumPy arrays."""
        return {name: value.cpu().numpy() for name, value in snapshot.items()}
