"""Neighbours by blocks of matrix products, for dimensions in which a space tree prunes nothing.

Every pair of blocks is multiplied once and serves both. Pairs are played in the order of a tournament, in
which a block meets one other in each turn, so that threads seldom want the same block at the same time.
Lists are ordered by (distance, position): what is in them at the end does not depend on who came first.
"""

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .blas import one_blas_thread
from .boruvka import Hunt, any_tied, are_wanted, begin_hunt, end_hunt, offer
from .jit import helper, jit
from .lanes import LANES, lowest_bit, tile_hits
from .structures import (
    ARC,
    ArcArray,
    BoolArray,
    Components,
    FloatArray,
    IntArray,
    NeighbourLists,
)
from .threads import Team
from .tiles import (
    PANEL,
    OrderedPoints,
    Tile,
    empty_tiles,
    gap,
    gap_between,
    multiply,
    set_columns,
    set_rows,
    squared_distance,
    sufficient_bits,
    typical,
)
from .workbench import Workbenches

N_NEIGHBOURS = 8
# Of two sides few arcs are wanted that lead across.
N_ACROSS = 4
# Blocks that one is compared with in one call: short enough for Ctrl-C, long enough to forget the call.
CALL_BLOCKS = 16
# Shares of a search for each thread, so that all end at about the same time.
SHARES = 4


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


def nearest_neighbours(
    ordered: OrderedPoints, n_threads: int = 1, sides: BoolArray | None = None
) -> NeighbourLists:
    """Find the nearest neighbours of every point.

    Parameters
    ----------
    ordered : OrderedPoints
    n_threads : int
    sides : ndarray of shape (n_blocks,), optional
        On which of two sides each block is; then neighbours are those on the other side.

    Returns
    -------
    NeighbourLists
        Positions are those of ``ordered.points``.
    """
    n_points = len(ordered.points)
    k = min(N_NEIGHBOURS if sides is None else N_ACROSS, n_points - 1)
    lists = NeighbourLists(
        np.full((n_points, k), -1, dtype=np.int32),
        np.full((n_points, k), np.inf),
        np.full(n_points, np.inf),
    )
    n_blocks, n_features = ordered.centers.shape
    size = int(np.diff(ordered.starts).max())
    benches = Workbenches()
    # Each block with itself first: then bounds are low when it meets the others.
    others = [pair for pairs in tournament(n_blocks) for pair in pairs]
    if sides is not None:
        others = [(first, second) for first, second in others if sides[first] != sides[second]]
    locks = [Lock() for _ in range(n_blocks)]

    def meet_itself(block: int, _: int) -> None:
        with benches.one() as bench:
            _meet(ordered, lists, block, block, empty_tiles(bench, size, size, n_features))

    def meet(start: int, stop: int) -> None:
        with benches.one() as bench:
            tiles = empty_tiles(bench, size, size, n_features)
            for first, second in others[start:stop]:
                # The lower one first, so that no two threads wait for each other.
                with locks[first], locks[second]:
                    _meet(ordered, lists, first, second, tiles)

    with one_blas_thread(), Team(n_threads) as team:
        if sides is None:
            team.map_chunks(meet_itself, n_blocks, 1)
        team.map_chunks(meet, len(others), 1)
    last = lists.squared[:, -1]
    if k < n_points - 1:
        # What did not pass is farther than the last one listed; what was dropped may tie with it.
        np.copyto(lists.horizon, np.nextafter(last, np.inf), where=lists.horizon > last)
    return lists


def _meet(
    ordered: OrderedPoints,
    lists: NeighbourLists,
    first: int,
    second: int,
    tiles: dict[int, Tile],
) -> None:
    """Let the points of two blocks enter each other's lists."""
    if ordered.radii[second] < ordered.radii[first]:
        first, second = second, first  # the centre of the tighter block gives the sharper tile
    bits = _look_at(ordered, lists, first, second)
    if bits in tiles:
        _enter(tiles[bits], ordered, first, second, lists)


@jit
def _look_at(ordered, lists, first, second):
    """How many bits two blocks need to meet, -1 if they are too far apart to do so."""
    bound, largest = _bounds_of_block(ordered, lists, first)
    other_bound, other_largest = _bounds_of_block(ordered, lists, second)
    if gap_between(ordered, first, second) > max(largest, other_largest):
        return -1
    bound = min(bound, other_bound)
    return sufficient_bits(ordered.points.shape[1], ordered.radii[first], bound, 1.0)


