r"""The conquest for metrics that are not Euclidean: all distances are computed, in blocks; see `conquest`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.conquest import wins
from popf.engine.distances import refuse_weight, rows_per_block
from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.structures import Conquest, FloatArray, IntArray


class ScannedNodes:
    """Training nodes of any metric, all of which are compared; has the methods of `EuclideanConquest`."""

    def __init__(
        self,
        metric: Any,  # ``metric.blocks(new, samples)`` returns blocks of distances
        samples: FloatArray | None,  # None if distances are precomputed
        codes: IntArray,
        costs: FloatArray,
        n_bytes: int,  # limit for the distances held by all threads together
    ) -> None:
        self._metric, self._samples, self._n_bytes = metric, samples, n_bytes
        self._codes, self._costs = codes, costs

    def samples(self) -> FloatArray | None:
        """Return the training samples."""
        return self._samples

    def conquer(self, new: FloatArray, n_threads: int = 1) -> tuple[Conquest, IntArray]:
        r"""Find the training node that conquers each new sample; exponents are 0.

        :math:`\arg\min_v \max(C_v, d(v, t))`; among equal costs the nearer node, then the lower class,
        then the lower index.
        """
        nodes, distances = np.empty(len(new), dtype=np.int64), np.empty(len(new))
        self._scan(_conquer_block, new, (nodes, distances), n_threads)
        conquest = Conquest(nodes, np.maximum(self._costs[nodes], distances), distances)
        return conquest, np.zeros(len(new), dtype=np.int64)

    def costs_by_class(self, new: FloatArray, n_threads: int = 1) -> tuple[FloatArray, IntArray]:
        r"""Find the smallest path cost that each class offers to each new sample; exponents are 0.

        :math:`\min_{v \in k} \max(C_v, d(v, t))`, an array of shape (n_samples, n_classes).
        """
        offers = np.full((len(new), int(self._codes.max()) + 1), np.inf)
        self._scan(_offer_block, new, (offers,), n_threads)
        return offers, np.zeros((len(new), 1), dtype=np.int64)

    def _scan(
        self, kernel: Any, new: FloatArray, out: tuple[NDArray[Any], ...], n_threads: int
    ) -> None:
        """Fill the arrays `out` for new samples, one block of distances at a time."""
        blocks = self._metric.blocks(new, self._samples)

        def scan(start: int, stop: int) -> None:
            block = blocks(start, stop)
            bad = kernel(block, self._costs, self._codes, *(part[start:stop] for part in out))
            if bad >= 0:
                query, node = divmod(bad, block.shape[1])
                who = f"new sample {start + query} and training sample {node}"
                refuse_weight(block[query, node], who)

        rows = rows_per_block(len(self._costs), self._n_bytes, n_threads)
        map_chunks(scan, len(new), rows, n_threads)


@jit
def _conquer_block(block, costs, class_index, nodes, distances):
    """Find the smallest (max(C, d), d, class, index) in each row; return the index of an invalid d, or -1."""
    n_queries, n_training = block.shape
    for q in range(n_queries):
        best, best_cost, best_distance = -1, np.inf, np.inf
        for v in range(n_training):
            distance = block[q, v]
            if not 0.0 <= distance < np.inf:
                return int(q * n_training + v)
            cost = max(costs[v], distance)
            # Nodes are visited by index, so within a class the lower index wins.
            if wins(cost, distance, v, best_cost, best_distance, best, class_index):
                best, best_cost, best_distance = v, cost, distance
        nodes[q] = best
        distances[q] = best_distance
    return -1


@jit
def _offer_block(block, costs, class_index, offers):
    """Find the smallest max(C, d) of each class in each row; return as `_conquer_block` does."""
    n_queries, n_training = block.shape
    for q in range(n_queries):
        for v in range(n_training):
            distance = block[q, v]
            if not 0.0 <= distance < np.inf:
                return int(q * n_training + v)
            cost = max(costs[v], distance)
            label = class_index[v]
            offers[q, label] = min(cost, offers[q, label])
    return -1
