"""The vector instructions under the soft competition: path costs, their minimum, sums of exponentials.

Written as LLVM vectors for the reasons given in `lanes`, eight numbers at a time, so that the nine sums of
a chain of bandwidths stay in registers. A *chain* is a bandwidth and its halves: ``exp(-x / (tau / 2))`` is
the square of ``exp(-x / tau)``, so nine bandwidths cost one exponential.

With ``NUMBA_DISABLE_JIT=1`` the same operations run as NumPy expressions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from popf.engine.runtime.simd import LANES
from popf.engine.structures import FloatArray

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

if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at run time

    def _make_path_costs(n_queries: int) -> Any:
        def path_costs(
            blocks: FloatArray,
            block: int,
            queries: FloatArray,
            row: int,
            costs: FloatArray,
            out: FloatArray,
            at: int,
        ) -> None:
            offered = costs[block * LANES : (block + 1) * LANES]
            for g in range(n_queries):
                difference = blocks[block] - queries[row + g][:, None]
                distance = np.sqrt((difference * difference).sum(axis=0))
                out[g, at : at + LANES] = np.maximum(distance, offered)

        return path_costs

    def _make_costs_of_row(kind: str) -> Any:
        def costs_of_row(
            block: FloatArray,
            row: int,
            start: int,
            size: int,
            norm: float,
            norms: FloatArray,
            costs: FloatArray,
            out: FloatArray,
            at: int,
        ) -> float:
            here = slice(start, start + size)
            values = block[row, here]
            if kind == "products":
                values = np.maximum(norm + norms[here] - 2.0 * values, 0.0)
            distances = values if kind == "distances" else np.sqrt(values)
            out[at, :size] = np.maximum(distances, costs[here])
            return float(values.min(initial=np.inf))

        return costs_of_row

    def smallest(values: FloatArray, row: int, size: int) -> float:
        """Find the smallest of the first `size` values of a row, a multiple of eight."""
        return float(values[row, :size].min(initial=np.inf))

    def _make_adder(n_bandwidths: int) -> Any:
        def add(
            costs: FloatArray,
            row: int,
            size: int,
            weights: FloatArray,
            start: int,
            low: float,
            rate: float,
            sums: FloatArray,
            first: int,
        ) -> None:
            shifted = np.maximum((costs[row, :size] - low) * rate, LEAST_EXPONENT)
            factors = np.exp(shifted)
            for j in range(n_bandwidths):
                factors[factors <= LEAST_FACTOR] = 0.0
                terms = weights[start : start + size] * factors
                sums[row, first + j] += terms.reshape(-1, WIDTH).sum(axis=0)
                factors *= factors

        return add

else:
    _VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
    _BITS = ir.VectorType(ir.IntType(64), WIDTH)
    _UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)

    def _integer(value: int) -> Any:
        return ir.Constant(ir.IntType(64), value)

    def _constant(value: float) -> Any:
        return ir.Constant(_VECTOR, [value] * WIDTH)

    def _splat(builder: Any, value: Any) -> Any:
        first = builder.insert_element(_UNDEFINED, value, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(first, _UNDEFINED, lanes)

    def _load(builder: Any, pointer: Any) -> Any:
        return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def _store(builder: Any, value: Any, pointer: Any) -> None:
        builder.store(value, builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def _call(builder: Any, name: str, *arguments: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(arguments))
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
        return builder.call(function, arguments)

    def _multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
        # Fused where the processor can: one operation instead of two, and one rounding less.
        return _call(builder, "fmuladd", x, y, z)

    def _larger(builder: Any, left: Any, right: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    def _smaller(builder: Any, left: Any, right: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", left, right), left, right)

    def _exponential(builder: Any, x: Any) -> Any:
        """e^x = 2^n e^r with n an integer and |r| <= ln(2) / 2, for x <= 0."""
        x = _larger(builder, x, _constant(LEAST_EXPONENT))
        rounded = _multiply_add(builder, x, _constant(1.4426950408889634), _constant(ROUNDER))
        n = builder.fsub(rounded, _constant(ROUNDER))
        r = _multiply_add(builder, n, _constant(-LN2_HIGH), x)
        r = _multiply_add(builder, n, _constant(-LN2_LOW), r)
        p = _constant(EXPONENTIAL[0])
        for coefficient in EXPONENTIAL[1:]:
            p = _multiply_add(builder, p, r, _constant(coefficient))
        exponent = builder.add(builder.bitcast(rounded, _BITS), ir.Constant(_BITS, [1023] * WIDTH))
        power = builder.shl(exponent, ir.Constant(_BITS, [52] * WIDTH))
        return builder.fmul(p, builder.bitcast(power, _VECTOR))

    def _root(builder: Any, x: Any) -> Any:
        return _root_and_inverse(builder, x)[0]

    def _root_and_inverse(builder: Any, x: Any) -> tuple[Any, Any]:
        """√x to the last place or nearly, in half the time of the processor's own instruction; and 1/√x.

        Halving the exponent in the bits gives 1/√x to 4 %; two steps of third order and one of second
        order for √x itself do the rest. Infinity gives what is no number.
        """
        half = builder.lshr(builder.bitcast(x, _BITS), ir.Constant(_BITS, [1] * WIDTH))
        guess = builder.sub(ir.Constant(_BITS, [ROOT_GUESS] * WIDTH), half)
        y = builder.bitcast(guess, _VECTOR)
        for _ in range(2):
            r = builder.fmul(builder.fmul(x, y), y)
            p = _multiply_add(builder, r, _constant(0.375), _constant(-1.25))
            p = _multiply_add(builder, r, p, _constant(1.875))
            y = builder.fmul(y, p)
        root = builder.fmul(x, y)
        rest = _multiply_add(builder, builder.fneg(root), root, x)
        return _multiply_add(builder, builder.fmul(y, _constant(0.5)), rest, root), y

    def _arrays(
        context: Any, builder: Any, signature: Any, arguments: Any, which: tuple[int, ...]
    ) -> list[Any]:
        return [
            context.make_array(signature.args[i])(context, builder, arguments[i]) for i in which
        ]

    def _last_length(builder: Any, array: Any) -> Any:
        return cgutils.unpack_tuple(builder, array.shape)[-1]

    def _make_path_costs(n_queries: int) -> Any:
        @intrinsic
        def path_costs(typingctx, blocks, block, queries, row, costs, out, at):
            place = types.intp
            signature = types.void(blocks, place, queries, place, costs, out, place)

            def codegen(context, builder, signature, arguments):
                array = _arrays(context, builder, signature, arguments, (0, 2, 4, 5))
                n_features = _last_length(builder, array[1])
                size = builder.mul(n_features, _integer(LANES))
                base = builder.gep(array[0].data, [builder.mul(arguments[1], size)])
                mine = [
                    builder.gep(
                        array[1].data,
                        [builder.mul(builder.add(arguments[3], _integer(g)), n_features)],
                    )
                    for g in range(n_queries)
                ]
                parts = range(LANES // WIDTH)
                totals = [
                    [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in parts]
                    for _ in range(n_queries)
                ]
                with cgutils.for_range(builder, n_features) as loop:
                    here = builder.gep(base, [builder.mul(loop.index, _integer(LANES))])
                    lanes = [
                        _load(builder, builder.gep(here, [_integer(WIDTH * h)])) for h in parts
                    ]
                    for g in range(n_queries):
                        x = _splat(builder, builder.load(builder.gep(mine[g], [loop.index])))
                        for h in parts:
                            gap = builder.fsub(lanes[h], x)
                            total = builder.load(totals[g][h])
                            builder.store(_multiply_add(builder, gap, gap, total), totals[g][h])
                offered = builder.gep(array[2].data, [builder.mul(arguments[1], _integer(LANES))])
                for h in parts:
                    floor = _load(builder, builder.gep(offered, [_integer(WIDTH * h)]))
                    for g in range(n_queries):
                        distance = _root(builder, builder.load(totals[g][h]))
                        at = builder.mul(_last_length(builder, array[3]), _integer(g))
                        at = builder.add(builder.add(at, arguments[6]), _integer(WIDTH * h))
                        target = builder.gep(array[3].data, [at])
                        _store(builder, _larger(builder, distance, floor), target)
                return context.get_dummy_value()

            return signature, codegen

        return path_costs

    def _least_lane(builder: Any, lanes: Any) -> Any:
        for shift in (4, 2, 1):
            turn = [(lane + shift) % WIDTH for lane in range(WIDTH)]
            turned = builder.shuffle_vector(
                lanes, _UNDEFINED, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), turn)
            )
            lanes = _smaller(builder, lanes, turned)
        return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))

    def _make_costs_of_row(kind: str) -> Any:
        @intrinsic
        def costs_of_row(typingctx, block, row, start, size, norm, norms, costs, out, at):
            place, real = types.intp, types.float64
            signature = real(block, place, place, place, real, norms, costs, out, place)

            def codegen(context, builder, signature, arguments):
                array = _arrays(context, builder, signature, arguments, (0, 5, 6, 7))

                def base(array, row, column):
                    first = builder.mul(_last_length(builder, array), row)
                    return builder.gep(array.data, [builder.add(first, column)])

                start = arguments[2]
                values = base(array[0], arguments[1], start)
                norms = builder.gep(array[1].data, [start])
                floors = builder.gep(array[2].data, [start])
                target = base(array[3], arguments[8], _integer(0))
                norm = _splat(builder, arguments[4])
                least = cgutils.alloca_once_value(builder, _constant(float("inf")))
                steps = builder.udiv(arguments[3], _integer(WIDTH))
                with cgutils.for_range(builder, steps) as loop:
                    step = builder.mul(loop.index, _integer(WIDTH))
                    value = _load(builder, builder.gep(values, [step]))
                    if kind == "products":
                        total = builder.fadd(norm, _load(builder, builder.gep(norms, [step])))
                        value = _multiply_add(builder, value, _constant(-2.0), total)
                        value = _larger(builder, value, _constant(0.0))
                    builder.store(_smaller(builder, value, builder.load(least)), least)
                    if kind != "distances":
                        value = _root(builder, _smaller(builder, value, _constant(1e308)))
                    floor = _load(builder, builder.gep(floors, [step]))
                    _store(
                        builder,
                        _larger(builder, value, floor),
                        builder.gep(target, [step]),
                    )
                return _least_lane(builder, builder.load(least))

            return signature, codegen

        return costs_of_row

    @intrinsic
    def smallest(typingctx, values, row, size):
        """Find the smallest of the first `size` values of a row, a multiple of eight."""
        signature = types.float64(values, types.intp, types.intp)

        def codegen(context, builder, signature, arguments):
            array = _arrays(context, builder, signature, arguments, (0,))[0]
            offset = builder.mul(_last_length(builder, array), arguments[1])
            base = builder.gep(array.data, [offset])
            # Four at a time, each of which need not wait for the others.
            found = [cgutils.alloca_once_value(builder, _constant(float("inf"))) for _ in range(4)]
            n_vectors = builder.udiv(arguments[2], _integer(WIDTH))

            def look(index, which):
                here = builder.gep(base, [builder.mul(index, _integer(WIDTH))])
                lower = _smaller(builder, _load(builder, here), builder.load(found[which]))
                builder.store(lower, found[which])

            n_fours = builder.udiv(n_vectors, _integer(4))
            with cgutils.for_range(builder, n_fours) as loop:
                for which in range(4):
                    at = builder.mul(loop.index, _integer(4))
                    look(builder.add(at, _integer(which)), which)
            done = builder.mul(n_fours, _integer(4))
            with cgutils.for_range(builder, builder.sub(n_vectors, done)) as loop:
                look(builder.add(done, loop.index), 0)
            lanes = builder.load(found[0])
            for other in found[1:]:
                lanes = _smaller(builder, lanes, builder.load(other))
            return _least_lane(builder, lanes)

        return signature, codegen

    def _make_adder(n_bandwidths: int) -> Any:
        @intrinsic
        def add(typingctx, costs, row, size, weights, start, low, rate, sums, first):
            place, real = types.intp, types.float64
            signature = types.void(costs, place, place, weights, place, real, real, sums, place)

            def codegen(context, builder, signature, arguments):
                array = _arrays(context, builder, signature, arguments, (0, 3, 7))
                offset = builder.mul(_last_length(builder, array[0]), arguments[1])
                cost_base = builder.gep(array[0].data, [offset])
                weight_base = builder.gep(array[1].data, [arguments[4]])
                n_sums = cgutils.unpack_tuple(builder, array[2].shape)[1]
                offset = builder.add(builder.mul(n_sums, arguments[1]), arguments[8])
                target = builder.gep(array[2].data, [builder.mul(offset, _integer(WIDTH))])
                slots = [builder.gep(target, [_integer(WIDTH * j)]) for j in range(n_bandwidths)]
                totals = [
                    cgutils.alloca_once_value(builder, _load(builder, slot)) for slot in slots
                ]
                low, rate = _splat(builder, arguments[5]), _splat(builder, arguments[6])
                steps = builder.udiv(arguments[2], _integer(WIDTH))
                with cgutils.for_range(builder, steps) as loop:
                    at = builder.mul(loop.index, _integer(WIDTH))
                    cost = _load(builder, builder.gep(cost_base, [at]))
                    weight = _load(builder, builder.gep(weight_base, [at]))
                    shifted = builder.fmul(builder.fsub(cost, low), rate)
                    factor = _exponential(builder, shifted)
                    for j in range(n_bandwidths):
                        if j > 0:
                            factor = builder.fmul(factor, factor)
                        # Squares that would not be normal numbers are slow: they are nothing.
                        counts = builder.fcmp_ordered(">", factor, _constant(LEAST_FACTOR))
                        factor = builder.select(counts, factor, _constant(0.0))
                        total = builder.load(totals[j])
                        builder.store(_multiply_add(builder, weight, factor, total), totals[j])
                for total, slot in zip(totals, slots, strict=True):
                    _store(builder, builder.load(total), slot)
                return context.get_dummy_value()

            return signature, codegen

        return add


def _documented(function: Any, name: str, text: str) -> Callable[..., Any]:
    function.__name__, function.__doc__ = name, text
    return function  # type: ignore[no-any-return]


_COSTS = """Path costs ``max(C_v, d(v, t))`` of sixteen nodes, for {} from `row` on.

