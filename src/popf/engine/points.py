"""Prepare samples for the engine: copy, scale and de-duplicate them, and group them in blocks."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.threads import ONE_THREAD, Team
from popf.engine.structures import FloatArray, IntArray, ceil_div

# Values per chunk: few enough to stay in the cache during several passes.
CHUNK_VALUES = 1 << 17
# Up to this exponent, a power of two and its inverse are both normal numbers.
LARGEST_EXPONENT = 1000


class DistinctPoints(NamedTuple):
    """The distinct points among the samples."""

    points: FloatArray  # in order of first occurrence, multiplied by 2**-exponent
    exponent: int  # of the power of two that was divided out
    first: IntArray  # the lowest sample at each point
    point_of: IntArray  # the point of each sample


def scaled_copy(X: FloatArray, exponent: int | IntArray, team: Team = ONE_THREAD) -> FloatArray:
    """Copy `X` multiplied by ``2**-exponent``, C-contiguous and without negative zeros.

    Multiplying by a power of two does not round, so distances and their ties are unchanged, while squares of
    values near 1e150 or 1e-150 no longer overflow or underflow.
    """
    copy: FloatArray = np.empty(X.shape)

    def scale(start: int, stop: int) -> None:
        here = copy[start:stop]
        if isinstance(exponent, int) and abs(exponent) <= LARGEST_EXPONENT:
            np.multiply(X[start:stop], 2.0**-exponent, out=here)
        else:
            whole = np.broadcast_to(exponent, (len(X), 1))
            np.ldexp(X[start:stop], -whole[start:stop], out=here)
        here += 0.0

    team.map_chunks(scale, len(X), _rows_in_cache(X))
    return copy


def scale_exponent(X: FloatArray, team: Team = ONE_THREAD) -> int:
    """Return the exponent e such that the largest magnitude in ``X * 2**-e`` is in [0.5, 1)."""

    def magnitude(start: int, stop: int) -> float:
        return max(abs(float(X[start:stop].max())), abs(float(X[start:stop].min())))

    largest = max(team.map_chunks(magnitude, len(X), _rows_in_cache(X)), default=0.0)
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def _rows_in_cache(X: NDArray[Any]) -> int:
    return max(1, CHUNK_VALUES // max(1, int(X.shape[1])))


def distinct_points(X: FloatArray, n_threads: int = 1) -> DistinctPoints:
    """Scale the samples and merge duplicates.

    All arcs between duplicates have length zero, so in the order (weight, lower index, higher index) the
    spanning tree joins each duplicate to the first sample at its point, and all other edges join first samples.
    """
    with Team(n_threads) as team:
        exponent = scale_exponent(X, team)
        return collapse_duplicates(scaled_copy(X, exponent, team), exponent, team)


def collapse_duplicates(
    scaled: FloatArray, exponent: int, team: Team = ONE_THREAD
) -> DistinctPoints:
    """Merge samples with equal features; `scaled` comes from `scaled_copy`."""
    bits = scaled.view(np.uint64)
    keys = _row_hashes(bits, team)
    if not _any_equal(keys, team):  # the usual case
        every = np.arange(len(scaled))
        return DistinctPoints(scaled, exponent, every, every)
    _, first, point_of = np.unique(keys, return_index=True, return_inverse=True)
    if (
        bits != bits[first[point_of]]
    ).any():  # different rows have the same hash, once in 2**64 pairs
        _, first, point_of = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return DistinctPoints(scaled[first[order]], exponent, first[order], number[point_of.ravel()])


def _row_hashes(bits: NDArray[np.uint64], team: Team) -> NDArray[np.uint64]:
    """Hash every row."""
    keys: NDArray[np.uint64] = np.empty(len(bits), dtype=np.uint64)

    def hash_rows(start: int, stop: int) -> None:
        with np.errstate(
            over="ignore"
        ):  # without compilation, products that wrap around are warned of
            _hash_rows(bits[start:stop], keys[start:stop])

    team.map_chunks(hash_rows, len(bits), _rows_in_cache(bits))
    return keys


@jit
def _hash_rows(bits, keys):
    for row in range(len(bits)):
        key = np.uint64(14695981039346656037)
        for column in range(bits.shape[1]):
            key = (key ^ bits[row, column]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        keys[row] = key


def _any_equal(keys: NDArray[np.uint64], team: Team) -> bool:
    """Return whether any two keys are equal; each thread sorts the keys in a range of first bytes."""
    bytes_ = keys >> np.uint64(56)

    def has_equal(low: int, high: int) -> bool:
        mine = keys if high - low == 256 else keys[(low <= bytes_) & (bytes_ < high)]
        mine = np.sort(mine)
        return bool((mine[1:] == mine[:-1]).any())

    return any(team.map_shares(has_equal, 256))


def sort_by_values(columns: Iterable[FloatArray], n_rows: int) -> tuple[IntArray, IntArray]:
    """Return the order that sorts rows by their columns, and for each sorted row the number of its value."""
    order = np.arange(n_rows)
    repeats = np.arange(n_rows) > 0
    for column in columns if repeats.any() else ():
        # Only rows that are equal in all columns so far are sorted again.
        run = np.cumsum(~repeats)
        tied = np.flatnonzero(repeats | np.append(repeats[1:], False))
        order[tied] = order[tied][np.lexsort((column[order[tied]], run[tied]))]
        ordered = column[order]
        repeats[1:] &= ordered[1:] == ordered[:-1]
        if not repeats.any():
            break
    return order, np.cumsum(~repeats) - 1


def hash64(numbers: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Hash integers with SplitMix64's mixing function (Steele, Lea, Flood, 2014)."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    hashes: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return hashes


def distinct_distances(distances: FloatArray) -> FloatArray:
    """Sort each sample's distinct distances, padded with infinity, to compare samples without features."""
    ranked = np.sort(distances, axis=1)
    ranked[:, 1:][ranked[:, 1:] == ranked[:, :-1]] = np.inf
    ranked.sort(axis=1)
    return ranked


