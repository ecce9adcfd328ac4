"""Nearest neighbours and outsiders (points of other components) in high dimension, by tiles of matrix products.

Every pair of blocks is multiplied once, for the lists of both. Pairs are ordered as in a round-robin
tournament, in which each block meets one other block per round, so that threads seldom need the same block at
the same time. Lists are ordered by (distance, position), so the result does not depend on the order of the
pairs. Where lists are exhausted, `nearest_outsiders` compares blocks again, the nearest first.
"""

from itertools import combinations
from threading import Lock, RLock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.mst.boruvka import offer, search_and_mark, wanted_points
from popf.engine.points import OrderedPoints, gap_between, gaps_from, squared_distance
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, lowest_bit, tile_hits
from popf.engine.runtime.threads import BufferPool, Team, map_chunks, one_blas_thread
from popf.engine.structures import (
    ARC,
    ArcArray,
    FloatArray,
    IntArray,
    NeighbourLists,
    OutgoingArcSearch,
    ceil_div,
)
from popf.engine.tiles import (
    PANEL,
    Tile,
    empty_tiles,
    multiply,
    rough_median,
    set_columns,
    set_rows,
    sufficient_bits,
)

N_NEIGHBOURS = 8
# Blocks that one block is compared with per call: few enough for Ctrl-C, enough to make the overhead small.
CALL_BLOCKS = 16
# Minimum number of searches per thread, so that all threads finish at about the same time.
SEARCHES_PER_THREAD = 4


def nearest_neighbours(ordered: OrderedPoints, n_threads: int = 1) -> NeighbourLists:
    """Find the nearest neighbours of every point, by positions in ``ordered.points``."""
    n_points = len(ordered.points)
    k = min(N_NEIGHBOURS, n_points - 1)
    lists = NeighbourLists(
        np.full((n_points, k), -1, dtype=np.int32),
        np.full((n_points, k), np.inf),
        np.full(n_points, np.inf),
    )
    radii, n_blocks, pool = ordered.radii, len(ordered.radii), _tile_pool(ordered)
    # Each block with itself first, so that bounds are low when it meets the others: in round t, block b meets
    # block t - b, modulo the number of blocks.
    pairs = [(block, block) for block in range(n_blocks)]
    pairs += sorted(combinations(range(n_blocks), 2), key=lambda pair: sum(pair) % n_blocks)
    locks = [RLock() for _ in range(n_blocks)]

    def compare(at: int, _: int) -> None:
        first, second = pairs[at]
        # The lower block is locked first, so that threads cannot deadlock.
        with pool.borrow() as tiles, locks[first], locks[second]:
            # The centre of the block with the smaller radius gives tighter bounds.
            if radii[second] < radii[first]:
                first, second = second, first
            bits = _bits_needed(ordered, lists, first, second)
            if bits in tiles:
                _update_neighbour_lists(tiles[bits], ordered, first, second, lists)

    with one_blas_thread():
        map_chunks(compare, len(pairs), 1, n_threads)
    last = lists.squared[:, -1]
    if k < n_points - 1:
        # Points that did not pass are farther than the last one listed; points dropped may tie with it.
        np.copyto(lists.horizon, np.nextafter(last, np.inf), where=lists.horizon > last)
    return lists


def _tile_pool(ordered: OrderedPoints) -> BufferPool[dict[int, Tile]]:
    """Return a pool of tiles for two blocks, with one set for each thread."""
    size, n_features = int(np.diff(ordered.starts).max()), ordered.points.shape[1]
    return BufferPool(lambda: empty_tiles(size, size, n_features))


@jit
def _bits_needed(ordered, lists, first, second):
    """Return the bits that the tile of two blocks needs, or -1 if they are too far apart to be compared."""
    bound, largest = _bounds_of_block(ordered, lists, first)
    other_bound, other_largest = _bounds_of_block(ordered, lists, second)
    if gap_between(ordered, first, second) > max(largest, other_largest):
        return -1
    bound = min(bound, other_bound)
    return sufficient_bits(ordered.points.shape[1], ordered.radii[first], bound, 1.0)


@helper
def _bounds_of_block(ordered, lists, block):
    """Return the approximate median and the maximum of the bounds of a block's points."""
    squared, last = lists.squared, lists.squared.shape[1] - 1
    start, stop = ordered.starts[block], ordered.starts[block + 1]
    bounds, largest = np.empty(stop - start), 0.0
    for i in range(stop - start):
        bounds[i] = squared[start + i, last]
        largest = max(largest, bounds[i])
    return rough_median(bounds), largest


