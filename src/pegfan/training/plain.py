"""Training in PyTorch, on any device: the network as it is written in `pegfan.models`, and autograd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from pegfan._arrays import IntArray
from pegfan.graph import Split
from pegfan.models import ChannelNetwork, to_tensors
from pegfan.training.engine import TrainingTask


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw weights and dropout from a seed; the caller's random state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


class PlainSteps:
    """Epochs in PyTorch, in the context of `seeded`."""

    def __init__(self, task: TrainingTask, split: Split, weights: Any, seed: int) -> None:
        settings, self.channels, self.split, self.batch = task.settings, task.channels, split, task.batch
        self.device = task.device
        network = (settings.hidden, settings.layers, settings.dropout, settings.hop_normalize)
        self.model = ChannelNetwork(self.channels.widths, task.classes, *network).to(self.device or "cpu")
        self.y = torch.tensor(task.y, device=self.device)
        everywhere = np.zeros(len(task.y))
        everywhere[split.train] = weights
        self.weights = torch.tensor(everywhere, device=self.device).float()
        self.optimizer = torch.optim.Adam(self.model.parameter_groups(settings))
        self.order = np.random.default_rng(seed)
        self.kept: dict[str, Any] = {}

    def _inputs(self, nodes: IntArray, part: str) -> Any:
        """The channels of some nodes; those of a whole part are made once."""
        if self.batch is not None:
            return to_tensors(self.channels.rows(nodes), device=self.device)
        if part not in self.kept:
            self.kept[part] = to_tensors(self.channels.rows(nodes), device=self.device)
        return self.kept[part]

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch: the training loss, the validation loss and the outputs of validation nodes."""
        del epoch
        self.model.train()
        nodes = self.split.train if self.batch is None else self.order.permutation(self.split.train)
        total = 0.0
        for chunk in self._chunks(nodes):
            self.optimizer.zero_grad()
            output = self.model(self._inputs(chunk, "train"))
            where = torch.tensor(chunk, device=self.device)
            picked = output.gather(1, self.y[where, None])[:, 0]
            loss = -(self.weights[where] * picked).sum()
            (loss * (len(nodes) / len(chunk))).backward()  # a batch stands for all
            self.optimizer.step()
            total += float(loss.detach())
        return (total, *self._validate())

    def _validate(self) -> tuple[float, Any]:
        self.model.eval()
        with torch.no_grad():
            output = torch.cat([self.model(self._inputs(chunk, "val")) for chunk in self._chunks(self.split.val)])
            loss = -output.gather(1, self.y[torch.tensor(self.split.val, device=self.device), None]).mean()
        return float(loss), output.cpu().numpy()

    def _chunks(self, nodes: IntArray) -> Iterable[IntArray]:
        size = self.batch or len(nodes)
        return (nodes[start : start + size] for start in range(0, len(nodes), size))

    def attention(self) -> Any:
        """The weights of the channels."""
        return self.model.attention.cpu().numpy()

    def snapshot(self) -> Any:
        """A copy of all weights."""
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def state(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as NumPy arrays."""
        return {name: value.cpu().numpy() for name, value in snapshot.items()}
