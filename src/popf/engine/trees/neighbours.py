"""Neighbours in the space tree, sixteen queries at a time.

Both searches climb from the block of the queries to the root and descend into each sibling on the way,
nearer child first. A node is entered for those of the sixteen queries whose bound its box meets.
"""

import numpy as np

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
from popf.engine.space_tree import SpaceTree, lowest_in_nodes
from popf.engine.structures import ARC, ArcArray, NeighbourLists, OutgoingArcSearch
from popf.engine.trees.boruvka import offer, search_twice

# Blocks of queries in one call: short enough for Ctrl-C, long enough to forget the call.
CHUNK_BLOCKS = 512


def nearest_neighbours(tree: SpaceTree, n_neighbours: int, n_threads: int = 1) -> NeighbourLists:
    """List `n_neighbours` of every point of the tree, fewer where there are fewer; by position there."""
    n_points = len(tree.points)
    k = min(n_neighbours, n_points - 1)
    squared = np.empty((n_points, k))
    positions = np.empty((n_points, k), dtype=np.int32)
    horizon = np.empty(n_points)

    map_chunks(
        lambda start, stop: _nearest(tree, start, stop, squared, positions, horizon),
        len(tree.blocks),
        chunk_size(len(tree.blocks), CHUNK_BLOCKS, n_threads),
        n_threads,
    )
    return NeighbourLists(positions, squared, horizon)


