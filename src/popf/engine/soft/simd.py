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
    row_of,
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
    def lowering(builder, blocks, block, queries, row, costs, out, at):
        base, parts = row_of(builder, blocks, block), range(LANES // WIDTH)
        mine = [row_of(builder, queries, builder.add(row, integer(g))) for g in range(n_queries)]
        totals = [
            [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in parts]
            for _ in range(n_queries)
        ]
        with cgutils.for_range(builder, last_length(builder, queries)) as loop:
            here = builder.gep(base, [builder.mul(loop.index, integer(LANES))])
            lanes = [_DOUBLES.load(builder, here, integer(WIDTH * h)) for h in parts]
            for g in range(n_queries):
                x = _DOUBLES.load_splat(builder, mine[g], loop.index)
                for h in parts:
                    gap = builder.fsub(lanes[h], x)
                    total = builder.load(totals[g][h])
                    builder.store(_multiply_add(builder, gap, gap, total), totals[g][h])
        offered = builder.gep(costs.data, [builder.mul(block, integer(LANES))])
        for h in parts:
            floor = _DOUBLES.load(builder, offered, integer(WIDTH * h))
            for g in range(n_queries):
                distance = _root(builder, builder.load(totals[g][h]))
                target, place = (
                    row_of(builder, out, integer(g)),
                    builder.add(at, integer(WIDTH * h)),
                )
                _DOUBLES.store(builder, larger(builder, distance, floor), target, place)

    def path_costs(blocks, block, queries, row, costs, out, at):
        offered = costs[block * LANES : (block + 1) * LANES]
        for g in range(n_queries):
            difference = blocks[block] - queries[row + g][:, None]
            distance = np.sqrt((difference * difference).sum(axis=0))
            out[g, at : at + LANES] = np.maximum(distance, offered)

    return VectorOperation(path_costs, lowering, types.void)


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


def _costs_from_products(builder, products, row, start, size, norm, norms, costs, out, at):
    values = builder.gep(row_of(builder, products, row), [start])
    node_norms, floors = (builder.gep(array.data, [start]) for array in (norms, costs))
    target, norm = row_of(builder, out, at), _DOUBLES.splat(builder, norm)
    least = cgutils.alloca_once_value(builder, _constant(float("inf")))
    with cgutils.for_range(builder, builder.udiv(size, integer(WIDTH))) as loop:
        step = builder.mul(loop.index, integer(WIDTH))
        total = builder.fadd(norm, _DOUBLES.load(builder, node_norms, step))
        product = _DOUBLES.load(builder, values, step)
        squared = _multiply_add(builder, product, _constant(-2.0), total)
        squared = larger(builder, squared, _constant(0.0))
        builder.store(smaller(builder, squared, builder.load(least)), least)
        distance = _root(builder, smaller(builder, squared, _constant(1e308)))
        cost = larger(builder, distance, _DOUBLES.load(builder, floors, step))
        _DOUBLES.store(builder, cost, target, step)
    return _least_lane(builder, builder.load(least))


@lowered_by(_costs_from_products, types.float64)
def costs_from_products(products, row, start, size, norm, norms, costs, out, at):
    """Find the path costs of `size` nodes, a multiple of eight, from a row of products.

    Nodes are ``start ...``, their costs ``costs[start ...]``, and their squared distances ``norm + norms[v] -
    2 products[row, v]``, of which the smallest is returned. Path costs go to ``out[at]``.
    """
    here = slice(start, start + size)
    squared = np.maximum(norm + norms[here] - 2.0 * products[row, here], 0.0)
    out[at, :size] = np.maximum(np.sqrt(squared), costs[here])
    return float(squared.min(initial=np.inf))


def _smallest(builder, values, row, size):
    base = row_of(builder, values, row)
    # Four at a time, each of which need not wait for the others.
    found = [cgutils.alloca_once_value(builder, _constant(float("inf"))) for _ in range(4)]
    n_vectors = builder.udiv(size, integer(WIDTH))

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


@lowered_by(_smallest, types.float64)
def smallest(values, row, size):
    """Find the smallest of the first `size` values of a row, a multiple of eight."""
    return float(values[row, :size].min(initial=np.inf))


def _make_adder(n_bandwidths: int) -> VectorOperation:
    def lowering(builder, costs, row, size, weights, start, low, rate, sums, first):
        cost_base = row_of(builder, costs, row)
        weight_base = builder.gep(weights.data, [start])
        target = builder.gep(row_of(builder, sums, row), [builder.mul(first, integer(WIDTH))])
        slots = [builder.gep(target, [integer(WIDTH * j)]) for j in range(n_bandwidths)]
        totals = [
            cgutils.alloca_once_value(builder, _DOUBLES.load(builder, slot)) for slot in slots
        ]
        low, rate = _DOUBLES.splat(builder, low), _DOUBLES.splat(builder, rate)
        with cgutils.for_range(builder, builder.udiv(size, integer(WIDTH))) as loop:
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

    def add(costs, row, size, weights, start, low, rate, sums, first):
        factors = np.exp(np.maximum((costs[row, :size] - low) * rate, LEAST_EXPONENT))
        for j in range(n_bandwidths):
            factors[factors <= LEAST_FACTOR] = 0.0
            terms = weights[start : start + size] * factors
            sums[row, first + j] += terms.reshape(-1, WIDTH).sum(axis=0)
            factors *= factors

    return VectorOperation(add, lowering, types.void)


#: ``add_exponentials(costs, row, size, weights, start, low, rate, sums, first)``: add ``w_v exp((c_v - low)
#: rate)``, for one bandwidth or a chain of them, to the eight lanes of ``sums[row, first ...]``. Costs are
#: ``costs[row, :size]``, of nodes ``start ...``. Nothing is added for a node of infinite cost, if its
#: weight is finite.
add_exponentials = _make_adder(1)
add_chain = _make_adder(CHAIN)
