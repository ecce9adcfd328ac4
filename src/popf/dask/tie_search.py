"""Arcs as short as an edge of the whole tree: which of those that tied in two blocks still do."""

import numpy as np

from popf.dask.kruskal import Links, largest_between, largest_on_paths
from popf.dask.nearby import Block
from popf.dask.spanning import TreeSettings
from popf.engine import space_tree as kdtree
from popf.engine.points import collapse_duplicates
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.engine.training import point_classes


def confirm_ties(
    block: Block, reach: FloatArray, asked: BoolArray, links: Links, settings: TreeSettings
) -> IntArray:
    """Find which samples have an arc between classes that lies in some minimum spanning tree.

    Parameters
    ----------
    block : Block
        The samples of two blocks that had ties there.
    reach : ndarray of shape (n,)
        How long arcs that tie are at most.
    asked : ndarray of shape (n,)
        Of which samples this is not known yet.
    links : Links
        The minimum spanning tree of all samples.
    settings : TreeSettings

    Returns
    -------
    ndarray
        Samples that are prototypes.
    """
    found = np.zeros(len(block.samples), dtype=np.bool_)
    if settings.rows is not None:
        every = np.arange(len(block.samples))
        row = settings.rows(block.points, settings.n_threads)(every)
        for i in np.flatnonzero(asked):
            ends = row(int(i)) == largest_on_paths(links, block.samples, int(block.samples[i]))
            ends &= block.codes != block.codes[i]
            found |= ends
            found[i] |= ends.any()
        return block.samples[found]
    distinct = collapse_duplicates(block.points, 0)
    point_of, n_points = distinct.point_of, len(distinct.first)
    space = kdtree.build(distinct.points)
    far, open_ = np.full(n_points, -1.0), np.zeros(n_points, dtype=np.bool_)
    np.maximum.at(far, point_of, reach)
    open_[point_of[asked]] = True
    order = space.order
    classes = point_classes(distinct, block.codes)
    samples = block.samples[distinct.first]
    of_points = np.zeros(n_points, dtype=np.bool_)
    marks = np.zeros(n_points, dtype=np.bool_)
    _confirm(space, samples[order], classes[order], far[order], open_[order], links, marks)
    of_points[order] = marks
    found = of_points[point_of]
    return block.samples[found]


@jit
def _confirm(space, samples, classes, reach, asked, links, marks):
    """For every point asked for, look in the space tree for an arc as long as the tree's path."""
    points, nodes, lows, highs = space.points, space.nodes, space.lows, space.highs
    n, n_features = points.shape
    stack = np.empty(128, dtype=np.int64)
    for u in range(n):
        if not asked[u] or marks[u]:
            continue
        stack[0] = 0
        top = 1
        while top > 0 and not marks[u]:
            top -= 1
            node = stack[top]
            gap = 0.0
            for f in range(n_features):
                x = points[u, f]
                away = max(max(lows[node, f] - x, x - highs[node, f]), 0.0)
                gap += away * away
            if gap > reach[u]:
                continue
            right = nodes[node]["right"]
            if right >= 0:
                side = points[u, nodes[node]["feature"]] < nodes[node]["value"]
                stack[top] = right if side else node + 1
                stack[top + 1] = node + 1 if side else right
                top += 2
                continue
            start = np.int64(nodes[node]["block"]) * LANES
            for v in range(start, min(start + LANES, n)):
                if classes[v] == classes[u]:
                    continue
                squared = 0.0
                for f in range(n_features):
                    difference = points[u, f] - points[v, f]
                    squared += difference * difference
                if squared == largest_between(links, samples[u], samples[v]):
                    marks[u] = True
                    marks[v] = True
                    break
