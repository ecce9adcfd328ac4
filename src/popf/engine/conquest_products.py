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
from .threads import map_chunks
from .tiles import (
    OrderedPoints,
    Workbench,
    Workbenches,
    make_tile,
    order_points,
    precision,
    squared_distance,
)
from .tiles import with_bounds as _with_bounds


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


def with_costs(points: FloatArray, costs: FloatArray, rank: IntArray, block: int) -> CostedBlocks:
    """Sort points by their squared costs."""
    order = np.argsort(costs, kind="stable")
    return CostedBlocks(points[order], costs[order], rank[order], order, block)


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
    # Queries that lie close together are scanned together: then the tiles are sharp.
    ordered = order_points(queries, index.block)
    n_queries = len(queries)
    offers = Conquered(
        np.full(n_queries, -1), np.full(n_queries, np.inf), np.full(n_queries, np.inf)
    )

    benches = Workbenches()

    def scan(start: int, stop: int) -> None:
        with benches.one() as bench:
            for block in range(start, stop):
                _scan(index, ordered, block, offers, bench)

    with one_blas_thread():
        map_chunks(scan, len(ordered.radii), 1, n_threads)
    back = np.empty(n_queries, dtype=np.int64)
    back[ordered.order] = np.arange(n_queries)
    return Conquered(index.order[offers.nodes[back]], offers.costs[back], offers.distances[back])


def _scan(
    index: CostedBlocks, ordered: OrderedPoints, block: int, offers: Conquered, bench: Workbench
) -> None:
    """Let all points make offers to one block of queries."""
    a, b = ordered.starts[block], ordered.starts[block + 1]
    queries, center, radius = ordered.points[a:b], ordered.centers[block], ordered.radii[block]
    mine = Conquered(offers.nodes[a:b], offers.costs[a:b], offers.distances[a:b])
    for start in range(0, len(index.points), index.block):
        floor = index.costs[start]
        if floor > mine.costs.max():
            break
        here = slice(start, start + index.block)
        # What costs no less than the best offer so far is wanted only if it is nearer.
        bounds = np.where(
            floor < mine.costs, mine.costs, np.where(floor == mine.costs, mine.distances, -1.0)
        )
        wanted = np.flatnonzero(bounds >= 0.0)
        typical, extent = float(np.median(bounds[wanted])), 1.0 + float(np.abs(center).max())
        real = precision(queries.shape[1], float(radius), typical, extent)
        tile = make_tile(queries[wanted], index.points[here], center, real, bench)
        tile = _with_bounds(tile, bounds[wanted], None)
        _offer(tile, queries, wanted, index, start, mine)


@jit
def _offer(tile, queries, wanted, index, start, offers):
    """Compute what a tile lets pass, and keep the best offers."""
    products, row_norms, column_norms = tile.products, tile.row_norms, tile.column_norms
    row_bounds, column_bounds = tile.row_bounds, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    points, costs, rank = index.points, index.costs, index.rank
    floor = costs[start]
    for i in range(products.shape[0]):
        q = wanted[i]
        cost, distance, winner = offers.costs[q], offers.distances[q], offers.nodes[q]
        for column in range(0, products.shape[1], LANES):
            hits = tile_hits(
                products, i, column, row_norms[i], column_norms, row_bounds[i], column_bounds
            )
            while hits != 0:
                j = column + lowest_bit(hits)
                hits &= hits - 1
                if column_norms[j] == np.inf or costs[start + j] > cost:
                    continue
                v = start + j
                squared = squared_distance(queries, q, points, v)
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
        offers.costs[q], offers.distances[q], offers.nodes[q] = cost, distance, winner
