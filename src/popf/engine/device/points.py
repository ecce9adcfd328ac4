"""Points laid out for a device: in float32 for products, in float64 for decisions, in blocks."""

from typing import Any, NamedTuple

import numpy as np

from ..structures import FloatArray, IntArray
from .host import Array, HostKernels

# Rows and columns of a tile: two bytes in flight for each of a GPU's threads many times over.
ROWS, COLUMNS = 8192, 16384


class Block(NamedTuple):
    """Some points on the device.

    Attributes
    ----------
    single : array of shape (n, n_features)
        In float32, moved to the centre.
    lower, upper : array of shape (n,)
        Squared norms, less and more the rounding error of a product.
    """

    single: Array
    lower: Array
    upper: Array


class DevicePoints:
    """Points for a device, there as a whole if they fit, else brought block by block.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Scaled so that squares neither overflow nor vanish.
    kernels : HostKernels or CudaKernels
    columns : int
        How many make a block.
    share : float
        The share of the device's free memory that may be filled with points.
    """

    def __init__(
        self, points: FloatArray, kernels: Any, columns: int = COLUMNS, share: float = 0.5
    ) -> None:
        self.kernels, self.points, self.columns = kernels, points, columns
        n_points, n_features = points.shape
        self.center = points.mean(axis=0)
        self._error = kernels.rounding(n_features)
        # Squares below the smallest normal number are lost, a little for every feature.
        self._slack = (n_features + 16) * float(np.finfo(np.float32).tiny)
        resident = n_points * (12 * n_features + 8) <= share * kernels.free_bytes()
        self.exact: Array | None = None  # in float64, on the device
        self._whole: Block | None = None
        if resident:
            self.exact = kernels.put(points)
            self._whole = self._bring(self.exact)

    def __len__(self) -> int:
        return len(self.points)

    def block(self, start: int, stop: int) -> Block:
        """Give a range of the points."""
        if self._whole is not None:
            return Block(*(part[start:stop] for part in self._whole))
        return self._bring(self.kernels.put(self.points[start:stop]))

    def take(self, rows: IntArray) -> Block:
        """Give some of the points."""
        if self._whole is not None:
            chosen = self.kernels.put(rows)
            return Block(*(part[chosen] for part in self._whole))
        return self._bring(self.kernels.put(self.points[rows]))

    def others(self, points: FloatArray) -> Block:
        """Lay out other points, such as queries, beside these."""
        return self._bring(self.kernels.put(points))

    def decide(self) -> tuple[Any, Array]:
        """Give the kernels that compute exact distances, and the points for them."""
        if self.exact is not None:
            return self.kernels, self.exact
        return HostKernels(), self.points

    def _bring(self, exact: Array) -> Block:
        xp = self.kernels.xp
        single = (exact - xp.asarray(self.center)).astype(np.float32)
        double = single.astype(np.float64)
        norms = (double * double).sum(axis=1)
        lower = (norms * (1.0 - self._error) - self._slack).astype(np.float32)
        upper = (norms * (1.0 + self._error) + self._slack).astype(np.float32)
        return Block(single, lower, upper)
