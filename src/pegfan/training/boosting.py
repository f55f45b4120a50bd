"""Gradient boosting on the columns of channels: another head on what the network sees.

A network needs columns of one scale and learns smooth functions of them; columns such as amounts, dates and counts are
often told by thresholds. Trees of a few questions, each grown on what the earlier ones got wrong, find these. They are
grown by histograms (at most 255 bins per column) and second-order gains, the best leaf first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import log_softmax

from pegfan import _defaults as default
from pegfan._arrays import Float32Array, FloatArray, IntArray
from pegfan._checks import check_numbers
from pegfan._loops import Loop
from pegfan.channels import Channels
from pegfan.channels.channels import node_indices
from pegfan.graph import Split, as_split
from pegfan.metrics import score
from pegfan.running import Deadline, Progress, Step
from pegfan.training.loop import InUnits, training_loop
from pegfan.training.rows import TARGET, Labelled, Units, loss_weights
from pegfan.training.settings import Run, Settings

__all__ = ["Boosted", "boost"]

RATE = 0.05
"""What a tree's values are multiplied by."""
L2 = 1.0
"""What is added to the curvature of a leaf, as if so many rows were in doubt."""
COLUMNS = 0.5
"""The share of columns that a tree may ask about; they are drawn anew for each."""
FEWEST = 20
"""Rows that a leaf holds at least; a fortieth of all rows, but at least three, where that is less."""
BINS = 255
"""The most bins per column."""
ROWS = 262_144
"""The most training rows that trees are grown on; of more, evenly spaced ones."""
PER_BIN, FEWEST_BINS = 8, 32
"""Of few rows a bin holds at least so many on average, but there are so many bins in any case: more only take time."""
_BLOCK = 16384
"""Rows that are looked at together."""
_UNIT = 1 << 24
"""Gradients are integers, so many to the unit: sums of integers do not depend on the order of their terms, so neither
the numbering of the nodes nor the CPU changes which split is best."""
_FACTS = 8
"""Numbers that are known of a place of a tree while it grows, see src/native/boosting.c."""

_grow = Loop("""int64 boost_grow(
    const uint8 bins[columns, n], const int64 widths[columns], const int64 chosen[asked], const int64 g[n],
    const int64 h[n], int64 leaves, int64 fewest, float64 l2, float64 rate, int64 order[n], int64 spare[n],
    int64 near[n, 4], int64 sums[leaves, room, most, 4], int64 places[2 * leaves - 1, 8],
    float64 gain[2 * leaves - 1], int32 column[2 * leaves - 1], int32 bin_at[2 * leaves - 1],
    int32 child[2 * leaves - 1], float64 value[2 * leaves - 1], float64 gains[columns])""")
"""Grow a tree from gradients g and curvatures h; how many places it has, or -1 where histograms have too little room.

`order`, `spare`, `near`, `sums`, `places` and `gain` are memory to work in; `order` and `places` then say which rows
are in which leaf. A place asks about `column`, goes to the first child up to `bin_at` (to the next one after it), and
holds the mean of what the leaves below it add; leaves have no child (-1). `gains` of the columns grow.
"""

_add_rows = Loop("""void boost_add_rows(
    const int64 order[n], const int64 places[size, 8], const int32 child[size], const float64 value[size],
    float64 out[n])""")
"""Add a tree's values to the rows that it was grown on."""

_add_bins = Loop("""void boost_add_bins(
    const uint8 bins[_columns, n], const int32 column[_size], const int32 bin_at[_size], const int32 child[_size],
    const float64 value[_size], float64 out[n])""")
"""Add a tree's values to other rows, given by their bins."""

_walk = Loop("""void boost_walk(
    const float32 x[n, d], const int32 column[trees, size], const float32 threshold[trees, size],
    const int32 child[trees, size], const float64 value[trees, size], float64 out[n, outputs])""")
"""Add what all trees say of rows of numbers; tree t speaks for output t % outputs."""

_walk_apart = Loop("""void boost_walk_apart(
    const float32 x[n, d], const int32 column[trees, size], const float32 threshold[trees, size],
    const int32 child[trees, size], const float64 value[trees, size], float64 out[n, outputs, d])""")
