"""The vector instructions under the soft competition: path costs, their minimum, sums of exponentials.

Written as LLVM vectors for the reasons given in `popf.engine.runtime.simd`, eight numbers at a time, so that
the nine sums of a chain of bandwidths stay in registers. A *chain* is a bandwidth and its halves:
``exp(-x / (tau / 2))`` is the square of ``exp(-x / tau)``, so nine bandwidths cost one exponential.
"""

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
    open_arrays,
    smaller,
)

WIDTH = 8
CHAIN = 9  # how many bandwidths make a chain: the first, and eight times half of it
QUERIES = 4  # how many queries share the loading of a block
# What is e^-345 of the largest term weighs nothing, and its square is still a normal number.
LEAST_EXPONENT = -345.0
LEAST_FACTOR = 1e-149
# exp on [-ln(2)/2, ln(2)/2], the polynomial of degree 11 that is best at Chebyshev's points: relative
# error 3e-18. Highest power first.
EXPONENTIAL = (
    *(2.5110037605963777e-08, 2.763263963904103e-07, 2.755724091857897e-06),
    *(2.4801485482328494e-05, 0.00019841269890047113, 0.0013888888952314775),
    *(0.008333333333319601, 0.0416666666664881, 0.1666666666666668),
    *(0.5000000000000019, 1.0, 1.0),
)
# Adding this rounds to an integer and leaves it in the lowest bits.
ROUNDER = 6755399441055744.0
# From this the bits of x, moved by one, are taken to guess 1/√x (the double's form of a well-known constant).
ROOT_GUESS = 0x5FE6EB50C7B537A9
# ln(2) in two parts, of which the first times a small integer is exact.
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10

_DOUBLES = Vector(ir.DoubleType(), WIDTH)
_INTEGERS = Vector(ir.IntType(64), WIDTH)
_constant = _DOUBLES.constant


def _multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    # Fused where the processor can: one operation instead of two, and one rounding less.
    kind = ir.FunctionType(_DOUBLES.type, [_DOUBLES.type] * 3)
    name = f"llvm.fmuladd.v{WIDTH}f64"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, (x, y, z))


def _exponential(builder: Any, x: Any) -> Any:
    """e^x = 2^n e^r with n an integer and |r| <= ln(2) / 2, for x <= 0."""
    x = larger(builder, x, _constant(LEAST_EXPONENT))
    rounded = _multiply_add(builder, x, _constant(1.4426950408889634), _constant(ROUNDER))
    n = builder.fsub(rounded, _constant(ROUNDER))
    r = _multiply_add(builder, n, _constant(-LN2_HIGH), x)
    r = _multiply_add(builder, n, _constant(-LN2_LOW), r)
    p = _constant(EXPONENTIAL[0])
    for coefficient in EXPONENTIAL[1:]:
        p = _multiply_add(builder, p, r, _constant(coefficient))
    exponent = builder.add(builder.bitcast(rounded, _INTEGERS.type), _INTEGERS.constant(1023))
    power = builder.shl(exponent, _INTEGERS.constant(52))
    return builder.fmul(p, builder.bitcast(power, _DOUBLES.type))


def _root(builder: Any, x: Any) -> Any:
    """√x to the last place or nearly, in half the time of the processor's own instruction.

    Halving the exponent in the bits gives 1/√x to 4 %; two steps of third order and one of second
    order for √x itself do the rest. Infinity gives what is no number.
    """
    half = builder.lshr(builder.bitcast(x, _INTEGERS.type), _INTEGERS.constant(1))
    y = builder.bitcast(builder.sub(_INTEGERS.constant(ROOT_GUESS), half), _DOUBLES.type)
    for _ in range(2):
        r = builder.fmul(builder.fmul(x, y), y)
        p = _multiply_add(builder, r, _constant(0.375), _constant(-1.25))
        p = _multiply_add(builder, r, p, _constant(1.875))
        y = builder.fmul(y, p)
    root = builder.fmul(x, y)
    rest = _multiply_add(builder, builder.fneg(root), root, x)
    return _multiply_add(builder, builder.fmul(y, _constant(0.5)), rest, root)


