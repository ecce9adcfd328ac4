r"""The conquest: each new sample is joined to the training sample that offers it the cheapest path.

Training sample v offers the new sample t a path of cost :math:`\max(C_v, d(v, t))`, and the cheapest conquers
(Equation 3 of the paper). Among equal costs the nearer sample wins, then the lower class, then the lower index.

Euclidean distances use the space tree or matrix products; for other metrics see `scanned_nodes`.

In the space tree, sixteen queries are processed at a time. A node is skipped if the larger of its smallest cost
and the distance to its box is no better than the best offer so far. Many points have the same cost, that of the
edge that attaches their branch, so equal offers are common and go to the nearest point: where the smallest cost
in a node equals the best offer, only points nearer than the best so far are considered.

For matrix products, points are sorted by cost. The cost of a point is a lower bound on its offer, so the scan
for a block of queries ends when the remaining costs exceed all offers received. Products only select the pairs
whose distance is computed, see `tiles`.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.points import (
    DistinctPoints,
    order_points,
    scale_exponent,
    scaled_copy,
    squared_distance,
)
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import (
    LANES,
    lane_box_hits,
    lane_distances,
    lanes_reaching,
    lowest_bit,
    tile_hits,
)
from popf.engine.runtime.threads import BufferPool, Team, chunk_size, map_chunks, one_blas_thread
from popf.engine.space_tree import SpaceTree, build_space_tree, lowest_in_nodes, push_children
from popf.engine.structures import BoolArray, Conquest, FloatArray, IntArray, Resources, ceil_div
from popf.engine.tiles import (
    PANEL,
    block_size,
    empty_tiles,
    multiply,
    rough_median,
    set_columns,
    set_rows,
    sufficient_bits,
)

# A query beyond 2**FAR times the magnitude of the training data is, in float64, at the same distance from all
# training points; squares of nearer queries do not overflow.
FAR = 400
# Blocks of queries, and of points, per call: few enough for Ctrl-C, enough to make the call overhead small.
CHUNK_BLOCKS, CALL_BLOCKS = 256, 16
# Minimum queries per block, and blocks per thread, so that all threads finish at about the same time.
MIN_QUERIES, BLOCKS_PER_THREAD = 256, 3


class EuclideanConquest:
    """The training points, indexed for conquest."""

    def __init__(
        self,
        distinct: DistinctPoints,
        codes: IntArray,  # the class of each sample
        costs: FloatArray,  # of the points, squared, in their scale
        algorithm: str,  # "kd_tree", "brute" or "prim"
        resources: Resources,  # if there is a backend, it conquers, by matrix products
        space: SpaceTree | None = None,  # of the points, if already built
    ) -> None:
        self.algorithm = algorithm
        self.exponent = distinct.exponent
        self._tile_bytes = resources.n_bytes // resources.n_threads
        self.backend = resources.backend
        self._placed: Any = None  # the points on the device
        self._codes = codes
        self._point_of = distinct.point_of
        self._sample = _conquering_samples(distinct, codes)
        # Rank by class, then by index, so that labels do not depend on the order of the rows.
        rank = codes[self._sample] * len(codes) + self._sample
        self._foremost = int(np.argmin(rank))  # the point that wins all ties
        self._points: FloatArray | None = distinct.points  # until the index is built
        self._costs, self._rank = costs, rank
        self._index: Index | None = None
        if space is not None:
            self._indexed(resources.n_threads, space)
        self._by_class: list[Index] | None = None

    def conquer(self, X: FloatArray, n_threads: int = 1) -> tuple[Conquest, IntArray]:
        """Find the training sample that conquers each new sample.

        Costs and distances are squared, and must be multiplied by ``4**exponents``, which are also returned.
        """
        queries, exponents, far = self._scaled(X, n_threads)
        conquest = self._conquer_scaled(queries, n_threads)
        if far.any():
            # In float64 these queries are equidistant from all training points, farther than any cost.
            distances = _squared_norms(queries[far])
            conquest.nodes[far] = self._foremost
            conquest.costs[far] = conquest.distances[far] = distances
        return conquest._replace(nodes=self._sample[conquest.nodes]), exponents

    def samples(self) -> FloatArray:
        """Return the training samples in their original scale."""
        points, index = self._points, self._index
        if points is None:
            assert index is not None
            points = np.empty_like(index.points)
            points[index.order] = index.points
        return np.ldexp(points[self._point_of], self.exponent)

    def _indexed(self, n_threads: int, space: SpaceTree | None = None) -> "Index":
        """Return the index of all points, built when it is first needed: most indices copy the points."""
        # Several threads may be here: the points are dropped only after the index is set.
        points, index = self._points, self._index
        if index is None:
            assert points is not None
            index = self._new_index(points, self._costs, self._rank, n_threads, space)
            self._index = index
            self._points = None
        return index

    def _conquer_scaled(self, queries: FloatArray, n_threads: int) -> Conquest:
        index = self._indexed(n_threads)
        if self.backend is None or not isinstance(index, CostedBlocks):
            return index.conquer(queries, n_threads)
        if self._placed is None:
            self._placed = self.backend.place(index.points)
        conquest, unsure = self.backend.conquer(self._placed, index.costs, index.rank, queries)
        conquest.nodes[:] = index.order[conquest.nodes]
        if len(unsure):
            for whole, part in zip(
                conquest, index.conquer(queries[unsure], n_threads), strict=True
            ):
                whole[unsure] = part
        return conquest

    def __getstate__(self) -> dict[str, Any]:
        # A GPU backend is not pickled: a loaded forest uses the CPU.
        return {**self.__dict__, "backend": None, "_placed": None}

    def costs_by_class(self, X: FloatArray, n_threads: int = 1) -> tuple[FloatArray, IntArray]:
        """Find the smallest path cost that each class offers to each new sample; scaled as in `conquer`."""
        if self._by_class is None:
            n_classes = int(self._codes.max()) + 1
            self._by_class = [self._index_of_class(c, n_threads) for c in range(n_classes)]
        queries, exponents, far = self._scaled(X, n_threads)
        columns = [index.conquer(queries, n_threads).costs for index in self._by_class]
        costs = np.stack(columns, axis=1)
        costs[far] = _squared_norms(queries[far])[:, None]
        return costs, exponents[:, None]

    def _scaled(self, X: FloatArray, n_threads: int) -> tuple[FloatArray, IntArray, BoolArray]:
        """Scale queries like the points, but those too far away for that by their own magnitude."""
        with Team(n_threads) as team:
            if scale_exponent(X, team) <= self.exponent + FAR:
                exponents, far = np.full(len(X), self.exponent), np.zeros(len(X), dtype=np.bool_)
                return scaled_copy(X, self.exponent, team), exponents, far
            largest = np.abs(X).max(axis=1)
            sizes = np.frexp(largest)[1].astype(np.int64)
            far = (sizes > self.exponent + FAR) & (largest > 0.0)
            exponents = np.where(far, sizes, self.exponent)
            return scaled_copy(X, exponents[:, None], team), exponents, far

    def _index_of_class(self, code: int, n_threads: int) -> "Index":
        members, index = np.unique(self._point_of[self._codes == code]), self._indexed(n_threads)
        at = np.argsort(index.order)[members]
        return self._new_index(index.points[at], index.costs[at], members, n_threads)

    def _new_index(
        self,
        points: FloatArray,
        costs: FloatArray,
        rank: IntArray,
        n_threads: int,
        space: SpaceTree | None = None,
    ) -> "Index":
        if self.algorithm == "kd_tree":
            space = build_space_tree(points, n_threads) if space is None else space
            costs, rank = costs[space.order], rank[space.order]
            return CostedTree(space, costs, rank, lowest_in_nodes(space.nodes, costs))
        block = block_size(points.shape[1], self._tile_bytes)
        order = np.argsort(costs, kind="stable")
        ordered = np.empty_like(points)

        def copy(start: int, stop: int) -> None:
            np.take(points, order[start:stop], axis=0, out=ordered[start:stop], mode="clip")

        map_chunks(copy, len(points), block, n_threads)
        return CostedBlocks(ordered, costs[order], rank[order], order, block)


def _squared_norms(queries: FloatArray) -> FloatArray:
    """Compute squared norms, summing the features in order."""
    total = np.zeros(len(queries))
    for column in queries.T:
        total += column * column
    return total


def _conquering_samples(distinct: DistinctPoints, codes: IntArray) -> IntArray:
    """Return the sample that conquers for each point: the first one of the lowest class."""
    if len(distinct.first) == len(codes):
        return distinct.first
    order = np.lexsort((codes, distinct.point_of))
    return order[np.flatnonzero(np.diff(distinct.point_of[order], prepend=-1))]


class CostedTree(NamedTuple):
    """A space tree whose points have costs."""

    space: SpaceTree
    costs: FloatArray  # squared, in the order of space.points
    rank: IntArray  # breaks ties of cost and distance: the lower rank wins
    lowest: FloatArray  # the smallest squared cost in each node

    @property
    def points(self) -> FloatArray:
        """The points in the order of the tree."""
        return self.space.points

    @property
    def order(self) -> IntArray:
        """``points[i]`` was row ``order[i]`` of the input."""
        return self.space.order

    def conquer(self, queries: FloatArray, n_threads: int = 1) -> Conquest:
        """Find the conqueror of each query, in the scale of the points; nodes are rows of the tree's input."""
        # The queries get a tree of their own, so that the sixteen of a block lie close together.
        grouped = build_space_tree(queries, n_threads)
        n = len(queries)
        conquest = Conquest(np.empty(n, dtype=np.int64), np.empty(n), np.empty(n))
        map_chunks(
            lambda start, stop: _conquer_in_space(self, grouped, start, stop, conquest),
            len(grouped.blocks),
            chunk_size(len(grouped.blocks), CHUNK_BLOCKS, n_threads),
            n_threads,
        )
        return conquest


