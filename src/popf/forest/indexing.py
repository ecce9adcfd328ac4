"""Training nodes, laid out for conquest."""

import numpy as np

from popf.engine.conquest import by_scan
from popf.engine.structures import Conquered, FloatArray, IntArray
from popf.forest.metrics import Metric


class ScannedNodes:
    """Training nodes that are all compared, for any metric; they conquer as `EuclideanConquest` does."""

    def __init__(
        self,
        metric: Metric,
        samples: FloatArray | None,  # None if distances are precomputed
        codes: IntArray,
        costs: FloatArray,
        n_bytes: int,
    ) -> None:
        self._metric, self._samples, self._n_bytes = metric, samples, n_bytes
        self._codes, self._costs = codes, costs

    def samples(self) -> FloatArray | None:
        """Give the training samples back."""
        return self._samples

    def conquer(self, new: FloatArray, n_threads: int = 1) -> tuple[Conquered, IntArray]:
        """Find who conquers each new sample; exponents are 0."""
        found = by_scan.conquer(
            self._metric.blocks(new, self._samples),
            len(new),
            self._costs,
            self._codes,
            self._rows_at_once(n_threads),
            n_threads,
        )
        return found, np.zeros(len(new), dtype=np.int64)

    def costs_by_class(self, new: FloatArray, n_threads: int = 1) -> tuple[FloatArray, IntArray]:
        """Find the smallest path cost that each class offers to each new sample."""
        n_classes = int(self._codes.max()) + 1
        costs = by_scan.costs_by_class(
            self._metric.blocks(new, self._samples),
            len(new),
            self._costs,
            self._codes,
            n_classes,
            self._rows_at_once(n_threads),
            n_threads,
        )
        return costs, np.zeros((len(new), 1), dtype=np.int64)

    def _rows_at_once(self, n_threads: int) -> int:
        share = min(by_scan.BLOCK_BYTES, self._n_bytes // n_threads)
        return by_scan.rows_per_block(len(self._codes), share)
