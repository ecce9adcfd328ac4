"""Sixteen points at a time: the vector instructions under the space tree.

Numba leaves loops over the points of a small block as scalar code, so these few operations are written
as LLVM vectors. LLVM maps them to whatever the processor has (AVX-512, AVX2, NEON, ...). Every lane sums
its squared differences over the features in their order, exactly as a plain loop does: the distances
equal those of every other algorithm to the bit.

A *block* is an array of shape (n_features, LANES), one point a column; blocks of missing points are
filled with infinity, which no finite bound admits.

With ``NUMBA_DISABLE_JIT=1`` the same operations run as NumPy expressions.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic
from numpy.typing import NDArray

from popf.engine.structures import FloatArray

LANES = 16
ALIGNMENT = 64


def empty_blocks(n_blocks: int, n_features: int) -> FloatArray:
    """Allocate blocks on cache-line boundaries; whoever fills them pads the last with infinity."""
    size = n_blocks * n_features * LANES
    raw = np.empty(size + ALIGNMENT // 8, dtype=np.float64)
    skip = (-raw.ctypes.data % ALIGNMENT) // 8
    return raw[skip : skip + size].reshape(n_blocks, n_features, LANES)


def padded_range(n_points: int) -> NDArray[np.int32]:
    """Give ``arange(n_points)`` as the start of a buffer that holds whole lanes, -1 beyond the end."""
    buffer = np.full(-(-n_points // LANES) * LANES, -1, dtype=np.int32)
    buffer[:n_points] = np.arange(n_points, dtype=np.int32)
    return buffer[:n_points]


if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at run time

    def _bits(hits: Any) -> int:
        return int(sum(1 << lane for lane in range(LANES) if hits[lane]))

    def lane_distances(
        blocks: FloatArray, block: int, points: FloatArray, row: int, bound: float, out: FloatArray
    ) -> int:
        """Squared distances from a point to a block; bit j says whether lane j is within `bound`."""
        out[:] = 0.0
        for feature in range(blocks.shape[1]):
            difference = blocks[block, feature] - points[row, feature]
            out += difference * difference
        return _bits(out <= bound)

    def lane_box_hits(
        blocks: FloatArray,
        block: int,
        lows: FloatArray,
        highs: FloatArray,
        node: int,
        bounds: FloatArray,
    ) -> int:
        """Which lanes of a block lie within their squared bound of a node's box."""
        total = np.zeros(LANES)
        for feature in range(blocks.shape[1]):
            x = blocks[block, feature]
            gap = np.maximum(np.maximum(lows[node, feature] - x, x - highs[node, feature]), 0.0)
            total += gap * gap
        return _bits(total <= bounds)

    def lanes_reaching(bounds: FloatArray, squared: float) -> int:
        """Which lanes have a bound of at least `squared`."""
        return _bits(bounds >= squared)

    def lanes_unlike(values: NDArray[np.int32], start: int, value: int) -> int:
        """Which of the sixteen `values` (of a `padded_range`) from `start` on are not `value`."""
        return _bits([start + i >= len(values) or values[start + i] != value for i in range(LANES)])

    def tile_hits(
        products: NDArray[Any],
        row: int,
        column: int,
        norm: float,
        norms: NDArray[Any],
        bound: float,
        bounds: NDArray[Any],
        at: int,
    ) -> int:
        """Which of sixteen products may be within the row's or their column's bound."""
        product, here = products[row, column : column + LANES], slice(at, at + LANES)
        lower = (norm + norms[here]) - (product + product)
        return _bits((lower <= bound) | (lower <= bounds[here]))

    def lowest_bit(mask: int) -> int:
        """Position of the lowest set bit."""
        return (mask & -mask).bit_length() - 1