@helper
def _insert(lists, row, position, squared):
    """Insert a neighbour into a sorted list if it is near enough; return the new bound."""
    # No local variables: in this innermost loop, their reference counts would cost a tenth of the time.
    k = lists.squared.shape[1]
    bound = lists.squared[row, k - 1]
    if squared > bound:
        return bound
    lists.horizon[row] = min(lists.horizon[row], bound)  # a neighbour is dropped, or ties
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
def _update_neighbour_lists(tile, ordered, first, second, lists):
    """Insert all pairs of two blocks that are near enough into the lists of both."""
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
    # A pair passes if it could enter the list of either end. Invariant: bounds are never below the last
    # distance on the list, so no pair that belongs on a list is filtered out.
    for i in range(b - a):
        row_bounds[i] = squared[a + i, last] * widen + slack
    if first != second:  # a block with itself has every pair twice, so rows are enough
        for j in range(d - c):
            column_bounds[j] = squared[c + j, last] * widen + slack
    for top in range(0, b - a, PANEL):
        for left in range(0, width, PANEL):
            products = multiply(tile, top, b - a, left, width)
            for i in range(products.shape[0]):
                at, row = top + i, a + top + i
                norm = row_norms[at]
                for column in range(0, products.shape[1], LANES):
                    bound, first_j = row_bounds[at], left + column
                    hits = tile_hits(
                        products, i, column, norm, column_norms, bound, column_bounds, first_j
                    )
                    while hits != 0:
                        j = first_j + lowest_bit(hits)
                        hits &= hits - 1
                        other = c + j
                        if column_norms[j] == np.inf or other == row:
                            continue  # padding, or the point itself
                        # Products only filter: lists contain distances computed directly.
                        value = squared_distance(points, row, points, other)
                        row_bounds[at] = _insert(lists, row, other, value) * widen + slack
                        if first != second:
                            column_bounds[j] = _insert(lists, other, row, value) * widen + slack


def nearest_outsiders(ordered: OrderedPoints, n_threads: int, search: OutgoingArcSearch) -> None:
    """Find the shortest arc out of every component that is not `certain`."""
    of, firsts = search.components.of, ordered.starts[:-1]
    # The component of all points of a block, or -1 if they are in several.
    lowest, highest = np.minimum.reduceat(of, firsts), np.maximum.reduceat(of, firsts)
    only = np.where(lowest == highest, lowest, -1)
    pool = _tile_pool(ordered)

    def find(marking: bool, team: Team) -> ArcArray:
        rows = np.flatnonzero(wanted_points(search, marking))
        if len(rows) == 0:
            return np.empty(0, dtype=ARC)
        parts = _block_searches(ordered, of, rows, only, n_threads)
        locks = [Lock() for _ in parts]

        def search_some(task: int, _: int) -> None:
            turn, number = divmod(task, len(parts))
            next_ones = slice(turn * CALL_BLOCKS, (turn + 1) * CALL_BLOCKS)
            part = parts[number]
            part = part._replace(others=part.others[next_ones], gaps=part.gaps[next_ones])
            bits, needed = -1, 32
            with pool.borrow() as tiles, locks[number]:
                while needed != bits and needed in tiles:
                    bits = needed
                    needed = _search_block(tiles[bits], bits, ordered, part, search, marking)

        # All searches start with their nearest blocks, so that most others need not be compared.
        n_turns = ceil_div(max(len(part.others) for part in parts), CALL_BLOCKS)
        team.map_chunks(search_some, n_turns * len(parts), 1)
        # No outsider is nearer to a row than the smallest limit of its searches.
        limits = np.full(len(of), np.inf)
        for part in parts:
            limits[part.rows] = np.minimum(limits[part.rows], part.limits)
        search.horizon[rows] = np.maximum(search.horizon[rows], limits[rows])
        return np.concatenate([part.shortest for part in parts])

    with one_blas_thread():
        search_and_mark(search, find, n_threads)


class BlockSearch(NamedTuple):
    """A search in other blocks for the nearest outsiders of some points of one block."""

    block: int
    rows: IntArray  # the points
    limits: FloatArray  # squared distance up to which each point searches; -inf when done
    shortest: ArcArray  # ARC records: the shortest arc from each so far
    others: IntArray  # the other blocks, nearest first
    gaps: FloatArray  # lower bounds on their squared distances


