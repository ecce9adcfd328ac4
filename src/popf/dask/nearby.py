"""Blocks of samples, and which of them are near enough to those of another block to be joined to them.

Some spanning tree of all samples is known, not necessarily the shortest. Let r(u) be the longest edge on its
path from u to some head. An arc (u, v) of the shortest tree is no longer than the longest edge on any path
between its ends, so no longer than max(r(u), r(v)). Hence only those samples matter that have a box, or a
sample, of the other block within that distance; equality counts, so that no tie is lost.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.dask.kruskal import Links, largest_on_paths
from popf.engine import space_tree as kdtree
from popf.engine.runtime.blas import one_blas_thread
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.structures import BoolArray, FloatArray, IntArray

# From how many samples a short arc to another block is looked for.
STARTS = 8


class Block(NamedTuple):
    """Some of the samples.

    Attributes
    ----------
    samples : ndarray of shape (n,)
        Which samples they are, ascending.
    points : ndarray of shape (n, n_features)
        Where they lie, scaled as all samples are.
    codes : ndarray of shape (n,)
        Their classes.
    weights : ndarray of shape (n,)
        How many samples each stands for.
    """

    samples: IntArray
    points: FloatArray
    codes: IntArray
    weights: FloatArray

    def take(self, which: Any) -> "Block":
        """Choose some of the samples."""
        return Block(
            self.samples[which], self.points[which], self.codes[which], self.weights[which]
        )

    def load(self) -> "Block":
        """Give the block itself; blocks on disk are read here."""
        return self


def concatenate(parts: list[Block]) -> Block:
    """Put blocks together, samples in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.nearby import Block, concatenate
    >>> def block(*index):
    ...     return Block(np.array(index), np.ones((len(index), 1)), np.array(index) % 2, np.ones(len(index)))
    >>> concatenate([block(0, 3), block(1, 2)]).samples
    array([0, 1, 2, 3])
    """
    if len(parts) == 1:
        return parts[0]
    index = np.concatenate([part.samples for part in parts])
    order = np.argsort(index, kind="stable")
    rest = (np.concatenate(arrays)[order] for arrays in list(zip(*parts, strict=True))[1:])
    return Block(index[order], *rest)


def box_distances(points: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Squared distances from points to a box; no point in it is nearer, rounding included.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.nearby import box_distances
    >>> box_distances(np.array([[0.5, 3.0], [2.0, 0.0]]), np.zeros(2), np.ones(2))
    array([4., 1.])
    """
    squared = np.empty(len(points))
    _box_distances(points, low, high, squared)
    return squared


@jit
def _box_distances(points, low, high, squared):
    for i in range(len(points)):
        total = 0.0
        for f in range(points.shape[1]):
            x = points[i, f]
            gap = max(max(low[f] - x, x - high[f]), 0.0)
            total += gap * gap
        squared[i] = total


def boxes_reached(block: Block, links: Links, lows: FloatArray, highs: FloatArray) -> BoolArray:
    """Say which boxes lie within r(u) of some sample u of a block.

    Parameters
    ----------
    block : Block
    links : Links
        Some spanning tree of all samples; the head is its top.
    lows, highs : ndarray of shape (n_boxes, n_features)

    Returns
    -------
    ndarray of shape (n_boxes,)
    """
    top = int(np.argmax(links.weight))
    bounds = largest_on_paths(links, block.samples, top)
    reached = np.empty(len(lows), dtype=np.bool_)
    _reach_boxes(block.points, bounds, lows, highs, reached)
    return reached


@jit
def _reach_boxes(points, bounds, lows, highs, reached):
    for box in range(len(lows)):
        reached[box] = False
        for i in range(len(points)):
            total = 0.0
            for f in range(points.shape[1]):
                x = points[i, f]
                gap = max(max(lows[box, f] - x, x - highs[box, f]), 0.0)
                total += gap * gap
                if total > bounds[i]:
                    break
            if total <= bounds[i]:
                reached[box] = True
                break


