"""Who conquers a new sample, for any metric: a scan of blocks of distances."""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray


class ScanIndex(NamedTuple):
    """Points with costs, to be scanned.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
    costs : ndarray of shape (n_points,)
    rank : ndarray of shape (n_points,)
        Breaks ties between points at the same cost and distance: lower conquers.
    order : ndarray of shape (n_points,)
        ``points[i]`` was row ``order[i]`` of the input; a scan leaves them as they are.
    """

    points: FloatArray
    costs: FloatArray
    rank: IntArray
    order: IntArray


# Bytes of distances held at a time by each thread: few enough that Ctrl-C is answered soon.
BLOCK_BYTES = 4 * 2**20


def rows_per_block(n_training: int, block_bytes: int = BLOCK_BYTES) -> int:
    """How many queries make a block, so that its distances fit in `block_bytes`.

    Examples
    --------
    >>> from popf.engine.conquest.by_scan import rows_per_block
    >>> rows_per_block(1000, block_bytes=80_000)
    10
    """
    return max(1, block_bytes // (8 * max(1, n_training)))


@jit
def _conquer_block(
    block: FloatArray,
    costs: FloatArray,
    class_index: IntArray,
    nodes: IntArray,
    distances: FloatArray,
) -> int:
    """Find the smallest by (max(C, d), d, class, index) in each row.

    Returns the flat index of a distance that is none, or -1.
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
def _offer_block(
    block: FloatArray, costs: FloatArray, class_index: IntArray, offers: FloatArray
) -> int:
    """Find the smallest max(C, d) of each class in each row.

    Returns the flat index of a distance that is none, or -1.
    """
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


def _refuse_weight(block: FloatArray, start: int, bad: int) -> None:
    """Raise the error for a distance that is none."""
    query, node = divmod(bad, block.shape[1])
    raise ValueError(
        f"the distance between new sample {start + query} and training sample {node} is "
        f"{block[query, node]}, but distances must be finite and not negative. Check the metric, "
        "or scale the features to a moderate range."
    )


def conquer(
    block_of_distances: BlockOfDistances,
    n_queries: int,
    costs: FloatArray,
    class_index: IntArray,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> tuple[IntArray, FloatArray, FloatArray]:
    r"""Find the training node that conquers each new sample.

    :math:`\arg\min_v \max(C_v, d(v, t))`; among equal costs the nearer node, then the lower class,
    then the lower index.

    Parameters
    ----------
    block_of_distances : callable
        ``block_of_distances(start, stop)`` gives the distances of those queries to all training
        samples, a C-contiguous float64 array; called from several threads if `n_threads` > 1.
    n_queries : int
    costs : ndarray of shape (n_training,)
        C_v, on the scale of the distances.
    class_index : ndarray of shape (n_training,)
        The class of each training sample, 0 to n_classes - 1.
    block_rows : int, optional
        Queries in a block; by default as many as 4 MiB of distances hold.
    n_threads : int

    Returns
    -------
    nodes : ndarray of int64 of shape (n_queries,)
    path_costs : ndarray of shape (n_queries,)
        :math:`\max(C_v, d(v, t))` of the conqueror.
    distances : ndarray of shape (n_queries,)
        :math:`d(v, t)` of the conqueror.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.engine.conquest.by_scan import conquer
    >>> D = np.array([[1.0, 2.0], [5.0, 4.0]])
    >>> costs, class_index = np.array([3.0, 0.0]), np.array([0, 1])
    >>> nodes, path_costs, _ = conquer(lambda a, b: D[a:b], 2, costs, class_index)
    >>> nodes, path_costs
    (array([1, 1]), array([2., 4.]))
    """
    nodes = np.empty(n_queries, dtype=np.int64)
    distances = np.empty(n_queries)

    def scan(start: int, stop: int) -> None:
        block = block_of_distances(start, stop)
        bad = _conquer_block(block, costs, class_index, nodes[start:stop], distances[start:stop])
        if bad >= 0:
            _refuse_weight(block, start, bad)

    map_chunks(scan, n_queries, block_rows or rows_per_block(len(costs)), n_threads)
    return nodes, np.maximum(costs[nodes], distances), distances


def costs_by_class(
    block_of_distances: BlockOfDistances,
    n_queries: int,
    costs: FloatArray,
    class_index: IntArray,
    n_classes: int,
    block_rows: int | None = None,
    n_threads: int = 1,
) -> FloatArray:
    r"""Find the smallest path cost that each class offers to each new sample.

    Parameters
    ----------
    block_of_distances, n_queries, costs, class_index, block_rows, n_threads
        As in `conquer`.
    n_classes : int

    Returns
    -------
    ndarray of shape (n_queries, n_classes)
        :math:`\min_{v \in k} \max(C_v, d(v, t))`; infinite for a class without samples.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.engine.conquest.by_scan import costs_by_class
    >>> D = np.array([[1.0, 2.0], [5.0, 4.0]])
    >>> costs_by_class(lambda a, b: D[a:b], 2, np.array([3.0, 0.0]), np.array([0, 1]), 2)
    array([[3., 2.],
           [5., 4.]])
    """
    offers = np.full((n_queries, n_classes), np.inf)

    def scan(start: int, stop: int) -> None:
        block = block_of_distances(start, stop)
        bad = _offer_block(block, costs, class_index, offers[start:stop])
        if bad >= 0:
            _refuse_weight(block, start, bad)

    map_chunks(scan, n_queries, block_rows or rows_per_block(len(costs)), n_threads)
    return offers
