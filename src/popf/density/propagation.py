"""The graph of nearest neighbours, and kernels on it: densities, optimum paths, claims, the normalised cut.

There is an arc from s to t if t, or a copy of it, is among the k nearest samples of s: if
``graph.before < k``.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import jit
from popf.engine.structures import FloatArray, IntArray
from popf.engine.union_find import find_root


class NeighbourGraph(NamedTuple):
    """The nearest samples of every node, nearest first; a node is one sample, or several equal ones."""

    neighbours: NDArray[np.int32]  # (n_nodes, n_listed): nodes in the order of (distance, node)
    distances: FloatArray  # (n_nodes, n_listed)
    # Number of samples before each: copies of the node, and all listed earlier.
    before: NDArray[np.int32]
    counts: IntArray  # number of equal samples at each node


@jit
def longest_arc(graph: NeighbourGraph, k: int) -> float:
    """Return the largest distance between a node and its k-th nearest sample."""
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
    """Compute the mean of exp(-d²/2σ²) over the k nearest samples, where σ is a third of the longest arc.

    Terms are added one by one in the order of distance, so that nodes with equal distances have equal
    densities, bit for bit.
    """
    density = np.ones(len(graph.before))
    n_listed = graph.before.shape[1]
    for s in range(len(graph.before) if n_listed > 0 else 0):
        total = float(min(k, graph.before[s, 0]))  # copies are at distance 0
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
    """List the nodes with an arc to node t, as ``sources[starts[t]:starts[t + 1]]``.

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

    The component of a node at a level is the set of nodes connected to it, by arcs in either direction, through
    nodes of at least that density. Its area is its number of samples; its volume is the sum of their heights
    above the level. Levels are visited from the top down, and components are merged by union-find. A component
    that is large enough keeps its level, and every lower component that contains it is large enough, too.
    `starts` and `sources` are those of `arcs_back`.
    """
    n = len(density)
    order = np.argsort(-density, kind="mergesort")
    # Union-find of the nodes visited so far, -1 for others. A component's root holds its area and volume.
    parents = np.full(n, -1)
    area, volume = graph.counts.astype(np.float64), np.zeros(n)
    for p in order:
        parents[p] = p
        # Nodes with an arc to p come first, then those that p has an arc to.
        n_back = starts[p + 1] - starts[p]
        for place in range(n_back + graph.before.shape[1]):
            if place < n_back:
                q = sources[starts[p] + place]
            else:
                if graph.before[p, place - n_back] >= k:
                    break
                q = np.int64(graph.neighbours[p, place - n_back])
            if parents[q] < 0:  # not visited yet
                continue
            root = find_root(parents, q)
            if root == p:
                continue
            # The volume above the level of p; the root has the lowest density in its component.
            rise = volume[root]
            if density[root] > density[p]:
                rise += area[root] * (density[root] - density[p])
            # A component that is too small is lowered to p; a large one keeps its level.
            if density[root] == density[p] or area[root] < min_area or rise < min_volume:
                parents[root] = p
                area[p] += area[root]
                volume[p] += rise
            else:
                area[p], volume[p] = np.inf, np.inf
    # From the lowest density up, so that the level of a parent is known before that of its children.
    opened = density.copy()
    for i in range(n - 1, -1, -1):
        p = order[i]
        opened[p] = opened[parents[p]]
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
    """Find the optimum path of every node under f_min: its value, and the root where it starts.

    Nodes leave the queue once, in the order of value, density and index. A node that has not been conquered by
    then becomes a root, and its value rises from `handicapped` to its density. A node offers the smaller of its
    value and the other node's density to the nodes of its class that it has an arc to, and to those that
    `starts` and `sources` list for it. `waiting` lists the nodes in the initial order of the queue.
    """
    n = len(density)
    values = np.empty(n)
    offered = handicapped.copy()  # best offer so far; infinity once a node has left the queue
    roots = np.full(n, -1)
    # The queue has two parts: a heap of (-offer, -density, node) for nodes with an offer, where a raised offer
    # leaves a stale entry behind, and `waiting`, sorted once, for nodes without one.
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
        if roots[s] < 0:  # not conquered: a maximum, and the root of a cluster
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
    """Find for every row the node among its k nearest with the highest offer, min(value, density).

    If several tie, the nearest is taken. With `own`, rows are the nodes, and their copies are the nearest.
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
    """Sum over clusters the share of arcs that leave each, weighted by 1/d, without arcs of length 0."""
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
