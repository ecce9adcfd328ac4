"""Tiles of matrix products: lower bounds on distances, which find neighbours and conquerors in high dimension.

``|x - y|² = |x|² + |y|² - 2 x·y`` turns distances into a matrix product, the fastest operation of a processor,
but it suffers from cancellation: far from the origin few digits are correct. So both blocks are first centred
at the first one, and the result is used only as a *lower bound*. With unit roundoff u and d features, rounding
changes it by at most ``(d + 16) u (|x| + |y|)² <= 2 (d + 16) u (|x|² + |y|²)``, counting all operations (two
conversions, the product in any order of summation, the norms, the sums), and this is subtracted from the norms.
Pairs that pass a bound are computed again, directly and in float64, before anything is decided.

A tile is multiplied panel by panel, and each panel is read while it is still in the cache. All of this happens
in one kernel call: threads that returned to Python for every step would mostly wait for the GIL.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper
from popf.engine.runtime.simd import LANES
from popf.engine.structures import ceil_div

# Points per block: enough that copying them costs little compared with the products, few enough that the
# bounds found by one block soon help the next.
BLOCK = 1024
SMALLEST_BLOCK = 64
# Rows and columns of a panel: enough for BLAS, few enough that the products stay in the cache.
PANEL = 256


def block_size(n_features: int, n_bytes: int) -> int:
    """Return the number of points per block, so that a tile and its operands take at most `n_bytes`."""
    # A tile in float64, and two blocks of points in float64 and in the tile's precision.
    block = BLOCK
    while block > SMALLEST_BLOCK and 8 * block * (block + 4 * n_features) > n_bytes:
        block -= LANES
    return block


class Tile(NamedTuple):
    """Two blocks of points relative to a centre, with squared norms reduced by the rounding error.

    A pair passes if it is within the bound of its row or of its column.
    """

    left: NDArray[Any]  # (n_rows, n_features)
    right: NDArray[Any]  # (n_columns, n_features); n_columns is a multiple of sixteen
    memory: NDArray[Any]  # (PANEL * PANEL,), for the products of a panel
    row_norms: NDArray[Any]
    column_norms: NDArray[Any]  # infinite for padding
    row_bounds: NDArray[Any]
    column_bounds: NDArray[Any]
    widen: float  # bound * widen + slack in the tile's precision is not below the bound in float64
    slack: float  # also covers squares that underflow
    shrink: float  # norms are multiplied by this to allow for the rounding error; if 0, every pair passes


@helper
def sufficient_bits(n_features, radius, bound, extent):
    """Return the number of bits that a tile needs to filter squared distances of about `bound`.

    Pairs that pass although they are beyond the bound are within about ``6 (d + 16) u radius²`` of it, where
    `radius` is that of the block at which the tile is centred. Points are within `extent` of the centre, and
    squares must not overflow. Returns 32 or 64, or 0 if squares could underflow or overflow even in float64.
    """
    error = 6.0 * (n_features + 16) * 2.0**-23 * radius * radius
    if radius >= 1e-12 and radius + extent <= 1e15 and error <= 0.05 * bound:
        return 32
    return 64 if radius >= 1e-140 and radius + extent <= 1e150 else 0


@helper
def rough_median(values):
    """Estimate the median of many values from a few of them."""
    step = max(1, len(values) // 64)
    some = np.empty(ceil_div(len(values), step))
    for i in range(len(some)):
        value, j = values[i * step], i
        while j > 0 and some[j - 1] > value:
            some[j] = some[j - 1]
            j -= 1
        some[j] = value
    return some[len(some) // 2]


def empty_tile(n_rows: int, n_columns: int, n_features: int, real: Any) -> Tile:
    """Allocate a tile with room for these numbers of rows and columns."""
    n_columns = ceil_div(n_columns, LANES) * LANES
    info = np.finfo(real)
    return Tile(
        left=np.empty((n_rows, n_features), real),
        right=np.empty((n_columns, n_features), real),
        memory=np.empty(PANEL * PANEL, real),
        row_norms=np.empty(n_rows, real),
        column_norms=np.empty(n_columns, real),
        row_bounds=np.empty(n_rows, real),
        column_bounds=np.empty(n_columns, real),
        widen=1.0 + 4.0 * float(info.eps),
        slack=(n_features + 16) * float(info.tiny),
        shrink=1.0 - 2.0 * (n_features + 16) * float(info.eps),
    )


def empty_tiles(n_rows: int, n_columns: int, n_features: int) -> dict[int, Tile]:
    """Allocate one tile for each number of bits, see `sufficient_bits`.

    A kernel takes one of them, and is compiled only for its precision: most data never need the others.
    """
    single = empty_tile(n_rows, n_columns, n_features, np.float32)
    double = empty_tile(n_rows, n_columns, n_features, np.float64)
    return {32: single, 64: double, 0: double._replace(shrink=0.0)}


@helper
def set_rows(tile, points, rows, n_rows, center):
    """Copy the points of the first `n_rows` indices in `rows` to the rows of a tile, with infinite bounds."""
    left, norms, bounds, shrink = tile.left, tile.row_norms, tile.row_bounds, tile.shrink
    for i in range(n_rows):
        norms[i] = _center_point(points, rows[i], center, shrink, left, i)
        bounds[i] = np.inf


@helper
def set_columns(tile, points, start, stop, center):
    """Copy points `start` to `stop` to the columns of a tile, with bounds of -inf; return the padded width."""
    right, norms, bounds, shrink = tile.right, tile.column_norms, tile.column_bounds, tile.shrink
    n_columns = ceil_div(stop - start, LANES) * LANES
    for j in range(n_columns):
        bounds[j] = -np.inf
        if start + j < stop:
            norms[j] = _center_point(points, start + j, center, shrink, right, j)
        else:
            right[j] = 0.0
            norms[j] = np.inf
    return n_columns


@helper
def _center_point(points, row, center, shrink, out, at):
    """Write a point relative to the centre, in the precision of `out`; return `shrink` times its squared norm.

    If `shrink` is 0, write the centre itself, so that all its products and bounds are 0.
    """
    n_features = len(center)
    if shrink == 0.0:
        out[at] = 0.0
        return 0.0
    for f in range(n_features):
        out[at, f] = points[row, f] - center[f]
    # Four independent sums, because each addition to a single one would wait for the last.
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
    """Multiply the panel of a tile that starts at a row and a column, cut off at the end of the tile."""
    n_rows, n_columns = min(PANEL, last_row - row), min(PANEL, last_column - column)
    products = tile.memory[: n_rows * n_columns].reshape(n_rows, n_columns)
    left, right = tile.left[row : row + n_rows], tile.right[column : column + n_columns]
    np.dot(left, right.T, products)
    return products
