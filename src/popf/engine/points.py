"""The samples as the engine wants them: own copy, safe scale, no duplicates."""

from typing import NamedTuple

import numpy as np

from .jit import jit
from .structures import FloatArray, IntArray


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


def scaled_copy(X: FloatArray, exponent: int) -> FloatArray:
    """Copy `X` times ``2**-exponent``, C-contiguous, without negative zeros.

    Multiplying by a power of two rounds nothing, so distances, and ties among them, stay what they
    are, while squares of values near 1e150 or 1e-150 no longer overflow or vanish.
    """
    copy: FloatArray = np.ldexp(np.ascontiguousarray(X, dtype=np.float64), -exponent)
    copy += 0.0
    return copy


def scale_exponent(X: FloatArray) -> int:
    """Power of two that brings the largest magnitude in `X` into [0.5, 1)."""
    largest = max(abs(float(X.max())), abs(float(X.min()))) if X.size else 0.0
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def distinct_points(X: FloatArray) -> DistinctPoints:
    """Scale the samples and collapse those that coincide.

    All arcs between coinciding samples have length zero, so in the order (weight, lower index, higher
    index) the spanning tree joins each of them to the first, and everything else concerns the first
    alone.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    DistinctPoints
    """
    exponent = scale_exponent(X)
    scaled = scaled_copy(X, exponent)
    n_slots = 1 << max(4, int(2 * len(scaled) - 1).bit_length())
    point_of = np.empty(len(scaled), dtype=np.int64)
    first = np.empty(len(scaled), dtype=np.int64)
    n_points = _number_points(scaled, np.full(n_slots, -1), point_of, first)
    first = first[:n_points].copy()
    points = scaled if n_points == len(scaled) else scaled[first]
    return DistinctPoints(points, exponent, first, point_of)


@jit
def _number_points(X, table, point_of, first):
    """Give numbers to the distinct rows in order of first occurrence, by open addressing.

    A slot of the table holds 31 bits of the row's hash above 32 bits of the point's number, so that
    other rows in the way are passed without a look at them.
    """
    n, d = X.shape
    bits = X.view(np.uint64)
    mask = len(table) - 1
    n_points = 0
    for i in range(n):
        key = np.uint64(14695981039346656037)
        for f in range(d):
            key = (key ^ bits[i, f]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        slot = np.int64(key) & mask
        tag = np.int64(key >> np.uint64(33))
        while True:
            entry = table[slot]
            if entry < 0:
                table[slot] = (tag << 32) | n_points
                first[n_points] = i
                point_of[i] = n_points
                n_points += 1
                break
            if entry >> 32 == tag:
                point = entry & 0xFFFFFFFF
                same = True
                for f in range(d):
                    same &= bits[i, f] == bits[first[point], f]
                if same:
                    point_of[i] = point
                    break
            slot = (slot + 1) & mask
    return n_points
