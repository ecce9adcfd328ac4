"""Vector instructions for the space tree and the tiles, sixteen points at a time; for sums see `simd_sums`.

Numba compiles loops over the points of a small block to scalar code, so these few operations are written as
LLVM vectors. LLVM maps them to whatever the processor has (AVX-512, AVX2, NEON, ...). Every lane sums its
squared differences over the features in order, exactly as a plain loop does, so distances equal those of every
other algorithm to the bit.

A *block* is an array of shape (n_features, LANES), one point per column; missing points are filled with
infinity, which is beyond every finite bound.

Each operation has two versions: a NumPy expression, which defines it and runs where kernels run as plain
Python, and the LLVM code that kernels are compiled with.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

LANES = 16


class VectorOperation:
    """A NumPy expression, and the vector instructions that replace it in compiled kernels.

    ``lowering(builder, *arguments)`` emits them. Arrays are passed as structures with data and shape, integers
    with 64 bits.
    """

    def __init__(
        self, function: Callable[..., Any], lowering: Callable[..., Any], returns: Any = types.int64
    ) -> None:
        def typed(typingctx: Any, *arguments: Any) -> Any:
            kinds = [types.intp if isinstance(a, types.Integer) else a for a in arguments]

            def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                unpacked = [
                    context.make_array(kind)(context, builder, value)
                    if isinstance(kind, types.Array)
                    else value
                    for kind, value in zip(kinds, values, strict=True)
                ]
                result = lowering(builder, *unpacked)
                return context.get_dummy_value() if result is None else result

            return returns(*kinds), codegen

        # Numba reads the names of the arguments from the signature.
        names = list(inspect.signature(function).parameters.values())
        context = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typed.__dict__["__signature__"] = inspect.Signature([context, *names])
        self._function, self._intrinsic = function, intrinsic(typed)
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        """Run as plain Python."""
        return self._function(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """The type of the function, which Numba reads when a kernel uses it."""
        return cpu_target.typing_context.resolve_value_type(self._intrinsic)


def lowered_by(
    lowering: Callable[..., Any], returns: Any = types.int64
) -> Callable[[Callable[..., Any]], VectorOperation]:
    """Return a decorator that replaces a function by `lowering` in compiled kernels."""
    return lambda function: VectorOperation(function, lowering, returns)


class Vector:
    """A vector of `width` elements of an LLVM type."""

    def __init__(self, element: Any, width: int, n_bytes: int = 8) -> None:
        self.width, self.n_bytes = width, n_bytes
        self.type = ir.VectorType(element, width)
        self._undefined = ir.Constant(self.type, ir.Undefined)

    def constant(self, value: Any) -> Any:
        """Return a constant with the same value in all lanes."""
        return ir.Constant(self.type, [value] * self.width)

    def splat(self, builder: Any, value: Any) -> Any:
        """Copy a number to all lanes."""
        first = builder.insert_element(self._undefined, value, ir.Constant(ir.IntType(32), 0))
        return self.shuffle(builder, first, [0] * self.width)

    def load_splat(self, builder: Any, data: Any, index: Any) -> Any:
        """Load a number and copy it to all lanes."""
        return self.splat(builder, builder.load(builder.gep(data, [index])))

    def shuffle(self, builder: Any, value: Any, lanes: list[int]) -> Any:
        """Reorder the lanes of a vector."""
        order = ir.Constant(ir.VectorType(ir.IntType(32), self.width), lanes)
        return builder.shuffle_vector(value, self._undefined, order)

    def load(self, builder: Any, data: Any, *offset: Any) -> Any:
        """Load from an address; arrays are only aligned to their elements."""
        return builder.load(self._pointer(builder, data, offset), align=self.n_bytes)

    def store(self, builder: Any, value: Any, data: Any, *offset: Any) -> None:
        """Store at an address."""
        builder.store(value, self._pointer(builder, data, offset), align=self.n_bytes)

    def _pointer(self, builder: Any, data: Any, offset: tuple[Any, ...]) -> Any:
        return builder.bitcast(
            builder.gep(data, offset) if offset else data, self.type.as_pointer()
        )


def larger(builder: Any, left: Any, right: Any) -> Any:
    """Return the larger of two numbers in each lane."""
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


def smaller(builder: Any, left: Any, right: Any) -> Any:
    """Return the smaller of two numbers in each lane."""
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def integer(value: int) -> Any:
    """Return an integer constant for index arithmetic."""
    return ir.Constant(ir.IntType(64), value)


def last_length(builder: Any, array: Any) -> Any:
    """Return the length of an array's last axis."""
    return cgutils.unpack_tuple(builder, array.shape)[-1]


def row_of(builder: Any, array: Any, index: Any) -> Any:
    """Return the address of ``array[index]``."""
    for length in cgutils.unpack_tuple(builder, array.shape)[1:]:
        index = builder.mul(index, length)
    return builder.gep(array.data, [index])


_DOUBLES = Vector(ir.DoubleType(), LANES)


def _to_mask(builder: Any, hits: Any) -> Any:
    return builder.zext(builder.bitcast(hits, ir.IntType(LANES)), ir.IntType(64))


def _pack_bits(hits: Any) -> int:
    return int(sum(1 << lane for lane in range(LANES) if hits[lane]))


