"""What the GPU does, in NumPy: slow, plain, and the definition of what the kernels must give."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray

# How many candidates are kept of every row: one a lane of a warp.
CANDIDATES = 32
# Columns that may pass the filter of a row in one chunk.
ROOM = 4 * CANDIDATES

Array = Any  # of NumPy here, of CuPy on a GPU
Pair = tuple[Array, Array]  # of rows and of columns; or bounds and indices of candidates


class HostKernels:
    """The kernels on the host."""

    xp: Any = np

    def put(self, array: NDArray[Any]) -> Array:
        """Bring an array to the device."""
        return np.ascontiguousarray(array)

    def get(self, array: Array) -> NDArray[Any]:
        """Bring an array back."""
        return np.asarray(array)

    def free_bytes(self) -> int:
        """How much memory may be used on the device."""
        return 1 << 32

    def rounding(self, n_features: int) -> float:
        """How wrong a product may be, relative to half the sum of the squared norms; see `tiles`."""
        return 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)

    def multiply(self, left: Array, right: Array) -> Array:
        """Products of all pairs of rows."""
        return left @ right.T

    def select(
        self, products: Array, norms: Pair, floors: Array, first_column: int, own: Array, kept: Pair
    ) -> None:
        """Keep the candidates with the smallest lower bounds ``max(floor, |x|² + |y|² - 2 x·y)``.

        Columns have the indices from `first_column` on; ``own[row]`` is no candidate for a row. From the
        squared norms, of rows and of columns, the rounding error is taken off. What is `kept`, bounds (infinite
        at first) and indices (-1), both of shape (n_rows, CANDIDATES), is changed in place.
        """
        bounds = np.maximum(floors, norms[0][:, None] + norms[1] - 2.0 * products)
        columns = np.arange(first_column, first_column + products.shape[1], dtype=np.int32)
        bounds[columns == own[:, None]] = np.inf
        _keep_smallest(bounds.astype(np.float32), columns, kept)

    def can_filter(self, n_features: int) -> bool:
        """Whether products can be filtered where they arise."""
        return True

    def filter(
        self, rows: Any, own: Array, columns: Any, floors: Array, kept: Pair, crowded: Array
    ) -> None:
        """Keep the candidates with the smallest lower bounds, as `select`, from products in half precision.

        Only what is below the largest bound that is kept passes. Rows of which more columns pass than there is
        room for are marked as `crowded`: what is kept of them is not to be trusted.
        """
        products = rows.values.astype(np.float32) @ columns.values.astype(np.float32).T
        unit = np.float32(2.0 ** (-2 * rows.exponent))
        bounds = (rows.lower[:, None] + columns.lower - 2.0 * products) * unit
        bounds = np.maximum(floors, bounds).astype(np.float32)
        who = columns.first + columns.stride * np.arange(len(columns.lower), dtype=np.int32)
        bounds[who == own[:, None]] = np.inf
        bounds[bounds >= kept[0].max(axis=1)[:, None]] = np.inf
        crowded |= np.isfinite(bounds).sum(axis=1) > ROOM
        _keep_smallest(bounds, who, kept)

    def neighbours(
        self, rows: Array, points: Array, kept: Pair, k: int
    ) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Compute the distances of candidates anew: positions, squares and horizon, nearest first."""
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
        """Find who conquers among the candidates: nodes, costs, squared distances, and if certain."""
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
        """Lower `low` to the smallest upper bound on a distance to another component."""
        bounds = norms[0][:, None] + norms[1] - 2.0 * products
        bounds[components[0][:, None] == components[1]] = np.inf
        np.minimum(low, bounds.min(axis=1), out=low)

    def outsiders(
        self, products: Array, norms: Pair, components: Pair, limits: Array, capacity: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """List pairs of components whose lower bound is within the limit of their row; None if too many."""
        bounds = norms[0][:, None] + norms[1] - 2.0 * products
        wanted = (components[0][:, None] != components[1]) & (bounds <= limits[:, None])
        rows, columns = np.nonzero(wanted)
        return (rows, columns) if len(rows) <= capacity else None

    def pair_squares(self, points: Array, first: Array, second: Array) -> Array:
        """Squared distances of pairs, feature after feature."""
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

        Queries are points, squared norms and squares up to which distances are computed anew; nodes are
        points, squared norms, costs and weights of the columns. The state is the lowest cost so far, (n_rows,),
        and sums relative to it, (n_rows, n_bandwidths).
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
    """Keep the smallest of what was kept and of new bounds, one row of them a row."""
    values, indices = kept
    every = np.concatenate([values, bounds], axis=1)
    who = np.concatenate([indices, np.broadcast_to(columns, bounds.shape)], axis=1)
    chosen = np.argsort(every, axis=1, kind="stable")[:, :CANDIDATES]
    values[:] = np.take_along_axis(every, chosen, axis=1)
    indices[:] = np.where(np.isfinite(values), np.take_along_axis(who, chosen, axis=1), -1)
