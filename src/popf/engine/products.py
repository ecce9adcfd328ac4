"""Neighbours by blocks of matrix products, for dimensions in which a space tree prunes nothing.

Every pair of blocks is multiplied once and serves both. Pairs are played as in a tournament: in each turn
a block meets one other, so that threads share no lists, and what comes out does not depend on their number.
"""

from collections import deque

import numpy as np

from .blas import one_blas_thread
from .boruvka import are_wanted, offer, take_over
from .jit import jit
from .lanes import LANES, lowest_bit, tile_hits
from .structures import (
    ArcArray,
    BoolArray,
    Components,
    IntArray,
    NeighbourLists,
    RoundState,
)
from .threads import Team, map_chunks
from .tiles import (
    OrderedPoints,
    Workbench,
    Workbenches,
    gap,
    make_tile,
    precision,
    squared_distance,
    with_bounds,
)

N_NEIGHBOURS = 8


def tournament(n_blocks: int) -> list[list[tuple[int, int]]]:
    """Pair every two blocks once, in turns in which no block occurs twice.

    Examples
    --------
    >>> from popf.engine.products import tournament
    >>> tournament(4)
    [[(0, 3), (1, 2)], [(0, 2), (1, 3)], [(0, 1), (2, 3)]]
    """
    seats = n_blocks + n_blocks % 2
    turns = []
    for turn in range(seats - 1):
        # The circle method: seat 0 stays, the others move on by one.
        circle = [0] + [1 + (seat - turn) % (seats - 1) for seat in range(seats - 1)]
        pairs = zip(circle[: seats // 2], reversed(circle[seats // 2 :]), strict=True)
        turns.append([(min(p), max(p)) for p in pairs if max(p) < n_blocks])
    return turns


def nearest_neighbours(ordered: OrderedPoints, n_threads: int = 1) -> NeighbourLists:
    """Find the nearest neighbours of every point.

    Parameters
    ----------
    ordered : OrderedPoints
    n_threads : int

    Returns
    -------
    NeighbourLists
        Positions are those of ``ordered.points``.
    """
    n_points = len(ordered.points)
    k = min(N_NEIGHBOURS, n_points - 1)
    lists = NeighbourLists(
        np.full((n_points, k), -1, dtype=np.int32),
        np.full((n_points, k), np.inf),
        np.full(n_points, np.inf),
    )
    n_blocks = len(ordered.radii)
    # Each block with itself first: then bounds are low when it meets the others.
    turns = [[(block, block) for block in range(n_blocks)], *tournament(n_blocks)]
    benches = Workbenches()
    with one_blas_thread(), Team(n_threads) as team:
        for pairs in turns:

            def meet(start: int, stop: int, pairs: list[tuple[int, int]] = pairs) -> None:
                with benches.one() as bench:
                    for first, second in pairs[start:stop]:
                        _meet(ordered, lists, first, second, bench)

            team.map_chunks(meet, len(pairs), 1)
    last = lists.squared[:, -1]
    if k < n_points - 1:
        # What did not pass is farther than the last one listed; what was dropped may tie with it.
        np.copyto(lists.horizon, np.nextafter(last, np.inf), where=lists.horizon > last)
    return lists


def _meet(
    ordered: OrderedPoints, lists: NeighbourLists, first: int, second: int, bench: Workbench
) -> None:
    """Let the points of two blocks enter each other's lists."""
    if ordered.radii[second] < ordered.radii[first]:
        first, second = second, first  # the centre of the tighter block gives the sharper tile
    last = lists.squared[:, -1]
    a, b = ordered.starts[first], ordered.starts[first + 1]
    c, d = ordered.starts[second], ordered.starts[second + 1]
    bounds, other_bounds = last[a:b], last[c:d]
    if gap(ordered, first, np.array([second]))[0] > max(bounds.max(), other_bounds.max()):
        return
    typical = float(min(np.median(bounds), np.median(other_bounds)))
    real = precision(ordered.points.shape[1], float(ordered.radii[first]), typical)
    tile = make_tile(ordered.points[a:b], ordered.points[c:d], ordered.centers[first], real, bench)
    tile = with_bounds(tile, bounds, None if first == second else other_bounds)
    _enter(tile, ordered.points, a, c, lists)


@jit
def _insert(lists, row, position, squared):
    """Insert a neighbour into a sorted list if it is near enough; returns the new bound."""
    k = lists.squared.shape[1]
    bound = lists.squared[row, k - 1]
    if squared > bound:
        return bound
    lists.horizon[row] = min(lists.horizon[row], bound)  # what falls out, or ties
    if squared == bound:
        return bound
    slot = k - 1
    while slot > 0 and lists.squared[row, slot - 1] > squared:
        lists.squared[row, slot] = lists.squared[row, slot - 1]
        lists.positions[row, slot] = lists.positions[row, slot - 1]
        slot -= 1
    lists.squared[row, slot] = squared
    lists.positions[row, slot] = position
    return lists.squared[row, k - 1]


@jit
def _enter(tile, points, first, second, lists):
    """Enter all pairs of a tile that are near enough into the lists of both."""
    products, row_norms, column_norms = tile.products, tile.row_norms, tile.column_norms
    row_bounds, column_bounds = tile.row_bounds, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    for i in range(products.shape[0]):
        row = first + i
        for column in range(0, products.shape[1], LANES):
            hits = tile_hits(
                products, i, column, row_norms[i], column_norms, row_bounds[i], column_bounds
            )
            while hits != 0:
                j = column + lowest_bit(hits)
                hits &= hits - 1
                other = second + j
                if column_norms[j] == np.inf or other == row:
                    continue
                squared = squared_distance(points, row, points, other)
                row_bounds[i] = _insert(lists, row, other, squared) * widen + slack
                if first != second:
                    column_bounds[j] = _insert(lists, other, row, squared) * widen + slack


def nearest_outsiders(
    ordered: OrderedPoints,
    n_threads: int,
    components: Components,
    lists: NeighbourLists,
    best: ArcArray,
    certain: BoolArray,
    prototypes: BoolArray,
) -> None:
    """Find the shortest arc out of every component whose `best` arc is not `certain`.

    Parameters
    ----------
    ordered : OrderedPoints
    n_threads, components, lists, best, certain, prototypes
        As for `neighbours.nearest_outsiders`.
    """
    only = _common_component(ordered.starts, components.of)
    benches = Workbenches()

    def search(bests: list[ArcArray], marking: bool) -> None:
        wanted = are_wanted(components.of, lists.horizon, best, certain, marking)
        blocks = np.unique(np.searchsorted(ordered.starts, np.flatnonzero(wanted), "right") - 1)

        # One for each thread, lent to a block at a time, so that Ctrl-C waits for no more than that.
        free = deque(bests)

        def search_block(start: int, _: int) -> None:
            mine, block = free.pop(), int(blocks[start])
            state = RoundState(components, mine, certain, only, lists.horizon)
            first, last = ordered.starts[block], ordered.starts[block + 1]
            rows = first + np.flatnonzero(wanted[first:last])
            with benches.one() as bench:
                _search_block(ordered, block, rows, state, marking, prototypes, bench)
            free.append(mine)

        map_chunks(search_block, len(blocks), 1, n_threads)

    bests = [best] + [best.copy() for _ in range(1, n_threads)]
    with one_blas_thread():
        search(bests, marking=False)
        for other in bests[1:]:
            take_over(best, other, components.indices)
        if best["tied"][~certain].any():
            search([best] * n_threads, marking=True)


def _search_block(
    ordered: OrderedPoints,
    block: int,
    rows: IntArray,
    state: RoundState,
    marking: bool,
    prototypes: BoolArray,
    bench: Workbench,
) -> None:
    """Search for outsiders of some points of one block, the nearest other blocks first."""
    of = state.components.of
    # Others may have lowered the bounds since.
    rows = rows[state.horizon[rows] <= state.best["squared"][of[rows]]]
    if len(rows) == 0:
        return
    common = of[rows[0]] if (of[rows] == of[rows[0]]).all() else -1
    others = np.flatnonzero((state.only < 0) | (state.only != common))
    clear = gap(ordered, block, others)
    for rank in np.argsort(clear, kind="stable"):
        bounds = state.best["squared"][of[rows]]
        if clear[rank] > bounds.max():
            break
        other = others[rank]
        a, b = ordered.starts[other], ordered.starts[other + 1]
        real = precision(ordered.points.shape[1], float(ordered.radii[block]), float(bounds.min()))
        points, center = ordered.points, ordered.centers[block]
        tile = make_tile(points[rows], points[a:b], center, real, bench)
        tile = with_bounds(tile, bounds, None)
        _offer_tile(tile, ordered.points, rows, a, state, marking, prototypes)
    seen = state.best["squared"][of[rows]]
    state.horizon[rows] = np.maximum(state.horizon[rows], seen)


@jit
def _offer_tile(tile, points, rows, second, state, marking, prototypes):
    """Offer the arcs of a tile that leave their components; mark those that tie, if `marking`."""
    products, row_norms, column_norms = tile.products, tile.row_norms, tile.column_norms
    row_bounds, column_bounds = tile.row_bounds, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    of, index, classes = state.components.of, state.components.indices, state.components.classes
    best = state.best
    for i in range(products.shape[0]):
        row = rows[i]
        component = of[row]
        known = best[component]["squared"] * widen + slack
        row_bounds[i] = min(np.float64(row_bounds[i]), known)
        for column in range(0, products.shape[1], LANES):
            hits = tile_hits(
                products, i, column, row_norms[i], column_norms, row_bounds[i], column_bounds
            )
            while hits != 0:
                j = column + lowest_bit(hits)
                hits &= hits - 1
                other = second + j
                if column_norms[j] == np.inf or of[other] == component:
                    continue
                squared = squared_distance(points, row, points, other)
                bound = best[component]["squared"]
                if marking:
                    if squared == bound and classes[row] != classes[other]:
                        prototypes[row] = True
                        prototypes[other] = True
                elif squared <= bound:
                    offer(best, component, squared, row, other, index)
                    row_bounds[i] = squared * widen + slack


@jit
def _common_component(starts, of):
    """Give for every block the component that holds all of its points, or -1."""
    only = np.empty(len(starts) - 1, dtype=np.int32)
    for block in range(len(only)):
        only[block] = of[starts[block]]
        for i in range(starts[block] + 1, starts[block + 1]):
            if of[i] != only[block]:
                only[block] = -1
                break
    return only
