"""The forest of labelled samples, and the choice of the number of neighbours by samples left out."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from popf.density.forest import DensityForest, Removal, claim_rows, grow_paths
from popf.density.graph import NeighbourGraph, NodeIndex, order_nodes
from popf.engine.runtime.threads import map_chunks

if TYPE_CHECKING:
    from popf.engine.backends import Resources
    from popf.forest.metrics import Metric

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

N_FOLDS = 5


def grow_labelled(
    samples: FloatArray,
    codes: IntArray,
    metric: "Metric",
    n_neighbors: int | None,
    max_neighbors: int,
    resources: "Resources",
) -> tuple[DensityForest, FloatArray | None]:
    """Grow the forest of labelled samples; without `n_neighbors`, that of the highest accuracy.

    Also gives the accuracy for every number that was tried.
    """
    metric = metric.fitted(samples)
    metric.check(samples)
    node_of, rows = order_nodes(samples, codes, metric.precomputed)
    points = samples[np.ix_(rows, rows)] if metric.precomputed else samples[rows]
    node_codes, counts, accuracies = codes[rows], np.bincount(node_of), None
    if n_neighbors is None:
        accuracies = left_out_accuracies(
            points, node_codes, counts, metric, max_neighbors, resources
        )
        n_neighbors = int(np.argmax(accuracies)) + 1 if len(accuracies) else 1
    k = min(n_neighbors, len(samples) - 1)
    graph = NodeIndex(points, counts, metric).graph(k, resources)
    paths = grow_paths(graph, k, node_codes, Removal())
    kept = None if metric.precomputed else points
    return DensityForest(metric, kept, node_of, node_codes, k, paths), accuracies


def left_out_accuracies(
    points: FloatArray,
    codes: IntArray,
    counts: IntArray,
    metric: "Metric",
    max_neighbors: int,
    resources: "Resources",
) -> FloatArray:
    """Find the share of samples that forests of the other folds label right, for 1, 2, ... neighbours.

    Nodes are in the order of class and value, and dealt to the folds in turn.
    """
    fold = np.arange(len(points)) % N_FOLDS
    n_others = int(counts.sum() - np.bincount(fold, counts).max())  # where the largest fold is out
    n_tried = max(0, min(max_neighbors, n_others - 1))
    right: FloatArray = np.zeros(n_tried)
    for number in np.unique(fold) if n_tried > 0 else ():
        out, kept = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        training = points[np.ix_(kept, kept)] if metric.precomputed else points[kept]
        new = points[np.ix_(out, kept)] if metric.precomputed else points[out]
        index = NodeIndex(training, counts[kept], metric)
        graph, asked = index.graph(n_tried, resources), index.graph_of(new, n_tried, resources)
        count = partial(_count_right, graph, asked, codes[kept], codes[out], counts[out])
        right += map_chunks(count, n_tried, 1, resources.n_threads)
    right /= counts.sum()
    return right


def _count_right(
    graph: NeighbourGraph,
    asked: NeighbourGraph,
    codes: IntArray,
    true_codes: IntArray,
    counts: IntArray,
    _start: int,
    k: int,
) -> int:
    """Count the samples left out that the forest of k neighbours labels right."""
    nodes = claim_rows(asked, k, grow_paths(graph, k, codes, Removal())).nodes
    return int(counts[codes[nodes] == true_codes].sum())
