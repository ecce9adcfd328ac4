"""Points on a device, and candidates of every row: the columns with the smallest lower bounds on distance.

A tile of products is written, read once by the selection, and forgotten; those bytes cost more time than the
arithmetic. Where there are many columns, products are therefore *filtered* while they are still in
the registers: only what is below the row's bound of the moment is written at all. Columns come in chunks, each
twice as large as all before it together, spread evenly over the whole. What was seen so far
thus tells what to expect: about as many pass in each chunk as a row has candidates. Rows of which more pass
than there is room for, as may happen where columns are not in any order, are done again by whole tiles.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from popf.engine.gpu.cuda_filter import WIDTH
from popf.engine.gpu.host import CANDIDATES, Array, HostKernels, Pair
from popf.engine.structures import FloatArray, IntArray

# Rows and columns of a tile: two bytes in flight for each of a GPU's threads many times over.
ROWS, COLUMNS = 8192, 16384
# The share of the device's free memory that points may fill.
SHARE = 0.5
# From how many columns on products are filtered, and how many at least come before the first filter.
FEWEST = 1 << 17
FIRST = 1 << 12
# Rows that are filtered at a time, as far as the bytes for what passes allow.
FILTERED_ROWS = 1 << 17
# In half precision the largest magnitude is brought to at most 2**14.
HALF_EXPONENT = 14
# Points that tell where the centre is.
CENTRED_BY = 1000


class Block(NamedTuple):
    """Some points on the device."""

    single: Array  # in float32, moved to the centre
    lower: Array  # squared norms, less the rounding error of a product
    upper: Array  # squared norms, more the rounding error of a product

    def take(self, which: Any) -> "Block":
        """Take some of the points."""
        return Block(*(part[which] for part in self))


class Halves(NamedTuple):
    """Points in half precision, for products that are filtered."""

    values: Array  # float16, times 2**exponent; features padded with zeros to a multiple of WIDTH
    lower: Array  # squared norms of these, less the rounding error of a product
    exponent: int
    first: int = 0  # the index of the first one
    stride: int = 1  # and from one to the next


class DevicePoints:
    """Points for a device, there as a whole if they fit, else brought block by block.

    They are scaled so that squares neither overflow nor vanish. Exact distances are computed by `decider` from
    `exact`: on the device, or on the host if the points do not fit.
    """

    def __init__(self, points: FloatArray, kernels: Any) -> None:
        self.kernels, self.points = kernels, points
        self.rows, self.columns = ROWS, COLUMNS
        n_points, n_features = points.shape
        # Products are as sharp as points are near to the centre: outliers must not draw it away.
        self.center = np.median(points[:: max(1, n_points // CENTRED_BY)], axis=0)
        self._error = kernels.rounding(n_features)
        # Squares below the smallest normal number are lost, a little for every feature.
        self._slack = (n_features + 16) * float(np.finfo(np.float32).tiny)
        resident = n_points * (12 * n_features + 8) <= SHARE * kernels.free_bytes()
        self.decider = kernels if resident else HostKernels()
        self.exact: Array = self.decider.put(points)  # in float64
        self._whole = self._bring(self.exact) if resident else None
        self._halves: Halves | None = None
        self.filters = resident and n_points >= FEWEST and kernels.can_filter(n_features)

    def __len__(self) -> int:
        return len(self.points)

    def rows_at_once(self) -> int:
        """How many rows to look for candidates of at a time: more where products are filtered."""
        return max(self.rows, FILTERED_ROWS) if self.filters else self.rows

    def take(self, which: slice | IntArray) -> Block:
        """Return some of the points."""
        if self._whole is None:
            return self.others(self.points[which])
        return self._whole.take(which if isinstance(which, slice) else self.kernels.put(which))

    def others(self, points: FloatArray) -> Block:
        """Lay out other points, such as queries, beside these."""
        return self._bring(self.kernels.put(points))

    def spaced(self, chunk: slice) -> Block:
        """Return points at equal intervals; all of them must be on the device."""
        assert self._whole is not None
        return Block(*map(self.kernels.xp.ascontiguousarray, self._whole.take(chunk)))

    def spaced_halves(self, chunk: slice) -> Halves:
        """Return points at equal intervals, in half precision, once `halved` was called."""
        assert self._halves is not None
        contiguous = self.kernels.xp.ascontiguousarray
        values, lower = (contiguous(part[chunk]) for part in self._halves[:2])
        return Halves(values, lower, self._halves.exponent, chunk.start, chunk.step)

    def halved(self, rows: Block) -> Halves | None:
        """Return rows in the half precision of these points, None if they are too large for it."""
        assert self._whole is not None
        if self._halves is None:
            largest = float(abs(self._whole.single).max())
            exponent = HALF_EXPONENT - int(np.frexp(largest)[1])
            self._halves = self._halve(self._whole, exponent)
        exponent = self._halves.exponent
        if float(abs(rows.single).max()) >= 2.0 ** (HALF_EXPONENT + 1 - exponent):
            return None
        return self._halve(rows, exponent)

    def _bring(self, exact: Array) -> Block:
        xp = self.kernels.xp
        single = (exact - xp.asarray(self.center)).astype(np.float32)
        double = single.astype(np.float64)
        norms = (double * double).sum(axis=1)
        lower = (norms * (1.0 - self._error) - self._slack).astype(np.float32)
        upper = (norms * (1.0 + self._error) + self._slack).astype(np.float32)
        return Block(single, lower, upper)

    def _halve(self, block: Block, exponent: int) -> Halves:
        """Round to eleven bits; what is below the smallest normal number loses up to 2**-25."""
        xp, (n, n_features) = self.kernels.xp, block.single.shape
        scaled = xp.ldexp(block.single, np.int32(exponent))
        values = xp.zeros((n, -(-n_features // WIDTH) * WIDTH), dtype=np.float16)
        values[:, :n_features] = scaled
        norms = (scaled.astype(np.float64) ** 2).sum(axis=1)
        error = 2.0**-10 * 1.01 + 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)
        # |x·y| changes by 2**-25 for every feature of either, at most so much, in all.
        lost = 1.01 * 2.0**-24 * (np.sqrt(n_features) * xp.sqrt(norms) + n_features * 2.0**-24)
        return Halves(values, (norms * (1.0 - error) - lost).astype(np.float32), exponent)


def find_candidates(
    placed: DevicePoints, rows: Block, own: Array, columns: tuple[int, int], floors: Array
) -> Pair:
    """Find the columns of the smallest bounds ``max(floor, |x|² + |y|² - 2 x·y)`` for every row.

    Columns are the points from `columns[0]` to before `columns[1]`, except ``own[row]``. Returns, where the
    decider is, bounds and indices of `CANDIDATES` columns of every row, infinite and -1 where there are fewer.
    """
    kernels, n_rows, (low, high) = placed.kernels, len(rows.lower), columns
    kept = no_candidates(kernels.xp, n_rows)
    halved = placed.halved(rows) if placed.filters and high - low >= FEWEST else None
    if halved is None:
        for start in range(0, n_rows, placed.rows):
            here = slice(start, start + placed.rows)
            part = kept[0][here], kept[1][here]
            _select(placed, rows.take(here), own[here], columns, floors, part)
    else:
        stride = 1 << max(0, int((high - low) // FIRST).bit_length() - 1)
        select_spaced(placed, rows, own, slice(low, high, stride), floors, kept)
        crowded = kernels.xp.zeros(n_rows, dtype=np.bool_)
        for chunk in chunks(low, high, stride):
            kernels.filter(halved, own, placed.spaced_halves(chunk), floors[chunk], kept, crowded)
        again = np.flatnonzero(kernels.get(crowded))
        for start in range(0, len(again), placed.rows):
            some = kernels.put(again[start : start + placed.rows])
            part = no_candidates(kernels.xp, len(some))
            _select(placed, rows.take(some), own[some], columns, floors, part)
            kept[0][some], kept[1][some] = part
    return kept if placed.decider is kernels else (kernels.get(kept[0]), kernels.get(kept[1]))


def chunks(low: int, high: int, stride: int) -> Iterator[slice]:
    """All columns but every `stride`-th: of 10 with stride 4 first 2 and 6, then 1, 3, 5, 7, 9."""
    while stride > 1:
        if low + stride // 2 < high:
            yield slice(low + stride // 2, high, stride)
        stride //= 2


def no_candidates(xp: Any, n_rows: int) -> Pair:
    """Make the bounds and indices of rows that have no candidates yet."""
    shape = (n_rows, CANDIDATES)
    return xp.full(shape, np.inf, dtype=np.float32), xp.full(shape, -1, dtype=np.int32)


def _select(
    placed: DevicePoints,
    rows: Block,
    own: Array,
    columns: tuple[int, int],
    floors: Array,
    kept: Pair,
) -> None:
    """Select candidates from whole tiles of products."""
    for first in range(*columns, placed.columns):
        here = slice(first, min(first + placed.columns, columns[1]))
        other = placed.take(here)
        products = placed.kernels.multiply(rows.single, other.single)
        placed.kernels.select(products, (rows.lower, other.lower), floors[here], first, own, kept)


def select_spaced(
    placed: DevicePoints, rows: Block, own: Array, chunk: slice, floors: Array, kept: Pair
) -> None:
    """Select candidates from columns at equal intervals."""
    kernels, low, stride = placed.kernels, chunk.start, chunk.step
    xp = kernels.xp
    other = placed.spaced(chunk)
    heights = xp.ascontiguousarray(floors[chunk])
    # By their place among the chosen columns, and back.
    place = xp.where((own - low) % stride == 0, (own - low) // stride, -1)
    for start in range(0, len(rows.lower), placed.rows):
        here = slice(start, start + placed.rows)
        mine, part = rows.take(here), (kept[0][here], kept[1][here])
        products = kernels.multiply(mine.single, other.single)
        kernels.select(products, (mine.lower, other.lower), heights, 0, place[here], part)
    indices = kept[1]
    indices[:] = xp.where(indices >= 0, indices * stride + low, -1)
