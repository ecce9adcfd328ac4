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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import padded_range
from popf.engine.runtime.threads import ALONE, Team
from popf.engine.structures import (
    ARC,
    ArcArray,
    BoolArray,
    Components,
    FloatArray,
    IntArray,
    NeighbourLists,
    SpanningTree,
)

#: ``search(components, lists, best, prototypes)`` finds, for every component whose `best` arc is not
#: certain, the shortest arc that leaves it; see `neighbours.nearest_outsiders`.
Search = Callable[[Components, NeighbourLists, ArcArray, BoolArray, BoolArray], None]


class Hunt(NamedTuple):
    """What threads that search for the shortest arcs out of components share.

    Attributes
    ----------
    components : Components
    best : ndarray of ARC records
        The shortest arcs known before the search, one a component.
    certain : ndarray of shape (n_components,)
        Components that need no search.
    bounds : ndarray of shape (n_components,)
        How long the shortest arc out of each component is at most. All threads lower these as they
        find arcs; whichever of two writes stays, it is the length of an arc that leaves the component,
        so it spares work and decides nothing.
    horizon : ndarray of shape (n_points,)
        See `NeighbourLists`.
    """

    components: Components
    best: ArcArray
    certain: BoolArray
    bounds: FloatArray
    horizon: FloatArray


