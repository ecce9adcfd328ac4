"""Sums over the paths of a large class at one bandwidth, with a bounded error.

Nodes are in chunks, as in `soft_scores.CompetingSpace`. The sums over as many chunks as possible come from
their `moments`: over those whose errors are smallest, up to `TRUNCATION` times the whole sum in total. Nodes of
all other chunks are added one by one in single precision. Rounding changes a sum by less than the rest of
`ERROR`; where it might not, the query is left to `CompetingSpace`. So the relative error is at most `ERROR`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.moments import DISTANCES, ERRORS, TYPICAL, WAYS, WEIGHTS, Moments, expand
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.simd_sums import GROUP, WIDTH, add_exponentials, sum_paths
from popf.engine.structures import BoolArray, FloatArray, IntArray, ceil_div

SingleArray = NDArray[np.float32]

ERROR = 1e-4
TRUNCATION = 0.75 * ERROR
# Rounding errors grow with the number of features, with costs in units of tau, and with the size of chunks.
MAX_FEATURES, MAX_COST, MAX_SIZE = 32, 16.0, 64.0
# Ratio of the largest to the smallest weight.
MAX_RATIO = 1e6
# Squares of bandwidths, in the scale of the samples, must be normal numbers in single precision.
MIN_TAU, MAX_TAU = 1e-15, 1e15
# Errors are counted in steps of their binary logarithms; the last step holds all that are smaller.
STEPS_PER_BIT, N_STEPS = 8.0, 256
# A positive number in place of sums that underflow.
TINY = 1e-300
# Queries that share a chunk while it is in the cache.
QUERIES = 32


class SingleNodes(NamedTuple):
    """Training nodes in single precision, relative to the centre of their chunk."""

    groups: IntArray  # chunk c is blocks[groups[c] : groups[c + 1]]
    blocks: SingleArray  # (n_blocks, n_features, 64)
    costs: SingleArray  # (n_blocks, 64), infinite where there is no node
    weights: SingleArray  # (n_blocks, 64), 0 where there is no node; the largest is 1
    centers: FloatArray  # (n_chunks, n_features)
    sizes: FloatArray  # (n_chunks,): the diagonal of the box
    lows: FloatArray  # (n_features, n_chunks): the box of each chunk
    highs: FloatArray

    @classmethod
    def build(cls, space: Any, weights: FloatArray) -> "SingleNodes":
        """Convert the nodes of a `CompetingSpace`, with weights up to 1."""
        n_blocks, starts = len(space.blocks), space.chunks[:-1]
        centers = 0.5 * (space.lows + space.highs)
        sizes = np.diff(space.chunks)
        groups = np.append(0, np.cumsum(ceil_div(sizes, GROUP)))
        chunk = np.repeat(np.arange(len(starts)), sizes)
        place = GROUP * groups[chunk] + np.arange(n_blocks) - starts[chunk]

        def placed(values: FloatArray, fill: float) -> SingleArray:
            """Place values by block and lane, and join blocks to groups."""
            found = np.full((GROUP * groups[-1], *values.shape[1:]), fill, np.float32)
            found[place] = values
            joined = found.reshape(groups[-1], GROUP, -1, LANES).swapaxes(1, 2)
            return np.ascontiguousarray(joined).reshape(groups[-1], -1, GROUP * LANES)

        relative = np.where(np.isinf(space.blocks), 0.0, space.blocks - centers[chunk][:, :, None])
        return cls(
            groups,
            placed(relative, 0.0),
            placed(space.costs.reshape(n_blocks, LANES), np.inf)[:, 0],
            placed(weights.reshape(n_blocks, LANES), 0.0)[:, 0],
            centers,
            np.sqrt(((space.highs - space.lows) ** 2).sum(axis=1)),
            np.ascontiguousarray(space.lows.T),
            np.ascontiguousarray(space.highs.T),
        )


class LargeNodes(NamedTuple):
    """What sums over the nodes of a large forest need."""

    single: SingleNodes
    moments: Moments

    @classmethod
    def build(cls, space: Any) -> "LargeNodes | None":
        """Convert the nodes of a `CompetingSpace`; None if rounding errors might be too large."""
        n_features, largest = space.blocks.shape[1], space.weights.max()
        smallest = space.weights[space.weights > 0.0].min()
        if n_features > MAX_FEATURES or largest > MAX_RATIO * smallest:
            return None
        weights, points = space.weights / largest, space.blocks.swapaxes(1, 2)
        points = np.where(np.isinf(points), 0.0, points).reshape(-1, n_features)
        moments = Moments.build(points, weights, space.costs, LANES * space.chunks[:-1])
        return cls(SingleNodes.build(space, weights), moments)


def scores_of_large(
    space: Any, large: LargeNodes, queries: FloatArray, tau: float, scores: FloatArray
) -> BoolArray:
    """Compute the scores of queries, (n_queries, n_classes); return which must be computed otherwise."""
    again = np.zeros(len(queries), dtype=np.bool_)
    n_chunks = int(np.diff(space.classes).max())
    exponents = np.empty((n_chunks, QUERIES))
    work = np.zeros((WAYS + queries.shape[1], ceil_div(n_chunks, WIDTH) * WIDTH))
    with np.errstate(divide="ignore", invalid="ignore"):  # compiled code ignores them anyway
        _sum_large(
            space.classes, space.lowest, *large, queries, tau, exponents, work, scores, again
        )
    return again


@helper
def _find_bounds(single, lowest, first, last, queries, q, bounds):
    """Compute lower bounds on the path costs of chunks; return the chunk with the lowest bound."""
    for chunk in range(last - first):
        bounds[chunk] = 0.0
    for f in range(queries.shape[1]):
        x, lows, highs = queries[q, f], single.lows[f, first:last], single.highs[f, first:last]
        for chunk in range(last - first):
            gap = max(max(lows[chunk] - x, x - highs[chunk]), 0.0)
            bounds[chunk] += gap * gap
    nearest, costs = 0, lowest[first:last]
    for chunk in range(last - first):
        bounds[chunk] = max(costs[chunk], np.sqrt(bounds[chunk]))
        if bounds[chunk] < bounds[nearest]:
            nearest = chunk
    return nearest


@helper
def _add_nodes(single, chunk, queries, q, point, low, tau, least):
    """Return the sum over the nodes of a chunk; the lowest cost goes to `least`."""
    for f in range(queries.shape[1]):
        point[f] = queries[q, f] - single.centers[chunk, f]
    rate, first, last = -1.0 / (np.log(2.0) * tau), single.groups[chunk], single.groups[chunk + 1]
    blocks, costs, weights = single.blocks, single.costs, single.weights
    return sum_paths(blocks, costs, weights, first, last, point, low, rate, least)


@helper
def _find_limit(exponents, total, counts):
    """Return the exponent from which chunks are approximated; `total` is at most the sum.

    The error of a chunk is at most two to the power of minus its exponent.
    """
    for step in range(N_STEPS):
        counts[step] = 0.0
    allowed = -np.log2(TRUNCATION * max(total, TINY))  # of a single chunk
    for chunk in range(len(exponents)):
        step = min((exponents[chunk] - allowed) * STEPS_PER_BIT, N_STEPS - 1.0)
        counts[max(int(step), 0)] += 1.0
    step, error = N_STEPS, 0.0
    while step > 0:
        error += counts[step - 1] * 2.0 ** ((1.0 - step) / STEPS_PER_BIT)
        if error > 1.0:
            break
        step -= 1
    return allowed + step / STEPS_PER_BIT


@helper
def _sum_chunks(costs, n, weights, low, tau, sums):
    """Return the sum of ``weights * exp((low - costs[0]) / tau)`` over the first `n`; overwrites others."""
    padded = ceil_div(n, WIDTH) * WIDTH
    for c in range(n, padded):
        weights[c], costs[0, c] = 0.0, low
    sums[:] = 0.0
    add_exponentials(costs, 0, padded, weights, 0, low, -1.0 / tau, sums, 0)
    total = 0.0
    for lane in range(WIDTH):
        total += sums[0, 0, lane]
    return total


@helper
def _sum_distant(moments, first, last, low, tau, work, weights, counts, sums):
    """Return the sum over the chunks of small errors, and the exponent from which errors are small."""
    n, exponents = last - first, work[ERRORS]
    for chunk in range(n):
        weights[chunk] = moments.masses[first + chunk]
    least = _sum_chunks(work[TYPICAL : TYPICAL + 1], n, weights, low, tau, sums)
    limit = _find_limit(exponents[:n], least, counts)
    for chunk in range(n):
        weights[chunk] = work[WEIGHTS, chunk] if exponents[chunk] >= limit else 0.0
    return _sum_chunks(work[DISTANCES : DISTANCES + 1], n, weights, low, tau, sums), limit


@jit
def _sum_large(classes, lowest, single, moments, queries, tau, exponents, work, scores, again):
    """Compute the scores of queries, and mark those that need double precision."""
    point, least = np.empty(queries.shape[1], np.float32), np.empty(1, np.float32)
    bounds, counts, wanted = (
        np.empty(len(exponents)),
        np.empty(N_STEPS),
        np.empty(QUERIES, np.int64),
    )
    totals, lows, limits = np.empty(QUERIES), np.empty(QUERIES), np.empty(QUERIES)
    sums, weights = np.empty((1, 1, WIDTH)), np.empty(work.shape[1])
    for first_query in range(0, len(queries), QUERIES):
        n_here = min(QUERIES, len(queries) - first_query)
        for k in range(len(classes) - 1):
            first, last = classes[k], classes[k + 1]
            n, sizes = last - first, single.sizes[first:last]
            for g in range(n_here):
                q = first_query + g
                nearest = _find_bounds(single, lowest, first, last, queries, q, bounds)
                # The lowest cost in the nearest chunk sets the scale.
                bound = bounds[nearest]
                _add_nodes(single, first + nearest, queries, q, point, bound, tau, least)
                low = np.float64(least[0])
                again[q] |= not low <= MAX_COST * tau
                totals[g], lows[g], limits[g] = 0.0, low, -np.inf
                if not again[q]:
                    expand(moments, first, last, queries, q, bounds, low, tau, work)
                    totals[g], limits[g] = _sum_distant(
                        moments, first, last, low, tau, work, weights, counts, sums
                    )
                for chunk in range(n):
                    exponents[chunk, g] = work[ERRORS, chunk]
            for chunk in range(n):
                n_wanted = 0
                for g in range(n_here):  # without a branch, which would be mispredicted
                    wanted[n_wanted] = g
                    n_wanted += exponents[chunk, g] < limits[g]
                for i in range(n_wanted):
                    g = wanted[i]
                    q, low = first_query + g, lows[g]
                    totals[g] += _add_nodes(
                        single, first + chunk, queries, q, point, low, tau, least
                    )
                    again[q] |= sizes[chunk] > MAX_SIZE * tau
            mass = moments.masses[first:last].sum()
            for g in range(n_here):
                scores[first_query + g, k] = lows[g] / tau - np.log(totals[g] / mass)