@helper
def _bounds_of_block(ordered, lists, block):
    """Give a typical one and the largest of the distances within which its points want neighbours."""
    squared, last = lists.squared, lists.squared.shape[1] - 1
    start, stop = ordered.starts[block], ordered.starts[block + 1]
    bounds, largest = np.empty(stop - start), 0.0
    for i in range(stop - start):
        bounds[i] = squared[start + i, last]
        largest = max(largest, bounds[i])
    return typical(bounds), largest


@helper
def _insert(lists, row, position, squared):
    """Insert a neighbour into a sorted list if it is near enough; returns the new bound."""
    # No locals for the arrays: here, in the innermost loop, their reference counts would cost a tenth.
    k = lists.squared.shape[1]
    bound = lists.squared[row, k - 1]
    if squared > bound:
        return bound
    lists.horizon[row] = min(lists.horizon[row], bound)  # what falls out, or ties
    if squared == bound and position > lists.positions[row, k - 1]:
        return bound
    slot = k - 1
    while slot > 0 and (
        lists.squared[row, slot - 1] > squared
        or (lists.squared[row, slot - 1] == squared and lists.positions[row, slot - 1] > position)
    ):
        lists.squared[row, slot] = lists.squared[row, slot - 1]
        lists.positions[row, slot] = lists.positions[row, slot - 1]
        slot -= 1
    lists.squared[row, slot] = squared
    lists.positions[row, slot] = position
    return lists.squared[row, k - 1]


@jit
def _enter(tile, ordered, first, second, lists):
    """Enter all pairs of two blocks that are near enough into the lists of both."""
    points, starts, squared = ordered.points, ordered.starts, lists.squared
    a, b, c, d = starts[first], starts[first + 1], starts[second], starts[second + 1]
    last = squared.shape[1] - 1
    rows, center = np.empty(b - a, dtype=np.int64), ordered.centers[first]
    for i in range(b - a):
        rows[i] = a + i
    set_rows(tile, points, rows, b - a, center)
    width = set_columns(tile, points, c, d, center)
    widen, slack = tile.widen, tile.slack
    row_norms, row_bounds = tile.row_norms, tile.row_bounds
    column_norms, column_bounds = tile.column_norms, tile.column_bounds
    for i in range(b - a):
        row_bounds[i] = squared[a + i, last] * widen + slack
    if first != second:
        for j in range(d - c):
            column_bounds[j] = squared[c + j, last] * widen + slack
    for top in range(0, b - a, PANEL):
        n_rows = min(PANEL, b - a - top)
        for left in range(0, width, PANEL):
            n_columns = min(PANEL, width - left)
            products = multiply(tile, top, n_rows, left, n_columns)
            for i in range(n_rows):
                at, row = top + i, a + top + i
                for column in range(0, n_columns, LANES):
                    hits = tile_hits(
                        products,
                        i,
                        column,
                        row_norms[at],
                        column_norms,
                        row_bounds[at],
                        column_bounds,
                        left + column,
                    )
                    while hits != 0:
                        j = left + column + lowest_bit(hits)
                        hits &= hits - 1
                        other = c + j
                        if column_norms[j] == np.inf or other == row:
                            continue
                        found = squared_distance(points, row, points, other)
                        row_bounds[at] = _insert(lists, row, other, found) * widen + slack
                        if first != second:
                            column_bounds[j] = _insert(lists, other, row, found) * widen + slack