"""Add up, per row, output and column, by how much the questions about the column changed what is expected."""


class Boosted:
    """Boosted trees on the columns of channels.

    Parameters
    ----------
    state
        Arrays by name: ``base``, the logits that all start from; ``widths`` of the channels; ``gains``, by how much
        each column lowered the loss; and, with a row per tree, ``column``, ``threshold``, ``child`` and ``value``.
        Trees that predict numbers also have ``target``, the mean and scale of the targets.

    Attributes
    ----------
    state : dict
    widths : tuple of int
        The numbers of columns of the channels.
    classes : int
        The number of outputs: one for numbers.
    units : Units or None
        Of the targets; None where classes are predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from pegfan.channels import Channel, Channels
    >>> x = np.arange(40.0)[:, None]
    >>> parts = Split(np.arange(0, 40, 2), np.arange(1, 40, 2), np.arange(0))
    >>> run = boost(Channels([Channel("X", None, x)]), (x[:, 0] > 17).astype(int), parts, leaves=2)
    >>> Boosted(run.state).predict(Channels([Channel("X", None, x)]))[[0, 39]].argmax(axis=1)
    array([0, 1])
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        wanted = {
            **{"base": (np.float64, 1), "widths": (np.int64, 1), "gains": (np.float64, 1)},
            **{"column": (np.int32, 2), "threshold": (np.float32, 2), "child": (np.int32, 2), "value": (np.float64, 2)},
        }
        if state.keys() - {TARGET} != wanted.keys():
            raise ValueError(
                f"boosted trees have the arrays {', '.join(sorted(wanted))}, not {', '.join(sorted(state))}"
            )
        self.state: dict[str, Any] = {name: np.ascontiguousarray(state[name]) for name in wanted}
        for name, (dtype, dimensions) in wanted.items():
            array = self.state[name]
            if array.dtype != dtype or array.ndim != dimensions:
                raise ValueError(f"{name} of boosted trees is {array.dtype} with {array.ndim} dimensions")
        self.widths = tuple(int(width) for width in self.state["widths"])
        self.classes = len(self.state["base"])
        self.units = Units.stored(state[TARGET]) if TARGET in state else None
        self._check()

    def _check(self) -> None:
        """Whether walks down the trees end, whoever wrote the arrays."""
        column, child = self.state["column"], self.state["child"]
        shapes = {self.state[name].shape for name in ("column", "threshold", "child", "value")}
        if (
            len(shapes) > 1
            or (self.classes == 1) != (self.units is not None)
            or not self.classes
            or not child.size
            or min(self.widths, default=0) < 0
        ):
            raise ValueError("the arrays of boosted trees do not fit each other")
        if len(self.state["gains"]) != sum(self.widths) or len(column) % self.outputs:
            raise ValueError("the arrays of boosted trees do not fit their channels and classes")
        inner, places = child >= 0, np.arange(child.shape[1])
        if (inner & ((child <= places) | (child >= len(places) - 1))).any():
            raise ValueError("in boosted trees, children come after their parents")
        if (inner & ((column < 0) | (column >= sum(self.widths)))).any():
            raise ValueError("boosted trees ask about columns that their channels do not have")
        for name in ("base", "gains", "value"):
            if not np.isfinite(self.state[name]).all():
                raise ValueError(f"{name} of boosted trees must hold finite numbers")

    @property
    def outputs(self) -> int:
        """Trees per round: one for two classes or numbers, else one per class."""
        return 1 if self.classes == 2 else self.classes

    @cached_property
    def attention(self) -> Float32Array:
        """Per channel, the share of its columns in what the trees lowered the loss by; they sum to one."""
        return channel_shares(self.state["gains"], self.widths)

    def predict(self, channels: Channels, nodes: Any = None) -> Any:
        """Log-probabilities of the classes, or predicted numbers in one column.

        Parameters
        ----------
        channels
            With the widths that the trees were grown on.
        nodes
            Node indices; by default all.
        """
        if channels.widths != self.widths:
            raise ValueError(f"the trees are for channels of {self.widths} columns, these have {channels.widths}")
        wanted = np.arange(channels.n) if nodes is None else node_indices(nodes, channels.n)
        rows, back = np.unique(channels.places[wanted], return_inverse=True)
        out = np.empty((len(rows), self.classes), np.float32 if self.units is None else np.float64)
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            logits = self.logits(dense_rows(channels, rows[block]))
            out[block] = log_softmax(logits, axis=1) if self.units is None else self.units.values(logits)
        return out[back]

    def logits(self, x: Float32Array) -> FloatArray:
        """Of rows of numbers, one column per column of the channels."""
        return self._with_base(self._walked(self._rows(x)))

    def shares(self, x: Float32Array) -> tuple[FloatArray, FloatArray]:
        """The logits, and what each column added to them: per row, class and column.

        A question adds by how much its answer changes the mean of the leaves below, so that all shares and `average`
        add up to the logits.
        """
        x = self._rows(x)
        apart = np.zeros((len(x), self.outputs, x.shape[1]))
        _walk_apart(x, *self._trees, apart)
        if self.classes == 2:
            apart = np.concatenate([np.zeros_like(apart), apart], axis=1)
        return self._with_base(self._walked(x)), apart

    @cached_property
    def average(self) -> FloatArray:
        """The mean logits of the rows that the trees were grown on."""
        roots = self.state["value"][:, 0].reshape(-1, self.outputs).sum(axis=0)
        return np.asarray(self._with_base(roots[None])[0])

    @property
    def _trees(self) -> tuple[Any, Any, Any, Any]:
        column, threshold, child, value = (self.state[name] for name in ("column", "threshold", "child", "value"))
        return column, threshold, child, value

    def _rows(self, x: Any) -> Float32Array:
        """Rows as the compiled loops take them."""
        return np.ascontiguousarray(check_numbers(x, "x", None, sum(self.widths)), np.float32)

    def _walked(self, x: Float32Array) -> FloatArray:
        out = np.zeros((len(x), self.outputs))
        _walk(x, *self._trees, out)
        return out

    def _with_base(self, said: FloatArray) -> FloatArray:
        if self.classes == 2:
            said = np.concatenate([np.zeros_like(said), said], axis=1)
        return np.asarray(self.state["base"] + said)

    def __repr__(self) -> str:
        return f"Boosted(widths={self.widths}, classes={self.classes}, trees={len(self.state['column'])})"


def channel_shares(gains: FloatArray, widths: tuple[int, ...]) -> Float32Array:
    """Per channel, the share of its columns in the gains; equal where there are none."""
    parts = np.array([part.sum() for part in np.split(gains, np.cumsum(widths)[:-1])])
    total = parts.sum()
    return np.asarray(parts / total if total else np.full(len(parts), 1 / len(parts)), np.float32)


def dense_rows(channels: Channels, rows: IntArray) -> Float32Array:
    """Rows of channels at some places, those of all channels side by side."""
    parts = channels.rows_at(rows, np.dtype(np.float32))
    return np.ascontiguousarray(np.hstack([part.toarray() if issparse(part) else part for part in parts]))


def boost(
    channels: Channels,
    labels: Any,
    split: Split,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    leaves: int = default.LEAVES,
    classes: int | None = None,
    metric: str = "accuracy",
    seed: int = default.SEED,
    sample_weight: FloatArray | None = None,
    history: bool = False,
    progress: Progress | None = None,
    until: Deadline | None = None,
) -> Run:
    """Grow trees on a split until validation stops improving.

    Parameters
    ----------
    channels, labels, split
        What is known; the labels, or targets (of a floating type), of test nodes are looked at once, at the end. At
        most 262,144 training rows, and as many validation rows, are looked at.
    settings
        Of which ``epochs`` (rounds), ``patience``, ``stop`` and ``class_weights`` count.
    leaves
        The most leaves per tree.
    classes, metric, seed, sample_weight, history, progress, until
        As in `pegfan.train`.

    Returns
    -------
    Run
        Its state makes a `Boosted`; its attention is the share of every channel in what the trees gained.
    """
    chosen = Settings.of(settings)
    y = np.asarray(labels)
    numeric = y.dtype.kind == "f"
    count = 1 if numeric else max(int(y.max(initial=0)) + 1, classes or 0, 2)
    split = as_split(split, channels.n, labels=y)
    start = time.process_time()
    rows = [Labelled.of(channels, nodes, y, sample_weight).some(ROWS) for nodes in (split.train, split.val)]
    truth = rows[1].labels
    if numeric:
        units = Units.of(rows[0].labels, loss_weights(rows[0].labels, False, rows[0].weights))
        rows = [part._replace(labels=units.standard(part.labels)) for part in rows]
    trainer: Any = _Rounds(channels, rows[0], rows[1], chosen, leaves, count, seed)
    trainer = InUnits(trainer, units) if numeric else trainer
    tell = None if progress is None else lambda text: progress(Step(0, 1, text))
    names = ("attention",) if history else None
    course = training_loop(trainer, chosen, truth, metric, "boosting", names, tell, until=until)
    state = trainer.state(course.kept)
    model = Boosted(state)
    return Run(
        split=0,
        seed=seed,
        **course.numbers,
        test_metric=score(model.predict(channels, split.test), y[split.test], metric),
        seconds=time.process_time() - start,
        attention=model.attention,
        state=state,
        history=course.history,
    )


class _Rounds:
    """Rounds of boosting: one tree each for two classes or numbers, else one per class."""

    def __init__(
        self,
        channels: Channels,
        train: Labelled,
        val: Labelled,
        settings: Settings,
        leaves: int,
        classes: int,
        seed: int,
    ) -> None:
        self.widths, self.classes, self.outputs = channels.widths, classes, 1 if classes == 2 else classes
        self.leaves, self.seed, self.val_labels, self.labels = leaves, seed, val.labels, train.labels
        n = len(train.labels)
        self.weights = loss_weights(train.labels, settings.class_weights, train.weights) * n
        self.val_weights = loss_weights(val.labels, False, val.weights)
        x = dense_rows(channels, train.places)
        bins = min(BINS, max(FEWEST_BINS, n // PER_BIN))
        self.edges = [_edges(x[:, j], bins) for j in range(x.shape[1])]
        self.bins = _binned(x, self.edges)
        self.val_bins = _binned(dense_rows(channels, val.places), self.edges)
        self.sizes = np.array([len(edges) + 1 for edges in self.edges], np.int64)
        self.useful = np.flatnonzero(self.sizes > 1)
        self.fewest = max(3, min(FEWEST, n // 40))
        self.base = np.zeros(1)  # targets have mean 0
        if classes > 1:
            sums = np.bincount(train.labels, self.weights, minlength=classes) + 1e-3
            self.base = np.log(sums / sums.sum())
        if classes == 2:
            self.base = np.array([0.0, self.base[1] - self.base[0]])
        self.said = np.zeros((self.outputs, n))
        self.val_said = np.zeros((self.outputs, len(val.labels)))
        self.gains = np.zeros(len(self.sizes))
        self.kept_gains: FloatArray = self.gains
        self.grown: list[tuple[Any, Any, Any, Any]] = []
        asked = max(1, round(COLUMNS * len(self.useful)))
        self.order, self.spare, self.near = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, 4), np.int64)
        self.sums = np.empty((leaves, asked, bins, 4), np.int64)
        self.places, self.gain = np.empty((2 * leaves - 1, _FACTS), np.int64), np.empty(2 * leaves - 1)

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """A round; the training loss is that before it."""
        logits = self._logits(self.said)
        rng = np.random.default_rng([self.seed, epoch])
        asked = self.sums.shape[1]
        if self.classes == 1:
            return self._step_of_numbers(logits, rng, asked)
        logs = log_softmax(logits, axis=1)
        loss = -float(self.weights @ logs[np.arange(len(logs)), self.labels]) / len(logs)
        p = np.exp(logs)
        for k in range(self.outputs):
            of = 1 if self.classes == 2 else k
            own = p[:, of]
            g = self.weights * (own - (self.labels == of))
            h = self.weights * own * (1 - own) * (1 if self.classes == 2 else self.classes / (self.classes - 1))
            chosen = np.sort(rng.choice(self.useful, min(asked, len(self.useful)), replace=False))
            self._grow(k, np.rint(g * _UNIT).astype(np.int64), np.rint(h * _UNIT).astype(np.int64), chosen)
        val_logs = log_softmax(self._logits(self.val_said), axis=1)
        val_loss = -float(self.val_weights @ val_logs[np.arange(len(val_logs)), self.val_labels])
        return loss, val_loss, val_logs

    def _step_of_numbers(self, output: FloatArray, rng: Any, asked: int) -> tuple[float, float, Any]:
        """A round for the squared error: a tree on what is left of the targets."""
        gaps = output[:, 0] - self.labels
        loss = float(self.weights @ gaps**2) / len(gaps)
        chosen = np.sort(rng.choice(self.useful, min(asked, len(self.useful)), replace=False))
        g, h = (np.rint(part * _UNIT).astype(np.int64) for part in (self.weights * gaps, self.weights))
        self._grow(0, g, h, chosen)
        said = self._logits(self.val_said)
        return loss, float(self.val_weights @ (said[:, 0] - self.val_labels) ** 2), said

    def _grow(self, k: int, g: IntArray, h: IntArray, chosen: IntArray) -> None:
        size = 2 * self.leaves - 1
        column, at, child = (np.empty(size, np.int32) for _ in range(3))
        value = np.zeros(size)
        tree = (column, at, child, value)
        count = _grow(
            *(self.bins, self.sizes, chosen, g, h, self.leaves, self.fewest, L2, RATE),
            *(self.order, self.spare, self.near, self.sums, self.places, self.gain, *tree, self.gains),
        )
        assert count > 0
        _add_rows(self.order, self.places, child, value, self.said[k])
        _add_bins(self.val_bins, column, at, child, value, self.val_said[k])
        self.grown.append(tree)

    def _logits(self, said: FloatArray) -> FloatArray:
        whole = np.vstack([np.zeros_like(said), said]) if self.classes == 2 else said
        return np.asarray(self.base + whole.T)

    def attention(self) -> Float32Array:
        return channel_shares(self.gains, self.widths)

    def snapshot(self) -> tuple[int, FloatArray]:
        """How many trees there are, and what they gained: earlier trees do not change."""
        return len(self.grown), self.gains.copy()

    def state(self, snapshot: tuple[int, FloatArray]) -> dict[str, Any]:
        count, gains = snapshot
        column, at, child, value = (np.stack(part) for part in zip(*self.grown[:count], strict=True))
        inner = child >= 0
        threshold = np.zeros(column.shape, np.float32)
        threshold[inner] = [self.edges[j][b] for j, b in zip(column[inner].tolist(), at[inner].tolist(), strict=True)]
        widths = np.array(self.widths, np.int64)
        return {
            **{"base": self.base, "widths": widths, "gains": gains},
            **{"column": column, "threshold": threshold, "child": child, "value": value},
        }


def _edges(values: Float32Array, bins: int = BINS) -> Float32Array:
    """Thresholds between the bins of a column, one fewer than there are: between values, of equally many rows each.

    Examples
    --------
    >>> _edges(np.array([0, 0, 1, 3], np.float32))
    array([0.5, 2. ], dtype=float32)
    """
    found, counts = np.unique(values, return_counts=True)
    if len(found) > bins:
        upto = np.cumsum(counts)[:-1]
        wanted = np.arange(1, bins) * (len(values) / bins)
        cut = np.unique(np.minimum(np.searchsorted(upto, wanted), len(found) - 2))
    else:
        cut = np.arange(len(found) - 1)
    low, high = found[cut], found[cut + 1]
    middle = low + (high - low) / 2
    return np.asarray(np.where((middle >= low) & (middle < high), middle, low), np.float32)


def _binned(x: Float32Array, edges: list[Float32Array]) -> Any:
    """The bin of every value, a row per column: the number of thresholds below it."""
    out = np.empty((x.shape[1], len(x)), np.uint8)
    for j, own in enumerate(edges):
        out[j] = np.searchsorted(own, x[:, j], side="left")
    return out