def _block_searches(
    ordered: OrderedPoints,
    of: NDArray[np.int32],
    rows: IntArray,
    only: NDArray[np.int32],
    n_threads: int,
) -> list[BlockSearch]:
    """Prepare the searches for outsiders of some rows, enough of them to keep all threads busy."""
    of_row = np.searchsorted(ordered.starts, rows, "right") - 1
    blocks, firsts = np.unique(of_row, return_index=True)
    n_shares = 1 if n_threads == 1 else ceil_div(SEARCHES_PER_THREAD * n_threads, len(blocks))
    searches = []
    for block, part in zip(blocks.tolist(), np.split(rows, firsts[1:]), strict=True):
        # A block whose points are all in this component holds no outsiders.
        common = of[part[0]] if (of[part] == of[part[0]]).all() else -1
        others = np.flatnonzero((only < 0) | (only != common))
        gaps = gaps_from(ordered, block, others)
        order = np.argsort(gaps, kind="stable")
        others, gaps = others[order], gaps[order]
        for share in range(n_shares):
            shortest = np.empty(len(part), dtype=ARC)
            shortest["squared"], shortest["inside"], shortest["tied"] = np.inf, -1, 0
            mine = others[share::n_shares].copy(), gaps[share::n_shares].copy()
            searches.append(BlockSearch(block, part, np.full(len(part), np.inf), shortest, *mine))
    return searches


@jit
def _search_block(tile, bits, ordered, here, search, marking):
    """Search other blocks for outsiders of some points of one block.

    Returns the number of bits that this needs, or -1 if nothing is left to search. The search is only run if
    `bits`, those of the tile, is that number.
    """
    of, lengths, horizon = search.components.of, search.bounds, search.horizon
    points, starts, block = ordered.points, ordered.starts, here.block
    rows, limits, others, gaps = here.rows, here.limits, here.others, here.gaps
    active, wanted = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    # Points whose horizon is beyond their limit know all arcs that could be shorter, so they are done.
    # Not a literal 0, for which Numba would compile `set_rows` again.
    count, least, most = np.int64(0), np.inf, -np.inf
    for i in range(len(rows)):
        row = rows[i]
        if limits[i] >= 0.0:
            # Other threads may have found a shorter arc out of the component since.
            limits[i] = min(limits[i], lengths[of[row]])
            if horizon[row] <= limits[i]:
                active[count], wanted[count] = i, row
                count += 1
                least, most = min(least, limits[i]), max(most, limits[i])
            else:
                limits[i] = -np.inf
    if count == 0 or len(others) == 0 or gaps[0] > most:
        return -1
    needed = sufficient_bits(points.shape[1], ordered.radii[block], least, 1.0)
    if needed != bits:
        return needed
    center = ordered.centers[block]
    set_rows(tile, points, wanted, count, center)
    # Other blocks are sorted by gap: once a gap exceeds all limits, no further block can help.
    for rank in range(len(others)):
        most = -np.inf
        for i in range(count):
            most = max(most, limits[active[i]])
        if gaps[rank] > most:
            break
        start, stop = starts[others[rank]], starts[others[rank] + 1]
        width = set_columns(tile, points, start, stop, center)
        for top in range(0, count, PANEL):
            for left in range(0, width, PANEL):
                products = multiply(tile, top, count, left, width)
                place = points, start, top, left
                _offer_panel(tile, products, place, here, active, search, marking)
    return bits


@helper
def _offer_panel(tile, products, place, here, active, search, marking):
    """Offer the arcs of a panel that leave their components, or with `marking` mark the ends of tied arcs."""
    points, start, top, left = place
    of, index, classes = search.components.of, search.components.indices, search.components.classes
    lengths, tied = search.bounds, search.tied
    rows, limits, shortest = here.rows, here.limits, here.shortest
    norms, column_norms, column_bounds = tile.row_norms, tile.column_norms, tile.column_bounds
    widen, slack = tile.widen, tile.slack
    for i in range(products.shape[0]):
        at = active[top + i]
        row = rows[at]
        component = of[row]
        # Invariant: no outsider compared with the row so far is nearer than its limit.
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
                    continue  # padding, or not an outsider
                squared = squared_distance(points, row, points, other)
                if marking:
                    # Arcs as short as the shortest are in some minimum spanning tree (cut property).
                    if squared == limit and classes[row] != classes[other]:
                        tied[row] = True
                        tied[other] = True
                elif squared <= limit:
                    offer(shortest, at, squared, row, other, index)
                    limit = squared
                    bound = limit * widen + slack
        limits[at] = limit
        # This saves work for other rows of the component; the arc itself was offered above.
        if limit < lengths[component]:
            lengths[component] = limit
