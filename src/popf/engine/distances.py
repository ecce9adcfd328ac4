"""Compiled metrics that fill blocks of arc weights, several points at a time.

Points are stored feature by feature, so that the innermost loop runs over points and is vectorised, while the
terms of each pair are still summed over the features in order. The weight of a pair therefore does not depend
on the block size, its position in the block or the number of threads, and it is symmetric to the bit.

The metrics are those of LibOPF [1]_ and three other common ones. Where LibOPF's formula leaves its domain or is
not a distance, the definition in the literature [2]_ is used; each difference is noted in `KERNELS`.

References
----------
.. [1] J. P. Papa, C. T. N. Suzuki, A. X. Falcão, "LibOPF: a library for the design of optimum-path
   forest classifiers", https://github.com/jppbsi/LibOPF.
.. [2] S.-H. Cha, "Comprehensive survey on distance/similarity measures between probability density
   functions", International Journal of Mathematical Models and Methods in Applied Sciences 1(4), 300-307, 2007.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray, ceil_div

WeightsFrom = Callable[[int], FloatArray]
WeightsAmong = Callable[[IntArray], WeightsFrom]

SQUARED_EUCLIDEAN, MANHATTAN, CANBERRA, SQUARED_CHI_SQUARE = range(4)
CHI_SQUARE, BRAY_CURTIS, CHEBYSHEV, HAMMING = range(4, 8)

# Bytes of distances in a block, per thread: few enough that Ctrl-C is answered quickly.
BLOCK_BYTES = 4 * 2**20
# Points per tile: their row of the output stays in the L1 cache.
TILE = 512
# Minimum number of feature differences per thread: about a millisecond, ten times the start of a thread.
GRAIN = 2_000_000


class Kernel(NamedTuple):
    """A compiled metric."""

    code: int  # which sum `fill_block` computes
    formula: str  # for messages and documentation
    non_negative: bool = False  # features must not be negative
    positive_mass: bool = False  # the features of a sample must not all be zero
    root_of_features: bool = False  # the sum is taken over the square roots of the features
    unit_length: bool = False  # the sum is taken over samples scaled to unit length, and halved


KERNELS = {
    "sqeuclidean": Kernel(SQUARED_EUCLIDEAN, "Σ (x−y)²"),
    "manhattan": Kernel(MANHATTAN, "Σ |x−y|"),
    # LibOPF divides by |x+y|: the same if x and y have the same sign, unbounded otherwise.
    "canberra": Kernel(CANBERRA, "Σ |x−y| / (|x|+|y|), 0/0 = 0"),
    "squared_chord": Kernel(
        SQUARED_EUCLIDEAN, "Σ (√x−√y)²", non_negative=True, root_of_features=True
    ),
    "squared_chi_square": Kernel(
        SQUARED_CHI_SQUARE, "Σ (x−y)² / (x+y), 0/0 = 0", non_negative=True
    ),
    # LibOPF adds 1e-9 to x+y; here the term of two zeros is 0, at any scale of the data.
    "chi_square": Kernel(
        CHI_SQUARE, "√( Σ (x/Σx − y/Σy)² / (x+y) ), 0/0 = 0", non_negative=True, positive_mass=True
    ),
    # LibOPF's Bray–Curtis computes Canberra's sum; this is the definition of Bray and Curtis.
    "bray_curtis": Kernel(BRAY_CURTIS, "Σ |x−y| / Σ (|x|+|y|), 0/0 = 0"),
    # Half the squared distance of unit vectors: unlike 1 − x·y, it is never negative, and 0 for equal vectors.
    "cosine": Kernel(
        SQUARED_EUCLIDEAN, "1 − Σ xy / (‖x‖‖y‖)", positive_mass=True, unit_length=True
    ),
    "chebyshev": Kernel(CHEBYSHEV, "max |x−y|"),
    "hamming": Kernel(HAMMING, "share of the features in which x ≠ y"),
}


@jit
def _accumulate(code, x, mass, points, masses, total):
    """Add one feature's term to the sums (for Chebyshev, maxima) of a tile of points.

    Divisions use `np.divide` with a divisor that is never 0: Python's operator checks for 0, and that branch
    would prevent vectorisation.
    """
    if code == SQUARED_EUCLIDEAN:
        for j in range(total.size):
            difference = x - points[j]
            total[j] += difference * difference
    elif code in (MANHATTAN, BRAY_CURTIS):
        for j in range(total.size):
            total[j] += abs(x - points[j])
    elif code == CHEBYSHEV:
        for j in range(total.size):
            total[j] = max(total[j], abs(x - points[j]))
    elif code == HAMMING:
        for j in range(total.size):
            total[j] += 1.0 if x != points[j] else 0.0
    elif code == CANBERRA:
        for j in range(total.size):
            size = abs(x) + abs(points[j])
            total[j] += np.divide(abs(x - points[j]), size if size > 0.0 else 1.0)
    elif code == SQUARED_CHI_SQUARE:
        for j in range(total.size):
            difference = x - points[j]
            size = x + points[j]
            total[j] += np.divide(difference * difference, size if size > 0.0 else 1.0)
    else:
        share = np.divide(x, mass)
        for j in range(total.size):
            difference = share - np.divide(points[j], masses[j])
            size = x + points[j]
            total[j] += np.divide(difference * difference, size if size > 0.0 else 1.0)


@jit
def fill_block(code, queries, query_masses, points, point_masses, start, stop, out):
    """Write the weights between all queries and the points from `start` to `stop` into `out`.

    Each query is a row, each point a column; `code` selects the sum, as in `KERNELS`.
    """
    for first in range(start, stop, TILE):
        last = min(first + TILE, stop)
        masses = point_masses[first:last]
        for q in range(queries.shape[0]):
            total = out[q, first:last]
            total[:] = 0.0
            for f in range(queries.shape[1]):
                _accumulate(
                    code, queries[q, f], query_masses[q], points[f, first:last], masses, total
                )
            if code == CHI_SQUARE:
                for j in range(total.size):
                    total[j] = np.sqrt(total[j])
            elif code == HAMMING:
                for j in range(total.size):
                    total[j] = np.divide(total[j], queries.shape[1])
            elif code == BRAY_CURTIS:
                for j in range(total.size):
                    size = query_masses[q] + masses[j]
                    total[j] = np.divide(total[j], size if size > 0.0 else 1.0)


@jit
def _sum_rows(values):
    """Sum |x| over the features of each sample, in order."""
    masses = np.zeros(values.shape[0])
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            masses[i] += abs(values[i, f])
    return masses


def _prepare(kernel: Kernel, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values that the kernel sums over, and the mass of each sample if the kernel needs it."""
    values = np.ascontiguousarray(np.sqrt(X) if kernel.root_of_features else X, dtype=np.float64)
    if kernel.unit_length:
        values = values / np.abs(values).max(axis=1, keepdims=True)  # so that no square overflows
        values /= np.sqrt(2.0 * _sum_rows(values * values))[:, np.newaxis]
    if kernel.code in (CHI_SQUARE, BRAY_CURTIS):
        return values, _sum_rows(values)
    return values, np.zeros(len(values))


