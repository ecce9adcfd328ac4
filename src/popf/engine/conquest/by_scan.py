"""Who conquers a new sample, for any metric: a scan of blocks of distances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.structures import Conquered, FloatArray, IntArray

# Bytes of distances held at a time by each thread: few enough that Ctrl-C is answered soon.
BLOCK_BYTES = 4 * 2**20


def rows_per_block(n_training: int, n_bytes: int, n_threads: int) -> int:
    """How many queries make a block, so that the distances of all threads fit in `n_bytes`."""
    return max(1, min(BLOCK_BYTES, n_bytes // n_threads) // (8 * n_training))


class ScannedNodes:
    """Training nodes that are all compared, for any metric; they conquer as `EuclideanConquest` does."""

    def __init__(
        self,
        metric: Any,  # ``metric.blocks(new, samples)`` gives blocks of distances
        samples: FloatArray | None,  # None if distances are precomputed
        codes: IntArray,
        costs: FloatArray,
        n_bytes: int,  # of distances that all threads together may hold
    ) -> None:
        self._metric, self._samples, self._n_bytes = metric, samples, n_bytes
        self._codes, self._costs = codes, costs

    def samples(self) -> FloatArray | None:
        """Give the training samples back."""
        return self._samples

    def conquer(self, new: FloatArray, n_threads: int = 1) -> tuple[Conquered, IntArray]:
        r"""Find who conquers each new sample; exponents are 0.

        :math:`\arg\min_v \max(C_v, d(v, t))`; among equal costs the nearer node, then the lower class,
        then the lower index.
        """
        nodes, distances = np.empty(len(new), dtype=np.int64), np.empty(len(new))
        self._scan(_conquer_block, new, (nodes, distances), n_threads)
        found = Conquered(nodes, np.maximum(self._costs[nodes], distances), distances)
        return found, np.zeros(len(new), dtype=np.int64)

    def costs_by_class(self, new: FloatArray, n_threads: int = 1) -> tuple[FloatArray, IntArray]:
        r"""Find the smallest path cost that each class offers to each new sample; exponents are 0.

        :math:`\min_{v \in k} \max(C_v, d(v, t))`, an array of shape (n_samples, n_classes).
        """
        offers = np.full((len(new), int(self._codes.max()) + 1), np.inf)
        self._scan(_offer_block, new, (offers,), n_threads)
        return offers, np.zeros((len(new), 1), dtype=np.int64)

    def _scan(
        self, kernel: Any, new: FloatArray, found: tuple[NDArray[Any], ...], n_threads: int
    ) -> None:
        """Fill what is found for new samples, a block of distances after the other."""
        blocks = self._metric.blocks(new, self._samples)

        def scan(start: int, stop: int) -> None:
            block = blocks(start, stop)
            bad = kernel(block, self._costs, self._codes, *(part[start:stop] for part in found))
            if bad >= 0:
                query, node = divmod(bad, block.shape[1])
                raise ValueError(
                    f"the distance between new sample {start + query} and training sample {node} is "
                    f"{block[query, node]}, but distances must be finite and not negative. Check the "
                    "metric, or scale the features to a moderate range."
                )

        rows = rows_per_block(len(self._costs), self._n_bytes, n_threads)
        map_chunks(scan, len(new), rows, n_threads)


@jit
def _conquer_block(block, costs, class_index, nodes, distances):
    """Find the smallest by (max(C, d), d, class, index) in each row.

    Returns the flat index of a negative or non-finite distance, or -1.
    """
    n_queries, n_training = block.shape
    for q in range(n_queries):
        best, best_cost, best_distance = -1, np.inf, np.inf
        for v in range(n_training):
            distance = block[q, v]
            if not 0.0 <= distance < np.inf:
                return int(q * n_training + v)
            cost = max(costs[v], distance)
            if (
                best < 0
                or cost < best_cost
                or (
                    cost == best_cost
                    and (
                        distance < best_distance
                        # Nodes come by index, so the lower index keeps its place.
                        or (distance == best_distance and class_index[v] < class_index[best])
                    )
                )
            ):
                best, best_cost, best_distance = v, cost, distance
        nodes[q] = best
        distances[q] = best_distance
    return -1


@jit
def _offer_block(block, costs, class_index, offers):
    """Find the smallest max(C, d) of each class in each row; returns as `_conquer_block`."""
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
