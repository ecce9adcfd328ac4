"""Certified Borůvka: the minimum spanning tree from neighbour lists of any origin.

In each round every component picks the shortest arc that leaves it, in the order (weight, lower index, higher
index). Neighbour lists are incomplete, so a component may only pick a *certified* arc: its shortest known arc,
if that is shorter than the horizon of each of its points whose list contains no certain outsider (a point of
another component) any more. For other components, the caller provides a search function.

Arcs that tie are found in the same rounds. When a component picks an arc of length w, every arc of length w
that leaves the component belongs to some minimum spanning tree (cut property); conversely, each arc of some
minimum spanning tree is among these in some round, at the latest when its ends are joined. Both ends of those
arcs that join two classes are marked: they are prototypes, whatever the order of the rows.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.structures import (
    ARC,
    ArcArray,
    BoolArray,
    Components,
    FloatArray,
    IntArray,
    NeighbourLists,
    OutgoingArcSearch,
    SpanningTree,
    ceil_div,
)
from popf.engine.union_find import find_root

#: Finds the shortest arcs, marks the ends of tied arcs, and raises the horizon.
Search = Callable[[OutgoingArcSearch], None]


def spanning_tree(
    lists: NeighbourLists, index: IntArray, classes: IntArray, search: Search, n_threads: int = 1
) -> tuple[SpanningTree, BoolArray]:
    """Grow the minimum spanning tree of points from their neighbour lists.

    Also mark the ends of arcs between different `classes` that tie with an edge, for `find_prototypes`. Ties
    are broken by `index`. The `search`, which has its own threads, finds shortest arcs that are not listed, and
    raises the horizons. Edges are positions in the lists, in the order in which they were found; their weights
    are squared.
    """
    tied = np.zeros(len(index), dtype=np.bool_)
    with Team(n_threads) as team:
        growing = GrowingTree(lists, index, classes, team)
        while growing.n_components > 1:
            best, reach = growing.shortest_listed_arcs()
            certain = growing.certify(best, reach, search, tied)
            growing.mark_ties(best, certain, tied)
            growing.join(best, certain)
    return growing.tree, tied


def padded_range(n_points: int) -> NDArray[np.int32]:
    """Return ``arange(n_points)`` as a view of a buffer that is padded with -1 to a multiple of LANES."""
    buffer = np.full(ceil_div(n_points, LANES) * LANES, -1, dtype=np.int32)
    buffer[:n_points] = np.arange(n_points, dtype=np.int32)
    return buffer[:n_points]


class GrowingTree:
    """The components in a Borůvka round, and the edges found so far; parameters as for `spanning_tree`."""

    def __init__(
        self, lists: NeighbourLists, index: IntArray, classes: IntArray, team: Team
    ) -> None:
        n_points = len(index)
        self.components = Components(padded_range(n_points), index, classes)
        self.n_components = n_points
        self._lists, self._team = lists, team
        self._cursor = np.zeros(n_points, dtype=np.int32)
        self._edges = np.empty((2, n_points - 1), dtype=np.int64)
        self._weights = np.empty(n_points - 1)
        self._n_edges = 0

    @property
    def tree(self) -> SpanningTree:
        """The edges, as positions, in the order in which they were found."""
        return SpanningTree(self._edges[0], self._edges[1], self._weights)

    def shortest_listed_arcs(self) -> tuple[ArcArray, FloatArray]:
        """Find the shortest listed arc out of each component, and its reach: shorter arcs are certified."""
        lists, cursor, components, team = self._lists, self._cursor, self.components, self._team
        best, reach = np.empty(self.n_components, dtype=ARC), np.empty(self.n_components)
        if team.n_threads > 1:
            # In `_pick_arcs` each thread scans all points for those of its components, so the slowest part
            # is done first, without such repetition.
            team.map_rows(
                lambda start, stop: _advance_cursors(lists, cursor, components.of, start, stop),
                len(cursor),
            )
        team.map_shares(
            lambda low, high: _pick_arcs(lists, cursor, components, best, reach, low, high),
            len(best),
        )
        return best, reach

    def certify(
        self, best: ArcArray, reach: FloatArray, search: Search, marked: BoolArray
    ) -> BoolArray:
        """Return which components are certain of their shortest arc; if few are, search for all others.

        The search marks the ends of arcs between classes that tie with the shortest arc it finds.
        """
        certain = best["squared"] < reach
        if 4 * np.count_nonzero(certain) < len(best):
            bounds = best["squared"].copy()
            horizon = self._lists.horizon
            search(OutgoingArcSearch(self.components, best, certain, horizon, marked, bounds))
            certain[:] = True
        return certain

    def mark_ties(self, best: ArcArray, certain: BoolArray, marked: BoolArray) -> None:
        """Mark the ends of listed arcs between classes that tie with a shortest arc."""
        if (certain & (best["tied"] != 0)).any():
            state = self._lists, self._cursor, self.components, best, certain, marked
            self._team.map_rows(
                lambda start, stop: _mark_tied(*state, start, stop), len(self._cursor)
            )

    def join(self, best: ArcArray, certain: BoolArray) -> None:
        """Join components by their shortest arcs.

        As arcs are strictly ordered, two components can only pick each other by the same arc, and there are no
        longer cycles. So the picks form a forest in which the lower of two such components is a root.
        """
        team, of, n_components = self._team, self.components.of, self.n_components
        above, number = np.empty((2, n_components), dtype=np.int32)
        edges = self._edges, self._weights, self._n_edges
        self.n_components = _join(of, best, certain, above, number, *edges)
        self._n_edges += n_components - self.n_components

        def renumber(start: int, stop: int) -> None:
            np.take(number, of[start:stop], out=of[start:stop], mode="clip")

        team.map_rows(renumber, len(of))


@jit
def _advance_cursors(lists, cursor, of, start, stop):
    """Move the cursors of some points to the first outsider in their lists."""
    positions = lists.positions
    for u in range(start, stop):
        cursor[u] = _first_outsider(positions, of, u, cursor[u])


@helper
def _first_outsider(positions, of, u, slot):
    k, component = positions.shape[1], of[u]
    while slot < k and (positions[u, slot] < 0 or of[positions[u, slot]] == component):
        slot += 1
    return slot


@jit
def _pick_arcs(lists, cursor, components, best, reach, low, high):
    """Find the shortest listed arc and the reach of each component from `low` to `high`."""
    positions, squared, horizon = lists.positions, lists.squared, lists.horizon
    of, index = components.of, components.indices
    n, k = positions.shape
    for c in range(low, high):
        arc = best[c]
        arc["squared"], arc["tied"] = np.inf, 0
        arc["inside"], arc["outside"] = -1, -1
        reach[c] = np.inf
    for u in range(n):
        component = np.int64(of[u])
        if component < low or component >= high:
            continue
        # Components only grow, so neighbours before the cursor never become outsiders again.
        slot = _first_outsider(positions, of, u, cursor[u])
        cursor[u] = slot
        known = slot < k
        if known:
            arc = best[component]
            shortest = squared[u, slot]
            if shortest < arc["squared"]:
                arc["squared"], arc["tied"] = shortest, 0
                arc["inside"], arc["outside"] = u, positions[u, slot]
                tie = slot + 1
            else:
                tie = slot
            # Lists are sorted, so arcs that tie with the component's shortest come next.
            while tie < k and squared[u, tie] == shortest == arc["squared"]:
                v = np.int64(positions[u, tie])
                if v >= 0 and of[v] != component:
                    offer(best, component, shortest, u, v, index)
                tie += 1
        # Lists are complete up to the horizon only: beyond it, shorter arcs may be missing.
        if not known or squared[u, slot] >= horizon[u]:
            reach[component] = min(reach[component], horizon[u])


@jit
def _mark_tied(lists, cursor, components, best, certain, marked, start, stop):
    """Mark the ends of listed arcs between classes that tie with their component's shortest arc."""
    positions, squared = lists.positions, lists.squared
    of, classes = components.of, components.classes
    k = positions.shape[1]
    for u in range(start, stop):
        component = of[u]
        if not (certain[component] and best[component]["tied"]):
            continue
        slot = cursor[u]
        while slot < k and squared[u, slot] == best[component]["squared"]:
            v = positions[u, slot]
            if v >= 0 and of[v] != component and classes[u] != classes[v]:
                # Several threads may mark the same point: they all write the same value.
                marked[u] = True
                marked[v] = True
            slot += 1


