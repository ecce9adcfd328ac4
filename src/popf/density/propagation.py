"""The graph of nearest neighbours, and kernels on it: densities, optimum paths, claims, the normalised cut.

There is an arc from s to t if t, or a copy of it, is one of the k nearest samples of s: where
``graph.before < k``.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import jit
from popf.engine.structures import FloatArray, IntArray
from popf.engine.trees.boruvka import find_root


class NeighbourGraph(NamedTuple):
    """The nearest samples of every node, nearest first; a node is one sample, or several equal ones."""

    neighbours: NDArray[np.int32]  # (n_nodes, n_listed): nodes in the order of (distance, node)
    distances: FloatArray  # (n_nodes, n_listed)
    # How many samples come before each: copies of the node, and all listed earlier.
    before: NDArray[np.int32]
    counts: IntArray  # how many samples each node stands for


@jit
def longest_arc(graph: NeighbourGraph, k: int) -> float:
    """Find the largest distance to a k-th nearest sample."""
    longest = 0.0
    for s in range(len(graph.before)):
        last = min(k, graph.before.shape[1]) - 1
        while last >= 0 and graph.before[s, last] >= k:
            last -= 1
        if last >= 0:
            longest = max(longest, graph.distances[s, last])
    return longest


@jit
def densities(graph: NeighbourGraph, k: int, longest: float) -> FloatArray:
    """Take the mean of exp(-d²/2σ²) over the k nearest samples, where σ is a third of the longest arc.

    Samples are added one by one, by distance: nodes at the same distances have the same density, to the bit.
    """
    density = np.ones(len(graph.before))
    n_listed = graph.before.shape[1]
    for s in range(len(graph.before) if n_listed > 0 else 0):
        total = float(min(k, graph.before[s, 0]))  # copies are at no distance
        for j in range(n_listed):
            room = k - graph.before[s, j]
            if room <= 0:
                break
            distance, term = graph.distances[s, j], 1.0
            if distance > 0.0:
                ratio = distance / longest if longest > 0.0 else np.inf
                term = np.exp(-4.5 * ratio * ratio)
            for _ in range(min(room, graph.counts[graph.neighbours[s, j]])):
                total += term
        density[s] = total / k
    return density


@jit
def arcs_back(
    graph: NeighbourGraph, k: int, density: FloatArray, only_plateaus: bool
) -> tuple[IntArray, IntArray]:
    """List for every node those that have an arc to it, as starts and sources.

    With `only_plateaus`, only arcs between equal densities are listed.
    """
    n = len(graph.counts)
    starts = np.zeros(n + 2, dtype=np.int64)
    sources = np.empty(0, dtype=np.int64)
    for counting in (True, False):
        for s in range(n):
            for j in range(graph.before.shape[1]):
                if graph.before[s, j] >= k:
                    break
                t = graph.neighbours[s, j]
                if only_plateaus and density[s] != density[t]:
                    continue
                if counting:
                    starts[t + 2] += 1
                else:
                    sources[starts[t + 1]] = s
                    starts[t + 1] += 1
        if counting:
            starts = np.cumsum(starts)
            sources = np.empty(starts[-1], dtype=np.int64)
    return starts[:-1], sources


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
    enough is closed, and makes all below it so. `starts` and `sources` are those of `arcs_back`.
    """
    n = len(density)
    order = np.argsort(-density, kind="mergesort")
    # A union-find of the nodes visited so far, -1 for others. The top of a component holds its area and volume.
    above = np.full(n, -1)
    area, volume = graph.counts.astype(np.float64), np.zeros(n)
    for p in order:
        above[p] = p
        # Nodes with an arc to p come first, then those that p has an arc to.
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
            top = find_root(above, q)
            if top == p:
                continue
            # From the level of the component's top, the lowest in it, down to that of p.
            rise = volume[top]
            if density[top] > density[p]:
                rise += area[top] * (density[top] - density[p])
            # Too small a component is lowered to p; one that is large enough keeps its level.
            if density[top] == density[p] or area[top] < min_area or rise < min_volume:
                above[top] = p
                area[p] += area[top]
                volume[p] += rise
            else:
                area[p], volume[p] = np.inf, np.inf
    # From the bottom up, so that the level above a node is known before its own.
    opened = density.copy()
    for i in range(n - 1, -1, -1):
        p = order[i]
        opened[p] = opened[above[p]]
    return opened


