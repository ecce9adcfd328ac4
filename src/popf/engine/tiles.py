"""Tiles of matrix products: bounds on all distances between two blocks of points.

``|x - y|² = |x|² + |y|² - 2 x·y`` turns distances into a matrix product, the fastest thing a processor does,
but it cancels: far from the origin little of it is true. So both blocks are first moved to the centre of the
first one, and the result is used only as a *lower bound*. With unit roundoff u and d features, rounding
changes it by at most ``(d + 16) u (|x| + |y|)² <= 2 (d + 16) u (|x|² + |y|²)``, all operations counted (the two
conversions, the product in any order of summation, the norms, the sums), and that is taken off the norms.
Whatever passes a bound is computed anew, directly and in float64, before anything is decided.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import jit
from .lanes import LANES
from .structures import FloatArray, IntArray

# Points in a block: large enough for BLAS, small enough for a tile to stay in the cache.
BLOCK = 1024
SMALLEST_BLOCK = 64


def block_size(n_features: int, n_bytes: int) -> int:
    """How many points make a block, so that a tile and what it is made of take at most `n_bytes`.

    Examples
    --------
    >>> from popf.engine.tiles import block_size
    >>> block_size(100, 2**30), block_size(100, 2**20), block_size(100, 1)
    (1024, 208, 64)
    """
    # A tile in float64, and two blocks of points in float64 and in the tile's precision.
    block = BLOCK
    while block > SMALLEST_BLOCK and 8 * block * (block + 4 * n_features) > n_bytes:
        block -= LANES
    return block


class OrderedPoints(NamedTuple):
    """Points in an order in which neighbours in space are mostly neighbours in memory.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
    order : ndarray of shape (n_points,)
        ``points[i]`` was row ``order[i]`` of the input.
    starts : ndarray of shape (n_blocks + 1,)
        Block b is ``range(starts[b], starts[b + 1])``.
    centers : ndarray of shape (n_blocks, n_features)
    radii : ndarray of shape (n_blocks,)
        No point of the block is farther from its centre.
    """

    points: FloatArray
    order: IntArray
    starts: IntArray
    centers: FloatArray
    radii: FloatArray


class Tile(NamedTuple):
    """Products of the points of two blocks, and norms from which the rounding error is taken off.

    Attributes
    ----------
    products : ndarray of shape (n_rows, n_columns rounded up to a multiple of 16)
    row_norms : ndarray of shape (n_rows,)
    column_norms : ndarray of shape (n_columns rounded up,)
        Infinite past the end.
    row_bounds, column_bounds : ndarray
        Pairs are wanted that are within the bound of their row or of their column.
    widen, slack : float
        ``bound * widen + slack`` in the tile's precision is not below `bound` in float64. The slack
        also covers what is lost where squares vanish below the smallest normal number.
    """

    products: NDArray[Any]
    row_norms: NDArray[Any]
    column_norms: NDArray[Any]
    row_bounds: NDArray[Any]
    column_bounds: NDArray[Any]
    widen: float
    slack: float


def order_points(points: FloatArray, block: int = BLOCK) -> OrderedPoints:
    """Cut the points at the median of their most spread feature until blocks are small.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.engine.tiles import order_points
    >>> ordered = order_points(np.array([[3.0], [0.0], [2.0], [1.0]]), block=2)
    >>> ordered.starts.tolist(), ordered.centers.ravel().tolist(), ordered.order.tolist()
    ([0, 2, 4], [0.5, 2.5], [1, 3, 2, 0])
    """
    pieces: list[IntArray] = []
    waiting = [np.arange(len(points))]
    while waiting:
        piece = waiting.pop()
        if len(piece) <= block:
            pieces.append(piece)
            continue
        sample = points[piece[:: max(1, len(piece) // 64)]]
        column = points[piece, int(np.argmax(sample.max(axis=0) - sample.min(axis=0)))]
        # Whole blocks on the left, so that only the last one is short.
        n_left = block * ((-(-len(piece) // block)) // 2)
        parted = np.argpartition(column, n_left)
        waiting.append(piece[parted[n_left:]])
        waiting.append(piece[parted[:n_left]])
    order = np.concatenate(pieces)
    ordered = points[order]
    starts = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    centers = np.add.reduceat(ordered, starts[:-1], axis=0) / np.diff(starts)[:, None]
    radii = np.empty(len(pieces))
    for b in range(len(pieces)):
        offsets = ordered[starts[b] : starts[b + 1]] - centers[b]
        # Rounded up: radii serve as upper bounds.
        radii[b] = np.sqrt(np.einsum("ij,ij->i", offsets, offsets).max()) * (1.0 + 1e-9)
    return OrderedPoints(ordered, order, starts, centers, radii)


def precision(
    n_features: int, radius: float, bound: float, extent: float = 1.0
) -> type[np.floating[Any]] | None:
    """Choose the precision in which a tile tells enough about distances of about `bound`.

    What it lets pass in vain lies within about ``6 (d + 16) u radius²`` of the bound (squared).

    Parameters
    ----------
    n_features : int
    radius : float
        Of the block whose centre the tile has.
    bound : float
        A typical squared distance that matters.
    extent : float
        How far the points may be from the centre; squares must not overflow.

    Returns
    -------
    type or None
        None if even in float64 the squares would vanish.
    """
    for real, smallest, largest in ((np.float32, 1e-12, 1e15), (np.float64, 1e-140, 1e150)):
        if radius < smallest or radius + extent > largest:
            continue
        error = 6.0 * (n_features + 16) * float(np.finfo(real).eps) * radius * radius
        if real is np.float64 or error <= 0.05 * bound:
            return real
    return None


class Workbench:
    """Memory in which tiles are made, used again and again.

    Fresh memory for every tile would cost a page fault for every 4 KiB of it, which takes a single
    thread a sixth of its time, and many threads wait for each other in it.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[str, Any], NDArray[Any]] = {}

    def room(self, name: str, shape: tuple[int, int], real: Any) -> NDArray[Any]:
        """Give an array whose contents do not matter, valid until the next call with that name."""
        size = shape[0] * shape[1]
        memory = self._memory.get((name, real))
        if memory is None or memory.size < size:
            memory = self._memory[name, real] = np.empty(size, dtype=real)
        return memory[:size].reshape(shape)


