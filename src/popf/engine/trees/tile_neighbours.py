"""Neighbours by blocks of matrix products, for dimensions in which a space tree prunes nothing.

Every pair of blocks is multiplied once and serves both. Pairs are played in the order of a tournament, in
which a block meets one other in each turn, so that threads seldom want the same block at the same time.
Lists are ordered by (distance, position): what is in them at the end does not depend on who came first.
"""

from threading import Lock

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, lowest_bit, tile_hits
from popf.engine.runtime.threads import BufferPool, Team, one_blas_thread
from popf.engine.structures import BoolArray, NeighbourLists
from popf.engine.tiles import (
    PANEL,
    OrderedPoints,
    Tile,
    empty_tiles,
    gap_between,
    multiply,
    rough_median,
    set_columns,
    set_rows,
    squared_distance,
    sufficient_bits,
)

N_NEIGHBOURS = 8
# Of two sides few arcs are wanted that lead across.
N_ACROSS = 4


def tournament(n_blocks: int) -> list[list[tuple[int, int]]]:
    """Pair every two blocks once, in turns in which no block occurs twice."""
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
    """Find the nearest neighbours of every point, by positions in ``ordered.points``.

    `sides` tells on which of two sides each block is; then neighbours are those on the other side.
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
    pool = BufferPool(lambda: empty_tiles(size, size, n_features))
    # Each block with itself first: then bounds are low when it meets the others.
    others = [pair for pairs in tournament(n_blocks) for pair in pairs]
    if sides is not None:
        others = [(first, second) for first, second in others if sides[first] != sides[second]]
    locks = [Lock() for _ in range(n_blocks)]

    def compare_with_itself(block: int, _: int) -> None:
        with pool.borrow() as tiles:
            _compare(ordered, lists, block, block, tiles)

    def compare(start: int, stop: int) -> None:
        with pool.borrow() as tiles:
            for first, second in others[start:stop]:
                # The lower one first, so that no two threads wait for each other.
                with locks[first], locks[second]:
                    _compare(ordered, lists, first, second, tiles)

    with one_blas_thread(), Team(n_threads) as team:
        if sides is None:
            team.map_chunks(compare_with_itself, n_blocks, 1)
        team.map_chunks(compare, len(others), 1)
    last = lists.squared[:, -1]
    if k < n_points - 1:
        # What did not pass is farther than the last one listed; what was dropped may tie with it.
        np.copyto(lists.horizon, np.nextafter(last, np.inf), where=lists.horizon > last)
    return lists


def _compare(
    ordered: OrderedPoints,
    lists: NeighbourLists,
    first: int,
    second: int,
    tiles: dict[int, Tile],
) -> None:
    """Enter the points of two blocks into each other's lists."""
    if ordered.radii[second] < ordered.radii[first]:
        first, second = second, first  # the centre of the tighter block gives the sharper tile
    bits = _bits_needed(ordered, lists, first, second)
    if bits in tiles:
        _enter(tiles[bits], ordered, first, second, lists)


@jit
def _bits_needed(ordered, lists, first, second):
    """How many bits the tile of two blocks needs, -1 if they are too far apart to be compared."""
    bound, largest = _bounds_of_block(ordered, lists, first)
    other_bound, other_largest = _bounds_of_block(ordered, lists, second)
    if gap_between(ordered, first, second) > max(largest, other_largest):
        return -1
    bound = min(bound, other_bound)
    return sufficient_bits(ordered.points.shape[1], ordered.radii[first], bound, 1.0)


@helper
def _bounds_of_block(ordered, lists, block):
    """Return about the median, and the largest, of the bounds of a block's points."""
    squared, last = lists.squared, lists.squared.shape[1] - 1
    start, stop = ordered.starts[block], ordered.starts[block + 1]
    bounds, largest = np.empty(stop - start), 0.0
    for i in range(stop - start):
        bounds[i] = squared[start + i, last]
        largest = max(largest, bounds[i])
    return rough_median(bounds), largest


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
    # A pair is wanted by either end whose list it could enter. Invariant: bounds are never below the last
    # distance on the list, so no pair that belongs on a list is filtered out.
    for i in range(b - a):
        row_bounds[i] = squared[a + i, last] * widen + slack
    if first != second:  # a block with itself holds every pair twice: rows alone suffice
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
                            continue  # past the end, or the point itself
                        # Products only filter: lists hold distances computed directly.
                        found = squared_distance(points, row, points, other)
                        row_bounds[at] = _insert(lists, row, other, found) * widen + slack
                        if first != second:
                            column_bounds[j] = _insert(lists, other, row, found) * widen + slack