def near_each_other(first: Block, second: Block, links: Links, head: int) -> tuple[Block, Block]:
    """Leave of two blocks the samples that an arc of the shortest tree may join.

    Parameters
    ----------
    first, second : Block
    links : Links
        Some spanning tree of all samples.
    head : int
        The sample that r is measured to.

    Returns
    -------
    first, second : Block
        The samples u with some v in the other block for which d(u, v) <= max(r(u), r(v)) may hold.
    """
    if len(first.samples) == 0 or len(second.samples) == 0:
        return first, second
    both = (first, second)
    bounds = [largest_on_paths(links, block.samples, head) for block in both]
    boxes = [(block.points.min(axis=0), block.points.max(axis=0)) for block in both]
    # Samples that reach the other block themselves, and those that such a one of the other reaches.
    reaching = [
        box_distances(block.points, *box) <= bound
        for block, box, bound in zip(both, boxes[::-1], bounds, strict=True)
    ]
    kept = []
    for i, block in enumerate(both):
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
    """Say which points lie within the squared radius of some center."""
    inside = np.zeros(len(points), dtype=np.bool_)
    if len(points):
        space = kdtree.build(points)
        marks = np.zeros(len(points), dtype=np.bool_)
        _mark_within(space, centers, radii, marks)
        inside[space.order] = marks
    return inside


@jit
def _mark_within(space, centers, radii, marks):
    points, nodes, lows, highs = space.points, space.nodes, space.lows, space.highs
    n, n_features = points.shape
    stack = np.empty(128, dtype=np.int64)
    done = np.zeros(len(nodes), dtype=np.bool_)  # all of it is marked
    for i in range(len(centers)):
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if done[node]:
                continue
            gap = 0.0
            for f in range(n_features):
                x = centers[i, f]
                away = max(max(lows[node, f] - x, x - highs[node, f]), 0.0)
                gap += away * away
            if gap > radii[i]:
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
            whole = True
            for v in range(start, min(start + LANES, n)):
                if marks[v]:
                    continue
                squared = 0.0
                for f in range(n_features):
                    difference = centers[i, f] - points[v, f]
                    squared += difference * difference
                marks[v] = squared <= radii[i]
                whole &= marks[v]
            done[node] = whole


def bridge(first: Block, second: Block) -> tuple[int, int, float, bool]:
    """Find a short arc between two blocks, not necessarily the shortest: ends, weight, whether it crosses.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.nearby import Block, bridge
    >>> def block(first, *places):
    ...     n = len(places)
    ...     return Block(first + np.arange(n), np.array(places)[:, None], np.zeros(n, int), np.ones(n))
    >>> bridge(block(0, 0.0, 1.0), block(2, 5.0, 3.0))
    (1, 3, 4.0, False)
    """
    low, high = second.points.min(axis=0), second.points.max(axis=0)
    outside = np.maximum(np.maximum(low - first.points, first.points - high), 0.0)
    away = np.einsum("ij,ij->i", outside, outside)
    # Of the samples nearest to the box, often within it, some; each looks for the nearest, and back.
    near = np.flatnonzero(away <= np.partition(away, len(away) // 16)[len(away) // 16])
    starts = near[:: -(-len(near) // STARTS)]
    both = (first.points, second.points)
    norms = [np.einsum("ij,ij->i", points, points) for points in both]
    best = (np.inf, 0, 0)
    with one_blas_thread():
        for u in starts.tolist():
            for _ in range(2):
                v = int(np.argmin(norms[1] - 2.0 * (both[1] @ both[0][u])))
                u = int(np.argmin(norms[0] - 2.0 * (both[0] @ both[1][v])))
                squared = box_distances(both[0][u : u + 1], both[1][v], both[1][v])
                best = min(best, (float(squared[0]), u, v))
    weight, u, v = best
    ends = sorted((int(first.samples[u]), int(second.samples[v])))
    return ends[0], ends[1], weight, bool(first.codes[u] != second.codes[v])