def spanning_tree(
    lists: NeighbourLists,
    index: IntArray,
    classes: IntArray,
    search: Search,
    n_threads: int = 1,
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
    n_threads : int
        For all but the search, which has threads of its own.

    Returns
    -------
    tree : SpanningTree
        Edges as positions, in the order in which they were found, weights squared.
    prototypes : ndarray of shape (n_points,)
        Whether each point is one.
    """
    prototypes = np.zeros(len(index), dtype=np.bool_)
    with Team(n_threads) as team:
        growing = GrowingTree(lists, index, classes, team)
        while growing.n_components > 1:
            best, reach = growing.shortest_listed_arcs()
            certain = growing.certify(best, reach, search, prototypes)
            growing.mark_ties(best, certain, prototypes)
            growing.join(best, certain, prototypes)
    return growing.tree, prototypes


class GrowingTree:
    """The components of a Borůvka round, and the edges found so far.

    Parameters
    ----------
    lists, index, classes
        As for `spanning_tree`.
    team : Team
    """

    def __init__(
        self, lists: NeighbourLists, index: IntArray, classes: IntArray, team: Team = ALONE
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
        """Find each component's shortest listed arc out of it, and how far its points have looked."""
        best = np.empty(self.n_components, dtype=ARC)
        reach = np.empty(self.n_components)
        _scan_lists(self._lists, self._cursor, self.components, best, reach, self._team)
        return best, reach

    def offer(self, best: ArcArray, arcs: SpanningTree) -> None:
        """Let components take arcs that are not in the lists."""
        lower, higher, weights = arcs
        offer_arcs(best, self.components, lower, higher, weights)
        offer_arcs(best, self.components, higher, lower, weights)

    def certify(
        self, best: ArcArray, reach: FloatArray, search: Search, marked: BoolArray
    ) -> BoolArray:
        """Tell which components know their shortest arc; if few do, search for those of all others.

        The search marks the ends of arcs between classes that are as short as the one it finds.
        """
        certain = np.empty(len(best), dtype=np.bool_)
        if 4 * _certify(best, reach, certain, self._team) < len(best):
            search(self.components, self._lists, best, certain, marked)
            certain[:] = True
        return certain

    def mark_ties(self, best: ArcArray, certain: BoolArray, marked: BoolArray) -> bool:
        """Mark the ends of listed arcs between classes that tie with their component's shortest."""
        tied = any_tied(best, certain, True, self._team)
        if tied:
            _mark_tied(
                self._lists, self._cursor, self.components, best, certain, marked, self._team
            )
        return tied

    def join(self, best: ArcArray, certain: BoolArray, prototypes: BoolArray) -> None:
        """Join components over their shortest arcs; ends of different classes are prototypes."""
        self._n_edges, self.n_components = _merge(
            self.components,
            best,
            certain,
            prototypes,
            self._edges,
            self._weights,
            self._n_edges,
            self._team,
        )


def begin_hunt(
    components: Components, lists: NeighbourLists, best: ArcArray, certain: BoolArray
) -> Hunt:
    """Prepare a search for the shortest arcs out of all components that are not `certain`."""
    return Hunt(components, best, certain, best["squared"].copy(), lists.horizon)


def end_hunt(hunt: Hunt, found: ArcArray, team: Team = ALONE) -> None:
    """Give every component the first, in the order of arcs, of those that were found."""
    # Each thread has some of the components, and looks for their arcs among all.
    team.map_shares(lambda low, high: _take_over(hunt, found, low, high), len(hunt.best))


def any_tied(best: ArcArray, certain: BoolArray, wanted: bool, team: Team = ALONE) -> bool:
    """Whether the shortest arc of any component that is `certain`, or else is not, has an equal."""
    tied = best["tied"]

    def look(start: int, stop: int) -> bool:
        return bool(((certain[start:stop] == wanted) & (tied[start:stop] != 0)).any())

    return any(team.map_rows(look, len(best)))


@helper
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
def offer_arcs(best, components, inside, outside, squared):
    """Tell components of arcs that may leave them, in the direction given."""
    of, index = components.of, components.indices
    for e in range(len(squared)):
        u, v = inside[e], outside[e]
        if of[u] != of[v]:
            offer(best, np.int64(of[u]), squared[e], u, v, index)


@jit
def _take_over(hunt, found, low, high):
    """Take over the arcs that were found for the components from `low` to `high`."""
    of, index, best, bounds = hunt.components.of, hunt.components.indices, hunt.best, hunt.bounds
    for i in range(len(found)):
        arc = found[i]
        if arc["inside"] < 0:
            continue
        # Integers of one kind wherever arcs are offered, or `offer` would be compiled for each.
        inside, outside = np.int64(arc["inside"]), np.int64(arc["outside"])
        component = np.int64(of[inside])
        if low <= component < high and arc["squared"] <= best[component]["squared"]:
            offer(best, component, arc["squared"], inside, outside, index)
            best[component]["tied"] |= arc["tied"]
    for c in range(low, high):
        bounds[c] = best[c]["squared"]


def _certify(best: ArcArray, reach: FloatArray, certain: BoolArray, team: Team) -> int:
    """Tell which components know their shortest arc for certain; counts them."""
    squared = best["squared"]

    def certify(start: int, stop: int) -> int:
        here = np.less(squared[start:stop], reach[start:stop], out=certain[start:stop])
        return int(np.count_nonzero(here))

    return sum(team.map_rows(certify, len(best)))


@helper
def is_wanted(arc, certain, horizon, marking):
    """Whether an arc from a point might be, or tie with, the shortest out of its component."""
    return not certain and (not marking or arc["tied"] != 0) and horizon <= arc["squared"]


def are_wanted(
    of: NDArray[np.int32], horizon: FloatArray, best: ArcArray, certain: BoolArray, marking: bool
) -> BoolArray:
    """`is_wanted` for every point."""
    open_ones = ~certain & (best["tied"] != 0) if marking else ~certain
    # Nobody is within a negative bound.
    wanted: BoolArray = horizon <= np.where(open_ones, best["squared"], -1.0)[of]
    return wanted


def _scan_lists(
    lists: NeighbourLists,
    cursor: NDArray[np.int32],
    components: Components,
    best: ArcArray,
    reach: FloatArray,
    team: Team = ALONE,
) -> None:
    """Find each component's shortest listed arc out of it, and how far its points have looked."""
    if team.n_threads > 1:
        # Each thread has some of the components, and looks for their points among all: so first do
        # together what takes longest.
        team.map_rows(
            lambda start, stop: _advance(lists, cursor, components.of, start, stop), len(cursor)
        )
    team.map_shares(
        lambda low, high: _pick(lists, cursor, components, best, reach, low, high), len(best)
    )


@jit
def _advance(lists, cursor, of, start, stop):
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
def _pick(lists, cursor, components, best, reach, low, high):
    """Find the shortest listed arcs, and the reach, of the components from `low` to `high`."""
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
            while tie < k and squared[u, tie] == shortest == arc["squared"]:
                v = np.int64(positions[u, tie])
                if v >= 0 and of[v] != component:
                    offer(best, component, shortest, u, v, index)
                tie += 1
        if not known or squared[u, slot] >= horizon[u]:
            reach[component] = min(reach[component], horizon[u])


def _mark_tied(
    lists: NeighbourLists,
    cursor: NDArray[np.int32],
    components: Components,
    best: ArcArray,
    certain: BoolArray,
    prototypes: BoolArray,
    team: Team = ALONE,
) -> None:
    """Mark the ends of listed arcs between classes that are as short as their component's pick."""
    state = lists, cursor, components, best, certain, prototypes
    team.map_rows(lambda start, stop: _mark_tied_among(*state, start, stop), len(cursor))


@jit
def _mark_tied_among(lists, cursor, components, best, certain, prototypes, start, stop):
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
                # Several threads may mark a point: they all write the same.
                prototypes[u] = True
                prototypes[v] = True
            slot += 1


def _merge(
    components: Components,
    best: ArcArray,
    certain: BoolArray,
    prototypes: BoolArray,
    edges: IntArray,
    weights: FloatArray,
    n_edges: int,
    team: Team = ALONE,
) -> tuple[int, int]:
    """Join components over their picks and renumber them; returns how many edges and components.

    As arcs have an order, two components can pick each other only by the same arc, and no larger ring
    of picks exists. So the picks are a forest, once the lower of such two stands as a root.
    """
    n_components, of = len(best), components.of
    picks = np.empty(n_components, dtype=np.int32)
    above = np.empty(n_components, dtype=np.int32)
    number = np.empty(n_components, dtype=np.int32)
    state = components, best, certain, prototypes
    team.map_rows(lambda start, stop: _pick_others(*state, picks, start, stop), n_components)
    roots = team.map_rows(
        lambda start, stop: (start, _root(picks, above, start, stop)), n_components
    )
    # Roots are numbered in their order; everybody else brings an edge.
    before, n_roots = {}, 0
    for start, count in roots:
        before[start] = n_roots
        n_roots += count

    def write(start: int, stop: int) -> None:
        first = n_edges + start - before[start]
        _write(best, above, number, before[start], edges, weights, first, start, stop)

    team.map_rows(write, n_components)
    team.map_rows(lambda start, stop: _number_others(above, number, start, stop), n_components)
    team.map_rows(lambda start, stop: _renumber(of, number, start, stop), len(of))
    return n_edges + n_components - n_roots, n_roots


@jit
def _pick_others(components, best, certain, prototypes, picks, start, stop):
    """Tell which component each one picks, itself if it is not certain, and mark prototypes."""
    of, classes = components.of, components.classes
    for c in range(start, stop):
        picks[c] = c
        if certain[c]:
            u, v = best[c]["inside"], best[c]["outside"]
            picks[c] = of[v]
            if classes[u] != classes[v]:
                prototypes[u] = True
                prototypes[v] = True


@jit
def _root(picks, above, start, stop):
    """Hang every component on its pick, but the lower of two that pick each other; counts roots."""
    count = 0
    for c in range(start, stop):
        pick = picks[c]
        above[c] = c if picks[pick] == c and c < pick else pick
        count += above[c] == c
    return count


@jit
def _write(best, above, number, n_roots, edges, weights, n_edges, start, stop):
    """Give numbers to the roots, and write down the arcs of the others."""
    for c in range(start, stop):
        if above[c] == c:
            number[c] = n_roots
            n_roots += 1
        else:
            edges[0, n_edges] = best[c]["inside"]
            edges[1, n_edges] = best[c]["outside"]
            weights[n_edges] = best[c]["squared"]
            n_edges += 1


@jit
def _number_others(above, number, start, stop):
    """Give the number of its root to every component, shortening the ways as they are gone.

    Other threads may shorten them, too: wherever they lead to, it is on the way to the root.
    """
    for c in range(start, stop):
        root = c
        while above[root] != root:
            above[root] = above[above[root]]
            root = above[root]
        if root != c:
            number[c] = number[root]


@jit
def _renumber(of, number, start, stop):
    for u in range(start, stop):
        of[u] = number[of[u]]