@helper
def wins(cost, distance, v, best_cost, best_distance, winner, rank):
    """Return whether point v beats the winner so far, by (cost, distance, rank)."""
    if cost != best_cost:
        return cost < best_cost
    if distance != best_distance:
        return distance < best_distance
    return winner < 0 or rank[v] < rank[winner]


@jit
def _conquer_in_space(index, grouped, start, stop, conquest):
    """Find the conquerors of the queries in some blocks; nodes and queries are rows of their inputs."""
    space, costs, rank, lowest = index.space, index.costs, index.rank, index.lowest
    blocks, lows, highs, nodes = space.blocks, space.lows, space.highs, space.nodes
    node_rows, query_rows = space.order, grouped.order
    query_points, query_blocks = grouped.points, grouped.blocks
    nodes_out, costs_out, distances_out = conquest.nodes, conquest.costs, conquest.distances
    n, n_queries = len(costs), len(query_points)
    stack = np.empty(128, dtype=np.int64)
    out = np.empty(LANES)
    cost_bounds = np.empty(LANES)
    distance_bounds = np.empty(LANES)
    winners = np.empty(LANES, dtype=np.int64)
    for block in range(start, stop):
        base = block * LANES
        for lane in range(LANES):
            # A lane without a query gets a negative bound, which no node meets.
            cost_bounds[lane] = np.inf if base + lane < n_queries else -1.0
            distance_bounds[lane] = cost_bounds[lane]
            winners[lane] = -1
        stack[0] = 0
        top = 1
        # Invariant: no point compared or skipped so far beats a lane's winner by (cost, distance, rank).
        while top > 0:
            top -= 1
            here = stack[top]
            # No point of a node offers less than its lowest cost, or less than the distance to its box.
            floor = lowest[here]
            mask = lanes_reaching(cost_bounds, floor)
            if mask == 0:
                continue
            mask &= lane_box_hits(query_blocks, block, lows, highs, here, cost_bounds)
            if mask == 0:
                continue
            # Where its lowest cost equals the best offer, only a nearer point can still win.
            at_floor = mask & ~lanes_reaching(cost_bounds, np.nextafter(floor, np.inf))
            if at_floor != 0:
                near = lane_box_hits(query_blocks, block, lows, highs, here, distance_bounds)
                mask &= near | ~at_floor
                if mask == 0:
                    continue
            if nodes[here]["right"] >= 0:
                # The nearer child is searched first, which lowers the bounds for the other.
                top = push_children(nodes, here, query_points, base, stack, top)
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
                    if v >= n:  # the last block is padded with points at infinity
                        break
                    offer = max(costs[v], out[j])
                    if wins(offer, out[j], v, cost, distance, winner, rank):
                        cost, distance, winner = offer, out[j], v
                cost_bounds[lane], distance_bounds[lane] = cost, distance
                winners[lane] = winner
        for lane in range(min(LANES, n_queries - base)):
            query = query_rows[base + lane]
            nodes_out[query] = node_rows[winners[lane]]
            costs_out[query] = cost_bounds[lane]
            distances_out[query] = distance_bounds[lane]


