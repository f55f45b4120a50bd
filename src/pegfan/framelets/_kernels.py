"""Compiled loops over the clusters of one level, for dense signals in rows.

A signal with d columns is an (N, d) array with one row per slot; the pair filters of `binary_haar` are given
by p alone. All offsets and row numbers are unsigned, which spares a test for negative numbers in every
access. ``rows`` maps leaves to nodes and is empty where both are in the same order.

Transforms move far more bytes than they compute, so two things decide their speed. Results too large for the
caches are written past them (*streamed*: a store that does not first read the line it overwrites), and rows
that come in scattered order are asked for some rows ahead (*prefetched*).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pegfan._arrays import LINE
from pegfan._compiled import compiled

ALIGNMENT = 16
"""Bytes that every streamed row must be aligned to, as NumPy's arrays are; its length is a multiple of `LINE`."""

_AHEAD = np.uint64(8)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


def _row_pointer(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> tuple[Any, Any]:
    """The address of a row of a C-ordered matrix, and the row's length."""
    view = context.make_array(array_type)(context, builder, array)
    stride = cgutils.unpack_tuple(builder, view.strides, 2)[0]
    length = cgutils.unpack_tuple(builder, view.shape, 2)[1]
    return cgutils.pointer_add(builder, view.data, builder.mul(row, stride)), length


@intrinsic  # type: ignore[untyped-decorator]
def _stream(
    context: Any, out: Any, r: Any, a: Any, x: Any, i: Any, b: Any, y: Any, j: Any
) -> Any:  # pragma: no cover - runs inside the compiler
    """out[r] = a x[i] + b y[j], a cache line at a time, with stores that go past the caches."""
    scalar = out.dtype
    lanes = LINE * 8 // scalar.bitwidth
    signature = types.void(out, types.uint64, scalar, x, types.uint64, scalar, y, types.uint64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out_type, _, _, x_type, _, _, y_type, _ = signature.args
        target, length = _row_pointer(context, builder, out_type, args[0], args[1])
        first, _ = _row_pointer(context, builder, x_type, args[3], args[4])
        second, _ = _row_pointer(context, builder, y_type, args[6], args[7])
        vector, int32 = ir.VectorType(args[2].type, lanes), ir.IntType(32)
        itemsize = scalar.bitwidth // 8

        def splat(value: Any) -> Any:
            empty = ir.Constant(vector, ir.Undefined)
            mask = ir.Constant(ir.VectorType(int32, lanes), [0] * lanes)
            return builder.shuffle_vector(builder.insert_element(empty, value, int32(0)), empty, mask)

        def at(pointer: Any, column: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [column]), vector.as_pointer())

        a, b = splat(args[2]), splat(args[5])
        step = ir.Constant(length.type, lanes)
        with cgutils.for_range_slice(builder, length.type(0), length, step, inc=True) as (column, _):
            left = builder.fmul(a, builder.load(at(first, column), align=itemsize))
            right = builder.fmul(b, builder.load(at(second, column), align=itemsize))
            store = builder.store(builder.fadd(left, right), at(target, column), align=ALIGNMENT)
            store.set_metadata("nontemporal", builder.module.add_metadata([int32(1)]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(context: Any, x: Any, i: Any) -> Any:  # pragma: no cover - runs inside the compiler
    """Ask for row i of x, to be read soon."""
    signature = types.void(x, types.uint64)
    lanes = LINE * 8 // x.dtype.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, length = _row_pointer(context, builder, signature.args[0], args[0], args[1])
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], kind)
        step = ir.Constant(length.type, lanes)
        with cgutils.for_range_slice(builder, length.type(0), length, step, inc=True) as (column, _):
            address = builder.bitcast(builder.gep(row, [column]), byte_pointer)
            builder.call(prefetch, [address, int32(0), int32(3), int32(1)])  # read, keep, data
        return context.get_dummy_value()

    return signature, codegen


@compiled(error_model="numpy", inline="always")
def _combine(out, r, a, x, i, b, y, j, streaming):  # type: ignore[no-untyped-def]
    """out[r] = a x[i] + b y[j]."""
    if streaming:
        _stream(out, r, a, x, i, b, y, j)
    else:
        for t in range(out.shape[1]):
            out[r, t] = a * x[i, t] + b * y[j, t]


@compiled(error_model="numpy")
def average(first, p, x, rows, up):  # type: ignore[no-untyped-def]
    """up[c] = Σ_i p_i x[i] over the children i of every cluster c: equation (1) on coefficients."""
    gather, n = rows.size > 0, np.uint64(x.shape[0])
    for c in range(first.size - 1):
        a, b = first[c], first[c + 1]
        for i in range(a, b):
            if gather and i + _AHEAD < n:
                _prefetch(x, rows[i + _AHEAD])
            r, weight = rows[i] if gather else i, p[i]
            if i == a:
                for t in range(x.shape[1]):
                    up[c, t] = weight * x[r, t]
            else:
                for t in range(x.shape[1]):
                    up[c, t] += weight * x[r, t]


@compiled(error_model="numpy")
def analyse(first, p, x, rows, up, y, streaming):  # type: ignore[no-untyped-def]
    """One level down the fast decomposition: up as in `average`, and y = p_j x[i] − p_i x[j] for pairs i < j."""
    gather, n, m = rows.size > 0, np.uint64(x.shape[0]), _ZERO
    for c in range(first.size - 1):
        a, b = first[c], first[c + 1]
        for i in range(a, b):
            if i + _AHEAD < n:
                _prefetch(x, rows[i + _AHEAD] if gather else i + _AHEAD)
            r, weight = rows[i] if gather else i, p[i]
            if i == a:
                for t in range(x.shape[1]):
                    up[c, t] = weight * x[r, t]
            else:
                for t in range(x.shape[1]):
                    up[c, t] += weight * x[r, t]
        for i in range(a, b):
            r = rows[i] if gather else i
            for j in range(i + _ONE, b):
                s = rows[j] if gather else j
                _combine(y, m, p[j], x, r, -p[i], x, s, streaming)
                m += _ONE


@compiled(error_model="numpy")
def synthesise(first, p, up, y, x, rows, streaming):  # type: ignore[no-untyped-def]
    """One level up the fast reconstruction, the transpose of `analyse`: x = p up + Bᵀ y, cluster by cluster."""
    gather, m, rows_of_y = rows.size > 0, _ZERO, np.uint64(y.shape[0])
    one, half = p.dtype.type(1), p.dtype.type(0.5)
    most = _ZERO
    for c in range(first.size - 1):
        most = max(most, first[c + 1] - first[c])
    # The children of one cluster are summed here, in the fastest cache; the last term goes straight to x.
    children = np.empty((most, x.shape[1]), x.dtype)
    for c in range(first.size - 1):
        a, b = first[c], first[c + 1]
        if b - a == 1:
            r = rows[a] if gather else a
            _combine(x, r, half * p[a], up, np.uint64(c), half * p[a], up, np.uint64(c), streaming)
            continue
        for i in range(a, b):
            weight = p[i]
            for t in range(x.shape[1]):
                children[i - a, t] = weight * up[c, t]
        for i in range(a, b):
            for j in range(i + _ONE, b):
                if m + _AHEAD < rows_of_y:
                    _prefetch(y, m + _AHEAD)
                weight = p[j]
                if j + _ONE == b:
                    _combine(x, rows[i] if gather else i, one, children, i - a, weight, y, m, streaming)
                else:
                    for t in range(x.shape[1]):
                        children[i - a, t] += weight * y[m, t]
                weight = -p[i]
                if i + np.uint64(2) == b:
                    _combine(x, rows[j] if gather else j, one, children, j - a, weight, y, m, streaming)
                else:
                    for t in range(x.shape[1]):
                        children[j - a, t] += weight * y[m, t]
                m += _ONE


@compiled(error_model="numpy")
def lift(leaf, weight, x, out, rows, streaming):  # type: ignore[no-untyped-def]
    """Compute out = Φᵀ x: every leaf s of cluster c gets weight[s] x[c]."""
    gather = rows.size > 0
    for c in range(leaf.size - 1):
        for s in range(leaf[c], leaf[c + 1]):
            half = weight[s] * weight.dtype.type(0.5)
            _combine(out, rows[s] if gather else s, half, x, np.uint64(c), half, x, np.uint64(c), streaming)


@compiled(error_model="numpy")
def detail(first, p, leaf, weight, x, rows_of_x, up, out, rows, streaming):  # type: ignore[no-untyped-def]
    """Compute out = Φ_fineᵀ (x − p up): what the children x of every cluster add to its average up."""
    gather, scattered, n = rows.size > 0, rows_of_x.size > 0, np.uint64(x.shape[0])
    for c in range(first.size - 1):
        for i in range(first[c], first[c + 1]):
            if scattered and i + _AHEAD < n:
                _prefetch(x, rows_of_x[i + _AHEAD])
            source = rows_of_x[i] if scattered else i
            for s in range(leaf[i], leaf[i + _ONE]):
                r = rows[s] if gather else s
                _combine(out, r, weight[s], x, source, -weight[s] * p[i], up, np.uint64(c), streaming)
