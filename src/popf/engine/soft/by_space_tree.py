"""Soft competition in Euclidean space: distances are computed on the way, far chunks are passed by.

Each class is laid out in the order of a space tree of its own, so that a chunk of 256 nodes lies together.
The chunk nearest to a query comes first and sets the scale. Of any other chunk the cheapest possible path is
known, the larger of its lowest cost and the distance to its box; if so much as all its nodes at that cost would
not change the sum by more than its share of the error allowed, it is passed by. The shares sum to the
whole error, so the error of a sum is what was allowed at most.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.scores import (
    CHUNK,
    ERROR,
    Scores,
    begin,
    finish,
    mass_without,
    new_scores,
    new_scratch,
    take,
)
from popf.engine.soft.simd import QUERIES, WIDTH, path_costs, path_costs_of_four
from popf.engine.space_tree import build
from popf.engine.structures import FloatArray, IntArray

# Queries in one call: short enough for Ctrl-C also beside millions of nodes.
CALL_QUERIES = 64
CHUNK_BLOCKS = CHUNK // LANES


class CompetingSpace(NamedTuple):
    """Training nodes laid out in space, class after class.

    Attributes
    ----------
    blocks : ndarray of shape (n_blocks, n_features, 16)
        The nodes; a class starts at a new block.
    costs : ndarray of shape (16 * n_blocks,)
        Their costs, infinite where there is none.
    weights : ndarray of shape (16 * n_blocks,)
        How many samples each stands for, 0 where there is none.
    place : ndarray of shape (n_samples,)
        Where a training sample is.
    chunks : ndarray of shape (n_chunks + 1,)
        Chunk c is ``blocks[chunks[c] : chunks[c + 1]]``.
    classes : ndarray of shape (n_classes + 1,)
        Class k is the chunks ``range(classes[k], classes[k + 1])``.
    masses : ndarray of shape (n_classes,)
        The sum of the weights of each class.
    lows, highs : ndarray of shape (n_chunks, n_features)
        The box of every chunk.
    lowest : ndarray of shape (n_chunks,)
        The lowest cost in every chunk.
    """

    blocks: FloatArray
    costs: FloatArray
    weights: FloatArray
    place: IntArray
    chunks: IntArray
    classes: IntArray
    masses: FloatArray
    lows: FloatArray
    highs: FloatArray
    lowest: FloatArray


def lay_out(
    samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray, n_threads: int = 1
) -> CompetingSpace:
    """Lay out training samples in space, class after class.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Their classes, 0, 1, ...
    costs, weights : ndarray of shape (n_samples,)
    n_threads : int

    Returns
    -------
    CompetingSpace
    """
    n_classes = int(codes.max()) + 1
    members = [np.flatnonzero(codes == k) for k in range(n_classes)]
    sizes = [-(-len(mine) // LANES) for mine in members]
    n_blocks, n_features = sum(sizes), samples.shape[1]
    blocks = np.empty((n_blocks, n_features, LANES))
    positions = np.full(LANES * n_blocks, -1)
    first, edges, classes = 0, [0], [0]
    for mine, size in zip(members, sizes, strict=True):
        tree = build(samples[mine], n_threads)
        blocks[first : first + size] = tree.blocks
        positions[LANES * first : LANES * first + len(mine)] = mine[tree.order]
        edges += [*range(first + CHUNK_BLOCKS, first + size, CHUNK_BLOCKS), first + size]
        classes.append(len(edges) - 1)
        first += size
    there = positions >= 0
    place = np.empty(len(samples), dtype=np.int64)
    place[positions[there]] = np.flatnonzero(there)
    chunks = np.array(edges)
    laid_costs = np.where(there, costs[positions], np.inf)
    boxes = np.empty((2, len(edges) - 1, n_features))
    _take_boxes(blocks, chunks, boxes)
    return CompetingSpace(
        blocks=blocks,
        costs=laid_costs,
        weights=np.where(there, weights[positions], 0.0),
        place=place,
        chunks=chunks,
        classes=np.array(classes),
        masses=np.bincount(codes, weights=weights, minlength=n_classes).astype(np.float64),
        lows=boxes[0],
        highs=boxes[1],
        lowest=np.minimum.reduceat(laid_costs, LANES * chunks[:-1]),
    )


def space_scores(
    space: CompetingSpace,
    queries: FloatArray,
    own: IntArray,
    taus: FloatArray,
    n_threads: int = 1,
) -> Scores:
    """Compute the soft minimum of the paths that each class offers to each query.

    Parameters
    ----------
    space : CompetingSpace
    queries : ndarray of shape (n_queries, n_features)
    own : ndarray of shape (n_queries,)
        The place of the node that a query is itself, whose weight then counts one less; -1 for
        new samples.
    taus : ndarray of shape (n_chains, 1 or 9)
        As for `class_scores`.
    n_threads : int

    Returns
    -------
    Scores
    """
    found = new_scores(len(queries), len(space.masses), taus)
    n_chunks = int(np.diff(space.classes).max())

    def compete(start: int, stop: int) -> None:
        bounds = np.empty((QUERIES, n_chunks))
        mine = Scores(found.scores[start:stop], found.lowest[start:stop])
        here = queries[start:stop]
        _compete(space, here, own[start:stop], taus, bounds, new_scratch(taus), mine)

    map_chunks(compete, len(queries), CALL_QUERIES, n_threads)
    return found


@jit
def _take_boxes(blocks, chunks, boxes):
    """Take the box of every chunk; what is missing is at infinity."""
    for chunk in range(len(chunks) - 1):
        for f in range(blocks.shape[1]):
            low, high = np.inf, -np.inf
            for block in range(chunks[chunk], chunks[chunk + 1]):
                for lane in range(LANES):
                    x = blocks[block, f, lane]
                    if x < np.inf:
                        low, high = min(low, x), max(high, x)
            boxes[0, chunk, f], boxes[1, chunk, f] = low, high


@helper
def _find_bounds(lows, highs, lowest, first, last, queries, q, bounds):
    """Find lower bounds on what the paths of chunks cost; returns the chunk with the lowest."""
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
    """Tell whether all of a class at cost `bound` would not change the sums beyond the error."""
    low = scratch.low[row]
    if taus.size == 0:
        return bound >= low
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
def _meet(space, chunk, queries, q, row, own, scratch, taus):
    """Let one query meet one chunk."""
    first, last = space.chunks[chunk], space.chunks[chunk + 1]
    mine = scratch.costs[row : row + 1]
    for block in range(first, last):
        path_costs(space.blocks, block, queries, q, space.costs, mine, (block - first) * LANES)
    start, size = first * LANES, (last - first) * LANES
    take(scratch, row, size, space.weights, start, own[q] - start, taus)


@jit
def _compete(space, queries, own, taus, bounds, scratch, found):
    blocks, costs, weights, edges = space.blocks, space.costs, space.weights, space.chunks
    lows, highs, lowest = space.lows, space.highs, space.lowest
    for q in range(0, len(queries), QUERIES):
        n_here = min(QUERIES, len(queries) - q)
        for k in range(len(space.masses)):
            first_chunk, last_chunk = space.classes[k], space.classes[k + 1]
            mass = space.masses[k]
            for g in range(n_here):
                begin(scratch, g)
                nearest = _find_bounds(
                    lows, highs, lowest, first_chunk, last_chunk, queries, q + g, bounds[g]
                )
                _meet(space, nearest, queries, q + g, g, own, scratch, taus)
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
                            _meet(space, chunk, queries, q + g, g, own, scratch, taus)
                    continue
                first, last = edges[chunk], edges[chunk + 1]
                for block in range(first, last):
                    at = (block - first) * LANES
                    path_costs_of_four(blocks, block, queries, q, costs, scratch.costs, at)
                start, size = first * LANES, (last - first) * LANES
                for g in range(QUERIES):
                    take(scratch, g, size, weights, start, own[q + g] - start, taus)
            start, stop = edges[first_chunk] * LANES, edges[last_chunk] * LANES
            for g in range(n_here):
                left = mass
                if start <= own[q + g] < stop:
                    left = mass_without(weights, start, stop, own[q + g], mass)
                finish(scratch, g, left, taus, found.scores[q + g, k])
                found.lowest[q + g, k] = scratch.low[g]