# Blocks of points ---------------------------------------------------------------------------------------------


class OrderedPoints(NamedTuple):
    """Points ordered so that neighbours in space are mostly neighbours in memory."""

    points: FloatArray
    order: IntArray  # points[i] was row order[i] of the input
    starts: IntArray  # block b is range(starts[b], starts[b + 1])
    centers: FloatArray  # (n_blocks, n_features)
    radii: FloatArray  # upper bounds on the distances of the block's points from its centre


def order_points(points: FloatArray, block: int, n_threads: int = 1) -> OrderedPoints:
    """Split the points at the median of the widest feature until blocks are small."""
    pieces, n_before = [np.arange(len(points))], 0

    def split(level: list[IntArray], at: int, _: int) -> list[IntArray]:
        piece = level[at]
        if len(piece) <= block:
            return [piece]
        sample = points[piece[:: max(1, len(piece) // 64)]]
        column = points[piece, int(np.argmax(sample.max(axis=0) - sample.min(axis=0)))]
        # Whole blocks on the left, so that only the last one is short.
        n_left = block * (ceil_div(len(piece), block) // 2)
        parted = np.argpartition(column, n_left)
        return [piece[parted[:n_left]], piece[parted[n_left:]]]

    with Team(n_threads) as team:
        while len(pieces) > n_before:  # level by level, until no piece is split
            n_before = len(pieces)
            halves = team.map_chunks(partial(split, pieces), n_before, 1)
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
    """Copy the points of some blocks, and compute their centres and radii."""
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


@jit
def gaps_from(ordered, block, others):
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
    # The radii are rounded up and the distance down; the remaining rounding error is far below 1e-9.
    return clear * clear * (1.0 - 1e-9)


@helper
def squared_distance(x, i, y, j):
    """Compute the squared distance of two rows, summing the features in order."""
    total = 0.0
    for f in range(x.shape[1]):
        difference = x[i, f] - y[j, f]
        total += difference * difference
    return total
