"""Exact decisions on the host, for points that do not fit on the device."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray

# Candidates kept for every row: one per lane of a warp.
CANDIDATES = 32
# Columns that may pass the filter of a row in one chunk.
ROOM = 4 * CANDIDATES

Array = Any  # a NumPy array here, a CuPy array on a GPU
Pair = tuple[Array, Array]  # (of rows, of columns), or (bounds, indices) of candidates


class HostDecider:
    """Exact distances of candidates, in NumPy: what `CudaKernels` computes on the device."""

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array to the device."""
        return np.ascontiguousarray(array)

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array back to the host."""
        return np.asarray(array)

    def neighbours(
        self, rows: Array, points: Array, kept: Pair, k: int
    ) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Compute exact distances of the candidates; return positions, squares and horizon, nearest first."""
        values, indices = kept
        squared = self._squared(rows, points, indices)
        order = np.lexsort((indices, squared), axis=1)
        squared = np.take_along_axis(squared, order, axis=1)
        found = np.take_along_axis(indices, order, axis=1)
        horizon = np.minimum(values.max(axis=1).astype(np.float64), squared[:, k])
        return found[:, :k].astype(np.int32), squared[:, :k].copy(), horizon

    def conquerors(
        self, rows: Array, points: Array, kept: Pair, costs: Array, rank: Array
    ) -> tuple[IntArray, FloatArray, FloatArray, NDArray[np.bool_]]:
        """Find the conqueror among the candidates: node, cost, squared distance, and whether it is certain."""
        values, indices = kept
        squared = self._squared(rows, points, indices)
        there = np.maximum(indices, 0)
        offers = np.where(indices >= 0, np.maximum(costs[there], squared), np.inf)
        ranks = np.where(indices >= 0, rank[there], np.iinfo(np.int64).max)
        best = np.lexsort((ranks, squared, offers), axis=1)[:, :1]
        every = (indices, offers, squared)
        nodes, costs_found, distances = (np.take_along_axis(a, best, axis=1)[:, 0] for a in every)
        certain = costs_found < values.max(axis=1)
        return nodes.astype(np.int64), costs_found, distances, certain

    def pair_squares(self, points: Array, first: Array, second: Array) -> Array:
        """Compute the squared distances of pairs, summing the features in order."""
        total = np.zeros(len(first))
        for f in range(points.shape[1]):
            gap = points[first, f] - points[second, f]
            total += gap * gap
        return total

    def _squared(self, rows: Array, points: Array, indices: Array) -> FloatArray:
        total = np.zeros(indices.shape)
        for f in range(points.shape[1]):
            gap = rows[:, f][:, None] - points[np.maximum(indices, 0), f]
            total += gap * gap
        return np.where(indices >= 0, total, np.inf)