@jit
def _join(of, best, certain, above, number, edges, weights, n_edges):
    """Write the arcs that components pick as edges, and number the joined components; return how many they are.

    On one thread: it takes a twentieth of the time. In `above`, trees of components are built.
    """
    for c in range(len(best)):
        above[c] = of[best[c]["outside"]] if certain[c] else c
    n_roots = 0
    for c in range(len(best)):
        picked = above[c]
        if picked == c or (c < picked and above[picked] == c):
            above[c] = c
            number[c] = n_roots
            n_roots += 1
        else:
            edges[0, n_edges], edges[1, n_edges] = best[c]["inside"], best[c]["outside"]
            weights[n_edges] = best[c]["squared"]
            n_edges += 1
    for c in range(len(best)):
        number[c] = number[find_root(above, c)]
    return n_roots


# Shared by the searches for outgoing arcs ---------------------------------------------------------------------


def search_and_mark(
    search: OutgoingArcSearch, find: Callable[[bool, Team], ArcArray], n_threads: int
) -> None:
    """Offer the arcs that ``find(False, team)`` returns; if any tie, ``find(True, team)`` marks their ends."""
    with Team(n_threads) as team:
        arcs = find(False, team)
        best, arcs = search.best, arcs[arcs["inside"] >= 0]
        # Contiguous copies with 64 bits, so that `offer` is compiled only once.
        inside, outside = arcs["inside"].astype(np.int64), arcs["outside"].astype(np.int64)
        squared = arcs["squared"].copy()
        offer_arcs(best, search.components, inside, outside, squared)
        component = search.components.of[inside]
        tied = (arcs["tied"] != 0) & (squared == best["squared"][component])
        best["tied"][component[tied]] = 1
        search.bounds[:] = best["squared"]
        if ((search.best["tied"] != 0) & ~search.certain).any():
            find(True, team)


def wanted_points(search: OutgoingArcSearch, marking: bool) -> BoolArray:
    """Return which points may start their component's shortest arc, or with `marking` a tie with it."""
    best = search.best
    searched = ~search.certain & (best["tied"] != 0) if marking else ~search.certain
    # No point is within a negative bound.
    return search.horizon <= np.where(searched, best["squared"], -1.0)[search.components.of]


@helper
def offer(best, component, squared, inside, outside, index):
    """Offer an arc to the component that it leaves, and keep the first in the order of arcs."""
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
def offer_arcs(best, components, inside, outside, squared):
    """Offer each arc to the component of its first end, if it leaves that component."""
    of, index = components.of, components.indices
    for e in range(len(squared)):
        u, v = inside[e], outside[e]
        if of[u] != of[v]:
            offer(best, np.int64(of[u]), squared[e], u, v, index)
