"""The graph of nearest neighbours: samples in an order of their own, and who is near whom."""

from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.distances import rows_per_block
from popf.engine.points import (
    SpaceTree,
    build_space_tree,
    distinct_distances,
    scale_exponent,
    scaled_copy,
    sort_by_values,
)
from popf.engine.structures import FloatArray, IntArray, Resources
from popf.engine.trees.neighbours import Nearest, nearest_by_scan, nearest_in_space
from popf.forest.metrics import Metric


class NeighbourGraph(NamedTuple):
    """The nearest samples of every node, nearest first; a node is one sample, or several equal ones."""

    neighbours: NDArray[np.int32]  # (n_nodes, n_listed): nodes in the order of (distance, node)
    distances: FloatArray  # (n_nodes, n_listed)
    # How many samples come before: copies of the node, and all listed earlier.
    before: NDArray[np.int32]
    counts: IntArray  # how many samples each node stands for


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


class NodeIndex:
    """Nodes in which neighbours are searched, by a space tree where the metric is Euclidean.

    With a precomputed metric, `points` are the distances among the nodes, or None if only new ones are asked.
    """

    def __init__(self, points: FloatArray | None, counts: IntArray, metric: Metric) -> None:
        self._points, self._counts, self._metric = points, counts, metric
        self._tree: tuple[SpaceTree, int] | None = None

    def graph(self, k: int, resources: Resources) -> NeighbourGraph:
        """Find the k nearest other samples of every node."""
        n_listed = min(k, len(self._counts) - 1)
        if n_listed == 0 or self._points is None:  # all samples are equal
            nobody = np.empty((len(self._counts), 0), dtype=np.int32)
            return NeighbourGraph(nobody, nobody.astype(np.float64), nobody, self._counts)
        found = self._nearest(self._points, True, n_listed, resources)
        return self._counted(found, self._counts - 1)

    def graph_of(self, new: FloatArray, k: int, resources: Resources) -> NeighbourGraph:
        """Find the k nearest samples of new ones, or among the distances to all nodes."""
        found = self._nearest(new, False, min(k, len(self._counts)), resources)
        return self._counted(found, np.zeros(len(new), dtype=np.int64))

    def _nearest(self, queries: FloatArray, own: bool, k: int, resources: Resources) -> Nearest:
        """List the nearest nodes of queries, which with `own` are the nodes; distances in the metric's unit."""
        if self._metric.euclidean and self._points is not None:
            if self._tree is None:
                exponent = scale_exponent(self._points)
                scaled = scaled_copy(self._points, exponent)
                self._tree = build_space_tree(scaled, resources.n_threads), exponent
            tree, exponent = self._tree
            with np.errstate(over="ignore"):  # what is so far away has no density anyway
                asking = None if own else scaled_copy(queries, exponent)
            found = nearest_in_space(tree, asking, k, resources.n_threads)
            return found._replace(weights=self._metric.transform(found.weights, exponent))
        return nearest_by_scan(
            self._metric.blocks(queries, self._points),
            len(queries),
            k,
            own,
            rows_per_block(len(self._counts), resources.n_bytes, resources.n_threads),
            resources.n_threads,
        )

    def _counted(self, found: Nearest, copies: IntArray) -> NeighbourGraph:
        """Count the samples before each that is listed; `copies` are those at no distance."""
        listed = self._counts[found.indices]
        before = np.cumsum(listed, axis=1) - listed + copies[:, np.newaxis]
        return NeighbourGraph(found.indices, found.weights, before.astype(np.int32), self._counts)
