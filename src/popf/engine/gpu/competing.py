"""The soft competition on a device: the costs of all paths, from matrix products in float64."""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.gpu.host import Array
from popf.engine.soft_scores import ERROR
from popf.engine.structures import FloatArray, IntArray

# Rows and columns of a tile.
ROWS, COLUMNS = 8192, 8192
# Samples from which the centre is computed.
CENTER_SAMPLE_SIZE = 1000


class CompetingPoints(NamedTuple):
    """Training nodes in one matrix on the device, sorted by class and within a class by norm.

    ``|x - y|² = |x|² + |y|² - 2 x·y`` suffers from cancellation where x and y are close. With unit roundoff u
    and d features, its error is at most ``E = 2 (d + 16) u (|x|² + |y|²)`` (see `tiles`), and that of the
    distance ``E / (2 |x - y|)``. Where that exceeds the allowed error, the distance is computed directly.
    Points are centred at their median, and sorted by norm within each class, so that outliers neither reduce
    the precision of other points nor cause their distances to be recomputed.
    """

    placed: tuple[Array, ...]  # points relative to `center`, squared norms, costs and weights
    norms: FloatArray  # squared
    starts: IntArray  # class k is range(starts[k], starts[k + 1])
    masses: FloatArray  # the sum of the weights of each class
    center: FloatArray

    @classmethod
    def build(
        cls,
        samples: FloatArray,
        codes: IntArray,
        costs: FloatArray,
        weights: FloatArray,
        kernels: Any,
    ) -> "CompetingPoints":
        """Sort samples of the classes 0, 1, ..., and copy them to the device."""
        # A single outlier could shift the mean so far that products cancel for all other samples.
        center = np.median(samples[:: max(1, len(samples) // CENTER_SAMPLE_SIZE)], axis=0)
        moved = samples - center
        norms = np.einsum("ij,ij->i", moved, moved)
        order = np.lexsort((norms, codes))
        starts = np.append(0, np.cumsum(np.bincount(codes)))
        masses = np.bincount(codes, weights=weights).astype(np.float64)
        placed = tuple(kernels.put(each[order]) for each in (moved, norms, costs, weights))
        return cls(placed, norms[order], starts, masses, center)

    def scores(self, queries: FloatArray, taus: FloatArray, kernels: Any) -> FloatArray:
        """Compute the scores of queries, which must have the scale of the samples; see `soft_scores`."""
        scores = np.full((len(queries), len(self.masses), len(taus)), np.inf)
        for first in range(0, len(queries), ROWS):
            centred = queries[first : first + ROWS] - self.center
            norms = np.einsum("ij,ij->i", centred, centred)
            mine, row_norms = kernels.put(centred), kernels.put(norms)
            for k, mass in enumerate(self.masses):
                low = kernels.xp.full(len(norms), np.inf)
                sums = kernels.xp.zeros((len(norms), len(taus)))
                for start in range(self.starts[k], self.starts[k + 1], COLUMNS):
                    part = slice(start, min(start + COLUMNS, int(self.starts[k + 1])))
                    largest = float(self.norms[part].max())
                    least = kernels.put(recompute_below(norms, largest, queries.shape[1], taus))
                    columns = tuple(array[part] for array in self.placed)
                    products = kernels.multiply(mine, columns[0])
                    kernels.add_terms(
                        products, (mine, row_norms, least), columns, taus, (low, sums)
                    )
                lowest, totals = kernels.get(low), kernels.get(sums)
                reached = np.flatnonzero(np.isfinite(lowest))
                values = lowest[reached, None] / taus - np.log(totals[reached] / mass)
                scores[first + reached, k] = values
        return scores


def recompute_below(
    norms: FloatArray, largest: float, n_features: int, taus: FloatArray
) -> FloatArray:
    """Return, for each query, the squared distance below which the error of products exceeds `ERROR`.

    `norms` are the squared norms of the queries, `largest` is the largest one of the nodes.
    """
    # The error of a cost, in units of the bandwidth, is the relative error of its exponential.
    allowed = ERROR * float(taus.min())
    error = 2.0 * (n_features + 16) * float(np.finfo(np.float64).eps) * (norms + largest)
    with np.errstate(over="ignore"):
        least: FloatArray = (error / (2.0 * allowed)) ** 2
    return least