class CostedBlocks(NamedTuple):
    """Points sorted by cost, in blocks."""

    points: FloatArray
    costs: FloatArray  # squared, ascending
    rank: IntArray  # breaks ties of cost and distance: the lower rank wins
    order: IntArray  # points[i] was row order[i] of the input
    block: int  # points, or queries, per block

    def conquer(self, queries: FloatArray, n_threads: int = 1) -> Conquest:
        """Find the conqueror of each query, in the scale of the points; nodes are rows of the input."""
        (n_queries, n_features), size = queries.shape, self.block
        if n_threads > 1:
            share = ceil_div(n_queries, BLOCKS_PER_THREAD * n_threads * LANES) * LANES
            size = min(size, max(MIN_QUERIES, share))
        # Queries that are close together share a block, so that the bounds of its tiles are tight.
        ordered = order_points(queries, size, n_threads)
        offers = Conquest(
            np.full(n_queries, -1), np.full(n_queries, np.inf), np.full(n_queries, np.inf)
        )
        pool = BufferPool(lambda: empty_tiles(size, self.block, n_features))

        def scan(block: int, _: int) -> None:
            here = slice(ordered.starts[block], ordered.starts[block + 1])
            mine = offers.nodes[here], offers.costs[here], offers.distances[here]
            group = ordered.points[here], ordered.centers[block], ordered.radii[block], mine
            with pool.borrow() as tiles:
                start, bits = 0, 32
                while start < len(self.points):
                    start, bits = _conquer_by_products(tiles[bits], bits, self, group, start)

        with one_blas_thread():
            map_chunks(scan, len(ordered.radii), 1, n_threads)
        conquest = Conquest(np.empty_like(offers.nodes), np.empty(n_queries), np.empty(n_queries))
        conquest.nodes[ordered.order] = self.order[offers.nodes]
        conquest.costs[ordered.order], conquest.distances[ordered.order] = (
            offers.costs,
            offers.distances,
        )
        return conquest


