r"""Soft competition: all paths to a sample count, not only the cheapest one.

Every training node v offers a path of cost ``c_v = max(C_v, d(v, t))``. The score of a class is their
soft minimum, ``m_k = -log(mean over v in k of exp(-c_v / tau))``; as tau goes to 0, the class with the
smallest score becomes the one that conquers. Exponentials are computed relative to the cheapest path of the
class so far, so that no score overflows or underflows, however small tau is.

Each bandwidth of `taus` is half of the one before, so that nine of them, a chain, cost one exponential. Scores
have the shape (n_queries, n_classes, n_bandwidths).

`CompetingSpace` sums over Euclidean distances, `CompetingNodes` over blocks of distances of any metric.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.large_sums import MAX_TAU, MIN_TAU, LargeNodes, scores_of_large
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.simd_sums import (
    CHAIN,
    QUERIES,
    WIDTH,
    add_chain,
    add_exponentials,
    path_costs,
    path_costs_of_four,
    smallest,
)
from popf.engine.runtime.threads import map_chunks
from popf.engine.space_tree import build_space_tree, subtrees
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray, ceil_div

# Nodes per chunk: enough to make the call overhead small, few enough to stay in the L1 cache.
CHUNK = 256
CHUNK_BLOCKS = CHUNK // LANES
# Allowed relative error of a sum of exponentials, from skipped chunks and from rounded distances.
ERROR = 1e-8
# From this number of nodes on, sums for one bandwidth are less exact; see `large_sums`.
LARGE = 50_000
# Queries per call: few enough for Ctrl-C, even with millions of nodes.
CALL_QUERIES = 64


class Scratch(NamedTuple):
    """Partial sums of some queries; each thread has its own."""

    costs: FloatArray  # (n_queries, CHUNK): path costs of the nodes of a chunk
    low: FloatArray  # (n_queries,): lowest path cost so far, to which the sums are relative
    sums: FloatArray  # (n_queries, n_bandwidths, 8)


def _scratch_for(n_queries: int, n_bandwidths: int) -> Scratch:
    sums = np.empty((n_queries, n_bandwidths, WIDTH))
    return Scratch(np.empty((n_queries, CHUNK)), np.empty(n_queries), sums)


@jit
def _add_paths(scratch, row, size, weights, start, taus):
    """Add the exponentials of the costs in ``scratch.costs[row]`` to the sums of a query.

    There are `size` costs, a multiple of eight, with ``weights[start : start + size]``.
    """
    costs, sums = scratch.costs, scratch.sums
    low, least = scratch.low[row], smallest(costs, row, size)
    if least < low:
        # A cheaper path: rescale the sums relative to it.
        if low < np.inf:
            for i in range(len(taus)):
                factor = np.exp((least - low) / taus[i])
                for lane in range(WIDTH):
                    sums[row, i, lane] *= factor
        low = least
        scratch.low[row] = low
    if low == np.inf:  # all path costs are infinite
        return
    if len(taus) == CHAIN:
        add_chain(costs, row, size, weights, start, low, -1.0 / taus[0], sums, 0)
        return
    for i in range(len(taus)):
        add_exponentials(costs, row, size, weights, start, low, -1.0 / taus[i], sums, i)


@jit
def _write_scores(scratch, mass, taus, scores):
    """Write the scores of the first queries from their sums; `mass` is the sum of the weights of the class."""
    for row in range(len(scores)):
        low = scratch.low[row]
        if low == np.inf:
            continue
        for i in range(len(taus)):
            total = 0.0
            for lane in range(WIDTH):
                total += scratch.sums[row, i, lane]
            scores[row, i] = low / taus[i] - np.log(total / mass)


class CompetingNodes(NamedTuple):
    """Training nodes sorted by class; blocks of distances must have their columns in this `order`."""

    order: IntArray  # the sample of each node
    costs: FloatArray  # C_v in the unit of the distances
    weights: FloatArray  # how many samples each node stands for
    starts: IntArray  # class k is range(starts[k], starts[k + 1])
    masses: FloatArray  # the sum of the weights of each class

    @classmethod
    def build(cls, codes: IntArray, costs: FloatArray, weights: FloatArray) -> "CompetingNodes":
        """Sort samples by their classes 0, 1, ..."""
        order = np.argsort(codes, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(codes)))
        masses = np.bincount(codes, weights=weights).astype(np.float64)
        return cls(order, costs[order], weights[order], starts, masses)

    def scores(
        self, blocks: BlockOfDistances, n_queries: int, taus: FloatArray, rows: int, n_threads: int
    ) -> FloatArray:
        """Compute the scores of queries, in blocks of `rows`."""
        scores = np.full((n_queries, len(self.masses), len(taus)), np.inf)

        def scan(start: int, stop: int) -> None:
            scratch = _scratch_for(1, len(taus))
            _compete_at_distances(blocks(start, stop), self, taus, scratch, scores[start:stop])

        map_chunks(scan, n_queries, rows, n_threads)
        return scores


@jit
def _compete_at_distances(block, nodes, taus, scratch, scores):
    """Let all nodes compete for the queries of a block of distances."""
    costs, weights, starts = nodes.costs, nodes.weights, nodes.starts
    offers, near = scratch.costs, np.zeros(CHUNK)
    for q in range(block.shape[0]):
        for k in range(len(starts) - 1):
            scratch.low[0], scratch.sums[0] = np.inf, 0.0
            for first in range(starts[k], starts[k + 1], CHUNK):
                size = min(CHUNK, starts[k + 1] - first)
                padded = ceil_div(size, WIDTH) * WIDTH
                for i in range(size):
                    offers[0, i] = max(block[q, first + i], costs[first + i])
                    near[i] = weights[first + i]
                for i in range(size, padded):
                    offers[0, i], near[i] = np.inf, 0.0
                _add_paths(scratch, 0, padded, near, 0, taus)
            _write_scores(scratch, nodes.masses[k], taus, scores[q : q + 1, k])


class CompetingSpace(NamedTuple):
    """Training nodes sorted by class and in space, so that distant chunks can be skipped.

    Each class is in the order of its own space tree, so the 256 nodes of a chunk are close together. The chunk
    nearest to a query is added first and sets the scale. For any other chunk, the larger of its lowest cost and
    the distance to its box is a lower bound on its path costs. The chunk is skipped if the whole class at that
    cost would not change the sum by more than the allowed error. Skipped chunks hold at most the whole class,
    so the error of a sum never exceeds the allowed one.
    """

    blocks: FloatArray  # (n_blocks, n_features, 16); each class starts a new block
    costs: FloatArray  # C_v, sixteen per block, infinite where there is no node
    weights: FloatArray  # how many samples each node stands for, 0 where there is no node
    chunks: IntArray  # chunk c is blocks[chunks[c] : chunks[c + 1]]
    classes: IntArray  # class k has the chunks range(classes[k], classes[k + 1])
    masses: FloatArray  # the sum of the weights of each class
    lows: FloatArray  # (n_chunks, n_features): the box of each chunk
    highs: FloatArray
    lowest: FloatArray  # the lowest cost in each chunk
    large: LargeNodes | None = None  # for sums over many nodes

    @classmethod
    def build(
        cls, samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray
    ) -> "CompetingSpace":
        """Sort samples of the classes 0, 1, ..."""
        masses = np.bincount(codes, weights=weights).astype(np.float64)
        blocks, places, edges, classes = [], [], [0], [0]
        for k in range(len(masses)):
            mine = np.flatnonzero(codes == k)
            tree = build_space_tree(samples[mine])
            blocks.append(tree.blocks)
            padding = len(tree.blocks) * LANES - len(mine)
            places.append(np.append(mine[tree.order], np.full(padding, -1)))
            starts = subtrees(tree, CHUNK_BLOCKS)[1:]
            first = edges[-1]
            edges += [first + block for block in (*starts, len(tree.blocks))]
            classes.append(len(edges) - 1)
        place, chunks = np.concatenate(places), np.array(edges)
        there, all_blocks = place >= 0, np.concatenate(blocks)
        padded_costs = np.where(there, costs[place], np.inf)
        # Missing nodes are at infinity.
        lows = np.minimum.reduceat(all_blocks.min(axis=2), chunks[:-1])
        highs = np.where(np.isinf(all_blocks), -np.inf, all_blocks).max(axis=2)
        space = cls(
            blocks=all_blocks,
            costs=padded_costs,
            weights=np.where(there, weights[place], 0.0),
            chunks=chunks,
            classes=np.array(classes),
            masses=masses,
            lows=lows,
            highs=np.maximum.reduceat(highs, chunks[:-1]),
            lowest=np.minimum.reduceat(padded_costs, LANES * chunks[:-1]),
        )
        return space if len(codes) < LARGE else space._replace(large=LargeNodes.build(space))

    def scores(self, queries: FloatArray, taus: FloatArray, n_threads: int = 1) -> FloatArray:
        """Compute the scores of queries, which must have the scale of the samples."""
        scores = np.full((len(queries), len(self.masses), len(taus)), np.inf)
        n_chunks = int(np.diff(self.classes).max())
        large = self.large if len(taus) == 1 and MIN_TAU <= taus[0] <= MAX_TAU else None

        def compete(start: int, stop: int) -> None:
            scratch, bounds = _scratch_for(QUERIES, len(taus)), np.empty((QUERIES, n_chunks))
            here, some = queries[start:stop], np.arange(start, stop)
            if large is not None:
                own = scores[start:stop, :, 0]
                again = scores_of_large(self, large, here, float(taus[0]), own)
                here, some = here[again], some[again]
            found = np.full((len(some), *scores.shape[1:]), np.inf)
            _compete_in_space(self, here, taus, bounds, scratch, found)
            scores[some] = found

        map_chunks(compete, len(queries), CALL_QUERIES, n_threads)
        return scores


@helper
def _find_bounds(space, first, last, queries, q, bounds):
    """Compute lower bounds on the path costs of chunks; return the chunk with the lowest bound."""
    lows, highs, lowest = space.lows, space.highs, space.lowest
    nearest = first
    for chunk in range(first, last):
        squared = 0.0
        for f in range(queries.shape[1]):
            x = queries[q, f]
            gap = max(lows[chunk, f] - x, x - highs[chunk, f], 0.0)
            squared += gap * gap
        bounds[chunk - first] = max(lowest[chunk], np.sqrt(squared))
        if bounds[chunk - first] < bounds[nearest - first]:
            nearest = chunk
    return nearest


@helper
def _is_negligible(bound, scratch, row, taus, mass):
    """Return whether a whole class at cost `bound` would change no sum by more than the allowed error."""
    low = scratch.low[row]
    if bound <= low:
        return False
    for i in range(len(taus)):
        total = 0.0
        for lane in range(WIDTH):
            total += scratch.sums[row, i, lane]
        if mass * np.exp((low - bound) / taus[i]) > ERROR * total:
            return False
    return True


@helper
def _add_chunk(space, chunk, queries, q, row, scratch, taus):
    """Add the paths of one chunk to the sums of one query."""
    first, last = space.chunks[chunk], space.chunks[chunk + 1]
    mine = scratch.costs[row : row + 1]
    for block in range(first, last):
        path_costs(space.blocks, block, queries, q, space.costs, mine, (block - first) * LANES)
    _add_paths(scratch, row, (last - first) * LANES, space.weights, first * LANES, taus)


@jit
def _compete_in_space(space, queries, taus, bounds, scratch, scores):
    """Let all classes compete for some queries, four at a time.

    The bound of a chunk is a lower bound on its path costs, or -1 once the chunk was added or found negligible.
    """
    blocks, costs, weights, edges = space.blocks, space.costs, space.weights, space.chunks
    for q in range(0, len(queries), QUERIES):
        n_here = min(QUERIES, len(queries) - q)
        for k in range(len(space.masses)):
            first_chunk, last_chunk = space.classes[k], space.classes[k + 1]
            mass = space.masses[k]
            # The nearest chunk sets the scale of each query.
            for g in range(n_here):
                scratch.low[g], scratch.sums[g] = np.inf, 0.0
                nearest = _find_bounds(space, first_chunk, last_chunk, queries, q + g, bounds[g])
                _add_chunk(space, nearest, queries, q + g, g, scratch, taus)
                bounds[g, nearest - first_chunk] = -1.0  # done
            for chunk in range(first_chunk, last_chunk):
                wanted = 0
                for g in range(n_here):
                    bound = bounds[g, chunk - first_chunk]
                    if bound >= 0.0 and _is_negligible(bound, scratch, g, taus, mass):
                        bounds[g, chunk - first_chunk] = -1.0
                    elif bound >= 0.0:
                        wanted += 1
                if wanted < QUERIES:
                    for g in range(n_here):
                        if bounds[g, chunk - first_chunk] >= 0.0:
                            _add_chunk(space, chunk, queries, q + g, g, scratch, taus)
                    continue
                # All four queries need the chunk, so its nodes are loaded only once.
                first, last = edges[chunk], edges[chunk + 1]
                for block in range(first, last):
                    at = (block - first) * LANES
                    path_costs_of_four(blocks, block, queries, q, costs, scratch.costs, at)
                for g in range(QUERIES):
                    _add_paths(scratch, g, (last - first) * LANES, weights, first * LANES, taus)
            _write_scores(scratch, mass, taus, scores[q : q + n_here, k])