class Workbenches:
    """As many workbenches as there are threads at work; a thread takes one and brings it back."""

    def __init__(self) -> None:
        self._free: deque[Workbench] = deque()

    @contextmanager
    def one(self) -> Iterator[Workbench]:
        """Lend a workbench."""
        try:
            bench = self._free.pop()
        except IndexError:
            bench = Workbench()
        try:
            yield bench
        finally:
            self._free.append(bench)


def make_tile(
    rows: FloatArray,
    columns: FloatArray,
    center: FloatArray,
    real: type[np.floating[Any]] | None,
    bench: Workbench,
) -> Tile:
    """Multiply two blocks of points, moved to `center`, in the given precision.

    Without a precision (None) nothing is told: every pair passes every bound.
    """
    n_rows, n_features = rows.shape
    n_columns = -(-len(columns) // LANES) * LANES
    if real is None:
        norms = np.where(np.arange(n_columns) < len(columns), 0.0, np.inf)
        nothing = bench.room("products", (n_rows, n_columns), np.float64)
        nothing.fill(0.0)
        return _unbounded(nothing, np.zeros(n_rows), norms, n_features)
    left = bench.room("left", rows.shape, real)
    right = bench.room("right", (n_columns, n_features), real)
    np.subtract(rows, center, out=left, casting="same_kind")
    np.subtract(columns, center, out=right[: len(columns)], casting="same_kind")
    right[len(columns) :] = 0.0
    shrink = 1.0 - 2.0 * (n_features + 16) * float(np.finfo(real).eps)
    column_norms = np.full(n_columns, np.inf, dtype=real)
    column_norms[: len(columns)] = shrink * _norms(right[: len(columns)])
    products = bench.room("products", (n_rows, n_columns), real)
    np.matmul(left, right.T, out=products)
    return _unbounded(products, (shrink * _norms(left)).astype(real), column_norms, n_features)


def _unbounded(
    products: NDArray[Any], row_norms: NDArray[Any], column_norms: NDArray[Any], n_features: int
) -> Tile:
    facts = np.finfo(products.dtype)
    widen, slack = 1.0 + 4.0 * float(facts.eps), (n_features + 16) * float(facts.tiny)
    row_bounds = np.full_like(row_norms, np.inf)
    column_bounds = np.full_like(column_norms, -np.inf)
    return Tile(products, row_norms, column_norms, row_bounds, column_bounds, widen, slack)


def with_bounds(tile: Tile, rows: FloatArray, columns: FloatArray | None) -> Tile:
    """Set the bounds of a tile; without `columns` only the rows want anything."""
    tile.row_bounds[:] = rows * tile.widen + tile.slack
    if columns is not None:
        tile.column_bounds[: len(columns)] = columns * tile.widen + tile.slack
    return tile


def _norms(points: NDArray[Any]) -> FloatArray:
    norms: FloatArray = np.einsum("ij,ij->i", points, points, dtype=np.float64)
    return norms


def gap(ordered: OrderedPoints, block: int, others: IntArray) -> FloatArray:
    """Give lower bounds on the squared distances between a block and others."""
    apart = ordered.centers[others] - ordered.centers[block]
    between = np.sqrt(np.einsum("ij,ij->i", apart, apart)) * (1.0 - 1e-9)
    clear = np.maximum(between - ordered.radii[block] - ordered.radii[others], 0.0)
    # The radii are rounded up and the distance down; what is left of rounding is far below 1e-9.
    squared: FloatArray = clear * clear * (1.0 - 1e-9)
    return squared


@jit
def squared_distance(x, i, y, j):
    """Compute the squared distance of two rows, feature after feature as everywhere."""
    total = 0.0
    for f in range(x.shape[1]):
        difference = x[i, f] - y[j, f]
        total += difference * difference
    return total
