"""Points laid out for a device: in float32 for products, in float64 for decisions, in blocks."""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.gpu.host import Array, HostKernels
from popf.engine.structures import FloatArray, IntArray

# Rows and columns of a tile: two bytes in flight for each of a GPU's threads many times over.
ROWS, COLUMNS = 8192, 16384
# In half precision the largest magnitude is brought to at most 2**14, and features to a multiple of 64.
HALF_EXPONENT, WIDTH = 14, 64
# Points that tell where the centre is.
CENTRED_BY = 1000


class Block(NamedTuple):
    """Some points on the device."""

    single: Array  # in float32, moved to the centre
    lower: Array  # squared norms, less the rounding error of a product
    upper: Array  # squared norms, more the rounding error of a product


class Halves(NamedTuple):
    """Points in half precision, for products that are filtered."""

    values: Array  # float16, times 2**exponent; features padded with zeros to a multiple of WIDTH
    lower: Array  # squared norms of these, less the rounding error of a product
    exponent: int
    first: int = 0  # the index of the first one
    stride: int = 1  # and from one to the next


class DevicePoints:
    """Points for a device, there as a whole if they fit, else brought block by block.

    Points are scaled so that squares neither overflow nor vanish; `columns` of them make a block. They may fill
    a `share` of the device's free memory.
    """

    def __init__(
        self, points: FloatArray, kernels: Any, columns: int = COLUMNS, share: float = 0.5
    ) -> None:
        self.kernels, self.points, self.columns = kernels, points, columns
        n_points, n_features = points.shape
        # Products are as sharp as points are near to the centre: outliers must not draw it away.
        self.center = np.median(points[:: max(1, n_points // CENTRED_BY)], axis=0)
        self._error = kernels.rounding(n_features)
        # Squares below the smallest normal number are lost, a little for every feature.
        self._slack = (n_features + 16) * float(np.finfo(np.float32).tiny)
        resident = n_points * (12 * n_features + 8) <= share * kernels.free_bytes()
        self.exact: Array | None = None  # in float64, on the device
        self._whole: Block | None = None
        if resident:
            self.exact = kernels.put(points)
            self._whole = self._bring(self.exact)
        self.filters = resident and kernels.can_filter(n_features)
        self._halves: Halves | None = None

    def __len__(self) -> int:
        return len(self.points)

    def block(self, start: int, stop: int) -> Block:
        """Return a range of the points."""
        if self._whole is not None:
            return Block(*(part[start:stop] for part in self._whole))
        return self._bring(self.kernels.put(self.points[start:stop]))

    def take(self, rows: IntArray) -> Block:
        """Return some of the points."""
        if self._whole is not None:
            chosen = self.kernels.put(rows)
            return Block(*(part[chosen] for part in self._whole))
        return self._bring(self.kernels.put(self.points[rows]))

    def some(self, start: int, stop: int, stride: int) -> Block:
        """Return points at equal intervals; all of them must be on the device."""
        assert self._whole is not None
        contiguous = self.kernels.xp.ascontiguousarray
        return Block(*(contiguous(part[start:stop:stride]) for part in self._whole))

    def chunk(self, start: int, stop: int, stride: int) -> Halves:
        """Return points at equal intervals, in half precision."""
        assert self._halves is not None
        contiguous = self.kernels.xp.ascontiguousarray
        values, lower = (contiguous(part[start:stop:stride]) for part in self._halves[:2])
        return Halves(values, lower, self._halves.exponent, start, stride)

    def halved(self, rows: Block) -> Halves | None:
        """Return rows in the half precision of these points, None if they are too large for it."""
        assert self._whole is not None
        if self._halves is None:
            largest = float(abs(self._whole.single).max())
            exponent = HALF_EXPONENT - int(np.frexp(largest)[1])
            self._halves = self._halve(self._whole, exponent)
        exponent = self._halves.exponent
        if float(abs(rows.single).max()) >= 2.0 ** (HALF_EXPONENT + 1 - exponent):
            return None
        return self._halve(rows, exponent)

    def others(self, points: FloatArray) -> Block:
        """Lay out other points, such as queries, beside these."""
        return self._bring(self.kernels.put(points))

    def exact_kernels(self) -> tuple[Any, Array]:
        """Return the kernels that compute exact distances, and the points for them."""
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

    def _halve(self, block: Block, exponent: int) -> Halves:
        """Round to eleven bits; what is below the smallest normal number loses up to 2**-25."""
        xp, (n, n_features) = self.kernels.xp, block.single.shape
        scaled = xp.ldexp(block.single, np.int32(exponent))
        values = xp.zeros((n, -(-n_features // WIDTH) * WIDTH), dtype=np.float16)
        values[:, :n_features] = scaled
        norms = (scaled.astype(np.float64) ** 2).sum(axis=1)
        error = 2.0**-10 * 1.01 + 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)
        # |x·y| changes by 2**-25 for every feature of either, at most so much, in all.
        lost = 1.01 * 2.0**-24 * (np.sqrt(n_features) * xp.sqrt(norms) + n_features * 2.0**-24)
        return Halves(values, (norms * (1.0 - error) - lost).astype(np.float32), exponent)
