"""Who conquers a new sample, for any metric: a scan of blocks of distances."""

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.structures import BlockOfDistances, Conquered, FloatArray, IntArray

# Bytes of distances held at a time by each thread: few enough that Ctrl-C is answered soon.
BLOCK_BYTES = 4 * 2**20


def rows_per_block(n_training: int, block_bytes: int = BLOCK_BYTES) -> int:
    """How many queries make a block, so that its distances fit in `block_bytes`."""
    return max(1, block_bytes // (8 * max(1, n_training)))


def conquer(
    blocks: BlockOfDistances,
    n_queries: int,
    costs: FloatArray,
    class_index: IntArray,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> Conquered:
    r"""Find the training node that conquers each new sample.

    :math:`\arg\min_v \max(C_v, d(v, t))`; among equal costs the nearer node, then the lower class,
    then the lower index. A block has `block_rows` queries, by default as many as 4 MiB of distances hold.
    """
    nodes, distances = np.empty(n_queries, dtype=np.int64), np.empty(n_queries)

    def scan(start: int, stop: int) -> None:
        block = blocks(start, stop)
        here = slice(start, stop)
        bad = _conquer_block(block, costs, class_index, nodes[here], distances[here])
        _refuse_distance(block, start, bad)

    map_chunks(scan, n_queries, block_rows or rows_per_block(len(costs)), n_threads)
    return Conquered(nodes, np.maximum(costs[nodes], distances), distances)


def costs_by_class(
    blocks: BlockOfDistances,
    n_queries: int,
    costs: FloatArray,
    class_index: IntArray,
    n_classes: int,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> FloatArray:
    r"""Find the smallest path cost that each class offers to each new sample.

    :math:`\min_{v \in k} \max(C_v, d(v, t))`, an array of shape (n_queries, n_classes), infinite for a class
    without samples; parameters as for `conquer`.
    """
    offers = np.full((n_queries, n_classes), np.inf)

    def scan(start: int, stop: int) -> None:
        block = blocks(start, stop)
        _refuse_distance(block, start, _offer_block(block, costs, class_index, offers[start:stop]))

    map_chunks(scan, n_queries, block_rows or rows_per_block(len(costs)), n_threads)
    return offers


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


def _refuse_distance(block: FloatArray, start: int, bad: int) -> None:
    """Raise ValueError for a negative or non-finite distance, if there was one."""
    if bad >= 0:
        query, node = divmod(bad, block.shape[1])
        raise ValueError(
            f"the distance between new sample {start + query} and training sample {node} is "
            f"{block[query, node]}, but distances must be finite and not negative. Check the metric, "
            "or scale the features to a moderate range."
        )