def _make_path_costs(n_queries: int) -> VectorOperation:
    def lowering(typingctx, blocks, block, queries, row, costs, out, at):
        place = types.intp
        signature = types.void(blocks, place, queries, place, costs, out, place)

        def codegen(context, builder, signature, arguments):
            array = open_arrays(context, builder, signature, arguments, 0, 2, 4, 5)
            n_features = last_length(builder, array[1])
            size = builder.mul(n_features, integer(LANES))
            base = builder.gep(array[0].data, [builder.mul(arguments[1], size)])
            mine = [
                builder.gep(
                    array[1].data,
                    [builder.mul(builder.add(arguments[3], integer(g)), n_features)],
                )
                for g in range(n_queries)
            ]
            parts = range(LANES // WIDTH)
            totals = [
                [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in parts]
                for _ in range(n_queries)
            ]
            with cgutils.for_range(builder, n_features) as loop:
                here = builder.gep(base, [builder.mul(loop.index, integer(LANES))])
                lanes = [_DOUBLES.load(builder, here, integer(WIDTH * h)) for h in parts]
                for g in range(n_queries):
                    value = builder.load(builder.gep(mine[g], [loop.index]))
                    x = _DOUBLES.splat(builder, value)
                    for h in parts:
                        gap = builder.fsub(lanes[h], x)
                        total = builder.load(totals[g][h])
                        builder.store(_multiply_add(builder, gap, gap, total), totals[g][h])
            offered = builder.gep(array[2].data, [builder.mul(arguments[1], integer(LANES))])
            for h in parts:
                floor = _DOUBLES.load(builder, offered, integer(WIDTH * h))
                for g in range(n_queries):
                    distance = _root(builder, builder.load(totals[g][h]))
                    at = builder.mul(last_length(builder, array[3]), integer(g))
                    at = builder.add(builder.add(at, arguments[6]), integer(WIDTH * h))
                    _DOUBLES.store(builder, larger(builder, distance, floor), array[3].data, at)
            return context.get_dummy_value()

        return signature, codegen

    def path_costs(blocks, block, queries, row, costs, out, at):
        offered = costs[block * LANES : (block + 1) * LANES]
        for g in range(n_queries):
            difference = blocks[block] - queries[row + g][:, None]
            distance = np.sqrt((difference * difference).sum(axis=0))
            out[g, at : at + LANES] = np.maximum(distance, offered)

    return VectorOperation(path_costs, lowering)


#: ``path_costs(blocks, block, queries, row, costs, out, at)``: path costs ``max(C_v, d(v, t))`` of the
#: sixteen nodes of a block, for one query or for four from `row` on; those of query ``row + g`` go to
#: ``out[g, at:at + 16]``. A missing node has an infinite cost.
path_costs = _make_path_costs(1)
path_costs_of_four = _make_path_costs(QUERIES)


def _least_lane(builder: Any, lanes: Any) -> Any:
    for shift in (4, 2, 1):
        turn = [(lane + shift) % WIDTH for lane in range(WIDTH)]
        lanes = smaller(builder, lanes, _DOUBLES.shuffle(builder, lanes, turn))
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


def _make_costs_of_row(products: bool) -> VectorOperation:
    def lowering(typingctx, block, row, start, size, norm, norms, costs, out, at):
        place, real = types.intp, types.float64
        signature = real(block, place, place, place, real, norms, costs, out, place)

        def codegen(context, builder, signature, arguments):
            array = open_arrays(context, builder, signature, arguments, 0, 5, 6, 7)
            start = arguments[2]
            first = builder.mul(last_length(builder, array[0]), arguments[1])
            values = builder.gep(array[0].data, [builder.add(first, start)])
            norms, floors = (builder.gep(array[i].data, [start]) for i in (1, 2))
            first = builder.mul(last_length(builder, array[3]), arguments[8])
            target = builder.gep(array[3].data, [first])
            norm = _DOUBLES.splat(builder, arguments[4])
            least = cgutils.alloca_once_value(builder, _constant(float("inf")))
            with cgutils.for_range(builder, builder.udiv(arguments[3], integer(WIDTH))) as loop:
                step = builder.mul(loop.index, integer(WIDTH))
                value = _DOUBLES.load(builder, values, step)
                if products:
                    total = builder.fadd(norm, _DOUBLES.load(builder, norms, step))
                    value = _multiply_add(builder, value, _constant(-2.0), total)
                    value = larger(builder, value, _constant(0.0))
                builder.store(smaller(builder, value, builder.load(least)), least)
                if products:
                    value = _root(builder, smaller(builder, value, _constant(1e308)))
                cost = larger(builder, value, _DOUBLES.load(builder, floors, step))
                _DOUBLES.store(builder, cost, target, step)
            return _least_lane(builder, builder.load(least))

        return signature, codegen

    def costs_of_row(block, row, start, size, norm, norms, costs, out, at):
        here = slice(start, start + size)
        values = distances = block[row, here]
        if products:
            values = np.maximum(norm + norms[here] - 2.0 * values, 0.0)
            distances = np.sqrt(values)
        out[at, :size] = np.maximum(distances, costs[here])
        return float(values.min(initial=np.inf))

    return VectorOperation(costs_of_row, lowering)


#: ``costs_from_products(block, row, start, size, norm, norms, costs, out, at)``: path costs of `size`
#: nodes, a multiple of eight, from a row of distances or products; they go to ``out[at]``. Nodes are
#: ``start ...``, their costs ``costs[start ...]``. For products the squared distance is ``norm + norms[v] -
#: 2 block[row, v]``; else the norms are not used. Returns the smallest distance or squared distance.
costs_from_distances = _make_costs_of_row(products=False)
costs_from_products = _make_costs_of_row(products=True)


def _smallest(typingctx, values, row, size):
    signature = types.float64(values, types.intp, types.intp)

    def codegen(context, builder, signature, arguments):
        (array,) = open_arrays(context, builder, signature, arguments, 0)
        offset = builder.mul(last_length(builder, array), arguments[1])
        base = builder.gep(array.data, [offset])
        # Four at a time, each of which need not wait for the others.
        found = [cgutils.alloca_once_value(builder, _constant(float("inf"))) for _ in range(4)]
        n_vectors = builder.udiv(arguments[2], integer(WIDTH))

        def look(index, which):
            value = _DOUBLES.load(builder, base, builder.mul(index, integer(WIDTH)))
            builder.store(smaller(builder, value, builder.load(found[which])), found[which])

        n_fours = builder.udiv(n_vectors, integer(4))
        with cgutils.for_range(builder, n_fours) as loop:
            for which in range(4):
                at = builder.mul(loop.index, integer(4))
                look(builder.add(at, integer(which)), which)
        done = builder.mul(n_fours, integer(4))
        with cgutils.for_range(builder, builder.sub(n_vectors, done)) as loop:
            look(builder.add(done, loop.index), 0)
        lanes = builder.load(found[0])
        for other in found[1:]:
            lanes = smaller(builder, lanes, builder.load(other))
        return _least_lane(builder, lanes)

    return signature, codegen


@lowered_by(_smallest)
def smallest(values, row, size):
    """Find the smallest of the first `size` values of a row, a multiple of eight."""
    return float(values[row, :size].min(initial=np.inf))


def _make_adder(n_bandwidths: int) -> VectorOperation:
    def lowering(typingctx, costs, row, size, weights, start, low, rate, sums, first):
        place, real = types.intp, types.float64
        signature = types.void(costs, place, place, weights, place, real, real, sums, place)

        def codegen(context, builder, signature, arguments):
            array = open_arrays(context, builder, signature, arguments, 0, 3, 7)
            offset = builder.mul(last_length(builder, array[0]), arguments[1])
            cost_base = builder.gep(array[0].data, [offset])
            weight_base = builder.gep(array[1].data, [arguments[4]])
            n_sums = cgutils.unpack_tuple(builder, array[2].shape)[1]
            offset = builder.add(builder.mul(n_sums, arguments[1]), arguments[8])
            target = builder.gep(array[2].data, [builder.mul(offset, integer(WIDTH))])
            slots = [builder.gep(target, [integer(WIDTH * j)]) for j in range(n_bandwidths)]
            totals = [
                cgutils.alloca_once_value(builder, _DOUBLES.load(builder, slot)) for slot in slots
            ]
            low, rate = (_DOUBLES.splat(builder, arguments[i]) for i in (5, 6))
            with cgutils.for_range(builder, builder.udiv(arguments[2], integer(WIDTH))) as loop:
                at = builder.mul(loop.index, integer(WIDTH))
                cost = _DOUBLES.load(builder, cost_base, at)
                weight = _DOUBLES.load(builder, weight_base, at)
                factor = _exponential(builder, builder.fmul(builder.fsub(cost, low), rate))
                for j in range(n_bandwidths):
                    if j > 0:
                        factor = builder.fmul(factor, factor)
                    # Squares that would not be normal numbers are slow: they are nothing.
                    counts = builder.fcmp_ordered(">", factor, _constant(LEAST_FACTOR))
                    factor = builder.select(counts, factor, _constant(0.0))
                    total = builder.load(totals[j])
                    builder.store(_multiply_add(builder, weight, factor, total), totals[j])
            for total, slot in zip(totals, slots, strict=True):
                _DOUBLES.store(builder, builder.load(total), slot)
            return context.get_dummy_value()

        return signature, codegen

    def add(costs, row, size, weights, start, low, rate, sums, first):
        factors = np.exp(np.maximum((costs[row, :size] - low) * rate, LEAST_EXPONENT))
        for j in range(n_bandwidths):
            factors[factors <= LEAST_FACTOR] = 0.0
            terms = weights[start : start + size] * factors
            sums[row, first + j] += terms.reshape(-1, WIDTH).sum(axis=0)
            factors *= factors

    return VectorOperation(add, lowering)


#: ``add_exponentials(costs, row, size, weights, start, low, rate, sums, first)``: add ``w_v exp((c_v - low)
#: rate)``, for one bandwidth or a chain of them, to the eight lanes of ``sums[row, first ...]``. Costs are
#: ``costs[row, :size]``, of nodes ``start ...``. Nothing is added for a node of infinite cost, if its
#: weight is finite.
add_exponentials = _make_adder(1)
add_chain = _make_adder(CHAIN)
