"""The vector instructions for what is near in the plane: every path from some blocks, in lanes of nodes.

Written as LLVM vectors for the reasons given in `lanes`. With ``NUMBA_DISABLE_JIT=1`` the same operations run
as NumPy expressions.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from popf.engine.runtime.simd import LANES
from popf.engine.soft import simd as lanes
from popf.engine.soft.simd import LEAST_EXPONENT, WIDTH
from popf.engine.structures import FloatArray

if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at run time

    def _near_costs(
        blocks: FloatArray, costs: FloatArray, near: Any, x: float, y: float
    ) -> FloatArray:
        chosen = blocks[near]
        distances = np.sqrt((chosen[:, 0] - x) ** 2 + (chosen[:, 1] - y) ** 2)
        found: FloatArray = np.maximum(distances, costs.reshape(-1, LANES)[near])
        return found

    def least_near(
        blocks: FloatArray, costs: FloatArray, near: Any, count: int, x: float, y: float
    ) -> float:
        """Find the cheapest path from the listed blocks."""
        return float(_near_costs(blocks, costs, near[:count], x, y).min(initial=np.inf))

    def sum_near(
        blocks: FloatArray,
        costs: FloatArray,
        weights: FloatArray,
        near: Any,
        count: int,
        x: float,
        y: float,
        low: float,
        rate: float,
    ) -> float:
        """Sum ``w_v exp((low - c_v) rate)`` over the listed blocks."""
        found = _near_costs(blocks, costs, near[:count], x, y)
        factors = np.exp(np.maximum((low - found) * rate, LEAST_EXPONENT))
        return float((weights.reshape(-1, LANES)[near[:count]] * factors).sum())

else:
    _constant, _load, _splat = lanes._constant, lanes._load, lanes._splat
    _multiply_add, _larger, _smaller = lanes._multiply_add, lanes._larger, lanes._smaller

    def _path_costs(builder: Any, blocks: Any, costs: Any, block: Any, x: Any, y: Any) -> list[Any]:
        """Path costs of the sixteen nodes of a block, in two vectors."""
        base = builder.gep(blocks.data, [builder.mul(block, lanes._integer(2 * LANES))])
        floor = builder.gep(costs.data, [builder.mul(block, lanes._integer(LANES))])
        found = []
        for half in range(0, LANES, WIDTH):
            gaps = [
                builder.fsub(_load(builder, builder.gep(base, [lanes._integer(half + shift)])), z)
                for shift, z in ((0, x), (LANES, y))
            ]
            squared = _multiply_add(builder, gaps[0], gaps[0], builder.fmul(gaps[1], gaps[1]))
            offered = _load(builder, builder.gep(floor, [lanes._integer(half)]))
            found.append(_larger(builder, lanes._root(builder, squared), offered))
        return found

    def _listed(builder: Any, near: Any, place: Any) -> Any:
        return builder.sext(builder.load(builder.gep(near.data, [place])), ir.IntType(64))

    @intrinsic
    def least_near(typingctx, blocks, costs, near, count, x, y):
        """Find the cheapest path from the listed blocks."""
        real = types.float64
        signature = real(blocks, costs, near, types.intp, real, real)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0, 1, 2))
            x, y = (_splat(builder, arguments[i]) for i in (4, 5))
            least = [cgutils.alloca_once_value(builder, _constant(float("inf"))) for _ in range(2)]
            for slot in least:
                builder.store(_constant(float("inf")), slot)
            with cgutils.for_range(builder, arguments[3]) as loop:
                block = _listed(builder, array[2], loop.index)
                found = _path_costs(builder, array[0], array[1], block, x, y)
                for slot, value in zip(least, found, strict=True):
                    builder.store(_smaller(builder, value, builder.load(slot)), slot)
            both = _smaller(builder, builder.load(least[0]), builder.load(least[1]))
            return lanes._least_lane(builder, both)

        return signature, codegen

    @intrinsic
    def sum_near(typingctx, blocks, costs, weights, near, count, x, y, low, rate):
        """Sum ``w_v exp((low - c_v) rate)`` over the listed blocks."""
        real = types.float64
        signature = real(blocks, costs, weights, near, types.intp, real, real, real, real)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0, 1, 2, 3))
            x, y, low, rate = (_splat(builder, arguments[i]) for i in (5, 6, 7, 8))
            totals = [cgutils.alloca_once_value(builder, _constant(0.0)) for _ in range(2)]
            for slot in totals:
                builder.store(_constant(0.0), slot)
            with cgutils.for_range(builder, arguments[4]) as loop:
                block = _listed(builder, array[3], loop.index)
                found = _path_costs(builder, array[0], array[1], block, x, y)
                base = builder.gep(array[2].data, [builder.mul(block, lanes._integer(LANES))])
                for half, (slot, cost) in enumerate(zip(totals, found, strict=True)):
                    weight = _load(builder, builder.gep(base, [lanes._integer(WIDTH * half)]))
                    exponent = builder.fmul(builder.fsub(low, cost), rate)
                    factor = lanes._exponential(builder, exponent)
                    total = _multiply_add(builder, weight, factor, builder.load(slot))
                    builder.store(total, slot)
            both = builder.fadd(builder.load(totals[0]), builder.load(totals[1]))
            lane = [
                builder.extract_element(both, ir.Constant(ir.IntType(32), i)) for i in range(WIDTH)
            ]
            while len(lane) > 1:
                lane = [builder.fadd(*lane[i : i + 2]) for i in range(0, len(lane), 2)]
            return lane[0]

        return signature, codegen