@jit
def propagate(
    graph: NeighbourGraph,
    k: int,
    density: FloatArray,
    handicapped: FloatArray,
    waiting: IntArray,
    codes: IntArray,
    starts: IntArray,
    sources: IntArray,
) -> tuple[FloatArray, IntArray]:
    """Find the optimum path of every node under f_min: its value, and the root where it begins.

    Nodes leave the queue by value, then density, then number, and do not come back. Whoever nobody has
    conquered by then is a root, and its value rises from `handicapped` to its density. A node offers the
    smaller of its value and the other's density to those it has an arc to, and to those that `starts` and
    `sources` list for it, if they are of its class. `waiting` are the nodes in the order of the queue.
    """
    n = len(density)
    values = np.empty(n)
    offered = handicapped.copy()  # the best so far; infinity once a node has left the queue
    roots = np.full(n, -1)
    # The queue in two parts: a heap of (-offer, -density, node) for those that have an offer, in which an offer
    # that was raised leaves a stale entry behind, and `waiting`, sorted once, for those that have none.
    conquered = [(0.0, 0.0, 0) for _ in range(0)]
    next_waiting = 0
    # Invariant: no node still in the queue gets a better path than that of the node taken next.
    while True:
        while next_waiting < n and roots[waiting[next_waiting]] >= 0:
            next_waiting += 1
        while len(conquered) > 0 and offered[conquered[0][2]] == np.inf:
            heapq.heappop(conquered)
        if len(conquered) == 0 and next_waiting == n:
            break
        s = -1
        if next_waiting < n:
            s = waiting[next_waiting]
        if len(conquered) > 0 and (s < 0 or conquered[0] < (-offered[s], -density[s], s)):
            s = heapq.heappop(conquered)[2]
        value = offered[s]
        if roots[s] < 0:  # nobody has conquered it: a maximum, and the root of a cluster
            roots[s], value = s, density[s]
        values[s], offered[s] = value, np.inf
        n_back = starts[s + 1] - starts[s]
        for place in range(n_back + graph.before.shape[1]):
            if place < n_back:
                t = sources[starts[s] + place]
            else:
                if graph.before[s, place - n_back] >= k:
                    break
                t = np.int64(graph.neighbours[s, place - n_back])
            if offered[t] >= value:
                continue
            offer = min(value, density[t])
            if offer > offered[t] and codes[t] == codes[s]:
                offered[t], roots[t] = offer, roots[s]
                heapq.heappush(conquered, (-offer, -density[t], t))
    return values, roots


@jit
def claim(
    graph: NeighbourGraph, k: int, density: FloatArray, values: FloatArray, own: bool
) -> IntArray:
    """Find for every row the nearest of those among the k that offer the most, min(value, density).

    With `own` rows are nodes, and copies of a node are the nearest to it.
    """
    nodes = np.full(len(density), -1)
    for s in range(len(density)):
        best = -np.inf
        if own and graph.counts[s] > 1:
            nodes[s], best = s, min(values[s], density[s])
        for j in range(graph.before.shape[1]):
            if graph.before[s, j] >= k:
                break
            offer = min(values[graph.neighbours[s, j]], density[s])
            if offer > best:
                nodes[s], best = graph.neighbours[s, j], offer
    return nodes


@jit
def normalized_cut(
    graph: NeighbourGraph, k: int, longest: float, labels: IntArray, n_clusters: int
) -> float:
    """Sum over clusters the share of arcs that leave it, weighted by 1/d; arcs of no length are left out."""
    inside, leaving = np.zeros(n_clusters), np.zeros(n_clusters)
    for s in range(len(labels)):
        for j in range(graph.before.shape[1]):
            room, distance = k - graph.before[s, j], graph.distances[s, j]
            if room <= 0:
                break
            t = graph.neighbours[s, j]
            if distance > 0.0:
                n_arcs = graph.counts[s] * min(room, graph.counts[t])
                weight = n_arcs * min(longest / distance, 1e100)
                if labels[s] == labels[t]:
                    inside[labels[s]] += weight
                else:
                    leaving[labels[s]] += weight
    total = 0.0
    for i in range(n_clusters):
        if leaving[i] > 0.0:
            total += leaving[i] / (inside[i] + leaving[i])
    return total
