"""Who conquers a new sample: blocks of matrix products, training points in the order of their costs.

A node's cost is a lower bound on what it offers, so the scan of a block of queries ends when the costs of the
nodes still to come exceed all offers received. The products only tell which pairs to look at, see `tiles`.
"""

from typing import NamedTuple

import numpy as np

from .blas import one_blas_thread
from .jit import jit
from .lanes import LANES, lowest_bit, tile_hits
from .structures import Conquered, FloatArray, IntArray
from .threads import Team
from .tiles import (
    PANEL,
    Workbenches,
    empty_tiles,
    multiply,
    order_points,
    set_columns,
    set_rows,
    squared_distance,
    sufficient_bits,
    typical,
)

# Blocks of points in one call: short enough for Ctrl-C, long enough to forget the call.
CALL_BLOCKS = 16
# Queries of a block at least, and blocks for each thread, so that all end at about the same time.
FEWEST_QUERIES, SHARES = 256, 3


class CostedBlocks(NamedTuple):
    """Points in the order of their costs.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
    costs : ndarray of shape (n_points,)
        Squared, rising.
    rank : ndarray of shape (n_points,)
        Breaks ties between points at the same cost and distance: lower conquers.
    order : ndarray of shape (n_points,)
        ``points[i]`` was row ``order[i]`` of the input.
    block : int
        How many points, or queries, make a block.
    """

    points: FloatArray
    costs: FloatArray
    rank: IntArray
    order: IntArray
    block: int


def with_costs(
    points: FloatArray, costs: FloatArray, rank: IntArray, block: int, n_threads: int = 1
) -> CostedBlocks:
    """Sort points by their squared costs."""
    order = np.argsort(costs, kind="stable")
    ordered = np.empty_like(points)

    def copy(start: int, stop: int) -> None:
        np.take(points, order[start:stop], axis=0, out=ordered[start:stop], mode="clip")

    with Team(n_threads) as team:
        team.map_chunks(copy, len(points), block)
    return CostedBlocks(ordered, costs[order], rank[order], order, block)


def conquer(index: CostedBlocks, queries: FloatArray, n_threads: int = 1) -> Conquered:
    """Find who conquers each query.

    Parameters
    ----------
    index : CostedBlocks
    queries : ndarray of shape (n_queries, n_features)
        Scaled as the points are.
    n_threads : int

    Returns
    -------
    Conquered
        Points are numbered as in the input of `with_costs`.
    """
    n_queries, n_features = queries.shape
    size = index.block
    if n_threads > 1:
        share = -(-n_queries // (SHARES * n_threads * LANES)) * LANES
        size = min(size, max(FEWEST_QUERIES, share))
    # Queries that lie close together are scanned together: then the tiles are sharp.
    ordered = order_points(queries, size, n_threads)
    offers = Conquered(
        np.full(n_queries, -1), np.full(n_queries, np.inf), np.full(n_queries, np.inf)
    )
    benches = Workbenches()

    def scan(block: int, _: int) -> None:
        here = slice(ordered.starts[block], ordered.starts[block + 1])
        group = Group(
            ordered.points[here],
            ordered.centers[block],
            ordered.radii[block],
            offers.nodes[here],
            offers.costs[here],
            offers.distances[here],
        )
        with benches.one() as bench:
            tiles = empty_tiles(bench, size, index.block, n_features)
            start, bits = 0, 32
            while start < len(index.points):
                start, bits = _scan(tiles[bits], bits, index, group, start)

    with one_blas_thread(), Team(n_threads) as team:
        team.map_chunks(scan, len(ordered.radii), 1)
    back = np.empty(n_queries, dtype=np.int64)
    back[ordered.order] = np.arange(n_queries)
    return Conquered(index.order[offers.nodes[back]], offers.costs[back], offers.distances[back])


class Group(NamedTuple):
    """Queries that lie close together, and the best offers they have received.

    Attributes
    ----------
    points : ndarray of shape (n_queries, n_features)
    center : ndarray of shape (n_features,)
    radius : float
    nodes, costs, distances : ndarray of shape (n_queries,)
        As in `Conquered`.
    """

    points: FloatArray
    center: FloatArray
    radius: float
    nodes: IntArray
    costs: FloatArray
    distances: FloatArray


@jit
def _scan(tile, bits, index, group, start):
    """Let points from `start` on make offers to a group of queries.

    Returns where to go on, and with how many bits: the call ends where others than the tile's are needed.
    """
    bounds, wanted = np.empty(len(group.costs)), np.empty(len(group.costs), dtype=np.int64)
    extent = 1.0 + np.abs(group.center).max()
    for first in range(start, start + CALL_BLOCKS * index.block, index.block):
        if first >= len(index.points):
            return first, bits
        floor = index.costs[first]
        # What costs no less than the best offer so far is wanted only if it is nearer.
        count = 0
        for q in range(len(group.costs)):
            if floor <= group.costs[q]:
                near = group.costs[q] if floor < group.costs[q] else group.distances[q]
                bounds[count], wanted[count] = near, q
                count += 1
        if count == 0:
            return len(index.points), bits
        needed = sufficient_bits(
            group.points.shape[1], group.radius, typical(bounds[:count]), extent
        )
        if needed != bits:
            return first, needed
        last = min(first + index.block, len(index.points))
        _compare(tile, first, last, (index, group, wanted[:count], bounds))
    return start + CALL_BLOCKS * index.block, bits


@jit
def _compare(tile, first, last, state):
    """Let some points make offers to the queries that want them."""
    index, group, wanted, bounds = state
    set_rows(tile, group.points, wanted, group.center)
    width = set_columns(tile, index.points, first, last, group.center)
    for i in range(len(wanted)):
        tile.row_bounds[i] = bounds[i] * tile.widen + tile.slack
    for top in range(0, len(wanted), PANEL):
        n_rows = min(PANEL, len(wanted) - top)
        for left in range(0, width, PANEL):
            n_columns = min(PANEL, width - left)
            products = multiply(tile, top, n_rows, left, n_columns)
            _offer_panel(tile, products, index, group, wanted, top, first, left)


@jit
def _offer_panel(tile, products, index, group, wanted, top, start, left):
    """Compute what a panel lets pass, and keep the best offers."""
    points, costs, rank = index.points, index.costs, index.rank
    row_norms, row_bounds = tile.row_norms, tile.row_bounds
    widen, slack = tile.widen, tile.slack
    n_rows, n_columns = products.shape
    column_norms = tile.column_norms[left : left + n_columns]
    column_bounds = tile.column_bounds[left : left + n_columns]
    floor = costs[start]
    for i in range(top, top + n_rows):
        q = wanted[i]
        cost, distance, winner = group.costs[q], group.distances[q], group.nodes[q]
        for column in range(0, n_columns, LANES):
            hits = tile_hits(
                products, i - top, column, row_norms[i], column_norms, row_bounds[i], column_bounds
            )
            while hits != 0:
                j = column + lowest_bit(hits)
                hits &= hits - 1
                v = start + left + j
                if column_norms[j] == np.inf or costs[v] > cost:
                    continue
                squared = squared_distance(group.points, q, points, v)
                offered = max(costs[v], squared)
                if offered > cost:
                    continue
                if offered == cost:
                    if squared > distance:
                        continue
                    if squared == distance and winner >= 0 and rank[v] > rank[winner]:
                        continue
                cost, distance, winner = offered, squared, v
                row_bounds[i] = (distance if floor == cost else cost) * widen + slack
        group.costs[q], group.distances[q], group.nodes[q] = cost, distance, winner
