"""Who conquers a new sample: blocks of matrix products, training points in the order of their costs.

A node's cost is a lower bound on what it offers, so the scan of a block of queries ends when the costs of the
nodes still to come exceed all offers received. The products only tell which pairs to look at, see `tiles`.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, lowest_bit, tile_hits
from popf.engine.runtime.threads import BufferPool, map_chunks, one_blas_thread
from popf.engine.structures import Conquered, FloatArray, IntArray
from popf.engine.tiles import (
    PANEL,
    empty_tiles,
    multiply,
    order_points,
    rough_median,
    set_columns,
    set_rows,
    squared_distance,
    sufficient_bits,
)

# Blocks of points in one call: short enough for Ctrl-C, long enough to forget the call.
CALL_BLOCKS = 16
# Queries of a block at least, and blocks for each thread, so that all end at about the same time.
FEWEST_QUERIES, SHARES = 256, 3


class CostedBlocks(NamedTuple):
    """Points in the order of their costs."""

    points: FloatArray
    costs: FloatArray  # squared, rising
    rank: IntArray  # breaks ties of cost and distance: lower conquers
    order: IntArray  # points[i] was row order[i] of the input
    block: int  # how many points, or queries, make a block

    def conquer(self, queries: FloatArray, n_threads: int = 1) -> Conquered:
        """Find who conquers each query, scaled as the points are; nodes are rows of the input."""
        (n_queries, n_features), size = queries.shape, self.block
        if n_threads > 1:
            share = -(-n_queries // (SHARES * n_threads * LANES)) * LANES
            size = min(size, max(FEWEST_QUERIES, share))
        # Queries that lie close together are scanned together: then the tiles are sharp.
        ordered = order_points(queries, size, n_threads)
        offers = Conquered(
            np.full(n_queries, -1), np.full(n_queries, np.inf), np.full(n_queries, np.inf)
        )
        pool = BufferPool(lambda: empty_tiles(size, self.block, n_features))

        def scan(block: int, _: int) -> None:
            here = slice(ordered.starts[block], ordered.starts[block + 1])
            mine = Conquered(offers.nodes[here], offers.costs[here], offers.distances[here])
            group = Group(ordered.points[here], ordered.centers[block], ordered.radii[block], mine)
            with pool.borrow() as tiles:
                start, bits = 0, 32
                while start < len(self.points):
                    start, bits = _scan(tiles[bits], bits, self, group, start)

        with one_blas_thread():
            map_chunks(scan, len(ordered.radii), 1, n_threads)
        found = Conquered(np.empty_like(offers.nodes), np.empty(n_queries), np.empty(n_queries))
        found.nodes[ordered.order] = self.order[offers.nodes]
        found.costs[ordered.order], found.distances[ordered.order] = offers.costs, offers.distances
        return found


class Group(NamedTuple):
    """Queries that lie close together, and the best offers they have received."""

    points: FloatArray
    center: FloatArray
    radius: float
    offers: Conquered


@jit
def _scan(tile, bits, index, group, start):
    """Let points from `start` on make offers to a group of queries.

    Returns where to go on, and with how many bits: the call ends where others than the tile's are needed.
    """
    points, point_costs, block = index.points, index.costs, index.block
    queries, costs, distances = group.points, group.offers.costs, group.offers.distances
    center, widen, slack, row_bounds = group.center, tile.widen, tile.slack, tile.row_bounds
    bounds, wanted = np.empty(len(costs)), np.empty(len(costs), dtype=np.int64)
    extent = 1.0
    for value in center:
        extent = max(extent, 1.0 + abs(value))
    for first in range(start, start + CALL_BLOCKS * block, block):
        if first >= len(points):
            return first, bits
        # Points come by rising cost: none from here on offers less than this.
        floor = point_costs[first]
        # What costs no less than the best offer so far is wanted only if it is nearer.
        count = np.int64(0)  # not a literal, for which Numba would compile `set_rows` anew
        for q in range(len(costs)):
            if floor <= costs[q]:
                bounds[count] = costs[q] if floor < costs[q] else distances[q]
                wanted[count] = q
                count += 1
        if count == 0:  # nobody wants anything that is still to come
            return len(points), bits
        bound = rough_median(bounds[:count])
        needed = sufficient_bits(points.shape[1], group.radius, bound, extent)
        if needed != bits:
            return first, needed
        set_rows(tile, queries, wanted, count, center)
        width = set_columns(tile, points, first, min(first + block, len(points)), center)
        for i in range(count):
            row_bounds[i] = bounds[i] * widen + slack
        for top in range(0, count, PANEL):
            for left in range(0, width, PANEL):
                products = multiply(tile, top, count, left, width)
                _offer_panel(tile, products, index, group, wanted, top, first, left)
    return start + CALL_BLOCKS * block, bits


@helper
def _offer_panel(tile, products, index, group, wanted, top, start, left):
    """Compute what a panel lets pass, and keep the best offers."""
    points, point_costs, rank = index.points, index.costs, index.rank
    queries, (nodes, costs, distances) = group.points, group.offers
    row_norms, row_bounds = tile.row_norms, tile.row_bounds
    column_norms, column_bounds = tile.column_norms, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    floor = point_costs[start]
    for i in range(products.shape[0]):
        at = top + i
        q = wanted[at]
        # Invariant: nobody compared with the query so far beats its winner by (cost, distance, rank).
        cost, distance, winner = costs[q], distances[q], nodes[q]
        for column in range(0, products.shape[1], LANES):
            j = left + column
            hits = tile_hits(
                products, i, column, row_norms[at], column_norms, row_bounds[at], column_bounds, j
            )
            while hits != 0:
                hit = j + lowest_bit(hits)
                hits &= hits - 1
                v = start + hit
                if column_norms[hit] == np.inf or point_costs[v] > cost:
                    continue  # past the end, or too dear
                squared = squared_distance(queries, q, points, v)
                offered = max(point_costs[v], squared)
                if offered > cost:
                    continue
                if offered == cost:
                    if squared > distance:
                        continue
                    if squared == distance and winner >= 0 and rank[v] > rank[winner]:
                        continue
                cost, distance, winner = offered, squared, v
                # All costs to come are at least `floor`: at that cost only who is nearer can still win.
                row_bounds[at] = (distance if floor == cost else cost) * widen + slack
        costs[q], distances[q], nodes[q] = cost, distance, winner
