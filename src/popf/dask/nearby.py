"""Which samples of two blocks are near enough to each other to be joined.

Some spanning tree of all samples is known, not necessarily the shortest. Let r(u) be the longest edge on its
path from u to a fixed sample, the head. An arc (u, v) of the shortest tree is no longer than the longest edge
on any path between its ends, so no longer than max(r(u), r(v)). Hence only those samples matter that have a
box, or a sample, of the other block within that distance; equality counts, so that no tie is lost.
"""

import numpy as np

from popf.dask.blocks import Block
from popf.dask.kruskal import Arcs, Links, longest_edges_to
from popf.engine import space_tree
from popf.engine.k_nearest import nearest_in_space
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.structures import BoolArray, FloatArray

# How many samples look for a short arc to another block.
STARTS = 8


@helper
def box_distance(points, i, lows, highs, box):
    """Squared distance from a point to a box; no point in it is nearer, rounding included."""
    total = 0.0
    for f in range(points.shape[1]):
        x = points[i, f]
        gap = max(max(lows[box, f] - x, x - highs[box, f]), 0.0)
        total += gap * gap
    return total


@jit
def box_distances(points, low, high):
    """Squared distances from points to a box."""
    lows, highs, squared = low.reshape(1, -1), high.reshape(1, -1), np.empty(len(points))
    for i in range(len(points)):
        squared[i] = box_distance(points, i, lows, highs, 0)
    return squared


def boxes_reached(block: Block, links: Links, lows: FloatArray, highs: FloatArray) -> BoolArray:
    """Find which boxes lie within r(u) of some sample u of a block; the head is the tree's top."""
    bounds = longest_edges_to(int(np.argmax(links.weight)), block.samples, links)
    boxes = zip(lows, highs, strict=True)
    return np.array([(box_distances(block.points, *box) <= bounds).any() for box in boxes])


def near_each_other(first: Block, second: Block, links: Links, head: int) -> tuple[Block, Block]:
    """Keep the samples u of two blocks for which d(u, v) <= max(r(u), r(v)) is possible for some v."""
    if len(first.samples) == 0 or len(second.samples) == 0:
        return first, second
    both = (first, second)
    bounds = [longest_edges_to(head, block.samples, links) for block in both]
    boxes = [(block.points.min(axis=0), block.points.max(axis=0)) for block in both]
    reaching = [
        box_distances(block.points, *box) <= bound
        for block, box, bound in zip(both, boxes[::-1], bounds, strict=True)
    ]
    kept = []
    for i, block in enumerate(both):
        # Samples that reach the other block, and those that a sample of the other block reaches.
        near, other = reaching[i].copy(), both[1 - i].points[reaching[1 - i]]
        far = np.flatnonzero(~near)
        if len(far) and len(other):
            radii = bounds[1 - i][reaching[1 - i]]
            around = box_distances(block.points[far], other.min(axis=0), other.max(axis=0))
            far = far[around <= radii.max()]
            near[far[_within(block.points[far], other, radii)]] = True
        kept.append(block if near.all() else block.take(near))
    return kept[0], kept[1]


def _within(points: FloatArray, centers: FloatArray, radii: FloatArray) -> BoolArray:
    """Find which points lie within the squared radius of some center."""
    inside = np.zeros(len(points), dtype=np.bool_)
    if len(points):
        space = space_tree.build(points)
        marks = np.zeros(len(points), dtype=np.bool_)
        _mark_within(space, centers, radii, marks)
        inside[space.order] = marks
    return inside


@jit
def _mark_within(space, centers, radii, marks):
    points, nodes, lows, highs = space.points, space.nodes, space.lows, space.highs
    n = points.shape[0]
    stack = np.empty(128, dtype=np.int64)
    done = np.zeros(len(nodes), dtype=np.bool_)  # all of the node's points are marked
    for i in range(len(centers)):
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if done[node] or box_distance(centers, i, lows, highs, node) > radii[i]:
                continue
            right = nodes[node]["right"]
            if right >= 0:
                if done[node + 1] and done[right]:
                    done[node] = True
                    continue
                stack[top] = right
                stack[top + 1] = node + 1
                top += 2
                continue
            start = np.int64(nodes[node]["block"]) * LANES
            done[node] = True
            for v in range(start, min(start + LANES, n)):
                if not marks[v]:
                    marks[v] = box_distance(centers, i, points, points, v) <= radii[i]
                    done[node] &= marks[v]


def bridge(first: Block, second: Block) -> Arcs:
    """Find a short arc between two blocks, not necessarily the shortest."""
    away = box_distances(first.points, second.points.min(axis=0), second.points.max(axis=0))
    # Some samples near the other's box find their nearest there, and these their nearest here.
    starts = np.argsort(away, kind="stable")[:STARTS]
    nearest = nearest_in_space(space_tree.build(second.points), first.points[starts], 1, 1)
    there = nearest.indices[:, 0]
    here = nearest_in_space(space_tree.build(first.points), second.points[there], 1, 1)
    best = int(np.argmin(here.weights[:, 0]))
    u, v = here.indices[best, 0], there[best]
    lower, higher = sorted((first.samples[u], second.samples[v]))
    cross = first.codes[u] != second.codes[v]
    return Arcs(*map(np.atleast_1d, (lower, higher, here.weights[best, 0], cross)))