Parameters are ``(blocks, block, queries, row, costs, out, at)``; the costs of query ``row + g`` go to
``out[g, at:at + 16]``. A missing node has an infinite cost."""

_ROWS = """Path costs of `size` nodes, a multiple of eight, from a row of {}; returns their smallest.

Parameters are ``(block, row, start, size, norm, norms, costs, out, at)``: nodes are ``start ...``, their costs
``costs[start ...]``, the path costs go to ``out[at]``. For products the squared distance is
``norm + norms[v] - 2 block[row, v]``; else the norms are not used."""

_SUMS = """Add ``w_v exp((c_v - low) rate)``, for {}, to partial sums of eight lanes.

Parameters are ``(costs, row, size, weights, start, low, rate, sums, first)``: the costs are
``costs[row, :size]``, of nodes ``start ...``; the sums ``sums[row, first ...]``. Nothing is added for a
node of infinite cost, if its weight is finite."""

path_costs = _documented(_make_path_costs(1), "path_costs", _COSTS.format("the query"))
path_costs_of_four = _documented(
    _make_path_costs(QUERIES), "path_costs_of_four", _COSTS.format("four queries")
)
costs_from_distances = _documented(
    _make_costs_of_row("distances"), "costs_from_distances", _ROWS.format("distances")
)
costs_from_squares = _documented(
    _make_costs_of_row("squares"), "costs_from_squares", _ROWS.format("squared distances")
)
costs_from_products = _documented(
    _make_costs_of_row("products"), "costs_from_products", _ROWS.format("products")
)
add_exponentials = _documented(_make_adder(1), "add_exponentials", _SUMS.format("one bandwidth"))
add_chain = _documented(_make_adder(CHAIN), "add_chain", _SUMS.format("a chain of bandwidths"))
