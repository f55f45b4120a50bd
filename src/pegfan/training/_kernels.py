"""Compiled loops of the fast training path: sparse products, the rows of the network, Adam, and a whole step.

Everything is C-ordered, in one dtype. Widths that fill whole cache lines (64 hidden units do) keep the sums of a
row in registers while the entries of the sparse row go by; rows that start at a cache line are read twice as fast.
The width of 64 is compiled apart, for loops of known length need no remainders.

A matrix is a row of a table: (whether it is dense, rows, columns, place of its row pointers, place of its entries if
it is dense). The numbers are row pointers, columns and entries of all sparse matrices, one after another, and the
entries of all dense ones.
"""

from __future__ import annotations

import numpy as np

from pegfan._compiled import compiled
from pegfan._products import sparse_product


@compiled(error_model="numpy")
def _multiply(matrix, numbers, B, out):  # type: ignore[no-untyped-def]
    """Compute out = M B for a matrix of a table."""
    pointers, indices, data, dense = numbers
    is_dense, rows, columns, first, place = matrix[0], matrix[1], matrix[2], matrix[3], matrix[4]
    if is_dense:
        np.dot(dense[place : place + rows * columns].reshape((rows, columns)), B, out)
    else:
        sparse_product(pointers[first : first + rows + 1], indices, data, B, out, 0, rows)


