"""The fast path on CPUs: the network of `pegfan.models`, trained in operator form with a backward pass written out.

What makes it fast: operators act on the weights' columns (see `chains`), only the rows of training and validation
nodes are computed, one forward serves a step's validation and the next step's training loss, each channel's weights
are updated and used again while they are in the caches, dropout takes 16 random bits per entry, and a whole step is
one call of C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegfan._arrays import IntArray, aligned
from pegfan._loops import Loop, Struct
from pegfan.channels import Channels
from pegfan.training.chains import Chain, Stored
from pegfan.training.head import LANES, Layout, drawing
from pegfan.training.rows import Labelled, loss_weights
from pegfan.training.settings import Settings

_AHEAD = 8
"""Entries that loops may look ahead, past the last one, too."""

_Network = Struct("""struct network(
    int64 lines, int64 hidden, int64 train, int64 normalized, int64 steps, uint64 threshold, float32 scale,
    float64 lr_fc, float64 lr_sca, float64 wd_fc1, float64 wd_fc2, float64 wd_sca,
    const int64 forward[_forward, 5], const int64 forward_starts[channels + 1],
    const int64 back[_back, 5], const int64 back_starts[channels + 1],
    const int64 pointers[_pointers], const float32 data[_entries], const int32 indices[_entries + 8],
    const float32 dense[_dense],
    const int64 offsets[channels], const int64 sizes[channels], const int64 rest[5],
    float32 w[_weights], float32 m[_weights], float32 v[_weights],
    float32 H[channels, rows, 16 * lines], float32 inverse[channels, rows], float32 Z[channels, rows, classes],
    float32 alpha[channels], float32 logits[rows, classes], float32 error[train, classes],
    maybe const int64 labels[rows], maybe const float32 targets[rows], const float32 weights[rows],
    maybe uint64 masks[2, channels, train, (lines + 3) // 4],
    float32 room[2, half], float32 scratch[4, 16 * lines], float32 gradient[train, 16 * lines],
    float32 grad_b[16 * lines], float32 grad_V[classes, 16 * lines], float32 grad_c[(classes + 15) // 16 * 16],
    float32 grad_a[(channels + 15) // 16 * 16])""")
"""All that a training consists of.

``forward`` and ``back`` hold the matrices of all channels in the order of their use, those of channel i from
``_starts[i]`` on: (whether it is dense, rows, columns, where its row pointers are, where its entries are if it is
dense). W_i has ``sizes[i]`` rows from ``offsets[i]`` on in ``w``; b, V, c and a begin at ``rest``, which ends with the
length of ``w``. What follows ``masks`` is memory to work in.
"""

_begin = Loop("void network_begin(network net, uint64 seed, float64 losses[2])")
"""The first forward pass, with masks for the first step, and the losses of training and validation rows."""

_step = Loop("void network_step(network net, uint64 seed, float64 losses[2])")
"""A step of Adam: for every channel backward, update and forward with the masks of the next step; then the losses."""


class Packed:
    """The matrices of all channels for the rows of a split, as C reads them; those that channels share stand once.

    Attributes
    ----------
    columns
        Of every channel, those that are not all zero.
    arrays
        Fields of the struct.
    """

    def __init__(self, channels: Channels, train: IntArray, val: IntArray) -> None:
        rows = np.concatenate([train, val])
        # How a chain takes its matrix apart goes by the order of its rows, which nodes that look alike do not settle.
        inputs = [channels.at_places(channel) for channel in channels]
        chains = [Chain.of(channel) for channel in inputs]
        self.columns = [chain.used for chain in chains]
        pointers: list[Any] = []
        indices: list[Any] = [np.zeros(0, np.int32)]
        data: tuple[list[Any], list[Any]] = ([np.zeros(0, np.float32)], [np.zeros(0, np.float32)])  # sparse, dense
        entries: dict[str, tuple[int, ...]] = {}
        first, ends = 0, [0, 0]

        def entry_of(matrix: Stored) -> tuple[int, ...]:
            nonlocal first
            if matrix.digest not in entries:
                dense = int(matrix.dense)
                entries[matrix.digest] = (dense, *matrix.shape, first, ends[dense])
                pointers.append(matrix.pointers + ends[0])
                indices.append(matrix.indices)
                data[dense].append(matrix.data)
                first += len(matrix.pointers)
                ends[dense] += len(matrix.data)
            return entries[matrix.digest]

        tables: tuple[list[Any], list[Any]] = ([], [])
        starts: tuple[list[int], list[int]] = ([0], [0])
        for channel, given, chain in zip(channels, inputs, chains, strict=True):
            ways = chain.links(channels.at(channel, rows) if given is channel else rows, len(train))
            for table, start, matrices in zip(tables, starts, ways, strict=True):
                table.extend(map(entry_of, matrices))
                start.append(len(table))
        indices.append(np.zeros(_AHEAD, np.int32))
        self.arrays = {
            **{"forward": np.array(tables[0]), "forward_starts": np.array(starts[0])},
            **{"back": np.array(tables[1]), "back_starts": np.array(starts[1])},
            **{"pointers": np.concatenate(pointers), "indices": np.concatenate(indices)},
            **{"data": np.concatenate(data[0]), "dense": np.concatenate(data[1])},
        }

    @classmethod
    def of(cls, channels: Channels, train: IntArray, val: IntArray) -> Packed:
        """Those for a split; the newest are kept, for a search trains on the same ones again and again."""
        key = (train.tobytes(), val.tobytes())
        newest = channels.kept.get("packed")
        if newest is None or newest[0] != key:
            del newest  # which frees the memory of the old ones first
            channels.kept.pop("packed", None)
            newest = channels.kept["packed"] = key, cls(channels, train, val)
        packed: Packed = newest[1]  # other threads may have put theirs there
        return packed


class ChainSteps:
    """Epochs of one step on all rows; `weights` are those of the training rows in the loss, and sum to one.

    With labels the loss is the cross entropy, with targets (float64) the squared error of one output. A forward pass
    goes through to the head, so the masks of a step are drawn before the forward pass that precedes it.
    """

    def __init__(
        self,
        channels: Channels,
        state: Any,
        train: Labelled,
        val: Labelled,
        weights: Any,
        settings: Settings,
        seed: int,
    ) -> None:
        self.packed = packed = Packed.of(channels, train.places, val.places)
        self.layout = layout = Layout(state, packed.columns)
        count, classes, rows = layout.count, layout.classes, len(train.places) + len(val.places)
        self.w, self.m, self.v, self.kept = (_zeros(int(layout.starts[-1])) for _ in range(4))
        layout.fill(self.w, state)
        self.seed, self.rate = seed, settings.dropout
        _, threshold, scale = drawing(0, self.rate)
        self.masks = layout.masks(2, count, len(train.places)) if self.rate else layout.masks(0, 0, 0)
        self.logits, self.alpha = _zeros(rows, classes), _zeros(count)
        labels = np.concatenate([train.labels, val.labels])
        numeric = labels.dtype.kind == "f"
        shares = np.concatenate([weights, loss_weights(val.labels, False, val.weights)]).astype(np.float32)
        rates = {name: getattr(settings, name) for name in ("lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca")}
        wide = LANES * layout.lines
        largest = max(table[:, 1].max() for table in (packed.arrays["forward"], packed.arrays["back"]))
        self._net = _Network.new(
            **{"lines": layout.lines, "hidden": layout.hidden, "train": len(train.places), "steps": 0},
            **{"normalized": settings.hop_normalize, "threshold": threshold, "scale": scale if self.rate else 1.0},
            **rates,
            **packed.arrays,
            **{"offsets": layout.starts[:count], "sizes": np.array([len(used) for used in layout.columns])},
            **{"rest": layout.starts[count:], "w": self.w, "m": self.m, "v": self.v},
            **{"H": _zeros(count, rows, wide), "inverse": _zeros(count, rows), "Z": _zeros(count, rows, classes)},
            **{"alpha": self.alpha, "logits": self.logits, "error": _zeros(len(train.places), classes)},
            labels=np.zeros(0, np.int64) if numeric else labels,
            targets=labels.astype(np.float32) if numeric else np.zeros(0, np.float32),
            **{"weights": shares, "masks": self.masks, "room": _zeros(2, int(largest) * wide)},
            **{"scratch": _zeros(4, wide), "gradient": _zeros(len(train.places), wide), "grad_b": _zeros(wide)},
            **{"grad_V": _zeros(classes, wide), "grad_c": _zeros(-(-classes // LANES) * LANES)},
            grad_a=_zeros(-(-count // LANES) * LANES),
        )
        self.losses = np.zeros(2)
        _begin(self._net, self._start(0), self.losses)

    def _start(self, epoch: int) -> int:
        """Where the random numbers of an epoch begin."""
        return drawing(self.seed * 100_003 + epoch, self.rate)[0]

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch: the training loss, the validation loss and the outputs of validation nodes."""
        loss = float(self.losses[0])
        _step(self._net, self._start(epoch + 1), self.losses)
        return loss, float(self.losses[1]), self.logits[self._net.pointer.train :]

    def attention(self) -> Any:
        """The weights of the channels."""
        return self.alpha.copy()

    def snapshot(self) -> Any:
        """A copy of all weights; there is room for one."""
        self.kept[:] = self.w
        return self.kept

    def state(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as the ``state_dict`` of the network; weights of columns that are all zero are zero."""
        return self.layout.state(snapshot)


def _zeros(*shape: int) -> Any:
    """Zeros that begin at a cache line."""
    return aligned(shape, np.dtype(np.float32), np.zeros)
