"""Nearest neighbours, in the space tree for sixteen queries at a time, or by a scan of distances.

Both searches of the tree, for neighbours and for outsiders (points of other components), climb from the block
of the queries to the root and descend into each sibling on the way, nearer child first; queries that are not
points of the tree start at the root. A node is entered for those of the sixteen queries whose bound reaches its
box. Among equally near points, the one with the lower index comes first.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.distances import refuse_weight
from popf.engine.mst.boruvka import offer, search_and_mark
from popf.engine.points import distinct_points
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import (
    LANES,
    lane_box_hits,
    lane_distances,
    lanes_reaching,
    lanes_unlike,
    lowest_bit,
)
from popf.engine.runtime.threads import Team, chunk_size, map_chunks
from popf.engine.space_tree import (
    SpaceTree,
    build_space_tree,
    climb,
    lowest_in_nodes,
    push_children,
)
from popf.engine.structures import (
    ARC,
    ArcArray,
    BlockOfDistances,
    FloatArray,
    NeighbourLists,
    OutgoingArcSearch,
    ceil_div,
)

# Blocks of queries per call: few enough for Ctrl-C, enough to make the call overhead small.
CHUNK_BLOCKS = 512


class Nearest(NamedTuple):
    """The nearest points of each query, one row per query: indices, and weights (squared if Euclidean)."""

    indices: NDArray[np.int32]
    weights: FloatArray


def neighbours_to_list(n_features: int) -> int:
    """Return how many neighbours to list: longer lists cost more but save searches. In 2-D, two were best."""
    return min(8, max(2, n_features // 2))


def nearest_neighbours(tree: SpaceTree, n_neighbours: int, n_threads: int = 1) -> NeighbourLists:
    """List up to `n_neighbours` nearest neighbours of every point of the tree, by position in the tree."""
    return _search(tree, tree, min(n_neighbours, len(tree.points) - 1), n_threads)


def nearest_in_space(
    tree: SpaceTree, queries: FloatArray | None, k: int, n_threads: int
) -> Nearest:
    """Search a space tree for the k nearest points, by squared distance.

    Without `queries`, search for the neighbours of the points themselves, excluding each point from its own
    neighbours; k must be less than the number of points.
    """
    query_tree = tree if queries is None else build_space_tree(queries, n_threads)
    lists = _search(tree, query_tree, k, n_threads)
    nearest = Nearest(np.empty_like(lists.positions), np.empty_like(lists.squared))
    nearest.indices[query_tree.order] = tree.order.astype(np.int32).take(lists.positions)
    nearest.weights[query_tree.order] = lists.squared
    return nearest


def _search(tree: SpaceTree, query_tree: SpaceTree, k: int, n_threads: int) -> NeighbourLists:
    lists, n_blocks = _empty_lists(len(query_tree.points), k), len(query_tree.blocks)
    map_chunks(
        lambda start, stop: _find_neighbours(
            tree, query_tree, query_tree is tree, start, stop, lists
        ),
        n_blocks,
        chunk_size(n_blocks, CHUNK_BLOCKS, n_threads),
        n_threads,
    )
    return lists


def _empty_lists(n_queries: int, k: int) -> NeighbourLists:
    positions = np.empty((n_queries, k), dtype=np.int32)
    return NeighbourLists(positions, np.empty((n_queries, k)), np.empty(n_queries))


def work_of_search(samples: FloatArray, max_searches: int) -> float:
    """Return the average number of vector operations in a search for the neighbours of a block.

    At most an eighth of the blocks are searched, because searching all of them would be the whole work.
    """
    tree = build_space_tree(distinct_points(samples).points)
    k = min(neighbours_to_list(samples.shape[1]), len(tree.points) - 1)
    if k == 0:
        return 1.0
    lists, n_blocks = _empty_lists(len(tree.points), k), len(tree.blocks)
    n_searches = min(max_searches, ceil_div(n_blocks, 8))
    blocks = ((2 * np.arange(n_searches) + 1) * n_blocks // (2 * n_searches)).tolist()
    return float(np.mean([_find_neighbours(tree, tree, True, b, b + 1, lists) for b in blocks]))


@jit
def _find_neighbours(tree, query_tree, own, start, stop, lists):
    """Find the nearest points of the queries in some blocks; return the number of vector operations.

    If the queries are the tree's `own` points, no point is its own neighbour.
    """
    # Local variables, because each access to an array in the tuple updates an atomic reference count.
    points, blocks, lows, highs = tree.points, tree.blocks, tree.lows, tree.highs
    nodes, leaf, names = tree.nodes, tree.leaf, tree.order
    queries, query_blocks = query_tree.points, query_tree.blocks
    positions, squared, horizon = lists.positions, lists.squared, lists.horizon
    work = 0
    k = squared.shape[1]
    n = len(points)
    stack = np.empty(128, dtype=np.int64)
    bounds = np.empty(LANES)
    out = np.empty(LANES)
    for block in range(start, stop):
        base = block * LANES
        width = min(LANES, len(queries) - base)
        for lane in range(LANES):
            bounds[lane] = np.inf if lane < width else -1.0
        for row in range(base, base + width):
            horizon[row] = np.inf
            for slot in range(k):
                squared[row, slot], positions[row, slot] = np.inf, -1
        home = np.int64(leaf[block]) if own else np.int64(0)
        node = home
        stack[0] = node
        top = 1
        # From the leaf up to the root; at each step the sibling subtree is searched.
        # Invariant: points compared or skipped, but not listed, are no nearer than the last one listed.
        while True:
            while top > 0:
                top -= 1
                here = stack[top]
                # The computed distance to a box never exceeds that to a point in it (see `simd`).
                mask = lane_box_hits(query_blocks, block, lows, highs, here, bounds)
                work += 1
                if mask == 0:
                    continue
                if nodes[here]["right"] >= 0:
                    # The nearer child is searched first, which lowers the bounds for the other.
                    top = push_children(nodes, here, queries, base, stack, top)
                    continue
                other = nodes[here]["block"]
                first = other * LANES
                while mask != 0:
                    lane = lowest_bit(mask)
                    mask &= mask - 1
                    row = base + lane
                    bound = bounds[lane]
                    work += 1
                    hits = lane_distances(blocks, other, queries, row, bound, out)
                    if own and other == block:
                        hits &= ~(1 << lane)  # the point itself
                    while hits != 0:
                        j = lowest_bit(hits)
                        hits &= hits - 1
                        value, v = out[j], first + j
                        if value > bound:
                            continue
                        # Either the last one listed is dropped, or this one ties with it and is not listed.
                        horizon[row] = min(horizon[row], bound)
                        if value == bound:
                            last = positions[row, k - 1]
                            if v >= n or (last >= 0 and names[v] > names[last]):
                                continue
                        slot = k - 1
                        while slot > 0 and squared[row, slot - 1] >= value:
                            before = positions[row, slot - 1]
                            tied = squared[row, slot - 1] == value
                            if tied and before >= 0 and names[before] < names[v]:
                                break
                            squared[row, slot] = squared[row, slot - 1]
                            positions[row, slot] = before
                            slot -= 1
                        squared[row, slot], positions[row, slot] = value, v
                        bound = squared[row, k - 1]
                    bounds[lane] = bound
            node, sibling, gap = climb(nodes, lows, highs, home, node)
            if node < 0:
                break
            if lanes_reaching(bounds, gap) != 0:
                stack[0] = sibling
                top = 1
        if k < n - 1:
            # Points not seen are farther than the last one listed; points dropped may tie with it.
            for row in range(base, base + width):
                if horizon[row] > squared[row, k - 1]:
                    horizon[row] = np.nextafter(squared[row, k - 1], np.inf)
    return work


def nearest_outsiders(tree: SpaceTree, n_threads: int, search: OutgoingArcSearch) -> None:
    """Find the shortest arc out of every component that is not `certain`."""
    of, n_blocks = search.components.of.astype(np.float64), len(tree.blocks)
    # The component of all points of a node, or -1 if they are in several.
    lowest, highest = lowest_in_nodes(tree.nodes, of), -lowest_in_nodes(tree.nodes, -of)
    only = np.where(lowest == highest, lowest, -1.0).astype(np.int32)

    def find(marking: bool, team: Team) -> ArcArray:
        shortest = team.map_chunks(
            lambda start, stop: _outsiders(tree, start, stop, only, search, marking),
            n_blocks,
            chunk_size(n_blocks, CHUNK_BLOCKS, n_threads),
        )
        return np.concatenate(shortest)

    search_and_mark(search, find, n_threads)


@jit
def _outsiders(tree, start, stop, only, search, marking):
    """Search for the nearest outsiders of the points in some blocks.

    Returns the shortest arc from each point, if its component knows no shorter one. With `marking`, bounds stay
    unchanged, and the ends of arcs between classes that are exactly as long as the bound are marked.
    """
    points, blocks, lows, highs = tree.points, tree.blocks, tree.lows, tree.highs
    nodes, leaf, components = tree.nodes, tree.leaf, search.components
    of, index, classes = components.of, components.indices, components.classes
    best, certain, lengths, horizon = search.best, search.certain, search.bounds, search.horizon
    tied = search.tied
    n = len(points)
    stack = np.empty(128, dtype=np.int64)
    bounds = np.empty(LANES)
    out = np.empty(LANES)
    arcs = np.empty(LANES, dtype=ARC)
    shortest = np.empty((stop - start) * LANES, dtype=ARC)
    n_arcs = 0
    for block in range(start, stop):
        base = block * LANES
        # Set the bounds of the points to search for, and their common component: -2 if there are no such
        # points, -1 if they are in several components. Other lanes get a negative bound, which no box or
        # point meets.
        common = np.int32(-2)
        for lane in range(LANES):
            bounds[lane] = -1.0
            arcs[lane]["squared"], arcs[lane]["inside"] = np.inf, -1
            u = base + lane
            if u >= n or certain[of[u]] or (marking and best[of[u]]["tied"] == 0):
                continue
            # All outsiders nearer than the horizon are known, so shorter bounds need no search.
            if horizon[u] <= lengths[of[u]]:
                bounds[lane] = lengths[of[u]]
                common = of[u] if common == -2 or common == of[u] else np.int32(-1)
        if common == -2:
            continue
        home = leaf[block]
        node = home
        stack[0] = node
        top = 1
        # From the leaf up to the root; at each step the sibling subtree is searched.
        # Invariant: no outsider compared or skipped so far is nearer than the bounds.
        while True:
            while top > 0:
                top -= 1
                here = stack[top]
                # A node whose points are all in this component holds no outsiders.
                if only[here] >= 0 and only[here] == common:
                    continue
                # The computed distance to a box never exceeds that to a point in it (see `simd`).
                mask = lane_box_hits(blocks, block, lows, highs, here, bounds)
                if mask == 0:
                    continue
                if nodes[here]["right"] >= 0:
                    # The nearer child is searched first, which lowers the bounds for the other.
                    top = push_children(nodes, here, points, base, stack, top)
                    continue
                other = nodes[here]["block"]
                first = other * LANES
                while mask != 0:
                    lane = lowest_bit(mask)
                    mask &= mask - 1
                    row = base + lane
                    component = of[row]
                    if only[here] == component:
                        continue
                    # Other threads may have found a shorter arc out of the component in the meantime.
                    bound = min(bounds[lane], lengths[component])
                    hits = lane_distances(blocks, other, points, row, bound, out)
                    hits &= lanes_unlike(of, first, component)
                    while hits != 0:
                        j = lowest_bit(hits)
                        hits &= hits - 1
                        v = first + j
                        if marking:
                            # Arcs as short as the shortest are in some minimum spanning tree (cut property).
                            if out[j] == bound and classes[row] != classes[v]:
                                tied[row] = True
                                tied[v] = True
                        elif out[j] < bound:
                            bound = lengths[component] = out[j]
                            arc = arcs[lane]
                            arc["squared"], arc["tied"] = bound, 0
                            arc["inside"], arc["outside"] = row, v
                        elif out[j] == bound and v < n:
                            # A tie: keep the first in the order of arcs, and record that there is a tie.
                            offer(arcs, lane, bound, row, v, index)
                    bounds[lane] = bound
            node, sibling, gap = climb(nodes, lows, highs, home, node)
            if node < 0:
                break
            if lanes_reaching(bounds, gap) != 0:
                stack[0] = sibling
                top = 1
        for lane in range(LANES):
            if bounds[lane] >= 0.0:
                # No outsider is nearer than the bound. Outsiders exactly at the bound are not listed, so the
                # horizon must not exceed it.
                horizon[base + lane] = max(horizon[base + lane], bounds[lane])
                arc = arcs[lane]
                # Another point of the component may have found a shorter arc since.
                if arc["inside"] >= 0 and arc["squared"] <= lengths[of[base + lane]]:
                    shortest[n_arcs] = arc
                    n_arcs += 1
    return shortest[:n_arcs].copy()


def nearest_by_scan(
    block: BlockOfDistances, n_queries: int, k: int, own: bool, rows_at_once: int, n_threads: int
) -> Nearest:
    """Find the nearest points by a scan of all distances; with `own`, query i is point i, and is excluded."""
    nearest = Nearest(np.empty((n_queries, k), dtype=np.int32), np.empty((n_queries, k)))

    def scan(start: int, stop: int) -> None:
        distances = block(start, stop)
        wrong = _scan(distances, start, own, nearest)
        if wrong >= 0:
            row, point = divmod(wrong, distances.shape[1])
            refuse_weight(distances[row, point], f"samples {start + row} and {point}")

    map_chunks(scan, n_queries, rows_at_once, n_threads)
    return nearest


@jit
def _scan(distances, start, own, nearest):
    """List the nearest points of some queries; return the index of a negative or non-finite distance, or -1."""
    indices, weights = nearest.indices, nearest.weights
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
            if value >= weights[row, last]:  # ties go to the lower index
                continue
            slot = last
            while slot > 0 and weights[row, slot - 1] > value:
                weights[row, slot] = weights[row, slot - 1]
                indices[row, slot] = indices[row, slot - 1]
                slot -= 1
            weights[row, slot], indices[row, slot] = value, index
    return -1
