"""The shortest arcs out of components: those known so far, and the search for the others.

Arcs are ordered by (weight, lower index, higher index), so every component has one shortest arc, whoever finds
it. Of arcs that tie with it, both ends are marked where they join two classes: they are prototypes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.threads import ALONE, Team
from popf.engine.structures import BoolArray, FloatArray, IntArray

#: The shortest arc known to leave a component: its squared length, its ends as positions (-1 while
#: none is known), and whether another arc as short was seen. One record, so one cache line, a component.
ARC = np.dtype(
    [("squared", np.float64), ("inside", np.int32), ("outside", np.int32), ("tied", np.int64)]
)
ArcArray = NDArray[np.void]


class Components(NamedTuple):
    """The components of a Borůvka round, and what the points in them are."""

    of: NDArray[np.int32]  # the component of every point, numbered from 0
    indices: IntArray  # the index of every point, which breaks ties
    classes: IntArray


class OutgoingArcSearch(NamedTuple):
    """A search for the shortest arc out of every component that is not certain of it, shared by threads.

    All threads lower the `bounds` as they find arcs. Whichever of two writes stays, it is the length of an arc
    that leaves the component, so it spares work and decides nothing.
    """

    components: Components
    best: ArcArray  # ARC records: arcs known on entry, the shortest when the search is over
    certain: BoolArray  # components that need no search
    horizon: FloatArray  # of `NeighbourLists`; grows to what the search has seen
    prototypes: BoolArray  # ends of arcs between classes that tie with a shortest one are marked
    bounds: FloatArray  # how long the shortest arc out of each component is at most


#: Finds the shortest arcs, marks the ends of those that tie, and moves the horizon.
Search = Callable[[OutgoingArcSearch], None]


def search_twice(
    search: OutgoingArcSearch, find: Callable[[bool, Team], ArcArray], n_threads: int
) -> None:
    """Take over the arcs that ``find(False, team)`` finds; where some tie, ``find(True, team)`` marks ends."""
    with Team(n_threads) as team:
        found = find(False, team)
        # Each thread has some of the components, and looks for their arcs among all.
        team.map_shares(lambda low, high: _take_over(search, found, low, high), len(search.best))
        if any_tied(search.best, ~search.certain, team):
            find(True, team)


def any_tied(best: ArcArray, among: BoolArray, team: Team = ALONE) -> bool:
    """Whether the shortest arc of any of some components has an equal."""
    tied = best["tied"]

    def look(start: int, stop: int) -> bool:
        return bool((among[start:stop] & (tied[start:stop] != 0)).any())

    return any(team.map_rows(look, len(best)))


def wanted_points(search: OutgoingArcSearch, marking: bool) -> BoolArray:
    """Find the points from which an arc might be, or with `marking` tie with, their component's shortest."""
    best = search.best
    wanting = ~search.certain & (best["tied"] != 0) if marking else ~search.certain
    # Nobody is within a negative bound.
    wanted: BoolArray = (
        search.horizon <= np.where(wanting, best["squared"], -1.0)[search.components.of]
    )
    return wanted


@helper
def offer(best, component, squared, inside, outside, index):
    """Offer an arc to the component that it leaves, which keeps the first in the order of arcs."""
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
    """Offer arcs to the components of their first ends, if they leave these."""
    of, index = components.of, components.indices
    for e in range(len(squared)):
        u, v = inside[e], outside[e]
        if of[u] != of[v]:
            offer(best, np.int64(of[u]), squared[e], u, v, index)


@jit
def _take_over(search, found, low, high):
    """Take over the arcs that were found for the components from `low` to `high`."""
    of, index = search.components.of, search.components.indices
    best, bounds = search.best, search.bounds
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