def nearest_outsiders(
    ordered: OrderedPoints,
    n_threads: int,
    components: Components,
    lists: NeighbourLists,
    best: ArcArray,
    certain: BoolArray,
    prototypes: BoolArray,
    sides: BoolArray | None = None,
) -> None:
    """Find the shortest arc out of every component whose `best` arc is not `certain`.

    Parameters
    ----------
    ordered : OrderedPoints
    n_threads, components, lists, best, certain, prototypes
        As for `neighbours.nearest_outsiders`.
    sides : ndarray of shape (n_blocks,), optional
        As for `nearest_neighbours`: only arcs between the sides are looked for.
    """
    hunt = begin_hunt(components, lists, best, certain)
    only = _common_component(ordered.starts, components.of)
    size, n_features = int(np.diff(ordered.starts).max()), ordered.points.shape[1]
    benches = Workbenches()

    def search(marking: bool, team: Team) -> ArcArray:
        rows = np.flatnonzero(are_wanted(components.of, lists.horizon, best, certain, marking))
        if len(rows) == 0:
            return np.empty(0, dtype=ARC)
        searches = _searches(ordered, hunt, rows, only, sides, n_threads)

        def go_on(task: int, _: int) -> None:
            turn, number = divmod(task, len(searches))
            with benches.one() as bench:
                tiles = empty_tiles(bench, size, size, n_features)
                searches[number].go_on(turn, tiles, ordered, hunt, marking, prototypes)

        # The nearest blocks of all come first, so that most others need not be compared any more.
        n_turns = max((one.n_turns for one in searches), default=0)
        team.map_chunks(go_on, n_turns * len(searches), 1)
        _move_horizons(searches, lists.horizon)
        return np.concatenate([one.wanted.found for one in searches])

    with one_blas_thread(), Team(n_threads) as team:
        end_hunt(hunt, search(False, team), team)
        if any_tied(best, certain, False, team):
            search(True, team)


class Wanted(NamedTuple):
    """Points of one block that want outsiders.

    Attributes
    ----------
    block : int
    rows : ndarray of shape (n_rows,)
    limits : ndarray of shape (n_rows,)
        How far each has to look, as far as it has looked; -inf once it need not look any more.
    found : ndarray of ARC records
        The shortest arc from each that was found.
    """

    block: int
    rows: IntArray
    limits: FloatArray
    found: ArcArray


