"""The shortest arcs out of components by blocks of matrix products, where lists of neighbours have ended."""

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, lowest_bit, tile_hits
from popf.engine.runtime.threads import BufferPool, Team, one_blas_thread
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.engine.tiles import (
    PANEL,
    OrderedPoints,
    Tile,
    empty_tiles,
    gap,
    multiply,
    set_columns,
    set_rows,
    squared_distance,
    sufficient_bits,
)
from popf.engine.trees.outgoing_arcs import (
    ARC,
    ArcArray,
    OutgoingArcSearch,
    offer,
    search_twice,
    wanted_points,
)

# Blocks that one is compared with in one call: short enough for Ctrl-C, long enough to forget the call.
CALL_BLOCKS = 16
# Shares of a search for each thread, so that all end at about the same time.
SHARES = 4


def nearest_outsiders(
    ordered: OrderedPoints,
    n_threads: int,
    search: OutgoingArcSearch,
    sides: BoolArray | None = None,
) -> None:
    """Find the shortest arc out of every component that is not certain of it.

    With `sides`, as for `tile_neighbours.nearest_neighbours`, only arcs between the sides are looked for.
    """
    only = _common_component(ordered.starts, search.components.of)
    size, n_features = int(np.diff(ordered.starts).max()), ordered.points.shape[1]
    pool = BufferPool(lambda: empty_tiles(size, size, n_features))

    def find(marking: bool, team: Team) -> ArcArray:
        rows = np.flatnonzero(wanted_points(search, marking))
        if len(rows) == 0:
            return np.empty(0, dtype=ARC)
        parts = _block_searches(ordered, search, rows, only, sides, n_threads)

        def go_on(task: int, _: int) -> None:
            turn, number = divmod(task, len(parts))
            with pool.borrow() as tiles:
                parts[number].go_on(turn, tiles, ordered, search, marking)

        # The nearest blocks of all come first, so that most others need not be compared any more.
        n_turns = max((part.n_turns for part in parts), default=0)
        team.map_chunks(go_on, n_turns * len(parts), 1)
        _raise_horizons(parts, search.horizon)
        return np.concatenate([part.wanted.found for part in parts])

    with one_blas_thread():
        search_twice(search, find, n_threads)


class Wanted(NamedTuple):
    """Points of one block that need outsiders."""

    block: int
    rows: IntArray
    limits: FloatArray  # how far each has to look, as far as it has looked; -inf when it is done
    found: ArcArray  # ARC records: the shortest arc found from each


class BlockSearch:
    """A search for outsiders of some rows of one block in other blocks, a few at a time.

    The `others` come nearest first, with lower bounds on their squared distances, the `gaps`.
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


def _block_searches(
    ordered: OrderedPoints,
    search: OutgoingArcSearch,
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
        others, gaps = _others(ordered, block, part, only, search.components.of)
        if sides is not None:
            across = sides[others] != sides[block]
            others, gaps = others[across], gaps[across]
        searches += [
            BlockSearch(block, part, others[share::n_shares].copy(), gaps[share::n_shares].copy())
            for share in range(n_shares)
        ]
    return searches


def _raise_horizons(searches: list[BlockSearch], horizon: FloatArray) -> None:
    """Raise horizons: nothing outside is nearer to a row than the limit of all searches for it."""
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
def _search_block(tile, bits, ordered, here, others, gaps, search, marking):
    """Search for outsiders of some points of one block in others.

    Returns how many bits that takes: if others than the tile's, nothing was done; -1 if it is over.
    """
    of, lengths, horizon = search.components.of, search.bounds, search.horizon
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
                _offer_panel(tile, products, place, here, active, search, marking)
    return bits


@helper
def _offer_panel(tile, products, place, here, active, search, marking):
    """Offer the arcs of a panel that leave their components; mark those that tie, if wanted."""
    points, start, top, left = place
    of, index, classes = search.components.of, search.components.indices, search.components.classes
    lengths, prototypes = search.bounds, search.prototypes
    rows, limits, found = here.rows, here.limits, here.found
    norms, column_norms, column_bounds = tile.row_norms, tile.column_norms, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    for i in range(products.shape[0]):
        at = active[top + i]
        row = rows[at]
        component = of[row]
        # Invariant: no outsider that was compared with the row is nearer than its limit.
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
                    continue  # past the end, or no outsider
                squared = squared_distance(points, row, points, other)
                if marking:
                    # An arc as short as the shortest lies in some minimum tree (cut property).
                    if squared == limit and classes[row] != classes[other]:
                        prototypes[row] = True
                        prototypes[other] = True
                elif squared <= limit:
                    offer(found, at, squared, row, other, index)
                    limit = squared
                    bound = limit * widen + slack
        limits[at] = limit
        # Spares other rows of the component work; the arc itself was offered above.
        if limit < lengths[component]:
            lengths[component] = limit


@jit
def _common_component(starts, of):
    """Return for every block the component that holds all of its points, or -1."""
    only = np.empty(len(starts) - 1, dtype=np.int32)
    for block in range(len(only)):
        only[block] = of[starts[block]]
        for i in range(starts[block] + 1, starts[block + 1]):
            if of[i] != only[block]:
                only[block] = -1
                break
    return only