@compiled(error_model="numpy")
def chain(matrices, numbers, B, room, out):  # type: ignore[no-untyped-def]
    """Compute out = M_last ... M_1 B, by turns in the two halves of the room."""
    width, last = B.shape[1], matrices.shape[0] - 1
    for k in range(last):
        rows = matrices[k, 1]
        place = k % 2 * (room.size // 2)
        between = room[place : place + rows * width].reshape((rows, width))
        _multiply(matrices[k], numbers, B, between)
        B = between
    _multiply(matrices[last], numbers, B, out)


_FAST = {"contract", "reassoc", "nsz"}


@compiled(fastmath=_FAST, error_model="numpy", forceinline=True)
def _normalize(H, bias, wanted, inverse, width):  # type: ignore[no-untyped-def]
    one = H.dtype.type(1)
    for r in range(H.shape[0]):
        total = H.dtype.type(0)
        for t in range(width):
            h = H[r, t] + bias[t]
            H[r, t] = h
            total += h * h
        inverse[r] = one
        if wanted:
            factor = one / max(np.sqrt(total), H.dtype.type(1e-12))
            for t in range(width):
                H[r, t] *= factor
            inverse[r] = factor


@compiled("normalize", error_model="numpy")
def normalize(H, bias, wanted, inverse):  # type: ignore[no-untyped-def]
    """Turn H into N(H + bias); inverse holds 1/‖row‖, or 1 where rows are not to be normalised."""
    if H.shape[1] == 64:
        _normalize(H, bias, wanted, inverse, 64)
    else:
        _normalize(H, bias, wanted, inverse, H.shape[1])


@compiled(fastmath=_FAST, error_model="numpy", forceinline=True)
def _logits(H, alpha, V, masks, scale, start, c, logits, width):  # type: ignore[no-untyped-def]
    zero = H.dtype.type(0)
    masked = masks.size > 0
    active = np.empty(width, H.dtype)
    for r in range(logits.shape[0]):
        for k in range(c.size):
            logits[r, k] = c[k]
        for i in range(H.shape[0]):
            if masked:
                factor = alpha[i] * scale
                for t in range(width):
                    active[t] = factor * max(H[i, start + r, t], zero) * masks[i, r, t]
            else:
                for t in range(width):
                    active[t] = alpha[i] * max(H[i, start + r, t], zero)
            for k in range(c.size):
                total = zero
                for t in range(width):
                    total += active[t] * V[i, k, t]
                logits[r, k] += total


@compiled("compute_logits", error_model="numpy")
def compute_logits(H, alpha, V, masks, scale, start, c, logits):  # type: ignore[no-untyped-def]
    """Compute Σ_i α_i mask_i relu(H_i) V_iᵀ + c for the rows from start on; V is channels × classes × hidden."""
    if H.shape[2] == 64:
        _logits(H, alpha, V, masks, scale, start, c, logits, 64)
    else:
        _logits(H, alpha, V, masks, scale, start, c, logits, H.shape[2])


@compiled(fastmath=_FAST, error_model="numpy", forceinline=True)
def _backward(H, inverse, normalized, alpha, V, mask, scale, error, gradient, grad_V, grad_bias, width):  # type: ignore[no-untyped-def]
    rows, classes, zero = error.shape[0], V.shape[0], H.dtype.type(0)
    masked = mask.size > 0
    grad_V[:] = 0
    grad_bias[:] = 0
    grad_alpha = zero
    kept = np.empty(width, H.dtype)
    back = np.empty(width, H.dtype)
    for r in range(rows):
        for t in range(width):
            back[t] = error[r, 0] * V[0, t]
        for k in range(1, classes):
            e = error[r, k]
            for t in range(width):
                back[t] += e * V[k, t]
        if masked:
            for t in range(width):
                kept[t] = scale * mask[r, t] if H[r, t] > 0 else zero
        else:
            for t in range(width):
                kept[t] = H.dtype.type(1) if H[r, t] > 0 else zero
        inner = zero
        for t in range(width):
            back[t] *= kept[t]
            kept[t] *= H[r, t]
            inner += back[t] * H[r, t]
        grad_alpha += inner
        for k in range(classes):
            e = error[r, k] * alpha
            for t in range(width):
                grad_V[k, t] += e * kept[t]
        factor = alpha * inverse[r]
        through = inner * factor if normalized else zero
        for t in range(width):
            g = factor * back[t] - through * H[r, t]
            gradient[r, t] = g
            grad_bias[t] += g
    return grad_alpha


@compiled("backward", error_model="numpy")
def backward(H, inverse, normalized, alpha, V, mask, scale, error, gradient, grad_V, grad_bias):  # type: ignore[no-untyped-def]
    """Back through one channel, from the error of the logits of the training rows.

    gradient becomes the gradient with respect to H before the normalisation, grad_V and grad_bias are overwritten, and
    the result is the derivative by α.
    """
    if H.shape[1] == 64:
        return _backward(H, inverse, normalized, alpha, V, mask, scale, error, gradient, grad_V, grad_bias, 64)
    return _backward(H, inverse, normalized, alpha, V, mask, scale, error, gradient, grad_V, grad_bias, H.shape[1])


@compiled("cross_entropy", error_model="numpy")
def cross_entropy(logits, labels, weights, error):  # type: ignore[no-untyped-def]
    """The weighted mean of −log softmax at the labels; error becomes its gradient, unless it is empty.

    weights are per row and sum to one.
    """
    rows, classes = logits.shape
    wanted = error.size > 0
    loss = 0.0
    powers = np.empty(classes)
    for r in range(rows):
        top = logits[r, 0]
        for k in range(1, classes):
            top = max(top, logits[r, k])
        total = 0.0
        for k in range(classes):
            powers[k] = np.exp(logits[r, k] - top)
            total += powers[k]
        loss -= weights[r] * (logits[r, labels[r]] - top - np.log(total))
        if wanted:
            for k in range(classes):
                error[r, k] = weights[r] * powers[k] / total
            error[r, labels[r]] -= weights[r]
    return loss


@compiled("squared_error", error_model="numpy")
def squared_error(outputs, targets, weights, error):  # type: ignore[no-untyped-def]
    """The weighted mean of (output − target)², of one output; error becomes its gradient, unless it is empty."""
    wanted = error.size > 0
    loss = 0.0
    for r in range(outputs.shape[0]):
        gap = outputs[r, 0] - targets[r]
        loss += weights[r] * gap * gap
        if wanted:
            error[r, 0] = 2 * weights[r] * gap
    return loss


@compiled(fastmath={"contract", "nsz", "arcp"}, error_model="numpy", forceinline=True)
def _adam(weights, moments, squares, start, g, constants):  # type: ignore[no-untyped-def]
    """One step of Adam for the weights from start on, with L2 decay in the gradient g, as torch.optim.Adam has it."""
    step, decay, root = constants
    stop = start + g.size
    w, m, v = weights[start:stop], moments[start:stop], squares[start:stop]
    one = w.dtype.type(1)
    b1, b2, eps = w.dtype.type(0.9), w.dtype.type(0.999), w.dtype.type(1e-8)
    for i in range(g.size):
        grad = g[i] + decay * w[i]
        m[i] = b1 * m[i] + (one - b1) * grad
        v[i] = b2 * v[i] + (one - b2) * grad * grad
        w[i] -= step * m[i] / (np.sqrt(v[i]) * root + eps)


@compiled("adam_step", error_model="numpy")
def adam_step(w, m, v, g, step, decay, root):  # type: ignore[no-untyped-def]
    """One step of Adam for all of some weights, with the rates that `adam_rates` gives."""
    number = w.dtype.type
    _adam(w, m, v, 0, g, (number(step), number(decay), number(root)))


def adam_rates(rate: float, decay: float, steps: int) -> tuple[float, float, float]:
    """What a step of Adam multiplies by: the moments, the weights, and the root of the squares."""
    return float(rate / (1.0 - 0.9**steps)), float(decay), float(1.0 / np.sqrt(1.0 - 0.999**steps))


@compiled(error_model="numpy", forceinline=True)
def _constants(w, rate, decay, steps):  # type: ignore[no-untyped-def]
    number = w.dtype.type
    return number(rate / (1.0 - 0.9**steps)), number(decay), number(1.0 / np.sqrt(1.0 - 0.999**steps))


@compiled(error_model="numpy")
def forward(i, tables, numbers, weights, room, bias, normalized, H, inverse):  # type: ignore[no-untyped-def]
    """Compute H = N(A_i W_i + b_i) for the needed rows."""
    rows, width = tables.sizes[i], H.shape[1]
    W = weights[tables.places[i] : tables.places[i] + rows * width].reshape((rows, width))
    chain(tables.forward[tables.forward_starts[i] : tables.forward_starts[i + 1]], numbers, W, room, H)
    normalize(H, bias, normalized, inverse)


@compiled(error_model="numpy")
def weight_gradient(i, tables, numbers, gradient, room, out):  # type: ignore[no-untyped-def]
    """Compute out = A_iᵀ G for the gradient G of the training rows."""
    chain(tables.back[tables.back_starts[i] : tables.back_starts[i + 1]], numbers, gradient, room, out)


@compiled(error_model="numpy")
def step(tables, numbers, weights, rows_, masks, scale, grads, room, rates, steps):  # type: ignore[no-untyped-def]
    """One step of Adam for all weights: for each channel backward, update and forward again; then the rest.

    weights are (w, m, v), the views b and V into w, and α; rows are (H, inverse, normalized, error, gradient);
    grads is the room for those by b, V, c, a and α; rates are those of the layers, of the attention, and the decays.
    """
    w, m, v, b, V, alpha = weights
    H, inverse, normalized, error, gradient = rows_
    grad_b, grad_V, grad_c, grad_a, grad_alpha = grads
    lr_fc, lr_sca, wd_fc1, wd_fc2, wd_sca = rates
    constants = _constants(w, lr_fc, wd_fc1, steps)
    for i in range(H.shape[0]):
        grad_alpha[i] = backward(
            H[i], inverse[i], normalized, alpha[i], V[i], masks[i], scale, error, gradient, grad_V[i], grad_b[i]
        )
        rows, at = tables.sizes[i], tables.places[i]
        g = tables.gradient[: rows * b.shape[1]]
        weight_gradient(i, tables, numbers, gradient, room, g.reshape((rows, b.shape[1])))
        _adam(w, m, v, at, g, constants)
        _adam(w, m, v, tables.rest[0] + i * b.shape[1], grad_b[i], constants)
        forward(i, tables, numbers, w, room, b[i], normalized, H[i], inverse[i])
    grad_c[:] = 0
    for r in range(error.shape[0]):
        for k in range(error.shape[1]):
            grad_c[k] += error[r, k]
    attention_gradient(alpha, grad_alpha, grad_a)
    constants = _constants(w, lr_fc, wd_fc2, steps)
    _adam(w, m, v, tables.rest[1], grad_V.reshape(-1), constants)
    _adam(w, m, v, tables.rest[2], grad_c, constants)
    constants = _constants(w, lr_sca, wd_sca, steps)
    _adam(w, m, v, tables.rest[3], grad_a, constants)


@compiled("attention_gradient", error_model="numpy")
def attention_gradient(alpha, by_alpha, out):  # type: ignore[no-untyped-def]
    """The gradient by a from that by α = softmax(a)."""
    inner = (alpha * by_alpha).sum()
    for i in range(alpha.size):
        out[i] = alpha[i] * (by_alpha[i] - inner)
