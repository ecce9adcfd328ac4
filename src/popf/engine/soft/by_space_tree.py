"""Soft competition in Euclidean space: distances are computed on the way, far chunks are passed by.

Each class is laid out in the order of a space tree of its own, so that a chunk of 256 nodes lies together.
The chunk nearest to a query comes first and sets the scale. Of any other chunk the cheapest possible path is
known, the larger of its lowest cost and the distance to its box; if all nodes of the class at that cost would
not change the sum by more than the error allowed, it is passed by. What is passed by is at most all of the
class, so the error of a sum is what is allowed at most.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.simd import QUERIES, WIDTH, path_costs, path_costs_of_four
from popf.engine.soft.sums import CHUNK, ERROR, Scratch, begin, finish, take
from popf.engine.space_tree import build
from popf.engine.structures import FloatArray, IntArray

# Queries in one call: short enough for Ctrl-C also beside millions of nodes.
CALL_QUERIES = 64
CHUNK_BLOCKS = CHUNK // LANES


class CompetingSpace(NamedTuple):
    """Training nodes laid out in space, class after class."""

    blocks: FloatArray  # (n_blocks, n_features, 16); a class starts at a new block
    costs: FloatArray  # C_v, sixteen a block, infinite where there is no node
    weights: FloatArray  # how many samples each stands for, 0 where there is no node
    chunks: IntArray  # chunk c is blocks[chunks[c] : chunks[c + 1]]
    classes: IntArray  # class k is the chunks range(classes[k], classes[k + 1])
    masses: FloatArray  # the sum of the weights of each class
    lows: FloatArray  # (n_chunks, n_features): the box of every chunk
    highs: FloatArray
    lowest: FloatArray  # the lowest cost in every chunk

    @classmethod
    def build(
        cls, samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray
    ) -> "CompetingSpace":
        """Lay out samples of the classes 0, 1, ..."""
        masses = np.bincount(codes, weights=weights).astype(np.float64)
        blocks, places, edges, classes = [], [], [0], [0]
        for k in range(len(masses)):
            mine = np.flatnonzero(codes == k)
            tree = build(samples[mine])
            blocks.append(tree.blocks)
            padding = len(tree.blocks) * LANES - len(mine)
            places.append(np.append(mine[tree.order], np.full(padding, -1)))
            first, last = edges[-1], edges[-1] + len(tree.blocks)
            edges += [*range(first + CHUNK_BLOCKS, last, CHUNK_BLOCKS), last]
            classes.append(len(edges) - 1)
        place, chunks = np.concatenate(places), np.array(edges)
        there, laid_out = place >= 0, np.concatenate(blocks)
        laid_costs = np.where(there, costs[place], np.inf)
        # What is missing is at infinity.
        lows = np.minimum.reduceat(laid_out.min(axis=2), chunks[:-1])
        highs = np.where(np.isinf(laid_out), -np.inf, laid_out).max(axis=2)
        return cls(
            blocks=laid_out,
            costs=laid_costs,
            weights=np.where(there, weights[place], 0.0),
            chunks=chunks,
            classes=np.array(classes),
            masses=masses,
            lows=lows,
            highs=np.maximum.reduceat(highs, chunks[:-1]),
            lowest=np.minimum.reduceat(laid_costs, LANES * chunks[:-1]),
        )

    def scores(self, queries: FloatArray, taus: FloatArray, n_threads: int = 1) -> FloatArray:
        """Score queries, scaled as the samples are; see `sums`."""
        scores = np.full((len(queries), len(self.masses), *taus.shape), np.inf)
        n_chunks = int(np.diff(self.classes).max())

        def compete(start: int, stop: int) -> None:
            sums = np.empty((QUERIES, taus.size, WIDTH))
            scratch = Scratch(np.empty((QUERIES, CHUNK)), np.empty(QUERIES), sums)
            bounds, here = np.empty((QUERIES, n_chunks)), slice(start, stop)
            _compete(self, queries[here], taus, bounds, scratch, scores[here])

        map_chunks(compete, len(queries), CALL_QUERIES, n_threads)
        return scores


@helper
def _find_bounds(space, first, last, queries, q, bounds):
    """Find lower bounds on what the paths of chunks cost; returns the chunk with the lowest."""
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
    """Return whether all of a class at cost `bound` would not change the sums beyond the error."""
    low = scratch.low[row]
    if bound <= low:
        return False
    n_chains, n_halvings = taus.shape
    for chain in range(n_chains):
        for half in range(n_halvings):
            total = 0.0
            for lane in range(WIDTH):
                total += scratch.sums[row, chain * n_halvings + half, lane]
            if mass * np.exp((low - bound) / taus[chain, half]) > ERROR * total:
                return False
    return True


@helper
def _add_chunk(space, chunk, queries, q, row, scratch, taus):
    """Add the paths of one chunk to the sums of one query."""
    first, last = space.chunks[chunk], space.chunks[chunk + 1]
    mine = scratch.costs[row : row + 1]
    for block in range(first, last):
        path_costs(space.blocks, block, queries, q, space.costs, mine, (block - first) * LANES)
    take(scratch, row, (last - first) * LANES, space.weights, first * LANES, taus)


@jit
def _compete(space, queries, taus, bounds, scratch, scores):
    """Let all classes compete for some queries, four of them at a time."""
    blocks, costs, weights, edges = space.blocks, space.costs, space.weights, space.chunks
    for q in range(0, len(queries), QUERIES):
        n_here = min(QUERIES, len(queries) - q)
        for k in range(len(space.masses)):
            first_chunk, last_chunk = space.classes[k], space.classes[k + 1]
            mass = space.masses[k]
            # The nearest chunk sets the scale of each query.
            for g in range(n_here):
                begin(scratch, g)
                nearest = _find_bounds(space, first_chunk, last_chunk, queries, q + g, bounds[g])
                _add_chunk(space, nearest, queries, q + g, g, scratch, taus)
                bounds[g, nearest - first_chunk] = -1.0  # met
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
                # All four want it, and share the loading of its nodes.
                first, last = edges[chunk], edges[chunk + 1]
                for block in range(first, last):
                    at = (block - first) * LANES
                    path_costs_of_four(blocks, block, queries, q, costs, scratch.costs, at)
                for g in range(QUERIES):
                    take(scratch, g, (last - first) * LANES, weights, first * LANES, taus)
            for g in range(n_here):
                finish(scratch, g, mass, taus, scores[q + g, k])
