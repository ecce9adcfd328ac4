"""The k nearest points of every query, nearest first; equally near ones in the order of their indices."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine import space_tree
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, lane_box_hits, lane_distances, lowest_bit
from popf.engine.runtime.threads import chunk_size, map_chunks
from popf.engine.space_tree import SpaceTree
from popf.engine.structures import BlockOfDistances, FloatArray
from popf.engine.trees.prim import refuse_weight

# Blocks of queries in one call: short enough for Ctrl-C, long enough to forget the call.
CHUNK_BLOCKS = 512


class Nearest(NamedTuple):
    """The nearest points of each query, a row each: their indices, and weights as the engine has them."""

    indices: NDArray[np.int32]
    weights: FloatArray


def nearest_in_space(
    tree: SpaceTree, queries: FloatArray | None, k: int, n_threads: int
) -> Nearest:
    """Search a space tree for the nearest points, by squared distance.

    Without `queries` these are the points, none of which is its own neighbour; k is less than their number.
    """
    asking = tree if queries is None else space_tree.build(queries, n_threads)
    found = _empty_lists(len(asking.points), k)
    map_chunks(
        lambda start, stop: _search(tree, asking, queries is None, start, stop, found),
        len(asking.blocks),
        chunk_size(len(asking.blocks), CHUNK_BLOCKS, n_threads),
        n_threads,
    )
    return found


def nearest_by_scan(
    block: BlockOfDistances, n_queries: int, k: int, own: bool, rows_at_once: int, n_threads: int
) -> Nearest:
    """Look for the nearest points among all distances; with `own`, query i is point i itself."""
    found = _empty_lists(n_queries, k)

    def scan(start: int, stop: int) -> None:
        distances = block(start, stop)
        wrong = _scan(distances, start, own, found)
        if wrong >= 0:
            row, point = divmod(wrong, distances.shape[1])
            refuse_weight(distances[row, point], start + row, point)

    map_chunks(scan, n_queries, rows_at_once, n_threads)
    return found


def _empty_lists(n_queries: int, k: int) -> Nearest:
    return Nearest(np.empty((n_queries, k), dtype=np.int32), np.empty((n_queries, k)))


@helper
def _insert(weights, indices, row, value, index):
    """Insert a point into a sorted list if it is near enough; equally near ones are in the order of indices."""
    slot = weights.shape[1] - 1
    if (value == weights[row, slot] and index > indices[row, slot]) or value > weights[row, slot]:
        return
    while slot > 0 and (
        weights[row, slot - 1] > value
        or (weights[row, slot - 1] == value and indices[row, slot - 1] > index)
    ):
        weights[row, slot] = weights[row, slot - 1]
        indices[row, slot] = indices[row, slot - 1]
        slot -= 1
    weights[row, slot], indices[row, slot] = value, index


@jit
def _search(tree, asking, own, start, stop, found):
    """Search for the nearest of the queries in some blocks, from the root down, nearer child first."""
    points, blocks, lows, highs, nodes = tree.points, tree.blocks, tree.lows, tree.highs, tree.nodes
    queries, query_blocks = asking.points, asking.blocks
    indices, weights = found.indices, found.weights
    last = weights.shape[1] - 1
    n = len(points)
    stack = np.empty(128, dtype=np.int64)
    bounds = np.empty(LANES)
    out = np.empty(LANES)
    for block in range(start, stop):
        base = block * LANES
        width = min(LANES, len(queries) - base)
        for lane in range(LANES):
            bounds[lane] = np.inf if lane < width else -1.0
            if lane < width:
                weights[asking.order[base + lane]] = np.inf
                indices[asking.order[base + lane]] = n
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            here = stack[top]
            # The computed distance to a box is at most that to any point in it (see `simd`).
            mask = lane_box_hits(query_blocks, block, lows, highs, here, bounds)
            if mask == 0:
                continue
            right = nodes[here]["right"]
            if right >= 0:
                side = queries[base, nodes[here]["feature"]] < nodes[here]["value"]
                stack[top] = right if side else here + 1
                stack[top + 1] = here + 1 if side else right
                top += 2
                continue
            other = nodes[here]["block"]
            first = other * LANES
            while mask != 0:
                lane = lowest_bit(mask)
                mask &= mask - 1
                row = asking.order[base + lane]
                hits = lane_distances(blocks, other, queries, base + lane, bounds[lane], out)
                if own and other == block:
                    hits &= ~(1 << lane)
                while hits != 0:
                    j = lowest_bit(hits)
                    hits &= hits - 1
                    if first + j >= n:
                        continue
                    _insert(weights, indices, row, out[j], tree.order[first + j])
                bounds[lane] = weights[row, last]


@jit
def _scan(distances, start, own, found):
    """List the nearest of some queries; returns the index of a negative or non-finite distance, or -1."""
    indices, weights = found.indices, found.weights
    last = weights.shape[1] - 1
    for i in range(len(distances)):
        row = start + i
        weights[row] = np.inf
        indices[row] = distances.shape[1]
        for index in range(distances.shape[1]):
            value = distances[i, index]
            if own and index == row:
                continue
            if not 0.0 <= value < np.inf:
                return i * distances.shape[1] + index
            if value < weights[row, last]:  # what comes later yields where it is as near
                _insert(weights, indices, row, value, index)
    return -1
