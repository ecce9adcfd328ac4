"""Vector instructions for the soft competition: path costs, their minimum, sums of exponentials; see `simd`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from popf.engine.runtime.simd import (
    LANES,
    Vector,
    VectorOperation,
    integer,
    larger,
    last_length,
    lowered_by,
    row_of,
    smaller,
)

WIDTH = 8  # numbers per vector, so that the nine sums of a chain stay in registers
# Bandwidths in a chain, each half of the one before: exp(-x / (tau / 2)) is the square of exp(-x / tau), so
# nine of them cost one exponential.
CHAIN = 9
QUERIES = 4  # queries for which a block is loaded once
# A term of e^-345 times the largest one is negligible, and its square is still a normal number.
LEAST_EXPONENT = -345.0
LEAST_FACTOR = 1e-149
# Polynomial of degree 11 for exp on [-ln(2)/2, ln(2)/2], fitted at Chebyshev points: relative error 3e-18.
# Highest power first.
EXPONENTIAL = (
    *(2.5110037605963777e-08, 2.763263963904103e-07, 2.755724091857897e-06),
    *(2.4801485482328494e-05, 0.00019841269890047113, 0.0013888888952314775),
    *(0.008333333333319601, 0.0416666666664881, 0.1666666666666668),
    *(0.5000000000000019, 1.0, 1.0),
)
# Adding this rounds to an integer and leaves it in the lowest bits.
ROUNDER = 6755399441055744.0
# This minus half the bits of x is a first guess of 1/√x (the well-known magic constant, for doubles).
ROOT_GUESS = 0x5FE6EB50C7B537A9
# ln(2) in two parts; the first times a small integer is exact.
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10

_EIGHT = Vector(ir.DoubleType(), WIDTH)
_LONGS = Vector(ir.IntType(64), WIDTH)
_constant = _EIGHT.constant


def _multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    # Fused if the processor supports it: one operation instead of two, and one rounding less.
    kind = ir.FunctionType(x.type, [x.type] * 3)
    name = f"llvm.fmuladd.v{x.type.count}f{32 if x.type == _FLOATS.type else 64}"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, (x, y, z))


def _exponential(builder: Any, x: Any) -> Any:
    """Compute e^x = 2^n e^r, with an integer n and |r| <= ln(2) / 2, for x <= 0."""
    x = larger(builder, x, _constant(LEAST_EXPONENT))
    rounded = _multiply_add(builder, x, _constant(1.4426950408889634), _constant(ROUNDER))
    n = builder.fsub(rounded, _constant(ROUNDER))
    r = _multiply_add(builder, n, _constant(-LN2_HIGH), x)
    r = _multiply_add(builder, n, _constant(-LN2_LOW), r)
    p = _constant(EXPONENTIAL[0])
    for coefficient in EXPONENTIAL[1:]:
        p = _multiply_add(builder, p, r, _constant(coefficient))
    exponent = builder.add(builder.bitcast(rounded, _LONGS.type), _LONGS.constant(1023))
    power = builder.shl(exponent, _LONGS.constant(52))
    return builder.fmul(p, builder.bitcast(power, _EIGHT.type))


def _root(builder: Any, x: Any, vector: Vector) -> Any:
    """Compute √x almost to the last place, in half the time of the processor's own instruction.

    Halving the exponent in the bits gives 1/√x to 4 %; third-order steps, two in double precision and one in
    single precision, and a second-order step for √x itself do the rest. Infinity gives NaN.
    """
    double, constant = vector is _EIGHT, vector.constant
    integers, guess = (_LONGS, ROOT_GUESS) if double else (_INTEGERS, SINGLE_ROOT_GUESS)
    half = builder.lshr(builder.bitcast(x, integers.type), integers.constant(1))
    y = builder.bitcast(builder.sub(integers.constant(guess), half), vector.type)
    for _ in range(2 if double else 1):
        r = builder.fmul(builder.fmul(x, y), y)
        p = _multiply_add(builder, r, constant(0.375), constant(-1.25))
        p = _multiply_add(builder, r, p, constant(1.875))
        y = builder.fmul(y, p)
    root = builder.fmul(x, y)
    rest = _multiply_add(builder, builder.fneg(root), root, x)
    return _multiply_add(builder, builder.fmul(y, constant(0.5)), rest, root)


def _make_path_costs(n_queries: int) -> VectorOperation:
    def lowering(builder, blocks, block, queries, row, costs, out, at):
        base, parts = row_of(builder, blocks, block), range(LANES // WIDTH)
        mine = [row_of(builder, queries, builder.add(row, integer(g))) for g in range(n_queries)]
        totals = [
            [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in parts]
            for _ in range(n_queries)
        ]
        with cgutils.for_range(builder, last_length(builder, queries)) as loop:
            here = builder.gep(base, [builder.mul(loop.index, integer(LANES))])
            lanes = [_EIGHT.load(builder, here, integer(WIDTH * h)) for h in parts]
            for g in range(n_queries):
                x = _EIGHT.load_splat(builder, mine[g], loop.index)
                for h in parts:
                    gap = builder.fsub(lanes[h], x)
                    total = builder.load(totals[g][h])
                    builder.store(_multiply_add(builder, gap, gap, total), totals[g][h])
        offered = builder.gep(costs.data, [builder.mul(block, integer(LANES))])
        for h in parts:
            floor = _EIGHT.load(builder, offered, integer(WIDTH * h))
            for g in range(n_queries):
                distance = _root(builder, builder.load(totals[g][h]), _EIGHT)
                target = row_of(builder, out, integer(g))
                place = builder.add(at, integer(WIDTH * h))
                _EIGHT.store(builder, larger(builder, distance, floor), target, place)

    def path_costs(blocks, block, queries, row, costs, out, at):
        offered = costs[block * LANES : (block + 1) * LANES]
        for g in range(n_queries):
            difference = blocks[block] - queries[row + g][:, None]
            distance = np.sqrt((difference * difference).sum(axis=0))
            out[g, at : at + LANES] = np.maximum(distance, offered)

    return VectorOperation(path_costs, lowering, types.void)


#: ``path_costs(blocks, block, queries, row, costs, out, at)``: compute the path costs ``max(C_v, d(v, t))`` of
#: the sixteen nodes of a block, for one query or for four queries from `row` on. Those of query ``row + g`` are
#: written to ``out[g, at:at + 16]``. A missing node has an infinite cost.
path_costs = _make_path_costs(1)
path_costs_of_four = _make_path_costs(QUERIES)


def _fold_lanes(builder: Any, vector: Vector, lanes: Any, operation: Callable[..., Any]) -> Any:
    """Combine all lanes of a vector by an operation on two vectors."""
    shift = vector.width // 2
    while shift:
        turn = [(lane + shift) % vector.width for lane in range(vector.width)]
        lanes = operation(builder, lanes, vector.shuffle(builder, lanes, turn))
        shift //= 2
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


def _smallest(builder, values, row, size):
    base = row_of(builder, values, row)
    # Four independent minima, which need not wait for each other.
    found = [cgutils.alloca_once_value(builder, _constant(float("inf"))) for _ in range(4)]
    n_vectors = builder.udiv(size, integer(WIDTH))

    def update(index, which):
        value = _EIGHT.load(builder, base, builder.mul(index, integer(WIDTH)))
        builder.store(smaller(builder, value, builder.load(found[which])), found[which])

    n_fours = builder.udiv(n_vectors, integer(4))
    with cgutils.for_range(builder, n_fours) as loop:
        for which in range(4):
            at = builder.mul(loop.index, integer(4))
            update(builder.add(at, integer(which)), which)
    done = builder.mul(n_fours, integer(4))
    with cgutils.for_range(builder, builder.sub(n_vectors, done)) as loop:
        update(builder.add(done, loop.index), 0)
    lanes = builder.load(found[0])
    for other in found[1:]:
        lanes = smaller(builder, lanes, builder.load(other))
    return _fold_lanes(builder, _EIGHT, lanes, smaller)


@lowered_by(_smallest, types.float64)
def smallest(values, row, size):
    """Return the smallest of the first `size` values of a row; `size` is a multiple of eight."""
    return float(values[row, :size].min(initial=np.inf))


def _make_adder(n_bandwidths: int) -> VectorOperation:
    def lowering(builder, costs, row, size, weights, start, low, rate, sums, first):
        cost_base = row_of(builder, costs, row)
        weight_base = builder.gep(weights.data, [start])
        target = builder.gep(row_of(builder, sums, row), [builder.mul(first, integer(WIDTH))])
        slots = [builder.gep(target, [integer(WIDTH * j)]) for j in range(n_bandwidths)]
        totals = [cgutils.alloca_once_value(builder, _EIGHT.load(builder, slot)) for slot in slots]
        low, rate = _EIGHT.splat(builder, low), _EIGHT.splat(builder, rate)
        with cgutils.for_range(builder, builder.udiv(size, integer(WIDTH))) as loop:
            at = builder.mul(loop.index, integer(WIDTH))
            cost = _EIGHT.load(builder, cost_base, at)
            weight = _EIGHT.load(builder, weight_base, at)
            factor = _exponential(builder, builder.fmul(builder.fsub(cost, low), rate))
            for j in range(n_bandwidths):
                if j > 0:
                    factor = builder.fmul(factor, factor)
                # Squares that would not be normal numbers are slow and negligible: set them to 0.
                counts = builder.fcmp_ordered(">", factor, _constant(LEAST_FACTOR))
                factor = builder.select(counts, factor, _constant(0.0))
                total = builder.load(totals[j])
                builder.store(_multiply_add(builder, weight, factor, total), totals[j])
        for total, slot in zip(totals, slots, strict=True):
            _EIGHT.store(builder, builder.load(total), slot)

    def add(costs, row, size, weights, start, low, rate, sums, first):
        factors = np.exp(np.maximum((costs[row, :size] - low) * rate, LEAST_EXPONENT))
        for j in range(n_bandwidths):
            factors[factors <= LEAST_FACTOR] = 0.0
            terms = weights[start : start + size] * factors
            sums[row, first + j] += terms.reshape(-1, WIDTH).sum(axis=0)
            factors *= factors

    return VectorOperation(add, lowering, types.void)


#: ``add_exponentials(costs, row, size, weights, start, low, rate, sums, first)``: add ``w_v exp((c_v - low)
#: rate)``, for one bandwidth or a chain of them, to the eight lanes of ``sums[row, first ...]``. The costs are
#: ``costs[row, :size]``, for the nodes from `start` on. A node of infinite cost and finite weight adds nothing.
add_exponentials = _make_adder(1)
add_chain = _make_adder(CHAIN)


# The same in single precision, for one bandwidth --------------------------------------------------------------

# Polynomial of degree 5 for 2^x on [-1/2, 1/2], fitted at Chebyshev points: relative error 1e-7.
POWER_OF_TWO = (
    *(0.0013390863364682282, 0.009676031918355374, 0.05550357114219401),
    *(0.24022107485307756, 0.6931471880262283, 1.0000000754548974),
)
GROUP = 4  # vectors that are computed side by side, so that they need not wait for each other
SINGLE_ROUNDER, SINGLE_ROOT_GUESS = 12582912.0, 0x5F3759DF
# Powers of two below are negligible.
LEAST_POWER = -126.0

_FLOATS = Vector(ir.FloatType(), LANES, 4)
_INTEGERS = Vector(ir.IntType(32), LANES, 4)


def _power_of_two(builder: Any, x: Any) -> Any:
    """Compute 2^x for x < 128."""
    x = larger(builder, x, _FLOATS.constant(LEAST_POWER))
    rounded = builder.fadd(x, _FLOATS.constant(SINGLE_ROUNDER))
    r = builder.fsub(x, builder.fsub(rounded, _FLOATS.constant(SINGLE_ROUNDER)))
    p = _FLOATS.constant(POWER_OF_TWO[0])
    for coefficient in POWER_OF_TWO[1:]:
        p = _multiply_add(builder, p, r, _FLOATS.constant(coefficient))
    exponent = builder.add(builder.bitcast(rounded, _INTEGERS.type), _INTEGERS.constant(127))
    power = builder.shl(exponent, _INTEGERS.constant(23))
    return builder.fmul(p, builder.bitcast(power, _FLOATS.type))


def _sum_paths(builder, blocks, costs, weights, block, last, point, low, rate, least):
    zero, infinity = _FLOATS.constant(0.0), _FLOATS.constant(float("inf"))
    parts = range(GROUP)
    totals = [cgutils.alloca_once_value(builder, zero) for _ in parts]
    lowest = [cgutils.alloca_once_value(builder, infinity) for _ in parts]
    squares = [cgutils.alloca_once_value(builder, zero) for _ in parts]
    low, rate = (
        _FLOATS.splat(builder, builder.fptrunc(number, ir.FloatType())) for number in (low, rate)
    )
    width = integer(GROUP * LANES)
    with cgutils.for_range_slice(builder, block, last, integer(1)) as (index, _):
        base = row_of(builder, blocks, index)
        for square in squares:
            builder.store(zero, square)
        with cgutils.for_range(builder, last_length(builder, point)) as loop:
            x = _FLOATS.load_splat(builder, point.data, loop.index)
            here = builder.gep(base, [builder.mul(loop.index, width)])
            for part, square in enumerate(squares):
                gap = builder.fsub(_FLOATS.load(builder, here, integer(LANES * part)), x)
                builder.store(_multiply_add(builder, gap, gap, builder.load(square)), square)
        offered, counts = row_of(builder, costs, index), row_of(builder, weights, index)
        for part in parts:
            distance = _root(builder, builder.load(squares[part]), _FLOATS)
            cost = larger(builder, distance, _FLOATS.load(builder, offered, integer(LANES * part)))
            smallest_cost = smaller(builder, cost, builder.load(lowest[part]))
            builder.store(smallest_cost, lowest[part])
            factor = _power_of_two(builder, builder.fmul(builder.fsub(cost, low), rate))
            weight = _FLOATS.load(builder, counts, integer(LANES * part))
            total = _multiply_add(builder, weight, factor, builder.load(totals[part]))
            builder.store(total, totals[part])
    total, lanes = builder.load(totals[0]), builder.load(lowest[0])
    for part in parts[1:]:
        total = builder.fadd(total, builder.load(totals[part]))
        lanes = smaller(builder, lanes, builder.load(lowest[part]))
    builder.store(_fold_lanes(builder, _FLOATS, lanes, smaller), least.data)
    total = _fold_lanes(builder, _FLOATS, total, ir.IRBuilder.fadd)
    return builder.fpext(total, ir.DoubleType())


@lowered_by(_sum_paths, types.float64)
def sum_paths(blocks, costs, weights, block, last, point, low, rate, least):
    """Sum ``weight * 2**((cost - low) * rate)`` over the paths from 32 nodes per block, in single precision.

    Path costs are as in `path_costs`; the lowest is written to `least`. Padding has weight 0 and infinite cost.
    """
    here = slice(block, last)
    squared = ((blocks[here] - point[:, None]) ** 2).sum(axis=1, dtype=np.float32)
    paths = np.maximum(np.sqrt(squared), costs[here])
    least[0] = paths.min()
    powers = np.maximum((paths - np.float32(low)) * np.float32(rate), np.float32(LEAST_POWER))
    return float((weights[here] * np.exp2(powers)).sum())