else:
    _VECTOR = ir.VectorType(ir.DoubleType(), LANES)
    _UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)
    _ZERO = ir.Constant(_VECTOR, [0.0] * LANES)

    def _splat(builder: Any, value: Any) -> Any:
        first = builder.insert_element(_UNDEFINED, value, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(first, _UNDEFINED, lanes)

    def _load(builder: Any, pointer: Any) -> Any:
        # Blocks are aligned to a cache line; scratch arrays to a double only.
        return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def _larger(builder: Any, left: Any, right: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    def _to_mask(builder: Any, hits: Any) -> Any:
        return builder.zext(builder.bitcast(hits, ir.IntType(LANES)), ir.IntType(64))

    def _row_pointer(builder: Any, data: Any, row: Any, length: Any) -> Any:
        return builder.gep(data, [builder.mul(row, length)])

    @intrinsic
    def lane_distances(typingctx, blocks, block, points, row, bound, out):
        """Squared distances from a point to a block; bit j says whether lane j is within `bound`."""
        signature = types.int64(blocks, types.intp, points, types.intp, types.float64, out)

        def codegen(context, builder, signature, arguments):
            array = [
                context.make_array(signature.args[i])(context, builder, arguments[i])
                for i in (0, 2, 5)
            ]
            n_features = cgutils.unpack_tuple(builder, array[0].shape)[1]
            width = ir.Constant(n_features.type, LANES)
            base = _row_pointer(
                builder, array[0].data, arguments[1], builder.mul(n_features, width)
            )
            x = _row_pointer(builder, array[1].data, arguments[3], n_features)
            total = cgutils.alloca_once_value(builder, _ZERO)
            with cgutils.for_range(builder, n_features) as loop:
                lanes = _load(builder, _row_pointer(builder, base, loop.index, width))
                value = builder.load(builder.gep(x, [loop.index]))
                difference = builder.fsub(lanes, _splat(builder, value))
                square = builder.fmul(difference, difference)
                builder.store(builder.fadd(builder.load(total), square), total)
            squared = builder.load(total)
            target = builder.bitcast(array[2].data, _VECTOR.as_pointer())
            builder.store(squared, target, align=8)
            hits = builder.fcmp_ordered("<=", squared, _splat(builder, arguments[4]))
            return _to_mask(builder, hits)

        return signature, codegen

    @intrinsic
    def lane_box_hits(typingctx, blocks, block, lows, highs, node, bounds):
        """Which lanes of a block lie within their squared bound of a node's box.

        Rounding is monotone and the features are summed in the same order as for a distance, so the
        computed distance to the box never exceeds the computed distance to a point in it.
        """
        signature = types.int64(blocks, types.intp, lows, highs, types.intp, bounds)

        def codegen(context, builder, signature, arguments):
            array = [
                context.make_array(signature.args[i])(context, builder, arguments[i])
                for i in (0, 2, 3, 5)
            ]
            n_features = cgutils.unpack_tuple(builder, array[0].shape)[1]
            width = ir.Constant(n_features.type, LANES)
            base = _row_pointer(
                builder, array[0].data, arguments[1], builder.mul(n_features, width)
            )
            low = _row_pointer(builder, array[1].data, arguments[4], n_features)
            high = _row_pointer(builder, array[2].data, arguments[4], n_features)
            total = cgutils.alloca_once_value(builder, _ZERO)
            with cgutils.for_range(builder, n_features) as loop:
                x = _load(builder, _row_pointer(builder, base, loop.index, width))
                lower = _splat(builder, builder.load(builder.gep(low, [loop.index])))
                upper = _splat(builder, builder.load(builder.gep(high, [loop.index])))
                gap = _larger(builder, builder.fsub(lower, x), builder.fsub(x, upper))
                gap = _larger(builder, gap, _ZERO)
                square = builder.fmul(gap, gap)
                builder.store(builder.fadd(builder.load(total), square), total)
            hits = builder.fcmp_ordered("<=", builder.load(total), _load(builder, array[3].data))
            return _to_mask(builder, hits)

        return signature, codegen

    @intrinsic
    def lanes_reaching(typingctx, bounds, squared):
        """Which lanes have a bound of at least `squared`."""

        def codegen(context, builder, signature, arguments):
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            hits = builder.fcmp_ordered(
                ">=", _load(builder, array.data), _splat(builder, arguments[1])
            )
            return _to_mask(builder, hits)

        return types.int64(bounds, types.float64), codegen

    @intrinsic
    def lanes_unlike(typingctx, values, start, value):
        """Which of the sixteen `values` (of a `padded_range`) from `start` on are not `value`."""

        def codegen(context, builder, signature, arguments):
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            integers = ir.VectorType(ir.IntType(32), LANES)
            pointer = builder.gep(array.data, [arguments[1]])
            found = builder.load(builder.bitcast(pointer, integers.as_pointer()), align=4)
            undefined = ir.Constant(integers, ir.Undefined)
            first = builder.insert_element(undefined, arguments[2], ir.Constant(ir.IntType(32), 0))
            lanes = ir.Constant(integers, [0] * LANES)
            wanted = builder.shuffle_vector(first, undefined, lanes)
            return _to_mask(builder, builder.icmp_signed("!=", found, wanted))

        return types.int64(values, types.intp, types.int32), codegen

    @intrinsic
    def tile_hits(typingctx, products, row, column, norm, norms, bound, bounds, at):
        """Which of sixteen products may be within the row's or their column's bound.

        The squared distance is taken as ``norm + norms[at + j] - 2 products[row, column + j]``, in the
        precision of the tile. Columns past the end are the caller's to ignore; the products must be as
        wide as a multiple of sixteen.
        """
        real, index = products.dtype, types.intp
        signature = types.int64(products, index, index, real, norms, real, bounds, index)

        def codegen(context, builder, signature, arguments):
            array = [
                context.make_array(signature.args[i])(context, builder, arguments[i])
                for i in (0, 4, 6)
            ]
            element = context.get_data_type(real)
            vector = ir.VectorType(element, LANES)
            undefined = ir.Constant(vector, ir.Undefined)
            size = real.bitwidth // 8

            def splat(value):
                first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
                lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
                return builder.shuffle_vector(first, undefined, lanes)

            def load(data, offset):
                pointer = builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())
                return builder.load(pointer, align=size)

            width = cgutils.unpack_tuple(builder, array[0].shape)[1]
            start = builder.add(builder.mul(arguments[1], width), arguments[2])
            product = load(array[0].data, start)
            total = builder.fadd(splat(arguments[3]), load(array[1].data, arguments[7]))
            lower = builder.fsub(total, builder.fadd(product, product))
            by_row = builder.fcmp_ordered("<=", lower, splat(arguments[5]))
            by_column = builder.fcmp_ordered("<=", lower, load(array[2].data, arguments[7]))
            return _to_mask(builder, builder.or_(by_row, by_column))

        return signature, codegen

    @intrinsic
    def lowest_bit(typingctx, mask):
        """Position of the lowest set bit of a mask that is not zero."""

        def codegen(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), codegen
