"""The graph of nearest neighbours: samples in an order of their own, and who is near whom."""

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.conquest.by_scan import BLOCK_BYTES, rows_per_block
from popf.engine.k_nearest import Nearest, nearest_by_scan, nearest_in_space
from popf.engine.points import (
    distinct_distances,
    scale_exponent,
    scaled_copy,
    sort_by_values,
)

if TYPE_CHECKING:
    from popf.engine.backends import Resources
    from popf.forest.metrics import Metric

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class NeighbourGraph(NamedTuple):
    """The nearest samples of every node, nearest first; a node is one sample, or several equal ones.

    Attributes
    ----------
    neighbours : ndarray of shape (n_nodes, n_listed)
        Nodes in the order of (distance, node).
    distances : ndarray of shape (n_nodes, n_listed)
    before : ndarray of shape (n_nodes, n_listed)
        How many samples come before those of the listed one: copies of the node, and all listed earlier.
    counts : ndarray of shape (n_nodes,)
        How many samples each node stands for.
    """

    neighbours: NDArray[np.int32]
    distances: FloatArray
    before: NDArray[np.int32]
    counts: IntArray


def order_nodes(
    samples: FloatArray, codes: IntArray, precomputed: bool
) -> tuple[IntArray, IntArray]:
    """Sort samples by class and values, and merge equal ones: the node of each, and a row of each node.

    Samples that are known by their distances only are sorted by these, and none are merged.
    """
    known_by = distinct_distances(samples) if precomputed else samples
    order, values = sort_by_values(chain([codes.astype(np.float64)], known_by.T), len(samples))
    if precomputed:
        values = np.arange(len(samples))
    node_of = np.empty(len(samples), dtype=np.int64)
    node_of[order] = values
    return node_of, order[np.flatnonzero(np.diff(values, prepend=-1))]


def graph_of_nodes(
    points: FloatArray, counts: IntArray, metric: "Metric", k: int, resources: "Resources"
) -> NeighbourGraph:
    """Find the k nearest other samples of every node.

    `points` are the nodes' own, or the distances among them if the metric is precomputed.
    """
    n_listed = min(k, len(points) - 1)
    if n_listed == 0:  # all samples are equal
        nobody = np.empty((len(points), 0), dtype=np.int32)
        return NeighbourGraph(nobody, nobody.astype(np.float64), nobody, counts)
    found = _nearest(points, points, True, metric, n_listed, resources)
    return _counted(found, counts, counts - 1)


def graph_of_new(
    points: FloatArray | None,
    counts: IntArray,
    metric: "Metric",
    k: int,
    new: FloatArray,
    resources: "Resources",
) -> NeighbourGraph:
    """Find the k nearest training samples of new ones; `points` are None if distances are precomputed."""
    found = _nearest(points, new, False, metric, min(k, len(counts)), resources)
    return _counted(found, counts, np.zeros(len(new), dtype=np.int64))


def _nearest(
    points: FloatArray | None,
    queries: FloatArray,
    own: bool,
    metric: "Metric",
    k: int,
    resources: "Resources",
) -> Nearest:
    """List the nearest nodes of queries, which with `own` are the nodes; distances in the metric's unit."""
    if metric.euclidean and points is not None:
        exponent = scale_exponent(points)
        scaled = scaled_copy(points, exponent)
        with np.errstate(over="ignore"):  # what is so far away has no density anyway
            asking = None if own else scaled_copy(queries, exponent)
        found = nearest_in_space(scaled, asking, k, resources.n_threads)
        return found._replace(weights=metric.transform(found.weights, exponent))
    n_nodes = queries.shape[1] if points is None else len(points)
    share = min(BLOCK_BYTES, resources.n_bytes // resources.n_threads)
    return nearest_by_scan(
        metric.blocks(queries, points),
        *(len(queries), k, own, rows_per_block(n_nodes, share), resources.n_threads),
    )


def _counted(found: Nearest, counts: IntArray, copies: IntArray) -> NeighbourGraph:
    """Count the samples before each that is listed; `copies` are those at no distance."""
    listed = counts[found.indices]
    before = np.cumsum(listed, axis=1) - listed + copies[:, np.newaxis]
    return NeighbourGraph(found.indices, found.weights, before.astype(np.int32), counts)
