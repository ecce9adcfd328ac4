"""The GPU kernels in NumPy: slow and simple, they define what the CUDA kernels must compute."""

import numpy as np

from popf.engine.gpu import host
from popf.engine.gpu.host import CANDIDATES, HostDecider


class HostKernels(HostDecider):
    """The kernels on the host."""

    xp = np

    def free_bytes(self):
        """Return the number of bytes that may be used on the device."""
        return 1 << 32

    def rounding(self, n_features):
        """Return the maximum error of a product, relative to half the sum of the squared norms; see `tiles`."""
        return 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)

    def multiply(self, left, right):
        """Compute the products of all pairs of rows."""
        return left @ right.T

    def select(self, products, norms, floors, first_column, own, kept):
        """Keep the candidates with the smallest lower bounds ``max(floor, |x|² + |y|² - 2 x·y)``.

        Column indices start at `first_column`; ``own[row]`` is never a candidate for the row. `norms` are the
        squared norms of rows and of columns, minus the rounding error. `kept` holds bounds (initially infinite)
        and indices (initially -1), both of shape (n_rows, CANDIDATES), and is updated in place.
        """
        bounds = np.maximum(floors, norms[0][:, None] + norms[1] - 2.0 * products)
        columns = np.arange(first_column, first_column + products.shape[1], dtype=np.int32)
        bounds[columns == own[:, None]] = np.inf
        _keep_smallest(bounds.astype(np.float32), columns, kept)

    def can_filter(self, n_features):
        """Return whether products can be filtered while they are computed."""
        return True

    def filter(self, rows, own, columns, floors, kept, crowded):
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
        crowded |= np.isfinite(bounds).sum(axis=1) > host.ROOM
        _keep_smallest(bounds, indices, kept)

    def outsider_bounds(self, products, norms, components, low):
        """Lower `low` to the smallest upper bound on the squared distance to another component."""
        bounds = norms[0][:, None] + norms[1] - 2.0 * products
        bounds[components[0][:, None] == components[1]] = np.inf
        np.minimum(low, bounds.min(axis=1), out=low)

    def outsiders(self, products, norms, components, limits, capacity):
        """List pairs of different components whose lower bound is within the row's limit; None if too many."""
        bounds = norms[0][:, None] + norms[1] - 2.0 * products
        wanted = (components[0][:, None] != components[1]) & (bounds <= limits[:, None])
        rows, columns = np.nonzero(wanted)
        return (rows, columns) if len(rows) <= capacity else None

    def add_terms(
        self,
        products,
        queries,
        nodes,
        taus,
        state,
    ):
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
        some = np.isfinite(lower)
        moved = some & np.isfinite(low)
        sums[moved] *= np.exp((lower[moved] - low[moved])[:, None] / taus)
        low[:] = lower
        for j, tau in enumerate(taus):
            sums[some, j] += np.exp((lower[some, None] - costs[some]) / tau) @ weights


def _keep_smallest(bounds, columns, kept):
    """Keep the smallest of the kept and the new bounds in each row."""
    values, indices = kept
    all_bounds = np.concatenate([values, bounds], axis=1)
    all_indices = np.concatenate([indices, np.broadcast_to(columns, bounds.shape)], axis=1)
    chosen = np.argsort(all_bounds, axis=1, kind="stable")[:, :CANDIDATES]
    values[:] = np.take_along_axis(all_bounds, chosen, axis=1)
    indices[:] = np.where(np.isfinite(values), np.take_along_axis(all_indices, chosen, axis=1), -1)
