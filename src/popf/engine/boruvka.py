"""Certified Borůvka: the minimum spanning tree from neighbour lists, whoever made them.

In a round every component picks the shortest arc that leaves it, in the order (weight, lower index,
higher index). Neighbour lists are incomplete, so a component may pick only what is *certified*: its
shortest known arc is shorter than the horizon of each of its points whose list has no certain outsider
left. What cannot be certified is searched for, by a function that the caller gives.

Prototypes come from the same rounds. When a component picks an arc of length w, every arc of length
w that leaves the component lies in some minimum spanning tree (cut property); conversely each arc of
some minimum spanning tree is among these in some round, at the latest when its ends come together.
So both ends of those arcs that join two classes are prototypes, in whatever order the rows come.
"""

from collections.abc import Callable

import numpy as np

from .jit import jit
from .lanes import padded_range
from .structures import (
    ARC,
    ArcArray,
    BoolArray,
    Components,
    IntArray,
    NeighbourLists,
    SpanningTree,
)

#: ``search(components, lists, best, prototypes)`` finds, for every component whose `best` arc is not
#: certain, the shortest arc that leaves it; see `neighbours.nearest_outsiders`.
Search = Callable[[Components, NeighbourLists, ArcArray, BoolArray, BoolArray], None]


def spanning_tree(
    lists: NeighbourLists, index: IntArray, classes: IntArray, search: Search
) -> tuple[SpanningTree, BoolArray]:
    """Grow the minimum spanning tree of points from their neighbour lists.

    Parameters
    ----------
    lists : NeighbourLists
        Changed in place: horizons move as searches tell more.
    index : ndarray of shape (n_points,)
        The index of every point, which breaks ties.
    classes : ndarray of shape (n_points,)
        The class of every point; arcs between unequal ones make prototypes.
    search : callable
        Finds what the lists do not hold.

    Returns
    -------
    tree : SpanningTree
        Edges as positions, in the order in which they were found, weights squared.
    prototypes : ndarray of shape (n_points,)
        Whether each point is one.
    """
    n_points = len(index)
    components = Components(padded_range(n_points), index, classes)
    cursor = np.zeros(n_points, dtype=np.int32)
    prototypes = np.zeros(n_points, dtype=np.bool_)
    edges = np.empty((n_points - 1, 2), dtype=np.int64)
    weights = np.empty(n_points - 1)
    n_components, n_edges = n_points, 0
    while n_components > 1:
        best = np.empty(n_components, dtype=ARC)
        reach = np.empty(n_components)
        _scan_lists(lists, cursor, components, best, reach)
        certain = best["squared"] < reach
        n_certain = int(certain.sum())
        if 4 * n_certain < n_components:
            search(components, lists, best, certain, prototypes)
            certain[:] = True
        if best["tied"][certain].any():
            _mark_tied(lists, cursor, components, best, certain, prototypes)
        n_edges, n_components = _merge(
            components, best, certain, prototypes, edges, weights, n_edges
        )
    return SpanningTree(edges[:, 0], edges[:, 1], weights), prototypes


@jit
def offer(best, component, squared, inside, outside, index):
    """Tell a component of an arc that leaves it; it keeps the first in the order of arcs."""
    arc = best[component]
    if squared > arc["squared"]:
        return
    if squared < arc["squared"]:
        arc["tied"] = 0
    elif arc["inside"] >= 0:
        u, v = arc["inside"], arc["outside"]
        if u == inside and v == outside:
            return
        arc["tied"] = 1
        low, high = min(index[inside], index[outside]), max(index[inside], index[outside])
        old_low, old_high = min(index[u], index[v]), max(index[u], index[v])
        if low > old_low or (low == old_low and high > old_high):
            return
    arc["squared"] = squared
    arc["inside"] = inside
    arc["outside"] = outside


