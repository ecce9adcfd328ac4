"""The samples as the engine wants them: own copy, safe scale, no duplicates."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import ALONE, Team
from popf.engine.structures import FloatArray, IntArray

# Values of a chunk that stays in the cache while several passes go over it.
CHUNK_VALUES = 1 << 17


class DistinctPoints(NamedTuple):
    """The distinct points among the samples.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
        The distinct points, in the order in which they first occur, times ``2**-exponent``.
    exponent : int
        The power of two that was taken out.
    first : ndarray of shape (n_points,)
        For every point the lowest sample that lies there.
    point_of : ndarray of shape (n_samples,)
        For every sample its point.
    """

    points: FloatArray
    exponent: int
    first: IntArray
    point_of: IntArray


# Powers of two whose inverses are numbers as well.
LARGEST_EXPONENT = 1000


def scaled_copy(X: FloatArray, exponent: int | IntArray, team: Team = ALONE) -> FloatArray:
    """Copy `X` times ``2**-exponent``, C-contiguous, without negative zeros.

    Multiplying by a power of two rounds nothing, so distances, and ties among them, stay what they
    are, while squares of values near 1e150 or 1e-150 no longer overflow or vanish.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.engine.points import scaled_copy
    >>> scaled_copy(np.array([[3e200, -0.0, 1e199]]), 667).round(3)
    array([[0.49 , 0.   , 0.016]])
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

    team.map_chunks(scale, len(X), max(1, CHUNK_VALUES // max(1, X.shape[1])))
    return copy


def scale_exponent(X: FloatArray, team: Team = ALONE) -> int:
    """Power of two that brings the largest magnitude in `X` into [0.5, 1)."""

    def magnitude(start: int, stop: int) -> float:
        return max(abs(float(X[start:stop].max())), abs(float(X[start:stop].min())))

    per_chunk = max(1, CHUNK_VALUES // max(1, X.shape[1]))
    largest = max(team.map_chunks(magnitude, len(X), per_chunk)) if X.size else 0.0
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def distinct_points(X: FloatArray, n_threads: int = 1) -> DistinctPoints:
    """Scale the samples and collapse those that coincide.

    All arcs between coinciding samples have length zero, so in the order (weight, lower index, higher
    index) the spanning tree joins each of them to the first, and everything else concerns the first
    alone.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    n_threads : int

    Returns
    -------
    DistinctPoints
    """
    with Team(n_threads) as team:
        exponent = scale_exponent(X, team)
        return collapse_duplicates(scaled_copy(X, exponent, team), exponent, team)


def collapse_duplicates(scaled: FloatArray, exponent: int, team: Team = ALONE) -> DistinctPoints:
    """Collapse samples that coincide; `scaled` comes from `scaled_copy`."""
    bits = scaled.view(np.uint64)
    with np.errstate(over="ignore"):  # hashes wrap around, of which NumPy warns without JIT
        keys = _hashes(bits, team)
        suspects = keys[_suspects(keys, team)]
    if len(np.unique(suspects)) == len(suspects):
        every = np.arange(len(scaled))
        return DistinctPoints(scaled, exponent, every, every)
    point_of, first = _number(bits, keys)
    return DistinctPoints(scaled[first], exponent, first, point_of)


def _hashes(bits: NDArray[np.uint64], team: Team = ALONE) -> NDArray[np.uint64]:
    """Give every row a number that equal rows share, and others hardly ever."""
    keys = np.empty(len(bits), dtype=np.uint64)
    team.map_rows(lambda start, stop: _hash_rows(bits, keys, start, stop), len(bits))
    return keys


def _suspects(keys: NDArray[np.uint64], team: Team) -> IntArray:
    """Gather the rows that share a bit with another, few unless there are duplicates.

    A table of bits stays in the cache, where one of rows does not, so that data without duplicates,
    the usual case, is soon done with. Each thread has a part of the table.
    """
    n_words = (1 << max(6, int(16 * len(keys) - 1).bit_length())) // 64

    def share(low: int, high: int) -> IntArray:
        seen = np.zeros((high - low, 2), dtype=np.uint64)
        suspects = np.empty(len(keys), dtype=np.int64)
        return suspects[: _share_a_bit(keys, n_words, low, seen, suspects)]

    return np.concatenate(team.map_shares(share, n_words))


def _number(bits: NDArray[np.uint64], keys: NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Count the distinct rows; returns each row's number, and each number's first row."""
    n_rows = len(bits)
    point_of, first = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    # At most half of the table will be full.
    table = np.zeros(1 << max(4, int(2 * n_rows - 1).bit_length()), dtype=np.int64)
    n_points = _number_points(bits, keys, table, point_of, first)
    return point_of, first[:n_points].copy()


@jit
def _hash_rows(bits, keys, start, stop):
    for i in range(start, stop):
        key = np.uint64(14695981039346656037)
        for f in range(bits.shape[1]):
            key = (key ^ bits[i, f]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        keys[i] = key


@jit
def _share_a_bit(keys, n_words, low, seen, suspects):
    """Gather the rows whose bit, in the words from `low` on, is that of another row; counts them."""
    mask = np.uint64(64 * n_words - 1)
    first, n_seen = np.uint64(low), np.uint64(len(seen))
    for key in keys:
        word = ((key & mask) >> np.uint64(6)) - first
        if word < n_seen:  # unsigned: below `first` it wraps around
            bit = np.uint64(1) << (key & np.uint64(63))
            seen[word, 1] |= seen[word, 0] & bit
            seen[word, 0] |= bit
    count = 0
    for i in range(len(keys)):
        word = ((keys[i] & mask) >> np.uint64(6)) - first
        bit = np.uint64(1) << (keys[i] & np.uint64(63))
        if word < n_seen and seen[word, 1] & bit != 0:
            suspects[count] = i
            count += 1
    return count


@jit
def _number_points(bits, keys, table, point_of, first):
    """Give numbers to the distinct rows in order of first occurrence, by open addressing.

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
