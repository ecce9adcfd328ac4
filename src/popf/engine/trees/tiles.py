"""Tiles of matrix products: bounds on distances, and neighbours and outsiders for high dimension.

``|x - y|² = |x|² + |y|² - 2 x·y`` turns distances into a matrix product, the fastest thing a processor does,
but it cancels: far from the origin little of it is true. So both blocks are first moved to the centre of the
first one, and the result is used only as a *lower bound*. With unit roundoff u and d features, rounding
changes it by at most ``(d + 16) u (|x| + |y|)² <= 2 (d + 16) u (|x|² + |y|²)``, all operations counted (the two
conversions, the product in any order of summation, the norms, the sums), and that is taken off the norms.
Whatever passes a bound is computed anew, directly and in float64, before anything is decided.

A tile is multiplied panel after panel, each read while it is still in the cache, and all within one
call of a kernel: threads that went back to Python for every step would wait for its lock most of the time.

Every pair of blocks is multiplied once and serves both. Pairs come in the order of a tournament, in which a
block meets one other in each turn, so that threads seldom want the same block at the same time.
Lists are ordered by (distance, position): what is in them at the end does not depend on who came first.
Where they have ended, `nearest_outsiders` compares blocks once more, the nearest first.
"""

from itertools import combinations
from threading import Lock, RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import OrderedPoints, gap_between, gaps_from, squared_distance
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, lowest_bit, tile_hits
from popf.engine.runtime.threads import BufferPool, Team, map_chunks, one_blas_thread
from popf.engine.structures import (
    ARC,
    ArcArray,
    BoolArray,
    FloatArray,
    IntArray,
    NeighbourLists,
    OutgoingArcSearch,
)
from popf.engine.trees.boruvka import offer, search_and_mark, wanted_points

# Points in a block: enough that laying them out costs little beside the products, few enough that what
# one block learns soon serves the next.
BLOCK = 1024
SMALLEST_BLOCK = 64
# Points on a side of a panel: enough for BLAS, few enough for the products to stay in the cache.
PANEL = 256
N_NEIGHBOURS = 8
# Between two sides fewer are listed: few arcs of the tree lead across.
N_ACROSS = 4
# Blocks that one is compared with in one call: short enough for Ctrl-C, long enough that it costs little.
CALL_BLOCKS = 16
# Shares of a search for each thread, so that all end at about the same time.
SHARES = 4


def block_size(n_features: int, n_bytes: int) -> int:
    """How many points make a block, so that a tile and what it is made of take at most `n_bytes`."""
    # A tile in float64, and two blocks of points in float64 and in the tile's precision.
    block = BLOCK
    while block > SMALLEST_BLOCK and 8 * block * (block + 4 * n_features) > n_bytes:
        block -= LANES
    return block


class Tile(NamedTuple):
    """Two blocks of points, relative to a centre, and norms from which the rounding error is taken off.

    Pairs are wanted that are within the bound of their row or of their column.
    """

    left: NDArray[Any]  # (n_rows, n_features)
    right: NDArray[Any]  # (n_columns, n_features), a multiple of sixteen columns
    memory: NDArray[Any]  # (PANEL * PANEL,), for the products of a panel
    row_norms: NDArray[Any]
    column_norms: NDArray[Any]  # infinite past the end
    row_bounds: NDArray[Any]
    column_bounds: NDArray[Any]
    widen: float  # bound * widen + slack in the tile's precision is not below the bound in float64
    slack: float  # also covers squares that vanish below the smallest normal number
    shrink: float  # norms times this leave room for the rounding error; if 0, every pair passes every bound


@helper
def sufficient_bits(n_features, radius, bound, extent):
    """How many bits a tile's numbers need to tell enough about squared distances of about `bound`.

    What it lets pass in vain lies within about ``6 (d + 16) u radius²`` of the bound, where `radius` is that of
    the block whose centre the tile has. Points are within `extent` of it, and squares must not overflow.
    Returns 32, 64 or, where even float64 would let squares vanish, 0.
    """
    error = 6.0 * (n_features + 16) * 2.0**-23 * radius * radius
    if radius >= 1e-12 and radius + extent <= 1e15 and error <= 0.05 * bound:
        return 32
    return 64 if radius >= 1e-140 and radius + extent <= 1e150 else 0


