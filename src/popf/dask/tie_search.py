"""Arcs as short as an edge of the whole tree: which of those that tied in two blocks still do."""

import numpy as np

from popf.dask.blocks import Block
from popf.dask.cluster import Settings
from popf.dask.kruskal import Links, longest_edge_between, longest_edges_to
from popf.dask.nearby import box_distance
from popf.engine import space_tree as kdtree
from popf.engine.points import collapse_duplicates
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.engine.training import point_classes


def confirm_ties(
    block: Block, reach: FloatArray, asked: BoolArray, links: Links, settings: Settings
) -> IntArray:
    """Find the samples with an arc between classes that lies in some minimum spanning tree.

    The block holds the samples of two blocks that had ties there, no longer than `reach`. Those `asked` for are
    not known to be prototypes yet. `links` is the minimum spanning tree of all samples.
    """
    if not settings.metric.euclidean:
        return _confirm_by_rows(block, asked, links, settings)
    distinct = collapse_duplicates(block.points, 0)
    space = kdtree.build(distinct.points)
    n_points, order = len(distinct.first), space.order
    farthest, open_ = np.full(n_points, -1.0), np.zeros(n_points, dtype=np.bool_)
    np.maximum.at(farthest, distinct.point_of, reach)
    open_[distinct.point_of[asked]] = True
    classes = point_classes(distinct, block.codes)
    samples = block.samples[distinct.first]
    marks = np.zeros(n_points, dtype=np.bool_)
    _confirm(space, samples[order], classes[order], farthest[order], open_[order], links, marks)
    found = np.empty(n_points, dtype=np.bool_)
    found[order] = marks
    return block.samples[found[distinct.point_of]]


def _confirm_by_rows(block: Block, asked: BoolArray, links: Links, settings: Settings) -> IntArray:
    """Compare all distances of the samples asked for, for a metric that knows no boxes."""
    found = np.zeros(len(block.samples), dtype=np.bool_)
    row = settings.metric.rows(block.points, settings.n_threads)(np.arange(len(block.samples)))
    for i in np.flatnonzero(asked).tolist():
        tied = row(i) == longest_edges_to(int(block.samples[i]), block.samples, links)
        tied &= block.codes != block.codes[i]
        found |= tied
        found[i] |= tied.any()
    return block.samples[found]


@jit
def _confirm(space, samples, classes, reach, asked, links, marks):
    """For every point asked for, look in the space tree for an arc as long as the tree's path."""
    points, nodes, lows, highs = space.points, space.nodes, space.lows, space.highs
    n = points.shape[0]
    stack = np.empty(128, dtype=np.int64)
    for u in range(n):
        if not asked[u] or marks[u]:
            continue
        stack[0] = 0
        top = 1
        while top > 0 and not marks[u]:
            top -= 1
            node = stack[top]
            if box_distance(points, u, lows, highs, node) > reach[u]:
                continue
            right = nodes[node]["right"]
            if right >= 0:  # the nearer half is taken from the stack first
                below = points[u, nodes[node]["feature"]] < nodes[node]["value"]
                stack[top] = right if below else node + 1
                stack[top + 1] = node + 1 if below else right
                top += 2
                continue
            start = np.int64(nodes[node]["block"]) * LANES
            for v in range(start, min(start + LANES, n)):
                if classes[v] == classes[u]:
                    continue
                # An arc lies in some minimum spanning tree if no path between its ends is shorter.
                squared = box_distance(points, u, points, points, v)
                if squared == longest_edge_between(links, samples[u], samples[v]):
                    marks[u] = True
                    marks[v] = True
                    break
