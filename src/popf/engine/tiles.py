"""Tiles of matrix products: bounds on all distances between two blocks of points.

``|x - y|² = |x|² + |y|² - 2 x·y`` turns distances into a matrix product, the fastest thing a processor does,
but it cancels: far from the origin little of it is true. So both blocks are first moved to the centre of the
first one, and the result is used only as a *lower bound*. With unit roundoff u and d features, rounding
changes it by at most ``(d + 16) u (|x| + |y|)² <= 2 (d + 16) u (|x|² + |y|²)``, all operations counted (the two
conversions, the product in any order of summation, the norms, the sums), and that is taken off the norms.
Whatever passes a bound is computed anew, directly and in float64, before anything is decided.

A tile is multiplied panel after panel, each read while it is still in the cache, and all within one
call of a kernel: threads that went back to Python for every step would wait for its lock most of the time.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.structures import BoolArray, FloatArray, IntArray

# Points in a block: enough that laying them out costs little beside the products, few enough that what
# one block learns soon serves the next.
BLOCK = 1024
SMALLEST_BLOCK = 64
# Points on a side of a panel: enough for BLAS, few enough for the products to stay in the cache.
PANEL = 256


def block_size(n_features: int, n_bytes: int) -> int:
    """How many points make a block, so that a tile and what it is made of take at most `n_bytes`."""
    # A tile in float64, and two blocks of points in float64 and in the tile's precision.
    block = BLOCK
    while block > SMALLEST_BLOCK and 8 * block * (block + 4 * n_features) > n_bytes:
        block -= LANES
    return block


class OrderedPoints(NamedTuple):
    """Points in an order in which neighbours in space are mostly neighbours in memory."""

    points: FloatArray
    order: IntArray  # points[i] was row order[i] of the input
    starts: IntArray  # block b is range(starts[b], starts[b + 1])
    centers: FloatArray  # (n_blocks, n_features)
    radii: FloatArray  # no point of the block is farther from its centre


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


def order_points(
    points: FloatArray, block: int = BLOCK, n_threads: int = 1, side: BoolArray | None = None
) -> OrderedPoints:
    """Cut the points, each `side` alone, at the median of their most spread feature until blocks are small."""
    pieces, n_before = [np.arange(len(points))], 0
    if side is not None:
        pieces = [np.flatnonzero(~side), np.flatnonzero(side)]

    def cut(level: list[IntArray], at: int, _: int) -> list[IntArray]:
        piece = level[at]
        if len(piece) <= block:
            return [piece]
        sample = points[piece[:: max(1, len(piece) // 64)]]
        column = points[piece, int(np.argmax(sample.max(axis=0) - sample.min(axis=0)))]
        # Whole blocks on the left, so that only the last one is short.
        n_left = block * ((-(-len(piece) // block)) // 2)
        parted = np.argpartition(column, n_left)
        return [piece[parted[:n_left]], piece[parted[n_left:]]]

    with Team(n_threads) as team:
        while len(pieces) > n_before:  # level by level, until nothing is cut any more
            n_before = len(pieces)
            halves = team.map_chunks(partial(cut, pieces), n_before, 1)
            pieces = [piece for pair in halves for piece in pair]
        order = np.concatenate(pieces)
        starts = np.cumsum([0] + [len(piece) for piece in pieces])
        n_blocks, n_features = len(pieces), points.shape[1]
        ordered = OrderedPoints(
            np.empty((len(points), n_features)),
            order,
            starts,
            np.empty((n_blocks, n_features)),
            np.empty(n_blocks),
        )
        team.map_chunks(lambda start, stop: _fill_blocks(ordered, points, start, stop), n_blocks, 1)
    return ordered


@jit
def _fill_blocks(ordered, points, start, stop):
    """Copy the points of some blocks, and find their centres and radii."""
    copies, order, starts = ordered.points, ordered.order, ordered.starts
    centers, n_features = ordered.centers, points.shape[1]
    for block in range(start, stop):
        a, b = starts[block], starts[block + 1]
        for f in range(n_features):
            centers[block, f] = 0.0
        for i in range(a, b):
            row = order[i]
            for f in range(n_features):
                copies[i, f] = points[row, f]
                centers[block, f] += points[row, f]
        for f in range(n_features):
            centers[block, f] /= b - a
        largest = 0.0
        for i in range(a, b):
            largest = max(largest, squared_distance(copies, i, centers, block))
        # Rounded up: radii serve as upper bounds.
        ordered.radii[block] = np.sqrt(largest) * (1.0 + 1e-9)


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
    single, double = (
        empty_tile(n_rows, n_columns, n_features, real) for real in (np.float32, np.float64)
    )
    return {32: single, 64: double, 0: double._replace(shrink=0.0)}


@helper
def set_rows(tile, points, rows, n_rows, center):
    """Take the first of these rows of the points for the rows of a tile; they want everything."""
    left, norms, bounds, shrink = tile.left, tile.row_norms, tile.row_bounds, tile.shrink
    for i in range(n_rows):
        norms[i] = _move(points, rows[i], center, shrink, left, i)
        bounds[i] = np.inf


@helper
def set_columns(tile, points, start, stop, center):
    """Take points `start` to `stop` for the columns of a tile, which want nothing; returns how many."""
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


@jit
def gap(ordered, block, others):
    """Return lower bounds on the squared distances between a block and others."""
    gaps = np.empty(len(others))
    for i in range(len(others)):
        gaps[i] = gap_between(ordered, block, others[i])
    return gaps


@helper
def gap_between(ordered, block, other):
    """Return a lower bound on the squared distances between two blocks."""
    radii = ordered.radii
    between = np.sqrt(squared_distance(ordered.centers, block, ordered.centers, other))
    clear = max(between * (1.0 - 1e-9) - radii[block] - radii[other], 0.0)
    # The radii are rounded up and the distance down; what is left of rounding is far below 1e-9.
    return clear * clear * (1.0 - 1e-9)


@helper
def squared_distance(x, i, y, j):
    """Compute the squared distance of two rows, feature after feature as everywhere."""
    total = 0.0
    for f in range(x.shape[1]):
        difference = x[i, f] - y[j, f]
        total += difference * difference
    return total