@helper
def rough_median(values):
    """Return about the median of many values, from a few of them."""
    step = max(1, len(values) // 64)
    some = np.empty(-(-len(values) // step))
    for i in range(len(some)):
        value, j = values[i * step], i
        while j > 0 and some[j - 1] > value:
            some[j] = some[j - 1]
            j -= 1
        some[j] = value
    return some[len(some) // 2]


def empty_tile(n_rows: int, n_columns: int, n_features: int, real: Any) -> Tile:
    """Allocate a tile of at most so many rows and columns."""
    n_columns = -(-n_columns // LANES) * LANES
    facts = np.finfo(real)
    return Tile(
        left=np.empty((n_rows, n_features), real),
        right=np.empty((n_columns, n_features), real),
        memory=np.empty(PANEL * PANEL, real),
        row_norms=np.empty(n_rows, real),
        column_norms=np.empty(n_columns, real),
        row_bounds=np.empty(n_rows, real),
        column_bounds=np.empty(n_columns, real),
        widen=1.0 + 4.0 * float(facts.eps),
        slack=(n_features + 16) * float(facts.tiny),
        shrink=1.0 - 2.0 * (n_features + 16) * float(facts.eps),
    )


def empty_tiles(n_rows: int, n_columns: int, n_features: int) -> dict[int, Tile]:
    """Allocate tiles by the bits of their numbers, see `sufficient_bits`.

    Kernels are given one of them, and compiled for it alone: most data never needs the others.
    """
    single = empty_tile(n_rows, n_columns, n_features, np.float32)
    double = empty_tile(n_rows, n_columns, n_features, np.float64)
    return {32: single, 64: double, 0: double._replace(shrink=0.0)}


@helper
def set_rows(tile, points, rows, n_rows, center):
    """Copy the first `n_rows` of these rows to the rows of a tile, with infinite bounds."""
    left, norms, bounds, shrink = tile.left, tile.row_norms, tile.row_bounds, tile.shrink
    for i in range(n_rows):
        norms[i] = _move(points, rows[i], center, shrink, left, i)
        bounds[i] = np.inf


@helper
def set_columns(tile, points, start, stop, center):
    """Copy points `start` to `stop` to the columns of a tile, without bounds; returns the padded number."""
    right, norms, bounds, shrink = tile.right, tile.column_norms, tile.column_bounds, tile.shrink
    n_columns = -(-(stop - start) // LANES) * LANES
    for j in range(n_columns):
        bounds[j] = -np.inf
        if start + j < stop:
            norms[j] = _move(points, start + j, center, shrink, right, j)
        else:
            right[j] = 0.0
            norms[j] = np.inf
    return n_columns


@helper
def _move(points, row, center, shrink, out, at):
    """Move a point to the centre, in the precision of `out`; returns its squared norm, shrunken.

    If `shrink` is 0, the point is the centre itself, so that all its products and bounds are 0.
    """
    n_features = len(center)
    if shrink == 0.0:
        out[at] = 0.0
        return 0.0
    for f in range(n_features):
        out[at, f] = points[row, f] - center[f]
    # Four sums, because one would wait for itself.
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = n_features - n_features % 4
    for f in range(0, whole, 4):
        a, b = np.float64(out[at, f]), np.float64(out[at, f + 1])
        c, d = np.float64(out[at, f + 2]), np.float64(out[at, f + 3])
        first += a * a
        second += b * b
        third += c * c
        fourth += d * d
    for f in range(whole, n_features):
        a = np.float64(out[at, f])
        first += a * a
    return shrink * ((first + second) + (third + fourth))


@helper
def multiply(tile, row, last_row, column, last_column):
    """Multiply the panel of a tile that begins at a row and a column, and ends with the tile at the latest."""
    n_rows, n_columns = min(PANEL, last_row - row), min(PANEL, last_column - column)
    products = tile.memory[: n_rows * n_columns].reshape(n_rows, n_columns)
    left, right = tile.left[row : row + n_rows], tile.right[column : column + n_columns]
    np.dot(left, right.T, products)
    return products


# Neighbours and outsiders -------------------------------------------------------------------------------------


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
    radii, n_blocks, pool = ordered.radii, len(ordered.radii), _tile_pool(ordered)
    # In turn t a block b meets t - b, modulo the number of blocks.
    pairs = sorted(combinations(range(n_blocks), 2), key=lambda pair: sum(pair) % n_blocks)
    if sides is None:
        # Each block with itself first: then bounds are low when it meets the others.
        pairs = [(block, block) for block in range(n_blocks)] + pairs
    else:
        pairs = [(first, second) for first, second in pairs if sides[first] != sides[second]]
    locks = [RLock() for _ in range(n_blocks)]

    def compare(at: int, _: int) -> None:
        first, second = pairs[at]
        # The lower one first, so that no two threads wait for each other.
        with pool.borrow() as tiles, locks[first], locks[second]:
            # The centre of the tighter block gives the sharper tile.
            if radii[second] < radii[first]:
                first, second = second, first
            bits = _bits_needed(ordered, lists, first, second)
            if bits in tiles:
                _enter(tiles[bits], ordered, first, second, lists)

    with one_blas_thread():
        map_chunks(compare, len(pairs), 1, n_threads)
    last = lists.squared[:, -1]
    if k < n_points - 1:
        # What did not pass is farther than the last one listed; what was dropped may tie with it.
        np.copyto(lists.horizon, np.nextafter(last, np.inf), where=lists.horizon > last)
    return lists


def _tile_pool(ordered: OrderedPoints) -> BufferPool[dict[int, Tile]]:
    """Make tiles for two blocks, one set for each thread."""
    size, n_features = int(np.diff(ordered.starts).max()), ordered.points.shape[1]
    return BufferPool(lambda: empty_tiles(size, size, n_features))


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
                            continue  # past the end, or the point itself
                        # Products only filter: lists hold distances computed directly.
                        found = squared_distance(points, row, points, other)
                        row_bounds[at] = _insert(lists, row, other, found) * widen + slack
                        if first != second:
                            column_bounds[j] = _insert(lists, other, row, found) * widen + slack


def nearest_outsiders(
    ordered: OrderedPoints,
    n_threads: int,
    search: OutgoingArcSearch,
    sides: BoolArray | None = None,
) -> None:
    """Find the shortest arc, between `sides` if there are any, out of every component not certain of it."""
    of, firsts = search.components.of, ordered.starts[:-1]
    # The component that holds all points of a block, or -1.
    lowest, highest = np.minimum.reduceat(of, firsts), np.maximum.reduceat(of, firsts)
    only = np.where(lowest == highest, lowest, -1)
    pool = _tile_pool(ordered)

    def find(marking: bool, team: Team) -> ArcArray:
        rows = np.flatnonzero(wanted_points(search, marking))
        if len(rows) == 0:
            return np.empty(0, dtype=ARC)
        parts = _block_searches(ordered, of, rows, only, sides, n_threads)
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

        # The nearest blocks of all come first, so that most others need not be compared any more.
        n_turns = -(-max(len(part.others) for part in parts) // CALL_BLOCKS)
        team.map_chunks(search_some, n_turns * len(parts), 1)
        # Nothing outside is nearer to a row than the limits of all searches for it.
        limits = np.full(len(of), np.inf)
        for part in parts:
            limits[part.rows] = np.minimum(limits[part.rows], part.limits)
        search.horizon[rows] = np.maximum(search.horizon[rows], limits[rows])
        return np.concatenate([part.found for part in parts])

    with one_blas_thread():
        search_and_mark(search, find, n_threads)


class BlockSearch(NamedTuple):
    """A search for outsiders of some points of one block in other blocks."""

    block: int
    rows: IntArray  # the points
    limits: FloatArray  # how far each has to look, as far as it has looked; -inf when it is done
    found: ArcArray  # ARC records: the shortest arc found from each
    others: IntArray  # the other blocks, nearest first
    gaps: FloatArray  # lower bounds on their squared distances


def _block_searches(
    ordered: OrderedPoints,
    of: NDArray[np.int32],
    rows: IntArray,
    only: NDArray[np.int32],
    sides: BoolArray | None,
    n_threads: int,
) -> list[BlockSearch]:
    """Prepare the searches for outsiders of some rows, at least as many as keep all threads at work."""
    of_row = np.searchsorted(ordered.starts, rows, "right") - 1
    blocks, firsts = np.unique(of_row, return_index=True)
    n_shares = 1 if n_threads == 1 else -(-SHARES * n_threads // len(blocks))
    searches = []
    for block, part in zip(blocks.tolist(), np.split(rows, firsts[1:]), strict=True):
        # A block that lies in one component holds no outsiders of it.
        common = of[part[0]] if (of[part] == of[part[0]]).all() else -1
        may_hold = (only < 0) | (only != common)
        if sides is not None:
            may_hold &= sides != sides[block]
        others = np.flatnonzero(may_hold)
        gaps = gaps_from(ordered, block, others)
        order = np.argsort(gaps, kind="stable")
        others, gaps = others[order], gaps[order]
        for share in range(n_shares):
            found = np.empty(len(part), dtype=ARC)
            found["squared"], found["inside"], found["tied"] = np.inf, -1, 0
            mine = others[share::n_shares].copy(), gaps[share::n_shares].copy()
            searches.append(BlockSearch(block, part, np.full(len(part), np.inf), found, *mine))
    return searches


@jit
def _search_block(tile, bits, ordered, here, search, marking):
    """Search for outsiders of some points of one block in others.

    Returns how many bits that takes, -1 if nothing is left to search; the search was made only if the tile has
    so many.
    """
    of, lengths, horizon = search.components.of, search.bounds, search.horizon
    points, starts, block = ordered.points, ordered.starts, here.block
    rows, limits, others, gaps = here.rows, here.limits, here.others, here.gaps
    active, wanted = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    # Points whose horizon is beyond their limit know all arcs that could be shorter: they are done.
    # Not a literal 0, for which Numba would compile `set_rows` anew.
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
    # Other blocks come by rising gap: from the first that is beyond all limits on, none can help.
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
