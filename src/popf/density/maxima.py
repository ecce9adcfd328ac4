"""Removal of small maxima: the opening of a density by area and volume."""

import numpy as np
from numpy.typing import NDArray

from popf.density.graph import NeighbourGraph
from popf.engine.runtime.jit import helper, jit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@helper
def _top(above: IntArray, node: int) -> int:
    """Find the representative of a node's component, with path compression."""
    top = node
    while above[top] != top:
        top = above[top]
    while above[node] != top:
        above[node], node = top, above[node]
    return top


@jit
def open_density(
    graph: NeighbourGraph,
    k: int,
    density: FloatArray,
    starts: IntArray,
    sources: IntArray,
    min_area: float,
    min_volume: float,
) -> FloatArray:
    """Lower each node to the highest level at which its component is large enough.

    The component at a level is what is connected, by arcs in either direction, to the node through nodes of
    that density or more. Its area is the number of its samples, its volume the sum of what they rise above
    the level. Levels are visited from the top down; components grow by union-find, and one that is large
    enough is closed, and makes all below it so.

    `starts` and `sources` are the arcs back, as of `propagation.arcs_back`.
    """
    n = len(density)
    order = np.argsort(-density, kind="mergesort")
    above = np.full(n, -1)
    area, volume = graph.counts.astype(np.float64), np.zeros(n)
    for p in order:
        above[p] = p
        n_back = starts[p + 1] - starts[p]
        for place in range(n_back + graph.before.shape[1]):
            if place < n_back:
                q = sources[starts[p] + place]
            else:
                if graph.before[p, place - n_back] >= k:
                    break
                q = np.int64(graph.neighbours[p, place - n_back])
            if above[q] < 0:  # lower, or not its turn yet
                continue
            top = _top(above, q)
            if top == p:
                continue
            rise = volume[top]
            if density[top] > density[p]:
                rise += area[top] * (density[top] - density[p])
            if density[top] == density[p] or area[top] < min_area or rise < min_volume:
                above[top] = p
                area[p] += area[top]
                volume[p] += rise
            else:
                area[p], volume[p] = np.inf, np.inf
    opened = density.copy()
    for i in range(n - 1, -1, -1):
        p = order[i]
        opened[p] = opened[above[p]]
    return opened
