"""The samples as the engine wants them: own copy, safe scale, no duplicates."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import ALONE, Team
from popf.engine.structures import FloatArray, IntArray

# Values of a chunk that stays in the cache while several passes go over it.
CHUNK_VALUES = 1 << 17
# Powers of two whose inverses are numbers as well.
LARGEST_EXPONENT = 1000


class DistinctPoints(NamedTuple):
    """The distinct points among the samples."""

    points: FloatArray  # in the order in which they first occur, times 2**-exponent
    exponent: int  # the power of two that was taken out
    first: IntArray  # the lowest sample at every point
    point_of: IntArray  # the point of every sample


def scaled_copy(X: FloatArray, exponent: int | IntArray, team: Team = ALONE) -> FloatArray:
    """Copy `X` times ``2**-exponent``, C-contiguous, without negative zeros.

    Multiplying by a power of two rounds nothing, so distances, and ties among them, stay what they
    are, while squares of values near 1e150 or 1e-150 no longer overflow or vanish.
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


def scale_exponent(X: FloatArray, team: Team = ALONE) -> int:
    """Power of two that brings the largest magnitude in `X` into [0.5, 1)."""

    def magnitude(start: int, stop: int) -> float:
        return max(abs(float(X[start:stop].max())), abs(float(X[start:stop].min())))

    largest = max(team.map_chunks(magnitude, len(X), _rows_in_cache(X)), default=0.0)
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def _rows_in_cache(X: FloatArray) -> int:
    return max(1, CHUNK_VALUES // max(1, int(X.shape[1])))


def distinct_points(X: FloatArray, n_threads: int = 1) -> DistinctPoints:
    """Scale the samples and collapse those that coincide.

    All arcs between coinciding samples have length zero, so in the order (weight, lower index, higher
    index) the spanning tree joins each of them to the first, and everything else concerns the first
    alone.
    """
    with Team(n_threads) as team:
        exponent = scale_exponent(X, team)
        return collapse_duplicates(scaled_copy(X, exponent, team), exponent, team)


def collapse_duplicates(scaled: FloatArray, exponent: int, team: Team = ALONE) -> DistinctPoints:
    """Collapse samples that coincide; `scaled` comes from `scaled_copy`."""
    bits = scaled.view(np.uint64)
    keys = _hashes(bits, team)
    if not _any_equal(keys, team):  # the usual case
        every = np.arange(len(scaled))
        return DistinctPoints(scaled, exponent, every, every)
    point_of, first = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    # At most half of the table will be full.
    table = np.zeros(1 << max(4, int(2 * len(keys) - 1).bit_length()), dtype=np.int64)
    first = first[: _number_points(bits, keys, table, point_of, first)].copy()
    return DistinctPoints(scaled[first], exponent, first, point_of)


def _hashes(bits: NDArray[np.uint64], team: Team = ALONE) -> NDArray[np.uint64]:
    """Hash every row."""
    keys = np.full(len(bits), 14695981039346656037, dtype=np.uint64)

    def hash_rows(start: int, stop: int) -> None:
        here = keys[start:stop]
        for column in bits[start:stop].T:
            here ^= column
            here *= np.uint64(0x9E3779B97F4A7C15)
            here ^= here >> np.uint64(32)

    team.map_chunks(hash_rows, len(bits), 1 << 12)  # rows that stay in the first cache
    return keys


def _any_equal(keys: NDArray[np.uint64], team: Team) -> bool:
    """Whether two keys are equal; each thread sorts those with some first bytes."""
    bytes_ = keys >> np.uint64(56)

    def look(low: int, high: int) -> bool:
        mine = keys if high - low == 256 else keys[(low <= bytes_) & (bytes_ < high)]
        mine = np.sort(mine)
        return bool((mine[1:] == mine[:-1]).any())

    return any(team.map_shares(look, 256))


@jit
def _number_points(bits, keys, table, point_of, first):
    """Assign numbers to the distinct rows in order of first occurrence, by open addressing.

    A slot of the table holds 31 bits of the row's hash above 32 bits of the point's number plus one,
    so that other rows in the way are passed without a look at them; 0 is an empty slot.
    """
    n, d = bits.shape
    mask = len(table) - 1
    n_points = 0
    for i in range(n):
        slot = np.int64(keys[i]) & mask
        tag = np.int64(keys[i] >> np.uint64(33))
        while True:
            entry = table[slot]
            if entry == 0:
                first[n_points] = i
                point_of[i] = n_points
                n_points += 1
                table[slot] = (tag << 32) | n_points
                break
            if entry >> 32 == tag:
                point = (entry & 0xFFFFFFFF) - 1
                same = True
                for f in range(d):
                    same &= bits[i, f] == bits[first[point], f]
                if same:
                    point_of[i] = point
                    break
            slot = (slot + 1) & mask
    return n_points


def sort_by_values(columns: Iterable[FloatArray], n_rows: int) -> tuple[IntArray, IntArray]:
    """Sort rows by their values; also number the distinct values, one number for each sorted row."""
    order = np.arange(n_rows)
    repeats = np.arange(n_rows) > 0
    for column in columns if repeats.any() else ():
        # Only runs of rows that are alike so far need another look.
        run = np.cumsum(~repeats)
        tied = np.flatnonzero(repeats | np.append(repeats[1:], False))
        order[tied] = order[tied][np.lexsort((column[order[tied]], run[tied]))]
        ordered = column[order]
        repeats[1:] &= ordered[1:] == ordered[:-1]
        if not repeats.any():
            break
    return order, np.cumsum(~repeats) - 1


def distinct_distances(distances: FloatArray) -> FloatArray:
    """Give for each sample its distinct distances to all, in order and padded by infinity.

    They tell samples apart that are known by their distances only.
    """
    ranked = np.sort(distances, axis=1)
    ranked[:, 1:][ranked[:, 1:] == ranked[:, :-1]] = np.inf
    ranked.sort(axis=1)
    return ranked
