"""Compiled loops that several parts share: sparse products, and the entries that dropout keeps.

Everything is C-ordered. Widths that fill whole cache lines keep the sums of a row in registers while the entries of
the sparse row go by; rows that start at a cache line are read twice as fast.
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
from pegfan._hashing import mix

__all__ = ["keep_mask", "product"]


def _row_product(
    lines: int, indices: Any, data: Any, B: Any, out: Any, share: int = 1
) -> Any:  # pragma: no cover - runs inside the compiler
    """out[r, block] = Σ_e data[e] B[indices[e], block] for some cache lines, or a share of one, from a column on.

    Whole lines are added by fused operations, a share of one is rounded as the loop over single columns does it.
    """
    signature = types.void(indices, data, types.int64, types.int64, B, out, types.int64, types.int64)
    lanes = LINE * 8 // out.dtype.bitwidth // share
    fused = ("contract",) if share == 1 else ()

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
                product = builder.fmul(factor, x, flags=fused)
                builder.store(builder.fadd(product, builder.load(total), flags=fused), total)
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


@intrinsic  # type: ignore[untyped-decorator]
def _half_line(
    context: Any, indices: Any, data: Any, start: Any, stop: Any, B: Any, out: Any, r: Any, column: Any
) -> Any:  # pragma: no cover - runs inside the compiler
    return _row_product(1, indices, data, B, out, share=2)


@intrinsic  # type: ignore[untyped-decorator]
def _quarter_line(
    context: Any, indices: Any, data: Any, start: Any, stop: Any, B: Any, out: Any, r: Any, column: Any
) -> Any:  # pragma: no cover - runs inside the compiler
    return _row_product(1, indices, data, B, out, share=4)


@compiled(error_model="numpy", forceinline=True)
def _row(pointers, indices, data, B, width, i, out, r):  # type: ignore[no-untyped-def]
    """Compute out[r] = row i of a sparse matrix times B."""
    lane = 64 // B.itemsize
    column = 0
    while column + 4 * lane <= width:
        _four_lines(indices, data, pointers[i], pointers[i + 1], B, out, r, column)
        column += 4 * lane
    while column + lane <= width:
        _one_line(indices, data, pointers[i], pointers[i + 1], B, out, r, column)
        column += lane
    while column + lane // 2 <= width:
        _half_line(indices, data, pointers[i], pointers[i + 1], B, out, r, column)
        column += lane // 2
    while column + lane // 4 <= width:
        _quarter_line(indices, data, pointers[i], pointers[i + 1], B, out, r, column)
        column += lane // 4
    for t in range(column, width):
        total = out.dtype.type(0)
        for e in range(pointers[i], pointers[i + 1]):
            total += data[e] * B[indices[e], t]
        out[r, t] = total


@compiled(error_model="numpy")
def product(pointers, indices, data, B, out):  # type: ignore[no-untyped-def]
    """Compute out = M B for a sparse M in CSR form."""
    for i in range(pointers.size - 1):
        _row(pointers, indices, data, B, B.shape[1], i, out, i)


@compiled()
def keep_mask(seed, threshold, mask):  # type: ignore[no-untyped-def]
    """Set mask = 1 where 16 random bits are at least the threshold: the entries that dropout keeps."""
    flat = mask.reshape(-1)
    seed += np.uint64(0x9E3779B97F4A7C15)  # the numbers from here on, scrambled, are those of splitmix64
    if threshold == np.uint64(32768):  # a half: every bit serves
        for block in range((flat.size + 63) // 64):
            bits = mix(seed + np.uint64(block))
            for k in range(min(64, flat.size - 64 * block)):
                flat[64 * block + k] = (bits >> np.uint64(k)) & np.uint64(1)
        return
    for block in range((flat.size + 3) // 4):
        bits = mix(seed + np.uint64(block))
        for k in range(min(4, flat.size - 4 * block)):
            flat[4 * block + k] = ((bits >> np.uint64(16 * k)) & np.uint64(0xFFFF)) >= threshold