@jit
def _conquer_by_products(tile, bits, index, group, start):
    """Let points from `start` on make offers to a group of queries, and keep the best ones.

    Returns where to continue, and with how many bits: the call ends early where the tile's precision is wrong.
    """
    points, point_costs, block = index.points, index.costs, index.block
    queries, center, radius, offers = group
    _, costs, distances = offers
    widen, slack, row_bounds = tile.widen, tile.slack, tile.row_bounds
    bounds, wanted = np.empty(len(costs)), np.empty(len(costs), dtype=np.int64)
    extent = 1.0
    for value in center:
        extent = max(extent, 1.0 + abs(value))
    for first in range(start, start + CALL_BLOCKS * block, block):
        if first >= len(points):
            return first, bits
        # Points are sorted by cost: none from here on offers less than this.
        floor = point_costs[first]
        # Where this equals the best offer so far, only nearer points can still win.
        count = np.int64(0)  # not a literal, for which Numba would compile `set_rows` again
        for q in range(len(costs)):
            if floor <= costs[q]:
                bounds[count] = costs[q] if floor < costs[q] else distances[q]
                wanted[count] = q
                count += 1
        if count == 0:  # none of the remaining points can win a query
            return len(points), bits
        bound = rough_median(bounds[:count])
        needed = sufficient_bits(points.shape[1], radius, bound, extent)
        if needed != bits:
            return first, needed
        set_rows(tile, queries, wanted, count, center)
        width = set_columns(tile, points, first, min(first + block, len(points)), center)
        for i in range(count):
            row_bounds[i] = bounds[i] * widen + slack
        for top in range(0, count, PANEL):
            for left in range(0, width, PANEL):
                products = multiply(tile, top, count, left, width)
                place = top, first, left
                _offer_panel(tile, products, place, index, queries, offers, wanted)
    return start + CALL_BLOCKS * block, bits


@helper
def _offer_panel(tile, products, place, index, queries, offers, wanted):
    """Compute the distances of the pairs that a panel lets pass, and keep the best offers."""
    points, point_costs, rank = index.points, index.costs, index.rank
    (nodes, costs, distances), (top, start, left) = offers, place
    row_norms, row_bounds = tile.row_norms, tile.row_bounds
    column_norms, column_bounds = tile.column_norms, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    floor = point_costs[start]
    for i in range(products.shape[0]):
        at = top + i
        q = wanted[at]
        # Invariant: no point compared with the query so far beats its winner by (cost, distance, rank).
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
                    continue  # padding, or the cost is too high
                squared = squared_distance(queries, q, points, v)
                offered = max(point_costs[v], squared)
                if wins(offered, squared, v, cost, distance, winner, rank):
                    cost, distance, winner = offered, squared, v
                    # All remaining costs are at least `floor`: at that cost, only a nearer point can still win.
                    row_bounds[at] = (distance if floor == cost else cost) * widen + slack
        costs[q], distances[q], nodes[q] = cost, distance, winner


Index = CostedTree | CostedBlocks
