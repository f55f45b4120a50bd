"""What training on chains of operators (`fast`) and in batches of rows (`batches`) share: weights, dropout, loops in C.

The loops are those of src/native/network.inc for the processor at hand. Hidden units are filled up to whole lines of 16
with ones that are and stay zero, so that loops know no remainders and no sum changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from pegfan._arrays import Float32Array, IntArray
from pegfan._loops import Loop
from pegfan._products import product

PROCESSORS = ("portable", "avx2", "avx512")
"""The kinds of processors that the loops are compiled for; `processor` and `use_processor` take their places here."""

processor = Loop("int64 network_processor()")
"""The kind whose loops run: the last one that this machine can run."""

use_processor = Loop("int64 network_use(int64 kind)")
"""Use the loops for another kind; whether this machine can run them."""

draw_masks = Loop("void draw_masks(uint64 seed, uint64 threshold, int64 hidden, uint64 bits[rows, words])")
"""The entries that dropout keeps, a bit each: those whose 16 random bits are at least the threshold."""

rows_forward = Loop("""void rows_forward(
    int64 lines, float32 H[rows, 16 * lines], const float32 bias[16 * lines], int64 normalized, float32 inverse[rows],
    const float32 V[classes, 16 * lines], float64 by, maybe const uint64 bits[rows, (lines + 3) // 4],
    float32 scratch[4, 16 * lines], float32 Z[rows, classes])""")
"""From H = X W on: H becomes N(H + bias), `inverse` 1/‖row‖ (or 1 where rows are not to be normalised), and Z what the
channel adds to the logits, (by mask relu(H)) Vᵀ."""

rows_back = Loop("""float64 rows_back(
    int64 lines, const float32 H[rows, 16 * lines], const float32 inverse[rows], int64 normalized, float64 alpha,
    const float32 V[classes, 16 * lines], maybe const uint64 bits[rows, (lines + 3) // 4], float64 scale,
    const float32 error[rows, classes], float32 scratch[4, 16 * lines], float32 gradient[rows, 16 * lines],
    float32 grad_V[classes, 16 * lines], float32 grad_b[16 * lines])""")
"""Back through one channel, from the gradient of the loss by the logits: `gradient` becomes that by X W, grad_V and
grad_b are overwritten, the derivative by α is returned."""

cross_entropy = Loop("""float64 cross_entropy(
    const float32 logits[rows, classes], const int64 labels[rows], const float32 weights[rows],
    maybe float32 error[rows, classes])""")
"""The sum of −log softmax at the labels, with weights that sum to one; `error` becomes its gradient."""

squared_error = Loop("""float64 squared_error(
    const float32 outputs[rows, 1], const float32 targets[rows], const float32 weights[rows],
    maybe float32 error[rows, 1])""")
"""The sum of (output − target)², likewise."""

attention_gradient = Loop("void attention_gradient(const float32 alpha[n], const float32 by_alpha[n], float32 out[n])")
"""The gradient by a from that by α = softmax(a)."""

adam_step = Loop("""void adam_step(
    int64 lines, float32 w[16 * lines], float32 m[16 * lines], float32 v[16 * lines], const float32 g[16 * lines],
    float64 rate, float64 decay, int64 steps)""")
"""One step of Adam with L2 decay in the gradient, as `torch.optim.Adam` has it; `steps` counts this one."""

LANES = 16
"""Numbers of a line."""


class Layout:
    """Where the weights of a two-layer network are in one array: all W_i (columns × hidden), then b, V, c and a.

    V is channels × classes × hidden, each part fills whole lines.

    Parameters
    ----------
    state
        Weights by the names of `pegfan.models.ChannelNetwork`.
    columns
        Of every channel, those that have weights; the others, which are zero for all rows, have none. By default all.

    Examples
    --------
    >>> layout = Layout(
    ...     {
    ...         "channel_layers.0.weight": np.ones((1, 2), np.float32),
    ...         "channel_layers.0.bias": np.ones(1, np.float32),
    ...         "output.weight": np.ones((3, 1), np.float32),
    ...         "output.bias": np.ones(3, np.float32),
    ...         "attention_logits": np.ones(1, np.float32),
    ...     }
    ... )
    >>> [part.shape for part in layout.views(np.zeros(layout.starts[-1]))]
    [(2, 16), (1, 16), (1, 3, 16), (3,), (1,)]
    """

    def __init__(self, state: Mapping[str, Any], columns: Sequence[IntArray] | None = None) -> None:
        self.count = len(state["attention_logits"])
        self.widths = [state[f"channel_layers.{i}.weight"].shape[1] for i in range(self.count)]
        self.columns = [np.arange(width) for width in self.widths] if columns is None else columns
        self.classes, width = state["output.weight"].shape
        self.hidden = width // self.count
        self.lines = -(-self.hidden // LANES)
        wide = LANES * self.lines
        self.shapes: list[tuple[int, ...]] = [(len(used), wide) for used in self.columns]
        self.shapes += [(self.count, wide), (self.count, self.classes, wide), (self.classes,), (self.count,)]
        self.starts = np.cumsum([0, *(-(-int(np.prod(shape)) // LANES) * LANES for shape in self.shapes)])

    def views(self, w: Any) -> list[Any]:
        """All W_i, b, V, c and a of such an array."""
        parts = zip(self.starts.tolist(), self.shapes, strict=False)
        return [w[start : start + int(np.prod(shape))].reshape(shape) for start, shape in parts]

    def fill(self, w: Any, state: Mapping[str, Any]) -> None:
        """Write weights into such an array."""
        *W, b, V, c, a = self.views(w)
        for i, used in enumerate(self.columns):
            W[i][:, : self.hidden] = state[f"channel_layers.{i}.weight"].T[used]
            b[i, : self.hidden] = state[f"channel_layers.{i}.bias"]
        V[..., : self.hidden] = state["output.weight"].reshape(self.classes, self.count, self.hidden).transpose(1, 0, 2)
        c[:], a[:] = state["output.bias"], state["attention_logits"]

    def state(self, w: Any) -> dict[str, Any]:
        """The weights of such an array by their names."""
        *W, b, V, c, a = self.views(w)
        state: dict[str, Any] = {}
        for i, (used, width) in enumerate(zip(self.columns, self.widths, strict=True)):
            full = np.zeros((self.hidden, width), np.float32)
            full[:, used] = W[i][:, : self.hidden].T
            state |= {f"channel_layers.{i}.weight": full, f"channel_layers.{i}.bias": b[i, : self.hidden].copy()}
        V = V[..., : self.hidden].transpose(1, 0, 2).reshape(self.classes, self.count * self.hidden)
        return state | {"output.weight": V, "output.bias": c.copy(), "attention_logits": a.copy()}

    def empty(self, *rows: int) -> Float32Array:
        """Hidden units of some rows, all zero."""
        return np.zeros((*rows, LANES * self.lines), np.float32)

    def masks(self, *rows: int) -> Any:
        """Room for the bits of hidden units of some rows."""
        return np.zeros((*rows, (self.lines + 3) // 4), np.uint64)

    def forward(
        self, x: Any, weights: tuple[Any, Any, Any], by: Any, normalized: bool, masks: Any = None
    ) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Z, H and the factors of N for rows of a channel with weights W, b and V.

        H = N(x W + b), and Z = (by mask relu(H)) Vᵀ is what they add to the logits.
        """
        W, b, V = weights
        H = self.empty(x.shape[0])
        self.multiply(x, W, H)
        Z, inverse = np.empty((len(H), len(V)), np.float32), np.empty(len(H), np.float32)
        bits = self.masks(0) if masks is None else masks
        rows_forward(self.lines, H, b, normalized, inverse, V, by, bits, self.empty(4), Z)
        return Z, H, inverse

    def multiply(self, x: Any, W: Any, out: Any) -> None:
        """Compute out = x W for rows of a channel, sparse or dense."""
        if issparse(x):
            product(x, W, out=out)
        else:  # without what fills up lines, which would change how BLAS rounds
            np.matmul(x, W[:, : self.hidden], out=out[:, : self.hidden])

    def multiply_transposed(self, x: Any, G: Any, out: Any) -> None:
        """Compute out = xᵀ G."""
        self.multiply(csr_array(x.T) if issparse(x) else x.T, G, out)


def added(c: Any, parts: Iterable[Any]) -> Float32Array:
    """Logits: the bias and what every channel adds, in their order."""
    total = None
    for part in parts:
        total = np.tile(c, (len(part), 1)) if total is None else total
        total += part
    assert total is not None
    return total


def softmax(a: Any) -> Any:
    """The attention α of its logits."""
    e = np.exp(a - a.max())
    return e / e.sum()


def drawing(seed: int, rate: float) -> tuple[int, int, float]:
    """Where the random numbers of a step begin, the threshold of 16 bits, and what the kept entries are scaled by."""
    threshold = min(round(rate * 65536), 65535)  # something is kept at any rate below 1
    start = (seed * 0x9E3779B97F4A7C15) % 2**64  # far from the start of any other step
    return start, threshold, 65536 / (65536 - threshold)
