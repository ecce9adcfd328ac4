"""The backend that the engine uses for a device.

Every row gets *candidates*: the columns with the smallest lower bounds on distance. A tile of products is
written, read once by the selection and discarded, and this memory traffic costs more time than the arithmetic.
With many columns, products are therefore *filtered* while they are still in registers: only those below the
row's current bound are written at all. Columns are processed in chunks, each as large as all before it together
and spread evenly over all columns. So the columns seen so far are representative, and in each chunk about as
many pass as a row has candidates. Rows for which more columns pass than there is room for, as may happen
because the order of the columns is arbitrary, are processed again with complete tiles.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.gpu.competing import CompetingPoints
from popf.engine.gpu.cuda_source import WIDTH
from popf.engine.gpu.host import CANDIDATES, Array, HostDecider, Pair
from popf.engine.mst.boruvka import offer_arcs, wanted_points
from popf.engine.structures import (
    Conquest,
    FloatArray,
    IntArray,
    NeighbourLists,
    OutgoingArcSearch,
    ceil_div,
)

# Rows and columns of a tile: enough to keep all threads of a GPU busy.
ROWS, COLUMNS = 8192, 16384
# Share of the device's free memory that points may occupy.
SHARE = 0.5
# Minimum number of columns to filter products, and of columns processed before the first filter.
FEWEST = 1 << 17
FIRST = 1 << 12
# Rows filtered at a time, limited by the memory for the columns that pass.
FILTERED_ROWS = 1 << 17
# In half precision, the largest magnitude is scaled to at most 2**14.
HALF_EXPONENT = 14
# Points from which the centre is computed.
CENTER_SAMPLE_SIZE = 1000
# Neighbours listed for every point, fewer than there are candidates.
N_NEIGHBOURS = 12
# Pairs of a tile that may pass at a time, at least its columns; if more pass, the rows are split in half.
CAPACITY = 1 << 24


class Block(NamedTuple):
    """Points on the device."""

    single: Array  # in float32, relative to the centre
    lower: Array  # squared norms minus the rounding error of a product
    upper: Array  # squared norms plus the rounding error of a product

    def take(self, which: Any) -> "Block":
        """Return some of the points."""
        return Block(*(part[which] for part in self))


class Halves(NamedTuple):
    """Points in half precision, for filtered products."""

    values: Array  # float16, times 2**exponent; features are zero-padded to a multiple of WIDTH
    lower: Array  # squared norms in this scale, minus the rounding error of a product
    exponent: int
    first: int = 0  # index of the first point
    stride: int = 1  # index step from one point to the next


class DevicePoints:
    """Points for a device, stored there if they fit, else copied there block by block.

    They are scaled so that squares neither overflow nor underflow. Exact distances are computed by `decider`
    from `exact`: on the device, or on the host if the points do not fit.
    """

    def __init__(self, points: FloatArray, kernels: Any) -> None:
        self.kernels, self.points = kernels, points
        n_points, n_features = points.shape
        # Bounds are tighter for points near the centre, so outliers must not shift it.
        self.center = np.median(points[:: max(1, n_points // CENTER_SAMPLE_SIZE)], axis=0)
        self._error = kernels.rounding(n_features)
        # Squares below the smallest normal number are lost, possibly one for every feature.
        self._slack = (n_features + 16) * float(np.finfo(np.float32).tiny)
        resident = n_points * (12 * n_features + 8) <= SHARE * kernels.free_bytes()
        self.decider = kernels if resident else HostDecider()
        self.exact: Array = self.decider.put(points)  # in float64
        self._whole = self._bring(self.exact) if resident else None
        self._halves: Halves | None = None
        self.filters = resident and n_points >= FEWEST and kernels.can_filter(n_features)

    def __len__(self) -> int:
        return len(self.points)

    def rows_at_once(self) -> int:
        """Return for how many rows to find candidates at a time: more if products are filtered."""
        return max(ROWS, FILTERED_ROWS) if self.filters else ROWS

    def take(self, which: slice | IntArray) -> Block:
        """Return some of the points."""
        if self._whole is None:
            return self.place_queries(self.points[which])
        return self._whole.take(which if isinstance(which, slice) else self.kernels.put(which))

    def place_queries(self, points: FloatArray) -> Block:
        """Copy other points to the device, relative to the same centre."""
        return self._bring(self.kernels.put(points))

    def spaced(self, chunk: slice) -> Block:
        """Return evenly spaced points; all points must be on the device."""
        assert self._whole is not None
        return Block(*map(self.kernels.xp.ascontiguousarray, self._whole.take(chunk)))

    def spaced_halves(self, chunk: slice) -> Halves:
        """Return evenly spaced points in half precision; `halved` must have been called before."""
        assert self._halves is not None
        contiguous = self.kernels.xp.ascontiguousarray
        values, lower = (contiguous(part[chunk]) for part in self._halves[:2])
        return Halves(values, lower, self._halves.exponent, chunk.start, chunk.step)

    def halved(self, rows: Block) -> Halves | None:
        """Return rows in half precision, in the scale of these points; None if they are too large for it."""
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
        """Round to eleven bits; values below the smallest normal number lose up to 2**-25."""
        xp, (n, n_features) = self.kernels.xp, block.single.shape
        scaled = xp.ldexp(block.single, np.int32(exponent))
        values = xp.zeros((n, ceil_div(n_features, WIDTH) * WIDTH), dtype=np.float16)
        values[:, :n_features] = scaled
        norms = (scaled.astype(np.float64) ** 2).sum(axis=1)
        error = 2.0**-10 * 1.01 + 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)
        # Every feature of x and y changes by up to 2**-25, so x·y changes by at most this in total.
        lost = 1.01 * 2.0**-24 * (np.sqrt(n_features) * xp.sqrt(norms) + n_features * 2.0**-24)
        return Halves(values, (norms * (1.0 - error) - lost).astype(np.float32), exponent)


def find_candidates(placed: DevicePoints, rows: Block, own: Array, floors: Array) -> Pair:
    """Find the columns with the smallest bounds ``max(floor, |x|² + |y|² - 2 x·y)`` for every row.

    Columns are all points but ``own[row]``. Returns the bounds and indices of `CANDIDATES` columns for every
    row, infinite and -1 where there are fewer, as arrays of the decider.
    """
    kernels, n_rows, n_columns = placed.kernels, len(rows.lower), len(placed)
    kept = no_candidates(kernels.xp, n_rows)
    halved = placed.halved(rows) if placed.filters else None
    if halved is None:
        for here in _slices(0, n_rows, ROWS):
            part = kept[0][here], kept[1][here]
            _select(placed, rows.take(here), own[here], floors, part)
    else:
        stride = 1 << max(0, (n_columns // FIRST).bit_length() - 1)
        select_spaced(placed, rows, own, slice(0, n_columns, stride), floors, kept)
        crowded = kernels.xp.zeros(n_rows, dtype=np.bool_)
        for chunk in chunks(n_columns, stride):
            kernels.filter(halved, own, placed.spaced_halves(chunk), floors[chunk], kept, crowded)
        again = np.flatnonzero(kernels.get(crowded))
        for here in _slices(0, len(again), ROWS):
            some = kernels.put(again[here])
            part = no_candidates(kernels.xp, len(some))
            _select(placed, rows.take(some), own[some], floors, part)
            kept[0][some], kept[1][some] = part
    return kept if placed.decider is kernels else (kernels.get(kept[0]), kernels.get(kept[1]))


def chunks(n_columns: int, stride: int) -> Iterator[slice]:
    """Yield all columns except every `stride`-th: of 10 with stride 4, first 2 and 6, then 1, 3, 5, 7, 9."""
    while stride > 1:
        if stride // 2 < n_columns:
            yield slice(stride // 2, n_columns, stride)
        stride //= 2


def no_candidates(xp: Any, n_rows: int) -> Pair:
    """Return the bounds and indices of rows that have no candidates yet."""
    shape = (n_rows, CANDIDATES)
    return xp.full(shape, np.inf, dtype=np.float32), xp.full(shape, -1, dtype=np.int32)


def _select(placed: DevicePoints, rows: Block, own: Array, floors: Array, kept: Pair) -> None:
    """Select candidates from complete tiles of products."""
    kernels = placed.kernels
    for here in _slices(0, len(placed), COLUMNS):
        other = placed.take(here)
        products = kernels.multiply(rows.single, other.single)
        kernels.select(products, (rows.lower, other.lower), floors[here], here.start, own, kept)


def select_spaced(
    placed: DevicePoints, rows: Block, own: Array, chunk: slice, floors: Array, kept: Pair
) -> None:
    """Select candidates from every `stride`-th column, from the first on."""
    kernels, xp, stride = placed.kernels, placed.kernels.xp, chunk.step
    other = placed.spaced(chunk)
    chunk_floors = xp.ascontiguousarray(floors[chunk])
    # Convert indices to positions in the chunk, and below back to indices.
    position = xp.where(own % stride == 0, own // stride, -1)
    for here in _slices(0, len(rows.lower), ROWS):
        mine, part = rows.take(here), (kept[0][here], kept[1][here])
        products = kernels.multiply(mine.single, other.single)
        kernels.select(products, (mine.lower, other.lower), chunk_floors, 0, position[here], part)
    indices = kept[1]
    indices[:] = xp.where(indices >= 0, indices * stride, -1)


class GpuBackend:
    """The GPU algorithms, with `CudaKernels`; see `popf.engine.structures.Backend`."""

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels

    def place(self, points: FloatArray) -> DevicePoints:
        """Copy points to the device."""
        return DevicePoints(points, self.kernels)

    def nearest_neighbours(self, placed: DevicePoints) -> NeighbourLists:
        """List the nearest neighbours of all points."""
        xp, n_points = self.kernels.xp, len(placed)
        k = min(N_NEIGHBOURS, n_points - 1)
        lists = NeighbourLists(
            np.empty((n_points, k), dtype=np.int32), np.empty((n_points, k)), np.empty(n_points)
        )
        floors = xp.zeros(n_points, dtype=np.float32)
        for here in _slices(0, n_points, placed.rows_at_once()):
            own = xp.arange(here.start, here.stop, dtype=np.int64)
            kept = find_candidates(placed, placed.take(here), own, floors)
            found = placed.decider.neighbours(placed.exact[here], placed.exact, kept, k)
            lists.positions[here], lists.squared[here], lists.horizon[here] = found
        return lists

    def nearest_outsiders(self, placed: DevicePoints, search: OutgoingArcSearch) -> None:
        """Find the shortest arc out of every component that is not `certain`.

        Products alone first give an upper bound on its length; then the distances of all pairs that may be as
        short are computed.
        """
        best, of, classes = search.best, search.components.of, search.components.classes
        wanted = np.flatnonzero(wanted_points(search, False))
        waiting = [wanted[here] for here in _slices(0, len(wanted), ROWS)]
        bounds = best["squared"].copy()
        for rows in waiting:
            low = _upper_bounds(placed, of, rows)
            np.minimum.at(bounds, of[rows], low.astype(np.float64))
        found: list[tuple[IntArray, IntArray, FloatArray]] = []
        while waiting:
            rows = waiting.pop()
            pairs = _pairs_within(placed, of, rows, bounds[of[rows]])
            if pairs is None:  # too many at once
                half = ceil_div(len(rows), 2)
                waiting += [rows[:half], rows[half:]]
                continue
            offer_arcs(best, search.components, *pairs)
            found.append(pairs)
        for first, second, squared in found:
            # Mark the ends of arcs between classes that tie with their component's shortest.
            tied = (squared == best["squared"][of[first]]) & (classes[first] != classes[second])
            search.tied[first[tied]] = search.tied[second[tied]] = True
        horizon = search.horizon
        horizon[wanted] = np.maximum(horizon[wanted], best["squared"][of[wanted]])

    def conquer(
        self, placed: DevicePoints, costs: FloatArray, rank: IntArray, queries: FloatArray
    ) -> tuple[Conquest, IntArray]:
        """Find the conqueror of each query, by squared costs; queries must have the scale of the points.

        Products select the cheapest candidates, and exact distances determine the winner among them, by cost,
        distance and `rank`. The winner is certain if it costs less than the lower bound of all other nodes.
        Queries for which it does not, as with many nodes of equal cost, are also returned: the caller must find
        their conquerors in another way.
        """
        n_queries, decider = len(queries), placed.decider
        # Rounded down, so that they remain lower bounds.
        single = costs.astype(np.float32)
        single = np.where(single > costs, np.nextafter(single, np.float32(-np.inf)), single)
        floors = self.kernels.put(single)
        exact_costs, exact_rank = decider.put(costs), decider.put(rank)
        nodes, certain = np.empty(n_queries, dtype=np.int64), np.empty(n_queries, dtype=np.bool_)
        found = Conquest(nodes, np.empty(n_queries), np.empty(n_queries))
        for here in _slices(0, n_queries, placed.rows_at_once()):
            own = self.kernels.xp.full(here.stop - here.start, -1, dtype=np.int64)
            mine = placed.place_queries(queries[here])
            kept = find_candidates(placed, mine, own, floors)
            answers = decider.conquerors(
                decider.put(queries[here]), placed.exact, kept, exact_costs, exact_rank
            )
            for whole, part in zip((*found, certain), answers, strict=True):
                whole[here] = part
        return found, np.flatnonzero(~certain)

    def competing_nodes(
        self, samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray
    ) -> CompetingPoints:
        """Sort training nodes of the classes 0, 1, ..., for `soft_scores`."""
        return CompetingPoints.build(samples, codes, costs, weights, self.kernels)

    def soft_scores(
        self, nodes: CompetingPoints, queries: FloatArray, taus: FloatArray
    ) -> FloatArray:
        """Compute soft scores: products in float64, small distances recomputed directly."""
        return nodes.scores(queries, taus, self.kernels)


def _slices(low: int, high: int, size: int) -> list[slice]:
    """Split a range into slices of at most `size`."""
    return [slice(start, min(start + size, high)) for start in range(low, high, size)]


def _tiles(
    placed: DevicePoints, of: NDArray[np.int32], rows: IntArray
) -> Iterator[tuple[slice, Block, Block, Array, Pair]]:
    """Multiply some rows by all columns; yield the columns, points, products and components of every tile."""
    kernels = placed.kernels
    mine, own, whole = placed.take(rows), kernels.put(of[rows]), kernels.put(of)
    for here in _slices(0, len(placed), COLUMNS):
        other = placed.take(here)
        yield here, mine, other, kernels.multiply(mine.single, other.single), (own, whole[here])


def _upper_bounds(
    placed: DevicePoints, of: NDArray[np.int32], rows: IntArray
) -> NDArray[np.float32]:
    """Return upper bounds on the squared distances of some points to the nearest outsider."""
    kernels = placed.kernels
    low = kernels.xp.full(len(rows), np.inf, dtype=np.float32)
    for _, mine, other, products, components in _tiles(placed, of, rows):
        kernels.outsider_bounds(products, (mine.upper, other.upper), components, low)
    bounds: NDArray[np.float32] = kernels.get(low)
    return bounds


def _pairs_within(
    placed: DevicePoints,
    of: NDArray[np.int32],
    rows: IntArray,
    limits: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """List pairs of different components within their row's limit, with their squares; None if too many."""
    kernels, decider = placed.kernels, placed.decider
    with np.errstate(over="ignore"):
        limit = kernels.put(np.nextafter(limits.astype(np.float32), np.float32(np.inf)))
    found = []
    for here, mine, other, products, components in _tiles(placed, of, rows):
        norms = mine.lower, other.lower
        pairs = kernels.outsiders(products, norms, components, limit, CAPACITY)
        if pairs is None:
            return None
        a, b = rows[pairs[0]], pairs[1] + here.start
        squared = decider.get(decider.pair_squares(placed.exact, decider.put(a), decider.put(b)))
        near = squared <= limits[pairs[0]]
        found.append((a[near], b[near], squared[near]))
    first, second, squared = map(np.concatenate, zip(*found, strict=True))
    return first, second, squared