def kernel_rows(name: str, X: FloatArray, n_threads: int = 1) -> WeightsAmong:
    """Return a function that computes the weights between samples of `X`, one row at a time.

    `name` is a metric of `KERNELS`. The returned function, ``among(others)``, copies these samples and returns
    a function ``row(i)`` that computes the weights from sample `i` to each of them. Long rows are split into at
    most `n_threads` parts; the weights do not depend on the split.
    """
    kernel = KERNELS[name]
    values, masses = _prepare(kernel, X)

    def among(others: IntArray) -> WeightsFrom:
        points, point_masses = np.ascontiguousarray(values[others].T), masses[others]
        n_parts = max(1, min(n_threads, points.size // GRAIN))
        size = ceil_div(len(others), n_parts)

        def row(i: int) -> FloatArray:
            weights = np.empty(len(others))
            query, mass, out = values[i : i + 1], masses[i : i + 1], weights[np.newaxis]

            def fill(start: int, stop: int) -> None:
                fill_block(kernel.code, query, mass, points, point_masses, start, stop, out)

            map_chunks(fill, len(others), size, n_parts)
            return weights

        return row

    return among


def rows_per_block(n_training: int, n_bytes: int, n_threads: int) -> int:
    """Return the number of queries per block, so that the distances of all threads fit in `n_bytes`."""
    return max(1, min(BLOCK_BYTES, n_bytes // n_threads) // (8 * n_training))


def refuse_weight(weight: float, who: str) -> None:
    """Raise ValueError for a negative or non-finite distance; `who` names the two samples."""
    raise ValueError(
        f"the distance between {who} is {weight}, but distances must be finite and not negative. Check the "
        "metric, or scale the features to a moderate range."
    )


def kernel_blocks(name: str, queries: FloatArray, training: FloatArray) -> BlockOfDistances:
    """Return a function that computes the weights from queries to training samples, block by block."""
    kernel = KERNELS[name]
    values, masses = _prepare(kernel, queries)
    training_values, point_masses = _prepare(kernel, training)
    points = np.ascontiguousarray(training_values.T)

    def block(start: int, stop: int) -> FloatArray:
        weights = np.empty((stop - start, points.shape[1]))
        here = slice(start, stop)
        place = points, point_masses, 0, points.shape[1]
        fill_block(kernel.code, values[here], masses[here], *place, weights)
        return weights

    return block
