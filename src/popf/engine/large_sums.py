"""Sums over the paths of a large class at one bandwidth, in single precision and with a bounded error.

Nodes are in chunks, as in `soft_scores.CompetingSpace`. A chunk of weight w, whose path costs are at least b,
adds at most ``w exp(-b / tau)``. First the nearest chunks are added. Then the most distant ones are skipped, as
many as can be without these bounds adding up to more than `TRUNCATION` times the sum so far, and the others are
added. Rounding in single precision changes a sum by no more; where it might, the query is left to
`CompetingSpace`. So the relative error is at most `ERROR`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.simd_sums import GROUP, sum_paths
from popf.engine.structures import BoolArray, FloatArray, IntArray, ceil_div

SingleArray = NDArray[np.float32]

ERROR = 1e-4
TRUNCATION = ERROR / 2.0
# Rounding errors grow with the number of features, with costs in units of tau, and with the size of chunks.
MAX_FEATURES, MAX_COST, MAX_SIZE = 32, 16.0, 64.0
# Ratio of the largest to the smallest weight.
MAX_RATIO = 1e6
# Squares of bandwidths, in the scale of the samples, must be normal numbers in single precision.
MIN_TAU, MAX_TAU = 1e-15, 1e15
# The nearest chunks are those up to so many bandwidths beyond the lowest bound.
NEAREST = 3.0
# Bounds are counted in steps of a quarter of tau; the last step holds all beyond.
STEPS_PER_TAU, N_STEPS = 4, 256
# Queries that share a chunk while it is in the cache.
QUERIES = 32


class SingleNodes(NamedTuple):
    """Training nodes in single precision, relative to the centre of their chunk."""

    groups: IntArray  # chunk c is blocks[groups[c] : groups[c + 1]]
    blocks: SingleArray  # (n_blocks, n_features, 32)
    costs: SingleArray  # (n_blocks, 32), infinite where there is no node
    weights: SingleArray  # (n_blocks, 32), 0 where there is no node; the largest is 1
    centers: FloatArray  # (n_chunks, n_features)
    sizes: FloatArray  # (n_chunks,): the diagonal of the box
    masses: FloatArray  # (n_chunks,): the sum of the weights
    lows: FloatArray  # (n_features, n_chunks): the box of each chunk
    highs: FloatArray

    @classmethod
    def build(cls, space: Any) -> "SingleNodes | None":
        """Convert the nodes of a `CompetingSpace`; None if rounding errors might be too large."""
        n_blocks, n_features, _ = space.blocks.shape
        weights = space.weights.reshape(n_blocks, LANES)
        largest, starts = weights.max(), space.chunks[:-1]
        if n_features > MAX_FEATURES or largest > MAX_RATIO * weights[weights > 0.0].min():
            return None
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
            placed(weights / largest, 0.0)[:, 0],
            centers,
            np.sqrt(((space.highs - space.lows) ** 2).sum(axis=1)),
            np.add.reduceat(weights.sum(axis=1), starts) / largest,
            np.ascontiguousarray(space.lows.T),
            np.ascontiguousarray(space.highs.T),
        )


def scores_of_large(
    space: Any, single: SingleNodes, queries: FloatArray, tau: float, scores: FloatArray
) -> BoolArray:
    """Compute the scores of queries, (n_queries, n_classes); return which must be computed otherwise."""
    again = np.zeros(len(queries), dtype=np.bool_)
    n_chunks = int(np.diff(space.classes).max())
    bounds = np.empty((n_chunks, QUERIES))
    _sum_large(space.classes, space.lowest, single, queries, tau, bounds, scores, again)
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
def _find_limit(bounds, g, masses, edge, low, total, tau, steps):
    """Return the bound, not below `edge`, from which chunks are skipped; `total` is the sum up to the edge."""
    for step in range(N_STEPS):
        steps[step] = 0.0
    for chunk in range(len(masses)):
        step = min((bounds[chunk, g] - edge) * (STEPS_PER_TAU / tau), N_STEPS - 1.0)
        steps[max(int(step), 0)] += masses[chunk]
    step, skipped = N_STEPS, 0.0
    while step > 0:
        if steps[step - 1] > 0.0:
            bound = edge + (step - 1) * tau / STEPS_PER_TAU
            skipped += steps[step - 1] * np.exp((low - bound) / tau)
        if skipped > TRUNCATION * total:
            break
        step -= 1
    return edge + step * tau / STEPS_PER_TAU


@jit
def _sum_large(classes, lowest, single, queries, tau, bounds, scores, again):
    """Compute the scores of queries, and mark those that need double precision."""
    point, least = np.empty(queries.shape[1], np.float32), np.empty(1, np.float32)
    own, steps, wanted = np.empty(len(bounds)), np.empty(N_STEPS), np.empty(QUERIES, np.int64)
    totals, lows = np.empty(QUERIES), np.empty(QUERIES)
    # Chunks whose bounds are in a range are added.
    starts, stops = np.empty(QUERIES), np.empty(QUERIES)
    for first_query in range(0, len(queries), QUERIES):
        n_here = min(QUERIES, len(queries) - first_query)
        for k in range(len(classes) - 1):
            first, last = classes[k], classes[k + 1]
            masses, sizes = single.masses[first:last], single.sizes[first:last]
            for g in range(n_here):
                q = first_query + g
                nearest = _find_bounds(single, lowest, first, last, queries, q, own)
                for chunk in range(last - first):
                    bounds[chunk, g] = own[chunk]
                # The lowest cost in the nearest chunk sets the scale.
                _add_nodes(single, first + nearest, queries, q, point, own[nearest], tau, least)
                again[q] |= not least[0] <= MAX_COST * tau
                totals[g], lows[g], starts[g] = 0.0, least[0], 0.0
                stops[g] = 0.0 if again[q] else own[nearest] + NEAREST * tau
            for phase in range(2):
                for chunk in range(last - first):
                    n_wanted = 0
                    for g in range(n_here):  # without a branch, which would be mispredicted
                        wanted[n_wanted] = g
                        n_wanted += (bounds[chunk, g] >= starts[g]) & (bounds[chunk, g] < stops[g])
                    for i in range(n_wanted):
                        g = wanted[i]
                        q, low = first_query + g, lows[g]
                        totals[g] += _add_nodes(
                            single, first + chunk, queries, q, point, low, tau, least
                        )
                        again[q] |= sizes[chunk] > MAX_SIZE * tau
                for g in range(n_here):
                    starts[g] = stops[g]
                    if phase == 0 and not again[first_query + g]:
                        total, low = totals[g], lows[g]
                        stops[g] = _find_limit(bounds, g, masses, stops[g], low, total, tau, steps)
            for g in range(n_here):
                scores[first_query + g, k] = lows[g] / tau - np.log(totals[g] / masses.sum())
