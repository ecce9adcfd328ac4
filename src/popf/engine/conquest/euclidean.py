"""Conquest of new samples by Euclidean distance: in the space tree, sixteen samples at a time, or by products.

A node of the tree can be passed by when the larger of the smallest cost in it and the distance to its box
is no better than the best offer so far. Many nodes share one cost, that of the edge at which their branch
hangs, so equal offers are common, and the nearer node must be found among them: where the smallest cost in a
node equals the best offer, only what is nearer than the best so far is looked at.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.conquest.by_tiles import CostedBlocks
from popf.engine.points import DistinctPoints, scale_exponent, scaled_copy
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import (
    LANES,
    lane_box_hits,
    lane_distances,
    lanes_reaching,
    lowest_bit,
)
from popf.engine.runtime.threads import Team, chunk_size, map_chunks
from popf.engine.space_tree import SpaceTree, build, lowest_in_nodes
from popf.engine.structures import BoolArray, Conquered, FloatArray, IntArray, Resources
from popf.engine.tiles import block_size

# From 2**FAR times the size of the training data, differences within that no longer matter: they
# vanish in float64, and nearer by, squares can be taken without harm.
FAR = 400
# Blocks of queries in one call: short enough for Ctrl-C, long enough to forget the call.
CHUNK_BLOCKS = 256


class EuclideanConquest:
    """The training points, indexed for conquest."""

    def __init__(
        self,
        distinct: DistinctPoints,
        codes: IntArray,  # the class of every sample
        costs: FloatArray,  # of the points, squared, scaled as they are
        algorithm: str,  # "kd_tree", "brute" or "prim"
        resources: Resources,  # if they have a backend, that conquers, by products
        space: SpaceTree | None = None,  # of the points, if there is one already
    ) -> None:
        n_threads = resources.n_threads
        self.algorithm = algorithm
        self.exponent = distinct.exponent
        self._tile_bytes = resources.n_bytes // n_threads
        self.backend = resources.backend
        self._placed: Any = None  # the points laid out by the backend
        self._codes = codes
        self._point_of = distinct.point_of
        self._sample = _conquering_samples(distinct, codes)
        # The class goes before the index, so that labels do not depend on the order of the rows.
        rank = codes[self._sample] * len(codes) + self._sample
        self._foremost = int(np.argmin(rank))  # the point that conquers where all else is equal
        self._index = self._new_index(distinct.points, costs, rank, n_threads, space)
        self._by_class: list[Index] | None = None

    def conquer(self, X: FloatArray, n_threads: int = 1) -> tuple[Conquered, IntArray]:
        """Find who conquers each new sample; nodes are training samples.

        Costs and distances are squared, and to be multiplied by ``4**exponents``, which are returned, too.
        """
        queries, exponents, far = self._scaled(X, n_threads)
        found = self._conquer_scaled(queries, n_threads)
        if far.any():
            # Seen from there all training points are at one distance, which no cost exceeds.
            distances = _squared_norms(queries[far])
            found.nodes[far] = self._foremost
            found.costs[far] = found.distances[far] = distances
        return found._replace(nodes=self._sample[found.nodes]), exponents

    def samples(self) -> FloatArray:
        """Return the training samples as they were before they were scaled."""
        points = np.empty_like(self._index.points)
        points[self._index.order] = self._index.points
        return np.ldexp(points[self._point_of], self.exponent)

    def _conquer_scaled(self, queries: FloatArray, n_threads: int) -> Conquered:
        index = self._index
        if self.backend is None or not isinstance(index, CostedBlocks):
            return index.conquer(queries, n_threads)
        if self._placed is None:
            self._placed = self.backend.place(index.points)
        # In the order of the index, and back.
        plain = index._replace(order=np.arange(len(index.order)))
        found = self.backend.conquer(
            self._placed,
            index.costs,
            index.rank,
            queries,
            lambda unsure: plain.conquer(unsure, n_threads),
        )
        return found._replace(nodes=index.order[found.nodes])

    def __getstate__(self) -> dict[str, Any]:
        # A GPU does not travel: where the forest is loaded, the processor conquers.
        return {**self.__dict__, "backend": None, "_placed": None}

    def costs_by_class(self, X: FloatArray, n_threads: int = 1) -> tuple[FloatArray, IntArray]:
        """Find the smallest path cost that each class offers to each new sample, as `conquer`."""
        if self._by_class is None:
            n_classes = int(self._codes.max()) + 1
            self._by_class = [self._index_of_class(c, n_threads) for c in range(n_classes)]
        queries, exponents, far = self._scaled(X, n_threads)
        columns = [index.conquer(queries, n_threads).costs for index in self._by_class]
        costs = np.stack(columns, axis=1)
        costs[far] = _squared_norms(queries[far])[:, None]
        return costs, exponents[:, None]

    def _scaled(self, X: FloatArray, n_threads: int) -> tuple[FloatArray, IntArray, BoolArray]:
        """Scale queries as the points are, but each one that is too far for that by its own size."""
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
        members = np.unique(self._point_of[self._codes == code])
        index = self._index
        at = np.empty_like(index.order)
        at[index.order] = np.arange(len(at))
        at = at[members]
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
            space = build(points, n_threads) if space is None else space
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
    """Sum squares, feature after feature as everywhere."""
    total = np.zeros(len(queries))
    for column in queries.T:
        total += column * column
    return total


def _conquering_samples(distinct: DistinctPoints, codes: IntArray) -> IntArray:
    """Return the sample that conquers for each point: of the lowest class, the first."""
    if len(distinct.first) == len(codes):
        return distinct.first
    order = np.lexsort((np.arange(len(codes)), codes, distinct.point_of))
    points = distinct.point_of[order]
    leading = np.ones(len(order), dtype=np.bool_)
    leading[1:] = points[1:] != points[:-1]
    return order[leading]


class CostedTree(NamedTuple):
    """A space tree whose points have costs."""

    space: SpaceTree
    costs: FloatArray  # squared, in the order of space.points
    rank: IntArray  # breaks ties of cost and distance: lower conquers
    lowest: FloatArray  # the smallest squared cost in each node

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


Index = CostedTree | CostedBlocks


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
