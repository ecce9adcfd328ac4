"""Who conquers a new sample: a pruned search in the space tree, sixteen samples at a time.

A node of the tree can be passed by when the larger of the smallest cost in it and the distance to its box
is no better than the best offer so far. Many nodes share one cost, that of the edge at which their branch
hangs, so equal offers are common, and the nearer node must be found among them: where the smallest cost in a
node equals the best offer, only what is nearer than the best so far is looked at.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import (
    LANES,
    lane_box_hits,
    lane_distances,
    lanes_reaching,
    lowest_bit,
)
from popf.engine.runtime.threads import chunk_size, map_chunks
from popf.engine.space_tree import SpaceTree, build, lowest_in_nodes
from popf.engine.structures import Conquered, FloatArray, IntArray

# Blocks of queries in one call: short enough for Ctrl-C, long enough to forget the call.
CHUNK_BLOCKS = 256


class CostedTree(NamedTuple):
    """A space tree whose points have costs."""

    space: SpaceTree
    costs: FloatArray  # squared, in the order of space.points
    rank: IntArray  # breaks ties of cost and distance: lower conquers
    lowest: FloatArray  # the smallest squared cost in each node

    @classmethod
    def build(cls, space: SpaceTree, costs: FloatArray, rank: IntArray) -> "CostedTree":
        """Put costs on the points of a space tree, in its order."""
        return cls(space, costs, rank, lowest_in_nodes(space.nodes, costs))

    @property
    def points(self) -> FloatArray:
        """The points in the order of the tree."""
        return self.space.points

    @property
    def order(self) -> IntArray:
        """``points[i]`` was row ``order[i]`` of the input."""
        return self.space.order

    def conquer(self, queries: FloatArray, n_threads: int = 1) -> Conquered:
        """Find who conquers each query, scaled as the points are; nodes are rows of the tree's input."""
        # The queries get a tree of their own, so that the sixteen of a block lie close together.
        grouped = build(queries, n_threads)
        n = len(queries)
        found = Conquered(np.empty(n, dtype=np.int64), np.empty(n), np.empty(n))
        map_chunks(
            lambda start, stop: _conquer(self, grouped, start, stop, found),
            len(grouped.blocks),
            chunk_size(len(grouped.blocks), CHUNK_BLOCKS, n_threads),
            n_threads,
        )
        return found


@jit
def _conquer(index, grouped, start, stop, found):
    """Find who conquers the queries of some blocks; nodes and queries by the names they came with."""
    space, costs, rank, lowest = index.space, index.costs, index.rank, index.lowest
    blocks, lows, highs, nodes = space.blocks, space.lows, space.highs, space.nodes
    names, queries = space.order, grouped.order
    query_points, query_blocks = grouped.points, grouped.blocks
    found_nodes, found_costs, found_distances = found.nodes, found.costs, found.distances
    n, n_queries = len(costs), len(query_points)
    stack = np.empty(128, dtype=np.int64)
    out = np.empty(LANES)
    cost_bounds = np.empty(LANES)
    distance_bounds = np.empty(LANES)
    winners = np.empty(LANES, dtype=np.int64)
    for block in range(start, stop):
        base = block * LANES
        for lane in range(LANES):
            # A lane without a query wants nothing.
            cost_bounds[lane] = np.inf if base + lane < n_queries else -1.0
            distance_bounds[lane] = cost_bounds[lane]
            winners[lane] = -1
        stack[0] = 0
        top = 1
        # Invariant: nobody that was seen or passed by beats a lane's winner by (cost, distance, rank).
        while top > 0:
            top -= 1
            here = stack[top]
            # A node offers no less than its lowest cost, and no less than the distance to its box.
            floor = lowest[here]
            mask = lanes_reaching(cost_bounds, floor)
            if mask == 0:
                continue
            mask &= lane_box_hits(query_blocks, block, lows, highs, here, cost_bounds)
            if mask == 0:
                continue
            # Where its lowest cost equals the best offer, only who is nearer can still win.
            level = mask & ~lanes_reaching(cost_bounds, np.nextafter(floor, np.inf))
            if level != 0:
                near = lane_box_hits(query_blocks, block, lows, highs, here, distance_bounds)
                mask &= near | ~level
                if mask == 0:
                    continue
            right = nodes[here]["right"]
            if right >= 0:
                # The nearer child is searched first: it lowers the bounds for the other.
                side = query_points[base, nodes[here]["feature"]] < nodes[here]["value"]
                stack[top] = right if side else here + 1
                stack[top + 1] = here + 1 if side else right
                top += 2
                continue
            other = nodes[here]["block"]
            first = other * LANES
            while mask != 0:
                lane = lowest_bit(mask)
                mask &= mask - 1
                row = base + lane
                cost, distance = cost_bounds[lane], distance_bounds[lane]
                winner = winners[lane]
                bound = distance if floor == cost else cost
                hits = lane_distances(blocks, other, query_points, row, bound, out)
                while hits != 0:
                    j = lowest_bit(hits)
                    hits &= hits - 1
                    v = first + j
                    if v >= n:  # the last block is filled up with points at infinity
                        break
                    offer = max(costs[v], out[j])
                    if offer > cost:
                        continue
                    if offer == cost:
                        if out[j] > distance:
                            continue
                        if out[j] == distance and winner >= 0 and rank[v] > rank[winner]:
                            continue
                    cost, distance, winner = offer, out[j], v
                cost_bounds[lane], distance_bounds[lane] = cost, distance
                winners[lane] = winner
        for lane in range(min(LANES, n_queries - base)):
            query = queries[base + lane]
            found_nodes[query] = names[winners[lane]]
            found_costs[query] = cost_bounds[lane]
            found_distances[query] = distance_bounds[lane]