def neighbours_to_list(n_features: int) -> int:
    """How many neighbours to list: more cost more once, and spare searches.

    In the plane two were best, with eight features four.
    """
    return min(8, max(2, n_features // 2))


def work_of_search(tree: SpaceTree, n_neighbours: int, n_searches: int) -> float:
    """Count the operations on sixteen points that a search for the neighbours of a block takes."""
    n_points = len(tree.points)
    squared = np.empty((n_points, n_neighbours))
    positions = np.empty((n_points, n_neighbours), dtype=np.int32)
    horizon = np.empty(n_points)
    blocks = np.unique(np.linspace(0, len(tree.blocks) - 1, n_searches).astype(np.int64))
    counts = [
        _nearest(tree, block, block + 1, squared, positions, horizon) for block in blocks.tolist()
    ]
    return float(np.mean(counts))


@jit
def _nearest(tree, start, stop, squared, positions, horizon):
    """Find the nearest neighbours of the points of some blocks; counts operations on sixteen points."""
    # Locals, because reading an array out of the tuple costs an atomic reference count each time.
    points, blocks, lows, highs = tree.points, tree.blocks, tree.lows, tree.highs
    nodes, leaf = tree.nodes, tree.leaf
    work = 0
    k = squared.shape[1]
    n = len(points)
    stack = np.empty(128, dtype=np.int64)
    bounds = np.empty(LANES)
    out = np.empty(LANES)
    for block in range(start, stop):
        base = block * LANES
        width = min(LANES, n - base)
        for lane in range(LANES):
            bounds[lane] = np.inf if lane < width else -1.0
        for row in range(base, base + width):
            horizon[row] = np.inf
            for slot in range(k):
                squared[row, slot], positions[row, slot] = np.inf, -1
        home = leaf[block]
        node = home
        stack[0] = node
        top = 1
        # From the leaf up to the root; at each node the subtree beside the path is searched.
        # Invariant: what was seen or passed by and is not listed is no nearer than the last one listed.
        while True:
            while top > 0:
                top -= 1
                here = stack[top]
                # The computed distance to a box is at most that to any point in it (see `simd`).
                mask = lane_box_hits(blocks, block, lows, highs, here, bounds)
                work += 1
                if mask == 0:
                    continue
                right = nodes[here]["right"]
                if right >= 0:
                    # The nearer child is searched first: it lowers the bounds for the other.
                    side = points[base, nodes[here]["feature"]] < nodes[here]["value"]
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
                    bound = bounds[lane]
                    work += 1
                    hits = lane_distances(blocks, other, points, row, bound, out)
                    if other == block:
                        hits &= ~(1 << lane)  # the point itself
                    while hits != 0:
                        j = lowest_bit(hits)
                        hits &= hits - 1
                        value = out[j]
                        if value < bound:
                            horizon[row] = min(horizon[row], bound)  # falls out of the list
                            slot = k - 1
                            while slot > 0 and squared[row, slot - 1] > value:
                                squared[row, slot] = squared[row, slot - 1]
                                positions[row, slot] = positions[row, slot - 1]
                                slot -= 1
                            squared[row, slot] = value
                            positions[row, slot] = first + j
                            bound = squared[row, k - 1]
                        elif value == bound:
                            # As near as the last one listed, and not listed itself.
                            horizon[row] = min(horizon[row], value)
                    bounds[lane] = bound
            parent = nodes[node]["parent"]
            if parent < 0:
                break
            sibling = nodes[parent]["right"] if node == parent + 1 else parent + 1
            node = parent
            # Most siblings are too far along the one feature that parted them: look at that first.
            f = nodes[parent]["feature"]
            gap = max(lows[sibling, f] - highs[home, f], lows[home, f] - highs[sibling, f])
            if gap <= 0.0 or lanes_reaching(bounds, gap * gap) != 0:
                stack[0] = sibling
                top = 1
        if k < n - 1:
            # What was not seen is farther than the last one listed; what was dropped may tie with it.
            for row in range(base, base + width):
                if horizon[row] > squared[row, k - 1]:
                    horizon[row] = np.nextafter(squared[row, k - 1], np.inf)
    return work


def nearest_outsiders(tree: SpaceTree, n_threads: int, search: OutgoingArcSearch) -> None:
    """Find the shortest arc out of every component that is not certain of it."""
    of, n_blocks = search.components.of.astype(np.float64), len(tree.blocks)
    # The component that holds all points of a node, or -1.
    lowest, highest = lowest_in_nodes(tree.nodes, of), -lowest_in_nodes(tree.nodes, -of)
    only = np.where(lowest == highest, lowest, -1.0).astype(np.int32)

    def find(marking: bool, team: Team) -> ArcArray:
        found = team.map_chunks(
            lambda start, stop: _outsiders(tree, start, stop, only, search, marking),
            n_blocks,
            chunk_size(n_blocks, CHUNK_BLOCKS, n_threads),
        )
        return np.concatenate(found)

    search_twice(search, find, n_threads)


@jit
def _outsiders(tree, start, stop, only, search, marking):
    """Search for outsiders of the wanted points in some blocks.

    Returns the shortest arc from each point, if it is no longer than any that was known. With `marking`,
    bounds stay, and the ends of arcs exactly as long as the bound that join two classes are marked.
    """
    points, blocks, lows, highs = tree.points, tree.blocks, tree.lows, tree.highs
    nodes, leaf, of = tree.nodes, tree.leaf, search.components.of
    index, classes, prototypes = (
        search.components.indices,
        search.components.classes,
        search.prototypes,
    )
    best, certain, lengths, horizon = search.best, search.certain, search.bounds, search.horizon
    n = len(points)
    stack = np.empty(128, dtype=np.int64)
    bounds = np.empty(LANES)
    out = np.empty(LANES)
    arcs = np.empty(LANES, dtype=ARC)
    found = np.empty((stop - start) * LANES, dtype=ARC)
    n_found = 0
    for block in range(start, stop):
        base = block * LANES
        # Which of the sixteen points are wanted, how far each has to look, and whether all are in one
        # component: -2 while there is none, -1 if they are in several. A lane that wants nothing has a
        # negative bound, which no box and no point meets.
        common = np.int32(-2)
        for lane in range(LANES):
            bounds[lane] = -1.0
            arcs[lane]["squared"], arcs[lane]["inside"] = np.inf, -1
            u = base + lane
            if u >= n or certain[of[u]] or (marking and best[of[u]]["tied"] == 0):
                continue
            # All outsiders nearer than the horizon are known: nothing to find below it.
            if horizon[u] <= lengths[of[u]]:
                bounds[lane] = lengths[of[u]]
                common = of[u] if common == -2 or common == of[u] else np.int32(-1)
        if common == -2:
            continue
        home = leaf[block]
        node = home
        stack[0] = node
        top = 1
        # From the leaf up to the root; at each node the subtree beside the path is searched.
        # Invariant: what was seen or passed by holds no outsider below the bounds.
        while True:
            while top > 0:
                top -= 1
                here = stack[top]
                # Nobody in a node of one component is an outsider of that component.
                if only[here] >= 0 and only[here] == common:
                    continue
                # The computed distance to a box is at most that to any point in it (see `simd`).
                mask = lane_box_hits(blocks, block, lows, highs, here, bounds)
                if mask == 0:
                    continue
                right = nodes[here]["right"]
                if right >= 0:
                    # The nearer child is searched first: it lowers the bounds for the other.
                    side = points[base, nodes[here]["feature"]] < nodes[here]["value"]
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
                    component = of[row]
                    if only[here] == component:
                        continue
                    # Other threads may have found a shorter arc out of the component meanwhile.
                    bound = min(bounds[lane], lengths[component])
                    hits = lane_distances(blocks, other, points, row, bound, out)
                    hits &= lanes_unlike(of, first, component)
                    while hits != 0:
                        j = lowest_bit(hits)
                        hits &= hits - 1
                        v = first + j
                        if marking:
                            # An arc as short as the shortest lies in some minimum tree (cut property).
                            if out[j] == bound and classes[row] != classes[v]:
                                prototypes[row] = True
                                prototypes[v] = True
                        elif out[j] < bound:
                            bound = lengths[component] = out[j]
                            arc = arcs[lane]
                            arc["squared"], arc["tied"] = bound, 0
                            arc["inside"], arc["outside"] = row, v
                        elif out[j] == bound and v < n:
                            # A tie: the first in the order of arcs is kept, and that there was one.
                            offer(arcs, lane, bound, row, v, index)
                    bounds[lane] = bound
            parent = nodes[node]["parent"]
            if parent < 0:
                break
            sibling = nodes[parent]["right"] if node == parent + 1 else parent + 1
            node = parent
            # Most siblings are too far along the one feature that parted them: look at that first.
            f = nodes[parent]["feature"]
            gap = max(lows[sibling, f] - highs[home, f], lows[home, f] - highs[sibling, f])
            if gap <= 0.0 or lanes_reaching(bounds, gap * gap) != 0:
                stack[0] = sibling
                top = 1
        for lane in range(LANES):
            if bounds[lane] >= 0.0:
                # Nothing outside is nearer than the bound. Arcs as long as the bound are not listed
                # anywhere, so the horizon stops short of them.
                horizon[base + lane] = max(horizon[base + lane], bounds[lane])
                arc = arcs[lane]
                # Another point of the component may have found a shorter one since.
                if arc["inside"] >= 0 and arc["squared"] <= lengths[of[base + lane]]:
                    found[n_found] = arc
                    n_found += 1
    return found[:n_found].copy()
