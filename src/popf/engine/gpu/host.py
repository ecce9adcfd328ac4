"""The GPU kernels in NumPy: slow and simple, they define what the CUDA kernels must compute."""

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


class HostKernels:
    """The kernels on the host, in NumPy."""

    xp: Any = np

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array to the device."""
        return np.ascontiguousarray(array)

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array back to the host."""
        return np.asarray(array)

    def free_bytes(self) -> int:
        """Return the number of bytes that may be used on the device."""
        return 1 << 32

    def rounding(self, n_features: int) -> float:
        """Return the maximum error of a product, relative to half the sum of the squared norms; see `tiles`."""
        return 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)

    def multiply(self, left: Array, right: Array) -> Array:
        """Compute the products of all pairs of rows."""
        return left @ right.T

    def select(
        self, products: Array, norms: Pair, floors: Array, first_column: int, own: Array, kept: Pair
    ) -> None:
        """Keep the candidates with the smallest lower bounds ``max(floor, |x|² + |y|² - 2 x·y)``.

        Column indices start at `first_column`; ``own[row]`` is never a candidate for the row. `norms` are the
        squared norms of rows and of columns, minus the rounding error. `kept` holds bounds (initially infinite)
        and indices (initially -1), both of shape (n_rows, CANDIDATES), and is updated in place.
        """
        bounds = np.maximum(floors, norms[0][:, None] + norms[1] - 2.0 * products)
        columns = np.arange(first_column, first_column + products.shape[1], dtype=np.int32)
        bounds[columns == own[:, None]] = np.inf
        _keep_smallest(bounds.astype(np.float32), columns, kept)

    def can_filter(self, n_features: int) -> bool:
        """Return whether products can be filtered while they are computed."""
        return True

    def filter(
        self, rows: Any, own: Array, columns: Any, floors: Array, kept: Pair, crowded: Array
    ) -> None:
        """Keep the candidates with the smallest lower bounds, like `select`, from products in half precision.

        Only columns below the largest kept bound pass. Rows for which more columns pass than there is room for
        are marked as `crowded`: their candidates are invalid.
        """
        products = rows.values.astype(np.float32) @ columns.values.astype(np.float32).T
        unit = np.float32(2.0 ** (-2 * rows.exponent))
        bounds = (rows.lower[:, None] + columns.lower - 2.0 * products) * unit
        bounds = np.maximum(floors, bounds).astype(np.float32)
        indices = columns.first + columns.stride * np.arange(len(columns.lower), dtype=np.int32)
        bounds[indices == own[:, None]] = np.inf
        bounds[bounds >= kept[0].max(axis=1)[:, None]] = np.inf
        crowded |= np.isfinite(bounds).sum(axis=1) > ROOM
        _keep_smallest(bounds, indices, kept)

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

    def outsider_bounds(self, products: Array, norms: Pair, components: Pair, low: Array) -> None:
        """Lower `low` to the smallest upper bound on the squared distance to another component."""
        bounds = norms[0][:, None] + norms[1] - 2.0 * products
        bounds[components[0][:, None] == components[1]] = np.inf
        np.minimum(low, bounds.min(axis=1), out=low)

    def outsiders(
        self, products: Array, norms: Pair, components: Pair, limits: Array, capacity: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """List pairs of different components whose lower bound is within the row's limit; None if too many."""
        bounds = norms[0][:, None] + norms[1] - 2.0 * products
        wanted = (components[0][:, None] != components[1]) & (bounds <= limits[:, None])
        rows, columns = np.nonzero(wanted)
        return (rows, columns) if len(rows) <= capacity else None

    def pair_squares(self, points: Array, first: Array, second: Array) -> Array:
        """Compute the squared distances of pairs, summing the features in order."""
        total = np.zeros(len(first))
        for f in range(points.shape[1]):
            gap = points[first, f] - points[second, f]
            total += gap * gap
        return total

    def add_terms(
        self,
        products: Array,
        queries: tuple[Array, Array, Array],
        nodes: tuple[Array, Array, Array, Array],
        taus: FloatArray,
        state: Pair,
    ) -> None:
        """Add the exponentials of path costs to the sums of a class.

        `queries` are the points, squared norms, and squared distances up to which distances are recomputed;
        `nodes` are the points, squared norms, costs and weights of the columns. `state` is the lowest cost so
        far, (n_rows,), and the sums relative to it, (n_rows, n_bandwidths).
        """
        points, norms, least = queries
        columns, column_norms, floors, weights = nodes
        squared = np.maximum(norms[:, None] + column_norms - 2.0 * products, 0.0)
        for q, v in zip(*np.nonzero(squared <= least[:, None]), strict=True):
            squared[q, v] = ((points[q] - columns[v]) ** 2).sum()
        costs = np.where(weights > 0.0, np.maximum(floors, np.sqrt(squared)), np.inf)
        low, sums = state
        lower = np.minimum(low, costs.min(axis=1))
        flat = taus.ravel()
        some = np.isfinite(lower)
        moved = some & np.isfinite(low)
        sums[moved] *= np.exp((lower[moved] - low[moved])[:, None] / flat)
        low[:] = lower
        for j, tau in enumerate(flat):
            sums[some, j] += np.exp((lower[some, None] - costs[some]) / tau) @ weights

    def _squared(self, rows: Array, points: Array, indices: Array) -> FloatArray:
        total = np.zeros(indices.shape)
        for f in range(points.shape[1]):
            gap = rows[:, f][:, None] - points[np.maximum(indices, 0), f]
            total += gap * gap
        return np.where(indices >= 0, total, np.inf)


def _keep_smallest(bounds: Array, columns: Array, kept: Pair) -> None:
    """Keep the smallest of the kept and the new bounds in each row."""
    values, indices = kept
    all_bounds = np.concatenate([values, bounds], axis=1)
    all_indices = np.concatenate([indices, np.broadcast_to(columns, bounds.shape)], axis=1)
    chosen = np.argsort(all_bounds, axis=1, kind="stable")[:, :CANDIDATES]
    values[:] = np.take_along_axis(all_bounds, chosen, axis=1)
    indices[:] = np.where(np.isfinite(values), np.take_along_axis(all_indices, chosen, axis=1), -1)