def _sum_squares(builder: Any, n_features: Any, gap: Callable[[Any], Any]) -> Any:
    """Sum the squares of ``gap(feature)`` over the features, in order."""
    total = cgutils.alloca_once_value(builder, _DOUBLES.constant(0.0))
    with cgutils.for_range(builder, n_features) as loop:
        difference = gap(loop.index)
        square = builder.fmul(difference, difference)
        builder.store(builder.fadd(builder.load(total), square), total)
    return builder.load(total)


def _lane_distances(builder, blocks, block, points, row, bound, out):
    base, x = row_of(builder, blocks, block), row_of(builder, points, row)

    def gap(feature):
        lanes = _DOUBLES.load(builder, base, builder.mul(feature, integer(LANES)))
        return builder.fsub(lanes, _DOUBLES.load_splat(builder, x, feature))

    squared = _sum_squares(builder, last_length(builder, points), gap)
    _DOUBLES.store(builder, squared, out.data)
    return _to_mask(builder, builder.fcmp_ordered("<=", squared, _DOUBLES.splat(builder, bound)))


@lowered_by(_lane_distances)
def lane_distances(blocks, block, points, row, bound, out):
    """Compute squared distances from a point to a block; return a mask of the lanes within `bound`."""
    out[:] = 0.0
    for feature in range(blocks.shape[1]):
        difference = blocks[block, feature] - points[row, feature]
        out += difference * difference
    return _pack_bits(out <= bound)


def _lane_box_hits(builder, blocks, block, lows, highs, node, bounds):
    base = row_of(builder, blocks, block)
    low, high = row_of(builder, lows, node), row_of(builder, highs, node)

    def gap(feature):
        x = _DOUBLES.load(builder, base, builder.mul(feature, integer(LANES)))
        below = builder.fsub(_DOUBLES.load_splat(builder, low, feature), x)
        above = builder.fsub(x, _DOUBLES.load_splat(builder, high, feature))
        return larger(builder, larger(builder, below, above), _DOUBLES.constant(0.0))

    squared = _sum_squares(builder, last_length(builder, lows), gap)
    limits = _DOUBLES.load(builder, bounds.data)
    return _to_mask(builder, builder.fcmp_ordered("<=", squared, limits))


@lowered_by(_lane_box_hits)
def lane_box_hits(blocks, block, lows, highs, node, bounds):
    """Return a mask of the lanes of a block that are within their squared bound of a node's box.

    Rounding is monotone and the features are summed in the same order as for a distance, so the computed
    distance to the box never exceeds the computed distance to a point in it.
    """
    total = np.zeros(LANES)
    for feature in range(blocks.shape[1]):
        x = blocks[block, feature]
        gap = np.maximum(np.maximum(lows[node, feature] - x, x - highs[node, feature]), 0.0)
        total += gap * gap
    return _pack_bits(total <= bounds)


def _lanes_reaching(builder, bounds, squared):
    limits = _DOUBLES.load(builder, bounds.data)
    return _to_mask(builder, builder.fcmp_ordered(">=", limits, _DOUBLES.splat(builder, squared)))


@lowered_by(_lanes_reaching)
def lanes_reaching(bounds, squared):
    """Return a mask of the lanes whose bound is at least `squared`."""
    return _pack_bits(bounds >= squared)


def _lanes_unlike(builder, values, start, value):
    integers = Vector(ir.IntType(32), LANES, 4)
    wanted = integers.splat(builder, builder.trunc(value, ir.IntType(32)))
    found = integers.load(builder, values.data, start)
    return _to_mask(builder, builder.icmp_signed("!=", found, wanted))


@lowered_by(_lanes_unlike)
def lanes_unlike(values, start, value):
    """Return a mask of the sixteen `values` (of a `padded_range`) from `start` on that differ from `value`."""
    return _pack_bits(
        [start + i >= len(values) or values[start + i] != value for i in range(LANES)]
    )


def _tile_hits(builder, products, row, column, norm, norms, bound, bounds, at):
    real = norm.type  # the precision of the tile
    if bound.type != real:
        bound = builder.fptrunc(bound, real)
    reals = Vector(real, LANES, 4 if real == ir.FloatType() else 8)
    product = reals.load(builder, row_of(builder, products, row), column)
    total = builder.fadd(reals.splat(builder, norm), reals.load(builder, norms.data, at))
    lower = builder.fsub(total, builder.fadd(product, product))
    by_row = builder.fcmp_ordered("<=", lower, reals.splat(builder, bound))
    by_column = builder.fcmp_ordered("<=", lower, reals.load(builder, bounds.data, at))
    return _to_mask(builder, builder.or_(by_row, by_column))


@lowered_by(_tile_hits)
def tile_hits(products, row, column, norm, norms, bound, bounds, at):
    """Return a mask of the sixteen products that may be within the bound of the row or of their column.

    The squared distance is computed as ``norm + norms[at + j] - 2 products[row, column + j]``, in the precision
    of the tile. The width of the products must be a multiple of sixteen; the caller must ignore padding.
    """
    product, here = products[row, column : column + LANES], slice(at, at + LANES)
    lower = (norm + norms[here]) - (product + product)
    return _pack_bits((lower <= bound) | (lower <= bounds[here]))


def _lowest_bit(builder, mask):
    return builder.cttz(mask, ir.Constant(ir.IntType(1), 1))


@lowered_by(_lowest_bit)
def lowest_bit(mask):
    """Return the position of the lowest set bit of a nonzero mask."""
    return (int(mask) & -int(mask)).bit_length() - 1