@jit
def take_over(best, other, index):
    """Take over the arcs that another thread found."""
    for c in range(len(best)):
        arc = other[c]
        if arc["inside"] >= 0 and arc["squared"] <= best[c]["squared"]:
            offer(best, c, arc["squared"], arc["inside"], arc["outside"], index)
            best[c]["tied"] |= arc["tied"]


@jit
def is_wanted(u, component, best, certain, horizon, marking):
    """Whether an arc from u might be, or tie with, the shortest out of its component."""
    arc = best[component]
    if certain[component] or (marking and arc["tied"] == 0):
        return False
    return horizon[u] <= arc["squared"]


@jit
def are_wanted(of, horizon, best, certain, marking):
    """`is_wanted` for every point."""
    wanted = np.empty(len(of), dtype=np.bool_)
    for u in range(len(of)):
        wanted[u] = is_wanted(u, of[u], best, certain, horizon, marking)
    return wanted


@jit
def _scan_lists(lists, cursor, components, best, reach):
    """Collect every component's shortest listed arc, and how far its exhausted points can see."""
    positions, squared, horizon = lists.positions, lists.squared, lists.horizon
    of, index = components.of, components.indices
    n, k = positions.shape
    for c in range(len(best)):
        arc = best[c]
        arc["squared"], arc["tied"] = np.inf, 0
        arc["inside"], arc["outside"] = -1, -1
        reach[c] = np.inf
    for u in range(n):
        component = of[u]
        slot = cursor[u]
        while slot < k and (positions[u, slot] < 0 or of[positions[u, slot]] == component):
            slot += 1
        cursor[u] = slot
        known = slot < k
        if known:
            arc = best[component]
            shortest = squared[u, slot]
            if shortest < arc["squared"]:
                arc["squared"], arc["tied"] = shortest, 0
                arc["inside"], arc["outside"] = u, positions[u, slot]
            elif shortest == arc["squared"]:
                offer(best, component, shortest, u, positions[u, slot], index)
            tie = slot + 1
            while tie < k and squared[u, tie] == shortest and positions[u, tie] >= 0:
                if of[positions[u, tie]] != component:
                    offer(best, component, shortest, u, positions[u, tie], index)
                tie += 1
        if not known or squared[u, slot] >= horizon[u]:
            reach[component] = min(reach[component], horizon[u])


@jit
def _mark_tied(lists, cursor, components, best, certain, prototypes):
    """Mark the ends of listed arcs between classes that are as short as their component's pick."""
    positions, squared = lists.positions, lists.squared
    of, classes = components.of, components.classes
    n, k = positions.shape
    for u in range(n):
        component = of[u]
        if not (certain[component] and best[component]["tied"]):
            continue
        slot = cursor[u]
        while slot < k and squared[u, slot] == best[component]["squared"]:
            v = positions[u, slot]
            if v >= 0 and of[v] != component and classes[u] != classes[v]:
                prototypes[u] = True
                prototypes[v] = True
            slot += 1


@jit
def _merge(components, best, certain, prototypes, edges, weights, n_edges):
    """Join components over their picks and renumber them."""
    of, classes = components.of, components.classes
    n_components = len(best)
    parent = np.empty(n_components, dtype=np.int64)
    for c in range(n_components):
        parent[c] = c
    for c in range(n_components):
        if not certain[c]:
            continue
        u, v = best[c]["inside"], best[c]["outside"]
        a, b = np.int64(of[u]), np.int64(of[v])
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if classes[u] != classes[v]:
            prototypes[u] = True
            prototypes[v] = True
        if a == b:
            continue  # the other end picked the same arc
        parent[max(a, b)] = min(a, b)
        edges[n_edges, 0] = u
        edges[n_edges, 1] = v
        weights[n_edges] = best[c]["squared"]
        n_edges += 1
    # A parent has a lower number than its children, so one pass settles the new numbers.
    count = 0
    for c in range(n_components):
        if parent[c] == c:
            parent[c] = count
            count += 1
        else:
            parent[c] = parent[parent[c]]
    for u in range(len(of)):
        of[u] = parent[of[u]]
    return n_edges, count
