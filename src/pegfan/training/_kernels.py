"""Compiled loops of the fast training path: sparse products, the rows of the network, Adam.

Everything is C-ordered, in one dtype. Widths that fill whole cache lines (64 hidden units do) keep the sums of a
row in registers while the entries of the sparse row go by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_LINE = 64  # bytes of a cache line


def _row_product(
    lines: int, indices: Any, data: Any, B: Any, out: Any
) -> Any:  # pragma: no cover - runs inside the compiler
    """out[r, block] = Σ_e data[e] B[indices[e], block] for a block of some cache lines from a column on."""
    signature = types.void(indices, data, types.int64, types.int64, B, out, types.int64, types.int64)
    lanes = _LINE * 8 // out.dtype.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def view(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, args[k])

        columns, values, source, target = view(0), view(1), view(4), view(5)
        start, stop, r, column = args[2], args[3], args[6], args[7]
        scalar = context.get_data_type(out.dtype)
        vector, int32, int64 = ir.VectorType(scalar, lanes), ir.IntType(32), ir.IntType(64)
        zero = ir.Constant(vector, [0.0] * lanes)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(lines)]
        for total in sums:
            builder.store(zero, total)
        itemsize = out.dtype.bitwidth // 8

        def row(matrix: Any, i: Any) -> Any:
            stride = cgutils.unpack_tuple(builder, matrix.strides, 2)[0]
            return builder.gep(cgutils.pointer_add(builder, matrix.data, builder.mul(i, stride)), [column])

        def line(pointer: Any, k: int) -> Any:
            return builder.bitcast(builder.gep(pointer, [int64(k * lanes)]), vector.as_pointer())

        with cgutils.for_range_slice(builder, start, stop, int64(1), inc=True) as (e, _):
            j = builder.load(builder.gep(columns.data, [e]))
            j = builder.sext(j, int64) if j.type.width < 64 else j
            value = builder.load(builder.gep(values.data, [e]))
            undefined = ir.Constant(vector, ir.Undefined)
            mask = ir.Constant(ir.VectorType(int32, lanes), [0] * lanes)
            factor = builder.shuffle_vector(builder.insert_element(undefined, value, int32(0)), undefined, mask)
            pointer = row(source, j)
            for k, total in enumerate(sums):
                x = builder.load(line(pointer, k), align=itemsize)
                product = builder.fmul(factor, x, flags=("contract",))
                builder.store(builder.fadd(product, builder.load(total), flags=("contract",)), total)
        pointer = row(target, r)
        for k, total in enumerate(sums):
            builder.store(builder.load(total), line(pointer, k), align=itemsize)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def _four_lines(
    context: Any, indices: Any, data: Any, start: Any, stop: Any, B: Any, out: Any, r: Any, column: Any
) -> Any:  # pragma: no cover - runs inside the compiler
    return _row_product(4, indices, data, B, out)


@intrinsic  # type: ignore[untyped-decorator]
def _one_line(
    context: Any, indices: Any, data: Any, start: Any, stop: Any, B: Any, out: Any, r: Any, column: Any
) -> Any:  # pragma: no cover - runs inside the compiler
    return _row_product(1, indices, data, B, out)


@njit(cache=True, nogil=True, error_model="numpy")
def product(indptr, indices, data, B, out):  # type: ignore[no-untyped-def]
    """Compute out = M B for a sparse M in CSR form."""
    width = B.shape[1]
    lane = 64 // B.itemsize
    for i in range(indptr.size - 1):
        column = 0
        while column + 4 * lane <= width:
            _four_lines(indices, data, indptr[i], indptr[i + 1], B, out, i, column)
            column += 4 * lane
        while column + lane <= width:
            _one_line(indices, data, indptr[i], indptr[i + 1], B, out, i, column)
            column += lane
        for t in range(column, width):
            total = out.dtype.type(0)
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * B[indices[e], t]
            out[i, t] = total


@njit(cache=True, inline="always")
def _bits(x):  # type: ignore[no-untyped-def]
    """64 random-looking bits for every number (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def keep_mask(seed, threshold, mask):  # type: ignore[no-untyped-def]
    """Set mask = 1 where 16 random bits are at least the threshold: the entries that dropout keeps."""
    flat = mask.reshape(-1)
    if threshold == np.uint64(32768):  # a half: every bit serves
        for block in range((flat.size + 63) // 64):
            bits = _bits(seed + np.uint64(block))
            for k in range(min(64, flat.size - 64 * block)):
                flat[64 * block + k] = (bits >> np.uint64(k)) & np.uint64(1)
        return
    for block in range((flat.size + 3) // 4):
        bits = _bits(seed + np.uint64(block))
        for k in range(min(4, flat.size - 4 * block)):
            flat[4 * block + k] = ((bits >> np.uint64(16 * k)) & np.uint64(0xFFFF)) >= threshold


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def add_logits(H, bias, normalize, alpha, V, mask, scale, rows, inverse, logits):  # type: ignore[no-untyped-def]
    """Add one channel to the logits of the first `rows` rows: α mask relu(N(H + bias)) V, V being classes × hidden.

    H becomes N(H + bias) for the rows that are not normalised yet (inverse[r] == 0), and inverse holds 1/‖row‖.
    """
    width, classes = H.shape[1], V.shape[0]
    masked = mask.size > 0
    active = np.empty(width, H.dtype)
    for r in range(rows):
        if inverse[r] == 0:
            total = H.dtype.type(0)
            for t in range(width):
                H[r, t] += bias[t]
                total += H[r, t] * H[r, t]
            factor = H.dtype.type(1) / max(np.sqrt(total), H.dtype.type(1e-12)) if normalize else H.dtype.type(1)
            for t in range(width):
                H[r, t] *= factor
            inverse[r] = factor
        if masked:
            for t in range(width):
                active[t] = alpha * max(H[r, t], H.dtype.type(0)) * (scale * mask[r, t])
        else:
            for t in range(width):
                active[t] = alpha * max(H[r, t], H.dtype.type(0))
        for c in range(classes):
            total = H.dtype.type(0)
            for t in range(width):
                total += active[t] * V[c, t]
            logits[r, c] += total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def backward(H, inverse, normalize, alpha, V, mask, scale, error, gradient, grad_V, grad_bias):  # type: ignore[no-untyped-def]
    """Back through one channel, from the error of the logits of the training rows.

    gradient becomes the gradient with respect to H before the normalisation, grad_V and grad_bias are overwritten, and
    the result is the derivative by α.
    """
    rows, width, classes = error.shape[0], H.shape[1], V.shape[0]
    masked = mask.size > 0
    grad_V[:] = 0
    grad_bias[:] = 0
    grad_alpha = H.dtype.type(0)
    for r in range(rows):
        for t in range(width):
            gradient[r, t] = 0
        for c in range(classes):
            e = error[r, c]
            for t in range(width):
                gradient[r, t] += e * V[c, t]
        inner = H.dtype.type(0)
        for t in range(width):
            kept = scale * mask[r, t] if masked else H.dtype.type(1)
            kept = kept if H[r, t] > 0 else H.dtype.type(0)
            g = gradient[r, t] * kept
            inner += g * H[r, t]
            gradient[r, t] = g
        grad_alpha += inner
        for c in range(classes):
            e = error[r, c] * alpha
            for t in range(width):
                kept = scale * mask[r, t] if masked else H.dtype.type(1)
                grad_V[c, t] += e * kept * max(H[r, t], H.dtype.type(0))
        factor = alpha * inverse[r]
        if normalize:
            for t in range(width):
                gradient[r, t] = factor * (gradient[r, t] - inner * H[r, t])
        else:
            for t in range(width):
                gradient[r, t] *= factor
        for t in range(width):
            grad_bias[t] += gradient[r, t]
    return grad_alpha


@njit(cache=True, nogil=True, error_model="numpy")
def cross_entropy(logits, labels, weights, error):  # type: ignore[no-untyped-def]
    """The weighted mean of −log softmax at the labels; error becomes its gradient, or the log-probabilities if empty.

    weights are per row and sum to one.
    """
    rows, classes = logits.shape
    wanted = error.size > 0
    loss = 0.0
    for r in range(rows):
        top = logits[r, 0]
        for c in range(1, classes):
            top = max(top, logits[r, c])
        total = 0.0
        for c in range(classes):
            total += np.exp(logits[r, c] - top)
        loss -= weights[r] * (logits[r, labels[r]] - top - np.log(total))
        if wanted:
            for c in range(classes):
                error[r, c] = weights[r] * np.exp(logits[r, c] - top) / total
            error[r, labels[r]] -= weights[r]
    return loss


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def adam(w, g, m, v, rate, decay, correct_1, correct_2):  # type: ignore[no-untyped-def]
    """One step of Adam with L2 decay in the gradient, as torch.optim.Adam does it."""
    one = w.dtype.type(1)
    b1, b2, eps = w.dtype.type(0.9), w.dtype.type(0.999), w.dtype.type(1e-8)
    step, root = rate / correct_1, np.sqrt(correct_2)
    for i in range(w.size):
        grad = g[i] + decay * w[i]
        m[i] = b1 * m[i] + (one - b1) * grad
        v[i] = b2 * v[i] + (one - b2) * grad * grad
        w[i] -= step * m[i] / (np.sqrt(v[i]) / root + eps)
