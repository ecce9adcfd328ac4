"""The vector instructions of the soft competition in the plane: eight queries walk through a tree.

Written as LLVM vectors for the reasons given in `lanes`; what they compute is derived in `soft_plane`.
Each query is judged by itself, so that its answer does not depend on those beside it. With
``NUMBA_DISABLE_JIT=1`` the same operations run as NumPy expressions.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from popf.engine.soft import simd as lanes
from popf.engine.soft.plane_series import ORDER, TERMS
from popf.engine.soft.plane_tree import (
    CHEAPEST,
    CLEAR,
    FIRST,
    FLAT,
    HEAVIEST,
    HIGHEST,
    LAST,
    LOWEST,
    MEAN_X,
    MEAN_Y,
    N_FACTS,
    N_TERMS,
    RADIUS,
    REACH,
    SHRINKS,
    SPREAD,
    WEIGHT,
    X,
    Y,
)
from popf.engine.soft.simd import LEAST_EXPONENT, WIDTH
from popf.engine.structures import FloatArray

# What is known of each of eight queries: its place, and its own block, -1 if it is none of the nodes; a cost
# in bandwidths to which sums are relative, and exp of minus that; the least of upper bounds on its cheapest
# path, and what the class weighs at least, relative to that; what an expansion may be wrong by, per weight,
# relative to the reference and to 1; the cost from which on a node can be left out; the sum over far nodes.
AT_X, AT_Y, OWN, REFERENCE, DECAY, BEST, LEAST, SHARE, LIMIT, FARTHEST, SUM = range(11)
N_STATE = 11
# How each query sees a node: the distance, the direction in which the query lies, and 1 / distance.
DISTANCE, COSINE, SINE, INVERSE, N_SEEN = range(5)
# Nodes no wider than this are weighed as they are.
NARROW = 4.0
# From here on a circle as wide as the order gives a better bound than one as wide as the distance.
FAR = 16.0
# Powers of 1 / distance overflow for less.
CLOSEST = 1e-25
MOST_EXPONENT = 600.0
# A rough exponential is never more than this too large: 1 / 1.0615.
ROUGH, LOG2_E = 0.942, 1.4426950408889634

if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at run time

    def _bits(hits: Any) -> int:
        return int(sum(1 << lane for lane in range(WIDTH) if hits[lane]))

    def _chosen(mask: int) -> Any:
        return np.array([mask >> lane & 1 == 1 for lane in range(WIDTH)])

    def _gaps(state: FloatArray, x: float, y: float, rate: float) -> Any:
        dx, dy = (state[AT_X] - x) * rate, (state[AT_Y] - y) * rate
        return dx, dy, np.sqrt(dx * dx + dy * dy)

    def weigh(facts: FloatArray, node: int, state: FloatArray, mask: int, rate: float) -> int:
        """Add what a node weighs at least; returns for which queries it is to be opened instead."""
        fact, leaf = facts[node], facts[node, LAST] - facts[node, FIRST] == 1.0
        _, _, s = _gaps(state, fact[X], fact[Y], rate)
        _, _, mean = _gaps(state, fact[MEAN_X], fact[MEAN_Y], rate)
        r, highest = fact[RADIUS], fact[HIGHEST]
        inside = (fact[FIRST] <= state[OWN]) & (state[OWN] < fact[LAST])
        near = s - r < state[BEST]
        wide = (r > NARROW) | (highest > s + r + 1.0)
        opened = _chosen(mask) & (inside | (near & wide)) & (not leaf)
        bound = np.maximum(highest, s + r)
        bound = np.where(inside, bound, np.minimum(bound, np.sqrt(fact[SPREAD] + mean * mean)))
        weight = fact[WEIGHT] - np.where(inside, fact[HEAVIEST], 0.0)
        cheapest = np.where(inside, bound, np.maximum(fact[LOWEST], s + r))
        lightest = np.where(inside, 0.0, fact[CHEAPEST])
        active = _chosen(mask) & (weight > 0.0)
        best = np.minimum(np.minimum(state[BEST], bound), cheapest)
        with np.errstate(invalid="ignore"):  # infinite still
            before = state[LEAST] * np.exp(best - state[BEST])
            every = weight * np.exp(np.maximum(best - bound, LEAST_EXPONENT))
            one = lightest * np.exp(np.maximum(best - cheapest, LEAST_EXPONENT))
            total = before + np.where(opened, 0.0, np.maximum(every, one))
        state[LEAST] = np.where(active, total, state[LEAST])
        state[BEST] = np.where(active, best, state[BEST])
        return _bits(opened)

    def judge(
        facts: FloatArray,
        node: int,
        state: FloatArray,
        mask: int,
        rate: float,
        half: float,
        seen: FloatArray,
        entry: int,
    ) -> int:
        """Say for which queries a node is opened, taken or level: three masks of eight bits."""
        fact = facts[node]
        r, lowest = fact[RADIUS], fact[LOWEST]
        with np.errstate(all="ignore"):
            dx, dy, s = _gaps(state, fact[X], fact[Y], rate)
            inverse = 1.0 / s
            exponent = np.clip(state[REFERENCE] - s, -690.0, MOST_EXPONENT) * LOG2_E
            whole = np.floor(exponent)
            factor = np.ldexp(1.0 + exponent - whole, whole.astype(int))
            seen[entry] = s, dx * inverse, dy * inverse, inverse
            ratio, wide = fact[REACH] * inverse, r * inverse
            rest = np.minimum(0.27 * s, 0.2 + 0.107 * s) / (ORDER + 1) * ratio ** (ORDER + 1)
            own = half * ROUGH * factor * fact[SHRINKS]
            fits = rest <= (1.0 - wide) * np.maximum(state[LIMIT], own * state[DECAY])
            beyond = fact[CLEAR] * factor <= np.maximum(state[SHARE], own)
            fits = np.where(s > FAR, beyond, fits & (wide <= 0.75))
        inside = (fact[FIRST] <= state[OWN]) & (state[OWN] < fact[LAST])
        active = _chosen(mask) & (np.maximum(lowest, s - r) < state[FARTHEST])
        level = active & (lowest >= s + r) & ~inside
        taken = active & (fact[HIGHEST] <= s - r) & fits & ~inside & ~level & (s > CLOSEST)
        opened = active & ~level & ~taken
        return _bits(opened) | _bits(taken) << WIDTH | _bits(level) << 2 * WIDTH

    def fetch(moments: FloatArray, row: int) -> None:
        """Ask for a row of moments before it is needed; nothing to do here."""

    def expand(
        moments: FloatArray, row: int, state: FloatArray, mask: int, seen: FloatArray, entry: int
    ) -> None:
        """Add the expansion of a node to the sums."""
        with np.errstate(all="ignore"):
            total, t = np.zeros(WIDTH), 0
            s, cosine, sine, inverse = seen[entry]
            exponent = np.clip(state[REFERENCE] - s, LEAST_EXPONENT, MOST_EXPONENT)
            turn = cosine + 1j * sine
            for m, polynomials in enumerate(TERMS):
                for powers in polynomials:
                    value = np.polyval(powers[::-1], inverse)
                    total += value * moments[row, t] * (turn**m).real
                    t += 1
                    if m > 0:
                        total += value * moments[row, t] * (turn**m).imag
                        t += 1
            state[SUM] += np.where(_chosen(mask), np.exp(exponent) * total, 0.0)

    def add_level(facts: FloatArray, node: int, state: FloatArray, mask: int) -> None:
        """Add a node whose costs exceed its distances to the sums."""
        exponent = np.clip(state[REFERENCE] - facts[node, LOWEST], LEAST_EXPONENT, MOST_EXPONENT)
        state[SUM] += np.where(_chosen(mask), facts[node, FLAT] * np.exp(exponent), 0.0)

else:
    _constant, _load, _splat, _store = lanes._constant, lanes._load, lanes._splat, lanes._store
    _multiply_add, _larger, _smaller = lanes._multiply_add, lanes._larger, lanes._smaller
    _BOOLS = ir.VectorType(ir.IntType(1), WIDTH)

    class _State:
        """Rows of numbers for eight queries."""

        def __init__(self, builder: Any, array: Any, entry: Any = None) -> None:
            self.builder, self.data = builder, array.data
            if entry is not None:
                skipped = builder.mul(entry, lanes._integer(N_SEEN * WIDTH))
                self.data = builder.gep(array.data, [skipped])

        def _at(self, row: int) -> Any:
            return self.builder.gep(self.data, [lanes._integer(WIDTH * row)])

        def __getitem__(self, row: int) -> Any:
            return _load(self.builder, self._at(row))

        def __setitem__(self, row: int, value: Any) -> None:
            _store(self.builder, value, self._at(row))

    class _Fact:
        """The facts of a node, each in all lanes."""

        def __init__(self, builder: Any, array: Any, node: Any) -> None:
            self.builder = builder
            self.data = builder.gep(array.data, [builder.mul(node, lanes._integer(N_FACTS))])

        def __getitem__(self, column: int) -> Any:
            pointer = self.builder.gep(self.data, [lanes._integer(column)])
            return _splat(self.builder, self.builder.load(pointer))

    def _exponential(builder: Any, x: Any) -> Any:
        return lanes._exponential(builder, _smaller(builder, x, _constant(MOST_EXPONENT)))

    def _rough_exponential(builder: Any, x: Any) -> Any:
        """From e^x to 6.2 % more: what is linear between powers of two, read off the bits."""
        x = _larger(builder, _smaller(builder, x, _constant(MOST_EXPONENT)), _constant(-690.0))
        scaled = _multiply_add(builder, x, _constant(2.0**52 * LOG2_E), _constant(2.0**52 * 1023.0))
        return builder.bitcast(builder.fptosi(scaled, lanes._BITS), lanes._VECTOR)

    def _distance(builder: Any, state: Any, x: Any, y: Any, rate: Any) -> Any:
        dx = builder.fmul(builder.fsub(state[AT_X], x), rate)
        dy = builder.fmul(builder.fsub(state[AT_Y], y), rate)
        squared = _multiply_add(builder, dx, dx, builder.fmul(dy, dy))
        return dx, dy, *lanes._root_and_inverse(builder, squared)

    def _inside(builder: Any, fact: Any, own: Any) -> Any:
        return builder.and_(
            builder.fcmp_ordered("<=", fact[FIRST], own), builder.fcmp_ordered("<", own, fact[LAST])
        )

    def _of_mask(builder: Any, mask: Any) -> Any:
        return builder.bitcast(builder.trunc(mask, ir.IntType(WIDTH)), _BOOLS)

    def _to_mask(builder: Any, hits: Any) -> Any:
        return builder.zext(builder.bitcast(hits, ir.IntType(WIDTH)), ir.IntType(64))

    def _add(builder: Any, state: Any, row: int, hits: Any, value: Any) -> None:
        chosen = builder.select(hits, value, _constant(0.0))
        state[row] = builder.fadd(state[row], chosen)

    @intrinsic
    def weigh(typingctx, facts, node, state, mask, rate):
        """Add what a node weighs at least; returns for which queries it is to be opened instead.

        In either case it bounds the cheapest path, so that no node weighs much more than that.
        All its paths cost no more than its highest cost or its farthest point, and one no more than its
        lowest cost or its farthest point. A mean of convex functions is no less than the function of the
        mean, and the larger of cost and distance no more than the root of the sum of their squares.
        """
        signature = types.int64(facts, types.intp, state, types.int64, types.float64)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0, 2))
            fact, state = _Fact(builder, array[0], arguments[1]), _State(builder, array[1])
            rate, active = _splat(builder, arguments[4]), _of_mask(builder, arguments[3])
            _, _, s, _ = _distance(builder, state, fact[X], fact[Y], rate)
            _, _, mean, _ = _distance(builder, state, fact[MEAN_X], fact[MEAN_Y], rate)
            r, highest = fact[RADIUS], fact[HIGHEST]
            inside, far = _inside(builder, fact, state[OWN]), builder.fadd(s, r)
            best, least = state[BEST], state[LEAST]
            near = builder.fcmp_ordered("<", builder.fsub(s, r), best)
            wide = builder.or_(
                builder.fcmp_ordered(">", r, _constant(NARROW)),
                builder.fcmp_ordered(">", highest, builder.fadd(far, _constant(1.0))),
            )
            parts = builder.fsub(fact[LAST], fact[FIRST])
            opened = builder.and_(active, builder.or_(inside, builder.and_(near, wide)))
            opened = builder.and_(opened, builder.fcmp_ordered(">", parts, _constant(1.0)))
            bound = _larger(builder, highest, far)
            rooted = lanes._root(builder, _multiply_add(builder, mean, mean, fact[SPREAD]))
            bound = builder.select(inside, bound, _smaller(builder, rooted, bound))
            less = builder.select(inside, fact[HEAVIEST], _constant(0.0))
            weight = builder.fsub(fact[WEIGHT], less)
            active = builder.and_(active, builder.fcmp_ordered(">", weight, _constant(0.0)))
            cheapest = _larger(builder, fact[LOWEST], far)
            cheapest = builder.select(inside, bound, cheapest)
            lightest = builder.select(inside, _constant(0.0), fact[CHEAPEST])
            better = _smaller(builder, cheapest, _smaller(builder, bound, best))
            before = builder.fmul(least, _exponential(builder, builder.fsub(better, best)))
            every = _exponential(builder, builder.fsub(better, bound))
            one = _exponential(builder, builder.fsub(better, cheapest))
            more = _larger(builder, builder.fmul(weight, every), builder.fmul(lightest, one))
            total = builder.fadd(before, builder.select(opened, _constant(0.0), more))
            state[LEAST] = builder.select(active, total, least)
            state[BEST] = builder.select(active, better, best)
            return _to_mask(builder, opened)

        return signature, codegen

    @intrinsic
    def judge(typingctx, facts, node, state, mask, rate, half, seen, entry):
        """Say for which queries a node is opened, taken or level: three masks of eight bits.

        What `expand` needs goes to ``seen[entry]``.
        """
        place, real = types.intp, types.float64
        signature = types.int64(facts, place, state, types.int64, real, real, seen, place)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0, 2, 6))
            fact, state = _Fact(builder, array[0], arguments[1]), _State(builder, array[1])
            rate, active = _splat(builder, arguments[4]), _of_mask(builder, arguments[3])
            dx, dy, s, inverse = _distance(builder, state, fact[X], fact[Y], rate)
            factor = _rough_exponential(builder, builder.fsub(state[REFERENCE], s))
            mine = _State(builder, array[2], arguments[7])
            mine[DISTANCE], mine[INVERSE] = s, inverse
            mine[COSINE], mine[SINE] = builder.fmul(dx, inverse), builder.fmul(dy, inverse)
            r, lowest = fact[RADIUS], fact[LOWEST]
            ratio, wide = builder.fmul(fact[REACH], inverse), builder.fmul(r, inverse)
            per = 1.0 / (ORDER + 1)
            rest = _smaller(
                builder,
                builder.fmul(s, _constant(0.27 * per)),
                _multiply_add(builder, s, _constant(0.107 * per), _constant(0.2 * per)),
            )
            power, exponent = ratio, ORDER + 1
            while exponent > 0:
                if exponent % 2 == 1:
                    rest = builder.fmul(rest, power)
                exponent //= 2
                power = builder.fmul(power, power)
            own = builder.fmul(_splat(builder, arguments[5]), _constant(ROUGH))
            own = builder.fmul(builder.fmul(factor, fact[SHRINKS]), own)
            limit = _larger(builder, state[LIMIT], builder.fmul(own, state[DECAY]))
            limit = builder.fmul(limit, builder.fsub(_constant(1.0), wide))
            fits = builder.and_(
                builder.fcmp_ordered("<=", rest, limit),
                builder.fcmp_ordered("<=", wide, _constant(0.75)),
            )
            beyond = builder.fcmp_ordered(
                "<=", builder.fmul(fact[CLEAR], factor), _larger(builder, state[SHARE], own)
            )
            fits = builder.select(builder.fcmp_ordered(">", s, _constant(FAR)), beyond, fits)
            nearest, far = builder.fsub(s, r), builder.fadd(s, r)
            reached = builder.fcmp_ordered("<", _larger(builder, lowest, nearest), state[FARTHEST])
            apart = builder.not_(_inside(builder, fact, state[OWN]))
            active = builder.and_(active, reached)
            free = builder.and_(active, apart)
            level = builder.and_(free, builder.fcmp_ordered(">=", lowest, far))
            below = builder.fcmp_ordered("<=", fact[HIGHEST], nearest)
            below = builder.and_(below, builder.fcmp_ordered(">", s, _constant(CLOSEST)))
            below = builder.and_(below, builder.not_(level))
            taken = builder.and_(free, builder.and_(below, fits))
            opened = builder.and_(active, builder.not_(builder.or_(level, taken)))
            found = _to_mask(builder, opened)
            for k, hits in ((1, taken), (2, level)):
                shifted = builder.shl(_to_mask(builder, hits), lanes._integer(WIDTH * k))
                found = builder.or_(found, shifted)
            return found

        return signature, codegen

    @intrinsic
    def fetch(typingctx, moments, row):
        """Ask for a row of moments before it is needed."""
        signature = types.void(moments, types.intp)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0,))[0]
            n_moments = lanes._last_length(builder, array)
            data = builder.gep(array.data, [builder.mul(arguments[1], n_moments)])
            flag = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), flag, flag, flag])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            for start in range(0, N_TERMS, WIDTH):  # a cache line holds eight
                pointer = builder.gep(data, [lanes._integer(start)])
                pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
                builder.call(function, [pointer, flag(0), flag(3), flag(1)])
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def expand(typingctx, moments, row, state, mask, seen, entry):
        """Add the expansion of a node to the sums."""
        signature = types.void(moments, types.intp, state, types.int64, seen, types.intp)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0, 2, 4))
            state, mine = _State(builder, array[1]), _State(builder, array[2], arguments[5])
            n_moments = lanes._last_length(builder, array[0])
            data = builder.gep(array[0].data, [builder.mul(arguments[1], n_moments)])

            def moment(t):
                return _splat(builder, builder.load(builder.gep(data, [lanes._integer(t)])))

            cosine, sine, inverse = mine[COSINE], mine[SINE], mine[INVERSE]
            real, imaginary, total, t = _constant(1.0), _constant(0.0), _constant(0.0), 0
            for m, polynomials in enumerate(TERMS):
                if m > 0:
                    turned = builder.fsub(builder.fmul(real, cosine), builder.fmul(imaginary, sine))
                    imaginary = _multiply_add(builder, real, sine, builder.fmul(imaginary, cosine))
                    real = turned
                sums = [_constant(0.0), _constant(0.0)]
                for powers in polynomials:
                    value = _constant(powers[-1])
                    for power in powers[-2::-1]:
                        value = _multiply_add(builder, value, inverse, _constant(power))
                    for part in range(2 if m > 0 else 1):
                        sums[part] = _multiply_add(builder, value, moment(t), sums[part])
                        t += 1
                total = _multiply_add(builder, sums[0], real, total)
                if m > 0:
                    total = _multiply_add(builder, sums[1], imaginary, total)
            factor = _exponential(builder, builder.fsub(state[REFERENCE], mine[DISTANCE]))
            value = builder.fmul(factor, total)
            _add(builder, state, SUM, _of_mask(builder, arguments[3]), value)
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def add_level(typingctx, facts, node, state, mask):
        """Add a node whose costs exceed its distances to the sums."""
        signature = types.void(facts, types.intp, state, types.int64)

        def codegen(context, builder, signature, arguments):
            array = lanes._arrays(context, builder, signature, arguments, (0, 2))
            fact, state = _Fact(builder, array[0], arguments[1]), _State(builder, array[1])
            factor = _exponential(builder, builder.fsub(state[REFERENCE], fact[LOWEST]))
            value = builder.fmul(fact[FLAT], factor)
            _add(builder, state, SUM, _of_mask(builder, arguments[3]), value)
            return context.get_dummy_value()

        return signature, codegen