class BlockSearch:
    """A search for outsiders of one block in some others, a few at a time.

    Parameters
    ----------
    block : int
    rows : ndarray of shape (n_rows,)
        The points of the block that want outsiders.
    others, gaps : ndarray of shape (n_others,)
        Blocks to compare it with, the nearest first, and lower bounds on their squared distances.
    """

    def __init__(self, block: int, rows: IntArray, others: IntArray, gaps: FloatArray) -> None:
        found = np.empty(len(rows), dtype=ARC)
        found["squared"], found["inside"], found["tied"] = np.inf, -1, 0
        self.wanted = Wanted(block, rows, np.full(len(rows), np.inf), found)
        self.n_turns = -(-len(others) // CALL_BLOCKS)
        self._others, self._gaps = others, gaps
        self._bits = 32  # those of the tile that is used, none of them when the search is over
        self._lock = Lock()

    def go_on(self, turn: int, tiles: dict[int, Tile], ordered: OrderedPoints, *state: Any) -> None:
        """Compare the block with the next of the others."""
        now = slice(turn * CALL_BLOCKS, (turn + 1) * CALL_BLOCKS)
        others, gaps = self._others[now], self._gaps[now]
        with self._lock:
            while self._bits in tiles and len(others) > 0:
                bits = self._bits
                self._bits = _search_block(
                    tiles[bits], bits, ordered, self.wanted, others, gaps, *state
                )
                if self._bits == bits:
                    return


def _searches(
    ordered: OrderedPoints,
    hunt: Hunt,
    rows: IntArray,
    only: NDArray[np.int32],
    sides: BoolArray | None,
    n_threads: int,
) -> list[BlockSearch]:
    """Prepare the searches for outsiders of some rows, at least as many as keep all threads at work."""
    of_row = np.searchsorted(ordered.starts, rows, "right") - 1
    blocks, firsts = np.unique(of_row, return_index=True)
    n_shares = 1 if n_threads == 1 else -(-SHARES * n_threads // max(1, len(blocks)))
    searches = []
    for block, part in zip(blocks.tolist(), np.split(rows, firsts[1:]), strict=True):
        others, gaps = _others(ordered, block, part, only, hunt.components.of)
        if sides is not None:
            across = sides[others] != sides[block]
            others, gaps = others[across], gaps[across]
        searches += [
            BlockSearch(block, part, others[share::n_shares].copy(), gaps[share::n_shares].copy())
            for share in range(n_shares)
        ]
    return searches


def _move_horizons(searches: list[BlockSearch], horizon: FloatArray) -> None:
    """Nothing outside is nearer to a row than what limited all searches for it."""
    limits: dict[int, FloatArray] = {}
    for one in searches:
        block = one.wanted.block
        limits[block] = np.minimum(one.wanted.limits, limits.get(block, np.inf))
    for one in searches:
        rows = one.wanted.rows
        horizon[rows] = np.maximum(horizon[rows], limits[one.wanted.block])


def _others(
    ordered: OrderedPoints,
    block: int,
    rows: IntArray,
    only: NDArray[np.int32],
    of: NDArray[np.int32],
) -> tuple[IntArray, FloatArray]:
    """List the blocks in which rows of a block may find outsiders, the nearest first."""
    common = of[rows[0]] if (of[rows] == of[rows[0]]).all() else -1
    others = np.flatnonzero((only < 0) | (only != common))
    gaps = gap(ordered, block, others)
    order = np.argsort(gaps, kind="stable")
    return others[order], gaps[order]


@jit
def _search_block(tile, bits, ordered, here, others, gaps, hunt, marking, prototypes):
    """Search for outsiders of some points of one block in others.

    Returns how many bits that takes: if others than the tile's, nothing was done; -1 if it is over.
    """
    of, lengths, horizon = hunt.components.of, hunt.bounds, hunt.horizon
    points, starts, block = ordered.points, ordered.starts, here.block
    rows, limits = here.rows, here.limits
    active, wanted = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    # Not a literal 0, for which Numba would compile `set_rows` anew.
    count, least, most = np.int64(0), np.inf, -np.inf
    for i in range(len(rows)):
        row = rows[i]
        if limits[i] >= 0.0:
            # Others may have lowered the bounds since.
            limits[i] = min(limits[i], lengths[of[row]])
            if horizon[row] <= limits[i]:
                active[count], wanted[count] = i, row
                count += 1
                least, most = min(least, limits[i]), max(most, limits[i])
            else:
                limits[i] = -np.inf
    if count == 0 or gaps[0] > most:
        return -1
    needed = sufficient_bits(points.shape[1], ordered.radii[block], least, 1.0)
    if needed != bits:
        return needed
    center = ordered.centers[block]
    set_rows(tile, points, wanted, count, center)
    for rank in range(len(others)):
        most = -np.inf
        for i in range(count):
            most = max(most, limits[active[i]])
        if gaps[rank] > most:
            break
        start, stop = starts[others[rank]], starts[others[rank] + 1]
        width = set_columns(tile, points, start, stop, center)
        for top in range(0, count, PANEL):
            n_rows = min(PANEL, count - top)
            for left in range(0, width, PANEL):
                n_columns = min(PANEL, width - left)
                products = multiply(tile, top, n_rows, left, n_columns)
                place = points, start, top, left
                _offer_panel(tile, products, place, here, active, hunt, marking, prototypes)
    return bits


@helper
def _offer_panel(tile, products, place, here, active, hunt, marking, prototypes):
    """Offer the arcs of a panel that leave their components; mark those that tie, if wanted."""
    points, start, top, left = place
    of, index, classes = hunt.components.of, hunt.components.indices, hunt.components.classes
    lengths, rows, limits, found = hunt.bounds, here.rows, here.limits, here.found
    norms, column_norms, column_bounds = tile.row_norms, tile.column_norms, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    for i in range(products.shape[0]):
        at = active[top + i]
        row = rows[at]
        component = of[row]
        limit = min(limits[at], lengths[component])
        bound = limit * widen + slack
        for column in range(0, products.shape[1], LANES):
            j = left + column
            hits = tile_hits(
                products, i, column, norms[top + i], column_norms, bound, column_bounds, j
            )
            while hits != 0:
                hit = j + lowest_bit(hits)
                hits &= hits - 1
                other = start + hit
                if column_norms[hit] == np.inf or of[other] == component:
                    continue
                squared = squared_distance(points, row, points, other)
                if marking:
                    if squared == limit and classes[row] != classes[other]:
                        prototypes[row] = True
                        prototypes[other] = True
                elif squared <= limit:
                    offer(found, at, squared, row, other, index)
                    limit = squared
                    bound = limit * widen + slack
        limits[at] = limit
        if limit < lengths[component]:
            lengths[component] = limit


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
